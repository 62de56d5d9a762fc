"""Each row of meta_rules.def, asked of every dtype, of many layouts, and of arguments that fit and
that do not: what a rule says of a result is what torch gives on the CPU. Where torch raises, no rule
answers.

The calls are made from the row's parameters. Rules are asked alone (`torch_ask_rule`); torch is run
only where one answers. Values are such that no error depends on them."""

import itertools
import re
import warnings
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from stator import _callables, _engine, _torch  # noqa: E402

_torch.attach()

TABLE = Path(__file__).resolve().parents[2] / "src/graph/meta_rules.def"
ROW = re.compile(r'^(?:META|VIEW|ALIAS|ASK)\("([^"]+)", (\w+),\s+((?:"[^"]*"\s*)+)', re.MULTILINE)
ROWS = {name: (rule, words.replace('"', " ").split())
        for name, rule, words in ROW.findall(TABLE.read_text())}  # fmt: skip
PLACES = {name: [c for c, of in _callables.rules() if of == name] for name in ROWS}


def test_all_rows_are_read():
    assert tuple(ROWS) == _engine.torch_rules()


# --- tensors ---

KNOWN = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
         torch.bool]  # fmt: skip
UNKNOWN = [torch.complex32, torch.uint16, torch.float8_e5m2]  # no rule answers
SHAPES = [(), (1,), (3,), (2, 3), (2, 3, 4), (1, 3, 1), (2, 1, 4, 3), (2, 3, 2, 5), (0, 3)]
LAYOUTS = {
    "contiguous": lambda t: t,
    "permuted": lambda t: t.permute(tuple(reversed(range(t.dim())))),
    "halved": lambda t: t[..., ::2] if t.dim() else t,
    "inner halved": lambda t: t[:, ::2] if t.dim() > 1 else t,
    "expanded": lambda t: t.unsqueeze(0).expand(5, *t.shape),
    "expanded behind": lambda t: t.unsqueeze(-1).expand(*t.shape, 3),
    "channels last": lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t,
    "a slice": lambda t: t[:1] if t.dim() else t,
}


def new(shape, dtype=torch.float32, layout="contiguous", grad=False):
    t = torch.ones(shape).to(dtype)
    return LAYOUTS[layout](t).detach().requires_grad_(grad)


def takes_grad(dtype):
    return dtype.is_floating_point or dtype.is_complex


def distinct(tensors):
    return list({(told(t), t.dtype, len(t.shape)): t for t in tensors}.values())


def told(t):
    return t.dtype, tuple(t.shape), t.stride(), t.requires_grad, t.device


DTYPED = [new((2, 3), dtype) for dtype in KNOWN + UNKNOWN]
GRADS = [new((2, 3), dtype, grad=True) for dtype in KNOWN if takes_grad(dtype)]
LAID_OUT = distinct(new(shape, layout=layout) for shape in SHAPES for layout in LAYOUTS)
INPUTS = distinct([*DTYPED, *GRADS, *LAID_OUT, *(t.long() for t in LAID_OUT)])
# For these, arguments are varied.
FEW = [new((2, 3)), new((2, 3), grad=True), new((2, 3, 4)), new((2, 3, 4), layout="permuted"),
       new((1, 3, 1)), new(()), new((1,)), new((2, 1, 4, 3), layout="channels last"),
       new((2, 3), torch.int64), new((2, 3), torch.bool), new((2, 3), torch.complex64),
       new((2, 3), torch.float16), new((2, 3), torch.float64), new((2, 3), torch.uint8)]  # fmt: skip

# --- what stands for the first arguments: tensors, or lists of them ---

NUMBERS = [1, 2, -1, 2.5, True, 2**70, 1j, "a", None]


def one_tensor():
    return [(t,) for t in INPUTS], [(t,) for t in FEW]


