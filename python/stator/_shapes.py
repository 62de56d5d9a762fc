"""Graphs with open numbers: what a backend is told about the numbers, and what it relied on.

The engine has symbols and expressions of its own (`_expressions`). Torch's backends want SymInts of
a ShapeEnv. This module makes one for each graph that goes to a backend. This call's values answer
the backend's questions, and the answers become conditions for guards.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import torch

from stator import _expressions, _sources
from stator._expressions import Expr
from stator._versions import private


class Symbol(NamedTuple):
    """A number from outside. Conditions and sizes name it by its index in the list of symbols."""

    hint: Any  # its value in this call, which nobody may rely on if unbacked; None: nobody knows it
    text: str  # its place, as Python text
    low: int | None = None  # bounds that are guarded already
    high: int | None = None
    unbacked: str | None = None  # one without a hint for torch: "int", "float" or "bool"


class Sizes(NamedTuple):
    """Sizes and strides of a tensor: plain numbers, or expressions over symbols."""

    sizes: Sequence[Expr]
    strides: Sequence[Expr]


# An input of a graph: a tensor with open sizes; None, for a tensor that differs only in its
# values; or a number.
Input = Sizes | Expr | None


class Found(NamedTuple):
    """What the compiled graph relies on, other than the conditions that the backend was told."""

    conditions: list[Expr]  # each is true in this call, and must be in others
    pinned: frozenset[int]  # symbols that must have the values of this call, bit for bit


class Restart(Exception):
    """The backend cannot take some floats as symbols: the graph must have them as plain numbers."""

    def __init__(self, symbols: frozenset[int]) -> None:
        super().__init__(f"these symbols must be plain numbers: {sorted(symbols)}")
        self.symbols = symbols


def symbols_in(given: Input) -> frozenset[int]:
    parts = (*given.sizes, *given.strides) if isinstance(given, Sizes) else (given,)
    return frozenset().union(*map(_expressions.symbols_of, parts))


# The text of a symbol that is a size or a stride.
_SIZE = re.compile(r"(.*)\.(size|stride)\(\)\[(\d+)\]", re.DOTALL)

# Beyond any size: older versions of torch have such numbers in place of infinity.
_ENDLESS = 1 << 62


def _bound(found: Any) -> int | None:
    """An end of a range of sympy's; None: the range is endless there."""
    if not found.is_Integer:
        return None
    return int(found) if abs(int(found)) < _ENDLESS else None


def _is_read(expr: Expr) -> bool:
    """Whether a condition over floats computes nothing, so that it means the same in sympy."""
    return (
        type(expr) is tuple
        and expr[0] in ("ne", "lt", "le", "gt", "ge")
        and all(type(part) is not tuple or part[0] == "symbol" for part in expr[1:])
    )


