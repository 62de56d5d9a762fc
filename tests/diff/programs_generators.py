"""Generators: send, throw and close in every state, yield from, finalisation, and what
they do to the exception being handled."""

import contextlib
import gc
import inspect
import sys
import types

from probes import Dying, Manager, catch, handled, places, text, where


def simple():
    def g(n):
        i = 0
        while i < n:
            yield i
            i += 1
        return "done"

    it = g(3)
    out = [next(it), next(it), next(it)]
    return out, catch(next, it), catch(next, it), list(g(4))


def return_value():
    def g():
        yield 1
        return {"answer": 42}

    it = g()
    next(it)
    try:
        next(it)
    except StopIteration as stop:
        return stop.value, stop.args


def send_values():
    def echo():
        got = []
        x = yield "ready"
        while x is not None:
            got.append(x)
            x = yield len(got), x
        return got

    it = echo()
    r = [it.send(None), it.send("a"), it.send(5)]
    try:
        it.send(None)
    except StopIteration as stop:
        r.append(stop.value)
    return r, catch(it.send, 1)


def send_to_fresh():
    def g():
        yield 1

    it = g()
    return catch(it.send, 5), next(it), it.gi_frame is not None


def states():
    seen = []

    def g():
        seen.append(inspect.getgeneratorstate(it))
        yield 1
        seen.append((it.gi_running, it.gi_suspended))
        yield 2

    it = g()
    seen.append(inspect.getgeneratorstate(it))
    next(it)
    seen.append(inspect.getgeneratorstate(it))
    list(it)
    seen.append(inspect.getgeneratorstate(it))
    return seen, it.gi_frame


def already_executing():
    def g():
        r = catch(next, it)
        s = catch(it.send, None)
        t = catch(it.throw, ValueError)
        u = catch(it.close)
        yield r, s, t, u

    it = g()
    return next(it)


def throw_in_fresh():
    def g():
        yield 1

    it = g()
    r = where(it.throw, ValueError("early"))
    return r, catch(next, it), it.gi_frame


def throw_caught():
    def g():
        log = []
        while True:
            try:
                x = yield log
                log = [("sent", x)]
            except ValueError as e:
                log = [("value error", str(e))]
            except KeyError as e:
                log = [("key error", e.args)]

    it = g()
    next(it)
    return it.throw(ValueError("a")), it.send(1), it.throw(KeyError(1, 2)), it.throw(ValueError)


def throw_uncaught():
    def g():
        yield 1
        yield 2

    it = g()
    next(it)
    return where(it.throw, LookupError("gone")), catch(next, it)


def throw_in_finished():
    def g():
        yield 1

    it = g()
    list(it)
    return where(it.throw, LookupError("late")), catch(it.close)


def throw_bad_arguments():
    def g():
        yield 1

    return [
        catch(g().throw, 5),
        catch(g().throw, "text"),
        catch(g().throw),
        catch(g().throw, object),
        catch(g().throw, ValueError, ValueError("v"), 7),
        catch(g().throw, ValueError("v"), 3),
    ]


def throw_with_value_and_traceback():
    def g():
        try:
            yield 1
        except ValueError as e:
            yield e.args, places(e.__traceback__)

    try:
        1 / 0
    except ZeroDivisionError as e:
        tb = e.__traceback__
    it = g()
    next(it)
    return it.throw(ValueError("carried").with_traceback(tb))


def close_states():
    log = []

    def g(name):
        try:
            yield 1
        except GeneratorExit:
            log.append(f"{name} exit")
            raise
        finally:
            log.append(f"{name} finally")

    fresh = g("fresh")
    fresh.close()
    begun = g("begun")
    next(begun)
    begun.close()
    begun.close()
    ended = g("ended")
    list(ended)
    ended.close()
    return log, catch(next, fresh), catch(next, begun)


def close_ignored():
    def g():
        while True:
            try:
                yield 1
            except GeneratorExit:
                pass

    def h():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    def stop():
        try:
            yield 1
        except GeneratorExit:
            return "swallowed"

    def other():
        try:
            yield 1
        finally:
            raise KeyError("from finally")

    out = []
    keep = []
    for make in (g, h, stop, other):
        it = make()
        keep.append(it)
        next(it)
        out.append(catch(it.close))
    out.append(catch(keep[0].throw, LookupError("past")))
    return out


def close_returns_value():
    def g():
        try:
            yield 1
        except GeneratorExit:
            return "value"

    it = g()
    next(it)
    return it.close() if sys.version_info >= (3, 13) else it.close() is None


