"""Operators on user classes and on numbers: reflected, in-place, NotImplemented, comparison,
and the texts of the errors."""

import operator

from probes import catch, where


class _Num:
    """Writes every operator that reaches it into a list."""

    log = []

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def _add(name, reflected):
    def method(self, other):
        _Num.log.append((f"__{name}__", self.name, repr(other)))
        return f"{self.name}.{name}"

    method.__name__ = f"__{name}__"
    return method


for _op in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split():
    setattr(_Num, f"__{_op}__", _add(_op, False))
    setattr(_Num, f"__r{_op}__", _add("r" + _op, True))


def all_binary():
    n = _Num("n")
    _Num.log.clear()
    out = [
        n + 1, n - 1, n * 1, n @ 1, n / 1, n // 1, n % 1, n**1, n << 1, n >> 1, n & 1, n ^ 1, n | 1,
        1 + n, 1 - n, 1 * n, 1 @ n, 1 / n, 1 // n, 1 % n, 1**n, 1 << n, 1 >> n, 1 & n, 1 ^ n, 1 | n,
        divmod(n, 1), divmod(1, n),
    ]
    return out, list(_Num.log)


def all_inplace_fallback():
    out = []
    for source in ("+=", "-=", "*=", "@=", "/=", "//=", "%=", "**=", "<<=", ">>=", "&=", "^=", "|="):
        space = {"n": _Num("n")}
        exec(f"n {source} 2", space)
        out.append(space["n"])
    return out


def all_inplace():
    log = []

    class N:
        def __getattr__(self, name):
            raise AttributeError(name)

    names = "add sub mul matmul truediv floordiv mod pow lshift rshift and xor or".split()
    for name in names:
        def method(self, other, name=name):
            log.append((name, other))
            return self

        setattr(N, f"__i{name}__", method)
    n = same = N()
    n += 1
    n -= 2
    n *= 3
    n @= 4
    n /= 5
    n //= 6
    n %= 7
    n **= 8
    n <<= 9
    n >>= 10
    n &= 11
    n ^= 12
    n |= 13
    return n is same, log


def unary():
    class U:
        def __neg__(self):
            return "neg"

        def __pos__(self):
            return "pos"

        def __invert__(self):
            return "inv"

        def __abs__(self):
            return "abs"

        def __bool__(self):
            return False

    u, n = U(), 5
    bad = object
    return -u, +u, ~u, abs(u), not u, -n, +n, ~n, not n, +True, -True, catch(lambda: -"s"), catch(
        lambda: ~1.5
    ), catch(lambda: +[]), catch(lambda: -bad)


def not_implemented():
    log = []

    class A:
        def __add__(self, o):
            log.append("A.add")
            return NotImplemented

        def __radd__(self, o):
            log.append("A.radd")
            return NotImplemented

    class B:
        def __radd__(self, o):
            log.append("B.radd")
            return "B did it"

    return A() + B(), catch(lambda: A() + 1), catch(lambda: 1 + A()), catch(lambda: A() + A()), log


def subclass_priority():
    log = []

    class A:
        def __add__(self, o):
            log.append("A.add")
            return "A"

        def __radd__(self, o):
            log.append("A.radd")
            return "rA"

    class B(A):
        def __radd__(self, o):
            log.append("B.radd")
            return "rB"

    class C(A):
        pass

    return A() + B(), B() + A(), A() + C(), C() + B(), log


def inplace_protocol():
    log = []

    class A:
        def __iadd__(self, o):
            log.append(("iadd", o))
            return NotImplemented

        def __add__(self, o):
            log.append(("add", o))
            return "added"

    class B:
        def __iadd__(self, o):
            return None

    a = A()
    a += 1
    b = B()
    b += 1
    xs = ys = [1]
    xs += (2,)
    xs *= 2
    t = u = (1,)
    t += (2,)
    s = {1}
    s |= {2}
    s &= {2, 3}
    s -= {9}
    d = {"a": 1}
    d |= {"b": 2}
    return a, b, xs is ys, xs, t, u, s, d, log


