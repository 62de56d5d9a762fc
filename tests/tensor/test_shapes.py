# ruff: noqa: E402
"""Graphs with symbols handed over: answers for other sizes, and what backends rely on.

The graphs are Dynamo's own, so that the engine has no part in it."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.nn as nn
import torch.nn.functional as F

from stator import _backends, _expressions, _shapes, _sources, _torch
from stator._versions import private

ROOT = Path(__file__).resolve().parents[2]
_torch.attach()


class Captured:
    """A graph of Dynamo's with the inputs of its call, described as the engine would."""

    def __init__(self, function, args, dims=(), dynamic=None):
        """dims: for each argument the dimensions that are symbols."""
        self.args = args
        torch._dynamo.reset()
        for arg, marked in zip(args, dims, strict=False):
            for d in marked:
                torch._dynamo.mark_dynamic(arg, d)
        torch.compile(function, backend=self._capture, fullgraph=True, dynamic=dynamic)(*args)

    def _capture(self, module, examples):
        self.module = module
        self.nodes = module.graph.find_nodes(op="placeholder")
        values = [self._value(node) for node in self.nodes]
        self.symbols, self.known = [], {}
        for value in values:
            self._note(value)
        self.inputs = [self._input(value) for value in values]
        self.examples = [example if isinstance(given, _shapes.Sizes) else None
                         for example, given in zip(examples, self.inputs, strict=True)]  # fmt: skip
        self.texts = [private.source_name(node._dynamo_source) for node in self.nodes]
        for node in module.graph.nodes:
            node.meta.pop("example_value", None)
        return module.forward

    def _value(self, node):
        """A number, or a fake."""
        value = node.meta["example_value"]
        is_float = any(user.target == "item" for user in node.users)
        return value.item_memo if is_float else value

    @staticmethod
    def _expr(number):
        """Of a float that Dynamo itself has fixed: what it was before."""
        return number.node.expr if isinstance(number, torch.SymInt) else number.node._expr

    def _note(self, value):
        for number in value.shape if isinstance(value, torch.Tensor) else (value,):
            if isinstance(number, int):
                continue
            for found in self._expr(number).free_symbols:
                if found not in self.known:
                    self.known[found] = _expressions.symbol(len(self.symbols))
                    hint = number.node.shape_env.backed_var_to_val[found]
                    hint, low = (int(hint), 0) if hint.is_Integer else (float(hint), None)
                    self.symbols.append(_shapes.Symbol(hint, str(found), low, None))

    def _exprs(self, numbers):
        return tuple(
            _expressions.from_sympy(number.node.expr, self.known)
            if isinstance(number, torch.SymInt)
            else number
            for number in numbers
        )

    def _input(self, value):
        if isinstance(value, torch.Tensor):
            return _shapes.Sizes(self._exprs(value.shape), self._exprs(value.stride()))
        return self.known[self._expr(value)]

    def give(self, backend, conditions=()):
        sources = _sources.sources(self.texts)
        shapes = _shapes.symbolic(self.symbols, self.inputs, self.examples, sources, conditions)
        self.handed = _backends.give(
            self.module, shapes, self.texts, private.get_compiler_fn(backend)
        )
        return self.handed.found

    def values(self, args):
        """Of the symbols, where the arguments are these."""
        found = {}
        for given, tensor in zip(self.inputs, self._tensors(args), strict=True):
            if not isinstance(given, _shapes.Sizes):
                continue
            for expr, number in zip((*given.sizes, *given.strides),
                                    (*tensor.shape, *tensor.stride()), strict=True):  # fmt: skip
                if type(expr) is tuple and expr[0] == "symbol":
                    found[expr[1]] = number
        floats = [arg for arg in args if isinstance(arg, float)]
        symbols = [i for i, symbol in enumerate(self.symbols) if isinstance(symbol.hint, float)]
        return found | dict(zip(symbols, floats, strict=True))

    def _tensors(self, args):
        """Examples, with other arguments in the place of those of the first call."""
        others = {id(old): new for old, new in zip(self.args, args, strict=True)}
        return [others.get(id(example), example) for example in self.examples]

    def holds(self, args):
        """Whether the compiled graph may be used."""
        values, found = self.values(args), self.handed.found
        return all(_expressions.evaluate(c, values) for c in found.conditions) and all(
            values[i] == self.symbols[i].hint for i in found.pinned
        )

    def call(self, *args):
        values = self.values(args)
        made = []
        for given, tensor in zip(self.inputs, self._tensors(args), strict=True):
            number = (
                None if isinstance(given, _shapes.Sizes) else _expressions.evaluate(given, values)
            )
            if isinstance(number, float):
                number = torch.tensor(number, dtype=torch.float64)
            made.append(tensor if number is None else number)
        return self.handed.compiled(*made)

    def shown(self):
        names = {i: symbol.text for i, symbol in enumerate(self.symbols)}
        return [_expressions.shown(condition, names) for condition in self.handed.found.conditions]