def two_operands():
    ones = [new(shape, dtype) for dtype in KNOWN + UNKNOWN for shape in ((2, 3), ())]
    many = list(itertools.product(ones, ones))
    many += itertools.product(ones, NUMBERS)
    many += itertools.product(NUMBERS, ones)
    many += itertools.product(LAID_OUT, LAID_OUT[:: len(SHAPES) // 2])
    many += itertools.product(GRADS[2:4], [*GRADS[2:4], new((2, 3), torch.int64), 2])
    many += [(b, a) for a, b in many[-8:]]
    return many, [(FEW[0], FEW[0]), (FEW[8], FEW[8]), (FEW[0], 2), (FEW[0],)]


def three_operands():
    masks = [new(shape, torch.bool) for shape in ((2, 3), (3,), (1, 3), (), (4, 2, 3))]
    masks += [new((2, 3)), new((2, 3), torch.uint8), new((3, 2), torch.bool, "permuted"), True]
    values = [new((2, 3)), new((2, 3), grad=True), new((2, 3), torch.int64), new(()), new((3,)),
              new((3, 2), layout="permuted"), new((3,), layout="expanded"), *NUMBERS]  # fmt: skip
    same = [(new((2, 3), torch.bool), t, t) for t in DTYPED]
    return [*itertools.product(masks, values, values), *same], [(masks[0], values[0], values[0])]


def filled():
    tensors = [*DTYPED, *GRADS, *LAID_OUT]
    masks = [new(shape, torch.bool) for shape in ((2, 3), (3,), (1, 3), (), (4, 2, 3), (2, 1))]
    masks += [new((2, 3)), new((2, 3), torch.uint8), new((3, 2), torch.bool, "permuted")]
    values = [*NUMBERS, new(()), new((2, 3))]
    few = itertools.product(FEW, masks, values)
    return [*few, *itertools.product(tensors, masks, [1.5])], []


def cast_by_tensor():
    return list(itertools.product(INPUTS, DTYPED)), [(FEW[0], FEW[8])]


def matrices():
    left = [(3,), (2, 3), (1, 3), (5, 2, 3), (1, 2, 3), (2, 5, 2, 3), (5, 3, 2)]
    right = [(3,), (3, 4), (3, 1), (5, 3, 4), (1, 3, 4), (2, 5, 3, 4), (4, 3), (5, 4, 3)]
    layouts = ["contiguous", "permuted", "expanded", "halved"]
    many = list(itertools.product((new(s, layout=w) for s in left for w in layouts),
                                  (new(s, layout=w) for s in right for w in layouts)))  # fmt: skip
    for dtypes in itertools.product(KNOWN + UNKNOWN, repeat=2):
        many += [(new(a, dtypes[0]), new(b, dtypes[1]))
                 for a, b in (((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 3), (4, 3)))]  # fmt: skip
    for grads in itertools.product([False, True], repeat=2):
        many += [(new(a, grad=grads[0]), new(b, grad=grads[1]))
                 for a, b in (((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((2, 3), (4, 3)))]  # fmt: skip
    return many, many[:4]


def matrices_and_a_row():
    """input, weight, bias."""
    pairs, _ = matrices()
    rows = [None, new((4,)), new((4,), grad=True), new((4,), torch.float64), new((1,)), new(()),
            new((3,)), new((2, 4)), 1]  # fmt: skip
    many = [(a, b, row) for a, b in pairs[:400:3] for row in rows]
    many += [(a, b, new((4,), b.dtype)) for a, b in pairs if takes_grad(b.dtype)]
    return many + pairs, [(new((2, 3)), new((4, 3)))]


def a_sum_and_matrices():
    """input, mat1, mat2."""
    pairs, _ = matrices()
    sums = [new((4,)), new((4,), grad=True), new((2, 4)), new((2, 4), torch.float64), new((1,)),
            new((2, 1)), new(()), new((3,)), new((1, 2, 4)), new((4, 2), layout="permuted"), 1]  # fmt: skip
    many = [(s, a, b) for a, b in pairs[::3] for s in sums]
    many += [(new((4,), b.dtype), a, b) for a, b in pairs]
    return many, [(new((4,)), new((2, 3)), new((3, 4)))]


def look_up(weight_first):
    def leads():
        weights = [new((7, 3), dtype) for dtype in KNOWN + UNKNOWN]
        weights += [new((7, 3), grad=True), new((3, 7), layout="permuted"), new((7,)),
                    new((7, 3, 2)), new((1, 3)), new((0, 3)), None]  # fmt: skip
        indices = [new((2, 3), dtype) for dtype in KNOWN]
        indices += [new(shape, torch.int64) for shape in ((), (1,), (4, 2, 3), (2,) * 8, (0,))]
        indices += [new((2, 3), torch.int64, "permuted"), new((3,), torch.int64, "expanded"), 1]
        indices = [i * 0 for i in indices]
        many = list(itertools.product(weights, indices))
        few = list(itertools.product([new((7, 3)), new((7, 3), grad=True)], indices[3:5]))
        turn = (lambda p: p) if weight_first else (lambda p: p[::-1])
        return [turn(p) for p in many], [turn(p) for p in few]

    return leads


def joined():
    lists = [[t] for t in INPUTS] + [[t, t] for t in INPUTS]
    lists += [[a, b] for a, b in itertools.product(DTYPED[::2], DTYPED)]
    lists += [[a, b, a] for a, b in itertools.product(FEW, FEW)]
    lists += [[new((2, 3)), new((2, 3), grad=True)], [new((2, 3)), new((1, 3))],
              [new((2, 3)), new((2, 1))], [new((2, 3)), 1], [], [new((2, 3)), new((0,))]]  # fmt: skip
    few = [[t, t] for t in FEW] + [[new((2, 3)), new((2, 4))], [new((2, 3)), new((4, 3))]]
    return [(made(items),) for items in lists for made in (list, tuple)], [(i,) for i in few]


def normed():
    """input, normalized_shape, weight."""
    shapes = [(3,), [3], (2, 3), (4,), (3, 4), (), 3, None, (3.0,), torch.Size([3])]
    few = [(t, s) for t in FEW for s in ((3,), (2, 3), (3, 4))]
    weights = [new((3,)), new((3,), grad=True), new((3,), torch.float64), new((2, 3)), new((1,)),
               new((6,), layout="halved"), new((3,), torch.int64)]  # fmt: skip
    many = [(t, s) for t in INPUTS for s in (*shapes, t.shape, t.shape[-1:])]
    many += [(t, (3,), w) for t in INPUTS for w in weights]
    return many, few + [(new((2, 3)), (3,), w) for w in weights]


BOUNDS = [5, 3, 0, -4, 7.0, 2.5, True, 2**70, None, "a", new(()), new((), torch.int64)]


def attended():
    """query, key, value, attn_mask."""
    shapes = [((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)), ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)),
              ((2, 3, 5, 8), (1, 3, 7, 8), (2, 3, 7, 8)), ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4)),
              ((2, 5, 8), (2, 7, 8), (2, 7, 8)), ((2, 3, 1, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
              ((2, 3, 5, 8), (2, 3, 7, 4), (2, 3, 7, 8)), ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 6, 8))]  # fmt: skip
    many = []
    for trio in shapes:
        for layouts in itertools.product(TURNED, repeat=3):
            many.append(tuple(turned(s, w) for s, w in zip(trio, layouts, strict=True)))
    usual = [turned(s, "turned") for s in shapes[0]]
    many += [tuple(t.to(dtype) for t in usual) for dtype in KNOWN + UNKNOWN]
    many += [(usual[0], usual[1].to(dtype), usual[2]) for dtype in KNOWN]
    many += [tuple(t.requires_grad_(i == at) for i, t in enumerate(turned(s, "turned") for s in shapes[0]))
             for at in range(3)]  # fmt: skip
    masks = [new(s, dtype) for dtype in (torch.bool, torch.float32, torch.float64)
             for s in ((5, 7), (2, 1, 5, 7), (2, 3, 5, 7), (1, 1, 1, 7), (3, 5, 7), (7,), (5, 1),
                       (5, 6), (2, 2, 5, 7), (1, 7))]  # fmt: skip
    masks += [new((5, 7), grad=True), new((1, 1, 5, 7)).expand(2, 3, 5, 7), None, 1]
    masks += [new((1, 3, 5, 7), grad=True), new((5, 7, 3, 1), grad=True).permute(3, 2, 0, 1)]
    many += [(*usual, mask) for mask in masks]
    many += [(*usual, mask, 0.5) for mask in masks]
    return many, [tuple(usual), (*usual, masks[0])]


