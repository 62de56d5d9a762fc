"""Rules say of results what torch says: dtype, sizes, strides, gradient; or nothing.

A trace compares each with torch's fakes when `torch_check_rules` is on. Whether a rule was asked at
all is seen with it off: then its node has no example."""

import contextlib
import itertools
import operator

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import stator  # noqa: E402
from stator import _engine, _torch  # noqa: E402

_torch.attach()


@pytest.fixture(autouse=True)
def unchecked():
    yield
    stator.reset()
    _engine.torch_check_rules(True)


def each(result):
    return result if isinstance(result, (tuple, list)) else (result,)


def by_rules(f, samples):
    """How many nodes rules gave, of one trace that calls `f` with each sample; torch agrees with all
    of them, and so does eager."""

    def calls(*flat):
        flat = iter(flat)
        results = (f(*itertools.islice(flat, len(sample))) for sample in samples)
        return tuple(item for result in results for item in each(result))

    tensors = tuple(itertools.chain(*samples))
    _engine.torch_check_rules(False)
    unchecked = _engine.torch_record(calls, tensors)
    assert not isinstance(unchecked, str), unchecked
    _engine.torch_check_rules(True)
    checked = _engine.torch_record(calls, tensors)
    real = [item for item in calls(*tensors) if isinstance(item, torch.Tensor)]
    outputs = zip(unchecked.nodes[-1].args[0], checked.nodes[-1].args[0], real, strict=True)
    for by_rule, by_torch, expected in outputs:
        if by_rule.example is None:  # torch's fakes may have strides of their own
            assert facts(by_torch.example) == facts(expected)
    return sum(n.example is None for n in unchecked.nodes if n.op.startswith("call_"))


def by_rule(f, *tensors):
    return by_rules(f, [tensors])


def taken(f, samples, *refusals):
    """Those that torch takes."""
    found = []
    for sample in samples:
        with contextlib.suppress(RuntimeError, *refusals):
            f(*sample)
            found.append(sample)
    return found


def facts(t):
    """Kernels, fakes and rules may give a dimension of one element any stride."""
    strides = tuple(stride for size, stride in zip(t.shape, t.stride(), strict=True) if size != 1)
    return t.dtype, tuple(t.shape), strides, t.requires_grad


SHAPES = [(), (3,), (2, 3), (2, 3, 4), (1, 3, 1), (2, 1, 4, 3)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
LAYOUTS = {
    "contiguous": lambda t: t,
    "permuted": lambda t: t.permute(tuple(reversed(range(t.dim())))),
    "strided": lambda t: t[..., ::2] if t.dim() else t,
    "expanded": lambda t: t.unsqueeze(0).expand(5, *t.shape),
    "channels last": lambda t: t.to(memory_format=torch.channels_last) if t.dim() == 4 else t,
}


def sample(shape, dtype, layout):
    t = (torch.rand(shape) * 5 + 1).to(dtype)
    return LAYOUTS[layout](t)


# Every pair of a shape and a layout, with one dtype after the other.
EVERY = [
    (shape, DTYPES[i % len(DTYPES)], layout)
    for i, (shape, layout) in enumerate(itertools.product(SHAPES, LAYOUTS))
] + [(shape, torch.float32, layout) for shape, layout in itertools.product(SHAPES, LAYOUTS)]

UNARY = [torch.sin, torch.exp, torch.abs, torch.neg, torch.square, torch.sqrt, torch.sign,
         torch.floor, torch.sigmoid, torch.logical_not, F.relu, F.silu, F.gelu, torch.tanh,
         operator.neg, operator.abs]  # fmt: skip


@pytest.mark.parametrize("f", UNARY, ids=lambda f: f.__name__)
def test_one_operand(f):
    samples = [(sample(shape, dtype, layout),) for shape, dtype, layout in EVERY]
    assert by_rules(f, taken(f, samples, TypeError)) > 10


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.pow, operator.lt, operator.eq, operator.and_, operator.or_,
          torch.maximum, torch.logical_and, torch.add, torch.div]  # fmt: skip
