"""Runs a case twice, once with plain calls and once with compiled ones, each in a world of its own,
and compares all that can be seen after every call.

A case is a function `case(call)`: it makes its objects, calls functions by `call(f, *args)`, and
changes things in between. In the plain run `call` just calls; in the compiled run it compiles the
function first and then calls that. Adding a case is adding a function.
"""

from __future__ import annotations

import collections
import contextlib
import difflib
import functools
import gc
import importlib
import linecache
import struct
import sys
import textwrap
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stator import _engine

HERE = Path(__file__).resolve().parent
torch: Any = sys.modules.get("torch")


def use_torch() -> Any:
    """Torch for the cases that need it; they are skipped where it is not installed."""
    import pytest

    global torch
    torch = pytest.importorskip("torch")
    CONSTANT_CONTAINERS.add(torch.Size)
    return torch


# -- cases ---------------------------------------------------------------------------------------

Case = Callable[["Call"], Any]


def load_cases(prefix: str) -> dict[str, Case]:
    """Functions of `<prefix>*.py` in this folder without a leading underscore, by family.name."""
    found: dict[str, Case] = {}
    for path in sorted(HERE.glob(f"{prefix}*.py")):
        module = importlib.import_module(path.stem)
        family = path.stem.removeprefix(prefix)
        for name, value in vars(module).items():
            own = isinstance(value, types.FunctionType) and value.__module__ == path.stem
            if own and not name.startswith("_"):
                found[f"{family}.{name}".strip(".")] = value
    return found


_sources = 0


def module_of(source: str, **names: Any) -> types.ModuleType:
    """A module of its own, for cases about globals; not in sys.modules."""
    global _sources
    _sources += 1
    filename = f"<case module {_sources}>"
    text = textwrap.dedent(source)
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType("case_module")
    module.__dict__.update(names)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


# -- what can be seen of an object -------------------------------------------------------------