TURNED = {
    "plain": (0, 1, 2, 3),
    "turned": (0, 2, 1, 3),
    "behind": (0, 1, 3, 2),
    "split": (0, 2, 1, 3),
}


def turned(shape, how):
    """In memory the dimensions lie in another order, of "split" with gaps."""
    if len(shape) < 4:
        return new(shape)
    order = TURNED[how]
    t = new([shape[d] for d in order]).permute(order)
    return (
        torch.cat([t.permute(order)] * 2, -1).permute(order)[..., : shape[3]]
        if how == "split"
        else t
    )


def convolved(dims):
    """input, weight, bias."""

    def leads():
        space = (6, 7, 5)[:dims]
        inputs = [new((2, 4, *space), dtype) for dtype in KNOWN + UNKNOWN]
        inputs += [new((2, 4, *space), layout=w) for w in LAYOUTS]
        inputs += [new(s) for s in ((4, *space), (1, 4, *space), (2, 3, *space), (2, 4, *(1,) * dims),
                                    (2, 1, *space), (2, 4, *space, 2), (2, 4, *(2,) * dims))]  # fmt: skip
        inputs += [new((2, 4, *space), grad=True)]
        weights = [new((8, 4, *(3,) * dims)), new((8, 4, *(1,) * dims)), new((8, 1, *(3,) * dims)),
                   new((8, 2, *(3,) * dims)), new((8, 4, *(3,) * dims), torch.float64),
                   new((8, 4, *(3,) * dims), grad=True), new((6, 4, *(2,) * dims)), None,
                   new((8, 4, *(3,) * dims), layout="permuted")]  # fmt: skip
        biases = [
            None,
            new((8,)),
            new((8,), grad=True),
            new((8,), torch.float64),
            new((4,)),
            new(()),
        ]
        many = [(t, w) for t in inputs for w in weights]
        many += [(t, new((8, 4, *(3,) * dims), t.dtype)) for t in inputs]
        many += [(inputs[7], w, b) for w in weights for b in biases]
        return many, [
            (inputs[7], weights[0], None),
            (inputs[7], weights[2]),
            (inputs[-1], weights[3]),
        ]

    return leads


def pictures():
    tensors = [new((2, 4, 6, 7), dtype) for dtype in KNOWN + UNKNOWN]
    tensors += [new((2, 4, 6, 7), layout=w) for w in LAYOUTS]
    tensors += [
        new(s) for s in ((4, 6, 7), (1, 4, 6, 7), (2, 1, 6, 7), (2, 4, 1, 1), (2, 4, 2, 3), (6, 7))
    ]
    tensors += [new((2, 4, 6, 7), grad=True)]
    return [(t, 2) for t in tensors], [
        (tensors[7],),
        (tensors[-1],),
        (tensors[7], 3),
        (tensors[7], (3, 2)),
    ]


def batches():
    """input, running_mean, running_var, weight, bias."""
    inputs = [*pictures()[0], *((new(s),) for s in ((2, 4), (2, 4, 3), (4,), (2, 4, 3, 2, 2)))]
    rows = [None, new((4,)), new((4,), grad=True), new((4,), torch.float64), new((3,)), new((1, 4))]
    usual = new((2, 4, 6, 7))
    many = [(t[0], rows[1], rows[1]) for t in inputs]
    many += [(t[0], *(new((4,), t[0].dtype) for _ in range(4))) for t in inputs]
    many += [(usual, a, a) for a in rows] + [
        (usual, rows[1], rows[1], a, b) for a in rows for b in rows
    ]
    return many, [(usual, rows[1], rows[1]), (usual, rows[1], rows[1], rows[2], rows[1])]


