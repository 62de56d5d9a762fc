"""Sources alone: what each kind reads, after every change, from every kind of object."""

import collections
import contextvars
import functools
import gc
import itertools
import math
import random
import sys
import threading
import types
import weakref

import pytest

from stator import _engine
from tests.stage.guard_tools import *
from tests.stage.test_raw import Bomb, arm, disarmed, no_user_code_runs

VAR = contextvars.ContextVar("var")
DEFAULTED = contextvars.ContextVar("defaulted", default="by default")
KEPT = [Plain(), {"a": 1}, Plain()]  # what weak references and views lead to


# kind: [(parent, key, index, value or GONE, [(change, value or GONE), …]), …]
def cached_link(function, key):
    """What functools.lru_cache keeps for a key: an object around the result."""
    wrapper = functools.lru_cache(function)
    wrapper(key)
    kept = [d for d in gc.get_referents(wrapper) if type(d) is dict and key in d]
    return kept[0][key]


CASES = {
    "FIXED": [(lambda: None, "the object", 0, "the object", [])],
    "GLOBALS": [(new_function, None, 0, lambda o: o.__globals__, [])],
    "BUILTINS": [(new_function, None, 0, lambda o: o.__builtins__, [])],
    "CLOSURE": [(closure, None, 0, lambda o: o.__closure__[0], []), (closure, None, 1, GONE, [])],
    "CELL": [
        (lambda: types.CellType(5), None, 0, 5, [(change("o.cell_contents = 6"), 6)]),
        (lambda: types.CellType(5), None, 0, 5, [(change("del o.cell_contents"), GONE)]),
        (types.CellType, None, 0, GONE, []),
    ],
    "DEFAULT": [
        (new_function, None, 0, "default", [(change("o.__defaults__ = None"), GONE)]),
        (new_function, None, 0, "default", [(change("o.__defaults__ = (7, 8)"), 7)]),
        (new_function, None, 1, GONE, []),
    ],
    "KWDEFAULT": [
        (new_function, "c", 0, "keyword", [(change("o.__kwdefaults__ = None"), GONE)]),
        (new_function, "c", 0, "keyword", [(change("o.__kwdefaults__['c'] = 1"), 1)]),
        (new_function, "d", 0, GONE, []),
    ],
    "DEFAULTS": [
        (new_function, None, 0, ("default",), [(change("o.__defaults__ = None"), None)]),
        (
            lambda: function.__wrapped__ if hasattr(function, "__wrapped__") else closure(),
            None,
            0,
            None,
            [],
        ),
    ],
    "KWDEFAULTS": [
        (new_function, None, 0, {"c": "keyword"}, [(change("o.__kwdefaults__ = None"), None)])
    ],
    "FUNCTION_ATTR": [
        (new_function, "__name__", 0, "f", [(change("o.__name__ = 'g'"), "g")]),
        (new_function, "__qualname__", 0, "new_function.<locals>.f", []),
        (new_function, "__doc__", 0, "doc", [(change("o.__doc__ = None"), None)]),
        (
            new_function,
            "__module__",
            0,
            new_function.__module__,
            [(change("del o.__module__"), None)],
        ),
        (new_function, "__code__", 0, lambda o: o.__code__, []),
        (new_function, "__closure__", 0, None, []),
        (new_function, "__globals__", 0, lambda o: o.__globals__, []),
        (new_function, "nonsense", 0, GONE, [(change("o.nonsense = 1"), GONE)]),
        (new_function, "__dict__", 0, GONE, [(change("o.a = 1"), {"a": 1})]),
        (
            lambda: attributes(new_function(), __annotations__={"a": 1}),
            "__annotations__",
            0,
            {"a": 1},
            [],
        ),
    ],
    "FIELD": [
        (
            new_function,
            type(function).__dict__["__annotations__"],
            0,
            GONE,
            [(change("o.__annotations__ = {}"), {})],
        ),
        (
            lambda: type("T", (), {"__doc__": "d"}),
            type.__dict__["__doc__"],
            0,
            "d",
            [(change("o.__doc__ = 1"), 1)],
        ),
        (
            lambda: type("T", (), {"__doc__": "d"}),
            type.__dict__["__doc__"],
            0,
            "d",
            [(lambda o: setattr(o, "__doc__", property(Bomb._off)), GONE)],
        ),
        (lambda: type("T", (), {}), type.__dict__["__annotations__"], 0, GONE, []),
        (
            lambda: type("T", (), {"__annotations__": {}}),
            type.__dict__["__annotations__"],
            0,
            {},
            [],
        ),
        (lambda: types.MethodType(Bomb(), 1), types.MethodType.__dict__["__doc__"], 0, GONE, []),
        (
            lambda: types.MethodType(new_function(), 1),
            types.MethodType.__dict__["__doc__"],
            0,
            "doc",
            [],
        ),
        (
            lambda: ValueError(1, 2),
            BaseException.__dict__["args"],
            0,
            (1, 2),
            [(change("o.args = ()"), ())],
        ),
        (lambda: 5, int.__dict__["real"], 0, 5, []),
        (lambda: function.__code__, types.CodeType.__dict__["co_name"], 0, "function", []),
        (lambda: collections.deque(maxlen=3), collections.deque.__dict__["maxlen"], 0, 3, []),
        (lambda: 5, float.__dict__["real"], 0, GONE, []),
        (lambda: 5, "no descriptor", 0, GONE, []),
    ],
    "OWN_DICT": [(Plain, None, 0, lambda o: o, [(change("o.__dict__"), lambda o: o.__dict__)])],
    "TYPE": [(Derived, None, 0, Derived, [(change("o.__class__ = o.__class__.__mro__[1]"), Base)])],
    "TYPE_ATTR": [
        (lambda: type("T", (Base,), {}), "shared", 0, "base", [(change("o.shared = 1"), 1)]),
        (lambda: type("T", (Base,), {}), "absent", 0, GONE, [(change("o.absent = 1"), 1)]),
        (
            lambda: type("T", (type("B", (), {"a": 1}),), {}),
            "a",
            0,
            1,
            [
                (change("o.__mro__[1].a = 2"), 2),
                (change("o.a = 3"), 3),
                (change("del o.a"), 2),
                (change("del o.__mro__[1].a"), GONE),
            ],
        ),
        (lambda: int, "bit_length", 0, int.__dict__["bit_length"], []),
    ],
    "TYPE_BASE": [
        (lambda: Derived, None, 1, Base, []),
        (lambda: Derived, None, 3, GONE, []),
        (
            lambda: type("T", (Base,), {}),
            None,
            1,
            Base,
            [(lambda o: setattr(o, "__bases__", (Derived,)), Derived)],
        ),
    ],
    "ATTR": [
        (lambda: attributes(Plain(), a=1), "a", 0, 1, [(change("o.a = 2"), 2)]),
        (lambda: attributes(Plain(), a=1), "a", 0, 1, [(change("del o.a"), GONE)]),
        (lambda: attributes(Plain(), a=1), "a", 0, 1, [(change("o.__dict__['a'] = 2"), 2)]),
        (lambda: attributes(Plain(), a=1), "a", 0, 1, [(change("o.__dict__ = {}"), GONE)]),
        (lambda: attributes(Plain(), b=1), "a", 0, GONE, [(change("o.a = 2"), 2)]),
        (lambda: attributes(Plain(), a=1), "__class__", 0, GONE, []),
    ],
    "DICT": [
        (
            lambda: attributes(Plain(), a=1),
            None,
            0,
            {"a": 1},
            [(change("o.b = 2"), {"a": 1, "b": 2})],
        ),
        (Plain, None, 0, {}, [(change("o.__dict__ = {'c': 1}"), {"c": 1})]),
        (Slotted, None, 0, GONE, []),
    ],
    "SLOT": [
        (
            lambda: attributes(Slotted(), one=1),
            "one",
            offset_of("one"),
            1,
            [(change("o.one = 2"), 2)],
        ),
        (
            lambda: attributes(Slotted(), one=1),
            "one",
            offset_of("one"),
            1,
            [(change("del o.one"), GONE)],
        ),
        (Slotted, "two", offset_of("two"), GONE, [(change("o.two = 2"), 2)]),
        (Slotted, "two", offset_of("two") + 8, GONE, []),
        (Slotted, "two", 8, GONE, []),
        (Slotted, "two", -8, GONE, []),
    ],
    "ITEM": [
        (lambda: {"k": 1}, "k", 0, 1, [(change("o['k'] = 2"), 2)]),
        (lambda: {"k": 1}, "k", 0, 1, [(change("o.clear()"), GONE)]),
        (lambda: {"k": 1}, "j", 0, GONE, [(change("o['j'] = 2"), 2)]),
        (lambda: {3: 1}, 3, 0, 1, [(change("del o[3]; o[4] = 0; o[3] = 9"), 9)]),
        (lambda: {None: 1}, None, 0, 1, []),
        (lambda: collections.defaultdict(list), "k", 0, GONE, []),
        (lambda: collections.OrderedDict(k=1), "k", 0, 1, [(change("o.move_to_end('k')"), 1)]),
    ],
    "TENSOR_ITEM": [
        (lambda: {"k": 1}, "k", 0, 1, [(change("o['k'] = 2"), 2), (change("o.clear()"), GONE)]),
        (lambda: {"k": 1}, "j", 0, GONE, [(change("o['j'] = 2"), 2)]),
    ],
    "DICT_KEY": [
        (lambda: {"a": 1, "b": 2}, None, 1, "b", [(change("o['a'] = o.pop('a')"), "a")]),
        (lambda: {"a": 1}, None, 1, GONE, [(change("o[7] = 1"), 7)]),
        (lambda: {}, None, -1, GONE, []),
    ],
    "DICT_VALUE": [
        (lambda: {"a": 1, "b": 2}, None, 1, 2, [(change("o['a'] = o.pop('a')"), 1)]),
        (lambda: {"a": 1, "b": 2}, None, 1, 2, [(change("del o['a']"), GONE)]),
        (lambda: {"a": 1}, None, 1, GONE, [(change("o[7] = 3"), 3)]),
        (lambda: {}, None, -1, GONE, []),
    ],
    "LIST_ITEM": [
        (lambda: [1, 2], None, 1, 2, [(change("o[1] = 3"), 3), (change("o.pop()"), GONE)]),
        (lambda: [1, 2], None, -1, GONE, []),
    ],
    "TUPLE_ITEM": [(lambda: (1, 2), None, 1, 2, []), (lambda: (1,), None, 1, GONE, [])],
    "DEQUE_ITEM": [
        (lambda: collections.deque(range(200)), None, 150, 150, [(change("o.rotate(1)"), 149)]),
        (lambda: collections.deque([1]), None, 0, 1, [(change("o.clear()"), GONE)]),
        (lambda: type("D", (collections.deque,), {"__getitem__": Bomb._off})([1]), None, 0, 1, []),
        (lambda: collections.deque([1]), None, -1, GONE, []),
    ],
    "SET_ITEM": [
        (lambda: {1}, None, 0, 1, [(change("o.clear()"), GONE), (change("o.add(2)"), 2)]),
        (lambda: frozenset("abc"), None, 2, lambda o: list(o)[2], []),
        (lambda: {1}, None, 1, GONE, []),
    ],
    "METHOD_FUNC": [(lambda: Program.passes.__get__(1), None, 0, Program.passes, [])],
    "METHOD_SELF": [
        (lambda: Program.passes.__get__(1), None, 0, 1, []),
        (lambda: math.sqrt, None, 0, math, []),
        (lambda: "text".upper, None, 0, "text", []),
        (lambda: (5).__add__, None, 0, 5, []),
    ],
    "WRAPPED": [
        (lambda: staticmethod(function), None, 0, function, []),
        (lambda: classmethod(function), None, 0, function, []),
        (lambda: classmethod(None), None, 0, None, []),
    ],
    "PROPERTY_GET": [(lambda: property(function), None, 0, function, [])],
    "PROPERTY_SET": [
        (lambda: property(None, function), None, 0, function, []),
        (lambda: property(function), None, 0, None, []),
    ],
    "PROPERTY_DEL": [(lambda: property(None, None, function), None, 0, function, [])],
    "PARTIAL_FUNC": [(lambda: functools.partial(function, 1), None, 0, function, [])],
    "PARTIAL_ARGS": [(lambda: functools.partial(function, 1), None, 0, (1,), [])],
    "PARTIAL_KEYWORDS": [
        (
            lambda: functools.partial(function, k=1),
            None,
            0,
            {"k": 1},
            [(change("o.keywords['k'] = 2"), {"k": 2})],
        )
    ],
    "CACHED": [
        (lambda: cached_link(lambda k: KEPT[1], 5), None, 0, KEPT[1], []),
        (Plain, None, 0, GONE, []),
    ],
    "WEAKREF": [
        (lambda: weakref.ref(KEPT[0]), None, 0, KEPT[0], []),
        (lambda: weakref.ref(Plain()), None, 0, None, []),
        (lambda: weakref.proxy(KEPT[0]), None, 0, GONE, []),
    ],
    "SUPER_TYPE": [(lambda: super(Derived, Derived()), None, 0, Derived, [])],
    "SUPER_SELF": [(lambda: super(Plain, KEPT[2]), None, 0, KEPT[2], [])],
    "VIEW_DICT": [
        (lambda: KEPT[1].keys(), None, 0, KEPT[1], []),
        (lambda: KEPT[1].values(), None, 0, KEPT[1], []),
        (lambda: KEPT[1].items(), None, 0, KEPT[1], []),
        (lambda: types.MappingProxyType(KEPT[1]), None, 0, KEPT[1], []),
    ],
    "DEFAULT_FACTORY": [
        (
            lambda: collections.defaultdict(list),
            None,
            0,
            list,
            [(change("o.default_factory = None"), None)],
        ),
    ],
    "CONTEXT_VAR": [
        (lambda: VAR, None, 0, GONE, [(lambda o: o.set("now"), "now")]),
        (lambda: DEFAULTED, None, 0, "by default", [(lambda o: o.set("set"), "set")]),
    ],
    "TENSOR_GRAD": [(Plain, None, 0, GONE, [])],
    "SIZE": [(Plain, None, 0, GONE, [])],  # of tensors: tests/numbers
    "STACK": [(Plain, None, 0, GONE, [])],  # of torch's modes: tests/tensor
    "ARRAY": [(Plain, None, 0, GONE, [])],  # of NumPy: tests/tensor
    "GRAPH": [(Plain, None, 0, GONE, [])],  # in no register, ever
    "STRIDE": [(Plain, None, 0, GONE, [])],
    "DRAW": [
        (Plain, (0,), 0, GONE, []),
        (
            lambda: random.Random(3),
            (0,),
            0,
            random.Random(3).random(),
            [(lambda o: o.seed(4), random.Random(4).random())],
        ),
        (lambda: random.Random(3), (7,), 0, random.Random(3).getrandbits(7), []),
        (
            lambda: random.Random(3),
            (0, 0),
            0,
            [*map(random.Random(3).uniform, (0, 0), (1, 1))][1],
            [],
        ),
    ],  # fmt: skip
    "TEXT": [
        (Plain, None, 0, GONE, []),
        (lambda: 12, None, 0, "12", []),
        (lambda: -0.5, None, 0, "-0.5", []),
        (lambda: True, None, 0, GONE, []),
        (lambda: "12", None, 0, GONE, []),
    ],
    "ITERATOR_FIELD": [
        (lambda: iter(KEPT), None, 0, KEPT, [(change("list(o)"), GONE)]),
        (lambda: iter(KEPT), None, 1, GONE, []),
        (lambda: iter(KEPT), None, -1, GONE, []),
        (lambda: iter(range(3)), None, 0, GONE, []),
    ],
    "THREAD_DICT": [
        (threading.local, None, 0, lambda o: vars(o), [(change("o.x = 1"), lambda o: vars(o))]),
    ],
    "SLICE_FIELD": [
        (lambda: slice(1, 2, 3), None, 0, 1, []),
        (lambda: slice(1, 2, 3), None, 1, 2, []),
        (lambda: slice(1, 2, 3), None, 2, 3, []),
        (lambda: slice(1, 2, 3), None, 3, GONE, []),
    ],
}
ROWS = [(kind, *row) for kind, rows in CASES.items() for row in rows]


