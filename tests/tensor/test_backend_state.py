# ruff: noqa: E402
"""What a backend does to torch's state, and to generators of random numbers, while it compiles does
not reach the program: whether it makes a callable or fails."""

import contextlib
import random
import sys

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as fa
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import stator
from stator import _engine, _torch
from tests.tensor.helpers import assert_same, same_precisions
from tests.tensor.test_state_table import SETTINGS

_torch.attach()

C = torch._C
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def usual_state():
    with same_precisions():
        yield
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


class Backend:
    def __init__(self, does, fails):
        self.does, self.fails, self.kept = does, fails, []

    def __call__(self, graph, examples):
        self.kept.append(self.does())  # a context that is entered stays alive
        if self.fails:
            raise ValueError("no")
        return graph.forward


def f(x):
    return x * 2


def compile_with(does, fails):
    backend = Backend(does, fails)
    fast = stator.compile(f, backend=backend)
    with pytest.raises(Exception, match="no") if fails else contextlib.nullcontext():
        assert_same(fast(torch.ones(3)), torch.full((3,), 2.0))
    assert len(backend.kept) == 1
    return fast, backend


# -- settings --

# Python's own variables in torch's modules: a backend that sets them means it.
VARIABLES = {
    "printing",
    "attention's fast path",
    "sparse invariants",
    *(name for name in SETTINGS if "benchmark_limit" in name or "checkpoint" in name),
    *(name for name in SETTINGS if name.startswith("get_") and hasattr(torch.__future__, name)),
    *(name for name in SETTINGS if hasattr(torch.serialization, name)),
    # of functorch's, which asks for them only in transforms
    *(name for name in SETTINGS if hasattr(C._functorch, name)),
}


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in VARIABLES])
def test_settings_stay(name, fails):
    get, put, values = SETTINGS[name]
    try:
        put(values[-1])
    except RuntimeError as error:
        pytest.skip(f"not on this machine: {error}")
    for before, value in ((values[0], values[-1]), (values[-1], values[0])):
        put(before)
        was = get()
        compile_with(lambda: put(value), fails)  # noqa: B023
        assert get() == was
    put(values[0])


# -- contexts --


class Functions(TorchFunctionMode):
    pass


class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


CONTEXTS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast twice": lambda: torch.autocast("cpu", dtype=torch.float16),
    "device": lambda: torch.device("meta"),
    "function mode": Functions,
    "dispatch mode": Operations,
    "fake mode": lambda: torch._subclasses.FakeTensorMode(),
    "saved-tensor hooks": lambda: torch.autograd.graph.saved_tensors_hooks(list, list),
    "dual level": fa.dual_level,
    "anomaly": torch.autograd.detect_anomaly,
    "kernels": lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
}


def contexts_now():
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        _engine.torch_autocast_depth(),
        torch.get_default_device(),
        C._len_torch_function_stack(),
        C._len_torch_dispatch_stack(),
        C._autograd._top_saved_tensors_default_hooks(False),
        fa._current_level,
        torch.is_anomaly_enabled(),
        C._get_flash_sdp_enabled(),
        C._dispatch_tls_local_include_set().raw_repr(),
        C._dispatch_tls_local_exclude_set().raw_repr(),
    )


def enter(make):
    context = make()
    context.__enter__()
    return context


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_are_left(name, fails):
    before = contexts_now()
    compile_with(lambda: enter(CONTEXTS[name]), fails)
    assert contexts_now() == before
    C._exit_dual_level(C._enter_dual_level())  # raises if one is on
    y = f(torch.ones(2, requires_grad=True))
    assert y.requires_grad and not y.is_inference()


def test_modes_that_were_on_stay_on():
    with torch.device("cpu"), torch.no_grad(), torch.autocast("cpu"):
        before = contexts_now()
        compile_with(lambda: (torch.set_default_device("meta"), enter(torch.enable_grad)), False)
        assert contexts_now() == before


def test_inference_mode_around_stays_on():
    with torch.inference_mode():
        before = contexts_now()
        compile_with(lambda: enter(lambda: torch.inference_mode(False)), False)
        assert contexts_now() == before
        assert torch.ones(1).is_inference()
    assert not torch.is_inference_mode_enabled()
    assert not torch.ones(1).is_inference()


def test_what_the_backend_leaves_later_changes_nothing():
    """Its context goes when it likes."""
    before = contexts_now()
    _, backend = compile_with(lambda: enter(torch.inference_mode), False)
    backend.kept.pop().__exit__(None, None, None)
    assert contexts_now() == before


# -- random numbers --


def draws_of_numpy():
    return sys.modules["numpy"].random.rand()


DRAWS = {
    "torch": lambda: torch.rand(3),
    "seed": lambda: torch.manual_seed(99),
    "random": random.random,
    "seed of random": lambda: random.seed(99),
    "graph": lambda: torch.nn.functional.dropout(torch.ones(9)),
}
if "numpy" in sys.modules:
    DRAWS["numpy"] = draws_of_numpy


def numbers():
    drawn = [torch.rand(2).tolist(), random.random()]
    if "numpy" in sys.modules:
        drawn.append(draws_of_numpy())
    return drawn


def seed_all():
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_the_programs(name, fails):
    seed_all()
    want = numbers()
    seed_all()
    compile_with(DRAWS[name], fails)
    assert numbers() == want


def test_a_graph_draws_what_eager_draws():
    def g(x):
        y = x + torch.rand(3)
        print(end="")  # break
        return y, torch.rand(3), random.random()

    seed_all()
    want = g(torch.ones(3))
    fast = stator.compile(g, backend=Backend(lambda: (torch.rand(5), random.random()), False))
    for _ in range(2):
        seed_all()
        assert_same(fast(torch.ones(3)), want)
