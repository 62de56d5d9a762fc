# ruff: noqa: E402
"""Every setting of torch's, one at a time: set between calls, in the function, around a break, put
back by a handler. Results, and what the getter tells afterwards, are those of plain Python."""

import json
import re

import pytest

torch = pytest.importorskip("torch")

import torch.utils.checkpoint
import torch.utils.deterministic

import stator
from stator import _callables, _engine, _settings, _torch, _versions
from tests.tensor.helpers import assert_same, same_precisions

_torch.attach()

C, backends = torch._C, torch.backends
pytestmark = pytest.mark.filterwarnings("ignore")


# -- the settings: what tells, what sets, values that it takes (the first is the usual one) --

SETTINGS = {}
COVERED = set()  # functions that the rows call


def setting(name, get, put, *values):
    SETTINGS[name] = get, put, values
    COVERED.update(id(function) for function in (get, put))


def field(owner, name, *values):
    home = getattr(owner, "__name__", type(owner).__name__).removeprefix("torch.")
    setting(
        f"{home}.{name}", lambda: getattr(owner, name), lambda v: setattr(owner, name, v), *values
    )


def pair(name, home, put, *values):
    get, put = getattr(home, name, None), getattr(home, put, None)
    if get is not None and put is not None:  # this torch has it
        setting(f"{name}", get, put, *values)


def autocast_of(device, usual, other):
    setting(
        f"autocast of {device}",
        lambda: torch.is_autocast_enabled(device),
        lambda on: torch.set_autocast_enabled(device, on),
        False,
        True,
    )
    setting(
        f"autocast dtype of {device}",
        lambda: torch.get_autocast_dtype(device),
        lambda dtype: torch.set_autocast_dtype(device, dtype),
        usual,
        other,
    )


for device in ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "xla", "ipu", "maia", "privateuseone"):
    autocast_of(device, torch.get_autocast_dtype(device), torch.float32)
COVERED.update(map(id, (torch.set_autocast_enabled, torch.set_autocast_dtype)))

pair("is_autocast_cache_enabled", torch, "set_autocast_cache_enabled", True, False)
pair("is_autocast_cpu_enabled", torch, "set_autocast_cpu_enabled", False, True)
pair("get_autocast_cpu_dtype", torch, "set_autocast_cpu_dtype", torch.bfloat16, torch.float16)
pair("get_autocast_gpu_dtype", torch, "set_autocast_gpu_dtype", torch.float16, torch.bfloat16)
pair("get_autocast_xla_dtype", torch, "set_autocast_xla_dtype", torch.bfloat16, torch.float16)
pair("get_autocast_ipu_dtype", torch, "set_autocast_ipu_dtype", torch.float16, torch.bfloat16)
pair("is_autocast_xla_enabled", torch, "set_autocast_xla_enabled", False, True)
pair("is_autocast_ipu_enabled", torch, "set_autocast_ipu_enabled", False, True)
setting("grad mode", torch.is_grad_enabled, C._set_grad_enabled, True, False)
setting("grad mode by class", torch.is_grad_enabled, torch.set_grad_enabled, True, False)
pair("_is_fwd_grad_enabled", C, "_set_fwd_grad_enabled", True, False)
pair("is_anomaly_enabled", torch, "set_anomaly_enabled", False, True)
setting(
    "anomaly, nan",
    torch.is_anomaly_check_nan_enabled,
    lambda on: torch.set_anomaly_enabled(torch.is_anomaly_enabled(), on),
    True,
    False,
)
setting(
    "deterministic",
    torch.are_deterministic_algorithms_enabled,
    torch.use_deterministic_algorithms,
    False,
    True,
)
setting(
    "deterministic, warnings",
    torch.is_deterministic_algorithms_warn_only_enabled,
    lambda on: torch.use_deterministic_algorithms(True, warn_only=on),
    False,
    True,
)
pair("_get_deterministic_algorithms", C, "_set_deterministic_algorithms", False, True)
pair("get_deterministic_debug_mode", torch, "set_deterministic_debug_mode", 0, 1, 2)
field(torch.utils.deterministic, "fill_uninitialized_memory", True, False)
pair(
    "_get_deterministic_fill_uninitialized_memory",
    C,
    "_set_deterministic_fill_uninitialized_memory",
    True,
    False,
)
pair("get_default_dtype", torch, "set_default_dtype", torch.float32, torch.float64)
setting("default dtype in C", torch.get_default_dtype, C._set_default_dtype, torch.float32,
        torch.float64)  # fmt: skip
