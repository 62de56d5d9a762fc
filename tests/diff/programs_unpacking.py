"""Star unpacking, displays with stars, slices, subscripts, comparison chains and boolean
operators: the order of evaluation and the texts of errors."""

from probes import catch, where


def assignment_targets():
    a, b = 1, 2
    a, b = b, a
    (c, [d, *e]), f = (1, [2, 3, 4]), 5
    *g, h = "xyz"
    i, *j = [1]
    [k, (m,)] = 7, [8]
    x = y = z = []
    return a, b, c, d, e, f, g, h, i, j, k, m, x is y is z


def wrong_lengths():
    def two(x):
        a, b = x
        return a, b

    def star(x):
        a, b, *c = x
        return a, b, c

    def mid(x):
        a, *b, c, d = x
        return a, b, c, d

    values = ([], [1], [1, 2], [1, 2, 3], "abcd", 5, None, {1: 2, 3: 4}, iter([1]))
    return [[catch(f, v if not hasattr(v, "__next__") else iter([1])) for v in values]
            for f in (two, star, mid)]


def unpack_special_iterables():
    class OldStyle:
        def __getitem__(self, i):
            if i > 2:
                raise IndexError
            return i

    class Bad:
        def __iter__(self):
            return 5

    class Raises:
        def __iter__(self):
            return self

        def __next__(self):
            raise KeyError("next")

    def f(x):
        a, b, c = x
        return a, b, c

    def g(x):
        a, *b = x
        return a, b

    return [catch(fn, k()) for fn in (f, g) for k in (OldStyle, Bad, Raises)]


def unpack_order_of_stores():
    log = []

    class O:
        def __setattr__(self, k, v):
            log.append((k, v))

        def __setitem__(self, k, v):
            log.append((k, v))

    def o(tag):
        log.append(tag)
        return O()

    o("first").a, o("second")[log.append("key") or "k"], *o("third").rest = "ab", *"xy", 9
    return log


def swap_uses_old_values():
    xs = [0, 1, 2]
    i = 0
    i, xs[i] = 2, "set"
    ys = [3, 4]
    ys[0], ys[1] = ys[1], ys[0]
    a, b, c = 1, 2, 3
    a, b, c = c, a, b
    return xs, i, ys, (a, b, c)


def displays():
    xs, d = [1, 2], {"a": 1}
    return (
        [*xs, 3, *"ab", *()],
        (*xs, *xs),
        {*xs, 2, 3},
        {**d, "b": 2, **{"a": 3}},
        [*range(3), *[*xs]],
        *xs,
    )


def display_errors():
    return [
        catch(lambda: [*5]),
        catch(lambda: (*None,)),
        catch(lambda: {*1.5}),
        catch(lambda: {**[1]}),
        catch(lambda: {**5}),
        catch(lambda: {[]: 1}),
        catch(lambda: {[], 1}),
        catch(lambda: {"a": 1, **None}),
        catch(lambda: {*[[]]}),
    ]


def display_order():
    log = []

    def s(x):
        log.append(x)
        return x

    r = [s(1), *s([2, 3]), s(4)], {s("k"): s("v"), **s({"m": "n"}), s("p"): s("q")}, {s(5), s(6)}
    return r, log


def dict_display_with_mapping():
    log = []

    class M:
        def keys(self):
            log.append("keys")
            return iter(["x", "y"])

        def __getitem__(self, k):
            log.append(k)
            return k + k

    return {"a": 1, **M(), "x": "last"}, log


def big_displays():
    a = [
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
        24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    ]
    source = "[" + ", ".join(f"x + {i}" for i in range(300)) + "]"
    table = "{" + ", ".join(f"{i}: x" for i in range(300)) + "}"
    return a, sum(eval(source, {"x": 1})), len(eval(table, {"x": 1}))


def constant_displays():
    return [1, 2, 3, 4], {1, 2, 3}, {"a": 1, "b": 2, "c": 3}, (1, (2, 3)), frozenset({1, 2})


def slices():
    xs = list(range(10))
    log = []

    class S:
        def __getitem__(self, k):
            log.append(("get", k))

        def __setitem__(self, k, v):
            log.append(("set", k, v))

        def __delitem__(self, k):
            log.append(("del", k))

    s = S()
    s[1:2]
    s[:]
    s[::2, ..., None]
    s[1:2] = 5
    s["a":"b":"c"] = 6
    s[1:2, 3] = 7
    del s[:3]
    del s[1, 2:]
    return xs[2:5], xs[:-3], xs[::3], xs[5:2:-1], xs[-100:3], xs[:], log


def slice_assignment():
    xs = [0, 1, 2, 3, 4]
    xs[1:3] = "abc"
    ys = [0, 1, 2, 3]
    ys[::2] = [8, 9]
    zs = [1, 2, 3]
    zs[1:1] = [5, 5]
    del zs[::2]
    bs = bytearray(b"abcdef")
    bs[1:3] = b"XY!"

    def f():
        ys[::2] = [1]

    def g():
        xs["a":2]

    def h():
        (1, 2)[0:1] = 5

    return xs, ys, zs, bytes(bs), where(f), where(g), where(h)


