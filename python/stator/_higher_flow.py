"""Operators of control flow: torch.cond, while_loop, scan, map. They give their bodies tensors of
their own (slices, carries), and give tensors that torch's operator makes.

The functions here are interpreted by a trace in place of torch's, as those in `_higher`. What torch
refuses in a body breaks before the operator: torch's own then runs, and raises what it raises.
"""

import types
from typing import Any

import torch

from stator import _engine
from stator._higher import (
    _bare,
    _close,
    _for_real,
    _is_overridden,
    _leave,
    _open,
    _replayed,
    _writes,
)
from stator._rows import Row
from stator._versions import private

tree_flatten, tree_unflatten = private.tree_flatten, private.tree_unflatten

# -- what the engine does --


def _given(tensor: Any, sliced: bool) -> Any:
    """A tensor that the open body is given: one like this, or like its first slice."""
    raise NotImplementedError


def _listed() -> None:
    """The last body gives a list."""
    raise NotImplementedError


def _unite(first: str, second: str) -> None:
    """Both bodies take the tensors that either uses. The suffixes are for those of one alone."""
    raise NotImplementedError


def _shares(*tensors: Any) -> bool:
    """Whether these results of the last body share memory with each other or with what it was
    given, or are none of its own."""
    raise NotImplementedError


def _alike(a: Any, b: Any) -> bool:
    """Whether they have the same sizes, strides, dtype and device."""
    raise NotImplementedError


def _overlaps(*operands: Any) -> bool:
    """Whether tensors from outside that the last body uses share memory with each other, or with
    these operands."""
    raise NotImplementedError


def _needs(*others: Any) -> bool:
    """Whether torch's operator would record gradients."""
    raise NotImplementedError


def _results(target: Any, stems: tuple[str, ...], like: Any, needs: bool, *args: Any) -> Any:
    """Records the node. It gives tensors like those of `like`, pairs (tensors, count or None); with
    a count each is stacked so many times."""
    raise NotImplementedError


def _within(name: str) -> bool:
    """Whether a call of the operator of this name is around this one."""
    raise NotImplementedError


def _written(function: Any) -> Any:
    """A break before the operator: the body writes to a tensor from outside of it."""
    raise NotImplementedError


# -- bodies --


def _call_body(function: Any, args: Any) -> Any:
    """What torch raises for a body that raises is torch's own."""
    try:
        return function(*args)
    except Exception:
        return _for_real(function)


def _end_body(function: Any, tensors: Any) -> None:
    """Ends the body. What it gives are tensors of its own, and it writes to nobody else's."""
    _close(tensors)
    if _writes():
        _written(function)
    if _shares(*tensors):
        _for_real(function)


