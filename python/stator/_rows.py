"""What becomes of a call of torch's callables, as rows of text: kind (src/torch/kinds.def), extra,
the names of the callables. `{}` in an extra is the callable's name. `_callables` finds the
callables in this torch; a name that this torch does not have is a line in the log. Rows that need
functions stand beside those, in `_instead`, `_function` and `_state`; rows of what asks for or sets
torch's state are in `_settings`.
"""

from typing import Any

Row = tuple[str, Any]  # kind, extra
Rows = tuple[tuple[str, Any, str], ...]  # kind, extra, names


def words(text: str) -> list[str]:
    return text.split()


# -- methods of tensors --

_VALUE = "a tensor's memory or value is asked for"
_EFFECTS = "a tensor method that has effects beyond tensors"

METHODS: Rows = (
    ("iterate", None, "__iter__"),
    ("offset", "{}", "storage_offset"),
    ("stride", "{}", "stride dim_order"),
    ("hook", True, "register_hook"),
    ("hook", "leaf", "register_post_accumulate_grad_hook"),
    ("hook", False, "retain_grad"),
    ("detach", "{}", "detach_"),
    ("value", ("NUMPY", "Tensor.{}"), "numpy __array__"),
    ("value", ("TOLIST", "Tensor.{}"), "tolist"),
    ("value", _VALUE, """
        data_ptr __array_wrap__ __dlpack__ __contains__ __dlpack_device__ __format__ __repr__
        __hash__ __dir__ const_data_ptr _use_count is_set_to _is_view is_shared is_pinned
     """),
    ("refused", ("BACKWARD", "Tensor.{}"), "backward"),
    ("refused", ("SAVE", "Tensor.{}"), "__reduce_ex__"),
    ("refused", _EFFECTS, """
        requires_grad_ set_ resize_ resize resize_as_ resize_as share_memory_ pin_memory storage
        untyped_storage _typed_storage storage_type apply_ map_ map2_ __deepcopy__
        _reduce_ex_internal __setstate__ module_load reinforce as_subclass _make_subclass
        _fix_weakref record_stream _view_func _view_func_unsafe _rev_view_func_unsafe new type
        _clear_non_serializable_cached_data _dtensor__new__ _make_wrapper_subclass rename rename_
        refine_names align_to align_as has_names to_sparse to_sparse_coo to_sparse_csr
        to_sparse_csc to_sparse_bsr to_sparse_bsc to_mkldnn sparse_resize_
        sparse_resize_and_clear_ __delitem__
     """),
)  # fmt: skip

# Attributes of tensors that are getsets; others stop the trace.
ATTRIBUTES: tuple[tuple[str, str], ...] = (
    ("fold", """
        shape dtype device layout ndim itemsize nbytes is_cpu is_cuda is_ipu is_maia is_meta
        is_mkldnn is_mps is_mtia is_nested is_quantized is_sparse is_sparse_csr is_vulkan is_xla
        is_xpu _has_symbolic_sizes_strides names
     """),
    ("node", "T H mT mH real imag"),
    ("grad", "grad _grad"),
    ("value", "_version _cdata"),
    ("needs gradient", "requires_grad"),
    ("leaf", "is_leaf"),
    ("no history", "grad_fn"),
    ("no record", "retains_grad"),
)  # fmt: skip


# -- functions --

FUNCTIONS: Rows = (
    # Functions of their arguments alone, which are plain values.
    ("plain", "{}", """
        torch.device torch.Size torch.iinfo torch.promote_types torch.can_cast
        torch._C._nn._parse_to
     """),
    ("overrides", "{}", """
        torch._C._has_torch_function torch._C._has_torch_function_unary
        torch._C._has_torch_function_variadic
     """),
    # So in a trace, which is none while another tracer of torch's is on.
    ("while_traced", False, "torch.jit.is_tracing torch.onnx.is_in_onnx_export"),
    # Answered otherwise than in eager.
    ("compiling", True, """
        torch.compiler.is_compiling torch.compiler.is_dynamo_compiling
        torch._dynamo.external_utils.is_compiling torch._utils.is_compiling
        torch._dynamo.eval_frame._is_in_optimized_module
        torch.nn.modules.activation._is_make_fx_tracing
     """),
    ("constant", False, "torch.jit.is_scripting torch._jit_internal.is_scripting"),
    ("constant", None, """
        torch._C._log_api_usage_once torch._C._log_api_usage_metadata
        torch._dynamo.mutation_guard.GenerationTracker.tag.__func__
     """),  # the last one is stock Dynamo's own
    ("unhook", None, "torch.utils.hooks.RemovableHandle.remove"),
    ("module_get", None, "torch.nn.Module.__getattr__"),
    ("derived", ("BACKWARD", "{}"), "torch.autograd.grad"),
    ("refused", ("BACKWARD", "{}"), "torch.autograd.backward"),
    ("refused", ("SAVE", "{}"), "torch.save torch.load"),
    ("refused", ("NUMPY", "{}"), "torch.from_numpy"),
    ("refused", "{}", """
        torch.Tensor torch._C.TensorBase torch.frombuffer torch.from_dlpack
        torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pad_packed_sequence
     """),
)  # fmt: skip
