"""`stator.repro`: a script that shows alone what a backend does wrong; and torch's own minifier."""

import os
import runpy
import sys

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo import config, exc  # noqa: E402

import stator  # noqa: E402

net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU())


def plain(x, n):
    y = net(x) * n + torch.tensor([1.0, 2, 3, 4])
    with torch.no_grad():
        z = torch.where(y > 0, y, float("-inf"))
    return z.sum(), y.t()[1:]


def written(x, n):
    x.mul_(n)
    return x.relu()


def branches(x, n):
    return torch.cond(x.sum() > n, lambda v: v.sin(), lambda v: v.cos(), (x,))


def pieces(x, n):
    y = x + n
    print(end="")
    return torch.relu(y)


PROGRAMS = (plain, written, branches, pieces)


def off_by_one(module, examples):
    def wrong(value):
        return value + 1

    return lambda *args: [wrong(result) for result in module.forward(*args)]


def only_relu(module, examples):
    """Fails on graphs with a relu."""
    if any("relu" in str(node.target) for node in module.graph.nodes):
        raise KeyError("no kernel for relu")
    return module.forward


def run(path, monkeypatch, *options):
    monkeypatch.setattr(sys, "argv", [path, *options])
    torch._dynamo.reset()
    try:
        return runpy.run_path(path)["main"]()
    finally:
        stator.uninstall()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_nothing_is_written_if_nothing_is_wrong(program, tmp_path):
    path = str(tmp_path / "repro.py")
    assert stator.repro(program, torch.randn(5, 3), 3, backend="eager", path=path) is None
    assert not os.path.exists(path)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_script_shows_other_results(program, tmp_path, monkeypatch, capsys):
    path = str(tmp_path / "repro.py")
    assert stator.repro(program, torch.randn(5, 3), 3, backend=off_by_one, path=path) == path
    assert "up to 1 apart" in (text := open(path).read())
    assert "TODO" not in text, text
    assert run(path, monkeypatch, "--stator") == 1
    assert capsys.readouterr().out == "the results differ\n"


def test_the_script_needs_no_stator(tmp_path, monkeypatch):
    path = str(tmp_path / "repro.py")
    stator.repro(written, torch.randn(5, 3), 3, backend=off_by_one, path=path)
    assert run(path, monkeypatch) == 1


def test_the_script_shows_failures(tmp_path, monkeypatch):
    path = str(tmp_path / "repro.py")

    def local_backend(module, examples):
        raise KeyError("no kernel at all")

    stator.repro(plain, torch.randn(5, 3), 3, backend=local_backend, path=path)
    with pytest.raises(exc.BackendCompilerFailed, match="no kernel at all"):
        run(path, monkeypatch, "--stator")


def test_the_first_graph_that_fails_is_written(tmp_path, monkeypatch):
    path = str(tmp_path / "repro.py")
    stator.repro(pieces, torch.randn(5, 3), 3, backend=only_relu, path=path)
    assert "graph 1 of pieces" in open(path).read()


def test_settings_are_written(tmp_path, monkeypatch):
    path = str(tmp_path / "repro.py")
    with config.patch(suppress_errors=True), torch.no_grad():
        stator.repro(written, torch.randn(5, 3), 3, backend=off_by_one, path=path)
    text = open(path).read()
    assert "torch._dynamo.config.suppress_errors = True" in text
    assert "torch.set_grad_enabled(False)" in text


@pytest.fixture
def installed():
    torch._dynamo.reset()
    stator.install()
    yield
    stator.uninstall()


def test_torchs_minifier_gets_the_graph(installed, tmp_path):
    """TORCHDYNAMO_REPRO_AFTER=dynamo."""
    debug = {"repro_after": "dynamo", "repro_level": 2, "debug_dir_root": str(tmp_path)}
    with config.patch(debug), pytest.raises(exc.BackendCompilerFailed):
        torch.compile(pieces, backend="relu_compile_error_TESTING_ONLY")(torch.randn(5, 3), 3)
    (launcher,) = tmp_path.rglob("minifier_launcher.py")
    assert "relu" in launcher.read_text()
