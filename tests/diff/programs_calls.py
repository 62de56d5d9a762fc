"""Calls of all shapes: how arguments are bound, in which order they are evaluated, and the
texts of the errors when they do not fit."""

import functools

from probes import catch, places, where


def positional_and_keyword():
    def f(a, b, c=3, *args, d, e=5, **kw):
        return a, b, c, args, d, e, kw

    return [
        f(1, 2, d=4),
        f(1, 2, 30, d=4),
        f(1, 2, 30, 31, 32, d=4, z=9),
        f(*(1, 2), **{"d": 4}),
        f(1, *[2, 3], 4, *(5,), d=6, **{"x": 1}, **{"y": 2}),
        f(b=2, a=1, d=0, c=7, e=8),
    ]


def evaluation_order():
    log = []

    def say(x):
        log.append(x)
        return x

    def f(*args, **kw):
        log.append("call")
        return args, kw

    r = say(f)(say(1), *say([2, 3]), say(4), k=say(5), **say({"m": 6}), n=say(7))
    return r, [x if not callable(x) else "f" for x in log]


def order_star_after_keyword():
    log = []

    def say(x):
        log.append(x)
        return x

    def f(*args, **kw):
        return args, kw

    return f(a=say(1), *say((2,)), b=say(3)), log


def errors_too_few():
    def f(a, b, c, *, d, e):
        pass

    return [catch(f), catch(f, 1), catch(f, 1, 2, 3), catch(f, 1, 2, 3, d=1), catch(f, 1, d=1)]


def errors_too_many():
    def none():
        pass

    def one(a):
        pass

    def opt(a, b=1):
        pass

    def kwonly(a, *, k):
        pass

    def kwonly2(a, *, k, m=1):
        pass

    return [
        catch(none, 1),
        catch(none, 1, 2),
        catch(one, 1, 2, 3),
        catch(opt, 1, 2, 3),
        catch(kwonly, 1, 2, k=1),
        catch(kwonly, 1, 2),
        catch(kwonly2, 1, 2, 3, k=1, m=2),
    ]


def errors_unexpected_keyword():
    def f(alpha, beta=1):
        pass

    class C:
        def method(self, x):
            pass

        @classmethod
        def klass(cls, x):
            pass

        @staticmethod
        def stat(x):
            pass

    return [
        catch(f, 1, gamma=2),
        catch(f, alpa=2),
        catch(C().method, y=1),
        catch(C.klass, y=1),
        catch(C.stat, y=1),
        catch(C().method),
        catch(C().method, 1, 2),
        catch(C.method, 1),
    ]


def errors_positional_only():
    def f(a, b, /, c, *, d=1):
        return a, b, c, d

    def g(a, /, **kw):
        return a, kw

    return [
        f(1, 2, 3),
        f(1, 2, c=3),
        catch(f, a=1, b=2, c=3),
        catch(f, 1, b=2, c=3),
        catch(f, 1, 2, c=3, a=4),
        g(1, a=2),
        catch(g, a=2),
    ]


def errors_multiple_values():
    def f(a, b=2, *args, **kw):
        pass

    return [
        catch(f, 1, a=2),
        catch(f, 1, 2, b=2),
        catch(lambda: f(1, **{"a": 2})),
        catch(lambda: f(a=1, **{"a": 2})),
        catch(lambda: f(**{"b": 1}, **{"b": 2})),
        catch(lambda: f(1, x=1, **{"x": 2})),
        catch(lambda: dict(a=1, **{"a": 2})),
    ]


def errors_star_arguments():
    def f(*args, **kw):
        return args, kw

    class Keys:
        def keys(self):
            return ["p", "q"]

        def __getitem__(self, k):
            return k * 2

    class BadKeys:
        def keys(self):
            raise ValueError("no keys")

        def __getitem__(self, k):
            return k

    class OnlyItems:
        def __getitem__(self, k):
            return k

    def explode():
        yield 1
        raise KeyError("mid")

    return [
        catch(lambda: f(*5)),
        catch(lambda: f(1, *None)),
        catch(lambda: f(**5)),
        catch(lambda: f(a=1, **[1])),
        catch(lambda: f(**{1: 2})),
        catch(lambda: f(**{"a": 1, 2: 3})),
        catch(lambda: f(**Keys())),
        catch(lambda: f(x=1, **Keys())),
        catch(lambda: f(**BadKeys())),
        catch(lambda: f(**OnlyItems())),
        catch(lambda: f(*explode())),
        catch(lambda: f(0, *explode(), 2)),
    ]


def errors_star_on_named_function():
    def target(*args):
        return args

    class C:
        def method(self, *args, **kw):
            return args, kw

    c = C()
    return [
        catch(lambda: c.method(*3)),
        catch(lambda: c.method(**3)),
        catch(lambda: len(*3)),
        catch(lambda: print(**3)),
        catch(lambda: target(*1, *2)),
        catch(lambda: target(*[1], **[2])),
    ]


