"""Names: closures and their cells, global and nonlocal, deletion, unbound names, shadowed
builtins, and the views of a frame that locals(), exec and eval give."""

import builtins
import sys

from probes import Dying, catch, where

try:
    from _testcapi import instancemethod
except ImportError:
    instancemethod = None

_shared = 0


def counter_closure():
    def make():
        n = 0

        def bump(by=1):
            nonlocal n
            n += by
            return n

        return bump, lambda: n

    bump, peek = make()
    bump2, peek2 = make()
    return bump(), bump(5), peek(), bump2(), peek2(), peek()


def shared_cells():
    def make():
        x = []

        def a(v):
            x.append(v)
            return x

        def b():
            nonlocal x
            x = ["fresh", *x]

        return a, b

    a, b = make()
    first = a(1)
    b()
    second = a(2)
    same = a.__closure__[0] is b.__closure__[0]
    return first, second, same, [f.__code__.co_freevars for f in (a, b)]


def three_levels():
    def one(a):
        def two(b):
            def three(c):
                nonlocal a, b
                a, b = a + c, b * c
                return a, b, c

            return three

        return two

    t = one(1)(2)
    return t(3), t(4), [c.cell_contents for c in t.__closure__]


def argument_is_cell():
    def f(a, *args, k, **kw):
        def g():
            nonlocal a, args, k, kw
            a, args, k, kw = kw, k, args, a
            return a, args, k, kw

        return g

    return f(1, 2, k=3, z=4)()


def self_reference():
    def make():
        def fact(n):
            return 1 if n < 2 else n * fact(n - 1)

        return fact

    f = make()
    return f(10), f.__closure__[0].cell_contents is f


def cells_in_loop():
    fs = []
    for i in range(4):
        j = i * i

        def f():
            return i, j

        fs.append(f)
    return [f() for f in fs]


def cells_per_call():
    def make(i):
        return lambda: i

    return [f() for f in [make(i) for i in range(4)]]


def unbound_local():
    def f():
        x
        x = 1

    def g():
        for i in ():
            pass
        return i

    def h(c):
        if c:
            v = 1
        return v

    return where(f), where(g), where(h, 0), h(1)


def unbound_after_del():
    def f():
        x = 1
        del x
        return x

    def g():
        x = 1
        del x
        del x

    def h():
        del never
        never = 1

    return where(f), where(g), where(h)


def unbound_cells():
    def f():
        def g():
            return later

        r = catch(g)
        later = 1
        return r, g()

    def h():
        def g():
            return v

        v = 1
        del v
        return where(g)

    def own():
        def g():
            return v

        v = 2
        del v
        return v, g

    def twice():
        v = 1

        def g():
            nonlocal v
            del v

        g()
        return where(g)

    return f(), h(), where(own), twice()


def empty_cell_contents():
    def f():
        def g():
            return v

        if g is None:
            v = 1
        return g

    return catch(lambda: f().__closure__[0].cell_contents), where(f())


def name_errors():
    def f():
        return not_there_at_all

    def g():
        not_there_at_all()

    def h():
        del_me_not += 1

    def close_name():
        prnt("x")

    found = []
    for fn in (f, g, h, close_name):
        try:
            fn()
        except NameError as exc:
            found.append((type(exc).__name__, str(exc), exc.name))
    return found


def global_statement():
    global _shared
    _shared = 0

    def inc():
        global _shared
        _shared += 1
        return _shared

    def make():
        global _made_here
        _made_here = "made"

    make()
    seen = _made_here
    inc()
    inc()
    r = _shared, seen, "_made_here" in globals()
    del globals()["_made_here"]
    _shared = 0
    return r


def delete_global():
    def f():
        global _temp
        _temp = 1
        del _temp

    def g():
        global _temp
        del _temp

    f()
    return where(g), catch(lambda: _temp)


def global_shadows_builtin():
    space = {"len": lambda x: "mine"}
    exec("def f(x):\n    return len(x)\n", space)
    f = space["f"]
    first = f([1])
    del space["len"]
    second = f([1])
    space["len"] = lambda x: "again"
    return first, second, f([1])


