# ruff: noqa: E402
"""Each function that a graph calls for one of NumPy's gives NumPy's own answer, or refuses.

Dtype, shape, strides and values are compared, for every dtype and for arrays that lie in memory in
several ways. A call that NumPy refuses has to be refused.
"""

import itertools
import operator
import warnings

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from stator import _array_rows, _arrays

TABLE = _array_rows.table()
DTYPES = [dtype for dtype in _arrays.TO_TORCH if dtype != np.float16] + [np.dtype("float16")]
REAL = [dtype for dtype in DTYPES if dtype.kind != "c"]


def values(dtype, shape):
    """Of both signs, some of them equal, with zeros."""
    count = int(np.prod(shape))
    plain = np.array([(i * 7) % 5 - 2 + (i % 3) * 0.25 for i in range(count)])
    if dtype.kind in "bu":
        plain = np.abs(plain)
    if dtype.kind == "c":
        plain = plain + 1j * plain[::-1]
    return plain.astype(dtype).reshape(shape)


LAYOUTS = {
    "plain": lambda dtype: values(dtype, (2, 3)),
    "transposed": lambda dtype: values(dtype, (3, 2)).T,
    "stepped": lambda dtype: values(dtype, (4, 6))[::2, ::2],
    "line": lambda dtype: values(dtype, (5,)),
    "stepped line": lambda dtype: values(dtype, (10,))[::2],
    "deep": lambda dtype: values(dtype, (2, 3, 4)).transpose(1, 0, 2),
    "number": lambda dtype: values(dtype, ()),
    "none": lambda dtype: values(dtype, (0, 3)),
    "one row": lambda dtype: values(dtype, (1, 3)),
}


def tensor_of(value):
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(tensor_of, value))
    return value


def outcome(function, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs), None
        except Exception as error:
            return None, error


def strides_matter(array):
    """Those of a dimension of one element, or of an array without elements, tell nothing."""
    return array.size > 0


def compare(what, want, got, number):
    want_array = np.asarray(want)
    assert got.numpy().dtype == want_array.dtype, what
    assert tuple(got.shape) == want_array.shape, what
    is_number = number and got.dim() == 0
    assert is_number == isinstance(want, np.generic), what
    if strides_matter(want_array):
        mine = got.numpy()
        pairs = zip(want_array.shape, want_array.strides, mine.strides)
        assert all(n == 1 or a == b for n, a, b in pairs), (what, want_array.strides, mine.strides)
    exact = want_array.dtype.kind in "biu"
    tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 3e-3, "atol": 1e-3}
    if want_array.dtype.itemsize > 4 and not exact:
        tolerance = {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(got.numpy(), want_array, err_msg=str(what), **tolerance)


def compare_bits(what, want, got):
    """Where NumPy itself runs: a graph that is run operation by operation."""
    assert got.numpy().dtype == np.asarray(want).dtype, what
    np.testing.assert_array_equal(got.numpy(), want, err_msg=str(what))


def check(what, callable, row, args, kwargs=None):
    """Whether the row has an answer."""
    kwargs = kwargs or {}
    function, number = row[0].__wrapped__, row[1]
    want, refused = outcome(callable, args, kwargs)
    tensors = [tensor_of(arg) for arg in args]
    got, error = outcome(function, tensors, kwargs)
    if error is not None:
        return False
    compare_bits(what, want, row[0](*tensors, **kwargs))
    assert refused is None, (what, refused)
    compare(what, want, got, number)
    return True


UFUNCS = [name for name in _arrays.ELEMENTWISE]
NUMBERS = [2, 3.5, True, 0, -1, 300, 1j]


def calls_of(ufunc):
    if ufunc.nin == 1:
        for dtype, layout in itertools.product(DTYPES, LAYOUTS):
            yield (dtype, layout), (LAYOUTS[layout](dtype),)
        return
    for left, right in itertools.product(DTYPES, DTYPES):
        yield (left, right), (LAYOUTS["plain"](left), LAYOUTS["plain"](right))
    for dtype, number in itertools.product(DTYPES, NUMBERS):
        yield (dtype, number), (LAYOUTS["plain"](dtype), number)
        yield (number, dtype), (number, LAYOUTS["plain"](dtype))
    f4, i8 = np.dtype("float32"), np.dtype("int64")
    for a, b in itertools.product(LAYOUTS, LAYOUTS):
        yield (a, b), (LAYOUTS[a](f4), LAYOUTS[b](f4))
        yield (a, b, "int"), (LAYOUTS[a](i8), LAYOUTS[b](i8))


# Where torch's kernels do not know a dtype at all, nothing is answered.
@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions_are_numpys(name):
    ufunc = getattr(np, name)
    answered = [check((name, *what), ufunc, TABLE["rows"][ufunc], args)
                for what, args in calls_of(ufunc)]  # fmt: skip
    assert any(answered)


AXES = [{}, {"axis": 0}, {"axis": -1}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)},
        {"axis": 5}, {"keepdims": True}, {"axis": ()}, {"axis": (0, 0)}]  # fmt: skip
