"""Guards alone: every kind, on objects that change in every way."""

import collections
import functools
import itertools
import math
import sys
import types
from pathlib import Path

import pytest

from stator import _engine
from tests.stage.guard_tools import *
from tests.stage.test_raw import Bomb, arm, disarmed, no_user_code_runs

# --- values, bit for bit ---

OBJECT = object()
VALUES = [0, 1, -1, True, False, None, ..., NotImplemented, 2**31, 2**62, 2**64, -(2**64), 10**50]
VALUES += [0.0, -0.0, 1.0, float("inf"), -float("inf"), float("nan"), -float("nan"), 1e-320, 0.1]
VALUES += [
    0j,
    -0j,
    complex(0.0, -0.0),
    complex(-0.0, 0.0),
    1 + 0j,
    "",
    "a",
    "b",
    "ab",
    "é",
    "€",
    "𝄞",
]
VALUES += [
    "\0",
    "a\0",
    "\ud800",
    b"",
    b"a",
    b"\0",
    (),
    (0,),
    (False,),
    (0.0,),
    (-0.0,),
    ((1,),),
    ((True,),),
]
VALUES += [
    ("a", (b"a", 1.5, None)),
    frozenset(),
    frozenset({1}),
    frozenset({True}),
    frozenset({(1, 2)}),
]
VALUES += [
    range(0),
    range(1),
    range(1, 1),
    range(0, 1, 1),
    range(0, 2),
    range(0, 2, 2),
    range(10**30),
]
VALUES += [slice(None), slice(1), slice(1, None), slice(True), slice(1, 2, 3), slice("a", 1.0, ())]
VALUES += [function.__code__, closure.__code__, int, bool, OBJECT]


def fresh(value):
    """The same value in another object, where that can be had."""
    if type(value) is tuple:
        return tuple([fresh(item) for item in value])
    if type(value) is frozenset:
        return frozenset([fresh(item) for item in value])
    if type(value) is slice:
        return slice(fresh(value.start), fresh(value.stop), fresh(value.step))
    if type(value) is range:
        return range(fresh(value.start), fresh(value.stop), fresh(value.step))
    if type(value) in (int, float):
        return type(value)(repr(value)) if value == value else value * 1.0
    if type(value) is complex:
        return complex(fresh(value.real), fresh(value.imag))
    if type(value) in (str, bytes):
        return type(value)().join([value[:1], value[1:]])
    return value


