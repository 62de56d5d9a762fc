"""Tensors and objects with `__torch_function__` are traced, and give what plain Python gives."""

from __future__ import annotations

import operator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import stator  # noqa: E402

LOG: list[Any] = []


def name_of(function: Any) -> str:
    return getattr(function, "__name__", "?")


class Plain(torch.Tensor):
    pass


class Logs(torch.Tensor):
    """Notes who is asked for what."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append((cls.__name__, name_of(func), [t.__name__ for t in types], len(args)))
        return super().__torch_function__(func, types, args, kwargs or {})


class Below(Logs):
    pass


class Other(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append("other")
        return super().__torch_function__(func, (cls,), args, kwargs or {})


class Lenient(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append("lenient")
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Declines(Lenient):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append("declines")
        return NotImplemented


class Scaled(torch.Tensor):
    """Has an attribute, a property and a method, which survive operations by themselves."""

    k = 2

    @property
    def twice(self):
        return self.k * 2

    def scaled(self, by=1):
        return self * self.k * by

    @classmethod
    def make(cls, x):
        return x.as_subclass(cls)

    @staticmethod
    def plainly(x):
        return x + 1


class Unwraps(torch.Tensor):
    """Computes with plain tensors, and wraps the result."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.as_subclass(torch.Tensor) if isinstance(a, cls) else a for a in args]
        result = func(*plain, **(kwargs or {}))
        return result.as_subclass(cls) if isinstance(result, torch.Tensor) else result


class Duck:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(("duck", name_of(func)))
        plain = [a.tensor if isinstance(a, Duck) else a for a in args]
        return func(*plain, **(kwargs or {})) * 2


class Speaks(Duck):
    def __radd__(self, other):
        return "radd"


class Operators(torch.Tensor):
    def __add__(self, other):
        return "own add"

    def __getitem__(self, key):
        return ("own getitem", key)


class Hooked(torch.Tensor):
    def __getattr__(self, name):
        return "found " + name


def of(cls: Any) -> Any:
    return lambda x: x.as_subclass(cls)


def seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        own = dict(vars(value)) if type(value) is not torch.Tensor else {}
        with torch._C.DisableTorchFunction():
            return type(value).__name__, value.tolist(), value.requires_grad, value.dtype, own
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [seen(item) for item in value]
    return value


def values() -> Any:
    return torch.arange(6.0).reshape(2, 3) - 2


def outcomes(f: Any, makes: Any, grad: bool) -> list[Any]:
    found = []
    for i in range(3):
        LOG.clear()
        x = (values() + i).requires_grad_(grad)
        try:
            result = seen(f(*(make(x) for make in makes)))
        except Exception as error:
            result = type(error), str(error)
        found.append((result, list(LOG)))
    return found


def check(f: Any, *makes: Any, backend: str = "eager", grad: bool = False, whole: bool = True):
    want = outcomes(f, makes, grad)
    compiled = stator.compile(f, backend=backend, fullgraph=whole)
    assert outcomes(compiled, makes, grad) == want
    return compiled


UNARY = {
    "method": lambda x: x.sin(),
    "function": lambda x: torch.cos(x),
    "functional": lambda x: F.relu(x),
    "keywords": lambda x: torch.sum(input=x, dim=0),
    "negative": lambda x: -x,
    "item": lambda x: x[0],
    "item of a tensor": lambda x: x[torch.tensor([1, 0])],
    "right": lambda x: 2 - x,
    "left": lambda x: x / 2,
    "power": lambda x: 2**x,
    "compare": lambda x: x > 1,
    "compare right": lambda x: 1 < x,
    "shape": lambda x: x.shape,
    "dtype": lambda x: (x.dtype, x.device, x.ndim),
    "size": lambda x: x.size(0),
    "length": lambda x: len(x),
    "turned": lambda x: x.T,
    "list": lambda x: torch.cat([x, x]),
    "results": lambda x: torch.max(x, 1),
    "many": lambda x: x.chunk(2),
    "chain": lambda x: (x.sin() + x.cos()).sum(),
    "operator": lambda x: torch.ops.aten.sin(x),
    "overload": lambda x: torch.ops.aten.sin.default(x),
    "getter": lambda x: torch.Tensor.shape.__get__(x),
    "kind": lambda x: (type(x).__name__, isinstance(x, torch.Tensor), isinstance(x, Logs)),
    "copy": lambda x: x.clone().add_(1),
    "detach": lambda x: x.detach(),
    "same": lambda x: (x, x),
    "written": lambda x: x.detach().clone().mul_(2).add_(x),
}


