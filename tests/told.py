"""Tells at the end of a run which traces of tests/trace were dropped, and why; and how many methods of
CPython's tests were traced whole: if few, the run fails. The tests may have run in several processes:
what they have to say comes to the one that reports, as properties of tests or as a worker's output."""

from __future__ import annotations

import collections
import sys
from typing import Any

import pytest

from tests.trace import cpython_twice

# Of the methods that hold no class statement, in the modules about the language and its containers.
TRACED_WHOLE = 0.6
TRACED = "test_methods_come_out_as_in_plain_python"

_traced: list[dict[str, Any]] = []
_dropped: list[tuple[str, int, str]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and TRACED in report.nodeid:
        for name, value in report.user_properties:
            if name == "traced":
                _traced.extend(value)  # type: ignore[arg-type]


def _few_traced_whole() -> bool:
    """Asked only where most modules ran."""
    whole, total = cpython_twice.share(_traced)
    return total >= 500 and whole < TRACED_WHOLE * total


def _own_drops() -> list[tuple[str, int, str]]:
    harness = sys.modules.get("worlds")
    return harness.dropped() if harness else []


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["dropped"] = _own_drops()
        return
    _dropped.extend(_own_drops())
    if _traced and _few_traced_whole() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    _dropped.extend(getattr(node, "workeroutput", {}).get("dropped", []))


def _merged() -> list[tuple[str, int, str]]:
    counts: collections.Counter[str] = collections.Counter()
    examples: dict[str, str] = {}
    for reason, count, example in _dropped:
        counts[reason] += count
        examples.setdefault(reason, example)
    return [(reason, count, examples[reason]) for reason, count in counts.most_common()]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _dropped:
        terminalreporter.section("traces dropped in tests/trace")
        for reason, count, example in _merged():
            terminalreporter.write_line(f"{count:6}  {reason}  (e.g. {example})")
    if _traced:
        terminalreporter.section("methods of CPython's tests traced whole")
        for line in cpython_twice.summary(_traced, 10):
            terminalreporter.write_line(line)
        if _few_traced_whole():
            terminalreporter.write_line(f"FAILED: fewer than {TRACED_WHOLE:.0%} traced whole")
