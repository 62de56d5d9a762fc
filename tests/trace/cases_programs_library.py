"""Everyday uses of the library: cached functions, copies, addresses, aliases of types, dicts of other
classes, proxies, signatures."""

import collections
import copy
import dataclasses
import functools
import inspect
import operator
import os
import re
import sys
import time
import types
from collections.abc import Callable


def cached_function_of_values(call):
    @functools.lru_cache
    def g(k, scale=2, *, plus=0):
        return (k * scale + plus, "text")

    def f(k):
        return g(k), g(k, 3), g(k, plus=1), g(k, scale=2), g(k)

    for k in (1, 1, 2, 1.5):
        call(f, k)
    g.cache_clear()
    call(f, 1)


def cached_result_is_the_one_in_the_cache(call):
    state = {"n": 1}

    @functools.lru_cache
    def g(k):
        return state["n"], k

    @functools.cache
    def h():
        return state["n"]

    def f(k):
        return g(k), h()

    g(1), h()
    state["n"] = 2
    call(f, 1)
    call.again(f, 1)
    call.traced(f, 1)
    g.cache_clear(), h.cache_clear()
    g(1), h()
    call(f, 1)
    call.traced(f)


def hits_of_a_cache_are_counted_and_make_recent(call):
    for options in ({"maxsize": None}, {"maxsize": 3}, {"maxsize": 3, "typed": True}, {}):
        asked = []

        @functools.lru_cache(**options)
        def square(n, asked=asked):
            asked.append(n)
            return n * n

        def f(numbers, square=square):
            return [square(n) for n in numbers]

        def info(square=square, asked=asked):
            return tuple(square.cache_info()), tuple(asked)

        for numbers in ([1, 2, 3], [3, 1, 2], [1], [4], [1, 3, 2], [3, 3, 1], [5], [1, 3]) * 2:
            call.loose(f, numbers)
            call.loose(info)


def cached_function_with_a_small_cache(call):
    state = {"n": 0}

    @functools.lru_cache(maxsize=1)
    def g(k):
        return state["n"] + k

    def f(k):
        return g(k)

    for n, k in enumerate((1, 1, 2, 1, 1, 2)):
        g(k)
        state["n"] = n * 10
        call(f, k)
    call.traced(f)


def cached_function_keeps_what_it_saw(call):
    settings = {"a": 1}

    @functools.lru_cache
    def setting(name):
        return settings[name]

    def f(name):
        return setting(name)

    for value in (1, 2, 3):
        settings["a"] = value
        call(f, "a")
    setting.cache_clear()
    call(f, "a")
    call.note(setting.cache_info().currsize)


def cached_function_by_type(call):
    @functools.lru_cache(typed=True)
    def g(k):
        return type(k).__name__

    def f(k):
        return g(k), g(1), g(1.0), g(True)

    for k in (1, 1.0, True, 1):
        g(k)
        call(f, k)


def cached_function_that_keeps_nothing(call):
    seen = []

    @functools.lru_cache(maxsize=0)
    def g(k):
        seen.append(k)
        return [k]

    def f(k):
        return g(k), g(k), len(seen)

    call(f, 1)
    call(f, 1)
    call.traced(f)


def cached_function_with_effects(call):
    seen = []

    @functools.lru_cache
    def g(k):
        seen.append(k)
        return k

    @functools.lru_cache
    def h(k):
        return [k]

    def f(k):
        h(k).append(g(k))
        return g(k), h(k), h(k) is h(k), len(seen)

    for k in (1, 1, 2, 2, 1):
        call(f, k)


def cached_function_that_counts_in_a_cell(call):
    n = 0

    @functools.lru_cache
    def g(k):
        nonlocal n
        n += 1
        return k

    def f(k):
        return g(k), n

    for k in (1, 1, 2, 1):
        call(f, k)


def cached_method(call):
    class A:
        def __init__(self, n):
            self.n, self.calls = n, 0

        @functools.lru_cache  # noqa: B019
        def scaled(self, k):
            self.calls += 1
            return self.n * k

    def inside(k):
        a = A(k)
        return a.scaled(2), a.scaled(2), a.scaled(3), a.calls

    def outside(a, k):
        return a.scaled(k)

    for k in (1, 1, 2):
        call(inside, k)
    a = A(3)
    a.scaled(2)
    call(outside, a, 2)
    a.n = 5
    call(outside, a, 2)
    call(outside, a, 4)
    call(outside, a, 4)
    call(outside, A(7), 4)


