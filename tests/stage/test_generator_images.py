"""Images of generators, coroutines, async generators: the old one is severed, a new one goes on."""

import gc
import inspect
import subprocess
import sys
import traceback
import types
import warnings
import weakref

import pytest

import stator
from stator.image import Image, put_generator, take_generator

# -- subjects -------------------------------------------------------------------------------


def numbers(log, n=3):
    """The kinds of places that a generator can rest at: a loop, a handler, one in another."""
    try:
        for i in range(n):
            got = yield i
            log.append(("got", got))
        try:
            raise ValueError("own")
        except ValueError as error:
            log.append((yield "in handler"))
            log.append((repr(sys.exception()), sys.exception() is error))
            try:
                raise TypeError("inner")
            except TypeError:
                yield ["half", (yield "in inner handler")]
                log.append(repr(sys.exception()))
            log.append(repr(sys.exception()))
        log.append(repr(sys.exception()))
    finally:
        log.append("finally")
    return "end"


def yields_at_the_end(log):
    try:
        yield 1
    finally:
        log.append((yield "in finally"))


def delegating(log):
    result = yield from numbers(log)
    log.append(result)
    yield from (letter for letter in "ab")
    return result


def closing_over(log):
    count = 10

    def up():
        nonlocal count
        count += 1
        return count

    log.append(up())
    yield up
    log.append(up())
    yield count
    return up()


SUBJECTS = [numbers, delegating, closing_over, yields_at_the_end]


def moved(generator):
    return put_generator(take_generator(generator))


def seen(generator, log, change=lambda generator: generator, at=None):
    """All that a generator yields, returns and logs; changed for another before the n-th step."""
    found, n = [], 0
    while True:
        if n == at:
            generator = change(generator)
        try:
            value = generator.send(f"sent {n}" if n else None)
        except StopIteration as end:
            return found, end.value, log
        found.append("up" if callable(value) else value)
        n += 1


# -- going on -------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize("evaluated", [False, True])
def test_moved_before_each_step(subject, evaluated):
    log = []
    expected = seen(subject(log), log)
    run = stator.evaluate if evaluated else lambda f, *args: f(*args)
    for at in range(len(expected[0]) + 1):
        log = []
        assert run(seen, subject(log), log, moved, at) == expected, f"step {at}"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_moved_before_every_step(subject):
    log, moves = [], []
    expected = seen(subject(log), log)
    log = []

    def steps(generator):
        value = None
        for n in range(100):
            generator = moved(generator)
            moves.append(n)
            try:
                value = generator.send(f"sent {n}" if n else None)
            except StopIteration as end:
                return end.value
            found.append("up" if callable(value) else value)

    found = []
    assert (found, steps(subject(log)), log) == expected
    assert len(moves) == len(found) + 1


def advanced(subject, log, steps):
    generator = subject(log)
    for n in range(steps):
        generator.send(f"sent {n}" if n else None)
    return generator


def thrown(generator, kind):
    """What throwing gives: a value, or the exception with its lines and what it is chained to."""
    try:
        return "yielded", generator.throw(kind("thrown"))
    except StopIteration as end:
        return "returned", end.value
    except BaseException as error:
        entries = traceback.extract_tb(error.__traceback__)
        lines = [(e.name, e.lineno) for e in entries if e.name in ("numbers", "delegating")]
        return "raised", repr(error), lines, repr(error.__context__)


@pytest.mark.parametrize("kind", [ValueError, KeyError, GeneratorExit])
@pytest.mark.parametrize("subject", [numbers, delegating])
def test_throw_into_a_moved_one(subject, kind):
    for at in range(7):
        plain, log = [], []
        expected = thrown(advanced(subject, plain, at), kind)
        generator = moved(advanced(subject, log, at))
        assert (thrown(generator, kind), log) == (expected, plain), f"step {at}"


@pytest.mark.parametrize("subject", [numbers, delegating])
def test_close_a_moved_one(subject):
    for at in range(7):
        plain, log = [], []
        expected = advanced(subject, plain, at).close()
        generator = moved(advanced(subject, log, at))
        assert (generator.close(), log) == (expected, plain), f"step {at}"
        assert inspect.getgeneratorstate(generator) == inspect.GEN_CLOSED


