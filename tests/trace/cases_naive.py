"""Programs that a naive tracer gets wrong: without torch. Those with tensors are in
tensor_cases_naive.py."""

import collections
import functools
import gc
import itertools
import weakref


def map_of_an_outside_append(call):
    def f(out, xs):
        list(map(out.append, xs))
        return len(out)

    out = []
    call(f, out, [[1], [2]])
    call(f, out, [[3], [4]])
    call.traced(f)


def reduce_of_getattr(call):
    class O:
        pass

    def f(names, o):
        return functools.reduce(getattr, names, o)

    o = O()
    o.a = O()
    o.a.b = 5
    call(f, ["a", "b"], o)
    call.again(f, ["a", "b"], o)
    o.a.b = 6
    call(f, ["a", "b"], o)
    call(f, ["a"], o)
    call.traced(f)


def c_method_bound_before_the_trace(call):
    xs = []
    push = xs.append

    def f(v):
        push(v)
        return len(xs)

    call.watch(xs)
    for i in range(3):
        call(f, i)
    call.traced(f)


def max_by_a_dicts_get(call):
    def f(d):
        return max(d, key=d.get)

    d = {"a": 1, "b": 3, "c": 2}
    call(f, d)
    call.again(f, d)
    d["c"] = 9
    call(f, d)
    call.traced(f)


def inner_list_shared_with_an_outside_one(call):
    def f(a):
        b = [a[0]]
        a[0].append(2)
        return sum(b, [])

    call(f, [[1]])
    call.again(f, [[1]])
    call(f, [[1, 5]])
    call.traced(f)


class _AttrDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


def dict_that_is_its_own_instance_dict(call):
    def f(d):
        d.x = 1
        d["y"] = d["x"] + 1
        return d.y, d.get("x"), len(d)

    d = _AttrDict(a=1)
    call(f, d)
    call(f, d)
    call(f, _AttrDict(a=1))


def vars_updated_then_read(call):
    class O:
        pass

    def f(o):
        vars(o).update(a=1)
        return o.a

    o = O()
    call(f, o)
    o.a = 7
    call(f, o)
    call(f, O())


def swap_in_place(call):
    def f(a):
        a[0], a[1] = a[1], a[0]

    a = [[1], [2]]
    for _ in range(3):
        call(f, a)
    call(f, ["x", "y"])
    call.one_entry(f)


def swap_of_equal_immutables(call):
    def f(a):
        if a[0] == a[1]:
            a[0], a[1] = a[1], a[0]

    one, two = int("9" * 20), int("9" * 20)
    same = [one, one]
    call(f, same)
    pair = [one, two]
    call(f, pair)
    call.note((pair[0] is two, pair[1] is one))


def same_list_passed_twice_after_two(call):
    def f(a, b):
        a.append(1)
        b.append(2)
        return len(a)

    call(f, [], [])
    x = []
    call(f, x, x)
    call(f, [], [])
    call.traced(f)


def changing_step_passed_through(call):
    def f(loss, step):
        return {"loss": loss, "step": step}

    for step in range(20):
        call(f, "x", step)
    call.one_entry(f)


def changing_step_asked_for_none(call):
    def f(step):
        if step is None:
            return "none"
        return [step]

    for step in range(20):
        call(f, step)
    call.one_entry(f)


def mutable_default_grows(call):
    def f(x, acc=[]):
        acc.append(x)
        return list(acc)

    for i in range(4):
        call(f, "x")


def functions_appended_to_a_list(call):
    def f(fns):
        fns.append(len)
        fns.append(str.upper)
        fns.append(f)
        return fns[0]

    call(f, [])
    call.again(f, [])
    call.traced(f)


def builtin_as_a_dict_key(call):
    def f():
        return {len: 1}.get(len), {str.upper: 2}[str.upper], len in {len}, [len].index(len)

    call(f)
    call.again(f)
    call.traced(f)


def bool_that_returns_an_attribute(call):
    class B:
        def __init__(self, flag):
            self.flag = flag

        def __bool__(self):
            return self.flag

    def f(b):
        return "yes" if b else "no"

    b = B(True)
    call(f, b)
    b.flag = False
    call(f, b)
    b.flag = 5
    call(f, b)
    call.again(f, B(True))


class _Step(int):
    pass


def int_subclass(call):
    def f(s):
        return s + 1, s

    call(f, _Step(3))
    call(f, _Step(4))
    call(f, 4)
    call(f, _Step(3))


def minus_zero_after_zero(call):
    def f(x):
        return str(x * 2)

    call(f, 0.0)
    call(f, -0.0)


class _Counted:
    count = [0]

    def __new__(cls, *args):
        cls.count[0] += 1
        return object.__new__(cls)

    def __init__(self, x):
        self.x = x


def python_new_that_counts(call):
    _Counted.count[0] = 0

    def f(x):
        return _Counted(x)

    call.watch(_Counted.count)
    for _ in range(4):
        call(f, 1)
    call(f, [2])


