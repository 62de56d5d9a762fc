# ruff: noqa: E402
"""Lines F1 to F21: which frames are compiled, and what becomes of those that are not."""

import collections
import inspect
import logging
import operator
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import callback, config, convert_frame, exc
from torch._dynamo.utils import counters
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

import stator
from tests.spec.helpers import Recorder, assert_same, both, breaks, check, decided, logged, value


@torch.compiler.disable(recursive=False)
def plainly(function, *args):
    """Runs in Python; what it calls may be compiled."""
    return function(*args)


def through(function, *args):
    """The backend after `function` was called from Python code that is itself not compiled."""
    backend = Recorder()
    fast = torch.compile(lambda *given: plainly(function, *given), backend=backend)
    assert_same(fast(*args), function(*args))
    return backend


# -- F1 --


def test_F1_a_frame_that_has_begun_is_left_alone():
    def steps(x):
        y = x + 1
        yield y
        yield y * 2

    begun = steps(value())
    next(begun)
    backend = Recorder()
    got = torch.compile(lambda g: next(g), backend=backend)(begun)
    assert_same(got, (value() + 1) * 2)
    assert backend.operations == []


def test_F1_a_running_function_is_compiled_from_its_next_call_on():
    backend = Recorder()

    def program(x, deep):
        if deep:
            y = x * 3  # this frame runs already when the function is compiled
            return y + torch.compile(program, backend=backend)(x, False)
        return x + 1

    assert_same(program(value(), True), value() * 3 + (value() + 1))
    assert len(backend.operations) == 1


# -- F2 --


@both
def test_F2_the_global_switch():
    backend = Recorder()
    fast = torch.compile(lambda x: x + 1, backend=backend)
    with config.patch(disable=True):
        assert_same(fast(value()), value() + 1)
    assert backend.graphs == []
    torch._dynamo.reset()
    fast(value())
    assert len(backend.graphs) == 1


@both
def test_F2_skipped_code_runs_as_it_is():
    def skipped(x):
        return inner(x) * 2

    def inner(x):
        return x + 1

    backend = Recorder()
    fast = torch.compile(torch._dynamo.decorators.skip(skipped), backend=backend)
    assert_same(fast(value()), (value() + 1) * 2)
    assert len(backend.operations) <= 1  # that of `inner`


@both
def test_F2_a_debug_log_names_what_was_skipped():
    def left_alone(x):
        return x + 1

    with logged(dynamo=logging.DEBUG) as texts, config.patch(disable=True):
        torch.compile(left_alone, backend=Recorder())(value())
    assert any("skipping: left_alone" in text for text in texts)


# -- F3, F4 --

Pair = collections.namedtuple("Pair", "left right")


@both
def test_F3_making_a_namedtuple_compiles_no_frame_of_its_own():
    def program(x):
        first = Pair(x + 1, 2)
        torch._dynamo.graph_break()
        second = Pair(first.left * 2, first)
        return second

    backend = check(program, value(), whole=False)
    assert len(backend.graphs) == 2
    assert through(lambda x: Pair(x, x), value()).graphs == []


@both
def test_F4_compiled_in_compiled_is_one_graph():
    inner_backend, backend = Recorder(), Recorder()
    inner = torch.compile(lambda x: x + 1, backend=inner_backend)
    got = torch.compile(lambda x: inner(x) * 2, backend=backend)(value())
    assert_same(got, (value() + 1) * 2)
    assert (len(backend.operations), len(inner_backend.graphs)) == (2, 0)


@both
def test_F4_what_a_backend_returns_is_not_compiled():
    backend = Recorder()

    def again(module, examples):
        backend(module, examples)

        def run(*args):
            extra = torch.zeros(1) + args[0].sum()
            return [module(*args)[0] + extra * 0]

        return run

    fast = torch.compile(lambda x: x + 1, backend=again)
    for _ in range(2):
        assert_same(fast(value()), value() + 1)
    assert len(backend.graphs) == 1


# -- F5 --

Holder = collections.namedtuple("Holder", "tensor")


@both
@pytest.mark.parametrize(
    "wrap", [lambda t: t, lambda t: [t], lambda t: (t,), lambda t: {"k": t}, Holder]
)
def test_F5_frames_with_a_tensor_in_sight_are_compiled(wrap):
    def helper(held):
        found = (
            held
            if isinstance(held, torch.Tensor)
            else next(iter(getattr(held, "values", held.__iter__)()))
        )
        return found + 1

    assert len(through(helper, wrap(value())).operations) == 1


