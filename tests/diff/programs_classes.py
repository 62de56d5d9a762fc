"""Classes: bodies, metaclasses, super, descriptors, slots, hooks of creation, annotations,
and replaced __build_class__."""

import abc
import builtins
import enum
import functools
import sys
import types
from dataclasses import dataclass, field

from probes import catch, places, text, where


def body_is_executed():
    log = []

    class C:
        log.append("start")
        x = 1
        for i in range(3):
            x += i
        if x > 2:
            y = "big"
        else:
            z = "small"
        del i
        log.append(sorted(k for k in locals() if not k.startswith("__")))

    return log, C.x, C.y, hasattr(C, "z"), C.__qualname__, C.__module__


def bases_and_keywords():
    class Meta(type):
        def __new__(m, name, bases, ns, **kw):
            cls = super().__new__(m, name, bases, ns)
            cls.kw = kw
            return cls

        def __init__(cls, name, bases, ns, **kw):
            super().__init__(name, bases, ns)

    class A:
        pass

    bases = (A,)
    kw = {"b": 2}

    class C(*bases, metaclass=Meta, a=1, **kw):
        pass

    def dup():
        class D(A, metaclass=Meta, b=1, **kw):
            pass

    return C.__bases__ == (A,), C.kw, where(dup)


def method_resolution():
    class A:
        def f(self):
            return ["A"]

    class B(A):
        def f(self):
            return ["B", *super().f()]

    class C(A):
        def f(self):
            return ["C", *super().f()]

    class D(B, C):
        def f(self):
            return ["D", *super().f()]

    return D().f(), [k.__name__ for k in D.__mro__], super(B, D()).f(), super(C, D()).f()


def mro_conflict():
    class A:
        pass

    class B(A):
        pass

    def f():
        class C(A, B):
            pass

    def g():
        class C(A, A):
            pass

    def h():
        class C(bool):
            pass

    return where(f), where(g), where(h)


def super_forms():
    class A:
        x = "A.x"

        def f(self):
            return "A.f"

        @classmethod
        def c(cls):
            return "A.c", cls.__name__

        @property
        def p(self):
            return "A.p"

    class B(A):
        x = "B.x"

        def f(self):
            s = super()
            return s.f(), super(B, self).x, super().p, super().__thisclass__.__name__

        @classmethod
        def c(cls):
            return super().c(), super(B, cls).x

        @staticmethod
        def s():
            return catch(lambda: super().f())

        @property
        def p(self):
            return "B.p"

    class C(B):
        x = "C.x"

    return B().f(), C().f(), C.c(), B.s()


def super_errors():
    class A:
        def no_first_arg():
            return super()

        def deleted(self):
            del self
            return super()

        def rebound(self):
            self = 5
            return super()

        def missing(self):
            return super().not_there

        def setattr(self):
            super().x = 1

    def outside():
        return super()

    a = A()
    return [
        where(A.no_first_arg),
        where(a.deleted),
        where(a.rebound),
        where(a.missing),
        where(a.setattr),
        where(outside),
        catch(super, A, 5),
        catch(super, 5),
    ]


def super_shadowed():
    class A:
        def f(self):
            return "real"

    class B(A):
        def f(self):
            super = lambda *a: types.SimpleNamespace(f=lambda: "fake")
            return super().f()

        def g(self):
            return super().f() + super(B, self).f()

    return B().f(), B().g()


def super_in_nested_function():
    class A:
        def f(self):
            return "A"

    class B(A):
        def f(self):
            def inner(me):
                return super().f()

            def lost():
                return super().f()

            return inner(self), catch(lost), [super(B, self).f() for _ in range(2)]

    return B().f()


def super_attribute_dynamic():
    log = []

    class A:
        def __getattribute__(self, name):
            log.append(name)
            return object.__getattribute__(self, name)

        def method(self, *a, **k):
            return "m", a, k

    class B(A):
        def go(self):
            return super().method(1, x=2), super().method

    r = B().go()
    return r[0], r[1](3), log


