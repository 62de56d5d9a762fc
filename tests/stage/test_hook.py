"""Who gets a frame: the hook is on only while needed, passes on what is not ours, and gives way.

A hook that records (CPython's own, of its tests) is put on first: ours goes on top and passes to it
only what the interpreter does not run, so its list tells who ran what."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

from stator import _engine, evaluate
from stator.image import resume, take

capi = pytest.importorskip("_testinternalcapi")


@pytest.fixture(autouse=True)
def nothing_stays_hooked():
    assert not _engine.hook_installed()
    yield
    assert not _engine.hook_installed()


def recorded(function, *args):
    """What a call gives, and the names of functions whose frames CPython's own eval ran."""
    names = []
    capi.set_eval_frame_record(names)
    try:
        value = function(*args)
    finally:
        capi.set_eval_frame_default()
    # Stator's own helper looks for signals and other threads.
    return value, [name for name in names if name != "helper"]


def leaf(x=1):
    return x + 1


def program():
    return leaf(), sorted([1, 2], key=lambda x: -x), [leaf(x) for x in range(2)], Made(3).x


class Made:
    def __init__(self, x):
        self.x = x


def counter():
    yield leaf()
    yield leaf()


# -- while it is needed ---------------------------------------------------------------------


def test_off_before_and_after_and_on_within():
    def inside():
        return _engine.hook_installed(), leaf()

    assert evaluate(inside) == (True, 2)
    assert not _engine.hook_installed()


def test_nested_scopes():
    def deep(n):
        before = _engine.hook_installed()
        below = evaluate(deep, n - 1) if n else _engine.passthrough(_engine.hook_installed)
        return before and below and _engine.hook_installed()

    assert evaluate(deep, 5) is True


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, RecursionError])
def test_off_after_an_exception(error):
    def fails():
        raise error

    for call in (evaluate, _engine.passthrough, lambda f: evaluate(lambda: evaluate(f))):
        with pytest.raises(error):
            call(fails)
        assert not _engine.hook_installed()


def test_off_after_bad_input():
    for args in ((), (5,), (len, []), (leaf, 1, 2)):
        with pytest.raises(TypeError):
            evaluate(*args)
        assert not _engine.hook_installed()


def test_off_while_a_generator_of_ours_rests():
    generator = evaluate(counter)
    assert not _engine.hook_installed()
    assert next(generator) == 2
    assert evaluate(lambda: next(generator)) == 2
    assert not _engine.hook_installed()


def test_images_leave_it_off():
    picture = take(program, boundary=20)
    assert not _engine.hook_installed()
    assert resume(picture) == program()


def test_installed_and_removed_many_times():
    _engine.hook_cycle(1000)
    assert not _engine.hook_installed()

    def inside():
        _engine.hook_cycle(1000)
        return _engine.hook_installed()

    assert evaluate(inside)
    for bad in ("x", None, 1.5):
        with pytest.raises(TypeError):
            _engine.hook_cycle(bad)


# -- who runs what --------------------------------------------------------------------------


def test_everything_below_evaluate_is_ours():
    assert recorded(evaluate, program) == (program(), [])


def test_frames_that_native_code_starts_are_ours():
    class Odd:
        def __hash__(self):
            return leaf()

        def __eq__(self, other):
            return True

        def __get__(self, instance, owner):
            return leaf()

        def __set_name__(self, owner, name):
            leaf()

        def __del__(self):
            leaf()

        def __repr__(self):
            return "Odd"

    def uses():
        class Holder:
            odd = Odd()

            def __init_subclass__(cls):
                leaf()

        class Below(Holder):
            pass

        eval("leaf()", globals())
        exec("leaf()", globals())
        return {Odd(): 1}[Odd()], repr([Odd()]), Below().odd, list(map(leaf, [1]))

    assert recorded(evaluate, uses) == ((1, "[Odd]", 2, [2]), [])


def test_only_the_making_of_generators_is_not_ours():
    async def coroutine():
        return leaf()

    def uses():
        made = coroutine()
        try:
            made.send(None)
        except StopIteration:
            return list(counter()), sum(leaf(x) for x in [1])

    assert recorded(evaluate, uses) == (([2, 2], 2), ["coroutine", "counter", "<genexpr>"])


def test_nothing_outside_evaluate_is_ours():
    _, names = recorded(program)
    assert names[0] == "program" and names.count("leaf") == 3


def test_the_rest_of_a_generator_belongs_to_who_resumes_it():
    generator = evaluate(counter)
    assert recorded(next, generator) == (2, ["counter", "leaf"])
    assert recorded(evaluate, lambda: next(generator)) == (2, [])