class Env:
    """A ShapeEnv with symbols of the engine's. Torch's questions to it become conditions."""

    def __init__(self, symbols: Sequence[Symbol], scalars: bool, shapes: bool) -> None:
        self._symbols = list(symbols)
        self._hints = {i: symbol.hint for i, symbol in enumerate(symbols)}
        self.env = private.shape_env(scalars, shapes)
        self._pinned: set[int] = set()
        self._numbers: dict[int, Any] = {}  # SymInts and SymFloats, by symbol
        self._known: dict[Any, Expr] = {}  # sympy's symbol → the engine's expression
        self._own: dict[int, Any] = {}  # sympy's symbols of ints, by symbol
        # What torch knew at first, and after it was told the conditions: questions come later.
        self._first_ranges: dict[int, _expressions.Bounds] = {}
        self._told_ranges: dict[int, _expressions.Bounds] = {}
        self._told_guards = 0
        self._told_replacements: dict[Any, Any] = {}

    # -- symbols --

    def _add_number(self, index: int, made: Any) -> None:
        self._numbers[index] = made
        if isinstance(made, int):
            self._pinned.add(index)  # sizes 0 and 1 are plain numbers to torch
        elif not isinstance(made, float):
            self._known[made.node.expr] = _expressions.symbol(index)
            if isinstance(made, torch.SymInt):
                self._own[index] = made.node.expr

    def _make_size(self, hint: int, source: private.Source) -> Any:
        made = self.env.create_symbol(hint, source, private.DimDynamic.DYNAMIC)
        return self.env.create_symintnode(made, hint=hint, source=source)

    def _make_int(self, hint: int, source: private.Source) -> Any:
        kind = private.DimDynamic.DYNAMIC
        return self.env.create_unspecified_symint_and_symbol(hint, source, kind)

    def _make_unbacked(self, symbol: Symbol) -> Any:
        made: Any = getattr(self.env, f"create_unbacked_sym{symbol.unbacked}")()
        self.env.pending_fresh_unbacked_symbols.clear()
        if symbol.low is not None:
            private.check(made >= symbol.low)
        if symbol.high is not None:
            private.check(made <= symbol.high)
        return made

    # -- conditions --

    def _is_float(self, index: int) -> bool:
        return isinstance(self._hints.get(index), float)

    def _is_unhinted(self, condition: Expr) -> bool:
        return any(self._symbols[i].unbacked for i in _expressions.symbols_of(condition))

    def _tell(self, conditions: Sequence[Expr]) -> None:
        """Tells torch the bounds and conditions that are guarded already. Torch would conclude
        n >= 0 from int(n / 2) >= 0, so it hears of whole numbers only."""
        for i in self._own:
            number, symbol = self._numbers[i], self._symbols[i]
            bool(symbol.low is None or number >= symbol.low)
            bool(symbol.high is None or number <= symbol.high)
        for condition in conditions:
            if _expressions.is_whole(condition) and not any(
                map(self._is_float, _expressions.symbols_of(condition))
            ):
                value = _expressions.evaluate(condition, self._numbers)
                private.check(value) if self._is_unhinted(condition) else bool(value)

    def _pin_known(self, found: Any) -> None:
        """Pins all symbols of an expression that the engine has no expression for."""
        for part in found.free_symbols:
            known = self._known.get(part)
            self._pinned |= (
                frozenset(self._hints) if known is None else _expressions.symbols_of(known)
            )

    def _holds(self, condition: Expr) -> bool:
        try:
            return bool(_expressions.evaluate(condition, self._hints))
        except (ArithmeticError, ValueError, TypeError):
            return False

    def _conditions(self) -> Iterator[Expr]:
        """The conditions that the engine has expressions for. The symbols of others are pinned."""
        guards = [
            part for guard in self.env.guards[self._told_guards :] for part in _parts(guard.expr)
        ]
        for found in guards:
            yield from self._translated(found)
        solved = {
            frozenset(found.free_symbols) for found in guards if type(found).__name__ == "Equality"
        }
        for symbol, value in self.env.replacements.items():
            if self._told_replacements.get(symbol) != value:
                equation = private.sympy_eq(symbol, value)
                if value.is_number or frozenset(equation.free_symbols) not in solved:
                    yield from self._translated(equation)

    def _asserts(self) -> Iterator[Any]:
        return (one for row in self.env.deferred_runtime_asserts.values() for one in row)

    def _translated(self, found: Any) -> Iterator[Expr]:
        try:
            condition = _expressions.from_sympy(found, self._known)
        except _expressions.Unknown:
            return self._pin_known(found)
        symbols = _expressions.symbols_of(condition)
        floats = any(map(self._is_float, symbols))
        if _is_pin(condition) or (floats and not _is_read(condition)) or not self._holds(condition):
            self._pinned |= symbols
        elif symbols:
            yield condition

    def _ranges(self) -> dict[int, _expressions.Bounds]:
        """Torch's ranges of the ints, by symbol."""
        ranges = {}
        for index, made in self._own.items():
            found = self.env.var_to_range[made]
            ranges[index] = _bound(found.lower), _bound(found.upper)
        return ranges

    def _range_conditions(self, ranges: dict[int, _expressions.Bounds]) -> Iterator[Expr]:
        """Conditions from ranges: torch takes sizes for 2 or more, and keeps decisions about one
        symbol as its range."""
        for index, found in ranges.items():
            first, told = self._first_ranges[index], self._told_ranges[index]
            guarded = self._symbols[index].low, self._symbols[index].high
            for op, end in (("ge", 0), ("le", 1)):
                bound = found[end]
                asked = bound != told[end]
                assumed = bound == first[end] and bound != guarded[end]
                if bound is not None and (asked or assumed):
                    yield (op, _expressions.symbol(index), bound)

    def _remember(self) -> None:
        """Notes the current state: later guards and ranges are the backend's."""
        self._told_ranges = self._ranges()
        self._told_guards = len(self.env.guards)
        self._told_replacements = dict(self.env.replacements)

    def _found(self) -> Found:
        conditions = [*dict.fromkeys(self._conditions())]
        ranges = self._ranges()
        kept = [
            condition
            for condition in (
                *self._range_conditions(ranges),
                *(one for one in conditions if not _expressions.follows(one, ranges)),
            )
            if not _expressions.symbols_of(condition) <= self._pinned
        ]
        return Found(kept, frozenset(self._pinned))


