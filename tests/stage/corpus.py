"""Code objects to decode: the standard library's and site-packages', compiled from source."""

import os
import random
import site
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

FULL = os.environ.get("STATOR_FULL") == "1"


def sources(folders: list[str]) -> list[Path]:
    return sorted({path for folder in folders for path in Path(folder).rglob("*.py")})


def library_sources(sample: int | None = None) -> list[Path]:
    """The standard library, its tests included, less what is installed into it; or some of it."""
    every = sources([sysconfig.get_path("stdlib")])
    found = [path for path in every if not {"site-packages", "dist-packages"} & {*path.parts}]
    return random.Random(3).sample(found, sample) if sample else found


def site_sources(sample: int | None = None) -> list[Path]:
    found = sources([path for path in site.getsitepackages() if os.path.isdir(path)])
    return random.Random(3).sample(found, min(sample, len(found))) if sample else found


def compiled(path: Path) -> CodeType | None:
    """The module's code, or None for a file that is not meant to compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None


def nested(code: CodeType) -> Iterator[CodeType]:
    """The code and all code objects in its constants, at any depth."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def codes(paths: list[Path]) -> Iterator[CodeType]:
    for path in paths:
        code = compiled(path)
        if code is not None:
            yield from nested(code)
