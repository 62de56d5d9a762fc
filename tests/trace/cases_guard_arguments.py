"""Values of arguments: bit for bit, exact types, only as far as they were looked at."""

import collections
import decimal
import enum
import fractions
import functools
import re


def integer(call):
    def f(x):
        return x + 1

    call(f, 1)
    call.again(f, 1)
    call(f, 2)
    call.again(f, 1)
    call(f, 10**30)
    call.again(f, int("1" + "0" * 30))


def true_is_not_one(call):
    def f(x):
        return x + 1, type(x), [x]

    call(f, 1)
    call(f, True)
    call(f, 1.0)
    call(f, False)
    call(f, 0)
    call.again(f, 1)


def minus_zero_is_not_zero(call):
    def f(x):
        return x * 1.0, str(x)

    call(f, 0.0)
    call(f, -0.0)
    call.again(f, 0.0)
    call.again(f, -0.0)


def zeros_inside_complex_and_tuples(call):
    def f(x):
        return str(x)

    call(f, complex(0.0, 0.0))
    call(f, complex(-0.0, 0.0))
    call(f, complex(0.0, -0.0))
    call(f, (0.0, (0.0,)))
    call(f, (0.0, (-0.0,)))
    call(f, (0, (0.0,)))
    call(f, (False, (0.0,)))


def nan_equals_itself(call):
    def f(x):
        return str(x), x == x

    call(f, float("nan"))
    call.again(f, float("nan"))
    call(f, float("inf"))
    call(f, float("-inf"))


def nan_objects_in_containers(call):
    def f(a, b):
        return [a] == [b], a in [b], (a,) == (b,), [b].count(a)

    one, two = float("nan"), float("nan")
    call(f, one, one)
    call(f, one, two)
    call(f, two, two)
    call(f, 1.0, one)


def nan_from_another_place(call):
    def f(a, b):
        return [a] == [b]

    one, two = float("nan"), float("nan")
    call(f, one, two)
    call(f, one, one)


def text(call):
    def f(s):
        return s.upper() + "!"

    call(f, "ab")
    call.again(f, "".join(["a", "b"]))
    call(f, "ac")
    call(f, "")
    call(f, "é")


def bytes_are_not_text(call):
    def f(s):
        return s + s, len(s)

    call(f, "a")
    call(f, b"a")
    call(f, b"b")
    call.again(f, b"a")


def none_or_not(call):
    def f(x):
        if x is None:
            return "none"
        return x

    call(f, None)
    call(f, 1)
    call.again(f, 2)
    call.again(f, "x")
    call.again(f, None)


def unused_argument(call):
    def f(x, y):
        return x + 1

    call(f, 1, 2)
    call.again(f, 1, "anything")
    call.again(f, 1, [])
    call.again(f, 1, None)


def passed_through(call):
    def f(x):
        return [x, (x, {"x": x})]

    for value in (1, "a", 10**20, [1], {"k": 1}, object, None):
        (call if value == 1 else call.again)(f, value)


def passed_through_is_the_object_itself(call):
    def f(x, y):
        z = [y]
        return x, z

    for _ in range(3):
        big, word = 10**20 + _, "a b" + str(_)
        one, [two] = call(f, big, word)
        call.note((one is big, two is word))
    call.one_entry(f)


def opened_value_given_out_is_the_object_itself(call):
    def f(x):
        xs = [x]
        xs.sort()
        if xs[0] > 5:
            return xs[0], xs

    for _ in range(3):
        big = int("100000000000000000000")
        one, [two] = call(f, big)
        call.note((one is big, two is big))
    call.one_entry(f)


def small_tuple(call):
    def f(t):
        return t[0] + t[1]

    call(f, (1, 2))
    call.again(f, (1, 2))
    call(f, (2, 1))
    call(f, (1, 2.0))
    call(f, (1, 2, 3))


def tuple_of_mutable(call):
    def f(t):
        return len(t[0]), t[1]

    call(f, ([], 1))
    call.again(f, ([], 1))
    call(f, ([5], 1))
    call(f, ([5], 2))


