"""Keeps torch's state, and the generators of random numbers, as they are around a backend."""

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch

from stator import _engine, _settings, _state
from stator._settings import Part
from stator._versions import private

_PARTS = _settings.parts()
_UNKNOWN = object()


def _told(part: Part) -> Any:
    try:
        return part.read()
    except RuntimeError:  # torch complains of settings that were set by old and new functions
        return _UNKNOWN


# -- random numbers --


def _accelerators() -> Iterator[Any]:
    for module in (torch.cuda, torch.xpu):
        if module.is_available() and module.is_initialized():
            yield module


@contextlib.contextmanager
def _same_numbers() -> Iterator[None]:
    """A backend that draws random numbers takes none from the program."""
    numbers = sys.modules.get("numpy.random")
    python, arrays = random.getstate(), numbers.get_state() if numbers else None
    tensors = torch.default_generator.get_state()
    devices = [(module, module.get_rng_state_all()) for module in _accelerators()]
    try:
        yield
    finally:
        random.setstate(python)
        if numbers:
            numbers.set_state(arrays)
        torch.default_generator.set_state(tensors)
        for module, states in devices:
            module.set_rng_state_all(states)


# -- around a backend --


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Torch's state, and who draws random numbers, are as they were behind the block."""
    told = [_told(part) for part in _PARTS]
    traced = _state.save_state()
    with _same_numbers(), private.PreserveDispatchKeys():
        try:
            yield
        finally:
            for part, before in zip(_PARTS, told, strict=True):
                if before is not _UNKNOWN and _told(part) != before:
                    part.write(before)
            if _state.save_state() != traced:
                _engine.torch_restore_state(traced)