def dunder_class_cell():
    class A:
        def f(self):
            return __class__

        @staticmethod
        def g():
            return __class__.__name__

    class B(A):
        pass

    return A().f() is A, B().f() is A, B.g()


def class_cell_set_before_hooks():
    log = []

    class Meta(type):
        def __init__(cls, *a, **k):
            log.append(("meta init", cls.who()))
            super().__init__(*a, **k)

    class Base:
        def __init_subclass__(cls):
            log.append(("init_subclass", cls.who()))

    class C(Base, metaclass=Meta):
        @classmethod
        def who(cls):
            return __class__.__name__

    return log


def class_cell_not_propagated():
    class Bad(type):
        def __new__(m, name, bases, ns):
            ns.pop("__classcell__", None)
            return super().__new__(m, name, bases, ns)

    class Other(type):
        def __new__(m, name, bases, ns):
            real = super().__new__(m, name, bases, dict(ns))
            return type.__new__(m, name + "2", bases, {}) if real else None

    def f():
        class C(metaclass=Bad):
            def g(self):
                return __class__

        return C

    def h():
        class C(metaclass=Other):
            def g(self):
                return __class__

        return C

    return where(f), where(h)


def prepare_namespace():
    log = []

    class NS(dict):
        def __setitem__(self, k, v):
            log.append(("set", k))
            super().__setitem__(k, v)

        def __getitem__(self, k):
            log.append(("get", k))
            return super().__getitem__(k)

        def __missing__(self, k):
            if k == "auto":
                return len(log)
            raise KeyError(k)

    class Meta(type):
        @classmethod
        def __prepare__(m, name, bases, **kw):
            log.append(("prepare", name, kw))
            return NS()

        def __new__(m, name, bases, ns, **kw):
            return super().__new__(m, name, bases, dict(ns))

        def __init__(cls, *a, **k):
            pass

    class C(metaclass=Meta, flag=True):
        a = 1
        b = a
        c = auto

        def f(self):
            pass

    return log, C.b, type(C.c)


def prepare_custom_mapping():
    class NS:
        def __init__(self):
            self.d = {}

        def __getitem__(self, k):
            return self.d[k]

        def __setitem__(self, k, v):
            self.d[k] = [v] if not k.startswith("__") else v

        def __delitem__(self, k):
            del self.d[k]

    class Meta(type):
        @classmethod
        def __prepare__(m, name, bases):
            return NS()

        def __new__(m, name, bases, ns):
            return super().__new__(m, name, bases, ns.d)

    class C(metaclass=Meta):
        a = 1
        b = a
        d = 3
        del d

    def missing():
        class D(metaclass=Meta):
            del nothing

    return C.a, C.b, hasattr(C, "d"), where(missing)


def prepare_errors():
    class NotMapping(type):
        @classmethod
        def __prepare__(m, name, bases):
            return 5

    class Raises(type):
        @classmethod
        def __prepare__(m, name, bases):
            raise ValueError("prepare")

    def f(m):
        class C(metaclass=m):
            pass

    return where(f, NotMapping), where(f, Raises)


def metaclass_conflict():
    class M1(type):
        pass

    class M2(type):
        pass

    class A(metaclass=M1):
        pass

    class B(metaclass=M2):
        pass

    class M3(M1, M2):
        pass

    def f():
        class C(A, B):
            pass

    class D(A, B, metaclass=M3):
        pass

    return where(f), type(D).__name__


def metaclass_callable():
    def meta(name, bases, ns, **kw):
        return name, bases, sorted(k for k in ns if not k.startswith("__")), kw

    class C(1, 2, metaclass=meta, k=3):
        x = 1

    return C


def metaclass_call_and_getattr():
    log = []

    class Meta(type):
        def __call__(cls, *a, **k):
            log.append(("call", a, k))
            return super().__call__(*a, **k)

        def __getattr__(cls, name):
            log.append(("getattr", name))
            if name.startswith("_"):
                raise AttributeError(name)
            return name * 2

        def __len__(cls):
            return 7

        def __iter__(cls):
            return iter("abc")

        def __contains__(cls, x):
            return x == 5

        def __getitem__(cls, k):
            return ("meta item", k)

    class C(metaclass=Meta):
        def __init__(self, x):
            self.x = x

    c = C(3)
    return c.x, C.zed, len(C), list(C), 5 in C, C[1:2], catch(lambda: c.zed), log


