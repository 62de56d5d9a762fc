"""`dir()`, `type.mro`, `sys._getframemodulename`, and what wraps outside functions: traced as a whole,
and guarded by what they read."""

import enum
import sys

import pytest

import stator


class Base:
    shared = 1

    def method(self):
        """What it does."""
        return 1


class Slotted(Base):
    __slots__ = ("a",)


class Own:
    def __dir__(self):
        return ["z", "b", "a"]


class Meta(type):
    def __dir__(cls):
        return ("q", "c")


class Listed(metaclass=Meta):
    pass


def function(a: int, b=2) -> str:
    """A text."""
    return a * b


outside = Base()


def dir_of_an_object_inside(x):
    o = Base()
    o.own = x
    return dir(o)


def dir_of_an_object_outside(x):
    return dir(outside)


def dir_of_classes(x):
    class A(Base):
        extra = x

    return dir(A), dir(Base), dir(A()), dir(int), dir(Slotted())


def dir_by_the_class(x):
    return dir(Own()), dir(Listed), dir(3)[:3]


def dir_in_its_order(x):
    class A(Slotted, Own):
        extra = x

        def __dir__(self):
            return object.__dir__(self)

    a = A()
    a.first, a.shared = 1, 2
    return a.__dir__(), type.__dir__(A), object.__dir__(outside), dir(a)


def mro(x):
    class A(Base):
        pass

    return [c.__name__ for c in A.mro()], [c.__name__ for c in Slotted.mro()], bool.mro()


def wrapped(x):
    s, c, p = staticmethod(function), classmethod(function), property(Base.method)

    class A:
        call, of, prop, builtin = s, c, p, staticmethod(len)

    return (s.__name__, s.__doc__, s.__annotations__ is function.__annotations__, c.__qualname__,
            p.__doc__, A.call(2), A().prop, A.builtin([1]), s.__wrapped__ is function)  # fmt: skip


FUNCTIONS = [
    dir_of_an_object_inside, dir_of_an_object_outside, dir_of_classes, dir_by_the_class, dir_in_its_order, mro, wrapped,
]  # fmt: skip


def compiled(f):
    return stator.compile(f, backend="eager", fullgraph=True, _keep_empty=True)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_whole(f):
    step = compiled(f)
    assert step(3) == f(3)
    assert step(3) == f(3)
    assert step.metrics["entries"] == 1


@pytest.mark.parametrize(
    "f",
    [dir_of_an_object_inside, dir_of_an_object_outside, dir_of_classes],
    ids=lambda f: f.__name__,
)
def test_new_names_are_seen(f, monkeypatch):
    step = compiled(f)
    assert step(3) == f(3)
    monkeypatch.setattr(Base, "fresh", 1, raising=False)
    assert step(3) == f(3)
    monkeypatch.setattr(outside, "own", 1, raising=False)
    assert step(3) == f(3)
    monkeypatch.undo()
    assert step(3) == f(3)


@pytest.mark.parametrize("name", ["__name__", "__doc__", "__qualname__", "__module__"])
def test_changes_of_a_wrapped_function_are_seen(name, monkeypatch):
    def f():
        return getattr(staticmethod(function), name)

    step = compiled(f)
    assert step() == f()
    monkeypatch.setattr(function, name, "other")
    assert step() == "other" == f()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys._getframemodulename is new in 3.12")
def test_module_of_a_frame():
    def inner(depth):
        return sys._getframemodulename(depth)

    def f():
        Color = enum.Enum("Color", "RED GREEN")
        return inner(0), inner(1), Color.__module__, [c.value for c in Color]

    step = compiled(f)
    assert step() == step() == f()
    far = stator.compile(lambda: inner(40), backend="eager")
    assert far() == far() == inner(39)


def test_globals_of_a_frame():
    def inner(depth):
        return sys._getframe(depth).f_globals

    def f():
        Color = enum.Enum("Color", "RED GREEN")
        here = sys._getframe().f_globals is globals()
        return inner(0)["__name__"], inner(1) is globals(), here, Color.__module__

    step = compiled(f)
    assert step() == step() == f()


def test_other_uses_of_a_frame_break():
    def f(depth):
        frame = sys._getframe()
        below = sys._getframe(depth).f_globals["__name__"]
        return type(frame).__name__, frame is sys._getframe(), frame.f_code is f.__code__, below

    step = stator.compile(f, backend="eager")
    for depth in (0, 1, 2):
        assert step(depth)[:3] == f(depth)[:3] == ("frame", True, True)
        assert step(depth)[3] == f(depth)[3]


def documented(self):
    """One."""


def otherwise(self):
    """Two."""


def make_properties():
    return property(documented), property(documented, None, None, "own")


def test_a_property_knows_whose_text_it_has():
    """A copy with another getter has that one's text, unless the text was given."""
    for make in (make_properties, stator.compile(make_properties, backend="eager")):
        for _ in range(2):
            plain, own = make()
            assert (plain.__doc__, plain.getter(otherwise).__doc__) == ("One.", "Two.")
            assert (own.__doc__, own.getter(otherwise).__doc__) == ("own", "own")
