"""Operations that write to tensors, with sizes that change: each call leaves what plain Python leaves.

A row is a program and its calls. Sizes 0 and 1, operands that are stretched, views, inputs that share
memory or are the same tensor are among them. What a call gives, what it raises and what is left in
the arguments must be the same.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402
from tests.sizes.test_changing import as_it_is, told  # noqa: E402

SIZES = (6, 8, 10, 1, 0, 2, 7, 12)
ROWS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = []


def of(*size: int) -> torch.Tensor:
    count = int(torch.tensor(size).prod())
    return torch.arange(count, dtype=torch.float32).reshape(size) / 7 - 1


def rows(*calls: Callable[[int], tuple[Any, ...]], sizes: tuple[int, ...] = SIZES) -> Any:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        ROWS.append((f, [call(n) for n in sizes for call in calls]))
        return f

    return add


def batch(n: int) -> tuple[Any, ...]:
    return (of(n, 4),)


def learned(n: int) -> tuple[Any, ...]:
    return (of(n, 4).requires_grad_(),)


def pair(n: int) -> tuple[Any, ...]:
    return of(n, 4), of(n, 4) + 1


def stretched(n: int) -> tuple[Any, ...]:
    return of(n, 4), of(1, 4)


def too_large(n: int) -> tuple[Any, ...]:
    return of(1, 4), of(n, 4)


def unlike(n: int) -> tuple[Any, ...]:
    return of(n, 4), of(n + 1, 4)


def same(n: int) -> tuple[Any, ...]:
    x = of(n, 4)
    return x, x


def overlapping(n: int) -> tuple[Any, ...]:
    x = of(n + 1, 4)
    return x[1:], x[:-1]


def apart(n: int) -> tuple[Any, ...]:
    x = of(2 * n, 4)
    return x[:n], x[n:]


def turned(n: int) -> tuple[Any, ...]:
    x = of(4, 4)
    return (x, x.t()) if n % 2 else (of(n, 4), of(4, n).t())


def spread(n: int) -> tuple[Any, ...]:
    return (of(n + 3).as_strided((n, 4), (1, 1)),)


def part(n: int) -> tuple[Any, ...]:
    return (of(n, 9)[:, 2:6],)


def column(n: int) -> tuple[Any, ...]:
    return (of(n, 3)[:, 1:2],)


PAIRS = pair, stretched, same, unlike, overlapping, apart, turned, too_large


@rows(*PAIRS)
def one_is_added_to_the_other(x, y):
    x.add_(y)
    return x * 2, y.shape


@rows(*PAIRS)
def plus_equals(x, y):
    z = x
    x += y
    return x is z, x + y


@rows(*PAIRS)
def one_is_copied_to_the_other(x, y):
    return x.copy_(y), y + 1


@rows(*PAIRS)
def rows_are_set(x, y):
    x[:, 2:] = y[:, :2]
    return x.sum(), y.sum()


@rows(pair, same, overlapping, apart)
def what_is_read_before_and_after(x, y):
    before = y * 1
    x[0] = 5
    x[-1] += y[0]
    return before, y * 1, x.sum()


@rows(batch, learned)
def a_result_is_written_to(x):
    y = x * 2
    v = y.view(-1)
    w = y.t()
    y.add_(1)
    v.mul_(2)
    return y, v, w, y.requires_grad, v.requires_grad, w.requires_grad


@rows(learned)
def a_leaf_is_written_to(x):
    x.add_(1)
    return x


@rows(learned)
def a_leaf_is_written_to_without_gradient(x):
    with torch.no_grad():
        x.add_(1)
    return x * 2


@rows(learned)
def a_view_of_a_leaf_is_written_to(x):
    x.view(-1).add_(1)
    return x


@rows(learned)
def a_buffer_begins_to_need_a_gradient(x):
    y = torch.zeros(x.shape[0], 4)
    a = y.requires_grad
    y += x
    return y, a, y.requires_grad, y.is_leaf


@rows(learned)
def a_view_begins_to_need_a_gradient(x):
    y = torch.zeros(x.shape[0], 4)
    v = y.view(-1)
    d = y.detach()
    c = y.t().reshape(-1)
    v.add_(x.view(-1))
    return y.requires_grad, v.requires_grad, d.requires_grad, c.requires_grad, y, d, c


@rows(learned)
def a_base_begins_to_need_a_gradient(x):
    y = torch.zeros(x.shape[0], 4)
    v, d, c = y.view(-1), y.detach(), y.t().reshape(-1)
    y[:, 1:] = x[:, 1:]
    return y.requires_grad, v.requires_grad, d.requires_grad, c.requires_grad, v, d, c


@rows(learned)
def a_statement_begins_to_need_a_gradient(x):
    y = x.detach() * 2
    y.mul_(x)
    z = y.requires_grad, (y * 1).requires_grad
    y.detach_()
    return y.requires_grad, y, z


@rows(learned)
def a_view_made_without_gradient_is_written_to(x):
    y = x * 2
    with torch.no_grad():
        v = y.view(-1)
    v.mul_(2)
    return y


@rows(learned)
def a_part_of_several_is_written_to(x):
    y = x * 2
    a, _ = y.split(2, 1)
    a.mul_(2)
    return y


@rows(learned)
def a_detached_tensor_is_written_to(x):
    y = x * 2
    d = y.detach()
    d.add_(1)
    y.mul_(2)
    return y, d, d.requires_grad


@rows(batch)
def an_expanded_tensor_is_written_to(x):
    y = x[:1].expand(x.shape[0], 4)
    y.add_(1)
    return y


@rows(batch)
def memory_that_overlaps_itself(x):
    x[1:].add_(x[:-1])
    return x


@rows(spread)
def an_input_whose_rows_overlap(x):
    x.add_(1)
    x[1:].mul_(2)
    return x.sum(1)


@rows(batch, part, column, sizes=(3, 4, 5))
def an_input_is_turned_and_written_to(x):
    x.t_()
    x.mul_(2)
    return x.sum(0)


@rows(batch, part, column, sizes=(3, 4, 5))
def an_input_is_written_to_and_turned(x):
    x += 1
    x.unsqueeze_(0)
    return x.sum(1)


@rows(batch, part, sizes=(3, 4, 5))
def a_turned_input_gets_another_layout(x):
    torch.ops.aten.t_.default(x)
    x.cumsum_(0)
    return x + 1


@rows(batch, lambda n: (of(4).expand(n, 4),))
def a_write_that_fails_is_caught(x):
    y = x[:, :1] * 1
    try:
        x[:, :1].add_(1)
    except RuntimeError:
        return y, x.shape
    return x, y


@rows(batch)
def an_input_and_its_view_are_given_back(x):
    v = x[1:]
    v.zero_()
    return x, v, v is x


@rows(batch)
def what_was_computed_before_stays(x):
    y = x * 1
    z = x.view(-1)
    x.fill_(3)
    return y, z, x


@rows(batch)
def a_result_is_as_large_as_it_is_told(x):
    out = torch.empty(0)
    torch.add(x, 1, out=out)
    return out, out.shape


@rows(pair, stretched)
def out_is_an_input(x, y):
    torch.mul(x, y, out=x)
    return x + y


@rows(pair, same)
def out_is_a_view_of_an_input(x, y):
    torch.sub(x[:, :2], y[:, 2:], out=x[:, 2:])
    return x + y


@rows(batch)
def sizes_change_in_place(x):
    y = x.clone()
    y.t_()
    y.unsqueeze_(0)
    z = torch.ones(2, 2).resize_(x.shape[0], 3).zero_()
    return y.shape, y * 2, z


@rows(batch)
def a_number_of_elements_is_counted(x):
    count = torch.zeros((), dtype=torch.int64)
    count += x.shape[0]
    count.add_(1)
    return count, x / (count + 1)


@rows(lambda n: (of(n, 4), of(n, 4) > 0, 0.5), lambda n: (of(n, 4), of(1, 4) > 0, 2.0))
def a_mask_is_filled(x, mask, value):
    x.masked_fill_(mask, value)
    x[mask.expand_as(x)] = -value
    return x.mean()


@rows(pair, stretched)
def several_are_written_to_at_once(x, y):
    torch._foreach_add_([x, x * 2], [y, y], alpha=0.5)
    torch._foreach_mul_((x,), 2.0)
    a = torch._foreach_sqrt([x.abs(), y.abs()])
    torch._foreach_lerp_(a, [y.expand_as(x), y], 0.5)
    return x, a


@rows(batch, learned)
def a_write_is_followed_by_a_question(x):
    y = x * 2
    y.add_(1)
    return y, y.is_leaf, y.storage_offset(), y[1:].storage_offset()


@rows(batch)
def an_input_is_written_to_twice_as_one_of_two_types(x):
    x.mul_(2)
    y = x.double()
    y.add_(x)
    x.copy_(y)
    return x, y


class Counter:
    def __init__(self) -> None:
        self.seen = torch.zeros(4)
        self.calls = torch.zeros((), dtype=torch.int64)

    def __call__(self, x):
        self.seen += x.detach().sum(0)
        self.calls += 1
        return x - self.seen / self.calls


ROWS.append((Counter(), [call(n) for n in SIZES for call in (batch, learned)]))


def run(function: Any, calls: list[tuple[Any, ...]]) -> list[Any]:
    outcomes = []
    for args in calls:
        try:
            result: Any = function(*args)
        except Exception as error:
            result = type(error)
        kept = [told(arg) for arg in args if isinstance(arg, torch.Tensor)]
        outcomes.append((told(result), kept))
    return outcomes


def calls_of(calls: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Copies whose tensors share memory as the originals do."""
    return [copied(args) for args in calls]


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    storages: dict[int, torch.Tensor] = {}
    made: dict[int, Any] = {}
    for arg in args:
        if not isinstance(arg, torch.Tensor):
            made[id(arg)] = arg
            continue
        key = arg.untyped_storage()._cdata
        if key not in storages:
            whole = torch.empty(0, dtype=arg.dtype).set_(arg.detach().untyped_storage())
            storages[key] = whole.clone()
        view = storages[key].as_strided(arg.shape, arg.stride(), arg.storage_offset())
        made.setdefault(id(arg), view.requires_grad_(arg.requires_grad))
    return tuple(made[id(arg)] for arg in args)


