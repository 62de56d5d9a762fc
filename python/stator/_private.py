"""All that Stator takes from torch and that is not public, and all that differs between versions.

No other file of this package names a private part of torch, but `_private_shapes.py` and
`_private_dynamo.py`, whose names are found here, too: these files are imported when somebody asks.
(The tables of `_rows.py` and `_settings.py` list torch's callables as texts, which `find` looks up
here.) Differences are found by looking at torch, not at its version. What is missing without a
default here is an ImportError or an AttributeError, which `_versions` turns into a message about
versions that work.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import inspect
import logging
import math
import operator
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.fx.traceback
import torch.overrides
import torch.utils._python_dispatch
from torch import _TorchCompileInductorWrapper, _TorchCompileWrapper
from torch._C import DispatchKey as DispatchKey
from torch._C import DispatchKeySet as DispatchKeySet
from torch._C import TensorBase as TensorBase
from torch._C._dynamo.guards import GlobalStateGuard as GlobalStateGuard
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import CompileContext as CompileContext
from torch._guards import CompileId as CompileId
from torch._guards import GuardSource as GuardSource
from torch._guards import GuardsSet as GuardsSet
from torch._guards import Source as Source
from torch._guards import TracingContext as TracingContext
from torch._guards import compile_context as compile_context
from torch._guards import tracing as tracing
from torch._higher_order_ops import utils as higher_utils
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph_placeholder
from torch._library.custom_ops import OPDEFS
from torch._library.custom_ops import CustomOpDef as CustomOpDef
from torch._logging._internal import getArtifactLogger as getArtifactLogger
from torch._ops import OpOverload as OpOverload
from torch._ops import OpOverloadPacket as OpOverloadPacket
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch._subclasses.fake_tensor import FakeTensor as FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode as FakeTensorMode
from torch._subclasses.fake_tensor import (
    UnsupportedFakeTensorException as UnsupportedFakeTensorException,
)
from torch._subclasses.meta_utils import safe_grad
from torch.fx import _lazy_graph_module as _lazy
from torch.fx import _symbolic_trace as fx_trace
from torch.fx._lazy_graph_module import _LazyGraphModule, _make_graph_module
from torch.fx._symbolic_trace import is_fx_symbolic_tracing as is_fx_symbolic_tracing
from torch.fx._symbolic_trace import is_fx_tracing as is_fx_tracing
from torch.nn.modules import module as _module
from torch.utils._device import DeviceContext as DeviceContext
from torch.utils._device import _device_constructors
from torch.utils.hooks import RemovableHandle as RemovableHandle

if TYPE_CHECKING:
    from stator._private_dynamo import *  # noqa: F403
    from stator._private_shapes import *  # noqa: F403
    from stator._private_shapes import ShapeEnv

log = logging.getLogger("stator.torch")

_C: Any = torch._C

# -- what takes long to import --

_LATER_FILES = ("_private_shapes", "_private_dynamo")


def __getattr__(name: str) -> Any:
    """Names of the files that are imported when somebody asks."""
    for file in _LATER_FILES if not name.startswith("__") else ():
        home = _import_later(file)
        if hasattr(home, name):
            return globals().setdefault(name, getattr(home, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_python_import = builtins.__import__


@contextlib.contextmanager
def _unnoticed() -> Iterator[None]:
    """What is imported in the middle of a program shows no warnings there, and the function that a
    program may have put in the place of `__import__` does not see it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, builtins.__import__ = builtins.__import__, _python_import
        try:
            yield
        finally:
            builtins.__import__ = theirs


def _import_later(file: str) -> Any:
    try:
        with _unnoticed():
            return importlib.import_module(f"stator.{file}")
    except (ImportError, AttributeError) as error:
        from stator._versions import Unusable

        raise Unusable(error) from error


def import_all() -> None:
    for file in _LATER_FILES:
        _import_later(file)


DYNAMO = "torch._dynamo"
EVAL_FRAME, WRAPPER = "torch._dynamo.eval_frame", "OptimizedModule"  # a module and its class
SHAPES = "torch.fx.experimental.symbolic_shapes"
FLEX = "torch.nn.attention.flex_attention"
DTENSOR = "torch.distributed.tensor"
_LATER_MODULES = (DYNAMO, SHAPES, FLEX, DTENSOR, "torch.onnx", "torch._inductor")


def has(module: str) -> bool:
    """Whether the program, or torch itself, has imported a module that torch does not import from
    the start."""
    return module in sys.modules


def later_modules() -> tuple[bool, ...]:
    """Which of them are there."""
    return tuple(has(module) for module in _LATER_MODULES)


# What variables begin with that torch._dynamo.config reads when it is imported.
_SETTINGS = ("TORCHDYNAMO_", "TORCH_DYNAMO_", "TORCH_COMPILE")


def is_set_by_environment() -> bool:
    """Whether variables of the environment say something to torch._dynamo."""
    return any(name.startswith(_SETTINGS) for name in os.environ)


