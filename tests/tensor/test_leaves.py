# ruff: noqa: E402
"""Tensors that a compiled function makes and that require gradients of their own: with backend eager
they are made in the graph, and no backend loses their gradients."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import stator
from tests.tensor.helpers import assert_same

WEIGHT = nn.Parameter(torch.ones(3))
KEPT: list = []


def leaf_and_use(x):
    leaf = torch.full((3,), 2.0, requires_grad=True)
    return leaf, leaf * WEIGHT * x


def written(x):
    """What is given out is written to through a view."""
    leaf = torch.ones(3, requires_grad=True)
    base = torch.zeros(2, 3)
    base[0].add_(leaf * x)
    return base


def kept(x):
    KEPT[:] = [torch.ones_like(x, requires_grad=True)]
    return KEPT[0] * x


def shares_memory(x):
    parameter = nn.Parameter(x)
    with torch.no_grad():
        parameter.add_(1)
    return x, parameter, parameter is x, type(parameter) is nn.Parameter, parameter.is_leaf


def in_a_list(x):
    return list(nn.ParameterList([nn.Parameter(x * i) for i in range(3)]))


def by_no_grad(x):
    with torch.no_grad():
        return (x * 2).requires_grad_() * 3, torch.zeros(3, requires_grad=True)


def asked(x):
    y = (x * 2).requires_grad_()
    return (y * 3 if y.requires_grad and y.is_leaf else y), isinstance(y, nn.Parameter)


# Name, program, whether backend eager needs no break.
PROGRAMS = [
    ("a leaf", lambda x: torch.zeros(3, requires_grad=True), True),
    ("what comes of a leaf", lambda x: torch.zeros(3, requires_grad=True) * x, True),
    ("a leaf of numbers", lambda x: torch.tensor([1.0, 2, 3], requires_grad=True) + x, True),
    ("a leaf that stays", lambda x: torch.ones(3, requires_grad=True).detach() * x, True),
    ("a leaf, and what comes of it", leaf_and_use, True),
    ("written through a view", written, True),
    ("kept outside", kept, True),
    ("of what was computed", lambda x: (x * 2).requires_grad_(), True),
    ("used", lambda x: (x * 2).requires_grad_() * 3, True),
    ("detached", lambda x: WEIGHT.detach().requires_grad_() * x, True),
    ("taken back", lambda x: torch.zeros(3, requires_grad=True).requires_grad_(False), True),
    ("without gradients", by_no_grad, True),
    ("asked", asked, True),
    ("of the argument", lambda x: x.requires_grad_(), False),
    ("no leaf", lambda x: (WEIGHT * 2).requires_grad_(False), False),
    ("ints", lambda x: x.long().requires_grad_(), False),
    ("parameter", lambda x: nn.Parameter(x * 2), True),
    ("parameter without gradient", lambda x: nn.Parameter(x * 2, requires_grad=False), True),
    ("use of a parameter", lambda x: nn.Parameter(torch.ones(3)) * x, True),
    ("parameter of the argument", shares_memory, True),
    ("parameters in a list", in_a_list, True),
    ("copy of a parameter", lambda x: copy.deepcopy(nn.Parameter(x * 2)), True),
    ("module", lambda x: nn.Linear(3, 2)(x), True),
]
IDS = [program[0] for program in PROGRAMS]


def outcome(program):
    """Results, or the exception; and the gradients of all leaves among them."""
    torch.manual_seed(0)
    WEIGHT.grad = None
    KEPT.clear()
    x = torch.arange(3.0)
    try:
        result = program(x)
    except RuntimeError as error:
        return [str(error).partition("\n")[0], x.requires_grad]
    tensors = [
        item for item in torch.utils._pytree.tree_leaves(result) if isinstance(item, torch.Tensor)
    ]
    loss = sum((t * t).sum() for t in tensors if t.requires_grad)
    if isinstance(loss, torch.Tensor):
        loss.backward()
    leaves = [t for t in (*tensors, *KEPT) if t.is_leaf]
    return [result, [t.is_leaf for t in tensors], [t.grad for t in leaves], WEIGHT.grad, x]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name, program, whole", PROGRAMS, ids=IDS)
def test_as_in_plain_python(name, program, whole, backend):
    fast = stator.compile(program, backend=backend)
    for _ in range(2):
        assert_same(outcome(fast), outcome(program))


@pytest.mark.parametrize("name, program, whole", PROGRAMS, ids=IDS)
def test_eager_needs_no_break(name, program, whole):
    fast = stator.compile(program, backend="eager")
    outcome(fast)
    assert (fast.metrics["breaks"] == []) == whole


def test_a_leaf_that_stays_in_the_graph_needs_no_break():
    fast = stator.compile(PROGRAMS[3][1], backend="aot_eager", fullgraph=True)
    assert_same(outcome(fast), outcome(PROGRAMS[3][1]))


def gradient_set(x, y):
    x.grad = y + 1
    return x.grad * 2


def gradients_crossed(x, y):
    x._grad = y + 1
    y.grad = x + 2
    return x.grad.data, y._grad.data


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("f", [gradient_set, gradients_crossed])
def test_gradients_are_set_on_leaves_and_others(f, is_leaf):
    def inputs():
        given = torch.arange(3.0).requires_grad_(), torch.ones(3).requires_grad_()
        return given if is_leaf else tuple(x.clone() for x in given)

    ours, eager = inputs(), inputs()
    assert_same(stator.compile(f, backend="eager")(*ours), f(*eager))
    assert_same([x.grad for x in ours], [x.grad for x in eager])
