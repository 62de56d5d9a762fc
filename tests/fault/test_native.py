"""Each operation of the interpreter fails once: the program goes on as it would in CPython if the
instruction had raised, and nothing is left behind."""

import contextlib
import functools
import gc
import sys
from pathlib import Path

import pytest

from stator import _engine, evaluate

sys.path.insert(0, str(Path(__file__).parent))
from fault_programs import PROGRAMS, fresh

pytestmark = pytest.mark.skipif(
    not hasattr(_engine, "fault_arm"), reason="a build without fault injection"
)


class Token:
    pass


def hopping(main, log, token):
    return _engine.evaluate_hopping(main, (log, token), {}, 5, 6)


def seen(engine, main, fault):
    """Log, value and exception with its lines, of a run in which `fault` may be raised."""
    log, value, error = [], None, None
    try:
        value = engine(main, log, Token())
    except Exception as exc:
        error = (type(exc).__name__ if type(exc) is not fault else "fault", lines(exc))
    return repr((log, repr(value).split(" at 0x")[0], error))


def lines(exc):
    """Where it passed through, as the program's functions and lines, with what it happened in."""
    rows, tb = [], exc.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith("<program"):
            rows.append((code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    return rows, exc.__context__ and lines(exc.__context__)


class Raised(Exception):
    pass


class Countdown:
    """Raises at the n-th instruction that a program starts."""

    def __init__(self, left):
        self.left = left

    def step(self):
        self.left -= 1
        if self.left == 0:
            raise Raised("injected")

    def trace(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith("<program"):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            self.step()
        return self.trace

    def monitor(self, code, offset):
        if not code.co_filename.startswith("<program"):
            return sys.monitoring.DISABLE
        self.step()


@contextlib.contextmanager
def counted(countdown):
    """Before 3.12 instructions are counted by tracing; from then on by monitoring."""
    if sys.version_info < (3, 12):
        sys.settrace(countdown.trace)
        yield
        sys.settrace(None)
        return
    tools, tool = sys.monitoring, 4
    tools.use_tool_id(tool, "faults")
    tools.register_callback(tool, tools.events.INSTRUCTION, countdown.monitor)
    tools.set_events(tool, tools.events.INSTRUCTION)
    yield
    tools.set_events(tool, 0)
    tools.register_callback(tool, tools.events.INSTRUCTION, None)
    tools.free_tool_id(tool)


def raising_at(at):
    """An engine: CPython's own, with an exception raised before the at-th instruction."""

    def engine(main, log, token):
        countdown, error, value = Countdown(at), None, None
        with counted(countdown):
            try:
                value = next(alone(main, log, token))
            except Exception as exc:
                error = exc
        if error is not None:
            try:
                raise error
            finally:
                error = None  # no cycle: the frames must go when the exception does
        return value if countdown.left <= 0 else ran_through

    return engine


def alone(main, log, token):
    """A generator handles exceptions of its own: raising where CPython never does leaves some."""
    yield main(log, token)


def ran_through(*_):
    raise AssertionError("a marker, never called")


@functools.cache
def possible(program):
    """Every outcome that one raising instruction can have."""
    found, at = set(), 0
    while True:
        at += 1
        outcome = seen(raising_at(at), fresh(program), Raised)
        if "ran_through" in outcome:
            break
        found.add(outcome)
    found.add(seen(lambda main, log, token: main(log, token), fresh(program), Raised))
    return found


def operations(engine, program):
    main = fresh(program)
    engine(main, [], Token())
    _engine.fault_arm(-1)
    engine(main, [], Token())
    return _engine.fault_count()


def with_fault(engine, main, at):
    _engine.fault_arm(at)
    try:
        return seen(engine, main, _engine.InjectedFault)
    finally:
        _engine.fault_arm(-1)


@pytest.mark.parametrize("engine", [evaluate, hopping], ids=["evaluate", "hopping"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_failed_operation_is_an_exception_at_its_instruction(program, engine):
    main = fresh(program)
    count = operations(engine, program)
    assert count > 20 or engine is hopping
    for at in range(count):
        outcome = with_fault(engine, main, at)
        assert outcome in possible(program), f"operation {at} of {count}: {outcome}"
        assert not _engine.hook_installed()
        assert sys.exc_info() == (None, None, None), f"operation {at} of {count}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_failed_operations_leave_nothing_behind(program):
    main, count = fresh(program), operations(evaluate, program)

    def all_of_them():
        for at in range(count):
            with_fault(evaluate, main, at)
        gc.collect()
        return len(gc.get_objects())

    all_of_them()
    before = all_of_them()
    after = all_of_them()
    assert after - before < 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_failed_operations_drop_what_they_held(program):
    main, count, token = fresh(program), operations(evaluate, program), Token()
    before = sys.getrefcount(token)
    for at in range(count):
        _engine.fault_arm(at)
        try:
            evaluate(main, [], token)
        except Exception:
            pass
        _engine.fault_arm(-1)
        gc.collect()
        assert sys.getrefcount(token) == before, f"operation {at}"
