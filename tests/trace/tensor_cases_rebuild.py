"""Iterators and generators with tensors in them, given out half consumed."""

import itertools

import torch


def generator_that_goes_on_with_tensors(call):
    def steps(x, rate):
        total = x * 0
        while True:
            total = total + x * rate
            got = yield total
            if got is not None:
                rate = got

    def f(x):
        g = steps(x, 2)
        next(g)
        return g, next(g)

    for n in (3, 3):
        x = torch.arange(float(n))
        g, total = call(f, x)
        call.note([next(g), g.send(10), total])
    call.one_entry(f)


def generators_that_share_a_tensor(call):
    def f(x):
        y = x + 1
        doubled = (y * k for k in range(5))
        next(doubled)
        return doubled, (y.add_(1) for _ in range(3)), y

    for _ in range(2):
        doubled, added, y = call(f, torch.ones(2))
        call.note([next(doubled), next(added), next(doubled), y])
    call.one_entry(f)


def tools_over_tensors(call):
    def f(ts):
        made = [t * 2 for t in ts]
        its = [
            iter(made),
            zip(made, ts),
            enumerate(made),
            itertools.accumulate(made),
            itertools.chain(made, ts),
            iter({"a": made[0], "b": made[1]}.values()),
            map(torch.sum, made),
        ]
        for it in its:
            next(it)
        return its

    for k in (1.0, 2.0):
        for it in call(f, [torch.full((2,), k), torch.ones(2), torch.zeros(2)]):
            call.note(list(it))
    call.one_entry(f)
