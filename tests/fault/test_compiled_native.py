"""Each native operation of a trace, and each step of a plan, fails once: the eager result comes out, or
what failed; nothing is half written, and the next call works."""

import sys
from pathlib import Path

import pytest

from stator import _engine

sys.path.insert(0, str(Path(__file__).parent))
from compiled_checks import (  # noqa: E402
    PHASES,
    PIECES,
    call,
    check_dropped,
    check_engine,
    check_later,
    check_rows,
    plain_rows,
    prepared,
)
from compiled_programs import PROGRAMS  # noqa: E402

pytestmark = pytest.mark.skipif(
    not hasattr(_engine, "fault_arm"), reason="a build without fault injection"
)


def operations(name, phase):
    """How many there are in the call that counts."""
    _, f, args, _ = prepared(name, phase)
    _engine.fault_arm(-1)
    call(f, args)
    return _engine.fault_count()


def call_failing(f, args, at):
    _engine.fault_arm(at)
    try:
        return True, call(f, args)
    except _engine.InjectedFault:
        return False, None
    finally:
        _engine.fault_arm(-1)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_failed_operation_of_a_compiled_call(program, phase):
    expected, count = plain_rows(program, phase), operations(program, phase)
    assert count or phase == "warm"
    for at in range(count):
        names, f, args, state = prepared(program, phase)
        done, value = call_failing(f, args, at)
        check_engine()
        if done or program not in PIECES:
            check_rows(state, value, done, expected)
        check_later(names, f)
        token = state.token
        del value, f, names, args, state
        check_dropped(token)


def test_failed_operation_in_a_trace_is_a_break_or_a_dropped_trace():
    """The exception is the trace's alone: the function runs plainly, and no handler of it saw one."""
    for at in range(operations("calls", "first")):
        _, f, args, _ = prepared("calls", "first")
        done, _ = call_failing(f, args, at)
        assert done is bool(f.metrics["drops"] or f.metrics["breaks"])
