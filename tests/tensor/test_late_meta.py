# ruff: noqa: E402
"""What the nodes of a graph say of themselves is made when somebody asks, and is the same then."""

from __future__ import annotations

import copy
import linecache
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import stator
from stator import _engine, _late

# -- the dict --

LOOKS: dict[str, Callable[[Any], Any]] = {
    "__contains__": lambda d: ("a" in d, "z" in d),
    "__delitem__": lambda d: (operator.delitem(d, "a"), dict(d)),
    "__eq__": lambda d: d == {"a": 1, "b": 2},
    "__ge__": lambda d: d.__ge__({}),
    "__getitem__": lambda d: d["a"],
    "__gt__": lambda d: d.__gt__({}),
    "__ior__": lambda d: dict(operator.ior(d, {"c": 3})),
    "__iter__": lambda d: [key for key in d],  # noqa: C416
    "__le__": lambda d: d.__le__({}),
    "__len__": lambda d: (len(d), bool(d)),
    "__lt__": lambda d: d.__lt__({}),
    "__ne__": lambda d: d != {"a": 1, "b": 2},
    "__or__": lambda d: d | {"c": 3},
    "__repr__": repr,
    "__reversed__": lambda d: list(reversed(d)),
    "__ror__": lambda d: {"c": 3} | d,
    "__setitem__": lambda d: (operator.setitem(d, "a", 5), dict(d)),
    "clear": lambda d: (d.clear(), dict(d)),
    "get": lambda d: (d.get("a"), d.get("z"), d.get("z", 3)),
    "items": lambda d: list(d.items()),
    "keys": lambda d: list(d.keys()),
    "pop": lambda d: (d.pop("a"), dict(d)),
    "popitem": lambda d: (d.popitem(), dict(d)),
    "setdefault": lambda d: (d.setdefault("a", 7), d.setdefault("c", 8), dict(d)),
    "update": lambda d: (d.update(b=5), dict(d)),
    "values": lambda d: list(d.values()),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "stars": lambda d: {**d},
    "keywords": lambda d: dict(**d),
    "merged": lambda d: ({}.update(d), (m := {"z": 0}).update(d), m)[2],  # type: ignore[func-returns-value]
    "copy": lambda d: dict(copy.copy(d)),
    "its copy": lambda d: dict(d.copy()),
    "deep copy": copy.deepcopy,
    "pickle": lambda d: pickle.loads(pickle.dumps(d)),
    "sorted": sorted,
    "unequal": lambda d: {"a": 1} == d,
}


def _late_dict() -> tuple[_late.LateDict, list[int]]:
    made: list[int] = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"a": 1, "b": 2}

    return _late.LateDict(_late.Said(make)), made


@pytest.mark.parametrize("name", [*LOOKS, *OTHERS])
def test_every_look_fills_the_dict_once(name: str) -> None:
    late, made = _late_dict()
    look = {**LOOKS, **OTHERS}[name]
    expected = look({"a": 1, "b": 2})
    found = look(late)
    assert (found, type(found)) == (expected, type(expected))
    assert made == [1]
    assert sorted(late) == sorted(dict(late)) and made == [1]


def test_no_method_of_dict_is_forgotten() -> None:
    looks_at_nothing = {
        "__class_getitem__", "__doc__", "__getattribute__", "__hash__", "__init__", "__new__",
        "__sizeof__", "copy", "fromkeys",
    }  # fmt: skip
    assert set(_late.LOOKS) == set(LOOKS)
    assert set(vars(dict)) - looks_at_nothing == set(LOOKS)


def test_a_copy_waits_and_shares_what_is_made() -> None:
    late, made = _late_dict()
    _late.put_before(late, "c", 3)
    _late.put_before(late, "a", "own")
    other = copy.copy(late)
    assert type(other) is _late.LateDict and made == []
    assert other == {"c": 3, "a": "own", "b": 2} == late
    assert made == [1]
    other["a"] = 9
    assert late["a"] == "own"


