# ruff: noqa: E402
"""Tensor stand-ins alone: CPython runs a function on them, and all that reaches the graph came
through native code that met them. Torch's own C++ never takes one for a tensor."""

import functools
import gc
import operator

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch.overrides import is_tensor_like

import stator
from stator import _engine, _torch

_torch.attach()


def record(function, *tensors):
    """The graph that the function leaves, or the reason why it leaves none."""
    return _engine.torch_record(function, tensors)


def check(function, *tensors):
    graph = record(function, *tensors)
    assert not isinstance(graph, str), graph
    inputs = [tensors[int(source[4:-2])] for source in graph.sources]
    got, want = graph.replay(*inputs), function(*tensors)
    want = want if isinstance(want, tuple) else (want,)
    want = tuple(value for value in want if isinstance(value, torch.Tensor))
    assert len(got) == len(want)
    for mine, other in zip(got, want):
        torch.testing.assert_close(mine, other, rtol=0, atol=0)
    return graph


def x():
    return torch.linspace(-1, 1, 12).reshape(3, 4)


NATIVE = {
    "operators": lambda x, y: (1 - x, x @ y.T, -x, ~(x > 0), 2**x, x // 2, abs(x), 3 < x),
    "map": lambda x, y: tuple(map(torch.relu, [x, y])),
    "map of two": lambda x, y: tuple(map(torch.add, [x], [y])),
    "sum": lambda x, y: sum([x, y]),
    "reduce": lambda x, y: functools.reduce(operator.mul, [x, y, x]),
    "partial": lambda x, y: functools.partial(torch.add, 1)(x),
    "methodcaller": lambda x, y: operator.methodcaller("sum", 0)(x),
    "attrgetter": lambda x, y: operator.attrgetter("T")(x),
    "itemgetter": lambda x, y: operator.itemgetter(0)(x),
    "a real tensor first": lambda x, y: torch.add(x, y),
    "cat": lambda x, y: torch.cat([x, y], dim=1),
    "linear": lambda x, y: torch._C._nn.linear(x, y),
    "subscripts": lambda x, y: (x[0], x[1:, None], x[..., -1], x[[0, 1]]),
    "iteration": lambda x, y: tuple(row for row in x),
    "unpacking": lambda x, y: (lambda a, b, c: (c, a))(*x),
    "kept whole": lambda x, y: (F.relu(x), torch.einsum("ij,ij->i", x, y), F.softmax(y, 0)),
    "methods": lambda x, y: (x.relu(), x.add(y, alpha=2), x.sum(dim=0, keepdim=True)),
    "unbound": lambda x, y: torch.Tensor.add(x, y),
    "max": lambda x, y: tuple(x.max(1)),
    "metadata": lambda x, y: x.view(x.shape[0] * 2, -1) * len(x) * x.dim() * x.size(1),
    "dict keys": lambda x, y: {x: 1, y: 2}[x] * x,
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_code_records(name):
    check(NATIVE[name], x(), x() * 2)


@pytest.mark.parametrize("ask", [type, lambda t: type(t) is torch.Tensor, is_tensor_like])
def test_the_class_of_a_tensor_that_no_argument_leads_to(ask):
    def f(n):
        t = torch.tensor(2.0)
        return ask(t), t + n

    fast = stator.compile(f, backend="eager", fullgraph=True)
    assert [fast(n) for n in (3, 4)] == [f(n) for n in (3, 4)]


def test_in_place_is_one_object():
    def f(x):
        y = x.clone()
        z = y.add_(1)
        z += 2
        assert z is y
        y[0] = 3
        return y

    assert str(check(f, x())).splitlines()[2:4] != []


STOPPED = {
    "TENSOR_TRUTH": [
        lambda x: bool(x.sum() > 0),
        lambda x: max(x[0]),
    ],
    "ITEM": [
        lambda x: int(x[0, 0]),
        lambda x: float(x[0, 0]),
        lambda x: [1, 2][x[0, 0].long()],
        lambda x: x[0, 0].item(),
        lambda x: 1 in x,
    ],
    "TOLIST": [lambda x: x.tolist()],
    "DATA_SHAPE": [
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
    ],
    "TENSOR_VALUE": [
        lambda x: f"{x}",
        lambda x: repr(x),
        lambda x: x.data_ptr(),
    ],
    "NUMPY": [lambda x: x.numpy(force=True), lambda x: x.__array__()],
    "TENSOR_ERROR": [lambda x: x @ x],
    "BACKWARD": [lambda x: x.sum().backward()],
    "TENSOR_OPERATION": [
        lambda x: x.requires_grad_(),
        lambda x: setattr(x.clone(), "requires_grad", True),
        lambda x: x.resize_(2),
    ],
    "ATTRIBUTE": [
        lambda x: x._base,
        lambda x: setattr(x, "data", x),
        lambda x: (x + 1).__dict__,
    ],
}


@pytest.mark.parametrize(
    "reason,function", [(reason, f) for reason in STOPPED for f in STOPPED[reason]]
)
def test_what_a_stand_in_cannot_answer_breaks(reason, function):
    assert str(record(function, x())).startswith(reason)


def test_a_break_is_not_swallowed():
    def f(x):
        try:
            bool(x)
        except BaseException:
            pass
        return x + 1

    assert record(f, x()) == "TENSOR_TRUTH: bool() of a tensor"


def test_missing_attributes_are_attribute_errors():
    def f(x):
        assert not hasattr(x, "jax")
        with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'jax'"):
            x.jax
        return x + 1

    check(f, x())


def escaped():
    kept = []
    record(lambda x: kept.append(x) or kept.append(x + 1), x())
    return kept


USES = [
    lambda s: s + 1,
    lambda s: 1 + s,
    lambda s: s.shape,
    lambda s: s.relu(),
    lambda s: s[0],
    lambda s: bool(s),
    lambda s: len(s),
    lambda s: hash(s),
    lambda s: iter(s),
    lambda s: s == 1,
    lambda s: torch.relu(s),
    lambda s: setattr(s, "a", 1),
    lambda s: operator.setitem(s, 0, 1),
    lambda s: torch.cat([s, s]),
    lambda s: F.linear(s, torch.ones(2, 4)),
]


@pytest.mark.parametrize("use", USES)
def test_a_stand_in_is_dead_after_its_trace(use):
    for stand_in in escaped():
        with pytest.raises(RuntimeError, match="trace"):
            use(stand_in)
    assert "ended" in repr(stand_in)


# Torch's entry points that unpack what they are given.
ENTRIES = [
    lambda s: torch.tensor(s),
    lambda s: torch.tensor([s]),
    lambda s: torch.as_tensor(s),
    lambda s: torch.full((2,), s),
    lambda s: torch.arange(s),
    lambda s: torch.zeros(s),
    lambda s: torch.zeros(2).reshape(s),
    lambda s: torch.ones(2)[s],
    lambda s: operator.setitem(torch.ones(3), 0, s),
    lambda s: torch.ones(2).add_(s),
    lambda s: torch.ones(2).expand(s, 2),
    lambda s: setattr(torch.ones(2), "data", s),
    lambda s: setattr(torch.ones(2), "grad", s),
    lambda s: torch.nn.Parameter(s),
    lambda s: torch.Tensor._make_subclass(torch.nn.Parameter, s),
    lambda s: torch.Tensor(s),
    lambda s: torch.Size([s]),
    lambda s: torch.autograd.grad(s, s),
    lambda s: torch.autograd.backward(s),
    lambda s: torch.ones(2).where(s, 0),
    lambda s: torch.Generator().manual_seed(s),
    lambda s: torch.device(s),
    lambda s: torch.ones(3).split(s),
    lambda s: torch.ones(2).to(s),
    lambda s: torch.ones(2).copy_(s),
    lambda s: torch.ones(2).set_(s),
    lambda s: torch.ones(2).is_set_to(s),
    lambda s: torch.empty(2, out=s),
    lambda s: torch._C._dispatch_keys(s),
    lambda s: torch._C._functorch.is_functorch_wrapped_tensor(s),
    lambda s: torch.is_tensor(s),
    lambda s: torch.save(s, __import__("io").BytesIO()),
    lambda s: __import__("copy").copy(s),
    lambda s: __import__("copy").deepcopy(s),
    lambda s: __import__("pickle").dumps(s),
    lambda s: torch.utils.dlpack.to_dlpack(s),
    lambda s: s.__reduce_ex__(2),
    lambda s: s.__array__(),
    lambda s: memoryview(s),
    lambda s: bytes(s),
    lambda s: complex(s),
    lambda s: divmod(s, 2),
    lambda s: pow(s, 2, 3),
    lambda s: range(s),
    lambda s: [0] * s,
    lambda s: "%d" % s,
    lambda s: s.__class__,
    lambda s: type(s)(),
    lambda s: s.__torch_function__,
    lambda s: s._cdata,
    lambda s: s.untyped_storage(),
    lambda s: torch.jit.trace(lambda x: x + 1, s),
    lambda s: torch.vmap(lambda x: x + 1)(s),
    lambda s: torch.func.grad(lambda x: x.sum())(s),
    lambda s: torch.compile(lambda x: x, backend="eager"),
    lambda s: torch.nn.utils.parameters_to_vector([s]),
    lambda s: torch.nn.Linear(2, 2)(s),
    lambda s: isinstance(s, torch.Tensor),
    lambda s: gc.get_referents(s),
    lambda s: vars(s),
    lambda s: dir(s),
    lambda s: s.__sizeof__(),
    lambda s: s.storage(),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_entry_point_takes_it_for_a_tensor(entry):
    """Whatever comes of it is an exception, a break or a node; never a crash, never the memory."""
    for make in (lambda s: s, lambda s: s.sum() * 2):
        try:
            record(lambda s: entry(make(s)), x())
        except Exception:
            pass
    gc.collect()


def test_nothing_is_kept():
    import weakref

    tensor = x()
    seen = weakref.ref(tensor)
    graph = record(lambda s: s.relu() + 1, tensor)
    del tensor, graph
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(()),
        torch.zeros(3, 4).t(),
        torch.zeros(2, 3, 4, 5)[1:, ::2, 1:, 0],
        torch.zeros(1, 2, 1, 2, 1, 2, 1, 2)[:, 1:],
        torch.zeros(3, dtype=torch.complex128).conj(),
        torch.zeros(3, requires_grad=True),
        torch.zeros(3, requires_grad=True) * 2,
        torch.zeros(0, 5),
        torch.zeros(5).expand(3, 5),
        torch.zeros(3, device="meta"),
        torch.zeros(3, dtype=torch.uint8),
    ],
)
def test_memory_is_read_as_torch_says(tensor):
    keys, sizes, strides, _, _, index, requires_grad, offset, memory = _engine.torch_facts(tensor)
    assert keys == torch._C._dispatch_keys(tensor).raw_repr()
    assert sizes == tuple(tensor.shape) and strides == tensor.stride()
    assert requires_grad == tensor.requires_grad and offset == tensor.storage_offset()
    assert index == -1
    storage = tensor.untyped_storage()
    begin = storage.data_ptr()
    assert memory == (storage._cdata, begin, begin + storage.nbytes() if begin else 0)
