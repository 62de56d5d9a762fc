"""Threads, signals, tools, forks and collection while code is evaluated: all as in plain code."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import stator
from stator import _engine, evaluate
from tests.interrupts import alarm  # noqa: F401

SECONDS = 180 if os.environ.get("STATOR_FULL") == "1" else 2
PATIENCE = 300  # after which something hangs, on however busy a machine


@pytest.fixture(autouse=True)
def no_hook():
    yield
    assert not _engine.hook_installed()


# --- many threads ---


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def count_up(limit):
    def numbers():
        for i in range(limit):
            yield i

    return sum(i for i in numbers() if i % 2)


def catch(limit):
    caught = []
    for i in range(limit):
        try:
            try:
                10 // (i % 3)
            finally:
                caught.append(i)
        except ZeroDivisionError as error:
            caught.append(str(error))
    return len(caught)


def classy(limit):
    class Local:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Local(self.value + other)

    total = Local(0)
    for i in range(limit):
        total = total + i
    return total.value


WORK = [(fib, 10), (count_up, 200), (catch, 60), (classy, 100)]


class Crew:
    """Threads that do their work until told to stop, at least once, and say how often they did it."""

    def __init__(self, count, work, engine=evaluate):
        self.stopping = False
        self.done = [0] * count
        self.errors = []
        self.engine = engine
        self.threads = [
            threading.Thread(target=self.run, args=(i, *work[i % len(work)])) for i in range(count)
        ]

    def run(self, index, fn, argument):
        try:
            expected = fn(argument)
            while not self.stopping or not self.done[index]:
                if self.engine(fn, argument) != expected:
                    raise AssertionError(f"{fn.__name__} went wrong in thread {index}")
                self.done[index] += 1
        except BaseException as error:
            self.errors.append(error)

    def work_for(self, seconds):
        for thread in self.threads:
            thread.start()
        time.sleep(seconds)
        self.stopping = True
        for thread in self.threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in self.threads)
        assert self.errors == []


def hopping(fn, argument):
    return _engine.evaluate_hopping(fn, (argument,), {}, argument, 9)


@pytest.mark.parametrize("engine", [evaluate, hopping], ids=["evaluate", "hopping"])
@pytest.mark.parametrize("work", [WORK, WORK[:1]], ids=["different", "same"])
def test_eight_threads_evaluate(work, engine):
    crew = Crew(8, work, engine)
    crew.work_for(SECONDS / 4)


def test_one_long_loop_does_not_keep_the_others_out():
    """The loop makes no call and gives the GIL up by itself; the others move on meanwhile."""
    stop, turns = [], [0]

    def long_loop():
        while not stop:
            turns[0] += 1

    looping = threading.Thread(target=evaluate, args=(long_loop,))
    looping.start()
    crew = Crew(3, WORK)
    try:
        while not turns[0]:
            time.sleep(0.001)
        crew.work_for(SECONDS / 4)
    finally:
        stop.append(True)
        looping.join(PATIENCE)
    assert all(crew.done)


def test_plain_threads_run_plainly_beside_an_evaluating_one():
    crew = Crew(4, WORK)
    plain = Crew(4, WORK, lambda fn, argument: fn(argument))
    helper = threading.Thread(target=plain.work_for, args=(SECONDS / 4,))
    helper.start()
    crew.work_for(SECONDS / 4)
    helper.join(PATIENCE)
    assert all(crew.done) and all(plain.done) and plain.errors == []


def test_threads_started_by_evaluated_code_run():
    def start():
        results = []
        threads = [threading.Thread(target=lambda i=i: results.append(fib(i))) for i in range(4, 8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(results)

    assert evaluate(start) == start()


def test_thread_local_values_stay_apart():
    local = threading.local()

    def use(value):
        local.value = value
        for _ in range(2000):
            if local.value != value:
                return False
        return True

    results = []
    threads = [
        threading.Thread(target=lambda i=i: results.append(evaluate(use, i))) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


# --- signals and asynchronous exceptions ---


def test_signal_handler_runs_in_a_long_loop(alarm):
    seen = []

    def loop():
        while not seen:
            pass
        return len(seen)

    alarm(lambda number, frame: seen.append(frame.f_code.co_name), 0.05)
    assert evaluate(loop) == 1
    assert seen == ["loop"]


def test_exception_of_a_signal_handler_is_caught_where_it_arrives(alarm):
    class Alarm(Exception):
        pass

    def ring(number, frame):
        raise Alarm

    def loop():
        left = []
        try:
            while True:
                pass
        except Alarm:
            left.append("caught")
        finally:
            left.append("finally")
        return left

    alarm(ring, 0.05)
    assert evaluate(loop) == ["caught", "finally"]


LOOPS = {
    "while": "while True: pass",
    "for": "for _ in iter(int, 1): pass",
    "calls": "while True: f()",
    "generator": "sum(1 for _ in iter(int, 1))",
    "natively": "list(map(lambda x: x, iter(int, 1)))[:0] if 0 else all(map(f, iter(int, 1)))",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_keyboard_interrupt_ends_an_evaluated_program_as_a_plain_one(loop):
    """Where the interrupt falls is known for the empty loop alone; there CPython 3.11 and 3.12 have
    no handler, and skip the finally block."""
    program = f"""
    import _thread, sys, threading, time, stator

    begun = []

    def interrupt():
        # Once main has begun and this process has computed on: it is in the loop then.
        while not begun or time.process_time() < begun[0] + 0.1:
            time.sleep(0.001)
        _thread.interrupt_main()

    def plain(fn):
        return fn()

    def f(x=1):
        return x + 1

    def main():
        try:
            begun.append(time.process_time())
            {LOOPS[loop]}
        finally:
            print("finally", flush=True)

    threading.Thread(target=interrupt).start()
    try:
        ENGINE(main)
    except KeyboardInterrupt:
        print("interrupted", stator._engine.hook_installed())
    """
    plain = run_python(program.replace("ENGINE", "plain"))
    assert plain[-1] == "interrupted False"
    evaluated = run_python(program.replace("ENGINE", "stator.evaluate"))
    assert evaluated[-1] == plain[-1]
    assert evaluated == plain or loop != "while"


def run_python(program, limit=PATIENCE):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=limit,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout.splitlines()


def test_exception_set_from_another_thread_arrives():
    class Stop(Exception):
        pass

    started, result = threading.Event(), []

    def loop():
        started.set()
        try:
            while True:
                pass
        except Stop:
            return "stopped"

    thread = threading.Thread(target=lambda: result.append(evaluate(loop)))
    thread.start()
    assert started.wait(PATIENCE)
    ident = ctypes.c_ulong(thread.ident)
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Stop)) == 1
    thread.join(PATIENCE)
    assert result == ["stopped"]


# --- tools ---


def helper(x):
    y = x + 1
    return y


def traced_part(turn_on, turn_off):
    before = helper(1)
    turn_on()
    total = before
    for i in range(2):
        total += helper(i)
    gen = (helper(i) for i in range(2))
    total += sum(gen)
    try:
        raise ValueError(total)
    except ValueError as error:
        total += len(error.args)
    turn_off()
    return helper(total)


def events_of(engine, install, remove):
    """What a tool sees that is turned on in the middle of the run, in this file."""
    events = []

    def tool(frame, event, arg):
        if frame.f_code.co_filename == __file__ and "remove" not in frame.f_code.co_name:
            events.append((frame.f_code.co_name, event, frame.f_lineno))
        return tool

    def turn_on():
        install(tool)

    def turn_off():
        remove(None)

    try:
        value = engine(traced_part, turn_on, turn_off)
    finally:
        remove(None)
    return value, events


def plain(fn, *args):
    return fn(*args)


TOOLS = {"settrace": sys.settrace, "setprofile": sys.setprofile}


@pytest.mark.parametrize("name", TOOLS)
def test_tool_turned_on_and_off_inside_sees_what_it_sees_in_plain_code(name):
    setter = TOOLS[name]
    expected = events_of(plain, setter, setter)
    assert len(expected[1]) > 5
    assert events_of(evaluate, setter, setter) == expected


@pytest.mark.parametrize("name", TOOLS)
def test_tool_that_was_on_before_sees_what_it_sees_in_plain_code(name):
    def whole(engine):
        events = []

        def tool(frame, event, arg):
            if frame.f_code.co_filename == __file__:
                events.append((frame.f_code.co_name, event, frame.f_lineno))
            return tool

        def both():
            return engine(traced_part, int, int)

        before = TOOLS[name]
        before(tool)
        try:
            both()
        finally:
            before(None)
        ours = {"traced_part", "helper", "<genexpr>"}
        return [event for event in events if event[0] in ours]

    assert whole(evaluate) == whole(plain)


def test_trace_function_sees_the_exception_and_can_raise():
    class Deny(Exception):
        pass

    def deny(frame, event, arg):
        if frame.f_code is helper.__code__ and event == "line":
            raise Deny(frame.f_lineno)
        return deny

    def run():
        sys.settrace(deny)
        try:
            return helper(1)
        except Deny as error:
            return error.args
        finally:
            sys.settrace(None)

    assert evaluate(run) == run()


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="3.12 on")
@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
def test_monitoring_turned_on_and_off_inside_sees_what_it_sees_in_plain_code(local):
    tools, tool = sys.monitoring, 3
    wanted = [
        "PY_START",
        "PY_RETURN",
        "PY_YIELD",
        "PY_RESUME",
        "LINE",
        "RAISE",
        "EXCEPTION_HANDLED",
    ]
    masks = {name: getattr(tools.events, name) for name in wanted}
    on = sum(masks[name] for name in (wanted[:5] if local else wanted))

    def set_events(mask):
        if local:
            tools.set_local_events(tool, helper.__code__, mask)
        else:
            tools.set_events(tool, mask)

    def watched(engine):
        events = []
        tools.use_tool_id(tool, "test")
        for name, mask in masks.items():
            tools.register_callback(
                tool, mask, lambda code, *rest, name=name: note(events, name, code, rest)
            )
        try:
            value = engine(traced_part, lambda: set_events(on), lambda: set_events(0))
        finally:
            set_events(0)
            tools.free_tool_id(tool)
        return value, events

    def note(events, name, code, rest):
        if code.co_filename == __file__ and code.co_name in ("helper", "traced_part", "<genexpr>"):
            events.append((name, code.co_name, rest[0]))

    expected = watched(plain)
    assert len(expected[1]) > 5
    assert watched(evaluate) == expected


def test_threading_settrace_reaches_threads_started_by_evaluated_code():
    def start():
        seen = []

        def tool(frame, event, arg):
            if frame.f_code is helper.__code__:
                seen.append((event, frame.f_lineno))
            return tool

        def target():
            helper(1)
            sys.settrace(None)  # CPython goes on tracing for a thread that ended without

        threading.settrace(tool)
        try:
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        finally:
            threading.settrace(None)
        return seen

    expected = start()
    assert expected and evaluate(start) == expected


# --- forks, interpreters, collection ---


def test_fork_in_evaluated_code():
    program = """
    import os, stator

    def main():
        total = 0
        for i in range(3):
            child = os.fork()
            if child == 0:
                total = sum(x * i for x in range(10))
                os._exit(total % 256)
            total += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return total

    print(stator.evaluate(main), stator._engine.hook_installed())
    """
    assert run_python(program) == ["135 False"]


def test_fork_while_other_threads_evaluate():
    program = """
    import os, threading, stator

    stopping = False

    def loop():
        while not stopping:
            pass

    threads = [threading.Thread(target=stator.evaluate, args=(loop,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    child = os.fork()
    if child == 0:
        ok = not stator._engine.hook_installed() and stator.evaluate(lambda: 6 * 7) == 42
        os._exit(0 if ok and not stator._engine.hook_installed() else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stopping = True
    for thread in threads:
        thread.join()
    print(stator._engine.hook_installed())
    """
    assert run_python(program) == ["0", "False"]


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import stator

text = '''
try:
    import stator
    assert stator.evaluate(lambda: 6 * 7) == 42
    print("works", flush=True)
except ImportError as error:
    print("refused", flush=True)
'''
interpreter = interpreters.create()
interpreters.run_string(interpreter, text)
interpreters.destroy(interpreter)
print(stator.evaluate(lambda: 1 + 1), stator._engine.hook_installed())
"""


def test_subinterpreter_works_or_refuses_clearly():
    first, last = run_python(SUBINTERPRETER)
    assert first in ("works", "refused")
    assert last == "2 False"


def test_collection_at_every_chance_changes_nothing():
    class Node:
        died = 0

        def __init__(self):
            self.me = self

        def __del__(self):
            Node.died += 1

    def churn():
        total = 0
        for i in range(200):
            node = Node()
            node.gen = (x for x in range(i))
            total += next(node.gen, 0) + len([node, [node]])
            try:
                raise ValueError(node)
            except ValueError as error:
                node.error = error
        return total

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        evaluated = evaluate(churn)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert evaluated == churn() and Node.died >= 200


def test_finalizers_and_weakref_callbacks_run_in_evaluated_code():
    import weakref

    def main():
        seen = []

        class Dying:
            def __del__(self):
                seen.append("del")

        dying = Dying()
        ref = weakref.ref(dying, lambda _: seen.append("callback"))
        del dying
        seen.append(ref() is None)
        return seen

    assert evaluate(main) == main() == ["del", "callback", True]


def test_module_is_whole():
    assert stator.evaluate is evaluate
