"""Which objects are one and the same: outcome of `is`, aliasing, distinctness."""

import contextvars
import datetime
import typing
import weakref


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


class _Weak:
    pass


class _Equal(_Weak):
    """Equal to all of its kind, as long as the class says so."""

    same = True

    def __eq__(self, other):
        return self.same and isinstance(other, _Equal)

    def __hash__(self):
        return 1


def weak_keys(call):
    def f(key):
        return states.get(key, 0), key in states, weakref.ref(key)() is key

    for kind in (_Weak, _Equal):
        a, b = kind(), kind()
        states = weakref.WeakKeyDictionary({a: 1})
        call(f, a)
        call(f, b)
        call(f, a)
        states[b] = 2
        call(f, b)
        del states[a]
        call(f, a)


def weak_keys_that_are_equal(call):
    def f(key):
        return states.get(key, 0)

    a, b = _Equal(), _Equal()
    states = weakref.WeakKeyDictionary({a: 1})
    call(f, b)
    a.same = b.same = False
    call(f, b)
    call(f, a)


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


def is_data_of_a_c_class(call):
    def f(x):
        return x is datetime.timezone.utc, contextvars.Token.MISSING is not x

    for x in (5, datetime.timezone.utc, contextvars.Token.MISSING, datetime.timezone.max, [], 5):
        call(f, x)


def data_of_a_c_class_as_a_key(call):
    def f(d):
        return contextvars.Token.MISSING in d, d.get(contextvars.Token.MISSING)

    missing = contextvars.Token.MISSING
    for d in ({}, {missing: 5}, {}, {1: 1, missing: 6}):
        call(f, d)


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


class _O:
    def __init__(self, n=0):
        self.n = n


def new_object_in_a_set(call):
    def f(o, p):
        seen = {o}
        return p in seen, o in seen, len(seen | {p})

    call(f, _O(), _O())
    call.again(f, _O(), _O())
    o = _O()
    call(f, o, o)
    call.again(f, _O(), _O())
    call.again(f, o, _O(o))
    p = _O()
    call.again(f, p, p)
    call.traced(f, 2)


def new_object_in_a_memo(call):
    def f(nodes):
        memo, order = {}, []
        for node in nodes:
            if node not in memo:
                memo[node] = len(memo)
            order.append(memo[node])
        return order, list(memo.values()), memo.get(nodes[-1]), memo.pop(nodes[0])

    call(f, [_O(), _O(), _O()])
    call.again(f, [_O(), _O(), _O()])
    a, b = _O(), _O()
    call(f, [a, b, a])
    call.again(f, [b, a, b])
    call(f, [a, a, a])
    call.again(f, [b, b, b])
    call.traced(f, 3)


def new_objects_in_tuples_as_keys(call):
    def f(a, b):
        d = {(a, 1): "a", (b, (2, a)): "b"}
        return d.get((b, 1)), d[b, (2, a)], (a, (2, b)) in d, {(a, b)} == {(b, a)}

    call(f, _O(), _O())
    call.again(f, _O(), _O())
    a = _O()
    call(f, a, a)
    call.traced(f, 2)


def new_functions_and_modules_as_keys(call):
    import types

    def f(g, h, m):
        return len({g, h}), {m: 1, g: 2}.get(h), g in {m: 1}

    def make():
        return lambda: 0

    g = make()
    call(f, g, make(), types.ModuleType("m"))
    call.again(f, make(), g, types.ModuleType("n"))
    call(f, g, g, types.ModuleType("m"))


def found_in_an_outside_dict(call):
    a, b = _O(), _O()
    known, names = {a: "a", b: "b"}, {a}

    def f(o):
        return known.get(o), o in known, o in names, o in list(known)

    call(f, a)
    call(f, b)
    call(f, _O())
    call(f, a)
    del known[a]
    names.add(b)
    call(f, a)
    call(f, b)


def met_among_the_keys_of_a_dict(call):
    def f(d, o):
        total = sum(k.n for k in d)
        return total, o in d, d.get(o), {o: 1}.keys() <= d.keys()

    a, b = _O(1), _O(2)
    d = {a: 10, b: 20}
    call(f, d, a)
    call(f, d, b)
    call(f, d, _O(1))
    call(f, {_O(1): 10, b: 20}, b)
    call(f, {b: 10, a: 20}, b)


def partials_and_methods_as_keys(call):
    import functools

    many = [[] for _ in range(20)]
    d = {functools.partial(len): 1, (functools.partial(len), 1): 2}
    d.update((xs.append, i) for i, xs in enumerate(many))
    parts = [functools.partial(len) for _ in range(20)]
    one, some = dict.fromkeys(parts, 1), set(parts)

    def f(d):
        return [k in d for k in d], [d[k] for k in d], [d.get(k) for k in list(d)]

    def g(p, xs):
        return p in some, p in one, one.get(p), d.get(xs.append), len(some & {p})

    for _ in range(2):
        call.target(f)(d)
        call.note(call.target(f)(d) == f(d))
        call.note(call.target(f)(one) == f(one))
        for p, xs in zip(parts, many):
            call.note(call.target(g)(p, xs) == g(p, xs))
        call.note(call.target(g)(functools.partial(len), []) == (False, False, None, None, 0))


