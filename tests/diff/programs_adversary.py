"""Programs made against frames that are stopped and put back: writes, aliases, exceptions, finalizers,
weak references, generators, closures, managers and class bodies around a print, which breaks."""

import collections
import contextlib
import functools
import itertools
import logging
import sys
import traceback
import types
import warnings
import weakref

from probes import catch, places

# -- writes and aliases -----------------------------------------------------------------------


class Box:
    def __init__(self, **state):
        self.__dict__.update(state)


OUTSIDE = Box()


def _fresh():
    OUTSIDE.__dict__.clear()
    OUTSIDE.items = [1, 2, 3]
    OUTSIDE.table = {"a": 1, "b": 2}
    OUTSIDE.alias = OUTSIDE.items
    return OUTSIDE


def alias_written_on_both_sides():
    box = _fresh()
    box.items.append(4)
    print(box.alias)
    box.alias.append(5)
    print(box.items is box.alias, box.items)
    box.items = box.items + [6]
    return box.items, box.alias, box.items is box.alias


def alias_made_by_a_break():
    a, b = [], []
    holder = {"x": a}
    print(len(holder))
    holder["y"] = holder["x"]
    holder["x"].append(1)
    print(holder["y"])
    holder["y"] = b
    holder["y"].append(2)
    return a, b, holder, holder["x"] is a, holder["y"] is b


def key_set_again_under_an_iterator():
    d = {0: 0, 1: 1}
    out = []

    def spin():
        for k in d:
            out.append(k)
            print(k)
            del d[1]
            d[1] = 1
            if len(out) > 10:
                break

    return catch(spin), out, d


def value_changed_under_an_iterator():
    d = {"a": 1, "b": 2, "c": 3}
    out = []
    for k, v in d.items():
        d[k] = v * 10
        print(k)
        d[k] += 1
        out.append((k, v))
    return out, d


def tuples_out_of_a_set():
    s = {(1, 2), (3, 4)}
    first = sorted(s)
    print(len(first))
    second = sorted(s)
    copy = sorted(s.copy())
    print(len(second))
    return [a is b for a, b in zip(first, second)], [a is b for a, b in zip(first, copy)]


def tuples_out_of_keys():
    d = {(1, "x"): 1, frozenset([2]): 2}
    keys = list(d)
    print(len(keys))
    again = list(d)
    popped = [d.popitem()[0], d.popitem()[0]]
    print(len(d))
    return [a is b for a, b in zip(keys, again)], [a is b for a, b in zip(keys, reversed(popped))]


def swap_through_cells():
    x, y = [1], [2]

    def swap():
        nonlocal x, y
        x, y = y, x
        print(x)
        x, y = y, x
        x.append(0)

    swap()
    swap()
    return x, y


def default_that_is_shared():
    def f(x, seen=[]):  # noqa: B006
        seen.append(x)
        print(x)
        seen.append(-x)
        return seen

    a, b = f(1), f(2)
    return a is b, a, f.__defaults__[0] is a


def slots_and_dict():
    class A:
        __slots__ = ("x", "__dict__")

    a = A()
    a.x = 1
    a.y = 2
    print(a.x)
    a.x, a.y = a.y, a.x
    del a.x
    print(a.y)
    a.z = 3
    return catch(lambda: a.x), vars(a)


def list_sorted_while_it_breaks():
    xs = [3, 1, 2]

    def key(v):
        print(v, len(xs))
        return v

    xs.sort(key=key)
    ys = sorted(xs, key=lambda v: -v)
    return xs, ys


def augmented_targets():
    log = []

    class Thing:
        def __init__(self):
            self.parts = [0, 0]

        def __getitem__(self, i):
            print("get", i)
            return self.parts[i]

        def __setitem__(self, i, v):
            log.append((i, v))
            print("set", i)
            self.parts[i] = v

    t = Thing()
    t[0] += 1
    t[1] -= t[0]
    t[0], t[1] = t[1], t[0]
    return log, t.parts


def attribute_of_a_temporary():
    def make():
        b = Box(v=[1])
        print("made")
        return b

    make().v.append(2)
    x = make().v
    x += [3]
    return x


def global_written_around():
    global _number
    _number = 1
    print(_number)
    _number += 1

    def bump():
        global _number
        _number *= 10
        print(_number)
        _number += 1

    bump()
    value = _number
    del _number
    return value, catch(lambda: _number)


