"""Programs with breaks in them: each piece needs no more entries than a function without a break."""

import collections

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from tests.sizes import pieces  # noqa: E402
from tests.sizes.test_changing import as_it_is, told  # noqa: E402

# The list that a comprehension fills has another length each time round.
EXCEEDS_STOCK = {"in_comprehension"}


def entries_of(fast):
    rows = fast.compiler.entries()
    return list(collections.Counter((row["name"], row["offset"]) for row in rows).values())


@pytest.mark.parametrize("backend", ["eager", as_it_is], ids=["eager", "handed over"])
@pytest.mark.parametrize("name", pieces.ROWS)
def test_pieces(name, backend):
    row = pieces.ROWS[name]
    fast = stator.compile(row.function, backend=backend)
    for args, plain in zip(row.calls(), row.calls(), strict=True):
        assert told(fast(*args)) == told(row.function(*plain))
    made = entries_of(fast)
    if backend == "eager":  # what is handed over decides more about sizes
        assert all(one <= most for one, most in zip(made, row.pieces, strict=True))
    else:
        assert made == row.pieces, fast.metrics["recompiles"]
    assert not fast.metrics["drops"]


@pytest.mark.parametrize("name", pieces.ROWS)
def test_no_more_graphs_than_stock(name):
    row, graphs = pieces.ROWS[name], []

    def count(module, examples):
        graphs.append(module)
        return module.forward

    fast = stator.compile(row.function, backend=count)
    for args in row.calls():
        fast(*args)
    assert row.stock is None or name in EXCEEDS_STOCK or len(graphs) <= row.stock


def test_a_number_that_was_open_in_a_piece_is_said_of_no_other_place():
    """A variable that is bound anew is guarded as it is."""

    def f(x, wanted):
        y = x * x.shape[0]
        n, x = 3, None
        pieces.pause_if(wanted)
        return y * n, x

    fast = stator.compile(f, backend="eager")
    for n in (3, 4, 5, 6):
        assert told(fast(pieces.of(n), n > 4)) == told(f(pieces.of(n), n > 4))
    behind = [row for row in fast.compiler.entries() if row["offset"]]
    assert len(behind) == 1
    assert any("L['callers[0].n'] == 3" in guard[0] for guard in behind[0]["guards"])


def test_terms_outlive_a_trace_that_is_done_again():
    """An exception that lives on makes a trace break earlier; its numbers stay open."""

    def f(x, n):
        try:
            x = x + n
            raise ValueError
        except ValueError:
            x = x * 2
            pieces.pause()
        return x

    fast = stator.compile(f, backend="eager")
    for n in (3, 4, 5, 6, 7):
        assert told(fast(pieces.of(n), n)) == told(f(pieces.of(n), n))
    first = [row for row in fast.compiler.entries() if row["offset"] == 0]
    assert len(first) == 2


# -- numbers in values --


@pytest.mark.parametrize(
    ("f", "make", "entries"),
    [
        (lambda x, t: x.reshape(t) * 2, lambda n: (pieces.of(n), (4, n)), 2),
        (lambda x, t: x.reshape(t[0]) * t[1][0], lambda n: (pieces.of(n), ((4, n), (n,))), 2),
        (lambda x, t: x[t] * 2, lambda n: (pieces.of(20), slice(1, n)), 2),
        (lambda x, t: x[t] * 2, lambda n: (pieces.of(20), (slice(1, n), 2)), 2),
        (lambda x, t: x.new_zeros(t) + t[0], lambda n: (pieces.of(3), torch.Size((n, 4))), 2),
        (lambda x, t: x * t.numel(), lambda n: (pieces.of(3), torch.Size((n, 4))), 2),
        (lambda x, t: x * len({t: 1}), lambda n: (pieces.of(3), (n, 4)), 5),
        (lambda x, t: x * hash(t), lambda n: (pieces.of(3), (n, 0.5)), 5),
        (lambda x, t: (x * 2, t), lambda n: (pieces.of(3), (n, n + 1)), 1),
        (lambda x, t: (x * 2, t + (1,)), lambda n: (pieces.of(3), (n, n + 1)), 2),
        (lambda x, t: x * t[0] if t == (5, 6) else x, lambda n: (pieces.of(3), (n, n + 1)), 3),
    ],
)
def test_numbers_in_tuples_sizes_and_slices(f, make, entries):
    fast = stator.compile(f, backend="eager")
    for n in (3, 7, 5, 6, 9):
        assert told(fast(*make(n))) == told(f(*make(n)))
    assert fast.metrics["entries"] == entries, fast.metrics["recompiles"]
    assert not fast.metrics["drops"]


def test_a_number_that_was_settled_by_chance_is_left_open_again():
    """The second batch is as large as another size."""

    def f(x, n):
        return x.reshape(4, n) + 1

    fast = stator.compile(f, backend=as_it_is)
    for n in (3, 4, 5, 6, 9, 17):
        assert told(fast(pieces.of(n), n)) == told(f(pieces.of(n), n))
    assert fast.metrics["entries"] == 3


def test_sizes_stay_open_where_values_are_asked_for():
    def f(x):
        y = x.sum(0)
        return y * y.max().item(), x.shape[0]

    fast = stator.compile(f, backend="eager")
    for n in (3, 4, 5, 6):
        assert told(fast(pieces.of(n))) == told(f(pieces.of(n)))
    assert [row["offset"] for row in fast.compiler.entries()].count(0) == 2
