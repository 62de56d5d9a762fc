"""Iterators and generators that a function gives out half consumed: drained by the case, they give
what they give in plain Python, and what they go through is the same object."""

import collections
import contextlib
import itertools
import weakref


def _steps(it, n):
    """Moves an iterator on and gives it back."""
    for _ in range(n):
        next(it, None)
    return it


def _drained(call, f, *calls, entries=1, most=12):
    """Each call's result is a list of iterators; every one is drained, in order."""
    for args in calls:
        made = call(f, *args)
        call.note([list(itertools.islice(it, most)) for it in made])
    if entries:
        call.traced(f, entries)


def _twice(call, f, entries=1):
    _drained(call, f, (object(),), (object(),), ([1],), entries=entries)


# -- C iterators ---------------------------------------------------------------------------------


def sequences(call):
    def f(x):
        return [
            _steps(iter([x, 2, 3]), 1),
            _steps(iter((1, x, 3)), 2),
            _steps(iter(range(0, 20, 3)), 2),
            _steps(iter(range(10**30, 10**30 + 5)), 2),
            _steps(iter("text"), 1),
            _steps(iter("t\xe4xt"), 3),
            _steps(iter("日本語"), 1),
            _steps(iter(b"bytes"), 2),
            _steps(iter(bytearray(b"array")), 2),
            _steps(iter([x]), 5),
            _steps(iter((x,)), 5),
            _steps(iter(""), 1),
            _steps(iter(range(3)), 9),
        ]

    _twice(call, f)


def backwards(call):
    def f(x):
        return [
            _steps(reversed([x, 2, 3]), 1),
            _steps(reversed((1, x, 3)), 2),
            _steps(reversed(range(9)), 2),
            _steps(reversed("text"), 1),
            _steps(reversed({"a": x, "b": 2, "c": 3}), 1),
            _steps(reversed({"a": x, "b": 2, "c": 3}.values()), 2),
            _steps(reversed({"a": x, "b": 2, "c": 3}.items()), 1),
            _steps(reversed({1: x, 2: 2}), 2),
            _steps(reversed({1: x, 2: 2}), 3),
            _steps(reversed([x]), 4),
            reversed({}),
            reversed([x, 1]),
        ]

    _twice(call, f)


def dicts(call):
    def f(x):
        d = {"a": x, "b": 2, "c": 3, 4: x}
        holes = dict(d)
        del holes["a"], holes["c"]
        holes["d"] = 5
        return [
            _steps(iter(d), 1),
            _steps(iter(d.values()), 3),
            _steps(iter(d.items()), 2),
            _steps(iter(d), 0),
            _steps(iter(d), 4),
            _steps(iter(d), 5),
            _steps(iter(holes), 1),
            _steps(iter(holes.items()), 2),
            _steps(iter({}), 0),
        ]

    _twice(call, f)


def dict_changed_by_the_caller(call):
    def f(x):
        d = {"a": x, "b": 2, "c": 3}
        return d, _steps(iter(d.items()), 1)

    for x in (object(), object()):
        d, it = call(f, x)
        d["b"] = "changed"
        call.note(next(it))
        d["new"] = 1
        try:
            next(it)
        except RuntimeError as error:
            call.note(error.args)
    call.one_entry(f)


def dict_of_the_caller(call):
    def f(d):
        return [_steps(iter(d), 1), _steps(iter(d.items()), 2), _steps(reversed(d), 1)]

    holes = {"gone": 1, "a": 1, "b": 2, "c": 3}
    del holes["gone"]
    _drained(call, f, ({"a": 1, "b": 2, "c": 3},), (holes,))


def dict_of_the_caller_written_before(call):
    def f(d, x):
        del d["b"]
        d["new"] = x
        d["a"] += 1
        return [_steps(iter(d.items()), 2), _steps(reversed(d.items()), 1), iter(d)]

    _drained(call, f, ({"a": 1, "b": 2, "c": 3}, "x"), ({"a": 1, "b": 2, "c": 3}, "y"))


