"""The long run for sizes and numbers that change: many programs, plain against compiled.

    python tests/fuzz/run_sizes.py [count] [--first SEED] [--out FOLDER] [--jobs N] [--shrink SEED]

Programs are named by their seed, which also says the backend and whether sizes are open from the
start. They run in child processes, and are written to the folder with what differed. At the end it
says how many functions were traced whole, and why others were not. --shrink takes statements away
from one program for as long as it differs, and prints the rest.
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
import size_outcome
from run_trace import save
from size_programs import calls_of_seed, program_of_seed


def work(seeds, every, out, report):
    """In the child: say the seed before, and the verdict after."""
    gc.freeze()
    size_outcome.torch.set_num_threads(1)
    tally = collections.Counter()
    for seed in seeds:
        report(f"at {seed}")
        signal.alarm(run.SECONDS)
        source, metrics = program_of_seed(seed), {}
        found = size_outcome.difference(source, seed, size_outcome.way_of_seed(seed), metrics)
        count(tally, metrics)
        if found:
            save(out, seed, source, found)
        report(f"{'bad' if found else 'good'} {seed}")
    signal.alarm(0)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "tally.jsonl", "a") as file:
        file.write(json.dumps(tally) + "\n")


def warm():
    """In the parent: what a process needs to do once, such as torch's imports."""
    size_outcome.torch.set_num_threads(1)
    for seed in (0, 2, 4):
        size_outcome.difference(program_of_seed(seed), seed, size_outcome.way_of_seed(seed))


def count(tally, metrics):
    if not metrics:
        return
    for name in ("entries", "hits", "traces"):
        tally[name] += metrics[name]
    tally["dropped" if metrics["drops"] else "traced"] += 1
    for reason in metrics["drops"][:1]:
        what = reason.splitlines()[0].partition(": ")[2]
        tally["why " + re.sub(r"0x[0-9a-f]+", "0x", what)[:120]] += 1


def tell(out):
    total = collections.Counter()
    path = out / "tally.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        total.update(json.loads(line))
    print(", ".join(f"{n} {what}" for what, n in total.items() if not what.startswith("why ")))
    rows = [(n, what[4:]) for what, n in total.most_common() if what.startswith("why ")]
    for n, what in rows[:30]:
        print(f"{n:6} {what}")


# -- shrinking --


def block_at(lines, at):
    """The lines of the statement that begins at a line."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > indent:
        end += 1
    return end


def smaller(lines):
    """Programs with a statement less, or with the body of a block in its place."""
    for at in range(len(lines) - 1, 0, -1):
        end = block_at(lines, at)
        yield lines[:at] + lines[end:]
        yield [*lines[:at], *(line[4:] for line in lines[at + 1 : end]), *lines[end:]]
        pad = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        if " = " in lines[at]:
            for part in re.findall(r"\(([^()]+)\)", lines[at].partition(" = ")[2]):
                yield [*lines[:at], f"{lines[at].partition(' = ')[0]} = {part}", *lines[at + 1 :]]
        yield [*lines[:at], f"{pad}pass", *lines[end:]]


def differs(source, seed, way, calls):
    with contextlib.suppress(SyntaxError):
        return size_outcome.difference(source, seed, way, calls=calls)
    return ""


def shrunk(seed):
    """A smaller program and fewer calls that still differ in the same way."""
    source, way, calls = (
        program_of_seed(seed),
        size_outcome.way_of_seed(seed),
        calls_of_seed(seed),
    )
    if not differs(source, seed, way, calls):
        return source, calls, ""
    for at in range(len(calls) - 1, -1, -1):
        fewer = calls[:at] + calls[at + 1 :]
        calls = fewer if fewer and differs(source, seed, way, fewer) else calls
    again = True
    while again:
        again = False
        lines = source.rstrip("\n").split("\n")
        for candidate in smaller(lines):
            text = "\n".join([*candidate, ""])
            if text != source and len(text) < len(source) and differs(text, seed, way, calls):
                source, again = text, True
                break
    return source, calls, differs(source, seed, way, calls)


def main():
    parser = argparse.ArgumentParser(description="Random sizes, plain against compiled.")
    parser.add_argument("count", type=int, nargs="?", default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/fuzz-sizes"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--shrink", type=int)
    options = parser.parse_args()
    if options.shrink is not None:
        print(*shrunk(options.shrink), sep="\n")
        return 0
    (options.out / "tally.jsonl").unlink(missing_ok=True)
    warm()
    seeds = range(options.first, options.first + options.count)
    trial = run.Run(seeds, 0, options.out, work, program_of_seed)
    with contextlib.suppress(KeyboardInterrupt):
        trial.go(options.jobs)
    tell(options.out)
    for seed in trial.bad:
        print(f"different: {options.out / f'{seed}.py'}")
    return 1 if trial.bad or trial.good < trial.total else 0


if __name__ == "__main__":
    sys.exit(main())
