"""Raw reads give what Python's own lookups give, run no code and leave objects as they are."""

import collections
import random
import sys
import types

import pytest

from stator import _engine

raw_item, raw_attr, raw_names = _engine.raw_item, _engine.raw_attr, _engine.raw_names
MISSING = object()


FIRED = []  # errors of user code may be swallowed


@pytest.fixture(autouse=True)
def no_user_code_runs():
    yield
    assert not FIRED


def fire():
    FIRED.append("user code ran")
    raise AssertionError("user code ran")


class Bomb:
    """Whatever special method is called, it goes off."""

    def __init__(self, hashed=0):
        object.__setattr__(self, "hashed", hashed)
        object.__setattr__(self, "armed", True)

    def _off(self, *args):
        if not isinstance(self, Bomb) or object.__getattribute__(self, "armed"):
            fire()
        return NotImplemented

    def __hash__(self):
        if object.__getattribute__(self, "armed"):
            fire()
        return object.__getattribute__(self, "hashed")

    def __del__(self):
        pass

    __eq__ = __len__ = __iter__ = __bool__ = __repr__ = __getattr__ = __getattribute__ = _off
    __lt__ = __call__ = __index__ = __getitem__ = __contains__ = __setattr__ = _off


def disarmed(hashed):
    bomb = Bomb(hashed)
    object.__setattr__(bomb, "armed", False)
    return bomb


def arm(bomb):
    object.__setattr__(bomb, "armed", True)


# --- dicts ---

KEYS = [
    0,
    1,
    True,
    False,
    2,
    -1,
    -2,
    2**70,
    1.0,
    0.0,
    -0.0,
    2.5,
    float("nan"),
    float("inf"),
    "a",
    "b",
]
KEYS += ["", b"a", None, ..., (), (1,), (1.0,), ("a", (1, 2)), frozenset(), frozenset({1, "a"}), 1j]
KEYS += [int, len, MISSING, Bomb.__init__, collections, range(3), NotImplemented, float(2**70)]


def expected(d, key):
    value = d.get(key, MISSING)
    return "absent" if value is MISSING else (value,)


@pytest.mark.parametrize("seed", range(40))
def test_items_are_found_as_python_finds_them(seed):
    rng = random.Random(seed)
    keys = (
        KEYS
        if seed % 2
        else [key for key in KEYS if type(key) is str] + [str(i) for i in range(400)]
    )
    kind = rng.choice([dict, collections.OrderedDict, collections.Counter, type("D", (dict,), {})])
    d = kind()
    for step in range(rng.choice([5, 50, 3000])):
        key = rng.choice(keys) if seed % 3 else rng.randrange(10**6)
        if rng.random() < 0.3:
            d.pop(key, None)
        else:
            d[key] = step
    for key in [*KEYS, *list(d)[:300], *map(str, range(100)), "no", 10**9]:
        assert raw_item(d, key) == expected(d, key), key


def test_an_equal_key_is_another_object():
    key = "".join(["some ", "text"])
    d = {"".join(["some", " text"]): 1}
    assert raw_item(d, key) == (1,)
    assert raw_item({1: "int"}, True) == ("int",) == raw_item({1: "int"}, 1.0)
    assert raw_item({(1, 2): 3}, (1.0, 2)) == (3,)


def test_a_key_with_its_own_eq_and_the_same_hash_is_no_answer():
    bomb = disarmed(hash("name"))
    d = {bomb: 1}
    arm(bomb)
    assert raw_item(d, "name") == "unsure"
    assert raw_item(d, "other") == "absent"
    object.__setattr__(bomb, "armed", False)
    d = {"name": 2, bomb: 1}
    arm(bomb)
    assert raw_item(d, "name") == (2,)
    assert raw_item(d, bomb) == "unsure"
    assert raw_item({}, Bomb()) == "unsure"
    assert raw_item({"name": 1}, type("S", (str,), {})("name")) == "unsure"
    object.__setattr__(bomb, "armed", False)


