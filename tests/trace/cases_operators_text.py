"""Formatting, joined strings, exceptions that match."""

import collections
import dataclasses
import datetime
import enum
import pathlib
import re


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"


class Both(Named):
    def __repr__(self):
        return f"Both({self.name!r})"


class Formatted:
    def __init__(self, n):
        self.n = n

    def __format__(self, spec):
        return f"{self.n}|{spec}"


class Bare:
    pass


def values(call):
    def f(a):
        return f"{a} {a!r} {a!s} {a!a}"

    for a in (1, 1.5, "é", None, True, b"x", [1, "x"], {"k": (1,)}, (1,), {1}, range(3)):
        call(f, a)
    call.traced(f)


def specs(call):
    def f(a, w):
        return f"{a:>{w}} {a:<5} {a!s:^7}"

    call(f, 3, 8)
    call(f, "x", 4)
    call(f, 3, 9)
    call.traced(f)


def wrong_specs(call):
    def f(a, s):
        try:
            return f"{a:{s}}"
        except (ValueError, TypeError) as e:
            return str(e)

    call(f, 3, "q")
    call(f, [1], "5")
    call(f, None, "")
    call(f, Both("x"), "5")
    call.traced(f)


def objects(call):
    def f(o):
        return f"{o} {o!s}"

    call(f, Named("a"))
    call(f, Named("b"))
    call(f, Both("b"))
    call.traced(f)


def reprs(call):
    def f(o):
        return f"{o!r} {[o]} {repr((o,))} {str({'k': o})}"

    call(f, Both("a"))
    call(f, Both("b"))
    call.traced(f)


def own_format(call):
    def f(o):
        return f"{o:spec} {o}" + format(o, "x")

    call(f, Formatted(1))
    call(f, Formatted(2))
    call.traced(f)


def addresses_are_not_kept(call):
    def f(o):
        return f"{o}" == str(o), repr([o]) == "[" + repr(o) + "]"

    call(f, Bare())
    call(f, Bare())


def nested_lists_change(call):
    def f(a):
        return f"{a}"

    a = [1, [2, {"k": [3]}]]
    call(f, a)
    call.again(f, a)
    a[1][1]["k"][0] = 4
    call(f, a)
    a.append(a)
    call(f, a)
    call.traced(f)


def enums(call):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    class N(enum.IntEnum):
        A = 1
        B = 2

    def f(c):
        return f"{c} {c!r} {c.name}"

    call(f, Color.RED)
    call(f, Color.BLUE)
    call(f, N.A)
    call(f, N.B)


def dataclass_reprs(call):
    @dataclasses.dataclass
    class P:
        x: int
        y: list

    def f(p):
        return f"{p}", p == P(1, [2]), p != P(1, [2])

    call(f, P(1, [2]))
    call(f, P(2, [2]))


def namedtuples(call):
    P = collections.namedtuple("P", "x y")

    def f(p):
        return f"{p}", p == (1, 2), p.x, [*p], p + (3,), P(p.y, p.x)

    call(f, P(1, 2))
    call(f, P([1], 2))


def classes_and_functions(call):
    def f(o):
        return f"{o}"

    call(f, int)
    call(f, Bare)
    call(f, len)


def harmless_c_types(call):
    def f(o):
        return f"{o} {o!r}", o == o, hash(o) == hash(o), {o: 1}[o]

    call(f, re.compile("a+"))
    call(f, datetime.timedelta(1))
    call(f, pathlib.PurePosixPath("/a/b"))


def exception_texts(call):
    def f(a):
        try:
            raise ValueError(a, "x")
        except ValueError as e:
            return str(e), repr(e), f"{e}"

    call(f, 1)
    call(f, [2])
    call.traced(f)


def key_error_text(call):
    def f(d, k):
        try:
            return d[k]
        except KeyError as e:
            return f"{e}"

    call(f, {}, "a")
    call(f, {}, 1)
    call.traced(f)


def joined(call):
    def f(a, b):
        s = ""
        for x in a:
            s += x
            s += b
        return s, b.join(a), f"{a[0]}{b}"

    call(f, ["x", "y"], ",")
    call(f, ["x", "y"], ";")
    call(f, ["x", "z"], ";")
    call.traced(f)


def exceptions_match(call):
    class A(Exception):
        pass

    class B(A):
        pass

    kinds = (KeyError, B)

    def f(e, types):
        try:
            raise e("x")
        except types as got:
            return type(got).__name__, got.args
        except Exception as got:
            return "other", type(got).__name__

    call(f, A, A)
    call(f, B, A)
    call(f, A, B)
    call(f, B, kinds)
    call(f, A, kinds)
    call(f, ValueError, ())
    call.traced(f)


def not_an_exception_class(call):
    def f(types):
        try:
            try:
                raise ValueError
            except types:
                return 1
        except TypeError as e:
            return str(e)

    call(f, int)
    call(f, (ValueError, 5))
    call(f, 5)
    call.traced(f)


def base_of_an_exception_changes(call):
    class A(Exception):
        pass

    class C(Exception):
        pass

    class B(A):
        pass

    def f():
        try:
            raise B
        except A:
            return "A"
        except C:
            return "C"

    call(f)
    B.__bases__ = (C,)
    call(f)


def str_of_str_subclass(call):
    class S(str):
        def __str__(self):
            return "S:" + str.__str__(self)

    def f(s):
        return f"{s}", s + "!", s == "x", {s: 1}["x"], len(s)

    call(f, S("x"))
    call.again(f, S("x"))
