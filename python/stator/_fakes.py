"""Fake tensors: made of tensors or of sizes, and given to torch's operations to see what comes out
of these and what they leave behind. C calls the functions here with the hook off."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stator import _shapes, _sources, _versions
from stator._versions import private


class Settle(Exception):
    """An operation writes to a tensor whose fake has no history yet."""


# What an operation leaves behind beside its result: node_effects of src/graph/graph.h.
WRITES, OUTSIDE, RANDOM, UNKNOWN = 1, 2, 4, 8

# Operations of torch's own, which do what their schemas say. Others may do anything, once.
_KNOWN_NAMESPACES = frozenset({"aten", "prim", "prims"})


# Operations that write to running statistics, of which their schemas say nothing: where their
# argument `training` says so, if they have one. (What fakes do in their place shows in the first
# trace of a process only: results on fakes are remembered.)
_SILENT = frozenset(
    getattr(torch.ops.aten, name).default
    for name in (
        "native_batch_norm", "_batch_norm_impl_index", "cudnn_batch_norm", "miopen_batch_norm",
        "batch_norm_gather_stats", "batch_norm_gather_stats_with_counts",
        "batch_norm_update_stats",
    )
)  # fmt: skip


def is_known(operation: Any) -> bool:
    """Whether an operation of torch.ops is torch's own: of an overload, or of all of them."""
    packet = getattr(operation, "overloadpacket", operation)
    return packet._qualified_op_name.partition("::")[0] in _KNOWN_NAMESPACES


def is_refused(operation: Any) -> bool:
    """Whether the program wants only operations in graphs that say they are made for that
    (`only_allow_pt2_compliant_ops`), and this one does not."""
    return bool(private.config.only_allow_pt2_compliant_ops) and not private.is_compliant(operation)


class _Mode(private.ForgetfulMode):  # type: ignore[no-untyped-call]
    """Notes what cannot be run twice, as bits: the engine takes them after each operation."""

    stator_effects = 0
    stator_overwrites = False
    stator_composed = False  # a composite was written to, or what one from outside holds
    supports_higher_order_operators = True

    def __init__(self, late: bool, shape_env: Any = None) -> None:
        _versions.check_fakes({function.__name__: function for function in GLUE})
        super().__init__(shape_env)
        self.stator_late = late  # fakes are made for one operation each
        self.stator_inputs: set[int] = set()  # storages, which live as long as the inputs' fakes
        self.stator_made: set[int] = set()  # those of fakes made late
        self.stator_written: set[int] = set()  # while a function is looked at
        self.stator_outside: set[int] = set()  # of the inputs' storages, those written to
        self.stator_shared: set[int] = set()  # that functions were given, and gave back
        self.stator_hooked: set[int] = set()  # the same for tensors with held-back hooks
        self.stator_consumed: dict[Any, int] = {}  # nodes of autograd that a backward pass used up
        self.stator_within: set[int] = set()  # those of the tensors that composites hold
        self.stator_classes: dict[type, bool] = {}  # of composites: whether torch can make them

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, private.HigherOrderOperator):
            return private.fake_of_operator(func, super().__torch_dispatch__, self, args, kwargs)
        if func._schema.is_mutable or func in _SILENT:
            written = list(_written(func, args, kwargs))
            storages = {storage for tensor in written for storage in _storages(tensor)}
            self.stator_composed |= any(_is_composite(tensor) for tensor in written)
            self.stator_composed |= not storages.isdisjoint(self.stator_within)
            if self.stator_late and not storages.isdisjoint(self.stator_made | self.stator_inputs):
                raise Settle
            if storages:
                self.stator_effects |= WRITES
            if not storages.isdisjoint(self.stator_inputs):
                self.stator_effects |= OUTSIDE
                self.stator_outside |= storages & self.stator_inputs
            self.stator_written |= storages
            if not storages.isdisjoint(self.stator_hooked):
                self.stator_overwrites = True
                raise RuntimeError("a tensor is written to that has got a hook")
        if torch.Tag.nondeterministic_seeded in func.tags and _draws(func, args, kwargs):
            self.stator_effects |= RANDOM
        if func.namespace not in _KNOWN_NAMESPACES:
            self.stator_effects |= UNKNOWN
        return super().__torch_dispatch__(func, types, args, kwargs)


