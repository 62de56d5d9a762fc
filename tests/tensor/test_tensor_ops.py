# ruff: noqa: E402
"""What programs do with tensors, eager beside compiled: values, metadata, identities, mutations."""

import itertools
import operator
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch.nn as nn
import torch.nn.functional as F

import stator
from tests.tensor.helpers import assert_same, check, compiled, count


def mat(*shape, dtype=torch.float32, grad=False):
    shape = shape or (3, 4)
    size = torch.Size(shape).numel()
    values = torch.linspace(-2, 2, size).reshape(shape).to(dtype)
    return values.requires_grad_() if grad else values


# -- operators --

BINARY = "add sub mul truediv floordiv mod pow matmul".split()
COMPARE = "lt le eq ne gt ge".split()
BITS = "and_ or_ xor lshift rshift".split()


@pytest.mark.parametrize("name", BINARY + COMPARE)
def test_binary_operators(name):
    function = getattr(operator, name)

    def f(x, y):
        results = [function(x, y)]
        if name != "matmul":
            results += [function(x, 2), function(2, x), function(x, 1.5), function(1.5, x)]
        return results

    check(f, mat(4, 4), mat(4, 4).t() + 0.5)


@pytest.mark.parametrize("name", BITS)
def test_operators_of_bits(name):
    function = getattr(operator, name)
    x = torch.arange(1, 5)
    check(lambda x, y: (function(x, y), function(x, 2), function(2, x)), x, x.flip(0))


@pytest.mark.parametrize("name", "iadd isub imul itruediv ifloordiv imod ipow".split())
def test_operators_in_place(name):
    function = getattr(operator, name)

    def f(x, y):
        z = x
        z = function(z, y)
        assert z is x
        return z, function(y.clone(), 2)

    check(f, mat() + 5, mat() + 3)


def test_unary_operators():
    check(lambda x: (-x, +x, abs(x), ~(x > 0)), mat())


def test_operators_by_instruction():
    def f(x, y):
        z = x + y * 2 - 1
        z -= y
        z @= y.t() @ y
        return 1 / z, z**2, -z, z // 2, not (x is y), x is not y

    check(f, mat(), mat() + 1)


def test_comparison_with_what_is_no_tensor():
    check(lambda x: (x == None, x != None, x == "a", [x == 1], x != (1, 2)), mat())  # noqa: E711


def test_a_class_that_answers_for_tensors():
    class Scale:
        def __radd__(self, other):
            return other * 10

        def __add__(self, other):
            return other * 20

    fast = compiled(lambda x, s: (s + x, x + s), fullgraph=False)
    x, s = mat(), Scale()
    assert_same(fast(x, s), (x * 20, x * 10))
    assert_same(fast(x, s), (x * 20, x * 10))


# -- subscripts, iteration --


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        slice(1, None),
        (0, 1),
        (slice(None), None, slice(0, 2)),
        (Ellipsis, 1),
        None,
        [0, 2],
        ([0, 1], [1, 2]),
        True,
    ],
    ids=str,
)
def test_subscripts(key):
    check(lambda x: x[key], mat())

    def store(x):
        x[key] = 7
        x[key] = x[key] + 1
        return x

    check(store, mat())


def test_subscripts_by_tensors():
    check(lambda x, i: (x[i], x[:, i], x[i, 1]), mat(), torch.tensor([0, 2, 1]))

    def store(x, i, y):
        x[i] = y
        return x

    check(store, mat(), torch.tensor([0, 2]), mat(2, 4))


def test_iteration_and_length():
    def f(x):
        a, b, c = x
        first, *rest = x
        rows = [row * 2 for row in x]
        return a, b + c, rest, rows, len(x), list(x), sum(x), max(len(x), 2), [*x]

    check(f, mat())


def test_iteration_over_a_scalar_raises():
    fast = compiled(lambda x: list(x), fullgraph=False)
    with pytest.raises(TypeError, match="0-d"):
        fast(torch.tensor(1.0))


