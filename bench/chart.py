"""Draws docs/bench.svg: how much faster than stock Dynamo Stator traces and makes warm calls, model
by model. Text is text, colours suit light and dark pages."""

import html
import math

WIDTH, ROW, LABEL, ROOM = 760, 40, 150, 480
STYLE = """
text { font: 13px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 }
.soft { fill: #57606a; font-size: 12px }
.trace { fill: #2f6fde }
.warm { fill: #1a9c79 }
.axis { stroke: #8c959f; stroke-width: 1; stroke-opacity: .45 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.soft { fill: #9198a1 }
.trace { fill: #6ea2ff }
.warm { fill: #3ecf9f }
}"""
MARKS = (1, 10, 100, 1000)


def text(x, y, said, kind="", anchor="start"):
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">'
        f"{html.escape(said)}</text>"
    )


def length(ratio):
    """A power of ten is a third of the room."""
    return ROOM * max(0.004, math.log10(max(ratio, 1.0)) / 3)


def bar(y, ratio, kind, said):
    width = length(ratio)
    return (
        f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="13" rx="3" class="{kind}"/>'
        + text(LABEL + width + 7, y + 11, said, "soft")
    )


def milliseconds(value):
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def rows(report):
    for name, traced in report["trace"]["models"].items():
        warm = report["warm"]["models"][name]["no_grad"]
        yield (
            name,
            (traced["ratio"], f"{traced['ratio']:.0f}× ({milliseconds(traced['stock_ms'])} → "
                              f"{milliseconds(traced['stator_ms'])} ms)"),
            (warm["ratio"], f"{warm['ratio']:.0f}× ({warm['stock']:.0f} → "
                            f"{warm['stator']:.1f} µs)"),
        )  # fmt: skip


def axis(height):
    parts = []
    for mark in MARKS:
        x = LABEL + ROOM * MARKS.index(mark) / 3
        parts.append(f'<line x1="{x}" x2="{x}" y1="62" y2="{height - 44}" class="axis"/>')
        parts.append(text(x, height - 28, f"{mark:,}×", "soft", "middle"))
    return parts


def draw(report):
    found = list(rows(report))
    height = 70 + ROW * len(found) + 50
    title = "Faster than stock TorchDynamo, backend eager"
    parts = [text(6, 20, title, "title"), *legend(), *axis(height)]
    for at, (name, traced, warm) in enumerate(found):
        y = 70 + ROW * at
        parts.append(text(LABEL - 10, y + 19, name, "", "end"))
        parts += [bar(y, traced[0], "trace", traced[1]), bar(y + 15, warm[0], "warm", warm[1])]
    parts.append(text(6, height - 6, foot(report), "soft"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{title}">\n'
        f"<style>{STYLE}\n</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def legend():
    return [
        f'<rect x="{LABEL}" y="36" width="13" height="13" rx="3" class="trace"/>',
        text(LABEL + 20, 47, "tracing (a first call less a warm one)"),
        f'<rect x="{LABEL + 270}" y="36" width="13" height="13" rx="3" class="warm"/>',
        text(LABEL + 290, 47, "a warm call, without its graph"),
    ]


def foot(report):
    tags = "on" if report["warm"]["stock_dict_tags"] else "off"
    return (
        f"{report['trace']['date']}, CPython {report['python']}, torch {report['trace']['torch']}, "
        f"CPU, processor time, medians in turns; stock's recursive dict tags {tags}"
    )
