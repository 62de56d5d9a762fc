"""Makes one row of one of the engine's tables laxer at a time, and asks whether a test fails.

    make mutants                                       all of them, going on where it was left
    make mutants ARGS='--table rules --row list.append'
    make mutants ARGS='--minutes 9'                    as many as can be tried until then
    make mutants ARGS='--list'                         what there is, and what came of it

Nothing is built for a mutant: the test build can change its tables while it runs. One run of the
tests notes which rows each of them uses. Then, for each mutant, a process that has torch and the
engine loaded is forked, changes the row, collects the tests that use it afresh (some are made from
the tables) and runs them until one fails; that test must pass without the mutant. A crash or a
hang counts as a failure. A row that no test uses survives.

Results are kept in build/…/mutants, for this build of the engine. Survivors are tried again when
tests have changed. The test that killed a mutant in another build is tried before the tests are
noted. `mutants_explained.txt` says of each survivor why nothing is wrong; a row of it
that is not needed is an error.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import importlib
import itertools
import json
import math
import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stator import _engine

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
EXPLAINED = ROOT / "tools" / "mutants_explained.txt"
ENGINE = Path(_engine.__file__)
FOLDER = ENGINE.parents[2] / "mutants"
BAR = 0.98
# So begins the reason of a mutant that looks at memory in which anything may lie: it may crash.
LUCK = "luck: "

# Tests that call the engine in other processes say nothing here; these do that, or take long.
LEFT_OUT = ["tests/cpython", "tests/leak", "tests/fault", "tests/threads", "tests/fuzz"]
LEFT_OUT += ["tests/diff"]  # interprets, and asks no table
LEFT_OUT += ["tests/trace/test_cpython_twice.py", "tests/breaks/test_every_instruction.py"]
# How many tests are tried at a time, and at most: most mutants are found by the first few.
STAGES = (40, 300, 1500)
CPU_SECONDS = 300
NOWHERE = "(before the first test)"

# The tables as base/mutant.h numbers them.
RULES, GUARDS, SOURCES, STEPS, METAS = TABLES = "rules", "guards", "sources", "steps", "metas"
DEFINED = {
    GUARDS: ("src/guard/kinds.def", r"^GUARD\((\w+)", "passes always"),
    SOURCES: ("src/guard/sources.def", r"^SOURCE\((\w+)", "is read once"),
    STEPS: ("src/plan/steps.def", r"^STEP\((\w+)", "does nothing"),
}
CUSTOMS = "src/guard/customs.def", r'^CUSTOM\("([^"]+)"\)'
# What is read from FIXED is the key that the entry holds: there is nothing else to be read later.
# A number that only the graph knows (GRAPH) is never read. CUSTOM stands for the checks of CUSTOMS,
# of which the last is only for tests of the room alone.
# The source ARRAY asks of an array what the guard ARRAY has asked, and the tensor that this
# source gives is made anew each time.
SAME_ANYWAY = {(SOURCES, "FIXED"), (SOURCES, "GRAPH"), (GUARDS, "CUSTOM"), (GUARDS, "custom")}
SAME_ANYWAY |= {(GUARDS, "ARRAY"), (SOURCES, "ARRAY")}
META_ROW = re.compile(
    r'^(?:META|VIEW|ALIAS|ASK)\("([^"]+)", (\w+),\s+"(?:[^"]|"\s+")*", ([^)]+)\)', re.MULTILINE
)
META_CHANGES = {"sizes": 1, "dtype": 2, "grad": 3}
META_DATA = 16
META_KINDS = ("OF_FLOATS", "OF_INTEGERS", "OF_COMPLEX")
# Functions whose answer is a number: it has no dtype and no gradient.
META_NUMBERS = {"meta_size", "meta_dim", "meta_count", "meta_is_laid_out", "meta_is_of"}
META_NUMBERS |= {"meta_element_size"}
# Functions whose data are a number, and the number with which they answer most. Of the others'
# numbers any other is wrong.
META_MOST = {"meta_view": 1, "meta_split": 1, "meta_dropout": 0, "meta_matmul": 0, "meta_norm": 1}
META_MOST |= {"meta_zeros": 0, "meta_zeros_like": 0}  # without its random numbers
# Functions that answer for the kinds of dtypes in their data, and functions that answer for these
# alone where there are any.
META_OF_KINDS = {"meta_unary", "meta_activation", "meta_gelu", "meta_clamp"}
META_LIMITED = {"meta_reduction"}
META_WIDER = {"SCALED", "OF_BOOL"}  # flags without which a row answers less


class Mutant(NamedTuple):
    table: str
    row: str
    change: str
    rows: tuple[int, ...]  # numbers within the table
    apply: Callable[[], None]

    @property
    def name(self) -> str:
        return f"{self.table} | {self.row} | {self.change}"


# --- what mutants there are ---


def constants(*headers: str) -> dict[str, int]:
    """Bits that C headers name."""
    found = {}
    for header in headers:
        for name, bit in re.findall(r"^ *(\w+) = 1 << (\d+)", (ROOT / header).read_text(), re.M):
            found[name] = 1 << int(bit)
    return found


FLAGS = constants("src/call/rules.h", "src/call/protocol.h")
# Without one of these a row is stricter, not laxer.
STRICT = ("R_FROZEN", "R_GATHER", "R_KEYWORDS", "R_MOVED", "R_TEXT", "P_UNORDERED")
WRITES_NOTHING = 1  # W_NONE
GIVES_HELD = 1  # G_HELD
UNDONE = {"setattr", "__setattr__", "__setitem__", "setitem", "reverse", "rotate", "sort"}
UNDONE |= {"move_to_end", "symmetric_difference_update", "__ixor__", "ixor"}
KINDS = ("pure", "struct", "handled", "opaque")
MANY = 2**32 - 1


def bits_of(mask: int) -> Iterator[tuple[str, int]]:
    """Flags of a mask, and the mask without each. R_PLAIN is a weaker P_ATTR: they go together."""
    for name, bit in FLAGS.items():
        if not mask & bit or name in STRICT:
            continue
        if name == "P_ATTR":
            yield "P_ATTR", mask & ~bit & ~FLAGS["R_PLAIN"]
        elif name != "R_PLAIN" or not mask & FLAGS["P_ATTR"]:
            yield name, mask & ~bit


# Natively, with arguments that are opened and no more: columns and what they become.
NATIVELY = {
    "kind": KINDS.index("struct"),
    "first": FLAGS["R_OPEN"] | FLAGS["R_FROZEN"] | FLAGS["R_KEYWORDS"],
    "args": FLAGS["R_OPEN"],
}


def laxer_rules(kind: str, masks: dict[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """What can be changed about a row: (in words, columns and what they become)."""
    if kind != "struct":
        yield "runs natively", NATIVELY
        return
    for column, mask in masks.items():
        for name, left in bits_of(mask):
            yield f"{column} without {name}", {column: left}


def laxer_counts(takes: tuple[int, int, bool] | None) -> Iterator[tuple[str, dict[str, int]]]:
    """A handler that is called with one argument fewer than it takes, or with one more."""
    if takes and takes[0] > 0:
        yield "takes one fewer", {"least": takes[0] - 1}
    if takes and takes[1] < MANY:
        yield "takes one more", {"most": takes[1] + 1}


def change_rules(numbers: Iterable[int], columns: dict[str, int]) -> Callable[[], None]:
    def apply() -> None:
        for number in numbers:
            for column, value in columns.items():
                _engine.rule_change(number, column, value)

    return apply


# --- rows that look at nothing but builtin values ---

VALUES = [1, True, 1.5, 1j, "a", b"a", bytearray(b"a"), None, ..., NotImplemented, range(3)]
VALUES += [compile("1", "", "eval"), "ascii", "strict"]


def speaking(calls: list[str]) -> Any:
    """An object with every special method of builtin values; each notes that it was called."""
    names = {name for value in [*VALUES, [], {}, set(), iter("")] for name in dir(value)}
    names = {name for name in names if name[:2] == "__"} | {"__bytes__", "__fspath__"}
    names -= {name for name in dir(type) if name[:2] == "__"} - {"__eq__", "__hash__", "__repr__"}

    def method(name: str) -> Callable[..., Any]:
        return lambda *args: calls.append(name) or NotImplemented

    return type("Speaking", (), {name: method(name) for name in names})()


def looks_at_values_only(row: str) -> bool:
    """Whether a PURE row's function asks nothing of what is no builtin value, and reads no memory
    of another object: it is called with both in each place. If so, it makes no difference whether
    the row refuses such arguments or lets the function do so."""
    from tests.stage.callables import owners, resolve

    known = owners()
    found = resolve(row, known)
    if found is None:
        return False
    target, self = found
    calls: list[str] = []
    probes = [speaking(calls), memoryview(b"a"), memoryview(b"a" * 256)]
    if row.endswith("__new__"):
        starts = [[known[row.rpartition(".")[0]]]]
    else:
        starts = [[v] for v in VALUES if isinstance(v, self)] if self else [[]]
    around = [[], *([v] for v in VALUES), *([v, w] for v in VALUES for w in VALUES[:6])]
    for start, others, probe in itertools.product(starts, around, probes):
        for place in range(len(others) + 1):
            arguments = [*start, *others[:place], probe, *others[place:]]
            try:
                result = target(*arguments)
            except Exception:
                result = NotImplemented
            if calls or (probe is not probes[0] and result not in (NotImplemented, True, False)):
                return False
    return True


def rule_mutants(by_name: bool) -> Iterator[Mutant]:
    """One a line of rules.def; of what a row writes and what state it reads, one a name."""
    from tests.stage import rule_table

    lines, defined = defaultdict(list), rule_table.lines()
    rows, lines_of = _engine.rules(), _engine.rule_lines()
    for number, line in enumerate(lines_of):
        if line >= 0:
            lines[(line, number) if by_name else line].append(number)
    for numbers in lines.values():
        path, kind, first, args, elements, takes, *_ = rows[numbers[0]]
        row = path if len(numbers) == 1 else f"{path} and {len(numbers) - 1} more"
        masks = {"first": first, "args": args, "elements": elements}
        if kind == "pure" and all(looks_at_values_only(rows[n][0]) for n in numbers):
            continue
        changes = [*laxer_rules(kind, masks), *laxer_counts(takes)]
        if defined[lines_of[numbers[0]]].columns.get("gives", "G_HELD") != "G_HELD":
            changes.append(("gives what it holds", {"gives": GIVES_HELD}))
        for change, columns in changes:
            yield Mutant(RULES, row, change, tuple(numbers), change_rules(numbers, columns))
    yield from state_mutants(rows)
    yield from write_mutants(rows)


def state_mutants(rows: list[Any]) -> Iterator[Mutant]:
    """Handlers guard the state by themselves, and the column of their rows is for the reader; but
    those of patterns have the row's states read."""
    for number, (path, kind, *_, state) in enumerate(rows):
        if state and (kind != "handled" or path.startswith("re.Pattern.")):
            change = change_rules([number], {"state": 0})
            yield Mutant(RULES, path, "reads no state", (number,), change)


