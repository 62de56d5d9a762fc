"""Sizes that the user wants nobody to rely on (`mark_unbacked`, `unbacked_sources`): one entry for
all of them, 0 and 1 too, and what needs a value ends the graph."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo as dynamo  # noqa: E402
from torch._dynamo.decorators import mark_unbacked  # noqa: E402
from torch._dynamo.testing import CompileCounter  # noqa: E402

import stator  # noqa: E402
from tests.older import skip_stock_before  # noqa: E402

F = torch.nn.functional
ROWS = [(3, 4), (1, 4), (0, 4), (7, 4)]
COLUMNS = [(3, 4), (3, 1), (3, 0), (3, 7)]
BOTH = [(3, 4), (1, 4), (4, 1), (0, 7), (5, 2)]

# Program, shapes, marked dimensions.
PROGRAMS = {
    "times": (lambda x: x * 2, ROWS, [0]),
    "columns": (lambda x: x * x, COLUMNS, [1]),
    "turned": (lambda x: x.t() + 1, BOTH, [0, 1]),
    "reductions": (lambda x: (x.sum(0), x.sum(-1), x.softmax(-1)), ROWS, [0]),
    "product": (lambda x: x @ torch.ones(4, 5) + x.shape[0], ROWS, [0]),
    "sizes": (
        lambda x: (x.shape[0] + 1, x.numel(), x.size(), x.new_zeros(len(x.shape))),
        ROWS,
        [0],
    ),
    "made of sizes": (lambda x: x.new_ones(x.shape[0] * 2) * x.shape[0], ROWS, [0]),
    "flat": (lambda x: x.view(-1).sin(), ROWS, [0]),
    "written": (lambda x: x.add_(1), ROWS, [0]),
    "joined": (lambda x: torch.cat([x, x]), ROWS, [0]),
    "normed": (lambda x: F.layer_norm(x, (4,)), ROWS, [0]),
    "parts": (lambda x: x[:, 1:3] * x[:, :1], ROWS, [0]),
    "checked": (lambda x: (torch._check(x.shape[0] < 9), x * 2)[1], ROWS, [0]),
}


def marked(shape, dims):
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    for dim in dims:
        mark_unbacked(x, dim)
    return x


def outcome(function, x):
    try:
        return function(x)
    except (RuntimeError, IndexError) as error:
        return type(error), str(error)


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.stride() == b.stride() and torch.equal(a, b)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def compare(program, fast, shapes, dims):
    for shape in shapes:
        x, y = marked(shape, dims), marked(shape, dims)
        assert same(outcome(fast, x), outcome(program, y)), shape
        assert torch.equal(x, y)


@pytest.mark.parametrize("last", [False, True], ids=["", "backwards"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_entry_for_all_sizes(name, backend, last):
    program, shapes, dims = PROGRAMS[name]
    fast = stator.compile(program, backend=backend, fullgraph=True)
    compare(program, fast, shapes[::-1] if last else shapes, dims)
    assert fast.metrics["entries"] == fast.metrics["traces"] == 1


def test_a_tensor_without_the_mark_fits():
    fast = stator.compile(lambda x: x * 2, backend="eager")
    fast(marked((3, 4), [0]))
    for rows in (1, 0, 9):
        x = torch.ones(rows, 4)
        assert torch.equal(fast(x), x * 2)
    assert fast.metrics["entries"] == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    fast = stator.compile(lambda x, w: (x @ w).sin().sum(), backend=backend, fullgraph=True)
    for rows in (3, 1, 0, 5):
        x, grads = marked((rows, 4), [0]), []
        for function in (lambda x, w: (x @ w).sin().sum(), fast):
            w = torch.full((4, 2), 0.1, requires_grad=True)
            function(x, w).backward()
            grads.append(w.grad)
        torch.testing.assert_close(*grads)
    assert fast.metrics["entries"] == 1


# -- what needs a value --


def branch(x):
    y = x.sin()
    if x.shape[0] > 3:
        return y * 2
    return y * 3


def looped(x):
    total = x.sum(0)
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


def texts(x):
    return f"{x.shape[0]}", x * 2, {x.shape[0]: 1}


def broadcast(x):
    return x + torch.ones(5, 4)


def one_size(x):
    return x.view(3, 4) * 2


def halves(x):
    return x.view(2, -1, 4).sum(1)


NEEDS = [branch, looped, texts, broadcast, one_size, halves]
SHAPES = [(5, 4), (3, 4), (1, 4), (0, 4), (4, 4), (5, 4), (3, 4)]


@pytest.mark.parametrize("last", [False, True], ids=["", "backwards"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", NEEDS, ids=lambda f: f.__name__)
def test_what_needs_a_value_is_what_eager_gives(program, backend, last):
    fast = stator.compile(program, backend=backend)
    compare(program, fast, SHAPES[::-1] if last else SHAPES, [0])


@pytest.mark.parametrize("program", [branch, looped, texts], ids=lambda f: f.__name__)
def test_what_needs_a_value_is_an_error_where_the_graph_may_not_end(program):
    fast = stator.compile(program, backend="eager", fullgraph=True)
    with pytest.raises(dynamo.exc.UserError, match=r"(?s)data-dependent expression.*_check"):
        fast(marked((5, 4), [0]))


def test_a_branch_ends_the_graph_and_both_sides_are_compiled():
    fast = stator.compile(branch, backend="eager")
    compare(branch, fast, SHAPES, [0])
    assert fast.metrics["entries"] > 1
    assert not fast.metrics["drops"]


def test_a_strict_mark_is_an_error_where_one_size_fits():
    def program(x, y):
        return x * y

    fast = stator.compile(program, backend="eager")
    x = torch.ones(5, 4)
    mark_unbacked(x, 0, strict=True)
    with pytest.raises(RuntimeError, match=r"specialized it to be a constant \(5\)"):
        fast(x, torch.ones(5, 4))
    assert torch.equal(fast(x, torch.ones(4)), x)


def test_a_setting_makes_breaks_errors():
    fast = stator.compile(branch, backend="eager")
    with (
        torch.fx.experimental._config.patch(no_data_dependent_graph_break=True),
        pytest.raises(RuntimeError, match="Could not guard on data-dependent expression"),
    ):
        fast(marked((5, 4), [0]))


def test_whether_a_number_is_the_same_in_all_calls():
    from torch.fx.experimental.symbolic_shapes import has_static_value

    def f(x):
        first, second = x.shape
        return has_static_value(first), has_static_value(second), has_static_value(2.5), x * 2

    x = torch.zeros(10, 4)
    torch._dynamo.mark_dynamic(x, 0)
    compiled = stator.compile(f, backend="eager", fullgraph=True)
    assert compiled(x)[:3] == (False, True, True)
    assert compiled.metrics["entries"] == 1


def test_what_is_known_for_all_sizes():
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    def program(x):
        before = statically_known_true(x.shape[0] > 9)
        torch._check(x.shape[0] >= 10)
        return before, statically_known_true(x.shape[0] > 9), x * 2

    for mark in (dynamo.mark_dynamic, mark_unbacked):
        x = torch.ones(10, 4)
        mark(x, 0)
        before, after, _ = stator.compile(program, backend="eager", fullgraph=True)(x)
        assert (before, after) == (False, True)


def test_a_program_without_operations_is_told_what_is_known():
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    def program(x):
        return statically_known_true(x.shape[0] > 9)

    x = torch.ones(10)
    dynamo.mark_dynamic(x, 0)
    compiled = stator.compile(program, backend="eager", fullgraph=True)
    assert [compiled(x), compiled(x)] == [False, False]


def is_broadcast(x, guard):
    return x + (3 if guard(x.shape[0] != 1) else 4)


def is_empty(x, guard):
    return x + (3 if guard(x.shape[0] * 2 == 0) else 4)


@pytest.mark.parametrize(("program", "added"), [(is_broadcast, 3), (is_empty, 4)])
def test_sizes_count_as_two_or_more_where_the_program_says_so(program, added):
    from torch.fx.experimental.symbolic_shapes import guard_size_oblivious

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for size in (1, 5, 0):
        x = torch.zeros(size)
        mark_unbacked(x, 0)
        assert torch.equal(compiled(x, guard_size_oblivious), x + added)
    assert compiled.metrics["entries"] == 1


# -- settings, and stock Dynamo beside it --


@pytest.fixture(params=["stator", "stock"])
def engine(request):
    if request.param == "stator":
        stator.install()
    dynamo.reset()
    try:
        yield request.param
    finally:
        stator.uninstall()
        dynamo.reset()


def graphs(function, sizes, mark=lambda x: None):
    backend, counts = CompileCounter(), []
    fast = torch.compile(function, backend=backend)
    for size in sizes:
        x = torch.randn(size)
        mark(x)
        assert torch.equal(fast(x), function(x))
        counts.append(backend.frame_count)
    return counts


def square(x):
    return x * x


def test_marks(engine):
    assert graphs(square, [(1, 4), (3, 4), (0, 4)], lambda x: mark_unbacked(x, 0)) == [1, 1, 1]


@pytest.mark.parametrize("names", ["L['x']", "L['x']:0", r"L\['.'\]"])
def test_places_that_settings_name(engine, names):
    if ":" in names:
        skip_stock_before(engine, 2, 13)
    with torch.compiler.config.patch(unbacked_sources=names):
        assert graphs(square, [(0,), (1,), (2,), (5,)]) == [1, 1, 1, 1]


def test_sizes_that_changed(engine):
    with dynamo.config.patch(automatic_dynamic_shapes_mark_as="unbacked"):
        assert graphs(square, [(3,), (2,), (1,), (0,)]) == [1, 2, 2, 2]
