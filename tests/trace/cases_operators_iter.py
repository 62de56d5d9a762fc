"""Iteration, taking apart, pouring into containers, generators."""

import collections
import functools
import itertools
import operator
import time


class Count:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Fresh:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return Count(self.n)


def loops(call):
    def f(xs):
        return [x for x in xs], [x for x in xs]

    for xs in (
        [1, [2]],
        (1, 2),
        "ab",
        {"a": 1},
        {"a": 1}.items(),
        range(3),
        collections.deque([1]),
    ):
        call(f, xs)
    call.traced(f)


def elements_stay_lazy(call):
    def f(xs):
        return [(x,) for x in xs]

    call(f, [1, 2])
    call.again(f, [3, "x"])
    call.again(f, [[3], None])
    call.traced(f, 1)


def loop_over_a_dict_that_changes(call):
    def f(d):
        seen = []
        for k in d:
            seen.append(k)
        for k, v in d.items():
            seen.append((k, v))
        for v in d.values():
            seen.append(v)
        return seen

    d = {"a": 1, "b": [2]}
    call(f, d)
    d["a"] = 10
    call.again(f, d)
    d["c"] = 3
    call(f, d)
    del d["a"]
    call(f, d)
    call.traced(f)


def changed_while_iterated(call):
    def f(d):
        try:
            for k in d:
                d[k + "x"] = 1
        except RuntimeError as e:
            return str(e)

    d = {"a": 1}
    call.watch(d)
    call(f, d)
    call(f, d)
    call.traced(f)


def list_changed_while_iterated(call):
    def f(xs):
        for x in xs:
            if x < 3:
                xs.append(x + 1)
        return xs

    call(f, [1, 2])
    call(f, [0])
    call.traced(f)


def sets_in_their_own_order(call):
    def f(s):
        return list(s), [x for x in s]

    call(f, {8, 0})
    call(f, {0, 8})
    call(f, {"a"})
    call(f, frozenset([3, 1, 2]))


def sets_of_objects_made_inside(call):
    class C:
        def __init__(self, n):
            self.n = n

    def f(n):
        s = {C(i) for i in range(n)}
        return len(s), sum(c.n for c in s)

    call(f, 5)
    call(f, 5)


def sets_of_strings_made_inside(call):
    def f(xs):
        s = set()
        for x in xs:
            s.add(x)
        return list(s), sorted(s)

    call(f, ["b", "a", "c"])
    call(f, ["c", "b", "a"])


def python_iterators(call):
    def f(o):
        return [x for x in o], list(o), tuple(o)

    call(f, Fresh(3))
    call.again(f, Fresh(3))
    call(f, Fresh(4))
    call.traced(f)


def outside_python_iterator(call):
    def f(o):
        a = next(o)
        for x in o:
            return a, x

    o = Count(5)
    call.watch(o)
    call(f, o)
    call(f, o)
    call.traced(f)


def sequence_protocol(call):
    class S:
        def __init__(self, n):
            self.n = n

        def __getitem__(self, i):
            if i >= self.n:
                raise IndexError(i)
            return i * 10

    def f(o):
        return [x for x in o], list(o)

    call(f, S(3))
    call(f, S(2))
    call.traced(f)


def not_iterable(call):
    def f(o):
        try:
            return list(x for x in o)
        except TypeError as e:
            return str(e)

    class N:
        __iter__ = None

    class B:
        def __iter__(self):
            return 5

    call(f, 5)
    call(f, None)
    call(f, N())
    call(f, B())
    call(f, object())
    call.traced(f)


def outside_iterators_are_not_advanced(call):
    def f(it):
        return [x for x in it]

    def g(it):
        return next(it, None)

    for make in (
        lambda: iter([1, 2]),
        lambda: (i for i in range(3)),
        lambda: map(str, [1, 2]),
        lambda: zip("ab", "cd"),
        lambda: enumerate("ab"),
        lambda: itertools.count(),
    ):
        it = make()
        call.note(call(g, it))
        call.note(call(g, it))
    it = iter([1, 2, 3])
    call(g, it)
    call(f, it)
    call(f, it)


