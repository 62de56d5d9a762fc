"""Warm calls of models: the guards of many modules, entries that a number tells apart, a compiled
module next to a compiled function. Backends do nothing, so that a figure is what a call costs
besides its graph. `python bench/warm.py`; stock Dynamo takes turns in the same process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

import stator
from stator import _engine

ROUNDS = 15


def backend(graph: Any, inputs: Any) -> Callable[..., Any]:
    return lambda *args: (args[0],)


def microseconds(call: Callable[[], Any], times: int) -> float:
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times * 1e6


def medians(calls: dict[str, Callable[[], Any]], times: int = 300) -> dict[str, float]:
    """Processor time of each call, round by round in turns."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(50):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            found[name].append(microseconds(call, times))
    return {name: statistics.median(each) for name, each in found.items()}


def without_logs(call: Callable[[], Any]) -> Callable[[], Any]:
    """The same with guards that are checked step by step."""

    def steps() -> Any:
        before = _engine.guard_logs(0)
        try:
            return call()
        finally:
            _engine.guard_logs(before)

    return steps


def linears(count: int) -> Any:
    return torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(count)])


def print_row(name: str, found: dict[str, float]) -> None:
    print(f"  {name:<28}" + "  ".join(f"{key} {value:8.2f}" for key, value in found.items()))


def models(count: int, train: bool) -> None:
    # Dynamo puts attributes on parameters, which our guards look at: each engine has its own model.
    model, other, x = linears(count), linears(count), torch.randn(2, 4)

    def call(model: Any, x: Any) -> Any:
        return model(x)

    ours = stator.compile(call, backend=backend)
    theirs = torch.compile(call, backend=backend)
    calls = {
        "words": lambda: ours(model, x),
        "steps": without_logs(lambda: ours(model, x)),
        "stock": lambda: theirs(other, x),
    }
    with torch.set_grad_enabled(train):
        found = medians(calls)
    found["stock/words"] = found["stock"] / found["words"]
    print_row(f"{count} Linears, {'grad' if train else 'no grad'}", found)


def entries() -> None:
    model, x = linears(100), torch.randn(2, 4)

    def call(model: Any, x: Any, number: int) -> Any:
        return model(x) * number

    ours = stator.compile(call, backend=backend, dynamic=False)

    def turns() -> None:
        for number in range(8):
            ours(model, x, number)

    with torch.no_grad():
        turns()
        found = medians({"first": lambda: ours(model, x, 7), "turns": turns}, 50)
    found["turns"] /= 8
    found["turns/first"] = found["turns"] / found["first"]
    print_row("8 entries", found)


def small() -> None:
    class Small(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    x, module = torch.randn(4), Small()
    function = stator.compile(lambda x: x + 1, backend=backend)
    around = stator.compile(lambda module, x: module(x), backend=backend)
    compiled = stator.compile(module, backend=backend)
    calls = {
        "function": lambda: function(x),
        "module in it": lambda: around(module, x),
        "module": lambda: compiled(x),
        "nothing": lambda: None,
    }
    with torch.no_grad():
        print_row("one operation", medians(calls, 2000))


def main() -> None:
    print(f"warm calls, µs: torch {torch.__version__}, rounds {ROUNDS}")
    for train in (False, True):
        for count in (1, 10, 100):
            models(count, train)
    entries()
    small()


if __name__ == "__main__":
    main()
