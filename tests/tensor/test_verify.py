"""`torch._dynamo.config.verify_correctness`: what a backend makes is compared with the graph."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo import config  # noqa: E402

import stator  # noqa: E402


def right(module, examples):
    return module.forward


def off_by_one(module, examples):
    return lambda *args: tuple(result + 1 for result in module.forward(*args))


def forgets_writes(module, examples):
    return lambda *args: module.forward(*(arg.clone() for arg in args))


def wrong_size(module, examples):
    return lambda *args: tuple(result[:1] for result in module.forward(*args))


def adds(x):
    return x + 1


def writes(x):
    x.add_(1)
    return x * 2


def draws(x):
    return torch.nn.functional.dropout(x)


# The program, the backend, and what the error says; None: nothing is wrong.
ROWS = [
    (adds, right, None),
    (writes, right, None),
    (draws, right, None),
    (adds, "aot_eager", None),
    (adds, off_by_one, r"result 0: up to 1 apart"),
    (adds, wrong_size, r"size \(1,\) of torch.float32 instead of \(3,\)"),
    (writes, forgets_writes, r"input 0: up to 1 apart"),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program, backend, wrong", ROWS)
def test_results_of_backends_are_compared(program, backend, wrong, dynamic):
    torch._dynamo.reset()
    if dynamic and backend is forgets_writes:
        pytest.skip("its inputs are tensors only")
    compiled = stator.compile(program, backend=backend, dynamic=dynamic)
    x = torch.arange(3.0)
    with config.patch(verify_correctness=True):
        if wrong is not None:
            with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=wrong):
                compiled(x)
            assert x.tolist() == [0, 1, 2]  # copies were tried
            return
        torch.manual_seed(3)
        found = compiled(x)
    torch.manual_seed(3)
    torch.testing.assert_close(found, program(torch.arange(3.0)))
    assert x.tolist() == ([1, 2, 3] if program is writes else [0, 1, 2])