def test_every_source_has_its_cases():
    assert set(CASES) | {"LOCAL", "FUNCTION", "CALLER", "HANDLED", "EXPR"} == set(SOURCES)


@pytest.mark.parametrize("kind, make, key, index, value, changes", ROWS, ids=lambda v: None)
def test_source(kind, make, key, index, value, changes):
    parent = make()
    p = Program([("NEED", below(L(), (kind, key, index)))], parent)
    if kind == "FIXED":
        p = Program([("NEED", ((kind, key, index),))], parent)

    def is_now(value):
        if callable(value) and getattr(value, "__name__", "") == "<lambda>":
            value = value(parent)
        read = _engine.source_read(kind, parent, key, index)
        registers = p.registers()
        if value is GONE:
            assert read == () and isinstance(registers, int)
            assert p.reason().endswith(": now not there")
        else:
            assert read == (value,) and registers[-1] == value
            assert type(read[0]) is type(value)
            if not isinstance(value, int | float | str | tuple | dict):
                assert read[0] is value is registers[-1]

    def steps():
        is_now(value)
        is_now(value)  # hints and memos of the first pass
        for alter, then in changes:
            alter(parent)
            is_now(then)
            is_now(then)

    contextvars.copy_context().run(steps)


def test_local_and_function():
    p = Program([("NEED", L(1, "y")), ("NEED", (("FUNCTION", None, 0),))], 1, 2)
    assert p.registers() == [2, function]
    p.slots = [1]
    assert p.reason() == "L['y']: now not there"
    p.slots = [1, UNBOUND]
    assert not p.passes()


