"""What people say about single functions: disable, skip, graph_break and their kin.

Marks are torch's own attributes, so that they hold for torch's decorators and for ours alike; the
engine reads them when it meets a call.
"""

from __future__ import annotations

import functools
import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from stator import _engine

graph_break = _engine.graph_break


# How far `_engine.skip_code` reaches: the code's own frames; those it starts; all below.
_FRAME, _NEXT, _BELOW = 0, 1, 2

# -- disable and skip --


def _mark_disabled(wrapper: Any, function: Any, recursive: bool, reason: str | None) -> Any:
    wrapper._torchdynamo_disable = True
    wrapper._torchdynamo_disable_recursive = recursive
    wrapper._torchdynamo_disable_msg = reason
    wrapper._torchdynamo_orig_callable = function
    wrapper._torchdynamo_wrapper_id = id(wrapper)
    return wrapper


def innermost(function: Any) -> Any:
    """Without the wrappers of earlier compiles and disables; torch's `innermost_fn`."""
    while getattr(function, "_torchdynamo_wrapper_id", None) == id(function):
        function = function._torchdynamo_orig_callable
    return function


# One code object for all functions: the engine knows the wrappers by it.
def _call_disabled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return disabled


def _call_skipped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def skipped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return skipped


_engine.skip_code(_call_disabled(lambda: None).__code__, _BELOW)
_engine.skip_code(_call_skipped(lambda: None).__code__, _NEXT)


def _is_module(target: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(target, torch.nn.Module)


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keeps a function out of compilation, with all that it calls.

    With `recursive=False` only its own frames stay in CPython. `reason` is shown where a graph
    breaks because of it.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, type) or _is_module(fn):
        from stator._versions import private

        # It knows what to wrap in them.
        return private.disable(  # type: ignore[no-untyped-call]
            fn, recursive=recursive, reason=reason
        )
    function = innermost(fn)
    if not callable(function):
        raise TypeError(f"disable takes a callable, not {type(function).__name__}")
    wrapper = (_call_disabled if recursive else _call_skipped)(function)
    return _mark_disabled(wrapper, function, recursive, reason)


def skip(fn: Any = None) -> Any:
    """Leaves the function's own frames to CPython; what it calls may be compiled."""
    if fn is None:
        return skip
    function = innermost(fn)
    _engine.skip_code(function.__code__, _FRAME)
    function._torchdynamo_disable = True
    return function


def allow_in_graph(fn: Any) -> Any:
    """Puts calls of a function into graphs as they are, without looking into it."""
    from stator._versions import private

    return private.allow_in_graph(fn)  # type: ignore[no-untyped-call]


# -- questions and modes --


def is_compiling() -> bool:
    """Whether this is being compiled: true in a trace, and while a backend runs."""
    if _engine.tracing():
        return True
    compiler = sys.modules.get("torch.compiler")
    return compiler is not None and getattr(compiler, "_is_compiling_flag", False)


_breaks_are_errors = False


class error_on_graph_break:  # the name is torch's
    """Context manager and decorator: whether breaks are errors in the code within."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self.value = error_on_graph_break
        self.before: list[bool] = []

    def __enter__(self) -> None:
        global _breaks_are_errors
        self.before.append(_breaks_are_errors)
        _breaks_are_errors = self.value

    def __exit__(self, *raised: object) -> None:
        global _breaks_are_errors
        _breaks_are_errors = self.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with error_on_graph_break(self.value):
                return function(*args, **kwargs)

        return inner


_engine.mark_strict_at(globals(), "_breaks_are_errors")

# -- Python functions that break, with a reason of their own --

_REFUSED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "logging": (
        ("Logger._log", "LOGGING", "makes and hands on a record"),
        ("Logger.handle", "LOGGING", "hands on a record"),
        ("_acquireLock", "LOGGING", "waits for other threads"),
        ("Manager.getLogger", "LOGGING", "waits for other threads"),
    ),
    "pdb": (
        ("set_trace", "DEBUGGER", "stops there"),
        ("post_mortem", "DEBUGGER", "stops there"),
    ),
    "bdb": (("Bdb.set_trace", "DEBUGGER", "stops there"),),
    "subprocess": (("Popen.__init__", "FILE_IO", "starts a process"),),
    "torch.profiler.profiler": tuple(
        (f"{name}.{method}", "TORCH_STATE", "starts or stops a profiler")
        for name in ("profile", "_KinetoProfile")
        for method in ("__init__", "start", "stop", "step")
    ),
    "torch.autograd.profiler": tuple(
        (f"profile.{method}", "TORCH_STATE", "starts or stops a profiler")
        for method in ("__init__", "__enter__", "__exit__")
    ),
    "torch._dynamo.decorators": (
        ("graph_break", "GRAPH_BREAK", ""),
        ("skip_frame", "SKIP_FRAME", ""),
        ("step_unsupported", "STEP", ""),
    ),
}

_known: set[str] = set()


def _refuse(module: str) -> None:
    _known.add(module)
    for path, reason, why in _REFUSED[module]:
        found: Any = sys.modules[module]
        for name in path.split("."):
            found = getattr(found, name, None)
        if found is not None:
            _engine.refuse(found, f"{module}.{path}", reason, why)


def add_later() -> None:
    """Tells the engine about parts of torch; a function of `_torch`, once torch is attached."""


def register() -> None:
    """Tells the engine about modules that were imported since it was last told. Called before each
    trace: code that a trace has to import ends it."""
    for module in _REFUSED:
        if module not in _known and module in sys.modules:
            _refuse(module)
    if "random" in sys.modules and "random" not in _known:
        _known.add("random")
        below = getattr(sys.modules["random"].Random, "_randbelow_with_getrandbits", None)
        if below is not None:
            _engine.know_random(below)
    if "torch._dynamo" in sys.modules and "ids" not in _known:
        _known.add("ids")
        _register_torch()
    add_later()


def _private() -> Any:
    """`stator._versions.private`. Before a trace begins nothing is imported by a statement: the
    program may have put a function of its own in the place of `__import__`."""
    return importlib.import_module("stator._versions").private


def _register_torch() -> None:
    private = _private()
    _engine.mark_ids(private.allowed_ids(), private.disallowed_ids(), private.nonstrict_ids())
    _engine.mark_substitutes(private.substituted_ids(), private.substitute)
    _engine.mark_strict_at(*private.strict_breaks)
    _engine.mark_disabler(private.late_disabler)
    _engine.skip_code(private.disable_wrapper, _BELOW)
    if private.compiles_operator is not None:
        _engine.skip_code(private.compiles_operator.__code__, _BELOW)
    _engine.skip_code(private.skip_wrapper, _NEXT)


# -- functions that only log --

_logging = False  # whether some are listed


def _keys(functions: Any) -> set[tuple[int, int]]:
    return {
        (id(f.__func__), id(f.__self__)) if isinstance(f, types.MethodType) else (id(f), 0)
        for f in functions
    }


def note_logging() -> None:
    """Tells the engine which functions torch's settings list, before a trace begins."""
    global _logging
    if "torch._dynamo.config" not in sys.modules:
        return
    ignored, later = _private().logging_functions()
    if ignored or later or _logging:
        _logging = bool(ignored or later)
        _engine.mark_logging(_keys(ignored), _keys(later))
