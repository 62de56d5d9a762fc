"""Every program of tests/diff with a break forced before each instruction of its trace, one at a time:
whatever the instruction, the run can be seen to be a plain one."""

import os
import random
import sys
import zlib

import harness
import pytest
from forced import Program

FULL = os.environ.get("STATOR_FULL") == "1"
FIRST, REST = 2000, 500  # in a full run: all up to here, and so many of the others
FEW = 4  # else

# Told from a plain run by what no compiler keeps.
EXEMPT = {
    # When an argument dies in a call that C code makes, as a compiled function's caller is.
    "lifetimes.arguments_at_return",
    "lifetimes.argument_rebound_in_callee",
    "lifetimes.failed_call_drops_arguments",
    "lifetimes.failed_keyword_call_drops_arguments",
    # Reference counts and addresses themselves.
    "lifetimes.refcounts_of_iterated",
    "lifetimes.id_reuse",
    # A cycle of an exception and a frame that never was is no garbage.
    "lifetimes.exception_cycle_with_frame",
    # It waits for a signal in a loop, which a compiled call has behind it at once.
    "frames.signal_handler_raises",
}
if sys.version_info < (3, 13):
    # gen.throw on a running generator takes an inline cache for a RESUME (_PyGen_yf), once the
    # counter in it says so; with a hook installed calls are not specialised, and it does.
    EXEMPT.add("generators.already_executing")
# The operands of a star call, which 3.11 keeps until it returns, are gone where its frame is put back.
STARRED = {
    "lifetimes.argument_of_star_call",
    "lifetimes.arguments_from_generator",
    "lifetimes.keyword_call_drops",
}
PROGRAMS = {name: f for name, f in harness.load_programs().items() if name not in EXEMPT}


def numbers(name: str, reach: int) -> list[int]:
    """All up to some number, and a seeded choice of the others."""
    chance = random.Random(zlib.crc32(name.encode()))
    if not FULL:
        return sorted(chance.sample(range(1, reach + 1), min(reach, FEW)))
    rest = range(FIRST + 1, reach + 1)
    return [*range(1, min(reach, FIRST) + 1), *sorted(chance.sample(rest, min(len(rest), REST)))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_break_before_it(name):
    program = Program(name, PROGRAMS[name])
    found = program.differs() or next(
        filter(None, (program.differs(break_at=n) for n in numbers(name, program.reach()))), ""
    )
    assert not found, found


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - STARRED))
def test_breaks_in_every_trace(name):
    program = Program(name, PROGRAMS[name])
    chance = random.Random(zlib.crc32(name.encode()))
    for every in (1, 3, 10) if FULL else (chance.choice((1, 2, 5, 15)),):
        for _ in range(5 if FULL else 1):
            found = program.differs(break_every=every, break_seed=chance.randrange(1 << 30))
            assert not found, found
