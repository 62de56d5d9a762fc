"""flex_attention is one node with two bodies, and does what it does in plain Python. So does the
function mode under which its functions run."""

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex  # noqa: E402
from torch._dynamo.testing import CompileCounter, EagerAndRecordGraphs  # noqa: E402
from torch.nn.attention.flex_attention import (  # noqa: E402
    AuxRequest,
    and_masks,
    create_block_mask,
    flex_attention,
)

import stator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


installed = pytest.fixture(autouse=True)(flow_cases.installed)


torch.manual_seed(0)
BIAS, DOCUMENT = torch.randn(4), torch.tensor([0] * 6 + [1] * 10)
TABLE = torch.nn.Parameter(torch.randn(4, 16))


def causal(b, h, q, k):
    return q >= k


def same_document(b, h, q, k):
    return DOCUMENT[q] == DOCUMENT[k]


def alibi(score, b, h, q, k):
    return score + BIAS[h] * (q - k)


def capped(score, b, h, q, k):
    return torch.tanh(score / 20) * 20


class Biased(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(4))

    def forward(self, q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + self.bias[h])


MODULE = Biased()
MASK = create_block_mask(causal, None, None, 16, 16, device="cpu")

# -- programs --


def plain(q, k, v):
    return flex_attention(q, k, v)


def score(q, k, v):
    return flex_attention(q.sin(), k, v, score_mod=alibi).cos()


def by_two_indices(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + TABLE[h, i])


def by_a_number(q, k, v):
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + BIAS[0] * TABLE[1, i])


def in_module(q, k, v):
    return MODULE(q, k, v)


def mask(q, k, v):
    return flex_attention(q, k, v, block_mask=MASK)


def created_mask(q, k, v):
    both = and_masks(causal, same_document)
    made = create_block_mask(both, None, None, 16, 16, device="cpu")
    return flex_attention(q, k, v, block_mask=made, score_mod=alibi)


def more_results(q, k, v):
    out, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True))
    return out, aux.lse


def grouped(q, k, v):
    return flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True, scale=0.3)


def twice(q, k, v):
    return flex_attention(flex_attention(q, k, v, score_mod=alibi), k, v, score_mod=capped)


def in_autocast(q, k, v):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return flex_attention(q, k, v)


def computed_tensor(q, k, v):
    t = q.sum((0, 2, 3))
    return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s * t[h])


def other_strides(q, k, v):
    return flex_attention(q.mT.contiguous().mT, k, v, score_mod=capped)


PROGRAMS = [plain, score, by_two_indices, by_a_number, in_module, mask, created_mask, more_results,
            grouped, twice, in_autocast, computed_tensor, other_strides]  # fmt: skip


def inputs():
    torch.manual_seed(1)
    return [torch.randn(2, 4, 16, 8) for _ in range(3)]


def outcome(f):
    """Results, what is known of them, and the gradients of what the functions close over."""
    TABLE.grad = MODULE.bias.grad = None
    result = f(*inputs())
    results = result if isinstance(result, tuple) else (result,)
    if results[0].requires_grad:
        results[0].sin().sum().backward()
    grads = [p.grad for p in (TABLE, MODULE.bias) if p.grad is not None]
    facts = [(r.dtype, r.shape, r.stride(), r.requires_grad) for r in results]
    return [*(r.detach() for r in results), *grads], facts


def check(f, backend):
    want, facts = outcome(f)
    fast = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        got, got_facts = outcome(fast)
        assert got_facts == facts
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_plain_python(program):
    check(program, "eager")


@pytest.mark.parametrize("program", [score, by_two_indices, in_module, created_mask, more_results])
def test_compiled_ahead_of_time(program):
    check(program, "aot_eager")


def test_compiled_by_inductor():
    check(created_mask, "inductor")


# -- nodes --


