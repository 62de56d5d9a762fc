"""Corners: lifetimes, unusual ways to write, deep structures, values that C code looks into."""

import collections
import functools
import gc
import operator
import sys
import weakref

from worlds import module_of


class _O:
    pass


def local_generator_alive_at_return_runs_its_finally(call):
    def f(log):
        def g():
            try:
                yield 1
            finally:
                log.append("finally")

        it = g()
        next(it)
        log.append("return")
        return len(log)

    for _ in range(3):
        call(f, [])


def generator_argument_of_an_inner_call_dies_at_its_end(call):
    def f(log):
        def g():
            try:
                yield 1
            finally:
                log.append("finally")

        def use(it):
            next(it)
            log.append("used")

        use(g())
        log.append("after")
        return log

    for _ in range(2):
        call(f, [])


def displaced_object_with_a_weak_value_entry(call):
    def f(h, table):
        h.x = None
        return len(table), list(table)

    for _ in range(3):
        h, table = _O(), weakref.WeakValueDictionary()
        h.x = _O()
        table["k"] = h.x
        call.loose(f, h, table)


def displaced_object_with_a_weakref_callback(call):
    def f(h, log):
        h.x = 5
        log.append("after")
        return list(log)

    for kind in (0, 1, 1):
        h, log = _O(), []
        h.x = _O()
        ref = weakref.ref(h.x, lambda r: log.append("died")) if kind else None
        call.loose(f, h, log)


def displaced_container_that_holds_a_finalizer(call):
    log = []

    class R:
        def __del__(self):
            log.append(1)

    def f(h):
        h.box = None
        return len(log)

    for depth in (0, 1, 2, 0):
        h = _O()
        h.box = [] if depth == 0 else [R()] if depth == 1 else [{"k": (R(),)}]
        call.loose(f, h)
    call.note(len(log))


def displaced_generator_with_a_finally(call):
    log = []

    def gen():
        try:
            yield 1
        finally:
            log.append("finally")

    def f(d):
        d["g"] = None
        return list(log)

    for _ in range(3):
        g = gen()
        next(g)
        d = {"g": g}
        del g
        call.loose(f, d)


def cleared_list_of_finalizers(call):
    log = []

    class R:
        def __del__(self):
            log.append(1)

    def f(xs):
        xs.clear()
        n = len(log)
        xs.append(n)
        return n

    for count in (0, 2, 1):
        call.loose(f, [R() for _ in range(count)])


def unusual_ways_to_write_a_list(call):
    rows = """
    list.__init__(x, [9, 8])
    x.__init__("ab")
    list.append.__get__(x)(1)
    functools.partial(list.append, x)(2)
    operator.iadd(x, [3])
    operator.iconcat(x, [3])
    operator.delitem(x, 0)
    operator.imul(x, 2)
    type(x).insert(x, 0, "i")
    getattr(x, "ext" + "end")([4, 5])
    x.append.__call__(6)
    x.append.__self__.append(7)
    list(map(x.append, x[:2]))
    [x.pop() for _ in range(2)]
    x.__class__.reverse(x)
    x.__iadd__(x)
    (lambda *a: x.extend(a))(*x)
    operator.methodcaller("append", 5)(x)
    sorted(x, key=lambda e: x.append(e) if len(x) < 6 else 0)
    any(x.append(1) for _ in range(2))
    x[slice(0, 1)] = [5, 6]
    x.__setitem__(slice(None, None, 2), x[::2])
    """
    for row in rows.strip().splitlines():
        m = module_of(
            f"def f(x):\n    {row.strip()}\n    return len(x)",
            functools=functools,
            operator=operator,
        )
        x = [1, 2, 3]
        call(m.f, x)
        call(m.f, [1, 2, 3])
        call(m.f, x)


def unusual_ways_to_write_a_dict(call):
    rows = """
    dict.__init__(x, z=5)
    x.__init__([("q", 1)])
    dict.update(x, k=9)
    operator.setitem(x, "n", 1)
    operator.ior(x, {"m": 2})
    x.__ior__({"m": 3})
    functools.partial(dict.__setitem__, x, "p")(4)
    x.update(x)
    x.update({k + "_": v for k, v in x.items()})
    [x.setdefault(c, i) for i, c in enumerate("ab")]
    list(map(x.pop, list(x)))
    x.update(zip(x.values(), x))
    x.pop(next(iter(x)))
    list(map(x.__delitem__, list(x)[:1]))
    dict.clear(x); x.update(a=1)
    x.__setitem__("k", x); x.pop("k")
    x["k"] = x.keys() - {"k"}
    operator.delitem(x, "k")
    x.setdefault("new", x.get("k"))
    """
    for row in rows.strip().splitlines():
        m = module_of(
            f"def f(x):\n    {row.strip()}\n    return len(x)",
            functools=functools,
            operator=operator,
        )
        x = {"k": 1, "a": 2}
        call(m.f, x)
        call(m.f, {"k": 1, "a": 2})
        call(m.f, x)