def iterator_hidden_in_a_list(call):
    def f(xs):
        return [list(x) for x in xs], dict(zip(*xs)) if len(xs) == 2 else None

    a, b = iter("ab"), iter([1, 2])
    call(f, [a, b])
    call(f, [iter("xy"), iter([3, 4])])


def generators(call):
    def gen(n, xs):
        got = yield n
        for x in xs:
            got = yield (x, got)
        return "done"

    def f(n, xs):
        g = gen(n, xs)
        out = [next(g), g.send("hello")]
        out += list(g)
        return out

    call(f, 1, [1, 2])
    call.again(f, 1, [1, 2])
    call(f, 2, ["x"])
    call.traced(f)


def yield_from(call):
    def inner(xs):
        total = 0
        for x in xs:
            got = yield x
            total += got or 0
        return total

    def outer(xs):
        result = yield from inner(xs)
        yield ("result", result)
        yield from [1, 2]
        yield from Count(2)

    def f(xs, v):
        g = outer(xs)
        out = [next(g)]
        for value in (v, None, v):
            out.append(g.send(value))
        return out + list(g)

    call(f, [1, 2, 3], 5)
    call(f, [1, 2, 3], 6)
    call(f, [1, 2, 3], None)
    call.traced(f)


def stop_iteration_value(call):
    def inner():
        return 5
        yield

    def outer(o):
        x = yield from o
        return x

    class It:
        def __iter__(self):
            return self

        def __next__(self):
            raise StopIteration(7)

    def f():
        out = []
        for o in (inner(), It()):
            g = outer(o)
            try:
                next(g)
            except StopIteration as e:
                out.append(e.value)
        return out

    call(f)
    call(f)
    call.traced(f)


def sequences_taken_apart(call):
    def f(xs):
        a, b, c = xs
        d, *e = xs
        *g, h = xs
        i, *j, k = xs
        return a, b, c, d, e, g, h, i, j, k

    call(f, [1, 2, 3])
    call.again(f, [4, 5, 6])
    call(f, (1, [2], 3))
    call(f, "abc")
    call(f, {"a": 1, "b": 2, "c": 3})
    call(f, range(3))
    call.traced(f)


def taken_apart_wrongly(call):
    def f(xs):
        try:
            a, b = xs
        except (TypeError, ValueError) as e:
            return str(e)

    def g(xs):
        try:
            a, b, *c = xs
        except (TypeError, ValueError) as e:
            return str(e)

    for h in (f, g):
        call(h, [1])
        call(h, (1, 2, 3))
        call(h, 5)
        call(h, None)
        call(h, "a")
        call(h, iter([]))
    call(f, {"a": 1})


def generators_taken_apart(call):
    def f(n):
        a, b, c = (i * i for i in range(n))
        d, *e = Fresh(n)
        return a, b, c, d, e

    call(f, 3)
    call.again(f, 3)
    call.traced(f)


def outside_generator_taken_apart(call):
    def f(g):
        a, b = g
        return a, b

    call(f, (i for i in range(2)))
    call(f, iter([3, 4]))


def star_lists(call):
    def f(a, b):
        return [*a, 0, *b], (*a, *b), {*a}, [*a][0]

    call(f, [1, [2][0]], (3,))
    call(f, "ab", {"x": 1})
    call(f, range(2), Fresh(2))


def star_list_of_what_is_not_iterable(call):
    def f(a):
        try:
            return [*a]
        except TypeError as e:
            return str(e)

    call(f, 5)
    call(f, None)
    call(f, object())
    call.traced(f)


def sets_built(call):
    def f(a, b):
        s = {a, b, 1}
        s2 = {*[a, b], *{b}}
        return sorted(map(str, s)), sorted(map(str, s2)), a in s, {x for x in (a, b)} == {a, b}

    call(f, 1, 2)
    call(f, "x", (1, 2))
    call(f, 1.0, True)
    call.traced(f)


def unhashable_in_a_set(call):
    def f(a):
        try:
            return {a, 1}
        except TypeError as e:
            return str(e)

    call(f, [])
    call(f, {})
    call(f, ([1],))
    call.traced(f)


