"""Writes that backends which compile a graph as a whole cannot make to an input: `out=` of another
size gives it another number of elements, `t_()` gives it other sizes after a backward was recorded
that needs the old ones. The graph ends before such a call. And an input whose elements lie in one
place: such a graph is run operation by operation."""

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


SHAPED = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(0),
    "as_strided_": lambda x: x.as_strided_((2,), (1,)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", SHAPED)
def test_an_input_gets_other_sizes_behind_what_backward_needs(name, grad, dynamic):
    weight = torch.randn(4, 4, requires_grad=True)

    def f(x):
        y = x @ weight
        SHAPED[name](x)
        return y.sum(), x.shape, x.stride(), x * 2

    compiled = stator.compile(f, backend="aot_eager", dynamic=dynamic)
    for n in (1, 3, 5):
        x = torch.randn(n, 4)
        other = x.clone()
        with torch.set_grad_enabled(grad):
            result, expected = compiled(x), f(other)
        assert result[1:3] == expected[1:3]
        torch.testing.assert_close((*result[::3], x), (*expected[::3], other))


def empty_part(x):
    x[x.shape[0] :] = 16
    return x + 1


def empty_part_in_place(x):
    return x[x.shape[0] :].add_(1), x * 2


def first_element(x):
    x[:1].mul_(3)
    return x.sum()


def first_element_through_a_view(x):
    y = x.view(-1)[:1]
    y += 1
    return y, x


def all_elements(x):
    x.add_(1)
    return x


def nothing(x):
    return x + 1


SPREAD = (empty_part, empty_part_in_place, first_element, first_element_through_a_view,
          all_elements, nothing)  # fmt: skip


def outcome(f, x):
    try:
        return f(x), x
    except RuntimeError as error:
        return str(error), x


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [True, None])
@pytest.mark.parametrize("f", SPREAD, ids=lambda f: f.__name__)
def test_elements_of_an_input_lie_in_one_place(f, dynamic):
    compiled = stator.compile(f, backend="aot_eager", dynamic=dynamic)
    for n in (4, 5, 2):
        result, expected = (outcome(g, torch.ones(1).expand(n)) for g in (compiled, f))
        assert str(result) == str(expected)
