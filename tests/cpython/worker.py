"""Runs one module of CPython's test package in this process, plain or in the interpreter, and
appends what each test came to as JSON lines: after a crash, all that was known before is there."""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import operator
import os
import random
import re
import signal
import sys
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

DETAIL_CHARS = 4000
SEED = 20_11_13
# Where a description holds an address or a path of this run, two runs would never agree.
ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class Journal:
    """Appends events to a file. Tests fork, close descriptors and patch `os`: hence the pid, the
    open for each line, and the functions kept from before the tests."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.here = os.getcwd()
        self.getpid = os.getpid
        self.pid = os.getpid()
        self.calls = os.open, os.write, os.close, json.dumps

    def write(self, *event: Any) -> None:
        if self.getpid() != self.pid:
            return
        open_, write, close, dumps = self.calls
        line = dumps(event).replace(self.here, "<tmp>") + "\n"
        fd = open_(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            write(fd, line.encode())
        finally:
            close(fd)


class Recorder(unittest.TestResult):
    """Writes every outcome to the journal at once.

    Events: ["start", key], ["outcome", key, what, detail], ["sub", key, description, what, detail],
    ["stop", key, seconds]. Outcomes without start belong to fixtures (`setUpClass (…)`)."""

    def __init__(self, journal: Journal, hooked: Callable[[], bool]) -> None:
        super().__init__()
        self.journal = journal
        self.hooked = hooked
        self.clock = time.perf_counter
        self.seen: dict[str, int] = {}
        self.current: tuple[int, str] | None = None
        self.last = "(module)"
        self.began = 0.0

    def key_of(self, test: Any) -> str:
        """The test's id; the second test of that name is `id#2`."""
        if self.current is not None and self.current[0] == id(test):
            return self.current[1]
        name = ADDRESS.sub("0x", test.id())
        self.seen[name] = count = self.seen.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"

    def startTest(self, test: Any) -> None:
        self.check_hook()
        super().startTest(test)
        key = self.key_of(test)
        self.current = id(test), key
        self.began = self.clock()
        self.journal.write("start", key)

    def stopTest(self, test: Any) -> None:
        # 3.12.1 skips tests without starting them.
        if self.current is not None:
            self.last = self.current[1]
            self.journal.write("stop", self.last, round(self.clock() - self.began, 4))
            self.current = None
        super().stopTest(test)

    def check_hook(self) -> None:
        """If the last test took the hook away, those after it would silently be run by CPython:
        they need a new process."""
        if not self.hooked():
            self.journal.write("outcome", self.last, "lost the hook", "")
            self.journal.write("lost", self.last)
            os._exit(0)

    def note(self, test: Any, what: str, detail: str = "") -> None:
        case = getattr(test, "test_case", None)
        if case is not None and hasattr(test, "_subDescription"):
            self.note_sub(case, test, what, detail)
        else:
            self.journal.write("outcome", self.key_of(test), what, detail[-DETAIL_CHARS:])

    def note_sub(self, test: Any, subtest: Any, what: str, detail: str) -> None:
        description = ADDRESS.sub("0x", subtest._subDescription())
        self.journal.write("sub", self.key_of(test), description, what, detail[-DETAIL_CHARS:])

    def text_of(self, err: Any, test: Any) -> str:
        return str(self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addSuccess(self, test: Any) -> None:
        self.note(test, "pass")

    def addFailure(self, test: Any, err: Any) -> None:
        self.note(test, "fail", self.text_of(err, test))

    def addError(self, test: Any, err: Any) -> None:
        self.note(test, "error", self.text_of(err, test))

    def addSkip(self, test: Any, reason: str) -> None:
        self.note(test, "skip", ADDRESS.sub("0x", str(reason)))

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.note(test, "expectedFailure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.note(test, "unexpectedSuccess")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            failed = issubclass(err[0], test.failureException)
            self.note_sub(test, subtest, "fail" if failed else "error", self.text_of(err, test))


def prepare() -> None:
    """Sets the process up as `python -m test` does: quiet, no resources, seeded."""
    from test import support
    from test.libregrtest.setup import setup_process
    from test.libregrtest.utils import clear_caches

    setup_process()
    support.verbose = False
    support.use_resources = ()
    clear_caches()
    random.seed(SEED)


def select(suite: Any, keep: Callable[[str], bool]) -> None:
    """Drops tests from the suite in place, keeping its nesting (load_tests may subclass suites)."""
    for test in suite._tests:
        if isinstance(test, unittest.TestSuite):
            select(test, keep)
    suite._tests = [
        test for test in suite._tests if isinstance(test, unittest.TestSuite) or keep(test.id())
    ]


def load(module: str) -> Any:
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromModule(importlib.import_module("test." + module))
    if loader.errors:
        raise ImportError("errors while loading tests:\n" + "\n".join(map(str, loader.errors)))
    return suite


def run_suite(module: str, recorder: Recorder, only: list[str], without: list[str]) -> None:
    """Imports, loads and runs; what hinders that is the outcome of the test `(module)`."""
    try:
        suite = load(module)
    except unittest.SkipTest as reason:
        recorder.journal.write("outcome", "(module)", "skip", str(reason))
        return
    except Exception as error:
        text = recorder.text_of((type(error), error, error.__traceback__), unittest.TestCase())
        recorder.journal.write("outcome", "(module)", "error", text[-DETAIL_CHARS:])
        return
    dropped = set(without)
    if only or dropped:
        select(suite, lambda name: name not in dropped and (not only or name in only))
    suite(recorder)
    recorder.check_hook()


def run_module(module: str, recorder: Recorder, only: list[str], without: list[str]) -> None:
    """Runs the module's tests, then asks regrtest whether they left the process as it was."""
    prepare()
    from test import support
    from test.libregrtest.save_env import saved_test_environment

    support.environment_altered = False
    with saved_test_environment(module, False, False, pgo=False):
        run_suite(module, recorder, only, without)
        support.gc_collect()
        support.reap_children()
    altered = support.environment_altered
    recorder.journal.write("outcome", "(environment)", "altered" if altered else "pass", "")


def evaluate_threads(evaluate: Callable[..., Any]) -> None:
    """A thread started during an evaluation is not part of it: here each begins one of its own."""
    module: Any = threading
    name = "_start_joinable_thread" if sys.version_info >= (3, 13) else "_start_new_thread"
    start = getattr(module, name)
    setattr(module, name, lambda fn, *a, **k: start(functools.partial(evaluate, fn), *a, **k))


def engine(mode: str) -> tuple[Callable[..., Any], Callable[[], bool]]:
    """What runs a function, and what says whether frames still come to it. Both engines are C
    functions, so that recursion depths agree."""
    if mode == "plain":
        return operator.call, lambda: True
    import stator
    from stator import _engine

    evaluate: Callable[..., Any] = stator.evaluate
    evaluate_threads(evaluate)
    return evaluate, _engine.hook_installed


def heed_signals() -> None:
    """A shell starts background jobs with SIGINT ignored; tests of interrupts would hang."""
    for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
        if signal.getsignal(number) == signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="name inside the test package, as in modules.txt")
    parser.add_argument("--mode", choices=["plain", "evaluated"], default="plain")
    parser.add_argument("--journal", required=True, help="file that events are appended to")
    parser.add_argument("--only", action="append", default=[], help="test id to run (repeatable)")
    parser.add_argument("--without", action="append", default=[], help="test id to leave out")
    options = parser.parse_args()
    # Tests import by short names, read sys.argv, and must not find this folder's modules.
    sys.path.pop(0)
    sys.argv[1:] = []
    heed_signals()
    journal = Journal(options.journal)
    run, hooked = engine(options.mode)
    run(run_module, options.module, Recorder(journal, hooked), options.only, options.without)
    journal.write("end")


if __name__ == "__main__":
    main()