@pytest.mark.parametrize("cls", [Plain, Logs, Unwraps, Scaled], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("name", UNARY)
def test_operations(cls, name):
    if cls is Unwraps and name in ("keywords", "list"):
        pytest.skip("the class calls itself for ever")
    check(UNARY[name], of(cls), whole=name not in ("operator", "overload"))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["functional", "results", "written"])
def test_other_backends(name, backend):
    check(UNARY[name], of(Logs), backend=backend)


BINARY = {
    "add": operator.add,
    "mul": torch.mul,
    "cat": lambda a, b: torch.cat((a, b)),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "equal": operator.eq,
    "item": lambda a, b: a[b.long() % 2],
    "matmul": lambda a, b: a @ b.T,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "left, right",
    [(Logs, Below), (Below, Logs), (torch.Tensor, Logs), (Logs, torch.Tensor), (Below, Below)],
    ids=lambda cls: cls.__name__,
)
def test_the_order_of_two_classes(name, left, right):
    check(BINARY[name], of(left), of(right))


@pytest.mark.parametrize("left, right", [(Logs, Other), (Other, Logs)])
def test_classes_that_know_nothing_of_each_other(left, right):
    check(operator.add, of(left), of(right), whole=False)


def test_who_declines_leaves_it_to_the_base():
    check(lambda a, b: torch.add(a, b), of(Lenient), of(Declines))
    check(lambda a, b: a + b, of(Declines), of(Lenient))


def test_all_decline():
    check(lambda a: a + 1, of(Declines), whole=False)


def test_calls_are_counted_once():
    compiled = check(lambda a: F.relu(a + 1).sum(), of(Logs))
    assert compiled.metrics["traces"] == 1


def test_a_class_put_on_inside():
    check(lambda x: (x.as_subclass(Logs) + 1, x), lambda x: x)
    check(lambda x: x.as_subclass(Plain), lambda x: x)
    check(lambda x: x.as_subclass(torch.Tensor) * 2, of(Logs))
    check(lambda x: torch.Tensor._make_subclass(Plain, x.sin()), lambda x: x)
    check(Scaled.make, lambda x: x)


def test_a_class_put_on_is_another_object():
    def f(x):
        a, b = x.as_subclass(Plain), x.as_subclass(Plain)
        return a is x, a is b, a, b, a.as_subclass(torch.Tensor) is x

    check(f, lambda x: x)
    got = stator.compile(lambda x: (y := x.as_subclass(Plain), y, x), fullgraph=True)(values())
    assert got[0] is got[1] and got[0] is not got[2]


def test_a_class_put_on_shares_memory():
    def f(x):
        s = x.as_subclass(Logs)
        s.add_(1)
        return s, x * 2

    check(f, lambda x: x)
    for backend in ("eager", "aot_eager"):
        x = values()
        out = stator.compile(lambda x: x.as_subclass(Plain), backend=backend)(x)
        out.add_(1)
        assert torch.equal(x, values() + 1)


def test_members_of_a_class():
    check(lambda s: (s.k, s.twice, s.scaled(), s.scaled(by=3)), of(Scaled))
    check(lambda s: (s.make(s), s.plainly(s)), of(Scaled))
    check(lambda s: (getattr(s, "none", 5), hasattr(s, "none")), of(Scaled))


def test_attributes_of_an_input_are_guarded():
    def make(x):
        s = x.as_subclass(Scaled)
        s.k = 7
        return s

    check(lambda s: s.scaled() + s.twice, make)
    compiled = stator.compile(lambda s: s.scaled(), fullgraph=True)
    s = values().as_subclass(Scaled)
    for k in (3, 5, 5):
        s.k = k
        assert torch.equal(compiled(s).as_subclass(torch.Tensor), values() * k)
    assert compiled.metrics["traces"] == 2


def test_attributes_set_inside():
    def f(x):
        s = x.as_subclass(Scaled)
        s.k = 9
        s.note = ["a"]
        return s, s.scaled(), s.twice

    check(f, lambda x: x)

    def g(s):
        s.k = 9
        return s.scaled()

    check(g, of(Scaled))


def test_a_changed_class_is_another_entry():
    def f(x):
        return x + 1, type(x).__name__

    compiled = stator.compile(f, fullgraph=True)
    for cls in (Plain, torch.Tensor, Logs, Plain):
        assert seen(compiled(values().as_subclass(cls))) == seen(f(values().as_subclass(cls)))
    assert compiled.metrics["traces"] == 3