def other_objects_in_a_set(call):
    def f(s, o):
        return [x.n for x in s], o in s, len(s)

    a, b = _O(1), _O(1)
    call(f, {a}, a)
    call.again(f, {b}, b)
    call(f, {a}, b)
    call.again(f, {_O(1)}, a)
    call(f, frozenset((a,)), a)


def other_objects_in_a_set_in_their_order(call):
    def f(s, o):
        return [x.n for x in s], o in s, len(s)

    a, b = _O(1), _O(2)
    for s, o in (({a, b}, b), ({b, a}, a), ({a}, b), (frozenset((a, b)), a)):
        call.note(call.target(f)(s, o) == f(s, o))
        call.note(call.target(f)(set(s), o) == f(set(s), o))


def other_objects_in_a_dict(call):
    def f(d, o):
        for k, v in d.items():
            v.append(k.n)
        return list(d.values()), d.get(o), o in d

    def g(d, o):
        first = next(iter(d))
        gone = d.pop(first)
        d[o] = gone
        d[first] = "again"
        return [k.n for k in d]

    a, b, c = _O(1), _O(2), _O(3)
    call(f, {a: [], b: []}, a)
    call(f, {c: [], a: []}, c)
    call(f, {a: [], b: []}, b)
    call(f, {a: [], b: []}, c)
    shared = []
    call(f, {a: shared, b: shared}, c)
    call(f, {b: [], c: shared}, a)
    for d, o in (({a: 1, b: 2}, c), ({c: 1, a: 2}, b), ({a: 1, b: 2}, a), ({b: 1, a: 2}, a)):
        call(g, d, o)
        call.note([(k.n, v) for k, v in d.items()])
    call.again(g, {b: 1, c: 2}, a)


def keys_of_all_kinds(call):
    def f(d):
        return [(type(k).__name__, v) for k, v in d.items()], [k in d for k in d], [*d.values()]

    def make(o, v):
        return {o: v, "s": 1, int: 2, f: 3, (o, 1): 4, None: 5, ...: 6, 2.5: 7}

    call(f, make(_O(), 0))
    call(f, make(_O(), 0))
    call(f, make(_O(), 9))
    call(f, {**make(_O(), 0), 3: 3})


def keys_whose_class_changes(call):
    class Late:
        n = 0

    def f(d, o):
        return [k.n for k in d], o in d, len({*d, o})

    call(f, {Late(): 1}, Late())
    call.again(f, {Late(): 1}, Late())
    Late.__eq__ = lambda self, other: True
    Late.__hash__ = lambda self: 0
    call(f, {Late(): 1}, Late())
    del Late.__eq__, Late.__hash__
    call(f, {Late(): 1}, Late())


def memo_across_a_break(call):
    def f(nodes):
        memo, seen, total = {}, set(), 0
        for node in nodes:
            print(end="")
            if node in seen:
                total += memo[node]
                continue
            seen.add(node)
            memo[node] = node.n
        return total, list(memo.values()), len(seen), [n in seen for n in nodes]

    a, b, c = _O(1), _O(2), _O(3)
    for nodes in ([a, b], [a, a], [b, a, b], [c, c, c], [_O(5), _O(6)], [a, b, c, a]):
        call(f, nodes)
        call(f, nodes)


def found_again_behind_a_break(call):
    def f(o, p):
        seen, memo = {o}, {o: "o"}
        print(end="")
        return o in seen, p in seen, memo.get(o), memo.get(p)

    for _ in range(3):
        call(f, _O(), _O())
    o = _O()
    call(f, o, o)
    call(f, _O(), _O())


def put_into_an_outside_dict(call):
    d = {}

    def f(o, n):
        d[o] = n
        return len(d), d[o]

    objects = [_O() for _ in range(4)]
    for o in [*objects, *objects]:
        call.note(call(f, o, 1))
        call.note([objects.index(k) for k in d])


def put_into_an_outside_set(call):
    s, twin = set(), set()

    def f(o, p):
        s.add(o)
        s.add(p)
        s.discard(p)
        return len(s), p in s

    objects = [_O() for _ in range(20)]
    for o, p in zip(objects, reversed(objects)):
        twin.add(o)
        twin.add(p)
        twin.discard(p)
        call.loose(f, o, p)
        call.note(list(s) == list(twin))


def order_of_a_set_of_objects(call):
    def f(a, b, c, d):
        s = {a, b, c}
        s.discard(a)
        t = frozenset([c, b, a])
        return [x.n for x in s | {d}], [x.n for x in t], [x.n for x in {d, c} - {b}]

    objects = [_O(i) for i in range(40)]
    for i in range(0, 40, 4):
        some = objects[i : i + 4]
        call.note(call.target(f)(*some) == f(*some))
    for i in range(0, 40, 4):
        some = objects[i : i + 4][::-1]
        call.note(call.target(f)(*some) == f(*some))