def dict_of_the_caller_written_after(call):
    def f(d):
        it = _steps(iter(d.items()), 1)
        d["b"] = "later"
        return [it]

    _drained(call, f, ({"a": 1, "b": 2, "c": 3},), ({"a": 5, "b": 2, "c": 3},))


def dict_grown_under_its_iterator(call):
    def f(d):
        it = _steps(iter(d), 1)
        d["new"] = 1
        return lambda: next(it)

    for _ in range(2):
        d = {"a": 1, "b": 2}
        further = call.target(f)(d)
        call.note(d)
        try:
            further()
        except RuntimeError as error:
            call.note(error.args)


def instance_dict(call):
    class O:
        def __init__(self):
            self.a, self.b, self.c = 1, 2, 3

    def f(o, x):
        o.d = x
        return [_steps(iter(vars(o)), 1), _steps(iter(vars(o).items()), 3)]

    _drained(call, f, (O(), 1), (O(), 2), entries=None)


def ordered_dicts(call):
    def f(x):
        d = collections.OrderedDict(a=x, b=2, c=3)
        d.move_to_end("a")
        return [
            _steps(iter(d), 1),
            _steps(iter(d.items()), 2),
            _steps(iter(d.values()), 1),
            _steps(reversed(d), 1),
            _steps(iter(d), 9),
        ]

    _twice(call, f)


def ordered_dict_of_the_caller(call):
    def f(d):
        d["new"] = 1
        return [_steps(iter(d), 1), _steps(iter(d.items()), 3)]

    made = collections.OrderedDict
    _drained(call, f, (made(a=1, b=2, c=3),), (made(a=1, b=2, c=3),))


def sets(call):
    def f(x):
        s = {1, 2, 30, 400}
        s.discard(2)
        return [_steps(iter(s), 1), _steps(iter(frozenset(range(5))), 2), iter({x}), iter(set())]

    _drained(call, f, (object(),), (object(),), entries=None)


def set_of_the_caller(call):
    def f(s):
        return [_steps(iter(s), 1), _steps(iter(s), 3)]

    _drained(call, f, ({1, 20, 300},), ({1, 20, 300},))


def deques(call):
    def f(x):
        d = collections.deque([x, *range(150)])
        d.popleft()
        d.appendleft(x)
        return [
            _steps(iter(d), 1),
            _steps(iter(d), 70),
            _steps(reversed(d), 3),
            _steps(reversed(d), 70),
            _steps(iter(collections.deque()), 1),
            _steps(iter(collections.deque([x])), 1),
        ]

    _drained(call, f, (1,), (object(),), ("s",), most=200)


def deque_of_the_caller(call):
    def f(d, x):
        d.append(x)
        return [_steps(iter(d), 1), _steps(reversed(d), 1)]

    made = collections.deque
    _drained(call, f, (made([1, 2, 3]), 1), (made([1, 2, 4]), 2))


def list_of_the_caller(call):
    def f(xs, x):
        it = _steps(iter(xs), 2)
        xs.append(x)
        return [it, _steps(reversed(xs), 1)]

    _drained(call, f, ([1, 2, 3], 1), ([4, 5, 6], 2))


def called_until(call):
    def f(x):
        box = [3, 2, 1, 0]
        over = [1, 0]
        return [_steps(iter(box.pop, 0), 1), _steps(iter(over.pop, 1), 5), iter(lambda: 1, 1)]

    _twice(call, f, entries=None)


def by_getitem(call):
    class Squares:
        def __getitem__(self, n):
            if n > 4:
                raise IndexError
            return n * n

        def __len__(self):
            return 5

    def f(x):
        ended = _steps(iter(Squares()), 9)
        return [_steps(iter(Squares()), 2), ended, _steps(reversed(Squares()), 1)]

    for x in (1, 2):
        made = call.loose(f, x)
        call.note([list(it) for it in made])