def test_function_is_the_one_that_is_called():
    p = Program([("NEED", (("FUNCTION", None, 0),))])
    assert p.registers() == [function]
    p.function = new_function()
    assert p.registers() == [p.function]


def with_own_names(n):
    """A function whose parts are all its own; those of one code are called with one entry."""
    names = {"n": n, "__builtins__": {"n": n}}
    cell = types.CellType(n)
    f = types.FunctionType(closure().__code__, names, f"f{n}", (n,), (cell,))
    f.__kwdefaults__ = {"a": n}
    return f


@pytest.mark.parametrize(
    "kind, key, part",
    [
        ("GLOBALS", None, lambda f: f.__globals__),
        ("BUILTINS", None, lambda f: f.__builtins__),
        ("CLOSURE", None, lambda f: f.__closure__[0]),
        ("DEFAULT", None, lambda f: f.__defaults__[0]),
        ("DEFAULTS", None, lambda f: f.__defaults__),
        ("KWDEFAULT", "a", lambda f: f.__kwdefaults__["a"]),
        ("KWDEFAULTS", None, lambda f: f.__kwdefaults__),
        ("FUNCTION_ATTR", "__name__", lambda f: f.__name__),
    ],
)
def test_parts_are_those_of_the_function_that_is_called(kind, key, part):
    p = Program([("NEED", below((("FUNCTION", None, 0),), (kind, key, 0)))])
    functions = [with_own_names(1), with_own_names(2)]
    for p.function in functions * 2:
        assert p.registers()[-1] is part(p.function)


