"""All that Stator takes from torch and that is not public, and all that differs between versions.

No other file of this package names a private part of torch. (The tables of `_rows.py` and
`_settings.py` list torch's callables as texts, which `find` looks up here.) Differences are found
by looking at torch, not at its version. What is missing without a default here is an ImportError or
an AttributeError, which `_versions` turns into a message about versions that work.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import math
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
import torch._dynamo  # before any table: importing it replaces some of torch's functions
import torch.fx
import torch.fx.traceback
import torch.nn.attention.flex_attention  # torch itself imports it only when somebody asks
import torch.overrides
import torch.utils._python_dispatch
from torch import _TorchCompileInductorWrapper, _TorchCompileWrapper
from torch._C import DispatchKey as DispatchKey
from torch._C import DispatchKeySet as DispatchKeySet
from torch._C import TensorBase as TensorBase
from torch._C._dynamo.guards import GlobalStateGuard as GlobalStateGuard
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo import config as config
from torch._dynamo import decorators, eval_frame, external_utils, trace_rules
from torch._dynamo import exc as exc
from torch._dynamo import utils as dynamo_utils
from torch._dynamo.callback import CallbackTrigger as CallbackTrigger
from torch._dynamo.callback import callback_handler as callback_handler
from torch._dynamo.convert_frame import compile_lock as compile_lock
from torch._dynamo.decorators import mark_static as mark_static
from torch._dynamo.eval_frame import OptimizedModule as OptimizedModule
from torch._dynamo.eval_frame import cached_backends as cached_backends
from torch._dynamo.eval_frame import check_if_dynamo_supported as check_if_dynamo_supported
from torch._dynamo.eval_frame import get_compiler_fn as get_compiler_fn
from torch._dynamo.eval_frame import innermost_fn as innermost_fn
from torch._dynamo.output_graph import GraphCompileReason as GraphCompileReason
from torch._dynamo.source import AttrSource as AttrSource
from torch._dynamo.source import FloatTensorSource as FloatTensorSource
from torch._dynamo.source import LocalSource as LocalSource
from torch._dynamo.source import TensorProperty as TensorProperty
from torch._dynamo.source import TensorPropertySource as TensorPropertySource
from torch._dynamo.symbolic_convert import TensorifyState as TensorifyState
from torch._dynamo.types import GuardFail as GuardFail
from torch._dynamo.variables import PolyfilledFunctionVariable
from torch._functorch import config as functorch_config
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
from torch.fx import _symbolic_trace as fx_trace
from torch.fx._lazy_graph_module import _make_graph_module
from torch.fx._symbolic_trace import is_fx_symbolic_tracing as is_fx_symbolic_tracing
from torch.fx._symbolic_trace import is_fx_tracing as is_fx_tracing
from torch.fx.experimental.symbolic_shapes import (
    ConstraintViolationError as ConstraintViolationError,
)
from torch.fx.experimental.symbolic_shapes import DimDynamic as DimDynamic
from torch.fx.experimental.symbolic_shapes import ShapeEnv as ShapeEnv
from torch.fx.experimental.symbolic_shapes import StatefulSymbolicContext as StatefulSymbolicContext
from torch.fx.experimental.symbolic_shapes import (
    compute_unbacked_bindings as compute_unbacked_bindings,
)
from torch.fx.experimental.symbolic_shapes import guard_size_oblivious as guard_size_oblivious
from torch.nn.modules import module as _module
from torch.utils._device import DeviceContext as DeviceContext
from torch.utils._device import _device_constructors
from torch.utils._sympy.symbol import SymT, symbol_is_type
from torch.utils.hooks import RemovableHandle as RemovableHandle

log = logging.getLogger("stator.torch")

_C: Any = torch._C

# -- looking up by name --


def find(path: str) -> Any:
    """The object at a dotted path ("torch.…"), or None, with a line in the log."""
    found: Any = torch
    for name in path.split(".")[1:]:
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
expect_true = find("torch.fx.experimental.symbolic_shapes.expect_true")
guard_or_false = find("torch.fx.experimental.symbolic_shapes.guard_or_false")
guard_or_true = find("torch.fx.experimental.symbolic_shapes.guard_or_true")
statically_known_true = find("torch.fx.experimental.symbolic_shapes.statically_known_true")
check = get("torch._check")
check_is_size = get("torch._check_is_size")
assert_scalar = get("torch.ops.aten._assert_scalar.default")
sym_ite = get("torch.sym_ite")
sym_size = get("torch.ops.aten.sym_size.int")
assert_async = get("torch._assert_async")
group_tensors = find("torch._C._group_tensors_by_device_and_dtype")
module_call = get("torch.nn.Module._call_impl").__code__
module_globals: dict[str, Any] = vars(_module)
has_global_hook: Callable[[], bool] = _module._has_any_global_hook
# In which the hooks for all modules leave a wrapper alone; older versions do not ask.
in_optimized_module: Callable[[], contextlib.AbstractContextManager[Any]] = getattr(
    eval_frame, "_set_in_optimized_module", contextlib.nullcontext
)
wrap_inline = external_utils.wrap_inline
is_skipped: Callable[[Any], bool] = trace_rules.check
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


def has_own_sizes(tensor: torch.Tensor) -> bool:
    """Whether its class is asked for its sizes, or these are symbols."""
    return bool(tensor._has_symbolic_sizes_strides) or tensor.layout is not torch.strided


def questions_of_groups() -> dict[str, Any]:
    """C functions that tell what a process group is, by path; it stays so."""
    home = "torch.distributed.ProcessGroup"
    group = torch.distributed.ProcessGroup
    found = {f"{home}.{name}": getattr(group, name, None) for name in ("rank", "size", "name")}
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


def split_module() -> Any:
    """The DistributedDataParallel that runs its module now, if its graphs are split; or None."""
    if not torch.distributed.is_available():
        return None
    parallel: Any = torch.nn.parallel.DistributedDataParallel
    module = parallel._get_active_ddp_module()
    split = module is not None and dynamo_utils.get_optimize_ddp_mode() == "ddp_optimizer"
    return module if split else None


def split_by_buckets(backend: Callable[..., Any]) -> Callable[..., Any]:
    """The backend, or torch's optimizer around it, which gives the backend one graph for each
    bucket of gradients."""
    module = split_module()
    if module is None:
        return backend
    from torch._dynamo.backends.distributed import DDPOptimizer

    most = module.bucket_bytes_cap
    first = min(most, get("torch.distributed._DEFAULT_FIRST_BUCKET_BYTES"))
    return DDPOptimizer(most, backend, first).compile_fn


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
    **getattr(torch._dynamo.variables.tensor, "_VIEW_ATTR_TO_ATEN_OP", {}),  # views, since 2.15
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
WrapperBackend = get("torch._dynamo.output_graph.WrapperBackend")
# What an operation raises on fakes that cannot tell its result; or on any tensors.
fake_errors = (*data_dependent, RuntimeError, NotImplementedError, TypeError, ValueError)
fake_log = logging.getLogger("torch._subclasses.fake_tensor")

# `export`: a fake of a tensor without dimensions does not remember the tensor's value. (Since 2.14
# it would; and a ShapeEnv would make a symbol of it, which backends may fix the value of.)
_FORGETFUL: dict[str, Any] = {"export": True}


def is_unbacked_symbol(found: Any) -> bool:
    return symbol_is_type(found, (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT))


def is_fresh_number(made: Any) -> bool:
    """Whether it is a symbol, or for a bool whether a symbol is 1."""
    expr = made.node.expr
    truth = isinstance(made, torch.SymBool)
    return bool(expr.args and expr.args[0].is_Symbol and expr.args[1] == 1
                if truth else expr.is_Symbol)  # fmt: skip


def shape_env(scalars: bool, shapes: bool) -> ShapeEnv:
    """Whether the numbers of tensors, and sizes that depend on values, are symbols in it."""
    return ShapeEnv(
        tracked_fakes=[], allow_scalar_outputs=scalars, allow_dynamic_output_shape_ops=shapes
    )


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
backend_names: Callable[[], list[str]] = functools.partial(torch._dynamo.list_backends, ())
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


def default_backend() -> Any:
    """What torch.compiler.set_default_backend has set."""
    get_default = find("torch._dynamo.backends.registry.get_default_backend")
    return "inductor" if get_default is None else get_default()


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
sympy_eq: Callable[[Any, Any], Any] = sympy.Eq


def to_sympy(number: Any) -> Any:
    """The expression of a SymInt, or a plain number as one."""
    return number.node.expr if isinstance(number, torch.SymInt) else sympy.Integer(number)


def is_known_zero(number: Any) -> bool:
    """Whether torch has found that a symbolic int is 0, whatever its symbols are."""
    return isinstance(number, torch.SymInt) and number.node.expr == 0


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    return tensor._base if tensor._is_view() else None


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
    patched: Any = functorch_config.patch(force_non_lazy_backward_lowering=True)
    return patched  # type: ignore[no-any-return]


# In which operations made of others are taken apart in Python, where sizes may be symbols. (In C++
# some take them for plain numbers.)
decomposing = enable_python_dispatcher


def forced_floats() -> set[str]:
    """The symbols of floats that a backend could not take, by name: it asks for another trace."""
    return set(TensorifyState.force_specializations)


def take_forced_floats() -> set[str]:
    found = forced_floats()
    TensorifyState.clear()
    return found


def put_forced_floats(names: set[str]) -> None:
    TensorifyState.clear()
    for name in names:
        TensorifyState.specialize(name)


@contextlib.contextmanager
def remembering(mode: FakeTensorMode) -> Iterator[None]:
    """In which a fake of a tensor without dimensions gets a symbol for the tensor's value."""
    converter = mode.fake_tensor_converter
    before, converter.export = converter.export, False
    try:
        yield
    finally:
        converter.export = before