class Shapes(Env):
    """The ShapeEnv of one graph.

    `inputs`, `examples` and `sources` are those of the graph's placeholders, in order. `examples`
    has real tensors; the other items are ignored.
    """

    def __init__(
        self,
        symbols: Sequence[Symbol],
        inputs: Sequence[Input],
        examples: Sequence[Any],
        sources: Sequence[private.Source],
    ) -> None:
        super().__init__(symbols, True, True)
        self._inputs = [_plain_sizes(example) if given is None else given
                        for given, example in zip(inputs, examples, strict=True)]  # fmt: skip
        self.sources = list(sources)  # of sizes they become torch's own kind
        self.has_symbols = len(symbols) > 0
        self._shown = frozenset(given[1] for given in self._inputs
                                if isinstance(given, tuple) and is_symbol(given))  # fmt: skip
        self._check_floats()
        self.mode = private.forgetful_mode(shape_env=self.env)
        self.contexts: dict[int, Any] = {}  # by the index of an input that is a tensor
        self.examples = list(examples)
        self._fakes: list[Any] = [None] * len(inputs)  # a mode only remembers those that live
        self._homes: dict[int, private.Source] = {}  # sizes and strides of inputs
        self._named: Set[int] = frozenset()  # symbols that torch names

    def _check_floats(self) -> None:
        odd = {i for i in self._shown if not math.isfinite(self._hints[i])}
        if odd:
            raise Restart(frozenset(odd))  # torch makes no symbols of these

    def _rows(self) -> Iterator[tuple[Input, private.Source]]:
        return zip(self._inputs, self.sources, strict=True)

    # -- symbols --

    def _find_homes(self) -> Iterator[tuple[int, private.Source]]:
        """Symbols that are a size or stride of a tensor, with that place; the last place counts."""
        for index, symbol in enumerate(self._symbols):
            if found := _SIZE.fullmatch(symbol.text):
                kind = private.TensorProperty[found[2].upper()]
                place = _sources.source(found[1])
                yield index, private.TensorPropertySource(place, kind, int(found[3]))
        rows = [(given, source) for given, source in self._rows()
                if isinstance(given, Sizes)]  # fmt: skip
        for kind, at in ((private.TensorProperty.STRIDE, 1), (private.TensorProperty.SIZE, 0)):
            for given, source in reversed(rows):
                for d, expr in reversed(list(enumerate(given[at]))):
                    if is_symbol(expr):
                        yield expr[1], private.TensorPropertySource(source, kind, d)

    def _source_of(self, index: int) -> private.Source:
        """The source of a symbol; a symbol that no input has gets a source of its own."""
        if index in self._homes:
            return self._homes[index]
        text = self._symbols[index].text
        return next(
            (source for given, source in self._rows() if given == _expressions.symbol(index)),
            _sources.PlaceSource(f"{text} (symbol {index})"),
        )

    def _make_number(self, index: int) -> Any:
        hint, source = self._hints[index], self._source_of(index)
        if self._symbols[index].unbacked:
            return self._make_unbacked(self._symbols[index])
        if isinstance(hint, float):
            return self._make_float(index, hint, source) if index in self._shown else hint
        make = self._make_size if index in self._homes else self._make_int
        return make(hint, source)

    def _make_float(self, index: int, hint: float, source: private.Source) -> Any:
        """A float as backends take it: the `item()` of a tensor of one number."""
        tensor = torch.tensor(hint, dtype=torch.float64, device="cpu")
        place = private.FloatTensorSource(source)
        context = static_context(tensor, place)
        with private.remembering(self.mode):
            fake = self.mode.from_tensor(tensor, source=place, symbolic_context=context)
        for i, given in enumerate(self._inputs):
            if given == _expressions.symbol(index):
                self.examples[i], self._fakes[i] = tensor, fake
                self.contexts[i] = context
        return fake.item_memo

    def _make_numbers(self) -> None:
        for index in range(len(self._symbols)):
            self._add_number(index, self._make_number(index))
        self._first_ranges = self._ranges()

    # -- tensors --

    def _sympy(self, expr: Expr) -> Any:
        return private.to_sympy(_expressions.evaluate(expr, self._numbers))

    def _names(self, source: private.Source, given: Sizes, offset: Any) -> dict[str, Any]:
        """Sizes, strides and offset by the names of their places: torch takes these and makes no
        symbols."""
        kinds = private.TensorProperty
        names = {}
        for kind, exprs in ((kinds.SIZE, given.sizes), (kinds.STRIDE, given.strides)):
            for d, expr in enumerate(exprs):
                place = private.TensorPropertySource(source, kind, d)
                names[private.source_name(place)] = self._sympy(expr)
        place = private.TensorPropertySource(source, kinds.STORAGE_OFFSET)
        names[private.source_name(place)] = private.to_sympy(offset)
        return names

    def _context(self, tensor: torch.Tensor, source: private.Source, given: Sizes) -> Any:
        names = self._names(source, given, tensor.storage_offset())
        gradient = private.gradient_of(tensor)
        if gradient is not None and gradient.stride() == tensor.stride():
            place = private.AttrSource(source, "grad")
            names |= self._names(place, given, gradient.storage_offset())
        return private.StatefulSymbolicContext(
            dynamic_sizes=[_dynamic(size) for size in given.sizes],
            dynamic_strides=[private.DimDynamic.DYNAMIC] * tensor.dim(),
            constraint_sizes=[None] * tensor.dim(),
            tensor_source=source,
            shape_env_to_source_to_symbol_cache={id(self.env): names},
            view_base_context=self._base_context(tensor, source),
        )

    def _base_context(self, tensor: torch.Tensor, source: private.Source) -> Any:
        """The context of the tensor that an input is a view of: no guard compares its sizes."""
        base = private.base_of(tensor)
        if base is None:
            return None
        place = private.AttrSource(source, "_base")
        offset = private.TensorPropertySource(place, private.TensorProperty.STORAGE_OFFSET)
        names = {private.source_name(offset): private.to_sympy(base.storage_offset())}
        return private.StatefulSymbolicContext(
            dynamic_sizes=[private.DimDynamic.DYNAMIC] * base.dim(),
            dynamic_strides=[private.DimDynamic.DYNAMIC] * base.dim(),
            constraint_sizes=[None] * base.dim(),
            tensor_source=place,
            shape_env_to_source_to_symbol_cache={id(self.env): names},
        )

    def _make_tensor(self, i: int, given: Sizes) -> None:
        tensor, source = self.examples[i], self.sources[i]
        context = self.contexts[i] = self._context(tensor, source, given)
        inference = tensor.is_inference()
        with contextlib.ExitStack() as stack:
            if inference != torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(inference))
            fake = self.mode.from_tensor(tensor, source=source, symbolic_context=context)
        self._fakes[i] = fake
        self._adopt(fake, given)
        gradient = private.gradient_of(fake)
        if gradient is not None:
            self._adopt(gradient, Sizes(given.sizes, ()))

    def _adopt(self, fake: torch.Tensor, given: Sizes) -> None:
        """Notes where torch made symbols or plain numbers although the engine has expressions."""
        found = zip((fake.shape, fake.stride()), given, strict=True)
        for number, expr in ((n, e) for numbers, exprs in found
                             for n, e in zip(numbers, exprs, strict=False)):  # fmt: skip
            if isinstance(number, int):
                self._pinned |= _expressions.symbols_of(expr)
            elif number.node.expr.is_Symbol:
                self._known.setdefault(number.node.expr, expr)

    def _make_tensors(self) -> None:
        """Makes bases before their views: else torch makes a fake of the base without symbols."""
        rows = [(i, given) for i, given in enumerate(self._inputs) if isinstance(given, Sizes)]
        for i, given in sorted(rows, key=lambda row: private.base_of(self.examples[row[0]]) is None,
                               reverse=True):  # fmt: skip
            self._make_tensor(i, given)

    def fill(self, conditions: Sequence[Expr]) -> None:
        """Makes all symbols and fakes. Backends find them by the examples and their contexts."""
        self._homes = dict(self._find_homes())
        self._make_numbers()
        self._named = self._homes.keys() & self._own.keys()
        self._tell(conditions)
        self._make_tensors()
        for i, given in enumerate(self._inputs):
            if not isinstance(given, Sizes) and i not in self.contexts:
                self.examples[i] = _expressions.evaluate(given, self._numbers)
            if isinstance(given, tuple) and is_symbol(given):
                self.sources[i] = self._homes.pop(given[1], self.sources[i])
        self._remember()

    def fill_ragged(self) -> None:
        """Makes the symbols of ragged sizes, which are those of the tensors that come next."""
        rows = [(i, example) for i, example in enumerate(self.examples)
                if isinstance(example, Ragged)]  # fmt: skip
        # A view may have been made of what is an input, too, of which torch would make a fake with
        # symbols: bases and what is no view come first.
        for i, example in sorted(rows, key=lambda row: private.is_view_of_plain(row[1].tensor)):
            at = next(j for j in range(i, len(self.examples)) if j in self.contexts)
            self._fakes[at] = self._another(self.mode, at)
            self.examples[i] = self._fakes[at].shape[example.dim]

    def name_of(self, i: int) -> str | None:
        """Torch's name of an input that is a size or stride of another input; else None."""
        given: Any = self._inputs[i]
        return str(self._own[given[1]]) if is_symbol(given) and given[1] in self._named else None

    def value_of(self, i: int) -> Any:
        """The fake or SymInt that stands for an input while a backend looks at the graph."""
        fake = self._fakes[i]
        return self.examples[i] if fake is None else fake

    def run(self, module: torch.fx.GraphModule) -> None:
        """Gives each node an example of its value. Runs on further fakes, since an operation may
        change the sizes of its arguments."""
        mode = private.forgetful_mode(shape_env=self.env)
        given = [self._another(mode, i) for i in range(len(self.examples))]
        # Torch asserts of some numbers (`x[int(f) :]`) that they lie in ranges that they do not.
        errors = *private.fake_errors, AssertionError
        with mode, private.decomposing(), contextlib.suppress(*errors):
            _Run(module, self.env).run(*given)
        self.env.pending_fresh_unbacked_symbols.clear()

    def fakes(self) -> list[Any]:
        """The inputs as the backend will find them: its mode makes each fake once."""
        return [self._another(self.mode, i) for i in range(len(self.examples))]

    def _another(self, mode: private.FakeTensorMode, i: int) -> Any:
        """Another fake of an input, with the same sizes."""
        example = self.examples[i]
        if not isinstance(example, torch.Tensor):
            return example
        context = self.contexts[i]
        fake = mode.from_tensor(example, source=context.tensor_source, symbolic_context=context)
        if self._fakes[i] is not None:
            fake.item_memo = self._fakes[i].item_memo
        return fake

    # -- what the backend relied on --

    def _overlaps(self, context: private.TracingContext) -> None:
        """Which inputs share memory is guarded, but not whether they overlap: sizes tell."""
        named = {source for guard in context.guards_context.aotautograd_guards
                 for source in private.overlap_sources(guard)}  # fmt: skip
        for given, source in self._rows():
            if isinstance(given, Sizes) and source in named:
                for expr in (*given.sizes, *given.strides):
                    self._pinned |= _expressions.symbols_of(expr)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """While a backend is called. What it learns only later, nobody would guard: so backward
        passes are compiled at once."""
        if not self.has_symbols:
            yield
            return
        before = private.take_forced_floats()
        try:
            with private.backward_at_once():
                yield
        except private.exc.TensorifyScalarRestartAnalysis as error:
            raise Restart(self._floats_named(private.forced_floats())) from error
        except private.exc.BackendCompilerFailed as error:
            negative = frozenset(
                i for i in self._own if not self._symbols[i].unbacked and self._hints[i] < 0
            )
            if " not in VR" not in str(error.inner_exception) or not negative:
                raise
            raise Restart(negative) from error  # of a false conclusion, see _check_ranges
        finally:
            private.put_forced_floats(before)

    def found(self, context: private.TracingContext) -> Found:
        """What the backend relied on. Nothing can be asked afterwards."""
        if not self.has_symbols:
            return Found([], frozenset())
        self._overlaps(context)
        self._check_ranges()
        found = self._found()
        found.conditions.extend(self._asserted())
        self.env.freeze()
        return found

    def _check_ranges(self) -> None:
        """Torch's conclusions may be false (n >= 0 of int(n / 2) >= 0, for n = -1), and so may be
        what the backend made of them: the graph must have such a number as it is."""
        false = frozenset(
            index
            for index, (low, high) in self._ranges().items()
            if (low is not None and self._hints[index] < low)
            or (high is not None and self._hints[index] > high)
        )
        if false and not any(self._symbols[index].unbacked for index in false):
            raise Restart(false)

    def _translated(self, found: Any) -> Iterator[Expr]:
        """Numbers that only the graph knows are the backend's own symbols. What it concludes of
        them follows from checks that the graph makes."""
        own = [part for part in found.free_symbols if private.is_unbacked_symbol(part)]
        if all(part in self._known for part in own):
            yield from super()._translated(found)

    def _asserted(self) -> list[Expr]:
        """What the backend takes to hold of sizes without a hint."""
        return [condition for one in self._asserts()
                if all(part in self._known for part in one.expr.free_symbols)
                for condition in self._translated(one.expr)]  # fmt: skip

    def _floats_named(self, names: set[str]) -> frozenset[int]:
        return frozenset(expr[1] for made, expr in self._known.items()
                         if str(made) in names and expr[0] == "symbol")  # fmt: skip


