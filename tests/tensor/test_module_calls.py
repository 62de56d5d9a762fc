"""A compiled module is called as the module is: whatever a call looks up on its way to `forward`
(class, instance, hooks of the module, hooks of all modules) counts when it is looked up.

Each case changes something of that, before or after the first call. Results, gradients and what
hooks saw, in order, are compared with eager's.
"""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import stator

torch = pytest.importorskip("torch")
torch_module = torch.nn.modules.module

log: list[Any] = []
undo: list[Callable[[], Any]] = []


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((3,), 2.0))
        self.inner = Inner()

    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        return self.inner(x) * self.scale + shift


def _note(what: str, module: Any) -> None:
    log.append((what, type(module).__name__))


def _pre(module: Any, args: Any) -> Any:
    _note("pre", module)


def _pre_changes(module: Any, args: Any) -> Any:
    _note("pre changes", module)
    return (args[0] + 1, *args[1:])


def _pre_kwargs(module: Any, args: Any, kwargs: Any) -> Any:
    _note(f"pre {sorted(kwargs)}", module)
    return args, {**kwargs, "shift": 5.0}


def _post(module: Any, args: Any, result: Any) -> Any:
    _note("post", module)


def _post_changes(module: Any, args: Any, result: Any) -> Any:
    _note("post changes", module)
    return result * 3


def _post_kwargs(module: Any, args: Any, kwargs: Any, result: Any) -> Any:
    _note(f"post {sorted(kwargs)}", module)


def _full_backward(module: Any, grad_in: Any, grad_out: Any) -> Any:
    _note("backward", module)


def _backward_pre(module: Any, grad_out: Any) -> Any:
    _note("backward pre", module)
    return (grad_out[0] * 2,)


def _keep(handle: Any) -> None:
    undo.append(handle.remove)


def _set(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, type) and name in vars(owner):
        before = vars(owner)[name]
        undo.append(lambda: setattr(owner, name, before))
    elif isinstance(owner, type):
        undo.append(lambda: delattr(owner, name))
    elif isinstance(owner, type(torch)):
        known = getattr(owner, name)
        undo.append(lambda: setattr(owner, name, known))
    setattr(owner, name, value)


