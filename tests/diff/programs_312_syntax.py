"""Python 3.12: type parameters, type aliases, f-strings of the new grammar, and what inlined
comprehensions must not change."""

import sys
import typing

from probes import Dying, catch, places, text, where


def generic_function():
    def f[T, *Ts, **P](x: T, *a: *Ts) -> T:
        return x

    return [repr(p) for p in f.__type_params__], f(5), [type(p).__name__ for p in f.__type_params__]


def generic_bounds_are_lazy():
    log = []

    def note(x):
        log.append(x)
        return x

    def f[T: note(int), U: (note(str), note(bytes))](x: T) -> U: ...

    t, u = f.__type_params__
    before = list(log)
    return before, t.__bound__, u.__constraints__, t.__bound__, log


def generic_bound_error():
    def f[T: undefined_bound](x: T): ...

    return where(lambda: f.__type_params__[0].__bound__)


def generic_class():
    class C[T]:
        x: T

        def m[U](self, u: U) -> tuple[T, U]:
            return u, __class__.__name__

    class D[T](C[T]):
        def m(self, u):
            return super().m(u)

    return (
        C.__type_params__[0].__name__,
        C.__parameters__ == C.__type_params__,
        C.__orig_bases__[0] is not None,
        D().m(3),
        repr(C[int]),
        C.__mro__[1] is typing.Generic,
    )


def generic_class_scopes():
    T = "outer T"
    x = "outer x"

    class C[T](list, **({})):
        x = "class x"
        seen = (x, T)

        def f(self):
            return x, T

    y = C()
    return C.seen[0], repr(C.seen[1]), y.f()[0], repr(y.f()[1]), T


def generic_nonlocal_and_closure():
    def outer():
        n = 0

        def inner[T]():
            nonlocal n
            n += 1
            return n, T

        return inner

    f = outer()
    return f()[0], f()[0], repr(f()[1])


def generic_method_class_cell():
    class C:
        def f[T](self):
            return __class__, super().__repr__ is not None

        @classmethod
        def g[T](cls):
            return cls.__name__

    return C().f()[0] is C, C().f()[1], C.g()


def generic_decorated():
    log = []

    def deco(fn):
        log.append((fn.__name__, [str(p) for p in fn.__type_params__]))
        return fn

    @deco
    def f[T](x: T = log.append("default")): ...

    @deco
    class C[K, V]: ...

    return log


def generic_error_inside():
    def f():
        def g[T](x: undefined_annotation): ...

    def h():
        class C[T](undefined_base): ...

    return where(f), where(h)


def generic_in_class_body():
    class Outer:
        X = int

        def f[T: X](self) -> X: ...

        class Inner[T]:
            y = 5

            def get(self) -> "T":
                return self.y

    return Outer.f.__type_params__[0].__bound__, Outer.Inner().get(), Outer.f.__annotations__["return"]


def generic_async_and_generator():
    def g[T](x: T):
        y = yield x
        yield y

    async def c[T](x: T):
        return x

    it = g(1)
    out = [next(it), it.send(2)]
    try:
        c(3).send(None)
    except StopIteration as stop:
        out.append(stop.value)
    return out


def aliases():
    type A = int | str
    type L[T] = list[T]
    type R = list[R]
    return A.__value__, A.__name__, repr(L[int]), L.__type_params__[0].__name__, repr(R.__value__)


def alias_is_lazy():
    log = []

    def note(v):
        log.append("evaluated")
        return v

    type A = note(int)
    before = list(log)
    return before, A.__value__, A.__value__, log


def alias_error():
    type A = undefined_alias_value
    type B = 1 / 0

    return where(lambda: A.__value__), where(lambda: B.__value__), catch(lambda: A.__value__)


def alias_scopes():
    x = int

    class C:
        x = str
        type A = x

        def f(self):
            type B = x
            return B.__value__

    def g(v):
        type A = list[v]
        v = bytes
        return A.__value__

    return C.A.__value__, C().f(), g(int)


def alias_in_exec():
    space = {}
    exec("type A[T] = dict[T, B]\nB = int", space)
    a = space["A"]
    return repr(a.__value__), a.__module__, [t.__name__ for t in a.__type_params__]


def fstring_new_grammar():
    d = {"k": "v"}
    songs = ["a", "b"]
    return (
        f"{d["k"]}",
        f"{'\n'.join(songs)}",
        f"{f"{f"{1 + 1}"}"}",
        f"{
            d['k']  # a comment
        }",
        f"{'a' 'b'!r}",
        f"{(lambda v: v)(d)['k']:>{4}}",
    )