OTHERS = [2, 2.5, True, "same", "row", "zero", "double", "column", "permuted"]


def other_of(x, other):
    if other == "same":
        return x
    if other == "zero":
        return torch.tensor(2)
    if other == "double":
        return torch.rand(x.shape, dtype=torch.float64) + 1
    if other == "permuted":
        return torch.ones(tuple(reversed(x.shape))).permute(tuple(reversed(range(x.dim()))))
    size = x.shape[-1:] if other == "row" else (*x.shape[-2:-1], 1)
    return torch.ones(size, dtype=torch.int32)


@pytest.mark.parametrize("f", BINARY, ids=lambda f: f.__name__)
def test_two_operands(f):
    known = 0
    tensors = [sample(shape, dtype, layout) for shape, dtype, layout in EVERY]
    for other in OTHERS:
        if isinstance(other, str):
            ways, samples = [f], [(x, other_of(x, other)) for x in tensors]
        else:
            ways, samples = [lambda a: f(a, other)], [(x,) for x in tensors]  # noqa: B023
        if not isinstance(other, str) and f in (operator.add, operator.truediv, operator.sub):
            ways.append(lambda a: f(other, a))  # noqa: B023
        known += sum(by_rules(way, taken(way, samples, TypeError)) for way in ways)
    assert known > 50


KEYS = [0, -1, slice(None), slice(1, None), slice(None, None, 2), None, ..., (0, None),
        (..., 0), (slice(None), None, slice(0, 2)), (None, ..., slice(-2, None)), (0, 1)]  # fmt: skip
VIEWS = {
    "t": lambda x: x.t(),
    "transpose": lambda x: x.transpose(0, -1),
    "permute": lambda x: x.permute(1, 2, 0),
    "permute of a tuple": lambda x: torch.permute(x, (2, 0, 1)),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "unsqueeze at the end": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x.squeeze(),
    "squeeze one": lambda x: x.squeeze(-1),
    "expand": lambda x: x.expand(4, *x.shape),
    "expand minus one": lambda x: x.expand(-1, -1, 4),
    "view": lambda x: x.view(-1),
    "view in two": lambda x: x.view(2, -1),
    "reshape": lambda x: x.reshape(-1, 3),
    "reshape of a size": lambda x: x.reshape(x.size()),
    "flatten": lambda x: x.flatten(1),
    "flatten nothing": lambda x: x.flatten(1, 1),
    "contiguous": lambda x: x.contiguous(),
    "detach": lambda x: x.detach(),
    "clone": lambda x: x.clone(),
    "unbind": lambda x: x.unbind(1),
    "split": lambda x: x.split(2, dim=1),
    "split in sizes": lambda x: x.split((1, 2), dim=1),
    "chunk": lambda x: x.chunk(2, dim=-1),
    "float": lambda x: x.float(),
    "to": lambda x: x.to(torch.float64),
    "to the same": lambda x: x.to(x.dtype),
    "to device": lambda x: x.to(x.device, torch.int64),
    "to other": lambda x: x.float().to(x),
    **{f"[{key}]": (lambda key: lambda x: x[key])(key) for key in KEYS},
}


def known_of(f, *refusals):
    """Nodes that rules gave, of every sample that torch takes, with and without a gradient."""
    samples = [
        (sample(shape, dtype, layout).detach().requires_grad_(grad),)
        for (shape, dtype, layout), grad in itertools.product(EVERY, (False, True))
        if dtype.is_floating_point or not grad
    ]
    found = taken(f, samples, IndexError, *refusals)
    if f in (VIEWS["view"], VIEWS["view in two"]):
        # where no rule knows a view, torch is asked for all of the trace
        return sum(by_rules(f, [sample]) for sample in found)
    return by_rules(f, found)


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    assert known_of(VIEWS[name], ValueError) > 4


