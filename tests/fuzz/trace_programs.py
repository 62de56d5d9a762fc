"""Random programs for the tracer, as source, from a stream of choices: a world of objects, a function
over them, and changes to the world between its calls.

The language is typed by kinds, so that most programs run through. A template's <kind> is replaced by
an expression of that kind; a row of a table is (weight, template), the plainest first.
"""

import re

import trace_classes
from choices import Seeded

KINDS = ["num", "text", "nums", "table", "bag", "obj", "objs", "fn", "rows", "pair", "queue"]
ROOTS = {
    "num": ["a", "b"],
    "text": ["s"],
    "nums": ["xs", "ys"],
    "table": ["d", "e"],
    "bag": ["g"],
    "obj": ["o", "p"],
    "objs": ["os"],
    "fn": ["fn"],
    "rows": ["r"],
    "pair": ["w", "z"],
    "queue": ["q"],
    "tensor": ["t", "u"],
}
CALLS = 6
DEPTH = 3

# Names that every program has. `G` and `REG` are globals of its own.
PRELUDE = """
import collections, functools, itertools, operator

G = 3
REG = []
TABLE = {"k": 1}

class Thing:
    shared = 7
    seen = []

    def __init__(self, n=0, l=None):
        self.n = n
        self.l = [] if l is None else l
        self.d = {}
        self.o = None

    def m(self, x):
        return self.n + x

    def grow(self, x):
        self.l.append(x)
        return self

    @property
    def p(self):
        return len(self.l) + self.n % 7

    @classmethod
    def make(cls, n):
        return cls(n)

class Sub(Thing):
    shared = 8

    def m(self, x):
        return super().m(x) * 2

    def __eq__(self, other):
        return isinstance(other, Thing) and self.n == other.n

    __hash__ = None

    def __bool__(self):
        return self.n % 2 == 0

class Slim:
    __slots__ = ("n", "l", "d", "o", "extra", "t")
    shared = 9

    def __init__(self, n=0, l=None):
        self.n, self.l, self.d, self.o = n, l or [], {}, None

    m = Thing.m
    grow = Thing.grow
    p = Thing.p

    @classmethod
    def make(cls, n):
        return cls(n)

    def __len__(self):
        return len(self.l)

class Odd(dict):
    shared = 10

    def __init__(self, n=0, l=None):
        self.n, self.l, self.d, self.o = n, l or [], self, None

    m = Thing.m
    grow = Thing.grow
    p = Thing.p

    @classmethod
    def make(cls, n):
        return cls(n)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name, -1)

class Hooked(Thing):
    shared = 11

    def __setattr__(self, name, value):
        count = self.__dict__.get("writes", 0)
        super().__setattr__("writes", count + 1)
        object.__setattr__(self, name, value)

    @property
    def half(self):
        return self.n // 2

    @half.setter
    def half(self, value):
        self.n = value * 2

    def __len__(self):
        return len(self.l) + 1

    def __iter__(self):
        yield from self.l[:3]

class Guarded:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append(-1)
        return len(self.log)

    def __exit__(self, *exc):
        self.log.append(-2)
        return exc[0] is KeyError

def adder(k, seen=None):
    count = 0

    def add(x, scale=1):
        nonlocal count
        count += 1
        if seen is not None:
            seen.append(x)
        return x * scale + k + count % 3

    return add

def pure(x):
    return x % 50 + 1

def tame(x):
    if type(x) is float:
        return x if -1e6 < x < 1e6 else 1.5
    return x if -10**6 < x < 10**6 else x % 1000

def pick(xs, i):
    return xs[int(i) % len(xs)] if xs else 0

def drain(q):
    while len(q) > 4:
        q.pop()

def firsts(xs, n=3):
    for i, x in enumerate(xs):
        if i == n:
            return
        yield x
"""

