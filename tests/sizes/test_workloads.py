"""What people do with sizes and numbers that change: no more graphs than stock makes of it."""

import types

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from tests.sizes import workloads  # noqa: E402
from tests.sizes.test_changing import as_it_is, told  # noqa: E402


@pytest.mark.parametrize("backend", ["eager", as_it_is], ids=["eager", "handed over"])
@pytest.mark.parametrize("name", workloads.ROWS)
def test_workload(name, backend):
    row = workloads.ROWS[name]
    fast = stator.compile(row.function, backend=backend)
    for args, plain in zip(row.calls(), row.calls(), strict=True):
        assert told(fast(*args)) == told(row.function(*plain))
    assert fast.metrics["entries"] == row.entries <= row.stock, fast.metrics["recompiles"]
    assert not fast.metrics["breaks"] and not fast.metrics["drops"]


# -- numbers that the program itself changes --


def counts(x, o):
    o.k += 1
    return x * o.k


def counts_in_list(x, o):
    o.ks[0] += 1
    return x * o.ks[0]


def counts_in_dict(x, o):
    o.d["k"] += 1
    return x * o.d["k"]


def decays(x, o):
    o.rate *= 0.5
    return x * o.rate


def grows(x, o):
    o.kept = torch.cat([o.kept, x[:1]])
    return o.kept.sum(0)


def grows_in_list(x, o):
    o.parts[0] = torch.cat([o.parts[0], x[:1]])
    return o.parts[0].sum(0)


def shrinks(x, o):
    o.kept = o.kept[1:]
    return o.kept.sum(0)


def turns(x, o):
    o.flag = not o.flag
    return x * 2 if o.flag else x


def counts_by_key(x, o):
    o.k += 1
    return x * {o.k: 2}[o.k]


def counts_and_breaks(x, o):
    o.k += 1
    y = x * o.k
    torch._dynamo.graph_break()
    return y + o.k


def counts_to_three(x, o):
    o.k += 1
    if o.k == 4:
        o.k = 1
    return x * o.k


def state():
    parts = torch.ones(12, 4), torch.ones(3, 4)
    return types.SimpleNamespace(
        k=1, ks=[1], d={"k": 1}, rate=1.0, kept=parts[0], parts=[parts[1]], flag=False
    )


@pytest.mark.parametrize(
    ("f", "entries"),
    [
        (counts, 1),
        (counts_in_list, 1),
        (counts_in_dict, 1),
        (decays, 1),
        (grows, 1),
        (grows_in_list, 1),
        (shrinks, 1),
        (turns, 2),
        (counts_by_key, 6),
        (counts_and_breaks, 2),
        (counts_to_three, 2),
    ],
)
@pytest.mark.parametrize("backend", ["eager", as_it_is], ids=["eager", "handed over"])
def test_what_the_program_itself_changes_is_open_from_the_first_call(f, entries, backend):
    fast, mine, plain = stator.compile(f, backend=backend), state(), state()
    for n in range(6):
        x = torch.arange(8.0).reshape(2, 4) + n
        assert told(fast(x, mine)) == told(f(x, plain))
        assert told(vars(mine)) == told(vars(plain))
    assert fast.metrics["entries"] == entries, fast.metrics["recompiles"]


def test_another_instance_makes_nothing_dynamic():
    class Layer(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width, self.inner = width, torch.nn.Linear(width, width)

        def forward(self, x):
            return self.inner(x).reshape(-1, self.width)

    def f(layer, x):
        return layer(x)

    fast = stator.compile(f, backend="eager")
    for width in (4, 6, 8):
        layer = Layer(width)
        x = torch.ones(3, width)
        assert told(fast(layer, x)) == told(f(layer, x))
    rows = fast.compiler.entries()
    assert len(rows) == 3
    assert not any("any" in guard[0] for row in rows for guard in row["guards"])


def test_sizes_that_are_equal_by_chance_may_differ_later():
    def f(x, y):
        return x.sum() + (y * 2).sum(), x.shape[0], y.shape[0]

    fast = stator.compile(f, backend=as_it_is)
    for n, m in ((5, 5), (6, 6), (7, 8), (9, 3)):
        args = torch.ones(n, 4), torch.ones(m, 4)
        assert told(fast(*args)) == told(f(*args))
    assert fast.metrics["entries"] == 2
