"""Torch's settings as one table: what tells each, what sets it, who shares it, what a trace makes
of a question and of a change. Guards, nodes, refusals and what is put back are derived from it.
"""

from collections.abc import Callable, Iterator
from types import BuiltinFunctionType
from typing import Any, NamedTuple

import torch

from stator import _levels
from stator._rows import Named, Row, words
from stator._versions import private


class Part(NamedTuple):
    """A way to tell and to set."""

    read: Callable[[], Any]
    write: Callable[[Any], Any]


class Setting(NamedTuple):
    asks: str  # callables that tell it, by their paths; `kept` uses the first
    sets: str = ""  # callables that set it; nodes and `kept` use the first
    scope: str = ""  # who shares it: THREAD, PROCESS
    guard: str | Row = ""  # what becomes of a question (src/torch/kinds.def)
    change: str | Row = ""  # what becomes of a call that sets it: NODE, or a kind
    arguments: tuple[Any, ...] = ()  # of both, before the value
    traced: bool = False  # nodes set it in ways of their own, and `save_state` has it
    bars: str = ""  # no trace begins where it is neither None nor 0; what to say then
    kept: bool | Part = True  # put back after a backend: by asks and sets, not at all, in this way


THREAD, PROCESS = "thread", "process"

# Guards. Without one a question ends the trace, as a call of any unknown C function does.
ASKED = "asked"  # asked for real, and again before each call: C functions without effect
HELD = "question"  # asked for real: the guard of torch's whole state holds it

# Changes. Without one a call that sets it ends the trace as well.
NODE = "node"  # done for real while tracing if the thread's, else held back
REPLAYED = (
    "replayed"  # the same where each operation runs by itself; compiled ones do not ask for it
)
ENDS = "state"  # ends the trace, with a reason of its own
_RANDOM: Row = ("state", ("RANDOM_STATE", "{}"))

_NODE_KINDS = {THREAD: "setter", PROCESS: "setting"}


# -- what is told and set in ways of its own --


def _deterministic() -> tuple[bool, bool]:
    return private.deterministic(), private.deterministic_warns()


def _set_deterministic(value: tuple[bool, bool]) -> None:
    private.set_deterministic(value[0], warn_only=value[1])


def _anomaly() -> tuple[bool, bool]:
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def _function_modes() -> tuple[Any, ...]:
    modes = tuple(map(private.function_mode_at, range(private.len_function_stack())))
    return modes, private.default_device()


def _set_function_modes(state: tuple[Any, ...]) -> None:
    while private.len_function_stack() > 0:
        private.pop_function_mode()
    for mode in state[0]:
        private.push_function_mode(mode)
    private.set_default_device(state[1])


def _pop_dispatch_modes(count: int) -> None:
    while private.len_dispatch_stack() > count:
        private.pop_dispatch_stack(None)


def _saved_hooks() -> Any:
    return private.top_saved_tensors_hooks(False)


def _pop_saved_hooks(top: Any) -> None:
    while _saved_hooks() not in (top, None):
        private.pop_saved_tensors_hooks()


def _dual_level() -> tuple[bool, int]:
    try:
        private.exit_dual_level(private.enter_dual_level())
    except RuntimeError:
        return True, private.forward_ad_level()
    return False, private.forward_ad_level()


def _set_dual_level(state: tuple[bool, int]) -> None:
    if _dual_level()[0] and not state[0]:
        private.exit_dual_level(0)
    private.set_forward_ad_level(state[1])


def _flushes(small: float = 1e-310) -> bool:
    return small * 1.0 == 0.0


def _set_mobile_allocator(on: bool) -> None:
    if on:
        private.set_mobile_allocator()
    else:
        private.unset_mobile_allocator()


_kept_on: list[Any] = []


def _set_inference(on: bool) -> None:
    # Torch sets the mode as long as an object of its own lives: this one does for good. When the
    # backend's is let go, that puts back what was before the backend, too.
    mode: Any = private.InferenceMode(on)
    mode.__enter__()
    _kept_on.append(mode)


