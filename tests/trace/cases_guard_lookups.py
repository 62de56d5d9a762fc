"""Who answers for an attribute or a call: descriptors of every kind, fields of C types, classes as
objects, super, constructors."""

import abc
import collections
import contextlib
import contextvars
import dataclasses
import enum
import functools
import sys
import types

from worlds import module_of


def descriptor_class_gets_methods_later(call):
    class D:
        tag = "D"

    class A:
        d = D()

    def f(a):
        found = a.d
        return found if isinstance(found, str) else found.tag

    a = A()
    call(f, a)
    D.__get__ = lambda self, o, t=None: "got"
    call(f, a)
    a.__dict__["d"] = "of the instance"
    call(f, a)
    D.__set__ = lambda self, o, v: None
    call(f, a)
    del D.__get__
    call(f, a)


def get_and_set_that_are_no_functions(call):
    class Called:
        def __call__(self, *args):
            return "called", len(args)

    class D:
        __get__ = Called()
        __set__ = Called()

    class A:
        d = D()
        __getattr__ = Called()

    def f(a):
        a.d = 3
        return a.d, a.missing, a.__dict__

    call(f, A())
    call.traced(f)


def descriptor_with_half_of_setting(call):
    class OnlyDelete:
        def __delete__(self, o):
            o.gone = True

    class A:
        d = OnlyDelete()

    def f(a):
        del a.d
        try:
            a.d = 1
        except AttributeError as e:
            return a.gone, str(e)

    call(f, A())
    call.traced(f)


def property_subclass(call):
    class Own(property):
        extra = 1

        def __get__(self, o, t=None):
            return self if o is None else ("own", super().__get__(o, t))

    class A:
        x = Own(lambda self: 4)

    def f(a):
        return a.x, A.x.extra

    call(f, A())
    del Own.__get__
    call(f, A())


def errors_of_properties(call):
    class A:
        none = property()

        @property
        def inner(self):
            return self.missing

    def f(a):
        seen = []
        for name in ("none", "inner", "nothing"):
            try:
                getattr(a, name)
            except AttributeError as e:
                seen.append((str(e), e.name))
        for change in (lambda: setattr(a, "inner", 1), lambda: delattr(a, "nothing")):
            try:
                change()
            except AttributeError as e:
                seen.append(str(e))
        return seen

    call(f, A())
    call.again(f, A())
    call.traced(f)


def getattr_after_an_error_in_a_property(call):
    class A:
        @property
        def p(self):
            return self.q

        def __getattr__(self, name):
            return "hook " + name

    def f(a):
        return a.p, a.r

    a = A()
    call(f, a)
    a.q = 1
    call(f, a)
    del A.__getattr__
    call(f, a)


def fields_of_a_class(call):
    class A:
        "doc"

    class B(A):
        pass

    def f(o):
        t = type(o)
        return (
            t.__name__,
            t.__qualname__,
            t.__module__,
            A.__doc__,
            t.__mro__,
            t.__bases__,
            t.__base__,
        )

    call(f, B())
    call.again(f, B())
    B.__name__ = "Renamed"
    call(f, B())
    B.__qualname__ = "Q"
    call(f, B())
    B.__module__ = "m"
    call(f, B())
    A.__doc__ = "other"
    call(f, B())
    call.traced(f)


def namespace_of_a_class(call):
    class A:
        x = 1

    def f():
        space = A.__dict__
        return "x" in space, space["x"], space.get("y", 3), vars(A)["x"], "real" in int.__dict__

    call(f)
    call.again(f)
    A.x = 5
    call(f)
    A.y = 4
    call(f)


def class_of_a_class(call):
    class One(type):
        def who(cls):
            return 1

    class Two(type):
        def who(cls):
            return 2

    class A(metaclass=One):
        pass

    def f():
        return A.who(), type(A).__name__

    call(f)
    A.__class__ = Two
    call(f)


