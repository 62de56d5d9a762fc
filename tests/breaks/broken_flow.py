"""Programs with breaks in every construct of the language."""

import contextlib
import itertools

import ticks as t


def in_a_for_loop():
    total = 0
    for i in range(5):
        total += i
        t.tick(i, total)
    else:
        t.tick("else")
    return total


def in_a_while_loop_with_continue_and_break():
    n, seen = 0, []
    while True:
        n += 1
        if n % 2:
            t.tick("odd", n)
            continue
        seen.append(n)
        if n > 6:
            t.tick("out")
            break
    return n, seen


def in_nested_loops():
    out = []
    for a in "xy":
        for b in (1, 2):
            t.tick(a, b)
            out.append(a * b)
        out.append(None)
    return out


def over_an_iterator_made_before():
    it = iter([1, 2, 3, 4])
    t.tick(next(it))
    got = [x for x in it if x != 3]
    return got, list(it)


def over_dict_views():
    d = {"a": 1, "b": 2}
    out = []
    for k, v in d.items():
        t.tick(k)
        out.append((k, v))
    for k in d:
        t.tick(k)
    return out, d


def over_zip_and_enumerate():
    out = []
    for i, (a, b) in enumerate(zip([1, 2, 3], "abc")):
        t.tick(i)
        out.append((i, a, b))
    return out


def a_loop_that_changes_what_it_walks():
    xs = [1, 2, 3]
    for x in xs:
        t.tick(x)
        if len(xs) < 6:
            xs.append(x * 10)
    return xs


def in_a_with_block():
    class Manager:
        def __enter__(self):
            t.tick("enter")
            return 5

        def __exit__(self, *args):
            t.tick("exit", args[0])
            return True

    with Manager() as x:
        t.tick(x)
        raise ValueError(x)
    return x


def in_two_managers():
    @contextlib.contextmanager
    def managed(name):
        t.tick("in", name)
        try:
            yield name
        finally:
            t.tick("out", name)

    with managed("a") as a, managed("b") as b:
        t.tick(a, b)
    return a + b


def a_manager_that_breaks_before_its_yield_only():
    @contextlib.contextmanager
    def managed(log):
        log.append("in")
        t.tick("in")
        yield len(log)
        log.append("out")

    log = []
    with managed(log) as n:
        log.append(n)
    return log


def a_manager_that_handles():
    @contextlib.contextmanager
    def managed():
        try:
            yield 1
        except KeyError as e:
            t.tick("caught", e.args)

    with managed() as x:
        t.tick(x)
        {}["missing"]
    return "after"


def suppress_and_exit_stack():
    with contextlib.ExitStack() as stack:
        stack.callback(t.tick, "callback")
        stack.enter_context(contextlib.suppress(ValueError))
        t.tick("inside")
        raise ValueError
    return "done"


def in_try():
    try:
        t.tick("body")
        x = int("no")
    except ValueError as e:
        t.tick("handler", str(e)[:7])
        x = -1
    else:
        x = 0
    finally:
        t.tick("finally")
    return x


def in_else_and_finally():
    out = []
    for i in range(3):
        try:
            t.tick(1 / i)
        except ZeroDivisionError:
            out.append("zero")
        else:
            t.tick("else")
            out.append(i)
        finally:
            t.tick("finally", i)
            out.append("f")
    return out


def finally_returns():
    def f():
        try:
            t.tick("body")
            raise KeyError(1)
        finally:
            t.tick("finally")
            return 7

    return f()


def finally_in_a_loop_with_continue():
    out = []
    for i in range(3):
        try:
            if i == 1:
                continue
            t.tick(i)
            out.append(i)
        finally:
            t.tick("f", i)
            out.append(-i)
    return out


def return_through_finally():
    log = []

    def f():
        for i in range(3):
            try:
                t.tick(i)
                if i == 1:
                    return i
            finally:
                log.append(i)
                t.tick("f")

    return f(), log


def nested_handlers():
    try:
        try:
            t.tick("in")
            raise KeyError("k")
        except KeyError as e:
            t.tick("k", e.args)
            try:
                raise ValueError("v")
            except ValueError as f:
                t.tick("v", f.__context__ is e)
                inner = type(f.__context__).__name__
            t.tick("after", inner)
            raise
    except KeyError as e:
        return inner, e.args, e.__context__


def handlers_by_tuple_and_order():
    out = []
    for kind in (KeyError, IndexError, ZeroDivisionError):
        try:
            t.tick(kind.__name__)
            raise kind("x")
        except (KeyError, IndexError) as e:
            out.append(("lookup", type(e).__name__))
        except ArithmeticError:
            t.tick("arithmetic")
            out.append("arithmetic")
    return out


