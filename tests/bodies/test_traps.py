"""Places where a compiler of operators with bodies, of transforms, of subclasses and of modes goes
wrong easily. Each trap is a function that gets `run` and returns what it saw: with `run` as
torch.compile that is what plain Python sees."""

from __future__ import annotations

import contextlib

import flow_cases
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from torch.compiler import nested_compile_region  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
installed = pytest.fixture(autouse=True)(flow_cases.installed)

while_loop = torch._higher_order_ops.while_loop
depth = torch._C._functorch.get_dynamic_layer_stack_depth


def seen(function, *args):
    """What a call gives, or the class of what it raises."""
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


def again(run, function, *args):
    """Cold and warm."""
    fast = run(function)
    return [seen(fast, *args), seen(fast, *args)]


def given():
    return torch.linspace(-1, 2, 6).view(2, 3)


class Counter:
    n = 0
    flag = False


# -- bodies --


def trap_1_a_branch_appends(run):
    log = []

    def f(x):
        return torch.cond(x.sum() > 0, lambda a: (log.append(1), a + 1)[1], lambda a: a * 2, (x,))

    return again(run, f, given()), len(log)


def trap_2_a_branch_counts(run):
    counter = Counter()

    def branch(a):
        counter.n += 1
        return a + 1

    def f(x):
        return torch.cond(x.sum() > 0, branch, lambda a: a * 2, (x,))

    return again(run, f, given()), counter.n


def trap_3_a_checkpointed_print(run):
    log = []

    def body(a):
        print("ran", file=Writer(log))
        return a.sin()

    x = given().requires_grad_()
    result = run(lambda x: checkpoint(body, x, use_reentrant=False))(x)
    result.sum().backward()
    return result, x.grad, log


class Writer:
    def __init__(self, log):
        self.write = log.append

    def flush(self):
        pass


def trap_4_effects_up_to_the_early_stop(run):
    log = []

    def body(a):
        log.append("first")
        b = a.sin()
        log.append("second")
        c = b.exp()
        log.append("third")
        return c + 1

    x = given().requires_grad_()
    run(lambda x: checkpoint(body, x, use_reentrant=False))(x).sum().backward()
    return x.grad, log


def trap_5_a_flag_that_is_set_back(run):
    counter = Counter()

    def body(a):
        counter.flag = True
        b = a.sin()
        counter.flag = False
        return b

    return again(run, lambda x: checkpoint(body, x, use_reentrant=False), given()), counter.flag


def trap_6_the_mask_of_the_gradient(run):
    x = torch.ones(64).requires_grad_()
    dropout = torch.nn.functional.dropout
    result = run(lambda x: checkpoint(lambda a: dropout(a, 0.5), x, use_reentrant=False))(x)
    result.sum().backward()
    return torch.equal(result.detach(), x.grad)


def trap_7_random_numbers_that_are_not_kept(run):
    def f(x):
        body = torch.nn.functional.dropout
        return checkpoint(body, x, 0.5, use_reentrant=False, preserve_rng_state=False)

    x = torch.ones(64).requires_grad_()
    torch.manual_seed(5)
    result = run(f)(x)
    result.sum().backward()
    return result, x.grad


def trap_8_the_operand_comes_back(run):
    def f(x):
        y = x * 2
        return checkpoint(lambda a: a, y, use_reentrant=False) is y

    def reentrant(x):
        y = x * 2
        return checkpoint(lambda a: a, y, use_reentrant=True) is y

    x = given().requires_grad_()
    return again(run, f, x), again(run, reentrant, x)


def trap_9_branches_of_other_dtypes(run):
    def f(x):
        return torch.cond(x.sum() > 0, lambda a: a.double(), lambda a: a.float() * 2, (x,))

    return again(run, f, given())


def trap_10_a_branch_gives_a_view(run):
    def f(x):
        return torch.cond(x.sum() > 0, lambda a: a.view(-1), lambda a: a.reshape(-1) * 2, (x,))

    return again(run, f, given())