DATA = [1, 2.5, True, [1, 2], [[1, 2], [3, 4]], [1, 2.5], [True, 1], (1, 2), ((1,), (2.5,)), [(1,)],
        -(2**63), 2**63, 2**70, 1j, "a", None, [], [[]], [[1], [1, 2]], [1, [2]], [[1], 2], [None],
        new((2,)), [new(())], [1, new(())], range(3), {1: 2}, float("nan"), [[[[1]]]]]  # fmt: skip


def copied():
    """input, src."""
    few = list(itertools.product(FEW, FEW))
    return [*itertools.product(LAID_OUT, FEW), *itertools.product(DTYPED, DTYPED), *few], few[:20]


def assigned():
    """input, key, value."""
    values = [1, 2.5, True, 1j, 2**70, None, new(()), new((3,)), new((2, 3)), new((1, 3)), new((2, 1)),
              new((3,), grad=True), new((3,), torch.int64), new((3,), torch.complex64), new((4,))]  # fmt: skip
    many = list(itertools.product([*FEW, new((3,), layout="expanded")], KEYS, values))
    many += [(t, slice(None), v) for t in (*DTYPED, *GRADS) for v in values]
    return many, [(FEW[0], 0), (FEW[0], 0, 1)]


def subscribed():
    """input, key."""
    keys = [p for p in PICKS if p.dim() and p.dtype == torch.int64]
    pairs = [*itertools.product(keys, keys), *((a, slice(None), b) for a in keys for b in keys[:3]),
             *((slice(0, 1), k) for k in keys), *((k, None) for k in keys)]  # fmt: skip
    return list(itertools.product(LAID_OUT, keys + pairs)), [(t,) for t in FEW]


def gathered():
    """input, dim, index."""
    indices = [
        new(s, torch.int64) * 0 for s in ((2, 3), (1, 3), (2, 1), (3, 3), (3,), (), (1, 3, 1))
    ]
    indices += [
        new((2, 3)),
        new((2, 3), torch.int32) * 0,
        1,
        (new((3,), torch.int64) * 0).expand(2, 3),
    ]
    many = list(itertools.product([*FEW, *DTYPED, new((3, 2), layout="permuted")], DIMS, indices))
    return many, [(FEW[0], 0, indices[0]), (FEW[1], 1, indices[0])]


def varied(base, others):
    """The arguments, each of them replaced by others in turn."""
    return [tuple(base), *((*base[:i], other, *base[i + 1 :])
                           for i, more in others.items() for other in more)]  # fmt: skip


def with_heads():
    """query, key, value, …, out_proj_bias."""
    base = [new((5, 2, 8)), new((7, 2, 8)), new((7, 2, 8)), 8, 2, new((24, 8)), new((24,)), None, None,
            False, 0.0, new((8, 8)), new((8,))]  # fmt: skip
    same = [new((5, 2, 8), dtype) for dtype in KNOWN]
    more = [*same, new((5, 2, 8), grad=True), new((2, 5, 8), layout="permuted"), new((5, 8)),
            new((5, 1, 8)), new((2, 5, 8)).transpose(0, 1), new((7, 2, 8), grad=True)]  # fmt: skip
    rows = [None, new((24,), grad=True), new((8,), grad=True), new((8,)), new((8,), torch.float64)]
    others = {0: more, 1: more, 2: more, 3: [4, 8.0, None], 4: [3, 4, 0, -1, 16, 2.0],
              5: [new((24, 8), grad=True), new((8, 24), layout="permuted"), new((16, 8)), None], 6: rows,
              7: [new((1, 1, 8))], 8: [new((1, 1, 8))], 9: FLAGS, 10: [0.5, 1.0, 0, None, -1.0, 1.5],
              11: [new((8, 8), grad=True), new((8, 8), torch.float64), None], 12: rows}  # fmt: skip
    few = [base, [base[0], base[0], base[0], *base[3:]], [*base[:10], 0.5, *base[11:]]]
    many = varied(base, others) + [(t, t, t, *base[3:5], *(p.to(t.dtype) if isinstance(p, torch.Tensor) else p
                                                          for p in base[5:])) for t in same]  # fmt: skip
    return many, list(map(tuple, few))


def whole_layers():
    """All of _transformer_encoder_layer_fwd."""
    row, inner = new((8,)), new((6, 8))
    base = [new((2, 5, 8)), 8, 2, new((24, 8)), new((24,)), new((8, 8)), row, True, False, 1e-5, row, row,
            row, row, inner, new((6,)), new((8, 6)), row]  # fmt: skip
    odd = [new((8,), grad=True), new((8,), torch.float64), new((3,)), None]
    others = {i: odd for i in (6, 10, 11, 12, 13, 17)} | {
        0: [new((2, 5, 8), dtype) for dtype in KNOWN] + [new((5, 2, 8), layout="permuted"), new((5, 8)),
                                                         new((2, 5, 8), grad=True), new((1, 1, 8))],
        1: [4, None], 2: [3, 4, 0, -1], 3: [new((8, 24)), None], 14: [new((8, 6)), new((5, 8))],
    }  # fmt: skip
    return varied(base, others), []