def test_a_key_with_its_own_hash_is_found_by_identity():
    bomb = disarmed(5)
    d = {1: 1, bomb: "value"}
    arm(bomb)
    p = Program([("NEED", below(L(), ("ITEM", bomb)))], d)
    assert p.registers()[-1] == "value"
    p.slots = [{1: 1}]
    assert not p.passes()
    object.__setattr__(bomb, "armed", False)


def test_sources_are_one_for_one_place():
    nan = float("nan")
    keys = [
        1,
        True,
        1.0,
        0.0,
        -0.0,
        "a",
        b"a",
        None,
        (1, 2),
        (1, True),
        (1, 2.0),
        ((0.0,),),
        ((-0.0,),),
    ]
    keys += [
        2**80,
        1j,
        complex(0.0, -0.0),
        complex(0.0, 0.0),
        frozenset({1}),
        frozenset({True}),
        nan,
    ]
    keys += [-nan, slice(1), slice(True), range(2), range(0, 2, 1), Plain, int, ...]
    paths = [below(L(), ("ITEM", key)) for key in keys]
    ids = [number for _, number in _engine.guard_sources(paths + paths)]
    for i, j in itertools.combinations(range(len(keys)), 2):
        same = ids[i] == ids[j]
        assert same == (keys[i] == keys[j] and type(keys[i]) is range), (keys[i], keys[j])
    assert ids[: len(keys)] == ids[len(keys) :]
    equal = ["".join(["te", "xt"]), "".join(["t", "ext"])]
    assert equal[0] is not equal[1]
    paths = [below(L(), ("ITEM", key)) for key in [*equal, 10**40, 10**39 * 10, 0.5, 1.5 - 1.0]]
    ids = [number for _, number in _engine.guard_sources(paths)]
    assert ids[0] == ids[1] and ids[2] == ids[3] and ids[4] == ids[5]
    fixed = [(("FIXED", value, 0),) for value in (10**40, 10**39 * 10)]
    ids = [number for _, number in _engine.guard_sources(fixed)]
    assert ids[0] != ids[1]