def _plain_sizes(example: Any) -> Sizes | None:
    is_tensor = isinstance(example, torch.Tensor)
    return Sizes(tuple(example.shape), example.stride()) if is_tensor else None


class _Run(torch.fx.Interpreter):
    def __init__(self, module: torch.fx.GraphModule, env: private.ShapeEnv) -> None:
        super().__init__(module)
        self._env = env

    def run_node(self, n: torch.fx.Node) -> Any:
        value = super().run_node(n)
        if n.op != "output":
            n.meta["example_value"] = value
            if bindings := private.compute_unbacked_bindings(self._env, value):
                n.meta["unbacked_bindings"] = bindings
        return value


def _parts(found: Any) -> Sequence[Any]:
    return found.args if type(found).__name__ == "And" else (found,)


def is_symbol(expr: Expr) -> bool:
    return type(expr) is tuple and len(expr) == 2 and expr[0] == "symbol"


def _is_pin(condition: Expr) -> bool:
    """Whether it says that a symbol has one value."""
    if type(condition) is not tuple or condition[0] != "eq":
        return False
    kinds = {part[0] if type(part) is tuple else "number" for part in condition[1:]}
    return kinds == {"symbol", "number"}


def _dynamic(expr: Expr) -> private.DimDynamic:
    return private.DimDynamic.DYNAMIC if type(expr) is tuple else private.DimDynamic.STATIC


