"""In a process of its own: one small thing around compiled functions very often, and print what has
grown.

    python compiled_child.py kind times

Prints objects, blocks of memory and kilobytes that there are more than before, and how many more of
the engine's own objects are alive when all is dropped.
"""

import collections
import contextlib
import gc
import sys
import warnings
import weakref

from leak_child import size

import stator

Point = collections.namedtuple("Point", "x y")


def keep(f):
    return stator.compile(f, backend="eager", _keep_empty=True)


class Box:
    shared = 1

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return True

    def __getattr__(self, name):
        return len(name)

    def method(self, *more, **named):
        return self.value + len(more) + len(named)

    @property
    def double(self):
        return self.value * 2


class Slotted:
    __slots__ = ("a", "b")


class Own(dict):
    def __missing__(self, key):
        return key


def numbers(n):
    try:
        for i in range(n):
            yield i
    finally:
        len("closed")


# --- what is traced: (function, arguments, and others that need another entry) ---


def calls(box, xs, n=2, *rest, k=3, **named):
    fns = [lambda i=i: i + n for i in range(2)]
    best = max(xs, key=lambda x: -x)
    return box.method(*xs, **named) + box.double + box.any + k + best, [f() for f in fns], rest


def writes(box, xs, d, s, q):
    box.value, box.new = d["k"], [xs]
    xs.append(len(xs))
    d["k"] += 1
    d["made"] = box
    s.add(9)
    q.append(xs)
    del d["gone"]
    return sorted(d)


def makes(xs, d):
    root = Box(xs)
    root.me = root
    loop = [d]
    loop.append(loop)

    def inner(a, b=xs):
        return a, b, root

    out = {"root": root, "loop": loop, "fn": inner, "point": Point(root, xs), "bound": root.method}
    out["more"] = collections.OrderedDict(a=1), collections.defaultdict(list), {1, 2}, slice(xs)
    return out


def generators(n):
    gen, left = numbers(n), numbers(3)
    next(gen), next(left)
    total = sum(gen) + sum(x * 2 for x in numbers(n))
    return total, list(zip(numbers(2), numbers(3))), dict(enumerate(numbers(2)))


def exceptions(n):
    out = []
    for i in range(n):
        try:
            try:
                {}[i]
            except KeyError as error:
                raise ValueError(i) from error
        except ValueError as error:
            out.append(str(error))
    with Box(1) as box:
        raise LookupError(box)
    return out


def dicts(own, ordered, default, o):
    default["n"].append(own["missing"])
    own["x"], own.extra = 1, 2
    ordered["z"] = list(ordered)
    o.a = o.b
    return {k: v for k, v in own.items()}, vars(own), [*ordered.values()]


def texts(xs):
    match xs:
        case [first, *rest]:
            text = f"{first!r:>4}|{'-'.join(map(str, rest))}"
    return text.split("|"), "%s" % text, text.upper()


def broken(xs, d):
    gen = numbers(3)
    next(gen)
    xs.append(d)
    return eval("1") + next(gen)


def leaving(xs):
    xs.append(1)
    gen = numbers(3)
    next(gen)
    raise LookupError([xs])


def classes(box, xs):
    class Base:
        made = xs

        def __init__(self, n):
            self.n = n

        @property
        def twice(self):
            return self.n * 2

    class Below(Base):
        def total(self):
            return sum(self.made) + super().twice

    seen, memo = {box}, {box: Below(1).total()}
    return box in seen, memo[box], Below(2).twice


def slotted():
    o = Slotted()
    o.b = 1
    return o


TRACED = {
    "calls": (calls, lambda n: (Box(n), [1, 2, n])),
    "writes": (
        writes,
        lambda n: (Box(1), [1], {"k": n, "gone": 1}, {1}, collections.deque([n])),
    ),
    "makes": (makes, lambda n: ([n], {"a": 1} if n == 1 else {})),
    "generators": (generators, lambda n: (n + 1,)),
    "exceptions": (exceptions, lambda n: (n,)),
    "dicts": (
        dicts,
        lambda n: (
            (Own(y=n), collections.OrderedDict(p=n), collections.defaultdict(list), slotted())
            if n == 1
            else (Own(), collections.OrderedDict(), collections.defaultdict(list), slotted())
        ),
    ),
    "texts": (texts, lambda n: ([1, n, "x"],)),
    "classes": (classes, lambda n: (Box(n), [n])),
    "broken": (broken, lambda n: ([], {})),
    "leaving": (leaving, lambda n: ([n],)),
}


def call(f, args):
    with contextlib.suppress(LookupError):
        f(*args)


# --- what is done with it ---


def fresh(f, make, state):
    """Compiled, called and dropped."""
    compiled = keep(f)
    call(compiled, make(1))
    call(compiled, make(1))


def warm(f, make, state):
    if "f" not in state:
        state["f"] = keep(f)
    call(state["f"], make(1))


def again(f, make, state):
    """One compiler for ever: an entry, another, and a reset."""
    if "f" not in state:
        state["f"] = keep(f)
    for n in (1, 2, 1):
        call(state["f"], make(n))
    state["f"].compiler.reset()


WAYS = {way.__name__: way for way in (fresh, warm, again)}


