# ruff: noqa: E402
"""Hooks of modules: results are those of plain Python, and a module with equal hooks needs no entry
of its own, whatever numbers torch gave to the hooks."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn.modules.module import _global_forward_hooks_with_kwargs, register_module_forward_hook

from tests.tensor.helpers import assert_same, compiled, count


def before(module, args):
    return (args[0] + 1,)


def before_by_name(module, args, kwargs):
    return (args[0] * 2,), kwargs


def after(module, args, output):
    return output * 3


def after_by_name(module, args, kwargs, output):
    return output - 5


def counts(module, args, output):
    return output + len(module._forward_hooks)


def looks(module, args, output):
    return output + list(module._forward_hooks)[0]


def looks_everywhere(module, args, output):
    return output + list(vars(module)["_forward_hooks"])[0]


def breaks(module, args, output):
    torch._dynamo.graph_break()
    return output * 2


def plain(layer):
    layer.register_forward_pre_hook(before)
    layer.register_forward_hook(after)


def by_name(layer):
    layer.register_forward_pre_hook(before_by_name, with_kwargs=True)
    layer.register_forward_hook(after_by_name, with_kwargs=True)


def second_by_name(layer):
    layer.register_forward_hook(after)
    layer.register_forward_hook(after_by_name, with_kwargs=True)


def first_by_name(layer):
    layer.register_forward_hook(after)
    layer.register_forward_hook(after_by_name, with_kwargs=True, prepend=True)


def always(layer):
    layer.register_forward_hook(after, always_call=True)


def in_backward(layer):
    layer.register_full_backward_hook(lambda module, given, made: tuple(g * 2 for g in given))


def of_a_number(layer):
    layer.register_forward_hook(looks)


def of_a_number_by_vars(layer):
    layer.register_forward_hook(looks_everywhere)


def with_a_count(layer):
    layer.register_forward_hook(counts)


def with_a_break(layer):
    layer.register_forward_hook(breaks, always_call=True)
    layer.register_forward_hook(after_by_name, with_kwargs=True)


KINDS = [plain, by_name, second_by_name, first_by_name, always]
SEEN = [in_backward, of_a_number, of_a_number_by_vars, with_a_count, with_a_break]


def layers(kinds):
    made = [nn.Linear(3, 3) for _ in kinds]
    for layer, kind in zip(made, kinds, strict=True):
        kind(layer)
    return made


def call(layer, x):
    return layer(x)


def outcome(function, layer):
    x = torch.linspace(0, 1, 6).view(2, 3).requires_grad_()
    result = function(layer, x)
    result.sin().sum().backward()
    return result, x.grad


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_equal_hooks_need_one_entry(kind):
    fast = compiled(call)
    for layer in layers([kind] * 4):
        assert_same(outcome(fast, layer), outcome(call, layer))
    assert count(fast) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_entry_fits_no_other_hooks(backend):
    for other in KINDS + SEEN:
        fast = compiled(call, backend, fullgraph=False)
        for layer in layers([plain, other, other, plain, second_by_name, first_by_name]):
            assert_same(outcome(fast, layer), outcome(call, layer))


def test_hooks_that_change_between_calls():
    (layer,) = layers([plain])
    fast, kept = compiled(call), []
    for kind in (None, second_by_name, by_name):
        if kind is not None:
            kind(layer)
        kept.append(layer.register_forward_hook(after_by_name, with_kwargs=True))
        assert_same(outcome(fast, layer), outcome(call, layer))
    for handle in kept:
        handle.remove()
        assert_same(outcome(fast, layer), outcome(call, layer))


def test_a_copy_whose_hooks_have_the_same_numbers():
    (first,) = layers([second_by_name])
    second = copy.deepcopy(first)
    second._forward_hooks_with_kwargs.clear()
    second._forward_hooks_with_kwargs[next(iter(second._forward_hooks))] = True
    second._forward_hooks[next(iter(second._forward_hooks))] = after_by_name
    second._forward_hooks[list(second._forward_hooks)[1]] = after

    def both(a, b, x):
        return b(a(x))

    x, fast = torch.ones(2, 3), compiled(both)
    for pair in ((first, first), (first, second), (second, first), *[layers([plain] * 2)]):
        assert_same(fast(*pair, x), both(*pair, x))


def test_a_hook_of_all_modules_beside():
    made, fast, x = layers([plain, by_name] * 2), compiled(call), torch.ones(2, 3)
    handle = register_module_forward_hook(after_by_name, with_kwargs=True)
    try:
        for layer in made:
            assert_same(fast(layer, x), call(layer, x))
    finally:
        handle.remove()
        _global_forward_hooks_with_kwargs.clear()  # torch forgets to, and shortcuts look there
    for layer in made:
        assert_same(fast(layer, x), call(layer, x))
