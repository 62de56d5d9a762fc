"""Coroutines, async with, async for: driven by hand, one send at a time, and by asyncio."""

import asyncio
import contextlib
import inspect
import sys
import types

from probes import AsyncManager, Dying, Pause, catch, drive, handled, places, text, where


def awaits_in_order():
    async def inner(n):
        a = await Pause(("inner", n))
        return a, n

    async def main():
        x = await inner(1)
        y = await inner(2)
        return x, y, await Pause("last")

    return drive(main(), ["a", "b", "c"])


def coroutine_object():
    async def f():
        return 1

    c = f()
    seen = [
        type(c).__name__,
        c.__name__,
        inspect.getcoroutinestate(c),
        inspect.iscoroutine(c),
        c.cr_await,
        catch(iter, c),
        catch(next, c),
        catch(c.send, 5),
    ]
    try:
        c.send(None)
    except StopIteration as stop:
        seen.append(stop.value)
    seen.append(inspect.getcoroutinestate(c))
    return seen, catch(c.send, None), catch(c.throw, ValueError), catch(c.close)


def never_awaited():
    async def f():
        return 1

    f()
    c = f()
    c.close()
    return "one warning"


def await_twice():
    async def f():
        return 1

    async def main():
        c = f()
        first = await c
        return first, await c

    return drive(main())


def await_running():
    async def main():
        await me

    me = main()
    return catch(me.send, None)


def await_shared():
    async def inner():
        await Pause("inner")

    async def outer(c):
        await c

    c = inner()
    a, b = outer(c), outer(c)
    r = a.send(None), catch(b.send, None)
    a.close()
    return r


def await_bad_objects():
    class NoIter:
        def __await__(self):
            return 5

    class ReturnsCoroutine:
        def __await__(self):
            return inner()

    class Raises:
        def __await__(self):
            raise ValueError("in __await__")

    async def inner():
        pass

    async def main(x):
        await x

    held = ReturnsCoroutine()
    return [
        where(lambda: main(5).send(None)),
        catch(lambda: main(None).send(None)),
        catch(lambda: main([1]).send(None)),
        catch(lambda: main(NoIter()).send(None)),
        catch(lambda: main(held).send(None)),
        where(lambda: main(Raises()).send(None)),
    ]


def await_iterator_objects():
    class Steps:
        def __init__(self, n):
            self.n = n

        def __await__(self):
            return iter(range(self.n))

    class Own:
        def __await__(self):
            return self

        def __next__(self):
            raise StopIteration("own result")

    async def main():
        return await Steps(3), await Own()

    return drive(main())


def throw_into():
    log = []

    async def inner():
        try:
            await Pause("inner")
        except ValueError as e:
            log.append(text(e))
            return "recovered"
        finally:
            log.append("inner finally")

    async def main():
        r = await inner()
        try:
            await Pause("main")
        except KeyError as e:
            log.append((text(e), places(e.__traceback__)))
        return r

    return drive(main(), [ValueError("v"), KeyError("k")]), log


def throw_through():
    async def inner():
        await Pause("inner")

    async def main():
        await inner()

    c = main()
    c.send(None)
    return where(c.throw, LookupError("through")), inspect.getcoroutinestate(c)


def close_runs_finally():
    log = []

    async def inner():
        try:
            await Pause(1)
        finally:
            log.append("inner")

    async def main():
        try:
            await inner()
        finally:
            log.append(("main", handled()))

    c = main()
    c.send(None)
    c.close()
    return log


def close_ignored():
    async def main():
        try:
            await Pause(1)
        except GeneratorExit:
            await Pause(2)

    c = main()
    c.send(None)
    return catch(c.close)


def stop_iteration_from_coroutine():
    async def f():
        raise StopIteration("x")

    async def g():
        raise StopAsyncIteration("y")

    async def main():
        await f()

    out = []
    for make in (f, g, main):
        try:
            make().send(None)
        except Exception as e:
            out.append((text(e), repr(e.__cause__), places(e.__traceback__)))
    return out


def dropped_coroutine_finalises():
    log = []

    async def main():
        d = Dying(log, "local")
        try:
            await Pause(d.name)
        finally:
            log.append("finally")

    c = main()
    c.send(None)
    del c
    log.append("dropped")
    return log