# -- exceptions -------------------------------------------------------------------------------


def through_three_frames():
    log = []

    def inner(n):
        try:
            print("in", n)
            return 1 // n
        finally:
            log.append(("inner", n))

    def middle(n):
        try:
            return inner(n) + 1
        except TypeError:
            log.append("never")
        finally:
            print("middle")
            log.append(("middle", n))

    def outer(n):
        try:
            return middle(n)
        except ZeroDivisionError as e:
            log.append(places(e.__traceback__))
            print("caught")
            return str(e)

    return outer(1), outer(0), log


def context_chain_across_breaks():
    def f():
        try:
            raise KeyError("a")
        except KeyError:
            print("first")
            try:
                raise ValueError("b")
            except ValueError:
                print("second")
                raise OSError("c") from None

    try:
        f()
    except OSError as e:
        first = e
    return first.__context__, first.__context__.__context__, first.__suppress_context__


def return_in_finally():
    def f(x):
        try:
            print("try")
            if x:
                raise ValueError(x)
            return "value"
        finally:
            print("finally")
            if x == 2:
                return "swallowed"

    return f(0), catch(f, 1), f(2)


def continue_in_finally():
    out = []
    for i in range(4):
        try:
            print(i)
            if i % 2:
                raise KeyError(i)
        except KeyError as e:
            out.append(e.args)
            continue
        else:
            out.append(i)
        finally:
            print("f", i)
            out.append(-i)
    return out


def reraise_after_a_break():
    def f():
        try:
            raise ValueError("x")
        except ValueError as e:
            print("look")
            e.seen = True
            raise

    try:
        f()
    except ValueError as e:
        return e.seen, places(e.__traceback__)


def exception_kept_and_raised_later():
    kept = []

    def f():
        try:
            [][1]
        except IndexError as e:
            kept.append(e)
        print("later")
        raise kept[0]

    try:
        f()
    except IndexError as e:
        return e is kept[0], places(e.__traceback__)


def exception_name_is_unbound():
    try:
        raise ValueError
    except ValueError as e:
        print(type(e).__name__)
    return catch(lambda: e)  # noqa: F821


def raise_in_a_stepped_callee():
    class Bad:
        def __len__(self):
            print("len")
            raise RuntimeError("no length")

        def __bool__(self):
            print("bool")
            raise LookupError("no truth")

    out = []
    for f in (len, bool, list):
        try:
            out.append(f(Bad()))
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out


def sys_exc_info_between():
    def look():
        print("look")
        return sys.exc_info()[0], sys.exc_info()[1] and sys.exc_info()[1].args

    out = [look()]
    try:
        raise KeyError(1)
    except KeyError:
        out.append(look())
        try:
            raise ValueError(2)
        except ValueError:
            out.append(look())
        out.append(look())
    out.append(look())
    return out


def group_across_breaks():
    out = []
    try:
        print("go")
        raise ExceptionGroup(
            "g", [ValueError(1), TypeError(2), ExceptionGroup("h", [ValueError(3)])]
        )
    except* ValueError as e:
        print("values")
        out.append([type(x).__name__ for x in e.exceptions])
    except* TypeError as e:
        print("types")
        out.append([x.args for x in e.exceptions])
    return out


def assertion_with_a_message_that_breaks():
    def message():
        print("message")
        return "bad"

    def f(x):
        assert x, message()
        return x

    return f(1), catch(f, 0)


# -- managers ---------------------------------------------------------------------------------


def managers_in_a_stack():
    log = []

    @contextlib.contextmanager
    def m(name, swallow=False):
        log.append(("enter", name))
        print("enter", name)
        try:
            yield name
        except KeyError as e:
            log.append((name, e.args))
            print("swallow", name)
            if not swallow:
                raise
        finally:
            log.append(("exit", name))
            print("exit", name)

    with contextlib.ExitStack() as stack:
        a = stack.enter_context(m("a", True))
        b = stack.enter_context(m("b"))
        print(a, b)
        raise KeyError("x")
    return log


