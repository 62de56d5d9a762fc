"""Callers that wait while a callee prints, which ends a trace: what they hold, share with it and do
once it has returned. Each way is gone more than once, so that what the first left behind is used."""

import contextlib
import contextvars
import functools
import operator
import sys
import weakref

from probes import catch, handled, links, text, where


def _show(x):
    print(x)
    return x


def _twice(x):
    _show(x)
    return _show(x + 1)


# -- variables of two frames that are one object -----------------------------------------------


def lists_that_are_one_or_two():
    def inner(a):
        _show(len(a))
        a.append("in")
        return len(a)

    def outer(a, b):
        n = inner(a)
        b.append("out")
        return n, len(a), len(b), a is b, a == b

    x, y = [], []
    return [outer(x, x), outer(x, y), outer(y, y), outer(y, x), outer(x, x)], x, y


def a_list_inside_a_dict_of_the_caller():
    def inner(row):
        _show(row)
        row[0] += 1

    def outer(table, key):
        row = table[key]
        inner(row)
        table[key] = [*table[key], key]
        row.append("old")
        return table, row

    table = {"a": [1], "b": [2]}
    table["c"] = table["a"]
    return [repr(outer(table, k)) for k in "abcab"], table["a"] is table["c"]


def an_attribute_read_below_and_written_above():
    class Box:
        v = 0

    def inner(box):
        before = box.v
        _show(before)
        return before, box.v

    def outer(box):
        got = inner(box)
        box.v += 10
        again = inner(box)
        del box.v
        return got, again, box.v, "v" in vars(box)

    return [outer(box) for box in (Box(), Box())]


def a_tuple_handed_through():
    def inner(pair):
        _show(pair)
        return pair

    def outer(pair):
        back = inner(pair)
        left, right = back
        return back is pair, left, right

    return [outer(p) for p in ((1, 2), ("a", []), (None, {}))]


def a_dict_that_both_walk():
    def inner(d, it):
        k = next(it)
        _show(k)
        d[k] = d[k] * 2
        return k

    def outer(d):
        it = iter(d)
        a = inner(d, it)
        b = next(it)
        c = inner(d, it)
        return a, b, c, list(it), d

    return [outer(dict.fromkeys("abcd", n)) for n in (1, 2, 3)]


def a_dict_that_grows_while_it_is_walked():
    def inner(d, k):
        _show(k)
        if k == "b":
            d["new"] = 1

    def outer(d):
        for k in d:
            inner(d, k)
        return len(d)

    return [catch(outer, dict.fromkeys(keys)) for keys in ("a", "ab", "abc", "a", "bc")]


# -- cells -------------------------------------------------------------------------------------


def a_cell_written_by_both():
    def outer(start):
        x = start

        def inner(add):
            nonlocal x
            x += add
            _show(x)
            x += add
            return x

        got = inner(1)
        x *= 10
        return got, inner(2), x

    return [outer(n) for n in (1, 2, -3)]


def a_cell_of_another_call():
    def outer(other):
        x = 0

        def inner():
            nonlocal x
            _show(x)
            x += 1
            return x

        got = (other or inner)()
        seen = x
        x += 10
        return got, seen, inner, lambda: x

    a = outer(None)
    b = outer(a[2])
    c = outer(None)
    d = outer(b[2])
    return [(*row[:2], row[3]()) for row in (a, b, c, d)]


def a_cell_emptied_below():
    def outer(empty):
        x = "full"

        def inner():
            nonlocal x
            _show(empty)
            if empty:
                del x

        inner()
        try:
            return x
        except NameError as e:
            return text(e)

    return [outer(e) for e in (False, True, False, True)]


def functions_made_below_and_called_above():
    def inner(n):
        count = n

        def step():
            nonlocal count
            count += 1
            return count

        _show(n)
        return step

    def outer(n):
        one, two = inner(n), inner(n + 100)
        return one(), one(), two(), one.__closure__[0] is two.__closure__[0]

    return [outer(n) for n in (1, 2, 3)]


def functions_made_above_and_called_below():
    def inner(f):
        a = f()
        _show(a)
        return a, f()

    def outer(log):
        n = len(log)

        def note():
            log.append(n)
            return len(log)

        got = inner(note)
        n = 50
        return got, note(), log

    return [outer(log) for log in ([], [1], ["a", "b"])]


