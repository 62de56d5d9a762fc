"""Evaluated over and over, nothing grows: objects, blocks of memory, the size of the process.

100,000 times a kind; 1,000,000 in a full run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FULL = os.environ.get("STATOR_FULL") == "1"
sys.path.insert(0, str(HERE))
import leak_child  # noqa: E402

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
SLOW = {"making": 10, "images": 4, "dropped_images": 4, "hops": 4, "decoding": 4}


@pytest.mark.parametrize("kind", leak_child.KINDS)
def test_nothing_grows(kind):
    times = (1_000_000 if FULL else 100_000) // SLOW.get(kind, 1)
    command = [sys.executable, str(HERE / "leak_child.py"), kind, str(times)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    objects, blocks, kilobytes = map(int, done.stdout.split())
    # What is not per call: caches that fill late, the allocator's own arenas.
    assert objects < 50, f"{objects} objects more after {times} times"
    assert blocks < 300, f"{blocks} blocks more after {times} times"
    assert kilobytes < 3000, f"{kilobytes} kB more after {times} times"