def mro_entries():
    class A:
        pass

    class Alias:
        def __mro_entries__(self, bases):
            return (A,)

    class Bad:
        def __mro_entries__(self, bases):
            return 5

    alias = Alias()

    class C(alias):
        pass

    def f():
        class D(Bad()):
            pass

    return C.__bases__ == (A,), C.__orig_bases__ == (alias,), where(f)


def init_subclass_and_set_name():
    log = []

    class D:
        def __set_name__(self, owner, name):
            log.append(("set_name", owner.__name__, name))

    class Base:
        def __init_subclass__(cls, /, tag=None, **kw):
            log.append(("init_subclass", cls.__name__, tag, kw))
            super().__init_subclass__(**kw)

    class A(Base, tag="t"):
        d = D()
        e = D()

    def bad():
        class B(Base, other=1):
            pass

    return log[:3], where(bad)


def set_name_raises():
    class D:
        def __set_name__(self, owner, name):
            raise ValueError(name)

    def f():
        class C:
            attr = D()

    try:
        f()
    except Exception as e:
        notes = getattr(e, "__notes__", None)
        return type(e).__name__, str(e)[:40], notes, repr(e.__cause__), places(e.__traceback__)


def descriptors():
    log = []

    class Data:
        def __get__(self, o, t):
            log.append(("get", o is None, t.__name__))
            return 1

        def __set__(self, o, v):
            log.append(("set", v))

        def __delete__(self, o):
            log.append("delete")

    class NonData:
        def __get__(self, o, t):
            return "descriptor"

    class C:
        d = Data()
        n = NonData()

    c = C()
    c.d = 5
    r = [c.d, C.d, c.n]
    del c.d
    c.n = "instance"
    c.__dict__["d"] = "ignored"
    r += [c.n, c.d]
    return r, log, sorted(c.__dict__)


def properties():
    class C:
        def __init__(self):
            self._x = 1

        @property
        def x(self):
            """doc of x"""
            return self._x

        @x.setter
        def x(self, v):
            if v < 0:
                raise ValueError("negative")
            self._x = v

        @x.deleter
        def x(self):
            self._x = None

        @property
        def ro(self):
            return self.missing

    c = C()
    c.x = 5
    c.x += 2
    seen = c.x

    def neg():
        c.x = -1

    def ro():
        c.ro = 1

    def dro():
        del c.ro

    out = where(neg), catch(ro), catch(dro), catch(lambda: c.ro)
    del c.x
    return seen, c.x, out, C.x.__doc__


def getattr_hooks():
    log = []

    class C:
        present = 1

        def __getattribute__(self, name):
            log.append(("getattribute", name))
            return super().__getattribute__(name)

        def __getattr__(self, name):
            log.append(("getattr", name))
            if name == "bad":
                raise AttributeError("custom text")
            return "made " + name

        def __setattr__(self, name, v):
            log.append(("setattr", name, v))
            super().__setattr__(name, v)

        def __delattr__(self, name):
            log.append(("delattr", name))
            super().__delattr__(name)

    c = C()
    c.x = 1
    r = c.present, c.x, c.other, catch(lambda: c.bad), hasattr(c, "bad"), getattr(c, "bad", 5)
    del c.x
    c.y = c.present
    return r, log


def getattr_method_calls():
    class C:
        def __getattr__(self, name):
            return lambda *a: (name, a)

    class D:
        def __getattribute__(self, name):
            if name == "boom":
                raise KeyError("not an AttributeError")
            return object.__getattribute__(self, name)

    return C().anything(1, 2), C().other(), catch(lambda: D().boom), catch(lambda: D().nope())