def a_class_made_by_the_caller():
    def inner(cls):
        _show(cls.__name__)
        return cls().m()

    def outer(v):
        class Local:
            def m(self):
                return __class__.__name__, v

        got = inner(Local)
        v += 1
        return got, inner(Local)

    return [outer(n) for n in (1, 2, 3)]


# -- try, finally and with around the call -------------------------------------------------------


def _fails(kind):
    _show(kind)
    if kind == "key":
        raise KeyError(kind)
    if kind == "zero":
        1 / 0
    return kind


def finally_around_the_call():
    log = []

    def outer(kind):
        try:
            return _fails(kind)
        finally:
            log.append((kind, handled()))

    return [catch(outer, k) for k in ("no", "key", "zero", "no", "key", "zero")], log


def finally_that_returns():
    def outer(kind):
        try:
            _fails(kind)
        finally:
            _show("finally")
            return kind, handled()

    return [outer(k) for k in ("no", "key", "zero", "no")]


def handlers_by_kind():
    def outer(kind):
        try:
            got = _fails(kind)
        except KeyError as e:
            return "key", text(e), links(e)
        except ZeroDivisionError as e:
            return "zero", text(e.with_traceback(None))
        else:
            _show("else")
            return got

    return [outer(k) for k in ("no", "key", "zero", "key", "no")]


def a_handler_that_raises_anew():
    def middle(kind):
        try:
            return _fails(kind)
        except KeyError as e:
            raise ValueError("from middle") from e

    def outer(kind):
        try:
            return middle(kind)
        except ValueError as e:
            return links(e)

    return [catch(outer, k) for k in ("no", "key", "zero", "key")]


def reraised_through_three():
    def middle(kind):
        try:
            return _fails(kind)
        except KeyError:
            _show("middle")
            raise

    def outer(kind):
        return middle(kind)

    return [where(outer, k) for k in ("key", "no", "zero", "key")]


def with_around_the_call():
    class Manager:
        def __init__(self, log, swallows):
            self.log, self.swallows = log, swallows

        def __enter__(self):
            self.log.append("enter")
            return self

        def __exit__(self, kind, value, tb):
            self.log.append(kind and kind.__name__)
            return kind is self.swallows

    def outer(kind, swallows):
        log = []
        got = None
        with Manager(log, swallows) as m:
            got = _fails(kind)
            log.append("body")
        log.append("after")
        return got, log, m.log is log

    rows = [("no", None), ("key", KeyError), ("key", None), ("zero", KeyError), ("no", KeyError)]
    return [catch(outer, *row) for row in rows]


def a_generator_manager_around_the_call():
    log = []

    @contextlib.contextmanager
    def manager(name):
        log.append(name)
        try:
            yield name * 2
        except KeyError as e:
            log.append(text(e))
        finally:
            log.append(handled())

    def outer(kind):
        with manager(kind) as name:
            return name, _fails(kind)
        return "swallowed"

    return [catch(outer, k) for k in ("no", "key", "zero", "no", "key")], log


def an_exit_stack_filled_below():
    def inner(stack, log, n):
        stack.callback(log.append, n)
        _show(n)
        stack.callback(log.append, -n)

    def outer(n):
        log = []
        with contextlib.ExitStack() as stack:
            inner(stack, log, n)
            inner(stack, log, n + 1)
            log.append("body")
        return log

    return [outer(n) for n in (1, 5, 1)]


def the_caller_handles_while_it_waits():
    def inner(x):
        before = handled()
        _show(before)
        try:
            raise LookupError(x)
        except LookupError as e:
            return before, handled(), repr(e.__context__)

    def outer(x):
        try:
            raise ValueError(x)
        except ValueError:
            got = inner(x)
            after = handled()
        return got, after, handled()

    return [outer(1), inner(2), outer(3), inner(4)]


def stop_iteration_through_a_generator():
    def inner(it):
        _show("next")
        return next(it)

    def gen(it):
        yield inner(it)
        yield inner(it)

    return [catch(lambda n=n: list(gen(iter(range(n))))) for n in (2, 1, 3, 0)]


def unbound_in_the_caller():
    def outer(binds):
        if binds:
            z = "bound"
        _show(binds)
        try:
            return z
        except UnboundLocalError as e:
            return text(e)

    def most(binds):
        if binds:
            y = 1
        got = _twice(1)
        try:
            return got, y
        except UnboundLocalError as e:
            return got, text(e)

    return [(outer(b), most(b)) for b in (True, False, True, False)]


