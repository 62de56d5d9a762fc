"""Programs for compiled calls that are made to fail. Each has `make(n, token)`, the arguments of a
call (of which those with n = 1 and n = 2 need an entry each), and `main`. None catches what is
injected, and none writes to one container in two steps. `State` says all that a call can change."""

import gc
import types
from collections import deque
from collections.abc import Iterator

HEAD = """
from collections import OrderedDict, defaultdict, deque, namedtuple
"""

PROGRAMS = {
    "moments": """
from stator._engine import attempt

class Box:
    __slots__ = ("slot", "__dict__")

def make(n, token):
    o = Box()
    o.slot, o.attr, o.items = n, [n], {"a": n}
    return o, [3, token], {"k": n}

def main(o, xs, d):
    made = [[1], {2: 3}]
    d["early"], o.new = 1, made

    def change():
        o.slot, o.attr, o.late = 5, 6, 7
        o.items["b"] = 1
        xs.append(o)
        d.pop("early")
        for key in list(d):
            d[key] = made
        made[0].append(made)
        made.pop()

    attempt(change, True)  # a fault may end it before it has changed anything
    xs.append(o.slot + 1)
    attempt(change, True)
    return attempt(lambda: o.attr, False), made, list(d), o.attr
""",
    "writes": """
class Box:
    __slots__ = ("slot", "__dict__")
    shared = 0

total = 0

def make(n, token):
    o = Box()
    o.slot, o.attr, o.gone = n, [n], 1
    return o, [3, 1, 2], [token], {"k": n, "old": token, 3: 4}, {1, n + 5}, deque([1, n]), bytearray(b"abc")

def counter(start):
    def step(by):
        nonlocal start
        start = by
        return start
    return step

count = counter(5)

def main(o, xs, log, d, s, q, b):
    global total
    total = o.slot
    log.append(o)
    o.slot, o.attr, o.new, o.other = o.slot + 1, [o.attr], d["old"], xs
    del o.gone
    xs.sort()
    log += [o, [o.attr, {"x": xs}]]
    d["k"] += 1
    del d[3]
    d["made"] = (o, s)
    s.add(77)
    q.append(d["old"])
    b.extend(b"more")
    return count(2), len(xs), sorted(d)
""",
    "library": """
import copy, functools, operator, types

class Config:
    def __init__(self, n):
        self.n, self.sizes = n, [n, (1, [2])]

@functools.lru_cache
def kept(n):
    return n, "kept"

@functools.lru_cache
def added(n, k=1):
    return n + k

kept(1), kept(2), added(1), added(2), added(1, k=3), added(2, k=3)

def make(n, token):
    return Config(n), n, [token], OrderedDict(b=n, a=token)

def main(c, n, log, o):
    def inner(a: list[int], b: dict[str, int] | None = None) -> tuple[int, ...]:
        return a
    d = copy.deepcopy(c)
    log.append(d)
    seen = {id(c): 1, id(d): 2}
    o |= {"c": kept(n)}
    log.append((inner, inner([n]), added(n), added(n, k=3), o | {"z": n}))
    return seen[id(d)], types.MappingProxyType({"a": n})["a"], copy.copy(c), hash((c.n, "a")) == 3
""",
    "calls": """
class Base:
    scale = 2
    def __init__(self, value):
        self.value = value
    @property
    def double(self):
        return self.value * self.scale
    def method(self, *more, **named):
        return self.value + len(more) + len(named)
    @classmethod
    def of(cls, n):
        return cls(n)
    @staticmethod
    def plain(a, b=3, *, c=4):
        return a + b + c
    def __getattr__(self, name):
        return len(name)
    def __add__(self, other):
        return type(self)(self.value + other.value)
    def __lt__(self, other):
        return self.value < other.value

class Derived(Base):
    def method(self, *more, **named):
        return super().method(*more, 1, **named)

def add(a, b=2, *rest, c=3, **more):
    return a + b + len(rest) + c + len(more)

def make(n, token):
    return Derived(n), (1, 2, 3), {"c": 4, "d": n}, token

def main(o, args, kwargs, token):
    held = [token, (token, {"t": token})]
    total = add(1) + add(1, 2, c=5) + add(*args) + add(*args, **kwargs)
    total += o.method(1, k=2) + o.double + o.anything + Base.plain(1) + (o + o).value
    fns = [lambda k=k: k + total for k in range(2)]
    best = max([Derived.of(3), o, Derived(2)])
    order = sorted([3, 1, 2], key=lambda x: -x)
    return total, [f() for f in fns], order, best.value, list(map(str, args)), held
""",
    "made": """
Point = namedtuple("Point", "x y")

class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent is not None:
            parent.children.append(self)
    def walk(self):
        return [self.value] + [v for c in self.children for v in c.walk()]

def make(n, token):
    return [n, token], {"n": n}

def main(xs, d):
    root = Node(xs[0])
    leaf = Node(xs[1], root)
    loop = [d]
    loop.append(loop)
    def inner(a, b=xs):
        return a, b, root
    return {
        "tree": root, "point": Point(leaf, 2), "loop": loop, "fn": inner, "bound": root.walk,
        "set": {1, d["n"]}, "ordered": OrderedDict(a=1, b=d), "default": defaultdict(list, {1: xs}),
        "deque": deque(xs, maxlen=4), "slice": slice(1, d["n"]), "text": f"{xs[0]!r:>4}",
    }
""",
    "generators": """
def make(n, token):
    return [token] * n, n, []

def numbers(n, log):
    try:
        for i in range(n):
            got = yield i
            if got:
                log.append(got)
    finally:
        log.append("closed")

def outer(log):
    result = yield from numbers(2, log)
    return (result, 7)

def main(xs, n, log):
    total = sum(numbers(n, log))
    gen = outer(log)
    next(gen)
    total += gen.send("sent")
    gen.close()
    total += sum(x * 2 for x in range(3))
    pairs = list(zip(numbers(2, []), xs))
    left = numbers(4, log)
    next(left)
    return total, pairs, [a for a, in zip(xs)], dict(enumerate(xs))
""",
    "suspended": """
from itertools import accumulate, chain, cycle, groupby, islice, permutations, tee, zip_longest

def make(n, token):
    return [token, n, 3, 4], {"a": n, "b": token, "c": 3}, deque([n, token, 5])

def numbers(xs, log):
    total = 0
    def add(x):
        nonlocal total
        total += x
    try:
        for x in xs:
            add(1)
            yield x, add
    finally:
        log.append("closed")

def outer(xs, log):
    yield from numbers(xs, log)

def main(xs, d, q):
    log = []
    gen = outer(xs, log)
    got, add = next(gen)
    ended = numbers([], log)
    next(ended, None)
    loop = [iter(()), gen]
    ring = (x for x in loop)
    loop.append(ring)
    next(ring)
    d["new"] = 1
    its = [iter(xs), iter(d), reversed(d.items()), iter(q), iter({1, 20}), iter("text"), iter(range(9))]
    its += [enumerate(xs), zip(xs, "abc", strict=True), map(lambda x: (x,), xs)]
    its += [chain(xs, q), islice(xs, 1, None)]
    its += [cycle(xs), permutations([1, 2, 3], 2), zip_longest(xs, "a"), accumulate([1, 2, 3]), *tee(xs)]
    its.append(groupby([1, 1, 2]))
    for it in its:
        next(it)
    return got, add, ended, ring, numbers(d, log), its, zip(gen, xs), log
""",
    "handlers": """
class Context:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        self.log.append("enter")
        return self
    def __exit__(self, kind, error, traceback):
        self.log.append(kind is None)
        return True

def risky(k):
    if k == 1:
        raise ValueError(k)
    return 10 // k

def make(n, token):
    return [token], n

def main(log, n):
    out = []
    for k in range(n + 2):
        try:
            try:
                out.append(risky(k))
            except ValueError:
                log.append("value")
                raise KeyError(k)
            finally:
                log.append("finally")
        except KeyError:
            log.append("key")
        except ZeroDivisionError:
            log.append("zero")
            continue
    with Context(log) as c:
        c.log.append({}["missing"])
    return out
""",
    "dicts": """
class D(dict):
    def __missing__(self, key):
        return key

class Env:
    pass

def make(n, token):
    e = Env()
    e.n, e.t = n, token
    return e, {"a": n, "b": {"c": token}, (1, 2): 3}, D(x=n), OrderedDict(p=1, q=n), defaultdict(list)

def main(e, d, own, ordered, default):
    default[e.n].append(e.t)
    own["y"] = own["z"]
    own.extra = own["x"]
    ordered["r"] = d["a"]
    e.__dict__["late"] = d["b"]["c"]
    d.setdefault("new", []).append(e)
    d["b"].update(c=1, f=2)
    e.n += d[1, 2]
    return {k: d[k] for k in d if k != "b"}, list(ordered), len(own), vars(e), d.get("no")
""",
    "matching": """
import math

def kind(value):
    match value:
        case {"a": x, **rest}:
            return "map", x, len(rest)
        case [1, *others]:
            return "seq", others
        case int(n) if n > 3:
            return "int", n
        case str() | None:
            return "other"
    return "none"

def make(n, token):
    return [{"a": n, "b": 2}, [1, 2, 3], 7, "s", None, 2, token], n

def main(values, n):
    from os import path
    a, *b, c = values[1]
    first = [kind(v) for v in values[:5]]
    text = f"{a!r:>3}|{n:{a + 3}}|{'x'.upper()}" + path.sep + "%s" % n
    values[1:2] = [b, c]
    values[0]["a"] += math.floor(2.5)
    return first, text, text.split("|"), {x % 2 for x in b}, isinstance(values[-1], int)
""",
    "broken": """
import gc

log = []

def make(n, token):
    gc.collect()  # generators of an earlier call write into the log when they go
    log.clear()
    return {"k": n}, [token], {n}

def waiting(xs):
    try:
        yield xs
    finally:
        log.append("closed")

def holding(xs):
    inner = waiting(xs)
    yield next(inner)

def main(d, xs, s):
    d["k"] += 1
    xs.append(d)
    s.add(9)
    gen, d["gen"] = waiting(xs), holding(xs)
    next(gen)
    next(d["gen"])
    log.append(len(gc.get_threshold()))
    xs.append(len(log))
    return next(gen, d["k"])
""",
    "classes": """
class Node:
    def __init__(self, n):
        self.n = n

def make(n, token):
    node = Node(n)
    return node, {node: token, Node(5): n}, {Node(6)}

def main(node, d, s):
    class Box:
        __slots__ = ("n",)
        made = []

        def __init__(self, n):
            self.n = n

        @property
        def twice(self):
            return self.n * 2

    class Below(Box):
        @staticmethod
        def of(n):
            return Below(n).twice

    seen, memo = {node}, {node: Below.of(node.n)}
    d[node] = [memo[node], [k.n for k in d]]
    return node in seen, node in s, memo, {node}
""",
    "raising": """
def make(n, token):
    return [n], token

def fail(xs):
    xs.append(xs[0] + 1)
    raise LookupError("as asked")

def main(xs, token):
    xs.append(token)
    try:
        fail(xs)
    finally:
        xs.append(3)
""",
}


