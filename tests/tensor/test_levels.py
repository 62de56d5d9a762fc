# ruff: noqa: E402
"""Function transforms and forward-mode differentiation: one graph, the values and gradients of
plain Python, and no level left on, whatever happens inside."""

import gc
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as fwd
import torch.nn.attention.flex_attention as flex
import torch.utils._pytree as pytree
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

import stator
from tests.tensor.helpers import Recorder, compiled, copies, count

pytestmark = pytest.mark.filterwarnings("ignore")


def argument(rows=3, needs_grad=False):
    x = torch.linspace(-1, 2, 4 * rows).reshape(rows, 4)
    return x.requires_grad_(needs_grad)


def depth():
    return torch._C._functorch.get_dynamic_layer_stack_depth()


def is_dual():
    try:
        torch._C._exit_dual_level(torch._C._enter_dual_level())
    except RuntimeError:
        return True
    return False


@pytest.fixture(autouse=True)
def all_left():
    unraised = []
    before, sys.unraisablehook = sys.unraisablehook, lambda args: unraised.append(args.exc_value)
    yield
    gc.collect()
    sys.unraisablehook = before
    assert (depth(), is_dual(), fwd._current_level, unraised) == (0, False, -1, [])
    assert torch._functorch.eager_transforms.JVP_NESTING == 0
    assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is None
    assert not torch._C._functorch.get_inplace_requires_grad_allowed()
    assert torch.is_grad_enabled()


WEIGHT = torch.linspace(0.5, 1.5, 4)
NET = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
LOG = []


class Holder:
    value = None


# -- programs that are one graph --


def maps(x):
    return vmap(lambda a: a.sin().sum())(x)


def maps_with_a_closure(x):
    return vmap(lambda a: a * WEIGHT + x.sum())(x)


def maps_other_dims(x):
    return vmap(lambda a, b: a @ b, in_dims=(1, None))(x, x[:, 0])


def maps_to_other_dims(x):
    return vmap(lambda a: (a.sin(), {"k": a.sum()}), out_dims=(1, {"k": 0}))(x)


def maps_by_maps(x):
    return vmap(lambda a: vmap(lambda b: b * 2 + a.sum())(a))(x)


def maps_in_chunks(x):
    return vmap(lambda a: a.sin(), chunk_size=2)(x)


def maps_indices(x):
    return vmap(lambda a, i: a[i])(x, torch.arange(3))


def maps_in_place(x):
    y = x.clone()
    return vmap(lambda a: a.add_(1))(y), y


def maps_sizes(x):
    return vmap(lambda a: a.reshape(2, -1).sum(0) * a.shape[0] * x.shape[0])(x)


def maps_twice(x):
    return list(map(vmap(torch.sin), [x, x * 2]))


def maps_in_a_generator(x):
    return [t for t in (vmap(lambda a: a * i)(x) for i in range(3))]  # noqa: B023, C416


def derives(x):
    return grad(lambda a: (a.sin() * a).sum())(x)


def derives_with_more(x):
    return grad(lambda a: ((a.sin() * WEIGHT).sum(), a.cos()), has_aux=True)(x)


def derives_and_gives_the_value(x):
    return grad_and_value(lambda a: a.pow(3).sum())(x)


def derives_twice(x):
    return grad(lambda a: grad(lambda b: b.sin().sum())(a).sum())(x)


def derives_by_two(x):
    return grad(lambda a, b: (a * b.sin()).sum(), argnums=(0, 1))(x, x * 2)


def derives_without_grad_inside(x):
    def f(a):
        with torch.no_grad():
            b = a.sin()
        return (a * b).sum()

    return grad(f)(x)


def derives_without_grad(x):
    with torch.no_grad():
        return grad(lambda a: a.pow(3).sum())(x)


def derives_each(x):
    return vmap(grad(lambda a: a.pow(3).sum()))(x)


def derives_for_each_sample(x):
    parameters = dict(NET.named_parameters())
    return vmap(grad(lambda p, a: functional_call(NET, p, (a,)).pow(2).sum()), in_dims=(None, 0))(
        parameters, x
    )


def pulls_back(x):
    out, f = vjp(lambda a: a.sin(), x)
    return out, f(torch.ones_like(out))