def dicts_built(call):
    def f(k, v, d):
        a = {k: v, "z": k}
        b = {**a, **d, "last": 1}
        return a, b, {x: y for x, y in b.items()}, dict(**d)

    call(f, "k", [1], {"p": 1})
    call(f, "k", 2, {"p": 1, "q": 2})
    call(f, "j", 2, {"z": 5})
    call.traced(f)


def dict_keys_hash_as_in_plain(call):
    class K:
        def __init__(self, n):
            self.n = n
            self.hashed = 0

        def __hash__(self):
            self.hashed += 1
            return hash(self.n)

        def __eq__(self, other):
            return isinstance(other, K) and self.n == other.n

    def f(a, b):
        d = {a: 1}
        d[b] = 2
        return len(d), a in d, a.hashed, b.hashed

    call(f, K(1), K(1))
    call(f, K(1), K(2))
    call.traced(f)


def mapping_of_a_class_in_a_dict(call):
    class M:
        def __init__(self, **d):
            self.d = d

        def keys(self):
            return self.d.keys()

        def __getitem__(self, k):
            return self.d[k]

    def g(**kw):
        return kw

    def f(m):
        return {**m}, g(**m)

    call(f, M(a=1))
    call(f, M(a=2, b=3))
    call.traced(f)


def not_a_mapping(call):
    def g(**kw):
        return kw

    def f(m):
        out = []
        for h in (lambda: {**m}, lambda: g(**m)):
            try:
                out.append(h())
            except TypeError as e:
                out.append(str(e))
        return out

    call(f, 5)
    call(f, [1])
    call(f, {"a": 1})


def keyword_twice(call):
    def g(**kw):
        return kw

    def f(d):
        try:
            return g(a=1, **d)
        except TypeError as e:
            return str(e)

    call(f, {"b": 1})
    call(f, {"a": 1})


def dict_subclass_poured(call):
    class D(dict):
        def keys(self):
            return ["only"]

        def __getitem__(self, k):
            return "got " + k

    class E(dict):
        def __iter__(self):
            return iter(["it"])

        def keys(self):
            return ["only"]

        def __getitem__(self, k):
            return "got " + k

    def f(d):
        return {**d}, dict(d)

    call(f, D(a=1))
    call(f, E(a=1))


def comprehensions(call):
    def f(xs, n):
        return [x + n for x in xs if x], {x: n for x in xs}, {x % 2 for x in xs}

    call(f, [1, 2, 0], 5)
    call(f, [1, 2, 0], 6)
    call.traced(f)


def itertools_inside(call):
    def f(xs, ys):
        return (
            list(itertools.chain(xs, ys)),
            list(zip(xs, ys)),
            list(enumerate(xs, 1)),
            list(itertools.accumulate(xs)),
            list(itertools.product(xs, ys)),
            list(map(operator.add, xs, ys)),
            list(filter(None, xs)),
            list(reversed(xs)),
            [(k, list(g)) for k, g in itertools.groupby(xs)],
        )

    call(f, [1, 2, 2], [3, 4, 5])
    call(f, [1, 0, 0], [3, 4, 5])


def zip_strict(call):
    def f(a, b):
        try:
            return [x for x in zip(a, b, strict=True)]
        except ValueError as e:
            return str(e)

    call(f, [1], [2])
    call(f, [1, 2], [2])
    call.traced(f)


def next_with_a_default(call):
    def f(xs):
        it = iter(xs)
        a = next(it)
        b = next(it, "end")
        try:
            c = next(it)
        except StopIteration:
            c = "stopped"
        return a, b, c

    call(f, [1])
    call(f, [1, 2])
    call(f, [1, 2, 3])
    call.traced(f)


