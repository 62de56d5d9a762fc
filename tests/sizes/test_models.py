"""Models whose batch, length or image changes: results equal to eager, and few entries."""

import pytest

torch = pytest.importorskip("torch")

from stator import _compile  # noqa: E402
from tests.sizes import models  # noqa: E402
from tests.sizes.test_entries import AUTOMATIC, same  # noqa: E402
from tests.sizes.test_what_changes import Saying  # noqa: E402


def compiled(module):
    context = _compile.Context.__new__(_compile.Context)
    context.compiler = _compile.make_compiler("eager", Saying(AUTOMATIC))
    return context(module), context.compiler


def ids(batch, length):
    return torch.randint(0, models.VOCABULARY, (batch, length))


TEXTS = [(3, 7), (3, 9), (3, 11), (3, 5), (3, 23), (3, 40)]
ALONE = [(1, 7), (1, 9), (1, 11), (1, 5), (1, 40)]
ROWS = {
    "perceptron": (models.Perceptron, [torch.randn(n, 8) for n in (3, 4, 5, 17, 2)]),
    "bert": (models.Bert, [ids(*s) for s in TEXTS]),
    "bert, alone": (models.Bert, [ids(*s) for s in ALONE]),
    "gpt": (models.Gpt, [ids(*s) for s in TEXTS]),
    "gpt, alone": (models.Gpt, [ids(*s) for s in ALONE]),
    "llama": (models.Llama, [ids(*s) for s in TEXTS]),
    "llama, alone": (models.Llama, [ids(*s) for s in ALONE]),
}


def flattened(result):
    return tuple(torch.utils._pytree.tree_leaves(result))


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", ROWS)
def test_a_model_needs_two_entries(name, training):
    make, inputs = ROWS[name]
    torch.manual_seed(0)
    module = make().train(training)
    fast, compiler = compiled(module)
    for given in inputs:
        torch.manual_seed(1)
        expected = module(given)
        torch.manual_seed(1)
        assert same(flattened(fast(given)), flattened(expected))
    assert compiler.metrics["entries"] == 2
    assert not compiler.metrics["breaks"] and not compiler.metrics["drops"]
