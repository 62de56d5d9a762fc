"""Chained, grouped and annotated exceptions: context, cause, notes, except*, and the exact
lines and columns of tracebacks."""

import sys
import traceback

from probes import catch, handled, links, places, text, where


def implicit_context():
    try:
        try:
            raise ValueError("a")
        except ValueError:
            raise KeyError("b")
    except KeyError as e:
        return links(e)


def explicit_cause():
    try:
        try:
            raise ValueError("a")
        except ValueError as x:
            raise KeyError("b") from x
    except KeyError as e:
        return links(e), e.__context__ is e.__cause__


def suppressed():
    try:
        try:
            raise ValueError("a")
        except ValueError:
            raise KeyError("b") from None
    except KeyError as e:
        return links(e), repr(e.__context__)


def three_deep():
    try:
        try:
            try:
                raise ValueError("1")
            except ValueError:
                raise KeyError("2")
        except KeyError:
            raise IndexError("3")
    except IndexError as e:
        return links(e)


def context_from_callee():
    def callee():
        raise KeyError("callee")

    try:
        try:
            raise ValueError("caller")
        except ValueError:
            callee()
    except KeyError as e:
        return links(e)


def context_from_native_error():
    try:
        try:
            int("x")
        except ValueError:
            [][1]
    except IndexError as e:
        return links(e)


def context_cycle_is_broken():
    a, b = ValueError("a"), KeyError("b")
    try:
        try:
            raise a
        except ValueError:
            try:
                raise b
            except KeyError:
                raise a
    except ValueError as e:
        return text(e), repr(e.__context__), repr(b.__context__)


def raise_same_again():
    e = ValueError("same")
    out = []
    for _ in range(3):
        try:
            raise e
        except ValueError as x:
            out.append((x.__context__, len(places(x.__traceback__))))
    return out


def self_context():
    e = ValueError("self")
    try:
        try:
            raise e
        except ValueError:
            raise e
    except ValueError as x:
        return x.__context__


def context_set_by_hand():
    e = ValueError("e")
    e.__context__ = KeyError("k")
    e.__cause__ = IndexError("i")
    first = e.__suppress_context__
    try:
        raise e
    except ValueError as x:
        out = links(x), first
    return out, catch(setattr, e, "__cause__", 5), catch(setattr, e, "__context__", "x")


def context_not_set_after_handler_ends():
    try:
        raise ValueError("done")
    except ValueError:
        pass
    try:
        raise KeyError("fresh")
    except KeyError as e:
        return e.__context__


def context_in_finally_without_error():
    try:
        try:
            pass
        finally:
            raise KeyError("k")
    except KeyError as e:
        return e.__context__


def context_through_with():
    class M:
        def __enter__(self):
            pass

        def __exit__(self, *a):
            raise KeyError("exit")

    try:
        with M():
            raise ValueError("body")
    except KeyError as e:
        return links(e)


def context_in_del_of_local():
    log = []

    class D:
        def __del__(self):
            log.append(handled())
            try:
                raise KeyError("in del")
            except KeyError as e:
                log.append(repr(e.__context__))

    try:
        raise ValueError("outer")
    except ValueError:
        D()
        log.append(handled())
    return log


def notes():
    e = ValueError("v")
    e.add_note("one")
    try:
        raise e
    except ValueError as x:
        x.add_note("two")
        shown = traceback.format_exception_only(x)
        return x.__notes__, shown, catch(x.add_note, 5)


def format_chain():
    def f():
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError("wrapped") from e

    try:
        f()
    except ValueError:
        lines = traceback.format_exc().splitlines()
        return [line for line in lines if "File" not in line]


