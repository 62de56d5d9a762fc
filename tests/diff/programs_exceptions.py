"""Try statements: handlers, else, finally, every way to leave them, and what is being
handled at each point."""

import sys

from probes import Dying, catch, handled, places, text, where


def which_clause():
    def f(e):
        log = []
        try:
            log.append("try")
            if e is not None:
                raise e
        except (KeyError, IndexError) as x:
            log.append(("pair", type(x).__name__))
        except LookupError:
            log.append("lookup")
        except Exception as x:
            log.append(("any", text(x)))
        else:
            log.append("else")
        finally:
            log.append("finally")
        return log

    return [f(e) for e in (None, KeyError(1), IndexError, LookupError(), ValueError("v"))]


def else_raises():
    def f():
        try:
            pass
        except ValueError:
            return "wrong handler"
        else:
            raise ValueError("from else")
        finally:
            log.append("finally")

    log = []
    return where(f), log


def finally_overrides():
    def ret():
        try:
            return "try"
        finally:
            return "finally"

    def ret_error():
        try:
            raise ValueError
        finally:
            return "swallowed"

    def ret_in_except():
        try:
            raise ValueError
        except ValueError:
            return "except"
        finally:
            log.append("still runs")

    def brk():
        for i in range(3):
            try:
                raise ValueError(i)
            finally:
                break
        return i, handled()

    def cont():
        n = 0
        for i in range(3):
            try:
                raise ValueError(i)
            finally:
                n += 1
                continue
        return n, handled()

    def cont_return():
        for i in range(2):
            try:
                return "never"
            finally:
                continue
        return "after loop"

    log = []
    return ret(), ret_error(), ret_in_except(), brk(), cont(), cont_return(), log


def return_value_computed_before_finally():
    def f():
        x = 1
        try:
            return x
        finally:
            x = 2

    def g():
        x = []
        try:
            return x
        finally:
            x.append("finally")

    return f(), g()


def nested_finally_order():
    log = []

    def f(mode):
        try:
            try:
                try:
                    if mode == "raise":
                        raise ValueError(mode)
                    if mode == "return":
                        return mode
                finally:
                    log.append((1, handled()))
            except ValueError:
                log.append(("except", handled()))
                raise KeyError("second") from None
            finally:
                log.append((2, handled()))
        finally:
            log.append((3, handled()))
        return "end"

    return [catch(f, m) for m in ("raise", "return", "none")], log


def loops_with_try():
    log = []
    for i in range(6):
        try:
            if i == 1:
                continue
            if i == 2:
                raise ValueError(i)
            if i == 4:
                break
            log.append(("body", i))
        except ValueError:
            log.append(("except", i))
            continue
        else:
            log.append(("else", i))
        finally:
            log.append(("finally", i))
        log.append(("end", i))
    else:
        log.append("loop else")
    return log


def deep_nest_break_in_finally():
    log = []
    for a in range(3):
        for b in range(3):
            try:
                try:
                    try:
                        if (a, b) == (0, 1):
                            raise ValueError
                        if (a, b) == (1, 0):
                            continue
                        if (a, b) == (1, 1):
                            break
                        log.append((a, b))
                    finally:
                        log.append("f1")
                        if (a, b) == (2, 0):
                            break
                except ValueError:
                    log.append("caught")
                    continue
                finally:
                    log.append("f2")
            finally:
                log.append("f3")
        else:
            log.append(f"else {a}")
    return log, handled()


def while_try_else():
    log = []
    n = 3
    while n:
        n -= 1
        try:
            1 / n
        except ZeroDivisionError:
            log.append("zero")
            break
        else:
            log.append(n)
    else:
        log.append("unreached")
    return log


