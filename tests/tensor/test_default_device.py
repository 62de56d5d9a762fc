# ruff: noqa: E402
"""A default device is a mode of torch functions; compiled functions make their tensors there."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import stator
from stator import _torch
from tests.tensor.helpers import assert_same, compiled, count

_torch.attach()


@contextlib.contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


def where(*tensors):
    return [tensor.device.type for tensor in tensors]


def made_in_all_ways(x):
    a, b = torch.zeros(3), torch.ones(2, device="cpu")
    c, d = torch.arange(3, device=None), torch.full((2,), 5.0)
    e, f = torch.zeros_like(x), x.new_zeros(2)
    return where(a, b, c, d, e, f), d * 2, x + 1, e


def shape_only(x):
    return torch.empty(2, 3).shape, (x + 1).sum()


def by_keywords(x):
    make = {"dtype": torch.float64, "device": None}
    return torch.ones(2, **make), torch.linspace(0, 1, steps=3, dtype=torch.float64)


PROGRAMS = [made_in_all_ways, shape_only, by_keywords]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_one_graph(function, device, backend):
    x = torch.arange(4.0)
    fast = compiled(function, backend)
    with default_device(device):
        want = function(x)
        for _ in range(2):
            assert_same(fast(x), want)
        assert count(fast) == 1
    assert_same(fast(x), function(x))
    assert count(fast) == 2  # without a mode is something else
    with default_device(device):
        assert_same(fast(x), want)
    assert count(fast) == 2


def test_the_device_is_guarded_by_what_it_is():
    def f(x):
        return torch.ones(2).device.type, x + 1

    x = torch.ones(2)
    fast = compiled(f)
    for device in ("cpu", "meta", "cpu", "meta"):
        with default_device(device):  # another object each time
            assert_same(fast(x), f(x))
        with torch.device(device):
            assert_same(fast(x), f(x))
    assert count(fast) == 2


def test_the_innermost_device_counts():
    def f(x):
        return torch.ones(2).device.type, x + 1

    x = torch.ones(2)
    fast = compiled(f)
    with default_device("cpu"), torch.device("meta"):
        assert_same(fast(x), f(x))
    with default_device("meta"), torch.device("cpu"):
        assert_same(fast(x), f(x))


def set_inside(x):
    with torch.device("meta"):
        a = torch.ones(2)
        b = a * 2
    return where(a, b, torch.ones(1)), x + 1


def set_by_a_function(x):
    torch.set_default_device("meta")
    a = torch.ones(2) + 1
    torch.set_default_device(None)
    return where(a, torch.ones(1)), x + 1


@pytest.mark.parametrize("function", [set_inside, set_by_a_function])
def test_pieces(function):
    x = torch.ones(2)
    want = function(x)
    fast = compiled(function, fullgraph=False)
    for _ in range(3):
        assert_same(fast(x), want)
    traces = fast.metrics["traces"]
    assert_same(fast(x), want)
    assert fast.metrics["traces"] == traces


def calls_by_way_of_the_mode(x):
    return F.pad(x, (1, 1)), torch.signal.windows.cosine(3).device.type


def test_functions_that_ask_for_overrides():
    """Torch calls them without the mode: what they make within is not on the default device."""
    x = torch.ones(2, 2)
    fast = compiled(calls_by_way_of_the_mode, fullgraph=False)
    for device in ("cpu", "meta"):
        with default_device(device):
            want = calls_by_way_of_the_mode(x)
            for _ in range(2):
                assert_same(fast(x), want)


class Doubles(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.ones else result


def test_other_modes_are_asked():
    def f(x):
        return torch.ones(2), x + 1

    x = torch.ones(2)
    fast = compiled(f, fullgraph=False)
    for order in (
        (),
        (Doubles(),),
        (torch.device("cpu"), Doubles()),
        (Doubles(), torch.device("cpu")),
    ):
        with contextlib.ExitStack() as stack:
            for mode in order:
                stack.enter_context(mode)
            want = f(x)
            assert_same(fast(x), want)
    with Doubles():
        assert_same(compiled(f)(x), f(x))
