"""What the engine asks of torch: which callables become nodes, and how fakes are made and run.

Nothing here decides about a trace: it has tables, and functions that C calls with the hook off.
"""

import contextlib
import functools
import inspect
import logging
import operator
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

import torch
import torch.overrides

from stator import _engine, _policy, _settings, _versions
from stator._versions import private

Row = tuple[str, Any]  # kind (src/torch/kinds.def), extra

# -- fakes --


class _Settle(Exception):
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


class _Mode(private.ForgetfulMode):  # type: ignore[no-untyped-call]
    """Notes what cannot be run twice, as bits: the engine takes them after each operation."""

    stator_effects = 0
    stator_overwrites = False

    def __init__(self, late: bool) -> None:
        super().__init__()
        self.stator_late = late  # fakes are made for one operation each
        self.stator_inputs: set[int] = set()  # storages, which live as long as the inputs' fakes
        self.stator_made: set[int] = set()  # those of fakes made late
        self.stator_written: set[int] = set()  # while a function is looked at
        self.stator_outside: set[int] = set()  # of the inputs' storages, those written to
        self.stator_shared: set[int] = set()  # that functions were given, and gave back
        self.stator_hooked: set[int] = set()  # the same for tensors with held-back hooks

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable or func in _SILENT:
            storages = {private.storage_of(tensor) for tensor in _written(func, args, kwargs)}
            if self.stator_late and not storages.isdisjoint(self.stator_made | self.stator_inputs):
                raise _Settle
            if storages:
                self.stator_effects |= WRITES
            if not storages.isdisjoint(self.stator_inputs):
                self.stator_effects |= OUTSIDE
                self.stator_outside |= storages & self.stator_inputs
            self.stator_written |= storages
            if not storages.isdisjoint(self.stator_hooked):
                self.stator_overwrites = True
                raise RuntimeError("a tensor is written to that has got a hook")
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.stator_effects |= RANDOM
        if func.namespace not in _KNOWN_NAMESPACES:
            self.stator_effects |= UNKNOWN
        return super().__torch_dispatch__(func, types, args, kwargs)