class Given(Captured):
    """A graph of torch.fx's. The first parameters are the sizes that are symbols, in order."""

    def __init__(self, function, args, dims):
        self.args = args
        numbers = [(i, d) for i, marked in enumerate(dims) for d in marked]
        self.module = torch.fx.symbolic_trace(function)
        self.module.graph.output_node().args = (tuple(self.module.graph.output_node().args[0]),)
        self.module.recompile()
        self.symbols = [_shapes.Symbol(args[i].shape[d], f"{i}.{d}", 0, None) for i, d in numbers]
        self.inputs = [*map(s, range(len(numbers))), *(
            _shapes.Sizes(
                tuple(s(numbers.index((i, d))) if d in dims[i] else n
                      for d, n in enumerate(arg.shape)),
                arg.stride(),
            )
            for i, arg in enumerate(args)
        )]  # fmt: skip
        self.examples = [None] * len(numbers) + list(args)
        self.texts = [
            f"L['{node.target}']" for node in self.module.graph.find_nodes(op="placeholder")
        ]


def s(index):
    return _expressions.symbol(index)


def found_by_stock(function, args, dims, backend):
    """How many conditions the same program has there, without those of ranges, one a symbol; and
    how many symbols have one value only."""
    counts = []

    def counting(module, examples):
        made = private.get_compiler_fn(backend)(module, examples)
        env = private.TracingContext.get().fake_mode.shape_env
        counts.append((len(env.guards), sum(v.is_Integer for v in env.replacements.values())))
        return made

    torch._dynamo.reset()
    for arg, marked in zip(args, dims, strict=True):
        for d in marked:
            torch._dynamo.maybe_mark_dynamic(arg, d)
    with private.backward_at_once():
        torch.compile(function, backend=counting, fullgraph=True)(*args)
    return counts[0]


# -- networks --


class Attention(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) + mask).softmax(-1)
        return x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


def attention(batch, length):
    return torch.randn(batch, length, 8), torch.randn(length, length)


def images(batch, height, width):
    return (torch.randn(batch, 3, height, width),)


def rows(batch):
    return (torch.randn(batch, 4),)


# The function, what makes its arguments of sizes, the dimensions that are symbols, sizes: those
# traced with, and others.
NETWORKS = {
    "mlp": (
        nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)),
        rows,
        [[0]],
        [(5,), (2,), (7,), (64,), (9,)],
    ),
    "attention": (
        Attention(),
        attention,
        [[0, 1], [0, 1]],
        [(3, 5), (2, 7), (5, 5), (4, 2), (2, 16)],
    ),
    "convolutions": (
        nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, stride=2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        ),
        images,
        [[0, 2, 3]],
        [(3, 16, 20), (2, 16, 16), (5, 24, 18), (3, 32, 20), (4, 17, 19)],
    ),
}