_HOME = os.path.join(os.path.dirname(torch.__file__), "")
_LAYERS = os.path.join(_HOME, "nn", "modules", "")  # torch._dynamo skips each `forward` of these


def is_called_whole(forward: Any) -> bool:
    """Whether torch._dynamo compiles a call around a module with this `forward`, instead of
    `forward`. Nothing is imported to ask that of the modules that people write: torch._dynamo says
    yes for those of a few other libraries, whose inputs then have other names."""
    method = isinstance(forward, types.MethodType)
    file = getattr(getattr(forward, "__code__", None), "co_filename", _HOME) if method else ""
    early = not has(DYNAMO) and (file.startswith(_LAYERS) or not file.startswith(_HOME))
    if early:
        return file.startswith(_LAYERS)
    dynamo = _import_later("_private_dynamo")
    return bool(dynamo.config.wrap_top_frame or (method and dynamo.is_skipped(forward)))


# -- looking up by name --


def find(path: str) -> Any:
    """The object at a dotted path ("torch.…"), or None, with a line in the log. No module is
    imported for it, which torch's own `__getattr__` would do."""
    first, *names = path.split(".")[1:]
    found: Any = vars(torch).get(first)
    for name in names:
        found = getattr(found, name, None)
    if found is None:
        missing(path)
    return found


def missing(path: str) -> None:
    """A row of a table is not for this torch, or its name is wrong."""
    log.debug("torch %s has no %s: the row of Stator's tables is unused", torch.__version__, path)


def get(path: str) -> Any:
    """The object at a dotted path; an AttributeError that names it where there is none."""
    found: Any = torch
    for name in path.split(".")[1:]:
        if not hasattr(found, name):
            raise AttributeError(f"torch has no {path}")
        found = getattr(found, name)
    return found


# -- state --

set_grad_enabled = get("torch._C._set_grad_enabled")
InferenceMode = get("torch._C._InferenceMode")
enter_autocast = get("torch.amp.autocast_mode._enter_autocast")
exit_autocast = get("torch.amp.autocast_mode._exit_autocast")
invoke_subgraph = get("torch.ops.higher_order.invoke_subgraph")
profiler_enabled = get("torch._C._autograd._profiler_enabled")
get_tracing_state = get("torch._C._get_tracing_state")
len_dispatch_stack = get("torch._C._len_torch_dispatch_stack")
pop_dispatch_stack = get("torch._C._pop_torch_dispatch_stack")
function_mode_at = get("torch._C._get_function_stack_at")
len_function_stack = get("torch._C._len_torch_function_stack")
peek_interpreter_stack = get("torch._C._functorch.peek_interpreter_stack")
top_saved_tensors_hooks = get("torch._C._autograd._top_saved_tensors_default_hooks")
enter_dual_level = get("torch._C._enter_dual_level")
exit_dual_level = get("torch._C._exit_dual_level")
level_depth = get("torch._C._functorch.get_dynamic_layer_stack_depth")
maybe_get_level = get("torch._C._functorch.maybe_get_level")
leave_level = {
    get(f"torch._C._functorch.TransformType.{name}"): get(
        f"torch._C._functorch._{name.lower()}_decrement_nesting"
    )
    for name in ("Vmap", "Grad", "Jvp")
}
saved_hooks_message = get("torch._C._autograd._saved_tensors_hooks_get_disabled_error_message")
disable_saved_hooks = get("torch._C._autograd._saved_tensors_hooks_disable")
enable_saved_hooks = get("torch._C._autograd._saved_tensors_hooks_enable")
inplace_requires_grad_allowed = get("torch._C._functorch.get_inplace_requires_grad_allowed")
allow_inplace_requires_grad = get("torch._C._functorch.set_inplace_requires_grad_allowed")
fwd_grad_enabled = get("torch._C._is_fwd_grad_enabled")
set_fwd_grad_enabled = get("torch._C._set_fwd_grad_enabled")
set_tensor_requires_grad = get("torch._functorch.eager_transforms._set_tensor_requires_grad")
transforms_home = os.path.dirname(get("torch._functorch.__file__")) + os.sep
fx_traceback = torch.fx.traceback
without_levels = get("torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack")
dispatch_mode_of = get("torch._C._get_dispatch_mode")
tracing_modes: tuple[Any, ...] = tuple(_C._TorchDispatchModeKey.__members__.values())
local_keys = (
    get("torch._C._dispatch_tls_local_include_set"),
    get("torch._C._dispatch_tls_local_exclude_set"),
)
push_function_mode = get("torch._C._push_on_torch_function_stack")
pop_function_mode = get("torch._C._pop_torch_function_stack")
no_dispatch_modes = get("torch.utils._python_dispatch._disable_current_modes")
pop_saved_tensors_hooks = get("torch._C._autograd._pop_saved_tensors_default_hooks")
deterministic = get("torch._C._get_deterministic_algorithms")
deterministic_warns = get("torch._C._get_deterministic_algorithms_warn_only")
set_deterministic = get("torch._C._set_deterministic_algorithms")
is_mobile_allocator = get("torch._C._is_default_mobile_cpu_allocator_set")
set_mobile_allocator = get("torch._C._set_default_mobile_cpu_allocator")
unset_mobile_allocator = get("torch._C._unset_default_mobile_cpu_allocator")
PreserveDispatchKeys = get("torch._C._PreserveDispatchKeyGuard")
EnableTorchFunction = get("torch._C._EnableTorchFunction")
DisableTorchFunction = get("torch._C.DisableTorchFunctionSubclass")
DisableAllFunctions = get("torch._C.DisableTorchFunction")
function_modes_enabled = get("torch._C._is_torch_function_mode_enabled")
functions_enabled = get("torch._C._is_torch_function_enabled")
functions_all_disabled = get("torch._C._is_torch_function_all_disabled")
disabled_function = get("torch._C._disabled_torch_function_impl")
skip_one_hop = find("torch._C._skip_one_hop_torch_function")  # since 2.13
skips_one_hop = find("torch._C._peek_should_skip_torch_function")
handle_function = get("torch.overrides.handle_torch_function")
make_subclass = get("torch.Tensor._make_subclass")
convert = get("torch._tensor._convert")
alias = get("torch.ops.aten.alias.default")
get_flash_enabled = get("torch._C._get_flash_sdp_enabled")
device_constructors = _device_constructors
grad_mode_file = torch.no_grad.__enter__.__code__.co_filename
sdp_backend: Any = _C._SDPBackend  # a class of pybind11's


