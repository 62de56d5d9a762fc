"""Torch's operations on fakes whose sizes are symbols of the engine's: what they give, and what
they decide about sizes. For operations without a rule. C calls it with the hook off."""

from collections.abc import Callable
from typing import Any

import torch

from stator import _engine, _expressions, _fakes, _shapes
from stator._versions import private

# A tensor of a result: sizes, strides, dtype, device, requires_grad.
Tensor = tuple[Any, Any, Any, Any, bool]
# Conditions, pinned symbols, effects, None or what the tensors are the items of, tensors; numbers
# that only the graph will know: kind, least, greatest, the tensor whose size it is (-1: it is the
# result) and the dimension; what the graph has to check; the result, if it is such a number.
Answer = tuple[list[Any], list[int], int, Any, list[Tensor], list[Any], list[Any], Any]


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

    def __init__(self, scalars: bool, shapes: bool) -> None:
        """Whether numbers of tensors, and shapes that depend on values, go in the graph."""
        self._captures = scalars, shapes
        self._begin()

    def _begin(self) -> None:
        self._env = _shapes.Asking(*self._captures)
        self._mode = _fakes._Mode(True, self._env.env)

    def _value(self, described: Any) -> Any:
        return _value(described, self._mode, self._env.number)

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
        number = result if isinstance(result, _NUMBERS) else None
        whole = None if isinstance(result, torch.Tensor) else type(result)
        if number is not None:
            if any(getattr(value, "dtype", None) is torch.uint64 for value in values.values()):
                raise _Refused  # beyond 64 bits with a sign
            result, whole = (), tuple
        if whole and (not private.is_sequence_type(whole) or len(result) > _MOST):
            raise _Refused
        fakes = result if whole else [result]
        fresh, places = self._fresh(fakes, number)
        tensors = [self._tensor(fake, list(values.values())) for fake in fakes]
        effects, self._mode.stator_effects = self._mode.stator_effects, 0
        if effects & ~_fakes.RANDOM:
            raise _Refused
        found = self._env.asked()
        made = [(*row, *place) for row, place in zip(fresh, places, strict=True)]
        if number is not None and not made:
            raise _Refused  # it may be about a history
        given = None if number is None else _expressions.symbol(self._env.next_symbol)
        checks = self._env.checks()
        checks += self._exceptions(function, args, kwargs, nodes, tensors)
        return (
            found.conditions, sorted(found.pinned), effects, whole, tensors, made, checks, given,
        )  # fmt: skip

    def _exceptions(
        self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any], tensors: list[Tensor]
    ) -> list[Any]:
        """Torch goes on where it does not know whether a size is 0 or 1 (or -1), as if it were not.
        Where the call gives other sizes then, the graph has to check that it is not."""
        return [condition for condition, numbers in self._env.examples(_symbols_in(nodes))
                if self._differs(function, args, kwargs, nodes, tensors, numbers)]  # fmt: skip

    def _differs(self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any],
                 tensors: list[Tensor], numbers: dict[int, Any]) -> bool:  # fmt: skip
        """Whether the call gives other sizes than these, where the symbols are these numbers."""
        mode = _fakes._Mode(True, private.shape_env(*self._captures))

        def number(expr: Any) -> Any:
            return _expressions.evaluate(expr, numbers)

        try:
            values = {node: _value(described, mode, number) for node, described in nodes.items()}
            result = _fakes.run(mode, function, _with(values, args), _with(values, kwargs or {}))
        except Exception:  # and so does the graph
            return False
        fakes = [result] if isinstance(result, torch.Tensor) else result
        return not isinstance(result, _NUMBERS) and not _are_like(fakes, tensors, numbers)

    def _fresh(self, fakes: Any, number: Any) -> tuple[list[Any], list[tuple[int, int]]]:
        """The numbers that the operation has made, and where the program finds them."""
        bound: dict[Any, Any] = {}
        places: dict[Any, tuple[int, int]] = {}
        for i, fake in enumerate(fakes):
            for d, size in enumerate(fake.shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    bound.setdefault(size.node.expr, size)
                    places.setdefault(size.node.expr, (i, d))
        pending = [found for found in self._env.env.pending_fresh_unbacked_symbols
                   if found in bound or not _is_offset(found, fakes)]  # fmt: skip
        self._env.keep_fresh(pending)
        if number is not None and pending:
            if pending != list(number.node.expr.free_symbols) or not private.is_fresh_number(
                number
            ):
                raise _Refused
            bound[pending[0]] = number
            places[pending[0]] = -1, 0
        rows = self._env.take_fresh(bound)
        return rows, [places[found] for found in pending]

    def run(self, function: Any, args: Any, kwargs: Any, nodes: Any, numbers: Any) -> Answer | None:
        """None: the caller uses plain sizes, and the decisions are forgotten.

        Raises if torch needs values that fakes do not have."""
        self._mode.stator_effects = 0
        try:
            self._env.learn(numbers[0], numbers[2], numbers[3])
            return self._run(function, args, kwargs, nodes)
        except private.data_dependent:
            self._begin()
            raise
        except Exception:  # eager reports what is wrong with the call
            self._begin()
            return None


def _value(described: Any, mode: Any, number: Callable[[Any], Any]) -> Any:
    """Of ("number", n), or ("tensor", sizes, strides, dtype, device, requires_grad)."""
    if described[0] == "number":
        return number(described[1])
    sizes, strides = (tuple(map(number, part)) for part in described[1:3])
    return _fakes.fake_like(mode, sizes, strides, *described[3:])


def _symbols_in(nodes: dict[Any, Any]) -> frozenset[int]:
    numbers = (number for described in nodes.values()
               for part in (described[1:3] if described[0] == "tensor" else [described[1:]])
               for number in part)  # fmt: skip
    return frozenset().union(*map(_expressions.symbols_of, numbers))


def _is_offset(found: Any, fakes: Any) -> bool:
    """Whether it only says where a view begins in memory, of which the engine knows nothing."""
    offsets = (fake.storage_offset() for fake in fakes)
    return any(
        isinstance(offset, torch.SymInt) and found in offset.node.expr.free_symbols
        for offset in offsets
    )


def _is_size(size: Any, expr: Any, numbers: dict[int, Any]) -> bool:
    """Whether this is the size; one that only the graph knows may be any."""
    known = isinstance(size, int) and _expressions.symbols_of(expr) <= numbers.keys()
    return not known or size == _expressions.evaluate(expr, numbers)


def _are_like(fakes: Any, tensors: list[Tensor], numbers: dict[int, Any]) -> bool:
    """Whether these are the sizes."""
    if [fake.dim() for fake in fakes] != [len(tensor[0]) for tensor in tensors]:
        return False
    return all(
        _is_size(size, expr, numbers)
        for fake, tensor in zip(fakes, tensors, strict=True)
        for size, expr in zip(fake.shape, tensor[0], strict=True)
    )


# META_MOST_RESULTS of src/graph/meta.h.
_MOST = 16


_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def make_runner(captures: int) -> Runner:
    """`captures`: world_captures of src/world/parts.h."""
    return Runner(bool(captures & 1), bool(captures & 2))


def run_symbolic(
    runner: Runner, function: Any, args: Any, kwargs: Any, nodes: Any, numbers: Any
) -> Answer | None:
    return runner.run(function, args, kwargs, nodes, numbers)


GLUE = (make_runner, run_symbolic)
