"""A C callable that undoes what it did before, on an object that may be another one's alias: `a` and
`b` are two objects in one call and the same in the other; `a` is written, `b` read, and the same
callable writes back what was there. All else that restores a value is another row, which says that
it writes; here that word of the one row is needed."""

import operator
import types
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import pytest

import stator


class Box:
    def __init__(self, v: Any) -> None:
        self.v = v


NAMES = dict(globals())

# (how a and b are made, what writes, what the same callable writes back, what is read)
LIST, DEQUE, BYTES = "[1, 2, 3]", "deque([1, 2, 3])", "bytearray(b'abc')"
CASES = [
    (LIST, "a.__setitem__(0, 7)", "a.__setitem__(0, 1)", "b[0]"),
    (DEQUE, "a.__setitem__(0, 7)", "a.__setitem__(0, 1)", "b[0]"),
    (BYTES, "a.__setitem__(0, 7)", "a.__setitem__(0, 97)", "b[0]"),
    ("{'p': 1}", "a.__setitem__('p', 7)", "a.__setitem__('p', 1)", "b['p']"),
    ("OrderedDict(p=1)", "a.__setitem__('p', 7)", "a.__setitem__('p', 1)", "b['p']"),
    (LIST, "operator.setitem(a, 0, 7)", "operator.setitem(a, 0, 1)", "b[0]"),
    (LIST, "a.__init__([7])", "a.__init__([1, 2, 3])", "b[0]"),
    (DEQUE, "a.__init__([7])", "a.__init__([1, 2, 3])", "b[0]"),
    (BYTES, "a.__init__(b'q')", "a.__init__(b'abc')", "b[0]"),
    ("{'p': 1}", "a.__init__(p=7)", "a.__init__(p=1)", "b['p']"),
    ("OrderedDict(p=1)", "a.__init__(p=7)", "a.__init__(p=1)", "b['p']"),
    ("defaultdict(None, p=1)", "a.__init__(None, p=7)", "a.__init__(None, p=1)", "b['p']"),
    ("{1}", "a.__init__([7])", "a.__init__([1])", "7 in b"),
    ("Box(1)", "a.__init__(7)", "a.__init__(1)", "b.v"),
    (LIST, "a.reverse()", "a.reverse()", "b[0]"),
    (DEQUE, "a.reverse()", "a.reverse()", "b[0]"),
    (BYTES, "a.reverse()", "a.reverse()", "b[0]"),
    (DEQUE, "a.rotate(1)", "a.rotate(-1)", "b[0]"),
    (LIST, "a.sort(reverse=True)", "a.sort()", "b[0]"),
    ("{'p': 1}", "a.update(p=7)", "a.update(p=1)", "b['p']"),
    ("OrderedDict(p=1)", "a.update(p=7)", "a.update(p=1)", "b['p']"),
    ("{'p': 1}", "a.__ior__({'p': 7})", "a.__ior__({'p': 1})", "b['p']"),
    ("OrderedDict(p=1)", "a.__ior__({'p': 7})", "a.__ior__({'p': 1})", "b['p']"),
    ("{'p': 1}", "operator.ior(a, {'p': 7})", "operator.ior(a, {'p': 1})", "b['p']"),
    ("OrderedDict(p=1, q=2)", "a.move_to_end('p')", "a.move_to_end('q')", "list(b)"),
    ("{1}", "a.symmetric_difference_update({7})", "a.symmetric_difference_update({7})", "7 in b"),
    ("{1}", "a.__ixor__({7})", "a.__ixor__({7})", "7 in b"),
    ("{1}", "operator.ixor(a, {7})", "operator.ixor(a, {7})", "7 in b"),
    ("Box(1)", "setattr(a, 'v', 7)", "setattr(a, 'v', 1)", "b.v"),
    ("Box(1)", "object.__setattr__(a, 'v', 7)", "object.__setattr__(a, 'v', 1)", "b.v"),
    ("types.SimpleNamespace(v=1)", "a.__setattr__('v', 7)", "a.__setattr__('v', 1)", "b.v"),
    ("ValueError(1)", "a.__setattr__('args', (7,))", "a.__setattr__('args', (1,))", "b.args"),
    ("ValueError(1)", "a.__init__(7)", "a.__init__(1)", "b.args"),
]


@pytest.mark.parametrize("same_first", [False, True], ids=["apart first", "same first"])
@pytest.mark.parametrize("made, write, back, read", CASES, ids=[f"{c[0]}: {c[1]}" for c in CASES])
def test_undone(made: str, write: str, back: str, read: str, same_first: bool) -> None:
    names = dict(NAMES)
    exec(f"def f(a, b):\n {write}\n x = {read}\n {back}\n return x", names)
    compiled = stator.compile(names["f"], backend="eager", _keep_empty=True)
    for same in (same_first, not same_first, same_first):
        a, b = eval(made, names), eval(made, names)
        want = names["f"](a, a if same else b)
        c, d = eval(made, names), eval(made, names)
        assert compiled(c, c if same else d) == want
        assert eval(read, names, {"b": c}) == eval(read, names, {"b": a})
