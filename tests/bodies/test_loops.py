"""while_loop, scan and map are one node with bodies each, and do what they do in plain Python."""

import flow_cases as cases
import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.map import map as map_body  # noqa: E402
from torch._higher_order_ops.scan import scan  # noqa: E402
from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
installed = pytest.fixture(autouse=True)(cases.installed)

LINEAR, STATE = cases.LINEAR, cases.STATE

# -- one node --


def while_of_trees(x, y):
    def body(d):
        return ({"i": d["i"] + 1, "v": d["v"] * y},)

    (found,) = while_loop(lambda d: d["i"].sum() < 3, body, ({"i": torch.zeros(1), "v": y + 1},))
    return found["v"] * x


def while_with_gradients(x, y):
    return while_loop(
        lambda i, v: i.sum() < 3, lambda i, v: (i + 1, LINEAR(v) * y), (torch.zeros(1), x)
    )[1]


def while_that_may_not_run(x, y):
    return while_loop(lambda v: v.sum() < 0, lambda v: (v + 1,), (x.detach(),))[0] * x


def while_gives_a_list(x, y):
    return while_loop(lambda i, v: i < 3, lambda i, v: [i + 1, v + y], (torch.tensor(0), y + 1))


def scan_with_gradients(x, y):
    return scan(lambda c, a: (c + a * y[0], LINEAR(c * a)), y[0] + 1, x)


def scan_backwards(x, y):
    return scan(lambda c, a: (c + a, c * a), y[0], x, dim=1, reverse=True)


def scan_of_trees(x, y):
    def combine(c, a):
        return {"u": c["u"] + a[0]}, (c["u"] * a[1], c["u"].clone())

    return scan(combine, {"u": y[0]}, (x, y))


def scan_around_cond(x, y):
    def combine(c, a):
        d = torch.cond(a.sum() > 0, lambda v: v + 1, lambda v: v * 2, (a,))
        return c + d, c * d

    return scan(combine, y[0], y)


def map_with_gradients(x, y):
    return map_body(lambda r, v: LINEAR(r) * v + y.sum(), x, y[1] + 1)


def map_of_trees(x, y):
    return map_body(lambda d: (d["a"] + 1, [d["b"] * 2]), {"a": x, "b": y})


def map_with_a_number(x, y):
    return map_body(lambda r, k: r * k, x, 3)


WHOLE = [while_of_trees, while_with_gradients, while_that_may_not_run, while_gives_a_list,
         scan_with_gradients, scan_backwards, scan_of_trees, scan_around_cond, map_with_gradients,
         map_of_trees, map_with_a_number]  # fmt: skip

# -- a break before the operator --


def while_of_a_tensor_that_it_uses(x, y):
    return while_loop(lambda v: v.sum() < 9, lambda v: (v + y,), (y,))


def scan_of_a_tensor_that_it_uses(x, y):
    return scan(lambda c, a: (c + a * y[0], LINEAR(c * a)), y[0], x)


def map_of_a_tensor_that_it_uses(x, y):
    return map_body(lambda r, v: r * v + y.sum(), x, y[1])


def while_of_an_integer(x, y):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + 1), (0, y))


def while_appends(x, y):
    def body(i):
        STATE.append(1)
        return (i + 1,)

    return while_loop(lambda i: i < 3, body, (torch.tensor(0),))


def while_of_another_size(x, y):
    return while_loop(lambda v: v.sum() < 3, lambda v: (torch.cat([v, v]),), (y[0],))


def while_of_another_dtype(x, y):
    return while_loop(lambda v: v.sum() < 3, lambda v: (v.double(),), (y[0],))


def while_gives_its_carry(x, y):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v), (torch.tensor(0), y))


def while_has_a_large_condition(x, y):
    return while_loop(lambda v: v < 3, lambda v: (v + 1,), (y[0],))


def while_has_a_constant_condition(x, y):
    return while_loop(lambda v: False, lambda v: (v + 1,), (y,))


def while_writes(x, y):
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v.add_(1) + 1), (torch.tensor(0), y))


def scan_of_one_result_twice(x, y):
    def combine(c, a):
        d = c + a
        return d, d

    return scan(combine, y[0], x)


def scan_of_another_dtype(x, y):
    return scan(lambda c, a: ((c + a).double(), c + 1), y[0], y)


def scan_of_three(x, y):
    return scan(lambda c, a: (c + a, c + 1, c), y[0], y)


def scan_over_nothing(x, y):
    return scan(lambda c, a: (c + a, c + 1), y[0], y[:0])


def scan_without_a_result(x, y):
    return scan(lambda c, a: (c + a, None), y[0], y)


def scan_appends(x, y):
    def combine(c, a):
        STATE.append(1)
        return c + a, c + 1

    return scan(combine, y[0], y)


def map_gives_a_view(x, y):
    return map_body(lambda a: a.view(2, 2), y)


def map_gives_a_number(x, y):
    return map_body(lambda a: (a + 1, 3), y)


def map_over_different_counts(x, y):
    return map_body(lambda d: d[0].sum() + d[1].sum(), (x, y[:2]))


def map_of_a_number(x, y):
    return map_body(lambda a: a + 1, 3)


PARTLY = [while_of_a_tensor_that_it_uses, scan_of_a_tensor_that_it_uses,
          map_of_a_tensor_that_it_uses, while_of_an_integer, while_appends, while_of_another_size, while_of_another_dtype,
          while_gives_its_carry, while_has_a_large_condition, while_has_a_constant_condition,
          while_writes, scan_of_one_result_twice, scan_of_another_dtype, scan_of_three,
          scan_over_nothing, scan_without_a_result, scan_appends, map_gives_a_view,
          map_gives_a_number, map_over_different_counts, map_of_a_number]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", WHOLE, ids=lambda f: f.__name__)
def test_one_node(program, backend):
    cases.check(program, backend)
    assert cases.breaks() == {}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PARTLY[:3], ids=lambda f: f.__name__)
def test_operands_that_share_memory(program, backend):
    cases.check(program, backend)


@pytest.mark.parametrize("program", PARTLY[3:], ids=lambda f: f.__name__)
def test_as_in_plain_python(program):
    cases.check(program, "eager")


@pytest.mark.parametrize("program", [scan_with_gradients, while_with_gradients])
def test_by_inductor(program):
    cases.check(program, "inductor")
    assert cases.breaks() == {}


@pytest.mark.parametrize(
    "program", [while_that_may_not_run, scan_with_gradients, scan_backwards,
                map_of_trees], ids=lambda f: f.__name__
)  # fmt: skip
def test_the_graph_is_stock_s(program):
    ours = cases.graph_lines(program)
    assert ours == cases.stock_lines(program)
