"""CPython's own tests, plain and in the interpreter: one case a module. Modules outside the quick
set are marked `full`."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest


def load_compare() -> Any:
    spec = importlib.util.spec_from_file_location(
        "cpython_compare", Path(__file__).with_name("compare.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


compare = load_compare()
JOBS = int(os.environ.get("STATOR_JOBS", "2"))
LIMIT = 1800


def cases() -> list[Any]:
    return [
        pytest.param(module.name, marks=() if module.set == "quick" else pytest.mark.full)
        for module in compare.choose("full")
    ]


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Any]]]:
    """Every selected module, started at once, so that two run while one is waited for."""
    names = [
        item.callspec.params["module"]
        for item in request.session.items
        if getattr(item, "originalname", "") == "test_module_comes_out_as_in_plain_python"
    ]
    pool = ThreadPoolExecutor(JOBS)
    yield {name: pool.submit(compare.compare, name) for name in names}
    pool.shutdown(cancel_futures=True)


def describe(difference: Any) -> str:
    return (
        f"{difference.test}\n  plain:     {difference.plain}\n"
        f"  evaluated: {difference.evaluated}\n{difference.detail}"
    )


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("module", cases())
def test_module_comes_out_as_in_plain_python(module: str, reports: dict[str, Future[Any]]) -> None:
    report = reports[module].result()
    print(compare.HEADER, report.row(), sep="\n")
    assert not report.different, "\n".join(map(describe, report.different))


@pytest.mark.full
@pytest.mark.timeout(LIMIT)
def test_listed_differences_are_needed(reports: dict[str, Future[Any]]) -> None:
    assert compare.unused_rows([future.result() for future in reports.values()]) == []
