"""Random programs of tensor shapes and numbers, as source, from a stream of choices, and the calls
to make of each: other sizes, ints and floats every time.

The language is typed by kinds, so that most programs run through. A template's <kind> is replaced by
an expression of that kind; a row of a table is (weight, template), the plainest first.
"""

import re

from choices import Seeded

CALLS = 12
DEPTH = 2

# Variables of each kind: t0 to t3 are tensors of so many dimensions. All are bound at the start.
NAMES = {
    "int": ["n", "k", "i", "j"],
    "float": ["r", "g"],
    "t0": ["w"],
    "t1": ["y", "a"],
    "t2": ["x", "b"],
    "t3": ["z", "c"],
}

PRELUDE = """
import functools, math, operator
import torch
from torch.nn import functional as F

def pause():
    torch._dynamo.graph_break()

def cut(t):
    return t[(slice(None, 40),) * t.dim()]

def fit(t, u):
    cuts = tuple(slice(None, min(*pair)) for pair in zip(t.shape, u.shape))
    return t[cuts], u[cuts]

def added(t, u):
    t, u = fit(t, u)
    return t + u

def rows(t, u):
    k = min(t.shape[-1], u.shape[-1])
    return t[..., :k] * u[..., :k]

def columns(t, u):
    return fit(t, u[:, None].expand(-1, t.shape[1]))[0] + u[: t.shape[0], None]

def joined(t, u, d):
    k = 1 - d
    most = min(t.shape[k], u.shape[k])
    return torch.cat([t.narrow(k, 0, most), u.narrow(k, 0, most)], d)

def at(t, i):
    return t[i % t.shape[0]] if t.shape[0] else t.sum(0)

def even(t):
    return t[..., : t.shape[-1] // 2 * 2]

def padded(t, k):
    return F.pad(t, (0, -t.shape[-1] % k))

def turned(t):
    half = t.shape[-1] // 2
    return torch.cat((-t[..., half:], t[..., :half]), -1)

def attend(t):
    scores = t @ t.transpose(-1, -2) / math.sqrt(max(t.shape[-1], 1))
    mask = torch.ones(t.shape[-2], t.shape[-2], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, 0.0) @ t

def counted(t, depth):
    return t if depth <= 0 or t.shape[0] < 2 else counted(t[: t.shape[0] // 2] + depth, depth - 1)
"""

# A number that is fit for a size: not negative, not large.
SIZE = [
    (4, "<any>.shape[0]"),
    (3, "<any>.size(-1)"),
    (3, "abs(<int>) % 6"),
    (2, "min(max(<int>, 0), 9)"),
    (2, "<lit>"),
    (2, "(<size> + 1)"),
    (1, "(<size> // 2)"),
    (1, "min(<size>, <size>)"),
    (1, "max(<size>, <size>)"),
    (1, "len(<any>)"),
    (1, "math.ceil(<size> / 3)"),
]

INT = [
    (10, "<name>"),
    (5, "<lit>"),
    (6, "<any>.shape[0]"),
    (4, "<any>.shape[-1]"),
    (2, "<any>.numel()"),
    (2, "<t2>.stride(0)"),
    (2, "<t3>.size()[1]"),
    (2, "o.k"),
    (2, "mod.k"),
    (2, "o.d['k']"),
    (1, "o.ks[0]"),
    (1, "G"),
    (4, "<int> + <int>"),
    (3, "<int> - <int>"),
    (3, "<int> * <int>"),
    (2, "<int> // <pos>"),
    (2, "<int> % <pos>"),
    (1, "<int> // (<int> or 1)"),
    (1, "<int> % (<int> or 3)"),
    (2, "max(<int>, <int>)"),
    (2, "min(<int>, <int>, <lit>)"),
    (1, "abs(<int>)"),
    (1, "-<int>"),
    (1, "(<int> >> 1)"),
    (1, "(<int> & 7)"),
    (1, "(<int> ** 2)"),
    (1, "divmod(<int>, 3)[1]"),
    (1, "sum([<int>, <int>, 1])"),
    (1, "math.prod(<any>.shape)"),
    (1, "int(<int> / 2)"),
    (1, "int(<cond>)"),
    (1, "<int> if <cond> else <int>"),
    (1, "(<int> or 3)"),
    (1, "sorted([<int>, <int>])[0]"),
    (1, "functools.reduce(operator.mul, <any>.shape, 1)"),
    (1, "len(<t1>.split(<size> + 1))"),
]

