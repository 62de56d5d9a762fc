"""What Stator takes of `torch._dynamo`. Importing it takes most of a second, so `_private` imports
this file when somebody asks for one of its names: no program needs them that Stator's own rules
know all operations of."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch._dynamo
from torch._dynamo import config as config
from torch._dynamo import decorators, eval_frame, trace_rules
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
from torch._export.utils import _compiling_state_context
from torch._guards import GuardsSet
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

from stator._private import Guard, find, get

# -- modules --

# In which the hooks for all modules leave a wrapper alone; older versions do not ask.
in_optimized_module: Callable[[], contextlib.AbstractContextManager[Any]] = getattr(
    eval_frame, "_set_in_optimized_module", contextlib.nullcontext
)
is_skipped: Callable[[Any], bool] = trace_rules.check


# -- backends --


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


WrapperBackend = get("torch._dynamo.output_graph.WrapperBackend")
backend_names: Callable[[], list[str]] = functools.partial(torch._dynamo.list_backends, ())


def default_backend() -> Any:
    """What torch.compiler.set_default_backend has set."""
    get_default = find("torch._dynamo.backends.registry.get_default_backend")
    return "inductor" if get_default is None else get_default()


# -- numbers that differ from call to call --


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


# -- marks --

allowed_ids: Callable[[], set[int]] = trace_rules._allowed_callable_ids
disallowed_ids: Callable[[], set[int]] = trace_rules._disallowed_callable_ids
nonstrict_ids: Callable[[], set[int]] = find(
    "torch._dynamo.trace_rules._nonstrict_trace_callable_ids"
) or (lambda: set())
nonstrict_trace = find("torch._dynamo.decorators.nonstrict_trace")
substituted_ids: Callable[[], set[int]] = trace_rules._polyfilled_function_ids
optimize = torch._dynamo.optimize
disable = torch._dynamo.disable
allow_in_graph = torch._dynamo.allow_in_graph
skip_wrapper = decorators._nonrecursive_disable_wrapper_code
disable_wrapper = eval_frame.DisableContext()(lambda: None).__code__
# Around functions of torch's that are marked at their first call.
late_disabler = torch._compile._disable_dynamo(lambda: None).__code__
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


IndexMode = get("torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex")
# Attributes of tensors that Dynamo records as a call of an operation; since 2.15.
view_calls: dict[str, Any] = getattr(torch._dynamo.variables.tensor, "_VIEW_ATTR_TO_ATEN_OP", {})

# -- logs, traces and metrics of compiles --

compilation_time_metrics: dict[str, list[float]] = dynamo_utils.compilation_time_metrics
known_metrics: Callable[[], Any] = lambda: dynamo_utils._compilation_metrics  # noqa: E731
compilation_metrics = dynamo_utils.get_compilation_metrics
clear_compilation_metrics = dynamo_utils.clear_compilation_metrics
_Metrics = dynamo_utils.CompilationMetrics
_metric_names = frozenset(_Metrics.__dataclass_fields__)
_plain_metrics = all(hasattr(_Metrics, name) for name in _metric_names)
_chromium_events = find("torch._dynamo.utils.get_chromium_event_logger")
_metrics_context = find("torch._dynamo.utils.get_metrics_context")
setup_debug_folder = dynamo_utils.setup_compile_debug
debug_folder: Callable[[], str] = dynamo_utils.get_debug_dir
same = dynamo_utils.same
clone_input = dynamo_utils.clone_input
_bytecode_hooks = find("torch._dynamo.convert_frame._bytecode_hooks")


def bytecode_hooks() -> Any:
    return _bytecode_hooks


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

functional_export: Any = find("torch._dynamo.functional_export")
# What strict exports are made of; older versions lack some of it, or take other arguments, and make
# them by themselves.
if all(hasattr(functional_export, _name) for _name in (
    "_dynamo_graph_capture_for_export", "ModuleToTrace", "DynamoGraphTransformer",
    "clean_nn_module_stack_and_source_fn", "clean_export_root",
)) and "graph_inputs" in inspect.signature(
    functional_export.DynamoGraphTransformer.__init__
).parameters:  # fmt: skip
    PATCHED["capture"] = functional_export, "_dynamo_graph_capture_for_export"

# Settings of torch._dynamo.config that Stator obeys.
for _name in ("automatic_dynamic_shapes", "assume_static_by_default", "specialize_int",
              "specialize_float", "disable", "error_on_nested_fx_trace",
              "error_on_recompile", "recompile_limit",
              "accumulated_recompile_limit", "fail_on_recompile_limit_hit",
              "raise_on_ctx_manager_usage"):  # fmt: skip
    getattr(config, _name)


def give_fakes(module: torch.nn.Module, mode: Any, inputs: list[Any]) -> Any:
    """What a graph gives for fakes of tensors, and of those that it has for attributes."""
    own = {**dict(module.named_parameters(remove_duplicate=False)),
           **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    with mode, mode.shape_env.ignore_fresh_unbacked_symbols():
        fakes = {name: mode.from_tensor(value, static_shapes=True) for name, value in own.items()}
        given = tuple(mode.from_tensor(value, static_shapes=True) for value in inputs)
        return torch.func.functional_call(module, fakes, given)


# -- strict export --

ModuleToTrace: Any = getattr(functional_export, "ModuleToTrace", None)
GraphTransformer: Any = getattr(functional_export, "DynamoGraphTransformer", None)
argument_names: Callable[..., list[str]] = eval_frame.argument_names


def give_signature(module: torch.fx.GraphModule, names: list[str], given: Any, made: Any) -> None:
    """Arguments and results of an exported graph as the program's, and places without the module
    around the program."""
    info = _PyTreeInfo(names, given, made)
    module.graph._codegen = _PyTreeCodeGen(info)
    module.recompile()
    functional_export.clean_nn_module_stack_and_source_fn(module, True)
    functional_export.clean_export_root(module)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Programs are told that they are exported. Torch's own settings for that."""
    settings = config.patch(
        specialize_int=True,
        specialize_float=True,
        assume_static_by_default=True,
        automatic_dynamic_shapes=False,
        capture_dynamic_output_shape_ops=True,
        capture_scalar_outputs=True,
    )
    with _compiling_state_context(), settings:
        yield


def is_wrapped_for_export(module: torch.nn.Module) -> bool:
    """Whether torch.export notes how this module is called."""
    hooks = (*module._forward_pre_hooks.values(), *module._forward_hooks.values())
    return any(getattr(hook, "__module__", "").startswith("torch.export") for hook in hooks)


NullDecorator = eval_frame._NullDecorator
counters = dynamo_utils.counters


def stance() -> Any:
    return eval_frame._stance
