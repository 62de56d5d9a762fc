"""Modules that are compiled before torch._dynamo is imported are torch's `OptimizedModule`s once it
is, and the same all the time."""

import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

CHILD = pathlib.Path(__file__).with_name("early_modules.py")


@pytest.mark.skipif(
    any(name.startswith(("TORCHDYNAMO_", "TORCH_COMPILE")) for name in os.environ),
    reason="settings by the environment are read by torch._dynamo",
)
def test_wrappers_are_the_same_before_and_after_torch_dynamo_is_imported() -> None:
    done = subprocess.run([sys.executable, CHILD], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr
