"""Attributes by every lookup path, and what may shadow them later."""

import types
import weakref


class _O:
    pass


def instance_attribute(call):
    class O:
        pass

    def f(o):
        return o.x + 1

    o = O()
    o.x = 1
    call(f, o)
    call.again(f, o)
    o.unrelated = 5
    call.again(f, o)
    o.x = 2
    call(f, o)
    o.x = True
    call(f, o)
    del o.x
    call(f, o)
    o.x = 1
    call.again(f, o)


def same_attribute_of_another_instance(call):
    class O:
        def __init__(self, x):
            self.x = x

    def f(o):
        return o.x + 1

    call(f, O(1))
    call.again(f, O(1))
    call(f, O(2))


def class_attribute(call):
    class C:
        x = 1

    def f(c):
        return c.x

    c = C()
    call(f, c)
    call.again(f, C())
    C.x = 2
    call(f, c)
    c.x = 3
    call(f, c)
    del c.x
    call.again(f, c)
    del C.x
    call(f, c)


def attribute_of_a_base_class(call):
    class A:
        x = 1

    class B(A):
        pass

    class C(B):
        pass

    def f(c):
        return c.x

    c = C()
    call(f, c)
    A.x = 2
    call(f, c)
    B.x = 3
    call(f, c)
    C.x = 4
    call(f, c)
    del C.x, B.x
    call.again(f, c)


def attribute_of_a_class_object(call):
    class C:
        x = 1

    def f(c):
        return c.x

    call(f, C)
    call.again(f, C)
    C.x = 2
    call(f, C)
    del C.x
    call(f, C)


def metaclass_attribute(call):
    class M(type):
        x = "meta"

    class C(metaclass=M):
        pass

    def f(c):
        return c.x

    call(f, C)
    call.again(f, C)
    M.x = "changed"
    call(f, C)
    C.x = "own"
    call(f, C)
    M.x = property(lambda cls: "data descriptor")
    call(f, C)
    del M.x
    call(f, C)


def metaclass_property(call):
    class M(type):
        @property
        def p(cls):
            return cls.base + 1

    class C(metaclass=M):
        base = 1

    def f(c):
        return c.p

    call(f, C)
    C.base = 5
    call(f, C)
    M.p = property(lambda cls: "new")
    call(f, C)


def own_property(call):
    class C:
        def __init__(self):
            self._x = 1

        @property
        def x(self):
            return self._x * 2

    def f(c):
        return c.x

    c = C()
    call(f, c)
    call.again(f, c)
    c._x = 2
    call(f, c)
    c.__dict__["x"] = "shadowed by the data descriptor"
    call.again(f, c)
    C.x = property(lambda self: "other")
    call(f, c)
    C.x = 5
    call(f, c)


def property_setter(call):
    class C:
        _x = 0

        @property
        def x(self):
            return self._x

        @x.setter
        def x(self, value):
            self._x = value * 10

    def f(c, v):
        c.x = v
        return c.x

    c = C()
    call(f, c, 1)
    call(f, c, 2)
    C.x = C.x.setter(lambda self, value: setattr(self, "_x", "new"))
    call(f, c, 1)


def slots(call):
    class C:
        __slots__ = ("a", "b")

    def f(c):
        return c.a + 1, hasattr(c, "b")

    c = C()
    c.a = 1
    call(f, c)
    call.again(f, c)
    c.a = 2
    call(f, c)
    c.b = 1
    call(f, c)
    c.b = "another"
    call.again(f, c)
    del c.a
    call(f, c)


def slot_and_dict(call):
    class A:
        __slots__ = ("a",)

    class B(A):
        pass

    def f(b):
        return b.a, b.x

    b = B()
    b.a, b.x = 1, 2
    call(f, b)
    b.a = 3
    call(f, b)
    b.x = 4
    call(f, b)
    b.__dict__["a"] = 9
    call.again(f, b)


def getattr_hook(call):
    class C:
        def __getattr__(self, name):
            return name + "?"

    def f(c):
        return c.missing

    c = C()
    call(f, c)
    call.again(f, c)
    c.missing = 1
    call(f, c)
    del c.missing
    C.__getattr__ = lambda self, name: "other"
    call(f, c)
    C.missing = "class"
    call(f, c)
    del C.missing, C.__getattr__
    call(f, c)


def getattr_hook_added_later(call):
    class C:
        pass

    def f(c):
        return getattr(c, "x", "default"), hasattr(c, "y")

    c = C()
    call(f, c)
    call.again(f, c)
    C.__getattr__ = lambda self, name: "hook"
    call(f, c)
    del C.__getattr__
    call.again(f, c)


def getattribute_hook(call):
    class C:
        def __getattribute__(self, name):
            return ("seen", name)

    def f(c):
        return c.x

    c = C()
    call(f, c)
    call.again(f, c)
    C.__getattribute__ = lambda self, name: "changed"
    call(f, c)
    del C.__getattribute__
    call(f, c)


