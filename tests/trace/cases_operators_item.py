"""Subscripts, their writes, and membership."""

import collections
import types


class Box:
    def __init__(self, **items):
        self.items = items

    def __getitem__(self, key):
        return self.items[key]

    def __setitem__(self, key, value):
        self.items[key] = value

    def __delitem__(self, key):
        del self.items[key]

    def __contains__(self, key):
        return key in self.items


def lists_and_tuples(call):
    def f(a, i):
        return a[i], a[-1], a[1:], a[::-1], a[:i]

    call(f, [1, 2, 3], 0)
    call.again(f, [1, 2, 3], 0)
    call(f, [1, 2, 3], 1)
    call(f, (1, [2], 3), 1)
    call(f, "abc", 2)
    call(f, range(10), 2)
    call(f, b"abc", 2)
    call.traced(f)


def elements_are_not_looked_at(call):
    def f(a, i):
        return a[i]

    call(f, [1, 2, 3], 0)
    call.again(f, [5, 6, 7], 0)
    call.again(f, [[5], 6, 7], 0)
    call.traced(f, 1)


def index_errors(call):
    def f(a, i):
        try:
            return a[i]
        except (IndexError, TypeError) as e:
            return str(e)

    call(f, [1], 5)
    call(f, (1,), -3)
    call(f, [1], "x")
    call(f, [1], 1.0)
    call(f, "abc", None)
    call(f, 5, 0)
    call(f, None, 0)
    call.traced(f)


def index_by_an_object(call):
    class I:
        def __init__(self, n):
            self.n = n

        def __index__(self):
            return self.n

    def f(a, i):
        return a[i], a[i:], a[slice(None, i)]

    call(f, [1, 2, 3], I(1))
    call(f, [1, 2, 3], I(2))
    call(f, (1, 2, 3), True)
    call.traced(f)


def dict_items_by_key(call):
    def f(d, k):
        return d[k]

    d = {"a": 1, "b": [2], 3: "c", (1, 2): "t", None: 0, 1.5: 2}
    for k in ("a", "b", 3, (1, 2), None, 1.5, 3.0):
        call(f, d, k)
    d["c"] = 9
    call.again(f, d, "a")
    d["a"] = 7
    call.again(f, d, "a")
    call.traced(f)


def missing_keys(call):
    def f(d, k):
        try:
            return d[k]
        except KeyError as e:
            return e.args, repr(e)

    d = {"a": 1}
    call(f, d, "b")
    call.again(f, d, "b")
    d["b"] = 2
    call(f, d, "b")
    call(f, d, ("x", 1))
    call.traced(f)


def unhashable_keys(call):
    def f(d, k):
        try:
            return d[k]
        except TypeError as e:
            return str(e)

    call(f, {"a": 1}, [])
    call(f, {"a": 1}, {})
    call(f, {"a": 1}, ([],))
    call.traced(f)


def dict_writes_by_key(call):
    def f(d, k, v):
        d[k] = v
        d["n"] = d.get("n", 0) + 1
        return d[k]

    d = {}
    call.watch(d)
    call(f, d, "a", 1)
    call(f, d, "a", [2])
    call(f, d, "b", d)
    call(f, d, (1,), 3)
    call.traced(f)


def deletes(call):
    def f(d, k):
        try:
            del d[k]
        except (KeyError, IndexError) as e:
            return repr(e)

    d = {"a": 1, "b": 2}
    call.watch(d)
    call(f, d, "a")
    call(f, d, "a")
    call(f, d, "b")
    xs = [1, 2, 3]
    call(f, xs, 0)
    call(f, xs, 5)
    call(f, xs, slice(0, 1))
    call.traced(f)


def objects_as_keys(call):
    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return hash(self.n)

        def __eq__(self, other):
            return self.n == other.n

    def f(d, k):
        d[k] = d.get(k, 0) + 1
        return k in d, d[k], len(d)

    d = {}
    call(f, d, K(1))
    call(f, d, K(1))
    call(f, d, K(2))
    call.watch(d)
    call(f, d, K(2))


def identity_keys(call):
    class K:
        pass

    def f(d, k):
        return k in d, d.get(k), {k: 1}[k], k in {k}

    a, b = K(), K()
    d = {a: 1}
    call(f, d, a)
    call(f, d, b)
    call(f, d, a)
    d[b] = 2
    call(f, d, b)
    call(f, d, int)
    call(f, d, len)


