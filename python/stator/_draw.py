"""From an explanation to what is drawn of it: functions in the order they were met, their lines,
and what is known of each line. `_draw_text` and `_draw_html` turn this into text."""

from __future__ import annotations

import ast
import dataclasses
import linecache
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from stator import _words

if TYPE_CHECKING:
    from stator._explain import Break, Entry, Explanation, Place

_NEAR = 2  # lines that are shown around one of which something is known
_PLUMBING = ("Module._wrapped_call_impl", "Module._call_impl")  # frames of every module's call


@dataclasses.dataclass
class Mark:
    """A break at a line, with all entries that end in it."""

    why: Break
    dropped: bool
    entries: list[int]
    chains: list[tuple[Place, ...]]


@dataclasses.dataclass
class Line:
    number: int
    text: str | None  # None: there is no source
    graphs: list[int] = dataclasses.field(default_factory=list)
    guards: list[tuple[int, str]] = dataclasses.field(default_factory=list)  # entry, text
    marks: list[Mark] = dataclasses.field(default_factory=list)
    starts: list[int] = dataclasses.field(default_factory=list)  # entries that go on here
    # entries that were made because others did not fit, by a guard of this line; and why
    remade: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    def mark(self, why: Break, dropped: bool) -> Mark:
        for mark in self.marks:
            same = (mark.why.reason, mark.why.detail) == (why.reason, why.detail)
            if same and mark.dropped == dropped:
                return mark
        self.marks.append(Mark(why, dropped, [], []))
        return self.marks[-1]

    @property
    def bare(self) -> bool:
        return not (self.graphs or self.guards or self.marks or self.starts or self.remade)


@dataclasses.dataclass
class Section:
    """One function."""

    name: str
    file: str
    first: int
    lines: list[Line]
    source: Callable[[int], str | None]  # of a line that is none of its own
    whole: bool  # all lines are there

    @property
    def has_source(self) -> bool:
        return any(line.text is not None for line in self.lines)

    def line(self, number: int) -> Line:
        index = number - self.first
        if self.whole and 0 <= index < len(self.lines):
            return self.lines[index]
        return self._loose(number)

    def _loose(self, number: int) -> Line:
        for line in self.lines:
            if line.number == number:
                return line
        self.lines.append(Line(number, self.source(number)))
        self.lines.sort(key=lambda line: line.number)
        return self.line(number)

    def shown(self) -> Iterator[Line | int]:
        """Its lines; a number stands for so many that nothing is known of."""
        near = {0}
        for i, line in enumerate(self.lines):
            near.update(() if line.bare else range(i - _NEAR, i + _NEAR + 1))
        left_out = 0
        for i, line in enumerate(self.lines):
            if i in near or len(self.lines) <= 12:
                if left_out:
                    yield left_out
                left_out = 0
                yield line
            else:
                left_out += 1
        if left_out:
            yield left_out


@dataclasses.dataclass
class Operation:
    text: str
    place: Place | None

    def where(self, entry: Entry) -> str:
        return location(self.place[0], self.place[1], entry) if self.place else ""


@dataclasses.dataclass
class Drawing:
    sections: list[Section]
    find: Callable[[str, int], tuple[Section, Line] | None]
    place_of: Callable[[Iterable[Place]], Place | None]
    shades: dict[int, int]  # entries with a graph, counted from 0: each its own color
    function: Callable[[str, int], str]  # the name of the one around a line


# -- source --


def short(file: str) -> str:
    """An installed file as it is imported; others as they are."""
    if not _words.is_library(file):
        return file
    homes = [home for home in sys.path if home and file.startswith(home.rstrip(os.sep) + os.sep)]
    return os.path.relpath(file, max(homes, key=len)) if homes else file


@dataclasses.dataclass
class _Function:
    name: str
    first: int
    last: int


