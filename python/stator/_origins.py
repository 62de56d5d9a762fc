"""Where the nodes of a graph come from: lines of the program, or nodes of a `GraphModule` that is
traced again."""

import linecache
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch.fx

from stator import _words
from stator._versions import private

_CALLS = ("_wrapped_call_impl", "_call_impl")  # frames of every module's call

# GraphModules that were compiled, by the name of the file that their code is said to be of.
_modules: dict[str, weakref.ref[torch.fx.GraphModule]] = {}


def _is_shown(file: str, name: str) -> bool:
    """Stacks are for people: they have neither our frames nor those of every module's call."""
    return not file.startswith(_words.HERE) and not (name in _CALLS and _words.is_library(file))


def _text(file: str, line: int, function: str, text: str) -> str:
    name = function.rpartition(".")[2]
    if not _is_shown(file, name):
        return ""
    return f'  File "{file}", line {line}, in {name}\n    {text.strip()}\n'


def stack_trace(stack: Iterable[_words.Row]) -> str:
    return "".join(_text(*row, linecache.getline(*row[:2])) for row in stack)


# -- graphs that are traced again --


def _graph_modules(module: torch.nn.Module) -> Iterator[torch.fx.GraphModule]:
    return (part for part in module.modules() if isinstance(part, torch.fx.GraphModule))


def note(module: torch.nn.Module) -> None:
    """It is going to be compiled: what its graphs say of their nodes is kept. Modules that have no
    hash cannot be listed."""
    try:
        parts = list(_graph_modules(module))
    except TypeError:
        return
    for part in parts:
        code = getattr(part.forward, "__code__", None)
        if code is not None:
            _modules[code.co_filename] = weakref.ref(part, _forget)


def _forget(dead: weakref.ref[torch.fx.GraphModule]) -> None:
    for name in [name for name, known in _modules.items() if known is dead]:
        del _modules[name]


def _said(file: str, line: int) -> dict[str, Any] | None:
    """What the node of this line says."""
    module = _modules[file]()
    code = getattr(getattr(module, "forward", None), "__code__", None)
    if module is None or code is None or code.co_filename != file:
        return None
    at = (private.lines_of(module) or {}).get(line - code.co_firstlineno)
    return None if at is None else list(module.graph.nodes)[at].meta


def are_known() -> bool:
    """Whether there are graphs that may be traced again."""
    return bool(_modules)


class Traces:
    """The places of the operations of one graph, whose frames are mostly the same; `files`: those
    that they are in, whose lines are kept, since the text may be asked for when they are others."""

    def __init__(self, files: Iterable[str]) -> None:
        self._texts: dict[_words.Row, str] = {}
        self._lines = {file: linecache.getlines(file) for file in files}

    def _text(self, row: _words.Row) -> str:
        found = self._texts.get(row)
        if found is None:
            file, line, function = row
            lines = self._lines[file]
            text = lines[line - 1] if 1 <= line <= len(lines) else ""
            found = self._texts[row] = _text(file, line, function, text)
        return found

    def add(self, meta: dict[str, Any], stack: Iterable[_words.Row]) -> None:
        """Adds to what a node says the place of its operation."""
        rows = list(stack)
        meta["stack_trace"] = "".join(map(self._text, rows))
        _add_said(meta, rows)


def _add_said(meta: dict[str, Any], rows: list[_words.Row]) -> None:
    """A node that was made before says what it said then."""
    if _modules and rows[-1][0] in _modules:
        said = _said(rows[-1][0], rows[-1][1]) or {}
        meta.update({name: said[name] for name in private.KEPT_META if name in said})