# A context in which a hook is called with each new node of autograd; since 2.14.
node_creation_hook: Any = getattr(torch.autograd.graph, "node_creation_hook", None)


def _fx_flag() -> bool:
    return fx_trace._is_fx_tracing_flag


# Whether torch.fx traces, without the warning that `is_fx_tracing` logs. Since 2.15 each thread has
# a flag of its own, which can be asked for without Python code.
fx_tracing: Callable[[], bool] = getattr(fx_trace, "_get_is_fx_tracing", _fx_flag)
fx_flag: Any = None
if fx_tracing is not _fx_flag:
    fx_flag = functools.partial(
        getattr, get("torch.fx._symbolic_trace._is_fx_tracing_tls"), "flag", False
    )
    fx_flag.__name__ = fx_tracing.__name__  # for the texts of guards
fx_tracing()  # else an error that says what is missing


def forward_ad_level() -> int:
    return torch.autograd.forward_ad._current_level


def set_forward_ad_level(level: int) -> None:
    torch.autograd.forward_ad._current_level = level


def default_device() -> tuple[Any, Any]:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return context, torch.utils._device.CURRENT_DEVICE


def set_default_device(state: tuple[Any, Any]) -> None:
    torch._GLOBAL_DEVICE_CONTEXT.device_context, torch.utils._device.CURRENT_DEVICE = state


# -- tensors --

dispatch_keys = get("torch._C._dispatch_keys")
is_functorch_wrapped = get("torch._C._functorch.is_functorch_wrapped_tensor")
check = get("torch._check")
check_is_size = get("torch._check_is_size")
assert_scalar = get("torch.ops.aten._assert_scalar.default")
sym_ite = get("torch.sym_ite")


def tensor_of(data: Any, **options: Any) -> Any:
    """torch.tensor, of numbers that a ShapeEnv knows too."""
    make: Any = torch._refs.tensor  # imported when it is needed
    return make(data, **options)


sym_size = get("torch.ops.aten.sym_size.int")
assert_async = get("torch._assert_async")
group_tensors = find("torch._C._group_tensors_by_device_and_dtype")
foreach_mul = get("torch._foreach_mul")
foreach_addcdiv, foreach_addcdiv_ = get("torch._foreach_addcdiv"), get("torch._foreach_addcdiv_")
foreach_addcmul, foreach_addcmul_ = get("torch._foreach_addcmul"), get("torch._foreach_addcmul_")
module_call = get("torch.nn.Module._call_impl").__code__
module_globals: dict[str, Any] = vars(_module)


def _hook_codes() -> set[Any]:
    """The code of torch's that calls the hooks of modules. It does nothing with the numbers that
    hooks have but ask whether another dict has them."""
    methods = ("_call_impl", "_wrapped_call_impl", "_get_backward_hooks", "_get_backward_pre_hooks")
    codes = [getattr(torch.nn.Module, name).__code__ for name in methods]
    return {*codes, *(part for part in module_call.co_consts if inspect.iscode(part))}


# The dicts that a module keeps its hooks in.
hook_dicts = {name for name in vars(torch.nn.Module()) if "_hooks" in name}
hook_codes = _hook_codes()
has_global_hook: Callable[[], bool] = _module._has_any_global_hook