# -- the table --

_AUTOCAST_DEVICES = words("cpu cuda xpu mps hpu mtia xla ipu maia privateuseone")


def _autocast(device: str) -> Iterator[Setting]:
    asks = "torch.is_autocast_enabled torch.is_autocast_cpu_enabled"
    yield Setting(asks, "torch.set_autocast_enabled", THREAD, HELD, ENDS, (device,), traced=True)
    # Torch's guard holds the dtype only while autocast is on.
    asks, guard = "torch.get_autocast_dtype", ("autocast_dtype", None)
    yield Setting(asks, "torch.set_autocast_dtype", THREAD, guard, ENDS, (device,), traced=True)


def _pairs(guard: str, change: str, names: str) -> Iterator[Setting]:
    """Each is told by `_get_…` of torch._C and set by `_set_…`, for all threads."""
    for name in words(names):
        yield Setting(f"torch._C._get_{name}", f"torch._C._set_{name}", PROCESS, guard, change)


def _kernel(get: str, put: str, guard: str = ASKED) -> Setting:
    """Which kernel attention takes, and with it the strides of what comes out."""
    return Setting(f"torch._C._get_{get}", f"torch._C._set_sdp_{put}", PROCESS, guard, NODE)


# A graph that a backend traces again takes these over. The default dtype would be lost there.
_KERNELS = (
    _kernel("flash_sdp_enabled", "use_flash"),
    _kernel("mem_efficient_sdp_enabled", "use_mem_efficient"),
    _kernel("math_sdp_enabled", "use_math"),
    _kernel("cudnn_sdp_enabled", "use_cudnn"),
    _kernel("overrideable_sdp_enabled", "use_overrideable"),
    _kernel("sdp_priority_order", "priority_order"),
    _kernel("fa3_sdp_enabled", "use_fa3", ""),
    _kernel("fa4_sdp_enabled", "use_fa4", ""),
)

_kernel_getters = tuple(filter(None, (private.find(kernel.asks) for kernel in _KERNELS)))

_PRECISIONS = (
    ("generic", "all"),
    *((home, what) for home in ("cuda", "mkldnn") for what in ("all", "conv", "rnn", "matmul")),
)  # the wider ones first: to set one sets those within it

