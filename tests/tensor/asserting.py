"""Assertions on tensors. In a module of tests pytest would rewrite them."""

import torch


def with_message(x):
    assert x.sum() > 0, "not positive"
    return x + 1


def without_message(x):
    y = x * 2
    assert x[0] == 1
    return y


def of_a_tensor_itself(x):
    y = x.sum()
    assert y
    return y + 1


def in_a_with_block(x):
    with torch.no_grad():
        assert (x > 0).all(), "not positive"
        y = x * 2
    return y


def handled(x):
    try:
        assert x.sum() > 0, "not positive"
    except AssertionError as error:
        return x - len(str(error))
    return x + 1


def in_a_callee(x):
    return with_message(x) * 2


def makes_its_message(x):
    assert x.sum() > 0, f"{x.sum()} is not positive"
    return x + 1


def negated(x):
    assert not x.sum() < 0
    return x + 1


def of_two(x):
    assert x.sum() > 0 and x[0] == 1, "not so"
    return x + 1


def of_many(x):
    assert x, "ambiguous"
    return x + 1


def then_writes(x):
    assert x.sum() > 0, "not positive"
    x.add_(1)
    return x * 2


def then_draws(x):
    y = x + 1
    assert x.sum() > 0, "not positive"
    return y * torch.rand(3)


def raises(x):
    if not (x > 0).all():
        raise RuntimeError(f"not positive: {x.tolist()}")
    return x + 1


def raises_in_a_loop(x):
    for i in range(2):
        if not (x + i > 0).all():
            raise RuntimeError(i)
    return x * 2


def asserts_in_a_loop(x):
    for i in range(2):
        assert (x + i > 0).all(), "not positive"
    return x * 2


def raises_otherwise(x):
    if (x > 0).all():
        y = x + 1
    else:
        raise RuntimeError("not positive")
    return y * 2


def raises_and_handles(x):
    try:
        if not (x > 0).all():
            raise ValueError("not positive")
    except ValueError as error:
        return x - len(str(error))
    return x + 1


def checks_a_distribution(x):
    try:
        return torch.distributions.Normal(x, x, validate_args=True).log_prob(x)
    except ValueError as error:
        raise RuntimeError(str(error)) from None


def raises_if_true(x):
    if x.sum() < 0:
        raise RuntimeError("negative")
    return x + 1
