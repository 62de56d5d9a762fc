"""The word of a row that it writes, where nothing else says so: every row whose call is what notes
the write (W_SELF, W_FIRST in rules.def). The rows are read from the file, so that a row which loses
the word does not lose its test."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

import stator
from tests.stage import rule_table, test_rule_writes
from tests.stage.callables import owners, resolve

KNOWN = owners()


def rows() -> Iterator[tuple[str, Any]]:
    for line in rule_table.lines():
        if line.columns.get("writes") not in ("W_SELF", "W_FIRST"):
            continue
        for path in line.paths():
            found = resolve(path, KNOWN)
            if found is not None:
                yield path, found[0]


# Sets of one element: the order of more is not known. Plain dicts are written key by key, which is
# noted by itself; those of a subclass are not.
VALUES = {
    "set": "{1}",
    "dict.__setitem__": "SubDict(p=1, q=2)",
    "dict.__delitem__": "SubDict(p=1, q=2)",
}
ARGUMENTS = {
    "set.discard": "1", "set.remove": "1", "set.difference_update": "{1}",
    "set.intersection_update": "{1}", "set.__iand__": "{1}", "set.__isub__": "{1}",
    "set.symmetric_difference_update": "{1}", "set.__ixor__": "{1}",
    "collections.deque.__imul__": "2", "dict.__init__": "q=7", "dict.update": "q=7",
}  # fmt: skip


def program(path: str, row: Any) -> tuple[Any, Any]:
    """A function that a cache stands before, which writes by the row to an outside object; and the
    names it uses."""
    value = test_rule_writes.value_of(path, KNOWN)
    writes = test_rule_writes.WRITES
    name = path.rpartition(".")[2]
    arguments = ARGUMENTS.get(path) or (writes.get(path) or writes.get(name) or ("1", None))[0]
    names = {**vars(test_rule_writes), "ROW": row}
    made = VALUES.get(path) or VALUES.get(path.rpartition(".")[0]) or value.make
    names["a"] = eval(made, names)
    exec(f"def behind(n):\n ROW(a{', ' if arguments else ''}{arguments})\n return n", names)
    return names["behind"], names


ROWS = list(rows())


@pytest.mark.parametrize("path, row", ROWS, ids=[path for path, _ in ROWS])
def test_a_cached_function_that_writes_is_not_traced(path: str, row: Any) -> None:
    """The second call finds its result in the cache, and writes no more. A trace of the first would
    write each time."""
    behind, _ = program(path, row)
    cached = functools.lru_cache(behind)
    compiled = stator.compile(lambda n: cached(n), backend="eager", fullgraph=True)
    with pytest.raises(stator.Unsupported, match="lru_cache keeps"):
        compiled(1)


def test_a_cached_function_that_only_reads_is_traced() -> None:
    """What the test above looks for is the write."""
    a = [1, 2]
    cached = functools.lru_cache(lambda n: (len(a), a.count(n)))
    compiled = stator.compile(
        lambda n: cached(n), backend="eager", fullgraph=True, _keep_empty=True
    )
    assert compiled(1) == (2, 1)