def recurrent(gates):
    def weights(layers=1, both=False, biases=True, into=4, width=3, **more):
        ways = 2 if both else 1
        shapes = []
        for i in range(layers * ways):
            columns = into if i < ways else width * ways
            shapes += [(gates * width, columns), (gates * width, width)]
            shapes += [(gates * width,)] * 2 * biases
        return [new(shape, **more) for shape in shapes]

    def states(*shape, grads=(False, False), **more):
        made = tuple(new(shape, grad=grad, **more) for grad in grads)
        return made if gates == 4 else made[0]

    def leads():
        base = [new((5, 2, 4)), states(1, 2, 3), weights(), True, 1, 0.0, False, False, False]
        one = [new((5, 1, 4)), states(1, 1, 3), *base[2:]]
        inputs = [new((5, 2, 4), dtype) for dtype in KNOWN + UNKNOWN]
        inputs += [new((4, 2, 5), layout="permuted"), new((2, 4)), new((5, 2, 3)), new((0, 2, 4)),
                   new((1, 2, 4)), new((5, 3, 4)), new((5, 2, 4), grad=True), 1, None]  # fmt: skip
        hidden = [states(2, 2, 3), states(1, 3, 3), states(1, 2, 4), states(2, 3),
                  states(1, 2, 3, grads=(True, False)), states(1, 2, 3, grads=(False, True)),
                  states(1, 2, 3, dtype=torch.float64), new((1, 2, 3)), [new((1, 2, 3))] * 2,
                  (new((1, 2, 3)),), (new((1, 2, 3)), new((1, 2, 2))), None]  # fmt: skip
        many = varied(base, {
            0: inputs, 1: hidden, 3: FLAGS, 4: [2, 0, True], 5: [0, 0.5, 1, 1.5, None], 6: FLAGS, 7: FLAGS,
            8: FLAGS, 2: [weights(2), weights(biases=False), weights(into=3), weights(width=2),
                          weights(grad=True), weights(dtype=torch.float64), weights()[:3], tuple(weights()),
                          [*weights()[:3], new((gates * 3,), grad=True)], [*weights()[:3], new((2,))],
                          [new((4, gates * 3), layout="permuted"), *weights()[1:]], [], None],
        })  # fmt: skip
        many += [(new((5, 2, 4), dtype), states(1, 2, 3, dtype=dtype), weights(dtype=dtype), *base[3:])
                 for dtype in KNOWN]  # fmt: skip
        for layers, both, biases, first in itertools.product((1, 2), *[(False, True)] * 3):
            start = [new((2, 5, 4) if first else (5, 2, 4)), states(layers * (1 + both), 2, 3)]
            many += [(*start, weights(layers, both, biases), biases, layers, drop, train, both, first)
                     for drop, train in ((0.0, False), (0.5, False), (0.5, True))]  # fmt: skip
        return [*many, tuple(one), (*one[:8], True)], [tuple(base[:7])]

    return leads


def measured():
    """input, target."""
    return list(itertools.product([*FEW, *DTYPED], [*FEW, *DTYPED])), [
        (FEW[0], FEW[0]),
        (FEW[1], FEW[0]),
    ]


def classified():
    """input, target."""
    targets = [new(s, dtype) * 0 for s in ((2,), (), (3,), (2, 3), (2, 4), (2, 2))
               for dtype in (torch.int64, torch.int32, torch.float32)]  # fmt: skip
    few = [(new((2, 3)), targets[0]), (new((2, 3), grad=True), targets[0])]
    return list(itertools.product([*FEW, *DTYPED, new((2, 3, 2, 2))], targets)), few


def resized():
    tensors = [t[0] for t in pictures()[0]] + [new((2, 3, 5)), new((2, 3, 4, 2, 3))]
    return [(t, 3) for t in tensors], [
        (tensors[7],),
        (tensors[-1],),
        (tensors[-2],),
        (tensors[7], 5),
    ]


# A rule's function → what makes its first arguments: many for plain calls, few for calls whose
# further arguments are varied.
LEADS = {
    "meta_binary": two_operands,
    "meta_where": three_operands,
    "meta_masked_fill": filled,
    "meta_type_as": cast_by_tensor,
    "meta_matmul": matrices,
    "meta_linear": matrices_and_a_row,
    "meta_addmm": a_sum_and_matrices,
    "meta_embedding": look_up(True),
    "meta_look_up": look_up(False),
    "meta_cat": joined,
    "meta_stack": joined,
    "meta_norm": normed,
    "meta_attention": attended,
    "meta_max_pool": pictures,
    "meta_mean_pool": pictures,
    "meta_adaptive_pool": pictures,
    "meta_batch_norm": batches,
    "meta_copy": copied,
    "meta_setitem": assigned,
    "meta_gather": gathered,
    "meta_getitem": subscribed,
    "meta_multi_head": with_heads,
    "meta_encoder_layer": whole_layers,
    "meta_distance": measured,
    "meta_classes": classified,
    "meta_interpolate": resized,
    "meta_extreme": two_operands,
    "meta_zeros": lambda: ([()], [()]),
    "meta_full": lambda: ([()], [(SHAPED[2],), (SHAPED[1], 1)]),
    "meta_arange": lambda: (list(itertools.product(BOUNDS, BOUNDS)), [(b,) for b in BOUNDS[:3]]),
    "meta_new": lambda: ([], [(t,) for t in FEW]),
    "meta_tensor": lambda: ([(data,) for data in DATA], [(data,) for data in DATA[:4]]),
    "meta_new_tensor": lambda: (
        list(itertools.product([*FEW, *DTYPED], DATA)),
        list(itertools.product(FEW[:3], DATA[:4])),
    ),
}

