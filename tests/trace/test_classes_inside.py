"""Classes that a function makes: with bases from outside, metaclasses, `__init_subclass__`,
`__set_name__`; abstract classes, enums. Each function is traced as a whole and gives in each call
what plain Python gives; changes of a base are seen; no base learns of a class that a trace made."""

import abc
import collections
import collections.abc
import contextlib
import enum

import pytest

import stator


class Base:
    greeting = "hello "

    def hello(self):
        return self.greeting + self.name


class Other:
    greeting = "bye "

    def late(self):
        return self.greeting * 2


class Registered:
    def __init_subclass__(cls, tag=None, **more):
        super().__init_subclass__(**more)
        cls.tag = tag


class Named:
    def __set_name__(self, owner, name):
        self.name, self.owner = name, owner.__name__


class Meta(type):
    def __new__(meta, name, bases, namespace, **more):
        made = super().__new__(meta, name, bases, namespace)
        made.more = sorted(more)
        return made

    def __init__(cls, name, bases, namespace, **more):
        super().__init__(name, bases, namespace)
        cls.size = len(bases)

    def __call__(cls, *args):
        o = super().__call__(*args)
        o.by = cls.__name__
        return o

    @classmethod
    def __prepare__(meta, name, bases, **more):
        return {"given": name}


class Wrong:
    def __set_name__(self, owner, name):
        raise ValueError(name)


def outside_base(x):
    class A(Base):
        name = "a"

    class B(A, Other):
        pass

    return (A().hello(), B().late(), issubclass(B, Base), isinstance(A(), Other),
            [c.__name__ for c in B.__mro__], B.__bases__ == (A, Other), B.greeting)  # fmt: skip


def two_outside_bases(x):
    class A(Other, Base):
        name = str(x)

    return A().hello(), A().late(), super(Other, A()).hello()


def init_subclass(x):
    class A(Registered, tag=x):
        pass

    class B(A):
        pass

    return A.tag, B.tag


def set_name(x):
    class A:
        first = Named()

    return A.first.name, A.first.owner


def set_name_fails(x):
    try:

        class A:
            first = Wrong()
    except (ValueError, RuntimeError) as error:
        return type(error).__name__, str(error), getattr(error, "__notes__", None)


def metaclass(x):
    class A(Base, metaclass=Meta, odd=1):
        name = "a"

    class B(A):
        pass

    return A.more, A.size, A.given, B.given, A().by, B().hello(), type(B).__name__


def metaclass_is_a_function(x):
    class A(metaclass=lambda name, bases, namespace: (name, bases, sorted(namespace))):
        y = x

    return A


def metaclass_conflict(x):
    class One(type):
        pass

    class Two(type):
        pass

    class A(metaclass=One):
        pass

    class B(metaclass=Two):
        pass

    try:
        type("C", (A, B), {})
    except TypeError as error:
        return str(error)


def metaclass_made_here(x):
    class M(type):
        def __getattr__(cls, name):
            return name * x

        def __len__(cls):
            return x

        def __iter__(cls):
            return iter(range(x))

    class A(metaclass=M):
        pass

    return A.ab, len(A), list(A)


def type_of_three(x):
    A = type("A", (Base,), {"name": "q", "x": x})
    B = Meta("B", (A,), {})
    return A().hello(), A.__name__, B.x, type(B).__name__, B().by


def type_of_wrong_things(x):
    errors = []
    for args in ((1, (), {}), ("A", [], {}), ("A", (), 1), ("A", (int, str), {}), ("A", ())):
        try:
            type(*args)
        except TypeError as error:
            errors.append(str(error))
    return errors


def namespace_of_a_class(x):
    class A(Base):
        y = x

        def m(self):
            return 1

    return ("y" in A.__dict__, A.__dict__["y"], A.__dict__.get("z", 4), sorted(vars(A))[-1],
            "hello" in Base.__dict__, Base.__dict__.get("nothing"), Base.__dict__["greeting"],
            "bit_length" in int.__dict__)  # fmt: skip


def attributes_of_a_class(x):
    class A(Base):
        pass

    A.__name__, A.__qualname__, A.__module__, A.__doc__ = "N", "Q.N", "m", "d"
    return repr(A), A.__doc__, A.__module__


def abstract(x):
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

        @property
        @abc.abstractmethod
        def p(self): ...

        @classmethod
        def of(cls):
            return cls()

    class B(A):
        def f(self):
            return x

    class C(B):
        p = 3

    errors = []
    for kind in (A, B):
        try:
            kind.of()
        except TypeError as error:
            errors.append(str(error))
    return errors, C().f(), sorted(A.__abstractmethods__), sorted(B.__abstractmethods__)


def sequence(x):
    class S(collections.abc.Sequence):
        def __getitem__(self, i):
            return [1, 2, 3][i]

        def __len__(self):
            return 3

    s = S()
    return (list(s), 2 in s, s.index(3), list(reversed(s)), isinstance(s, collections.abc.Iterable),
            issubclass(S, collections.abc.Mapping))  # fmt: skip


