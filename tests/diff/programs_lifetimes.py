"""When objects die: temporaries, locals, arguments, exceptions and results, exact to the
reference; weakrefs and their callbacks; identity of memory that is used again."""

import _lsprof
import gc
import sys
import weakref

from probes import Dying, catch, handled, text


def temporaries():
    log = []
    Dying(log, "statement")
    log.append("after statement")
    x = Dying(log, "attribute").name
    log.append(x)
    [Dying(log, "list")]
    (Dying(log, "t1"), Dying(log, "t2"))
    log.append("after containers")
    str(Dying(log, "argument"))
    log.append("after call")
    Dying(log, "left").name + Dying(log, "right").name
    log.append("after add")
    return log


def rebinding():
    log = []
    x = Dying(log, "first")
    log.append("rebind")
    x = Dying(log, "second")
    log.append("rebound")
    x = x = None
    log.append("cleared")
    y = Dying(log, "y")
    y = y.name
    log.append(y)
    return log


def rebinding_order():
    """The new value is there before the old one dies."""
    log = []

    class Sees:
        def __init__(self, tag):
            self.tag = tag

        def __del__(self):
            log.append((self.tag, peek()))

    def peek():
        return getattr(x, "tag", x) if "x" in names else "unbound"

    names = {"x"}
    x = Sees("old")
    x = Sees("new")
    x = "plain"
    return log


def locals_at_return():
    log = []

    def f():
        a = Dying(log, "a")
        b = Dying(log, "b")
        c = Dying(log, "c")
        log.append("returning")
        return a.name + b.name + c.name

    log.append(f())
    log.append("returned")
    return log


def arguments_at_return():
    log = []

    def f(a, b, *args, k, **kw):
        log.append("body")

    f(Dying(log, "a"), Dying(log, "b"), Dying(log, "star"), k=Dying(log, "k"), z=Dying(log, "z"))
    log.append("after")
    return log


def argument_rebound_in_callee():
    log = []

    def f(a):
        log.append("in")
        a = None
        log.append("dropped")
        return a

    f(Dying(log, "only reference"))
    d = Dying(log, "kept by caller")
    f(d)
    log.append("still alive")
    del d
    return log


def argument_of_star_call():
    log = []

    def f(*args):
        log.append(len(args))
        args = None
        log.append("args dropped")

    f(*[Dying(log, "listed")])
    log.append("after")
    return log


def arguments_from_generator():
    log = []

    def f(*args):
        log.append(len(args))
        args = None
        log.append("args dropped")

    f(*(Dying(log, n) for n in "ab"))
    log.append("after")
    return log


def keyword_call_drops():
    log = []

    def f(**kw):
        kw.clear()
        log.append("cleared")

    f(a=Dying(log, "a"), **{"b": Dying(log, "b")})
    log.append("after")
    return log


def return_value_ignored():
    log = []

    def make(n):
        return Dying(log, n)

    make("dropped")
    log.append("next")
    _ = make("kept")
    log.append("end")
    return log


def method_receiver_dies():
    log = []

    class C(Dying):
        def go(self):
            log.append("in method")
            return 5

    log.append(C(log, "receiver").go())
    bound = C(log, "bound").go
    log.append("bound made")
    bound()
    del bound
    log.append("end")
    return log


def failed_call_drops_arguments():
    log = []

    def f(a):
        pass

    try:
        f(Dying(log, "x"), Dying(log, "y"))
    except TypeError as e:
        log.append(text(e))
    log.append("end")
    return log


def failed_native_call_drops_arguments():
    log = []
    log.append(catch(lambda: len(Dying(log, "z"), 1)))
    log.append(catch(lambda: len(Dying(log, "p"), q=Dying(log, "q"))))
    log.append("end")
    return log


def failed_keyword_call_drops_arguments():
    log = []

    def f(a):
        pass

    try:
        f(Dying(log, "p"), q=Dying(log, "q"))
    except TypeError as e:
        log.append(text(e))
    log.append("end")
    return log


