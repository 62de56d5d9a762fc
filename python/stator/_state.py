"""Torch's state that a trace or a graph sets and puts back: grad mode, autocast, inference mode.
And what must not be on where a trace begins."""

import functools
import threading
from typing import Any

import torch

from stator import _engine, _settings
from stator._rows import Row
from stator._versions import private


def other_tracer() -> bool:
    """Whether somebody else traces what runs now: that one is to see the program, uncompiled."""
    return (
        private.fx_tracing()
        or private.get_tracing_state() is not None
        or private.peek_interpreter_stack() is not None
        or any(private.dispatch_mode_of(key) is not None for key in private.tracing_modes)
    )


_BARS = _settings.bars()


def state_refusal() -> str | None:
    """What is on that a trace could not stand."""
    for asks, arguments, bars in _BARS:
        if asks(*arguments) not in (None, 0):
            return bars
    return None


Call = tuple[Any, tuple[Any, ...]]
State = tuple[
    bool, int, tuple[Call, ...]
]  # grad mode, depth of autocast, the calls that set it all

_TRACED = _settings.traced()


def _traced_calls() -> list[Call]:
    """The calls that set what is set now."""
    calls: list[Call] = []
    for asks, sets, arguments in _TRACED:
        try:
            calls.append((sets, (*arguments, asks(*arguments))))
        except RuntimeError:  # a device that this torch does not know
            continue
    return calls


def autocast_dtype_in(state: State | None, device: str) -> Any:
    """What it is in a state that `save_state` gave; None is the state as it is now."""
    for sets, arguments in state[2] if state else ():
        if sets is torch.set_autocast_dtype and arguments[0] == device:
            return arguments[1]
    return torch.get_autocast_dtype(device)


class _Entered(threading.local):
    """Inference modes that a trace or a graph has entered, innermost last."""

    def __init__(self) -> None:
        self.contexts: list[Any] = []


_entered = _Entered()


# Nodes, too. What is entered is known here, so that it can be left when a graph fails.


def enter_inference(mode: bool) -> Any:
    context: Any = private.InferenceMode(mode)
    context.__enter__()
    _entered.contexts.append(context)
    return context


def exit_inference(context: Any) -> None:
    context.__exit__(None, None, None)
    _entered.contexts.pop()


def leave_inference(depth: int) -> None:
    while len(_entered.contexts) > depth:
        exit_inference(_entered.contexts[-1])


def save_state(settings: tuple[tuple[Any, Any], ...] = ()) -> State:
    """What a trace or a graph sets: the table's, and the settings that a trace has met."""
    calls = [
        (leave_inference, (len(_entered.contexts),)),
        *_traced_calls(),
        *((setter, (getter(),)) for setter, getter in settings),
    ]
    return torch.is_grad_enabled(), _engine.torch_autocast_depth(), tuple(calls)


def state_keeper(settings: tuple[tuple[Any, Any], ...]) -> tuple[Any, Any]:
    """What saves the state that a graph sets, and what puts it back."""
    return functools.partial(save_state, settings), _engine.torch_restore_state


Switch = tuple[Any, tuple[Any, ...], Any, tuple[Any, ...]]  # a call, and the call that undoes it


def state_switches(before: State, after: State) -> list[Switch]:
    """What leads from one state to the other: calls of C functions only."""
    switches: list[Switch] = [
        (sets, new, sets, old)
        for (sets, old), (_, new) in zip(before[2], after[2], strict=True)
        if old != new
    ]
    deeper: Switch = (torch.autocast_increment_nesting, (), _engine.torch_leave_autocast, ())
    switches += [deeper] * (after[1] - before[1])
    switches += [deeper[2:] + deeper[:2]] * (before[1] - after[1])
    return switches


def autocast_now(device: str) -> tuple[bool, torch.dtype, bool]:
    """What autocast.__enter__ puts aside, and __exit__ sets."""
    return (
        torch.is_autocast_enabled(device),
        torch.get_autocast_dtype(device),
        torch.is_autocast_cache_enabled(),
    )


def _set_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    torch.set_autocast_enabled(device, enabled)
    torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(cache)


# Nodes: a context is left that was entered before the graph, and entered again at the graph's end;
# or it is entered in the graph, and left for the time being at its end.


def _exit_autocast(mode: torch.autocast) -> None:
    """As torch's own, but the cache stays, for what comes after the graph in the same context."""
    torch.autocast_decrement_nesting()
    _set_autocast(mode.device, mode.prev, mode.prev_fastdtype, mode.prev_cache_enabled)


def leave_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    _engine.torch_leave_autocast()
    _set_autocast(device, enabled, dtype, cache)


def return_to_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    torch.autocast_increment_nesting()
    _set_autocast(device, enabled, dtype, cache)


# Python functions that set the state, and their nodes. For objects that were entered before the
# trace, the functions run for real.
ROWS: tuple[tuple[Any, Row], ...] = (
    (torch.autocast.__enter__, ("enter_autocast", private.enter_autocast)),
    (torch.autocast.__exit__, ("exit_autocast", private.exit_autocast)),
    (torch.inference_mode.__enter__, ("enter_inference", enter_inference)),
    (torch.inference_mode.__exit__, ("exit_inference", exit_inference)),
)
if private.fx_flag is not None:
    ROWS += ((private.fx_tracing, ("asked", private.fx_flag)),)

# What the engine calls by name.
GLUE = (state_refusal, save_state, state_keeper, state_switches, autocast_now, autocast_dtype_in,
        leave_autocast, return_to_autocast, _exit_autocast, enter_inference, exit_inference,
        leave_inference)  # fmt: skip
HELPERS = (_traced_calls, _set_autocast, torch.inference_mode.__enter__,
           torch.inference_mode.__exit__)  # fmt: skip

# Targets of nodes that set state and compute nothing.
NODES = frozenset((private.enter_autocast, private.exit_autocast, _exit_autocast, leave_autocast,
                   return_to_autocast, enter_inference, exit_inference,
                   *_settings.node_setters()))  # fmt: skip
