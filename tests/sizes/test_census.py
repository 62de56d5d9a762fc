"""Each row of the census gives what plain Python gives at every size, and no more entries than stock."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from tests.sizes import census  # noqa: E402
from tests.sizes.test_changing import told  # noqa: E402


def compiled(function: Any, backend: Any, **options: Any) -> Any:
    is_module = isinstance(function, torch.nn.Module)
    return stator.compile(function.forward if is_module else function, backend=backend, **options)


def outcome(function: Any, args: tuple[Any, ...], owner: Any) -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(*args)
    state = list(owner.state_dict().values()) if isinstance(owner, torch.nn.Module) else []
    return told(result), [told(arg) for arg in args], told(state)


# Rows that take more entries than stock's.
MORE = frozenset(("storage_offset", "gcd"))


@pytest.mark.parametrize("row", census.ROWS, ids=lambda row: row.name)
def test_sizes_are_left_open(row: census.Row) -> None:
    torch._dynamo.reset()
    plain, traced = row.make(), row.make()
    fast = compiled(traced, "eager")
    for n in census.SIZES:
        torch.manual_seed(n)
        args = row.args(n)
        again = copy.deepcopy(args)
        assert outcome(fast, again, traced) == outcome(plain, args, plain), n
    assert (fast.metrics["entries"] <= row.stock) == (row.name not in MORE)


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_model_that_writes_takes_two_graphs(backend: str, train: bool) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    plain = census.Block().train(train)
    traced = copy.deepcopy(plain)
    fast = compiled(traced, backend)
    for n in (2, 3, 4, 5, 6, 7, 8):
        images = census.normal(n, 3, 8, 8)
        wanted, got = plain(images), fast(images)
        torch.testing.assert_close(got, wanted)
        wanted.sum().backward()
        got.sum().backward()
    for a, b in zip(traced.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
    for a, b in zip(traced.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(a, b)
    assert fast.metrics["entries"] == 2


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=False),
    "SGD, several at once": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.01),
    "Adam, one at a time": lambda p: torch.optim.Adam(p, 0.01, foreach=False),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.01),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_learning_rate_is_left_open(name: str) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    models = [torch.nn.Linear(4, 2)]
    models.append(copy.deepcopy(models[0]))
    plain, traced = (OPTIMIZERS[name](model.parameters()) for model in models)
    rates = [torch.optim.lr_scheduler.ExponentialLR(one, 0.9) for one in (plain, traced)]
    fast = stator.compile(lambda: traced.step(), backend="eager")
    for _ in range(8):
        images = census.normal(3, 4)
        for model, optimizer, step, rate in zip(
            models, (plain, traced), (plain.step, fast), rates, strict=True
        ):
            optimizer.zero_grad()
            model(images).sum().backward()
            step()
            rate.step()
        for a, b in zip(*(model.parameters() for model in models), strict=True):
            torch.testing.assert_close(a, b)  # Adam computes otherwise where it is compiled
    graphs = [e for e in fast.compiler.entries() if " = input" in str(e["graph"])]
    # before there is a state, with this rate, with any rate
    assert len(graphs) <= 3