def exit_sees_state_of_the_body():
    seen = []

    class M:
        def __init__(self, box):
            self.box = box

        def __enter__(self):
            print("enter")
            return self.box

        def __exit__(self, kind, value, tb):
            print("exit")
            seen.append((list(self.box), kind and kind.__name__))
            self.box.append("exit")
            return kind is ValueError

    xs = []
    with M(xs) as ys:
        ys.append(1)
        print("body")
        ys.append(2)
    with M(xs):
        xs.append(3)
        raise ValueError(print("raising"))
    return xs, seen


def manager_around_a_loop_that_returns():
    log = []

    class M:
        def __enter__(self):
            log.append("in")

        def __exit__(self, *a):
            print("out")
            log.append("out")

    def f(n):
        for i in range(n):
            with M():
                print(i)
                if i == 1:
                    return i
                if i == 0:
                    continue
        return "end"

    return f(1), f(5), log


def redirected_output():
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("a")
        xs = [print(i) for i in range(2)]
    print("b")
    with contextlib.suppress(ZeroDivisionError):
        print(1 / 0)
    return out.getvalue(), xs


# -- finalizers and weak references ----------------------------------------------------------


class Noisy:
    def __init__(self, name, log):
        self.name = name
        self.log = log

    def __del__(self):
        self.log.append(self.name)


def deaths_in_order():
    log = []

    def f(a):
        b = Noisy("b", log)
        print("f")
        a = None
        log.append("after a")
        print("g")
        del b
        log.append("after b")

    f(Noisy("a", log))
    log.append("end")
    return log


def death_by_rebinding_in_a_loop():
    log = []
    for i in range(3):
        x = Noisy(i, log)
        print(i)
        log.append(("alive", x.name))
    x = None
    log.append("end")
    return log


def death_of_a_container():
    log = []
    xs = [Noisy(1, log), Noisy(2, log)]
    print(len(xs))
    xs[0] = None
    log.append("-")
    xs.clear()
    log.append("-")
    print(len(xs))
    d = {"k": Noisy(3, log)}
    d["k"] = Noisy(4, log)
    log.append("-")
    print(len(d))
    d.pop("k")
    log.append("-")
    return log


def death_while_an_exception_passes():
    log = []

    def f():
        x = Noisy("x", log)
        print(x.name)
        raise ValueError

    try:
        f()
    except ValueError:
        log.append("caught")
    log.append("after")
    return log


def weak_references_across_breaks():
    class A:
        pass

    log = []
    a = A()
    r = weakref.ref(a, lambda r: log.append("dead"))
    print(r() is a)
    b = a
    del a
    print(r() is b)
    log.append("still")
    del b
    log.append(r() is None)
    return log


def weak_values():
    class A:
        pass

    d = weakref.WeakValueDictionary()
    keep = A()
    d["k"] = keep
    d["g"] = A()
    print(sorted(d))
    del keep
    return sorted(d)


def finalizer_that_writes_what_is_read():
    state = {"n": 0}

    class A:
        def __del__(self):
            state["n"] += 1
            print("del", state["n"])

    a = A()
    first = state["n"]
    a = None
    second = state["n"]
    A()
    return first, second, state["n"], a


def finalize_of_a_generator():
    log = []

    def g():
        try:
            print("start")
            yield 1
            yield 2
        finally:
            log.append("closed")
            print("closed")

    it = g()
    log.append(next(it))
    del it
    log.append("after")
    for x in g():
        log.append(x)
        break
    log.append("end")
    return log


# -- generators --------------------------------------------------------------------------------


def generators_interleaved():
    def count(name, n):
        for i in range(n):
            print(name, i)
            got = yield (name, i)
            if got:
                print(name, "got", got)

    a, b = count("a", 3), count("b", 2)
    out = [next(a), next(b), a.send("x"), next(b), next(a)]
    return out, catch(next, b), catch(next, a)


def generator_that_catches():
    def g():
        while True:
            try:
                x = yield "ready"
                print(x)
            except ValueError as e:
                print("caught")
                yield ("handled", e.args)

    it = g()
    return next(it), it.send(1), it.throw(ValueError("v")), next(it), it.close()


def delegation_with_breaks():
    def inner():
        print("inner")
        x = yield 1
        print("got", x)
        return x * 2

    def outer():
        a = yield from inner()
        b = yield from inner()
        print(a, b)
        return a + b

    it = outer()
    out = [next(it), it.send(5)]
    try:
        it.send(6)
    except StopIteration as e:
        out.append(e.value)
    return out


