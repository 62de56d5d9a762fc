# ruff: noqa: E402
"""Forward-mode differentiation in compiled functions and around them: tangents are eager's, and no
level is left on."""

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as fa
import torch.nn.functional as F

import stator
from tests.tensor.helpers import assert_same

BACKENDS = ["eager", "aot_eager", lambda graph, examples: graph.forward]


def tensors():
    return torch.linspace(-1, 1, 12).reshape(3, 4), torch.full((3, 4), 0.5)


@pytest.fixture(autouse=True)
def no_level_is_left():
    yield
    assert fa._current_level == -1
    torch._C._exit_dual_level(torch._C._enter_dual_level())  # raises if one is on


# -- in the function --


def a_level(x, t):
    with fa.dual_level():
        return fa.unpack_dual(fa.make_dual(x, t) * 2).tangent


def tensors_around_a_level(x, t):
    y = x * 3
    with fa.dual_level():
        product = fa.make_dual(y, t)
        found = fa.unpack_dual((product * product).sin())
        result = found.tangent * 1, found.primal
    return result, y + 1


def left_by_an_exception(x, t):
    try:
        with fa.dual_level():
            (fa.make_dual(x, t) * 2).relu()
            raise KeyError
    except KeyError:
        return x * 2, fa._current_level


def a_level_in_a_level(x, t):
    try:
        with fa.dual_level(), fa.dual_level():
            return x * 2
    except RuntimeError as error:
        return str(error), x * 3


def levels_in_a_row(x, t):
    with fa.dual_level():
        a = fa.unpack_dual(fa.make_dual(x, t).exp()).tangent
    with fa.dual_level():
        b = fa.unpack_dual(fa.make_dual(a.clone(), t).exp()).tangent
    return a, b


def by_c_functions(x, t):
    level = torch._C._enter_dual_level()
    try:
        return tuple(torch._unpack_dual(torch._make_dual(x, t, level=level) * 2, level=level))
    finally:
        torch._C._exit_dual_level(level)


def switched_off(x, t):
    with fa.dual_level():
        with fa._set_fwd_grad_enabled(False):
            dual = fa.make_dual(x, t) * 2
        return fa.unpack_dual(dual).tangent


def in_place(x, t):
    with fa.dual_level():
        dual = fa.make_dual(x.clone(), t)
        dual.mul_(3)
        dual[0] = dual[1]
        return fa.unpack_dual(dual).tangent


def through_modules(x, t):
    with fa.dual_level():
        y = F.linear(fa.make_dual(x, t), torch.ones(4, 4)).relu()
        return fa.unpack_dual(torch.nn.LayerNorm(4)(y)).tangent


def without_a_level(x, t):
    try:
        return fa.make_dual(x, t)
    except RuntimeError as error:
        return str(error), fa.unpack_dual(x) if fa._current_level >= 0 else x * 2


def jvp(x, t):
    return torch.func.jvp(lambda v: (v * v).sum(), (x,), (t,))


def jvp_of_jvp(x, t):
    return torch.func.jvp(lambda v: torch.func.jvp(lambda u: u**3, (v,), (t,))[1], (x,), (t,))


def jacobian(x, t):
    return torch.func.jacfwd(lambda v: v.sin() * 2)(x)


INSIDE = [
    a_level,
    tensors_around_a_level,
    left_by_an_exception,
    a_level_in_a_level,
    levels_in_a_row,
    by_c_functions,
    switched_off,
    in_place,
    through_modules,
    without_a_level,
    jvp,
    jvp_of_jvp,
    jacobian,
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", INSIDE)
def test_in_the_function(function, backend):
    want = function(*tensors())
    fast = stator.compile(function, backend=backend)
    for _ in range(3):
        assert_same(fast(*tensors()), want)
        torch._C._exit_dual_level(torch._C._enter_dual_level())  # raises if one is on


# -- around it --


def computes(x, t):
    return x * 2 + t.sin()


def views(x, t):
    return x.view(-1).unsqueeze(0).t() * 2


def writes(x, t):
    y = x.clone()
    y.add_(t)
    return y * x


AROUND = [computes, views, writes]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", AROUND)
@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_level_around_the_call(function, backend, compiled_before):
    fast = stator.compile(function, backend=backend)
    x, t = tensors()
    if compiled_before:
        assert_same(fast(x, t), function(x, t))
    for _ in range(2):
        with fa.dual_level():
            dual = fa.make_dual(x, t)
            want = fa.unpack_dual(function(dual, x))
            assert want.tangent is not None
            assert_same(tuple(fa.unpack_dual(fast(dual, x))), tuple(want))
        assert_same(fast(x, t), function(x, t))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", AROUND)
def test_a_level_that_only_torchs_c_side_knows(function, backend):
    fast = stator.compile(function, backend=backend)
    x, t = tensors()
    fast(x, t)
    level = torch._C._enter_dual_level()
    try:
        dual = torch._make_dual(x, t, level=level)
        want = torch._unpack_dual(function(dual, x), level=level)
        got = torch._unpack_dual(fast(dual, x), level=level)
        assert_same(tuple(got), tuple(want))
    finally:
        torch._C._exit_dual_level(level)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", AROUND)
def test_jvp_over_a_compiled_function(function, backend):
    fast = stator.compile(function, backend=backend)
    x, t = tensors()
    for _ in range(2):
        assert_same(torch.func.jvp(fast, (x, t), (t, x)), torch.func.jvp(function, (x, t), (t, x)))
        assert_same(fast(x, t), function(x, t))


# -- saved-tensor hooks, which belong to the thread in the same way --


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_for_saved_tensors_around_the_call(backend):
    def f(x):
        return (x.sin() * x).sum()

    fast = stator.compile(f, backend=backend)

    def packed(function):
        seen = []
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: (seen.append(tensor.shape), tensor)[1], lambda tensor: tensor
        ):
            y = function(x)
        y.backward()
        return seen, x.grad

    fast(torch.ones(3, requires_grad=True))
    assert_same(packed(fast), packed(f))