def nested_config_changed(call):
    def f(cfg):
        return cfg["d"][0] + 1

    cfg = {"d": [1]}
    call(f, cfg)
    cfg["d"][0] = 5
    call(f, cfg)
    call.traced(f, 2)


def repr_of_a_list_of_objects(call):
    class O:
        def __init__(self, n):
            self.n = n

        def __repr__(self):
            return f"O{self.n}"

    def f(o):
        return repr([o]), str({"o": o}), f"{[o]!r}"

    o = O(1)
    call(f, o)
    o.n = 2
    call(f, o)
    O.__repr__ = lambda self: "changed"
    call(f, o)


def default_repr_has_an_address(call):
    class O:
        pass

    def f(o):
        return repr([o]) == f"[{object.__repr__(o)}]", str(id(o)) == str(id(o))

    def g(o):
        return repr(o)

    for _ in range(3):
        o = O()
        call(f, o)
        call.note(g.__get__(o)() == (repr(o)))
    texts = []
    for _ in range(3):
        o = O()
        texts.append((call.target(g)(o) == repr(o)))
    call.note(texts)


def equal_sets_that_iterate_differently(call):
    def f(s):
        return list(s)

    a, b = set(), set()
    for x in (8, 0):
        a.add(x)
    for x in (0, 8):
        b.add(x)
    call.note(a == b)
    for s in (a, b, a, b):
        call(f, s)


def generator_left_in_a_loop_runs_its_finally(call):
    def f(log):
        def g():
            try:
                yield 1
                yield 2
            finally:
                log.append("finally")

        for v in g():
            break
        return list(log)

    log = []
    call(f, log)
    call(f, log)


def generator_deleted_runs_its_finally(call):
    def f(log):
        def g():
            try:
                yield 1
            finally:
                log.append("finally")

        it = g()
        next(it)
        log.append("before")
        del it
        log.append("after")
        return list(log)

    for _ in range(3):
        call(f, [])


def generator_kept_in_an_outside_place(call):
    class O:
        pass

    def f(o, log):
        def g():
            try:
                yield 1
            finally:
                log.append("finally")

        o.g = g()
        next(o.g)
        del o.g
        return list(log)

    call(f, O(), [])
    call(f, O(), [])


def generator_given_out_suspended(call):
    def f(xs):
        def g():
            for x in xs:
                yield x * 2

        it = g()
        first = next(it)
        return first, it

    for _ in range(3):
        first, it = call.target(f)([1, 2, 3])
        call.note((first, list(it)))


def finalizer_of_a_displaced_object(call):
    log = []

    class R:
        def __del__(self):
            log.append(1)

    class H:
        pass

    def f(h):
        h.r = None
        return len(log)

    for _ in range(3):
        h = H()
        h.r = R()
        call.loose(f, h)
    call.note(len(log))


def finalizer_of_an_item_popped(call):
    log = []

    class R:
        def __del__(self):
            log.append(1)

    def f(xs):
        xs.pop()
        return len(log)

    for _ in range(3):
        call.loose(f, [R()])
    call.note(len(log))


def weak_reference_to_a_displaced_object(call):
    class O:
        pass

    def f(h):
        r = weakref.ref(h.x)
        h.x = None
        return r() is None

    for _ in range(3):
        h = O()
        h.x = O()
        call.loose(f, h)


def weak_reference_to_an_inside_object(call):
    class O:
        pass

    def f():
        o = O()
        r = weakref.ref(o)
        alive = r() is o
        del o
        return alive, r() is None

    def g():
        h = lambda: 0
        r = weakref.ref(h)
        del h
        return r() is None

    for _ in range(3):
        call.loose(f)
        call.loose(g)


def dict_subclass_with_a_finalizer(call):
    log = []

    class D(dict):
        def __del__(self):
            log.append(len(self))

    def f(d):
        return len(d), list(d)

    d = D(a=1)
    for _ in range(3):
        call.loose(f, d)
        gc.collect()
        call.note(list(log))


def outside_exception_raised(call):
    error = ValueError("once")

    def f():
        try:
            raise error
        except ValueError as e:
            return e is error, e.__traceback__ is not None

    for _ in range(3):
        call.loose(f)
        depth, tb = 0, error.__traceback__
        while tb is not None:
            depth, tb = depth + (tb.tb_frame.f_code is f.__code__), tb.tb_next
        call.note(depth)


def context_of_an_exception_made_inside(call):
    def f():
        try:
            raise KeyError("inner")
        except KeyError as e:
            return type(e.__context__).__name__

    for kind in (None, OSError, ValueError, None):
        if kind is None:
            call.loose(f)
        else:
            try:
                raise kind("outer")
            except kind:
                call.loose(f)


