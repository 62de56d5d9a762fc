"""What a graph calls has a path by which another process finds it again."""

import math
import operator
import pkgutil
import types
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from stator import _callables, _engine  # noqa: E402
from stator._versions import private  # noqa: E402

# Nodes of autograd functions call a function of their class, not this. The call of a scripted
# function is never a node, and torch's own tests, once imported, put another function there.
private.import_all()  # torch._dynamo puts another function in the place of torch.manual_seed
stator.compile(lambda x: x, backend="eager")(torch.ones(1))  # attaches torch
NO_NODES = (private.function_apply, private.call_script)
ROWS = [row for row in _callables.rows() if row[0] not in NO_NODES]


def test_every_row_of_torchs_lies_where_it_says() -> None:
    wrong = [path for function, path, _ in ROWS if pkgutil.resolve_name(path) is not function]
    assert wrong == []
    assert len({path for _, path, _ in ROWS}) == len(ROWS) > 1000


def test_the_engine_tells_the_path_of_every_row_of_torchs() -> None:
    stator.compile(lambda x: x, backend="eager")(torch.ones(1))  # attaches torch
    told = [(_engine.rule_path(function), path) for function, path, _ in ROWS]
    assert [pair for pair in told if pair[0] != pair[1]] == []


@pytest.mark.skipif(private.call_script is None, reason="torch's own tests were imported before")
def test_the_call_of_a_scripted_function_keeps_its_path() -> None:
    stator.compile(lambda x: x, backend="eager")(torch.ones(1))
    path = "torch._C.ScriptFunction.__call__.__func__"
    assert _engine.rule_path(private.call_script) == path
    if not hasattr(torch._C.ScriptFunction.__call__, "__code__"):
        assert pkgutil.resolve_name(path) is private.call_script


def test_functions_and_types_of_python_lie_where_their_rows_say() -> None:
    named = 0
    for path, kind, *_ in _engine.rules():
        try:
            found = pkgutil.resolve_name(path if "." in path else f"builtins.{path}")
        except (ImportError, AttributeError, ValueError):
            continue  # a type that no module has
        told = _callables.path_of(found)
        assert told is None or pkgutil.resolve_name(told) is found, path
        named += told is not None
    assert named > 300


@pytest.mark.parametrize(
    "target, path",
    [
        (torch.add, "torch.add"),
        (torch.Tensor.add, "torch._C.TensorBase.add"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch._C._VariableFunctions.split, "torch._C._VariableFunctions.split"),
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (torch.ops.aten.add, "torch.ops.aten.add"),
        (operator.add, "_operator.add"),
        (math.sqrt, "math.sqrt"),
        (len, "builtins.len"),
        (float, "builtins.float"),
        (types.ModuleType, None),
        (lambda: None, None),
        (test_every_row_of_torchs_lies_where_it_says, None),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_paths(target: Any, path: str | None) -> None:
    assert _callables.path_of(target) == path
    assert path is None or pkgutil.resolve_name(path) is target


def test_targets_of_a_graph_are_found_again() -> None:
    targets = []

    def keep(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        targets.extend(node.target for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    def program(x: Any) -> Any:
        with torch.no_grad():
            y = torch.nn.functional.softmax(x @ x, 0)[0] + 1
        return torch.ops.aten.mul.Tensor(-y, torch.arange(2)) > abs(y)

    stator.compile(program, backend=keep)(torch.ones(2, 2))
    paths = [_callables.path_of(target) for target in targets]
    assert [pkgutil.resolve_name(path or "") for path in paths] == targets
    assert len(set(paths)) >= 8, paths
