"""Function modes are traced: each call asks them once, and what they do is what plain Python does."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
import torch.utils.checkpoint  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

import stator  # noqa: E402

LOG: list[Any] = []


class Notes(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append((getattr(func, "__name__", "?"), len(types), len(args)))
        return func(*args, **(kwargs or {}))


class Adds(TorchFunctionMode):
    def __init__(self, k=1):
        super().__init__()
        self.k = k

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func in (torch.Tensor.sin, torch.ones, torch.Tensor.add):
            return result + self.k
        return result


class Replaces(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.cos:
            return torch.sin(*args)
        return func(*args, **(kwargs or {}))


class Prints(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cos:
            print("cos")
        return func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(("sub", getattr(func, "__name__", "?")))
        return super().__torch_function__(func, types, args, kwargs or {})


def seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return type(value).__name__, value.tolist(), value.requires_grad
    return [seen(item) for item in value] if isinstance(value, (tuple, list)) else value


def outcomes(f: Any, modes: Any, cls: Any) -> list[Any]:
    found = []
    for i in range(3):
        LOG.clear()
        x = (torch.arange(4.0) + i).as_subclass(cls)
        entered = [mode() for mode in modes]
        for mode in entered:
            mode.__enter__()
        try:
            result = f(x)
        except Exception as error:
            result = type(error), str(error)
        finally:
            for _ in entered:
                torch._C._pop_torch_function_stack()
        found.append((seen(result), list(LOG), torch._C._len_torch_function_stack()))
    return found


def check(f, *modes, whole=True, backend="eager", cls=torch.Tensor):
    want = outcomes(f, modes, cls)
    compiled = stator.compile(f, backend=backend, fullgraph=whole)
    assert outcomes(compiled, modes, cls) == want
    return compiled


PROGRAMS = {
    "operator": lambda x: x + 1,
    "method": lambda x: x.sin(),
    "function": lambda x: torch.cos(x),
    "functional": lambda x: F.relu(x),
    "composed": lambda x: F.tanh(x),
    "factory": lambda x: torch.ones(4) + x,
    "getter": lambda x: (x.shape, x.dtype),
    "item": lambda x: x[0] * x[1:],
    "right": lambda x: 2 - x,
    "no_grad": lambda x: x.sin() + (torch.set_grad_enabled(True) and 0 or 0),
    "device": lambda x: x.to(torch.device("cpu")),
    "write": lambda x: x.clone().add_(1),
    "length": lambda x: len(x),
    "list": lambda x: torch.cat([x, x]),
    "nothing": lambda x: 3,
    "questions": lambda x: (
        torch._C._len_torch_function_stack(), torch._C._is_torch_function_mode_enabled(),
        torch._C._is_torch_function_enabled(), x + 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("mode", [Notes, Adds, Replaces], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_that_is_on(name, mode):
    check(PROGRAMS[name], mode, whole=name != "no_grad")


@pytest.mark.parametrize("mode", [Notes, Adds, Replaces], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_that_is_entered(name, mode):
    def f(x):
        before = x * 2
        with mode():
            result = PROGRAMS[name](x)
        return before, result, x.sin()

    check(f, whole=name != "no_grad")


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_other_backends(backend):
    check(lambda x: x.sin() + torch.ones(4), Adds, Notes, backend=backend)


def test_two_modes():
    check(lambda x: x.sin() + 1, Notes, Adds)
    check(lambda x: x.sin() + 1, Adds, Notes)

    def f(x):
        with Adds(), Notes():
            return x.sin()

    check(f)
    check(f, Notes)


def test_a_mode_and_a_subclass():
    check(lambda x: x.sin() + 1, Notes, cls=Sub)
    check(lambda x: F.relu(x), Adds, cls=Sub)


def test_an_attribute_of_a_mode_is_guarded():
    mode = Adds()
    compiled = stator.compile(lambda x: x.sin(), fullgraph=True)
    for k in (1, 5, 5):
        mode.k = k
        with mode:
            got = compiled(torch.zeros(2))
        assert got.tolist() == [k, k]
    assert compiled.metrics["traces"] == 2


def test_modes_are_guarded():
    def f(x):
        return x.sin()

    compiled = stator.compile(f, fullgraph=True)
    for modes in ([Adds(1)], [], [Notes()], [Adds(1), Adds(2)], [Replaces(), Adds(4)], [Adds(1)]):
        for mode in modes:
            mode.__enter__()
        got, want = compiled(torch.zeros(2)), f(torch.zeros(2))
        for mode in modes:
            mode.__exit__(None, None, None)
        assert torch.equal(got, want), modes


def test_a_break_within_a_mode():
    def f(x):
        with Adds(3):
            y = x.sin()
            print("break")
            z = y + x
        return y, z, x.sin()

    check(f, whole=False)
    check(lambda x: (x.sin(), print("break"), x + 1), Adds, whole=False)


def test_a_break_in_a_mode():
    check(lambda x: x.sin() + x.cos(), Prints, whole=False)


def test_disabled_within_a_mode():
    def f(x):
        with torch._C.DisableTorchFunctionSubclass():
            a = x.sin()
        with torch._C.DisableTorchFunction():
            b = x.sin()
        return a, b, x.sin()

    check(f, Adds)


def test_a_mode_that_raises():
    class Raises(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError("no")

    def f(x):
        try:
            return x + 1
        except ValueError as error:
            return str(error)

    check(f, Raises, whole=False)


def test_a_default_device_below_a_mode():
    with torch.device("cpu"):
        check(lambda x: torch.ones(4) + x.sin(), Adds, whole=False)


class Scales(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return tuple(item * 10 for item in result) if func is torch.autograd.grad else result


def dual(x):
    with torch.autograd.forward_ad.dual_level():
        made = torch.autograd.forward_ad.make_dual(x, torch.ones(4))
        return torch.autograd.forward_ad.unpack_dual(made.sin()).tangent


TRANSFORMS = {
    "vmap": lambda x: torch.func.vmap(torch.sin)(x),
    "grad": lambda x: torch.func.grad(lambda a: a.sin().sum())(x),
    "vjp": lambda x: torch.func.vjp(torch.sin, x)[1](x),
    "jacrev": lambda x: torch.func.jacrev(torch.sin)(x),
    "jvp": lambda x: torch.func.jvp(torch.sin, (x,), (x,)),
    "jacfwd": lambda x: torch.func.jacfwd(torch.sin)(x),
    "dual": dual,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("mode", [Notes, Adds, Scales], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_mode_and_a_transform(name, mode, backend):
    """The mode is asked for what torch's own code does within the transform, too."""

    def f(x):
        with mode():
            result = TRANSFORMS[name](x)
        return result, x.sin()

    check(f, whole=name == "vmap", backend=backend)
    check(TRANSFORMS[name], mode, whole=name == "vmap", backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_mode_around_a_checkpoint(reentrant, backend):
    """The backward pass runs the function once more, without the mode."""

    def f(x):
        with Replaces():
            return torch.utils.checkpoint.checkpoint(
                lambda a: torch.cos(a) * a, x, use_reentrant=reentrant
            )

    def gradient(f):
        x = torch.arange(4.0, requires_grad=True)
        f(x).sum().backward()
        return x.grad.tolist()

    assert gradient(stator.compile(f, backend=backend)) == pytest.approx(gradient(f))
