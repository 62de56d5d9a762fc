"""Threads, forks and signals around frames that break and go on: results as in plain code, every write
done once and in order, handlers and finally blocks run, nothing left behind."""

import contextlib
import gc
import os
import random
import signal
import sys
import threading
import time
import types

import pytest
from test_compiled import PATIENCE, busy, in_threads, run_python  # noqa: F401

from stator import _engine
from tests.interrupts import Interrupted, alarm, ring  # noqa: F401

FULL = os.environ.get("STATOR_FULL") == "1"
ROUNDS = 400 if FULL else 60


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert not _engine.hook_installed()
    assert gc.isenabled()
    assert sys.exc_info() == (None, None, None)


def breaking(function, every=0, seed=0):
    settings = _engine.compiler(
        None, RuntimeError, False, True, 8, break_every=every, break_seed=seed
    )
    return _engine.compiled(function, settings)


# -- many threads -------------------------------------------------------------------------------------


def turn():
    """Another thread runs here."""
    time.sleep(0)


class Account:
    def __init__(self):
        self.total, self.log, self.open = 0, [], 0

    def __enter__(self):
        self.open += 1
        turn()
        return self

    def __exit__(self, *raised):
        turn()
        self.open -= 1
        self.log.append(("exit", raised[0] and raised[0].__name__))
        return raised[0] is KeyError


def parts(amounts):
    for amount in amounts:
        turn()
        yield amount
        if amount == 3:
            raise KeyError(amount)


def inner(account, amount):
    try:
        turn()
        account.total += amount
        return account.total
    finally:
        turn()
        account.log.append(amount)


def spend(account, amounts):
    last = None
    with account:
        for amount in parts(amounts):
            last = inner(account, amount)
            turn()
    return last, account.total, [x for x in account.log if x], account.open


def spend_and_check(compiled, number, step):
    amounts = [1 + (number + i) % 3 for i in range(1 + step % 4)]
    account, plain = Account(), Account()
    assert compiled(account, amounts) == spend(plain, amounts)
    assert vars(account) == vars(plain)


@pytest.mark.parametrize("every", [0, 1, 7])
def test_eight_threads_call_one_function_in_pieces(busy, every):  # noqa: F811
    compiled = breaking(spend, every)
    in_threads(
        8,
        lambda number, step: spend_and_check(compiled, number, step),
        enough=lambda: compiled.metrics["hits"],
    )
    assert compiled.metrics["hits"]


@pytest.mark.parametrize("every", [0, 5])
def test_eight_threads_compile_pieces_of_their_own(busy, every):  # noqa: F811
    in_threads(8, lambda number, step: spend_and_check(breaking(spend, every, step), number, step))


def test_pieces_are_forgotten_while_others_are_in_them(busy):  # noqa: F811
    compiled = breaking(spend)

    def work(number, step):
        if number == 0:
            compiled.compiler.reset()
            _engine.reset()
        spend_and_check(compiled, number, step)

    in_threads(8, work)


def test_a_generator_made_in_one_thread_goes_on_in_another(busy):  # noqa: F811
    def make(n):
        squares = (i * i for i in range(n))
        first = next(squares)
        turn()
        return first, squares

    def take(squares):
        turn()
        return [x + 1 for x in squares]

    made, taken = breaking(make), breaking(take)

    def work(number, step):
        first, squares = made(3 + number)
        got = []
        thread = threading.Thread(target=lambda: got.append(taken(squares)))
        thread.start()
        thread.join()
        assert (first, got) == (0, [[i * i + 1 for i in range(1, 3 + number)]])

    in_threads(4, work)