def _named(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """Each argument of the schema with what was given for it."""
    for i, argument in enumerate(func._schema.arguments):
        yield argument, args[i] if i < len(args) else kwargs.get(argument.name)


def _draws(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether random numbers are drawn: attention that drops nothing draws none."""
    for argument, value in _named(func, args, kwargs):
        if argument.name == "dropout_p":
            return bool(argument.default_value if value is None else value)
    return True


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The arguments that an operation writes to."""
    given = list(_named(func, args, kwargs))
    training = all(value for argument, value in given if argument.name == "training")
    for argument, value in given:
        told = argument.alias_info is not None and argument.alias_info.is_write
        running = argument.name in ("running_mean", "running_var")
        if not (training and (told or func in _SILENT) if running else told):
            continue
        values = value if isinstance(value, (list, tuple)) else (value,)
        yield from (item for item in values if isinstance(item, torch.Tensor))


# -- composites: tensors whose class has __torch_dispatch__, and which hold others --


def _is_composite(tensor: torch.Tensor) -> bool:
    return not isinstance(tensor, private.FakeTensor) and private.is_composite(tensor)


def _held(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors within, in whatever depth; of others, the tensor itself."""
    if not _is_composite(tensor):
        yield tensor
        return
    for name in tensor.__tensor_flatten__()[0]:  # type: ignore[attr-defined]
        value = getattr(tensor, name)
        if isinstance(value, torch.Tensor):
            yield from _held(value)


def _storages(tensor: torch.Tensor) -> Iterator[int]:
    return (private.storage_of(held) for held in _held(tensor))


def holds_fakes(mode: _Mode, tensor: torch.Tensor) -> bool:
    """Whether all tensors within a composite are fakes of this mode, and a backend can make such a
    tensor of them."""
    cls = type(tensor)
    if not private.is_composite(tensor) or not all(
        isinstance(held, private.FakeTensor) and held.fake_mode is mode for held in _held(tensor)
    ):
        return False
    if cls not in mode.stator_classes:
        with mode:
            mode.stator_classes[cls] = type(_made_again(tensor)) is cls
    return mode.stator_classes[cls]


def _made_again(tensor: Any) -> Any:
    names, context = tensor.__tensor_flatten__()
    inner = {name: getattr(tensor, name) for name in names}
    return type(tensor).__tensor_unflatten__(inner, context, tensor.shape, tensor.stride())


def composite_refusal(tensor: torch.Tensor) -> str | None:
    """Why a tensor whose class has __torch_dispatch__ cannot be an input."""
    if not private.is_composite(tensor):
        return "has __torch_dispatch__, and no __tensor_flatten__"
    if not private.is_jagged(tensor) and (private.has_own_sizes(tensor) or tensor.is_nested):
        return "keeps sizes of its own"
    return None


def ragged_names(tensor: torch.Tensor) -> tuple[str, ...] | None:
    """The attributes that say what a jagged tensor is; None of others."""
    return private.JAGGED_NAMES if private.is_jagged(tensor) else None


def make_mode(late: bool) -> _Mode:
    return _Mode(late)


def _ragged_env(mode: _Mode) -> Any:
    """Where the ragged sizes of jagged tensors are symbols; all other sizes are plain numbers."""
    if mode.shape_env is None:
        mode.shape_env = private.shape_env(False, False)
    return mode.shape_env


def _made_in(mode: _Mode, tensor: torch.Tensor) -> Any:
    if not private.is_jagged(tensor):
        return mode.from_tensor(tensor, static_shapes=True)
    _ragged_env(mode)
    source = _sources.PlaceSource(f"jagged tensor {id(tensor)}")
    context = _shapes.static_context(tensor, source)
    return mode.from_tensor(tensor, static_shapes=False, source=source, symbolic_context=context)


def _fake_of(mode: _Mode, tensor: torch.Tensor) -> Any:
    inference = tensor.is_inference()
    if inference == torch.is_inference_mode_enabled():
        return _made_in(mode, tensor)
    with torch.inference_mode(inference):  # a fake is what the mode makes it that is on
        return _made_in(mode, tensor)


def _fake_of_any(mode: _Mode, tensor: torch.Tensor) -> Any:
    if private.peek_interpreter_stack() is None:
        return _fake_of(mode, tensor)
    with private.without_levels():  # an input belongs to no level
        return _fake_of(mode, tensor)


def fake_of(mode: _Mode, tensor: torch.Tensor) -> Any:
    fake = _fake_of_any(mode, tensor)
    if private.is_composite(tensor) and type(fake) is not type(tensor):
        raise TypeError(f"__tensor_unflatten__ gives a {type(fake).__name__}")
    storages = set(_storages(fake))
    mode.stator_inputs |= storages
    if _is_composite(fake):
        mode.stator_within |= storages
        mode.stator_composed |= not storages.isdisjoint(mode.stator_outside)
    return fake


_PLAIN = frozenset((torch.Tensor, torch.nn.Parameter))


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether sizes, strides, dtype, device and requires_grad say all of it."""
    return (
        type(tensor) in _PLAIN
        and tensor.layout is torch.strided
        and tensor.is_leaf
        and tensor.grad is None
        and tensor.storage_offset() == 0
        and not (tensor._is_view() or tensor.is_quantized or vars(tensor))
        and not (tensor.is_conj() or tensor.is_neg() or tensor.is_inference())
        and not torch.is_inference_mode_enabled()
        and private.peek_interpreter_stack() is None
    )


def example_of(mode: _Mode, tensor: torch.Tensor) -> Any:
    """The same for somebody who only looks at the fake: it need not share memory with others. This
    is several times faster than to ask torch."""
    if not _is_whole(tensor):
        return fake_of(mode, tensor)
    fake = _like(mode, tensor.shape, tensor.stride(), tensor.dtype, tensor.device,
                 tensor.requires_grad)  # fmt: skip
    if type(tensor) is torch.nn.Parameter:
        fake._is_param = True
    mode.stator_inputs.add(private.storage_of(fake))
    return fake


def hooked(mode: _Mode, fake: torch.Tensor) -> None:
    """A hook belongs to what a tensor is now, which a write to its memory makes another.

    Leaves stay what they are.
    """
    if not fake.is_leaf:
        mode.stator_hooked.update(_storages(fake))


def forget_writes(mode: _Mode, nothing: None) -> None:
    mode.stator_written.clear()


def were_written(mode: _Mode, fakes: list[torch.Tensor]) -> bool:
    return any(not mode.stator_written.isdisjoint(_storages(tensor)) for tensor in fakes)


def note_shared(mode: _Mode, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    shared = {storage for tensor in given for storage in _storages(tensor)} & {
        storage for tensor in made for storage in _storages(tensor)
    }
    mode.stator_shared |= shared
    return bool(shared)


def are_shared(mode: _Mode, fakes: list[Any], goes_on: bool) -> bool:
    """Whether AOTAutograd would make an output of what a function was given, past the function. It
    leaves a function's own result as it is, if no other output shares its memory. But a program
    that goes on behind a break may look for the function in the result's history (torch's backward
    hooks on modules do)."""
    outputs: dict[int, list[torch.Tensor]] = {}
    for fake in fakes:
        for storage in _storages(fake) if isinstance(fake, torch.Tensor) else ():
            outputs.setdefault(storage, []).append(fake)
    for storage in mode.stator_shared.intersection(outputs):
        tensors = outputs[storage]
        alone = (
            not goes_on
            and len(tensors) == 1
            and isinstance(tensors[0].grad_fn, private.FunctionNode)
        )
        if not alone and any(tensor.requires_grad for tensor in tensors):
            return True
    return False


def in_one_storage(one: Any, other: Any) -> bool:
    """Whether two fakes with history share memory; what is no fake may."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return True
    return not set(_storages(one)).isdisjoint(_storages(other))


def _like(
    mode: _Mode, sizes: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool
) -> Any:
    inside = torch.empty_strided(
        sizes, strides, dtype=dtype, device="meta", requires_grad=requires_grad
    )
    return private.FakeTensor(mode, inside, device)


def fake_like(
    mode: _Mode, sizes: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool
) -> Any:
    """A fake of no history."""
    fake = _like(mode, sizes, strides, dtype, device, requires_grad)
    mode.stator_made.add(private.storage_of(fake))
    return fake


def is_written(mode: _Mode, fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and not mode.stator_outside.isdisjoint(_storages(fake))


_running = threading.local()


def _log_filter(record: logging.LogRecord) -> bool:
    """What fails on fakes is a break; the error is eager's to report."""
    return not getattr(_running, "fakes", False)


private.fake_log.addFilter(_log_filter)


# Give back their argument where they have nothing to do. Compiled ahead of time they give a copy.
DROPOUTS = frozenset({torch.dropout, torch.nn.functional.dropout})


def _drops_nothing(
    input: Any, p: float = 0.5, train: bool = True, inplace: bool = False, **more: Any
) -> bool:
    return not inplace and (p == 0 or not more.get("training", train) or input.numel() == 0)


# While it is set: called with each function that is run on fakes, and whether sizes are symbols.
watcher: Callable[[Any, bool], None] | None = None


def _check_scaled(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Kernels that scale refuse samples without elements. Torch's fakes, and what AOTAutograd has
    in the kernels' place, do not."""
    name = getattr(function, "__name__", "")
    if name == "interpolate" or name.startswith(("upsample_", "_upsample_")):
        tensor = args[0] if args else kwargs["input"]
        for size in tensor.shape[1:]:
            private.check(size != 0)


def run(mode: _Mode, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    if watcher:
        watcher(function, mode.shape_env is not None)
    if function in DROPOUTS:
        # In inference mode, and of its tensors, torch's fakes make a copy where tensors give back
        # the argument, or an alias of it.
        given = dict(zip(("input", "p", "train", "inplace"), args, strict=False), **(kwargs or {}))
        if torch.is_inference_mode_enabled() and _drops_nothing(**given):
            return given["input"]
        if given["input"].is_inference():
            raise NotImplementedError("dropout of a tensor made in inference mode")
    _check_scaled(function, args, kwargs or {})
    _running.fakes = True
    try:
        with mode, private.decomposing() if mode.shape_env else contextlib.nullcontext():
            return function(*args, **kwargs) if kwargs else function(*args)
    finally:
        _running.fakes = False


def takes_gradient(tensor: torch.Tensor, gradient: torch.Tensor) -> bool:
    """Whether it can be set, as far as torch's setter asks."""
    same = tensor.dtype == gradient.dtype and tensor.device == gradient.device
    return same and tensor.shape == gradient.shape and tensor.layout == gradient.layout


def refusal(tensor: torch.Tensor) -> str | None:
    """Why a tensor cannot be an input, of whatever class."""
    if private.is_jagged(tensor):
        return None
    if tensor.layout is not torch.strided:
        return f"has the layout {tensor.layout}"
    if tensor.is_nested:
        return "is nested"
    if tensor.is_quantized:
        return "is quantized"
    if private.has_names(tensor):
        return "has named dimensions"
    if private.is_functorch_wrapped(tensor):
        return "belongs to a functorch transform"
    return None


def key_bits(tensor: torch.Tensor) -> int:
    return int(private.dispatch_keys(tensor).raw_repr())


_OF_MODULES = ("_parameters", "_buffers", "_modules", "_forward_pre_hooks")


def _parts(module: torch.nn.Module) -> dict[str, Any]:
    return {name: value.copy() if name in _OF_MODULES else value
            for name, value in vars(module).items()}  # fmt: skip


def _keeps_fake(module: torch.nn.Module) -> bool:
    tensors = [*module.parameters(), *module.buffers(), *vars(module).values()]
    return any(isinstance(tensor, private.FakeTensor) for tensor in tensors)


def initialise(function: Any, args: tuple[Any, ...], whole: bool) -> bool:
    """Initialises a lazy module for a call with fakes. Modules of torch's own need the sizes alone.
    Others may look at values, or keep their arguments: they are tried where the program is one
    graph or an error, and are as they were where that fails."""
    module = args[1]
    if type(module).__module__.startswith("torch.nn.modules."):
        function(*args)
        return True
    if not whole:
        return False
    before, cls = _parts(module), type(module)
    try:
        function(*args)
        if not _keeps_fake(module):
            return True
    except Exception:
        pass
    module.__class__ = cls
    vars(module).clear()
    vars(module).update(before)
    return False


def make_parameter(data: torch.Tensor, requires_grad: bool) -> Any:
    """The target of a node: of a fake a leaf that shares its memory."""
    return torch.nn.Parameter(data, requires_grad)


# What the engine calls by name.
GLUE = (make_mode, is_known, is_refused, is_written, fake_of, example_of, fake_like, hooked,
        forget_writes, were_written, note_shared, are_shared, in_one_storage, run, refusal,
        takes_gradient, key_bits, holds_fakes, composite_refusal, ragged_names, initialise,
        make_parameter)  # fmt: skip
