"""Function transforms and forward-mode differentiation (src/torch/levels.h): the functions of
torch's that enter and leave levels, that wrap tensors for them, and that set state around them."""

from typing import Any

from stator._rows import Named, Rows, words
from stator._versions import private

# What enters a level and what leaves it; extra: which kind of level.
_LEVELS: Rows = (
    ("enter_level", "vmap", """
        torch._functorch.predispatch._vmap_increment_nesting
        torch._C._functorch._vmap_increment_nesting
     """),
    ("exit_level", "vmap", """
        torch._functorch.predispatch._vmap_decrement_nesting
        torch._C._functorch._vmap_decrement_nesting
     """),
    ("enter_level", "grad", "torch._C._functorch._grad_increment_nesting"),
    ("exit_level", "grad", "torch._C._functorch._grad_decrement_nesting"),
    ("enter_level", "jvp", """
        torch._functorch.predispatch._jvp_increment_nesting
        torch._C._functorch._jvp_increment_nesting
     """),
    ("exit_level", "jvp", """
        torch._functorch.predispatch._jvp_decrement_nesting
        torch._C._functorch._jvp_decrement_nesting
     """),
    ("enter_level", "dual", """
        torch._functorch.predispatch._enter_dual_level torch._C._enter_dual_level
     """),
    ("exit_level", "dual", """
        torch._functorch.predispatch._exit_dual_level torch._C._exit_dual_level
     """),
    # Done for real, too: what torch does for a level may need it.
    ("level_load", None, """
        torch._functorch.predispatch.lazy_load_decompositions
        torch.autograd.forward_ad._maybe_load_decompositions
     """),
    # Tensors into those of a level, and back.
    ("level_call", False, """
        torch._functorch.predispatch._add_batch_dim torch._functorch.predispatch._remove_batch_dim
        torch._functorch.predispatch._unwrap_for_grad torch._C._functorch._add_batch_dim
        torch._C._functorch._remove_batch_dim torch._C._functorch._unwrap_for_grad
        torch._C._functorch._wrap_for_grad torch._C._functorch._unwrap_batched
     """),
    # The same, and gradients of a level, by functions that function modes are asked of.
    ("level_call", True, """
        torch._functorch.eager_transforms._set_tensor_requires_grad
        torch._functorch.eager_transforms._autograd_grad
        torch._functorch.predispatch._make_dual torch._functorch.predispatch._unpack_dual
     """),
    # Of tensors: asked of their fakes.
    ("operation", None, """
        torch._C._functorch.is_batchedtensor torch._C._functorch.is_gradtrackingtensor
        torch._C._functorch.is_functorch_wrapped_tensor torch._C._functorch.maybe_get_level
        torch._C._functorch.maybe_get_bdim
     """),
)  # fmt: skip

# What older versions call by themselves, without the functions of `predispatch`.
_DUALS: Rows = (("level_call", True, "torch._make_dual torch._unpack_dual"),)

# Settings that transforms change for a while, and what tells each.
_SETTINGS = (
    (
        "torch._C._functorch.get_inplace_requires_grad_allowed",
        "torch._C._functorch.set_inplace_requires_grad_allowed",
    ),
    ("torch._C._is_fwd_grad_enabled", "torch._C._set_fwd_grad_enabled"),
    (
        "torch._C._autograd._saved_tensors_hooks_get_disabled_error_message",
        """torch._C._autograd._saved_tensors_hooks_disable
           torch._C._autograd._saved_tensors_hooks_enable""",
    ),
)


def rows() -> list[Named]:
    old = private.find("torch._functorch.predispatch._make_dual") is None
    found = [(path, private.find(path), (kind, extra))
             for kind, extra, names in (*_LEVELS, *(_DUALS if old else ()))
             for path in words(names)]  # fmt: skip
    for asks, sets in _SETTINGS:
        getter = private.find(asks)
        if getter is None:
            continue
        found.append((asks, getter, ("asked", asks)))
        found += [(path, private.find(path), ("level_set", getter)) for path in words(sets)]
    return found


# -- what is on --

Levels = tuple[int, bool, str | None, bool, bool]


def _is_dual() -> bool:
    """Torch has one level of forward-mode differentiation, and nothing that tells of it."""
    try:
        private.exit_dual_level(private.enter_dual_level())
    except RuntimeError:
        return True
    return False


def levels_now() -> Levels:
    return (
        private.level_depth(),
        _is_dual(),
        private.saved_hooks_message(),
        private.inplace_requires_grad_allowed(),
        private.fwd_grad_enabled(),
    )


def put_levels_back(before: Levels) -> None:
    """Leaves what was entered since `levels_now` gave this, and sets what it says."""
    depth, dual, message, inplace, forward = before
    while private.level_depth() > depth:
        private.leave_level[private.peek_interpreter_stack().key()]()
    if not dual and _is_dual():
        private.exit_dual_level(0)
    if message is None:
        private.enable_saved_hooks()
    else:
        private.disable_saved_hooks(message)
    private.allow_inplace_requires_grad(inplace)
    private.set_fwd_grad_enabled(forward)


def maybe_get_level(tensor: Any) -> int:
    return int(private.maybe_get_level(tensor))


# Give back their argument, and later uses go on referring to that, as in Dynamo's graphs.
COPYING = frozenset({private.set_tensor_requires_grad})

# What the engine calls by name.
GLUE = (levels_now, put_levels_back, maybe_get_level)
HELPERS = (_is_dual,)