def test_F5_frames_with_nothing_of_torch_are_not():
    def helper(a, b):
        return a + b

    frames = []
    for function in (helper, operator.add):  # a frame, and none
        through(function, 1, 2)
        frames.append(counters["frames"]["ok"])
        torch._dynamo.reset()
        counters.clear()
    assert frames[0] == frames[1]


def _call_module(m):
    return m.weight + 1


def _nested(d):
    return d["k"][0] + 1


def _names_torch(n):
    return torch.ones(n)


FAR = [
    (_call_module, lambda: torch.nn.Linear(2, 2)),
    (_nested, lambda: {"k": [value()]}),
    (_names_torch, lambda: 3),
]


@both
@pytest.mark.parametrize("helper, make", FAR)
def test_F5_modules_nested_tensors_and_torch_itself_make_a_frame_worth_compiling(helper, make):
    assert len(through(helper, make()).operations) == 1


# -- F6 --


@both
def test_F6_a_module_body_is_not_compiled():
    def program(x):
        space = {"x": x}
        exec("import torch\ny = torch.add(x, 1)", space)
        return space["y"] * 2

    backend = check(program, value(), whole=False)
    assert torch.add not in backend.operations


@both
def test_F6_internals_of_libraries_are_not_compiled():
    def program(x):
        optimizer = torch.optim.SGD([torch.nn.Parameter(x.clone())], lr=0.5)
        return x + optimizer.param_groups[0]["lr"]

    check(program, value(), whole=False)


@both
def test_F6_only_functions_of_the_wanted_name_are_compiled(monkeypatch):
    def wanted(x):
        return x + 1

    def other(x):
        return x * 2

    monkeypatch.setenv("TORCHDYNAMO_DEBUG_FUNCTION", "wanted")
    backend = Recorder()
    for function in (wanted, other):
        assert_same(torch.compile(function, backend=backend)(value()), function(value()))
    assert len(backend.graphs) == 1


# -- F7 --


def _callee(x):
    return x + 1


def _yields(x):
    yield _callee(x)
    yield _callee(x * 2)


async def _awaits(x):
    return _callee(x)


def _finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value


# Without stock: its compiled generators and coroutines can crash the process (torch 2.13).
def test_F7_generators_and_coroutines_run_in_python():
    for function, end in ((_yields, list), (_awaits, _finish)):
        fast = torch.compile(function, backend=Recorder())
        for _ in range(2):
            assert_same(end(fast(value())), end(function(value())))


def _compiled_in(function, end):
    backend = Recorder()
    end(torch.compile(function, backend=backend)(value()))
    return len(backend.graphs)


@decided("What a compiled coroutine calls is not compiled.", stock=False)
def test_F7_what_a_coroutine_calls_is_compiled():
    assert _compiled_in(_awaits, _finish) == 1


@decided("What a compiled generator calls is not compiled.", stock=False)
def test_F7_what_a_generator_calls_is_compiled():
    assert _compiled_in(_yields, list) >= 1


# -- F8 --


@both
def test_F8_no_operation_no_backend():
    backend = Recorder()
    fast = torch.compile(lambda x, n: (x, n + 1, [x]), backend=backend)
    got = fast(value(), 1)
    assert_same(got, (value(), 2, [value()]))
    assert backend.graphs == []


@both
def test_F8_effects_without_an_operation_happen():
    def program(x, items):
        items.append(x)
        return len(items)

    assert check(program, value(), []).graphs == []


# -- F9, F10 --


def _sizes(count):
    return [torch.ones(n + 2) for n in range(count)]


@both
@pytest.mark.parametrize("name", ["recompile_limit", "accumulated_recompile_limit"])
def test_F9_over_the_limit_python_runs_and_one_warning_says_so(name, caplog):
    def limited(x):
        return x + 1

    backend = Recorder()
    fast = torch.compile(limited, backend=backend, dynamic=False)
    with config.patch({name: 2}), caplog.at_level(logging.WARNING, "torch._dynamo"):
        for x in _sizes(5):
            assert_same(fast(x), x + 1)
    assert len(backend.graphs) == 2
    said = [r.getMessage() for r in caplog.records if "limit" in r.getMessage()]
    assert len(said) == 1
    for word in (f"{name} (2)", "limited", "last reason", "size"):
        assert word in said[0]


