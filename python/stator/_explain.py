"""`stator.explain`: what compiling a call does, as an object that prints well."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

from stator import _compile, _policy, _words

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

    def data(self) -> dict[str, Any]:
        """The same as what JSON knows."""
        names = ("reason", "sentence", "detail", "hint")
        stack = [list(row) for row in self.stack or (self.place,)]
        return {**{name: getattr(self, name) for name in names}, "stack": stack}


@dataclasses.dataclass
class Reason:
    """Why an older entry did not fit."""

    text: str  # in the words of the program
    guard: str  # what failed, as the engine says it
    file: str | None = None  # the line that had made the older entry rely on it
    line: int | None = None


_GUARD = ("text", "file", "line")
_OPEN_SIZES = re.compile(r"(.+) is an? \S+ of .*?, size \(([^)]*)\)")
_OPEN_NUMBER = re.compile(r"type\((.+)\) is (?:int|float|bool)")


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
    because: list[Reason] = dataclasses.field(default_factory=list)  # `recompiled`, with places
    times: dict[str, float] = dataclasses.field(default_factory=dict)  # stage → seconds

    @property
    def open_numbers(self) -> list[str]:
        """Sizes and numbers that may have other values in the next call."""
        found = []
        inputs = set(self.inputs)
        for text, _, _ in self.guards:
            if sizes := _OPEN_SIZES.match(text):
                place = _words.place_text(sizes[1], self.code)
                dims = [part.strip() for part in sizes[2].split(",") if part.strip()]
                found += [f"size {d} of {place}" for d, part in enumerate(dims) if part == "any"]
            elif (number := _OPEN_NUMBER.fullmatch(text)) and number[1] in inputs:
                found.append(_words.place_text(number[1], self.code))
        return found

    def data(self) -> dict[str, Any]:
        """The same as what JSON knows."""
        names = ("number", "name", "file", "line", "offset", "hits", "plan", "writes", "inputs",
                 "operations", "callers", "times", "open_numbers")  # fmt: skip
        return {
            **{name: getattr(self, name) for name in names},
            "graph": None if self.graph is None else str(self.graph),
            "guards": [
                dict(zip(("text", "file", "line"), row, strict=True)) for row in self.guards
            ],
            "recompiled": [dataclasses.asdict(reason) for reason in self.because],
            "break": None if self.why is None else self.why.data(),
        }

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

    def data(self) -> dict[str, Any]:
        """All of it as dicts, lists, texts and numbers."""
        error = self.exception
        return {
            "name": self.name,
            "exception": None if error is None else f"{type(error).__name__}: {error}",
            "entries": [entry.data() for entry in self.entries],
            "not_compiled": [drop.data() for drop in self.drops],
            "times": self.times,
        }

    def json(self, indent: int | None = None) -> str:
        """`data()` as JSON."""
        return json.dumps(self.data(), indent=indent)

    @property
    def times(self) -> dict[str, float]:
        """Seconds for each stage: the traces, the backend, and what comes after it."""
        total: dict[str, float] = {}
        for entry in self.entries:
            for stage, seconds in entry.times.items():
                total[stage] = total.get(stage, 0.0) + seconds
        return total

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


def _because(reasons: list[str], older: list[Entry], code: CodeType | None) -> list[Reason]:
    """Each reason once, with the line of the guard that failed."""
    found: dict[str, Reason] = {}
    for reason in reasons:
        words = _words.in_words(reason, code)
        if words not in found:
            found[words] = Reason(words, reason, *_place_of(reason, older))
    return sorted(found.values(), key=lambda reason: len(reason.text))


def _place_of(reason: str, older: list[Entry]) -> tuple[str | None, int | None]:
    guard = reason.partition(": now ")[0]
    tensor = re.match(r"tensor '(\w+)(.*)' (?:size|stride)", reason)
    place = f"L['{tensor[1]}']{tensor[2]}" if tensor else reason.partition(" is now ")[0]
    start = f"{place} is a"
    for entry in reversed(older):
        for text, file, line in entry.guards:
            if text == guard or text.startswith(start):
                known = file is not None and not file.startswith(_words.HERE)
                return (file, line) if known else (None, None)
    return None, None


def _entry(row: dict[str, Any], number: int, older: list[Entry], times: Any) -> Entry:
    names = ("name", "file", "line", "graph", "guards", "writes", "offset", "hits", "code")
    place = row["code"], row["offset"]
    same = [entry for entry in older if (entry.code, entry.offset) == place]
    return Entry(
        **{name: row[name] for name in names},
        number=number,
        callers=row["callers"],
        plan=row["plan"].rstrip(),
        why=_break(row["why"]) if row["why"] else None,
        recompiled=row["misfits"] or [],
        because=_because(row["misfits"] or [], same, row["code"]),
        times=times.get(row["number"], {}),
    )


class _Timed(_policy.Policy):
    """Notes how long each entry took to make."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, dict[str, float]] = {}  # by the entry's number
        self.began = self.backend_began = self.backend_ended = 0.0

    def miss(self, code: CodeType, offset: int, entries: int, reasons: list[str]) -> bool | None:
        self.began = self.backend_began = time.perf_counter()
        self.backend_ended = 0.0
        return super().miss(code, offset, entries, reasons)

    def timed(self, backend: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.backend_began = time.perf_counter()
            try:
                return backend(*args)
            finally:
                self.backend_ended = time.perf_counter()

        return call

    def made(self, code: CodeType, offset: int, graph: Any, compiler: Any, number: int) -> None:
        now = time.perf_counter()
        traced = self.backend_began if self.backend_ended else now
        self.times[number] = {"trace": traced - self.began}
        if self.backend_ended:
            self.times[number]["backend"] = self.backend_ended - self.backend_began
            self.times[number]["entry"] = now - self.backend_ended
        super().made(code, offset, graph, compiler, number)


def _explanation(f: Any, compiler: Any, result: Any, error: Exception | None) -> Explanation:
    rows = sorted(compiler.entries(), key=lambda row: row["number"])
    metrics = compiler.metrics
    times = getattr(compiler.policy, "times", {})
    entries: list[Entry] = []
    for i, row in enumerate(rows):
        entries.append(_entry(row, i + 1, entries, times))
    return Explanation(
        name=getattr(f, "__qualname__", type(f).__qualname__),
        returned=result,
        entries=entries,
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
    policy = _Timed()
    compiler = _compile.make_compiler(backend, policy, True, policy.timed)
    compiled = _compile._wrap(f, compiler)

    def call(*args: Any, **kwargs: Any) -> Explanation:
        result, error = None, None
        try:
            result = compiled(*args, **kwargs)
        except Exception as exception:
            error = exception
        return _explanation(f, compiler, result, error)

    return call