def first_of_a_set_of_objects(call):
    def f(a, b, c):
        s = {a, b, c}
        s.remove(a)
        first = s.pop()
        for last in s:
            return first.n, last.n

    objects = [_O(i) for i in range(30)]
    for i in range(0, 30, 3):
        call.note(call.target(f)(*objects[i : i + 3]) == f(*objects[i : i + 3]))


def sets_of_objects_given_out(call):
    def f(a, b):
        gone = {a, b}
        gone.discard(a)
        none = {a}
        none.clear()
        return {a}, {a, b}, gone, {(a, 1)}, none, {a: b}, frozenset((b,))

    objects = [_O(i) for i in range(20)]
    for i in range(0, 20, 2):
        a, b = objects[i : i + 2]
        for one, other in zip(call.target(f)(a, b), f(a, b)):
            call.note((one == other, list(one) == list(other)))


def one_object_in_a_set_given_out(call):
    def f(a):
        return {a}, frozenset((a,)), {a: 1}

    for a in (_O(), _O(), _O()):
        s, t, d = call(f, a)
        call.note((a in s, a in t, d.get(a)))
    call.traced(f, 1)


def hash_of_what_holds_an_object(call):
    import collections

    Pair = collections.namedtuple("Pair", "a b")

    def f(o):
        return hash((o, 1)), hash(Pair(o, 2)), (o,).__hash__(), hash((frozenset((o,)), o))

    for o in (_O(), _O()):
        call.note(call.target(f)(o) == f(o))


def hash_of_what_holds_a_new_object(call):
    def f():
        o = _O()
        return o, (o,).__hash__(), frozenset((o,)).__hash__()

    for _ in range(3):
        o, one, other = call.target(f)()
        call.note((one == hash((o,)), other == hash(frozenset((o,)))))


def order_that_a_hash_decides(call):
    def f(a, b):
        return [x.n for x in sorted([a, b], key=lambda x: hash((x,)))]

    objects = [_O(i) for i in range(8)]
    for i in range(0, 8, 2):
        call.note(call.target(f)(*objects[i : i + 2]) == f(*objects[i : i + 2]))


def class_that_gets_its_own_hash(call):
    class Late:
        pass

    def f(a, b):
        return len({a, b}), {a: 1}.get(b)

    call(f, Late(), Late())
    call.again(f, Late(), Late())
    Late.__hash__ = lambda self: 1
    Late.__eq__ = lambda self, other: True
    call(f, Late(), Late())
    Late.__eq__ = lambda self, other: NotImplemented
    call(f, Late(), Late())
    del Late.__hash__, Late.__eq__
    call(f, Late(), Late())


def address_and_an_own_eq(call):
    def f(a, b):
        d = {a: 1, b: 2}
        return len(d), d[a], d

    for a, b in ((_N(), _N()), (_N(), _N())):
        d = call(f, a, b)[2]
        call.note((d.get(a), d.get(b), _N() in d))


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


# What C types have: none of these was made inside, whatever way leads to it.
_PARTS = [list.append, int.__add__, float.real, property.fget, vars(dict)["fromkeys"]]
_TABLE = {part: n for n, part in enumerate([*_PARTS, (list.append, 1)])}
_NUMBERS = {id(part) for part in _PARTS}


def parts_of_c_types_in_a_table(call):
    def f():
        return (
            [_TABLE.get(part) for part in (list.append, int.__add__, float.real, property.fget)],
            _TABLE.get(vars(dict)["fromkeys"]),
            _TABLE.get((list.append, 1)),
            list.append in _TABLE,
            list.pop in _TABLE,
        )

    call(f)
    call.again(f)
    _TABLE[list.pop] = 9
    try:
        call(f)
    finally:
        del _TABLE[list.pop]


def address_of_a_part_of_a_c_type(call):
    def f():
        return id(list.append) in _NUMBERS, id(float.real) in _NUMBERS, id(list.pop) in _NUMBERS

    call.loose(f)
    call.loose(f)


def is_a_part_of_a_c_type(call):
    def f(o):
        return o is list.append, o is int.__add__, o is float.real, o is property.fget

    call(f, 5)
    for part in [*_PARTS, 5, *_PARTS]:
        call(f, part)


def object_whose_death_nobody_is_told_of(call):
    """CPython does not clear the weak references to these."""

    def f(o, p):
        return o.__origin__ is p

    p = typing.ParamSpec("p")
    for _ in range(20):
        call.loose(f, p.args, p)
        call.loose(f, p.kwargs, p)


class _Ratio(float):
    pass


def not_a_number_of_a_class(call):
    def f(x):
        return hash(x) == object.__hash__(x), x == x, x in [x]

    numbers = [_Ratio("nan") for _ in range(3)]
    for x in (*numbers, _Ratio(0.5)):
        call(f, x)