FLOAT = [
    (8, "<name>"),
    (3, "0.5"),
    (2, "o.r"),
    (2, "mod.scale"),
    (3, "<int> / 4"),
    (2, "float(<int>)"),
    (2, "<float> + <float>"),
    (2, "<float> * <float>"),
    (1, "<float> - <int>"),
    (1, "-<float>"),
    (1, "abs(<float>)"),
    (1, "math.sqrt(<size>)"),
    (1, "max(<float>, <int>)"),
    (1, "(<float> if <cond> else 2.5)"),
    (1, "1 / (<int> or 2)"),
    (1, "(<float> // 2)"),
]

COND = [
    (4, "<int> > <int>"),
    (3, "<int> == <int>"),
    (2, "<int> != <lit>"),
    (2, "<int> <= <lit>"),
    (2, "<any>.shape[0] > <lit>"),
    (2, "<any>.shape[0] == <any>.shape[-1]"),
    (2, "<t2>.shape == <t2>.shape"),
    (1, "<t2>.shape == (<size>, <size>)"),
    (2, "<any>.numel() == 0"),
    (1, "<any>.shape[0] in (1, 2, <int>)"),
    (2, "<int> % 2"),
    (1, "not <int>"),
    (2, "<float> > 0.5"),
    (1, "<float> == <float>"),
    (1, "<t2>.is_contiguous()"),
    (1, "<cond> and <cond>"),
    (1, "0 <= <int> < <size>"),
    (1, "<t1>.size() < <t2>.shape"),
    (1, "isinstance(<int>, int)"),
    (1, "torch.is_tensor(<any>)"),
]

T0 = [
    (6, "<name>"),
    (4, "<any>.sum()"),
    (1, "<any>.mean()"),
    (1, "cut(<any>).abs().sum()"),
    (1, "<any>.prod()"),
    (1, "at(<t1>, 0)"),
    (1, "at(<t1>, <int>)"),
    (1, "<t0> + <int>"),
    (1, "<t0> * <float>"),
    (1, "torch.tensor(<int>)"),
    (1, "torch.tensor(<float>)"),
    (1, "torch.dot(*fit(<t1>.float(), <t1>.float()))"),
]

