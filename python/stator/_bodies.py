"""What the Python code behind a node of a graph may read and write beside its arguments.

A custom operation is one node. Its Python code runs when the graph does: after all that the trace
reads, and before all that the trace holds back. `body_of` looks through that code for the *places*
that it may touch; the engine compares them with what the trace has read and written.

The look follows instructions without running them. Code of torch, numpy, triton, einops (which
torch itself allows in graphs) and the standard library is taken to touch only what it is given; so
is native code.
"""

from __future__ import annotations

import contextlib
import dis
import enum
import functools
import gc
import inspect
import sys
import types
from collections import deque
from typing import Any

import torch

from stator import _engine
from stator._fakes import is_known
from stator._rows import words
from stator._versions import private

# Of their objects nothing is looked at. (A log is written where the trace would break, too.)
_OPAQUE = frozenset({"torch", "numpy", "triton", "einops", "logging", "_thread", "threading"})
_TRUSTED = (frozenset(sys.stdlib_module_names) | _OPAQUE) - {"__main__"}
_CALM = _OPAQUE | {"math", "cmath", "builtins", "typing", "contextlib", "types"}
_ATOMS: Any = (int, float, complex, str, bytes, type(None), type(...), range, enum.Enum, property,
               types.CodeType, types.GetSetDescriptorType, types.MemberDescriptorType,
               types.WrapperDescriptorType, types.MethodDescriptorType)  # fmt: skip
_CONTAINERS = (list, dict, set, deque, bytearray)
_MUTATORS = frozenset(
    words("""append appendleft extend extendleft insert pop popleft popitem remove clear sort
          reverse rotate add discard update setdefault intersection_update difference_update
          symmetric_difference_update move_to_end __setitem__ __delitem__ __iadd__ __ior__""")
)
_STORES = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"})
_GETS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_WRITING = (setattr, delattr, next)
_ANYTHING = (eval, exec, globals, locals, vars, __import__)
_MOST_OBJECTS, _MOST_FUNCTIONS = 5000, 200
_KEPT_OUT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"})


class _Unknown(Exception):
    """The code does what cannot be looked through; the text says what."""


def _is_of(o: Any, roots: frozenset[str]) -> bool:
    name = o.__name__ if isinstance(o, types.ModuleType) else getattr(o, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] in roots


