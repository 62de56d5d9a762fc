"""Attention with functions of the program's (`flex_attention`), and the function mode under which
its functions run."""

import types
from typing import Any

import torch

from stator import _higher
from stator._rows import Row
from stator._versions import private

# -- subscripts under TransformGetItemToIndex --


def index(tensor: Any, key: Any) -> Any:
    """What a trace interprets in a subscript's place, where the program has the mode on."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return _higher._for_real(tensor)
    keys = key if isinstance(key, tuple) else (key,)
    indices = [
        torch.tensor(item, dtype=torch.int64, device=tensor.device)
        if isinstance(item, int)
        else item
        for item in keys
    ]
    return torch.ops.aten.index(tensor, indices)


def index_as_mode(tensor: Any, key: Any) -> Any:
    """What tells on fakes what a subscript gives, in a body that will run under the mode."""
    with private.IndexMode():
        return tensor[key]


# -- the operator --


class _History(torch.autograd.Function):
    """On fakes: the operator's results are computed of its arguments."""

    @staticmethod
    def forward(ctx: Any, results: tuple[Any, ...], *given: Any) -> Any:
        return tuple(
            torch.empty_strided(
                result.size(), result.stride(), dtype=result.dtype, device=result.device
            )
            for result in results
        )


def _results(
    query: Any, key: Any, value: Any, score: Any, block_mask: Any, scale: Any, options: Any,
    of_score: Any, of_mask: Any,
) -> Any:  # fmt: skip
    """What the operator gives on fakes. It does not call its functions there."""
    with torch.no_grad():
        *results, most = _flex_operator(
            query, key, value, score, block_mask, scale, options, of_score, of_mask
        )
    given = [tensor for tensor in (query, key, value, *of_score) if tensor.requires_grad]
    if given and torch.is_grad_enabled():
        results = _History.apply(results, *given)  # type: ignore[no-untyped-call]
    return *results, most


_SCALARS = ("child", "child_1", "child_2", "child_3", "child_4")
_INDICES = ({"dtype": torch.int32},) * 4


def _trace_body(function: Any, query: Any, *first: Any) -> None:
    """The body of a function that gets scalars: a score, perhaps, and four indices."""
    _higher._open(function)
    try:
        scalars = [
            _higher._input(name, torch.Tensor.new_empty, query, (), **kind)
            for name, kind in zip(_SCALARS, (*first, *_INDICES), strict=False)
        ]
        result = function(*scalars)
    except BaseException:
        _higher._drop()
        raise
    _higher._close(result)
    if not isinstance(result, torch.Tensor) or _higher._effects():
        _higher._for_real(function)
    _higher._bare()


def _operator(
    query: Any, key: Any, value: Any, score_mod: Any, block_mask: Any, scale: Any, options: Any,
    of_score: Any = (), of_mask: Any = (),
) -> Any:  # fmt: skip
    kinds = [type(tensor) for tensor in (query, key, value)]
    plain = all(kind is torch.Tensor or kind is torch.nn.Parameter for kind in kinds)
    if not plain or len(of_score) + len(of_mask) > 0:
        return _higher._for_real(score_mod)
    mask_mod = block_mask[-1]
    _trace_body(score_mod, query, {"requires_grad": query.requires_grad})
    _trace_body(_no_mask if mask_mod is None else mask_mod, query)
    return _higher._new(
        _flex_operator, ("score_mod", "mask_fn"), _results, query, key, value, "<body 0>",
        (*block_mask[:-1], "<body 1>"), scale, options, ("<lifted 0>",), ("<lifted 1>",),
    )  # fmt: skip


def _copy(function: Any) -> Any:
    """The function as one that has no row, and is interpreted."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    made.__kwdefaults__ = function.__kwdefaults__
    return made


# Torch's own, once the program has imported them.
_flex_attention: Any = None
_flex_operator: Any = None
_no_mask: Any = None


def _whole(*args: Any, **kwargs: Any) -> Any:
    """torch's function asks whether it is compiled, and goes another way then: a break in it must
    be one before it."""
    try:
        result = _flex_attention(*args, **kwargs)
    except BaseException:
        _higher._drop()
        raise
    return _higher._leave(result)


OWN_FILE = _whole.__code__.co_filename


def rows() -> tuple[tuple[Any, Row], ...]:
    """None as long as nobody has imported flex_attention."""
    global _flex_attention, _flex_operator, _no_mask
    if not private.has(private.FLEX):
        return ()
    function, _flex_operator, _no_mask = private.flex_parts()
    if _flex_attention is None:
        _flex_attention = _copy(function)
    return (
        (function, ("higher", ("flex_attention_call", _whole))),
        (_flex_operator, ("higher", ("flex_attention", _operator))),
    )