T1 = [
    (10, "<name>"),
    (3, "<t1> + <int>"),
    (3, "<t1> * <float>"),
    (2, "<t1> - <t0>"),
    (2, "<t1> / <pos>"),
    (1, "<t1>.add(<t0>, alpha=<int>)"),
    (2, "<t2>.sum(0)"),
    (2, "<t2>.sum(-1)"),
    (1, "<t2>.mean(1)"),
    (1, "<t2>.abs().sum(0)"),
    (1, "at(<t2>, -1).cumsum(0)"),
    (2, "at(<t2>, 0)"),
    (2, "at(<t2>, <int>)"),
    (1, "<t2>[<size>]"),
    (1, "at(<t2>.t(), -1)"),
    (1, "cut(<t2>.reshape(-1))"),
    (1, "cut(<t3>.flatten())"),
    (1, "<t2>.diagonal()"),
    (3, "torch.arange(<size>)"),
    (1, "torch.arange(*sorted([<size>, <size>]))"),
    (1, "torch.arange(0, <size>, 2)"),
    (1, "torch.arange(<size>, dtype=torch.float32) * <float>"),
    (1, "torch.zeros(<size>)"),
    (1, "torch.full((<size>,), <float>)"),
    (1, "torch.full([<size>], <int>)"),
    (1, "torch.linspace(0, 1, <size>)"),
    (1, "<t1>.new_ones(<size>)"),
    (1, "torch.empty(<size>).fill_(<float>)"),
    (3, "<t1>[<int>:]"),
    (3, "<t1>[:<int>]"),
    (2, "<t1>[<int>:<int>]"),
    (1, "<t1>[<int>:<size>:2]"),
    (1, "<t1>[::<size> + 1]"),
    (2, "cut(torch.cat([<t1>, <t1>]))"),
    (1, "cut(torch.cat((<t1>, torch.zeros(<size>))))"),
    (1, "cut(<t1>.repeat(<size>))"),
    (1, "cut(<t1>.repeat_interleave(2))"),
    (1, "(lambda t: t.narrow(0, 0, min(<size>, t.shape[0])))(<t1>)"),
    (1, "<t1>.split(<size> + 1)[0]"),
    (1, "<t1>.chunk(2)[-1]"),
    (1, "<t1>.tensor_split(2)[1]"),
    (1, "<t1>.roll(<int> % 5)"),
    (1, "<t1>.flip(0)"),
    (1, "<t1>.cumsum(0)"),
    (1, "cut(F.pad(<t1>, (<size>, 1)))"),
    (1, "cut(padded(<t1>, 4))"),
    (2, "added(<t1>, <t1>)"),
    (1, "<t1> + <t1>"),
    (1, "torch.maximum(*fit(<t1>, <t1>))"),
    (1, "(lambda t: torch.where(t > <float>, t, <int>))(<t1>)"),
    (1, "<t1>.clamp(-<lit>, <float>)"),
    (1, "(lambda t: t.masked_fill(t > 1, <int>))(<t1>)"),
    (1, "<t1>.sort().values"),
    (1, "(lambda t: t.topk(min(<size>, t.shape[0])).values)(<t1>)"),
    (1, "(lambda t: t[torch.arange(t.shape[0] // 2)])(<t1>)"),
    (1, "(lambda t: t[t > 1])(<t1>)"),
    (1, "turned(<t1>)"),
    (1, "counted(<t1>, <size>)"),
    (1, "<t1>.float().softmax(0)"),
    (1, "<t1>.to(torch.float64)"),
    (1, "<t1>.unsqueeze(0).squeeze()[None].reshape(-1)"),
    (1, "torch.stack([<t0>, <t0>])"),
    (1, "torch.tensor([<int>, <int>])"),
    (1, "<t1>.contiguous()"),
    (1, "<t1>.view(-1)"),
    (1, "<t1>.clone()"),
    (1, "(lambda t: t.float() @ torch.ones(t.shape[-1]))(<t2>)"),
    (1, "(lambda t: torch.as_strided(t, (min(t.shape[0], 2),), (1,)))(<t1>)"),
]

