"""What people find in `stator` without reading: names, help, and `python -m stator`."""

import pydoc
import subprocess
import sys

import pytest

import stator


def run(*args, cwd=None):
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, cwd=cwd, timeout=300
    )


def test_dir_has_every_name():
    done = run("-c", "import stator; print(sorted(set(stator.__all__) - set(dir(stator))))")
    assert done.stdout.strip() == "[]", done.stderr


def test_every_name_is_there_and_says_what_it_is_for():
    for name in stator.__all__:
        assert (getattr(stator, name).__doc__ or "").strip(), name


def test_help_lists_every_name():
    text = pydoc.plain(pydoc.render_doc(stator))
    for name in stator.__all__:
        assert name in text, name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'compiel'"):
        stator.compiel


def test_nothing_heavy_is_imported_with_it():
    text = (
        "import sys, stator; print([m for m in ('torch', 'stator._compile') if m in sys.modules])"
    )
    assert run("-c", text).stdout.strip() == "[]"


# -- python -m stator --


def test_usage():
    done = run("-m", "stator")
    assert done.returncode == 2 and done.stderr.startswith("usage: python -m stator (script.py")


def test_a_script_runs_with_stator_installed(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch\n"
        "@torch.compile(backend='eager')\n"
        "def f(x):\n"
        "    return x + 1\n"
        "print(f(torch.ones(1)).item(), type(f).__module__, type(f).__name__, sys.argv[1:], __name__)\n"
        "import sibling\n"
        "raise ValueError('from the program')\n"
    )
    (tmp_path / "sibling.py").write_text("print('found')\n")
    done = run("-m", "stator", str(script), "-a", "b")
    assert done.stdout == "2.0 stator._engine Compiled ['-a', 'b'] __main__\nfound\n", done.stderr
    assert done.returncode == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File")]
    assert frames == [f'  File "{script}", line 7, in <module>']


def test_its_exit_status_is_the_program_s(tmp_path):
    pytest.importorskip("torch")
    assert run("-m", "stator", "-c", "import sys; sys.exit(7)").returncode == 7


def test_without_torch_it_says_so():
    try:
        import torch  # noqa: F401
    except ImportError:
        done = run("-m", "stator", "-c", "print(1)")
        assert done.returncode == 1 and "torch" in done.stderr
