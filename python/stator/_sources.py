"""Where the inputs of a graph come from, as torch's backends want to know it."""

import collections
import re
from collections.abc import Callable
from typing import Any

from stator._versions import private


class PlaceSource(private.Source):
    """Where an input comes from, as Python text. Two are equal if their texts are."""

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def _name_template(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlaceSource) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"PlaceSource({self.text!r})"

    # Guards of shapes name it, and compiled graphs are kept on disk with their guards.
    def __reduce__(self) -> tuple[Any, ...]:
        return PlaceSource, (self.text,)


def _set_attribute(name: str, function: Callable[[PlaceSource], Any]) -> None:
    setattr(PlaceSource, name, function if private.is_source_method(name) else property(function))


_set_attribute("name", lambda source: source.text)
_set_attribute("guard_source", lambda source: private.GuardSource.LOCAL)

_LOCAL = re.compile(r"L\['(\w+)'\]")


def source(text: str) -> private.Source:
    local = _LOCAL.fullmatch(text)
    return private.LocalSource(local[1], is_input=True) if local else PlaceSource(text)


def sources(texts: list[str]) -> list[private.Source]:
    """One for each input. Two places may look the same (keys without a name, texts cut short), and
    backends know inputs by their sources: the later ones are numbered."""
    seen: collections.Counter[str] = collections.Counter()
    found = []
    for text in texts:
        seen[text] += 1
        found.append(source(text if seen[text] == 1 else f"{text} ({seen[text]})"))
    return found


# -- names of parameters --

_STEP = re.compile(r"\._(modules|parameters|buffers)\['([^']*)'\]")


def _path(text: str) -> tuple[str, list[str]] | None:
    """Where the outermost module is found, and the names on the way to a tensor that is a parameter
    or a buffer."""
    steps = list(_STEP.finditer(text))
    if not steps or steps[-1][1] == "modules" or steps[-1].end() != len(text):
        return None
    return text[: steps[0].start()], [step[2] for step in steps]


def parameters(
    texts: list[str], found: list[private.Source]
) -> tuple[dict[str, private.Source], dict[str, str]]:
    """The inputs that are parameters or buffers: by the names that the program has for them; and
    the names in their module, by flat ones."""
    names, flat = {}, {}
    for text, where in zip(texts, found, strict=True):
        if path := _path(text):
            root, steps = path
            local = _LOCAL.fullmatch(root)
            names[".".join((local[1] if local else root, *steps))] = where
            flat["_".join((re.sub(r"\W", "_", root), *steps))] = ".".join(steps)
    return names, flat