T2 = [
    (10, "<name>"),
    (3, "<t2> + <int>"),
    (3, "<t2> * <float>"),
    (2, "<t2> - <t0>"),
    (2, "<t2>.t()"),
    (1, "<t2>.T * <int>"),
    (3, "<t2>[<int>:]"),
    (2, "<t2>[:, :<int>]"),
    (1, "<t2>[<int>:<int>, 1:]"),
    (1, "<t2>[..., ::2]"),
    (1, "<t2>.narrow(1, 0, <t2>.shape[1] // 2)"),
    (2, "added(<t2>, <t2>)"),
    (1, "<t2> + <t2>"),
    (2, "rows(<t2>, <t1>)"),
    (1, "columns(<t2>, <t1>)"),
    (2, "<t1>[:, None] * <t1>"),
    (1, "torch.outer(<t1>, <t1>)"),
    (2, "(lambda t: t @ t.t())(<t2>.float())"),
    (1, "(lambda t: t.t() @ t)(<t2>.float())"),
    (1, "(lambda t: F.linear(t, torch.ones(3, t.shape[-1])))(<t2>.float())"),
    (1, "(lambda t: torch.addmm(t, t @ t.t(), t))(<t2>.float())"),
    (2, "cut(joined(<t2>, <t2>, <bit>))"),
    (1, "(lambda t: cut(torch.cat([t, t * 2], 1)))(<t2>)"),
    (1, "(lambda t: torch.stack([t, t + <int>]))(<t1>)"),
    (1, "torch.stack(fit(<t1>, <t1>), -1)"),
    (1, "torch.zeros(<size>, <size>)"),
    (1, "torch.ones(<t2>.shape) * <int>"),
    (1, "<t2>.new_zeros((<size>, <t2>.shape[1]))"),
    (1, "torch.full_like(<t2>, <int>)"),
    (2, "<t1>.reshape(-1, 1)"),
    (1, "even(<t1>).reshape(2, -1)"),
    (1, "padded(<t1>, 4).view(-1, 4)"),
    (1, "(lambda t, s: padded(t, s).reshape(-1, s))(<t1>, <size> + 1)"),
    (1, "<t1>.unsqueeze(<bit>)"),
    (1, "<t1>.expand(<size>, -1)"),
    (1, "(lambda t: t[None].expand(<size>, t.shape[0]).contiguous())(<t1>)"),
    (1, "(lambda t: t.reshape(t.shape[1], t.shape[0]))(<t2>)"),
    (1, "(lambda t: t.reshape(t.shape[::-1]))(<t2>)"),
    (1, "(lambda t: t.contiguous().view(t.shape[0], -1))(<t2>)"),
    (1, "(lambda t: t.view_as(t))(<t2>)"),
    (2, "<t3>.sum(<bit>)"),
    (2, "at(<t3>, <bit>)"),
    (1, "<t3>.flatten(1)"),
    (1, "(lambda t: t.reshape(t.shape[0], -1))(<t3>)"),
    (1, "at(<t3>.transpose(0, 1), 0)"),
    (1, "<t3>.mean(-1)"),
    (1, "<t2>.cumsum(<bit>)"),
    (1, "<t2>.flip(0)"),
    (1, "<t2>.split(<size> + 1, <bit>)[0]"),
    (1, "<t2>.chunk(2, <bit>)[0]"),
    (1, "<t2>.tril()"),
    (1, "<t2>.triu(1)"),
    (1, "(lambda t: torch.where(t > <float>, t, <int>))(<t2>)"),
    (1, "<t2>.sum(<bit>, keepdim=True)"),
    (1, "(lambda t: t / t.abs().sum(-1, True))(<t2>)"),
    (1, "<t2>.float().softmax(-1)"),
    (1, "(lambda t: F.layer_norm(t, (t.shape[-1],)))(<t2>.float())"),
    (1, "(lambda t: t.index_select(0, torch.arange(t.shape[0] // 2)))(<t2>)"),
    (
        1,
        "(lambda t: t.gather(1, torch.zeros(t.shape[0], min(1, t.shape[1]), dtype=torch.long)))(<t2>)",
    ),
    (1, "F.one_hot(torch.arange(<size>), 9)"),
    (1, "mod(<t2>.float())"),
    (1, "mod.weight[:<size>]"),
    (1, "o.kept"),
    (1, "turned(<t2>)"),
    (1, "attend(<t2>.float())"),
    (1, "cut(<t2>.repeat(1, <size>))"),
    (1, "cut(<t2>.unfold(0, 1, 1)[..., 0])"),
    (1, "torch.meshgrid(<t1>.float(), <t1>.float(), indexing='ij')[0]"),
    (1, "(lambda t: torch.einsum('ij,kj->ik', t, t + 1))(<t2>)"),
    (1, "(lambda t: torch.broadcast_to(t, (<size>, t.shape[0])))(<t1>)"),
    (1, "counted(<t2>, <size>)"),
    (1, "<t2>.clone()"),
]

