"""Attributes, slots, cells, globals and instance dicts that come from outside, written in every
way. A row is one statement; `x` is the object, `y` another, `v` a fresh list."""

import threading
import types

from worlds import module_of


class _Plain:
    def __init__(self):
        self.a, self.b, self.l = 1, 2, [3]


class _Local(threading.local):
    def __init__(self, a):
        self.a, self.b, self.l = a, 2, [3]

    @property
    def p(self):
        return self.b

    @p.setter
    def p(self, value):
        self.b = value


def _filled(x):
    x.a, x.b, x.l = 1, 2, [3]
    return x


class _Slots:
    __slots__ = ("a", "b", "l", "n", "__dict__")

    def __init__(self):
        self.a, self.b, self.l = 1, 2, [3]


class _Setter(_Plain):
    def __setattr__(self, name, value):
        object.__setattr__(self, "count", getattr(self, "count", 0) + 1)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)
        object.__setattr__(self, "gone", name)


class _Property(_Plain):
    @property
    def n(self):
        return self.__dict__.get("_n", 0)

    @n.setter
    def n(self, value):
        self._n = value

    @n.deleter
    def n(self):
        self._n = "deleted"


class _DictObject(dict):
    def __init__(self):
        self.__dict__ = self
        self.a, self.b, self.l = 1, 2, [3]


class _ListObject(list):
    def __init__(self):
        self.a, self.b, self.l = 1, 2, [3]


ATTRIBUTES = """
x.a = v
x.n = v
x.n = v; x.n2 = 1
del x.a
del x.a; x.a = 1
x.n = 1; x.n2 = 2; del x.n; x.n = 3
x.a += 1
x.l.append(v)
x.l += [1]
x.a, x.b = x.b, x.a
x.a, y.a = y.a, x.a
x.a = x
x.a = y; y.a = x
x.l, y.l = y.l, x.l
y.l = x.l; y.l.append(1)
setattr(x, 'n', v); delattr(x, 'a')
object.__setattr__(x, 'n', v)
x.a = 5; x.a = 1
x.t = 1; del x.t
x.b = x.a; x.a = v; x.l = x.b
x.l = [x.l, x.l]
x.n = lambda: x.a
x.n = (x, v)
"""

INSTANCE_DICT = """
x.__dict__['n'] = v
vars(x)['a'] = v
vars(x).update(a=5, n=6)
x.__dict__.pop('a')
x.__dict__.clear()
d = x.__dict__; x.n = 1; d['m'] = d['n']
d = vars(x); del x.a; v.append('a' in d)
x.__dict__.setdefault('n', []).append(1)
x.n = 1; v.extend(x.__dict__)
v.append(x.__dict__)
for k in list(vars(x)): setattr(x, k + '_', 1)
w = vars(x).pop('a'); x.a = w
x.__dict__ |= {'n': 1}
vars(x)['l'].append(1)
x.a = 2; v.append(dict(vars(x)))
"""

KINDS = {
    "object": (ATTRIBUTES + INSTANCE_DICT, _Plain),
    "slots": (ATTRIBUTES, _Slots),
    "setattr_hook": (ATTRIBUTES, _Setter),
    "property": (ATTRIBUTES + "del x.n\nx.n += 1\nx.n = 1; del x.n", _Property),
    "dict_that_is_its_own_dict": (ATTRIBUTES + INSTANCE_DICT, _DictObject),
    "list_with_attributes": (ATTRIBUTES + "x.append(v); x.n = len(x)", _ListObject),
    "namespace": (ATTRIBUTES + INSTANCE_DICT, lambda: types.SimpleNamespace(a=1, b=2, l=[3])),
    "thread_local": (ATTRIBUTES, lambda: _filled(threading.local())),
    "thread_local_class": (ATTRIBUTES + "x.p = 5; v.append(x.p)", lambda: _Local(1)),
    "module": (ATTRIBUTES, lambda: module_of("a, b, l = 1, 2, [3]")),
}


def _case(statement, make):
    def case(call):
        body = "\n    ".join(part.strip() for part in statement.split("; "))
        f = module_of(f"def f(x, y, v):\n    {body}\n    return [x, v]\n").f
        x, y = make(), make()
        call(f, x, y, [])
        call(f, make(), make(), [])
        call(f, x, y, [])
        call(f, make(), x, [0])
        call(f, y, y, [])
        x.__dict__["extra"] = 1
        call(f, x, make(), [])

    return case


