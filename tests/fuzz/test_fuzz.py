"""Random programs run plainly, evaluated and hopping: nothing that can be seen differs."""

import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import stator
from stator import _engine

sys.path.insert(0, str(Path(__file__).parent))

from choices import Drawn
from generate import program, program_of_seed
from outcome import code_of, outcome, plain

# Hypothesis shrinks, a seed is quick: the long run (make fuzz) goes by seeds, in run.py.
PROGRAMS = int(os.environ.get("STATOR_FUZZ_PROGRAMS", "300"))
SHRUNK = min(PROGRAMS // 15, 2000)

drawn = settings(
    max_examples=SHRUNK,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", autouse=True)
def frozen():
    """Each run collects what its program left; what was there before need not be looked at."""
    gc.freeze()
    yield
    gc.unfreeze()


def hopping(seed, every):
    def engine(fn, *args):
        return _engine.evaluate_hopping(fn, args, {}, seed, every)

    return engine


def assert_same(source, name, engine):
    code = code_of(source, name)
    expected, seen = outcome(code, plain), outcome(code, engine)
    if not (expected.at_limit and seen.at_limit):
        assert not expected.difference(seen), expected.difference(seen)


@drawn
@given(st.data())
def test_drawn_programs_evaluate_as_they_run(data):
    source = program(Drawn(data.draw, st.integers), size=12)
    note(source)
    assert_same(source, "drawn", stator.evaluate)


@drawn
@given(st.data(), st.integers(0, 2**32), st.integers(1, 20))
def test_drawn_programs_hop_as_they_run(data, seed, every):
    source = program(Drawn(data.draw, st.integers), size=12)
    note(source)
    assert_same(source, "drawn", hopping(seed, every))


def test_seeded_programs_evaluate_and_hop_as_they_run(tmp_path):
    """In child processes, so that a crash names its program."""
    import run

    seeded = run.Run(range(PROGRAMS), 7, tmp_path)
    seeded.go(jobs=1)
    failed = [(tmp_path / f"{seed}.py").read_text() for seed in seeded.bad]
    assert not failed, failed[0]
    assert seeded.good == PROGRAMS


@pytest.mark.parametrize("seed", range(3))
def test_a_program_runs_the_same_twice(seed):
    """Programs depend on nothing but themselves; otherwise the comparison means little."""
    code = code_of(program_of_seed(seed), seed)
    assert not outcome(code, plain).difference(outcome(code, plain))


def test_a_changed_result_is_seen():
    """The comparison notices an engine that does one thing differently."""

    def skewed(fn, code, names):
        fn(code, names)
        names["result"] = "skewed"

    source = next(s for s in map(program_of_seed, range(99)) if ran_through(s))
    code = code_of(source, "skewed")
    assert outcome(code, plain).difference(outcome(code, skewed))


def ran_through(source):
    return outcome(code_of(source, "try"), plain).exception is None
