"""Graphs without memory: built, printed and replayed with each allocation failing once."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("_testcapi")

sys.path.insert(0, str(Path(__file__).parent))
from without_memory import failed_allocations  # noqa: E402

PROGRAM = """
    import operator
    from stator import _engine

    def show(*args, **kwargs):
        return repr((args, kwargs))

    def call(body, *args):
        return len(body(*args[-body.inputs:])) + len(body(*args[-body.inputs:]))

    def program():
        g = _engine.Graph()
        x, y, z = [g.add_input(place) for place in ("L['x']", "L['x']", "L['z']")]
        a = g.add_call(operator.add, (x, y))
        g.rename(a, "total")
        b = g.add_call(show, ([a, (x, 1)], {"k": a}), {"s": slice(a, None)})
        c = g.add_call("upper", (b,))
        g.add_call(operator.getitem, (b, 0))
        body = g.open_body()
        inner = body.open_body()
        inner.close((inner.add_call(show, (inner.lift(a),)),))
        read = body.add_attribute("wrap_body", inner)
        body.add_call(operator.getitem, (body.lift(y), 0))
        body.close((body.add_call(show, (read,)), body.lift(c)))
        d = g.add_call(call, (g.add_attribute("wrap_body", body), *body.lifted))
        g.close((c, a, d))
        return str(g), g.replay(3, 4), g.operations
"""


def test_each_allocation_fails_once():
    assert failed_allocations(PROGRAM) > 50