def mutable_mapping(x):
    class M(collections.abc.MutableMapping):
        def __init__(self):
            self.d = {}

        def __getitem__(self, k):
            return self.d[k]

        def __setitem__(self, k, v):
            self.d[k] = v

        def __delitem__(self, k):
            del self.d[k]

        def __iter__(self):
            return iter(self.d)

        def __len__(self):
            return len(self.d)

    m = M()
    m.update(a=1, b=x)
    return m.pop("a"), dict(m), m == {"b": x}, m.setdefault("c", 4), list(m.items())


def hook_of_an_abstract_class(x):
    class Quacks(abc.ABC):
        @classmethod
        def __subclasshook__(cls, c):
            return hasattr(c, "quack") or NotImplemented

    class Duck:
        def quack(self): ...

    return issubclass(Duck, Quacks), issubclass(int, Quacks), isinstance(Duck(), Quacks)


def library_bases(x):
    class C(collections.Counter):
        pass

    class D(collections.UserDict):
        pass

    class L(collections.UserList):
        pass

    class O(collections.OrderedDict):  # noqa: E742
        pass

    class Manager(contextlib.ContextDecorator):
        def __enter__(self):
            return self

        def __exit__(self, *exc):
            return False

    with Manager() as m:
        return (
            C("abca")["a"],
            dict(D(a=x)),
            list(L([1]) + [x]),
            list(O(a=1)),
            isinstance(m, Manager),
        )


def plain_enum(x):
    class Color(enum.Enum):
        RED = 1
        GREEN = 2
        ALSO = 1

        def shown(self):
            return self.name.lower()

    return (Color.RED.name, Color(2).name, [c.value for c in Color], Color.RED is Color["RED"],
            repr(Color.GREEN), len(Color), Color.RED in Color, Color.ALSO is Color.RED,
            {Color.RED: x}[Color(1)], Color.GREEN.shown(), str(Color.RED))  # fmt: skip


def enum_errors(x):
    class Color(enum.Enum):
        RED = 1

    errors = []
    for ask in (lambda: Color(7), lambda: Color["NO"], lambda: setattr(Color, "RED", 2)):
        try:
            ask()
        except (ValueError, KeyError, AttributeError) as error:
            errors.append(str(error))
    return errors


def int_enum(x):
    class Size(enum.IntEnum):
        SMALL = 1
        BIG = 2

    return Size.SMALL + x, Size(2) == 2, str(Size.SMALL), sorted([Size.BIG, Size.SMALL])[0].name


def flags(x):
    class Perm(enum.Flag):
        READ = enum.auto()
        WRITE = enum.auto()
        BOTH = READ | WRITE

    both = Perm.READ | Perm.WRITE
    return both is Perm.BOTH, both.value, repr(both), Perm.READ in both, (~Perm.READ).name


def enum_with_methods_of_its_own(x):
    class Planet(enum.Enum):
        EARTH = (2.0, 3.0)
        MARS = (1.0, 2.0)

        def __init__(self, mass, radius):
            self.mass, self.radius = mass, radius

        @property
        def density(self):
            return self.mass / self.radius

        @classmethod
        def first(cls):
            return next(iter(cls))

        @staticmethod
        def _generate_next_value_(name, start, count, last):
            return name

    return Planet.EARTH.density, Planet.first().name, [p.mass for p in Planet]


FUNCTIONS = [
    outside_base, two_outside_bases, init_subclass, set_name, set_name_fails, metaclass,
    metaclass_is_a_function, metaclass_conflict, metaclass_made_here, type_of_three,
    type_of_wrong_things, namespace_of_a_class, attributes_of_a_class, abstract, sequence,
    mutable_mapping, hook_of_an_abstract_class, library_bases, plain_enum, enum_errors,
    int_enum, flags, enum_with_methods_of_its_own,
]  # fmt: skip


def compiled(f):
    return stator.compile(f, backend="eager", fullgraph=True, _keep_empty=True)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_whole(f):
    step, x = compiled(f), 3
    assert step(x) == f(x)
    assert step(x) == f(x)
    assert step.metrics["entries"] == 1


CHANGES = {
    "a method": ("hello", lambda self: "changed"),
    "data": ("greeting", "good evening "),
    "a special method": ("__getattr__", lambda self, name: name),
    "in front of another base": ("late", lambda self: "early"),
}


@pytest.mark.parametrize("f", [outside_base, two_outside_bases], ids=lambda f: f.__name__)
@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("base", [Base, Other], ids=lambda c: c.__name__)
def test_changes_of_a_base_are_seen(f, base, change, monkeypatch):
    step = compiled(f)
    assert step("x") == f("x")
    name, value = CHANGES[change]
    monkeypatch.setattr(base, name, value, raising=False)
    assert step("x") == f("x")
    monkeypatch.undo()
    assert step("x") == f("x")


def test_a_base_does_not_keep_a_class_of_a_trace():
    class Root:
        pass

    def f():
        class A(Root):
            pass

        return A.__name__

    step = compiled(f)
    assert [step(), step(), step()] == ["A"] * 3
    assert Root.__subclasses__() == []


def test_a_class_that_gets_out_is_made_in_each_call():
    def f():
        class A(Base, metaclass=Meta):
            name = "a"

        return A

    step = stator.compile(f, backend="eager")
    one, other = step(), step()
    assert one is not other and one().hello() == other().hello()
    assert {one, other} <= set(Base.__subclasses__())
