# ruff: noqa: E402
"""What people say about single functions, with torch's names and with ours, installed or not."""

import builtins
import io
import logging
import os
import random
import re
import socket
import subprocess
import sys
import time
import warnings
import zlib

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

import stator
from stator import _engine
from tests.tensor.helpers import Recorder


@pytest.fixture(params=["alone", "installed"], autouse=True)
def surface(request):
    if request.param == "installed":
        stator.install()
    stator.reset()
    yield request.param
    stator.uninstall()
    stator.reset()


def graphs_of(f, *args):
    """Compiled and eager agree; how many graphs there were."""
    backend = Recorder()
    want = f(*args)
    fast = stator.compile(f, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(fast(*args), want)
    return len(backend.graphs)


def reasons_of(f, *args):
    fast = stator.compile(f, backend="eager")
    fast(*args)
    texts = fast.metrics["drops"] + fast.metrics.get("breaks", [])
    return [re.search(r"\[([A-Z_]+)\]", text)[1] for text in texts]


def why(f, *args):
    with pytest.raises(stator.Unsupported) as caught:
        stator.compile(f, backend="eager", fullgraph=True)(*args)
    return str(caught.value)


# -- disable --

DISABLES = (torch.compiler.disable, torch._dynamo.disable, stator.disable)


@pytest.mark.parametrize("disable", DISABLES)
def test_a_disabled_function_breaks_and_runs_plainly(disable):
    seen = []

    def deep(x):
        seen.append(stator.is_compiling())
        return x * 3

    @disable(reason="it is delicate")
    def inner(x):
        return deep(x + 1)

    def f(x):
        return inner(x.sin()).cos()

    assert graphs_of(f, torch.ones(2)) == 2
    assert not any(seen)
    text = why(f, torch.ones(2))
    assert "[DISABLED]" in text
    assert "inner (" in text
    assert f"{__file__}:" in text
    assert "it is delicate" in text


@pytest.mark.parametrize("disable", DISABLES)
def test_not_recursive_its_own_frame_only(disable):
    seen = []

    def deep(x):
        return x * 3 if stator.is_compiling() else x * 5

    @disable(recursive=False)
    def inner(x):
        seen.append(torch.compiler.is_compiling())
        return deep(x + 1)

    def f(x):
        return inner(x * 2)

    fast = stator.compile(f, backend="eager")
    assert fast(torch.ones(1)) == 9
    assert f(torch.ones(1)) == 15
    assert not any(seen)


@pytest.mark.parametrize("disable", DISABLES)
def test_what_is_disabled_can_be_compiled_itself(disable):
    @disable
    def f(x):
        return x + 1 if stator.is_compiling() else x

    assert f(torch.zeros(1)) == 0
    assert stator.compile(f, backend="eager")(torch.zeros(1)) == 1


@pytest.mark.parametrize("disable", DISABLES)
def test_marks_that_functools_copies_do_not_count(disable):
    import functools

    @disable
    def inner(x):
        return x

    @functools.wraps(inner)
    def outer(x):
        return x + 1

    assert why(lambda x: inner(x), torch.ones(1))
    stator.compile(lambda x: outer(x), backend="eager", fullgraph=True)(torch.ones(1))


@pytest.mark.parametrize("recursive", [True, False])
def test_functions_that_torch_marks_at_their_first_call(recursive):
    seen = []

    @torch._disable_dynamo(recursive=recursive)
    def late(x, *, by):
        seen.append(torch.compiler.is_compiling())
        return x * by

    def f(x):
        return late(x + 1, by=2) - 1

    assert f"late ({__file__}" in why(f, torch.ones(2))
    fast = stator.compile(f, backend="eager")
    for _ in range(3):
        torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 3.0))
    assert seen == [False] * 3
    assert fast.metrics["entries"] == 2  # also at the call that marks it
    assert len(fast.metrics["breaks"]) == 1


def test_a_profiler_costs_three_breaks_and_runs(surface):
    if surface == "alone":
        pytest.skip("the same")

    def f(x):
        with torch.profiler.profile() as seen:
            y = (x + 1).sin()
        return y * 2, seen

    fast = stator.compile(f, backend="eager")
    got, seen = fast(torch.ones(2))
    torch.testing.assert_close(got, torch.full((2,), 2.0).sin() * 2)
    assert "aten::sin" in {event.name for event in seen.events()}
    assert len(fast.metrics["breaks"]) == 3


def test_disabled_methods_and_modules():
    class Net(torch.nn.Module):
        def forward(self, x):
            return self.helper(x + 1)

        @stator.disable
        def helper(self, x):
            return x * 2 if not stator.is_compiling() else x

    net = Net()
    fast = stator.compile(net, backend="eager")
    assert fast(torch.ones(1)) == 4
    kept = stator.disable(torch.nn.ReLU())
    assert isinstance(kept, torch._dynamo.eval_frame.OptimizedModule)
    assert "[DISABLED]" in why(lambda x: kept(x), torch.ones(1))