def test_nodes_are_those_of_stock():
    recorded = EagerAndRecordGraphs()
    torch.compile(score, backend=recorded, fullgraph=True)(*inputs())
    (module,) = recorded.graphs
    call = next(n for n in module.graph.nodes if n.target is torch.ops.higher_order.flex_attention)
    assert [str(a) for a in call.args[:4]] == ["query", "l_k_", "l_v_", "score_mod_0"]
    assert len(call.args) == 9 and str(call.args[4][-1]) == "mask_fn_0"
    assert [str(a) for a in call.args[7]] == ["g_bias_"] and call.args[8] == ()
    assert str(module.score_mod_0.graph).split("\n")[1:] == [
        "    %child : torch.Tensor [num_users=1] = placeholder[target=child]",
        "    %child_1 : torch.Tensor [num_users=0] = placeholder[target=child_1]",
        "    %child_2 : torch.Tensor [num_users=1] = placeholder[target=child_2]",
        "    %child_3 : torch.Tensor [num_users=1] = placeholder[target=child_3]",
        "    %child_4 : torch.Tensor [num_users=1] = placeholder[target=child_4]",
        "    %g_bias_ : torch.Tensor [num_users=1] = placeholder[target=g_bias_]",
        "    %getitem : [num_users=1] = call_function[target=operator.getitem]"
        "(args = (%g_bias_, %child_2), kwargs = {})",
        "    %sub : [num_users=1] = call_function[target=operator.sub]"
        "(args = (%child_3, %child_4), kwargs = {})",
        "    %mul : [num_users=1] = call_function[target=operator.mul]"
        "(args = (%getitem, %sub), kwargs = {})",
        "    %add : [num_users=1] = call_function[target=operator.add]"
        "(args = (%child, %mul), kwargs = {})",
        "    return add",
    ]
    assert str(module.mask_fn_0.graph).count("placeholder") == 4


def test_a_tensor_of_the_function_that_is_rebound():
    bias = torch.zeros(4)

    def modify(s, b, h, i, j):
        return s + bias[h]

    def f(q, k, v):
        return flex_attention(q, k, v, score_mod=modify)

    counter = CompileCounter()
    fast = torch.compile(f, backend=counter)
    for changed in (torch.zeros(4), torch.ones(4), torch.ones(4, dtype=torch.float64)):
        bias = changed
        torch.testing.assert_close(fast(*inputs()), f(*inputs()))
    assert counter.frame_count == 2  # a new dtype, and no new value


# -- functions that are no bodies: plain Python's own call raises what it raises --

LOG = []


def appends(s, b, h, q, k):
    LOG.append(1)
    return s


def prints(s, b, h, q, k):
    print(s)
    return s


def branches(s, b, h, q, k):
    return s if s > 0 else -s


def draws(s, b, h, q, k):
    return s + torch.rand(())


def gives_a_number(s, b, h, q, k):
    return 1.0


@pytest.mark.parametrize("modify", [appends, prints, branches, draws, gives_a_number])
@pytest.mark.parametrize("itself", [False, True])
def test_what_is_no_body_is_a_break(modify, itself):
    """`itself`: the program has compiled torch's function, and nothing around it."""
    function = torch.compile(flex_attention, backend="eager") if itself else flex_attention

    def f(q, k, v):
        return function(q.sin(), k, v, score_mod=modify) + 1

    fast = f if itself else torch.compile(f, backend="eager")
    with pytest.raises((torch._dynamo.exc.Unsupported, RuntimeError, ValueError)):
        fast(*inputs())
    assert LOG == []


def test_a_write_in_a_function():
    def f(q, k, v, total):
        def modify(s, b, h, i, j):
            total.add_(1)
            return s + total

        return flex_attention(q, k, v, score_mod=modify)

    given = inputs()
    want, got = torch.zeros(()), torch.zeros(())
    torch.testing.assert_close(torch.compile(f, backend="eager")(*given, got), f(*given, want))
    assert got == want


# -- the mode --


def test_subscripts_under_the_mode():
    def f(x, i, j):
        with TransformGetItemToIndex():
            a, b, c = x[i], x[i, 1], x[1:][0]
            a.add_(1)  # a copy
        return a, b, c, x[0]

    x, i, j = torch.arange(12.0).view(3, 4), torch.tensor(1), torch.tensor(2)
    want = f(x.clone(), i, j)
    for backend in ("eager", "aot_eager"):
        fast = torch.compile(f, backend=backend, fullgraph=True)
        for a, b in zip(fast(x.clone(), i, j), want, strict=True):
            torch.testing.assert_close(a, b)


def test_a_break_under_the_mode():
    def f(x, i):
        with TransformGetItemToIndex():
            a = x[i]
            torch._dynamo.graph_break()
            b = torch.func.vmap(lambda k: x[k])(torch.arange(2))
        return a, b

    x, i = torch.arange(4.0), torch.tensor(3)
    for a, b in zip(torch.compile(f, backend="eager")(x, i), f(x, i), strict=True):
        torch.testing.assert_close(a, b)


def test_another_mode_beside_it():
    class Doubles(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.Tensor.sin else result

    def f(q, k, v):
        with Doubles():
            t = q.sin()
        out = flex_attention(t, k, v, score_mod=alibi)
        with TransformGetItemToIndex(), Doubles():
            return out.sin() + BIAS[torch.tensor(1)]

    torch.testing.assert_close(torch.compile(f, backend="eager")(*inputs()), f(*inputs()))
