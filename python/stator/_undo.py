"""A compiled graph that fails: what it has done is undone, where that is known."""

from collections.abc import Sequence
from typing import Any

import torch

# More than this is not copied before each call for the sake of a failure: elements, and tensors.
_MOST_KEPT = 1 << 14
_MOST_TENSORS = 64

# The states of the generators, and the tensors with their contents
Saved = tuple[Sequence[torch.Tensor], "Sequence[tuple[torch.Tensor, torch.Tensor]] | None"]


def _generators(fakes: list[Any]) -> list[torch.Generator]:
    """The generators that operations with such results draw from."""
    devices = {fake.device for fake in fakes if isinstance(fake, torch.Tensor)}
    return [torch.default_generator] + [
        torch.cuda.default_generators[device.index] for device in devices if device.type == "cuda"
    ]


def witness(random: bool, fakes: list[Any]) -> tuple[Any, Any, Any]:
    """Of a graph that leaves something behind. Each gets the inputs that the graph writes to.

    What is called before it runs, and gives what is kept; what puts that back, and says whether
    nothing is left of what the graph did; what copies the inputs.
    """
    generators = _generators(fakes) if random else []
    getters = [generator.get_state for generator in generators]
    get_state = getters[0] if len(getters) == 1 else None

    def before(*written: torch.Tensor) -> Saved:
        if get_state is not None and not written:  # dropout: each call of a model in training
            return (get_state(),), ()
        states = [getter() for getter in getters]
        small = len(written) <= _MOST_TENSORS and all(
            tensor.device.type == "cpu" and tensor.numel() <= _MOST_KEPT for tensor in written
        )
        return states, [(tensor, tensor.detach().clone()) for tensor in written] if small else None

    def undo(saved: Saved) -> bool:
        states, tensors = saved
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        for tensor, content in tensors or ():
            if tensor.shape != content.shape or tensor.stride() != content.stride():
                return False
            tensor.detach().copy_(content)
        return tensors is not None

    def copies(*written: torch.Tensor) -> list[torch.Tensor]:
        made = []
        for tensor in written:
            copy = torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
            ).copy_(tensor.detach())
            made.append(copy.requires_grad_(tensor.requires_grad))
        return made

    return before, undo, copies
