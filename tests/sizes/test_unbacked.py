"""Numbers that only the graph knows: `item()`, `nonzero()` and their like in graphs, as eager gives
them, for several values each."""

import math

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402

F = torch.nn.functional
CHECK = torch._check


def ints(*values):
    return torch.tensor(values, dtype=torch.int64)


# -- programs that are one graph --


def scalar_arithmetic(t):
    n = t[0].item()
    return t * n, t + (n + 1), n, -n, n * n - 3, n + n, n // 2, n % 3, abs(n), n * 2.5


def scalar_of_float(t):
    f = (t.double() / 4)[0].item()
    return t * f, f, f + 1, f * f, -f, f / 2, f - 1.5


def scalar_of_bool(t):
    b = (t > 3).any().item()
    return b, t.sum(), b + 1, int(b)


def conversions(t):
    return int(t[0]), float(t[1]), bool(t[2]), int(t.float()[0]), float(t[0]) * 0.5


def as_list(t):
    a, b, c = t.tolist()
    return [c, a, b], t.view(1, 3).tolist(), t[0].tolist()


def twice(t):
    return t[0].item() - t[0].item(), t[0].item() + t[1].item()


def one_value_twice(t):
    first = t[0]
    n, m = first.item(), first.item()
    return t * n + m, n - m, n, m, int(first) + int(first)


def written_between(t):
    first = t[0]
    n = first.item()
    t.add_(1)
    return n, first.item(), t.sum()


def same_number(t):
    first = t[0]
    return first.item() is first.item(), t + 1


def divisions(t):
    a, b, c = t.tolist()
    return (2 * a) // b, a % (b + c), t / b, a / (b - c)


def in_containers(t):
    n = t[0].item()
    return {"n": n, "list": [n, (n + 1,)], "slice": slice(n, None)}


class Holder:
    value = 0


def stored(t):
    holder = Holder()
    holder.value = t[0].item()
    holder.more = holder.value + 1
    return holder.value, holder.more


def nonzero(t):
    found = (t > 2).nonzero()
    return found, found.shape[0], found.numel(), found.sum()


def masked(t):
    kept = t[t > 2]
    return kept, kept.sum(), kept * 2, kept.shape[0], kept.float().mean(), kept.size()


def masked_rows(t):
    rows = torch.stack([t, t + 1], 1)[t > 2]
    return rows, rows @ torch.ones(2, 4, dtype=rows.dtype), rows.t().contiguous(), rows.reshape(-1)


def masked_select(t):
    kept = torch.masked_select(t, t > 2)
    return kept, torch.cat([kept, kept]), torch.cat([kept, t]), torch.zeros_like(kept)


def uniques(t):
    found = torch.unique(t)
    return found, found + 1


def repeated(t):
    counts = t.clamp(0, 5)
    return torch.repeat_interleave(t, counts), torch.repeat_interleave(counts)


def squeezed(t):
    kept = t[t > 2].squeeze()
    return kept, kept.dim(), kept + 1


def added_to_another(t):
    return t[t > 2] + t[t > 2] * 2


def where_one(t):
    (found,) = torch.where(t > 2)
    return t[found], found


ONE_GRAPH = [
    scalar_arithmetic, scalar_of_float, scalar_of_bool, conversions, as_list, twice, one_value_twice,
    divisions, in_containers,
    stored, nonzero, masked, masked_rows, masked_select, uniques, repeated, squeezed,
    added_to_another, where_one,
]  # fmt: skip

VALUES = [
    ints(5, 2, 3), ints(0, 0, 0), ints(1, 7, 1), ints(-4, 3, 9), ints(1 << 40, 5, 4),
    ints(3, 3, 0), ints(4, 4, 4),
]  # fmt: skip

# -- programs with sizes --


def make(t):
    n = t[0].item()
    return torch.zeros(n), torch.ones(n, 2).sum(), torch.full((n,), 3), torch.empty(n).numel()


def make_said(t):
    n = t[0].item()
    CHECK(n >= 0)
    x = torch.arange(n)
    return x, x + 1, x.view(-1), x.expand(2, n), torch.zeros(2 * n).view(n, 2), x.sum(), n


