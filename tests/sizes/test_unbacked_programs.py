"""What people do with numbers of tensors and masks: experts that get the rows routed to them, rows
packed by their lengths, a choice of rows that is then reduced. Two graphs for batches that change, and
the results and gradients of plain Python."""

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402

F = torch.nn.functional
CHECK = torch._check
made = torch.Generator().manual_seed(0)
EXPERTS = torch.randn(4, 8, 8, generator=made)
ROUTER = torch.randn(8, 4, generator=made)


def best_expert(x):
    chosen = (x @ ROUTER).argmax(-1)
    out = torch.zeros_like(x)
    for i in range(4):
        (rows,) = torch.where(chosen == i)
        out = out.index_add(0, rows, x[rows] @ EXPERTS[i])
    return out


def two_best_experts(x):
    weights, chosen = (x @ ROUTER).softmax(-1).topk(2)
    out = torch.zeros_like(x)
    for i in range(4):
        rows, places = torch.where(chosen == i)
        out = out.index_add(0, rows, (x[rows] @ EXPERTS[i]) * weights[rows, places, None])
    return out


def experts_by_masks(x):
    chosen = (x @ ROUTER).argmax(-1)
    out = torch.zeros_like(x)
    for i in range(4):
        mask = chosen == i
        out[mask] = x[mask] @ EXPERTS[i]
    return out


def assigned_and_counted(x):
    y = x.clone()
    y[y > 0] = 0
    return y, y[y < 0].numel()


def most(x):
    k = (x[:, 0] > 0).sum().item()
    CHECK(k >= 0)
    CHECK(k <= x.shape[0])
    return x.sum(1).topk(k).values, x[:k].sum(0), x[k:].sum(0)


def padded(x):
    lengths = (x[:, 0].abs() * 3).long().clamp(1, 8)
    longest = lengths.max().item()
    CHECK(longest >= 1)
    CHECK(longest <= 8)
    mask = torch.arange(longest)[None] < lengths[:, None]
    return mask, x[:, :longest].masked_fill(~mask, 0).sum()


def packed(x):
    lengths = (x[:, 0].abs() * 3).long().clamp(1, 8)
    ends = F.pad(lengths.cumsum(0), (1, 0))
    total = ends[-1].item()
    CHECK(total >= 0)
    return torch.zeros(total).index_fill(0, ends[:-1], 1.0).sum(), ends


def chosen_rows(x):
    rows = x[x[:, 0] > 0]
    return rows.softmax(-1).sum(), F.linear(rows, EXPERTS[0]).sum(), F.layer_norm(rows, (8,)).sum()


def both_choices(x):
    some, others = x[x[:, 0] > 0], x[x[:, 0] <= 0]
    return torch.cat([some, others]).sum(0), some.shape[0] + others.shape[0]


def loss_of_some(x):
    labels, mask = (x[:, 1] > 0).long(), x[:, 0] > 0
    return F.cross_entropy(x[mask][:, :2], labels[mask])


def found_places(x):
    places = (x > 0).nonzero()
    return x[places[:, 0], places[:, 1]].sum(), places.shape


def repeated(x):
    return torch.repeat_interleave(x, (x[:, 0].abs() * 2).long(), dim=0).sum(0)


QUICK = [assigned_and_counted, most, both_choices]
LONG = [
    two_best_experts,
    best_expert,
    experts_by_masks,
    padded,
    packed,
    chosen_rows,
    loss_of_some,
    found_places,
    repeated,
]
PROGRAMS = [*QUICK, *(pytest.param(f, marks=pytest.mark.full) for f in LONG)]
BATCHES = [torch.randn(n, 8, generator=made) for n in (6, 7, 9)] + [
    torch.ones(6, 8),
    -torch.ones(5, 8),
]


def outcome(function, x):
    x = x.clone().requires_grad_()
    result = function(x)
    parts = result if isinstance(result, tuple) else (result,)
    sums = [part.sum() for part in parts if isinstance(part, torch.Tensor) and part.requires_grad]
    if sums:
        sum(sums).backward()
    return [*parts, x.grad]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and torch.allclose(a, b, atol=1e-4, equal_nan=True)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    graphs = []

    def counted(module, examples):
        graphs.append(module)
        return torch._dynamo.lookup_backend("aot_eager")(module, examples)

    settings = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with torch._dynamo.config.patch(**settings):
        compiled = stator.compile(program, backend=counted, fullgraph=True)
        for x in BATCHES:
            assert all(map(same, outcome(compiled, x), outcome(program, x))), x.shape
    assert len(graphs) == 2


def test_results_that_share_memory_are_written_to():
    def program(x):
        rows, places = torch.where(x > 0)
        found = x[rows, places]
        rows.add_(1)
        return rows.sum(), places.sum(), found.sum()

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for x in BATCHES:
        assert all(map(same, compiled(x), program(x)))