def slots():
    class A:
        __slots__ = ("x", "y")

    class B(A):
        __slots__ = ("z",)

    class C(A):
        pass

    b = B()
    b.x = 1
    b.z = 3

    def bad():
        b.w = 1

    c = C()
    c.w = 2
    return b.x, b.z, catch(lambda: b.y), where(bad), c.w, catch(lambda: b.__dict__), A.x.__get__(b)


def slots_errors():
    def conflict():
        class C:
            __slots__ = ("x",)
            x = 1

    def bad_name():
        class C:
            __slots__ = ("1x",)

    def layout():
        class A:
            __slots__ = ("a",)

        class B:
            __slots__ = ("b",)

        class C(A, B):
            pass

    def var():
        class C(int):
            __slots__ = ("x",)

    return [catch(f) for f in (conflict, bad_name, layout, var)]


def new_and_init():
    log = []

    class C:
        def __new__(cls, *a, **k):
            log.append(("new", a, k))
            return super().__new__(cls)

        def __init__(self, a, b=2):
            log.append(("init", a, b))

    class T(tuple):
        def __new__(cls, *xs):
            return super().__new__(cls, xs)

    class S(str):
        def __new__(cls, v):
            o = super().__new__(cls, v.upper())
            o.orig = v
            return o

    C(1)
    C(1, b=3)
    r = catch(C)
    return log, r, T(1, 2), S("ab"), S("ab").orig


def init_returns_value():
    class C:
        def __init__(self, v):
            return v

    def f(v):
        return C(v)

    return catch(f, 5), type(f(None)).__name__, where(f, "x")


def class_and_static_methods():
    class C:
        n = 0

        @classmethod
        def make(cls, *a):
            cls.n += 1
            return cls.__name__, a

        @staticmethod
        def add(a, b=1):
            return a + b

        cm = classmethod(lambda cls: cls.n)

    class D(C):
        pass

    return C.make(1), D.make(), C().make(2), D().add(1), C.add(1, 5), C.cm(), D.cm(), C.n, D.n


def class_decorators():
    log = []

    def deco(tag):
        def apply(cls):
            log.append((tag, cls.__name__))
            cls.tags = [*getattr(cls, "tags", []), tag]
            return cls

        return apply

    @deco("outer")
    @deco("inner")
    class C:
        pass

    return log, C.tags


def build_class_replaced():
    log = []
    real = builtins.__build_class__

    def fake(func, name, *bases, **kw):
        log.append((func.__name__, name, len(bases), sorted(kw)))
        return real(func, name, *bases, **kw)

    builtins.__build_class__ = fake
    try:

        class A:
            x = 1

        class B(A, metaclass=type):
            pass

    finally:
        builtins.__build_class__ = real
    return log, B.x


def build_class_in_custom_builtins():
    log = []

    def fake(func, name, *bases, **kw):
        log.append(name)
        return name * 2

    space = {"__builtins__": {"__build_class__": fake, "__name__": "x"}}
    exec("class Abc: pass\nr = Abc", space)
    missing = catch(exec, "class D: pass", {"__builtins__": {"__name__": "x"}})
    return log, space["r"], missing


def type_call_forms():
    class M(type):
        pass

    A = type("A", (), {"x": 1, "f": lambda self: self.x})
    B = M("B", (A,), {})
    return A().f(), B().f(), type(B).__name__, catch(type, "C", (5,), {}), catch(type, "a\0b", (), {})


def instance_dict_tricks():
    class C:
        x = "class"

        def f(self):
            return "method"

    c = C()
    c.__dict__["x"] = "instance"
    c.__dict__["f"] = lambda: "shadow"
    first = c.x, c.f()
    c.__dict__ = {"x": "replaced"}
    second = c.x, c.f()
    c.__class__ = type("D", (C,), {"x": "other", "y": 5})
    return first, second, c.y, type(c).__name__, catch(setattr, c, "__class__", int)