def cut(t):
    n = t[0].item()
    CHECK(n >= 0)
    CHECK(n <= 10)
    x = torch.arange(10)
    return x[:n], x[n:], x.narrow(0, 0, n), x.split([n, 10 - n]), x[:n].sum()


def cut_unsaid(t):
    x = torch.arange(10)
    n = t[0].item()
    return x[:n], x[n:]


def spread(t):
    n = t[0].item()
    return torch.ones(1, 3).expand(n, 3), torch.ones(3).repeat(n)


def decided_by_facts(t):
    n = t[0].item()
    CHECK(n >= 2)
    CHECK(n < 100)
    if n > 1 and n != 0 and n < 1000:
        return torch.zeros(n) + 1
    return torch.zeros(1)


def one_value(t):
    n = t[0].item()
    CHECK(n == 3)
    return torch.zeros(n).view(3), list(range(n)), n


def equal_to_size(t):
    n = t[0].item()
    CHECK(n == t.shape[0])
    return torch.zeros(n) + t, n


def bounded_mask(t):
    found = (t > 2).nonzero()
    if found.shape[0] <= 3 and found.shape[0] >= 0:
        return found.shape[0] + 1, found.view(-1)
    return 0, found


def is_size(t):
    n = t[0].item()
    torch._check_is_size(n)
    return torch.zeros(n, 3)


SIZES = [
    make, make_said, cut, cut_unsaid, spread, decided_by_facts, one_value, equal_to_size,
    bounded_mask, is_size,
]  # fmt: skip
SIZE_VALUES = [ints(n, 1, 4) for n in (5, 3, 0, 1, 2, 10, 11, -1, -3, 99, 100)]


# -- programs that need the value: a break --


def branch(t):
    n = t[0].item()
    return t + n if n > 3 else t - n


def loop(t):
    total = t
    for i in range(t[1].item()):
        total = total + i
    return total


def key(t):
    return {t[0].item(): t + 1}


def text(t):
    return f"{t[0].item()} {(t > 2).nonzero().shape}"


def identity(t):
    n = t[0].item()
    return n is None, n is True, (n + 1) is (n + 1) or n == 5, n in (5, 6), type(n) is int


def sorts(t):
    return sorted([t[0].item(), t[1].item(), 2]), max(t[0].item(), 3)


def truth(t):
    n = t[0].item()
    return (t if n else -t), not n, n and 3, [1, 2, 3, 4, 5, 6][: t[1].item()]


def divides(t):
    n = t[0].item()
    return t[1].item() // n, t.sum() / n


def float_branch(t):
    f = t[0].item() * 0.5
    return t if f > 1.0 else -t, math.floor(f), int(f), round(f), min(f, 2.0)


def written(t):
    n = t[0].item()
    x = torch.zeros(3)
    x += n
    x[0] = n
    return x, n


def counted(t):
    rows = 0
    for row in t[t > 2]:
        rows = rows + row
    return rows, len(t[t > 2])


def sizes_compared(t):
    kept, other = t[t > 2], t[t > 3]
    return kept.shape == other.shape, kept.shape[0] == other.shape[0], kept.stride()


def unpacked(t):
    kept = t[t > 2]
    return torch.zeros(2, 2)[kept.shape[0] - 1 :], [kept.shape[0]] * 2, kept.shape


def raises(t):
    n = t[0].item()
    try:
        return torch.zeros(4).view(n, 2), 1
    except RuntimeError:
        return t, 2


def power(t):
    n = t[1].item()
    return 2**n, n**2, n << 2, n & 3, (t[0].item() * 0.5) ** 2, math.sqrt(abs(n))


BREAKS = [
    written_between, same_number,
    branch, loop, key, text, identity, sorts, truth, divides, float_branch, written, counted,
    sizes_compared, unpacked, raises, power,
]  # fmt: skip


# -- running --


def outcome(function, value):
    try:
        return function(value.clone())
    except Exception as error:
        return error


def same(a, b):
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a) is type(b)
    if isinstance(a, torch.Tensor):
        return (isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape
                and torch.equal(a.nan_to_num(7.25), b.nan_to_num(7.25)))  # fmt: skip
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b or (a != a and b != b)


