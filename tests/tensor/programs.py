"""Random programs over tensors and the objects that hold them, as Python text, and random calls."""

from __future__ import annotations

import random
from typing import Any

import torch

NAMES = ("a", "b", "c", "t", "u", "v")  # a, b, c are arguments; t, u, v come up on the way

UNARY = (
    "-{0}", "{0} * 2", "1 - {0}", "{0}.relu()", "{0}.t()", "{0} + 1.5", "torch.sigmoid({0})",
    "{0}.sum()", "{0}.sum(0)", "{0}.contiguous()", "{0}.clone()", "{0}.float()", "{0}[0]",
    "{0}[-1:]", "{0}.detach()", "{0}.view(-1)", "{0}.reshape(-1)", "{0}.expand(2, *{0}.shape)",
    "{0}.unsqueeze(0)", "torch.zeros_like({0})", "{0}.abs().sqrt()",
    "{0}.mean(dim=-1, keepdim=True)", "{0}.to(torch.float64)", "torch.cat([{0}, {0}])",
    "torch.stack([{0}, {0} * 3]).sum(0)", "{0}.flatten()", "{0}.real",
    "F.dropout({0}, 0.5, training=True)", "torch.rand(3) * {0}.sum()", "{0}.cumsum(0)",
    "{0}.squeeze()", "{0}.chunk(2)[0]", "{0}.max()", "({0} > 0).float()",
    "torch.where({0} > 0, {0}, 0.0)", "{0}.T", "{0}.data",
)  # fmt: skip
BINARY = (
    "{0} + {1}", "{0} * {1}", "{0} - {1}", "torch.maximum({0}, {1})", "{0} @ {1}.to({0}.dtype)",
    "{0}.add({1}, alpha=2)", "torch.where({0} > {1}, {0}, {1})", "torch.stack([{0}, {1}])",
    "({0} == {1}) * 1.0", "{0}.type_as({1})",
)  # fmt: skip
WRITES = (
    "{0}.add_(1)", "{0}.mul_({1}.sum())", "{0}[0] = 3", "{0} += 1", "{0}.zero_()",
    "{0}.copy_({1})", "{0}[..., :1].mul_(2)", "{0}.relu_()", "torch.add({0}, 1, out={0})",
    "{0}.view(-1)[0] = 7",
)  # fmt: skip
OBJECTS = (
    "xs.append({0})", "xs[0] = {0}", "xs.insert(0, {0} * 1)", "xs.reverse()", "{0} = xs[-1]",
    "{0} = xs[0]", "xs.pop()", "d['k'] = {0}", "{0} = d.get('k', {1})",
    "d.setdefault('new', {0})", "o.last = {0}", "{0} = o.last", "o.count += 1",
    "{0} = {1} * o.count", "d[o.count] = {0}", "o.log.append(o.count)", "{0} = {1}",
    "{0}, {1} = {1}, {0}", "xs.extend([{0}, {1}])", "xs.sort(key=lambda q: q.dim())",
    "{0} = sum(xs[:2])", "{0} = {1} * len(xs)", "o.log.append({0} is {1})",
    "o.log.append({0} in (None, 1) if 0 else 5)", "o.log.append(any({0} is q for q in xs))",
    "del d['k']", "d = dict(d)", "xs = list(xs)",
)  # fmt: skip
TESTS = (
    "{0}.dim() == 2", "{0}.shape[-1] > 2", "{0}.dtype is torch.float32", "{0}.requires_grad",
    "{0} is {1}", "len(xs) > 2", "'k' in d", "o.count % 2", "{0}.numel() > 5",
    "{0}.is_contiguous()", "xs", "o.flag", "isinstance({0}, torch.Tensor)",
    "torch.is_grad_enabled()", "getattr({0}, 'mark', None) is None", "{0}.shape == {1}.shape",
    "type({0}) is torch.nn.Parameter", "o.scale == 2.0",
)  # fmt: skip
RARE = ("{0}.sum() > 0", "bool({0}.any())", "{0}.sum().item() > 1")