def wrapped(call):
    def f(x):
        return [
            _steps(enumerate([x, 2, 3]), 1),
            _steps(enumerate("abcd", 10**30), 2),
            _steps(enumerate("abcd", -3), 2),
            _steps(zip([x, 2, 3], "abcd"), 1),
            _steps(zip("ab", "abc"), 3),
            _steps(zip("abc", (1, 2, 3), strict=True), 1),
            _steps(map(str, [1, 2, 3]), 1),
            _steps(map(lambda a, b: (a, b, x), [1, 2, 3], "abc"), 1),
            _steps(filter(None, [0, 1, 2, 0, 3]), 1),
            _steps(filter(lambda n: n % 2, range(9)), 1),
            _steps(enumerate(zip(map(abs, [-1, -2, -3]), reversed([x, 1, 2]))), 1),
            zip(),
        ]

    _twice(call, f)


def strict_zip_ends_unevenly(call):
    def f(x):
        return _steps(zip([x, 2, 3], "ab", strict=True), 1)

    for x in (object(), object()):
        it = call(f, x)
        call.note(next(it))
        try:
            next(it)
        except ValueError as error:
            call.note(error.args)
    call.one_entry(f)


def shared_by_wrappers(call):
    def f(x):
        it = iter([x, 2, 3, 4, 5, 6])
        pairs = zip(it, it)
        next(pairs)
        return [enumerate(it), pairs, it]

    for x in (object(), object()):
        numbered, pairs, it = call(f, x)
        call.note([next(numbered), next(it), list(pairs), list(it)])
    call.one_entry(f)


def tools(call):
    def f(x):
        return [
            _steps(itertools.chain([x, 1], "ab"), 1),
            _steps(itertools.chain([x, 1], "ab"), 3),
            _steps(itertools.chain("a"), 3),
            _steps(itertools.chain.from_iterable([[x, 1], "ab"]), 3),
            _steps(itertools.islice(range(100), 3, 30, 5), 2),
            _steps(itertools.islice([x, 2, 3], None), 1),
            _steps(itertools.islice("abc", 1), 2),
            _steps(itertools.repeat(x, 5), 2),
            _steps(itertools.repeat(x), 2),
            _steps(itertools.count(5), 2),
            _steps(itertools.count(10**30, 2), 2),
            _steps(itertools.count(0.5, 0.25), 2),
            _steps(itertools.cycle([x, 2, 3]), 2),
            _steps(itertools.cycle("ab"), 5),
            _steps(itertools.takewhile(lambda n: n < 3, range(9)), 1),
            _steps(itertools.takewhile(lambda n: n < 3, range(9)), 7),
            _steps(itertools.dropwhile(lambda n: n < 3, range(9)), 1),
            _steps(itertools.filterfalse(None, [0, 1, 0, 2, 0]), 1),
            _steps(itertools.starmap(lambda a, b: (b, a), [(1, 2), (3, x), (5, 6)]), 1),
            _steps(itertools.compress("abcdef", [1, 0, 1, 0, 1, 1]), 1),
            _steps(itertools.zip_longest([x, 1, 2], "abcd", fillvalue=x), 1),
            _steps(itertools.accumulate([1, 2, 3, 4]), 2),
            _steps(itertools.accumulate([1, 2, 3, 4], lambda a, b: a * b, initial=7), 2),
            _steps(itertools.accumulate([1, 2, 3, 4], initial=7), 0),
            _steps(itertools.pairwise([x, 1, 2, 3]), 1),
            _steps(itertools.pairwise([x, 1]), 0),
        ]

    _twice(call, f)


