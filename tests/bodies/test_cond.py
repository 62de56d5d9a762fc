"""torch.cond is one node with two bodies, and does what it does in plain Python: results,
gradients, random numbers, errors."""

import flow_cases as cases
import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
installed = pytest.fixture(autouse=True)(cases.installed)

LINEAR, DROPOUT = cases.LINEAR, torch.nn.Dropout(0.5)
STATE = cases.STATE


# -- one node --


def modules_and_closures(x, y):
    z, q = x.cos(), y.sin()
    return torch.cond(x.sum() > 0, lambda a: a * z + LINEAR(a), lambda a: a - q, (x,))


def trees(x, y):
    def true(d):
        return {"k": (d["a"] + d["b"][0], [d["a"] * 2])}

    def false(d):
        return {"k": (d["a"] - d["b"][0], [d["b"][0] * 3])}

    found = torch.cond(x.sum() > 0, true, false, ({"a": x, "b": [y]},))
    return found["k"][0] * found["k"][1][0]


def nested(x, y):
    def true(a):
        return torch.cond(a.sum() > 1, lambda b: b + y, lambda b: b.sin(), (a,))

    return torch.cond(x.sum() > 0, true, lambda a: a * y, (x,)) + 1


def several(x, y):
    z = torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a.cos(), (x,))
    return torch.cond(z.sum() > 3, lambda a: a + y, lambda a: a.sin(), (z,))


def in_a_checkpoint(x, y):
    def body(v):
        return torch.cond(v.sum() > 0, lambda a: LINEAR(a).sin(), lambda a: a * y, (v,)) * 2

    return checkpoint(body, x, use_reentrant=False)


def around_a_checkpoint(x, y):
    def true(a):
        return checkpoint(lambda b: LINEAR(b).sin(), a, use_reentrant=False)

    return torch.cond(x.sum() > 0, true, lambda a: a * y, (x,))


def operands_that_share_memory(x, y):
    return torch.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b, (y, y.t())) * x


def without_operands(x, y):
    return torch.cond((x.sum() > 0).reshape(1), lambda: x + y, lambda: x - 1)


def only_one_branch_differentiates(x, y):
    return torch.cond(x.sum() > 0, lambda a: a.detach() + 1, lambda a: a * y, (x,)) * 2


def neither_branch_differentiates(x, y):
    return torch.cond(x.sum() > 0, lambda a: a.detach() + 1, lambda a: a.detach() - y, (x,))


def makes_tensors(x, y):
    return torch.cond(x.sum() > 0, lambda: torch.ones(4), lambda: torch.zeros(4)) * x


def integers(x, y):
    found = torch.cond(
        x.sum() > 0, lambda a: (a.argmax(), a * 1), lambda a: (a.argmin(), a), (x * 1,)
    )
    return found[1] * found[0]


def integer_tensors(x, y):
    a, b = torch.cond(
        x.sum() > 0, lambda a: (a.argmax(), a * 1), lambda a: (a.argmin(), a + 1), (x,)
    )
    return b * a


def without_gradients(x, y):
    with torch.no_grad():
        z = torch.cond(x.sum() > 0, lambda a: LINEAR(a), lambda a: a.cos(), (x,))
    return z * x


def number_as_predicate(x, y):
    return torch.cond(x.sum(), lambda a: a + y, lambda a: a - y, (x,))


def constant_predicate(x, y):
    return torch.cond(x.shape[0] > 2, lambda a: a + y, lambda a: a, (x,))


def constant_predicate_with_effects(x, y):
    def true(a):
        STATE.append(1)
        return a

    return torch.cond(True, true, lambda a: a + 1, (x,)) + len(STATE)


def flag_set_and_set_back(x, y):
    kept = {}

    def true(a):
        kept["k"] = 3
        b = a * kept["k"]
        del kept["k"]
        return b

    return torch.cond(x.sum() > 0, true, lambda a: a + len(kept), (x,))


def own_list(x, y):
    def true(a):
        out = []
        out.extend(map(torch.sin, [a, a + 1]))
        return out[0] + out[1]

    return torch.cond(x.sum() > 0, true, lambda a: a * 2, (x,))


def writes_to_its_own(x, y):
    return torch.cond(x.sum() > 0, lambda a: a.clone().add_(1), lambda a: a * 2, (x,))


def random_numbers(x, y):
    return torch.cond(x.sum() > 0, lambda a: DROPOUT(a) + y, lambda a: a * torch.rand(4, 4), (x,))


def by_the_operator(x, y):
    (z,) = torch.ops.higher_order.cond(x.sum() > 0, lambda a: (a + y,), lambda a: (a - 1,), (x,))
    return z


WHOLE = [modules_and_closures, trees, nested, several, around_a_checkpoint,
         without_operands, only_one_branch_differentiates, neither_branch_differentiates,
         makes_tensors, without_gradients, number_as_predicate, constant_predicate,
         constant_predicate_with_effects, own_list, writes_to_its_own,
         random_numbers]  # fmt: skip

# -- a break before the operator --


def appends_to_a_list(x, y):
    def true(a):
        STATE.append(1)
        return a + 1

    return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x,))


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def forward(self, a):
        self.n += 1
        return a + self.n


COUNTING = Counting()


def counts_on_a_module(x, y):
    return torch.cond(x.sum() > 0, COUNTING, lambda a: a - 1, (x,)) + COUNTING.n


def prints(x, y):
    def true(a):
        print("seen")
        return a + 1

    return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x,))


def other_dtypes(x, y):
    return torch.cond(x.sum() > 0, lambda a: a.double(), lambda a: a + 1, (x,))