setting("default tensor type", torch.get_default_dtype, torch.set_default_tensor_type,
        torch.FloatTensor, torch.DoubleTensor)  # fmt: skip
setting("default tensor type in C", torch.get_default_dtype, C._set_default_tensor_type,
        torch.FloatTensor, torch.DoubleTensor)  # fmt: skip
pair("get_default_device", torch, "set_default_device", "cpu", "meta")
pair("get_num_threads", torch, "set_num_threads", 1, 2)
pair("is_warn_always_enabled", torch, "set_warn_always", False, True)
pair("_get_warnAlways", C, "_set_warnAlways", False, True)
pair("get_float32_matmul_precision", torch, "set_float32_matmul_precision", "highest", "high")
pair("_get_float32_matmul_precision", C, "_set_float32_matmul_precision", "highest", "medium")
for name in ("allow_tf32", "allow_fp16_accumulation"):
    field(backends.cuda.matmul, name, False, True)
for name in ("fp16", "bf16"):
    field(backends.cuda.matmul, f"allow_{name}_reduced_precision_reduction", True, False)
field(backends.cuda.matmul, "fp32_precision", "ieee", "tf32")
for home in (backends, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn):
    field(home, "fp32_precision", "none", "ieee", "tf32")
for home in (backends.mkldnn, backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn):
    field(home, "fp32_precision", "none", "ieee")
field(backends.cudnn, "enabled", True, False)
field(backends.cudnn, "deterministic", False, True)
field(backends.cudnn, "benchmark", False, True)
field(backends.cudnn, "benchmark_limit", 10, 5)
field(backends.mkldnn, "enabled", True, False)
field(backends.mkldnn, "deterministic", False, True)
field(backends.mkldnn, "allow_tf32", True, False)
field(backends.miopen, "immediate", False, True)
field(backends.quantized, "engine", *backends.quantized.supported_engines[-2:])
setting("nnpack", C._get_nnpack_enabled, backends.nnpack.set_flags, True, False)
pair("flash_sdp_enabled", backends.cuda, "enable_flash_sdp", True, False)
pair("mem_efficient_sdp_enabled", backends.cuda, "enable_mem_efficient_sdp", True, False)
pair("math_sdp_enabled", backends.cuda, "enable_math_sdp", True, False)
pair("cudnn_sdp_enabled", backends.cuda, "enable_cudnn_sdp", True, False)
pair("fp16_bf16_reduction_math_sdp_allowed", backends.cuda,
     "allow_fp16_bf16_reduction_math_sdp", False, True)  # fmt: skip
pair("_get_overrideable_sdp_enabled", C, "_set_sdp_use_overrideable", True, False)
pair("_get_flash_sdp_enabled", C, "_set_sdp_use_flash", True, False)
pair("_get_math_sdp_enabled", C, "_set_sdp_use_math", True, False)
pair("_get_mem_efficient_sdp_enabled", C, "_set_sdp_use_mem_efficient", True, False)
pair("_get_cudnn_sdp_enabled", C, "_set_sdp_use_cudnn", True, False)
pair("_get_fa3_sdp_enabled", C, "_set_sdp_use_fa3", True, False)
pair("_get_fa4_sdp_enabled", C, "_set_sdp_use_fa4", True, False)
pair("_get_sdp_priority_order", C, "_set_sdp_priority_order", [0, 1, 2, 3, 4], [2, 1, 0, 3, 4])
for name in ("linalg", "blas"):
    function = getattr(backends.cuda, f"preferred_{name}_library")
    values = ("default", "cusolver" if name == "linalg" else "cublaslt")
    setting(f"{name} library", function, function, *values)
setting("attention's fast path", backends.mha.get_fastpath_enabled,
        backends.mha.set_fastpath_enabled, True, False)  # fmt: skip