def metaclass_beside_the_class(call):
    class M(type):
        pass

    class A(metaclass=M):
        x = 5

    def f():
        return A.x

    call(f)
    M.x = "of the metaclass"
    call(f)
    M.x = property(lambda cls: "data")
    call(f)
    del M.x
    call(f)


def data_of_a_class_written(call):
    class A:
        n = 0

    class B(A):
        pass

    def f(b):
        A.n += 1
        B.m = 4
        return A.n, B.n, b.n, b.m

    b = B()
    call.watch(A, B)
    call(f, b)
    call(f, b)
    B.n = "own"
    call(f, b)


def fields_of_a_function(call):
    def g(a, b=2, *, c=3):
        "doc"

    g.attr = 5

    def f(g):
        fields = g.__name__, g.__qualname__, g.__doc__, g.__module__
        return fields, g.__defaults__, g.__kwdefaults__, g.attr, g.__code__.co_name, g.__closure__

    call(f, g)
    call.again(f, g)
    g.__name__ = "other"
    call(f, g)
    g.__doc__ = None
    call(f, g)
    g.__defaults__ = (8,)
    call(f, g)
    g.__kwdefaults__["c"] = 4
    call(f, g)
    g.attr = "z"
    call(f, g)
    call.traced(f)


def attribute_of_a_function_written(call):
    def g():
        pass

    g.n = 0

    def f():
        g.n += 1
        g.m = g.n
        return g.n, g.__dict__

    call.watch(g.__dict__)
    call(f)
    call(f)
    call.traced(f)


def fields_of_methods(call):
    class A:
        def m(self):
            return self.x

    A.m.flag = "F"

    def f(a, bound):
        made = a.m
        same = made.__self__ is a, made.__func__ is A.m, bound.__self__ is a
        return bound(), made(), same, made.flag, bound.flag, made.__name__, len.__name__

    a = A()
    a.x = 3
    call(f, a, a.m)
    A.m.flag = "G"
    call(f, a, a.m)
    call.traced(f)


def fields_of_immutable_builtins(call):
    def f(i, c, r, s):
        return i.real, i.numerator, c.imag, r.start, r.stop, s.start, s.step, None.__class__

    call(f, 7, 1 + 2j, range(3, 9), slice(1, None, 2))
    call(f, 8, 1 + 2j, range(3, 9), slice(1, None, 2))
    call(f, 8, 1 + 2j, range(4, 9), slice(1, None, 3))
    call.traced(f)


def fields_of_an_ordered_dict_and_a_default_dict(call):
    def f(o, d):
        return getattr(o, "tag", None), o["a"], d.default_factory, d["a"]

    o, d = collections.OrderedDict(a=1), collections.defaultdict(list, a=2)
    call(f, o, d)
    o.tag = "T"
    call(f, o, d)
    d.default_factory = int
    call(f, o, d)


def super_object_kept(call):
    class A:
        def m(self):
            return "A"

    class B(A):
        def above(self):
            return super()

        def missing(self):
            try:
                super().nothing
            except AttributeError as e:
                return str(e)

    def f(b):
        s = b.above()
        return s.m(), s.__thisclass__.__name__, s.__self__ is b, s.__class__, b.missing()

    call(f, B())
    A.m = lambda self: "A2"
    call(f, B())
    A.nothing = 3
    call(f, B())


def super_in_a_diamond(call):
    class A:
        v = 1

        def m(self):
            return "A"

    class B(A):
        def m(self):
            return "B" + super().m()

    class C(A):
        def m(self):
            return "C" + super().m()

    class D(B, C):
        def m(self):
            return "D" + super().m() + str(super().v) + super(B, self).m()

    def f(d):
        return d.m()

    call(f, D())
    call.again(f, D())
    C.v = 8
    call(f, D())
    C.m = lambda self: "C2"
    call(f, D())
    del C.m
    call(f, D())
    call.traced(f)


