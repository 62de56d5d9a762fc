"""Torch's operations on fakes whose sizes are symbols of the engine's: what they give, and what
they decide about sizes. For operations without a rule. C calls it with the hook off."""

from typing import Any

import torch

from stator import _engine, _fakes, _shapes
from stator._versions import private

# A tensor of a result: sizes, strides, dtype, device, requires_grad.
Tensor = tuple[Any, Any, Any, Any, bool]
# Conditions, pinned symbols, effects, the type of the container of the tensors or None, tensors.
Answer = tuple[list[Any], list[int], int, Any, list[Tensor]]


class _Refused(Exception):
    """Nothing that can be said without a history, or in the engine's words."""


def _with(values: dict[Any, Any], item: Any) -> Any:
    """Arguments of a call with values in the place of nodes."""
    if isinstance(item, _engine.Node):
        return values[item]
    if type(item) in (tuple, list):
        return type(item)(_with(values, part) for part in item)
    if type(item) is dict:
        return {key: _with(values, part) for key, part in item.items()}
    if isinstance(item, slice):
        return slice(*(_with(values, part) for part in (item.start, item.stop, item.step)))
    return item


class Runner:
    """Of one trace. It knows the symbols and conditions that were told so far."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._env = _shapes.Asking()
        self._mode = _fakes._Mode(True, self._env.env)

    def _value(self, described: Any) -> Any:
        """Of ("number", n), or ("tensor", sizes, strides, dtype, device, requires_grad)."""
        if described[0] == "number":
            return self._env.number(described[1])
        sizes, strides = (tuple(map(self._env.number, part)) for part in described[1:3])
        return _fakes.fake_like(self._mode, sizes, strides, *described[3:])

    def _tensor(self, fake: Any, given: list[Any]) -> Tensor:
        if type(fake) is not private.FakeTensor or any(fake is one for one in given):
            raise _Refused
        if fake.layout is not torch.strided or fake.is_conj() or fake.is_neg():
            raise _Refused
        sizes, strides = (tuple(map(self._env.expr, part)) for part in (fake.shape, fake.stride()))
        return sizes, strides, fake.dtype, fake.device, fake.requires_grad

    def _run(self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any]) -> Answer:
        values = {node: self._value(described) for node, described in nodes.items()}

        result = _fakes.run(self._mode, function, _with(values, args), _with(values, kwargs or {}))
        whole = None if isinstance(result, torch.Tensor) else type(result)
        if whole and (not private.is_sequence_type(whole) or len(result) > _MOST):
            raise _Refused
        tensors = [
            self._tensor(fake, list(values.values())) for fake in (result if whole else [result])
        ]
        effects, self._mode.stator_effects = self._mode.stator_effects, 0
        if effects & ~_fakes.RANDOM:
            raise _Refused
        found = self._env.asked()
        return found.conditions, sorted(found.pinned), effects, whole, tensors

    def run(self, function: Any, args: Any, kwargs: Any, nodes: Any, numbers: Any) -> Answer | None:
        """None: the caller uses plain sizes, and the decisions are forgotten.

        Raises if torch needs values that fakes do not have."""
        self._mode.stator_effects = 0
        try:
            self._env.learn(numbers[0], numbers[2])
            return self._run(function, args, kwargs, nodes)
        except private.data_dependent:
            self._begin()
            raise
        except Exception:  # eager reports what is wrong with the call
            self._begin()
            return None


# META_MOST_RESULTS of src/graph/meta.h.
_MOST = 16


def make_runner(nothing: None) -> Runner:
    return Runner()


def run_symbolic(
    runner: Runner, function: Any, args: Any, kwargs: Any, nodes: Any, numbers: Any
) -> Answer | None:
    return runner.run(function, args, kwargs, nodes, numbers)


GLUE = (make_runner, run_symbolic)
