# ruff: noqa: E402
"""Generators with tensors in them, closed, thrown into and delegated to: one graph."""

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _torch
from tests.tensor.helpers import assert_same, check

_torch.attach()


def summing(x):
    total = x
    try:
        while True:
            try:
                more = yield total
            except ValueError:
                total, more = total * 2, 1
            if more is None:
                return total
            total = total + more
    finally:
        total = None


def sent_and_thrown(x):
    g = summing(x)
    first, second, third = next(g), g.send(x), g.throw(ValueError("twice"))
    try:
        g.send(None)
    except StopIteration as end:
        return first, second, third, end.value


def delegated(x):
    def both():
        a = yield from summing(x)
        b = yield from summing(a)
        return a, b

    g = both()
    out = [next(g), g.send(3), g.send(None), g.throw(ValueError)]
    try:
        g.send(None)
    except StopIteration as end:
        return out, end.value


def raises_when_closed(x):
    def g():
        try:
            yield x.sin()
        except GeneratorExit as closing:
            raise KeyError("closed") from closing

    it = g()
    y = next(it)
    try:
        it.close()
    except KeyError as error:
        return y, error.args, type(error.__cause__), list(it)


def yields_when_closed(x):
    def g():
        try:
            yield x.sin()
        except GeneratorExit:
            yield x.cos()
        yield x.tan()

    it = g()
    y = next(it)
    try:
        it.close()
    except RuntimeError as error:
        return y, error.args, list(it)


def closed_through_another(x):
    log = []

    def inner():
        try:
            yield x
        finally:
            log.append(x + 1)

    def outer():
        try:
            yield from inner()
        finally:
            log.append(x + 2)

    it = outer()
    next(it)
    it.close()
    it.close()
    return log


@pytest.mark.parametrize(
    "function",
    [sent_and_thrown, delegated, raises_when_closed, yields_when_closed, closed_through_another],
)
def test_one_graph(function):
    check(function, torch.arange(3.0))


@stator.disable
def note(log, what):
    log.append(what)


def breaks_when_closed(x, log):
    def g():
        try:
            yield x.sin()
        except GeneratorExit:
            note(log, "closing")
            raise KeyError("closed") from None
        finally:
            log.append(x.cos())

    it = g()
    y = next(it)
    try:
        it.close()
    except KeyError:
        note(log, "caught")
    return y + 1


def ends_when_it_dies(x, log):
    def g():
        try:
            yield x.sin()
        finally:
            log.append("dies")

    y = next(g())
    log.append("after")
    return y + 1


@pytest.mark.parametrize("function", [breaks_when_closed, ends_when_it_dies])
def test_pieces(function):
    x, want_log = torch.arange(3.0), []
    want = function(x, want_log)
    fast = stator.compile(function, backend="eager")
    for _ in range(3):
        log = []
        assert_same(fast(x, log), want)
        assert_same(log, want_log)
