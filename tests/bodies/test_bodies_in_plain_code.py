"""Operators with bodies compile themselves when plain code calls them: by torch, also under
`install()`, and also in a piece of a compiled function that CPython runs."""

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402
from torch._higher_order_ops.map import map as map_body  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

import stator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


installed = pytest.fixture(autouse=True)(flow_cases.installed)


@torch.compile(backend="eager")
def compiled_before(v):
    return v * 2


@torch.compiler.nested_compile_region
def region(x):
    return x.sin() + 1


def _cond(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


def _cond_of_compiled(x):
    return torch.cond(x.sum() > 0, lambda v: compiled_before(v), lambda v: v - 1, (x,))


def _while(x):
    return while_loop(lambda i, v: i.sum() < 3, lambda i, v: (i + 1, v * 2), (torch.zeros(1), x))


def _scan(x):
    return scan(lambda c, a: (c + a, c * a), torch.zeros(4), x)


def _map(x):
    return map_body(lambda v: v + 1, x)


def _associative_scan(x):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def _flex(x):
    q = torch.ones(1, 2, 16, 8) * x[0, 0]
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j))


def _flex_with_mask(x):
    q = torch.ones(1, 2, 16, 8) * x[0, 0]
    mask = create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device="cpu")
    return flex_attention(q, q, q, block_mask=mask)


def _regions(x):
    return region(x) + region(x)


PROGRAMS = [_cond, _cond_of_compiled, _while, _scan, _map, _associative_scan, _flex,
            _flex_with_mask, _regions]  # fmt: skip
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def _expected(program, x):
    stator.uninstall()
    result = program(x)
    torch._dynamo.reset()
    stator.install()
    return result


class Net(torch.nn.Module):
    def __init__(self, program):
        super().__init__()
        self.program = program

    def forward(self, x):
        return self.program(x)


@pytest.fixture
def x():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@programs
def test_plain_code_may_use_them(program, x):
    for v in (x, -x, x):
        torch.testing.assert_close(program(v), _expected(program, v))


@programs
def test_a_break_may_use_them(program, x):
    def broken(x):
        y = x * 2
        torch._dynamo.graph_break()
        return program(y)

    fast = torch.compile(broken, backend="eager")
    for v in (x, -x, x):
        torch.testing.assert_close(fast(v), _expected(program, v * 2))


@programs
def test_they_can_be_traced_by_fx(program, x):
    made = make_fx(program)(x)
    torch.testing.assert_close(made(x), _expected(program, x))


@programs
def test_they_can_be_exported(program, x):
    made = torch.export.export(Net(program), (x,)).module()
    torch.testing.assert_close(made(x), _expected(program, x))


def test_gradients_come_through(x):
    made = torch.nn.Linear(4, 4)

    def program(x):
        return torch.cond(x.sum() > 0, lambda v: made(v) + 1, lambda v: v - 1, (x,))

    program(x.abs()).sum().backward()
    expected, made.weight.grad = made.weight.grad, None
    torch.compile(program, backend="eager")(x.abs()).sum().backward()
    torch.testing.assert_close(made.weight.grad, expected)
