"""Formatting and text: f-strings, format protocols, conversions, and work on strings, bytes,
lists and dicts as programs do it."""

from probes import catch, text, where


def fstring_basics():
    x, name = 3.14159, "val"
    return (
        f"plain",
        f"{x}",
        f"{x:.2f}",
        f"{name!r:>8}",
        f"{name!s}{name!a}",
        f"{x=}",
        f"{x = :.1f}",
        f"{{literal}} {name}",
        f"{'nested ' + f'{name}'}",
        f"{x:{10}.{2}f}|",
        f"" f"{1}" "two",
    )


def fstring_expressions():
    d = {"k": [1, 2]}
    return (
        f"{d['k'][0]} {d!r}",
        f"{(lambda y: y * 2)(4)}",
        f"{[i for i in range(3)]}",
        f"{1 if d else 2}",
        f"{sum(i for i in range(4)):>5}",
        f"{ {1: 2}[1] }",
        f"{(z := 5)} {z}",
    )


def fstring_order():
    log = []

    class F:
        def __init__(self, n):
            self.n = n

        def __format__(self, spec):
            log.append((self.n, spec))
            return f"<{self.n}:{spec}>"

        def __repr__(self):
            log.append((self.n, "repr"))
            return f"F{self.n}"

    def s(x):
        log.append(("eval", x))
        return F(x)

    return f"{s(1)}{s(2):abc}{s(3)!r:>6}{s(4):{s(5)}}", log


def fstring_errors():
    class Bad:
        def __format__(self, spec):
            return 5

    class BadStr:
        def __str__(self):
            return 5

    class Raises:
        def __repr__(self):
            raise ValueError("in repr")

    return [
        catch(lambda: f"{Bad()}"),
        catch(lambda: f"{BadStr()!s}"),
        catch(lambda: f"{Raises()!r}"),
        catch(lambda: f"{5:zz}"),
        catch(lambda: f"{'x':d}"),
        catch(lambda: f"{[]:>5}"),
        catch(lambda: f"{undefined_name}"),
        where(lambda: f"{1}{2 / 0}{3}")[0],
    ]


def fstring_many_parts():
    a = list(range(40))
    return (
        f"{a[0]}{a[1]}{a[2]}{a[3]}{a[4]}{a[5]}{a[6]}{a[7]}{a[8]}{a[9]}{a[10]}{a[11]}{a[12]}"
        f"{a[13]}{a[14]}{a[15]}{a[16]}-{a[17]}-{a[18]}-{a[19]}-{a[20]}"
    ), f"{''}{''}", f"{'x'}"


def fstring_identity():
    class S(str):
        pass

    s = S("abc")
    r = f"{s}"
    return r, type(r).__name__, f"{s!s}" == s, type(f"{'abc'}").__name__


def fstring_debug_forms():
    value = {"a": 1}
    width = 6
    return f"{value = }", f"{value['a']=:>{width}}", f"{value=!s}", f"{1+1=}"


def format_method():
    class A:
        x = [10, {"k": "deep"}]

    return [
        "{} {}".format(1, 2),
        "{1} {0}".format("a", "b"),
        "{a.x[1][k]}".format(a=A),
        "{:>{w}}".format("r", w=5),
        "{0!r:^7}".format("x"),
        "{:,} {:_} {:e} {:%}".format(1234567, 1234567, 1234.5, 0.25),
        catch(lambda: "{}".format()),
        catch(lambda: "{a}".format(b=1)),
        catch(lambda: "{0} {}".format(1, 2)),
        catch(lambda: "{!z}".format(1)),
        "{:b} {:#x} {:+d} {: d}".format(5, 255, 3, 4),
        format(12.5, "08.2f"),
        format("x", "*^5"),
    ]


def format_map_and_template():
    import string

    class D(dict):
        def __missing__(self, k):
            return f"<{k}>"

    t = string.Template("$a ${b} $$")
    return "{x} {y}".format_map(D(x=1)), t.substitute(a=1, b=2), t.safe_substitute(a=1), catch(
        t.substitute, a=1
    )


def str_methods_work():
    s = "  Hello, World  "
    return [
        s.strip().lower().split(", "), s.find("o"), s.replace("l", "L", 2), "-".join("abc"),
        s.partition(","), "a,b,,c".split(","), "x".center(5, "."), "abc"[::-1], "abc".translate({97: "Z"}),
        "tEst".swapcase(), "a\tb".expandtabs(4), "ß".upper(), "é".encode(), "12".zfill(5), "a b".title(),
        "abc".startswith(("x", "a")), "line1\nline2".splitlines(), "%s" % "x", "abc" < "abd", "a" in "cat",
    ]


def string_building_loop():
    out = ""
    for i in range(50):
        out += str(i)
        if i % 10 == 9:
            out += "\n"
    s = t = "a"
    s += "b"
    return len(out), out[:20], s, t


