"""What test_iterables.py runs: one or more programs for every rule with an iterable among its
arguments, and for the instructions that iterate.

A program is (container, elements, statements). `c` is the container, `src` the iterable that gives
the elements, and the statements leave what they get in `r`. Iterables that the statements make
themselves are left in `r`, too: the test takes the rest of them."""

from __future__ import annotations

from dataclasses import dataclass

INTS = "[1, 2, 4, 3, 5]"
PAIRS = "[(1, 'a'), (2, 'b'), (4, 'c'), (1, 'd')]"
BAD_PAIRS = "[(1, 'a'), (2, 'b'), (3,), (4, 'd')]"
TEXTS = "['a', 'b', 'c', 'd']"
BYTES = "[b'a', b'b', b'c', b'd']"
LISTS = "[[1, 2], [2, 4], [3], [5]]"


@dataclass(frozen=True)
class Program:
    container: str
    elements: str
    body: str
    whole: bool = False  # a generator of the trace's own as `src` must not break it
    fragile: bool = False  # CPython itself crashes if the container changes meanwhile


def ints(container: str, body: str, whole: bool = False) -> Program:
    return Program(container, INTS, body, whole)


def pairs(container: str, body: str, whole: bool = False) -> Program:
    return Program(container, PAIRS, body, whole)


ROWS: dict[str, list[Program]] = {}


def row(paths: str, *programs: Program) -> None:
    for path in paths.split():
        ROWS.setdefault(path, []).extend(programs)


# --- builtin functions ---
row(
    "any",
    ints("[]", "r = any(src)", True),
    ints("[]", "r = any(x > 2 for x in src)", True),
    ints("[]", "r = any(map(lambda x: x == 4, src))", True),
)
row(
    "all",
    ints("[]", "r = all(src)", True),
    ints("[]", "r = all(x < 4 for x in src)", True),
    Program("[]", "[1, 2, 0, 3]", "r = all(src)", True),
)
row(
    "sum",
    ints("[]", "r = sum(src)", True),
    ints("[]", "r = sum(src, 10)", True),
    ints("[]", "r = sum(src, start=1.5)", True),
    Program("[]", "[1, 2, 'x', 4]", "r = sum(src)"),
    Program("[]", "[[1], [2], [3]]", "r = sum(src, c)", True),
    Program("[]", TEXTS, "r = sum(src, '')"),
)
for name in ("min", "max"):
    row(
        name,
        ints("[]", f"r = {name}(src)", True),
        ints("[]", f"r = {name}(src, key=lambda x: c.append(x) or -x)", True),
        ints("[]", f"r = {name}(src, default=7)", True),
        Program("[]", "[]", f"r = {name}(src, default=7)", True),
        Program("[]", "[]", f"r = {name}(src)"),
        Program("[]", "[1, 2, 'x', 4]", f"r = {name}(src)"),
        ints("[]", f"r = {name}(src, key=lambda x: 1 // (x - 4))"),
    )
row(
    "sorted",
    ints("[]", "r = sorted(src)", True),
    ints("[]", "r = sorted(src, reverse=True)", True),
    ints("[]", "r = sorted(src, key=lambda x: c.append(x) or -x)", True),
    ints("[]", "r = sorted(src, key=lambda x: 1 // (x - 4))"),
    Program("[]", "[1, 2, 'x', 4]", "r = sorted(src)"),
)
row("iter", ints("[]", "r = iter(src); c.append(next(r, '-'))"), ints("[]", "r = iter(src)"))
row("next", ints("[]", "r = (next(iter(src), '-'))"))
row("reversed", ints("[]", "r = reversed(src)"), ints("[]", "r = list(reversed(list(src)))"))
row("_operator.contains", ints("[]", "r = operator.contains(src, 4)"))
row("_operator.contains", ints("[]", "r = operator.contains(src, 9)"))
row("_functools.reduce", ints("[]", "r = functools.reduce(lambda a, b: a + b, src)", True))
row("_functools.reduce", ints("[]", "r = functools.reduce(lambda a, b: 1 // (b - 4), src, c)"))
row("_functools.reduce", Program("[]", "[]", "r = functools.reduce(lambda a, b: a + b, src)"))
row("isinstance", Program("[]", "[int, str]", "r = isinstance(1, src)"))
row("issubclass", Program("[]", "[int, str]", "r = issubclass(int, src)"))
row("type", ints("[]", "r = type('N', src, {})"))

