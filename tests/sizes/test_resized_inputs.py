"""`out=` of another size gives a tensor another number of elements. Backends that compile a graph as
a whole cannot do that to an input, so the graph ends before the call."""

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402

OUTS = {
    "no elements": lambda n: torch.empty(0),
    "fewer elements": lambda n: torch.empty(1, 2),
    "more elements": lambda n: torch.empty(n + 1, 2),
    "another shape": lambda n: torch.empty(2, n),
    "the same": lambda n: torch.empty(n, 2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True, None])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", OUTS)
def test_an_input_that_results_are_written_to(name, backend, dynamic):
    def f(x, out):
        y = x.sin()
        torch.add(x, y, out=out)
        return out * 2, out.shape[0]

    compiled = stator.compile(f, backend=backend, dynamic=dynamic)
    for n in (3, 4, 5):
        x, out, other = torch.randn(n, 2), OUTS[name](n), OUTS[name](n)
        (result, rows), (expected, expected_rows) = compiled(x, out), f(x, other)
        assert rows == expected_rows
        torch.testing.assert_close(result, expected)
        torch.testing.assert_close(out, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_tensor_made_inside(backend):
    def f(x):
        out = torch.empty(0)
        torch.add(x, 1, out=out)
        return out * 2

    compiled = stator.compile(f, backend=backend, dynamic=True)
    for n in (3, 4, 5):
        x = torch.randn(n, 2)
        torch.testing.assert_close(compiled(x), f(x))
