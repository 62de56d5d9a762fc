"""Common operations and layers on open sizes: rules know their results, torch's fakes are not asked;
and the results are those of plain Python at other sizes."""

import copy

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import stator  # noqa: E402
from stator import _fakes  # noqa: E402
from tests.sizes.census import Block  # noqa: E402

LONG = torch.long


def rows(n):
    return (torch.randn(n, 4),)


def images(n):
    return (torch.randn(n, 3, 8, 8),)


def last(n):
    return (torch.randn(n, 3, 8, 8).to(memory_format=torch.channels_last),)


def sequences(n):
    return (torch.randn(n, 5, 16),)


def in_place(x):
    x = x * 2
    x += 1
    x -= 0.5
    x *= x.abs()
    x /= 2
    x.relu_().clamp_(0, 3).add_(x.t().t(), alpha=2)
    x.masked_fill_(x > 1, 0.25)
    return F.silu(F.hardswish(x, inplace=True), inplace=True)


def views_written(x):
    y = torch.zeros(x.shape[0], 8)
    y[:, :4] = x
    y[:, 4:] = 1
    y[0] = y[-1]
    y[1:, 5].mul_(3)
    y.t()[2].copy_(x[:, 0])
    return y


def an_input_written(x):
    x[1:] += 1
    x.view(-1)[0] = 9
    return x.sum()


def gradients_written(x):
    y = x.sin()
    y += x
    y.relu_()
    z = torch.zeros(x.shape)
    z[:, 0] = y[:, 1]
    return y, z, z.requires_grad


def picked(x):
    n = x.shape[0]
    at = torch.arange(n)
    return (x[at], x[at, at % 4], x[:, at[:2]], x[None, at], x[at[:, None], at[None, :2] % 4],
            x[at, None], x[at[:2]], x.gather(1, x.long() * 0), x.gather(0, at[:, None] * 0))  # fmt: skip


def picked_of_stretched(x):
    n = x.shape[0]
    rows, columns = torch.arange(n), torch.arange(4)
    mask = x.long().expand(2, n, 4)[0]
    wide = rows.expand(3, n)
    four = rows[:3, None, None, None] * 0, rows[None, None, :, None]
    return (mask[rows[:, None], columns], wide[four], wide.t()[rows, rows * 0], x.t()[columns],
            x[:, None].expand(-1, 2, -1)[:, :, columns], x[::2][rows[:1]])  # fmt: skip


def chosen(x):
    y = x.t().contiguous().t()
    return torch.where(x > 0, y, 0.0), torch.where(y > 0, x, y), torch.where(y > 0, y, -1.0)


def moved(x):
    n = x.shape[0]
    return (x.repeat(2, 1), x.repeat(n, 1, 2), x.roll(1, 0), x.roll((1, 2), (0, 1)), x.roll(3),
            x.flip(0), x.flip((0, 1)), F.pad(x, (1, 2)), F.pad(x, (0, 0, n, 1), value=2.0),
            torch.diff(x, dim=0), torch.diff(x, dim=0, prepend=x[:1]), x.min(), x.max(),
            torch.min(x, x * 2), torch.where(x > 0, x, 0.0), ~(x > 0), x.isnan())  # fmt: skip


def resized(x):
    return (F.interpolate(x, scale_factor=2), F.interpolate(x, scale_factor=(0.5, 1.5)),
            F.interpolate(x, (5, 6), mode="bilinear", align_corners=False),
            F.interpolate(x, x.shape[0] + 2, mode="bicubic"))  # fmt: skip


def lost(x):
    target = torch.arange(x.shape[0]) % 4
    return (F.cross_entropy(x, target), F.nll_loss(x.log_softmax(1), target, reduction="sum"),
            F.mse_loss(x, x * 2), F.l1_loss(x, x * 2), F.cross_entropy(x, target, label_smoothing=0.1))  # fmt: skip


def without_gradients(x):
    with torch.no_grad():
        return x.expand(2, -1, -1), x[0], x.t(), x.reshape(-1), x.unsqueeze(0), x.contiguous()


