"""Operators with bodies that a program calls uncompiled: torch compiles them by itself. Under
`install()` Stator does that, and leaves to torch's own Dynamo what it does not trace."""

from __future__ import annotations

import logging

import flow_cases
import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
import torch._dynamo.convert_frame as convert_frame  # noqa: E402
from torch._higher_order_ops import associative_scan, scan, while_loop  # noqa: E402
from torch._higher_order_ops.map import map as torch_map  # noqa: E402
from torch.nn.attention.flex_attention import flex_attention  # noqa: E402

from stator._versions import private  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(private.compiles_operator is None, reason="this torch does not tell"),
]
installed = pytest.fixture(autouse=True)(flow_cases.installed)


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


def branches_of_dicts(x):
    return torch.cond(x.sum() > 0, lambda d: d["a"] + x, lambda d: d["a"] - x, ({"a": x},))


def loop(x):
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))[1]


def mapped(x):
    return torch_map(lambda row, y: (row + y, row * 2), x, torch.ones(4))[0]


def scanned(x):
    return scan(lambda c, row: (c + row, c * row), torch.zeros(4), x)[1]


def scanned_at_once(x):
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def attention(x):
    q = x.reshape(1, 1, *x.shape)
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + i)


def expected(program, x):
    plain = {
        "branches": lambda: x.sin() if x.sum() > 0 else x.cos(),
        "branches_of_dicts": lambda: x + x if x.sum() > 0 else x - x,
        "loop": lambda: x * 8,
        "mapped": lambda: x + 1,
        "scanned": lambda: (x.cumsum(0) - x) * x,
        "scanned_at_once": lambda: x.cumsum(0),
        "attention": lambda: torch.nn.functional.scaled_dot_product_attention(
            x[None, None], x[None, None], x[None, None],
            attn_mask=torch.arange(3.0)[:, None].expand(3, 3),
        ),
    }  # fmt: skip
    return plain[program.__name__]()


PROGRAMS = [branches, branches_of_dicts, loop, mapped, scanned, scanned_at_once, attention]


@pytest.fixture
def asked(monkeypatch):
    """Frames that torch's own Dynamo was given."""
    frames = []
    real = convert_frame.ConvertFrameAssert.__call__

    def call(self, frame, *args, **kwargs):
        frames.append(frame.f_code.co_name)
        return real(self, frame, *args, **kwargs)

    monkeypatch.setattr(convert_frame.ConvertFrameAssert, "__call__", call)
    return frames


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_an_operator_is_compiled_by_stator(program, asked):
    for sign in (1.0, -1.0):
        x = (sign * torch.rand(3, 4)).requires_grad_(program is branches)
        found, wanted = program(x), expected(program, x)
        torch.testing.assert_close(found, wanted)
        if x.requires_grad:
            pairs = [torch.autograd.grad(each.sum(), x)[0] for each in (found, wanted)]
            torch.testing.assert_close(*pairs)
    assert not asked


def test_any_number_of_branches(asked):
    x = torch.ones(2)
    for n in range(12):
        made = eval(f"lambda x: x * {n}"), eval(f"lambda x: x - {n}")
        torch.testing.assert_close(torch.cond(x.sum() > n, *made, (x,)), made[2 <= n](x))
    assert not asked


def test_what_stator_does_not_trace_is_torch_s(asked, caplog, monkeypatch):
    def other_sizes(x):
        return torch.cond(x.sum() > 0, lambda: torch.cat([x, x]), lambda: x.sin())

    monkeypatch.setattr(logging.getLogger("torch"), "propagate", True)
    with caplog.at_level(logging.INFO, "torch._dynamo.convert_frame"):
        torch.testing.assert_close(other_sizes(torch.ones(2)), torch.ones(4))
    lines = [line for line in caplog.messages if line.startswith("torch's own Dynamo compiles")]
    assert asked
    assert len(lines) == 1
    assert "\n" not in lines[0]


LIST = []


def appends(x):
    LIST.append(1)
    return x.sin()


def writes(x):
    x.add_(1)
    return x.sin()


@pytest.mark.parametrize("body", [appends, writes])
@pytest.mark.parametrize("compiled", [False, True])
def test_effects_of_bodies_are_torch_s_error(body, compiled):
    def program(x):
        return torch.cond(x.sum() > 0, body, torch.cos, (x,))

    run = torch.compile(program, backend="eager") if compiled else program
    x = torch.ones(2, requires_grad=True) * 1
    error = torch._dynamo.exc.UncapturedHigherOrderOpError
    with pytest.raises(error, match=r"Higher Order Operator: torch\.cond"):
        run(x)
    assert not LIST


def test_a_mode_sees_what_an_operator_does():
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.ones(2, 2)
    with FlopCounterMode(display=False) as counter:
        torch.cond(x.sum() > 0, lambda x: x @ x, lambda x: x @ x @ x, (x,))
    assert counter.get_total_flops() == 32