def test_text_of_sources():
    path = below(
        L(0, "self"), ("ATTR", "weight"), ("ITEM", "k"), ("LIST_ITEM", None, 3), ("TYPE", None)
    )
    assert _engine.guard_sources([path])[0][0] == "type(L['self'].weight['k'][3])"
    f = (("FUNCTION", None, 0),)
    assert _engine.guard_sources([below(f, ("GLOBALS", None), ("ITEM", "g"))])[0][0] == (
        "function.__globals__['g']"
    )
    odd = below(
        L(), ("ATTR", "\ud800"), ("ITEM", Bomb()), ("ITEM", "a" * 1000), ("ATTR", "two words")
    )
    text = _engine.guard_sources([odd])[0][0]
    assert "Bomb object" in text and len(text) < 400 and "'two words'" in text


def test_loads_come_once_and_parents_first():
    path = below(L(), ("ATTR", "a"), ("LIST_ITEM", None, 0))
    o = attributes(Plain(), a=[5])
    p = Program(
        [("VALUE", path, 5), ("LENGTH", path[:2], None, 1), ("NEED", path), ("NEED", L())], o
    )
    assert p.registers() == [o, o.a, 5]
    assert [row[0] for row in p.program.rows()] == ["L['x'].a[0] == 5", "len(L['x'].a) == 1"]


