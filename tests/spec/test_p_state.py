# ruff: noqa: E402
"""Lines P1 and P2: the state of Python and torch around a compile."""

import random

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

from tests.spec.helpers import Recorder, assert_same, both, value

STATE = {
    "grad": torch.is_grad_enabled,
    "inference": torch.is_inference_mode_enabled,
    "deterministic": torch.are_deterministic_algorithms_enabled,
    "warn_only": torch.is_deterministic_algorithms_warn_only_enabled,
    "python_random": random.getstate,
    "torch_random": lambda: torch.get_rng_state().tolist(),
    "tf32": lambda: torch.backends.cuda.matmul.allow_tf32,
    "dtype": torch.get_default_dtype,
    "autocast": lambda: (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
    "threads": torch.get_num_threads,
}


def state():
    return {name: read() for name, read in STATE.items()}


def changes(before):
    return [name for name, was in before.items() if STATE[name]() != was]


# -- P1 --


@both
def test_P1_tracing_changes_no_state():
    def program(x):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        with torch.inference_mode(), torch.random.fork_rng(devices=[]):
            z = x + 1
        return y

    before = state()
    torch.compile(program, backend=Recorder())(value(2, 2))
    assert changes(before) == []


@both
def test_P1_nor_does_a_trace_that_fails():
    def program(x):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            torch._dynamo.graph_break()
        return y

    before = state()
    with pytest.raises(Exception, match=r"(?i)graph.?break"):
        torch.compile(program, backend=Recorder(), fullgraph=True)(value(2, 2))
    assert changes(before) == []


@both
def test_P1_what_the_program_sets_stays_set():
    def program(x):
        torch.set_grad_enabled(False)
        return x + 1

    try:
        torch.compile(program, backend=Recorder())(value())
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def _draws(module, examples):
    random.random()
    torch.rand(3)
    return module.forward


def _sets_grad(module, examples):
    torch.set_grad_enabled(False)
    return module.forward


@both
@pytest.mark.parametrize("backend", [_draws, _sets_grad])
def test_P1_a_backend_changes_no_state(backend):
    before = state()
    try:
        torch.compile(lambda x: x + 1, backend=backend)(value())
        assert changes(before) == []
    finally:
        torch.set_grad_enabled(True)


# -- P2 --


@both
@pytest.mark.parametrize("grad", [True, False])
def test_P2_a_backend_sees_the_state_at_the_start(grad):
    seen = []

    def backend(module, examples):
        seen.append(
            (
                torch.is_grad_enabled(),
                torch.is_autocast_enabled("cpu"),
                torch.get_autocast_dtype("cpu"),
            )
        )
        return module.forward

    def program(x):
        y = x + 1
        torch.set_grad_enabled(not grad)
        with torch.autocast("cpu", dtype=torch.float16):
            return y @ y

    with torch.set_grad_enabled(grad), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.compile(program, backend=backend)(value(2, 2))
        assert torch.is_grad_enabled() is not grad
        assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    assert seen == [(grad, True, torch.bfloat16)]
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@both
def test_P2_torch_function_is_on_or_off_as_in_the_program():
    def backend(module, examples):
        seen.append(torch._C._is_torch_function_enabled())
        return module.forward

    seen = []
    fast = torch.compile(lambda x: x + 1, backend=backend)
    assert_same(fast(value()), value() + 1)
    with torch._C.DisableTorchFunctionSubclass():
        assert_same(fast(value()), value() + 1)
    assert seen == [True, False]
    assert torch._C._is_torch_function_enabled()
