"""What the nodes of a graph say of themselves (`node.meta`), put in words when somebody asks: most
backends of people's own look at the nodes, and at little else."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

_filling = threading.RLock()


class Said:
    """What a node says: made at most once, however many dicts are made of it."""

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make: Callable[[], dict[str, Any]] | None = make
        self._found: dict[str, Any] = {}

    def get(self) -> dict[str, Any]:
        if self._make is not None:
            self._found = self._make()
            self._make = None
        return self._found


class LateDict(dict[str, Any]):
    """A dict that is filled when it is first looked at or changed, by whatever method. It is copied
    without a look, as graphs copy their nodes; other copies are plain dicts."""

    __slots__ = ("_said",)

    def __init__(self, said: Said) -> None:
        self._said: Said | None = said

    def __copy__(self) -> dict[str, Any]:
        with _filling:
            if self._said is None:
                return dict(self)
            made = LateDict(self._said)
            dict.update(made, ((key, dict.__getitem__(self, key)) for key in dict.__iter__(self)))
            return made

    copy = __copy__

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (dict(self),)


def _fill(late: LateDict) -> None:
    with _filling:
        if late._said is not None:
            for key, value in late._said.get().items():
                dict.setdefault(late, key, value)
            late._said = None


def put_before(meta: dict[str, Any], key: str, value: Any) -> None:
    """Puts an item into a dict that may be late, which does not fill it."""
    dict.__setitem__(meta, key, value)


def _looking(name: str) -> Any:
    plain = getattr(dict, name)

    def look(self: LateDict, *args: Any, **kwargs: Any) -> Any:
        if self._said is not None:
            _fill(self)
        return plain(self, *args, **kwargs)

    look.__name__ = name
    return look


# All of dict's methods that look at items or change them. C code that merges dicts reads the memory
# of a dict, unless the dict's class has an `__iter__` of its own.
LOOKS = (
    "__contains__", "__delitem__", "__eq__", "__ge__", "__getitem__", "__gt__", "__ior__",
    "__iter__", "__le__", "__len__", "__lt__", "__ne__", "__or__", "__repr__", "__reversed__",
    "__ror__", "__setitem__", "clear", "get", "items", "keys", "pop", "popitem", "setdefault",
    "update", "values",
)  # fmt: skip
for _name in LOOKS:
    setattr(LateDict, _name, _looking(_name))