def test_F9_stators_own_compile_has_a_limit_and_says_so():
    fast = stator.compile(lambda x: x + 1, backend="eager", dynamic=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for x in _sizes(12):
            assert_same(fast(x), x + 1)
    assert fast.metrics["entries"] == 8
    assert ["limit" in str(w.message) and "size" in str(w.message) for w in said] == [True]


@both
def test_F10_a_scope_lifts_the_limits():
    backend = Recorder()
    fast = torch.compile(lambda x: x + 1, backend=backend, dynamic=False)
    with config.patch(recompile_limit=1, accumulated_recompile_limit=1):
        with torch._dynamo.utils.disable_cache_limit():
            for x in _sizes(5):
                fast(x)
    assert len(backend.graphs) == 5


# -- F11 --


@both
def test_F11_a_backend_may_compile_and_holds_the_lock():
    inner = Recorder()
    held = []

    def backend(module, examples):
        def other():
            held.append(not convert_frame.compile_lock.acquire(blocking=False))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert_same(torch.compile(lambda x: x * 2, backend=inner)(value()), value() * 2)
        return module.forward

    fast = torch.compile(lambda x: x + 1, backend=backend)
    assert_same(fast(value()), value() + 1)
    assert held == [True]


def test_F11_threads_compile_one_after_another():
    inside, most = 0, 0
    start = threading.Barrier(4)

    def backend(module, examples):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.01)
        inside -= 1
        return module.forward

    results = [None] * 4

    def work(i):
        start.wait()
        results[i] = torch.compile(lambda x: x + i, backend=backend)(value())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    for i, result in enumerate(results):
        assert_same(result, value() + i)


