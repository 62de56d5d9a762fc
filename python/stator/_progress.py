"""`stator.progress`: one line for each entry that is being compiled, while it is.

In a terminal the line is written again as things go on; elsewhere each step is a line of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from types import CodeType
from typing import Any

from stator import _words

_TICK = 0.5  # seconds between two looks at a backend that runs

_file: Any = None  # where to write; None: nobody wants to see it
_thread = threading.local()  # the lines of entries that are being compiled, innermost last
_lock = threading.Lock()


def progress(on: bool = True, file: Any = None) -> None:
    """Shows on `file` (the error output) what is being compiled: `traced 120 operations in 0.003 s,
    backend running 2 s`. `STATOR_PROGRESS=1` in the environment does the same."""
    global _file
    _file = (sys.stderr if file is None else file) if on else None


def is_on() -> bool:
    return _file is not None


class _Line:
    def __init__(self, code: CodeType, offset: int) -> None:
        self.name = _words.place_of(code, offset).replace("'", "")
        self.key = code, offset
        self.start = time.monotonic()
        self.said = "tracing"
        self.done = threading.Event()

    def show(self, text: str, last: bool = False) -> None:
        file = _file
        if file is None:
            return
        with _lock, contextlib.suppress(OSError, ValueError):  # a closed file is nobody's
            if not _is_terminal(file):
                file.write(f"stator: {self.name}: {text}\n")
            else:
                file.write(f"\r\x1b[Kstator: {self.name}: {text}" + ("\n" if last else ""))
            file.flush()

    def seconds(self) -> str:
        return f"{time.monotonic() - self.start:.3f} s"


def _is_terminal(file: Any) -> bool:
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):
        return False


def _lines() -> list[_Line]:
    if not hasattr(_thread, "lines"):
        _thread.lines = []
    lines: list[_Line] = _thread.lines
    return lines


def begin(code: CodeType, offset: int) -> None:
    """A trace begins."""
    if _file is None:
        return
    lines = _lines()
    del lines[:-8]  # of compiles that never ended
    lines.append(_Line(code, offset))
    lines[-1].show("tracing")


def _tick(line: _Line, start: float) -> None:
    while not line.done.wait(_TICK):
        line.show(f"{line.said}, backend running {time.monotonic() - start:.0f} s")


@contextlib.contextmanager
def backend(operations: int) -> Iterator[None]:
    """A backend has a graph of so many operations."""
    lines = _lines()
    if _file is None or not lines:
        yield
        return
    line = lines[-1]
    line.said = f"traced {operations} operation{'s' * (operations != 1)} in {line.seconds()}"
    line.show(f"{line.said}, backend running")
    line.done.clear()
    if _is_terminal(_file):
        threading.Thread(target=_tick, args=(line, time.monotonic()), daemon=True).start()
    try:
        yield
    finally:
        line.done.set()


def _end(code: CodeType, offset: int, text: str) -> None:
    lines = _lines()
    for i in range(len(lines) - 1, -1, -1):
        if lines[i].key[0] is code and lines[i].key[1] == offset:
            lines[i].show(f"{text} in {lines[i].seconds()}", last=True)
            del lines[i:]
            return


def done(code: CodeType, offset: int, operations: int) -> None:
    if _file is not None:
        _end(code, offset, f"{operations} operation{'s' * (operations != 1)}, done")


def failed(code: CodeType, offset: int, why: str) -> None:
    if _file is not None:
        _end(code, offset, f"not compiled ({why})")


if os.environ.get("STATOR_PROGRESS", "") not in ("", "0"):
    progress()
