"""Operators, subscripts and iteration that meet tensors."""

import torch


def arithmetic(call):
    def f(x, y):
        z = x + y * 2 - 1
        z /= 3
        return z, -x, x**2, 2 - x, x @ y, x // 2, x % 2, abs(x), +x

    call(f, torch.arange(3.0), torch.ones(3))
    call.again(f, torch.arange(3.0), torch.zeros(3))
    call.traced(f)


def comparisons_give_tensors(call):
    def f(x, y):
        return x < y, x == y, x != 1, 0 <= x, ~(x > y), (x > 0) & (y > 0), (x > 0) | True

    call(f, torch.arange(3.0), torch.ones(3))
    call.again(f, torch.ones(3), torch.ones(3))
    call.traced(f)


def inplace_operators_write(call):
    def f(x, xs):
        x += 1
        x *= xs[0]
        xs[0] -= 1
        return x

    x, xs = torch.ones(2), [torch.full((2,), 3.0)]
    call.watch(x, xs)
    call(f, x, xs)
    call(f, x, xs)


def sums_in_containers(call):
    def f(xs):
        return sum(xs), sum(xs, xs[0]), [x + 1 for x in xs], tuple(map(torch.relu, xs))

    call(f, [torch.ones(2), -torch.ones(2)])
    call.again(f, [torch.ones(2), torch.ones(2)])
    call.traced(f)


def user_objects_meet_tensors(call):
    class Scale:
        def __init__(self, k):
            self.k = k

        def __mul__(self, x):
            return x * self.k

        def __rmul__(self, x):
            return ("right", x * self.k)

        def __add__(self, x):
            return NotImplemented

    def f(x, s):
        out = [s * x, x * s]
        try:
            s + x
        except TypeError:
            out.append("no")
        return out

    call(f, torch.ones(2), Scale(3))
    call(f, torch.ones(2), Scale(4))


def lists_of_tensors_are_moved_not_looked_at(call):
    def f(xs, y):
        a = xs + [y]
        b = a * 2
        c = [*b, y][1:]
        c += (y,)
        return c, len(c), {"k": y, **{"z": c[0]}}, y in {"q": 1}

    call(f, [torch.ones(1)], torch.zeros(1))
    call.again(f, [torch.ones(1)], torch.zeros(1))


def identity_in_containers(call):
    def f(x, y):
        return x in [x], [x] == [x], (x, 1) == (x, 1), [x].index(x), x is y

    a, b = torch.ones(1), torch.ones(1)
    call(f, a, b)
    call(f, a, a)


def membership_by_value(call):
    def f(x, y):
        return y in [x], 1 in x

    call(f, torch.ones(1), torch.ones(1))
    call(f, torch.ones(1), torch.zeros(1))


def tensors_as_keys(call):
    def f(x, y):
        d = {x: 1, y: 2}
        s = {x, y}
        return d[x], y in d, len(s), x in s, y in s

    a, b = torch.ones(1), torch.ones(1)
    call(f, a, b)
    call(f, b, a)
    call(f, a, a)


def outside_dict_with_tensor_keys(call):
    def f(d, x):
        return x in d, d.get(x)

    a, b = torch.ones(1), torch.ones(1)
    call(f, {a: 1}, a)
    call(f, {a: 1}, b)
    call(f, {b: 2}, b)


def sets_of_tensors_in_no_order(call):
    def f(x, y):
        return [t + 1 for t in {x, y}]

    call.loose(lambda: None)
    a = torch.ones(1)
    call(f, a, a)


def subscripts(call):
    def f(x, i, m):
        y = x.clone()
        y[i] = 5
        y[1:, 0] = x[0, 1]
        y[m] = 0
        return x[i], x[1:], x[..., 0], x[:, None], x[-1, 1], y

    x = torch.arange(6.0).reshape(3, 2)
    call(f, x, 1, x > 2)
    call.again(f, x + 1, 1, x > 2)
    call(f, x, 2, x > 2)
    call.traced(f)


def iteration(call):
    def f(x):
        a, b = x
        first, *rest = x
        return a + b, [row * 2 for row in x], rest, len(x), list(zip(x, [1, 2])), [*x]

    call(f, torch.arange(6.0).reshape(2, 3))
    call.again(f, torch.ones(2, 3))
    call(f, torch.ones(2, 1))
    call.traced(f)


def taken_apart_wrongly(call):
    def f(x):
        try:
            a, b = x
        except (ValueError, TypeError) as e:
            return str(e)
        return a, b

    call(f, torch.ones(3))
    call(f, torch.ones(1))
    call(f, torch.ones(2))


def values_are_asked_for(call):
    def truth(x):
        return 1 if x.sum() > 2 else 2

    def text(x):
        return f"{x} {x.shape} {x.dtype}"

    def index(x):
        return [10, 20, 30][x[0]]

    def number(x):
        return int(x[0]) + 1

    def order(x):
        return sorted([x[1], x[0]], key=float)

    x = torch.tensor([1, 2])
    for f in (truth, text, index, number, order):
        call(f, x)
        call(f, x - 1)


def shapes(call):
    def f(x):
        n, m = x.shape
        return (
            n * m,
            x.shape == (2, 3),
            x.shape + (1,),
            f"{x.shape}",
            x.shape[0] in (2, 3),
            [*x.shape],
        )

    call(f, torch.ones(2, 3))
    call.again(f, torch.zeros(2, 3))
    call(f, torch.zeros(3, 2))


def dtypes_and_devices(call):
    def f(x, d):
        return (
            x.dtype == d,
            {torch.float32: "f", torch.int64: "i"}[x.dtype],
            f"{x.dtype} {x.device}",
        )

    call(f, torch.ones(1), torch.float32)
    call(f, torch.ones(1), torch.int64)
    call(f, torch.ones(1, dtype=torch.int64), torch.int64)


def errors_of_torch_are_not_believed(call):
    def f(x, y):
        try:
            return x + y
        except (RuntimeError, TypeError) as e:
            return type(e).__name__

    call(f, torch.ones(2), torch.ones(3))
    call(f, torch.ones(2), "x")
    call(f, torch.ones(2), None)
    call(f, [1], torch.ones(2))
    call(f, "x", torch.ones(2))
    call(f, torch.ones(2), torch.ones(2))


def native_callbacks(call):
    import functools
    import operator

    def f(xs):
        return (
            functools.reduce(operator.add, xs),
            functools.reduce(lambda a, b: a * b, xs, 1.0),
            list(map(operator.neg, xs)),
            [y for _, y in sorted(zip([2, 1], xs), key=lambda p: p[0])],
        )

    call(f, [torch.ones(2), torch.full((2,), 3.0)])
    call.again(f, [torch.zeros(2), torch.full((2,), 3.0)])
    call.traced(f)
