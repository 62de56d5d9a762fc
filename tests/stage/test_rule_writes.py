"""What a C callable writes to is guarded to be what the trace took it for: `a` and `b` are two
objects in one call and the same in the other, one is written and restored, the other read between.
"""

import bisect
import heapq
import operator
from collections import Counter, OrderedDict, deque
from typing import Any

import pytest

import stator

NAMES = {
    "operator": operator,
    "heapq": heapq,
    "bisect": bisect,
    "_count_elements": Counter.update.__globals__["_count_elements"],
}

# (values of a and b, what writes to a, what restores it)
CASES = [
    (deque([1, 2, 3]), "a.rotate(1)", "a.rotate(-1)"),
    (deque([1, 2, 3]), "a.append(4)", "a.pop()"),
    ([1, 2, 3], "a.reverse()", "a.reverse()"),
    ([1, 2, 3], "a.append(4)", "a.pop()"),
    ([3, 4, 5], "heapq.heappush(a, 1)", "heapq.heappop(a)"),
    ([3, 4, 5], "bisect.insort(a, 4.5)", "a.remove(4.5)"),
    ([1, 2], "operator.iconcat(a, [7])", "a.pop()"),
    ([1, 2], "operator.iadd(a, [7])", "a.pop()"),
    ([1, 2], "operator.setitem(a, 0, 7)", "a[0] = 1"),
    ({"p": 1}, "_count_elements(a, 'p')", "a['p'] = 1"),
    (OrderedDict(p=1, q=2), "a.move_to_end('p')", "a.move_to_end('q')"),
    ({1, 2}, "a.add(7)", "a.discard(7)"),
    (bytearray(b"ab"), "a.append(7)", "a.pop()"),
]


@pytest.mark.parametrize("same_first", [False, True], ids=["apart first", "same first"])
@pytest.mark.parametrize("value, write, restore", CASES, ids=[case[1] for case in CASES])
def test_which_object_was_written(value: Any, write: str, restore: str, same_first: bool) -> None:
    names = dict(NAMES)
    exec(f"def f(a, b):\n {write}\n x = list(b)\n {restore}\n return x", names)
    compiled = stator.compile(names["f"], backend="eager", _keep_empty=True)
    for same in (same_first, not same_first, same_first):
        a, b = value.copy(), value.copy()
        theirs = names["f"](a, a if same else b), a, b
        a, b = value.copy(), value.copy()
        ours = compiled(a, a if same else b), a, b
        assert ours == theirs