PLAIN_AXES = [{}, {"axis": 0}, {"axis": -1}, {"axis": 7}]
MORE = {
    "sum": [{"dtype": np.float32}, {"dtype": np.int64}],
    "mean": [{"dtype": np.float64}],
    "std": [{"ddof": 1}, {"ddof": 1, "axis": 0}, {"ddof": 9}],
    "var": [{"ddof": 1}],
}


@pytest.mark.parametrize("name", _array_rows._REDUCTIONS)
def test_reductions_are_numpys(name):
    function = getattr(np, name)
    keywords = (PLAIN_AXES if name.startswith("cum") else AXES) + MORE.get(name, [])
    answered = [
        check((name, dtype, layout, kwargs), function, TABLE["rows"][function],
              (LAYOUTS[layout](dtype),), kwargs)
        for dtype, layout, kwargs in itertools.product(DTYPES, LAYOUTS, keywords)
    ]  # fmt: skip
    assert any(answered)


OTHERS = {
    "reshape": [((-1,), {}), ((6,), {}), (((3, 2),), {}), (((2, 3),), {}), (((),), {})],
    "ravel": [((), {})], "transpose": [((), {}), (((1, 0),), {}), (((0, 2, 1),), {})],
    "swapaxes": [((0, 1), {}), ((0, -1), {})], "moveaxis": [((0, 1), {}), ((0, -1), {})],
    "squeeze": [((), {}), ((0,), {})],
    "expand_dims": [((0,), {}), ((-1,), {}), (((0, 2),), {})],
    "roll": [((1,), {}), ((1,), {"axis": 0}), ((-2,), {"axis": -1})],
    "tile": [((2,), {}), (((2, 1),), {})], "repeat": [((2,), {}), ((3,), {"axis": 0})],
    "tril": [((), {}), ((1,), {})], "triu": [((), {}), ((-1,), {})],
    "diff": [((), {}), ((), {"axis": 0})], "sort": [((), {}), ((), {"axis": 0})],
    "zeros_like": [((), {}), ((), {"dtype": np.int64})],
    "ones_like": [((), {}), ((), {"dtype": np.float32})],
    "full_like": [((2,), {}), ((2.5,), {}), ((300,), {})],
    "copy": [((), {})], "array": [((), {}), ((), {"dtype": np.float64})],
    "asarray": [((), {}), ((), {"dtype": np.float32})],
    "round": [((), {}), ((1,), {})], "around": [((), {})],
    "clip": [((0, 2), {}), ((0.5, 1.5), {}), ((None, 1), {}), ((-1, 300), {})],
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_are_numpys(name):
    function = getattr(np, name)
    answered = [
        check((name, dtype, layout, more), function, TABLE["rows"][function],
              (LAYOUTS[layout](dtype), *more[0]), more[1])
        for dtype, layout, more in itertools.product(DTYPES, LAYOUTS, OTHERS[name])
    ]  # fmt: skip
    assert any(answered)


@pytest.mark.parametrize("name", _array_rows._SHIFTS)
def test_shifts_of_spectra_are_numpys(name):
    function, axes = getattr(np.fft, name), [(), (0,), ((0, 1),), ((-1,),), (7,), ((),)]
    answered = [
        check((name, dtype, layout, more), function, TABLE["rows"][function],
              (LAYOUTS[layout](dtype), *more))
        for dtype, layout, more in itertools.product(DTYPES[:3], LAYOUTS, axes)
    ]  # fmt: skip
    assert any(answered)


INDICES = [np.array([[0, -1], [1, 0]]), np.array([[1], [-2]]), np.array([0, -1, 3]), np.array([[9]]),
           np.array([[0, 1, 1]], np.uint8), np.array([[0.5]]), np.array([[True]])]  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1, -1, None, 5])
