"""Symbolic numbers without memory: computed, decided, read and evaluated with each allocation
failing once. What comes out is MemoryError or the right answer."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("_testcapi")

sys.path.insert(0, str(Path(__file__).parent))
from without_memory import failed_allocations  # noqa: E402

PROGRAM = """
    from stator import _engine

    def program():
        s = _engine.Sizes()
        n, m, f = s.symbol("n", 24, 2), s.symbol("m", 12, 2), s.symbol("f", 0.5)
        products = [s.apply("mul", n, s.plain(k)) for k in range(40)]
        sums = [s.apply("add", p, m) for p in products]
        rest = s.apply("mod", n, s.plain(8))
        before = s.now()
        decided = [s.decide(s.apply("eq", rest, s.plain(0))),
                   s.decide(s.apply("eq", n, s.apply("mul", m, s.plain(2)))),
                   s.decide(s.apply("lt", s.apply("mul", f, n), s.plain(20.0))),
                   s.decide(s.apply("ge", s.apply("mul", n, m), s.plain(100)))]
        known = [s.known(s.apply("eq", s.apply("mod", m, s.plain(4)), s.plain(0))),
                 s.known(s.apply("gt", s.apply("mul", n, m), s.plain(99)))]
        texts = [s.object(c) for c in s.conditions()]
        again = [s.object(s.read(text)) for text in texts]
        values = {"n": 32, "m": 16, "f": 0.25}
        held = [s.evaluate(c, values) for c in s.conditions()]
        x = ("tensor", 6, (n, m), (m, s.plain(1)), False)
        asked = s.ask("view", 1, (x, -1, 8), {})
        sizes = [s.object(i) for i in asked[1][0][1]]
        settled = s.settle(sums[3])
        s.rollback(*before)
        return decided, known, texts, again, held, sizes, settled, s.known(
            s.apply("eq", n, m)), len(s.conditions())
"""


def test_each_allocation_fails_once():
    assert failed_allocations(PROGRAM) > 30
