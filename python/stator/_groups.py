"""Rows of what programs do with `torch.distributed`: questions about process groups, placements,
and functions of tensors that also take a mesh and placements."""

from collections.abc import Iterator
from typing import Any

import torch

from stator._rows import Row
from stator._versions import private


def rows() -> tuple[tuple[Any, Row], ...]:
    if not torch.distributed.is_available():
        return ()
    by_name: tuple[Any, Row] = (private.resolve_process_group, ("group_by_name", None))
    if not private.has(private.DTENSOR):
        return (by_name,)
    return (
        by_name,
        *((cls, ("placement", None)) for cls in private.placements()),
        *((function, ("bound", None)) for function in private.functions_of_meshes()),
    )


def questions() -> Iterator[tuple[str, Any, Row]]:
    """What is asked of process groups, with its path: pybind11's functions do not know theirs."""
    if torch.distributed.is_available():
        for path, function in private.questions_of_groups().items():
            yield path, function, ("group", None)


def held_manner(o: Any) -> str | frozenset[str] | None:
    """How an object that a tensor holds is guarded, where the engine could not tell: "same",
    "equal", or all but these attributes."""
    if isinstance(o, torch.SymInt):  # a ragged size: only which of them are one and the same
        return frozenset({"node"})
    return private.held_manner(o) if private.has(private.DTENSOR) else None


def bound(function: Any, args: list[Any], names: tuple[str, ...]) -> Any:
    """The function with these arguments, but for those that are `...`."""
    split = len(args) - len(names)

    def call(*tensors: Any) -> Any:
        given = iter(tensors)
        all_ = [next(given) if arg is ... else arg for arg in args]
        return function(*all_[:split], **dict(zip(names, all_[split:], strict=True)))

    call.__name__ = call.__qualname__ = function.__name__
    return call


# What the engine calls by name.
GLUE = (held_manner, bound)
