"""Functions that `nonstrict_trace` has marked. A call is one node, whose code runs on fakes and is
traced by the backend, but not interpreted. `_call` is interpreted in the place of the call: it
takes the arguments apart as `torch.utils._pytree` does, so that the node gets tensors and plain
values, and puts what the node gives together again.

A tree is described by tuples of plain values, classes and objects from outside, which the engine
guards ("lasting"). What a marked function does beside computing is its author's affair, as torch's
documentation says.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stator._function import GIVEN
from stator._higher import _leave
from stator._rows import Row
from stator._versions import private

_PLAIN = (int, float, bool, complex, str, bytes, type(None))

# -- what the engine does --


def begin(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Called in the place of a marked function, which comes first."""
    return function(*args, **kwargs)


def _apply(function: Any, plan: Any, *values: Any) -> Any:
    """Records the node; gives its list, and the spec to put that together by."""
    raise NotImplementedError


def _refuse(why: str, what: Any) -> Any:
    raise NotImplementedError


def _manner(value: Any) -> str | None:
    """What the program has said of objects of this class: see `constant_manner`."""
    raise NotImplementedError


def _is_outside(value: Any) -> bool:
    """Whether the object was there before the trace."""
    raise NotImplementedError


# -- trees as tuples --

_AS_IT_IS, _LIST, _TUPLE, _DICT, _OBJECT, _FIELDS = range(6)


def _frozen(value: Any) -> Any:
    """What a spec holds beside its children: the keys of a dict, a class, a user's context."""
    if type(value) is list:
        return _LIST, tuple(_frozen(item) for item in value)
    if type(value) is tuple:
        return _TUPLE, tuple(_frozen(item) for item in value)
    if type(value) is dict:
        return _DICT, tuple((_frozen(key), _frozen(item)) for key, item in value.items())
    if type(value) in GIVEN or isinstance(value, type):
        return _AS_IT_IS, value
    if type(value) is private.ConstantNode:
        return _OBJECT, type(value), (("value", _object(value.value)),)
    return _object(value)


def _object(value: Any) -> Any:
    """An object of a class whose objects are constants: a new one that has the same attributes."""
    if _manner(value) != "value":
        return _refuse(
            "Invalid use of pytree_flatten with nonstrict_trace-ed function: "
            "the context has an object of class", type(value))  # fmt: skip
    return _OBJECT, type(value), tuple((name, _frozen(item)) for name, item in vars(value).items())


def _tree(spec: Any) -> Any:
    return spec.type, _frozen(spec._context), tuple(_tree(child) for child in spec._children)


def _thawed(frozen: Any) -> Any:
    kind = frozen[0]
    if kind == _LIST:
        return [_thawed(item) for item in frozen[1]]
    if kind == _TUPLE:
        return tuple(_thawed(item) for item in frozen[1])
    if kind == _DICT:
        return {_thawed(key): _thawed(item) for key, item in frozen[1]}
    if kind == _AS_IT_IS:
        return frozen[1]
    made = frozen[1].__new__(frozen[1])
    for name, item in frozen[2]:
        object.__setattr__(made, name, _thawed(item))
    return made


def _spec(tree: Any) -> Any:
    kind, context, children = tree
    return private.TreeSpec(kind, _thawed(context), [_spec(child) for child in children])


# -- leaves: each is an argument of the node, or a module with its tensors, or a constant --


def _states(module: Any, prefix: str, values: list[Any]) -> tuple[str, ...]:
    """The names of a module's tensors, which are appended to `values`. Plain values that the module
    holds are looked at, and so guarded: the node's code may depend on them."""
    names: tuple[str, ...] = ()
    for value in vars(module).values():
        if type(value) in _PLAIN:
            hash(value)
    for tensors in (module._parameters, module._buffers):
        for name, tensor in tensors.items():
            if tensor is not None:
                values.append(tensor)
                names += (prefix + name,)
    for name, child in module._modules.items():
        if child is not None:
            names += _states(child, prefix + name + ".", values)
    return names


def _part(value: Any, values: list[Any]) -> Any:
    leaves, spec = private.tree_flatten(value)
    return _tree(spec), tuple([_leaf(leaf, values) for leaf in leaves])