def builtins_replaced():
    space = {"__builtins__": {"len": lambda x: "fake"}}
    exec("def f(x):\n    return len(x)\ndef g():\n    return abs(-1)\n", space)
    return space["f"]([1, 2]), catch(space["g"])


def builtins_as_module_changed():
    saved = builtins.abs
    try:
        builtins.abs = lambda x: ("patched", x)
        first = abs(-1)
    finally:
        builtins.abs = saved
    return first, abs(-1)


def builtins_without_import():
    space = {"__builtins__": {}}
    return [
        catch(exec, "import sys", space),
        catch(exec, "from sys import path", space),
        catch(exec, "class A: pass", space),
        catch(exec, "assert 0, 'no AssertionError needed'", space),
        catch(exec, "print(1)", space),
    ]


def builtins_shadowed_locally():
    def f(len=len, print=None):
        int = str
        return len("abc"), int(5), print

    list = tuple
    return f(), list("ab"), [x for x in list("cd")]


def locals_in_function():
    def f(a, b=2, *args, **kw):
        c = a + b
        first = dict(locals())
        d = 1
        del c
        return first, sorted(locals())

    return f(1), f(1, 3, 4, k=5)


def locals_with_cells():
    def f(a):
        b = 2

        def g():
            return a, b, sorted(locals().items())

        snapshot = {k: v for k, v in locals().items() if k != "g"}
        return snapshot, g()

    return f(1)


def locals_is_a_snapshot():
    def f():
        x = 1
        d = locals()
        d["x"] = 99
        d["extra"] = 5
        return x, locals()["x"], "extra" in locals()

    return f()


def locals_after_change():
    def f():
        x = 1
        d = locals()
        x = 2
        e = locals()
        return d["x"], e["x"], d is e

    return f()


def locals_at_class_level():
    seen = []

    class C:
        a = 1
        seen.append(sorted(k for k in locals() if not k.startswith("__")))
        locals()["b"] = 2
        c = b + 1

    return seen, C.b, C.c


def locals_in_comprehension():
    def f():
        a = 1
        r = [sorted(k for k in locals() if not k.startswith(".")) for _ in range(1)]
        return r, a

    def g():
        return [(x, sorted(locals())) for x in "a"][0][0]

    return f(), g()


def vars_and_dir():
    class C:
        pass

    c = C()
    c.x = 1

    def f(a):
        b = 2
        return sorted(vars()), dir()

    return vars(c), f(1), catch(vars, 1)


def exec_in_function():
    def f():
        x = 1
        exec("x = 2; y = 3")
        return x, catch(lambda: y)

    def g():
        space = {}
        exec("def h(a):\n    return a * k\nk = 4", space)
        return space["h"](5)

    return f(), g()


def exec_namespaces():
    g = {"v": "global"}
    loc = {}
    exec("w = v; v = 'local'; u = v", g, loc)
    g.pop("__builtins__")
    return g, loc


def eval_uses_frame():
    def f(a):
        b = 10
        return eval("a + b"), eval("a + b", {"a": 1, "b": 2}), eval("b", {}, {"b": "x"})

    return f(5), catch(eval, "nope"), catch(eval, "1 +"), eval(" 3 ")


def eval_code_with_free_variables():
    def f():
        x = 1

        def g():
            return x

        return g

    code = f().__code__
    return catch(eval, code), catch(exec, code, {})


def exec_code_object_many_times():
    code = compile("total = total + n\nn += 1", "<counting>", "exec")
    space = {"total": 0, "n": 1}
    for _ in range(10):
        exec(code, space)
    return space["total"], space["n"]


def exec_traceback():
    source = "def f(x):\n    y = x + 1\n    return [\n        y / 0\n    ]\nf(1)\n"
    return where(exec, compile(source, "<made>", "exec"), {})


def globals_is_live():
    g = globals()
    g["_from_globals"] = 7
    try:
        return _from_globals
    finally:
        del g["_from_globals"]


