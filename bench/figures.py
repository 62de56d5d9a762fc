"""Turns what the groups have measured into the one table of figures, with the goal for each."""


def dig(report, path):
    for name in path:
        report = report.get(name) if isinstance(report, dict) else None
    return report


# Title, where the figure is in the report, how it reads, the goal; higher is better where it ends
# in ×.
ROWS = (
    ("tracing, geometric mean", ("trace", "means", "ratio"), "{:.0f}×", "300×"),
    ("tracing with open sizes, over plain", ("trace", "means", "open_over_plain"), "{:.2f}", "1.3"),
    ("tracing up to an fx graph, geometric mean", ("trace", "means", "fx_ratio"), "{:.0f}×", "60×"),
    ("warm overhead of models, no grad", ("warm", "means", "no_grad"), "{:.1f}×", "25×"),
    ("warm overhead of models, training", ("warm", "means", "training"), "{:.1f}×", "25×"),
    ("warm call of a tiny function, µs", ("warm", "one", "stator function"), "{:.2f}", "0.25"),
    ("a module over a function, µs", ("warm", "one", "stator module over function"), "{:+.2f}",
     "+0.1"),
    ("8 entries, last over first", ("warm", "entries", "last_over_first"), "{:.2f}", "1.5"),
    ("first compile of a function, eager, s", ("start", "first", "a function, eager", "stator"),
     "{:.3f}", "0.050"),
    ("first compile of a module, eager, s", ("start", "first", "a module, eager", "stator"),
     "{:.3f}", "0.050"),
    ("memory of an entry (GPT-2) over stock's", ("memory", "ratio"), "{:.2f}", "0.20"),
    ("whole process, inductor, caches warm",
     ("inductor", "first", "BERT, 6 layers, caches warm", "ratio", "process"), "{:.2f}×", "3×"),
    ("first call, inductor, cold, 24 blocks, inference",
     ("inductor", "first", "24 blocks, inference, caches empty", "ratio", "call"), "{:.2f}×", "4×"),
    ("first call, inductor, cold, 24 blocks, training",
     ("inductor", "first", "24 blocks, training, caches empty", "ratio", "call"), "{:.2f}×", "3×"),
)  # fmt: skip


def number(text):
    return float(text.strip("×+"))


def is_met(value, goal):
    return value >= number(goal) if goal.endswith("×") else value <= number(goal)


def table(report):
    lines = ["| figure | now | goal | met |", "|---|--:|--:|---|"]
    for title, path, form, goal in ROWS:
        value = dig(report, path)
        if value is None:
            lines.append(f"| {title} | not measured | {goal} | |")
        else:
            met = "yes" if is_met(value, goal) else "no"
            lines.append(f"| {title} | {form.format(value)} | {goal} | {met} |")
    tags = dig(report, ("warm", "stock_dict_tags"))
    mode = {True: "on", False: "off", None: "not known"}[tags]
    return "\n".join([*lines, "", f"stock's recursive dict tags: {mode}"])
