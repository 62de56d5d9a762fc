"""Operators that take functions. Each has a Python function here that a trace interprets in its
place: it calls the program's functions as bodies (`_body`), checks what they gave, and records the
operator's node (`_call`).

In the arguments of a node texts stand for what only the engine has: "<body 0>" for the first body,
"<lifted 0>" for the tensors from outside that it uses, one argument for each. The functions that do
nothing here are rows of the engine's table. They are called in traces only, since a break in here
is a break before the operator.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint

from stator import _engine
from stator._rows import Row
from stator._versions import private

# -- what the engine does --


def _open(*reachable: Any) -> None:
    """A body begins, which can change what these lead to."""
    raise NotImplementedError


def _close(result: Any) -> None:
    raise NotImplementedError


def _drop() -> None:
    """The operator ends with an exception."""
    raise NotImplementedError


def _effects() -> int:
    """Those of the last body: bits of the engine's `node_effects`."""
    raise NotImplementedError


def _keep(name: str, value: Any) -> None:
    """Puts the object of a recipe into the last body's `meta`."""
    raise NotImplementedError


def _replayed() -> bool:
    """Whether the graph is run as it is, and no backend sees it."""
    raise NotImplementedError


def _is_overridden() -> bool:
    """Whether function modes are on, or torch asks no classes."""
    raise NotImplementedError


def _asked_for_gradients() -> bool:
    """Whether the open body has asked whether gradients are recorded."""
    raise NotImplementedError


def _writes() -> bool:
    """Whether the last body may have written to a tensor from outside of it."""
    raise NotImplementedError


def _uses_others(*given: Any) -> bool:
    """Whether the last body uses a tensor that it finds by itself, and that has a history of
    gradients."""
    raise NotImplementedError


