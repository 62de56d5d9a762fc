"""Hooks on tensors that the program makes, where a backend compiles the backward pass: gradients and
effects are those of plain Python, and a hook that only computes is part of the graph."""

from __future__ import annotations

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402

from stator._versions import private  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
installed = pytest.fixture(autouse=True)(flow_cases.installed)


def plain(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * 10)
    return z * 3


def of_other_tensors(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * 10 + y.sum())
    return z * 3


def of_its_own_tensor(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * z)
    return z.sin()


def two_in_order(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad + 1)
    z.register_hook(lambda grad: grad * 10)
    return z * 3


def used_before(x, y):
    z = x * 2
    w = z.sin()
    z.register_hook(lambda grad: grad * 10)
    return z * 3 + w


def part_used_before(x, y):
    parts = x.split(1)
    whole = torch.cat(parts)
    parts[0].register_hook(lambda grad: grad + 1)
    return whole.sum() + parts[0].sum()


def used_before_and_refused(x, y):
    z = x * 2
    w = z.sin()
    z.register_hook(lambda grad: None)
    return z * 3 + w


def used_before_a_hook_with_effects(x, y):
    z = x * 2
    w = z.sin()
    z.register_hook(lambda grad: flow_cases.STATE.append(1) or grad * 2)
    return z * 3 + w


def asks_for_strides(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * (grad.stride(0) + 2))
    return z.sum()  # whose gradient has no strides


def asks_whether_contiguous(x, y):
    z = x * 2
    w = z.sin()
    z.register_hook(lambda grad: grad.sin() if grad.sin().is_contiguous() else grad.cos())
    return z.sum() + w.sum()


def makes_it_contiguous(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad.contiguous() + 1)
    return z.sum()


def used_twice(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad.sin())
    return z * 3 + z.cos()


def returned(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * 10)
    return z


def written_to(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * 10)
    z.mul_(3)
    return z.sin()


def written_before(x, y):
    z = x * 2
    z.mul_(3)
    z.register_hook(lambda grad: grad * 10)
    return z.sin()


def seen_through_a_view(x, y):
    z = x * 2
    v = z.view(-1)
    v.register_hook(lambda grad: grad * 10)
    return z.sin() + v.sum()


def gives_nothing(x, y):
    z = x * 2
    z.register_hook(lambda grad: None)
    return z * 3


def gives_its_argument(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad)
    return z * 3


def has_effects(x, y):
    z = x * 2
    z.register_hook(lambda grad: flow_cases.STATE.append(1))
    return z * 3


def is_removed(x, y):
    z = x * 2
    handle = z.register_hook(lambda grad: grad * 10)
    z.register_hook(lambda grad: grad + 1)
    handle.remove()
    return z * 3


def removes_itself(x, y):
    z = x * 2
    with z.register_hook(lambda grad: grad * 10):
        w = z * 3
    return w


def kept(x, y):
    z = x * 2
    flow_cases.STATE.append(z.register_hook(lambda grad: grad * 10))
    return z * 3


def asks_for_the_mode(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad * 10 if torch.is_grad_enabled() else grad * 20)
    return z * 3


def raises(x, y):
    def hook(grad):
        raise ValueError

    z = x * 2
    z.register_hook(hook)
    return z * 3


def of_another_shape(x, y):
    z = x * 2
    z.register_hook(lambda grad: grad.sum())
    return z * 3


def without_gradient(x, y):
    z = y * 2
    z.register_hook(lambda grad: grad * 10)
    return z * x


class Layer(torch.nn.Module):
    def forward(self, v):
        return flow_cases.LINEAR(v)


def _forward_hook(module, args, output):
    output.register_hook(lambda grad: grad * 2)


LAYER = Layer()
LAYER.register_forward_hook(_forward_hook)


def in_a_module(x, y):
    return LAYER(x).relu()


def of_an_input(x, y):
    x.register_hook(lambda grad: grad * 10)
    return x * 3


PROGRAMS = [
    plain, of_other_tensors, of_its_own_tensor, two_in_order, used_before, used_twice, returned,
    written_to, written_before, seen_through_a_view, gives_nothing, gives_its_argument,
    has_effects, part_used_before, used_before_and_refused, used_before_a_hook_with_effects,
    asks_for_strides, asks_whether_contiguous, makes_it_contiguous, is_removed, removes_itself, kept, asks_for_the_mode, raises, of_another_shape,
    without_gradient, in_a_module, of_an_input,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_plain_python(program, backend):
    flow_cases.check(program, backend)


needs_operator = pytest.mark.skipif(
    private.register_hook_op is None, reason="torch has no such operator"
)


@needs_operator
@pytest.mark.parametrize(
    "program", [plain, of_other_tensors, used_before, used_twice, gives_its_argument]
)
def test_one_graph_like_that_of_stock(program):
    ours, stocks = flow_cases.graph_lines(program), flow_cases.stock_lines(program)
    body = ours.index("hook_body_0")  # in which stock names the gradient in different ways
    assert ours[: body + 1] == stocks[: body + 1]
    assert [line.split()[1:3] for line in ours[body + 2 :]] == [
        line.split()[1:3] for line in stocks[body + 2 :]
    ]


@needs_operator
@pytest.mark.parametrize(
    "program", [two_in_order, of_its_own_tensor, returned, in_a_module, part_used_before]
)
def test_one_graph(program):
    counter = CompileCounterWithBackend("aot_eager")
    x, y = flow_cases.inputs()[0]
    torch.compile(program, backend=counter, fullgraph=True)(x.requires_grad_(), y)
    assert counter.frame_count == 1


def test_a_handle_that_is_kept_removes_the_hook():
    x, y = flow_cases.inputs()[0]
    result = torch.compile(kept, backend="aot_eager")(x.requires_grad_(), y)
    flow_cases.STATE.pop().remove()
    result.sum().backward()
    assert x.grad.unique().tolist() == [6.0]