def pulls_back_with_more(x):
    out, f, more = vjp(lambda a: (a.sin(), a.cos()), x, has_aux=True)
    return out, more, f(out)


def pulls_back_itself(x):
    out, f = vjp(lambda a: a, x)
    given = torch.ones(3, 4)
    return out is x, f(given)[0] is given


def rows_of_the_jacobian(x):
    return jacrev(lambda a: a.sin() * WEIGHT)(x[0])


def rows_in_chunks(x):
    return [jacrev(lambda a: a.sin() * WEIGHT, chunk_size=n)(x[0]) for n in (1, 3)]


def pushes_forward(x):
    return jvp(lambda a: a.sin(), (x,), (x.cos(),))


def pushes_forward_with_more(x):
    return jvp(lambda a: (a.sin(), a + 1), (x,), (x.cos(),), has_aux=True)


def pushes_forward_itself(x):
    out, tangent = jvp(lambda a: a, (x,), (x,))
    return out is x, tangent is x


def pushes_forward_twice(x):
    return jvp(lambda a: jvp(torch.sin, (a,), (a,))[1], (x,), (x,))


def columns_of_the_jacobian(x):
    return jacfwd(lambda a: a.sin() * WEIGHT)(x[0])


def second_derivatives(x):
    return hessian(lambda a: (a.sin() * WEIGHT).sum())(x[0])


def duals(x):
    with fwd.dual_level():
        return fwd.unpack_dual(fwd.make_dual(x, x.cos()).sin())


def duals_after_their_level(x):
    with fwd.dual_level():
        y = fwd.make_dual(x, x.cos()).sin()
        tangent = fwd.unpack_dual(y).tangent
    return y, tangent, fwd.unpack_dual(y)


def duals_by_functions(x):
    fwd.enter_dual_level()
    dual = fwd.make_dual(x, x)
    fwd.exit_dual_level()
    return dual, dual is x, fwd.unpack_dual(dual).tangent


def has_effects(x):
    def f(a):
        LOG.append(tuple(a.shape))
        Holder.value = a.dtype
        return a.sin()

    return vmap(f)(x), Holder.value


def asks(x):
    seen = []

    def f(a):
        level = torch._C._functorch.maybe_current_level()
        seen.append((a.requires_grad, a.is_leaf, torch.is_grad_enabled(), depth(), level))
        seen.append((a.shape, a.stride(), a.dtype, a.device, a.dim(), len(a), a.is_contiguous()))
        return a.sum()

    grad(f)(x)
    vmap(f)(x.t())
    return seen, depth()


def is_raised_in_and_caught(x):
    def f(a):
        a.sin()
        raise ValueError("no")

    try:
        vmap(grad(f))(x)
    except ValueError as error:
        return x.cos(), str(error), depth()


def is_raised_in_a_dual_level(x):
    try:
        with fwd.dual_level():
            fwd.make_dual(x, x)
            raise KeyError
    except KeyError:
        return x + 1


def keeps_what_is_not_used(x):
    kept = []
    return vmap(lambda a: (kept.append(a), a.sin())[1])(x)


def keeps_the_function_for_a_while(x):
    out, f = vjp(torch.sin, x)
    LOG.append(f)
    result = f(out)
    LOG.pop()
    return result


def names_what_it_makes(x):
    def double(a):
        return a * 2

    return vmap(double)(x), vmap(double).__name__, grad(double).__name__, jacrev(double).__name__


def autocasts(x):
    def f(a):
        with torch.autocast("cpu", torch.bfloat16):
            return (a @ a.t()).float().sum()

    return grad(f)(x)


def sets_attributes(x):
    def f(a):
        a.factor = 3
        return a.sin() * a.factor

    return vmap(f)(x)