def callable_in_an_attribute_replaced(call):
    class A:
        def __init__(self, v):
            self.v = v

        def m(self):
            return self.v

        def n(self):
            return -self.v

    class Holder:
        pass

    def f(h):
        return h.cb()

    h = Holder()
    h.cb = A(1).m
    call(f, h)
    h.cb = A(2).m
    call(f, h)
    h.cb = A(3).n
    call(f, h)
    h.cb = lambda: "function"
    call(f, h)
    h.cb = functools.partial(max, 4, 5)
    call(f, h)
    h.cb = [1, 2].copy
    call(f, h)
    h.cb = A
    call(f, h)


def object_that_calls_itself(call):
    class A:
        pass

    A.__call__ = A()

    def f(a):
        try:
            a()
        except RecursionError:
            return "too deep"

    call(f, A())


def module_class_replaced(call):
    class Own(types.ModuleType):
        x = property(lambda self: "property")

    def f(m):
        return m.x, getattr(m, "y", "none")

    m = types.ModuleType("m")
    m.x = 1
    call(f, m)
    m.__getattr__ = lambda name: "hook " + name
    call(f, m)
    m.__class__ = Own
    call(f, m)


def constructors(call):
    class A:
        def __init__(self, x, y=2):
            self.x, self.y = x, y

    class B(A):
        def __new__(cls, *args, **kwargs):
            o = super().__new__(cls)
            o.made = True
            return o

    class Plain:
        pass

    class Other:
        def __new__(cls, x):
            return x

        def __init__(self, x):
            raise AssertionError

    class Wrong:
        def __init__(self):
            return 3

    def f(x):
        errors = []
        for make in (lambda: Plain(1), lambda: A(), lambda: Wrong()):
            try:
                make()
            except TypeError as e:
                errors.append(str(e))
        return A(x), B(x, y=5), Plain(), Other(x), errors

    call(f, 4)
    call.again(f, 4)
    call.traced(f)
    A.__init__ = lambda self, x=1, y=2: None
    call(f, 4)


def constructor_of_a_metaclass(call):
    class M(type):
        def __call__(cls, *args):
            o = super().__call__(*args)
            o.tag = len(args)
            return o

    class A(metaclass=M):
        def __init__(self, *args):
            self.args = args

    def f(x):
        return A(x, 2)

    call(f, 1)
    call.traced(f)
    M.__call__ = lambda cls, *args: "replaced"
    call(f, 1)


def abstract_class_becomes_concrete(call):
    class A(abc.ABC):
        @abc.abstractmethod
        def m(self):
            pass

    class B(A):
        pass

    def f():
        try:
            return type(B()).__name__
        except TypeError as e:
            return str(e)

    call(f)
    B.m = lambda self: 1
    abc.update_abstractmethods(B)
    call(f)


def library_classes(call):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    Point = collections.namedtuple("Point", "x y")

    @dataclasses.dataclass
    class Data:
        x: int
        y: list = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        x: int

    def f(color, point, data):
        errors = []
        for make in (lambda: Color(9), lambda: setattr(Frozen(1), "x", 2)):
            try:
                make()
            except (ValueError, dataclasses.FrozenInstanceError) as e:
                errors.append(str(e))
        enums = Color(1) is Color.RED, Color["BLUE"].value, color.name, color is Color.RED
        points = point.x, point._replace(x=9), Point(5, y=6), Point._make([1, 2]), point._asdict()
        return enums, points, data == Data(3), Data(1), Frozen(7), errors

    call(f, Color.RED, Point(1, 2), Data(3))
    call.traced(f)
    call(f, Color.BLUE, Point(1, [2]), Data(4))
    call(f, Color.RED, Point(1, 2), Data(3, [1]))


def slot_deleted_and_read(call):
    class A:
        __slots__ = ("a", "b")

    def f(a):
        seen = [a.a, hasattr(a, "b")]
        del a.a
        try:
            a.a
        except AttributeError as e:
            seen.append(str(e))
        a.b = seen[0]
        a.a = 10
        return seen

    a = A()
    a.a = 1
    call(f, a)
    call.traced(f)


