# ruff: noqa: E402
"""Programs that give a tensor other memory or another place in autograd's graph: `x.data = …`,
`requires_grad = …`, `set_`, `resize_`, `detach_`. Values, gradients, shared memory, identity and (by
replay) versions are those of plain Python."""

import pytest

torch = pytest.importorskip("torch")

from tests.tensor.helpers import compiled, count

# -- programs: x is plain, p a parameter, v a view of b --


def data_of_param(x, p, b, v):
    p.data = x * 2
    return p * 3


def data_of_param_input(x, p, b, v):
    p.data = x
    return p * 3


def data_of_plain(x, p, b, v):
    x.data = x * 2
    return x + 1


def data_of_view(x, p, b, v):
    v.data = torch.ones(2, 3)
    v.add_(1)
    return v * 1, b * 1


def data_of_mid(x, p, b, v):
    y = x * 2
    y.data = torch.ones(2, 3)
    return y + 1


def data_other_shape(x, p, b, v):
    x.data = torch.ones(4)
    return x.shape[0] + x.sum()


def data_after_use(x, p, b, v):
    y = p * 2
    p.data = x + 1
    return y + p


def data_add(x, p, b, v):
    p.data.add_(1)
    return p * 2


def data_sub_lr(x, p, b, v):
    p.data = p.data - 0.1 * x
    return p.sum()


def data_swap(x, p, b, v):
    t = p.data
    p.data = x.data
    x.data = t
    return p + x


def data_aliased(x, p, b, v):
    p.data = x
    x.add_(1)
    return p * 2


def data_same_twice(x, p, b, v):
    p.data = x
    p.data = x * 3
    return p * 2


def rg_attr_mid(x, p, b, v):
    y = x * 2
    y.requires_grad = True
    return y * 3


def rg_attr_input(x, p, b, v):
    x.requires_grad = True
    return x * 3


def rg_attr_input_off(x, p, b, v):
    p.requires_grad = False
    return p * 3


def rg_call_input(x, p, b, v):
    x.requires_grad_()
    return (x * 3).sum()


def rg_call_input_off(x, p, b, v):
    p.requires_grad_(False)
    return p * x


def rg_off_on(x, p, b, v):
    p.requires_grad_(False)
    y = p * 2
    p.requires_grad_(True)
    return y + p


def rg_mid_notout(x, p, b, v):
    y = (x * 2).requires_grad_()
    return y.requires_grad, (y * 2).detach()


def rg_mid_out(x, p, b, v):
    y = (x * 2).requires_grad_()
    return y


def rg_after_detach(x, p, b, v):
    return (p * 2).detach().requires_grad_()


def rg_view(x, p, b, v):
    v.requires_grad_()
    return v * 2


def rg_nonleaf_off(x, p, b, v):
    y = p * 2
    y.requires_grad_(False)
    return y


def rg_same(x, p, b, v):
    p.requires_grad = True
    x.requires_grad = False
    return p * x


def set_other(x, p, b, v):
    x.set_(torch.ones(2, 3))
    return x + 1


def set_input(x, p, b, v):
    x.set_(b)
    x.add_(1)
    return b * 1


def set_mid(x, p, b, v):
    y = x * 2
    y.set_(b)
    return y + 1


def set_empty(x, p, b, v):
    x.set_()
    return x.shape[0]


def resize_mid(x, p, b, v):
    y = x * 2
    y.resize_(3, 2)
    return y + 1


def resize_smaller(x, p, b, v):
    y = x * 2
    y.resize_(2, 2)
    return y + 1


def resize_input(x, p, b, v):
    x.resize_(3, 2)
    return x + 1


def resize_as(x, p, b, v):
    y = torch.ones(6)
    y.resize_as_(x)
    return y * x


def detach_inplace(x, p, b, v):
    y = p * 2
    y.detach_()
    return y * x


def detach_input(x, p, b, v):
    x.detach_()
    return x * 2


def grad_write(x, p, b, v):
    p.grad = x * 2
    return p.grad + 1


def under_nograd(x, p, b, v):
    with torch.no_grad():
        p.copy_(x * 2)
    return p * 2


def set_none_grad(x, p, b, v):
    p.grad = None
    return p * 2


PROGRAMS = [value for value in list(globals().values()) if getattr(value, "__code__", None)
            and value.__code__.co_varnames[:4] == ("x", "p", "b", "v")]  # fmt: skip


def inputs():
    b = torch.arange(12.0).reshape(4, 3)
    parameter = torch.nn.Parameter(torch.linspace(1, 2, 6).reshape(2, 3))
    return torch.linspace(0, 1, 6).reshape(2, 3), parameter, b, b[1:3]


def place(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.numel() else None


def described(tensors):
    places = [place(tensor) for tensor in tensors]
    return [
        (type(tensor), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, tensor.is_leaf,
         tensor.tolist(), at and places.index(at), [other is tensor for other in tensors])
        for tensor, at in zip(tensors, places, strict=True)
    ]  # fmt: skip


def gradients(given, made):
    losses = [tensor.sum() for tensor in made if tensor.requires_grad]
    if losses:
        sum(losses).backward()
    return [tensor.grad.tolist() for tensor in given if tensor.is_leaf and tensor.grad is not None]


def outcome(function, versions):
    given = inputs()
    try:
        result = function(*given)
    except RuntimeError as error:
        return str(error)
    results = result if isinstance(result, tuple) else (result,)
    made = [value for value in results if isinstance(value, torch.Tensor)]
    first = described([*given, *made])
    others = [value for value in results if not isinstance(value, torch.Tensor)]
    now = [tensor._version for tensor in given] if versions else []
    found = gradients(given, made)
    with torch.no_grad():
        given[0].add_(5)
    return first, others, now, found, described([*given, *made])


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_plain_python(program, backend):
    versions = backend == "eager"  # AOTAutograd writes an input once, whatever the program does
    want, fast = outcome(program, versions), compiled(program, backend, fullgraph=False)
    for _ in range(2):
        assert outcome(fast, versions) == want


@pytest.mark.parametrize("program", [rg_mid_notout, rg_same, detach_inplace, grad_write, data_add])
def test_one_graph(program):
    fast = compiled(program, "aot_eager")
    assert outcome(fast, False) == outcome(program, False)
    assert count(fast) == 1