def string_concat_aliases():
    def f():
        s = "x" * 10
        keep = s
        for _ in range(3):
            s += "y"
        return s, keep

    def g(d):
        d["s"] += "tail"
        return d

    class O:
        s = "class"

    o = O()
    o.s += "+instance"
    return f(), g({"s": "head"}), o.s, O.s


def string_concat_with_cells():
    def f():
        s = "a"

        def g():
            nonlocal s
            s += "b"
            return s

        g()
        s = s + "c"
        return g(), s

    return f()


def bytes_work():
    b = b"abc"
    ba = bytearray(b)
    ba += b"d"
    ba[0] = 65
    return [
        b[0], b[1:], b + b"x", b * 2, b.hex(), bytes.fromhex("ff00"), ba, b == ba, list(b), b"%d-%s" % (5, b"x"),
        catch(lambda: b + "s"), catch(lambda: bytes([256])), memoryview(b)[1], bytes(3), b"b" in b, 98 in b,
    ]


def list_work():
    xs = [5, 3, 1]
    xs.append(4)
    xs.insert(0, 9)
    xs.sort(reverse=True)
    ys = xs[:]
    ys.remove(4)
    ys.reverse()
    zs = sorted(xs, key=lambda v: v % 3)
    return xs, ys, zs, xs.index(3), xs.count(5), xs.pop(), xs.pop(0), catch(lambda: [].pop()), catch(
        lambda: [1].remove(2)
    ), catch(lambda: [1].index(9)), [1, 2] < [1, 3], [[0] * 2] * 2


def list_mutated_while_iterated():
    xs = [1, 2, 3, 4]
    seen = []
    for x in xs:
        seen.append(x)
        if x == 2:
            xs.remove(1)
        if x == 4 and len(xs) < 6:
            xs.append(10)
    return seen, xs


def dict_work():
    d = {"a": 1}
    d["b"] = 2
    d.update(c=3, **{"d": 4})
    d.setdefault("e", []).append(5)
    del d["a"]
    inv = {v: k for k, v in d.items() if not isinstance(v, list)}
    out = []
    for k, v in d.items():
        out.append((k, v))
    return d, inv, out, d.pop("zz", None), list(d), d.popitem(), catch(lambda: d["nope"]), catch(
        lambda: {}.popitem()
    ), dict.fromkeys("ab", 0), list(reversed(d))


def dict_mutated_while_iterated():
    d = {1: 1, 2: 2}

    def grow():
        for k in d:
            d[k + 10] = k

    def shrink():
        for k in d:
            del d[k]

    return catch(grow), catch(shrink), len(d)


def dict_with_user_keys():
    log = []

    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            log.append(("hash", self.n))
            return self.n % 2

        def __eq__(self, o):
            log.append(("eq", self.n, o.n))
            return self.n == o.n

    d = {K(1): "a", K(2): "b", K(3): "c"}
    return d[K(3)], K(1) in d, d.get(K(9)), [k.n for k in d], log


def dict_key_raises():
    class K:
        def __hash__(self):
            raise ValueError("no hash")

    class E:
        def __hash__(self):
            return 1

        def __eq__(self, o):
            raise ValueError("no eq")

    d = {E(): 1}
    return where(lambda: {}[K()]), where(lambda: {K(): 1}), where(lambda: d[E()]), catch(
        lambda: E() in d
    )


def set_work():
    s = {3, 1}
    s.add(2)
    s.discard(9)
    s.update([5], (6,))
    return sorted(s), s & {1, 2}, sorted(s - {1}), s.isdisjoint({99}), catch(lambda: s.remove(77)), catch(
        lambda: s.add([])
    ), len(s), sorted(s ^ {1, 100}), catch(lambda: set().pop())


def sort_stability_and_errors():
    data = [("b", 2), ("a", 1), ("b", 1), ("a", 2)]

    class Odd:
        def __lt__(self, o):
            raise ZeroDivisionError("lt")

    xs = [3, 1, 2]

    def clear(v):
        xs.clear()
        return v

    return sorted(data, key=lambda t: t[0]), where(sorted, [Odd(), Odd()]), catch(
        xs.sort, key=clear
    ), xs


def zip_enumerate_map():
    a, b = [1, 2, 3], "xy"
    return (
        list(zip(a, b)),
        list(enumerate(b, 5)),
        dict(zip(b, a)),
        list(map(str, a)),
        list(map(lambda *t: t, a, b)),
        catch(lambda: list(zip(a, b, strict=True))),
        [x + y for x, y in zip(a, reversed(a))],
        any(x > 2 for x in a),
        all(x > 0 for x in a),
        list(filter(None, [0, 1, "", "a"])),
        max(a, key=lambda v: -v),
        sum([[1], [2]], []),
    )