def _named(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """Each argument of the schema with what was given for it."""
    for i, argument in enumerate(func._schema.arguments):
        yield argument, args[i] if i < len(args) else kwargs.get(argument.name)


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """The arguments that an operation writes to."""
    given = list(_named(func, args, kwargs))
    silent = func in _SILENT and all(value for argument, value in given
                                     if argument.name == "training")  # fmt: skip
    for argument, value in given:
        told = argument.alias_info is not None and argument.alias_info.is_write
        if not told and not (silent and argument.name in ("running_mean", "running_var")):
            continue
        values = value if isinstance(value, (list, tuple)) else (value,)
        yield from (item for item in values if isinstance(item, torch.Tensor))


def make_mode(late: bool) -> _Mode:
    return _Mode(late)


def _fake_of(mode: _Mode, tensor: torch.Tensor) -> Any:
    inference = tensor.is_inference()
    if inference == torch.is_inference_mode_enabled():
        return mode.from_tensor(tensor, static_shapes=True)
    with torch.inference_mode(inference):  # a fake is what the mode makes it that is on
        return mode.from_tensor(tensor, static_shapes=True)


def fake_of(mode: _Mode, tensor: torch.Tensor) -> Any:
    fake = _fake_of(mode, tensor)
    mode.stator_inputs.add(private.storage_of(fake))
    return fake


def hooked(mode: _Mode, fake: torch.Tensor) -> None:
    """A hook belongs to what a tensor is now, which a write to its memory makes another.

    Leaves stay what they are.
    """
    if not fake.is_leaf:
        mode.stator_hooked.add(private.storage_of(fake))


def forget_writes(mode: _Mode, nothing: None) -> None:
    mode.stator_written.clear()


def were_written(mode: _Mode, fakes: list[torch.Tensor]) -> bool:
    return any(private.storage_of(tensor) in mode.stator_written for tensor in fakes)


def note_shared(mode: _Mode, given: list[torch.Tensor], made: list[torch.Tensor]) -> bool:
    shared = {private.storage_of(tensor) for tensor in given} & {
        private.storage_of(tensor) for tensor in made
    }
    mode.stator_shared |= shared
    return bool(shared)


def are_shared(mode: _Mode, fakes: list[Any]) -> bool:
    tensors = (fake for fake in fakes if isinstance(fake, torch.Tensor))
    return any(private.storage_of(tensor) in mode.stator_shared for tensor in tensors)


def fake_like(
    mode: _Mode, sizes: Any, strides: Any, dtype: Any, device: Any, requires_grad: bool
) -> Any:
    """A fake of no history."""
    inside = torch.empty_strided(
        sizes, strides, dtype=dtype, device="meta", requires_grad=requires_grad
    )
    fake = private.FakeTensor(mode, inside, device)
    mode.stator_made.add(private.storage_of(fake))
    return fake


def is_written(mode: _Mode, fake: Any) -> bool:
    return isinstance(fake, torch.Tensor) and private.storage_of(fake) in mode.stator_outside


# -- a compiled graph that fails: what it has done is undone, where that is known --

# More than this is not copied before each call for the sake of a failure: elements, and tensors.
_MOST_KEPT = 1 << 14
_MOST_TENSORS = 64

Saved = tuple[list[Any], "list[tuple[torch.Tensor, torch.Tensor]] | None"]


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

    def before(*written: torch.Tensor) -> Saved:
        states = [(generator, generator.get_state()) for generator in generators]
        small = len(written) <= _MOST_TENSORS and all(
            tensor.device.type == "cpu" and tensor.numel() <= _MOST_KEPT for tensor in written
        )
        return states, [(tensor, tensor.detach().clone()) for tensor in written] if small else None

    def undo(saved: Saved) -> bool:
        states, tensors = saved
        for generator, state in states:
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


_running = threading.local()


def _log_filter(record: logging.LogRecord) -> bool:
    """What fails on fakes is a break; the error is eager's to report."""
    return not getattr(_running, "fakes", False)


private.fake_log.addFilter(_log_filter)


# Give back their argument where they have nothing to do. Compiled ahead of time they give a copy.
_DROPOUTS = frozenset({torch.dropout, torch.nn.functional.dropout})


def _drops_nothing(
    input: Any, p: float = 0.5, train: bool = True, inplace: bool = False, **more: Any
) -> bool:
    return not inplace and (p == 0 or not more.get("training", train) or input.numel() == 0)


def run(mode: _Mode, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    if function in _DROPOUTS:
        # In inference mode, and of its tensors, torch's fakes make a copy where tensors give back
        # the argument, or an alias of it.
        given = dict(zip(("input", "p", "train", "inplace"), args, strict=False), **(kwargs or {}))
        if torch.is_inference_mode_enabled() and _drops_nothing(**given):
            return given["input"]
        if given["input"].is_inference():
            raise NotImplementedError("dropout of a tensor made in inference mode")
    _running.fakes = True
    try:
        with mode:
            return function(*args, **kwargs) if kwargs else function(*args)
    finally:
        _running.fakes = False


def takes_gradient(tensor: torch.Tensor, gradient: torch.Tensor) -> bool:
    """Whether it can be set, as far as torch's setter asks."""
    same = tensor.dtype == gradient.dtype and tensor.device == gradient.device
    return same and tensor.shape == gradient.shape and tensor.layout == gradient.layout


def refusal(tensor: torch.Tensor) -> str | None:
    """Why a tensor of a plain class cannot be an input."""
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


# -- state --


def other_tracer() -> bool:
    """Whether somebody else traces what runs now: that one is to see the program, uncompiled."""
    return (
        private.fx_tracing()
        or private.get_tracing_state() is not None
        or private.peek_interpreter_stack() is not None
        or any(private.dispatch_mode_of(key) is not None for key in private.tracing_modes)
    )


def state_refusal() -> str | None:
    """What is on that a trace could not stand."""
    if private.peek_interpreter_stack() is not None:
        return "a functorch transform is on"
    if private.len_dispatch_stack() > 0:
        return "a torch dispatch mode is on"
    if private.get_tracing_state() is not None:
        return "torch.jit.trace is on"
    if private.top_saved_tensors_hooks(False) is not None:
        return "saved-tensor hooks are on"
    return None


_AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "xla", "ipu", "maia",
                     "privateuseone")  # fmt: skip


def _autocast_state() -> list[tuple[str, bool, torch.dtype]]:
    found = []
    for device in _AUTOCAST_DEVICES:
        try:
            found.append(
                (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            )
        except RuntimeError:
            continue
    return found


def autocast_dtype_in(state: tuple[Any, ...] | None, device: str) -> Any:
    """What it is in a state that `save_state` gave; None is the state as it is now."""
    for name, _, dtype in state[1] if state else ():
        if name == device:
            return dtype
    return torch.get_autocast_dtype(device)


class _Entered(threading.local):
    """Inference modes that a trace or a graph has entered, innermost last."""

    def __init__(self) -> None:
        self.contexts: list[Any] = []


_entered = _Entered()


# Nodes, too. What is entered is known here, so that it can be left when a graph fails.


def enter_inference(mode: bool) -> Any:
    context: Any = private.InferenceMode(mode)
    context.__enter__()
    _entered.contexts.append(context)
    return context


def exit_inference(context: Any) -> None:
    context.__exit__(None, None, None)
    _entered.contexts.pop()


def leave_inference(depth: int) -> None:
    while len(_entered.contexts) > depth:
        exit_inference(_entered.contexts[-1])


def save_state(settings: tuple[tuple[Any, Any], ...] = ()) -> tuple[Any, ...]:
    """The state, and last the calls that set it."""
    grad, autocast, cache = (
        torch.is_grad_enabled(),
        _autocast_state(),
        torch.is_autocast_cache_enabled(),
    )
    setters: list[tuple[Any, tuple[Any, ...]]] = [
        (leave_inference, (len(_entered.contexts),)),
        (private.set_grad_enabled, (grad,)),
        (torch.set_autocast_cache_enabled, (cache,)),
    ]
    for device, enabled, dtype in autocast:
        setters.append((torch.set_autocast_enabled, (device, enabled)))
        setters.append((torch.set_autocast_dtype, (device, dtype)))
    setters += [(setter, (getter(),)) for setter, getter in settings]
    return grad, autocast, cache, _engine.torch_autocast_depth(), tuple(setters)


def state_keeper(settings: tuple[tuple[Any, Any], ...]) -> tuple[Any, Any]:
    """What saves the state that a graph sets, and what puts it back."""
    return functools.partial(save_state, settings), _engine.torch_restore_state


Switch = tuple[Any, tuple[Any, ...], Any, tuple[Any, ...]]  # a call, and the call that undoes it


def state_switches(before: tuple[Any, ...], after: tuple[Any, ...]) -> list[Switch]:
    """What leads from one state to the other: calls of C functions only."""
    switches: list[Switch] = []

    def switch(function: Any, old: Any, new: Any, *device: str) -> None:
        if old != new:
            switches.append((function, (*device, new), function, (*device, old)))

    switch(private.set_grad_enabled, before[0], after[0])
    for (device, *old), (_, *new) in zip(before[1], after[1], strict=True):
        switch(torch.set_autocast_enabled, old[0], new[0], device)
        switch(torch.set_autocast_dtype, old[1], new[1], device)
    switch(torch.set_autocast_cache_enabled, before[2], after[2])
    deeper: Switch = (torch.autocast_increment_nesting, (), _engine.torch_leave_autocast, ())
    switches += [deeper] * (after[3] - before[3])
    switches += [deeper[2:] + deeper[:2]] * (before[3] - after[3])
    return switches


def autocast_now(device: str) -> tuple[bool, torch.dtype, bool]:
    """What autocast.__enter__ puts aside, and __exit__ sets."""
    return (
        torch.is_autocast_enabled(device),
        torch.get_autocast_dtype(device),
        torch.is_autocast_cache_enabled(),
    )


def _set_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    torch.set_autocast_enabled(device, enabled)
    torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(cache)


# Nodes: a context is left that was entered before the graph, and entered again at the graph's end;
# or it is entered in the graph, and left for the time being at its end.


def _exit_autocast(mode: torch.autocast) -> None:
    """As torch's own, but the cache stays, for what comes after the graph in the same context."""
    torch.autocast_decrement_nesting()
    _set_autocast(mode.device, mode.prev, mode.prev_fastdtype, mode.prev_cache_enabled)


def leave_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    _engine.torch_leave_autocast()
    _set_autocast(device, enabled, dtype, cache)


def return_to_autocast(device: str, enabled: bool, dtype: torch.dtype, cache: bool) -> None:
    torch.autocast_increment_nesting()
    _set_autocast(device, enabled, dtype, cache)


# -- in place of torch's own: traced instead of what they stand for --


class _Range(torch.profiler.record_function):
    """`record_function` marks time for a profiler. While none is on, it does nothing.

    `run_callbacks_on_exit` is off meanwhile, so that torch's own `__exit__` does nothing either.
    """

    def begin(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record = None
        for name in private.range_notes or ():
            setattr(self, name, None)

    def enter(self) -> Any:
        if private.profiler_enabled():
            return _enter_range(self)
        self.run_callbacks_on_exit = False
        return self

    def exit(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        if self.run_callbacks_on_exit:  # entered for real
            return _exit_range(self, exc_type, exc_value, traceback)
        self.run_callbacks_on_exit = True
        return None


_RANGES: tuple[tuple[Any, Row], ...] = (
    (torch.profiler.record_function.__init__, ("instead", _Range.begin)),
    (torch.profiler.record_function.__enter__, ("instead", _Range.enter)),
    (torch.profiler.record_function.__exit__, ("instead", _Range.exit)),
)
if private.range_notes is None:  # nobody knows what to set
    _RANGES = tuple((function, ("state", "torch.profiler.record_function"))
                    for function, _ in _RANGES)  # fmt: skip


def _enter_range(self: Any) -> Any:
    return torch.profiler.record_function.__enter__(self)  # type: ignore[no-untyped-call]


def _exit_range(self: Any, *raised: Any) -> Any:
    return torch.profiler.record_function.__exit__(self, *raised)


# `value` is a tensor: torch's functions take its number, which a trace does not know. Their kernels
# multiply by it first, and round as the product of tensors does; but for types that are short.


def _is_factor(value: Any, *tensors: Any) -> bool:
    long = value.dtype == torch.float32 or value.dtype == torch.float64
    same = all(tensor.dtype == value.dtype for tensor in tensors)
    return long and same and value.dim() == 0 and not value.requires_grad


def _addcdiv(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcdiv(value * tensor1, tensor2)
    return self.addcdiv(tensor1, tensor2, value=value.item())


def _addcdiv_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcdiv_(value * tensor1, tensor2)
    return self.addcdiv_(tensor1, tensor2, value=value.item())


def _addcmul(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcmul(value * tensor1, tensor2)
    return self.addcmul(tensor1, tensor2, value=value.item())


def _addcmul_(self: Any, tensor1: Any, tensor2: Any, *, value: Any) -> Any:
    if _is_factor(value, self, tensor1, tensor2):
        return self.addcmul_(value * tensor1, tensor2)
    return self.addcmul_(tensor1, tensor2, value=value.item())


# What is asked for is so already, or known; else the method itself is called, and breaks.


def _requires_grad_(self: Any, requires_grad: bool = True) -> Any:
    if self.requires_grad == requires_grad:
        return self
    return _set_requires_grad(self, requires_grad)


def _set_requires_grad(self: Any, requires_grad: bool) -> Any:
    return self.requires_grad_(requires_grad)


def _find_type(name: str) -> Any:
    return getattr(torch, name.removeprefix("torch."), name)


_TYPES = {
    dtype: torch.empty(0, dtype=dtype, device="cpu").type()
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                  torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool,
                  torch.complex64, torch.complex128)
}  # fmt: skip


_DTYPES_BY_NAME = {name: dtype for dtype, name in _TYPES.items()}  # and torch's old classes
_DTYPES_BY_NAME |= {_find_type(name): dtype for dtype, name in _TYPES.items()}


def _type(self: Any, dtype: Any = None, non_blocking: bool = False, **others: Any) -> Any:
    if dtype is None and self.device.type == "cpu" and self.dtype in _TYPES:
        return _TYPES[self.dtype]
    if dtype in _DTYPES_BY_NAME and self.device.type == "cpu":
        dtype = _DTYPES_BY_NAME[dtype]
    if isinstance(dtype, torch.dtype) and not others:
        return self.to(dtype, non_blocking=non_blocking)
    return _type_of(self, dtype, non_blocking, others)


def _type_of(self: Any, dtype: Any, non_blocking: bool, others: Any) -> Any:
    return self.type(dtype, non_blocking, **others)


def _new(self: Any, *args: Any, device: Any = None) -> Any:
    sizes = args[0] if len(args) == 1 and isinstance(args[0], torch.Size) else args
    if device is None and all(type(size) is int for size in sizes):
        return self.new_empty(sizes or (0,))
    return _new_of(self, args, device)


def _new_of(self: Any, args: Any, device: Any) -> Any:
    return self.new(*args) if device is None else self.new(*args, device=device)


def _group_tensors(lists: Any, with_indices: bool = False) -> Any:
    """Of one device and type. (Torch gives groups in no order, and has errors of its own.)"""
    if not lists or not lists[0]:
        return _group_by_torch(lists, with_indices)
    kinds = []
    for tensors in lists:
        if len(tensors) != len(lists[0]):
            return _group_by_torch(lists, with_indices)
        for tensor in tensors:
            kinds.append(None if tensor is None else (tensor.device, tensor.dtype))
            if kinds[-1] is None or kinds[-1] != kinds[0]:
                return _group_by_torch(lists, with_indices)
    indices = list(range(len(lists[0]))) if with_indices else []
    return {kinds[0]: ([list(tensors) for tensors in lists], indices)}


def _group_by_torch(lists: Any, with_indices: bool) -> Any:
    return private.group_tensors(lists, with_indices)


# An autograd.Function. Its forward and backward are traced to see whether they only compute; what
# comes of that is thrown away, and torch's own `apply` becomes a node, or is called for real.


class _Context(torch.autograd.function.FunctionCtx):
    to_save: Any = ()

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    @property
    def saved_tensors(self) -> Any:
        return self.to_save


_GIVEN = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device,
          torch.layout, torch.memory_format)  # fmt: skip


def _is_given(value: Any) -> bool:
    """Whether an argument is one that nobody can change, or a tensor."""
    if type(value) is tuple or type(value) is torch.Size:
        return all(_is_given(item) for item in value)
    return type(value) in _GIVEN or isinstance(value, torch.Tensor)


def _look_forward(cls: Any, args: Any, kwargs: Any) -> Any:
    apart = cls.setup_context is not torch.autograd.Function.setup_context
    if apart:  # it gets the defaults, too
        bound = inspect.signature(cls.forward).bind(*args, **kwargs)
        bound.apply_defaults()
        args, kwargs = bound.args, bound.kwargs
    context = _Context(
        tuple(isinstance(value, torch.Tensor) and value.requires_grad for value in args)
    )
    if not apart:
        return context, cls.forward(context, *args, **kwargs)
    output = cls.forward(*args, **kwargs)
    cls.setup_context(context, args, output)
    return context, output


def _look_backward(cls: Any, context: _Context, output: Any) -> None:
    outputs = output if isinstance(output, tuple) else (output,)
    gradients = [torch.empty_like(value) if isinstance(value, torch.Tensor) else None
                 for value in outputs]  # fmt: skip
    if cls.vjp is torch.autograd.Function.vjp:
        cls.backward(context, *gradients)
    else:
        cls.vjp(context, *gradients)


def _look_at(cls: Any, args: Any, kwargs: Any, backward: bool) -> None:
    before = torch.is_grad_enabled()
    private.set_grad_enabled(False)
    context, output = _look_forward(cls, args, kwargs)
    if backward and before and any(context.needs_input_grad):
        _look_backward(cls, context, output)
    private.set_grad_enabled(before)


def _apply_as(cls: Any, args: Any, kwargs: Any, backward: bool) -> Any:
    try:
        given = _is_given(args) and _is_given(tuple(kwargs.values()))
        if not given or getattr(cls, "boxed_grads_call", False):
            return _apply_for_real(cls, *args, **kwargs)
        _look_at(cls, args, kwargs, backward)
    except BaseException:  # torch's own is to be raised
        return _apply_for_real(cls, *args, **kwargs)
    return _applied(cls, *args, **kwargs)


def _apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return _apply_as(cls, args, kwargs, False)


def _apply_whole(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return _apply_as(cls, args, kwargs, True)


def _applied(cls: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError  # the table's; a trace that breaks in here breaks before `apply`


def _apply_for_real(cls: Any, *args: Any, **kwargs: Any) -> Any:
    return private.apply_of(cls)(*args, **kwargs)


def _applier(cls: Any) -> Any:
    """A function of no module of torch's: fx would look for it there, by its name."""
    bound = private.apply_of(cls)

    def apply(*args: Any, **kwargs: Any) -> Any:
        return bound(*args, **kwargs)

    return apply


_FUNCTIONS: tuple[tuple[Any, Row], ...] = (
    (private.function_apply, ("function", (_apply, _apply_whole))),
    (_applied, ("apply", _applier)),
    (_apply_for_real, ("refused", "an autograd.Function that raises, or gets more than values")),
)

# Without the warning that the first of them logs.


def _is_fx_tracing() -> bool:
    return private.fx_tracing()


def _is_fx_symbolic_tracing() -> bool:
    return False  # the other condition is that nothing is compiled


_FOR_REAL = (_set_requires_grad, _type_of, _new_of, _group_by_torch)
_INSTEAD: tuple[tuple[Any, Row], ...] = (
    (private.is_fx_tracing, ("instead", _is_fx_tracing)),
    (private.is_fx_symbolic_tracing, ("instead", _is_fx_symbolic_tracing)),
    (private.TensorBase.requires_grad_, ("instead", _requires_grad_)),
    (private.TensorBase.type, ("instead", _type)),
    (private.TensorBase.new, ("instead", _new)),
    (private.group_tensors, ("instead", _group_tensors)),
)

_SCALED: tuple[tuple[Any, Row], ...] = (
    (torch.addcdiv, ("scaled", (None, _addcdiv))),
    (torch.addcmul, ("scaled", (None, _addcmul))),
    *(
        (
            getattr(private.TensorBase, function.__name__[1:]),
            ("scaled", (function.__name__[1:], function)),
        )
        for function in (_addcdiv, _addcdiv_, _addcmul, _addcmul_)
    ),
)


# -- callables --


def _words(text: str) -> list[str]:
    return text.split()


# Functions of torch._C._VariableFunctions that are no tensor operations.
_NO_OPERATIONS = _words("""
    _functionalize _sync _enable_functional _disable_functional _to_functional _from_functional
    _is_functional _freeze_functional _mirror_autograd _propagate_xla from_file frombuffer
    from_numpy _cufft _use_cudnn sparse_ _sparse_ _nested _resize_output
    _make_dual _unpack_dual _fw_primal
""")

# Tensor methods that are not simply nodes.
_METHODS: dict[str, Row] = {
    "__iter__": ("iterate", None),
    "storage_offset": ("offset", "storage_offset"),
    "stride": ("stride", "stride"),
    "dim_order": ("stride", "dim_order"),
    "register_hook": ("hook", True),
    "register_post_accumulate_grad_hook": ("hook", "leaf"),
    "retain_grad": ("hook", False),
    "detach_": ("detach", "detach_"),
    **dict.fromkeys(
        ("data_ptr", "numpy", "tolist", "__array__", "__array_wrap__", "__dlpack__", "__contains__",
         "__dlpack_device__", "__format__", "__repr__", "__hash__", "__dir__", "const_data_ptr",
         "_use_count", "is_set_to", "_is_view", "is_shared", "is_pinned", "_version"),
        ("value", "a tensor's memory or value is asked for"),
    ),
    **dict.fromkeys(
        ("backward", "requires_grad_", "set_", "resize_", "resize", "resize_as_", "resize_as",
         "share_memory_", "pin_memory", "storage", "untyped_storage", "_typed_storage",
         "storage_type", "apply_", "map_", "map2_", "__deepcopy__", "__reduce_ex__",
         "_reduce_ex_internal", "__setstate__", "module_load", "reinforce", "as_subclass",
         "_make_subclass", "_fix_weakref", "record_stream", "_view_func", "_view_func_unsafe",
         "_rev_view_func_unsafe", "new", "type", "_clear_non_serializable_cached_data",
         "_dtensor__new__", "_make_wrapper_subclass", "rename", "rename_", "refine_names",
         "align_to", "align_as", "names", "has_names", "to_sparse", "to_sparse_coo",
         "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "to_mkldnn",
         "sparse_resize_", "sparse_resize_and_clear_", "__delitem__"),
        ("refused", "a tensor method that has effects beyond tensors"),
    ),
}  # fmt: skip

# Methods and functions that break with a reason of their own (src/report/reasons.def).
_METHOD_REASONS = {
    "numpy": "NUMPY",
    "__array__": "NUMPY",
    "tolist": "TOLIST",
    "backward": "BACKWARD",
    "__reduce_ex__": "SAVE",
}
_FUNCTION_REASONS = {
    "torch.autograd.backward": "BACKWARD",
    "torch.save": "SAVE",
    "torch.load": "SAVE",
    "torch.from_numpy": "NUMPY",
    **dict.fromkeys(
        ("torch.manual_seed", "torch.seed", "torch.random.manual_seed", "torch.set_rng_state",
         "torch.get_rng_state", "torch.random.set_rng_state", "torch.random.get_rng_state",
         "torch.initial_seed", "torch.random.seed"),
        "RANDOM_STATE",
    ),
}  # fmt: skip

# What becomes of a tensor's attributes that are getsets; others stop the trace.
_ATTRIBUTES: dict[str, Any] = {
    **dict.fromkeys(
        ("shape", "dtype", "device", "layout", "ndim", "itemsize", "nbytes",
         "is_cpu", "is_cuda", "is_ipu", "is_maia", "is_meta", "is_mkldnn", "is_mps", "is_mtia",
         "is_nested", "is_quantized", "is_sparse", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu",
         "_has_symbolic_sizes_strides", "names"),
        "fold",
    ),
    **dict.fromkeys(("T", "H", "mT", "mH", "real", "imag"), "node"),
    **dict.fromkeys(("grad", "_grad"), "grad"),
    **dict.fromkeys(("_version", "_cdata"), "value"),
    "requires_grad": "needs gradient",
    "is_leaf": "leaf",
    "grad_fn": "no history",
    "retains_grad": "no record",
    **private.attribute_calls,
}  # fmt: skip

# Asked for real, and asked again before each call: C functions without effect.
_ASKED = _words("""
    torch._C._get_cudnn_enabled torch._C._get_cudnn_benchmark torch._C._get_cudnn_deterministic
    torch._C._get_cudnn_allow_tf32 torch._C._get_mkldnn_enabled torch._C._get_nnpack_enabled
    torch._C._get_flash_sdp_enabled torch._C._get_mem_efficient_sdp_enabled
    torch._C._get_math_sdp_enabled torch._C._get_cudnn_sdp_enabled
    torch._C._get_overrideable_sdp_enabled torch._C._get_float32_matmul_precision
    torch._C._get_privateuse1_backend_name torch._C._are_functorch_transforms_active
    torch._C._get_tracing_state torch._C._is_tracing torch._C._is_torch_function_enabled
    torch._C._is_torch_function_all_disabled torch._C._is_torch_function_mode_enabled
    torch._C._is_fwd_grad_enabled
    torch._C._get_linalg_preferred_backend torch._C._get_blas_preferred_backend
    torch._C._len_torch_function_stack torch._C._len_torch_dispatch_stack
    torch._C._autograd._profiler_enabled torch._C._accelerator_getAccelerator
    torch._C._cuda_isInBadFork torch._C._cuda_getDeviceCount torch._C._get_qengine
    torch._C._get_deterministic_fill_uninitialized_memory torch._C._get_warnAlways
    torch._C._functorch.peek_interpreter_stack torch._C._functorch.maybe_current_level
    torch._C._functorch.get_dynamic_layer_stack_depth torch._C._is_multithreading_enabled
    torch._C._get_mkldnn_deterministic torch.is_anomaly_enabled
    torch.is_anomaly_check_nan_enabled torch.is_vulkan_available
    torch._C._is_default_mobile_cpu_allocator_set torch._C._has_mkldnn torch._C._get_accelerator
    torch._C._is_view_replay_enabled torch._C._get_sdp_priority_order
""")

# Asked for real; the guard of torch's state holds them.
_QUESTIONS = _words("""
    torch.is_grad_enabled torch.is_inference_mode_enabled torch.get_default_dtype
    torch.is_autocast_enabled torch.is_autocast_cpu_enabled torch.is_autocast_cache_enabled
    torch._C._is_any_autocast_enabled torch._C._is_autocast_available torch.get_num_threads
    torch._C._get_deterministic_algorithms torch._C._get_deterministic_algorithms_warn_only
    torch._C._get_cublas_allow_tf32 torch._C._get_cublas_allow_fp16_reduced_precision_reduction
    torch._C._get_cublas_allow_bf16_reduced_precision_reduction
    torch.finfo
""")  # the last one because of the default dtype

# Torch's guard holds these only while autocast is on: with the device, or None for the argument.
_AUTOCAST_DTYPES = {
    "torch.get_autocast_dtype": None,
    "torch.get_autocast_gpu_dtype": "cuda",
    "torch.get_autocast_cpu_dtype": "cpu",
}

# Functions of their arguments alone, which are plain values.
_PLAIN = _words("""
    torch.device torch.Size torch.iinfo torch.promote_types torch.can_cast
    torch._C._nn._parse_to
""")

_PLAIN_TYPES = (torch.Size, torch.dtype, torch.device, torch.finfo, torch.iinfo, torch.layout,
                torch.memory_format)  # fmt: skip

# So in a trace, which is none while another tracer of torch's is on.
_WHILE_TRACED: dict[str, Any] = {
    "torch.jit.is_tracing": False,
    "torch.onnx.is_in_onnx_export": False,
}

_CONSTANTS: dict[str, Any] = {
    "torch.jit.is_scripting": False,
    "torch._jit_internal.is_scripting": False,
    "torch._C._log_api_usage_once": None,
    "torch._C._log_api_usage_metadata": None,
    "torch._dynamo.mutation_guard.GenerationTracker.tag.__func__": None,  # stock Dynamo's own
}

# Answered otherwise than in eager.
_COMPILING = _words("""
    torch.compiler.is_compiling torch.compiler.is_dynamo_compiling
    torch._dynamo.external_utils.is_compiling torch._utils.is_compiling
    torch._dynamo.eval_frame._is_in_optimized_module
    torch.nn.modules.activation._is_make_fx_tracing
""")

_OVERRIDES = _words("""
    torch._C._has_torch_function torch._C._has_torch_function_unary
    torch._C._has_torch_function_variadic
""")

_SETTERS = ("torch._C._set_grad_enabled",)

# C functions that set something for all threads, and those that tell it.
_HELD_BACK = {row.setter: row.getter for row in _settings.SETTINGS if row.node}

# Known to change what a trace cannot hold back.
_STATE = _words("""
    torch.manual_seed torch.seed torch.random.manual_seed torch.set_rng_state torch.random.seed
    torch.initial_seed
    torch.get_rng_state torch.random.set_rng_state torch.random.get_rng_state
    torch.set_default_dtype torch._C._set_default_dtype torch.set_default_device
    torch.set_num_threads torch._C._set_deterministic_algorithms
    torch.use_deterministic_algorithms torch._C._set_cublas_allow_tf32
    torch._C._set_cudnn_enabled torch._C._set_cudnn_benchmark
    torch._C._set_float32_matmul_precision torch.set_autocast_enabled torch.set_autocast_dtype
    torch.set_autocast_cache_enabled torch.autocast_increment_nesting torch.clear_autocast_cache
    torch.autocast_decrement_nesting torch._C._InferenceMode
    torch._C._push_on_torch_function_stack torch._C._pop_torch_function_stack
    torch._C._set_multithreading_enabled
""")

# Python functions that do so, and their nodes. Those of objects that were entered before the trace
# run for real.
_INFERENCE: tuple[tuple[Any, Row], ...] = (
    (torch.inference_mode.__enter__, ("enter_inference", enter_inference)),
    (torch.inference_mode.__exit__, ("exit_inference", exit_inference)),
)

_REFUSED = _words("""
    torch.autograd.backward torch.Tensor torch._C.TensorBase
    torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pad_packed_sequence
    torch.from_numpy torch.frombuffer torch.from_dlpack torch.save torch.load
""")


def _builtins() -> Iterator[Any]:
    """Tensor operations that are C functions."""
    for namespace in private.operations:
        for name in dir(namespace):
            function = getattr(namespace, name)
            if callable(function) and not name.startswith(("__", *_NO_OPERATIONS)):
                yield function


# Modules whose Python functions Dynamo puts into graphs, overridable or not.
_WHOLE_MODULES = _words("""
    torch.functional torch.nn.functional torch.masked._ops torch.signal.windows.windows
    torch._lowrank torch._linalg_utils
""")


def _kept_whole() -> Iterator[Any]:
    """Python functions that Dynamo puts into graphs as they are."""
    for function in private.functions_kept_whole():
        if getattr(function, "__module__", None) in _WHOLE_MODULES:
            yield function
    for home, functions in torch.overrides.get_overridable_functions().items():
        if home is torch.Tensor:
            continue
        for function in functions:
            if private.is_kept_whole(function):
                yield function


_METHOD_TYPES = (MethodDescriptorType, WrapperDescriptorType)


def _tensor_methods() -> Iterator[tuple[Any, Row]]:
    for name in _METHODS:
        private.find(f"torch.Tensor.{name}")
    for base in (private.TensorBase, torch.Tensor):
        for name, method in vars(base).items():
            is_method = isinstance(method, _METHOD_TYPES) or hasattr(method, "__code__")
            if is_method:
                kind, extra = _METHODS.get(name, ("method", name))
                reason = _METHOD_REASONS.get(name)
                yield method, (kind, (reason, f"Tensor.{name}") if reason else extra)


def _listed() -> Iterator[tuple[Any, Row]]:
    lists: tuple[tuple[str, Any], ...] = (
        ("asked", _ASKED),
        ("question", _QUESTIONS),
        ("plain", _PLAIN),
        ("overrides", _OVERRIDES),
        ("setter", _SETTERS),
        ("state", _STATE),
        ("refused", _REFUSED),
    )
    for kind, paths in lists:
        for path in paths:
            found = private.find(path)
            if kind != "asked" or isinstance(found, BuiltinFunctionType):
                reason = _FUNCTION_REASONS.get(path)
                yield found, (kind, (reason, path) if reason else path)
    for path, question in _HELD_BACK.items():
        getter = private.find(question)
        yield private.find(path), ("setting", getter) if getter else ("state", path)
    questions = tuple(filter(None, map(private.find, _HELD_BACK.values())))
    yield private.attention, ("operation", questions)
    for path, device in _AUTOCAST_DTYPES.items():
        yield private.find(path), ("autocast_dtype", device)
    if private.fx_flag is not None:
        yield private.fx_tracing, ("asked", private.fx_flag)
    for path in _COMPILING:
        yield private.find(path), ("compiling", True)
    for path, value in _CONSTANTS.items():
        yield private.find(path), ("constant", value)
    for path, value in _WHILE_TRACED.items():
        yield private.find(path), ("while_traced", value)
    for plain in _PLAIN_TYPES:
        for name, method in vars(plain).items():
            if isinstance(method, MethodDescriptorType) and not name.startswith("__"):
                yield method, ("plain", name)
    yield torch.autograd.grad, ("derived", ("BACKWARD", "torch.autograd.grad"))
    yield private.RemovableHandle.remove, ("unhook", None)
    yield torch.nn.Module.__getattr__, ("module_get", None)
    yield torch.autocast.__enter__, ("enter_autocast", private.enter_autocast)
    yield torch.autocast.__exit__, ("exit_autocast", private.exit_autocast)
    yield from _INFERENCE
    yield from _RANGES
    yield from _SCALED
    yield from _INSTEAD
    yield from _FUNCTIONS
    for function in _FOR_REAL:
        yield function, ("refused", f"torch's {function.__code__.co_names[-1]}")
    yield _enter_range, ("state", "torch.profiler.record_function, and a profiler is on")
    yield _exit_range, ("state", "torch.profiler.record_function, entered before")


def rows() -> list[tuple[Any, Row]]:
    """Every callable of torch that the engine knows; the last row of a callable holds."""
    table: dict[int, tuple[Any, Row]] = {}
    for function in (*_builtins(), *_kept_whole()):
        table[id(function)] = function, ("operation", None)
    for function, row in (*_tensor_methods(), *_listed()):
        if function is not None:
            table[id(function)] = function, row
    return list(table.values())


def fields() -> list[Any]:
    """Fields of immutable types of torch's, which may be read at any time."""
    kinds = (GetSetDescriptorType, MemberDescriptorType)
    return [field for plain in _PLAIN_TYPES for field in vars(plain).values()
            if isinstance(field, kinds)]  # fmt: skip


def attributes() -> dict[str, tuple[Any, Any]]:
    found = {}
    for name, how in _ATTRIBUTES.items():
        descriptor = private.find(f"torch.Tensor.{name}")
        if descriptor is not None:
            found[name] = descriptor, how
    return found


# -- attaching --

_BINARY = _words("""
    add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor iadd iand ifloordiv
    ilshift imatmul imul imod ior ipow irshift isub itruediv ixor
""")  # in the order of BINARY_OP's argument
_COMPARE = _words("lt le eq ne gt ge")


def _samples() -> list[tuple[torch.Tensor, tuple[Any, ...]]]:
    """Tensors of many kinds, each with what reading its memory must give."""
    base = torch.zeros(4, 6)
    tensors = [
        base,
        base[1:, ::2],
        base.t(),
        torch.zeros(()),
        torch.zeros(2, 1, 3, 1, 2, 1, 2, dtype=torch.int64),
        torch.zeros(3, dtype=torch.complex64).conj(),
        torch.zeros(3, dtype=torch.bfloat16, requires_grad=True),
        torch.zeros(3, dtype=torch.bool, device="meta"),
        torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.float64)),
    ]
    return [(tensor, _seen(tensor)) for tensor in tensors]


def _seen(tensor: torch.Tensor) -> tuple[Any, ...]:
    index = tensor.device.index
    storage = tensor.untyped_storage()
    begin = storage.data_ptr()
    return (
        key_bits(tensor),
        tuple(tensor.shape),
        tensor.stride(),
        _DTYPES[tensor.dtype],
        _DEVICES[tensor.device.type],
        -1 if index is None else index,
        int(tensor.requires_grad),
        tensor.storage_offset(),
        (private.storage_of(tensor), begin, begin + storage.nbytes() if begin else 0),
    )


# c10::ScalarType and c10::DeviceType, as far as samples go.
_DTYPES = {
    torch.float32: 6,
    torch.int64: 4,
    torch.complex64: 9,
    torch.bfloat16: 15,
    torch.bool: 11,
    torch.float64: 7,
}
_DEVICES = {"cpu": 0, "meta": 14}


def _dtypes() -> list[tuple[torch.dtype, int]]:
    """Those that rules know."""
    names = _words("""uint8 int8 int16 int32 int64 float16 float32 float64 - complex64 complex128
                      bool - - - bfloat16""")
    return [(getattr(torch, name), i) for i, name in enumerate(names) if name != "-"]


def _bits(*names: str) -> int:
    keys = (private.DispatchKeySet(getattr(private.DispatchKey, name)) for name in names)
    return functools.reduce(operator.or_, (key.raw_repr() for key in keys))


# What guards say of a tensor, besides dtype, device and sizes, by its dispatch keys.
_KEY_WORDS = (
    ("Sparse", "sparse"),
    ("SparseCsr", "sparse compressed"),
    ("NestedTensor", "nested"),
    ("Quantized", "quantized"),
    ("Conjugate", "conj"),
    ("Negative", "neg"),
)


def _device_words() -> list[tuple[torch.device, str]]:
    """Kinds of devices that this torch knows, each with its name."""
    found = []
    for name in _words("cpu cuda xla mps xpu hpu meta ipu mtia maia lazy vulkan privateuseone"):
        with contextlib.suppress(RuntimeError):
            found.append((torch.device(name), name))
    return found


_C_CALLABLES = (BuiltinFunctionType, MethodDescriptorType)


def _rules() -> list[tuple[Any, str]]:
    """Callables, each with the name of the rule that knows its result."""
    found = []
    homes = private.rule_homes
    for name in _engine.torch_rules():
        places = [private.find(f"torch.{name}")] if "." in name else [
            callable for home in homes
            if isinstance(callable := getattr(home, name, None), _C_CALLABLES)
        ]  # fmt: skip
        if name in (*_BINARY, *_COMPARE, "neg", "abs", "getitem"):
            places.append(getattr(operator, name))
        if not places:
            private.missing(f"torch.{name}")
        found += [(callable, name) for callable in places if callable is not None]
    return found


def settings() -> dict[str, Any]:
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
    functions = (make_mode, is_known, witness, is_written, fake_of, fake_like, hooked,
                 forget_writes, were_written, note_shared, are_shared, run, refusal,
                 takes_gradient, key_bits, state_refusal, save_state, state_keeper,
                 state_switches, autocast_now, autocast_dtype_in, leave_autocast,
                 return_to_autocast, _exit_autocast, enter_inference, exit_inference,
                 leave_inference)  # fmt: skip
    for function in functions:
        _engine.skip_code(function.__code__)  # never compiled themselves
    glue: dict[str, Any] = {function.__name__: function for function in functions}
    for helper in (_autocast_state, _set_autocast, *(function for function, _ in _INFERENCE)):
        _engine.skip_code(helper.__code__)
    glue["dispatch_modes"] = private.len_dispatch_stack
    glue["pop_dispatch_mode"] = private.pop_dispatch_stack
    glue["grad_mode_file"] = private.grad_mode_file
    glue["mode_at"] = private.function_mode_at
    glue["DeviceContext"] = private.DeviceContext
    glue["constructors"] = set(private.device_constructors())
    glue["device_name"] = sys.intern("device")
    glue["get_autocast_dtype"] = torch.get_autocast_dtype
    glue["enter_dual_level"] = private.enter_dual_level
    glue["exit_dual_level"] = private.exit_dual_level
    glue["top_saved_hooks"] = private.top_saved_tensors_hooks
    glue["is_grad_enabled"] = torch.is_grad_enabled
    glue["assert_async"] = private.assert_async
    glue["enter_autocast"] = private.enter_autocast
    glue["exit_autocast"] = private.exit_autocast
    glue["unary"] = {
        "neg": operator.neg,
        "pos": operator.pos,
        "invert": operator.invert,
        "abs": operator.abs,
        "not_": operator.not_,
    }
    return {
        "TensorBase": private.TensorBase,
        "Tensor": torch.Tensor,
        "Parameter": torch.nn.Parameter,
        "Buffer": torch.nn.Buffer,
        "FakeTensor": private.FakeTensor,
        "Size": torch.Size,
        "dtype": torch.dtype,
        "device": torch.device,
        "layout": torch.layout,
        "memory_format": torch.memory_format,
        "OpOverload": private.OpOverload,
        "OpOverloadPacket": private.OpOverloadPacket,
        "RemovableHandle": private.RemovableHandle,
        "set_grad_enabled": private.set_grad_enabled,
        "increment_nesting": torch.autocast_increment_nesting,
        "decrement_nesting": torch.autocast_decrement_nesting,
        "clear_autocast_cache": torch.clear_autocast_cache,
        "module_call": private.module_call,
        "fields": fields(),
        "glue": glue,
        "data_dependent": private.data_dependent,
        "attributes": attributes(),
        "getitem": operator.getitem,
        "setitem": operator.setitem,
        "getattr": getattr,
        "GlobalStateGuard": private.GlobalStateGuard,
        "pybind_class": private.sdp_backend,
        "libc10": os.path.join(library, "libc10.so"),
        "libtorch_cpu": os.path.join(library, "libtorch_cpu.so"),
        "samples": _samples(),
        "check": _versions.check,
        "get_default_dtype": torch.get_default_dtype,
        "copying": _DROPOUTS,
        "dtypes": _dtypes(),
        "devices": [
            (torch.device("cpu"), 0, -1),
            (torch.device("cuda", 3), 1, 3),
            (torch.device("meta"), 14, -1),
        ],
        "odd_keys": _bits("Conjugate", "Negative", "ZeroTensor"),
        "usual_keys": _bits("ADInplaceOrView"),
        "dense_keys": _bits("Dense"),
        "device_words": _device_words(),
        "key_words": [(_bits(name), word) for name, word in _KEY_WORDS],
        "rules": _rules(),
        "rows": rows(),
        "binary": [getattr(operator, name) for name in _BINARY],
        "compare": [getattr(operator, name) for name in _COMPARE],
    }


def _libraries() -> tuple[str, ...]:
    """Where code lies that is nobody's to compile by itself: torch's, the library's, ours."""
    homes = [os.path.dirname(module.__file__) + os.sep
             for module in (torch, sys.modules.get("numpy"), sys.modules["stator"])
             if module is not None and module.__file__]  # fmt: skip
    standard = sysconfig.get_path("stdlib")
    inner = [os.path.join(standard, name) for name in sorted(os.listdir(standard))]
    return ("<frozen ", *homes, *(path for path in inner if not path.endswith("-packages")))


def attach() -> None:
    """Makes torch known to the engine; from then on tensors are traced."""
    if not _engine.torch_attached():
        with _versions.usual_state():
            _engine.torch_attach(settings())
        _policy.other_tracer = other_tracer
        _engine.set_library(_libraries())
