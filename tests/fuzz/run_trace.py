"""The long run for the tracer: many programs and changes between calls, plain against compiled.

    python tests/fuzz/run_trace.py [count] [--first SEED] [--out FOLDER] [--jobs N] [--breaks K]

With --breaks every trace, of a call or of a frame that goes on, breaks before a random instruction,
about K of them on.

Programs are named by their seed, run in child processes, and written to the folder with what
differed. At the end it says how many functions were traced whole, and why others were not.
"""

import argparse
import collections
import contextlib
import gc
import json
import pathlib
import re
import signal
import sys

import run
import trace_outcome
from trace_programs import program_of_seed

TORCH = trace_outcome.has_torch()
breaks = 0  # set by the option, before children are made


def source_of(seed):
    return program_of_seed(seed, None if TORCH else False)


def save(out, seed, source, found):
    out.mkdir(parents=True, exist_ok=True)
    rows = [f"# {line}" for line in found.splitlines()]
    (out / f"{seed}.py").write_text("\n".join([source, *rows, ""]))


def work(seeds, every, out, report):
    """In the child: say the seed before, and the verdict after."""
    gc.freeze()
    tally = collections.Counter()
    for seed in seeds:
        report(f"at {seed}")
        signal.alarm(run.SECONDS)
        source, metrics = source_of(seed), {}
        compile = trace_outcome.broken(breaks, seed) if breaks else trace_outcome.worlds.keep_empty
        found = trace_outcome.difference(source, seed, compile, metrics=metrics)
        count(tally, metrics)
        if found:
            save(out, seed, source, found)
        report(f"{'bad' if found else 'good'} {seed}")
    signal.alarm(0)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "tally.jsonl", "a") as file:
        file.write(json.dumps(tally) + "\n")


def count(tally, metrics):
    if not metrics:
        return
    tally["whole" if metrics["entries"] and not metrics["drops"] else "dropped"] += 1
    tally["hits"] += metrics["hits"]
    tally["traces"] += metrics["traces"]
    for reason in metrics["drops"][:1]:
        what = reason.splitlines()[0].partition(": ")[2]
        tally["why " + re.sub(r"0x[0-9a-f]+", "0x", what)[:120]] += 1


def tell(out):
    total = collections.Counter()
    path = out / "tally.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        total.update(json.loads(line))
    rows = [(n, what[4:]) for what, n in total.most_common() if what.startswith("why ")]
    print(f"{total['whole']} traced whole, {total['dropped']} dropped; {total['traces']} traces, "
          f"{total['hits']} warm calls")  # fmt: skip
    for n, what in rows[:30]:
        print(f"{n:6} {what}")


def main():
    parser = argparse.ArgumentParser(description="Random programs, plain against compiled.")
    parser.add_argument("count", type=int, nargs="?", default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/fuzz-trace"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--breaks", type=int, default=0)
    options = parser.parse_args()
    global breaks
    breaks = options.breaks
    (options.out / "tally.jsonl").unlink(missing_ok=True)
    seeds = range(options.first, options.first + options.count)
    trial = run.Run(seeds, 0, options.out, work, source_of)
    with contextlib.suppress(KeyboardInterrupt):
        trial.go(options.jobs)
    tell(options.out)
    for seed in trial.bad:
        print(f"different: {options.out / f'{seed}.py'}")
    return 1 if trial.bad or trial.good < trial.total else 0


if __name__ == "__main__":
    sys.exit(main())
