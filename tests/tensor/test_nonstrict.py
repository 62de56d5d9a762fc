# ruff: noqa: E402
"""Functions that `nonstrict_trace` has marked: one node each, whatever trees they take and give."""

import collections
import dataclasses

import pytest

torch = pytest.importorskip("torch")

from torch.utils import _pytree as pytree

import stator

nonstrict_trace = torch._dynamo.nonstrict_trace
BACKENDS = ("eager", "aot_eager")


class Point:
    def __init__(self, x, y, kind="p"):
        self.x, self.y, self.kind = x, y, kind


pytree.register_pytree_node(
    Point, lambda p: ((p.x, p.y), p.kind), lambda xy, kind: Point(*xy, kind),
    serialized_type_name="stator_test_nonstrict.Point",
)  # fmt: skip


@dataclasses.dataclass
class Unit:
    n: int

    def __eq__(self, other):
        return isinstance(other, Unit) and self.n == other.n

    def __hash__(self):
        return hash(self.n)


pytree.register_constant(Unit)
Pair = collections.namedtuple("Pair", "first second")


class Strange:
    def __init__(self, x):
        self.x = x


class Counter:
    def __init__(self):
        self.calls = 0

    def backend(self, module, inputs):
        self.calls += 1
        return module.forward


def leave():
    torch._dynamo.graph_break()  # is not seen: nobody looks into a marked function


@nonstrict_trace
def of_point(p, factor=1):
    leave()
    return p.x * p.y * factor if p.kind == "p" else p.x - p.y


@nonstrict_trace
def makes_tree(x, d):
    leave()
    return {"sum": x + d["a"], "pair": Pair(x * 2, len(d)), "point": Point(x.sin(), x.cos(), "q")}


@nonstrict_trace
def with_unit(x, unit):
    return x * unit.n


@nonstrict_trace
def with_module(module, x):
    leave()
    return module(x)


@nonstrict_trace
def with_strange(s):
    return s.x + 1


@nonstrict_trace
def gives_strange(x):
    return Strange(x)


CAPTURED = torch.arange(4.0)


@nonstrict_trace
def captured(x):
    return x + CAPTURED


class Holder:
    def __init__(self, k):
        self.k = k

    @nonstrict_trace
    def method(self, x):
        leave()
        return x + self.k


pytree.register_pytree_node(
    Holder, lambda h: ((h.k,), None), lambda k, _: Holder(*k),
    serialized_type_name="stator_test_nonstrict.Holder",
)  # fmt: skip


def written_before(x):
    p = Point(x, x + 1)
    p.x = p.x * 3
    return of_point(p, factor=2), p.x


def outside_point(x):
    return of_point(POINT) + x, POINT.x


def nested(x):
    tree = makes_tree(x, {"a": 2, "b": [Point(x, x)]})
    return tree["sum"] + tree["pair"].first * tree["pair"].second + tree["point"].x


def marked_inside(x):
    return torch._dynamo.nonstrict_trace(plain)(x) + 1


def plain(x):
    leave()
    return x * 7