def test_native_code_that_meets_tensors():
    def f(x, y):
        d = {}
        d[x] = 1
        d[y] = 2
        out = []
        list(map(out.append, [x, y]))
        return (
            sum([x, y]),
            sorted([(2, x), (1, y)], key=lambda p: p[0])[0][1],
            list(zip([x], [y])),
            list(map(torch.relu, [x, y])),
            list(map(torch.add, [x], [y])),
            d[x],
            len({x, y, x}),
            out,
            dict(a=x, **{"b": y}),
            [t for t in reversed([x, y])],
        )

    check(f, mat(), mat() + 1)


# -- metadata as plain values --


def test_metadata_is_plain():
    def f(x):
        b, c = x.shape
        assert isinstance(b, int) and isinstance(x.shape, torch.Size)
        return (
            x.view(b * 2, c // 2),
            x.size(),
            x.size(-1),
            x.dim(),
            x.ndim,
            x.numel(),
            x.stride(),
            x.stride(0),
            x.element_size(),
            x.itemsize,
            x.nbytes,
            x.is_contiguous(),
            x.is_floating_point(),
            x.is_complex(),
            torch.is_floating_point(x),
            torch.is_tensor(x),
            x.requires_grad,
            x.is_cuda,
            x.is_cpu,
            x.is_meta,
            x.is_sparse,
            x.layout,
            x.device,
            x.device.type,
            x.dtype,
            x.dtype.is_floating_point,
            torch.finfo(x.dtype).eps,
            x.shape.numel(),
            x.shape[1:],
            x.shape + (1,),
            x.get_device(),
            x.is_conj(),
            torch.numel(x),
            x.is_inference(),
            x.t().is_contiguous(),
            (x > 0).dtype,
            x.size() == (3, 4),
        )

    fast = check(f, mat())
    assert "size(" not in str(fast.compiler.entries()[0]["graph"])


def test_classes_of_tensors():
    def f(x, p):
        return (
            isinstance(x, torch.Tensor),
            isinstance(p, nn.Parameter),
            isinstance(x, nn.Parameter),
            isinstance(p + 1, nn.Parameter),
            type(x) is torch.Tensor,
            type(p) is nn.Parameter,
            type(p * 2) is torch.Tensor,
            x.__class__ is torch.Tensor,
            callable(x),
            hasattr(x, "relu"),
            hasattr(x, "jax"),
            getattr(x, "nothing", 5),
            p + x,
        )

    check(f, mat(), nn.Parameter(mat()))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_attributes_of_tensors_made_inside(backend):
    def f(x, flag):
        y = x + 1
        y.flag, y.notes = flag, [flag]
        y.notes.append(y.flag)
        y.self, y.of, y.sin = y, x, "hides a method"
        y.gone = 1
        del y.gone
        y.mul_(2)
        y.double = y * 2
        y.double.level = 2
        with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'gone'"):
            del y.gone
        return y, hasattr(y, "gone"), hasattr(y.view(-1), "flag"), y.double.level, y.sin

    fast = compiled(f, backend, fullgraph=False)
    for flag in (True, False):
        x = mat()
        got, *others = fast(x, flag)
        want, *expected = f(mat(), flag)
        assert_same(got, want)
        assert others == expected
        assert list(vars(got)) == list(vars(want))
        assert got.flag is flag and got.notes == want.notes and got.sin == want.sin
        assert got.self is got and got.of is x and got.double.level == 2
        assert_same(got.double, want.double)


def test_attributes_of_tensors_outlive_a_break():
    def f(x):
        y = x * 2
        y.seen = [x]
        print(end="")
        y.seen.append(y)
        return y, y.seen

    fast = compiled(f, fullgraph=False)
    for _ in range(2):
        x = mat()
        y, seen = fast(x)
        assert seen is y.seen and seen[0] is x and seen[1] is y
    assert fast.metrics["breaks"]


def test_missing_attributes():
    def f(x):
        try:
            x.jax
        except AttributeError as error:
            return x + 1, str(error)

    check(f, mat())


# -- identity --


def test_identity():
    def f(x):
        y = x.clone()
        return (
            x.contiguous() is x,
            x.float() is x,
            x.to(torch.float32) is x,
            x.double() is x,
            y.add_(1) is y,
            y.relu_() is y,
            torch.add(x, 1, out=y) is y,
            x.t() is x,
            x[:] is x,
            x.expand(3, 4) is x,
            x.detach() is x,
            y,
        )

    check(f, mat())


def test_results_that_are_arguments():
    check(lambda x, y: (x, y.contiguous(), x.float(), [x], {"k": y}, x + 1), mat(), mat())


def test_one_tensor_given_out_twice():
    def f(x):
        y = x + 1
        return y, [y, y], y.add_(1)

    fast = check(f, mat())
    a, (b, c), d = fast(mat())
    assert a is b is c is d


# -- mutation --


def test_mutation_of_inputs_and_their_views():
    def f(x, y):
        x.add_(1)
        row = x[0]
        row.mul_(y[0])
        y[1:] = x[1:]
        x.t()[0].zero_()
        return x.sum(), row

    check(f, mat(), mat() * 2)


def test_out_arguments():
    def f(x):
        out = torch.empty(3, 4)
        torch.add(x, 1, out=out)
        torch.mul(out, 2, out=out)
        values, indices = torch.empty(3), torch.empty(3, dtype=torch.int64)
        torch.max(x, 1, out=(values, indices))
        return out, values, indices

    check(f, mat())


def test_copies_and_fills():
    def f(x, y):
        x.copy_(y)
        x.fill_(3)
        y.zero_()
        return x + y

    check(f, mat(), mat())


# -- functions --


def kind_of(value):
    match value:
        case torch.Tensor(shape=(rows, _)):
            return value + rows
        case {"x": torch.Tensor() as inner}:
            return inner * 2
        case (nn.Parameter() | torch.Tensor() as inner, int(n)):
            return inner * n
        case _:
            return value


FUNCTIONS = {
    "cat": lambda x: torch.cat([x, x * 2], dim=1),
    "stack": lambda x: torch.stack((x, x)),
    "split": lambda x: torch.split(x, 2, dim=1),
    "chunk": lambda x: x.chunk(2, 1),
    "unbind": lambda x: torch.unbind(x),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "clamp": lambda x: x.clamp(min=-1, max=1.0),
    "sum": lambda x: (x.sum(), x.sum(0), x.sum((0, 1), keepdim=True), torch.sum(x, dim=1)),
    "mean": lambda x: x.mean(dim=-1, keepdim=True),
    "softmax": lambda x: (F.softmax(x, -1), x.softmax(1), x.log_softmax(0)),
    "norm": lambda x: (x.norm(), torch.norm(x, dim=1), torch.linalg.vector_norm(x)),
    "sort": lambda x: tuple(x.sort(dim=1, descending=True)),
    "topk": lambda x: tuple(torch.topk(x, 2)),
    "max": lambda x: tuple(x.max(dim=1)),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "gather": lambda x: x.gather(1, torch.zeros(3, 2, dtype=torch.int64)),
    "masked_fill": lambda x: x.masked_fill(x > 0, float("-inf")),
    "tril": lambda x: torch.tril(x),
    "roll": lambda x: x.roll(1, 0),
    "pad": lambda x: F.pad(x, (1, 2), value=3.0),
    "views": lambda x: x.view(4, 3).transpose(0, 1).reshape(-1).unflatten(0, (2, 6)).permute(1, 0),
    "squeeze": lambda x: x.unsqueeze(0).unsqueeze(-1).squeeze(),
    "expand": lambda x: x.unsqueeze(0).expand(2, -1, -1),
    "repeat": lambda x: x.repeat(2, 1).repeat_interleave(2, dim=0),
    "casts": lambda x: (x.half(), x.to(torch.float64), x.long(), x.type_as(x.double()), x.bool()),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
    "broadcast": lambda x: torch.broadcast_tensors(x, x[0]),
    "linalg": lambda x: (torch.linalg.inv(x @ x.t() + torch.eye(3) * 9), torch.linalg.qr(x)[0]),
    "fft": lambda x: torch.fft.fft(x).abs(),
    "special": lambda x: torch.special.expit(x),
    "aten": lambda x: (torch.ops.aten.relu(x), torch.ops.aten.add.Tensor(x, 1)),
    "linear": lambda x: F.linear(x, torch.ones(2, 4), torch.zeros(2)),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])),
    "mse": lambda x: F.mse_loss(x, x * 2, reduction="sum"),
    "sdpa": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True),
    "conv": lambda x: F.conv2d(x[None, None], torch.ones(2, 1, 2, 2), padding=1),
    "pool": lambda x: F.max_pool2d(x[None], 2),
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"),
    "one_hot": lambda x: F.one_hot(torch.tensor([0, 2]), 4),
    "embedding": lambda x: F.embedding(torch.tensor([0, 2]), x),
    "unbound": lambda x: (torch.Tensor.add(x, 1), torch.Tensor.sum(x, 0)),
    "data": lambda x: x.data + 1,
    "compress": lambda x: list(itertools.compress((x, x + 1, x + 2), [1, 0, 1])),
    "class patterns": lambda x: [kind_of(y) for y in (x, {"x": x}, (x, 2), 3)],
    "complex": lambda x: torch.complex(x, x).conj().real,
    "transposed": lambda x: (x.T, x.mT, x.H),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.5),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "scatter": lambda x: x.scatter(1, torch.zeros(3, 1, dtype=torch.int64), 5.0),
    "index_select": lambda x: x.index_select(0, torch.tensor([1, 0])),
    "index_add": lambda x: x.index_add(0, torch.tensor([0]), x[:1]),
    "allclose shape": lambda x: x.new_zeros(2).shape == (2,),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(FUNCTIONS[name], mat())


