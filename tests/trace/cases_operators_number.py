"""Unary and binary operators, comparisons, truth, length."""

import collections
import datetime
import decimal
import enum
import fractions


class Money:
    def __init__(self, amount):
        self.amount = amount

    def __add__(self, other):
        if not isinstance(other, Money):
            return NotImplemented
        return Money(self.amount + other.amount)

    def __radd__(self, other):
        return Money(other + self.amount)

    def __iadd__(self, other):
        self.amount += other
        return self

    def __neg__(self):
        return Money(-self.amount)

    def __eq__(self, other):
        return isinstance(other, Money) and self.amount == other.amount

    def __lt__(self, other):
        return self.amount < other.amount

    def __bool__(self):
        return self.amount != 0

    def __len__(self):
        return abs(self.amount)

    def __hash__(self):
        return hash(self.amount)


class Step(int):
    pass


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Plain:
    pass


def arithmetic_of_numbers(call):
    def f(a, b):
        return a + b, a - b, a * b, a / b, a // b, a % b, a**2, -a, +b

    call(f, 7, 2)
    call.again(f, 7, 2)
    call(f, 7, 2.0)
    call(f, True, 2)
    call(f, 0.0, 2)
    call(f, -0.0, 2)
    call(f, Step(7), 2)
    call.again(f, Step(7), 2)
    call(f, Step(8), 2)
    call.traced(f)


def bits(call):
    def f(a, b):
        a <<= 1
        b |= 4
        return a & b, a | b, a ^ b, ~a, a >> 1

    call(f, 12, 5)
    call(f, 3, 5)
    call.traced(f)


def division_by_zero_is_caught(call):
    def f(a, b):
        try:
            return a // b
        except ZeroDivisionError as e:
            return str(e)

    call(f, 1, 0)
    call.again(f, 1, 0)
    call(f, 1, 2)
    call.traced(f)


def unsupported_operands(call):
    def f(a, b):
        try:
            return a + b
        except TypeError as e:
            return str(e)

    call(f, 1, "x")
    call(f, [1], (2,))
    call(f, None, 2)
    call(f, Plain(), 2)
    call.traced(f)


def methods_of_a_class(call):
    def f(a, b):
        c = a + b
        c += 5
        return c, 3 + a, -b, sum([a.amount])

    a, b = Money(1), Money(2)
    call(f, a, b)
    call.again(f, a, b)
    b.amount = 20
    call(f, a, b)
    call.traced(f)


def inplace_on_an_outside_object(call):
    def f(a):
        b = a
        a += 3
        return a is b

    a = Money(1)
    call(f, a)
    call(f, a)
    call.watch(a)
    call(f, a)
    call.traced(f)


def reflected_method_of_a_subclass(call):
    class Loud(Money):
        def __radd__(self, other):
            return "loud"

    def f(a, b):
        return a + b, 1 + b

    call(f, Money(1), Loud(2))
    call.again(f, Money(1), Loud(2))
    call(f, Money(1), Money(2))
    call.traced(f)


def operator_added_to_a_class_later(call):
    class C:
        pass

    def f(a):
        try:
            return a + 1
        except TypeError:
            return "no"

    call(f, C())
    C.__add__ = lambda self, other: other + 41
    call(f, C())
    del C.__add__
    call(f, C())
    call.traced(f)


def lists_grow_in_place(call):
    def f(a, b):
        c = a
        c += b
        d = a + [9]
        d *= 2
        return c is a, d, 2 * a[:1]

    a = [1, [2]]
    call.watch(a)
    call(f, a, [3])
    call(f, a, (4, 5))
    call(f, a, "xy")
    call(f, a, {"k": 1})
    call.traced(f)


def list_plus_equals_a_generator(call):
    def f(a, n):
        a += (i * i for i in range(n))
        return a

    a = []
    call(f, a, 3)
    call(f, a, 3)
    call(f, a, 4)
    call.traced(f)


def list_plus_equals_an_outside_iterator(call):
    def f(a, it):
        a += it
        return a

    it = iter([1, 2, 3])
    call(f, [], it)
    call(f, [], it)


