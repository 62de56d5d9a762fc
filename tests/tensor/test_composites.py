"""Composites: tensors whose class has `__torch_dispatch__`, and which hold other tensors. They are
traced, and give what plain Python gives."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.utils._pytree as pytree  # noqa: E402
from helpers import Recorder, count  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402

import stator  # noqa: E402

BACKENDS = ["eager", "aot_eager"]
FACTOR = 1.0
LOG: list[Any] = []


class Scaled(torch.Tensor):
    """Holds small ints and a scale, as quantized weights do. `k` is read when operations run."""

    offset = 0.0

    @staticmethod
    def __new__(cls, data, scale, k=1):
        return torch.Tensor._make_wrapper_subclass(
            cls, data.shape, dtype=scale.dtype, device=data.device
        )

    def __init__(self, data, scale, k=1):
        self.data_, self.scale, self.k = data, scale, k

    def __repr__(self):
        return "Scaled"

    def __tensor_flatten__(self):
        return ["data_", "scale"], (self.k,)

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(inner["data_"], inner["scale"], *context)

    def plain(self):
        k = self.k if isinstance(self.k, int) else self.k.value
        return self.data_.to(self.scale.dtype) * self.scale * k * FACTOR + self.offset

    def set(self, k):
        self.k = k

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, cls.plain, (args, kwargs or {}))
        return func(*args, **kwargs)


class Config:
    def __init__(self, value):
        self.value = value


class Slots(torch.Tensor):
    __slots__ = ("held",)

    @staticmethod
    def __new__(cls, held):
        self = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, requires_grad=held.requires_grad
        )
        self.held = held
        return self

    def __repr__(self):
        return "Slots"

    def __tensor_flatten__(self):
        return ["held"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(inner["held"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, lambda s: s.held, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, cls, func(*args, **kwargs))


class Counts(Slots):
    seen = 0

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Counts.seen += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


class Logs(Slots):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return super().__torch_dispatch__(func, types, args, kwargs)


class Sets(Scaled):
    """Its operations change their argument."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if isinstance(args[0], Sets):
            args[0].k += 1
        return super().__torch_dispatch__(func, types, args, kwargs)


