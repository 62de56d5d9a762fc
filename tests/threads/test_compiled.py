"""Threads, forks, signals and recursion around compiled functions: results as in plain code, writes
whole or not at all, nothing lost and nothing left behind."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import pytest

import stator
from stator import _engine
from tests.interrupts import alarm  # noqa: F401

FULL = os.environ.get("STATOR_FULL") == "1"
SECONDS = 60 if FULL else 0.6
PATIENCE = 300  # after which something hangs, on however busy a machine


@pytest.fixture(autouse=True)
def nothing_left():
    assert gc.isenabled()
    yield
    assert not _engine.hook_installed()
    assert gc.isenabled()
    assert sys.exc_info() == (None, None, None)


@pytest.fixture
def busy():
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the recompile limit
        yield
    sys.setswitchinterval(interval)


def keep(f):
    return stator.compile(f, backend="eager", _keep_empty=True)


def in_threads(count, work, enough=lambda: True, seconds=SECONDS):
    """Each of them calls `work(number, turn)` until the time is over, each had a turn and it is
    `enough`, however long that takes; their errors are raised."""
    errors, turns = [], [0] * count
    end = time.monotonic() + seconds
    latest = end + PATIENCE / 2

    def run(number):
        try:
            while time.monotonic() < end or not turns[number] or not enough():
                if errors or time.monotonic() > latest:
                    return
                work(number, turns[number])
                turns[number] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def run_python(program, limit=PATIENCE):
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)],
        capture_output=True, text=True, timeout=limit,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-3000:]}"
    assert "stator._engine" not in done.stderr, done.stderr[-3000:]
    return done.stdout.splitlines()


# --- many threads -------------------------------------------------------------------------------


class Account:
    def __init__(self):
        self.total, self.log, self.by_kind = 0, [], {}


def spend(account, kind, amounts):
    for amount in amounts:
        account.total += amount
        account.log.append((kind, amount))
    account.by_kind[kind] = account.by_kind.get(kind, 0) + sum(amounts)
    return sorted(account.by_kind, key=lambda k: -account.by_kind[k])


def spend_and_check(compiled, number, turn):
    account, plain = Account(), Account()
    for kind in ("a", "b", "a"):
        amounts = [number % 3, turn % 2, 5]
        assert compiled(account, kind, amounts) == spend(plain, kind, amounts)
        assert vars(account) == vars(plain)


def test_eight_threads_compile_and_call_one_function(busy):
    compiled = keep(spend)
    in_threads(
        8,
        lambda number, turn: spend_and_check(compiled, number, turn),
        enough=lambda: compiled.metrics["hits"],
    )
    assert compiled.metrics["hits"] and not compiled.metrics["drops"]


def test_eight_threads_compile_functions_of_their_own_all_the_time(busy):
    in_threads(8, lambda number, turn: spend_and_check(keep(spend), number, turn))


def test_eight_threads_on_one_function_that_is_reset_all_the_time(busy):
    compiled = keep(spend)

    def work(number, turn):
        if number == 0:
            stator.reset()
            time.sleep(0)
        elif number == 1:
            compiled.compiler.entries()
            compiled.metrics
        else:
            spend_and_check(compiled, number, turn)

    in_threads(8, work)


def test_writes_of_an_entry_are_seen_together(busy):
    """No thread gets in between the writes of one call."""
    pair = [0, 0]

    def step(pair, to):
        pair[0] = to
        pair[1] = -to

    compiled = keep(step)
    compiled(pair, 1)

    def work(number, turn):
        if number == 0:
            compiled(pair, turn % 4)
        else:
            a, b = pair[:]
            assert a == -b

    in_threads(4, work, enough=lambda: compiled.metrics["hits"])
    assert compiled.metrics["hits"]


def test_state_that_another_thread_changes_is_never_mixed(busy):
    class Box:
        pair = (0, 0)

    box = Box()

    def read():
        a, b = box.pair
        return a - b

    compiled = keep(read)

    def work(number, turn):
        if number == 0:
            box.pair = (turn % 6, turn % 6)
        else:
            assert compiled() == 0

    in_threads(4, work)


def long_sum(n):
    total = 0
    for i in range(n):
        total += i & 3
    return total


def test_finalizers_run_while_several_threads_trace(busy):
    """One trace that ends must not turn collection on under another: a finalizer that comes up in the
    middle of a trace has nobody to run it."""
    made, died = [0], [0]

    class Garbage:
        def __init__(self):
            self.me = self
            made[0] += 1

        def __del__(self):
            died[0] += 1

    def work(number, turn):
        if number == 0:
            Garbage()
        elif number == 1:
            assert keep(lambda x: [x])(turn) == [turn]
        else:
            assert keep(growing)(200) == list(range(200))

    def growing(n):
        found = []
        for i in range(n):
            found.append([i])
        return [i for [i] in found]

    thresholds = gc.get_threshold()
    gc.set_threshold(20)
    try:
        in_threads(4, work)
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert died == made


def test_thread_that_ends_in_the_middle_of_a_generator(busy):
    def numbers(n):
        for i in range(n):
            yield i

    def pairs(n):
        gen = numbers(n)
        return [next(gen), next(gen)], sum(gen)

    compiled = keep(pairs)
    in_threads(4, lambda number, turn: compiled(4) == ([0, 1], 5) or 1 / 0)


def test_daemon_threads_may_be_busy_when_the_process_ends():
    program = """
    import threading, time, stator

    def work(xs):
        xs.append(len(xs))
        return [x for x in range(50)]

    def run():
        while True:
            compiled = stator.compile(work, backend="eager", _keep_empty=True)
            compiled([]); compiled([])

    for _ in range(4):
        threading.Thread(target=run, daemon=True).start()
    time.sleep(0.3)
    print("end")
    """
    assert run_python(program) == ["end"]


def test_compiled_functions_work_until_the_end_of_the_process():
    program = """
    import atexit, stator

    class Box:
        def __del__(self):
            print(compiled([1]), compiled([1, 2]))

    def total(xs):
        return sum(xs)

    compiled = stator.compile(total, backend="eager", _keep_empty=True)
    compiled([1])
    box = Box()
    atexit.register(lambda: print(compiled([3])))
    """
    assert run_python(program) == ["3", "1 3"]


# --- forks --------------------------------------------------------------------------------------

FORK = """
    import gc, os, sys, threading, stator

    def keep(f):
        return stator.compile(f, backend="eager", _keep_empty=True)

    def total(xs):
        xs.append(len(xs))
        return sum(xs)

    def long(n):
        found = 0
        while not stopping:
            found += 1
        return found

    stopping = []
    compiled = keep(total)

    def same(hooked=False):
        new = keep(lambda xs: [x + 1 for x in xs])
        return (compiled([1, 2]) == 5 == compiled([1, 2]) and compiled([7]) == 8 and new([1]) == [2] == new([1])
                and (hooked or compiled.metrics["hits"] >= 1) and gc.isenabled()
                and stator._engine.hook_installed() is hooked)

    def child(hooked=False):
        pid = os.fork()
        if pid == 0:
            os._exit(0 if same(hooked) else 1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_entries_serve_in_a_forked_child():
    program = """
    compiled([1, 2])
    print(child(), same())
    stator.reset()
    print(child(), same())
    """
    assert run_python(FORK + program) == ["0 True", "0 True"]


def test_fork_while_other_threads_trace():
    """The child has none of their traces, and collects."""
    program = """
    threads = [threading.Thread(target=keep(long), args=(1,)) for _ in range(3)]
    sys.setswitchinterval(1e-4)
    for thread in threads:
        thread.start()
    while stator._engine.hook_installed() is False:
        pass
    pid = os.fork()
    if pid == 0:
        ok = gc.isenabled() and not stator._engine.hook_installed() and same()
        os._exit(0 if ok else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    stopping.append(1)
    for thread in threads:
        thread.join()
    print(same())
    """
    assert run_python(FORK + program) == ["0", "True"]


def test_fork_in_a_compiled_function():
    program = """
    def parent(xs):
        xs.append(1)
        code = child(hooked=True)  # a frame that goes on after a break
        xs.append(code)
        return len(xs)

    f, xs = keep(parent), []
    print(f(xs), f(xs), xs)
    """
    assert run_python(FORK + program) == ["2 4 [1, 0, 1, 0]"]


# --- signals ------------------------------------------------------------------------------------


LOOPS = {
    "loop": "while True: pass",
    "calls": "while True: len(xs)",
    "generator": "sum(1 for _ in iter_for_ever())",
    "map": "all(map(lambda x: True, iter_for_ever()))",
    "power": "3 ** big",
    "regex": "slow.match('a' * 40)",
}
LOOP = """
import re
slow = re.compile('(a*)*b')

def iter_for_ever():
    while True:
        yield 1

def f(xs, d, big):
    xs.append(1)
    d["k"] = 2
    try:
        {loop}
    except BaseException:
        xs.append("caught")
        raise
    finally:
        xs.append("finally")
    return len(xs)
"""


def loop_function(loop):
    names = {}
    exec(compile(LOOP.format(loop=LOOPS[loop]), f"<{loop}>", "exec"), names)
    return names["f"]


@pytest.mark.parametrize("handler", ["C", "Python", "method"])
@pytest.mark.parametrize("loop", LOOPS)
def test_interrupt_in_a_trace_comes_out_and_nothing_was_written(loop, handler, alarm):
    """Wherever it falls: between instructions, in native code, in a frame that native code started."""

    class Handler:
        def ring(self, number, frame):
            raise KeyboardInterrupt

    def ring(number, frame):
        raise KeyboardInterrupt

    handlers = {"C": signal.default_int_handler, "Python": ring, "method": Handler().ring}
    compiled = keep(loop_function(loop))
    xs, d = [], {}
    alarm(handlers[handler], 0.1)
    with pytest.raises(KeyboardInterrupt):
        compiled(xs, d, 2 * 10**8)
    assert (xs, d) == ([], {})
    assert compiled.metrics["entries"] == 0 and compiled.metrics["drops"] == []


@pytest.mark.parametrize("loop", ["loop", "power"])
def test_handler_that_returns_is_run_once_and_the_trace_goes_on(loop, alarm):
    seen = []

    def loops(n, big):
        total = 0
        for _ in range(n):
            total += 1
        return total + (3**big).bit_length()

    compiled = keep(loops)
    other = keep(lambda x: x + 1)

    def ring(number, frame):
        seen.append(other(number))
        stator.reset()

    alarm(ring, 0.02)
    args = (3_000_000, 1) if loop == "loop" else (1, 4_000_000)
    assert compiled(*args) == args[0] + (3 ** args[1]).bit_length()
    assert seen == [signal.SIGVTALRM + 1]
    assert compiled.metrics["drops"] == [] and compiled.metrics["entries"] == 1


def test_interrupted_function_can_be_called_again(alarm):
    def count(n):
        total = 0
        for _ in range(n):
            total += 1
        return total

    compiled = keep(count)
    for _ in range(20):
        alarm(signal.default_int_handler, 0.01)
        with pytest.raises(KeyboardInterrupt):
            compiled(10**9)
    assert compiled(5) == 5 == compiled(5)
    assert compiled.metrics["hits"] == 1


def test_interrupts_between_warm_calls_never_split_their_writes(alarm):
    class Stop(Exception):
        pass

    def ring(number, frame):
        raise Stop

    a, b, d = [], [], {}

    def write(i):
        a.append(i)
        b.append(i)
        d["n"] = len(a)
        a.pop(0)
        b.pop(0)

    compiled = keep(write)
    a.append(0), b.append(0)
    compiled(1)
    stops, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end or not stops:
        try:
            alarm(ring, 0.0005)
            while True:
                compiled(1)
        except Stop:
            stops += 1
        assert a == b == [1] and d == {"n": 2}
    assert compiled.metrics["hits"] > stops


def test_exception_set_by_another_thread_ends_a_trace():
    class Stop(Exception):
        pass

    xs, seen = [], []

    def loop():
        xs.append(1)
        while True:
            pass

    def run():
        try:
            keep(loop)()
        except Stop:
            seen.append((list(xs), _engine.hook_installed()))

    thread = threading.Thread(target=run)
    thread.start()
    while not _engine.hook_installed():  # the trace has begun
        time.sleep(0.001)
    ident = ctypes.c_ulong(thread.ident)
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Stop)) == 1
    thread.join(PATIENCE)
    assert seen == [([], False)]


