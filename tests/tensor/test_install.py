# ruff: noqa: E402
"""`stator.install()`: what people do with torch.compile is done by Stator, and undone."""

import copy
import logging
import pickle
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import eval_frame, exc
from torch._dynamo.testing import (
    CompileCounter,
    CompileCounterWithBackend,
    EagerAndRecordGraphs,
)
from torch._dynamo.utils import counters

import stator


@pytest.fixture(autouse=True)
def installed():
    stator.install()
    torch._dynamo.reset()
    counters.clear()
    yield
    stator.uninstall()
    torch._dynamo.reset()


# What torch.compile itself has only had since 2.13.
recent = pytest.mark.skipif(
    not hasattr(torch.compiler, "_compile_session_context"), reason="an older torch"
)


def double(x):
    return x + x


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x).relu()


# -- putting it on and taking it off --

_PATCHED = (
    (eval_frame, "_optimize"),
    (eval_frame, "_optimize_assert"),
    (torch._dynamo, "_reset_guarded_backend_cache"),
    (torch._dynamo.decorators, "_set_stance"),
    (torch._dynamo.decorators, "skip_code"),
)


def test_uninstall_leaves_torch_as_it_was():
    stator.uninstall()
    before = [getattr(home, name) for home, name in _PATCHED]
    stator.install()
    stator.install()
    assert all(getattr(h, n) is not was for (h, n), was in zip(_PATCHED, before, strict=True))
    stator.uninstall()
    stator.uninstall()
    assert [getattr(home, name) for home, name in _PATCHED] == before


_IMPORT_ALONE = """
import stator, torch
assert torch.compile.__module__ == "torch"
import sys
assert "torch._dynamo" not in sys.modules, "stator.compile is not even used yet"
from torch._dynamo import eval_frame
assert eval_frame._optimize.__module__ == "torch._dynamo.eval_frame"
stator.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
assert eval_frame._optimize.__module__ == "torch._dynamo.eval_frame"
"""


def test_importing_and_compiling_patch_nothing():
    subprocess.run([sys.executable, "-c", _IMPORT_ALONE], check=True, timeout=300)


def test_a_function_compiled_by_torch_stays_with_torch():
    stator.uninstall()
    counter = CompileCounter()
    stock = torch.compile(double, backend=counter)
    stator.install()
    torch.testing.assert_close(stock(torch.ones(2)), torch.ones(2) * 2)
    assert counter.frame_count == 1


# -- ways to compile --


def _by_compile(f, counter):
    return torch.compile(f, backend=counter)


def _by_decorator(f, counter):
    return torch.compile(backend=counter, dynamic=False)(f)


def _by_compiler(f, counter):
    return torch.compiler.compile(f, backend=counter)


def _by_optimize(f, counter):
    return torch._dynamo.optimize(counter)(f)


def _by_optimize_whole(f, counter):
    return torch._dynamo.optimize(counter, nopython=True)(f)


def _by_optimize_assert(f, counter):
    return torch._dynamo.optimize_assert(counter)(f)


WAYS = (_by_compile, _by_decorator, _by_compiler, _by_optimize, _by_optimize_whole)


@pytest.mark.parametrize("way", (*WAYS, _by_optimize_assert))
def test_every_way_goes_through_stator(way):
    counter = CompileCounter()
    fast = way(double, counter)
    assert isinstance(fast, stator._engine.Compiled)
    torch.testing.assert_close(fast(torch.ones(3)), torch.ones(3) * 2)
    fast(torch.ones(3))
    assert (counter.frame_count, counter.op_count) == (1, 1)


def test_disabled_compiles_return_the_function():
    assert torch.compile(double, disable=True) is double
    assert torch._dynamo.optimize("eager", disable=True)(double) is double


def test_compiled_functions_are_labelled():
    def options(module, inputs):
        return module.forward

    options.get_compiler_config = lambda: {"level": 3}
    fast = torch._dynamo.optimize(options)(double)
    assert fast._torchdynamo_orig_callable is double
    assert fast._torchdynamo_inline is double
    assert fast.get_compiler_config() == {"level": 3}
    assert fast.__name__ == "double"
    assert eval_frame.innermost_fn(fast) is double
    again = torch.compile(fast, backend="eager")
    assert again._torchdynamo_orig_callable is double


def test_methods_stay_bound():
    net = Net()
    fast = torch.compile(net.forward, backend="eager")
    x = torch.ones(1, 3)
    torch.testing.assert_close(fast(x), net.forward(x))
    assert fast._torchdynamo_orig_callable == net.forward
    assert fast._torchdynamo_orig_callable.__self__ is net


