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

__all__ = ["dis", "evaluate"]
__version__ = "0.1.0"
