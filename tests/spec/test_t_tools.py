# ruff: noqa: E402
"""Lines T1 to T14: logs, counters and other tools."""

import logging
import os
import re
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
import torch._dynamo.testing
from torch._dynamo import config, exc, utils
from torch._dynamo.utils import counters

import stator
from tests.older import skip_stock_before
from tests.spec.helpers import Recorder, assert_same, both, check, logged, missing, value


def program(x):
    y = x + 1
    print(end="")
    return y * 2


def plain(x):
    return x + 1


def run(function=plain, *sizes, backend=None):
    fast = torch.compile(function, backend=backend or Recorder(), dynamic=False)
    for n in sizes or (3,):
        fast(value(n))
    return fast


# -- T1 to T3 --


@both
def test_T1_logs_of_breaks_and_recompiles():
    with logged(graph_breaks=True, recompiles=True) as texts:
        run(program, 3, 4)
    assert any("Graph break" in text and "print" in text for text in texts)
    assert any("Recompiling function program" in text for text in texts)


@both
def test_T1_without_being_asked_nothing_is_logged():
    with logged() as texts:
        run(program, 3, 4)
    assert texts == []


ARTIFACTS = {
    "graph_code": "forward",
    "guards": "L['x']",
    "trace_source": "return x + 1",
    "trace_call": "x + 1",
    "trace_bytecode": "LOAD_FAST",
    "bytecode": "RETURN_VALUE",
}


@both
@pytest.mark.parametrize("name", ARTIFACTS)
def test_T1_other_logs(name):
    with logged(**{name: True}) as texts:
        run()
    assert any(ARTIFACTS[name] in text for text in texts)


def test_T2_file_line_and_the_chain_of_calls():
    def outer(x):
        return program(x) + 1

    with pytest.raises(stator.Unsupported) as raised:
        torch.compile(outer, backend=Recorder(), fullgraph=True)(value())
    text = str(raised.value)
    assert f"test_t_tools.py:{program.__code__.co_firstlineno + 2} in program" in text
    assert f"test_t_tools.py:{outer.__code__.co_firstlineno + 1} in" in text


def test_T2_an_explanation_draws_the_source():
    assert 'print(end="")' in stator.explain(program)(value()).text()


@both
def test_T2_the_source_line_is_marked(engine):
    skip_stock_before(engine, 2, 13)

    def wide(x):
        return [x, print(end=""), x]

    with pytest.raises(exc.Unsupported) as raised:
        torch.compile(wide, backend=Recorder(), fullgraph=True)(value())
    lines = str(raised.value).splitlines()
    (i,) = [i for i, line in enumerate(lines) if line.strip() == 'return [x, print(end=""), x]']
    marked = re.search(r"[~^]+", lines[i + 1])
    assert lines[i][marked.start() :].startswith('print(end="")')
    assert marked.end() - marked.start() >= len('print(end="")')


# Stock knows the names of these two logs, and writes nothing to them.
def test_T3_sizes_of_each_value():
    with logged(graph_sizes=True) as texts:
        run(lambda x: (x + 1).sum())
    assert any("(3,)" in text and "()" in text for text in texts)


def test_T3_a_graph_as_a_table_or_as_code():
    with logged(graph=True) as texts:
        run()
    assert any("placeholder" in text or "forward" in text for text in texts)


def test_T3_an_explanation_shows_graphs_with_sizes():
    text = stator.explain(plain)(value()).text()
    assert "operator.add" in text and "size (3,)" in text


# -- T4, T5 --


@both
def test_T4_a_debug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_COMPILE_DEBUG", "1")
    with config.patch(debug_dir_root=str(tmp_path)):
        run()
        logging.getLogger("torch._dynamo").handlers[:] = [
            handler
            for handler in logging.getLogger("torch._dynamo").handlers
            if not isinstance(handler, logging.FileHandler)
        ]
    found = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert "debug.log" in found


@both
def test_T5_counters():
    run(program, 3)
    assert counters["frames"]["total"] >= counters["frames"]["ok"] >= 2
    assert counters["stats"] == {"calls_captured": 2, "unique_graphs": 2}
    assert sum(counters["graph_break"].values()) == 1


