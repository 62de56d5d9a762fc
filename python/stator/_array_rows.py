"""The table of NumPy's callables: what a graph calls where the program called NumPy.

Where a graph is run operation by operation, on real tensors, NumPy itself runs on their memory: the
results are NumPy's to the last bit. A compiler, which traces the graph, and the trace itself, which
runs the graph on fakes, get the functions of tensors in `_arrays.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stator import _arrays as of
from stator._rows import words
from stator._versions import private

Tensor = torch.Tensor

# What a 0-d result is: a number of NumPy's, or an array.
NUMBER, ARRAY = True, False

_REDUCTIONS: dict[str, of.Function] = {
    "sum": of.sum_of,
    "prod": of.prod,
    "mean": of.mean,
    "std": of.std,
    "var": of.var,
    "max": of.max_of,
    "min": of.min_of,
    "amax": of.max_of,
    "amin": of.min_of,
    "argmax": of.argmax,
    "argmin": of.argmin,
    "any": of.any_of,
    "all": of.all_of,
    "cumsum": of.cumsum,
    "cumprod": of.cumprod,
    "ptp": of.ptp,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "reshape": (of.reshape_to, ARRAY),
    "ravel": (of.ravel, ARRAY),
    "transpose": (of.transpose, ARRAY),
    "swapaxes": (of.swapaxes, ARRAY),
    "moveaxis": (of.moveaxis, ARRAY),
    "squeeze": (of.squeeze, ARRAY),
    "expand_dims": (of.expand_dims, ARRAY),
    "concatenate": (of.concatenate, ARRAY),
    "stack": (of.stack, ARRAY),
    "vstack": (of.vstack, ARRAY),
    "hstack": (of.hstack, ARRAY),
    "roll": (of.roll, ARRAY),
    "tile": (of.tile, ARRAY),
    "repeat": (of.repeat_of, ARRAY),
    "take_along_axis": (of.take_along_axis, ARRAY),
    "tril": (of.tril, ARRAY),
    "triu": (of.triu, ARRAY),
    "diff": (of.diff, ARRAY),
    "sort": (of.sort, ARRAY),
    "zeros_like": (of.zeros_like, ARRAY),
    "ones_like": (of.ones_like, ARRAY),
    "empty_like": (of.empty_like, ARRAY),
    "full_like": (of.full_like, ARRAY),
    "copy": (of.copy_as_it_lies, ARRAY),
    "meshgrid": (of.meshgrid, ARRAY),
    "array": (of.array, ARRAY),
    "asarray": (of.asarray, ARRAY),
    "round": (of.round_of, NUMBER),
    "around": (of.round_of, NUMBER),
    "where": (of.where, ARRAY),
    "clip": (of.clip, NUMBER),
    "matmul": (of.matmul, NUMBER),
    "dot": (of.dot, NUMBER),
    "outer": (of.outer, ARRAY),
    "einsum": (of.einsum, NUMBER),
}
_METHODS: dict[str, tuple[of.Function, bool]] = {
    "reshape": (of.reshape, ARRAY),
    "ravel": (of.ravel, ARRAY),
    "flatten": (of.flatten, ARRAY),
    "transpose": (of.transpose, ARRAY),
    "swapaxes": (of.swapaxes, ARRAY),
    "squeeze": (of.squeeze, ARRAY),
    "astype": (of.astype, ARRAY),
    "copy": (of.copy, ARRAY),
    "round": (of.round_of, NUMBER),
    "clip": (of.clip, NUMBER),
    "dot": (of.dot, NUMBER),
    "repeat": (of.repeat_of, ARRAY),
}
_LINALG: dict[str, of.Function] = {"norm": of.norm, "inv": of.inv, "det": of.det, "solve": of.solve}
_FFT = ("fft", "ifft", "rfft", "irfft")
_SHIFTS: dict[str, of.Function] = {"fftshift": of.fftshift, "ifftshift": of.ifftshift}
# Functions that take a tensor for the array over its memory (Tensor.__array__), and give an array.
# Others ask the tensor's own methods, or give a tensor (Tensor.__array_wrap__).
_OF_TENSORS = ("zeros_like", "ones_like", "empty_like", "full_like", "asarray")
# By CPython's numbers of binary operators.
_BINARY = ("add", "bitwise_and", "floor_divide", "left_shift", "matmul", "multiply", "remainder",
           "bitwise_or", "power", "right_shift", "subtract", "divide", "bitwise_xor")  # fmt: skip
_COMPARE = ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal")
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

_BUILTIN = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
_IN_TWO_FORMS = words("add and floordiv lshift matmul mul mod or pow rshift sub truediv xor")
_IN_ONE_FORM = words("eq ne lt le gt ge neg pos abs invert getitem setitem")
_METHODS_OF_OPERATORS = (
    *(f"__{i}{name}__" for name in _IN_TWO_FORMS for i in ("", "i")),
    *(f"__{name}__" for name in _IN_ONE_FORM),
)
_errors = np._core.umath._get_extobj_dict  # type: ignore[attr-defined]

Row = tuple[Any, bool]


def parts(value: Any) -> tuple[list[Any], torch.dtype, tuple[int, ...]]:
    """The arguments of `constant` for a number or a small array of NumPy's."""
    of.refuse_if(value.size > _MOST_ITEMS)
    return value.reshape(-1).tolist(), of.TO_TORCH[value.dtype], value.shape


_MOST_ITEMS = 4096


# --- on real tensors ---


def _is_real(value: Any) -> bool:
    """Whether all tensors in an argument have memory that NumPy can take."""
    if isinstance(value, (tuple, list)):
        return all(map(_is_real, value))
    return not isinstance(value, Tensor) or type(value) is Tensor


