"""Guard programs alone: what they hold, how they end, what they say."""

import gc
import importlib.util
import subprocess
import sys
import types
import weakref
from pathlib import Path

import pytest

from stator import _engine
from tests.stage.guard_tools import *
from tests.stage.test_raw import Bomb, no_user_code_runs

# --- death ---


@pytest.mark.parametrize("kind", ["IS", "TYPE", "CODE", "MRO", "TYPE_LOOKUP"])
def test_death_ends_a_program(kind):
    def make():
        if kind == "CODE":
            namespace = {}
            exec("def f(): pass", namespace)
            return namespace.pop("f")
        if kind == "IS":
            return Plain()
        method = types.FunctionType(function.__code__, {})
        return type("T", (), {"m": method})

    o = make()
    slot = o() if kind == "TYPE" else o
    given = {
        "CODE": lambda: o.__code__,
        "MRO": lambda: o.__mro__,
        "TYPE_LOOKUP": lambda: ("m", o.m),
    }
    p = guard(kind, slot, given.get(kind, lambda: o)())
    assert p.passes()
    watch = weakref.ref(o)
    p.slots = [1]
    del o, slot, given
    gc.collect()
    assert watch() is None, "held weakly"
    assert p.program.dead()
    assert isinstance(p.registers(), int)
    assert "that died" in p.reason() or kind in ("MRO", "TYPE_LOOKUP")
    assert p.reason().endswith(": it can never pass again")
    assert p.program.rows()
    p.slots = [Plain()]
    assert not p.passes()


def test_is_not_outlives_its_object():
    o = Plain()
    p = guard("IS_NOT", 1, o)
    del o
    gc.collect()
    assert not p.program.dead() and p.passes()
    for other in [Plain() for _ in range(100)]:  # one of them may have its address
        p.slots = [other]
        assert p.passes()
    assert p.program.rows()[0][0] == "L['x'] is not <an object that died>"


def test_is_not_and_is_of_one_object():
    o = Plain()
    p = Program([("IS_NOT", L(0, "a"), o), ("IS", L(1, "b"), o)], 1, o)
    assert p.passes()
    p.slots = [1, 2]
    del o
    assert p.program.dead()


def test_what_cannot_be_held_weakly_is_held_strongly():
    class Mark:
        pass

    mark = Mark()
    watch, listed = weakref.ref(mark), [mark]
    p = guard("IS", listed, listed)
    p.slots = [1]
    del mark, listed
    gc.collect()
    assert watch() is not None
    del p
    gc.collect()
    assert watch() is None


def test_the_program_may_go_first():
    o = Plain()
    count = weakref.getweakrefcount(o)
    p = guard("IS", o, o)
    del p
    assert weakref.getweakrefcount(o) == count
    del o


def test_programs_and_objects_that_die_together():
    programs = []

    class Last:
        def __del__(self):
            programs.clear()

    for _ in range(20):
        cycle = [Plain() for _ in range(5)]
        for a, b in zip(cycle, cycle[1:] + cycle[:1]):
            a.next = b
        cycle[0].last = Last()
        refs = [weakref.ref(o, lambda _: programs.clear()) for o in cycle]
        programs[:] = [guard("IS", 1, o) for o in cycle for _ in range(3)]
        del cycle, a, b
        gc.collect()
        assert not programs
        del refs


def test_death_in_the_middle_of_a_collection():
    p = Program([("IS", L(), o) for o in [Plain(), Plain()]], 1)
    assert p.program.dead() and not p.passes() and p.reason()


# --- lines, reasons, references ---


def test_rows_say_which_line_caused_them():
    first = sys._getframe().f_lineno
    program = _engine.guard_program([("TYPE", L(), int)])
    assert program.rows() == [("type(L['x']) is int", __file__, first + 1)]

    def elsewhere():
        return _engine.guard_program([("TYPE", L(), int)])

    assert elsewhere().rows()[0][2] == elsewhere.__code__.co_firstlineno + 1


def test_rows_outlive_their_code():
    namespace = {"build": _engine.guard_program, "rows": [("TYPE", L(), int)]}
    exec(compile("\n\nprogram = (lambda: build(rows))()", "gone.py", "exec"), namespace)
    assert namespace["program"].rows() == [("type(L['x']) is int", "gone.py", 0)]


def test_reasons_tell_the_value_then_and_now():
    p = Program([("VALUE", L(0, "step"), 3)], 4)
    assert p.reason() == "L['step'] == 3: now 4"
    p.slots = [3.0]
    assert p.reason() == "L['step'] == 3: now 3.0, of type float"
    p.slots = ["a" * 10_000]
    assert len(p.reason()) < 300
    p.slots = [10**10_000]
    assert p.reason() == "L['step'] == 3: now <int of 33220 bits>"
    p.slots = [[[[[[1]]]], {"a": {1, (2,)}}, Bomb(), *range(100)]]
    bomb = f"<{Bomb.__module__}.Bomb object>"
    now = f"[[[...]], {{'a': {{1, ...}}}}, {bomb}, 0, 1, 2, 3, 4, ...]"
    assert p.reason() == f"L['step'] == 3: now {now}, of type list"


