"""Programs of plain Python that are traced as a whole: patterns, code from text, classes that
namedtuple makes, whole namespaces of classes, locks, texts in memory, dates. Each is compared with
plain Python, in two calls of one entry."""

import collections
import datetime
import enum
import functools
import io
import itertools
import math
import sys
import threading
import types
import typing
import weakref

import pytest

import stator


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Twice(Point):
    __match_args__ = ("x", "x")


class Numbered(Point):
    __match_args__ = ("x", 1)


class Listed(Point):
    __match_args__ = ["x", "y"]


class Counting(dict):
    asked = 0

    def get(self, key, default=None):
        self.asked += 1
        return super().get(key, default)


class Settings(collections.UserDict):
    pass


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2

    @property
    def half(self):
        return self.value / 2


class Base:
    shared = [1]

    def method(self):
        return 1


module_value = 7


def caught(f, *args):
    try:
        return f(*args)
    except Exception as e:
        return type(e), str(e)


# --- patterns ---


def names_given_and_implied(x):
    match Point(x, x + 1):
        case Point(a, y=b):
            return a, b


def one_name_twice(x):
    def implied():
        match Point(x, 2):
            case Point(a, x=b):
                return a, b

    def by_the_class():
        match Twice(x, 2):
            case Twice(a, b):
                return a, b

    return caught(implied), caught(by_the_class)


def patterns_that_do_not_fit(x):
    def too_many():
        match Point(x, 2):
            case Point(a, b, c):
                return a, b, c

    def no_names():
        match Base():
            case Base(a):
                return a

    def two_of_one():
        match x:
            case int(a, b):
                return a, b

    def no_str():
        match Numbered(x, 2):
            case Numbered(a, b):
                return a, b

    def no_tuple():
        match Listed(x, 2):
            case Listed(a):
                return a

    def no_class():
        match x:
            case module_value.real():
                return 1

    return [caught(f) for f in (too_many, no_names, two_of_one, no_str, no_tuple, no_class)]


def missing_attributes(x):
    match Point(x, 2):
        case Point(a, z=b):
            return a, b
        case Point(z=a):
            return a
        case Point():
            return "none of these"


def mappings_of_their_own(x):
    results = []
    for m in (Counting(a=x), Settings(a=x), collections.ChainMap({"b": 1}, {"a": x})):
        match m:
            case {"a": found, "b": _}:
                results.append((found, "both"))
            case {"a": found, **rest}:
                results.append((found, dict(rest), getattr(m, "asked", None)))
    return results


def one_key_twice(x):
    class Keys:
        a = b = "k"

    def f():
        match Settings(k=x):
            case {Keys.a: v, Keys.b: u}:
                return v, u

    return caught(f)


# --- code from text ---


def evaluated(x):
    return eval("x + module_value"), eval(" 1 + y", {"y": x}), eval("y + z", {"y": x}, {"z": 2})


def executed(x):
    space = {"x": x}
    exec("def f(a, b=x):\n    return a + b + len(y)\ny = [x]", space)
    exec("y.append(x)\nclass C:\n    z = x", space)
    inner = {}
    exec("q = x", space, inner)
    return space["f"](1), space["y"], space["C"].z, inner, sorted(k for k in space if k != "x")


def builtins_of_its_own(x):
    space = {"__builtins__": {"len": lambda v: x}}
    return eval("len([])", space), caught(eval, "abs(1)", space), list(space)


def compiled_text(x):
    code = compile("x * 2", "<text>", "eval")
    return eval(code, {"x": x}), code.co_name, code.co_filename


def wrong_text(x):
    return (
        [caught(compile, text, "<text>", "exec") for text in ("a b", "return", "match x:\n  pass")],
        caught(eval, "1 +"),
        caught(eval, "undefined_name"),
        caught(eval, "x / 0", {"x": x}),
        caught(exec, "raise ValueError(x)", {"x": x}),
    )


def text_writes(x):
    space = {"seen": []}
    exec("seen.append(1)\nglobal other\nother = len(seen)", space)
    exec("del other\nseen.append(2)", space)
    return space["seen"], "other" in space, "__builtins__" in space


