"""Programs that are given objects from outside, and write to them around breaks. `given` makes the
arguments of each call anew; they are compared afterwards."""

import collections
import functools
import weakref

import ticks as t


def given(make):
    def mark(f):
        f.make = make
        return f

    return mark


class Box:
    def __init__(self, **state):
        self.__dict__.update(state)


class Dying:
    def __init__(self, log, name=""):
        self.log = log
        self.name = name

    def __del__(self):
        self.log.append("del " + self.name)


@given(lambda: ([1, 2],))
def a_write_before_the_break_is_done(xs):
    xs.append(3)
    t.tick(xs)
    xs.append(4)
    return len(xs)


@given(lambda: (Box(n=1),))
def attributes_written_around(box):
    box.n += 1
    t.tick(box.n)
    box.m = box.n
    t.tick(box.m)
    del box.n


@given(lambda: ({"a": 1}, [0]))
def what_the_break_itself_writes(d, xs):
    def write(x):
        xs[0] += x
        t.tick(xs[0])
        d["n"] = xs[0]

    xs.append(d["a"])
    write(5)
    d["a"] = xs[0]
    write(d["n"])
    return d["a"], xs[0]


@given(lambda: (Box(log=[]),))
def writes_then_an_exception(box):
    box.log.append(1)
    t.tick("one")
    box.log.append(2)
    raise ValueError(len(box.log))


@given(lambda: (iter([1, 2, 3, 4]),))
def an_outside_iterator(it):
    first = next(it)
    t.tick(first)
    total = 0
    for x in it:
        total += x
        if x == 3:
            break
    return total, list(it)


def _numbers():
    for i in range(4):
        yield i


@given(lambda: (_numbers(),))
def an_outside_generator(g):
    out = []
    for x in g:
        t.tick(x)
        out.append(x)
    return out


@given(lambda: ([3, 1, 2], {"k": [1]}))
def aliases_from_outside(xs, d):
    d["xs"] = xs
    t.tick(d["xs"])
    d["xs"].sort()
    d["k"].append(xs)
    t.tick("sorted")
    return d["k"][1] is xs


@given(lambda: (collections.deque([1, 2, 3]), {1, 2}, bytearray(b"ab")))
def other_containers(q, s, b):
    q.rotate(1)
    s.add(5)
    b += b"c"
    t.tick(list(q), len(s), bytes(b))
    q.append(s.discard(1))
    b[0] = 65


@given(lambda: (collections.defaultdict(list),))
def a_default_dict(d):
    d["a"].append(1)
    t.tick(dict(d))
    d["a"].append(2)
    d["b"]


@given(lambda: (Box(f=lambda x: x + 1),))
def an_outside_function(box):
    def g(x):
        t.tick(x)
        return box.f(x)

    box.f, old = g, box.f
    try:
        return old(1), box.g
    except AttributeError as e:
        t.tick("no g")
        box.f = old
        return str(e)


@given(lambda: ([],))
def a_finalizer_runs_when_its_object_goes(log):
    o = Dying(log, "a")
    t.tick("made")
    o = None
    n = len(log)
    t.tick("gone")
    return n, o


@given(lambda: ([],))
def a_finalizer_of_a_temporary(log):
    Dying(log, "a")
    return len(log)


@given(lambda: ([],))
def a_finalizer_at_del(log):
    o = Dying(log, "a")
    log.append(o.name)
    del o
    log.append("after")
    t.tick(log)
    return list(log)


@given(lambda: ([],))
def a_finalizer_at_return(log):
    def f():
        o = Dying(log, "a")
        t.tick(o.name)
        return len(o.name)

    n = f()
    log.append(n)
    return list(log)


@given(lambda: ([Dying([], "x")],))
def the_last_reference_is_popped(xs):
    log = xs[0].log
    t.tick(log)
    xs.pop()
    log.append("after")
    return log


@given(lambda: ([],))
def a_weak_reference_dies(log):
    o = Box()
    r = weakref.ref(o, lambda ref: log.append("dead"))
    t.tick(r() is o)
    del o
    log.append(r() is None)
    return list(log)


@given(lambda: ([],))
def a_generator_argument_dies_in_the_callee(log):
    def gen():
        try:
            yield 1
        finally:
            log.append("closed")

    def h(g):
        next(g)
        del g
        t.tick(log)
        return len(log)

    return h(gen())


@given(lambda: (Box(lock=False),))
def a_lock_is_given_back(box):
    class Lock:
        def __enter__(self):
            box.lock = True

        def __exit__(self, *args):
            box.lock = False

    try:
        with Lock():
            t.tick(box.lock)
            [][1]
    except IndexError:
        t.tick(box.lock)
    return box.lock


@given(lambda: (Box(calls=0), 6))
def memoised(box, n):
    @functools.lru_cache(None)
    def fib(n):
        box.calls += 1
        if n < 2:
            t.tick(n)
            return n
        return fib(n - 1) + fib(n - 2)

    return fib(n)


@given(lambda: ({},))
def an_exception_put_outside(d):
    try:
        t.tick("in")
        raise KeyError("out")
    except KeyError as e:
        d["e"] = e
    t.tick("kept")
    return d["e"].args


@given(lambda: (ValueError("outside"),))
def an_outside_exception_is_raised(e):
    try:
        t.tick("in")
        raise e
    except ValueError as f:
        t.tick("caught")
        return f is e


@given(lambda: (ValueError("outside"),))
def an_outside_exception_leaves(e):
    t.tick("in")
    raise e


@given(lambda: ([1, 2, 3], Box(total=0)))
def a_method_loop(xs, box):
    for x in xs:
        box.total += x
        t.tick(box.total)
    return box.total


@given(lambda: (Box(next=Box(next=Box(next=None, n=3), n=2), n=1),))
def a_linked_list(node):
    out = []
    while node is not None:
        out.append(node.n)
        t.tick(node.n)
        node.seen = len(out)
        node = node.next
    return out


def _graph():
    a, b, c = Box(n=1), Box(n=2), Box(n=3)
    a.next, b.next, c.next = [b, c], [c], [a]
    return (a, {b: "b"}, {c})


@given(_graph)
def visited_objects(start, names, marked):
    seen, memo, order = set(), {}, []
    queue = [start]
    while queue:
        node = queue.pop()
        t.tick()
        if node in seen:
            memo[node] += 10
            continue
        seen.add(node)
        memo[node] = node.n
        order.append((node.n, names.get(node), node in marked))
        t.tick()
        queue += node.next
        names[node] = len(seen)
        marked.discard(node)
    return order, [memo[k] for k in memo], len(seen), [*names.values()], len(marked)


@given(lambda: ({Box(n=1): [1], Box(n=2): [2]}, Box(n=3)))
def keys_of_this_call(table, other):
    t.tick()
    for key, value in table.items():
        value.append(key.n)
        t.tick()
    first = next(iter(table))
    table[other] = table.pop(first)
    t.tick()
    return [k.n for k in table], first in table, other in table


@given(lambda: (Box(n=4),))
def classes_around_breaks(box):
    class Local:
        scale = 2

        def __init__(self, n):
            self.n = n

        def value(self):
            t.tick()
            return self.n * self.scale

    class Below(Local):
        def value(self):
            return super().value() + 1

    made = Below(box.n)
    t.tick()
    box.n = made.value()
    Local.scale = 3
    return made.value(), isinstance(made, Local), box.n