def write_mutants(rows: list[Any]) -> Iterator[Mutant]:
    """That a row writes must be known where the value at the end is what it was. What restored it
    is another row that writes, or the same: so by owner, and by name for rows that can undo what
    they did. Owners with one and the same writer are one. A row that says "inside" or "handler" is
    left out: the engine asks nothing of that word, which only tells the reader who sees to it."""
    owners: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        if row[-2] in ("self", "first"):
            owners[row[0].rpartition(".")[0]].append(number)
            if row[0].rpartition(".")[2] in UNDONE:
                change = change_rules([number], {"writes": WRITES_NOTHING})
                yield Mutant(RULES, row[0], "writes nothing", (number,), change)
    groups: dict[str, list[int]] = defaultdict(list)
    for owner, numbers in owners.items():
        name = rows[numbers[0]][0].rpartition(".")[2]
        groups[f"each {name}" if len(numbers) == 1 else owner] += numbers
    for group, numbers in groups.items():
        change = change_rules(numbers, {"writes": WRITES_NOTHING})
        yield Mutant(RULES, group, "nothing of it writes", tuple(numbers), change)


def plain_mutants(table: str) -> Iterator[Mutant]:
    file, pattern, change = DEFINED[table]
    names = re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)
    if table == GUARDS:
        names += re.findall(CUSTOMS[1], (ROOT / CUSTOMS[0]).read_text(), re.MULTILINE)
    for number, name in enumerate(names):
        if (table, name) not in SAME_ANYWAY:
            yield Mutant(table, name, change, (number,), engine_change(table, number, 1))