def itertools_and_collections():
    import collections
    import itertools

    c = collections.Counter("abracadabra")
    dd = collections.defaultdict(list)
    for i, ch in enumerate("abab"):
        dd[ch].append(i)
    dq = collections.deque([1, 2, 3], maxlen=3)
    dq.append(4)
    groups = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 3, 3], key=lambda v: v % 2)]
    return (
        c.most_common(2),
        dict(dd),
        list(dq),
        groups,
        list(itertools.accumulate([1, 2, 3], lambda a, b: a * b)),
        list(itertools.chain.from_iterable([[1], [2, 3]])),
        list(itertools.product("ab", repeat=2))[:3],
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
    )


def regular_expressions():
    import re

    def up(m):
        return m.group(0).upper()

    return (
        re.sub(r"\b\w", up, "some words here"),
        re.findall(r"(\w)(\d)", "a1 b2"),
        [m.span() for m in re.finditer("o", "foo boo")],
        re.split(r"[,;]", "a,b;c"),
        where(re.sub, "x", lambda m: 1 / 0, "x")[0],
        re.match(r"(?P<n>\d+)", "42x").groupdict(),
    )


def json_roundtrip():
    import json

    class E(json.JSONEncoder):
        def default(self, o):
            if isinstance(o, set):
                return sorted(o)
            return super().default(o)

    d = {"a": [1, 2.5, None, True], "b": {"c": "é"}}
    return (
        json.loads(json.dumps(d)) == d,
        json.dumps({"s": {2, 1}}, cls=E),
        catch(json.dumps, object),
        json.loads("[1, 2]", parse_int=lambda s: s + "!"),
        json.loads('{"a": 1}', object_hook=lambda o: list(o.items())),
        catch(json.loads, "{bad}"),
        json.dumps({"b": 1, "a": [1]}, indent=1, sort_keys=True),
    )


def copy_and_pickle():
    import copy
    import pickle

    class C:
        def __init__(self, v):
            self.v = v

        def __reduce__(self):
            return list, ([self.v],)

        def __deepcopy__(self, memo):
            return C(copy.deepcopy(self.v, memo))

    a = [1, [2]]
    b = copy.deepcopy(a)
    b[1].append(3)
    c = copy.deepcopy(C([1]))
    return a, b, pickle.loads(pickle.dumps(C(5))), c.v, copy.copy({"a": a})["a"] is a


def textwrap_and_string_io():
    import io
    import textwrap

    out = io.StringIO()
    print("a", "b", sep="-", end="!\n", file=out)
    print(*range(3), file=out)
    return out.getvalue(), textwrap.fill("some words to wrap around", 10), textwrap.dedent("  a\n  b")


def printing():
    print("to stdout", 1, [2])
    print("no newline", end="")
    print()
    print("é", "\u2603", sep="|")
    return None


def print_hooks():
    class W:
        def __init__(self):
            self.parts = []

        def write(self, s):
            self.parts.append(s)

        def flush(self):
            self.parts.append("flush")

    class S:
        def __str__(self):
            raise LookupError("in str")

    w = W()
    print("x", 1, file=w, flush=True)
    try:
        print("a", S(), "b", file=w)
    except LookupError as e:
        w.parts.append(text(e))
    return w.parts


def word_count_program():
    data = "the cat and the dog and the bird"
    counts = {}
    for word in data.split():
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))
    for word, n in ranked[:2]:
        print(f"{word:<5}|{n:>3}")
    return ranked


def tokenizer_program():
    def tokens(src):
        i = 0
        while i < len(src):
            c = src[i]
            if c.isspace():
                i += 1
            elif c.isdigit():
                j = i
                while j < len(src) and src[j].isdigit():
                    j += 1
                yield "num", int(src[i:j])
                i = j
            elif c in "+-*/()":
                yield "op", c
                i += 1
            else:
                raise SyntaxError(f"bad character {c!r} at {i}")

    def parse(src):
        ts = [*tokens(src), ("end", None)]
        pos = 0

        def take(*ops):
            nonlocal pos
            if ts[pos][1] in ops and ts[pos][0] == "op":
                pos += 1
                return ts[pos - 1][1]

        def factor():
            nonlocal pos
            kind, v = ts[pos]
            if kind == "num":
                pos += 1
                return v
            if take("-"):
                return -factor()
            if take("("):
                r = expr()
                if not take(")"):
                    raise SyntaxError("expected )")
                return r
            raise SyntaxError(f"unexpected {kind}")

        def term():
            v = factor()
            while op := take("*", "/"):
                v = v * factor() if op == "*" else v / factor()
            return v

        def expr():
            v = term()
            while op := take("+", "-"):
                v = v + term() if op == "+" else v - term()
            return v

        return expr()

    return parse("1 + 2 * (3 - -4) / 7"), catch(parse, "1 + $"), catch(parse, "(1"), catch(
        parse, "1 / (2 - 2)"
    )