def test_what_is_no_dict_is_no_answer():
    assert raw_item([], 1) == "unsure"


@pytest.mark.parametrize("seed", range(10))
def test_keys_come_in_the_order_of_iteration(seed):
    rng = random.Random(seed)
    d = rng.choice([dict, collections.OrderedDict])()
    for step in range(200):
        key = rng.randrange(40)
        what = rng.random()
        if what < 0.2:
            d.pop(key, None)
        elif what < 0.5 and key in d and hasattr(d, "move_to_end"):
            d.move_to_end(key, last=rng.random() < 0.5)
        else:
            d[key] = step
        assert _engine.raw_keys(d) == list(d)
        for i, key in enumerate(d):
            assert _engine.source_read("DICT_KEY", d, None, i) == (key,)
        assert _engine.source_read("DICT_KEY", d, None, len(d)) == ()


def test_an_ordered_dict_of_keys_with_one_hash():
    d = collections.OrderedDict.fromkeys([0, sys.hash_info.modulus, 2 * sys.hash_info.modulus, "a"])
    assert hash(sys.hash_info.modulus) == hash(0)
    program = _engine.guard_program([("KEYS", (("LOCAL", "x", 0),), tuple(d))])
    assert program.check(len, [d]) == [d]
    d.move_to_end(0)
    assert isinstance(program.check(len, [d]), int)


def test_an_ordered_dict_changed_behind_its_back():
    d = collections.OrderedDict(a=1, b=2)
    dict.__setitem__(d, "c", 3)
    assert _engine.raw_keys(d) == ["a", "b"]
    assert raw_item(d, "c") == (3,)
    dict.__delitem__(d, "a")
    assert _engine.raw_keys(d) == ["a", "b"]


# --- attributes ---


class Plain:
    pass


class Slotted:
    __slots__ = ("one", "__dict__")


class Number(int):
    pass


class Pair(tuple):
    pass


class Text(str):
    pass


def sample_function():
    pass


MAKERS = [
    Plain,
    Slotted,
    lambda: Number(5),
    lambda: Number(-(2**90)),
    lambda: Pair((1, 2, 3)),
    Pair,
]
MAKERS += [lambda: Text("ab"), ValueError, lambda: types.ModuleType("m"), collections.OrderedDict]
MAKERS += [
    lambda: types.FunctionType(sample_function.__code__, {}),
    lambda: type("E", (set,), {})(),
]
MAKERS += [lambda: type("F", (Plain, dict), {})(), lambda: type("G", (bytes,), {})(b"abc")]
MAKERS += [lambda: type("M", (type,), {})("N", (), {})()]


def agrees(o):
    values = vars(o)
    assert raw_names(o) == list(values)
    for name in [*values, "absent", "x7", "__dict__"]:
        assert raw_attr(o, name) == expected(values, name)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("count", [0, 1, 5, 29, 30, 31, 100])
def test_attributes_of_every_kind_of_object(make, count):
    o = make()
    shown = []
    for i in range(count):
        setattr(o, f"x{i}", i)
        assert raw_attr(o, f"x{i}") == (i,)
        shown.append(f"x{i}")
    assert raw_names(o)[-count:] == shown or count == 0
    assert raw_attr(o, "x1000") == "absent"
    for i in range(0, count, 3):
        delattr(o, f"x{i}")
        shown.remove(f"x{i}")
        assert raw_attr(o, f"x{i}") == "absent"
    if count:
        setattr(o, "x0", "again")
        shown.append("x0")
    assert raw_names(o)[len(raw_names(o)) - len(shown) :] == shown
    agrees(o)  # makes the dict
    if count:
        setattr(o, "x0", "once more")
        vars(o)["x1"] = "by the dict"
        assert raw_attr(o, "x0") == ("once more",)
        assert raw_attr(o, "x1") == ("by the dict",)
    agrees(o)
    if make is not ValueError and not isinstance(o, types.ModuleType | dict):
        o.__dict__ = {"x5": "new dict"}
        assert raw_attr(o, "x0") == "absent"
        assert raw_attr(o, "x5") == ("new dict",)
        agrees(o)