def test_nothing_is_left_behind():
    marks = [Plain() for _ in range(4)]
    key = ("key", 10**30)
    d = {key: marks[0]}

    def cycle():
        p = Program(
            [
                ("IS", below(L(), ("ITEM", key)), marks[0]),
                ("TYPE", below(L(), ("ITEM", key)), Plain),
                ("KEYS", L(), (key,)),
                ("CUSTOM", below(L(), ("ITEM", key)), marks[0]),
                ("IS_NOT", L(), marks[1]),
                ("VALUE", (("FIXED", key, 0),), key),
                ("TYPE_LOOKUP", (("FIXED", Plain, 0),), ("__init__", object.__init__)),
                ("DISTINCT", L()),
                ("DISTINCT", below(L(), ("ITEM", key))),
            ],
            d,
        )
        assert p.passes() and len(p.program.rows()) == 8
        p.slots = [{key: 1}]
        assert p.reason()

    def counts():
        return [sys.getrefcount(o) for o in (*marks, key, d, Plain, True, False, None)]

    cycle()
    gc.collect()  # what other tests left
    before = counts()
    for _ in range(50):
        cycle()
    gc.collect()
    after = counts()
    assert before[:7] == after[:7]
    assert all(abs(a - b) < 40 for a, b in zip(before[7:], after[7:]))


MEMORY = """
import _testcapi, sys
from tests.stage.guard_tools import Program, Plain, L, below, attributes
from stator import _engine

marks = [Plain() for _ in range(30)]
o = attributes(Plain(), a=[1, 2], b={"k": (1, 2.5, "text")})
rows = [("IS", below(L(), ("LIST_ITEM", None, i)), mark) for i, mark in enumerate(marks)]
rows += [("VALUE", below(L(1, "y"), ("ATTR", "b"), ("ITEM", "k")), (1, 2.5, "text"))]
rows += [("KEYS", below(L(1, "y"), ("ATTR", "b")), ("k",))]
rows += [("MRO", (("FIXED", Plain, 0),), Plain.__mro__)]
rows += [("DISTINCT", below(L(), ("LIST_ITEM", None, i))) for i in range(30)]
rows += [("CUSTOM", L(1, "y"), o), ("NEED", below(L(1, "y"), ("DICT", None)))]
wrong = attributes(Plain(), a=[1, 2], b={"k": (1, 2.5, "other")})

def once():
    program = _engine.guard_program(rows)
    assert isinstance(program.check(len, [marks, o]), list)
    assert program.reason(len, [marks, wrong]).startswith("L['y'].b['k'] == (1, 2.5, 'text'): now")
    assert len(program.rows()) > 30

once()
before = [sys.getrefcount(mark) for mark in (*marks, o)]
at = failed = quiet = 0
while quiet < 30:
    at += 1
    _testcapi.set_nomemory(at, at + 1)
    try:
        program = _engine.guard_program(rows)
        checked = program.check(len, [marks, o])
        program.reason(len, [marks, wrong]), program.rows()
    except MemoryError:
        checked = None
    finally:
        _testcapi.remove_mem_hooks()
    program = None
    if checked is None or isinstance(checked, int):
        failed, quiet = failed + 1, 0
    else:
        checked, quiet = None, quiet + 1
    once()
    assert [sys.getrefcount(mark) for mark in (*marks, o)] == before, at
print(failed)
"""


@pytest.mark.skipif(importlib.util.find_spec("_testcapi") is None, reason="no _testcapi")
def test_each_failed_allocation_is_survived():
    command = [sys.executable, "-X", "faulthandler", "-c", MEMORY]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 50


# --- all that fails ---

VALUE, FLOAT = 1 << 30, 3 << 29


@pytest.mark.parametrize(
    ("then", "now", "count", "numbers", "places"),
    [
        ((3, 4), (3, 4), 0, True, {}),
        ((3, 4), (5, 4), 1, True, {"L['x']": VALUE}),
        ((3, 4.0), (5, 6.0), 2, True, {"L['x']": VALUE, "L['y']": FLOAT}),
        ((3, 4), (5, 6.0), 2, False, {"L['x']": VALUE}),
        ((3, 4), (True, 6), 2, False, {"L['y']": VALUE}),
        ((True, 4), (False, 4), 1, False, {}),
        ((3, 4), (1 << 70, 4), 1, False, {}),
        ((1 << 70, 4), (3, 4), 1, False, {}),
        ((3, "a"), (4, "b"), 2, False, {"L['x']": VALUE}),
        ((3, 4), (UNBOUND, 5), 2, False, {"L['y']": VALUE}),
    ],
)
def test_numbers_that_differ_are_found_beside_other_failures(then, now, count, numbers, places):
    rows = [("VALUE", L(0, "x"), then[0]), ("VALUE", L(1, "y"), then[1])]
    program = Program(rows, *then)
    assert program.program.misfits(function, list(now)) == (count, numbers, places)


def test_nothing_is_asked_behind_a_missing_place():
    item = below(L(), ("LIST_ITEM", None, 1))
    program = Program(
        [("VALUE", item, 3), ("VALUE", L(1, "y"), 1), ("DISTINCT", item), ("DISTINCT", L(1, "y"))],
        [2, 3],
        1,
    )
    assert program.passes()
    assert program.program.misfits(function, [[2], 1]) == (1, False, {})
    assert program.program.misfits(function, [[2], 5]) == (2, False, {"L['y']": VALUE})
    assert program.program.misfits(function, [[2, 4], 5]) == (
        2,
        True,
        {"L['x'][1]": VALUE, "L['y']": VALUE},
    )


def test_a_program_whose_object_died_has_no_numbers_to_open():
    o = Plain()
    p = Program([("IS", L(), o), ("VALUE", L(1, "y"), 1)], o, 1)
    p.slots[0] = None
    del o
    gc.collect()
    assert p.program.dead()
    assert p.program.misfits(function, [None, 2])[1:] == (False, {})