def async_with_order():
    log = []

    async def main():
        async with AsyncManager(log, "a") as a, AsyncManager(log, "b") as b:
            log.append((a, b))
            await Pause("body")
        return "end"

    return drive(main()), log


def async_with_exceptions():
    log = []

    async def main(swallow):
        async with AsyncManager(log, "m", swallow=swallow):
            log.append("body")
            raise ValueError("inside")
        return "after"

    return drive(main(True)), drive(main(False)), log


def async_with_errors():
    log = []

    async def enter():
        async with AsyncManager(log, "e", fail_enter=OSError("enter")):
            log.append("unreached")

    async def leave():
        async with AsyncManager(log, "x", fail_exit=KeyError("exit")):
            raise ValueError("body")

    out = []
    for make in (enter, leave):
        c = make()
        try:
            while True:
                c.send(None)
        except Exception as e:
            out.append((text(e), repr(e.__context__), places(e.__traceback__)))
    return out, log


def async_with_bad_manager():
    class NoEnter:
        async def __aexit__(self, *a):
            pass

    class NoExit:
        async def __aenter__(self):
            pass

    class NotAwaitable:
        def __aenter__(self):
            return 1

        def __aexit__(self, *a):
            return 2

    class ExitNotAwaitable:
        async def __aenter__(self):
            pass

        def __aexit__(self, *a):
            return 2

    class Sync:
        def __enter__(self):
            pass

        def __exit__(self, *a):
            pass

    async def main(m):
        async with m:
            pass

    kinds = (NoEnter, NoExit, NotAwaitable, ExitNotAwaitable, Sync)
    return [where(lambda k=k: main(k()).send(None)) for k in kinds]


def async_with_return_break_continue():
    log = []

    async def ret():
        async with AsyncManager(log, "r"):
            return "returned"

    async def loop():
        for i in range(4):
            async with AsyncManager(log, f"l{i}"):
                if i == 1:
                    continue
                if i == 2:
                    break
        return i

    return drive(ret()), drive(loop()), log


def async_for_over_class():
    log = []

    class Count:
        def __init__(self, n):
            self.n = n
            self.i = 0

        def __aiter__(self):
            log.append("aiter")
            return self

        async def __anext__(self):
            self.i += 1
            if self.i > self.n:
                raise StopAsyncIteration
            return await Pause(self.i)

    async def main():
        got = []
        async for v in Count(3):
            if v == "skip":
                continue
            got.append(v)
        else:
            got.append("else")
        return got

    return drive(main(), ["a", "skip", "c"]), log


def async_for_break_and_error():
    class Count:
        def __init__(self):
            self.i = 0

        def __aiter__(self):
            return self

        async def __anext__(self):
            self.i += 1
            if self.i == 3:
                raise ValueError("third")
            return self.i

    async def brk():
        async for v in Count():
            if v == 2:
                break
        else:
            v = "no"
        return v

    async def err():
        async for _ in Count():
            pass

    return drive(brk()), where(lambda: err().send(None))


def async_for_bad():
    class A:
        def __aiter__(self):
            return 5

    class B:
        def __aiter__(self):
            return self

        def __anext__(self):
            return 5

    class C:
        pass

    class D:
        def __aiter__(self):
            return self

        def __anext__(self):
            raise OSError("sync failure")

    async def main(x):
        async for _ in x:
            pass

    return [where(lambda x=x: main(x).send(None)) for x in (A(), B(), C(), D(), [1])]


def async_comprehensions():
    async def source(n):
        for i in range(n):
            await Pause(i)
            yield i

    async def double(x):
        return (await Pause(x)) or x * 2

    async def main():
        a = [x async for x in source(3)]
        b = {x: await double(x) async for x in source(2)}
        c = {await double(x) for x in range(3)}
        d = [x + y async for x in source(2) for y in range(2) if x or y]
        e = [v async for v in (await double(x) async for x in source(2))]
        f = [[y async for y in source(x)] for x in range(3)]
        return a, b, c, d, e, f

    out = drive(main())
    return len(out), out[-1]


