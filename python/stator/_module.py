"""Compiled `nn.Module`s: torch's own wrapper class, over a call compiled by Stator."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from torch.nn import Module

from stator import _compile, _engine, _origins, _wrapper
from stator._versions import private

_get_tracing_state = private.get_tracing_state
_hooks = private.module_globals  # where the hooks for all modules are found


def _is_torch_s(function: Any, name: str) -> bool:
    """Whether this is the function that torch itself defines in nn.Module."""
    home = Module.register_parameter.__code__.co_filename
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename == home and code.co_name == name


# What a call goes through before `forward`; None if someone had replaced it before we came.
_call = Module.__call__ if _is_torch_s(Module.__call__, "_wrapped_call_impl") else None
_call_impl = Module._call_impl if _is_torch_s(Module._call_impl, "_call_impl") else None


# Compiled with a module as `self`: all that a call looks up on its way is looked up in the trace,
# and guarded.
def _whole_call(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self(*args, **kwargs)


def _whole_call_impl(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self._call_impl(*args, **kwargs)


def _is_plain(module: Module) -> bool:
    """Whether nothing but `forward` takes part in Module._call_impl: its own condition, and that
    it is still the one, found in the usual way."""
    cls, own = type(module), module.__dict__
    return not (
        cls._call_impl is not _call_impl or "_call_impl" in own or "forward" in own
        or cls.__getattribute__ is not object.__getattribute__
        or own.get("_forward_hooks", own) or own.get("_forward_pre_hooks", own)
        or own.get("_backward_hooks", own) or own.get("_backward_pre_hooks", own)
        or _hooks["_global_forward_hooks"] or _hooks["_global_forward_pre_hooks"]
        or _hooks["_global_backward_hooks"] or _hooks["_global_backward_pre_hooks"]
        or _get_tracing_state()
    )  # fmt: skip


def _call_forward(module: Module, wrap_callable: Callable[[Any], Any]) -> Any:
    return _forwarding(module, wrap_callable)[0]


def _forwarding(module: Module, wrap_callable: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """As in Dynamo, where nothing comes in between, `forward` itself is the compiled function: its
    parameters are the names of the graph's inputs. What to call; what that calls if nothing comes
    in between, and the function that it is compiled of."""
    whole = wrap_callable(_whole_call)
    forward = getattr(type(module), "forward", None)
    compiled = wrap_callable(forward) if type(forward) is types.FunctionType else None

    def call(*args: Any, **kwargs: Any) -> Any:
        cls = type(module)
        if (
            compiled is not None
            and cls.__call__ is _call
            and cls.forward is forward
            and module._compiled_call_impl is None
            and _is_plain(module)
        ):
            return compiled(module, *args, **kwargs)
        return whole(module, *args, **kwargs)

    return call, compiled, forward


def _call_hooked(module: Module, wrap_callable: Callable[[Any], Any]) -> Any:
    """What `Module.compile` keeps: hooks are a part of it."""
    compiled = wrap_callable(_call_impl)
    whole = wrap_callable(_whole_call_impl)

    def call(*args: Any, **kwargs: Any) -> Any:
        if type(module)._call_impl is _call_impl and "_call_impl" not in module.__dict__:
            return compiled(module, *args, **kwargs)
        return whole(module, *args, **kwargs)

    return call


def compile_call(function: Any, wrap_callable: Callable[[Any], Any]) -> Any:
    """A bound method of a module, compiled."""
    called = getattr(function, "__func__", None)
    if called is None or called not in (_call, _call_impl):
        return wrap_callable(function)
    make = _call_forward if called is _call else _call_hooked
    made = make(function.__self__, wrap_callable)
    _compile.label(made, function)
    return made


# -- the wrapper --


def _without_global_hooks(method: Any) -> Any:
    """A method of nn.Module that sees none of the hooks for all modules."""
    if type(method) is not types.FunctionType:
        return method
    names = [name for name in method.__globals__ if name.startswith("_global_")]
    scope = {**method.__globals__, **{name: {} for name in names}}
    return types.FunctionType(
        method.__code__, scope, method.__name__, method.__defaults__, method.__closure__
    )


def _frame_around(fn: Module) -> Any:  # the name is Dynamo's: L['fn']
    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner


class CompiledModule(_wrapper.EarlyModule):
    """torch's wrapper, whose call is the module's call and nothing more: hooks for all modules run
    once, for the module. Hooks on the wrapper itself run around that."""

    _is_full_backward_hook = None  # the wrapper's own: what its class has is not set on the module

    def _initialize(self) -> None:
        module, wrap_callable = self._orig_mod, self.dynamo_ctx.wrap
        if private.is_called_whole(module.forward):
            self.forward = self.dynamo_ctx(_frame_around(module))
            behind: tuple[Any, ...] = None, None, None
        else:
            self.forward, compiled, forward = _forwarding(module, wrap_callable)
            behind = module, compiled, forward
        if behind[0] is None or behind[1] is not None:
            self.__dict__["_stator_shortcut"] = _engine.shortcut(self.forward, *behind)
        if hasattr(module, "_initialize_hook"):
            self._forward = self.forward
            self.forward = self._call_lazy_check

    # What the class's slot does where the shortcut does not fit (src/compile/module.c); and what a
    # trace reads.
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (
            _wrapper.parent.__call__ is not _their_call
            or self._compiled_call_impl is not None
            or _get_tracing_state()
        ):
            return super().__call__(*args, **kwargs)
        if _has_own_hooks(self):
            return _without_global_hooks(Module._call_impl)(self, *args, **kwargs)
        if private.has_global_hook():
            with private.in_optimized_module():
                return self.forward(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def _get_backward_hooks(self) -> Any:
        return _without_global_hooks(Module._get_backward_hooks)(self)

    def _get_backward_pre_hooks(self) -> Any:
        return _without_global_hooks(Module._get_backward_pre_hooks)(self)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        state.pop("_stator_shortcut", None)
        return state


_OWN_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

_own_call = CompiledModule.__call__
_their_call = _wrapper.parent.__call__


def _parent_changed() -> None:
    global _their_call
    _their_call = _wrapper.parent.__call__
    _call_in_c()  # Python has filled the slots of the class anew


def _call_in_c() -> None:
    """Calls of wrappers begin in C. Python takes that back when somebody sets the class's
    `__call__`."""
    if _call is None or _call_impl is None or CompiledModule.__call__ is not _own_call:
        return
    _engine.call_modules(
        CompiledModule,
        _wrapper.parent,
        _their_call,
        _call,
        _call_impl,
        _hooks,
        _OWN_HOOKS,
        private.global_hook_names(),
    )


_wrapper.adopt(CompiledModule, _parent_changed)


def _has_own_hooks(module: Module) -> bool:
    return any(module.__dict__[name] for name in _OWN_HOOKS)


def innermost(module: Module) -> Module:
    """The module in wrappers that do nothing else than to compile its call."""
    while isinstance(module, _wrapper.parent) and not _has_own_hooks(module):
        module = module._orig_mod
    return module


def wrap(module: Module, context: Callable[[Any], Any]) -> CompiledModule:
    """The module in the class that users know from `torch.compile`; attributes are the module's.
    `context` compiles a callable, and is pickled with the module."""
    if type(module) is private.ScriptModule:
        raise RuntimeError(
            "torch.compile does not support compiling torch.jit.script or torch.jit.freeze models "
            "directly: compile the module that they were made from"
        )
    _origins.note(module)
    _call_in_c()
    made = CompiledModule(module, context)
    made._torchdynamo_orig_callable = module.forward
    made._torchdynamo_wrapper_id = id(made)
    return made
