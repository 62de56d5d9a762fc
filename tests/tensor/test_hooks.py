# ruff: noqa: E402
"""Hooks, kept gradients and what else asks for a tensor's place in autograd's graph."""

import copy
import functools

import pytest

torch = pytest.importorskip("torch")

from torch.utils.hooks import RemovableHandle

from stator import _engine
from stator._versions import private
from tests.tensor.helpers import Recorder, assert_same, compiled

BACKENDS = ("eager", "aot_eager")


def scaled(factor):
    return lambda grad: grad * factor


def plus(grad, k):
    return grad + k


class Counter:
    def __init__(self):
        self.count = 0

    def seen(self, grad):
        self.count += 1
        return grad * self.count


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(1, 2, 4))
        self.handle = None

    def forward(self, x):
        if self.handle is None:
            self.handle = self.weight.register_hook(scaled(3))
        return x * self.weight


# -- programs: x is a leaf, m (by a product) is none, w is a parameter --


def on_input(x, m, w, log):
    x.register_hook(lambda grad: grad * 2)
    return (x * w).sum()


def on_input_that_is_no_leaf(x, m, w, log):
    y = m * w
    m.register_hook(scaled(2))
    return (y + m).sum()


def on_parameter(x, m, w, log):
    h = w.register_hook(lambda grad: log.append(grad.clone()))
    return (x * w).sum(), h


def in_order(x, m, w, log):
    a = x.register_hook(scaled(2))
    b = x.register_hook(functools.partial(plus, k=1))
    log.append((a is b, a == b, a in [b, a], isinstance(a, RemovableHandle)))
    return (x * w).sum(), a, b


def same_hook_twice(x, m, w, log):
    hook = scaled(3)
    return (x * w).sum(), x.register_hook(hook), x.register_hook(hook=hook)


def in_a_loop(x, m, w, log):
    handles = []
    for k in range(3):
        handles.append(w.register_hook(functools.partial(plus, k=k)))
    return (x * w).sum(), handles


def removed(x, m, w, log):
    a = x.register_hook(scaled(2))
    y = x * w
    a.remove()
    b = x.register_hook(scaled(5))
    a.remove()
    return y.sum(), a, b


def removed_by_with(x, m, w, log):
    with x.register_hook(scaled(2)) as handle:
        y = x * w
    return y.sum(), handle


def removes_itself(x, m, w, log):
    def hook(grad):
        handle.remove()
        return grad * 3

    handle = x.register_hook(hook)
    return (x * w).sum()


def stored(x, m, w, log):
    log.append(x.register_hook(scaled(2)))
    log.append({"handle": log[0]})
    return (x * w).sum()


def writes_a_list(x, m, w, log):
    seen = []

    def hook(grad):
        seen.append(len(log))
        log.append(grad.sum().item())

    x.register_hook(hook)
    return (x * w).sum(), seen


def holds_an_intermediate(x, m, w, log):
    y = x.sin()
    x.register_hook(lambda grad: grad + y.detach())
    return (y * w).sum()


def bound_method(x, m, w, log):
    counter = Counter()
    x.register_hook(counter.seen)
    x.register_hook(counter.seen)
    return (x * w).sum(), lambda: counter.count


def after_accumulation(x, m, w, log):
    def hook(tensor):
        log.append(tensor.grad.clone())
        tensor.grad.mul_(5)

    handle = x.register_post_accumulate_grad_hook(hook)
    other = w.register_post_accumulate_grad_hook(hook)
    other.remove()
    return (x * w).sum(), handle, other


def after_accumulation_of_no_leaf(x, m, w, log):
    try:
        m.register_post_accumulate_grad_hook(print)
    except RuntimeError as error:
        log.append(str(error))
    return (m * w).sum()


def without_gradient(x, m, w, log):
    with torch.no_grad():
        x.register_hook(scaled(2))
        y = x * w
    try:
        y.register_hook(scaled(3))
    except RuntimeError as error:
        log.append(str(error))
    return (x * w).sum()


def misused(x, m, w, log):
    for wrong in (
        lambda: x.register_hook(),
        lambda: x.register_hook(1, 2),
    ):
        try:
            wrong()
        except TypeError as error:
            log.append(str(error))
    return (x * w).sum()


def on_intermediate(x, m, w, log):
    y = x * w
    z = y + 1
    y.register_hook(scaled(2))
    return (z + y * 3).sum()


def on_intermediate_not_used_before(x, m, w, log):
    y = x * w
    other = x.sin()
    handle = y.register_hook(scaled(2))
    return (y * 3 + other).sum(), y, handle


def on_intermediate_of_a_callee(x, m, w, log):
    def inner(x):
        y = x * w
        return y, y + 1

    y, z = inner(x)
    y.register_hook(lambda grad: None)
    y.register_hook(scaled(2))
    return (z * y).sum()


def on_intermediate_and_removed(x, m, w, log):
    y = x * w
    z = y.sin()
    handle = y.register_hook(scaled(2))
    kept = y.register_hook(scaled(3))
    handle.remove()
    return (y * z).sum(), handle, kept


