"""Functions whose frames test_images.py takes and puts back at every boundary. Each gets a list for
its side effects; what it returns, raises and logs must not depend on who runs it."""

import contextlib
import functools
import sys


def opaque(function):
    """Called through C code, so that its own boundaries are not counted, whatever it returns: it
    looks at frames, and a frame that is put back has another object."""
    return functools.partial(function)


@opaque
def stack():
    """The frames of this file, innermost first, as (name, line)."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == __file__:
            found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found


@opaque
def caller():
    """Name, locals and caller of the frame below the one that asks."""
    frame = sys._getframe(2)
    return frame.f_code.co_name, sorted(frame.f_locals), frame.f_back.f_code.co_name


@opaque
def handling():
    """What is being handled, and in whose frame it was raised."""
    exception = sys.exception()
    if exception is None:
        return None
    return repr(exception), exception.__traceback__.tb_frame.f_code.co_name


class Note:
    """A context manager and an operand that tells what is done with it."""

    def __init__(self, log, name, swallow=()):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append(f"enter {self.name}")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append((f"exit {self.name}", repr(value), traceback and traceback.tb_lineno))
        return kind is not None and issubclass(kind, self.swallow)

    def __add__(self, other):
        self.log.append(f"{self.name} + {other}")
        return Note(self.log, f"({self.name}+{other})")

    def __repr__(self):
        return self.name


# -- calls ----------------------------------------------------------------------------------


def add(log, a, b=10, *rest, c=100, **named):
    log.append(("add", a, b, rest, c, sorted(named)))
    return a + b + sum(rest) + c + sum(named.values())


def nested_calls(log):
    return add(log, add(log, 1, 2), add(log, add(log, 3), 4, c=5))


def star_calls(log):
    def args():
        log.append("args")
        yield from (1, 2, 3)

    named = {"c": 4, "d": 5}
    first = add(log, *args())
    second = add(log, *args(), **named)
    third = add(log, 1, *[2], *(3, 4), e=6, **{"c": 7})
    return first, second, third


def keyword_calls(log):
    total = add(log, 1, c=2)
    total += add(log, a=1, b=2, x=3, y=add(log, 4, c=0))
    return max([3, 1, 2], key=lambda x: -x), sorted(["b", "a"], reverse=True), total


def half_evaluated(log):
    """Arguments stand on the stack while others are still being made."""
    one = Note(log, "one")
    return [one, (one + 1, {"k": [one + 2, add(log, 3)]}, *[one + 4]), {add(log, 5): one + 6}]


def methods(log):
    class Base:
        def run(self, n):
            log.append(("base", n))
            return n

    class Derived(Base):
        step: int = 2

        def run(self, n):
            return super().run(n + self.step) * 2

        @property
        def size(self):
            return self.run(1)

        @classmethod
        def make(cls, *args):
            log.append(cls.__name__)
            return cls()

    made = Derived.make(1)
    bound = made.run
    return made.run(1), bound(2), Derived.run(made, 3), made.size


# -- handlers -------------------------------------------------------------------------------


def nested_handlers(log):
    try:
        try:
            log.append(handling())
            raise KeyError("inner")
        except KeyError as first:
            log.append(handling())
            try:
                raise ValueError("while handling") from first
            except ValueError as second:
                log.append(handling())
                try:
                    log.append("third")
                finally:
                    log.append(handling())
                kept = second.__cause__ is first, second.__context__ is first
            log.append(handling())
            raise
        finally:
            log.append(("finally", handling()))
    except KeyError as last:
        result = kept, repr(last), last.__traceback__.tb_lineno
    else:
        log.append("not here")
    log.append(handling())
    return result


def leaves_by_exception(log):
    try:
        with Note(log, "manager"):
            for n in range(3):
                try:
                    log.append(n)
                    1 / (1 - n)
                finally:
                    log.append(("finally", n, handling()))
    finally:
        log.append(handling())


def returns_from_finally(log):
    for n in range(2):
        try:
            try:
                raise ValueError(n)
            except ValueError:
                if n == 1:
                    return "from except"
                continue
        finally:
            log.append(("finally", n, handling()))
    return "not here"


def fails_deeper(log):
    def bottom(n):
        log.append(stack())
        raise IndexError(n)

    def middle(n):
        try:
            return bottom(n)
        except IndexError as error:
            log.append(handling())
            error.add_note("seen in middle")
            raise RuntimeError("from middle") from error

    try:
        return middle(1)
    except RuntimeError as error:
        log.append((repr(error.__cause__), error.__cause__.__notes__, handling()))
        raise


def called_while_handling(log):
    def callee():
        log.append(handling())
        try:
            raise TypeError("callee's")
        except TypeError as error:
            log.append((handling(), repr(error.__context__)))
        log.append(handling())
        return 1

    try:
        raise ValueError("caller's")
    except ValueError:
        result = callee() + callee()
        log.append(handling())
    return result


def groups(log):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
        except* ValueError as caught:
            log.append((repr(caught), handling()[0]))
        except* TypeError as caught:
            log.append((repr(caught), handling()[0]))
            raise OSError(4)
    except ExceptionGroup as rest:
        return repr(rest)


def managers(log):
    with Note(log, "a") as a, Note(log, "b", ValueError) as b:
        log.append(repr(a + b))
        with contextlib.suppress(KeyError):
            raise KeyError(1)
        raise ValueError("swallowed by b")
    with contextlib.ExitStack() as exits:
        exits.callback(log.append, "callback")
        exits.enter_context(Note(log, "c"))
        log.append("inside")
    return log[-1]


# -- scopes ---------------------------------------------------------------------------------


def comprehensions(log):
    size = 3
    rows = [[add(log, x, y, c=size) for y in range(2)] for x in range(2) if x or size]
    table = {k: [size, *v] for k, v in enumerate(rows)}
    return rows, table, {x % 2 for x in range(size)}, sum(x * size for x in range(3))


def closures(log):
    count = 0

    def up(by=1):
        nonlocal count
        count += by
        log.append(count)
        return count

    def both():
        return up(), up(10), count

    first = both()
    count *= 2
    return first, both(), count, up.__closure__[0] is both.__closure__[0]


def class_body(log):
    outer = "outer"

    class Made:
        name = outer + " inner"
        log.append(sorted(k for k in locals() if not k.startswith("__")))
        values = [outer for _ in range(2)]

        def __init_subclass__(cls, **named):
            log.append((cls.__name__, named))

        def get(self):
            return __class__.__name__, self.name

    class Other(Made, extra=1):
        pass

    return Made.values, Other().get(), outer


def strings(log):
    one, width = Note(log, "one"), 8
    text = f"<{one + 1!r:>{width}}|{add(log, 1):x}|{'=' * 3}{width=}>"
    return text + "{} {k}".format(one, k=add(log, 2)) + "%s" % (one + 2,)


def unpacking(log):
    first, (second, *middle), last = 1, "abcd", {"k": 1}
    a, *b = middle
    log.append((first, second, a, tuple(b)))
    (lambda *args, **named: log.append((args, named)))(*b, **last)
    del first
    while (n := len(b)) < 3:
        b.append(n)
    return [*b, *last], {**last, "j": second}


def matches(log):
    for subject in ({"kind": 1, "rest": 2}, [1, 2, 3], 1 + 0j, Note(log, "note")):
        match subject:
            case {"kind": 1, **rest}:
                log.append(rest)
            case [int(), x, *more] if x:
                log.append((x, more))
            case complex(real=r, imag=0.0):
                log.append(r)
            case Note(name=name):
                log.append(name)


def frames(log):
    def inner():
        log.append(stack())
        return caller()

    def middle(n):
        return inner() if n == 0 else middle(n - 1)

    log.append(stack())
    return (lambda: inner())(), middle(2), inner()[0]


def generators(log):
    def count(n):
        try:
            for i in range(n):
                got = yield i
                log.append(("got", got))
        finally:
            log.append("closed")
        return n

    def delegate():
        log.append((yield from count(2)))

    counter = count(5)
    first = next(counter), counter.send("x")
    counter.close()
    return first, list(delegate()), [x for x in count(1)]


def imports(log):
    import os.path as path
    from collections import OrderedDict

    assert path.join("a", "b"), log
    return OrderedDict(a=1), eval("1 + x", {"x": 2})


# -- for tests of one thing -----------------------------------------------------------------


def asked(them):
    them.append("asked")
    return "unasked"


def asks(log, answer=asked):
    """Waits for an answer in a nest of handlers."""
    try:
        with Note(log, "manager"):
            try:
                got = [1, answer(log)]
            except ValueError as error:
                log.append((handling(), error.__traceback__.tb_lineno))
                got = ["handled"]
            finally:
                log.append(("finally", handling()))
    except KeyError as error:
        log.append(repr(error))
        raise RuntimeError("from asks") from error
    return got


def asks_for_two(log, answer=asked):
    """The frame that waits is itself called by one that waits."""
    try:
        return "outer", asks(log, answer)
    finally:
        log.append(("outer finally", handling()))


def asks_in_handler(log, answer=asked):
    try:
        raise OSError("being handled")
    except OSError:
        got = answer(log)
        log.append(handling())
    return got, handling()


def small(a, b):
    """Its images are kept in golden/images."""
    try:
        c = [a, double(b, by=2)]
        return {}[c[1]]
    except KeyError as error:
        return f"{a} {error!r:>14}"


def double(x, by):
    return x * by