def test_passthrough():
    def outer():
        return leaf(), _engine.passthrough(inner), leaf(10)

    def inner():
        return leaf(), evaluate(again)

    def again():
        return leaf(5)

    assert recorded(evaluate, outer) == ((2, (2, 6), 11), ["inner", "leaf"])
    assert recorded(_engine.passthrough, inner) == ((2, 6), ["inner", "leaf"])


def test_passthrough_of_anything_callable():
    assert _engine.passthrough(len, [1]) == 1
    assert _engine.passthrough(leaf, x=4) == 5
    assert _engine.passthrough(Made, 3).x == 3
    with pytest.raises(TypeError, match="needs a callable as its first argument"):
        _engine.passthrough()
    with pytest.raises(TypeError, match="not callable"):
        _engine.passthrough(5)


def test_skipped_code_is_cpythons_and_what_it_calls_is_ours():
    def skipped():
        return leaf(), inner()

    def inner():
        return leaf()

    def outer():
        return skipped()

    _engine.skip_code(skipped.__code__)
    assert recorded(evaluate, outer) == ((2, 2), ["skipped"])
    assert recorded(evaluate, skipped) == ((2, 2), ["skipped"])


def test_skipped_generators():
    def skipped():
        yield leaf()
        yield leaf()

    _engine.skip_code(skipped.__code__)
    value, names = recorded(evaluate, lambda: list(skipped()))
    assert (value, names) == ([2, 2], ["skipped"] * 4)  # made, and resumed three times


def test_code_that_is_skipped_while_it_runs_ends_where_it_is():
    def skips_itself(n):
        _engine.skip_code(skips_itself.__code__)
        return skips_itself(n - 1) if n else 0

    assert recorded(evaluate, skips_itself, 3) == (0, ["skips_itself"] * 3)


@pytest.mark.parametrize("thing", [5, None, leaf, "x"])
def test_only_code_can_be_skipped(thing):
    with pytest.raises(TypeError, match="code object is needed"):
        _engine.skip_code(thing)


def test_malformed_code_cannot_be_skipped():
    bad = leaf.__code__.replace(co_code=b"\xff\x00" * 4)
    with pytest.raises(SystemError):
        _engine.skip_code(bad)


# -- other hooks ----------------------------------------------------------------------------


def test_a_hook_that_was_there_comes_back():
    def uses():
        evaluate(leaf)
        try:
            evaluate(lambda: 1 / 0)
        except ZeroDivisionError:
            leaf()
        return _engine.hook_installed()

    assert recorded(uses) == (False, ["uses", "leaf"])


@pytest.fixture
def other_hooks():
    """For tests that put a hook on and leave it there."""
    yield
    capi.set_eval_frame_default()
    evaluate(leaf)


def test_a_hook_put_on_within_stays(other_hooks):
    names = []

    def puts():
        capi.set_eval_frame_record(names)
        return leaf(), _engine.hook_installed()

    assert evaluate(puts) == (2, False)
    assert names == ["leaf"]  # it does not pass frames down to ours
    leaf()
    assert names == ["leaf", "leaf"]
    assert evaluate(leaf) == 2 and not _engine.hook_installed()


def test_a_hook_taken_off_within_stays_off():
    def takes():
        capi.set_eval_frame_default()
        return leaf()

    assert evaluate(takes) == 2 and not _engine.hook_installed()
    assert recorded(evaluate, takes) == (2, [])
    assert recorded(evaluate, program) == (program(), [])


def test_frames_are_ours_again_after_another_hook_came_and_went(other_hooks):
    assert evaluate(lambda: capi.set_eval_frame_record([])) is None
    capi.set_eval_frame_default()
    assert recorded(evaluate, program) == (program(), [])


def test_images_under_a_hook_that_keeps_frames_to_itself(other_hooks):
    """Ours goes over it, or the frame that never arrives is an error; it never runs on dummies."""
    picture = take(program, boundary=20)

    def puts():
        capi.set_eval_frame_record([])
        return resume(picture)

    try:
        assert evaluate(puts) == program()
    except RuntimeError as error:
        assert "another eval hook" in str(error)


# -- threads --------------------------------------------------------------------------------


def in_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join(300)
    return found[0]


def test_a_thread_that_does_not_evaluate_runs_by_cpython():
    started, done = threading.Event(), threading.Event()

    def waits():
        started.set()
        while not done.is_set():
            ours()

    def ours():
        return 1

    def plain():
        return leaf(), _engine.hook_installed()

    def both():
        thread = threading.Thread(target=evaluate, args=(waits,))
        thread.start()
        started.wait(300)
        seen = plain()
        done.set()
        thread.join(300)
        return seen

    seen, names = recorded(both)
    assert seen == (2, True)
    assert {"plain", "leaf"} <= set(names) and not {"ours", "waits"} & set(names)


