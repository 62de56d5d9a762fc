"""`torch._dynamo.config.replay_record_enabled`: the call that failed to compile is written to a
file, and `stator.replay` makes it again, in another process if need be."""

from __future__ import annotations

import importlib
import io
import itertools
import marshal
import os
import pickle
import re
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stator import _engine

if TYPE_CHECKING:
    from stator._explain import Explanation

_HEAD = b"stator record\n"


class Absent:
    """Stands for a value that could not be written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<not recorded: {self.text}>"


# -- writing --


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _globals_of(function: types.FunctionType) -> dict[str, Any]:
    """Those that its code names."""
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    return {name: function.__globals__[name] for name in sorted(names & set(function.__globals__))}


def _cells(function: types.FunctionType) -> tuple[Any, ...]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(Absent("an empty cell"))
    return tuple(found)


def _is_found(function: types.FunctionType) -> bool:
    """Whether another process can import it."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function and function.__module__ != "__main__"


class _Pickler(pickle.Pickler):
    """Knows modules, and functions that no module has."""

    def reducer_override(self, o: Any) -> Any:
        if isinstance(o, types.ModuleType):
            return importlib.import_module, (o.__name__,)
        if isinstance(o, types.FunctionType) and not _is_found(o):
            return _function, (marshal.dumps(o.__code__), o.__name__, len(_cells(o))), _parts(o), \
                None, None, _fill  # fmt: skip
        return NotImplemented


def _parts(function: types.FunctionType) -> dict[str, Any]:
    return {
        "globals": {name: _written(value) for name, value in _globals_of(function).items()},
        "cells": tuple(map(_written, _cells(function))),
        "defaults": function.__defaults__,
        "keyword_defaults": function.__kwdefaults__,
    }


def _dumped(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


_writing: set[int] = set()  # what is being tried: a cycle leads back to it


def _written(value: Any) -> Any:
    """The value, or what stands for it where it cannot be written."""
    if id(value) in _writing:
        return value
    _writing.add(id(value))
    try:
        _dumped(value)
        return value
    except Exception as error:
        return Absent(f"{type(value).__name__}: {error}")
    finally:
        _writing.discard(id(value))


def dump(function: types.FunctionType, variables: dict[str, Any]) -> bytes:
    """A call as bytes: the function with what its code reads, and its variables."""
    values = {name: _written(value) for name, value in variables.items()}
    return _HEAD + _dumped(
        {
            "python": sys.version_info[:2],
            "name": function.__qualname__,
            "file": function.__code__.co_filename,
            "function": (
                marshal.dumps(function.__code__),
                function.__name__,
                len(_cells(function)),
            ),
            "parts": _parts(function),
            "variables": values,
        }
    )


def _new_path(folder: str, name: str) -> str:
    """That no file has."""
    os.makedirs(folder, exist_ok=True)
    stem = re.sub(r"\W+", "_", name).strip("_")
    return next(
        path
        for number in itertools.count()
        if not os.path.exists(path := os.path.join(folder, f"{stem}_{number}.record"))
    )


def record(folder: str, error: BaseException, offset: int) -> str | None:
    """Writes the call that this thread fails to compile, and says so in the error. None: there is
    none, or it had begun before."""
    at_work = _engine.frame_at_work()
    if at_work is None or offset > 0:
        return None
    function, variables = at_work
    path = _new_path(folder, f"{function.__name__}_{type(error).__name__}")
    with open(path, "xb") as file:
        file.write(dump(function, variables))
    error.record_filename = path  # type: ignore[attr-defined]
    error.add_note(f"The call was written to {path}; stator.replay({path!r}) makes it again.")
    return path


# -- reading --


def _function(code: bytes, name: str, cells: int) -> types.FunctionType:
    closure = tuple(types.CellType() for _ in range(cells))
    scope = {"__builtins__": __builtins__, "__name__": "stator_replay"}
    return types.FunctionType(marshal.loads(code), scope, name, None, closure)


def _fill(function: types.FunctionType, parts: dict[str, Any]) -> None:
    function.__globals__.update(parts["globals"])
    for cell, value in zip(function.__closure__ or (), parts["cells"], strict=True):
        cell.cell_contents = value
    function.__defaults__ = parts["defaults"]
    function.__kwdefaults__ = parts["keyword_defaults"]


def load(path: str | os.PathLike[str]) -> tuple[types.FunctionType, dict[str, Any]]:
    """The function, and its variables by name."""
    with open(path, "rb") as file:
        if file.read(len(_HEAD)) != _HEAD:
            raise ValueError(f"{os.fspath(path)} was not written by Stator")
        data = pickle.load(file)
    if data["python"] != sys.version_info[:2]:
        version = ".".join(map(str, data["python"]))
        raise ValueError(f"{os.fspath(path)} was written by Python {version}, whose code differs")
    function = _function(*data["function"])
    _fill(function, data["parts"])
    return function, data["variables"]


def _arguments(code: types.CodeType, variables: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    by_position = code.co_argcount
    names = code.co_varnames
    args = [variables[name] for name in names[:by_position]]
    named = names[by_position : (at := by_position + code.co_kwonlyargcount)]
    kwargs = {name: variables[name] for name in named}
    if code.co_flags & 4:  # *args
        args += variables[names[at]]
        at += 1
    if code.co_flags & 8:  # **kwargs
        kwargs |= variables[names[at]]
    return args, kwargs


def replay(path: str | os.PathLike[str]) -> Explanation:
    """Makes the recorded call again, compiled with backend "eager", and explains what came of it.
    Only for files that you trust: they are pickles."""
    from stator import _explain

    function, variables = load(path)
    args, kwargs = _arguments(function.__code__, variables)
    return _explain.explain(function)(*args, **kwargs)
