"""What people say about sizes: marks on tensors, and names of places in torch's settings.

Marks are attributes that torch's functions set on a tensor; the engine reads and guards them
(`src/torch/dims.c`). Here are the parts that need words: what is not honoured, and the errors.
"""

from __future__ import annotations

import functools
import linecache
import logging
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

log = logging.getLogger("stator")

# -- what is not honoured: each is said once --

_said: set[str] = set()


def say_once(what: str, text: str, *args: Any) -> None:
    if what not in _said:
        _said.add(what)
        log.warning(text, *args)


# Attributes of marked tensors, and what becomes of each.
_NOT_HONOURED = {
    "_dynamo_shape_ids": "mark_unbacked(%s, shape_id=...): that sizes are the same is not "
    "asserted; it is guarded where the program relies on it.",
    "_dynamo_unbacked_bounds": "mark_unbacked(%s, min=, max=): the bounds are not checked.",
    "_specialize_on": "mark_dynamic(%s, specialize_on=...): one graph is compiled for all sizes, "
    "and none for those that are named.",
}


def _unhonoured(own: dict[str, Any]) -> Iterator[str]:
    for attribute in _NOT_HONOURED:
        found = own.get(attribute)
        if isinstance(found, dict) and not any(found.values()):
            continue
        if found:
            yield attribute


# Marks that AOTAutograd and jagged tensors put on are no wish of anybody's.
_BY_USERS = ("_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices",
             "_dynamo_unbacked_indices", "_dynamo_strict_unbacked_indices",
             "_dynamo_static_indices")  # fmt: skip


def marked(tensor: Any, name: str, can: bool) -> dict[int, tuple[int | None, int | None]]:
    """The ranges that a tensor's marks promise. C calls it when a marked tensor is traced."""
    own = vars(tensor)
    for attribute in _unhonoured(own):
        say_once(attribute, _NOT_HONOURED[attribute], name)
    if not can and any(mark in own for mark in _BY_USERS):
        say_once(
            f"marks of {name}",
            "The marks on the sizes of %s have no effect, and the sizes are compiled as they are: "
            "it is a parameter (torch._dynamo.config.force_parameter_static_shapes), or the trace "
            "began under autocast, inference mode or other state of torch's.",
            name,
        )
    ranges: dict[int, tuple[int | None, int | None]] = {}
    for given in own.get("_dynamo_dynamic_range", ()):
        low, high = ranges.get(given.dim, (None, None))
        ranges[given.dim] = _narrower(max, low, given.min), _narrower(min, high, given.max)
    return ranges