WHOLE = [
    maps, maps_with_a_closure, maps_other_dims, maps_to_other_dims, maps_by_maps, maps_in_chunks,
    maps_indices, maps_in_place, maps_sizes, maps_twice, maps_in_a_generator, derives,
    derives_with_more, derives_and_gives_the_value, derives_twice, derives_by_two,
    derives_without_grad_inside, derives_without_grad, derives_each, derives_for_each_sample,
    pulls_back, pulls_back_with_more, pulls_back_itself, rows_of_the_jacobian, rows_in_chunks,
    pushes_forward, pushes_forward_with_more, pushes_forward_itself, pushes_forward_twice,
    columns_of_the_jacobian, second_derivatives, duals, duals_after_their_level,
    duals_by_functions, has_effects, asks, is_raised_in_and_caught, is_raised_in_a_dual_level,
    keeps_what_is_not_used, keeps_the_function_for_a_while, names_what_it_makes, autocasts,
    sets_attributes,
]  # fmt: skip


# -- programs that break, or raise --


def uses_what_leaked(x):
    kept = []
    vmap(lambda a: (kept.append(a), a.sin())[1])(x)
    return kept[0] + 1


def writes_to_what_is_not_batched(x):
    y = torch.zeros(4)
    vmap(lambda a: y.add_(a))(x)
    return y


def writes_to_a_capture(x):
    y = torch.zeros(4)

    def f(a):
        y.add_(1)
        return (a * y).sum()

    return grad(f)(x), y


def writes_to_an_input(x):
    x = x.detach()

    def f(a):
        x.add_(1)
        return (a * 2).sum()

    return grad(f)(x), vmap(lambda a: a.mul_(2).sin())(x), x


def draws_where_it_may_not(x):
    return vmap(lambda a: a + torch.rand(4))(x)


def draws_the_same(x):
    return vmap(lambda a: (a + torch.rand(4)).sin(), randomness="same")(x), torch.rand(2)


def draws_for_each(x):
    return vmap(lambda a: (a + torch.rand(4)).sin(), randomness="different")(x), torch.rand(2)


def drops_for_each(x):
    f = torch.nn.functional.dropout
    return vmap(lambda a: f(a).cos(), randomness="different")(x)


def draws_in_chunks(x):
    return vmap(lambda a: (a + torch.rand(4)).sin(), randomness="same", chunk_size=2)(x)


def wants_a_value(x):
    return vmap(lambda a: a * a.sum().item())(x)


def wants_a_value_to_derive(x):
    return grad(lambda a: (a * a.sum().item()).sum())(x)


def decides_by_a_value(x):
    return vmap(lambda a: a if a.sum() > 0 else -a)(x)


def selects_by_a_mask(x):
    return vmap(lambda a: a[a > 0])(x)


def raises(x):
    def f(a):
        raise ValueError("no")

    return vmap(f)(x)


def is_refused(x):
    return vmap(lambda a: a @ torch.ones(7))(x)


def is_refused_and_caught(x):
    try:
        return vmap(lambda a: a @ torch.ones(7))(x)
    except RuntimeError:
        return x + depth()


def fails_when_run(x):
    i = torch.tensor([9])
    try:
        return vmap(lambda a: a.sin()[i])(x)
    except (RuntimeError, IndexError):
        return x * 2 + depth()


def fails_when_run_after_a_write(x):
    x = x.detach().add_(1)
    return fails_when_run(x), x


def fails_when_run_after_a_draw(x):
    r = torch.rand(3, 4)
    return fails_when_run(x), r


def fails_when_run_in_a_dual_level(x):
    i = torch.tensor([9])
    try:
        return jvp(lambda a: a.sin()[i], (x,), (x,))
    except (RuntimeError, IndexError):
        return x * 2 + depth(), is_dual()


def breaks(x):
    def f(a):
        LOG.append(tuple(a.shape))
        stator.graph_break()
        return a.sin()

    return vmap(f)(x * 2) + 1


def breaks_deep_inside(x):
    def f(a):
        stator.graph_break()
        return (a * a).sum()

    return vmap(grad(f))(x * 2) + 1


def breaks_in_a_dual_level(x):
    with fwd.dual_level():
        dual = fwd.make_dual(x, x)
        stator.graph_break()
        return fwd.unpack_dual(dual.sin()).tangent


def breaks_without_hooks(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        y = x.sin()
        stator.graph_break()
        return y * 2


def gives_the_function(x):
    return vjp(torch.sin, x)[1](x), vjp(torch.cos, x)[1]


def breaks_while_the_function_lives(x):
    out, f = vjp(torch.sin, x * 1)
    stator.graph_break()
    return f(out)


class Doubled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a):
        return a * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        LOG.append("backward")
        return gradient * 3


