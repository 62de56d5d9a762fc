"""Programs whose sizes and numbers change from call to call, each with the calls to make.

A row is a function that gives (callable, list of argument tuples). It runs once plainly and once
compiled, so both have objects of their own. What the calls give must be the same to the bit: types,
-0.0, NaN, dtypes, strides, exceptions, and what is left in the arguments.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

Row = Callable[[], tuple[Callable[..., Any], list[tuple[Any, ...]]]]
ROWS: list[Row] = []


def row(f: Row) -> Row:
    ROWS.append(f)
    return f


def each(*values: Any) -> list[tuple[Any, ...]]:
    """One call for each value, with the same tensor in front."""
    return [(torch.arange(6.0), v) for v in values]


def tensors(*sizes: Any) -> list[tuple[Any, ...]]:
    return [(of(*(s if isinstance(s, tuple) else (s,))),) for s in sizes]


def of(*size: int) -> torch.Tensor:
    return torch.arange(math.prod(size), dtype=torch.float32).reshape(size) / 7


class Level(enum.IntEnum):
    LOW = 4


class Number(int):
    pass


INTS = (3, 4, 5, 0, 1, -1, -7, 100, 257, 2**31, 2**40, 2**53 + 1, 2**62, 2**63 - 1, 2**70, True, 6)
FLOATS = (0.5, 0.25, 0.75, 0.0, -0.0, 1.0, float("nan"), float("inf"), 1e308, 5e-324, 3, 2.5)


# --- sizes ---


@row
def batch():
    return lambda x: torch.relu(x * 2 + 1), tensors((3, 4), (4, 4), (5, 4), (1, 4), (0, 4), (6, 4))


@row
def size_after_write_in_place():
    def f(x):
        y = x.clone()
        y.add_(1)
        return y * y.shape[0], x.size(0), y.stride(), y.numel()

    return f, tensors(3, 4, 5, 6, 1, 0, 300)


@row
def size_of_operation_without_rule():
    def f(x):
        y = torch.special.i0e(x)
        z = torch.linalg.vector_norm(y, dim=0, keepdim=True)
        return y.shape[0], z.shape, y.numel() + 1

    return f, tensors((3, 2), (4, 2), (5, 2), (7, 3))


@row
def factories_by_shape():
    def f(x, y):
        return torch.zeros(x.shape) + y.view(x.shape) + x.new_ones(x.shape[0], 1)

    return f, [(of(n, 2), of(2 * n)) for n in (3, 4, 5, 6, 1, 400)]


@row
def shape_in_pieces():
    def f(x):
        y = x.view(*x.shape[:-1], 2, 3)
        s = x.shape[:-1] + (6,)
        return y.transpose(-2, -1).reshape(s), x.shape[1:], x.shape.numel(), [*x.shape]

    return f, tensors((3, 6), (4, 6), (5, 6), (2, 5, 6), (3, 5, 6))


@row
def view_of_multiples():
    return lambda x: x.view(-1, 4) * 2, tensors(8, 12, 16, (6, 3), 20, (6, 2))


@row
def equal_or_broadcast():
    return lambda x, y: x + y, [
        (of(a), of(b)) for a, b in ((5, 5), (6, 6), (7, 7), (5, 1), (1, 5), (6, 7), (8, 8))
    ]


@row
def tail():
    return lambda x: x[1:] + x[:-1].sum(), tensors(5, 6, 7, 2, 1, 0, 3)


@row
def tail_broadcasts():
    return lambda x, y: x[1:] + y, [
        (of(a), of(b)) for a, b in ((5, 4), (6, 5), (7, 6), (2, 6), (2, 1))
    ]


@row
def slices():
    return lambda x, n: x[:n], each(4, 5, 3, -2, 0, 99, 1, -99, 6)


@row
def both_ends():
    return lambda x, n: (x[n : n + 3], x[n : n + 3].storage_offset()), each(1, 2, 3, 0, 4, -1, -5)


@row
def index():
    return lambda x, n: x[n] * 2, each(1, 2, 3, -1, 0, 5, 6, -7)


@row
def old_size():
    def f(x):
        s = x.shape
        x = x[1:]
        return s[0], x.shape[0], x

    return f, tensors(5, 6, 7, 3)


@row
def shape_compared():
    def f(x):
        if x.shape == (3, 4):
            return x + 1
        return x - 1 if x.shape in [(5, 4), (6, 4)] else x

    return f, tensors((3, 4), (4, 4), (5, 4), (6, 4), (3, 3), (3, 4))


@row
def shape_as_key():
    def make():
        cache = {}

        def f(x):
            if x.shape not in cache:
                cache[x.shape] = len(cache)
            return x + cache[x.shape], dict(cache)

        return f

    return make(), tensors(3, 4, 5, 3, 4, 6)


@row
def shape_in_text():
    return lambda x: (x + 1, f"{x.shape[0]} of {x.shape}"), tensors(3, 4, 5, 6)


@row
def turns_by_size():
    def f(x):
        y = x.new_zeros(())
        for i in range(x.shape[0]):
            y = y + x[i] * i
        return y

    return f, tensors(3, 4, 5, 6, 1, 0)


@row
def halves():
    def f(x, n):
        k = 0
        while n > 1:
            n //= 2
            k += 1
        return x * k

    return f, each(8, 9, 15, 16, 31, 1, 0, -3)


@row
def transposed():
    a = [of(3, 4), of(4, 4), of(4, 5).t(), of(5, 5).t(), of(5, 4), of(6, 6)[:, ::2], of(7, 5).t()]
    return lambda x: (x * 2 + 1, x.stride(), x.is_contiguous()), [(t,) for t in a]


@row
def channels_last():
    a = [of(2, 3, 4, 5), of(3, 3, 4, 5), of(4, 3, 4, 5)]
    a += [
        t.to(memory_format=torch.channels_last)
        for t in (of(2, 3, 4, 5), of(3, 3, 6, 5), of(4, 3, 6, 6))
    ]
    return lambda x: (x + 1, x.stride(), (x * 2).stride()), [(t,) for t in a]


@row
def expanded():
    a = [of(3, 1).expand(3, n) for n in (4, 5, 6)] + [of(3, 4), of(3, 5), of(1, 5).expand(3, 5)]
    return lambda x: (x + 1, x.stride(), x.contiguous().stride()), [(t,) for t in a]


@row
def shared_memory():
    def f(a, b):
        a.add_(1)
        return b * 2

    buf = of(24)
    return f, [
        (buf[0:4], buf[4:8]),
        (buf[0:5], buf[5:9]),
        (buf[0:6], buf[4:8]),
        (buf[0:7], buf[12:17]),
    ]


@row
def one_tensor_twice():
    def f(a, b):
        a.mul_(2)
        return a + b

    x, y = of(3), of(4)
    return f, [(x, x), (y, y), (of(5), of(5)), (of(6), of(6))]


@row
def resized():
    def f(x, y):
        x.resize_(y.shape[0])
        x.zero_()
        return x + y, x.shape

    return f, [(of(n), of(m)) for n, m in ((4, 4), (5, 4), (5, 5), (4, 6), (6, 6))]


@row
def transposed_in_place():
    def f(x):
        x.t_()
        return x.shape, x.stride(), x + 1

    return f, tensors((3, 3), (4, 4), (5, 3), (4, 5))


@row
def cats():
    def f(x, y):
        z = torch.cat([x, y])
        return z, z.shape[0], z.view(2, -1) if z.shape[0] % 2 == 0 else None

    return f, [(of(a), of(b)) for a, b in ((2, 2), (3, 3), (4, 5), (0, 5), (1, 1), (7, 2))]


@row
def unbinds():
    def f(x):
        a, *b = x
        return a, len(b), [*x.split(2)], x.chunk(2), len(x)

    return f, tensors((3, 2), (4, 2), (5, 2), (6, 2), (1, 2))


@row
def softmax_and_matmul():
    def f(q, k, v):
        w = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), -1)
        return w @ v, w.shape

    return f, [
        (of(2, n, 4), of(2, m, 4), of(2, m, 4)) for n, m in ((3, 3), (4, 4), (5, 6), (1, 7), (8, 1))
    ]


@row
def mask_by_length():
    def f(x):
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        at = torch.arange(n)
        return x.unsqueeze(1).masked_fill(~mask, 0.0).sum(-1), at * 2, at[:, None] <= at

    return f, tensors((2, 3), (2, 4), (2, 5), (3, 5), (1, 6), (2, 1))


@row
def batch_like_channels():
    return lambda x: x.mean(1, keepdim=True) * x.shape[0], tensors(
        (3, 3), (4, 3), (5, 3), (3, 3), (6, 3)
    )


@row
def number_of_no_dims():
    return lambda x, t: (x + t, t * 2), [(of(3), torch.tensor(k)) for k in (1, 2, 3)]


@row
def padded():
    def f(x):
        n = x.shape[0]
        return torch.nn.functional.pad(x, (0, -n % 8)), n + (-n % 8)

    return f, tensors(5, 6, 7, 8, 16, 17, 1)


@row
def checkpointed():
    def f(x, n):
        y = checkpoint(lambda t: t * (n * 2), x, use_reentrant=False)
        return y + n * 2

    return f, each(2, 3, 4, 5)


@row
def parameters():
    layers = [torch.nn.Linear(n, 2) for n in (3, 4, 5)]
    for m in layers:
        torch.nn.init.constant_(m.weight, 0.5)
        torch.nn.init.constant_(m.bias, 0.25)
    return lambda m, x: m(x), [(m, of(k, m.in_features)) for m in layers for k in (2, 3, 4)]


# --- ints ---


@row
def ints():
    return lambda x, n: (x * 2, n + 1, n * n, n // 3, n % 5, -n, n - n, n), each(*INTS)


@row
def divided():
    return lambda x, n: (n / 3, 7 // n, 7 % n, 1 / n, n**2, abs(n), divmod(n, 4)), each(*INTS)


@row
def divided_by():
    return lambda x, n: (x * (1 / n), n // -3, n % -3), each(2, 3, 5, -7, 0, 1)


@row
def shifted():
    return lambda x, n: (n << 2, n >> 1, n & 6, n | 1, n ^ 3, ~n, 1 << n), each(
        1, 2, 3, 0, 40, 63, 64, -1
    )


@row
def raises_unused():
    def f(x, n):
        try:
            q = 10 // n
        except ZeroDivisionError:
            return x - 1
        return x + 1

    return f, each(2, 5, 3, 0, -1)


@row
def raises_away():
    def f(x, n):
        try:
            z = (10 // n) * 0 + (7 % n) - (7 % n)
        except ZeroDivisionError:
            return x - 1, None
        return x + 1, z

    return f, each(2, 5, 3, 0, -1)


@row
def powers():
    return lambda x, n: (2**n, n**2, n**0, (-2) ** n), each(2, 3, 4, 0, 1, -1, 62, 63, 64)


@row
def min_and_max():
    def f(x, n):
        return x.long() * max(0, 1 - n / 10), min(n, 5), max(n, 2, 7), min(3, n), max(n, 4.5)

    return f, each(2, 3, 15, 10, 0, -4, 5)


@row
def types():
    def f(x, n):
        return (
            type(n),
            isinstance(n, int),
            isinstance(n, bool),
            type(n) is int,
            n + 1,
            float(n),
            bool(n),
        )

    return f, each(3, 4, True, 5, False, Level.LOW, Number(6), 2.0, 7, 0)


@row
def by_subclass():
    return lambda x, n: (x + n, n + 1, n), each(3, 4, Level.LOW, Number(6), True, 5)


@row
def identity():
    def f(x, n, m):
        return x, n is m, n + 1 is m + 1, n is 5, x.shape[0] is x.shape[0], int(n) is n, n + 0 is n  # noqa: F632

    return f, [(of(k), n, m) for k, n, m in ((3, 5, 5), (4, 6, 6), (400, 7, 8), (300, 1000, 1000))]


@row
def keys_and_sets():
    def f(x, n):
        d = {3: "a", n: "b"}
        return x + len(d), d, {n, 4, 5}, n in d, n in (1, 2, 5), [1, n, 3].index(n)

    return f, each(3, 4, 5, 6, 1, 2**62)


@row
def repeats():
    return lambda x, n: ([x] * n, "ab" * n, list(range(n)), (1,) * n, "x".rjust(n)), each(
        3, 4, 5, 0, -1, 1
    )


@row
def texts():
    return lambda x, n: (f"{n}", str(n), repr(n), f"{n:04d}", "%d" % n, "{}".format(n)), each(
        3, 4, 5, -6
    )


@row
def sorting():
    return lambda x, n, m: (sorted([n, 4, m]), max([n, m], key=abs), sum([n, m, 1]), min(n, m)), [
        (of(3), n, m) for n, m in ((3, 5), (4, 5), (5, 4), (6, -9), (4, 4), (0, 0))
    ]


@row
def truth():
    def f(x, n):
        if n:
            x = x + 1
        return x * 2 if not n else x, n and 5, n or 7, bool(n)

    return f, each(3, 4, 5, 0, -1, 0)


@row
def chained_comparison():
    return lambda x, n: x + 1 if 3 < n <= 10 else x - 1, each(4, 5, 6, 11, 3, 10, -2)


@row
def numbers_in_containers():
    def f(x, n):
        a, b = [n, n + 1], [n, n + 1]
        return a == b, (n, 1) < (n, 2), n in a, a.index(n + 1), a.count(n), tuple(a), {"k": n + 2}

    return f, each(3, 4, 5, 257, 1000)


@row
def fresh_results_are_not_one():
    def f(x, a):
        p, q = a + 1.0, a + 1.0
        return x + 1 if [p] == [q] else x - 1, p in (q,), p == q, (p,) == (q,)

    return f, each(1.0, 2.0, float("nan"), 3.0)


@row
def counter_on_object():
    class Counter:
        k = 0

    c = Counter()

    def f(x):
        c.k += 1
        c.k += 1
        if c.k % 10 == 0:
            return x * c.k
        return x + c.k, c.k

    return f, tensors(*[3] * 24)


@row
def counter_on_module():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0
            self.sizes = []

        def forward(self, x):
            self.steps += 1
            self.sizes.append(x.shape[0])
            return x / self.steps, list(self.sizes)

    return M(), tensors(3, 3, 3, 4, 5, 6, 3)


@row
def global_counter():
    state = {"n": 0}

    def f(x):
        state["n"] += x.shape[0]
        return x * state["n"]

    return f, tensors(3, 3, 4, 5, 3, 6)


@row
def closure_counter():
    def make():
        n = 0

        def f(x):
            nonlocal n
            n = n + 2
            return x - n, n

        return f

    return make(), tensors(*[3] * 8)


@row
def defaults():
    def f(x, n=3, *, m=4):
        return x * n + m

    return functools.partial(f, m=5), [(of(3),), (of(3), 4), (of(4), 5), (of(5), 6)]


@row
def breaks_with_numbers():
    def f(x, n):
        k = x.shape[0] + n
        y = x * n
        torch._dynamo.graph_break()
        return y + k, k, y.shape[0]

    return f, [(of(a), b) for a, b in ((3, 2), (4, 2), (5, 3), (6, 4), (7, 5), (8, 6))]


@row
def breaks_in_a_loop():
    def f(x, xs, i=0):
        while i < len(xs):
            x = x + xs[i]
            torch._dynamo.graph_break()
            i += 1
        return x

    return f, [(of(3), [1, 2, 3, 4, 5, 6, 7, 8, 9]), (of(4), [1, 2, 3])]


@row
def generator_of_numbers():
    def f(x, n):
        g = (n + i for i in range(3))
        a = next(g)
        return x * a, list(g), sum(n * j for j in (1, 2))

    return f, each(3, 4, 5, 0, -1)


@row
def numbers_in_exceptions():
    def f(x, n):
        try:
            if n > 4:
                raise ValueError(n + 1, x.shape[0])
            return x + n
        except ValueError as e:
            return x - 1, e.args

    return f, each(3, 4, 5, 6, 7, 1)


@row
def exception_leaves():
    def f(x, n):
        m = n * 2 + 1
        if m > 10:
            raise RuntimeError(f"too much: {m}")
        return x, m

    return f, each(2, 3, 4, 5, 6, 7)


@row
def fails_after_write():
    def f(x, y, n):
        x.add_(n)
        try:
            return x + y.view(n, -1).sum(0)[: x.shape[0]].index_select(0, torch.tensor([n * 2]))
        except (RuntimeError, IndexError):
            return x - 1, n

    return f, [(of(4), of(12), n) for n in (2, 3, 4, 5, 1, 6)]


@row
def checks():
    def f(x, n):
        torch._check(n > 2)
        return x + n

    return f, each(3, 4, 5, 6, 2, 7)


# --- floats ---


@row
def floats():
    return lambda x, a: (x * a, x + a, a + 1, a * 2, -a, a - a, a == a, a), each(*FLOATS)


@row
def floats_of_int_tensor():
    return lambda x, a: (x.long() * a, torch.full((2,), a), x.add(x, alpha=a)), each(
        0.5, 0.25, 2.0, 3.0
    )


@row
def float_functions():
    return lambda x, a: (
        math.floor(a),
        math.ceil(a),
        int(a),
        round(a),
        math.trunc(a),
        abs(a),
        float(a),
    ), each(0.5, 1.5, 2.5, -0.5, -2.5, 1e18, float("nan"), float("inf"), -0.0)


@row
def square_root():
    return lambda x, a: (x / math.sqrt(a), math.sqrt(a)), each(
        2.0, 3.0, 4, 9, -1.0, 0.0, -0.0, float("inf")
    )


@row
def float_division():
    return lambda x, a: (a // 0.1, a % 0.3, 1.0 / a, a / 3, divmod(a, 0.25)), each(
        1.0, 2.0, -1.0, 0.3, -0.0, 0.0
    )


@row
def float_powers():
    return lambda x, a: (a**2, a**0.5, 2.0**a), each(1.0, 2.0, 3.0, -2.0, 0.0, 1e200, 2000.0)


@row
def sign_of_zero():
    def f(x, a):
        if a == 0.0:
            return x * math.copysign(1.0, a), x * a, f"{a}"
        return x + a

    return f, each(1.0, 2.0, 0.0, -0.0, 3.0, -0.0)


@row
def not_a_number():
    def f(x, a):
        return x + 1 if a == a else x - 1, a != a, a < 1, a >= 1

    return f, each(1.0, 2.0, float("nan"), 3.0, float("inf"))


@row
def min_of_floats():
    nan = float("nan")
    return lambda x, a, b: (min(a, b), max(a, b), min(a, 1), max(0, a), max(0.0, a)), [
        (of(2), a, b)
        for a, b in (
            (1.0, 2.0),
            (2.0, 1.5),
            (nan, 1.0),
            (1.0, nan),
            (0.0, -0.0),
            (-0.0, 0.0),
            (1.0, 1.0),
        )
    ]


@row
def newton():
    def f(x, a):
        for _ in range(60):
            a = (a + 2.0 / a) / 2.0
        return x, a

    return f, each(1.0, 2.0, 3.0, 5.0)


@row
def learning_rate():
    w = of(4)

    def f(x, lr):
        w.sub_(x * lr)
        return w.clone()

    return f, [(of(4), lr) for lr in (0.1, 0.05, 0.025, 0.0125, 0.0)]


@row
def dropout_probability():
    def f(x, p):
        torch.manual_seed(3)
        return torch.nn.functional.dropout(x, p)

    return f, [(of(6), p) for p in (0.5, 0.25, 0.75, 0.0, 1.0)]


@row
def int_and_float_in_turns():
    return lambda x, n: (x * n, n + 1, n / 2), each(1, 2, 2.0, 3, 3.5, True, 4, 1.0)


@row
def dims_and_kernels():
    def f(x, d):
        return x.sum(dim=d), x.transpose(0, d), x.unfold(0, d + 1, 1)

    return f, [(of(3, 4), d) for d in (0, 1, -1, 2, 0)] + [(of(5, 4), 1), (of(6, 4), 1)]


@row
def number_in_a_function_of_autograd():
    state = {"scale": 2.0}

    class Reversal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -grad * state["scale"]

    def f(x, scale):
        y = Reversal.apply(x * 2)
        return (y * y).sum()

    def g(x, scale):
        state["scale"] = scale
        x.requires_grad_()
        f(x, scale).backward()
        return x.grad

    return g, [(of(n), s) for n, s in ((3, 2.0), (3, 5.0), (4, 2.0), (5, 3.0))]


@row
def graph_without_inputs():
    def f(x):
        y = torch.empty((x.size(0) // 13) * 13)
        return torch.tensor(y.numel() == 0), torch.ones(3)

    return f, tensors(8, 9, 20, 30)
