"""With statements: lookups, order, swallowing, and leaving the block by every way."""

import contextlib
import sys

from probes import Manager, catch, handled, places, text, where


def simple_order():
    log = []
    with Manager(log, "a") as a, Manager(log, "b") as b:
        log.append((a, b))
    return log


def parenthesised():
    log = []
    with (
        Manager(log, "a") as a,
        Manager(log, "b"),
        Manager(log, "c") as c,
    ):
        log.append((a, c))
    return log


def swallowed():
    log = []
    with Manager(log, "outer"):
        with Manager(log, "inner", swallow=True):
            raise ValueError("v")
        log.append(("after", handled()))
    return log


def not_swallowed():
    log = []

    def f():
        with Manager(log, "outer"), Manager(log, "inner"):
            raise ValueError("v")

    return where(f), log


def truthiness_of_exit():
    log = []

    class Odd:
        def __init__(self, result):
            self.result = result

        def __enter__(self):
            return self

        def __exit__(self, *a):
            return self.result

    class Truth:
        def __init__(self, v):
            self.v = v

        def __bool__(self):
            log.append("bool")
            if self.v is None:
                raise RuntimeError("bool failed")
            return self.v

    def f(result):
        with Odd(result):
            raise ValueError("v")
        return "went on"

    log.append([catch(f, r) for r in (1, 0, [], [0], "", "x", None)])
    log.append([catch(f, Truth(v)) for v in (True, False, None)])
    with Odd(Truth(None)):
        log.append("bool is not asked without an error")
    return log


def error_in_enter():
    log = []

    def f():
        with Manager(log, "a"), Manager(log, "b", fail_enter=OSError("enter b")), Manager(log, "c"):
            log.append("unreached")

    return where(f), log


def error_in_exit():
    log = []

    def clean():
        with Manager(log, "a", fail_exit=KeyError("exit")):
            log.append("body")

    def dirty():
        with Manager(log, "a", fail_exit=KeyError("exit")):
            raise ValueError("body")

    out = []
    for f in (clean, dirty):
        try:
            f()
        except KeyError as e:
            out.append((repr(e.__context__), places(e.__traceback__)))
    return out, log


def exit_replaces_then_swallowed():
    log = []
    with Manager(log, "outer", swallow=True):
        with Manager(log, "inner", fail_exit=KeyError("replaced")):
            raise ValueError("original")
    return log, handled()


def exit_reraises_same():
    class R:
        def __enter__(self):
            pass

        def __exit__(self, kind, e, tb):
            raise e

    def f():
        with R():
            raise ValueError("same")

    try:
        f()
    except ValueError as e:
        return places(e.__traceback__), e.__context__, e.__cause__


def return_inside():
    log = []

    def f():
        with Manager(log, "m"):
            return log.append("evaluating") or "value"

    def g():
        with Manager(log, "swallows", swallow=True):
            raise ValueError
        return "after"

    def h():
        for i in range(3):
            with Manager(log, i):
                if i == 1:
                    return i

    return f(), g(), h(), log


def break_continue_inside():
    log = []
    for i in range(5):
        with Manager(log, i):
            if i == 1:
                continue
            if i == 3:
                break
            log.append("body")
    else:
        log.append("not reached")
    while True:
        with Manager(log, "w"), Manager(log, "x"):
            break
    return log


def return_value_kept_when_exit_fails():
    log = []

    def f():
        with Manager(log, "m", fail_exit=ValueError("exit")):
            return "lost"

    return where(f), log


def missing_methods():
    class NoEnter:
        def __exit__(self, *a):
            pass

    class NoExit:
        def __enter__(self):
            pass

    class Async:
        async def __aenter__(self):
            pass

        async def __aexit__(self, *a):
            pass

    def f(x):
        with x:
            pass

    return [where(f, x) for x in (NoEnter(), NoExit(), Async(), 5, None)]


def lookup_on_type():
    class C:
        def __enter__(self):
            return "class enter"

        def __exit__(self, *a):
            return None

    c = C()
    c.__enter__ = lambda: "instance enter"
    c.__exit__ = lambda *a: 1 / 0
    with c as v:
        pass
    return v


def lookup_through_descriptors():
    log = []

    class D:
        def __init__(self, name):
            self.name = name

        def __get__(self, obj, owner):
            log.append((self.name, owner.__name__))
            return lambda *a: log.append((self.name, "called", len(a)))

    class C:
        __enter__ = D("enter")
        __exit__ = D("exit")

    with C():
        log.append("body")
    return log


def enter_is_static_or_class_method():
    log = []

    class C:
        @classmethod
        def __enter__(cls):
            log.append(cls.__name__)

        @staticmethod
        def __exit__(*a):
            log.append(len(a))

    with C():
        pass
    return log


def targets():
    class M:
        def __init__(self, v):
            self.v = v

        def __enter__(self):
            return self.v

        def __exit__(self, *a):
            return None

    class O:
        pass

    o, d = O(), {}
    with M(1) as o.x, M(2) as d["k"], M((3, [4, 5])) as (a, [b, *c]):
        pass
    return o.x, d, a, b, c


