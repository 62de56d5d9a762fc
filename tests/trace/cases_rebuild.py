"""What a function gives out is made again at every call: kinds of objects, their parts, order,
identity and cycles. Each case calls twice with something changed in between; the second call must
use the entry of the first."""

import collections
import dataclasses
import enum
import functools
import types
import typing


class _Plain:
    def __init__(self, a):
        self.a = a
        self.b = [a]


class _Slots:
    __slots__ = ("one", "two")

    def __init__(self, one):
        self.one = one


class _SlotsBelow(_Slots):
    __slots__ = ("three",)


class _SlotsAndDict(_Slots):
    pass


@dataclasses.dataclass
class _Data:
    x: object
    y: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class _Frozen:
    x: object


class _Point(typing.NamedTuple):
    x: object
    y: object = 2


class _List(list):
    pass


class _Dict(dict):
    def __setitem__(self, key, value):
        raise RuntimeError("never called by a plan")


class _Set(set):
    pass


class _Tuple(tuple):
    pass


class _Int(int):
    pass


class _Str(str):
    __slots__ = ()


class _Float(float):
    pass


class _Colour(enum.Enum):
    RED = 1
    BLUE = 2


class _Hashed:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return type(other) is _Hashed and self.n == other.n


def _twice(call, f, *pairs):
    """One call for each tuple of arguments: all but the first by the entry of the first."""
    call(f, *pairs[0])
    for args in pairs[1:]:
        call.again(f, *args)
    call.one_entry(f)


def _objects(call, f):
    """Calls f with two different objects that it does not look at."""
    _twice(call, f, (object(),), (object(),), ([1],))


def argument_as_it_is(call):
    def f(x):
        return x

    _twice(call, f, (1,), (2,), ("a",), ([],))


def argument_in_containers(call):
    def f(x):
        return [x, (x, [x]), {"x": x, 1: (x,)}]

    _objects(call, f)


def empty_containers(call):
    def f():
        return [], (), {}, set(), frozenset(), collections.deque(), bytearray(), ""

    _twice(call, f, (), ())


def one_object_twice(call):
    def f(x):
        shared = [x]
        return [shared, shared, (shared, shared)]

    _objects(call, f)


def constants(call):
    def f():
        return [1, 2.5, "s", b"b", None, ..., NotImplemented, 1j, (1, (2,)), range(3), len, int]

    _twice(call, f, (), ())


def list_in_itself(call):
    def f(x):
        a = [x]
        a.append(a)
        return a

    _objects(call, f)


def dict_in_itself(call):
    def f(x):
        d = {"x": x}
        d["d"] = d
        return d

    _objects(call, f)


def tuple_in_a_cycle(call):
    def f(x):
        a = []
        t = (a, x)
        a.append(t)
        return t

    _objects(call, f)


def tuple_in_a_cycle_of_many(call):
    def f(x):
        a, d, s = [], {}, _Plain(x)
        t = (a, d, s)
        a.append(t)
        d["t"] = t
        s.t = t
        return [s, t]

    _objects(call, f)


def two_lists_in_each_other(call):
    def f(x):
        a, b = [x], []
        a.append(b)
        b.append(a)
        return b

    _objects(call, f)


def deep_nesting(call):
    def f(x):
        a = [x]
        for _ in range(1000):
            a = [a]
        return a

    compiled = call.target(f)
    for x in (1, 2):
        a = compiled(x)
        for _ in range(1000):
            (a,) = a
        call.note(a)
    call.one_entry(f)


def sets(call):
    def f(x):
        s = {1, 2, 3, "a", "b", "c"}
        s.add(17)
        s.discard(2)
        return [s, frozenset(s), {8, 0}, {0, 8}, set(range(40)) - set(range(1, 30)), x]

    _objects(call, f)


def dicts(call):
    def f(x):
        d = {"b": 1, "a": x, 3: 4}
        d.pop("b")
        d["b"] = 5
        return d, dict.fromkeys("xyz", x)

    _objects(call, f)


def ordered(call):
    def f(x):
        d = collections.OrderedDict(a=1, b=2, c=x)
        d.move_to_end("a")
        d.move_to_end("c", last=False)
        return d

    _objects(call, f)