def exc_info_everywhere():
    log = []

    def f():
        log.append(handled())
        try:
            log.append(handled())
            raise ValueError("a")
        except ValueError:
            log.append(handled())
            try:
                raise KeyError("b")
            except KeyError:
                log.append(handled())
                g()
            log.append(handled())
        else:
            log.append("no")
        finally:
            log.append(handled())
        log.append(handled())

    def g():
        log.append(("in g", handled()))
        try:
            raise IndexError("c")
        except IndexError:
            log.append(("g handler", handled()))
        log.append(("g after", handled()))

    f()
    try:
        raise OSError("outer")
    except OSError:
        f()
        log.append(handled())
    log.append(handled())
    return log


def exc_info_after_return_in_handler():
    def f():
        try:
            raise ValueError("x")
        except ValueError:
            return handled()

    return f(), handled(), [f() for _ in range(3)], handled()


def exc_info_after_loop_exits_in_handler():
    log = []
    for i in range(3):
        try:
            raise ValueError(i)
        except ValueError:
            if i == 0:
                continue
            log.append(handled())
            break
    log.append(handled())
    while True:
        try:
            raise KeyError
        except KeyError:
            try:
                raise IndexError
            except IndexError:
                break
    log.append(handled())
    return log


def exc_info_tuple():
    try:
        raise ValueError("v")
    except ValueError as e:
        kind, value, tb = sys.exc_info()
        return kind is ValueError, value is e, tb is e.__traceback__, sys.exception() is e


def bare_raise():
    def f():
        try:
            1 / 0
        except ZeroDivisionError:
            raise

    def no_active():
        raise

    def in_callee():
        try:
            raise ValueError("original")
        except ValueError:
            helper()

    def helper():
        raise

    def in_finally():
        try:
            raise KeyError("f")
        finally:
            raise

    return where(f), where(no_active), where(in_callee), where(in_finally)


def reraise_after_nested():
    def f():
        try:
            raise ValueError("outer")
        except ValueError:
            try:
                raise KeyError("inner")
            except KeyError:
                pass
            raise

    return where(f)


def reraise_changes_traceback():
    def fail():
        raise ValueError("v")

    def f():
        try:
            fail()
        except ValueError as e:
            err = e
        raise err

    def g():
        try:
            f()
        except ValueError as e:
            raise e

    def h():
        try:
            f()
        except ValueError as e:
            raise e.with_traceback(None)

    return where(f), where(g), where(h)


def raise_forms():
    class E(Exception):
        def __init__(self, *a):
            super().__init__("made", *a)

    class NotReally(Exception):
        def __new__(cls):
            return 5

    class Fails(Exception):
        def __init__(self):
            raise RuntimeError("in init")

    def a():
        raise E

    def b():
        raise E(1)

    def c():
        raise 5

    def d():
        raise "text"

    def e():
        raise object

    def f():
        raise NotReally

    def g():
        raise Fails

    def h():
        raise None

    return [where(x) for x in (a, b, c, d, e, f, g, h)]


def raise_from_forms():
    class Fails(Exception):
        def __init__(self):
            raise RuntimeError("cause init")

    def a():
        raise ValueError from KeyError

    def b():
        raise ValueError from KeyError("c")

    def c():
        raise ValueError from None

    def d():
        raise ValueError from 5

    def e():
        raise ValueError from Fails

    def f():
        raise 5 from KeyError

    out = []
    for fn in (a, b, c, d, e, f):
        try:
            fn()
        except BaseException as exc:
            out.append((text(exc), repr(exc.__cause__), exc.__suppress_context__))
    return out


def match_errors():
    def bad(kind):
        try:
            raise ValueError("v")
        except kind:
            return "caught"

    return [
        where(bad, 5),
        where(bad, "ValueError"),
        where(bad, (ValueError, 5)),
        where(bad, (KeyError, 5)),
        where(bad, ((ValueError,),)),
        catch(bad, ()),
        catch(bad, (KeyError, ValueError)),
        catch(bad, object),
    ]


