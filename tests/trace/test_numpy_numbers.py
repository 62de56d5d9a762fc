# ruff: noqa: E402
"""Numbers, dtypes and arrays of numpy in compiled functions, by rows of src/call/numpy.def: the same
classes, dtypes and bits as in plain Python, the same warnings and errors, whatever errstate says."""

import re
import struct
import warnings
from itertools import product
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", minversion="2.0")

import stator

TABLE = Path(__file__).parents[2] / "src/call/numpy.def"


def names_of(kind, first=""):
    """The names in the rows `kind(first, "…")` of the table."""
    text = re.sub(r'"\s*\n\s*"', "", TABLE.read_text())
    found = re.findall(rf"^{kind}\({first}\s*\"([^\"]*)\"\)", text, re.M)
    return [name for names in found for name in names.split()]


NUMBERS = re.findall(r"^NUMBER\((\w+), \d+, '(\w)'\)", TABLE.read_text(), re.M)


def seen(value):
    """All that a program can tell of a result: class, dtype, bits, of the elements as well."""
    if isinstance(value, (list, tuple)):
        return type(value), [seen(item) for item in value]
    if isinstance(value, np.ndarray):
        return type(value), value.dtype, value.shape, value.tobytes()
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if isinstance(value, float):
        return type(value), struct.pack("d", value)
    return type(value), value


def outcome(function, *args):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            result = seen(function(*args))
        except Exception as error:  # noqa: BLE001
            result = type(error), str(error)
    return result, [(w.category, str(w.message)) for w in given]


def is_whole(function, *args):
    try:
        stator.compile(function, fullgraph=True)(*args)
    except Exception:  # noqa: BLE001
        return False
    return True


def check(function, *args):
    """Compares two calls of the compiled function with a plain one."""
    want = outcome(function, *args)
    compiled = stator.compile(function, backend="eager")
    assert outcome(compiled, *args) == want, args
    assert outcome(compiled, *args) == want, args


def samples():
    for name, kind in NUMBERS:
        values = {"b": [0, 1], "u": [0, 3], "i": [-2, 3], "f": [0.0, 2.5], "c": [1 + 2j]}[kind]
        yield from (getattr(np, name)(value) for value in values)
    yield from [True, 2, -3, 2.5, float("nan"), 1j]


SAMPLES = list(samples())
FEW = [np.bool_(1), np.int8(100), np.uint8(200), np.int64(3), np.float32(0.1), np.float64(2.5)]
FEW += [np.complex64(1 + 2j), True, 3, 0.5, 2j]


def is_fine(function, *args):
    """Plain Python gives a result, and numpy has nothing to say about it."""
    with np.errstate(all="raise"):
        (found, _), given = outcome(function, *args)
    return not given and not issubclass(found, Exception)


@pytest.mark.parametrize("name", names_of("UFUNCS"))
def test_ufuncs_on_numbers(name):
    ufunc = getattr(np, name, None)
    if ufunc is None:
        pytest.skip("this numpy has none")

    def program(*args):
        return ufunc(*args)

    cases = [(a,) for a in SAMPLES] if ufunc.nin == 1 else list(product(FEW[::2], FEW[1::2]))
    for args in cases:
        check(program, *args)
        assert is_whole(program, *args) or not is_fine(program, *args), args


OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "<",
    "<=",
    "==",
    "!=",
    "@",
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_on_numbers(operator):
    program = eval(f"lambda a, b: a {operator} b")
    for args in product(FEW, FEW):
        check(program, *args)
        assert is_whole(program, *args) or not is_fine(program, *args), args


