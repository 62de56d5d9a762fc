# ruff: noqa: E402
"""Lines K1 to K9: objects that leave a trace."""

import collections
import enum
import itertools
import math
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

from tests.spec.helpers import Recorder, assert_same, both, check, missing, value


def whole(function, *args):
    return torch.compile(function, backend=Recorder(), fullgraph=True)(*args)


# -- K1 to K3 --


@both
def test_K1_one_object_is_built_once():
    def program(x):
        made = [x + 1]
        table = {"a": made, "b": made}
        return made, table, (made, table)

    made, table, both_of = whole(program, value())
    assert table["a"] is made and table["b"] is made
    assert both_of[0] is made and both_of[1] is table


def test_K1_cycles():
    class Node:
        pass

    def program(x):
        node, items = Node(), []
        node.items, node.value = items, x + 1
        items.append(node)
        items.append(items)
        return node

    node = whole(program, value())
    assert node.items[0] is node and node.items[1] is node.items
    assert_same(node.value, value() + 1)


@both
def test_K1_also_at_a_break():
    def program(x):
        made = [x + 1]
        pair = (made, made)
        torch._dynamo.graph_break()
        made.append(1)
        return pair, made

    (first, second), made = torch.compile(program, backend=Recorder())(value())
    assert first is second is made
    assert len(made) == 2


@both
def test_K2_what_came_in_goes_out_as_itself():
    class Thing:
        pass

    def program(x, items, thing, table):
        items.append(1)
        table["new"] = items
        return x, items, thing, table, [thing, x + 1]

    x, items, thing, table = value(), [], Thing(), {}
    got = whole(program, x, items, thing, table)
    assert [a is b for a, b in zip(got, (x, items, thing, table))] == [True] * 4
    assert got[4][0] is thing
    assert table["new"] is items == [1]


@both
def test_K3_results_that_are_only_tensors():
    check(lambda x: (x + 1, x * 2, x - 3), value())
    check(lambda x: [x + 1], value())
    check(lambda x: x + 1, value())


# -- K4 --


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


CONSTANTS = [
    None,
    True,
    7,
    2**80,
    1.5,
    -0.0,
    math.inf,
    1 - 2j,
    b"bytes",
    "text",
    Ellipsis,
    NotImplemented,
    (lambda: 1).__code__,
    torch.device("cpu"),
    torch.float16,
    torch.strided,
    torch.channels_last,
    Color.RED,
    Level.LOW,
    int,
    torch.Tensor,
    slice(1, None, 2),
    (1, (2, "a")),
    frozenset({1, 2}),
    torch.Size([1, 2]),
    range(3),
]


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda c: f"{type(c).__name__}")
def test_K4_constants_come_out_as_they_are(constant):
    def from_a_cell(x):
        return x + 1, constant, [constant]

    def given(x, constant):
        return x + 1, constant

    for got in (whole(from_a_cell, value())[1], whole(given, value(), constant)[1]):
        assert type(got) is type(constant)
        assert got == constant
        assert math.copysign(1, got) == math.copysign(1, constant) if got == 0 else True


def test_K4_constants_made_in_the_trace():
    def program(x):
        return (x + 1, {"d": torch.device("cpu"), "t": torch.float16, "s": slice(1, 2), "e": Color.RED,
                "f": frozenset((1, 2)), "c": complex(1, 2), "b": bytes(2), "z": torch.Size((1, 2))})  # fmt: skip

    check(program, value())


# -- K5, K6 --


def test_K5_no_globals_are_left_behind():
    space = {"torch": torch, "__name__": "spec_space"}
    exec(
        "def f(x):\n  y = torch.relu(x)\n  torch._dynamo.graph_break()\n  return y + len([1])",
        space,
    )
    before = dict(space)
    fast = torch.compile(space["f"], backend=Recorder())
    for _ in range(2):
        fast(value())
    assert {name for name in space} == set(before)
    assert all(space[name] is item for name, item in before.items())


def test_K6_no_modules_are_left_behind():
    def program(x):
        import math

        torch._dynamo.graph_break()
        return math.floor(2.5), math, x + 1

    before = set(sys.modules)
    got = torch.compile(program, backend=Recorder())(value())
    assert got[0] == 2 and got[1] is math
    assert {name for name in set(sys.modules) - before if not name.startswith("torch.")} == set()


# -- K7 --


@both
def test_K7_floats_give_the_right_result():
    fast = torch.compile(lambda x, f: (x * f, f + 1), backend=Recorder())
    for f in (0.5, 1.5, -2.0, float("inf")):
        assert_same(fast(value(), f), (value() * f, f + 1))