class Heads(nn.Module):
    def __init__(self, **wanted):
        super().__init__()
        self.heads, self.wanted = nn.MultiheadAttention(16, 4, batch_first=True), wanted

    def forward(self, x):
        return self.heads(x, x, x, **self.wanted)


def attention_drops(x):
    y = x.view(x.shape[0], 5, 4, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(y, y * 2, y, dropout_p=0.5)


class Biased(nn.Module):
    """Attention with a learned mask, as T5 has it."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(8, 4)

    def forward(self, x):
        y = x.view(x.shape[0], 5, 4, 4).transpose(1, 2)
        at = torch.arange(5)
        mask = self.bias((at[:, None] - at[None]).abs()).permute(2, 0, 1).unsqueeze(0)
        return F.scaled_dot_product_attention(y, y * 2, y, attn_mask=mask)


def encoder(dropout=0.0):
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=dropout, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


PROGRAMS = {
    **{f.__name__: (lambda f=f: f, rows) for f in (in_place, views_written, an_input_written, picked,
                                                   picked_of_stretched, chosen, moved, lost, without_gradients)},
    "gradients_written": (lambda: gradients_written, lambda n: (torch.randn(n, 4, requires_grad=True),)),
    "without_gradients of a leaf": (lambda: without_gradients,
                                    lambda n: (torch.randn(n, 4, requires_grad=True),)),
    "resized": (lambda: resized, images),
    "block": (lambda: Block().eval(), images),
    "block, training": (lambda: Block().train(), images),
    "channels last": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2),
                                            nn.AdaptiveAvgPool2d(1)).eval(), last),
    "layer norm of a transposed tensor": (lambda: lambda x: F.layer_norm(x.transpose(1, 2), (5,)),
                                          sequences),
    "heads": (lambda: Heads(need_weights=False), sequences),
    "heads, weights": (Heads, sequences),
    "heads, weights of each": (lambda: Heads(average_attn_weights=False), sequences),
    "encoder, training": (lambda: encoder().train(), sequences),
    "encoder, dropout": (lambda: encoder(0.1).train(), sequences),
    "lstm": (lambda: nn.LSTM(16, 6, 2, batch_first=True), sequences),
    "lstm, both ways": (lambda: nn.LSTM(16, 6, bidirectional=True, bias=False), sequences),
    "lstm, dropout": (lambda: nn.LSTM(16, 6, 3, dropout=0.5).train(), sequences),
    "gru": (lambda: nn.GRU(16, 6, 2, dropout=0.5, batch_first=True).train(), sequences),
    "rnn": (lambda: nn.RNN(16, 6, 2, bidirectional=True), sequences),
    "rnn of relu": (lambda: nn.RNN(16, 6, nonlinearity="relu", batch_first=True), sequences),
    "a learned mask": (Biased, sequences),
    "attention_drops": (lambda: attention_drops, sequences),
}  # fmt: skip


def told(value):
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    if not isinstance(value, torch.Tensor):
        return value
    return value.tolist(), value.dtype, value.shape, value.stride(), value.requires_grad


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_is_not_asked_about(name, monkeypatch):
    asked = []
    monkeypatch.setattr(
        _fakes, "watcher", lambda f, symbolic: symbolic and asked.append(f.__name__)
    )
    make, args = PROGRAMS[name]
    torch.manual_seed(0)
    plain = make()
    traced = copy.deepcopy(plain)
    fast = stator.compile(traced.forward if isinstance(traced, nn.Module) else traced,
                          backend="eager", dynamic=True)  # fmt: skip
    for n in (4, 6, 3):
        torch.manual_seed(n)
        given = args(n)
        again = copy.deepcopy(given)
        torch.manual_seed(n)
        result = fast(*again)
        torch.manual_seed(n)
        assert told(result) == told(plain(*given))
        assert told(again) == told(given)
        if isinstance(plain, nn.Module):
            assert told(list(traced.state_dict().values())) == told(
                list(plain.state_dict().values())
            )
    assert not asked
    assert fast.metrics["entries"] <= 2
