# ruff: noqa: E402
"""`stator.progress`: a line for each entry that is being compiled."""

import io
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=["alone", "installed"], autouse=True)
def compile(request):
    if request.param == "installed":
        stator.install()
    stator.reset()
    yield torch.compile if request.param == "installed" else stator.compile
    stator.progress(False)
    stator.uninstall()
    stator.reset()


def step(x):
    return torch.relu(x) + 1


def steps(text):
    plain = re.sub(r"[\d.]+ s", "T", text)
    return [line.partition("): ")[2] for line in plain.splitlines()]


def test_each_step_is_a_line(compile):
    out = io.StringIO()
    stator.progress(file=out)
    compile(step, backend="aot_eager")(torch.ones(3))
    assert f"stator: step ({__file__}:" in out.getvalue()
    assert steps(out.getvalue()) == [
        "tracing",
        "traced 2 operations in T, backend running",
        "2 operations, done in T",
    ]


def test_a_replay_has_no_backend(compile):
    out = io.StringIO()
    stator.progress(file=out)
    fast = compile(step, backend="eager")
    fast(torch.ones(3)), fast(torch.ones(3))
    assert steps(out.getvalue()) == ["tracing", "2 operations, done in T"]


def test_a_terminal_has_one_line_and_sees_the_time_go_by(compile, monkeypatch):
    import time

    def slow(module, examples):
        time.sleep(0.1)
        return module.forward

    monkeypatch.setattr(_progress, "_TICK", 0.02)
    out = Terminal()
    stator.progress(file=out)
    compile(step, backend=slow)(torch.ones(3))
    text = out.getvalue()
    assert text.count("\n") == 1 and text.endswith("\n")
    assert re.search(r"backend running \d+ s\r", text)


def test_failures_end_the_line(compile):
    def broken(module, examples):
        raise ValueError("no such machine")

    out = io.StringIO()
    stator.progress(file=out)
    with pytest.raises(Exception, match="no such machine"):
        compile(step, backend=broken)(torch.ones(3))
    with pytest.raises(stator.Unsupported):
        compile(lambda x: x + 1 if x.sum() else x, backend="eager", fullgraph=True)(torch.ones(3))
    ends = [line for line in steps(out.getvalue()) if line.startswith("not compiled")]
    assert ends == ["not compiled (BackendCompilerFailed) in T", "not compiled (TENSOR_TRUTH) in T"]


def test_off_it_says_nothing(compile):
    out = io.StringIO()
    stator.progress(file=out)
    stator.progress(False)
    compile(step, backend="aot_eager")(torch.ones(3))
    assert out.getvalue() == ""


def test_a_file_that_was_closed_is_nobody_s(compile):
    out = io.StringIO()
    stator.progress(file=out)
    out.close()
    assert compile(step, backend="aot_eager")(torch.ones(1)) == 2


def test_the_environment_turns_it_on(compile):
    text = "import stator; stator.compile(lambda x: [x], backend='eager', _keep_empty=True)(1)"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True,
        env={**__import__("os").environ, "STATOR_PROGRESS": "1"}, timeout=100,
    )  # fmt: skip
    assert "0 operations, done" in done.stderr