def except_star():
    out = []
    try:
        t.tick("in")
        raise ExceptionGroup("g", [ValueError(1), KeyError(2), OSError(3)])
    except* ValueError as e:
        t.tick("v")
        out.append([type(x).__name__ for x in e.exceptions])
    except* (KeyError, OSError) as e:
        t.tick("ko")
        out.append([type(x).__name__ for x in e.exceptions])
    return out


def except_star_lets_go_of_the_rest():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            t.tick("v")
    except ExceptionGroup as rest:
        t.tick("rest")
        return [type(x).__name__ for x in rest.exceptions]


def in_comprehensions():
    a = [t.tick(x) or x for x in range(3)]
    b = {x: t.tick(x) for x in "ab"}
    c = {x + 1 for x in range(3) if t.tick(x) is None}
    d = [[t.tick(x, y) or x * y for x in range(2)] for y in range(2)]
    return a, b, c, d


def in_a_generator_expression():
    def kept(x):
        t.tick(x)
        return x

    return sum(kept(x) for x in range(4)), [*(kept(y) for y in "ab")]


def in_a_generator_made_inside():
    def count(n):
        for i in range(n):
            t.tick("yield", i)
            got = yield i
            t.tick("got", got)
        return "end"

    g = count(3)
    out = [next(g), g.send("a")]
    t.tick("between")
    out += g
    return out


def beside_a_suspended_generator():
    def count():
        x = 0
        while True:
            x += yield x

    g = count()
    next(g)
    t.tick("suspended")
    a = g.send(2)
    t.tick(a)
    return a, g.send(3)


def delegating_generators():
    def inner(n):
        got = yield n
        t.tick("inner", got)
        return got

    def outer():
        a = yield from inner(1)
        t.tick("outer", a)
        b = yield from inner(2)
        return a, b

    g = outer()
    out = [next(g), g.send("x")]
    try:
        g.send("y")
    except StopIteration as stop:
        out.append(stop.value)
    return out


def a_generator_with_finally():
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            t.tick("closing")
            log.append("closed")

    it = g()
    log.append(next(it))
    t.tick("open")
    it.close()
    for x in g():
        log.append(x)
        break
    t.tick("left")
    return log


def throw_into_a_generator():
    def g():
        while True:
            try:
                yield "ready"
            except KeyError as e:
                t.tick("thrown")
                yield e.args

    it = g()
    next(it)
    got = it.throw(KeyError("k"))
    t.tick(got)
    return got, next(it)


def a_class_body():
    class A:
        t.tick("body")
        x = [i for i in range(3)]
        t.tick(x)

        def m(self):
            t.tick("method")
            return self.x

    return A().m(), A.__name__


def in_an_f_string():
    x = 3.14159
    return f"{x:.2f} {t.tick('in')!r:>6} {x!s} {'nested ' + f'{t.tick(1)}'}"


def half_evaluated_arguments():
    def f(*args, **kwargs):
        return args, kwargs

    box = [1]
    return f(box, t.tick("a"), box.append(2), *[t.tick("b"), 3], k=t.tick("c"), **{"z": len(box)})


def half_evaluated_displays():
    a = [1, t.tick(1), 2]
    b = {"x": t.tick("x"), **{"y": t.tick("y")}}
    c = (*a, t.tick(2))
    d = {1, 2, len(a) if t.tick(3) is None else 0}
    return a, b, c, d


def half_evaluated_operators():
    a = [1] + [t.tick("right") or 2]
    b = 1 < len(a) < (t.tick("chain") or 5)
    c = (t.tick("or") or 0) + 1 if b else -1
    a[t.tick("index") or 0] += 10
    return a, b, c


def conditional_expressions():
    return [("yes" if t.tick(i) is None and i else "no") for i in range(2)]


def unpacking():
    def pair(x):
        t.tick(x)
        return x, [x, x + 1, x + 2]

    a, (b, *c) = pair(1)
    [d, e], f = (t.tick("list") or 4, 5), 6
    for g, *h in [pair(7), pair(8)]:
        t.tick(g, h)
    return a, b, c, d, e, f, g, h


def deletes():
    x, d, xs = 1, {"a": 1, "b": 2}, [1, 2, 3]
    del x
    t.tick("gone")
    del d["a"], xs[0:2]
    try:
        x
    except UnboundLocalError as e:
        t.tick("unbound")
        return d, xs, e.args


def stores_everywhere():
    class Box:
        pass

    box, xs = Box(), [0, 0, 0]
    box.a = xs[1] = y = t.tick("value") or 5
    xs[t.tick("key") or 2] = y
    box.b, xs[0] = t.tick("pair") or (7, 8)
    return vars(box), xs