def cached_function_of_what_cannot_be_hashed(call):
    @functools.lru_cache
    def g(x):
        return x

    def f(x):
        try:
            return g(x)
        except TypeError as e:
            return str(e)

    call(f, [1])
    call(f, {})


def cached_function_that_is_another(call):
    @functools.lru_cache
    def g(k):
        return k + 1

    @functools.lru_cache
    def h(k):
        return k - 1

    holder = types.SimpleNamespace(g=g)

    def f(k):
        return holder.g(k), holder.g.__name__, holder.g.__wrapped__(k)

    call(f, 1)
    holder.g = h
    call(f, 1)


def wrapping_a_cached_function(call):
    @functools.lru_cache
    def g(k: int) -> int:
        """Doc."""
        return k + 1

    def f(k):
        @functools.wraps(g)
        def inner(*args):
            return g(*args)

        return inner(k), inner.__name__, inner.__doc__, inner.__annotations__

    call(f, 1)
    call(f, 2)


def deep_copies(call):
    class Config:
        def __init__(self, n):
            self.n, self.sizes, self.sub = n, [1, (2, [3])], {"a": {4}}

    def f(c):
        d = copy.deepcopy(c)
        e = copy.copy(c)
        d.sizes[1][1].append(5)
        d.sub["b"] = c.n
        return d, e, e.sizes is c.sizes, d.sizes is c.sizes, d.sub["a"] is c.sub["a"]

    c = Config(3)
    call(f, c)
    call.again(f, c)
    call.traced(f, 1)
    c.n = 4
    c.sizes.append(9)
    call(f, c)
    c.extra = {"self": c}
    call(f, c)
    call(f, Config(3))


def deep_copies_of_what_was_made_inside(call):
    class Node:
        def __init__(self, up=None):
            self.up, self.kids = up, []

    def f(n):
        root = Node()
        shared = [n, (1, "a", None)]
        root.kids = [Node(root), shared, shared, {1, 2}]
        other = copy.deepcopy(root)
        return (
            other,
            other.kids[0].up is other,
            other.kids[1] is other.kids[2],
            other.kids[1] is shared,
            other.kids[1][1] is shared[1],
        )

    copy.copy(Node())  # copyreg remembers in the class that it has no slots
    call(f, 1)
    call.again(f, 1)
    call.traced(f, 1)


def copies_that_classes_have_a_say_in(call):
    class State:
        def __getstate__(self):
            return {"seen": len(self.__dict__)}

    class Reduced:
        def __init__(self, n):
            self.n = n

        def __reduce__(self):
            return Reduced, (self.n + 1,)

    class Slots:
        __slots__ = ("a",)

        def __init__(self):
            self.a = [1]

    class Named:
        __slotnames__ = ["far"]

        def __init__(self):
            self.near = [1]

        def __getattr__(self, name):
            if name == "far":
                return [2]
            raise AttributeError(name)

    class Copied:
        def __deepcopy__(self, memo):
            return "deep", len(memo)

        def __copy__(self):
            return "flat"

    class Empty:
        pass

    class Hidden:
        def __init__(self):
            self.n = 1

        def __getattribute__(self, name):
            return super().__getattribute__(name)

    def f(o):
        return copy.copy(o), copy.deepcopy(o), copy.deepcopy([o, o])

    state = State()
    state.x = 1
    for o in (state, Reduced(1), Slots(), Named(), Copied(), Empty(), Hidden()):
        call(f, o)
        call(f, o)
    State.__getstate__ = lambda self: {"other": 1}
    call(f, state)
    del Reduced.__reduce__
    call(f, Reduced(1))
    Empty.__reduce__ = lambda self: "Empty"
    call(f, Empty())


def copies_of_containers_of_other_classes(call):
    class L(list):
        pass

    class D(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, [value])

    class M(collections.OrderedDict):
        pass

    class S(str):
        pass

    class E(Exception):
        pass

    P = collections.namedtuple("P", "x y")

    def f(o):
        return copy.copy(o), copy.deepcopy(o), copy.deepcopy(o) is o

    xs, d, m, s = L([1, [2]]), D(a=1), M(b=[1], a=2), S("text")
    for o in (xs, d, m, s):
        o.extra = [3]
    m.move_to_end("b")
    for o in (
        xs,
        d,
        m,
        s,
        P(1, [2]),
        P(1, 2),
        collections.OrderedDict(a=[1]),
        collections.defaultdict(list, a=[1]),
        collections.Counter("aab"),
        collections.deque([1, [2]], maxlen=3),
        {1, 2},
        frozenset([P(1, 2)]),
        E("a", [1]),
    ):
        call(f, o)
        call(f, o)