# In the order of putting back. Modes first: the others are set without them.
SETTINGS: tuple[Setting, ...] = (
    Setting("""torch._C._functorch.peek_interpreter_stack torch._C._functorch.maybe_current_level
               torch._C._functorch.get_dynamic_layer_stack_depth
               torch._C._are_functorch_transforms_active""",
            scope=THREAD, guard="level_asked", bars="a functorch transform is on",
            kept=Part(_levels.levels_now, _levels.put_levels_back)),
    Setting("torch._C._len_torch_dispatch_stack", scope=THREAD, guard=ASKED,
            bars="a torch dispatch mode is on",
            kept=Part(private.len_dispatch_stack, _pop_dispatch_modes)),
    Setting("torch._C._get_tracing_state torch._C._is_tracing", scope=THREAD, guard=ASKED,
            bars="torch.jit.trace is on"),
    Setting("""torch._C._len_torch_function_stack torch._C._is_torch_function_enabled
               torch._C._is_torch_function_all_disabled
               torch._C._is_torch_function_mode_enabled""",
            """torch._C._push_on_torch_function_stack torch._C._pop_torch_function_stack
               torch.set_default_device""",
            THREAD, ASKED, ENDS, kept=Part(_function_modes, _set_function_modes)),
    Setting("torch.is_inference_mode_enabled", "torch._C._InferenceMode", THREAD, HELD, ENDS,
            kept=Part(torch.is_inference_mode_enabled, _set_inference)),
    Setting("torch._C._autograd._top_saved_tensors_default_hooks", scope=THREAD,
            arguments=(False,), bars="saved-tensor hooks are on",
            kept=Part(_saved_hooks, _pop_saved_hooks)),
    Setting("", scope=PROCESS, kept=Part(_dual_level, _set_dual_level)),
    Setting("torch.is_grad_enabled", "torch._C._set_grad_enabled", THREAD, HELD, NODE,
            traced=True),
    *(setting for device in _AUTOCAST_DEVICES for setting in _autocast(device)),
    Setting("torch.get_autocast_gpu_dtype", scope=THREAD, guard=("autocast_dtype", "cuda")),
    Setting("torch.get_autocast_cpu_dtype", scope=THREAD, guard=("autocast_dtype", "cpu")),
    Setting("torch.is_autocast_cache_enabled", "torch.set_autocast_cache_enabled", THREAD, HELD,
            ENDS, traced=True),
    Setting("torch._C._is_any_autocast_enabled torch._C._is_autocast_available",
            """torch.autocast_increment_nesting torch.autocast_decrement_nesting
               torch.clear_autocast_cache""", THREAD, HELD, ENDS, kept=False),
    Setting("""torch._C._get_deterministic_algorithms
               torch._C._get_deterministic_algorithms_warn_only""",
            "torch._C._set_deterministic_algorithms torch.use_deterministic_algorithms",
            PROCESS, HELD, ENDS, kept=Part(_deterministic, _set_deterministic)),
    Setting("torch.is_anomaly_enabled torch.is_anomaly_check_nan_enabled", scope=PROCESS,
            guard=ASKED, kept=Part(_anomaly, lambda value: torch.set_anomaly_enabled(*value))),
    Setting("", scope=THREAD, kept=Part(_flushes, torch.set_flush_denormal)),
    Setting("torch._C._is_default_mobile_cpu_allocator_set", scope=PROCESS, guard=ASKED,
            kept=Part(private.is_mobile_allocator, _set_mobile_allocator)),
    *_KERNELS,
    *_pairs(HELD, "", """
        cublas_allow_fp16_reduced_precision_reduction cublas_allow_bf16_reduced_precision_reduction
     """),
    *_pairs(ASKED, "", """
        cudnn_deterministic mkldnn_enabled mkldnn_deterministic nnpack_enabled qengine
        linalg_preferred_backend blas_preferred_backend warnAlways
        deterministic_fill_uninitialized_memory
     """),
    *_pairs("", "", """
        cublas_allow_fp16_accumulation miopen_immediate math_sdp_allow_fp16_bf16_reduction
        autograd_fallback_mode backcompat_broadcast_warn backcompat_keepdim_warn
        cpu_allow_fp16_reduced_precision_reduction graph_executor_optimize
     """),
    *_pairs(ASKED, ENDS, "cudnn_enabled cudnn_benchmark float32_matmul_precision"),
    Setting("torch._C._is_fwd_grad_enabled", "torch._C._set_fwd_grad_enabled", THREAD, ASKED),
    Setting("torch._C._is_multithreading_enabled", "torch._C._set_multithreading_enabled", THREAD,
            ASKED, ENDS),
    Setting("torch._C._is_view_replay_enabled", "torch._C._set_view_replay_enabled", THREAD,
            ASKED),
    Setting("torch._C._is_grad_layout_enforcement_enabled",
            "torch._C._set_grad_layout_enforcement_enabled", PROCESS),
    Setting("torch.get_default_dtype torch.finfo",  # finfo() is that of the default
            "torch._C._set_default_dtype", PROCESS, HELD, REPLAYED),
    Setting("torch.get_num_threads", "torch.set_num_threads", PROCESS, HELD, ENDS),
    *(Setting("torch._C._get_fp32_precision_getter", "torch._C._set_fp32_precision_setter",
              PROCESS, arguments=which) for which in _PRECISIONS),
    # The same as some of these, in an older way; torch complains where both ways are used.
    Setting("torch._C._get_cublas_allow_tf32", "torch._C._set_cublas_allow_tf32", PROCESS, HELD,
            ENDS, kept=False),
    Setting("torch._C._get_cudnn_allow_tf32", "torch._C._set_cudnn_allow_tf32", PROCESS, ASKED,
            kept=False),
    # Generators of random numbers; `kept` knows them all.
    Setting("", """
        torch.manual_seed torch.seed torch.random.manual_seed torch.set_rng_state torch.random.seed
        torch.initial_seed torch.get_rng_state torch.random.set_rng_state
        torch.random.get_rng_state
     """, PROCESS, change=_RANDOM),
    # Who is there, and who watches.
    Setting("""torch._C._get_privateuse1_backend_name torch._C._autograd._profiler_enabled
               torch._C._accelerator_getAccelerator torch._C._get_accelerator
               torch._C._cuda_isInBadFork torch._C._cuda_getDeviceCount
               torch.is_vulkan_available""", scope=PROCESS, guard=ASKED),
)  # fmt: skip


