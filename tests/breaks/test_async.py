"""Compiled functions in asynchronous programs: called by tasks, in pieces, while other tasks run; and
coroutines and asynchronous generators that are themselves compiled, which CPython runs."""

import asyncio
import contextlib
import contextvars
import inspect

import pytest
from forced import compile_breaking

user = contextvars.ContextVar("user", default="nobody")
BREAKS = [{}, {"break_every": 1, "break_seed": 3}, {"break_every": 5, "break_seed": 4}]


@pytest.fixture(params=BREAKS, ids=["none", "often", "seldom"])
def both(request):
    """both(function): it as it is, and compiled."""
    return lambda function: (function, compile_breaking(function, **request.param))


def outcome(make):
    try:
        return asyncio.run(make())
    except Exception as error:
        return type(error), str(error), repr(error.__context__)


def tally(log, name, numbers):
    total = 0
    for number in numbers:
        log.append((name, number))
        print(end="")
        total += number
    return total, user.get()


def test_tasks_call_one_function_in_pieces(both):
    async def task(call, log, name):
        user.set(name)
        got = []
        for i in range(4):
            got.append(call(log, name, [i, i + 1]))
            await asyncio.sleep(0)
        return got

    async def main(call):
        log = []
        return await asyncio.gather(*(task(call, log, name) for name in "abc")), log, user.get()

    plain, compiled = both(tally)
    want = asyncio.run(main(plain))
    assert asyncio.run(main(compiled)) == want
    assert asyncio.run(main(compiled)) == want


def set_and_ask(name):
    before = user.get()
    token = user.set(name)
    print(end="")
    inside = user.get()
    user.reset(token)
    user.set(inside + "!")
    return before, inside, user.get()


def test_context_variables_stay_with_their_tasks(both):
    async def task(call, name):
        got = [call(name)]
        await asyncio.sleep(0)
        got.append(user.get())
        got.append(call(name + "2"))
        return got

    async def main(call):
        alone = contextvars.copy_context().run(call, "copied")
        return await asyncio.gather(task(call, "a"), task(call, "b")), alone, user.get()

    plain, compiled = both(set_and_ask)
    for _ in range(2):
        assert asyncio.run(main(compiled)) == asyncio.run(main(plain))


def starts(loop, log):
    log.append("begin")
    print(end="")
    loop.call_soon(log.append, "soon")
    task = loop.create_task(asyncio.sleep(0, "slept"))
    task.add_done_callback(lambda done: log.append(done.result()))
    log.append("end")
    return task


def test_a_function_in_pieces_starts_tasks(both):
    async def main(call):
        log = []
        task = call(asyncio.get_running_loop(), log)
        return await task, log

    plain, compiled = both(starts)
    for _ in range(2):
        assert asyncio.run(main(compiled)) == asyncio.run(main(plain))


def fails(log, n):
    try:
        print(end="")
        return 10 // n
    finally:
        log.append(n)


def test_exceptions_of_tasks(both):
    async def main(call):
        log = []
        calls = (asyncio.to_thread(call, log, n) for n in (2, 0, 5))
        got = await asyncio.gather(*calls, return_exceptions=True)
        return sorted(log), list(map(repr, got))

    plain, compiled = both(fails)
    for _ in range(2):
        assert outcome(lambda: main(compiled)) == outcome(lambda: main(plain))


def test_cancellation_between_calls(both):
    async def work(call, log):
        try:
            for i in range(100):
                call(log, "w", [i])
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            log.append(call(log, "cancelled", [1, 2]))
            raise

    async def main(call):
        log = []
        task = asyncio.create_task(work(call, log))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        return log, task.cancelled()

    plain, compiled = both(tally)
    for _ in range(2):
        assert asyncio.run(main(compiled)) == asyncio.run(main(plain))


# -- compiled coroutines --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def manager(log):
    log.append("enter")
    await asyncio.sleep(0)
    try:
        yield len(log)
    finally:
        log.append("exit")
        await asyncio.sleep(0)


async def numbers(log, n):
    try:
        for i in range(n):
            print(end="")
            yield i
            await asyncio.sleep(0)
    finally:
        log.append("closed")


async def coroutine(log, n):
    async with manager(log) as size:
        async for i in numbers(log, n):
            log.append(i)
            if i == 2:
                break
        user.set(f"{size}")
        await asyncio.sleep(0)
    squares = [i * i async for i in numbers(log, n)]
    if n > 4:
        raise KeyError(n)
    return squares, user.get(), await asyncio.wait_for(asyncio.sleep(0, "late"), 10)


def test_a_compiled_coroutine_is_one(both):
    plain, compiled = both(coroutine)
    for n in (0, 3, 4, 5):
        logs = [], []
        got = outcome(lambda: compiled(logs[0], n))  # noqa: B023
        assert got == outcome(lambda: plain(logs[1], n))  # noqa: B023
        assert logs[0] == logs[1]
    made = compiled([], 1)
    assert inspect.iscoroutine(made) and inspect.isawaitable(made)
    made.close()


def test_a_compiled_asynchronous_generator_is_one(both):
    async def use(call, log):
        got = []
        made = call(log, 5)
        async for i in made:
            got.append(i)
            if i == 1:
                got.append(await made.asend(None))
                break
        await made.aclose()
        return got, log, inspect.isasyncgen(made)

    plain, compiled = both(numbers)
    for _ in range(2):
        assert asyncio.run(use(compiled, [])) == asyncio.run(use(plain, []))


def drives(make, log):
    """A coroutine made and driven by hand, in a function in pieces."""
    it = make(log)
    log.append(it.send(None))
    print(end="")
    try:
        it.send("sent")
    except StopIteration as stop:
        log.append(stop.value)
    other = make(log)
    other.send(None)
    try:
        other.throw(ValueError("thrown"))
    except ValueError as error:
        log.append(str(error))
    other.close()
    return log


class Once:
    def __await__(self):
        return (yield "waiting")


async def waits(log):
    log.append("begin")
    try:
        return [await Once()]
    finally:
        log.append("finally")


def test_coroutines_driven_by_hand(both):
    plain, compiled = both(drives)
    for _ in range(2):
        assert compiled(waits, []) == plain(waits, [])
