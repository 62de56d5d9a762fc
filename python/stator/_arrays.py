"""NumPy's functions as functions of tensors.

A graph holds an array as a tensor over the same memory. The dtype of a result is always asked of
NumPy itself (`resolve_dtypes`, `result_type`). A function that cannot give NumPy's answer raises:
the trace then breaks before the program's call, and NumPy runs.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64",
          "complex64", "complex128")  # fmt: skip
TO_NUMPY = {getattr(torch, name): np.dtype(name) for name in _NAMES}
TO_TORCH = {dtype: own for own, dtype in TO_NUMPY.items()}

Tensor = torch.Tensor
Function = Callable[..., Tensor]


class Unlike(Exception):
    """Torch would give another answer than NumPy."""


def refuse_if(odd: object) -> None:
    if odd:
        raise Unlike


# --- dtypes ---


def _own(dtype: Any) -> torch.dtype:
    """The torch dtype of whatever a program gives NumPy for a dtype."""
    if isinstance(dtype, torch.dtype):
        return dtype
    found: torch.dtype | None = TO_TORCH.get(np.dtype(dtype))
    if found is None:
        raise Unlike
    return found


def _numpys(dtype: Any) -> np.dtype[Any]:
    return TO_NUMPY[dtype] if isinstance(dtype, torch.dtype) else np.dtype(dtype)


def _is_number(x: object) -> bool:
    return isinstance(x, (bool, int, float, complex, torch.SymInt, torch.SymFloat))


def _kind(x: Any) -> Any:
    """What decides a dtype: that of a tensor, or the class of a Python number."""
    if isinstance(x, Tensor):
        return TO_NUMPY[x.dtype]
    if isinstance(x, bool):
        return np.dtype(bool)
    if isinstance(x, (int, torch.SymInt)):
        return int
    if isinstance(x, (float, torch.SymFloat)):
        return float
    if isinstance(x, complex):
        return complex
    raise Unlike


@functools.lru_cache(maxsize=4096)
def _loops(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[torch.dtype, ...]:
    return tuple(map(_own, ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))))


_SAMPLES = {int: 0, float: 0.0, complex: 0j}


@functools.lru_cache(maxsize=4096)
def _joint_of(kinds: tuple[Any, ...]) -> torch.dtype:
    return _own(np.result_type(*(_SAMPLES.get(kind, kind) for kind in kinds)))


def _joint(*values: Any) -> torch.dtype:
    return _joint_of(tuple(map(_kind, values)))


def _number(x: Any, dtype: torch.dtype) -> Tensor:
    if isinstance(x, int) and not isinstance(x, bool) and dtype in _INTEGERS:
        least = torch.iinfo(dtype)
        refuse_if(not least.min <= x <= least.max)
    return torch.full((), x, dtype=dtype, device="cpu")


_INTEGERS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def _cast(x: Any, dtype: torch.dtype) -> Tensor:
    return x.to(dtype) if isinstance(x, Tensor) else _number(x, dtype)


def _convert(x: Tensor, dtype: torch.dtype) -> Tensor:
    """As a store or an astype() converts: what C leaves open, or NumPy warns about, is refused."""
    refuse_if(x.is_complex() and not dtype.is_complex and dtype is not torch.bool)
    refuse_if(x.dtype.is_floating_point and dtype is torch.uint8)
    return x.to(dtype)


def _fresh(result: Tensor, *given: Any) -> Tensor:
    """A result is no argument, even where torch had nothing to do."""
    return result.clone() if any(result is x for x in given) else result


def _view(result: Tensor, of: Tensor) -> Tensor:
    return result.view(result.shape) if result is of else result


def _plainly(*values: Any) -> None:
    """Only tensors that lie row by row: NumPy would lay the result of others out in its own way."""
    for x in values:
        refuse_if(isinstance(x, Tensor) and not x.is_contiguous())


def _lie_alike(*values: Any) -> None:
    """Only tensors that lie alike, or all row by row: else NumPy chooses how the result lies."""
    tensors = [x for x in values if isinstance(x, Tensor) and x.dim() > 0]
    if all(x.is_contiguous() for x in tensors):
        return
    first = tensors[0]
    refuse_if(any(x.shape != first.shape or x.stride() != first.stride() for x in tensors))


# --- elementwise ---


def _sign(x: Tensor) -> Tensor:
    refuse_if(x.is_complex())
    return torch.where(x.isnan(), x, x.sign()) if x.dtype.is_floating_point else x.sign()


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    r = torch.remainder(a, b)
    if not r.dtype.is_floating_point:
        return r
    return torch.where(r == 0, torch.copysign(torch.zeros_like(r), b), r)


def _power(a: Tensor, b: Tensor) -> Tensor:
    refuse_if(a.is_complex())
    return torch.pow(a, b)


def _reciprocal(x: Tensor) -> Tensor:
    refuse_if(not x.dtype.is_floating_point)
    return torch.reciprocal(x)


def _floats(function: Function) -> Function:
    def run(*x: Tensor) -> Any:
        refuse_if(any(not one.dtype.is_floating_point for one in x))
        return function(*x)

    return run


ELEMENTWISE: dict[str, Function] = {
    "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.true_divide,
    "negative": torch.neg, "positive": torch.clone, "absolute": torch.abs, "fabs": torch.abs,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "arcsin": torch.asin,
    "arccos": torch.acos, "arctan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "arcsinh": torch.asinh, "arccosh": torch.acosh, "arctanh": torch.atanh,
    "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log,
    "log2": torch.log2, "log10": torch.log10, "log1p": torch.log1p, "sqrt": torch.sqrt,
    "square": torch.square, "reciprocal": _reciprocal, "maximum": torch.maximum,
    "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin, "floor": torch.floor,
    "ceil": torch.ceil, "trunc": torch.trunc, "rint": torch.round, "sign": _sign,
    "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite,
    "signbit": torch.signbit, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor, "logical_not": torch.logical_not, "equal": torch.eq,
    "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
    "greater_equal": torch.ge, "bitwise_and": torch.bitwise_and, "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor, "invert": torch.bitwise_not, "power": _power,
    "float_power": _power, "arctan2": _floats(torch.atan2), "hypot": _floats(torch.hypot),
    "copysign": _floats(torch.copysign), "nextafter": _floats(torch.nextafter),
    "deg2rad": _floats(torch.deg2rad), "rad2deg": _floats(torch.rad2deg),
    "radians": _floats(torch.deg2rad), "degrees": _floats(torch.rad2deg),
    "logaddexp": _floats(torch.logaddexp), "logaddexp2": _floats(torch.logaddexp2),
    "remainder": _remainder, "fmod": torch.fmod, "floor_divide": torch.floor_divide,
    "gcd": torch.gcd, "lcm": torch.lcm, "conjugate": torch.conj_physical,
    "left_shift": torch.bitwise_left_shift, "right_shift": torch.bitwise_right_shift,
}  # fmt: skip


def _whole_divisor(a: Any, b: Any) -> bool:
    """0 is a warning of NumPy's and an error of torch's; INT_MIN / -1 ends the process."""
    return isinstance(b, int) and b not in (0, -1)


def _small_shift(a: Any, b: Any) -> bool:
    return isinstance(a, Tensor) and isinstance(b, int) and 0 <= b < torch.iinfo(a.dtype).bits


def _whole_exponent(a: Any, b: Any) -> bool:
    return isinstance(b, int) and b >= 0


# What the operands of loops over integers have to be.
_IN_INTEGERS: dict[str, Callable[..., bool]] = {
    "remainder": _whole_divisor,
    "fmod": _whole_divisor,
    "floor_divide": _whole_divisor,
    "power": _whole_exponent,
    "left_shift": _small_shift,
    "right_shift": _small_shift,
}


def _run_ufunc(name: str, ufunc: np.ufunc, function: Function, args: tuple[Any, ...]) -> Tensor:
    loops = _loops(ufunc, tuple(map(_kind, args)))
    _lie_alike(*args)
    check = _IN_INTEGERS.get(name)
    refuse_if(check and loops[0] in _INTEGERS and not check(*args))
    result = function(*map(_cast, args, loops))
    return _fresh(result.to(loops[-1]), *args)


def make_ufunc(name: str, ufunc: np.ufunc, function: Function) -> Function:
    def wrapped(*args: Any) -> Tensor:
        refuse_if(len(args) != ufunc.nin)
        return _run_ufunc(name, ufunc, function, args)

    return wrapped


def power_by_operator(power: Function) -> Function:
    """`a ** b`. Of bools NumPy gives the square for b = 2, in int8, and the power for other b."""

    def wrapped(a: Any, b: Any) -> Tensor:
        refuse_if(isinstance(a, Tensor) and a.dtype is torch.bool)
        return power(a, b)

    return wrapped


def in_place(function: Function) -> Function:
    """`a += b`: the result must have the shape of `a`, and a dtype of its kind."""

    def wrapped(a: Tensor, b: Any) -> Tensor:
        result = function(a, b)
        refuse_if(result.shape != a.shape)
        refuse_if(not np.can_cast(TO_NUMPY[result.dtype], TO_NUMPY[a.dtype], "same_kind"))
        return a.copy_(result)

    return wrapped


# --- axes ---


def _axis(axis: Any, dims: int) -> int:
    place = operator.index(axis)
    refuse_if(not -dims <= place < dims)
    return place % dims


def _reduced(a: Tensor, axis: Any) -> tuple[int, ...]:
    """The axes that go; how several that stay lie is plain only if the tensor lies row by row."""
    axes = _axes(axis, a.dim())
    if a.dim() - len(axes) > 1:
        _plainly(a)
    return axes


def _axes(axis: Any, dims: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(dims))
    axes = tuple(_axis(one, dims) for one in (axis if isinstance(axis, tuple) else (axis,)))
    refuse_if(len(set(axes)) != len(axes) or not axes)
    return axes


# --- reductions ---


def _sum_dtype(a: Tensor, dtype: Any) -> torch.dtype:
    if dtype is not None:
        return _own(dtype)
    refuse_if(a.dtype is torch.uint8)  # NumPy gives uint64
    return torch.int64 if a.dtype in _INTEGERS or a.dtype is torch.bool else a.dtype


def _float_dtype(a: Tensor, dtype: Any) -> torch.dtype:
    if dtype is not None:
        return _own(dtype)
    inexact = a.dtype.is_floating_point or a.dtype.is_complex
    return a.dtype if inexact else torch.float64


def sum_of(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None,
         keepdims: bool = False) -> Tensor:  # fmt: skip
    refuse_if(out is not None)
    a, axes = _fresh(_convert(a, _sum_dtype(a, dtype)), a), _reduced(a, axis)
    return a.sum(axes, keepdim=keepdims) if axes else a


def prod(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None,
          keepdims: bool = False) -> Tensor:  # fmt: skip
    refuse_if(out is not None)
    a, axes = _fresh(_convert(a, _sum_dtype(a, dtype)), a), _reduced(a, axis)
    for one in sorted(axes, reverse=True):
        a = a.prod(one, keepdim=keepdims)
    return a


def mean(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None,
          keepdims: bool = False) -> Tensor:  # fmt: skip
    refuse_if(out is not None)
    own = _float_dtype(a, dtype)
    refuse_if(not (own.is_floating_point or own.is_complex))
    a, axes = _fresh(_convert(a, own), a), _reduced(a, axis)
    refuse_if(axes and math.prod(a.shape[one] for one in axes) == 0)  # NumPy warns
    return a.mean(axes, keepdim=keepdims) if axes else a


def _spread(function: Function, a: Tensor, axis: Any, dtype: Any, out: None, ddof: Any,
            keepdims: bool) -> Tensor:  # fmt: skip
    own = _float_dtype(a, dtype)
    refuse_if(out is not None or not own.is_floating_point or a.is_complex())
    axes = _reduced(a, axis)
    count = math.prod(a.shape[one] for one in axes)
    refuse_if(not axes or count - ddof <= 0)
    return function(a.to(own), axes, correction=ddof, keepdim=keepdims)


def var(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
         keepdims: bool = False) -> Tensor:  # fmt: skip
    return _spread(torch.var, a, axis, dtype, out, ddof, keepdims)


def std(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
         keepdims: bool = False) -> Tensor:  # fmt: skip
    return _spread(torch.std, a, axis, dtype, out, ddof, keepdims)


def _most(function: Function, a: Tensor, axis: Any, out: None, keepdims: bool) -> Tensor:
    axes = _reduced(a, axis)
    refuse_if(out is not None or a.is_complex() or a.numel() == 0)
    return function(a, axes, keepdim=keepdims) if axes else a.clone()


def max_of(a: Tensor, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    return _most(torch.amax, a, axis, out, keepdims)


def min_of(a: Tensor, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    return _most(torch.amin, a, axis, out, keepdims)


def ptp(a: Tensor, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    refuse_if(a.dtype is torch.bool)
    return max_of(a, axis, out, keepdims) - min_of(a, axis, out, keepdims)


def _place(function: Function, a: Tensor, axis: Any, out: None, keepdims: bool) -> Tensor:
    refuse_if(out is not None or a.is_complex() or a.numel() == 0 or (axis is None and keepdims))
    if a.dtype is torch.bool:
        a = a.to(torch.uint8)
    if axis is None:
        return function(a.reshape(-1), 0)
    (dim,) = _reduced(a, _axis(axis, a.dim()))
    return function(a, dim, keepdim=keepdims)


def argmax(a: Tensor, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Tensor:
    return _place(torch.argmax, a, axis, out, keepdims)


def argmin(a: Tensor, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Tensor:
    return _place(torch.argmin, a, axis, out, keepdims)


def _truths(function: Function, a: Tensor, axis: Any, out: None, keepdims: bool) -> Tensor:
    refuse_if(out is not None)
    axes = _reduced(a, axis)
    truth = a != 0
    return function(truth, axes, keepdim=keepdims) if axes else truth


def any_of(a: Tensor, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    return _truths(torch.any, a, axis, out, keepdims)


def all_of(a: Tensor, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor:
    return _truths(torch.all, a, axis, out, keepdims)


def _running(function: Function, a: Tensor, axis: Any, dtype: Any, out: None) -> Tensor:
    refuse_if(out is not None)
    a = _convert(a, _sum_dtype(a, dtype))
    if axis is None:
        return function(a.reshape(-1), 0)
    _plainly(a)
    return function(a, _axis(axis, a.dim()))


def cumsum(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None) -> Tensor:
    return _running(torch.cumsum, a, axis, dtype, out)


def cumprod(a: Tensor, axis: Any = None, dtype: Any = None, out: None = None) -> Tensor:
    return _running(torch.cumprod, a, axis, dtype, out)


# --- shapes ---


def _shape(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    one = shape[0] if len(shape) == 1 else shape
    return tuple(one) if isinstance(one, (tuple, list)) else (one,)


def reshape(a: Tensor, *shape: Any, order: str = "C") -> Tensor:
    refuse_if(order != "C" or not shape)
    return _view(a.reshape(_shape(shape)), a)


def reshape_to(a: Tensor, shape: Any, order: str = "C") -> Tensor:
    return reshape(a, shape, order=order)


def ravel(a: Tensor, order: str = "C") -> Tensor:
    refuse_if(order != "C")
    return a.contiguous().view(-1)


def flatten(a: Tensor, order: str = "C") -> Tensor:
    refuse_if(order != "C")
    return a.clone(memory_format=torch.contiguous_format).view(-1)


def transpose(a: Tensor, *axes: Any) -> Tensor:
    if not axes or axes == (None,):
        return a.permute(tuple(range(a.dim() - 1, -1, -1)))
    return a.permute(_axes(_shape(axes), a.dim()))


def swapaxes(a: Tensor, first: Any, second: Any) -> Tensor:
    return a.transpose(_axis(first, a.dim()), _axis(second, a.dim()))


def moveaxis(a: Tensor, source: Any, destination: Any) -> Tensor:
    return a.movedim(_axes(source, a.dim()), _axes(destination, a.dim()))


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    if axis is None:
        return _view(a.squeeze(), a)
    axes = _axes(axis, a.dim())
    refuse_if(any(a.shape[one] != 1 for one in axes))
    return _view(a.squeeze(axes), a)


def expand_dims(a: Tensor, axis: Any) -> Tensor:
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    dims = a.dim() + len(axes)
    for one in sorted(_axes(tuple(axes), dims)):
        a = a.unsqueeze(one)
    return a


def _alike(values: Sequence[Any]) -> list[Tensor]:
    refuse_if(not values or not all(isinstance(x, Tensor) for x in values))
    _plainly(*values)
    own = _joint(*values)
    return [x.to(own) for x in values]


_broadcast_shapes: Callable[..., Any] = torch.broadcast_shapes
_at_least_1d: Function = torch.atleast_1d
_at_least_2d: Function = torch.atleast_2d


def concatenate(arrays: Sequence[Any], axis: Any = 0) -> Tensor:
    items = _alike(arrays)
    if axis is None:
        return torch.cat([x.reshape(-1) for x in items])
    refuse_if(any(x.dim() != items[0].dim() or x.dim() == 0 for x in items))
    return torch.cat(items, _axis(axis, items[0].dim()))


def stack(arrays: Sequence[Any], axis: Any = 0) -> Tensor:
    items = _alike(arrays)
    return torch.stack(items, _axis(axis, items[0].dim() + 1))


def vstack(arrays: Sequence[Any]) -> Tensor:
    return torch.cat([_at_least_2d(x) for x in _alike(arrays)])


def hstack(arrays: Sequence[Any]) -> Tensor:
    items = [_at_least_1d(x) for x in _alike(arrays)]
    return torch.cat(items, 0 if items[0].dim() == 1 else 1)


def roll(a: Tensor, shift: Any, axis: Any = None) -> Tensor:
    _plainly(a)
    refuse_if(not isinstance(shift, int))
    return a.roll(shift) if axis is None else a.roll(shift, _axis(axis, a.dim()))


def _turn_by_half(a: Tensor, axes: Any, sign: int) -> Tensor:
    _plainly(a)
    dims = _axes(axes, a.dim())
    refuse_if(not dims)
    return a.roll(tuple(sign * (a.shape[one] // 2) for one in dims), dims)


def fftshift(x: Tensor, axes: Any = None) -> Tensor:
    return _turn_by_half(x, axes, 1)


def ifftshift(x: Tensor, axes: Any = None) -> Tensor:
    return _turn_by_half(x, axes, -1)


def tile(a: Tensor, reps: Any) -> Tensor:
    _plainly(a)
    return _fresh(torch.tile(a, _shape((reps,))), a)


def repeat_of(a: Tensor, repeats: Any, axis: Any = None) -> Tensor:
    refuse_if(not isinstance(repeats, int) or repeats < 0)
    _plainly(a)
    if axis is None:
        return a.reshape(-1).repeat_interleave(repeats)
    return a.repeat_interleave(repeats, _axis(axis, a.dim()))


def _triangle(function: Function, a: Tensor, k: int) -> Tensor:
    _plainly(a)
    refuse_if(a.dim() < 2)
    return function(a, k)


def tril(a: Tensor, k: int = 0) -> Tensor:
    return _triangle(torch.tril, a, k)


def triu(a: Tensor, k: int = 0) -> Tensor:
    return _triangle(torch.triu, a, k)


def diff(a: Tensor, n: int = 1, axis: Any = -1) -> Tensor:
    refuse_if(n != 1 or a.dtype is torch.bool)
    _plainly(a)
    return torch.diff(a, dim=_axis(axis, a.dim()))


def sort(a: Tensor, axis: Any = -1) -> Tensor:
    refuse_if(a.is_complex() or axis is None)
    _plainly(a)
    return a.sort(_axis(axis, a.dim())).values


def take_along_axis(arr: Tensor, indices: Any, axis: Any = -1) -> Tensor:
    """Negative indices count from the end, which torch does not know."""
    refuse_if(not isinstance(indices, Tensor) or indices.dtype not in _INTEGERS)
    if axis is None:
        refuse_if(indices.dim() != 1)
        arr, axis = arr.reshape(-1), 0
    _plainly(arr, indices)
    refuse_if(arr.dim() != indices.dim())
    dim, at = _axis(axis, arr.dim()), indices.to(torch.int64)
    at = torch.where(at < 0, at + arr.shape[dim], at)
    others = [(*x.shape[:dim], 1, *x.shape[dim + 1 :]) for x in (arr, at)]
    shape = list(_broadcast_shapes(*others))
    wide, at_wide = (
        x.expand([x.shape[dim] if i == dim else n for i, n in enumerate(shape)]) for x in (arr, at)
    )
    return wide.gather(dim, at_wide)  # take_along_dim does not look whether an index fits


def real(a: Tensor) -> Tensor:
    return _view(a.real, a) if a.is_complex() else a


def imag(a: Tensor) -> Tensor:
    refuse_if(not a.is_complex())  # else NumPy gives an array that nobody may write to
    return a.imag


# --- making arrays ---


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> tuple[Tensor, ...]:  # fmt: skip
    refuse_if(not copy or not xi or not all(isinstance(x, Tensor) for x in xi))
    refuse_if(indexing not in ("xy", "ij"))
    lines = [x.reshape(-1) for x in xi]
    places = list(range(len(lines)))
    if indexing == "xy" and len(places) > 1:
        places[:2] = [1, 0]
    shape = [lines[one].shape[0] for one in places]
    placed = zip(lines, places, strict=True)
    return tuple(_spread_along(line, at, shape, sparse) for line, at in placed)


def _spread_along(line: Tensor, at: int, shape: list[int], sparse: bool) -> Tensor:
    wide = line.reshape([-1 if dim == at else 1 for dim in range(len(shape))])
    return (wide if sparse else wide.expand(shape)).clone(memory_format=torch.contiguous_format)


def _like(make: Function, a: Tensor, dtype: Any) -> Tensor:
    _plainly(a)
    return make(a, dtype=a.dtype if dtype is None else _own(dtype))


def zeros_like(a: Tensor, dtype: Any = None) -> Tensor:
    return _like(torch.zeros_like, a, dtype)


def ones_like(a: Tensor, dtype: Any = None) -> Tensor:
    return _like(torch.ones_like, a, dtype)


def empty_like(a: Tensor, dtype: Any = None) -> Tensor:
    return _like(torch.empty_like, a, dtype)


def full_like(a: Tensor, fill_value: Any, dtype: Any = None) -> Tensor:
    _plainly(a)
    own = a.dtype if dtype is None else _own(dtype)
    refuse_if(not _is_number(fill_value) or (own in _INTEGERS and not isinstance(fill_value, int)))
    _number(fill_value, own)
    return torch.full_like(a, fill_value, dtype=own)


def astype(a: Tensor, dtype: Any, *, copy: bool = True) -> Tensor:
    result = _convert(a, _own(dtype))
    return _fresh(result, a) if copy else result


def copy(a: Tensor, order: str = "C") -> Tensor:
    refuse_if(order not in ("C", "K"))
    return a.clone(memory_format=torch.contiguous_format if order == "C" else torch.preserve_format)


def copy_as_it_lies(a: Tensor, order: str = "K") -> Tensor:
    return copy(a, order)


def asarray(a: Any, dtype: Any = None) -> Tensor:
    """The argument itself, where there is nothing to do."""
    if isinstance(a, Tensor):
        return a if dtype is None else _convert(a, _own(dtype))
    return array(a, dtype)


def array(a: Any, dtype: Any = None) -> Tensor:
    own = None if dtype is None else _own(dtype)
    if isinstance(a, Tensor):
        return _fresh(a if own is None else _convert(a, own), a)
    refuse_if(not isinstance(a, (list, tuple)))
    items = [x if isinstance(x, Tensor) else _number(x, _own(type(x))) for x in a]
    joint = _joint(*items) if own is None else own
    return torch.stack([_convert(x, joint) for x in items])


def round_of(a: Tensor, decimals: Any = 0, out: None = None) -> Tensor:
    refuse_if(decimals != 0 or out is not None or a.is_complex() or a.dtype is torch.bool)
    return _fresh(torch.round(a) if a.dtype.is_floating_point else a, a)


def constant(values: list[Any], dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """An array whose content the trace knew."""
    return torch.tensor(values, dtype=dtype, device="cpu").reshape(shape)


# --- several arrays ---


def where(condition: Any, *choices: Any) -> Tensor:
    refuse_if(len(choices) != 2 or not isinstance(condition, Tensor))
    _plainly(condition, *choices)
    own = _joint(*choices)
    x, y = (_cast(choice, own) for choice in choices)
    return torch.where(condition != 0, x, y)


def clip(a: Tensor, low: Any = None, high: Any = None) -> Tensor:
    refuse_if(low is None and high is None)
    if low is not None:
        a = _run_ufunc("maximum", np.maximum, torch.maximum, (a, low))
    return a if high is None else _run_ufunc("minimum", np.minimum, torch.minimum, (a, high))


def matmul(a: Any, b: Any) -> Tensor:
    refuse_if(not isinstance(a, Tensor) or not isinstance(b, Tensor))
    own = _joint(a, b)
    refuse_if(own is torch.bool or a.dim() == 0 or b.dim() == 0)
    return torch.matmul(a.to(own), b.to(own)).contiguous()


def dot(a: Any, b: Any) -> Tensor:
    refuse_if(not isinstance(a, Tensor) or not isinstance(b, Tensor) or b.dim() > 2)
    return matmul(a, b)


def outer(a: Any, b: Any) -> Tensor:
    refuse_if(not isinstance(a, Tensor) or not isinstance(b, Tensor))
    own = _joint(a, b)
    refuse_if(own is torch.bool)
    return torch.outer(a.to(own).reshape(-1), b.to(own).reshape(-1))


def einsum(subscripts: Any, *operands: Any) -> Tensor:
    refuse_if(not isinstance(subscripts, str) or len(operands) < 2)  # one: NumPy gives a view
    own = _joint(*operands)
    refuse_if(own is torch.bool)
    return torch.einsum(subscripts, *(x.to(own) for x in operands)).contiguous()


# --- linalg and fft ---

_vector_norm: Function = torch.linalg.vector_norm
_torch_inv: Function = torch.linalg.inv
_torch_det: Function = torch.linalg.det
_torch_solve: Function = torch.linalg.solve


def _inexact(a: Tensor) -> Tensor:
    own = _float_dtype(a, None)
    refuse_if(own is torch.float16)
    return a.to(own)


def norm(x: Tensor, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    refuse_if(ord is not None)
    axes = _reduced(x, axis)
    refuse_if(len(axes) > 2 and axis is not None)
    return _vector_norm(_inexact(x), dim=axes, keepdim=keepdims)


def inv(a: Tensor) -> Tensor:
    return _torch_inv(_inexact(a)).contiguous()


def det(a: Tensor) -> Tensor:
    return _torch_det(_inexact(a))


def solve(a: Tensor, b: Tensor) -> Tensor:
    refuse_if(not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.dim() != 2)
    own = _joint(_inexact(a), _inexact(b))
    return _torch_solve(a.to(own), b.to(own)).contiguous()


def make_fft(name: str) -> Function:
    function: Function = getattr(torch.fft, name)

    def wrapped(a: Tensor, n: Any = None, axis: Any = -1, norm: Any = None) -> Tensor:
        _plainly(a)
        return function(_inexact(a), n, _axis(axis, a.dim()), norm).contiguous()

    return wrapped


# --- subscripts ---


def _is_list(item: Any) -> bool:
    return isinstance(item, list) and all(type(x) is int for x in item)


def _index(item: Any) -> Any:
    """A part of a subscript as torch takes it in the same sense."""
    if item is None or item is Ellipsis or isinstance(item, torch.SymInt) or type(item) is int:
        return item
    if isinstance(item, slice):
        refuse_if(item.step is not None and not (isinstance(item.step, int) and item.step > 0))
        return item
    if _is_list(item):
        return torch.tensor(item, dtype=torch.int64, device="cpu")
    refuse_if(not isinstance(item, Tensor))
    refuse_if(item.dtype not in _INTEGERS and item.dtype is not torch.bool)
    return item if item.dtype is torch.bool else item.to(torch.int64)


def _is_whole(item: Any) -> bool:
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def _key(key: Any) -> tuple[Any, ...]:
    """At most one array, first, and nothing behind it that selects: else torch and NumPy differ."""
    items = tuple(map(_index, key if isinstance(key, tuple) else (key,)))
    arrays = [item for item in items if isinstance(item, Tensor)]
    others = [item for item in items if not isinstance(item, Tensor)]
    refuse_if(arrays and (len(arrays) > 1 or arrays[0] is not items[0] or arrays[0].dim() == 0))
    refuse_if(arrays and not all(map(_is_whole, others)))
    return items


def getitem(a: Tensor, key: Any) -> Tensor:
    items = _key(key)
    refuse_if(any(isinstance(item, Tensor) and item.dtype is torch.bool for item in items))
    if any(isinstance(item, Tensor) for item in items):
        _plainly(a)
    result = a[items]
    if result.dim() == 0 and Ellipsis not in [x for x in items if not isinstance(x, Tensor)]:
        return result.clone()  # a number, and no view
    return _view(result, a)


def setitem(a: Tensor, key: Any, value: Any) -> None:
    """The value may lie in the memory that is written to."""
    if isinstance(value, Tensor):
        value = _convert(value, a.dtype).clone()
    else:
        refuse_if(not _is_number(value))
        refuse_if(a.dtype in _INTEGERS and not isinstance(value, (int, torch.SymInt)))
        refuse_if(isinstance(value, complex) and not a.is_complex())
        value = _number(value, a.dtype)
    a[_key(key)] = value


def fill(a: Tensor, value: Any) -> None:
    setitem(a, Ellipsis, value)