def match_error_context():
    try:
        try:
            raise ValueError("original")
        except 5:
            pass
    except TypeError as e:
        return text(e), repr(e.__context__), places(e.__traceback__)


def handler_expression_raises():
    def kinds():
        log.append(handled())
        raise KeyError("while matching")

    log = []
    try:
        try:
            raise ValueError("original")
        except kinds():
            log.append("no")
    except KeyError as e:
        return log, repr(e.__context__)


def handler_order_lazy():
    log = []

    def kind(k):
        log.append(k.__name__)
        return k

    try:
        raise IndexError
    except kind(KeyError):
        pass
    except kind(IndexError):
        log.append("hit")
    except kind(ValueError):
        pass
    return log


def subclass_check_hooks():
    log = []

    class Meta(type):
        def __instancecheck__(cls, x):
            log.append(("instance", cls.__name__))
            return False

        def __subclasscheck__(cls, x):
            log.append(("subclass", cls.__name__, x.__name__))
            return super().__subclasscheck__(x)

    class E(Exception, metaclass=Meta):
        pass

    class F(E):
        pass

    try:
        raise F("f")
    except E as e:
        return type(e).__name__, log


def exception_in_handler():
    def f():
        try:
            raise ValueError("first")
        except ValueError:
            raise KeyError("second")

    try:
        f()
    except KeyError as e:
        return repr(e.__context__), places(e.__traceback__), places(e.__context__.__traceback__)


def exception_in_finally():
    def f():
        try:
            raise ValueError("first")
        finally:
            {}["second"]

    try:
        f()
    except KeyError as e:
        return repr(e.__context__), places(e.__traceback__)


def name_of_exception_freed():
    log = []

    class E(Exception):
        def __del__(self):
            log.append("exception gone")

    try:
        raise E
    except E as e:
        log.append(type(e).__name__)
    log.append("after handler")
    return log


def exception_keeps_locals_alive():
    log = []

    def f():
        d = Dying(log, "local of f")
        raise ValueError(d.name)

    try:
        f()
    except ValueError as e:
        log.append(str(e))
    log.append("after")
    return log


def finally_runs_before_outer_except():
    log = []

    def inner():
        try:
            raise ValueError
        finally:
            log.append("inner finally")

    try:
        inner()
    except ValueError:
        log.append("outer except")
    finally:
        log.append("outer finally")
    return log


def system_exit_and_base():
    out = []
    for e in (SystemExit(3), KeyboardInterrupt(), GeneratorExit("g"), BaseException("b")):
        try:
            try:
                raise e
            except Exception:
                out.append("wrong")
            finally:
                out.append("finally")
        except BaseException as x:
            out.append((type(x).__name__, x.args, getattr(x, "code", None)))
    return out


def assert_statement():
    log = []

    def f(x, m=None):
        assert x, log.append("message") or m

    def g():
        assert 1 == 2

    def h():
        assert (
            False
        ), (
            "long"
        )

    return where(f, 0, "why"), f(1), where(g), where(h), log


def attribute_error_details():
    class C:
        pass

    c = C()
    try:
        c.missing
    except AttributeError as e:
        first = e.name, e.obj is c, str(e)
    try:
        None.foo.bar
    except AttributeError as e:
        return first, e.name, e.obj, str(e)


def import_error_details():
    try:
        from os import nothing_like_this
    except ImportError as e:
        first = e.name, e.name_from if hasattr(e, "name_from") else None
    try:
        import surely_not_a_module
    except ModuleNotFoundError as e:
        return first, e.name, str(e)


def key_error_repr():
    one, number = [1], 5
    return [catch(lambda k=k: {}[k]) for k in ("a", 1, (1, 2), None)], [
        catch(lambda: [][0]),
        catch(lambda: ()[5]),
        catch(lambda: ""[1]),
        catch(lambda: one["x"]),
        catch(lambda: number[0]),
    ]