def expression_error_drops_stack():
    log = []

    def f():
        return [Dying(log, "one"), Dying(log, "two"), 1 / 0]

    try:
        f()
    except ZeroDivisionError:
        log.append("caught")
    log.append("end")
    return log


def stack_drop_order_on_error():
    log = []

    def boom():
        raise ValueError

    def f():
        return (Dying(log, "a").name, (Dying(log, "b"), {"k": Dying(log, "c"), "m": boom()}))

    catch(f)
    return log


def exception_holds_frames():
    log = []

    def inner():
        d = Dying(log, "inner local")
        raise ValueError(d.name)

    def outer():
        d = Dying(log, "outer local")
        inner()
        return d

    try:
        outer()
    except ValueError:
        log.append("handling")
    log.append("handled")
    return log


def exception_kept_by_name():
    log = []

    def f():
        d = Dying(log, "local")
        raise ValueError(d.name)

    try:
        f()
    except ValueError as e:
        kept = e
    log.append("handler left")
    kept.__traceback__ = None
    log.append("traceback dropped")
    return log


def exception_cycle_with_frame():
    log = []

    def f():
        d = Dying(log, "in cycle")
        try:
            raise ValueError(d.name)
        except ValueError as e:
            err = e
        return "returned", err is None

    log.append(f())
    log.append("before collect")
    gc.collect()
    log.append("after collect")
    return log


def reraised_drops():
    log = []

    def f():
        d = Dying(log, "f local")
        try:
            raise KeyError(d.name)
        except KeyError:
            raise ValueError("new") from None

    try:
        f()
    except ValueError as e:
        e.__context__ = None
        log.append("context dropped")
    log.append("end")
    return log


def loop_variables():
    log = []
    for d in [Dying(log, n) for n in "abc"]:
        log.append(d.name)
    log.append("loop over")
    del d
    log.append("variable deleted")
    for d in (Dying(log, n) for n in "xyz"):
        log.append(d.name)
        if d.name == "y":
            break
    log.append("broke")
    return log


def iterator_dropped_on_break():
    log = []

    class It(Dying):
        def __iter__(self):
            return self

        def __next__(self):
            return 1

    for _ in It(log, "iterator"):
        break
    log.append("after break")

    def f():
        for _ in It(log, "returned from"):
            return "value"

    log.append(f())
    try:
        for _ in It(log, "raised from"):
            raise ValueError
    except ValueError:
        log.append("caught")
    return log


def with_target_dies():
    log = []

    class CM:
        def __enter__(self):
            return Dying(log, "target")

        def __exit__(self, *a):
            log.append("exit")

    with CM():
        log.append("unnamed body")
    with CM() as t:
        log.append("named body")
    log.append("after with")
    del t
    return log


def unpacking_drops():
    log = []
    a, b = Dying(log, "a"), Dying(log, "b")
    a, b = b, a
    log.append("swapped")
    a, *b = [Dying(log, n) for n in "xyz"]
    log.append("unpacked")
    a = b = None
    log.append("cleared")
    catch(lambda: [0 for p, q in [(Dying(log, "p"), Dying(log, "q"), 3)]])
    return log


def subscript_and_attribute_temporaries():
    log = []

    class C(Dying):
        def __getitem__(self, k):
            return "item"

        def __setitem__(self, k, v):
            log.append("set")

        def __add__(self, o):
            return "sum"

        def __eq__(self, o):
            return True

        __hash__ = object.__hash__

    C(log, "got")[Dying(log, "key")]
    C(log, "stored")[Dying(log, "key2")] = Dying(log, "value")
    C(log, "left") + Dying(log, "right")
    C(log, "cmp") == Dying(log, "other")
    C(log, "attr").x = Dying(log, "attr value")
    log.append("end")
    return log


def inplace_drops_old():
    log = []

    class A(Dying):
        def __iadd__(self, o):
            log.append("iadd")
            return A(log, self.name + "+")

    a = A(log, "a")
    a += Dying(log, "operand")
    log.append("done")
    a += 1
    log.append("again")
    return log


