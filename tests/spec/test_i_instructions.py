"""Lines I1 to I24: every instruction does in a trace what CPython does with it.

Where torch is missing, the programs run on floats, and "whole" means one compiled entry.
"""

import builtins
import operator
import sys
import types

import pytest

import stator
from tests.spec.helpers import assert_same, check, opcodes, torch, value

needs_torch = pytest.mark.skipif(torch is None, reason="needs torch")


def programs(*functions):
    return pytest.mark.parametrize("program", functions, ids=lambda f: f.__name__)


def uses(program, *names):
    """The program has each of these instructions; `A|B`: one of them, as Python versions differ."""
    present = opcodes(program)
    for name in names:
        assert present & set(name.split("|")), f"{name} is not in {sorted(present)}"


def whole(program, *names, args=()):
    uses(program, *names)
    return check(program, value(), *args)


# -- I1 --


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def match_class(x):
    match Point(x, 2):
        case Point(a, 2):
            return a + 1
    return x


def match_class_twofold(x):
    match Point(x, 2):
        case Point(a, y=2):
            return a + 1
    return x


@programs(match_class, match_class_twofold)
def test_I1_class_patterns_are_traced(program):
    whole(program, "MATCH_CLASS")


def asynchronous(x):
    async def inner():
        return x + 1

    try:
        inner().send(None)
    except StopIteration as end:
        return end.value


def annotated(x):
    space = {}
    exec("y: int = 1", space)
    return x + space["y"]


@programs(asynchronous, annotated)
def test_I1_rare_instructions_give_pythons_result(program):
    check(program, value(), whole=False)


def test_I1_a_break_names_what_was_met():
    with pytest.raises(stator.Unsupported, match="coroutine asynchronous.<locals>.inner"):
        stator.compile(asynchronous, backend="eager", fullgraph=True)(value())


# -- I2 --


def locals_and_constants(x):
    a = x
    b = 2.5
    c = a * b
    del a
    return c


def unbound_caught(x):
    a = 1
    del a
    try:
        return a
    except UnboundLocalError as error:
        return x + len(str(error))


def unbound_leaving(x):
    if x is None:
        late = 1
    return late


def unbound_cell(x):
    def inner():
        return late

    try:
        inner()
    except NameError as error:
        message = str(error)
    late = x
    return inner() + len(message)


@programs(locals_and_constants, unbound_caught, unbound_cell)
def test_I2_locals_and_constants(program):
    whole(program, "LOAD_FAST|LOAD_FAST_CHECK|LOAD_FAST_LOAD_FAST", "STORE_FAST", "LOAD_CONST")


def test_I2_an_unbound_local_leaves_as_pythons_error():
    check(unbound_leaving, value(), whole=False)


# -- I3 --


def comprehensions(x):
    rows = [[x * i + j for j in range(2)] for i in range(2)]
    return rows, {i: x for i in range(2)}, sorted({i for i in range(3)}), list(x + i for i in (1,))


def lambda_over_comprehension(x):
    return [f(x) for f in [lambda v, i=i: v + i for i in range(3)]]


@programs(comprehensions, lambda_over_comprehension)
def test_I3_comprehensions(program):
    whole(program)


# -- I4: no resume frames here; what they are for is that a break keeps the stack --


def stack_over_a_break(x):
    return (x + 1, [x, len(str(print(end=""))), x * 2], x - 1)


def test_I4_values_on_the_stack_live_through_a_break():
    check(stack_over_a_break, value(), whole=False)


@needs_torch
def test_I4_values_on_the_stack_are_dropped_once_used():
    import weakref

    seen = []

    def look(tensors):
        seen.append(weakref.ref(tensors[0]))
        print(end="")
        return tensors[0].sum()

    def later():
        print(end="")
        return seen[0]() is None

    def program(x):
        total = look([x + 1])
        return total, later()

    # The list was on the stack when print broke; nothing may hold it after the call.
    _, gone = torch.compile(program, backend="eager")(value())
    assert gone


# -- I5, I22: 3.12 and later --

new = pytest.mark.skipif(sys.version_info < (3, 12), reason="instructions of 3.12 and later")


