# ruff: noqa: E402
"""Everything in the namespace `torch.compiler`, with Stator installed: it works, or says why not."""

import logging
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
import torch.compiler

import stator
from stator import _dims
from tests.tensor.helpers import Recorder


@pytest.fixture(autouse=True)
def installed():
    stator.install()
    torch._dynamo.reset()
    _dims._said.clear()
    yield
    stator.uninstall()
    torch._dynamo.reset()
    _dims._said.clear()


def double(x):
    return x + x


def which(x):
    """Tells how it was run."""
    return x + 1 if torch.compiler.is_compiling() else x - 1


ONE = torch.ones(1)

TESTED = set()


def about(*names):
    """What a test is about: names of torch.compiler."""
    TESTED.update(names)
    absent = [name for name in names if not hasattr(torch.compiler, name)]
    return pytest.mark.skipif(bool(absent), reason=f"this torch has no {', '.join(absent)}")


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "stator"]


@about("compile", "reset")
def test_compile_and_reset():
    backend = Recorder()
    fast = torch.compiler.compile(double, backend=backend)
    assert fast(ONE) == 2 and len(backend.graphs) == 1
    torch.compiler.reset()
    assert fast(ONE) == 2 and len(backend.graphs) == 2


@about("config")
def test_config_names_sizes_that_are_left_open():
    backend = Recorder()
    with torch.compiler.config.patch(dynamic_sources="L['x']"):
        fast = torch.compile(double, backend=backend)
        fast(torch.ones(3))
        fast(torch.ones(4))
    assert len(backend.graphs) == 1


@about("assume_constant_result")
def test_assume_constant_result():
    calls = []

    @torch.compiler.assume_constant_result
    def number():
        calls.append(1)
        return 2

    fast = torch.compile(lambda x: x + number(), backend="eager", fullgraph=True)
    assert fast(ONE) == 3 and fast(ONE) == 3
    assert len(calls) == 1


@about("allow_in_graph")
def test_allow_in_graph():
    def opaque(x):
        return x * 3

    torch.compiler.allow_in_graph(opaque)
    backend = Recorder()
    assert torch.compile(lambda x: opaque(x) + 1, backend=backend, fullgraph=True)(ONE) == 4
    assert any(node.target is opaque for node in backend.graphs[0].graph.nodes)


@about("nonstrict_trace")
def test_nonstrict_trace():
    opaque = torch.compiler.nonstrict_trace(lambda x: x * 3)
    assert torch.compile(lambda x: opaque(x) + 1, backend="eager", fullgraph=True)(ONE) == 4


@about("substitute_in_graph")
def test_substitute_in_graph():
    import operator

    @torch.compiler.substitute_in_graph(operator.length_hint, can_constant_fold_through=True)
    def length_hint(obj, default=0, /):
        return 7

    class Odd:
        pass

    fast = torch.compile(lambda x, o: x + length_hint(o, 5), backend="eager", fullgraph=True)
    assert fast(ONE, Odd()) == 8


@about("list_backends", "set_default_backend", "get_default_backend")
def test_the_default_backend():
    assert "inductor" in torch.compiler.list_backends()
    backend = Recorder()
    before = torch.compiler.get_default_backend()
    torch.compiler.set_default_backend(backend)
    try:
        torch.compile(double)(ONE)
        stator.compile(double)(ONE)
    finally:
        torch.compiler.set_default_backend(before)
    assert len(backend.graphs) == 2


@about("disable")
def test_disable():
    @torch.compiler.disable(reason="a test")
    def apart(x):
        return which(x)

    assert torch.compile(lambda x: apart(x) * 2, backend="eager")(ONE) == 0


# -- stances --


# Answers to a call that an entry fits, to the same again, and to one that no entry fits.
STANCES = {
    "default": (2, 2, 2),
    "force_eager": (0, 0, 0),
    "eager_on_recompile": (2, 2, 0),
    "fail_on_recompile": (2, 2, RuntimeError),
    "eager_then_compile": (2, 2, 0),
    "aot_eager_then_compile": (2, 2, 2),
}


@about("set_stance")
@pytest.mark.parametrize("stance", STANCES)
def test_stances_once_something_is_compiled(stance):
    first, second, other = STANCES[stance]
    fast = torch.compile(which, backend="eager", dynamic=False)
    assert fast(ONE) == 2
    with torch.compiler.set_stance(stance):
        assert fast(ONE) == first and fast(ONE) == second
        if other is RuntimeError:
            with pytest.raises(RuntimeError, match="fail_on_recompile"):
                fast(ONE.double())
        else:
            assert fast(ONE.double()) == other
    assert fast(ONE) == 2


@about("set_stance")
def test_first_by_aot_eager_then_by_its_own_backend():
    backend = Recorder()
    calls = []
    theirs = torch._dynamo.lookup_backend("aot_eager")

    def spy(module, examples):
        calls.append(module)
        return theirs(module, examples)

    spy._tags = ()
    fast = torch.compile(which, backend=backend)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(torch._dynamo.backends.registry._COMPILER_FNS, "aot_eager", spy)
        with torch.compiler.set_stance("aot_eager_then_compile"):
            assert fast(ONE) == 2
            assert (len(calls), len(backend.graphs)) == (1, 0)
            assert fast(ONE) == 2
            assert (len(calls), len(backend.graphs)) == (1, 1)
    assert fast(ONE) == 2
    assert (len(calls), len(backend.graphs)) == (1, 1)


