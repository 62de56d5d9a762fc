# ruff: noqa: E402
"""Python's own random numbers: each call draws what plain Python would draw, in order, and leaves
the generator as plain Python does; whatever breaks, branches or fails on the way."""

import random

import pytest

torch = pytest.importorskip("torch")

import stator

OWN = random.Random(5)


class Doubled(random.Random):
    def random(self):
        return super().random() * 2


DOUBLED = Doubled(3)


def numbers(x):
    whole = random.randint(1, 9)
    y = x + random.uniform(10, 20)
    return y + whole, random.randrange(0, 10), random.getrandbits(7)


def branches(x):
    if random.random() < 0.5:
        return x * 2
    return x + random.random()


def loops(x):
    for _ in range(3):
        x = x * random.random()
    return x


def prints(x):
    r = random.random()
    y = x * r
    print(end="")
    return y + random.random(), r


def of_objects(x):
    return x * OWN.random() + DOUBLED.random() - random.random(), OWN.gauss(0, 1)


def picks(x):
    order = [1, 2, 3, 4]
    random.shuffle(order)
    return random.choice([x, x + 1, x * 3]) * order[0], order


def seeds(x):
    OWN.seed(3)
    return x * OWN.random()


def needs_value(x):
    p = random.random()
    return torch.nn.functional.dropout(x, p), "%.3f" % p


def slices(x):
    return x[random.randint(0, 2) :], int(random.random() * 10)


def fails(x):
    y = x * random.random()
    try:
        return y.view(5, 5)
    except RuntimeError:
        return y + random.random()


def writes(x):
    x.add_(random.random())
    KEPT["last"] = random.random()
    return x


@torch.library.custom_op("stator_test::drawing", mutates_args=())
def drawing(x: torch.Tensor) -> torch.Tensor:
    return x * random.random()


@drawing.register_fake
def _(x):
    return torch.empty_like(x)


def beside_custom(x):
    y = x + random.random()
    z = drawing(y)
    return z + random.random()


KEPT: dict = {}
# program, how many pieces it is in
PROGRAMS = (
    (numbers, 1), (branches, 1), (loops, 1), (prints, 2), (of_objects, 1), (picks, None),
    (seeds, None), (needs_value, None), (slices, 1), (fails, None), (writes, 1),
    (beside_custom, None),
)  # fmt: skip


def _run(function, count):
    random.seed(7), OWN.seed(1), DOUBLED.seed(2), torch.manual_seed(0), KEPT.clear()
    results = []
    for _ in range(count):
        results.append(function(torch.ones(4)))
        results.append([g.getstate() for g in (random, OWN, DOUBLED)])
    return results, list(KEPT.values())


def _assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b)
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for pair in zip(a, b, strict=True):
            _assert_same(*pair)
    else:
        assert a == b


@pytest.mark.parametrize("backend", ("eager", "aot_eager"))
@pytest.mark.parametrize("program, pieces", PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_as_plain_python_draws(program, pieces, backend):
    compiled = stator.compile(program, backend=backend)
    _assert_same(_run(compiled, 12), _run(program, 12))
    if pieces is not None:
        assert len(stator.explain(program)(torch.ones(4)).entries) == pieces


def test_another_number_needs_no_other_entry():
    seen = []

    def backend(module, inputs):
        seen.append(module)
        return module.forward

    compiled = stator.compile(lambda x: x * random.random(), backend=backend, fullgraph=True)
    for _ in range(6):
        compiled(torch.ones(2))
    assert len(seen) == 1


def test_values_are_taken_as_they_are_where_a_break_is_an_error():
    def program(x):
        return [x, x + 1, x * 3][random.randrange(2)]

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    _assert_same(_run(compiled, 6), _run(program, 6))


class Counted(random.Random):
    def getrandbits(self, k):
        KEPT["calls"] = KEPT.get("calls", 0) + 1
        return super().getrandbits(k)


def test_rejected_draws_need_no_other_entry_and_own_methods_are_asked():
    counted = Counted(9)

    def program(x):
        return x + random.randint(0, 4), random.sample(range(30), 2)[0], counted.randrange(5)

    compiled = stator.compile(program, backend="eager")
    results = []
    for function in (compiled, program):
        counted.seed(4)
        results.append((_run(function, 40), counted.getstate(), dict(KEPT)))
    _assert_same(results[0][0], results[1][0])
    assert results[0][1:] == results[1][1:]

    plain = stator.compile(lambda x: x * random.randint(0, 4), backend="eager", fullgraph=True)
    for _ in range(60):  # of 8 numbers 3 are rejected each time
        plain(torch.ones(1))
