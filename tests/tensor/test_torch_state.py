# ruff: noqa: E402
"""Torch's state: set inside a trace as eager would, put back however the trace ends."""

import pytest

torch = pytest.importorskip("torch")

import stator
from tests.tensor.helpers import Recorder, assert_same, check, compiled, count


def x(grad=True):
    return torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_(grad)


@pytest.fixture(autouse=True)
def state_stays():
    def now():
        return (
            torch.is_grad_enabled(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.is_autocast_cache_enabled(),
            torch.get_default_dtype(),
            torch.is_inference_mode_enabled(),
        )

    before = now()
    yield
    assert now() == before


def with_no_grad(x):
    with torch.no_grad():
        y = x * 2
    return y, x * y


def nested_modes(x):
    with torch.no_grad():
        a = x * 2
        with torch.enable_grad():
            b = x * 3
        c = x * 4
    return a, b, c, torch.is_grad_enabled()


@torch.no_grad()
def decorated(x):
    return x * 2, torch.is_grad_enabled()


def set_and_reset(x):
    previous = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    y = x * 2
    torch.set_grad_enabled(previous)
    return y, x * 2


def set_as_context(x):
    with torch.set_grad_enabled(x.shape[0] > 5):
        y = x * 2
    return y


def in_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
        inside = torch.is_autocast_enabled("cpu")
    return y, x @ x.t(), inside, torch.is_autocast_enabled("cpu")


def in_disabled_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.autocast("cpu", enabled=False):
            y = x @ x.t()
        z = x @ x.t()
    return y, z


@pytest.mark.parametrize(
    "function",
    [
        with_no_grad,
        nested_modes,
        decorated,
        set_and_reset,
        set_as_context,
        in_autocast,
        in_disabled_autocast,
    ],
)
def test_states_inside(function):
    fast = check(function, x())
    with torch.no_grad():
        assert_same(fast(x()), function(x()))
        assert_same(fast(x()), function(x()))
    assert count(fast) == 2


def test_switches_that_cancel_leave_no_node():
    def f(x):
        with torch.no_grad():
            shape = x.shape
        return x * shape[0]

    fast = check(f, x())
    assert "_set_grad_enabled" not in str(fast.compiler.entries()[0]["graph"])


def leaves_grad_off(x):
    torch.set_grad_enabled(False)
    return x * 2


def test_a_function_that_leaves_the_state_changed():
    fast = compiled(leaves_grad_off)
    for _ in range(2):
        try:
            assert not fast(x()).requires_grad
            assert not torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)
    assert count(fast) == 1


def breaks_inside(x):
    with torch.no_grad():
        y = x * 2
        if y.sum() > 100:
            return y
        return y + 1


def raises_inside(x):
    with torch.no_grad():
        return x @ x


def raises_python(x):
    with torch.no_grad(), torch.autocast("cpu"):
        y = x * 2
        raise KeyError(y.shape)


def test_the_state_is_put_back_after_a_break():
    fast = compiled(breaks_inside, fullgraph=False)
    for _ in range(2):
        assert_same(fast(x()), breaks_inside(x()))
        assert torch.is_grad_enabled()
    with pytest.raises(stator.Unsupported):
        compiled(breaks_inside)(x())


@pytest.mark.parametrize(
    "function,error", [(raises_inside, RuntimeError), (raises_python, KeyError)]
)
def test_the_state_is_put_back_after_an_exception(function, error):
    fast = compiled(function, fullgraph=False)
    for _ in range(2):
        with pytest.raises(error):
            fast(x())


def failing(graph, examples):
    raise ValueError("no")


def test_the_state_is_put_back_after_a_failing_backend():
    with pytest.raises(Exception, match="no"):
        compiled(with_no_grad, backend=failing)(x())


SETTERS = {
    "default dtype": lambda x: (torch.set_default_dtype(torch.float64), torch.ones(2))[1],
    "deterministic": lambda x: torch.use_deterministic_algorithms(True) or x * 2,
    "threads": lambda x: torch.set_num_threads(1) or x * 2,
    "seed": lambda x: torch.manual_seed(3) and torch.rand(2),
}


@pytest.mark.parametrize("name", SETTERS)
def test_other_state_is_set_by_eager(name):
    before = torch.get_default_dtype(), torch.get_num_threads()
    fast = compiled(SETTERS[name], fullgraph=False)

    def reset():
        torch.set_default_dtype(before[0])
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(before[1])

    try:
        for _ in range(2):
            got = fast(x(False))
            reset()
            want = SETTERS[name](x(False))
            reset()
            assert_same(got, want)
    finally:
        reset()


def test_compiling_inside_is_seen():
    def f(x):
        return (x * 2 if torch.compiler.is_compiling() else x * 3), torch.jit.is_scripting()

    assert_same(compiled(f)(x()), (x() * 2, False))


def test_random_numbers_are_eager_s():
    def f(x):
        return torch.rand(3), torch.nn.functional.dropout(x), x.clone().detach().normal_()

    fast = compiled(f)
    for _ in range(2):
        torch.manual_seed(5)
        got = fast(x()), torch.rand(1)
        torch.manual_seed(5)
        assert_same(got, (f(x()), torch.rand(1)))


