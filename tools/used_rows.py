"""A pytest plugin: notes which rows of the engine's tables each test uses, for tools/mutants.py.

Each process writes a file of JSON lines, `[test, seconds, [rows of each table]]`, into the folder
that `STATOR_USED_ROWS` names."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stator import _engine

_file = Path(os.environ["STATOR_USED_ROWS"]) / f"{os.getpid()}.jsonl"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _engine.used_rows()
    began = os.times()
    result = yield
    ended = os.times()
    tables = [[i for i, used in enumerate(rows) if used] for rows in _engine.used_rows()]
    seconds = ended.user + ended.system - began.user - began.system
    if any(tables):
        with open(_file, "a") as file:
            file.write(json.dumps([item.nodeid, round(seconds, 3), tables]) + "\n")
    return result