def cached_properties(call):
    class A:
        n = 1

        @functools.cached_property
        def v(self):
            return [self.n]

        @functools.cached_property
        def raising(self):
            raise KeyError("no")

    class Slots:
        __slots__ = ()

        @functools.cached_property
        def v(self):
            return 1

    def inside():
        a = A()
        return a.v, a.v is a.v, a

    def outside(a):
        try:
            return a.v, a.v is a.v, a.raising
        except KeyError as e:
            return str(e), A.v is A.__dict__["v"]

    def slots(o):
        try:
            return o.v
        except TypeError as e:
            return str(e)

    call(inside)
    call(inside)
    call.traced(inside)
    a = A()
    call(outside, a)
    call(outside, a)
    A.n = 2
    call(outside, a)
    call(outside, A())
    call(slots, Slots())


def deep_copy_with_a_memo(call):
    def f(x, memo):
        return copy.deepcopy(x, memo), len(memo)

    x = ["b", [1], (2, 3)]
    call.loose(f, x, {})
    for part in x:
        call.loose(f, x, {id(part): "from the memo"})


def what_was_visited(call):
    class Node:
        def __init__(self, *kids):
            self.kids = kids

    def count(node, seen):
        if id(node) in seen:
            return 0
        seen.add(id(node))
        return 1 + sum(count(kid, seen) for kid in node.kids)

    def f(root):
        fresh = Node(root, Node(root))
        return count(root, set()), count(fresh, set()), id(fresh) == id(root), id(f) == id(f)

    leaf = Node()
    root = Node(leaf, Node(leaf), leaf)
    call(f, root)
    call.again(f, root)
    call.traced(f, 1)
    root.kids = (leaf, Node(), Node())
    call(f, root)


def addresses_that_were_there_before(call):
    class A:
        pass

    a, b = A(), A()
    names = {}

    def f(o):
        return names.get(id(o)), id(o) in names, names.get(id(A())), id(o) == id(a)

    for o, known in (a, a), (a, a), (b, a), (b, b), (a, b):
        names.clear()
        names[id(known)] = "known"
        call.loose(f, o)
    call.traced(f)


def addresses_as_numbers(call):
    class A:
        pass

    def f():
        o = A()
        return (
            id(o) % 8,
            isinstance(id(o), int),
            type(id(o)),
            id(o) > 0,
            bool(id(o)),
            f"{id(o)}"[:0],
        )

    def g():
        o = A()
        d = {id(o): 1}
        return [type(k) for k in d], d[id(o)], (id(o), 1) in {(id(o), 1): 2}

    for h in (f, g):
        call(h)
        call(h)


def functions_with_annotations(call):
    class Local:
        pass

    def f(n):
        def inner(
            a: list[int],
            b: dict[str, Local],
            c: Callable[[int, Local], str],
            d: int | None = None,
            e: list[int] | None = None,
            g: type[Local] | list[int] = Local,
            *rest: tuple[int, ...],
        ) -> tuple[list[Local], int]:
            return n, a

        return inner([1], {}, len), list[int] == list[int], list[int] == list[str]

    def g(n):
        def inner(
            a: list[n], b: Callable[[int], n], c: n | None, d: list[n] | None
        ) -> dict[str, list[n]]:
            return n

        return inner.__annotations__, inner

    call(f, 1)
    call.traced(f)
    for n in (int, Local, int):
        call(g, n)
    call.traced(g)


def dicts_of_other_classes(call):
    class D(dict):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.made = len(args), len(kwargs)

        def __setitem__(self, key, value):
            super().__setitem__(key, [value])

    class M(collections.OrderedDict):
        pass

    def f(x):
        d = D({"a": x}, b=x)
        d["c"] = x
        default = collections.defaultdict.fromkeys("ab", x)
        m = M(a=x)
        m.__dict__["tag"] = x
        return d, d.made, default, D.fromkeys("xy"), dict.fromkeys("z", x), m.tag, m.__dict__

    def write(m, x):
        if "tag" not in m.__dict__:
            m.__dict__["tag"] = []
        m.__dict__["tag"].append(x)
        return len(m.__dict__)

    call(f, 1)
    call(f, [2])
    call.traced(f)
    m = M(a=1)
    for x in range(3):
        call(write, m, x)
    call.traced(write)