def list_plus_equals_a_python_iterable(call):
    class It:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return iter(range(self.n))

    def f(a, o):
        a += o
        return a

    call(f, [1], It(2))
    call.again(f, [1], It(2))
    call(f, [1], It(3))
    call.traced(f)


def python_iterable_that_gives_an_outside_iterator(call):
    class It:
        def __init__(self, it):
            self.it = it

        def __iter__(self):
            return self.it

    def f(o):
        return list(o), [*o]

    source = iter([1, 2, 3])
    call(f, It(source))
    call.note(list(source))
    call(f, It(iter([4])))


def tuples(call):
    def f(a, b):
        a += (b,)
        return a, a * 2, (b, 1) + a

    call(f, (1, 2), 3)
    call(f, (1, [2]), [3])
    call.traced(f)


def sets(call):
    def f(a, b):
        c = a | b
        c -= {1}
        return c, a & b, a ^ b, a - b, a <= b, a == b

    call(f, {1, 2, 3}, {2, 3, 4})
    call.again(f, {1, 2, 3}, {2, 3, 4})
    call(f, {1, 2, 3}, {2})
    call(f, frozenset("ab"), {"a"})
    call.traced(f)


def sets_change_in_place(call):
    def f(a, b):
        a |= b
        a ^= {100}
        a -= {1}
        return len(a)

    a = {1, 2}
    call.watch(a)
    call(f, a, {3})
    call(f, a, {4, 5})
    call.traced(f)


def dict_unions(call):
    def f(a, b):
        c = a | b
        a |= b
        return c, list(a)

    a = {"x": 1}
    call.watch(a)
    call(f, a, {"y": 2})
    call(f, a, {"y": [3]})
    call(f, a, {"x": 0, "z": 1})
    call.traced(f)


def dict_update_by_pairs(call):
    def f(a, b):
        a |= b
        return a

    call(f, {"x": 1}, [("y", 2)])
    call(f, {"x": 1}, [("z", 2)])


def views_as_sets(call):
    def f(d, e):
        return d.keys() & e.keys(), d.keys() - e, d.items() & e.items(), d.keys() | {"q"}

    call(f, {"a": 1, "b": 2}, {"b": 2, "c": 3})
    call(f, {"a": 1, "b": 2}, {"b": 3, "c": 3})


def percent(call):
    def f(a, b):
        return "%s and %r" % (a, b), "%d" % a, "%(k)s" % {"k": b}, "%5.2f" % a

    call(f, 3, "x")
    call(f, 4, [1, "y"])
    call(f, 4, {"a": (1,)})
    call.traced(f)


def percent_of_an_object(call):
    class C:
        def __init__(self, n):
            self.n = n

        def __str__(self):
            return f"C{self.n}"

    def f(o):
        return "%s" % o, "%s-%s" % (o, 1)

    call(f, C(1))
    call(f, C(2))


def repeat_by_index(call):
    class N:
        def __init__(self, n):
            self.n = n

        def __index__(self):
            return self.n

    def f(n):
        return [0] * n, "ab" * n, n * (1,)

    call(f, N(2))
    call(f, N(3))
    call.traced(f)


def comparisons(call):
    def f(a, b):
        return a < b, a <= b, a > b, a >= b, a == b, a != b

    call(f, 1, 2)
    call(f, 1.0, 1)
    call(f, "a", "b")
    call(f, (1, 2), (1, 3))
    call(f, [1, [2]], [1, [2]])
    call(f, [1, [2]], [1, [3]])
    call(f, [1, 2.0], [1, 2])
    call.traced(f)


def equality_of_containers_is_deep(call):
    def f(a, b):
        return a == b, a != b

    call(f, {"a": [1, {"b": (2,)}]}, {"a": [1, {"b": (2,)}]})
    call.again(f, {"a": [1, {"b": (2,)}]}, {"a": [1, {"b": (2,)}]})
    call(f, {"a": [1, {"b": (2,)}]}, {"a": [1, {"b": (3,)}]})
    call(f, {"a": [1]}, {"b": [1]})
    call(f, collections.deque([1, [2]]), collections.deque([1, [2]]))
    call(f, collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1))
    call.traced(f)


