"""Makes torch known to the engine: all that `src/torch` asks for when it is attached."""

import contextlib
import functools
import operator
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import torch

from stator import (
    _bodies,
    _callables,
    _dims,
    _engine,
    _fakes,
    _flex,
    _function,
    _function_bodies,
    _gradients,
    _groups,
    _higher,
    _higher_fakes,
    _higher_flow,
    _higher_wrap,
    _instead,
    _levels,
    _marks,
    _nonstrict,
    _overrides,
    _policy,
    _state,
    _symbolic,
    _undo,
    _versions,
)
from stator._rows import words
from stator._versions import private

# -- tensors of many kinds, by which the engine's reads of their memory are verified --


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
        torch.zeros(3, requires_grad=True).requires_grad_(False),
        *_with_history(),
    ]
    return [(tensor, _seen(tensor)) for tensor in tensors]


def _with_history() -> list[torch.Tensor]:
    """A result that autograd knows, and a view of a leaf."""
    with torch.enable_grad():
        leaf = torch.zeros(2, 3, requires_grad=True)
        return [leaf + 1, leaf[0]]


def _seen(tensor: torch.Tensor) -> tuple[Any, ...]:
    index = tensor.device.index
    storage = tensor.untyped_storage()
    begin = storage.data_ptr()
    return (
        _fakes.key_bits(tensor),
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
    names = words("""uint8 int8 int16 int32 int64 float16 float32 float64 - complex64 complex128
                      bool - - - bfloat16""")
    return [(getattr(torch, name), i) for i, name in enumerate(names) if name != "-"]


def _bits(*names: str) -> int:
    keys = (private.DispatchKeySet(getattr(private.DispatchKey, name)) for name in names)
    return functools.reduce(operator.or_, (key.raw_repr() for key in keys))


def _inference_keys() -> tuple[int, ...]:
    """The dispatch keys by which a thread in inference mode differs from others."""
    usual = [keys().raw_repr() for keys in private.local_keys]
    with torch.inference_mode():
        return tuple(
            keys().raw_repr() ^ was for keys, was in zip(private.local_keys, usual, strict=True)
        )


# What guards say of a tensor, besides dtype, device and sizes, by its dispatch keys.
_KEY_WORDS = (
    ("Sparse", "sparse"),
    ("SparseCsr", "sparse compressed"),
    ("NestedTensor", "nested"),
    ("Quantized", "quantized"),
    ("Conjugate", "conj"),
    ("Negative", "neg"),
)


_DEVICE_NAMES = "cpu cuda xla mps xpu hpu meta ipu mtia maia lazy vulkan privateuseone"


def _device_words() -> list[tuple[torch.device, str]]:
    """Kinds of devices that this torch knows, each with its name."""
    found = []
    for name in _DEVICE_NAMES.split():
        with contextlib.suppress(RuntimeError):
            found.append((torch.device(name), name))
    return found


# -- what is attached --


def _arrays_table() -> dict[str, Any]:
    """Asked once the program has met an array: nothing here imports numpy before."""
    from stator import _array_rows

    return _array_rows.table()


def _glue() -> dict[str, Any]:
    """What the engine calls or compares with, by name."""
    functions = (
        *_bodies.GLUE,
        *_dims.GLUE,
        *_fakes.GLUE,
        *_function.GLUE,
        *_gradients.GLUE,
        *_groups.GLUE,
        *_higher_fakes.GLUE,
        *_levels.GLUE,
        *_nonstrict.GLUE,
        *_overrides.GLUE,
        *_state.GLUE,
        *_symbolic.GLUE,
        _callables.by_schema,
        _undo.witness,
    )
    for function in (*functions, *_gradients.HELPERS, *_levels.HELPERS, *_state.HELPERS):
        _engine.skip_code(function.__code__)  # never compiled themselves
    return {
        **{function.__name__: function for function in functions},
        "Settle": _fakes.Settle,
        "nonstrict": _nonstrict.begin,
        "arrays": _arrays_table,
        "len": len,
        "handle_torch_function": private.handle_function,
        "own_files": tuple(
            m.OWN_FILE
            for m in (
                _function,
                _function_bodies,
                _higher,
                _higher_flow,
                _higher_wrap,
                _flex,
                _gradients,
                _nonstrict,
            )
        ),
        "dispatch_modes": private.len_dispatch_stack,
        "pop_dispatch_mode": private.pop_dispatch_stack,
        "grad_mode_file": private.grad_mode_file,
        "transforms_home": private.transforms_home,
        "mode_at": private.function_mode_at,
        "DeviceContext": private.DeviceContext,
        "index": _flex.index,
        "index_as_mode": _flex.index_as_mode,
        "constructors": set(private.device_constructors()),
        "made": _higher.made,
        "fx_traceback": private.fx_traceback,
        "views": _callables.views(),
        "getitem": operator.getitem,
        "unlike_fakes": _callables.unlike_fakes(),
        "device_name": sys.intern("device"),
        "get_autocast_dtype": torch.get_autocast_dtype,
        "record_hook": _higher_wrap.HOOK,
        "differentiable": {d for d, _ in _dtypes() if d.is_floating_point or d.is_complex},
        "id_name": sys.intern("id"),
        "enter_autocast": private.enter_autocast,
        "exit_autocast": private.exit_autocast,
        "enter_dual_level": private.enter_dual_level,
        "exit_dual_level": private.exit_dual_level,
        "top_saved_hooks": private.top_saved_tensors_hooks,
        "is_grad_enabled": torch.is_grad_enabled,
        "assert_async": private.assert_async,
        "assert_scalar": private.assert_scalar,
        "sym_size": private.sym_size,
        "sym_ite": private.sym_ite,
        "state_nodes": _state.NODES,
        "hook_dicts": private.hook_dicts,
        "hook_codes": private.hook_codes,
        "numbers": private.number_functions(),
        "unary": {
            "neg": operator.neg,
            "pos": operator.pos,
            "invert": operator.invert,
            "abs": operator.abs,
            "not_": operator.not_,
        },
    }


# The engine keeps these dicts, and looks into them by name.
_known_glue: dict[str, Any] = {}
_attributes: dict[str, Any] = {}
_known_callables: set[int] = set()  # of which the engine has rows, and which it keeps


def _give_rows(give: Callable[[list[tuple[Any, str, Any]]], None]) -> None:
    """Gives the engine the rows that it does not have."""
    found = [row for row in _callables.rows() if id(row[0]) not in _known_callables]
    give(found)
    _known_callables.update(id(row[0]) for row in found)


_parts: tuple[bool, ...] = ()


def _look_again() -> None:
    global _parts
    _parts = private.later_modules()
    _attributes.update(_callables.attributes())
    if private.has(private.DYNAMO):
        _known_glue["IndexMode"] = private.IndexMode


_adding = threading.Lock()


def add_later() -> None:
    """Tells the engine about parts of torch that were imported since it was last told."""
    if private.later_modules() == _parts:
        return
    with _adding:
        if private.later_modules() != _parts:
            _look_again()
            _give_rows(_engine.torch_add)


def settings() -> dict[str, Any]:
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
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
        "operator_homes": private.OpNamespaces,
        "RemovableHandle": private.RemovableHandle,
        "DisableTorchFunctionSubclass": private.DisableTorchFunction,
        "DisableTorchFunction": private.DisableAllFunctions,
        "disabled_torch_function": private.disabled_function,
        "alias": private.alias,
        "as_subclass": private.TensorBase.as_subclass,
        "detach": private.TensorBase.detach,
        "Module": torch.nn.Module,
        "set_grad_enabled": private.set_grad_enabled,
        "increment_nesting": torch.autocast_increment_nesting,
        "skips_one_hop": private.skips_one_hop,
        "decrement_nesting": torch.autocast_decrement_nesting,
        "clear_autocast_cache": torch.clear_autocast_cache,
        "module_call": private.module_call,
        "region_call": _instead.call_region.__code__,
        "fields": _callables.fields(),
        "glue": _known_glue,
        "data_dependent": private.data_dependent,
        "attributes": _attributes,
        "getitem": operator.getitem,
        "setitem": operator.setitem,
        "select": torch.select,
        "unbind": torch.unbind,
        "getattr": getattr,
        "GlobalStateGuard": private.GlobalStateGuard,
        "pybind_class": private.sdp_backend,
        "libc10": os.path.join(library, "libc10.so"),
        "libtorch_cpu": os.path.join(library, "libtorch_cpu.so"),
        "samples": _samples(),
        "check": _versions.check,
        "get_default_dtype": torch.get_default_dtype,
        "get_flash_enabled": private.get_flash_enabled,
        "copying": _fakes.DROPOUTS | _levels.COPYING,
        "dtypes": _dtypes(),
        "devices": [
            (torch.device("cpu"), 0, -1),
            (torch.device("cuda", 3), 1, 3),
            (torch.device("meta"), 14, -1),
        ],
        "odd_keys": _bits("Conjugate", "Negative", "ZeroTensor"),
        "usual_keys": _bits("ADInplaceOrView"),
        "dense_keys": _bits("Dense"),
        "autocast_keys": _bits(*(key for key in dir(private.DispatchKey) if "Autocast" in key)),
        "inference_keys": _inference_keys(),
        # all that come before kernels, and behind what fakes are made by; keys are in order
        "wrapping_keys": -_bits("FuncTorchDynamicLayerBackMode"),
        "python_keys": _bits("Python"),
        "level_keys": _bits("FuncTorchBatched", "FuncTorchGradWrapper"),
        "device_words": _device_words(),
        "key_words": [(_bits(name), word) for name, word in _KEY_WORDS],
        "rules": _callables.rules(),
        "binary": [getattr(operator, name) for name in _callables.BINARY],
        "compare": [getattr(operator, name) for name in _callables.COMPARE],
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
    """Makes torch known to the engine; from then on tensors are traced.

    Torch imports torch._dynamo and sympy when somebody asks, which takes a second. So does Stator:
    their functions have rows once they are there, and fakes, which need them, are checked when the
    first one is made."""
    if not _engine.torch_attached():
        if private.is_set_by_environment():
            private.import_all()
        with _versions.usual_state():
            _known_glue.update(_glue())
            _look_again()
            _give_rows(lambda rows: _engine.torch_attach({**settings(), "rows": rows}))
            _engine.torch_trust_quick_state(_versions.quick_state_is_right())
            _engine.torch_trust_flags(_versions.flags_are_right())
        _policy.other_tracer = _state.other_tracer
        _marks.add_later = add_later
        _engine.set_library(_libraries())
