"""Match statements: every kind of pattern, guards, bindings, and what they look up."""

import abc
import collections.abc
from dataclasses import dataclass

from probes import catch, where


def literals():
    def f(x):
        match x:
            case 0:
                return "zero"
            case -1 | 1:
                return "one-ish"
            case 1.5:
                return "float"
            case 2 + 3j:
                return "complex"
            case "s":
                return "str"
            case b"b":
                return "bytes"
            case None:
                return "none"
            case True:
                return "true"
            case False:
                return "false"
            case _:
                return "other"

    values = (0, 1, -1, 1.5, 2 + 3j, "s", b"b", None, True, False, 0.0, [], "t")
    return [f(v) for v in values]


def sequences():
    def f(x):
        match x:
            case []:
                return "empty"
            case [a]:
                return "one", a
            case [1, b]:
                return "one then", b
            case [a, b]:
                return "two", a, b
            case [first, *rest, last] if first == last:
                return "ends equal", rest
            case [first, *_]:
                return "starts", first
            case _:
                return "no"

    values = ([], (), [5], (1, 2), [3, 4], [1, 2, 1], [1, 2, 3], "ab", b"ab", {1, 2}, range(2))
    return [f(v) for v in values]


def star_positions():
    def f(x):
        match x:
            case [*head, "end"]:
                return "head", head
            case ["start", *tail]:
                return "tail", tail
            case [a, *mid, b]:
                return a, mid, b
            case [*all]:
                return "all", all

    return [f(v) for v in (["end"], [1, "end"], ["start"], ["start", 2], [1, 2, 3], [1], [])]


def nested_sequences():
    def f(x):
        match x:
            case [[a, b], [c, *d]]:
                return a, b, c, d
            case [[], x] | [x, []]:
                return "or", x

    return f([[1, 2], [3, 4, 5]]), f([[], 9]), f([8, []]), f([1])


def mappings():
    def f(x):
        match x:
            case {"kind": "a", "v": v}:
                return "a", v
            case {"kind": k, **rest} if rest:
                return k, rest
            case {"kind": _}:
                return "kind only"
            case {1: x, None: y}:
                return x, y
            case {}:
                return "mapping"
            case _:
                return "no"

    values = (
        {"kind": "a", "v": 1},
        {"kind": "a"},
        {"kind": "b", "z": 2},
        {1: "x", None: "y"},
        {},
        {"q": 1},
        [],
    )
    return [f(v) for v in values]


def mapping_lookup_order():
    log = []

    class D(dict):
        def get(self, k, default=None):
            log.append(("get", k))
            return super().get(k, default)

        def __getitem__(self, k):
            log.append(("item", k))
            return super().__getitem__(k)

        def __missing__(self, k):
            log.append(("missing", k))
            return "made up"

    match D(a=1, b=2):
        case {"a": 1, "c": _}:
            r = "wrong"
        case {"b": x, "a": y, **rest}:
            r = x, y, rest
    return r, log


def mapping_duplicate_key():
    class K:
        A = "key"
        B = "key"

    def f(x):
        match x:
            case {K.A: 1, K.B: 2}:
                return "no"

    return where(f, {"key": 1})


