# ruff: noqa: E402
"""Calls without a rule that come again with operands that are alike: torch's fakes are asked once, and
the results are eager's whatever happens between the calls."""

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _engine, _fakes
from tests.tensor.helpers import assert_same


@pytest.fixture
def asked(monkeypatch):
    """Names of the functions that fakes are asked about."""
    found = []
    monkeypatch.setattr(_fakes, "watcher", lambda function, symbolic: found.append(function))
    before = _engine.torch_check_rules(False)
    yield found
    _engine.torch_check_rules(before)


def x():
    return torch.arange(12.0).view(3, 4) / 7


PROGRAMS = {
    # name: (program, how often fakes are asked for what has no rule)
    "the same": (lambda a, b: (torch.kron(a, b), torch.kron(a, b)), 1),
    "alike": (lambda a, b: torch.kron(torch.kron(a, b) * 0 + 1, torch.kron(b, a)), 2),
    "other sizes": (lambda a, b: (torch.kron(a, b), torch.kron(a[:2], b)), 2),
    "other strides": (lambda a, b: (torch.kron(a, b), torch.kron(a.T, b.T)), 2),
    "other dtypes": (lambda a, b: (torch.kron(a, b), torch.kron(a.double(), b.double())), 2),
    "other numbers": (lambda a, b: (torch.renorm(a, 2, 0, 1), torch.renorm(a, 2, 1, 1)), 2),
    "the same numbers": (lambda a, b: (torch.renorm(a, 2, 0, 1), torch.renorm(b, 2, 0, 1)), 1),
    "keywords": (lambda a, b: (torch.nan_to_num(a, nan=1.0), torch.nan_to_num(b, nan=1.0)), 1),
    "other keywords": (
        lambda a, b: (torch.nan_to_num(a, nan=1.0), torch.nan_to_num(b, posinf=1.0)),
        2,
    ),
    "-0.0": (lambda a, b: (torch.nan_to_num(a, 0.0), torch.nan_to_num(a, -0.0)), 2),
    "grad mode": (lambda a, b: (torch.kron(a, b), without_grad(torch.kron, a, b)), 2),
}


def without_grad(f, *args):
    with torch.no_grad():
        return f(*args)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_asked_once(name, grad, asked):
    program, times = PROGRAMS[name]
    given = [x().requires_grad_(grad), x().requires_grad_(grad)]
    expected = program(*given)
    got = stator.compile(program, backend="eager", fullgraph=True)(*given)
    assert_same(got, expected)
    names = [function.__name__ for function in asked]
    assert sum(name in ("kron", "renorm", "nan_to_num") for name in names) == times


def written(a, b):
    first = torch.kron(a, b)
    a.add_(1)
    return first, torch.kron(a, b)


def result_written(a, b):
    first = torch.kron(a, b)
    second = torch.kron(a, b)
    second.add_(1)
    return first, second


def gains_gradient(a, b):
    c = torch.zeros(3, 4)
    first = torch.kron(c, c)
    c.add_(a)
    return first.requires_grad, torch.kron(c, c), torch.kron(torch.zeros(3, 4), c)


def turned(a, b):
    c = a * 1
    first = torch.kron(c, b)
    c.t_()
    return first, torch.kron(c, b.T), torch.kron(a * 1, b)


def rolled(a, b):
    return torch.rot90(a), torch.rot90(b), torch.rot90(a) is torch.rot90(a)


def shared(a, b):
    first, second = torch.atleast_3d(a), torch.atleast_3d(b)
    first.add_(1)
    return first, second, a


def random(a, b):
    torch.manual_seed(3)
    return torch.poisson(a.detach()), torch.poisson(b.detach())


def cast(a, b):
    first = torch.kron(a, b)
    with torch.autocast("cpu", torch.bfloat16):
        second = torch.kron(a, b), a @ b.T
    return first, second, torch.kron(a, b)


def loop(a, b):
    for _ in range(4):
        a = torch.logcumsumexp(a, 0) + b
    return a


WRITERS = [written, result_written, gains_gradient, turned, rolled, shared, random, cast, loop]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", WRITERS, ids=lambda f: f.__name__)
def test_what_happens_between(program, grad, backend):
    def given():
        return [x().requires_grad_(grad) * 1, x().requires_grad_(grad) * 1]

    expected = program(*given())
    assert_same(stator.compile(program, backend=backend)(*given()), expected)


@pytest.mark.parametrize("drops", [0.0, 0.5])
def test_attention_draws_only_what_it_drops(drops):
    """Torch marks kernels of attention as random, whatever they drop."""
    mode = _fakes.make_mode(True)
    q = _fakes.fake_of(mode, torch.ones(1, 2, 3, 8))
    attend = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    with mode:
        attend(q, q, q, drops, True)
    assert bool(mode.stator_effects & _fakes.RANDOM) == (drops > 0)


def test_attention_without_a_rule_costs_no_break(asked):
    """On a GPU, and here without the fused kernel, only fakes know how attention lies."""
    attend = torch.nn.functional.scaled_dot_product_attention
    mask, graphs = torch.ones(2, 1, 6, 6, dtype=torch.bool), []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    def layers(x):
        for _ in range(4):
            y = attend(x, x, x, attn_mask=mask)
            x = (y.transpose(1, 2).contiguous() + 1).transpose(1, 2)
        return x

    before = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        x = torch.randn(2, 4, 6, 8)
        assert_same(stator.compile(layers, backend=backend)(x), layers(x))
    finally:
        torch.backends.cuda.enable_flash_sdp(before)
    assert len(graphs) == 1 and len(asked) <= 2  # the first operand lies otherwise