# -- marks --

allowed_ids: Callable[[], set[int]] = trace_rules._allowed_callable_ids
disallowed_ids: Callable[[], set[int]] = trace_rules._disallowed_callable_ids
substituted_ids: Callable[[], set[int]] = trace_rules._polyfilled_function_ids
optimize = torch._dynamo.optimize
disable = torch._dynamo.disable
allow_in_graph = torch._dynamo.allow_in_graph
skip_wrapper = decorators._nonrecursive_disable_wrapper_code
disable_wrapper = eval_frame.DisableContext()(lambda: None).__code__
strict_breaks = vars(dynamo_utils), "_error_on_graph_break"
get_strict_breaks = dynamo_utils._get_error_on_graph_break
set_strict_breaks = dynamo_utils._set_error_on_graph_break


def logging_functions() -> tuple[Any, Any]:
    """Those whose calls are left out, and those whose calls may come late."""
    name = "ignore_logging_functions"
    if not hasattr(config, name):
        name = "ignore_logger_methods"  # before 2.13
    return getattr(config, name), config.reorderable_logging_functions


def substitute(function: Any) -> Any:
    """What `torch.compiler.substitute_in_graph` was given for a function, by others than torch."""
    wrapped = PolyfilledFunctionVariable._get_polyfill_handlers().get(function)
    found = getattr(wrapped, "__torch_dynamo_polyfill__", None)
    return None if getattr(found, "__module__", "torch.").startswith("torch.") else found


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


