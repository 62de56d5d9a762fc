"""A backend may take a number of the graph for one that it is said to be equal to. The graph checks
the equality nevertheless: values that do not meet it raise, as in plain Python."""

import math

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402

CHECK = torch._check


def ints(*values):
    return torch.tensor(values, dtype=torch.int64)


def plain_value(x, t):
    n = t[0].item()
    CHECK(n == 5)
    return x * n, torch.ones(n), n


def plain_value_among_others(x, t):
    a, b = t.tolist()
    CHECK((a == 5) & (b >= 1))
    return x * a


def size(x, t):
    n = t[0].item()
    CHECK(n == x.shape[0])
    return n, x + torch.zeros(n)


def size_unused(x, t):
    CHECK(t[:1].item() == x.shape[0])
    return x + 1


def size_of_narrow_int(x, t):
    n = t[0].to(torch.int16).item()
    CHECK(n * 2 == x.shape[0] + n)
    return x + torch.ones(n)


def two_bounds(x, t):
    n = t[0].item()
    CHECK(n >= x.shape[0])
    CHECK(n <= x.shape[0])
    return x + torch.ones(n)


def written_since(x, t):
    first = t[0].clone()
    n = first.item()
    first.add_(1)
    CHECK(n == x.shape[0])
    return x + torch.ones(n)


def half(x, t):
    n = t[0].item()
    CHECK(n * 2 == x.shape[0])
    return x.view(2, n)


def pieces(x, t):
    return [part.sum() for part in x.split(t.tolist())]


def rest(x, t):
    a, b = t.tolist()
    return x.split([a, b, x.shape[0] - a - b])


def product(x, t):
    a, b = t.tolist()
    CHECK(a * b == x.shape[0])
    return x.view(a, b).sum(0)


def multiple(x, t):
    n = t[0].item()
    CHECK(n % 5 == 0)
    return torch.ones(n).view(5, -1)


def equal_floats(x, t):
    f = x[0].item()
    CHECK(f == 1.0)
    return x * f


def rounded(x, t):
    n = int((t[0] * 1.0).item())
    return x + torch.ones(n)


def rounded_four_ways(x, t):
    f = (t[1] * 0.5).item()
    CHECK(int(f * 2.0) + math.floor(f) == x.shape[0] - 7 + (math.ceil(f) - round(f)))
    return x * 2


def rows(x, t):
    return x.view(t[0].item(), -1) + 1, x.view(-1, t[1].item())


def rows_of_a_reshape(x, t):
    n = t[0].item()
    return x.reshape(n, x.shape[0] // n).sum(1)


def kept_all(x, t):
    kept = x[x > 0]
    CHECK(kept.shape[0] == x.shape[0])
    return kept * 2, kept + x


def kept_all_by_bounds(x, t):
    kept = x[x > 0]
    CHECK(kept.shape[0] >= 10)
    CHECK(kept.shape[0] <= 10)
    return kept * 2, kept + x


def kept_added(x, t):
    return x[x > 0] + x


def kept_counted(x, t):
    kept = x[x > 0]
    CHECK(kept.shape[0] == t[0].item())
    return kept * 2


ONES = torch.ones(10)
ONE_KEPT = torch.tensor([-1.0] * 9 + [1.0])
SIZES = [(ONES, ints(10, 1)), (ONES, ints(6, 1)), (ONES, ints(1, 2)), (ONES[:6], ints(6, 1)),
         (ONES[:6], ints(10, 1)), (ONES[:7], ints(1, 1))]  # fmt: skip
PARTS = [(ONES, ints(7, 3)), (ONES, ints(2, 8)), (ONES, ints(2, 9)), (ONES[:8], ints(4, 4)),
         (ONES[:8], ints(4, 5)), (ONES, ints(11, -1))]  # fmt: skip
FACTORS = [(ONES, ints(2, 5)), (ONES, ints(5, 2)), (ONES, ints(3, 5)), (ONES[:8], ints(4, 2)),
           (ONES, ints(-1, -10))]  # fmt: skip
VALUES = [(ONES, ints(5, 1)), (ONES, ints(6, 1)), (ONES, ints(5, 0)), (ONES, ints(1, 1))]
KEPT = [(ONES, ints(10, 3)), (ONE_KEPT, ints(1, 3)), (ONE_KEPT, ints(10, 3)), (-ONES, ints(0, 0))]
HALVES = [(ONES, ints(0, 2)), (ONES, ints(0, 3)), (ONES, ints(0, 4)), (ONES[:9], ints(0, 1)),
          (ONES[:8], ints(0, 1)), (ONES[:7], ints(0, 0))]  # fmt: skip
ZERO = [(ONES, ints(0, 5)), (ONES, ints(5, 0)), (ONES[:0], ints(0, 0)), (ONES[:0], ints(2, 2))]
HUGE = [(ONES, torch.tensor([value])) for value in (10.0, 1e300, float("nan"), float("inf"), -1.0)]
FLOATS = [(ONES, ints(1, 2)), (ONES * 2, ints(1, 2))]

PROGRAMS = [
    (plain_value, VALUES), (plain_value_among_others, VALUES), (multiple, VALUES),
    (size, SIZES), (size_unused, SIZES), (size_of_narrow_int, SIZES), (two_bounds, SIZES),
    (half, FACTORS), (pieces, PARTS), (rest, PARTS), (product, FACTORS), (equal_floats, FLOATS),
    (rounded, SIZES), (rounded, HUGE), (rounded_four_ways, HALVES), (rows, FACTORS),
    (rows, ZERO), (rows_of_a_reshape, FACTORS), (rows_of_a_reshape, ZERO), (kept_all, KEPT), (kept_all_by_bounds, KEPT), (kept_added, KEPT), (kept_counted, KEPT),
]  # fmt: skip


def outcome(function, args):
    try:
        return function(*(tensor.clone() for tensor in args))
    except Exception as error:
        return type(error)


def same(a, b):
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.shape == b.shape and torch.equal(a, b)
    return a == b


def check(program, calls, backend, **options):
    compiled = stator.compile(program, backend=backend, **options)
    for args in calls:
        assert same(outcome(compiled, args), outcome(program, args)), args


@pytest.mark.parametrize(
    ("program", "calls"), PROGRAMS, ids=lambda item: getattr(item, "__name__", "")
)
def test_the_graph_checks_what_a_backend_takes_for_granted(program, calls):
    check(program, calls, "aot_eager", fullgraph=True)


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "calls"), PROGRAMS, ids=lambda item: getattr(item, "__name__", "")
)
def test_the_same_by_inductor(program, calls):
    check(program, calls, "inductor", fullgraph=True, dynamic=True)


def test_a_number_whose_tensor_was_written_to_ends_the_graph():
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        check(written_since, SIZES, "aot_eager")


def test_what_tensors_do_not_tell_is_an_error():
    def program(x, t):
        n = int(t[0].item() / 3)
        CHECK(n == x.shape[0])
        return x + torch.ones(n)

    compiled = stator.compile(program, backend="aot_eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.UserError, match="equal to one that is known"):
        compiled(torch.ones(3), ints(9))


def test_a_check_leaves_other_sizes_open():
    graphs = []

    def backend(module, examples):
        graphs.append(module)
        return torch._dynamo.lookup_backend("aot_eager")(module, examples)

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = stator.compile(pieces, backend=backend, dynamic=True)
        for n in range(4, 9):
            args = torch.ones(n, requires_grad=True), ints(3, n - 3)
            assert same(compiled(*args), pieces(*args))
    assert len(graphs) == 1