@pytest.mark.parametrize("skip", (torch._dynamo.decorators.skip, stator.skip))
def test_skip_leaves_the_frame_to_cpython(skip):
    @skip
    def inner(x):
        return x + 1 if stator.is_compiling() else x + 2

    fast = stator.compile(lambda x: inner(x * 2), backend="eager")
    assert fast(torch.ones(1)) == 4


def test_disable_takes_callables():
    with pytest.raises(TypeError, match="callable"):
        stator.disable(3)


# -- graph_break, allow, disallow, forbid, constants --


@pytest.mark.parametrize("graph_break", (torch._dynamo.graph_break, stator.graph_break))
def test_graph_break(graph_break):
    def f(x):
        y = x + 1
        graph_break()
        return y * 2

    assert graphs_of(f, torch.ones(2)) == 2
    assert "[GRAPH_BREAK]" in why(f, torch.ones(2))

    def g(x, message):
        graph_break(msg=message)
        return x

    assert "asks for a break: right here [GRAPH_BREAK]" in why(g, torch.ones(1), "right here")
    assert graph_break() is None
    with pytest.raises(TypeError):
        graph_break(1, 2)


def test_allow_in_graph():
    @stator.allow_in_graph
    def kept(x, n):
        if isinstance(x, torch.Tensor):
            for _ in range(n):
                x = x + 1
        return x

    backend = Recorder()
    fast = stator.compile(lambda x: kept(x * 2, 3).sin(), backend=backend, fullgraph=True)
    torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 5.0).sin())
    targets = [node.target for node in backend.graphs[0].graph.nodes if "call" in node.op]
    assert kept in targets
    assert len(targets) == 3


def test_disallow_in_graph():
    def f(x):
        return torch.add(torch.sub(torch.add(x, 1), 1), 1)

    torch._dynamo.disallow_in_graph(torch.sub)
    try:
        assert "[DISALLOWED]" in why(f, torch.ones(2))
        graphs_of(f, torch.ones(2))
    finally:
        torch._dynamo.allow_in_graph(torch.sub)
    stator.reset()
    assert graphs_of(f, torch.ones(2)) == 1


def test_forbid_in_graph(surface):
    @torch._dynamo.forbid_in_graph
    def inner(x):
        return x

    def f(x):
        return inner(x)

    assert "[FORBIDDEN]" in why(f, torch.ones(1))
    if surface == "installed":
        with pytest.raises(AssertionError, match="forbidden callable"):
            torch.compile(f, backend="eager")(torch.ones(1))


def test_assume_constant_result():
    calls = []

    class Settings:
        def __init__(self):
            self.scale = 2

        @torch._dynamo.assume_constant_result
        def factor(self, n):
            calls.append(n)
            return self.scale * n

    settings = Settings()
    fast = stator.compile(lambda x: x * settings.factor(3), backend="eager", fullgraph=True)
    assert fast(torch.ones(1)) == 6
    settings.scale = 5
    assert fast(torch.ones(1)) == 6
    assert calls == [3]

    @torch._dynamo.assume_constant_result
    def weights():
        return [torch.full((2,), 2.0), "name"]

    fast = stator.compile(lambda x: x * weights()[0], backend="eager", fullgraph=True)
    torch.testing.assert_close(fast(torch.ones(2)), torch.full((2,), 2.0))


# -- is_compiling --


def _asks(x):
    answers = (
        torch.compiler.is_compiling(),
        torch.compiler.is_dynamo_compiling(),
        torch._dynamo.is_compiling(),
        torch._utils.is_compiling(),
        stator.is_compiling(),
    )
    return x, answers


def test_is_compiling():
    assert not any(_asks(1)[1])
    fast = stator.compile(_asks, backend="eager", fullgraph=True, _keep_empty=True)
    for _ in range(2):
        assert all(fast(torch.ones(1))[1])
    assert not stator.is_compiling()


# -- error_on_graph_break --


@pytest.mark.parametrize(
    "strict", (torch._dynamo.error_on_graph_break, stator.error_on_graph_break)
)
def test_error_on_graph_break(strict):
    def f(x, flag):
        y = x + 1
        if flag:
            with strict(True):
                stator.graph_break()
        else:
            stator.graph_break()
        return y * 2

    fast = stator.compile(f, backend="eager")
    assert fast(torch.ones(1), False) == 4
    with pytest.raises(stator.Unsupported):
        fast(torch.ones(1), True)
    with strict(True), pytest.raises(stator.Unsupported):
        stator.compile(f, backend="eager")(torch.ones(2), False)

    @strict(True)
    def g(x):
        stator.graph_break()
        return x

    with pytest.raises(stator.Unsupported):
        stator.compile(g, backend="eager")(torch.ones(1))

    def h(x):
        with strict(True):
            y = x + 1
        stator.graph_break()
        return y + 1

    assert stator.compile(h, backend="eager")(torch.ones(1)) == 3


