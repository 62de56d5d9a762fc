"""Sizes that change from call to call, across bodies: each call gives what plain Python gives, and
few graphs are made."""

from __future__ import annotations

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._higher_order_ops.wrap import (  # noqa: E402
    wrap,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)
from torch.utils.checkpoint import checkpoint  # noqa: E402

import stator  # noqa: E402
from tests.older import version  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

LINEAR = torch.nn.Linear(4, 4)
NORM = torch.nn.BatchNorm1d(4)


installed = pytest.fixture(autouse=True)(flow_cases.installed)


def run(body, *args, **options):
    return checkpoint(body, *args, use_reentrant=False, **options)


# (program, how many graphs, at most): one for the first size, one for all others.


def plain(x):
    return run(lambda a: LINEAR(a).relu() * 2, x).sum(0)


def a_size_in_the_body(x):
    return run(lambda a: LINEAR(a).relu() * a.shape[0], x)


def a_size_from_outside(x):
    n = x.shape[0] * 2 + 1
    return run(lambda a: torch.ones(n, 4).sum(0) * a + n, x.sin())


def views(x):
    return run(lambda a: LINEAR(a).view(-1, 2).relu(), x * 2).sum(0)


def several_results(x):
    return run(lambda a: (a.sin(), {"k": a[1:].cos()}, a.shape[0]), x)


def within_another(x):
    return run(lambda a: run(lambda b: LINEAR(b).sin() * b.shape[0], a * 2) + a, x)


def drops(x):
    return run(lambda a: torch.nn.functional.dropout(LINEAR(a), 0.5), x)


def a_branch_on_the_size(x):
    return run(lambda a: a.sin() if a.shape[0] > 100 else a.cos(), x)


def recomputed_with_the_reentrant_kind(x):
    return checkpoint(lambda a: LINEAR(a).relu(), x, use_reentrant=True)


def gives_its_argument(x):
    y = x * 2
    z, s = run(lambda a: (a, a.sin()), y)
    return s, z is y


def wrapped(x):
    return wrap(lambda a: a.sin() * a.shape[0], x)


def wrapped_without_gradients(x):
    return wrap_with_set_grad_enabled(False, lambda a: a.sin() * a.shape[0], x) * x


def a_list_grows(x):
    made = []
    y = wrap(lambda a: (made.append(a.shape[0]), a * 2)[1], x)
    return y * made[0]


def writes_in_the_body(x):
    return run(lambda a: LINEAR(a).mul_(2).relu_(), x)


def writes_to_its_argument(x):
    y = x * 1
    wrap(lambda a: a.add_(1), y)
    return y


def buffers(x):
    return run(lambda a: NORM(a), x)


def autocast(x):
    return wrap_with_autocast("cpu", torch.bfloat16, True, None, lambda a: LINEAR(a), x)


def behind_an_operation_without_a_rule(x):
    return torch.unique(run(lambda a: a.sin(), x)[:, 0].detach()).sum() + x.sum()


def chosen(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))


def chosen_by_what_is_outside(x):
    n, y = x.shape[0], x.exp()
    return torch.cond(x.sum() > 0, lambda a: a.sin() * n + y, lambda a: a.cos() - n, (x,))


def chosen_within_another(x):
    def inner(a):
        return torch.cond(a.max() > 1, lambda b: b * b.shape[0], lambda b: b + 1, (a,))

    return torch.cond(x.sum() > 0, inner, lambda a: a.cos(), (x,)).sum(0)


def chosen_in_a_checkpoint(x):
    def body(a):
        return torch.cond(a.sum() > 0, lambda b: b.sin(), lambda b: b.cos(), (a * 2,))

    return run(body, x)


def chosen_of_other_sizes(x):
    return torch.cond(x.sum() > 0, lambda a: a[:3].sin(), lambda a: a[1:].cos(), (x,))


def chosen_views(x):
    return torch.cond(x.sum() > 0, lambda a: (a * 2).view(-1), lambda a: (a + 1).view(-1), (x,))


def chosen_operands(x):
    return torch.cond(x.sum() > 0, lambda a: a, lambda a: a.cos(), (x,))


def chosen_twice_the_same(x):
    def branch(a):
        b = a.sin()
        return b, b.view(-1)

    return torch.cond(x.sum() > 0, branch, branch, (x,))


def chosen_of_integers(x):
    return torch.cond(x.sum() > 0, lambda a: a.argmax(0), lambda a: a.argmin(0), (x.detach(),))


def mapped(x):
    return torch._higher_order_ops.map(lambda a, b: (a * b.sum(0), a.sin()), x, x * 2)