def named_tuples(x):
    Pair = collections.namedtuple("Pair", "a b", defaults=[x])
    p = Pair(1)
    Typed = typing.NamedTuple("Typed", [("a", int)])
    return (
        (tuple(p), p.b, repr(p._replace(a=5)), p._asdict(), Pair._fields, Pair._field_defaults),
        (tuple(Pair._make([3, 4])), hash(p) == hash((1, x)), len(p), p + (1,), [*p], p[1]),
        (repr(p), p == (1, x), isinstance(p, tuple), caught(Pair), caught(Pair, 1, 2, 3)),
        (tuple(Typed(x)), Typed._fields, Pair.__doc__, Pair.__module__, Pair.a.__doc__),
        caught(collections.namedtuple, "P", "a class"),
    )


# --- namespaces of classes ---


def whole_namespaces(x):
    class Inside(Base):
        own = x

    return (
        [k for k in Base.__dict__],
        list(vars(Inside)),
        sorted(k for k, v in Base.__dict__.items() if callable(v)),
        Base.__dict__["shared"] is Base.shared,
        len(vars(Base)),
        [n for n, v in vars(Shade).items() if isinstance(v, Shade)],
        dir(Shade.DARK),
    )


# --- locks ---


def locks_nobody_has(x):
    lock, again = threading.Lock(), threading.RLock()
    seen = []
    with lock:
        seen.append((x, lock.locked(), lock.acquire(False)) if x < 0 else (x, lock.locked()))
    with again, again:
        seen.append(again.acquire(timeout=1))
    again.release()
    seen.append(lock.locked())
    return seen, caught(lock.release), caught(again.release), lock.acquire(True, 2), lock.release()


# --- others ---


def texts_in_memory(x):
    f = io.StringIO("a\nb")
    g = io.StringIO()
    wrote = g.write(f"{x}!"), g.write("more")
    g.seek(1)
    return f.readline(), f.read(), f.tell(), wrote, g.getvalue(), g.read(2), caught(g.write, 1)


def dates(x):
    d = datetime.date(2024, 2, x)
    return (
        (d.isoformat(), d.weekday(), d.toordinal(), repr(d), str(d), d.year, d.month),
        (d < datetime.date(2024, 3, 1), d == datetime.date(2024, 2, x)),
        caught(datetime.date, 2024, 2, 40 + x),
    )


# --- iterators whose elements native code looks at ---