@about("set_stance")
def test_a_forced_backend_keeps_the_other_settings():
    def broken(x):
        print(end="")
        return x + 1

    fast = torch.compile(broken, backend=Recorder(), fullgraph=True)
    with torch.compiler.set_stance(force_backend="eager"):
        with pytest.raises(torch._dynamo.exc.Unsupported):
            fast(ONE)


@about("set_stance")
def test_no_stance_skips_guards(caplog):
    fast = torch.compile(lambda x, n: x + n, backend="eager", dynamic=False)
    fast(ONE, 1)
    for _ in range(2):
        with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
            assert fast(ONE, 2) == 3
    (text,) = said(caplog)
    assert "skip_guard_eval_unsafe" in text


# -- guards --

FILTERS = (
    "keep_portable_guards_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "keep_tensor_guards_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_all_guards_unsafe",
)


@about(*FILTERS)
@pytest.mark.parametrize("compile", [torch.compile, stator.compile])
@pytest.mark.parametrize("name", FILTERS)
def test_filters_drop_no_guard_and_say_so(name, compile, caplog):
    options = {"guard_filter_fn": getattr(torch.compiler, name)}
    fast = compile(lambda x, n: x + n, backend="eager", dynamic=False, options=options)
    assert fast(ONE, 1) == 2 and fast(ONE, 2) == 3
    (text,) = said(caplog)
    assert text.startswith("guard_filter_fn drops no guard")


@about("set_enable_guard_collectives")
def test_guard_collectives_say_that_they_have_no_effect(caplog):
    try:
        torch.compiler.set_enable_guard_collectives(True)
        (text,) = said(caplog)
        assert "set_enable_guard_collectives has no effect" in text
    finally:
        torch.compiler.set_enable_guard_collectives(False)


# -- saving --


@about("load_compiled_function")
@pytest.mark.skipif(
    not hasattr(torch._dynamo.config, "enable_aot_compile"), reason="an older torch"
)
def test_what_can_be_saved_is_torch_s_own(caplog, tmp_path):
    with torch._dynamo.config.patch(enable_aot_compile=True):
        fast = torch.compile(saved, fullgraph=True, backend="inductor")
        made = fast.aot_compile(((ONE,), {}))
        assert made(ONE) == 4
        (text,) = said(caplog)
        assert text.startswith("aot_compile makes")
        path = str(tmp_path / "saved")
        made.save_compiled_function(path)
        with open(path, "rb") as file:
            assert torch.compiler.load_compiled_function(file)(ONE) == 4
        with pytest.raises(RuntimeError, match="fullgraph"):
            torch.compile(saved, backend="eager").aot_compile(((ONE,), {}))


def saved(x):
    return x + 3


@about("save_cache_artifacts", "load_cache_artifacts")
def test_artifacts_of_the_backend_s_caches():
    torch.compile(lambda x: x.sin() + 3, backend="inductor")(torch.ones(5))
    made = torch.compiler.save_cache_artifacts()
    assert made is None or torch.compiler.load_cache_artifacts(made[0]) is not None


@about("precompile", "PrecompileError")
def test_precompile_is_not_stator_s():
    assert issubclass(torch.compiler.PrecompileError, Exception)


# -- the rest --


@about("cudagraph_mark_step_begin", "cudagraph_mark_warmup_incomplete")
def test_marks_for_cudagraphs():
    marks = [torch.compiler.cudagraph_mark_step_begin]
    if hasattr(torch.compiler, "cudagraph_mark_warmup_incomplete"):
        marks.append(torch.compiler.cudagraph_mark_warmup_incomplete)
    fast = torch.compile(double, backend="eager")
    for mark in marks:
        mark()
        assert fast(ONE) == 2


def test_a_step_begins_for_cudagraphs():
    from torch._inductor import cudagraph_trees

    fast = torch.compile(double, backend="eager")
    before = cudagraph_trees.MarkStepBox.mark_step_counter
    torch.compiler.cudagraph_mark_step_begin()
    assert fast(ONE) == 2
    assert cudagraph_trees.MarkStepBox.mark_step_counter != before


@about("wrap_numpy")
def test_wrap_numpy():
    numpy = pytest.importorskip("numpy")

    @torch.compiler.wrap_numpy
    def add(a):
        return a + 1

    assert (torch.compile(add, backend="eager")(numpy.ones(2)) == 2).all()


@about("is_compiling", "is_dynamo_compiling", "is_exporting")
def test_questions():
    def asks(x):
        if torch.compiler.is_exporting():
            return x * 100
        return which(x) + (10 if torch.compiler.is_dynamo_compiling() else 0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert asks(ONE) == 0
        assert torch.compile(asks, backend="eager")(ONE) == 12


@about("nested_compile_region")
def test_a_region():
    region = torch.compiler.nested_compile_region(lambda x: x + 1)
    assert torch.compile(lambda x: region(x) * 2, backend="eager")(ONE) == 4


def test_callbacks_run_around_each_compile():
    events = []

    def start(*args):
        events.append("start")

    def end(*args):
        events.append("end")

    handler = torch._dynamo.callback.callback_handler
    handler.register_start_callback(start)
    handler.register_end_callback(end)
    try:
        torch.compile(double, backend=Recorder())(ONE)
        assert events == ["start", "end"]
        torch.compile(which, backend="eager")(ONE)
        assert events == ["start", "end"] * 2
    finally:
        handler.remove_start_callback(start)
        handler.remove_end_callback(end)


def test_all_names_have_a_test():
    assert set(torch.compiler.__all__) <= TESTED


def test_what_is_said_is_said_once(caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            options = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
            torch.compile(double, backend="eager", options=options)
    assert len(said(caplog)) == 1
