"""Every program, run by CPython and by the interpreter: nothing that can be seen differs."""

import pytest
from harness import capture, difference, evaluated, leak_hint, load_programs

PROGRAMS = load_programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_evaluated_as_plain(name):
    program = PROGRAMS[name]
    found = difference(capture(program), capture(program, evaluated))
    assert not found, f"{name}\n{found}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_leaves_nothing_behind(name):
    found = leak_hint(PROGRAMS[name], evaluated)
    assert not found, f"{name} leaves behind: {found}"
