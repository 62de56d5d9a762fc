"""Items, lengths, keys, order: of every kind of container, only as far as they were looked at."""

import collections
import types


def list_item(call):
    def f(xs):
        return xs[0] + 1

    xs = [1, 2]
    call(f, xs)
    call.again(f, xs)
    xs[1] = 5
    call.again(f, xs)
    xs[0] = 2
    call(f, xs)
    call(f, [])


def list_length(call):
    def f(xs):
        return len(xs)

    call(f, [1, 2])
    call.again(f, ["a", "b"])
    call(f, [1])
    call(f, [])


def list_iteration(call):
    def f(xs):
        total = 0
        for x in xs:
            total += x
        return total

    xs = [1, 2]
    call(f, xs)
    xs.append(3)
    call(f, xs)
    xs[0] = 1.5
    call(f, xs)
    xs.sort()
    call.again(f, xs)


def list_or_tuple(call):
    def f(xs):
        return type(xs).__name__, xs[0]

    call(f, [1])
    call(f, (1,))
    call(f, "1")
    call(f, {0: 1})


def nested_item(call):
    def f(cfg):
        return cfg["d"][0]

    cfg = {"d": [1, 2]}
    call(f, cfg)
    call.again(f, cfg)
    cfg["d"][0] = 5
    call(f, cfg)
    cfg["d"] = (1, 2)
    call(f, cfg)
    cfg["other"] = 1
    call.again(f, cfg)


def dict_item(call):
    def f(d):
        return d["a"] + 1

    d = {"a": 1}
    call(f, d)
    d["b"] = 2
    call.again(f, d)
    d["a"] = 2
    call(f, d)
    del d["a"]
    call(f, d)
    d["a"] = 1
    call.again(f, d)


def dict_missing_key(call):
    def f(d):
        return d.get("x", "none"), "x" in d

    d = {"a": 1}
    call(f, d)
    d["b"] = 1
    call.again(f, d)
    d["x"] = 1
    call(f, d)
    del d["x"]
    call.again(f, d)


def dict_key_present_but_not_read(call):
    def f(d):
        return 1 if "k" in d else 2

    d = {"k": 1}
    call(f, d)
    d["k"] = "another"
    call.again(f, d)
    del d["k"]
    call(f, d)


def dict_length_keys_order(call):
    def f(d):
        return list(d)

    def g(d):
        return len(d)

    d = {"a": 1, "b": 2}
    call(f, d)
    call(g, d)
    d["a"] = 5
    call.again(f, d)
    call.again(g, d)
    del d["a"]
    d["a"] = 1
    call(f, d)
    call.again(g, d)
    d["c"] = 1
    call(f, d)
    call(g, d)


def dict_items(call):
    def f(d):
        return [(k, v + 1) for k, v in d.items()], list(d.values())

    d = {"a": 1, "b": 2}
    call(f, d)
    call.again(f, dict(d))
    d["a"] = 9
    call(f, d)


def dict_keys_of_other_types(call):
    def f(d):
        return d.get(1), d.get(1.0), d.get(True), d.get((1, 2))

    call(f, {1: "a"})
    call(f, {True: "a"})
    call(f, {1: "b"})
    call(f, {(1, 2): "t"})
    call(f, {})


def dict_key_that_only_equals(call):
    def f(d):
        return list(d), d[1]

    call(f, {1: "a"})
    call(f, {True: "a"})
    call(f, {1.0: "a"})


class _Key:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return self.n == getattr(other, "n", other)


def dict_with_a_key_that_claims_to_be_another(call):
    def f(d):
        return d.get("a", "none")

    call(f, {})
    call(f, {_Key("a"): 1})
    call(f, {"b": 1})
    call(f, {_Key("a"): 2, "a": 3})


def dict_keyed_by_user_objects(call):
    def f(d, k):
        return d[k]

    call(f, {_Key(1): "one"}, _Key(1))
    call(f, {_Key(2): "two"}, _Key(2))
    call(f, {_Key(2): "two"}, 2)