def other_sizes(x, y):
    return torch.cond(x.sum() > 0, lambda a: a[:2] + 1, lambda a: a + 1, (x,)).sum()


def other_strides(x, y):
    return torch.cond(x.sum() > 0, lambda a: (a + 1).t(), lambda a: a + 1, (x,))


def view_given_back(x, y):
    return torch.cond(x.sum() > 0, lambda a: a.view(-1), lambda a: a.view(-1) + 1, (x,))


def operand_given_back(x, y):
    return torch.cond(x.sum() > 0, lambda a: a, lambda a: a + 1, (x,))


def same_result_twice(x, y):
    def true(a):
        b = a + 1
        return b, b

    return torch.cond(x.sum() > 0, true, lambda a: (a + 1, a + 2), (x,))[0]


def other_integers(x, y):
    z, n = torch.cond(x.sum() > 0, lambda a: (a + 1, 2), lambda a: (a + 1, 3), (x.detach(),))
    return z * n * x


def same_integers(x, y):
    z, n = torch.cond(x.sum() > 0, lambda a: (a + 1, 2), lambda a: (a - 1, 2), (x.detach(),))
    return z * n * x


def other_trees(x, y):
    return torch.cond(x.sum() > 0, lambda a: [a + 1], lambda a: (a - 1,), (x,))[0]


def nothing_given_back(x, y):
    torch.cond(x.sum() > 0, lambda a: None, lambda a: None, (x,))
    return x


def writes_to_an_operand(x, y):
    def true(a):
        a.add_(1)
        return a + 1

    return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x.clone(),))


def writes_to_a_free_tensor(x, y):
    z = y.clone()

    def true(a):
        z.add_(1)
        return a + z

    with torch.no_grad():
        return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x,)) + z


def raises(x, y):
    try:
        return torch.cond(x.sum() > 0, lambda a: a + [][1], lambda a: a - 1, (x,))
    except IndexError:
        return x * 2


def leaves_gradients_off(x, y):
    def true(a):
        torch._C._set_grad_enabled(False)
        return a * 2

    return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x,))


def asks_for_a_value(x, y):
    return torch.cond(x.sum() > 0, lambda a: a * a.sum().item(), lambda a: a - 1, (x,))


def numbers_as_operands(x, y):
    return torch.cond(x.sum() > 0, lambda a, k: a * k, lambda a, k: a - k, (x, 3))


def large_predicate(x, y):
    return torch.cond(x > 0, lambda a: a * 2, lambda a: a, (x,))


def leaks(x, y):
    kept = []

    def true(a):
        kept.append(a.sin())
        return a + 1

    return torch.cond(x.sum() > 0, true, lambda a: a - 1, (x,)) + kept[0]


PARTLY = [appends_to_a_list, counts_on_a_module, prints, other_dtypes, other_sizes, other_strides,
          view_given_back, operand_given_back, same_result_twice, other_integers, other_trees,
          nothing_given_back, writes_to_an_operand, writes_to_a_free_tensor, raises,
          leaves_gradients_off, asks_for_a_value, numbers_as_operands, large_predicate, integers,
          leaks, same_integers, in_a_checkpoint, integer_tensors,
          operands_that_share_memory]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_one_node(program, backend):
    cases.check(program, backend)
    assert cases.breaks() == {}


@pytest.mark.parametrize("program", PARTLY, ids=lambda f: f.__name__)
def test_as_in_plain_python(program, capfd):
    COUNTING.n = 0
    cases.check(program, "eager")


@pytest.mark.parametrize(
    "program", [in_a_checkpoint, integer_tensors, operands_that_share_memory, view_given_back,
                writes_to_a_free_tensor], ids=lambda f: f.__name__
)  # fmt: skip
def test_what_a_backend_refuses(program):
    cases.check(program, "aot_eager")


def test_what_stock_dynamo_traces():
    """Plain Python raises, though there is nothing wrong."""
    x, y = cases.inputs()[0]
    for program, want in ((by_the_operator, x + y), (flag_set_and_set_back, x * 3)):
        torch.testing.assert_close(torch.compile(program, backend="aot_eager")(x, y), want)
    assert cases.breaks() == {}


def test_in_a_checkpoint_by_a_replay():
    cases.check(in_a_checkpoint, "eager")
    assert cases.breaks() == {}


def test_by_inductor():
    cases.check(modules_and_closures, "inductor")
    assert cases.breaks() == {}


@pytest.mark.parametrize(
    "program", [modules_and_closures, trees, nested, several, without_operands,
                around_a_checkpoint, without_gradients], ids=lambda f: f.__name__
)  # fmt: skip
def test_the_graph_is_stock_s(program):
    ours = cases.graph_lines(program)
    assert ours == cases.stock_lines(program)


def test_a_rebound_free_tensor_is_seen():
    weight = torch.ones(4)

    def program(x):
        return torch.cond(x.sum() > 0, lambda v: v * weight, lambda v: v + weight, (x,))

    fast = torch.compile(program, backend="eager")
    x = torch.rand(4, 4)
    torch.testing.assert_close(fast(x), x)
    weight = torch.full((4,), 3.0)
    torch.testing.assert_close(fast(x), x * 3)


def test_other_sizes_are_right():
    fast = torch.compile(modules_and_closures, backend="aot_eager")
    for rows in (4, 5, 6, 4):
        x, y = torch.randn(rows, 4), torch.randn(rows, 4)
        torch.testing.assert_close(fast(x, y), modules_and_closures(x, y))
