# ruff: noqa: E402
"""Lazy modules of the program's own: initialised in the trace where the program is one graph."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.modules.lazy import LazyModuleMixin

import stator


class Lazy(LazyModuleMixin, torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def initialize_parameters(self, x):
        self.calls += 1
        self.set(x)

    def has_uninitialized_params(self):
        return not hasattr(self, "weight")

    def forward(self, x):
        return x * self.weight


class BySizes(Lazy):
    def set(self, x):
        torch._dynamo.graph_break()
        self.weight = torch.nn.Parameter(torch.full(x.shape[-1:], 0.5))


class ByValues(Lazy):
    def set(self, x):
        self.weight = torch.nn.Parameter(torch.full((1,), x.max().item()))


class Keeps(Lazy):
    def set(self, x):
        self.weight = torch.nn.Parameter(x.clone())


X = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
@pytest.mark.parametrize("kind", (BySizes, ByValues, Keeps))
def test_initialised_once_with_the_real_arguments(kind, backend):
    module, plain = kind(), kind()
    compiled = stator.compile(lambda x: module(x + 1).sin(), backend=backend)
    for _ in range(2):
        torch.testing.assert_close(compiled(X), plain(X + 1).sin())
    assert module.calls == 1 and type(module.weight) is torch.nn.Parameter


@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
def test_one_graph_where_sizes_are_enough(backend):
    module = BySizes()
    compiled = stator.compile(lambda x: module(x).sin(), backend=backend, fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(X), (X * 0.5).sin())
    assert module.calls == 1


@pytest.mark.parametrize("kind", (ByValues, Keeps))
def test_else_an_error_that_leaves_the_module_as_it_was(kind):
    module, plain = kind(), kind()
    with pytest.raises(stator.Unsupported):
        stator.compile(lambda x: module(x), backend="eager", fullgraph=True)(X)
    assert module.has_uninitialized_params() and module.calls == 0
    torch.testing.assert_close(module(X), plain(X))
