"""What generated programs may use: fuel, objects with every dunder, context managers, awaitables.

Programs are run with these names in their globals. Everything prints through `show`, so that two
runs can be compared by their output, and nothing prints an address or depends on one.
"""

import functools
import re
import sys
from itertools import islice

__all__ = [
    "ACtx", "AIter", "Box", "Ctx", "Field", "Fuel", "Meta", "Noisy", "Oops", "Pause", "Point",
    "attempt", "blow", "deco", "drive", "functools", "safely", "show", "step", "sys", "tick",
]  # fmt: skip

# Warm code of 3.11 loads two locals by one instruction, which reports the place of the first.
FUSES_LOADS = sys.version_info < (3, 12)
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
FUEL = 200
_fuel = FUEL


class Fuel(BaseException):
    """Ends a program that loops or calls for too long; it is raised again at every tick after."""


class Oops(Exception):
    pass


def reset(fuel):
    global _fuel
    _fuel = fuel


def tick():
    global _fuel
    _fuel -= 1
    if _fuel < 0:
        raise Fuel("out of fuel")
    return True


def clean(text):
    return _ADDRESS.sub("0x…", text)


def show(*values):
    print(*[clean(repr(value))[:300] for value in values])


def places(exc):
    """Function, line and columns of each frame that belongs to a program or to this file."""
    rows, tb = [], exc.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith("<fuzz") or code.co_filename == __file__:
            rows.append((code.co_qualname, tb.tb_lineno, columns(code, tb, len(rows))))
        tb = tb.tb_next
    if FUSES_LOADS and isinstance(exc, UnboundLocalError):
        rows[-1] = rows[-1][0]
    return rows