def test_a_whole_function_called_by_another_stays_whole():
    @stator.compile(backend="eager", fullgraph=True)
    def inner(x):
        stator.graph_break()
        return x + 1

    def outer(x, flag):
        return inner(x * 2) if flag else x

    fast = stator.compile(outer, backend="eager")
    assert fast(torch.ones(1), False) == 1
    with pytest.raises(stator.Unsupported):
        fast(torch.ones(1), True)

    def breaks_elsewhere(x):
        y = stator.compile(lambda x: x + 1, backend="eager", fullgraph=True)(x)
        stator.graph_break()
        return y * 2

    assert stator.compile(breaks_elsewhere, backend="eager")(torch.ones(1)) == 4


def test_skip_frame():
    def f(x):
        y = x + 1
        torch._dynamo.skip_frame()
        return y * 2

    def g(x):
        y = x - 1
        stator.graph_break()
        y = y + 1
        torch._dynamo.skip_frame()
        return y * 2

    assert graphs_of(f, torch.ones(2)) == 0
    assert graphs_of(g, torch.ones(2)) == 1
    assert "[SKIP_FRAME]" in why(f, torch.ones(2))
    assert graphs_of(lambda x: f(x) + 1, torch.ones(2)) > 1  # as a part of another: a break


def test_step_unsupported():
    def f(x):
        y = x + 1
        torch._dynamo.decorators.step_unsupported()
        return y * 2

    backend = Recorder()
    fast = stator.compile(f, backend=backend)
    for _ in range(3):
        assert fast(torch.ones(1)) == 4
    assert len(backend.graphs) == 1
    assert "[STEP]" in why(f, torch.ones(1))


def test_substitute_in_graph(surface):
    native = {"alone": zlib.crc32, "installed": zlib.adler32}[surface]  # once for each is allowed

    def f(x, text):
        return x * (native(text) % 7)

    assert reasons_of(f, torch.ones(1), b"text") != []

    @torch.compiler.substitute_in_graph(native, skip_signature_check=True)
    def substitute(data):
        return sum(data)

    fast = stator.compile(f, backend="eager", fullgraph=True)
    assert fast(torch.ones(1), b"text") == sum(b"text") % 7
    assert f(torch.ones(1), b"text") == native(b"text") % 7


# -- set_stance --


def add(x, n):
    return x + n if stator.is_compiling() else x - n


def test_set_stance():
    backend = Recorder()
    fast = stator.compile(add, backend=backend)
    x = torch.ones(1)
    assert fast(x, 1) == 2
    with stator.set_stance("force_eager"):
        assert fast(x, 1) == 0
        assert fast(x, 2) == -1
    with stator.set_stance("eager_on_recompile"):
        assert fast(x, 1) == 2
        assert fast(x, 2) == -1
    with stator.set_stance("fail_on_recompile"):
        assert fast(x, 1) == 2
        with pytest.raises(RuntimeError, match=r"function name: 'add'[\s\S]*L\['n'\]"):
            fast(x, 2)
    assert len(backend.graphs) == 1
    stator.set_stance("eager_on_recompile")
    assert fast(x, 2) == -1
    stator.set_stance("default")
    assert fast(x, 2) == 3


def test_no_stance_is_set_by_compiled_code(surface):
    set_stance = torch.compiler.set_stance if surface == "installed" else stator.set_stance

    def f(x, off):
        torch._dynamo.skip_frame()
        if off:
            stator.disable(set_stance)("default")
        else:
            set_stance("default")
        return x + 1

    fast = stator.compile(f, backend="eager")
    with pytest.raises(RuntimeError, match="attempted to set_stance in a"):
        fast(torch.ones(1), False)
    assert fast(torch.ones(1), True) == 2


def test_eager_then_compile():
    fast = stator.compile(add, backend="eager")
    x = torch.ones(1)
    with stator.set_stance("eager_then_compile"):
        assert fast(x, 1) == 0
        assert fast(x, 1) == 2
        assert fast(x, 1) == 2


def test_stances_as_decorators():
    fast = stator.compile(add, backend="eager")

    @stator.set_stance("force_eager")
    def plainly(x):
        return fast(x, 1)

    assert fast(torch.ones(1), 1) == 2
    assert plainly(torch.ones(1)) == 0
    assert fast(torch.ones(1), 1) == 2