# --- text ---
row("str.join", Program("[]", TEXTS, "r = ','.join(src)", True))
row("str.join", Program("[]", "['a', 'b', 3, 'd']", "r = ','.join(src)"))
row("str.join", ints("[]", "r = ','.join(map(str, src))", True))
row("bytes.join", Program("[]", BYTES, "r = b','.join(src)", True))
row("bytes.join", Program("[]", "[b'a', 'b', b'c']", "r = b','.join(src)"))
row("bytearray.join", Program("bytearray(b',')", BYTES, "r = c.join(src)"))
row("bytearray.join", Program("bytearray(b',')", "[b'a', 1, b'c']", "r = c.join(src)"))
for name in ("bytes", "bytearray"):
    row(
        name,
        ints("[]", f"r = {name}(src)", True),
        Program("[]", "[1, 2, 300, 4]", f"r = {name}(src)"),
        Program("[]", "[1, 'x', 2, 4]", f"r = {name}(src)"),
    )
row("bytes.__new__", ints("[]", "r = bytes.__new__(bytes, src)"))
row("bytearray.__init__", ints("bytearray(b'xy')", "r = c.__init__(src)"))
row("bytearray.extend", ints("bytearray(b'xy')", "r = c.extend(src)", True))
row("bytearray.extend", Program("bytearray(b'x')", "[1, 300, 2]", "r = c.extend(src)"))
row("bytearray.__iadd__", ints("bytearray(b'xy')", "c += src; r = 0"))
row("bytearray.__setitem__", ints("bytearray(b'xyz')", "c[1:2] = src; r = 0"))
row("bytearray.__setitem__", ints("bytearray(b'xyz')", "c[::2] = src; r = 0"))
row("str.maketrans", ints("[]", "r = str.maketrans(src)"))
row("str.translate", ints("[]", "r = 'abc'.translate(src)"))
row("str.__mod__ str.__rmod__", ints("[]", "r = '%s %d %s %x %r' % tuple(src)"))
row("str.startswith str.endswith", Program("[]", TEXTS, "r = 'abc'.startswith(src)"))

# --- list, tuple, deque ---
row("list", ints("[]", "r = list(src)", True))
row("list", ints("[]", "class L(list): pass\n    r = L(src)"))
row("list.__init__", ints("[7, 8]", "r = c.__init__(src)", True))
row("list.extend", ints("[7, 8]", "r = c.extend(src)", True))
row("list.extend", ints("[7, 8]", "r = c.extend(x * 2 for x in src)", True))
row("list.extend", ints("[7, 2, 1, 4]", "r = c.extend(map(c.index, src))"))
row("list.__iadd__", ints("[7, 8]", "c += src; r = 0", True))
row("list.__iadd__", ints("[7, 8]", "r = c.__iadd__(src)", True))
row("list.__iadd__ _operator.iadd", ints("[7, 8]", "r = operator.iadd(c, src)", True))
row("list.__setitem__", ints("[7, 8, 9]", "c[1:2] = src; r = 0", True))
row("list.__setitem__", Program("[7, 8, 9, 10]", INTS, "c[::2] = src; r = 0", fragile=True))
row("list.__setitem__", Program("[7, 8, 9]", "[1, 2]", "c[::2] = src; r = 0", True, True))
row("list.__setitem__", ints("[7, 8, 9]", "r = c.__setitem__(slice(0, 1), src)"))
row("_operator.setitem", ints("[7, 8, 9]", "r = operator.setitem(c, slice(0, 1), src)"))
row("list.sort", ints("[]", "r = list(src); r.sort(key=lambda x: len(r) - x)"))
row("list.sort", ints("[]", "r = list(src); r.sort(key=lambda x: 1 // (x - 4))"))
row("tuple", ints("[]", "r = tuple(src)", True))
row("tuple.__new__", ints("[]", "r = tuple.__new__(tuple, src)", True))
row("tuple.__new__", ints("[]", "P = collections.namedtuple('P', 'a b c d e'); r = P._make(src)"))
row("collections.deque", ints("[]", "r = deque(src)", True))
row("collections.deque", ints("[]", "r = deque(src, 2)", True))
row("collections.deque", ints("[]", "r = deque(src, maxlen=0)", True))
row("collections.deque.__init__", ints("deque([7, 8])", "r = c.__init__(src)", True))
row("collections.deque.extend", ints("deque([7, 8])", "r = c.extend(src)", True))
row("collections.deque.extend", ints("deque([7, 8], 3)", "r = c.extend(src)", True))
row("collections.deque.extend", ints("deque([], 0)", "r = c.extend(src)", True))
row("collections.deque.extendleft", ints("deque([7, 8], 3)", "r = c.extendleft(src)", True))
row("collections.deque.__iadd__", ints("deque([7, 8], 3)", "c += src; r = 0", True))
row("collections.deque.__add__", ints("deque([7, 8], 3)", "r = c + src"))