def same_by_hand(a, b):
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, frozenset):
        return len(a) == len(b) and all(map(same_by_hand, a, b))
    if type(a) is float:
        return a.hex() == b.hex() and math.copysign(1, a) == math.copysign(1, b)
    if type(a) is complex:
        return same_by_hand(a.real, b.real) and same_by_hand(a.imag, b.imag)
    if type(a) in (slice, range):
        return same_by_hand((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return a is b if type(a) in (types.CodeType, type, object) else a == b


@pytest.mark.parametrize("index", range(len(VALUES)))
def test_value(index):
    value = VALUES[index]
    p = guard("VALUE", value, value)
    assert p.passes() and p.reason() is None
    p.slots = [fresh(value)]
    assert p.passes(), "an equal object is as good"
    for other in VALUES:
        p.slots = [other]
        assert p.passes() == same_by_hand(other, value), other
        if not p.passes():
            assert p.reason().startswith(p.program.rows()[0][0] + ": now ")


def test_value_of_subclasses_and_others_is_identity():
    for make in [
        type("I", (int,), {}),
        type("S", (str,), {}),
        Plain,
        list,
        lambda: type("T", (tuple,), {})(),
    ]:
        value = make()
        p = guard("VALUE", value, value)
        assert p.passes()
        p.slots = [make()]
        assert not p.passes()
    assert not guard("VALUE", type("I", (int,), {})(3), 3).passes()


def test_value_of_sets_that_iterate_differently():
    a, b = frozenset([8, 0]), frozenset([0, 8])
    assert a == b and list(a) != list(b)
    p = guard("VALUE", a, a)
    assert p.passes()
    p.slots = [b]
    assert not p.passes()


def test_value_of_deep_tuples():
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    p = guard("VALUE", deep, deep)
    assert p.passes()
    p.slots = [()]
    assert not p.passes() and p.reason()
    unwind = deep
    while unwind:
        deep, unwind = unwind, unwind[0]  # one at a time: CPython's own dealloc nests
    Program([("VALUE", below(L(), ("ITEM", ((((1,),),),))), 1)], {((((1,),),),): 1})


# --- guards ---


def test_type():
    p = guard("TYPE", 1, int)
    assert p.passes()
    p.slots = ["a"]
    assert p.reason() == "type(L['x']) is int: now str"
    p.slots = [True]
    assert p.reason() == "type(L['x']) is int: now bool"

    class Local:
        pass

    p = guard("TYPE", Local(), Local)
    assert p.passes()
    p.slots[0].__class__ = Plain
    assert p.reason().endswith(f".Local: now {Plain.__module__}.Plain")


def test_is_and_is_not():
    o = Plain()
    p, q = guard("IS", o, o), guard("IS_NOT", 5, o)
    assert p.passes() and q.passes()
    p.slots = q.slots = [Plain()]
    assert not p.passes() and q.passes()
    q.slots = [o]
    assert not q.passes()
    assert guard("IS", None, None).passes()
    assert guard("IS_NOT", 1, None).passes() and not guard("IS_NOT", None, None).passes()


def test_same_and_not_same():
    one, other = [1], [1]
    p = Program([("SAME", L(0, "a"), None, 0, L(1, "b"))], one, one)
    q = Program([("NOT_SAME", L(0, "a"), None, 0, L(1, "b"))], one, other)
    assert p.passes() and q.passes()
    p.slots, q.slots = q.slots, p.slots
    assert p.reason() == "L['a'] is L['b']: now another object"
    assert q.reason() == "L['a'] is not L['b']: now the same object"


CONTAINERS = [list, tuple, dict, set, frozenset, str, bytes, bytearray, collections.deque, range]
CONTAINERS += [
    collections.OrderedDict,
    collections.Counter,
    type("L", (list,), {"__len__": Bomb._off}),
]


@pytest.mark.parametrize("make", CONTAINERS)
def test_length_and_emptiness(make):
    given = range(2) if make is range else b"ab" if make in (bytes, bytearray) else "ab"
    given = {1: 1, 2: 2} if issubclass(make, dict) else given
    two = given if make is range else make(given)
    empty = make() if make is not range else range(0)
    length, some, none = (
        guard("LENGTH", two, None, 2),
        guard("EMPTY", two, None, 0),
        guard("EMPTY", empty, None, 1),
    )
    assert length.passes() and some.passes() and none.passes()
    length.slots = some.slots = [empty]
    none.slots = [two]
    assert length.reason() == "len(L['x']) == 2: now 0"
    assert some.reason() == "bool(len(L['x'])) is True: now 0"
    assert none.reason() == "bool(len(L['x'])) is False: now 2"
    for odd in [1, None, Plain(), Bomb(), int]:
        length.slots = some.slots = none.slots = [odd]
        assert not length.passes() and not some.passes() and not none.passes()


def test_length_of_views():
    d = {1: 1}
    for view in [d.keys(), d.values(), d.items(), types.MappingProxyType(d)]:
        assert guard("LENGTH", view, None, 1).passes()
    assert not guard("LENGTH", range(10**30), None, 1).passes()


@pytest.mark.parametrize(
    "make", [dict, collections.OrderedDict, collections.Counter, type("D", (dict,), {})]
)
def test_keys(make):
    d = make(a=1, b=2)
    p = guard("KEYS", d, ("a", "b"))
    assert p.passes() and p.passes()
    d["a"] = 5
    assert p.passes(), "values do not matter"
    d["c"] = 1
    assert p.reason() == "list(L['x']) == ('a', 'b'): now ['a', 'b', 'c']"
    del d["c"]
    assert p.passes() and p.passes()
    d["a"] = d.pop("a")
    assert p.reason().endswith("now ['b', 'a']")
    d["b"] = d.pop("b")
    assert p.passes()
    del d["a"]
    assert not p.passes()
    for odd in [1, [1, 2], Bomb(), "ab", {"a", "b"}]:
        p.slots = [odd]
        assert not p.passes() and p.reason()


def test_keys_of_instances_that_share_theirs():
    o = attributes(Plain(), a=1, b=2)
    p = guard("KEYS", vars(o), ("a", "b"))
    assert p.passes()
    o.c = 3
    assert not p.passes()
    del o.c
    assert p.passes()
    del o.a
    o.a = 1
    assert not p.passes()


def test_keys_by_value_or_identity():
    one, other, bomb = Plain(), Plain(), disarmed(3)
    d = {1: 1, one: 2, bomb: 3}
    arm(bomb)
    p = guard("KEYS", d, (1, one, bomb))
    assert p.passes()
    p.slots = [{True: 1, one: 2}]
    assert not p.passes()
    object.__setattr__(bomb, "armed", False)
    p.slots = [{1: 1, other: 2, bomb: 3}]
    arm(bomb)
    assert not p.passes() and p.reason()
    object.__setattr__(bomb, "armed", False)


def test_keys_of_an_ordered_dict_by_its_own_order():
    d = collections.OrderedDict(a=1, b=2)
    p = guard("KEYS", d, ("a", "b"))
    assert p.passes()
    d.move_to_end("a")
    assert p.reason().endswith("now ['b', 'a']")
    d.move_to_end("b")
    assert p.passes()
    dict.__delitem__(d, "a")
    dict.__setitem__(d, "z", 1)
    assert not p.passes()


def test_attr_names():
    o = attributes(Plain(), a=1, b=2)
    p = guard("ATTR_NAMES", o, ("a", "b"))
    assert p.passes()
    o.a = 7
    assert p.passes()
    o.c = 1
    assert p.reason() == "list(L['x'].__dict__) == ('a', 'b'): now ['a', 'b', 'c']"
    del o.c
    assert p.passes()
    vars(o)
    assert p.passes()
    o.__dict__["d"] = 1
    assert not p.passes()
    del o.d, o.a
    o.a = 1
    assert not p.passes()
    empty = guard("ATTR_NAMES", Plain(), ())
    assert empty.passes()
    empty.slots = [5]
    assert empty.passes()
    empty.slots = [o]
    assert not empty.passes()


def test_absent():
    d = {"a": 1}
    p = guard("ABSENT", d, "b")
    assert p.passes()
    d["b"] = 2
    assert p.reason() == "'b' not in L['x']: now 2"
    del d["b"]
    assert p.passes()
    bomb = disarmed(hash("b"))
    d[bomb] = 1
    arm(bomb)
    assert not p.passes() and p.reason()
    object.__setattr__(bomb, "armed", False)
    for odd in [1, Bomb(), "a", ["b"]]:
        p.slots = [odd]
        assert not p.passes() and p.reason()
    assert not guard("ABSENT", {}, Bomb()).passes(), "only code could tell"


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_has_key_and_lacks_key(kind):
    handles, marked = kind({7: "a", 8: "b"}), kind({8: True})
    p = Program([("HAS_KEY", L(0, "a"), None, 1, L(1, "b"))], handles, marked)
    q = Program([("LACKS_KEY", L(0, "a"), None, 0, L(1, "b"))], handles, marked)
    assert p.passes() and q.passes()
    q.slots = p.slots = [kind({3: 0, 4: 0}), kind({4: True})]
    assert p.passes() and q.passes(), "other numbers"
    q.slots = p.slots = [kind({3: 0, 4: 0}), kind({3: True})]
    assert p.reason() == "list(L['a'])[1] in L['b']: now absent"
    assert q.reason() == "list(L['a'])[0] not in L['b']: now there"
    for odd in [[1, 2], {}, {"a": 1, "b": 2}, {None: 1, 1.5: 2}]:
        q.slots = p.slots = [odd, marked]
        assert not p.passes() and not q.passes()
    q.slots = p.slots = [handles, [8]]
    assert not p.passes() and not q.passes()


def test_no_attr():
    o = Plain()
    p = guard("NO_ATTR", o, "a")
    assert p.passes()
    o.a = 5
    assert p.reason() == "'a' not in L['x'].__dict__: now 5"
    del o.a
    assert p.passes()
    vars(o)["a"] = 1
    assert not p.passes()
    o.__dict__ = {}
    assert p.passes()
    p.slots = [1]
    assert p.passes(), "no dict at all"


def test_type_lookup():
    class A:
        def method(self):
            pass

    class B(A):
        pass

    method = A.method
    p = Program([("TYPE_LOOKUP", L(), ("method", method)), ("TYPE_LOOKUP", L(), ("other",))], B)
    assert p.passes() and p.passes()
    B.unrelated = 1
    assert p.passes() and p.passes()
    A.method = 5
    assert p.reason() == "L['x'].method is <function test_type_lookup.<locals>.A.method>: now 5"
    A.method = method
    assert p.passes(), "set and undone"
    B.method = method
    assert p.passes()
    B.method = lambda self: None
    assert not p.passes()
    del B.method
    assert p.passes()
    A.other = 1
    assert p.reason() == "L['x'].other is absent: now 1"
    del A.other
    assert p.passes()

    class Before:
        other = 1

    B.__bases__ = (A, Before)
    assert not p.passes()
    B.__bases__ = (A,)
    assert p.passes()
    for odd in [1, Bomb(), A(), int]:
        p.slots = [odd]
        assert not p.passes() and p.reason()


def test_type_lookup_of_builtin_classes():
    p = Program([("TYPE_LOOKUP", L(), ("append", list.__dict__["append"]))], list)
    assert p.passes()
    p.slots = [type("L", (list,), {})]
    assert p.passes()
    p.slots = [type("L", (list,), {"append": 1})]
    assert not p.passes()


def test_type_lookup_survives_a_class_that_changes_often():
    class A:
        fixed = Plain

    p = Program([("TYPE_LOOKUP", L(), ("fixed", Plain))], A)
    for i in range(3000):  # 3.13 stops giving versions to it
        A.changing = i
        assert p.passes()
    A.fixed = 1
    assert not p.passes()


def test_mro():
    class A:
        pass

    class B:
        pass

    class C(A):
        pass

    p = guard("MRO", C, C.__mro__)
    assert p.passes()
    C.__bases__ = (A, B)
    assert p.reason().startswith("L['x'].__mro__ is unchanged: now (")
    C.__bases__ = (A,)
    assert p.passes(), "the same classes again"
    C.__bases__ = (B,)
    assert not p.passes()
    p.slots = [5]
    assert not p.passes()


def test_code():
    f, g = closure(), closure()
    p = guard("CODE", f, f.__code__)
    assert p.passes()
    p.slots = [g]
    assert p.passes(), "another function of the same code"
    g.__code__ = g.__code__.replace(co_name="other")
    then, now = f.__code__.co_qualname, g.__code__.co_qualname
    assert p.reason() == f"L['x'].__code__ is <code {then}>: now <code {now}>"
    for odd in [1, Bomb(), f.__code__, len]:
        p.slots = [odd]
        assert not p.passes() and p.reason()


def test_set_items():
    s = {1, 2, 3}
    p = guard("SET_ITEMS", s, tuple(s))
    assert p.passes()
    s.add(4)
    assert p.reason()
    s.remove(4)
    assert p.passes()
    s.remove(3)
    s.add(3.0)
    assert not p.passes()
    p = guard("SET_ITEMS", {8, 0}, tuple({8, 0}))
    p.slots = [{0, 8}]
    assert p.passes() == (list({8, 0}) == list({0, 8}))
    p.slots = [[8, 0]]
    assert not p.passes()


def test_bytes():
    b = bytearray(b"abc")
    p = guard("BYTES", b, b"abc")
    assert p.passes()
    b[0] = 0
    assert p.reason() == r"L['x'] == b'abc': now b'\x00bc'"
    b[:] = b"abc"
    assert p.passes()
    b.append(1)
    assert not p.passes()
    p.slots = [b"abc"]
    assert not p.passes()


def test_type_slots():
    import ctypes

    class A:
        def __call__(self):
            pass

    size = ctypes.sizeof(ctypes.c_void_p)
    words = (ctypes.c_void_p * (type.__basicsize__ // size)).from_address(id(A))
    index = next(i for i, word in enumerate(words) if word and i > 3 and i == 16)
    p = guard("TYPE_FLAGS", A, words[index], index * size)
    assert p.passes()
    del A.__call__
    assert p.reason() == "type slots of L['x'] are unchanged: now changed"
    for odd in [1, Bomb()]:
        p.slots = [odd]
        assert not p.passes()
    for index in [-8, type.__basicsize__, 10**9, -(10**9)]:
        assert not guard("TYPE_FLAGS", A, 0, index).passes()


@pytest.mark.parametrize("count", [2, 8, 9, 300])
def test_distinct(count):
    objects = [Plain() for _ in range(count)]
    rows = [("DISTINCT", below(L(), ("LIST_ITEM", None, i))) for i in range(count)]
    p = Program(rows + rows, objects)
    assert p.passes() and p.passes()
    assert p.program.rows() == [("all objects are distinct", None, 0)]
    objects[count - 1] = objects[0]
    assert not p.passes()
    assert p.reason() == f"all objects are distinct: now L['x'][0] is L['x'][{count - 1}]"
    objects[0] = Plain()
    assert p.passes()


def test_custom():
    o = Plain()
    before = sys.getrefcount(o)
    p = guard("CUSTOM", o, o)
    q = Program([("CUSTOM", None, o)], o)
    assert p.passes() and not q.passes()
    p.slots = [1]
    assert p.reason() == "custom(L['x'], Plain)"
    assert p.program.rows()[0][0] == "custom(L['x'], Plain)"
    assert q.program.rows()[0][0] == "custom(, Plain)"
    del p, q
    with pytest.raises(ValueError):
        Program([("CUSTOM", L(), o), ("NONSENSE", L())], o)
    assert sys.getrefcount(o) == before


def test_bound():
    p = Program([("BOUND", None, b"\x01\x01")], 1, 2)
    assert p.passes()
    p.slots = [1]
    assert not p.passes()
    assert p.reason() == "the same variables are bound: now others"


def symbol(hint, index=0, name="x"):
    return ("symbol", (L(index, name), hint))


def test_expressions():
    p = Program([("EXPR", None, ("gt", symbol(1), symbol(2, 1, "y")))], 1, 2)
    assert not p.passes()
    p.slots = [2, 1]
    assert p.passes()
    assert p.program.rows()[0][0] == "L['x'] > L['y']"
    for slots in ([4, 5], [4, 4], [2**63, 1], [2.0, 1], [True, 0], [UNBOUND, 2], [None, 2]):
        p.slots = slots
        assert not p.passes()
    p.slots = [2**62, -(2**62) + 1]
    assert p.passes() and p.reason() is None
    p.slots = [5, 7]
    assert p.reason() == "L['x'] > L['y']: now 5 and 7"
    p.slots = ["a", 5]
    assert p.reason() == "L['x'] > L['y']: now L['x'] = 'a', L['y'] = 5"
    p = Program([("EXPR", None, ("same", symbol(0.0), 0.0))], 0.0)
    assert p.passes()
    p.slots = [-0.0]
    assert not p.passes() and p.reason() == "L['x'] == 0.0: now -0.0"


def test_a_long_expression():
    trees, value = [("xor", symbol(3), i) for i in range(1, 65)], 0
    for i in range(1, 65):
        value |= 3 ^ i
    while len(trees) > 1:
        trees = [("or", *pair) for pair in zip(trees[::2], trees[1::2])]
    p = Program([("EXPR", None, ("eq", trees[0], value))], 3)
    assert p.passes()
    p.slots = [1000]
    assert not p.passes() and p.reason()
    tree = symbol(3)
    for _ in range(12):  # as text it would be long
        tree = ("max", ("mod", tree, symbol(5, 1, "y")), ("xor", tree, 1))
    p = Program([("EXPR", None, ("lt", tree, 0))], 3, 5)
    assert "..." in p.program.rows()[0][0] and len(p.reason()) < 2000


def test_every_guard_is_tested_here():
    text = Path(__file__).read_text()
    for kind in GUARDS:
        assert f'"{kind}"' in text


def test_said_twice_is_kept_once():
    keys = [("KEYS", L(), tuple(["a", "b"])) for _ in range(3)]
    rows = [
        ("VALUE", L(), 10**20),
        ("VALUE", L(), 10**10 * 10**10),
        ("TYPE", L(), int),
        ("TYPE", L(), int),
    ]
    rows += [("ABSENT", L(), "".join(["a", "b"])), ("ABSENT", L(), "ab"), ("ABSENT", L(), "b")]
    rows += [("LENGTH", L(), None, 3)] * 3 + keys + [("IS", L(), [1])] * 2
    rows += [("TYPE_LOOKUP", L(), ("m", len))] * 2 + [("TYPE_LOOKUP", L(), ("m",))]
    shown = [text for text, _, _ in _engine.guard_program(rows).rows()]
    assert len(shown) == len(set(shown)) == 10 - 1
    assert shown[0] == f"L['x'] == {10**20}"