@pytest.mark.parametrize("loop", ["loop", "generator"])
def test_ctrl_c_ends_a_program_that_traces(loop):
    body = textwrap.indent(LOOP.format(loop=LOOPS[loop]), "    ")
    program = f"""
    import _thread, threading, time, stator
    {body}
    compiled, xs, d = stator.compile(f, backend="eager", _keep_empty=True), [], {{}}

    def interrupt():
        while not stator._engine.hook_installed():  # the trace has begun
            time.sleep(0.001)
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    try:
        compiled(xs, d, 2 * 10**8)
    except KeyboardInterrupt:
        print("interrupted", xs, d, stator._engine.hook_installed())
    """
    assert run_python(program) == ["interrupted [] {} False"]


# --- recursion ----------------------------------------------------------------------------------


def test_compiled_function_that_calls_itself():
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    depth = keep(depth)
    for n in (0, 1, 100, 100, 7):
        assert depth(n) == n
    assert depth.metrics["hits"] and not depth.metrics["drops"]


def test_two_compiled_functions_that_call_each_other():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    even, odd = keep(even), keep(odd)
    for _ in range(2):
        assert even(60) and odd(61) and not even(61)


@pytest.mark.parametrize("traced", [True, False])
def test_five_thousand_levels_below_a_compiled_function(traced):
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    def f(n):
        if not traced:
            print(end="")
        return depth(n)

    compiled, limit = keep(f), sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        for _ in range(2):
            assert compiled(5000) == 5000
    finally:
        sys.setrecursionlimit(limit)
    assert bool(compiled.metrics["breaks"]) is not traced


