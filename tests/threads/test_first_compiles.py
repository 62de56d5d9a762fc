"""Threads that compile for the first time, all at once: each gets what it asked for, and torch makes
its modules as before."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

CHILD = """
import threading

import torch
from torch.fx import _lazy_graph_module

import stator

together = threading.Barrier(4)
found = []


def work():
    together.wait()
    for i in range(20):
        compiled = stator.compile(lambda x, i=i: x * i + 1, backend=lambda graph, _: graph)
        found.append(float(compiled(torch.ones(()))) == i + 1)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [True] * 80, found
assert _lazy_graph_module._get_graph_module_cls() is torch.fx.GraphModule
"""


def test_first_compiles_at_once():
    subprocess.run([sys.executable, "-c", CHILD], check=True, timeout=300)
