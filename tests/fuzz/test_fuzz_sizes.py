"""Random programs of shapes and numbers, each called with many sizes, plain against compiled: nothing
that can be seen differs."""

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import run
import run_sizes
import size_outcome
from size_programs import calls_of_seed, program_of_seed

PROGRAMS = int(os.environ.get("STATOR_FUZZ_PROGRAMS", "300")) // 15


def test_seeded_programs_compile_as_they_run(tmp_path):
    """In child processes, so that a crash names its program."""
    seeded = run.Run(range(PROGRAMS), 0, tmp_path, run_sizes.work, program_of_seed)
    seeded.go(jobs=1)
    run_sizes.tell(tmp_path)
    failed = [(tmp_path / f"{seed}.py").read_text() for seed in seeded.bad]
    assert not failed, failed[0]
    assert seeded.good == PROGRAMS


def results(world, seed):
    return [world.call(call) for call in calls_of_seed(seed)]


def test_a_program_runs_the_same_twice():
    """Programs depend on nothing but themselves; otherwise the comparison means little."""
    for seed in range(20):
        code = compile(program_of_seed(seed), f"<case {seed}>", "exec")
        way = size_outcome.way_of_seed(seed)
        one, two = size_outcome.World(code, way), size_outcome.World(code, way)
        assert results(one, seed) == results(two, seed)


def test_a_result_of_other_sizes_is_seen():
    """The comparison notices a compiler without guards."""

    def stale(f, **options):
        kept = []

        def call(*args):
            if not kept:
                kept.append(f(*args))
            return kept[0]

        return call

    def differs(seed):
        code = compile(program_of_seed(seed), f"<case {seed}>", "exec")
        way = size_outcome.way_of_seed(seed)
        one, two = size_outcome.World(code, way), size_outcome.World(code, way, stale)
        return results(one, seed) != results(two, seed)

    assert sum(map(differs, range(20))) >= 16


def test_most_programs_run_through():
    """Errors are part of programs, but not all that they do."""
    gave = total = 0
    for seed in range(40):
        code = compile(program_of_seed(seed), f"<case {seed}>", "exec")
        outcomes = results(size_outcome.World(code, size_outcome.way_of_seed(seed)), seed)
        gave, total = gave + sum(o[0][0] == "gave" for o in outcomes), total + len(outcomes)
    assert gave > total * 0.75
