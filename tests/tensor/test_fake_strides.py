# ruff: noqa: E402
"""Where a kernel lays its result out otherwise than torch's fakes say, a trace does not answer
questions about strides: the tensor itself is asked."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F

import stator
from stator import _rows
from tests.tensor import fake_strides
from tests.tensor.helpers import count

LISTED = {word.partition(":")[0].removeprefix("torch.") for word in _rows.UNLIKE_FAKES.split()}


def is_listed(name):
    """Of a name of torch's samples: nn.functional.logsigmoid, special.xlog1py, div."""
    return name in LISTED or name.rpartition(".")[2] in LISTED


# Functions of a tensor that does not lie plainly; all but the last are unlike their fakes.
FUNCTIONS = {
    "logsigmoid": F.logsigmoid,
    "floor division": lambda x: x // torch.tensor(2.0),
    "rounded": lambda x: torch.div(x, torch.tensor(2.0), rounding_mode="floor"),
    "roll": lambda x: x.roll(1, 0),
    "logical_and": lambda x: x.logical_and(x[0]),
    "xlogy": lambda x: torch.special.xlogy(x, x[0]),
    "what follows": lambda x: F.logsigmoid(x).exp() + 1,
    "one of two": lambda x: torch.max(F.logsigmoid(x), x),
    "divided": lambda x: x / 2,
}


def written(y):
    z = y.contiguous()
    z.add_(1)
    return y, z


def itself(y):
    z = y.contiguous()
    return z is y, z.is_contiguous()


QUESTIONS = {
    "stride": lambda y: y.stride(),
    "stride of one": lambda y: y.stride(0),
    "dim_order": lambda y: y.dim_order(),
    "is_contiguous": lambda y: y.is_contiguous(),
    "contiguous": itself,
    "written": written,
}
OPERANDS = {
    "transposed": lambda: torch.rand(3, 4).t(),
    "turned": lambda: torch.rand(2, 3, 4).transpose(0, 2),
    "plain": lambda: torch.rand(3, 4),
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("operand", OPERANDS)
def test_answers(function, question, operand):
    f, ask, x = FUNCTIONS[function], QUESTIONS[question], OPERANDS[operand]()
    expected = ask(f(x) + 0.0)
    got = stator.compile(lambda x: ask(f(x) + 0.0), backend="eager", _keep_empty=True)(x)
    assert repr(got) == repr(expected)


@pytest.mark.parametrize("function", ["logsigmoid", "roll", "divided"])
@pytest.mark.parametrize("operand", ["plain", "transposed"])
def test_breaks_only_where_it_is_unknown(function, operand):
    f = FUNCTIONS[function]
    compiled = stator.compile(lambda x: f(x).contiguous() + 1, backend="eager")
    compiled(OPERANDS[operand]())
    assert count(compiled) == (2 if operand == "transposed" and function != "divided" else 1)


def test_under_fullgraph_contiguous_is_a_node():
    x = OPERANDS["transposed"]()
    f = stator.compile(lambda x: F.logsigmoid(x).contiguous() + 1, backend="eager", fullgraph=True)
    assert torch.equal(f(x), F.logsigmoid(x) + 1)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_all_functions_unlike_their_fakes_are_listed():
    assert sorted(filter(lambda name: not is_listed(name), fake_strides.measure())) == []


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_traces_answer_as_torch_does():
    """Torch's samples of what is listed, laid out in each way, with the trace's answer."""
    wrong = set()
    for op in fake_strides.op_db():
        if not op.dtypes or not is_listed(op.name):
            continue

        def strides(input_, args, kwargs, op=op):
            result = op.op(input_, *args, **kwargs)
            return result.stride() if torch.is_tensor(result) else None

        for sample in list(fake_strides._samples(op, 3)):
            for first, others in fake_strides.LAYOUTS:
                given = fake_strides.laid_out(sample, first, others)
                try:
                    torch.manual_seed(0)
                    expected = strides(*given)
                except Exception:
                    continue
                torch.manual_seed(0)
                if stator.compile(strides, backend="eager", _keep_empty=True)(*given) != expected:
                    wrong.add((op.name, first.__name__, others.__name__))
    assert sorted(wrong) == []