def generator_reads_what_changes():
    xs = [1, 2]

    def g():
        for x in xs:
            print(x)
            yield x

    out = []
    for x in g():
        out.append(x)
        if x < 4:
            xs.append(x + 2)
    return out, xs


def expression_over_a_shared_iterator():
    it = iter(range(6))
    gen = (x * 2 for x in it)
    out = [next(gen), next(it)]
    print(out)
    out += [next(gen), next(it)]
    return out, list(gen), list(it)


def tee_and_chain():
    def source():
        for i in range(4):
            print("s", i)
            yield i

    a, b = itertools.tee(source())
    out = [next(a), next(a)]
    print(out)
    out += [next(b)]
    return out, list(itertools.chain(b, a))


def close_in_the_middle():
    log = []

    def g(n):
        try:
            yield from (range(n) if n else g(2))
        finally:
            log.append(n)
            print("fin", n)

    it = g(0)
    next(it)
    it.close()
    return log, catch(next, it)


# -- closures, classes ------------------------------------------------------------------------


def closures_of_a_loop():
    fs = []
    for i in range(3):

        def f(k=i):
            print(i, k)
            return i, k

        fs.append(f)
    return [f() for f in fs]


def counter_shared_by_two():
    def make():
        n = 0

        def up():
            nonlocal n
            n += 1
            print("up", n)
            return n

        def down():
            nonlocal n
            n -= 1
            print("down", n)
            return n

        return up, down

    up, down = make()
    return up(), up(), down(), up(), up.__closure__[0] is down.__closure__[0]


def cell_emptied_and_filled():
    def f():
        x = 1

        def g():
            return x

        a = g()
        del x
        b = catch(g)
        print(a)
        x = 2
        print(x)
        return a, b, g()

    return f()


def class_body_that_breaks():
    log = []

    class A:
        log.append("A")
        x = print("body")
        y = [i for i in range(3)]

        def f(self):
            print("f")
            return __class__

        class B:
            z = print("inner body")

    return log, A.x, A.y, A().f() is A, A.B.__qualname__


def metaclass_and_init_subclass():
    log = []

    class Meta(type):
        def __new__(mcs, name, bases, space, **kw):
            print("new", name)
            log.append((name, sorted(kw)))
            return super().__new__(mcs, name, bases, space)

        def __call__(cls, *a):
            print("call", cls.__name__)
            return super().__call__(*a)

    class A(metaclass=Meta, flag=1):
        def __init_subclass__(cls, **kw):
            print("sub", cls.__name__)
            log.append(cls.__name__)

        def __init__(self, v):
            print("init", v)
            self.v = v

        def __set_name__(self, owner, name):
            log.append(name)

    class B(A):
        part = A(1)

    return log, B(2).v, B.part.v


def descriptors_that_break():
    class D:
        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, o, t=None):
            print("get")
            return self if o is None else o.__dict__.get(self.name, 0)

        def __set__(self, o, v):
            print("set")
            o.__dict__[self.name] = v

        def __delete__(self, o):
            print("delete")
            del o.__dict__[self.name]

    class A:
        x = D()

    a = A()
    a.x += 1
    a.x += 1
    before = a.x
    del a.x
    return before, a.x, catch(lambda: delattr(a, "x"))


def super_through_breaks():
    class A:
        def f(self, x):
            print("A", x)
            return [x]

    class B(A):
        def f(self, x):
            print("B", x)
            return super().f(x + 1) + [x]

    class C(B):
        def f(self, x):
            r = super().f(x + 1)
            print("C", x)
            return r + [x]

    return C().f(0)


def getattr_fallback():
    log = []

    class A:
        def __getattr__(self, name):
            print("missing", name)
            log.append(name)
            if name == "bad":
                raise AttributeError(name)
            setattr(self, name, len(log))
            return len(log)

    a = A()
    return a.x, a.x, a.y, hasattr(a, "bad"), getattr(a, "bad", "default"), log


def operators_that_break():
    class N:
        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            print("add")
            return NotImplemented if isinstance(o, str) else N(self.v + o.v)

        def __radd__(self, o):
            print("radd")
            return N(self.v + o)

        def __eq__(self, o):
            print("eq")
            return self.v == getattr(o, "v", o)

        def __hash__(self):
            print("hash")
            return hash(self.v)

    s = {N(1), N(2), N(1)}
    return (
        (N(1) + N(2)).v,
        (3 + N(4)).v,
        catch(lambda: N(1) + "x"),
        len(s),
        N(1) in [0, 1],
        {N(5): 1}[N(5)],
    )