def fresh(name):
    """The program's namespace, compiled anew: nothing of it was decoded or specialised yet."""
    names = {"__name__": "program"}
    exec(compile(HEAD + PROGRAMS[name], f"<program {name}>", "exec"), names)
    return types.SimpleNamespace(**{k: names[k] for k in ("make", "main")}, names=names)


class State:
    """All that a call can change. Objects that are there before it have numbers, in the order of
    meeting, and a row of text each; what comes later is told where it is found. So the rows of two
    runs of a program are the same if what they wrote is the same."""

    def __init__(self, program, args, token):
        self.token, self.numbers, self.alive = token, {}, []
        self.globals = {k: v for k, v in program.names.items() if not k.startswith("__")}
        self.names = program.names
        for root in (*args, *self.globals.values()):
            self.meet(root)

    def meet(self, value):
        if value is self.token or isinstance(value, SIMPLE) or id(value) in self.numbers:
            return
        self.numbers[id(value)] = len(self.numbers)
        self.alive.append(value)
        for _, part in parts(value):
            self.meet(part)

    def text(self, value, above=()):
        if value is self.token:
            return "token"
        if isinstance(value, SIMPLE):
            return repr(value)
        if id(value) in self.numbers:
            return f"#{self.numbers[id(value)]}"
        if id(value) in above:
            return f"up {len(above) - above.index(id(value))}"
        return self.row(value, above)

    def row(self, value, above=()):
        above = (*above, id(value))
        inner = (name + self.text(part, above) for name, part in parts(value))
        return f"{type(value).__name__}({', '.join(inner)})"

    def rows(self):
        return [
            *(f"{name} = {self.text(self.names.get(name))}" for name in self.globals),
            *(f"#{i} {self.row(value)}" for i, value in enumerate(self.alive)),
        ]