FACTORIES = {
    "zeros": lambda x: torch.zeros(2, x.shape[0]),
    "ones": lambda x: torch.ones((2, 3), dtype=torch.int32),
    "full": lambda x: torch.full((2,), x.shape[1] / 2),
    "arange": lambda x: (torch.arange(5), torch.arange(0, 1, 0.25), torch.arange(x.shape[0])),
    "linspace": lambda x: torch.linspace(0, 1, 4),
    "eye": lambda x: torch.eye(3),
    "tensor": lambda x: (torch.tensor([1, 2.5]), torch.tensor(3), torch.tensor([[True], [False]])),
    "as_tensor": lambda x: torch.as_tensor([1, 2]),
    "like": lambda x: (torch.zeros_like(x), torch.full_like(x, 2)),
    "new": lambda x: (x.new_ones(3), x.new_full((2,), 1), x.new_tensor([1, 2])),
    "empty": lambda x: torch.empty(2, 3).shape,
    "rand": lambda x: (torch.rand(3), torch.randn(2, 2), torch.randint(0, 5, (3,))),
    "randperm": lambda x: torch.randperm(4),
    "bernoulli": lambda x: torch.bernoulli(torch.full((4,), 0.5)),
    "dropout": lambda x: F.dropout(x, 0.5, training=True),
    "normal_": lambda x: torch.empty(3).normal_(),
    "default dtype": lambda x: torch.ones(2).dtype,
    "empty tensor": lambda x: torch.tensor([]),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
def test_factories(name):
    check(FACTORIES[name], mat())


def test_a_graph_without_inputs():
    def f():
        return torch.arange(3) + 1

    fast = compiled(f)
    first, second = fast(), fast()
    assert_same(first, f())
    assert first is not second


# -- values that are not known --

VALUES = {
    "bool": lambda x: 1 if x.sum() > 0 else 2,
    "int": lambda x: int(x[0, 0]),
    "float": lambda x: float(x[0, 0]),
    "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(),
    "index": lambda x: [1, 2, 3][x.long()[0, 0]],
    "range": lambda x: list(range(x.long().max())),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: x.unique(),
    "contains": lambda x: 0.5 in x,
    "equal": lambda x: torch.equal(x, x),
    "allclose": lambda x: torch.allclose(x, x),
    "text": lambda x: f"{x}",
    "repr": lambda x: repr(x),
    "numpy": lambda x: x.numpy().sum(),
    "data_ptr": lambda x: x.data_ptr() != 0,
    "any": lambda x: any(x > 5 for x in x[0]),
    "sorted": lambda x: sorted(x[0]),
    "max of builtins": lambda x: max(x[0]),
    "assert": lambda x: x if x.all() else x + 1,
    "version": lambda x: x._version,
}


# Under `fullgraph` the graph computes these.
CAPTURED = {"int", "float", "item", "tolist", "nonzero", "mask", "unique", "numpy"}


@pytest.mark.parametrize("name", VALUES)
def test_what_needs_a_value_runs_eagerly(name):
    function = VALUES[name]
    x = mat() + 2.5
    fast = compiled(function, fullgraph=False)
    for _ in range(2):
        got, want = fast(x), function(x)
        assert_same(got, want)
    if name in CAPTURED:
        assert_same(compiled(function)(x), function(x))
        return
    with pytest.raises(stator.Unsupported, match="value|iterates|memory|address"):
        compiled(function)(x)


REFUSED = {
    "backward": lambda x: (x.requires_grad_(), x.sum().backward(), x.grad)[2],
    "set requires_grad": lambda x: setattr(x, "requires_grad", True) or x,
    "set data": lambda x: setattr(x, "data", torch.ones(2)) or x,
    "resize": lambda x: x.resize_(2, 2),
    "storage": lambda x: x.untyped_storage().nbytes(),
    "hook": lambda x: x.requires_grad_().register_hook(print) and x,
    "seed": lambda x: (torch.manual_seed(0), torch.rand(2))[1],
    "type": lambda x: x.type(torch.sparse.DoubleTensor).to_dense(),
    "deepcopy": lambda x: __import__("copy").deepcopy(x),
    "Tensor": lambda x: torch.Tensor([1, 2]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_recorded_runs_eagerly(name):
    function = REFUSED[name]
    fast = compiled(function, fullgraph=False)
    for _ in range(2):
        got, want = fast(mat()), function(mat())
        assert type(got) is type(want)
        assert_same(got, want)
    with pytest.raises(stator.Unsupported):
        compiled(function)(mat())


ERRORS = {
    "shapes": lambda x: x @ x,
    "view": lambda x: x.view(5),
    "type": lambda x: x + "a",
    "index": lambda x: x[10],
    "argument": lambda x: torch.relu(x, 3, 4),
    "keyword": lambda x: x.sum(dimension=1),
    "dtype": lambda x: torch.ones(2, dtype=torch.int64).softmax(0),
    "in-place on a leaf": lambda x: x.requires_grad_().add_(1),
    "unpack": lambda x: (lambda a, b: a)(*x),
    "delete": lambda x: operator.delitem(x, 0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_eager_s(name):
    function = ERRORS[name]
    with pytest.raises(Exception) as eager:
        function(mat())
    for _ in range(2):
        with pytest.raises(type(eager.value)) as found:
            compiled(function, fullgraph=False)(mat())
        assert str(found.value) == str(eager.value)


def test_an_error_that_is_caught():
    def f(x):
        try:
            y = x @ x
        except RuntimeError:
            y = x @ x.t()
        return y

    fast = compiled(f, fullgraph=False)
    assert_same(fast(mat()), f(mat()))
    assert_same(fast(mat()), f(mat()))


def test_a_graph_that_raises_at_run_time():
    def f(x, i):
        try:
            return x.index_select(0, i)
        except IndexError:
            return x * 0

    fast = compiled(f, fullgraph=False)
    good, bad = torch.tensor([0, 1]), torch.tensor([0, 7])
    for index in (good, bad, good, bad):
        assert_same(fast(mat(), index), f(mat(), index))


# -- structure --


def test_nested_structures():
    def f(d, *args, flag=True, **kwargs):
        out = {"sum": d["a"] + d["b"][0], "flag": flag}
        for name, value in kwargs.items():
            out[name] = value * len(args)
        out["args"] = [a + 1 for a in args]
        return out

    fast = compiled(f)
    args = ({"a": mat(), "b": [mat()]}, mat(), mat())
    assert_same(fast(*args, k=mat()), f(*args, k=mat()))
    assert_same(fast(*args, k=mat()), f(*args, k=mat()))
    assert count(fast) == 1


def test_closures_and_globals():
    weight = mat(4, 4)
    state = {"scale": 2.0}

    def helper(x):
        return x * state["scale"]

    def f(x):
        return helper(x @ weight)

    fast = compiled(f)
    assert_same(fast(mat()), f(mat()))
    weight.mul_(2)
    assert_same(fast(mat()), f(mat()))
    assert count(fast) == 1
    state["scale"] = 3.0
    assert_same(fast(mat()), f(mat()))
    assert count(fast) == 2


def test_tensors_written_to_outside_objects():
    class State:
        pass

    def f(state, x):
        state.last = x + 1
        state.history.append(state.last)
        state.total = state.total + state.last.sum()
        return state.last

    def new():
        state = State()
        state.history, state.total = [], torch.tensor(0.0)
        return state

    fast, mine, other = compiled(f), new(), new()
    for i in range(3):
        assert_same(fast(mine, mat() * i), f(other, mat() * i))
    assert_same(mine.history, other.history)
    assert_same(mine.total, other.total)
    assert mine.last is mine.history[-1]


# -- modules --


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])
        self.embed = nn.Embedding(5, 4)
        self.register_buffer("scale", torch.ones(4))
        self.calls = 0

    def forward(self, x, i):
        self.calls += 1
        h = self.norm(self.conv(x)).mean((2, 3)) + self.embed(i) * self.scale
        for layer in self.layers:
            h = F.gelu(layer(h))
        return h


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), lambda: (mat(),)),
    "block": (Block, lambda: (mat(2, 3, 5, 5), torch.tensor([1, 2]))),
    "attention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True),
        lambda: (mat(1, 3, 4), mat(1, 3, 4), mat(1, 3, 4)),
    ),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
        lambda: (mat(1, 3, 4),),
    ),
    "lstm": (lambda: nn.LSTM(4, 4), lambda: (mat(),)),
    "gru": (lambda: nn.GRU(4, 4), lambda: (mat(),)),
    "embedding bag": (lambda: nn.EmbeddingBag(5, 3), lambda: (torch.tensor([[0, 1], [2, 3]]),)),
    "pools": (
        lambda: nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        lambda: (mat(1, 2, 4, 4),),
    ),
    "norms": (
        lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm1d(4)),
        lambda: (mat(2, 4, 5),),
    ),
    "dropout": (lambda: nn.Sequential(nn.Dropout(0.5), nn.Hardswish()), lambda: (mat(),)),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, training):
    make, args = MODULES[name]
    torch.manual_seed(0)
    module = make().train(training)
    twin = make().train(training)
    twin.load_state_dict(module.state_dict())
    fast = stator.compile(module, backend="eager", fullgraph=True)
    for _ in range(2):
        torch.manual_seed(1)
        got = fast(*args())
        torch.manual_seed(1)
        assert_same(got, twin(*args()))
    assert_same(dict(module.state_dict()), dict(twin.state_dict()))
    assert getattr(module, "calls", 0) == getattr(twin, "calls", 0)