def test_a_replaced_method_is_noticed():
    class Changes(torch.Tensor):
        pass

    compiled = stator.compile(lambda x: x + 1, fullgraph=True)
    x = values().as_subclass(Changes)
    assert torch.equal(compiled(x).as_subclass(torch.Tensor), values() + 1)
    Changes.__torch_function__ = classmethod(lambda *args: "mine")
    assert compiled(x) == "mine"
    Changes.__torch_function__ = torch._C._disabled_torch_function_impl
    assert type(compiled(x)) is torch.Tensor


def test_sizes_may_change():
    compiled = stator.compile(lambda x: x.sin().sum(0), fullgraph=True)
    for n in (2, 3, 4, 5):
        x = torch.ones(n, 3).as_subclass(Unwraps)
        assert seen(compiled(x)) == seen(x.sin().sum(0))
    assert compiled.metrics["traces"] == 2


def test_a_disabled_class_is_plain():
    class Disabled(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    check(lambda x: (x + 1, x.shape, F.relu(x)), of(Disabled))


@pytest.mark.parametrize("make", [Duck, Speaks])
@pytest.mark.parametrize(
    "f",
    [
        lambda d: torch.add(d, 1),
        lambda d: F.relu(d),
        lambda d: torch.ones(3) + d,
        lambda d: torch.cat([torch.ones(2, 3), d]) if False else torch.sum(d, dim=0),
        lambda d: torch.mul(torch.ones(3), d),
    ],
)
def test_objects_that_are_no_tensors(make, f):
    check(f, make)


def test_a_duck_made_inside():
    check(lambda x: torch.add(Duck(x), 1), lambda x: x)


def test_own_operators_are_not_lost():
    check(lambda x: (x + 1, x[0], x * 2), of(Operators), whole=False)


def test_own_getattr():
    check(lambda x: (x.anything, x + 1), of(Hooked), whole=False)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    def f(s):
        return (s.sin() * s).sum()

    for g in (f, stator.compile(f, backend=backend, fullgraph=True)):
        x = torch.nn.Parameter(values())
        s = values().as_subclass(Logs).requires_grad_()
        g(s).backward()
        grad = s.grad
        assert type(grad) is type(torch.ones(1)) or isinstance(grad, torch.Tensor)
        with torch._C.DisableTorchFunction():
            want = (x.sin() * x).sum()
            want.backward()
            assert torch.allclose(grad.as_subclass(torch.Tensor), x.grad)


def test_breaks_within_a_method():
    class Prints(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            LOG.append(len(args))
            if func is torch.Tensor.add:
                print("added")
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        y = x.sin() + 1
        return y.cos(), x.shape

    check(f, of(Prints), whole=False)


def test_a_break_while_functions_are_disabled():
    def f(x):
        with torch._C.DisableTorchFunctionSubclass():
            a = x + 1
            print(type(a).__name__)
            b = x.sin()
        return a, b, x + 1

    check(f, of(Logs), whole=False)
    check(f, lambda x: x, whole=False)


@pytest.mark.parametrize("context", ["DisableTorchFunctionSubclass", "DisableTorchFunction"])
def test_functions_are_disabled_inside(context):
    off = getattr(torch._C, context)

    def f(x):
        with off():
            a, on, all_off = (
                x.sin(),
                torch._C._is_torch_function_enabled(),
                torch._C._is_torch_function_all_disabled(),
            )
        return a, x.sin(), on, all_off, torch._C._is_torch_function_enabled()

    check(f, of(Logs))
    with off():
        check(lambda x: (x + 1, x.shape), of(Logs))


def test_an_exception_of_a_method():
    class Raises(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError(name_of(func))

    def f(x):
        try:
            return x + 1
        except ValueError as error:
            return str(error)

    check(f, of(Raises), whole=False)
    check(lambda x: x + 1, of(Raises), whole=False)


def test_what_a_method_makes_of_it():
    class Says(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, types, len(args), kwargs

    check(lambda x: (x + 1)[1:], of(Says))
    check(lambda x: F.relu(x)[1:], of(Says))
    check(lambda x: torch.add(x, 1, alpha=2)[1:], of(Says))
    check(lambda x: (x + 1)[0] is torch.Tensor.add, of(Says))
    check(lambda x: F.relu(x)[0] is F.relu, of(Says))


def test_functions_that_leave_the_question_to_others():
    check(lambda x: list(x.__iter__()), of(Logs), whole=False)
    check(lambda x: F.tanh(x), of(Logs))
    check(lambda x: F.softmin(x), of(Logs), whole=False)


def test_the_list_that_was_given_arrives():
    class Gives(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return args[0]

    def f(x):
        given = [x, x]
        return torch.cat(given) is given

    check(f, of(Gives))