def test_reading_leaves_inline_values_inline():
    o = type("Fresh", (), {})()  # its keys are not yet full of other names
    o.a = 1
    assert _engine.raw_dict(o) is None
    assert raw_attr(o, "a") == (1,) and raw_attr(o, "b") == "absent" and raw_names(o) == ["a"]
    assert _engine.raw_dict(o) is None
    made = o.__dict__
    assert _engine.raw_dict(o) is made
    assert raw_attr(o, "a") == (1,)


def test_instances_that_share_keys_but_not_names():
    many = [Plain() for _ in range(50)]
    for i, o in enumerate(many):
        for j in range(i % 7):
            setattr(o, f"s{(i * j) % 11}", (i, j))
    for o in many:
        before = raw_names(o)
        assert {name: raw_attr(o, name)[0] for name in before} == dict(vars(o))


def test_objects_without_a_dict():
    for o in [1, "a", object(), None, [], type("S", (), {"__slots__": ()})()]:
        assert raw_attr(o, "a") == "absent"
        assert raw_names(o) == []
        assert _engine.raw_dict(o) is None


def test_attributes_of_classes_are_their_own():
    assert raw_attr(Bomb, "__eq__") == (Bomb.__dict__["__eq__"],)
    assert raw_attr(Number, "__add__") == "absent"
    assert raw_attr(int, "__add__") == (int.__dict__["__add__"],)
    assert raw_attr(collections.deque, "append") == (collections.deque.__dict__["append"],)


def test_lookup_is_that_of_the_mro():
    class A:
        x = 1

    class B(A):
        y = 2

    class C(A):
        x = 3

    class D(B, C):
        pass

    for name in ["x", "y", "z", "__init__", "__eq__", "mro"]:
        found = [base.__dict__[name] for base in D.__mro__ if name in base.__dict__]
        assert _engine.raw_lookup(D, name) == ((found[0],) if found else "absent")
    assert _engine.raw_lookup(bool, "bit_length") == (int.__dict__["bit_length"],)


# --- writes ---


class Guarded:
    calls = []

    def __setattr__(self, name, value):
        fire()

    @property
    def shadowed(self):
        fire()


@pytest.mark.parametrize("make", [*MAKERS, Guarded])
def test_stores_are_raw(make):
    o = make()
    _engine.raw_set(o, "a", 1)
    _engine.raw_set(o, "b", 2)
    _engine.raw_set(o, "a", 3)
    _engine.raw_set(o, "b")
    assert raw_attr(o, "a") == (3,) and raw_attr(o, "b") == "absent"
    assert vars(o)["a"] == 3


def test_stores_pass_by_descriptors_and_stay_inline():
    o = type("Fresh", (Guarded,), {})()
    _engine.raw_set(o, "plain", 1)
    assert _engine.raw_dict(o) is None
    _engine.raw_set(o, "shadowed", 2)
    assert raw_attr(o, "shadowed") == (2,)
    _engine.raw_set(o, "shadowed")
    with pytest.raises((AttributeError, KeyError)):
        _engine.raw_set(o, "nothing")
    with pytest.raises(AttributeError):
        _engine.raw_set(1, "a", 2)


def test_stores_to_classes_keep_slots_right():
    class A:
        pass

    a = A()
    assert bool(a)
    _engine.raw_set(A, "__len__", lambda self: 0)
    assert not a
    _engine.raw_set(A, "__len__")
    assert bool(a)


def test_raw_reads_do_not_touch_reference_counts():
    value = object()
    o = Plain()
    o.value = value
    d = {"k": value}
    before = sys.getrefcount(value)
    for _ in range(100):
        (
            raw_attr(o, "value"),
            raw_item(d, "k"),
            raw_item(d, "no"),
            _engine.source_read("ITEM", d, "k"),
        )
        _engine.source_read("ATTR", o, "value"), raw_names(o)
    assert sys.getrefcount(value) == before