def trap_11_branches_with_other_constants(run):
    def f(x):
        return torch.cond(x.sum() > 0, lambda a: (a + 1, 2), lambda a: (a * 2, 3), (x,))

    return again(run, f, given())


def trap_12_native_code_changes_a_list(run):
    out = []

    def body(a):
        out.extend(map(torch.sin, [a, a + 1]))
        return a * 2

    def f(x):
        return checkpoint(body, x, use_reentrant=False) + sum(out)

    return seen(run(f), given()), len(out)


def trap_13_a_loop_changes_the_shape(run):
    def f(x):
        return while_loop(lambda a: a.sum() < 100, lambda a: (torch.cat([a, a]) + 1,), (x,))

    return again(run, f, given())


def trap_14_an_exception_that_is_caught(run):
    def body(a):
        a.sin()
        raise KeyError("x")

    def f(x):
        try:
            return checkpoint(body, x, use_reentrant=False)
        except KeyError:
            return x.cos()

    return again(run, f, given().requires_grad_())


def trap_15_no_grad_that_is_not_left(run):
    def body(a):
        torch._C._set_grad_enabled(False)
        return a.sin()

    def f(x):
        y = checkpoint(body, x, use_reentrant=False)
        return y, torch.is_grad_enabled()

    try:
        return seen(run(f), given().requires_grad_())
    finally:
        torch._C._set_grad_enabled(True)


def trap_16_a_tensor_that_is_rebound(run):
    flex_attention = torch.nn.attention.flex_attention.flex_attention
    bias = torch.zeros(4)
    fast = run(lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + bias[j]))
    q = torch.linspace(0, 1, 32).view(1, 1, 4, 8)
    results = [fast(q)]
    for bias in (torch.arange(4.0), torch.arange(4).double().float() * 2):
        results.append(fast(q))
    return results


