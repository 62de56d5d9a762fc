"""`replay_record_enabled`: a call that failed to compile is written to a file, and made again."""

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo import config, exc  # noqa: E402

import stator  # noqa: E402
from stator import _record  # noqa: E402


@pytest.fixture(autouse=True)
def installed(tmp_path):
    stator.install()
    torch._dynamo.reset()
    with config.patch(replay_record_enabled=True, debug_dir_root=str(tmp_path)):
        yield
    stator.uninstall()


scale = 3


def talks(x, *more, k=2, **named):
    print("told", end="")
    return (x * k + len(more) + named["n"]) * scale


def failed(function, *args, backend="eager", **kwargs):
    with pytest.raises(exc.TorchDynamoException) as raised:
        torch.compile(function, backend=backend, fullgraph=True)(*args, **kwargs)
    return raised.value.record_filename


def test_a_call_is_made_again(capsys):
    x = torch.ones(2)
    path = failed(talks, x, 5, 6, k=4, n=1)
    explained = stator.replay(path)
    assert [b.reason for b in explained.breaks] == ["PRINT"]
    assert explained.result.tolist() == talks(x, 5, 6, k=4, n=1).tolist()
    assert torch._dynamo.replay(path).result.tolist() == explained.result.tolist()


def test_nothing_is_written_over():
    paths = [failed(talks, torch.ones(2), n=1)]
    torch._dynamo.reset()
    paths.append(failed(talks, torch.ones(2), n=1))
    assert len(set(paths)) == 2 and all(map(os.path.exists, paths))


def test_closures_and_what_cannot_be_written():
    handle = open(os.devnull)  # noqa: SIM115
    add = lambda a: a + 1  # noqa: E731

    def program(x, file):
        print(end="")
        return add(x)

    path = failed(program, torch.ones(2), handle)
    handle.close()
    function, variables = _record.load(path)
    assert "TextIOWrapper" in repr(variables["file"])
    assert function(torch.ones(2), None).tolist() == [2, 2]


def test_a_backend_that_fails_is_recorded():
    def broken(module, examples):
        raise KeyError("deep inside")

    path = failed(lambda x: x + 1, torch.ones(2), backend=broken)
    assert stator.replay(path).result.tolist() == [2, 2]


def test_other_files_are_refused(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"something else")
    with pytest.raises(ValueError, match="was not written by Stator"):
        stator.replay(other)


@pytest.mark.full
def test_another_process_makes_it_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
            import torch, stator
            import torch._dynamo
            factor = 3

            def helper(x):
                return x * factor

            def f(x):
                print(end="")
                return helper(x)

            stator.install()
            torch._dynamo.config.replay_record_enabled = True
            try:
                torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
            except Exception as error:
                print(error.record_filename)
        """)
    )
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path)
    explained = stator.replay(ran.stdout.strip())
    assert explained.result.tolist() == [3, 3]
