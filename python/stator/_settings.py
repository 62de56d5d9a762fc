"""Torch's settings as one table: what tells each, what sets it, whether it may become a node. And
what keeps all of torch's state, and the generators of random numbers, as they are around a backend.
"""

import contextlib
import operator
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from stator._rows import Row, Rows, words
from stator._versions import private

# -- the table --


class Setting(NamedTuple):
    getter: str
    setter: str
    arguments: tuple[Any, ...] = ()  # of both, before the value
    node: bool = False  # the setter becomes a node, and is held back while a trace lasts


# Which kernel attention takes, and with it the strides of what comes out. (A graph that a backend
# traces again takes these over. The default dtype would be lost there.)
_ATTENTION = {
    "_set_sdp_use_flash": "_get_flash_sdp_enabled",
    "_set_sdp_use_mem_efficient": "_get_mem_efficient_sdp_enabled",
    "_set_sdp_use_math": "_get_math_sdp_enabled",
    "_set_sdp_use_cudnn": "_get_cudnn_sdp_enabled",
    "_set_sdp_use_overrideable": "_get_overrideable_sdp_enabled",
    "_set_sdp_priority_order": "_get_sdp_priority_order",
    "_set_sdp_use_fa3": "_get_fa3_sdp_enabled",
    "_set_sdp_use_fa4": "_get_fa4_sdp_enabled",
}

# Each is told by `_get_…` of torch._C and set by `_set_…`.
_PAIRS = words("""
    cublas_allow_fp16_reduced_precision_reduction cublas_allow_bf16_reduced_precision_reduction
    cublas_allow_fp16_accumulation cudnn_enabled cudnn_benchmark cudnn_deterministic
    mkldnn_enabled mkldnn_deterministic nnpack_enabled miopen_immediate qengine
    math_sdp_allow_fp16_bf16_reduction linalg_preferred_backend blas_preferred_backend warnAlways
    deterministic_fill_uninitialized_memory autograd_fallback_mode backcompat_broadcast_warn
    backcompat_keepdim_warn cpu_allow_fp16_reduced_precision_reduction graph_executor_optimize
    float32_matmul_precision
""")

_PRECISIONS = (
    ("generic", "all"),
    *((home, what) for home in ("cuda", "mkldnn") for what in ("all", "conv", "rnn", "matmul")),
)  # the wider ones first: to set one sets those within it

SETTINGS = (
    *(Setting(f"torch._C.{get}", f"torch._C.{put}", node=True) for put, get in _ATTENTION.items()),
    *(Setting(f"torch._C._get_{name}", f"torch._C._set_{name}") for name in _PAIRS),
    Setting("torch._C._is_fwd_grad_enabled", "torch._C._set_fwd_grad_enabled"),
    Setting("torch._C._is_multithreading_enabled", "torch._C._set_multithreading_enabled"),
    Setting("torch._C._is_view_replay_enabled", "torch._C._set_view_replay_enabled"),
    Setting(
        "torch._C._is_grad_layout_enforcement_enabled",
        "torch._C._set_grad_layout_enforcement_enabled",
    ),
    Setting("torch.get_default_dtype", "torch._C._set_default_dtype"),
    Setting("torch.get_num_threads", "torch.set_num_threads"),
    *(
        Setting("torch._C._get_fp32_precision_getter", "torch._C._set_fp32_precision_setter", which)
        for which in _PRECISIONS
    ),
)