# The same by the row.
ROW_LEADS = {
    **{f"conv{dims}d": convolved(dims) for dims in (1, 2, 3)},
    "lstm": recurrent(4),
    "gru": recurrent(3),
    "rnn_tanh": recurrent(1),
    "rnn_relu": recurrent(1),
}

# --- further arguments, by the parameter's name ---

DIMS = [0, 1, -1, 3, -5, True, 1.0, "a", None]
REALS = [1, 2.5, -1, True, "a", None]
FLAGS = [False, True, None, 1]
SHAPED = [(-1,), (6,), (3, 2), (2, -1), (-1, -1), (0, -1), (7,), (), (1, 6), (1, 1), (24,), (4, 6),
          (6, 4), (2, 2, 6), (3, 1), (5, 2, 3), (-1, 3), (5, -1, -1), (2, 3, 4), (4, 2, 3, 4),
          (2**32, 2**32, -1), (1,) * 9, (2.0, 3), (True, 6), [6], 6, "a", None]  # fmt: skip
ORDERS = [(1, 0), (0, 1), (-1, 0), (0, 0), (0,), (), (2, 0, 1), (1, 2, 0), (0, 2, 1), (0, 1, 2, 3),
          (3, 1, 0, 2), (0, 1, 5), (0, True), (1.0, 0), [1, 0], 0, "a", None]  # fmt: skip
PICKS = [new((2,), torch.int64) * 0, new((1, 2), torch.int64) * 0, new((), torch.int32) * 0,
         new((2,), torch.bool), new((2,), torch.uint8), new((2, 1)), new((2, 2), torch.int64).t() * 0,
         new((4, 2), torch.int64)[:, 0] * 0, new((2, 1), torch.int64) * 0,
         (new((2,), torch.int64) * 0).expand(3, 2), new((2, 1), torch.int32) * 0,
         new((2, 2, 3), torch.int64).permute(2, 0, 1) * 0, new((1, 2), torch.int64).t() * 0,
         new((2, 1, 1), torch.int64)[:, :, 0] * 0]  # fmt: skip
KEYS = [*PICKS, *((p, PICKS[0]) for p in PICKS), *((slice(None), p) for p in PICKS),
        (PICKS[0], slice(None), PICKS[0]), (PICKS[1], None, PICKS[0]), (..., PICKS[0]),
        (None, PICKS[0]), (0, PICKS[1]), (slice(1, None), PICKS[0]), (PICKS[0], slice(0, 1)),
        (PICKS[0], slice(None, None, 2)), (PICKS[0], ..., PICKS[1]), (PICKS[0], 0),
        (slice(None), PICKS[0], slice(0, 2)), 0, -1, 1, 7, True, None, ..., slice(None), slice(1, None), slice(None, None, 2),
        slice(None, None, -1), slice(-1, None), slice(2, 1), slice(0, 9), slice("a"),
        slice(2**70), (), (0, 1), (0, None), (None, 0), (..., 0), (..., ...), (0, 0, 0, 0, 0),
        (slice(None), 0), (slice(None), None, slice(0, 2)), (None, ..., slice(-2, None)),
        (None,) * 8, [0], "a", 1.0]  # fmt: skip
TYPES = [None, torch.float64, torch.float16, torch.int64, torch.int16, torch.complex64, torch.bool,
         torch.float8_e5m2, 5]  # fmt: skip
PIECES = [1, 2, 3, 7, 0, -1, True, (1, 2), (1, 1), [2, 1], (1, 1, 1), (3, 0), (), (3,), (4, -1),
          "a", None]  # fmt: skip
TARGETS = [torch.float64, torch.float32, torch.int64, torch.complex64, torch.float8_e5m2, "cpu",
           "meta", torch.device("cpu"), torch.device("meta"), new((2,), torch.int16), None]  # fmt: skip