def on_view(x, m, w, log):
    row = x[1]
    row.register_hook(scaled(2))
    return (row * w).sum() + x.sum()


def on_part_of_a_split(x, m, w, log):
    parts = x.split(2)
    whole = torch.cat(parts)
    parts[0].register_hook(lambda grad: grad + 1)
    return whole.sum() + parts[0].sum()


def before_and_after_a_write(x, m, w, log):
    m.register_hook(scaled(2))
    m.mul_(2)
    m.register_hook(functools.partial(plus, k=7))
    return (m * 3 * w).sum()


def before_and_after_a_write_to_an_intermediate(x, m, w, log):
    y = x * w
    y.register_hook(scaled(2))
    y.add_(1)
    y.mul_(2)
    y.register_hook(functools.partial(plus, k=7))
    return (y * 3).sum()


def after_a_write_and_a_use(x, m, w, log):
    m.add_(1)
    y = m * 3
    m.register_hook(scaled(2))
    return (y * m * w).sum()


def before_a_write_to_a_view(x, m, w, log):
    row = m[0]
    m.register_hook(scaled(2))
    row.mul_(2)
    return (m * w).sum()


def before_detaching(x, m, w, log):
    y = x * w
    y.register_hook(scaled(2))
    z = y * 2
    y.detach_()
    return (z + y).sum()


def around_a_break(x, m, w, log):
    with x.register_hook(scaled(2)):
        y = x * w
        handle = y.register_hook(scaled(3))
        torch._dynamo.graph_break()
        z = y * x
    handle.remove()
    return z.sum(), x.register_hook(scaled(5)), handle


def around_backward(x, m, w, log):
    x.register_hook(scaled(2))
    (x * w).sum().backward()
    log.append(x.grad.clone())
    x.register_hook(functools.partial(plus, k=1))
    return (x * w).sum()


def then_raises(x, m, w, log):
    log.append(x.register_hook(scaled(2)))
    y = x * w
    if len(log) == 1:
        raise ValueError("after the hook")
    return y.sum()


def looks_at_the_handle(x, m, w, log):
    handle = x.register_hook(scaled(2))
    log.append((type(handle.id), handle.hooks_dict_ref() is x._backward_hooks))
    return (x * w).sum(), sorted(vars(handle))


def writes_to_the_handle(x, m, w, log):
    handle = x.register_hook(scaled(2))
    handle.name = "mine"
    return (x * w).sum(), handle, sorted(vars(handle))


def copies_the_handle(x, m, w, log):
    handle = x.register_hook(scaled(2))
    copy.copy(handle).remove()
    return (x * w).sum(), handle


def looks_at_the_hooks(x, m, w, log):
    kept = x.register_hook(scaled(2))
    torch._dynamo.graph_break()
    x.register_hook(scaled(3))
    log.append(len(kept.hooks_dict_ref()))
    kept.remove()
    log.append(len(kept.hooks_dict_ref()))
    return (x * w).sum()


def removes_what_came_from_outside(x, m, w, log):
    handle = x.register_hook(scaled(2))
    torch._dynamo.graph_break()
    y = x * w
    handle.remove()
    return y.sum(), handle


def keeps_gradient(x, m, w, log):
    y = x * w
    z = y * 2
    y.retain_grad()
    log.append(y.retains_grad)
    (y * z).sum().backward(retain_graph=True)
    log.append(y.grad.clone())
    return (y + z).sum()


def keeps_gradient_of_inputs(x, m, w, log):
    m.retain_grad()
    x.retain_grad()
    return (m * w * x).sum(), lambda: m.grad


def derives_by_an_intermediate(x, m, w, log):
    y = x * w
    z = (y * y).sum()
    (grad,) = torch.autograd.grad(z, [y], retain_graph=True)
    other = torch.autograd.grad(outputs=z, inputs=y, retain_graph=True)[0]
    return (grad * x + other).sum() + z


def asks_for_history(x, m, w, log):
    y = x * w
    z = y + 1
    y.grad_fn.register_hook(lambda inputs, outputs: log.append(outputs[0].clone()))
    return (y * z).sum()


def detaches_an_input(x, m, w, log):
    m.detach_()
    return (m * w).sum(), m.requires_grad, m.is_leaf


def in_a_module(x, m, w, log):
    module = Scaled()
    y = module(x).sum() + module(x).sum()
    return y, module.handle, module.weight


PROGRAMS = [value for value in list(globals().values())
            if getattr(value, "__code__", None) and value.__code__.co_varnames[:4] == ("x", "m", "w", "log")]  # fmt: skip


# -- running them --


