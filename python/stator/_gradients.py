"""Backward passes in a graph, where `torch._dynamo.config.trace_autograd_ops` asks for them
(src/torch/gradients.c): the functions that a trace interprets in place of `torch.autograd.grad` and
`Tensor.backward`, and what the engine asks about autograd's graph of fakes.

A backward pass is a call of `torch.autograd.grad`. `backward` then adds what that gives to the
gradients of the leaves, as autograd does.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from stator._accumulate import accumulate, refuse
from stator._higher import _leave
from stator._rows import Row
from stator._versions import private

# -- what the engine does --


def _derive(*args: Any, **kwargs: Any) -> Any:
    """Records a call of `torch.autograd.grad`."""
    raise NotImplementedError


def _leaves(tensor: Any) -> list[Any]:
    """The inputs of the graph that are leaves, and that the tensor was computed from."""
    raise NotImplementedError


def _is_given(tensor: Any) -> bool:
    """Whether it is an input of the graph, as it came."""
    raise NotImplementedError


# -- torch.autograd.grad --

_GRAD = (
    "outputs",
    "inputs",
    "grad_outputs",
    "retain_graph",
    "create_graph",
    "only_inputs",
    "allow_unused",
    "is_grads_batched",
    "materialize_grads",
)


def _grad(*args: Any, **kwargs: Any) -> Any:
    given = {**dict(zip(_GRAD, args, strict=False)), **kwargs}
    inputs = given.get("inputs")
    if given.get("is_grads_batched"):
        return refuse("torch.autograd.grad with is_grads_batched")
    if not isinstance(inputs, dict):
        return _leave(_derive(*args, **kwargs))
    values = tuple(inputs.values())
    if "inputs" in kwargs:
        found = _derive(*args, **{**kwargs, "inputs": values})
    else:
        found = _derive(args[0], values, *args[2:], **kwargs)
    return _leave(dict(zip(inputs, found, strict=True)))


# -- Tensor.backward --


def _given_leaves(inputs: Any) -> list[Any]:
    if isinstance(inputs, dict):
        inputs = tuple(inputs.values())
    elif isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    leaves: list[Any] = []
    for tensor in inputs:
        if not isinstance(tensor, torch.Tensor):
            refuse("backward(inputs=…) of something that is no tensor")
        if not tensor.is_leaf:
            refuse("backward() with non-leaf tensor")
        if not _is_given(tensor):
            refuse("backward() with in-graph created tensor")
        if not any(tensor is leaf for leaf in leaves):
            leaves.append(tensor)
    if not leaves:
        refuse("backward() with empty inputs")
    return leaves


def _backward(
    self: Any,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> Any:
    if create_graph:
        return refuse("Tensor.backward with create_graph")
    if not self.requires_grad:
        return refuse("the tensor does not require grad and does not have a grad_fn", True)
    leaves = _leaves(self) if inputs is None else _given_leaves(inputs)
    named = {} if retain_graph is None else {"retain_graph": retain_graph}
    further = () if gradient is None else (gradient,)
    found = _derive(self, leaves, *further, allow_unused=inputs is None, **named)
    with torch.no_grad():
        for i in range(len(leaves)):
            accumulate(leaves[i], found[i])
    return _leave(None)


OWN_FILE = _backward.__code__.co_filename  # as _higher's

# -- autograd's graph of fakes --


def _node(tensor: torch.Tensor) -> Any:
    return torch.autograd.graph.get_gradient_edge(tensor).node


def _tensors(given: Any) -> list[torch.Tensor]:
    """Those of an argument of `grad` that gradients are recorded of."""
    items = given if isinstance(given, list | tuple) else (given,)
    return [item for item in items if isinstance(item, torch.Tensor) and item.requires_grad]


def _reached(begin: Iterable[Any], ends: set[Any]) -> Iterator[Any]:
    """The nodes that a backward pass runs, which begins at some and goes no further than others."""
    seen: set[Any] = set(ends)
    left = [node for node in begin if node not in seen]
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        left.extend(further for further, _ in node.next_functions if further is not None)


def _is_accumulator(node: Any) -> bool:
    return hasattr(node, "variable")


def _why_not(nodes: list[Any], leaves: list[torch.Tensor], consumed: dict[Any, int]) -> str | None:
    known = {id(leaf) for leaf in leaves}
    for node in nodes:
        if isinstance(node, private.FunctionNode):
            return "autograd.grad through an autograd.Function"
        if node in consumed:
            return "autograd.grad with already consumed grad_fn"
        if _is_accumulator(node) and id(node.variable) not in known:
            return "autograd.grad with external grad_fn"
    return None


def gradient_places(mode: Any, tensor: torch.Tensor, leaves: list[torch.Tensor]) -> list[int] | str:
    """Of the leaves, those that the tensor was computed from; or why there may be others."""
    nodes = list(_reached([_node(tensor)], set()))
    found = {id(node.variable) for node in nodes if _is_accumulator(node)}
    places = [place for place, leaf in enumerate(leaves) if id(leaf) in found]
    return _why_not(nodes, leaves, mode.stator_consumed) or places


def gradient_refusal(mode: Any, call: Any, leaves: list[torch.Tensor]) -> str | None:
    """Why a call of `torch.autograd.grad` on these fakes cannot be recorded. Else notes the nodes
    that autograd will have thrown away afterwards."""
    args, kwargs, since = call
    given = {**dict(zip(_GRAD, args, strict=False)), **kwargs}
    inputs, outputs = (_tensors(given.get(name)) for name in ("inputs", "outputs"))
    ends = {_node(tensor) for tensor in inputs}
    nodes = list(_reached([_node(tensor) for tensor in outputs], ends))
    refused = _why_not(nodes, [*leaves, *inputs], mode.stator_consumed)
    keeps = given.get("retain_graph")
    if refused is None and not (given.get("create_graph") if keeps is None else keeps):
        mode.stator_consumed |= {node: since for node in nodes if not _is_accumulator(node)}
    return refused


def gradient_consumed(mode: Any, tensors: list[torch.Tensor], names: list[str]) -> Any:
    """A text, and when autograd threw away what these tensors need for a backward pass."""
    found: dict[str, int] = {}
    for tensor, name in zip(tensors, names, strict=True):
        if tensor.requires_grad:
            consumed = [mode.stator_consumed[node] for node in _reached([_node(tensor)], set())
                        if node in mode.stator_consumed]  # fmt: skip
            if consumed:
                found[name] = min(consumed)
    if not found:
        return None
    text = "autograd.grad consumed returned tensor's grad_fn; Leaked output tensors: "
    return text + ", ".join(found), min(found.values())


GLUE = (gradient_places, gradient_refusal, gradient_consumed)
HELPERS = (_node, _tensors, _reached, _is_accumulator, _why_not)

ROWS: tuple[tuple[Any, Row], ...] = (
    (_derive, ("derive", torch.autograd.grad)),
    (_leaves, ("gradient_leaves", None)),
    (_is_given, ("gradient_given", None)),
    (refuse, ("gradient_refuse", None)),
    (
        torch.autograd.grad,
        ("derived", ("BACKWARD", "torch.autograd.grad", ("autograd_grad", _grad))),
    ),
    (torch.Tensor.backward, ("backward", ("BACKWARD", "Tensor.backward", ("backward", _backward)))),
)