# -- frames that are looked at ----------------------------------------------------------------


def locals_of_the_caller():
    def peek():
        frame = sys._getframe(1)
        print("peek")
        return {
            k: v for k, v in frame.f_locals.items() if isinstance(v, int)
        }, frame.f_lineno - frame.f_code.co_firstlineno

    def f(a):
        b = a + 1
        first = peek()
        c = b + 1
        second = peek()
        return first, second, c

    return f(1)


def names_of_all_callers():
    def names():
        out, f = [], sys._getframe(1)
        while f is not None and f.f_code.co_name != "names_of_all_callers":
            out.append((f.f_code.co_name, f.f_lineno - f.f_code.co_firstlineno))
            f = f.f_back
        print(len(out))
        return out

    def a():
        x = names()
        print("a")
        return x, names()

    def b():
        return a(), a()

    return b()


def warnings_at_levels():
    def low():
        warnings.warn("one", stacklevel=1)
        warnings.warn("two", stacklevel=2)
        print("between")
        warnings.warn("three", stacklevel=3)

    def mid():
        low()
        print("mid")
        low()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mid()
    return [(str(w.message), w.lineno - low.__code__.co_firstlineno) for w in seen]


def logging_levels():
    rows = []

    class Keep(logging.Handler):
        def emit(self, r):
            rows.append((r.getMessage(), r.funcName, r.lineno - first))

    logger = logging.Logger("adversary")
    logger.addHandler(Keep())

    def helper(text):
        logger.warning(text, stacklevel=2)
        print(text)

    def f():
        helper("a")
        logger.error("b")
        print("c")
        helper("d")

    first = helper.__code__.co_firstlineno
    f()
    return rows


def traceback_texts():
    def deep(n):
        if n == 0:
            print("bottom")
            return traceback.extract_stack()[-3:]
        return deep(n - 1)

    first = deep.__code__.co_firstlineno
    stack = [(s.name, s.lineno - first) for s in deep(3)]

    def fail(n):
        print(n)
        return fail(n - 1) if n else [][0]

    try:
        fail(2)
    except IndexError as e:
        lines = [(s.name, s.lineno - first) for s in traceback.extract_tb(e.__traceback__)[1:]]
    return stack, lines


def locals_after_a_break():
    def f(a, b=2):
        c = a + b
        print(c)
        first = dict(locals())
        del a
        d = [c]
        print(d)
        return first, {k: v for k, v in locals().items() if k != "first"}

    return f(1)


def eval_and_exec_see_the_frame():
    x = 1

    def f(y):
        z = eval("y + 1")
        print(z)
        space = {}
        exec("w = y * 2", {"y": y}, space)
        return z, space, eval("[y, z]")

    return f(x), eval("x")


def frame_kept_and_read_later():
    kept = []

    def f(n):
        kept.append(sys._getframe())
        total = n
        print(total)
        total += 1
        print(total)
        return total

    r = f(1)
    return r, kept[0].f_locals.get("total"), kept[0].f_lineno - f.__code__.co_firstlineno


# -- recursion and mixtures -------------------------------------------------------------------


def mutual_recursion():
    log = []

    def even(n):
        if n == 0:
            print("zero")
            return True
        log.append(n)
        return odd(n - 1)

    def odd(n):
        print("odd", n)
        return n != 0 and even(n - 1)

    return even(6), log