@both
def test_K7_a_float_that_changes_does_not_compile_anew():
    backend = Recorder()
    fast = torch.compile(lambda x, f: x * f, backend=backend)
    for f in (0.5, 1.5, 2.5, 3.5, 4.5):
        fast(value(), f)
    assert len(backend.graphs) <= 2


@both
def test_K7_arrays_come_out_as_arrays():
    pytest.importorskip("numpy")

    def program(x):
        return (x + 1).numpy()

    got, want = torch.compile(program, backend=Recorder())(value()), program(value())
    assert type(got) is type(want) and (got == want).all()


@both
def test_K7_arrays_are_made_in_one_piece():
    pytest.importorskip("numpy")
    assert (whole(lambda x: (x + 1).numpy() * 2, value()) == (value().numpy() + 1) * 2).all()


# -- K8 --


def test_K8_names_of_the_program_never_clash():
    names = (
        "tmp_0 ___stack0 graph_out_0 __compiled_fn_0 L G out r0 self function __resume_at_0".split()
    )
    lines = [f"    {name} = x + {i}" for i, name in enumerate(names)]
    lines += [
        "    torch._dynamo.graph_break()",
        f"    return [{', '.join(names)}], sorted(locals())",
    ]
    space = {"torch": torch}
    exec("def f(x):\n" + "\n".join(lines), space)
    check(space["f"], value(), whole=False)


# -- K9 --


def _tuple_iterator(x):
    made = iter((x, x + 1, x + 2))
    next(made)
    return made


def _list_iterator(x):
    made = iter([x, x + 1])
    next(made)
    return made


def _keys(x):
    made = iter({"a": 1, "b": 2, "c": 3})
    next(made)
    return made


def _zip(x):
    made = zip([1, 2, 3], [x, x + 1, x + 2])
    next(made)
    return made


def _enumerate(x):
    made = enumerate([x, x + 1])
    next(made)
    return made


def _count(x):
    made = itertools.count(3)
    next(made)
    return itertools.islice(made, 2)


def _map(x):
    return map(lambda v: v * 2, [x, x + 1])


def _reversed(x):
    return reversed([1, 2])


def _chain(x):
    return itertools.chain([x], (x + 1,))


def _generator(x):
    made = (x + i for i in range(3))
    next(made)
    return made


ITERATORS = [
    _tuple_iterator,
    _list_iterator,
    _keys,
    _zip,
    _enumerate,
    _count,
    _map,
    _reversed,
    _chain,
    _generator,
]


@pytest.mark.parametrize("program", ITERATORS, ids=lambda f: f.__name__)
def test_K9_iterators_come_out_where_they_are(program):
    got, want = torch.compile(program, backend="eager")(value()), program(value())
    assert type(got) is type(want)
    assert_same(list(got), list(want))


def test_K9_positions_in_a_dict():
    def program(x, table):
        keys = list(table)
        first = next(iter(table.items()))
        return keys[1], first[0], x + len(table)

    check(program, value(), {"b": 1, "a": 2})


def test_K9_new_modules_cells_and_hook_handles():
    class Small(torch.nn.Module):
        def forward(self, x):
            return x + 1

    def program(x):
        made = Small()
        late = x + 2

        def read():
            return late

        y = x * 2
        handle = y.register_hook(lambda grad: grad * 0)
        handle.remove()
        return made, read, handle, y

    x = value().requires_grad_()
    made, read, handle, y = torch.compile(program, backend="eager")(x)
    assert type(made) is Small and made._parameters == {}
    assert_same(made(value()), value() + 1)
    assert isinstance(read.__closure__[0], types.CellType)
    assert_same(read(), value().requires_grad_() + 2)
    y.sum().backward()
    assert_same(x.grad, torch.full((3,), 2.0))
    assert type(handle) is type(x.register_hook(lambda grad: grad))


def test_K9_named_tuples_and_other_containers():
    Pair = collections.namedtuple("Pair", "a b")

    def program(x):
        return (Pair(x, 1), collections.OrderedDict(b=1, a=x), collections.deque([x], maxlen=2),
                collections.defaultdict(list, k=[x]), collections.Counter("aab"))  # fmt: skip

    got, want = whole(program, value()), program(value())
    assert [type(item) for item in got] == [type(item) for item in want]
    assert_same(got[0], want[0])
    assert list(got[1]) == ["b", "a"] and got[2].maxlen == 2
    assert got[3].default_factory is list and got[4] == want[4]