def checked_load(x, flag=True):
    if flag:
        late = x + 1
    return late


def inlined_comprehension(x):
    i = x * 2
    rows = [i + 1 for i in range(3)]
    return i, rows


def inlined_over_unbound(x):
    rows = [late for late in (x, x + 1)]
    if rows is None:
        late = 1
    try:
        late
    except UnboundLocalError:
        return rows


@new
@pytest.mark.parametrize(
    "program, name",
    [
        (checked_load, "LOAD_FAST_CHECK"),
        (inlined_comprehension, "LOAD_FAST_AND_CLEAR"),
        (inlined_over_unbound, "LOAD_FAST_AND_CLEAR"),
    ],
)
def test_I5_loads_of_3_12(program, name):
    whole(program, name)


def test_I5_the_same_programs_on_any_python():
    for program in (checked_load, inlined_comprehension, inlined_over_unbound):
        check(program, value())


# -- I6, I7 --

number = 3
counted = 0
shadowed = abs


def global_then_builtin(x):
    return x + number + len((1, 2)) + abs(-1)


def missing_global(x):
    try:
        return no_such_name
    except NameError as error:
        return x + len(str(error))


def store_then_load(x):
    global counted
    counted = 5
    counted = counted + 2
    y = x + counted
    del counted
    try:
        counted
    except NameError:
        counted = 1
        return y


@programs(global_then_builtin, missing_global)
def test_I6_globals_then_builtins(program):
    whole(program, "LOAD_GLOBAL")


def test_I6_builtins_as_a_dict_or_a_module():
    for names in (vars(builtins), builtins):
        space = {"__builtins__": names}
        exec("def f(x): return x + len((1, 2, 3))", space)
        check(space["f"], value())


def test_I6_a_global_that_hides_a_builtin_is_noticed(monkeypatch):
    fast = stator.compile(global_then_builtin, backend="eager", fullgraph=True)
    assert_same(fast(value()), global_then_builtin(value()))
    monkeypatch.setitem(globals(), "abs", lambda v: 100)
    assert_same(fast(value()), global_then_builtin(value()))
    assert_same(fast(value()), value() + 105)


def test_I7_global_stores_are_seen_by_later_loads_and_replayed(monkeypatch):
    monkeypatch.setitem(globals(), "counted", 0)
    whole(store_then_load, "STORE_GLOBAL", "DELETE_GLOBAL")
    assert counted == 1


def test_I7_a_failed_trace_stores_nothing(monkeypatch):
    monkeypatch.setitem(globals(), "counted", 0)

    def program(x):
        global counted
        counted = 9
        print(end="")
        return x

    with pytest.raises(stator.Unsupported):
        stator.compile(program, backend="eager", fullgraph=True)(value())
    assert counted == 0


# -- I8 --


def inner_cells(x):
    total = x

    def add(by):
        nonlocal total
        total = total + by
        return lambda: total

    get = add(1)
    add(2)
    return get(), total


def deleted_cell(x):
    late = x

    def read():
        return late

    first = read()
    del late
    try:
        read()
    except NameError:
        return first


def test_I8_cells_of_the_frame():
    whole(
        inner_cells,
        "LOAD_DEREF",
        "STORE_DEREF",
        "MAKE_CELL",
        "COPY_FREE_VARS",
        "LOAD_CLOSURE|LOAD_FAST",
    )
    whole(deleted_cell, "DELETE_DEREF")


def test_I8_cells_from_outside():
    def make():
        count = 0

        def program(x):
            nonlocal count
            count += 1
            return x + count

        return program

    eager, other = make(), make()
    fast = stator.compile(other, backend="eager", fullgraph=True)
    for _ in range(3):
        assert_same(fast(value()), eager(value()))
    assert other.__closure__[0].cell_contents == 3


@new
def test_I8_a_cell_made_in_the_middle_of_a_body():
    def program(x):
        return [f() for f in [lambda: x + i for i in range(2)]]

    whole(program, "MAKE_CELL")


# -- I9, I10 --

BINARY = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"]