pair("_is_vmap_fallback_enabled", C._functorch, "_set_vmap_fallback_enabled", True, False)
pair("get_inplace_requires_grad_allowed", C._functorch, "set_inplace_requires_grad_allowed", False,
     True)  # fmt: skip
pair("get_single_level_autograd_function_allowed", C._functorch,
     "set_single_level_autograd_function_allowed", False, True)  # fmt: skip
pair("_is_multithreading_enabled", C, "_set_multithreading_enabled", True, False)
setting("multithreading", C._is_multithreading_enabled, torch.autograd.set_multithreading_enabled,
        True, False)  # fmt: skip
pair("_is_view_replay_enabled", C, "_set_view_replay_enabled", False, True)
pair("_is_grad_layout_enforcement_enabled", C, "_set_grad_layout_enforcement_enabled", True, False)
pair("_get_cpu_allow_fp16_reduced_precision_reduction", C,
     "_set_cpu_allow_fp16_reduced_precision_reduction", False, True)  # fmt: skip
pair("_get_autograd_fallback_mode", C, "_set_autograd_fallback_mode", "warn", "nothing")
pair("_get_backcompat_broadcast_warn", C, "_set_backcompat_broadcast_warn", False, True)
pair("_get_backcompat_keepdim_warn", C, "_set_backcompat_keepdim_warn", False, True)
pair("_get_graph_executor_optimize", C, "_set_graph_executor_optimize", True, False)
pair("_get_mkldnn_enabled", C, "_set_mkldnn_enabled", True, False)
invariants = torch.sparse.check_sparse_tensor_invariants
setting("sparse invariants", invariants.is_enabled,
        lambda on: invariants.enable() if on else invariants.disable(), False, True)  # fmt: skip
for name in ("overwrite_module_params_on_conversion", "swap_module_params_on_conversion"):
    pair(f"get_{name}", torch.__future__, f"set_{name}", False, True)
pair("get_crc32_options", torch.serialization, "set_crc32_options", True, False)
pair("get_default_mmap_options", torch.serialization, "set_default_mmap_options", 2, 1)
pair("get_default_load_endianness", torch.serialization, "set_default_load_endianness", None,
     torch.serialization.LoadEndianness.BIG)  # fmt: skip
setting("printing", lambda: torch._tensor_str.PRINT_OPTS.precision,
        lambda digits: torch.set_printoptions(precision=digits), 4, 7)  # fmt: skip
field(torch.utils.checkpoint, "_checkpoint_debug_enabled", None, True)
field(torch.utils.checkpoint, "_enable_checkpoint_early_stop", None, True)


def tiny():
    return float(torch.tensor(1e-310, dtype=torch.float64) * 1), 1e-310 * ONE["value"]


ONE = {"value": 1.0}
setting("flush_denormal", tiny, torch.set_flush_denormal, False, True)


# -- the programs --


@stator.disable
def nothing():
    pass


def compute(x):
    y = x @ x.t()
    with torch.autocast("cpu"):
        z = x @ x.t()
    made = torch.empty(3, 2).dtype, torch.finfo().eps, torch.tensor(1.5).dtype
    return y, z, made, y.requires_grad, z.requires_grad


def set_before(get, put):
    return lambda x, value: (compute(x), get())


def set_inside(get, put):
    def f(x, value):
        put(value)
        return compute(x), get()

    return f


def set_then_break(get, put):
    def f(x, value):
        y = x * 2
        put(value)
        before = get()
        nothing()
        return compute(x), get(), before, y

    return f


def set_and_put_back(get, put):
    def f(x, value):
        old = get()
        put(value)
        try:
            y = compute(x)
            nothing()
            inside = get()
        finally:
            put(old)
        return y, inside, compute(x), get()

    return f


def put_back_by_a_handler(get, put):
    def f(x, value):
        old = get()
        try:
            put(value)
            y, inside = compute(x), get()
            raise KeyError
        except KeyError:
            put(old)
        return y, inside, compute(x), get()

    return f


PROGRAMS = [set_before, set_inside, set_then_break, set_and_put_back, put_back_by_a_handler]