def columns(code, tb, depth):
    # Looking them up takes as long as the code is; a long recursion repeats itself anyway.
    if depth > 12 and tb.tb_next is not None:
        return None
    return next(islice(code.co_positions(), tb.tb_lasti // 2, None), None)


def describe(exc, depth=0):
    """All that a user can see of an exception, as nested tuples of plain values."""
    if exc is None:
        return None
    if depth > 6:
        return "…"
    inner = [describe(e, depth + 1) for e in getattr(exc, "exceptions", ())]
    return (
        type(exc).__name__,
        clean(str(exc))[:500],
        places(exc),
        getattr(exc, "__notes__", None),
        exc.__suppress_context__,
        describe(exc.__cause__, depth + 1),
        describe(exc.__context__, depth + 1),
        inner,
    )


def attempt(fn, *args, **kwargs):
    """Call with a full tank; only ever outside of loops."""
    reset(FUEL)
    return safely(fn, *args, **kwargs)


def safely(fn, *args, **kwargs):
    """Call, print what came of it with the traceback, and go on."""
    try:
        value = fn(*args, **kwargs)
    except (Exception, Fuel) as exc:
        show("raised", describe(exc))
    else:
        show("gave", value)
        return value


def blow(kind, text="blown"):
    raise kind(text)


def deco(label):
    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            show("enter", label, len(args), sorted(kwargs))
            try:
                return fn(*args, **kwargs)
            finally:
                show("leave", label)

        return inner

    return wrap


class Meta(type):
    def __prepare__(name, bases, **kw):
        return {"made_by": "Meta"}

    def __new__(mcls, name, bases, ns, **kw):
        cls = super().__new__(mcls, name, bases, dict(ns))
        cls.options = sorted(kw)
        return cls

    def __init__(cls, name, bases, ns, **kw):
        super().__init__(name, bases, ns)

    def __len__(cls):
        return len(cls.__name__)


class Field:
    """A data descriptor that logs."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name, -1)

    def __set__(self, obj, value):
        if value is None:
            raise TypeError("no None here")
        setattr(obj, self.name, value)

    def __delete__(self, obj):
        delattr(obj, self.name)


class Box:
    """An object whose every operator is Python code; some raise, depending on the value."""

    __match_args__ = ("value", "tag")
    kept = Field()
    shared = 3

    def __init__(self, value=0, tag="box"):
        self.value = value
        self.tag = tag
        self.items = {}

    def __repr__(self):
        return f"Box({self.value!r:.60}, {self.tag!r:.20})"

    def _with(self, value):
        if type(value) is int:
            value %= 10007
        return type(self)(value, self.tag)

    def __add__(self, other):
        if isinstance(other, Box):
            other = other.value
        if not isinstance(other, int):
            return NotImplemented
        return self._with(self.value + other)

    __radd__ = __add__

    def __iadd__(self, other):
        self.value = (self + other).value
        return self

    def __sub__(self, other):
        return self._with(self.value - int(other))

    def __mul__(self, other):
        return self._with(self.value * int(other))

    def __matmul__(self, other):
        return [self.tag, other]

    def __mod__(self, other):
        return self.value % int(other)

    def __neg__(self):
        return self._with(-self.value)

    def __invert__(self):
        return self._with(~self.value)

    def __pos__(self):
        return self

    def __int__(self):
        return self.value

    def __index__(self):
        return self.value

    def __eq__(self, other):
        return isinstance(other, Box) and self.value == other.value

    def __lt__(self, other):
        if not isinstance(other, Box):
            return NotImplemented
        return self.value < other.value

    def __hash__(self):
        return hash(self.value)

    def __bool__(self):
        return self.value % 2 == 1

    def __len__(self):
        return self.value % 5

    def __contains__(self, item):
        return item == self.value

    def __iter__(self):
        for i in range(self.value % 4):
            yield self.value + i

    def __reversed__(self):
        return iter([self.value, self.tag])

    def __getitem__(self, key):
        if isinstance(key, slice):
            return [key.start, key.stop, key.step]
        if key in self.items:
            return self.items[key]
        raise KeyError(key)

    def __setitem__(self, key, value):
        if isinstance(key, slice):
            key = "slice"
        self.items[key] = value

    def __delitem__(self, key):
        if isinstance(key, slice):
            key = "slice"
        del self.items[key]

    def __getattr__(self, name):
        if name.startswith("dyn"):
            return len(name)
        raise AttributeError(f"no {name}", name=name, obj=None)

    def __call__(self, *args, **kwargs):
        return self.value + len(args) + len(kwargs)

    def __format__(self, spec):
        return f"<{self.value}:{spec}>"

    def __enter__(self):
        show("enter", self)
        return self.value

    def __exit__(self, kind, value, tb):
        show("exit", kind and kind.__name__, value and places(value))
        return self.tag == "quiet" and kind is not None and issubclass(kind, Exception)

    @property
    def half(self):
        return self.value // (self.value % 3)

    @classmethod
    def make(cls, value):
        return cls(value, "made")

    @staticmethod
    def twice(value):
        return value * 2

    def bump(self, by=1, *more, scale=1, **rest):
        tick()
        self.value = (self.value + by * scale + len(more) + len(rest)) % 10007
        return self.value


class Point:
    __slots__ = ("x", "y")
    __match_args__ = ("x", "y")

    def __init__(self, x, y=0):
        self.x, self.y = x, y

    def __repr__(self):
        return f"Point({self.x!r}, {self.y!r})"


class Noisy:
    """Tells when it dies: references must be dropped when CPython drops them."""

    def __init__(self, label):
        self.label = label

    def __repr__(self):
        return f"Noisy({self.label!r})"

    def __del__(self):
        show("del", self.label)


class Ctx:
    def __init__(self, label, quiet=False, fail=None):
        self.label, self.quiet, self.fail = label, quiet, fail

    def __repr__(self):  # without an address: programs cut and turn the text
        return f"{type(self).__name__}({self.label!r})"

    def __enter__(self):
        show("enter", self.label)
        if self.fail == "enter":
            raise Oops("enter failed")
        return self.label

    def __exit__(self, kind, value, tb):
        show("exit", self.label, kind and kind.__name__, value and places(value))
        if self.fail == "exit":
            raise Oops("exit failed")
        return self.quiet and kind is not None and issubclass(kind, Exception)


class ACtx(Ctx):
    async def __aenter__(self):
        await Pause("aenter")
        return self.__enter__()

    async def __aexit__(self, kind, value, tb):
        got = await Pause("aexit")
        return self.__exit__(kind, value, tb) if got is not None else False


class Pause:
    def __repr__(self):
        return type(self).__name__

    """An awaitable that gives the driver a label and gets a number back."""

    def __init__(self, label):
        self.label = label

    def __await__(self):
        return (yield self.label)


class AIter:
    def __repr__(self):
        return type(self).__name__

    def __init__(self, count):
        self.left = count

    def __aiter__(self):
        return self

    async def __anext__(self):
        tick()
        self.left -= 1
        if self.left < 0:
            raise StopAsyncIteration
        return await Pause("anext") + self.left


def drive(coro, fail_at=-1):
    """The smallest event loop: sends numbers, and throws once if asked."""
    sent, turn = None, 0
    try:
        while tick():
            if turn == fail_at:
                label = coro.throw(Oops("thrown by the driver"))
            else:
                label = coro.send(sent)
            show("paused", label)
            turn += 1
            sent = turn
    except StopIteration as stop:
        return stop.value
    finally:
        coro.close()


def step(gen, *moves):
    """Drive a generator by hand: None is next, a number is sent, a class is thrown, "close"."""
    for move in moves:
        tick()
        try:
            if move is None:
                show("next", next(gen))
            elif move == "close":
                show("closed", gen.close())
            elif isinstance(move, type):
                show("thrown", gen.throw(move))
            else:
                show("sent", gen.send(move))
        except (Exception, GeneratorExit) as exc:
            show("gen raised", describe(exc))