WINDOWS = [1, 2, 3, (2, 1), [1, 2], (3,), (1, 1, 1), 0, -1, True, 2.0, "same", "valid", None, ()]
VALUES = {
    "repeats": [
        (2, 1),
        (1, 2, 3),
        (2,),
        (),
        (0, 1),
        (1, 1),
        (1, -1),
        2,
        [2, 2],
        (2.0, 1),
        None,
        (1,) * 9,
        (2**40, 2**40),
        (1, 2, 1, 3),
    ],
    "shifts": [1, (1,), (1, 2), [2, -1], 0, (), 1.0, None, (1, 2, 3)],
    "pad": [(1, 1), (0, 0), (1, 0, 2, 1), (-1, 0), (1,), (), (1,) * 6, (1,) * 8, [1, 2], 1, None],
    "mode": [
        "nearest",
        "bilinear",
        "constant",
        "reflect",
        "linear",
        "trilinear",
        "bicubic",
        "nearest-exact",
        "area",
        "a",
        None,
    ],
    "value": [None, 1, 2.5, True, 1j, "a"],
    "n": [1, 2, 0, True, -1, None],
    **dict.fromkeys(
        "prepend append".split(),
        [None, new((2, 3)), new((2, 1)), new((1, 3)), 1, new((2, 3), torch.int64), new((2, 3, 1))],
    ),
    "scale_factor": [
        None,
        2,
        2.0,
        0.5,
        1.5,
        0.3,
        0,
        -1.0,
        (2.0, 0.5),
        (2, 3),
        [1.0, 2.0],
        True,
        (2.0,),
        "a",
        0.1,
        1e-9,
        float("nan"),
    ],
    "align_corners": [None, True, False, 1],
    **dict.fromkeys("recompute_scale_factor antialias sparse_grad non_blocking".split(), FLAGS),
    **dict.fromkeys("size_average reduce".split(), [None, True, False]),
    "reduction": ["mean", "sum", "none", "a", None],
    "ignore_index": [-100, 0, True, None],
    "label_smoothing": [0.0, 0.1, 1, None],
    "key_padding_mask": [
        None,
        new((2, 7), torch.bool) == 2,
        new((2, 7)),
        new((7, 2)),
        new((2, 7), torch.float64),
        new((2, 7), grad=True),
    ],
    **dict.fromkeys("need_weights use_separate_proj_weight average_attn_weights".split(), FLAGS),
    **dict.fromkeys("q_proj_weight k_proj_weight v_proj_weight".split(), [None, new((8, 8))]),
    **dict.fromkeys("static_k static_v".split(), [None]),
    **dict.fromkeys("stride padding dilation kernel_size".split(), WINDOWS),
    **dict.fromkeys("bidirectional batch_first".split(), FLAGS),
    "groups": [1, 2, 4, 3, 0, -1, True, None, (2,)],
    "output_size": [1, (1, 1), (3, 2), (None, 2), [2, 2], None, 0, (1, 2, 3), (2,), True, "a"],
    "attn_mask": [None, new((5, 7)), new((5, 7), torch.bool), new((7, 5))],
    "dropout_p": [0.0, 0.5, 0, True, None, "a"],
    **dict.fromkeys(
        "is_causal enable_gqa ceil_mode return_indices count_include_pad".split(), FLAGS
    ),
    "divisor_override": [None, 2, 0],
    "momentum": [0.1, 1, None, "a"],
    **dict.fromkeys("running_mean running_var".split(), [new((4,)), None, new((3,))]),
    **dict.fromkeys("start_dim end_dim dim0 dim1 axis0 axis1".split(), DIMS),
    "dim": [*DIMS, (0,), (0, 1), [1, 0], (0, 0), (0, 5), ()],
    "keepdim": FLAGS,
    "dtype": TYPES,
    **dict.fromkeys("beta threshold negative_slope alpha scale".split(), REALS),
    **dict.fromkeys("inplace train training cudnn_enable scale_grad_by_freq sparse".split(), FLAGS),
    **dict.fromkeys("min max".split(), [1, 0, 1.5, True, 2**70, "a", None, new(())]),
    "rounding_mode": [None, "floor", "trunc", "a"],
    "memory_format": [None, torch.preserve_format, torch.contiguous_format, torch.channels_last],
    "approximate": ["none", "tanh", "a", None, 1],
    **dict.fromkeys("size shape".split(), SHAPED),
    "dims": ORDERS,
    "key": KEYS,
    **dict.fromkeys("split_size_or_sections split_sizes split_size".split(), PIECES),
    "chunks": [1, 2, 3, 7, 0, -1, True, (1,), None],
    "index": [0, 1, 2, -1, -3, 7, True, (1,), None],
    "p": [0.5, 0.0, 1.0, 2.0, -0.5, 1, True, None],
    "eps": [1e-5, None, 1, "a"],
    "weight": [None, new((3,)), new((4,)), new((3,), torch.float64)],
    "bias": [None, new((3,)), new((3,), grad=True), new((4,)), new((3,), torch.float64), 1],
    "padding_idx": [None, 0, -1, 6, 7, -7, -8, True, "a"],
    "max_norm": [None, 1.0],
    "norm_type": [2.0, 1.0],
    "_stacklevel": [3, 1],
    "other": TARGETS,
    "exponent": [1, 2.5],
    "device": ["cpu", "meta", torch.device("cpu"), None, 0],
    "requires_grad": FLAGS,
    "fill_value": [1, 2.5, True, 1j, 2**70, None, "a", new(())],
    "diagonal": [0, 1, -1, True, 1.0, None, 2**70],
    **dict.fromkeys("start end step".split(), [3, 1, 0, -2, 7, 2.5, True, None, "a"]),
}


def values_of(word):
    return VALUES[word.lstrip("*=+")]


def by_position(words):
    """Each argument varied, those before it as they are in most calls."""
    before = []
    for word in words:
        for value in values_of(word):
            yield (*before, value)
            if word[0] in "*+" and isinstance(value, (tuple, list)):
                yield (*before, *value)
        before.append(values_of(word)[0])
    if words and words[0] == "*other":
        yield from itertools.product(TARGETS, TARGETS)
    yield tuple(before)[: len(words)] + (1,) * 2  # too many


