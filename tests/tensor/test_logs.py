# ruff: noqa: E402
"""torch's logs, traces and metrics under `stator.install()`, beside stock Dynamo's."""

import collections
import glob
import json
import logging
import os
import re
import shutil
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import utils

import stator
from stator import _logs
from stator._versions import private


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    utils.counters.clear()
    yield
    stator.uninstall()
    torch._dynamo.reset()


# -- by artifact, beside stock --


def straight(x):
    return (x + 1).relu()


def broken(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


SEEN = []


def writing(x):
    SEEN.append(len(SEEN) > 100)
    return x * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


PROGRAMS = {
    "straight": (lambda: straight, [(3,), (4,)]),
    "broken": (lambda: broken, [(3,), (4,)]),
    "writing": (lambda: writing, [(3,)]),
    "module": (Net, [(2, 3), (4, 3)]),
}
ARTIFACTS = ["graph_code", "guards", "recompiles", "graph_breaks", "trace_source", "trace_call",
             "side_effects", "bytecode"]  # fmt: skip
# What stock says with no graph or entry of its own: Stator's traces begin where the graph does.
IDS = {"graph_code", "guards", "bytecode", "trace_call", "trace_source"}


def artifacts(program, engine, backend):
    """How often each artifact was logged for each compile id."""
    found = collections.Counter()

    class Keeper(logging.Handler):
        def emit(self, record):
            compile_id = torch._guards.CompileContext.current_compile_id()
            found[getattr(record, "artifact_name", None), str(compile_id)] += 1

    if engine == "stator":
        stator.install()
    torch._dynamo.reset()
    torch.manual_seed(0)
    make, sizes = PROGRAMS[program]
    torch._logging.set_logs(**{name: True for name in ARTIFACTS})
    handler, loggers = Keeper(), []
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch._dynamo.") and isinstance(logger, logging.Logger):
            if not logger.propagate or name.count(".") == 2:
                loggers.append(logger)
                logger.addHandler(handler)
    try:
        fast = torch.compile(make(), backend=backend, dynamic=False)
        for size in sizes:
            fast(torch.ones(*size))
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        torch._logging.set_logs()
        stator.uninstall()
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_artifacts_of_stock_are_there_under_the_same_ids(program, backend):
    theirs = artifacts(program, "stock", backend)
    ours = artifacts(program, "stator", backend)
    names = {name for name, _ in theirs if name in ARTIFACTS}
    assert names - {name for name, _ in ours} == set()
    for name in IDS & names:
        mine = {compile_id for artifact, compile_id in ours if artifact == name}
        assert mine == {compile_id for artifact, compile_id in theirs if artifact == name}, name


def test_nothing_is_made_where_nothing_is_on(monkeypatch):
    def never(*args):
        raise AssertionError("a text was made")

    stator.install()
    for name in ("_log_entry", "_as_module", "_table", "_guard_lines", "_with_values"):
        monkeypatch.setattr(_logs, name, never)
    monkeypatch.setattr(private.trace_log, "handlers", [])
    torch.compile(straight, backend="eager")(torch.ones(3))
    torch.compile(straight, backend="aot_eager")(torch.ones(3))


# -- records for tlparse --

SCRIPT = """
import sys, torch
import stator
stator.install()
def f(x):
    y = torch.relu(x) + 1
    print(end="")
    return y.sum()
fast = torch.compile(f, backend="aot_eager")
for n in (3, 4):
    fast(torch.ones(n))
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    env = {**os.environ, "TORCH_TRACE": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (path,) = glob.glob(str(folder / "*.log"))
    return path


def test_records_of_a_trace(traced):
    with open(traced) as file:
        lines = [re.sub(r"^[^{]*", "", line) for line in file if not line.startswith("\t")]
    records = [json.loads(line) for line in lines if line.startswith("{")]
    found = collections.defaultdict(set)
    for record in records:
        if "frame_id" in record:
            compile_id = f"{record['frame_id']}/{record['frame_compile_id']}"
            found[compile_id] |= set(record)
            found[compile_id] |= {record["artifact"]["name"]} if "artifact" in record else set()
    assert {"0/0", "1/0", "0/1", "1/1"} <= set(found)
    for compile_id in ("0/0", "1/0", "0/1", "1/1"):
        assert {"dynamo_start", "dynamo_output_graph", "dynamo_guards", "compilation_metrics"} <= (
            found[compile_id]
        ), compile_id
    assert "dynamo_graph_break_reason" in found["0/0"]
    assert "recompile_reasons" in found["0/1"]
    metrics = [record["compilation_metrics"] for record in records
               if "compilation_metrics" in record]  # fmt: skip
    assert all(m["co_name"] == "f" and m["guard_count"] > 0 for m in metrics)


TLPARSE = shutil.which("tlparse", path=os.path.dirname(sys.executable))


@pytest.mark.skipif(TLPARSE is None, reason="no tlparse")
def test_tlparse_reads_it(traced, tmp_path):
    done = subprocess.run(
        [TLPARSE, traced, "-o", str(tmp_path / "out"), "--no-browser"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {re.sub(r"_\d+\.\w+$", "", name) for _, _, names in os.walk(tmp_path) for name in names}
    assert {"dynamo_output_graph", "dynamo_guards", "compilation_metrics",
            "dynamo_graph_break_reason"} <= names  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_trace_closes_no_sizes(backend):
    """Examples for the text of a graph are made by torch, which decides about sizes meanwhile."""

    def f(x):
        return x.view(-1) * 2

    fast = stator.compile(f, backend=backend)
    handler = logging.NullHandler()
    private.trace_log.addHandler(handler)
    try:
        for n in (4, 6, 8, 10):
            x = torch.ones(2 * n, 3)[:n]
            assert torch.equal(fast(x), f(x))
    finally:
        private.trace_log.removeHandler(handler)
    assert fast.metrics["entries"] == 2


# -- metrics --


def test_metrics_of_each_compile():
    stator.install()
    torch._dynamo.reset()
    utils.clear_compilation_metrics()
    fast = torch.compile(broken, backend="aot_eager", dynamic=False)
    fast(torch.ones(3))
    fast(torch.ones(4))
    metrics = utils.get_compilation_metrics()
    assert [m.compile_id for m in metrics] == ["0/0", "1/0", "0/1", "1/1"]
    assert {m.co_name for m in metrics} == {"broken"}
    assert [m.graph_op_count for m in metrics] == [1, 1, 1, 1]
    assert all(m.fail_type is None and m.has_guarded_code for m in metrics)
    assert all(m.entire_frame_compile_time_s >= m.backend_compile_time_s > 0 for m in metrics)
    assert "size" in metrics[2].recompile_reason and metrics[0].recompile_reason is None
    assert metrics[0].cuda_version is None  # a field that was not set has its default


def test_a_backend_that_fails_has_metrics():
    def backend(module, examples):
        raise ValueError("no such machine")

    stator.install()
    utils.clear_compilation_metrics()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(straight, backend=backend)(torch.ones(3))
    (metrics,) = utils.get_compilation_metrics()
    assert metrics.fail_type == "BackendCompilerFailed" and "no such" in metrics.fail_reason


def test_an_inner_compile_has_its_own_id():
    """A backend may itself call what is compiled."""
    stator.install()
    torch._dynamo.reset()
    seen = []

    def inner(module, examples):
        seen.append(("inner", str(torch._guards.CompileContext.current_compile_id())))
        return module.forward

    def outer(module, examples):
        before = str(torch._guards.CompileContext.current_compile_id())
        torch.compile(straight, backend=inner)(torch.ones(3))
        seen.append(("outer", before, str(torch._guards.CompileContext.current_compile_id())))
        return module.forward

    torch.compile(writing, backend=outer)(torch.ones(3))
    assert seen[-1] == ("outer", "0/0", "0/0")
    assert seen[:-1] in ([("inner", "1/0")], [])
    ids = [m.compile_id for m in utils.get_compilation_metrics()]
    assert ids[-1] == "0/0"


def test_times_of_phases():
    stator.install()
    utils.compilation_time_metrics.clear()
    torch.compile(straight, backend="aot_eager")(torch.ones(3))
    times = utils.compilation_time_metrics
    (whole,), (backend,) = times["_compile.compile_inner"], times["OutputGraph.call_user_compiler"]
    assert whole >= backend > 0