def test_recursion_error_comes_at_the_same_depth_as_in_plain_code():
    """How deep a call can go depends on its caller: no entry may remember it."""

    def down(n):
        try:
            return down(n + 1)
        except RecursionError:
            return n

    def f():
        return down(0)

    def at(depth, call):
        return call() if depth == 0 else at(depth - 1, call)

    compiled = keep(f)
    for depth in (0, 300, 0, 100):
        assert abs(at(depth, compiled) - at(depth, f)) <= 2


def test_endless_recursion_is_a_recursion_error():
    class Endless:
        def __getattr__(self, name):
            return getattr(self, name + "x")

        def __eq__(self, other):
            return self == other

        def __iter__(self):
            return iter(self)

        def __len__(self):
            return len(self)

    def call(o):
        return call(o)

    functions = [call, lambda o: o.x, lambda o: o == 1, lambda o: list(o), lambda o: len(o)]
    for f in functions:
        compiled = keep(f)
        for _ in range(2):
            with pytest.raises(RecursionError):
                compiled(Endless())


def nested(make, depth=100_000):
    value = make(None)
    for _ in range(depth):
        value = make(value)
    return value


NESTED = {
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"k": x},
    "slice": lambda x: slice(x),
    "method": lambda x: type(run_python.__get__(1))(len if x is None else x, 1),
}


