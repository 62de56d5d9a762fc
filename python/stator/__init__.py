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

    from stator._compile import Unsupported, compile, install, reset, uninstall
    from stator._explain import explain
    from stator._marks import (
        allow_in_graph,
        disable,
        error_on_graph_break,
        graph_break,
        is_compiling,
        skip,
    )
    from stator._progress import progress
    from stator._record import replay
    from stator._repro import repro
    from stator._stance import ignore_tools, set_stance, share_layers

__all__ = [
    "Unsupported",
    "allow_in_graph",
    "compile",
    "dis",
    "disable",
    "error_on_graph_break",
    "evaluate",
    "explain",
    "graph_break",
    "ignore_tools",
    "install",
    "is_compiling",
    "progress",
    "replay",
    "repro",
    "reset",
    "set_stance",
    "share_layers",
    "skip",
    "uninstall",
]
__version__ = "0.1.0"

_HOMES = {"Unsupported": "_compile", "compile": "_compile", "reset": "_compile"}
_HOMES |= {"explain": "_explain", "install": "_compile", "uninstall": "_compile"}
_HOMES |= {"allow_in_graph": "_marks", "disable": "_marks", "error_on_graph_break": "_marks"}
_HOMES |= {"graph_break": "_marks", "is_compiling": "_marks", "skip": "_marks"}
_HOMES |= {"ignore_tools": "_stance", "set_stance": "_stance", "share_layers": "_stance"}
_HOMES |= {"progress": "_progress", "replay": "_record"}
_HOMES |= {"repro": "_repro"}


def __getattr__(name: str) -> "Any":
    # What only compiling needs is imported when it is asked for.
    if name not in _HOMES:
        raise AttributeError(f"module 'stator' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"stator.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    # So that tab completion and help() know what was not asked for yet.
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "sys"})
