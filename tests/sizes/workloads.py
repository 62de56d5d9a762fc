"""What people do with sizes and numbers that change, each as a small program.

A row is a function, the calls to make, how many entries there are then, and how many graphs stock
Dynamo of torch 2.13 makes. `bench/entries.py` counts both anew.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from tests.sizes import models


class Row(NamedTuple):
    function: Callable[..., Any]
    calls: Callable[[], list[tuple[Any, ...]]]
    entries: int
    stock: int


ROWS: dict[str, Row] = {}


def row(calls, entries, stock):
    def add(f):
        ROWS[f.__name__] = Row(f, calls, entries, stock)
        return f

    return add


def of(*size):
    count = torch.Size(size).numel()
    return (torch.arange(count, dtype=torch.float32) % 17 / 7).reshape(size)


def ids(batch, length):
    return torch.arange(batch * length).reshape(batch, length) % models.VOCABULARY


def fixed(make):
    """A module with the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


NET = fixed(models.Perceptron)
BERT = fixed(models.Bert)
GPT = fixed(models.Gpt)
CONV = fixed(lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)))


class Counter:
    step = 0


class Cache:
    def __init__(self):
        self.kept = None

    def attend(self, x):
        self.kept = x if self.kept is None else torch.cat([self.kept, x])
        return torch.softmax(self.kept @ x.t(), 0).t() @ self.kept


@row(lambda: [(of(n, 8),) for n in (3, 4, 8, 16, 5, 32)], 2, 2)
def changing_batches(x):
    return NET(x)


@row(lambda: [(of(n, 8),) for n in (16, 16, 16, 16, 7, 16, 16, 7, 9)], 2, 2)
def smaller_last_batch(x):
    return NET(x).sum()


@row(lambda: [(ids(2, n),) for n in (5, 7, 9, 12, 30, 6)], 2, 2)
def text_lengths(tokens):
    return BERT(tokens)[1]


@row(lambda: [(of(2, 3, n, n),) for n in (8, 12, 16, 24, 32)], 2, 2)
def image_sizes(x):
    return CONV(x).mean((2, 3))


@row(lambda: [(of(2, 3, n, m),) for n, m in ((8, 10), (12, 14), (16, 8), (24, 20), (32, 34))], 2, 2)
def two_dims_at_once(x):
    y = CONV(x)
    return F.interpolate(y, size=x.shape[2:], mode="nearest")


@row(lambda: [(of(1, 4), Cache())] * 8, 3, 3)
def growing_cache(x, cache):
    return cache.attend(x)


@row(lambda: [(of(4), 0.1 / n) for n in range(1, 8)], 2, 2)
def learning_rates(x, rate):
    return x - rate * x.sin()


@row(lambda: [(of(4), Counter())] * 8, 2, 3)
def step_counter(x, counter):
    counter.step += 1
    return x * counter.step


@row(lambda: [(of(40, 4), n) for n in (3, 4, 9, 17, 30, 39)], 2, 2)
def positions(table, at):
    return table[at] + table[at - 1] * at


@row(lambda: [(of(2, n), 40) for n in (5, 7, 9, 12, 30, 6)], 2, 2)
def padding_to_a_length(x, length):
    return F.pad(x, (0, length - x.shape[1])).softmax(-1)


@row(lambda: [(of(2, n),) for n in (5, 7, 9, 13, 30, 6)], 2, 2)
def padding_to_a_multiple(x):
    return F.pad(x, (0, -x.shape[1] % 8)).reshape(2, -1, 8).sum(-1)


@row(lambda: [(of(2, 20), n) for n in (3, 4, 5, 8, 2)], 2, 2)
def beam_widths(scores, width):
    found = scores.topk(width, -1)
    return found.values, found.indices // 5


@row(lambda: [(of(n, 8),) for n in (3, 5, 3, 5, 3, 7, 5, 3)], 2, 2)
def back_and_forth(x):
    return NET(x) * x.shape[0]


@row(lambda: [(of(3, 5), t) for t in (1.0, 0.7, 0.9, 1.3, 0.2)], 2, 2)
def temperatures(logits, temperature):
    return (logits / temperature).softmax(-1)


@row(lambda: [(of(4), epoch, 20) for epoch in range(8)], 2, 2)
def epochs(x, epoch, last):
    return x * (1 - epoch / last) + epoch


@row(lambda: [([of(2, 3)] * n,) for n in (2, 3, 4, 5)], 4, 4)
def list_lengths(parts):
    return torch.cat(parts).sum(0)


@row(lambda: [(of(2, n, 4),) for n in (5, 7, 9, 12)], 2, 2)
def recurrent_lengths(x):
    return (x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[None, :, None]).tanh()


def texts():
    """The calls of a decoder: a prompt, and then one token at a time, each with what was kept."""
    past, calls = None, []
    for length in (4, 1, 1, 1, 1, 1, 1):
        calls.append((ids(1, length), past))
        with torch.no_grad():
            past = GPT(*calls[-1])[1]
    return calls


@row(texts, 3, 3)
def decoding(tokens, past):
    with torch.no_grad():
        return GPT(tokens, past)