def test_a_moved_one_runs_its_finally_when_dropped():
    log = []

    def waits():
        try:
            yield 1
        finally:
            log.append("finally")

    generator = waits()
    next(generator)
    generator = moved(generator)
    assert log == []
    del generator
    assert log == ["finally"]


def test_an_image_that_is_dropped_runs_nothing():
    log = []

    def waits(held):
        try:
            yield 1
        finally:
            log.append("finally")

    generator = waits(set())
    held = weakref.ref(generator.gi_frame.f_locals["held"])
    next(generator)
    picture = take_generator(generator)
    del generator
    assert held() is not None
    del picture
    gc.collect()
    assert log == [] and held() is None


# -- what is seen of both -------------------------------------------------------------------


def test_the_original_is_severed():
    log = []
    generator = numbers(log)
    next(generator)
    picture = take_generator(generator)
    assert inspect.getgeneratorstate(generator) == inspect.GEN_CLOSED
    assert generator.gi_frame is None and generator.gi_yieldfrom is None
    assert list(generator) == [] and generator.close() is None
    with pytest.raises(KeyError):
        generator.throw(KeyError("not caught"))
    del generator
    gc.collect()
    assert log == [] and not picture.spent


def test_what_an_image_shows():
    generator = numbers([1], n=2)
    for at, expected in [(0, {"log", "n"}), (1, {"log", "n", "i"}), (2, {"log", "n", "i", "got"})]:
        picture = take_generator(generator)
        assert isinstance(picture, Image) and picture.code is numbers.__code__
        assert picture.function is numbers and picture.caller is None
        assert set(picture.locals) == expected
        assert not picture.awaiting and not picture.spent and picture.handled is None
        generator = put_generator(picture)
        assert picture.spent and picture.locals == {}
        generator.send(None if at == 0 else "x")


def test_handled_exceptions_belong_to_the_image():
    generator = advanced(numbers, [], 6)
    picture = take_generator(generator)
    assert repr(picture.handled) == "TypeError('inner')"
    assert sys.exception() is None
    generator = put_generator(picture)
    assert sys.exception() is None and list(generator) == []


def test_put_back_while_another_exception_is_handled():
    log = []
    generator = advanced(numbers, log, 4)
    try:
        raise KeyError("caller's")
    except KeyError as error:
        picture = take_generator(generator)
        assert sys.exception() is error
        generator = put_generator(picture)
        assert sys.exception() is error
        generator.send("a"), generator.send("b"), list(generator)
        assert sys.exception() is error
    assert log[3:-1] == [
        "a",
        ("ValueError('own')", True),
        "TypeError('inner')",
        "ValueError('own')",
        'KeyError("caller\'s")',
    ]


def test_the_new_one_looks_like_the_old_one():
    def looks(generator):
        return (
            generator.__name__,
            generator.__qualname__,
            generator.gi_code,
            generator.gi_frame.f_lineno,
            generator.gi_frame.f_lasti,
            sorted(generator.gi_frame.f_locals),
            generator.gi_yieldfrom,
            generator.gi_running,
            generator.gi_suspended,
            inspect.getgeneratorstate(generator),
        )

    for subject in (numbers, delegating):
        generator = subject([])
        generator.__name__, generator.__qualname__ = "renamed", "also.renamed"
        for at in range(6):
            before = looks(generator)
            generator = moved(generator)
            assert looks(generator) == before, f"step {at}"
            generator.send("x" if at else None)


def test_delegation_goes_on_to_the_same_generator():
    inner = numbers([])

    def outer():
        return (yield from inner)

    generator = outer()
    next(generator)
    assert generator.gi_yieldfrom is inner
    generator = moved(generator)
    assert generator.gi_yieldfrom is inner
    assert next(generator) == 1
    with pytest.raises(KeyError):
        generator.throw(KeyError)
    assert inner.gi_frame is None


def test_the_inner_one_of_a_delegation_is_moved_by_itself():
    """Whoever holds the severed one sees it end; the image goes on elsewhere."""
    inner = numbers([])

    def outer():
        return (yield from inner)

    generator = outer()
    next(generator)
    other = moved(inner)
    assert list(generator) == []
    assert next(other) == 1