def _are_tensors(leaves: Any) -> bool:
    return all(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _are_alike(leaves: Any, others: Any) -> bool:
    if len(leaves) != len(others):
        return False
    return all(_alike(leaf, other) for leaf, other in zip(leaves, others, strict=True))


def _refused(*functions: Any) -> bool:
    """What holds for all: modes are not asked in bodies, bodies are callables, and AOTAutograd does
    not know these operators in regions that are recomputed."""
    for function in functions:  # a question by which the class of tensors passes the door
        if isinstance(function, torch.Tensor) or not callable(function):
            return True
    if _is_overridden():
        return True
    return not _replayed() and torch.is_grad_enabled() and _within("checkpoint")


def _loses_gradients(tensors: Any, needs: bool) -> bool:
    """Torch's operators cannot differentiate beside results without a gradient."""
    return needs and not all(_is_differentiable(tensor) for tensor in tensors)


def _is_differentiable(tensor: Any) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


# -- cond --


def _branch(function: Any, operands: Any) -> Any:
    _open(function, operands)
    result = _call_body(function, operands)
    leaves, spec = tree_flatten(result)
    tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
    _end_body(function, tensors)
    return leaves, tensors, spec


def _are_same(first: Any, second: Any, needs: bool) -> bool:
    """Whether what is no tensor is the same in both: integers, if no gradients are recorded."""
    for a, b in zip(first, second, strict=True):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            continue
        if type(a) is not int or type(b) is not int or a != b or needs:
            return False
    return True


exporting = False  # set by _export: an exported graph has to decide by sizes for itself


def _cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    if isinstance(pred, (bool, int, float)):
        if exporting:
            return _for_real(pred)
        _leave(None)
        return true_fn(*operands) if pred else false_fn(*operands)
    if not isinstance(pred, torch.Tensor) or pred.numel() != 1 or _refused(true_fn, false_fn):
        return _for_real(pred)
    if not isinstance(operands, (tuple, list)) or not _are_tensors(tree_flatten(operands)[0]):
        return _for_real(pred)
    leaves, tensors, spec = _branch(true_fn, operands)
    others, other_tensors, other_spec = _branch(false_fn, operands)
    _unite("true_branch", "false_branch")
    needs = _needs(pred)
    if spec != other_spec or len(leaves) != len(others) or not _are_same(leaves, others, needs):
        return _for_real(pred)
    if not _are_alike(tensors, other_tensors) or _loses_gradients(tensors, needs) or _overlaps():
        return _for_real(pred)
    made = iter(
        _results(
            _run_cond if _replayed() else private.cond_op,
            ("cond_true", "cond_false"),
            ((tensors, None),),
            needs,
            pred,
            "<body 0>",
            "<body 1>",
            ("<lifted 0>",),
        )
    )
    return tree_unflatten(
        [next(made) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec
    )


def _run_cond(
    pred: torch.Tensor, true: _engine.Graph, false: _engine.Graph, operands: tuple[Any, ...]
) -> Any:
    """What a replay calls: torch's own where gradients are recorded."""
    if torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in (pred, *operands)
    ):
        return private.cond_op(pred, true, false, operands)
    return true(*operands) if pred else false(*operands)


# -- while_loop --


def _while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
    if _refused(cond_fn, body_fn):
        return _for_real(cond_fn)
    carried, spec = tree_flatten((carried_inputs, ()))
    if not _are_tensors(carried):
        return _for_real(cond_fn)
    _open(cond_fn, carried_inputs)
    given, _ = tree_unflatten([_given(tensor, False) for tensor in carried], spec)
    goes_on = _call_body(cond_fn, given)
    if not isinstance(goes_on, torch.Tensor) or goes_on.dim() or goes_on.dtype is not torch.bool:
        return _for_real(cond_fn)
    _end_body(cond_fn, (goes_on,))
    _bare()
    _open(body_fn, carried_inputs)
    given, _ = tree_unflatten([_given(tensor, False) for tensor in carried], spec)
    results, result_spec = tree_flatten(_call_body(body_fn, given))
    if not _are_tensors(results):
        return _for_real(body_fn)
    _end_body(body_fn, tuple(results))
    if not _are_alike(results, carried):
        return _for_real(body_fn)
    _unite("cond_fn", "body_fn")
    if not _replayed() and _overlaps(*carried):  # AOTAutograd refuses it
        return _for_real(body_fn)
    made = _results(
        private.while_loop_op, ("cond_fn", "body_fn"), ((tuple(results), None),), _needs(*carried),
        "<body 0>", "<body 1>", tuple(carried), ("<lifted 0>",),
    )  # fmt: skip
    return tree_unflatten(list(made), result_spec)


def _while_loop_op(cond_fn: Any, body_fn: Any, carried_inputs: Any, additional_inputs: Any) -> Any:
    """What torch's `while_loop` calls where nothing is compiled."""
    if additional_inputs:
        return _for_real(cond_fn)
    return _while_loop(cond_fn, body_fn, carried_inputs)


# -- map --


def _map(f: Any, xs: Any, *args: Any) -> Any:
    mapped, spec = tree_flatten(xs)
    return _map_slices(
        f, mapped, (xs, args), lambda given: (tree_unflatten(list(given), spec), *args)
    )


def _map_op(f: Any, xs: Any, pos_args: Any) -> Any:
    """What torch's `map` calls where nothing is compiled."""
    return _map_slices(f, xs, pos_args, lambda given: (*given, *pos_args))


def _map_slices(f: Any, mapped: Any, reachable: Any, arguments: Any) -> Any:
    if _refused(f):
        return _for_real(f)
    if not mapped or not _are_tensors(mapped):
        return _for_real(f)
    counts = [tensor.shape[0] for tensor in mapped if tensor.dim()]
    if len(counts) < len(mapped) or counts[0] == 0 or any(n != counts[0] for n in counts):
        return _for_real(f)
    _open(f, mapped, reachable)
    given = [_given(tensor, True) for tensor in mapped]
    results, result_spec = tree_flatten(_call_body(f, arguments(given)))
    if not _are_tensors(results):
        return _for_real(f)
    _end_body(f, tuple(results))
    if _overlaps(*mapped):  # torch refuses it
        return _for_real(f)
    made = _results(
        private.map_op, ("map_body",), ((tuple(results), counts[0]),), _needs(*mapped),
        "<body 0>", list(mapped), ["<lifted 0>"],
    )  # fmt: skip
    return tree_unflatten(list(made), result_spec)


# -- scan --


def _scan_op(combine_fn: Any, init: Any, xs: Any, additional_inputs: Any) -> Any:
    """What torch's `scan` calls, which is interpreted itself."""
    if _refused(combine_fn) or additional_inputs:
        return _for_real(combine_fn)
    _open(combine_fn, init, xs)
    given = [_given(tensor, False) for tensor in init] + [_given(tensor, True) for tensor in xs]
    result = _call_body(combine_fn, given)
    if type(result) not in (tuple, list) or len(result) != 2:
        return _for_real(combine_fn)
    leaves, spec = tree_flatten(tuple(result))
    if not _are_tensors(leaves):
        return _for_real(combine_fn)
    _end_body(combine_fn, tuple(leaves))
    _listed()
    needs, count = _needs(*init, *xs), len(tree_flatten(result[0])[0])
    if not _are_alike(leaves[:count], init) or _loses_gradients(leaves, needs):
        return _for_real(combine_fn)
    if not _replayed() and _overlaps(*init, *xs):
        return _for_real(combine_fn)
    like = ((tuple(leaves[:count]), None), (tuple(leaves[count:]), xs[0].shape[0]))
    made = _results(
        private.scan_op, ("scan_combine_fn",), like, needs,
        "<body 0>", list(init), list(xs), ["<lifted 0>"],
    )  # fmt: skip
    return tree_unflatten(list(made), spec)


def _own_copy(function: Any) -> Any:
    """A function of torch's for which the engine has no row."""
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_torch_scan = _own_copy(private.scan)


def _scan(*args: Any, **kwargs: Any) -> Any:
    """Breaks in it are breaks before it."""
    try:
        result = _torch_scan(*args, **kwargs)
    except Exception:
        return _for_real(args)
    return _leave(result)


# -- associative_scan --


def _associative_scan_op(combine_fn: Any, xs: Any, additional_inputs: Any) -> Any:
    """What torch's `associative_scan` calls, which is interpreted itself."""
    if _refused(combine_fn) or additional_inputs:
        return _for_real(combine_fn)
    _open(combine_fn, xs)
    given = [_given(tensor, True) for tensor in (*xs, *xs)]
    results = tree_flatten(_call_body(combine_fn, given))[0]
    if not _are_tensors(results):
        return _for_real(combine_fn)
    _end_body(combine_fn, tuple(results))
    _listed()
    if not _are_alike(results, given[: len(xs)]):
        return _for_real(combine_fn)
    needs = _needs(*xs)
    if _loses_gradients(results, needs) or (not _replayed() and _overlaps(*xs)):
        return _for_real(combine_fn)
    made = _results(
        private.associative_scan_op, ("associative_scan_combine_fn",),
        ((tuple(results), xs[0].shape[0]),), needs, "<body 0>", list(xs), ("<lifted 0>",),
    )  # fmt: skip
    return list(made)


_torch_associative_scan = _own_copy(private.associative_scan)


def _associative_scan(*args: Any, **kwargs: Any) -> Any:
    """As `_scan`. A combination that is called on many slices at once has no body."""
    try:
        result = _torch_associative_scan(*args, **kwargs)
    except Exception:
        return _for_real(args)
    return _leave(result)


OWN_FILE = _cond.__code__.co_filename  # as _higher's

# -- rows --

_PRIMITIVES: tuple[tuple[Any, Row], ...] = (
    (_given, ("body_given", None)),
    (_listed, ("body_listed", None)),
    (_unite, ("body_unite", None)),
    (_shares, ("body_shares", None)),
    (_alike, ("body_alike", None)),
    (_overlaps, ("body_overlaps", None)),
    (_needs, ("body_needs", None)),
    (_results, ("body_results", None)),
    (_within, ("body_within", None)),
    (_written, ("refused", ("HIGHER_ORDER", "a body that changes what is outside of it"))),
)

ROWS: tuple[tuple[Any, Row], ...] = (
    *_PRIMITIVES,
    (torch.cond, ("higher", ("cond", _cond))),
    (private.cond_op, ("higher", ("cond", _cond))),
    (private.while_loop, ("higher", ("while_loop", _while_loop))),
    (private.while_loop_op, ("higher", ("while_loop", _while_loop_op))),
    (private.map, ("higher", ("map", _map))),
    (private.map_op, ("higher", ("map", _map_op))),
    (private.scan, ("higher", ("scan", _scan))),
    (private.scan_op, ("higher", ("scan", _scan_op))),
    (private.associative_scan, ("higher", ("associative_scan", _associative_scan))),
    (private.associative_scan_op, ("higher", ("associative_scan", _associative_scan_op))),
)
