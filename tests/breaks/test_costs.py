"""What a compiled function costs where it does not settle: nobody is asked the same question for ever."""

import warnings

import stator
from stator import _engine


class Asked:
    """A policy that compiles so many times, and counts the questions."""

    fullgraph = False

    def __init__(self, most, then):
        self.most = most
        self.then = then
        self.questions = []

    def miss(self, code, offset, entries, reasons):
        self.questions.append(entries)
        return True if entries < self.most else self.then

    def broke(self, *why):
        pass

    def made(self, *what):
        pass

    def failed(self, *how):
        return False


def double(x):
    return x * 2


def with_policy(function, policy):
    settings = _engine.compiler(None, RuntimeError, False, True, 8, policy=policy)
    return _engine.compiled(function, settings)


def test_a_policy_that_says_never_is_not_asked_again():
    policy = Asked(2, None)
    f = with_policy(double, policy)
    assert [f(x) for x in range(8)] == [2 * x for x in range(8)]
    assert policy.questions == [0, 1, 2]
    hits = f.metrics["hits"]
    assert f(1) == 2 and f.metrics["hits"] == hits + 1  # what was compiled still serves


def test_a_policy_that_says_not_now_is_asked_again():
    policy = Asked(2, False)
    f = with_policy(double, policy)
    assert [f(x) for x in range(5)] == [2 * x for x in range(5)]
    assert policy.questions == [0, 1, 2, 2, 2]


def test_never_ends_with_a_reset():
    policy = Asked(1, None)
    f = with_policy(double, policy)
    assert [f(x) for x in range(4)] == [0, 2, 4, 6]
    f.compiler.reset()
    assert f(5) == 10
    assert policy.questions == [0, 1, 0]
    assert f.metrics["entries"] == 1


def test_reasons_are_not_gathered_past_the_limit():
    f = stator.compile(double, backend="eager", _keep_empty=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in range(20):
            assert f(x) == 2 * x
        seen = len(f.metrics["recompiles"])
        for x in range(20, 40):
            assert f(x) == 2 * x
    assert len(f.metrics["recompiles"]) == seen
