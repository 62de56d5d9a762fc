"""Tensors made of open numbers, of numbers that only the graph knows, and of tensors: two graphs for
sizes that change, results and dtypes as in plain Python."""

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402


def sizes(x):
    return (
        torch.tensor([x.shape[0], 2]) + 1,
        torch.tensor(x.shape),
        torch.as_tensor([x.shape[0] / 2]),
    )


def counts(x):
    n = x.nonzero().shape[0]
    return torch.tensor([n, n + 1]), torch.tensor(n), torch.tensor([[n], [x.shape[0]]])


def like_another(x):
    n = x.nonzero().shape[0]
    return x.new_tensor([x.shape[0], 1]), x.new_tensor(n), x.new_tensor([[n, 1], [2, n * n]])


def like_another_int(x):
    return x.long().new_tensor([x.shape[0], 1]), x.new_tensor([True, False])


def of_tensors(x):
    total = x.sum()
    return torch.tensor([total, 1.5]), torch.tensor([[total], [2.0]]), torch.tensor((total,))


def of_other_dtypes(x):
    return torch.tensor([x.sum().long(), 3]), torch.tensor([x.sum() > 0, x.sum() < 0])


def with_a_dtype(x):
    return torch.tensor([x.double().sum(), 1.5], dtype=torch.float32)


def wider(x):
    return torch.tensor([x.double().sum(), 1.5])


def narrower(x):
    return torch.tensor([x.sum().half(), 1])


def in_a_row(x):
    return torch.tensor([x[:1, 0]])


def with_gradient(x):
    return torch.tensor([(x * 2).sum()])


TWO_GRAPHS = [
    sizes,
    counts,
    like_another,
    like_another_int,
    of_tensors,
    of_other_dtypes,
    with_a_dtype,
]
OTHERS = [wider, narrower, in_a_row]


def same(a, b):
    return (type(a) is type(b) and all(map(same, a, b)) if isinstance(a, tuple)
            else a.dtype is b.dtype and torch.equal(a, b))  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", TWO_GRAPHS + OTHERS, ids=lambda f: f.__name__)
def test_data(program, backend):
    graphs = []

    def counted(module, examples):
        graphs.append(module)
        return torch._dynamo.lookup_backend(backend)(module, examples)

    settings = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with torch._dynamo.config.patch(**settings):
        compiled = stator.compile(program, backend=counted)
        for n in range(3, 8):
            x = torch.arange(4.0 * n).view(n, 4)
            assert same(compiled(x), program(x)), n
    assert program in OTHERS or len(graphs) == 2


def test_numbers_of_tensors_that_nobody_uses_are_not_in_the_graph():
    def program(x):
        x.sum().item()
        return x + 1

    graphs = []
    compiled = stator.compile(
        program, backend=lambda module, _: graphs.append(module) or module, fullgraph=True
    )
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3) + 1)
    assert "item" not in graphs[0].code


# -- tensors that are to require a gradient --

GRAD = {"requires_grad": True}
LEAVES = [
    lambda x: torch.tensor([1.0, 2.0], **GRAD),
    lambda x: torch.ones(3, **GRAD) * 2,
    lambda x: torch.zeros_like(x, **GRAD),
    lambda x: torch.arange(3.0, **GRAD),
    lambda x: torch.full((2,), 1.0, **GRAD),
    lambda x: x.new_tensor([1.0, 2.0], **GRAD),
    lambda x: x.new_ones(3, **GRAD),
    lambda x: x.new_tensor([x.shape[0]], **GRAD),
    lambda x: torch.asarray([1.0], **GRAD),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", LEAVES)
def test_a_new_tensor_requires_a_gradient_as_in_plain_python(make, backend):
    def program(x):
        return make(x), x + 1

    x = torch.ones(2, 3)
    compiled = stator.compile(program, backend=backend)
    for _ in range(2):
        made, plain = compiled(x)[0], make(x)
        assert (made.requires_grad, made.is_leaf) == (plain.requires_grad, plain.is_leaf)
        assert torch.equal(made, plain)
