"""Programs that look at what a break must leave as it was: cells, frames, handled exceptions,
tracebacks, and who seems to have called."""

import functools
import inspect
import logging
import sys
import traceback
import types
import warnings

import ticks as t


def cells_shared_with_closures():
    x = 1

    def bump():
        nonlocal x
        x += 1
        t.tick("bump", x)
        return x

    def read():
        return x

    t.tick(x)
    a = bump()
    x += 10
    t.tick(read())
    return a, bump(), read(), x


def cells_of_a_loop():
    fs = []
    for i in range(3):

        def f(j=i):
            return i, j

        t.tick(f())
        fs.append(f)
    return [f() for f in fs]


def a_cell_not_bound_yet():
    def read():
        return late

    try:
        read()
    except NameError as e:
        t.tick(str(e)[:12])
    late = 5
    t.tick("bound")
    return read()


def cells_three_deep():
    def a():
        x = []

        def b():
            def c():
                x.append(len(x))
                t.tick(x)
                return x

            t.tick("b")
            return c

        f = b()
        f()
        return x, f

    x, f = a()
    return f() is x, x


def a_class_that_closes_over():
    n = 2

    class A:
        def double(self):
            t.tick(n)
            return __class__.__name__, n * 2

    n = 3
    return A().double()


def super_calls():
    class A:
        def f(self):
            t.tick("A")
            return ["A"]

    class B(A):
        def f(self):
            t.tick("B")
            return [*super().f(), "B"]

    return B().f()


def inits_that_break():
    class A:
        def __init__(self, x):
            t.tick("init", x)
            self.x = x

    class B(A):
        def __init__(self, x):
            super().__init__(x + 1)
            t.tick("after")
            self.y = x

    b = B(1)
    return b.x, b.y, type(b).__name__


def an_init_that_returns_something():
    class A:
        def __init__(self):
            t.tick("init")
            return 5

    try:
        A()
    except TypeError as e:
        return e.args


def special_methods_that_break():
    class N:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            t.tick("add")
            return N(self.n + other.n)

        def __eq__(self, other):
            t.tick("eq")
            return self.n == other.n

        def __hash__(self):
            t.tick("hash")
            return hash(self.n)

        def __len__(self):
            t.tick("len")
            return self.n

        def __bool__(self):
            t.tick("bool")
            return self.n > 0

        def __getitem__(self, key):
            t.tick("item")
            return key

        def __contains__(self, key):
            t.tick("contains")
            return key == self.n

        def __iter__(self):
            t.tick("iter")
            return iter([self.n])

        def __call__(self, x):
            t.tick("call")
            return x

        def __getattr__(self, name):
            t.tick("attr", name)
            return name

        def __enter__(self):
            t.tick("enter")
            return self

        def __exit__(self, *args):
            t.tick("exit")

    a, b = N(1), N(2)
    out = [
        (a + b).n,
        a == b,
        len({a, b}),
        len(b),
        bool(a),
        a["k"],
        1 in a,
        list(b),
        a(7),
        a.missing,
    ]
    out += [0 if a else 1, [1, b] == [1, N(2)], {a: 1}.get(N(1))]
    with a as inner:
        out.append(inner is a)
    return out


def properties_that_break():
    class A:
        @property
        def x(self):
            t.tick("get")
            return self._x

        @x.setter
        def x(self, value):
            t.tick("set", value)
            self._x = value

        @functools.cached_property
        def y(self):
            t.tick("cached")
            return [1]

        @classmethod
        def c(cls):
            t.tick(cls.__name__)
            return cls

        @staticmethod
        def s(x):
            t.tick("static")
            return x

    a = A()
    a.x = 5
    a.x += 1
    return a.x, a.y is a.y, A.c() is A, a.s(3)


def callbacks_that_break():
    def key(x):
        t.tick(x)
        return -x

    out = [sorted([3, 1, 2], key=key), list(map(key, [1, 2])), max([1, 2], key=key)]
    out.append(functools.reduce(lambda a, b: t.tick(a) or a + b, [1, 2, 3]))
    return out


