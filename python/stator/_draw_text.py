"""An explanation as text of 100 columns: source with the graphs in its gutter, then each entry."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stator import _draw

if TYPE_CHECKING:
    from stator._draw import Drawing, Line, Mark, Section
    from stator._explain import Entry, Explanation

_WIDTH = 100
_GUTTER = 24  # columns before the source
_HUES = (34, 32, 35, 36, 33, 94, 92, 95)


class _Pen:
    def __init__(self, color: bool, shades: dict[int, int]) -> None:
        self._color = color
        self._shades = shades

    def _style(self, text: str, codes: str) -> str:
        return f"\033[{codes}m{text}\033[0m" if self._color and text.strip() else text

    def bold(self, text: str) -> str:
        return self._style(text, "1")

    def faint(self, text: str) -> str:
        return self._style(text, "2")

    def alarm(self, text: str) -> str:
        return self._style(text, "1;31")

    def graph(self, text: str, number: int) -> str:
        return self._style(text, str(_HUES[self._shades.get(number, 0) % len(_HUES)]))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _wrap(text: str, first: str, rest: str | None = None) -> list[str]:
    rest = " " * len(first) if rest is None else rest
    wrapper = textwrap.TextWrapper(
        _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return wrapper.wrap(_draw.printable(text)) or [first.rstrip()]


# -- source --


def _numbers(graphs: list[int], width: int) -> tuple[list[int], int]:
    """As many as fit, and how many do not."""
    shown = list(graphs)
    while len(" ".join(map(str, shown))) + (4 if len(shown) < len(graphs) else 0) > width:
        shown.pop()
    return shown, len(graphs) - len(shown)


def _source_line(line: Line, pen: _Pen) -> str:
    shown, more = _numbers(line.graphs, 9)
    plain = " ".join(map(str, shown)) + (f" +{more}" if more else "")
    colored = " ".join(pen.graph(str(n), n) for n in shown) + (f" +{more}" if more else "")
    gutter = " " * (9 - len(plain)) + colored
    guards = f"{len(line.guards) or '':>5}"
    mark = pen.alarm("!") if line.marks else " "
    text = _cut(_draw.printable(line.text or ""), _WIDTH - _GUTTER)
    text = pen.graph(text, line.graphs[0]) if line.graphs else text
    return f"{gutter} {pen.faint(guards)} {mark}{line.number:>5}  {text}".rstrip()


def _mark_lines(mark: Mark, pen: _Pen) -> Iterator[str]:
    lead = " " * 16 + "! "
    head = f"{mark.why.reason}: {_draw.what(mark.why)} ({_draw.fate(mark)})"
    for row in _wrap(head, lead, lead + "  "):
        yield pen.alarm(row)
    if mark.why.hint:
        yield from _wrap(f"hint: {mark.why.hint}", lead + "  ", lead + "    ")
    for stack in mark.chains[:3]:
        for row in _draw.chain(stack):
            yield from map(pen.faint, _wrap(row, f"{lead}  ", f"{lead}    "))
    if len(mark.chains) > 3:
        yield f"{lead}  and by {_draw.plural(len(mark.chains) - 3, 'other way')}"


def _section(section: Section, pen: _Pen) -> Iterator[str]:
    yield from map(pen.bold, _wrap(f"{section.name} ({_draw.place_of(section)})", ""))
    yield pen.faint("    entry guards   line")
    for line in section.shown():
        if isinstance(line, int):
            yield pen.faint(" " * 19 + f"...  ({_draw.plural(line, 'line')})")
            continue
        yield _source_line(line, pen)
        for mark in line.marks:
            yield from _mark_lines(mark, pen)
        for number, why in line.remade:
            lead = " " * 16 + "~ "
            yield from map(pen.faint, _wrap(_draw.remade(number, why), lead, lead + "  "))


# -- entries --


def _operations(entry: Entry, drawing: Drawing) -> Iterator[str]:
    for row in _draw.operations(entry, drawing):
        where = f"  # {row.where(entry)}" if row.place else ""
        text = _draw.printable(row.text)
        yield from (
            [f"    {text}{where}"]
            if len(text + where) < _WIDTH - 4
            else _wrap(text + where, "    ", "        ")
        )


def _guards(entry: Entry, drawing: Drawing, full: bool) -> Iterator[str]:
    groups = _draw.guards(entry, drawing)
    shown = [group for group in groups if full or not group.library]
    hidden = sum(len(group.texts) for group in groups) - sum(len(g.texts) for g in shown)
    count = _draw.plural(len(entry.guards), "guard")
    many = "all" if not shown else f"{hidden} of them"
    yield f"  {count}" + (f", {many} for library code" if hidden else "")
    for group in shown:
        where = _draw.location(*group.place, entry) if group.place else "the call"
        yield from _wrap(where, "    ")
        for text in group.texts:
            yield from _wrap(text, " " * 6, " " * 10)
    if not full:
        for name, number in _draw.folded(groups, drawing).items():
            yield from _wrap(f"{name}: {_draw.plural(number, 'guard')}", "    ", "        ")


def _entry(entry: Entry, drawing: Drawing, pen: _Pen, full: bool) -> Iterator[str]:
    kind = "" if entry.operations else " (no graph)"
    title = f"entry {entry.number}{kind}: {_draw.heading(entry)}; {_draw.ending(entry, drawing)[0]}"
    for row in _wrap(title, "", "  "):
        yield pen.graph(row, entry.number) if entry.operations else row
    for text in _draw.because(entry):
        yield from _wrap(f"recompiled because of {text}", "  ", "    ")
    if entry.open_numbers:
        yield from _wrap(f"left open: {', '.join(entry.open_numbers)}", "  ", "    ")
    if full and entry.times:
        yield "  " + _draw.times(entry.times)
    if entry.operations:
        yield f"  graph of {_draw.plural(entry.operations, 'operation')}"
        for name, source in _draw.inputs(entry):
            yield from _wrap(f"{name} = {source}", "    ", "        ")
        yield from _operations(entry, drawing)
    if entry.guards:
        yield from _guards(entry, drawing, full)
    if entry.writes:
        yield f"  {_draw.plural(len(entry.writes), 'write')}"
        for write in entry.writes:
            yield from _wrap(write, "    ", "        ")


def _rows(explanation: Explanation, color: bool, full: bool) -> Iterator[str]:
    drawing = _draw.build(explanation)
    pen = _Pen(color, drawing.shades)
    yield from _wrap(f"{explanation.name}: {_draw.summary(explanation)}", "", "  ")
    if full and explanation.times:
        yield f"  {_draw.times(explanation.times)}"
    if text := _draw.raised(explanation):
        yield from map(pen.alarm, _wrap(text, "  ", "  "))
    for section in drawing.sections:
        yield ""
        yield from _section(section, pen)
    for entry in explanation.entries:
        yield ""
        yield from _entry(entry, drawing, pen, full)
    if not explanation.entries and not explanation.drops:
        yield "nothing was compiled"


def draw(explanation: Explanation, color: bool, full: bool) -> str:
    return "\n".join(_rows(explanation, color, full))