def test_stances_force_backends():
    one, other = Recorder(), Recorder()
    fast = stator.compile(add, backend=one)
    with stator.set_stance(force_backend=other):
        assert fast(torch.ones(1), 1) == 2
    assert (len(one.graphs), len(other.graphs)) == (0, 1)
    with pytest.raises(RuntimeError, match="force_backend"):
        stator.set_stance("force_eager", force_backend=other)
    with pytest.raises(RuntimeError, match="invalid"):
        stator.set_stance("sideways")
    assert fast(torch.ones(1), 1) == 2


# -- reasons of breaks --


def _truth(x):
    return x + 1 if x.sum() > 0 else x - 1


def _loud(x):
    logging.getLogger("stator.test").error("%s", 1)
    return x


def _warns(x):
    warnings.warn("careful", stacklevel=1)
    return x


BUFFER = io.BytesIO()

REASONS = {
    "PRINT": lambda x: (x + 1, print("hello"))[0],
    "LOGGING": _loud,
    "WARNING": _warns,
    "FILE_IO": lambda x: (x, open(os.devnull).close())[0],
    "NETWORK": lambda x: (x, socket.gethostname())[0],
    "CLOCK": lambda x: (x, time.perf_counter())[0],
    "RANDOM_STATE": lambda x: (x, random.seed(0), torch.manual_seed(0))[0],
    "SAVE": lambda x: (x, torch.save(x, BUFFER))[0],
    "TENSOR_TRUTH": _truth,
    "ITEM": lambda x: x + x.sum().item(),
    "TOLIST": lambda x: x + x.tolist()[0],
    "NUMPY": lambda x: (x, x.detach().numpy(force=True))[0],
    "DATA_SHAPE": lambda x: x.nonzero() + 1,
    "BACKWARD": lambda x: (x, x.sum().backward())[0],
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.filterwarnings("ignore")
def test_each_has_its_own_reason(reason):
    f = REASONS[reason]
    x = torch.ones(2, requires_grad=True)
    fast = stator.compile(f, backend="eager")
    fast(x)
    text = fast.metrics["breaks"][0]
    assert f"[{reason}]" in text
    assert "hint: " in text
    assert f"{__file__}:" in text
    stator.reset()
    torch.testing.assert_close(stator.compile(f, backend="eager")(x), f(x))


def test_debuggers(monkeypatch):
    stops = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(1))

    def f(x):
        breakpoint()
        return x + 1

    assert "[DEBUGGER]" in why(f, torch.ones(1))
    stator.compile(f, backend="eager")(torch.ones(1))
    assert stops == [1]


def test_extension_modules():
    markupsafe = pytest.importorskip("markupsafe._speedups")
    escape = getattr(markupsafe, "_escape_inner", None) or markupsafe.escape
    assert "[EXTENSION]" in why(lambda x: escape("<"), torch.ones(1))


def test_a_quiet_logger_is_traced():
    logger = logging.getLogger("stator.quiet")
    logger.setLevel(logging.ERROR)
    logger.debug("so that the logger knows")

    def f(x):
        logger.debug("nothing")
        return x + 1

    stator.compile(f, backend="eager", fullgraph=True)(torch.ones(1))


def test_reasons_have_ids():
    with pytest.raises(ValueError, match="NO_SUCH"):
        _engine.refuse(test_reasons_have_ids, "path", "NO_SUCH", "why")


_WITHOUT_TORCH = """
import sys, stator
assert not stator.is_compiling()
@stator.disable(reason="r")
def inner(x): return (x, stator.is_compiling())
def f(x):
    stator.graph_break()
    return inner(x), stator.is_compiling()
fast = stator.compile(f, backend="eager", _keep_empty=True)
assert fast(1) == ((1, False), True), fast(1)
try:
    stator.compile(f, backend="eager", fullgraph=True)(1)
except stator.Unsupported as error:
    assert "[GRAPH_BREAK]" in str(error), error
else:
    raise AssertionError
with stator.set_stance("force_eager"):
    assert fast(1) == ((1, False), False)
with stator.error_on_graph_break(True):
    try:
        stator.compile(f, backend="eager")(1)
    except stator.Unsupported:
        pass
    else:
        raise AssertionError
import pdb
try:
    stator.compile(lambda: pdb.set_trace(), backend="eager", fullgraph=True)()
except stator.Unsupported as error:
    assert "[DEBUGGER]" in str(error), error
assert "torch" not in sys.modules
"""


def test_marks_need_no_torch():
    subprocess.run([sys.executable, "-c", _WITHOUT_TORCH], check=True, timeout=300)


def test_a_program_with_its_own_import_function_sees_only_its_imports():
    def program():
        seen, real = [], builtins.__import__

        def noted(name, *args, **kwargs):
            seen.append(name)
            return real(name, *args, **kwargs)

        builtins.__import__ = noted
        try:
            import math
        finally:
            builtins.__import__ = real
        return math.floor(2.5), seen

    for _ in range(2):
        assert stator.compile(program, backend="eager")() == (2, ["math"])