@pytest.mark.parametrize("kind", NESTED)
def test_values_nested_very_deep_neither_crash_nor_differ(kind):
    """Walked on the C stack they would overflow it."""
    value = nested(NESTED[kind])

    def given(x):
        return [x]

    def looked(x):
        return type(x).__name__, callable(x), x is None, [x]

    for f in (given, looked):
        compiled = keep(f)
        for _ in range(2):
            assert compiled(value)[-1] is value or compiled(value)[-1][0] is value
    while (
        kind != "method" and value is not None
    ):  # level by level: CPython's own stack is short, too
        value = value["k"] if kind == "dict" else value.stop if kind == "slice" else value[0]


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
def test_values_made_very_deep_neither_crash_nor_differ(kind):
    def make(n):
        value = None
        for _ in range(n):
            value = wrap(value)
        return value

    wrap = NESTED[kind]
    compiled = keep(make)
    for _ in range(2):
        value, depth = compiled(20_000), 0
        while value is not None:
            value, depth = value["k"] if kind == "dict" else value[0], depth + 1
        assert depth == 20_000


class Counter(threading.local):
    def __init__(self):
        self.n, self.made_in = 0, threading.get_ident()


def test_each_thread_has_its_own_attributes():
    """An entry of one thread reads and writes the attributes of the thread that calls the entry."""
    plain, counter, seen = threading.local(), Counter(), {}

    @stator.compile(backend="eager", _keep_empty=True)
    def step():
        plain.n = getattr(plain, "n", 0) + 1
        counter.n += 10
        return plain.n, counter.n

    def run(name, times):
        seen[name] = [step() for _ in range(times)], counter.made_in == threading.get_ident()

    run("here", 2)
    other = threading.Thread(target=run, args=("there", 3))
    other.start()
    other.join(PATIENCE)
    run("again", 1)
    first = [(n, 10 * n) for n in (1, 2, 3)]
    assert seen == {"here": (first[:2], True), "there": (first, True), "again": (first[2:], True)}