def stop_iteration_inside():
    def g():
        yield 1
        raise StopIteration("inner")

    def h():
        yield next(iter(()))

    def k():
        try:
            yield 1
        except ValueError:
            raise StopIteration(5) from None

    it = k()
    next(it)
    out = []
    for fn in (lambda: list(g()), lambda: list(h()), lambda: it.throw(ValueError)):
        try:
            fn()
        except RuntimeError as e:
            out.append((text(e), repr(e.__cause__), repr(e.__context__), places(e.__traceback__)))
    return out


def throw_stop_iteration():
    def g():
        try:
            yield 1
        except StopIteration as e:
            yield ("caught", e.value)

    a, b = g(), g()
    next(a)
    return a.throw(StopIteration(3)), catch(b.throw, StopIteration(4))


def yield_from_values():
    def inner(n):
        got = []
        for i in range(n):
            got.append((yield i))
        return got

    def outer():
        a = yield from inner(2)
        b = yield from [10, 20]
        c = yield from "xy"
        return a, b, c

    it = outer()
    seen = [next(it), it.send("p"), it.send("q"), catch(it.send, None)]
    try:
        while True:
            seen.append(next(it))
    except StopIteration as stop:
        return seen, stop.value


def yield_from_send_to_plain_iterator():
    def outer():
        yield from [1, 2]

    it = outer()
    next(it)
    return catch(it.send, "no send on a list")


def yield_from_throw():
    def inner():
        try:
            yield 1
        except ValueError as e:
            yield f"inner {e}"
        return "inner result"

    def outer():
        r = yield from inner()
        yield r

    it = outer()
    next(it)
    return it.throw(ValueError("v")), next(it), catch(it.throw, KeyError("k"))


def yield_from_throw_uncaught():
    def inner():
        yield 1

    def outer():
        try:
            yield from inner()
        except LookupError as e:
            yield text(e), places(e.__traceback__)

    it = outer()
    next(it)
    return it.throw(LookupError("thrown"))


def yield_from_close():
    log = []

    def inner():
        try:
            yield 1
        finally:
            log.append("inner closed")

    def outer():
        try:
            yield from inner()
        finally:
            log.append("outer closed")

    it = outer()
    next(it)
    it.close()
    return log


def yield_from_custom_iterator():
    log = []

    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            log.append("iter")
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration("result")
            return self.n

        def send(self, v):
            log.append(("send", v))
            return self.__next__()

        def throw(self, *args):
            log.append(("throw", len(args), getattr(args[0], "__name__", text(args[0]))))
            return "from throw"

        def close(self):
            log.append("close")

    def outer():
        return (yield from It())

    a = outer()
    out = [next(a), a.send("x"), a.throw(ValueError("v")), next(a)]
    try:
        next(a)
    except StopIteration as stop:
        out.append(stop.value)
    b = outer()
    next(b)
    b.close()
    return out, log


def yield_from_iterator_without_throw():
    class It:
        def __iter__(self):
            return self

        def __next__(self):
            return 1

    def outer():
        yield from It()

    a, b = outer(), outer()
    next(a)
    next(b)
    return where(a.throw, ValueError("v")), catch(b.close), catch(next, b)


def yield_from_bad_close():
    class It:
        def __iter__(self):
            return self

        def __next__(self):
            return 1

        def close(self):
            raise RuntimeError("close failed")

    def outer():
        try:
            yield from It()
        except RuntimeError as e:
            yield text(e), text(e.__context__) if e.__context__ else None

    def plain():
        yield from It()

    a, b = outer(), plain()
    next(a)
    next(b)
    return catch(a.throw, GeneratorExit), catch(b.close)


def yield_from_not_iterable():
    def g():
        yield from 5

    def h():
        yield from None

    return where(lambda: list(g())), where(lambda: list(h()))


def yield_from_exhausted_immediately():
    def empty():
        return "quick"
        yield

    def outer():
        yield (yield from empty())

    return list(outer())


def yield_from_self():
    def g():
        yield from it

    it = g()
    return where(next, it)


def yield_from_depth():
    def g(n):
        if n == 0:
            x = yield "bottom"
            return [x]
        r = yield from g(n - 1)
        return [n, *r]

    it = g(30)
    first = next(it)
    try:
        it.send("sent")
    except StopIteration as stop:
        return first, stop.value


def yield_from_depth_error():
    def g(n):
        if n == 0:
            yield 1
            raise ValueError("deep")
        yield from g(n - 1)

    it = g(5)
    next(it)
    return where(next, it)


