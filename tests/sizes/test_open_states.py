"""Sizes are left open in whatever state of torch's a program runs, or puts itself in: two entries for
batches that change, results as in plain Python."""

import contextlib
import functools
import operator

import pytest

import stator

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


def autocast(**more):
    return torch.autocast("cpu", torch.bfloat16, **more)


@contextlib.contextmanager
def all_of(*makers):
    with contextlib.ExitStack() as stack:
        for make in makers:
            stack.enter_context(make())
        yield


@contextlib.contextmanager
def flash_off():
    was = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_flash_sdp(was)


def kernel():
    """The state in which a kernel of the program's runs below all that torch does before."""
    names = "AutogradOther AutogradFunctionality AutogradNestedTensor ADInplaceOrView Functionalize"
    more = "Conjugate Negative ZeroTensor FuncTorchDynamicLayerBackMode FuncTorchBatched"
    keys = [torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
            for name in f"{names} {more}".split()]  # fmt: skip
    return torch._C._ExcludeDispatchKeyGuard(functools.reduce(operator.or_, keys))


STATES = {
    "usual": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": autocast,
    "autocast off": lambda: autocast(enabled=False),
    "autocast without cache": lambda: autocast(cache_enabled=False),
    "autocast, no_grad": lambda: all_of(autocast, torch.no_grad),
    "autocast, inference": lambda: all_of(torch.inference_mode, autocast),
    "no autocast in autocast": lambda: all_of(autocast, lambda: autocast(enabled=False)),
    "inference off in inference": lambda: all_of(
        torch.inference_mode, lambda: torch.inference_mode(False)
    ),
    "below autograd": torch._C._AutoDispatchBelowAutograd,
    "below autograd, no_grad": lambda: all_of(torch._C._AutoDispatchBelowAutograd, torch.no_grad),
    "autocast below autograd": lambda: all_of(torch._C._AutoDispatchBelowAutograd, autocast),
    "kernel": kernel,
    "kernel in autocast": lambda: all_of(autocast, kernel),
    "default device": lambda: torch.device("cpu"),
    "no flash attention": flash_off,
}
BACKENDS = ["eager", "aot_eager"]