# --- dict and its kin ---
DICTS = {
    "dict": "{1: 'x', 9: 'y'}",
    "collections.OrderedDict": "OrderedDict({1: 'x', 9: 'y'})",
}
for name, made in DICTS.items():
    short = name.rpartition(".")[2]
    row(
        name,
        pairs("{}", f"r = {short}(src)", True),
        pairs("{}", f"r = {short}(src, k=1)", True),
        Program("{}", BAD_PAIRS, f"r = {short}(src)"),
        Program("{}", "['ab', 'cd', 'e', 'fg']", f"r = {short}(src)"),
        Program("{}", "[(1, 2), ([], 3), (4, 5)]", f"r = {short}(src)"),
        Program("{}", "[(1, 2), 3, (4, 5)]", f"r = {short}(src)"),
        pairs("{}", f"r = {short}((k, v) for k, v in src)", True),
    )
    row(
        f"{name}.__init__ {name}.update",
        pairs(made, "r = c.update(src)", True),
        pairs(made, "r = c.update(src, k=1)", True),
        Program(made, BAD_PAIRS, "r = c.update(src)"),
        Program(made, "[(1, 2), ([], 3), (4, 5)]", "r = c.update(src)"),
        pairs(made, "r = c.__init__(src)"),
        pairs(made, "r = c.update(zip([1, 2, 3, 4], src))", True),
    )
    row(f"{name}.__ior__", pairs(made, "c |= src; r = 0", name == "dict"))
    row(f"{name}.__ior__", Program(made, BAD_PAIRS, "c |= src; r = 0"))
    row(f"{name}.__or__ {name}.__ror__", pairs(made, "r = c | src"))
    row(
        f"{name}.fromkeys",
        ints("{}", f"r = {short}.fromkeys(src)", True),
        ints("{}", f"r = {short}.fromkeys(src, 3)", True),
        Program("{}", "[1, 2, [], 3]", f"r = {short}.fromkeys(src)"),
        ints("{}", f"class D({short}): pass\n    r = D.fromkeys(src)"),
    )
row("dict.fromkeys", ints("{}", "r = Sub.fromkeys(src)"))
row("collections.defaultdict", pairs("{}", "r = defaultdict(list, src)", True))
row("collections.defaultdict", Program("{}", BAD_PAIRS, "r = defaultdict(list, src)"))
row("collections.defaultdict.__init__", pairs("defaultdict(int)", "r = c.__init__(int, src)"))
row("_operator.ior", pairs("{1: 'x'}", "r = operator.ior(c, src)"))
row("_operator.or_", ints("{1}", "r = operator.or_(c, src)"))
row(
    "_collections._count_elements",
    ints("collections.Counter()", "r = c.update(src)", True),
    ints("collections.Counter([1, 1])", "r = c.update(src)", True),
    ints("[]", "r = collections.Counter(src)", True),
    Program("collections.Counter()", "[1, 2, [], 3]", "r = c.update(src)"),
    Program("collections.Counter({2: 'x'})", "[1, 2, 3]", "r = c.update(src)"),
    ints("{}", "r = collections._count_elements(c, src)"),
    ints("collections.Counter([1, 2, 7])", "r = c.subtract(src)", True),
)
for kind, elements in (("keys", INTS), ("items", PAIRS)):
    owner = f"dict_{kind}"
    made = "{1: 'a', 2: 'x', 9: 'y'}"
    methods = {"sub": "-", "and": "&", "xor": "^", "or": "|"}
    for name, sign in methods.items():
        row(f"{owner}.__{name}__", Program(made, elements, f"r = c.{kind}() {sign} src"))
        row(f"{owner}.__r{name}__", Program(made, elements, f"r = src {sign} c.{kind}()"))
        row(f"{owner}.__r{name}__", Program(made, elements, f"r = c.{kind}().__r{name}__(src)"))
    for name in ("lt", "le", "eq", "ne", "gt", "ge"):
        row(f"{owner}.__{name}__", Program(made, elements, f"r = c.{kind}().__{name}__(src)"))
        row(
            f"{owner}.__{name}__",
            Program(made, elements, f"r = c.{kind}().__{name}__(dict.fromkeys(src).keys())"),
        )
    row(f"{owner}.isdisjoint", Program(made, elements, f"r = c.{kind}().isdisjoint(src)", True))
    row(
        f"{owner}.isdisjoint",
        Program("{4: 0, (4, 'c'): 0}", elements, f"r = c.{kind}().isdisjoint(src)", True),
    )