T3 = [
    (10, "<name>"),
    (2, "<t3> + <int>"),
    (2, "<t3> * <float>"),
    (2, "<t2>.unsqueeze(<bit>)"),
    (1, "<t2>[:, None, :]"),
    (2, "<t3>.transpose(1, 2)"),
    (1, "<t3>.permute(2, 0, 1)"),
    (1, "<t3>[:, <int>:]"),
    (1, "<t3>[..., :<int>]"),
    (1, "(lambda t: even(t).reshape(t.shape[0], t.shape[1] // 2, 2))(<t2>)"),
    (1, "padded(<t2>, 2).unflatten(1, (-1, 2))"),
    (1, "<t2>.expand(2, -1, -1)"),
    (1, "(lambda t: torch.stack([t, t * <int>], <bit>))(<t2>)"),
    (1, "(lambda t: cut(torch.cat([t, t * 2], <bit>)))(<t3>)"),
    (1, "(lambda t: t @ t.transpose(1, 2))(<t3>.float())"),
    (1, "(lambda t: torch.bmm(t, t.mT))(<t3>)"),
    (1, "<t3> * (z.sum(0) if <cond> else 2)"),
    (1, "rows(<t3>, <t1>)"),
    (1, "<t3>.sum(-1, keepdim=True)"),
    (1, "<t3>.contiguous()"),
    (1, "<t3>.flip(1)"),
    (1, "attend(<t3>.float())"),
    (1, "F.pad(<t3>, (0, 1, <bit>, 0))"),
    (1, "<t3>.chunk(2, 2)[0]"),
    (1, "<t3>.reshape(-1, 1, <t3>.shape[-1])"),
    (1, "F.avg_pool1d(F.pad(<t3>.float(), (1, 1)), 2)"),
    (1, "F.max_pool1d(F.pad(<t3>.float(), (1, 1)), 2)"),
    (1, "F.interpolate(<t3>.float(), scale_factor=2)[..., :9]"),
    (1, "torch.zeros(*<t3>.shape)"),
]

TABLES = {
    "int": INT, "float": FLOAT, "cond": COND, "size": SIZE,
    "t0": T0, "t1": T1, "t2": T2, "t3": T3,
}  # fmt: skip

# Statements of one line. <set:kind> is a variable of that kind, which may be bound anew; <new:kind>
# is an expression that is more than a variable.
SIMPLE = [
    (10, "<set:t1> = <new:t1>"),
    (12, "<set:t2> = <new:t2>"),
    (6, "<set:t3> = <new:t3>"),
    (3, "<set:t0> = <new:t0>"),
    (8, "<set:int> = <new:int>"),
    (4, "<set:float> = <new:float>"),
    (2, "<set:int> += <int>"),
    (1, "<set:int> //= 2"),
    (1, "<set:float> *= <float>"),
    (2, "<set:t2> += <int>"),
    (1, "<set:t1> = <set:t1>.add_(<int>)"),
    (1, "<set:t2>.mul_(<float>)"),
    (2, "<set:t2>.mul_(<int>)"),
    (1, "<set:t1>.zero_()"),
    (2, "<set:t1>[<int>:] = <int>"),
    (1, "<set:t1>[:<size>] = <float>"),
    (1, "<set:t1>[<size>] = <int>"),
    (2, "<set:t2>[:<int>] += 1"),
    (1, "<set:t2>[:, <int>:] = <float>"),
    (1, "x[:1] = x.sum(1)[:1, None]"),
    (1, "<set:t2>[0] = <t1>"),
    (1, "<set:t2>[:, :1].add_(<t0>)"),
    (1, "b.copy_(b.sum(0))"),
    (1, "<set:t2>.t_()"),
    (1, "a.masked_fill_(a > <int>, <lit>)"),
    (1, "<set:t1>, <set:t1> = fit(<t1>, <t1>)"),
    (1, "<set:t1>, *rest = <t1>.split(<size> + 1)"),
    (1, "<set:t1>, <set:t1> = F.pad(<t1>, (1, 1)).chunk(2)"),
    (1, "<set:int>, <set:int> = <t2>.shape"),
    (1, "<set:int>, *rest = <t3>.size()"),
    (2, "o.k += 1"),
    (1, "o.k = <int>"),
    (1, "mod.k += <lit>"),
    (1, "mod.k = <int>"),
    (1, "mod.scale = <float>"),
    (1, "o.d['k'] = <int>"),
    (1, "o.ks[0] += <int>"),
    (1, "o.kept = cut(torch.cat([o.kept, torch.ones(<size>, o.kept.shape[1])]))"),
    (1, "o.kept = o.kept[1:]"),
    (1, "o.last = <t2>"),
    (1, "mod.state.add_(<int>)"),
    (1, "mod.state = <t2>"),
    (2, "log.append(<int>)"),
    (1, "log.append(<any>.shape)"),
    (1, "log.append((<float>, <cond>))"),
    (1, "log.append(f'{<set:int>}')"),
    (1, "log.append({<int>: <int>})"),
    (1, "log.append(<t2>.stride())"),
    (1, "log.append([<int>] * (<size> % 4))"),
    (1, "log.append(slice(<int>, <int>))"),
    (3, "pause()"),
    (1, "assert <any>.shape[0] >= 0, <int>"),
    (1, "<set:t1> = (lambda t, s=<int>: t[s:] * s)(<t1>)"),
    (1, "<set:t1> = sum([<t1>[q:q + 1] for q in range(<size> % 4)], torch.zeros(1))"),
    (1, "<set:t2> = torch.stack([<t1> * q for q in range(3)])"),
    (1, "<set:t0> = sum(t.sum() for t in <t2>.unbind(<bit>))"),
]