def getattribute_hook_added_later(call):
    class C:
        x = 1

    def f(c):
        return c.x

    c = C()
    call(f, c)
    C.__getattribute__ = lambda self, name: "hook"
    call(f, c)


def setattr_hook_added_later(call):
    class C:
        pass

    def f(c):
        c.x = 1
        return c.x

    c = C()
    call(f, c)
    C.__setattr__ = lambda self, name, value: object.__setattr__(self, name, value + 1)
    call(f, c)
    del C.__setattr__
    call(f, c)


def descriptor_appears_on_the_class(call):
    class C:
        pass

    def f(c):
        return c.x

    c = C()
    c.x = 1
    call(f, c)
    C.x = "class attribute does not matter"
    call(f, c)

    class D:
        def __get__(self, obj, owner):
            return "non-data"

    C.x = D()
    call(f, c)
    D.__set__ = lambda *a: None
    call(f, c)
    del D.__set__
    call(f, c)


def descriptor_state(call):
    class D:
        def __init__(self, n):
            self.n = n

        def __get__(self, obj, owner):
            return self.n

    class C:
        x = D(1)

    def f(c):
        return c.x

    c = C()
    call(f, c)
    call.again(f, c)
    C.__dict__["x"].n = 2
    call(f, c)
    D.__get__ = lambda self, obj, owner: "new get"
    call(f, c)


def method_replaced(call):
    class C:
        def m(self, x):
            return x + 1

    def f(c):
        return c.m(1)

    c = C()
    call(f, c)
    call.again(f, C())
    C.m = lambda self, x: x + 100
    call(f, c)
    c.m = lambda x: x + 1000
    call(f, c)
    del c.m
    C.m = staticmethod(lambda x: "static")
    call(f, c)
    C.m = classmethod(lambda cls, x: cls.__name__)
    call(f, c)


def method_inherited_then_overridden(call):
    class A:
        def m(self):
            return "A"

    class B(A):
        pass

    def f(b):
        return b.m()

    b = B()
    call(f, b)
    call.again(f, b)
    B.m = lambda self: "B"
    call(f, b)
    del B.m
    call.again(f, b)


def method_code_replaced(call):
    class C:
        def m(self):
            return 1

    def f(c):
        return c.m()

    def other(self):
        return 2

    c = C()
    call(f, c)
    C.m.__code__ = other.__code__
    call(f, c)


def bound_method_argument(call):
    class C:
        def __init__(self, n):
            self.n = n

        def m(self):
            return self.n

        def k(self):
            return "k"

    def f(m):
        return m()

    c = C(1)
    call(f, c.m)
    call.again(f, c.m)
    call.again(f, C(1).m)
    call(f, C(2).m)
    call(f, c.k)


def bound_method_compiled(call):
    class C:
        def __init__(self, n):
            self.n = n

        def m(self, x):
            return self.n + x

    c = C(1)
    call(c.m, 1)
    call.again(c.m, 1)
    c.n = 2
    call(c.m, 1)


def static_and_class_methods(call):
    class C:
        n = 1

        @staticmethod
        def s(x):
            return x

        @classmethod
        def k(cls):
            return cls.n

    class D(C):
        n = 2

    def f(c):
        return c.s(5), c.k()

    call(f, C())
    call.again(f, C())
    call(f, D())
    call(f, C)
    D.n = 3
    call(f, D())


def super_lookup(call):
    class A:
        def m(self):
            return "A"

    class B(A):
        def m(self):
            return "B" + super().m()

    class M:
        def m(self):
            return "M"

    class C(B):
        pass

    def f(c):
        return c.m()

    call(f, C())
    call.again(f, C())
    A.m = lambda self: "changed"
    call(f, C())
    C.__bases__ = (B, M)
    call(f, C())

    class D(B, M):
        pass

    call(f, D())


def mro_changed(call):
    class A:
        x = "A"

    class B:
        x = "B"

    class C(A):
        pass

    def f(c):
        return c.x, isinstance(c, A), isinstance(c, B)

    c = C()
    call(f, c)
    call.again(f, c)
    C.__bases__ = (B,)
    call(f, c)
    C.__bases__ = (A, B)
    call(f, c)
    C.__bases__ = (B, A)
    call(f, c)


def class_of_an_object_changed(call):
    class A:
        x = "A"

    class B:
        x = "B"

    def f(o):
        return o.x, type(o).__name__, o.__class__ is A

    o = A()
    call(f, o)
    o.__class__ = B
    call(f, o)
    o.__class__ = A
    call.again(f, o)


def two_classes_with_one_method(call):
    class A:
        def m(self):
            return type(self).__name__

    class B(A):
        pass

    def f(o):
        return o.m()

    call(f, A())
    call(f, B())
    call.again(f, A())