def partials_and_methods():
    class A:
        def m(self, a, b=2, *, c):
            t.tick(a, b, c)
            return a, b, c

    f = functools.partial(A().m, 1, c=3)
    return f(), f(5), f(c=9), t.tick(f.args)


def star_calls():
    def f(a, *args, k=0, **kwargs):
        t.tick(a, args, k, sorted(kwargs))
        return a, args, k, kwargs

    xs, d = [1, 2, 3], {"k": 4, "z": 5}
    return f(*xs, **d), f(0, *xs), f(*"ab", **{})


def an_exception_through_frames():
    def a():
        t.tick("a")
        raise ValueError("deep")

    def b():
        try:
            a()
        finally:
            t.tick("b cleans up")

    def c():
        b()

    try:
        c()
    except ValueError as e:
        t.tick("caught")
        return [
            (x.name, x.lineno - c.__code__.co_firstlineno)
            for x in traceback.extract_tb(e.__traceback__)
        ]


def an_exception_that_leaves():
    def a(x):
        t.tick("a")
        return 1 // x

    def b(x):
        return a(x) + 1

    return b(0)


def raise_from():
    try:
        try:
            t.tick("in")
            {}["k"]
        except KeyError as e:
            t.tick("k")
            raise ValueError("v") from e
    except ValueError as e:
        t.tick("v")
        return type(e.__cause__).__name__, e.__suppress_context__, e.__cause__ is e.__context__


def raise_from_none_leaves():
    try:
        t.tick("in")
        raise KeyError(1)
    except KeyError:
        t.tick("k")
        raise ValueError(2) from None


def bare_raise():
    def again():
        t.tick("again")
        raise

    try:
        try:
            raise KeyError(1)
        except KeyError:
            t.tick("k")
            again()
    except KeyError as e:
        names = [x.name for x in traceback.extract_tb(e.__traceback__)]
    t.tick("out")
    return names


def bare_raise_leaves():
    try:
        t.tick("in")
        raise KeyError("k")
    except KeyError:
        t.tick("k")
        raise


def contexts_chain():
    try:
        try:
            t.tick(1)
            raise KeyError(1)
        except KeyError:
            t.tick(2)
            raise ValueError(2)
        finally:
            t.tick("f")
    except ValueError as e:
        return e.args, e.__context__.args


def exc_info_inside_handlers():
    def handled():
        e = sys.exc_info()[1]
        return None if e is None else (type(e).__name__, e.args)

    out = [handled()]
    try:
        raise KeyError(1)
    except KeyError:
        t.tick("k")
        out.append(handled())
        try:
            raise ValueError(2)
        except ValueError:
            t.tick("v")
            out.append(handled())
        t.tick("back")
        out.append(handled())
    t.tick("out")
    out.append(handled())
    return out


def exc_info_in_a_generator():
    def g():
        yield sys.exc_info()[0]
        try:
            raise KeyError
        except KeyError:
            t.tick("in")
            yield sys.exc_info()[0]
        yield sys.exc_info()[0]

    try:
        raise ValueError
    except ValueError:
        it = g()
        out = [next(it)]
        t.tick("v")
        out += [next(it), sys.exc_info()[0]]
    out.append(next(it))
    return out


def the_handled_variable_is_unbound():
    try:
        raise KeyError(1)
    except KeyError as e:
        t.tick(e)
    try:
        return e
    except UnboundLocalError:
        t.tick("unbound")
        return "unbound"


def an_exception_kept():
    kept = None
    try:
        t.tick("in")
        raise ValueError("kept")
    except ValueError as e:
        kept = e
    t.tick("out")
    return kept


def an_exception_raised_twice():
    e = ValueError("one")
    out = []
    for _ in range(3):
        try:
            t.tick("in")
            raise e
        except ValueError as f:
            out.append((f is e, len(traceback.extract_tb(f.__traceback__))))
    return out


def an_exception_made_and_not_raised():
    e = KeyError("made")
    e.note = [1]
    t.tick(e.args)
    e.note.append(2)
    return e


def native_exceptions():
    out = []
    for f in (lambda: [][1], lambda: {}["x"], lambda: int("x"), lambda: None.x, lambda: "a" + 1):
        try:
            t.tick("try")
            f()
        except Exception as e:
            t.tick(type(e).__name__)
            out.append(str(e))
    return out