def fstring_error_positions():
    def f():
        return f"{1} and {2 / 0} and {3}"

    def g():
        d = {}
        return f"{
            d["missing"]
        }"

    return where(f), where(g)


def inlined_comprehension_keeps_unbound():
    def f():
        try:
            return [x for x in [1]], x
        except UnboundLocalError as e:
            return text(e)
        x = 1

    return f()


def inlined_comprehension_error_restores():
    def f():
        x = "before"
        try:
            [(x, 1 / y) for x, y in [(1, 1), (2, 0)]]
        except ZeroDivisionError:
            pass
        return x

    def g():
        x = "before"

        def peek():
            return x

        try:
            [1 / x for x in (1, 0)]
        except ZeroDivisionError:
            return peek(), x

    return f(), g()


def inlined_comprehension_traceback():
    def f(xs):
        return [
            [10 // y for y in x]
            for x in xs
        ]

    return where(f, [[1], [2, 0]])


def inlined_comprehension_locals():
    def f():
        a = 1
        seen = [sorted(locals()) for b in "x"]
        frames = [sys._getframe().f_code.co_name for _ in "x"]
        return seen, frames, sorted(locals()), a

    return f()


def inlined_comprehension_cells():
    def f():
        fs = [lambda: (x, y) for x in range(2) for y in "ab"]
        return [g() for g in fs]

    def h(x):
        inner = [[lambda: (x, z) for z in range(2)] for x in range(2)]
        return [g() for row in inner for g in row], x

    return f(), h("argument")


def inlined_comprehension_in_class():
    class C:
        y = 5
        a = [x for x in range(2)]
        b = [(x, catch(lambda: y)) for x in range(1)]
        names = [sorted(k for k in locals() if not k.startswith("__")) for _ in "x"]

    return C.a, C.b, C.names, hasattr(C, "x")


def inlined_comprehension_class_cell():
    class A:
        def f(self):
            return [super(A, self).__hash__ is not None for _ in range(1)], [
                __class__ is A for _ in range(1)
            ]

        def g(self):
            return [super().__eq__(self) is True or self for _ in range(1)] == [True]

    return A().f(), catch(A().g)


def inlined_comprehension_dying():
    log = []

    def f():
        x = Dying(log, "outer x")
        r = [x for x in [Dying(log, "element")]]
        log.append("made")
        r.clear()
        log.append("cleared")
        return x.name

    log.append(f())
    return log


def inlined_comprehension_iterator_error():
    class Bad:
        def __iter__(self):
            raise ValueError("iter")

    def f():
        x = 1
        try:
            [x for x in Bad()]
        except ValueError as e:
            return x, places(e.__traceback__)

    return f()


def inlined_nested_same_names():
    def f():
        x = "f"
        return [[x for x in range(x)] for x in range(3)], [x for x in [x]], x

    return f()


def inlined_in_generator():
    def g(n):
        total = []
        for i in range(n):
            got = yield [i * j for j in range(i + 1)]
            total += [k for k in (got, i) if k is not None]
        return total

    it = g(3)
    out = [next(it), it.send("a"), it.send(None)]
    try:
        it.send("z")
    except StopIteration as stop:
        return out, stop.value


def inlined_with_del_and_walrus():
    def f():
        x = 5
        r = [(last := x) for x in range(3)]
        del x
        return r, last, catch(lambda: x)

    return f()


def inlined_global_name():
    space = {}
    exec("x = 'global'\nr = [x for x in range(3)]\ns = {x: y for x, y in [(1, 2)]}\n", space)
    return space["x"], space["r"], space["s"], "y" in space


def inlined_eval_and_exec():
    def f():
        y = 3
        return eval("[y + i for i in range(2)]"), [eval("i + y", {"i": i, "y": y}) for i in range(2)]

    return f()


def override_decorator_and_buffer():
    class A:
        def f(self):
            return 1

    class B(A):
        @typing.override
        def f(self):
            return 2

    class Buf:
        def __buffer__(self, flags):
            return memoryview(b"abc")

    return B().f(), B.f.__override__, bytes(memoryview(Buf()))


def unpack_kwargs_types():
    class K(typing.TypedDict):
        a: int

    def f(**kw: typing.Unpack[K]):
        return kw

    return f(a=1)


def uncaught_in_type_params():
    class C[T: int](metaclass=lambda *a, **k: 1 / 0): ...