def not_callable():
    class Plain:
        pass

    number, word, nothing, pair = 1, "s", None, (1, 2)
    return [
        catch(lambda: number()),
        catch(lambda: word(2)),
        catch(lambda: Plain()(x=1)),
        catch(lambda: nothing(*[1])),
        catch(lambda: [].missing()),
        catch(lambda: pair(0)),
        catch(lambda: Plain()(**{"a": 1})),
    ]


def positions_of_failing_calls():
    def f(a):
        raise ValueError(a)

    def outer():
        return [
            1,
            f(
                "spread over"
                + " lines"
            ),
        ]

    def wrong_count():
        return f(1, 2) + f(
            3
        )

    return where(outer), where(wrong_count)


def callable_instance():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x, *rest, scale=1):
            return (self.n + x + sum(rest)) * scale

    a = Adder(10)
    return a(1), a(1, 2, 3), a(1, scale=2), a(*[1, 2], **{"scale": 3}), Adder(0)(5)


def callable_chain():
    class Nest:
        def __init__(self, depth):
            self.depth = depth

        def __call__(self):
            return Nest(self.depth - 1)() if self.depth else "bottom"

    return Nest(6)()


def bound_methods():
    class C:
        def __init__(self, v):
            self.v = v

        def get(self, *a, **k):
            return self.v, a, k

    c, d = C(1), C(2)
    m = c.get
    u = C.get
    c.get2 = d.get
    return m(1, x=2), u(d, 3), c.get2(4), m.__self__ is c, m.__func__ is u, c.get == c.get


def method_or_attribute():
    class C:
        def m(self):
            return "class"

    c = C()
    first = c.m()
    c.m = lambda: "instance"
    second = c.m()
    del c.m
    third = c.m()
    C.m = 5
    return first, second, third, catch(lambda: c.m())


def builtin_calls():
    d = {"a": 1}
    xs = [3, 1, 2]
    return [
        len(xs),
        isinstance(xs, list),
        sorted(xs, key=lambda v: -v),
        max(xs, default=0),
        max(1, 5, 2),
        int("ff", 16),
        int("12", base=8),
        str(b"x", "ascii"),
        d.get("b", 7),
        d.pop("a"),
        xs.append(9),
        "a-b".split(sep="-"),
        "{0}{x}".format(1, x=2),
        type("T", (), {"v": 1}).v,
        sum(range(5), start=10),
        list(zip([1, 2], [3, 4], strict=True)),
        divmod(17, 5),
        round(2.567, ndigits=1),
    ]


def builtin_call_errors():
    return [
        catch(len),
        catch(len, 1, 2),
        catch(len, obj=[]),
        catch(isinstance, 1),
        catch(lambda: [].append()),
        catch(lambda: [].append(1, 2)),
        catch(lambda: [].append(x=1)),
        catch(lambda: [].sort(1)),
        catch(lambda: {}.get()),
        catch(lambda: "".join(1)),
        catch(lambda: "".join([1])),
        catch(lambda: int("z")),
        catch(lambda: int(base=1)),
        catch(lambda: str.upper(1)),
        catch(lambda: list.append([])),
        catch(lambda: list.append(1, 2)),
        catch(lambda: type(1, 2)),
        catch(lambda: object(1)),
        catch(lambda: range()),
        catch(lambda: dict([1])),
        catch(lambda: print(1, bad=2)),
    ]


def many_arguments():
    def f(*a, **k):
        return len(a), sum(a), len(k), sum(k.values())

    kw = {f"k{i}": i for i in range(300)}
    return f(*range(300)), f(**kw), f(*range(100), **kw), f(
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, *range(5), a=1
    )


def call_with_names_many():
    def f(a0=0, a1=1, a2=2, a3=3, a4=4, a5=5, a6=6, a7=7, a8=8, a9=9):
        return a0, a1, a2, a3, a4, a5, a6, a7, a8, a9

    return f(a9=90, a0=0, a5=50), f(1, 2, a8=8, a3=33), f(*[1, 2, 3], a4=44)


def default_values():
    calls = []

    def make(v):
        calls.append(v)
        return [v]

    def f(a=make(1), *, b=make(2)):
        a.append("x")
        b.append("y")
        return list(a), list(b)

    return f(), f(), f([0]), f(b=[]), calls, f.__defaults__, f.__kwdefaults__


def changed_defaults():
    def f(a, b=1, *, c=2):
        return a, b, c

    before = f(0)
    f.__defaults__ = (10, 11)
    f.__kwdefaults__ = {"c": 12}
    between = f()
    f.__defaults__ = None
    f.__kwdefaults__ = None
    return before, between, catch(f), catch(f, 1, 2)


def changed_code():
    def f(a):
        return ("f", a)

    def g(b):
        return ("g", b)

    first = f(1)
    f.__code__ = g.__code__
    return first, f(2), f.__name__, catch(f, a=1), f(b=3)


def lambda_defaults():
    fs = [lambda x, i=i: (x, i) for i in range(3)]
    gs = [lambda x: (x, i) for i in range(3)]
    h = lambda *a, k=(lambda: "inner"), **kw: (a, k(), kw)
    return [f(9) for f in fs], [g(9) for g in gs], h(), h(1, k=lambda: 2, z=3)