def length_of_rest_arguments(call):
    def f(*args, **kwargs):
        return len(args), sorted(kwargs), args, kwargs

    call(f, 1, 2, a=1)
    call.again(f, 3, 4, a=9)
    call(f, 1, 2, 3, a=1)
    call(f, 1, 2, b=1)
    call(f)


def order_of_keyword_arguments(call):
    def f(**kwargs):
        return list(kwargs)

    call(f, a=1, b=2)
    call(f, b=2, a=1)
    call.again(f, a=3, b=4)


def positional_or_by_keyword(call):
    def f(a, /, b, *, c=3):
        return a, b, c

    call(f, 1, 2)
    call.again(f, 4, b=5)
    call(f, 1, 2, c=9)
    call(f, 1)
    call(f, a=1, b=2)
    call(f, 1, 2, 3)


def wrong_arguments_raise_as_in_plain(call):
    def f(a, b=1):
        return a + b

    call(f)
    call(f, 1, 2, 3)
    call(f, 1, z=1)
    call(f, 1, a=1)
    call(f, 1)


def default_value(call):
    def f(a, b=10):
        return a + b

    call(f, 1)
    call.again(f, 1)
    call(f, 1, 20)
    f.__defaults__ = (30,)
    call(f, 1)
    f.__defaults__ = (30, 40)
    call(f)
    call(f, 1)


def mutable_default(call):
    def f(x, seen=[]):
        seen.append(x)
        return len(seen), seen

    for _ in range(4):
        call(f, 1)
    f.__defaults__ = ([7, 8],)
    call(f, 1)


def keyword_default(call):
    def f(a, *, b=10):
        return a + b

    call(f, 1)
    call.again(f, 1)
    f.__kwdefaults__ = {"b": 11}
    call(f, 1)
    f.__kwdefaults__["b"] = 12
    call(f, 1)
    f.__kwdefaults__ = None
    call(f, 1)
    call(f, 1, b=12)


def enum_member(call):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    def f(c):
        return c is Color.RED, c.name, c.value

    call(f, Color.RED)
    call.again(f, Color.RED)
    call(f, Color.BLUE)


class _Step(int):
    pass


def int_subclass_value(call):
    def f(s):
        return s + 1, type(s)

    call(f, _Step(3))
    call(f, _Step(4))
    call.again(f, _Step(3))
    call(f, 3)


def int_subclass_state(call):
    def f(s):
        return s + 1, s.tag

    def step(n, tag):
        made = _Step(n)
        made.tag = tag
        return made

    call(f, step(3, "a"))
    call(f, step(3, "b"))
    call(f, step(4, "b"))