def native_code_calls_back(call):
    out = []

    def f(xs, names, o):
        list(map(out.append, xs))
        return (
            functools.reduce(getattr, names, o),
            sorted(xs, key=lambda x: -x),
            max(xs, key=str),
            list(map(int, map(str, xs))),
            list(map(dict.get, [{1: 2}], [1])),
        )

    class O:
        pass

    o = O()
    o.a = O()
    o.a.b = "end"
    call.watch(out)
    call(f, [1, 20, 3], ["a", "b"], o)
    call(f, [4, 1], ["a"], o)


def keys_that_are_tuples_of_objects(call):
    class P:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            return self.n < other.n

    def f(xs):
        return [x.n for x in sorted(xs, key=lambda x: (0, x))]

    call(f, [P(2), P(1)])
    call(f, [P(1), P(2)])


def callback_raises(call):
    def bad(x):
        raise ValueError(x)

    def f(xs):
        try:
            return sorted(xs, key=bad)
        except ValueError as e:
            return e.args

    call(f, [1, 2])
    call(f, [3])
    call.traced(f)


def enumerate_of_objects(call):
    def f(o):
        return [(i, x) for i, x in enumerate(o)], list(zip(o, "abc"))

    call(f, Fresh(2))
    call(f, [1, 2])


def unpack_in_a_for(call):
    def f(pairs):
        return [a + b for a, b in pairs], [x for a, *x in pairs]

    call(f, [(1, 2), (3, 4)])
    call(f, [(1, 2), [3, 4]])
    call.traced(f)


def calls_until_a_sentinel(call):
    def f(xs, end):
        seen = []
        for x in iter(xs.pop, end):
            seen.append(x)
        return seen, xs

    call(f, [0, 1, 2, 3], 0)
    call(f, [0, 1, 2, 3], 1)
    call(f, [0, True, 2, 3], 1)
    call(f, [0.0, 1, 2], 0)
    call(f, [None, "a"], None)
    call(f, [1, 2], 7)


def calls_until_a_sentinel_of_a_class(call):
    class E:
        limit = 3

        def __eq__(self, other):
            return other >= self.limit

    def f(end):
        n = 0

        def count():
            nonlocal n
            n += 1
            if n == 8:
                raise StopIteration
            return n

        it = iter(count, end)
        return list(it), next(it, "over"), n

    e = E()
    call(f, e)
    call.again(f, e)
    E.limit = 5
    call(f, e)
    e.limit = 2
    call(f, e)
    call(f, 100)
    E.__eq__ = lambda self, other: other == 1
    call(f, e)


def calls_of_objects_until_a_sentinel(call):
    step = 1

    class C:
        def __init__(self):
            self.n = 0

        def __call__(self):
            self.n += step
            if self.n > 20:
                raise ValueError(self.n)
            return self.n

    def f(end):
        c = C()
        try:
            return sum(iter(c, end)), c.n
        except ValueError as error:
            return error.args

    call(f, 3)
    call.again(f, 3)
    step = 2
    call(f, 4)
    call(f, 3)
    call(f, c := object())
    call.note(c is not None)


def identical_things_end_the_calls(call):
    nan = float("nan")

    def f(x, end):
        return list(zip(range(3), iter(lambda: x, end)))

    call(f, nan, nan)
    call(f, float("nan"), nan)
    one, two = object(), object()
    call(f, one, one)
    call(f, one, two)
    call(f, two, two)
    call(f, [1], [1])
    call(f, [1], [2])


def what_cannot_be_called_until_a_sentinel(call):
    def f(x):
        try:
            return iter(x, 1) is None
        except TypeError as error:
            return str(error)

    call(f, 3)
    call(f, [])
    call(f, len)


def calls_given_out(call):
    def f(xs):
        return iter(xs.pop, 1)

    for _ in range(2):
        call.loose(lambda xs: list(f(xs)), [1, 2, 3])
        it = call.target(f)([1, 2, 3])
        call.note(list(it))


def calls_over_a_break(call):
    def f(xs):
        it = iter(xs.pop, 1)
        first = next(it, None)
        time.perf_counter()
        second = next(it, None)
        time.perf_counter()
        return first, second, list(it), xs

    for _ in range(2):
        call(f, [0, 1, 2, 3, 4, 5])
        call(f, [0, 1, 2])
        call(f, [0, 1])
