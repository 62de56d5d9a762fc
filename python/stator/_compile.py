"""`stator.compile`: functions, methods and modules to compiled callables."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from stator import _engine, _marks, _policy
from stator._policy import RECOMPILE_LIMIT, Policy, Unsupported

__all__ = ["Context", "Unsupported", "compile", "reset"]


def _attach() -> None:
    if "torch" in sys.modules and not _engine.torch_attached():
        from stator import _versions

        _versions.attach()


def _resolve(backend: str | Callable[..., Any]) -> Callable[..., Any] | None:
    if backend == "eager":
        return None
    from stator import _backends

    return _backends.resolve(backend)


def make_compiler(
    backend: str | Callable[..., Any], policy: Policy, keep_empty: bool = False
) -> _engine.Compiler:
    """Settings and caches, as the engine keeps them."""
    _attach()
    _marks.register()
    settings: dict[str, Any] = {
        "backend": _resolve(backend),
        "error": Unsupported,
        "fullgraph": policy.fullgraph,
        "keep_empty": keep_empty,
        "limit": RECOMPILE_LIMIT,
    }
    if hasattr(_engine, "set_chooser"):  # else an engine that asks nobody
        settings["policy"] = policy
    return _engine.compiler(**settings)


def _compiler(backend: str | Callable[..., Any], fullgraph: bool, keep_empty: bool) -> Any:
    return make_compiler(backend, Policy(fullgraph), keep_empty)


# -- callables --


def _wrap_function(function: types.FunctionType, compiler: Any) -> Any:
    compiled = _engine.compiled(function, compiler)
    for name in functools.WRAPPER_ASSIGNMENTS:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(compiled, name, getattr(function, name))
    compiled.__dict__.update(function.__dict__)
    return compiled


def _call_of(fn: Callable[..., Any]) -> Callable[..., Any]:  # the name is Dynamo's: L['fn']
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


def label(compiled: Any, target: Any) -> None:
    """The attributes by which torch finds what was compiled."""
    labels = getattr(compiled, "__func__", compiled).__dict__
    labels["_torchdynamo_orig_callable"] = target
    labels["_torchdynamo_inline"] = target
    labels["_torchdynamo_wrapper_id"] = id(compiled)


def _wrap_callable(target: Any, compiler: Any) -> Any:
    if type(target) is types.FunctionType:  # a compiled one says that it is, too
        compiled = _wrap_function(target, compiler)
    elif isinstance(target, types.MethodType):
        inner = _wrap_callable(target.__func__, compiler)
        compiled = types.MethodType(inner, target.__self__)
    elif callable(target):
        compiled = _wrap_function(_call_of(target), compiler)  # type: ignore[arg-type]
    else:
        raise TypeError(f"stator.compile takes a callable, not {type(target).__name__}")
    label(compiled, target)
    return compiled


def _is_module(target: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(target, torch.nn.Module)


def innermost(target: Any) -> Any:
    """What is compiled where something is compiled again."""
    if _is_module(target):
        from stator import _module

        return _module.innermost(target)
    return _marks.innermost(target)


class Context:
    """One `compile`: called with anything that can be compiled, gives it compiled."""

    def __init__(
        self,
        backend: str | Callable[..., Any] = "inductor",
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        keep_empty: bool = False,
    ) -> None:
        self._settings: dict[str, Any] = {
            "backend": backend,
            "fullgraph": fullgraph,
            "dynamic": dynamic,
            "keep_empty": keep_empty,
        }
        self.compiler: Any = make_compiler(backend, Policy(fullgraph, dynamic), keep_empty)

    def wrap(self, target: Any) -> Any:
        return _wrap_callable(target, self.compiler)

    def __call__(self, target: Any) -> Any:
        target = innermost(target)
        if isinstance(target, _engine.Compiled):
            target = target.__wrapped__
        if _is_module(target):
            from stator import _module

            return _module.wrap(target, self)
        if _is_module(getattr(target, "__self__", None)):
            from stator import _module

            return _module.compile_call(target, self.wrap)
        return self.wrap(target)

    def __reduce__(self) -> Any:
        return _again, (type(self), self._settings)

    def __deepcopy__(self, memo: Any) -> Context:
        return self


def _again(kind: type[Context], settings: dict[str, Any]) -> Context:
    return kind(**settings)


def _wrap(target: Any, compiler: Any) -> Any:
    context = Context.__new__(Context)
    context.compiler = compiler
    return context(target)


def compile(  # the name is torch's
    f: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    disable: bool = False,
    _keep_empty: bool = False,
) -> Any:
    """A drop-in for `torch.compile`: `f` is a function, a method or an `nn.Module`.

    `backend` is a name ("eager" replays the graph in C; others are torch's own) or a callable
    that takes a `torch.fx.GraphModule` and example inputs and returns a callable. With `fullgraph`
    whatever cannot be traced is an `Unsupported` error, which says why, where, and what to do;
    without it the function then runs uncompiled. `dynamic=True` leaves sizes and ints open from the
    start, so that one entry serves whatever they are; `False` makes an entry for each.
    """
    if f is None:
        return lambda g: compile(
            g,
            backend=backend,
            fullgraph=fullgraph,
            dynamic=dynamic,
            disable=disable,
            _keep_empty=_keep_empty,
        )
    if disable:
        return f
    return Context(backend, fullgraph=fullgraph, dynamic=dynamic, keep_empty=_keep_empty)(f)


def reset() -> None:
    """Forgets every compiled entry."""
    _engine.reset()
    _policy.forget()
