"""Uses of the library whose C code keeps things: caches, memos of addresses, aliases of types,
proxies, copies."""

import collections
import copy
import dataclasses
import functools
import inspect
import operator
import types
from collections.abc import Callable


def cached_function():
    seen = []

    @functools.lru_cache(maxsize=2)
    def f(k, *, plus=0):
        seen.append(k)
        return k + plus

    return [f(1), f(1), f(1, plus=2), f(2), f(3), f(1), f(1.0)], seen


def cached_results_are_shared():
    @functools.cache
    def f(k):
        return [k]

    f(1).append(2)
    f(1).append(3)
    return f(1), f(1) is f(1), f(2)


def cached_method_of_an_object():
    class A:
        calls = 0

        @functools.lru_cache  # noqa: B019
        def f(self, k):
            self.calls += 1
            return k

    a, b = A(), A()
    return [a.f(1), a.f(1), b.f(1), a.f(2)], a.calls, b.calls


def cached_property_of_an_object():
    class A:
        calls = 0

        @functools.cached_property
        def v(self):
            self.calls += 1
            return [self.calls]

    a = A()
    return a.v, a.v is a.v, a.calls, vars(a)


def deep_copies():
    class Node:
        def __init__(self, n, up=None):
            self.n, self.up, self.kids = n, up, []

    class Counted:
        copies = 0

        def __deepcopy__(self, memo):
            Counted.copies += 1
            memo[id(self)] = self
            return self

    root = Node(1)
    shared = [1, (2, [3]), {"k": 4}, {5, 6}]
    counted = Counted()
    root.kids = [Node(2, root), shared, shared, counted, counted]
    other = copy.deepcopy(root)
    other.kids[1].append(7)
    flat = copy.copy(root)
    return (
        other.n,
        other.kids[0].up is other,
        other.kids[1] is other.kids[2],
        other.kids[1],
        shared,
        other.kids[3] is counted,
        Counted.copies,
        flat.kids is root.kids,
    )


def copies_of_containers():
    P = collections.namedtuple("P", "x y")
    ordered = collections.OrderedDict(b=[1], a=2)
    ordered.move_to_end("b")
    default = collections.defaultdict(list, k=[1])
    out = []
    for o in (P(1, [2]), ordered, default, collections.Counter("aab"), collections.deque([[1]])):
        c, d = copy.copy(o), copy.deepcopy(o)
        out.append((c, d, c == o, type(d).__name__, next(iter(d))))
    return out


def what_was_visited():
    class Node:
        def __init__(self, *kids):
            self.kids = kids

    def count(node, seen):
        if id(node) in seen:
            return 0
        seen.add(id(node))
        return 1 + sum(count(kid, seen) for kid in node.kids)

    leaf = Node()
    both = Node(leaf, leaf)
    memo = {id(leaf): "leaf", id(both): "both"}
    return count(Node(leaf, both, both), set()), memo[id(both)], memo.get(id(Node())), len(memo)


def aliases_of_types():
    def f(a: list[int], b: Callable[[int], str] | None = None) -> dict[str, tuple[int, ...]]:
        return a

    return (
        f.__annotations__,
        list[int] == list[int],
        list[int] | None,
        f([1]),
        isinstance(list[int], types.GenericAlias),
    )


def dicts_of_other_classes():
    class D(dict):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.made = len(kwargs)

    o = collections.OrderedDict.fromkeys("ab", value=1)
    o |= {"c": 2}
    both = o | {"a": 5}
    o.move_to_end("a")
    d = D({"x": 1}, y=2)
    proxy = types.MappingProxyType(d)
    d["z"] = 3
    return (
        list(o),
        both,
        d.made,
        [*proxy],
        proxy["z"],
        collections.defaultdict.fromkeys("q"),
    )


def hashes_and_texts_of_dataclasses():
    @dataclasses.dataclass(frozen=True)
    class Inner:
        x: int

    @dataclasses.dataclass(frozen=True)
    class Outer:
        inner: Inner
        name: str = "n"

    d = {Outer(Inner(1)): "one"}
    return (
        d[Outer(Inner(1))],
        Outer(Inner(2)) in d,
        repr(Outer(Inner(3))),
        len({Inner(1), Inner(1)}),
    )


def signatures():
    def f(a, b: int = 2, *args, c=3, **kwargs):
        pass

    s = inspect.signature(f)
    bound = s.bind(1, c=4)
    bound.apply_defaults()
    return str(s), dict(bound.arguments), [p.kind.name for p in s.parameters.values()]


def descriptors_by_hand():
    class A:
        __slots__ = ("s",)

        @classmethod
        def c(cls):
            return cls.__name__

    a = A()
    a.s = 1
    split = operator.methodcaller("split", sep=",")
    return A.s.__get__(a), A.__dict__["c"].__get__(None, A)(), split("a,b"), a.__repr__.__name__
