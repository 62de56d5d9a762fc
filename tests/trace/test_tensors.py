"""The guard matrix and the naive programs, with tensors."""

import pytest

pytest.importorskip("torch")

from worlds import check, load_cases, use_torch

use_torch()
CASES = load_cases("tensor_cases_")


@pytest.fixture(autouse=True)
def unchanged_torch_state():
    import torch

    before = _state(torch)
    yield
    assert _state(torch) == before


def _state(torch):
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    )


@pytest.mark.parametrize("name", CASES)
def test_as_in_plain(name):
    check(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_case_is_the_same_in_two_plain_worlds(name):
    from worlds import Plain, difference

    one, two = Plain(CASES[name]), Plain(CASES[name])
    for world in (one, two):
        CASES[name](world)
    assert not difference(one, two), difference(one, two)
