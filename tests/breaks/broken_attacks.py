"""Programs made against the ways in which frames are put back: each was written to catch one
mistake."""

import itertools
import sys

import ticks as t
from broken_outside import Box, given


def an_init_that_is_a_class():
    class A:
        def __init__(self, *args):
            t.tick("A")

    class B:
        __init__ = A

    try:
        return type(B()).__name__
    except TypeError as e:
        return str(e)


def keys_of_a_star_call():
    class M:
        def keys(self):
            t.tick("keys")
            return ["a", "b"]

        def __getitem__(self, k):
            t.tick(k)
            return k * 2

    def f(**kwargs):
        return kwargs

    return f(**M()), dict(M()), {**M()}


def a_call_that_does_not_bind():
    def f(a, b):
        return a

    class C:
        def __eq__(self, other):
            t.tick("eq")
            return True

    try:
        f(t.tick("one"))
    except TypeError as e:
        text = str(e)
    return text, C() == 1, [C()] == [1]


def a_list_comprehension_of_breaks():
    return [t.tick(x) for x in range(3)], {t.tick(x): x for x in "ab"}, {t.tick(x) for x in "ab"}


def defaults_made_across_a_break():
    def g(a=1, *, k: t.tick("x") = 2, z=t.tick("y")):
        return a, k, z

    return g(), g.__defaults__, g.__kwdefaults__, sorted(g.__annotations__)


def a_handler_at_its_first_instruction():
    def f():
        raise KeyError(t.tick("raise"))

    try:
        f()
    except KeyError:
        t.tick("handler")
        try:
            f()
        except KeyError as e:
            return e.__context__ is not None


def an_endless_iterator():
    total = 0
    for x in itertools.count():
        total += x
        if x > 20:
            break
        t.tick(x)
    return total


def own_iterators_end():
    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                t.tick("end")
                raise StopIteration
            return self.n

    return list(It()), [x for x in It()], next(It(), "d"), sum(It()), [*zip(It(), "ab")]


def attribute_errors_are_caught_natively():
    class A:
        def __getattr__(self, name):
            t.tick(name)
            raise AttributeError(name)

        @property
        def bad(self):
            t.tick("bad")
            raise AttributeError("inner")

    a = A()
    return getattr(a, "x", 1), hasattr(a, "y"), getattr(a, "bad", 2), hasattr(a, "bad")


def old_sequence_protocol():
    class S:
        def __getitem__(self, i):
            t.tick(i)
            if i > 2:
                raise IndexError
            return i

    return list(S()), 2 in S(), [x for x in S()]


def many_unbound_locals(n=5):
    out = []
    for i in range(n):
        if i & 1:
            a = i
        if i & 2:
            b = i
        if i & 4:
            c = i
        t.tick(i)
        found = locals()
        out.append([found.get(k) for k in "abc"])
    return out


def many_ints_in_a_loop():
    n = 0
    for m in range(30):
        n += m
        t.tick(n)
    return n


def sends_in_a_loop():
    def echo():
        got = None
        while True:
            got = yield got
            t.tick(got)

    g = echo()
    next(g)
    return [g.send(i) for i in range(4)]


def zip_of_generators():
    def g(n):
        for i in range(n):
            t.tick(n, i)
            yield i

    return list(zip(g(2), g(3)))


def a_generator_left_in_a_handler():
    def g():
        try:
            raise KeyError(1)
        except KeyError:
            t.tick("in")
            yield sys.exc_info()[1].args
            t.tick("again")
            raise

    it = g()
    out = [next(it)]
    try:
        raise ValueError(2)
    except ValueError:
        try:
            next(it)
        except KeyError as e:
            out.append((e.args, type(e.__context__).__name__))
    return out


def exit_replaces_the_exception():
    class M:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            t.tick(kind.__name__)
            raise ValueError("from exit")

    try:
        with M():
            t.tick("body")
            raise KeyError("body")
    except ValueError as e:
        return type(e.__context__).__name__, e.__context__.args


def break_inside_an_argument_of_a_method():
    xs = []
    xs.append(t.tick("a") or xs.append(1) or 2)
    "{} {}".format(t.tick("b"), xs.append(3))
    return xs


def slices_across_breaks():
    xs = list(range(10))
    a = xs[t.tick("lo") or 2 : t.tick("hi") or 6]
    xs[1 : (t.tick("to") or 3)] = [t.tick("value")]
    del xs[(t.tick("from") or 4) :]
    return a, xs


def chained_comparison_of_objects():
    class N:
        def __init__(self, n):
            self.n = n

        def __lt__(self, other):
            t.tick(self.n, other.n)
            return self.n < other.n

    a, b, c = N(1), N(2), N(3)
    return a < b < c, c < b < a, a < b and b < c, sorted([c, a, b], key=lambda n: n.n)[0].n


def truth_decides():
    class B:
        def __init__(self, x):
            self.x = x

        def __bool__(self):
            t.tick("bool", self.x)
            return self.x

    out = []
    for x in (True, False):
        if B(x):
            out.append("if")
        if not B(x):
            out.append("not")
        out.append("t" if B(x) else "f")
        while B(x):
            break
        else:
            out.append("else")
        out.append((B(x) and 1) == 1)
        assert B(True)
    return out


@given(lambda: (Box(n=0),))
def a_loop_that_guards_what_changes(box):
    while box.n < 12:
        box.n += 1
        t.tick(box.n)
    return box.n


@given(lambda: ([0],))
def calls_in_both_arms(xs):
    def up():
        xs[0] += 1
        t.tick("up")

    def down():
        t.tick("down")
        xs[0] -= 1

    for i in range(6):
        up() if i % 2 else down()
    return xs[0]


def deep_stack_of_operands():
    f = lambda *a: sum(x for x in a if x)  # noqa: E731
    return f(1, f(2, f(3, f(4, t.tick("in") or 5), t.tick("mid") or 6), 7), t.tick("out") or 8)


def with_inside_for_inside_try():
    class M:
        def __init__(self, i):
            self.i = i

        def __enter__(self):
            t.tick("enter", self.i)
            return self.i

        def __exit__(self, kind, *rest):
            t.tick("exit", self.i)
            return kind is KeyError

    out = []
    try:
        for i in range(4):
            with M(i) as x:
                if x == 1:
                    raise KeyError
                if x == 2:
                    continue
                if x == 3:
                    raise ValueError(x)
                out.append(x)
    except ValueError as e:
        out.append(e.args)
    return out


def a_coroutine_style_pipeline():
    def source(target):
        for i in range(3):
            t.tick("source", i)
            target.send(i)
        target.close()

    def sink(out):
        try:
            while True:
                got = yield
                t.tick("sink", got)
                out.append(got)
        except GeneratorExit:
            out.append("closed")

    out = []
    s = sink(out)
    next(s)
    source(s)
    return out


def exec_and_eval():
    x = 2
    ns = {"tick": t.tick}
    exec("tick('exec'); y = 3", ns)
    return ns["y"], eval("x + y", {"x": x, "y": ns["y"]}), eval("tick(1)", ns)


def settrace_in_the_middle():
    seen = []

    def tracer(frame, event, arg):
        seen.append((frame.f_code.co_name, event))

    def f():
        return 1

    before = sys.gettrace()
    t.tick("before")
    sys.settrace(tracer)
    f()
    sys.settrace(before)
    t.tick("after")
    return [row for row in seen if row[0] == "f"]