def global_hook_names() -> tuple[str, ...]:
    """The dicts that `has_global_hook` looks at."""
    return _module._has_any_global_hook.__code__.co_names


ScriptModule = get("torch.jit._script.RecursiveScriptModule")
# None where torch's own tests are imported, which put a function of theirs in its place.
call_script = getattr(get("torch._C.ScriptFunction.__call__"), "__func__", None)


def has_names(tensor: torch.Tensor) -> bool:
    """Whether dimensions have names, which versions before 2.13 can give them."""
    asked: Any = getattr(tensor, "has_names", None)
    return asked is not None and bool(asked())


def is_view(tensor: torch.Tensor) -> bool:
    """Whether autograd knows it for a view of another one."""
    return tensor._is_view()


def storage_of(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def is_composite(tensor: torch.Tensor) -> bool:
    """Whether its class has __torch_dispatch__, and says which tensors it holds."""
    return bool(torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor))


def is_jagged(tensor: torch.Tensor) -> bool:
    """Whether one of its sizes differs from row to row: a symbol that stands for its offsets."""
    return type(tensor).__module__ == _JAGGED_HOME and tensor.layout is torch.jagged


_JAGGED_HOME = "torch.nested._internal.nested_tensor"
JAGGED_NAMES = ("_ragged_idx", "_size", "_strides", "_values", "_offsets", "_lengths",
                "_metadata_cache")  # fmt: skip


def has_own_sizes(tensor: torch.Tensor) -> bool:
    """Whether its class is asked for its sizes, or these are symbols."""
    return bool(tensor._has_symbolic_sizes_strides) or tensor.layout is not torch.strided


def flex_parts() -> tuple[Any, Any, Any]:
    """flex_attention, the operator, and the mask that masks nothing."""
    home = "torch.nn.attention.flex_attention"
    operator = get("torch.ops.higher_order.flex_attention")
    return get(f"{home}.flex_attention"), operator, get(f"{home}.noop_mask")


def questions_of_groups() -> dict[str, Any]:
    """C functions that tell what a process group is, by path; it stays so."""
    home = "torch.distributed.ProcessGroup"
    group = torch.distributed.ProcessGroup
    found = {}
    for name in ("rank", "size", "name"):
        method = getattr(group, name, None)
        # Some versions of pybind11 give the descriptor, others the C function within.
        within = ".__func__" if hasattr(method, "__func__") else ""
        found[f"{home}.{name}{within}"] = getattr(method, "__func__", method)
    for name in ("group_name", "group_desc"):
        found[f"{home}.{name}.fget"] = getattr(vars(group).get(name), "fget", None)
    return {path: function for path, function in found.items() if function is not None}