def async_comprehension_error():
    async def source():
        yield 1
        yield 0

    async def main():
        return [1 // x async for x in source()]

    return where(lambda: main().send(None))


def nested_await_depth():
    async def down(n):
        if n == 0:
            return [await Pause("bottom")]
        return [n, *(await down(n - 1))]

    return drive(down(20), ["answer"])


def nested_await_traceback():
    async def down(n):
        if n == 0:
            await Pause(1)
            raise ArithmeticError("deep")
        return await down(
            n - 1
        )

    c = down(3)
    c.send(None)
    return where(c.send, None)


def cr_attributes():
    seen = []

    async def inner():
        seen.append((outer_c.cr_running, outer_c.cr_await is inner_c))
        await Pause(1)

    async def outer():
        await inner_c

    inner_c = inner()
    outer_c = outer()
    outer_c.send(None)
    seen.append((outer_c.cr_running, outer_c.cr_await is inner_c, outer_c.cr_suspended))
    seen.append(outer_c.cr_frame.f_lineno - outer.__code__.co_firstlineno)
    outer_c.close()
    seen.append((outer_c.cr_frame, outer_c.cr_await))
    return seen


def cr_origin_tracking():
    async def f():
        pass

    old = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(2)
    try:
        c = f()
        origin = [(name, line > 0) for _, line, name in c.cr_origin][:1]
        c.close()
    finally:
        sys.set_coroutine_origin_tracking_depth(old)
    return origin


def exc_info_in_coroutine():
    log = []

    async def main():
        log.append(handled())
        try:
            raise ValueError("own")
        except ValueError:
            await Pause(1)
            log.append(handled())
            await Pause(2)
        log.append(handled())

    c = main()
    c.send(None)
    try:
        raise KeyError("driver")
    except KeyError:
        c.send(None)
        log.append(handled())
    catch(c.send, None)
    return log


def finally_with_await():
    log = []

    async def main():
        try:
            try:
                await Pause("try")
            finally:
                log.append(handled())
                await Pause("finally")
                log.append(handled())
        except ValueError as e:
            log.append(text(e))
            await Pause("except")
        return "end"

    return drive(main(), [ValueError("v")]), log


def types_coroutine_decorated():
    @types.coroutine
    def wait(v):
        r = yield v
        return r

    async def main():
        return await wait(1), await wait(2)

    def not_decorated():
        yield 1

    async def bad():
        await not_decorated()

    return drive(main(), ["x", "y"]), catch(lambda: bad().send(None))


def await_in_expressions():
    async def v(x):
        return (await Pause(x)) or x

    async def main():
        a = await v(1) + await v(2) * await v(3)
        b = [await v("i"), *(await v([1, 2]))]
        c = {await v("k"): await v("w")}
        d = f"{await v('f')}-{(await v(1.5)):.2f}"
        e = await v(1) if await v(0) else await v("else")
        f = (await v("s"))[await v(0)]
        g = await v(1) < await v(2) < await v(2)
        return a, b, c, d, e, f, g

    out = drive(main())
    return out[:-1], out[-1]


def asyncio_run_basic():
    async def child(n):
        await asyncio.sleep(0)
        return n * n

    async def main():
        return await asyncio.gather(*(child(i) for i in range(4)))

    return asyncio.run(main())


def asyncio_tasks_interleave():
    log = []

    async def worker(name, steps):
        for i in range(steps):
            log.append((name, i))
            await asyncio.sleep(0)
        return name

    async def main():
        tasks = [asyncio.create_task(worker(n, s)) for n, s in (("a", 3), ("b", 1), ("c", 2))]
        return [await t for t in tasks]

    return asyncio.run(main()), log


def asyncio_exception_propagates():
    async def fail():
        await asyncio.sleep(0)
        raise LookupError("in task")

    async def main():
        t = asyncio.create_task(fail())
        try:
            await t
        except LookupError as e:
            first = text(e), [p[0] for p in places(e.__traceback__)]
        second = await asyncio.gather(fail(), asyncio.sleep(0, "ok"), return_exceptions=True)
        return first, text(second[0]), second[1]

    return asyncio.run(main())


def asyncio_cancel():
    log = []

    async def forever():
        try:
            while True:
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        finally:
            log.append("cleanup")

    async def main():
        t = asyncio.create_task(forever())
        await asyncio.sleep(0)
        t.cancel("why")
        try:
            await t
        except asyncio.CancelledError as e:
            log.append(("awaited", e.args))
        return t.cancelled()

    return asyncio.run(main()), log


def asyncio_queue_and_event():
    log = []

    async def producer(q, done):
        for i in range(4):
            await q.put(i)
            log.append(("put", i))
        done.set()

    async def consumer(q):
        while True:
            v = await q.get()
            log.append(("got", v))
            q.task_done()

    async def main():
        q, done = asyncio.Queue(maxsize=2), asyncio.Event()
        c = asyncio.create_task(consumer(q))
        await producer(q, done)
        await done.wait()
        await q.join()
        c.cancel()
        return await asyncio.gather(c, return_exceptions=True)

    return [type(x).__name__ for x in asyncio.run(main())], log


def asyncio_task_group():
    log = []

    async def work(n, fail=False):
        try:
            await asyncio.sleep(0)
            if fail:
                raise ValueError(n)
            await asyncio.sleep(0.001)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            log.append(("cancelled", n))
            raise

    async def main():
        try:
            async with asyncio.TaskGroup() as tg:
                tg.create_task(work(1))
                tg.create_task(work(2, fail=True))
        except* ValueError as eg:
            found = [text(e) for e in eg.exceptions]
        return found

    return asyncio.run(main()), log


def asyncio_timeout():
    async def main():
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            first = "timed out"
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except TimeoutError:
            return first, "timed out again"

    return asyncio.run(main())


def asyncio_uncaught():
    async def a():
        await b()

    async def b():
        await asyncio.sleep(0)
        return {}["missing"]

    return asyncio.run(a())


def async_exit_stack():
    log = []

    async def cb(n):
        log.append(("callback", n))

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            a = await stack.enter_async_context(AsyncManager(log, "a"))
            stack.push_async_callback(cb, 1)
            b = await stack.enter_async_context(AsyncManager(log, "b", swallow=True))
            log.append((a, b))
            raise ValueError("unwinds")
        return "after"

    return drive(main())[-1], log


def async_context_manager_decorator():
    log = []

    @contextlib.asynccontextmanager
    async def cm(name):
        log.append(f"enter {name}")
        try:
            yield await Pause(name)
        except ValueError as e:
            log.append(text(e))
        finally:
            log.append(f"exit {name}")

    async def main():
        async with cm("a") as v:
            log.append(v)
        async with cm("b"):
            raise ValueError("swallowed")
        async with cm("c"):
            raise KeyError("not swallowed")

    return drive(main(), ["va", "vb"]), log


def context_variables():
    import contextvars

    var = contextvars.ContextVar("var", default="default")
    log = []

    async def child(n):
        var.set(n)
        await asyncio.sleep(0)
        log.append((n, var.get()))

    async def main():
        await asyncio.gather(child(1), child(2))
        log.append(("main", var.get()))

    contextvars.copy_context().run(asyncio.run, main())
    return log, var.get()


def async_lambda_and_method():
    class C:
        def __init__(self, v):
            self.v = v

        async def get(self, *, plus=0):
            return self.v + (await Pause("get") or 0) + plus

        @classmethod
        async def make(cls, v):
            await Pause("make")
            return cls(v)

        @property
        async def prop(self):
            return await self.get(plus=100)

    async def main():
        c = await C.make(5)
        return await c.get(plus=1), await c.prop

    return drive(main(), [None, 10, 20])


def return_in_async_finally():
    async def main():
        for i in range(3):
            try:
                await Pause(i)
                raise ValueError("lost")
            finally:
                if i == 1:
                    return ("from finally", i)
                continue

    return drive(main())


def coroutine_wrapper_iteration():
    async def f():
        r = await Pause("x")
        return r

    w = f().__await__()
    seen = [type(w).__name__, next(w)]
    try:
        w.send("y")
    except StopIteration as stop:
        seen.append(stop.value)
    return seen, catch(next, w)


def throw_before_start():
    async def f():
        await Pause(1)

    c = f()
    return where(c.throw, ValueError("before start")), inspect.getcoroutinestate(c)


def unhandled_in_nested_async_with():
    log = []

    async def main():
        async with AsyncManager(log, "outer"):
            async with AsyncManager(log, "inner"):
                await Pause(1)
                (
                    1
                    / 0
                )

    c = main()
    try:
        while True:
            c.send(None)
    except ZeroDivisionError as e:
        return places(e.__traceback__), log