def columns_of_operators():
    a, b, z = 1, 2, 0

    def f():
        return a + b * (a // z) - b

    def g():
        return a.missing.other

    def h():
        return [a, b][
            a +
            b
        ]

    def k():
        return {"k": a}["k"]["x"]

    def m():
        return -"x" + a

    def n():
        return a < "x" < b

    def p():
        return a in b

    return [where(fn) for fn in (f, g, h, k, m, n, p)]


def columns_of_statements():
    class C:
        __slots__ = ()

    def attr():
        C().x = 1

    def item():
        (1, 2)[0] = 5

    def delete():
        del (1, 2)[0]

    def unpack():
        a, b = 1, 2, 3

    def augmented():
        x = [1]
        x[0] += "s"

    def loop():
        for _ in 5:
            pass

    def aug_attr():
        C().x += 1

    def imp():
        import no_such_module_here

    def frm():
        from sys import (
            path,
            no_such_name_here,
        )

    return [where(fn) for fn in (attr, item, delete, unpack, augmented, loop, aug_attr, imp, frm)]


def columns_of_calls():
    def boom(*a, **k):
        raise ValueError

    class C:
        def m(self, *a):
            raise ValueError

    c = C()

    def a():
        return boom(1)(2)

    def b():
        return c.m(
            1,
            2,
        )

    def d():
        return len(boom(*[1], **{}))

    def e():
        return (lambda: boom())()

    def f():
        return max([1, 2], key=c.m)

    return [where(fn) for fn in (a, b, d, e, f)]


def columns_of_fstrings():
    def a():
        return f"x {1 / 0} y"

    def b():
        return f"{5:bad}"

    def c():
        v = 3
        return f"{v!r:>{v.nope}}"

    return [where(fn)[0] for fn in (a, b, c)], [len(where(fn)[1]) for fn in (a, b, c)]


def columns_in_class_body():
    def f():
        class C:
            x = 1
            y = x / 0

        return C

    def g():
        class D(5):
            pass

    def h():
        class E(metaclass=lambda *a: 1 / 0):
            pass

    return where(f), where(g), where(h)


def columns_in_conditions():
    class B:
        def __bool__(self):
            raise ValueError("bool")

    b = B()

    def f():
        if b:
            pass

    def g():
        while not b:
            pass

    def h():
        return b and 1

    def k():
        return 1 if b else 2

    def m():
        assert b

    def n():
        return [1 for _ in "a" if b]

    return [where(fn) for fn in (f, g, h, k, m, n)]


def lasti_points_back_into_loop():
    def f():
        for i in range(3):
            x = 10 // (2 - i)
        return x

    return where(f)


def line_of_multiline_call():
    def f(*a):
        return a

    def g():
        return f(
            1,
            f(
                2,
                1 / 0,
            ),
        )

    return where(g)


def traceback_objects():
    def f():
        raise ValueError

    try:
        f()
    except ValueError as e:
        tb = e.__traceback__
        chain = []
        while tb:
            chain.append((tb.tb_frame.f_code.co_name, tb.tb_lineno == tb.tb_frame.f_lineno))
            tb = tb.tb_next
        return chain, sys.exc_info()[2] is e.__traceback__


def traceback_frame_locals():
    def f(a):
        b = a + 1
        raise ValueError(b)

    try:
        f(1)
    except ValueError as e:
        return dict(e.__traceback__.tb_next.tb_frame.f_locals)


def traceback_clear_frames():
    log = []

    class D:
        def __del__(self):
            log.append("gone")

    def f():
        d = D()
        raise ValueError

    try:
        f()
    except ValueError as e:
        traceback.clear_frames(e.__traceback__)
        log.append("cleared")
    return log


def traceback_extract_names():
    def a():
        b()

    def b():
        c()

    def c():
        raise ValueError

    try:
        a()
    except ValueError as e:
        stack = traceback.extract_tb(e.__traceback__)
        return [(s.name, s.line, s.colno, s.end_colno) for s in stack]


def walk_stack_names():
    def a():
        return b()

    def b():
        frames = [f for f, _ in traceback.walk_stack(sys._getframe())][:3]
        stack = traceback.StackSummary.extract((f, f.f_lineno) for f in frames)
        return [(s.name, s.line) for s in stack]

    return a()


def group_basic():
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), ValueError(3)])
    except* ValueError as e:
        log.append(("value", e.message, [text(x) for x in e.exceptions]))
    except* KeyError as e:
        log.append(("key", [text(x) for x in e.exceptions]))
    else:
        log.append("else")
    finally:
        log.append("finally")
    return log, handled()


def group_none_raised():
    log = []
    try:
        log.append("body")
    except* ValueError:
        log.append("no")
    else:
        log.append("else")
    finally:
        log.append("finally")
    return log


def group_unmatched_rest():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), IndexError(3)])
        except* ValueError:
            pass
    except ExceptionGroup as e:
        return e.message, [text(x) for x in e.exceptions], places(e.__traceback__), e.__context__


def group_nested_split():
    inner = ExceptionGroup("inner", [ValueError("a"), TypeError("b")])
    log = []
    try:
        try:
            raise ExceptionGroup("outer", [inner, ValueError("c"), OSError("d")])
        except* (ValueError, OSError) as e:
            log.append(repr(e))
    except ExceptionGroup as e:
        log.append(repr(e))
    return log


def group_naked_exception():
    try:
        raise ValueError("naked")
    except* ValueError as e:
        r = type(e).__name__, e.message, [text(x) for x in e.exceptions]
    return r


