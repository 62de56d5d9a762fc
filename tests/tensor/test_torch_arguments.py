"""Calls of torch's callables with arguments that their handlers do not take: they break, and torch
itself does the call or raises its error."""

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402

AUTOCAST = torch.autocast("cpu")
INFERENCE = torch.inference_mode()


def grad_set_by_name(x):
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(enabled=False)
    off = torch.is_grad_enabled()
    torch._C._set_grad_enabled(before)
    return off


CALLS = {
    "setter by name": grad_set_by_name,
    "question by name": lambda x: torch.get_autocast_dtype(device_type="cpu"),
    "question with more": lambda x: torch.get_autocast_dtype("cpu", 2),
    "enter autocast without self": lambda x: torch.autocast.__enter__(),
    "enter autocast with more": lambda x: torch.autocast.__enter__(AUTOCAST, 1),
    "exit autocast without self": lambda x: torch.autocast.__exit__(),
    "exit autocast without exception": lambda x: torch.autocast.__exit__(AUTOCAST),
    "enter inference without self": lambda x: torch.inference_mode.__enter__(),
    "enter inference with more": lambda x: torch.inference_mode.__enter__(INFERENCE, 2),
    "exit inference without self": lambda x: torch.inference_mode.__exit__(),
    "iterate without self": lambda x: torch.Tensor.__iter__(),
    "stride without self": lambda x: torch.Tensor.stride(),
    "contiguous without self": lambda x: torch.Tensor.contiguous(),
    "hook without self": lambda x: torch.Tensor.register_hook(),
    "hook with more": lambda x: x.register_hook(1, 2, 3),
    "detach without self": lambda x: torch.Tensor.detach_(),
}


def outcome(f):
    try:
        return repr(f(torch.ones(2, requires_grad=True)))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("name", CALLS)
def test_other_arguments_break(name):
    f = CALLS[name]
    compiled = stator.compile(f)
    assert outcome(compiled) == outcome(f)
    (why,) = compiled.metrics["breaks"]
    assert "with these arguments [TENSOR_OPERATION]" in why
