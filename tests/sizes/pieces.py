"""Programs with breaks in them whose sizes and numbers change from call to call.

A row is a function, the calls to make, how many entries each of its pieces has then, and how many
graphs stock Dynamo of torch 2.13 makes (None: it compiles nothing, since it leaves a loop, a handler
or a generator with a break in it to CPython). `bench/entries.py` counts both anew.
"""

import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

pause = torch._dynamo.graph_break


class Row(NamedTuple):
    function: Callable[..., Any]
    calls: Callable[[], list[tuple[Any, ...]]]
    pieces: list[int]
    stock: int | None


ROWS: dict[str, Row] = {}


def row(calls, pieces, stock):
    def add(f):
        ROWS[f.__name__] = Row(f, calls, pieces, stock)
        return f

    return add


def of(n, m=4):
    return torch.arange(n * m, dtype=torch.float32).reshape(n, m) / 7


def sizes(*given):
    return lambda: [(of(n),) for n in given]


def numbers(*given):
    return lambda: [(of(3), n) for n in given]


S = sizes(3, 4, 5, 6, 9, 17)
N = numbers(3, 4, 5, 6, 9, 17)
F = numbers(0.5, 0.25, 0.75, 1.5, 2.5, -0.0)


@row(S, [2, 2], 4)
def size_behind(x):
    n = x.shape[0]
    y = x * 2
    pause()
    return y + n


@row(N, [2, 2], 4)
def int_behind(x, n):
    y = x * n
    pause()
    return y + n


@row(F, [2, 2], 4)
def float_behind(x, n):
    y = x * n
    pause()
    return y + n


@row(S, [2, 2, 2], 6)
def two_breaks(x):
    n = x.shape[0]
    y = x * n
    pause()
    y = y + n
    pause()
    return y * n


@row(N, [1, 2], 3)
def int_only_behind(x, n):
    y = x * 2
    pause()
    return y * n


@row(S, [2, 1, 2, 2], None)
def in_loop(x):
    n = x.shape[0]
    for i in range(3):
        x = x * n
        pause()
    return x + n


def callee(x, n):
    y = x * n
    pause()
    return y + n


@row(S, [2, 2], 8)
def in_callee(x):
    n = x.shape[0]
    y = callee(x + 1, n * 2)
    return y * n


def deeper(x, n):
    return callee(x * n, n + 1) - n


@row(S, [2, 2], 11)
def nested(x):
    n = x.shape[0]
    return deeper(x, n) + n


@row(S, [2, 2], 4)
def in_list(x):
    kept = [x.shape[0], x * 2]
    pause()
    return kept[1] * kept[0]


@row(S, [2, 2], 4)
def in_dict(x):
    kept = {"n": x.shape[0], "x": x * 2}
    pause()
    return kept["x"] * kept["n"]


class Box:
    pass


@row(S, [2, 2], None)
def in_object(x):
    b = Box()
    b.n, b.x = x.shape[0], x * 2
    pause()
    return b.x * b.n


@row(S, [2, 2], 4)
def computed(x):
    n = x.shape[0] * 2 + 1
    y = x * 2
    pause()
    return y * n


def paused(x):
    y = x * 2
    pause()
    return y


