"""Frames that wait for a callee with a break in it: its trace goes on in them, few entries do for all
callers, and what comes between (other callers, exceptions, a reset) leaves nothing wrong behind."""

import sys
import threading
import tracemalloc
import warnings

import pytest
from forced import LIMIT, compile_breaking


@pytest.fixture(autouse=True)
def no_limit_warning():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "stator: ")
        yield


def same(function, *calls, times=3):
    """The compiled function, after each call gave what a plain one gives."""
    compiled = compile_breaking(function)
    for call in calls * times:
        assert compiled(*call) == function(*call)
    return compiled


def one(x):
    print(end="")
    return x + 1


def two(x):
    return one(x + 1) * 2


def three(x):
    return two(x + 1) * 3


def four(x):
    return three(x + 1) * 4


# -- how many entries there are -----------------------------------------------------------------------


@pytest.mark.parametrize("function", [one, two, three, four], ids=lambda f: f.__name__)
def test_one_break_costs_two_entries_at_any_depth(function):
    f = same(function, (1,))
    assert (f.metrics["traces"], f.metrics["entries"]) == (2, 2)
    assert f.metrics["drops"] == []


def test_an_entry_goes_on_to_the_end_of_the_outermost_frame():
    f = same(four, (1,))
    first, second = f.compiler.entries()
    assert first["breaks"] and first["name"] == "four"
    assert not second["breaks"] and second["name"] == "one"


def two_breaks(x):
    a = two(x)
    print(end="")
    return three(a)


def test_each_break_ends_one_entry():
    f = same(two_breaks, (1,))
    assert f.metrics["entries"] == 4


def other_places(x):
    return [two(x), two(x) + 1, two(x) + 2]


def test_a_helper_fits_each_place_it_is_called_from():
    f = same(other_places, (1,))
    assert f.metrics["entries"] == 4
    assert f.metrics["drops"] == []


def from_places(count):
    calls = "\n".join(f"    x += two(x) % {i + 2}" for i in range(count))
    space = {"two": two}
    exec(f"def f(x):\n{calls}\n    return x", space)
    return space["f"]


def test_a_helper_called_from_many_places_has_few_entries():
    count = 20
    f = same(from_places(count), (1,))
    made = f.metrics["traces"]
    assert f.metrics["entries"] <= 2 * count
    f(1)
    assert f.metrics["traces"] == made


def down(n):
    print(end="")
    return 1 + down(n - 1) if n else 0


def test_recursion_of_any_depth_has_few_entries():
    f = same(down, *((n,) for n in (3, 1, 40, 7, 60)))
    assert f.metrics["entries"] <= 4 * LIMIT
    made = f.metrics["traces"]
    assert f(50) == 50
    assert f.metrics["traces"] <= made + LIMIT


def test_recursion_without_end_is_an_error_and_leaves_nothing_behind():
    f = same(down, (3,))
    for _ in range(3):
        with pytest.raises(RecursionError):
            f(10 * sys.getrecursionlimit())
        assert f(5) == 5


def variants(x, k):
    return one(x), k


def test_variables_of_the_caller_nobody_looks_at_make_no_entries():
    f = same(variants, *((1, k) for k in (1, "a", None, 2.5)))
    assert f.metrics["entries"] == 2


def looked_at(x, k):
    return one(x), k + k


def test_variables_of_the_caller_are_guarded_where_it_goes_on():
    f = same(looked_at, *((1, k) for k in (1, "a", 2.5)))
    assert f.metrics["entries"] >= 3
    assert any("k" in row for row in f.metrics["recompiles"])


# -- loops --------------------------------------------------------------------------------------------


def loop(n):
    got = 0
    for _ in range(n):
        got = two(1)
    return got


def test_a_loop_around_the_call_uses_few_entries():
    f = same(loop, (5,))
    assert f.metrics["entries"] <= 6
    made = f.metrics["traces"]
    assert f(20_000) == two(1)
    assert f.metrics["traces"] == made + 1


def counting(n):
    total = 0
    for _ in range(n):
        total += two(1)
    return total


def test_a_loop_that_is_different_each_time_uses_few_entries():
    f = same(counting, (20_000,), times=2)
    assert f.metrics["entries"] <= 5 * LIMIT