def _fill():
    for kind, (rows, make) in KINDS.items():
        for statement in rows.strip().splitlines():
            case = _case(statement, make)
            case.__name__ = case.__qualname__ = f"{kind}: {statement}"
            globals()[case.__name__] = case


_fill()


def function_attributes(call):
    def g():
        pass

    def f(g, v):
        g.n = v
        g.__dict__["m"] = 1
        return g.n

    call(f, g, [])
    call(f, g, [1])


def global_written(call):
    m = module_of(
        """
        X = 1
        L = []
        def f(v):
            global X, Y
            X = X + 1
            Y = v
            L.append(X)
            return X, Y
        """
    )
    call.watch(m)
    for _ in range(3):
        call(m.f, [])
    m.X = 1
    call(m.f, [])


def global_deleted(call):
    m = module_of(
        """
        X = 1
        def f():
            global X
            old = X
            del X
            X = old
            return old
        """
    )
    call.watch(m)
    m.Z = 1
    call(m.f)
    call(m.f)


def global_of_another_module_written(call):
    other = module_of("N = 0\ndef bump():\n    global N\n    N += 1\n    return N")
    m = module_of("def f():\n    o.bump()\n    o.N = o.N * 10\n    return o.bump()", o=other)
    call.watch(other)
    for _ in range(3):
        call(m.f)


def globals_dict_written(call):
    m = module_of(
        "X = 1\ndef f(v):\n    globals()['X'] = v\n    globals().update(Y=2)\n    return X, Y"
    )
    call.watch(m)
    call(m.f, [])
    call(m.f, 5)


def cell_written(call):
    def make():
        n, seen = 0, []

        def f(v):
            nonlocal n
            n += 1
            seen.append(n)
            return n, seen, v

        def get():
            return n

        return f, get

    f, get = make()
    for _ in range(3):
        call(f, [])
        call.note(get())


def cell_emptied_and_filled(call):
    def make():
        n = 1

        def f():
            nonlocal n
            old = n
            del n
            n = [old]
            return n

        def get():
            return n

        return f, get

    f, get = make()
    call(f)
    call.note(get())
    call(f)
    call.note(get())


def cell_of_a_called_function_written(call):
    def counter():
        n = 0

        def bump():
            nonlocal n
            n += 1
            return n

        return bump

    def f(g, h):
        return g(), h(), g()

    a, b = counter(), counter()
    call(f, a, b)
    call(f, a, a)
    call(f, b, a)


def class_attribute_written(call):
    class C:
        n = 0
        l = []

    def f(c):
        type(c).n += 1
        c.l.append(c.n)
        return c.n

    c = C()
    call.watch(C)
    for _ in range(3):
        call(f, c)


def class_data_mutated(call):
    class C:
        registry = []
        table = {}

        def __init__(self, n):
            self.registry.append(n)
            self.table[n] = self

    def f(n):
        return C(n)

    call.watch(C)
    for n in (1, 2, 1):
        call(f, n)


def class_of_an_object_written(call):
    class A:
        pass

    class B:
        pass

    def f(o):
        o.__class__ = B
        return type(o).__name__

    o = A()
    call(f, o)
    call(f, o)


def instance_dict_replaced(call):
    class O:
        pass

    def f(o, d):
        o.__dict__ = d
        o.x = 1
        return o

    o, d = O(), {"y": 2}
    call(f, o, d)
    call(f, O(), d)


def defaults_and_code_written(call):
    def g(x=1):
        return x

    def f(g, v):
        g.__defaults__ = (v,)
        return g()

    call(f, g, 5)
    call(f, g, 6)


def frozen_dataclass(call):
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class P:
        x: int
        y: list

    def f(p):
        try:
            p.x = 5
        except dataclasses.FrozenInstanceError as e:
            return str(e), dataclasses.replace(p, x=9)

    call(f, P(1, []))
    call(f, P(2, []))


def dataclass_made_inside(call):
    import dataclasses

    @dataclasses.dataclass
    class P:
        x: int
        y: list = dataclasses.field(default_factory=list)

    def f(x, keep):
        p = P(x)
        p.y.append(x)
        keep.append(p)
        return p, p == P(x, [x])

    keep = []
    call(f, 1, keep)
    call(f, 2, keep)


def moved_between_containers(call):
    def f(src, dst, o):
        item = src.pop()
        dst["k"] = item
        o.last = item
        item.append(len(src))
        return item

    class O:
        pass

    o = O()
    src, dst = [[1], [2], [3]], {}
    for _ in range(3):
        call(f, src, dst, o)


