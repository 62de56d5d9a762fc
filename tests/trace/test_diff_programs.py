"""Every program of tests/diff, compiled and called twice: each call can be seen to do what a plain
one does. Dropped traces are allowed; the reasons are counted."""

import importlib
import sys
from pathlib import Path

import pytest
from worlds import keep_empty, note_drops

DIFF = Path(__file__).resolve().parents[1] / "diff"
if "harness" not in sys.modules:
    sys.path.insert(0, str(DIFF))

harness = importlib.import_module("harness")
PROGRAMS = harness.load_programs()
TWICE = 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_as_plain(name):
    program = PROGRAMS[name]
    compiled = keep_empty(program)
    plain = [harness.capture(program) for _ in range(TWICE)]
    ours = [harness.capture(compiled) for _ in range(TWICE)]
    note_drops(name, compiled.metrics["drops"])
    for number, (expected, actual) in enumerate(zip(plain, ours)):
        found = harness.difference(expected, actual)
        assert not found, f"{name}, call {number + 1}\n{found}"
