# ruff: noqa: E402
"""`stator.compile` takes what torch.compile takes, and refuses what that refuses."""

import inspect

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

import stator
from tests.tensor.helpers import Recorder


@pytest.fixture(autouse=True)
def fresh():
    stator.reset()
    yield
    stator.reset()


def double(x):
    return x + x


ONE = torch.ones(3)


def test_every_parameter_of_torch_compile_is_taken():
    theirs = inspect.signature(torch.compile).parameters
    for name, parameter in theirs.items():
        if name != "model":
            stator.compile(double, **{name: parameter.default})
    assert list(theirs)[0] == "model" == list(inspect.signature(stator.compile).parameters)[0]


def test_what_is_no_parameter_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'bakend'"):
        stator.compile(double, bakend="eager")


@pytest.mark.parametrize("name", ["dynamic_shapes", "shapes_spec"])
def test_what_is_not_supported_is_an_error_by_name(name):
    with pytest.raises(NotImplementedError, match=name):
        stator.compile(double, **{name: {"x": {0: 1}}})


REFUSED = [
    ({"mode": "default", "options": {}}, "Either mode or options"),
    ({"mode": "fastest"}, "Unrecognized mode"),
    ({"options": {"no_such_option": 1}}, "Unexpected optimization option"),
    ({"options": {"max_autotune": "yes"}}, "Unexpected type of attr"),
    ({"backend": "no such backend"}, "Invalid backend"),
]


@pytest.mark.parametrize("settings, text", REFUSED, ids=str)
@pytest.mark.parametrize("compile", [stator.compile, torch.compile])
def test_errors_are_torch_s(compile, settings, text):
    with pytest.raises(RuntimeError, match=text):
        compile(double, **settings)


def test_a_decorator_needs_something_to_decorate():
    with pytest.raises(RuntimeError, match="Model can't be None"):
        stator.compile(backend="eager")(None)


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_of_inductor(mode):
    fast = stator.compile(double, mode=mode)
    torch.testing.assert_close(fast(ONE), ONE * 2)


def test_modes_and_options_reach_the_backend():
    given = []

    def backend(module, examples, **settings):
        given.append(settings)
        return module.forward

    stator.compile(double, backend=backend, mode="reduce-overhead")(ONE)
    stator.compile(double, backend=backend, options={"some": 1})(ONE)
    stator.compile(double, backend=backend, mode="default")(ONE)
    assert given == [{"mode": "reduce-overhead"}, {"options": {"some": 1}}, {}]


def test_options_of_inductor_are_used(monkeypatch):
    import torch._inductor.compile_fx as compile_fx

    patches = []
    original = compile_fx.compile_fx

    def spy(*args, config_patches=None, **kwargs):
        patches.append(config_patches)
        return original(*args, config_patches=config_patches, **kwargs)

    monkeypatch.setattr(compile_fx, "compile_fx", spy)
    stator.compile(double, options={"epilogue_fusion": True})(ONE)
    assert patches[0] == {"epilogue_fusion": True}


def test_the_caller_s_options_stay_as_they_are():
    options = {"guard_filter_fn": lambda guards: [True for _ in guards]}
    stator.compile(double, backend="eager", options=options)(ONE)
    assert list(options) == ["guard_filter_fn"]


def test_the_limit_of_one_compile():
    backend = Recorder()
    fast = stator.compile(lambda x, n: x * n, backend=backend, dynamic=False, recompile_limit=2)
    with pytest.warns(RuntimeWarning, match="2 times"):
        for n in range(5):
            assert fast(torch.ones(1), n) == n
    assert len(backend.graphs) == 2


def test_disabled_it_is_the_function_itself():
    assert stator.compile(double, disable=True) is double
    assert stator.compile(disable=True)(double) is double


def test_as_a_decorator_with_parameters():
    backend = Recorder()

    @stator.compile(backend=backend, fullgraph=True, dynamic=True)
    def f(x):
        return x * 2

    f(torch.ones(3)), f(torch.ones(4))
    assert len(backend.graphs) == 1
