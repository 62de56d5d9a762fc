# ruff: noqa: E402
"""torch.distributions in one graph: their checks of arguments, lazy parameters, samples."""

import pytest

torch = pytest.importorskip("torch")

import torch.distributions as D

import stator
from tests.tensor.helpers import assert_same

ONE, ZERO = torch.ones(3, 4), torch.zeros(3, dtype=torch.long)


def normal(x):
    d = D.Normal(x, x.abs() + 1)
    return d.log_prob(x), d.entropy(), d.variance, d.rsample()


def categorical(x):
    d = D.Categorical(logits=x)
    return d.log_prob(ZERO), d.entropy(), d.probs, d.sample()


def lazy_and_again(x):
    d = D.Bernoulli(logits=x)
    return d.probs, d.probs is d.probs, "probs" in d.__dict__, d.entropy()


def on_the_class(x):
    return x + 1, isinstance(D.Bernoulli.probs, property), D.Bernoulli.probs.fget.__name__


PROGRAMS = {
    "normal": normal,
    "categorical": categorical,
    "lazy": lazy_and_again,
    "class": on_the_class,
    "one hot": lambda x: D.OneHotCategorical(logits=x).entropy(),
    "beta": lambda x: D.Beta(x.abs() + 1, x.abs() + 1).log_prob(torch.full_like(x, 0.5)),
    "independent": lambda x: D.Independent(D.Normal(x, ONE), 1).log_prob(x),
    "divergence": lambda x: D.kl_divergence(D.Normal(x, ONE), D.Normal(x + 1, ONE)),
    "transformed": lambda x: D.TransformedDistribution(
        D.Normal(x, ONE), [D.transforms.TanhTransform()]
    ).log_prob(torch.full_like(x, 0.3)),
    "unchecked": lambda x: D.Normal(x, x, validate_args=False).cdf(x),
}


def outcome(f, x):
    torch.manual_seed(0)
    return f(x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph(name):
    f, x = PROGRAMS[name], torch.arange(12.0).view(3, 4) / 5
    fast = stator.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        assert_same(outcome(fast, x), outcome(f, x))


def test_bad_arguments_are_told():
    with pytest.raises(ValueError, match="scale"):
        stator.compile(lambda x: D.Normal(x, -x, validate_args=True).mean)(torch.ones(3))
