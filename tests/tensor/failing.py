"""Programs with an operation that refuses its data, behind something that cannot be done twice.

One program is text: a context with the lines of an effect and of a failing operation put in. Each
gets a State, and all that it does is to be seen there, in its result, or in its exception.
"""

from __future__ import annotations

import textwrap
import traceback
from collections.abc import Callable
from typing import Any

import torch

# -- custom operations: what they do in Python shows how often they ran --

counts = {"seen": 0, "refuses": 0, "allowed": 0}


@torch.library.custom_op("stator_failing::seen", mutates_args=())
def seen(x: torch.Tensor) -> torch.Tensor:
    counts["seen"] += 1
    return x + counts["seen"]


@seen.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("stator_failing::refuses", mutates_args=())
def refuses(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    counts["refuses"] += 1
    if int(i.max()) > 2:
        raise KeyError(f"refused {counts['refuses']}")
    return x * 2


@torch.library.custom_op("stator_failing::fills", mutates_args=("x",))
def fills(x: torch.Tensor) -> None:
    counts["seen"] += 1
    x.fill_(counts["seen"])


@fills.register_fake
def _(x: torch.Tensor) -> None:
    return None


@refuses.register_fake
def _(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def allowed(x: torch.Tensor) -> torch.Tensor:
    if type(x) is torch.Tensor:  # a trace calls it with a fake
        counts["allowed"] += 1
    return x - 1


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


# -- what the programs work on --


class State:
    def __init__(self, grad: bool = False) -> None:
        self.x = torch.arange(12.0).reshape(3, 4).add_(1).requires_grad_(grad)
        self.i = torch.tensor([0, 1, 2])
        self.buf = torch.zeros(3)
        self.square = torch.eye(3)
        self.p = torch.tensor([0.1, 0.2, 0.7])
        self.norm = torch.nn.BatchNorm1d(4)
        self.table = torch.nn.Embedding(3, 2)
        with torch.no_grad():
            self.table.weight.copy_(torch.arange(6.0).reshape(3, 2))
        self.drop = torch.nn.Dropout(0.5)
        self.n = {"calls": 0}
        self.log: list[Any] = []
        self.mark: Any = None

    def spoil(self) -> None:
        self.i = torch.tensor([0, 1, 99])
        self.square = -torch.eye(3)
        self.p = torch.tensor([-1.0, 2.0, 3.0])

    def mend(self) -> None:
        self.i = torch.tensor([0, 1, 2])
        self.square = torch.eye(3)
        self.p = torch.tensor([0.1, 0.2, 0.7])

    def seen(self) -> dict[str, Any]:
        tensors = {
            "x": self.x,
            "buf": self.buf,
            **dict(self.norm.named_buffers()),
            **dict(self.norm.named_parameters()),
        }
        return {
            "tensors": {name: tensor.detach().tolist() for name, tensor in tensors.items()},
            "versions": {name: tensor._version for name, tensor in tensors.items()},
            "grad": {name: tensor.requires_grad for name, tensor in tensors.items()},
            "n": dict(self.n),
            "log": plain(self.log),
            "mark": plain(self.mark),
            "random": torch.get_rng_state().tolist(),
            "counts": dict(counts),
            "grad mode": torch.is_grad_enabled(),
        }


def plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().tolist(), value.requires_grad
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    return value


# -- the parts --

EFFECTS = {
    "dict": "s.n['calls'] = len(s.log) + 7; s.buf.add_(1)",
    "list": "s.buf.add_(1); s.log.append('begin')",
    "attribute": "s.mark = s.x * 3; s.buf.mul_(2).add_(1)",
    "input": "v = s.x.detach().add_(1); s.log.append(v)",
    "view": "v = s.x.detach()[0]; v.mul_(2); s.log.append(v)",
    "out": "torch.add(s.buf, 1, out=s.buf)",
    "item": "s.buf[0] = 5",
    "norm": "v = s.norm(s.x); s.log.append(v)",
    "dropout": "v = s.drop(s.x); s.log.append(v)",
    "randn": "v = torch.randn(3); s.log.append(v)",
    "random used": "v = torch.rand(3) + 1; v = v * 2; s.mark = v",
    "custom": "v = seen(s.x); s.log.append(v)",
    "custom, in place": "fills(s.buf); v = s.buf + 1; s.log.append(v)",
    "allowed": "v = allowed(s.x); s.log.append(v)",
    "own": "v = torch.zeros(3); v.add_(1); s.buf.add_(v)",
    "tuple": "v, w = torch.rand(4).chunk(2); s.log.append(w)",
    "function of a value": "v = Doubled.apply(s.x * 2); s.buf.add_(1); s.log.append(v)",
    "function": "v = Doubled.apply(s.x); s.buf.add_(1); s.log.append(v)",
    "no_grad": "\nwith torch.no_grad():\n    s.buf.add_(1)",
    "gradient": "s.buf.add_(s.table.weight[:, 0]); s.log.append(s.buf.requires_grad)",
    "sizes": "s.buf.unsqueeze_(0); s.log.append(s.buf.shape)",
    "strides": "s.square.t_(); s.log.append(s.square.stride())",
    "nothing": "v = s.x + 1; s.log.append('nothing')",
}

FAILS = {
    "index_select": "s.x.index_select(0, s.i)",
    "embedding": "s.table(s.i)",
    "functional": "torch.nn.functional.embedding(s.i, s.x)",
    "gather": "s.x.gather(0, s.i.reshape(3, 1))",
    "index": "s.x[s.i]",
    "take": "torch.take(s.x, s.i * 10)",
    "index_put_": "s.buf.index_put_((s.i,), torch.ones(3))",
    "accumulate": "s.buf.index_put_((s.i,), torch.ones(3), accumulate=True)",
    "scatter_": "s.buf.scatter_(0, s.i, 1.0)",
    "index_add_": "s.buf.index_add_(0, s.i, torch.ones(3))",
    "setitem": "s.buf.__setitem__(s.i, 3.0) or s.buf",
    "nll": "torch.nn.functional.nll_loss(s.x, s.i)",
    "cross_entropy": "torch.nn.functional.cross_entropy(s.x, s.i)",
    "cholesky": "torch.linalg.cholesky(s.square)",
    "multinomial": "torch.multinomial(s.p, 2)",
    "bernoulli": "torch.bernoulli(s.p)",
    "bernoulli_": "s.buf.bernoulli_(s.p)",
    "custom": "refuses(s.x, s.i)",
    "callee": "helper(s)",
    "callee of a callee": "outer(s)",
    "after an own one": "refuses(seen(s.x), s.i)",
    "in a list": "[s.x[s.i] for _ in range(2)]",
    "in map": "list(map(s.x.__getitem__, [0, s.i]))",
}

CONTEXTS = {
    "bare": """
        EFFECT
        y = s.x * 2
        r = FAIL
        s.log.append("after")
        return r, y
    """,
    "except": """
        y = s.x + 5
        try:
            EFFECT
            z = y * 2
            r = FAIL
            s.log.append("after")
        except Exception as error:
            s.log.append((type(error), str(error), y, z))
            return z
        return r
    """,
    "finally": """
        try:
            EFFECT
            r = FAIL
        finally:
            s.log.append("finally")
            s.n["finally"] = 1
        return r
    """,
    "with": """
        EFFECT
        with Manager(s.log) as m:
            y = s.x * m
            s.log.append("inside")
            r = FAIL
        return r
    """,
    "no_grad": """
        with torch.no_grad():
            EFFECT
            y = s.x * 2
            try:
                r = FAIL
            finally:
                s.log.append(torch.is_grad_enabled())
        return r, y
    """,
    "inference mode": """
        try:
            with torch.inference_mode():
                EFFECT
                y = s.p * 2
                r = FAIL
                s.log.append("after")
        except Exception:
            return y.is_inference(), torch.is_inference_mode_enabled()
        return r
    """,
    "retries": """
        for attempt in range(3):
            EFFECT
            try:
                r = FAIL
                break
            except Exception as error:
                s.log.append((attempt, type(error)))
                s.mend()
        return r, s.x + attempt
    """,
    "generator": """
        def each():
            try:
                for k in range(3):
                    yield s.x * k
            finally:
                s.log.append("closed")
        out = []
        for y in each():
            EFFECT
            out.append(y)
            if len(out) == 2:
                r = FAIL
        return r, out
    """,
    "a generator's step": """
        def each():
            s.log.append("begun")
            EFFECT
            y = s.x * 2
            r = FAIL
            s.log.append("after")
            yield r, y
        out = []
        for r in each():
            out.append(r)
        return out
    """,
    "a generator's second step": """
        def each():
            try:
                yield s.x * 2
                s.log.append("second")
                EFFECT
                yield FAIL
            finally:
                s.log.append("closed")
        steps = each()
        first = next(steps)
        try:
            return first, next(steps), next(steps, "end")
        except Exception as error:
            s.log.append(type(error))
            return first, next(steps, "end")
    """,
    "a generator that handles": """
        def each():
            try:
                EFFECT
                yield FAIL
            except Exception as error:
                s.log.append(type(error))
                yield s.x + 1
        return list(each())
    """,
    "generators in each other": """
        def inner():
            s.log.append("inner")
            EFFECT
            yield FAIL
        def each():
            s.log.append("outer")
            s.buf.add_(1)
            yield from inner()
            s.log.append("after")
        return [y for y in each()]
    """,
    "what is sent": """
        def each():
            y = yield s.x * 2
            EFFECT
            s.log.append(y)
            yield FAIL
        steps = each()
        next(steps)
        try:
            return steps.send(s.x + 1)
        finally:
            s.log.append("sent")
    """,
    "a native call": """
        def one(k):
            s.log.append(k)
            EFFECT
            return FAIL
        try:
            return list(map(one, range(2)))
        finally:
            s.log.append("mapped")
    """,
    "a native call and a generator": """
        def one(k):
            s.log.append(k)
            EFFECT
            return FAIL
        return [*(one(k) for k in range(2))]
    """,
    "a method that native code calls": """
        kept = []
        class Key:
            def __lt__(self, other):
                s.log.append("asked")
                EFFECT
                kept.append(FAIL)
                return True
        return len(sorted([Key(), Key()])), kept
    """,
    "loop": """
        total = s.x
        for k in range(5):
            total = total + k
            EFFECT
            s.n[k] = k
            if k == 3:
                r = FAIL
                s.log.append("after")
        return r, total
    """,
    "handling": """
        try:
            s.n["missing"]
        except KeyError:
            EFFECT
            r = FAIL
        return r
    """,
    "deep": """
        def inner(t):
            EFFECT
            w = t + 1
            q = FAIL
            s.log.append("after")
            return q, w
        def middle(t):
            held = t * 2
            try:
                return inner(held)
            finally:
                s.log.append(held)
        return middle(s.x), s.x
    """,
    "printed": """
        EFFECT
        note(s)
        y = s.x * 3
        s.buf.add_(1)
        r = FAIL
        return r, y
    """,
    "cell": """
        kept = []
        def keep(t):
            nonlocal y
            y = t
            kept.append(t)
        y = None
        EFFECT
        keep(s.x * 2)
        try:
            r = FAIL
        except Exception:
            return y, kept
        return r
    """,
    "only the handler's": """
        a, rows, b = s.x[0], list(s.x * 2), torch.max(s.x, 0)
        EFFECT
        try:
            return FAIL
        except Exception:
            return a, rows[1], b
    """,
    "dropped": """
        y = s.x * 2
        EFFECT
        z = (y + 1).sum()
        del y
        y = z * 2
        r = FAIL
        return r, y
    """,
}


class Manager:
    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __enter__(self) -> int:
        self.log.append("enter")
        return 3

    def __exit__(self, cls: Any, error: Any, lines: Any) -> None:
        self.log.append(("exit", cls))


def helper(s: State) -> torch.Tensor:
    t = s.x * 2
    s.log.append("helper")
    return t.index_select(0, s.i)


def outer(s: State) -> torch.Tensor:
    s.n["outer"] = 1
    try:
        return helper(s) * 2
    finally:
        s.log.append("outer")


@torch.compiler.disable
def note(s: State) -> None:
    s.log.append("printed")


def program(effect: str, fail: str, context: str) -> Callable[[State], Any]:
    lines = []
    for line in textwrap.dedent(CONTEXTS[context]).strip("\n").splitlines():
        text = line.lstrip()
        if text == "EFFECT":
            indent = line[: len(line) - len(text)]
            lines += [indent + part for part in EFFECTS[effect].splitlines() if part]
        else:
            lines.append(line.replace("FAIL", FAILS[fail]))
    source = "def f(s):\n" + textwrap.indent("\n".join(lines), "    ")
    space = dict(globals())
    exec(compile(source, f"<{effect}, {fail}, {context}>", "exec"), space)
    function: Callable[[State], Any] = space["f"]
    return function


# -- running one --


def chain(error: BaseException | None) -> list[Any]:
    found = []
    while error is not None:
        found.append((type(error), str(error)))
        error = error.__context__
    return found


def functions(error: BaseException) -> list[tuple[str, int | None]]:
    """Names and lines of the frames that the exception came through, below this one."""
    return [(row.name, row.lineno) for row in traceback.extract_tb(error.__traceback__)][1:]


def attempt(function: Callable[[State], Any], s: State) -> dict[str, Any]:
    try:
        result: Any = plain(function(s))
        how: Any = None
    except Exception as error:
        result, how = None, (chain(error), functions(error))
    return {"result": result, "error": how, **s.seen()}


def outcomes(function: Callable[[State], Any], grad: bool = False) -> list[dict[str, Any]]:
    """A good call, two bad ones, a good one: each on a state of its own."""
    torch.manual_seed(0)
    for key in counts:
        counts[key] = 0
    found = []
    for bad in (False, True, True, False):
        torch.manual_seed(3)
        s = State(grad)
        if bad:
            s.spoil()
        torch.manual_seed(1)
        found.append(attempt(function, s))
    return found