def keys_with_one_hash(call):
    def f(d, k):
        return d[k], k in d

    d = {1: "one", 0: "zero"}
    for k in (1, True, 1.0, 0, False, 0.0, -0.0):
        call(f, d, k)
    call.traced(f)


def list_writes(call):
    def f(a, i, v):
        a[i] = v
        return a[0]

    a = [1, 2, 3]
    call.watch(a)
    call(f, a, 0, 5)
    call(f, a, 0, [6])
    call(f, a, slice(1, 2), [7, 8])
    call(f, a, slice(1, 1), "xy")
    call(f, a, slice(None, None, 2), range(3))
    call.traced(f)


def list_write_errors(call):
    def f(a, i, v):
        try:
            a[i] = v
        except (IndexError, TypeError, ValueError) as e:
            return str(e)

    call(f, [1], 5, 0)
    call(f, [1], "x", 0)
    call(f, [1, 2, 3], slice(None, None, 2), [1])
    call(f, [1], slice(0, 1), 5)
    call(f, (1,), 0, 5)
    call(f, "abc", 0, "x")
    call(f, 5, 0, "x")
    call.traced(f)


def slice_assigned_from_a_generator(call):
    def f(a, n):
        a[1:2] = (i for i in range(n))
        return a

    call(f, [1, 2, 3], 2)
    call(f, [1, 2, 3], 3)
    call.traced(f)


def slices_of_lazies(call):
    def f(a, i, j, k):
        return a[i:j:k]

    call(f, [1, 2, 3, 4], 0, 4, 2)
    call(f, [1, 2, 3, 4], None, None, -1)
    call(f, "abcd", 1, None, None)
    call.traced(f)


def python_methods(call):
    def f(b, k, v):
        b[k] = v
        x = b[k], k in b
        del b[k]
        return x, k in b

    b = Box(z=1)
    call.watch(b)
    call(f, b, "a", 1)
    call.again(f, b, "a", 1)
    call(f, b, "c", [2])
    call.traced(f)


def python_methods_get_the_key_unopened(call):
    class Keep:
        def __getitem__(self, key):
            return (key,)

    def f(o, k):
        return o[k]

    o = Keep()
    call(f, o, 1)
    call.again(f, o, 2)
    call.again(f, o, "x")
    call.traced(f, 1)


def defaultdicts(call):
    def f(d, k):
        d[k].append(k)
        return len(d), d[k]

    d = collections.defaultdict(list)
    call.watch(d)
    call(f, d, "a")
    call(f, d, "a")
    call(f, d, "b")
    call.traced(f)


def defaultdict_by_key_only(call):
    def f(d, k):
        return d[k]

    d = collections.defaultdict(int, a=1)
    call.watch(d)
    call(f, d, "q")
    call(f, d, "a")
    d["other"] = 5
    call.again(f, d, "a")
    d.default_factory = None
    try:
        call(f, d, "w")
    finally:
        d.default_factory = lambda: 42
    call(f, d, "w2")


def defaultdict_made_inside(call):
    def f(xs):
        d = collections.defaultdict(list)
        for x in xs:
            d[x % 2].append(x)
        return d, d.default_factory is list

    call(f, [1, 2, 3])
    call(f, [1, 2, 3, 4])
    call.traced(f)


def missing_method(call):
    class D(dict):
        def __missing__(self, key):
            return ("missing", key)

    def f(d, k):
        return d[k], d.get(k), k in d

    d = D(a=1)
    call(f, d, "a")
    call(f, d, "b")
    call.traced(f)


def ordered_dicts_and_counters(call):
    def f(d, k):
        d[k] = 5
        d.move_to_end("a") if hasattr(d, "move_to_end") else None
        return list(d), d[k]

    d = collections.OrderedDict(a=1, b=2)
    call.watch(d)
    call(f, d, "b")
    call(f, d, "c")
    c = collections.Counter("ab")
    call(f, c, "a")
    call(f, c, "x")


def counter_counts(call):
    def f(text):
        c = collections.Counter(text)
        c["zz"] += 1
        return c["a"], c["nothing"], sorted(c.items())

    call(f, "banana")
    call(f, "bandana")


def deques(call):
    def f(d, i):
        d[i] = [d[i]]
        return d[0], d[-1], 3 in d

    d = collections.deque([1, 2, 3])
    call.watch(d)
    call(f, d, 0)
    call(f, d, 2)
    call.traced(f)


