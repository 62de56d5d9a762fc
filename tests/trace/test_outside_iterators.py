"""Iterators from outside, where a trace may not break: the elements that the program takes, what is
left of the iterator, and what else holds it are as in plain Python."""

import itertools

import pytest

import stator

KINDS = {
    "list": lambda: iter([1, 2, 3, 4]),
    "tuple": lambda: iter((1, 2, 3, 4)),
    "text": lambda: iter("abcd"),
    "bytes": lambda: iter(b"abcd"),
    "range": lambda: iter(range(1, 9, 2)),
    "long range": lambda: iter(range(2**70, 2**70 + 4)),
    "backwards": lambda: reversed([1, 2, 3, 4]),
    "enumerate": lambda: enumerate(iter([1, 2, 3, 4]), 5),
    "islice": lambda: itertools.islice(enumerate("abcdefgh"), 1, 9, 2),
    "count": lambda: itertools.count(3, 2),
    "repeat": lambda: itertools.repeat("r", 4),
}


def one(a, b):
    return next(a)


def several(a, b):
    return next(a), next(a, "end"), next(b, "end")


def in_a_loop(a, b):
    return [x for x, _ in zip(a, range(3))], next(b, "end")


def given_out(a, b):
    next(a)
    return {"a": a, "b": [b]}


def through_another(a, b):
    both = enumerate(a)
    return next(both), next(b, "end"), next(both, "end")


PROGRAMS = [one, several, in_a_loop, given_out, through_another]


def outcome(f, make, taken, same):
    a = make()
    b = a if same else make()
    for _ in range(taken):
        next(a)
    result = f(a, b)
    if isinstance(result, dict):
        assert result["a"] is a and result["b"][0] is b
        result = None
    return result, list(itertools.islice(a, 5)), list(itertools.islice(b, 5))


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_taken_and_left(kind, f):
    compiled = stator.compile(f, backend="eager", fullgraph=True, _keep_empty=True)
    for taken, same in itertools.product((0, 2, 0), (False, True)):
        want = outcome(f, KINDS[kind], taken, same)
        assert outcome(compiled, KINDS[kind], taken, same) == want


def test_an_iterator_that_ends_lets_go():
    held = [[1], [2]]
    compiled = stator.compile(
        lambda it: len(list(it)), backend="eager", fullgraph=True, _keep_empty=True
    )
    for _ in range(3):
        it = iter(held)
        assert compiled(it) == 2
        held.append([3])
        assert list(it) == []
        held.pop()
