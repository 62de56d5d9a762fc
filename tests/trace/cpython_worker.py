"""Runs one module of CPython's test package with every test method run twice, plain or compiled, and
journals outcomes as tests/cpython/worker.py does. Compiled, it also writes one JSON line a method to
the table: what became of its traces. With STATOR_BREAK_SEED each trace also breaks before a random
instruction."""

from __future__ import annotations

import argparse
import dis
import importlib.util
import json
import operator
import os
import sys
import types
import unittest
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def load_worker() -> Any:
    path = Path(__file__).resolve().parents[1] / "cpython" / "worker.py"
    spec = importlib.util.spec_from_file_location("stator_cpython_worker", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worker = load_worker()


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def holds_class_statement(function: Any) -> bool:
    names = (i.opname for code in codes(function.__code__) for i in dis.get_instructions(code))
    return "LOAD_BUILD_CLASS" in names


def leaves(suite: Any) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.BaseTestSuite):
            yield from leaves(test)
        elif test is not None:
            yield test


def repeat(suite: Any) -> None:
    """Every test twice in a row, in place."""
    for test in suite._tests:
        if isinstance(test, unittest.TestSuite):
            repeat(test)
    suite._tests = [
        again
        for test in suite._tests
        for again in ([test] if isinstance(test, unittest.TestSuite) else [test, test])
    ]


def breaking(function: Any, seed: int) -> Any:
    from stator import _engine

    every = (1, 3, 10, 30)[seed % 4]
    where = {"break_every": every, "break_seed": seed}
    return _engine.compiled(function, _engine.compiler(None, RuntimeError, False, True, 8, **where))


class Table:
    """Compiles the methods of test cases and tells what came of it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.compiled: dict[int, tuple[Any, Any]] = {}

    def compile(self, test: Any) -> None:
        """The method on this one instance, so that its class stays as it is."""
        import stator

        name = getattr(test, "_testMethodName", None)
        method = getattr(test, name, None) if name else None
        function = getattr(method, "__func__", None)
        if not isinstance(test, unittest.TestCase) or not isinstance(function, types.FunctionType):
            return
        seed = os.environ.get("STATOR_BREAK_SEED")
        if seed is None:
            compiled = stator.compile(function, backend="eager", _keep_empty=True)
        else:
            compiled = breaking(function, zlib.crc32(f"{seed} {test.id()}".encode()))
        self.compiled[id(test)] = (function, compiled)
        setattr(test, str(name), types.MethodType(compiled, test))

    def row(self, test: Any, module: str) -> None:
        function, compiled = self.compiled.pop(id(test), (None, None))
        if compiled is None or not self.path:
            return
        seen = compiled.metrics
        ends = [*seen["drops"], *seen.get("breaks", ())]
        row = {
            "module": module,
            "test": test.id(),
            "class statement": holds_class_statement(function),
            "whole": bool(seen["entries"]) and not ends,
            "traces": seen["traces"],
            "entries": seen["entries"],
            "hits": seen["hits"],
            "drops": [str(text).splitlines()[0] for text in ends[:3]],
            "recompiles": [str(text) for text in seen["recompiles"][:3]],
        }
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")


class Recorder(worker.Recorder):  # type: ignore[misc, name-defined]
    """Compiles a method before its first run, and writes its row after the second."""

    table: Table | None = None
    module = ""
    runs = 0

    def startTest(self, test: Any) -> None:
        if self.table is not None and id(test) not in self.table.compiled:
            self.table.compile(test)
            self.runs = 0
        super().startTest(test)

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        self.runs += 1
        if self.table is not None and self.runs == 2:
            self.table.row(test, self.module)
            self.check_hook_is_gone()

    def check_hook_is_gone(self) -> None:
        from stator import _engine

        if _engine.hook_installed():
            self.journal.write("outcome", self.last, "left the hook", "")


def load_twice(module: str) -> Any:
    suite = load_once(module)
    repeat(suite)
    return suite


load_once = worker.load
worker.load = load_twice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module", help="name inside the test package")
    parser.add_argument("--mode", choices=["plain", "compiled"], default="plain")
    parser.add_argument("--journal", required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    sys.path.pop(0)
    sys.argv[1:] = []
    worker.heed_signals()
    journal = worker.Journal(options.journal)
    recorder = Recorder(journal, lambda: True)
    recorder.module = options.module
    if options.mode == "compiled":
        folder = os.environ.get("STATOR_TRACE_TABLE", "")
        recorder.table = Table(os.path.join(folder, options.module + ".jsonl") if folder else "")
    only = options.only
    # A test left out is left out of both its runs.
    without = [name.partition("#")[0] for name in options.without]
    operator.call(worker.run_module, options.module, recorder, only, without)
    journal.write("end")


if __name__ == "__main__":
    main()
