"""Small helpers that the programs of this folder share: they turn exceptions, frames and
coroutines into plain data that two runs can be compared by."""

import sys


def places(tb):
    """The entries of a traceback as (function, line, column, end line, end column)."""
    found = []
    while tb is not None:
        code = tb.tb_frame.f_code
        position = list(code.co_positions())[tb.tb_lasti // 2]
        found.append((code.co_name, tb.tb_lineno, *position))
        tb = tb.tb_next
    return found


def text(exc):
    return f"{type(exc).__name__}: {exc}"


def catch(fn, *args, **kwargs):
    """What a call gives: its value, or the text of its exception."""
    try:
        return fn(*args, **kwargs)
    except Exception as exc:
        return text(exc)


def where(fn, *args, **kwargs):
    """The text of the exception that a call raises, and where it passed through."""
    try:
        fn(*args, **kwargs)
    except BaseException as exc:
        return text(exc), places(exc.__traceback__)
    return None


def links(exc):
    """The chain of an exception: text, then how it hangs on to the next one."""
    found = []
    seen = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        found.append((text(exc), exc.__suppress_context__, len(places(exc.__traceback__))))
        if exc.__cause__ is not None:
            found.append("cause")
            exc = exc.__cause__
        else:
            found.append("context")
            exc = exc.__context__
    return found


def handled():
    """The exception being handled where this is called, as text."""
    exc = sys.exc_info()[1]
    return None if exc is None else text(exc)


def drive(coro, answers=()):
    """Run a coroutine by hand: what it awaited, then how it ended. An answer that is an
    exception is thrown in."""
    seen = []
    answers = iter(answers)
    answer = None
    try:
        while True:
            if isinstance(answer, BaseException):
                seen.append(coro.throw(answer))
            else:
                seen.append(coro.send(answer))
            answer = next(answers, None)
    except StopIteration as stop:
        seen.append(("returned", stop.value))
    except Exception as exc:
        seen.append(text(exc))
    return seen


class Pause:
    """An awaitable that gives one value to the driver and returns what the driver sends."""

    def __init__(self, value):
        self.value = value

    def __await__(self):
        got = yield self.value
        return got


class Dying:
    """Writes its name into a list when it goes."""

    def __init__(self, log, name):
        self.log = log
        self.name = name

    def __del__(self):
        self.log.append(f"del {self.name}")

    def __repr__(self):
        return f"<{self.name}>"


class Manager:
    """A context manager that writes down what happens to it."""

    def __init__(self, log, name, swallow=False, fail_enter=None, fail_exit=None):
        self.log = log
        self.name = name
        self.swallow = swallow
        self.fail_enter = fail_enter
        self.fail_exit = fail_exit

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        if self.fail_enter:
            raise self.fail_enter
        return self.name

    def __exit__(self, kind, exc, tb):
        shown = None if exc is None else text(exc)
        self.log.append((f"exit {self.name}", kind and kind.__name__, shown, tb is not None))
        if self.fail_exit:
            raise self.fail_exit
        return self.swallow


class AsyncManager(Manager):
    """The same, for async with; it also pauses in both methods."""

    async def __aenter__(self):
        await Pause(f"pause enter {self.name}")
        return self.__enter__()

    async def __aexit__(self, kind, exc, tb):
        await Pause(f"pause exit {self.name}")
        return self.__exit__(kind, exc, tb)
