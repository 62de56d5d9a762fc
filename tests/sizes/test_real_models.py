"""Models of transformers and timm whose shapes change: results equal to eager, and no more entries
and conditions on sizes than torch's own Dynamo makes, which runs in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.sizes import real_models  # noqa: E402

FULL = os.environ.get("STATOR_FULL") == "1"
full = pytest.mark.skipif(not FULL, reason="STATOR_FULL=1 runs it")


@pytest.mark.parametrize("name", real_models.DECODERS if FULL else ["gpt2", "llama"])
def test_decoding_with_a_growing_cache_takes_three_entries(name):
    fast, equal = real_models.decode("stator", "eager", name)
    assert equal
    assert fast.facts()[0] <= 3


def test_twelve_lengths_take_two_entries():
    calls = [real_models.tokens(2, length) for length in range(5, 29, 2)]
    fast, equal = real_models.run("stator", "eager", "bert", False, calls)
    assert equal
    assert fast.facts()[0] == 2


def rows(engine, backend, *names):
    """What `real_models.py` prints in a process of its own."""
    command = [sys.executable, real_models.__file__, engine, backend, *names]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *filter(None, sys.path)])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@full
@pytest.mark.parametrize("kind", ["infer", "train"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "vit", "resnet"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_no_more_entries_and_conditions_than_stock(backend, name, kind, tmp_path, monkeypatch):
    if name == "resnet":
        pytest.importorskip("timm")
    # An empty cache: what inductor does to the process while it compiles must not matter.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    (ours,) = rows("stator", backend, f"{name}:{kind}")
    (theirs,) = rows("stock", backend, f"{name}:{kind}")
    assert ours["equal"]
    assert ours["entries"] <= theirs["entries"]
    assert ours["conditions"] <= theirs["conditions"]