def gradients(function, args, outputs):
    tensors = [arg for arg in args if arg.requires_grad]
    tensors += list(function.parameters())
    return torch.autograd.grad(outputs.sum(), tensors)


def make_args(make, sizes, training):
    torch.manual_seed(sum(sizes))
    return [arg.requires_grad_(training) for arg in make(*sizes)]


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", NETWORKS)
def test_answers_for_other_sizes(name, backend, training):
    function, make, dims, (first, *others) = NETWORKS[name]
    function.train(training)
    with torch.set_grad_enabled(training):
        args = make_args(make, first, training)
        captured = Captured(function, args, dims)
        found = captured.give(backend)
        guards, pins = found_by_stock(function, make_args(make, first, training), dims, backend)
    assert len(found.conditions) <= guards + len(captured.symbols), captured.shown()
    assert len(found.pinned) <= pins
    assert captured.holds(args)
    used = 0
    for sizes in (first, *others):
        args = make_args(make, sizes, training)
        if not captured.holds(args):
            continue
        used += 1
        with torch.set_grad_enabled(training):
            (got,), want = captured.call(*args), function(*args)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        if training:
            mine, theirs = gradients(function, args, got), gradients(function, args, want)
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)
    assert used >= (1 if found.pinned else 4), captured.shown()


# -- what backends rely on --


def double(x):
    return x * 2


def asking(ask):
    """A backend that asks something of the numbers among its inputs."""

    def backend(module, examples):
        ask(*(example for example in examples if isinstance(example, torch.SymInt)))
        return module.forward

    return backend


