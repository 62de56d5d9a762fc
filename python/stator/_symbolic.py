"""Torch's operations on fakes whose sizes are symbols of the engine's: what they give, and what
they decide about sizes. For operations without a rule. C calls it with the hook off."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from stator import _engine, _expressions, _fakes, _settings, _shapes
from stator._versions import private

# What an operation gives: sizes, strides, dtype, device, requires_grad, the argument (a node) whose
# memory it shares, whether it is a view of that for autograd. Or None: it has memory of its own; or
# Ellipsis: that may not be written to.
Tensor = tuple[Any, Any, Any, Any, bool, Any, bool]
# Conditions, pinned symbols, effects other than writes, None or what the results are the items of,
# results, and each argument that was written to with whether it requires a gradient now. An
# argument is a node; a result that is one of the arguments, too. Items may be None. Then numbers
# that only the graph will know: kind, least, greatest, the result whose size it is (-1: it is the
# call's own) and the dimension; what the graph has to check; the result, if it is such a number;
# whether the operation used such a number that nobody else sees.
Answer = tuple[
    list[Any], list[int], int, Any, list[Any], list[tuple[Any, bool]], list[Any], list[Any], Any,
    bool,
]  # fmt: skip

# memory_kind of src/torch/room.h: what may be written to while a gradient is recorded.
_FAMILY, _ALONE = 1, 2


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


class _Made(torch.autograd.Function):
    """A tensor that requires a gradient and is no leaf, which may be written to."""

    @staticmethod
    def forward(ctx: Any, leaf: Any, make: Any) -> Any:
        return make()


class _Given:
    """A tensor among the arguments of a call."""

    def __init__(self, node: Any, fake: Any, memory: int) -> None:
        self.node, self.fake, self._memory = node, fake, memory
        self.storage = private.storage_of(fake)
        self._sizes = *fake.shape, *fake.stride(), fake.storage_offset()
        self._needed_grad = fake.requires_grad

    def check(self) -> None:
        """Nothing may change without a history but by a write (requires_grad_, detach_)."""
        fake = self.fake
        now = *fake.shape, *fake.stride(), fake.storage_offset()
        if private.storage_of(fake) != self.storage or not _same(self._sizes, now):
            raise _Refused
        if self._needed_grad != fake.requires_grad:
            raise _Refused

    def check_written(self) -> None:
        """A write changes nothing, but it may make the tensor require a gradient."""
        fake = self.fake
        self._needed_grad, needed = fake.requires_grad, self._needed_grad
        self.check()
        if needed and not fake.requires_grad:
            raise _Refused
        least = _FAMILY if needed else _ALONE
        if torch.is_grad_enabled() and fake.requires_grad and self._memory < least:
            raise _Refused


def _same(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """Whether sizes are the same expressions; what is known by now counts for both."""
    exprs = [[n if isinstance(n, int) else n.node.expr for n in sizes] for sizes in (before, now)]
    return exprs[0] == exprs[1]


def _key(item: Any, places: dict[Any, int]) -> Any:
    """Something hashable that tells an argument from all others; nodes count by their places.
    `_Refused`: of an object of which that is not known."""
    if isinstance(item, _engine.Node):
        return _engine.Node, places[item]
    if type(item) in (tuple, list):
        return type(item), *(_key(part, places) for part in item)
    if type(item) is dict:
        return dict, *((name, _key(part, places)) for name, part in item.items())
    if isinstance(item, slice):
        return slice, *(_key(part, places) for part in (item.start, item.stop, item.step))
    if type(item) is float:
        return float, item.hex()
    if type(item) in _CONSTANTS or item is None or item is ...:
        return type(item), item
    raise _Refused


_CONSTANTS = frozenset(
    (bool, int, str, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
)


def _moved(nodes: dict[Any, Any], item: Any) -> Any:
    """An answer about other nodes: each result and written argument that is one of them."""
    if isinstance(item, _engine.Node):
        return nodes[item]
    if type(item) is tuple:
        return tuple(nodes[part] if isinstance(part, _engine.Node) else part for part in item)
    return item


class Runner:
    """Of one trace. It knows the symbols and conditions that were told so far.

    Layers repeat: a call that is like an earlier one gets the earlier answer. What torch decided
    for that is a fact of the trace by now."""

    def __init__(self, scalars: bool, shapes: bool, replayed: bool) -> None:
        """Whether numbers of tensors, and shapes that depend on values, go in the graph; whether
        the graph runs as it is, without a backend."""
        self._scalars, self._shapes, self._replayed = scalars, shapes, replayed
        self._begin()

    def _begin(self) -> None:
        # Numbers of tensors that stay within an operation are no concern of the settings.
        self._env = _shapes.Asking(True, self._shapes)
        self._mode = _fakes._Mode(False, self._env.env)
        self._mode.cache_enabled = False  # it costs more than it saves: most calls come once
        self._answers: dict[Any, tuple[list[Any], Answer]] = {}
        self._inner = False  # the latest operation used a number of a tensor for itself

    def _value(self, described: Any) -> Any:
        return _value(described, self._mode, self._env.number)

    def _result(self, fake: Any, given: list[_Given], alone: bool) -> Any:
        """A new tensor, the node of the argument that it is, or None."""
        if fake is None:
            return None
        for one in given:
            if one.fake is fake:
                return one.node
        if type(fake) is not private.FakeTensor:
            raise _Refused
        if fake.layout is not torch.strided or fake.is_conj() or fake.is_neg():
            raise _Refused
        sizes, strides = (tuple(map(self._env.expr, part)) for part in (fake.shape, fake.stride()))
        storage = private.storage_of(fake)
        shared: Any = next((one.node for one in given if one.storage == storage), None)
        if shared is None and fake.requires_grad and fake.is_leaf:
            shared = ...
        plainly = alone and private.is_view(fake)
        return sizes, strides, fake.dtype, fake.device, fake.requires_grad, shared, plainly

    def _written(self, given: list[_Given]) -> list[tuple[Any, bool]]:
        written = [one for one in given if one.storage in self._mode.stator_written]
        for one in given:
            one.check_written() if one in written else one.check()
        return [(one.node, one.fake.requires_grad) for one in written]

    def _run(self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any]) -> Answer:
        values = {node: self._value(described) for node, described in nodes.items()}
        given = [
            _Given(node, values[node], described[-1])
            for node, described in nodes.items()
            if described[0] == "tensor"
        ]
        result = _fakes.run(self._mode, function, _with(values, args), _with(values, kwargs or {}))
        number = result if isinstance(result, _NUMBERS) else None
        if number is not None:
            if not self._scalars:
                raise private.data_dependent[0](function)
            if any(one.fake.dtype is torch.uint64 for one in given):
                raise _Refused  # beyond 64 bits with a sign
            result = ()
        whole = None if result is None or isinstance(result, torch.Tensor) else type(result)
        if whole and not private.is_sequence_type(whole):
            raise _Refused
        fakes = _items(result)
        fresh, places = self._fresh(fakes, number)
        if self._inner and not self._replayed and any(_needs_grad(fake) for fake in fakes):
            raise private.data_dependent[0](function)  # derivatives ask for the number
        results = [self._result(fake, given, len(fakes) == 1) for fake in fakes]
        results = _with_shared(fakes, results)
        written = self._written(given)
        effects, self._mode.stator_effects = self._mode.stator_effects, 0
        allowed = _fakes.RANDOM | _fakes.WRITES | _fakes.UNKNOWN
        if effects & ~allowed or (result is None and not written):
            raise _Refused
        effects &= ~_fakes.WRITES
        found = self._env.asked()
        made = [(*row, *place) for row, place in zip(fresh, places, strict=True)]
        if number is not None and not made:
            raise _Refused  # it may be about a history
        symbol = None if number is None else _expressions.symbol(self._env.next_symbol)
        checks = self._env.checks()
        checks += self._exceptions(function, args, kwargs, nodes, results)
        return (
            found.conditions, sorted(found.pinned), effects, whole, results, written, made, checks,
            symbol, self._inner,
        )  # fmt: skip

    def _exceptions(
        self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any], results: list[Any]
    ) -> list[Any]:
        """Torch goes on where it does not know whether a size is 0 or 1 (or -1), as if it were not.
        Where the call gives other sizes then, the graph has to check that it is not."""
        return [condition for condition, numbers in self._env.examples(_symbols_in(nodes))
                if self._differs(function, args, kwargs, nodes, results, numbers)]  # fmt: skip

    def _differs(self, function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any],
                 results: list[Any], numbers: dict[int, Any]) -> bool:  # fmt: skip
        """Whether the call fails or gives other sizes than these, where the symbols are these
        numbers."""
        mode = _fakes._Mode(False, private.shape_env(True, self._shapes))

        def number(expr: Any) -> Any:
            return _expressions.evaluate(expr, numbers)

        try:
            values = {node: _value(described, mode, number) for node, described in nodes.items()}
            result = _fakes.run(mode, function, _with(values, args), _with(values, kwargs or {}))
        except Exception:  # a compiled graph may go on where eager raises
            return True
        return not isinstance(result, _NUMBERS) and not _are_like(_items(result), results, numbers)

    def _fresh(self, fakes: Any, number: Any) -> tuple[list[Any], list[tuple[int, int]]]:
        """The numbers that the operation has made, and where the program finds them."""
        bound: dict[Any, Any] = {}
        places: dict[Any, tuple[int, int]] = {}
        for i, fake in enumerate(fakes):
            for d, size in enumerate(() if fake is None else fake.shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    bound.setdefault(size.node.expr, size)
                    places.setdefault(size.node.expr, (i, d))
        fresh = self._env.env.pending_fresh_unbacked_symbols
        pending = [
            found
            for found in fresh
            if found in bound or number is not None or _is_in_sizes(found, fakes)
        ]
        self._inner = len(pending) < len(fresh)
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
        key = _call_key(function, args, kwargs, nodes)
        if key in self._answers:
            return _again(*self._answers[key], list(nodes))
        self._mode.stator_effects = 0
        self._mode.stator_written.clear()
        try:
            self._env.learn(numbers[0], numbers[2], numbers[3])
            answer = self._run(function, args, kwargs, nodes)
        except private.data_dependent:
            self._begin()
            raise
        except Exception:  # eager reports what is wrong with the call
            self._begin()
            return None
        made, checks = answer[6:8]
        if key is not None and not made and not checks:
            self._answers[key] = list(nodes), answer
        return answer


_traced = _settings.traced()


def _state() -> Any:
    """Torch's state, as far as a trace may change it."""
    told = [get(*arguments) for get, _, arguments in _traced]
    keys = [keys().raw_repr() for keys in private.local_keys]
    return torch.is_grad_enabled(), repr((told, keys, _settings.attention_kernels()))