def default_dict(call):
    def f(x):
        d = collections.defaultdict(list)
        d["a"].append(x)
        return d

    _objects(call, f)


def counter_and_chain(call):
    def f(x):
        return collections.Counter("hello"), collections.ChainMap({"a": x}, {"b": 1})

    _objects(call, f)


def deques(call):
    def f(x):
        d = collections.deque([1, x, 3], maxlen=3)
        d.append(4)
        return d, collections.deque("ab")

    _objects(call, f)


def byte_arrays(call):
    def f(x):
        b = bytearray(b"abc")
        b.append(7)
        return b, x

    _objects(call, f)


def instances(call):
    def f(x):
        p = _Plain(x)
        p.c = p
        del p.a
        p.a = 1
        return p

    _objects(call, f)


def slots(call):
    def f(x):
        a, b, c = _Slots(x), _SlotsBelow(1), _SlotsAndDict(2)
        b.three = a
        c.two = b
        c.free = x
        return [a, b, c]

    _objects(call, f)


def data_classes(call):
    def f(x):
        return _Data(x), _Frozen(x), _Data(1, [x])

    _objects(call, f)


def named_tuples(call):
    def f(x):
        return _Point(x), _Point(x, [x])

    _objects(call, f)


def subclasses_of_containers(call):
    def f(x):
        a = _List([x, 1])
        a.name = "a"
        d = _Dict(k=1)
        dict.__setitem__(d, "x", x)
        d.self = d
        s = _Set([1, 2])
        s.x = x
        t = _Tuple([x, a])
        t.note = t
        return [a, d, s, t]

    _objects(call, f)


def subclasses_of_values(call):
    def f(x):
        n = _Int(5)
        n.x = x
        return [n, _Str("s"), _Float(2.5), n]

    _objects(call, f)


def namespaces(call):
    def f(x):
        return types.SimpleNamespace(b=1, a=x)

    _objects(call, f)


def dict_that_is_its_own_instance_dict(call):
    class Record(dict):
        def __init__(self, **kw):
            dict.__init__(self, **kw)
            self.__dict__ = self

    def f(x):
        r = Record(a=x)
        r.b = 1
        return r

    r = call(f, object())
    r.c = 5
    call.note(r["c"])
    r = call(f, object())
    r["c"] = 5
    call.note(r.c)


def instance_dict_given_out(call):
    def f(x):
        p = _Plain(x)
        d = p.__dict__
        return p, d

    for x in (object(), object()):
        p, d = call(f, x)
        p.later = 3
        call.note(d)


def instance_dict_given_out_first(call):
    def f(x):
        p = _Plain(x)
        return [vars(p), p]

    for x in (object(), object()):
        d, p = call(f, x)
        d["later"] = 3
        call.note(p.later)


def functions(call):
    def f(x):
        def g(a, b=x, *, c=2):
            """Says something."""
            return a, b, c, x

        g.note = x
        return g

    for x in (object(), object()):
        g = call(f, x)
        call.note(g(1))
        call.note((g.__doc__, g.__name__, g.__qualname__, g.__module__, g.__annotations__))
        call.note(g.__globals__ is globals())


def functions_that_share_a_cell(call):
    def f(x):
        n = [x]

        def get():
            return n

        def put(v):
            nonlocal n
            n = v

        return get, put

    for x in (object(), object()):
        get, put = call(f, x)
        put(3)
        call.note(get())


def function_that_calls_itself(call):
    def f(x):
        def fact(n):
            return 1 if n < 2 else n * fact(n - 1)

        return fact

    for _ in range(2):
        call.note(call(f, 1)(5))


def lambda_with_annotations(call):
    def f(x):
        def g(a: int, b: str = "") -> float: ...

        return g

    for _ in range(2):
        call.note(call(f, 1).__annotations__)


def bound_methods(call):
    def f(x):
        p = _Plain(x)
        return p.__init__, p.b.append, p

    for x in (object(), object()):
        init, append, p = call(f, x)
        append(5)
        init(6)
        call.note(p)


def bound_method_of_an_argument(call):
    def f(x, y):
        return x.append, y.keys

    _twice(call, f, ([], {}), ([], {}))


def partials(call):
    def f(x):
        return functools.partial(len), functools.partial(dict, [(1, x)], a=x, b=[x])

    _objects(call, f)