def bytearrays(call):
    def f(b, i):
        b[i] = 65
        b[0:1] = b"xy"
        return b[i], 65 in b

    b = bytearray(b"abc")
    call.watch(b)
    call(f, b, 2)
    call(f, b, 1)


def membership(call):
    def f(c, v):
        return v in c, v not in c

    for c in ([1, [2], "x"], (1, [2]), {1: 2, "x": 3}, {1, "x"}, "xyz", range(5), {1: 2}.values()):
        for v in (1, "x"):
            try:
                call(f, c, v)
            except TypeError:
                pass
    call(f, [1, [2]], [2])
    call(f, ((1, 2), 3), (1, 2))
    call(f, {"a": 1}.items(), ("a", 1))


def membership_type_errors(call):
    def f(c, v):
        try:
            return v in c
        except TypeError as e:
            return str(e)

    call(f, "abc", 1)
    call(f, 5, 1)
    call(f, {1}, [])
    call(f, {1: 1}, [])
    call.traced(f)


def membership_in_a_dict_guards_one_key(call):
    def f(d, k):
        return k in d

    d = {"a": 1}
    call(f, d, "a")
    d["b"] = 2
    call.again(f, d, "a")
    d["a"] = 100
    call.again(f, d, "a")
    del d["a"]
    call(f, d, "a")
    call.traced(f)


def membership_in_a_generator(call):
    def f(n, v):
        g = (i * i for i in range(n))
        return v in g, list(g)

    call(f, 5, 4)
    call(f, 5, 5)
    call.traced(f)


def membership_by_iteration(call):
    class It:
        def __init__(self, *xs):
            self.xs = xs

        def __iter__(self):
            return iter(self.xs)

    class Seq:
        def __getitem__(self, i):
            if i > 3:
                raise IndexError
            return i

    def f(c, v):
        return v in c

    call(f, It(1, 2), 2)
    call(f, It(1, 2), 3)
    call(f, Seq(), 2)
    call(f, Seq(), 9)


def membership_of_lazies_in_tuples(call):
    def f(x):
        return x in ("a", "b", None)

    call(f, "a")
    call(f, None)
    call(f, 3)
    call(f, [1])
    call.traced(f)


def globals_as_a_dict(call):
    def f(k):
        return globals()[k]

    call(f, "collections")
    call(f, "types")


def vars_as_a_dict(call):
    class O:
        pass

    def f(o, k):
        vars(o)[k] = vars(o).get(k, 0) + 1
        return getattr(o, k), k in vars(o), "zz" in o.__dict__

    o = O()
    call.watch(o)
    call(f, o, "a")
    call(f, o, "a")
    call(f, o, "b")


def class_subscripts(call):
    class G:
        def __class_getitem__(cls, key):
            return (cls.__name__, key)

    class Meta(type):
        def __getitem__(cls, key):
            return ("meta", key)

    class M(metaclass=Meta):
        pass

    def f(c, k):
        return c[k]

    call(f, G, 1)
    call(f, M, 2)
    call.traced(f)


def mapping_proxy(call):
    def f(p, k):
        return p[k]

    d = {"a": 1}
    p = types.MappingProxyType(d)
    call(f, p, "a")
    d["a"] = 2
    call(f, p, "a")


def same_list_by_two_names(call):
    def f(a, b):
        a[0] = 5
        return b[0]

    x, y = [1], [2]
    call(f, x, y)
    call(f, x, x)
    call(f, y, x)
    call.traced(f)


def dict_in_a_dict(call):
    def f(cfg):
        cfg["d"]["n"] = cfg["d"]["n"] + 1
        return cfg["d"]

    cfg = {"d": {"n": 0}}
    call.watch(cfg)
    call(f, cfg)
    call(f, cfg)
    cfg["d"] = {"n": 10, "m": 1}
    call(f, cfg)
    call.traced(f)


def dict_subclass_with_its_own_items(call):
    class D(dict):
        def __getitem__(self, key):
            return ("got", dict.get(self, key))

        def __setitem__(self, key, value):
            dict.__setitem__(self, key, [value])

    def f(d, k):
        d[k] = 1
        return d[k], k in d

    d = D()
    call.watch(d)
    call(f, d, "a")
    call(f, d, "b")


def errors_name_the_value(call):
    def sort(xs):
        try:
            xs.sort(1)
        except TypeError as error:
            return error.args

    def sort_by_class(xs):
        try:
            list.sort(xs, 1)
        except TypeError as error:
            return error.args

    for f in (sort, sort_by_class):
        call(f, [2, 1])
        call(f, [2, 1])
