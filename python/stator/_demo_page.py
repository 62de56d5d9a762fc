"""What `make demo` found, as one HTML page with charts: no script, nothing from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stator.demo import Training

COLORS = {"eager": "#8a94a0", "dynamo": "#d9822b", "stator": "#2f6fde"}
_WIDTH, _BAR, _LABEL = 620, 26, 150


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.1 else f"{1000 * seconds:.1f} ms"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(text)}</text>'


def bars(title: str, rows: list[tuple[str, str, float, str]]) -> str:
    """Horizontal bars: name, who, value, and what stands beside the bar."""
    most = max((value for _, _, value, _ in rows), default=0) or 1
    room = _WIDTH - _LABEL - 120
    height = 34 + len(rows) * (_BAR + 10)
    parts = [_text(0, 16, title, 'class="title"')]
    for i, (name, who, value, said) in enumerate(rows):
        y = 30 + i * (_BAR + 10)
        width = max(room * value / most, 1.5)
        parts.append(_text(0, y + 18, name))
        parts.append(f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="3" '
                     f'fill="{COLORS[who]}"/>')  # fmt: skip
        parts.append(_text(_LABEL + width + 8, y + 18, said, 'class="soft"'))
    return _svg(height, title, parts)


def _svg(height: float, title: str, parts: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{html.escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _points(losses: list[float], low: float, high: float, steps: int) -> str:
    across, down = (_WIDTH - 60) / max(steps - 1, 1), 190 / ((high - low) or 1)
    return " ".join(
        f"{40 + i * across:.1f},{30 + (high - loss) * down:.1f}" for i, loss in enumerate(losses)
    )


# The lines lie on each other: those of the compilers are dashes in turns, on that of eager.
_LINES = {
    "eager": 'stroke-width="9" stroke-opacity=".5"',
    "dynamo": 'stroke-width="4" stroke-dasharray="12 12"',
    "stator": 'stroke-width="4" stroke-dasharray="12 12" stroke-dashoffset="12"',
}


def curves(title: str, trainings: list[Training]) -> str:
    every = [loss for training in trainings for loss in training.losses]
    low, high = min(every), max(every)
    steps = max(len(training.losses) for training in trainings)
    parts = [_text(0, 16, title, 'class="title"')]
    for value in (low, (low + high) / 2, high):
        y = 30 + (high - value) * 190 / ((high - low) or 1)
        parts.append(f'<line x1="40" x2="{_WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(_text(0, y + 4, f"{value:.1f}", 'class="soft"'))
    for training in trainings:
        parts.append(
            f'<polyline points="{_points(training.losses, low, high, steps)}" fill="none" '
            f'stroke="{COLORS[training.who]}" {_LINES[training.who]} stroke-linejoin="round"/>'
        )
    parts.append(_text(40, 240, "step 1", 'class="soft"'))
    parts.append(_text(_WIDTH - 20, 240, f"step {steps}", 'class="soft" text-anchor="end"'))
    return _svg(250, title, parts)


# Of a picture that stands alone, on the ground of whatever page shows it.
_ALONE = """
text { fill: #1d2126; font: 19px system-ui, sans-serif; } .soft { fill: #5b6570; }
.title { font-weight: 600; } .grid { stroke: #d9dee4; } .loss text { font-size: 17px; }
"""


_TOP = 'preserveAspectRatio="xMinYMin"'


def _placed(chart: str, x: int, y: int, height: int) -> str:
    return chart.replace("<svg ", f'<svg x="{x}" y="{y}" width="620" height="{height}" {_TOP} ', 1)


def picture(trainings: list[Training], backend: str, machine: str) -> str:
    """The charts as one SVG."""
    said = f"A small GPT, {len(trainings[0].losses)} steps of training, backend {backend}"
    first, later, loss = charts(trainings)
    parts = (
        '<rect width="1340" height="500" rx="10" fill="#fff" stroke="#d9dee4"/>',
        _text(30, 40, said, 'class="title"'),
        _placed(first, 30, 70, 142),
        _placed(later, 30, 250, 142),
        f'<g class="loss">{_placed(loss, 690, 70, 330)}</g>',
        _text(30, 475, machine, 'class="soft"'),
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1340 500" role="img" '
        f'aria-label="{html.escape(said)}"><style>{_ALONE}</style>{"".join(parts)}</svg>\n'
    )


def charts(trainings: list[Training]) -> Iterator[str]:
    first = [(t.name, t.who, t.first or 0, duration(t.first)) for t in trainings]
    later = [(t.name, t.who, t.step or 0, duration(t.step)) for t in trainings]
    yield bars("Time to the first step: the compiler's work is in it", first)
    yield bars("Time for each later step", later)
    yield curves("Loss: the lines lie on each other", trainings)


_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2126; --soft: #5b6570; --edge: #d9dee4;
  --wash: #f5f7f9; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #dde3e8; --soft: #95a0aa;
  --edge: #30373e; --wash: #1b2024; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0; } h2 { font-size: 1.05rem; margin: 2.2rem 0 .6rem; }
p { margin: .25rem 0; } .soft { color: var(--soft); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 1.2rem; }
.charts svg:last-child { grid-column: 1 / -1; }
.charts svg { border: 1px solid var(--edge); border-radius: 6px; padding: .8rem 1rem; width: 100%;
  height: auto; background: var(--wash); }
svg text { fill: var(--ink); font: 19px system-ui, sans-serif; }
.charts svg:last-child text { font-size: 12px; }
svg text.soft { fill: var(--soft); } svg text.title { font-weight: 600; }
svg .grid { stroke: var(--edge); }
table { border-collapse: collapse; } td, th { padding: .25rem 1.1rem .25rem 0; text-align: right; }
td:first-child, th:first-child { text-align: left; } th { color: var(--soft); font-weight: 600; }
tr { border-bottom: 1px solid var(--edge); }
pre { background: var(--wash); border: 1px solid var(--edge); border-radius: 6px; overflow-x: auto;
  padding: .8rem 1rem; font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; }
"""


def _row(row: tuple[str, ...], tag: str) -> str:
    cells = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
    return f"<tr>{cells}</tr>"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><thead>{_row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def page(trainings: list[Training], explanation: Any, backend: str, machine: str) -> str:
    from stator import demo

    head = ("", "first step", "per step", "graphs", "guards", "last loss", "losses")
    rows = [demo._cells(training, trainings)[:-1] for training in trainings]
    title = "Who compiles a small GPT?"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{title}</h1><p>{len(trainings[0].losses)} steps of training from the same weights, "
        f"backend {html.escape(backend)} on both sides.</p>"
        f'<p class="soft">{html.escape(machine)}</p>'
        f'<h2>Figures</h2>{_table(head, rows)}<h2>Charts</h2><div class="charts">'
        f"{''.join(charts(trainings))}</div><h2>A step with a problem in it</h2>"
        "<p>What stator.explain says: the break, its reason, and what to do about it.</p>"
        f"<pre>{html.escape(explanation.text())}</pre></body></html>\n"
    )