def augmented_stores():
    d = {"n": 1}
    d["n"] += t.tick("add") or 2
    xs = [1]
    xs += [t.tick("list")]
    s = "a"
    for _ in range(3):
        s += "b"
        t.tick(s)
    return d, xs, s


def imports_inside():
    import json

    t.tick("json")
    from collections import OrderedDict as O
    from collections import deque

    t.tick("collections")
    import os.path as p

    return json.dumps([1]), O([(1, 2)]), list(deque([1])), p.join("a", "b")


def a_failed_import():
    try:
        import no_such_module_at_all  # noqa: F401
    except ImportError as e:
        t.tick(e.name)
        return str(e)


def asserts():
    x = 3
    assert x == 3, t.tick("never")
    try:
        assert x == 4, (t.tick("message"), x)
    except AssertionError as e:
        return e.args


def returns_a_call():
    def f(n):
        return t.tick(n) or n + 1

    return f(f(1))


def match_statement():
    out = []
    for subject in ([1, 2], {"k": 3, "z": 4}, (5,), "s"):
        match subject:
            case [a, b]:
                t.tick(a, b)
                out.append(a + b)
            case {"k": k, **rest}:
                t.tick(k)
                out.append(rest)
            case (x,) if t.tick(x) is None:
                out.append(x)
            case _:
                out.append(None)
    return out


def walrus_and_lambda():
    f = lambda x, y=(t.tick("default") or 2): (t.tick("call"), x + y)  # noqa: E731
    if (n := f(1)[1]) > 2:
        t.tick(n)
    return n, f(n)


def decorators_and_defaults():
    def traced(f):
        t.tick(f.__name__)

        def call(*args):
            t.tick(args)
            return f(*args)

        return call

    @traced
    def g(a, b=t.tick("default"), *, c: t.tick("annotation") = 3):
        return a, b, c

    return g(1), g(1, 2)


def global_and_nonlocal():
    global _counter
    _counter = 0
    total = 0

    def add(n):
        global _counter
        nonlocal total
        t.tick(n)
        _counter += 1
        total += n

    for i in range(3):
        add(i)
        t.tick(total)
    n, _counter = _counter, None
    return n, total


_counter = None


def recursion():
    def fact(n):
        if n == 0:
            t.tick("bottom")
            return 1
        below = fact(n - 1)
        t.tick(n)
        return n * below

    return fact(6)


def mutual_recursion():
    def even(n):
        t.tick("even", n)
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return even(7), odd(3)


def iterators_across_breaks():
    it, far = iter((1, 2, 3, 4, 5)), iter(range(7))
    out = [next(it), next(far)]
    t.tick(len(out))
    out += [next(it), next(far), next(far)]
    t.tick(len(out))
    out.append(next(it))
    for x in it:
        t.tick(x)
        out.append((x, next(far, None)))
    return out, next(it, "end"), list(far)


def _take(it, count):
    t.tick(count)
    return [next(it) for _ in range(count)]


def iterators_that_frames_share():
    xs = [1, 2, 3, 4, 5, 6, 7, 8]
    it = iter(xs)
    pairs = enumerate(it, 10)
    out = _take(it, 2), next(pairs), _take(it, 1)
    t.tick("between")
    xs.append(9)
    more = next(it), next(pairs)
    t.tick(more)
    kept = [it, pairs]
    rest = next(kept[0]), list(kept[1])
    return out, more, rest, next(it, "end"), kept[0] is it


def iterators_of_several_kinds():
    made = [iter("abcd"), iter(b"abcd"), reversed([1, 2, 3, 4]), itertools.count(5, 2),
            itertools.repeat("r", 4), itertools.islice(range(10), 1, 9, 2), iter(range(2**70, 2**70 + 4)),
            zip("abcd", range(4)), iter({"a": 1, "b": 2, "c": 3, "d": 4}), map(abs, [-1, -2, -3, -4])]  # fmt: skip
    a, b, c, d, e, f, g, h, i, j = made
    first = [next(x) for x in made]
    t.tick(len(first))
    second = (
        next(a),
        next(b),
        next(c),
        next(d),
        next(e),
        next(f),
        next(g),
        next(h),
        next(i),
        next(j),
    )
    t.tick(len(second))
    third = next(a), next(b), next(c), next(d), next(e), next(f), next(g), next(h), next(i), next(j)
    return first, second, third, [list(itertools.islice(x, 3)) for x in made]


def an_iterator_that_is_used_up():
    held = [[1], [2]]
    it = iter(held)
    t.tick("before")
    out = next(it), next(it), next(it, "end")
    held.append([3])
    t.tick("after")
    return out, next(it, "end"), held
