# ruff: noqa: E402
"""What torch.fx.traceback.annotate says of operations is in the graph that a backend gets."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo.testing import EagerAndRecordGraphs
from torch.fx.traceback import annotate
from torch.utils.checkpoint import checkpoint

import stator


def nested(x):
    with annotate({"stage": 0}):
        with annotate({"bucket": 1}):
            x = x.sin()
        x = x - 2
        with annotate({"stage": 1, "configs": {"a": [1, (2,)]}}):
            x = x * 2
    return x / 3


@annotate({"whole": True})
def decorated(x):
    return x.sin() / 3


def in_a_body(x):
    with annotate({"outer": 1}):
        return checkpoint(lambda y: y.sin(), x, use_reentrant=False) / 3


def broken(x):
    with annotate({"before": 1}):
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
    return x / 3


def said(f, x):
    graphs = EagerAndRecordGraphs()
    stator.compile(f, backend=graphs)(x)
    modules = [m for graph in graphs.graphs for m in graph.modules()]
    nodes = [node for m in modules if hasattr(m, "graph") for node in m.graph.nodes]
    return {
        node.target if isinstance(node.target, str) else node.target.__name__: node.meta["custom"]
        for node in nodes
        if "custom" in node.meta
    }


def test_nested_regions():
    found = said(nested, torch.ones(3))
    assert found["sin"] == {"stage": 0, "bucket": 1}
    assert found["sub"] == {"stage": 0}
    assert found["mul"] == {"stage": 1, "configs": {"a": [1, (2,)]}}
    assert "truediv" not in found


def test_decorators_and_bodies():
    assert said(decorated, torch.ones(3))["sin"] == {"whole": True}
    found = said(in_a_body, torch.ones(3, requires_grad=True))
    assert found["sin"] == {"outer": 1} and found["wrap_body_0"] == {"outer": 1}


def test_behind_a_break():
    found = said(broken, torch.ones(3))
    assert found["cos"] == {"before": 1} and "custom" not in torch.fx.traceback.current_meta


def test_around_the_call():
    with annotate({"around": 1}):
        assert said(torch.sin, torch.ones(3))["sin"] == {"around": 1}
