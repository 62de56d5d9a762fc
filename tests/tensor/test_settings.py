# ruff: noqa: E402
"""Torch's settings that all threads share: what a compiled function sets holds for its operations
and behind it, and for nobody while it is only traced."""

import threading

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import stator
from stator import _torch
from tests.tensor.helpers import assert_same, compiled, count

_torch.attach()

KERNELS = [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]


def settings():
    return (
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_math_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        tuple(torch._C._get_sdp_priority_order()),
    )


@pytest.fixture(autouse=True)
def settings_stay():
    before, order = settings(), torch._C._get_sdp_priority_order()
    yield
    after = settings()
    torch._C._set_sdp_use_flash(True)
    torch._C._set_sdp_use_math(True)
    torch._C._set_sdp_use_mem_efficient(True)
    torch._C._set_sdp_priority_order(order)
    assert after == before


@stator.disable
def note(log):
    log.append(settings())


def queries():
    return torch.linspace(-1, 1, 2 * 4 * 3 * 8).reshape(2, 4, 3, 8).transpose(1, 2)


def attend(q):
    return F.scaled_dot_product_attention(q, q, q)


# -- whole programs --


def one_kernel(q):
    with sdpa_kernel(SDPBackend.MATH):
        y = attend(q)
        enabled = torch.backends.cuda.flash_sdp_enabled()
    return y, y.stride(), enabled, torch.backends.cuda.flash_sdp_enabled(), attend(q)


def kernels_in_order(q):
    with sdpa_kernel(KERNELS, set_priority=True):
        y = attend(q)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            z = attend(q)
        order = torch._C._get_sdp_priority_order()
    return y, z, order, torch._C._get_sdp_priority_order()


@sdpa_kernel(SDPBackend.MATH)
def decorated(q):
    return attend(q)


def a_decorated_function(q):
    return decorated(q), attend(q)


def left_by_an_error(q):
    try:
        with sdpa_kernel(SDPBackend.MATH):
            y = attend(q)
            raise KeyError
    except KeyError:
        return y, attend(q)


def refused(q):
    try:
        torch._C._set_sdp_use_flash("no")
    except (RuntimeError, TypeError) as error:
        return q * 2, type(error), torch._C._get_flash_sdp_enabled()
    return q


def set_twice(q):
    torch.backends.cuda.enable_flash_sdp(False)
    y = attend(q)
    torch.backends.cuda.enable_flash_sdp(True)
    z = attend(q)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_flash_sdp(True)
    return y, z, attend(q)


def members(q):
    kernel = SDPBackend.MATH
    found = {kernel: 1, SDPBackend.FLASH_ATTENTION: 2}
    same = kernel == SDPBackend.MATH, kernel != SDPBackend.FLASH_ATTENTION, kernel in KERNELS
    return q + found[KERNELS[1]], same, int(kernel), isinstance(kernel, SDPBackend)


WHOLE = [
    one_kernel,
    kernels_in_order,
    a_decorated_function,
    left_by_an_error,
    refused,
    set_twice,
    members,
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", WHOLE)
def test_one_graph(function, backend):
    want = function(queries())
    fast = compiled(function, backend)
    for _ in range(2):
        assert_same(fast(queries()), want)
    assert count(fast) == 1


# -- in pieces --


def breaks_in_the_block(q, log):
    with sdpa_kernel(SDPBackend.MATH):
        y = attend(q)
        note(log)
        z = attend(q)
    note(log)
    return y, z, attend(q)


def leaves_it_set(q, log):
    torch.backends.cuda.enable_flash_sdp(False)
    return attend(q) * 2


def nothing_in_the_block(q, log):
    with sdpa_kernel(KERNELS, set_priority=True):
        note(log)
    return q + 1


def only_sets(q, log):
    torch.backends.cuda.enable_flash_sdp(False)
    note(log)
    torch.backends.cuda.enable_flash_sdp(True)
    return q


@pytest.mark.parametrize(
    "function", [breaks_in_the_block, leaves_it_set, nothing_in_the_block, only_sets]
)
def test_pieces(function):
    def run(f):
        log = []
        got = f(queries(), log)
        note(log)
        torch.backends.cuda.enable_flash_sdp(True)
        return got, log

    want = run(function)
    fast = compiled(function, fullgraph=False)
    for _ in range(3):
        assert_same(run(fast), want)


# -- guards --


def test_attention_depends_on_the_kernels():
    def strides(q):
        return attend(q).stride()

    fast = compiled(strides)
    assert fast(queries()) == strides(queries())
    with sdpa_kernel(SDPBackend.MATH):
        want = strides(queries())
        assert fast(queries()) == want
    assert want != strides(queries())  # or this test shows nothing
    assert fast(queries()) == strides(queries())
    assert count(fast) == 2


def test_finfo_depends_on_the_default():
    def f(q):
        return torch.finfo().eps

    fast = compiled(f)
    try:
        for dtype in (torch.float32, torch.float64):
            torch.set_default_dtype(dtype)
            assert fast(queries()) == f(queries())
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_was_set_before_is_put_back():
    def f(q):
        with sdpa_kernel(SDPBackend.MATH):
            return attend(q)

    fast = compiled(f)
    for kernels in ([SDPBackend.MATH], KERNELS, [SDPBackend.FLASH_ATTENTION]):
        with sdpa_kernel(kernels):
            before = settings()
            assert_same(fast(queries()), f(queries()))
            assert settings() == before


QUESTIONS = {
    "number": lambda q, kernel: q * int(kernel),
    "equality": lambda q, kernel: (q + 1, kernel == SDPBackend.MATH),
    "key": lambda q, kernel: q * {SDPBackend.MATH: 1}.get(kernel, 2),
    "element": lambda q, kernel: (q + 1, kernel in KERNELS),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_member_is_guarded_by_what_it_is(name):
    f = QUESTIONS[name]
    fast = compiled(f)
    everyone = (*KERNELS, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
    for kernel in everyone:
        assert_same(fast(queries(), kernel), f(queries(), kernel))


def disabled(q):
    with torch._C.DisableTorchFunctionSubclass():
        y = q * 2
    return y + 1


def test_an_object_of_each_call_is_no_reason_to_trace_again():
    fast = compiled(disabled, fullgraph=False)
    assert_same(fast(queries()), disabled(queries()))
    traces = fast.metrics["traces"]
    for _ in range(3):
        assert_same(fast(queries()), disabled(queries()))
    assert fast.metrics["traces"] == traces


# -- nobody sees a trace --


def test_a_graph_that_fails_leaves_them_as_they_were():
    def f(q, index):
        with sdpa_kernel(SDPBackend.MATH):
            return torch.ones(3)[index] + attend(q).sum()

    before = settings()
    for backend in ("eager", lambda graph, examples: graph.forward):
        fast = stator.compile(f, backend=backend, fullgraph=True)
        assert_same(fast(queries(), torch.tensor([1])), f(queries(), torch.tensor([1])))
        with pytest.raises(IndexError):
            fast(queries(), torch.tensor([7]))
        assert settings() == before


def test_other_threads_see_no_trace():
    seen, traced, go_on = [], threading.Event(), threading.Event()

    def look():
        traced.wait(60)
        seen.append(settings())
        go_on.set()

    def backend(graph, examples):
        traced.set()
        go_on.wait(60)
        return graph.forward

    def f(q):
        with sdpa_kernel(SDPBackend.MATH):
            return attend(q)

    before = settings()
    thread = threading.Thread(target=look)
    thread.start()
    got = stator.compile(f, backend=backend, fullgraph=True)(queries())
    thread.join()
    assert seen == [before]
    assert_same(got, f(queries()))
