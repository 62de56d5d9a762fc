"""Asynchronous generators: asend, athrow, aclose in every state, finalisation hooks, and
how they nest with the code that drives them."""

import asyncio
import gc
import sys

from probes import Dying, Pause, catch, drive, handled, places, text, where


def _collect(agen, answers=()):
    async def main():
        return [x async for x in agen]

    return drive(main(), answers)


def basic():
    async def g(n):
        for i in range(n):
            yield i

    return _collect(g(4))


def with_awaits():
    async def g():
        a = await Pause("one")
        yield a
        b = await Pause("two")
        yield b
        yield await Pause("three")

    return _collect(g(), ["A", "B", "C"])


def asend():
    async def g():
        got = []
        x = yield "ready"
        while x:
            got.append(x)
            x = yield list(got)

    async def main():
        it = g()
        out = [await it.asend(None), await it.asend("a"), await it.asend("b")]
        try:
            await it.asend(None)
        except StopAsyncIteration as e:
            out.append(repr(e))
        try:
            await it.__anext__()
        except StopAsyncIteration:
            out.append("still ended")
        return out

    return drive(main())


def asend_to_fresh():
    async def g():
        yield 1

    return catch(lambda: g().asend(5).send(None))


def athrow():
    log = []

    async def g():
        while True:
            try:
                yield len(log)
            except ValueError as e:
                log.append(text(e))
                await Pause("recovering")
            finally:
                log.append("finally")

    async def main():
        it = g()
        await it.asend(None)
        a = await it.athrow(ValueError("x"))
        try:
            await it.athrow(KeyError("y"))
        except KeyError as e:
            b = text(e), places(e.__traceback__)
        try:
            await it.__anext__()
        except StopAsyncIteration:
            return a, b, "ended"

    return drive(main()), log


def athrow_into_fresh_and_finished():
    async def g():
        yield 1

    async def main():
        out = []
        it = g()
        try:
            await it.athrow(LookupError("fresh"))
        except LookupError as e:
            out.append((text(e), places(e.__traceback__)))
        it = g()
        async for _ in it:
            pass
        try:
            out.append(await it.athrow(LookupError("finished")))
        except LookupError as e:
            out.append(text(e))
        except StopAsyncIteration as e:
            out.append(repr(e))
        return out

    return drive(main())


def aclose_states():
    log = []

    async def g(name):
        try:
            yield 1
            yield 2
        except GeneratorExit:
            log.append((name, "exit", handled()))
            raise
        finally:
            await Pause(f"closing {name}")
            log.append((name, "finally"))

    async def main():
        fresh = g("fresh")
        await fresh.aclose()
        begun = g("begun")
        await begun.asend(None)
        await begun.aclose()
        await begun.aclose()
        ended = g("ended")
        got = [x async for x in ended]
        await ended.aclose()
        return got

    return drive(main()), log


def aclose_ignored():
    async def g():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    async def h():
        try:
            yield 1
        finally:
            await Pause("await in finally is fine")

    async def main():
        a = g()
        await a.asend(None)
        out = []
        try:
            await a.aclose()
        except RuntimeError as e:
            out.append(text(e))
        b = h()
        await b.asend(None)
        out.append(await b.aclose())
        return out

    return drive(main())


def stop_iteration_inside():
    async def g():
        yield 1
        raise StopIteration("a")

    async def h():
        yield 1
        raise StopAsyncIteration("b")

    async def main(make):
        try:
            async for _ in make():
                pass
        except RuntimeError as e:
            return text(e), repr(e.__cause__), places(e.__traceback__)

    return drive(main(g)), drive(main(h))


def exhausted_forever():
    async def g():
        yield 1

    async def main():
        it = g()
        out = [await anext(it), await anext(it, "default")]
        try:
            await anext(it)
        except StopAsyncIteration:
            out.append("stop")
        return out

    return drive(main())


def overlapping_asend():
    async def g():
        await Pause("inside")
        yield 1

    it = g()
    a = it.asend(None)
    first = a.send(None)
    b = it.asend(None)
    c = it.aclose()
    r = first, catch(b.send, None), catch(c.send, None)
    a.close()
    return r


def reused_asend_object():
    async def g():
        yield 1
        yield 2

    it = g()
    a = it.asend(None)
    first = catch(a.send, None)
    return first, catch(a.send, None), catch(a.throw, ValueError("v"))


def abandoned_in_loop():
    log = []

    async def g():
        try:
            for i in range(5):
                yield i
        finally:
            log.append("finalised")

    async def main():
        it = g()
        async for v in it:
            if v == 2:
                break
        log.append("after break")
        await it.aclose()
        return v

    return drive(main()), log


def finaliser_hooks():
    log = []

    def first(agen):
        log.append(("first", agen.__name__))

    def last(agen):
        log.append(("last", agen.__name__))
        catch(agen.aclose().send, None)

    async def g():
        try:
            yield 1
        finally:
            log.append("inner finally")

    async def main():
        it = g()
        await it.asend(None)
        del it
        gc.collect()
        return "dropped"

    old = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(first, last)
    try:
        r = drive(main())
    finally:
        sys.set_asyncgen_hooks(*old)
    return r, log