def deleted_in_the_caller():
    def outer(keeps):
        a = ["a"]
        b = a
        if not keeps:
            del a
        _twice(3)
        try:
            a.append(1)
        except UnboundLocalError:
            b.append(2)
        return b

    return [outer(k) for k in (True, False, True, False)]


# -- how the call is made --------------------------------------------------------------------------


def star_and_keyword_calls():
    def inner(a, /, b, *rest, c=3, **more):
        _show((a, b, c))
        return a, b, rest, c, more

    def outer(*args, **kwargs):
        first = inner(*args, **kwargs)
        args = (*args, "x")
        kwargs["new"] = len(kwargs)
        return first, inner(*args, **kwargs), inner(0, *args, c=9)

    return outer(1, 2), outer(1, b=2, c=4), outer(1, 2, 3, d=5), catch(outer, b=1), outer(7, 8)


def operands_on_the_stack_of_the_caller():
    def inner(x):
        _show(x)
        return x

    def outer(x, y):
        return [
            x,
            inner(x),
            *[y],
            (y, inner(y)),
            {x: inner(y)},
            f"{x}-{inner(x)!r:>4}",
            x < inner(y) < 9,
        ]

    return [outer(*p) for p in ((1, 2), (2, 1), ("a", "b"), (1, 2)) if p[0] != "a"]


def methods_and_super():
    class Base:
        def step(self, x):
            _show(x)
            self.seen = [*getattr(self, "seen", ()), x]
            return x + 1

    class Derived(Base):
        def step(self, x):
            self.before = x
            got = super().step(x)
            self.after = got
            return got * 2

    def outer(o, x):
        return o.step(x), o.step(x + 1), o.seen

    one, two = Derived(), Derived()
    return outer(one, 1), outer(two, 2), outer(one, 3), outer(Base(), 4), vars(one), vars(two)


def properties_and_descriptors():
    class Cell:
        def __init__(self, v):
            self.v = v

        @property
        def p(self):
            _show(("get", self.v))
            return self.v

        @p.setter
        def p(self, v):
            old = self.v
            _show(("set", v))
            self.v = (old, v)

        def __getattr__(self, name):
            _show(name)
            if name == "missing":
                raise AttributeError(name)
            return name

    def outer(c):
        a = c.p
        c.p = a
        b = c.p
        return a, b, c.dynamic, getattr(c, "missing", "default"), hasattr(c, "missing"), c.v

    return [outer(Cell(v)) for v in (1, "x", None)]


def class_and_static_methods():
    class K:
        made = 0

        @classmethod
        def make(cls, v):
            cls.made += 1
            _show(v)
            cls.made += 1
            return cls(v)

        @staticmethod
        def twice(v):
            _show(v)
            return v * 2

        def __init__(self, v):
            self.v = self.twice(v)

    class L(K):
        pass

    def outer(cls, v):
        o = cls.make(v)
        return type(o).__name__, o.v, cls.made

    return [outer(c, v) for c, v in ((K, 1), (L, 2), (K, 3), (L, "a"))], K.made, L.made