# Statements with a body.
HEADS = [
    (5, "if <cond>:"),
    (2, "for q in range(<size> % 4):"),
    (1, "for i in range(min(<any>.shape[0], 3)):"),
    (1, "for a in <t2>[:3]:"),
    (1, "for a in <t1>.split(<size> + 2)[:3]:"),
    (1, "while v > 1:"),
    (2, "with torch.no_grad():"),
    (2, "try:"),
]

ERRORS = "(RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError)"
HOLE = re.compile(r"<([\w:]+)>")


def closed(text):
    """In parentheses, if there is an operator outside of brackets."""
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter in " -":
            return f"({text})"
    return text


class Maker:
    def __init__(self, choices):
        self.choices = choices
        self.lines = []

    def fill(self, template, depth):
        return HOLE.sub(lambda found: self.expression(found.group(1), depth), template)

    def expression(self, kind, depth):
        pick = self.choices.pick
        if kind == "lit":
            return pick(["1", "2", "3", "4", "0", "5", "8"])
        if kind == "pos":
            return pick(["2", "3", "4", "1", "8"])
        if kind == "bit":
            return pick(["0", "1"])
        if kind.startswith("set:"):
            return pick(NAMES[kind[4:]])
        if kind.startswith("new:"):
            rows = [row for row in TABLES[kind[4:]] if row[1] != "<name>"]
            return self.fill(self.choices.weighted(rows), depth - 1)
        if kind == "any":
            return pick([name for kind in ("t1", "t2", "t3") for name in NAMES[kind]])
        if kind == "size":
            return self.fill(self.choices.weighted(SIZE if depth > 0 else SIZE[:2]), depth - 1)
        if depth <= 0 and kind in NAMES:
            return pick(NAMES[kind])
        template = self.choices.weighted(TABLES[kind][:8] if depth <= 0 else TABLES[kind])
        if template == "<name>":
            return pick(NAMES[kind])
        return closed(self.fill(template, depth - 1))

    def statement(self, indent, depth):
        pad = "    " * indent
        if depth == 0 or self.choices.below(100) < 78:
            text = self.fill(self.choices.weighted(SIMPLE), DEPTH)
            self.lines.append(pad + text)
            return
        head = self.fill(self.choices.weighted(HEADS), DEPTH)
        self.lines.append(pad + head)
        if head.startswith("while"):
            self.lines.insert(-1, f"{pad}v = {self.fill('<size>', 1)}")
            self.lines.append(f"{pad}    v //= 2")
        self.block(indent + 1, depth - 1)
        if head == "try:":
            self.lines.append(f"{pad}except {ERRORS} as error:")
            self.lines.append(f"{pad}    log.append((type(error).__name__, str(error)))")
        elif head.startswith("if") and self.choices.below(100) < 50:
            self.lines.append(f"{pad}else:")
            self.block(indent + 1, depth - 1)

    def block(self, indent, depth):
        for _ in range(1 + self.choices.below(3)):
            self.statement(indent, depth)

    def result(self):
        return ["    return w, a, b, c, i, j, g, log", "    return x * 1, a, b, i, log",
                "    return {'b': b, 'i': i}, [c, a], log, (x.shape, j)",
                "    return b.sum(), w, i + j, log"][self.choices.below(4)]  # fmt: skip

    def text(self, size):
        pick, self.lines = self.choices.pick, ["def f(x, y, z, n, k, r, o, mod):"]
        start = pick(
            ["a, b, c = y, x, z", "a, b, c = y * 1, x + 0, z * 2", "a, b, c = at(x, 0), x, z"]
        )
        self.lines += ["    log, w, q = [], torch.ones(()), 0"]
        self.lines += [f"    {start}", "    i, j, g = x.shape[0], n, r"]
        for _ in range(2 + self.choices.below(size)):
            self.statement(1, DEPTH)
        self.lines.append(self.result())
        return "\n".join([*self.lines, ""])