class Scaled(torch.nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    @nested_compile_region
    def forward(self, x):
        return x * self.by


def trap_17_a_region_of_two_modules(run):
    first, second = Scaled(2), Scaled(3)
    return again(run, lambda x: second(first(x)) + first(x), given())


def trap_18_a_region_with_effects(run):
    log = []

    @nested_compile_region
    def region(x):
        log.append(1)
        return x + len(log)

    return again(run, region, given()), log


class Unmaterialized(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        return a if b is None else a + b


def trap_19_a_gradient_that_is_none(run):
    x = given().requires_grad_()
    run(lambda x: Unmaterialized.apply(x)[0])(x).sum().backward()
    return x.grad


# -- levels --


def trap_20_a_mapped_function_appends(run):
    log = []

    def body(a):
        log.append(tuple(a.shape))
        return a.sin()

    return seen(run(torch.vmap(body)), given()), log


def trap_21_a_batched_tensor_leaks(run):
    leaked = []

    def f(x):
        torch.vmap(lambda a: (leaked.append(a), a.sin())[1])(x)
        return leaked[0] + 1

    return seen(run(f), given()), depth()


def trap_22_in_place_on_what_is_not_batched(run):
    def f(x, y):
        return torch.vmap(lambda a, b: b.add_(a), in_dims=(0, None))(x, y)

    return seen(run(f), given(), torch.zeros(3)), depth()


def trap_23_random_numbers_in_a_map(run):
    def results(randomness):
        torch.manual_seed(7)
        body = torch.vmap(lambda a: a + torch.rand(3), randomness=randomness)
        return seen(run(lambda x: body(x)), given())

    return [results(kind) for kind in ("error", "same", "different")]


def trap_24_a_value_in_a_map(run):
    return seen(run(torch.vmap(lambda a: a * a.sum().item())), given()), depth()


def trap_25_a_graph_that_fails_in_a_level(run):
    table = torch.arange(4.0)

    def f(x, i):
        return torch.vmap(lambda a: table[i] * a)(x)

    fast = run(f)
    good = fast(given(), torch.tensor([1, 2, 3]))
    return good, seen(fast, given(), torch.tensor([1, 2, 9])), depth()


def trap_26_a_gradient_beside_a_transform(run):
    y = torch.ones(3, requires_grad=True)
    result = run(lambda x: torch.func.grad(lambda a: (a * y).sum())(x))(torch.ones(3))
    return result.requires_grad, result


# -- objects --


class Tagged(torch.Tensor):
    k = 1

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, torch.Tensor) and isinstance(args[0], Tagged):
            return result.as_subclass(torch.Tensor) * args[0].__dict__.get("k", 1)
        return result


def tagged(k):
    made = given().as_subclass(Tagged)
    made.k = k
    return made


def trap_27_an_attribute_that_changes(run):
    fast, s = run(lambda s: s.sin()), tagged(2)
    first = fast(s)
    s.k = 5
    return first, fast(s)


def trap_28_an_attribute_that_is_set_inside(run):
    def f(s):
        s.k = 9
        return s.sin()

    s = tagged(2)
    return again(run, f, s), s.k


def trap_29_a_dtype_that_changes(run):
    fast = run(lambda s: s.sin())
    return [fast(tagged(1)), fast(tagged(1).double().as_subclass(Tagged))]


class Counted(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Counted.calls += 1
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def trap_30_calls_are_counted(run):
    Counted.calls = 0
    fast = run(lambda s: (s.sin() + 1, s.cos()))
    for _ in range(2):
        fast(given().as_subclass(Counted))
    return Counted.calls


class Declines(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Answers(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "answered"


def trap_31_who_declines_leaves_it_to_others(run):
    a, b = given().as_subclass(Declines), given().as_subclass(Answers)
    return again(run, lambda a, b: torch.add(a, b), a, b)


class Adds(TorchFunctionMode):
    k = 1

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return result + self.k if func is torch.sin else result


def trap_32_a_mode_around(run):
    with Adds():
        return again(run, lambda x: torch.sin(x), given())


def trap_33_an_attribute_of_a_mode(run):
    fast, mode = run(lambda x: torch.sin(x)), Adds()
    results = []
    for mode.k in (1, 4):
        with mode:
            results.append(fast(given()))
    return results


def trap_34_a_break_within_a_mode(run):
    def f(x):
        with Adds():
            y = torch.sin(x)
            torch._dynamo.graph_break()
            return y + torch.sin(x)

    return again(run, f, given())


def trap_35_what_numpy_gives(run):
    return [type(v).__name__ for v in again(run, lambda a: a.sum(), np.ones(3))]


def trap_36_random_numbers_of_numpy(run):
    def f(x):
        np.random.seed(3)
        return x * np.random.rand()

    return again(run, f, given())


def trap_37_a_write_to_an_array_of_a_tensor(run):
    def f(x):
        x.numpy()[0] = 5
        return x + 1

    x = given()
    return seen(run(f), x), x


def trap_38_a_write_to_a_tensor_of_an_array(run):
    def f(a):
        torch.from_numpy(a).add_(1)
        return a * 2

    a = np.ones(3)
    return torch.as_tensor(seen(run(f), a)), torch.as_tensor(a)


def trap_39_an_operator_behind_a_break(run):
    def f(x):
        torch._dynamo.graph_break()
        with contextlib.nullcontext():
            return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))

    return again(run, f, given())


TRAPS = [value for name, value in globals().items() if name.startswith("trap_")]


def plain(function):
    return function


def replayed(function):
    return torch.compile(function, backend="eager")


def ahead(function):
    return torch.compile(function, backend="aot_eager")


def compare(got, want):
    assert type(got) is type(want)
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want, check_stride=True)
        assert got.requires_grad == want.requires_grad
    elif isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            compare(a, b)
    else:
        assert got == want


@pytest.mark.parametrize("run", [replayed, ahead], ids=["eager", "aot_eager"])
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.__name__)
def test_as_in_plain_python(trap, run):
    torch.manual_seed(0)
    want = trap(plain)
    torch.manual_seed(0)
    got = trap(run)
    compare(got, want)


def test_there_are_all():
    assert [int(trap.__name__.split("_")[1]) for trap in TRAPS] == list(range(1, 40))