def inplace_targets():
    log = []

    class D(dict):
        def __getitem__(self, k):
            log.append(("get", k))
            return super().__getitem__(k)

        def __setitem__(self, k, v):
            log.append(("set", k, v))
            super().__setitem__(k, v)

    class O:
        def __init__(self):
            self.x = 1

    def o():
        log.append("o()")
        return obj

    obj = O()
    d = D(k=1)
    d["k"] += 5
    o().x += 1
    o().x **= 3
    xs = [[1], [2]]
    xs[0] += [9]
    xs[1:] += [7]
    return d["k"], obj.x, xs, log


def inplace_tuple_item_error():
    t = ([1],)

    def f():
        t[0] += [2]

    return where(f), t


def type_errors():
    class X:
        pass

    return [
        catch(lambda: 1 + "a"),
        catch(lambda: "a" + 1),
        catch(lambda: [] + ()),
        catch(lambda: {} + {}),
        catch(lambda: None - 1),
        catch(lambda: "a" * "b"),
        catch(lambda: [] * 1.5),
        catch(lambda: X() @ X()),
        catch(lambda: X() ** 2),
        catch(lambda: pow(X(), 1, 2)),
        catch(lambda: 1 << 1.0),
        catch(lambda: "a" - "b"),
        catch(lambda: {1} + {2}),
        catch(lambda: print >> 5),
        catch(lambda: X() // 1),
        catch(lambda: b"a" + "a"),
    ]


def inplace_type_errors():
    out = []
    for op in ("+=", "-=", "*=", "@=", "/=", "//=", "%=", "**=", "<<=", ">>=", "&=", "^=", "|="):
        out.append(catch(exec, f"x = object\nx {op} None", {}))
    return out


def comparisons():
    log = []

    class C:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            log.append(("eq", self.n))
            return NotImplemented

        def __lt__(self, o):
            log.append(("lt", self.n))
            return NotImplemented

        def __gt__(self, o):
            log.append(("gt", self.n))
            return "greater"

        def __le__(self, o):
            return NotImplemented

        def __ne__(self, o):
            log.append(("ne", self.n))
            return "differs"

    a, b = C(1), C(2)
    return a < b, a == b, a != b, a > b, catch(lambda: a <= b), catch(lambda: a >= 1), log


def comparison_subclass_first():
    log = []

    class A:
        def __lt__(self, o):
            log.append("A.lt")
            return True

        def __gt__(self, o):
            log.append("A.gt")
            return False

    class B(A):
        def __gt__(self, o):
            log.append("B.gt")
            return "B"

    return A() < B(), B() > A(), A() > B(), log


def eq_without_hash():
    class C:
        def __eq__(self, o):
            return True

    class D(C):
        __hash__ = object.__hash__

    class E:
        def __hash__(self):
            return "x"

    class F:
        def __hash__(self):
            return 2**70 + 1

    return catch(hash, C()), C() == 5, 5 == C(), D() in {D()} or "no", catch(hash, E()), type(
        hash(F())
    ).__name__


def ordering_errors():
    class X:
        pass

    return [
        catch(lambda: 1 < "a"),
        catch(lambda: [] < ()),
        catch(lambda: None > None),
        catch(lambda: {} <= {}),
        catch(lambda: 1j >= 1j),
        catch(lambda: X() < X()),
        catch(lambda: [1, "a"] < [1, 2]),
        catch(lambda: sorted([1, "b"])),
    ]


def eq_default_and_identity():
    class X:
        pass

    x, y = X(), X()
    nan = float("nan")
    return x == x, x == y, x != y, nan == nan, [nan] == [nan], (nan,) == (nan,), nan is nan


def rich_results_are_kept():
    class V:
        def __eq__(self, o):
            return [1, 2]

        def __lt__(self, o):
            return None

    v = V()
    return v == 1, v < 1, v != 1, not v == 1, 1 if v < 1 else 2


def integers():
    big = 2**100
    return [
        7 // 2, -7 // 2, 7 % -3, -7 % 3, 2**10, 2**-1, 5 & 3, 5 | 3, 5 ^ 3, 1 << 70, big >> 90,
        big * big, big - big, -big // 3, big % 97, int(1e18) + 1, 10**20 // 7, ~big, big == big + 0,
        (-5) ** 3, 0**0, divmod(-7, 2), pow(3, 100, 7), 255 .__str__(), -0, 1_000_000, 0xFF, 0b11,
    ]


def integer_errors():
    zero, neg = 0, -1
    return [
        catch(lambda: 1 // zero),
        catch(lambda: 1 % zero),
        catch(lambda: 1 / zero),
        catch(lambda: divmod(1, zero)),
        catch(lambda: 1 << neg),
        catch(lambda: 1 >> neg),
        catch(lambda: 0**neg),
        catch(lambda: pow(2, neg, 4)),
        catch(lambda: int("12x")),
        catch(lambda: int(float("inf"))),
        catch(lambda: int(float("nan"))),
        catch(lambda: (10**400) * 1.0),
        catch(lambda: 1 << (1 << 70)),
    ]


def small_integer_boundaries():
    out = []
    for n in (-6, -5, 0, 255, 256, 257, 2**30 - 1, 2**30, 2**31, 2**62, 2**63 - 1, 2**63, 2**64):
        out.append((n + 1, n - 1, n * n, -n, n // 3, n % 7, n & 0xFF, n >> 3))
    return out


def floats():
    inf, nan = float("inf"), float("nan")
    return [
        0.1 + 0.2, 1e308 * 10, -1e308 * 10, inf - inf, nan, -0.0, 0.0 * -1, 7.5 // 2, -7.5 // 2,
        7.5 % -2, 2.0**0.5, (-8.0) ** (1 / 3), 1e-320 / 10, 5.0 // inf, round(2.5), round(-3.5),
        1.5 + 1, 1 - 0.5, 3 * 0.1, 1 / 3, 2**0.5, 10.0 % 3, float(2**53 + 1), 1.0 == 1, 1 < 1.5,
    ]


def float_errors():
    zero = 0.0
    return [
        catch(lambda: 1.0 / zero),
        catch(lambda: 1.0 // zero),
        catch(lambda: 1.0 % zero),
        catch(lambda: zero**-1),
        catch(lambda: 10.0**400),
        catch(lambda: float("x")),
        catch(lambda: 1.5 & 1),
        catch(lambda: round(float("nan"))),
    ]


def complexes():
    zero = 0j
    return [
        (1 + 2j) * (3 - 1j), (1 + 2j) / (1 - 1j), abs(3 + 4j), (1j) ** 2, -(1 + 1j), 1j == 1j,
        complex(1, -0.0), (1 + 0j) == 1, catch(lambda: 1j / zero), catch(lambda: 1j // 1),
        catch(lambda: 1j < 2j),
    ]


def booleans():
    return [
        True + True, True & False, True | 1, True ^ True, ~False, -True, True * 3, True / 2,
        True << 3, True == 1, [10, 20][True], True < 2, not True,
        sum([True, True]), isinstance(True, int), str(True), True and 5, False or None,
    ]


def mixed_arithmetic():
    from decimal import Decimal
    from fractions import Fraction

    return [
        Fraction(1, 3) + 1, 1 - Fraction(1, 3), Fraction(1, 2) * 0.5, Decimal("1.1") + 1,
        2 ** Fraction(2), Decimal(7) // 2, Fraction(7, 2) // 1, Fraction(1, 2) < 0.75,
        catch(lambda: Decimal(1) + 1.5), 5 % Fraction(3, 2), divmod(Fraction(7, 2), 2),
    ]


def sequence_repeat_and_concat():
    class L(list):
        pass

    class I:
        def __index__(self):
            return 2

    return [
        [1] * 3, 3 * [1], "ab" * 2, (1,) * 0, [1] * -1, b"x" * 3, [0] + [1], (1,) + (2,), "a" + "b",
        [1] * I(), I() * "ab", L([1]) + [2], [1] + L([2]), type(L([1]) + [2]).__name__,
        type(L([1]) * 2).__name__, bytearray(b"a") + b"b",
    ]


def string_modulo():
    class M:
        def __rmod__(self, o):
            return "rmod"

    class S(str):
        def __mod__(self, o):
            return "own mod"

    return [
        "%s-%d" % ("a", 5), "%(k)r" % {"k": "v"}, "%5.2f|%-4s|%+d" % (1.234, "x", 3), "%%" % (),
        "%s" % (1,), "%s" % [1, 2], S("x") % 1, catch(lambda: "a" % M()),
        catch(lambda: "%d" % "x"), catch(lambda: "%s %s" % 1), catch(lambda: "%s" % (1, 2)),
        catch(lambda: "%q" % 1), catch(lambda: "%(a)s" % 5), "%c%c" % (65, "b"), "%x" % 255,
    ]


def set_and_dict_operators():
    a, b = {1, 2}, {2, 3}
    d, e = {"x": 1}, {"y": 2}
    return a | b, a & b, a - b, a ^ b, a <= b, a < {1, 2, 3}, d | e, d.keys() & {"x"}, catch(
        lambda: d + e
    ), frozenset(a) | b, type(frozenset(a) | b).__name__, type(a | frozenset(b)).__name__


def index_and_int_protocols():
    log = []

    class I:
        def __index__(self):
            log.append("index")
            return 3

    class F:
        def __float__(self):
            return 2.5

        def __int__(self):
            return 7

        def __trunc__(self):
            return 8

        def __round__(self, n=None):
            return ("round", n)

        def __ceil__(self):
            return "ceil"

    import math

    return [
        list(range(I())), "abcdef"[I()], int(I()), float(I()), hex(I()), int(F()), float(F()),
        round(F()), round(F(), 2), math.ceil(F()), [0] * I(), log,
    ]


def pow_three_and_divmod_user():
    class P:
        def __pow__(self, e, m=None):
            return ("pow", e, m)

        def __rpow__(self, b):
            return ("rpow", b)

        def __ipow__(self, e):
            return ("ipow", e)

    p = P()
    q = p
    q **= 3
    return p**2, 2**p, pow(p, 2, 3), q


def matmul_user():
    class M:
        def __init__(self, rows):
            self.rows = rows

        def __matmul__(self, o):
            cols = list(zip(*o.rows))
            return M([[sum(a * b for a, b in zip(r, c)) for c in cols] for r in self.rows])

    return (M([[1, 2], [3, 4]]) @ M([[0, 1], [1, 0]])).rows


def operator_module():
    return [
        operator.add(1, 2), operator.itemgetter(1, 2)("abc"), operator.attrgetter("real")(5),
        operator.methodcaller("upper")("x"), operator.iadd([1], [2]), operator.contains([1], 1),
        operator.concat("a", "b"), operator.index(True), operator.truth([]),
    ]


def expression_mix():
    a, b, c = 5, 3, 2
    return (
        a + b * c - a // b % c ** b << 1 & 0xFF | a ^ b,
        (a > b) + (b > c) * 10,
        a if a > b > c else b or c,
        -a ** 2,
        not a == b,
        a < b or b < c and c < a,
        ~a + -b,
    )


def errors_inside_operator_methods():
    class X:
        def __add__(self, o):
            raise KeyError("in add")

        def __radd__(self, o):
            raise AssertionError("not reached")

        def __lt__(self, o):
            return [][1]

        def __neg__(self):
            return 1 / 0

        def __contains__(self, x):
            raise LookupError(x)

        def __getitem__(self, k):
            raise AttributeError(k)

    x = X()
    return [
        where(lambda: x + x),
        where(lambda: x < 1),
        where(lambda: -x),
        where(lambda: 5 in x),
        where(lambda: x["k"]),
    ]


def uncaught_operator():
    xs = [1, 2, None, 4]
    total = 0
    for i, x in enumerate(xs):
        total += x * (i + 1)
    return total