def derives_a_function(x):
    return grad(lambda a: Doubled.apply(a).sum())(x)


def maps_a_function(x):
    return vmap(lambda a: Doubled.apply(a).sum())(x)


def hooks(x):
    def f(a):
        b = a.sin()
        b.register_hook(lambda g: (LOG.append("hook"), g * 2)[1])
        return b.sum()

    return grad(f)(x)


def derives_by_autograd(x):
    def f(a):
        return torch.autograd.grad(a.sin().sum(), a, create_graph=True)[0].sum()

    return grad(f)(x)


def goes_backward(x):
    w = torch.ones(4, requires_grad=True)

    def f(a):
        (w * 2).sum().backward()
        return a.sum()

    return grad(f)(x), w.grad


def wants_a_gradient_inside(x):
    return grad(lambda a: (a * torch.ones(4).requires_grad_()).sum())(x)


def derives_in_inference_mode(x):
    with torch.inference_mode():
        out, f = vjp(lambda a: a.pow(3), x)
        return out, f(out), grad(lambda a: a.pow(3).sum())(x)


def enters_inference_mode_inside(x):
    def f(a):
        with torch.inference_mode():
            LOG.append(tuple((a * 2).shape))
            stator.graph_break()
        return a.sum()

    return grad(f)(x)


class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        LOG.append(function.__name__)
        return super().__torch_function__(function, types, args, kwargs or {})


def maps_a_subclass(x):
    return vmap(lambda a: a.sin())(x.detach().as_subclass(Logged)).as_subclass(torch.Tensor)


def derives_by_a_subclass(x):
    y = x.detach().as_subclass(Logged)
    return grad(lambda a: (a.sin() * y).sum())(y).as_subclass(torch.Tensor)


def enters_two_dual_levels(x):
    with fwd.dual_level(), fwd.dual_level():
        return x + 1


def linearizes(x):
    out, f = linearize(torch.sin, x)
    return out, f(x)


BROKEN = [
    uses_what_leaked, writes_to_what_is_not_batched, writes_to_a_capture, writes_to_an_input,
    draws_where_it_may_not, draws_the_same, draws_for_each, drops_for_each, draws_in_chunks,
    wants_a_value, wants_a_value_to_derive, decides_by_a_value, selects_by_a_mask, raises,
    is_refused, is_refused_and_caught, fails_when_run, fails_when_run_after_a_write,
    fails_when_run_after_a_draw, fails_when_run_in_a_dual_level, breaks, breaks_deep_inside,
    breaks_in_a_dual_level, breaks_without_hooks, gives_the_function,
    breaks_while_the_function_lives, derives_a_function, maps_a_function, hooks,
    derives_by_autograd, goes_backward, wants_a_gradient_inside, derives_in_inference_mode,
    enters_inference_mode_inside, maps_a_subclass, derives_by_a_subclass, enters_two_dual_levels,
    linearizes,
]  # fmt: skip


# -- both ways --


def outcome(function, *args):
    """Everything that a call leaves: its value or exception, effects, gradients, random state."""
    LOG.clear()
    torch.manual_seed(1)
    try:
        result = function(*args)
    except Exception as error:
        result = type(error).__name__, str(error)[:60]
    result = pytree.tree_map(lambda v: v(argument()) if callable(v) else v, result)
    leaves = [v for v in pytree.tree_leaves(result) if isinstance(v, torch.Tensor)]
    wanted = [v.sum() for v in leaves if v.requires_grad]
    if wanted:
        sum(wanted).backward()
    gradients = [arg.grad for arg in args]
    return result, list(LOG), [arg.detach() for arg in args], gradients, torch.get_rng_state()


def assert_alike(got, want):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want)
    for mine, other in zip(got, want, strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)
            assert (mine.stride(), mine.requires_grad) == (other.stride(), other.requires_grad)
        else:
            assert mine == other


def both_ways(program, backend, needs_grad, fullgraph=False, rows=(3, 3, 3)):
    fast = compiled(program, backend, fullgraph)
    for number in rows:
        want = outcome(program, argument(number, needs_grad))
        assert_alike(outcome(fast, argument(number, needs_grad)), want)
        assert (depth(), is_dual()) == (0, False)
    return fast