def meta_words() -> dict[str, int]:
    """What the data of meta rules are written in."""
    words: dict[str, int] = {"META_SIZES": 4, "META_STRIDES": 5}
    files = ("src/graph/graph.h", "src/graph/meta_inner.h")
    text = "".join((ROOT / file).read_text() for file in files)
    for name, value in re.findall(r"^ +(\w+) = ([^,/]+),", text, re.MULTILINE):
        words[name] = eval(value, {}, words)
    return words


def laxer_flags(function: str, value: int, flags: dict[str, int]) -> Iterator[tuple[str, int]]:
    """A flag goes; a kind of dtype goes where it limits, and comes where the row has no answer for
    it. Without one of its kinds a row is stricter, not laxer. Where integers became floats, they
    stay what they are."""
    answered = set(META_KINDS) if value & flags["GIVES_BOOL"] else set[str]()
    if value & flags["GIVES_FLOAT"]:
        answered.add("OF_INTEGERS")
    for name, bit in flags.items():
        kind = name in META_KINDS
        if not value & bit:
            if kind and function in META_OF_KINDS and name not in answered:
                yield f"data with {name}", value | bit
        elif name in META_WIDER:
            continue
        elif name == "GIVES_FLOAT" and value & flags["OF_FLOATS"]:
            yield f"data without {name}", value & ~bit | flags["OF_INTEGERS"]
        elif not kind or function in META_LIMITED:
            yield f"data without {name}", value & ~bit