class Program:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def pick(self, patterns: tuple[str, ...]) -> str:
        return self.random.choice(patterns).format(*self.random.sample(NAMES, 2))

    def statement(self, depth: int) -> None:
        pad, roll = "    " * depth, self.random.random()
        if roll < 0.35:
            name, patterns = self.random.choice(NAMES), self.random.choice((UNARY, BINARY))
            self.lines.append(f"{pad}{name} = {self.pick(patterns)}")
        elif roll < 0.5:
            self.lines.append(pad + self.pick(WRITES))
        elif roll < 0.78 or depth > 3:
            self.lines.append(pad + self.pick(OBJECTS))
        else:
            self.block(depth)

    def block(self, depth: int) -> None:
        pad, kind = "    " * depth, self.random.randrange(5)
        test = self.pick(RARE if self.random.random() < 0.05 else TESTS)
        head = {
            0: f"if {test}:",
            1: f"for i in range({self.random.randrange(3)}):",
            2: "with torch.no_grad():",
            3: "for q in list(xs)[:2]:",
            4: "try:",
        }[kind]
        self.lines.append(pad + head)
        if kind == 3:
            self.lines.append(f"{pad}    {self.random.choice(NAMES)} = q")
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth + 1)
        if kind == 4:
            self.lines.append(f"{pad}except (RuntimeError, IndexError, KeyError) as error:")
            self.lines.append(f"{pad}    o.log.append(type(error).__name__)")
        elif kind == 0 and self.random.random() < 0.5:
            self.lines.append(f"{pad}else:")
            self.statement(depth + 1)

    def text(self) -> str:
        self.lines = ["def f(a, b, c, xs, d, o):", "    t, u, v = a * o.scale, b, c + 1"]
        for _ in range(self.random.randrange(4, 14)):
            self.statement(1)
        self.lines.append(f"    return {', '.join(self.random.sample(NAMES, 3))}, xs, d.get('k')")
        return "\n".join(self.lines)


def program(seed: int) -> tuple[str, Any]:
    text = Program(seed).text()
    namespace: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(compile(text, f"<program {seed}>", "exec"), namespace)
    return text, namespace["f"]


class Object:
    pass


def tensor(chance: random.Random, integers: bool) -> torch.Tensor:
    shape = chance.choice(((3, 3), (3, 3), (3, 3), (2, 4), (3,), (), (1, 3)))
    made = torch.arange(float(torch.Size(shape).numel())).reshape(shape) - 2
    roll = chance.random()
    if roll < 0.1:
        made = made.double()
    elif roll < 0.15 and integers:
        made = made.long()
    elif roll < 0.25 and made.dim() == 2:
        made = made.t().contiguous().t()
    elif roll < 0.35:
        made.requires_grad_()
    elif roll < 0.4:
        made = torch.nn.Parameter(made)
    return made


def call(seed: int, integers: bool = True) -> tuple[Any, ...]:
    """Arguments, made afresh each time from the seed; most seeds give the usual ones."""
    chance = random.Random(seed)
    usual = torch.arange(9.0).reshape(3, 3) - 4
    a, b, c = usual.clone(), usual.clone() * 2, usual.clone() + 1
    xs, d, o = [usual + 5, usual * 3], {"k": usual + 2}, Object()
    o.last, o.count, o.log, o.flag, o.scale = usual - 1, 3, [], True, 2.0
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        change = chance.randrange(14)
        if change == 0:
            a = tensor(chance, integers)
        elif change == 1:
            b = tensor(chance, integers)
        elif change == 2:
            b = a
        elif change == 3:
            b = a.view_as(a) if not a.requires_grad else a
        elif change == 4:
            xs.append(a)
        elif change == 5:
            xs = [b]
        elif change == 6:
            d.pop("k", None)
        elif change == 7:
            d["k"] = c
        elif change == 8:
            o.count = chance.randrange(5)
        elif change == 9:
            o.flag = chance.choice((False, 0, "yes", None))
        elif change == 10:
            o.scale = chance.choice((1.0, -0.0, 0.0, 3))
        elif change == 11:
            a.mark = chance.randrange(2)
        elif change == 12:
            o.last = xs[0] if xs else a
        elif change == 13:
            c = tensor(chance, integers)
    return a, b, c, xs, d, o
