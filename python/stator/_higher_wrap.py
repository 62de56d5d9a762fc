"""Operators that call one function as it is, perhaps with some state of torch around it: wrap,
wrap_with_set_grad_enabled, wrap_with_autocast, strict_mode, hints_wrapper.

The functions here are interpreted by a trace in place of torch's, as those in `_higher`.
"""

from typing import Any

import torch

from stator import _engine
from stator._higher import (
    _asked_for_gradients,
    _bare,
    _body,
    _call,
    _close,
    _effects,
    _for_real,
    _open,
    _replayed,
    _writes,
)
from stator._higher_flow import _alike, _call_body, _needs, _refused, _shares, tree_flatten
from stator._rows import Named, Row
from stator._versions import private

_STEM = ("wrap_body",)

# -- wrap and its kin: what the function does, they do --


def _wrap(func: Any, *args: Any, **kwargs: Any) -> Any:
    result = _body(func, args, kwargs)
    target = _run if _replayed() else private.wrap
    return _call(result, target, _STEM, "<body 0>", "<lifted 0>")


def _run(body: _engine.Graph, *values: Any) -> Any:
    """What a replay calls."""
    return body(*values)


def _wrap_with_grad(enable_grad: Any, wrapped_func: Any, *args: Any, **kwargs: Any) -> Any:
    switched = torch.is_grad_enabled() != enable_grad
    if switched:
        private.set_grad_enabled(enable_grad)
    result = _body(wrapped_func, args, kwargs)
    if switched:
        private.set_grad_enabled(not enable_grad)
    target = _run_with_grad if _replayed() else private.wrap_with_set_grad_enabled
    return _call(result, target, _STEM, enable_grad, "<body 0>", "<lifted 0>")


def _run_with_grad(enabled: bool, body: _engine.Graph, *values: Any) -> Any:
    with torch.set_grad_enabled(enabled):
        return body(*values)


def _wrap_with_autocast(
    device_type: Any, dtype: Any, enabled: Any, cache_enabled: Any, wrapped_func: Any, *args: Any,
    **kwargs: Any,
) -> Any:  # fmt: skip
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        result = _body(wrapped_func, args, kwargs)
    return _call(
        result,
        _run_with_autocast if _replayed() else private.wrap_with_autocast,
        _STEM, device_type, dtype, enabled, cache_enabled, "<body 0>", "<lifted 0>",
    )  # fmt: skip


def _run_with_autocast(
    device_type: str, dtype: Any, enabled: bool, cache_enabled: Any, body: _engine.Graph,
    *values: Any,
) -> Any:  # fmt: skip
    with torch.autocast(device_type, dtype, enabled, cache_enabled):
        return body(*values)


# -- operators whose functions only compute, and that are not differentiated --


def _pure_body(function: Any, args: Any) -> Any:
    if _refused(function):
        return _for_real(function)
    result = _body(function, args, {})
    tensors = [leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor)]
    if _shares(*tensors) or _writes() or _needs():
        return _for_real(function)
    return result


def _strict_mode(callable: Any, operands: Any) -> Any:
    result = _pure_body(callable, operands)
    return _call(result, private.strict_mode_op, ("strict_mode_body",), "<body 0>", ("<lifted 0>",))


def _hints_wrapper(body_fn: Any, args: Any, kwargs: Any, hints: Any) -> Any:
    if kwargs or type(hints) is not dict:  # torch refuses it
        return _for_real(body_fn)
    result = _pure_body(body_fn, args)
    return _call(
        result, private.hints_wrapper, ("hints_wrapper_body",), "<body 0>", ("<lifted 0>",), {},
        hints=hints,
    )  # fmt: skip


# -- hooks on tensors of a graph that is compiled as a whole --


def _gradient(tensor: Any, name: str | None = None) -> Any:
    """A tensor that the open body is given: like the gradient of this one, by whose name it goes
    unless it is given another."""
    raise NotImplementedError


def _hooked(target: Any, stems: tuple[str, ...], tensor: Any, *args: Any) -> Any:
    """Records the node. From then on the tensor is what the node gives. Gives a handle."""
    raise NotImplementedError


def _register_hook(tensor: Any, hook: Any) -> Any:
    """A backward pass runs without gradients of its own, and a backend traces it once."""
    if _refused(hook):
        return _for_real(hook)
    grad = torch.is_grad_enabled()
    if grad:
        private.set_grad_enabled(False)
    _open(hook)
    given = _gradient(tensor)
    result = _call_body(hook, (given,))
    if not isinstance(result, torch.Tensor) or _asked_for_gradients():
        return _for_real(hook)
    _close(result)
    _bare()
    if grad:
        private.set_grad_enabled(True)
    if _writes() or _effects() or not _alike(result, given):
        return _for_real(hook)
    return _hooked(private.register_hook_op, ("hook_body",), tensor, "<body 0>", "<lifted 0>")


HOOK = ("register_hook", _register_hook) if private.register_hook_op is not None else None

OWN_FILE = _wrap.__code__.co_filename  # as _higher's

ROWS: tuple[tuple[Any, Row], ...] = (
    (_gradient, ("body_gradient", None)),
    (_hooked, ("body_hooked", None)),
    (private.wrap, ("higher", ("wrap", _wrap))),
    (private.wrap_with_set_grad_enabled, ("higher", ("wrap", _wrap_with_grad))),
    (private.wrap_with_autocast, ("higher", ("wrap", _wrap_with_autocast))),
    (private.strict_mode_op, ("higher", ("strict_mode", _strict_mode))),
    (private.hints_wrapper, ("higher", ("hints_wrapper", _hints_wrapper))),
)

# With its path, which it does not know itself.
NAMED: tuple[Named, ...] = (
    (
        "torch._higher_order_ops.strict_mode.strict_mode",
        private.strict_mode,
        ("higher", ("strict_mode", _strict_mode)),
    ),
)
