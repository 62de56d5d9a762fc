"""Everyday programs, each called several times with equal, other and changed arguments."""

import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import itertools
import json
import operator
import re
import string
import struct


def _each(call, f, *argument_makers):
    """Fresh arguments twice over, then each maker's own objects again and again."""
    for make in argument_makers:
        call(f, *make())
        call(f, *make())
        kept = make()
        call(f, *kept)
        call(f, *kept)


def memo_in_a_global_dict(call):
    cache = {}

    def f(k):
        if k not in cache:
            cache[k] = [k]
        return cache[k]

    call.watch(cache)
    for k in (1, 2, 1, 2, 1):
        call(f, k)


def memo_in_an_attribute(call):
    class O:
        def value(self):
            if not hasattr(self, "_value"):
                self._value = [len(vars(self))]
            return self._value

    def f(o):
        return o.value()

    o = O()
    for _ in range(3):
        call(f, o)
    del o._value
    call(f, o)


def observers(call):
    class Subject:
        def __init__(self):
            self.watchers = []

        def emit(self, *args, **kwargs):
            for watcher in list(self.watchers):
                watcher(*args, **kwargs)

    def f(s, x):
        s.emit(x, k=len(s.watchers))

    s, log = Subject(), []
    call.watch(s, log)
    call(f, s, 1)
    s.watchers.append(lambda x, k: log.append((x, k)))
    call(f, s, 1)
    s.watchers.append(lambda x, k: s.watchers.pop())
    call(f, s, 1)
    call(f, s, 1)


def visitor(call):
    @dataclasses.dataclass
    class Num:
        n: int

    @dataclasses.dataclass
    class Add:
        left: object
        right: object

    class Visitor:
        def __init__(self):
            self.seen = []

        def visit(self, node):
            return getattr(self, "visit_" + type(node).__name__)(node)

        def visit_Num(self, node):
            self.seen.append(node.n)
            return node.n

        def visit_Add(self, node):
            return self.visit(node.left) + self.visit(node.right)

    def f(tree):
        v = Visitor()
        return v.visit(tree), v.seen

    def tree(n):
        return Add(Add(Num(1), Num(n)), Num(3))

    call(f, tree(2))
    call.again(f, tree(2))
    t = tree(2)
    t.left.right = Add(Num(5), Num(6))
    call(f, t)
    Visitor.visit_Num = lambda self, node: 100
    call(f, tree(2))


def user_iterator_from_outside(call):
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

    def f(it):
        first = next(it, None)
        return first, [x for x in it if x % 2]

    c = Count(6)
    call(f, c)
    call(f, c)
    call(f, Count(6))


def context_managers(call):
    @contextlib.contextmanager
    def noted(log, name):
        log.append("in " + name)
        try:
            yield name.upper()
        except KeyError:
            log.append("caught")
        finally:
            log.append("out " + name)

    def f(log, bad):
        with noted(log, "a") as a, contextlib.suppress(IndexError):
            if bad == 1:
                raise KeyError("k")
            if bad == 2:
                [][1]
            log.append(a)
        with contextlib.ExitStack() as stack:
            stack.enter_context(noted(log, "b"))
            stack.callback(log.append, "callback")
        with contextlib.nullcontext(5) as five:
            return five, len(log)

    for bad in (0, 1, 2, 0, 1):
        call(f, [], bad)


def finally_overrides(call):
    def f(log, n):
        for i in range(3):
            try:
                if i == n:
                    continue
                if n == 5:
                    return "try"
                log.append(i)
            finally:
                log.append("f")
                if n == 6:
                    break
        else:
            log.append("else")
        return log

    for n in (0, 5, 6, 9, 0):
        call(f, [], n)


def custom_exceptions(call):
    class Error(Exception):
        def __init__(self, code, *args):
            super().__init__(*args)
            self.code = code

    def g(n):
        if n > 1:
            raise Error(n, "big") from KeyError("cause")
        return n

    def f(n):
        try:
            return g(n)
        except Error as e:
            return e.code, e.args, type(e.__cause__).__name__, str(e)
        except Exception:
            return "other"

    for n in (0, 1, 2, 3, "x", 2):
        call(f, n)