def test_threads_wait_for_one_another_in_a_broken_frame(busy):  # noqa: F811
    meet = threading.Barrier(2)

    def f(log, name):
        log.append(name)
        meet.wait(PATIENCE)
        seen = len(log)
        meet.wait(PATIENCE)
        log.append(seen)
        return seen

    compiled = breaking(f)
    for _ in range(10):
        log, got = [], []
        threads = [
            threading.Thread(target=lambda n=n: got.append(compiled(log, n))) for n in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [2, 2]
        assert sorted(map(str, log)) == ["2", "2", "a", "b"]


# -- forks ----------------------------------------------------------------------------------------------

FORK = """
    import contextlib, gc, os, sys, threading, time
    from stator import _engine

    def breaking(function, every=0, seed=0):
        settings = _engine.compiler(None, RuntimeError, False, True, 8, break_every=every,
                                    break_seed=seed)
        return _engine.compiled(function, settings)

    def fork(log):
        sys.stdout.flush()
        pid = os.fork()
        log.append("child" if pid == 0 else "parent")
        return pid

    @contextlib.contextmanager
    def noted(log, name):
        log.append(name)
        print(end="")
        try:
            yield name
        finally:
            log.append("left " + name)

    def numbers(log):
        yield 1
        log.append(2)
        yield 3

    def below(log, it):
        with noted(log, "below"):
            pid = fork(log)
            log.append(next(it))
        return pid

    def f(log):
        it = numbers(log)
        log.append(next(it))
        with noted(log, "above") as name:
            pid = below(log, it)
            log.append(name)
        print(end="")
        return pid, log

    def whole(pid, log):
        who = "child" if pid == 0 else "parent"
        return log == [1, "above", "below", who, 2, 3, "left below", "above", "left above"]

    def end(pid, good):
        if pid == 0:
            good = good and not _engine.hook_installed() and gc.isenabled()
            os._exit(0 if good else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(status, good, flush=True)
"""


@pytest.mark.parametrize("every", [0, 1, 4])
def test_both_processes_go_on_from_a_fork_in_a_broken_frame(every):
    program = f"""
    fast = breaking(f, {every})
    for _ in range(3):
        pid, log = fast([])
        end(pid, whole(pid, log))
    """
    assert run_python(FORK + program) == ["0 True"] * 3


def test_a_child_compiles_and_runs_pieces_of_its_own():
    program = """
    fast = breaking(f)
    pid, log = fast([])
    if pid == 0:
        pid, log = breaking(f)([])  # a grandchild
        end(pid, whole(pid, log))
        pid, log = fast([])
        end(pid, whole(pid, log))
        os._exit(0)
    end(pid, whole(pid, log))
    """
    assert run_python(FORK + program) == ["0 True", "0 True", "0 True"]


def test_fork_while_other_threads_are_in_broken_frames():
    program = """
    stopping = []

    def waits(log):
        while not stopping:
            log.append(1)
            time.sleep(0.0001)
            log.pop()
        return log

    fast, other = breaking(f), breaking(waits)
    fast_pid, log = fast([])
    end(fast_pid, whole(fast_pid, log))
    results = []
    threads = [threading.Thread(target=lambda: results.append(other([]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    for _ in range(3):
        pid, log = fast([])
        end(pid, whole(pid, log))
    stopping.append(1)
    for thread in threads:
        thread.join()
    print(results)
    """
    assert run_python(FORK + program) == [*["0 True"] * 4, "[[], [], [], []]"]


# -- signals --------------------------------------------------------------------------------------------


class Long:
    """Seconds to sleep; whoever asks for them is rung soon after."""

    def __init__(self, ring):
        self.ring = ring

    def __index__(self):
        self.ring(0.02)
        return 3600


def sleeps(log, ring):
    log.append("before")
    try:
        time.sleep(Long(ring))
    except Interrupted:
        log.append("caught")
        time.sleep(0)
        return "caught"
    finally:
        log.append("finally")
    return "slept"


def spins(log, ring):
    """Python code that a stepped instruction calls."""
    log.append("before")
    try:
        max([3, 1, 2], key=lambda x: _spin(ring))
    except Interrupted:
        log.append("caught")
        time.sleep(0)
        return "caught"
    finally:
        log.append("finally")


def _spin(ring):
    ring(0.02)
    while time.monotonic():
        pass


def sleeps_below(log, ring):
    log.append("before")
    try:
        _sleeper(log, ring)
    except Interrupted:
        log.append("caught")
        time.sleep(0)
        return "caught"
    finally:
        log.append("finally")


def _sleeper(log, ring):
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "left")
        time.sleep(Long(ring))


@pytest.mark.parametrize("function", [sleeps, spins, sleeps_below])
def test_interrupt_of_a_stepped_instruction_is_caught_where_it_would_be(function, ring):
    compiled = breaking(function)
    for _ in range(3):
        log = []
        assert compiled(log, ring) == "caught"
        assert [x for x in log if x != "left"] == ["before", "caught", "finally"]
        assert ("left" in log) == (function is sleeps_below)


def two_steps(log, box):
    try:
        for i in range(6):
            box[0] += 1
            log.append(i)
            turn()
            box[0] += 1
            turn()
    finally:
        box[1] += 1
        turn()
        box[1] += 1
    return box[0]


@pytest.mark.parametrize("every", [0, 1, 5])
def test_interrupts_anywhere_leave_what_plain_code_could_have_left(every, ring):
    """Writes are done in order, none twice; finally blocks run; and the next call is right."""
    chance = random.Random(every)
    interrupted = 0
    for number in range(ROUNDS):
        compiled = breaking(two_steps, every, number)
        for _ in range(2):
            log, box = [], [0, 0]
            try:
                try:
                    ring(chance.choice((2e-5, 1e-4, 5e-4, 2e-3)) * (1 + chance.random()))
                    compiled(log, box)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupted += 1
            assert log == list(range(len(log)))
            assert 2 * len(log) - 1 <= box[0] <= 2 * len(log) + 1
            # One interrupt in the body leaves the finally block whole.
            assert box[1] == 2 or not log or len(log) == 6
        assert not _engine.hook_installed()
        log, box = [], [0, 0]
        assert compiled(log, box) == 12
        assert (log, box) == ([0, 1, 2, 3, 4, 5], [12, 2])
    assert interrupted


PROGRAM = """
    import os, signal, sys, threading, time
    from stator import _engine

    ready, tell = os.pipe()

    def interrupt():
        os.read(ready, 1)
        time.sleep(0.2)  # most likely it waits by then; earlier is no less right
        os.kill(os.getpid(), signal.SIGINT)

    def f(log):
        try:
            log.append("try")
            print("ready", flush=True)
            os.write(tell, b"1")
            {wait}
        finally:
            log.append("finally")
            print(*log, flush=True)

    settings = _engine.compiler(None, RuntimeError, False, True, 8)
    threading.Thread(target=interrupt).start()
    try:
        _engine.compiled(f, settings)([])
    except KeyboardInterrupt:
        print("interrupted", _engine.hook_installed())
"""


WAITS = [
    "time.sleep(3600)",
    "while True: pass",
    "os.read(os.pipe()[0], 1)",
    "sum(1 for _ in iter(int, 1))",
]


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_program_in_a_broken_frame(wait):
    lines = run_python(PROGRAM.replace("{wait}", wait))
    assert lines == ["ready", "try finally", "interrupted False"]


def test_a_loop_that_waits_for_another_thread_ends():
    box = types.SimpleNamespace(done=False)

    def wait():
        while not box.done:
            pass
        return "ended"

    compiled = breaking(wait)
    started = threading.Timer(0.5, lambda: setattr(box, "done", True))
    started.start()
    assert compiled() == "ended"
    started.join()
