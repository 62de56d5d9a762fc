"""Runs a program again and again, each time with another allocation failing, in another process."""

import subprocess
import sys
import textwrap

_LOOP = """
import _testcapi

QUIET = 30  # all allocations were reached once this many runs in a row had no failure
expected = program()
failed = quiet = at = 0
while quiet < QUIET:
    _testcapi.set_nomemory(at, at + 1)
    try:
        value = program()
    except MemoryError:
        value = None
    finally:
        _testcapi.remove_mem_hooks()
    if value is None:
        failed, quiet = failed + 1, 0
    else:
        assert value == expected, (at, value, expected)
        quiet += 1
    at += 1
print(failed)
"""


def failed_allocations(source: str) -> int:
    """How many allocations of `program()`, which the source defines, made it raise MemoryError; all
    other runs must give the same value as the first."""
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(source) + _LOOP],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return int(run.stdout)