def conditional_and_boolean_drops():
    log = []

    class F(Dying):
        def __bool__(self):
            return False

    x = F(log, "falsy") or Dying(log, "chosen")
    log.append("or done")
    y = Dying(log, "truthy") and "and value"
    log.append("and done")
    z = 1 if Dying(log, "test") else 2
    log.append((x.name, y, z))
    return log


def comparison_chain_drops():
    log = []

    class C(Dying):
        def __lt__(self, o):
            return self.name < o.name

    r = C(log, "a") < C(log, "b") < C(log, "c")
    log.append(r)
    r = C(log, "b") < C(log, "a") < C(log, "never")
    log.append(r)
    return log


def fstring_drops():
    log = []
    r = f"{Dying(log, 'x')} {Dying(log, 'y').name}"
    log.append(r)
    return log


def closure_drops():
    log = []

    def make():
        d = Dying(log, "celled")

        def f():
            nonlocal d
            d = None
            log.append("cleared cell")

        return f

    f = make()
    log.append("made")
    f()
    log.append("called")
    make()
    log.append("dropped closure")
    return log


def default_arguments_drop():
    log = []

    def make():
        def f(a=Dying(log, "default")):
            return a.name

        return f

    f = make()
    log.append(f())
    del f
    log.append("function gone")
    return log


def class_dropped():
    log = []

    def make():
        class C:
            d = Dying(log, "class attribute")

        return C.d.name

    log.append(make())
    log.append("before collect")
    gc.collect()
    return log


def delete_statement():
    log = []
    a = b = Dying(log, "shared")
    del a
    log.append("one name left")
    del b
    xs = [Dying(log, n) for n in "pqr"]
    del xs[1]
    log.append("deleted middle")
    del xs[:]
    log.append("deleted rest")
    d = {"k": Dying(log, "v")}
    d["k"] = None
    log.append("overwritten")
    return log


def del_resurrects():
    log, saved = [], []

    class R:
        def __del__(self):
            log.append("del")
            saved.append(self)

    R()
    log.append(len(saved))
    saved.clear()
    log.append("cleared")
    return log


def del_raises():
    log = []

    class R:
        def __del__(self):
            log.append("del")
            raise ValueError("from del")

    R()
    log.append(handled())
    x = R()
    del x
    return log


def del_sees_handled_exception():
    log = []

    class D:
        def __del__(self):
            log.append(handled())

    try:
        raise KeyError("now")
    except KeyError:
        D()
    D()
    return log


def del_during_unwinding():
    log = []

    class D:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append((self.n, handled()))
            try:
                raise OSError("inside del")
            except OSError:
                pass

    def f():
        d = D("local")
        [D("temporary"), 1 / 0]
        return d

    try:
        f()
    except ZeroDivisionError as e:
        log.append(text(e))
    log.append(handled())
    return log


def del_calls_back_into_program():
    log = []

    class D:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)
            if self.n:
                D(self.n - 1)

    D(3)
    log.append("end")
    return log


def weakref_callbacks():
    log = []

    class C:
        pass

    c = C()
    refs = [weakref.ref(c, lambda r, n=n: log.append((n, r() is None))) for n in range(3)]
    log.append(refs[0]() is c)
    del c
    log.append("dead")
    return log


def weakref_callback_raises():
    log = []

    class C:
        pass

    def bad(ref):
        log.append("called")
        raise ValueError("callback")

    c = C()
    r = weakref.ref(c, bad)
    c = None
    log.append(r() is None)
    return log


def weak_containers():
    class C:
        pass

    a, b = C(), C()
    d = weakref.WeakValueDictionary(a=a, b=b)
    s = weakref.WeakSet([a, b])
    k = weakref.WeakKeyDictionary({a: 1, b: 2})
    before = len(d), len(s), len(k)
    del a
    return before, len(d), len(s), len(k), sorted(d)


def weakref_finalize():
    log = []

    class C:
        pass

    c = C()
    f = weakref.finalize(c, log.append, "finalised")
    log.append(f.alive)
    del c
    log.append(f.alive)
    return log


def weakref_to_function_and_method():
    class C:
        def m(self):
            return 1

    c = C()
    f = lambda: 1
    wf, wm, wb = weakref.ref(f), weakref.WeakMethod(c.m), weakref.ref(c.m)
    alive = wf() is f, wm()() == 1, wb()
    del f, c
    return alive, wf(), wm()


def weakref_to_running_generator():
    def g():
        yield ref() is it
        yield "second"

    it = g()
    ref = weakref.ref(it)
    first = next(it)
    del it
    return first, ref()


def id_reuse():
    class C:
        __slots__ = ()

    same = id(C()) == id(C())
    a = C()
    i = id(a)
    del a
    b = C()
    return same, id(b) == i


class _Bare:
    """Has no weak references."""

    __slots__ = ("log",)

    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("gone")


def seen_by_identity():
    log = []
    x = _Bare(log)
    seen = {id(x): 1, x: 2}
    log.append((len(seen), id(x) in seen, seen[x]))
    del seen, x
    log.append("after")
    return log


class _Part:
    def __init__(self, name):
        self.name = name


def seen_in_keys():
    parts = [_Part(str(n)) for n in range(4)]
    gone = [weakref.ref(part) for part in parts]
    pairs, named = {(part, part.name) for part in parts}, {(part, 1): part.name for part in parts}
    found = sorted(name for _, name in pairs), list(named.values()), named[parts[0], 1]
    del pairs, named, parts
    return found, [ref() is None for ref in gone]


def class_with_bare_descriptors():
    class Local:
        @staticmethod
        def f():
            return 1

        @classmethod
        def g(cls):
            return 2

    gone = [weakref.ref(Local.f), weakref.ref(Local.g.__func__)]
    found = Local.f() + Local().g()
    del Local
    gc.collect()
    return found, [ref() is None for ref in gone]


def held_by_a_c_object():
    def timer():
        return 0.0

    gone = weakref.ref(timer)
    profiler = _lsprof.Profiler(timer)
    profiler.clear()
    seen = profiler is None, callable(profiler)
    del profiler, timer
    return seen, gone() is None


def code_dies_with_its_function():
    namespace = {}
    exec("def f(): return 1", namespace)
    f = namespace.pop("f")
    gone = weakref.ref(f.__code__)
    name = f.__code__.co_name
    del f, namespace
    gc.collect()
    return name, gone() is None


def refcounts_of_locals():
    class C:
        pass

    c = C()
    seen = [sys.getrefcount(c)]
    d = c
    xs = [c, c]
    seen.append(sys.getrefcount(c))
    t = (d, *xs)
    seen.append(sys.getrefcount(c))
    del d, xs
    seen.append((sys.getrefcount(c), sys.getrefcount(t)))
    f = lambda: c
    seen.append((sys.getrefcount(c), sys.getrefcount(f), f() is c, sys.getrefcount(c)))
    return seen


def refcounts_around_calls():
    class C:
        def m(self, *a, **k):
            return self

        def __getitem__(self, k):
            return k

        @property
        def p(self):
            return self

        def __add__(self, o):
            return o

        def __call__(self, *a):
            return a

    def f(*args, **kw):
        return args, kw

    c, d = C(), C()
    seen = []
    for step in (
        lambda: c.m(d, k=d),
        lambda: c[d],
        lambda: c.p,
        lambda: c + d,
        lambda: c(d, d),
        lambda: f(c, *[d], k=c, **{"m": d}),
        lambda: [c, d, {"k": c}],
        lambda: catch(c.m().nope, d),
    ):
        catch(step)
        seen.append((sys.getrefcount(c), sys.getrefcount(d)))
    return seen


def refcounts_in_generator():
    class C:
        pass

    def g(x):
        yield "first"
        y = [x, x]
        yield len(y)

    c = C()
    it = g(c)
    seen = [sys.getrefcount(c)]
    for _ in range(2):
        next(it)
        seen.append(sys.getrefcount(c))
    it.close()
    return seen, sys.getrefcount(c)


def refcounts_after_exception():
    class C:
        pass

    def f(x):
        y = x
        raise ValueError(y)

    c = C()
    before = sys.getrefcount(c)
    try:
        f(c)
    except ValueError:
        during = sys.getrefcount(c)
    return before, during > before, sys.getrefcount(c)