def _only_ragged(tensor: torch.Tensor) -> list[private.DimDynamic]:
    kinds = [private.DimDynamic.STATIC] * tensor.dim()
    for d in ragged_dims(tensor):
        kinds[d] = private.DimDynamic.DYNAMIC
    return kinds


def _static_contexts_within(tensor: Any, source: private.Source) -> dict[str, Any]:
    """By the attribute that holds each of the tensors of which another one is composed."""
    held = ((name, getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0])
    return {
        name: static_context(part, private.AttrSource(source, name))
        for name, part in held
        if isinstance(part, torch.Tensor)
    }


def static_context(tensor: torch.Tensor, source: private.Source) -> Any:
    """Says that none of a tensor's sizes is symbolic, but for ragged ones. Backends would decide by
    themselves."""
    said: dict[str, Any] = {
        "dynamic_sizes": _only_ragged(tensor),
        "constraint_sizes": [None] * tensor.dim(),
        "tensor_source": source,
        "shape_env_to_source_to_symbol_cache": {},
    }
    if private.is_jagged(tensor) and (base := private.base_of(tensor)) is not None:
        said["view_base_context"] = static_context(base, private.AttrSource(source, "_base"))
    if not private.is_composite(tensor):
        return private.StatefulSymbolicContext(**said)
    within = _static_contexts_within(tensor, source)
    return private.SubclassSymbolicContext(**said, inner_contexts=within)


