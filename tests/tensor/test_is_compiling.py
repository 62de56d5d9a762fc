"""A program that asks whether it is compiled may go a way that works only there, or only in stock's
fallback. Where an exception would leave such a trace, the call runs uncompiled, with all it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import stator

torch = pytest.importorskip("torch")

# -- who tells --


def _transformers() -> bool:
    try:
        import torch

        return torch.compiler.is_compiling()
    except Exception:
        return False


HOMES: dict[str, Callable[[], bool]] = {
    "torch.compiler.is_compiling": lambda: torch.compiler.is_compiling(),
    "torch.compiler.is_dynamo_compiling": lambda: torch.compiler.is_dynamo_compiling(),
    "torch._dynamo.external_utils": lambda: torch._dynamo.external_utils.is_compiling(),
    "torch._dynamo.is_compiling": lambda: torch._dynamo.is_compiling(),
    "stator.is_compiling": lambda: stator.is_compiling(),
    "as transformers asks": _transformers,
}

asks: Callable[[], bool] = HOMES["torch.compiler.is_compiling"]
effects: list[Any] = []


def _mask(x: torch.Tensor) -> Any:
    if asks():
        return None
    effects.append("mask")
    return torch.full_like(x, 3.0)


# -- what goes wrong without the mask --


def times(x: torch.Tensor) -> Any:
    effects.append("begin")
    y = x + 1
    return y * _mask(x)


def attribute(x: torch.Tensor) -> Any:
    return x + _mask(x).sum()


def function(x: torch.Tensor) -> Any:
    return torch.add(x, _mask(x))


def index(x: torch.Tensor) -> Any:
    return x + _mask(x)[0]


def raises(x: torch.Tensor) -> Any:
    mask = _mask(x)
    if mask is None:
        raise ValueError("a mask is needed")
    return x - mask


def deep(x: torch.Tensor) -> Any:
    return sum(raises(x) for _ in range(2))


def in_finally(x: torch.Tensor) -> Any:
    try:
        return raises(x)
    finally:
        effects.append("finally")


def shapes(x: torch.Tensor) -> Any:
    other = torch.ones(7) if asks() else torch.ones(3)
    return x + other


def written(x: torch.Tensor) -> Any:
    x.add_(1)
    return raises(x)


class Parts(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return times(x) + raises(x)


PROGRAMS: dict[str, Any] = {
    f.__name__: f
    for f in (times, attribute, function, index, raises, deep, in_finally, shapes, written)
}
PROGRAMS["module"] = Parts()


def _calls(f: Any) -> Any:
    effects.clear()
    x = torch.arange(3.0)
    return [f(x).tolist() for _ in range(12)], x.tolist(), list(effects)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_that_would_leave_gives_eager_s_way(name: str) -> None:
    want = _calls(PROGRAMS[name])
    compiled = stator.compile(PROGRAMS[name], backend="eager")
    assert _calls(compiled) == want


@pytest.mark.parametrize("home", HOMES)
def test_whoever_is_asked(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "asks", HOMES[home])
    compiled = stator.compile(times, backend="eager")
    assert _calls(compiled) == _calls(times)
    assert "IS_COMPILING" in compiled.metrics["drops"][0]


def test_the_reason_says_so() -> None:
    explained = stator.explain(raises)(torch.ones(3))
    assert torch.equal(explained.result, torch.full((3,), -2.0))
    assert explained.drops[0].reason == "IS_COMPILING"
    assert "told that it is compiled" in explained.drops[0].sentence
    assert "ValueError: a mask is needed" in explained.drops[0].detail


def test_fullgraph_is_an_error_as_before() -> None:
    with pytest.raises(stator.Unsupported, match="a mask is needed"):
        stator.compile(raises, backend="eager", fullgraph=True)(torch.ones(3))
    with pytest.raises(stator.Unsupported):
        stator.compile(times, backend="eager", fullgraph=True)(torch.ones(3))


# -- where nothing may change --


def caught(x: torch.Tensor) -> Any:
    try:
        return raises(x)
    except ValueError:
        return x * 100


def asks_only(x: torch.Tensor) -> Any:
    return x * (2 if asks() else 3)


def test_the_program_s_own_handler_goes_on_as_compiled() -> None:
    compiled = stator.compile(caught, backend="eager")
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 100.0))
    assert compiled.metrics["drops"] == []
    compiled = stator.compile(asks_only, backend="eager")
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    assert compiled.metrics["entries"] == 1


def test_exceptions_of_programs_that_do_not_ask_are_as_ever() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x + 1
        raise ValueError(y.sum().item())

    compiled = stator.compile(f, backend="eager")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"6\.0"):
            compiled(torch.ones(3))
    assert compiled.metrics["drops"] == []


# -- behind a break --


def asked_behind(x: torch.Tensor) -> Any:
    y = x + 1
    stator.graph_break()
    return raises(y)


def asked_in_both(x: torch.Tensor) -> Any:
    mask = _mask(x)
    stator.graph_break()
    return x * (mask if mask is not None else _mask(x))


def test_the_rest_runs_uncompiled_where_only_it_has_asked() -> None:
    compiled = stator.compile(asked_behind, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), -1.0))


def test_a_call_that_has_gone_one_way_stays_on_it() -> None:
    compiled = stator.compile(asked_in_both, backend="eager")
    for _ in range(3):
        with pytest.raises(TypeError, match="NoneType"):
            compiled(torch.ones(3))
    # and forgets it with the call
    assert torch.equal(stator.compile(raises, backend="eager")(torch.ones(3)), -2 * torch.ones(3))


def test_callees_of_uncompiled_code_run_uncompiled_too() -> None:
    def outer(x: torch.Tensor) -> Any:
        import builtins

        values = []
        for part in map(raises, [x, x]):
            values.append(part)
            builtins.print(end="")
        return torch.stack(values)

    compiled = stator.compile(outer, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3)), torch.full((2, 3), -2.0))


def test_other_arguments_are_still_compiled() -> None:
    def f(x: torch.Tensor, mask: Any) -> Any:
        if mask is None:
            mask = _mask(x)
        return x * mask

    compiled = stator.compile(f, backend="eager")
    x = torch.ones(3)
    assert torch.equal(compiled(x, None), x * 3)
    assert torch.equal(compiled(x, x * 5), x * 5)
    assert torch.equal(compiled(x, None), x * 3)
    assert compiled.metrics["entries"] == 1