def refcounts_of_iterated():
    class C:
        pass

    xs = [C(), C()]
    out = []
    for x in xs:
        out.append((sys.getrefcount(x), sys.getrefcount(xs)))
    for i, x in enumerate(xs):
        out.append((i, sys.getrefcount(x)))
    return out, [sys.getrefcount(x) for x in xs]


def gc_referrers_and_tracking():
    a = [1]
    b = (a,)
    c = {"a": a}
    return gc.is_tracked(a), len([r for r in gc.get_referrers(a) if r is b or r is c])


def cycles_collected_in_order():
    log = []

    class N:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            log.append(self.n)

    a, b = N("a"), N("b")
    a.o, b.o = b, a
    wa = weakref.ref(a, lambda r: log.append("callback"))
    del a, b
    log.append("unreachable")
    gc.collect()
    log.append(wa() is None)
    return sorted(map(str, log))


def generator_temporaries():
    log = []

    def g():
        for d in [Dying(log, "a"), Dying(log, "b")]:
            yield d.name
        log.append("generator end")

    for name in g():
        log.append(name)
    log.append("loop end")
    return log


def coroutine_locals():
    log = []

    async def f(p):
        d = Dying(log, "d")
        log.append("run")
        return d.name

    try:
        f(Dying(log, "p")).send(None)
    except StopIteration as stop:
        log.append(stop.value)
    log.append("end")
    return log


def comprehension_temporaries():
    log = []
    names = [Dying(log, n).name for n in "ab"]
    log.append(names)
    held = [Dying(log, n) for n in "cd"]
    held = [h.name for h in held]
    log.append(held)
    return log


def match_subject_dies():
    log = []

    class P(Dying):
        __match_args__ = ("name",)

    match P(log, "subject"):
        case P("other"):
            log.append("no")
        case P(n):
            log.append(("body", n))
    log.append("after")
    return log


def try_finally_drops():
    log = []

    def f():
        d = Dying(log, "d")
        try:
            return d.name
        finally:
            d = None
            log.append("finally")

    log.append(f())
    return log


def walrus_and_lambda_drops():
    log = []
    (lambda x: None)(Dying(log, "lambda argument"))
    log.append("called")
    if d := Dying(log, "walrus"):
        log.append("in if")
    d = None
    log.append("end")
    return log


def thread_local_dropped():
    import threading

    log = []
    local = threading.local()

    def work():
        local.d = Dying(log, "thread local")

    t = threading.Thread(target=work)
    t.start()
    t.join()
    log.append("joined")
    return sorted(log)


def import_star_names_dropped():
    log = []
    space = {"d": Dying(log, "in namespace")}
    exec("e = d\ndel d", space)
    log.append("after exec")
    space.clear()
    log.append("cleared")
    return log


def super_temporaries():
    log = []

    class A(Dying):
        def f(self):
            return "A.f"

    class B(A):
        def f(self):
            return super().f() + "B"

    log.append(B(log, "b").f())
    log.append("end")
    return log


def raise_drops_arguments():
    log = []

    class E(Exception):
        def __init__(self, d):
            self.d = d

    try:
        raise E(Dying(log, "payload"))
    except E:
        log.append("caught")
    log.append("end")
    try:
        raise E(Dying(log, "payload2")) from E(Dying(log, "cause"))
    except E as e:
        log.append(e.d.name)
    log.append("end2")
    return log