def laxer_data(function: str, data: str, words: dict[str, int]) -> Iterator[tuple[str, int]]:
    """What a row's data can become: flags by flags, a number by another."""
    value = eval(data, {}, words)
    flags = constants("src/graph/meta_inner.h")
    if function == "meta_is_of":
        yield "data of the other", value ^ flags["OF_FLOATS"] ^ flags["OF_COMPLEX"]
    elif not set(re.findall(r"\w+", data)) - flags.keys() - {"TO_FLOAT", "REAL"}:
        yield from laxer_flags(function, value, flags)
    elif (value or function in META_MOST) and (
        other := META_MOST.get(function, value ^ 1)
    ) != value:
        yield f"data {other}", other


def meta_mutants() -> Iterator[Mutant]:
    text, words = (ROOT / "src/graph/meta_rules.def").read_text(), meta_words()
    rows = META_ROW.findall(text)
    if len(rows) != len(re.findall(r"^[A-Z]+\(", text, re.MULTILINE)):
        sys.exit("a row of meta_rules.def is written in another way")
    for number, (name, function, data) in enumerate(rows):
        numbers = function in META_NUMBERS
        changes = {c: code for c, code in META_CHANGES.items() if c == "sizes" or not numbers}
        for change, value in laxer_data(function, data, words):
            changes[change] = META_DATA + value
        for change, code in changes.items():
            yield Mutant(METAS, name, change, (number,), engine_change(METAS, number, code))