def tools_with_arrays(call):
    def f(x):
        return [
            _steps(itertools.product([x, 1], "ab", repeat=2), 0),
            _steps(itertools.product([x, 1], "ab"), 1),
            _steps(itertools.product([x, 1], "ab"), 3),
            _steps(itertools.product([x, 1], "ab"), 9),
            _steps(itertools.product([], "ab"), 1),
            _steps(itertools.combinations("abcd", 2), 2),
            _steps(itertools.combinations_with_replacement([x, 1, 2], 2), 2),
            _steps(itertools.permutations([x, 1, 2], 2), 2),
            _steps(itertools.permutations([x, 1, 2]), 0),
            _steps(itertools.permutations([x, 1]), 5),
        ]

    for x in (object(), object()):
        made = call(f, x)
        call.note([list(it) for it in made])


def longest_zip_with_an_ended_part(call):
    def f(x):
        return _steps(itertools.zip_longest([x], "abcd"), 2)

    for x in (object(), object()):
        call.note(list(call(f, x)))


def tees_and_groups(call):
    def f(x):
        one, other = itertools.tee([x, 1, 2, 3])
        _steps(one, 2)
        groups = itertools.groupby("aabbcc")
        _, group = next(groups)
        next(group)
        return one, other, groups, group

    for x in (object(), object()):
        one, other, groups, group = call(f, x)
        call.note([list(one), list(other), list(group), [(k, list(g)) for k, g in groups]])


def of_iterators_with_their_own_code(call):
    class Down:
        def __init__(self, n):
            self.n = n
            self.asked = 0

        def __iter__(self):
            self.asked += 1
            return self

        def __next__(self):
            self.n -= 1
            if self.n < 0:
                raise StopIteration
            return self.n

    def f(x):
        a, b = Down(4), Down(5)
        return [_steps(zip(a, b), 1), _steps(enumerate(a), 1), a, b, _steps(map(str, b), 1)]

    for x in (1, 2):
        made = call(f, x)
        call.note([next(it, None) for it in made])
        call.note([(d.n, d.asked) for d in made[2:4]])
    call.one_entry(f)


def in_a_cycle(call):
    def f(x):
        xs = [x, 1, 2]
        it = iter(xs)
        xs.append(it)
        d = {"a": 1}
        keys = iter(d)
        d["a"] = keys
        loop = []
        loop.append(enumerate(zip(iter(loop), [1, 2])))
        return it, keys, loop

    for x in (object(), object()):
        it, keys, loop = call(f, x)
        items = list(it)
        call.note([items[-1] is it, list(keys), next(loop[0])[1][0] is loop[0]])
    call.one_entry(f)


# -- generators ----------------------------------------------------------------------------------


def _count(n, log):
    try:
        while True:
            got = yield n
            n += 1 if got is None else got
    except KeyError:
        log.append("key")
        yield "caught"
    finally:
        log.append(("closed", n))


def suspended(call):
    def f(n, log):
        g = _count(n, log)
        next(g)
        g.send(10)
        return g

    for how in ("send", "throw", "close", "drop"):
        log = []
        g = call(f, 3, log)
        call.note((g.__name__, g.__qualname__, g.gi_code.co_name, g.gi_running, g.gi_yieldfrom))
        if how == "send":
            call.note([g.send(5), next(g)])
        elif how == "throw":
            call.note(g.throw(KeyError("x")))
        elif how == "close":
            g.close()
        call.watch(log)
        call.freezer.alive.remove(g)
        del g
        call.note(list(log))
    call.one_entry(f)


def not_begun(call):
    def f(n, log):
        return [_count(n, log), (i + n for i in range(4)), _count(n, log)]

    for n in (1, 5):
        log = []
        g, squares, other = call(f, n, log)
        call.note([next(g), g.send(4), list(squares)])
        g.close()
        other.close()
        call.note(log)
        try:
            next(other)
        except StopIteration:
            call.note("ended")


def ended(call):
    def f(n):
        def g():
            yield n
            return 5

        one, two, three = g(), g(), (i for i in ())
        _steps(one, 2)
        two.close()
        list(three)
        return [one, two, three]

    for n in (1, 1):
        for g in call(f, n):
            call.note((list(g), g.gi_frame, g.__qualname__, g.gi_code.co_name, g.close()))
            try:
                g.send(None)
            except StopIteration as stop:
                call.note(stop.value)
            try:
                g.throw(KeyError("x"))
            except KeyError as error:
                call.note(error.args)
    call.one_entry(f)