def placements() -> list[type]:
    """Classes of values; those of C++'s are equal where they mean the same."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    return [Shard, Replicate, Partial]


def functions_of_meshes() -> list[Any]:
    from torch.distributed.tensor import DTensor

    return [DTensor.redistribute, DTensor.full_tensor, DTensor.to_local, DTensor.from_local]


def held_manner(o: Any) -> str | frozenset[str] | None:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor._dtensor_spec import DTensorSpec

    if type(o) in placements():
        compare: Any = type(o).__eq__
        by_c = compare is not object.__eq__ and not inspect.isfunction(compare)
        return "equal" if by_c else "same"
    if isinstance(o, DeviceMesh):
        return "same"
    return frozenset({"_hash"}) if type(o) is DTensorSpec else None


resolve_process_group = (
    find("torch._C._distributed_c10d._resolve_process_group")
    if torch.distributed.is_available()
    else None
)


# Where C functions are that make tensors, by what they are called in texts.
operations = {
    path: (home, get(home))
    for path, home in (
        ("torch", "torch._C._VariableFunctions"),
        ("torch._C._nn", "torch._C._nn"),
        ("torch._C._linalg", "torch._C._linalg"),
        ("torch._C._fft", "torch._C._fft"),
        ("torch._C._special", "torch._C._special"),
    )
}
rule_homes = (_C._VariableFunctions, _C._nn, TensorBase)
attention = _C._nn.scaled_dot_product_attention

# Attributes of tensors that Dynamo records as a call of something: name → what is called.
attribute_calls: dict[str, Any] = {
    "data": get("torch._C._autograd._get_data_attr"),
}


# -- schemas --

_schemas_of = get("torch._C._jit_get_schemas_for_operator")
_is_operator = get("torch._C._dispatch_has_kernel")

# What the arguments and results of operators are made of; nothing that a node could not hold.
_KNOWN_TYPES = frozenset(
    {"TensorType", "IntType", "BoolType", "FloatType", "NumberType", "StringType", "ComplexType",
     "DeviceObjType", "GeneratorType"}
)  # fmt: skip


def schemas(name: str) -> list[Any]:
    """Of the operator of torch's own of that name. (Others are functions of TorchScript's.)"""
    found = _schemas_of(f"aten::{name}")
    return [schema for schema in found
            if _is_operator(f"{schema.name}.{schema.overload_name}".rstrip("."))]  # fmt: skip


def _kind(type: Any) -> str:
    while type.kind() in ("ListType", "OptionalType"):
        type = type.getElementType()
    return str(type.kind())


def tells_all(schema: Any) -> bool:
    """Whether an operator is known by its schema: it gives tensors, or writes to its arguments."""
    kinds = {_kind(value.type) for value in (*schema.arguments, *schema.returns)}
    gives = any(_kind(value.type) == "TensorType" for value in schema.returns)
    return kinds <= _KNOWN_TYPES and (gives or schema.is_mutable)


# -- fakes --

data_dependent = (DataDependentOutputException, DynamicOutputShapeException)
no_fake_errors = (
    *data_dependent,
    get("torch._subclasses.fake_tensor.UnsupportedFakeTensorException"),
    get("torch._subclasses.fake_tensor.UnsupportedOperatorException"),
)
# What an operation raises on fakes that cannot tell its result; or on any tensors.
fake_errors = (*data_dependent, RuntimeError, NotImplementedError, TypeError, ValueError)
fake_log = logging.getLogger("torch._subclasses.fake_tensor")

# `export`: a fake of a tensor without dimensions does not remember the tensor's value. (Since 2.14
# it would; and a ShapeEnv would make a symbol of it, which backends may fix the value of.)
_FORGETFUL: dict[str, Any] = {"export": True}


def is_fresh_number(made: Any) -> bool:
    """Whether it is a symbol, or for a bool whether a symbol is 1."""
    expr = made.node.expr
    truth = isinstance(made, torch.SymBool)
    return bool(expr.args and expr.args[0].is_Symbol and expr.args[1] == 1
                if truth else expr.is_Symbol)  # fmt: skip


def forgetful_mode(**settings: Any) -> FakeTensorMode:
    """A mode whose fakes know nothing of the values of the tensors they are made of."""
    return FakeTensorMode(**settings, **_FORGETFUL)


class ForgetfulMode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """The same, as a class. Without a ShapeEnv sizes are plain numbers."""

    def __init__(self, shape_env: ShapeEnv | None = None) -> None:
        super().__init__(shape_env=shape_env, static_shapes=shape_env is None, **_FORGETFUL)
        if self.propagate_real_tensors:  # a setting of torch's: each fake has a tensor with values
            self.propagate_real_tensors = False
            converter = type(self.fake_tensor_converter)
            self.fake_tensor_converter = converter(copy_data=False, **_FORGETFUL)


return_types = frozenset(
    kind for kind in vars(torch.return_types).values() if isinstance(kind, type)
)


def is_sequence_type(kind: type) -> bool:
    """Of what operations give that give several tensors."""
    return kind in (tuple, list) or kind in return_types


# -- autograd.Function --

# A classmethod of Python's, or (since 2.14) one of C's, whose descriptor is the table's key.
_apply: Any = inspect.getattr_static(torch.autograd.Function, "apply")
function_apply = getattr(_apply, "__func__", _apply)


def apply_of(cls: Any) -> Any:
    """torch's own `apply` of a class, which may have another."""
    return _apply.__get__(None, cls)


# -- record_function --

# What an instance has, besides the attributes that Stator sets itself: where a profiler notes a
# number, under a name that changes. None if there is more, or less, than Stator knows.
_ranged = vars(torch.profiler.record_function(""))
_noted = {name: value for name, value in _ranged.items()
          if name not in ("name", "args", "run_callbacks_on_exit", "record")}  # fmt: skip
_known = len(_ranged) == len(_noted) + 4 and all(value is None for value in _noted.values())
range_notes: tuple[str, ...] | None = tuple(_noted) if _known else None

# -- graphs and backends --

make_graph_module = _make_graph_module


def make_lazy_graph_module(root: Any, graph: Any, class_name: str) -> torch.fx.GraphModule:
    """One that writes its code when somebody asks for it, if torch's settings allow that. Torch's
    own context for it sets a flag of the whole process, which two threads would leave on."""
    lazy = sys.modules[DYNAMO].config.use_lazy_graph_module
    wanted = lazy and not _lazy._force_skip_lazy_graph_module_flag
    kind = _LazyGraphModule if wanted else torch.fx.GraphModule
    return kind(root, graph, class_name=class_name)


def with_code(compiled: Any) -> Callable[..., Any]:
    """What to call in place of a module that has not written its code, or of its `forward`: a first
    call would replace this by another function."""
    module: Any = compiled if isinstance(compiled, _LazyGraphModule) else None
    if getattr(compiled, "__func__", None) is _LazyGraphModule._lazy_forward:
        module = compiled.__self__
    if module is None:
        return compiled  # type: ignore[no-any-return]
    _LazyGraphModule.force_recompile(module)
    return module if module is compiled else module.forward  # type: ignore[no-any-return]