def nested_handlers(call):
    def f(xs, log):
        for x in xs:
            try:
                try:
                    log.append(10 // x)
                except ZeroDivisionError:
                    log.append("zero")
                    raise ValueError(x)
                except TypeError as e:
                    log.append(type(e).__name__)
            except ValueError as e:
                log.append(e.args)
        return log

    _each(call, f, lambda: ([1, 0, "a", 2], []), lambda: ([0, 0], []))


def augmented_assignments(call):
    class O:
        pass

    def f(o, d, xs, t):
        o.l += [1]
        d["l"] += [2]
        xs[0] += [3]
        xs[1] *= 2
        try:
            t[0] += [4]
        except TypeError:
            pass
        o.n += 1
        d["n"] |= 4
        return o.l is d["l"]

    def make():
        o = O()
        o.l, o.n = [], 1
        return o, {"l": o.l, "n": 1}, [[0], 3], ([],)

    _each(call, f, make)


def closures_in_a_loop(call):
    def f(n):
        late = [lambda: i for i in range(n)]
        early = [lambda i=i: i for i in range(n)]
        total = 0

        def add(x):
            nonlocal total
            total += x
            return total

        return [g() for g in late], [g() for g in early], [add(x) for x in range(n)], total

    _each(call, f, lambda: (3,), lambda: (0,))


def generators_with_send_and_throw(call):
    def gen(log):
        got = yield 1
        log.append(got)
        try:
            yield 2
        except ValueError as e:
            log.append(str(e))
            yield from inner(log)
        return "end"

    def inner(log):
        try:
            yield "inner"
        finally:
            log.append("inner done")

    def f(log):
        g = gen(log)
        out = [next(g), g.send("sent"), g.throw(ValueError("thrown"))]
        g.close()
        return out, list(inner(log))

    _each(call, f, lambda: ([],))


def generator_resumed_by_the_next_call(call):
    def f(state):
        if state["g"] is None:

            def gen():
                n = 0
                while True:
                    n += 1
                    yield n

            state["g"] = gen()
        return next(state["g"])

    state = {"g": None}
    results = []
    for _ in range(4):
        results.append(call.target(f)(state))
    call.note(results)


def itertools_programs(call):
    def f(xs, ys):
        return (
            list(itertools.chain(xs, ys)),
            list(itertools.product(xs, repeat=2)),
            list(itertools.zip_longest(xs, ys, fillvalue="-")),
            list(itertools.accumulate(xs)),
            [(k, list(g)) for k, g in itertools.groupby(xs, key=lambda x: x % 2)],
            list(itertools.islice(itertools.cycle(ys), 5)),
            list(itertools.starmap(operator.add, zip(xs, ys))),
            list(itertools.takewhile(lambda x: x < 3, xs)),
            list(itertools.combinations(xs, 2)),
            [list(t) for t in itertools.tee(iter(xs), 2)],
            dict(zip("abc", itertools.count(len(xs)))),
        )

    _each(call, f, lambda: ([1, 3, 2], [4, 5]), lambda: ([1, 2], [7]))


def functools_programs(call):
    class Base:
        @functools.singledispatchmethod
        def show(self, x):
            return "any"

        @functools.cached_property
        def slow(self):
            self.count = getattr(self, "count", 0) + 1
            return [self.count]

        part = functools.partialmethod(lambda self, a, b: (a, b), 1)

    @functools.total_ordering
    class V:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __lt__(self, other):
            return self.n < other.n

    def f(b, n):
        add = functools.partial(operator.add, 10)
        return (
            add(n),
            b.slow,
            b.part(2),
            V(1) <= V(n),
            functools.reduce(lambda a, x: a * x, [1, 2, n]),
            sorted([V(3), V(1), V(n)], key=functools.cmp_to_key(lambda a, b: a.n - b.n))[0].n,
        )

    b = Base()
    for n in (1, 2, 1):
        call(f, b, n)
    call(f, Base(), 1)


def operator_getters(call):
    class O:
        def __init__(self):
            self.a = self
            self.n = 5
            self.xs = [1, 2]

        def m(self, x):
            return x + self.n

    get, item, method = (
        operator.attrgetter("a.n", "xs"),
        operator.itemgetter(1),
        operator.methodcaller("m", 3),
    )

    def f(o):
        return get(o), item(o.xs), method(o), operator.itemgetter("k", "z")({"k": 1, "z": 2})

    o = O()
    call(f, o)
    o.n = 6
    o.xs[1] = 9
    call(f, o)


def copies(call):
    class Node:
        def __init__(self, n):
            self.n, self.kids, self.up = n, [], None

    def f(x, node):
        a = copy.copy(x)
        b = copy.deepcopy(x)
        c = copy.copy(node)
        a["new"] = 1
        b["l"].append(2)
        return a, b, a["l"] is x["l"], b["l"] is x["l"], c.kids is node.kids

    def make():
        n = Node(1)
        n.kids.append(n)
        shared = [1]
        return {"l": shared, "m": shared}, n

    _each(call, f, make)


def deep_copy_of_a_cycle(call):
    class Node:
        pass

    def f(node):
        other = copy.deepcopy(node)
        return other, other.me is other, other is node

    def make():
        n = Node()
        n.me, n.xs = n, [n]
        return (n,)

    _each(call, f, make)


def formatting(call):
    class P:
        def __init__(self, x):
            self.x = x

        def __format__(self, spec):
            return f"P<{self.x}:{spec}>"

        def __repr__(self):
            return f"P({self.x!r})"

    def f(p, n, d):
        return (
            "{0.x[0]} {k:>{w}}".format(p, k=n, w=6),
            f"{p:abc} {p!r} {n:08.3f} {n=} {d['k']!s:<4}|",
            "%(k)s %(n)05d" % d,
            "%r %s %%" % (p, n),
            string.Template("$k and ${n}").substitute(d),
            str(d),
            "{:{}}".format(n, ">5"),
        )

    for n in (1, 2, 1):
        call(f, P([n]), n, {"k": "v", "n": n})


def texts(call):
    def f(s, t):
        return (
            s.split(t), t.join(["a", s]), s.replace(t, "_"), s.partition(t), s.find(t),
            s.encode(), s.translate({97: "x"}), s[::-1], s * 2, t in s, s.title(), s.zfill(9),
            sorted(s), [c for c in s], s.startswith((t, "z")), min(s), s.count("a"), s.isdigit(),
            int("12", 8), s < t, s.casefold() == s, "".join(reversed(s)), s.maketrans("a", "b"),
        )  # fmt: skip

    for args in (("banana", "n"), ("banana", "x"), ("apple pie", " "), ("banana", "n")):
        call(f, *args)


def patterns(call):
    word = re.compile(r"(?P<name>\w+)=(\d+)")

    def f(s):
        m = word.search(s)
        return (
            m and (m.group("name"), m.groups(), m.span()),
            re.sub(r"\d", "#", s),
            word.findall(s),
            [x.group() for x in word.finditer(s)],
            re.split("[,;]", s),
        )

    for s in ("a=1,b=22", "none", "a=1,b=22", "x=9;"):
        call(f, s)


def json_and_struct(call):
    def f(d):
        text = json.dumps(d, sort_keys=True)
        return text, json.loads(text) == d, struct.pack("<if", d["i"], 0.5), struct.calcsize("3q")

    _each(call, f, lambda: ({"i": 1, "l": [1, None, "é"]},), lambda: ({"i": 2},))


def named_tuples_and_enums(call):
    Point = collections.namedtuple("Point", "x y", defaults=[0])

    class Color(enum.IntFlag):
        RED = 1
        GREEN = 2

    def f(p, c):
        q = p._replace(y=5)
        return (
            q,
            q._asdict(),
            p == (1, 2),
            Point(3),
            c | Color.GREEN,
            c.name,
            Color(1) is Color.RED,
            Color["RED"],
        )

    call(f, Point(1, 2), Color.RED)
    call(f, Point(1, [2]), Color.GREEN)
    call(f, Point(1, 2), Color.RED)


def data_classes(call):
    @dataclasses.dataclass(order=True)
    class D:
        n: int
        tags: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            self.tags.append(self.n)

    def f(n, other):
        d = D(n)
        e = dataclasses.replace(d, n=n + 1)
        return d, e, d < e, d == other, max([e, d, other]), dataclasses.asdict(d)

    call(f, 1, D(5))
    call(f, 1, D(1))
    call(f, 2, D(1, ["x"]))


def metaclass_call(call):
    class Single(type):
        made = {}

        def __call__(cls, *args):
            if cls not in Single.made:
                Single.made[cls] = super().__call__(*args)
            return Single.made[cls]

    class S(metaclass=Single):
        def __init__(self, n):
            self.n = n

    def f(n):
        return S(n).n

    call(f, 1)
    call(f, 2)
    Single.made.clear()
    call(f, 3)
    call.note(S(9).n)


def multiple_inheritance(call):
    class A:
        def go(self, log):
            log.append("A")

    class B(A):
        def go(self, log):
            log.append("B")
            super().go(log)

    class C(A):
        def go(self, log):
            log.append("C")
            super().go(log)

    class D(B, C):
        def go(self, log):
            log.append("D")
            super().go(log)

    def f(o, log):
        o.go(log)
        return log, [k.__name__ for k in type(o).__mro__]

    call(f, D(), [])
    call.again(f, D(), [])
    call(f, B(), [])
    C.go = lambda self, log: log.append("patched")
    call(f, D(), [])


def attribute_hooks(call):
    class Proxy:
        def __init__(self, target):
            object.__setattr__(self, "_target", target)

        def __getattr__(self, name):
            return getattr(self._target, name)

        def __setattr__(self, name, value):
            setattr(self._target, name, value)

        def __delattr__(self, name):
            delattr(self._target, name)

    class T:
        def m(self):
            return self.x

    def f(p):
        p.y = p.x + 1
        p.x = p.m() * 2
        if hasattr(p, "z"):
            del p.z
        return p.y

    t = T()
    t.x = 1
    p = Proxy(t)
    for _ in range(3):
        call(f, p)
    t.z = 1
    call(f, p)


def property_that_raises_attribute_error(call):
    class C:
        @property
        def p(self):
            return self.inner.value

        def __getattr__(self, name):
            return ("fallback", name)

    class Inner:
        pass

    def f(c):
        return c.p

    c = C()
    call(f, c)
    c.inner = Inner()
    call(f, c)
    c.inner.value = 3
    call(f, c)


def user_containers(call):
    def f(ul, ud, us):
        ul.append(len(ul))
        ud["k"] = ul[0]
        return list(ul), dict(ud), us.upper(), ul + [1], "k" in ud

    def make():
        return collections.UserList([1]), collections.UserDict(a=1), collections.UserString("ab")

    _each(call, f, make)


def dict_view_operations(call):
    def f(d, e):
        return (
            sorted(d.keys() & e.keys()), sorted(d.keys() | e), d.items() <= e.items(),
            list(reversed(d)), ("a", 1) in d.items(), d | e, {**e, **d}, list(map(d.get, e)),
            dict.fromkeys(d, 0), sorted(d.items(), key=lambda kv: -kv[1]), max(d, key=d.get),
        )  # fmt: skip

    _each(call, f, lambda: ({"a": 1, "b": 2}, {"b": 3}), lambda: ({"a": 1}, {"a": 1, "c": 0}))


def changed_while_iterated(call):
    def f(xs, d, s):
        out = []
        for x in xs:
            out.append(x)
            if x == 1:
                xs.append(9)
        for what in (d, s):
            try:
                for k in what:
                    what.pop(k) if what is d else what.add(k + 100)
            except RuntimeError as e:
                out.append(str(e))
        return out

    _each(call, f, lambda: ([1, 2], {"a": 1, "b": 2}, {1, 2}))


def sort_of_user_objects(call):
    class V:
        def __init__(self, n, log):
            self.n, self.log = n, log

        def __lt__(self, other):
            self.log.append((self.n, other.n))
            return self.n < other.n

    def f(ns, log):
        vs = [V(n, log) for n in ns]
        vs.sort()
        return [v.n for v in vs], min(vs).n, max(vs, key=lambda v: -v.n).n

    _each(call, f, lambda: ([3, 1, 2], []), lambda: ([1, 1], []))


def comparisons_of_user_objects(call):
    class Odd:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return NotImplemented if not isinstance(other, Odd) else [self.n == other.n]

        def __lt__(self, other):
            return "truthy" if self.n < other.n else ""

    def f(a, b):
        return a == b, a != b, a < b, a > b, a == 5, [a] == [b], 1 if a < b else 2, a in [b, 5]

    for a, b in ((1, 2), (1, 1), (2, 1)):
        call(f, Odd(a), Odd(b))


def numbers(call):
    def f(a, b):
        out = []
        for op in (operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
                   operator.mod, operator.pow, divmod, operator.and_, operator.lshift, max):  # fmt: skip
            try:
                out.append(op(a, b))
            except Exception as e:
                out.append(type(e).__name__)
        return out, abs(a), round(a, 1), int(a), float(b), bool(a), str(a), hash(b) == hash(b), -a

    for a, b in ((7, 2), (7.5, 2), (7, 0), (-7, 3), (True, 2), (10**30, 3), (7, 2)):
        call(f, a, b)


def match_classes(call):
    class P:
        __match_args__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    def f(v):
        match v:
            case P(0, y):
                return "zero", y
            case P(x=int() as x, y=[a, *rest]) if x > 1:
                return x, a, rest
            case {"p": P(x, _)} | [P(x, _)]:
                return "in", x
            case (1 | 2) as n:
                return n
            case _:
                return None

    values = (P(0, 1), P(2, [1, 2]), {"p": P(3, 4)}, [P(5, 6)], 2, P(1, 1))
    for v in values:
        call(f, v)
    P.__match_args__ = ("y", "x")
    call(f, P(1, 0))


def stars(call):
    def g(a, *args, k=1, **kw):
        return a, args, k, kw

    def f(xs, d):
        first, *middle, last = xs
        return g(*xs, **d), g(*middle, last, **{**d, "z": 1}), [*xs, *middle], {**d, "a": first}

    _each(call, f, lambda: ([1, 2, 3], {"k": 2}), lambda: ((1, 2), {"q": [1]}))


def keyword_errors(call):
    def g(a, *, k):
        return a, k

    def f(d):
        try:
            return g(1, **d)
        except TypeError as e:
            return str(e)

    for d in ({"k": 1}, {}, {"k": 1, "a": 2}, {"z": 1}, {"k": 5}):
        call(f, d)


def recursion(call):
    def fib(n, memo):
        if n in memo:
            return memo[n]
        memo[n] = n if n < 2 else fib(n - 1, memo) + fib(n - 2, memo)
        return memo[n]

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    def f(n, memo):
        return fib(n, memo), even(n)

    memo = {}
    for n in (5, 8, 8):
        call(f, n, memo)
    call(f, 5, {})


def long_loop(call):
    def f(n, xs):
        total = 0
        for i in range(n):
            total += i * i % 7
            xs.append(total % 10)
        while len(xs) > 5:
            xs.pop()
        return total

    call(f, 3000, [])
    call.again(f, 3000, [])


def big_containers(call):
    def f(xs, d):
        xs.sort()
        d.update(zip(xs, xs))
        return sum(xs), len(d)

    def make():
        return list(range(3000, 0, -1)), {i: i for i in range(2000)}

    call(f, *make())
    call.again(f, *make())


def priority_queue(call):
    import bisect
    import heapq

    def f(heap, items, xs):
        for item in items:
            heapq.heappush(heap, item)
        bisect.insort(xs, 5)
        return heapq.heappop(heap), heapq.nsmallest(2, heap), bisect.bisect(xs, 4)

    _each(call, f, lambda: ([], [3, 1, 2], [1, 9]), lambda: ([0], [5, 5], [5]))


def linked_state_machine(call):
    class Machine:
        def __init__(self):
            self.state = self.start
            self.log = []

        def start(self, x):
            self.state = self.middle if x > 1 else self.start
            return "start"

        def middle(self, x):
            self.state = self.start
            return "middle"

        def step(self, x):
            self.log.append(self.state(x))
            return self.log[-1]

    def f(m, xs):
        return [m.step(x) for x in xs]

    m = Machine()
    for xs in ([1, 2], [2], [2, 1, 3]):
        call(f, m, xs)


def function_objects_made_and_kept(call):
    registry = {}

    def register(name):
        def deco(g):
            registry[name] = g
            return g

        return deco

    def f(name, n):
        @register(name)
        def made(x, scale=n):
            """Made inside."""
            return x * scale

        return made.__name__, made.__doc__, made(2), sorted(registry)

    call.watch(registry)
    call(f, "a", 2)
    call(f, "b", 3)
    call(f, "a", 2)
    call.note([g(5) for g in registry.values()])


def class_level_counters(call):
    class C:
        count = 0
        names = set()

        def __init__(self, name):
            self.name = name
            self.names.add(len(name))
            self.index = len(self.names)

    def f(name):
        return C(name)

    call.watch(C)
    for name in ("a", "bb", "a"):
        call(f, name)


def bytes_and_views(call):
    def f(b, ba):
        ba.extend(b)
        ba[0:1] = b"zz"
        return (
            bytes(ba),
            b.hex(),
            b.decode("latin1"),
            b + bytes(ba[:2]),
            b.split(b"b"),
            ba.find(b"c"),
            list(b),
        )

    _each(call, f, lambda: (b"abc", bytearray(b"xy")), lambda: (b"", bytearray(b"q")))


def walrus_and_comprehensions(call):
    def f(xs, k):
        out = [y for x in xs if (y := x * k) > 2]
        nested = [[i + j for j in range(i)] for i in xs]
        table = {x: [y for y in xs if y < x] for x in xs}
        return out, nested, table, {x % 2 for x in xs}, sum(x for x in xs if x != k), y

    _each(call, f, lambda: ([1, 2, 3], 2), lambda: ([3], 1))


def chained_attribute_and_item_writes(call):
    class O:
        pass

    def f(root):
        node = root
        for key in ("a", "b"):
            if not hasattr(node, key):
                setattr(node, key, O())
            node = getattr(node, key)
        node.hits = getattr(node, "hits", 0) + 1
        root.table.setdefault("x", {}).setdefault("y", []).append(node.hits)
        return node

    root = O()
    root.table = {}
    for _ in range(4):
        call(f, root)


def defaults_shared_between_calls(call):
    def g(x, acc={"n": 0}, *, log=[]):
        acc["n"] += x
        log.append(acc["n"])
        return acc

    def f(x):
        return g(x), g(x, log=[]), len(g.__kwdefaults__["log"])

    call.watch(g)
    for x in (1, 2, 1):
        call(f, x)


def swap_of_bindings(call):
    class Pair:
        def __init__(self):
            self.left, self.right = [1], [2]

    def f(p, q):
        p.left, q.left = q.left, p.left
        p.right, p.left = p.left, p.right
        p.left.append(len(q.left))
        return p.left is q.right

    p, q = Pair(), Pair()
    call(f, p, q)
    call(f, p, q)
    call(f, p, p)
    call(f, q, p)