def yield_from_attribute():
    def inner():
        yield 1

    def outer():
        yield 0
        yield from sub

    sub = inner()
    it = outer()
    before = it.gi_yieldfrom
    next(it)
    middle = it.gi_yieldfrom
    next(it)
    inside = it.gi_yieldfrom is sub
    list(it)
    return before, middle, inside, it.gi_yieldfrom


def shared_delegate():
    sub = iter([1, 2, 3, 4])

    def outer():
        yield from sub

    a, b = outer(), outer()
    return next(a), next(b), next(a), next(b), catch(next, a)


def generator_in_try_finally():
    log = []

    def g():
        for i in range(3):
            try:
                yield i
            finally:
                log.append(f"finally {i}")
        log.append("end")

    for v in g():
        log.append(v)
        if v == 1:
            break
    gc.collect()
    return log


def exc_info_is_separate():
    log = []

    def g():
        log.append(("g start", handled()))
        try:
            raise ValueError("in g")
        except ValueError:
            log.append(("g handler", handled()))
            yield 1
            log.append(("g resumed", handled()))
        log.append(("g after", handled()))
        yield 2

    it = g()
    next(it)
    log.append(("outside", handled()))
    try:
        raise KeyError("outer")
    except KeyError:
        log.append(("outer handler", handled()))
        next(it)
        log.append(("outer still", handled()))
    return log


def exc_info_seen_by_fresh_generator():
    log = []

    def g():
        while True:
            log.append(handled())
            yield

    it = g()
    next(it)
    try:
        raise ValueError("one")
    except ValueError:
        next(it)
        try:
            raise KeyError("two")
        except KeyError:
            next(it)
        next(it)
    next(it)
    return log


def context_of_exception_raised_in_generator():
    def g():
        try:
            yield 1
        finally:
            raise ValueError("from generator")

    it = g()
    next(it)
    try:
        try:
            raise KeyError("outer")
        except KeyError:
            it.throw(LookupError("thrown"))
    except ValueError as e:
        chain = []
        while e is not None:
            chain.append(text(e))
            e = e.__context__
        return chain


def reraise_in_generator():
    def g():
        try:
            1 / 0
        except ZeroDivisionError:
            yield "in handler"
            raise

    it = g()
    next(it)
    try:
        raise KeyError("unrelated")
    except KeyError:
        return where(next, it)


def bare_raise_sees_callers_exception():
    def g():
        yield 1
        raise

    it = g()
    next(it)
    try:
        raise KeyError("callers")
    except KeyError:
        r = where(next, it)
    other = g()
    next(other)
    return r, where(next, other)


def finalised_when_dropped():
    log = []

    def g(name):
        try:
            yield 1
            yield 2
        finally:
            log.append(f"{name} finalised")

    it = g("a")
    next(it)
    log.append("before del")
    del it
    log.append("after del")
    for _ in g("loop"):
        break
    log.append("after loop")
    g("fresh")
    log.append("fresh dropped")
    return log


def finalised_with_yield():
    def g():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    it = g()
    next(it)
    del it
    return "unraisable"


def finalised_with_error():
    def g():
        try:
            yield 1
        finally:
            raise ValueError("while dying")

    it = g()
    next(it)
    try:
        raise KeyError("handled meanwhile")
    except KeyError:
        del it
        return handled()


def finalised_in_cycle():
    log = []

    def g():
        me = [None]
        me[0] = it
        try:
            yield me
        finally:
            log.append("cycle finalised")

    it = g()
    next(it)
    del it
    gc.collect()
    log.append("collected")
    return log


def locals_die_at_end():
    log = []

    def g():
        a = Dying(log, "a")
        b = Dying(log, "b")
        yield a.name
        del a
        yield b.name

    it = g()
    log.append(next(it))
    log.append(next(it))
    log.append(catch(next, it))
    log.append("exhausted")
    return log


def locals_die_on_close():
    log = []

    def g(p):
        q = Dying(log, "q")
        yield p.name, q.name

    it = g(Dying(log, "p"))
    log.append(next(it))
    it.close()
    log.append("closed")
    return log


def temporaries_across_yield():
    log = []

    def g():
        r = [Dying(log, "first"), (yield 1), Dying(log, "last")]
        return len(r)

    it = g()
    next(it)
    it.close()
    log.append("closed with stack")
    it = g()
    next(it)
    log.append(catch(it.send, "x"))
    return log


