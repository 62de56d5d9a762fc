"""Runs modules of CPython's test package plain and in the interpreter, each in a process of its
own, and compares what every single test came to."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WORKER = HERE / "worker.py"
RESULTS = Path(
    os.environ.get("STATOR_CPYTHON_RESULTS", HERE.parent.parent / "build" / "cpython-tests")
)
PYTHON = "%d.%d" % sys.version_info[:2]
SETS = ("quick", "full", "extra")
PLAIN_LIMIT = 300.0
SLOWDOWN = 15.0
# A test that crashes, hangs or takes the hook away hides those behind it: the module is run again
# without it.
RESTARTS = 12
LOG_TAIL = 3000
# What the process as a whole came to is compared like a test.
MODULE, EXIT = "(module)", "(exit)"


@dataclass(frozen=True)
class Module:
    name: str
    pythons: str
    set: str
    seconds: tuple[float | None, ...]


@dataclass
class Test:
    outcomes: list[str] = field(default_factory=list)
    subtests: dict[str, str] = field(default_factory=dict)
    detail: str = ""

    def verdict(self) -> str:
        """What is compared: outcomes (skips with their reason) and the subtests that stood out."""
        parts = list(self.outcomes) or ["no outcome"]
        parts += [f"[{what}] {name}" for name, what in sorted(self.subtests.items())]
        return "; ".join(parts)


@dataclass
class Run:
    module: str
    mode: str
    seconds: float = 0.0
    tests: dict[str, Test] = field(default_factory=dict)
    log: str = ""

    def crashed(self) -> bool:
        return any(
            what.startswith(("crash", "timeout"))
            for t in self.tests.values()
            for what in t.outcomes
        )

    def verdict(self, key: str) -> str:
        return self.tests[key].verdict() if key in self.tests else "did not run"


@dataclass
class Difference:
    module: str
    test: str
    plain: str
    evaluated: str
    detail: str
    reason: str = ""


@dataclass
class Report:
    """What became of one module: `different` fails the run, the other lists are only told."""

    module: str
    plain: Run
    evaluated: Run
    different: list[Difference] = field(default_factory=list)
    known: list[Difference] = field(default_factory=list)
    flaky: list[Difference] = field(default_factory=list)

    def row(self) -> str:
        total = len(self.plain.tests.keys() | self.evaluated.tests.keys())
        off = len(self.different) + len(self.known) + len(self.flaky)
        cells = [total, total - off, len(self.different), len(self.known), len(self.flaky)]
        crash = "crash" if self.evaluated.crashed() else ""
        return (
            f"{self.module:42}"
            + "".join(f"{cell:7}" for cell in cells)
            + f"{crash:>7}{self.plain.seconds:9.1f}{self.evaluated.seconds:9.1f}"
        )


HEADER = (
    f"{'module':42}{'tests':>7}{'same':>7}{'differ':>7}{'known':>7}{'flaky':>7}"
    f"{'':>7}{'plain s':>9}{'eval s':>9}"
)


def rows_of(path: Path) -> Iterable[str]:
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def python_matches(pythons: str, python: str = PYTHON) -> bool:
    """`all`, `3.12+`, `3.12-` (up to), or a list `3.11,3.13`."""
    minor = int(python.split(".")[1])
    if pythons == "all":
        return True
    if pythons.endswith("+"):
        return minor >= int(pythons[:-1].split(".")[1])
    if pythons.endswith("-"):
        return minor <= int(pythons[:-1].split(".")[1])
    return python in pythons.split(",")


def read_modules(path: Path = HERE / "modules.txt") -> list[Module]:
    """Rows of modules.txt: name, pythons, set, then plain seconds on each Python."""
    modules = []
    for row in rows_of(path):
        name, pythons, chosen, *seconds = row.split()
        if chosen not in SETS:
            raise ValueError(f"{path.name}: {name}: no such set: {chosen}")
        times = tuple(None if s == "-" else float(s) for s in seconds)
        modules.append(Module(name, pythons, chosen, times))
    names = [module.name for module in modules]
    if len(set(names)) != len(names):
        raise ValueError(f"{path.name}: a module is listed twice")
    return modules


def choose(chosen: str, python: str = PYTHON) -> list[Module]:
    """The modules of a set, and of the smaller sets within it, that this Python has."""
    wanted = SETS[: SETS.index(chosen) + 1]
    return [m for m in read_modules() if m.set in wanted and python_matches(m.pythons, python)]


def read_differences(path: Path = HERE / "differences.txt") -> dict[tuple[str, str], str]:
    """Rows `pythons | module | test | reason` for this Python, as {(module, test): reason}."""
    known = {}
    for row in rows_of(path):
        pythons, module, test, reason = (cell.strip() for cell in row.split("|", 3))
        if python_matches(pythons):
            known[module, test] = reason
    return known


def read_timed(module: str, path: Path = HERE / "timed.txt") -> list[str]:
    """The tests of a module that are not run, of rows `module | test | what it measures`."""
    rows = ([cell.strip() for cell in row.split("|", 2)] for row in rows_of(path))
    return [test for name, test, _ in rows if name == module]


def skipped(reason: str) -> str:
    """Reasons may hold measured seconds."""
    return "skip: " + re.sub(r"\d+\.\d+", "<n>", reason)


def read_journal(path: Path, run: Run) -> tuple[str | None, bool]:
    """Adds a worker's events to the run; returns the test it was left in, and whether it ended."""
    current, ended = None, False
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        kind, *rest = json.loads(line)
        if kind in ("end", "lost"):
            current, ended = (rest[0] if rest else None), True
            continue
        test = run.tests.setdefault(rest[0], Test())
        if kind == "start":
            current = rest[0]
        elif kind == "stop":
            current = None
        elif kind == "sub":
            test.subtests[rest[1]] = rest[2]
            test.detail += f"[{rest[1]}] {rest[3]}\n"
        else:
            what, detail = rest[1:]
            test.outcomes.append(skipped(detail) if what == "skip" else what)
            test.detail += detail
    return current, ended


