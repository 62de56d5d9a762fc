# ruff: noqa: E402
"""Calls of compiled modules: whatever stands between a call and `forward` takes part in it, set
before the first call or later, and no longer once it is gone."""

import contextlib
import copy
import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _engine, _module  # noqa: F401

_nn_module = torch.nn.modules.module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.log = []

    def forward(self, x, scale=1):
        return x * self.weight * scale


class Other(Net):
    def forward(self, x, scale=1):
        return x - 1


@contextlib.contextmanager
def attribute(owner, name, value):
    missing = object()
    always = name.startswith("__") and isinstance(owner, torch.nn.Module)
    before = getattr(owner, name) if always else vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name) if before is missing else setattr(owner, name, before)


@contextlib.contextmanager
def hook(register, *args):
    handle = register(*args)
    try:
        yield
    finally:
        handle.remove()


def after(module, args, result):
    return result + 10


def before(module, args):
    return (args[0] + 100, *args[1:])


def _around(owner, name):
    """The method, whose result is another one."""
    method = getattr(owner, name)

    def changed(self, *args, **kwargs):
        return method(self, *args, **kwargs) + 1000

    return attribute(owner, name, changed)


# What a caller may put between a call and `forward`: of the module and its wrapper.
BETWEEN = {
    "hook": lambda net, wrapper: hook(net.register_forward_hook, after),
    "pre-hook": lambda net, wrapper: hook(net.register_forward_pre_hook, before),
    "hook of the wrapper": lambda net, wrapper: hook(wrapper.register_forward_hook, after),
    "pre-hook of the wrapper": lambda net, wrapper: hook(wrapper.register_forward_pre_hook, before),
    "hook of all modules": lambda net, wrapper: hook(
        _nn_module.register_module_forward_hook, after
    ),
    "pre-hook of all modules": lambda net, wrapper: hook(
        _nn_module.register_module_forward_pre_hook, before
    ),
    "forward of the instance": lambda net, wrapper: attribute(
        net, "forward", lambda x, scale=1: x + 7
    ),
    "forward of the class": lambda net, wrapper: attribute(Net, "forward", Other.forward),
    "forward of the wrapper": lambda net, wrapper: attribute(
        wrapper, "forward", lambda x, scale=1: x + 7
    ),
    "another class": lambda net, wrapper: attribute(net, "__class__", Other),
    "_call_impl of the instance": lambda net, wrapper: attribute(
        net, "_call_impl", lambda x, scale=1: x + 8
    ),
    "_call_impl of the class": lambda net, wrapper: _around(Net, "_call_impl"),
    "_call_impl of all modules": lambda net, wrapper: _around(torch.nn.Module, "_call_impl"),
    "__call__ of the class": lambda net, wrapper: _around(Net, "__call__"),
    "__call__ of the wrapper's class": lambda net, wrapper: _around(type(wrapper), "__call__"),
    "compiled call": lambda net, wrapper: attribute(
        net, "_compiled_call_impl", lambda x, scale=1: x + 9
    ),
    "dict of hooks": lambda net, wrapper: attribute(net, "_forward_hooks", {0: after}),
    "new dict": lambda net, wrapper: attribute(net, "__dict__", {**vars(net), "forward": Other(
    ).forward}),
    "other attribute": lambda net, wrapper: attribute(net, "noted", 3),
}  # fmt: skip

# Of these the module itself knows nothing: they are the wrapper's.
OF_WRAPPER = {"hook of the wrapper", "pre-hook of the wrapper", "forward of the wrapper",
              "__call__ of the wrapper's class"}  # fmt: skip


def _expected(net, x, name):
    if name not in OF_WRAPPER:
        return net(x, scale=2)
    plain = torch.nn.Module.__call__
    with_hook = {"hook of the wrapper": lambda: plain(net, x, scale=2) + 10,
                 "pre-hook of the wrapper": lambda: plain(net, x + 100, scale=2),
                 "forward of the wrapper": lambda: x + 7}  # fmt: skip
    return with_hook.get(name, lambda: plain(net, x, scale=2) + 1000)()


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between_takes_part(name):
    net, x = Net(), torch.arange(2.0)
    compiled = stator.compile(net, backend="eager")
    usual = net(x, scale=2)
    for _ in range(2):
        for _ in range(3):
            assert torch.equal(compiled(x, scale=2), usual)
        with BETWEEN[name](net, compiled):
            expected = _expected(net, x, name)
            for _ in range(3):
                assert torch.equal(compiled(x, scale=2), expected), name
    assert torch.equal(compiled(x, scale=2), usual)


def test_the_class_of_the_instance_decides_each_time():
    net, x = Net(), torch.ones(2)
    compiled = stator.compile(net, backend="eager")
    for kind in (Net, Other, Net, Other):
        net.__class__ = kind
        assert torch.equal(compiled(x), net(x))


def test_a_module_that_changes_itself_is_called_each_time():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    net, plain, x = Counts(), Counts(), torch.ones(2)
    compiled = stator.compile(net, backend="eager")
    for _ in range(5):
        assert torch.equal(compiled(x), plain(x))
    assert net.calls == plain.calls


def test_torch_jit_traces_the_module_itself():
    net, x = Net().requires_grad_(False), torch.ones(2)
    compiled = stator.compile(net, backend="eager")
    compiled(x)
    traced = torch.jit.trace(lambda y: compiled(y), x)
    assert torch.equal(traced(x + 1), net(x + 1))


def test_arguments_of_any_number_and_kind():
    class Sums(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return sum(args) + sum(kwargs.values())

    compiled = stator.compile(Sums(), backend="eager")
    for count in (1, 5, 16, 17, 40):
        args = [torch.ones(2)] * count
        assert torch.equal(compiled(*args, last=1), Sums()(*args, last=1))


def test_copies_have_shortcuts_of_their_own():
    net, x = Net(), torch.ones(2)
    compiled = stator.compile(net, backend="eager")
    compiled(x)
    other = copy.deepcopy(compiled)
    with torch.no_grad():
        other._orig_mod.weight += 4
    for _ in range(2):
        assert torch.equal(other(x), torch.full((2,), 5.0))
        assert torch.equal(compiled(x), torch.ones(2))


def test_a_compiled_module_dies():
    net, x = Net(), torch.ones(2)
    compiled = stator.compile(net, backend="eager")
    compiled(x)
    dead = weakref.ref(compiled), weakref.ref(net)
    del compiled, net
    gc.collect()
    assert dead[0]() is None


def test_no_python_frame_is_made_before_the_backends_function():
    import sys

    frames = []

    def function(*args):
        frame = sys._getframe(1)
        frames.append(frame.f_code)
        return (args[0],)

    compiled = stator.compile(Net(), backend=lambda graph, inputs: function, dynamic=False)
    for _ in range(3):
        compiled(torch.ones(2))
    assert frames[-1].co_name == "test_no_python_frame_is_made_before_the_backends_function"