SIMPLE = (bool, int, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
QUIET = {"__builtins__", "__doc__", "__loader__", "__spec__", "__package__", "__name__"}
_EXAMPLES = [
    iter(x) for x in ([], (), "", b"", bytearray(), range(0), {}, set(), {}.values(), {}.items())
] + [reversed([]), enumerate(()), zip(), map(int, ()), filter(None, ())]
ITERATORS = tuple(map(type, _EXAMPLES))


def is_a(value: Any, kinds: Any) -> bool:
    """isinstance without asking the object, or its class, what it claims to be."""
    mro = _mro(type(value))
    return any(_one_of(kind, mro) for kind in (kinds if type(kinds) is tuple else (kinds,)))


def _one_of(kind: type, kinds: Any) -> bool:
    """By identity: metaclasses may have an __eq__."""
    return any(kind is other for other in kinds)


_mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__qualname__"].__get__


CONSTANT_CONTAINERS: set[type] = {tuple, frozenset}  # and torch.Size


def is_constant(value: Any, depth: int = 0) -> bool:
    """Whether an object is immutable all the way down."""
    if _one_of(type(value), CONSTANT_CONTAINERS):
        return depth < 100 and all(is_constant(item, depth + 1) for item in value)
    return _one_of(type(value), (*SIMPLE, float, complex))


class Freezer:
    """Turns objects into nested tuples that two runs can be compared by: types, bits, order, and
    which parts are one object. Objects keep their number from one snapshot to the next."""

    def __init__(self, own: tuple[str, ...] = ()) -> None:
        self.numbers: dict[int, int] = {}
        self.alive: list[Any] = []
        self.own = own

    def snapshot(self, value: Any) -> Any:
        self.visited: set[int] = set()
        return self.freeze(value)

    def freeze(self, value: Any) -> Any:
        kind = type(value)
        if _one_of(kind, SIMPLE):
            return (kind.__name__, value)
        if kind is float:
            return ("float", struct.pack("<d", value).hex())
        if kind is complex:
            return ("complex", self.freeze(value.real), self.freeze(value.imag))
        if torch is not None and kind is torch.device:  # eager itself makes a new one each time
            return ("device", str(value))
        if _one_of(kind, CONSTANT_CONTAINERS) and is_constant(value):
            # Nobody minds which of two equal ones it is: an entry may hold it as a constant.
            return (kind.__name__, *self.several(value))
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.numbers)
            self.alive.append(value)
        if id(value) in self.visited:
            return (f"the #{number}",)
        self.visited.add(id(value))
        return (f"#{number} {_name(kind)}", *self.body(value))

    def several(self, values: Any) -> tuple[Any, ...]:
        return tuple(self.freeze(value) for value in values)

    def body(self, value: Any) -> tuple[Any, ...]:
        if torch is not None and is_a(value, torch.Tensor):
            return self.tensor(value)
        if is_a(value, type):
            return self.type(value)
        if is_a(value, types.ModuleType):
            return (value.__name__, *self.names(vars(value), value.__name__ == "case_module"))
        if is_a(value, types.FunctionType):
            return self.function(value)
        if is_a(value, threading.local):
            return (self.freeze(vars(value)),)
        if is_a(value, BaseException):
            return self.exception(value)
        return (*self.content(value), *self.state(value))

    def type(self, cls: Any) -> tuple[Any, ...]:
        if cls.__module__ not in self.own and cls.__module__ != "case_module":
            return (cls.__module__, cls.__qualname__)
        return (cls.__qualname__, self.several(cls.__bases__), *self.names(vars(cls), True))

    def names(self, names: Any, wanted: bool) -> tuple[Any, ...]:
        if not wanted:
            return ()
        skip = QUIET | {"__dict__", "__weakref__", "__module__"}
        return tuple((name, self.freeze(v)) for name, v in list(names.items()) if name not in skip)

    def function(self, f: Any) -> tuple[Any, ...]:
        cells = f.__closure__ or ()
        return (
            f.__qualname__,
            f.__code__.co_firstlineno,
            self.freeze(f.__defaults__),
            self.freeze(f.__kwdefaults__),
            self.several(cells),
            self.freeze(f.__dict__) if f.__dict__ else (),
        )

    def exception(self, exc: BaseException) -> tuple[Any, ...]:
        return (
            self.freeze(exc.args),
            str(exc) if type(exc).__str__ in (BaseException.__str__, KeyError.__str__) else "",
            tuple(self.places(exc.__traceback__)),
            self.freeze(exc.__cause__),
            self.freeze(exc.__context__),
            exc.__suppress_context__,
            self.freeze(vars(exc)),
        )

    def places(self, tb: types.TracebackType | None) -> Iterator[tuple[str, int]]:
        while tb is not None:
            code = tb.tb_frame.f_code
            here = Path(code.co_filename)
            if code.co_filename.startswith("<case") or here.name.startswith("cases_"):
                yield code.co_name, tb.tb_lineno
            tb = tb.tb_next

    def tensor(self, t: Any) -> tuple[Any, ...]:
        plain = t.detach()
        storage = None
        if plain.layout is torch.strided and plain.device.type != "meta":
            memory = plain.untyped_storage()
            self.alive.append(memory)
            storage = self.numbers.setdefault(memory._cdata, len(self.numbers))
        facts = [str(t.dtype), str(t.device), str(t.layout), tuple(t.shape), t.requires_grad]
        if plain.layout is torch.strided:
            facts += [tuple(t.stride()), t.storage_offset(), t.is_conj(), t.is_neg(), storage]
        if plain.device.type != "meta":
            facts.append(repr(plain.to_dense().resolve_conj().resolve_neg().tolist()))
        grad = self.freeze(t.grad) if t.is_leaf else ("inner", type(t.grad_fn).__name__)
        return (*facts, grad, *self.state(t))

    def content(self, value: Any) -> tuple[Any, ...]:
        """The C part of an object, without running anybody's code."""
        if is_a(value, collections.OrderedDict):
            order = list(collections.OrderedDict.keys(value))
            return tuple((self.freeze(k), self.freeze(dict.__getitem__(value, k))) for k in order)
        if is_a(value, dict):
            factory = value.default_factory if is_a(value, collections.defaultdict) else None
            pairs = tuple((self.freeze(k), self.freeze(v)) for k, v in dict.items(value))
            return (*pairs, ("factory", self.freeze(factory))) if factory else pairs
        for base in (list, tuple, collections.deque):
            if is_a(value, base):
                rows = self.several(base.__iter__(value))
                return (*rows, value.maxlen) if base is collections.deque else rows
        if is_a(value, (set, frozenset)):
            return self.set(value)
        for base in (str, bytes, bytearray, int, float, complex):
            if is_a(value, base):
                return (base.__repr__(value),)
        return self.parts(value)

    def set(self, value: Any) -> tuple[Any, ...]:
        """In its own order, unless that comes from addresses."""
        base = set if is_a(value, set) else frozenset
        items = list(base.__iter__(value))
        rows = self.several(items)
        simple = all(_one_of(type(item), SIMPLE) or type(item) is float for item in items)
        return rows if simple else tuple(sorted(rows, key=repr))

    def parts(self, value: Any) -> tuple[Any, ...]:
        """Other C objects that hold references."""
        if is_a(value, types.CellType):
            try:
                return (self.freeze(value.cell_contents),)
            except ValueError:
                return ("empty",)
        if is_a(value, types.MethodType):
            return (self.freeze(value.__func__), self.freeze(value.__self__))
        if is_a(value, types.BuiltinFunctionType):
            owner = value.__self__
            return (value.__qualname__, () if is_a(owner, types.ModuleType) else self.freeze(owner))
        if is_a(value, functools.partial):
            return self.several((value.func, value.args, value.keywords))
        if is_a(value, (property, staticmethod, classmethod)):
            fields = ("fget", "fset", "fdel") if is_a(value, property) else ("__func__",)
            return self.several(getattr(value, name) for name in fields)
        if is_a(value, (slice, range)):
            return self.several((value.start, value.stop, value.step))
        if is_a(value, types.GeneratorType):
            frame = value.gi_frame
            return (value.__qualname__, frame.f_lineno if frame else None, value.gi_running)
        if is_a(value, (types.MappingProxyType,)):
            return ("proxy",)
        if is_a(value, (type({}.keys()), type({}.values()), type({}.items()))):
            return (self.freeze(value.mapping.copy()),)
        if is_a(value, ITERATORS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return (self.freeze(value.__reduce__()[1:]),)
        return ()

    def state(self, value: Any) -> tuple[Any, ...]:
        """Instance dict in order, and slots; read without making a dict where there is none."""
        found = []
        names = [(name, _engine.raw_attr(value, name)[0]) for name in _engine.raw_names(value)]
        if names:
            found.append(("dict", *((name, self.freeze(v)) for name, v in names)))
        for cls in _mro(type(value)):
            for name, member in vars(cls).items() if "__slots__" in vars(cls) else ():
                if is_a(member, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):
                        found.append((name, self.freeze(member.__get__(value))))
        return tuple(found)


# -- stand-ins must stay inside -----------------------------------------------------------------

INNER = ("lazy", "standin", "stand_in", "trampoline", "absent", "identity_key")


def is_inner(value: Any) -> bool:
    """Whether an object is one of the engine's, that no program may ever hold."""
    kind = type(value)
    if not str(kind.__module__).startswith("stator"):
        return False
    return any(word in kind.__name__.lower().replace("-", "_") for word in INNER)


def _is_big(part: Any) -> bool:
    """The globals of a module that is not the case's own."""
    named = type(part) is dict and "__builtins__" in part
    return named and part.get("__name__") != "case_module"


def _is_foreign(value: Any) -> bool:
    """Modules, frames, and classes that no case made."""
    if is_a(value, type):
        return not str(value.__module__).startswith(("case", "tensor_case", "test"))
    return is_a(value, (types.ModuleType, types.FrameType))


def _parts(value: Any) -> list[Any]:
    """What an object leads to. Of a module only its names: 3.12's _asyncio shows the dead objects on
    its free list, and each reference to one frees it once more."""
    return [vars(value)] if is_a(value, types.ModuleType) else gc.get_referents(value)


def find_inner(roots: list[Any], everything: bool = False) -> list[str]:
    """Paths from the roots to the engine's own objects. Stops at modules, unless all is wanted."""
    todo = [(root, (type(root).__name__,)) for root in roots]
    seen = {id(root) for root in roots}
    bad = []
    while todo:
        value, path = todo.pop()
        if is_inner(value):
            bad.append(" -> ".join(path))
            continue
        if not everything and _is_foreign(value):
            continue
        for part in _parts(value):
            if not everything and _is_big(part):
                continue
            if id(part) not in seen and not _one_of(type(part), SIMPLE):
                seen.add(id(part))
                todo.append((part, (*path[-6:], type(part).__name__)))
    return bad


def escaped() -> list[str]:
    """The engine's own objects reachable from anything that the process has loaded."""
    return find_inner([sys.modules, *gc.get_objects(generation=0)], everything=True)


# -- runs -----------------------------------------------------------------------------------------


class Plain:
    """The plain run of a case; also the log of what was seen."""

    compiled = False

    def __init__(self, case: Case) -> None:
        self.case = case
        self.freezer = Freezer((getattr(case, "__module__", ""),))
        self.log: list[Any] = []
        self.watched: list[Any] = []
        self.escapes: list[str] = []

    def watch(self, *objects: Any) -> None:
        """These are looked at after each call, too."""
        self.watched += objects

    def note(self, value: Any) -> Any:
        """Something that the case saw for itself."""
        self.log.append(("noted", self.freezer.snapshot(value)))
        return value

    def __call__(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        outcome = self.outcome(self.target(f), args, kwargs)
        self.seen(f, outcome, args, kwargs)
        return outcome[1] if outcome[0] == "returned" else None

    def again(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """A call for which an entry exists: nothing that it reads has changed."""
        return self(f, *args, **kwargs)

    def loose(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of which only the result is looked at, and nothing is kept alive."""
        how, value = self.outcome(self.target(f), args, kwargs)
        self.log.append((how, Freezer(self.freezer.own).snapshot(value)))
        return value

    def outcome(self, f: Any, args: Any, kwargs: Any) -> tuple[str, Any]:
        try:
            return "returned", f(*args, **kwargs)
        except Exception as exc:
            return "raised", exc

    def seen(self, f: Any, outcome: Any, args: Any, kwargs: Any) -> None:
        function = getattr(f, "__func__", f)
        world = (outcome[1], args, kwargs, function, self.watched)
        self.log.append((outcome[0], self.freezer.snapshot(world)))
        self.escapes += find_inner([outcome[1], args, kwargs, function, self.watched])

    def target(self, f: Any) -> Any:
        return f

    def traced(self, f: Any, entries: int | None = None) -> None:
        """In the compiled run: no trace of f broke, and there are so many entries."""

    def one_entry(self, f: Any) -> None:
        self.traced(f, 1)


Call = Plain


class Compiled(Plain):
    """The compiled run of a case."""

    compiled = True

    def __init__(self, case: Case, compile: Callable[[Any], Any]) -> None:
        super().__init__(case)
        self.compile = compile
        self.targets: dict[Any, tuple[Any, Any]] = {}
        self.faults: list[str] = []

    def target(self, f: Any) -> Any:
        key = (id(f.__func__), id(f.__self__)) if isinstance(f, types.MethodType) else id(f)
        if key not in self.targets:
            self.targets[key] = (f, self.compile(f))
        return self.targets[key][1]

    def metrics(self, f: Any) -> dict[str, Any]:
        return dict(self.target(f).metrics)

    def again(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.metrics(f)
        result = self(f, *args, **kwargs)
        after = self.metrics(f)
        if after["hits"] <= before["hits"] or after["traces"] != before["traces"]:
            why = [*after["drops"], *after["recompiles"]] or ["no reason given"]
            line = sys._getframe(1).f_lineno
            self.faults.append(f"line {line}: no entry was used: {why[-1]}")
        return result

    def traced(self, f: Any, entries: int | None = None) -> None:
        seen = self.metrics(f)
        line = sys._getframe(1).f_lineno
        if seen["drops"] or seen["breaks"]:
            self.faults.append(f"line {line}: not whole: {[*seen['breaks'], *seen['drops']][-1]}")
        elif entries is not None and seen["entries"] != entries:
            why = f"{seen['entries']} entries, not {entries}: {seen['recompiles']}"
            self.faults.append(f"line {line}: {why}")


def keep_empty(f: Any) -> Any:
    import stator

    return stator.compile(f, backend="eager", _keep_empty=True)


def render(value: Any, depth: int = 0) -> Iterator[str]:
    """Nested tuples as indented lines, so that a diff points at what differs."""
    if isinstance(value, tuple) and len(repr(value)) > 90:
        for item in value:
            yield from render(item, depth + 1)
    else:
        yield "  " * depth + repr(value)


def difference(plain: Plain, other: Plain) -> str:
    if plain.log == other.log:
        return ""
    for number, (one, two) in enumerate(zip(plain.log, other.log)):
        if one != two:
            rows = difflib.unified_diff(
                list(render(one)), list(render(two)), "plain", "compiled", lineterm="", n=4
            )
            return f"event {number}:\n" + "\n".join(rows)
    return f"plain saw {len(plain.log)} events, compiled {len(other.log)}"


_drops: dict[str, list[str]] = {}


def dropped() -> list[tuple[str, int, str]]:
    """Reasons of dropped traces so far: (reason, how often, one of the cases)."""
    rows = [(reason, len(cases), cases[0]) for reason, cases in _drops.items()]
    return sorted(rows, key=lambda row: -row[1])


def note_drops(name: str, reasons: list[str]) -> None:
    """For the table: the reason without its place."""
    for reason in reasons:
        what = reason.splitlines()[0].partition(": ")[2] or reason
        _drops.setdefault(what[:120], []).append(name)


def _collect_drops(run: Compiled) -> None:
    for _, target in run.targets.values():
        note_drops(run.case.__name__, target.metrics["drops"])


def check(case: Case, compile: Callable[[Any], Any] = keep_empty) -> Compiled:
    """Runs both and fails on any difference, escape, or missing entry."""
    plain = Plain(case)
    case(plain)
    run = Compiled(case, compile)
    case(run)
    found = difference(plain, run)
    assert not found, found
    assert not run.escapes, f"reachable from outside: {run.escapes}"
    if compile is keep_empty:
        _collect_drops(run)
    assert not run.faults, "\n".join(run.faults)
    return run
