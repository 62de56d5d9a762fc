"""Weak proxies: of what was made inside they are traced as long as it surely lives; everything else
is as in plain."""

import time
import weakref


class _O:
    def __init__(self, x=1):
        self.x = x

    def method(self, y):
        return self.x, y


class _Loud(_O):
    def __init__(self):
        super().__init__(2)


class _Link:
    __slots__ = "back", "next", "key", "__weakref__"


class _Chain:
    """As collections.OrderedDict in Python: every second link is weak."""

    def __init__(self, keys):
        self.hard = _Link()
        self.root = root = weakref.proxy(self.hard)
        root.back = root.next = root
        self.map = {}
        for key in keys:
            self.add(key)

    def add(self, key):
        self.map[key] = link = _Link()
        last = self.root.back
        link.back, link.next, link.key = last, self.root, key
        last.next = link
        self.root.back = weakref.proxy(link)

    def drop(self, key):
        link = self.map.pop(key)
        link.back.next = link.next
        link.next.back = link.back

    def __iter__(self):
        link = self.root.next
        while link is not self.root:
            yield link.key
            link = link.next

    def __reversed__(self):
        link = self.root.back
        while link is not self.root:
            yield link.key
            link = link.back


def attributes(call):
    def f(x):
        o = _O(x)
        p = weakref.proxy(o)
        p.y = x
        p.x += 1
        seen = o.x, o.y, p.x, p.method(3), p is weakref.proxy(o), hasattr(p, "z")
        del p.y
        return seen, vars(o), type(p) is weakref.ProxyType

    call(f, 1)
    call.again(f, 1)
    call(f, 2)
    call(f, 1.5)
    call.traced(f)


def chain_of_links(call):
    def f(keys, gone):
        c = _Chain(keys)
        for key in gone:
            c.drop(key)
        c.add("last")
        return list(c), list(reversed(c)), len(c.map)

    call(f, ["a", "b", "c"], ["b"])
    call.again(f, ["a", "b", "c"], ["b"])
    call(f, ["a", "b", "c"], ["a"])
    call(f, [1], [1])
    call(f, [], [])
    call.traced(f)


def class_changes(call):
    def f():
        o = _O()
        return weakref.proxy(o).tag

    _O.tag = 1
    call(f)
    call.again(f)
    _O.tag = 2
    call(f)
    _O.tag = property(lambda self: self.x + 10)
    call(f)
    del _O.tag
    call(f)


def chain_from_outside(call):
    def f(c, key):
        c.add(key)
        return list(c), list(reversed(c))

    c = _Chain("ab")
    for key in "cd":
        call.loose(f, c, key)


def chain_given_out(call):
    def f(keys):
        return _Chain(keys)

    for _ in range(2):
        c = f("ab") if not call.compiled else call.target(f)("ab")
        call.note((list(c), list(reversed(c)), type(c.root) is weakref.ProxyType))


def _dies(call, f, *args):
    for _ in range(2):
        call.loose(f, *args)


def dead_after_del(call):
    def f():
        o = _O()
        p = weakref.proxy(o)
        del o
        try:
            return p.x
        except ReferenceError:
            return "dead"

    _dies(call, f)


def dead_after_an_argument_is_dropped(call):
    def g(o):
        p = weakref.proxy(o)
        del o
        try:
            return p.x
        except ReferenceError:
            return "dead"

    def f():
        return g(_O())

    _dies(call, f)


def dead_after_super(call):
    def f():
        o = _Loud()
        p = weakref.proxy(o)
        del o
        try:
            return p.x
        except ReferenceError:
            return "dead"

    _dies(call, f)


def dead_after_its_function(call):
    def f():
        o = _O()

        def g():
            return o

        p = weakref.proxy(o)
        del g, o
        try:
            return p.x
        except ReferenceError:
            return "dead"

    _dies(call, f)


def dead_after_its_place_outside(call):
    def f(h):
        h.child = _O()
        p = weakref.proxy(h.child)
        alive = p.x
        h.child = None
        try:
            return alive, p.x
        except ReferenceError:
            return alive, "dead"

    _dies(call, f, _O())


def dead_after_a_slot_outside(call):
    def f(h):
        h.key = _O()
        p = weakref.proxy(h.key)
        h.key = None
        try:
            return p.x
        except ReferenceError:
            return "dead"

    _dies(call, f, _Link())


def dead_after_its_list(call):
    def f():
        held = [_O()]
        p = weakref.proxy(held[0])
        alive = p.x
        held.clear()
        try:
            return alive, p.x
        except ReferenceError:
            return alive, "dead"

    _dies(call, f)


def dead_in_a_caller(call):
    def g(p):
        return p.x

    def f():
        def make():
            return weakref.proxy(_O())

        try:
            return g(make())
        except ReferenceError:
            return "dead"

    _dies(call, f)


def callback(call):
    def f(log):
        o = _O()
        p = weakref.proxy(o, lambda _: log.append("gone"))
        x = p.x
        del o
        log.append("after")
        return x

    for _ in range(2):
        call(f, [])


def whatever_else_is_done(call):
    def given_to(how):
        def f():
            o = _O()
            p = weakref.proxy(o)
            return how(p, o)

        return f

    for how in (
        lambda p, o: isinstance(p, _O),
        lambda p, o: p.__class__ is _O,
        lambda p, o: bool(p),
        lambda p, o: p == o,
        lambda p, o: p == p,
        lambda p, o: p in [p],
        lambda p, o: {p: 1},
        lambda p, o: p + 1,
        lambda p, o: len(p),
        lambda p, o: list(p),
        lambda p, o: p[0],
        lambda p, o: p(),
        lambda p, o: callable(p),
        lambda p, o: p.nothing,
        lambda p, o: object.__getattribute__(p, "x"),
        lambda p, o: weakref.proxy(p),
        lambda p, o: weakref.proxy(1),
        lambda p, o: weakref.proxy(),
    ):
        f = given_to(how)
        for _ in range(2):
            call.loose(f)


def proxy_from_outside(call):
    def f(p):
        return isinstance(p, _O), p.x

    a, b = _O(1), _O(2)
    for o in (a, b, a):
        call.loose(f, weakref.proxy(o))
    a.x = 5
    call.loose(f, weakref.proxy(a))


def over_a_break(call):
    def f(x):
        o = _O(x)
        p = weakref.proxy(o)
        time.perf_counter()
        p.y = x
        return o.y, p.x, p is weakref.proxy(o), vars(o)

    for x in (1, 1, 2):
        call.loose(f, x)


def chain_over_a_break(call):
    def f(keys):
        c = _Chain(keys)
        time.perf_counter()
        c.add("last")
        time.perf_counter()
        c.drop("last")
        return list(c), list(reversed(c))

    for keys in ("ab", "ab", "abc", ""):
        call.loose(f, keys)


def dead_over_a_break(call):
    def f(x):
        o = _O(x)
        p = weakref.proxy(o)
        del o
        time.perf_counter()
        try:
            return p.x
        except ReferenceError:
            return "dead"

    _dies(call, f, 1)
