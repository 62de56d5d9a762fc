"""Guard programs from rows of names and objects, and objects to look at."""

from stator import _engine

SOURCES, GUARDS = _engine.guard_kinds()
GONE = object()
UNBOUND = type(_engine.guard_program([]))


def function(a=1, *, k=2):
    return a, k


def L(index=0, name="x"):
    return (("LOCAL", name, index),)


def below(path, *steps):
    return path + tuple(step if len(step) == 3 else (*step, 0) for step in steps)


class Program:
    """A program over a few slots; `slots` may be changed between checks."""

    def __init__(self, rows, *slots, function=function):
        self.function, self.slots = function, list(slots)
        self.program = _engine.guard_program(rows)

    def passes(self):
        return isinstance(self.program.check(self.function, self.slots), list)

    def registers(self):
        return self.program.check(self.function, self.slots)

    def reason(self):
        return self.program.reason(self.function, self.slots)


def guard(kind, o, object=None, index=0):
    return Program([(kind, L(), object, index)], o)


class Plain:
    pass


class Slotted:
    __slots__ = ("one", "two")


class Base:
    shared = "base"


class Derived(Base):
    pass


def closure():
    inner = "content"

    def f():
        return inner

    return f


def new_function():
    def f(a, b="default", *, c="keyword"):
        """doc"""

    return f


def attributes(o, **values):
    for name, value in values.items():
        setattr(o, name, value)
    return o


def offset_of(name):
    return {"one": object.__basicsize__, "two": object.__basicsize__ + 8}[name]


def change(what):
    """A statement on `o`, as a function."""
    return lambda o: exec(what, {}, {"o": o})
