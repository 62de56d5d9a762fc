"""What the interpreter costs, measured next to CPython in the same run, as ratios; traces in
pieces, and open sizes. `make bench ARGS=engine`, or by itself with --parts.

Both sides take turns, round by round, in processor time; figures are medians over the
rounds. The spread (half the distance of the quartiles of the rounds' ratios) says how far to trust
them.
"""

import argparse
import functools
import gc
import inspect
import json
import math
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import types

import pieces
import programs
import sizes as changing

from stator import _engine, evaluate


def timed(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def calibrate(call, seconds):
    """How often to do it for a plain run to take that long; warms CPython's own caches up."""
    n = 200
    call(n)
    while (took := timed(functools.partial(call, n))) < seconds / 4:
        n *= 4
    return max(200, int(n * seconds / took))


def spread(times):
    """Half the distance between the quartiles, relative to the median."""
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / 2 / middle


def compare_kind(kind, rounds, seconds):
    n = calibrate(kind, seconds)
    if kind(n) != evaluate(kind, n):
        raise AssertionError(f"{kind.__name__}: the engines disagree")
    plain, evaluated = [], []
    for _ in range(rounds):
        plain.append(timed(lambda: kind(n)))
        evaluated.append(timed(lambda: evaluate(kind, n)))
    ratios = [e / p for e, p in zip(evaluated, plain, strict=True)]
    return {
        "plain_us": statistics.median(plain) / n * 1e6,
        "evaluated_us": statistics.median(evaluated) / n * 1e6,
        "ratio": statistics.median(ratios),
        "spread": spread(ratios),
    }


def interpreter(options):
    print(f"{'interpreter':16}{'plain µs':>12}{'ours µs':>12}{'ratio':>9}{'spread':>9}")
    rows = {}
    for kind in programs.KINDS:
        if options.kinds and kind.__name__ not in options.kinds:
            continue
        row = rows[kind.__name__] = compare_kind(kind, options.rounds, options.seconds)
        print(
            f"  {kind.__name__:14}{row['plain_us']:12.3f}{row['evaluated_us']:12.3f}"
            f"{row['ratio']:9.2f}{row['spread']:8.0%}",
            flush=True,
        )
    ratios = [row["ratio"] for row in rows.values()]
    mean, worst = statistics.geometric_mean(ratios), max(ratios)
    print(f"  {'geometric mean':14}{mean:33.2f}\n  {'worst':14}{worst:33.2f}\n")
    return {"kinds": rows, "geometric_mean": mean, "max": worst}


def codes_of(module):
    """All code objects of a module's source, compiled afresh: nothing is decoded yet."""
    todo = [compile(inspect.getsource(module), module.__name__, "exec")]
    while todo:
        code = todo.pop()
        yield code
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def decode(options):
    import argparse as a
    import typing as t

    first, second, idle, total = [], [], [], 0
    for _ in range(options.rounds):
        codes = [code for module in (a, inspect, t) for code in codes_of(module)]
        first.append(timed(lambda codes=codes: [_engine.decoded_at(c) for c in codes]))
        second.append(timed(lambda codes=codes: [_engine.decoded_at(c) for c in codes]))
        idle.append(timed(lambda codes=codes: [id(c) for c in codes]))
        total = total or sum(len(_engine.decode(c, False)) for c in codes)
    result = {
        "us_per_instruction": statistics.median(first) / total * 1e6,
        "second_ns": statistics.median(second) / len(codes) * 1e9,
        "native_call_ns": statistics.median(idle) / len(codes) * 1e9,
    }
    print(f"decode ({len(codes)} code objects, {total} instructions)")
    print(f"  µs an instruction     {result['us_per_instruction']:10.4f}")
    print(f"  second time, ns       {result['second_ns']:10.1f}")
    print(f"  (any native call, ns) {result['native_call_ns']:10.1f}\n")
    return result


def _deep(depth):
    if depth:
        return _deep(depth - 1) + 1
    return depth


def _innermost(fn, args, depth):
    """The first boundary at which that many frames are there to be taken."""
    for boundary in range(1, 10000):
        frame, found = _engine.take_image(fn, args, {}, boundary)[0], 0
        while frame is not None:
            frame, found = frame.caller, found + 1
        if found == depth:
            return boundary + 2
    raise AssertionError(f"no chain of {depth} frames")


def _take_and_put_back(fn, args, boundary, cpython):
    image, value = _engine.take_image(fn, args, {}, boundary)
    image, value = _engine.resume_image(image, cpython=cpython)
    return value


def image_chain(depth, rounds, cpython):
    """µs for taking a chain of that many frames and putting it back, less what the run costs."""
    args, repeat = (depth - 1,), 2000
    boundary = _innermost(_deep, args, depth)
    if _take_and_put_back(_deep, args, boundary, cpython) != depth - 1:
        raise AssertionError("an image was put back wrong")

    def move():
        for _ in range(repeat):
            _take_and_put_back(_deep, args, boundary, cpython)

    def stay():
        for _ in range(repeat):
            evaluate(_deep, *args)

    extra = [timed(move) - timed(stay) for _ in range(rounds)]
    return statistics.median(extra) / repeat * 1e6


def image(options):
    result = {}
    print("image taken and put back, µs")
    for engine, cpython in (("stator", False), ("cpython", True)):
        one = image_chain(1, options.rounds, cpython)
        eight = image_chain(8, options.rounds, cpython)
        each = (eight - one) / 7
        result[engine] = {"one_frame_us": one, "further_frame_us": each}
        print(f"  one frame, {engine:10} {one:10.3f}   each further one {each:8.3f}")
    print()
    return result


def hook(options):
    times = [timed(lambda: _engine.hook_cycle(10000)) / 10000 * 1e9 for _ in range(options.rounds)]
    result = {"install_and_remove_ns": statistics.median(times)}
    print(f"hook on and off, ns     {result['install_and_remove_ns']:10.1f}\n")
    return result


PLAIN_CHILD = """
import sys, time, statistics
sys.path[:0] = {path!r}
import programs
if {use}:
    import stator
    stator.evaluate(programs.calls, 100)
    assert not stator._engine.hook_installed()
def once():
    begin = time.process_time()
    for kind in (programs.calls, programs.methods, programs.generators, programs.containers):
        kind({n})
    return time.process_time() - begin
once()
print(statistics.median(once() for _ in range(9)))
"""


def plain_child(use, n):
    text = PLAIN_CHILD.format(path=sys.path, use=use, n=n)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return float(done.stdout)


def overhead(options):
    """Plain code in a process that evaluated once before, over one that never loaded Stator."""
    without, after = [], []
    for _ in range(min(9, options.rounds)):
        without.append(plain_child(False, 20000))
        after.append(plain_child(True, 20000))
    ratios = [a / w for a, w in zip(after, without, strict=True)]
    result = {"ratio": statistics.median(ratios), "spread": spread(ratios)}
    print(f"plain code, ratio       {result['ratio']:10.3f}   spread {result['spread']:.0%}")
    print("  (after import and one evaluate, over a process without Stator)\n")
    return result


def traces(options):
    result = pieces.tables()
    print()
    return result


def sizes(options):
    result = changing.tables()
    print()
    return result


PARTS = [interpreter, decode, image, hook, overhead, traces, sizes]
USUAL = PARTS[:5]


def main():
    parser = argparse.ArgumentParser(description="What Stator costs, next to CPython's own eval.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.015, help="of one plain run of a kind")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of programs")
    parser.add_argument("--parts", nargs="*", choices=[part.__name__ for part in PARTS])
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("build/engine.json"))
    options = parser.parse_args()
    print(f"CPython {platform.python_version()}, {platform.machine()}, rounds {options.rounds}\n")
    report = {"python": platform.python_version(), "machine": platform.machine()}
    gc.disable()
    for part in PARTS:
        if part.__name__ in options.parts if options.parts else part in USUAL:
            report[part.__name__] = part(options)
            gc.collect()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")
    print(f"written to {options.json}")
    return 0 if all(map(math.isfinite, numbers(report))) else 1


def numbers(value):
    if isinstance(value, dict):
        return [n for v in value.values() for n in numbers(v)]
    return [value] if isinstance(value, float) else []


if __name__ == "__main__":
    sys.exit(main())