@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("backend", ["eager", as_it_is, "aot_eager"],
                         ids=["eager", "handed over", "aot"])  # fmt: skip
@pytest.mark.parametrize("row", ROWS, ids=lambda row: getattr(row[0], "__name__", "a counter"))
def test_writes_are_as_plain(row: Any, backend: Any, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    function, calls = row
    plain, traced = copy.deepcopy(function), copy.deepcopy(function)
    wanted = run(plain, calls_of(calls))
    got = run(stator.compile(traced, backend=backend, dynamic=dynamic), calls_of(calls))
    for n, (a, b) in enumerate(zip(wanted, got, strict=True)):
        raised = a[0][0] == "type"
        assert a == b or (raised and backend == "aot_eager"), n  # which writes to a copy


def test_fakes_that_die_are_not_taken_for_others() -> None:
    """A write that makes a tensor require a gradient takes its fake away; the next fake may get the
    same address."""
    text = "def f(x):\n y = torch.zeros(x.shape[0] + 1, 3); y[1:] = x; y[:-1] += x; return y"
    for _ in range(150):
        names: dict[str, Any] = {"torch": torch}
        exec(text, names)
        compiled = stator.compile(names["f"], backend="eager")
        for n in (1, 0):
            assert compiled(torch.ones(n, 3, requires_grad=True)).shape == (n + 1, 3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_turned_input_that_backward_needs(backend: str) -> None:
    def f(x, w):
        x.t_()
        return x * w

    torch._dynamo.reset()
    fast = stator.compile(f, backend=backend)
    for n in (3, 4, 5):
        found = []
        for function in (f, fast):
            x, w = of(4, n), of(4).requires_grad_()
            result = function(x, w)
            result.sum().backward()
            found.append((told(result), told(x), told(w.grad)))
        assert found[0] == found[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_graph_that_has_no_backward_runs(backend: str) -> None:
    """It writes to what backward needs: in plain Python, too, only backward raises."""

    def f(x, w):
        y = x * 2
        z = y @ w
        with torch.no_grad():
            y.add_(1)
        return z, y

    torch._dynamo.reset()
    fast = stator.compile(f, backend=backend, fullgraph=True)
    warns = [RuntimeWarning, UserWarning] if backend == "aot_eager" else []
    for n in (3, 4, 5):
        x, w = of(n, 4), of(4, 2).requires_grad_()
        with contextlib.ExitStack() as stack:
            for kind in warns:
                stack.enter_context(pytest.warns(kind))
            z, y = fast(x, w)
        assert told((z, y)) == told(f(x, w))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
