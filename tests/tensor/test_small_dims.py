# ruff: noqa: E402
"""Dimensions of one element or none: kernels give them strides that neither rules nor fakes know for
certain. What a program sees of strides and of decisions that rest on them is eager's."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import stator
from tests.tensor.helpers import assert_same

LAYOUTS = {
    "row": ((1, 4), (4, 1)),
    "row, far": ((1, 4), (7, 1)),
    "row, still": ((1, 4), (0, 1)),
    "row, turned": ((1, 4), (1, 1)),
    "column": ((4, 1), (1, 1)),
    "column, far": ((4, 1), (1, 9)),
    "column of a table": ((4, 1), (3, 1)),
    "inner": ((2, 1, 3), (3, 100, 1)),
    "one channel": ((2, 1, 4, 4), (16, 16, 4, 1)),
    "one channel, last": ((2, 1, 4, 4), (16, 1, 4, 1)),
    "points": ((2, 3, 1, 1), (3, 1, 3, 3)),
    "one image": ((1, 3, 2, 2), (1, 4, 2, 1)),
    "none": ((0, 3), (5, 7)),
    "one": ((1,), (5,)),
}

OPERATIONS = {
    "nothing": lambda x: x,
    "add": lambda x: x + 1,
    "relu": lambda x: x.relu(),
    "clone": lambda x: x.clone(),
    "turned": lambda x: x.transpose(0, -1),
    "unsqueezed": lambda x: x.unsqueeze(-1),
    "viewed": lambda x: x.view(1, *x.shape, 1),
    "sliced": lambda x: x[..., ::2],
    "like": torch.zeros_like,
    "flipped": lambda x: x.flip(0),
    "sorted": lambda x: x.sort(-1)[0],
    "chosen": lambda x: torch.where(x > 0, x, 1.0),
    "joined": lambda x: torch.cat([x, x]),
    "summed": lambda x: x.sum(-1, keepdim=True),
    "normed": lambda x: F.layer_norm(x, x.shape[-1:]),
    "promoted": lambda x: x + torch.ones((), dtype=torch.float64),
    "broadcast": lambda x: x + torch.ones(x.shape[-1]),
    "powers": lambda x: 2**x,
    "lower": lambda x: torch.tril(x[None]),
    "upper": lambda x: x.unsqueeze(-1).triu(1),
    "sums": lambda x: x.cumsum(0),
    "soft": lambda x: x.softmax(-1),
    "masked": lambda x: x.masked_fill(x > 1, 0.0),
    "repeated": lambda x: x.repeat(*(1 for _ in x.shape)),
    "padded": lambda x: F.pad(x, (0, 0)),
    "stacked": lambda x: torch.stack([x]),
    "picked": lambda x: x.index_select(0, torch.arange(x.shape[0])),
    "narrow": lambda x: x.narrow(0, 0, x.shape[0]).half(),
    "clamped": lambda x: x.clamp(0, 1),
}


def told(x, operate):
    y = operate(x)
    z = y.contiguous()
    after = (y + 1).stride()
    whole = y.is_contiguous(), z is y, y is x, y.dim_order(ambiguity_check=False)
    one = [y.stride(i) for i in range(y.dim())]
    return y, y.stride(), one, whole, z.stride(), after, y.reshape(-1).stride()


def laid_out(layout):
    return torch.arange(240.0).as_strided(*LAYOUTS[layout])


@pytest.mark.parametrize("operation", OPERATIONS)
def test_strides_are_those_of_the_tensor(operation):
    operate = OPERATIONS[operation]
    for layout in LAYOUTS:
        x = laid_out(layout)
        assert_same(stator.compile(told, backend="eager")(x, operate), told(x, operate))


def test_other_strides_are_other_inputs():
    fast = stator.compile(told, backend="eager")
    for _ in range(2):
        for layout in ("row", "row, far", "row, still", "row, turned"):
            x = laid_out(layout)
            assert_same(fast(x, OPERATIONS["add"]), told(x, OPERATIONS["add"]))


def test_certain_strides_make_no_break():
    def f(x):
        y = (x * 2).unsqueeze(1)
        return y, y.stride(0), y.stride(dim=-1), x.stride(), (x + 1).stride()

    x = torch.ones(2, 3)
    assert_same(stator.compile(f, fullgraph=True)(x), f(x))
    with pytest.raises(stator.Unsupported, match="one element"):
        stator.compile(lambda x: (x * 2).unsqueeze(1).stride(1), fullgraph=True)(x)


VIEWS = {
    "view": lambda x: x.view(1, *x.shape, 1),
    "view, folded": lambda x: x.view(x.shape[0], -1),
    "transpose": lambda x: torch.transpose(x, 0, -1),
    "permute": lambda x: x.permute(*reversed(range(x.dim()))),
    "unsqueeze": lambda x: x.unsqueeze(0).unsqueeze(-1).unsqueeze(1),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(),
    "squeeze one": lambda x: x.unsqueeze(0).squeeze(0),
    "expand": lambda x: x.expand(1, *x.shape),
    "expand more": lambda x: x[None].expand(3, *x.shape),
    "narrow": lambda x: x.narrow(-1, 0, 1),
    "select": lambda x: x.unsqueeze(1).select(0, 0),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "movedim": lambda x: x.movedim(0, -1),
    "unfold": lambda x: x.unfold(-1, 1, 1),
    "part": lambda x: x[..., 0:1],
    "part, steps": lambda x: x[..., None, ::2],
    "part, none": lambda x: x[None, 0:1],
    "item": lambda x: x[0],
    "chain": lambda x: x.transpose(0, -1)[None].unsqueeze(-1)[..., 0:1, :].view(-1, 1),
    "made": lambda x: x.new_zeros(1, 4, 1).transpose(0, 1)[None],
}


@pytest.mark.parametrize("view", VIEWS)
def test_strides_of_views_make_no_break(view):
    """Of an input, which has known strides: no kernel is asked."""
    looked = 0
    for layout in LAYOUTS:
        for dynamic in (None, True):
            x, told = laid_out(layout), (lambda x: VIEWS[view](x).stride())
            try:
                expected = told(x)
            except (RuntimeError, IndexError):
                continue
            looked += 1
            fast = stator.compile(told, backend="eager", fullgraph=True, dynamic=dynamic)
            assert fast(x) == expected, (layout, dynamic)
    assert looked > 4


def test_strides_of_what_a_body_is_given_are_not_known():
    def f(x):
        y = (x * 2).unsqueeze(1)
        return torch.utils.checkpoint.checkpoint(
            lambda y: (y, y[:].stride(1)), y, use_reentrant=False
        )

    x = torch.ones(2, 3)
    assert_same(stator.compile(f, backend="eager")(x), f(x))


# -- images: kernels choose between two orders by strides of dimensions of one element --

IMAGES = {
    "one channel": lambda: torch.randn(2, 1, 4, 4),
    "one channel, last": lambda: torch.randn(2, 1, 4, 4).to(memory_format=torch.channels_last),
    "one point": lambda: torch.randn(2, 6, 2, 2)[::1, ::2, ::2, ::2],
    "one image of one channel": lambda: torch.randn(1, 1, 4, 4).to(
        memory_format=torch.channels_last
    ),
    "one column": lambda: torch.randn(2, 3, 4, 1),
    "one column, last": lambda: torch.randn(2, 4, 1, 3).permute(0, 3, 1, 2),
    "one column, turned": lambda: torch.randn(4, 3, 2, 1).permute(2, 1, 0, 3) * 1,
}

LAYERS = {
    "mul": lambda x: x * 2,
    "normed": lambda x: F.layer_norm(x, x.shape[-1:]),
    "batch": lambda x: F.batch_norm(x, None, None, torch.ones(x.shape[1]), None, True),
    "pooled": lambda x: F.avg_pool2d(x, 1),
    "scaled": lambda x: F.interpolate(x, scale_factor=1),
    "joined": lambda x: torch.cat([x, x], 1),
    "conv": lambda x: F.conv2d(x, torch.ones(3, x.shape[1], 1, 1)),
    "last": lambda x: x.contiguous(memory_format=torch.channels_last),
}


def orders(x):
    return x.is_contiguous(), x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("first", LAYERS)
@pytest.mark.parametrize("image", IMAGES)
def test_orders_of_images(image, first):
    """The first question makes torch's fakes answer from then on."""
    torch.manual_seed(0)
    x = IMAGES[image]()
    for second in ("mul", "pooled", "joined", "conv", "normed"):

        def answers(x, second=second):
            y = LAYERS[first](x)
            before = orders(y)
            z = LAYERS[second](y)
            return y, before, z, orders(z)

        assert_same(stator.compile(answers, backend="eager")(x), answers(x))