def names_of_missing_attributes(call):
    def f(o, m):
        seen = []
        for owner in (o, m, type(o), "text", [1], len):
            try:
                owner.nothing
            except AttributeError as e:
                seen.append((str(e), e.name, e.obj is owner))
        return seen

    class A:
        pass

    call(f, A(), types.ModuleType("m"))
    call.traced(f)


def star_calls(call):
    def g(*args, **kwargs):
        return args, kwargs

    def f(t, d, xs):
        return g(*t), g(*t, **d), g(*xs, 3, **d, z=4), g(*"ab"), g(*(x for x in xs))

    call(f, (1, 2), {"k": 3}, [7, 8])
    call.traced(f)
    call(f, (1,), {"k": 3, "l": 4}, [])


def exception_being_handled(call):
    def handled():
        return sys.exc_info()[0]

    def f():
        before = handled()
        try:
            raise ValueError
        except ValueError as e:
            return before, handled(), type(e.__context__)

    call(f)
    call.again(f)
    call.traced(f)
    try:
        raise OSError
    except OSError:
        call(f)


def exit_stack_and_suppress(call):
    @contextlib.contextmanager
    def manager(log):
        log.append("in")
        try:
            yield 5
        except KeyError:
            log.append("caught")
        log.append("out")

    def f(log):
        with contextlib.ExitStack() as stack:
            log.append(stack.enter_context(manager(log)))
            stack.callback(log.append, "callback")
        with contextlib.suppress(ValueError), manager(log):
            raise KeyError
        return log

    call(f, [])
    call.traced(f)


def objects_own_lookup_of_a_module(call):
    m = module_of("def __getattr__(name):\n    return name\nx = 1")

    def f(name):
        try:
            return object.__getattribute__(m, name)
        except AttributeError:
            return "missing", getattr(m, name)

    call(f, "x")
    m.x = 2
    call(f, "x")
    call(f, "y")


def objects_own_lookup_of_a_class(call):
    class A:
        x = 1

    class B(A):
        y = 2

    def f(name):
        try:
            return object.__getattribute__(B, name)
        except AttributeError:
            return "missing", getattr(B, name)

    call(f, "x")
    call(f, "y")
    B.x = 3
    call(f, "x")


def objects_own_lookup_of_super(call):
    class A:
        def f(self):
            return 1

    class B(A):
        def f(self):
            try:
                return object.__getattribute__(super(), "f")()
            except AttributeError:
                return "missing", super().f()

    def g():
        return B().f()

    call(g)
    A.f = lambda self: 2
    call(g)


def default_of_a_context_variable(call):
    variable = contextvars.ContextVar("variable", default=[1])
    bare = contextvars.ContextVar("bare")

    def f():
        found = variable.get()
        try:
            return found, bare.get()
        except LookupError:
            return found, variable.get() is found, bare.get("else")

    call(f)
    call.again(f)
    token = variable.set([2])
    call(f)
    variable.reset(token)
    call.again(f)
    bare.set(3)
    call(f)


def special_methods_that_do_not_bind(call):
    class Odd:
        @staticmethod
        def __len__():
            return 10

        @classmethod
        def __contains__(cls, x):
            return x == cls.__name__

        @staticmethod
        def __iter__():
            return iter([1, 2])

        @staticmethod
        def __add__(other):
            return other + 7

        @classmethod
        def __eq__(cls, other):
            return True

        __hash__ = staticmethod(lambda: 5)

    def f(o):
        return len(o), "Odd" in o, list(o), o + 1, o == 3, {o: 1}.get(o), hash(o)

    call(f, Odd())
    call.again(f, Odd())
    Odd.__len__ = staticmethod(lambda: 11)
    call(f, Odd())
    Odd.__hash__ = staticmethod(lambda: 6)
    call(f, Odd())
    call.again(f, Odd())
    call.traced(f, 3)
