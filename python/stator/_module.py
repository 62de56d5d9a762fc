"""Compiled `nn.Module`s: torch's own wrapper class, over a call compiled by Stator."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from stator._versions import private

_get_tracing_state = private.get_tracing_state


def _call_forward(module: torch.nn.Module, wrap_callable: Callable[[Any], Any]) -> Any:
    """As in Dynamo, where nothing comes in between, `forward` itself is the compiled function: its
    parameters are the names of the graph's inputs."""
    whole = wrap_callable(module.__call__)
    forward = getattr(type(module), "forward", None)
    if type(forward) is not types.FunctionType:
        return whole
    compiled = wrap_callable(forward)
    before, after, back_before, back_after = private.global_hooks

    def call(*args: Any, **kwargs: Any) -> Any:
        # The condition of Module._call_impl, and that `forward` is still the one.
        own = module.__dict__
        if (
            own["_forward_hooks"] or own["_forward_pre_hooks"]
            or own["_backward_hooks"] or own["_backward_pre_hooks"]
            or before or after or back_before or back_after
            or "forward" in own or type(module).forward is not forward
            or module._compiled_call_impl is not None
            or _get_tracing_state()
        ):  # fmt: skip
            return whole(*args, **kwargs)
        return compiled(module, *args, **kwargs)

    return call


def compile_call(function: Any, wrap_callable: Callable[[Any], Any]) -> Any:
    """What `OptimizedModule` asks for: the call of its module, compiled."""
    if getattr(function, "__func__", None) is torch.nn.Module.__call__:
        return _call_forward(function.__self__, wrap_callable)
    return wrap_callable(function)


def wrap(module: torch.nn.Module, context: Callable[[Any], Any]) -> private.OptimizedModule:
    """The module in the class that users know from `torch.compile`; attributes are the module's.
    `context` compiles a callable, and is pickled with the module."""
    if type(module) is private.ScriptModule:
        raise RuntimeError(
            "torch.compile does not support compiling torch.jit.script or torch.jit.freeze models "
            "directly: compile the module that they were made from"
        )
    made = private.OptimizedModule(module, context)  # type: ignore[arg-type]
    made._torchdynamo_orig_callable = module.forward
    made._torchdynamo_wrapper_id = id(made)
    return made