def elements_of_generators(x):
    return (
        list(itertools.chain.from_iterable([i] * i for i in range(x))),
        list(filter(None, (i % 2 for i in range(x)))),
        list(itertools.filterfalse(None, (Number(i) for i in range(x))))[0].value,
        list(itertools.accumulate(i for i in range(x))),
        [(k.value, len([*g])) for k, g in itertools.groupby(Number(i // 2) for i in range(x))],
        list(itertools.compress("abcdef", (Number(i % 2) for i in range(x)))),
    )


class Number:
    def __init__(self, value):
        self.value = value

    def __bool__(self):
        return self.value > 0

    def __eq__(self, other):
        return self.value == other.value


def elements_that_fail(x):
    taken = []

    def numbers():
        for i in range(x):
            taken.append(i)
            yield i if i == 1 else [i]

    return caught(lambda: list(itertools.chain.from_iterable(numbers()))), taken


# --- modules, typing ---


def missing_names_of_modules(x):
    return getattr(math, "nope", x), hasattr(math, "nope"), caught(lambda: math.nope)


def types_of_typing(x):
    return typing.Optional[int], typing.List[str], typing.cast(typing.Optional[bytes], x)


# --- weak references ---


def references(x):
    o = Number(x)
    r = weakref.ref(o)
    kept = {weakref.ref(Base): 1, r: 2} if x < 0 else {weakref.ref(Base): 1}
    return (
        (r() is o, weakref.ref(Base)() is Base, weakref.ref(Base) == weakref.ref(Base)),
        (kept[weakref.ref(Base)], weakref.ref(Point) in kept, r().value),
        [caught(weakref.ref, v) for v in (None, x, "text")],
    )


def weak_keys(x):
    class Inside:
        pass

    table = weakref.WeakKeyDictionary()
    table[Base] = x
    table[Inside] = [x]
    table[Base] = x + 1
    return table[Base], table[Inside], Point in table, len(table), table.get(Point, x)


def dispatched(x):
    @functools.singledispatch
    def show(v):
        return "object"

    @show.register
    def _(v: int):
        return "int"

    @show.register(list)
    def _(v):
        return [show(i) for i in v]

    return show(x), show([x, "a", [True]]), show(None), show.dispatch(bool)(1)


def no_pairs(x):
    seen = []
    for make in (dict, collections.OrderedDict, collections.Counter().update, {}.update):
        for pairs in (
            [(1, 2), (1, x, 3)],
            [(1, 2), "a"],
            [[]],
            [x],
            [(1, 2), None],
            x,
            [iter([x])],
        ):
            seen.append(caught(make, pairs))
    half = {}
    seen.append((caught(half.update, [(x, 2), "abc"]), half))
    return seen


def text_without_names(x):
    made = eval("lambda a, b=2: [a + b for _ in (1,)]")
    found = [eval(" 1+1\n"), eval("{'a': (1, 2.5)}"), made(x), exec("1 + 1"), caught(eval, "1+")]
    return found, eval("(lambda: 3)()") + x


def reversed_proxies(x):
    made = types.MappingProxyType({"a": 1, "b": x})
    return list(reversed(made)), list(reversed(made.items())), list(reversed(OUTSIDE))


OUTSIDE = types.MappingProxyType({"c": 1, "d": 2})


class Slotted:
    __slots__ = ("__weakref__",)


def nobody_refers_weakly(x):
    plain, slotted = Base(), Slotted()
    return plain.__weakref__, slotted.__weakref__, hasattr(x, "__weakref__")


PROGRAMS = [
    reversed_proxies,
    text_without_names,
    no_pairs,
    nobody_refers_weakly,
    names_given_and_implied,
    one_name_twice,
    patterns_that_do_not_fit,
    missing_attributes,
    mappings_of_their_own,
    one_key_twice,
    executed,
    builtins_of_its_own,
    compiled_text,
    wrong_text,
    text_writes,
    named_tuples,
    whole_namespaces,
    locks_nobody_has,
    texts_in_memory,
    dates,
    elements_of_generators,
    elements_that_fail,
    missing_names_of_modules,
    types_of_typing,
    references,
    weak_keys,
    dispatched,
]


def whole(f):
    return stator.compile(f, backend="eager", fullgraph=True, _keep_empty=True)


def shown(value):
    return repr(value)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_traced_as_a_whole(f):
    compiled = whole(f)
    for x in (3, 3, 5):
        assert shown(compiled(x)) == shown(f(x))
    assert compiled.metrics["breaks"] == []


def test_names_of_the_frame():
    """Before 3.13 a frame keeps the dict of its names, and the trace breaks."""
    compiled = stator.compile(evaluated, backend="eager", _keep_empty=True)
    for x in (3, 3, 5):
        assert compiled(x) == evaluated(x)


@pytest.mark.parametrize("name, value", [("extra", 1), ("shared", 2), ("method", None)])
def test_changes_of_a_namespace_are_seen(name, value, monkeypatch):
    compiled = whole(whole_namespaces)
    assert compiled(1) == whole_namespaces(1)
    monkeypatch.setattr(Base, name, value, raising=False)
    assert compiled(1) == whole_namespaces(1)
    monkeypatch.delattr(Base, "method")
    assert compiled(1) == whole_namespaces(1)


def reads_and_writes(x):
    names = list(vars(Base))
    Base.shared = x
    return names, Base.shared


def writes_and_reads(x):
    Base.shared = x
    return list(vars(Base)), vars(Base)["shared"]


@pytest.mark.parametrize("f", [reads_and_writes, writes_and_reads])
def test_a_class_that_is_read_whole_and_written(f, monkeypatch):
    monkeypatch.setattr(Base, "shared", 0)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    for x in (1, 2):
        assert compiled(x) == f(x)
        assert Base.shared == x
    with pytest.raises(stator.Unsupported):
        whole(f)(3)


def test_a_reference_is_given_out():
    compiled = stator.compile(gives_out_a_reference, backend="eager", _keep_empty=True)
    for x in (1, 1):
        lived, [reference], y = compiled(x)
        assert (lived, reference(), y) == (True, None, x)


outside_lock = threading.Lock()
outside_space = {"a": 1}


def takes_an_outside_lock(x):
    with outside_lock:
        return outside_lock.locked(), x


def takes_a_lock_twice(x):
    lock = threading.Lock()
    lock.acquire()
    return lock.acquire(False), lock.acquire(True, 0.01), x


def reads_a_file_for_the_message(x):
    return caught(compile, "return", __file__, "exec")


def writes_to_outside_names(x):
    exec("a = 2", outside_space)
    return x


def asks_whether_it_lives(x):
    o = Number(x)
    r = weakref.ref(o)
    del o
    return r() is None


def is_told_of_a_death(x):
    seen = []
    o = Number(x)
    r = weakref.ref(o, seen.append)
    del o
    return len(seen), r() is None


def compares_the_dead(x):
    a, b = Number(x), Number(x)
    same = a == b
    refs = weakref.ref(a), weakref.ref(b)
    del a, b
    return same, refs[0] == refs[1]


def gives_out_a_reference(x):
    o = Number(x)
    return weakref.ref(o)() is o, [weakref.ref(o)], x


class MakesNone(Exception):
    def __new__(cls):
        return None


def raises_no_exception(x):
    try:
        raise MakesNone
    except TypeError as e:
        return str(e), x


def raises_from_no_exception(x):
    try:
        raise IndexError from MakesNone
    except (TypeError, IndexError) as e:
        return repr(e), repr(e.__cause__), x


@pytest.mark.parametrize(
    "f",
    [
        raises_no_exception,
        raises_from_no_exception,
        asks_whether_it_lives,
        is_told_of_a_death,
        compares_the_dead,
        takes_an_outside_lock,
        takes_a_lock_twice,
        reads_a_file_for_the_message,
        writes_to_outside_names,
    ],
)
def test_breaks(f):
    with pytest.raises(stator.Unsupported):
        whole(f)(1)
    compiled = stator.compile(f, backend="eager", _keep_empty=True)
    assert shown(compiled(1)) == shown(f(1))
    assert not outside_lock.locked()
    outside_space.clear()


def keeps_a_function_of_text(x):
    space = {}
    exec("def f(a):\n    return a + 1", space)
    return space["f"]


def test_a_function_of_text_is_given_out():
    compiled = stator.compile(keeps_a_function_of_text, backend="eager", _keep_empty=True)
    assert compiled(1)(2) == 3
    assert compiled(1) is not compiled(1)


def keeps_a_named_tuple(x):
    Pair = collections.namedtuple("Pair", "a b")
    return Pair(x, [x])


def test_a_named_tuple_is_given_out():
    compiled = stator.compile(keeps_a_named_tuple, backend="eager", _keep_empty=True)
    for x in (1, 1, 2):
        pair = compiled(x)
        assert pair == (x, [x])
        assert repr(pair) == f"Pair(a={x}, b=[{x}])"
        assert type(pair).__module__ == __name__
    assert type(compiled(1)) is not type(compiled(1))


def half_way(x):
    chained = itertools.chain.from_iterable(iter([[1, 2], [x, 4], [5]]))
    true = filter(None, iter([0, x, 0, 2]))
    groups = itertools.groupby(iter([x, x, 2]))
    return chained, true, groups, (next(chained), next(true), next(groups)[0], next(chained))


def rest(result):
    chained, true, groups, seen = result
    return list(chained), list(true), [(k, list(g)) for k, g in groups], seen


def test_iterators_half_way_are_given_out():
    compiled = whole(half_way)
    for x in (3, 3, 5):
        assert rest(compiled(x)) == rest(half_way(x))


def shares(iterator):
    chained = itertools.chain.from_iterable(iter([1]) for _ in iterator)
    return next(chained), list(iterator), chained


def test_an_iterator_that_two_have():
    def f(x):
        first, left, chained = shares(iter([x, 2, 3]))
        return first, left, list(chained)

    compiled = whole(f)
    for x in (3, 3, 5):
        assert compiled(x) == f(x)
