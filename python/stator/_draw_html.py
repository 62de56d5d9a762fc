"""An explanation as one HTML page: no script, nothing from elsewhere; what folds is `<details>`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stator import _draw

if TYPE_CHECKING:
    from stator._draw import Drawing, Line, Mark, Section
    from stator._explain import Entry, Explanation, Place

_HUES = (212, 142, 286, 28, 182, 330, 96, 252)

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2126; --soft: #5b6570; --edge: #d9dee4;
  --wash: #f5f7f9; --alarm: #b3261e; --alarm-wash: #fdf0ee; --tint: 92%; --strong: 36%; --sat: 62%;
  --shared: #e9ecf0; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #dde3e8; --soft: #95a0aa;
  --edge: #30373e; --wash: #1b2024; --alarm: #ff8a80; --alarm-wash: #331c1b; --tint: 19%;
  --strong: 72%; --sat: 48%; --shared: #262c32; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: .85rem; margin: .9rem 0 .2rem; color: var(--soft); font-weight: 600; }
p { margin: .25rem 0; } a { color: inherit; }
code, pre, .source, .guards, .mono { font: 13px/1.55 ui-monospace, Menlo, Consolas, monospace; }
.soft { color: var(--soft); font-weight: 400; } .alarm { color: var(--alarm); font-weight: 600; }
.path { font-size: .85rem; overflow-wrap: anywhere; }
.source { border: 1px solid var(--edge); border-radius: 6px; overflow: hidden; }
.line { display: grid; grid-template-columns: 7rem 4rem minmax(0, 1fr) 7.5rem; }
.line:target, .entry:target { outline: 2px solid var(--soft); outline-offset: -2px; }
.line > .in { padding: 0 .4rem; display: flex; gap: .2rem; flex-wrap: wrap; align-items: center; }
.line > .no { color: var(--soft); text-align: right; padding-right: .8rem; user-select: none; }
.line > .text { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0 .6rem;
  border-left: 5px solid transparent; }
.line.in-graph > .text { background: var(--fill); border-left-color: var(--bar); }
.line[style] > .text { border-left-width: 0; padding-left: calc(.6rem + 5px); }
.line.broken > .no { color: var(--alarm); font-weight: 700; }
.line > details { padding: 0 .6rem; color: var(--soft); }
.line > details[open] { grid-column: 3 / -1; padding: .2rem .6rem .5rem; background: var(--wash); }
summary { cursor: pointer; } summary:focus-visible, a:focus-visible { outline: 2px solid; }
.guards { margin: 0; padding: 0 0 0 1.1rem; list-style: none; overflow-wrap: anywhere;
  color: var(--ink); text-indent: -1.1rem; }
.gap { color: var(--soft); padding: 0 0 0 11.9rem; background: var(--wash); }
.break { background: var(--alarm-wash); border-left: 4px solid var(--alarm);
  padding: .45rem .8rem .5rem 11.65rem; font: 14px/1.5 system-ui, sans-serif; }
.remade { color: var(--soft); padding: .2rem .8rem .3rem 11.65rem; background: var(--wash);
  font: 14px/1.5 system-ui, sans-serif; }
.break ol { margin: .2rem 0 0; padding-left: 1.5rem; overflow-wrap: anywhere; }
summary { font-size: 13px; }
.chip { display: inline-block; min-width: 1.35rem; padding: 0 .3rem; border-radius: 4px;
  text-align: center; text-decoration: none; font: 600 12px/1.45 system-ui, sans-serif;
  background: var(--bar, var(--soft)); color: var(--paper); }
.entry { border: 1px solid var(--edge); border-left: 5px solid var(--bar, var(--edge));
  border-radius: 6px; padding: .6rem .9rem .8rem; margin: .8rem 0; }
.entry > p:first-child { font-weight: 600; }
.entry table { border-collapse: collapse; }
.entry td { padding: 0 1.2rem 0 0; vertical-align: top; overflow-wrap: anywhere; }
.entry td.at { white-space: nowrap; }
pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 44rem) { .line { grid-template-columns: 3.6rem 2.8rem minmax(0, 1fr); }
  .break, .remade { padding-left: .8rem; }
  .line > details { grid-column: 3; } .gap { padding-left: 6.4rem; } }
@media print { .line > .text, .chip { print-color-adjust: exact; } }
"""


