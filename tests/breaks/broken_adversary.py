"""Programs that are given objects from outside, made against what a piece may assume of them: aliases,
objects that change under the break, watchers, exceptions that pass frames, iterators that live on."""

import collections
import contextlib
import itertools
import sys
import types
import weakref

import ticks as t
from broken_outside import Box, Dying, given

# -- aliases --------------------------------------------------------------------------------------------


def _shared():
    xs = [1]
    return xs, xs, {"xs": xs}, Box(xs=xs)


@given(_shared)
def one_list_four_ways(a, b, d, box):
    a.append(2)
    t.tick(b)
    d["xs"].append(3)
    t.tick(box.xs)
    box.xs = [*b, 4]
    t.tick(len(a))
    b += [5]
    return a is b, d["xs"] is a, box.xs is a


@given(lambda: ([[]] * 3,))
def one_row_three_times(rows):
    rows[0].append(1)
    t.tick(rows)
    rows[1] = [2]
    rows[2].append(3)
    t.tick(rows)
    return rows[0] is rows[2], rows[0] is rows[1]


@given(lambda: (Box(a=1), Box(a=1)))
def two_boxes_with_one_dict(x, y):
    y.__dict__ = x.__dict__
    x.a += 1
    t.tick(y.a)
    y.b = 3
    t.tick(sorted(vars(x)))
    del x.a
    return vars(x) is vars(y)


def _loop():
    a, b = Box(), Box()
    a.other, b.other = b, a
    return a, b


@given(_loop)
def a_cycle(a, b):
    a.n = 1
    t.tick(b.other.n)
    b.other.other.m = 2
    t.tick(b.m)
    a.other, b.other = a, b
    return a.other is a, b.other is b


@given(lambda: ({},))
def a_dict_in_itself(d):
    d["d"] = d
    t.tick(len(d))
    d["d"]["d"]["k"] = 1
    t.tick(d["k"])
    del d["d"]["d"]
    return sorted(d)


# -- changed by what breaks ------------------------------------------------------------------------------


@given(lambda: ([1, 2, 3], {}))
def a_callback_that_changes_what_is_iterated(xs, seen):
    def callback(x):
        seen[x] = len(xs)
        t.tick(x)
        if x < 3:
            xs.append(x + 10)
        return x

    return [callback(x) for x in xs], seen


@given(lambda: (Box(n=0),))
def a_local_that_went_stale(box):
    n = box.n

    def bump():
        box.n += 1
        t.tick(box.n)

    bump()
    m = box.n
    bump()
    return n, m, box.n


@given(lambda: ([3, 1, 2],))
def a_list_that_is_sorted_by_what_breaks(xs):
    first = xs[0]
    t.tick(first)
    xs.sort(key=lambda x: (t.tick(x), x)[1])
    second = xs[0]
    xs.reverse()
    t.tick(xs)
    return first, second, xs[0]


class Counting(dict):
    def __missing__(self, key):
        t.tick("missing", key)
        self[key] = len(self)
        return self[key]

    def __setitem__(self, key, value):
        t.tick("set", key)
        super().__setitem__(key, value * 10)


@given(lambda: (Counting(a=1),))
def a_dict_of_ones_own(d):
    d["b"] = d["c"] + d["a"]
    d["a"] += 1
    t.tick(sorted(d.items()))
    d.update(z=5)
    d.setdefault("y", 6)
    return d.pop("c"), d.get("q"), list(d)


class Log(list):
    def append(self, x):
        t.tick("append", x)
        super().append((len(self), x))


@given(lambda: (Log(),))
def a_list_of_ones_own(log):
    log.append("a")
    log += ["b"]
    list.append(log, "c")
    t.tick(len(log))
    log.append("d")
    return [*log]


class Guarded:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append((name, value))
        t.tick(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        self.log.append(name)
        object.__delattr__(self, name)


@given(lambda: (Guarded(),))
def writes_that_run_code(o):
    o.x = 1
    o.x += 1
    o.y, o.z = o.x, [o.x]
    t.tick(o.log)
    del o.y
    o.z[0] = 5
    return sorted(vars(o)), hasattr(o, "y")


# -- exceptions through frames ------------------------------------------------------------------------


@given(lambda: ([],))
def a_handler_two_frames_out(log):
    def low():
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "stack")
            t.tick("low")
            raise LookupError("low")

    def middle():
        try:
            low()
        finally:
            log.append("middle")
            t.tick("middle")

    try:
        middle()
    except LookupError as e:
        log.append(str(e))
        t.tick("handler")
        frames = []
        tb = e.__traceback__
        while tb:
            frames.append(tb.tb_frame.f_code.co_name)
            tb = tb.tb_next
        log.append([f for f in frames if f in ("low", "middle", "a_handler_two_frames_out")])
    return log


@given(lambda: ([],))
def a_handler_that_goes_on_in_a_loop(log):
    def risky(i):
        t.tick(i)
        if i % 3 == 1:
            raise KeyError(i)
        if i % 3 == 2:
            raise ValueError(i)
        return i

    total = 0
    for i in range(7):
        try:
            total += risky(i)
        except KeyError as e:
            log.append(e.args)
            continue
        except ValueError:
            t.tick("value")
            if i > 3:
                break
        else:
            log.append("fine")
        finally:
            log.append(i)
    else:
        log.append("never")
    return total, log


@given(lambda: ([],))
def an_exception_replaced_on_its_way(log):
    class Wrap:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            t.tick("exit")
            if kind is KeyError:
                raise ValueError("wrapped") from value

    try:
        with Wrap(), Wrap():
            t.tick("body")
            raise KeyError("inner")
    except ValueError as e:
        log.append((str(e), repr(e.__cause__), repr(e.__context__)))
    return log, sys.exc_info()