def group_raise_in_handler():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise IndexError("new")
    except ExceptionGroup as e:
        return e.message, [(text(x), repr(x.__context__)) for x in e.exceptions]


def group_raise_in_two_handlers():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), OSError(3)])
        except* ValueError:
            raise IndexError("from value")
        except* KeyError as e:
            raise TypeError("from key") from e
    except ExceptionGroup as e:
        return e.message, [text(x) for x in e.exceptions], repr(e.__context__)


def group_reraise():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), OSError(3)])
        except* ValueError:
            raise
        except* KeyError:
            pass
    except ExceptionGroup as e:
        return repr(e), places(e.__traceback__), [text(x) for x in e.exceptions]


def group_handled_per_clause():
    log = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError:
        log.append(repr(sys.exc_info()[1]))
    except* KeyError:
        log.append(repr(sys.exc_info()[1]))
    log.append(handled())
    return log


def group_variable_deleted():
    try:
        raise ExceptionGroup("g", [ValueError(1)])
    except* ValueError as e:
        kept = len(e.exceptions)
    return kept, catch(lambda: e), "e" in locals()


def group_bad_kinds():
    def f(kind):
        try:
            raise ExceptionGroup("g", [ValueError(1)])
        except* kind:
            pass

    return [where(f, k) for k in (ExceptionGroup, 5, (ValueError, ExceptionGroup), BaseExceptionGroup)]


def group_derive_subclass():
    class G(ExceptionGroup):
        def derive(self, excs):
            return G(self.message + "'", excs)

    try:
        try:
            raise G("g", [ValueError(1), KeyError(2)])
        except* KeyError as e:
            kept = type(e).__name__, e.message
    except G as e:
        return kept, type(e).__name__, e.message


def group_constructor_errors():
    return [
        catch(ExceptionGroup, "m"),
        catch(ExceptionGroup, "m", []),
        catch(ExceptionGroup, "m", [5]),
        catch(ExceptionGroup, 5, [ValueError()]),
        catch(ExceptionGroup, "m", [KeyboardInterrupt()]),
        type(BaseExceptionGroup("m", [ValueError()])).__name__,
    ]


def group_notes_and_cause_preserved():
    eg = ExceptionGroup("g", [ValueError(1), KeyError(2)])
    eg.add_note("note")
    try:
        try:
            raise eg from OSError("cause")
        except* ValueError as e:
            first = e.__notes__, repr(e.__cause__)
    except ExceptionGroup as e:
        return first, e.__notes__, repr(e.__cause__)


def group_in_loop_and_function():
    def f(kinds):
        out = []
        for k in kinds:
            try:
                raise ExceptionGroup("g", [k("x"), OSError("o")])
            except* OSError:
                out.append("os")
            except* ValueError:
                out.append("value")
            except* Exception as e:
                out.append(repr(e))
        return out

    return f([ValueError, KeyError, OSError])


def group_with_finally_return():
    def f():
        try:
            raise ExceptionGroup("g", [ValueError(1)])
        except* KeyError:
            pass
        finally:
            return "finally wins"

    return f(), handled()


def group_nested_try_star():
    log = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError as e:
            try:
                raise ExceptionGroup("h", [TypeError(3), OSError(4)]) from e
            except* TypeError as t:
                log.append(repr(t))
    except* OSError as e:
        log.append(repr(e))
    except* KeyError as e:
        log.append(repr(e))
    return log


def group_split_methods():
    eg = ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [KeyError(2), ValueError(3)])])
    log = []

    def cond(e):
        log.append(type(e).__name__)
        return isinstance(e, KeyError)

    match, rest = eg.split(cond)
    return repr(match), repr(rest), repr(eg.subgroup(ValueError)), log


def group_traceback_of_parts():
    def fail(n):
        raise ValueError(n)

    found = []
    for n in range(2):
        try:
            fail(n)
        except ValueError as e:
            found.append(e)
    try:
        raise ExceptionGroup("collected", found)
    except* ValueError as e:
        r = [places(x.__traceback__) for x in e.exceptions], places(e.__traceback__)
    return r


def uncaught_group():
    def fail(n):
        raise KeyError(n)

    errors = []
    for n in range(2):
        try:
            fail(n)
        except KeyError as e:
            errors.append(e)
    raise ExceptionGroup("all of them", [*errors, ExceptionGroup("sub", [ValueError("v")])])


def uncaught_group_rest():
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError:
        raise OSError("in handler")


def uncaught_chain():
    def low():
        return int("not a number")

    def middle():
        try:
            return low()
        except ValueError as e:
            raise LookupError("middle") from e

    try:
        middle()
    except LookupError:
        raise RuntimeError("top")
