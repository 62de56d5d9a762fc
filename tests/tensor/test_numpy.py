# ruff: noqa: E402
"""Numbers of numpy beside tensors: results, dtypes and errors of plain Python, and no break where torch
takes the number for the Python number of its value."""

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy", minversion="2.0")

import stator

INTS = [np.int8(3), np.uint8(3), np.int32(-2), np.int64(1), np.uint64(2)]
FLOATS = [np.float16(2.5), np.float32(0.1), np.float64(0.1), np.float64("nan"), np.float32("inf")]
OTHERS = [np.bool_(True), np.complex64(1 + 2j), np.complex128(2j)]
TENSORS = {
    "float32": lambda: torch.tensor([[1.5, -2.0], [0.5, 3.0]]),
    "int32": lambda: torch.tensor([[1, 2], [3, 4]], dtype=torch.int32),
    "bool": lambda: torch.tensor([[True, False]]),
    "bfloat16": lambda: torch.tensor([[1.5], [2.0]], dtype=torch.bfloat16),
    "0-d": lambda: torch.tensor(2.5, dtype=torch.float64),
}
OPERATORS = {
    "add": lambda x, n: x + n, "radd": lambda x, n: n + x, "sub": lambda x, n: x - n, "rsub": lambda x, n: n - x,
    "mul": lambda x, n: x * n, "rmul": lambda x, n: n * x, "div": lambda x, n: x / n, "rdiv": lambda x, n: n / x,
    "floordiv": lambda x, n: x // n, "mod": lambda x, n: x % n, "pow": lambda x, n: x**n, "rpow": lambda x, n: n**x,
    "and": lambda x, n: x & n, "or": lambda x, n: n | x, "shift": lambda x, n: x << n, "lt": lambda x, n: x < n,
    "rlt": lambda x, n: n < x, "eq": lambda x, n: x == n, "rne": lambda x, n: n != x, "iadd": lambda x, n: x.__iadd__(n),
    "in place": lambda x, n: [x := x * n, x][1], "at": lambda x, n: n @ x,
}  # fmt: skip
FUNCTIONS = {
    "add with alpha": lambda x, n: torch.add(x, x, alpha=n), "clamp": lambda x, n: x.clamp(min=n),
    "full": lambda x, n: torch.full((2,), n), "full_like": lambda x, n: torch.full_like(x, n),
    "where": lambda x, n: torch.where(x > 1, n, x), "masked_fill": lambda x, n: x.masked_fill(x > 1, n),
    "fill_": lambda x, n: x.clone().fill_(n), "zeros": lambda x, n: torch.zeros(n), "view": lambda x, n: x.view(n, -1),
    "sizes": lambda x, n: torch.ones((n, 2)), "sum": lambda x, n: x.sum(n), "unsqueeze": lambda x, n: x.unsqueeze(n),
    "subscript": lambda x, n: x[n], "subscripts": lambda x, n: x[:, n], "slice": lambda x, n: x[:n],
    "list of subscripts": lambda x, n: x[[n]], "set": lambda x, n: x.clone().__setitem__(0, n),
    "set there": lambda x, n: x.clone().index_fill_(0, torch.tensor([0]), n), "arange": lambda x, n: torch.arange(n),
    "linspace": lambda x, n: torch.linspace(0, n, 3), "tensor": lambda x, n: torch.tensor(n),
    "tensor of a list": lambda x, n: torch.tensor([n, n]), "as_tensor": lambda x, n: torch.as_tensor(n),
    "new_tensor": lambda x, n: x.new_tensor(n), "new_full": lambda x, n: x.new_full((2,), n),
    "split": lambda x, n: x.split(n), "chunk": lambda x, n: x.chunk(n), "repeat": lambda x, n: x.repeat(n, 1),
    "expand": lambda x, n: x.expand(n, *x.shape), "dropout": lambda x, n: torch.nn.functional.dropout(x, n, False),
    "scalar_tensor": lambda x, n: torch.scalar_tensor(n), "result_type": lambda x, n: torch.result_type(x, n),
    "keepdim": lambda x, n: x.sum(0, keepdim=n), "pow": lambda x, n: torch.pow(n, x), "roll": lambda x, n: x.roll(n, 0),
    "transpose": lambda x, n: x.transpose(0, n), "softmax": lambda x, n: x.softmax(n), "lerp": lambda x, n: torch.lerp(x, x, n),
    "leaky_relu": lambda x, n: torch.nn.functional.leaky_relu(x, n), "isin": lambda x, n: torch.isin(x, n),
}  # fmt: skip