def custom_mapping_and_sequence():
    from collections import OrderedDict, UserDict, UserList, deque
    from collections.abc import Mapping, Sequence

    class S(Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            if i > 1:
                raise IndexError
            return i * 10

    class M(Mapping):
        def __len__(self):
            return 1

        def __iter__(self):
            return iter("k")

        def __getitem__(self, k):
            if k == "k":
                return "v"
            raise KeyError(k)

    def f(x):
        match x:
            case [a, b]:
                return "seq", a, b
            case {"k": v, **rest}:
                return "map", v, rest
            case _:
                return "no"

    values = (S(), M(), UserList([1, 2]), UserDict(k=1), OrderedDict(k=2, z=3), deque([1, 2]))
    return [f(v) for v in values], f(bytearray(b"ab"))


def classes():
    class P:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    class Q(P):
        pass

    def f(o):
        match o:
            case P(0, 0):
                return "origin"
            case Q(x=1):
                return "q with one"
            case P(x, y=0):
                return "on x", x
            case P(x, y) if x == y:
                return "diagonal", x
            case P():
                return "some point"
            case _:
                return "no"

    values = (P(0, 0), Q(1, 5), P(3, 0), P(2, 2), P(1, 2), 5)
    return [f(v) for v in values]


def class_builtin_self():
    def f(o):
        match o:
            case bool(b):
                return "bool", b
            case int(n):
                return "int", n
            case str(s):
                return "str", s
            case list([a, *_]):
                return "list", a
            case dict({"k": v}):
                return "dict", v
            case float() | complex():
                return "number"
            case tuple((1, x)):
                return "tuple", x

    values = (True, 3, "s", [1, 2], {"k": 1}, 1.5, 2j, (1, 2), (2, 1))
    return [f(v) for v in values]


def class_errors():
    class NoArgs:
        pass

    class BadArgs:
        __match_args__ = ["x"]

    class BadElement:
        __match_args__ = (5,)

    class Twice:
        __match_args__ = ("x",)
        x = 1

    def f(o):
        match o:
            case NoArgs(1):
                return "no"
            case _:
                return "fell"

    def g(o):
        match o:
            case BadArgs(1):
                return "no"

    def h(o):
        match o:
            case BadElement(1):
                return "no"

    def k(o):
        match o:
            case Twice(1, x=1):
                return "no"

    def m(o):
        match o:
            case int(1, 2):
                return "no"

    thing = 5

    def n(o):
        match o:
            case thing():
                return "no"

    return [
        where(f, NoArgs()),
        where(g, BadArgs()),
        where(h, BadElement()),
        where(k, Twice()),
        where(m, 1),
        where(n, 1),
    ]


def class_attribute_lookup():
    log = []

    class C:
        __match_args__ = ("a", "b", "c")

        def __getattr__(self, name):
            log.append(name)
            if name == "b":
                raise AttributeError(name)
            return name.upper()

    class Bad:
        __match_args__ = ("a",)

        @property
        def a(self):
            raise ValueError("property failed")

    def f(o):
        match o:
            case C(x, y):
                return "no", x, y
            case C(x, c=z):
                return x, z
            case _:
                return "fell"

    def g(o):
        match o:
            case Bad(_):
                return "no"

    return f(C()), log, where(g, Bad())


def instancecheck_is_used():
    log = []

    class Meta(type):
        def __instancecheck__(cls, o):
            log.append(("check", o))
            return o == "yes"

    class C(metaclass=Meta):
        pass

    def f(o):
        match o:
            case C():
                return True
        return False

    return f("yes"), f("no"), log


def value_patterns():
    class K:
        RED = "red"
        N = 5

        class Inner:
            V = "deep"

    def f(x):
        match x:
            case K.RED:
                return 1
            case K.N:
                return 2
            case K.Inner.V:
                return 3
            case K.MISSING:
                return 4

    return f("red"), f(5), f("deep"), where(f, "x")


def equality_is_called():
    log = []

    class E:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            log.append((self.n, o))
            return o == self.n

    def f(x):
        match x:
            case 1:
                return "one"
            case 2 | 3:
                return "two or three"
            case "x":
                return "x"

    return f(E(3)), f(E(9)), log


def guards():
    log = []

    def g(v):
        log.append(v)
        return v > 2

    def f(x):
        match x:
            case [a, b] if g(a) and g(b):
                return "both"
            case [a, _] if g(a):
                return "first"
            case [c, d]:
                return "none", a, c, d

    return f([3, 3]), f([3, 1]), f([1, 3]), log


def guard_raises():
    def f(x):
        match x:
            case int() if x / 0:
                return "no"
            case _:
                return "fell"

    return where(f, 1), f("s")


def bindings_survive_failure():
    def f(x):
        a = b = "unset"
        match x:
            case [a, 2]:
                r = "first"
            case [b, 3]:
                r = "second"
            case _:
                r = "none"
        return r, a, b

    return f([1, 2]), f([1, 3]), f([1, 4]), f([1])


def or_patterns_bind():
    def f(x):
        match x:
            case [1, a, b] | [2, b, a] | {"a": a, "b": b}:
                return a, b
            case (str() | bytes()) as s:
                return "text", s
            case int() as n if n > 5:
                return "big", n

    values = ([1, "x", "y"], [2, "x", "y"], {"a": 1, "b": 2}, "s", b"b", 6, 5)
    return [f(v) for v in values]


def as_patterns():
    def f(x):
        match x:
            case [int() as a, [_, *_] as b] as whole:
                return a, b, whole
            case {"k": (1 | 2) as v} as d:
                return v, d

    return f([1, [2, 3]]), f({"k": 2}), f({"k": 3})


def subject_is_tuple_expression():
    def f(a, b):
        match a, b:
            case 0, _:
                return "a zero"
            case _, 0:
                return "b zero"
            case (x, y) if x == y:
                return "same"
        return "none"

    def g(*xs):
        match *xs, 1:
            case [*_, 2, 1]:
                return "two one"
            case _:
                return "else"

    return f(0, 1), f(1, 0), f(2, 2), f(1, 2), g(2), g(3)


def subject_evaluated_once():
    log = []

    def s():
        log.append("subject")
        return 5

    match s():
        case 1:
            pass
        case 2:
            pass
        case n:
            log.append(n)
    return log


def dataclass_patterns():
    @dataclass
    class Node:
        value: object
        left: object = None
        right: object = None

    def total(n):
        match n:
            case None:
                return 0
            case Node(int(v), None, None):
                return v
            case Node(value=v, left=left, right=right):
                return v + total(left) + total(right)

    return total(Node(1, Node(2), Node(3, Node(4), None)))


def evaluator():
    def ev(e):
        match e:
            case int() | float():
                return e
            case ("neg", x):
                return -ev(x)
            case ("+" | "-" | "*" as op, left, right):
                a, b = ev(left), ev(right)
                match op:
                    case "+":
                        return a + b
                    case "-":
                        return a - b
                    case "*":
                        return a * b
            case (str(op), *args):
                raise NotImplementedError(f"{op}/{len(args)}")
            case _:
                raise TypeError(e)

    return (
        ev(("+", 1, ("*", 2, ("neg", 3)))),
        where(ev, ("+", 1, ("?", 1, 2, 3))),
        where(ev, ("+", 1, [])),
    )


def in_loop_with_control_flow():
    log = []
    for x in [1, "skip", [2, 3], "stop", 5]:
        match x:
            case "skip":
                continue
            case "stop":
                break
            case [a, b]:
                log.append(a + b)
            case n:
                log.append(n)
    else:
        log.append("no")
    return log


def len_and_getitem_errors():
    from collections.abc import Sequence

    class BadLen(Sequence):
        def __len__(self):
            raise ValueError("len")

        def __getitem__(self, i):
            return i

    class BadItem(Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            raise ValueError(f"item {i}")

    def f(x):
        match x:
            case [1, _]:
                return "no"
            case _:
                return "fell"

    def g(x):
        match x:
            case [a, *_, b]:
                return a, b

    return where(f, BadLen()), where(f, BadItem()), where(g, BadItem())


def wildcard_does_not_bind():
    def f(x):
        match x:
            case [_, _]:
                return catch(lambda: _)

    return f([1, 2])


def soft_keywords_as_names():
    match = 1
    case = 2
    type = 3
    _ = match + case
    return match, case, type, _


def match_in_class_body():
    class C:
        match 5:
            case int(n):
                kind = "int"

    return C.kind, C.n


def no_case_matches():
    def f(x):
        match x:
            case 1:
                return "one"

    return f(2)


def nested_capture_order():
    log = []

    class L(list):
        def __getitem__(self, i):
            log.append(i)
            return list.__getitem__(self, i)

    match L([1, L([2, 3]), 4]):
        case [a, [b, c], d]:
            return (a, b, c, d), log


def uncaught_in_pattern():
    class C:
        @property
        def x(self):
            raise LookupError("while matching")

    match C():
        case C(x=1):
            return "no"


class _Keys:
    A = "a"
    ONE = 1


def keys_that_are_attributes():
    def f(x):
        match x:
            case {_Keys.A: y, "b": z}:
                return y, z
            case {_Keys.ONE: y, **rest}:
                return y, rest

    def twice(x):
        match x:
            case {_Keys.A: y, "a": z}:
                return y, z

    return f({"a": 0, "b": 1}), f({1: 2, "a": 3}), f({}), catch(twice, {"a": 0})


def classes_that_decide_themselves():
    class Liar:
        @property
        def __class__(self):
            return int

    class Asks(type):
        def __instancecheck__(cls, o):
            return getattr(o, "ok", False)

    class Asked(metaclass=Asks):
        __match_args__ = ("ok",)

    class Box:
        def __init__(self, ok):
            self.ok = ok

    class Shape(abc.ABC):
        pass

    Shape.register(bytes)

    def f(x):
        match x:
            case int():
                return "int"
            case Asked(ok):
                return "asked", ok
            case Shape():
                return "shape"
            case collections.abc.Mapping():
                return "mapping"

    return [f(x) for x in (1, Liar(), Box(2), Box(0), b"", {}, True, "", 1.5)]
