# ruff: noqa: E402
"""Lines B1 to B9: where a trace stops, and how the program goes on."""

import operator
import sys

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import exc
from torch._dynamo.utils import counters

import stator
from tests.spec.helpers import Recorder, assert_same, both, breaks, check, logged, missing, value

# -- B1 --


@torch.compiler.disable
def tick():
    return 1


class Breaks:
    """Each operation on it cannot be traced."""

    def __getitem__(self, key):
        return tick()

    def __setitem__(self, key, item):
        tick()

    def __delitem__(self, key):
        tick()

    def __getattr__(self, name):
        return tick()

    def __setattr__(self, name, item):
        tick()

    def __add__(self, other):
        return tick()

    def __neg__(self):
        return tick()

    def __lt__(self, other):
        return bool(tick())

    def __contains__(self, item):
        return bool(tick())

    def __bool__(self):
        return bool(tick())

    def __iter__(self):
        tick()
        return iter((1, 2))

    def __format__(self, spec):
        return str(tick())

    def __enter__(self):
        return tick()

    def __exit__(self, *error):
        tick()

    def __call__(self, *args, **kwargs):
        return tick()


def _delete(b):
    del b[0]


def _store(b):
    b[0] = 1


def _set(b):
    b.attribute = 1


def _with(b):
    with b as entered:
        return entered


def _unpack(b):
    first, second = b
    return first + second


STOPS = {
    "call": lambda b: b(1, k=2),
    "call with stars": lambda b: b(*[1], **{}),
    "subscript": lambda b: b[0],
    "store subscript": _store,
    "delete subscript": _delete,
    "load attribute": lambda b: b.something,
    "store attribute": _set,
    "binary": lambda b: b + 1,
    "unary": lambda b: -b,
    "compare": lambda b: b < 1,
    "in": lambda b: 1 in b,
    "branch": lambda b: 1 if b else 2,
    "not": lambda b: not b,
    "iterate": lambda b: [i for i in b],
    "unpack": _unpack,
    "format": lambda b: f"{b}",
    "with": _with,
    "native": lambda b: sorted([2, 1], key=b),
    "build": lambda b: [*b, {**{"k": b.x}}],
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_B1_a_trace_can_stop_at_any_instruction(stop):
    def program(x):
        y = x + 1
        kept = [y, (stop(Breaks()), x * 3), y - 1]
        return kept, y * 2

    backend = check(program, value(), whole=False)
    assert len(backend.graphs) >= 2
    assert len(backend.operations) == 4


# -- B2, B3 --


def broken(x):
    y = x + 1
    print(end="")  # the line
    return y * 2


LINE = broken.__code__.co_firstlineno + 2


@both
def test_B2_breaks_are_logged_with_file_and_line():
    with logged(graph_breaks=True) as texts:
        torch.compile(broken, backend=Recorder())(value())
    assert any(
        "test_b_breaks.py" in text and (f":{LINE}" in text or f"line {LINE}" in text)
        for text in texts
    )


def test_B2_a_trace_that_is_done_again_agrees():
    def program(x):
        y = x + 1
        order = sorted([3, 1, 2], key=lambda v: v * tick())
        return y * order[0], order

    backend = check(program, value(), whole=False)
    assert len(backend.operations) == 2


@both
def test_B3_fullgraph_the_first_break_is_an_error():
    ran = []

    def program(x):
        y = x + 1
        tick()
        ran.append(1)
        torch._dynamo.graph_break()
        return y

    backend = Recorder()
    with pytest.raises(exc.Unsupported, match="tick"):
        torch.compile(program, backend=backend, fullgraph=True)(value())
    assert ran == []
    assert backend.runs == 0


def test_B3_the_error_says_why_where_and_what_to_do():
    with pytest.raises(stator.Unsupported) as raised:
        stator.compile(broken, backend="eager", fullgraph=True)(value())
    text = str(raised.value)
    for part in (f"test_b_breaks.py:{LINE}", "print", "[PRINT]", "hint:"):
        assert part in text


# -- B4, B5 --


@both
def test_B4_order_at_a_break():
    order = []

    class Box:
        value = None

    box = Box()

    def backend(module, examples):
        def run(*args):
            order.append("graph")
            return module.forward(*args)

        return run

    @torch.compiler.disable
    def look(tensor):
        order.append(("look", box.value, tensor.tolist()))

    def program(x):
        box.value = 1
        look(x + 1)
        box.value = 2
        y = x * 3
        look(y)
        return y - 1

    assert_same(torch.compile(program, backend=backend)(value(1)), value(1) * 3 - 1)
    assert order == ["graph", ("look", 1, [1.5]), "graph", ("look", 2, [1.5]), "graph"]


@torch.compiler.disable
def caller_sees():
    frame = sys._getframe(1)
    while frame.f_code.co_name != "watched":
        frame = frame.f_back
    return sorted(name for name in frame.f_locals if not name.startswith("_")), frame.f_lineno


def test_B4_the_frame_is_there_when_the_instruction_runs():
    def watched(x, n=2):
        y = x + 1
        seen = caller_sees()
        z = y * n
        return z, seen, caller_sees()

    check(watched, value(), whole=False)


def _full_stack(x, flag):
    cell = [x]

    def inner():
        return cell

    if flag:
        maybe = x + 5
    kept = x + 1
    got = (kept, tick(), inner(), x * 2, [tick(), kept])
    try:
        extra = maybe
    except UnboundLocalError:
        extra = None
    cell = 3
    return got, inner(), extra


@both
@pytest.mark.parametrize("flag", [True, False])
def test_B5_locals_stack_cells_and_unbound_names(flag):
    check(_full_stack, value(), flag, whole=False)


@both
def test_B5_a_break_right_before_the_return():
    def program(x):
        y = x + 1
        return tick() and y

    check(program, value(), whole=False)


# -- B6 to B9 --


def test_B6_what_follows_a_break_is_compiled_once():
    backend = Recorder()
    fast = torch.compile(broken, backend=backend)
    for _ in range(4):
        assert_same(fast(value()), broken(value()))
    assert len(backend.graphs) == 2
    assert backend.runs == 8


def test_B6_two_ways_to_one_place_share_what_follows():
    def program(x, flag):
        y = x + 1 if flag else x + 2
        tick()
        return y * 2

    backend = Recorder()
    fast = torch.compile(program, backend=backend)
    for flag in (True, False):
        assert_same(fast(value(), flag), program(value(), flag))
    assert backend.operations == [operator.add, operator.mul, operator.add]


@both
def test_B7_reasons_are_kept_with_text_and_stack():
    explained = torch._dynamo.explain(broken)(value())
    (reason,) = explained.break_reasons
    assert "print" in reason.reason
    assert reason.user_stack[-1].lineno == LINE
    assert reason.user_stack[-1].name.endswith("broken")


def test_B7_stators_own_explanation():
    (reason,) = stator.explain(broken)(value()).breaks
    assert (reason.reason, reason.stack[-1][1]) == ("PRINT", LINE)
    assert reason.sentence and reason.hint


@both
def test_B8_breaks_are_counted():
    torch.compile(broken, backend=Recorder())(value())
    assert len(breaks()) == 1
    assert not counters["unimplemented"]


def _logged_sites():
    fast = torch.compile(broken, backend=Recorder(), dynamic=False)
    with logged(graph_breaks=True) as texts:
        for x in (value(), value(2, 2), value().int()):
            fast(x)
    return [text for text in texts if text.startswith("Graph break in user code")]


@both
def test_B9_a_break_site_is_logged():
    assert _logged_sites()


@both
def test_B9_in_full_once():
    assert len(_logged_sites()) == 1
