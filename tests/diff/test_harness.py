"""The harness itself: programs give the same twice, and every kind of difference is seen."""

import sys
import types
import warnings

import pytest
from harness import capture, difference, growth, leak_hint, load_programs, plain

PROGRAMS = load_programs()


def test_there_are_many_programs():
    assert len(PROGRAMS) >= 400


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_deterministic(name):
    """Twice by CPython: a program that differs from itself can prove nothing."""
    found = difference(capture(PROGRAMS[name]), capture(PROGRAMS[name]))
    assert not found, f"{name}\n{found}"


def _made(source, **names):
    """A program made from source text, so that two of them can differ in one place."""
    space = dict(names)
    exec(compile(source, "made.py", "exec"), space)
    return space["program"]


def _sees(first, second, *words):
    found = difference(capture(first), capture(second))
    assert found
    for word in words:
        assert word in found, found
    assert not difference(capture(first), capture(first))


VALUES = [
    (1, 2),
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    ("a", b"a"),
    ([1, 2], (1, 2)),
    ([1, 2], [2, 1]),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({1, 2}, frozenset({1, 2})),
    ([1, [2, [3]]], [1, [2, [4]]]),
    (float("nan"), 0.0),
    (None, ()),
]


@pytest.mark.parametrize("pair", VALUES, ids=repr)
def test_sees_a_different_value(pair):
    _sees(lambda: pair[0], lambda: pair[1])


def test_nan_is_the_same_as_nan():
    assert not difference(capture(lambda: [float("nan")]), capture(lambda: [float("nan")]))


def test_sees_which_parts_are_one_object():
    def shared():
        x = []
        return [x, x]

    _sees(shared, lambda: [[], []], "same as")


def test_sees_object_state():
    def make(v):
        def program():
            return types.SimpleNamespace(v=v)

        return program

    _sees(make(1), make(2))


def test_sees_order_of_events():
    _sees(lambda: ["enter", "exit"], lambda: ["exit", "enter"])


def test_sees_output():
    _sees(lambda: print("a"), lambda: print("b"), "printed")
    _sees(lambda: print("a", file=sys.stderr), lambda: None, "stderr")


def test_sees_a_warning_and_its_line():
    source = "def program():\n{}    warn('w', stacklevel=1)\n"
    one, two = (_made(source.format(pad), warn=warnings.warn) for pad in ("", "\n"))
    _sees(one, two, "warnings")
    _sees(one, lambda: None, "UserWarning")


def test_sees_that_an_exception_was_raised():
    _sees(lambda: 1, lambda: 1 / 0, "raised", "ZeroDivisionError")


@pytest.mark.parametrize(
    "pair",
    [
        ("raise ValueError('a')", "raise ValueError('b')"),
        ("raise ValueError('a')", "raise KeyError('a')"),
        ("raise ValueError('a')", "raise ValueError('a') from None"),
        ("raise ValueError('a')", "raise ValueError('a') from KeyError()"),
        ("e = OSError(); e.add_note('n'); raise e", "e = OSError(); e.add_note('m'); raise e"),
        ("x = 1; raise ValueError", "xy = 1; raise ValueError"),
        ("y = [1 / 0, 2]", "y = [1 // 0, 2]"),
        ("raise ExceptionGroup('g', [KeyError()])", "raise ExceptionGroup('g', [OSError()])"),
        ("raise SystemExit(1)", "raise SystemExit(2)"),
    ],
)
def test_sees_a_different_exception(pair):
    one, two = (_made(f"def program():\n    {body}\n") for body in pair)
    _sees(one, two)


def test_sees_the_line_of_an_exception():
    one = _made("def program():\n    x = 1\n    raise ValueError\n")
    two = _made("def program():\n\n    x = 1; raise ValueError\n")
    _sees(one, two, "made.py")


def test_sees_the_context_of_an_exception():
    source = "def program():\n try:\n  raise OSError({})\n except OSError:\n  raise KeyError\n"
    one, two = (_made(source.format(n)) for n in (1, 2))
    _sees(one, two, "OSError", "('int', 1)", "('int', 2)")


def test_sees_a_missing_traceback_entry():
    deep = _made("def f():\n    1 / 0\ndef program():\n    f()\n")
    flat = _made("\ndef f():\n    pass\ndef program(): 1 / 0\n")
    _sees(deep, flat, "traceback")


def test_sees_an_unraisable_exception():
    class D:
        def __del__(self):
            raise ValueError("in del")

    def loud():
        D()

    _sees(loud, lambda: None, "unraisable", "in del")


def test_sees_changed_settings():
    limit = sys.getrecursionlimit()
    try:
        seen = capture(lambda: sys.setrecursionlimit(limit + 10))
    finally:
        sys.setrecursionlimit(limit)
    assert "recursion limit" in seen.state
    assert "python depth left" in seen.state


def test_sees_a_trace_function_left_behind():
    old = sys.gettrace()
    try:
        seen = capture(lambda: sys.settrace(lambda *args: None))
    finally:
        sys.settrace(old)
    assert "trace function" in seen.state


def test_sees_a_leak_of_objects():
    kept = []

    def leaks():
        kept.append([])

    assert growth(leaks)["objects"] >= 1
    assert not growth(lambda: [[] for _ in range(10)])


def test_sees_a_leak_of_an_engine_only():
    kept = []

    def program():
        return (1.5, 2.5)

    def engine(p):
        kept.append(p.__code__)
        return p()

    assert "code" in leak_hint(program, engine)
    assert not leak_hint(program, plain)


def test_leaves_out_frames_of_the_harness():
    def fails():
        raise ValueError

    def through(program):
        return program()

    text = "\n".join(capture(fails, through).lines())
    assert "harness.py" not in text