def _other_forward(self: Any, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    log.append("other forward")
    return x - self.scale


def _around(function: Any, name: str) -> Any:
    def replaced(self: Any, *args: Any, **kwargs: Any) -> Any:
        _note(name, self)
        return function(self, *args, **kwargs) + 1

    return replaced


def _plus_seven(self: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.nn.Module.__call__(self, *args, **kwargs) + 7


def _class_of(module: Any) -> Any:
    return type(module)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda m: None,
    "global pre-hook": lambda m: _keep(torch_module.register_module_forward_pre_hook(_pre)),
    "global pre-hook that changes": lambda m: _keep(
        torch_module.register_module_forward_pre_hook(_pre_changes)
    ),
    "global hook": lambda m: _keep(torch_module.register_module_forward_hook(_post)),
    "global hook that changes": lambda m: _keep(
        torch_module.register_module_forward_hook(_post_changes)
    ),
    "global hook with kwargs": lambda m: _keep(
        torch_module.register_module_forward_hook(_post_kwargs, with_kwargs=True)
    ),
    "global hook, always called": lambda m: _keep(
        torch_module.register_module_forward_hook(_post, always_call=True)
    ),
    "global backward hook": lambda m: _keep(
        torch_module.register_module_full_backward_hook(_full_backward)
    ),
    "global backward pre-hook": lambda m: _keep(
        torch_module.register_module_full_backward_pre_hook(_backward_pre)
    ),
    "global and own": lambda m: (
        _keep(torch_module.register_module_forward_hook(_post)),
        m.register_forward_hook(_post_changes),
        m.register_forward_pre_hook(_pre_changes),
    ),
    "global hooks put elsewhere": lambda m: _set(
        torch_module, "_global_forward_hooks", {3: _post_changes}
    ),
    "own pre-hook": lambda m: m.register_forward_pre_hook(_pre_changes),
    "own pre-hook with kwargs": lambda m: m.register_forward_pre_hook(
        _pre_kwargs, with_kwargs=True
    ),
    "own hook": lambda m: m.register_forward_hook(_post_changes),
    "own hook with kwargs": lambda m: m.register_forward_hook(_post_kwargs, with_kwargs=True),
    "own hooks in order": lambda m: (
        m.register_forward_hook(_post_changes),
        m.register_forward_hook(_post, prepend=True),
    ),
    "own backward hook": lambda m: m.register_full_backward_hook(_full_backward),
    "own backward pre-hook": lambda m: m.register_full_backward_pre_hook(_backward_pre),
    "hook of a part": lambda m: m.inner.register_forward_hook(_post_changes),
    "hook added and removed": lambda m: m.register_forward_hook(_post_changes).remove(),
    "forward of the instance": lambda m: setattr(
        m, "forward", lambda x, shift=0.0: log.append("own forward") or x + 9
    ),
    "forward of the class": lambda m: _set(_class_of(m), "forward", _other_forward),
    "forward of a part": lambda m: _set(
        type(m.inner), "forward", lambda self, x: log.append("inner") or x * 10
    ),
    "code of forward": lambda m: _set_code(type(m).forward),
    "__call__ of the class": lambda m: _set(_class_of(m), "__call__", _plus_seven),
    "__call__ of the instance": lambda m: m.__dict__.__setitem__("__call__", lambda *a: 1 / 0),
    "_call_impl of the class": lambda m: _set(
        _class_of(m), "_call_impl", _around(torch.nn.Module._call_impl, "impl")
    ),
    "_call_impl of the instance": lambda m: m.__dict__.__setitem__(
        "_call_impl", lambda *args, **kwargs: log.append("own impl") or args[0] * 4
    ),
    "Module.__call__": lambda m: _set(
        torch.nn.Module, "__call__", _around(torch.nn.Module.__call__, "call")
    ),
    "Module._call_impl": lambda m: _set(
        torch.nn.Module, "_call_impl", _around(torch.nn.Module._call_impl, "impl")
    ),
    "__getattribute__": lambda m: _set(_class_of(m), "__getattribute__", _loud_getattribute),
    "class of the instance": lambda m: setattr(m, "__class__", Derived),
    "training": lambda m: m.eval(),
    "parameter": lambda m: setattr(m, "scale", torch.nn.Parameter(torch.full((3,), 5.0))),
    "part": lambda m: setattr(m, "inner", torch.nn.Identity()),
}


class Derived(Net):
    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        log.append("derived")
        return super().forward(x, shift) * 100


def _loud_getattribute(self: Any, name: str) -> Any:
    if name == "forward":
        log.append("looked up")
        return lambda x, shift=0.0: x * 50
    return torch.nn.Module.__getattribute__(self, name)


def _set_code(function: Any) -> None:
    before = function.__code__
    undo.append(lambda: setattr(function, "__code__", before))
    function.__code__ = (lambda self, x, shift=0.0: x - 1).__code__


# -- ways of compiling: what is called, and what is changed --


def _by_stator(m: Any) -> Any:
    return stator.compile(m, backend="eager")


def _by_torch(m: Any) -> Any:
    return torch.compile(m, backend="eager")


def _in_place(m: Any) -> Any:
    m.compile(backend="eager")
    return m


def _of_the_call(m: Any) -> Any:
    return stator.compile(lambda *args, **kwargs: m(*args, **kwargs), backend="eager")


def _twice(m: Any) -> Any:
    return stator.compile(stator.compile(m, backend="eager"), backend="eager")


WAYS = {
    "eager": lambda m: m,
    "stator.compile": _by_stator,
    "torch.compile": _by_torch,
    "Module.compile": _in_place,
    "stator.compile of a caller": _of_the_call,
    "compiled twice": _twice,
}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    stator.install()
    yield
    _clean()
    stator.uninstall()
    stator.reset()


def _clean() -> None:
    while undo:
        undo.pop()()
    torch_module._global_forward_hooks_with_kwargs.clear()  # what `remove` leaves behind


def _run(way: str, change: str, early: bool, **kwargs: Any) -> list[Any]:
    """All that can be seen of three calls."""
    log.clear()
    net = type("Net", (Net,), {"forward": _copy_of(Net.forward)})()
    seen: list[Any] = []
    try:
        called = WAYS[way](net)
        if early:
            CHANGES[change](net)
        for i in range(3):
            x = torch.arange(3.0, requires_grad=True)
            y = called(x, **kwargs)
            if y.requires_grad:
                y.sum().backward()
            seen.append((y.detach().tolist(), None if x.grad is None else x.grad.tolist()))
            if i == 0 and not early:
                CHANGES[change](net)
        return [seen, list(log), net.training]
    finally:
        _clean()


def _copy_of(function: Any) -> Any:
    return type(function)(function.__code__, function.__globals__, "forward", function.__defaults__)


@pytest.mark.parametrize("early", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("way", [way for way in WAYS if way != "eager"])
@pytest.mark.parametrize("change", CHANGES)
def test_calls_are_as_in_eager(change: str, way: str, early: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        want = _run("eager", change, early)
        assert _run(way, change, early) == want
        assert _run(way, change, early, shift=1.0) == _run("eager", change, early, shift=1.0)


# -- hooks on the wrapper itself --


class Outer(torch.nn.Module):
    def __init__(self, net: Any) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def _with_own_hooks(module: Any, also: bool) -> list[Any]:
    module.register_forward_pre_hook(lambda m, args: log.append("outer pre"))
    module.register_forward_hook(lambda m, args, result: log.append("outer post"))
    module.register_full_backward_hook(lambda m, a, b: log.append("outer backward"))
    if also:
        _keep(torch_module.register_module_forward_hook(_post))
        _keep(torch_module.register_module_full_backward_hook(_full_backward))
    log.clear()
    for _ in range(2):
        module(torch.ones(3, requires_grad=True)).sum().backward()
    _clean()
    return list(log)


@pytest.mark.parametrize("also", [False, True], ids=["alone", "with global ones"])
def test_hooks_on_the_wrapper_run_once_around_the_module(also: bool) -> None:
    seen = _with_own_hooks(stator.compile(Net(), backend="eager"), also)
    outer = _with_own_hooks(Outer(Net()), also)
    assert seen == [event for event in outer if event[1] != "Outer"]
    assert seen.count("outer backward") == 2


def test_a_patch_of_the_wrapper_class_is_noticed() -> None:
    wrapper = torch._dynamo.eval_frame.OptimizedModule
    fast = stator.compile(Net(), backend="eager")
    x = torch.ones(3)
    before = fast(x)
    _set(wrapper, "__call__", lambda self, *args: self.forward(*args) + 1)
    assert torch.equal(fast(x), before + 1)


class FailingNet(Net):
    def forward(self, x: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
        raise ValueError("no")


@pytest.mark.parametrize("way", WAYS)
def test_always_called_hooks_run_when_forward_raises(way: str) -> None:
    net = FailingNet()
    net.register_forward_hook(_post, always_call=True)
    called = WAYS[way](net)
    log.clear()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            called(torch.ones(3))
    assert log == [("post", "FailingNet")] * 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_keep_calling_their_own_module(copied: Any) -> None:
    fast = stator.compile(Net(), backend="eager")
    x = torch.ones(3)
    fast(x)
    other = copied(fast)
    with torch.no_grad():
        other._orig_mod.scale.fill_(7.0)
    other._orig_mod.register_forward_hook(_post_changes)
    assert torch.equal(other(x), torch.full((3,), 42.0))
    assert torch.equal(fast(x), torch.full((3,), 4.0))


def test_a_lazy_module_is_made_by_its_first_call() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = torch.nn.Sequential(torch.nn.LazyLinear(2))
        fast = stator.compile(lazy, backend="eager")
        x = torch.ones(1, 4)
        with contextlib.suppress(ValueError):
            fast(x)
        assert torch.equal(fast(x), lazy(x))