def ordered_dicts(call):
    def f(d, x):
        o = collections.OrderedDict(a=x, b=2)
        both = d | o, o | {"c": 3}, o.__or__(d), {"z": 1} | o, o.__or__(3)
        views = list(dict.keys(o)), list(dict.items(o)), dict.__eq__(o, {"b": 2, "a": x})
        o |= {"a": 5, "q": 6}
        o.__ior__([("r", 7)])
        o.move_to_end("a")
        return both, views, o, d, dict.copy(o), o.popitem(last=False)

    d = collections.OrderedDict(b=1, e=2)
    call(f, d, 1)
    call.traced(f)
    d.move_to_end("b")
    call(f, d, 1)
    call.traced(f)


def dicts_own_methods_on_an_outside_ordered_dict(call):
    def f(d):
        return list(dict.keys(d)), list(d)

    d = collections.OrderedDict(a=1, b=2, c=3)
    d.move_to_end("a")
    call(f, d)
    call(f, d)


def mapping_proxies(call):
    def f(d, x):
        inside = {"a": x, "b": [x]}
        mine, theirs = types.MappingProxyType(inside), types.MappingProxyType(d)
        inside["c"] = 1
        d["n"] = x
        out = dict(mine)
        out.update(theirs)
        return mine["a"], len(mine), [*theirs], "b" in mine, mine.get("q", 3), out, mine, theirs

    d = {"k": 1}
    call(f, d, 1)
    call(f, d, [2])
    call.traced(f)

    def g():
        return int.__dict__["real"] is int.real, types.MappingProxyType(P())["x"]

    class P(dict):
        def __missing__(self, key):
            return key

    call(g)


def method_callers_with_keywords(call):
    class A:
        def m(self, *args, **kwargs):
            return args, kwargs

    outer = operator.methodcaller("m", 1, k=2)
    with_list = operator.methodcaller("m", k=[2])

    def f(a, x):
        inner = operator.methodcaller("m", x, y=x)
        return inner(a), outer(a), operator.methodcaller("m")(a)

    def g(a):
        return with_list(a)

    call(f, A(), 1)
    call(f, A(), [1])
    call.traced(f)
    call(g, A())


def signatures(call):
    def target(a, b: int = 2, *, c=3):
        pass

    def f(g, *args, **kwargs):
        s = inspect.signature(g)
        bound = s.bind(*args, **kwargs)
        bound.apply_defaults()
        return list(s.parameters), dict(bound.arguments), g.__annotations__

    call(f, target, 1)
    call.again(f, target, 1)
    call.traced(f, 1)
    call(f, lambda q: q, 1)
    call(f, target, 1, c=4)


def recursion_limit(call):
    def f():
        return sys.getrecursionlimit()

    limit = sys.getrecursionlimit()
    call(f)
    call.again(f)
    try:
        sys.setrecursionlimit(limit + 7)
        call(f)
    finally:
        sys.setrecursionlimit(limit)
    call(f)
    call.traced(f)


def hashes_of_what_holds_objects(call):
    @dataclasses.dataclass(frozen=True)
    class Inner:
        x: float

    @dataclasses.dataclass(frozen=True)
    class Outer:
        inner: Inner
        kinds: frozenset

    def f(x, known):
        o = Outer(Inner(x), frozenset([int, "a"]))
        d = {o: 1}
        return d[Outer(Inner(x), frozenset(["a", int]))], hash(o) == hash(known), o in {known: 2}

    for x in (1.5, 1.5, 2.5):
        call(f, x, Outer(Inner(1.5), frozenset(["a", int])))
    call.traced(f)

    def by_address(o):
        return hash((o, object())) % 2 < 2

    call(by_address, object())


def text_of_a_dataclass(call):
    @dataclasses.dataclass
    class Point:
        x: object
        y: object = None

    def f(p, x):
        return f"{p} {Point(x)!r}"

    p = Point(1, [2])
    call(f, p, 1)
    call(f, p, 1)  # the set of what is being shown has gaps now
    call.again(f, p, 1)
    p.y.append(3)
    call(f, p, 2)
    p.y = p
    call(f, p, 2)
    call.traced(f)