def _call_key(function: Any, args: Any, kwargs: Any, nodes: dict[Any, Any]) -> Any:
    """What the answer to a call depends on beside the facts of the trace; None: not known."""
    places = {node: i for i, node in enumerate(nodes)}
    try:
        given = _key(args, places), _key(kwargs or {}, places)
    except _Refused:
        return None
    return function, given, repr([*nodes.values()]), _state()


def _again(before: list[Any], answer: Answer, now: list[Any]) -> Answer:
    """An answer about other nodes."""
    nodes = dict(zip(before, now, strict=True))
    results = [_moved(nodes, item) for item in answer[4]]
    written = [_moved(nodes, item) for item in answer[5]]
    return *answer[:4], results, written, *answer[6:]


def _value(described: Any, mode: Any, number: Callable[[Any], Any]) -> Any:
    """Of ("number", n), or ("tensor", sizes, strides, dtype, device, requires_grad, memory)."""
    if described[0] == "number":
        return number(described[1])
    dtype, device, needs_grad, memory = described[3:]
    sizes, strides = (tuple(map(number, part)) for part in described[1:3])
    if needs_grad and memory and torch.is_grad_enabled():
        leaf = torch.empty(0, requires_grad=True)
        made = lambda: _fakes.fake_like(mode, sizes, strides, dtype, device, False)  # noqa: E731
        return _Made.apply(leaf, made)  # type: ignore[no-untyped-call]
    return _fakes.fake_like(mode, sizes, strides, dtype, device, needs_grad)


