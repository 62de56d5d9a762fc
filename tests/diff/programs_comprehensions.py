"""Comprehensions and generator expressions: their scopes, what they evaluate when, and how
errors leave them."""

from probes import Dying, catch, where


def shapes():
    xs = [3, 1, 2]
    return (
        [x * 2 for x in xs],
        {x % 2 for x in xs},
        {x: str(x) for x in xs},
        list(x + 1 for x in xs),
        [(x, y) for x in xs for y in range(x) if x != y],
        [[y for y in range(x)] for x in xs],
        {k: v for k, v in zip("abc", xs) if v > 1},
    )


def outer_variable_untouched():
    x = "outer"
    r = [x for x in range(3)]
    s = {x: x for x in "ab"}
    t = {x for x in "c"}
    return x, r, s, t


def outer_variable_stays_unbound():
    def f():
        [x for x in range(3)]
        return x

    def g():
        if g is None:
            x = 1
        r = [x for x in range(2)]
        return r, x

    return where(f), where(g)


def cell_in_comprehension():
    fs = [lambda: x for x in range(3)]
    gs = [lambda x=x: x for x in range(3)]
    return [f() for f in fs], [g() for g in gs]


def cell_of_function_used_inside():
    def f(a):
        def g():
            return a

        r = [a + b for b in range(2)]
        a = 10
        return r, g(), [g() + b for b in range(2)]

    return f(1)


def comprehension_variable_is_outer_cell():
    def f():
        x = "outer"

        def g():
            return x

        r = [(x, g()) for x in range(2)]
        return r, x, g()

    return f()


def shadowed_cell_and_closure():
    def f():
        x = 5

        def outer():
            return x

        inner = [lambda: x for x in range(3)]
        return outer(), [i() for i in inner], x

    return f()


def first_iterable_is_eager():
    log = []

    def say(v):
        log.append(v)
        return v

    g = (say(y) for x in say([1, 2]) for y in say([x, x * 10]))
    log.append("made")
    return list(g), log


def genexp_late_binding():
    a = [1, 2, 3]
    g = (x for x in a if x in a)
    a = [2, 9]
    return list(g)


def genexp_bad_iterable():
    def f():
        return (x for x in 5)

    def g():
        return (x for y in [1] for x in y)

    def h():
        return list(g())

    return where(f), catch(g) is not None, where(h)


def conditions_order():
    log = []

    def ok(tag, v):
        log.append((tag, v))
        return v % 2

    r = [x for x in range(4) if ok("a", x) if ok("b", x + 2)]
    return r, log


