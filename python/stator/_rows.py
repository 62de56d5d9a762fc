"""What becomes of a call of torch's callables, as rows of text: kind (src/torch/kinds.def), extra,
the names of the callables. `{}` in an extra is the callable's name. `_callables` finds the
callables in this torch; a name that this torch does not have is a line in the log. Rows that need
functions stand beside those, in `_instead`, `_function` and `_state`; rows of what asks for or sets
torch's state come from the table in `_settings`.
"""

from typing import Any

Row = tuple[str, Any]  # kind, extra
Named = tuple[str, Any, Row]  # where a callable lies, the callable or None
Rows = tuple[tuple[str, Any, str], ...]  # kind, extra, names


def words(text: str) -> list[str]:
    return text.split()


# -- methods of tensors --

_VALUE = "a tensor's memory or value is asked for"
_EFFECTS = "a tensor method that has effects beyond tensors"

# A method of C that is not here is a node if the schema of its operator says what it does.
METHODS: Rows = (
    ("method", "{}", """
        __abs__ __add__ __bool__ __complex__ __div__ __eq__ __float__ __floordiv__ __ge__
        __getitem__ __gt__ __iadd__ __idiv__ __ifloordiv__ __imod__ __imul__ __index__
        __int__ __invert__ __ipow__ __isub__ __itruediv__ __le__ __len__ __long__ __lt__
        __matmul__ __mod__ __mul__ __ne__ __neg__ __nonzero__ __pos__ __pow__ __radd__
        __rand__ __rdiv__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__
        __rmul__ __ror__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __rxor__ __setitem__
        __sub__ __truediv__
     """),
    ("method", "{}", """
        bfloat16 bool byte cdouble cfloat char cpu cuda double float half int ipu long mtia
        new_tensor short xpu
     """),  # their operators have other names
    ("method", "{}", """
        _dimI _dimV _is_zerotensor _nnz allclose dense_dim dim element_size equal get_device
        is_coalesced is_complex is_conj is_distributed is_floating_point
        is_inference is_neg is_nonzero is_same_size is_signed item ndimension nelement numel
        q_per_channel_axis q_scale q_zero_point size sparse_dim
     """),  # give no tensors
    ("method", "{}", """
        cholesky eig index istft lstsq lu norm qr solve split stft symeig
        unflatten unique unique_consecutive
     """),  # Python functions that Dynamo puts into graphs as they are
    ("iterate", None, "__iter__"),
    ("offset", "{}", "storage_offset"),
    ("stride", "{}", "stride"),
    ("laid_out", "{}", "is_contiguous"),
    ("contiguous", "{}", "contiguous"),
    ("hook", True, "register_hook"),
    ("hook", "leaf", "register_post_accumulate_grad_hook"),
    ("hook", False, "retain_grad"),
    ("detach", "{}", "detach_"),
    ("to_array", ("NUMPY", "Tensor.{}"), "numpy"),
    ("value", ("NUMPY", "Tensor.{}"), "__array__"),
    ("value", _VALUE, """
        data_ptr __array_wrap__ __dlpack__ __contains__ __dlpack_device__ __format__ __repr__
        __hash__ __dir__ const_data_ptr _use_count is_set_to _is_view is_shared is_pinned
     """),
    ("refused", ("SAVE", "Tensor.{}"), "__reduce_ex__"),
    ("refused", "Tensor.{}, which gives a tensor other memory",
     "set_ resize_ resize resize_as_ resize_as"),
    ("refused", _EFFECTS, """
        requires_grad_ share_memory_ pin_memory storage untyped_storage
        _typed_storage storage_type apply_ map_ map2_ __deepcopy__
        _reduce_ex_internal __setstate__ module_load reinforce
        _fix_weakref record_stream _view_func _view_func_unsafe _rev_view_func_unsafe new type
        _clear_non_serializable_cached_data _dtensor__new__ _make_wrapper_subclass rename rename_
        refine_names align_to align_as _update_names has_names to_sparse to_sparse_coo to_sparse_csr
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


# Operators whose kernels lay the result out otherwise than torch's fakes say, where an operand does
# not lie in memory row by row; `name:keyword` only if that keyword is given. What is named by its
# place stands there alone. tests/tensor/fake_strides.py measures them.
UNLIKE_FAKES = """
    _batch_norm_impl_index _batch_norm_with_update _native_batch_norm_legit batch_norm
    native_batch_norm all any binary_cross_entropy channel_shuffle native_channel_shuffle copysign
    div:rounding_mode divide:rounding_mode floor_divide floordiv __floordiv__ __rfloordiv__
    heaviside lcm ldexp log_sigmoid logaddexp logical_and logical_or logical_xor logsigmoid
    max_pool1d max_pool1d_with_indices max_unpool2d native_dropout_backward normal one_hot pad
    reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d roll rrelu rrelu_with_noise torch.fft.fftshift torch.fft.ifftshift
    torch.special.xlog1py torch.special.xlogy xlogy
"""


# -- functions --

# A C function that makes tensors and is not here is a node if the schema of its operator says what
# it does.
FUNCTIONS: Rows = (
    ("operation", None, """
        torch.dsmm torch.hsmm torch.saddmm torch.spmm
     """),  # without an operator of their name
    ("operation", None, """
        torch._choose_qparams_per_tensor torch._debug_has_internal_overlap
        torch._has_compatible_shallow_copy_type torch._is_zerotensor torch.allclose
        torch.equal torch.get_device torch.is_complex torch.is_conj torch.is_distributed
        torch.is_floating_point torch.is_inference torch.is_neg torch.is_nonzero
        torch.is_same_size torch.is_signed torch.numel torch.q_per_channel_axis
        torch.q_scale torch.q_zero_point torch.result_type
     """),  # give no tensors: answered by fakes, whatever torch's state
    ("operation", None, """
        torch._assert_async torch._assert_scalar torch._assert_tensor_metadata
        torch._linalg_check_errors torch._validate_compressed_sparse_indices
        torch._validate_sparse_bsc_tensor_args torch._validate_sparse_bsr_tensor_args
        torch._validate_sparse_compressed_tensor_args torch._validate_sparse_coo_tensor_args
        torch._validate_sparse_csc_tensor_args torch._validate_sparse_csr_tensor_args
        torch.sym_constrain_range torch.sym_constrain_range_for_size
     """),  # give nothing: raise, or not
    # What they give, or what it belongs to, is nothing that a trace knows: sparse tensors,
    # nested ones that are not jagged, forward-mode differentiation, files.
    ("refused", "{}", """
        torch._fw_primal_copy torch._make_dual torch._make_dual_copy
        torch._nested_compute_contiguous_strides_offsets torch._nested_from_padded
        torch._nested_from_padded_and_nested_example torch._nested_get_values_copy
        torch._nested_tensor_from_mask torch._nested_tensor_from_tensor_list
        torch._nested_tensor_softmax_with_shape torch._nested_view_from_buffer
        torch._nested_view_from_buffer_copy torch._nested_view_from_jagged_copy
        torch._resize_output_ torch._sparse_broadcast_to torch._sparse_broadcast_to_copy
        torch._sparse_csr_prod torch._sparse_csr_sum
        torch._sparse_log_softmax_backward_data torch._sparse_semi_structured_addmm
        torch._sparse_semi_structured_apply torch._sparse_semi_structured_apply_dense
        torch._sparse_semi_structured_linear torch._sparse_semi_structured_mm
        torch._sparse_semi_structured_tile torch._sparse_softmax_backward_data
        torch._sparse_sparse_matmul torch._sparse_sum torch._unpack_dual torch.from_file
        torch.sparse_bsc_tensor torch.sparse_bsr_tensor torch.sparse_compressed_tensor
        torch.sparse_coo_tensor torch.sparse_csc_tensor torch.sparse_csr_tensor
     """),
    # Functions of their arguments alone, which are plain values.
    ("plain", "{}", """
        torch.device torch.iinfo torch.promote_types torch.can_cast
        torch._C._nn._parse_to
     """),
    ("size", "{}", "torch.Size"),
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
    ("initialise", "{}", "torch.nn.modules.lazy.LazyModuleMixin._infer_parameters"),
    ("refused", ("BACKWARD", "{}"), "torch.autograd.backward"),
    ("refused", ("SAVE", "{}"), "torch.save torch.load"),
    ("of_array", ("NUMPY", "{}"), "torch.from_numpy"),
    ("of_array", None, "torch.as_tensor torch.asarray"),
    ("of_array", True, "torch.tensor"),
    ("refused", "{}", """
        torch.Tensor torch._C.TensorBase torch.frombuffer torch.from_dlpack
        torch.nn.utils.rnn.pack_padded_sequence torch.nn.utils.rnn.pad_packed_sequence
        torch.Tensor._make_subclass
     """),
)  # fmt: skip

# Python functions that are nodes, since Dynamo puts them into graphs as they are: their module, and
# their names. Other Python functions of torch's are interpreted.
WHOLE: tuple[tuple[str, str], ...] = (
    ("torch", """
        eig lstsq matrix_rank solve symeig
     """),
    ("torch._linalg_utils", """
        basis bform get_floating_dtype is_sparse matmul qform symeig
     """),
    ("torch._lowrank", """
        _svd_lowrank get_approximate_basis
     """),
    ("torch.functional", """
        _check_list_size _consecutive_return_counts _consecutive_return_inverse
        _consecutive_return_inverse_false _consecutive_return_inverse_true
        _consecutive_return_output _lu_impl _lu_no_infos _lu_with_infos _meshgrid
        _return_counts _return_inverse _return_inverse_false _return_inverse_true
        _return_output _unique_consecutive_impl _unique_impl _unravel_index align_tensors
        atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors
        cartesian_prod cdist chain_matmul einsum lu meshgrid norm pca_lowrank split stft
        svd_lowrank tensordot unique unique_consecutive unravel_index
     """),
    ("torch.masked._ops", """
        _any _canonical_dim _combine_input_and_mask _input_mask _output_mask
        _reduction_identity _sparse_coo_flatten_indices _sparse_coo_scatter_reduction_helper
        _sparse_coo_where _sparse_csr_segment_reduction_helper _sparse_csr_where _std_var
        _where amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean
        median norm normalize prod softmax softmin std sum var
     """),
    ("torch.nn.functional", """
        adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool1d_with_indices adaptive_max_pool2d
        adaptive_max_pool2d_with_indices adaptive_max_pool3d
        adaptive_max_pool3d_with_indices affine_grid alpha_dropout assert_int_or_pair
        batch_norm binary_cross_entropy binary_cross_entropy_with_logits celu
        cosine_embedding_loss cross_entropy ctc_loss dropout dropout1d dropout2d dropout3d
        elu embedding embedding_bag feature_alpha_dropout fold fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gaussian_nll_loss glu grid_sample group_norm
        gumbel_softmax hardsigmoid hardswish hardtanh hinge_embedding_loss huber_loss
        instance_norm interpolate kl_div l1_loss layer_norm leaky_relu local_response_norm
        log_softmax lp_pool1d lp_pool2d margin_ranking_loss max_pool1d
        max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool3d
        max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d mish mse_loss
        multi_head_attention_forward multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss nll_loss normalize poisson_nll_loss relu relu6 rrelu
        selu sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin softsign tanh
        tanhshrink triplet_margin_loss unfold upsample upsample_bilinear upsample_nearest
     """),
    ("torch.signal.windows.windows", """
        _window_function_checks bartlett blackman cosine exponential gaussian general_cosine
        general_hamming hamming hann kaiser nuttall
     """),
)  # fmt: skip