def try_in_except_in_finally():
    log = []
    try:
        try:
            raise ValueError(1)
        finally:
            try:
                raise KeyError(2)
            except KeyError as e:
                log.append((text(e), repr(e.__context__)))
            log.append(handled())
    except ValueError as e:
        log.append((text(e), repr(e.__context__)))
    return log


def many_handlers():
    kinds = [type(f"E{i}", (Exception,), {}) for i in range(5)]
    a, b, c, d, e = kinds
    log = []
    for k in [*kinds, ValueError]:
        try:
            raise k(k.__name__)
        except a:
            log.append("a")
        except (b, c) as x:
            log.append(("bc", str(x)))
        except d:
            log.append("d")
        except e as x:
            log.append(("e", str(x)))
        except:
            log.append(("bare", handled()))
    return log


def deeply_nested_try():
    depth = 18
    lines = ["def f(n):", "    log = []"]
    for i in range(depth):
        lines.append("    " * (i + 1) + "try:")
    lines.append("    " * (depth + 1) + "raise ValueError(n)")
    for i in reversed(range(depth)):
        pad = "    " * (i + 1)
        lines += [f"{pad}except KeyError:", f"{pad}    pass"]
        lines += [f"{pad}finally:", f"{pad}    log.append({i})"]
    space = {}
    try:
        exec("\n".join(lines), space)
        space["f"](1)
    except ValueError as e:
        return text(e), len(places(e.__traceback__)), space["f"].__code__.co_stacksize
    except SyntaxError as e:
        return str(e)


def recursion_in_handlers():
    def f(n):
        try:
            if n == 0:
                raise ValueError("bottom")
            f(n - 1)
        except ValueError as e:
            raise KeyError(n) from e

    try:
        f(4)
    except KeyError as e:
        chain = []
        while e:
            chain.append((text(e), [p[:2] for p in places(e.__traceback__)]))
            e = e.__cause__
        return chain


def exception_with_slots_and_state():
    class E(Exception):
        def __init__(self, code, **extra):
            super().__init__(code)
            self.code = code
            self.extra = extra

        def __str__(self):
            return f"code {self.code}"

    try:
        raise E(5, a=1)
    except E as e:
        e.add_note("n1")
        e.add_note("n2")
        return str(e), e.extra, e.args, e.__notes__, repr(e)


def uncaught_with_notes():
    try:
        raise ValueError("noted")
    except ValueError as e:
        e.add_note("first note")
        e.add_note("second note")
        raise


def uncaught_multiline():
    values = {
        "a": [1, 2, 3],
    }
    return (
        values["a"][0]
        + values["a"][
            1
        ]
        + values["a"][7]
    )


def uncaught_in_finally_of_handler():
    try:
        try:
            raise ValueError("one")
        except ValueError:
            try:
                raise KeyError("two")
            finally:
                raise IndexError("three")
    finally:
        [].append(1)


def stop_iteration_outside_generators():
    def f():
        raise StopIteration("plain function")

    return where(f), catch(lambda: next(iter([]))), list(iter(f, None)) == []


def os_error_subclasses():
    out = []
    for n in (2, 13, 17, 20):
        try:
            raise OSError(n, "m", "file")
        except OSError as e:
            out.append((type(e).__name__, e.errno, e.strerror, e.filename, str(e)))
    return out


def unicode_errors():
    out = []
    for f in (lambda: "é".encode("ascii"), lambda: b"\xff".decode("utf-8")):
        try:
            f()
        except UnicodeError as e:
            out.append((type(e).__name__, e.start, e.end, e.reason))
    return out


def handler_with_walrus_and_match():
    try:
        if (n := 5) > 3:
            raise ValueError(n)
    except ValueError as e:
        match e:
            case ValueError(args=(k,)):
                return n, k


def generator_exit_not_exception():
    try:
        raise GeneratorExit
    except Exception:
        return "wrong"
    except BaseException as e:
        return type(e).__name__