def class_attribute_changes_seen():
    class A:
        x = 1

        def f(self):
            return "old"

    class B(A):
        pass

    b = B()
    seen = []
    for i in range(6):
        seen.append((b.x, b.f()))
        if i == 1:
            A.x = 2
        if i == 2:
            B.f = lambda self: "new"
        if i == 3:
            b.x = "instance"
        if i == 4:
            del B.f
            del b.x
    return seen


def operators_looked_up_on_type():
    class C:
        def __len__(self):
            return 3

    c = C()
    c.__len__ = lambda: 5
    c.__call__ = lambda: "no"
    return len(c), catch(lambda: c())


def abstract_classes():
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self):
            return "base"

        @property
        @abc.abstractmethod
        def p(self): ...

    class B(A):
        def f(self):
            return super().f() + "+"

    class C(B):
        p = 5

    A.register(int)
    return catch(A), catch(B), C().f(), isinstance(5, A), issubclass(str, A)


def enums():
    class Color(enum.Enum):
        RED = 1
        GREEN = enum.auto()
        ALIAS = 1

        @property
        def nice(self):
            return self.name.title()

    class F(enum.Flag):
        A = enum.auto()
        B = enum.auto()

    return (
        [c.nice for c in Color],
        Color(2).name,
        Color["ALIAS"] is Color.RED,
        catch(Color, 9),
        str(F.A | F.B),
        catch(lambda: setattr(Color, "RED", 5)),
        F.A in (F.A | F.B),
    )


def dataclasses_work():
    @dataclass(order=True)
    class P:
        x: int
        y: int = 0
        tags: list = field(default_factory=list, compare=False)

        def __post_init__(self):
            self.tags.append("post")

    @dataclass(frozen=True, slots=True)
    class Q:
        a: int
        b: str = "b"

    q = Q(1)

    def bad():
        q.a = 2

    return P(1) < P(2), P(1, 2), P(1) == P(1), catch(P), q, hash(q) == hash(Q(1)), catch(bad)


def named_tuples():
    import collections
    from typing import NamedTuple

    P = collections.namedtuple("P", "x y", defaults=[5])

    class Q(NamedTuple):
        a: int
        b: str = "z"

        def both(self):
            return f"{self.a}{self.b}"

    return P(1), P(1)._replace(y=2), Q(1).both(), catch(Q), P._fields


def cached_property_and_total_ordering():
    log = []

    @functools.total_ordering
    class C:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

        @functools.cached_property
        def slow(self):
            log.append("computed")
            return self.n * 2

    c = C(1)
    return c.slow, c.slow, c <= C(1), c > C(0), log


def annotations():
    def note(x):
        log.append(x)
        return x

    log = []

    def f(a: note("a"), *b: note("b"), c: note("c") = 1, **d: note("d")) -> note("ret"):
        x: note("local not evaluated") = 1
        return x

    class C:
        p: note("p")
        q: note("q") = 5
        (r): note("r")
        s.t: note("never stored") if False else int = 3 if (s := types.SimpleNamespace()) else 0

    space = {}
    exec("v: int = 5\nw: str\n", space)
    return log, f.__annotations__, C.__annotations__, space["__annotations__"], f(1), C.s.t


def annotations_in_functions():
    def f():
        x: undefined_name_is_fine
        y: int
        try:
            return y
        except UnboundLocalError as e:
            return text(e)

    return f(), f.__annotations__


def annotation_errors():
    def bad_class():
        class C:
            x: undefined_thing

    def bad_function():
        def f(a: undefined_thing):
            pass

    def deleted():
        class C:
            x: int
            del __annotations__
            y: int

    return where(bad_class), where(bad_function), where(deleted)


def future_annotations():
    source = (
        "from __future__ import annotations\n"
        "def f(a: undefined, b: x + 1 = 2) -> {}: pass\n"
        "class C:\n    v: also.undefined[0]\n"
        "m: nothing = 1\n"
    )
    space = {}
    exec(source, space)
    return space["f"].__annotations__, space["C"].__annotations__, space["__annotations__"]


def class_body_error_leaves_nothing():
    log = []

    def f():
        class C:
            x = 1
            log.append("ran")
            raise ValueError("in body")

        return C

    return where(f), log


