"""Traced, planned, called, recompiled, dropped and reset over and over, nothing grows; and when all is
let go, nothing of the engine's is left: no graph, no compiler, nothing that stood for something.

1,000 times a kind; 50,000 in a full run.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FULL = os.environ.get("STATOR_FULL") == "1"
sys.path.insert(0, str(HERE))
import compiled_child  # noqa: E402

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
SLOW = {"dead_entries": 10, "limits": 5, "methods": 5, "codes": 2}


@pytest.mark.parametrize("kind", compiled_child.KINDS)
def test_nothing_grows_around_compiled_functions(kind):
    tensors = kind.startswith("tensor")
    if tensors and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    times = (50_000 if FULL else 1_000) // SLOW.get(kind, 10 if tensors and FULL else 1)
    command = [sys.executable, str(HERE / "compiled_child.py"), kind, str(times)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    objects, blocks, kilobytes, alive = map(int, done.stdout.split())
    # What is not per call: caches and free lists that fill late, the allocator's own arenas.
    assert objects < 20, f"{objects} objects more after {times} times"
    assert blocks < 600, f"{blocks} blocks more after {times} times"
    assert kilobytes < 3000, f"{kilobytes} kB more after {times} times"
    assert alive == 0, f"{alive} of the engine's own objects are left"
