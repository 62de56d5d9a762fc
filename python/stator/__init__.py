"""Stator: a frame compiler that runs Python's own bytecode, in C, on CPython's own frames."""

import sys


def _require_supported_python() -> None:
    # The engine reads CPython's internals: on another version or build it must not even be loaded.
    name, version = sys.implementation.name, sys.version_info
    if name != "cpython" or not (3, 11) <= version[:2] <= (3, 13):
        found = f"{name} {version.major}.{version.minor}"
    elif "t" in sys.abiflags:
        found = f"a free-threaded CPython {version.major}.{version.minor}"
    else:
        return
    raise ImportError(f"stator supports CPython 3.11, 3.12 and 3.13; this is {found}")


_require_supported_python()

from stator._engine import dis, evaluate  # noqa: E402

TYPE_CHECKING = False  # mypy takes it for true; importing typing would cost more than all of Stator
if TYPE_CHECKING:
    from typing import Any

    from stator._compile import Unsupported, compile, reset
    from stator._explain import explain

__all__ = ["Unsupported", "compile", "dis", "evaluate", "explain", "reset"]
__version__ = "0.1.0"

_HOMES = {"Unsupported": "_compile", "compile": "_compile", "reset": "_compile"}
_HOMES["explain"] = "_explain"


def __getattr__(name: str) -> "Any":
    # What only compiling needs is imported when it is asked for.
    if name not in _HOMES:
        raise AttributeError(f"module 'stator' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"stator.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