EXPRESSIONS = {
    "num": [
        (12, "<:num>"), (6, "<literal>"), (3, "len(<nums>)"), (3, "pick(<nums>, <literal>)"),
        (4, "<obj>.n"), (2, "<obj>.p"), (2, "<obj>.m(<num>)"), (1, "<obj>.shared"),
        (3, "<table>.get(<key>, <num>)"), (2, "(<table>[<key>] if <key> in <table> else <num>)"),
        (1, "sum(<nums>)"), (1, "max(<nums>, default=<num>)"), (4, "tame(<num> + <num>)"),
        (2, "tame(<num> * <num>)"), (2, "tame(<num> - <num>)"), (1, "(<num> // (<num> or 1))"),
        (1, "(<num> % (<num> or 3))"), (2, "<fn>(<num>)"), (1, "<fn>(<num>, scale=2)"),
        (1, "int(<bool>)"), (2, "(<num> if <bool> else <num>)"), (1, "len(<bag>)"),
        (1, "functools.reduce(operator.add, <nums>, <num>)"), (1, "len(<text>)"), (2, "G"),
        (1, "TABLE['k']"), (1, "next(iter(<nums>), <num>)"), (1, "len(REG)"),
        (1, "tame(getattr(<obj>, <attr>, <num>))"), (1, "abs(<num>)"),
        (1, "(lambda x: tame(x + <num>))(<num>)"), (1, "min(<num>, <num>)"), (1, "-<num>"),
        (1, "round(<num>)"), (2, "<pair>[0]"), (1, "len(<queue>)"), (1, "pick(<queue>, <literal>)"),
        (1, "len(<rows>.get(<key>, ()))"), (1, "sum(map(len, <rows>.values()))"),
        (1, "getattr(<obj>, 'half', <num>)"), (1, "getattr(<obj>, 'writes', <num>)"),
        (1, "next((x for x in <nums>[:6] if x > <num>), <num>)"), (1, "(lambda *a, **k: len(a))(*<nums>[:3])"), (1, "divmod(<num>, 7)[1]"), (1, "hash(<text>) % 1"),
    ],
    "bool": [
        (4, "<num> < <num>"), (2, "<num> in <nums>"), (3, "<key> in <table>"),
        (3, "<obj> is <obj>"), (2, "<nums> is <nums>"), (1, "<nums> == <nums>"),
        (1, "<obj> == <obj>"), (1, "not <bool>"), (1, "hasattr(<obj>, <attr>)"),
        (1, "bool(<nums>)"), (2, "<obj>.o is None"), (1, "isinstance(<obj>, Sub)"),
        (1, "type(<obj>) is type(<obj>)"), (1, "<num> == <num>"), (1, "bool(<obj>)"),
        (1, "any(x > <num> for x in <nums>[:6])"), (1, "all(<nums>)"), (1, "<table> == <table>"),
        (1, "<obj> in <objs>"), (1, "<num> in <bag>"), (1, "<text> == <text>"), (1, "<table> is <table>"),
        (1, "<num> is <num>"), (1, "callable(<fn>)"), (1, "<num> != <num> or <bool>"),
    ],
    "text": [
        (6, "<:text>"), (3, "'ab'"), (1, "str(<num>)"), (1, "(<text>[:4] + 'x')"),
        (1, 'f"""{<num>}"""'), (1, "','.join(map(str, <nums>))[:8]"), (1, "<text>.upper()"),
        (1, "repr(<nums>)[:12]"), (1, "type(<obj>).__name__"), (1, "'%s' % (<num>,)"),
    ],
    "nums": [
        (12, "<:nums>"), (4, "[<num>, <num>]"), (4, "<obj>.l"), (1, "[]"),
        (1, "list(<table>.values())"), (2, "[x + <num> for x in <nums>[:6]][:6]"),
        (1, "(<nums> + <nums>)[:6]"), (2, "sorted(<nums>)"), (1, "<nums>[1:]"),
        (1, "list(map(<fn>, <nums>[:4]))"), (1, "<nums>[::-1]"), (1, "[*<nums>[:5], <num>]"),
        (1, "sorted(<bag>)"), (1, "list(firsts(<nums>))"), (1, "list(filter(None, <nums>))"),
        (1, "[a * b for a, b in zip(<nums>, [1, 2])]"), (1, "list(itertools.chain([1], <nums>[:3]))"),
        (1, "[x.n for x in <objs>[:6]]"), (1, "list(collections.deque(<nums>, maxlen=3))"),
        (1, "REG[:4]"), (1, "<nums>.copy()"), (1, "[x for x in <nums>[:6] if x > <num>]"),
        (1, "list(range(abs(<num>) % 4))"), (1, "list(<bag>)"), (1, "sorted(<nums>, key=pure)"),
        (1, "list(dict.fromkeys(<nums>))"), (3, "<pair>[1]"), (1, "list(<queue>)"),
        (2, "<rows>.get(<key>, [])"), (1, "<rows>.setdefault(<key>, [])"), (1, "[*firsts(<queue>)]"),
        (1, "sum(<rows>.values(), [])[:6]"), (1, "list(Hooked(<num>, <nums>))"),
    ],
    "table": [
        (12, "<:table>"), (4, "<obj>.d"), (2, "{'k': <num>, 'z': <num>}"), (1, "dict(<table>)"),
        (1, "{**<table>, 'k': <num>}"), (1, "{k: v for k, v in list(<table>.items()) if v > <num>}"),
        (1, "dict(zip('kxz', <nums>))"), (1, "vars(Thing(<num>, <nums>))['d']"), (1, "dict(k=<num>)"),
    ],
    "bag": [(8, "<:bag>"), (2, "{1, <num> % 9}"), (1, "set(<nums>)"), (1, "(<bag> | {3})")],
    "obj": [
        (12, "<:obj>"), (2, "(<obj>.o or <obj>)"), (2, "Thing(<num>)"), (1, "Sub(<num>, <nums>)"),
        (1, "Slim(<num>, <nums>)"), (2, "(pick(<objs>, <literal>) or <obj>)"), (1, "Odd(<num>)"),
        (1, "<obj>.grow(<num>)"), (1, "type(<obj>).make(<num>)"), (1, "(<obj> if <bool> else <obj>)"),
        (1, "max(<objs> or [<obj>], key=lambda x: x.n)"),
    ],
    "objs": [(8, "<:objs>"), (3, "[<obj>, <obj>]"), (1, "(<objs>[:3] + [<obj>])"), (1, "[x for x in <objs>[:6] if x.n > <num>]")],
    "rows": [
        (8, "<:rows>"), (1, "{'k': <nums>, 'z': []}"), (1, "dict(<rows>)"),
        (1, "collections.defaultdict(list, k=<nums>)"), (1, "{k: v[:2] for k, v in list(<rows>.items())}"),
    ],
    "pair": [(8, "<:pair>"), (2, "(<num>, <nums>)"), (1, "(<pair>[0], <nums>)"), (1, "tuple(<pair>)")],
    "queue": [(8, "<:queue>"), (1, "collections.deque(<nums>, maxlen=4)"), (1, "<queue>.copy()")],
    "fn": [
        (8, "<:fn>"), (2, "pure"), (1, "(lambda x, scale=1: tame(x + <num>))"), (1, "adder(<num>)"),
        (1, "adder(<num>, <nums>)"), (1, "functools.partial(<fn>)"), (1, "<obj>.m"),
    ],
    "tensor": [
        (10, "<:tensor>"), (4, "(<tensor> + <tensor>)"), (3, "(<tensor> * <num>)"),
        (2, "torch.relu(<tensor>)"), (2, "(<tensor> - <literal>)"), (1, "(<tensor> @ <tensor>.t())[:2, :2]"),
        (1, "torch.cat([<tensor>, <tensor>])[:2]"), (1, "<tensor>.contiguous()"), (1, "<tensor>.t().t()"),
        (1, "torch.zeros(2, 2)"), (1, "(<tensor> if <bool> else <tensor>)"), (1, "<tensor>.clone()"),
        (1, "torch.where(<tensor> > 0, <tensor>, <tensor>)"), (1, "sum([<tensor>, <tensor>])"),
        (1, "<tensor>.mean().expand(2, 2)"), (1, "torch.stack([<tensor>[0], <tensor>[1]])"),
        (1, "<tensor>.clamp(-100, 100)"), (1, "getattr(<obj>, 't', <tensor>)"),
    ],
}  # fmt: skip
TENSOR_NUMS = ["<tensor>.dim()", "<tensor>.shape[0]", "len(<tensor>)", "int(<tensor> is <tensor>)"]