# --- whatever the world looks like ---


def zoo():
    def generator():
        yield 1

    class Meta(type):
        __eq__ = __hash__ = __getattribute__ = Bomb._off

    odd = [
        None,
        1,
        True,
        2**80,
        1.5,
        "a",
        b"a",
        bytearray(b"a"),
        [],
        [1, 2],
        (),
        (1, 2),
        {},
        {"a": 1},
        {1, 2},
    ]
    odd += [
        frozenset("a"),
        collections.deque([1]),
        collections.OrderedDict(a=1),
        range(3),
        slice(1),
        1j,
    ]
    odd += [
        collections.defaultdict(list, a=1),
        object(),
        Plain(),
        attributes(Plain(), a=1),
        Slotted(),
    ]
    odd += [
        attributes(Slotted(), one=1),
        Bomb(),
        Bomb,
        Plain,
        int,
        type,
        object,
        Meta,
        function,
        closure(),
    ]
    odd += [len, "a".upper, [].append, (1).__add__, Program.passes, Bomb.__init__, property()]
    odd += [
        staticmethod(len),
        classmethod(len),
        functools.partial(len),
        types.CellType(),
        types.CellType(1),
    ]
    odd += [
        weakref.ref(Plain),
        math,
        sys,
        types.ModuleType("m"),
        {}.keys(),
        {1: 2}.items(),
        generator(),
        ...,
    ]
    odd += [
        types.MappingProxyType({"a": 1}),
        super(Plain, Plain()),
        function.__code__,
        VAR,
        DEFAULTED,
    ]
    odd += [memoryview(b"a"), iter([]), sys._getframe(), ValueError(1), types.SimpleNamespace(a=1)]
    odd += [
        types.ModuleType.__new__(types.ModuleType),
        super.__new__(super),
        property.__new__(property),
    ]
    odd += [staticmethod.__new__(staticmethod), Exception.__new__(Exception), int.__dict__["real"]]
    return odd


KEYS = ["a", "__name__", 1, (1, 2), None, Plain, 1.5, "\ud800", Bomb(), b"a", -1]
INDEXES = [0, 1, 2, -1, 8, 16, 24, 10**9, -(10**9), 2**62, -(2**62)]


def local(hint, index=0, name="x"):
    """The symbol of a local in an expression."""
    return ("symbol", (L(index, name), hint))


