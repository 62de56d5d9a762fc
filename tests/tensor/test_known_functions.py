# ruff: noqa: E402
"""A torch function or tensor method is a node because a row or a schema says so. What torch adds is
no node until one of them knows it: C code ends the trace, Python code is interpreted."""

import os
import subprocess
import sys
from types import BuiltinFunctionType, MethodDescriptorType

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel

import stator
from stator import _callables, _levels, _rows, _torch
from stator._versions import private
from tests.tensor.helpers import assert_same, compiled

_torch.attach()


# -- a torch of tomorrow --

TOMORROW = """
import collections, torch
torch._C._nn.tomorrow = collections._count_elements  # C code: a function, and a method of tensors
torch.Tensor.tomorrow = object.__sizeof__
torch.Tensor.called_tomorrow = lambda self: self.sin() + 1
torch.nn.functional.python_tomorrow = lambda x: x.cos() + 1
import stator

PROGRAMS = {
    "function": lambda x: (torch._C._nn.tomorrow({}, [x.dim()]), x + 1)[1],
    "method": lambda x: x.tomorrow() * x,
    "unbound method": lambda x: torch.Tensor.tomorrow(x) * x,
    "bound method": lambda x: [method() for method in [x.tomorrow]][0] * x,
    "method in native code": lambda x: sum(map(torch.Tensor.tomorrow, [x])) * x,
    "Python method": lambda x: x.called_tomorrow(),
    "Python function": lambda x: torch.nn.functional.python_tomorrow(x),
}
x = torch.ones(2)
for name, program in PROGRAMS.items():
    try:
        stator.compile(program, backend="eager", fullgraph=True)(x)
        print(name, "|", "traced")
    except stator.Unsupported as error:
        print(name, "|", " ".join(str(error).split()))
    assert torch.equal(stator.compile(program, backend="eager")(x), program(x))
"""


@pytest.fixture(scope="module")
def tomorrow():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", TOMORROW], capture_output=True, text=True,
                          env=environment, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(" | ", 1) for line in done.stdout.splitlines())


NO_SCHEMA = "calls a torch function that cannot be recorded: {}, which has no row and no schema"


@pytest.mark.parametrize(
    ("program", "path"),
    [
        ("function", "torch._C._nn.tomorrow"),
        ("unbound method", "Tensor.tomorrow"),
        ("method in native code", "Tensor.tomorrow"),
    ],
)
def test_c_code_that_is_new_ends_the_trace(tomorrow, program, path):
    assert NO_SCHEMA.format(path) in tomorrow[program]


@pytest.mark.parametrize("program", ["method", "bound method"])
def test_a_bound_c_method_that_is_new_ends_the_trace(tomorrow, program):
    """A bound method is found by its definition, and called by the name that the definition has."""
    assert "calls a torch function that cannot be recorded: Tensor.__sizeof__" in tomorrow[program]


@pytest.mark.parametrize("program", ["Python method", "Python function"])
def test_python_code_that_is_new_is_interpreted(tomorrow, program):
    assert tomorrow[program] == "traced"


# -- this torch --

NODES = {"operation", "method"}


def listed():
    """Names with a row that makes them nodes."""
    methods = {name for kind, _, names in _rows.METHODS if kind in NODES for name in names.split()}
    paths = [path for kind, _, names in _rows.FUNCTIONS if kind in NODES for path in names.split()]
    paths += [f"{home}.{name}" for home, names in _rows.WHOLE for name in names.split()]
    paths += [path for path, _, (kind, _) in _levels.rows() if kind in NODES]
    return methods, {id(private.find(path)) for path in paths}


def test_every_node_has_a_row_or_a_schema():
    methods, functions = listed()
    by_schema, by_row = 0, 0
    for function, _, (kind, extra) in _callables.rows():
        if kind == "schema":
            decided, _ = _callables.by_schema(function, extra)
            schemas = private.schemas(extra[0])
            assert decided == "refused" or (decided in NODES and schemas), extra
            by_schema += decided != "refused"
        elif kind == "method":
            assert extra in methods
            by_row += 1
        elif kind == "operation":
            assert id(function) in functions or function is private.attention
            by_row += 1
    assert by_schema > 1500 and by_row > 300


def test_what_a_schema_decides_is_c_code():
    kinds = {type(function) for function, _, (kind, _) in _callables.rows() if kind == "schema"}
    assert kinds == {BuiltinFunctionType, MethodDescriptorType}


# How an operator with such schemas is decided; each name has no row of its own.
DECIDED = {
    "sin": "operation",  # gives a tensor
    "split_with_sizes": "operation",  # a list of them
    "_foreach_add_": "operation",  # nothing, but it says what it writes to
    "_print": "refused",  # nothing, and writes to no argument
    "_nnpack_available": "refused",  # a number, which depends on who knows what
    "_fused_sdp_choice": "refused",
    "qscheme": "refused",  # what no graph has
    "set_": "refused",  # takes what no graph has
    "append": "refused",  # a function of TorchScript's
    "tomorrow": "refused",
}


@pytest.mark.parametrize("name", DECIDED)
def test_schemas_decide(name):
    kind, _ = _callables.by_schema(torch.sin, (name, f"torch.{name}"))
    assert kind == DECIDED[name]


def test_schemas_name_methods():
    assert _callables.by_schema(torch.Tensor.sin, ("sin", "Tensor.sin")) == ("method", "sin")


# -- programs that such functions made wrong --


def test_a_function_that_prints_is_no_node():
    with pytest.raises(stator.Unsupported, match=r"torch\._print, which has no row"):
        compiled(lambda x: (torch._print(""), x + 1)[1])(torch.ones(2))


def test_a_choice_that_depends_on_settings_is_not_remembered():
    def choose(q):
        return torch._fused_sdp_choice(q, q, q)

    q = torch.ones(1, 2, 4, 8)
    fast = compiled(choose, fullgraph=False)
    for kernel in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(kernel):
            assert_same(fast(q), choose(q))
