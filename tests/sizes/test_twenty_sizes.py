"""Programs of tensors on twenty sizes each, with sizes left open once they were seen to change:
results, strides and errors are eager's."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from tests.sizes.test_entries import AUTOMATIC, DYNAMIC, same  # noqa: E402
from tests.sizes.test_what_changes import compile_with  # noqa: E402

SIZES = [(5, 4), (6, 4), (6, 6), (8, 3), (4, 4), (1, 4), (5, 1), (1, 1), (0, 4), (5, 0), (2, 2),
         (3, 9), (9, 3), (2, 8), (8, 2), (16, 16), (7, 5), (5, 7), (64, 3), (3, 64)]  # fmt: skip

WEIGHT = torch.randn(4, 6)
TABLE = torch.randn(70, 5)


def in_steps(x):
    s = x.shape
    x = x[1:]
    return x, s[0], s, x.shape


def padded(x):
    n = -x.shape[0] % 4
    return torch.cat([x, torch.zeros(n, x.shape[1])]).view(-1, 4, x.shape[1])


def causal(x):
    scores = x @ x.t()
    mask = torch.triu(torch.ones(x.shape[0], x.shape[0], dtype=torch.bool), diagonal=1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1)


def by_branch(x):
    if x.shape[0] > x.shape[1]:
        return x.sum(0)
    return x.sum(1) if x.shape == (4, 4) else x.mean(1, keepdim=True)


def heads(x):
    y = (x[:, None, :] * torch.arange(6.0).view(1, 6, 1)).reshape(x.shape[0], 2, 3, x.shape[1])
    return y.transpose(1, 2).contiguous().view(x.shape[0], -1)


def sizes_as_numbers(x):
    a, b = x.shape
    return (
        x * (a / max(b, 1)) + a // 2 - min(a, b),
        a * b == x.numel(),
        divmod(a, 3),
        (a, b) in [(4, 4)],
    )


PROGRAMS = {
    "pointwise": lambda x: (x * 2 - x.abs()).relu() + x.shape[0],
    "broadcast": lambda x: x + torch.ones(x.shape[1]) + torch.ones(x.shape[0], 1),
    "square": lambda x: x + x.t(),
    "product": lambda x: x @ WEIGHT,
    "gram": lambda x: (x.t() @ x, x @ x.t()),
    "joined": lambda x: (torch.cat([x, x * 2], 1), torch.stack([x, x], -1)),
    "view": lambda x: x.view(-1, 4),
    "flat": lambda x: (x.flatten(), x.t().reshape(-1), x.unsqueeze(1).squeeze()),
    "expanded": lambda x: x.unsqueeze(0).expand(3, -1, -1).reshape(-1, x.shape[1]),
    "halves": lambda x: (x[: x.shape[0] // 2], x[x.shape[0] // 2 :], x[-2:], x[::2], x[:, :3]),
    "one row": lambda x: (x[0], x[:, -1], x[-1]),
    "norm": lambda x: F.layer_norm(x, (x.shape[1],)),
    "softmax": lambda x: (x.softmax(0), x.log_softmax(-1), x.sum(), x.amax(0), x.argmax(1)),
    "laid out": lambda x: (
        x.t().contiguous(),
        x.is_contiguous(),
        x.t().is_contiguous(),
        x.stride(),
    ),
    "pieces": lambda x: (x.chunk(2), x.split(2), x.unbind(0)),
    "written": lambda x: x.clone().add_(x.shape[0]),
    "looked up": lambda x: TABLE[torch.arange(x.shape[0])] * x.shape[1],
    "embedded": lambda x: F.embedding(torch.arange(x.shape[0]), TABLE),
    "made": lambda x: (torch.full(x.shape, 2.0), x.new_zeros(x.shape[0], 2), torch.zeros_like(x)),
    "without rule": lambda x: torch.cumprod(x, 0) + x,
    "iterated": lambda x: [row * 2 for row in x],
    "chosen": lambda x: torch.where(x > 0, x, -x),
    "image": lambda x: F.avg_pool2d(x[None, None].repeat(1, 1, 2, 2), 2),
    "in steps": in_steps,
    "padded": padded,
    "causal": causal,
    "by branch": by_branch,
    "heads": heads,
    "sizes as numbers": sizes_as_numbers,
}


def outcome(f, x):
    try:
        return f(x)
    except Exception as error:
        return type(error), str(error)


def alike(a, b):
    if isinstance(a, list):
        return type(b) is list and alike(tuple(a), tuple(b))
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, torch.Tensor) and a.numel() > 0:
        layout = [s for n, s in zip(a.shape, a.stride(), strict=True) if n > 1]
        other = [s for n, s in zip(b.shape, b.stride(), strict=True) if n > 1]
        return (
            a.shape == b.shape and layout == other and torch.equal(a.nan_to_num(), b.nan_to_num())
        )
    return same(a, b)


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("numbers", [AUTOMATIC, DYNAMIC], ids=["automatic", "dynamic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_size_gives_what_eager_gives(name, numbers, grad):
    f = PROGRAMS[name]
    fast = compile_with(f, numbers)
    for sizes in SIZES + SIZES[:6]:
        x = torch.randn(sizes).requires_grad_(grad)
        expected = outcome(f, x)
        assert alike(outcome(fast, x), expected), sizes