def equality_by_a_method(call):
    def f(a, b):
        return a == b, a != b, [a] == [b], a in [b]

    call(f, Money(1), Money(1))
    call(f, Money(1), Money(2))
    m = Money(3)
    call(f, m, m)
    call(f, m, None)
    call.traced(f)


def equality_by_identity(call):
    def f(a, b):
        return a == b, a != b, [a] == [b], a in [b], (a,) == (b,)

    a, b = Plain(), Plain()
    call(f, a, b)
    call.again(f, a, b)
    call.again(f, Plain(), Plain())
    call(f, a, a)
    call.again(f, b, b)
    call(f, a, 1)
    call.traced(f)


def equality_with_itself_and_nan(call):
    def f(a, b):
        return a == b, [a] == [b], a in [b], (a, 1) < (b, 2)

    x, y = float("nan"), float("nan")
    call(f, x, x)
    call(f, x, y)
    call(f, y, y)


def enum_members(call):
    def f(c):
        return c == Color.RED, c != Color.BLUE, c is Color.RED, c in (Color.RED,)

    call(f, Color.RED)
    call(f, Color.BLUE)
    call.again(f, Color.RED)
    call.traced(f)


def classes_and_functions_compare_by_identity(call):
    def g():
        pass

    def f(a, b):
        return a == b, a != b, a in (int, g), {a: 1} == {b: 1}

    call(f, int, int)
    call(f, int, str)
    call(f, g, g)
    call(f, g, int)
    call(f, len, len)
    call(f, Plain, Plain)


def comparing_with_none_needs_no_value(call):
    def f(a):
        return a == None, a != None  # noqa: E711

    call(f, 1)
    call.again(f, 2)
    call(f, None)
    call.traced(f)


def order_of_user_objects(call):
    def f(a, b):
        return a < b, b > a, sorted([a, b])[0] is a, min(b, a) is a

    call(f, Money(1), Money(2))
    call(f, Money(2), Money(1))
    call.traced(f)


def missing_order(call):
    def f(a, b):
        try:
            return a < b
        except TypeError as e:
            return str(e)

    call(f, Plain(), Plain())
    call(f, 1, "x")
    call(f, None, 1)
    call(f, [1], [None])
    call.traced(f)


def truth(call):
    def f(a):
        return not a, bool(a), "yes" if a else "no"

    for value in (0, 1, 0.0, "", "x", [], [0], {}, {1: 2}, None, (), (0,), Money(0), Money(2)):
        call(f, value)
    call(f, Plain())


def truth_of_a_list_guards_emptiness_only(call):
    def f(a):
        return 1 if a else 2

    call(f, [1])
    call.again(f, [2, 3])
    call(f, [])
    call.again(f, [])
    call.traced(f, 2)


def truth_by_an_attribute(call):
    class C:
        def __init__(self, flag):
            self.flag = flag

        def __bool__(self):
            return self.flag

    def f(o):
        return "yes" if o else "no"

    call(f, C(True))
    call(f, C(False))
    call.again(f, C(True))
    call.traced(f)


def truth_by_length(call):
    class C:
        def __len__(self):
            return self.n

    def f(o):
        return bool(o), len(o)

    o = C()
    o.n = 3
    call(f, o)
    o.n = 0
    call(f, o)
    C.__bool__ = lambda self: True
    call(f, o)
    call.traced(f)


def bad_results_of_bool_and_len(call):
    class B:
        def __bool__(self):
            return 2

    class L:
        def __len__(self):
            return -1

    def f(o):
        try:
            return bool(o)
        except (TypeError, ValueError) as e:
            return str(e)

    call(f, B())
    call(f, L())
    call.traced(f)


def lengths(call):
    def f(a):
        return len(a)

    for value in ([1, 2], (1,), {"a": 1}, "abc", {1}, range(4), collections.deque([1]), Money(4)):
        call(f, value)
    call.traced(f)