def locals_seen():
    a, b = 1, [2]
    t.tick(sorted(locals()))
    c = 3
    d = dict(locals())
    d.pop("d", None)
    return d


def locals_of_callees():
    def f(x, *args, **kwargs):
        y = x
        t.tick(sorted(locals()))
        return dict(locals())

    return f(1, 2, z=3)


def frames_seen():
    def where():
        frame = sys._getframe(1)
        return frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno

    def f():
        a = where()
        t.tick("in")
        return a, where(), [sys._getframe(1).f_code.co_name for _ in range(1)]

    return f(), where()


def callers_seen_through_breaks():
    def names():
        frame, found = sys._getframe(1), []
        while frame is not None and frame.f_code.co_filename == __file__:
            found.append(frame.f_code.co_name)
            frame = frame.f_back
        return found

    def c():
        t.tick("c")
        return names()

    def b():
        return c()

    def a():
        x = b()
        t.tick("a")
        return x, names()

    return a()


def a_frame_kept():
    def f(x):
        frame = sys._getframe()
        t.tick("kept")
        x += 1
        t.tick("changed")
        return frame

    frame = f(1)
    t.tick("returned")
    return frame.f_locals["x"], frame.f_code.co_name


def a_frame_walked_by_inspect():
    def who():
        return inspect.stack()[1].function

    def f():
        t.tick("f")
        return who()

    return f()


def tracebacks_formatted():
    def f():
        t.tick("f")
        return [][0]

    try:
        f()
    except IndexError:
        t.tick("caught")
        return [line.split(",")[-1].strip() for line in traceback.format_exc().splitlines()]


def warnings_with_a_stacklevel():
    def old():
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        t.tick("old")
        warnings.warn("older", UserWarning, stacklevel=3)

    def user():
        t.tick("user")
        old()

    user()
    warnings.warn("own")


class _Collect(logging.Handler):
    def __init__(self):
        super().__init__()
        self.rows = []

    def emit(self, record):
        self.rows.append((record.funcName, record.lineno, record.getMessage()))


def logging_that_finds_its_caller():
    logger = logging.Logger("breaks")
    handler = _Collect()
    logger.addHandler(handler)

    def work(n):
        logger.info("working on %d", n)
        t.tick(n)
        logger.warning("worked on %d", n, stacklevel=2)

    work(1)
    logger.error("done")
    return handler.rows


def functions_made_across_a_break():
    def make(n):
        def f(x, *, y=n):
            t.tick(x)
            return x + y + n

        t.tick("made")
        return f

    f = make(1)
    return f(1), f.__defaults__, f.__kwdefaults__, f.__closure__[0].cell_contents, f.__qualname__


def a_function_whose_code_changes():
    def g():
        return "g"

    def f():
        f.__code__ = g.__code__
        t.tick("changed")
        return "f"

    return f(), f()


def namespaces_made():
    n = types.SimpleNamespace(a=[1])
    n.b = n.a
    t.tick(n.a)
    n.b.append(2)
    return n.a is n.b, vars(n)


def aliases_stay_aliases():
    a = []
    b = [a, a]
    c = {"b": b, "a": a}
    a.append(c)
    t.tick(len(b))
    return c["b"][0] is c["a"], a[0] is c, b


def identity_of_what_is_made():
    a = (1, [2])
    b = a[1]
    s = frozenset([3])
    t.tick(b)
    b.append(4)
    return a, a[1] is b, s


def iterators_half_way():
    its = [iter([1, 2, 3]), iter({"a": 1, "b": 2}), iter(range(5)), zip([1, 2], "ab"), iter("xyz")]
    its += [enumerate([7, 8]), map(str, [1, 2]), reversed([1, 2, 3])]
    first = [next(i) for i in its]
    t.tick(first)
    return [list(i) for i in its]


def an_async_generator_and_a_coroutine():
    async def work(n):
        t.tick(n)
        return n

    async def all_of_it():
        return [await work(i) for i in range(2)]

    c = all_of_it()
    try:
        c.send(None)
    except StopIteration as stop:
        t.tick("ended")
        return stop.value