def _with_shared(fakes: Any, results: list[Any]) -> list[Any]:
    """New tensors that lie in the same memory (`torch.where(x)`) may not be written to."""
    own = [private.storage_of(fake) if type(result) is tuple and result[5] is None else None
           for fake, result in zip(fakes, results, strict=True)]  # fmt: skip
    return [(*result[:5], ..., result[6]) if storage is not None and own.count(storage) > 1
            else result for storage, result in zip(own, results, strict=True)]  # fmt: skip


def _items(result: Any) -> Any:
    return [] if result is None else [result] if isinstance(result, torch.Tensor) else result


def _needs_grad(fake: Any) -> bool:
    return fake is not None and fake.requires_grad


def _symbols_in(nodes: dict[Any, Any]) -> frozenset[int]:
    numbers = (number for described in nodes.values()
               for part in (described[1:3] if described[0] == "tensor" else [described[1:]])
               for number in part)  # fmt: skip
    return frozenset().union(*map(_expressions.symbols_of, numbers))


def _is_in_sizes(found: Any, fakes: Any) -> bool:
    """Whether sizes or strides depend on it. Else it says where a view begins in memory, of which
    the engine knows nothing, or it is the value of a tensor that was given in the place of a number
    (`alpha=`): the call takes the tensor each time."""
    numbers = (n for fake in fakes if fake is not None for n in (*fake.shape, *fake.stride()))
    return any(isinstance(n, torch.SymInt) and found in n.node.expr.free_symbols for n in numbers)


