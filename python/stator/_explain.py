"""`stator.explain`: what compiling a call does, as an object that prints well."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stator import _compile


@dataclasses.dataclass
class Entry:
    """One compiled version of one function."""

    name: str
    file: str
    line: int
    graph: Any
    guards: list[tuple[str, str | None, int | None]]
    plan: str
    writes: list[str]

    @property
    def inputs(self) -> list[str]:
        return list(self.graph.sources) if self.graph is not None else []

    def __str__(self) -> str:
        lines = [f"{self.name} ({self.file}:{self.line})", "  graph:"]
        text = str(self.graph) if self.graph is not None else "(no operation)"
        lines += [f"    {row}" for row in text.splitlines()]
        lines.append(f"  inputs: {', '.join(self.inputs) or '(none)'}")
        lines.append("  guards:")
        for guard, file, line in self.guards:
            where = f"  # {file}:{line}" if file else ""
            lines.append(f"    {guard}{where}")
        lines.append("  plan:")
        lines += [f"    {row}" for row in self.plan.splitlines()]
        lines.append(f"  writes: {', '.join(self.writes) or '(none)'}")
        return "\n".join(lines)


@dataclasses.dataclass
class Explanation:
    """What became of one call: its entries, and why something was not compiled."""

    result: Any
    entries: list[Entry]
    reasons: list[str]

    @property
    def graphs(self) -> list[Any]:
        return [entry.graph for entry in self.entries if entry.graph is not None]

    @property
    def guards(self) -> list[str]:
        return [guard for entry in self.entries for guard, _, _ in entry.guards]

    @property
    def writes(self) -> list[str]:
        return [write for entry in self.entries for write in entry.writes]

    def __str__(self) -> str:
        parts = [str(entry) for entry in self.entries]
        if self.reasons:
            parts.append("not compiled:\n" + "\n".join(f"  {reason}" for reason in self.reasons))
        return "\n\n".join(parts) or "nothing was compiled"


def _entry(row: dict[str, Any]) -> Entry:
    fields = {name: value for name, value in row.items() if name != "hits"}
    return Entry(**{**fields, "plan": row["plan"].rstrip()})


def explain(
    f: Callable[..., Any], *, backend: str | Callable[..., Any] = "eager"
) -> Callable[..., Explanation]:
    """`explain(f)(*args)` calls `f` compiled, once, and says what came of it."""
    compiler = _compile._compiler(backend, False, True)
    compiled = _compile._wrap(f, compiler)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        result = compiled(*args, **kwargs)
        entries = [_entry(row) for row in compiler.entries()]
        return Explanation(result, entries, compiler.metrics["drops"])

    return call