def dict_keyed_by_identity(call):
    class O:
        pass

    def f(d, o):
        return d[o]

    a, b = O(), O()
    call(f, {a: 1, b: 2}, a)
    call(f, {a: 1, b: 2}, b)
    call(f, {b: 1, a: 2}, b)


def default_dict(call):
    def f(d):
        return d["missing"], len(d)

    call(f, collections.defaultdict(int))
    call(f, collections.defaultdict(list))
    call(f, collections.defaultdict(list, missing=1))
    call(f, collections.defaultdict(lambda: 7))
    call(f, collections.defaultdict(None))


def default_factory_replaced(call):
    def f(d):
        return d["missing"]

    d = collections.defaultdict(int)
    call(f, d)
    d.clear()
    d.default_factory = str
    call(f, d)
    d.clear()
    d.default_factory = None
    call(f, d)


def ordered_dict_order(call):
    def f(d):
        return list(d), list(d.items())

    d = collections.OrderedDict(a=1, b=2, c=3)
    call(f, d)
    call.again(f, d)
    d.move_to_end("a")
    call(f, d)
    d.move_to_end("a", last=False)
    call.again(f, d)


def ordered_dict_moved_before(call):
    def f(d):
        return list(d), d["a"], next(iter(d))

    d = collections.OrderedDict(a=1, b=2)
    d.move_to_end("a")
    call(f, d)
    d.move_to_end("b")
    call(f, d)


def dict_subclass_with_missing(call):
    class D(dict):
        def __missing__(self, key):
            return key + "?"

    def f(d):
        return d["a"], d["b"], d.get("b")

    call(f, D(a=1))
    call(f, D(a=1, b=2))
    D.__missing__ = lambda self, key: "new"
    call(f, D(a=1))
    del D.__missing__
    call(f, D(a=1))


def dict_subclass_with_getitem(call):
    class D(dict):
        def __getitem__(self, key):
            return "own", key

    def f(d):
        return d["a"], d.get("a"), dict(d)

    call(f, D(a=1))
    call(f, D(a=2))
    D.__getitem__ = lambda self, key: "new"
    call(f, D(a=2))
    del D.__getitem__
    call(f, D(a=2))


def list_subclass_state_and_items(call):
    class L(list):
        pass

    def f(xs):
        return xs[0], xs.tag, len(xs)

    xs = L([1, 2])
    xs.tag = "t"
    call(f, xs)
    xs.tag = "u"
    call(f, xs)
    xs[0] = 9
    call(f, xs)
    L.__getitem__ = lambda self, i: "own"
    call(f, xs)
    L.__len__ = lambda self: 100
    call(f, xs)


def set_membership(call):
    def f(s):
        return 1 in s, len(s)

    call(f, {1, 2})
    call(f, {2, 3})
    call(f, set())
    call(f, {1})


def set_order(call):
    def f(s):
        return list(s)

    call(f, {8, 0})
    a = set()
    a.add(0)
    a.add(8)
    b = set()
    b.add(8)
    b.add(0)
    call(f, a)
    call(f, b)
    call.note(a == b)


def set_of_texts(call):
    def f(s):
        return sorted(s), "a" in s

    call(f, {"a", "b"})
    call(f, {"b", "c"})
    call(f, {"b", "a"})


def set_operations(call):
    def f(a, b):
        return sorted(a & b), sorted(a | b), a <= b, a == b

    call(f, {1, 2}, {2, 3})
    call(f, {1, 2}, {1, 2})
    call(f, set(), {1})
    call(f, {1}, {True})


def deque_items(call):
    def f(q):
        return q[0], len(q), list(q)

    q = collections.deque([1, 2])
    call(f, q)
    call.again(f, q)
    q.rotate(1)
    call(f, q)
    q.append(3)
    call(f, q)


def deque_maxlen(call):
    def f(q):
        q.append(9)
        return list(q), q.maxlen

    call(f, collections.deque([1, 2], maxlen=2))
    call(f, collections.deque([1, 2]))
    call(f, collections.deque([1, 2], maxlen=3))


def counter(call):
    def f(c):
        return c["a"], c["zz"], c.most_common(1)

    c = collections.Counter("aab")
    call(f, c)
    c["b"] = 10
    call(f, c)
    c["zz"] = 1
    call(f, c)