def dict_subclass_globals():
    log = []

    class D(dict):
        def __getitem__(self, k):
            log.append(("get", k))
            return dict.__getitem__(self, k)

        def __setitem__(self, k, v):
            log.append(("set", k))
            dict.__setitem__(self, k, v)

        def __missing__(self, k):
            log.append(("missing", k))
            if k == "magic":
                return "wand"
            raise KeyError(k)

    d = D(x=1)
    exec("y = x\nz = len('abc')", d)
    out = [catch(exec, "w = magic", d), catch(exec, "def f(): return magic\nr = f()", d)]
    return log, out, d.get("y"), d.get("z"), d.get("w")


def mapping_locals():
    log = []

    class M:
        def __init__(self):
            self.d = {}

        def __getitem__(self, k):
            log.append(("get", k))
            return self.d[k]

        def __setitem__(self, k, v):
            log.append(("set", k, v))
            self.d[k] = v

        def __delitem__(self, k):
            log.append(("del", k))
            del self.d[k]

        def keys(self):
            return self.d.keys()

    m = M()
    exec("a = 1\nb = a + 1\ndel a\nc = len", {}, m)
    r = catch(exec, "a", {}, m), catch(exec, "del zz", {}, m)
    return log[:7], len(log), r, sorted(m.d)


def locals_mapping_raises():
    class M(dict):
        def __getitem__(self, k):
            raise RuntimeError("lookup of " + k)

    class N(dict):
        def __setitem__(self, k, v):
            raise RuntimeError("store of " + k)

        def __delitem__(self, k):
            raise KeyError(k)

    return [
        catch(exec, "a", {}, M()),
        catch(exec, "a = 1", {}, N()),
        catch(exec, "del a", {}, N(a=1)),
        catch(exec, "import sys", {}, N()),
        catch(exec, "def f(): pass", {}, N()),
    ]


def class_body_scopes():
    x = "function"

    class A:
        x = "class"
        y = x

        def m(self):
            return x

        z = [x for _ in range(1)]
        w = (lambda: x)()

    class B:
        seen = x

    return A.y, A().m(), A.z, A.w, B.seen


def class_body_free_variable_lookup():
    def f(x):
        class C:
            before = x
            if x > 1:
                x = "own"
            after = x

        return C.before, C.after

    def g(y):
        class C:
            global z
            z = y

        return z

    r = catch(lambda: f(1)), catch(lambda: f(2)), g(3)
    globals().pop("z", None)
    return r


def class_deref_from_mapping():
    def f():
        v = "cell"

        class Meta(type):
            @classmethod
            def __prepare__(cls, name, bases):
                return {"v": "from prepare"}

        class C(metaclass=Meta):
            seen = v

        class D(metaclass=Meta):
            seen = [v for _ in "x"], (lambda: v)()

        return C.seen, D.seen

    return f()


def class_deref_after_del():
    def f():
        v = "cell"

        class C:
            first = v
            v = "own"
            second = v
            del v
            third = v

        return C.first, C.second, C.third

    return where(f)


def nonlocal_in_class():
    def f():
        n = 0

        class C:
            nonlocal n
            n = 5

            def m(self):
                nonlocal n
                n += 1
                return n

        c = C()
        return n, c.m(), c.m(), n, "n" in vars(C)

    return f()


def del_variants():
    class C:
        pass

    c = C()
    c.a = 1
    xs = [1, 2, 3, 4, 5]
    d = {"k": 1, "m": 2}
    del c.a, xs[0], xs[1:3], d["k"]
    x = y = 1
    del x, (y)
    return vars(c), xs, d, catch(lambda: c.a)


def del_errors():
    class C:
        __slots__ = ("s",)

    c = C()
    d = {}

    def attr():
        del c.s

    def noattr():
        del c.zzz

    def item():
        del d["k"]

    def tup():
        t = (1,)
        del t[0]

    def integer():
        del (5).real

    return [catch(f) for f in (attr, noattr, item, tup, integer)]


def walrus():
    xs = [1, 5, 2, 8]
    big = [y for x in xs if (y := x * 2) > 4]
    total = 0
    while (n := len(xs)) > 1:
        total += n
        xs.pop()
    if (m := max(big)) and (k := m - 1):
        pass
    return big, y, total, n, m, k, (a := 3, a + 1)


def walrus_in_nested_comprehension():
    r = [[last := (i, j) for j in range(2)] for i in range(3)]

    def f():
        return any((hit := v) > 2 for v in range(5)), hit

    return r, last, f()