def delegation(call):
    def inner(log):
        try:
            got = yield 1
            while got != "end":
                got = yield got
            return "inner's"
        finally:
            log.append("inner closed")

    def outer(log):
        try:
            result = yield from inner(log)
            yield result
            yield from [7, 8, 9]
        finally:
            log.append("outer closed")

    def f(log, n):
        g = outer(log)
        next(g)
        g.send(n)
        listing = outer(log)
        next(listing)
        listing.send("end")
        next(listing)
        next(listing)
        return g, listing

    for n in (4, 5):
        log = []
        g, listing = call(f, log, n)
        call.note([g.gi_yieldfrom.__name__, g.send("x"), g.send("end"), list(g), list(log)])
        call.note([type(listing.gi_yieldfrom), list(listing), list(log)])
    log = []
    g, listing = call(f, log, 1)
    g.gi_yieldfrom.close()
    call.note(list(log))
    try:
        g.throw(ValueError("thrown"))
    except ValueError as error:
        call.note(error.args)
    call.note(list(log))


def generator_in_tools(call):
    def f(n, log):
        a, b = _count(n, log), _count(10 * n, log)
        pairs = zip(a, b)
        next(pairs)
        squares = (i * i for i in itertools.islice(a, 4))
        next(squares)
        return pairs, squares, map(str, _count(1, log)), enumerate(x for x, y in pairs)

    for n in (1, 5):
        pairs, squares, texts, numbered = call(f, n, [])
        call.note([next(pairs), list(squares), next(texts), next(numbered), next(pairs)])


def cells_shared_with_closures(call):
    def f(x):
        total = 0

        def counting():
            nonlocal total
            for i in range(5):
                total += i
                yield total, x

        def add(n):
            nonlocal total
            total += n
            return total

        g = counting()
        next(g)
        next(g)
        return g, add, counting

    for x in (object(), object()):
        g, add, counting = call(f, x)
        call.note([next(g), add(100), next(g), add(1), list(counting())])
        call.note(counting.__closure__[0] is add.__closure__[0])
    call.one_entry(f)


def cells_of_its_own(call):
    def f(n):
        def g(a, *rest, b=2, **named):
            def get():
                return a, rest, named, late

            yield get
            late = n
            a += 1
            yield get
            yield b

        it = g(n, 3, c=4)
        return it, next(it)

    for n in (1, 7):
        it, get = call(f, n)
        same = next(it)
        call.note([get(), same() == get(), get is same, list(it)])


def generator_in_its_own_locals(call):
    def f(x):
        def g():
            me = yield
            while True:
                me = yield me, x

        it = g()
        next(it)
        it.send(it)
        ring = []
        tail = (i for i in ring)
        ring.append((tail, it))
        return it, tail

    for x in (object(), object()):
        it, tail = call(f, x)
        call.note([it.send(1), it.send(it)[0] is it])
        ((a, b),) = tail
        call.note([a is tail, b is it])
    call.one_entry(f)


def context_manager_entered(call):
    @contextlib.contextmanager
    def manager(log, x):
        log.append("in")
        try:
            yield x
        except KeyError:
            log.append("swallowed")
        finally:
            log.append("out")

    def f(log, x):
        m = manager(log, x)
        m.__enter__()
        return m

    for how in (None, KeyError("k")):
        log = []
        m = call(f, log, 1)
        call.note(m.__exit__(how and type(how), how, None))
        call.note(log)