def partials_and_wrappers():
    def decorate(f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            before = len(args)
            got = f(*args, **kwargs)
            return before, got, wrapper.__name__

        return wrapper

    @decorate
    def inner(a, b=1):
        _show((a, b))
        return a + b

    def outer(n):
        part = functools.partial(inner, n, b=2)
        return part(), part(b=3), operator.methodcaller("__call__", n)(inner)

    return [outer(n) for n in (1, 2, 3)]


def operators_of_python_objects():
    class V:
        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            _show("add")
            return V(self.v + o.v)

        def __eq__(self, o):
            _show("eq")
            return self.v == o.v

        def __bool__(self):
            _show("bool")
            return self.v > 0

        def __getitem__(self, i):
            _show(i)
            return self.v[i]

        __hash__ = None

    def outer(a, b):
        total = a + b
        same = total == b
        return total.v, same, "yes" if total else "no", not a, (a and b).v

    return [outer(V(x), V(y)) for x, y in ((1, 2), (0, 1), (-1, 1))], V([1, 2])[1], 2 in V([1, 2])


def init_frames_that_wait():
    class Base:
        def __init__(self, v):
            self.v = v
            _show(v)
            self.after = v

    class Derived(Base):
        def __init__(self, v):
            super().__init__(v)
            self.more = self.after * 2

    def outer(v):
        o = Derived(v)
        o.v = None
        return vars(o), type(o).__name__

    return [outer(v) for v in (1, "a", 2.5)]


def an_init_that_returns_something():
    class K:
        def __init__(self, v):
            self.v = v
            _show(v)
            return self.v

    return [catch(lambda v=v: K(v).v) for v in (None, 1, None, [], None)]


def new_that_prints():
    class K:
        def __new__(cls, v):
            _show("new")
            return super().__new__(cls) if v else "other"

        def __init__(self, v):
            _show("init")
            self.v = v

    def outer(v):
        o = K(v)
        return o if isinstance(o, str) else o.v

    return [outer(v) for v in (1, 0, 2, 0)]


def comprehensions_around_the_call():
    def outer(n, m):
        rows = [[_show(x + y) for x in range(n)] for y in range(m)]
        table = {k: _show(v) for k, v in enumerate(range(n))}
        some = {_show(x % 2) for x in range(n)}
        lazy = (_show(x) for x in range(m))
        return rows, table, some, list(lazy), n

    return [outer(*p) for p in ((2, 2), (1, 3), (3, 1), (0, 0))]


def called_by_native_code():
    def key(x):
        _show(x)
        return -x

    def outer(xs):
        return sorted(xs, key=key), list(map(key, xs)), max(xs, key=key), key(5)

    return [outer(xs) for xs in ([1, 2], [3, 1, 2], [9])]


# -- loops -----------------------------------------------------------------------------------------


def loops_in_both_frames():
    def inner(n, log):
        for i in range(n):
            if i % 2:
                _show(i)
            log.append(i)
        else:
            log.append("else")
        return len(log)

    def outer(n):
        log, total = [], 0
        for i in range(n):
            total += inner(i, log)
            if total > 30:
                break
        return total, log

    return [outer(n) for n in (3, 5, 0, 7)]


def a_while_loop_until_the_callee_says_so():
    def inner(state):
        state["n"] += 1
        _show(state["n"])
        return state["n"] < state["stop"]

    def outer(stop):
        state = {"n": 0, "stop": stop}
        rounds = 0
        while inner(state):
            rounds += 1
            if rounds == 4:
                continue
            state["last"] = rounds
        return rounds, state

    return [outer(n) for n in (1, 3, 6, 2)]


def an_iterator_of_the_caller_advanced_below():
    def inner(it):
        a = next(it, None)
        _show(a)
        return a, next(it, None)

    def outer(xs):
        it = iter(xs)
        got = []
        for x in it:
            got.append((x, inner(it)))
        return got

    return [outer(xs) for xs in ([1, 2, 3, 4, 5], "abcdefg", (), range(4))]


def a_generator_of_the_caller_advanced_below():
    def inner(it):
        a = next(it)
        _show(a)
        return a

    def outer(n):
        log = []

        def numbers():
            try:
                for i in range(n):
                    log.append(i)
                    yield i
            finally:
                log.append("closed")

        it = numbers()
        got = inner(it), next(it), inner(it)
        it.close()
        log.append("end")
        return got, log

    return [outer(n) for n in (4, 5, 3)]


def a_generator_that_waits():
    def numbers(n):
        for i in range(n):
            got = _twice(i)
            sent = yield got
            if sent:
                yield _show(sent)

    def outer(n):
        it = numbers(n)
        return next(it), it.send("sent"), next(it), list(it)

    return [outer(n) for n in (3, 4, 3)]


def recursion_of_changing_depth():
    def down(n, log):
        _show(n)
        if n:
            log.append(down(n - 1, log))
        return n, len(log)

    return [(down(n, log), log) for n in (3, 1, 6, 0, 2) for log in [[]]]


def two_that_call_each_other():
    def even(n):
        if n == 0:
            return _show(True)
        got = odd(n - 1)
        return got

    def odd(n):
        if n == 0:
            return _show(False)
        got = even(n - 1)
        return got

    return [even(n) for n in (0, 1, 4, 7, 2)]


def one_helper_from_many_places():
    def outer(a):
        a = _twice(a) + 1
        b = _twice(a) + 2
        c = _twice(b) + 3
        return _twice(c) + _twice(a), a, b, c

    return [outer(n) for n in (1, 2, 1.5)]


# -- what the world is when the caller goes on ---------------------------------------------------------


_SETTING = 0


def globals_written_by_both():
    global _SETTING
    _SETTING = 1

    def inner(v):
        global _SETTING
        was = _SETTING
        _show(was)
        _SETTING = was + v
        return was

    def outer(v):
        global _SETTING
        a = inner(v)
        b = _SETTING
        _SETTING = b * 2
        return a, b, inner(v), _SETTING

    return [outer(v) for v in (1, 2, 3)], _SETTING


def a_global_deleted_below():
    global _SETTING

    def inner(gone):
        global _SETTING
        _show(gone)
        if gone:
            del _SETTING

    def outer(gone):
        global _SETTING
        _SETTING = gone
        inner(gone)
        try:
            return _SETTING
        except NameError as e:
            return text(e)

    got = [outer(g) for g in (False, True, False, True)]
    _SETTING = 0
    return got


def context_variables_set_below():
    var = contextvars.ContextVar("var", default="none")

    def inner(v):
        token = var.set(v)
        _show(var.get())
        return token

    def outer(v):
        token = inner(v)
        seen = var.get()
        var.reset(token)
        return seen, var.get()

    return [outer(v) for v in (1, 2, "x")], contextvars.copy_context().run(outer, 5)


def weak_references_looked_at_by_the_caller():
    class K:
        pass

    def inner(o):
        w = weakref.ref(o)
        _show(w() is o)
        return w

    def outer(keeps):
        o = K()
        kept = [o] if keeps else []
        w = inner(o)
        alive = w() is not None
        del o
        return alive, w() is not None, len(kept)

    return [outer(k) for k in (True, False, True, False)]


def a_finalizer_in_the_callee():
    log = []

    class Loud:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            log.append(self.name)

    def inner(name):
        loud = Loud(name)
        _show(name)
        return len(log), loud.name

    def outer(name):
        got = inner(name)
        log.append("after " + name)
        got2 = inner(name * 2)
        log.append("end")
        return got, got2

    return [outer(n) for n in "abc"], log


def a_weak_callback_of_what_the_callee_holds():
    log = []

    class K:
        pass

    def inner(n):
        o = K()
        w = weakref.ref(o, lambda _: log.append(("dead", n)))
        _show(n)
        return n, w() is o, w

    def outer(n):
        got, alive, w = inner(n)
        log.append(("after", n))
        return got, alive, w()

    return [outer(n) for n in (1, 2, 3)], log


def the_callee_sees_the_caller():
    def inner(looks):
        _show(looks)
        if not looks:
            return None
        frame = sys._getframe(1)
        return (
            frame.f_code.co_name,
            frame.f_lineno - frame.f_code.co_firstlineno,
            dict(frame.f_locals),
        )

    def outer(looks):
        a = 3
        got = inner(looks)
        a = 4
        return got, a

    return [outer(x) for x in (False, True, False, True)]


def a_frame_that_is_kept():
    kept = []

    def inner(keeps):
        if keeps:
            kept.append(sys._getframe(1))
        _show(keeps)
        return 1

    def outer(keeps):
        a = inner(keeps)
        a += 100
        b = a * 2
        return b

    got = [outer(x) for x in (False, True, False, True, False)]
    seen = [(f.f_code.co_name, sorted(f.f_locals)) for f in kept]
    kept.clear()
    return got, seen


def locals_of_the_caller():
    def outer(x):
        y = _twice(x)
        d = locals()
        z = _twice(y)
        return sorted(d), z, sorted(locals())

    return [outer(n) for n in range(5)]


def a_code_that_is_replaced():
    def inner(swap):
        if swap:
            outer.__code__ = other.__code__
        _show(swap)
        return 1

    def outer(swap, inner):
        got = inner(swap)
        return got, "old"

    def other(swap, inner):
        got = inner(swap)
        return got, "new"

    old = outer.__code__
    got = [outer(s, inner) for s in (False, False, True, False)]
    outer.__code__ = old

    def inner(swap):  # noqa: F811
        return _show(swap)

    return got, outer(False, inner)


# -- what guards of the caller's variables see ----------------------------------------------------------


def types_that_change_in_the_caller():
    def outer(x, k):
        got = _twice(1)
        return got, k + k, type(k).__name__, x

    return [outer(n, k) for n, k in enumerate((1, 1.5, "s", [1], (2,), 1, "s", True))]


def branches_of_the_caller():
    def middle(flag):
        got = _twice(3)
        if flag is None:
            return "none"
        return got if flag else -got

    def outer(flag, log):
        got = middle(flag)
        if got == "none":
            log.append(flag)
        return got

    log = []
    return [outer(f, log) for f in (True, False, None, 0, "x", True)], log


def one_code_of_two_functions():
    def make(k):
        def outer(x):
            got = _twice(x)
            return got, k

        return outer

    one, two = make("one"), make(["two"])
    return [f(1) for f in (one, two, one, two)]


def defaults_that_change():
    def inner(x, extra=1):
        _show(x)
        return x + extra

    def outer(x, more=10):
        got = inner(x)
        return got + more

    got = [outer(1), outer(1)]
    inner.__defaults__ = (5,)
    got.append(outer(1))
    outer.__defaults__ = (100,)
    return [*got, outer(1), outer(2)]


def a_method_replaced_while_it_waits():
    class K:
        def inner(self, new):
            if new:
                K.inner = lambda self, new: "new"
            return _show(new)

    def outer(new):
        o = K()
        return o.inner(new), o.inner(False)

    old = K.inner
    got = [outer(n) for n in (False, True, False)]
    K.inner = old
    return got, outer(False), outer(True)


def values_swapped_by_name():
    def outer(a, b):
        got = _show("x")
        a, b = b, a
        got += _show("y")
        a, b = b, (a, got)
        return a, b, a is b

    x = []
    return [outer(*p) for p in ((1, 2), (x, x), (x, []), ("p", "q"))]


def big_numbers_and_strings_between():
    def inner(n):
        _show(n)
        return n * n, str(n) * 2

    def outer(n):
        a, b = inner(n)
        c, d = inner(a)
        return a, b, c, d, a is c

    return [outer(n) for n in (2, 10**20, -1, 0, 1)]


def exceptions_kept_by_the_caller():
    kept = []

    def outer(kind):
        try:
            return _fails(kind)
        except KeyError as e:
            kept.append(e)
        _show("kept")
        return len(kept)

    got = [outer(k) for k in ("no", "key", "no", "key")]
    found = [links(e) for e in kept]
    kept.clear()
    return got, found


def an_exception_group_from_the_callee():
    def inner(n):
        _show(n)
        if n:
            raise ExceptionGroup("g", [KeyError(n), ValueError(n)][:n])
        return n

    def outer(n):
        try:
            return inner(n)
        except* KeyError as g:
            got = [text(e) for e in g.exceptions]
        return got

    return [catch(outer, n) for n in (0, 1, 2, 1, 0)]


def match_on_what_came_back():
    def inner(x):
        _show(type(x).__name__)
        return x

    def outer(x):
        match inner(x):
            case [a, *rest]:
                return "list", a, rest
            case {"k": v}:
                return "dict", v
            case int(n) if n > 3:
                return "big", n
            case _:
                return "other"

    return [outer(x) for x in ([1, 2], {"k": 3}, 5, 1, [0], "s")]


def chained_assignment_and_walrus():
    def outer(d, n):
        d["a"] = d["b"] = x = _show(n)
        if (y := _twice(x)) > 3:
            d[_show("c")] += y
        return d, x, y

    return [outer({"c": 1}, n) for n in (1, 5, 2, 9)]


def deep_frames_with_state_each():
    def a(x, log):
        log.append("a")
        got = b(x + 1, log)
        log.append(("a", got, x))
        return got + 1

    def b(x, log):
        with contextlib.suppress(KeyError):
            got = c(x + 1, log)
            log.append(("b", got, x))
            return got + 1
        return -1

    def c(x, log):
        log.append("c")
        _show(x)
        if x > 5:
            raise KeyError(x)
        log.append(("c", x))
        return x

    return [(a(n, log), log) for n in (1, 9, 2, 7) for log in [[]]]


# -- what dies because its last references go together -------------------------------------------


class _Plain:
    pass


def _watched(log, n, kept):
    o = _Plain()
    kept.append(weakref.ref(o, lambda _: log.append(("dead", n))))
    return o


def an_object_in_two_lists_of_the_callee():
    log, kept = [], []

    def inner(n):
        o = _watched(log, n, kept)
        one, two = [o], [o]
        del o
        print(n, len(one), len(two))
        return n

    def outer(n):
        got = inner(n)
        log.append(("after", n))
        return got

    return [outer(n) for n in (1, 2, 3)], log


def an_object_in_two_cells_of_the_callee():
    log, kept = [], []

    def inner(n):
        one = two = _watched(log, n, kept)

        def both():
            return one, two

        print(n)
        return n

    def outer(n):
        got = inner(n)
        log.append(("after", n))
        return got

    return [outer(n) for n in (1, 2, 3)], log


def an_object_twice_in_one_list_of_the_callee():
    log, kept = [], []

    def inner(n):
        rows = [[_watched(log, n, kept)] * 2]
        print(n, len(rows))
        return n

    def outer(n):
        got = inner(n)
        log.append(("after", n))
        return got

    return [outer(n) for n in (1, 2, 3)], log


def an_object_in_lists_of_two_frames():
    log, kept = [], []

    def inner(n, row):
        own = [row[0]]
        print(n, len(own))
        return n

    def middle(n):
        row = [_watched(log, n, kept)]
        return inner(n, row)

    def outer(n):
        got = middle(n)
        log.append(("after", n))
        return got

    return [outer(n) for n in (1, 2, 3)], log


def an_object_that_sometimes_lives_on():
    log, kept, alive = [], [], []

    def inner(n, lives):
        o = _watched(log, n, kept)
        one, two = [o], [o]
        if lives:
            alive.append(o)
        del o
        print(n, len(one), len(two))
        return n

    def outer(n, lives):
        got = inner(n, lives)
        log.append(("after", n))
        return got

    got = [outer(n, n % 2) for n in (1, 2, 3, 4)]
    return got, log[:]


def an_object_replaced_in_two_places():
    log, kept = [], []

    def outer(n, d):
        d["a"] = d["b"] = [_watched(log, n, kept)]
        print(n)
        d["a"] = 1
        d["b"] = 2
        log.append(("after", n))
        return d

    return [outer(n, {}) for n in (1, 2, 3)], log


def a_weak_set_that_the_caller_counts():
    alive = weakref.WeakSet()

    def inner(n):
        o = _Plain()
        alive.add(o)
        one, two = [o], (o,)
        del o
        print(n)
        return len(one) + len(two)

    def outer(n):
        got = inner(n)
        return got, len(alive)

    return [outer(n) for n in (1, 2, 3)]


class _Loud:
    def __init__(self, log, n):
        self.log, self.n = log, n

    def __del__(self):
        self.log.append(("dead", self.n))


def a_finalizer_that_sometimes_waits():
    log, alive = [], []

    def inner(n, lives):
        o = _Loud(log, n)
        rows, table = [o], {"o": o}
        if lives:
            alive.append(o)
        del o
        print(n, len(rows), len(table))
        return n

    def outer(n, lives):
        got = inner(n, lives)
        log.append(("after", n))
        return got

    got = [outer(n, n % 2) for n in (1, 2, 3, 4, 5)]
    return got, log[:]


def a_finalizer_when_the_caller_lets_go_as_well():
    log = []

    def inner(n, box):
        own = [box[0]]
        print(n, len(own))
        return n

    def outer(n, box):
        got = inner(n, box)
        log.append(("before", n))
        box.pop()
        log.append(("after", n))
        return got

    kept = _Loud(log, "kept")
    got = [outer(n, [kept if n % 2 else _Loud(log, n)]) for n in (1, 2, 3, 4)]
    return got, log[:]


def a_generator_in_two_lists_of_the_callee():
    log, alive = [], []

    def numbers(n):
        try:
            yield n
        finally:
            log.append(("closed", n))

    def inner(n, lives):
        it = numbers(n)
        next(it)
        one, two = [it], (it,)
        if lives:
            alive.append(it)
        del it
        print(n, len(one), len(two))
        return n

    def outer(n, lives):
        got = inner(n, lives)
        log.append(("after", n))
        return got

    got = [outer(n, n % 2) for n in (1, 2, 3, 4)], log[:]
    for it in alive:
        it.close()
    return got


def a_part_that_comes_back_without_its_whole():
    log = []

    def inner(n):
        row = [_Loud(log, n)]
        print(n)
        return row[0]

    def outer(n):
        o = inner(n)
        log.append(("have", o.n))
        del o
        log.append(("after", n))
        return n

    return [outer(n) for n in (1, 2, 3)], log


def a_finalizer_deep_in_what_the_callee_holds():
    log = []

    def inner(n):
        whole = _Loud(log, n)
        for _ in range(200):
            whole = [whole]
        print(n)
        return n

    def outer(n):
        got = inner(n)
        log.append(("after", n))
        return got

    return [outer(n) for n in (1, 2, 3)], log