@both
def test_F11_dispatch_modes_are_off_while_compiling():
    seen = []

    class Mode(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            type(self).calls += 1
            return function(*args, **(kwargs or {}))

    def backend(module, examples):
        seen.append(_get_current_dispatch_mode())
        return module.forward

    with Mode():
        got = torch.compile(lambda x: x + 1, backend=backend)(value())
    assert_same(got, value() + 1)
    assert [mode for mode in seen if mode is not None] == []


# -- F12, F13 --


@both
def test_F12_what_cannot_be_traced_runs_in_python(capsys):
    def program(x):
        y = x + 1
        print("seen")
        return y * 2

    fast = torch.compile(program, backend=Recorder())
    assert_same(fast(value()), (value() + 1) * 2)
    assert capsys.readouterr().out == "seen\n"
    assert len(breaks()) == 1


def _broken(module, examples):
    raise ValueError("no such machine")


@both
def test_F12_other_errors_are_raised():
    with pytest.raises(exc.BackendCompilerFailed, match="no such machine"):
        torch.compile(lambda x: x + 1, backend=_broken)(value())


@both
def test_F12_or_only_told_if_errors_are_suppressed(caplog):
    with config.patch(suppress_errors=True), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        got = torch.compile(lambda x: x + 1, backend=_broken)(value())
    assert_same(got, value() + 1)
    texts = [str(w.message) for w in said] + [r.getMessage() for r in caplog.records]
    assert any("no such machine" in text for text in texts)


def _refused(x):
    print("no")
    return x


KNOWN = [
    (_refused, Recorder, exc.Unsupported),
    (lambda x: x + 1, lambda: _broken, exc.BackendCompilerFailed),
]


@both
@pytest.mark.parametrize("function, backend, kind", KNOWN, ids=["break", "backend"])
def test_F13_known_errors_keep_their_type(function, backend, kind):
    with pytest.raises(kind) as raised:
        torch.compile(function, backend=backend(), fullgraph=True)(value())
    if kind is exc.BackendCompilerFailed:
        assert isinstance(raised.value.inner_exception, ValueError)


@both
def test_F13_the_error_has_the_users_stack():
    with pytest.raises(exc.Unsupported) as raised:
        torch.compile(_refused, backend=Recorder(), fullgraph=True)(value())
    assert [frame.name for frame in raised.value.real_stack][-1] == "_refused"


@both
def test_F13_the_error_has_the_compile_id():
    with pytest.raises(exc.BackendCompilerFailed) as raised:
        torch.compile(lambda x: x + 1, backend=_broken)(value())
    assert raised.value.compile_id is not None


# -- F14 to F16 --


def test_F14_restarts_come_to_an_end():
    def program(x):
        total = x
        for i in range(120):
            # Native code lies between: each break is found in a trace that is then done again.
            total = total + sorted([2, 1], key=lambda v: len(str(print(end=""))) + v)[0]
        return total

    fast = torch.compile(program, backend="eager")
    assert_same(fast(value()), program(value()))
    assert 0 < fast.metrics["restarts"] <= 240


@both
@pytest.mark.parametrize(
    "transform", [torch.func.vmap, lambda f: torch.func.grad(lambda x: f(x).sum())]
)
def test_F15_in_a_live_transform_the_result_is_right(transform):
    def program(x):
        return x.sin() * 2

    fast = torch.compile(program, backend="eager")
    assert_same(transform(fast)(value(2, 2)), transform(program)(value(2, 2)))


@both
def test_F15_the_reason_names_the_transform():
    fast = torch.compile(lambda x: x.sin(), backend="aot_eager", fullgraph=True)
    with pytest.raises(exc.Unsupported, match=r"vmap"):
        torch.func.vmap(fast)(value(2, 2))


@both
def test_F16_random_numbers_inside_vmap():
    def program(x):
        return x + torch.rand_like(x)

    def run(function):
        torch.manual_seed(3)
        return torch.func.vmap(function, randomness="different")(torch.zeros(4, 2))

    assert_same(run(torch.compile(program, backend="eager")), run(program))


# -- F17, F18 --


@both
@pytest.mark.parametrize("fails", [False, True])
def test_F17_callbacks_around_each_compile(fails):
    events = []
    start = callback.on_compile_start(lambda args: events.append("start"))
    end = callback.on_compile_end(lambda args: events.append("end"))
    try:
        fast = torch.compile(lambda x: x + 1, backend=_broken if fails else Recorder())
        if fails:
            with pytest.raises(exc.BackendCompilerFailed):
                fast(value())
        else:
            fast(value())
            fast(value())
        assert events == ["start", "end"]
    finally:
        callback.callback_handler.remove_start_callback(start)
        callback.callback_handler.remove_end_callback(end)


def _ids():
    seen = []

    def backend(module, examples):
        seen.append(torch._guards.CompileContext.current_compile_id())
        return module.forward

    first = torch.compile(lambda x: x + 1, backend=backend, dynamic=False)
    second = torch.compile(lambda x: x * 2, backend=backend, dynamic=False)
    for x in _sizes(2):
        first(x)
        second(x)
    return seen


@both
def test_F18_each_compile_has_its_own_id():
    seen = _ids()
    assert None not in seen
    assert len(set(seen)) == 4


@both
def test_F18_a_frame_keeps_its_number_and_counts_its_compiles():
    a, b, c, d = _ids()
    assert (a.frame_id, b.frame_id) == (c.frame_id, d.frame_id)
    assert a.frame_id != b.frame_id
    assert [i.frame_compile_id for i in (a, b, c, d)] == [0, 0, 1, 1]


# -- F19, F20: no bytecode is made here --


def test_F19_what_a_function_was_compiled_to_can_be_read():
    def program(x, items):
        items.append(x + 1)
        return items[0]

    (entry,) = stator.explain(program)(value(), []).entries
    assert entry.name.endswith("program")
    assert "return" in entry.plan
    assert entry.operations == 1


def test_F19_a_hook_on_bytecode_can_be_put_on_and_taken_off():
    handle = convert_frame.register_bytecode_hook(lambda old, new: None)
    count = len(convert_frame._bytecode_hooks)
    handle.remove()
    assert len(convert_frame._bytecode_hooks) == count - 1


@both
def test_F19_registering_such_a_hook_is_not_without_any_sign():
    seen = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        handle = convert_frame.register_bytecode_hook(lambda old, new: seen.append(old))
        try:
            torch.compile(lambda x: x + 1, backend="eager")(value())
        finally:
            handle.remove()
    assert seen or any("bytecode" in str(w.message) for w in said)


def test_F20_names_of_arguments_and_variables_are_kept():
    offset = 2

    def program(first, *rest, scale=1, **others):
        made = first + offset
        torch._dynamo.graph_break()
        return made * scale, sorted(locals())

    fast = torch.compile(program, backend="eager")
    assert inspect.signature(fast) == inspect.signature(program)
    assert fast.__code__.co_freevars == program.__code__.co_freevars == ("offset",)
    assert_same(fast(value(), 1, scale=3, z=1), program(value(), 1, scale=3, z=1))


# -- F21 --


@both
def test_F21_supported_devices():
    from torch._dynamo.utils import is_compile_supported
    from torch.utils._triton import has_triton

    assert torch._dynamo.is_dynamo_supported()
    assert is_compile_supported("cpu")
    assert bool(is_compile_supported("cuda")) == bool(has_triton())
    assert not is_compile_supported("meta")
