"""CPython's own tests, plain and in the interpreter: one case a module. Modules outside the quick
set are marked `full`."""

from __future__ import annotations

import importlib.util
import sys
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
LIMIT = 1800


def cases() -> list[Any]:
    return [
        pytest.param(module.name, marks=() if module.set == "quick" else pytest.mark.full)
        for module in compare.choose("full")
    ]


def describe(difference: Any) -> str:
    return (
        f"{difference.test}\n  plain:     {difference.plain}\n"
        f"  evaluated: {difference.evaluated}\n{difference.detail}"
    )


@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("module", cases())
def test_module_comes_out_as_in_plain_python(module: str) -> None:
    report = compare.compare(module)
    print(compare.HEADER, report.row(), sep="\n")
    assert not report.different, "\n".join(map(describe, report.different))
    assert compare.unused_rows(report) == []


def test_listed_differences_are_of_listed_modules() -> None:
    names = {module.name for module in compare.read_modules()}
    assert [row for row in compare.read_differences() if row[0] not in names] == []