def test_the_hook_stays_for_a_thread_that_still_evaluates():
    started, done, found = threading.Event(), threading.Event(), []

    def waits():
        started.set()
        done.wait(300)
        return _engine.hook_installed(), ours()

    def ours():
        return 1

    def both():
        thread = threading.Thread(target=lambda: found.append(evaluate(waits)))
        thread.start()
        started.wait(300)
        evaluate(leaf)
        installed = _engine.hook_installed()
        done.set()
        thread.join(300)
        return installed

    installed, names = recorded(both)
    assert installed and found == [(True, 1)]
    assert not {"waits", "ours", "leaf"} & set(names)


def test_a_thread_started_within_runs_by_cpython():
    def started():
        return leaf()

    value, names = recorded(evaluate, in_thread, started)
    assert value == 2
    assert {"started", "leaf"} <= set(names) and "in_thread" not in names


def test_modes_of_threads_are_apart():
    """One passes through while another evaluates, in turns."""
    turns = [threading.Semaphore(0), threading.Semaphore(0)]

    def taking(me, function):
        for _ in range(5):
            turns[me].acquire(timeout=300)
            function()
            turns[1 - me].release()

    def mine():
        return 1

    def theirs():
        return 1

    def both():
        passing = lambda: evaluate(lambda: _engine.passthrough(taking, 1, theirs))
        other = threading.Thread(target=passing)
        other.start()
        turns[0].release()
        evaluate(taking, 0, mine)
        other.join(300)

    _, names = recorded(both)
    assert names.count("theirs") == 5 and "mine" not in names


# -- processes ------------------------------------------------------------------------------


def child(code):
    run = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_by_a_thread_that_does_not_evaluate():
    code = """
    import os, threading
    from stator import _engine, evaluate
    started, done = threading.Event(), threading.Event()
    def waits():
        started.set()
        done.wait(300)
    thread = threading.Thread(target=evaluate, args=(waits,))
    thread.start()
    started.wait(300)
    child = os.fork()
    if child == 0:
        print(_engine.hook_installed(), evaluate(lambda: _engine.hook_installed()),
              _engine.hook_installed(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(_engine.hook_installed())
    done.set()
    thread.join()
    print(_engine.hook_installed())
    """
    assert child(code) == ["False True False", "True", "False"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_within_evaluate():
    code = """
    import os
    from stator import _engine, evaluate
    def forks():
        child = os.fork()
        if child == 0:
            return "child", _engine.hook_installed(), sum(x for x in range(4))
        os.waitpid(child, 0)
        return "parent", _engine.hook_installed()
    print(evaluate(forks), _engine.hook_installed(), flush=True)
    """
    assert child(code) == ["('child', True, 6) False", "('parent', True) False"]


def refused(change):
    code = f"""
    import sys
    {change}
    try:
        import stator
    except ImportError as error:
        print(error)
        print("stator._engine" in sys.modules)
    """
    return child(code)


@pytest.mark.parametrize("version", [(3, 10), (3, 14), (4, 0), (2, 7)])
def test_an_unsupported_version_is_refused_at_import(version):
    change = (
        "import collections; "
        "kind = collections.namedtuple('version_info', 'major minor micro releaselevel serial'); "
        f"sys.version_info = kind({version[0]}, {version[1]}, 0, 'final', 0)"
    )
    text = "stator supports CPython 3.11, 3.12 and 3.13; this is cpython {}.{}".format(*version)
    assert refused(change) == [text, "False"]


def test_another_implementation_is_refused_at_import():
    change = "sys.implementation.name = 'pypy'"
    version = "{}.{}".format(*sys.version_info[:2])
    text = f"stator supports CPython 3.11, 3.12 and 3.13; this is pypy {version}"
    assert refused(change) == [text, "False"]


def test_a_free_threaded_build_is_refused_at_import():
    version = "{}.{}".format(*sys.version_info[:2])
    text = f"stator supports CPython 3.11, 3.12 and 3.13; this is a free-threaded CPython {version}"
    assert refused("sys.abiflags = 't'") == [text, "False"]


def test_importing_installs_nothing():
    code = """
    import stator, stator.image
    print(stator._engine.hook_installed())
    """
    assert child(code) == ["False"]


def test_the_first_function_is_found_and_not_run():
    ran = []

    def f(x, *, y=1):
        ran.append(x)

    def made():
        return [ran.append(2)]

    find = _engine.first_function
    assert find(f, (1,), {"y": 2}) is f
    assert find(map(f, [1]).__next__, (), {}) is f
    assert find(sorted, ([2, 1],), {"key": f}) is f
    assert find(len, ("ab",), {}) is None
    assert find(made, (), {}) is made
    with pytest.raises(TypeError):
        find(f, (), {})
    assert ran == []
    assert not _engine.hook_installed()
    assert made() == [None]
