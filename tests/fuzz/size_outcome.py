"""Runs a program of size_programs plainly and compiled, call by call, and tells the first
difference: results, errors, what is left in the arguments, and which tensors share memory."""

import struct
import types
import warnings
from typing import NamedTuple

import torch
from size_programs import PRELUDE, calls_of_seed

import stator


class Way(NamedTuple):
    backend: str
    dynamic: bool | None
    grad: bool

    @property
    def exact(self):
        """Whether strides and values are eager's to the bit."""
        return self.backend != "aot_eager"


def way_of_seed(seed):
    backend = {4: "aot_eager", 2: "handed over", 8: "handed over"}.get(seed % 12, "eager")
    return Way(backend, [None, None, True][seed // 12 % 3], seed // 36 % 3 == 2)


def as_it_is(module, examples):
    return module.forward


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(12.0).reshape(4, 3) / 8)
        self.start()

    def start(self):
        self.k, self.scale = 2, 1.5
        self.state = torch.arange(6.0).reshape(2, 3)

    def forward(self, t):
        self.k += 1
        return t[:, : self.weight.shape[0]] @ self.weight[: t.shape[1]] * self.scale


def start(o):
    vars(o).clear()
    vars(o).update(k=3, r=0.75, d={"k": 1}, ks=[4, 5], kept=torch.ones(3, 2), last=None)


# -- arguments --


def filled(*size):
    count = torch.Size(size).numel()
    return (torch.arange(count, dtype=torch.float32) % 23 - 3).reshape(size)


def laid_out(layout, *size):
    if layout == "turned":
        return filled(*reversed(size)).permute(*reversed(range(len(size))))
    if layout == "part":
        return filled(*(n + 2 for n in size))[(slice(1, -1),) * len(size)]
    if layout == "spread":
        return filled(1, *size[1:]).expand(*size).detach()
    if layout == "stepped":
        return filled(*size[:-1], size[-1] * 2)[..., ::2]
    made = filled(*size)
    if layout == "grad":
        return made.requires_grad_()
    dtype = {"double": torch.float64, "whole": torch.int64}.get(layout, torch.float32)
    return made.to(dtype)


def arguments(call):
    n, m, h = call["n"], call["m"], call["h"]
    one, two, three = call["layouts"]
    x = laid_out(one, n, m)
    y = x.reshape(-1)[:n] if call["alias"] else laid_out(two, n)
    return [x, y, laid_out(three, h, n, m), call["int"], call["int2"], call["float"]]


# -- what a program could tell --


def bits(value, exact):
    if value != value:
        return "nan"
    return struct.pack("d", value) if exact else value


def layout_of(t, exact):
    """Strides that mean something; torch's fakes may give others to dimensions of one element."""
    if exact:
        return t.stride()
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1] if t.numel() else []


def is_leaf(t):
    try:
        return t.is_leaf
    except RuntimeError as error:  # a view whose base was written to in a way that has no gradient
        return str(error)


def seen(o, exact):
    if isinstance(o, torch.Tensor):
        numbers = [bits(v, exact) for v in o.detach().double().flatten().tolist()]
        facts = type(o).__name__, str(o.dtype), tuple(o.shape), layout_of(o, exact)
        return (*facts, o.requires_grad, is_leaf(o), numbers)
    if isinstance(o, float):
        return "float", bits(o, True)
    if isinstance(o, (list, tuple)):
        return (type(o).__name__, [seen(item, exact) for item in o])
    if isinstance(o, dict):
        return (type(o).__name__, [(seen(k, exact), seen(v, exact)) for k, v in o.items()])
    return type(o).__name__, hex(o) if type(o) is int and abs(o) >= 2**64 else repr(o)


def close(a, b):
    """Equal, or floats of graphs whose operations were taken apart that differ in the last digits."""
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-4 * max(abs(a), abs(b), 1)
    return a == b


def tensors_in(o):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(o) if isinstance(leaf, torch.Tensor)]


def first(items, item):
    return next(i for i, other in enumerate(items) if other == item)