row(
    "types.SimpleNamespace types.SimpleNamespace.__init__",
    Program("[]", "[('a', 1), ('b', 2)]", "r = vars(types.SimpleNamespace(src))"),
    Program("[]", "[('a', 1), ('b', 2)]", "r = vars(types.SimpleNamespace(list(src)))"),
    Program("[]", "[('a', 1), ('b', 2)]", "r = vars(types.SimpleNamespace(dict(src), k=3))"),
)

# --- sets ---
for name in ("set", "frozenset"):
    made = "{2, 4, 5}" if name == "set" else "frozenset((2, 4, 5))"
    row(
        name,
        ints("[]", f"r = {name}(src)", True),
        Program("[]", "[1, 2, [], 3]", f"r = {name}(src)"),
        ints("[]", f"class S({name}): pass\n    r = S(src)"),
        ints("[]", f"r = {name}(x % 3 for x in src)", True),
    )
    row(
        f"{name}.isdisjoint",
        ints(made, "r = c.isdisjoint(src)", True),
        Program(made, "[1, 7, 8]", "r = c.isdisjoint(src)", True),
        Program(made, "[1, [], 4]", "r = c.isdisjoint(src)"),
    )
    row(
        f"{name}.issubset",
        ints(made, "r = c.issubset(src)", True),
        Program(made, "[1, [], 4]", "r = c.issubset(src)"),
    )
    row(
        f"{name}.issuperset",
        ints(made, "r = c.issuperset(src)", True),
        Program(made, "[2, 4]", "r = c.issuperset(src)", True),
        Program(made, "[2, [], 4]", "r = c.issuperset(src)"),
    )
    for method in ("difference", "intersection", "symmetric_difference", "union"):
        row(
            f"{name}.{method}",
            ints(made, f"r = c.{method}(src)", True),
            Program(made, "[2, [], 4]", f"r = c.{method}(src)"),
        )
    for method in ("difference", "intersection", "union"):
        row(f"{name}.{method}", ints(made, f"r = c.{method}([2], src, (1,))", True))
        row(f"{name}.{method}", ints(made, f"r = c.{method}(src, [], src)"))
    signs = {"sub": "-", "and": "&", "xor": "^", "or": "|"}
    for method, sign in signs.items():
        row(f"{name}.__{method}__ {name}.__r{method}__", ints(made, f"r = c {sign} src"))
        row(f"{name}.__{method}__", ints(made, f"r = c {sign} set(src)"))
        row(f"{name}.__r{method}__", ints(made, f"r = c.__r{method}__(set(src))"))
        if name == "set":
            row(f"set.__i{method}__", ints(made, f"c {sign}= set(src); r = 0"))
            row(f"set.__i{method}__", ints(made, f"r = c.__i{method}__(src)"))
    for method in ("lt", "le", "eq", "ne", "gt", "ge"):
        row(f"{name}.__{method}__", ints(made, f"r = c.__{method}__(src)"))
        row(f"{name}.__{method}__", ints(made, f"r = c.__{method}__(frozenset(src))"))
row("frozenset.__new__", ints("[]", "r = frozenset.__new__(frozenset, src)"))
row("set.__init__", ints("{7}", "r = c.__init__(src)", True))
row("set.update", ints("{7}", "r = c.update(src)", True))
row("set.update", ints("{7}", "r = c.update([1], src, (8,))", True))
row("set.update", Program("{7}", "[1, [], 4]", "r = c.update(src)"))
for method in ("difference_update", "intersection_update", "symmetric_difference_update"):
    row(
        f"set.{method}",
        ints("{2, 4, 7}", f"r = c.{method}(src)", True),
        Program("{2, 4, 7}", "[2, [], 4]", f"r = c.{method}(src)"),
    )