def _numpys(value: Any, seen: list[tuple[Any, Tensor]]) -> Any:
    """An argument as NumPy takes it; notes the arrays over tensors."""
    if isinstance(value, Tensor):
        array = value.numpy()
        seen.append((array, value))
        return array
    if isinstance(value, torch.dtype):
        return of.TO_NUMPY[value]
    if isinstance(value, (tuple, list)):
        return type(value)(_numpys(item, seen) for item in value)
    return value


def _tensor(result: Any, seen: list[tuple[Any, Tensor]]) -> Any:
    if isinstance(result, tuple):
        return tuple(_tensor(item, seen) for item in result)
    for array, tensor in seen:
        if result is array:
            return tensor
    return None if result is None else torch.from_numpy(np.asarray(result))


def _either(name: str, callable: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """The function that a graph calls: NumPy's on real tensors, ours on all others."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if private.len_dispatch_stack() or not _is_real((args, *kwargs.values())):
            return function(*args, **kwargs)
        seen: list[tuple[Any, Tensor]] = []
        given = _numpys(args, seen)
        named = {key: _numpys(value, seen) for key, value in kwargs.items()}
        return _tensor(callable(*given, **named), seen)

    wrapped.__name__ = wrapped.__qualname__ = f"wrapped_{name}"
    wrapped.__module__ = __name__
    wrapped.__wrapped__ = function  # type: ignore[attr-defined]
    globals()[wrapped.__name__] = wrapped  # where a printed graph looks for it
    return wrapped


def _binary(name: str, found: dict[str, Row]) -> Row:
    if name != "power":
        return found[name]
    function = of.power_by_operator(found[name][0].__wrapped__)
    return _either("pow", operator.pow, function), NUMBER


def _in_place(name: str, function: of.Function) -> Row:
    ufunc: np.ufunc = getattr(np, name)
    return _either(f"i{name}_", lambda a, b: ufunc(a, b, out=a), of.in_place(function)), ARRAY


# --- the whole ---


def _add_functions(rows: dict[Any, Row], found: dict[str, Row]) -> None:
    def add(module: Any, name: str, function: of.Function, number: bool) -> None:
        callable = getattr(module, name)
        found[name] = rows[callable] = (_either(name, callable, function), number)

    for name, function in of.ELEMENTWISE.items():
        add(np, name, of.make_ufunc(name, getattr(np, name), function), NUMBER)
    for name, function in _REDUCTIONS.items():
        add(np, name, function, NUMBER)
    for name, (function, number) in _FUNCTIONS.items():
        add(np, name, function, number)
    for name, function in _LINALG.items():
        add(np.linalg, name, function, NUMBER)
    for name in _FFT:
        add(np.fft, name, of.make_fft(name), ARRAY)
    for name, function in _SHIFTS.items():
        add(np.fft, name, function, ARRAY)


def _add_methods(rows: dict[Any, Row]) -> None:
    """Of arrays, and of NumPy's numbers, which are 0-d tensors here."""
    reductions = {name: (function, NUMBER) for name, function in _REDUCTIONS.items()}
    for name, (function, number) in (reductions | _METHODS).items():
        descriptor = vars(np.ndarray).get(name)
        if descriptor is None:
            continue
        wrapped = _either(name, descriptor, function)
        rows[descriptor] = wrapped, number
        if name in vars(np.generic):
            rows[vars(np.generic)[name]] = wrapped, NUMBER
    rows[vars(np.ndarray)["fill"]] = _either("fill_", np.ndarray.fill, of.fill), ARRAY


def table() -> dict[str, Any]:
    """What the engine has to know of arrays."""
    rows: dict[Any, Row] = {}
    found: dict[str, Row] = {}
    _add_functions(rows, found)
    _add_methods(rows)
    sample, fixed = np.zeros((2, 3), np.float32), np.zeros(3, np.int64)
    fixed.setflags(write=False)
    return {
        "rows": rows,
        "binary": [_binary(name, found) for name in _BINARY],
        "in_place": [_in_place(name, found[name][0].__wrapped__) for name in _BINARY],
        "compare": [found[name] for name in _COMPARE],
        "unary": {name: found[ufunc] for name, ufunc in _UNARY.items()},
        "getitem": (_either("getitem", operator.getitem, of.getitem), NUMBER),
        "setitem": (_either("setitem_", operator.setitem, of.setitem), ARRAY),
        "transpose": found["transpose"],
        "real": (_either("real", lambda a: a.real, of.real), ARRAY),
        "imag": (_either("imag", lambda a: a.imag, of.imag), ARRAY),
        "of_tensors": {getattr(np, name) for name in _OF_TENSORS},
        "constant": (of.constant, ARRAY),
        "dtypes": of.TO_NUMPY,
        "real_dtypes": {own: dtype for own, dtype in of.TO_NUMPY.items() if not own.is_complex},
        "classes": {own: dtype.type for own, dtype in of.TO_NUMPY.items()},
        "itemsizes": {dtype: dtype.itemsize for dtype in of.TO_TORCH},
        "operators": {name: getattr(operator, name) for name in _METHODS_OF_OPERATORS},
        "parts": parts,
        "errors": _errors,
        "to_torch": of.TO_TORCH
        | {dtype.type: own for own, dtype in of.TO_NUMPY.items()}
        | _BUILTIN,
        "samples": (sample, sample.ctypes.data, fixed, fixed.ctypes.data),
        "numpy": Tensor.numpy,
        "from_numpy": torch.from_numpy,
        "clone": torch.clone,
    }