def chain_map(call):
    def f(c):
        return c["a"], len(c)

    one, two = {"a": 1}, {"a": 2, "b": 3}
    c = collections.ChainMap(one, two)
    call(f, c)
    del one["a"]
    call(f, c)
    two["a"] = 5
    call(f, c)
    c.maps.reverse()
    call(f, c)


def dict_views(call):
    def f(v):
        return len(v), list(v)

    d = {"a": 1}
    call(f, d.keys())
    call(f, d.values())
    call(f, d.items())
    d["b"] = 2
    call(f, d.items())


def view_beside_its_dict(call):
    def f(d, v):
        d["x"] = 1
        return len(v)

    d, e = {"a": 1}, {"a": 1}
    call(f, d, e.keys())
    d.pop("x")
    call(f, d, d.keys())


def mapping_proxy(call):
    def f(p):
        return p["a"], len(p), list(p)

    d = {"a": 1}
    call(f, types.MappingProxyType(d))
    d["a"] = 2
    call(f, types.MappingProxyType(d))
    d["b"] = 2
    call(f, types.MappingProxyType(d))


def iterator_argument(call):
    def f(it):
        return next(it, "end")

    it = iter([1, 2])
    for _ in range(4):
        call(f, it)


def generator_argument(call):
    def gen():
        yield 1
        yield 2

    def f(g):
        return list(g)

    call(f, gen())
    g = gen()
    next(g)
    call(f, g)
    call(f, g)


class _Count(enumerate):
    pass


def subclass_of_a_c_iterator(call):
    def f(xs):
        it = _Count(xs)
        return next(it), list(it), list(zip(_Count(xs), xs))

    call(f, ["a", "b"])
    call(f, ["b"])


def unpacking(call):
    def f(xs):
        a, *b = xs
        return a, b

    call(f, [1, 2])
    call(f, [1, 2, 3])
    call(f, (1,))
    call(f, [])
    call(f, "ab")


def star_arguments(call):
    def g(*a, **k):
        return a, k

    def f(xs, d):
        return g(*xs, **d)

    call(f, [1], {"x": 1})
    call.again(f, [5], {"x": 7})
    call(f, [1, 2], {"x": 1})
    call(f, [1], {"y": 1})
    call(f, [1], {})


def floats_summed_from_an_iterator(call):
    def f(xs, d):
        return sum(iter(xs)), sum(xs), sum(map(float, xs)), sum(d.values()), sum(x for x in xs)

    xs = [0.1] * 10
    call(f, xs, dict(enumerate(xs)))
    call(f, [0.1] * 9 + [1e16], {1: 0.1})
    call(f, [1, 0.1, 10**16], {1: 2})


def match_statement(call):
    def f(x):
        match x:
            case {"k": v, **rest}:
                return "map", v, rest
            case [a, b, *c]:
                return "seq", a, b, c
            case int() | float():
                return "num"
            case str(s):
                return "str", s
            case _:
                return "other"

    for value in ({"k": 1}, {"k": 2, "z": 1}, [1, 2], [1, 2, 3], (1, 2), 5, 5.0, "s"):
        call(f, value)
    call(f, None)


def simple_namespace(call):
    def f(n):
        return n.a, len(vars(n))

    n = types.SimpleNamespace(a=1)
    call(f, n)
    n.a = 2
    call(f, n)
    n.b = 2
    call(f, n)


def cyclic_list(call):
    def f(a):
        return len(a), a[0] is a, a[0][0] is a

    a = []
    a.append(a)
    call(f, a)
    call(f, [[1]])
    call(f, a)


def repr_of_a_cyclic_list(call):
    def f(a):
        return repr(a), str({"a": a})

    a = []
    a.append(a)
    call(f, a)
    call(f, a)


def compared_containers(call):
    def f(a, b):
        return a == b, a != b, [a] == [b], (1, a) < (1, b)

    call(f, [1, 2], [1, 2])
    call(f, [1, 2], [1, 3])
    call(f, [1], [])
    call(f, (1,), (1,))


