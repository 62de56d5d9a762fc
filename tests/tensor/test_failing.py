# ruff: noqa: E402
"""A graph that fails when it runs: what the program sees is what plain Python shows it.

In `make test` each part of the table is met in a few of the others; the full run tries them all.
"""

import functools
import itertools
import os

import pytest

torch = pytest.importorskip("torch")

from torch._functorch.aot_autograd import aot_function

import stator
from tests.tensor import failing
from tests.tensor.helpers import count

stator.allow_in_graph(failing.allowed)

FULL = bool(os.environ.get("STATOR_FULL"))


def few(*parts):
    """All combinations, or so many that each part is there."""
    if FULL:
        return list(itertools.product(*parts))
    longest = max(len(part) for part in parts)
    return list(zip(*(itertools.islice(itertools.cycle(part), longest) for part in parts)))


def forward(module, examples):
    return module.forward


def check(effect, fail, context, backend="eager", grad=False, fullgraph=False):
    plain = failing.program(effect, fail, context)
    fast = stator.compile(plain, backend=backend, fullgraph=fullgraph)
    want, got = failing.outcomes(plain, grad), failing.outcomes(fast, grad)
    for mine, theirs in zip(got, want, strict=True):
        if backend != "eager":  # putting back what was there counts as a write
            del mine["versions"], theirs["versions"]
        assert mine == theirs
    return fast


@pytest.mark.parametrize("effect", failing.EFFECTS)
@pytest.mark.parametrize("context", ["bare", "except", "deep"])
def test_effects(effect, context):
    check(effect, "index_select", context)


@pytest.mark.parametrize("fail", failing.FAILS)
@pytest.mark.parametrize("context", ["bare", "except"])
def test_failures(fail, context):
    check("dropout", fail, context)


@pytest.mark.parametrize("context", failing.CONTEXTS)
@pytest.mark.parametrize("effect, fail", [("dict", "gather"), ("norm", "custom")])
def test_contexts(context, effect, fail):
    check(effect, fail, context)


@pytest.mark.parametrize(
    "effect, fail, context", few(list(failing.EFFECTS), list(failing.FAILS), list(failing.CONTEXTS))
)
def test_with_gradients(effect, fail, context):
    check(effect, fail, context, grad=True)


UNUSED = ["s.x[s.i]", "s.x[:, s.i]", "s.x[1, s.i]", "s.x.index_select(0, s.i)", "s.table(s.i)"]
UNUSED += ["s.x[[99]]", "s.x[[0], [99]]", "s.x[0, [99]]", "s.x[range(99)]"]


@pytest.mark.parametrize("fail", UNUSED)
@pytest.mark.parametrize("effect", ["nothing", "dict"])
def test_what_nobody_uses_may_fail(effect, fail, monkeypatch):
    monkeypatch.setitem(failing.FAILS, "unused", fail)
    monkeypatch.setitem(failing.CONTEXTS, "unused", "EFFECT\nFAIL\ns.log.append('after')")
    check(effect, "unused", "unused")
    check(effect, "unused", "unused", forward)


def test_the_good_calls_are_compiled():
    fast = check("list", "index_select", "except", fullgraph=True)
    assert count(fast) == 1
    assert fast.metrics["hits"] == 3
    assert fast.metrics["breaks"] == []


# -- compiled backends --

# What AOTAutograd finds unused it does not run: random numbers of all but the last time round.
COMPILED = [
    ("dict", "index_select"),
    ("norm", "embedding"),
    ("attribute", "gather"),
    ("list", "index_put_"),
    ("function", "nll"),
    ("no_grad", "cholesky"),
    ("item", "callee of a callee"),
]


@functools.cache
def aot_checks_factors():
    """Whether AOTAutograd keeps the check of linalg's functions; older versions drop it as unused."""
    traced = []
    aot_function(torch.linalg.cholesky, lambda graph, _: traced.append(graph.code) or graph)(
        torch.eye(2)
    )
    return "_linalg_check_errors" in traced[0]


@pytest.mark.parametrize("backend", ["aot_eager", forward])
@pytest.mark.parametrize("context", failing.CONTEXTS)
def test_what_a_compiled_graph_did_is_undone(backend, context):
    names = list(failing.CONTEXTS)
    which = COMPILED if FULL else [COMPILED[names.index(context) % len(COMPILED)]]
    for effect, fail in which:
        if (backend, fail) == ("aot_eager", "cholesky") and not aot_checks_factors():
            continue
        check(effect, fail, context, backend)


@pytest.mark.parametrize("context", ["bare", "except", "finally", "deep"])
@pytest.mark.parametrize("effect", ["dropout", "randn"])
def test_random_numbers_are_drawn_once(effect, context):
    check(effect, "index_select", context, forward)
    check(effect, "index_select", context, "aot_eager")


def test_inductor():
    check("dict", "index_select", "except", "inductor")


