"""locals() and vars(): what they show changes between calls. Before 3.13 a frame keeps the dict, and
only those that return it at once are traced."""

import time


def arguments(call):
    def g(a, b=2, *rest, k=3, **more):
        return locals()

    def f(*args, **named):
        return g(*args, **named)

    call(f, 1)
    call.again(f, 1)
    call(f, 2)
    call.traced(f)
    call(f, [1], "b", 7, 8, k=[], z=1)
    call(f, [2], "b", 7, 8, k=[1], z=2)


def values_that_decide(call):
    def g(a):
        return vars()

    def f(a):
        return "big" if g(a)["a"] > 5 else "small"

    call(f, 1)
    call.again(f, 1)
    call(f, 9)
    call(f, 1.5)
    call(f, True)


def unbound_ones(call):
    def f(a):
        if a > 1:
            b = 5
        if a > 2:
            c = a
            del b
        before = sorted(locals())
        if a == 4:
            del c, a
        return before, list(locals())

    for a in (0, 2, 3, 4, 0):
        call(f, a)
    call(f, 0)


def asked_twice(call):
    """Before 3.13 it is one dict a frame, which the second call brings up to date."""

    def f(a):
        one = locals()
        kept = list(one)
        one["mine"] = a
        one["a"] = 0
        b = [a]
        two = locals()
        return a, b, kept, one is two, one, two

    call(f, 1)
    call(f, 2)
    call(f, [])


def of_a_closure(call):
    x = 1

    def f(a):
        def g():
            return a, x

        shown = locals()
        a += 1
        return shown["a"], locals()["a"], shown["x"], list(shown), g()

    call(f, 1)
    call(f, 1)
    x = 5
    call(f, 1)
    x = "text"
    call(f, 2)


def of_an_empty_cell(call):
    x = 1

    def f():
        "x" in locals()
        return list(locals()), (lambda: x)

    call(lambda: f()[0])
    del x
    call(lambda: f()[0])


def of_an_inner_function(call):
    def f(a):
        def g(b):
            c = a
            return locals()

        return g(a), list(locals())

    call(f, 1)
    call(f, [2])


def of_a_generator(call):
    def f(n):
        def g(k):
            for i in range(k):
                yield dict(locals())

        return list(g(n))

    call(f, 2)
    call(f, 2)
    call(f, 3)


def of_a_lambda_and_a_comprehension(call):
    def f(a):
        return (lambda b: vars())(a), [sorted(locals()) for _ in range(2)]

    call(f, 1)
    call(f, 2)


def made_to_text(call):
    def f(name, n):
        return "%(name)s %(n)d" % locals(), "{name}/{n}".format(**locals())

    call(f, "a", 1)
    call(f, "a", 1)
    call(f, "b", 1)
    call(f, "a", 2)


def content_is_written(call):
    def f(a, b):
        locals()["a"].append(1)
        vars()["b"] = 5
        return b

    for _ in range(2):
        call(f, [], 1)
    call(f, [3], [4])


def kept_outside(call):
    def f(kept, a):
        kept.append(locals())
        a += 1
        return a

    kept = []
    call(f, kept, 1)
    call(f, kept, 2)
    call(f, kept, 2)


def of_the_outermost_function(call):
    def f(a, b=2, *rest, k=3, **more):
        return locals()

    call(f, 1)
    call(f, 2)
    call(f, [1], "b", 7, 8, k=[], z=1)


def kept_over_a_break(call):
    def g(x):
        one = locals()
        time.perf_counter()
        y = 1
        two = locals()
        time.perf_counter()
        return one is two, sorted(one), sorted(locals()), y

    def f(a):
        k = [locals()]
        time.perf_counter()
        z = g(a)
        k.append(locals())
        return k[0] is k[1], sorted(k[0]), z

    for a in (1, 1, 2):
        call(f, a)
        call(g, a)


def given_out_over_a_break(call):
    def g(x, y=1):
        return locals()

    def f(a):
        one = g(a)
        time.perf_counter()
        two = g(one)
        return one is two, one, two

    for a in (1, 1, [], [2]):
        call(f, a)


def made_by_native_calls(call):
    def g(x):
        return [d["x"] for d in (lambda: list(map(lambda _: vars(), "ab")))() if "x" in d] or [x]

    def h(x):
        return list(zip("ab", iter(locals, 5)))

    def f(a):
        (_, one), (_, two) = h(a)
        return g(a), one is two, one

    call(f, 1)
    call(f, 2)