def error_in_element():
    def f():
        return [
            1 // (x - 2)
            for x in range(5)
        ]

    def g():
        return {x: 1 // (1 - x) for x in range(5)}

    def h():
        return {1 // (1 - x) for x in range(5)}

    def k():
        return sum(1 // (1 - x) for x in range(5))

    return where(f), where(g), where(h), where(k)


def error_in_condition_and_iterable():
    def f():
        return [x for x in range(3) if x.nope]

    def g():
        return [y for x in (1, 2) for y in x]

    def h():
        return {[]: v for v in range(2)}

    def k():
        return {[v] for v in range(2)}

    return where(f), where(g), where(h), where(k)


def error_restores_shadowed_variable():
    def f():
        x = "kept"
        try:
            [1 // x for x in (2, 1, 0)]
        except ZeroDivisionError:
            return x, [x for x in "ab"], x

    return f()


def nested_deep():
    return [
        [[(i, j, k) for k in range(2) if (i + j + k) % 2] for j in range(2)] for i in range(2)
    ], [a for b in [[[1, 2], [3]], [[4]]] for c in b for a in c]


def dict_order_of_evaluation():
    log = []

    def say(v):
        log.append(v)
        return v

    return {say(("k", i)): say(("v", i)) for i in range(2)}, log


def dict_comprehension_overwrites():
    class Key:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return 1

        def __eq__(self, other):
            return True

    d = {Key(i): i for i in range(3)}
    return [(k.n, v) for k, v in d.items()]


def unpacking_targets():
    pairs = [(1, (2, 3)), (4, (5, 6))]
    return (
        [a + b + c for a, (b, c) in pairs],
        {a: rest for a, *rest in [(1, 2, 3), (4,)]},
        [x for [x, y] in [[1, 2]]],
        [d["k"] for d["k"] in range(3)] if (d := {}) is not None else None,
    )


def target_error():
    def f():
        return [a for a, b in [(1, 2), (3,)]]

    def g():
        return [a for a, *b in [()]]

    return where(f), where(g)


def iterator_dies_in_time():
    log = []

    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration
            return self.n

        def __del__(self):
            log.append("iterator gone")

    log.append([x for x in It()])
    log.append("after")
    return log


def elements_die_in_order():
    log = []
    r = [d.name for d in [Dying(log, i) for i in "abc"]]
    log.append("done")
    r2 = [Dying(log, i).name for i in "xy"]
    return r, r2, log


def partial_result_dropped_on_error():
    log = []

    def f():
        return [(Dying(log, i), 1 // (2 - i)) for i in range(4)]

    r = catch(f)
    log.append("caught")
    return r, log


def in_class_body():
    class C:
        n = 3
        items = [i for i in range(n)]
        pairs = [(i, j) for i in range(n) for j in range(i)]
        d = {i: i for i in items}

    def bad():
        class D:
            n = 3
            items = [n for i in range(2)]

        return D

    return C.items, C.pairs, C.d, catch(bad), sorted(k for k in vars(C) if not k.startswith("__"))


def lambda_inside_class_comprehension():
    class C:
        fs = [lambda self, i=i: (type(self).__name__, i) for i in range(2)]

        def call(self):
            return [f(self) for f in self.fs]

    return C().call()


def super_in_comprehension():
    class A:
        def items(self):
            return [1, 2]

    class B(A):
        def items(self):
            base = super().items()
            return [x for x in base], [__class__.__name__ for _ in base]

    return B().items()


def nested_functions_in_comprehension():
    return [(lambda y: [x + y + z for z in range(2)])(10) for x in range(2)]


def conditional_expression_inside():
    return ["even" if x % 2 == 0 else "odd" if x % 3 else "three" for x in range(7)]


def star_in_displays():
    xs = [1, 2]
    return [*(x for x in xs), *[x for x in xs]], {**{k: 1 for k in "a"}, **{k: 2 for k in "b"}}


def big_comprehension():
    return sum([x * x % 7 for x in range(2000) if x & 3]), len({x % 97 for x in range(1000)})


def generator_in_comprehension_shares_state():
    it = iter(range(10))
    return [(x, next(it)) for x in it if x % 4 == 0], list(it)


def comprehension_in_default_and_decorator():
    def f(a=[x for x in range(3)], *, b={x: x for x in "ab"}):
        return a, b

    return f()


def raise_stop_iteration_inside():
    def f():
        return [next(iter(())) for _ in range(2)]

    def g():
        return list(next(iter(())) for _ in range(2))

    return where(f), catch(g)


def uncaught_in_nested_comprehension():
    return [[1 / (x + y) for y in range(-1, 2)] for x in range(3)]


def comprehension_modifies_iterated():
    xs = [1, 2, 3]
    seen = [xs.append(x) or x for x in xs if len(xs) < 6]
    return seen, xs


def dict_changed_size():
    d = {1: 1, 2: 2}

    def f():
        return [d.setdefault(k + 10, k) for k in d]

    return catch(f)


def walrus_leaks_to_function():
    def f():
        [last := x for x in range(5)]
        {(k := x): x for x in "ab"}
        return last, k

    return f()


def many_nested_loops():
    return [
        a + b + c + d
        for a in "ab"
        for b in "cd"
        if a + b != "bd"
        for c in "e"
        for d in "fg"
        if d != "g" or a == "a"
    ]


def try_around_comprehension_with_finally():
    log = []
    for n in (1, 0):
        try:
            log.append([1 // (n * x) for x in (1,)])
        except ZeroDivisionError as e:
            log.append(str(e))
            continue
        else:
            log.append("else")
        finally:
            log.append("finally")
    return log