REDUCTIONS = {
    "sum": lambda x: x.sum(),
    "sum of one": lambda x: x.sum(-1),
    "sum of two": lambda x: x.sum((0, 1), keepdim=True),
    "sum in another type": lambda x: x.sum(0, dtype=torch.float64),
    "mean": lambda x: x.mean(-1, keepdim=True),
    "amax": lambda x: x.amax(dim=0),
    "any": lambda x: x.any(),
    "all": lambda x: x.all(dim=-1),
    "argmax": lambda x: x.argmax(-1),
    "softmax": lambda x: x.softmax(-1),
    "softmax of a function": lambda x: F.softmax(x, dim=0),
    "softmax in another type": lambda x: F.softmax(x, dim=-1, dtype=torch.float64),
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "cumsum": lambda x: x.cumsum(0),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x: torch.rms_norm(x, x.shape[-1:]),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "clamp": lambda x: x.clamp(min=0, max=3),
    "masked_fill": lambda x: x.masked_fill(x > 2, -1.0),
    "where": lambda x: torch.where(x > 2, x, x),
    "cat": lambda x: torch.cat([x, x], -1),
    "stack": lambda x: torch.stack((x, x), 1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_along_dimensions(name):
    assert known_of(REDUCTIONS[name]) > 4


MATRICES = [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 3), (3, 1)),
            ((2, 5, 2, 3), (2, 5, 3, 4)), ((3,), (3, 4)), ((5, 2, 3), (1, 3, 4))]  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("shapes", MATRICES, ids=str)
def test_products_of_matrices(shapes, grad):
    a, b = (torch.rand(shape, requires_grad=grad) for shape in shapes)
    layouts = [
        (a, b),
        (a.transpose(-1, -2).contiguous().transpose(-1, -2) if a.dim() > 1 else a, b),
    ]
    for x, y in layouts:
        by_rule(operator.matmul, x.detach(), y)
        by_rule(torch.matmul, x, y)
        if y.dim() == 2:
            weight, bias = y.t(), torch.rand(y.shape[1], requires_grad=grad)
            assert by_rule(F.linear, x, weight, bias) == 1
            assert by_rule(F.linear, x, weight) == 1
            if x.dim() == 2:
                assert by_rule(lambda m, p, q: torch.addmm(m, p, q), bias, x, y) == 1
    assert by_rule(torch.matmul, torch.rand(shapes[0]), torch.rand(shapes[1])) == (
        0 if shapes in MATRICES[-2:] else 1
    )


def test_tables():
    weight = torch.rand(7, 3, requires_grad=True)
    for indices in (torch.tensor([1, 2]), torch.tensor([[0], [6]]), torch.tensor(3)):
        assert by_rule(lambda i, w: F.embedding(i, w), indices, weight) == 1


def test_without_gradients():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return y, x.sin() + y

    assert by_rule(f, torch.rand(3, requires_grad=True)) == 3


def test_views_without_gradients():
    def f(x):
        with torch.no_grad():
            y = x.view(-1)
            seen = y.requires_grad, x[0].requires_grad, x.t().reshape(-1).requires_grad
        return (*seen, (y * 2).requires_grad)

    x = torch.rand(2, 3, requires_grad=True)
    assert stator.compile(f, backend="eager", fullgraph=True)(x) == f(x)


KEYWORDS = {
    "dropout": lambda x: F.dropout(input=x, training=False),
    "flatten": lambda x: torch.flatten(input=x.view(-1)),
    "sin": lambda x: torch.sin(input=x),
    "sum": lambda x: torch.sum(input=x, dim=0),
    "reshape": lambda x: torch.reshape(input=x, shape=(-1,)),
}


@pytest.mark.parametrize("name", KEYWORDS)
def test_the_tensor_by_keyword(name):
    f = KEYWORDS[name]
    x = torch.rand(2, 3)
    assert torch.equal(stator.compile(f, backend="eager", fullgraph=True)(x), f(x))