def ragged_dims(example: Any) -> list[int]:
    """Of a jagged tensor those dimensions whose size is no number."""
    if not isinstance(example, torch.Tensor) or not private.is_jagged(example):
        return []
    return [d for d, size in enumerate(example.shape) if not isinstance(size, int)]


class Ragged(NamedTuple):
    """A size of a jagged tensor, as an input of a graph."""

    tensor: torch.Tensor
    dim: int


def plain(examples: Sequence[Any], sources: Sequence[private.Source]) -> Shapes:
    """Of a graph that is for this call's sizes only. Fakes are made by the backend."""
    shapes = Shapes((), [None] * len(examples), examples, sources)
    shapes.contexts = {i: static_context(example, source)
                       for i, (example, source) in enumerate(zip(examples, sources, strict=True))
                       if isinstance(example, torch.Tensor)}  # fmt: skip
    shapes.fill_ragged()
    return shapes


def symbolic(
    symbols: Sequence[Symbol],
    inputs: Sequence[Input],
    examples: Sequence[Any],
    sources: Sequence[private.Source],
    conditions: Sequence[Expr],
) -> Shapes:
    shapes = Shapes(symbols, inputs, examples, sources)
    shapes.fill(conditions)
    return shapes


class Asking(Env):
    """The ShapeEnv of a trace, in which torch's operations are run on symbolic sizes."""

    def __init__(self, scalars: bool, shapes: bool) -> None:
        super().__init__((), scalars, shapes)
        self._conditions_told = self._checks_told = 0
        self._fresh: list[Any] = []  # numbers that the latest operation has made
        self._unbacked: dict[Any, int] = {}  # the symbols of sympy's without a hint, by index
        self._ignored: set[Any] = set()  # symbols that are in nothing that the program sees
        self._checks: list[Expr] = []  # what must hold of them in each call
        self._asserted: set[Any] = set()  # what torch said so far that must hold
        self._unbacked_ranges: dict[Any, _expressions.Bounds] = {}

    def learn(
        self, rows: Sequence[Any], conditions: Sequence[Expr], checks: Sequence[Expr]
    ) -> None:
        """All symbols, conditions and checks of the trace so far; the first are known already."""
        for index in range(len(self._symbols), len(rows)):
            symbol = Symbol(*rows[index])
            self._symbols.append(symbol)
            if symbol.unbacked:
                self._add_unbacked(index, symbol)
            else:
                self._hints[index] = symbol.hint
                self._add_number(index, self._make(index, symbol))
        self._first_ranges = self._ranges() | self._first_ranges
        self._tell(conditions[self._conditions_told :])
        self._conditions_told = len(conditions)
        for check in checks[self._checks_told :]:
            private.check(_expressions.evaluate(check, self._numbers))
        self._checks_told = len(checks)
        self._pinned.clear()
        self._fresh.clear()
        self._remember()

    # -- numbers without a hint --

    def _add_unbacked(self, index: int, symbol: Symbol) -> None:
        """The one that the latest operation made, or, in a new environment, another."""
        inner = symbol.hint is None  # else it was found outside
        made = self._fresh.pop(0) if inner and self._fresh else self._make_unbacked(symbol)
        found = next(iter(made.node.expr.free_symbols))
        own = _expressions.symbol(index)
        self._numbers[index] = made
        self._known[found] = ("int", own) if symbol.unbacked == "bool" else own
        self._unbacked[found] = index

    def keep_fresh(self, kept: Sequence[Any]) -> None:
        """The others that the latest operation has made are of no interest to the program."""
        self._ignored |= set(self.env.pending_fresh_unbacked_symbols) - set(kept)
        self.env.pending_fresh_unbacked_symbols[:] = kept

    def take_fresh(self, bound: Mapping[Any, Any]) -> list[tuple[Any, ...]]:
        """The numbers that an operation has made: kind, least and greatest value. `bound`: what
        each symbol is for the program; those that it cannot see are `Unknown`."""
        rows: list[tuple[Any, ...]] = []
        for found in self.env.pending_fresh_unbacked_symbols:
            if found not in bound:
                raise _expressions.Unknown(str(found))
            made = bound[found]
            kind = {torch.SymInt: "int", torch.SymFloat: "float", torch.SymBool: "bool"}[type(made)]
            index = len(self._symbols) + len(rows)
            low, high = self._range(found) if kind == "int" else (None, None)
            own = _expressions.symbol(index)
            self._known[found] = ("int", own) if kind == "bool" else own
            self._fresh.append(made)
            rows.append((kind, low, high))
        self.env.pending_fresh_unbacked_symbols.clear()
        return rows

    def _range(self, found: Any) -> _expressions.Bounds:
        known = self.env.var_to_range[found]
        return _bound(known.lower), _bound(known.upper)

    def _remember(self) -> None:
        super()._remember()
        self._checks.clear()
        self._asserted = {one.expr for one in self._asserts()}
        self._unbacked_ranges = {found: self._range(found) for found in self._unbacked
                                 if found in self.env.var_to_range}  # fmt: skip

    @property
    def next_symbol(self) -> int:
        return len(self._symbols)

    def examples(self, among: frozenset[int]) -> Iterator[tuple[Expr, dict[int, Any]]]:
        """Values for all symbols, in which one of `among` is -1, 0 or 1: as sizes, these mean
        something else to operations than others do. With them: that the symbol is not that."""
        for index in among.intersection(self._unbacked.values()):
            symbol = self._symbols[index]
            low = -1 if symbol.low is None else symbol.low
            high = 1 if symbol.high is None else symbol.high
            for value in range(max(low, -1), min(high, 1) + 1):
                if symbol.unbacked == "int":
                    others = {i: self._plain(self._symbols[i]) for i in self._unbacked.values()}
                    yield ("ne", _expressions.symbol(index), value), {
                        **self._hints, **others, index: value}  # fmt: skip

    def _plain(self, symbol: Symbol) -> Any:
        if symbol.unbacked != "int":
            return {"float": 1.5, "bool": True}[symbol.unbacked or ""]
        least = max(5, symbol.low or 0)
        return least if symbol.high is None else min(least, symbol.high)

    def _is_unbacked(self, found: Any) -> bool:
        return any(private.is_unbacked_symbol(part) for part in found.free_symbols)

    def _translated(self, found: Any) -> Iterator[Expr]:
        if not self._ignored.isdisjoint(found.free_symbols):
            return
        if not self._is_unbacked(found):
            yield from super()._translated(found)
        else:  # nothing is known of the operation if there are no words for it
            self._checks.append(_expressions.from_sympy(found, self._known))

    def checks(self) -> list[Expr]:
        """What operations relied on since `learn`, of numbers without a hint. After `asked`."""
        for one in self._asserts():
            if one.expr not in self._asserted and self._ignored.isdisjoint(one.expr.free_symbols):
                self._checks.append(_expressions.from_sympy(one.expr, self._known))
        for found, told in self._unbacked_ranges.items():
            for op, old, new in zip(("ge", "le"), told, self._range(found), strict=True):
                if new is not None and new != old:
                    self._checks.append((op, self._known[found], new))
        return [*dict.fromkeys(self._checks)]

    def _make(self, index: int, symbol: Symbol) -> Any:
        hint, source = symbol.hint, _sources.PlaceSource(f"{symbol.text} (symbol {index})")
        if isinstance(hint, float):
            made = self.env.create_unspecified_symbol(hint, source, private.DimDynamic.DYNAMIC)
            return self.env.create_symfloatnode(made, hint=hint, source=source)
        is_size = symbol.low is not None and symbol.low >= _LEAST_SIZE
        return (self._make_size if is_size else self._make_int)(hint, source)

    def number(self, expr: Expr) -> Any:
        return _expressions.evaluate(expr, self._numbers)

    def expr(self, number: Any) -> Expr:
        """Of a size that an operation gives. `_expressions.Unknown` if there is none."""
        if isinstance(number, int):
            return number
        return _expressions.from_sympy(number.node.expr, self._known)

    def asked(self) -> Found:
        """What operations have decided since `learn`."""
        return self._found()


# Torch takes sizes for this or more. The engine makes no symbols of smaller sizes.
_LEAST_SIZE = 2