compile_wrappers: tuple[Any, Any] = (_TorchCompileInductorWrapper, _TorchCompileWrapper)
_aoti_wrapper = find("torch._TorchCompileAOTInductorWrapper")


def backend_with(
    backend: Any, mode: str | None, options: Any, dynamic: bool | None, name: str | None, aoti: bool
) -> Any:
    """As torch.compile makes it. What is wrong with the mode or the options is an error here."""
    if backend != "inductor":
        return compile_wrappers[1](backend, mode, options, dynamic)
    kind: Any = _aoti_wrapper if aoti else _TorchCompileInductorWrapper
    if kind is None:
        raise NotImplementedError("this version of torch has no option use_aoti")
    named = "name" in inspect.signature(kind).parameters
    if name is not None and not named:
        raise NotImplementedError("torch.compile has no parameter name in this version of torch")
    return kind(mode, options, dynamic, name) if named else kind(mode, options, dynamic)


def compile_session() -> contextlib.AbstractContextManager[Any]:
    """In which torch.compiler.is_compiling() is true."""
    make = getattr(torch.compiler, "_compile_session_context", contextlib.nullcontext)
    return make()


def is_source_method(name: str) -> bool:
    """Whether it is a method of a Source; in newer versions it is a property."""
    return callable(inspect.getattr_static(Source, name))


def source_name(source: Source) -> str:
    name: Any = source.name
    return str(name() if callable(name) else name)


# -- numbers that differ from call to call --

sym_sqrt = get("torch._sym_sqrt")
# Functions of math by name, as torch has them for symbols; where it has none, of plain floats.
math_functions: dict[str, Any] = {
    name: getattr(torch, f"_sym_{name}", getattr(math, name))
    for name in (
        "acos", "asin", "atan", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2",
        "sin", "sinh", "tan", "tanh",
    )
}  # fmt: skip


def is_known_zero(number: Any) -> bool:
    """Whether torch has found that a symbolic int is 0, whatever its symbols are."""
    return isinstance(number, torch.SymInt) and number.node.expr == 0


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor._base if tensor._is_view() else None


def is_view_of_plain(tensor: torch.Tensor) -> bool:
    """Whether autograd knows it for a view of a tensor that is not jagged."""
    base = base_of(tensor)
    return base is not None and not is_jagged(base)


def gradient_of(tensor: torch.Tensor) -> torch.Tensor | None:
    return safe_grad(tensor)  # a tensor that is no leaf warns when it is asked


def overlap_sources(guard: Any) -> list[Source]:
    """The inputs that a guard of AOTAutograd's is about."""
    return [
        source
        for name in ("overlapping_sources", "non_overlapping_sources")
        for source in getattr(guard, name)
    ]


def backward_at_once() -> contextlib.AbstractContextManager[Any]:
    """In which backends compile a backward pass with its forward pass, not when it first runs."""
    from torch._functorch import config as functorch_config

    patched: Any = functorch_config.patch(force_non_lazy_backward_lowering=True)
    return patched  # type: ignore[no-any-return]


# In which operations made of others are taken apart in Python, where sizes may be symbols. (In C++
# some take them for plain numbers.)
decomposing = enable_python_dispatcher


@contextlib.contextmanager
def remembering(mode: FakeTensorMode) -> Iterator[None]:
    """In which a fake of a tensor without dimensions gets a symbol for the tensor's value."""
    converter = mode.fake_tensor_converter
    before, converter.export = converter.export, False
    try:
        yield
    finally:
        converter.export = before


def number_functions() -> dict[str, Any]:
    """What computes with numbers that are inputs of a graph, by the names of src/graph/numbers.def,
    as stock graphs have it."""
    names = (
        "add sub mul floordiv mod truediv pow lshift rshift xor eq ne lt le gt ge neg abs invert"
    )
    return {
        **{name: getattr(operator, name) for name in names.split()},
        "and": operator.and_,
        "or": operator.or_,
        "not": operator.not_,
        "min": torch.sym_min,
        "max": torch.sym_max,
        "int": torch.sym_int,
        "float": torch.sym_float,
        "bool": bool,
        "floor": math.floor,
        "ceil": math.ceil,
        "round": round,
        "sqrt": sym_sqrt,
        **math_functions,
    }


# -- operations with kernels in Python --

# torch.ops, and what is found there by a namespace's name.
OpNamespaces: tuple[Any, ...] = (type(torch.ops), type(torch.ops.aten))


def definition_of(op: Any) -> Any:
    """What `torch.library.custom_op` made for an operation, or None."""
    return OPDEFS.get(op._schema.name)


def is_compliant(operation: Any) -> bool:
    """Whether an overload, or each one of a packet, has the tag."""
    if isinstance(operation, OpOverloadPacket):
        return all(is_compliant(getattr(operation, name)) for name in overloads_of(operation))
    return torch.Tag.pt2_compliant_tag in operation.tags


