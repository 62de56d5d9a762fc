"""`torch._dynamo.config.verify_correctness`: what a backend makes of a graph is run once beside the
graph itself, on copies of the example inputs."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from stator._versions import private

TOLERANCE = 1e-4  # as torch's own check has it: backends may reorder sums


def _copies(examples: Sequence[Any]) -> list[Any]:
    """Sizes that are symbols become this call's."""
    return [
        private.clone_input(example) if isinstance(example, torch.Tensor) else private.hint(example)
        for example in examples
    ]


def _run(function: Callable[..., Any], inputs: list[Any], random: Any) -> list[Any]:
    """What it gives, and what its inputs are afterwards."""
    torch.set_rng_state(random)
    found = function(*inputs)
    return [*(found if isinstance(found, (tuple, list)) else (found,)), *inputs]


def _difference(wanted: Any, found: Any) -> str:
    if not isinstance(wanted, torch.Tensor) or not isinstance(found, torch.Tensor):
        return f"{found!r} instead of {wanted!r}"
    if (wanted.shape, wanted.dtype) != (found.shape, found.dtype):
        return (
            f"size {tuple(found.shape)} of {found.dtype} instead of {tuple(wanted.shape)} of "
            f"{wanted.dtype}"
        )
    apart = (wanted.detach().double() - found.detach().double()).abs().max().item()
    return f"up to {apart:.3g} apart"


def differences(
    module: torch.fx.GraphModule, compiled: Callable[..., Any], examples: Sequence[Any]
) -> list[str]:
    """Where the two differ, in words: results first, then inputs that were written to. Random
    numbers are the same for both, and drawn from again afterwards."""
    before = torch.get_rng_state()
    try:
        wanted = _run(module.forward, _copies(examples), before)
        found = _run(compiled, _copies(examples), before)
    finally:
        torch.set_rng_state(before)
    if len(found) != len(wanted):
        return [f"{len(found)} values instead of {len(wanted)}"]
    results = len(wanted) - len(examples)
    names = [f"result {i}" for i in range(results)] + [f"input {i}" for i in range(len(examples))]
    return [
        f"{name}: {_difference(a, b)}"
        for name, a, b in zip(names, wanted, found, strict=True)
        if not private.same(a, b, tol=TOLERANCE, equal_nan=True)
    ]


def checked(backend: Callable[..., Any]) -> Callable[..., Any]:
    """The backend, whose results must be those of the graph."""

    def call(module: torch.fx.GraphModule, examples: list[Any]) -> Any:
        plain = private.copied(module)  # backends may change the graph
        compiled = backend(module, examples)
        if callable(compiled) and (wrong := differences(plain, compiled, examples)):
            name = getattr(backend, "__name__", backend)
            raise RuntimeError(f"incorrect results of backend {name}: {'; '.join(wrong)}")
        return compiled

    return call
