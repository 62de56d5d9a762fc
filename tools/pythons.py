"""Lists the supported Pythons of this machine, one `version path` per line, oldest first.

Looks on PATH and among pyenv's versions. `--other PYTHON` leaves out the version of that one. With
a version, only the path of that Python; if there is none, it says so and fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
# A free-threaded or non-CPython interpreter, or one without the headers that an extension needs,
# prints nothing, so it is never equal to a version.
PROBE = """
import os, sys, sysconfig
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
ours = sys.implementation.name == "cpython" and "t" not in sys.abiflags and os.path.exists(headers)
print("%d.%d" % sys.version_info[:2] if ours else "")
"""


def version_of(python: str) -> str:
    """The version a Python reports, or '' if it does not run (an inactive pyenv shim, say)."""
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find(version: str) -> str | None:
    """A Python of this version that extensions can be built for."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [shutil.which(f"python{version}")]
    installed = [str(p / "bin" / "python") for p in root.glob(f"versions/{version}.*")]
    for python in [*named, *sorted(installed)]:
        if python and version_of(python) == version:
            return python
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", choices=SUPPORTED, help="only this one's path")
    parser.add_argument("--other", metavar="PYTHON", help="leave out the version of this Python")
    options = parser.parse_args()
    if options.version:
        python = find(options.version)
        sys.exit(print(python) if python else f"no Python {options.version} with headers found")
    left_out = version_of(options.other) if options.other else ""
    for version in SUPPORTED:
        python = None if version == left_out else find(version)
        if python:
            print(version, python)


if __name__ == "__main__":
    main()