@pytest.mark.parametrize("function", [loop, counting])
def test_a_loop_around_the_call_is_flat_in_memory(function):
    f = same(function, (2000,), (20_000,), times=2)
    growth = []
    tracemalloc.start()
    try:
        for _ in range(3):  # a table of the whole process may grow meanwhile, but not each time
            peaks = []
            for n in (2000, 20_000):
                tracemalloc.reset_peak()
                f(n)
                peaks.append(tracemalloc.get_traced_memory()[1])
            growth.append(peaks[1] - peaks[0])
    finally:
        tracemalloc.stop()
    assert min(growth) < 10_000


# -- exceptions -----------------------------------------------------------------------------------------


def fails(x):
    print(end="")
    raise KeyError(x)


def catches(x):
    try:
        return fails(x)
    except KeyError as e:
        return e.args[0] * 2


def test_an_exception_the_caller_handles_is_part_of_the_trace():
    f = same(catches, (3,))
    assert f.metrics["entries"] == 2
    assert f.metrics["drops"] == []


def catches_two_below(x):
    try:
        return catches_not(x) + 1
    except KeyError as e:
        return e.args


def catches_not(x):
    return fails(x) + 1


def test_an_exception_through_a_frame_that_waits_is_handled():
    f = same(catches_two_below, (3,))
    assert f.metrics["entries"] <= 3


def names_of(function, *args):
    with pytest.raises(KeyError) as caught:
        function(*args)
    found = [entry.frame.code.raw.co_name for entry in caught.traceback]
    return found[found.index("catches_not") :]


def test_an_exception_nobody_handles_passes_all_frames():
    f = compile_breaking(catches_not)
    for _ in range(3):
        assert names_of(f, 1) == names_of(catches_not, 1) == ["catches_not", "fails"]


# -- what comes between -----------------------------------------------------------------------------------


class Stored:
    def __init__(self, v):
        self.v = one(v)
        self.w = self.v * 2


def makes(v):
    s = Stored(v)
    return s.v, s.w, type(s).__name__


def test_an_init_that_waits_gives_its_object():
    f = same(makes, (1,))
    assert f.metrics["entries"] == 2


def meanwhile(act):
    act()
    print(end="")
    return 1


def waits(act):
    got = meanwhile(act)
    return got + 1, "old"


def replaced(act):
    got = meanwhile(act)
    return got + 2, "new"


def nothing():
    pass


def test_a_caller_whose_code_is_replaced_ends_as_the_old_one():
    f = same(waits, (nothing,))

    def replace():
        waits.__code__ = replaced.__code__

    old = waits.__code__
    try:
        assert f(replace) == (2, "old")
        assert f(nothing) == (3, "new")
    finally:
        waits.__code__ = old
    assert f(nothing) == (2, "old")


def test_a_reset_while_frames_wait_loses_nothing():
    f = compile_breaking(waits)
    reset = f.compiler.reset
    for act in (nothing, reset, nothing, reset, reset, nothing):
        assert f(act) == (2, "old")


def test_resets_by_another_thread_lose_nothing():
    f = compile_breaking(four)
    want, done = four(1), threading.Event()

    def reset():
        while not done.is_set():
            f.compiler.reset()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=reset)
    thread.start()
    try:
        assert [f(1) for _ in range(200)] == [want] * 200
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)


def looks(hold):
    frame = sys._getframe(1)
    hold.append(frame.f_locals["mark"])
    print(end="")
    return len(hold)


def seen(hold):
    mark = "before"
    got = looks(hold)
    mark = got
    return mark


def test_a_caller_that_was_seen_goes_on():
    f = compile_breaking(seen)
    for _ in range(3):
        hold = []
        assert (f(hold), hold) == (1, ["before"])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring")
def test_a_tool_that_watches_the_caller_alone_sees_its_lines():
    lines, monitoring = [], sys.monitoring
    f = same(waits, (nothing,))

    def note(code, line):
        lines.append(line - code.co_firstlineno)

    monitoring.use_tool_id(3, "lines")
    try:
        monitoring.register_callback(3, monitoring.events.LINE, note)
        on = monitoring.events.LINE
        assert f(lambda: monitoring.set_local_events(3, waits.__code__, on)) == (2, "old")
        assert lines == [2]
        assert f(lambda: monitoring.set_local_events(3, waits.__code__, 0)) == (2, "old")
    finally:
        monitoring.free_tool_id(3)
    assert f(nothing) == (2, "old")