def _worn(items):
    """A set whose table shows that it held more before."""
    s = set(range(1000, 1040))
    s.update(items)
    for item in range(1000, 1040):
        s.discard(item)
    return s


def difference_of_worn_sets(call):
    def f(a, b):
        return a.difference(b), b.difference(a), a & b, a - b

    call(f, _worn("a"), _worn("a"))
    call.again(f, _worn("a"), _worn("a"))
    call(f, _worn(["a", 1]), _worn(["a", 1]))
    call(f, _worn([8, 0, 16]), {0, 8, 16})
    call(f, _worn([8, 0]), _worn([0, 16]))
    call(f, {0, 8}, {8, 16})


def difference_that_is_empty(call):
    def f(a, b):
        return not (a.difference(b) or b.difference(a)), list(a.difference(b)), list(a - b)

    call(f, _worn([8, 0, 16]), _worn([0, 8, 16]))
    call(f, _worn([8, 0, 16]), _worn([16, 8, 0]))
    call.traced(f)
    call(f, _worn([8, 0, 16]), _worn([0, 8]))
    call(f, _worn([8, 0]), _worn([0, 8, 24]))
    call.traced(f)
    call(f, _worn([8, 0, 16]), {24})
    call(f, {8, 0, 16}, _worn([16]))


def difference_that_grows(call):
    def f(a, b):
        rest = a - b
        for item in (16, 24, 8, 0, 32):
            rest.add(item)
        return list(rest)

    call(f, _worn([8, 0]), _worn([0, 24]))
    call(f, _worn([0, 8]), _worn([0, 8]))
    call(f, _worn([8, 0, 40, 48, 56, 64, 72, 80]), {8, 0, 40, 48, 56, 64, 72, 80})
    call(f, _worn([8, 0, 40, 48, 56, 64, 72, 80]), {8})


def difference_with_equal_elements(call):
    def f(a, b):
        return list(a & b), list(b & a), list(a - b)

    call(f, _worn([1, 2]), _worn([True, 3]))
    call(f, _worn([1.0, 2]), _worn([True, 3, 4]))
    call(f, _worn([1.0, 2, 5]), _worn([1]))


def difference_from_other_things(call):
    def f(a, b):
        return len(a.difference(b)), len(a.intersection(b)), len(a.difference(b, [8]))

    for b in ([0, 8], {0: 1}, (0,), "ab", frozenset([0]), range(3), {0, 8, 16}):
        call(f, _worn([8, 0, 16]), b)
        call(f, {16, 8, 0}, b)


def difference_of_a_changed_set(call):
    def f(a, b):
        a.add(24)
        a.discard(0)
        rest = a - b
        rest.add(40)
        rest.add(8)
        return a.difference(b), b.difference(a), list(rest), a & b

    call(f, {8, 0}, {8, 24})
    call(f, {8, 0}, {8, 24})
    call.traced(f)
    call(f, _worn([8, 0, 16]), {8, 24})
    call(f, {8, 0, 16, 32}, {8, 24})
    call(f, {8, 0, 16, 32}, set())


def dict_from_keys(call):
    def f(keys, value):
        return dict.fromkeys(keys, value), collections.OrderedDict.fromkeys(keys), {}.fromkeys(keys)

    call(f, "ab", 1)
    call.again(f, "ab", 1)
    call(f, "abc", 1)
    call(f, ["a", 1], [])
    call(f, {3: 4, 1: 2}, 1)
    call(f, {8, 0}, 1)
    call(f, {0, 8}, 1)
    call(f, (x for x in "ab"), 1)
    call(f, 3, 1)
    call(f, [[]], 1)


def dict_of_a_class_from_keys(call):
    class D(dict):
        pass

    class O(collections.OrderedDict):
        tag = "a"

        def __setitem__(self, key, value):
            super().__setitem__(key + self.tag, value)

    def f(keys, value):
        d, o = D.fromkeys(keys, value), O.fromkeys(keys, value)
        return d, o, D.fromkeys(keys), type(d), type(o)

    call(f, ["x", "y"], 1)
    call.again(f, ["x", "y"], 1)
    call(f, ["x", "z"], 1)
    call(f, ["x", "y"], [])
    O.tag = "b"
    call(f, ["x", "y"], 1)
    O.__setitem__ = lambda self, key, value: None
    call(f, ["x", "y"], 1)
    D.__init__ = lambda self: self.update(first=0)
    call(f, ["x", "y"], 1)
    call(f, 3, 1)