def compile(function, **settings):
    return stator.compile(function, backend="eager", **settings)


def outcome(function, *args):
    try:
        result = function(*args)
    except Exception as error:  # noqa: BLE001
        return type(error)
    many = result if isinstance(result, (tuple, list)) else [result]
    return [
        (type(t), t.dtype, str(t.tolist())) if isinstance(t, torch.Tensor) else (type(t), str(t))
        for t in many
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_tensors_and_numbers(name, tensor):
    for n in INTS + FLOATS + OTHERS:
        want = outcome(OPERATORS[name], TENSORS[tensor](), n)
        got = outcome(compile(OPERATORS[name]), TENSORS[tensor](), n)
        assert got == want, n


@pytest.mark.parametrize("name", ["add", "rsub", "mul", "rdiv", "lt", "rlt", "in place"])
def test_operators_do_not_break(name):
    for n in INTS + FLOATS:
        compile(OPERATORS[name], fullgraph=True)(TENSORS["float32"](), n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_torch_and_numbers(name):
    for n in INTS + FLOATS[:3] + OTHERS:
        want = outcome(FUNCTIONS[name], TENSORS["float32"](), n)
        got = outcome(compile(FUNCTIONS[name]), TENSORS["float32"](), n)
        assert got == want, n


SHAPES = {
    "prod": lambda x: x.reshape(int(np.prod(x.shape))),
    "prod as it is": lambda x: x.reshape(np.prod(x.shape)),
    "ceil": lambda x: x[: int(np.ceil(x.shape[0] / 4))],
    "sqrt": lambda x: x / np.sqrt(x.shape[-1]),
    "a float": lambda x: x * float(np.sqrt(x.size(1))),
    "pi": lambda x: x * np.pi,
    "log2": lambda x: [x * i for i in range(int(np.log2(x.shape[0])) + 1)],
    "dtype": lambda x: x * (2 if np.dtype("float32") == np.float32 else 3),
    "spaced": lambda x: [x * p for p in np.linspace(0, 0.5, x.shape[0])],
    "product of numbers": lambda x: x * (np.float64(3) * 2.0) + np.float32(1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_arithmetic_with_shapes_does_not_break(name):
    compiled = compile(SHAPES[name], fullgraph=True)
    for rows in (4, 8, 6):
        x = torch.arange(rows * 3.0).reshape(rows, 3)
        assert outcome(compiled, x) == outcome(SHAPES[name], x)


def test_numbers_of_numpy_come_out_as_they_are():
    compiled = compile(
        lambda x: (x + 1, np.sqrt(x.shape[0]), np.int64(x.shape[1]) * 2), fullgraph=True
    )
    _, root, twice = compiled(torch.ones(4, 3))
    assert type(root) is np.float64
    assert root == 2
    assert type(twice) is np.int64
    assert twice == 6


def test_gradients_flow_past_numbers():
    x = torch.ones(3, requires_grad=True)
    compile(lambda x: (np.float64(2) * x * np.float32(0.5)).sum(), fullgraph=True)(x).backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_backends_get_plain_numbers():
    graphs = []

    def backend(module, _):
        graphs.append([n.args[1:] for n in module.graph.nodes if n.op == "call_function"])
        return module

    stator.compile(lambda x: x * np.float32(0.5) + np.int64(2), backend=backend)(torch.ones(2))
    assert graphs == [[(0.5,), (2,)]]
    assert [type(n) for (n,) in graphs[0]] == [float, int]
