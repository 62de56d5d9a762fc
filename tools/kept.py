"""Prints a folder that holds the given packages for a Python; the first time, installs them there.

    python tools/kept.py PYTHON torch==2.15.0 numpy==2.4.6

The folder lies outside the tree (`$XDG_CACHE_HOME` or ~/.cache, in `stator`) and stays between
runs: some packages take minutes and gigabytes. Its name says what is in it. It appears whole or not
at all, and a second run waits for the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TAG = (
    "import sys, sysconfig; print(sys.implementation.cache_tag, sysconfig.get_platform(), sep='-')"
)


def cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "stator"


def folder_of(python: str, packages: list[str]) -> Path:
    tag = subprocess.run([python, "-c", TAG], check=True, capture_output=True, text=True)
    return cache() / "-".join([tag.stdout.strip(), *(p.replace("==", "") for p in packages)])


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time. The lock goes with the process that holds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(python: str, packages: list[str], folder: Path) -> None:
    """Into a folder beside it, which then gets the name. What a killed run left goes first."""
    for left in folder.parent.glob(folder.name + ".part-*"):
        shutil.rmtree(left, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=folder.name + ".part-", dir=folder.parent))
    (part / "tmp").mkdir()
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--target", str(part / "lib"), *packages]
    # pip unpacks where temporary files go, which may be small.
    environment = os.environ | {"TMPDIR": str(part / "tmp")}
    print(f"installing {' '.join(packages)} into {folder}", file=sys.stderr, flush=True)
    try:
        subprocess.run(command, check=True, env=environment, stdout=sys.stderr)
        (part / "lib").rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def main(python: str, *packages: str) -> int:
    folder = folder_of(python, list(packages))
    with alone(folder):
        if not folder.exists():
            try:
                install(python, list(packages), folder)
            except subprocess.CalledProcessError as error:
                print(f"{' '.join(packages)} cannot be installed: pip's status {error.returncode}",
                      file=sys.stderr)  # fmt: skip
                return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