def live_transform() -> str | None:
    """The function transform that is on now, by name; None: none is."""
    level = peek_interpreter_stack()
    return None if level is None else str(level.key().name).lower()


def overloads_of(packet: Any) -> list[str]:
    return list(packet.overloads())


def functions_of(definition: Any) -> tuple[list[Any], list[Any], Any]:
    """The kernels, the functions that autograd calls with a context, and the one for fakes."""
    formulas = [f for f in (definition._setup_context_fn, definition._backward_fn) if f]
    kernels = [definition._init_fn, *definition._backend_fns.values()]
    return kernels, formulas, definition._abstract_fn


def python_keys(op: Any) -> list[str]:
    """The dispatch keys whose kernels were registered from Python, but for those of fakes."""
    namespace, _, name = op.name().partition("::")
    start = f"{namespace}/{name}/"
    found = (key[len(start) :] for key in torch.library._impls if key.startswith(start))
    return [key for key in found if key != "Meta"]


# Keys that stand for several, each with one of them.
_ONE_OF = {"": "CPU", "CompositeImplicitAutograd": "CPU", "CompositeExplicitAutograd": "CPU",
           "CompositeExplicitAutogradNonFunctional": "CPU", "Autograd": "AutogradCPU"}  # fmt: skip
_kernel = find("torch._C._dispatch_get_computed_kernel_for_dispatch_key")


# Kernels of these keys run on fakes as well: what they call is what has a fake.
KEYS_OF_FAKES = frozenset({"", "CompositeImplicitAutograd", "Autograd", "AutogradCPU"})


def kernel_of(op: Any, key: str) -> Any:
    """What calls the kernel of a key with plain arguments; None if there is no telling."""
    one = _ONE_OF.get(key, key)
    if _kernel is None or (one != key and _C._dispatch_has_kernel_for_dispatch_key(op.name(), one)):
        return None
    keys = DispatchKeySet(getattr(DispatchKey, one))
    return functools.partial(_kernel(op.name(), one).call_boxed, keys)


# -- distributions --

lazy_property = get("torch.distributions.utils.lazy_property")
lazy_property_of_class = get("torch.distributions.utils._lazy_property_and_property")
all_true = find("torch.distributions.distribution._all_true_or_runtime_assert")  # since 2.15
is_all_true = get("torch._is_all_true")
CONSTANT_MARK = "_dynamo_marked_constant"  # what torch.compiler.assume_constant_result sets

# -- operators with bodies --

tag_checkpoint = get("torch.ops.higher_order.tag_activation_checkpoint")
no_context = get("torch.utils.checkpoint.noop_context_fn")
tree_flatten = get("torch.utils._pytree.tree_flatten")
tree_unflatten = get("torch.utils._pytree.tree_unflatten")
tree_map = get("torch.utils._pytree.tree_map")
TreeSpec = get("torch.utils._pytree.TreeSpec")
ConstantNode = find("torch.utils._pytree.ConstantNode")
_is_constant = find("torch.utils._pytree.is_constant_class") or (lambda cls: False)
_opaque = find("torch._library.opaque_object")
reparametrize = get("torch.nn.utils.stateless._reparametrize_module")


def constant_manner(cls: type) -> str | None:
    """What the program has registered a class as: "value", if equal objects may stand for each
    other, "reference", if nobody looks into them; or None."""
    if _is_constant(cls) or (_opaque is not None and _opaque.is_opaque_value_type(cls)):
        return "value"
    return "reference" if _opaque is not None and _opaque.is_opaque_type(cls) else None


@contextlib.contextmanager
def real_tensors_allowed() -> Iterator[None]:
    """Fakes may meet real tensors, which are constants then. Versions before 2.13 cannot say so."""
    known = find("torch._subclasses.fake_tensor.fake_tensor_tls")
    before = getattr(known, "allow_non_fake_inputs_override", None)
    if known is not None:
        known.allow_non_fake_inputs_override = True
    try:
        yield
    finally:
        if known is not None:
            known.allow_non_fake_inputs_override = before


cond_op = get("torch.ops.higher_order.cond")
while_loop = get("torch._higher_order_ops.while_loop")
while_loop_op = get("torch.ops.higher_order.while_loop")
map = get("torch._higher_order_ops.map")
map_op = get("torch.ops.higher_order.map_impl")
scan = get("torch._higher_order_ops.scan")
scan_op = get("torch.ops.higher_order.scan")
wrap = get("torch.ops.higher_order.wrap")
wrap_with_set_grad_enabled = get("torch.ops.higher_order.wrap_with_set_grad_enabled")
wrap_with_autocast = get("torch.ops.higher_order.wrap_with_autocast")
strict_mode = get("torch._higher_order_ops.strict_mode")
strict_mode_op = get("torch.ops.higher_order.strict_mode")
hints_wrapper = get("torch.ops.higher_order.hints_wrapper")
associative_scan = get("torch._higher_order_ops.associative_scan")
associative_scan_op = get("torch.ops.higher_order.associative_scan")
with contextlib.suppress(ImportError):  # since 2.13; torch imports it when it is first used
    importlib.import_module("torch._higher_order_ops.register_hook")