def walrus_global():
    def f():
        global _walrus
        [(_walrus := v) for v in range(4)]

    f()
    return globals().pop("_walrus")


def except_variable_is_deleted():
    def f():
        try:
            raise ValueError("v")
        except ValueError as e:
            kept = str(e)
        return kept, catch(lambda: e), "e" in locals()

    def g():
        e = "before"
        try:
            raise ValueError
        except ValueError as e:
            pass
        return e

    def h():
        try:
            raise ValueError("x")
        except ValueError as e:
            del e
        return "no error"

    def k():
        try:
            raise ValueError("x")
        except ValueError as e:
            e = "rebound"
        return locals()

    return f(), where(g), h(), k()


def loop_variable_survives():
    for i in range(3):
        pass
    for a, (b, *c) in [(1, (2, 3, 4))]:
        pass
    return i, a, b, c


def conditional_names():
    def f(flag):
        if flag:
            import os as mod
        else:
            mod = None
        return mod is not None

    return f(True), f(False)


def closures_keep_alive():
    log = []

    def make():
        d = Dying(log, "held")

        def get():
            return d.name

        return get

    g = make()
    log.append(g())
    del g
    log.append("end")
    return log


def cell_set_from_outside():
    def f():
        x = 1

        def g():
            return x

        return g

    g = f()
    g.__closure__[0].cell_contents = "changed"
    first = g()
    del g.__closure__[0].cell_contents
    return first, where(g)


def function_from_parts():
    import types

    def f():
        x = 1

        def g(a):
            return a, x

        return g

    g = f()
    h = types.FunctionType(g.__code__, {}, "h", (5,), (types.CellType("cell"),))
    return h(), h(6), h.__name__, catch(types.FunctionType, g.__code__, {})


def deep_closure_chain():
    def build(n):
        if n == 0:
            return lambda: 0
        inner = build(n - 1)
        return lambda: inner() + n

    return build(50)()


def nested_function_defaults_see_outer():
    x = 1

    def f(a=x):
        x = 2
        return a, x

    x = 3
    return f(), x


def private_names():
    class C:
        __secret = 1

        def __init__(self):
            self.__mine = 2

        def get(self):
            __local = 3
            return self.__secret, self.__mine, locals().keys() - {"self"}

    c = C()
    return c.get(), sorted(vars(c)), catch(lambda: c.__mine)


def frame_locals_from_callee():
    def callee():
        caller = sys._getframe(1)
        return {k: v for k, v in caller.f_locals.items() if k in ("a", "b", "c")}

    def f(a):
        b = 2
        first = callee()
        c = 3

        def use():
            return c, a

        return first, callee(), use(), b

    return f(1)


def many_locals():
    names = [f"v{i}" for i in range(300)]
    body = "".join(f"    {n} = {i}\n" for i, n in enumerate(names))
    source = f"def f():\n{body}    return {' + '.join(names)}, len(locals())\n"
    space = {}
    exec(source, space)
    return space["f"]()


def many_cells():
    names = [f"v{i}" for i in range(300)]
    body = "".join(f"    {n} = {i}\n" for i, n in enumerate(names))
    uses = " + ".join(names)
    source = f"def f():\n{body}    def g():\n        return {uses}\n    return g\n"
    space = {}
    exec(source, space)
    return space["f"]()()


def parts_of_code_are_its_own():
    namespace = {}
    exec("f, g = lambda: (1.5, 'a'), lambda: (1.5, 'a')", namespace)
    one, two = namespace["f"].__code__, namespace["g"].__code__
    return (
        one.co_consts is one.co_consts,
        one.co_names is one.co_names,
        one.co_consts[0] is one.co_consts[0],
        one.co_consts is two.co_consts,
        one.co_consts == two.co_consts,
    )


def _method(self):
    return self.n


class _Holder:
    n = 5
    method = instancemethod(_method) if instancemethod else _method


def function_that_c_code_wrapped():
    _Holder.method.note = "kept"
    note = _method.note
    _method.__dict__.clear()
    return note, _Holder.method is _method, _Holder().method(), _Holder.method(_Holder)