# Variables that steer Python, the tests, or what they print.
STEERING = ("PYTHON", "PYTEST", "STATOR_CPYTHON", "LC_", "LANG", "TERM")
STEERING += ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")


def environment(scratch: Path) -> dict[str, str]:
    """The caller's variables, less those that steer. Plain results are kept, and may be compared with
    those of a run that a shell with other settings started."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(STEERING)}
    if "PYTHONPATH" in os.environ:
        kept["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return kept | {"TMPDIR": str(scratch), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}


def start_worker(module: str, mode: str, scratch: Path, without: list[str]) -> Any:
    # Like regrtest's, the working folder's name is not ASCII.
    home = scratch / "work-\u00e6"
    home.mkdir()
    command = [sys.executable, "-X", "faulthandler", str(WORKER), module, "--mode", mode]
    command += ["--journal", str(scratch / "journal")]
    for test in without:
        command += ["--without", test]
    with open(scratch / "log", "wb") as log:
        return subprocess.Popen(
            command,
            cwd=home,
            env=environment(scratch),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for(process: Any, limit: float) -> str | None:
    """Waits; returns how the process ended if not by itself. A hanging one is made to print its
    stacks (faulthandler answers SIGABRT) before it goes."""
    try:
        status = process.wait(limit)
        return f"crash {signal.Signals(-status).name}" if status < 0 else None
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            pass
        return "timeout"
    finally:
        kill_session(process)


def kill_session(process: Any) -> None:
    """Children that tests left behind share the worker's process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def run_once(module: str, mode: str, limit: float, run: Run, without: list[str]) -> str | None:
    """One worker process. Returns the test it was left in, if any."""
    scratch = Path(tempfile.mkdtemp(prefix="stator-"))
    try:
        process = start_worker(module, mode, scratch, without)
        end = wait_for(process, limit)
        current, ended = read_journal(scratch / "journal", run)
        log = (scratch / "log").read_text(errors="replace")
        status = process.returncode
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    run.log += log[-LOG_TAIL:]
    if end is None and not ended:
        end = f"crash exit status {status}"
    if end is None:
        return current
    key = (EXIT if ended else current) or MODULE
    run.tests.setdefault(key, Test()).outcomes = [end]
    run.tests[key].detail = log[-LOG_TAIL:]
    return current


def run_module(module: str, mode: str, limit: float) -> Run:
    """Runs a module, going round tests that kill or hang the process."""
    run = Run(module, mode)
    began = time.perf_counter()
    timed, without = read_timed(module), list[str]()
    while True:
        again = Run(module, mode)
        left_in = run_once(module, mode, limit, again, timed + without)
        fallen = {key: run.tests[key] for key in without}
        run.tests = again.tests | fallen
        run.log += again.log
        if left_in is None or left_in in without or len(without) == RESTARTS:
            break
        without.append(left_in)
    run.seconds = round(time.perf_counter() - began, 2)
    return run