def dict_of_a_strange_class_from_keys(call):
    made = []

    class D(dict):
        def __new__(cls):
            return made

    def f(keys):
        return D.fromkeys(keys)

    call(f, [])
    made = {"old": 1}
    call(f, ["x"])
    call(f, ["x", "y"])
    call(f, [])


def ordered_dict_changed_behind_its_back(call):
    def f(d):
        return list(d.items()), len(d), "x" in d

    def broken(change, *args):
        d = collections.OrderedDict(a=1, b=2)
        change(d, *args)
        return d

    def make(how):
        if how == 0:
            return collections.OrderedDict(a=1, b=2)
        if how == 1:
            return broken(dict.__setitem__, "x", 3)
        return broken(dict.setdefault, "x", 3)

    for how in (0, 1, 0, 2, 1, 0):
        call.loose(f, make(how))

    def g(d, change, *args):
        change(d, *args)
        try:
            return list(d.items()), len(d), list(d)
        except KeyError as error:
            return error.args, len(d)

    for change in (dict.clear, dict.popitem):
        for _ in range(2):
            call.loose(g, collections.OrderedDict(a=1, b=2), change)


def keys_are_not_hashed_again(call):
    class K:
        def __init__(self, n):
            self.n, self.asked = n, 0

        def __hash__(self):
            self.asked += 1
            return self.n

        def __eq__(self, other):
            return self.n == other.n

    def f(d):
        return [k.asked for k in d], len(d), sum(d.values()), [*d.items()][0][0].n

    for keys in ((1, 2), (1, 2), (2, 1, -1), (1 << 61, 7)):
        d = {K(n): n for n in keys}
        call(f, d)
        call(f, d)
    call(f, {K(1): 1, "a": 2, (3, K(4)): 3})


def keys_are_not_asked_to_be_told_apart(call):
    asked = []

    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            asked.append("hash")
            return 1

        def __eq__(self, other):
            asked.append("eq")
            return self is other

    def names(d):
        return [key.n for key in d], len(d), list(d.values())

    def names_and_questions(d):
        asked.clear()
        return names(d), list(asked)

    for kind in (dict, collections.OrderedDict, collections.defaultdict):
        d = kind()
        d.update({Key(1): "a", "between": 5, Key(2): "b"})
        del d["between"]
        call(names_and_questions, d)
        call(names_and_questions, d)


def items_of_a_tuple_of_values(call):
    def f(t):
        return t[1], t[-1] if len(t) > 2 else None

    def unpacked(t):
        a, b = t
        return [b]

    call(f, (1, 2, 3))
    call.again(f, (9, 2, 3))
    call(f, (1, 5, 3))
    call(f, (1, 5))
    call(f, (1,))
    call(f, (1, 2.0, 3))
    call(unpacked, (1, 2))
    call.again(unpacked, (3, 2))
    call.again(unpacked, (3, "other"))
    call(unpacked, (3, [4]))
    call(unpacked, (1, 2, 3))
    call(unpacked, [1, 2])


def item_of_a_tuple_and_then_the_whole(call):
    def f(t):
        first = t[0]
        return first, t, t[0] is first, hash(t) == hash((first, *t[1:])), {t: 1}

    call(f, (1000, "a"))
    call.again(f, (1000, "a"))
    call(f, (1000, "b"))
    call(f, (1001, "b"))
    call.traced(f)


def bytearray_whose_buffer_someone_has(call):
    def f(b):
        try:
            b.extend(b"more")
            del b[-4:]
        except BufferError:
            return "held"
        return bytes(b)

    b = bytearray(b"abc")
    call(f, b)
    call.again(f, b)
    with memoryview(b):
        call.loose(f, b)
    call.loose(f, b)