def _functions_in(node: ast.AST, prefix: str) -> Iterator[_Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            name = prefix + child.name
            yield _Function(name, first, child.end_lineno or child.lineno)
            yield from _functions_in(child, f"{name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions_in(child, f"{prefix}{child.name}.")
        else:
            yield from _functions_in(child, prefix)


class _Source:
    """The files of an explanation, read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[list[str], list[_Function]]] = {}

    def _file(self, file: str) -> tuple[list[str], list[_Function]]:
        if file not in self._files:
            linecache.checkcache(file)
            lines = linecache.getlines(file)
            try:
                functions = list(_functions_in(ast.parse("".join(lines)), ""))
            except (SyntaxError, ValueError, RecursionError):
                functions = []
            self._files[file] = lines, functions
        return self._files[file]

    def function(self, file: str, line: int) -> _Function | None:
        """The innermost one around a line."""
        around = [f for f in self._file(file)[1] if f.first <= line <= f.last]
        return min(around, key=lambda f: f.last - f.first, default=None)

    def lines(self, file: str, first: int, last: int) -> list[str]:
        text = "".join(self._file(file)[0][first - 1 : last])
        return textwrap.dedent(text.expandtabs()).splitlines()


# -- building --


def is_plumbing(place: Place) -> bool:
    return place[2] in _PLUMBING and _words.is_library(place[0])


class _Builder:
    def __init__(self, explanation: Explanation) -> None:
        self._source = _Source()
        self._sections: dict[tuple[str, Any], Section] = {}
        self._homes: set[str] = set()
        self._entries = explanation.entries
        self._drops = explanation.drops
        self._find_homes()

    # What is explained is the user's, even if it is installed; and the folder it is in.
    def _find_homes(self) -> None:
        codes = [e.code for e in self._entries[:1]] + [d.code for d in self._drops[:1]]
        for file in (code.co_filename for code in codes if code is not None):
            folder, name = os.path.split(file)
            ours = file.startswith(_words.HERE)  # the demo's; the rest of Stator is no user's
            whole = name and folder and "torch" not in folder.split(os.sep) and not ours
            if _words.is_library(file):
                self._homes.add(folder + os.sep if whole else file)

    def _is_library(self, file: str) -> bool:
        return _words.is_library(file) and not any(file.startswith(home) for home in self._homes)

    # The section that a line belongs to; made if it is not there.
    def _section(self, file: str, line: int, name: str) -> Section:
        function = self._source.function(file, line)
        key = (file, function.first if function else name)
        if key not in self._sections:
            self._sections[key] = self._make(file, line, name, function)
        return self._sections[key]

    def _make(self, file: str, line: int, name: str, function: _Function | None) -> Section:
        def source(number: int) -> str | None:
            return next(iter(self._source.lines(file, number, number)), None)

        if function is None:  # code of a module or a class, or no source
            return Section(name, file, line, [], source, False)
        text = self._source.lines(file, function.first, function.last)
        lines = [Line(function.first + i, row.rstrip()) for i, row in enumerate(text)]
        return Section(function.name, file, function.first, lines, source, True)

    def _find(self, file: str, line: int) -> tuple[Section, Line] | None:
        function = self._source.function(file, line)
        if function is not None:
            section = self._sections.get((file, function.first))
            return (section, section.line(line)) if section else None
        loose = [s for (where, _), s in self._sections.items() if where == file and not s.whole]
        for section in [s for s in loose if any(row.number == line for row in s.lines)] + loose[:1]:
            return section, section.line(line)
        return None

    def _place(self, stack: Iterable[Place]) -> Place | None:
        """The innermost place that is the user's, or has a section."""
        rows = list(stack)
        for file, line, name in reversed(rows):
            if not self._is_library(file) or self._find(file, line):
                return file, line, name
        return rows[-1] if rows else None

    def _add_places(self, stack: Iterable[Place], note: Callable[[Line], None]) -> None:
        for file, line, name in stack:
            if not self._is_library(file):
                note(self._section(file, line, name).line(line))
            elif found := self._find(file, line):
                note(found[1])

    def _add_entry(self, entry: Entry) -> None:
        if entry.operations or entry.why or not self._is_library(entry.file):
            section = self._section(entry.file, entry.line, entry.name)
            if entry.offset:
                section.line(entry.line).starts.append(entry.number)

        def note(line: Line) -> None:
            if entry.number not in line.graphs:
                line.graphs.append(entry.number)

        for node in entry.graph.nodes if entry.graph is not None else ():
            self._add_places(node.stack or (), note)

    def _add_break(self, why: Break, entry: Entry | None) -> None:
        stack = why.stack or (why.place,)
        self._add_places(stack, lambda line: None)
        place = self._place(stack) or why.place
        line = self._section(*place).line(place[1])
        mark = line.mark(why, entry is None)
        if entry is not None:
            mark.entries.append(entry.number)
        if not any(known[-len(stack) :] == stack for known in mark.chains):
            mark.chains.append(stack)

    def _add_guards(self, entry: Entry) -> None:
        for text, file, number in entry.guards:
            if file is None or number is None:
                continue
            found = self._find(file, number)
            if found is None and not self._is_library(file):
                section = self._section(file, number, "<module>")
                found = section, section.line(number)
            if found is not None:
                found[1].guards.append((entry.number, text))

    def _add_reasons(self, entry: Entry) -> None:
        for reason in entry.because:
            found = reason.file and reason.line and self._find(reason.file, reason.line)
            if found:
                found[1].remade.append((entry.number, reason.text))

    def build(self) -> Drawing:
        for entry in self._entries:
            self._add_entry(entry)
            if entry.why is not None:
                self._add_break(entry.why, entry)
        for why in self._drops:
            self._add_break(why, None)
        for entry in self._entries:
            self._add_guards(entry)
            self._add_reasons(entry)
        graphs = [entry.number for entry in self._entries if entry.operations]
        shades = {number: i for i, number in enumerate(graphs)}
        sections = list(self._sections.values())
        return Drawing(sections, self._find, self._place, shades, self._function)

    def _function(self, file: str, line: int) -> str:
        found = self._source.function(file, line)
        return f"line {line}" if found is None else found.name


def build(explanation: Explanation) -> Drawing:
    return _Builder(explanation).build()


# -- what both forms say --


def printable(text: str) -> str:
    """Without what a terminal or a browser would take for a command."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def plural(count: int, noun: str) -> str:
    ending = "" if count == 1 else "ies" if noun.endswith("y") else "s"
    return f"{count} {noun[:-1] if ending == 'ies' else noun}{ending}"


def summary(explanation: Explanation) -> str:
    entries = explanation.entries
    graphs = sum(1 for entry in entries if entry.operations)
    parts = [
        plural(graphs, "graph"),
        plural(sum(entry.operations for entry in entries), "operation"),
        plural(len(explanation.breaks), "break"),
        plural(len(explanation.drops), "call") + " not compiled" if explanation.drops else "",
        plural(len(explanation.recompiles), "recompile") if explanation.recompiles else "",
        plural(len(explanation.guards), "guard"),
        plural(len(explanation.writes), "write"),
    ]
    return ", ".join(part for part in parts if part)


def raised(explanation: Explanation) -> str | None:
    error = explanation.exception
    return f"raised {type(error).__name__}: {error}" if error is not None else None


def heading(entry: Entry) -> str:
    begin = f"from line {entry.line} on" if entry.offset else "from its beginning"
    runs = "once" if entry.hits == 0 else f"{entry.hits + 1} times"
    then = "".join(f", then {name} from line {line} on" for name, line in entry.callers)
    return f"{entry.name}, {begin}{then}, ran {runs}"


def ending(entry: Entry, drawing: Drawing) -> tuple[str, Place | None]:
    why = entry.why
    if why is None:
        last = entry.callers[-1][0] if entry.callers else "the function"
        return f"ends with {last}", None
    place = drawing.place_of(why.stack or (why.place,)) or why.place
    where = "" if place[2] == entry.name else f" of {place[2]}"
    return f"ends at the break in line {place[1]}{where}: {why.reason}", place


def operations(entry: Entry, drawing: Drawing) -> list[Operation]:
    """The graph's nodes that compute something or give out, one line each."""
    if entry.graph is None:
        return []
    rows, nodes = str(entry.graph).splitlines(), list(entry.graph.nodes)
    if len(rows) != len(nodes):  # the text of a constant has several lines
        return [Operation(row, None) for row in rows]
    return [
        Operation(
            row.rpartition("  # ")[0] if node.stack else row, drawing.place_of(node.stack or ())
        )
        for row, node in zip(rows, nodes, strict=True)
        if node.op != "placeholder"
    ]


def inputs(entry: Entry) -> list[tuple[str, str]]:
    """Names in the graph, and where the call finds them."""
    if entry.graph is None:
        return []
    names = [node.name for node in entry.graph.nodes if node.op == "placeholder"]
    return list(zip(names, entry.inputs, strict=False))


@dataclasses.dataclass
class Guards:
    """Those of one entry that one line caused."""

    place: tuple[str, int] | None  # None: the call itself
    library: bool
    texts: list[str]


def guards(entry: Entry, drawing: Drawing) -> list[Guards]:
    groups: dict[tuple[str, int] | None, Guards] = {}
    for text, file, line in entry.guards:
        place = (file, line) if file is not None and line is not None else None
        place = None if place and place[0].startswith(_words.HERE) else place
        hidden = place is not None and _words.is_library(place[0]) and drawing.find(*place) is None
        groups.setdefault(place, Guards(place, hidden, [])).texts.append(text)
    return list(groups.values())


def folded(groups: list[Guards], drawing: Drawing) -> dict[str, int]:
    """How many guards each function of library code caused."""
    counts: dict[str, int] = {}
    for group in groups:
        if group.library and group.place is not None:
            module = short(group.place[0]).removesuffix(".py").replace(os.sep, ".")
            name = f"{module.removesuffix('.__init__')}.{drawing.function(*group.place)}"
            counts[name] = counts.get(name, 0) + len(group.texts)
    return counts


def because(entry: Entry) -> list[str]:
    """Why it was made though there were others, with the lines."""
    return [
        reason.text
        + (f" ({location(reason.file, reason.line, entry)})" if reason.file and reason.line else "")
        for reason in entry.because
    ]


def remade(entry: int, why: str) -> str:
    return f"entry {entry} was made because of {why}"


def times(stages: dict[str, float]) -> str:
    return "took " + ", ".join(f"{stage} {1000 * s:.1f} ms" for stage, s in stages.items())


def location(file: str, line: int, entry: Entry) -> str:
    return f"line {line}" if file == entry.file else f"{short(file)}:{line}"


def chain(stack: Iterable[Place]) -> list[str]:
    rows = [place for place in stack if not is_plumbing(place)]
    if len(rows) < 2:
        return []
    return [
        f"{'calls' if i else 'from'} {short(file)}:{line} in {name}"
        for i, (file, line, name) in enumerate(rows)
    ]


def place_of(section: Section) -> str:
    missing = "" if section.has_source else ", source not available"
    return f"{short(section.file)}:{section.first}{missing}"


def what(why: Break) -> str:
    return f"{why.sentence}: {why.detail}" if why.detail else why.sentence


def fate(mark: Mark) -> str:
    """What became of the line."""
    if mark.dropped:
        return "not compiled: CPython runs the call"
    numbers = ", ".join(map(str, mark.entries))
    return f"ends {'entry' if len(mark.entries) == 1 else 'entries'} {numbers}"