def test_gradients():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def loss(x):
        return module(x).pow(2).mean()

    fast = compiled(loss)
    for call in (loss, fast, fast):
        x = mat(grad=True)
        module.zero_grad()
        call(x).backward()
        found = [x.grad, *(p.grad for p in module.parameters())]
        if call is loss:
            want = found
        assert_same(found, want)


@pytest.mark.parametrize("name", ["addcdiv", "addcdiv_", "addcmul", "addcmul_"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_as_factor(name, dtype):
    def f(a, b, c, value):
        return getattr(a, name)(b, c, value=value)

    def g(a, b, c, value):
        return getattr(torch, name.rstrip("_"))(a, b, c, value=value)

    torch.manual_seed(0)
    tensors = [torch.randn(100, dtype=dtype) for _ in range(3)]
    check(f, *tensors, torch.tensor(0.3, dtype=dtype))
    check(g, *tensors, torch.tensor(0.3, dtype=dtype))
    check(f, *tensors, 0.3)
    check(f, *tensors, torch.tensor(2), fullgraph=False)  # of another type: its number is taken
    short = [tensor.bfloat16() for tensor in tensors]
    check(f, *short, torch.tensor(0.3, dtype=torch.bfloat16), fullgraph=False)
    check(f, *tensors, torch.ones(1, dtype=dtype, requires_grad=True)[0].detach())


def test_what_is_so_already():
    def f(x):
        y = x.detach().requires_grad_(False)
        return x.requires_grad_(x.requires_grad) is x, y, y.grad_fn, y.retains_grad

    check(f, torch.ones(3))
    check(f, torch.ones(3, requires_grad=True))

    def g(x):
        return x.detach().requires_grad_(), (x * 2).grad_fn is None, x.grad_fn, x.retains_grad

    check(g, torch.ones(3), fullgraph=False)
    fast = compiled(lambda x: x.grad_fn is None, fullgraph=False)
    leaf = torch.ones(3, requires_grad=True)
    assert [fast(leaf), fast(leaf * 2), fast(leaf)] == [True, False, True]


def test_gradients_of_tensors_made_inside():
    def f(x):
        return torch.ones(2).grad, x.detach().grad, (x.detach() * 2).grad, x * 2

    check(f, torch.ones(3, requires_grad=True))
    fast = compiled(lambda x: (x * 2).grad, fullgraph=False)
    with pytest.warns(UserWarning, match="is not a leaf"):
        assert fast(torch.ones(3, requires_grad=True)) is None
    assert fast(torch.ones(3)) is None


def test_names_of_types():
    def f(x):
        return x.type(), x.type(torch.float64), x.type(x.dtype) is x, x.type(dtype=torch.int32)

    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        check(f, torch.ones(3, dtype=dtype))
    check(lambda x: x.type("torch.LongTensor"), torch.ones(3))
    check(lambda x: x.type(torch.DoubleTensor), torch.ones(3))
    check(lambda x: x.half().type(x.type()), torch.ones(3))
    with pytest.raises(ValueError, match="invalid type"):
        compiled(lambda x: x.type("torch.NoTensor"), fullgraph=False)(torch.ones(3))


def test_new():
    def f(x):
        made = x.new(2, 3), x.new(x.size()), x.new(), x.new(4)
        return [(y.shape, y.dtype, y.stride()) for y in made], x.new(2).zero_()

    check(f, torch.ones(3, 4, dtype=torch.float64))
    check(lambda x: x.new([1.0, 2.0]), torch.ones(3), fullgraph=False)
    check(lambda x: x.new((1.0, 2.0)), torch.ones(3), fullgraph=False)
    check(lambda x: x.new(x), torch.ones(3), fullgraph=False)


def test_groups_of_tensors():
    def f(lists, indices):
        return torch._C._group_tensors_by_device_and_dtype(lists, indices)

    a, b = torch.ones(2), torch.zeros(3)
    for lists in ([[a, b]], [[a, b], [b, a]]):
        check(f, lists, True)
        check(f, lists, False)
    check(f, [[a, b.double()], [a, b.double()]], True, fullgraph=False)
    check(f, [[a, b], [a, None]], False, fullgraph=False)
    for lists in ([[]], [[None, a]], [[a, b], [a]]):
        with pytest.raises(RuntimeError):
            f(lists, False)
        with pytest.raises(RuntimeError):
            compiled(f, fullgraph=False)(lists, False)


def test_gradients_are_clipped_in_one_graph():
    def run(compile):
        torch.manual_seed(0)
        net = torch.nn.Linear(4, 3)
        clip = torch.nn.utils.clip_grad_norm_
        clip = compiled(clip) if compile else clip
        norms = []
        for _ in range(2):
            net(torch.randn(2, 4)).sum().backward()
            norms.append(clip(list(net.parameters()), 0.5))
        return norms, [p.grad for p in net.parameters()]

    assert_same(run(True), run(False))


def test_devices_as_keys():
    def f(x, d):
        made = {(x.device, x.dtype): x * 2}
        return made, d[x.device], d.get(torch.device("meta"))

    fast = compiled(f)
    for d in ({torch.device("cpu"): 1}, {torch.device("cpu"): 2, torch.device("meta"): 3}):
        assert_same(fast(torch.ones(2), d), f(torch.ones(2), d))


# -- gradients that are set --


def set_to_none(net, x):
    net.zero_grad()
    return [p.grad for p in net.parameters()]


def scaled(net, x):
    for p in net.parameters():
        p.grad = p.grad * 2
    return [p.grad + 1 for p in net.parameters()]


def made_and_changed(net, x):
    made = torch.ones(3, 4)
    net.weight.grad = made
    made.add_(1)
    return net.weight.grad is made


def taken_and_put_back(net, x):
    kept = net.weight.grad
    net.weight.grad = None
    none = net.weight.grad
    net.weight.grad = kept
    return none, net.weight.grad is kept


def set_before_a_break(net, x):
    net.weight.grad = None
    stator.graph_break()
    return net.weight.grad, net.bias.grad


def of_another_shape(net, x):
    try:
        net.weight.grad = torch.ones(5)
    except RuntimeError:
        return x + 1


def of_another_type(net, x):
    try:
        net.weight.grad = 3
    except TypeError:
        return x + 1


def deleted(net, x):
    del net.weight.grad
    return net.weight.grad


def of_a_tensor_made_inside(net, x):
    y = x * 1
    y.grad = torch.ones_like(y)
    return y.grad


@pytest.mark.parametrize(
    "function, whole",
    [
        (set_to_none, True),
        (scaled, True),
        (made_and_changed, True),
        (taken_and_put_back, True),
        (set_before_a_break, False),
        (of_another_shape, False),
        (of_another_type, False),
        (deleted, False),
        (of_a_tensor_made_inside, False),
    ],
)
def test_gradients_are_set(function, whole):
    def run(compile):
        torch.manual_seed(0)
        net, x, seen = torch.nn.Linear(4, 3), torch.randn(2, 4), []
        call = compiled(function, fullgraph=whole) if compile else function
        for _ in range(3):
            net(x).sum().backward()
            seen.append(call(net, x))
            seen.append([None if p.grad is None else p.grad.clone() for p in net.parameters()])
        if compile and whole:
            assert count(call) == 1
        return seen

    assert_same(run(True), run(False))


def test_a_gradient_of_what_may_be_the_same_tensor():
    def f(a, b):
        a.grad = torch.ones(2)
        return b.grad is None

    fast = compiled(f)
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    assert fast(a, b)
    assert b.grad is None
    b.grad = None
    assert not fast(b, b)


def test_a_gradient_that_someone_watches():
    seen = []

    def f(a):
        a.grad = None
        return len(seen)

    fast = compiled(f, fullgraph=False)
    a = torch.ones(2, requires_grad=True)
    a.grad = torch.ones(2)
    assert fast(a) == 0
    a.grad = torch.ones(2)
    watch = weakref.ref(a.grad, lambda reference: seen.append(reference))
    assert fast(a) == 1
    assert watch() is None


@pytest.mark.parametrize("name", ["float64", "float32", "int64", "bool_"])
def test_a_number_of_numpys_keeps_its_dtype(name):
    numpy = pytest.importorskip("numpy")
    value = getattr(numpy, name)(1)

    def f(x, v):
        return torch.tensor(v), torch.tensor([v, v]), torch.as_tensor(v), x * v

    check(f, mat(), value, fullgraph=False)


def test_objects_of_other_peoples_c_types_are_traced_once():
    numpy = pytest.importorskip("numpy")

    def f(x, chance, values):
        y = x + chance.random()
        if values.dtype == numpy.float32:
            y = y * 2
        return y + float(values.sum())

    def make():
        return mat(), numpy.random.default_rng(3), numpy.ones(3, numpy.float32)

    fast = stator.compile(f, backend="eager")
    for _ in range(4):
        assert_same(fast(*make()), f(*make()))
    traces = fast.metrics["traces"]
    weak = weakref.ref(values := numpy.ones(3, numpy.float32))
    assert_same(fast(*make()[:2], values), f(*make()))
    del values
    assert weak() is None  # no entry keeps it
    assert fast.metrics["traces"] == traces
    assert fast.metrics["drops"] == []


FOREACH_ARGUMENTS = {
    "copy_": ([torch.ones(3)],), "addcdiv_": ([torch.ones(3)], [torch.ones(3)]),
    "addcmul_": ([torch.ones(3)], [torch.ones(3)]), "lerp_": ([torch.ones(3)], 0.5),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "clamp_max_", "clamp_min_", "maximum_",
                     "minimum_", "pow_"), (2.0,)),
}  # fmt: skip


def test_functions_that_write_to_lists_give_the_list_itself():
    names = [name for name in dir(torch) if name.startswith("_foreach_") and name.endswith("_")]
    assert len(names) > 30
    for name in names:
        function = getattr(torch, name)
        args = FOREACH_ARGUMENTS.get(name.removeprefix("_foreach_"), ())

        def f(x, kind):
            given = kind([x])
            result = function(given, *args)
            return result is given, type(result), x

        fast = stator.compile(f, backend="eager", fullgraph=True)
        for kind in (list, tuple):
            assert_same(fast(torch.ones(3), kind), f(torch.ones(3), kind))
