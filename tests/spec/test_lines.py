"""Every line has a test, and every test names a line: `lines.txt` lists them."""

import ast
import functools
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@functools.cache
def listed() -> dict[str, str]:
    rows = (HERE / "lines.txt").read_text().splitlines()
    pairs = [row.split(" | ", 1) for row in rows if row and not row.startswith("#")]
    return {name.rstrip("*"): text for name, text in pairs}


@functools.cache
def written() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (path.name, node)
        for path in sorted(HERE.glob("test_?_*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def line_of(name: str) -> str:
    found = re.match(r"test_([A-Z]\d+)_\w", name)
    return found[1] if found else name


def test_lines_are_numbered_without_gaps():
    by_area: dict[str, list[int]] = {}
    for name in listed():
        by_area.setdefault(name[0], []).append(int(name[1:]))
    assert "".join(by_area) == "FIJXCSBGKUDTPNEM"
    for numbers in by_area.values():
        assert numbers == list(range(1, len(numbers) + 1))
    assert sum(map(len, by_area.values())) == 171


@pytest.mark.parametrize("name", listed())
def test_each_line_has_a_test(name):
    assert name in {line_of(node.name) for _, node in written()}, listed()[name]


def test_each_test_names_a_line_of_its_area():
    known = listed()
    for file, node in written():
        line = line_of(node.name)
        assert line in known, f"{file}: {node.name}"
        assert file.startswith(f"test_{line[0].lower()}_"), f"{file}: {node.name}"


def test_no_name_is_used_twice():
    names = [(file, node.name) for file, node in written()]
    assert len(names) == len(set(names))


def test_expected_failures_are_strict_and_have_a_reason():
    for file, node in written():
        for mark in map(ast.unparse, node.decorator_list):
            assert "xfail" not in mark, f"{file}: {node.name}: use helpers.missing"
            if mark.startswith(("missing", "decided")):
                assert re.match(r"\w+\(['\"](\S+ ){3}", mark), f"{mark} says too little"


def test_decisions_are_explained():
    page = (HERE.parents[1] / "docs" / "install.md").read_text()
    explained = set(re.findall(r"^\| ([A-Z]\d+) \|", page, re.MULTILINE))
    marked = {
        line_of(node.name)
        for _, node in written()
        if any(ast.unparse(mark).startswith("decided") for mark in node.decorator_list)
    }
    assert marked == explained