SIMPLE = [
    (6, "<:new> = <any>"), (6, "<nums>.append(<num>)"), (3, "<obj>.n = <num>"),
    (2, "<obj>.l = <nums>"), (2, "<obj>.o = <obj>"), (2, "<obj>.d = <table>"),
    (4, "<table>[<key>] = <num>"), (2, "<table>.pop(<key>, None)"), (1, "<table>.update(k=<num>)"),
    (1, "<table>.update(<table>)"), (1, "<table>.setdefault(<key>, <num>)"),
    (1, "<nums>.extend(<nums>[:3])"), (2, "<nums>[:1] = [<num>]"), (1, "<nums>.sort()"),
    (1, "<nums>.reverse()"), (1, "<nums>.clear()"), (2, "del <nums>[3:]"),
    (1, "<nums> and <nums>.pop()"), (1, "<bag>.add(<num> % 9)"), (1, "<bag>.discard(<num> % 9)"),
    (2, "<objs>.append(<obj>)"), (1, "del <objs>[2:]"), (1, "<obj>.extra = <num>"),
    (1, "<table>[<key>] = <table>.pop(<key>, <num>)"), (2, "REG.append(<num>)"), (1, "del REG[4:]"),
    (1, "TABLE['k'] = <num>"), (1, "Thing.seen.append(<num>)"), (1, "del Thing.seen[3:]"),
    (1, "<nums>.insert(0, <num>)"), (1, "setattr(<obj>, <attr>, <num>)"), (1, "<fn>(<num>)"),
    (1, "<obj>.n, <obj>.n = <num>, <num>"), (1, "<objs>.reverse()"), (1, "<obj>.n += <num> % 5"),
    (1, "<table>[<key>], <obj>.n = <obj>.n, <num>"), (1, "list(map(<nums>.append, [<num>]))"),
    (1, "<table>.clear()"), (1, "<obj>.l, <obj>.l = <nums>, <nums>"), (1, "<obj>.grow(<num>)"),
    (2, "<rows>.setdefault(<key>, []).append(<num>)"), (1, "<rows>[<key>] = <nums>"),
    (1, "<pair>[1].append(<num>)"), (2, "<queue>.append(<num>)"), (1, "<queue>.appendleft(<num>)"),
    (1, "<queue>.rotate(1)"), (1, "<queue> and <queue>.popleft()"), (1, "Hooked(<num>, <nums>).half = <num>"),
    (1, "<:num>, <:nums> = <pair>"), (1, "<:pair> = <:pair>"), (1, "<nums>[0:0] = <queue>"),
    (1, "<rows>.pop(<key>, None)"), (1, "getattr(<obj>, '__dict__', {})['n'] = <num>"), (1, "drain(<queue>)"),
    (1, "vars(<obj>).update(extra=<num>) if hasattr(<obj>, '__dict__') else None"),
]  # fmt: skip
TENSORS = [
    (4, "<:newt> = <tensor>"), (2, "<tensor>.add_(<literal>)"), (1, "<tensor>[0] = <literal>"),
    (2, "<obj>.t = <tensor>"), (1, "<tensor>.mul_(<tensor>)"), (1, "<:newt> += <tensor>"),
]  # fmt: skip
BLOCKS = [
    (4, "if <bool>:", "body"), (2, "for i in <nums>[:3]:", "body"),
    (2, "for k, v in list(<table>.items())[:3]:", "body"), (2, "for q_ in <objs>[:3]:", "body"),
    (1, "with Guarded(<nums>) as w_:", "body"), (1, "try:", "try"), (1, "if <bool>:", "else"),
    (1, "while len(<nums>) < 3:", "while"), (1, "def inner(x=1, *rest):", "def"),
    (1, "for i, x in enumerate(<nums>[:2]):", "body"), (1, "match <num>:", "match"),
    (1, "for k, v in list(<rows>.items())[:2]:", "body"), (1, "def gen():", "gen"),
    (1, "with Guarded(<rows>.setdefault('w', [])):", "body"),
]  # fmt: skip
CHANGES = [
    (4, "pass"), (12, "globals().update(world(), G=3); REG.clear(); TABLE['k'] = 1"), (8, "<simple>"), (2, "<root> = <root_value>"), (1, "<root_num> = <num>"),
    (1, "G = <num>"), (1, "TABLE = {'k': <num>}"), (1, "Thing.m = lambda self, x: x + <literal>"),
    (1, "Thing.shared = <num>"), (1, "Sub.m = Thing.m"), (1, "<root_obj> = <root_other>"),
    (1, "pure.__defaults__ = None"), (1, "adder.__defaults__ = (<root_nums>,)"),
    (1, "Thing.p = property(lambda self: <literal>)"), (1, "REG = <root_nums>"),
    (1, "<root_nums> = <root_obj>.l"), (1, "<root_obj>.__class__ = Thing"),
    (1, "Thing.__bool__ = lambda self: False"), (1, "pure.__code__ = (lambda x: x % 9).__code__"),
    (1, "Thing.extra = <literal>"), (1, "<root_table> = dict(reversed(<root_table>.items()))"),
    (1, "len = lambda x: 5"), (1, "<root_obj> = Sub(<num>, <root_nums>)"),
    (1, "Hooked.__setattr__ = object.__setattr__"), (1, "Hooked.half = <literal>"),
    (1, "<root_pair> = (<num>, <root_nums>)"), (1, "<root_rows>['k'] = <root_nums>"),
    (1, "<root_queue> = collections.deque(<root_nums>, maxlen=2)"),
    (1, "<root_obj>.__dict__.clear() if <literal> > 8 else None"), (1, "<root_objs> = [<root_obj>] * 2"),
]  # fmt: skip


