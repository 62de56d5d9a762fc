"""Sizes of tensors that are kept open, as a program meets them: torch.Size and what is made of it."""

import pytest

torch = pytest.importorskip("torch")

from stator import _engine, _torch  # noqa: E402
from tests.numbers.numbers_tools import entries  # noqa: E402

_torch.attach()

SHAPES = [(3, 4), (5, 6), (7, 9), (2, 3), (3, 4), (8, 8), (1, 4), (0, 5)]
ANY = len(set(SHAPES))  # one entry a shape: it is settled

# program → how many entries the shapes without a 0 or 1 need
PROGRAMS = {
    "x.shape": 1,
    "x.shape[0], x.size(-1), x.size()": 1,
    "x.shape.numel(), x.numel()": 1,
    "x.shape + (1,), (1,) + x.shape, x.shape + x.shape": 1,
    "x.shape[1:], x.shape[:-1], x.shape[::-1], x.shape[:0]": 1,
    "x.shape * 2, 2 * x.shape, x.shape * 0": 1,
    "x.shape == (3, 4), x.shape == torch.Size([3, 4]), x.shape != (3,)": 2,
    "x.shape in [(3, 4), (5, 6)]": 3,
    "x.shape < (4, 9), max(x.shape, (3, 9))": ANY,
    "repr(x.shape), f'{x.shape}'": ANY,
    "{x.shape: 1}, hash(x.shape)": ANY,
    "tuple(x.shape), list(x.shape), len(x.shape), [*x.shape]": 1,
    "torch.Size([x.shape[0], 5]), torch.Size(x.shape), torch.Size((x.shape[1] + 1,))": 1,
    "torch.Size([x.shape[0], 'a'])": ANY,
    "x.shape + ('a',)": ANY,
    "x.shape + [1]": ANY,
    "isinstance(x.shape, tuple), type(x.shape), isinstance(x.shape[0], int)": 1,
    "max(x.shape), min(x.shape), sum(x.shape)": 1,
    "sorted(x.shape)": 2,
    "x.shape.count(3), x.shape.index(x.shape[1])": ANY,
    "[k + 1 for k in x.shape], list(zip(x.shape, x.shape[1:]))": 1,
    "dict(a=x.shape[0]), {'b': x.shape}": 1,
    "x.stride(), x.stride(0)": 1,
    "x.view(x.shape[0] * x.shape[1])": 1,
    "x.reshape(1, *x.shape).expand(2, x.shape[0], x.shape[1])": 1,
    "x * x.shape[0], x.shape[1] - x": 1,
    "torch.zeros(x.shape[0], 2) + 1": 1,
    "x[: x.shape[0] // 2], x[x.shape[0] - 1 :]": 1,
    "x + 1 if x.shape[0] > 4 else x - 1": 2,
    "[0] * x.shape[0]": ANY,
}


def seen(o):
    if isinstance(o, torch.Tensor):
        return torch.Tensor, o.shape, o.stride(), o.tolist()
    if isinstance(o, (tuple, list)):
        return type(o), [seen(item) for item in o]
    return type(o), o


def outcome(f, x):
    try:
        return "gave", seen(f(x))
    except Exception as raised:
        return "raised", type(raised), str(raised)


def compile_sizes(f, **more):
    symbolic = {"L['x']": 0b1111 | 0b1111 << 16}
    compiler = _engine.compiler(None, RuntimeError, False, True, 64, symbolic=symbolic, **more)
    return _engine.compiled(f, compiler)


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("breaks", [0, 2])
def test_results_are_those_of_plain_python(text, breaks):
    f = eval(f"lambda x: ({text})", {"torch": torch})
    compiled = compile_sizes(f, **({"break_every": breaks} if breaks else {}))
    for shape in SHAPES:
        x = torch.arange(float(shape[0] * shape[1])).reshape(shape)
        for _ in range(2):
            assert outcome(compiled, x) == outcome(f, x), shape


@pytest.mark.parametrize("text", PROGRAMS)
def test_entries(text):
    f = eval(f"lambda x: ({text})", {"torch": torch})
    compiled = compile_sizes(f)
    for shape in SHAPES:
        if min(shape) > 1:
            outcome(compiled, torch.ones(shape))
    assert entries(compiled) <= PROGRAMS[text], [e["guards"] for e in compiled.compiler.entries()]


def test_a_size_outlives_its_tensor():
    def f(x):
        s = x.shape
        x = x[1:]
        return s[0], x.shape[0], s

    compiled = compile_sizes(f)
    for n in (3, 5, 9):
        assert compiled(torch.ones(n, 2)) == (n, n - 1, (n, 2))
    assert entries(compiled) == 1
