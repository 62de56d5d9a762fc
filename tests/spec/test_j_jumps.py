# ruff: noqa: E402
"""Lines J1 to J10: which way a trace goes at a jump."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import exc

import stator
from tests.older import skip_stock_before
from tests.spec import asserting
from tests.spec.helpers import Recorder, assert_same, both, breaks, check, missing, outcome, value

# -- J1 to J3 --


@both
def test_J1_a_branch_on_a_constant():
    def program(x, flag, n):
        y = x + 1 if flag else x - 1
        if n > 2 and "a" == "a":
            y = y * 2
        return y

    for flag, n in ((True, 3), (False, 3), (True, 0)):
        backend = check(program, value(), flag, n)
        assert len(backend.graph.graph.nodes) == (4 if n > 2 else 3)


def _by_tensor(x):
    y = x * 2
    if y.sum() > 0:
        return y + 1
    return y - 1


@both
def test_J2_a_branch_on_a_tensor_ends_the_graph():
    backend = Recorder()
    fast = torch.compile(_by_tensor, backend=backend)
    for x in (value(), -value(), value(), -value()):
        assert_same(fast(x), _by_tensor(x))
    assert len(backend.graphs) == 3  # before, and each arm


@both
def test_J2_is_an_error_where_no_break_is_allowed():
    with pytest.raises(exc.Unsupported, match=r"(?i)data-dependent|TENSOR_TRUTH"):
        torch.compile(_by_tensor, backend=Recorder(), fullgraph=True)(value())


def _broken_loop(x):
    for i in range(6):
        x = x + i
        torch._dynamo.graph_break()
        x = x * 2
    return x


def test_J3_a_loop_with_a_break_in_it_stays_compiled():
    # Stock gives such a frame up; here the same few graphs serve each turn.
    backend = check(_broken_loop, value(), whole=False)
    assert len(backend.operations) >= 2
    runs = backend.runs
    assert runs >= 12


def test_J3_longer_loops_need_no_more_graphs():
    def program(x, n):
        for _ in range(n):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    few, many = (len(check(program, value(), n, whole=False).graphs) for n in (5, 40))
    assert many <= few + 1


# -- J4 --


class Truthy:
    def __bool__(self):
        return True


class Falsy:
    def __bool__(self):
        return False


class Long:
    def __len__(self):
        return 2


class Empty:
    def __len__(self):
        return 0


class Neither:
    pass


def _nothing():
    return
    yield


TRUTH = [Truthy(), Falsy(), Long(), Empty(), Neither(), [], [0], (), (0,), {}, {0: 0}, set(), {0}]
TRUTH += [None, 0, 1, 0.0, "", "a", b"", range(0), range(1), Neither, torch.nn.Linear(1, 1)]
TRUTH += [torch.nn.ModuleList(), frozenset(), print]


@pytest.mark.parametrize("thing", TRUTH, ids=lambda thing: type(thing).__name__)
def test_J4_truth(thing):
    def program(x, thing):
        y = x + 1 if thing else x - 1
        return y, not thing, bool(thing), thing and 1, thing or 2

    backend = Recorder()
    got = torch.compile(program, backend=backend, fullgraph=True)(value(), thing)
    want = program(value(), thing)
    assert_same(got[:3], want[:3])
    assert [a is b or a == b for a, b in zip(got[3:], want[3:])] == [True, True]
    assert len(backend.operations) == 1


# -- J5, J6 --


def _by_size(x):
    return x + 1 if x.shape[0] > 3 else x - 1


@both
def test_J5_a_branch_on_a_size_is_decided_and_guarded():
    fast = torch.compile(_by_size, backend=Recorder(), fullgraph=True)
    for n in (2, 3, 4, 5, 2, 5):
        assert_same(fast(torch.ones(n)), _by_size(torch.ones(n)))


@both
def test_J5_sizes_become_symbols():
    backend = Recorder()
    fast = torch.compile(lambda x: x + 1, backend=backend)
    for n in range(2, 12):
        fast(torch.ones(n))
    assert len(backend.graphs) == 2


@both
def test_J5_dynamic_from_the_start():
    backend = Recorder()
    fast = torch.compile(lambda x: x + x.shape[0], backend=backend, dynamic=True)
    for n in range(3, 8):
        assert_same(fast(torch.ones(n)), torch.ones(n) + n)
    assert len(backend.graphs) == 1


@both
def test_J5_a_number_from_a_tensor_is_a_symbol():
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        check(lambda x: x + x.sum().item(), value())


@both
def test_J5_a_branch_on_a_number_from_a_tensor_breaks():
    def program(x):
        return x + 1 if x.sum().item() > 1 else x - 1

    check(program, value(), whole=False)
    check(program, -value(), whole=False)
    assert breaks()


class Condition:
    def __init__(self, tensor):
        self.tensor = tensor

    def __bool__(self):
        return bool(self.tensor.sum() > 0)


def test_J6_other_conditions_are_decided_as_python_does():
    def program(x, condition):
        return x + 1 if condition else x - 1

    for sign in (1, -1):
        check(program, value(), Condition(sign * value()), whole=False)


def test_J6_a_condition_that_python_refuses():
    class Wrong:
        def __bool__(self):
            return 2

    def program(x, condition):
        return x + 1 if condition else x

    want = outcome(program, (value(), Wrong()))
    got = outcome(torch.compile(program, backend="eager"), (value(), Wrong()))
    assert type(want) is TypeError
    assert_same(got, want)


# -- J7, J8 --


@pytest.mark.parametrize("program", [asserting.plain, asserting.with_text], ids=["plain", "text"])
@both
def test_J7_an_assert_on_a_tensor_is_in_the_graph(program):
    backend = check(program, value())
    assert any("assert" in str(target) for target in backend.operations)


@pytest.mark.parametrize("program", [asserting.plain, asserting.with_text], ids=["plain", "text"])
@both
def test_J7_it_fails_when_it_should(program):
    fast = torch.compile(program, backend=Recorder())
    assert_same(fast(value()), program(value()))
    # Which error it is differs: the node raises RuntimeError, the statement AssertionError.
    error = outcome(fast, (-value(),))
    assert isinstance(error, (RuntimeError, AssertionError))
    if program is asserting.with_text:
        assert "not positive" in str(error)


def test_J7_other_messages_are_made_by_python():
    fast = torch.compile(asserting.with_made_text, backend="eager")
    assert_same(fast(value()), value() + 1)
    assert_same(outcome(fast, (-value(),)), AssertionError("size 3"))


@both
def test_J8_asserts_on_sizes_and_numbers(engine):
    skip_stock_before(engine, 2, 13)
    for args in ((torch.ones(3),), (torch.ones(5),)):
        check(asserting.on_a_size, *args, whole=False)
    for n in (1, 0):
        check(asserting.on_a_number, value(), n, whole=False)
    check(asserting.caught, value(), 2, whole=False)
    check(asserting.on_an_item, value(), whole=False)


@both
def test_J8_a_false_one_is_raised_by_python():
    check(asserting.on_false, value(), whole=False)


# -- J9, J10 --


def _operands(x, a, b):
    kept = a and [x + 1]
    other = b or {"k": x}
    chain = a or b or None
    return kept, other, chain, 1 < len(str(a)) < 9


@both
@pytest.mark.parametrize("a, b", [([], ()), ([1], ()), ([], (2,)), ([1], (2,))])
def test_J9_and_or_keep_the_operand(a, b):
    check(_operands, value(), a, b)


def _loops(x, items):
    total = x
    for i, item in enumerate(items):
        if item == 2:
            continue
        total = total + item * i
        if item == 9:
            break
    else:
        total = total * 10
    while total is not None and len(items) < 5:
        items.append(0)
    for _ in ():
        total = None
    return total


@both
@pytest.mark.parametrize("items", [[], [1, 2, 3], [1, 9, 3]], ids=str)
def test_J10_loops_are_unrolled(items):
    backend = check(_loops, value(), items)
    assert len(backend.graphs) == 1 or not items


def test_J10_a_loop_over_a_tensors_rows():
    def program(x):
        total = 0
        for row in x:
            total = total + row
        return total

    backend = check(program, value(3, 2))
    assert len(backend.operations) >= 3
    assert stator.explain(program)(value(3, 2)).breaks == []