class _Look:
    """What was found so far."""

    def __init__(self) -> None:
        self.places: dict[Any, tuple[Any, ...]] = {}  # (owner, written) or (owner, written, key)
        self.used: list[Any] = []  # may be written to, if the code writes to anything
        self.writes = False
        self.stores = False  # it sets attributes of what may be a class
        self.seen: dict[int, Any] = {}
        self.fresh: set[int] = set()  # functions whose first argument is made for each call
        self.methods: set[int] = set()  # functions whose first argument is an object that is seen
        self.faked: list[Any] = []  # functions that run on fakes, too
        self.fakes: list[Any] = []  # functions for fakes, some of which are kernels, too
        self.functions = 0

    def touch(self, owner: Any, written: bool, *key: Any) -> None:
        at = (id(owner), *key)
        if written or at not in self.places:
            self.places[at] = (owner, written, *key)

    def result(self) -> tuple[tuple[Any, ...], ...]:
        for o in self.used:
            native = _is_of(type(o), _TRUSTED) and not isinstance(o, (*_CONTAINERS, type))
            writes = self.stores if isinstance(o, type) else self.writes
            self.touch(o, writes or native)  # an iterator is written to by being used
        return tuple(self.places.values())

    # -- operations --

    def operation(self, op: Any) -> list[Any]:
        """The functions that were registered for an operation from Python."""
        if isinstance(op, private.OpOverloadPacket):
            return [getattr(op, name) for name in private.overloads_of(op)]
        definition = private.definition_of(op)
        if definition is not None:
            return [definition]
        kernels = {key: _kernel(op, key) for key in private.python_keys(op)}
        self.faked += [f for key, f in kernels.items() if key in private.KEYS_OF_FAKES]
        return list(kernels.values())

    def definition(self, op: Any) -> list[Any]:
        kernels, formulas, fake = private.functions_of(op)
        self.fresh.update(map(id, formulas))
        self.faked += formulas
        self.fakes.append(fake)
        return [*kernels, *formulas]

    # -- objects --

    def use(self, o: Any) -> None:
        """The code has got hold of an object, and of all that is behind it."""
        waiting = [o]
        while waiting:
            o = waiting.pop()
            if isinstance(o, _ATOMS) or id(o) in self.seen:
                continue
            self.seen[id(o)] = o
            if len(self.seen) > _MOST_OBJECTS:
                raise _Unknown("reaches too many objects")
            waiting.extend(self.behind(o))

    def behind(self, o: Any) -> list[Any]:
        if isinstance(o, types.FunctionType):
            return self.function(o)
        if isinstance(o, types.BuiltinFunctionType):
            return self.native(o)
        if isinstance(o, types.ModuleType):
            return self.module(o)
        if isinstance(o, functools._lru_cache_wrapper):
            return [o.__wrapped__]
        if isinstance(o, private.CustomOpDef):
            return self.definition(o)
        if isinstance(o, (private.OpOverload, private.OpOverloadPacket)):
            return [] if is_known(o) else self.operation(o)
        if isinstance(o, type):
            return self.class_(o)
        if _is_of(type(o), _OPAQUE) and not isinstance(o, torch.nn.Module):
            return []
        if not isinstance(o, tuple | frozenset | types.MethodType | staticmethod | classmethod):
            self.used.append(o)
        return [p for p in gc.get_referents(o) if not isinstance(p, types.ModuleType)]

    def native(self, o: Any) -> list[Any]:
        if any(o is f for f in _ANYTHING):
            raise _Unknown(f"calls {o.__name__}()")
        self.stores |= any(o is f for f in _WRITING)
        self.writes |= (
            any(o is f for f in _WRITING) or o.__name__ in _MUTATORS or not _is_of(o, _CALM)
        )
        return [] if isinstance(o.__self__, types.ModuleType | type(None)) else [o.__self__]

    def module(self, o: Any) -> list[Any]:
        if o is sys or not _is_of(o, _TRUSTED):
            raise _Unknown(f"uses the module {o.__name__}")
        return []

    def class_(self, o: type) -> list[Any]:
        if o is type:  # gives the class of an object
            raise _Unknown("uses the class of an object")
        if _is_of(o, _TRUSTED):
            self.writes |= not _is_of(o, _CALM)
            return []
        self.touch(o, False)
        if o.__bases__ == (tuple,) and hasattr(o, "_fields"):  # namedtuple() has made it
            return []
        if any(isinstance(v, classmethod) for v in vars(o).values()):
            self.used.append(o)
        self.methods.update(map(id, vars(o).values()))
        return [*o.__bases__, *vars(o).values()]

    def function(self, f: types.FunctionType) -> list[Any]:
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        if _is_of(f, _TRUSTED):  # a wrapper has the function that it wraps in a cell
            self.writes |= not _is_of(f, _CALM)
            return [c for c in map(_content, cells.values()) if callable(c)]
        self.functions += 1
        if self.functions > _MOST_FUNCTIONS:
            raise _Unknown("calls too many functions")
        code = _Code(self, f.__code__, f.__globals__, cells)
        names = f.__code__.co_varnames
        code.fresh = names[:1] if id(f) in self.fresh else ()
        if f.__name__ == "__init__" and id(f) in self.methods:  # of an object that is just made
            code.fresh = names[:1]
        if f.__name__ == "__new__":  # it sets attributes of what it makes
            code.fresh = names[code.parameters :]
        code.given = () if id(f) in self.methods else f.__code__.co_varnames[: code.parameters]
        code.run()
        return [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]


def _content(cell: Any) -> Any:
    with contextlib.suppress(ValueError):
        return cell.cell_contents
    return None