EXPRESSIONS = [
    # expression, its text, what is there and what it gives then
    (("add", local(3), 1), "L['x'] + 1", [(3, 4), (-5, -4), (2**63 - 1, GONE), (2**63, GONE)]),
    (("add", local(3), 1), "L['x'] + 1", [(True, GONE), (1.0, GONE), (None, GONE), ("a", GONE)]),
    (("add", local(0.5), 1), None, [(0.25, 1.25), (1, GONE), (float("inf"), float("inf"))]),
    (("floordiv", local(7), 2), None, [(7, 3), (-7, -4), (0, 0)]),
    (("floordiv", 7, local(2)), None, [(2, 3), (0, GONE), (-2, -4)]),
    (("mul", local(2), local(2)), None, [(3, 9), (2**40, GONE)]),
    (("le", local(2), 5), "L['x'] <= 5", [(3, True), (9, False)]),
    (("float", local(2)), "float(L['x'])", [(3, 3.0), (2**53, 2.0**53)]),
    (("neg", local(0.5)), "-L['x']", [(0.0, -0.0), (-0.0, 0.0), (5, GONE)]),
    (("max", local(2), 5), None, [(3, 5), (9, 9)]),
]


@pytest.mark.parametrize("tree, text, cases", EXPRESSIONS, ids=lambda v: None)
def test_an_expression_is_computed_from_registers(tree, text, cases):
    path = (("EXPR", tree, 0),)
    p = Program([("NEED", path)], 1)
    if text is not None:
        assert _engine.guard_sources([path])[0][0] == text
    for now, value in cases:
        p.slots = [now]
        registers = p.registers()
        if value is GONE:
            assert isinstance(registers, int)
            assert "L['x'] = " in p.reason()
        else:
            assert repr(registers[-1]) == repr(value) and type(registers[-1]) is type(value)


def test_each_expression_is_a_place_of_its_own():
    path = (("EXPR", ("add", local(3), 1), 0),)
    assert len({number for _, number in _engine.guard_sources([path, path])}) == 2


@pytest.mark.parametrize("kind", [kind for kind in SOURCES if kind != "EXPR"])
def test_no_source_minds_what_it_is_read_from(kind):
    objects, keys = zoo(), KEYS
    if kind in (
        "KWDEFAULT",
        "FUNCTION_ATTR",
        "FIELD",
        "TYPE_ATTR",
        "ATTR",
        "ITEM",
        "TENSOR_ITEM",
    ):
        indexes = [0]
    else:
        keys, indexes = ["a"], INDEXES
    for parent, key, index in itertools.product(objects, keys, indexes):
        read = _engine.source_read(kind, parent, key, index)
        p = Program([("NEED", below(L(), (kind, key, index)))], parent)
        registers = p.registers()
        p.reason()
        if kind not in ("LOCAL", "FUNCTION", "CALLER", "HANDLED"):
            assert isinstance(registers, list) == (len(read) == 1)
        for other in (None, Bomb(), 5, {"a": 2}):  # hints from another object
            p.slots = [other]
            p.registers()
            p.slots = [parent]
            assert isinstance(p.registers(), list) == isinstance(registers, list)


OBJECTS = {
    "KEYS": ("a", 1),
    "ATTR_NAMES": ("a",),
    "SET_ITEMS": (1, 2),
    "BYTES": b"a",
    "TYPE_FLAGS": 5,
    "MRO": Plain.__mro__,
    "CODE": function.__code__,
    "TYPE_LOOKUP": ("a",),
    "NO_ATTR": "a",
    "TYPE": int,
    "EXPR": ("lt", ("symbol", (L(), 3)), ("symbol", (L(1, "y"), 5))),
}


@pytest.mark.parametrize("kind", GUARDS)
def test_no_guard_minds_what_it_looks_at(kind):
    objects = zoo()
    for index, given in itertools.product(
        [0, 1, 56], [OBJECTS.get(kind, "a"), OBJECTS.get(kind, Plain)]
    ):
        p = Program([(kind, L(), given, index, L(1, "y")), ("NEED", L(1, "y"))], 1, 2)
        p.program.rows()
        for a, b in zip(objects, objects[1:] + objects[:1]):
            p.slots = [a, b]
            passes = p.passes()
            assert p.passes() == passes
            assert (p.reason() is None) == passes
