"""Another eval hook, there before ours or put on top of it: both work, and each is given back."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from stator import _engine, evaluate

SOURCE = Path(__file__).with_name("other_hook.c")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    include = sysconfig.get_path("include")
    if compiler is None or not Path(include, "Python.h").exists():
        pytest.skip("no C compiler, or no headers of this Python")
    out = tmp_path_factory.mktemp("hook") / ("other_hook" + sysconfig.get_config_var("EXT_SUFFIX"))
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", f"-I{include}", SOURCE, "-o", out], check=True
    )
    spec = importlib.util.spec_from_file_location("other_hook", out)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def other(built):
    yield built
    assert not built.is_current() and not _engine.hook_installed()


def add(a, b):
    return a + b


def program(n):
    def numbers():
        yield from range(n)

    try:
        return sum(map(lambda x: add(x, 1), numbers())) // (n - 3)
    except ZeroDivisionError:
        return "zero"


def test_hook_that_was_there_before_is_given_back(other):
    other.install()
    try:
        assert evaluate(program, 3) == "zero" and evaluate(program, 5) == 7
        assert other.is_current() and not _engine.hook_installed()
        before = other.count()
        assert add(1, 2) == 3
        assert other.count() > before
    finally:
        other.restore()
    assert program(5) == 7


def test_hook_that_was_there_before_gets_what_is_passed_on(other):
    def skipped(x):
        return add(x, 1)

    _engine.skip_code(skipped.__code__)
    other.install()
    try:
        before = other.count()
        assert evaluate(lambda: skipped(1)) == 2
        assert other.count() > before
    finally:
        other.restore()


ON_TOP = """
import importlib.util, resource, stator
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))  # an endless recursion ends soon
spec = importlib.util.spec_from_file_location("other_hook", {path!r})
other = importlib.util.module_from_spec(spec)
spec.loader.exec_module(other)

def program(n):
    return sum(map(lambda x: x + 1, range(n)))

def main():
    other.install()
    return program(5)

assert stator.evaluate(main) == 15
assert other.is_current()
assert program(5) == 15 and stator.evaluate(program, 5) == 15
other.restore()
# What it restored may be ours, with nothing to do; the next evaluation takes it off.
assert program(5) == 15 and stator.evaluate(program, 5) == 15
assert not stator._engine.hook_installed()
"""


def test_hook_put_on_top_inside_evaluated_code_stays(other):
    """In a process of its own: two hooks that call each other would end it."""
    program = ON_TOP.format(path=other.__file__)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-2000:]}"


def test_hook_put_on_and_taken_off_inside_evaluated_code(other):
    def main():
        other.install()
        first = program(5)
        other.restore()
        return first, program(5), _engine.hook_installed()

    assert evaluate(main) == (7, 7, True)


def test_hopping_under_another_hook(other):
    other.install()
    try:
        for seed in range(20):
            assert _engine.evaluate_hopping(program, (5,), {}, seed, 3) == 7
    finally:
        other.restore()