register_hook_op = find("torch.ops.higher_order.register_hook")
HigherOrderOperator = get("torch._ops.HigherOrderOperator")
# Before 2.12 torch's operator for autograd.Function took its arguments in another form.
_function_operator = find("torch.ops.higher_order.autograd_function_apply")
FunctionNode = get("torch.autograd.function.BackwardCFunction")
function_operator: Any = (
    _function_operator
    if _function_operator is not None
    and "saved_for_backward_idx" in type(_function_operator).__call__.__code__.co_consts
    else None
)
call_region: Callable[..., Any] = invoke_subgraph_placeholder
_fake_functions: Any = getattr(higher_utils, "registered_hop_fake_fns", {})


def fake_of_operator(
    operator: Any, dispatch: Callable[..., Any], mode: Any, args: Any, kwargs: Any
) -> Any:
    """What an operator with bodies gives on fakes: torch has a function for it, which fake modes
    look for; or, in older versions, one for the class of modes."""
    if operator in _fake_functions:
        return dispatch(operator, (), args, kwargs)
    return operator.python_key_table[FakeTensorMode](mode, *args, **kwargs)


# -- logs, traces and metrics of compiles --

trace_log = get("torch._logging._internal.trace_log")
trace_structured = get("torch._logging.trace_structured")
structured_stack = get("torch._logging.structured.from_traceback")
Guard = get("torch._guards.Guard")


def copied(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A module of its own with the same operations; what nodes say is copied, too."""
    graph = torch.fx.Graph()
    output = graph.graph_copy(module.graph, {})
    graph.output(output)
    return torch.fx.GraphModule(module, graph, class_name="GraphModule")


# What a node of torch.fx keeps when another is made of it.
KEPT_META: tuple[str, ...] = ("stack_trace", *get("torch.fx.proxy._COPY_META_FIELDS"))


def lines_of(module: torch.fx.GraphModule) -> dict[int, int | None] | None:
    """The node of each line of its code, counted from the first line of `forward`."""
    return getattr(module, "_lineno_map", None)


def settings_text() -> str:
    """The settings of the compilers that are not as by default, as Python."""
    homes = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
    return "".join(f"{text}\n" for home in homes if (text := get(home).codegen_config().strip()))


def hint(number: Any) -> Any:
    """This call's value of a symbol; whatever else it is, as it is."""
    symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return number.node.hint if isinstance(number, symbols) else number


def run_on_fakes(module: torch.fx.GraphModule, inputs: list[Any]) -> None:
    """Gives each node of a graph an example of its value. What torch decides about symbolic sizes
    meanwhile is forgotten."""
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    class Prop(FakeTensorProp):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            n.meta.setdefault("example_value", value)
            return value

    mode = next((each.fake_mode for each in inputs if isinstance(each, FakeTensor)), None)
    env = None if mode is None else mode.shape_env
    with contextlib.ExitStack() as stack:
        if env is not None:
            stack.enter_context(env.suppress_guards())
            stack.enter_context(env.ignore_fresh_unbacked_symbols())
        Prop(module, mode).propagate_dont_convert_inputs(*inputs)


# Whether a mode of the program's own sees each operation: torch's Dynamo compiles nothing then.
is_watched: Callable[[], bool] = find(
    "torch.utils._python_dispatch.any_torch_dispatch_mode_on_stack"
) or (lambda: False)

# Whether an operator with bodies (torch.cond and its like) compiles itself, perhaps on fakes and
# under modes. Versions before 2.13 do not tell.
compiles_itself: Callable[[], bool] = find("torch._higher_order_ops.utils._in_hop_compile") or (
    lambda: False
)

# The functions that such operators give to the compiler, and how torch's errors name the operators.
# With gradients on, torch refuses bodies of these that change something outside.
operator_names = {
    "_cond_op_wrapper": "torch.cond",
    "_while_loop_op_wrapper": "torch.while_loop",
    "run_flattened_map": "torch.ops.higher_order.map_impl",
    "run_flattened_scan": "torch.ops.higher_order.scan",
}

# What such an operator compiles itself by. Nothing in it is the program's.
compiles_operator: Any = find("torch._higher_order_ops.utils._hop_compile_and_call")


# What inductor raises the recursion limit to, for good (compile_fx).
INDUCTOR_RECURSION = 2000


def inductor_keeps_calls(options: dict[str, Any]) -> bool:
    """Whether inductor is set to record calls of kernels, or to write C++ that makes them: then it
    does not take graphs that call bodies."""
    settings = get("torch._inductor.config")
    names = ("cpp_wrapper", "triton.cudagraphs")
    return any(options.get(name, settings.get_config_copy()[name]) for name in names)