def yield_in_expressions():
    def g():
        a = 1 + (yield "a") * 2
        b = [(yield "b"), (yield "c")]
        c = {(yield "k"): (yield "v")}
        d = (lambda x, y: (x, y))((yield "x"), y=(yield "y"))
        e = f"{(yield 'f')!r:>5}"
        return a, b, c, d, e

    it = g()
    seen = [next(it)]
    try:
        for i in range(20):
            seen.append(it.send(i))
    except StopIteration as stop:
        return seen, stop.value


def yield_in_conditions():
    def g():
        while (yield "more?"):
            if (yield "odd?") and (yield "sure?"):
                continue
            yield "not odd" if (yield "say?") else "quiet"

    it = g()
    out = [next(it)]
    for v in (1, 1, 1, 1, 0, 1, None, 0):
        try:
            out.append(it.send(v))
        except StopIteration:
            out.append("stop")
            break
    return out


def yield_with_star_calls():
    def f(*a, **k):
        return a, sorted(k.items())

    def g():
        return f(*(yield 1), 5, **(yield 2), z=(yield 3))

    it = g()
    next(it)
    it.send([1, 2])
    it.send({"a": 1})
    try:
        it.send(9)
    except StopIteration as stop:
        return stop.value


def generator_expression_send_and_close():
    log = []

    def say(x):
        log.append(x)
        return x

    g = (say(x) for x in range(5))
    first = next(g), g.send(None), g.send("ignored")
    g.close()
    return first, catch(next, g), log


def infinite_with_islice():
    from itertools import islice, takewhile

    def primes():
        found = []
        n = 2
        while True:
            if all(n % p for p in found):
                found.append(n)
                yield n
            n += 1

    return list(islice(primes(), 12)), list(takewhile(lambda p: p < 20, primes()))


def pipeline():
    def source(n):
        yield from range(n)

    def scale(it, k):
        for v in it:
            yield v * k

    def pairs(it):
        it = iter(it)
        for a in it:
            yield a, next(it, None)

    return list(pairs(scale(source(7), 3)))


def recursive_tree_walk():
    def walk(t, depth=0):
        if isinstance(t, list):
            for c in t:
                yield from walk(c, depth + 1)
        else:
            yield depth, t

    return list(walk([1, [2, [3, 4], 5], [[6]]]))


def context_manager_generator():
    log = []

    @contextlib.contextmanager
    def cm(name):
        log.append(f"enter {name}")
        try:
            yield name
        except ValueError as e:
            log.append(f"swallow {e}")
        finally:
            log.append(f"leave {name}")

    with cm("a") as v:
        log.append(v)
    with cm("b"):
        raise ValueError("inside")
    try:
        with cm("c"), cm("d"):
            raise KeyError("through")
    except KeyError as e:
        log.append([p[0] for p in places(e.__traceback__)])
    return log


def context_manager_generator_misused():
    @contextlib.contextmanager
    def twice():
        yield 1
        yield 2

    @contextlib.contextmanager
    def never():
        return
        yield

    @contextlib.contextmanager
    def yields_on_error():
        try:
            yield
        except ValueError:
            yield

    @contextlib.contextmanager
    def replaces():
        try:
            yield
        except ValueError as e:
            raise KeyError("replaced") from e

    def use(make, err=None):
        with make():
            if err:
                raise err

    return [
        where(use, twice),
        catch(use, never),
        catch(use, yields_on_error, ValueError("v")),
        where(use, replaces, ValueError("v")),
        catch(use, replaces, StopIteration("s")),
    ]


def with_inside_generator():
    log = []

    def g():
        with Manager(log, "m") as m:
            yield m
            yield "second"
        log.append("left")

    it = g()
    log.append(next(it))
    it.close()
    it = g()
    next(it)
    log.append(catch(it.throw, LookupError("x")))
    log.append(list(g()))
    return log


def manager_swallows_generator_exit():
    log = []

    def g():
        with Manager(log, "m", swallow=True):
            yield 1
        yield "went on"

    it = g()
    next(it)
    r = catch(it.close)
    it = g()
    next(it)
    return r, it.throw(ValueError("v")), log


def break_out_of_nested_generators():
    log = []

    def g(n):
        try:
            for i in range(3):
                yield n, i
        finally:
            log.append(f"close {n}")

    for a in g("outer"):
        for b in g("inner"):
            if b[1] == 1:
                break
            log.append((a, b))
        if a[1] == 1:
            break
    return log


def generator_as_argument_raises():
    def g():
        yield 1
        raise ArithmeticError("midway")

    return (
        where(list, g()),
        where(lambda: sum(g())),
        where(lambda: [*g()]),
        where(lambda: dict(g())),
        where(lambda: "".join(str(x) for x in g())),
    )