def _is_size(size: Any, expr: Any, numbers: dict[int, Any]) -> bool:
    """Whether this is the size; one that only the graph knows may be any."""
    known = isinstance(size, int) and _expressions.symbols_of(expr) <= numbers.keys()
    return not known or size == _expressions.evaluate(expr, numbers)


def _are_like(fakes: Any, results: list[Any], numbers: dict[int, Any]) -> bool:
    """Whether these are the sizes of the new tensors."""
    if len(fakes) != len(results):
        return False
    pairs = [(fake, new) for fake, new in zip(fakes, results, strict=True) if type(new) is tuple]
    if any(fake is None or fake.dim() != len(new[0]) for fake, new in pairs):
        return False
    return all(
        _is_size(size, expr, numbers)
        for fake, new in pairs
        for size, expr in zip(fake.shape, new[0], strict=True)
    )


_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def make_runner(captures: int) -> Runner:
    """`captures`: world_captures of src/world/parts.h, and 4 where the graph is replayed."""
    return Runner(bool(captures & 1), bool(captures & 2), bool(captures & 4))


def run_symbolic(
    runner: Runner, function: Any, args: Any, kwargs: Any, nodes: Any, numbers: Any
) -> Answer | None:
    return runner.run(function, args, kwargs, nodes, numbers)


@functools.cache
def _size_operator() -> Any:
    """An operator that gives a size of a tensor as a tensor. Backends know nothing of its result,
    so they cannot take a check of that for one that always holds."""
    library: Any = torch.library.Library("stator", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("size_tensor(Tensor tensor, int dim) -> Tensor")

    def size(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.tensor(tensor.size(dim), dtype=torch.int64, device="cpu")

    def fake(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.empty((), dtype=torch.int64, device="cpu")

    library.impl("size_tensor", size, "CompositeExplicitAutograd")
    torch.library.register_fake("stator::size_tensor", fake, lib=library)
    return library, torch.ops.stator.size_tensor.default


def size_tensor(tensor: torch.Tensor, dim: int) -> Any:
    return _size_operator()[1](tensor, dim)


GLUE = (make_runner, run_symbolic, size_tensor)