class Block(nn.Module):
    """Layers, attention, questions about sizes, and a write."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        b, t, c = x.shape
        assert x.dim() == 3 and x.numel() == b * t * c
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, c)
        z = torch.zeros_like(x)
        z[:, 1:] = self.out(y)[:, :-1]
        return self.norm(F.gelu(z) + x).softmax(-1).flatten(1)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4).eval()

    def forward(self, x):
        return F.max_pool2d(self.norm(self.conv(x)).relu(), 2).mean((2, 3))


MODELS = {"block": (Block, (5, 8)), "images": (Images, (2, 6, 6))}
SIZES = (3, 4, 6, 9)


def agree(mine, plain, backend):
    close = {"atol": 2e-2, "rtol": 2e-2} if plain.dtype is torch.bfloat16 else {}
    torch.testing.assert_close(mine, plain, **close)
    assert mine.requires_grad == plain.requires_grad
    if backend == "eager":
        assert mine.is_inference() == plain.is_inference() and mine.stride() == plain.stride()


def entries_of(f, calls, backend, **options):
    stator.reset()
    fast = stator.compile(f, backend=backend, **options)
    for args in calls:
        agree(fast(*args), f(*args), backend)
    assert not fast.metrics["breaks"] and not fast.metrics["drops"]
    return fast.metrics["entries"]


def batches(*rest):
    return [(torch.randn(n, *rest),) for n in SIZES]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("model", "backend"), [("block", "eager"), ("images", "eager"), ("images", "aot_eager")]
)
def test_a_call_in_any_state_takes_two_entries(model, state, backend):
    torch.manual_seed(1)
    make, rest = MODELS[model]
    module = make()
    with STATES[state]():
        assert entries_of(lambda x: module(x), batches(*rest), backend) == 2


def writes_and_views(x):
    y = x * 2
    y.view(-1).add_(x.sum())
    z = torch.zeros(x.shape[0], 4)
    z[:, 1:] = y[:, 1:]
    z.t().mul_(x.t())
    return z + x.view(-1, 4).softmax(-1)


def questions(x):
    y = x.view(-1, 4)[1:]
    z = x * 2 if y.requires_grad else x * 3
    w = x.detach().clone().requires_grad_() if not z.is_leaf else x + x._version
    return torch.cat([y, z, w * z], 0)


def complex_numbers(x):
    y = torch.complex(x, x * 2)
    return torch.view_as_real(y.conj() * y.conj().resolve_conj() + y.conj().imag)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("state", ["below autograd", "below autograd, no_grad", "kernel"])
def test_programs_in_kernels_are_as_plain(state, grad, backend):
    for f in (writes_and_views, questions, complex_numbers):
        stator.reset()
        fast = stator.compile(f, backend=backend, dynamic=True)
        for n in SIZES:
            x = torch.randn(n, 4, requires_grad=grad)
            with STATES[state]():
                agree(fast(x), f(x), backend)


INSIDE = ["no_grad", "inference", "autocast", "autocast off", "no autocast in autocast"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("state", INSIDE)
@pytest.mark.parametrize("around", ["usual", "inference", "autocast"])
def test_a_program_that_sets_the_state_takes_two_entries(around, state, backend):
    torch.manual_seed(1)
    module = Images()

    def f(x):
        with STATES[state]():
            return module(x * 2)

    with STATES[around]():
        assert entries_of(f, batches(2, 6, 6), backend, fullgraph=True) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_in_autocast(backend):
    stator.reset()
    torch.manual_seed(1)
    module = Block()
    fast = stator.compile(lambda x: module(x), backend=backend)
    for (x,) in batches(5, 8):
        with autocast():
            mine, plain = fast(x).float().pow(2).sum(), module(x).float().pow(2).sum()
        wanted = torch.autograd.grad(plain, module.parameters())
        for one, other in zip(torch.autograd.grad(mine, module.parameters()), wanted, strict=True):
            torch.testing.assert_close(one, other, atol=5e-2, rtol=5e-2)
    assert fast.metrics["entries"] == 2


def test_inputs_made_in_inference_mode():
    module = Block()
    with torch.inference_mode():
        calls = batches(5, 8)
        assert entries_of(lambda x: module(x), calls, "eager") == 2


def test_a_mark_is_honoured_in_autocast_and_inference_mode():
    for state in ("autocast", "inference", "autocast, inference"):
        with STATES[state]():
            calls = batches(8)
            for (x,) in calls:
                torch._dynamo.mark_dynamic(x, 0)
            assert entries_of(lambda x: x * 2 + x.shape[0], calls, "eager") == 1


# Programs that need history once the state has changed: the trace is done again with it.
W = torch.randn(4, 4, requires_grad=True)


def asked_of_a_view(x):
    with torch.inference_mode():
        y = W.t()
        return x @ y if y.requires_grad else x @ y + 1


def used_behind_it(x):
    with torch.inference_mode():
        y = x * 2
    return y + 1


def caught_behind_it(x):
    with torch.inference_mode():
        y = x * 2
    try:
        return y * W.sum()
    except RuntimeError:
        return y - 1


def written_behind_it(x):
    with torch.inference_mode():
        y = x * 2
    try:
        y.add_(1)
    except RuntimeError:
        return x - 1
    return y


def resized(x):
    with autocast():
        y = (x @ W).sum(0)
    z = x.new_empty(0)
    torch.add(y.detach(), 1, out=z)
    return z * x[0]


def leaf_in_autocast(x):
    with autocast():
        y = x @ W
        return y + 1 if y.is_leaf else y


def is_made_in_inference(x):
    with torch.inference_mode():
        y, z = W.t(), x * 2
        return z + 1 if z.is_inference() and not y.is_inference() else z


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    "f",
    [asked_of_a_view, used_behind_it, caught_behind_it, written_behind_it, resized,
     leaf_in_autocast, is_made_in_inference],
)  # fmt: skip
def test_what_history_tells_is_right_where_the_state_changes(f, grad):
    fast = stator.compile(f, backend="eager")
    for n in SIZES:
        x = torch.randn(n, 4, requires_grad=grad)
        agree(fast(x), f(x), "eager")


def test_rules_hold_in_inference_mode():
    """Each is compared with torch's fakes."""
    from stator import _engine

    module = Block()
    _engine.torch_check_rules(True)
    try:
        with torch.inference_mode():
            entries_of(lambda x: module(x) + module.norm.weight.view(1, 8).repeat(1, 5),
                       batches(5, 8), "eager")  # fmt: skip
    finally:
        _engine.torch_check_rules(False)