each_whole = pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
each_broken = pytest.mark.parametrize("program", BROKEN, ids=lambda f: f.__name__)
backends = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
gradients = pytest.mark.parametrize("needs_grad", [False, True], ids=["plain", "gradient"])


@each_whole
@backends
@gradients
def test_it_is_one_graph_and_right(program, backend, needs_grad):
    assert count(both_ways(program, backend, needs_grad, fullgraph=True)) == 1


@each_broken
@backends
@gradients
def test_what_breaks_or_raises_is_right(program, backend, needs_grad):
    both_ways(program, backend, needs_grad)


@pytest.mark.parametrize("program", [maps_by_maps, derives_for_each_sample, second_derivatives],
                         ids=lambda f: f.__name__)  # fmt: skip
def test_it_is_right_compiled_by_inductor(program):
    both_ways(program, "inductor", True, fullgraph=True, rows=(3, 3))


@pytest.mark.parametrize("program", [maps_by_maps, maps_sizes, derives_each, pushes_forward,
                                     duals, pulls_back, breaks, raises],
                         ids=lambda f: f.__name__)  # fmt: skip
@pytest.mark.parametrize("dynamic", [None, True])
def test_other_sizes_are_right(program, dynamic):
    fast = stator.compile(program, backend="eager", dynamic=dynamic)
    for number in (3, 5, 2, 1, 3, 7):
        assert_alike(outcome(fast, argument(number)), outcome(program, argument(number)))


@pytest.mark.parametrize("program", [breaks, breaks_deep_inside], ids=lambda f: f.__name__)
def test_a_break_inside_is_one_before_the_transform(program):
    backend = Recorder()
    fast = compiled(program, backend, fullgraph=False)
    fast(argument())
    assert [[n.name for n in g.graph.nodes if "call" in n.op] for g in backend.graphs] == [
        ["mul"], ["add"],
    ]  # fmt: skip
    assert count(fast) == 2


@pytest.mark.skipif(
    not hasattr(torch._functorch.predispatch, "_unwrap_for_grad"),
    reason="this torch calls other functions",
)
def test_targets_are_those_of_dynamo():
    backend = Recorder()
    compiled(lambda x: vmap(grad(lambda a: a.sin().sum()))(x), backend)(argument())
    predispatch, functorch = torch._functorch.predispatch, torch._C._functorch
    transforms, hooks_of = torch._functorch.eager_transforms, torch._C._autograd
    targets = [n.target for n in backend.graphs[0].graph.nodes if "call" in n.op]
    assert targets == [
        predispatch.lazy_load_decompositions, predispatch._vmap_increment_nesting,
        predispatch._add_batch_dim, hooks_of._saved_tensors_hooks_disable,
        functorch._grad_increment_nesting, functorch._wrap_for_grad,
        functorch.set_inplace_requires_grad_allowed, transforms._set_tensor_requires_grad,
        functorch.set_inplace_requires_grad_allowed, "sin", "sum", transforms._autograd_grad,
        targets[12], predispatch._unwrap_for_grad, predispatch._unwrap_for_grad,
        functorch._grad_decrement_nesting, hooks_of._saved_tensors_hooks_enable,
        predispatch._remove_batch_dim, predispatch._vmap_decrement_nesting,
    ]  # fmt: skip


def test_an_outer_tensor_with_a_gradient_gives_one_to_the_result():
    def program(x, y):
        return grad(lambda a: (a * y).sin().sum())(x)

    for backend in ("eager", "aot_eager"):
        fast = compiled(program, backend)
        x, y = argument(), argument(needs_grad=True)
        want, got = program(x, y), fast(x, y)
        assert_alike(got, want)
        assert_alike(torch.autograd.grad(got.sum(), y), torch.autograd.grad(want.sum(), y))


def test_a_call_after_an_exception_uses_the_entry():
    def program(x, flag):
        def f(a):
            if flag:
                raise ValueError
            return a.sin()

        return vmap(f)(x)

    fast = compiled(program, fullgraph=False)
    assert_alike(fast(argument(), False), program(argument(), False))
    made = count(fast)
    with pytest.raises(ValueError):
        fast(argument(), True)
    assert_alike(fast(argument(), False), program(argument(), False))
    assert depth() == 0
    assert made == 1