def shared(tensors):
    """For each tensor the first that is the same object, and the first in the same memory."""
    objects = [id(t) for t in tensors]
    memory = [t.untyped_storage()._cdata for t in tensors]
    return [(first(objects, o), first(memory, m)) for o, m in zip(objects, memory, strict=True)]


class World:
    """One copy of a program and of the objects that its calls share."""

    def __init__(self, code, way, engine=None):
        self.engine, self.names = engine, {"G": 4}
        exec(PRELUDE, self.names)
        exec(code, self.names)
        self.way, self.o, self.mod = way, types.SimpleNamespace(), Module()
        start(self.o)
        self.f = self.compile() if engine else self.names["f"]

    def compile(self):
        backend = as_it_is if self.way.backend == "handed over" else self.way.backend
        return self.engine(self.names["f"], backend=backend, dynamic=self.way.dynamic)

    def call(self, call):
        args = arguments(call)
        try:
            result = self.f(*args, self.o, self.mod)
            outcome = "gave", seen(result, self.way.exact)
        except Exception as error:
            result, outcome = None, ("raised", type(error).__name__, str(error))
        kept = [args, vars(self.o), self.mod.k, self.mod.scale, self.mod.state]
        state = seen(kept, self.way.exact), shared(tensors_in([result, kept]))
        grads = self.grads(result, args) if self.way.grad else None
        if result is None:
            start(self.o)
        if result is None or self.way.grad:
            self.mod.start()
        return outcome, state, grads

    def grads(self, result, args):
        """Gradients of all that can have one; errors are the program's."""
        ends = [t for t in tensors_in(result) if t.requires_grad]
        leaves = [t for t in [*args[:3], self.mod.weight] if t.requires_grad]
        start(self.o)
        if not ends or not leaves:
            return None
        total = sum(t.double().sum() for t in ends)
        try:
            return seen(torch.autograd.grad(total, leaves, allow_unused=True), self.way.exact)
        except RuntimeError as error:
            return str(error).splitlines()[0]


def same(way, expected, found):
    return expected == found or (not way.exact and close(expected, found))


def writes(source):
    return any(text in source for text in ("_(", "] = ", "] += ", "b += ", "x += "))


def excused(source, expected, found):
    """A graph that raised after it changed an input is not run again: its error comes out, and the
    function's other writes do not happen."""
    return expected[0][0] == found[0][0] == "raised" and expected[0] == found[0] and writes(source)


# The error of a write to a tensor whose elements share memory, which AOTAutograd makes itself.
SPREAD = "more than one element of the written-to tensor refers to a single memory location"


def backends_own(expected, found, code, way, calls):
    """Whether the program raises, and the backend makes the same of it under torch's own Dynamo: it
    fails, or it has no error (AOTAutograd writes floats to ints in place)."""
    failed = found[0][1] == "BackendCompilerFailed"
    if failed and SPREAD in str(expected[0][2:]) and SPREAD in found[0][2]:
        return True
    if way.exact or not (failed or expected[0][0] == "raised"):
        return False
    stock = World(code, way, torch.compile)
    outcomes = [stock.call(call)[0] for call in calls]
    return any(o[1] == "BackendCompilerFailed" for o in outcomes) if failed else (
        close(outcomes[-1], found[0])
    )  # fmt: skip


def difference(source, seed, way, metrics=None, calls=None):
    """What differs, as text; "" if nothing does. `metrics` collects the compiled function's."""
    calls, code = calls or calls_of_seed(seed), compile(source, f"<case {seed}>", "exec")
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, fast = World(code, way), World(code, way, stator.compile)
        for number, call in enumerate(calls):
            expected, found = plain.call(call), fast.call(call)
            if not same(way, expected, found):
                made = calls[: number + 1]
                if excused(source, expected, found) or backends_own(
                    expected, found, code, way, made
                ):
                    return ""
                return f"{way}\ncall {number}: {call}\n" + told(expected, found)
    if metrics is not None:
        metrics.update(fast.f.metrics)
    return ""


def told(expected, found):
    parts = zip(("outcome", "state", "gradients"), expected, found, strict=True)
    rows = [f"{name}\n  plain    {a}\n  compiled {b}" for name, a, b in parts if a != b]
    return "\n".join(rows)
