"""Common operations, layers and in-place programs, each with six sizes: how many entries they take.

A row is a name, a function and what makes its arguments of a size. The number of entries that stock
Dynamo takes stands in the row (`stock`, on torch 2.13; 6 also where it compiles nothing), 2 where
nothing is said or Stator takes 2 and stock takes more. Run as a program
this file prints Stator's and stock's numbers side by side.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

SIZES = (6, 8, 10, 12, 14, 18)


class Row(NamedTuple):
    name: str
    make: Callable[[], Callable[..., Any]]  # a function or module of its own
    args: Callable[[int], tuple[Any, ...]]  # of one size
    stock: int


ROWS: list[Row] = []


def normal(*sizes: int) -> torch.Tensor:
    return torch.randn(sizes)


def batch(n: int) -> tuple[Any, ...]:
    return (normal(n, 4),)


def pair(n: int) -> tuple[Any, ...]:
    return normal(n, 4), normal(n, 4)


def images(n: int) -> tuple[Any, ...]:
    return (normal(n, 3, 8, 8),)


def wide(n: int) -> tuple[Any, ...]:
    return (normal(2, 3, 8, n),)


def lines(n: int) -> tuple[Any, ...]:
    return (normal(n, 3, 8),)


def long(n: int) -> tuple[Any, ...]:
    return (normal(2, 3, n),)


def tokens(n: int) -> tuple[Any, ...]:
    return (torch.arange(2 * n).reshape(2, n) % 7,)


def whole(n: int) -> tuple[Any, ...]:
    return normal(2, 4), n


def part(n: int) -> tuple[Any, ...]:
    return normal(2, 4), n / 8


def op(f: Callable[..., Any], args: Callable[[int], tuple[Any, ...]] = batch, *, name: str = "",
       stock: int = 2) -> None:  # fmt: skip
    ROWS.append(Row(name or f.__name__, lambda: f, args, stock))


def layer(module: Callable[[], nn.Module], args: Callable[[int], tuple[Any, ...]], *, name: str,
          train: bool = False, stock: int = 2) -> None:  # fmt: skip
    def make() -> nn.Module:
        torch.manual_seed(0)
        return module().train(train)

    ROWS.append(Row(name, make, args, stock))


def program(args: Callable[[int], tuple[Any, ...]] = batch, stock: int = 2) -> Any:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        op(f, args, stock=stock)
        return f

    return add


# --- in place ---

for way in ("add_", "sub_", "mul_", "div_", "copy_", "maximum", "pow_", "fmod_", "atan2_"):
    op(lambda x, y, way=way: getattr(x * 2, way)(y), pair, name=way)
    op(lambda x, y, way=way: getattr(x, way)(y[:1]), pair, name=f"{way} of an input, stretched")
for way in ("relu_", "sigmoid_", "tanh_", "exp_", "sqrt_", "neg_", "abs_", "zero_", "floor_"):
    op(lambda x, way=way: getattr(x.abs() + 1, way)(), name=way)
op(lambda x: x.clone().fill_(2.5), name="fill_")
op(lambda x: x.clone().clamp_(0, 1), name="clamp_")
op(lambda x, y: x.clone().addcmul_(x, y, value=0.5), pair, name="addcmul_")
op(lambda x, y: x.clone().addcdiv_(x, y.abs() + 1), pair, name="addcdiv_")
op(lambda x, y: x.clone().lerp_(y, 0.25), pair, name="lerp_")
op(lambda x, y: x.clone().masked_fill_(y > 0, 0.0), pair, name="masked_fill_")
op(lambda x: x.clone().uniform_(), name="uniform_")
op(lambda x: x.clone().normal_(), name="normal_")
op(lambda x: x.clone().bernoulli_(0.5), name="bernoulli_")
op(lambda x: x.clone().index_fill_(0, torch.tensor([0, 2]), 1.0), name="index_fill_")
op(lambda x, y: x.clone().index_add_(0, torch.tensor([0, 2]), y[:2]), pair, name="index_add_")
op(lambda x, y: x.clone().index_copy_(0, torch.tensor([0, 2]), y[:2]), pair, name="index_copy_")
op(lambda x, y: x.clone().scatter_(1, y.argsort(1), y), pair, name="scatter_")
op(lambda x, y: x.clone().scatter_add_(1, y.argsort(1), y), pair, name="scatter_add_")
op(lambda x, y: x.clone().index_put_((torch.tensor([0, 1]),), y[0]), pair, name="index_put_")
op(lambda x: x.clone().t_().squeeze_(), name="t_ squeeze_", stock=2)
op(lambda x: x.clone().triu_(), name="triu_")
op(lambda x: x.clone().cumsum_(0), name="cumsum_")
op(lambda x: F.relu(x + 1, inplace=True), name="relu inplace")
op(lambda x: F.dropout(x + 1, 0.5, True, True), name="dropout inplace")
op(lambda x, y: torch.add(x, y, out=torch.empty_like(x)), pair, name="out=")
op(lambda x, y: torch.mul(x, y, out=x), pair, name="out= of an input")
op(lambda x: torch.topk(x, 2, out=(x.new_empty(x.shape[0], 2),
                                   torch.empty(x.shape[0], 2, dtype=torch.int64))),
   name="out= of two", stock=6)  # fmt: skip


@program()
def plus_equals(x):
    x = x * 2
    x += 1
    x -= x.mean()
    x *= 3
    x /= 2
    return x


@program()
def plus_equals_an_input(x):
    x += 1
    return x.sum()


@program(pair)
def rows_are_set(x, y):
    buffer = torch.zeros(x.shape[0], 8)
    buffer[:, :4] = x
    buffer[:, 4:] = y
    buffer[0] = 1
    buffer[-1, 2:4] = buffer[0, :2]
    return buffer * 2


@program(pair)
def elements_are_set_by_mask(x, y):
    x = x.clone()
    x[y > 0] = 0.5
    x[:, 0] += 2
    return x


@program()
def a_view_is_written_to(x):
    y = x * 2
    y[:, 1:].mul_(3)
    y.view(-1).add_(1)
    y.t()[0].zero_()
    return y


@program()
def an_input_is_written_to_through_a_view(x):
    x[1:].add_(1)
    x.view(-1)[::2].mul_(2)
    return x + 1


@program(lambda n: (normal(2, n, 4), normal(2, 1, 4), n - 2))
def a_cache_is_filled(cache, new, at):
    cache[:, at : at + 1] = new
    return cache[:, : at + 1].sum(1)


@program(lambda n: (torch.randn(n, 4, requires_grad=True),))
def gradients_pass_writes(x):
    y = x.sin()
    y += 1
    y.mul_(x)
    y[:, 0] = y[:, 1] * 2
    return y.sum()


@program(lambda n: (torch.randn(n, 4, requires_grad=True),))
def gradients_begin_with_a_write(x):
    buffer = torch.zeros(x.shape[0], 8)
    before = buffer.requires_grad
    buffer[:, :4] = x
    buffer[:, 4:].add_(1)
    return buffer, before, buffer.requires_grad


@program(pair)
def an_average_moves(x, y):
    with torch.no_grad():
        x.mul_(0.9).add_(y, alpha=0.1)
    return x.norm()


# --- in place: layers and optimizers ---


class Block(nn.Module):
    def __init__(self, inplace: bool = True) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.down, self.bn2 = nn.Conv2d(4, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5)
        self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x):
        x = self.relu(self.bn(self.conv(x)))
        y = self.bn2(self.down(x))
        y += x[:, :, ::2, ::2]
        return self.head(torch.flatten(self.pool(self.relu(y)), 1))


layer(Block, images, name="conv, batch norm, relu in place")
layer(Block, images, name="conv, batch norm, relu in place, training", train=True)
layer(lambda: nn.BatchNorm1d(4), batch, name="BatchNorm1d, training", train=True)
layer(lambda: nn.BatchNorm2d(3), images, name="BatchNorm2d, training", train=True)
layer(lambda: nn.BatchNorm2d(3, momentum=None), images, name="BatchNorm2d, mean", train=True,
      stock=6)  # fmt: skip
layer(lambda: nn.BatchNorm2d(3, track_running_stats=False), images, name="BatchNorm2d, no stats",
      train=True)  # fmt: skip
layer(lambda: nn.InstanceNorm2d(3, track_running_stats=True), images, name="InstanceNorm2d, stats",
      train=True)  # fmt: skip
layer(lambda: nn.Sequential(nn.Linear(4, 4), nn.ELU(inplace=True), nn.Hardtanh(inplace=True),
                            nn.SiLU(inplace=True), nn.Dropout(0.5, inplace=True)),
      batch, name="activations in place", train=True)  # fmt: skip

# --- layers ---

layer(lambda: nn.Conv1d(3, 4, 3), lines, name="Conv1d")
layer(lambda: nn.Conv1d(3, 4, 3, padding="same"), long, name="Conv1d same, length")
layer(lambda: nn.Conv2d(3, 4, 3), images, name="Conv2d")
layer(lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), wide, name="Conv2d, width")
layer(lambda: nn.Conv2d(3, 3, 3, groups=3, padding_mode="circular", padding=1), wide,
      name="Conv2d circular")  # fmt: skip
layer(lambda: nn.Conv3d(3, 4, 3), lambda n: (normal(n, 3, 4, 4, 4),), name="Conv3d")
layer(lambda: nn.ConvTranspose1d(3, 4, 3, stride=2), lines, name="ConvTranspose1d")
layer(lambda: nn.ConvTranspose2d(3, 4, 3, stride=2), wide, name="ConvTranspose2d")
layer(lambda: nn.BatchNorm2d(3), images, name="BatchNorm2d")
layer(lambda: nn.GroupNorm(2, 4), batch, name="GroupNorm")
layer(lambda: nn.GroupNorm(3, 3), images, name="GroupNorm of images")
layer(lambda: nn.LayerNorm(4), batch, name="LayerNorm")
layer(lambda: nn.RMSNorm(4), batch, name="RMSNorm")
layer(lambda: nn.InstanceNorm2d(3), images, name="InstanceNorm2d")
layer(lambda: nn.LocalResponseNorm(2), images, name="LocalResponseNorm")
layer(lambda: nn.MaxPool1d(2), long, name="MaxPool1d", stock=6)
layer(lambda: nn.MaxPool2d(2), wide, name="MaxPool2d")
layer(lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), wide, name="MaxPool2d, ceil")
layer(lambda: nn.AvgPool1d(2), long, name="AvgPool1d")
layer(lambda: nn.AvgPool2d(2), wide, name="AvgPool2d")
layer(lambda: nn.AdaptiveAvgPool1d(2), lines, name="AdaptiveAvgPool1d")
layer(lambda: nn.AdaptiveAvgPool2d((2, 3)), images, name="AdaptiveAvgPool2d")
layer(lambda: nn.AdaptiveMaxPool2d((2, 2)), images, name="AdaptiveMaxPool2d")
layer(lambda: nn.Embedding(7, 4), tokens, name="Embedding")
layer(lambda: nn.EmbeddingBag(7, 4), tokens, name="EmbeddingBag")
layer(lambda: nn.Linear(4, 3), batch, name="Linear")
layer(lambda: nn.Bilinear(4, 4, 3), pair, name="Bilinear")
layer(lambda: nn.LSTM(4, 3, batch_first=True), lambda n: (normal(n, 5, 4),), name="LSTM, batch")
layer(lambda: nn.GRU(4, 3, batch_first=True), lambda n: (normal(n, 5, 4),), name="GRU, batch")
layer(lambda: nn.LSTMCell(4, 3), batch, name="LSTMCell")
layer(lambda: nn.GRUCell(4, 3), batch, name="GRUCell")
layer(lambda: nn.MultiheadAttention(4, 2, batch_first=True),
      lambda n: (normal(2, n, 4), normal(2, n, 4), normal(2, n, 4)), name="MultiheadAttention")  # fmt: skip
layer(lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), lambda n: (normal(2, n, 4),),
      name="TransformerEncoderLayer", train=False)  # fmt: skip
layer(lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
      lambda n: (normal(2, n, 4),), name="TransformerEncoderLayer, training", train=True)  # fmt: skip
layer(lambda: nn.PixelShuffle(2), lambda n: (normal(n, 4, 2, 2),), name="PixelShuffle")
layer(lambda: nn.Unfold(2), wide, name="Unfold")
layer(lambda: nn.Upsample(scale_factor=2), wide, name="Upsample")
layer(lambda: nn.ZeroPad2d(1), wide, name="ZeroPad2d")
layer(lambda: nn.Dropout(0.5), batch, name="Dropout", train=True)
layer(lambda: nn.CosineSimilarity(), pair, name="CosineSimilarity")

for mode in ("nearest", "bilinear", "bicubic", "area"):
    op(lambda x, mode=mode: F.interpolate(x, scale_factor=2.0, mode=mode), wide,
       name=f"interpolate {mode}")  # fmt: skip
    op(lambda x, mode=mode: F.interpolate(x, size=(5, 5), mode=mode), images,
       name=f"interpolate {mode}, to a size")  # fmt: skip
for mode in ("constant", "reflect", "replicate", "circular"):
    op(lambda x, mode=mode: F.pad(x, (1, 2), mode=mode), long, name=f"pad {mode}")
for loss in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss",
             "binary_cross_entropy_with_logits", "soft_margin_loss"):  # fmt: skip
    op(lambda x, y, loss=loss: getattr(F, loss)(x, y), pair, name=loss)
op(lambda x: F.cross_entropy(x, torch.arange(x.shape[0]) % 4), name="cross_entropy")
op(
    lambda x: F.nll_loss(x.log_softmax(1), torch.zeros(x.shape[0], dtype=torch.long)),
    name="nll_loss",
)
op(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), pair, name="binary_cross_entropy")
op(lambda x, y: F.triplet_margin_loss(x, y, x + y), pair, name="triplet_margin_loss")
op(lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(x.shape[0])), pair,
   name="cosine_embedding_loss")  # fmt: skip
op(lambda x, y: F.scaled_dot_product_attention(x, y, y),
   lambda n: (normal(2, 2, n, 4), normal(2, 2, n, 4)), name="attention")  # fmt: skip
op(lambda x, y: F.scaled_dot_product_attention(x, y, y, is_causal=True),
   lambda n: (normal(2, 2, n, 4), normal(2, 2, n, 4)), name="attention, causal")  # fmt: skip
op(lambda x: F.one_hot(x, 7), tokens, name="one_hot")
op(lambda x: F.gumbel_softmax(x), name="gumbel_softmax")
op(lambda x: F.normalize(x), name="normalize")
op(lambda x: F.glu(x), name="glu")
op(lambda x: F.prelu(x, torch.ones(1)), name="prelu")
op(lambda x: F.grid_sample(x, torch.zeros(x.shape[0], 2, 2, 2)), images, name="grid_sample")
op(
    lambda x: F.affine_grid(torch.zeros(x.shape[0], 2, 3), (x.shape[0], 1, 2, 2)),
    name="affine_grid",
)
op(lambda x: F.fold(F.unfold(x, 2), x.shape[2:], 2), images, name="fold")
op(lambda x, y: F.pairwise_distance(x, y), pair, name="pairwise_distance")

# --- joining and splitting, shapes ---

op(lambda x, y: torch.cat([x, y]), pair, name="cat")
op(lambda x, y: torch.stack([x, y], 1), pair, name="stack")
op(lambda x, y: torch.hstack([x, y]), pair, name="hstack")
op(lambda x, y: torch.vstack([x, y]), pair, name="vstack")
op(lambda x: [y * 2 for y in x.split(2, 1)], name="split")
op(lambda x: [y * 2 for y in x.split(x.shape[0] // 2)], name="split in halves")
op(lambda x: [y * 2 for y in x.chunk(2)], name="chunk")
op(lambda x: [y * 2 for y in x.tensor_split(2)], name="tensor_split")
op(lambda x: [y * 2 for y in x.unbind(1)], name="unbind")
op(lambda x: torch.einsum("ij,ik->jk", x, x), name="einsum")
op(lambda x: torch.einsum("bij,bkj->bik", x, x), lambda n: (normal(n, 3, 4),), name="einsum, batch")
op(lambda x: torch.tensordot(x, x, ([0], [0])), name="tensordot")
op(lambda x: torch.outer(x[:, 0], x[:, 1]), name="outer")
op(lambda x: torch.cdist(x, x), name="cdist")
op(lambda x: x @ x.t(), name="matmul")
op(lambda x: torch.baddbmm(x, x, x), lambda n: (normal(n, 4, 4),), name="baddbmm")
op(lambda x: torch.kron(x, x), name="kron", stock=6)
op(lambda x: x.expand(3, -1, -1) * 2, name="expand")
op(lambda x: x[:1].expand(x.shape[0], 4) * 2, name="expand to an open size")
op(lambda x: x.repeat(2, 3), name="repeat")
op(lambda x: x.repeat_interleave(2, 0), name="repeat_interleave")
op(lambda x: torch.tile(x, (2, 2)), name="tile")
op(lambda x: x.view(-1) * 2, name="view")
op(lambda x: x.view(x.shape[0], 2, 2) * 2, name="view, open")
op(lambda x: x.t().reshape(-1) * 2, name="reshape")
op(lambda x: x.flatten() * 2, name="flatten")
op(lambda x: x.unflatten(1, (2, 2)) * 2, name="unflatten")
op(lambda x: x.unfold(0, 2, 1) * 2, name="unfold")
op(lambda x: x.movedim(0, 1) * 2, name="movedim")
op(lambda x: x.flip(0), name="flip")
op(lambda x: x.roll(1, 0), name="roll")
op(lambda x: torch.rot90(x), name="rot90")
op(lambda x: x.narrow(0, 1, x.shape[0] - 2) * 2, name="narrow")
op(lambda x: x.select(0, 1) * 2, name="select")
op(lambda x: x.diagonal() * 2, name="diagonal")
op(lambda x: x.T * 2, name="T")
op(lambda x: x[:, None, ..., 1:] * 2, name="subscripts")
op(lambda x: x[1:-1, ::2] * 2, name="slices")
op(lambda x: torch.broadcast_to(x[:, :1], x.shape) * 2, name="broadcast_to")
op(lambda x: torch.meshgrid(x[:, 0], x[:, 1], indexing="ij")[0] * 2, name="meshgrid")
op(lambda x: torch.atleast_3d(x) * 2, name="atleast_3d")
op(lambda x: x.as_strided((2, 2), (1, 2)) * 2, name="as_strided")
op(lambda x: x.as_strided((x.shape[0], 2), (4, 1)) * 2, name="as_strided, open")
op(lambda x: x[1:] * x[1:].storage_offset(), name="storage_offset", stock=4)
op(lambda x: x * x.nbytes, name="nbytes")
op(lambda x: x * x.element_size() * x.itemsize, name="itemsize")
op(lambda x: x * x.numel() + x.ndim, name="numel")
op(lambda x: x.to(torch.float64).to(torch.float32) * 2, name="to")
op(lambda x: x.contiguous(memory_format=torch.channels_last) * 2, images, name="channels_last")

# --- picking and sorting ---

op(lambda x: x.gather(1, x.argsort(1)), name="gather")
op(lambda x: torch.take_along_dim(x, x.argsort(1), 1), name="take_along_dim", stock=6)
op(lambda x: x.scatter(1, x.argsort(1), x), name="scatter")
op(lambda x: x.index_select(0, torch.tensor([1, 2])), name="index_select")
op(lambda x: x.index_select(1, torch.tensor([1, 2])), name="index_select, other dimension")
op(lambda x: x[torch.arange(x.shape[0] - 1)], name="index")
op(
    lambda x: x[torch.arange(x.shape[0]), torch.zeros(x.shape[0], dtype=torch.long)],
    name="index by two",
)
op(lambda x: x.index_put((torch.tensor([0]),), x[:1]), name="index_put")
op(lambda x: x.topk(2, 0), name="topk")
op(lambda x: x.sort(0), name="sort")
op(lambda x: x.argsort(), name="argsort")
op(lambda x: x.argmax(0) + x.argmin(0), name="argmax")
op(lambda x: x.max(0), name="max")
op(lambda x: x.min(1), name="min")
op(lambda x: x.median(0), name="median")
op(lambda x: x.kthvalue(2, 0), name="kthvalue")
op(lambda x: torch.searchsorted(x[:, 0].sort()[0], x[:, 1]), name="searchsorted")
op(lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0])), name="bucketize")
op(lambda x: x.cumsum(0) + x.cumprod(0), name="cumsum, cumprod")
op(lambda x: x.cummax(0), name="cummax")
op(lambda x: x.logcumsumexp(0), name="logcumsumexp")
op(lambda x: x.where(x > 0, 0.0), name="where")
op(lambda x: torch.where(x > 0, x, -x), name="where of three")
op(lambda x: x.masked_fill(x > 0, -math.inf), name="masked_fill")
op(lambda x: x.tril() + x.triu(1), name="tril, triu")
op(lambda x: torch.tril(torch.ones(x.shape[0], x.shape[0], dtype=torch.bool)), name="causal mask")
op(lambda x: x.clamp(0, 1).clamp(min=x.mean()), name="clamp")
op(lambda x: x.lerp(x * 2, 0.5), name="lerp")
op(lambda x: torch.logsumexp(x, 0), name="logsumexp")
op(lambda x: x.std(0) + x.var(1).sum(), name="std, var")
op(lambda x: x.norm() + torch.linalg.vector_norm(x, dim=0), name="norm")
op(lambda x: x.prod(0) + x.count_nonzero(0), name="prod, count_nonzero")
op(lambda x: x.mean((0, 1), keepdim=True) + x.sum(), name="mean")
op(lambda x: x.softmax(0) + x.log_softmax(0), name="softmax")
op(lambda x: torch.diff(x, dim=0), name="diff")
op(lambda x: torch.isclose(x, x), name="isclose")
op(lambda x: torch.addmm(x, x, torch.eye(4)), name="addmm")
op(lambda x: torch.fft.rfft(x, dim=0).abs(), name="rfft")
op(lambda x: torch.trapz(x, dim=0), name="trapz")
op(lambda x: torch.histc(x, 4), name="histc")

# --- making ---

# What is in empty memory may be any number, but none of them times 0 is 9.
for maker in ("zeros", "ones", "empty", "rand", "randn"):
    op(lambda x, maker=maker: getattr(torch, maker)(x.shape[0], 2) * 0 == 9, name=maker)
    op(lambda x, maker=maker: getattr(torch, maker)(*x.shape, dtype=torch.float64) * 0 == 9,
       name=f"{maker} float64")  # fmt: skip
    op(lambda x, maker=maker: getattr(torch, f"{maker}_like")(x) * 0 == 9, name=f"{maker}_like")
for maker in ("new_zeros", "new_ones", "new_empty"):
    op(lambda x, maker=maker: getattr(x, maker)(x.shape[0], 2) * 0 == 9, name=maker)
for maker in ("zeros", "ones", "rand", "randn"):
    op(lambda x, maker=maker: getattr(torch, maker)(x.shape[0], 2), name=f"values of {maker}")
op(lambda x: torch.full((x.shape[0],), 2.5), name="full")
op(lambda x: torch.full((2,), x.shape[0]), name="full of an open number")
op(lambda x: x.new_full((x.shape[0],), 2), name="new_full")
op(lambda x: x.new_tensor([1.0]) + x, name="new_tensor")
op(lambda x: torch.arange(x.shape[0]), name="arange")
op(lambda x: torch.arange(1, x.shape[0], 2, dtype=torch.float32), name="arange of three")
op(lambda x: torch.arange(0, x.shape[0], 0.5), name="arange of a float")
op(lambda x: torch.linspace(0, 1, x.shape[0]), name="linspace", stock=6)
op(lambda x: torch.eye(x.shape[0]), name="eye")
op(lambda x: torch.randint(0, 5, (x.shape[0],)) * 0, name="randint")
op(lambda x: torch.randperm(x.shape[0]) * 0, name="randperm")
op(lambda x: torch.tensor(x.shape[0]) + x, name="tensor of an open number")
op(lambda x: torch.tensor([x.shape[0], 1.5]), name="tensor of a list with an open number")
op(lambda x: torch.tril_indices(x.shape[0], x.shape[0]), name="tril_indices", stock=6)
op(lambda x: torch.hann_window(x.shape[0]), name="hann_window", stock=6)
op(lambda x: torch.bernoulli(x.sigmoid()) * 0, name="bernoulli")
op(lambda x: torch.multinomial(x.softmax(1), 2) * 0, name="multinomial")

# --- numbers ---

for maths in ("log", "exp", "cos", "sqrt", "log2", "tanh", "sin", "floor", "ceil"):
    op(lambda x, n, maths=maths: x * getattr(math, maths)(n), whole, name=f"math.{maths} of an int")
    op(lambda x, n, maths=maths: x * getattr(math, maths)(n), part, name=f"math.{maths} of a float")
op(lambda x, n: x * math.pow(n, 2), whole, name="math.pow", stock=6)
op(lambda x, n: x * n**2, whole, name="n ** 2")
op(lambda x, n: x * n**0.5, whole, name="n ** 0.5")
op(lambda x, n: x * n**-0.5, part, name="f ** -0.5")
op(lambda x, n: x * 2**n, whole, name="2 ** n")
op(lambda x, n: x * 0.9**n, whole, name="0.9 ** n")
op(lambda x, n: x * (1 << n), whole, name="1 << n")
op(lambda x, n: x * (n >> 1), whole, name="n >> 1")
op(lambda x, n: x * (n & 6 | 1), whole, name="n & 6 | 1")
op(lambda x, n: x * (n ^ 3), whole, name="n ^ 3")
op(lambda x, n: x * (n // 2 + n % 5 - n / 3), whole, name="int arithmetic")
op(lambda x, n: x * (n * 2 - 1 / n), part, name="float arithmetic")
op(lambda x, n: x * (n // 0.3 + n % 0.7), part, name="float division")
op(lambda x, n: x * max(n, 3) + min(n, 20), whole, name="max, min")
op(lambda x, n: x * abs(-n) + round(n), whole, name="abs, round")
op(lambda x, n: x * float(n) + int(n / 2), whole, name="float, int")
op(lambda x, n: x * math.gcd(n, 4), whole, name="gcd", stock=3)
op(lambda x, n: x + n, part, name="a float is added")
op(lambda x, n: x.add(x, alpha=n), part, name="alpha")
op(lambda x, n: torch.pow(x, n), whole, name="pow")
op(lambda x, n: x.clamp(-n, n), part, name="clamp by a float")
op(lambda x, n: F.leaky_relu(x, n), part, name="leaky_relu of a float")
op(lambda x, n: F.dropout(x * 0, n / 4), part, name="dropout of a float", stock=6)
op(lambda x, n: x.clone().mul_(n).add_(x, alpha=n), part, name="in place by a float")
op(lambda x, n: x.masked_fill(x > 0, n), part, name="masked_fill by a float")


def stock_entries(row: Row) -> int:
    """What stock takes for the row's calls: graphs that it compiles."""
    made = []

    def backend(module: Any, examples: Any) -> Any:
        made.append(module)
        return module.forward

    torch._dynamo.reset()
    function = torch.compile(row.make(), backend=backend)
    for n in SIZES:
        torch.manual_seed(n)
        function(*row.args(n))
    return len(made)


def stator_entries(row: Row, **options: Any) -> int:
    import stator

    function = row.make()
    made = stator.compile(function.forward if isinstance(function, nn.Module) else function,
                          backend="eager", **options)  # fmt: skip
    for n in SIZES:
        torch.manual_seed(n)
        made(*row.args(n))
    return int(made.metrics["entries"])


def main() -> None:
    for row in ROWS:
        if len(sys.argv) > 2 and not any(word in row.name for word in sys.argv[2:]):
            continue
        numbers: list[Any] = []
        for count in (stator_entries, stock_entries)[: int(sys.argv[1])]:
            try:
                numbers.append(count(row))
            except Exception as error:
                numbers.append(type(error).__name__)
        print(f"{row.name:45}", *numbers, flush=True)


if __name__ == "__main__":
    main()