def test_classes_are_compiled_by_their_call():
    counter = CompileCounter()

    @torch.compile(backend=counter)
    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

    assert isinstance(Scale, type)
    torch.testing.assert_close(Scale(2)(torch.ones(2)), torch.ones(2) * 2)
    assert counter.frame_count == 1


@recent
def test_compiles_of_one_function_share_entries():
    counter = CompileCounter()
    for _ in range(3):
        torch.compile(double, backend=counter)(torch.ones(2))
    assert counter.frame_count == 1
    torch.compile(double, backend=counter, isolate_recompiles=True)(torch.ones(2))
    assert counter.frame_count == 2


def test_options_reach_the_backend():
    seen = []

    def backend(module, inputs, *, options=None, **others):
        seen.append(options)
        return module.forward

    torch.compile(double, backend=backend, options={"a": 1})(torch.ones(2))
    assert seen == [{"a": 1}]


def test_nothing_else_is_a_context_manager():
    with pytest.raises(RuntimeError, match="context manager"), torch._dynamo.optimize("eager"):
        pass
    with pytest.raises(AssertionError, match="callable"):
        torch.compile(3, backend="eager")


# -- modules --


def test_modules_are_torch_s_own_wrapper():
    net = Net()
    fast = torch.compile(net, backend="eager")
    assert isinstance(fast, eval_frame.OptimizedModule)
    assert fast._orig_mod is net
    assert list(fast.state_dict()) == ["_orig_mod.linear.weight", "_orig_mod.linear.bias"]
    fast.extra = 3
    assert net.extra == 3
    assert fast.linear is net.linear
    x = torch.ones(2, 3)
    torch.testing.assert_close(fast(x), net(x))
    fast.eval()
    assert not net.training


def test_modules_are_pickled_and_copied():
    net = Net()
    fast = torch.compile(net, backend="eager")
    x = torch.ones(2, 3)
    for other in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast)):
        assert isinstance(other, eval_frame.OptimizedModule)
        assert other._orig_mod is not net
        torch.testing.assert_close(other(x), net(x))


def test_modules_compile_in_place():
    counter, net = CompileCounter(), Net()
    x = torch.ones(2, 3)
    want = net(x)
    net.compile(backend=counter)
    torch.testing.assert_close(net(x), want)
    assert counter.frame_count == 1
    assert type(net) is Net


def test_modules_whose_forward_is_compiled():
    class Compiled(Net):
        forward = torch.compile(Net.forward, backend="eager")

    net = Compiled()
    x = torch.ones(2, 3)
    want = net.linear(x).relu()
    counter = CompileCounter()
    for fast in (net, torch.compile(net, backend=counter)):
        torch.testing.assert_close(fast(x), want)
    assert counter.frame_count == 1


def test_models_that_hold_compiled_functions_are_copied():
    net = Net()
    net.double = torch.compile(double, backend="eager")
    x = torch.ones(2, 3)
    for other in (copy.deepcopy(net), copy.copy(net)):
        assert other.double is net.double
        torch.testing.assert_close(other.double(other(x)), net(x) * 2)


def test_compiled_functions_and_the_tracers_of_torch():
    x = torch.ones(3)
    fast = torch.compile(double, backend="eager")
    assert torch.equal(fast(x), x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        assert torch.equal(torch.jit.script(fast)(x), x * 2)
    with pytest.raises(RuntimeError, match="using FX to trace double"):
        torch.fx.symbolic_trace(fast)
    with torch._dynamo.config.patch(error_on_nested_fx_trace=False):
        traced = torch.fx.symbolic_trace(fast)
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "call_function", "output"]
    assert torch.equal(traced(x), x * 2)


def test_scripted_modules_are_refused():
    scripted = object.__new__(torch.jit._script.RecursiveScriptModule)
    with pytest.raises(RuntimeError, match="torch.jit.script"):
        stator._module.wrap(scripted, lambda f: f)


# -- backends --


def test_backends_of_torch_s_testing():
    x = torch.ones(3)
    recorded = EagerAndRecordGraphs()
    torch.compile(double, backend=recorded)(x)
    assert [node.op for node in recorded.graphs[0].graph.nodes][-1] == "output"
    counting = CompileCounterWithBackend("aot_eager")
    torch.testing.assert_close(torch.compile(double, backend=counting)(x), x * 2)
    assert counting.frame_count == 1
    explained = torch._dynamo.explain(double)(x)
    assert (explained.graph_count, explained.graph_break_count, explained.op_count) == (1, 0, 1)
    explain = torch._dynamo.backends.debugging.ExplainWithBackend("eager")
    torch.compile(double, backend=explain)(x)
    assert explain.output().graph_count == 1


def broken(x):
    y = x + 1
    torch._dynamo.graph_break("here")
    return y * 2