# -- the nodes --


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.act = nn.ReLU(inplace=True)
        self.rest = nn.Sequential(nn.Conv1d(1, 2, 3, padding=1), nn.BatchNorm1d(2), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> Any:
        y = self.act(self.first(x))
        y += 1
        low, high = self.rest(y.unsqueeze(1)).chunk(2, dim=1)
        return low.transpose(1, 2) @ (high + 1).sigmoid_(), high.max(dim=0)


def _reshaped(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    z = y * 2
    y.t_()
    return y @ z


def _made(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        y = torch.arange(3.0).expand(2, 3) + x.detach()
    return torch.cat([x, y]).half().view(4, 3)[1:, None]


PROGRAMS: dict[str, Callable[[], Any]] = {
    "net": lambda: Net().eval(),
    "reshaped": lambda: _reshaped,
    "made": lambda: _made,
}


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As users have it: no trace runs its operations on fakes to check rules."""
    _engine.torch_check_rules(False)
    yield
    _engine.torch_check_rules(True)


def _value(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_value(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    return (
        type(value).__name__, tuple(value.shape), value.stride(), value.dtype, value.device,
        value.requires_grad, value.is_leaf or None, value.is_inference(),
    )  # fmt: skip


def _words(meta: dict[str, Any]) -> dict[str, Any]:
    found = {key: value for key, value in meta.items() if key != "example_value"}
    return {**found, "example": _value(meta.get("example_value"))}


def _said(module: torch.fx.GraphModule) -> dict[str, Any]:
    return {node.name: _words(node.meta) for node in module.graph.nodes}


def _graph_of(program: Any, asked: bool) -> tuple[torch.fx.GraphModule, dict[str, Any]]:
    kept: list[Any] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        kept.append(module)
        kept.append(_said(module) if asked else {})
        return module.forward

    torch.manual_seed(0)
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    compiled(torch.randn(2, 3, requires_grad=True))
    return kept[0], kept[1]


def _examples(said: dict[str, Any]) -> dict[str, Any]:
    """Without that of which only torch's own fakes have a history."""
    return {name: words["example"] for name, words in said.items()}


def _without_history(example: Any) -> Any:
    if isinstance(example, list):
        return [_without_history(item) for item in example]
    return example[:6] if isinstance(example, tuple) else example


@pytest.mark.parametrize("name", PROGRAMS)
def test_examples_are_as_torch_s_fakes_have_them(name: str, unchecked: None) -> None:
    late = _examples(_graph_of(PROGRAMS[name](), True)[1])
    _engine.torch_check_rules(True)
    settled = _examples(_graph_of(PROGRAMS[name](), True)[1])
    assert late.keys() == settled.keys()
    assert sum(example is not None for example in late.values()) > 3
    for key, example in late.items():
        assert _without_history(example) == _without_history(settled[key]), key


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_say_the_same_later_whatever_the_program_has_changed(
    name: str, unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAMS[name]()
    at_once = _graph_of(program, True)[1]
    stator.reset()
    module, _ = _graph_of(program, False)
    copied = copy.deepcopy(module.graph) if name == "made" else None
    monkeypatch.setattr(linecache, "cache", {})
    monkeypatch.setattr(linecache, "updatecache", lambda *args: ["changed\n"] * 10000)
    if isinstance(program, nn.Module):
        for parameter in program.parameters():
            parameter.data = torch.zeros(7, dtype=torch.float64)
            parameter.requires_grad_(False)
        program._modules.clear()
    with (
        torch.inference_mode(),
        torch.device("meta"),
        torch.autocast("cpu", dtype=torch.bfloat16),
        torch._subclasses.FakeTensorMode(),
    ):
        later = _said(module)
    for words in (*at_once.values(), *later.values()):  # without addresses of objects
        words["nn_module_stack"] = [*words.get("nn_module_stack", {}).values()]
        words["stator_calls"] = len(words.get("stator_calls", ()))
    assert later == at_once
    if copied is not None:
        assert [node.name for node in copied.nodes] == [node.name for node in module.graph.nodes]


def test_a_backend_that_asks_nothing_makes_no_examples(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    layout = _engine.torch_layout
    monkeypatch.setattr(_engine, "torch_layout", lambda node: asked.append(node) or layout(node))
    before: list[int] = []

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        before.append(sum(len(node.args) for node in module.graph.nodes) and len(asked))
        assert "example_value" in next(reversed(module.graph.nodes)).prev.meta
        return module.forward

    stator.compile(Net().eval(), backend=backend)(torch.randn(2, 3))
    assert before == [0] and asked != []
