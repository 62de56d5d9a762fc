"""The long run: many programs, plain against evaluated and hopping, without hypothesis.

    python tests/fuzz/run.py [count] [--first SEED] [--every N] [--out FOLDER] [--jobs N]

Programs are named by their seed. A child process takes a batch of seeds and says which one it is
at, so that a crash or a hang names its program; the rest of the batch goes to a new child. Failing
programs are written to the folder with what differed.
"""

import argparse
import contextlib
import faulthandler
import functools
import gc
import os
import pathlib
import resource
import select
import signal
import sys
import time

from generate import program_of_seed
from outcome import code_of, outcome, plain

BATCH = 100
SECONDS = 60  # for one program
MEMORY = 4 << 30


def engines(seed, every):
    """The engines that a program is compared under, by name."""
    import stator
    from stator import _engine

    def hopping(fn, *args):
        return _engine.evaluate_hopping(fn, args, {}, seed, every)

    return {"evaluate": stator.evaluate, f"hopping every {every}": hopping}


def differences(seed, source, every):
    """What differs from a plain run, by engine; empty if nothing does."""
    code = code_of(source, seed)
    expected = outcome(code, plain)
    found = {}
    for name, engine in engines(seed, every).items():
        seen = outcome(code, engine)
        text = "" if expected.at_limit and seen.at_limit else expected.difference(seen)
        if text:
            found[name] = text
    return found


def work(seeds, every, out, report):
    """In the child: say the seed before, and the verdict after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    gc.freeze()
    for seed in seeds:
        report(f"at {seed}")
        signal.alarm(SECONDS)
        source = program_of_seed(seed)
        found = differences(seed, source, every)
        if found:
            save(out, seed, source, found)
            report(f"bad {seed}")
        else:
            report(f"good {seed}")


def save(out, seed, source, found):
    out.mkdir(parents=True, exist_ok=True)
    lines = [f"# {line}" for name, text in found.items() for line in [name, *text.splitlines()]]
    (out / f"{seed}.py").write_text("\n".join(["from prelude import *", *lines, "", source]))


def fork(task):
    """Run `task(report)` in a child; its process id, and the pipe that it reports to."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    status = 1
    try:
        os.close(ours)
        faulthandler.enable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        task(lambda text: os.write(theirs, f"{text}\n".encode()))
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


class Run:
    """Hands batches to children and counts what comes back."""

    def __init__(self, seeds, every, out, work=work, source=program_of_seed):
        self.work, self.source = work, source
        self.todo = list(seeds)
        self.total = len(self.todo)
        self.every, self.out = every, out
        self.good, self.bad = 0, []
        self.children = {}  # pipe -> [process id, seeds left, text not yet split]
        self.began = self.told = time.monotonic()

    def start(self):
        seeds, self.todo = self.todo[:BATCH], self.todo[BATCH:]
        process, pipe = fork(functools.partial(self.work, seeds, self.every, self.out))
        self.children[pipe] = [process, seeds, ""]

    def read(self, pipe):
        """Take a child's lines; False when it is gone."""
        child = self.children[pipe]
        data = os.read(pipe, 65536)
        *lines, child[2] = (child[2] + data.decode()).split("\n")
        for line in lines:
            verdict, seed = line.split()
            if verdict != "at":
                child[1].remove(int(seed))
                self.good += verdict == "good"
                self.bad += [int(seed)] if verdict == "bad" else []
        return bool(data)

    def ended(self, pipe):
        process, seeds, _ = self.children.pop(pipe)
        os.close(pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if not seeds:
            return
        died_at = seeds.pop(0)
        why = "hung" if status == -signal.SIGALRM else f"ended with status {status}"
        found = {"child": f"the process {why}"}
        save(self.out, died_at, source_or_why(self.source, died_at), found)
        self.bad.append(died_at)
        self.todo = seeds + self.todo

    def progress(self):
        now, done = time.monotonic(), self.good + len(self.bad)
        if done < self.total and now < self.told + 1:
            return
        self.told = now
        rate = done / max(now - self.began, 0.001)
        text = f"{done}/{self.total} programs, {len(self.bad)} different, {rate:.0f} a second"
        print(f"\r{text} ", end="", flush=True)

    def go(self, jobs):
        while self.todo or self.children:
            while self.todo and len(self.children) < jobs:
                self.start()
            for pipe in select.select(list(self.children), [], [], 1)[0]:
                if not self.read(pipe):
                    self.ended(pipe)
            self.progress()
        print()


def source_or_why(source, seed):
    try:
        return source(seed)
    except Exception as exc:
        return f"# not made: {exc!r}\n"


def main():
    parser = argparse.ArgumentParser(description="Random programs, plain against evaluated.")
    parser.add_argument("count", type=int, nargs="?", default=20000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=7, help="boundaries between hops, on average")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/fuzz"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    run = Run(range(options.first, options.first + options.count), options.every, options.out)
    with contextlib.suppress(KeyboardInterrupt):
        run.go(options.jobs)
    for seed in run.bad:
        print(f"different: {options.out / f'{seed}.py'}")
    return 1 if run.bad or run.good < run.total else 0


if __name__ == "__main__":
    sys.exit(main())
