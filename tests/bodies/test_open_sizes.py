"""Sizes that change from call to call, across bodies: each call gives what plain Python gives, and
few graphs are made."""

from __future__ import annotations

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

pytestmark = pytest.mark.filterwarnings("ignore")

LINEAR = torch.nn.Linear(4, 4)
NORM = torch.nn.BatchNorm1d(4)


@pytest.fixture(autouse=True)
def installed():
    stator.install()
    torch._dynamo.reset()
    yield
    stator.uninstall()
    torch._dynamo.reset()


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


FEW = [
    plain, a_size_in_the_body, a_size_from_outside, views, several_results, within_another, drops,
    a_branch_on_the_size, gives_its_argument, wrapped, wrapped_without_gradients, a_list_grows,
]  # fmt: skip
MANY = [
    recomputed_with_the_reentrant_kind, writes_in_the_body, writes_to_its_argument, buffers,
    autocast, behind_an_operation_without_a_rule,
]  # fmt: skip


def outcome(function, n):
    LINEAR.zero_grad()
    NORM.reset_running_stats()
    torch.manual_seed(n)
    x = torch.randn(n, 4, requires_grad=True)
    result = function(x)
    leaves = torch.utils._pytree.tree_leaves(result)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if tensors:
        sum(tensor.sin().sum() for tensor in tensors).backward()
    grads = [p.grad if p.grad is None else p.grad.clone() for p in LINEAR.parameters()]
    return result, x.grad, grads, [b.clone() for b in NORM.buffers()], torch.rand(1)


@pytest.mark.parametrize("backend", ["replay", "eager", "aot_eager"])
@pytest.mark.parametrize("program", FEW + MANY, ids=lambda program: program.__name__)
def test_as_in_plain_python(program, backend):
    counter = CompileCounterWithBackend(backend)
    fast = torch.compile(program, backend="eager" if backend == "replay" else counter)
    for n in (3, 4, 7, 3, 9):
        if program is drops and backend != "replay":  # torch's operator draws other numbers
            torch.testing.assert_close(outcome(fast, n)[0].shape, outcome(program, n)[0].shape)
        else:
            torch.testing.assert_close(outcome(fast, n), outcome(program, n))
    if program in FEW:
        assert counter.frame_count <= 2


def test_a_marked_size_stays_open():
    counter = CompileCounterWithBackend("eager")
    fast = torch.compile(plain, backend=counter, dynamic=True)
    for n in (3, 4, 7):
        torch.testing.assert_close(outcome(fast, n), outcome(plain, n))
    assert counter.frame_count == 1
