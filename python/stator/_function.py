"""An autograd.Function. Its forward and backward are traced to see whether they only compute; what
comes of that is thrown away, and torch's own `apply` becomes a node, or is called for real. For
backends that compile a graph as a whole see `_function_bodies`."""

import enum
import inspect
import types
from typing import Any

import torch

from stator._rows import Row
from stator._versions import private


class Context(torch.autograd.function.FunctionCtx):
    to_save: Any = ()

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    @property
    def saved_tensors(self) -> Any:
        return self.to_save


GIVEN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device,
          torch.layout, torch.memory_format)  # fmt: skip


def _is_given(value: Any) -> bool:
    """Whether an argument is one that nobody can change, or a tensor."""
    if type(value) is tuple or type(value) is torch.Size:
        return all(_is_given(item) for item in value)
    return type(value) in GIVEN or isinstance(value, torch.Tensor)


def _is_kept(value: Any) -> bool:
    """Whether an argument is one that the node can hold: the entry is good for this one alone."""
    return isinstance(value, enum.Enum | type | types.FunctionType | torch.nn.Module)


def _apart(args: Any) -> Any:
    """The arguments without those that the node holds, and where these stand."""
    kept = tuple([(i, value) for i, value in enumerate(args) if _is_kept(value)])
    return tuple([value for value in args if not _is_kept(value)]), kept


def run_forward(cls: Any, args: Any, kwargs: Any) -> Any:
    apart = cls.setup_context is not torch.autograd.Function.setup_context
    if apart:  # it gets the defaults, too
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    context = Context(
        tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in args)
    )
    if not apart:
        return context, cls.forward(context, *args, **kwargs)
    output = cls.forward(*args, **kwargs)
    cls.setup_context(context, args, output)
    return context, output


def _look_backward(cls: Any, context: Context, output: Any) -> None:
    outputs = output if isinstance(output, tuple) else (output,)
    gradients = [torch.empty_like(value) if isinstance(value, torch.Tensor) else None
                 for value in outputs]  # fmt: skip
    if cls.vjp is torch.autograd.Function.vjp:
        cls.backward(context, *gradients)
    else:
        cls.vjp(context, *gradients)


def _look_at(cls: Any, args: Any, kwargs: Any, backward: bool) -> None:
    before = torch.is_grad_enabled()
    private.set_grad_enabled(False)
    context, output = run_forward(cls, args, kwargs)
    if backward and before and any(context.needs_input_grad):
        _look_backward(cls, context, output)
    private.set_grad_enabled(before)


def _apply_as(cls: Any, args: Any, kwargs: Any, backward: bool) -> Any:
    try:
        others, kept = _apart(args)
        given = _is_given(others) and _is_given(tuple(kwargs.values()))
        if not given or getattr(cls, "boxed_grads_call", False):
            return _apply_for_real(cls, *args, **kwargs)
        _look_at(cls, args, kwargs, backward)
    except BaseException:  # torch's own is to be raised
        return _apply_for_real(cls, *args, **kwargs)
    return _applied(cls, kept, *others, **kwargs)


def _apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return _apply_as(cls, args, kwargs, False)


def _apply_whole(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return _apply_as(cls, args, kwargs, True)


def _applied(cls: Any, kept: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError  # the table's; a trace that breaks in here breaks before `apply`


def _apply_for_real(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return private.apply_of(cls)(*args, **kwargs)


def applier(cls: Any, kept: tuple[tuple[int, Any], ...]) -> Any:
    """A function of no module of torch's: fx would look for it there, by its name."""
    bound = private.apply_of(cls)

    def apply(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        for at, value in kept:
            given.insert(at, value)
        return bound(*given, **kwargs)

    return apply


def looked(cls: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError  # the table's: `apply` as one node, whoever compiles the graph


OWN_FILE = _apply.__code__.co_filename  # its variables name nothing in graphs

WAYS = (_apply, _apply_whole)
GLUE = (applier,)

ROWS: tuple[tuple[Any, Row], ...] = (
    (looked, ("function", WAYS)),
    (_applied, ("apply", None)),
    (_apply_for_real, ("refused", "an autograd.Function that raises, or gets more than values")),
)