def unusual_ways_to_write_an_object(call):
    rows = """
    object.__setattr__(x, "a", 5)
    object.__delattr__(x, "a")
    x.__setattr__("a", 6)
    type(x).__setattr__(x, "n", 7)
    x.__dict__.__setitem__("a", 8)
    setattr(x, "a" + "b", 1); delattr(x, "ab")
    vars(x).clear()
    x.__dict__.update(x.__dict__)
    vars(x)[1] = "not a name"
    functools.partial(setattr, x)("a", 9)
    list(map(functools.partial(delattr, x), list(vars(x))))
    x.__init__()
    x.a, x.b = x.b, x.a; x.__dict__["a"], x.b = x.b, x.a
    operator.attrgetter("__dict__")(x)["a"] = 3
    x.__dict__ = dict(vars(x), z=1)
    """
    for row in rows.strip().splitlines():
        body = "\n    ".join(row.strip().split("; "))
        m = module_of(
            f"def f(x):\n    {body}\n    return list(vars(x))",
            functools=functools,
            operator=operator,
        )
        x = _Two()
        call(m.f, x)
        call(m.f, _Two())
        call(m.f, x)


class _Two:
    def __init__(self):
        self.a, self.b = 1, [2]


def readers_specialised_by_cpython_see_writes(call):
    m = module_of("G = 0\ndef get(): return G\ndef f(n):\n    global G\n    G = n\n    return n")
    o = _O()
    o.x, o.y = 0, 0

    def get(o):
        return o.x

    def f(o, n):
        o.x = n
        if n == 3:
            del o.y
        if n == 4:
            o.y = o.z = 1

    for n in range(6):
        for _ in range(100):
            get(o)
            m.get()
        call(f, o, n)
        call(m.f, n)
        call.note((get(o), m.get(), [hasattr(o, c) for c in "xyz"], list(vars(o)) if n == 5 else 0))


def deep_recursion(call):
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    def f(n):
        try:
            return down(n)
        except RecursionError:
            return "too deep"

    for n in (10, 300, 300):
        call(f, n)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(6000)
    try:
        call.loose(f, 4000)
        call.loose(f, 4000)
    finally:
        sys.setrecursionlimit(limit)


def deep_structure_made_inside(call):
    def f(n):
        x = []
        for _ in range(n):
            x = [x]
        d = t = None
        for i in range(n):
            d, t = {"d": d}, (t,)
        return x, d, t

    def depth(x):
        n = 0
        while isinstance(x, list) and x:
            x, n = x[0], n + 1
        return n

    for n in (50, 50, 5000, 5000):
        call.note(depth(call.target(f)(n)[0]))


def deep_structure_from_outside(call):
    def f(x):
        n = 0
        while x:
            x, n = x[0], n + 1
        return n

    for n in (50, 50, 400):
        x = []
        for _ in range(n):
            x = [x]
        call.loose(f, x)


def linked_list_of_objects(call):
    def f(head):
        n, node = 0, head
        while node is not None:
            node.index = n
            n, node = n + 1, node.next
        return n

    for length in (3, 3, 200, 200):
        head = None
        for _ in range(length):
            node = _O()
            node.next, head = head, node
            head = node
        call.loose(f, head)
        call.note(getattr(head, "index", None))


def returned_type_of_new(call):
    class A:
        def __new__(cls, x):
            return x if x else object.__new__(cls)

        def __init__(self, x):
            self.x = x

    def f(x):
        return A(x)

    call(f, 0)
    call(f, [1])
    call(f, 0)


def init_that_returns_something(call):
    class A:
        def __init__(self, x):
            return x

    def f(x):
        try:
            return type(A(x)).__name__
        except TypeError as e:
            return str(e)

    call(f, None)
    call(f, 5)
    call(f, None)


