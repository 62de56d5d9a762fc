"""Random programs with random changes between calls, plain against compiled: nothing that can be
seen differs."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import trace_outcome
from choices import Drawn
from trace_programs import program, program_of_seed

PROGRAMS = int(os.environ.get("STATOR_FUZZ_PROGRAMS", "300"))
TORCH = trace_outcome.has_torch()

drawn = settings(
    max_examples=min(PROGRAMS // 6, 2000),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@drawn
@given(st.data())
def test_drawn_programs_compile_as_they_run(data):
    source = program(Drawn(data.draw, st.integers), size=5)
    note(source)
    found = trace_outcome.difference(source, "drawn")
    assert not found, found


def test_seeded_programs_compile_as_they_run(tmp_path):
    """In child processes, so that a crash names its program."""
    import run
    import run_trace

    seeded = run.Run(range(PROGRAMS), 0, tmp_path, run_trace.work, run_trace.source_of)
    seeded.go(jobs=1)
    run_trace.tell(tmp_path)
    failed = [(tmp_path / f"{seed}.py").read_text() for seed in seeded.bad]
    assert not failed, failed[0]
    assert seeded.good == PROGRAMS


def test_a_program_runs_the_same_twice():
    """Programs depend on nothing but themselves; otherwise the comparison means little."""
    for seed in range(20):
        source = program_of_seed(seed, tensors=False)
        assert not trace_outcome.difference(source, seed, trace_outcome.plain)


def test_a_stale_result_is_seen():
    """The comparison notices a tracer without guards."""

    def stale(f):
        results = []

        def call(*args):
            if not results:
                results.append(f(*args))
            return results[0]

        return call

    sources = [program_of_seed(seed, tensors=False) for seed in range(20)]
    seen = [bool(trace_outcome.difference(source, 0, stale)) for source in sources]
    assert sum(seen) >= 18