def test_a_compiled_function_runs_inside_a_live_transform():
    fast = compiled(maps, fullgraph=False)
    fast(argument())
    x = torch.stack([argument(), argument() * 2])
    assert_alike(vmap(fast)(x), vmap(maps)(x))
    assert_alike(vmap(compiled(derives, fullgraph=False))(x), vmap(derives)(x))


def test_the_state_around_levels_is_guarded():
    fast = compiled(derives)
    fast(argument())
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        for function in (derives, fast):
            with pytest.raises(RuntimeError, match="saved tensor hooks"):
                function(argument())
    assert_alike(fast(argument()), derives(argument()))


def test_an_outer_dual_level():
    for program in (derives, maps):
        fast = compiled(program, fullgraph=False)
        fast(argument())
        results = []
        for function in (program, fast):
            with fwd.dual_level():
                dual = fwd.make_dual(argument(), argument() * 3)
                results.append(fwd.unpack_dual(function(dual)))
        assert_alike(results[1], results[0])


def test_threads_have_levels_of_their_own():
    results, fast = {}, compiled(derives_each, fullgraph=False)

    def work(number):
        for _ in range(5):
            results[number] = fast(argument(number + 2)), depth()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        assert_alike(results[number], (derives_each(argument(number + 2)), 0))


def test_a_backend_that_fails_inside_a_level_leaves_none_on():
    def backend(module, examples):
        torch._C._functorch._vmap_increment_nesting(3, "error")
        raise RuntimeError("the backend")

    fast = compiled(maps, backend)
    for _ in range(2):
        with pytest.raises(Exception, match="the backend"):
            fast(argument())
        assert depth() == 0


OFFSET = torch.tensor(3)


def causal(b, h, q, k):
    return q >= k


def near(b, h, q, k):
    return q - k < OFFSET


def makes_a_block_mask(x):
    mask = flex.create_block_mask(flex.and_masks(causal, near), 2, 1, 256, 256, device="cpu")
    parts = mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices
    return parts, flex.create_mask(causal, 1, 1, 8, 8, device="cpu")


def notes_at_nodes(x):
    with torch.fx.traceback.annotate({"note": 1}):
        with torch.fx.traceback.annotate({"more": 2}):
            inner = dict(torch.fx.traceback.current_meta["custom"])
        outer = dict(torch.fx.traceback.current_meta["custom"])
    return x + 1, inner, outer, "custom" in torch.fx.traceback.current_meta


@pytest.mark.parametrize("program", [makes_a_block_mask, notes_at_nodes], ids=lambda f: f.__name__)
@backends
def test_masks_of_flex_attention_are_one_graph(program, backend):
    assert count(both_ways(program, backend, False, fullgraph=True)) == 1


def test_arguments_are_not_changed():
    x = argument()
    before = copies(x)
    compiled(second_derivatives)(x)
    assert_alike(x, before)


# -- breaks in levels that a trace enters after an earlier break --

PRINTING = {
    "jacfwd": lambda x: torch.func.jacfwd(lambda a: (print(end=""), a.sin())[1])(x),
    "hessian": lambda x: torch.func.hessian(lambda a: (print(end=""), a.sin().sum())[1])(x),
    "jacrev": lambda x: torch.func.jacrev(lambda a: (print(end=""), a.sin())[1])(x),
    "vmap of jvp": lambda x: vmap(
        lambda t: torch.func.jvp(lambda a: (print(end=""), a.sin())[1], (x,), (t,))
    )(torch.ones(2, 2)),
    "item": lambda x: torch.func.jacfwd(lambda a: a.sin() * x.sum().item())(x),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PRINTING)
def test_a_break_in_a_level_leaves_torch_as_it_was(name, backend):
    program, x = PRINTING[name], torch.ones(2)
    expected = program(x)
    fast = stator.compile(program, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(fast(x), expected)
        assert torch._functorch.eager_transforms.JVP_NESTING == 0
        torch.func.jvp(torch.sin, (x,), (x,))