def unhashable_and_unorderable(call):
    class E:
        def __eq__(self, other):
            return True

    def f(x, y):
        out = []
        for action in (lambda: {x: 1}, lambda: x < y, lambda: hash((1, x)), lambda: sorted([x, y]),
                       lambda: {x, y}, lambda: x + y, lambda: x[0], lambda: len(x)):  # fmt: skip
            try:
                out.append(type(action()).__name__)
            except Exception as e:
                out.append((type(e).__name__, str(e)))
        return out

    for x, y in ((E(), 1), ([1], [2]), (1, "a"), ({}, ()), (E(), E()), ([1], [2])):
        call(f, x, y)


def conversions_of_user_objects(call):
    class N:
        def __init__(self, n):
            self.n = n

        def __index__(self):
            return self.n

        def __float__(self):
            return self.n / 2

    def f(n, xs):
        return (
            xs[n],
            xs[n:],
            range(n),
            int(n),
            float(n),
            "a" * n,
            hex(n),
            bin(n),
            xs[:n],
            round(3.14159, n),
        )

    for n in (1, 2, 1):
        call(f, N(n), [1, 2, 3])
    N.__int__ = lambda self: 77
    call(f, N(1), [1, 2, 3])
    N.__index__ = lambda self: 0
    call(f, N(1), [1, 2, 3])


def stop_iteration_inside_generators(call):
    def f(n):
        def g():
            yield 1
            next(iter([]))

        def h():
            try:
                yield from g()
            except RuntimeError as e:
                yield str(e)
            return 5

        def k():
            got = yield from h()
            yield got

        try:
            return list(k()), next(iter([]), n)
        except Exception as e:
            return repr(e)

    for n in (1, 2, 1):
        call(f, n)


def unbound_locals_and_names(call):
    def f(n):
        if n:
            x = 1
        out = []
        try:
            out.append(x)
        except UnboundLocalError as e:
            out.append(str(e))
        try:
            out.append(no_such_name_anywhere)
        except NameError as e:
            out.append((str(e), e.name))
        del n
        try:
            n
        except UnboundLocalError:
            out.append("gone")
        return out

    for n in (0, 1, 0):
        call(f, n)


def exceptions_and_their_arguments(call):
    def f(o, xs):
        try:
            raise ValueError(o, xs)
        except ValueError as e:
            e.args[1].append(1)
            e.extra = o
            caught = e.args[0] is o
            e.add_note("note")
            return caught, e.extra is o, e.__notes__, len(xs)

    o, xs = _O(), []
    call(f, o, xs)
    call(f, o, xs)
    call(f, _O(), [])


def exception_kept_outside(call):
    def f(log, n):
        try:
            raise KeyError(n)
        except KeyError as e:
            log.append(e)
        return log[-1].args

    log = []
    for n in (1, 2, 1):
        call.target(f)(log, n)
    call.note([(type(e).__name__, e.args, e.__traceback__ is not None) for e in log])


def bare_raise_and_handled_exceptions(call):
    def g():
        raise

    def f(n):
        out = []
        try:
            g()
        except RuntimeError as e:
            out.append(str(e))
        try:
            try:
                raise ValueError(n)
            except ValueError:
                g()
        except ValueError as e:
            out.append((e.args, e.__context__ is None))
        out.append(sys.exc_info()[0])
        return out

    for n in (1, 2, 1):
        call.loose(f, n)


def called_while_an_exception_is_handled(call):
    def f(n):
        try:
            raise KeyError(n)
        except KeyError as e:
            inner = type(e.__context__).__name__
        return inner, sys.exc_info()[0] and sys.exc_info()[0].__name__

    for kind in (None, ValueError, None, OSError):
        try:
            if kind:
                raise kind
            call.loose(f, 1)
        except Exception:
            call.loose(f, 1)


def dict_order_after_many_changes(call):
    def f(d, plan):
        for what, key in plan:
            if what == "set":
                d[key] = len(d)
            elif what == "del":
                d.pop(key, None)
            else:
                d[key] = d.pop(key, "moved")
        return list(d)

    plans = [
        [("set", "a"), ("del", "b"), ("set", "b"), ("move", "c"), ("set", "z")],
        [("del", "a"), ("del", "b"), ("del", "c"), ("set", "c"), ("set", "a")],
        [("move", "a"), ("move", "b"), ("move", "a")],
    ]
    for plan in plans * 2:
        call(f, {"a": 1, "b": 2, "c": 3}, plan)
        call(f, collections.OrderedDict(a=1, b=2, c=3), plan)


