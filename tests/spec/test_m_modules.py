# ruff: noqa: E402
"""Lines M1 to M5: modules."""

import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.spec.helpers import Recorder, assert_same, both, value

# -- M1 --


class Leaf(torch.nn.Module):
    def forward(self, x):
        return x.sin()


class Tree(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left = Leaf()
        self.rest = torch.nn.ModuleList([Leaf(), torch.nn.Sequential(Leaf())])

    def forward(self, x):
        x = self.left(x)
        for child in self.rest:
            x = child(x)
        return x.cos()


@both
def test_M1_the_path_of_the_current_module():
    backend, tree = Recorder(), Tree()
    torch.compile(lambda x: tree(x), backend=backend)(value())
    stacks = [
        [
            (path, getattr(kind, "__name__", str(kind).rsplit(".")[-1]))
            for path, kind in node.meta["nn_module_stack"].values()
        ]
        for node in backend.graph.graph.nodes
        if node.op == "call_method"
    ]
    assert [[kind for _, kind in stack] for stack in stacks] == [
        ["Tree", "Leaf"],
        ["Tree", "Leaf"],
        ["Tree", "Sequential", "Leaf"],
        ["Tree"],
    ]
    ends = [
        stack[-1][0].replace("['", ".").replace("']", "").replace("_modules.", "")
        for stack in stacks
    ]
    assert ends[0].endswith("left")
    assert ends[1] != ends[2] and "rest" in ends[1]


# -- M2 --


def _forward_hooks(net, log):
    net.register_forward_pre_hook(lambda m, args: log.append("pre"))
    net.register_forward_hook(lambda m, args, out: log.append("post") or out + 1)


def _child_hooks(net, log):
    net.left.register_forward_hook(lambda m, args, out: log.append("child") or out * 2)


def _backward_hooks(net, log):
    net.register_full_backward_pre_hook(lambda m, g: log.append("backward pre"))
    net.register_full_backward_hook(lambda m, gi, go: log.append("backward"))


HOOKS = [_forward_hooks, _child_hooks, _backward_hooks]


def _observe(net, function, log):
    x = value().requires_grad_()
    result = function(x)
    result.sum().backward()
    return result.detach(), x.grad, list(log)


@pytest.mark.parametrize("add", HOOKS, ids=lambda f: f.__name__)
@both
def test_M2_hooks_run_as_they_would(add):
    seen = []
    for compiled in (False, True):
        net, log = Tree(), []
        add(net, log)
        function = torch.compile(net, backend="eager") if compiled else net
        seen.append(_observe(net, function, log))
    assert_same(seen[1], seen[0])
    assert seen[0][2]


@pytest.mark.parametrize("add", HOOKS, ids=lambda f: f.__name__)
def test_M2_hooks_added_after_compiling_are_noticed(add):
    seen = []
    for compiled in (False, True):
        net, log = Tree(), []
        function = torch.compile(net, backend="eager") if compiled else net
        function(value())
        add(net, log)
        seen.append(_observe(net, function, log))
    assert_same(seen[1], seen[0])


@both
def test_M2_state_dict_hooks_are_kept():
    net = torch.nn.Linear(2, 2)
    log = []
    net.register_state_dict_pre_hook(lambda *args: log.append("pre"))
    fast = torch.compile(net, backend="eager")
    fast(value(1, 2))
    assert list(net.state_dict()) == ["weight", "bias"]
    assert log == ["pre"]


def _global_hooks(function):
    log = []
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda m, args, out: log.append(type(m).__name__)
    )
    try:
        function(value())
    finally:
        handle.remove()
    return log


def test_M2_global_hooks_run_for_children():
    fast = torch.compile(lambda x, net=Tree(): net.left(x) + 1, backend="eager")
    assert _global_hooks(fast) == ["Leaf"]


@both
def test_M2_global_hooks_run_once_for_the_module_that_was_compiled():
    assert _global_hooks(Leaf()) == ["Leaf"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own module around it runs them, too, and says so
        assert _global_hooks(torch.compile(Leaf(), backend="eager")).count("Leaf") == 1


# -- M3 --


class Finds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Leaf()

    def __getattr__(self, name):
        if name == "computed":
            return 3
        return super().__getattr__(name)

    def forward(self, x):
        return self.inner(x) * self.computed


class Watches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2

    def __getattribute__(self, name):
        return 5 if name == "scale" else super().__getattribute__(name)

    def forward(self, x):
        return x * self.scale


@both
@pytest.mark.parametrize("kind", [Finds, Watches])
def test_M3_own_attribute_lookup_is_noticed(kind):
    net = kind()
    fast = torch.compile(net, backend="eager")
    for _ in range(2):
        assert_same(fast(value()), net(value()))


def test_M3_own_lookup_is_traced_in_one_piece():
    backend = Recorder()
    torch.compile(Finds(), backend=backend, fullgraph=True)(value())
    assert len(backend.operations) == 2


# -- M4, M5 --


class Lazy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.LazyLinear(2)

    def forward(self, x):
        return self.layer(x) + 1


@both
def test_M4_lazy_modules_are_initialised():
    net = Lazy()
    fast = torch.compile(net, backend="eager")
    got = fast(value(1, 3))
    assert net.layer.weight.shape == (2, 3)
    assert_same(got, net(value(1, 3)))
    assert_same(fast(value(1, 3)), net(value(1, 3)))


@both
def test_M4_in_one_graph_from_the_first_call_on():
    backend = Recorder()
    torch.compile(Lazy(), backend=backend)(value(1, 3))
    assert len(backend.graphs) == 1


class Several(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.LazyConv1d(4, 1)
        self.norm = torch.nn.LazyBatchNorm1d()
        self.last = torch.nn.LazyLinear(2)
        self.dropped = False

    def forward(self, x):
        y = self.norm(self.first(x))
        return self.last(torch.nn.functional.dropout(y) if self.dropped else y)


@pytest.mark.parametrize("dropped", [False, True])
def test_M4_modules_are_initialised_with_the_random_numbers_of_eager(dropped):
    """Behind a draw of random numbers in the same graph the module is initialised in its turn."""
    nets = [Several(), Several()]
    backend = Recorder()
    calls = [nets[0], torch.compile(nets[1], backend=backend)]
    results = []
    for net, call in zip(nets, calls):
        net.dropped = dropped
        torch.manual_seed(3)
        results.append(call(torch.ones(2, 3, 5)))
    assert_same(results[1], results[0])
    assert torch.equal(nets[0].last.weight, nets[1].last.weight)
    assert torch.equal(nets[0].norm.running_mean, nets[1].norm.running_mean)
    assert len(backend.graphs) == 1 + dropped


@both
def test_M5_fake_parameters_are_an_error():
    with FakeTensorMode():
        net = torch.nn.Linear(3, 2)
    with pytest.raises(Exception, match=r"(?i)fake"):
        torch.compile(net, backend="eager")(value(1, 3))