def scanned(x):
    n = x.shape[0]
    scan = torch._higher_order_ops.scan
    return scan(lambda c, a: (c + a * n, (c * a).clone()), x[0] * 1, x.sin())


def scanned_in_reverse(x):
    scan = torch._higher_order_ops.scan
    return scan(lambda c, a: (c + a, c.sin()), torch.zeros(x.shape[0]), x, dim=1, reverse=True)


def looped(x):
    step = x.shape[0] + 1
    loop = torch._higher_order_ops.while_loop
    return loop(lambda a: a.sum() < 1000, lambda a: (a.abs() + step,), (x.detach(),))


def looped_by_a_float(x):
    step = x.shape[0] * 1.5
    loop = torch._higher_order_ops.while_loop
    return loop(lambda a: a.sum() < 1000, lambda a: (a.abs() + step,), (x.detach(),))


def a_float_in_the_body(x):
    return run(lambda a: LINEAR(a) * (1.5 / a.shape[0]), x)


def looped_into_another_size(x):
    loop = torch._higher_order_ops.while_loop
    try:
        return loop(lambda a: a.sum() < 9, lambda a: (torch.cat([a, a]) + 1,), (x.detach(),))
    except Exception as error:
        return x * len(type(error).__name__)


FEW = [
    chosen, chosen_by_what_is_outside, chosen_within_another, chosen_views,
    mapped, scanned, scanned_in_reverse, looped, plain, a_size_in_the_body, a_size_from_outside, views, several_results, within_another, drops,
    a_branch_on_the_size, gives_its_argument, wrapped, wrapped_without_gradients, a_list_grows,
]  # fmt: skip
MANY = [
    chosen_in_a_checkpoint, chosen_of_other_sizes, chosen_operands, chosen_twice_the_same,
    chosen_of_integers, looped_into_another_size, a_float_in_the_body,
    recomputed_with_the_reentrant_kind, writes_in_the_body, writes_to_its_argument, buffers,
    autocast, behind_an_operation_without_a_rule,
]  # fmt: skip


def outcome(function, n):
    LINEAR.zero_grad()
    NORM.reset_running_stats()
    torch.manual_seed(n)
    x = torch.randn(n, 4, requires_grad=True)
    try:
        result = function(x)
        leaves = torch.utils._pytree.tree_leaves(result)
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if tensors:
            sum(tensor.sin().sum() for tensor in tensors).backward()
    except Exception as error:
        return type(error)
    grads = [p.grad if p.grad is None else p.grad.clone() for p in LINEAR.parameters()]
    return result, x.grad, grads, [b.clone() for b in NORM.buffers()], torch.rand(1)


def compare(got, want):
    if isinstance(want, type):
        assert got is want
        return
    torch.testing.assert_close(got, want, check_stride=True)
    for a, b in zip(*map(torch.utils._pytree.tree_leaves, (got, want)), strict=True):
        if isinstance(a, torch.Tensor):
            assert a.requires_grad == b.requires_grad


WAYS = ["replay", "aot_eager", pytest.param("eager", marks=pytest.mark.full)]


@pytest.mark.parametrize("backend", WAYS)
@pytest.mark.parametrize("program", FEW + MANY, ids=lambda program: program.__name__)
def test_as_in_plain_python(program, backend):
    if program is scanned_in_reverse and backend == "aot_eager" and version() < (2, 13):
        pytest.skip("this torch refuses to differentiate it, under stock Dynamo, too")
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    fast = torch.compile(program, backend="eager" if backend == "replay" else counter)
    for n in (3, 4, 7) if program in FEW else (3, 4):
        if program is drops and backend != "replay":  # torch's operator draws other numbers
            torch.testing.assert_close(outcome(fast, n)[0].shape, outcome(program, n)[0].shape)
        else:
            compare(outcome(fast, n), outcome(program, n))
    if program in FEW:
        assert counter.frame_count <= 2


def test_a_marked_size_stays_open():
    counter = CompileCounterWithBackend("eager")
    fast = torch.compile(plain, backend=counter, dynamic=True)
    for n in (3, 4, 7):
        torch.testing.assert_close(outcome(fast, n), outcome(plain, n))
    assert counter.frame_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_loop_with_a_float_of_a_size(backend):
    """Torch's own operator refuses it at the second size, on some versions."""
    fast = torch.compile(looped_by_a_float, backend=backend)
    for n in (3, 4):
        x = want = torch.randn(n, 4)
        while want.sum() < 1000:
            want = want.abs() + n * 1.5
        torch.testing.assert_close(fast(x), (want,))