# -- what becomes of calls --


def _row(kind: str | Row, path: str) -> Row:
    if isinstance(kind, str):
        return kind, path
    name, extra = kind
    return name, tuple(part.replace("{}", path) for part in extra) if type(
        extra
    ) is tuple else extra


def _questions(setting: Setting) -> Iterator[Named]:
    for path in words(setting.asks) if setting.guard else ():
        found, row = private.find(path), _row(setting.guard, path)
        if row[0] != ASKED or isinstance(found, BuiltinFunctionType):
            yield path, found, row


def _changes(setting: Setting) -> Iterator[Named]:
    for path in words(setting.sets) if setting.change else ():
        kind = _NODE_KINDS[setting.scope] if setting.change == NODE else setting.change
        if kind == REPLAYED:
            kind = "setting_replayed"
        if kind in ("setting", "setting_replayed"):  # held back: its question tells what it was
            getter = private.find(words(setting.asks)[0])
            yield path, private.find(path), (kind, getter) if getter else (ENDS, path)
        else:
            yield path, private.find(path), _row(kind, path)


def rows() -> Iterator[Named]:
    """Callables that ask for or set torch's state; and attention, whose strides depend on it."""
    for setting in SETTINGS:
        yield from _questions(setting)
        yield from _changes(setting)
    path = "torch._C._nn.scaled_dot_product_attention"
    yield path, private.find(path), ("operation", _kernel_getters)


def attention_kernels() -> tuple[Any, ...]:
    """Which kernels attention may take."""
    return tuple(get() for get in _kernel_getters)


def node_setters() -> list[Any]:
    """C functions whose nodes set state."""
    paths = (
        path
        for setting in SETTINGS
        if setting.change in (NODE, REPLAYED)
        for path in words(setting.sets)
    )
    return [found for found in map(private.find, paths) if found is not None]


# -- what is read and written --

Access = tuple[Any, Any, tuple[Any, ...]]  # what tells it, what sets it, arguments before the value


def _access(setting: Setting) -> Access | None:
    if not setting.asks or not setting.sets:
        return None
    get, put = (private.find(words(paths)[0]) for paths in (setting.asks, setting.sets))
    return (get, put, setting.arguments) if get and put else None


def traced() -> list[Access]:
    """What a trace sets itself."""
    return list(filter(None, (_access(setting) for setting in SETTINGS if setting.traced)))


def bars() -> list[tuple[Any, tuple[Any, ...], str]]:
    """What must not be on where a trace begins: what tells, its arguments, what to say."""
    return [(private.get(words(setting.asks)[0]), setting.arguments, setting.bars)
            for setting in SETTINGS if setting.bars]  # fmt: skip


def _part(setting: Setting) -> Part | None:
    if isinstance(setting.kept, Part):
        return setting.kept
    access = _access(setting) if setting.kept and not setting.traced else None
    if access is None:
        return None
    get, put, arguments = access

    def write(value: Any) -> None:
        put(*arguments, *(value if type(value) is tuple else (value,)))

    return Part(lambda: get(*arguments), write)


def parts() -> list[Part]:
    """What is put back after a backend, besides what a trace sets itself."""
    return list(filter(None, map(_part, SETTINGS)))