def engine_change(table: str, number: int, code: int) -> Callable[[], None]:
    return lambda: _engine.mutate(TABLES.index(table), number, code)


def all_mutants(by_name: bool) -> list[Mutant]:
    found = [*rule_mutants(by_name)]
    for table in DEFINED:
        found += plain_mutants(table)
    return [*found, *meta_mutants()]


# --- which tests use which rows ---


class Used(NamedTuple):
    test: str
    seconds: float
    tables: list[list[int]]

    @property
    def file(self) -> str:
        return self.test.partition("::")[0]


def digest(paths: Iterable[Path]) -> str:
    """The same wherever the project lies."""
    found = hashlib.sha256()
    for path in sorted(paths):
        found.update(os.path.relpath(path, ROOT).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def test_folders() -> dict[str, str]:
    """Folders of tests, each with a digest of its files and of what all share."""
    shared = digest([*(ROOT / "tests").glob("*.py"), ENGINE])
    folders = (f for f in (ROOT / "tests").iterdir() if f.is_dir() and f.name != "__pycache__")
    return {
        f"tests/{f.name}": shared + digest(p for p in f.rglob("*") if p.suffix in (".py", ".txt"))
        for f in sorted(folders)
        if f"tests/{f.name}" not in LEFT_OUT
    }


def note_used(folder: str, jobs: int, into: Path) -> None:
    """Runs the tests of a folder, which need not pass, with the plugin that notes rows."""
    scratch = FOLDER / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    for left in scratch.iterdir():
        left.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tools.used_rows", folder]
    command += [f"--ignore={path}" for path in LEFT_OUT]
    command += ["-p", "no:cacheprovider", "--tb=no", "-n", str(jobs), "--dist", "worksteal"]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"STATOR_USED_ROWS": str(scratch), "PYTHONPATH": path}
    print(f"-- noting which rows {folder} uses", flush=True)
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode not in (0, 1):  # all passed, or some failed
        sys.exit(f"{folder} could not be run: pytest's status {done.returncode}")
    into.write_text("".join(file.read_text() for file in sorted(scratch.iterdir())))


def read_used(jobs: int) -> list[Used]:
    """What each test uses; run again for a folder that has changed."""
    found = []
    for folder, state in test_folders().items():
        kept = FOLDER / f"used-{folder.rpartition('/')[2]}-{state}.jsonl"
        if not kept.exists():
            FOLDER.mkdir(parents=True, exist_ok=True)
            for old in FOLDER.glob(f"used-{folder.rpartition('/')[2]}-*.jsonl"):
                old.unlink()
            note_used(folder, jobs, kept)
        found += [Used(*json.loads(line)) for line in kept.read_text().splitlines()]
    return found


class Uses:
    """Tests by the rows they use: those that name the row, then those that use little else."""

    def __init__(self, tests: list[Used]) -> None:
        self.tests = tests
        self.by_row: dict[tuple[str, int], list[int]] = defaultdict(list)
        self.breadth = [sum(map(len, t.tables)) for t in tests]
        for i, test in enumerate(tests):
            for table, rows in zip(TABLES, test.tables, strict=True):
                for row in rows:
                    self.by_row[table, row].append(i)

    def of(self, mutant: Mutant) -> list[Used]:
        name = mutant.row.partition(" ")[0].rpartition(".")[2]
        # A test of one of a line's names is as good as one of another: take turns.
        turns = [
            sorted(
                self.by_row[mutant.table, row],
                key=lambda i: (name not in self.tests[i].test, self.cost(i)),
            )
            for row in mutant.rows
        ]
        order: dict[int, None] = {}
        for place in range(max(map(len, turns), default=0)):
            for turn in turns:
                if place < len(turn):
                    order.setdefault(turn[place])
        return [self.tests[i] for i in order]

    def cost(self, i: int) -> float:
        return self.tests[i].seconds + 0.002 * self.breadth[i]


