"""CPython's own tests, every method compiled in tracing mode with empty graphs kept and run twice:
the outcomes are those of plain Python. A table says what was traced whole, and why the rest was
not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import cpython_twice
import pytest

JOBS = int(os.environ.get("STATOR_JOBS", "2"))
LIMIT = 1800
QUICK = set(cpython_twice.modules(every=False))


def cases() -> list[Any]:
    return [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.full)
        for name in cpython_twice.modules(every=True)
    ]


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Any]]]:
    names = [
        item.callspec.params["module"]
        for item in request.session.items
        if getattr(item, "originalname", "") == "test_methods_come_out_as_in_plain_python"
    ]
    pool = ThreadPoolExecutor(JOBS)
    yield {name: pool.submit(cpython_twice.run, name) for name in names}
    pool.shutdown(cancel_futures=True)


def describe(found: Any) -> str:
    return f"{found.test}\n  plain:    {found.plain}\n  compiled: {found.evaluated}\n{found.detail}"


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("module", cases())
def test_methods_come_out_as_in_plain_python(module: str, reports: dict[str, Future[Any]]) -> None:
    report = reports[module].result()
    print(cpython_twice.compare.HEADER, report.row(), sep="\n")
    different = cpython_twice.different(report)
    assert not different, "\n".join(map(describe, different))


# Of which all traces also break before random instructions.
BROKEN = """
    test_scope test_generators test_class test_super test_property test_with test_raise test_unpack
    test_extcall test_patma test_iter test_list test_dict test_set test_contextlib test_copy
""".split()


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("module", sorted(QUICK & set(BROKEN)))
def test_methods_in_pieces_come_out_as_in_plain_python(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATOR_BREAK_SEED", "5")
    monkeypatch.delenv("STATOR_TRACE_TABLE", raising=False)
    report = cpython_twice.compare.compare(module, mode="compiled")
    different = cpython_twice.different(report)
    assert not different, "\n".join(map(describe, different))


def summary(table: list[dict[str, Any]]) -> str:
    whole, total = cpython_twice.share(table)
    top = "\n".join(f"{n:6} {what}" for n, what in cpython_twice.reasons(table)[:40])
    return f"{whole} of {total} methods traced whole; dropped because:\n{top}"


@pytest.mark.timeout(LIMIT)
def test_most_methods_are_traced_whole(reports: dict[str, Future[Any]]) -> None:
    """Of those that hold no class statement, in the modules about the language and its containers
    (others are about files, sockets, processes). All modules together are told."""
    tables = {
        name: future.result() and cpython_twice.rows(name) for name, future in reports.items()
    }
    told = summary([row for table in tables.values() for row in table])
    print(told)
    wanted = [row for name, table in tables.items() if name in QUICK for row in table]
    if len(wanted) < 500:
        pytest.skip("few modules were selected")
    whole, total = cpython_twice.share(wanted)
    assert whole >= 0.6 * total, summary(wanted)
