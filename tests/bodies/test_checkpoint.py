"""checkpoint is one node with a body, and does what it does in plain Python: results, gradients,
random numbers, effects."""

import functools

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import EagerAndRecordGraphs  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import stator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


installed = pytest.fixture(autouse=True)(flow_cases.installed)


torch.manual_seed(0)
LINEAR, DROPOUT, NORM = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4)


class State:
    def __init__(self):
        self.flag, self.calls = 0, []


STATE = State()


# -- programs: each takes a tensor, and how to checkpoint --


def module(x, again):
    return again(lambda v: LINEAR(v).sin(), x) + 1


def dropout_and_free_tensors(x, again):
    y = x.cos()
    return again(lambda v: DROPOUT(LINEAR(v) * y).sin(), x)


def nested(x, again):
    return again(lambda v: again(lambda u: DROPOUT(u).sin(), v) * 2, x)


def several_results(x, again):
    a, b = again(lambda v: (v.sin(), v.cos()), x)
    return a * b


def flag_set_and_set_back(x, again):
    def body(v):
        old, STATE.flag = STATE.flag, 3
        y = v * STATE.flag
        STATE.flag = old
        return y.sin()

    return again(body, x)


def own_list(x, again):
    def body(v):
        out = []
        out.extend(map(torch.sin, [v, v + 1]))
        return out[0] + out[1]

    return again(body, x)


def exception_caught_outside(x, again):
    try:
        return again(lambda v: v.sin() + [][1], x)
    except IndexError:
        return x * 2


def autocast(x, again):
    def body(v):
        with torch.autocast("cpu", torch.bfloat16):
            s = LINEAR(v)
        return v * s

    return again(body, x)


def partial_and_super(x, again):
    class Base:
        def run(self, v, k):
            return v.sin() * k

    class Derived(Base):
        def run(self, v):
            return again(functools.partial(super().run, k=2), v)

    # Only the other kind takes keywords.
    return Derived().run(x)


WHOLE = [module, dropout_and_free_tensors, nested, several_results, flag_set_and_set_back, own_list,
         exception_caught_outside, autocast, partial_and_super]  # fmt: skip


def gives_its_operand(x, again):
    return again(lambda v: (v, v * 2), x)[0]


def no_gradients_within(x, again):
    def body(v):
        with torch.no_grad():
            s = v.sum()
        return v * s

    return again(body, x)


def asks_for_gradients(x, again):
    return again(lambda v: v.sin() * (2 if (v * 1).requires_grad else 3), x)


def writes_a_list(x, again):
    def body(v):
        STATE.calls.append(1)
        return v.sin().sin()

    return again(body, x)


def fills_a_list_natively(x, again):
    found = []

    def body(v):
        found.extend(map(torch.sin, [v]))
        return v * 2

    return again(body, x) + found[0]


def prints(x, again):
    def body(v):
        print("seen")
        return v.sin()

    return again(body, x)


def leaves_gradients_off(x, again):
    def body(v):
        torch._C._set_grad_enabled(False)
        return v * 2

    y = again(body, x)
    z = y * 2
    torch._C._set_grad_enabled(True)
    return z + x


def updates_buffers(x, again):
    return again(NORM, x * 2)


def writes_a_free_tensor(x, again):
    y = x * 2

    def body(v):
        y.add_(1)
        return v * y

    return again(body, x)


def writes_a_view_of_a_free_tensor(x, again):
    y = x * 2

    def body(v):
        y.view(-1)[0] = 1
        return v * y

    return again(body, x)


def uses_a_tensor_with_a_history(x, again):
    y = again(lambda v: v.sin(), x)
    return y * again(lambda v: v.cos() * y, x)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0]


def function_in_it(x, again):
    return again(lambda v: Square.apply(v).sin() if v.sum() > 9 else Square.apply(v), x)


def iterator_given_back(x, again):
    pair = again(lambda v: iter([v.sin(), v.cos()]), x)
    return next(pair) + next(pair)


def closure_given_back(x, again):
    def body(v):
        y = v.sin()
        return lambda: y * 2

    return again(body, x)()


def tensor_in_a_dict_outside(x, again):
    found = {}

    def body(v):
        found["k"] = v.sin()
        return v * 2

    return again(body, x) + found["k"]


def other_random_numbers(x, again):
    return again(lambda v: DROPOUT(v).sin(), x, preserve_rng_state=False)


def asks_for_a_value(x, again):
    return again(lambda v: v.sin() if v.sum() > 0 else v.cos(), x)


def uses_no_gradient_of_its_own(x, again):
    return again(lambda v: LINEAR(v), x.detach()) + x


PARTLY = [gives_its_operand, no_gradients_within, asks_for_gradients, writes_a_list,
          fills_a_list_natively, prints, leaves_gradients_off, updates_buffers,
          other_random_numbers, writes_a_free_tensor, writes_a_view_of_a_free_tensor,
          uses_a_tensor_with_a_history, function_in_it, iterator_given_back, closure_given_back,
          tensor_in_a_dict_outside, asks_for_a_value, uses_no_gradient_of_its_own]  # fmt: skip

# -- running them --


def _kind(reentrant):
    return functools.partial(checkpoint, use_reentrant=reentrant)


def _outcome(function, x, again):
    """What comes out, and what is left behind."""
    x = x.clone().requires_grad_()
    LINEAR.zero_grad()
    NORM.reset_running_stats()
    NORM.zero_grad()
    STATE.calls.clear()
    torch.manual_seed(3)
    try:
        y = function(x, again)
        if y.requires_grad:
            y.sum().backward()
    except Exception as error:
        torch._C._set_grad_enabled(True)
        return type(error), str(error)
    weights = [p.grad for p in (*LINEAR.parameters(), *NORM.parameters())]
    return (y.detach(), y.requires_grad, y is x, x.grad, weights, len(STATE.calls), torch.rand(1),
            NORM.running_mean.clone(), NORM.num_batches_tracked.clone())  # fmt: skip