def key_with_a_counting_hash(call):
    hashed = [0]

    class K:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            hashed[0] += 1
            return self.n

        def __eq__(self, other):
            return self.n == other.n

    def f(d, v):
        d[K(1)] = v
        return {K(2): v}, {K(3)}

    for _ in range(3):
        call.target(f)({}, 1)
        call.note(hashed[0])


def repr_that_has_an_effect(call):
    log = []

    class C:
        def __init__(self, n):
            self.n = n

        def __repr__(self):
            log.append(self.n)
            return "C"

        def __eq__(self, other):
            log.append("eq")
            return False

        def __hash__(self):
            return 1

    def f(c, d):
        return c.n, d.get("k")

    call.watch(log)
    for n in range(4):
        call(f, C(n), {"k": C(n)})


def popped_and_put_back_moves_to_the_end(call):
    def f(d, k):
        v = d.pop(k)
        d[k] = v
        return v

    d = {"a": [1], "b": [2], "c": [3]}
    for k in "abca":
        call(f, d, k)


def advanced_iterator_given_out(call):
    def f(xs):
        it = iter(xs)
        next(it)
        return it, zip(xs, it)

    for _ in range(2):
        it, z = call.target(f)([1, 2, 3, 4])
        call.note((next(it), next(z), list(it)))


def outside_iterator_advanced(call):
    it = itertools.count()

    def f():
        return next(it)

    for _ in range(4):
        call(f)


def lambda_given_out(call):
    def f(n):
        def g():
            nonlocal n
            n += 1
            return n

        return g, lambda: n

    for n in (1, 1, 5):
        g, h = call.target(f)(n)
        call.note((g(), g(), h()))


def two_calls_give_two_objects(call):
    class O:
        pass

    def f():
        return [], {}, O(), lambda: 0, iter([]), bytearray(b"a"), collections.deque(), object()

    one, two = call.target(f)(), call.target(f)()
    call.note([a is b for a, b in zip(one, two)])
    one[0].append(1)
    one[2].x = 1
    one[5].append(1)
    one[6].append(1)
    call(f)


def constant_of_the_code_stays_the_object(call):
    def f():
        return (1, 2, "x"), "some text", frozenset, 12345678901234567890

    one, two = call.target(f)(), call.target(f)()
    call.note([a is b for a, b in zip(one, two)])


def write_to_an_object_only_reached_through_another(call):
    class O:
        pass

    def f(o):
        o.child.value = o.child.value + 1
        o.child = o.other
        o.child.value = 100
        return o.child.value

    o = O()
    o.child, o.other = O(), O()
    o.child.value = o.other.value = 1
    call(f, o)
    call(f, o)


def length_hint_and_keys_of_a_user_mapping(call):
    class M:
        def __init__(self, d):
            self.d = d

        def keys(self):
            return self.d.keys()

        def __getitem__(self, k):
            return self.d[k] + 1

    def g(**kwargs):
        return kwargs

    def f(m):
        return dict(m), {**m}, g(**m)

    m = M({"a": 1})
    call(f, m)
    m.d["a"] = 2
    call(f, m)
    m.d["b"] = 2
    call(f, m)


def sort_with_a_key_that_writes(call):
    def f(xs, log):
        def key(x):
            log.append(x)
            return -x

        return sorted(xs, key=key)

    for _ in range(3):
        call(f, [1, 3, 2], [])


def any_and_all_stop_early(call):
    def f(xs, log):
        def test(x):
            log.append(x)
            return x > 1

        return any(test(x) for x in xs), all(map(test, xs))

    call(f, [1, 2, 3], [])
    call(f, [2, 1, 3], [])


def exception_swallowed_by_native_code(call):
    class C:
        def __getattr__(self, name):
            raise AttributeError(name)

        def __eq__(self, other):
            raise ValueError("eq")

        __hash__ = object.__hash__

    def f(c):
        a = getattr(c, "x", "default"), hasattr(c, "y")
        try:
            c in [1, 2]
        except ValueError as e:
            return a, str(e)

    call(f, C())
    call(f, C())


def break_is_not_swallowed(call):
    """An operation that cannot be traced, within handlers that catch everything."""

    def f(log):
        try:
            try:
                log.append("in")
                eval("1 + 1")
                log.append("after")
            except BaseException:
                log.append("caught")
            finally:
                log.append("finally")
        except:
            log.append("outer")
        return log

    call(f, [])
    call(f, [])


def break_inside_a_native_callback(call):
    def f(xs, log):
        def key(x):
            log.append(x)
            return eval(str(x))

        return sorted(xs, key=key), [getattr(log, n, None) is None for n in ("zz", "append")]

    call(f, [2, 1], [])
    call(f, [2, 1], [])


def compiled_twice_in_two_worlds(call):
    state = {"n": 0}

    def g():
        state["n"] += 1
        return state["n"]

    def f():
        return g() + g()

    call.watch(state)
    call(f)
    call(g)
    call(f)
    call(g)