# --- one mutant ---


class Chosen:
    """A pytest plugin: only these tests, in this order, up to the first that fails; says where it
    is on a pipe."""

    def __init__(self, tests: list[str], pipe: int) -> None:
        self.order = {test: i for i, test in enumerate(tests)}
        self.pipe = pipe

    def say(self, *words: str) -> None:
        os.write(self.pipe, (json.dumps(words) + "\n").encode())

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )
        self.say("collected", str(len(items)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.say("at", nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.say("failed", report.nodeid)


def limit_child() -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)


def foreign_modules(pipe: int) -> None:
    """In a forked process: says which modules the tests import that are not of this project."""
    import pytest

    limit_child()
    files = [*test_folders(), *(f"--ignore={path}" for path in LEFT_OUT)]
    pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist", *files])
    ours = (str(ROOT / "tests"), str(ROOT / "tools"))
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and not file.startswith(ours):
            os.write(pipe, f"{name}\n".encode())
    os._exit(0)


def load_libraries() -> None:
    """Imports here what the tests import, so that forked processes have it. Not the tests and their
    helpers: some look at the engine's tables when they are imported."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        foreign_modules(theirs)
    os.close(theirs)
    with open(ours) as names:
        wanted = names.read().split()
    os.waitpid(child, 0)
    for name in wanted:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what all have in common stays in common


def run_child(mutant: Mutant | None, tests: list[Used], pipe: int) -> None:
    """In the forked process; never returns."""
    try:
        limit_child()
        import pytest

        if mutant is not None:
            mutant.apply()
        files = list(dict.fromkeys(test.file for test in tests))
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist"]
        plugin = Chosen([test.test for test in tests], pipe)
        pytest.main([*options, *files], plugins=[plugin])
        plugin.say("end")
    finally:
        os._exit(0)


@dataclass
class Child:
    """A process that runs some tests with a mutant, and what it has said so far."""

    mutant: Mutant | None
    tests: list[Used]
    pid: int = 0
    pipe: int = 0
    began: float = 0.0
    text: bytes = b""

    def start(self) -> None:
        self.began = time.monotonic()
        self.pipe, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            run_child(self.mutant, self.tests, theirs)
        os.close(theirs)

    def read(self) -> bool:
        """Whether there is more to come."""
        part = os.read(self.pipe, 1 << 16)
        self.text += part
        return bool(part)

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)

    def verdict(self) -> str | None:
        """The test that failed, or in which the process went; None if all passed."""
        at, ended = "", False
        for line in self.text.decode(errors="replace").splitlines():
            kind, *rest = json.loads(line) if line.endswith("]") else ("", "")
            if kind == "failed":
                return rest[0]
            ended |= kind == "end"
            at = rest[0] if kind == "at" else at
        return None if ended else at or NOWHERE


# --- all of them ---


@dataclass
class Results:
    """Verdicts of mutants, kept in a file: what killed it, or None."""

    path: Path
    tests: str  # a digest of the tests; survivors of others are tried again
    verdicts: dict[str, str | None] = field(default_factory=dict)

    def killers(self) -> dict[str, str]:
        """The tests that killed mutants in other builds."""
        found = {}
        for path in sorted(self.path.parent.glob("results-*.jsonl"), key=os.path.getmtime):
            for line in path.read_text().splitlines() if path != self.path else ():
                name, killer, _ = json.loads(line)
                if killer is not None and "::" in killer:
                    found[name] = killer
        return found

    def load(self) -> None:
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            name, killer, tests = json.loads(line)
            if killer is not None or tests == self.tests:
                self.verdicts[name] = killer
            else:
                self.verdicts.pop(name, None)

    def add(self, name: str, killer: str | None) -> None:
        self.verdicts[name] = killer
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a") as file:
            file.write(json.dumps([name, killer, self.tests]) + "\n")


@dataclass
class Trial:
    """The way of one mutant: some tests, then more; a test that fails must pass without it."""

    mutant: Mutant
    tests: list[Used]
    stage: int = 0
    suspect: str = ""
    final: bool = True  # no other tests are tried later: what they do not kill survives

    def next(self, sound: dict[str, bool]) -> Child | None:
        if self.suspect:
            return Child(None, [t for t in self.tests if self.suspect in (t.test, t.file)])
        from_ = 0 if self.stage == 0 else STAGES[self.stage - 1]
        tests = [
            t
            for t in self.tests[from_ : STAGES[self.stage]]
            if sound.get(t.test, True) and sound.get(t.file, True)
        ]
        return Child(self.mutant, tests) if tests else None


class Hunt:
    """Runs trials, some at a time, until there are none left or the time is over."""

    def __init__(self, results: Results, jobs: int, total: int, until: float) -> None:
        self.results = results
        self.jobs, self.until = jobs, until
        self.total, self.done, self.alive = total, 0, 0
        # Tests that pass without a mutant or do not, and files that can be collected or cannot.
        self.sound: dict[str, bool] = {}
        self.began = time.monotonic()

    def decide(self, trial: Trial, killer: str | None) -> None:
        self.results.add(trial.mutant.name, killer)
        self.done += 1
        self.alive += killer is None
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done)
        verdict = f"killed by {killer}" if killer else "SURVIVED"
        print(
            f"[{self.done}/{self.total}, {self.alive} survive, {left / 60:.0f} min left] "
            f"{trial.mutant.name}: {verdict}",
            flush=True,
        )

    def after(self, trial: Trial, child: Child) -> bool:
        """Whether the trial goes on."""
        failed = child.verdict()
        if child.mutant is None:
            self.sound[trial.suspect] = failed != trial.suspect
            killer, trial.suspect = trial.suspect, ""
            if self.sound[killer]:
                self.decide(trial, killer)
            return not self.sound[killer]  # without the unsound test, once more
        if failed is None:
            trial.stage += 1
            return True
        known = self.sound.get(failed, True if failed == NOWHERE else None)
        if known:
            self.decide(trial, failed)
        elif known is None:
            trial.suspect = failed
        return not known

    def run(self, trials: list[Trial]) -> None:
        waiting, running = trials[::-1], dict[int, tuple[Trial, Child]]()
        try:
            while (waiting or running) and time.monotonic() < self.until:
                while waiting and len(running) < self.jobs:
                    self.launch(waiting.pop(), running)
                self.listen(running, waiting)
        finally:
            for _, child in running.values():
                child.end()

    def launch(self, trial: Trial, running: dict[int, tuple[Trial, Child]]) -> None:
        while trial.stage < len(STAGES):
            child = trial.next(self.sound)
            if child is not None:
                child.start()
                running[child.pipe] = trial, child
                return
            trial.stage += 1
        if trial.final:
            self.decide(trial, None)

    def listen(self, running: dict[int, tuple[Trial, Child]], waiting: list[Trial]) -> None:
        ready, _, _ = select.select(list(running), [], [], 5.0)
        late = [p for p, (_, c) in running.items() if time.monotonic() > c.began + 4 * CPU_SECONDS]
        for pipe in {*ready, *late}:
            trial, child = running[pipe]
            if pipe in ready and child.read():
                continue
            del running[pipe]
            child.end()
            if self.after(trial, child):
                waiting.append(trial)


# --- what is told ---


def read_explained() -> dict[str, str]:
    """Rows `table | row | change | reason`."""
    found = {}
    for line in EXPLAINED.read_text().splitlines() if EXPLAINED.exists() else ():
        if line.strip() and not line.startswith("#"):
            table, row, change, reason = (cell.strip() for cell in line.split("|", 3))
            found[f"{table} | {row} | {change}"] = reason
    return found


def tell(mutants: list[Mutant], there: set[str], verdicts: dict[str, str | None]) -> int:
    """The figures and the survivors; 1 if too many live, or live without a reason. `there`: the
    names of all mutants, chosen or not."""
    explained, bad = read_explained(), False
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        if mutant.name not in verdicts:
            counts[mutant.table]["not tried"] += 1
            continue
        killed, reason = verdicts[mutant.name] is not None, explained.get(mutant.name, "")
        counts[mutant.table]["killed" if killed else "survive"] += 1
        if killed == bool(reason) and not reason.startswith(LUCK):
            bad = True
            what = "is killed, but explained" if killed else "SURVIVES"
            print(f"{mutant.name} {what}")
    for table, count in counts.items():
        tried = count["killed"] + count["survive"]
        share = count["killed"] / max(tried, 1)
        bad |= share < BAR or bool(count["not tried"])
        print(
            f"{table:8} {count['killed']:5} of {tried:5} killed ({share:.1%}), "
            f"{count['survive']} survive, {count['not tried']} not tried"
        )
    for name in explained.keys() - there:
        if name.partition(" | ")[0] in counts:
            print(f"{name} is explained, but there is no such mutant")
            bad = True
    return int(bad)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", choices=TABLES, action="append", help="only of these tables")
    parser.add_argument("--row", help="only of rows in whose name this is; a rule by its full path")
    parser.add_argument("--names", action="store_true", help="rules name by name, not by line")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after this time")
    parser.add_argument("--fresh", action="store_true", help="forget results")
    parser.add_argument("--list", action="store_true", help="try nothing, tell what is known")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Mutant]:
    paths = [row[0] for row in _engine.rules()]
    found = []
    for mutant in all_mutants(options.names):
        names = [paths[n] for n in mutant.rows] if mutant.table == RULES else [mutant.row]
        if options.table and mutant.table not in options.table:
            continue
        if options.row and options.row not in names:
            continue
        found.append(mutant)
    return found


def untried(mutants: list[Mutant], results: Results) -> list[Mutant]:
    todo = [m for m in mutants if m.name not in results.verdicts]
    print(f"-- {len(mutants)} mutants, {len(todo)} to try", flush=True)
    return todo


def try_killers(mutants: list[Mutant], results: Results, jobs: int, until: float) -> None:
    """Tries each mutant on the test that killed it in another build."""
    killers = results.killers()
    todo = [m for m in untried(mutants, results) if m.name in killers]
    hunt = Hunt(results, jobs, len(todo), until)
    hunt.run([Trial(m, [Used(killers[m.name], 0.0, [])], final=False) for m in todo])


def try_noted(mutants: list[Mutant], results: Results, jobs: int, until: float) -> None:
    """Tries the other mutants on the tests that use their rows."""
    todo = untried(mutants, results)
    if todo and time.monotonic() < until:
        uses = Uses(read_used(jobs))
        hunt = Hunt(results, jobs, len(todo), until)
        hunt.run([Trial(m, uses.of(m)) for m in todo])


def main() -> int:
    options = parse()
    until = time.monotonic() + 60 * options.minutes
    os.chdir(ROOT)
    mutants = chosen(options)
    tests = hashlib.sha256(json.dumps(test_folders()).encode()).hexdigest()[:16]
    results = Results(FOLDER / f"results-{digest([ENGINE])}.jsonl", tests)
    if options.fresh:
        results.path.unlink(missing_ok=True)
    results.load()
    if not options.list:
        load_libraries()
        try_killers(mutants, results, options.jobs, until)
        try_noted(mutants, results, options.jobs, until)
    there = {mutant.name for mutant in all_mutants(options.names)}
    return tell(mutants, there, results.verdicts)


if __name__ == "__main__":
    sys.exit(main())