def test_cells_stay_shared():
    log = []
    generator = closing_over(log)
    up = next(generator)
    generator = moved(generator)
    assert up() == 12 and next(generator) == 13 and up() == 14
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == 15 and log == [11, 13]


def test_generator_expressions_and_methods():
    source = iter(range(4))
    generator = (x * 2 for x in source)
    assert next(generator) == 0
    assert list(moved(generator)) == [2, 4, 6]

    class C:
        def each(self):
            yield self
            yield __class__

    c = C()
    generator = c.each()
    assert next(generator) is c
    assert list(moved(generator)) == [C]


def test_a_generator_on_the_stack_of_a_frame_goes_with_it():
    from stator.image import resume, take

    def program(log):
        return [x for x in numbers(log, 2) if log.append(x) is None]

    plain, n = [], 1
    expected = program(plain)
    while isinstance(picture := take(program, (log := [],), boundary=n), Image):
        assert (resume(picture), log) == (expected, plain), f"boundary {n}"
        n += 1


def test_references_are_neither_lost_nor_kept():
    log = []
    before = sys.getrefcount(log)
    for at in range(7):
        generator = advanced(numbers, log, at)
        for again in range(3):
            generator = moved(generator)
        list(generator)
        picture = take_generator(advanced(delegating, log, at))
    del generator, picture
    log.clear()
    gc.collect()
    assert sys.getrefcount(log) == before


# -- coroutines and async generators --------------------------------------------------------


@types.coroutine
def pause(value):
    return (yield value)


async def task(log):
    try:
        log.append(await pause(1))
        async with Manager(log):
            try:
                raise ValueError("own")
            except ValueError:
                log.append(await pause(2))
                log.append(repr(sys.exception()))
        return [x async for x in stream(log)]
    finally:
        log.append(("finally", await pause("finally")))


class Manager:
    def __init__(self, log):
        self.log = log

    async def __aenter__(self):
        self.log.append(await pause("enter"))

    async def __aexit__(self, *args):
        self.log.append((await pause("exit"), args))


async def stream(log):
    try:
        for i in range(2):
            log.append(("stream got", await pause(("stream", i))))
            got = yield i
            log.append(("sent", got))
    finally:
        log.append("stream finally")


def test_coroutines_moved_before_each_step():
    log = []
    expected = seen(task(log), log)
    for at in range(len(expected[0]) + 1):
        log = []
        assert seen(task(log), log, moved, at) == expected, f"step {at}"


def test_a_moved_coroutine_awaits_the_same_thing():
    coroutine = task([])
    coroutine.send(None)
    before = coroutine.cr_await
    assert before is not None
    new = moved(coroutine)
    assert new.cr_await is before
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    assert inspect.getcoroutinestate(new) == inspect.CORO_SUSPENDED
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        coroutine.send(None)
    assert new.throw(KeyError) == "finally"
    with pytest.raises(KeyError):
        new.send(None)


def test_only_the_coroutine_that_was_never_awaited_warns():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        picture = take_generator(task([]))
        gc.collect()
        assert caught == []
        del picture
        gc.collect()
        assert caught == []
        new = moved(task([]))
        del new
        gc.collect()
    assert ["never awaited" in str(w.message) for w in caught] == [True]


def drive(awaitable):
    """Runs it to its end; what it waited for, and what came out."""
    waited = []
    try:
        while True:
            waited.append(awaitable.send(len(waited) or None))
    except StopIteration as end:
        return waited, end.value
    except StopAsyncIteration:
        return waited, "exhausted"
    except Exception as error:
        return waited, repr(error)


def test_async_generators_moved_before_each_step():
    def run(at):
        log, found = [], []
        generator = stream(log)
        for n in range(3):
            if n == at:
                generator = moved(generator)
            found.append(drive(generator.asend("sent" if n else None)))
        return found, log

    expected = run(None)
    assert expected[0][-1][1] == "exhausted"
    for at in range(3):
        assert run(at) == expected