@both
def test_T5_counters_of_testing_backends():
    counter = torch._dynamo.testing.CompileCounter()
    run(plain, 3, 3, 4, backend=counter)
    assert (counter.frame_count, counter.op_count) == (2, 2)


# -- T6 to T9 --


@both
def test_T6_times_of_phases():
    torch._dynamo.utils.compilation_time_metrics.clear()
    run()
    assert "compile" in torch._dynamo.utils.compile_times(repr="str")
    assert torch._dynamo.utils.compile_times(repr="csv", aggregate=True)[0]


@both
def test_T7_metrics_of_each_compile():
    utils.clear_compilation_metrics()
    run(plain, 3, 4)
    metrics = utils.get_compilation_metrics()
    assert [m.co_name for m in metrics] == ["plain", "plain"]
    assert [m.graph_op_count for m in metrics] == [1, 1]


@both
def test_T7_a_failure_has_metrics():
    utils.clear_compilation_metrics()
    with pytest.raises(exc.Unsupported):
        torch.compile(program, backend=Recorder(), fullgraph=True)(value())
    (metrics,) = utils.get_compilation_metrics()
    assert metrics.fail_type == "Unsupported"
    assert metrics.fail_user_frame_lineno == program.__code__.co_firstlineno + 2


@both
def test_T8_a_profile_of_compiling(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with config.patch(cprofile=True):
        run()
    assert any(name.endswith(".profile") for name in os.listdir(tmp_path))


# Stock has the setting, but records nothing today.
def test_T9_values_read_are_recorded_on_error(tmp_path):
    with config.patch(replay_record_enabled=True, debug_dir_root=str(tmp_path)):
        with pytest.raises(exc.TorchDynamoException) as raised:
            torch.compile(program, backend=Recorder(), fullgraph=True)(value())
    assert os.path.exists(raised.value.record_filename)


# -- T10 to T14 --


@both
def test_T10_a_report_of_breaks():
    explained = torch._dynamo.explain(program)(value())
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (2, 1, 2)
    assert "print" in str(explained)


def test_T10_a_report_of_recompiles():
    explain = stator.explain(plain)
    explain(value(3))
    (reason,) = explain(value(4)).recompiles
    assert "L['x']" in reason


@both
def test_T11_comparing_results():
    same = utils.same
    x = value()
    assert same([x, {"k": x}], [x.clone(), {"k": x.clone()}])
    assert not same([x], [x + 1])
    assert same(x, x + 1e-6, tol=1e-4)
    assert not same(x, x.double(), exact_dtype=True)
    fast = run(plain)
    assert same(fast(x), plain(x))


@both
def test_T12_copies_of_inputs():
    x = value(2, 4).t().requires_grad_()
    x.grad = torch.ones_like(x)
    copied = utils.clone_input(x)
    assert copied.stride() == x.stride() and copied.data_ptr() != x.data_ptr()
    assert copied.requires_grad and copied.grad is not x.grad
    assert_same(copied, x.clone(memory_format=torch.preserve_format).detach().requires_grad_())
    assert_same(torch.compile(plain, backend=Recorder())(copied), plain(x))


@both
def test_T13_small_helpers(engine):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        utils.warn_once(f"said once under {engine}")
        utils.warn_once(f"said once under {engine}")
    assert [str(w.message) for w in said] == [f"said once under {engine}"]
    result, seconds = utils.timed(torch.compile(plain, backend=Recorder()), (value(),))
    assert_same(result, value() + 1)
    assert seconds >= 0


@both
def test_T14_there_is_something_to_validate():
    seen = []

    def backend(module, examples):
        env = torch._guards.TracingContext.get().fake_mode.shape_env
        seen.append([str(guard.expr) for guard in env.guards])
        return module.forward

    torch.compile(lambda x: x + 1 if x.shape[0] > 2 else x, backend=backend, dynamic=True)(value(5))
    assert seen[0]