def linked_list(call):
    class Node:
        def __init__(self, value, next=None):
            self.value, self.next = value, next

    def f(head):
        before = None
        while head is not None:
            head.next, before, head = before, head, head.next
        return before

    head = None
    for i in range(4):
        head = Node(i, head)
    head = call(f, head)
    head = call(f, head)


def cyclic_objects_made_inside(call):
    class Node:
        pass

    def f(keep):
        a, b = Node(), Node()
        a.other, b.other = b, a
        xs = [a, b]
        xs.append(xs)
        d = {"xs": xs}
        d["d"] = d
        keep.append(d)
        return a

    keep = []
    call(f, keep)
    call(f, keep)


def one_object_given_out_twice(call):
    def f(keep):
        x = [1]
        t = (x, x)
        keep["t"] = t
        keep["x"] = x
        return {"a": x, "b": t}

    keep = {}
    call(f, keep)
    call(f, keep)


def written_then_raises(call):
    def f(xs, o, bad):
        xs.append(1)
        o["k"] = 1
        if bad:
            raise ValueError("bad")
        return len(xs)

    xs, o = [], {}
    call(f, xs, o, False)
    call(f, xs, o, True)
    call(f, xs, o, False)


def write_seen_by_a_property(call):
    class C:
        def __init__(self):
            self.items = []

        @property
        def size(self):
            return len(self.items)

    def f(c):
        c.items.append(c.size)
        return c.size

    c = C()
    for _ in range(3):
        call(f, c)


def context_variable(call):
    import contextvars

    var = contextvars.ContextVar("var", default=0)

    def f():
        var.set(var.get() + 1)
        return var.get()

    for _ in range(3):
        call(f)
        call.note(var.get())


def context_variable_reset(call):
    import contextvars

    var = contextvars.ContextVar("var", default=0)

    def f(x):
        token = var.set(x)
        seen = var.get()
        var.reset(token)
        return seen, var.get()

    call(f, 1)
    var.set(9)
    call(f, 1)
    call.note(var.get())
    call.traced(f)


def context_variable_without_default(call):
    import contextvars

    var = contextvars.ContextVar("var")

    def f(x):
        token = var.set(x)
        inner = var.set([x])
        var.get().append(2)
        seen = var.get()
        var.reset(inner)
        seen = seen, var.get()
        var.reset(token)
        return seen, var.get("unset")

    call(f, 1)
    var.set(9)
    call(f, 1)
    call.note(var.get())
    call.traced(f)


def context_variable_reset_out_of_order(call):
    import contextvars

    var = contextvars.ContextVar("var", default=0)

    def f(x):
        outer = var.set(x)
        inner = var.set(x + 1)
        var.reset(outer)
        first = var.get()
        var.reset(inner)
        return first, var.get()

    call(f, 1)
    var.set(9)
    call(f, 1)


def context_variable_tokens_misused(call):
    import contextvars

    var, other = (contextvars.ContextVar(name, default=0) for name in ("var", "other"))
    early = var.set("early")

    def raised(reset, token):
        try:
            reset(token)
        except (RuntimeError, ValueError) as error:
            return type(error)

    def f(x):
        token = var.set(x)
        first = raised(other.reset, token)
        var.reset(token)
        return first, raised(var.reset, token), var.get()

    def g():
        var.reset(early)
        return var.get("unset")

    call(f, 1)
    call.note(var.get())
    call(g)
    call(f, 2)


def context_variable_tokens_that_live_on(call):
    import contextvars

    var = contextvars.ContextVar("var", default=0)
    kept = []

    def f(x):
        token = var.set(x)
        kept.append(token)
        return token.var is var, token.old_value is token.MISSING, type(token)

    call(f, 1)
    call.note(var.get())
    var.reset(kept.pop())
    call.note(var.get())


def context_variable_in_a_generator(call):
    import contextlib
    import contextvars

    var = contextvars.ContextVar("var", default=0)

    @contextlib.contextmanager
    def value(x):
        token = var.set(x)
        try:
            yield
        finally:
            var.reset(token)

    def f(x):
        with value(x):
            first = var.get()
            with value(x + 1):
                second = var.get()
        return first, second, var.get()

    def g(x):
        with value(x):
            print(end="")
            seen = var.get()
        return seen, var.get()

    call(f, 1)
    call.traced(f)
    call(g, 1)


def thread_local(call):
    import threading

    local = threading.local()
    local.n = 1

    def f():
        local.n += 1
        return local.n

    for _ in range(3):
        call(f)
        call.note(local.n)