row("set.difference_update", ints("{2, 4, 7}", "r = c.difference_update([2], src, [7])", True))
row("set.intersection_update", ints("{2, 4, 7}", "r = c.intersection_update([2], src, [7])"))

# --- iterators ---
row("map map.__new__", ints("[]", "r = map(lambda x: c.append(x) or x + 1, src)", True))
row("map", ints("[]", "r = map(lambda x, y: 1 // (x - 4), src, [1, 2, 3])"))
row("map", ints("[]", "r = map(lambda x, y: (x, y), [1, 2], src)", True))
row("filter filter.__new__", ints("[]", "r = filter(lambda x: c.append(x) or x > 1, src)", True))
row("filter", ints("[]", "r = filter(lambda x: 1 // (x - 4), src)"))
row("filter", ints("[]", "r = filter(None, src)"))
row("zip zip.__new__", ints("[]", "r = zip(src, [1, 2])", True), ints("[]", "r = zip([1, 2], src)"))
row("zip", ints("[]", "r = zip(src, [1, 2], strict=True)"))
row("zip", ints("[]", "r = zip([1, 2], src, strict=True)"))
row("zip", ints("iter([1, 2])", "r = zip(c, src); r = list(r), list(c)"))
row("zip", ints("iter([1, 2])", "r = zip(src, c); r = list(r), list(c)"))
row("zip", ints("[]", "r = zip(src, src)"))
row("enumerate enumerate.__new__", ints("[]", "r = enumerate(src)", True))
row("enumerate", ints("[]", "r = enumerate(src, 5)", True))
TOOLS = {
    "zip_longest": ["src, [1, 2]", "[1, 2], src, fillvalue=0", "src, src"],
    "chain": ["src, [1, 2]", "[7], src, [8]", "src, src"],
    "product": ["src, [1, 2]", "[1, 2], src", "src, repeat=2"],
    "combinations": ["src, 2"],
    "combinations_with_replacement": ["src, 2"],
    "permutations": ["src, 2"],
    "islice": ["src, 2", "src, 1, 4, 2", "src, 0", "src, 1, None"],
    "pairwise": ["src"],
    "dropwhile": ["lambda x: c.append(x) or x < 2, src", "lambda x: 1 // (x - 4), src"],
    "takewhile": ["lambda x: c.append(x) or x < 3, src", "lambda x: 1 // (x - 4), src"],
    "filterfalse": ["lambda x: c.append(x) or x < 3, src", "None, src"],
    "compress": ["src, [1, 0, 1]", "[1, 2, 3], src"],
    "accumulate": ["src", "src, lambda a, b: c.append(b) or a * b", "src, initial=3"],
    "groupby": ["src, lambda x: c.append(x) or x % 2", "src"],
    "batched": ["src, 2"],
}
for name, calls in TOOLS.items():
    for call in calls:
        paths = f"itertools.{name} itertools.{name}.__new__"
        row(paths, ints("[]", f"r = itertools.{name}({call})"))
for paths, call in (
    ("itertools.cycle itertools.cycle.__new__", "itertools.islice(itertools.cycle(src), 7)"),
    ("itertools.tee", "[list(itertools.islice(t, 2)) for t in itertools.tee(src)]"),
    ("itertools.tee", "list(zip(*itertools.tee(src, 2)))"),
):
    row(paths, ints("[]", f"r = {call}"))
row("itertools.chain.from_iterable", Program("[]", LISTS, "r = itertools.chain.from_iterable(src)"))
row(
    "itertools.chain.from_iterable",
    Program("[]", "[[1], 2, [3]]", "r = itertools.chain.from_iterable(src)"),
)
row(
    "itertools.starmap itertools.starmap.__new__",
    Program("[]", PAIRS, "r = itertools.starmap(lambda a, b: c.append(a) or b, src)"),
)
row("itertools.starmap", Program("[]", "[(1, 2), 3, (4, 5)]", "r = itertools.starmap(max, src)"))
row("itertools.repeat", ints("[]", "r = itertools.repeat(src, 2); r = [x is src for x in r]"))