def slice_index_protocol():
    log = []

    class I:
        def __init__(self, n):
            self.n = n

        def __index__(self):
            log.append(self.n)
            return self.n

    class Bad:
        def __index__(self):
            return "x"

    xs = list(range(8))
    return (
        xs[I(1) : I(5) : I(2)],
        xs[I(3)],
        "abc"[I(-1)],
        catch(lambda: xs[Bad()]),
        catch(lambda: xs[Bad() : 2]),
        catch(lambda: xs[1.5]),
        log,
    )


def subscript_order():
    log = []

    def s(x):
        log.append(x)
        return x

    d = {}
    s(d)[s("k")] = s("v")
    s(d)[s("k")] += s("w")
    log2 = [x if not isinstance(x, dict) else "d" for x in log]
    return d, log2


def comparison_chains():
    log = []

    def s(x):
        log.append(x)
        return x

    r = [
        s(1) < s(2) < s(3),
        s(1) < s(0) < s(3),
        s(1) == s(1) != s(2) in s([2]),
        s(1) < s(5) > s(2) <= s(2),
        s(None) is s(None) is not s(1),
        not s(3) < s(4) < s(2),
    ]
    return r, log


def comparison_chain_results():
    class V:
        def __init__(self, r):
            self.r = r

        def __lt__(self, o):
            return self.r

    class Truth:
        def __bool__(self):
            raise ValueError("asked")

    return V([])< 1 < 2, V("x") < 1 < 2, V(0) < 1 < 2, where(lambda: V(Truth()) < 1 < 2), (
        type(V(Truth()) < 1).__name__
    )


def boolean_operators():
    log = []

    def s(x):
        log.append(x)
        return x

    r = [
        s(0) or s("") or s([]),
        s(1) and s("x") and s(0) and s("no"),
        s(1) or s("no"),
        not s(0),
        (s(0) or s(2)) and (s(3) and s(0) or s(4)),
        s(1) if s(0) else s(2),
        s(0) if s(1) and not s(0) else s(5),
    ]
    return r, log


def truth_protocol():
    log = []

    class B:
        def __init__(self, v):
            self.v = v

        def __bool__(self):
            log.append("bool")
            return self.v

    class L:
        def __len__(self):
            log.append("len")
            return 0

    class NegativeLen:
        def __len__(self):
            return -1

    class WrongBool:
        def __bool__(self):
            return 1

    def truth(x):
        return "yes" if x else "no"

    def loop(x):
        while x:
            return "entered"
        return "skipped"

    out = [truth(B(True)), truth(B(False)), truth(L()), loop(L()), loop(B(True)), not L()]
    out += [truth(v) for v in (0, 1, "", "a", [], [0], {}, None, 0.0, float("nan"), object())]
    return out, where(truth, NegativeLen()), where(truth, WrongBool()), log


def membership():
    class C:
        def __contains__(self, x):
            return x  # truthiness of any object is taken

    class I:
        def __iter__(self):
            return iter([1, 2])

    class G:
        def __getitem__(self, i):
            if i == 3:
                raise IndexError
            return i

    nan = float("nan")
    return [
        "x" in C(),
        0 in C(),
        [] not in C(),
        2 in I(),
        5 not in I(),
        2 in G(),
        7 in G(),
        nan in [nan],
        "b" in "abc",
        catch(lambda: 1 in 5),
        catch(lambda: 1 in "a"),
        catch(lambda: [] in {1}),
    ]


def identity_and_none():
    a, b = [], []
    x = None
    return a is a, a is b, a is not b, x is None, x is not None, True is not False


def ternary_and_nested_lambda():
    f = lambda n: "neg" if n < 0 else "zero" if n == 0 else (lambda: "pos")()
    return [f(n) for n in (-1, 0, 1)]


def for_targets():
    class O:
        pass

    o, d, xs = O(), {}, [0, 0]
    log = []
    for o.attr in range(2):
        log.append(o.attr)
    for d["k"] in "ab":
        log.append(d["k"])
    for xs[0], (xs[1], *rest) in [(1, "ab"), (2, "cde")]:
        log.append((list(xs), rest))
    return log


def chained_assignment_order():
    log = []

    class L(list):
        def __setitem__(self, i, v):
            log.append((i, v))
            super().__setitem__(i, v)

    def value():
        log.append("value")
        return 5

    xs = L([0, 0, 0])
    i = 0
    xs[i] = i = xs[i - 3] = value()
    return xs, i, log


def extended_subscripts():
    class T:
        def __getitem__(self, k):
            return k

        def __class_getitem__(cls, k):
            return ("class", k)

    t = T()
    return t[1, 2], t[()], t[(1,)], t[1:2, ::3], T[int], T[1, 2], t[*[1, 2], 3], t[*()]


def star_in_return_yield_index():
    def r(*a):
        return 0, *a

    def y(*a):
        x = yield *a, 1
        yield x

    d = {(1, 2): "pair"}
    key = [1, 2]
    g = y(5)
    return r(1, 2), next(g), d[(*key,)], d[*key]


def star_for_loop():
    a, b = [1, 2], [3]
    return [x for x in (*a, *b)], [y for y in [*a, *b]]


def uncaught_unpack():
    pairs = [(1, 2), (3, 4, 5)]
    total = 0
    for a, b in pairs:
        total += a * b
    return total
