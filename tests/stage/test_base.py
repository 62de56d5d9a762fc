"""src/base, built as a module of its own: maps and arenas keep what they were given."""

import importlib.util
import random
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("base") / "base_check.so"
    headers = {sysconfig.get_path("include"), sysconfig.get_path("platinclude")}
    sources = [*(ROOT / "src" / "base").glob("*.c"), Path(__file__).parent / "base_check.c"]
    subprocess.run(
        [compiler, "-std=c17", "-shared", "-fPIC", "-O1", "-g", "-DPy_BUILD_CORE", f"-I{ROOT}"]
        + [f"-I{folder}" for folder in sorted(headers)]
        + ["-o", str(target), *map(str, sources)],
        check=True,
    )
    spec = importlib.util.spec_from_file_location("base_check", target)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("count", [0, 1, 11, 12, 13, 1000, 50_000])
def test_map_finds_what_was_put_last(base: ModuleType, count: int) -> None:
    generator = random.Random(count)
    aligned = [generator.randrange(2**44) * 16 for _ in range(count)]
    small = [generator.randrange(count // 2 + 1) for _ in range(count)]
    for keys in aligned, small:
        last = {key: index for index, key in enumerate(keys)}
        assert base.map_check(keys) == [last[key] for key in keys]


def test_arena_keeps_blocks_of_all_sizes(base: ModuleType) -> None:
    sizes = [0, 1, 7, 8, 16, 17, 100_000, 3, 16 * 1024, 16 * 1024 - 8, 5] + [40] * 2000
    assert base.arena_check(sizes, [])


def test_arena_drops_its_references(base: ModuleType) -> None:
    owned = [object() for _ in range(100)]
    counts = [sys.getrefcount(o) for o in owned]
    assert base.arena_check([1], owned)
    assert [sys.getrefcount(o) for o in owned] == counts


def test_failing_allocations_leave_nothing_behind(base: ModuleType) -> None:
    testcapi = pytest.importorskip("_testcapi")
    keys, sizes, owned = list(range(100)), [20_000, 5], [object()] * 20
    count = sys.getrefcount(owned[0])
    failures = 0
    for run in (lambda: base.map_check(keys), lambda: base.arena_check(sizes, owned)):
        for start in range(40):
            testcapi.set_nomemory(start, start + 1)
            try:
                run()
            except MemoryError:
                failures += 1
            finally:
                testcapi.remove_mem_hooks()
    left = sys.getrefcount(owned[0])
    assert failures > 10 and left == count
