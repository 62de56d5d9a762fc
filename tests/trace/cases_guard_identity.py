"""Which objects are one and the same: outcome of `is`, aliasing, distinctness."""


class _N:
    """Never equal to anything, itself included."""

    def __eq__(self, other):
        return False

    __hash__ = object.__hash__


def same_or_not(call):
    def f(a, b):
        return a is b

    a, b = [], []
    call(f, a, a)
    call(f, a, b)
    call.again(f, b, b)
    call.again(f, b, a)


def same_immutables_or_not(call):
    def f(a, b):
        return a is b, a == b

    one, two = int("1" * 20), int("1" * 20)
    call(f, one, one)
    call(f, one, two)
    call(f, two, two)


def same_immutables_after_native_use(call):
    def f(a, b):
        xs = [a, b]
        xs.count(0)
        return xs[0] is xs[1]

    one, two = int("1" * 20), int("1" * 20)
    call(f, one, one)
    call(f, one, two)
    call(f, one, one)


def is_a_global_object(call):
    class Marker:
        pass

    MARK, OTHER = Marker(), Marker()

    def f(x):
        return "mark" if x is MARK else "other"

    call(f, MARK)
    call(f, OTHER)
    call.again(f, Marker())
    call.again(f, 5)
    call.again(f, MARK)


def sentinel_object(call):
    missing = object()

    def f(d, k):
        return d.get(k, missing) is missing

    call(f, {"a": 1}, "a")
    call(f, {"a": 1}, "b")
    call(f, {"a": missing}, "a")


def same_list_twice_after_two(call):
    def f(a, b):
        a.append(1)
        return len(b)

    call(f, [], [])
    x = []
    call(f, x, x)
    call(f, [], [])
    y = []
    call(f, y, y)


def two_lists_after_the_same_twice(call):
    def f(a, b):
        a.append(1)
        return len(b)

    x = []
    call(f, x, x)
    x.clear()
    call(f, x, [])


def distinctness_only_where_it_matters(call):
    def f(a, b):
        return len(a) + len(b)

    x = [1]
    call(f, [1], [1])
    call.again(f, [2], [3])
    call(f, x, x)


def nested_alias(call):
    def f(a, m):
        a.append(1)
        return len(m["k"])

    call(f, [], {"k": []})
    x = []
    call(f, x, {"k": x})


def alias_in_an_attribute(call):
    class O:
        pass

    def f(o, xs):
        o.xs.append(1)
        return len(xs), o.xs is xs

    o = O()
    o.xs = []
    call(f, o, [])
    o.xs = []
    call(f, o, o.xs)


def same_object_twice(call):
    class O:
        pass

    def f(a, b):
        a.x = 1
        b.x = 2
        return a.x

    call(f, O(), O())
    o = O()
    call(f, o, o)


def identity_shortcut_of_containers(call):
    def f(a, b):
        return a in [b], [a] == [b], [b].count(a), (a,) == (b,), {"k": a} == {"k": b}

    n, m = _N(), _N()
    call(f, n, n)
    call(f, n, m)
    call(f, m, m)


def identity_shortcut_after_distinct(call):
    def f(a, b):
        return a in [b]

    n, m = _N(), _N()
    call(f, n, m)
    call(f, n, n)


def identity_shortcut_through_an_attribute(call):
    class O:
        pass

    def f(o, xs):
        return o.n in xs, xs.index(o.n) if o.n in xs else -1

    o = O()
    o.n = _N()
    call(f, o, [1, o.n])
    call(f, o, [1, _N()])


def set_of_outside_objects(call):
    class O:
        def __init__(self, n):
            self.n = n

    def f(a, b):
        return len({a, b}), sorted(x.n for x in {a, b})

    a, b = O(1), O(2)
    call(f, a, b)
    call(f, a, a)
    call(f, b, O(0))


def dict_of_outside_objects(call):
    class O:
        pass

    def f(a, b):
        d = {a: 1}
        d[b] = 2
        return len(d), d[a]

    a, b = O(), O()
    call(f, a, b)
    call(f, a, a)


def same_through_two_paths(call):
    class O:
        pass

    def f(a, b):
        return a.x is b.x, a.x == b.x

    a, b = O(), O()
    a.x = b.x = []
    call(f, a, b)
    b.x = []
    call(f, a, b)


def type_identity(call):
    class A:
        pass

    class B:
        pass

    def f(x, y):
        return type(x) is type(y), type(x) is A

    call(f, A(), A())
    call(f, A(), B())
    call(f, B(), A())
    call.again(f, A(), A())


def fresh_class_each_time(call):
    def f(x):
        return x.v

    def make(v):
        class C:
            pass

        c = C()
        c.v = v
        return c

    for v in (1, 1, 2):
        call(f, make(v))


def id_of_an_object(call):
    def f(a, b):
        return id(a) == id(b), {id(a): 1}.get(id(b))

    x, y = [], []
    call(f, x, x)
    call(f, x, y)


def seen_by_id(call):
    def f(xs):
        seen, out = set(), []
        for x in xs:
            if id(x) not in seen:
                seen.add(id(x))
                out.append(x)
        return out

    a, b = [1], [1]
    call(f, [a, b, a])
    call(f, [a, b, b])
    call(f, [a, [1], [1]])


def two_tuples_with_one_list(call):
    def f(s, t):
        s[0].append(1)
        return len(t[0])

    x = []
    call(f, ([],), ([],))
    call(f, (x,), (x,))


def method_self_alias(call):
    class O:
        def __init__(self):
            self.n = 0

        def bump(self):
            self.n += 1

    def f(m, o):
        m()
        return o.n

    a, b = O(), O()
    call(f, a.bump, b)
    call(f, a.bump, a)


def bound_c_method_alias(call):
    def f(push, xs):
        push(1)
        return len(xs)

    a, b = [], []
    call(f, a.append, b)
    call(f, a.append, a)


def written_and_put_back_in_between(call):
    """Nothing is left of the writes at the end, but what was read meanwhile relied on two objects."""

    class O:
        pass

    def attributes(o, p):
        p.z = 1
        seen = sorted(vars(o))
        del p.z
        return seen

    def items(xs, ys):
        xs.append(1)
        seen = len(ys)
        xs.pop()
        return seen

    def keys(d, e):
        d["k"] = 1
        seen = "k" in e
        d.pop("k")
        return seen

    a, b = O(), O()
    call(attributes, a, b)
    b.__dict__ = a.__dict__
    call(attributes, a, b)
    for f, kind in ((items, list), (keys, dict)):
        one, two = kind(), kind()
        call(f, one, two)
        call(f, one, one)


def metaclass_that_answers_for_new(call):
    class Meta(type):
        pass

    class A(metaclass=Meta):
        def __new__(cls):
            return object.__new__(cls)

    def f():
        try:
            return type(A()).__name__
        except TypeError:
            return "TypeError"

    def answer(cls, name):
        return object.__getattribute__(cls, name)

    call(f)
    Meta.__getattribute__ = answer
    call(f)
