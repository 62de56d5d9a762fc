"""Operators that call one function as it is (wrap and its kin, strict_mode, hints_wrapper), and
associative_scan: results, gradients, effects and graphs."""

from __future__ import annotations

from typing import Any

import flow_cases
import pytest

torch = pytest.importorskip("torch")

from torch._higher_order_ops.associative_scan import (  # noqa: E402
    associative_scan,
    associative_scan_op,
)
from torch._higher_order_ops.hints_wrap import hints_wrapper  # noqa: E402
from torch._higher_order_ops.strict_mode import strict_mode  # noqa: E402
from torch._higher_order_ops.wrap import (  # noqa: E402
    wrap,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)

pytestmark = pytest.mark.filterwarnings("ignore")
installed = pytest.fixture(autouse=True)(flow_cases.installed)


def plain(x, y):
    return wrap(lambda a: a.sin() + 1, x)


def free(x, y):
    return wrap(lambda a, b: (a * b + y, {"k": a.cos()}), x, y.exp())


def by_name(x, y):
    return wrap(lambda a, b=None: a * b, x, b=y)


def nested(x, y):
    return wrap(lambda a: wrap(lambda b: b.sin() * y, a * 2) + 1, x)


def with_parameters(x, y):
    return wrap(lambda a: flow_cases.LINEAR(a).relu(), x)


def drops(x, y):
    return wrap(lambda a: torch.nn.functional.dropout(a, 0.5) * 2, x)


def gives_its_argument(x, y):
    z = x * 2
    w, s = wrap(lambda a: (a, a.sin()), z)
    return s * (w is z)


def constant(x, y):
    return wrap(lambda a, n: a * n, x, 3)


def appends(x, y):
    flow_cases.STATE.append(1)
    result = wrap(lambda a: (flow_cases.STATE.append(a.shape), a * 2)[1], x)
    return result * len(flow_cases.STATE)


def appends_tensors(x, y):
    made: list[Any] = []
    result = wrap(lambda a: (made.append(a.sin()), a * 2)[1], x)
    return result * made[0]


def in_place(x, y):
    z = x * 1
    w = wrap(lambda a: a.add_(1), z)
    return w * 2, z, w is z


def raises(x, y):
    def body(a):
        raise ValueError(a * 2)

    try:
        return wrap(body, x)
    except ValueError:
        return x + 1


def breaks(x, y):
    def body(a):
        torch._dynamo.graph_break()
        return a.sin()

    return wrap(body, x) + 1


def without_gradients(x, y):
    return wrap_with_set_grad_enabled(False, lambda a: a.sin() * y, x) * x


def with_gradients(x, y):
    with torch.no_grad():
        inner = wrap_with_set_grad_enabled(True, lambda a: a.sin() * y, x)
    return inner * x


def as_it_is(x, y):
    return wrap_with_set_grad_enabled(True, lambda a: a.sin() * y, x) * x


def autocast(x, y):
    return wrap_with_autocast("cpu", torch.bfloat16, True, None, lambda a: a @ y, x)


def autocast_off(x, y):
    with torch.autocast("cpu", torch.bfloat16):
        return wrap_with_autocast("cpu", None, False, None, lambda a: a @ y, x) @ y


def strict(x, y):
    return strict_mode(lambda a, b: (a.sin() + b, [a * 2]), (x.detach(), y))


def strict_with_gradients(x, y):
    return strict_mode(lambda a, b: a.sin() + b, (x, y))


def hints(x, y):
    return hints_wrapper(lambda a, b: a.sin() + b, (y, y * 2), {}, hints={"k": 1})


def hints_with_gradients(x, y):
    return hints_wrapper(lambda a, b: a.sin() + b, (x, y * 2), {}, hints={"k": 1})


def hints_alias(x, y):
    return hints_wrapper(lambda a: a.view(-1), (y,), {}, hints={"k": 1})


def many_at_once(x, y):
    return associative_scan(lambda a, b: a * b + 1, x, 0, combine_mode="generic")


def reverse(x, y):
    def combine(a, b):
        return {"k": a["k"] + b["k"], "l": a["l"] * b["l"]}

    both = {"k": x, "l": y}
    return associative_scan(combine, both, 1, reverse=True, combine_mode="generic")


def one_by_one(x, y):
    return associative_scan_op(lambda a, b, c, d: [a * c, b + d], [y, y + 1], ())


def writes_outside(x, y):
    def combine(a, b):
        flow_cases.STATE.append(1)
        return [a * b]

    return associative_scan_op(combine, [y], ())


PROGRAMS = [
    plain, free, by_name, nested, with_parameters, drops, gives_its_argument, constant, appends,
    appends_tensors, in_place, raises, breaks, without_gradients, with_gradients, as_it_is,
    autocast, autocast_off, strict, strict_with_gradients, hints, hints_with_gradients,
    hints_alias, many_at_once, reverse, one_by_one, writes_outside,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_plain_python(program, backend):
    flow_cases.check(program, backend)


WHOLE = [plain, free, by_name, nested, with_parameters, constant, hints, raises]


@pytest.mark.parametrize("program", WHOLE, ids=lambda program: program.__name__)
def test_the_graph_is_that_of_stock(program):
    assert flow_cases.graph_lines(program) == flow_cases.stock_lines(program)


# Stock refuses these, or names their placeholders otherwise.
OWN = [(without_gradients, "wrap_with_set_grad_enabled"), (autocast, "wrap_with_autocast"),
       (strict, "strict_mode"), (one_by_one, "associative_scan"), (appends, "wrap")]  # fmt: skip


@pytest.mark.parametrize("program, operator", OWN, ids=[name for _, name in OWN])
def test_one_call_in_one_graph(program, operator):
    lines = flow_cases.graph_lines(program)
    top = lines[: next(i for i, line in enumerate(lines) if " output " in line)]
    calls = [line for line in top if " call_function " in line and "getitem" not in line]
    assert sum(f" {operator} " in line for line in calls) == 1
    assert not any("autocast at" in line or " _set_grad" in line for line in calls)
