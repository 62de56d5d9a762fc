"""_engine.pyi names what the engine has, no more and no less."""

import ast
from pathlib import Path

import pytest

from stator import _engine

STUB = Path(__file__).parents[2] / "python" / "stator" / "_engine.pyi"
FAULTS = {"InjectedFault", "fault_arm", "fault_count"}
FAULTS |= {"mutate", "used_rows", "rule_change", "rule_lines"}


def stubbed(body):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_the_stub_is_complete():
    names = public(stubbed(ast.parse(STUB.read_text()).body))
    if not hasattr(_engine, "fault_arm"):
        names -= FAULTS
    assert names == public(dir(_engine))


def test_the_stub_of_images_is_complete():
    classes = {n.name: n for n in ast.parse(STUB.read_text()).body if isinstance(n, ast.ClassDef)}
    assert public(stubbed(classes["Image"].body)) == public(dir(_engine.Image))


@pytest.mark.parametrize("name", sorted(public(dir(_engine)) - FAULTS - {"NULL"}))
def test_everything_has_a_docstring(name):
    assert getattr(_engine, name).__doc__
