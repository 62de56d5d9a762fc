"""Functions with class statements: a class that stays in the trace is made there; one that gets out of
it, or that others could see, is made for real."""

_OUTER = [1, 2]


class _Named:
    def __set_name__(self, owner, name):
        self.name = name


def _whole(call, f, *many):
    """All of these are traced as a whole, by one entry."""
    call(f, *many[0])
    for args in many[1:]:
        call.again(f, *args)
    call.traced(f, 1)


def plain_class(call):
    def f(x, y):
        class Point:
            """A point."""

            origin = 0

            def __init__(self, x, y):
                self.x, self.y = x, y

            def norm(self):
                return abs(self.x - self.origin) + abs(self.y)

        p = Point(x, y)
        before = p.norm()
        Point.origin = 10
        p.y = -7
        return before, p.norm(), Point.__name__, Point.__doc__, Point.__qualname__, vars(p)

    _whole(call, f, (3, 4), (3, 4))


def descriptors_of_a_class(call):
    def f(n):
        class Box:
            __slots__ = ("value", "more")

            def __init__(self, value):
                self.value = value

            @property
            def twice(self):
                return self.value * 2

            @twice.setter
            def twice(self, value):
                self.value = value // 2

            @staticmethod
            def make(value):
                return Box(value)

            @classmethod
            def of(cls, value):
                return cls(value)

        a, b = Box.make(n), Box.of(n + 1)
        a.twice = 50
        try:
            a.more
        except AttributeError as error:
            missing = str(error)
        try:
            a.other = 1
        except AttributeError:
            missing += "!"
        return a.value, a.twice, b.twice, missing, isinstance(b, Box), type(a) is type(b)

    _whole(call, f, (3,), (3,))


def inheritance_inside(call):
    def f(x):
        class A:
            def __init__(self, x):
                self.x = x

            def value(self):
                return self.x

            def name(self):
                return __class__.__name__ + type(self).__name__

        class B(A):
            def value(self):
                return super().value() + 1

        class C(A):
            def value(self):
                return super().value() * 10

        class D(B, C):
            pass

        d = D(x)
        return (
            d.value(),
            d.name(),
            [c.__name__ for c in D.__mro__],
            issubclass(D, C),
            issubclass(B, C),
            isinstance(d, A),
            super(B, d).value(),
        )

    _whole(call, f, (5,), (5,))


def names_of_a_body(call):
    def f(n):
        scale = n

        class Body:
            a = scale * 2
            b = [a + i for i in range(3)]
            if a > 3:
                c = "big"
            else:
                c = "small"
            for i in range(2):
                d = i
            scale = scale + 1
            gone = 1
            del gone
            e: int = 5
            g: str
            h = _OUTER[0] + len(b)

        return (
            [Body.a, Body.b, Body.c, Body.d, Body.scale, Body.e, Body.h, scale],
            hasattr(Body, "gone"),
            hasattr(Body, "g"),
        )

    call(f, 1)
    call(f, 2)
    _OUTER[0] = 7
    call(f, 2)
    _OUTER[0] = 1
    call.again(f, 2)


def operators_of_a_class(call):
    def f(xs):
        class V:
            def __init__(self, items):
                self.items = list(items)

            def __getitem__(self, i):
                return self.items[i]

            def __setitem__(self, i, value):
                self.items[i] = value

            def __delitem__(self, i):
                del self.items[i]

            def __len__(self):
                return len(self.items)

            def __iter__(self):
                yield from self.items

            def __contains__(self, x):
                return x == "all" or x in self.items

            def __add__(self, other):
                return V([a + b for a, b in zip(self, other)])

            def __eq__(self, other):
                return isinstance(other, V) and self.items == other.items

            def __hash__(self):
                return hash(tuple(self.items))

            def __call__(self, n):
                return V(self.items * n)

            def __enter__(self):
                return self

            def __exit__(self, *exc):
                self.items.append("left")
                return True

            def __getattr__(self, name):
                return name.upper()

        v = V(xs)
        v[0] = 9
        w = v + v
        del w[1]
        with v as entered:
            raise ValueError
        return (
            v.items, w.items, len(w), "all" in w, 3 in w, entered is v, v.missing, v(2).items,
            {V([1]): "one"}[V([1])], V([1]) != V([2]), sorted(w),
        )  # fmt: skip

    _whole(call, f, ([1, 2, 3],), ([1, 2, 3],))