# --- kinds of their own ---


def codes(state):
    """Functions whose code dies with them."""
    names = {}
    exec("def f(xs):\n    xs.append(1)\n    return [x for x in xs]", names)
    compiled = keep(names["f"])
    compiled([1])
    compiled([1])


def dead_entries(state):
    """Entries that hold on to nothing: what they were made for is gone."""
    if "f" not in state:
        state["f"], state["n"] = keep(lambda o: (type(o).__name__, o.x)), 0
    kind = type("Kind", (), {"x": 1})
    state["f"](kind())
    state["f"](kind())
    state["n"] += 1
    if state["n"] % 5 == 0:
        del kind
        gc.collect()
        assert not state["f"].compiler.metrics["drops"]


def dead_compilers(state):
    """A compiled function that its own entries and closure refer to."""

    def f(n):
        return [compiled, n, kept]

    kept = [1]
    compiled = keep(f)
    kept.append(compiled)
    compiled(1)
    compiled(1)


def limits(state):
    """More recompiles than allowed, then plain calls."""
    compiled = keep(lambda n: n + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(12):
            compiled(n)


def misses(state):
    """Reasons are written down, but not for ever."""
    if "f" not in state:
        state["f"], state["n"] = keep(lambda n: n + 1), 0
    state["n"] += 1
    state["f"](state["n"])
    if state["n"] % 3 == 0:
        state["f"].compiler.reset()


def described(state):
    if "f" not in state:
        state["f"] = keep(writes)
        state["f"](*TRACED["writes"][1](1))
    state["f"].compiler.entries()
    state["f"].metrics


def strict(state):
    compiled = stator.compile(broken, backend="eager", fullgraph=True, _keep_empty=True)
    with contextlib.suppress(stator.Unsupported):
        compiled([], {})


def methods(state):
    """Compiled methods, bound and unbound."""

    class Kind:
        def __init__(self):
            self.me = self
            self.n = 1

        @stator.compile(backend="eager", _keep_empty=True)
        def step(self, xs):
            self.n += 1
            xs.append(self)
            return self.step

    kind = Kind()
    kind.step([])([])


def weak(state):
    """What an entry guards weakly dies first."""

    def f(o, g):
        return o.value, g(o)

    compiled = keep(f)
    box, g = Box(1), lambda o: o.value
    gone = weakref.ref(g)
    compiled(box, g)
    compiled(box, g)
    del g, box
    assert gone() is None
    with contextlib.suppress(LookupError):
        compiled(Box(2), lambda o: 3)


# --- tensors ---


def operations(x, state, scale=2):
    y = x * scale + x.sum(dim=0)
    state["last"] = y
    state["shapes"].append(x.shape)
    return {"y": [y, y[0]], "n": x.dim()}


def tensor_fresh(state):
    import torch

    compiled = keep(operations)
    for _ in range(2):
        compiled(torch.ones(2, 3), {"shapes": []})


def tensor_warm(state):
    import torch

    if "f" not in state:
        state["f"] = keep(operations)
    state["f"](torch.ones(2, 3), {"shapes": []})


def tensor_again(state):
    import torch

    if "f" not in state:
        state["f"] = keep(operations)
    for shape in ((2, 3), (3, 3), (2, 3)):
        state["f"](torch.ones(*shape), {"shapes": []})
    state["f"].compiler.reset()


def tensor_broken(state):
    """Dropped in the middle, with nodes recorded; and where the graph's result is asked for."""
    import torch

    def f(x, xs):
        xs.append(x + 1)
        return eval("1"), x

    keep(f)(torch.ones(2), [])
    keep(lambda x: x * 2 if x.sum() > 1 else x)(torch.ones(2))


def tensor_raising(state):
    """The graph fails: an index that is out of range."""
    import torch

    if "f" not in state:
        state["f"] = keep(lambda x, i: x[i] + 1)
        state["f"](torch.ones(3), torch.tensor(1))
    with contextlib.suppress(IndexError):
        state["f"](torch.ones(3), torch.tensor(7))


OWN = {
    kind.__name__: kind
    for kind in (
        codes, dead_entries, dead_compilers, limits, misses, described, strict, methods, weak,
        tensor_fresh, tensor_warm, tensor_again, tensor_broken, tensor_raising,
    )
}  # fmt: skip
KINDS = [*(f"{name}-{way}" for name in TRACED for way in WAYS), *OWN]


def step_of(name):
    if name in OWN:
        return OWN[name]
    program, way = name.split("-")
    f, make = TRACED[program]
    return lambda state: WAYS[way](f, make, state)


def alive():
    """The engine's own objects: compilers, graphs, what stands for tensors."""
    gc.collect()
    return sum(str(type(o).__module__) == "stator._engine" for o in gc.get_objects())


def main(name, times):
    step, state, own = step_of(name), {}, alive()
    for _ in range(max(int(times) // 5, 100)):
        step(state)
    size()
    before = size()
    for _ in range(int(times)):
        step(state)
    after = size()
    state.clear()
    print(*(b - a for a, b in zip(before, after, strict=True)), alive() - own)


if __name__ == "__main__":
    main(*sys.argv[1:])
