"""`stator.explain`: what compiling a call does, as an object that prints well."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from stator import _compile

Place = tuple[str, int, str]  # file, line, function


@dataclasses.dataclass
class Break:
    """Where a trace met something that it may not run."""

    reason: str  # id of its row
    sentence: str
    hint: str
    detail: str  # what it met
    stack: tuple[Place, ...]  # the chain of calls, outermost first
    code: CodeType  # that was being compiled

    @property
    def place(self) -> Place:
        code = self.code
        return (
            self.stack[-1]
            if self.stack
            else (code.co_filename, code.co_firstlineno, code.co_qualname)
        )

    def __str__(self) -> str:
        file, line, name = self.place
        what = f"{self.sentence}: {self.detail}" if self.detail else self.sentence
        return f"{file}:{line} in {name}: {what} [{self.reason}]"


@dataclasses.dataclass
class Entry:
    """One compiled version of one function, from its beginning or from a line on."""

    name: str
    file: str
    line: int
    graph: Any
    guards: list[tuple[str, str | None, int | None]]
    plan: str
    writes: list[str]
    number: int = 1  # in the order they were made
    offset: int = 0  # of the instruction that it begins with
    hits: int = 0  # runs, without the first
    why: Break | None = None  # the break it ends in
    recompiled: list[str] = dataclasses.field(default_factory=list)  # why others did not fit
    code: CodeType | None = None
    # name and line of each caller that it goes on in when the function has returned
    callers: list[tuple[str, int]] = dataclasses.field(default_factory=list)

    @property
    def inputs(self) -> list[str]:
        return list(self.graph.sources) if self.graph is not None else []

    @property
    def operations(self) -> int:
        return self.graph.operations if self.graph is not None else 0

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
        if self.recompiled:
            lines.append(f"  recompiled: {'; '.join(self.recompiled)}")
        if self.why is not None:
            lines.append(f"  break: {self.why}")
        return "\n".join(lines)


@dataclasses.dataclass(repr=False)
class Explanation:
    """What became of one call: its entries, and where and why they end."""

    name: str
    returned: Any  # None if it raised
    entries: list[Entry]
    reasons: list[str]  # of breaks and of what was not compiled, as text
    drops: list[Break]  # calls that were not compiled
    recompiles: list[str]
    exception: Exception | None = None

    @property
    def result(self) -> Any:
        """What the call returned; what it raised is raised here."""
        if self.exception is not None:
            raise self.exception
        return self.returned

    @property
    def graphs(self) -> list[Any]:
        return [entry.graph for entry in self.entries if entry.graph is not None]

    @property
    def guards(self) -> list[str]:
        return [guard for entry in self.entries for guard, _, _ in entry.guards]

    @property
    def writes(self) -> list[str]:
        return [write for entry in self.entries for write in entry.writes]

    @property
    def breaks(self) -> list[Break]:
        return [entry.why for entry in self.entries if entry.why is not None]

    def text(self, *, color: bool = False, full: bool = False) -> str:
        """For a terminal of 100 columns; `full` lists the guards of library code, too."""
        from stator import _draw_text

        return _draw_text.draw(self, color, full)

    def html(self) -> str:
        """One page that needs nothing else."""
        from stator import _draw_html

        return _draw_html.draw(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page."""
        text = self.html()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def __str__(self) -> str:
        return self.text(color=_has_colors(sys.stdout))

    def __repr__(self) -> str:
        counts = f"{len(self.entries)} entries, {len(self.breaks)} breaks"
        return f"<explanation of {self.name}: {counts}>"


def _has_colors(file: Any) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # none, or closed
        return False


def _break(row: dict[str, Any]) -> Break:
    return Break(**{**row, "detail": row["detail"] or "", "stack": row["stack"] or ()})


def _entry(row: dict[str, Any], number: int) -> Entry:
    names = ("name", "file", "line", "graph", "guards", "writes", "offset", "hits", "code")
    return Entry(
        **{name: row[name] for name in names},
        number=number,
        callers=row["callers"],
        plan=row["plan"].rstrip(),
        why=_break(row["why"]) if row["why"] else None,
        recompiled=row["misfits"] or [],
    )


def _explanation(f: Any, compiler: Any, result: Any, error: Exception | None) -> Explanation:
    rows = sorted(compiler.entries(), key=lambda row: row["number"])
    metrics = compiler.metrics
    return Explanation(
        name=getattr(f, "__qualname__", type(f).__qualname__),
        returned=result,
        entries=[_entry(row, i + 1) for i, row in enumerate(rows)],
        reasons=metrics["drops"] + metrics["breaks"],
        drops=[_break(row) for row in metrics["dropped"]],
        recompiles=metrics["recompiles"],
        exception=error,
    )


def explain(
    f: Callable[..., Any], *, backend: str | Callable[..., Any] = "eager"
) -> Callable[..., Explanation]:
    """`explain(f)(*args)` calls `f` compiled, once, and says what came of it.

    An exception of the call is part of that: `result` raises it. Further calls of the same
    `explain(f)` use the entries that are there, and tell why they do not fit.
    """
    compiler = _compile._compiler(backend, False, True)
    compiled = _compile._wrap(f, compiler)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        result, error = None, None
        try:
            result = compiled(*args, **kwargs)
        except Exception as exception:
            error = exception
        return _explanation(f, compiler, result, error)

    return call