def attribute_order_after_many_changes(call):
    def f(o):
        o.b = 1
        del o.a
        o.c = 2
        o.a = 3
        del o.b
        o.b = 4
        o.d = o.a

    for _ in range(3):
        o = _O()
        o.a = 0
        call(f, o)
        call(f, o)


def same_key_of_another_type(call):
    def f(d):
        d[True] = "bool"
        d[1.0] = "float"
        d["1"] = "text"
        return d[1], list(d), len(d)

    for d in ({1: "int"}, {True: 0}, {}, {1: "int"}):
        call(f, d)
        call(f, d)


def counter_of_calls_in_every_place(call):
    class Meta(type):
        def __getattr__(cls, name):
            cls.log.append("meta " + name)
            return name

    class C(metaclass=Meta):
        log = []

        def __getattr__(self, name):
            self.log.append("inst " + name)
            return name

        def __getitem__(self, key):
            self.log.append(("item", key))
            return key

        def __contains__(self, key):
            self.log.append(("in", key))
            return True

        def __eq__(self, other):
            self.log.append("eq")
            return True

        def __hash__(self):
            self.log.append("hash")
            return 1

        def __bool__(self):
            self.log.append("bool")
            return True

        def __call__(self, *args):
            self.log.append(("call", args))
            return self

        def __iter__(self):
            self.log.append("iter")
            return iter([1, 2])

        def __len__(self):
            self.log.append("len")
            return 2

        def __enter__(self):
            self.log.append("enter")

        def __exit__(self, *exc):
            self.log.append("exit")

        def __lt__(self, other):
            self.log.append("lt")
            return True

        def __add__(self, other):
            self.log.append("add")
            return self

        def __format__(self, spec):
            self.log.append("format")
            return "f"

        def __index__(self):
            self.log.append("index")
            return 1

    def f(c, d):
        C.missing, c.missing, c[1], 1 in c, c == d, c and 1, c(1)(2), list(c), len(c)
        with c:
            (
                {c: 1}.get(d),
                [c].index(d),
                c in [d],
                (c, 1) == (d, 1),
                sorted([c, d]),
                f"{c}",
                [0, 1][c],
            )
        a, b = c
        x = c + d
        x += 1
        return [i for i in c], max(c, d) is c, {c, d}, bool(c), not c

    call.watch(C.log)
    for _ in range(3):
        call.target(f)(C(), C())
        call.note(list(C.log))


def tracer_does_not_disturb_collection(call):
    def f(n):
        cycles = []
        for _ in range(n):
            x = []
            x.append(x)
            cycles.append(len(x))
        return sum(cycles)

    for n in (3, 3, 2000):
        call(f, n)
    gc.collect()


def star_import_values(call):
    def f(a, b=2, *rest, c=3, **more):
        rest_ = [*rest, b]
        more["new"] = rest_
        return a, rest_, c, more

    call(f, 1)
    call(f, 1, 2, 3, 4, c=5, d=6)
    call(f, *[1, 2], **{"c": 1, "x": []})
    call(f, 1, 2, 3, 4, c=5, d=6)
    call(f, 1)


def calls_of_classes_and_c_functions_with_outside_arguments(call):
    def f(kind, *args):
        return kind(*args)

    for kind, *args in (
        (list, [1, 2]), (dict, {"a": 1}), (set, [1, 1]), (tuple, [[]]), (str, 5), (int, "7"),
        (collections.deque, [1]), (collections.Counter, "aab"), (bytes, [1, 2]), (list, [1, 2]),
    ):  # fmt: skip
        call(f, kind, *args)


def wide_object(call):
    def f(o):
        for i in range(60):
            setattr(o, f"a{i}", getattr(o, f"a{i}", 0) + i)
        return len(vars(o))

    o = _O()
    call(f, o)
    call(f, o)
    call(f, _O())


def write_of_the_value_that_is_there(call):
    def f(o, d, xs):
        o.x = o.x
        d["k"] = d["k"]
        xs[0] = xs[0]
        o.y = 1
        del o.y
        d["t"] = 1
        del d["t"]
        xs.append(1)
        xs.pop()
        return o.x

    def make():
        o = _O()
        o.x = [1]
        return o, {"k": o.x}, [o.x]

    for _ in range(2):
        call(f, *make())
    kept = make()
    call(f, *kept)
    call(f, *kept)