def descriptors_asked_by_hand(call):
    class A:
        __slots__ = ("s", "__dict__")
        n = 1

        def m(self):
            return self.s

        @classmethod
        def c(cls):
            return cls

        @staticmethod
        def t():
            return "t"

    dict_of = type.__dict__["__dict__"].__get__
    slot, length = A.s, "abc".__len__

    def f(a, xs):
        own = A.__dict__
        return (
            slot.__get__(a),
            slot.__get__(None, A) is slot,
            own["c"].__get__(a)(),
            own["c"].__get__(a, int)(),
            own["c"].__get__(A, None)() is type,
            own["t"].__get__(None, A)(),
            str.__dict__["upper"].__get__("a", str)(),
            dict_of(A)["n"],
            length(),
            list.__len__.__get__(xs)(),
        )

    a = A()
    a.s = 3
    call(f, a, [1])
    call.again(f, a, [1])
    a.s = [4]
    call(f, a, [1, 2])
    A.n = 2
    call(f, a, [1, 2])
    length = "abcd".__len__
    call(f, a, [1, 2])
    length = [1].__len__
    call(f, a, [1, 2])
    call.traced(f)


def methods_of_what_cannot_be_called(call):
    odd = classmethod(1)

    def f(x):
        bound = odd.__get__(x)
        return bound, bound.__func__, bound.__self__ is type(x)

    call(f, 1)
    call(f, [2])


def bound_slots(call):
    class D(dict):
        pass

    def f(get, has, x):
        return get("a"), has(x)

    d = D(a=1)
    for mapping in (d, d, {"a": 2}):
        call(f, mapping.__getitem__, mapping.__contains__, "a")
    d["a"] = [5]
    call(f, d.__getitem__, d.__contains__, "b")
    call.traced(f)


def struct_sequences(call):
    def f(x):
        t = time.struct_time(range(9))
        return tuple(t)[:2], t.tm_year, x

    def g(x):
        try:
            return os.terminal_size((x, x)), os.terminal_size([x, 2]).columns
        except TypeError as e:
            return str(e)

    call(f, 1)
    call(g, 1)
    call(g, [2])


def fields_of_a_named_tuple(call):
    P = collections.namedtuple("P", "x y")

    def f(p):
        return P.x.__doc__, P.__doc__, p.x, p._fields

    call(f, P(1, [2]))
    P.x.__doc__ = "another"
    call(f, P(1, [2]))
    call.traced(f)


def patterns_on_subclasses_of_str(call):
    class Version(str):
        pass

    def f(v):
        found = re.search(r"(\d+)\.(\d+)", v)
        return found.groups(), found.string is v, re.split(r"\.", v), re.sub("2", "3", v)

    for text in ("2.11.0", "2.11.0", "2.12"):
        call(f, Version(text))
    call(f, "2.12")


def patterns_compiled_inside(call):
    def f(pattern, text, flags):
        try:
            found = re.match(pattern, text, flags)
            return found and found.groups(), re.compile(pattern, flags), re.findall(pattern, text)
        except re.error as e:
            return str(e)

    re.purge()
    for pattern in (r"(\w+)-(\d)", r"(\w+)-(\d)", "[", b"x", re.compile("a")):
        call(f, pattern, "abc-1" if pattern != b"x" else b"x", 0)
    call(f, "A(b)", "ab", re.IGNORECASE)
    call.again(f, "A(b)", "ab", re.IGNORECASE)


def items_taken_from_subclasses_of_ordered_dict(call):
    class M(collections.OrderedDict):
        pass

    class Own(collections.OrderedDict):
        def __delitem__(self, key):
            super().__delitem__(key)
            super().__setitem__("deleted", key)

        def __missing__(self, key):
            return "missing"

    def f(m):
        out = [m.pop("a"), m.pop("q", 3), m.setdefault("n", [1]), m.setdefault("b", 5)]
        out.append(m.popitem())
        try:
            m.pop("never")
        except KeyError as e:
            out.append(e.args)
        return out, m

    for cls in (M, Own):
        call(f, cls(a=1, b=2, c=3))
        call(f, cls(c=1, a=[2], b=3))
    M.__contains__ = lambda self, key: True
    call(f, M(a=1, b=2, c=3))
