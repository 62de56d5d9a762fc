"""Functions that torch.jit.script has compiled are traced as the functions that they were made of,
where a call gives them what they take. Other calls break."""

import typing

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402


@torch.jit.script
def scaled(x, n: int):
    return x * n


@torch.jit.script
def refusing(x, n: int):
    if n > 2:
        raise ValueError("too many")
    return x * n


@torch.jit.script
def pair(x, y: float = 2.0):
    return x * y, x.size(0)


def branching(x):
    return x * 2 if x.sum() > 0 else -x


@pytest.fixture(scope="module")
def traced():
    with pytest.warns(torch.jit.TracerWarning):
        return torch.jit.trace(branching, torch.ones(2))


def outcome(program, *args):
    try:
        return program(*args)
    except Exception as error:
        return type(error)


# The call, and whether it is traced whole.
CALLS = {
    "an int": (lambda x: scaled(x, 3), True),
    "another int": (lambda x: refusing(x, 1), True),
    "a default": (lambda x: pair(x), True),
    "a float": (lambda x: pair(x, 3.0), True),
    "within a loop": (lambda x: [scaled(x, n) for n in range(3)], True),
    "a float for an int": (lambda x: scaled(x, 2.5), False),
    "a bool for an int": (lambda x: scaled(x, True), False),
    "an int for a float": (lambda x: pair(x, 3), False),
    "a number for a tensor": (lambda x: scaled(3, 3), False),
    "a name": (lambda x: pair(x, y=3.0), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    program, whole = CALLS[name]
    x = torch.arange(3.0)
    expected = outcome(program, x)
    compiled = stator.compile(program)
    for _ in range(2):
        found = outcome(compiled, x)
        assert type(found) is type(expected)
        if not isinstance(found, type):
            torch.testing.assert_close(found, expected)
        else:
            assert found is expected
    # Torch's own tests, once imported, put a Python function in the place of the call.
    wrapped = hasattr(torch._C.ScriptFunction.__call__, "__code__")
    if not isinstance(expected, type) and not wrapped:
        breaks = [str(b) for b in stator.explain(program)(x).breaks]
        assert bool(breaks) != whole, breaks


def test_an_exception_is_the_compiled_ones():
    compiled = stator.compile(lambda x: refusing(x, 3))
    for _ in range(2):
        with pytest.raises(torch.jit.Error):
            compiled(torch.ones(2))


def test_what_was_traced_goes_its_own_way(traced):
    """With a negative sum the function itself would take the other branch."""
    compiled = stator.compile(lambda x: traced(x))
    torch.testing.assert_close(compiled(-torch.ones(2)), -2 * torch.ones(2))


def first_device(module, x):
    return x.to(next(p.device for p in module.parameters())) + 1


def test_a_generator_gives_a_device():
    explained = stator.explain(first_device)(torch.nn.Linear(2, 2), torch.ones(2))
    assert not explained.breaks


def annotated(x):
    rows = torch.jit.annotate(typing.List[torch.Tensor], [])  # noqa: UP006
    rows.append(x + 1)
    return rows


def test_words_of_typing():
    annotated(torch.ones(2))  # typing keeps what it makes
    assert not stator.explain(annotated)(torch.ones(2)).breaks
