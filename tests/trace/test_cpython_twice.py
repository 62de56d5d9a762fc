"""CPython's own tests, every method compiled in tracing mode with empty graphs kept and run twice:
the outcomes are those of plain Python. tests/told.py adds up what was traced whole, and fails a run
in which few were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cpython_twice
import pytest

LIMIT = 1800
QUICK = set(cpython_twice.modules(every=False))


def cases() -> list[Any]:
    return [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.full)
        for name in cpython_twice.modules(every=True)
    ]


def describe(found: Any) -> str:
    return f"{found.test}\n  plain:    {found.plain}\n  compiled: {found.evaluated}\n{found.detail}"


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("module", cases())
def test_methods_come_out_as_in_plain_python(
    module: str, record_property: Callable[[str, Any], None]
) -> None:
    report = cpython_twice.run(module)
    if module in QUICK:
        record_property("traced", cpython_twice.rows(module))  # tests/told.py adds them up
    print(cpython_twice.compare.HEADER, report.row(), sep="\n")
    different = cpython_twice.different(report)
    assert not different, "\n".join(map(describe, different))
    assert cpython_twice.unneeded(report) == [], "rows of differences.txt that are not needed"


def test_listed_differences_name_tests() -> None:
    assert cpython_twice.wild_rows() == []


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