@pytest.mark.parametrize("how", ["athrow", "aclose"])
def test_async_generators_thrown_into_and_closed(how):
    def run(change):
        log = []
        generator = stream(log)
        first = drive(generator.asend(None))
        generator = change(generator)
        args = (KeyError("thrown"),) if how == "athrow" else ()
        return first, drive(getattr(generator, how)(*args)), drive(generator.asend(None)), log

    assert run(moved) == run(lambda generator: generator)


def test_async_generator_hooks_are_told_once():
    told = []
    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=told.append, finalizer=lambda g: told.append("finalizer"))
    try:
        generator = stream([])
        drive(generator.asend(None))
        old = weakref.ref(generator)
        generator = moved(generator)
        told.clear()
        gc.collect()
        assert old() is None and told == []
        drive(generator.asend(None))
        assert told == []
        del generator
        gc.collect()
        assert told == ["finalizer"]
    finally:
        sys.set_asyncgen_hooks(*before)


def test_asyncio_goes_on_with_a_moved_coroutine():
    import asyncio

    async def program(log):
        async def part(n):
            await asyncio.sleep(0)
            log.append(n)
            return n

        return await asyncio.gather(*(moved(part(n)) for n in range(3)))

    log = []
    assert asyncio.run(program(log)) == [0, 1, 2] and log == [0, 1, 2]


# -- bad input ------------------------------------------------------------------------------


def ended():
    generator = numbers([])
    generator.close()
    return generator


def failed():
    generator = (1 / 0 for _ in [1])
    with pytest.raises(ZeroDivisionError):
        next(generator)
    return generator


@pytest.mark.parametrize("make", [lambda: 5, lambda: numbers, lambda: iter([]), ended, failed])
def test_what_has_no_image(make):
    with pytest.raises(TypeError, match="suspended generator"):
        take_generator(make())


def test_a_running_generator_has_no_image():
    def running():
        try:
            take_generator(me)
        except TypeError as error:
            yield str(error)

    me = running()
    assert "suspended generator" in next(me)
    assert list(me) == []


def test_a_generator_that_waits_for_a_running_one_is_running():
    def inner():
        with pytest.raises(TypeError):
            take_generator(me)
        yield 1

    def outer():
        yield from inner()

    me = outer()
    assert list(me) == [1]


def test_a_severed_generator_has_no_second_image():
    generator = numbers([])
    next(generator)
    take_generator(generator)
    with pytest.raises(TypeError, match="suspended generator"):
        take_generator(generator)


def test_an_image_is_put_back_once_and_as_a_generator():
    from stator.image import resume, step

    picture = take_generator(numbers([]))
    for go_on in (resume, step):
        with pytest.raises(TypeError, match="put back as a generator"):
            go_on(picture)
    assert next(put_generator(picture)) == 0
    with pytest.raises(ValueError, match="put back already"):
        put_generator(picture)


def test_an_image_of_a_frame_is_not_put_back_as_a_generator():
    from stator.image import take

    with pytest.raises(ValueError, match="not of a generator"):
        put_generator(take(lambda: 1))


# -- where a mistake crashes: in a process of its own ----------------------------------------


def child(code):
    run = [sys.executable, "-X", "faulthandler", "-c", code]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_frame_object_of_a_severed_generator_is_empty():
    code = """
from stator.image import take_generator
def make(free):
    def generator():
        local = 1
        yield free, local
    return generator
generator = make(1)()
next(generator)
frame = generator.gi_frame
assert sorted(frame.f_locals) == ["free", "local"]
picture = take_generator(generator)
print(dict(frame.f_locals), frame.f_back, frame.f_code is picture.code)
frame.clear()
del generator
print(dict(frame.f_locals))
"""
    assert child(code).splitlines()[0] == "{} None True"


def test_a_severed_one_delegates_to_nobody():
    code = """
from stator.image import take_generator
def generator():
    yield from [1, 2]
async def coroutine(awaited):
    await awaited
class Awaited:
    def __await__(self):
        yield 1
one, two = generator(), coroutine(Awaited())
next(one), two.send(None)
assert one.gi_yieldfrom is not None and two.cr_await is not None
images = take_generator(one), take_generator(two)
print(one.gi_yieldfrom, two.cr_await, one.gi_frame, two.cr_frame)
"""
    assert child(code) == "None None None None\n"
