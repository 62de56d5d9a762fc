"""Which versions of torch work, and whether the one that is there behaves as Stator relies on.

`private` is the module that names all private parts of torch; who needs them imports it from here,
so that a part that is missing is an error about versions.
"""

from __future__ import annotations

import contextlib
import json
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stator import _engine, _marks

__all__ = [
    "NEWEST",
    "OLDEST",
    "Unusable",
    "attach",
    "check",
    "check_fakes",
    "private",
    "usual_state",
]

# Tested with these, and all in between. The extra in pyproject.toml and README.md say the same.
OLDEST = (2, 11)
NEWEST = (2, 15)


_WORKS = " to ".join(".".join(map(str, version)) for version in (OLDEST, NEWEST))


class Unusable(ImportError):
    """This torch lacks something, or behaves in another way than Stator relies on."""

    def __init__(self, why: object) -> None:
        super().__init__(
            f"Stator cannot work with torch {torch.__version__}: {why}. Versions that work: "
            f"{_WORKS}."
        )


def _version() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(found[1]), int(found[2])) if found else NEWEST


if _version() < OLDEST:
    raise Unusable("it is too old")
try:
    from stator import _private as private
except (ImportError, AttributeError) as error:
    raise Unusable(error) from error


# -- behaviour --

# What is relied on, one function each: it yields what is not as it should be. All of it decides
# whether answers are right, so torch is refused if anything comes.


def _refuses(function: Callable[..., Any], *args: Any) -> bool:
    try:
        function(*args)
    except private.data_dependent:
        return True
    return False


def _fakes_know_no_values(glue: dict[str, Any]) -> Iterator[str]:
    """Else values of a first call would be part of the graph."""
    mode = glue["make_mode"](False)
    for dtype in (torch.int64, torch.float64):
        fake = glue["fake_of"](mode, torch.ones((), dtype=dtype))
        if not _refuses(glue["run"], mode, torch.Tensor.item, (fake,), None):
            yield f"a fake of a tensor of {dtype} knows the tensor's value"
    vector = glue["fake_of"](mode, torch.ones(2))
    if not _refuses(glue["run"], mode, torch.nonzero, (vector,), None):
        yield "fakes tell sizes that depend on values"


def _fakes_are_like_tensors(glue: dict[str, Any]) -> Iterator[str]:
    mode = glue["make_mode"](False)
    base = torch.empty(3, 4)
    tensors = base, base.t()[1:], torch.nn.Parameter(torch.empty(2, dtype=torch.float64))
    fakes = [glue["fake_of"](mode, tensor) for tensor in tensors]
    for tensor, fake in zip(tensors, fakes, strict=True):
        if not isinstance(fake, private.FakeTensor) or fake.fake_mode is not mode:
            yield "a fake is of another class or mode"
        same = (fake.shape == tensor.shape and fake.stride() == tensor.stride()
                and fake.storage_offset() == tensor.storage_offset()
                and fake.dtype == tensor.dtype and fake.device == tensor.device
                and fake.requires_grad == tensor.requires_grad)  # fmt: skip
        if not same:
            yield "a fake is unlike its tensor"
    storages = [private.storage_of(fake) for fake in fakes]
    if storages[0] != storages[1] or storages[0] == storages[2]:
        yield "fakes share memory otherwise than their tensors do"
    if private.storage_of(glue["run"](mode, torch.t, (fakes[0],), None)) != storages[0]:
        yield "a fake of a view has memory of its own"


def _writes_and_draws_are_seen(glue: dict[str, Any]) -> Iterator[str]:
    from stator._fakes import OUTSIDE, RANDOM

    mode = glue["make_mode"](False)
    fake = glue["fake_of"](mode, torch.empty(2))
    if glue["run"](mode, torch.Tensor.add_, (fake, 1), None) is not fake:
        yield "an operation in place gives another fake"
    if not mode.stator_effects & OUTSIDE:
        yield "a fake mode does not see that an operation writes"
    if mode.stator_effects & RANDOM:
        yield "a fake mode takes an addition for a draw of random numbers"
    glue["run"](mode, torch.bernoulli, (fake,), None)
    if not mode.stator_effects & RANDOM:
        yield "a fake mode does not see that an operation draws random numbers"


def _raises(function: Callable[..., Any], *args: Any, text: str = "") -> bool:
    try:
        function(*args)
    except Exception as error:
        return text in str(error)
    return False


def _standins_are_met(glue: dict[str, Any]) -> Iterator[str]:
    """Stand-ins hold torch's undefined tensor, and have `__torch_function__`."""
    standin, real = _engine.torch_ended_standin(), torch.empty(1)
    ended = "a trace of Stator that has ended"
    calls: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
        (torch.add, (standin, 1)),
        (torch.add, (real, standin)),
        (torch.cat, ([real, standin],)),
        (torch.nn.functional.relu, (standin,)),
        (real.add, (standin,)),
        (real.__getitem__, (standin,)),
    )
    for function, args in calls:
        if not _raises(function, *args, text=ended):
            yield f"{function.__name__} does not ask a stand-in for __torch_function__"
    with private.DisableTorchFunction():
        if not _raises(torch.add, standin, 1):
            yield "an undefined tensor can be added to"


def _state_now() -> tuple[Any, ...]:
    include, exclude = (keys().raw_repr() for keys in private.local_keys)
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        private.len_function_stack(),
        include,
        exclude,
    )


