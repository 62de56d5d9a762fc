"""torch.ops makes an operator at its first use: a trace that uses it first finds it, too."""

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402


@pytest.fixture
def library():
    with torch.library._scoped_library("stator_homes", "FRAGMENT") as made:
        yield made


def test_an_operator_that_nobody_has_used(library):
    for name in ("one", "two", "three"):
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, lambda x: x.sin(), "CompositeExplicitAutograd")

    def program(x):
        ops = torch.ops.stator_homes
        return ops.one(x) + ops.two.default(x) + getattr(ops, "three")(x)  # noqa: B009

    fast = stator.compile(program, backend="eager", fullgraph=True)
    x = torch.randn(3)
    for _ in range(2):
        torch.testing.assert_close(fast(x), 3 * x.sin())
    assert fast.metrics["entries"] == fast.metrics["traces"] == 1


def test_an_operator_that_there_is_not(library):
    def program(x):
        try:
            return torch.ops.stator_homes.nothing(x)
        except AttributeError as error:
            return str(error), hasattr(torch.ops.aten.sin, "nothing")

    x = torch.randn(3)
    assert stator.compile(program, backend="eager")(x) == program(x)