def _operands(sign, tensors):
    integers = sign in "& | ^ << >>".split()
    if sign == "@":
        return value(2, 2), value(2, 2)
    if tensors:
        return (value() * 4).int() if integers else value(), 2
    return (6, 3) if integers else (6.5, 2)


def _function(text):
    space = {}
    exec(text, space)
    return space["f"]


OPERANDS = [(sign, False) for sign in BINARY if sign != "@"]
OPERANDS += [(sign, True) for sign in BINARY] if torch is not None else []


@pytest.mark.parametrize("sign, tensors", OPERANDS)
def test_I9_binary_and_in_place(sign, tensors):
    operands = _operands(sign, tensors)
    reflected = "" if sign in ("<<", ">>") else f", b {sign} a"
    plain = _function(f"def f(a, b): return a {sign} b{reflected}")
    changing = _function(f"def f(a, b):\n  c = a\n  c {sign}= b\n  return a, c, c is a")
    for function in (plain, changing):
        uses(function, "BINARY_OP")
        backend = check(function, *operands)
        if tensors:
            assert backend.operations  # in the graph, and not computed while tracing


class Whole:
    """Every operator of a class of the program, reflected ones too."""

    def __init__(self, log):
        self.log = log


def _logging(name):
    return lambda self, other: self.log.append(name) or self


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    for _form in ("", "r", "i"):
        setattr(Whole, f"__{_form}{_name}__", _logging(_form + _name))


def test_I9_operators_of_classes():
    lines = [f"    a {s} 1; 1 {s} a; a {s}= 2" for s in BINARY]
    program = _function(
        "def f(x, log, kind):\n    a = kind(log)\n" + "\n".join(lines) + "\n    return x, log"
    )
    check(program, value(), [], Whole)


def unary(x):
    return -x, not None, not [x], ~5, +x, -(3), ~True


def test_I9_unary():
    whole(unary, "UNARY_NEGATIVE", "UNARY_NOT", "CALL_INTRINSIC_1|UNARY_POSITIVE")
    if torch is not None:
        check(lambda x: (~x, +x, -x), value().int())


COMPARE = ["<", "<=", "==", "!=", ">", ">="]


@pytest.mark.parametrize("sign", COMPARE)
def test_I10_comparisons(sign):
    program = _function(
        f"def f(x, y): return x {sign} y, 1 {sign} 2, 'a' {sign} 'b', [1] {sign} [2]"
    )
    uses(program, "COMPARE_OP")
    backend = check(program, value(), 1.0)
    if torch is not None:
        assert len(backend.operations) == 1


def identity(x, y):
    return x is y, x is not y, x is None, x is not None


class Holder:
    def __init__(self, items):
        self.items = items

    def __contains__(self, item):
        return any(item is other for other in self.items)


class Walked:
    def __iter__(self):
        yield from (1, 2)


def contains(x, items):
    return (1 in items, 5 not in items, x in Holder([x]), "k" in {"k": 1}, "b" in "abc",
            2 in Walked(), 3 not in Walked(), 2 in range(3), 2 in {2, 3})  # fmt: skip


def test_I10_is_and_in():
    uses(identity, "IS_OP|POP_JUMP_IF_NONE")
    check(identity, value(), 1.0)
    uses(contains, "CONTAINS_OP")
    check(contains, value(), [1, 2])


# -- I11 to I13 --


def subscripts(x, d, o):
    d["new"] = x
    items = [1, 2, 3, 4]
    items[1:3] = (9,)
    del items[0], d["old"]
    items[-1] += 5
    o.attribute = d["new"] + items[0]
    del o.items
    return items, items[::-1], d["new"]


