"""Every program again, its frames moved between the two engines at instruction boundaries, by
image, into a fresh frame each time: nothing that can be seen differs."""

import zlib

import pytest
from harness import capture, difference, hopping, leak_hint, load_programs

PROGRAMS = load_programs()
HOPPED = [name for name, program in PROGRAMS.items() if not hasattr(program, "keeps_frame")]


def _compare(name, seed, every):
    program = PROGRAMS[name]
    found = difference(capture(program), capture(program, hopping(seed, every)))
    assert not found, f"{name} (seed {seed}, every {every})\n{found}"


@pytest.mark.parametrize("name", HOPPED)
def test_hop_at_every_boundary(name):
    _compare(name, 0, 1)


@pytest.mark.parametrize("name", HOPPED)
def test_hop_at_random_boundaries(name):
    first = zlib.crc32(name.encode())
    for turn in range(5):
        _compare(name, (first + turn) % 2**31, 7)


@pytest.mark.parametrize("name", HOPPED)
def test_hops_leave_nothing_behind(name):
    found = leak_hint(PROGRAMS[name], hopping(1, 3))
    assert not found, f"{name} leaves behind: {found}"


def test_few_programs_are_left_out():
    """A program may only be left out for a reason, and most may not."""
    reasons = [p.keeps_frame for p in PROGRAMS.values() if hasattr(p, "keeps_frame")]
    assert all(len(reason) > 20 for reason in reasons)
    assert len(reasons) <= len(PROGRAMS) // 50