def nested_classes():
    class A:
        class B:
            class C:
                v = 1

                def f(self):
                    return type(self).__qualname__

        b = B
        c = B.C

    return A.B.C().f(), A.c.v, A.b is A.B


def class_with_generator_body_parts():
    class C:
        gen = (i * i for i in range(4))
        lam = [f() for f in [lambda: 1, lambda: 2]]
        d = {k: v for k, v in zip("ab", lam)}

    return list(C.gen), C.lam, C.d


def method_identity_and_binding():
    class C:
        def f(self):
            return self

    c = C()
    f = c.f
    C.g = C.f
    C.h = staticmethod(C.f)
    c.k = types.MethodType(lambda s, x: (s is c, x), c)
    return f() is c, c.g() is c, catch(lambda: c.h()), c.k(5), C.f(7)


def weak_methods_of_builtin_subclasses():
    class L(list):
        def append(self, x):
            super().append(x * 2)

        def __getitem__(self, i):
            return ("item", super().__getitem__(i))

    class D(dict):
        def __missing__(self, k):
            return self.setdefault(k, len(self))

    xs = L()
    xs.append(1)
    xs.extend([2])
    d = D(a=1)
    return xs[0], xs[-1], list(xs), d["zz"], d["a"], d


def instance_and_subclass_hooks():
    class Meta(type):
        def __instancecheck__(cls, o):
            return "yes" if o == 1 else ""

        def __subclasscheck__(cls, c):
            raise ValueError("check")

    class C(metaclass=Meta):
        pass

    return isinstance(1, C), isinstance(2, C), catch(issubclass, int, C), isinstance(C(), C)


def del_class_attribute_and_method():
    class A:
        x = 1

        def f(self):
            return 1

    del A.x

    def again():
        del A.x

    return where(again), hasattr(A, "f"), catch(delattr, int, "real")


def qualname_and_module_assignments():
    class C:
        __qualname__ = "Other.Name"
        __module__ = "elsewhere"

        def f(self):
            pass

    return C.__qualname__, C.__module__, C.f.__qualname__, repr(C)


def deep_inheritance_call():
    cls = type("C0", (), {"f": lambda self, n: n})
    for i in range(1, 30):
        prev = cls
        cls = type(f"C{i}", (prev,), {})
    cls.f2 = lambda self, n: self.f(n) + 1
    return cls().f2(5), len(cls.__mro__)


def uncaught_in_metaclass():
    class Meta(type):
        def __new__(m, name, bases, ns):
            raise TypeError(f"no class {name}")

    class Broken(metaclass=Meta):
        x = 1


def uncaught_in_property():
    class C:
        @property
        def p(self):
            return self.q

        @property
        def q(self):
            return [][0]

    return C().p


def refcount_of_class():
    class C:
        pass

    before = sys.getrefcount(C)
    xs = [C() for _ in range(5)]
    during = sys.getrefcount(C)
    del xs
    return during - before, sys.getrefcount(C) - before


class _Other:
    def __init__(self, o):
        self._o = o

    def __getattribute__(self, name):
        if name == "_o":
            return object.__getattribute__(self, name)
        return getattr(self._o, name)


class _Without:
    def __getattribute__(self, name):
        raise AttributeError(name)


class _Five:
    def __getattribute__(self, name):
        return 5


def class_by_way_of_getattribute():
    from collections.abc import Hashable, Mapping

    out = []
    for o in (_Other({}), _Other([]), _Without(), _Five()):
        out.append((isinstance(o, dict), isinstance(o, (list, str)), isinstance(o, int | list)))
        out.append((catch(isinstance, o, Mapping), catch(isinstance, o, Hashable)))
        out.append(issubclass(type(o), dict))
    return out


class _Named:
    __slotnames__ = ["k"]

    def __getattr__(self, name):
        if name == "k":
            return 42
        raise AttributeError(name)


def reduced_by_names_of_its_own():
    return _Named().__reduce_ex__(2)[2], _Named().__reduce_ex__(4)[2]
