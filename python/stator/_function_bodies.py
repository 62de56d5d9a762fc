"""An autograd.Function in a graph that a backend compiles as a whole: its forward and its backward
are bodies of torch's operator `autograd_function_apply`.

The functions here are interpreted by a trace in place of `apply`, as those in `_higher`. What the
operator does otherwise than `apply` goes the way of `_function`, or breaks.
"""

from typing import Any

import torch

from stator._function import GIVEN, WAYS, Context, looked, run_forward
from stator._higher import _effects, _for_real, _leave, _open, _writes
from stator._higher_flow import _alike, _is_differentiable, _shares
from stator._higher_wrap import _gradient
from stator._rows import Row
from stator._versions import private

_STEMS = ("fwd_body", "bwd_body")
_WRITES = 1

# -- what the engine does --


def _lift(*args: Any) -> None:
    """The open body is given the tensors among these, in their order."""
    raise NotImplementedError


def _forget() -> None:
    """What the open body has recorded is thrown away."""
    raise NotImplementedError


def _close_backward(gradients: Any, args: Any, saved: Any) -> list[int]:
    """Ends the open body. Which of the values that it uses are among the saved tensors."""
    raise NotImplementedError


def _node(
    target: Any, stems: tuple[str, ...], tensors: Any, needs: Any, *args: Any, **kwargs: Any
) -> Any:
    """Records the node. What it gives are new tensors like these."""
    raise NotImplementedError


def _backward(cls: Any, context: Context, args: Any, outputs: Any) -> list[int]:
    """The row of `_trace_backward`."""
    raise NotImplementedError


# -- the backward --


def _summed(cls: Any, args: Any, gradients: Any) -> Any:
    """The operator is given each tensor once: the gradients of one tensor are added."""
    result: list[Any] = []
    for i, (arg, gradient) in enumerate(zip(args, gradients, strict=True)):
        before = None if gradient is None else next((j for j in range(i) if args[j] is arg), None)
        if before is not None and result[before] is not None:
            if not _alike(result[before], gradient):
                return _for_real(cls)
            result[before] = result[before] + gradient
        elif before is not None:
            result[before] = gradient
        result.append(gradient if before is None else None)
    return result


def _are_gradients(args: Any, gradients: Any) -> bool:
    """Whether autograd takes these: what it refuses it refuses in the backward pass."""
    if len(gradients) < len(args) or any(item is not None for item in gradients[len(args) :]):
        return False
    for arg, gradient in zip(args, gradients[: len(args)], strict=True):
        if gradient is None:
            continue
        if not isinstance(arg, torch.Tensor) or not isinstance(gradient, torch.Tensor):
            return False
        if gradient.shape != arg.shape:
            return False
    return True


def _names(function: Any, count: int) -> Any:
    """What the backward calls the gradients."""
    code = getattr(function, "__code__", None)
    names = () if code is None else code.co_varnames[1 : code.co_argcount]
    return names if len(names) == count else ("grad",) * count


def _trace_backward(cls: Any, context: Context, args: Any, outputs: Any) -> Any:
    _open(cls, context, args)
    function = cls.backward if cls.vjp is torch.autograd.Function.vjp else cls.vjp
    names = _names(function, len(outputs))
    given = [_gradient(value, name) if isinstance(value, torch.Tensor) else None
             for value, name in zip(outputs, names, strict=True)]  # fmt: skip
    private.set_grad_enabled(False)
    try:
        result = function(context, *given)
    except BaseException:  # autograd's is to be raised, in the backward pass
        return _for_real(cls)
    gradients = result if type(result) is tuple else (result,)
    if not _are_gradients(args, gradients):
        return _for_real(cls)
    summed = _summed(cls, args, gradients[: len(args)])
    private.set_grad_enabled(True)
    if _effects() & _WRITES and _writes():
        return _for_real(cls)
    return _close_backward(tuple(summed), args, tuple(context.to_save))


# -- the call --


def _is_refused(cls: Any) -> bool:
    """Autocast is on in the forward pass alone."""
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        return True
    return bool(getattr(cls, "boxed_grads_call", False))


def _needs_gradients(args: Any) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in args
    )


def _fits(context: Context, outputs: Any, tensors: Any) -> bool:
    """Whether the operator gives what `apply` does. It makes all gradients, and marks nothing as
    written; memory that is shared with what it was given is lost to AOTAutograd."""
    if getattr(context, "dirty_tensors", None) or not getattr(context, "materialize_grads", True):
        return False
    for value in outputs:
        if not isinstance(value, torch.Tensor) and type(value) not in GIVEN:
            return False
    return not _shares(*tensors) and not _writes()


def _forward(cls: Any, args: Any) -> Any:
    grad = torch.is_grad_enabled()
    if grad:
        private.set_grad_enabled(False)
    try:
        context, output = run_forward(cls, args, {})
    except BaseException:  # torch's own is to be raised
        return _for_real(cls)
    if grad:
        private.set_grad_enabled(True)
    return context, output


def _apply_bodies(cls: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs or _is_refused(cls):
        return _leave(looked(cls, *args, **kwargs))
    _open(cls, args)
    context, output = _forward(cls, args)
    outputs = output if type(output) is tuple else (output,)
    tensors = tuple(value for value in outputs if isinstance(value, torch.Tensor))
    if not _fits(context, outputs, tensors):
        _forget()
        return _leave(looked(cls, *args))
    if not _needs_gradients(args):  # it is a function as any other
        _forget()
        return _leave(_forward(cls, args)[1])
    _lift(*args)
    saved = _backward(cls, context, args, outputs)
    marked = getattr(context, "non_differentiable", ())
    constant = [any(value is other for other in marked) for value in tensors]
    needs = [_is_differentiable(tensors[i]) and not constant[i] for i in range(len(tensors))]
    made = _node(
        private.function_operator, _STEMS, tensors, tuple(needs),
        "<body 0>", "<body 1>", "<lifted 0>",
        non_differentiable_idx=[i for i in range(len(tensors)) if constant[i]],
        saved_for_backward_idx=saved,
    )  # fmt: skip
    if type(output) is not tuple:
        return made[0]
    rest = iter(made)
    return tuple([next(rest) if isinstance(value, torch.Tensor) else value for value in outputs])


OWN_FILE = _apply_bodies.__code__.co_filename  # as _higher's

_WAYS = (*WAYS, ("autograd_function", _apply_bodies)) if private.function_operator else WAYS

ROWS: tuple[tuple[Any, Row], ...] = (
    (private.function_apply, ("function", _WAYS)),
    (_lift, ("body_lift", None)),
    (_forget, ("body_forget", None)),
    (_close_backward, ("body_backward", None)),
    (_node, ("body_function", None)),
    (_backward, ("higher", ("autograd_backward", _trace_backward))),
)