UNARY = {
    "neg": lambda a: -a, "pos": lambda a: +a, "invert": lambda a: ~a, "abs": abs, "not": lambda a: not a,
    "truth": lambda a: 1 if a else 2, "int": lambda a: int(a), "float": lambda a: float(a),
    "complex": lambda a: complex(a), "bool": lambda a: bool(a), "hash": lambda a: hash(a),
    "round": lambda a: round(a), "round to one": lambda a: round(a, 1), "dtype": lambda a: a.dtype,
    "kind": lambda a: a.dtype.kind, "name": lambda a: a.dtype.name, "item": lambda a: a.item(),
    "type of dtype": lambda a: a.dtype.type, "same dtype": lambda a: a.dtype == np.float32,
    "shape": lambda a: (a.shape, a.ndim, a.size, a.itemsize), "real": lambda a: (a.real, a.imag),
    "range": lambda a: list(range(a)), "item of a list": lambda a: [1, 2, 3, 4][a], "key": lambda a: {3: 1}.get(a),
    "in": lambda a: a in [1, 3, 2.5], "class": lambda a: (type(a), isinstance(a, np.integer), isinstance(a, float)),
    "astype": lambda a: a.astype(np.float64), "sum": lambda a: a.sum(), "maximum": lambda a: max(a, a),
    "added up": lambda a: sum([a, a]), "text": lambda a: f"{a}", "repr": lambda a: repr(a), "str": lambda a: str(a),
    "in place": lambda a: [a := a + 1, a][1], "made of it": lambda a: np.float32(a), "nothing": lambda a: a,
    "none": lambda a: a is None, "tuple": lambda a: (a, [a]), "true": lambda a: (a > 1) is np.True_,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_questions_to_numbers(name):
    for sample in SAMPLES:
        if isinstance(sample, np.generic):
            check(UNARY[name], sample)


@pytest.mark.parametrize(
    "name", ["neg", "int", "float", "truth", "dtype", "item", "range", "key", "class", "added up"]
)
def test_common_questions_do_not_break(name):
    assert is_whole(UNARY[name], np.int64(3))


def test_another_value_is_another_answer():
    compiled = stator.compile(lambda a: (a * 2, type(a)))
    for value in [
        np.float32(1),
        np.float32(-0.0),
        np.float64(1),
        np.int64(1),
        1,
        np.float32("nan"),
    ]:
        assert seen(compiled(value)) == seen((value * 2, type(value)))


def test_a_number_from_outside_is_guarded():
    box = {"k": np.float64(1.5)}
    compiled = stator.compile(lambda: box["k"] * 2, fullgraph=True)
    for value in [np.float64(1.5), np.float64(2.5), np.float32(2.5)]:
        box["k"] = value
        assert seen(compiled()) == seen(value * 2)


LISTS = [
    (2, 3, 4),
    [2.5, 1.0],
    (np.int64(2), 3),
    [[1, 2], [3, 4]],
    [True, False],
    (),
    5,
    np.float32(2),
]


@pytest.mark.parametrize("name", names_of("FUNCTIONS"))
def test_functions_on_lists(name):
    function = getattr(np, name, None)
    if function is None:
        pytest.skip("this numpy has none")
    for args in [(a,) for a in LISTS] + list(product(LISTS[:4], LISTS[-2:] + [(1, 0)])):
        check(lambda *a: function(*a), *args)


@pytest.mark.parametrize(
    "name", ["prod", "sum", "max", "min", "mean", "cumsum", "argmax", "clip", "round"]
)
def test_functions_of_shapes_do_not_break(name):
    function = getattr(np, name)
    more = (1, 3) if name == "clip" else ()
    assert is_whole(lambda s: float(np.sum(function(s, *more))), (2, 3, 4))


ARRAYS = [
    lambda: np.array([1.5, 2.5, -3.0]), lambda: np.arange(6).reshape(2, 3), lambda: np.zeros((0, 3)),
    lambda: np.array(4.0), lambda: np.ones((2, 2), np.float32).T, lambda: np.array([True, False]),
    lambda: np.arange(8, dtype=np.int32)[::2],
]  # fmt: skip


@pytest.mark.parametrize("name", names_of("METHODS", "ndarray,") + names_of("FIELDS", "ndarray,"))
def test_methods_of_arrays_made_inside(name):
    for make in ARRAYS:

        def program():
            member = getattr(make(), name)
            return (
                member(0)
                if name in ("reshape", "take", "repeat")
                else member()
                if callable(member)
                else member
            )

        check(program)


def test_arrays_made_inside_do_not_break():
    assert is_whole(lambda n: float(np.linspace(0, 1, n)[1:].sum()) + np.arange(n).tolist()[1], 5)
    assert is_whole(lambda n: [float(v) for v in np.linspace(0, 0.5, n)], 5)
    assert is_whole(lambda n: (np.array([1.0, n]) * 2 - 1).mean().item(), 5)


def test_an_array_that_gets_out_is_the_programs_own():
    compiled = stator.compile(lambda n: np.arange(n) * 2, backend="eager")
    first, second = compiled(3), compiled(3)
    first[0] = 7
    assert first.tolist() == [7, 2, 4]
    assert second.tolist() == [0, 2, 4]
    assert not np.shares_memory(first, second)
    assert second.flags.writeable


def test_arrays_are_written_to_by_the_program():
    def program(n):
        a = np.zeros(n)
        a[0] = 1
        a += 1
        np.add(a, 1, out=a)
        return a.tolist()

    check(program, 3)


STATES = [{}, {"all": "ignore"}, {"all": "raise"}, {"all": "warn"}]


@pytest.mark.parametrize(
    "program",
    [
        lambda a: np.log(a * 0.0), lambda a: a / (a - a), lambda a: np.float32(1e38) * a * 10,
        lambda a: np.exp(a * -1e4), lambda a: np.uint8(200) + np.uint8(a * 100), lambda a: np.sqrt(-a),
        lambda a: round(a * np.float32(1e38), -3), lambda a: np.mean([]) * a, lambda a: np.float64(1e308) ** a * 10,
    ],
)  # fmt: skip
def test_floating_point_errors_are_what_errstate_says(program):
    compiled = stator.compile(program)
    for state in STATES + STATES[::-1]:
        with np.errstate(**state):
            assert outcome(compiled, np.float32(2)) == outcome(program, np.float32(2)), state


def test_the_setting_for_errors_stays():
    outcome(stator.compile(lambda a: np.sqrt(a) + a / (a - a)), np.float64(2))
    before = np.geterr()
    with np.errstate(over="raise"):
        stator.compile(lambda a: np.sqrt(a))(np.float64(2))
        assert np.geterr() == {**before, "over": "raise"}
    assert np.geterr() == before


def test_random_numbers_are_numpys_own():
    def program(a):
        return float(np.random.rand()) + a

    def run(function):
        np.random.seed(3)
        return [function(1.0), function(1.0), np.random.rand()]

    assert run(stator.compile(program)) == run(program)


def test_arrays_from_outside_are_not_traced_but_right():
    a = np.arange(3.0)
    compiled = stator.compile(lambda x: (x + 1).tolist())
    assert compiled(a) == [1, 2, 3]
    a[0] = 5
    assert compiled(a) == [6, 2, 3]