def partials():
    def f(a, b=0, *args, **kw):
        return a, b, args, kw

    p = functools.partial(f, 1, x=2)
    q = functools.partial(p, 3, y=4)
    return p(), q(5, x=6), catch(functools.partial(f)), catch(q, a=1), q.args, q.keywords


def decorators_order():
    log = []

    def tag(name):
        log.append(f"make {name}")

        def deco(fn):
            log.append(f"apply {name}")

            @functools.wraps(fn)
            def wrapper(*a, **k):
                log.append(f"in {name}")
                try:
                    return fn(*a, **k)
                finally:
                    log.append(f"out {name}")

            return wrapper

        return deco

    @tag("a")
    @tag("b")
    @tag("c")
    def f(x):
        log.append("body")
        return x

    return f(3), f.__name__, log


def decorator_with_arguments_and_class():
    class Register:
        table = {}

        def __init__(self, key):
            self.key = key

        def __call__(self, fn):
            self.table[self.key] = fn
            return fn

    @Register("one")
    def one():
        return 1

    @Register("two")
    class Two:
        v = 2

    return sorted(Register.table), Register.table["one"](), Register.table["two"].v


def decorator_fails():
    log = []

    def bad(fn):
        log.append(fn.__name__)
        raise TypeError("will not decorate")

    def define():
        @bad
        def inner():
            pass

        return inner

    return where(define), log


def recursive_fib():
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return [fib(i) for i in range(12)]


def mutual_recursion():
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return even(40), odd(40), even(41)


def callbacks_from_native():
    log = []

    class Key:
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            log.append((self.v, other.v))
            return self.v < other.v

    out = [k.v for k in sorted([Key(3), Key(1), Key(2)])]
    reduced = functools.reduce(lambda a, b: log.append(b) or a + b, [1, 2, 3])
    mapped = list(map(lambda a, b: a * b, [1, 2], [3, 4]))
    return out, reduced, mapped, list(filter(lambda v: v % 2, range(6))), log


def callback_raises_through_native():
    def key(v):
        if v == 2:
            raise LookupError("in key")
        return v

    return where(sorted, [1, 2, 3], key=key), where(lambda: list(map(key, [1, 2])))


def return_positions():
    def none():
        pass

    def bare():
        return

    def tup():
        return 1, *[2, 3], 4

    return none(), bare(), tup()


def call_method_via_super_and_class():
    class A:
        def f(self, x):
            return ["A", x]

    class B(A):
        def f(self, x, y=2):
            return ["B", *super().f(x), *A.f(self, y), *super(B, self).f(x + y)]

    return B().f(1), B.f(B(), 5, y=6)


def keyword_names_from_strings():
    def f(**kw):
        return kw

    class S(str):
        pass

    return f(**{"not an identifier": 1, "": 2, "def": 3}), f(**{S("sub"): 1})


def argument_mutation_is_isolated():
    def f(*args, **kw):
        kw["new"] = 1
        return args, kw

    xs, d = [1, 2], {"a": 1}
    r = f(*xs, **d)
    return r, xs, d, r[1] is d


def class_call_errors():
    class NoInit:
        pass

    class Init:
        def __init__(self, a):
            self.a = a

    class BadInit:
        def __init__(self):
            return 1

    class New:
        def __new__(cls, x):
            return x

        def __init__(self, x):
            raise AssertionError("never called for a foreign object")

    return [
        catch(NoInit, 1),
        catch(NoInit, a=1),
        catch(Init),
        catch(Init, 1, 2),
        Init(3).a,
        catch(BadInit),
        New(5),
    ]


def traceback_through_wrapper():
    def deco(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    @deco
    @deco
    def fail(x):
        return 1 / x

    try:
        fail(0)
    except ZeroDivisionError as exc:
        return places(exc.__traceback__)


def uncaught_from_nested_calls():
    def a(x):
        return b(x) + 1

    def b(x):
        return [c(y) for y in x]

    def c(y):
        return {"k": y}["missing"]

    return a((1, 2))


def uncaught_type_error():
    def f(a, *, b):
        return a + b

    return f("x", b=1)


def singledispatch_and_cache():
    @functools.singledispatch
    def show(x):
        return "object"

    @show.register
    def _(x: int):
        return "int"

    @show.register(list)
    def _(x):
        return "list of " + show(x[0])

    calls = []

    @functools.lru_cache(maxsize=None)
    def slow(n):
        calls.append(n)
        return n if n < 2 else slow(n - 1) + slow(n - 2)

    return show(1), show([1]), show([[""]]), show(1.5), slow(10), calls, slow.cache_info()[:2]


def apply_table():
    ops = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "call": lambda f, *a: f(*a),
    }
    return ops["add"](1, 2), ops["call"](ops["sub"], 5, 3), ops["call"](ops["call"], max, 1, 2)


def method_on_literals():
    return (
        "x".upper(),
        (1).bit_length(),
        [1, 2].copy(),
        {1: 2}.items() >= {(1, 2)},
        b"ab".hex(),
        (1.5).is_integer(),
        "%s" % "x".join("abc"),
    )