class Asks(Slots):
    """Has both methods."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.nn.functional.linear:
            return torch.nn.functional.linear(args[0].held, args[1]) * 2
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Forgets(Slots):
    """What is made of its parts is of another class."""

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return Slots(inner["held"])


class Opaque(torch.Tensor):
    """Does not say what it holds."""

    @staticmethod
    def __new__(cls, held):
        self = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        self.held = held
        return self

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(cls, lambda s: s.held, (args, kwargs or {}))
        return func(*args, **kwargs)


def values(*shape: int) -> Any:
    return (torch.arange(6.0) - 2).reshape(shape or (2, 3))


def scaled(k: Any = 1, cls: Any = Scaled) -> Any:
    return cls(values().to(torch.int8), torch.tensor(0.5), k)


def two() -> Any:
    return TwoTensor(values(), values() + 1)


def needing() -> Any:
    return two().requires_grad_()


def seen(value: Any) -> Any:
    if isinstance(value, TwoTensor):
        return "TwoTensor", seen(value.a), seen(value.b), value.requires_grad
    if isinstance(value, (Slots, Opaque)):
        return type(value).__name__, seen(value.held), value.requires_grad
    if isinstance(value, Scaled):
        k = value.k.value if isinstance(value.k, Config) else value.k
        return "Scaled", value.data_.tolist(), value.scale.tolist(), k
    if isinstance(value, torch.Tensor):
        return type(value).__name__, value.tolist(), value.dtype, value.requires_grad
    return [seen(item) for item in value] if isinstance(value, (tuple, list)) else value


def written(t):
    t.add_(1)
    return t * 2, t


def held_and_written(t):
    a = t.a
    t.add_(1)
    return a + 1, t, t.b


def written_within(t):
    t.a.add_(1)
    return t + 0, t.a


def made(x):
    y = x.sin()
    t = TwoTensor(y, y + 1)
    return (t * 2).a + x, t


def made_of_an_input(x):
    t = TwoTensor(x, x + 1)
    t.mul_(2)
    return t, x


def a_break(t):
    y = t.sin()
    stator.graph_break()
    return y * t.a, y


# What a program does to one, and what it is given. In one graph, if nothing else is said.
PROGRAMS: dict[str, Any] = {
    "methods": (lambda t: (t.sin(), t.sum(), t.t(), t.view(3, 2)), two),
    "operators": (lambda t: (t + 1, 2 * t, -t, t @ t.t(), t > 1, t[0], t[:, 1:]), two),
    "functions": (lambda t: (torch.cat([t, t]), torch.relu(t), torch.split(t, 1)), two),
    "metadata": (lambda t: (t.shape, t.dtype, t.device, t.ndim, t.size(0), t.requires_grad), two),
    "stride": (lambda t: (t.stride(), t.is_contiguous(), t.numel()), two),
    "length": (lambda t: (len(t), [row * 2 for row in t]), two),
    "class": (
        lambda t: (type(t).__name__, isinstance(t, TwoTensor), type(t.sin()) is type(t)),
        two,
    ),
    "within": (lambda t: (t.a + t.b, t.a is t.a, t.get_elem_a() * 2), two),
    "within a result": (lambda t: (t.sin().a, (t + 1).b.shape), two),
    "given back": (lambda t: (t, [t], t.a), two),
    "with a plain tensor": (lambda t, x: (t + x, x * t, x + 1), two, values),
    "within one another": (lambda t: (t.sin(), t.a.cos(), t.a.a), lambda: TwoTensor(two(), two())),
    "another class": (lambda s: (s.sin(), s + 1, s.plain(), s.k, s.scale), scaled),
    "a config": (lambda s: (s.sin(), s.k.value), lambda: scaled(Config(3))),
    "slots": (lambda s: (s.sin(), s.held, (s + 1).held), lambda: Slots(values())),
    "both methods": (
        lambda s, w: (s.sin(), torch.nn.functional.linear(s, w)),
        lambda: Asks(values()),
        lambda: values(2, 3),
    ),
    "no gradients": (lambda t: (t.detach(), (t * 2).detach()), needing),
    "gradients": (lambda t: ((t * 2).requires_grad, t.is_leaf), needing),
    "written": (written, two),
    "held and written": (held_and_written, two, False),
    "written within": (written_within, two, False),
    "made": (made, values),
    "made of an input": (made_of_an_input, values),
    "a break": (a_break, two, False),
    "forgets": (lambda s: (s.sin(), type(s + 1).__name__), lambda: Forgets(values()), False),
    "opaque": (lambda o: o.sin(), lambda: Opaque(values()), False),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_gives_the_same(program, backend):
    f, *makes = PROGRAMS[program]
    whole = makes[-1] is not False
    makes = makes if whole else makes[:-1]
    fast = stator.compile(f, backend=backend, fullgraph=whole)
    for _ in range(3):
        given, plain = [make() for make in makes], [make() for make in makes]
        assert seen(fast(*given)) == seen(f(*plain))
        assert seen(given) == seen(plain)
    if whole:
        assert count(fast) == 1


def test_is_compiled_by_inductor():
    fast = stator.compile(lambda t, x: (t.sin() + x, t.a * 2), backend="inductor", fullgraph=True)
    for _ in range(2):
        assert seen(fast(two(), values())) == seen(((two().sin() + values()), two().a * 2))


def test_the_graph():
    seen_by = Recorder()
    stator.compile(lambda t, x: (t.sin() + x, t.a + 1), backend=seen_by, fullgraph=True)(
        two(), values()
    )
    [module] = seen_by.graphs
    nodes = {node.name: node for node in module.graph.nodes}
    inputs = [node.name for node in module.graph.find_nodes(op="placeholder")]
    assert inputs == ["l_t_", "l_t_a", "l_x_"]
    example = nodes["l_t_"].meta["example_value"]
    assert type(example) is TwoTensor and type(nodes["sin"].meta["example_value"]) is TwoTensor
    assert type(example.a).__name__ == "FakeTensor"
    assert isinstance(seen_by.examples[0][0], TwoTensor)


def test_a_class_is_a_target():
    seen_by = Recorder()
    stator.compile(lambda x: TwoTensor(x, x) + 1, backend=seen_by, fullgraph=True)(values())
    assert TwoTensor in [node.target for node in seen_by.graphs[0].graph.nodes]


# -- guards --


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_changed_attribute_is_another_entry(backend):
    fast = stator.compile(lambda s: s * 1.0, backend=backend, fullgraph=True)
    s = scaled()
    for k in (1, 3, 3, 1):
        s.k = k
        assert torch.equal(fast(s), s.plain())
    assert count(fast) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_so_is_a_changed_object_within(backend):
    fast = stator.compile(lambda s: s * 1.0, backend=backend, fullgraph=True)
    s = scaled(Config(2))
    for k in (2, 3, 2):
        s.k.value = k
        assert torch.equal(fast(s), s.plain())
        assert torch.equal(fast(scaled(Config(k))), s.plain())
    assert count(fast) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_so_is_another_dtype_or_size_within(backend):
    fast = stator.compile(lambda t: t.sin() + 1, backend=backend, fullgraph=True)
    for dtype in (torch.float32, torch.float64, torch.float32):
        t = TwoTensor(values().to(dtype), values().to(dtype))
        assert seen(fast(t)) == seen(t.sin() + 1)
    assert count(fast) == 2
    for shape in ((3, 2), (6, 1), (3, 2)):
        t = TwoTensor(values(*shape), values(*shape))
        assert seen(fast(t)) == seen(t.sin() + 1)


def test_another_dtype_of_only_what_is_within():
    fast = stator.compile(lambda s: s + 1, fullgraph=True, backend="aot_eager")
    for dtype in (torch.int8, torch.int16, torch.int8):
        s = Scaled(values().to(dtype), torch.tensor(0.5))
        assert torch.equal(fast(s), s.plain() + 1)
    assert count(fast) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_its_code_reads_elsewhere(backend, monkeypatch):
    fast = stator.compile(lambda s: s + 1, fullgraph=True, backend=backend)
    s = scaled()
    for factor, offset in ((1.0, 0.0), (2.0, 0.0), (2.0, 1.0)):
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", factor)
        monkeypatch.setattr(Scaled, "offset", offset)
        assert torch.equal(fast(s), s.plain() + 1)


def test_another_method_of_the_class(monkeypatch):
    fast = stator.compile(lambda s: s + 1, fullgraph=True, backend="aot_eager")
    s = scaled()
    assert torch.equal(fast(s), s.plain() + 1)
    given = Scaled.__dict__["__torch_dispatch__"]

    def dispatch(cls, func, types, args=(), kwargs=None):
        return given.__func__(cls, func, types, args, kwargs) * 10

    monkeypatch.setattr(Scaled, "__torch_dispatch__", classmethod(dispatch))
    assert torch.equal(fast(s), (s.plain() + 1) * 10)


def test_no_code_of_the_class_runs_in_guards():
    fast = stator.compile(lambda s: s.k, backend="eager", fullgraph=True)
    s, calls = scaled(), []
    fast(s)
    sys.setprofile(lambda frame, event, arg: calls.append(frame.f_code.co_name))
    try:
        fast(s)
    finally:
        sys.setprofile(None)
    assert not {"__tensor_flatten__", "__torch_dispatch__"} & set(calls)


def test_marks_on_sizes():
    fast = stator.compile(lambda t: t.sin() + 1, backend="eager", fullgraph=True)
    t = two()
    torch._dynamo.mark_dynamic(t, 0)
    for given in (t, two()):
        assert seen(fast(given)) == seen(two().sin() + 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_that_shares_memory_with_another_input(backend):
    def f(t, x):
        x.add_(1)
        return t * 2

    fast = stator.compile(f, backend=backend)
    for shared in (False, True, False, True):
        results = []
        for call in (fast, f):
            x = values()
            t = TwoTensor(x if shared else x.clone(), values())
            results.append((seen(call(t, x)), seen(t), seen(x)))
        assert results[0] == results[1]


# -- what is set --


def test_an_attribute_that_is_set_is_seen_by_later_operations():
    def by_attribute(s):
        s.k = 9
        return s.sin()

    def by_method(s):
        s.set(9)
        return s.sin()

    def by_dict(s):
        s.__dict__["k"] = 9
        return s.sin()

    def deeper(s):
        s.k.value = 9
        return s.sin()

    for f in (by_attribute, by_method, by_dict, deeper):
        for backend in BACKENDS:
            make = (lambda: scaled(Config(2))) if f is deeper else scaled
            s, want = make(), f(make())
            for _ in range(2):
                assert torch.equal(stator.compile(f, backend=backend)(s), want)
            assert (s.k.value if f is deeper else s.k) == 9


def test_an_attribute_of_a_result_is_set():
    def f(t):
        y = t.sin()
        y.note = 3
        return y, y.note

    fast = stator.compile(f, backend="eager")
    for _ in range(2):
        y, note = fast(two())
        assert y.note == note == 3 and seen(y) == seen(two().sin())


@pytest.mark.parametrize("backend", BACKENDS)
def test_code_with_effects_runs_as_often_as_in_plain_python(backend):
    def f(t):
        return t.sin() + 1

    for cls in (Counts, Logs):
        fast = stator.compile(f, backend=backend)
        for _ in range(3):
            LOG.clear()
            Counts.seen = 0
            want, plain = seen(f(cls(values()))), (list(LOG), Counts.seen)
            LOG.clear()
            Counts.seen = 0
            assert seen(fast(cls(values()))) == want
            assert (list(LOG), Counts.seen) == plain


@pytest.mark.parametrize("backend", BACKENDS)
def test_operations_that_change_their_argument(backend):
    fast = stator.compile(lambda s: (s + 1, s + 1), backend=backend)
    s, plain = scaled(cls=Sets), scaled(cls=Sets)
    for _ in range(3):
        assert seen(fast(s)) == seen((plain + 1, plain + 1))
        assert s.k == plain.k


# -- gradients --


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_training_of_a_module_with_such_a_weight(backend):
    def run(compile):
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 2)
        weight = layer.weight.detach()
        layer.weight = torch.nn.Parameter(TwoTensor(weight.clone(), weight.clone() + 1))
        call = compile(layer)
        results = []
        for i in range(3):
            loss = call(values() + i).sum()
            loss.backward()
            results.append((loss.detach(), layer.weight.grad, layer.bias.grad))
            with torch.no_grad():
                for p in layer.parameters():
                    p.sub_(p.grad * 0.1)
                    p.grad = None
        return pytree.tree_leaves(pytree.tree_map_only(TwoTensor, lambda t: (t.a, t.b), results))

    got = run(lambda m: stator.compile(m, backend=backend, fullgraph=True))
    for mine, plain in zip(got, run(lambda m: m), strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_what_is_within(backend):
    def f(t, x):
        return (t * x).sum() + (t.a * x).sum()

    def run(f):
        t, x = needing(), values().requires_grad_()
        f(t, x).backward(TwoTensor(torch.ones(()), torch.ones(())))
        return seen(t.grad), seen(x.grad)

    assert run(stator.compile(f, backend=backend)) == run(f)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_new_one_that_requires_a_gradient(backend):
    def f(x):
        t = TwoTensor(x, x * 1)
        return t, t.sin()

    fast = stator.compile(f, backend=backend)
    for _ in range(2):
        mine, plain = fast(values().requires_grad_()), f(values().requires_grad_())
        assert seen(mine) == seen(plain)
        assert [y.is_leaf for y in mine] == [y.is_leaf for y in plain]


# -- refusals --


@pytest.mark.parametrize(
    "f, make, text",
    [
        (lambda o: o.sin(), lambda: Opaque(values()), "__tensor_flatten__"),
        (lambda s: s.set(3), scaled, "an attribute of a Scaled"),
        (lambda s: vars(s), scaled, "__dict__ of a Scaled"),
        (lambda t: float(t.sum()), two, ""),
    ],
)
def test_says_why(f, make, text):
    with pytest.raises(stator.Unsupported, match=text):
        stator.compile(f, backend="eager", fullgraph=True)(make())


def test_sizes_are_left_to_no_backend():
    """Those of the tensors within are plain numbers, too, where the graph is for this call's sizes."""
    given = []

    def forward(module, examples):
        given.extend(examples)
        return module

    fast = stator.compile(lambda t: t.detach(), backend=aot_autograd(fw_compiler=forward))
    assert seen(fast(two())) == seen(two())
    assert [type(example.shape[0]) for example in given] == [int, int]
