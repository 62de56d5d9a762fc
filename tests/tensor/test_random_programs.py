# ruff: noqa: E402
"""Random programs, eager beside compiled, with random changes between the calls."""

import os

import pytest

torch = pytest.importorskip("torch")

import stator
from tests.tensor.programs import call, program

FULL = os.environ.get("STATOR_FULL") == "1"


def reachable(args, result):
    """Everything that can be seen after a call, flat, in one order."""
    a, b, c, xs, d, o = args
    found = [a, b, c, *xs, *d.keys(), *d.values()]
    for name in sorted(vars(o)):
        found.append(getattr(o, name))
    found += list(o.log)
    if isinstance(result, tuple):
        for item in result:
            found += [*item] if isinstance(item, list) else [item]
    else:
        found.append(result)
    return found


def show(value):
    if not isinstance(value, torch.Tensor):
        return repr(value) if not isinstance(value, list) else f"list of {len(value)}"
    values = "none" if value.device.type == "meta" else value.detach().tolist()
    facts = (type(value), value.dtype, value.shape, value.stride(), value.requires_grad, values)
    return repr((*facts, value.is_leaf, sorted(vars(value))))


def state(args, result):
    """Values, and which of them are one object or share memory."""
    found = reachable(args, result)
    same = [[i for i, other in enumerate(found) if other is value][0] for value in found]
    tensors = [value for value in found if isinstance(value, torch.Tensor)]
    shared = [
        [i for i, other in enumerate(tensors) if same_memory(value, other)][0] for value in tensors
    ]
    return [show(value) for value in found], same, shared


def same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def outcome(function, seed):
    args = call(seed)
    torch.manual_seed(seed)
    try:
        result = function(*args)
    except Exception as error:
        return type(error), str(error), state(args, None), torch.rand(1).item()
    return state(args, result), torch.rand(1).item(), torch.is_grad_enabled()


def check(seed, backend, calls=6):
    text, function = program(seed)
    fast = stator.compile(function, backend=backend)
    for i in (*range(calls), *range(calls)):
        want, got = outcome(function, seed * 100 + i), outcome(fast, seed * 100 + i)
        assert got == want, f"program {seed}, call {seed * 100 + i}:\n{text}"
    return fast


@pytest.mark.parametrize("seed", range(400 if FULL else 40))
def test_random_programs(seed):
    check(seed, "eager")


@pytest.mark.parametrize("seed", range(1000, 1100 if FULL else 1006))
def test_random_programs_by_aot(seed):
    check(seed, "aot_eager", calls=3)