def suspended_in_loops_and_with(call):
    class Manager:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            return self

        def __exit__(self, *exc):
            self.log.append(exc[0])
            return False

    def walk(tree, log):
        with Manager(log) as m:
            for key, value in tree.items():
                if isinstance(value, dict):
                    yield from walk(value, m.log)
                else:
                    yield key, value

    def f(tree, log):
        it = walk(tree, log)
        return it, next(it), next(it)

    tree = {"a": 1, "b": {"c": 2, "d": {"e": 3}}, "f": 4}
    for _ in range(2):
        log = []
        it, *_ = call(f, dict(tree), log)
        call.note([next(it), list(it), log])
        it, *_ = call(f, dict(tree), log)
        it.close()
        call.note(log)


def suspended_while_handling(call):
    def g():
        try:
            raise KeyError(1)
        except KeyError:
            yield 1
        yield 2

    def f(x):
        it = g()
        return it, next(it)

    for _ in range(2):
        call.note(list(call(f, 1)[0]))


def wrote_to_an_argument(call):
    def g(xs, o):
        xs.append(1)
        o["k"] = xs
        yield
        xs.append(2)
        yield o

    def f(xs, o):
        it = g(xs, o)
        next(it)
        return it

    for xs in ([], [5]):
        o = {}
        it = call(f, xs, o)
        call.note([next(it) is o, xs, o["k"] is xs])


def kept_in_a_written_place(call):
    def f(o, n):
        o["gen"] = g = _count(n, [])
        next(g)
        o["keys"] = iter(o)
        o["it"] = enumerate(g)

    for n in (1, 2):
        o = {}
        call.loose(f, o, n)
        call.note([next(o["gen"]), next(o["it"])])


def weakly_known(call):
    def f(n):
        g = (i for i in range(n))
        next(g)
        return g, weakref.ref(g)

    for n in (3, 4):
        g, ref = call.loose(f, n)
        call.note([ref() is g, list(g)])


def deeply_nested(call):
    def nest(n):
        if n:
            yield from nest(n - 1)
        yield n

    def f(n):
        it = nest(n)
        next(it)
        chain = iter([1, 2, 3])
        for _ in range(n):
            chain = enumerate(chain)
        return it, chain

    for n in (30, 30):
        it, chain = call(f, n)
        call.note([sum(it), next(chain)])


def arguments_between_calls(call):
    def f(xs, k):
        return [(x * k for x in xs), _steps((x + k for x in xs), 1)]

    _drained(call, f, ([1, 2, 3], 2), ([1, 2, 3], 2), ([1.5, 2, 3], 2), entries=2)


def lines_of_what_goes_wrong_later(call):
    def inner(n):
        yield 1

        yield 1 // n

    def outer(n):
        x = 5
        yield x

        yield from inner(n)

    def f(n):
        g = outer(n)
        next(g)
        next(g)
        return g, outer(n)

    for _ in range(2):
        g, fresh = call(f, 0)
        for wrong in (lambda: next(g), lambda: fresh.throw(KeyError("k")), lambda: g.send(1)):
            try:
                wrong()
            except (ZeroDivisionError, KeyError, StopIteration) as error:
                call.note(error)


def namespace_of_a_generator(call):
    def g(a):
        b = 2
        names = locals()
        yield names
        c = 3
        yield sorted(locals()), names
        yield a, b, c

    def f(x):
        it = g(x)
        next(it)
        return it

    for x in (1, 1):
        call.note([list(part) for part in call(f, x)])


def deleted_and_unbound_variables(call):
    def g(a):
        if a:
            later = 1
        b = a
        del a
        yield b
        yield later
        try:
            yield a
        except UnboundLocalError as error:
            yield str(error)

    def f(x):
        it = g(x)
        next(it)
        return it

    for x in (5, 5, 0):
        it = call(f, x)
        try:
            call.note(list(it))
        except UnboundLocalError as error:
            call.note(str(error))


def advanced_in_the_next_call(call):
    def make(n):
        it = _count(n, [])
        next(it)
        return it, enumerate(it)

    def move(it):
        return next(it), sum(itertools.islice(it, 3))

    for n in (1, 2):
        it, numbered = call(make, n)
        call.note(call.loose(move, it))
        call.note(next(numbered))
