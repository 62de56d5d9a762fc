"""Which sizes and strides of tensors are left open after a miss."""

import re

import pytest

torch = pytest.importorskip("torch")

from tests.sizes.test_what_changes import compile_with  # noqa: E402

x = torch.arange(240.0)


def total(x, y=None):
    return (x * 2).sum() if y is None else (x * 2).sum() + y.sum()


def opened(calls):
    fast, said = compile_with(total), []
    for args in calls:
        before = len(fast.metrics["recompiles"])
        assert torch.equal(fast(*args), total(*args))
        new = fast.metrics["recompiles"][before:]
        said += [re.split("; |[)]$", text.partition(" will do for ")[2])[0] for text in new]
    return said


def shaped(*sizes):
    count = torch.Size(sizes).numel()
    return x[:count].view(sizes)


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (shaped(3, 4), shaped(5, 4), "L['x'].size(0)"),
        (shaped(3, 4), shaped(3, 5), "L['x'].size(1)"),
        (shaped(3, 4), shaped(6, 5), "L['x'].size(0), L['x'].size(1)"),
        (shaped(2, 3, 4), shaped(2, 5, 4), "L['x'].size(1)"),
        (shaped(4, 3).t(), shaped(4, 5).t(), "L['x'].size(0)"),
        (shaped(3, 8)[:, :4], shaped(3, 8)[:, :5], "L['x'].size(1)"),
        (shaped(3, 8)[:, :4], shaped(3, 9)[:, :4], "L['x'].stride(0)"),
        (shaped(3, 8)[:, :4], shaped(5, 9)[:, :4], "L['x'].size(0), L['x'].stride(0)"),
        (shaped(4, 4), shaped(4, 4).t(), ""),
        (shaped(3, 4), shaped(3, 1).expand(3, 4), ""),
        (shaped(3, 4), shaped(3, 8)[:, ::2], ""),
        (shaped(3, 4), shaped(12), ""),
        (shaped(3, 4), shaped(5, 4).double(), ""),
        (shaped(3, 4), shaped(5, 4).clone().requires_grad_(), ""),
        (shaped(3, 4), torch.nn.Parameter(shaped(5, 4).clone()), ""),
        (shaped(3, 4), shaped(1, 4), "L['x'].size(0)"),
    ],
)
def test_sizes_that_alone_differ_are_left_open(then, now, said):
    assert opened([(then,), (now,)]) == [said]


def test_sizes_of_several_tensors_are_left_open_together():
    calls = [(shaped(3, 4), shaped(2)), (shaped(5, 4), shaped(7))]
    assert opened(calls) == ["L['x'].size(0), L['y'].size(0)"]
    calls = [(shaped(3, 4), shaped(2)), (shaped(5, 4), shaped(2).double())]
    assert opened(calls) == [""]


def test_the_entry_that_fits_best_decides():
    calls = [(shaped(3, 4),), (shaped(3, 4).double(),), (shaped(3, 5).double(),)]
    assert opened(calls) == ["", "L['x'].size(1)"]