def recursion_with_handlers():
    def walk(tree, depth):
        out = []
        for node in tree:
            try:
                if isinstance(node, list):
                    out += walk(node, depth + 1)
                else:
                    print(depth, node)
                    out.append(10 // node)
            except ZeroDivisionError:
                out.append(("zero at", depth))
                if depth > 1:
                    raise
        return out

    return walk([1, [2, 0, [5, 0, 3]], 0], 0)


def memo_in_a_decorator():
    calls = []

    def memo(f):
        known = {}

        @functools.wraps(f)
        def g(n):
            if n not in known:
                print("miss", n)
                known[n] = f(n)
            return known[n]

        g.known = known
        return g

    @memo
    def fib(n):
        calls.append(n)
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(6), calls, fib.known


def partial_and_reduce():
    def add(a, b, *, c=0):
        print(a, b, c)
        return a + b + c

    p = functools.partial(add, 1, c=2)
    return p(3), functools.reduce(add, [1, 2, 3]), list(map(p, [4, 5])), [*filter(p, [-3, 1])]


def unpacking_an_object_that_breaks():
    class It:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            print("iter")
            return self

        def __next__(self):
            print("next", self.n)
            if self.n == 0:
                raise StopIteration
            self.n -= 1
            return self.n

    a, *b, c = It(4)
    out = [a, b, c, catch(lambda: (lambda x, y: 0)(*It(1)))]
    x, y = It(2)
    return out, x, y, [*It(1), *It(2)], {**{"a": print("kw")}}


def half_evaluated_arguments():
    log = []

    def f(*a, **k):
        log.append((a, k))
        return len(a)

    def v(x):
        print(x)
        return x

    r = f(v(1), f(v(2), k=v(3)), *[v(4)], **{"z": v(5)}) + f(v(6)) * v(7)
    return r, log, [v(8), v(9)][v(0)], f"{v('a')}{v(10):>4}{v('b')!r}"


def conditional_chains():
    def t(x):
        print(x)
        return x

    return (
        t(0) or t("") or t(3),
        t(1) and t([]) and t(2),
        1 < t(2) < t(1) < t(5),
        t(1) if t(0) else t(2),
        not t(0),
        [t(i) for i in range(3) if t(i) != 1],
    )


def named_expressions_and_match():
    def t(x):
        print(x)
        return x

    out = []
    while (n := t(len(out))) < 3:
        match t({"k": n, "rest": [n, n + 1]}):
            case {"k": 0}:
                out.append("zero")
            case {"k": k, "rest": [a, *b]} if t(k) == 1:
                out.append((a, b))
            case {"rest": [*_, last], **other}:
                out.append((last, other))
    return out, n


def deque_and_counter():
    q = collections.deque([1, 2, 3], maxlen=3)
    c = collections.Counter()
    d = collections.defaultdict(lambda: print("made") or [])
    for x in list(q):
        print(x)
        q.append(x * 10)
        c[x % 2] += 1
        d[x % 2].append(x)
    return list(q), dict(c), dict(d), q.maxlen


def simple_namespace_and_proxies():
    n = types.SimpleNamespace(a=1)
    n.b = [n.a]
    print(n.b)
    n.a += 1
    p = types.MappingProxyType(n.__dict__)
    n.c = 3
    print(sorted(p))
    return p["a"], n.b, n == types.SimpleNamespace(a=2, b=[1], c=3)


def strings_and_bytes_grow():
    s, b = "", bytearray()
    for i in range(3):
        s += str(i)
        b += bytes([i])
        print(s, bytes(b))
    view = memoryview(b)
    print(view[1])
    view[1] = 9
    return s, bytes(b), bytes(view)


def deletes_everywhere():
    xs = list(range(6))
    d = dict(a=1, b=2)
    o = Box(x=1, y=2)
    print(1)
    del xs[0], d["a"], o.x
    print(2)
    del xs[1:3], o.y
    print(3)
    y = xs
    del xs
    return y, d, vars(o), catch(lambda: xs)  # noqa: F821


# -- bound methods of C types -----------------------------------------------------------------


class Table(dict):
    pass


def c_methods_kept_across_breaks():
    xs, d, s = [], {"k": 1}, "-"
    append, get, join = xs.append, d.get, s.join
    length, add, has = xs.__len__, (1).__add__, d.__contains__
    print("kept")
    append(length())
    append(get("k"))
    print("used")
    append(join(["a", "b"]))
    return xs, add(2), has("k"), length(), append.__self__ is xs, length.__self__ is xs


def class_methods_of_c_types():
    plain, own, made = dict.fromkeys, Table.fromkeys, Table.__new__
    print("kept")
    return plain("ab"), own("ab"), type(own("a")).__name__, made(Table), own.__self__ is Table


def random_numbers_of_ones_own():
    import random

    chance = random.Random(5)
    bits, draw = chance.getrandbits, chance.random
    first = bits(8), draw(), chance.randrange(100)
    print(first)
    state = chance.getstate()
    second = bits(8), draw(), chance.choice("abc")
    chance.setstate(state)
    print("again")
    return first, second == (bits(8), draw(), chance.choice("abc"))
