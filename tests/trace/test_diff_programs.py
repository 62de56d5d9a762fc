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
# When an argument dies during a call that C code makes, as a compiled function's caller is, is not what
# it is between Python functions: CPython's own caller gives its references up.
LIFETIMES = {
    "lifetimes.arguments_at_return",
    "lifetimes.argument_rebound_in_callee",
    "lifetimes.failed_call_drops_arguments",
    "lifetimes.failed_keyword_call_drops_arguments",
    # addresses that are used again; a reference that an iterator of C code keeps for itself
    "lifetimes.id_reuse",
    "lifetimes.refcounts_of_iterated",
    # it waits for a signal in a loop, which a compiled call has behind it at once
    "frames.signal_handler_raises",
}
PROGRAMS = {n: p for n, p in harness.load_programs().items() if n not in LIFETIMES}
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
