"""A C callable that undoes what it did before, on an object that may be another one's alias: `a` and
`b` are two objects in one call and the same in the other; `a` is written, `b` read, and the same
callable writes back what was there. All else that restores a value is another row, which says that
it writes; here that word of the one row is needed."""

import bisect
import functools
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

# (how a is made, what writes, what is read): nothing is written while the trace is made, and all by
# each call.
WRITES = [
    ("types.ModuleType('m')", "type(a).__setattr__(a, 'v', 7)", "a.v"),
    ("types.SimpleNamespace(v=1)", "type(a).__setattr__(a, 'v', 7)", "a.v"),
    ("types.SimpleNamespace(v=1)", "type(a).__delattr__(a, 'v')", "hasattr(a, 'v')"),
    ("functools.partial(max)", "type(a).__setattr__(a, 'v', 7)", "a.v"),
    ("ValueError(1)", "BaseException.__setattr__(a, 'v', 7)", "a.v"),
    ("ValueError(1)", "BaseException.__setattr__(a, 'args', (7,))", "a.args"),
    ("ValueError(1)", "a.add_note('n')", "a.__notes__"),
    ("ValueError(1)", "a.with_traceback(None)", "a.__traceback__"),
    ("Box(1)", "object.__delattr__(a, 'v')", "hasattr(a, 'v')"),
    ("Box(1)", "delattr(a, 'v')", "hasattr(a, 'v')"),
    ("type('K', (), {'v': 1})", "type.__setattr__(a, 'v', 7)", "a.v"),
    ("type('K', (), {'v': 1})", "type.__delattr__(a, 'v')", "hasattr(a, 'v')"),
    ("[1, 2]", "operator.setitem(a, 0, 7)", "a"),
    ("[1, 2]", "operator.delitem(a, 0)", "a"),
    ("[1, 2]", "operator.iadd(a, [7])", "a"),
    ("{'p': 1}", "a.setdefault('q', 7)", "a"),
    ("{'p': 1}", "a.pop('p')", "a"),
    ("{'p': 1}", "a.__delitem__('p')", "a"),
    ("{'p': 1}", "a.__ior__({'q': 7})", "a"),
    ("Counter(p=1)", "a.update('pq')", "a"),
    ("defaultdict(list)", "a.__missing__('q')", "a"),
    ("defaultdict(list)", "a.__init__(int, q=7)", "a"),
    ("OrderedDict(p=1)", "a.__init__(q=7)", "a"),
    ("OrderedDict(p=1)", "a.update(q=7)", "a"),
    ("[3, 1]", "bisect.insort(a, 2)", "a"),
]


@pytest.mark.parametrize("made, write, read", WRITES, ids=[f"{c[0]}: {c[1]}" for c in WRITES])
def test_written_by_each_call(made: str, write: str, read: str) -> None:
    names = dict(NAMES)
    exec(f"def f(a, stop):\n {write}\n if stop: raise KeyError(stop)", names)
    compiled = stator.compile(names["f"], backend="eager", _keep_empty=True)
    theirs, ours = eval(made, names), eval(made, names)
    for _ in range(3):
        if isinstance(ours, type):  # another class is another trace
            theirs.v = ours.v = 1
        else:
            theirs, ours = eval(made, names), eval(made, names)
        names["f"](theirs, False)
        compiled(ours, False)
        assert eval(read, names, {"a": ours}) == eval(read, names, {"a": theirs})


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
