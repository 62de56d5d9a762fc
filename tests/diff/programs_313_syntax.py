"""Python 3.13: defaults of type parameters, locals() by PEP 667, and exceptions that changed."""

import sys
import warnings

from probes import catch, places, text, where


def type_parameter_defaults():
    class C[T = int, **P = [int]]:
        pass

    def g[*Ts = *tuple[int, str]](): ...

    def f[T = str](x: T): ...

    type A[T = bytes] = list[T]
    t, p = C.__type_params__
    (ts,) = g.__type_params__
    return t.__default__, repr(ts.__default__), p.__default__, f.__type_params__[0].__default__, (
        A.__type_params__[0].__default__
    ), repr(C[str])


def type_parameter_default_is_lazy():
    log = []

    def note(v):
        log.append(v)
        return v

    def f[T = note(int), U: note(str) = note(bytes)](): ...

    before = list(log)
    t, u = f.__type_params__
    return before, t.has_default(), u.__default__, u.__bound__, log


def type_parameter_default_error():
    def f[T = undefined_default](): ...

    return where(lambda: f.__type_params__[0].__default__)


def no_default():
    import typing

    def f[T](): ...

    return f.__type_params__[0].__default__ is typing.NoDefault, f.__type_params__[0].has_default()


def frame_locals_write_through():
    def f():
        x = 1
        sys._getframe().f_locals["x"] = 2
        sys._getframe().f_locals["extra"] = 3
        return x, "extra" in sys._getframe().f_locals, sorted(locals())

    def g():
        y = 1

        def h():
            return y

        sys._getframe().f_locals["y"] = "cell"
        return y, h()

    return f(), g()


def caller_changes_locals():
    def poke(**kw):
        sys._getframe(1).f_locals.update(kw)

    def f():
        a = 1
        poke(a=5)
        b = a
        poke(b=[b])
        return a, b

    return f()


def frame_locals_proxy_protocol():
    def f(a):
        b = 2
        p = sys._getframe().f_locals
        return (
            type(p).__name__,
            sorted(k for k in p if k != "p"),
            p["a"],
            p.get("zz"),
            "b" in p,
            catch(lambda: p["nope"]),
            catch(lambda: p.pop("a")),
            catch(lambda: p.__delitem__("a")),
        )

    return f(1)


def locals_snapshots_are_independent():
    def f():
        x = 1
        a = locals()
        b = locals()
        a["x"] = "changed"
        x = 2
        return a is b, a["x"], b["x"], locals()["x"]

    return f()


def exec_does_not_leak_into_function():
    def f():
        x = 1
        exec("x = 2\ny = 3")
        return x, "y" in locals()

    def g():
        x = 1
        space = locals()
        exec("x = 5", globals(), space)
        return x, space["x"]

    return f(), g()


def comprehension_locals():
    def f():
        a = 1
        return [dict(locals()) for b in "x"], a

    return f()


def class_static_attributes():
    class C:
        def __init__(self):
            self.a = 1

        def f(self):
            self.b = self.c = 2
            other.d = 3

    return sorted(C.__static_attributes__), type(C.__firstlineno__).__name__


def docstrings_are_dedented():
    def f():
        """First.

        Indented body.
            More.
        """

    return f.__doc__


def python_finalization_error():
    return issubclass(PythonFinalizationError, RuntimeError)


def exception_group_except_star_positions():
    def f():
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise OSError("replaced")

    try:
        f()
    except ExceptionGroup as e:
        return [text(x) for x in e.exceptions], places(e.__traceback__)


def generator_close_value():
    def g():
        try:
            yield 1
        except GeneratorExit:
            return "closed value"

    def h():
        return (yield from g())

    a, b = g(), h()
    next(a)
    next(b)
    return a.close(), b.close(), g().close()


def replace_protocol():
    import copy

    class P:
        def __init__(self, x):
            self.x = x

        def __replace__(self, **kw):
            return P(**{"x": self.x, **kw})

    return copy.replace(P(1), x=2).x, catch(copy.replace, 5)


def deprecated_decorator():
    @warnings.deprecated("use something else")
    def old(x):
        return x

    @warnings.deprecated("class is old")
    class C:
        pass

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        r = old(1), type(C()).__name__
    return r, [(str(w.message), w.lineno) for w in seen]


def error_suggestions():
    class C:
        attribute = 1

    def f(parameter=1):
        pass

    return catch(lambda: C().atribute), catch(lambda: f(paramter=1)), catch(lambda: f(1, parameter=2))


def uncaught_from_default():
    def f[T = 1 / 0](): ...

    return f.__type_params__[0].__default__