def _narrower(choose: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    return choose(a, b) if a is not None and b is not None else b if a is None else a


# Settings of torch's about sizes that have no effect: module, name, the values that ask for
# something, what Stator does.
_SETTINGS: tuple[tuple[str, str, Callable[[Any], bool], str], ...] = (
    (
        "torch._dynamo.config",
        "automatic_dynamic_shapes_mark_as",
        lambda value: value not in ("dynamic", "unbacked"),
        "sizes that change are left open as dynamic ones",
    ),
    (
        "torch.fx.experimental._config",
        "backed_size_oblivious",
        bool,
        "sizes 0 and 1 are compiled on their own",
    ),
    (
        "torch.compiler.config",
        "job_id",
        bool,
        "no profile of sizes that changed is kept for other processes "
        "(automatic_dynamic_local_pgo, automatic_dynamic_remote_pgo)",
    ),
)


def say_settings() -> None:
    """Which of them are set. Called when something is compiled."""
    for module, name, asks, instead in _SETTINGS:
        value = getattr(sys.modules.get(module), name, None)
        if value is not None and asks(value):
            say_once(f"{module}.{name}", "%s.%s = %r has no effect: %s.",
                     module, name, value, instead)  # fmt: skip


def forbids_breaks() -> bool:
    """Whether it is an error, and no break, if a value is needed that only the graph knows."""
    config = sys.modules.get("torch.fx.experimental._config")
    return bool(getattr(config, "no_data_dependent_graph_break", False))


# -- promises that were not kept --

_ENDLESS = 1 << 62


def _end(number: int) -> str:
    return "int_oo" if number >= _ENDLESS else "-int_oo" if number <= -_ENDLESS else str(number)


def _range_text(place: str, low: int, high: int) -> str:
    ends = ([f"{low} <= {place}"] if low > -_ENDLESS else []) + (
        [f"{place} <= {high}"] if high < _ENDLESS else []
    )
    return " and ".join(ends)


def _stack_text(stack: Any) -> str:
    lines = []
    for file, line, name in stack or ():
        lines.append(f'  File "{file}", line {line}, in {name}')
        if text := linecache.getline(file, line).strip():
            lines.append(f"    {text}")
    return "\n\nUser stack:\n" + "\n".join(lines) if lines else ""


def _settled(place: str, value: int, whose: str, stack: Any) -> str:
    """Torch's words, which people look for; and who it was."""
    backend = "\n    (The backend needed the value, not the program.)" if whose == "backend" else ""
    return (
        f"You marked {place} as dynamic but your code specialized it to be a constant ({value}). "
        "If you're using mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using "
        "Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
        f"{backend}{_stack_text(stack)}"
    )


def _narrowed(place: str, low: int, high: int, now_low: int, now_high: int) -> str:
    return (
        f"Not all values of {place} in the specified range {_range_text(place, low, high)} satisfy "
        f"the generated guard {_range_text(place, now_low, now_high)}"
    )


_WORDS: dict[str, Callable[..., str]] = {"settled": _settled, "narrowed": _narrowed}


def violation(rows: list[tuple[Any, ...]]) -> Exception:
    """The error for sizes that are not what marks promised of them. Rows begin with the kind."""
    from stator._versions import private

    kind, *what = rows[0]
    if kind == "outside":
        value, low, high = what
        error: Exception = private.ConstraintViolationError(
            f"{value} not in range [{_end(low)}, {_end(high)}]"
        )
        return error
    places = ", ".join(row[1] for row in rows)
    lines = "\n".join(f"  - {_WORDS[row[0]](*row[1:])}" for row in rows)
    error = private.ConstraintViolationError(
        f"Constraints violated ({places})! For more information, run with "
        f'TORCH_LOGS="+dynamic".\n{lines}'
    )
    return error


GLUE = (marked, violation)

# -- names of places in torch's settings --

# Bits of src/world/number.h.
_VALUE, _FIRST, _DIMS, _UNHINTED = 1 << 30, 1 << 28, 8, 16

_SUFFIX = re.compile(r"(.+):(\d+)")


@functools.lru_cache
def _patterns(setting: str) -> tuple[tuple[str, int | None], ...]:
    rows = (_SUFFIX.fullmatch(part) or part for part in setting.replace(" ", "").split(",") if part)
    return tuple((row, None) if isinstance(row, str) else (row[1], int(row[2])) for row in rows)


@functools.lru_cache
def _values(setting: str) -> frozenset[int]:
    return frozenset(int(part) for part in setting.replace(" ", "").split(",") if part)


def _is_named(pattern: str, name: str) -> bool:
    return pattern == name or re.match(pattern, name) is not None


def _bits_by_name(setting: str, name: str, sizes: tuple[int, ...] | None) -> int:
    dims = [dim for pattern, dim in _patterns(setting) if _is_named(pattern, name)]
    if not dims:
        return 0
    if sizes is None:
        return _VALUE | _FIRST
    every = range(min(len(sizes), _DIMS))
    return sum(1 << d for d in every if None in dims or d in dims) | _FIRST


class Named:
    """What `dynamic_sources`, `unbacked_sources` and `dynamic_values` say about a place.

    An entry is a name or a regular expression, and may end in `:N`, which means dimension N.
    """

    def __init__(self, dynamic: str, unbacked: str, values: str) -> None:
        self.dynamic, self.unbacked, self.values = dynamic, unbacked, values

    def __call__(self, name: str, there: int | float | tuple[int, ...]) -> int:
        sizes = there if isinstance(there, tuple) else None
        bits = _bits_by_name(self.dynamic, name, sizes)
        if unbacked := _bits_by_name(self.unbacked, name, sizes):
            if sizes is None:
                say_once(
                    f"unbacked_sources {name}",
                    "torch.compiler.config.unbacked_sources names %s, which is a number: it is "
                    "left open as by dynamic_sources, and what the program decides about it is "
                    "guarded.",
                    name,
                )
            bits |= unbacked | (unbacked & (1 << _DIMS) - 1) << _UNHINTED
        values = _values(self.values)
        if sizes is None:
            return bits | (_VALUE if type(there) is int and there in values else 0)
        return bits | sum(1 << d for d, size in enumerate(sizes[:_DIMS]) if size in values)


def named() -> Named | None:
    """As the settings are now; None: they name no place."""
    config = getattr(sys.modules.get("torch.compiler"), "config", None)
    names = ("dynamic_sources", "unbacked_sources", "dynamic_values")
    settings = [getattr(config, name, "") for name in names]
    return Named(*settings) if any(settings) else None
