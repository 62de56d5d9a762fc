"""Functions that are compiled within a kernel of the program's, where torch has excluded dispatch keys
of the thread: results are those of the plain function in the same kernel, whatever the backend."""

import contextlib

import pytest

import stator

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402


class Calling(TorchDispatchMode):
    """Calls each operation below all that torch does before kernels. Conjugates are no longer
    computed there: operations take them as they lie in memory."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


box = {}


@torch.library.custom_op("stator_kernels::call", mutates_args=())
def call(x: torch.Tensor) -> torch.Tensor:
    box["result"] = box["function"](x)
    return x.clone()


def in_a_kernel(f, x, mode):
    box["function"] = f
    with mode():
        call(x)
    return box.pop("result")


def excluding(*names):
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, names[0]))
    for name in names[1:]:
        keys = keys | torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return lambda: torch._C._ExcludeDispatchKeyGuard(keys)


def within(context):
    def run(f, x):
        with context():
            return f(x)

    return run


STATES = {
    "kernel": lambda f, x: in_a_kernel(f, x, contextlib.nullcontext),
    "kernel under a mode": lambda f, x: in_a_kernel(f, x, Calling),
    "no Conjugate": within(excluding("Conjugate")),
    "no Negative": within(excluding("Negative")),
    "no ADInplaceOrView": within(excluding("ADInplaceOrView")),
}


def as_complex(x):
    return torch.complex(x, x * 2 - 1)


def conjugate_times(x):
    y = as_complex(x).conj()
    return torch.view_as_real(y * 2 + y)


def negative_times(x):
    return as_complex(x).conj().imag * 3


def negative_view(x):
    return torch._neg_view(x) * 2


def conjugate_given_out(x):
    return as_complex(x).conj(), as_complex(x).conj().imag


def conjugate_made_by_torch(x):
    y = as_complex(x)
    return torch.view_as_real(torch.linalg.vecdot(y, y + 1)), torch.view_as_real(y.mH @ y)


def conjugate_of_a_spectrum(x):
    return torch.fft.irfft(torch.fft.rfft(x).conj()), torch.fft.rfft(x).conj().angle()


def conjugate_written(x):
    y, z = as_complex(x), as_complex(x)
    y.conj().mul_(1j)
    z.conj().imag.add_(1)
    return torch.view_as_real(y), torch.view_as_real(z)


def conjugates_joined(x):
    y = as_complex(x).conj()
    return torch.view_as_real(torch.cat([y, y * 1j]))


def conjugate_asked(x):
    return x * 2 if as_complex(x).conj().is_conj() else x * 3


def batched(x):
    return torch.vmap(lambda row: row.sum() * row)(x)


def derived(x):
    return torch.func.grad(lambda y: (y * y).sum())(x)


def views_and_writes(x):
    y = x * 2
    z = y.view(-1)[1:]
    z.add_(1)
    return y, z, z._base is None, x.t(), x._version


def needs_grad(x):
    with torch.enable_grad():
        y = x.detach().clone().requires_grad_()
        return y.detach() * (2 if (y * y).requires_grad else 3)


def cast(x):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x.t()


PROGRAMS = [
    conjugate_times, negative_times, negative_view, conjugate_given_out, conjugate_made_by_torch,
    conjugate_of_a_spectrum, conjugate_written, conjugates_joined, conjugate_asked, batched,
    derived, views_and_writes, needs_grad, cast,
]  # fmt: skip


def outcome(state, f, x):
    """The tensors that the function gives, and what else there is to say: the kind of the error,
    too, since torch refuses some of it in kernels."""
    try:
        result = STATES[state](f, x)
    except RuntimeError as error:
        return [], type(error)
    parts = result if isinstance(result, tuple) else (result,)
    tensors = [part for part in parts if isinstance(part, torch.Tensor)]
    bits = [(part.is_conj(), part.is_neg(), part.stride()) for part in tensors]
    others = [part for part in parts if not isinstance(part, torch.Tensor)]
    return [part.resolve_conj().resolve_neg() for part in tensors], (bits, others)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("state", STATES)
def test_programs_in_kernels_give_what_plain_ones_give(state, backend):
    for f in PROGRAMS:
        stator.reset()
        fast = stator.compile(f, backend=backend)
        for n in (4, 5):
            x = torch.randn(n, 4)
            (mine, said), (plain, wanted) = outcome(state, fast, x), outcome(state, f, x)
            assert said == wanted, f.__name__
            torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_kernel_in_a_compiled_graph_compiles(backend):
    """AOTAutograd calls custom operations below a mode of its own."""
    stator.reset()
    inner = stator.compile(conjugate_times, backend=backend)
    fast = stator.compile(lambda x: call(x) + 1, backend=backend)
    for n in (4, 5):
        box["function"] = lambda x: (inner(x), conjugate_times(x))
        fast(torch.randn(n, 4))
        torch.testing.assert_close(*box.pop("result"))


call.register_fake(torch.empty_like)