def plain(value):
    """With handles as what they stand for, and what functions say."""
    if isinstance(value, RemovableHandle):
        hooks = value.hooks_dict_ref()
        at = list(hooks).index(value.id) if hooks is not None and value.id in hooks else None
        return "handle", sorted(vars(value)), at
    if isinstance(value, (list, tuple)):
        return type(value)(plain(item) for item in value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return plain(value()) if callable(value) else value


def outcome(function, derive=True):
    x = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    w = torch.nn.Parameter(torch.linspace(1, 3, 16).reshape(4, 4))
    m, log = x * 2, []
    try:
        result = function(x, m, w, log)
    except ValueError as error:
        result = str(error)
    loss = result[0] if isinstance(result, tuple) else result
    if isinstance(loss, torch.Tensor):
        loss.backward(retain_graph=True)
        loss.backward()
    else:
        (x * 1).sum().backward()
    return plain([result, x.grad, w.grad, log, list(x._backward_hooks or ()) != []])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_eager(program, backend):
    want = outcome(program)
    fast = compiled(program, backend, fullgraph=False)
    for _ in range(3):
        assert_same(outcome(fast), want)


WHOLE = [on_input, on_input_that_is_no_leaf, on_parameter, in_order, same_hook_twice, in_a_loop,
         removed, removed_by_with, removes_itself, stored, writes_a_list, holds_an_intermediate,
         bound_method, after_accumulation, keeps_gradient_of_inputs]  # fmt: skip
INTERMEDIATE = [on_intermediate, on_intermediate_of_a_callee, on_intermediate_and_removed, on_view,
                on_part_of_a_split, on_intermediate_not_used_before]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_hooks_of_what_comes_from_outside_need_no_break(program, backend):
    fast = compiled(program, backend)
    assert_same(outcome(fast), outcome(program))
    assert_same(outcome(fast), outcome(program))
    assert fast.metrics["entries"] == 1


@pytest.mark.parametrize("program", INTERMEDIATE, ids=lambda program: program.__name__)
def test_hooks_of_intermediates_need_no_break_in_eager(program):
    fast = compiled(program)
    assert_same(outcome(fast), outcome(program))
    assert fast.metrics["entries"] == 1


@pytest.mark.parametrize("program", INTERMEDIATE, ids=lambda program: program.__name__)
def test_an_intermediate_is_hooked_between_two_graphs(program):
    recorder = Recorder()
    fast = compiled(program, recorder, fullgraph=False)
    assert_same(outcome(fast), outcome(program))
    in_the_graph = program in (on_intermediate, on_view, on_part_of_a_split)
    if in_the_graph and private.register_hook_op is not None:
        assert len(recorder.graphs) == 1
        return
    assert len(recorder.graphs) == 2
    (first, *_) = fast.metrics["breaks"]
    assert "HOOK" in first or "a hook in the graph" in first or "HIGHER_ORDER" in first


def test_a_hook_is_this_calls_own():
    def f(x, hook):
        x.register_hook(hook)
        return x * 2

    fast, x = compiled(f), torch.ones(2, requires_grad=True)
    for factor in (2, 3):
        x.grad, x._backward_hooks = None, None
        fast(x, scaled(factor)).sum().backward()
        assert x.grad.tolist() == [2.0 * factor] * 2
    assert fast.metrics["entries"] == 1


def test_leafness_is_guarded():
    def f(x):
        x.register_post_accumulate_grad_hook(lambda tensor: None)
        return x * 2

    fast, x = compiled(f, fullgraph=False), torch.ones(2, requires_grad=True)
    fast(x)
    with pytest.raises(RuntimeError, match="leaf"):
        fast(x * 1)


def test_one_tensor_in_two_places():
    def f(a, b):
        a.register_hook(scaled(2))
        b.register_hook(functools.partial(plus, k=1))
        return a * b

    fast = compiled(f, fullgraph=False)
    for same in (False, True, False):
        results = []
        for function in (f, fast):
            a = torch.ones(2, requires_grad=True)
            b = a if same else torch.ones(2, requires_grad=True)
            function(a, b).sum().backward()
            results.append([a.grad, b.grad])
        assert_same(*results)


@pytest.mark.parametrize(
    "program",
    [in_order, removed, removes_itself, on_intermediate_and_removed, around_a_break, in_a_loop],
    ids=lambda program: program.__name__,
)
def test_breaks_anywhere(program):
    want, at, longest = outcome(program), 1, 1
    while at <= longest:
        settings = _engine.compiler(None, RuntimeError, False, True, 8, break_at=at)
        fast = _engine.compiled(program, settings)
        for _ in range(2):
            assert_same(outcome(fast), want)
        longest = max(longest, fast.metrics["longest"])
        at += 3


def test_letting_go_of_a_handle_is_no_break():
    def f(x, handles):
        handle = handles.pop()
        torch._dynamo.graph_break()
        y = x * 2
        del handle
        return y + 1

    x = torch.ones(2, requires_grad=True)
    recorder = Recorder()
    fast = compiled(f, recorder, fullgraph=False)
    assert_same(fast(x, [x.register_hook(scaled(2))]), f(x, [x.register_hook(scaled(2))]))
    assert len(recorder.graphs) == 1