REFUSED = {
    "sizes without end": lambda x: x.view(2**32, 2**32, -1),
    "two dtypes": lambda x: x.to(torch.float64, torch.float32),
    "dtype before device": lambda x: x.to(torch.float64, x.device),
    "sizes one by one": lambda x: torch.reshape(x, 6, 1),
    "dimensions one by one": lambda x: torch.permute(x, 1, 0),
    "keepdim alone": lambda x: x.sum(keepdim=True),
    "dtype by position": lambda x: x.mean(0, True, torch.float64),
    "no such approximation": lambda x: F.gelu(x, approximate="foo"),
    "text for a number": lambda x: F.leaky_relu(x, "a"),
    "a number first": lambda x: torch.lt(2, x),
    "too great a number": lambda x: torch.add(x.long(), 2**70),
    "no probability": lambda x: F.dropout(x, p=2.0, training=False),
    "a number for a shape": lambda x: F.layer_norm(x, 3),
    "no such row": lambda x: F.embedding(torch.tensor([0]), x, padding_idx=100),
    "a truth taken away": lambda x: x.long() - (x > 0),
    "the greater of a number": lambda x: torch.maximum(x, 2),
    "an operator's argument by name": lambda x: operator.neg(a=x),
    "a number for sizes": lambda x: torch.reshape(x, -1),
    "the greatest of truths": lambda x: (x > 0).argmax(),
    "a condition that is none": lambda x: (x > 0).where(x, x),
    "too great a number to fill in": lambda x: x.masked_fill(x > 0, 2**70),
    "truths summed up in truths": lambda x: x.cumsum(0, dtype=torch.bool),
    "no epsilon": lambda x: F.layer_norm(x, (3,), eps=None),
    "no probability given": lambda x: torch.dropout(x, train=False),
    "a dtype twice": lambda x: x.to(torch.float64, dtype=None),
    "an odd offset": lambda x: torch.view_as_complex(x.view(-1)[1:3]),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_handled_by_the_program(name, backend):
    def f(x):
        drawn = torch.rand(1)
        try:
            return REFUSED[name](x), drawn
        except (RuntimeError, TypeError, ValueError, AssertionError, OverflowError) as error:
            return type(error).__name__, drawn

    x = torch.rand(2, 3)
    assert isinstance(f(x)[0], str)
    torch.manual_seed(0)
    want = f(x)
    torch.manual_seed(0)
    got = stator.compile(f, backend=backend)(x)
    assert got[0] == want[0] and torch.equal(got[1], want[1])


WRITES = {
    "to the result": lambda x, z: z.mul_(2),
    "to the argument": lambda x, z: x.mul_(2),
    "behind a view": lambda x, z: z.view(-1).add_(x.sum()),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", WRITES)
def test_dropout_that_does_nothing_gives_back_its_argument(name, backend):
    def f(x):
        z = F.dropout(x, 0.5, training=False)
        WRITES[name](x, z)
        return z, z is x

    x, same = torch.ones(3), torch.ones(3)
    want, got = f(same), stator.compile(f, backend=backend)(x)
    assert torch.equal(x, same) and torch.equal(got[0], want[0]) and got[1] == want[1]


ODD_BUT_FINE = {
    "in place by a number": lambda x: (F.relu(x, inplace=1) is x, x),
    "along no dimension": lambda x: ((x > 0).any(dim=()),),
    "chosen by a method": lambda x: (x.where(x > 0, -x),),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ODD_BUT_FINE)
def test_what_no_rule_may_take_for_something_else(name, backend):
    f = ODD_BUT_FINE[name]
    for check in (True, False):
        _engine.torch_check_rules(check)
        x, same = torch.ones(2, 3) - 2, torch.ones(2, 3) - 2
        got, want = stator.compile(f, backend=backend)(x), f(same)
        assert torch.equal(x, same)
        for a, b in zip(got, want, strict=True):
            assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b
        stator.reset()


def test_history_is_there_where_it_matters():
    def f(x):
        y = x.sin()
        z = y.view(-1)
        y.mul_(2)
        z += 1
        return y, z, y.is_leaf, z.grad_fn is None

    x = torch.rand(2, 3, requires_grad=True)
    for backend in ("eager", "aot_eager"):
        for check in (True, False):
            _engine.torch_check_rules(check)
            got = stator.compile(f, backend=backend)(x)
            want = f(x)
            assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])
            assert got[2:] == want[2:]
            stator.reset()