def _check(program, reentrant, backend):
    x, again = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)), _kind(reentrant)
    expected = _outcome(program, x, again)
    fast = torch.compile(program, backend=backend)
    for _ in range(3):
        got = _outcome(fast, x, again)
        if isinstance(expected[0], type):
            assert got == expected
        else:
            torch.testing.assert_close(got, expected)


kinds = pytest.mark.parametrize("reentrant", [False, True], ids=["plain", "reentrant"])
backends = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


@backends
@kinds
@pytest.mark.parametrize("program", WHOLE + PARTLY, ids=lambda f: f.__name__)
def test_as_in_plain_python(program, reentrant, backend, capfd):
    _check(program, reentrant, backend)


@backends
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_no_break(program, backend):
    _check(program, False, backend)
    assert not counters["graph_break"]


def test_by_inductor():
    _check(module, False, "inductor")
    assert not counters["graph_break"]


def test_reentrant_is_traced():
    _check(module, True, "aot_eager")
    assert not counters["graph_break"]


def _graph(program, *args):
    backend = EagerAndRecordGraphs()
    torch.compile(program, backend=backend, fullgraph=True)(*args)
    (graph,) = backend.graphs
    return graph


def _lines(module):
    """Nodes as text, with those of bodies behind them."""
    rows = [node for node in module.graph.nodes if node.op != "output"]
    lines = [f"{n.name} {n.op} {n.target} {n.args} {n.kwargs}" for n in rows]
    lines.append(str(list(module.graph.nodes)[-1].args))
    for name, child in module.named_children():
        lines += [name, *_lines(child)]
    return lines


def _with_everything(x, y):
    z = x.cos()

    def body(v, w=None):
        u = v * z
        inner = checkpoint(lambda a: a.sin() + y, u, use_reentrant=False)
        return {"a": u + w, "b": [inner]}, 3

    found, n = checkpoint(body, x, use_reentrant=False, w=x + 1, preserve_rng_state=True)
    return found["a"] * found["b"][0] * n


def test_the_graph_is_stock_s():
    x, y = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    ours = _lines(_graph(_with_everything, x, y))
    stator.uninstall()
    torch._dynamo.reset()
    assert ours == _lines(_graph(_with_everything, x, y))


def _policy(context, op, *args, **kwargs):
    return _listed((torch.ops.aten.mm.default, torch.ops.aten.addmm.default), context, op)


def _listed(operators, context, op, *args, **kwargs):
    kinds = torch.utils.checkpoint.CheckpointPolicy
    return kinds.MUST_SAVE if op in operators else kinds.PREFER_RECOMPUTE


MM, ADDMM = torch.ops.aten.mm.default, torch.ops.aten.addmm.default
chosen = functools.partial(
    functools.partial, torch.utils.checkpoint.create_selective_checkpoint_contexts
)
OUTSIDE = chosen(functools.partial(_listed, {MM, ADDMM}))

# Ways to say what is saved, called in the compiled function.
SELECTIVE = {
    "a function": lambda: chosen(_policy),
    "a list of operators": lambda: chosen([MM, ADDMM]),
    "a partial over a set": lambda: chosen(functools.partial(_listed, {MM, ADDMM})),
    "a partial over a tuple": lambda: chosen(functools.partial(_listed, (MM, ADDMM))),
    "a partial over a dict": lambda: chosen(functools.partial(_listed, {MM: 1, ADDMM: 2})),
    "a partial from outside": lambda: OUTSIDE,
    "a keyword": lambda: chosen([MM], allow_cache_entry_mutation=True),
}


@backends
@pytest.mark.parametrize("way", SELECTIVE)
def test_selective_checkpoint(way, backend):
    def program(x, again):
        return again(lambda v: LINEAR(v).sin(), x, context_fn=SELECTIVE[way]())

    _check(program, False, backend)
    assert not counters["graph_break"]


def test_a_selection_made_anew_makes_no_entry():
    graphs = EagerAndRecordGraphs()

    @torch.compile(backend=graphs, fullgraph=True)
    def fast(x, contexts):
        return checkpoint(lambda v: LINEAR(v).sin(), x, use_reentrant=False, context_fn=contexts)

    for operators in ({MM}, {MM}, {MM, ADDMM}):
        fast(torch.ones(4, 4), chosen(functools.partial(_listed, operators)))
    assert len(graphs.graphs) == 2


def test_a_rebound_free_tensor_is_seen():
    weight = torch.ones(4)

    def program(x):
        return checkpoint(lambda v: v * weight, x, use_reentrant=False)

    fast = torch.compile(program, backend="eager")
    x = torch.randn(4, 4)
    torch.testing.assert_close(fast(x), x)
    weight = torch.full((4,), 3.0)
    torch.testing.assert_close(fast(x), x * 3)


def test_other_sizes_are_right():
    fast = torch.compile(module, backend="aot_eager")
    for rows in (4, 5, 6, 4):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(fast(x, _kind(False)), module(x, _kind(False)))


def test_a_graph_that_fails_raises_what_plain_python_raises():
    def program(x, i):
        DROPOUT(x)
        return checkpoint(lambda v: DROPOUT(v)[i] * 2, x, use_reentrant=False)

    fast = torch.compile(program, backend="eager")
    x = torch.randn(4, 4)
    fast(x, torch.tensor([1]))
    with pytest.raises(IndexError) as plain:
        program(x, torch.tensor([9]))
    with pytest.raises(IndexError) as compiled:
        fast(x, torch.tensor([9]))
    assert str(compiled.value) == str(plain.value)
