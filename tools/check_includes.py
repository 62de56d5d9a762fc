"""Checks what C compilers do not: the order of rooms, who knows a Python version, the source lists.

- A room includes itself and earlier rooms; paths are written from the repository root.
- At the head of a file, includes stand in the order of rooms; the header that the file implements
  may come first.
- PY_VERSION_HEX and its kin appear only in src/py.
- A pointer to a function that one room calls and another sets is declared in UPCALLS only.
- Every source file is listed in the meson.build that builds or installs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = [
    *("base", "report", "py", "code", "interp", "graph", "guard", "world"),
    *("attr", "call", "ops", "trace", "torch", "plan", "cache", "compile", "hook"),
]
INCLUDE = re.compile(r'\s*#\s*include\s+(?:"(?P<own>[^"]+)"|<(?P<system>[^>]+)>)')
UPCALLS = "src/base/upcalls.h"
POINTER = re.compile(r"\s*extern\b[^;]*\(\s*\*\s*(\w+)\)\s*\(|\s*extern\s+(\w+)\s+\w+\s*;")
POINTER_TYPE = re.compile(r"typedef\b[^;]*\(\s*\*\s*(\w+)\)\s*\(")
VERSION = re.compile(r"\bPY_(VERSION_HEX|MAJOR_VERSION|MINOR_VERSION|MICRO_VERSION)\b")


def room_of(path: str) -> int | None:
    """The place of a file's room in the order, len(ROOMS) for src/ itself, None for no room."""
    parts = path.split("/")
    if parts[0] != "src":
        return None
    if len(parts) == 2:
        return len(ROOMS)
    return ROOMS.index(parts[1]) if parts[1] in ROOMS else None


def includes(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line number, path and whether at the head of the file, for each include of ours."""
    head = True
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match and match["own"]:
            yield number, match["own"], head
        elif not match and line.strip() and not line.lstrip().startswith(("//", "#")):
            head = False


def check_file(path: str, text: str) -> Iterator[str]:
    own = room_of(path)
    if own is None:
        yield f"{path}:1: not in a room ({', '.join(ROOMS)})"
        return
    last, first = -1, True
    for number, included, head in includes(text):
        room = room_of(included)
        if room is None:
            yield f'{path}:{number}: "{included}" must name a room, from the repository root'
            continue
        if room > own:
            yield f"{path}:{number}: {ROOMS[own]} may not include {ROOMS[room]}, a later room"
        own_header = first and room == own and path.endswith(".c")
        if head and not own_header:
            if room < last:
                yield f"{path}:{number}: {ROOMS[room]} comes before {ROOMS[last]}"
            last = room
        first = False
    if not path.startswith("src/py/"):
        for number, line in enumerate(text.splitlines(), 1):
            if VERSION.search(line):
                yield f"{path}:{number}: only src/py knows a Python version"


def check_upcalls(files: dict[str, str]) -> Iterator[str]:
    """Pointers to functions declared elsewhere; CPython's own types of such end in `func`."""
    types = {name for text in files.values() for name in POINTER_TYPE.findall(text)}
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            match = POINTER.match(line)
            pointer = match and (match[1] or match[2] in types or match[2].endswith("func"))
            if pointer and path != UPCALLS:
                yield f"{path}:{number}: a pointer that another room sets belongs in {UPCALLS}"


def check_lists(files: dict[str, str]) -> Iterator[str]:
    """Files that no meson.build names; a C file that another one includes needs no line."""
    built = (ROOT / "src" / "meson.build").read_text()
    included = {name for text in files.values() for _, name, _ in includes(text)}
    for path in files:
        listed = f"'{path.removeprefix('src/')}'" in built
        if path.endswith(".c") and path not in included and not listed:
            yield f"{path}:1: not listed in src/meson.build"
    package = ROOT / "python" / "stator"
    installed = (package / "meson.build").read_text()
    for file in sorted(package.glob("*.py*")):
        if f"'{file.name}'" not in installed:
            yield f"python/stator/{file.name}:1: not listed in python/stator/meson.build"


def main() -> int:
    paths = sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in {".c", ".h", ".def"})
    files = {p.relative_to(ROOT).as_posix(): p.read_text() for p in paths}
    problems = [problem for path, text in files.items() for problem in check_file(path, text)]
    problems += check_upcalls(files)
    problems += check_lists(files)
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