class Program:
    """One program being made."""

    def __init__(self, choices, tensors=False):
        self.choices = choices
        self.tensors = tensors
        self.kinds = KINDS + (["tensor"] if tensors else [])
        self.roots = {kind: list(ROOTS[kind]) for kind in self.kinds}
        self.names = {kind: list(names) for kind, names in self.roots.items()}
        self.count = 0

    def expression(self, kind, depth):
        if depth <= 0:
            return self.leaf(kind)
        rows = EXPRESSIONS[kind]
        if kind == "num" and self.tensors:
            rows = [*rows, *((1, text) for text in TENSOR_NUMS)]
        return self.fill(self.choices.weighted(rows), depth - 1)

    def leaf(self, kind):
        if kind == "bool":
            return f"{self.leaf('num')} < {self.leaf('num')}"
        return self.choices.pick(self.names[kind])

    def fill(self, template, depth):
        return re.sub(r"<(:?\w+)>", lambda m: self.hole(m[1], depth), template)

    def hole(self, name, depth):
        pick = self.choices.pick
        if name == "literal":
            return pick(["1", "2", "0", "5", "-3", "1.5", "True", "10", "0.1"])
        if name == "key":
            return pick(["'k'", "'z'", "'x'", "1"])
        if name == "attr":
            return pick(["'n'", "'extra'", "'missing'"])
        if name == "simple":
            return self.fill(self.choices.weighted(SIMPLE), depth)
        if name == "root_value":
            return self.fill("<%s>" % self.kind, depth)
        if name == "root":
            self.kind = pick(self.kinds)
            return pick(self.roots[self.kind])
        if name == "root_other":
            return pick(self.roots["obj"])
        if name.startswith("root_"):
            return pick(self.roots[name[5:]])
        if name == "any":
            return self.expression(self.kind_for_new, depth)
        if name == ":new":
            return self.new_name()
        if name == ":newt":
            self.kind_for_new = "tensor"
            return self.known_or_new("tensor")
        if name.startswith(":"):
            return pick(self.names[name[1:]])
        return self.expression(name, depth)

    def new_name(self):
        self.kind_for_new = self.choices.pick(self.kinds)
        return self.known_or_new(self.kind_for_new)

    def known_or_new(self, kind):
        """Only names that are bound everywhere are read: the arguments."""
        return self.choices.pick(self.names[kind])

    def statement(self, depth, indent):
        pad = "    " * indent
        if depth > 0 and self.choices.chance(30):
            return self.block(depth - 1, indent)
        table = SIMPLE + TENSORS if self.tensors and self.choices.chance(40) else SIMPLE
        return [pad + self.fill(self.choices.weighted(table), self.choices.below(DEPTH))]

    def block(self, depth, indent):
        pad = "    " * indent
        at = self.choices.weighted([(w, n) for n, (w, *_) in enumerate(BLOCKS)])
        _, header, form = BLOCKS[at]
        lines = [pad + self.fill(header, 1)]
        if form == "match":
            kinds = self.choices.pick(["int()", "0 | 1", "float()"])
            lines += [pad + f"    case {kinds}:", *self.body(depth, indent + 2)]
            return [*lines, pad + "    case _:", *self.body(0, indent + 2)]
        if form == "while":
            lines = [pad + f"for _ in range(3):", *self.body(depth, indent + 1)]
            return [*lines, pad + "    " + self.fill("if <bool>: break", 1)]
        if form == "def":
            changed = ", ".join(sorted({n for names in self.names.values() for n in names}))
            lines = [pad + f"def inner(x=1, *rest):", pad + f"    nonlocal_ = [{changed}]"]
            lines += [pad + "    " + self.fill("return tame(<num>) if x else <num>", 1)]
            return [*lines, pad + self.fill("<nums>.append(inner(<num>))", 1)]
        if form == "gen":
            lines += [pad + self.fill("    for x in <nums>[:3]:", 1), pad + "        try:"]
            lines += [pad + "            yield x", pad + "        finally:"]
            lines += [pad + self.fill("            REG.append(<num>)", 0), pad + "it = gen()"]
            use = ["next(it, None)", "REG.extend(it)", "it.close()", "del it", "<nums>.extend(it)"]
            return lines + [pad + self.fill(text, 1) for text in use if self.choices.chance(40)]
        lines += self.body(depth, indent + 1)
        if form == "else":
            lines += [pad + "else:", *self.body(depth, indent + 1)]
        if form == "try":
            raised = self.choices.pick(["KeyError('k')", "ValueError(1)", "IndexError"])
            lines += [pad + "    " + self.fill("if <bool>: raise ", 1) + raised]
            caught = self.choices.pick(
                ["except KeyError as err:", "except Exception as err:", "finally:"]
            )
            lines += [pad + caught, *self.body(0, indent + 1)]
        return lines

    def body(self, depth, indent):
        lines = []
        for _ in range(1 + self.choices.below(2)):
            lines += self.statement(depth, indent)
        return lines

    def function(self, size):
        names = [n for kind in self.kinds for n in self.roots[kind]]
        lines = [f"def f({', '.join(names)}):"]
        if self.choices.chance(25):
            lines += ["    global G", self.fill("    G = tame(G + <num>)", 1)]
        for _ in range(1 + self.choices.below(size)):
            lines += self.statement(2, 1)
        result = self.choices.weighted(
            [(3, "[<any2>, <any2>]"), (1, "<any2>"), (1, "{'r': <any2>}")]
        )
        result = re.sub("<any2>", lambda m: "<%s>" % self.choices.pick(self.kinds), result)
        return [*lines, "    return " + self.fill(result, 2)]

    def world(self):
        """The first state: with aliases now and then."""
        chance = self.choices.chance
        lines = ["def world():", "    a, b, s = 4, 10, 'ab'"]
        lines += ["    xs, ys = [1, 2, 3], [5, 6]"]
        lines += ["    d, e = {'k': 1, 'z': 2}, collections.OrderedDict(x=5, k=6)"]
        lines += ["    g, fn = {1, 2, 8}, adder(2)"]
        kinds = ["Thing", "Sub", "Slim", "Odd", "Hooked"]
        lines += [f"    o, p = {self.choices.pick(kinds)}(1, [7]), {self.choices.pick(kinds)}(2)"]
        lines += ["    os = [o, p]"]
        lines += [
            "    r, w, z, q = {'k': [1], 'x': []}, (1, [2]), (5, xs), collections.deque([1, 2])"
        ]
        aliases = ["ys = xs", "o.l = xs", "p.l = o.l", "e = d", "o.d = d", "p = o", "o.o = p",
                   "p.o = p", "os.append(o)", "e = collections.defaultdict(int, k=3)", "b = 2.5",
                   "fn = adder(1, xs)", "r['k'] = xs", "w = z", "r['x'] = r['k']", "w = (1, o.l)", "fn = functools.partial(adder(3))"]  # fmt: skip
        lines += [f"    {alias}" for alias in aliases if chance(12)]
        if self.tensors:
            lines += ["    t, u = torch.ones(2, 2), torch.arange(4.0).reshape(2, 2)"]
            lines += [
                f"    {x}" for x in ["u = t", "u = t.t()", "o.t = t", "t = t.double()"] if chance(8)
            ]
        names = [n for kind in self.kinds for n in self.roots[kind]]
        return [*lines, "    return dict(" + ", ".join(f"{n}={n}" for n in names) + ")"]

    def change(self, number):
        """Between two calls; runs with the arguments as globals of the module."""
        names = [n for kind in self.kinds for n in self.roots[kind]]
        lines = [f"def change{number}():"]
        lines += [f"    global {', '.join([*names, 'G', 'TABLE', 'REG', 'len'])}"]
        for _ in range(1 + self.choices.below(2)):
            lines += ["    " + self.fill(self.choices.weighted(CHANGES), 1)]
        return lines

    def source(self, size):
        lines = PRELUDE.splitlines()
        if self.tensors:
            lines += ["import torch"]
        lines += ["", *self.world(), "", *self.function(size)]
        for number in range(CALLS - 1):
            lines += ["", *self.change(number)]
        return "\n".join(lines) + "\n"


def program(choices, size=8, tensors=False):
    return Program(choices, tensors).source(size)


def program_of_seed(seed, tensors=None):
    """Valid source; every fourth is about classes, and every third of the rest has tensors where
    torch is there."""
    if seed % 4 == 3:
        return trace_classes.program(Seeded(seed))
    tensors = seed % 3 == 2 if tensors is None else tensors
    return program(Seeded(seed), tensors=tensors)