def exception_class(call):
    def f(x):
        class Wrong(ValueError):
            def __init__(self, n):
                super().__init__(n)
                self.n = n

        class Worse(Wrong):
            pass

        try:
            if x > 1:
                raise Worse(x)
            raise Wrong(x)
        except Worse as error:
            return "worse", error.n
        except Wrong as error:
            return "wrong", error.args
        finally:
            del Wrong

    call(f, 1)
    call.again(f, 1)
    call(f, 2)
    call.traced(f)


def builtin_base(call):
    def f(xs):
        class Stack(list):
            def push(self, x):
                self.append(x)
                return self

        class Counts(dict):
            def __missing__(self, key):
                return 0

        class Celsius(float):
            def warmer(self):
                return Celsius(self + 1)

        s, c = Stack(xs).push(4), Counts()
        for x in s:
            c[x] += 1
        return list(s), len(s), dict(c), c["no"], float(Celsius(20.5).warmer())

    _whole(call, f, ([1, 1],), ([1, 1],))


def changed_while_it_is_used(call):
    def f(n):
        class A:
            def m(self):
                return 1

        a = A()
        before = a.m(), hasattr(a, "k")
        A.m = lambda self: n
        A.k = n + 1
        A.__len__ = lambda self: n + 2
        between = a.m(), a.k, len(a)
        del A.k
        return before, between, hasattr(a, "k"), getattr(A, "k", None)

    _whole(call, f, (5,), (5,))


def class_given_out(call):
    def f(x):
        class A:
            def m(self):
                return x

        return A

    one, other = call.loose(f, 1), call.loose(f, 2)
    call.note((one is other, one().m(), other().m(), one.__qualname__))


def instance_given_out(call):
    def f(x):
        class A:
            pass

        a = A()
        a.x = x
        return a

    one, other = call.target(f)(1), call.target(f)(2)
    call.note((type(one) is type(other), one.x, other.x))


def method_given_out(call):
    def f(x):
        class A:
            def m(self):
                return x

        return A().m, A.m

    for x in (1, 2):
        bound, free = call.target(f)(x)
        call.note((bound(), free(None)))


def put_outside(call):
    class Holder:
        pass

    holder, seen = Holder(), {}

    def f(x):
        class A:
            value = x

        holder.kept = A
        seen[A] = x
        return seen.get(A), A in seen

    for x in (1, 2, 3):
        call.target(f)(x)
        call.note((holder.kept.value, list(seen.values()), len(seen)))


def alive_at_a_break(call):
    def f(x):
        class A:
            def __init__(self):
                self.x = x

        a = A()
        print(end="")
        return a.x + 1, isinstance(a, A)

    for x in (1, 2, 1):
        call(f, x)


def break_in_a_body(call):
    def f(x):
        class A:
            print(end="")
            y = x + 1

        return A.y, A().y

    for x in (1, 2, 1):
        call(f, x)


def exception_in_a_body(call):
    def f(x):
        try:

            class A:
                y = 1 // x
        except ZeroDivisionError as error:
            return str(error)
        return A.y

    def g(x):
        class A:
            y = nowhere  # noqa: F821

    def h(x):
        class A:
            y = later

        later = x
        return A

    for x in (1, 0, 1):
        call(f, x)
        call(g, x)
        call(h, x)


def another_types_new(call):
    class Odd:
        __new__ = list.__new__

    def f(x):
        try:
            return type(Odd()).__name__, x
        except TypeError as error:
            return str(error)

    def g(x):
        class Odd(list):
            __new__ = object.__new__

        try:
            return type(Odd()).__name__, x
        except TypeError as error:
            return str(error)

    for x in (1, 1):
        call(f, x)
        call(g, x)


def told_its_name(call):
    def f(x):
        class A:
            first = _Named()

        return A.first.name, x

    for x in (1, 1):
        call(f, x)


def class_that_cannot_be(call):
    def f(x):
        try:

            class A(int, str):
                pass
        except TypeError as error:
            return str(error)

    def g(x):
        try:

            class A:
                __slots__ = ("a", x)
        except TypeError as error:
            return str(error)
        return sorted(A.__slots__)

    for x in ("b", 1, "b"):
        call(f, x)
        call(g, x)


def outside_base(call):
    class Base:
        def who(self):
            return "base"

    def f(x):
        class A(Base):
            def who(self):
                return super().who() + x

        return A().who(), A

    for x in ("a", "a", "b"):
        who, made = call.target(f)(x)
        call.note((who, Base.__subclasses__()[-1] is made))