def test_items_along_an_axis_are_numpys(axis):
    function = np.take_along_axis
    answered = [
        check((dtype, layout, indices), function, TABLE["rows"][function],
              (LAYOUTS[layout](dtype), indices, axis))
        for dtype, layout, indices in itertools.product(DTYPES[:3], LAYOUTS, INDICES)
    ]  # fmt: skip
    assert any(answered) == (axis != 5)


@pytest.mark.parametrize("indexing", ["xy", "ij", "no"])
@pytest.mark.parametrize("sparse", [False, True])
def test_grids_are_numpys(indexing, sparse):
    lines = [LAYOUTS[name](np.dtype("int32")) for name in ("line", "plain", "number")]
    row, kwargs = TABLE["rows"][np.meshgrid], {"indexing": indexing, "sparse": sparse}
    for count in range(4):
        want, refused = outcome(np.meshgrid, lines[:count], kwargs)
        got, error = outcome(row[0].__wrapped__, list(map(tensor_of, lines[:count])), kwargs)
        assert (error is None) == (refused is None and count > 0)
        for one, other in zip(want or (), got or ()):
            compare((count, kwargs), one, other, row[1])


def test_parts_of_complex_arrays_are_views_as_numpys():
    for name, dtype, layout in itertools.product(("real", "imag"), DTYPES, LAYOUTS):
        array = LAYOUTS[layout](dtype)
        ours = torch.from_numpy(array)
        got, error = outcome(TABLE[name][0].__wrapped__, (ours,), {})
        assert (error is not None) == (name == "imag" and dtype.kind != "c")
        if error is None:
            compare((name, dtype, layout), getattr(array, name), got, False)
            assert got is ours if dtype.kind != "c" else got.data_ptr() >= ours.data_ptr()