def target_error_runs_exit():
    log = []

    class M(Manager):
        def __enter__(self):
            super().__enter__()
            return (1, 2, 3)

    def f():
        with M(log, "m") as (a, b):
            log.append("unreached")

    return where(f), log


def exit_sees_exc_info():
    log = []

    class M:
        def __enter__(self):
            log.append(handled())

        def __exit__(self, kind, e, tb):
            log.append((handled(), sys.exc_info()[1] is e, e and e.__traceback__ is tb))
            return True

    with M():
        raise ValueError("a")
    log.append(handled())
    with M():
        pass
    try:
        raise KeyError("outer")
    except KeyError:
        with M():
            raise ValueError("b")
        log.append(handled())
    return log


def exit_traceback_lines():
    seen = []

    class M:
        def __enter__(self):
            return self

        def __exit__(self, kind, e, tb):
            seen.append(places(tb))
            return True

    def fail(n):
        raise ValueError(n)

    with M():
        fail(
            1
        )
    with M(), M():
        fail(2)
    return seen


def nested_deeply():
    log = []
    with Manager(log, 1):
        with Manager(log, 2):
            try:
                with Manager(log, 3):
                    with Manager(log, 4, swallow=True):
                        raise ValueError(4)
                    raise KeyError(3)
            except KeyError:
                log.append("caught")
            finally:
                log.append("finally")
    return log


def exit_stack():
    log = []

    def cb(*a, **k):
        log.append(("cb", a, k))

    with contextlib.ExitStack() as s:
        s.enter_context(Manager(log, "a"))
        s.callback(cb, 1, k=2)
        s.push(lambda *exc: log.append(exc[0] and exc[0].__name__))
        s.enter_context(Manager(log, "b", swallow=True))
        raise ValueError("v")
    return log


def exit_stack_errors_chain():
    log = []

    def fail(e):
        raise e

    try:
        with contextlib.ExitStack() as s:
            s.callback(fail, KeyError(1))
            s.enter_context(Manager(log, "m"))
            s.callback(fail, IndexError(2))
            raise ValueError(3)
    except KeyError as e:
        chain = []
        while e:
            chain.append(text(e))
            e = e.__context__
        return chain, log


def exit_stack_pop_all():
    log = []
    with contextlib.ExitStack() as s:
        s.enter_context(Manager(log, "kept"))
        kept = s.pop_all()
    log.append("stack left")
    kept.close()
    return log


def suppress_and_redirect():
    import io

    out = io.StringIO()
    with contextlib.suppress(KeyError, IndexError), contextlib.redirect_stdout(out):
        print("captured")
        [][1]
    with contextlib.nullcontext(5) as v:
        pass
    return out.getvalue(), v


def closing():
    log = []

    class R:
        def close(self):
            log.append("closed")

    with contextlib.closing(R()) as r:
        log.append(type(r).__name__)
    catch(lambda: contextlib.closing(R()).__exit__(None, None, None))
    return log


def context_decorator():
    log = []

    class CM(contextlib.ContextDecorator):
        def __enter__(self):
            log.append("enter")
            return self

        def __exit__(self, *a):
            log.append(a[0] and a[0].__name__)
            return a[0] is ValueError

    @CM()
    def f(x):
        log.append("body")
        if x:
            raise x
        return "value"

    return f(None), f(ValueError()), catch(f, KeyError("k")), log


def with_in_loop_with_try():
    log = []
    for i in range(4):
        try:
            with Manager(log, i, swallow=i == 2):
                if i:
                    raise ValueError(i)
                log.append("no error")
        except ValueError:
            log.append("except")
            continue
        else:
            log.append("else")
        finally:
            log.append("finally")
    return log


def exception_variable_inside_with():
    log = []
    try:
        with Manager(log, "m"):
            try:
                raise KeyError("inner")
            except KeyError as e:
                raise ValueError("outer") from e
    except ValueError as e:
        log.append((text(e.__cause__), e.__suppress_context__))
    return log


def manager_dies_when():
    log = []

    class M:
        def __enter__(self):
            return 1

        def __exit__(self, *a):
            log.append("exit")

        def __del__(self):
            log.append("manager gone")

    with M():
        log.append("body")
    log.append("after")
    try:
        with M():
            raise ValueError
    except ValueError:
        log.append("caught")
    return log


def lock_like():
    import threading

    lock = threading.Lock()
    with lock:
        inside = lock.locked()
    with _lock(lock):
        pass
    return inside, lock.locked()


@contextlib.contextmanager
def _lock(lock):
    lock.acquire()
    try:
        yield lock
    finally:
        lock.release()





def multiline_positions():
    log = []

    def f():
        with (
            Manager(log, "one")
            as a,
            Manager(
                log,
                "two",
                fail_enter=OSError("x"),
            ) as b,
        ):
            return a, b

    def g():
        with Manager(
            log,
            "three",
            fail_exit=OSError("y"),
        ):
            a = 1
            return a

    return where(f), where(g)


def uncaught_from_exit():
    log = []
    with Manager(log, "a", fail_exit=KeyError("exit a")):
        with Manager(log, "b", fail_exit=IndexError("exit b")):
            raise ValueError("body")