def dropped_without_hook():
    log = []

    async def g():
        d = Dying(log, "local")
        yield d.name

    async def main():
        it = g()
        r = await it.asend(None)
        del it
        log.append("dropped")
        return r

    return drive(main()), log


def asyncio_shuts_down_generators():
    log = []

    async def g():
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            log.append("cleaned by loop")

    keep = []

    async def main():
        it = g()
        keep.append(it)
        return await it.__anext__()

    return asyncio.run(main()), log


def async_generator_expression():
    async def src(n):
        for i in range(n):
            await Pause(i)
            yield i

    async def main():
        e = (x * 10 async for x in src(4) if x % 2)
        kind = type(e).__name__
        return kind, [v async for v in e]

    return drive(main())[-1]


def chained_generators():
    async def numbers(n):
        for i in range(n):
            yield i

    async def squares(src):
        async for v in src:
            yield v * v

    async def pairs(src):
        prev = None
        async for v in src:
            yield prev, v
            prev = v

    return _collect(pairs(squares(numbers(4))))


def chain_error_traceback():
    async def numbers():
        yield 1
        await Pause("p")
        raise ArithmeticError("source")

    async def doubled(src):
        async for v in src:
            yield v * 2

    async def main():
        async for _ in doubled(numbers()):
            pass

    c = main()
    c.send(None)
    return where(c.send, None)


def exc_info_separate():
    log = []

    async def g():
        try:
            raise ValueError("agen")
        except ValueError:
            yield 1
            log.append(handled())
        log.append(handled())
        yield 2

    async def main():
        it = g()
        await anext(it)
        log.append(handled())
        try:
            raise KeyError("main")
        except KeyError:
            await anext(it)
            log.append(handled())

    return drive(main()), log


def yield_in_async_with():
    log = []

    class CM:
        async def __aenter__(self):
            log.append("enter")

        async def __aexit__(self, kind, e, tb):
            log.append(("exit", kind and kind.__name__))
            await Pause("exit")

    async def g():
        async with CM():
            yield 1
            yield 2

    async def main():
        it = g()
        a = await anext(it)
        await it.aclose()
        b = [x async for x in g()]
        return a, b

    return drive(main()), log


def attributes():
    async def g():
        yield 1

    it = g()
    seen = [it.__name__, it.ag_running, it.ag_await, it.ag_frame.f_lineno > 0]
    seen.append(it.ag_code is g.__code__)
    a = it.asend(None)
    seen.append(type(a).__name__)
    catch(a.send, None)
    seen.append(it.ag_frame.f_lineno - g.__code__.co_firstlineno)
    return seen, catch(iter, it), catch(lambda: drive(it.__anext__()))


def throw_into_awaiting_generator():
    async def g():
        try:
            await Pause("awaiting")
        except ValueError as e:
            yield text(e), places(e.__traceback__)

    async def main():
        return [x async for x in g()]

    return drive(main(), [ValueError("thrown by driver")])


def return_without_value_and_empty():
    async def g(n):
        if n == 0:
            return
        yield n
        return

    async def main():
        return [x async for x in g(0)], [x async for x in g(7)]

    return drive(main())


def yield_none_and_exceptions_as_values():
    async def g():
        yield None
        yield StopAsyncIteration
        yield ValueError("just a value").args
        yield (yield "nested")

    return _collect(g())


def async_for_else_and_nested():
    log = []

    async def g(name, n):
        try:
            for i in range(n):
                yield f"{name}{i}"
        finally:
            log.append(f"end {name}")

    async def main():
        async for a in g("a", 3):
            async for b in g("b", 2):
                if a == "a1":
                    break
                log.append((a, b))
            else:
                log.append("else")
                continue
            log.append("broke")
        return "done"

    return drive(main()), log


def finally_awaits_after_error():
    log = []

    async def g():
        try:
            yield 1
            raise OSError("body")
        finally:
            log.append(handled())
            await Pause("cleanup")
            log.append(handled())

    async def main():
        async for v in g():
            log.append(v)

    return drive(main()), log


def asyncio_producer():
    async def ticks(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def main():
        a, b = ticks(3), ticks(3)
        out = []
        async for x in a:
            out.append((x, await anext(b)))
        return out

    return asyncio.run(main())


def aclose_while_handling():
    log = []

    async def g():
        try:
            yield 1
        except GeneratorExit:
            log.append(handled())
            raise ValueError("instead") from None

    async def main():
        it = g()
        await anext(it)
        try:
            raise KeyError("outer")
        except KeyError:
            try:
                await it.aclose()
            except ValueError as e:
                log.append((text(e), e.__suppress_context__, repr(e.__context__)))
            log.append(handled())

    return drive(main()), log


def uncaught():
    async def g():
        yield 1
        raise LookupError("uncaught in async generator")

    async def main():
        async for _ in g():
            await asyncio.sleep(0)

    return asyncio.run(main())