@given(lambda: (ValueError("given"), []))
def a_given_exception_raised_twice(e, log):
    for _ in range(2):
        try:
            t.tick("raise")
            raise e
        except ValueError as caught:
            log.append(caught is e)
    depth, tb = 0, e.__traceback__
    while tb:
        depth, tb = depth + 1, tb.tb_next
    return log, depth, e.__context__


# -- what lives, and what dies --------------------------------------------------------------------------


@given(lambda: ([],))
def locals_die_in_their_order(log):
    def f():
        a, b = Dying(log, "a"), Dying(log, "b")
        t.tick("f")
        b = a
        t.tick("g")
        return 1 if b is a else 2

    log.append(f())
    return log


@given(lambda: ([],))
def a_reference_held_by_the_stack(log):
    def pair(x, y):
        t.tick("pair")
        log.append("pair")
        return 1

    pair(Dying(log, "x"), t.tick("between"))
    log.append("after")
    [Dying(log, "y"), t.tick("list")]
    log.append("end")
    return log


@given(lambda: ([], Box()))
def an_object_that_comes_back(log, box):
    class Back:
        def __del__(self):
            log.append("del")
            t.tick("del")
            box.back = self

    Back()
    t.tick("made")
    kept = box.back
    del box.back
    log.append(type(kept).__name__)
    del kept
    return log, vars(box)


@given(lambda: ([],))
def weak_sets_and_callbacks(log):
    class K:
        pass

    a, b = K(), K()
    alive = weakref.WeakSet([a, b])
    weak = weakref.ref(a, lambda r: log.append("a died"))
    t.tick(len(alive))
    del a
    t.tick(len(alive))
    log.append((len(alive), weak() is None))
    del b
    return log, len(alive)


# -- iterators and generators that are given ------------------------------------------------------------


def _generator():
    log = []

    def g():
        try:
            for i in range(4):
                got = yield i
                log.append(got)
        finally:
            log.append("closed")

    return g(), log


@given(_generator)
def a_generator_used_in_every_way(g, log):
    out = [next(g), g.send("x")]
    t.tick(out)
    for i in g:
        out.append(i)
        t.tick(i)
        break
    try:
        g.throw(ValueError("thrown"))
    except ValueError as e:
        out.append(str(e))
    return out, log, next(g, "over")


@given(lambda: (iter([1, 2, 3, 4, 5]),))
def one_iterator_for_two_loops(it):
    out = []
    for x in it:
        out.append(x)
        if x == 2:
            break
    t.tick(out)
    for x, y in zip(it, it):
        out.append((x, y))
        t.tick(y)
    return out, list(it)


@given(lambda: (itertools.count(5), collections.deque([1, 2, 3], 3)))
def iterators_of_c_types(counter, q):
    out = [next(counter)]
    t.tick(out)
    q.rotate(1)
    it = iter(q)
    out += [next(it), next(counter)]
    t.tick(out)
    out += [next(it)]
    q.append(9)
    try:
        next(it)
    except RuntimeError as e:
        out.append(str(e))
    return out, list(q)


@given(lambda: ({"a": 1, "b": 2, "c": 3},))
def a_dict_that_grows_under_its_iterator(d):
    out = []
    try:
        for k in d:
            out.append(k)
            t.tick(k)
            d[k + "x"] = 1
    except RuntimeError as e:
        out.append(str(e))
    return out, list(d)


# -- functions and classes that change ---------------------------------------------------------------


def _function():
    def f(x, y=1):
        return x + y

    return f, Box(f=f)


@given(_function)
def a_function_that_is_changed(f, box):
    out = [f(1)]
    f.__defaults__ = (10,)
    t.tick("defaults")
    out.append(box.f(1))
    f.__code__ = (lambda x, y: x * y).__code__
    t.tick("code")
    out.append(f(2))
    f.note = "n"
    return out, vars(f)


def _class():
    class A:
        n = 1

        def f(self):
            return self.n

    return A, A()


@given(_class)
def a_class_that_is_changed(cls, o):
    out = [o.f()]
    cls.n = 2
    t.tick(o.n)
    out.append(o.f())
    cls.f = lambda self: self.n * 10
    t.tick("f")
    out.append(o.f())
    o.n = 3
    del cls.n
    out.append(o.f())
    cls.g = property(lambda self: t.tick("g") or 7)
    return [*out, o.g]


@given(lambda: (Box(n=1), Box))
def an_object_that_changes_its_class(o, cls):
    class Other(cls):
        def f(self):
            t.tick("f")
            return self.n + 1

    o.__class__ = Other
    a = o.f()
    o.__class__ = cls
    t.tick(hasattr(o, "f"))
    return a, type(o) is cls


@given(lambda: (types.ModuleType("m"),))
def a_module_that_is_written(m):
    m.x = 1
    t.tick(m.x)
    m.f = lambda: m.x + 1
    exec("y = x + 1", m.__dict__)
    t.tick(m.y)
    m.x = m.f()
    return m.x, m.y, m.f(), "x" in vars(m)


# -- iterators that notice what came back ---------------------------------------------------------------


def _iterating():
    q, d, o = collections.deque([1, 2, 3], 3), {1: 1, 2: 2}, collections.OrderedDict(a=1, b=2)
    its = [iter(q), iter(d), iter(o), iter(o.items())]
    for it in its:
        next(it)
    return q, d, o, its


@given(_iterating)
def what_was_taken_out_and_put_in_again(q, d, o, its):
    q.append(q.popleft())
    q.rotate(1)
    d[2] = d.pop(2)
    o["b"] = o.pop("b")
    out = []
    for it in its:
        try:
            out.append(next(it))
        except (RuntimeError, StopIteration) as e:
            out.append(str(e))
    t.tick(out)
    return out, list(q), d, o