def program(choices, size=9):
    return Maker(choices).text(size)


def program_of_seed(seed):
    return program(Seeded(seed))


# -- calls --

SIZES = [3, 4, 5, 2, 1, 0, 6, 7, 8, 16, 33]
INTS = [3, 4, 5, 2, 0, 1, -1, -2, 7, 6, 9, 100, 2**31, 2**62, 2**63 - 1, -(2**63), 2**64, True]
FLOATS = [0.5, 0.25, 1.5, 2.0, 0.0, -0.0, 1.0, -1.25, 3.0, float("inf"), float("nan"), 1e308]
LAYOUTS = ["plain", "turned", "part", "spread", "double", "whole", "grad", "stepped"]


def usually(choices, pool, percent=70):
    """One of the first five, most of the time."""
    return choices.pick(pool[:5] if choices.below(100) < percent else pool)


def fresh(choices):
    return {
        "n": usually(choices, SIZES),
        "m": usually(choices, SIZES),
        "h": choices.pick([2, 3, 1]),
        "int": usually(choices, INTS),
        "int2": usually(choices, INTS),
        "float": usually(choices, FLOATS),
        "layouts": ["plain"] * 3,
        "alias": False,
    }


POOLS = {"int": INTS, "int2": INTS, "float": FLOATS, "h": [2, 3, 1, 0, 4], "n": SIZES, "m": SIZES}
COMMON = {"n": range(3, 20), "m": range(3, 20), "int": range(-1, 12), "int2": range(2, 12),
          "float": [0.1, 0.7, 1.3, 2.2, 9.5], "h": range(2, 5)}  # fmt: skip


def shift(choices, call):
    """A call that an entry with open numbers may fit."""
    call = dict(call)
    for name in ("n", "m", "int", "int2", "float", "h"):
        if choices.chance(40):
            call[name] = choices.pick(COMMON[name])
    return call


def change(choices, call):
    """A call in which something is unusual."""
    call = dict(call)
    name = choices.pick(["n", "n", "m", "int", "float", "int2", "h", "equal", "layouts", "alias"])
    if name == "equal":
        call["m"] = call["n"] = usually(choices, SIZES)
    elif name == "alias":
        call["alias"] = choices.chance(50)
    elif name == "layouts":
        layouts = list(call["layouts"])
        layouts[choices.below(3)] = choices.pick(LAYOUTS)
        call["layouts"] = layouts
    else:
        call[name] = usually(choices, POOLS[name], 40)
    return call


def calls_of_seed(seed):
    choices = Seeded(seed + 7_000_003)
    calls = [fresh(choices)]
    while len(calls) < CALLS:
        calls.append((shift if choices.chance(60) else change)(choices, calls[-1]))
    return [*calls, *calls[:2]]