def _leaf(value: Any, values: list[Any]) -> Any:
    if isinstance(value, torch.Tensor) or type(value) in GIVEN:
        values.append(value)
        return None
    if isinstance(value, torch.nn.Module):
        return value, _states(value, "", values)
    kind = type(value)
    if hasattr(kind, "__dataclass_params__") and kind.__dataclass_params__.frozen:
        names = tuple(kind.__dataclass_fields__)
        return _FIELDS, kind, names, tuple([_part(getattr(value, name), values) for name in names])
    manner = _manner(value)
    if manner == "value":
        return _object(value)
    if manner == "reference" and _is_outside(value):
        return _AS_IT_IS, value
    if manner == "reference":
        return _refuse("An opaque object was created in the middle of the program.", type(value))
    return _refuse("Invalid input type for nonstrict_trace-ed function", type(value))


# -- the call --


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    leaves, spec = private.tree_flatten((args, kwargs))
    values: list[Any] = []
    holes = tuple([_leaf(leaf, values) for leaf in leaves])
    given, made = _apply(function, (_tree(spec), holes), *values)
    return _leave(private.tree_unflatten(given, made))


def _trace(traceable_fn: Any) -> Any:
    """`nonstrict_trace` within a trace: nobody is told of what it gives."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        return _marked(traceable_fn, args, kwargs)

    return traced


def _marked(function: Any, args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _begin_marked(function: Any, args: Any, kwargs: Any) -> Any:
    return begin(function, *args, **kwargs)


# -- when the node runs --


@contextlib.contextmanager
def _put(states: list[tuple[Any, dict[str, Any]]]) -> Iterator[None]:
    """The modules with these tensors for their own. In a replay they are their own."""
    with contextlib.ExitStack() as stack:
        for module, tensors in states:
            own = {**dict(module.named_parameters(remove_duplicate=False)),
                   **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
            if any(own[name] is not tensor for name, tensor in tensors.items()):
                stack.enter_context(private.reparametrize(module, tensors))
        yield


def _filled(hole: Any, rest: Iterator[Any], states: list[Any]) -> Any:
    """A leaf, of values that come next; what modules get is appended to `states`."""
    if hole is None:
        return next(rest)
    if hole[0] == _OBJECT or hole[0] == _AS_IT_IS:
        return _thawed(hole)
    if hole[0] == _FIELDS:
        made = hole[1].__new__(hole[1])
        for name, (tree, holes) in zip(hole[2], hole[3], strict=True):
            leaves = [_filled(inner, rest, states) for inner in holes]
            object.__setattr__(made, name, private.tree_unflatten(leaves, _spec(tree)))
        return made
    module, names = hole
    states.append((module, {name: next(rest) for name in names}))
    return module


def _arguments(holes: Any, values: Any) -> tuple[list[Any], list[tuple[Any, dict[str, Any]]]]:
    rest = iter(values)
    states: list[tuple[Any, dict[str, Any]]] = []
    return [_filled(hole, rest, states) for hole in holes], states


def nonstrict_target(function: Any, plan: Any) -> Callable[..., Any]:
    """What the node calls. It gives a list, and remembers how that is put together."""
    tree, holes = plan
    spec = _spec(tree)

    def flat_apply_capture(*values: Any) -> Any:
        leaves, states = _arguments(holes, values)
        args, kwargs = private.tree_unflatten(leaves, spec)
        with _put(states), private.real_tensors_allowed():
            given, made = private.tree_flatten(function(*args, **kwargs))
        _check(function, given)
        known = vars(flat_apply_capture).setdefault("spec", made)
        if known != made:
            raise RuntimeError(
                f"{function.__name__}, which nonstrict_trace has marked, must give the same "
                f"structure each time: it has given {made} after {known}"
            )
        return given

    return flat_apply_capture


def _check(function: Any, given: list[Any]) -> None:
    for value in given:
        number = isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)
        if not number and not isinstance(value, torch.Tensor) and type(value) not in GIVEN:
            raise TypeError(
                "Unsupported output type for nonstrict_trace-ed function: "
                f"{function.__name__} gives a {type(value).__name__}"
            )


def nonstrict_spec(target: Any) -> Any:
    return vars(target)["spec"]


def constant_manner(cls: type) -> str | None:
    return private.constant_manner(cls)


GLUE = (nonstrict_target, nonstrict_spec, constant_manner)
OWN_FILE = _call.__code__.co_filename

ROWS: tuple[tuple[Any, Row], ...] = (
    (begin, ("higher", ("nonstrict_trace", _call))),
    (_apply, ("nonstrict", None)),
    (_refuse, ("nonstrict_refuse", None)),
    (_manner, ("nonstrict_manner", None)),
    (_is_outside, ("nonstrict_outside", None)),
    (_marked, ("instead", _begin_marked)),
)


def later_rows() -> Iterator[tuple[Any, Row]]:
    if private.has(private.DYNAMO) and private.nonstrict_trace is not None:
        yield private.nonstrict_trace, ("instead", _trace)