# -- operators with bodies --

tag_checkpoint = get("torch.ops.higher_order.tag_activation_checkpoint")
no_context = get("torch.utils.checkpoint.noop_context_fn")
tree_flatten = get("torch.utils._pytree.tree_flatten")
tree_unflatten = get("torch.utils._pytree.tree_unflatten")
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
HigherOrderOperator = get("torch._ops.HigherOrderOperator")
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


flex_attention = get("torch.nn.attention.flex_attention.flex_attention")
flex_operator = get("torch.ops.higher_order.flex_attention")
flex_no_mask = get("torch.nn.attention.flex_attention.noop_mask")
IndexMode = get("torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex")

# -- logs, traces and metrics of compiles --

trace_log = get("torch._logging._internal.trace_log")
trace_structured = get("torch._logging.trace_structured")
structured_stack = get("torch._logging.structured.from_traceback")
compilation_time_metrics: dict[str, list[float]] = dynamo_utils.compilation_time_metrics
known_metrics: Callable[[], Any] = lambda: dynamo_utils._compilation_metrics  # noqa: E731
_Metrics = dynamo_utils.CompilationMetrics
_metric_names = frozenset(_Metrics.__dataclass_fields__)
_plain_metrics = all(hasattr(_Metrics, name) for name in _metric_names)
_chromium_events = find("torch._dynamo.utils.get_chromium_event_logger")
_metrics_context = find("torch._dynamo.utils.get_metrics_context")
setup_debug_folder = dynamo_utils.setup_compile_debug
debug_folder: Callable[[], str] = dynamo_utils.get_debug_dir
_bytecode_hooks = find("torch._dynamo.convert_frame._bytecode_hooks")