def length_of_what_has_none(call):
    def f(a):
        try:
            return len(a)
        except TypeError as e:
            return str(e)

    call(f, 1)
    call(f, Plain())
    call(f, None)
    call.traced(f)


def other_number_types(call):
    def f(a, b):
        return a + b, a == b, a < b

    call(f, fractions.Fraction(1, 2), fractions.Fraction(1, 3))
    call(f, decimal.Decimal(1), decimal.Decimal(2))
    call(f, datetime.timedelta(1), datetime.timedelta(2))
    call(f, datetime.date(2020, 1, 1), datetime.timedelta(1)) if False else None


def dates(call):
    def f(a, b):
        return a - b, a == b, a < b, str(a), hash(a) == hash(b)

    a, b = datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)
    call(f, a, b)
    call(f, b, a)
    call(f, a, a)


def exceptions_in_methods(call):
    class C:
        def __add__(self, other):
            raise ValueError("no add")

        def __eq__(self, other):
            raise KeyError("no eq")

        def __bool__(self):
            raise RuntimeError("no bool")

    def f(o):
        seen = []
        for g in (
            lambda: o + 1,
            lambda: o == 1,
            lambda: not o,
            lambda: [o] == [1],
            lambda: o in [1],
        ):
            try:
                g()
            except Exception as e:
                seen.append(repr(e))
        return seen

    call(f, C())
    call(f, C())
    call.traced(f)


def counter_arithmetic(call):
    def f(a, b):
        return a + b, a - b, a & b, a | b

    C = collections.Counter
    call(f, C("aab"), C("abc"))
    call(f, C("aab"), C("b"))


def subclass_of_a_list(call):
    class L(list):
        def total(self):
            return sum(self)

    def f(a, b):
        c = a + b
        a += [5]
        return c, a.total(), a == b, len(a), type(c) is list

    a = L([1, 2])
    call.watch(a)
    call(f, a, [3])
    call(f, a, L([4]))


def length_alone_is_guarded(call):
    def f(*xs):
        return len(xs), [len(x) for x in xs]

    call(f, [1, 2], {"a": 1}, (1,), {3})
    call.again(f, [3, 4], {"b": 1}, ("x",), {4})
    call(f, [3], {"b": 1}, ("x",), {4})
    call(f, [3])
    call.traced(f)


def length_of_what_another_name_changes(call):
    def f(a, b):
        n = len(a)
        b.append(1)
        return n, len(a), bool(a)

    def g(a, b):
        n = len(a)
        b["k"] = 1
        return n, len(a), bool(a)

    def h(a, b):
        b.add(1)
        return len(a), bool(a)

    for k, kind in ((f, list), (g, dict), (h, set)):
        call(k, kind(), kind())
        x = kind()
        call(k, x, x)
        call.again(k, kind(), kind())
        call(k, x, x)


def truth_of_what_another_name_changes(call):
    def f(a, b):
        b.append(1)
        return 1 if a else 2

    call(f, [], [])
    x = []
    call(f, x, x)


def identity_comes_before_equality_in_containers(call):
    class Never:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return False

        def __hash__(self):
            return 1

    def f(a, xs, d):
        return a in xs, [a] == [xs[0]], a in d, xs.count(a), {a: 1}.get(xs[0]), (a,) == (xs[0],)

    a, b = Never(1), Never(2)
    call(f, a, [b], {b: 1})
    call(f, b, [b], {b: 1})
    call(f, a, [b], {a: 1})
    call(f, a, [a], {b: 1})


def elements_searched_one_by_one(call):
    class It:
        def __init__(self, *xs):
            self.xs = xs

        def __iter__(self):
            return iter(self.xs)

    class Bare:
        pass

    def f(o, x):
        return x in o, x in (y for y in o), x in iter([*o])

    a, b = Bare(), Bare()
    call(f, It(a, b), b)
    call(f, It(a, b), Bare())
    call(f, It(a, b), a)
    call(f, It(1, 2.0), 2)
    call(f, It(1, "x", [3]), [3])
    call(f, It(float("nan")), float("nan"))
    call.traced(f)
