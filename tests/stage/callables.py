"""The C callables of the builtins and of the modules that a trace must know, by the names that the
table of rules has for them."""

import datetime
import importlib
import io
import sys
import types
from collections.abc import Iterator
from typing import Any

MODULES = """
builtins operator _operator math cmath itertools functools _functools collections _collections copy
types enum dataclasses contextlib typing _typing abc _abc re _sre random _random weakref _weakref
string _string heapq _heapq bisect _bisect struct _struct json json.encoder json.decoder
json.scanner _json warnings _warnings threading _thread contextvars _contextvars
""".split()
METHODS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8
# C types that Python code could change, and that look like classes made by it.
MUTABLE_C_TYPES = {"_random.Random", "_json.Scanner", "_json.Encoder"}
# What is taken over from modules that are not asked for, and a type that has no name of its own.
ELSEWHERE = {"random._urandom", "random._sha512", "threading._time"}
NAMELESS = {"builtins.symtable entry"}
# Records of sys that CPython clears at its end, and will not let anybody keep.
CLEARED = {"builtins.asyncgen_hooks", "builtins.UnraisableHookArgs"}


def modules() -> list[types.ModuleType]:
    found = []
    for name in MODULES:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            pass  # not in this Python
    return found


def full_name(t: type) -> str:
    return f"{t.__module__}.{t.__qualname__}"


def is_c_type(t: type) -> bool:
    if full_name(t) in MUTABLE_C_TYPES:
        return True
    return not t.__flags__ & HEAP_TYPE or bool(t.__flags__ & IMMUTABLE_TYPE)


def c_types() -> list[type]:
    """The builtin types, hidden ones too, and those of the modules."""
    wanted = {m.__name__ for m in modules()} | {"Token", "pickle"}
    todo, seen, found = [object], set(), []
    while todo:
        t = todo.pop()
        if t in seen:
            continue
        seen.add(t)
        todo += type.__subclasses__(t)
        if is_c_type(t) and t.__module__ in wanted and full_name(t) not in NAMELESS | CLEARED:
            found.append(t)
    return found


def callables() -> Iterator[tuple[str, Any]]:
    for module in modules():
        for name, value in vars(module).items():
            path = f"{module.__name__}.{name}"
            if isinstance(value, types.BuiltinFunctionType) and path not in ELSEWHERE:
                yield path, value
    for t in c_types():
        if "__new__" in vars(t):
            yield full_name(t), t
        for name, value in vars(t).items():
            inner = value.__func__ if isinstance(value, staticmethod) else value
            if isinstance(inner, METHODS):
                yield f"{full_name(t)}.{name}", inner


def owners() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for t in c_types():
        found.setdefault(full_name(t).removeprefix("builtins."), t)
    for module in modules():
        found.setdefault(module.__name__, module)
        for name, value in vars(module).items():
            if isinstance(value, type):
                found.setdefault(f"{module.__name__}.{name}", value)
    found["posix"] = sys.modules["posix"]
    found |= {"sys": sys, "_io.StringIO": io.StringIO, "datetime.date": datetime.date}
    return found


def resolve(path: str, known: dict[str, Any]) -> tuple[Any, type | None] | None:
    """The C callable of a row, and the type of its self; None for what this process lacks."""
    if path in known and isinstance(known[path], type):
        return known[path], None
    owner, _, name = path.rpartition(".")
    holder = known.get(owner or "builtins")
    if holder is None or name not in vars(holder):
        return None
    raw = vars(holder)[name]
    method = isinstance(holder, type) and isinstance(
        raw, types.MethodDescriptorType | types.WrapperDescriptorType
    )
    return (raw, holder) if method else (getattr(holder, name), None)