METHODS = {
    "reshape": [(3, 2), (-1,), ((2, -1),)], "ravel": [()], "flatten": [()],
    "transpose": [(), (1, 0), ((1, 0),)], "swapaxes": [(0, 1)], "squeeze": [(), (0,)],
    "astype": [(dtype,) for dtype in DTYPES], "copy": [()], "round": [()], "clip": [(0, 1)],
    "repeat": [(2,)],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_numpys(name):
    descriptor = vars(np.ndarray)[name]
    for dtype, layout, more in itertools.product(DTYPES, LAYOUTS, METHODS[name]):
        check((name, dtype, layout, more), descriptor, TABLE["rows"][descriptor],
              (LAYOUTS[layout](dtype), *more))  # fmt: skip


PAIRS = {
    "matmul": lambda a, b: (a, b), "dot": lambda a, b: (a, b), "outer": lambda a, b: (a, b),
    "concatenate": lambda a, b: ([a, b],), "stack": lambda a, b: ([a, b],),
    "vstack": lambda a, b: ([a, b],), "hstack": lambda a, b: ((a, b),),
    "where": lambda a, b: (a, a, b), "array": lambda a, b: ([a, b],),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_arrays_are_numpys(name):
    function, f8 = getattr(np, name), np.dtype("float64")
    row, make = TABLE["rows"][function], PAIRS[name]
    answered = [check((name, a, b), function, row, make(values(a, (3, 3)), values(b, (3, 3))))
                for a, b in itertools.product(DTYPES, DTYPES)]  # fmt: skip
    for a, b in itertools.product(LAYOUTS, LAYOUTS):
        check((name, a, b), function, row, make(LAYOUTS[a](f8), LAYOUTS[b](f8)))
    assert any(answered)


KEYS = [
    0, -1, slice(1, None), (0, 1), (slice(None), 1), (slice(None), slice(1, None)), Ellipsis,
    (0, Ellipsis), (Ellipsis, 0), None, (None, 0), (slice(None), None), slice(None, None, 2),
    slice(None, None, -1), [0, 1], ([0, 1], slice(None)), (slice(None), [1, 0]), ([0, 1], [0, 1]),
    (0, [1, 0]), True, (), slice(5, 2), 9, (0, 0, 0),
    (0, slice(None), [0, 1]), [True, False], np.array([1, 0]), np.array([1, 0], np.uint8),
    np.array(1), np.array([[0, 1], [1, 0]]),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_subscripts_are_numpys(key):
    for dtype, layout in itertools.product((np.dtype("float32"), np.dtype("int8")), LAYOUTS):
        array = LAYOUTS[layout](dtype)
        want, refused = outcome(lambda: array[key], (), {})
        ours = tensor_of(key)
        got, error = outcome(_arrays.getitem, (torch.from_numpy(array), ours), {})
        if error is not None:
            continue
        what = (dtype, layout, key)
        assert refused is None, what
        compare(what, want, got, Ellipsis not in (key if isinstance(key, tuple) else (key,))
                if not isinstance(key, (np.ndarray, list)) else True)  # fmt: skip
        if got.dim() and got.numel():  # whether it is a view
            mine, theirs = torch.from_numpy(array.copy(order="K")), array.copy(order="K")
            _arrays.getitem(mine, ours).fill_(1)
            theirs[key].fill(1)
            np.testing.assert_array_equal(mine.numpy(), theirs, err_msg=str(what))


STORED = [1, 2.5, 300, True, 1j, np.array(2.5), np.array([1, 2, 3]), np.array([[1.5, 2, 3]])]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_stores_are_numpys(key):
    for dtype, layout, value in itertools.product(DTYPES, ("plain", "transposed", "line"), STORED):
        theirs = LAYOUTS[layout](dtype).copy(order="K")
        ours = torch.from_numpy(theirs.copy(order="K"))
        before = ours.clone()
        _, refused = outcome(theirs.__setitem__, (key, value), {})
        _, error = outcome(_arrays.setitem, (ours, tensor_of(key), tensor_of(value)), {})
        what = (dtype, layout, key, value)
        assert error is not None or refused is None, what
        want = theirs if error is None else before.numpy()
        np.testing.assert_array_equal(ours.numpy(), want, err_msg=str(what))


@pytest.mark.parametrize("at", range(len(_array_rows._BINARY)))
def test_operators_are_numpys(at):
    """An operator is not always the function of the same name: `bools ** 2` is a square."""
    ufunc = getattr(np, _array_rows._BINARY[at])
    applied = getattr(operator, f"__{_array_rows._IN_TWO_FORMS[at]}__")
    answered = [check(what, applied, TABLE["binary"][at], args) for what, args in calls_of(ufunc)]
    assert any(answered)


@pytest.mark.parametrize("name", ["lt", "le", "eq", "ne", "gt", "ge"])
def test_comparisons_are_numpys(name):
    at = ["lt", "le", "eq", "ne", "gt", "ge"].index(name)
    ufunc = getattr(np, _array_rows._COMPARE[at])
    row, applied = TABLE["compare"][at], getattr(operator, name)
    assert any([check(what, applied, row, args) for what, args in calls_of(ufunc)])


@pytest.mark.parametrize("name", _array_rows._UNARY)
def test_unary_operators_are_numpys(name):
    ufunc = getattr(np, _array_rows._UNARY[name])
    row, applied = TABLE["unary"][name], getattr(operator, name)
    assert any([check(what, applied, row, args) for what, args in calls_of(ufunc)])


@pytest.mark.parametrize("at", range(len(_array_rows._BINARY)))
def test_operators_in_place_are_numpys(at):
    function, ufunc = TABLE["in_place"][at][0].__wrapped__, getattr(np, _array_rows._BINARY[at])
    others = [*NUMBERS, *(values(dtype, (3, 3)) for dtype in DTYPES), values(DTYPES[4], (2, 3, 3))]
    for dtype, other in itertools.product(DTYPES, others):
        theirs = values(dtype, (3, 3))
        ours = torch.from_numpy(theirs.copy())
        _, refused = outcome(ufunc, (theirs, other), {"out": theirs})
        got, error = outcome(function, (ours, tensor_of(other)), {})
        what = (ufunc, dtype, other)
        if error is not None:
            continue
        assert refused is None and got is ours, what
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=3e-3, err_msg=str(what))
