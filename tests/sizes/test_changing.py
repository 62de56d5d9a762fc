"""Sizes and numbers that change: whatever stays symbolic, each call gives what plain Python gives."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a number is what is asked for
    from tests.sizes import changing  # noqa: E402


def told(o: Any) -> Any:
    """All that a program could tell of a value, as something that == compares."""
    if isinstance(o, torch.Tensor):
        numbers = [struct.pack("d", v) for v in o.detach().double().flatten().tolist()]
        return (str(o.dtype), tuple(o.shape), o.stride(), o.requires_grad, numbers)
    if isinstance(o, float):
        return ("nan",) if o != o else (type(o).__name__, o.hex())
    if isinstance(o, BaseException):
        return (type(o).__name__, str(o))
    if isinstance(o, dict):
        return (type(o).__name__, [(told(k), told(v)) for k, v in o.items()])
    if isinstance(o, (list, tuple, set, frozenset)):
        return (type(o).__name__, [told(v) for v in o])
    return (type(o).__name__, repr(o))


def run(make: changing.Row, **options: Any) -> list[Any]:
    function, calls = make()
    compiled = stator.compile(function, **options) if options else function
    outcomes = []
    for args in calls:
        try:
            result: Any = compiled(*args)
        except Exception as e:
            result = e
        outcomes.append((told(result), [told(a) for a in args if isinstance(a, torch.Tensor)]))
    return outcomes


WAYS: list[dict[str, Any]] = [{}, {"dynamic": True}, {"dynamic": False}]


def as_it_is(module: torch.fx.GraphModule, examples: list[Any]) -> Any:
    return module.forward


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("backend", ["eager", as_it_is], ids=["eager", "handed over"])
@pytest.mark.parametrize("make", changing.ROWS, ids=lambda make: make.__name__)
def test_each_call_is_as_plain(make: changing.Row, way: dict[str, Any], backend: Any) -> None:
    torch._dynamo.reset()
    plain = run(make)
    compiled = run(make, backend=backend, **way)
    for number, (expected, got) in enumerate(zip(plain, compiled, strict=True)):
        assert got == expected, f"call {number}"