# Callables that ask for or set state, with or without a row above.
ROWS: Rows = (
    # Asked for real, and asked again before each call: C functions without effect.
    ("asked", "{}", """
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
        torch._C._is_default_mobile_cpu_allocator_set torch._C._get_accelerator
        torch._C._is_view_replay_enabled torch._C._get_sdp_priority_order
     """),
    # Asked for real; the guard of torch's state holds them. (finfo: because of the default dtype.)
    ("question", "{}", """
        torch.is_grad_enabled torch.is_inference_mode_enabled torch.get_default_dtype
        torch.is_autocast_enabled torch.is_autocast_cpu_enabled torch.is_autocast_cache_enabled
        torch._C._is_any_autocast_enabled torch._C._is_autocast_available torch.get_num_threads
        torch._C._get_deterministic_algorithms torch._C._get_deterministic_algorithms_warn_only
        torch._C._get_cublas_allow_tf32 torch._C._get_cublas_allow_fp16_reduced_precision_reduction
        torch._C._get_cublas_allow_bf16_reduced_precision_reduction
        torch.finfo
     """),
    # Torch's guard holds these only while autocast is on: the device, or None for the argument.
    ("autocast_dtype", None, "torch.get_autocast_dtype"),
    ("autocast_dtype", "cuda", "torch.get_autocast_gpu_dtype"),
    ("autocast_dtype", "cpu", "torch.get_autocast_cpu_dtype"),
    ("setter", "{}", "torch._C._set_grad_enabled"),
    # Known to change what a trace cannot hold back.
    ("state", ("RANDOM_STATE", "{}"), """
        torch.manual_seed torch.seed torch.random.manual_seed torch.set_rng_state torch.random.seed
        torch.initial_seed torch.get_rng_state torch.random.set_rng_state
        torch.random.get_rng_state
     """),
    ("state", "{}", """
        torch.set_default_dtype torch._C._set_default_dtype torch.set_default_device
        torch.set_num_threads torch._C._set_deterministic_algorithms
        torch.use_deterministic_algorithms torch._C._set_cublas_allow_tf32
        torch._C._set_cudnn_enabled torch._C._set_cudnn_benchmark
        torch._C._set_float32_matmul_precision torch.set_autocast_enabled torch.set_autocast_dtype
        torch.set_autocast_cache_enabled torch.autocast_increment_nesting torch.clear_autocast_cache
        torch.autocast_decrement_nesting torch._C._InferenceMode
        torch._C._push_on_torch_function_stack torch._C._pop_torch_function_stack
        torch._C._set_multithreading_enabled
     """),
)  # fmt: skip


def held_back() -> Iterator[tuple[Any, Row]]:
    """Setters that become nodes; and attention, whose strides depend on them."""
    questions = []
    for setting in filter(operator.attrgetter("node"), SETTINGS):
        put, get = private.find(setting.setter), private.find(setting.getter)
        yield put, ("setting", get) if get else ("state", setting.setter)
        questions.append(get)
    yield private.attention, ("operation", tuple(filter(None, questions)))


# -- what is told and set in ways of its own --


class Part(NamedTuple):
    read: Callable[[], Any]
    write: Callable[[Any], Any]


def _simple(setting: Setting) -> Part | None:
    get, put = private.find(setting.getter), private.find(setting.setter)
    arguments = setting.arguments
    if get is None or put is None:
        return None

    def write(value: Any) -> None:
        put(*arguments, *(value if type(value) is tuple else (value,)))

    return Part(lambda: get(*arguments), write)


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


# In the order of putting back. Modes first: the others are set without them.
_PARTS = (
    Part(private.len_dispatch_stack, _pop_dispatch_modes),
    Part(_function_modes, _set_function_modes),
    Part(torch.is_inference_mode_enabled, _set_inference),
    Part(_saved_hooks, _pop_saved_hooks),
    Part(_dual_level, _set_dual_level),
    Part(_deterministic, _set_deterministic),
    Part(_anomaly, lambda value: torch.set_anomaly_enabled(*value)),
    Part(_flushes, torch.set_flush_denormal),
    Part(private.is_mobile_allocator, _set_mobile_allocator),
    *filter(None, map(_simple, SETTINGS)),
)


_UNKNOWN = object()


def _told(part: Part) -> Any:
    try:
        return part.read()
    except RuntimeError:  # torch complains of settings that were set by old and new functions
        return _UNKNOWN


# -- random numbers --


def _accelerators() -> Iterator[Any]:
    for module in (torch.cuda, torch.xpu):
        if module.is_available() and module.is_initialized():
            yield module


@contextlib.contextmanager
def _same_numbers() -> Iterator[None]:
    """A backend that draws random numbers takes none from the program."""
    numbers = sys.modules.get("numpy.random")
    python, arrays = random.getstate(), numbers.get_state() if numbers else None
    tensors = torch.default_generator.get_state()
    devices = [(module, module.get_rng_state_all()) for module in _accelerators()]
    try:
        yield
    finally:
        random.setstate(python)
        if numbers:
            numbers.set_state(arrays)
        torch.default_generator.set_state(tensors)
        for module, states in devices:
            module.set_rng_state_all(states)


# -- around a backend --


@contextlib.contextmanager
def kept(
    save: Callable[[], tuple[Any, ...]], restore: Callable[[tuple[Any, ...]], Any]
) -> Iterator[None]:
    """Torch's state, and who draws random numbers, are as they were behind the block.

    `save` and `restore` know what a trace itself sets: grad mode and autocast.
    """
    told = [_told(part) for part in _PARTS]
    own = save()
    with _same_numbers(), private.PreserveDispatchKeys():
        try:
            yield
        finally:
            for part, before in zip(_PARTS, told, strict=True):
                if before is not _UNKNOWN and _told(part) != before:
                    part.write(before)
            if save()[:4] != own[:4]:
                restore(own)