BACKENDS = ["eager", "aot_eager"]
CAPTURE = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph_gives_what_eager_gives(program, backend):
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for value in VALUES:
        assert same(outcome(compiled, value), outcome(program, value)), value


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", SIZES, ids=lambda f: f.__name__)
def test_numbers_as_sizes(program, backend):
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for value in SIZE_VALUES:
        assert same(outcome(compiled, value), outcome(program, value)), value


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", ONE_GRAPH + SIZES + BREAKS, ids=lambda f: f.__name__)
def test_where_graphs_may_end(program, backend):
    with torch._dynamo.config.patch(**CAPTURE):
        compiled = stator.compile(program, backend=backend)
        for value in VALUES + SIZE_VALUES:
            if program is loop and value[1] > 9:
                continue
            assert same(outcome(compiled, value), outcome(program, value)), value


@pytest.mark.parametrize("program", [branch, loop, key], ids=lambda f: f.__name__)
def test_who_needs_the_value_is_told_in_stocks_words(program):
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.UserError, match=r"(?s)expression u\d.*_check"):
        compiled(ints(5, 2, 3))


def test_a_value_is_read_once():
    graphs = []
    compiled = stator.compile(
        one_value_twice, backend=lambda g, _: graphs.append(g) or g, fullgraph=True
    )
    compiled(ints(5, 2, 3))
    assert [node.target for node in graphs[0].graph.nodes].count("item") == 1


def test_without_the_settings_the_graph_ends():
    graphs = []

    def backend(module, examples):
        graphs.append(module)
        return module.forward

    def program(t):
        return t + t[0].item()

    assert same(stator.compile(program, backend=backend)(ints(5, 2)), program(ints(5, 2)))
    assert not any(node.target == "item" for graph in graphs for node in graph.graph.nodes)


def test_a_callable_of_the_users_finds_bindings():
    found = []

    def backend(module, examples):
        found.extend(node.meta.get("unbacked_bindings") for node in module.graph.nodes)
        return module.forward

    def program(t):
        return t + t[0].item()

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    assert same(compiled(ints(5, 2)), program(ints(5, 2)))
    assert sum(map(bool, found)) == 1


# --- a number of the graph and one from outside must be equal ---


def caught(a, y):
    try:
        return torch.ones(a.item(), 2) + y
    except RuntimeError:
        return y * 5


def said_to_be(a, y):
    n = a.item()
    CHECK(n == y.shape[0])
    return n, y * 2


def twice_said(a, y):
    n = a.item()
    CHECK(n * 2 == y.shape[0] * 2)
    return y * n


def a_mask(a, y):
    found = (torch.arange(6) < a).nonzero()[:, 0]
    CHECK(found.shape[0] == y.shape[0])
    return found, found.shape[0]


def as_large_as(a, y):
    rows = torch.arange(12.0).view(6, 2)[torch.arange(6) < a]
    return rows.expand_as(y), rows.shape == y.shape


EQUAL = [
    caught,
    said_to_be,
    twice_said,
    a_mask,
    as_large_as,
    lambda a, y: y.expand(a.item(), 2),
    lambda a, y: torch.ones(2, a.item()) @ y,
    lambda a, y: y.view(2, a.item()),
    lambda a, y: torch.cat([torch.ones(a.item(), 2), y], 1),
    lambda a, y: torch.stack([torch.ones(a.item(), 2), y]),
    lambda a, y: torch.ones(a.item(), 2) + torch.ones(4, 2),
    lambda a, y: torch.ones(a.item(), 2).mul_(y),
]
LENGTHS = [
    [(4, 4), (5, 4), (4, 4), (3, 3), (4, 5), (1, 4), (5, 5)],
    [(4, 3), (4, 4)],
    [(3, 3), (4, 4), (5, 4), (4, 5), (1, 4)],
]


@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", EQUAL)
def test_equality_with_a_number_from_outside(program, backend, dynamic):
    with torch._dynamo.config.patch(**CAPTURE):
        for lengths in LENGTHS:
            compiled = stator.compile(program, backend=backend, dynamic=dynamic)
            for a, n in lengths:
                outcomes = []
                for function in (program, compiled):
                    try:
                        outcomes.append(function(torch.tensor(a), torch.arange(2.0 * n).view(n, 2)))
                    except RuntimeError:
                        outcomes.append(None)
                assert same(*outcomes), (a, n)
