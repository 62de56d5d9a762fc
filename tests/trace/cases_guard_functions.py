"""What hangs on functions: code, defaults, closure; also of functions that are called inside."""

import functools


def code_replaced(call):
    def f(x):
        return x + 1

    def other(x):
        return x * 10

    old = f.__code__
    call(f, 1)
    f.__code__ = other.__code__
    call(f, 1)
    f.__code__ = old
    call(f, 1)


def code_of_a_called_function_replaced(call):
    def g(x):
        return x + 1

    def other(x):
        return x * 10

    def f(x):
        return g(x)

    old = g.__code__
    call(f, 1)
    call.again(f, 1)
    g.__code__ = other.__code__
    call(f, 1)
    g.__code__ = old
    call.again(f, 1)


def defaults_of_a_called_function(call):
    def g(a=0, b=1, c=2):
        return a, b, c

    def f():
        return g(7)

    call(f)
    call.again(f)
    g.__defaults__ = (0, 5, 2)
    call(f)
    g.__defaults__ = (5, 6)
    call(f)
    g.__defaults__ = (9, 8, 7, 6)[:3]
    call(f)
    g.__defaults__ = (5,)
    call(f)
    g.__defaults__ = None
    call(f)
    g.__defaults__ = (0, 1, 2)
    call.again(f)


def more_defaults_shift_them(call):
    def g(a, b=1, c=2):
        return a, b, c

    def f(x):
        return g(x)

    call(f, [])
    g.__defaults__ = (9, 1, 2)
    call(f, [])
    g.__defaults__ = (1, 2)
    call.again(f, [])


def keyword_defaults_of_a_called_function(call):
    def g(*, k=1, j=2):
        return k, j

    def f():
        return g(j=5)

    call(f)
    call.again(f)
    g.__kwdefaults__["k"] = 9
    call(f)
    g.__kwdefaults__["j"] = 9
    call.again(f)
    g.__kwdefaults__ = {"j": 1}
    call(f)


def _flagged(flag):
    def g(a=flag, *, k=flag):
        return a, k

    return g


def arguments_that_are_the_defaults_of_one_function(call):
    def f(g):
        return g(), g(True), g(a=True), g(k=True), g(True, k=True)

    call(f, _flagged(True))
    call(f, _flagged(False))
    call.again(f, _flagged(True))


def native_arguments_that_are_the_defaults_of_one_function(call):
    def f(g):
        return list(map(g, [True, True]))

    call(f, _flagged(True))
    call(f, _flagged(False))
    call.again(f, _flagged(True))


def function_argument(call):
    def one(x):
        return x + 1

    def two(x):
        return x * 2

    def f(g, x):
        return g(x)

    call(f, one, 1)
    call.again(f, one, 1)
    call(f, two, 1)
    call(f, len, "abc")
    call(f, str, 1)


def fresh_lambda_argument(call):
    def f(g):
        return g(1)

    def make():
        return lambda x: x + 1

    call(f, make())
    call.again(f, make())
    call.again(f, make())


def function_in_a_list(call):
    def one():
        return 1

    def two():
        return 2

    def f(gs):
        return [g() for g in gs]

    gs = [one, two]
    call(f, gs)
    call.again(f, [one, two])
    gs.reverse()
    call(f, gs)


def decorated_function(call):
    def deco(g):
        @functools.wraps(g)
        def inner(*args, **kwargs):
            return "deco", g(*args, **kwargs)

        return inner

    @deco
    def f(x):
        return x + 1

    call(f, 1)
    call.again(f, 1)
    call(f, 2)


def inner_function_closing_over_arguments(call):
    def f(n):
        def g(x):
            return x + n

        return g(1), g

    r = call(f, 1)
    call.note(r[1](10))
    r = call(f, 2)
    call.note(r[1](10))


def wrapped_attribute(call):
    def g(x):
        return x

    @functools.wraps(g)
    def h(x):
        return "h", x

    def f(h):
        return h.__wrapped__(1), h(1)

    call(f, h)
    h.__wrapped__ = lambda x: "new"
    call(f, h)


def cached_function(call):
    seen = []

    @functools.lru_cache
    def g(k):
        seen.append(k)
        return [k]

    def f(k):
        return g(k), len(seen)

    call(f, 1)
    call(f, 1)
    call(f, 2)
    g.cache_clear()
    call(f, 1)
    call.note(g.cache_info().hits)


def callback_in_sorted(call):
    def key(x):
        return -x

    def f(xs):
        return sorted(xs, key=key)

    other = (lambda x: x).__code__
    call(f, [1, 2, 3])
    call.again(f, [1, 2, 3])
    key.__code__ = other
    call(f, [1, 2, 3])


def generator_function_called_inside(call):
    def g(n):
        for i in range(n):
            yield i

    def f(n):
        return list(g(n)), sum(g(n))

    call(f, 3)
    call.again(f, 3)
    call(f, 4)


def stopped_by_an_exception(call):
    def f(x):
        if x > 1:
            raise ValueError(x)
        return x

    call(f, 1)
    call(f, 2)
    call(f, 3)
    call.again(f, 1)


def exception_caught_inside(call):
    def g(x):
        if x:
            raise KeyError(x)
        return "fine"

    def f(x):
        try:
            return g(x)
        except KeyError as e:
            return "caught", e.args

    call(f, 0)
    call(f, 1)
    call(f, 2)
    call.again(f, 0)


def staticmethod_and_classmethod_objects(call):
    def f(s):
        return s.__func__(1)

    call(f, staticmethod(lambda x: x + 1))
    call(f, staticmethod(lambda x: x + 2))
    call(f, classmethod(lambda x: x + 3))