def base_with_a_hook(call):
    def f(x):
        made = []

        class Base:
            def __init_subclass__(cls, flag=0, **more):
                made.append((cls.__name__, flag))

        class A(Base):
            pass

        class B(Base, flag=x):
            pass

        return made

    for x in (1, 1, 2):
        call.note(call.target(f)(x))


def metaclass_of_its_own(call):
    class Meta(type):
        def __getattr__(cls, name):
            return name + cls.__name__

    def f(x):
        class A(metaclass=Meta):
            pass

        return A.any, x

    for x in (1, 1, 2):
        call(f, x)


def finalizer_of_a_class_made_inside(call):
    def f(log):
        class A:
            def __del__(self):
                log.append("gone")

        A()
        return len(log)

    for _ in range(2):
        call(f, [])


def hash_of_a_class_made_inside(call):
    def f(x):
        class A:
            pass

        class B:
            pass

        names = {A: "a", B: "b"}
        return names[A], names[B], len({A, B, A}), A == B, {A: 1}.get(B), x

    _whole(call, f, (1,), (1,))


def build_class_replaced(call):
    import builtins

    def f(x):
        class A:
            y = x

        return A.y

    def other(body, name, *bases, **more):
        made = own(body, name, *bases, **more)
        made.y = 100
        return made

    own = builtins.__build_class__
    call(f, 1)
    call.again(f, 1)
    builtins.__build_class__ = other
    try:
        call(f, 1)
    finally:
        builtins.__build_class__ = own
    call(f, 1)


def locals_of_a_body(call):
    def f(x):
        class A:
            a = x
            seen = sorted(k for k in locals() if k[0] != "_")

        return A.seen

    for x in (1, 1):
        call(f, x)


def nested_classes(call):
    def f(x):
        class Outer:
            size = x

            class Inner:
                def get(self):
                    return Outer.size + x

            inner = Inner()

        return Outer.inner.get(), Outer.Inner.__qualname__.rpartition(".")[2]

    _whole(call, f, (1,), (1,))


def exception_class_that_leaves(call):
    def f(x):
        class Wrong(Exception):
            def __str__(self):
                return f"wrong by {x}"

        if x:
            raise Wrong(x)
        return x

    for x in (0, 1, 0, 1):
        try:
            call.note(call.target(f)(x))
        except Exception as error:
            call.note((type(error).__name__, str(error), error.args))


def decorated_classes(call):
    import collections.abc
    import dataclasses
    import functools

    def f(n):
        @functools.total_ordering
        class Ordered:
            def __init__(self, n):
                self.n = n

            def __eq__(self, other):
                return self.n == other.n

            def __lt__(self, other):
                return self.n < other.n

        @dataclasses.dataclass(frozen=True)
        class Data:
            n: int
            m: int = 2

        a, b = Ordered(n), Ordered(n + 1)
        return (
            a <= b,
            a >= b,
            a != b,
            Data(n) == Data(n, 2),
            Data(n).m,
            dataclasses.astuple(Data(n)),
        )

    def g(n):
        class Sized:
            def __len__(self):
                return n

        class Iterated:
            def __iter__(self):
                return iter((n,))

        abc = collections.abc
        return (
            isinstance(Sized(), abc.Sized),
            isinstance(Iterated(), abc.Sized),
            issubclass(Iterated, abc.Iterable),
            issubclass(Sized, abc.Iterable),
        )

    for n in (1, 1, 2):
        call.note(call.target(f)(n))
        call.note(call.target(g)(n))


def called_while_it_is_made(call):
    def f(n):
        class Chain:
            made = []

            def link(function):
                return lambda self: function(self) + n

            @link
            def value(self):
                return 10

            made.append(value(None))

        return Chain.made, Chain().value()

    _whole(call, f, (1,), (1,))


def one_class_of_many_calls(call):
    def make(n):
        class Each:
            value = n

        return Each

    def f(n):
        kinds = [make(i) for i in range(n)]
        return [k.value for k in kinds], len(set(map(id, kinds))) == n, kinds[0] is kinds[-1]

    def g(n):
        a, b = make(n), make(n)
        return a is b, type(a()) is a, isinstance(a(), b), a.value == b.value

    _whole(call, g, (2,), (2,))
    for n in (1, 3):
        call(f, n)