def outcomes(f, name, program):
    """What each call gives or raises, and what the getter tells behind it."""
    get, put, values = SETTINGS[name]
    found = []
    for grad in (False, True):
        x = torch.linspace(-1, 1, 12, dtype=torch.float32, device="cpu").reshape(3, 4)
        x.requires_grad_(grad)
        for value in (*values, *reversed(values), *values):
            try:
                if program is set_before:
                    put(value)
                found.append(f(x, value))
            except Exception as error:
                found.append((type(error), str(error)))
            found.append(get())
    return found


@pytest.fixture(autouse=True)
def usual_state():
    with same_precisions():
        yield
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)
    C._set_grad_enabled(True)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", SETTINGS)
def test_as_plain_python(name, program):
    get, put, values = SETTINGS[name]
    found = []
    for compiled in (False, True):
        put(values[0])
        f = program(get, put)
        f = stator.compile(f, backend="eager") if compiled else f
        try:
            found.append(outcomes(f, name, program))
        finally:
            put(values[0])
    want, got = found
    assert_same(got, want)


# -- nothing of the kind is missing --

SETS = re.compile(
    r"_*(set_|set[A-Z]|use_|enable|disable|cuda_set|jit_set|clear_|autocast_(inc|dec)|push_|pop_"
    r"|enter_|exit_|activate|unset_|init_)"
)
HOMES = (torch, C, C._autograd, C._functorch, C._VariableFunctions)
OPERATIONS = {"_use_cudnn_ctc_loss", "_use_cudnn_rnn_flatten_weight", "_use_miopen_ctc_loss"}


def setters():
    for home in HOMES:
        for name in dir(home):
            if SETS.match(name) and name not in OPERATIONS:
                yield name, getattr(home, name)


def test_getters_tell_what_torch_s_guard_compares():
    """They are called in its place; see `flags_are_right`."""
    told = set(json.loads(torch._C._dynamo.guards.GlobalStateGuard().__getstate__()))
    more = told - set(_engine.torch_flags()) - {"autocast_state", "torch_function_all_disabled"}
    assert _versions.flags_are_right() is not bool(more)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_torch_s_guard_sees(name):
    """The getters see it, too, or the thread's dispatch keys do."""
    _, put, values = SETTINGS[name]
    if not _versions.flags_are_right():
        pytest.skip("this torch's guard compares more, and is asked itself")
    for value in values:
        guard = torch._C._dynamo.guards.GlobalStateGuard()
        before = _engine.torch_flags(), _engine.torch_state()
        try:
            put(value)
        except RuntimeError as why:
            pytest.skip(f"not on this machine: {why}")
        try:
            after = _engine.torch_flags(), _engine.torch_state()
            assert guard.check() or before != after
        finally:
            put(values[0])


def test_no_setter_runs_while_tracing():
    """A setter is known as one, or unknown: then the trace ends before it. Modes are the trace's."""
    kinds = {id(function): kind for function, _, (kind, _) in _callables.rows()}
    fine = {None, "state", "setter", "setting", "refused", "mode_push", "mode_pop"} | {
        "setting_replayed",
        "enter_level",
        "exit_level",
        "level_set",
    }
    wrong = [name for name, function in setters() if kinds.get(id(function)) not in fine]
    assert not wrong


def test_known_settings_have_a_row_here():
    """What the glue knows to set something is tried out above."""
    nodes = _settings.node_setters()
    assert len(nodes) > 5
    assert not [setter for setter in nodes if id(setter) not in COVERED]


def test_the_table_says_one_thing_of_each_callable():
    said = {}
    for _, function, (kind, _) in _settings.rows():
        if function is not None:
            assert said.setdefault(id(function), kind) == kind, function
    assert {"asked", "question", "setter", "setting", "state"} <= set(said.values())


@pytest.mark.parametrize(
    "function", [C._set_nnpack_enabled, C._set_warnAlways, C._jit_set_profiling_mode]
)
def test_a_setter_without_a_row_ends_the_trace(function):
    assert id(function) not in {id(known) for known, _, _ in _callables.rows()}
    with pytest.raises(stator.Unsupported, match=function.__name__):
        stator.compile(lambda x: (function(True), x * 2), fullgraph=True)(torch.ones(1))