UNSAID = (tuple, types.CodeType)
SIMPLE = (int, str, float, bytes, type(None), type, types.ModuleType, types.BuiltinFunctionType)


def parts(value):
    """What an object holds, with a name each."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield "key ", k
            yield "", v
    elif isinstance(value, (list, tuple, deque, set, frozenset)):
        yield from (("", item) for item in value)
    elif isinstance(value, bytearray):
        yield "", bytes(value)
    elif isinstance(value, slice):
        yield "", (value.start, value.stop, value.step)
    elif isinstance(value, types.MethodType):
        yield from (("", value.__func__), ("", value.__self__))
    elif isinstance(value, types.CellType):
        yield from (("", part) for part in gc.get_referents(value))
    elif isinstance(value, types.FunctionType):
        yield from ((name, getattr(value, name)) for name in FUNCTION)
    elif isinstance(value, Iterator):
        # zip and others keep the tuple they gave last, as long as nobody else has it
        held = (part for part in gc.get_referents(value) if not isinstance(part, UNSAID))
        yield from (("", part) for part in held)
    for name in ("slot", "default_factory", "maxlen"):
        if hasattr(value, name):
            yield f"{name}=", getattr(value, name)
    if not isinstance(value, types.FunctionType):
        yield from ((f".{k}=", v) for k, v in getattr(value, "__dict__", {}).items())


FUNCTION = "__qualname__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__"