def unpack_generator():
    def g(n):
        yield from range(n)

    def bad(n):
        a, b = g(n)
        return a, b

    a, b, *c = g(5)
    return a, b, c, catch(bad, 1), catch(bad, 2), catch(bad, 3)


def next_with_default():
    def g():
        yield 1

    it = g()
    return next(it, "d"), next(it, "d"), next(it, None)


def gi_code_and_frame():
    def g(a):
        b = a
        yield b
        b += 1
        yield b

    it = g(5)
    code = it.gi_code is g.__code__
    lines = [it.gi_frame.f_lineno - code_line for code_line in [g.__code__.co_firstlineno]]
    next(it)
    lines.append(it.gi_frame.f_lineno - g.__code__.co_firstlineno)
    seen = dict(it.gi_frame.f_locals)
    next(it)
    lines.append(it.gi_frame.f_lineno - g.__code__.co_firstlineno)
    return code, lines, seen, it.__name__, it.__qualname__


def frame_back_of_generator():
    def g():
        yield sys._getframe(1).f_code.co_name
        yield sys._getframe(1).f_code.co_name

    def caller_one(it):
        return next(it)

    def caller_two(it):
        return next(it)

    it = g()
    return caller_one(it), it.gi_frame.f_back, caller_two(it)


def clear_suspended_frame():
    log = []

    def g():
        d = Dying(log, "local")
        try:
            yield d.name
        finally:
            log.append("finally")

    it = g()
    next(it)
    r = catch(it.gi_frame.clear)
    return r, log, catch(next, it) if sys.version_info < (3, 13) else None


def method_and_lambda_generators():
    class C:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            for i in range(self.n):
                yield self, i

    f = lambda: (yield 5)
    it = f()
    return [i for _, i in C(3)], next(it), catch(it.send, "back"), isinstance(f(), types.GeneratorType)


def coroutine_style_accumulator():
    def averager():
        total, n, avg = 0, 0, None
        while True:
            try:
                v = yield avg
            except ValueError:
                total, n, avg = 0, 0, "reset"
                continue
            total += v
            n += 1
            avg = total / n

    it = averager()
    next(it)
    return it.send(10), it.send(20), it.throw(ValueError()), it.send(4), it.send(8)


def types_coroutine():
    @types.coroutine
    def g():
        x = yield 1
        return x

    async def main():
        return await g()

    c = main()
    first = c.send(None)
    try:
        c.send("sent")
    except StopIteration as stop:
        return first, stop.value


def generator_with_many_locals_and_cells():
    def g(a, *args, k=1, **kw):
        def peek():
            return a, args, k, kw

        while True:
            cmd = yield peek()
            if cmd is None:
                return
            a, k = cmd

    it = g(1, 2, 3, k=4, z=5)
    return next(it), it.send((10, 40)), it.send((11, 41)), catch(it.send, None)


def copy_and_pickle_fail():
    import copy
    import pickle

    def g():
        yield

    return catch(copy.copy, g()), catch(pickle.dumps, g())


def exception_traceback_grows_per_resume():
    def inner():
        yield 1
        raise OSError("boom")

    def middle():
        try:
            yield from inner()
        except OSError as e:
            saved = e
        yield 2
        raise saved

    it = middle()
    next(it)
    next(it)
    return where(next, it)


def generator_closed_during_handling():
    log = []

    def g():
        try:
            yield 1
        except GeneratorExit:
            log.append(handled())
            try:
                raise KeyError("inner")
            except KeyError:
                log.append(handled())
            log.append(handled())

    it = g()
    next(it)
    try:
        raise ValueError("outer")
    except ValueError:
        it.close()
        log.append(handled())
    return log


def zip_of_generators_closes():
    log = []

    def g(name, n):
        try:
            for i in range(n):
                yield i
        finally:
            log.append(f"end {name}")

    r = list(zip(g("short", 1), g("long", 5)))
    log.append("zipped")
    return r, log


def yield_inside_except_star():
    def g():
        try:
            raise ExceptionGroup("eg", [ValueError(1), KeyError(2)])
        except* ValueError as e:
            yield [text(x) for x in e.exceptions]
        except* KeyError as e:
            yield [text(x) for x in e.exceptions]
        yield handled()

    return list(g())


def uncaught_from_generator_chain():
    def a():
        yield from b()

    def b():
        for x in c():
            yield x * 2

    def c():
        yield 1
        yield {}["missing"]

    return list(a())