def instance_dict_by_key(call):
    class O:
        pass

    def f(o):
        return o.__dict__.get("x"), "y" in vars(o)

    o = O()
    call(f, o)
    call.again(f, o)
    o.x = 1
    call(f, o)
    o.y = 1
    call(f, o)
    o.z = 1
    call.again(f, o)


def instance_dict_iterated(call):
    class O:
        pass

    def f(o):
        return list(vars(o)), len(o.__dict__)

    o = O()
    o.a = o.b = 1
    call(f, o)
    call.again(f, o)
    o.a = 5
    call.again(f, o)
    o.c = 1
    call(f, o)
    del o.a
    o.a = 1
    call(f, o)


def instance_dict_replaced(call):
    class O:
        pass

    def f(o):
        return o.x

    o = O()
    o.x = 1
    call(f, o)
    o.__dict__ = {"x": 2}
    call(f, o)
    o.__dict__ = {"x": 1}
    call.again(f, o)


def dict_passed_that_is_the_instance_dict(call):
    class O:
        pass

    def f(o, d):
        o.x = 5
        return d["x"]

    o = O()
    o.x = 1
    call(f, o, {"x": 1})
    o.x = 1
    call(f, o, vars(o))
    o.x = 1
    call(f, o, {"x": 1})


def objects_that_share_a_dict(call):
    class O:
        pass

    def f(a, b):
        a.x = a.x + 1
        return b.x

    def pair(shared):
        a, b = O(), O()
        a.x = b.x = 1
        if shared:
            b.__dict__ = a.__dict__
        return a, b

    call(f, *pair(False))
    call(f, *pair(True))
    call(f, *pair(False))


def objects_that_share_a_dict_first(call):
    class O:
        pass

    def f(a, b):
        a.x = a.x + 1
        return b.x

    a, b = O(), O()
    b.__dict__ = a.__dict__
    a.x = 1
    call(f, a, b)
    a.__dict__ = {"x": 1}
    call(f, a, b)


def truth_of_a_user_object(call):
    class O:
        pass

    def f(o):
        return 1 if o else 2

    o = O()
    call(f, o)
    call.again(f, O())
    O.__len__ = lambda self: 0
    call(f, o)
    O.__bool__ = lambda self: True
    call(f, o)
    O.__bool__ = lambda self: self.flag
    o.flag = False
    call(f, o)
    o.flag = True
    call(f, o)


def operators_of_a_user_object(call):
    class V:
        def __init__(self, n):
            self.n = n

        def __add__(self, other):
            return self.n + other

    def f(v):
        return v + 1

    call(f, V(1))
    call.again(f, V(1))
    call(f, V(2))
    V.__add__ = lambda self, other: "new"
    call(f, V(2))
    del V.__add__
    call(f, V(2))
    V.__radd__ = lambda self, other: "reflected"
    call(f, V(2))


def reflected_operator_added_later(call):
    class A:
        def __add__(self, other):
            return NotImplemented

    class B:
        pass

    def f(a, b):
        try:
            return a + b
        except TypeError:
            return "no"

    call(f, A(), B())
    B.__radd__ = lambda self, other: "yes"
    call(f, A(), B())


def reflected_operator_of_a_subclass_goes_first(call):
    class A:
        def __add__(self, other):
            return "A add"

    class B(A):
        pass

    def f(a, b):
        return a + b

    call(f, A(), B())
    B.__radd__ = lambda self, other: "B radd"
    call(f, A(), B())


def call_of_a_user_object(call):
    class F:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return self.n + x

    def f(g):
        return g(1)

    call(f, F(1))
    call.again(f, F(1))
    call(f, F(2))
    F.__call__ = lambda self, x: "new"
    call(f, F(1))
    del F.__call__
    call(f, F(1))


def getitem_and_iteration_of_a_user_object(call):
    class S:
        def __init__(self, *xs):
            self.xs = xs

        def __getitem__(self, i):
            return self.xs[i]

    def f(s):
        return s[0], list(s), 5 in s

    call(f, S(1, 2))
    call(f, S(1, 5))
    S.__iter__ = lambda self: iter("ab")
    call(f, S(1, 5))
    S.__contains__ = lambda self, x: "yes"
    call(f, S(1, 5))
    S.__getitem__ = lambda self, i: "item"
    call(f, S(1, 5))


def equality_and_hash_of_a_user_object(call):
    class K:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return isinstance(other, K) and self.n == other.n

        def __hash__(self):
            return hash(self.n)

    def f(a, b):
        return a == b, a != b, len({a, b}), {a: 1}.get(b)

    call(f, K(1), K(1))
    call(f, K(1), K(2))
    K.__eq__ = lambda self, other: False
    call(f, K(1), K(1))
    k = K(1)
    call(f, k, k)