def _text(text: str) -> str:
    return html.escape(_draw.printable(text))


def _colors() -> str:
    return "".join(
        f".g{i} {{ --bar: hsl({hue} var(--sat) var(--strong));"
        f" --fill: hsl({hue} var(--sat) var(--tint)); }}\n"
        for i, hue in enumerate(_HUES)
    )


def _fill(shades: list[int]) -> str:
    """The background of a line that several graphs share: a bar of each, and no one's color."""
    if len(shades) < 2:
        return ""
    stops = [
        f"hsl({_HUES[shade]} var(--sat) var(--strong)) {6 * i}px {6 * i + 5}px, "
        f"var(--shared) {6 * i + 5}px {6 * i + 6}px"
        for i, shade in enumerate(shades)
    ]
    return f' style="--fill: linear-gradient(to right, {", ".join(stops)}, var(--shared) 0)"'


class _Page:
    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation
        self._drawing: Drawing = _draw.build(explanation)
        self._anchors = {id(section): i for i, section in enumerate(self._drawing.sections)}

    # -- small pieces --

    def _anchor(self, section: Section, line: Line) -> str:
        return f"s{self._anchors[id(section)]}-{line.number}"

    def _link(self, place: Place | tuple[str, int] | None, text: str) -> str:
        found = self._drawing.find(place[0], place[1]) if place else None
        if found is None:
            return _text(text)
        return f'<a href="#{self._anchor(*found)}">{_text(text)}</a>'

    def _shade(self, number: int) -> str:
        shade = self._drawing.shades.get(number)
        return "" if shade is None else f" g{shade % len(_HUES)}"

    def _chip(self, number: int) -> str:
        return f'<a class="chip{self._shade(number)}" href="#entry-{number}">{number}</a>'

    def _chips(self, numbers: list[int]) -> str:
        more = f'<span class="soft">+{len(numbers) - 4}</span>' if len(numbers) > 4 else ""
        return "".join(map(self._chip, numbers[:4])) + more

    def _list(self, texts: Iterable[str]) -> str:
        return "".join(f"<li>{_text(text)}</li>" for text in texts)

    # -- source --

    def _break(self, mark: Mark) -> Iterator[str]:
        why = mark.why
        yield '<div class="break"><p><span class="alarm">'
        yield f"{'not compiled' if mark.dropped else 'break'} {_text(why.reason)}</span>: "
        yield f"{_text(_draw.what(why))} "
        yield f'<span class="soft">({_text(_draw.fate(mark))})</span></p>'
        if why.hint:
            yield f"<p><b>Hint:</b> {_text(why.hint)}</p>"
        for stack in mark.chains:
            rows = _draw.chain(stack)
            if rows:
                yield "<details open><summary>chain of calls</summary>"
                yield f'<ol class="mono">{self._list(rows)}</ol></details>'
        yield "</div>\n"

    def _line_guards(self, line: Line) -> Iterator[str]:
        if not line.guards:
            return
        yield f"<details><summary>{_draw.plural(len(line.guards), 'guard')}</summary>"
        for number in dict.fromkeys(number for number, _ in line.guards):
            texts = [text for of, text in line.guards if of == number]
            yield f'<p>{self._chip(number)}</p><ul class="guards">{self._list(texts)}</ul>'
        yield "</details>"

    def _line(self, section: Section, line: Line) -> Iterator[str]:
        kind = f" in-graph{self._shade(line.graphs[0])}" if line.graphs else ""
        kind += " broken" if line.marks else ""
        fill = _fill([self._drawing.shades[n] % len(_HUES) for n in line.graphs[:4]])
        yield f'<div class="line{kind}" id="{self._anchor(section, line)}"{fill}>'
        yield f'<span class="in">{self._chips(line.graphs)}</span>'
        yield f'<span class="no">{"! " if line.marks else ""}{line.number}</span>'
        yield f'<span class="text">{_text(line.text or "")}</span>'
        yield from self._line_guards(line)
        yield "</div>\n"
        for mark in line.marks:
            yield from self._break(mark)
        for number, why in line.remade:
            yield f'<div class="remade">{_text(_draw.remade(number, why))}</div>\n'

    def _section(self, section: Section) -> Iterator[str]:
        yield f'<section><h2>{_text(section.name)} <span class="soft path">'
        yield f"{_text(_draw.place_of(section))}</span></h2>\n"
        yield '<div class="source">\n'
        for line in section.shown():
            if isinstance(line, int):
                yield f'<div class="gap">{_draw.plural(line, "more line")}</div>\n'
            else:
                yield from self._line(section, line)
        yield "</div></section>\n"

    # -- entries --

    def _operations(self, entry: Entry) -> Iterator[str]:
        yield f"<h3>Graph of {_draw.plural(entry.operations, 'operation')}</h3>"
        yield '<table class="mono">'
        for name, source in _draw.inputs(entry):
            yield f'<tr><td>{_text(name)} = {_text(source)}</td><td class="at soft">input</td></tr>'
        for row in _draw.operations(entry, self._drawing):
            where = self._link(row.place, row.where(entry))
            yield f'<tr><td>{_text(row.text)}</td><td class="at soft">{where}</td></tr>'
        yield "</table>\n"

    def _guards(self, entry: Entry) -> Iterator[str]:
        yield f"<details><summary>{_draw.plural(len(entry.guards), 'guard')}</summary>"
        for group in _draw.guards(entry, self._drawing):
            where = _draw.location(*group.place, entry) if group.place else "the call"
            yield f'<h3 class="path">{self._link(group.place, where)}</h3>'
            yield f'<ul class="guards">{self._list(group.texts)}</ul>'
        yield "</details>\n"

    def _entry(self, entry: Entry) -> Iterator[str]:
        end, place = _draw.ending(entry, self._drawing)
        yield f'<article class="entry{self._shade(entry.number)}" id="entry-{entry.number}">'
        kind = "" if entry.operations else " (no graph)"
        yield f"<p>Entry {entry.number}{kind}: {_text(_draw.heading(entry))}; "
        yield f"{self._link(place, end)}</p>\n"
        for reason in _draw.because(entry):
            yield '<p><span class="alarm">recompiled</span> because of '
            yield f"<code>{_text(reason)}</code></p>"
        if entry.open_numbers:
            yield f'<p class="soft">left open: {_text(", ".join(entry.open_numbers))}</p>'
        if entry.times:
            yield f'<p class="soft">{_draw.times(entry.times)}</p>\n'
        if entry.operations:
            yield from self._operations(entry)
        if entry.writes:
            yield f"<h3>{_draw.plural(len(entry.writes), 'write')}</h3>"
            yield f'<ul class="guards">{self._list(entry.writes)}</ul>\n'
        if entry.guards:
            yield from self._guards(entry)
        yield f"<details><summary>plan</summary><pre>{_text(entry.plan)}</pre></details>"
        yield "</article>\n"

    # -- all --

    def _head(self) -> Iterator[str]:
        name = _text(self._explanation.name)
        yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<title>{name}, explained by Stator</title>\n"
        yield f"<style>{_STYLE}{_colors()}</style>\n</head>\n<body>\n"
        yield f"<h1>{name}</h1>\n<p>{_draw.summary(self._explanation)}</p>\n"
        if self._explanation.times:
            yield f'<p class="soft">{_draw.times(self._explanation.times)}</p>\n'
        if text := _draw.raised(self._explanation):
            yield f'<p class="alarm">{_text(text)}</p>\n'
        yield '<p class="soft">The numbers before a line are those of the compiled entries whose '
        yield "graphs have operations of it.</p>\n"

    def rows(self) -> Iterator[str]:
        yield from self._head()
        for section in self._drawing.sections:
            yield from self._section(section)
        if self._explanation.entries:
            yield "<h2>Entries, in the order they were made</h2>\n"
        for entry in self._explanation.entries:
            yield from self._entry(entry)
        yield "</body>\n</html>\n"


def draw(explanation: Explanation) -> str:
    return "".join(_Page(explanation).rows())
