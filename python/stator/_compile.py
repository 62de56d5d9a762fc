"""`stator.compile` and `stator.explain`: functions, methods and modules to compiled callables."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from stator import _engine

RECOMPILE_LIMIT = 8  # entries that one code object may have under one `compile`


class Unsupported(RuntimeError):
    """Something cannot be traced, and `fullgraph=True` asked to be told."""


def _attach() -> None:
    if "torch" in sys.modules and not _engine.torch_attached():
        from stator import _torch

        _torch.attach()


def _resolve(backend: str | Callable[..., Any]) -> Callable[..., Any] | None:
    if backend == "eager":
        return None
    from stator import _backends

    return _backends.resolve(backend)


def _compiler(backend: str | Callable[..., Any], fullgraph: bool, keep_empty: bool) -> Any:
    _attach()
    return _engine.compiler(
        backend=_resolve(backend),
        error=Unsupported,
        fullgraph=fullgraph,
        keep_empty=keep_empty,
        limit=RECOMPILE_LIMIT,
    )


def _wrap_function(function: types.FunctionType, compiler: Any) -> Any:
    compiled = _engine.compiled(function, compiler)
    for name in functools.WRAPPER_ASSIGNMENTS:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(compiled, name, getattr(function, name))
    compiled.__dict__.update(function.__dict__)
    return compiled


def _call_of(target: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    return call


def _wrap(target: Any, compiler: Any) -> Any:
    if isinstance(target, _engine.Compiled):
        target = target.__wrapped__
    if isinstance(target, types.FunctionType):
        return _wrap_function(target, compiler)
    if isinstance(target, types.MethodType):
        inner = _wrap(target.__func__, compiler)
        return types.MethodType(inner, target.__self__)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.nn.Module):
        from stator import _module

        return _module.wrap(target, lambda function: _wrap(function, compiler))
    if not callable(target):
        raise TypeError(f"stator.compile takes a callable, not {type(target).__name__}")
    return _wrap_function(_call_of(target), compiler)  # type: ignore[arg-type]


def compile(  # the name is torch's
    f: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    disable: bool = False,
    _keep_empty: bool = False,
) -> Any:
    """A drop-in for `torch.compile`: `f` is a function, a method or an `nn.Module`.

    `backend` is a name ("eager" replays the graph in C; others are torch's own) or a callable
    that takes a `torch.fx.GraphModule` and example inputs and returns a callable. With `fullgraph`
    whatever cannot be traced is an `Unsupported` error, which says why, where, and what to do;
    without it the function then runs uncompiled.
    """
    if f is None:
        return lambda g: compile(
            g, backend=backend, fullgraph=fullgraph, disable=disable, _keep_empty=_keep_empty
        )
    if disable:
        return f
    return _wrap(f, _compiler(backend, fullgraph, _keep_empty))


def reset() -> None:
    """Forgets every compiled entry."""
    _engine.reset()
