"""Small models of the kinds that people compile, whose batch, length or image may be of any size."""

import math

import torch
from torch import nn
from torch.nn import functional as F

HIDDEN, HEADS, VOCABULARY, POSITIONS = 16, 2, 50, 64


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(32, 4),
        )

    def forward(self, x):
        return self.layers(x).softmax(-1)


class SelfAttention(nn.Module):
    """As BERT's: scores by hand, a mask that is added."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.out = nn.Linear(HIDDEN, HIDDEN)

    def heads(self, x):
        shape = (*x.size()[:-1], HEADS, HIDDEN // HEADS)
        return x.view(shape).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS)
        weights = F.dropout(F.softmax(scores + mask, dim=-1), 0.1, self.training)
        context = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous()
        return self.out(context.view((*context.size()[:-2], HIDDEN)))


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = SelfAttention()
        self.norm, self.last_norm = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x, mask):
        x = self.norm(x + self.attention(x, mask))
        return self.last_norm(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=0)
        self.places = nn.Embedding(POSITIONS, HIDDEN)
        self.kinds = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.layers = nn.ModuleList(BertLayer() for _ in range(layers))
        self.pooler = nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("position_ids", torch.arange(POSITIONS).expand((1, -1)))

    def forward(self, ids, mask=None):
        batch, length = ids.shape
        if mask is None:
            mask = torch.ones((batch, length), device=ids.device)
        kinds = torch.zeros((batch, length), dtype=torch.long, device=ids.device)
        mask = (1.0 - mask[:, None, None, :]) * torch.finfo(torch.float32).min
        x = self.words(ids) + self.kinds(kinds) + self.places(self.position_ids[:, :length])
        x = F.dropout(self.norm(x), 0.1, self.training)
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Conv1D(nn.Module):
    def __init__(self, to, of):
        super().__init__()
        self.to = to
        self.weight, self.bias = (
            nn.Parameter(torch.randn(of, to) * 0.1),
            nn.Parameter(torch.zeros(to)),
        )

    def forward(self, x):
        shape = x.size()[:-1] + (self.to,)
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(shape)


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.attend, self.out = Conv1D(3 * HIDDEN, HIDDEN), Conv1D(HIDDEN, HIDDEN)
        self.up, self.down = Conv1D(4 * HIDDEN, HIDDEN), Conv1D(HIDDEN, 4 * HIDDEN)

    def split(self, x):
        return x.view(*x.shape[:-1], -1, HIDDEN // HEADS).transpose(1, 2)

    def forward(self, x, past=None):
        q, k, v = (self.split(t) for t in self.attend(self.first(x)).split(HIDDEN, dim=2))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=-2), torch.cat((past[1], v), dim=-2)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        a = a.transpose(1, 2).reshape(*x.shape[:-1], HIDDEN).contiguous()
        x = x + self.out(a)
        h = self.up(self.second(x))
        h = (
            0.5
            * h
            * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.044715 * torch.pow(h, 3.0))))
        )
        return x + self.down(h), (k, v)


class Gpt(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(POSITIONS, HIDDEN)
        self.blocks = nn.ModuleList(GptBlock() for _ in range(layers))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, ids, past=None):
        ids = ids.view(-1, ids.size(-1))
        done = 0 if past is None else past[0][0].size(-2)
        places = torch.arange(done, ids.size(-1) + done, dtype=torch.long, device=ids.device)
        x = self.words(ids) + self.places(places.unsqueeze(0))
        now = []
        for i, block in enumerate(self.blocks):
            x, kept = block(x, None if past is None else past[i])
            now.append(kept)
        return self.head(self.norm(x)), now


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


def turn(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeat(x, times):
    batch, heads, length, width = x.shape
    x = x[:, :, None, :, :].expand(batch, heads, times, length, width)
    return x.reshape(batch, heads * times, length, width)


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = RmsNorm(), RmsNorm()
        self.q, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(HIDDEN, HIDDEN // 2, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(HIDDEN, 2 * HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def forward(self, x, cos, sin, mask):
        shape = (*x.shape[:-1], -1, HIDDEN // HEADS)
        y = self.first(x)
        q, k, v = (p(y).view(shape).transpose(1, 2) for p in (self.q, self.k, self.v))
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        q, k = q * cos + turn(q) * sin, k * cos + turn(k) * sin
        k, v = repeat(k, 2), repeat(v, 2)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, :, :, : k.shape[-2]])
        x = x + self.o(a.transpose(1, 2).contiguous().reshape(*x.shape[:-1], -1).contiguous())
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, HIDDEN)
        self.blocks = nn.ModuleList(LlamaBlock() for _ in range(layers))
        self.norm = RmsNorm()
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        width = HIDDEN // HEADS
        self.register_buffer("turns", 1.0 / 10000 ** (torch.arange(0, width, 2).float() / width))

    def forward(self, ids):
        batch, length = ids.shape
        x = self.words(ids)
        places = torch.arange(length, device=ids.device).unsqueeze(0)
        with torch.no_grad():
            turns = self.turns[None, :, None].float().expand(places.shape[0], -1, 1)
            angles = (turns @ places[:, None, :].float()).transpose(1, 2)
            both = torch.cat((angles, angles), dim=-1)
            cos, sin = both.cos(), both.sin()
        mask = torch.full((length, length), torch.finfo(torch.float32).min)
        mask = torch.triu(mask, diagonal=1)[None, None, :, :].expand(batch, 1, -1, -1)
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, of, to, stride=1):
        super().__init__()
        self.first = nn.Conv2d(of, to, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(to, to, 3, 1, padding=1, bias=False)
        self.norm, self.last_norm = nn.BatchNorm2d(to), nn.BatchNorm2d(to)
        self.relu = nn.ReLU(inplace=True)
        self.down = None
        if stride != 1:
            self.down = nn.Sequential(nn.Conv2d(of, to, 1, stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        y = self.relu(self.norm(self.first(x)))
        y = self.last_norm(self.second(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 7, 2, padding=3, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        self.blocks = nn.Sequential(Residual(8, 8), Residual(8, 16, 2))
        self.mean = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = self.pool(self.relu(self.norm(self.first(x))))
        return self.head(torch.flatten(self.mean(self.blocks(x)), 1))