POINT = Point(torch.ones(4), torch.full((4,), 2.0), "q")
PROGRAMS = {
    "written_before": written_before,
    "outside_point": outside_point,
    "nested": nested,
    "marked_inside": marked_inside,
    "captured": lambda x: captured(x) * 2,
    "method": lambda x: Holder(x).method(x),
    "number": lambda x: Holder(3).method(x),
    "unit": lambda x: with_unit(x, Unit(5)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_that_gives_what_python_gives(name, backend):
    x = torch.arange(4.0) + 1
    expected = PROGRAMS[name](x)
    result = stator.compile(PROGRAMS[name], backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_of_modules_get_gradients_and_buffers_are_written(backend):
    def run(function, module):
        x = torch.arange(6.0).reshape(3, 2).requires_grad_()
        function(module, x).sum().backward()
        tensors = [*module.parameters(), *module.buffers()]
        return [x.grad, *(t.grad for t in module.parameters()), *tensors]

    def make():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))

    def program(module, x):
        return with_module(module, x) * 2

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    first, second = make(), make()
    for training in (True, False, True):
        results = run(compiled, first.train(training)), run(program, second.train(training))
        torch.testing.assert_close(*results)


def test_constants_and_contexts_are_guarded():
    seen = Counter()

    def program(x, unit, p):
        return with_unit(x, unit) + of_point(p)

    compiled = stator.compile(program, backend=seen.backend, fullgraph=True)
    x = torch.ones(2)
    cases = [
        (Unit(2), "p", 1), (Unit(2), "p", 1), (Unit(3), "p", 2), (Unit(3), "q", 3),
        (Unit(2), "p", 3),
    ]  # fmt: skip
    for unit, kind, compiles in cases:
        p = Point(x + 1, x + 3, kind)
        assert torch.equal(compiled(x, unit, p), program(x, unit, p)), (unit, kind)
        assert seen.calls == compiles, (unit, kind)


def made_inside(x):
    def inner(x):
        return x + 1

    return nonstrict_trace(inner)(x)


def in_context(x):
    return of_point(Point(x, x, Strange(x)))


REFUSED = {
    "Invalid input type for nonstrict_trace-ed function: .*Strange": lambda x: with_strange(
        Strange(x)
    ),
    "Unsupported output type for nonstrict_trace-ed function": lambda x: gives_strange(x).x,
    "Applying `nonstrict_trace` to function <inner>": made_inside,
    "Invalid use of pytree_flatten with nonstrict_trace-ed function: .*Strange": in_context,
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_tree_breaks(text):
    x = torch.ones(3)
    with pytest.raises(stator.Unsupported, match=text):
        stator.compile(REFUSED[text], backend="eager", fullgraph=True)(x)
    assert torch.equal(stator.compile(REFUSED[text], backend="eager")(x), REFUSED[text](x))


class Log:
    def __init__(self, n):
        self.n = n


LOG = Log(1)


@nonstrict_trace
def makes_again(x):
    LOG.__init__(LOG.n + 1)
    return x + LOG.n


def test_an_object_that_is_made_again_is_written_to():
    def program(x):
        return makes_again(x) + LOG.n

    compiled = stator.compile(program, backend="eager")
    results = [(LOG.__init__(1), compiled(torch.ones(1)), compiled(torch.ones(1)))[1:]]
    results += [(LOG.__init__(1), program(torch.ones(1)), program(torch.ones(1)))[1:]]
    assert results[0] == results[1]


@dataclasses.dataclass(frozen=True)
class Inner:
    t: torch.Tensor
    n: int = 3
    rest: list = dataclasses.field(default_factory=lambda: [1, 2])


@dataclasses.dataclass(frozen=True)
class Outer:
    x: torch.Tensor
    inner: Inner


@dataclasses.dataclass
class Loose:
    x: torch.Tensor


@torch._dynamo.allow_in_graph
def of_outer(outer, pair):
    return outer.x * outer.inner.t + outer.inner.n - pair.second + len(outer.inner.rest)


@torch._dynamo.allow_in_graph
def of_loose(loose):
    return loose.x + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_frozen_dataclasses_go_into_functions_that_are_allowed_in_graphs(backend):
    def program(x, outer, n):
        made = Outer(x + 1, Inner(x * 2, n))
        return of_outer(made, Pair(x, n)) * of_outer(outer, Pair(1, x))

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (3, 4, 5):
        x = torch.ones(2) * n
        outer = Outer(x, Inner(x + 1, n))
        assert torch.equal(compiled(x, outer, n), program(x, outer, n))
    with pytest.raises(stator.Unsupported, match="Loose"):
        stator.compile(lambda x: of_loose(Loose(x)), backend=backend, fullgraph=True)(x)