def by_name(words):
    """One or two arguments varied."""
    names = [word.lstrip("*=+") for word in words]
    for name in names:
        yield from ({name: value} for value in values_of(name))
    for one, two in itertools.combinations(names, 2):
        for a, b in itertools.product(values_of(one), values_of(two)):
            yield {one: a, two: b}
    for name in names:
        rest = {other: values_of(other)[0] for other in names if other != name}
        yield from ({**rest, name: value} for value in values_of(name))
    yield {"nonsense": 1}
    yield {"out": FEW[0]}


def calls(name):
    """(args, kwargs)."""
    rule, words = ROWS[name]
    many, few = ROW_LEADS.get(name, LEADS.get(rule, one_tensor))()
    for lead in many:
        yield lead, {}
    for lead in few:
        left = words[len(lead) :]
        for more in by_position(left):
            yield lead + more, {}
        for named in by_name(left):
            yield lead, named
            yield (*lead, *(values_of(w)[0] for w in left[:1])), named  # one is there twice, or not
        firsts = dict(zip((w.lstrip("*=+") for w in words), lead, strict=False))
        yield (), firsts
        if lead:
            yield lead, {words[0]: lead[0]}


# --- what torch gives ---


def agrees(answer, results, number, real, first):
    """Whether a rule's answer is what came out."""
    if answer in ("same", "nothing"):
        kept = real is None if answer == "nothing" else real is first
        return kept and (not results or results == [told(first)])
    if answer == "tensor":
        return isinstance(real, torch.Tensor) and real is not first and results == [told(real)]
    if answer == "tensors":
        return isinstance(real, (tuple, list)) and results == [
            t if t is None else told(t) for t in real
        ]
    if answer == "sizes":
        return type(real) is torch.Size and real == results[0][1]
    if answer == "strides":
        return type(real) is tuple and real == results[0][2]
    return type(real) is {"number": int, "truth": bool}[answer] and real == number


class Made(torch.autograd.Function):
    """A tensor with a gradient that is no leaf: it may be written to."""

    @staticmethod
    def forward(ctx, leaf, make):
        return make()


def another(argument):
    """The same tensor with memory of its own, which may be written to."""
    if not isinstance(argument, torch.Tensor) or argument.layout != torch.strided:
        return argument

    def make():
        t = torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype)
        return t.copy_(argument) if 0 not in t.stride() else t

    if argument.requires_grad and torch.is_grad_enabled():
        return Made.apply(torch.ones(1, requires_grad=True), make)
    with torch.no_grad():
        return make().requires_grad_(argument.requires_grad)


def wrong(function, args, kwargs):
    """Whether the rule answers, and what is wrong about that."""
    answer, results, number = _engine.torch_ask_rule(function, args, kwargs)
    if answer == "unknown":
        return False, None
    if answer in ("same", "nothing") and results:
        args = tuple(another(a) for a in args)
        kwargs = {name: another(a) for name, a in kwargs.items()}
    try:
        real = function(*args, **kwargs)
    except Exception as error:
        return True, f"{answer} {results}, but torch raises {error}"
    first = args[0] if args else next(iter(kwargs.values()))
    if agrees(answer, results, number, real, first):
        return True, None
    shown = told(real) if isinstance(real, torch.Tensor) else real
    return True, f"{answer} {results} {number}, but torch gives {shown}"


def shown(argument):
    if isinstance(argument, torch.Tensor):
        return told(argument)[:4]
    return [shown(a) for a in argument] if isinstance(argument, (tuple, list)) else argument


@contextmanager
def default_dtype(dtype):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(old)


MODES = {
    "plain": nullcontext,
    "without gradients": torch.no_grad,
    "doubles by default": lambda: default_dtype(torch.float64),
}


MEMORY = {name: kind for kind, name in re.findall(r'^(META|VIEW|ALIAS|ASK)\("([^"]+)"',
                                                  TABLE.read_text(), re.MULTILINE)}  # fmt: skip


def storages(items):
    """Of the tensors among them that have elements."""
    tensors = (t for t in items if isinstance(t, torch.Tensor) and t.layout == torch.strided)
    return {t.untyped_storage()._cdata for t in tensors if t.device.type == "cpu" and t.numel()}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_whose_memory_results_lie_in(name):
    for args, kwargs in calls(name):
        for function in PLACES[name]:
            answer, _, _ = _engine.torch_ask_rule(function, args, kwargs)
            if answer not in ("tensor", "tensors"):
                continue
            try:
                real = function(*args, **kwargs)
            except Exception:
                continue
            results = storages(real if isinstance(real, (tuple, list)) else [real])
            first = storages([args[0] if args else next(iter(kwargs.values()))])
            given = storages([*args, *kwargs.values()])
            what = f"{function}({shown(args)}, {kwargs})"
            assert not results & (given - first), what
            assert not results & first or MEMORY[name] in ("VIEW", "ALIAS"), what


@pytest.fixture(autouse=True)
def quiet():
    """No warnings, and no threads: these tensors are small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ROWS)
def test_a_rule_says_what_torch_gives(name):
    made = list(calls(name))
    for function in PLACES[name]:
        answered, found = 0, []
        for mode in MODES.values():
            with mode():
                for args, kwargs in made:
                    answers, what = wrong(function, args, kwargs)
                    answered += answers
                    if what:
                        found.append(f"{function}({shown(args)}, {kwargs}): {what}")
        assert not found, f"{len(found)} of {answered}:\n" + "\n".join(found[:12])
        assert answered
