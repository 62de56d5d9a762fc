"""Every program again, its frames moved between the two engines at instruction boundaries, by
image, into a fresh frame each time: nothing that can be seen differs."""

import random
import sys

import pytest
from harness import capture, difference, handed_over, hopping, leak_hint, load_programs

PROGRAMS = load_programs()

# Boundaries after which a frame is handed to CPython: all of the first, then ever fewer.
POINTS = [*range(1, 151), *(int(150 * 1.08**n) for n in range(1, 65))]


# Programs that see when a caller lets go of arguments. CPython gives two answers: with an eval
# hook installed it does not inline calls, and the caller's stack holds them until the callee is
# done. A frame handed over to CPython runs under our hook.
SEES_HOOK = {
    "adversary.deaths_in_order",
    "lifetimes.argument_of_star_call",
    "lifetimes.argument_rebound_in_callee",
    "lifetimes.arguments_at_return",
    "lifetimes.arguments_from_generator",
    "lifetimes.failed_call_drops_arguments",
    "lifetimes.failed_keyword_call_drops_arguments",
    "lifetimes.keyword_call_drops",
}


# 3.11 has one limit for Python and native code, and CPython charges a built-in call to it or not,
# as it has specialised the call or not: the depth that is reached depends on who runs a frame.
SEES_SPECIALISATION = {"frames.recursion_limit_boundary"} if sys.version_info < (3, 12) else set()


def _compare(name, *engines):
    if name in SEES_SPECIALISATION:
        pytest.skip("the depth reached depends on which calls CPython has specialised")
    expected = [capture(PROGRAMS[name])]
    if name in SEES_HOOK:
        expected.append(capture(PROGRAMS[name], handed_over(1)))
    for label, engine in engines:
        actual = capture(PROGRAMS[name], engine)
        found = [difference(one, actual) for one in expected]
        assert not all(found), f"{name}, {label}\n{found[0]}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_hop_at_every_boundary(name):
    _compare(name, ("every boundary", hopping(0, 1)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_hop_at_random_boundaries(name):
    seeds = random.Random(name).sample(range(1, 2**31), 5)
    _compare(name, *((f"seed {seed}, every 7", hopping(seed, 7)) for seed in seeds))


@pytest.mark.parametrize("name", PROGRAMS)
def test_hand_over_to_cpython(name):
    points = random.Random(name).sample(POINTS, 8)
    _compare(name, *((f"handed over at {at}", handed_over(at)) for at in points))


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_hand_over_to_cpython_everywhere(name):
    _compare(name, *((f"handed over at {at}", handed_over(at)) for at in POINTS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_hops_leave_nothing_behind(name):
    found = leak_hint(PROGRAMS[name], hopping(1, 3))
    assert not found, f"{name} leaves behind: {found}"
