"""Every C callable of the builtins and of the modules that a trace must know has a rule."""

import functools
import importlib
import math
import operator
import os
import re
import subprocess
import sys
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stator import _engine
from tests.stage import rule_table
from tests.stage.callables import callables


def print_missing() -> None:
    asked = list(callables())
    assert len(asked) > 2000
    for path, callable in asked:
        if _engine.rule_for(callable) is None:
            print(path)


def run_alone(function: str) -> str:
    """In a process of its own: types of other libraries claim to live in `builtins`, too."""
    path = [str(Path(__file__).parents[2]), *sys.path]
    code = f"import sys; sys.path[:0] = {path!r}; from tests.stage import test_rules as t; t.{function}()"
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout


def test_every_c_callable_has_a_rule() -> None:
    assert run_alone("print_missing") == ""


# --- the table's columns ---


def print_table() -> None:
    print(rule_table.table(_engine.rules()), end="")


@pytest.mark.skipif(sys.version_info[:2] != (3, 12), reason="the page counts the rows of 3.12")
def test_the_page_counts_the_rows() -> None:
    text, counted = rule_table.PAGE.read_text(), run_alone("print_table")
    if os.environ.get("STATOR_REGEN") == "1":
        rule_table.PAGE.write_text(text[: text.index("| | pure")] + counted)
    assert rule_table.PAGE.read_text().endswith("\n\n" + counted)


def test_the_table_is_read_as_the_compiler_reads_it() -> None:
    """rule_table.py, from which other tests are made, has the rows that the engine has."""
    kinds = {"REFUSED": "opaque", "ITER": "struct"}
    said = {
        path: (
            kinds.get(line.kind, line.kind.lower()),
            line.columns.get("writes", "W_NONE").removeprefix("W_").lower(),
            {name.strip()[2:] for name in line.columns.get("state", "S_NONE").split("|")}
            - {"NONE"},
        )
        for line in rule_table.lines()
        for path in line.paths()
    }
    for path, kind, *_, writes, state in _engine.rules():
        assert said[path] == (kind, writes, set(state)), path


def test_only_what_can_change_is_written() -> None:
    frozen = {"int", "float", "str", "bytes", "tuple", "frozenset", "range", "slice", "code"}
    for path, kind, *_, writes, state in _engine.rules():
        assert kind not in ("pure", "opaque") or writes == "none", path
        assert kind != "opaque" or not state, path
        assert path.split(".")[0] not in frozen or writes == "none", path


def test_opaque_rules_say_why() -> None:
    assert len(_engine.rules()) > 2000
    for path, kind, first, args, elements, takes, why, *_ in _engine.rules():
        assert (kind == "opaque") == (why is not None), path
        assert kind == "struct" or not first | args | elements, path
        assert (kind == "handled") == (takes is not None), path


@pytest.mark.parametrize(
    "path, kind",
    [
        ("list.append", "struct"),
        ("sorted", "handled"),
        ("math.sqrt", "struct"),
        ("str.upper", "pure"),
        ("print", "opaque"),
        ("int.__add__", "pure"),
        ("dict", "handled"),
        ("zip", "struct"),
        ("itertools.chain.from_iterable", "struct"),
        ("_operator.add", "handled"),
        ("_random.Random.random", "handled"),
        ("object.__new__", "struct"),
        ("tuple.__new__", "struct"),
    ],
)
def test_kinds(path: str, kind: str) -> None:
    assert [row[1] for row in _engine.rules() if row[0] == path] == [kind]


@pytest.mark.parametrize(
    "callable, path",
    [
        ([].append, "list.append"),
        (list.append, "list.append"),
        ([].__len__, "list.__len__"),
        (list.__len__, "list.__len__"),
        ({}.get, "dict.get"),
        (OrderedDict().get, "dict.get"),
        (OrderedDict().pop, "collections.OrderedDict.pop"),
        (dict.fromkeys, "dict.fromkeys"),
        (defaultdict.fromkeys, "dict.fromkeys"),
        (str.maketrans, "str.maketrans"),
        (deque, "collections.deque"),
        (dict.__new__, "dict.__new__"),
        (defaultdict.__new__, "dict.__new__"),
        (object.__new__, "object.__new__"),
        (operator.add, "_operator.add"),
        (operator.__add__, "_operator.add"),
        (math.floor, "math.floor"),
        (operator.itemgetter(1), "operator.itemgetter.__call__"),
        (functools.lru_cache(lambda: 1), "functools._lru_cache_wrapper.__call__"),
        (weakref.ref(re), "weakref.ReferenceType.__call__"),
        (re.compile("").match, "re.Pattern.match"),
        (iter("é").__length_hint__, "str_iterator.__length_hint__"),
        (None.__bool__, "NoneType.__bool__"),
        (list.__getattribute__, "object.__getattribute__"),
        ([].__getattribute__, "object.__getattribute__"),
        (types.SimpleNamespace.__setattr__, "object.__setattr__"),
        (types.ModuleType("m").__delattr__, "object.__delattr__"),
        (types.ModuleType.__getattribute__, "module.__getattribute__"),
        (type.__getattribute__, "type.__getattribute__"),
        (type, "type"),
        (ValueError, "ValueError"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_found_however_it_was_reached(callable: Any, path: str) -> None:
    rule = _engine.rule_for(callable)
    assert rule is not None and rule[0] == path


class Caller:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "callable",
    [
        lambda: None,
        Caller(),
        Caller,
        Caller().__call__,
        type("Sub", (list,), {}),
        _engine.rules,
        3,
    ],
    ids=lambda v: type(v).__name__,
)
def test_python_code_and_strangers_have_none(callable: Any) -> None:
    assert _engine.rule_for(callable) is None


def test_methods_of_subclasses_are_the_base_types_own() -> None:
    sub = type("Sub", (list,), {})()
    assert _engine.rule_for(sub.append) == ("list.append", "struct")
