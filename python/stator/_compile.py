"""`stator.compile`: functions, methods and modules to compiled callables."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypedDict, TypeVar, Unpack, overload

from stator import _dims, _engine, _marks, _policy
from stator._policy import RECOMPILE_LIMIT, Policy, Unsupported

__all__ = ["Context", "Unsupported", "compile", "install", "reset", "uninstall"]


# Threads may compile for the first time at once.
_attaching = threading.RLock()


def _attach() -> None:
    if "torch" not in sys.modules:
        return
    with _attaching:
        if _engine.torch_attached():
            return
        collects = gc.isenabled()
        gc.disable()  # a collection of all that torch's import has made would take longer
        try:
            from stator import _versions

            _versions.attach()
        finally:
            if collects:
                gc.enable()


def _resolve(backend: str | Callable[..., Any]) -> Callable[..., Any] | None:
    if backend == "eager":
        return None
    from stator import _backends

    return _backends.resolve(backend)


def _recursion(backend: str | Callable[..., Any]) -> int:
    from stator import _backends

    return _backends.recursion(backend)


def make_compiler(
    backend: str | Callable[..., Any],
    policy: Policy,
    keep_empty: bool = False,
    around: Callable[[Any], Any] | None = None,
) -> _engine.Compiler:
    """Settings and caches, as the engine keeps them. `around` wraps what is its backend."""
    _attach()
    with _attaching:
        _marks.register()
    resolved = _resolve(backend)
    settings: dict[str, Any] = {
        "backend": resolved if resolved is None or around is None else around(resolved),
        "error": Unsupported,
        "fullgraph": policy.fullgraph,
        "keep_empty": keep_empty,
        "limit": RECOMPILE_LIMIT,
        "recursion": 0 if resolved is None else _recursion(backend),
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
        recompile_limit: int | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "backend": backend,
            "fullgraph": fullgraph,
            "dynamic": dynamic,
            "keep_empty": keep_empty,
            "recompile_limit": recompile_limit,
        }
        policy = Policy(fullgraph, dynamic, recompile_limit)
        self.compiler: Any = make_compiler(backend, policy, keep_empty)

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


# -- what people call --

# Options of torch.compile that Stator has nothing for. Given, each is an error.
_REFUSED_OPTIONS = ("dynamic_shapes", "shapes_spec")


def _refuse(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in _REFUSED_OPTIONS:
            raise TypeError(f"compile() got an unexpected keyword argument {name!r}")
        if value is not None:
            raise NotImplementedError(
                f"Stator does not support the option {name}={value!r} of torch.compile: leave it "
                "out, or mark single sizes with torch._dynamo.mark_dynamic"
            )


def _default_backend() -> Any:
    if "torch._dynamo" not in sys.modules:
        return "inductor"
    from stator._versions import private

    return private.default_backend()


def _settled_backend(
    backend: str | Callable[..., Any] | None,
    mode: str | None,
    options: dict[str, Any] | None,
    dynamic: bool | None,
    name: str | None,
) -> Any:
    """The backend with its mode and options, as torch.compile makes it."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend is None:
        backend = _default_backend()
    others = dict(options or {})
    if others.pop("guard_filter_fn", None) is not None:
        _dims.say_once("guard_filter_fn", _policy.NO_FILTER)
    use_aoti = others.pop("use_aoti", False)
    if (mode is None or mode == "default") and not (others or name or use_aoti):
        return backend
    _attach()
    from stator._versions import private

    return private.backend_with(backend, mode, others, dynamic, name, use_aoti)


def _is_exporting() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_exporting()


_P = ParamSpec("_P")
_R = TypeVar("_R")


class Options(TypedDict, total=False):
    """What can be said about a compilation; `stator.compile` explains it."""

    fullgraph: bool
    dynamic: bool | None
    backend: str | Callable[..., Any] | None
    mode: str | None
    options: dict[str, Any] | None
    name: str | None
    disable: bool
    recompile_limit: int | None
    isolate_recompiles: bool
    _keep_empty: bool  # entries without a graph are kept, too: for the tests and the demo


@overload
def compile(model: Callable[_P, _R], **options: Unpack[Options]) -> Callable[_P, _R]: ...
@overload
def compile(
    model: None = None, **options: Unpack[Options]
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def compile(  # the name is torch's
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    _keep_empty: bool = False,
    **others: Any,
) -> Any:
    """A drop-in for `torch.compile`: `model` is a function, a method or an `nn.Module`; without it
    the result is a decorator.

    `fullgraph`: whatever cannot be traced is an `Unsupported` error, which says why, where, and
    what to do. Without it the function is compiled in pieces.
    `dynamic`: True leaves sizes and ints open from the start, so that one entry serves whatever
    they are; False makes an entry for each; None leaves open what was seen to change.
    `backend`: a name ("eager" replays the graph in C; others are torch's own, "inductor" is the
    default) or a callable that takes a `torch.fx.GraphModule` and example inputs and returns a
    callable.
    `mode`, `options`: the backend's, as in torch.compile; only one of them. `guard_filter_fn`
    among the options drops no guard, and says so.
    `name`: the region's, for inductor's own tools.
    `disable`: returns `model` as it is.
    `recompile_limit`: how many entries a function may have (8). `isolate_recompiles`: nothing to
    do, each `stator.compile` has its own entries.
    """
    if model is None:

        def decorate(model: Any) -> Any:
            if model is None:
                raise RuntimeError("Model can't be None")
            return compile(model, **settings)

        settings: dict[str, Any] = {
            "fullgraph": fullgraph,
            "dynamic": dynamic,
            "backend": backend,
            "mode": mode,
            "options": options,
            "name": name,
            "disable": disable,
            "recompile_limit": recompile_limit,
            "isolate_recompiles": isolate_recompiles,
            "_keep_empty": _keep_empty,
            **others,
        }
        return decorate
    _refuse(others)
    settled = _settled_backend(backend, mode, options, dynamic, name)
    if disable:
        return model
    if _is_exporting():
        warnings.warn("stator.compile is ignored inside a torch.export region", stacklevel=2)
        return model
    return Context(
        settled,
        fullgraph=fullgraph,
        dynamic=dynamic,
        keep_empty=_keep_empty,
        recompile_limit=recompile_limit,
    )(model)


def reset() -> None:
    """Forgets every compiled entry, of all functions."""
    _engine.reset()
    _policy.forget()


def install() -> None:
    """From now on `torch.compile`, and all of torch that compiles, does it by Stator. Twice is
    once."""
    from stator import _install

    _install.install()


def uninstall() -> None:
    """Torch is as it was. What was compiled with Stator stays so."""
    if "torch._dynamo" in sys.modules:
        from stator import _install

        _install.uninstall()