def _state_is_seen(glue: dict[str, Any]) -> Iterator[str]:
    """By the engine's own reads; and by torch's guard of it. Only state of this thread is set."""
    guard = private.GlobalStateGuard()
    usual = _engine.torch_state(), _state_now()
    contexts: tuple[tuple[str, Any, bool], ...] = (
        ("grad mode", torch.set_grad_enabled(not torch.is_grad_enabled()), True),
        ("inference mode", torch.inference_mode(not torch.is_inference_mode_enabled()), False),
        ("autocast", torch.autocast("cpu", enabled=not torch.is_autocast_enabled("cpu")), True),
        ("a torch function mode", torch.overrides.BaseTorchFunctionMode(), False),
    )
    if private.node_creation_hook is not None:
        with private.node_creation_hook(id):
            if not _engine.torch_state()[5]:
                yield "the engine does not see hooks on nodes of autograd"
    for name, context, guarded in contexts:
        with context:
            seen, now = _engine.torch_state(), _state_now()
            noticed = not guard.check()
        if not _moves_alike(usual, (seen, now)):
            yield f"the engine does not see {name}"
        if guarded and not noticed:
            yield f"torch's guard of its state does not see {name}"
    if not guard.check():
        yield "torch's guard of its state sees a change where none is"


def _moves_alike(before: tuple[Any, Any], after: tuple[Any, Any]) -> bool:
    """What torch says plainly is what the engine reads; of keys torch keeps the difference to what
    is usual, so those must change by the same bits."""
    (seen, now), (seen_later, now_later) = before, after
    same = seen_later[:3] == now_later[:3]
    bits = zip(seen[3:5], seen_later[3:5], now[3:], now_later[3:], strict=True)
    return same and all(a ^ b == c ^ d for a, b, c, d in bits)


def quick_state_is_right() -> bool:
    """Whether what the engine reads of autograd's state in torch's memory is what torch has set."""
    usual = _engine.torch_quick_state()
    if usual != (False, False):  # the caller's state: torch is asked each time then
        return False
    level = private.enter_dual_level()
    with_level = _engine.torch_quick_state()
    private.exit_dual_level(level)
    try:
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone):
            with_hooks = _engine.torch_quick_state()
    except RuntimeError:  # such hooks are forbidden now
        return False
    after = _engine.torch_quick_state()
    return (with_level, with_hooks, after) == ((True, False), (False, True), usual)


def flags_are_right() -> bool:
    """Whether the engine's getters tell all that torch's guard of its state has seen: the guard's
    own text has the same names and values. What this torch's guard has besides is not known."""
    text: object = private.GlobalStateGuard().__getstate__()
    seen = _engine.torch_flags()
    if seen is None or not isinstance(text, str):
        return False
    told = json.loads(text)
    autocast = told.pop("autocast_state", {})
    told["autocast_dtype"] = autocast.get("dtype")
    told["autocast_cache"] = autocast.get("cached_enabled")
    disabled = told.pop("torch_function_all_disabled", None)
    known = set(autocast) == {"dtype", "cached_enabled", "enabled"} and disabled is False
    return known and bool(told == seen)


_Behaviour = tuple[Callable[[dict[str, Any]], Iterator[str]], ...]

_BEHAVIOUR: _Behaviour = _standins_are_met, _state_is_seen
_OF_FAKES: _Behaviour = (
    _fakes_know_no_values,
    _fakes_are_like_tensors,
    _writes_and_draws_are_seen,
)


def check(glue: dict[str, Any]) -> None:
    """Whether torch behaves as is relied on; the engine asks before it turns tensors on."""
    _check(_BEHAVIOUR, glue)


_fakes_are_known = False


def check_fakes(glue: dict[str, Any]) -> None:
    """Whether torch's fakes behave as is relied on; asked before the first one is made, which may
    be in the midst of a trace. Importing what fakes need takes longer than most traces."""
    global _fakes_are_known
    if _fakes_are_known:
        return
    _fakes_are_known = True  # the checks make fakes, too
    try:
        private.import_all()
        _marks.register()
        with usual_state():
            _check(_OF_FAKES, glue)
    except BaseException:
        _fakes_are_known = False
        raise


def _check(parts: _Behaviour, glue: dict[str, Any]) -> None:
    wrong: list[str] = []
    for part in parts:
        try:
            wrong += part(glue)
        except Exception as error:
            wrong.append(f"{part.__name__.strip('_')}: {type(error).__name__}: {error}")
    if wrong:
        raise Unusable("; ".join(wrong))


# -- attaching --


@contextlib.contextmanager
def usual_state() -> Iterator[None]:
    """What the caller has on must not be part of what is found out: modes, a default device, grad
    mode. (Not in a thread of its own: where torch is built for a GPU and there is none, fakes that
    a thread has used leave a pointer to its dead variables behind.)"""
    modes = [private.pop_function_mode() for _ in range(private.len_function_stack())]
    try:
        with (
            private.no_dispatch_modes(),
            private.EnableTorchFunction(),
            private.without_levels() if private.level_depth() else contextlib.nullcontext(),
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
        ):
            yield
    finally:
        for mode in reversed(modes):
            private.push_function_mode(mode)


def attach() -> None:
    """Makes torch known to the engine; or an error that says what is missing."""
    try:
        with usual_state():
            from stator import _torch

            _torch.attach()
    except Unusable:
        raise
    except (ImportError, AttributeError) as error:
        raise Unusable(error) from error
    if _version() > NEWEST:
        warnings.warn(
            f"Stator was tested with torch {_WORKS}, and this is {torch.__version__}. All that "
            "Stator relies on was found and behaves as it should; Stator does not know what is new "
            "in this version.",
            stacklevel=6,
        )