def save(run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")  # another process may save the same
    part.write_text(json.dumps(asdict(run), indent=1))
    part.replace(path)


def restore(path: Path) -> Run:
    data = json.loads(path.read_text())
    tests = {key: Test(**test) for key, test in data.pop("tests").items()}
    return Run(**data, tests=tests)


def folder() -> Path:
    """Results of this Python; another interpreter, or another worker, starts afresh."""
    about = [sys.version, sys.prefix, WORKER.read_text(), (HERE / "timed.txt").read_text()]
    digest = hashlib.sha256("\0".join(about).encode()).hexdigest()[:8]
    return RESULTS / ("%d.%d.%d-" % sys.version_info[:3] + digest)


def run_plain(module: str, fresh: bool) -> Run:
    path = folder() / f"{module}.plain.json"
    if path.exists() and not fresh:
        return restore(path)
    run = run_module(module, "plain", PLAIN_LIMIT)
    if not run.crashed():
        save(run, path)
    return run


def run_other(module: str, mode: str, plain: Run) -> Run:
    run = run_module(module, mode, max(PLAIN_LIMIT, SLOWDOWN * plain.seconds))
    save(run, folder() / f"{module}.{mode}-last.json")
    return run


def differing(plain: Run, other: Run) -> list[Difference]:
    keys = list(dict.fromkeys([*plain.tests, *other.tests]))
    found = []
    for key in keys:
        one, two = plain.verdict(key), other.verdict(key)
        if one != two:
            detail = (other.tests.get(key) or plain.tests[key]).detail
            found.append(Difference(plain.module, key, one, two, detail))
    return found


def settle(report: Report, doubtful: list[Difference], mode: str) -> None:
    """Runs again to tell differences from flaky tests: a test is flaky if it varies in plain runs,
    or if it came out as in plain in both of two further runs. A crash is never flaky."""
    module = report.module
    plain_again = run_plain(module, fresh=True)
    varying = {d.test for d in differing(report.plain, plain_again)}
    second = run_other(module, mode, report.plain)
    third: Run | None = None
    for doubt in doubtful:
        if doubt.test in varying:
            report.flaky.append(doubt)
            continue
        steady = second.verdict(doubt.test) == doubt.plain
        if steady and not doubt.evaluated.startswith("crash"):
            third = third or run_other(module, mode, report.plain)
            if third.verdict(doubt.test) == doubt.plain:
                report.flaky.append(doubt)
                continue
        report.different.append(doubt)


def compare(module: str, mode: str = "evaluated", fresh: bool = False) -> Report:
    """Runs a module both ways and sorts what differs."""
    listed = read_differences()
    plain = run_plain(module, fresh)
    report = Report(module, plain, run_other(module, mode, plain))
    doubtful: list[Difference] = []
    for difference in differing(plain, report.evaluated):
        difference.reason = listed.get((module, difference.test), "")
        (report.known if difference.reason else doubtful).append(difference)
    if doubtful:
        settle(report, doubtful, mode)
    return report


def compare_all(
    modules: list[str], told: Callable[[Report], None], mode: str, fresh: bool, jobs: int
) -> list[Report]:
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(compare, module, mode, fresh) for module in modules]
        reports = []
        for future in as_completed(futures):
            reports.append(future.result())
            told(reports[-1])
    return reports


def unused_rows(report: Report) -> list[str]:
    """Listed differences of a module that did not show up."""
    seen = {d.test for d in report.known}
    return [
        f"{module} | {test}"
        for module, test in read_differences()
        if module == report.module and test not in seen
    ]


def tell(report: Report, verbose: bool) -> None:
    print(report.row(), flush=True)
    for title, found in ("DIFFERENT", report.different), ("flaky", report.flaky):
        for d in found:
            print(f"    {title}: {d.test}\n        plain: {d.plain}\n        other: {d.evaluated}")
            if verbose and d.detail:
                print("\n".join("        | " + line for line in d.detail.splitlines()[-25:]))
    sys.stdout.flush()


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", help="modules to run instead of a set")
    parser.add_argument("--set", choices=SETS, default="full", help="a set includes smaller ones")
    parser.add_argument("--mode", choices=["evaluated", "plain"], default="evaluated")
    parser.add_argument("--fresh", action="store_true", help="do not use cached plain results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true", help="print details")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    modules = options.modules or [module.name for module in choose(options.set)]
    print(f"Python {sys.version.split()[0]}: {len(modules)} modules, results in {folder()}")
    print(HEADER, flush=True)
    reports = compare_all(
        modules, lambda r: tell(r, options.verbose), options.mode, options.fresh, options.jobs
    )
    unused = [row for r in reports if options.mode != "plain" for row in unused_rows(r)]
    for row in unused:
        print(f"differences.txt: no such difference: {row}")
    tests = sum(len(report.plain.tests) for report in reports)
    different = sum(len(report.different) for report in reports)
    flaky = sum(len(report.flaky) for report in reports)
    known = sum(len(report.known) for report in reports)
    print(f"{tests} tests, {different} different, {known} known differences, {flaky} flaky")
    return 1 if different or unused else 0


if __name__ == "__main__":
    sys.exit(main())