def slices(call):
    def f(x):
        return slice(1, x, None), slice(1, 2)

    _objects(call, f)


def views(call):
    def f(x):
        d = {"a": x}
        return [d.keys(), d.values(), d.items(), d]

    for x in (object(), object()):
        keys, _, _, d = call(f, x)
        d["b"] = 1
        call.note(list(keys))


def view_of_an_argument(call):
    def f(d):
        d["new"] = 1
        return d.keys()

    for _ in range(2):
        d = {"a": 1}
        keys = call(f, d)
        d["b"] = 1
        call.note(list(keys))


def iterators(call):
    def f(x):
        a = iter([x, 2, 3])
        next(a)
        b = iter((1, 2, x))
        next(b)
        c = iter(range(5))
        next(c)
        return [a, b, c, enumerate([x, 1]), zip([1, 2], [x, 4])]

    for x in (object(), object()):
        parts = call(f, x)
        call.note([list(part) for part in parts])


def iterator_of_an_argument(call):
    def f(xs):
        xs.append(1)
        it = iter(xs)
        for _ in range(len(xs)):
            next(it)
        xs.append(2)
        return it

    for _ in range(2):
        xs = [0, 0]
        it = call(f, xs)
        xs.append(3)
        call.note(list(it))


def enum_members_as_keys(call):
    def f(x):
        return {_Colour.RED: x, _Colour.BLUE: 1}, {_Colour.RED}

    for x in (object(), object()):
        d, s = call(f, x)
        call.note((d[_Colour.RED] is x, _Colour.RED in s))


def own_hash_in_a_dict(call):
    key = _Hashed(3)

    def f(x):
        return {key: x}

    for x in (object(), object()):
        call.note(call(f, x)[_Hashed(3)] is x)


def own_hash_made_inside(call):
    def f(x):
        return {_Hashed(3): x}

    for x in (object(), object()):
        call.note(call(f, x)[_Hashed(3)] is x)


def own_hash_beside_addresses(call):
    key, other = _Hashed(3), object()

    def f(x):
        made = object()
        return {made: 1, key: 2, x: 3, (made, x): 4}, made

    for x in (other, other, object()):
        d, made = call(f, x)
        call.note((d[made], d[_Hashed(3)], d[x], d[made, x]))


def objects_as_keys(call):
    def f(x):
        key = object()
        return {key: x, x: key}

    for x in (object(), object()):
        d = call(f, x)
        call.note(d[d[x]] is x)


def classes_and_types(call):
    def f(x):
        return type(x), _Plain, int, type(None), [type(x)]

    _twice(call, f, (_Plain(1),), (_Plain(2),))


def class_of_another_call(call):
    class A:
        pass

    class B:
        pass

    def f(x):
        return type(x)

    call(f, A())
    call(f, B())
    call(f, A())


def property_objects(call):
    def f(x):
        def get(self):
            return x

        return property(get), staticmethod(get), classmethod(get)

    for x in (object(), object()):
        p, s, c = call(f, x)
        call.note((p.fget(1) is x, s.__func__(1) is x, c.__func__(1) is x, s.__name__))


def finalizers(call):
    log = []

    class Loud:
        def __del__(self):
            log.append("gone")

    def f(x):
        return [Loud(), x]

    for _ in range(2):
        call.loose(f, 1)
        call.note(len(log))


def exceptions(call):
    def f(x):
        try:
            raise ValueError(x)
        except ValueError as e:
            kept = e
        return [kept]

    for _ in range(2):
        call.note(call(f, 1)[0].args)


def generators(call):
    def f(x):
        def g():
            yield x
            yield 2

        it = g()
        next(it)
        return it

    for _ in range(2):
        call.note(list(call.loose(f, 1)))


def global_functions_and_modules(call):
    def f(x):
        return [collections, _twice, functools.partial, x]

    _objects(call, f)


def given_back_from_a_container(call):
    def f(d):
        return d["a"], d["l"][0], d

    _twice(call, f, ({"a": 1, "l": [[1]]},), ({"a": 1.5, "l": [[2]]},))


def held_in_a_written_place(call):
    def f(o, x):
        o.made = p = _Plain(x)
        p.owner = o
        o.b.append(p)
        return p

    for x in (object(), object()):
        call(f, _Plain(1), x)