class _Equal(Dying):
    """All of them are equal: a set or dict keeps the first and drops the others."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


def duplicates_in_displays():
    log = []
    s = {_Equal(log, "s1"), _Equal(log, "s2"), _Equal(log, "s3")}
    log.append("set made")
    d = {_Equal(log, "k1"): Dying(log, "v1"), _Equal(log, "k2"): Dying(log, "v2")}
    log.append("dict made")
    c = {_Equal(log, n) for n in "ab"}
    log.append("set comprehension made")
    m = {_Equal(log, n): Dying(log, n + n) for n in "xy"}
    log.append("dict comprehension made")
    u = {*[_Equal(log, "u1")], *(_Equal(log, "u2"),)}
    log.append("starred set made")
    return log, len(s), len(d), len(c), len(m), len(u)


def unhashable_in_displays():
    log = []
    catch(lambda: {Dying(log, "a"), [], Dying(log, "b")})
    log.append("set failed")
    catch(lambda: {Dying(log, "k"): Dying(log, "v"), None: 1, (Dying(log, "t"), []): Dying(log, "w")})
    log.append("dict failed")
    catch(lambda: {**{"a": Dying(log, "m")}, **5})
    log.append("update failed")
    catch(lambda: [Dying(log, "x"), *5, Dying(log, "never")])
    log.append("extend failed")
    return log


def callable_dies_with_arguments():
    log = []

    class C(Dying):
        def __call__(self, *a, **k):
            log.append("called")

    C(log, "callee")(Dying(log, "arg"), k=Dying(log, "kw"))
    C(log, "star callee")(*[Dying(log, "star arg")], **{"k": Dying(log, "star kw")})
    C(log, "builtin self").__class__
    log.append("end")
    return log


def native_call_drops():
    log = []
    isinstance(Dying(log, "one"), (int, str))
    log.append("fast")
    max(Dying(log, "p"), Dying(log, "q"), key=lambda d: d.name)
    log.append("keywords")
    [].append(Dying(log, "appended"))
    log.append("method")
    "{}{}".format(Dying(log, "f1"), Dying(log, "f2"))
    log.append("format")
    catch(lambda: dict(Dying(log, "bad")))
    log.append("failed")
    return log


def slice_parts_die():
    log = []

    class I(Dying):
        def __index__(self):
            return len(self.name)

    class L(Dying):
        def __getitem__(self, k):
            log.append("get")
            return 1

        def __setitem__(self, k, v):
            log.append("set")

        def __delitem__(self, k):
            log.append("del item")

    [0, 1, 2, 3][I(log, "a") : I(log, "bb")]
    log.append("two parts")
    L(log, "container")[I(log, "x") : I(log, "yy") : I(log, "zzz")]
    L(log, "stored")[I(log, "p") : I(log, "qq")] = Dying(log, "value")
    del L(log, "deleted")[I(log, "r") :]
    catch(lambda: [1][Dying(log, "bad") : Dying(log, "worse")])
    catch(lambda: log.append[Dying(log, "m") : Dying(log, "n")])
    log.append("end")
    return log


def slice_parts_references():
    class I:
        def __index__(self):
            return 1

    a, b = I(), I()
    xs = [1, 2, 3]
    before = sys.getrefcount(a), sys.getrefcount(b)
    for _ in range(5):
        xs[a:b]
        xs[a:b] = []
        xs[a:b:b]
        del xs[b:a]
    return before, sys.getrefcount(a), sys.getrefcount(b), xs


def failed_stores_drop():
    log = []

    class Frozen(Dying):
        def __setattr__(self, k, v):
            if k == "fail":
                raise AttributeError(k)
            object.__setattr__(self, k, v)

        def __delattr__(self, k):
            raise AttributeError(k)

        def __setitem__(self, k, v):
            raise KeyError(k)

    def attr():
        Frozen(log, "object").fail = Dying(log, "value")

    def item():
        Frozen(log, "container")[Dying(log, "key")] = Dying(log, "item value")

    def delete():
        del Frozen(log, "deleting").fail

    def unpack():
        a, b = (Dying(log, n) for n in "uvw")

    for f in (attr, item, delete, unpack):
        log.append(catch(f).split("(")[0].split("<")[0])
    return log


def failed_operators_drop():
    log = []

    class Bad(Dying):
        def __add__(self, o):
            raise ValueError("add")

        def __lt__(self, o):
            raise ValueError("lt")

        def __contains__(self, o):
            raise ValueError("contains")

        def __neg__(self):
            raise ValueError("neg")

        def __bool__(self):
            raise ValueError("bool")

        def __iter__(self):
            raise ValueError("iter")

        def __format__(self, spec):
            raise ValueError("format")

    for f in (
        lambda: Bad(log, "left") + Dying(log, "right"),
        lambda: Bad(log, "less") < Dying(log, "more"),
        lambda: Dying(log, "member") in Bad(log, "set"),
        lambda: -Bad(log, "negated"),
        lambda: not Bad(log, "truth"),
        lambda: [x for x in Bad(log, "iterated")],
        lambda: f"{Dying(log, 'before')}{Bad(log, 'formatted'):{Dying(log, 'spec').name}}",
        lambda: Bad(log, "chain") < 1 < Dying(log, "never"),
        lambda: Dying(log, "no attribute").missing,
        lambda: Dying(log, "not callable")(Dying(log, "argument")),
    ):
        log.append(catch(f).split("'")[0])
    return log


def identity_and_containment_drop():
    log = []
    Dying(log, "a") is Dying(log, "b")
    log.append("is")
    Dying(log, "c") in [1, 2]
    log.append("in")
    Dying(log, "d") in (Dying(log, "e"),)
    log.append("in tuple")
    assert Dying(log, "asserted")
    log.append("assert")
    del [Dying(log, "deleted")][0]
    log.append("end")
    return log


def globals_and_cells_overwritten():
    log = []
    space = {"Dying": Dying, "log": log}
    exec(
        "def f():\n    global g\n    g = Dying(log, 'g1')\n    g = Dying(log, 'g2')\n"
        "    log.append('global set')\n    del g\n"
        "n = Dying(log, 'n1')\nn = Dying(log, 'n2')\nlog.append('name set')\ndel n\nf()\n",
        space,
    )

    def outer():
        c = Dying(log, "c1")

        def inner():
            nonlocal c
            c = Dying(log, "c2")
            log.append("cell set")
            del c

        inner()
        log.append("inner returned")

    outer()
    space.clear()
    return log


def exception_parts_drop():
    log = []

    class E(Exception):
        def __init__(self, name):
            self.d = Dying(log, name)

    def f():
        try:
            raise E("first")
        except E:
            raise E("second") from E("cause")

    try:
        f()
    except E as e:
        log.append(e.d.name)
        e.__cause__ = None
        log.append("cause cleared")
        e.__context__ = None
        log.append("context cleared")
    log.append("left")
    return log


def with_manager_drops_on_error():
    log = []

    class CM(Dying):
        def __enter__(self):
            return Dying(log, f"entered {self.name}")

        def __exit__(self, *a):
            log.append(f"exit {self.name}")
            return self.name == "swallows"

    def f(name):
        with CM(log, name):
            raise ValueError(Dying(log, f"argument {name}"))

    f("swallows")
    log.append("swallowed")
    catch(f, "passes")
    log.append("passed")
    return log


def yield_from_delegate_drops():
    log = []

    class It(Dying):
        def __iter__(self):
            return self

        def __next__(self):
            if log and log[-1] == "stop":
                raise StopIteration(Dying(log, "result"))
            return 1

    def g():
        r = yield from It(log, "delegate")
        log.append(r.name)
        yield "next"

    it = g()
    next(it)
    log.append("stop")
    next(it)
    log.append("delegated")
    it = g()
    next(it)
    it.close()
    log.append("closed")
    return log


def return_value_dies_after_locals():
    log = []

    def f():
        a = Dying(log, "local")
        return Dying(log, "result")

    def g():
        return f()

    g()
    log.append("dropped")
    r = g()
    log.append("kept")
    r = None
    return log


def self_dies_in_init():
    log = []

    class C:
        def __init__(self):
            self.d = Dying(log, "attribute")
            raise ValueError("init")

        def __del__(self):
            log.append("object")

    log.append(catch(C))
    log.append("end")
    return log


def new_result_dropped():
    log = []

    class C(Dying):
        def __new__(cls, *a):
            Dying(log, "made in new")
            return super().__new__(cls)

    C(log, "object")
    log.append("end")
    return log


def class_namespace_drops():
    log = []

    def f():
        class C:
            x = Dying(log, "first")
            x = Dying(log, "second")
            log.append("rebound")
            del x
            log.append("deleted")
            y = Dying(log, "kept")
            raise ValueError

    log.append(catch(f))
    log.append("end")
    return log
