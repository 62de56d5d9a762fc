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


def stack_trace(stack: Iterable[_words.Row]) -> str:
    lines = []
    for file, line, function in stack:
        name = function.rpartition(".")[2]
        if _is_shown(file, name):
            text = linecache.getline(file, line).strip()
            lines.append(f'  File "{file}", line {line}, in {name}\n    {text}\n')
    return "".join(lines)


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


def add(meta: dict[str, Any], stack: Iterable[_words.Row]) -> None:
    """Adds to what a node says the place of its operation; a node that was made before says what it
    said then."""
    rows = list(stack)
    meta["stack_trace"] = stack_trace(rows)
    if _modules and rows[-1][0] in _modules:
        said = _said(rows[-1][0], rows[-1][1]) or {}
        meta.update({name: said[name] for name in private.KEPT_META if name in said})