class _Word(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def str_subclass_value(call):
    def f(s):
        return s.upper(), s == "q", {"a": 1}.get(s)

    call(f, _Word("a"))
    call(f, _Word("b"))
    call(f, "b")


class _Real(float):
    pass


def float_subclass_value(call):
    def f(x):
        return x * 2, repr(x)

    call(f, _Real(1.5))
    call(f, _Real(2.5))
    call(f, _Real(-0.0))
    call(f, _Real(0.0))


class _Pair(tuple):
    pass


def tuple_subclass_content(call):
    def f(p):
        return p[0], len(p), type(p)

    call(f, _Pair([1, 2]))
    call(f, _Pair([2, 2]))
    call(f, _Pair([1, 2, 3]))
    call(f, (1, 2))


_Point = collections.namedtuple("_Point", "x y")


def named_tuple(call):
    def f(p):
        return p.x + p[1], p._replace(x=0)

    call(f, _Point(1, 2))
    call.again(f, _Point(1, 2))
    call(f, _Point(1, 3))
    call(f, _Point(5, 3))


def frozen_set_order(call):
    def f(s):
        return list(s)

    call(f, frozenset([8, 0]))
    call(f, frozenset([0, 8]))
    call(f, frozenset([True]))
    call(f, frozenset([1]))


def frozen_set_in_tuple_order(call):
    def f(t):
        return [list(s) for s in t]

    call(f, (frozenset([8, 0]), frozenset([1])))
    call(f, (frozenset([0, 8]), frozenset([1])))


def range_fields(call):
    def f(r):
        return r.start, r.stop, len(r)

    call(f, range(0))
    call(f, range(2, 2))
    call(f, range(0, 3))
    call(f, range(0, 4, 2))
    call(f, range(0, 3, 2))


def slice_fields(call):
    def f(s):
        return [1, 2, 3][s]

    call(f, slice(1))
    call.again(f, slice(1))
    call(f, slice(2))
    call(f, slice(0, 3, 2))


def other_immutables(call):
    def f(x):
        return str(x)

    call(f, decimal.Decimal("1.5"))
    call(f, decimal.Decimal("2.5"))
    call(f, fractions.Fraction(1, 2))
    call(f, fractions.Fraction(1, 3))


def pattern(call):
    def f(p, s):
        return p.match(s) is not None

    one, two = re.compile("a+"), re.compile("b+")
    call(f, one, "aa")
    call(f, two, "aa")
    call(f, one, "b")


def partial_of_a_function(call):
    def g(a, b, c=0):
        return a, b, c

    def h(a, b, c=0):
        return "h", a, b, c

    def f(p):
        return p(2)

    call(f, functools.partial(g, 1))
    call.again(f, functools.partial(g, 1))
    call(f, functools.partial(g, 5))
    call(f, functools.partial(g, 1, c=3))
    call(f, functools.partial(h, 1))


def partial_keywords_changed(call):
    def g(a, c=0):
        return a, c

    def f(p):
        return p(2)

    p = functools.partial(g, c=1)
    call(f, p)
    p.keywords["c"] = 2
    call(f, p)
    p.keywords.clear()
    call(f, p)


def ellipsis_and_friends(call):
    def f(x):
        return x is ..., x is NotImplemented, x

    call(f, ...)
    call(f, NotImplemented)
    call(f, None)


def truth_of_a_value(call):
    def f(x):
        return "yes" if x else "no"

    for value in (0, 1, "", "a", 0.0, -0.0, [], [0], None, (), (0,), {}, {1: 2}, set(), {1}):
        call(f, value)


def truth_of_a_list_is_its_emptiness(call):
    def f(x):
        return "yes" if x else "no"

    call(f, [1])
    call.again(f, [2, 3])
    call(f, [])
    call.again(f, [])


def code_argument(call):
    def f(c):
        return c.co_name

    call(f, f.__code__)
    call(f, code_argument.__code__)


def bytearray_content(call):
    def f(b):
        return bytes(b), len(b)

    data = bytearray(b"abc")
    call(f, data)
    call.again(f, data)
    data[0] = 0
    call(f, data)
    data.append(9)
    call(f, data)


def array_content(call):
    import array

    def f(a):
        return a[0] + len(a)

    data = array.array("i", [1, 2])
    call(f, data)
    data[0] = 5
    call(f, data)
    data.append(5)
    call(f, data)


def memoryview_content(call):
    def f(m):
        return m[0]

    data = bytearray(b"abc")
    view = memoryview(data)
    call(f, view)
    data[0] = 1
    call(f, view)


def memoryview_beside_its_bytearray(call):
    def f(b, m):
        b[0] = 7
        return m[0]

    data = bytearray(b"abc")
    call(f, data, memoryview(b"abc"))
    call(f, data, memoryview(data))


def deep_tuple(call):
    t = ()
    for _ in range(100000):
        t = (t,)

    def f(t):
        return len(t), t == t

    call.loose(f, t)
    call.loose(f, t)
    call.loose(f, ((),))


def tuple_that_shares_its_parts(call):
    t, s = (), frozenset()
    for _ in range(60):
        t, s = (t, t), frozenset([s, t[:0]])

    def f(t, s):
        return len(t), len(s), t[0] is t[1]

    call.loose(f, t, s)
    call.loose(f, t, s)


def user_object_given_out(call):
    class C:
        pass

    def f(c):
        return {"c": c}

    one, two = C(), C()
    call(f, one)
    call.again(f, two)