def test_writes_that_no_name_tells():
    def f(x, mean, var):
        return F.batch_norm(x.sin(), mean, var, training=True)

    for backend in ("eager", "aot_eager"):
        _engine.torch_check_rules(False)
        x, mean, var = torch.rand(4, 3), torch.zeros(3), torch.ones(3)
        same = [t.clone() for t in (x, mean, var)]
        assert torch.equal(stator.compile(f, backend=backend)(x, mean, var), f(*same))
        assert torch.equal(mean, same[1]) and torch.equal(var, same[2])
        stator.reset()


def test_backends_find_examples():
    seen = []

    def backend(module, inputs):
        seen.extend(node.meta.get("example_value") for node in module.graph.nodes)
        return module

    def f(x):
        a, b = (x.sin() + 1).split(1)
        return a * b

    _engine.torch_check_rules(False)
    x = torch.rand(2, 3, requires_grad=True)
    stator.compile(f, backend=backend)(x)
    *examples, _ = seen
    assert [tuple(e.shape) for e in examples if isinstance(e, torch.Tensor)] == [
        (2, 3), (2, 3), (2, 3), (1, 3), (1, 3), (1, 3)
    ]  # fmt: skip
    assert [tuple(p.shape) for e in examples if isinstance(e, tuple) for p in e] == [(1, 3)] * 2
    assert all(e.requires_grad for e in examples if isinstance(e, torch.Tensor))


# --- every rule of one or two operands that are tensors, once for a few dtypes ---


def found(name):
    """What a rule's name stands for."""
    if "." in name:
        return operator.attrgetter(name)(torch)
    for owner in (torch, torch._C._nn, operator):
        if callable(getattr(owner, name, None)):
            return getattr(owner, name)
    return getattr(torch.Tensor, name)


ELEMENTWISE = """
    sin cos tan asin acos atan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid
    erf reciprocal neg abs sign floor ceil round trunc square relu logical_not silu gelu softplus
    leaky_relu elu hardswish hardsigmoid log_sigmoid nn.functional.relu nn.functional.silu
    nn.functional.relu6 nn.functional.leaky_relu nn.functional.elu nn.functional.hardswish
    nn.functional.hardsigmoid nn.functional.mish clone float double half bfloat16 long int bool
    contiguous detach t flatten sum mean amax amin any all argmax argmin
""".split()
PAIRS = """
    add sub mul div true_divide truediv floor_divide floordiv remainder mod pow maximum minimum eq ne
    lt le gt ge and_ or_ xor bitwise_and bitwise_or bitwise_xor logical_and logical_or type_as
    matmul mm
""".split()


def answers(f, *tensors):
    """Nodes that rules gave, over some dtypes, with and without a gradient."""
    dtypes = [torch.float32, torch.int64, torch.bool, torch.complex64]
    samples = [
        tuple(t.clone().to(dtype).requires_grad_(grad) for t in tensors)
        for dtype, grad in itertools.product(dtypes, [False, True])
        if dtype.is_floating_point or dtype.is_complex or not grad
    ]
    return by_rules(f, taken(f, samples, TypeError))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_each_of_one_operand(name):
    assert answers(found(name), torch.rand(2, 3) / 2 + 0.25) > 0


@pytest.mark.parametrize("name", PAIRS)
def test_each_of_two_operands(name):
    assert answers(found(name), torch.ones(3, 3), torch.ones(3, 3)) > 0
