"""Python functions that are traced in the place of torch's own, and do the same."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stator import _higher
from stator._rows import Named, Row
from stator._versions import private


class _Range(torch.profiler.record_function):
    """`record_function` marks time for a profiler. While none is on, it does nothing.

    `run_callbacks_on_exit` is off meanwhile, so that torch's own `__exit__` does nothing either.
    """

    def begin(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record = None
        for name in private.range_notes or ():
            setattr(self, name, None)

    def enter(self) -> Any:
        if private.profiler_enabled():
            return _enter_range(self)
        self.run_callbacks_on_exit = False
        return self

    def exit(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        if self.run_callbacks_on_exit:  # entered for real
            return _exit_range(self, exc_type, exc_value, traceback)
        self.run_callbacks_on_exit = True
        return None


_RANGES: tuple[tuple[Any, Row], ...] = (
    (torch.profiler.record_function.__init__, ("instead", _Range.begin)),
    (torch.profiler.record_function.__enter__, ("instead", _Range.enter)),
    (torch.profiler.record_function.__exit__, ("instead", _Range.exit)),
)
if private.range_notes is None:  # nobody knows what to set
    _RANGES = tuple((function, ("state", "torch.profiler.record_function"))
                    for function, _ in _RANGES)  # fmt: skip


def _enter_range(self: Any) -> Any:
    return torch.profiler.record_function.__enter__(self)  # type: ignore[no-untyped-call]


def _exit_range(self: Any, *raised: Any) -> Any:
    return torch.profiler.record_function.__exit__(self, *raised)


# `value` is a tensor: torch's functions take its number, which a trace does not know. Their kernels
# multiply by it first, and round as the product of tensors does; but for types that are short.


def _is_factor(value: Any, *tensors: Any) -> bool:
    long = value.dtype == torch.float32 or value.dtype == torch.float64
    same = all(tensor.dtype == value.dtype for tensor in tensors)
    return long and same and value.dim() == 0 and not value.requires_grad


def _addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcdiv(value * tensor1, tensor2)
    return self.addcdiv(tensor1, tensor2, value=value.item())


def _addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcdiv_(value * tensor1, tensor2)
    return self.addcdiv_(tensor1, tensor2, value=value.item())


def _addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcmul(value * tensor1, tensor2)
    return self.addcmul(tensor1, tensor2, value=value.item())


def _addcmul_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcmul_(value * tensor1, tensor2)
    return self.addcmul_(tensor1, tensor2, value=value.item())


# Likewise of lists of tensors, where `scalars` is a tensor with a number for each.


def _are_factors(scalars: Any, *lists: Any) -> bool:
    if scalars.dim() != 1 or any(len(tensors) != scalars.shape[0] for tensors in lists):
        return False
    rows = zip(scalars.unbind(), *lists, strict=True)
    return all(_is_factor(value, *tensors) for value, *tensors in rows)


def _new_in_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    def scaled(self: Any, tensors1: Any, tensors2: Any, scalars: Any) -> Any:
        if _are_factors(scalars, self, tensors1, tensors2):
            return function(self, private.foreach_mul(tensors1, scalars.unbind()), tensors2)
        return _by_values(function, self, tensors1, tensors2, scalars)

    return scaled


def _written_in_lists(function: Callable[..., Any], write: Any) -> Callable[..., Any]:
    """One by one, since a tensor that is written to may be read for the next."""

    def scaled(self: Any, tensors1: Any, tensors2: Any, scalars: Any) -> Any:
        if not _are_factors(scalars, self, tensors1, tensors2):
            return _by_values(function, self, tensors1, tensors2, scalars)
        for tensor, one, other, factor in zip(self, tensors1, tensors2, scalars, strict=True):
            write(tensor, factor * one, other)
        return self

    return scaled


def _by_values(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


# What is asked for is so already, or known; else the method itself is called, and breaks.


def _requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    if self.requires_grad == requires_grad:
        return self
    return _set_requires_grad(self, requires_grad)


def _set_requires_grad(self: Any, requires_grad: bool) -> Any:
    return self.requires_grad_(requires_grad)


def _find_type(name: str) -> Any:
    return getattr(torch, name.removeprefix("torch."), name)


_TYPES = {
    dtype: torch.empty(0, dtype=dtype, device="cpu").type()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                  torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool,
                  torch.complex64, torch.complex128)
}  # fmt: skip


_DTYPES_BY_NAME = {name: dtype for dtype, name in _TYPES.items()}  # and torch's old classes
_DTYPES_BY_NAME |= {_find_type(name): dtype for dtype, name in _TYPES.items()}


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **others: Any) -> Any:
    if dtype is None and self.device.type == "cpu" and self.dtype in _TYPES:
        return _TYPES[self.dtype]
    if dtype in _DTYPES_BY_NAME and self.device.type == "cpu":
        dtype = _DTYPES_BY_NAME[dtype]
    if isinstance(dtype, torch.dtype) and not others:
        return self.to(dtype, non_blocking=non_blocking)
    return _type_of(self, dtype, non_blocking, others)


def _type_of(self: Any, dtype: Any, non_blocking: bool, others: Any) -> Any:
    return self.type(dtype, non_blocking, **others)


def _new(self: Any, *args: Any, device: Any = None) -> Any:
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
    if device is None and all(type(size) is int for size in sizes):
        return self.new_empty(sizes or (0,))
    return _new_of(self, args, device)


def _new_of(self: Any, args: Any, device: Any) -> Any:
    return self.new(*args) if device is None else self.new(*args, device=device)


def _group_tensors(lists: Any, with_indices: bool = False) -> Any:
    """Of one device and type. (Torch gives groups in no order, and has errors of its own.)"""
    if not lists or not lists[0]:
        return _group_by_torch(lists, with_indices)
    kinds = []
    for tensors in lists:
        if len(tensors) != len(lists[0]):
            return _group_by_torch(lists, with_indices)
        for tensor in tensors:
            kinds.append(None if tensor is None else (tensor.device, tensor.dtype))
            if kinds[-1] is None or kinds[-1] != kinds[0]:
                return _group_by_torch(lists, with_indices)
    indices = list(range(len(lists[0]))) if with_indices else []
    return {kinds[0]: ([list(tensors) for tensors in lists], indices)}


def _group_by_torch(lists: Any, with_indices: bool) -> Any:
    return private.group_tensors(lists, with_indices)


# Outside of a trace it marks the tensor; inside, the sizes have their values from here on.


def _mark_static(t: Any, index: Any = None) -> None:
    sizes = t.size()
    dims = range(len(sizes)) if index is None else [index] if isinstance(index, int) else index
    for dim in dims:
        hash(sizes[dim])  # which needs the value


# It is deprecated, and warns; compiled graphs do not.


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    private.check(i >= 0, message)
    if max is not None:
        private.check(i <= max, message)


# Without the warning that the first of them logs.


# A distribution looks at its class to see which of its parameters are lazy. What is found there is
# made anew by each look, by a constructor of C's; nobody keeps it, so one will do.


def _seen_on_class(wrapped: Any) -> Any:
    return private.lazy_property_of_class(wrapped)


setattr(_seen_on_class, private.CONSTANT_MARK, True)


def _get_lazily(self: Any, instance: Any, obj_type: Any = None) -> Any:
    if instance is None:
        return _seen_on_class(self.wrapped)
    with torch.enable_grad():
        value = self.wrapped(instance)
    setattr(instance, self.wrapped.__name__, value)
    return value


def _all_true(valid: Any, error_message: str) -> Any:
    """A tensor, in the place of its bool: the check of a distribution's arguments is one of those
    that a graph makes by itself, `if not …: raise …`."""
    return private.is_all_true(valid)


def _is_fx_tracing() -> bool:
    return private.fx_tracing()


def _is_fx_symbolic_tracing() -> bool:
    return False  # the other condition is that nothing is compiled


# A function that torch.jit.script has compiled: the function that was given to it, if the arguments
# are what it takes. (The compiled one converts or refuses others.) The compiled one raises other
# exceptions, so a call that raises is done again without a trace.

_SCRIPTED = (torch.Tensor, int, float, bool)


def _takes(written: Any, name: str, value: Any) -> bool:
    kind = written.get(name, torch.Tensor)
    if kind is torch.Tensor:
        return isinstance(value, torch.Tensor)
    return kind in _SCRIPTED and type(value) is kind


def _script(self: Any, *args: Any, **named: Any) -> Any:
    program = getattr(self, "_torchdynamo_inline", None)
    traced = not hasattr(self, "__name__")  # by torch.jit.trace: other calls may take another way
    if program is None or traced or named:
        return _call_script(self, args, named)
    names = program.__code__.co_varnames
    for i, value in enumerate(args):
        if not _takes(program.__annotations__, names[i], value):
            return _call_script(self, args, named)
    torch.compiler.is_compiling()
    return program(*args)


def _call_script(self: Any, args: Any, named: Any) -> Any:
    return self(*args, **named)


def _tolist(self: Any) -> Any:
    if self.dim() == 0:
        return self.item()
    return [_tolist(row) for row in self.unbind()]


@contextlib.contextmanager
def _annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """What fx notes at nodes. Torch's makes its dict by a call of `dict[str, Any]`."""
    meta = private.fx_traceback.current_meta
    before = dict(meta["custom"]) if "custom" in meta else None
    meta.setdefault("custom", {}).update(annotation_dict)
    _say(_higher.recipe(meta["custom"]))
    try:
        yield
    finally:
        if before is None:
            del meta["custom"]
        else:
            meta["custom"] = before
        _say(_higher.recipe(before))