def test_explain_knows_the_breaks():
    explained = torch._dynamo.explain(broken)(torch.ones(2))
    assert (explained.graph_count, explained.graph_break_count) == (2, 1)
    assert "here" in explained.break_reasons[0].reason
    assert explained.break_reasons[0].user_stack[-1].name.endswith("broken")


@recent
def test_is_compiling_while_the_backend_runs():
    seen = []

    def backend(module, inputs):
        seen.append((torch.compiler.is_compiling(), stator.is_compiling()))
        return module.forward

    torch.compile(double, backend=backend)(torch.ones(1))
    assert seen == [(True, True)]
    assert not torch.compiler.is_compiling()
    assert not stator.is_compiling()


def test_callbacks_around_compiles():
    seen = []
    torch._dynamo.on_compile_start(lambda args: seen.append("start"))
    torch._dynamo.on_compile_end(lambda args: seen.append("end"))
    torch.compile(double, backend="eager")(torch.ones(1))
    torch.compile(double, backend=CompileCounter())(torch.ones(1))
    assert seen == ["start", "end"] * 2


# -- counters --


def test_counters():
    fast = torch.compile(broken, backend="eager")
    fast(torch.ones(3))
    fast(torch.ones(3))
    assert counters["frames"]["total"] == counters["frames"]["ok"] == 2
    assert counters["stats"] == {"calls_captured": 2, "unique_graphs": 2}
    assert len(counters["graph_break"]) == 1
    ((text, count),) = counters["graph_break"].items()
    assert count == 1
    assert "here" in text
    assert "[GRAPH_BREAK]" in text


def test_reset_forgets_entries():
    counter = CompileCounter()
    fast = torch.compile(double, backend=counter)
    fast(torch.ones(3))
    torch._dynamo.reset()
    fast(torch.ones(3))
    assert counter.frame_count == 2


def test_reset_resets_backends():
    class Backend(CompileCounter):
        resets = 0

        def reset(self):
            Backend.resets += 1

    torch.compile(double, backend=Backend())(torch.ones(1))
    torch._dynamo.reset()
    assert Backend.resets == 1


# -- settings --


def add(x, n):
    return x + n


def recompile(fast, times):
    for i in range(times):
        torch.testing.assert_close(fast(torch.ones(2), i), torch.ones(2) + i)


def test_the_recompile_limit_is_read_when_it_matters(caplog):
    counter = CompileCounter()
    fast = torch.compile(add, backend=counter, dynamic=False)
    with caplog.at_level(logging.WARNING), torch._dynamo.config.patch(recompile_limit=2):
        recompile(fast, 4)
    assert counter.frame_count == 2
    assert sum("recompile_limit (2)" in record.getMessage() for record in caplog.records) == 1
    recompile(fast, 4)
    assert counter.frame_count == 2  # it was reached, and stays so
    torch._dynamo.reset()
    recompile(fast, 4)
    assert counter.frame_count == 6


@recent
def test_the_limit_of_one_compile():
    counter = CompileCounter()
    recompile(torch.compile(add, backend=counter, recompile_limit=3, dynamic=False), 6)
    assert counter.frame_count == 3


def test_callees_run_plainly_past_the_limit():
    def inner(x):
        return x + 10 if torch.compiler.is_compiling() else x

    def outer(x, n):
        return inner(x + n)

    fast = torch.compile(outer, backend="eager")
    with torch._dynamo.config.patch(recompile_limit=1):
        assert fast(torch.zeros(1), 1) == 11
        assert fast(torch.zeros(1), 2) == 2
        assert fast(torch.zeros(1), 1) == 11


def test_the_limit_is_an_error_where_asked():
    with torch._dynamo.config.patch(cache_size_limit=1, fail_on_recompile_limit_hit=True):
        fast = torch.compile(add, backend="eager")
        with pytest.raises(exc.FailOnRecompileLimitHit, match="fail_on_recompile_limit_hit"):
            recompile(fast, 2)
    with torch._dynamo.config.patch(recompile_limit=1):
        fast = torch.compile(add, backend="eager", fullgraph=True)
        with pytest.raises(exc.FailOnRecompileLimitHit, match="fullgraph"):
            recompile(fast, 2)


def test_error_on_recompile():
    fast = torch.compile(add, backend="eager")
    fast(torch.ones(1), 0)
    with torch._dynamo.config.patch(error_on_recompile=True):
        fast(torch.ones(1), 0)
        with pytest.raises(exc.RecompileError, match="Recompiling function add") as caught:
            fast(torch.ones(1), 1)
    assert "L['n']" in str(caught.value)


def test_guard_fail_fn():
    seen = []
    fast = torch._dynamo.optimize("eager", guard_fail_fn=seen.append)(add)
    recompile(fast, 2)
    assert len(seen) == 1
    assert "L['n']" in seen[0].reason
    assert seen[0].orig_code is add.__code__