def equality_that_appears_later(call):
    class K:
        pass

    def f(a, b):
        return a == b, a in [b]

    a, b = K(), K()
    call(f, a, b)
    call(f, a, a)
    K.__eq__ = lambda self, other: True
    call(f, a, b)


def format_and_str_of_a_user_object(call):
    class T:
        def __init__(self, n):
            self.n = n

        def __str__(self):
            return f"T{self.n}"

    def f(t):
        return f"{t}", "%s" % t, str(t), "{}".format(t)

    call(f, T(1))
    call(f, T(2))
    T.__format__ = lambda self, spec: "formatted"
    call(f, T(2))
    T.__str__ = lambda self: "new"
    call(f, T(2))


def context_manager(call):
    class M:
        def __init__(self, log):
            self.log = log

        def __enter__(self):
            self.log.append("in")
            return self

        def __exit__(self, *exc):
            self.log.append("out")

    def f(m):
        with m as x:
            m.log.append(x is m)
        return len(m.log)

    m = M([])
    call(f, m)
    call(f, m)
    M.__exit__ = lambda self, *exc: self.log.append("other out")
    call(f, m)


def instancecheck_of_a_metaclass(call):
    class Meta(type):
        def __instancecheck__(cls, obj):
            return cls.answer

    class C(metaclass=Meta):
        answer = True

    def f(x):
        return isinstance(x, C)

    call(f, 1)
    C.answer = False
    call(f, 1)
    del Meta.__instancecheck__
    call(f, 1)


def abstract_class_registry(call):
    import abc

    class Shape(abc.ABC):
        pass

    class Square:
        pass

    def f(x):
        return isinstance(x, Shape), issubclass(type(x), Shape)

    s = Square()
    call(f, s)
    call(f, s)
    Shape.register(Square)
    call(f, s)
    call(f, 1)


def class_property_on_the_object(call):
    class Liar:
        @property
        def __class__(self):
            return int

    def f(x):
        return isinstance(x, int), type(x) is int, x.__class__ is int

    call(f, Liar())
    call(f, 1)
    call(f, "s")


def new_and_init_of_a_class(call):
    class P:
        def __init__(self, x):
            self.x = x

    def f():
        p = P(1)
        return p.x, p

    call(f)
    call.again(f)

    def init(self, x):
        self.x = x + 100

    P.__init__ = init
    call(f)

    def new(cls, x):
        made = object.__new__(cls)
        made.new = True
        return made

    P.__new__ = staticmethod(new)
    call(f)


def finalizer_appears_later(call):
    log = []

    class P:
        pass

    def f():
        P()
        return len(log)

    call.loose(f)
    call.loose(f)
    P.__del__ = lambda self: log.append(1)
    call.loose(f)
    call.loose(f)
    call.note(log)


def attribute_chain(call):
    class O:
        pass

    def f(o):
        return o.a.b.c

    o = O()
    o.a = O()
    o.a.b = O()
    o.a.b.c = 1
    call(f, o)
    call.again(f, o)
    o.a.b.c = 2
    call(f, o)
    o.a.b = types.SimpleNamespace(c=3)
    call(f, o)
    o.a = types.SimpleNamespace(b=types.SimpleNamespace(c=1))
    call(f, o)


def dynamic_names(call):
    class O:
        x = 1
        y = 2

    def f(o, name):
        return getattr(o, name)

    call(f, O(), "x")
    call(f, O(), "y")
    call.again(f, O(), "x")
    call(f, O(), "z")


def weak_reference(call):
    class O:
        pass

    def f(r):
        o = r()
        return None if o is None else o.x

    o = O()
    o.x = 1
    r = weakref.ref(o)
    call.loose(f, r)
    call.loose(f, r)
    o.x = 2
    call.loose(f, r)
    other = O()
    other.x = 3
    call.loose(f, weakref.ref(other))
    del o
    call.loose(f, r)


def function_attributes(call):
    def g():
        pass

    def f(g):
        return g.tag, g.__name__, g.__doc__

    g.tag = 1
    call(f, g)
    call.again(f, g)
    g.tag = 2
    call(f, g)
    g.__name__ = "other"
    call(f, g)
    g.__doc__ = "doc"
    call(f, g)


def type_attributes(call):
    class C:
        """doc"""

    def f(c):
        return c.__name__, c.__qualname__, c.__doc__, c.__module__

    call(f, C)
    C.__name__ = "D"
    call(f, C)
    C.__qualname__ = "E"
    call(f, C)
    C.__doc__ = "other"
    call(f, C)
    C.__module__ = "m"
    call(f, C)


def exception_attributes(call):
    def f(e):
        return e.args, str(e), e.__cause__

    e = ValueError(1)
    call(f, e)
    e.args = (2,)
    call(f, e)
    e.__cause__ = KeyError()
    call(f, e)