def _input(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor that the operator gives to the open body: like what the function makes of fakes."""
    raise NotImplementedError


def _bare() -> None:
    """The last body gives its one tensor, and no tuple."""
    raise NotImplementedError


def _new(target: Any, stems: tuple[str, ...], function: Any, *args: Any) -> Any:
    """Records the node, which gives new tensors, like what the function makes of fakes."""
    raise NotImplementedError


def _leave(result: Any) -> Any:
    """The operator ends without a node of its own."""
    raise NotImplementedError


def _call(result: Any, target: Any, stems: tuple[str, ...], *args: Any, **kwargs: Any) -> Any:
    """Records the node. From then on the tensors in `result` are what it gives."""
    raise NotImplementedError


def _for_real(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError


def _body(function: Any, args: Any, kwargs: Any, check: Any = None) -> Any:
    """Calls the function as a body. `check(args, result)` says whether it may be one."""
    _open(function, args, kwargs)
    try:
        result = function(*args, **kwargs)
    except BaseException:
        _drop()
        raise
    if check is not None and not check(args, result):
        return _for_real(function)
    _close(result)
    return result


_RANDOM = 4

# -- checkpoint --

_CHECKPOINT = frozenset(
    {"use_reentrant", "context_fn", "determinism_check", "debug", "early_stop",
     "preserve_rng_state"}
)  # fmt: skip


def _recomputes_otherwise(own: dict[str, Any]) -> bool:
    """Whether what a backend makes of the region would do other things than plain Python, which
    runs the function once more: it writes twice, and may draw other numbers."""
    if torch.is_grad_enabled() and _writes():
        return True
    return bool(_effects() & _RANDOM) and not own.get("preserve_rng_state", True)


def _is_like_reentrant(args: Any, result: Any) -> bool:
    """Whether the reentrant kind gives the same: one tensor, or a tuple, whose tensors require
    gradients if one of its own arguments does. It runs the function without gradients first, and
    then once more with them."""
    if _asked_for_gradients():
        return False
    records = torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in args
    )
    items = result if type(result) is tuple else (result,)
    for item in items:
        if not isinstance(item, torch.Tensor):
            return False
        differs = item.is_floating_point() or item.is_complex()
        if item.requires_grad != (records and differs) or any(item is value for value in args):
            return False
    return True


_MADE: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": dict,
    "partial": lambda parts: functools.partial(parts[0], *parts[1], **parts[2]),
}


def recipe(o: Any) -> Any:
    """How `made` gets an equal object: selective checkpoints are partials over lists and sets of
    operators, which programs like to make anew for each call."""
    if type(o) is functools.partial:
        return "partial", recipe(o.func), recipe(o.args), recipe(o.keywords)
    if type(o) is dict:
        return "dict", *[recipe(item) for item in o.items()]
    if type(o) in (list, tuple, set, frozenset):
        return type(o).__name__, *[recipe(item) for item in o]
    return o


def made(given: Any) -> Any:
    """The object of a recipe. The engine calls this while it traces, with real objects."""
    if type(given) is not tuple:
        return given
    return _MADE[given[0]]([made(part) for part in given[1:]])


def _checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
    own = {name: value for name, value in kwargs.items() if name in _CHECKPOINT}
    given = {name: value for name, value in kwargs.items() if name not in _CHECKPOINT}
    context = own.pop("context_fn", private.no_context)
    reentrant = own.get("use_reentrant")
    if reentrant is not False and (
        reentrant is not True or given or context is not private.no_context or own.get("debug")
    ):
        return _for_real(function)
    if torch.is_grad_enabled() and _is_overridden():  # the backward pass may run without the modes
        return _for_real(function)
    result = _body(function, args, given, _is_like_reentrant if reentrant else None)
    if context is not private.no_context:
        _keep("_checkpoint_context_fn", recipe(context))
    if _replayed():
        tensors = tuple(value for value in args if isinstance(value, torch.Tensor))
        return _call(
            result, _run_checkpoint, ("wrap_body",), "<body 0>", tensors, ("<lifted 0>",), **own
        )
    if _recomputes_otherwise(own) or (reentrant and _uses_others(*args)):
        return _for_real(function)
    return _call(result, private.tag_checkpoint, ("wrap_body",), "<body 0>", "<lifted 0>", **own)


def _run_checkpoint(
    body: _engine.Graph, given: tuple[Any, ...], values: tuple[Any, ...], **own: Any
) -> Any:
    """What a replay calls: torch's own. It treats the tensors that it is given otherwise than those
    that the function finds by itself."""
    if body.meta:
        own["context_fn"] = body.meta["_checkpoint_context_fn"]
    places = [next((i for i, tensor in enumerate(given) if tensor is value), None)
              for value in values]  # fmt: skip

    def region(*given: Any) -> Any:
        pairs = zip(places, values, strict=True)
        return body(*[value if i is None else given[i] for i, value in pairs])

    return torch.utils.checkpoint.checkpoint(region, *given, **own)


OWN_FILE = _body.__code__.co_filename  # its frames are not shown, and its variables name nothing

# -- rows --

_PRIMITIVES: tuple[tuple[Any, Row], ...] = (
    (_open, ("body_open", None)),
    (_close, ("body_close", None)),
    (_drop, ("body_drop", None)),
    (_effects, ("body_effects", None)),
    (_keep, ("body_meta", None)),
    (_replayed, ("replayed", None)),
    (_is_overridden, ("overridden", None)),
    (_asked_for_gradients, ("body_asked", None)),
    (_writes, ("body_writes", None)),
    (_uses_others, ("body_others", None)),
    (_call, ("body_call", None)),
    (_input, ("body_input", None)),
    (_bare, ("body_bare", None)),
    (_new, ("body_new", None)),
    (_leave, ("body_leave", None)),
    (_for_real, ("refused", ("HIGHER_ORDER", "a body for which plain Python does something else"))),
)

ROWS: tuple[tuple[Any, Row], ...] = (
    *_PRIMITIVES,
    (torch.utils.checkpoint.checkpoint, ("higher", ("checkpoint", _checkpoint))),
)