def test_config_disable():
    counter = CompileCounter()
    with torch._dynamo.config.patch(disable=True):
        torch.compile(double, backend=counter)(torch.ones(2))
        with pytest.raises(RuntimeError, match="no compiled frames"):
            torch.compile(double, backend=counter, fullgraph=True)(torch.ones(2))
    assert counter.frame_count == 0


# -- errors --


def test_fullgraph_breaks_are_torch_s_unsupported():
    fast = torch.compile(broken, backend="eager", fullgraph=True)
    with pytest.raises(exc.Unsupported, match="here") as caught:
        fast(torch.ones(1))
    assert isinstance(caught.value, stator.Unsupported)
    assert "in broken" in str(caught.value)


def test_what_torch_refuses():
    def f(x, y):
        return x @ y

    x, y = torch.ones(2, 3), torch.ones(2, 3)
    with pytest.raises(exc.TorchRuntimeError, match="matmul|mat1"):
        torch.compile(f, backend="eager", fullgraph=True)(x, y)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
        torch.compile(f, backend="eager")(x, y)


def test_unknown_backends():
    with pytest.raises(exc.InvalidBackend, match="no_such"):
        torch.compile(double, backend="no_such")


def failing(module, inputs):
    raise ValueError("boo")


def test_errors_of_backends_are_wrapped():
    log = []

    def f(x):
        log.append(1)
        return x + 1

    with pytest.raises(exc.BackendCompilerFailed, match="'failing' raised:\nValueError: boo") as e:
        torch.compile(f, backend=failing)(torch.ones(1))
    assert isinstance(e.value.inner_exception, ValueError)
    frames = [entry.name for entry in e.traceback]
    assert "failing" in frames
    assert log == []


def test_suppressed_errors_of_backends():
    log = []

    def f(x):
        log.append(1)
        return x + 1

    fast = torch.compile(f, backend=failing)
    with (
        torch._dynamo.config.patch(suppress_errors=True),
        warnings.catch_warnings(record=True) as w,
    ):
        warnings.simplefilter("always")
        for _ in range(2):
            torch.testing.assert_close(fast(torch.ones(1)), torch.ones(1) + 1)
    assert [str(warning.message) for warning in w if "boo" in str(warning.message)] == [
        str(w[0].message)
    ]
    assert log == [1, 1]


def test_errors_of_the_engine():
    policy = stator._policy.Policy()
    with pytest.raises(exc.InternalTorchDynamoError, match="inner fault") as caught:
        policy.failed(double.__code__, 0, SystemError("inner fault"), "trace")
    assert "double" in str(caught.value)
    assert isinstance(caught.value.__cause__, SystemError)
    with torch._dynamo.config.patch(suppress_errors=True), pytest.warns(RuntimeWarning):
        assert policy.failed(double.__code__, 0, SystemError("inner fault"), "trace")


def test_an_index_error_is_the_user_s_own():
    def backend(module, inputs):
        raise IndexError("mine")

    with pytest.raises(IndexError, match="mine"):
        torch.compile(double, backend=backend)(torch.ones(1))


# -- stances --


def test_stances_of_torch():
    counter = CompileCounter()
    fast = torch.compile(add, backend=counter)
    fast(torch.ones(1), 0)
    with torch.compiler.set_stance("force_eager"):
        recompile(fast, 2)
    with torch.compiler.set_stance("eager_on_recompile"):
        recompile(fast, 2)
    with torch.compiler.set_stance("fail_on_recompile"):
        fast(torch.ones(1), 0)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            fast(torch.ones(1), 1)
    assert counter.frame_count == 1
    fast(torch.ones(1), 1)
    assert counter.frame_count == 2


def test_another_backend_for_a_while():
    counter, other = CompileCounter(), CompileCounter()
    fast = torch.compile(double, backend=counter)
    with torch.compiler.set_stance(force_backend=other):
        fast(torch.ones(1))
        fast(torch.ones(1))
    assert (counter.frame_count, other.frame_count) == (0, 1)
    fast(torch.ones(1))
    assert counter.frame_count == 1


def test_modules_made_inside_need_no_tag(monkeypatch):
    module = torch.nn.Module
    for name in ("__init__", "__setstate__"):
        monkeypatch.setattr(module, name, getattr(module, name))
    monkeypatch.setattr(module, "___needs_generation_tag_patch", True, raising=False)
    torch._dynamo.mutation_guard.install_generation_tagging_init()  # as stock Dynamo does
    layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.Tanh()])

    def f(x):
        for layer in layers[::-1]:
            x = layer(x)
        return x

    x = torch.ones(2, 4)
    assert torch.equal(torch.compile(f, backend="eager", fullgraph=True)(x), f(x))
