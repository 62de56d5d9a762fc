"""Programs whose breaks are in a callee, and whose callers make it hard to go on from there: they are
held, replaced, watched, many, or see what dies."""

import gc
import sys
import types
import weakref

import ticks as t


class _Plain:
    pass


class _Loud:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __del__(self):
        self.log.append(self.name)


def _inner(x):
    t.tick(x)
    return x


def _names(traceback):
    found = []
    while traceback is not None:
        found.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return found


def _reads_global(inner):
    got = inner(1)
    return got, K  # noqa: F821


def one_code_with_other_globals():
    def with_globals(value):
        space = {"K": value, "__builtins__": __builtins__}
        return types.FunctionType(_reads_global.__code__, space)

    one, two = with_globals("one"), with_globals("two")
    return [f(_inner) for f in (one, two, one, two)]


def callers_and_no_caller():
    def middle(x):
        return _inner(x) * 2

    def outer(x):
        return middle(x) + 1

    xs = [1, 2, -1]
    return [outer(x) for x in xs], list(map(_inner, xs)), sorted(xs, key=_inner), outer(9)


def a_buffer_let_go_of_by_the_callee():
    def inner(data):
        view = memoryview(data)
        t.tick(len(view))
        return len(view)

    data, out = bytearray(b"abc"), []
    for i in range(3):
        out.append(inner(data))
        data.append(100 + i)
    return out, bytes(data)


def the_last_reference_goes_in_the_caller():
    def outer(box, weak):
        o = box.pop()
        _inner(len(box))
        del o
        return weak() is None

    def run(dies):
        o, other = _Plain(), _Plain()
        weak = weakref.ref(o if dies else other)
        box = [o]
        del o
        return outer(box, weak)

    return [run(dies) for dies in (False, True, False, True)]


def a_callback_when_the_caller_lets_go():
    log = []

    def outer(box):
        o = box.pop()
        _inner(len(box))
        del o
        log.append("after")
        t.tick("again")
        return 2

    def run(watched, kept):
        o = _Plain()
        kept.append(weakref.ref(o, lambda _: log.append("dead")) if watched else None)
        box = [o]
        del o
        return outer(box)

    kept = []
    return [run(w, kept) for w in (False, True, False, True)], log


def what_only_the_callee_itself_holds():
    log = []

    def outer():
        got = (lambda d=_Loud(log, "default"): (t.tick(0), 5)[1])()
        log.append("after")

        def g():
            t.tick(1)

        g.attribute = _Loud(log, "attribute")
        weak = weakref.ref(g, lambda _: log.append("function"))
        box = [g]
        del g
        box.pop()()
        log.append("after")
        t.tick(2)
        return got, weak() is None

    return [outer() for _ in range(3)], log


def a_part_that_lives_on_in_a_callee():
    log = []

    class Manager:
        def __init__(self, log, *names):
            self.parts = [_Loud(log, name) for name in names]

        def leave(self, keep):
            t.tick("leaving")
            self.parts = [] if keep == "none" else self.parts
            log.append("left")
            t.tick("left")
            return self if keep == "self" else None

    def pair(keep):
        both = Manager(log, "first"), Manager(log, "second")
        leave = both[0].leave
        del both
        log.append("one")
        return leave(keep)

    def outer(keep):
        leave = Manager(log, "a", "b").leave
        t.tick(keep)
        got = [leave, keep]
        del leave
        kept = got.pop(0)(got[0])
        log.append("after")
        t.tick("after")
        return kept is None, pair(keep) is None

    return [outer(keep) for keep in ("none", "self", "parts", "self", "none")], log


def frames_held_in_three_ways():
    held = []

    def inner(how):
        if how == "caller":
            held.append(sys._getframe(1))
        elif how == "own":
            held.append(sys._getframe())
        elif how == "traceback":
            try:
                raise ValueError
            except ValueError as e:
                held.append(e.__traceback__.tb_frame.f_back)
        t.tick(how)
        return 1

    def outer(how):
        a = inner(how)
        a += 100
        return a * 2

    got = [outer(how) for how in ("", "", "caller", "", "traceback", "own", "")]
    seen = []
    for frame in held:
        while frame.f_code.co_name in ("inner", "outer"):
            line = frame.f_lineno - frame.f_code.co_firstlineno
            seen.append((frame.f_code.co_name, line, frame.f_locals.get("a")))
            frame = frame.f_back
    held.clear()
    return got, seen


def exceptions_of_the_callee_that_are_kept():
    kept = []

    def inner(x):
        t.tick(x)
        try:
            raise KeyError(x)
        except KeyError as e:
            kept.append(e)
        return x

    def outer(x):
        got = inner(x)
        local = got + 1
        return local

    got = [outer(i) for i in range(3)]
    frames = [e.__traceback__.tb_frame for e in kept]
    seen = [
        (f.f_locals["x"], f.f_back.f_code.co_name, f.f_back.f_locals.get("local")) for f in frames
    ]
    kept.clear()
    return got, seen


def exceptions_the_caller_keeps_or_not():
    def inner(x):
        t.tick(x)
        raise KeyError(x)

    def outer(keeps, kept):
        try:
            inner(keeps)
        except KeyError as e:
            if keeps:
                kept.append(e)
            return keeps

    def other(kept):
        a = b = 7
        try:
            inner("other")
        except KeyError as e:
            return a + b, e.args

    kept = []
    got = [outer(True, kept), other(kept), outer(False, kept), outer(True, kept)]
    found = [_names(e.__traceback__) for e in kept]
    kept.clear()
    return got, found


def fresh_objects_as_keys():
    def outer(x):
        key = object()
        d = {key: x}
        _inner(x)
        return d[key]

    return [outer(3) for _ in range(30)]


def more_kinds_than_the_limit():
    def outer(x, k):
        got = _inner(x)
        return got, k + 1

    return [outer(x, k) for k in range(4) for x in (1, 1.5, "s", None, (1,), b"b")]


def compiled_code_in_a_finalizer():
    log = []

    def told(n):
        t.tick(n)
        return n

    class Cycle:
        def __del__(self):
            log.append(told(told(1) + 1))

    def inner():
        c = Cycle()
        c.me = c
        del c
        many = [[] for _ in range(30)]
        t.tick(len(many))
        return len(many)

    def outer():
        got = inner()
        return got + len([[j] for j in range(50)])

    got = [outer() for _ in range(10)]
    gc.collect()
    return got, sorted(log)


def tools_switched_on_in_the_callee():
    lines = []

    def watch(frame, event, _):
        lines.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return watch

    def inner(on):
        if on:
            sys._getframe(1).f_trace = watch
            sys.settrace(watch)
        t.tick(on)
        return 1

    def outer(on):
        got = inner(on)
        sys.settrace(None)
        return got

    return [outer(on) for on in (False, False, True, False)], [
        row for row in lines if row[1] == "outer"
    ]


def one_code_at_every_level():
    def down(n, x):
        if n:
            below = down(n - 1, [*x, n])
            return [x, below]
        t.tick(len(x))
        return x

    first = [0]
    got = [down(n, first) for n in (2, 1, 3, 2)]
    return got, got[0][0] is first


def unbound_operands_below_the_call():
    def outer(binds):
        if binds:
            z = 5
        try:
            return max(0, *[_inner(1)], z)
        except UnboundLocalError:
            return "unbound"

    return [outer(b) for b in (True, False, True, False)]