class _Code:
    """One code object, and what its names mean."""

    fresh: tuple[str, ...] = ()  # parameters whose objects are made for the call
    given: tuple[str, ...] = ()  # parameters that may be the operation's own

    def __init__(self, look: _Look, code: Any, names: Any, cells: Any):
        self.look, self.code, self.names, self.cells = look, code, names, cells
        self.parameters = code.co_argcount + code.co_kwonlyargcount
        self.all = [i for i in dis.get_instructions(code) if i.opname not in _KEPT_OUT]

    def run(self) -> None:
        for at, i in enumerate(self.all):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                self.follow(at + 1, self.name(i.argval), i.argrepr.startswith("NULL + "))
            elif i.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                self.look.touch(self.names, True, i.argval)
            elif i.opname.endswith("DEREF") and i.argval in self.cells:
                self.cell(at, i)
            elif i.opname == "IMPORT_NAME":
                self.imported(at, i.argval)
            elif i.opname in _STORES or (i.opname == "BINARY_OP" and i.argrepr.endswith("=")):
                self.store(i.opname, self.all[at - 1])
            elif i.opname in _GETS and i.argval == "__class__":
                raise _Unknown("uses the class of an object")
            elif i.opname in _GETS and (i.argval in _MUTATORS or self.makes_again(i.argval)):
                self.look.writes = True
        for constant in self.code.co_consts:
            if isinstance(constant, types.CodeType):
                _Code(self.look, constant, self.names, self.cells).run()

    def makes_again(self, name: str) -> bool:
        """Whether a method may be `__init__` of an object that was there before."""
        return name == "__init__" and self.code.co_name != "__init__"

    def store(self, opname: str, before: Any) -> None:
        """A write to an object, which the instruction before has put on the stack."""
        name = before.argval if before.opname.startswith("LOAD_FAST") else None
        name = name[-1] if isinstance(name, tuple) else name
        if opname == "STORE_ATTR" and name in self.fresh:
            return
        if opname == "STORE_ATTR" and name in self.given:
            raise _Unknown(f"sets an attribute of its argument {name}")
        self.look.stores |= opname.endswith("_ATTR")
        self.look.writes = True

    # -- where objects come from --

    def name(self, name: str) -> Any:
        self.look.touch(self.names, False, name)
        builtins = self.names.get("__builtins__", {})
        return self.names.get(name, getattr(builtins, "__dict__", builtins).get(name))

    def cell(self, at: int, i: Any) -> None:
        cell = self.cells[i.argval]
        self.look.touch(cell, not i.opname.startswith("LOAD"))
        if i.opname.startswith("LOAD"):
            self.follow(at + 1, _content(cell))

    def imported(self, at: int, name: str) -> None:
        """Only modules that are there already and touch nothing, or functions out of others."""
        module = sys.modules.get(name)
        followers = self.all[at + 1 :: 2]
        if module is None or self.all[at - 2].argval != 0:
            raise _Unknown(f"imports {name or '.'}")
        if followers[0].opname != "IMPORT_FROM":
            return self.look.use(module)
        for i in followers:
            if i.opname != "IMPORT_FROM":
                break
            self.follow(len(self.all), self.attribute(module, i.argval))
        return None

    # -- where they go --

    def follow(self, at: int, o: Any, called: bool = False) -> None:
        """Attributes of modules and of instances are followed; what comes out is used."""
        while at < len(self.all) and self.all[at].opname in _GETS:
            name = self.all[at].argval
            if isinstance(o, types.ModuleType) or _has_plain(o, name):
                o = self.attribute(o, name)
            elif isinstance(o, (*private.OpNamespaces, private.OpOverloadPacket)):
                o = getattr(o, name)
            else:
                break
            at += 1
        name = self.all[at].opname if at < len(self.all) else ""
        if isinstance(o, types.ModuleType) and name in ("STORE_ATTR", "DELETE_ATTR"):
            self.set_attribute(o, self.all[at].argval)
        elif isinstance(o, _CONTAINERS) and self.is_read(at):
            self.look.touch(o, False)
            for item in o.values() if isinstance(o, dict) else o:
                self.look.use(item)
        else:
            if isinstance(o, type) and not called and not _is_of(o, _TRUSTED):
                self.look.used.append(o)  # not only to make an instance
            self.look.use(o)

    def attribute(self, o: Any, name: str) -> Any:
        if not isinstance(o, types.ModuleType):
            self.look.touch(o, False)
            return inspect.getattr_static(o, name)
        if not _is_of(o, _TRUSTED):
            self.look.touch(vars(o), False, name)
        elif o is sys or (_is_of(o, _OPAQUE) and self.sets_state(name)):
            raise _Unknown(f"uses {o.__name__}.{name}")
        return getattr(o, name, None)

    def sets_state(self, name: str) -> bool:
        """Whether a function of torch's changes its state, for good and for everybody."""
        for_a_while = name == "set_grad_enabled" and any("WITH" in i.opname for i in self.all)
        setter = name.startswith(("set_", "_set_", "use_deterministic"))
        return setter and not for_a_while and name != "set_"

    def set_attribute(self, o: Any, name: str) -> None:
        if _is_of(o, _TRUSTED):
            raise _Unknown(f"sets {o.__name__}.{name}")
        self.look.touch(vars(o), True, name)

    def is_read(self, at: int) -> bool:
        """Whether all that is done to a container is to take one item, by a simple key."""
        above = 0
        for i in self.all[at:]:
            if i.opname in ("LOAD_FAST", "LOAD_CONST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
                above += 1
            elif i.opname in ("BINARY_SUBSCR", "CONTAINS_OP"):
                return above == (i.opname == "BINARY_SUBSCR")
            elif i.opname != "LOAD_ATTR" or above == 0:
                return False
        return False


def _has_plain(o: Any, name: str) -> bool:
    """Whether an attribute is just an entry of the instance's dict, or a plain value of a class."""
    cls = type(o)
    if cls is type and not _is_of(o, _TRUSTED):
        return isinstance(inspect.getattr_static(o, name, o), (int, float, str, type(None)))
    if _is_of(cls, _TRUSTED) or any("__getattribute__" in vars(c) for c in cls.__mro__[:-1]):
        return False
    return name in getattr(o, "__dict__", {}) and not any(name in vars(c) for c in cls.__mro__)


# -- from an operation to its kernels --


_DUMMIES: dict[str, Any] = {
    "TensorType": lambda: torch.empty(0),
    "IntType": lambda: 1,
    "FloatType": lambda: 1.5,
    "NumberType": lambda: 1,
    "BoolType": lambda: True,
    "StringType": lambda: "cpu",
    "OptionalType": lambda: None,
    "ListType": list,
}


def _kernel(op: Any, key: str) -> Any:
    """The function that would be called; it is not run. None: native code."""
    kernel = private.kernel_of(op, key)
    args, kwargs = [], {}
    for argument in op._schema.arguments:
        make = _DUMMIES.get(argument.type.kind())
        if kernel is None or make is None:
            raise _Unknown("is not known")
        if argument.kwarg_only:
            kwargs[argument.name] = make()
        else:
            args.append(make())
    try:
        return _engine.first_function(kernel, tuple(args), kwargs)
    except Exception:
        raise _Unknown("is not known") from None


def body_of(callable_: Any) -> tuple[str, str | None, tuple[Any, ...], bool] | None:
    """The callable's name, what it does that cannot be looked through, the places that it may
    touch, and whether code that writes to some runs on fakes, too; None if it touches none."""
    look, on_fakes = _Look(), _Look()
    name = getattr(callable_, "__qualname__", None) or str(callable_)
    try:
        look.use(callable_)
        on_fakes.fresh = look.fresh
        for function in (*look.faked, *(f for f in look.fakes if id(f) in look.seen)):
            on_fakes.use(function)
    except _Unknown as unknown:
        return name, str(unknown), (), True
    places = look.result()
    faked = any(place[1] for place in on_fakes.result())
    return (name, None, places, faked) if places else None


# -- from a class of tensors to its methods --

_METHODS = frozenset(
    words("""__torch_dispatch__ __torch_function__ __new__ __init__ __tensor_flatten__
          __tensor_unflatten__""")
)


def _names_in(code: Any) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


class _Class(_Look):
    """What the code of a class of tensors touches that torch calls, and what such code calls: any
    attribute of the class whose name it has."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self.plain: list[tuple[Any, str]] = []  # (class, name) of plain values
        self.own = [c for c in cls.__mro__ if not _is_of(c, _TRUSTED)]
        for c in self.own:
            self.seen[id(c)] = c
            self.touch(c, False)
        done: set[str] = set()
        wanted = set(_METHODS)
        while wanted:
            for name in wanted:
                self.use_all(name)
            done |= wanted
            functions = (f for f in self.seen.values() if isinstance(f, types.FunctionType))
            wanted = set().union(*(_names_in(f.__code__) for f in functions)) - done

    def use_all(self, name: str) -> None:
        for c in self.own:
            value = vars(c).get(name)
            if isinstance(value, _PLAIN):
                self.plain.append((c, name))
            for part in _parts(value):
                if name == "__init__":
                    self.fresh.add(id(part))
                self.use(part)


def _parts(value: Any) -> list[Any]:
    """The functions of a method or property, the values of a table."""
    if isinstance(value, classmethod | staticmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [f for f in (value.fget, value.fset, value.fdel) if f]
    return list(value.values()) if isinstance(value, dict) else [value]


_PLAIN = (int, float, str, bytes)


def dispatch_of(cls: type) -> tuple[Any, ...] | None:
    """As `body_of`, for a class with __torch_dispatch__: operations on its instances run its code.
    The last item: (owner, name) of the plain values that the code reads, of modules and classes."""
    name = f"{cls.__qualname__}.__torch_dispatch__"
    try:
        look = _Class(cls)
    except _Unknown as unknown:
        return name, str(unknown), (), True, ()
    places = look.result()
    names = (place[::2] for place in places if len(place) > 2)
    plain = (*look.plain, *(p for p in names if isinstance(p[0].get(p[1]), _PLAIN)))
    return (name, None, places, any(p[1] for p in places), plain) if places else None


GLUE = (body_of, dispatch_of)
