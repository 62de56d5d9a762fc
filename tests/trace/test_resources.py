"""What comes up at another place in each call (memory and stack that run out, interrupts) is no part of
an entry; and what a trace leaves behind when it ends early runs no code."""

import gc
import sys

import pytest
from worlds import keep_empty

from stator import _engine


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert not _engine.hook_installed() and gc.isenabled()


def _cannot_be_traced():
    return sys._getframe()


# --- memory and stack ---------------------------------------------------------------------------


def _too_long(n):
    try:
        return len([0] * n)
    except MemoryError:
        return "no memory"


def _raised_by_itself(n):
    try:
        raise MemoryError(n)
    except MemoryError as error:
        return error.args[0]


def _too_deep(n):
    def down(k):
        return down(k + 1) if n else k

    try:
        return down(0)
    except RecursionError:
        return "too deep"


def _caught_by_a_base_class(n):
    try:
        return len([0] * n)
    except Exception as error:
        return type(error).__name__


def _swallowed_by_a_context_manager(n):
    class_ = _Swallow
    with class_() as swallow:
        swallow.size = len([0] * n)
    return swallow.size


class _Swallow:
    size = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return True


@pytest.mark.parametrize(
    "f", [_too_long, _raised_by_itself, _too_deep, _caught_by_a_base_class,
          _swallowed_by_a_context_manager], ids=lambda f: f.__name__
)  # fmt: skip
def test_running_out_is_seen_by_the_program_and_never_kept(f):
    compiled = keep_empty(f)
    for n in (1 << 60, 0, 1 << 60):
        assert compiled(n) == f(n)
    assert any("RESOURCES" in reason for reason in compiled.metrics["drops"])


def test_running_out_of_memory_wrote_nothing_before_it_ran_plainly():
    def f(xs, d):
        xs.append(1)
        d["k"] = 2
        try:
            return [0] * (1 << 60)
        except MemoryError:
            xs.append(len(d))

    compiled = keep_empty(f)
    for _ in range(2):
        xs, d = [], {}
        compiled(xs, d)
        assert (xs, d) == ([1, 1], {"k": 2})


# --- generators ---------------------------------------------------------------------------------


def test_generators_that_only_another_ones_frame_holds_are_dropped_quietly():
    log = []

    def inner(name):
        try:
            yield name
            yield name
        finally:
            log.append(name)

    def middle():
        one = inner("one")
        yield next(one)
        yield next(one)

    def outer():
        one, two = middle(), inner("two")
        yield next(one) + next(two)
        yield next(one)

    def f(xs, broken):
        gen = outer()
        xs.append(gen)
        first = next(gen)
        if broken:
            _cannot_be_traced()
        return first

    compiled = keep_empty(f)
    for broken in (True, False, True, False):
        xs = []
        assert compiled(xs, broken) == "onetwo"
        assert log == []
        xs.clear()
        assert sorted(log) == ["one", "two"]
        log.clear()


def test_generators_in_a_cycle_are_dropped_quietly():
    log = []

    def waiting(others):
        try:
            yield len(others)
        finally:
            log.append("closed")

    def f(xs):
        others = []
        gens = [waiting(others), waiting(others)]
        others.extend(gens)
        total = sum(next(gen) for gen in gens)
        xs.append(others)
        _cannot_be_traced()
        return total

    compiled = keep_empty(f)
    xs = []
    assert compiled(xs) == 4 and log == []
    xs.clear()
    gc.collect()
    assert log == ["closed", "closed"]


# --- values nested very deep --------------------------------------------------------------------


def test_classes_nested_very_deep_in_isinstance():
    classes = (int,)
    for _ in range(100_000):
        classes = (classes,)

    def f(x):
        return isinstance(x, classes)

    compiled = keep_empty(f)
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled("x")


def test_attribute_written_deleted_and_written_again_that_was_never_there():
    class Plain:
        pass

    def f(o):
        o.n = 1
        o.last = 2
        del o.n
        o.n = 3
        return list(vars(o))

    compiled = keep_empty(f)
    for _ in range(2):
        o = Plain()
        assert compiled(o) == ["last", "n"] and vars(o) == {"last": 2, "n": 3}
    assert compiled.metrics["hits"] == 1


# --- the recursion limit -------------------------------------------------------------------------


def _frames_here():
    frame, count = sys._getframe(1), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def _deep(n):
    return 0 if n == 0 else 1 + _deep(n - 1)


def _caught(n):
    try:
        return _deep(n)
    except RecursionError:
        return "too deep"


def _with_room(function, room):
    """Calls the function where only so many frames are left up to the recursion limit."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_frames_here() + room)
    try:
        return function(30)
    except RecursionError:
        return "RecursionError"
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("function", [_deep, _caught])
def test_an_entry_is_run_only_where_its_frames_could_be_made(function):
    compiled = keep_empty(function)
    assert compiled(30) == 30
    for room in (60, *range(10, 45, 5), *range(27, 37), 60):
        assert _with_room(compiled, room) == _with_room(function, room), room
    assert compiled(30) == 30


def test_the_limit_that_a_backend_raises_is_raised_before_it_is_read():
    """A backend that compiles deep graphs raises the limit; the entry must fit afterwards."""

    def backend(graph, examples):
        sys.setrecursionlimit(max(sys.getrecursionlimit(), before + 50))
        return graph

    def f():
        return sys.getrecursionlimit()

    before = sys.getrecursionlimit()
    compiler = _engine.compiler(backend, RuntimeError, False, True, 8, recursion=before + 50)
    compiled = _engine.compiled(f, compiler)
    try:
        assert [compiled() for _ in range(3)] == [before + 50] * 3
    finally:
        sys.setrecursionlimit(before)
    assert compiled.metrics["entries"] == 1
    assert "sys.getrecursionlimit() == " in str(compiler.entries()[0]["guards"])