@row(S, [2, 2], 5)
def on_stack(x):
    return x.shape[0] * (paused(x) + x.shape[0] // 2)


def gen(x, n):
    for i in range(3):
        yield x * n
        pause()


@row(S, [2, 2, 2], None)
def generator(x):
    n = x.shape[0]
    out = 0
    for y in gen(x, n):
        out = out + y
    return out + n


@row(S, [2, 2, 2, 2], None)
def with_try(x):
    n = x.shape[0]
    try:
        y = x * n
        pause()
        y = y + n
        raise ValueError
    except ValueError:
        y = y * 2
        pause()
        y = y + n
    return y * n


@row(S, [2, 2], 4)
def with_block(x):
    n = x.shape[0]
    with torch.no_grad():
        y = x * n
        pause()
        y = y + n
    return y * n


@row(S, [2, 3], 5)
def whole_shape(x):
    s = x.shape
    y = x * 2
    pause()
    return y.reshape(s[1], s[0]) + s[0]


@row(S, [2, 2, 2], 6)
def intermediate(x):
    y = torch.cat([x, x])
    pause()
    z = y[1:] * y.shape[0]
    pause()
    return z + z.shape[0]


@row(lambda: [(of(3), types.SimpleNamespace(n=n)) for n in (3, 4, 5, 6, 9, 17)], [1, 1], 4)
def attribute(x, o):
    y = x * o.n
    o.n += 1
    pause()
    return y + o.n


@row(lambda: [(of(n, m),) for n, m in ((3, 4), (5, 6), (7, 8), (9, 5), (12, 17))], [2, 2], 4)
def two_dims(x):
    n, m = x.shape
    y = x * 2
    pause()
    return y.reshape(m, n) * m + n


@row(S, [2, 2], 4)
def cell(x):
    n = x.shape[0]

    def inner(y):
        return y * n

    y = inner(x)
    pause()
    return inner(y) + n


@row(S, [2, 2], 4)
def halves(x):
    n = x.shape[0] / 2
    y = x * 2
    pause()
    return y * n


@row(S, [2, 2], 8)
def a_slice(x):
    s = slice(0, x.shape[0] - 1)
    y = x * 2
    pause()
    return y[s] + 1


@row(S, [2, 2], 4)
def item_behind(x):
    y = x * 2
    k = int(x.sum().item())
    return y * k


@row(lambda: [(of(n), of(m)) for n, m in ((3, 5), (4, 6), (5, 7), (6, 8), (9, 9))], [2, 2, 2], 6)
def two_tensors(x, y):
    a = x * 2
    pause()
    b = y * 2
    pause()
    return a.sum(0) + b.sum(0) + a.shape[0] + b.shape[0]


@row(S, [2, 6], 5)
def in_comprehension(x):
    n = x.shape[0]
    ys = [paused(x * n) + i for i in range(3)]
    return sum(ys) * n


@row(S, [2, 2], 4)
def tuple_of(x):
    t = (x.shape[0], (x * 2, x.shape[0] + 1))
    pause()
    n, (y, m) = t
    return y * n + m


@row(S, [2, 4], None)
def while_loop(x):
    i = 0
    while i < x.shape[0] - 1 and i < 2:
        x = x + x.shape[0]
        pause()
        i += 1
    return x


@row(S, [2, 2, 2], 6)
def compare(x):
    y = x * 2
    pause()
    if y.shape[0] > 2:
        y = y + 1
    pause()
    return y * 2


# --- pieces that are met when the numbers are open already: one entry will do for them ---


def late(*given):
    """The break is met only after the third call."""
    return lambda: [(of(n), i > 1) for i, n in enumerate(given)]


L = late(3, 4, 5, 6, 9, 17)


def pause_if(wanted):
    if wanted:
        pause()


@row(L, [3, 1], 5)
def late_size(x, wanted):
    n = x.shape[0]
    y = x * n
    pause_if(wanted)
    return y * n


@row(L, [3, 2], 10)
def late_in_containers(x, wanted):
    n = x.shape[0]
    kept = [n, {"k": n + 1, "y": x * n}, (n, slice(0, n - 1))]
    pause_if(wanted)
    y = kept[1]["y"] + kept[0]
    pause_if(wanted)
    return y[kept[2][1]] * kept[1]["k"] + kept[2][0]


@row(L, [3, 1], None)
def late_in_object(x, wanted):
    b = Box()
    b.n, b.y = x.shape[0], x * 2
    pause_if(wanted)
    return b.y * b.n


def late_callee(x, n, wanted):
    y = x * n
    pause_if(wanted)
    return y + n


@row(L, [3, 1], 9)
def late_in_callee(x, wanted):
    n = x.shape[0] + 1
    return late_callee(x, n, wanted) * n


@row(L, [3, 2], 7)
def late_twice(x, wanted):
    n = x.shape[0]
    y = torch.cat([x, x])
    pause_if(wanted)
    y = y + n
    pause_if(wanted)
    return y[n:] * y.shape[0]


@row(L, [3, 1], 5)
def late_cell(x, wanted):
    n = x.shape[0]

    def inner(y):
        return y * n

    y = inner(x)
    pause_if(wanted)
    return inner(y) + n


@row(L, [3, 1], None)
def late_in_try(x, wanted):
    n = x.shape[0]
    y = x * n
    try:
        pause_if(wanted)
        return y + n
    finally:
        y = y * 2


@row(lambda: [(of(3), types.SimpleNamespace(n=n), n > 4) for n in (3, 4, 5, 6, 9)], [2, 1], 6)
def late_attribute(x, o, wanted):
    y = x * o.n
    o.n += 1
    pause_if(wanted)
    return y + o.n


@row(lambda: [(of(3), n / 4, n > 4) for n in (3, 4, 5, 6, 9)], [3, 1], 5)
def late_float(x, n, wanted):
    y, half = x * n, n / 2
    pause_if(wanted)
    return y * half + n
