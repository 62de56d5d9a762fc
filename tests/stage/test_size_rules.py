"""Meta rules asked one after the other, as a model's layers are, of tensors whose sizes are symbols:
few questions become conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from number_tools import Number, Numbers

FLOAT = 6
FUNCTION, METHOD, OPERATOR = range(3)
TENSOR, SAME, TENSORS = 1, 2, 3


class Tensor:
    def __init__(self, t: Numbers, sizes: Any, strides: Any) -> None:
        self.t = t
        self.sizes = tuple(t.number(s) for s in sizes)
        self.strides = tuple(t.number(s) for s in strides)

    def described(self) -> tuple[Any, ...]:
        sizes, strides = ([n.index for n in part] for part in (self.sizes, self.strides))
        return "tensor", FLOAT, tuple(sizes), tuple(strides), False

    def shape(self) -> list[Any]:
        return [s.text() for s in self.sizes]

    def __getitem__(self, key: Any) -> Tensor:
        return ask(self.t, "getitem", OPERATOR, self, key)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return lambda *args: ask(self.t, name, METHOD, self, *args)


def new(t: Numbers, *sizes: Any) -> Tensor:
    """A contiguous tensor."""
    stride, strides = t.number(1), []
    for size in reversed([t.number(s) for s in sizes]):
        strides.append(stride)
        stride = stride * size
    return Tensor(t, sizes, reversed(strides))


def argument(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.described()
    if isinstance(value, Number):
        return "number", value.index
    if isinstance(value, (tuple, list)):
        return type(value)(map(argument, value))
    if isinstance(value, slice):
        return slice(*(argument(v) for v in (value.start, value.stop, value.step)))
    return value


def ask(t: Numbers, rule: str, way: int, *args: Any) -> Any:
    answer, results, _ = t.sizes.ask(rule, way, tuple(map(argument, args)), {})
    if answer == SAME:
        return args[0]
    made = [
        Tensor(t, *([Number(t, n) for n in part] for part in (sizes, strides)))
        for _, sizes, strides, _ in results
    ]
    assert answer in (TENSOR, TENSORS), f"{rule} says {answer}"
    return made[0] if answer == TENSOR else made


def attention(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    def heads(x: Tensor) -> Tensor:
        return x.view(b, s, 4, 16).transpose(1, 2)

    q, k, v = (heads(ask(t, "linear", FUNCTION, new(t, b, s, 64), new(t, 64, 64))) for _ in "qkv")
    scores = ask(t, "div", FUNCTION, q.matmul(k.transpose(-1, -2)), 4.0)
    out = scores.softmax(-1).matmul(v).transpose(1, 2)
    return ask(t, "add", OPERATOR, out.contiguous().view(b, s, 64), new(t, b, s, 64))


def fused_heads(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    parts = new(t, b, s, 192).split(64, 2)
    return parts[1].view(b, s, 4, 16).permute(0, 2, 1, 3).reshape(b * 4, s, 16)


def fused_attention(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    q, k, v = (new(t, b, s, 64).view(b, s, 4, 16).transpose(1, 2) for _ in "qkv")
    mask = new(t, s, s).__getitem__((None, None)).expand(b, 1, -1, -1)
    out = ask(t, "scaled_dot_product_attention", FUNCTION, q, k, v, mask)
    return out.transpose(1, 2).view(b, s, 64)


def convolutions(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    def normed(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
        x = ask(t, "conv2d", FUNCTION, x, weight, None, (stride, stride), (padding, padding))
        means = new(t, weight.sizes[0])
        return ask(t, "nn.functional.batch_norm", FUNCTION, x, means, means, means, means, False)

    x = normed(new(t, b, 3, h, w), new(t, 8, 3, 7, 7), 2, 3)
    x = ask(t, "nn.functional.max_pool2d", FUNCTION, x, 3, 2, 1)
    y = normed(normed(x, new(t, 16, 8, 3, 3), 2, 1), new(t, 16, 16, 3, 3), 1, 1)
    x = ask(t, "add", OPERATOR, y, normed(x, new(t, 16, 8, 1, 1), 2, 0))
    return ask(t, "nn.functional.adaptive_avg_pool2d", FUNCTION, x, (1, 1)).flatten(1)


def pixel_shuffle(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    x = new(t, b, 32, h, w).view(b, 8, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3)
    return x.reshape(b, 8, h * 2, w * 2)


def groups(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    x = new(t, b, 32, h, w).view(b, 4, -1)
    return ask(t, "mul", FUNCTION, x, x.mean(-1, True)).view(b, 32, h, w)


def flatten(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, b, 8, h, w).flatten(1)


def shift(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    x = new(t, b, s)
    return ask(t, "sub", OPERATOR, x[:, 1:], x[:, :-1])


def rotate(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    x = new(t, b, 4, s, 16)
    one = x[..., :8]
    two = x[..., 8:]
    x = ask(t, "cat", FUNCTION, (ask(t, "neg", FUNCTION, two), one), -1)
    return ask(t, "mul", OPERATOR, x, new(t, s, 16))


def rows_of_four(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, b, 8).view(-1, 4)


def rows_of_four_of_any(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, b, s).view(-1, 4).view(b, s)


def cache(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return ask(t, "cat", FUNCTION, [new(t, b, 4, h, 16), new(t, b, 4, 1, 16)], 2)


def broadcast(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return ask(t, "add", FUNCTION, new(t, b, s, 8), new(t, b, 1, 8))


def two_inputs(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return ask(t, "add", FUNCTION, new(t, b, s), new(t, b, h))


def pad(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    x = ask(t, "cat", FUNCTION, [new(t, b, s), new(t, b, -s % 8)], 1)
    return x.view(b, -1, 8)


def first_rows(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, s, 8)[:h]


def rows_up_to_an_int(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, s, 8)[: t.symbol("n", 5)]


def rows_but_the_last(t: Numbers, b: Number, s: Number, h: Number, w: Number) -> Tensor:
    return new(t, s, 8)[: t.symbol("n", -5)]


# Values of b, s, h, w; the conditions; the result's shape.
B, S, H, W, N = (("symbol", name) for name in "bshwn")
PROGRAMS = {
    attention: ([], [B, S, 64]),
    fused_heads: ([], [("mul", 4, B), S, 16]),
    fused_attention: ([], [B, S, 64]),
    convolutions: ([], [B, 16]),
    pixel_shuffle: ([], [B, 8, ("mul", 2, H), ("mul", 2, W)]),
    groups: ([], [B, 32, H, W]),
    flatten: ([], [B, ("mul", 8, ("mul", H, W))]),
    shift: ([], [B, ("sub", S, 1)]),
    rotate: ([], [B, 4, S, 16]),
    rows_of_four: ([], [("mul", 2, B), 4]),
    rows_of_four_of_any: ([("eq", ("mod", ("mul", B, S), 4), 0)], [B, S]),
    cache: ([], [B, 4, ("add", H, 1), 16]),
    broadcast: ([], [B, S, 8]),
    two_inputs: ([("eq", S, H)], [B, S]),
    pad: (
        [("ne", ("mod", ("neg", S), 8), 0)],
        [B, ("floordiv", ("add", S, 7), 8), 8],
    ),
    first_rows: ([("ge", S, H)], [H, 8]),
    rows_up_to_an_int: ([("gt", N, 0), ("ge", S, N)], [N, 8]),
    rows_but_the_last: (
        [("lt", N, 0), ("ge", ("add", S, N), 0), ("gt", ("add", S, N), 0)],
        [("add", S, N), 8],
    ),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_few_questions_become_conditions(program: Callable[..., Tensor]) -> None:
    t = Numbers()
    result = program(t, t.size("b", 4), t.size("s", 12), t.size("h", 12), t.size("w", 6))
    assert (t.conditions(), result.shape()) == PROGRAMS[program]