def test_I11_subscripts_and_deleted_attributes():
    uses(subscripts, "BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "DELETE_ATTR", "STORE_ATTR")
    check(subscripts, value(), {"old": 1}, Holder(1))


@needs_torch
def test_I11_subscripts_of_tensors():
    def program(x):
        x[0] = 5
        x[1:] += 1
        return x[0], x[..., -1], x[None], x[[0, 1]]

    uses(program, "STORE_SUBSCR", "BINARY_SUBSCR")
    assert operator.setitem in check(program, value(3, 2)).operations


def building(x, k):
    return (
        (x, k),
        [x, k],
        sorted({k, k + 1}),
        {"a": x, k: 1},
        {"a": 1, "b": x},
        [1, 2, 3][k:],
        f"{k}-{k}",
    )


def test_I12_building():
    names = "BUILD_TUPLE BUILD_LIST BUILD_SET BUILD_MAP BUILD_SLICE|BINARY_SLICE BUILD_STRING"
    uses(building, *names.split())
    check(building, value(), 1)


def keyed(x):
    return {"a": x, "b": x + 1, "c": 1}, slice(1, 2), [1, 2, 3, 4][1:3:2]


def test_I12_constant_keys_and_slices():
    if sys.version_info < (3, 14):
        uses(keyed, "BUILD_CONST_KEY_MAP", "BUILD_SLICE|LOAD_CONST")
    check(keyed, value())


def extending(x, items, names):
    def take(**kwargs):
        return kwargs

    a = [i for i in items if i]
    b = {i for i in items}
    c = {i: x for i in items}
    d = [*items, x, *items]
    e = {*items, 7}
    f = {**names, "z": x}
    return a, sorted(b), c, d, sorted(e), f, take(**names, y=x)


def test_I13_extending_at_a_depth():
    names = "LIST_APPEND SET_ADD MAP_ADD LIST_EXTEND SET_UPDATE DICT_UPDATE DICT_MERGE"
    uses(extending, *names.split())
    check(extending, value(), [1, 2, 0], {"k": 1})


# -- I14, I15 --


def unpacking(x, items):
    a, b = items
    (c, d), e = (a, b), x
    first, *rest = items
    *init, last = (1, 2, 3)
    p, *q, r = "abcd"
    g, h = (i for i in (1, 2))
    return a, b, c, d, e, first, rest, init, last, p, q, r, g, h


def wrong_length(x, items):
    try:
        a, b, c = items
    except ValueError as error:
        return x, str(error)


def too_many(x, items):
    try:
        (a,) = items
    except ValueError as error:
        return x, str(error)


@programs(unpacking, wrong_length, too_many)
def test_I14_unpacking(program):
    uses(program, "UNPACK_SEQUENCE")
    check(program, value(), [1, 2])


@needs_torch
def test_I14_a_tensors_rows_and_its_shape():
    def program(x):
        a, b, c = x
        rows, columns = x.shape
        return a + b, c, rows * columns

    uses(program, "UNPACK_SEQUENCE")
    check(program, value(3, 2))


def test_I15_the_middle_is_a_list():
    def program(x):
        a, *middle, c = (x, 1, 2, 3)
        return type(middle), middle, a, c

    whole(program, "UNPACK_EX")


# -- I16 --


class Shown:
    def __repr__(self):
        return "räpr"

    def __format__(self, spec):
        return f"<{spec}>"


def formatted(x, n, o):
    width = 8
    return (
        f"{n}",
        f"{n!r:>{width}}",
        f"{'ä'!a}",
        f"{o}{o!r}{o!a}{o:x}",
        f"{n:.2f}|{n!s}",
        f"{{}}{n=}",
    )


def test_I16_formatting():
    uses(formatted, "FORMAT_VALUE|FORMAT_SIMPLE")
    check(formatted, value(), 2.5, Shown())


@needs_torch
def test_I16_a_size_prints_as_in_python():
    check(lambda x: (f"{x.shape[0]}x{x.size(1)}", x + 1), value(3, 2))


# -- I17 --


def matching(x, subject):
    match subject:
        case []:
            return "empty"
        case [first, *rest]:
            return "sequence", first, rest
        case {"k": found, **others}:
            return "mapping", found, others
        case str() | bytes() | bytearray():
            return "text"
        case _:
            return x


SUBJECTS = [[], [1, 2], (1,), {"k": 3, "z": 4}, {"other": 1}, "ab", b"ab", bytearray(b"ab"), 7]


@pytest.mark.parametrize("subject", SUBJECTS, ids=repr)
def test_I17_patterns(subject):
    uses(matching, "GET_LEN", "MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_KEYS")
    check(matching, value(), subject)


# -- I18 --


def shuffled(x):
    a, b = x, 1
    a, b = b, a
    c = d = 0 < a < 2
    a, b, c, d = d, c, b, a
    b + 1
    return a, b, c, d, (lambda: None)()


def test_I18_stack_shuffles():
    whole(shuffled, "POP_TOP", "COPY", "SWAP", "RESUME")


# -- I19, I20 --


class Base:
    name = "base"

    def go(self, x, k=1):
        return x + k

    @property
    def scale(self):
        return 2


class Derived(Base):
    def go(self, x):
        return super().go(x, k=3) * super().scale, super(Derived, self).go(x)


def methods(x):
    o = Derived()
    bound = o.go
    return o.go(x), bound(x), Base.go(o, x), o.name, "a,b".split(",")


def test_I19_methods_and_super():
    whole(methods, "LOAD_METHOD|LOAD_ATTR")
    assert opcodes(Derived.go) & {"LOAD_SUPER_ATTR", "LOAD_GLOBAL"}


@new
def test_I19_super_as_one_instruction():
    uses(Derived.go, "LOAD_SUPER_ATTR")
    check(methods, value())


def keywords(x):
    def take(a, /, b, *rest, c, **others):
        return a, b, rest, c, others

    first = take(x, b=1, c=2)
    second = take(x, 1, 2, c=3, d=4)  # the names before are not used again
    third = take(*(x, 1), **{"c": 3})
    return first, second, third, dict(a=1), max(1, 2)


def test_I20_names_of_keywords_serve_one_call():
    whole(keywords, "KW_NAMES|CALL_KW", "CALL", "CALL_FUNCTION_EX")


# -- I21 --


def starred(x):
    return (*[x, 1], 2)


def test_I21_intrinsics():
    whole(starred, "LIST_TO_TUPLE|CALL_INTRINSIC_1")


def groups(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError as error:
        a = len(error.exceptions)
    except* TypeError:
        b = 2
    return x + a + b


def test_I21_exception_groups():
    check(groups, value(), whole=False)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of 3.12")
def test_I21_type_parameters():
    program = _function(
        "def f(x):\n  def inner[T](v: T) -> T: return v + 1\n  type A = int\n  return inner(x)"
    )
    check(program, value(), whole=False)


# -- I22, I23 --


def loops(x):
    total = x
    for i in range(3):
        for j in (1, 2):
            total = total + i * j
    return total


def constant_result(x):
    x + 1
    return 5


def delegating(x):
    def inner():
        got = yield x
        yield got
        return 3

    def outer():
        yield (yield from inner())

    made = outer()
    return next(made), made.send(7), next(made), list(made)


def test_I22_ends_of_loops_and_returns():
    whole(loops, "FOR_ITER")
    check(constant_result, value())
    whole(delegating, "SEND")


@new
def test_I22_instructions_of_3_12():
    uses(loops, "END_FOR")
    uses(delegating, "END_SEND")
    if sys.version_info < (3, 14):
        uses(constant_result, "RETURN_CONST")


def generators(x):
    def count(n):
        for i in range(n):
            yield x + i

    return list(count(3)), sum(i for i in (1, 2)), [*count(1)]


def test_I23_generators_begin():
    whole(generators, "RETURN_GENERATOR", "YIELD_VALUE")


# -- I24: Pythons before 3.11 are refused --


def test_I24_older_pythons_are_refused(monkeypatch):
    for version in [(3, 8, 0, "final", 0), (3, 10, 9, "final", 0), (3, 14, 0, "final", 0)]:
        old = types.SimpleNamespace(major=version[0], minor=version[1])
        fake = type("version_info", (tuple,), vars(old))(version)
        monkeypatch.setattr(sys, "version_info", fake)
        with pytest.raises(ImportError, match=r"supports CPython 3\.11, 3\.12 and 3\.13"):
            stator._require_supported_python()
        monkeypatch.undo()
    stator._require_supported_python()


def test_I24_todays_form_of_what_those_instructions_did():
    def program(x):
        try:
            with Managed():
                for i in range(3):
                    if i == 1:
                        continue
                    x = x + i
        finally:
            x = x * 2
        return x

    check(program, value())


class Managed:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False
