"""Graphs without memory: built, printed and replayed with each allocation failing once."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("_testcapi")

CHILD = """
    import _testcapi
    import operator
    import sys
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

    expected = program()
    failed, quiet, at = 0, 0, 0
    while quiet < 30:
        _testcapi.set_nomemory(at, at + 1)
        try:
            value = program()
        except MemoryError:
            value = None
        finally:
            _testcapi.remove_mem_hooks()
        if value is None:
            failed, quiet = failed + 1, 0
        else:
            assert value == expected, (at, value)
            quiet += 1
        at += 1
    print(failed)
"""


def test_each_allocation_fails_once():
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(CHILD)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 50