# --- operator, math, heapq, bisect ---
row("_operator.concat", ints("[7]", "r = operator.concat(c, src)"))
row("_operator.iconcat", ints("[7]", "r = operator.iconcat(c, src)"))
row("_operator.add", ints("[7]", "r = operator.add(c, src)"))
row("_operator.indexOf", ints("[]", "r = operator.indexOf(src, 4)"))
row("_operator.indexOf", ints("[]", "r = operator.indexOf(src, 9)"))
row("_operator.countOf", ints("[]", "r = operator.countOf(src, 4)"))
row("_operator.length_hint", ints("[]", "r = operator.length_hint(src, 3)"))
row("_operator.call", ints("[]", "r = getattr(operator, 'call', lambda f, x: f(x))(set, src)"))
row("len", ints("[]", "r = len(src)"))
row("math.fsum", ints("[]", "r = math.fsum(src)", True))
row("math.fsum", Program("[]", "[1.5, 2, 'x', 4]", "r = math.fsum(src)"))
row("math.fsum", Program("[]", "[1e308, 1e308, 1.0]", "r = math.fsum(src)"))
row("math.prod", ints("[]", "r = math.prod(src)", True))
row("math.prod", ints("[]", "r = math.prod(src, start=2.0)", True))
row("math.prod", Program("[]", "[1.5, 2, {}, 4]", "r = math.prod(src)"))
row("math.prod", Program("[]", "[1, 2, 'x', 4]", "r = math.prod(src)"))
row("math.dist", ints("[]", "r = math.dist(src, [1, 2, 3, 4, 5])"))
row("math.dist", ints("[]", "r = math.dist((1, 2), src)"))
row("math.sumprod", ints("[]", "r = math.sumprod(src, [1, 2, 3, 4, 5])"))
row("math.sumprod", ints("[]", "r = math.sumprod([1, 2], src)"))
row("math.hypot math.gcd math.lcm", ints("[]", "r = math.gcd(*src)"))
for name in ("heapify", "_heapify_max", "heappop", "_heappop_max", "heapify_max", "heappop_max"):
    row(f"_heapq.{name}", ints("[]", f"c = list(src); r = _heapq.{name}(c)"))
    row(f"_heapq.{name}", ints("[]", f"r = _heapq.{name}(src)"))
for name in (
    "heappush heappushpop heapreplace _heapreplace_max heappush_max heappushpop_max heapreplace_max"
).split():
    row(f"_heapq.{name}", ints("[]", f"c = list(src); r = _heapq.{name}(c, c[-1])"))
    row(f"_heapq.{name}", ints("[]", f"r = _heapq.{name}(src, 3)"))
row("_heapq.heappush", ints("[]", "import heapq; r = heapq.nsmallest(2, src)"))
row("_heapq.heappush", ints("[]", "import heapq; r = list(heapq.merge(src, [2, 3]))"))
for name in ("bisect_left", "bisect_right", "insort_left", "insort_right"):
    row(f"_bisect.{name}", ints("[]", f"c = list(src); r = _bisect.{name}(c, c[1])"))

# --- instructions ---
INSTRUCTIONS = [
    ints("[]", "r = [*src]", True),
    ints("[]", "r = [7, *src, *src]", True),
    ints("[]", "r = (*src, 1)", True),
    ints("[]", "r = {*src}", True),
    ints("[]", "r = {7, *src}", True),
    Program("[]", "[1, 2, [], 3]", "r = {*src}"),
    ints("[]", "a, b = src; r = a, b"),
    ints("[]", "a, b, d, e, g = src; r = a, b", True),
    ints("[]", "a, b, d, e, g, h = src; r = a, b"),
    ints("[]", "a, *b = src; r = a, b", True),
    ints("[]", "*b, a = src; r = a, b", True),
    ints("[]", "a, *b, d, e, g, h, i = src; r = a, b"),
    ints("[]", "r = spread(*src)", True),
    ints("[]", "r = spread(*src, *src)", True),
    Program("[]", PAIRS, "r = spread(**dict(src))"),
    ints("[]", "r = 4 in src", True),
    ints("[]", "r = 9 not in src", True),
    ints("[]", "r = [x for x in src]", True),
    ints("[]", "r = {x: c.append(x) for x in src}", True),
    ints("[]", "r = {x for x in src}", True),
    ints("[]", "r = []\n    for x in src:\n        r.append(x)\n        if x == 4: break", True),
    ints("[]", "r = list(through(src))", True),
    ints("[]", "r = []\n    for x in c:\n        r.append(x)\n    c[:] = src", True),
    ints("[7, 8, 9]", "r = c\n    del c[:]\n    c[0:0] = src", True),
    ints("[]", "match list(src):\n        case [a, *b]: r = a, b\n        case _: r = 0", True),
]