def bytecode_hooks() -> Any:
    return _bytecode_hooks


Guard = get("torch._guards.Guard")


def guards_of(rows: list[tuple[str, str | None, int]]) -> Any:
    """The guards of an entry as torch's objects: each says in words what must hold. They are for
    reading, none of them can be built."""

    def no_builder(number: int, builder: Any, guard: Any) -> None:
        raise NotImplementedError("guards of Stator are checked in C, and cannot be built anew")

    made = GuardsSet()
    for i, (text, _, _) in enumerate(rows):
        guard = Guard(LocalSource(text), functools.partial(no_builder, i))
        guard.code_list = [text]
        made.add(guard, skip=0)
    return made


def make_metrics(metrics: dict[str, Any]) -> Any:
    """torch's record of a compile, of what this version knows."""
    known = {key: value for key, value in metrics.items() if key in _metric_names}
    if not _plain_metrics:
        return _Metrics(**known)
    made = _Metrics.__new__(_Metrics)  # to set a hundred defaults takes longer than a short trace
    made.__dict__.update(known)
    return made


def chromium_events() -> Any:
    return None if _chromium_events is None else _chromium_events()


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


same = dynamo_utils.same
clone_input = dynamo_utils.clone_input


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


@contextlib.contextmanager
def noting_metrics(into: dict[str, Any]) -> Iterator[None]:
    """What a backend notes about itself within, for the metrics of the compile, goes to `into`."""
    context = None if _metrics_context is None else _metrics_context()
    if context is None or context.in_progress() or not hasattr(context, "_on_exit"):
        yield
        return
    before = context._on_exit
    context._on_exit = lambda start, end, metrics, *error: into.update(metrics)
    try:
        with context:
            yield
    finally:
        context._on_exit = before


# -- what `install` puts its own functions in the place of --

# Found by torch as globals of a module when they are called.
PATCHED = {
    "optimize": (eval_frame, "_optimize"),
    "optimize_assert": (eval_frame, "_optimize_assert"),
    "reset": (torch._dynamo, "_reset_guarded_backend_cache"),
    "set_stance": (decorators, "_set_stance"),
    "skip_code": (decorators, "skip_code"),
    "guard_failures": (dynamo_utils, "guard_failures"),
    "replay": (torch._dynamo, "replay"),
}
for _home, _name in PATCHED.values():
    getattr(_home, _name)  # else an error that says so
if find("torch._C._dynamo.eval_frame.set_guard_complete_hook") is not None:
    PATCHED["guard_collectives"] = torch._C._dynamo.eval_frame, "set_guard_complete_hook"

# Whether an operator with bodies (torch.cond and its like) compiles itself: torch's own tracer does
# that, perhaps on fakes and under modes. Versions before 2.13 do not tell.
compiles_itself: Callable[[], bool] = find("torch._higher_order_ops.utils._in_hop_compile") or (
    lambda: False
)

# What such an operator compiles itself by. Nothing in it is the program's.
compiles_operator: Any = find("torch._higher_order_ops.utils._hop_compile_and_call")

# Settings of torch._dynamo.config that Stator obeys.
for _name in ("automatic_dynamic_shapes", "assume_static_by_default", "specialize_int",
              "specialize_float", "disable", "error_on_nested_fx_trace",
              "error_on_recompile", "recompile_limit",
              "accumulated_recompile_limit", "fail_on_recompile_limit_hit",
              "raise_on_ctx_manager_usage"):  # fmt: skip
    getattr(config, _name)

NullDecorator = eval_frame._NullDecorator
counters = dynamo_utils.counters


def stance() -> Any:
    return eval_frame._stance


def inductor_keeps_calls(options: dict[str, Any]) -> bool:
    """Whether inductor is set to record calls of kernels, or to write C++ that makes them: then it
    does not take graphs that call bodies."""
    settings = get("torch._inductor.config")
    names = ("cpp_wrapper", "triton.cudagraphs")
    return any(options.get(name, settings.get_config_copy()[name]) for name in names)