@pytest.mark.parametrize("backend", ["aot_eager", forward])
@pytest.mark.parametrize(
    "effect, fail", [("custom", "index_select"), ("list", "after an own one"), ("list", "custom")]
)
def test_a_custom_operation_is_not_run_twice(backend, effect, fail):
    """Its value is not known then: the exception may be raised where the operation is called."""
    plain = failing.program(effect, fail, "finally")
    fast = stator.compile(plain, backend=backend)
    want, got = failing.outcomes(plain), failing.outcomes(fast)
    for mine, theirs in zip(got, want, strict=True):
        assert mine["counts"] == theirs["counts"]
        assert mine["n"] == theirs["n"]
        assert mine["tensors"] == theirs["tensors"]
        assert (mine["error"] and mine["error"][0]) == (theirs["error"] and theirs["error"][0])
    assert got[0] == want[0] | {"versions": got[0]["versions"]}


@pytest.mark.parametrize("backend", ["aot_eager", forward])
def test_what_a_custom_operation_wrote_is_not_left_out(backend):
    """The exception is raised where it is called: a handler gets no values without its write."""
    plain = failing.program("custom, in place", "index_select", "except")
    want = failing.outcomes(plain)
    got = failing.outcomes(stator.compile(plain, backend=backend))
    for mine, theirs in zip(got, want, strict=True):
        assert mine["counts"] == theirs["counts"]
        known = [row for row in mine["log"] if row in theirs["log"]]
        assert mine["log"] == known


def test_inference_mode_without_a_later_operation_is_one_graph():
    def f(s):
        with torch.inference_mode():
            s.buf.add_(1)
        return s.buf * 2

    fast = stator.compile(f, backend="eager", fullgraph=False)
    fast(failing.State())
    assert fast.metrics["breaks"] == []


def test_python_sees_what_it_did_before_a_large_write():
    """Of inputs that are too large to be copied each time, what was written is not known."""

    def f(s, large):
        s.log.append("begin")
        y = s.x * 2
        large.add_(1)
        s.n["calls"] = 3
        try:
            return s.x.index_select(0, s.i)
        except IndexError as error:
            s.log.append(str(error))
            return y

    def run(function, bad):
        s, large = failing.State(), torch.zeros(1 << 15)
        if bad:
            s.spoil()
        result = failing.plain(function(s, large))
        return result, s.log, s.n, float(large.max())

    for backend in ("aot_eager", forward):
        fast = stator.compile(f, backend=backend)
        assert run(fast, False) == run(f, False)
        got, want = run(fast, True), run(f, True)
        assert got[:3] == want[:3]
        assert got[3] in (0, 1)


# -- exceptions that are no fault of the operation --


def interrupted(x):
    if type(x) is torch.Tensor:
        interrupted.calls += 1
        if interrupted.raises:
            raise interrupted.raises
    return x + 1


interrupted.calls, interrupted.raises = 0, None
stator.allow_in_graph(interrupted)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError, SystemExit])
def test_other_exceptions_are_raised_in_place(raised):
    def f(s):
        s.buf.add_(1)
        try:
            s.log.append("in")
            return interrupted(s.x)
        except raised as error:
            s.log.append(type(error))
            return s.x
        finally:
            s.log.append("out")

    fast = stator.compile(f, backend="eager")
    interrupted.raises = None
    fast(failing.State())
    for function in (f, fast):
        s = failing.State()
        interrupted.raises, interrupted.calls = raised("now"), 0
        assert function(s) is s.x
        assert s.log == ["in", raised, "out"]
        assert interrupted.calls == 1
        assert s.buf.tolist() == [1, 1, 1]


# -- how long values live --


def test_values_live_no_longer_than_in_plain_python():
    """A graph that leaves something behind keeps what a failure would need, and nothing else."""

    def f(x, i):
        x = torch.nn.functional.dropout(x, 0.5, True)
        for _ in range(40):
            x = x * 2
            x = big(x)
        return x.index_select(0, i)

    living: set[int] = set()
    most = []

    def big(x):
        if type(x) is torch.Tensor:
            import weakref

            made = x + 1
            living.add(id(made))
            weakref.finalize(made, living.discard, id(made))
            most.append(len(living))
            return made
        return x + 1

    stator.allow_in_graph(big)
    fast = stator.compile(f, backend="eager", fullgraph=True)
    with torch.no_grad():
        fast(torch.ones(3, 2), torch.tensor([0]))
    assert max(most) == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "area"])
def test_samples_without_elements_are_not_scaled(mode, backend):
    """Kernels refuse them, and torch's fakes do not."""

    def scaled(x, k):
        size = torch.nn.functional.interpolate(x[:, k:], scale_factor=2, mode=mode).size()
        return size, x + 1

    def told(function, *args):
        try:
            size, x = function(*args)
        except RuntimeError as error:
            return str(error)
        return size, x.tolist()

    compiled = stator.compile(scaled, backend=backend)
    for width, k in ((3, 0), (4, 1), (5, 2), (5, 5), (6, 6), (0, 0), (7, 3)):
        args = torch.ones(2, width, 4), k
        assert told(compiled, *args) == told(scaled, *args)
