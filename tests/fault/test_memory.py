"""Each allocation of an evaluated program fails once: the right result or MemoryError, no more."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from fault_programs import PROGRAMS  # noqa: E402

# Hopping is left out: half of it is CPython's own eval, which does not survive all of this.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("_testcapi") is None, reason="this Python comes without _testcapi"
)


def run(program, engine):
    command = [sys.executable, str(HERE / "memory_child.py"), program, engine]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    said = "\n".join(done.stderr.splitlines()[-12:])
    assert done.returncode == 0, f"status {done.returncode}\n{said}"
    return int(done.stdout)


@pytest.mark.parametrize("program", PROGRAMS)
def test_evaluated_program_survives_each_failed_allocation(program):
    assert run(program, "evaluate") > 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_image_taken_and_put_back_survives_each_failed_allocation(program):
    assert run(program, "image") > 5