# What a backend asks of a size of 6 and one of 9, and what comes of it.
ASKED = {
    "nothing": (lambda a, b: None, [], set()),
    "a value": (lambda a, b: int(a), [], {0}),
    "an equality with a number": (lambda a, b: bool(a == 6), [], {0}),
    "an inequality": (lambda a, b: bool(a < b), [("ge", s(1), 3), ("lt", s(0), s(1))], set()),
    "a bound": (lambda a, b: bool(b <= 4096), [("le", s(1), 4096)], set()),
    "a hole": (lambda a, b: bool(b == 7), [("ne", s(1), 7)], set()),
    "a multiple": (lambda a, b: bool(a % 3 == 0), [("eq", ("mod", s(0), 3), 0)], set()),
    "a sum": (
        lambda a, b: bool(a + b == 15),
        [("le", s(0), 13), ("le", s(1), 13), ("eq", ("add", s(0), s(1)), 15)],
        set(),
    ),
    "what follows from a bound": (
        lambda a, b: bool(a > 3) and bool(2 * a > 7),
        [("ge", s(0), 4)],
        set(),
    ),
    "what follows from sizes": (lambda a, b: bool(a * b > 0), [], set()),
    "a quotient": (
        lambda a, b: bool(b // 2 > a - 3),
        [("gt", ("floordiv", s(1), 2), ("add", -3, s(0)))],
        set(),
    ),
    "the smaller": (
        lambda a, b: bool(torch.sym_min(a, b) > 5),
        [("gt", ("min", s(1), s(0)), 5)],
        set(),
    ),
    "both": (lambda a, b: bool((a < 7) & (b < 10)), [("le", s(0), 6), ("le", s(1), 9)], set()),
    "what has no operator": (lambda a, b: bool(round(b / 4.0, 1) > 1), [], {1}),
    "a logarithm": (
        lambda a, b: bool(torch._sym_log2(b) > 3.0),
        [("gt", ("log2", ("float", s(1))), 3.0)],
        set(),
    ),
    "a root": (
        lambda a, b: bool(torch._sym_sqrt(b) > 2.5),
        [("gt", ("sqrt", ("float", s(1))), 2.5)],
        set(),
    ),
}


def ordered(expr):
    """sympy's order of terms is nobody's business."""
    if type(expr) is list:
        return list(map(ordered, expr))
    if type(expr) is not tuple:
        return expr
    op, *parts = map(ordered, expr)
    return (op, *(sorted(parts, key=repr) if op in ("add", "mul", "min") else parts))


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_comes_back(name):
    ask, conditions, pinned = ASKED[name]
    captured = Captured(double, [torch.randn(6, 9)], [[0, 1]])
    found = captured.give(asking(ask))
    twos = [("ge", s(i), 2) for i in range(2)]
    assert ordered([c for c in found.conditions if c not in twos]) == ordered(conditions)
    assert found.pinned == pinned


def test_conditions_that_were_told_are_not_asked_again():
    captured = Given(lambda n, m, x: (x * 2,), [torch.randn(6, 6)], [[0, 1]])
    captured.symbols = [symbol._replace(low=2) for symbol in captured.symbols]
    told = [("eq", s(0), s(1)), ("eq", ("mod", s(0), 3), 0), ("lt", s(0), 100)]

    def ask(a, b):
        assert bool(a == b)
        assert bool(a % 3 == 0)
        assert bool(b <= 99)

    assert captured.give(asking(ask), told) == _shapes.Found([], frozenset())


def test_sizes_of_one_value_are_no_symbols():
    """No duck shaping: a batch of 3 is not the number of channels."""
    captured = Captured(double, [torch.randn(3, 3)], [[0]])
    found = captured.give(asking(lambda a: bool(a == 3) and None))
    assert found.pinned == {0}
    assert captured.give(asking(lambda a: None)).pinned == set()


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_values_of_tensors_are_not_fixed(backend, dtype):
    def f(x, c):
        return x * c + x.shape[0]

    args = torch.randn(3, 4), torch.tensor(2, dtype=dtype)
    captured = Captured(f, args, [[0], []])
    found = captured.give(backend)
    assert found == ([("ge", s(0), 2)], set())
    for n, value in ((3, 2), (5, 7), (4, 0)):
        args = torch.randn(n, 4), torch.tensor(value, dtype=dtype)
        torch.testing.assert_close(captured.call(*args)[0], f(*args))


def lengths_of(n, m, x, y):
    return x.sum(0) + y.sum(0), n * y, m + x


# Tensors that share memory, in both orders: the length of each is a symbol.
def base_and_view(n):
    base = torch.randn(n, 4)
    return base, base[2:]


def view_and_base(n):
    return base_and_view(n)[::-1]


def two_views(n):
    base = torch.randn(2 * n, 4)
    return base[:n], base[n - 1 :]


@pytest.mark.parametrize("make", [base_and_view, view_and_base, two_views])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_inputs_that_are_views(make, backend):
    captured = Given(lengths_of, make(6), [[0], [0]])
    found = captured.give(backend)
    assert not found.pinned
    for n in (6, 7, 12):
        args = make(n)
        assert captured.holds(args)
        torch.testing.assert_close(
            captured.call(*args), lengths_of(len(args[0]), len(args[1]), *args)
        )


def write(n, m, x, y):
    x.add_(y.sum())
    return (y * n,)


@pytest.mark.parametrize("make", [base_and_view, two_views])
def test_inputs_that_are_written_to_and_may_overlap(make):
    """Whether two tensors in one memory overlap depends on their sizes."""
    args = make(6)
    captured = Given(write, args, [[0], [0]])
    captured.give("aot_eager")
    for n in (6, 7):
        args = make(n)
        if captured.holds(args):
            base = private.base_of(args[1])
            before = base.clone()
            got = captured.call(*args)
            after = base.clone()
            base.copy_(before)
            want = write(len(args[0]), len(args[1]), *args)
            torch.testing.assert_close((*got, after), (*want, base))
    assert captured.holds(make(6))


def test_a_gradient_has_the_symbols_of_its_tensor():
    net = nn.Linear(4, 4)

    def make(n):
        x = torch.randn(n, 4, requires_grad=True)
        net(x).sum().backward()
        return (x,)

    captured = Captured(net.forward, make(5), [[0]])
    assert captured.give("aot_eager") == ([("ge", s(0), 2)], set())
    for n in (5, 8):
        (x,) = make(n)
        torch.testing.assert_close(captured.call(x)[0], net(x))


def test_nodes_can_have_examples():
    captured = Captured(lambda x: (x.t() * 2).sum(0), [torch.randn(6, 9)], [[0]])
    shapes = _shapes.symbolic(
        captured.symbols, captured.inputs, captured.examples, _sources.sources(captured.texts), ()
    )
    shapes.run(captured.module)
    nodes = [node for node in captured.module.graph.nodes if node.op.startswith("call_")]
    sizes = [[str(n) for n in node.meta["example_value"].shape] for node in nodes]
    symbol = str(shapes.value_of(captured.inputs.index(s(0))))
    assert sizes == [["9", symbol], ["9", symbol], [symbol]]
    assert all(node.meta["example_value"].fake_mode is not shapes.mode for node in nodes)


# -- floats --


def scaled(x, lr):
    return x * lr + (lr + 1) * x


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_floats(backend):
    captured = Captured(scaled, [torch.randn(4), 0.25], dynamic=True)
    assert [symbol.hint for symbol in captured.symbols].count(0.25) == 1
    found = captured.give(backend)
    assert not found.pinned
    for lr in (0.25, 0.5, -0.0, 1e-300):
        x = torch.randn(4)
        torch.testing.assert_close(captured.call(x, lr)[0], scaled(x, lr))


def test_floats_that_a_backend_cannot_take_are_reported():
    def f(x, p):
        return F.dropout(x, p) * 2

    captured = Captured(f, [torch.randn(4), 0.25], dynamic=True)
    (index,) = (i for i, symbol in enumerate(captured.symbols) if symbol.hint == 0.25)
    before = private.forced_floats()
    with pytest.raises(_shapes.Restart) as caught:
        captured.give("aot_eager")
    assert caught.value.symbols == {index}
    assert private.forced_floats() == before


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_floats_without_a_symbol_are_reported(value):
    symbols = [_shapes.Symbol(5, "n"), _shapes.Symbol(value, "lr")]
    with pytest.raises(_shapes.Restart) as caught:
        _shapes.symbolic(symbols, [s(0), s(1)], [None, None], _sources.sources(["n", "lr"]), ())
    assert caught.value.symbols == {1}


# -- expressions --


def test_operators_are_those_of_the_engine():
    text = (ROOT / "src" / "graph" / "numbers.def").read_text()
    assert list(_expressions.OPERATORS) == re.findall(r'NUMBER\(\w+, "(\w+)"\)', text)


@pytest.mark.parametrize(
    ("condition", "follows"),
    [
        (("ge", s(0), 2), True),
        (("ge", s(0), 3), False),
        (("gt", s(0), 1), True),
        (("lt", 1, s(0)), True),
        (("le", s(0), 9), True),
        (("lt", s(0), 9), False),
        (("le", s(1), 9), False),
        (("ne", s(0), 1), True),
        (("ne", s(0), 5), False),
        (("gt", ("mul", s(0), s(1)), 1), True),
        (("gt", ("mul", -1, s(0)), -10), True),
        (("gt", ("mul", s(0), s(2)), -100), False),
        (("ge", ("floordiv", s(0), 2), 1), True),
        (("lt", ("mod", s(2), 3), 3), True),
        (("ge", ("mod", s(2), ("neg", 3)), 0), False),
        (("ge", ("sub", s(1), s(0)), -8), True),
        (("eq", s(0), s(0)), False),
        (("lt", s(0), 2.5), False),
    ],
)
def test_what_follows_from_bounds(condition, follows):
    ranges = {0: (2, 9), 1: (1, None)}
    assert _expressions.follows(condition, ranges) is follows
    for a in range(2, 10):
        for b in (1, 2, 50):
            for c in (-4, 0, 3):
                if follows:
                    assert _expressions.evaluate(condition, {0: a, 1: b, 2: c})