def _say(recipe: Any) -> None:
    """Says it of the nodes that are recorded from now on. Behind a break, where `_annotate` runs
    for real, there are none; the next trace asks torch what is said."""


def call_region(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`nested_compile_region` is a word to the compiler alone: a region is part of the graph that
    it lies in, where `_layers` finds it by this frame. Options are about a backend of its own."""
    if getattr(function, "__marked_compile_region_config__", None) is not None:
        return _call_region_with(function)
    return function(*args, **kwargs)


def _call_region_with(function: Any) -> Any:
    raise NotImplementedError


ROWS: tuple[tuple[Any, Row], ...] = (
    (private.fx_traceback.annotate, ("instead", _annotate)),
    (_say, ("annotated", None)),
    (private.TensorBase.tolist, ("listed", _tolist)),
    *_RANGES,
    (_enter_range, ("state", "torch.profiler.record_function, and a profiler is on")),
    (_exit_range, ("state", "torch.profiler.record_function, entered before")),
    (torch.addcdiv, ("scaled", (None, _addcdiv))),
    (torch.addcmul, ("scaled", (None, _addcmul))),
    (private.TensorBase.addcdiv, ("scaled", ("addcdiv", _addcdiv))),
    (private.TensorBase.addcdiv_, ("scaled", ("addcdiv_", _addcdiv_))),
    (private.TensorBase.addcmul, ("scaled", ("addcmul", _addcmul))),
    (private.TensorBase.addcmul_, ("scaled", ("addcmul_", _addcmul_))),
    (private.foreach_addcdiv, ("scaled_lists", _new_in_lists(private.foreach_addcdiv))),
    (
        private.foreach_addcdiv_,
        ("scaled_lists", _written_in_lists(private.foreach_addcdiv_, private.TensorBase.addcdiv_)),
    ),
    (private.foreach_addcmul, ("scaled_lists", _new_in_lists(private.foreach_addcmul))),
    (
        private.foreach_addcmul_,
        ("scaled_lists", _written_in_lists(private.foreach_addcmul_, private.TensorBase.addcmul_)),
    ),
    (_by_values, ("refused", "torch's function with a tensor of factors")),
    (private.TensorBase.requires_grad_, ("instead", _requires_grad_)),
    (_set_requires_grad, ("requires", "requires_grad_")),
    (private.TensorBase.type, ("instead", _type)),
    (_type_of, ("refused", "torch's type")),
    (private.TensorBase.new, ("instead", _new)),
    (_new_of, ("refused", "torch's new")),
    (private.group_tensors, ("instead", _group_tensors)),
    (_group_by_torch, ("refused", "torch's group_tensors")),
    (private.check_is_size, ("instead", _check_is_size)),
    (private.is_fx_tracing, ("instead", _is_fx_tracing)),
    (private.call_region, ("instead", call_region)),
    (private.lazy_property.__get__, ("instead", _get_lazily)),
    *([(private.all_true, ("instead", _all_true))] if private.all_true else []),
    (_call_region_with, ("refused", ("HIGHER_ORDER", "a nested region with options"))),
    (_call_script, ("refused", "a function that torch.jit.script has compiled")),
    (private.is_fx_symbolic_tracing, ("instead", _is_fx_symbolic_tracing)),
)

# With their paths, which they do not know themselves.
NAMED: tuple[Named, ...] = (
    (
        "torch.fx.traceback.annotate.__wrapped__",
        inspect.unwrap(private.fx_traceback.annotate),
        ("instead", inspect.unwrap(_annotate)),
    ),
    ("torch._C.ScriptFunction.__call__.__func__", private.call_script, ("instead", _script)),
)


def later_rows() -> Iterator[tuple[Any, Row]]:
    """Of functions in modules that torch imports when somebody asks."""
    if private.has(private.SHAPES):
        yield private.expect_true, ("expected", None)
        yield private.guard_or_false, ("presumed", False)
        yield private.guard_or_true, ("presumed", True)
        yield private.statically_known_true, ("known", None)
        yield private.has_static_value, ("static_value", None)
        yield private.guard_size_oblivious, ("oblivious", None)
    if private.has(private.DYNAMO):
        yield private.mark_static, ("instead", _mark_static)