def test_a_random_graph_that_raises_is_not_run_again():
    def f(x, i):
        y = torch.rand(3)
        return x.index_select(0, i) + y.sum()

    fast = compiled(f, fullgraph=False)
    torch.manual_seed(0)
    fast(x(), torch.tensor([0]))
    state = torch.get_rng_state()
    with pytest.raises(IndexError):
        fast(x(), torch.tensor([9]))
    once = torch.rand(1)
    torch.set_rng_state(state)
    torch.rand(3)
    assert_same(once, torch.rand(1))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_graph_that_raises_leaves_the_state_as_it_was(backend):
    def f(x, i):
        with torch.no_grad(), torch.autocast("cpu"):
            y = x * 2
            try:
                return y.index_select(0, i)
            except IndexError:
                return y, torch.is_grad_enabled()

    fast = compiled(f, backend, fullgraph=False)
    good, bad = torch.tensor([0, 1]), torch.tensor([0, 7])
    for index in (good, bad, good, bad):
        assert_same(fast(x(), index), f(x(), index))
        assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


# -- inference mode --


def in_inference(x):
    with torch.inference_mode():
        y = x * 2
        inside = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
    return y, y.is_inference(), inside, torch.is_inference_mode_enabled(), x * 3


@torch.inference_mode()
def decorated_inference(x):
    return x * 2


def inference_off_within(x):
    with torch.inference_mode(), torch.no_grad():
        a = x + 1
        with torch.inference_mode(False):
            b = x + 2
        c = x + 3
    return a, b, c, x.is_inference(), a.is_inference(), b.is_inference()


def inference_left_by_an_error(x):
    try:
        with torch.inference_mode():
            y = x + 1
            raise ValueError
    except ValueError:
        return x * 2, y.is_inference(), torch.is_grad_enabled()


def one_context_twice(x):
    context = torch.inference_mode()
    with context:
        a = x + 1
    with context:
        b = x + 2
    return a, b


@pytest.mark.parametrize(
    "function",
    [
        in_inference,
        decorated_inference,
        inference_off_within,
        inference_left_by_an_error,
        one_context_twice,
    ],
)
def test_inference_mode(function):
    fast = check(function, x())
    want = [
        t.is_inference() for t in torch.utils._pytree.tree_leaves(function(x())) if is_tensor(t)
    ]
    got = [t.is_inference() for t in torch.utils._pytree.tree_leaves(fast(x())) if is_tensor(t)]
    assert got == want
    check(function, x(False), backend=lambda module, examples: module.forward)


def is_tensor(value):
    return isinstance(value, torch.Tensor)


def test_a_break_in_inference_mode():
    def f(x):
        with torch.inference_mode():
            y = x + 1
            stator.graph_break()
            y = y * 2
        return y, y.is_inference(), x + 1

    check(f, x(), fullgraph=False, calls=3)


def test_a_context_from_outside_is_left_as_it_was_entered():
    context = torch.inference_mode()

    def f(x):
        with context:
            return x + 1

    fast = compiled(f, fullgraph=False)
    for _ in range(3):
        assert fast(x()).is_inference()
        assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("backend", ["eager", lambda module, examples: module.forward])
def test_inference_mode_is_left_when_the_graph_fails(backend):
    def f(x):
        with torch.no_grad(), torch.inference_mode():
            return torch.linalg.cholesky(x + 0)

    fast = compiled(f, backend)
    assert fast(torch.eye(2)).is_inference()
    with pytest.raises(torch.linalg.LinAlgError):
        fast(-torch.eye(2))
    assert not torch.is_inference_mode_enabled()
    assert torch.is_grad_enabled()


def test_grad_mode_that_is_set_already_is_no_node():
    recorder = Recorder()

    def f(x):
        with torch.enable_grad():
            y = x * 2
        return y

    check(f, x(), backend=recorder)
    assert [
        node.name
        for node in recorder.graphs[0].graph.find_nodes(
            op="call_function", target=torch._C._set_grad_enabled
        )
    ] == []


# -- ranges of the profiler --


def in_ranges(x):
    with torch.profiler.record_function("outer"):
        y = x * 2
        with torch.autograd.profiler.record_function("inner", "text"):
            y = y + 1
    return y


@torch.profiler.record_function("decorated")
def decorated_by_a_range(x):
    return x * 2


def range_left_by_an_error(x):
    try:
        with torch.profiler.record_function("failing"):
            raise ValueError
    except ValueError:
        return x * 2


@pytest.mark.parametrize("function", [in_ranges, decorated_by_a_range, range_left_by_an_error])
def test_ranges_are_nothing_without_a_profiler(function):
    fast = check(function, x())
    nodes = fast.compiler.entries()[0]["graph"]
    assert "profiler" not in str(nodes)


def names_of_ranges(profile):
    own = ("outer", "inner", "decorated", "kept")
    return sorted(event.name for event in profile.events() if event.name in own)


@pytest.mark.parametrize("function", [in_ranges, decorated_by_a_range])
def test_ranges_reach_a_profiler(function):
    fast = compiled(function, fullgraph=False)
    assert_same(fast(x()), function(x()))
    for _ in range(2):
        with torch.profiler.profile() as want:
            function(x())
        with torch.profiler.profile() as got:
            fast(x())
        assert names_of_ranges(got) == names_of_ranges(want) != []
    assert_same(fast(x()), function(x()))


def test_a_break_in_a_range():
    def f(x):
        with torch.profiler.record_function("outer"):
            y = x * 2
            stator.graph_break()
            y = y + 1
        return y

    check(f, x(), fullgraph=False, calls=3)

    def g(x, context):
        with context:
            if x.sum() > 100:
                raise ValueError
            return x + 1

    kept = torch.profiler.record_function("kept")
    fast = compiled(g, fullgraph=False)
    for _ in range(3):
        fast(x(), kept)
    with torch.profiler.profile() as profile:
        fast(x(), kept)
        g(x(), kept)
    assert names_of_ranges(profile) == ["kept", "kept"]
