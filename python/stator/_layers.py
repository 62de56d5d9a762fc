"""Equal layers once: modules whose calls record the same operations become one body of the graph.

A model of 24 equal blocks gives a backend the same 20 or 50 operations 24 times, and the backend
takes 24 times as long for them. The nodes of a graph say which calls of modules they belong to.
`find` compares those calls node by node; `share` and `apart` then take the operations of all equal
calls out of the graph and leave one body.

| way | what the backend gets | for |
|---|---|---|
| `share` | one graph that calls the body through `invoke_subgraph` | graphs without gradients |
| `apart` | the body by itself, and what lies between its calls by itself | any graph |

Torch makes wrong gradients of shared bodies (docs/torch.md says when), so `share` is never used
where gradients are recorded.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
import torch.fx
from torch.fx import Graph, GraphModule, Node

from stator import _stance
from stator._versions import private

# Fewer calls, or shorter ones, save less than the search for them and the calls of bodies cost.
LEAST_CALLS = 4
LEAST_NODES = 12
# Of regions (`torch.compiler.nested_compile_region`), which the program wants to have shared.
LEAST_REGIONS = 2

# What the calls of a node's modules and regions are kept as: outermost first.
CALLS = "stator_calls"


class Called(NamedTuple):
    key: int  # the module's or function's id
    call: int
    region: bool


# -- what makes two calls equal --


class Different(Exception):
    """The nodes of a call cannot be compared with others, or may not be taken out of the graph."""


def _tensor_key(value: torch.Tensor) -> Any:
    if type(value) is not private.FakeTensor or value.layout is not torch.strided:
        raise Different
    return (
        tuple(value.shape),
        value.stride(),
        value.storage_offset(),
        value.dtype,
        value.device,
        value.requires_grad,
        value.is_conj(),
        value.is_neg(),
    )


def _value_key(value: Any) -> Any:
    """All that operations can ask of a node's value. A node without tensors sets some state."""
    if isinstance(value, torch.Tensor):
        return _tensor_key(value)
    if type(value) in (tuple, list) and value:
        return type(value), tuple(map(_value_key, value))
    raise Different


def _constant_key(value: Any) -> Any:
    if type(value) is float:
        return float, value.hex()
    if type(value) is complex:
        return complex, value.real.hex(), value.imag.hex()
    if value is None or type(value) in (bool, int, str):
        return type(value), value
    return id(value)  # a dtype, a device's own object, …: alive as long as the graph


class _Call:
    """The nodes of one call of a module, in order."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        inside = set(nodes)
        # Values that the call uses, by first use, and those of its own that others use.
        self.operands = list(
            dict.fromkeys(
                used for node in nodes for used in node.all_input_nodes if used not in inside
            )
        )
        self.results = [node for node in nodes if not inside.issuperset(node.users)]

    def key(self) -> Any:
        """Equal for calls that compute the same of operands that are alike."""
        names: dict[Node, Any] = {node: ("operand", i) for i, node in enumerate(self.operands)}
        rows: list[Any] = [_value_key(node.meta.get("example_value")) for node in self.operands]
        for i, node in enumerate(self.nodes):
            if node.op not in ("call_function", "call_method"):
                raise Different
            target = node.target if isinstance(node.target, str) else id(node.target)
            args = _argument_key((node.args, node.kwargs), names)
            value, custom = node.meta.get("example_value"), node.meta.get("custom")
            rows.append((node.op, target, args, _value_key(value), custom and repr(custom)))
            names[node] = "node", i
        return tuple(rows), tuple(names[node] for node in self.results)


def _argument_key(value: Any, names: dict[Node, Any]) -> Any:
    if isinstance(value, Node):
        return names[value]
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_argument_key(item, names) for item in value)
    if isinstance(value, dict):
        return dict, tuple((key, _argument_key(item, names)) for key, item in value.items())
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice, tuple(_argument_key(part, names) for part in parts)
    return _constant_key(value)


# -- which calls there are --


def _runs(nodes: Iterable[Node], depth: int) -> Iterator[list[Node]]:
    """Neighbours that belong to one call at this depth."""
    run: list[Node] = []
    current: Any = None
    for node in nodes:
        calls = node.meta.get(CALLS, ())
        call = calls[: depth + 1] if len(calls) > depth else None
        if call != current:
            if run:
                yield run
            run, current = [], call
        if call is not None:
            run.append(node)
    if run:
        yield run


class Layer(NamedTuple):
    """Equal calls, and the nodes of each."""

    calls: list[_Call]
    region: bool

    @property
    def saved(self) -> int:
        return (len(self.calls) - 1) * len(self.calls[0].nodes)


def _layers_at(nodes: list[Node], depth: int) -> Iterator[Layer]:
    groups: dict[Any, list[_Call]] = defaultdict(list)
    for run in _runs(nodes, depth):
        region = run[0].meta[CALLS][depth].region
        if region or len(run) >= LEAST_NODES:
            call = _Call(run)
            try:
                groups[region, call.key()].append(call)
            except Different:
                continue
    for (region, _), calls in groups.items():
        if len(calls) >= (LEAST_REGIONS if region else LEAST_CALLS):
            yield Layer(calls, region)


def find(graph: Graph) -> list[Layer]:
    """The equal calls that are worth a body: regions first, then those that save most; no node in
    two of them."""
    nodes = [node for node in graph.nodes if node.op in ("call_function", "call_method")]
    deepest = max((len(node.meta.get(CALLS, ())) for node in nodes), default=0)
    found = [layer for depth in range(deepest) for layer in _layers_at(nodes, depth)]
    taken: set[Node] = set()
    chosen = []
    for layer in sorted(found, key=lambda layer: (layer.region, layer.saved), reverse=True):
        own = {node for call in layer.calls for node in call.nodes}
        if taken.isdisjoint(own):
            taken |= own
            chosen.append(layer)
    return chosen


# -- bodies --


def _body(call: _Call) -> GraphModule:
    """The operations of a call as a module: operands in, a tuple of results out."""
    graph = Graph()
    made: dict[Node, Node] = {}
    for operand in call.operands:
        made[operand] = graph.placeholder(operand.name)
        made[operand].meta["example_value"] = operand.meta["example_value"]
    for node in call.nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[node] for node in call.results))
    return private.make_graph_module(torch.nn.Module(), graph, class_name="Layer")


def _memory(tensor: torch.Tensor) -> Any:
    return tensor.untyped_storage()._cdata


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _like(value: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made.requires_grad_(value.requires_grad)


def is_apart(body: GraphModule) -> bool:
    """Whether the body only computes: it writes to none of its operands, and each of its results
    has memory of its own. Runs the body on fakes."""
    operands = [node.meta["example_value"] for node in body.graph.find_nodes(op="placeholder")]
    if not all(isinstance(operand, torch.Tensor) for operand in operands):
        return False
    with private.FakeTensorMode():
        given = [_like(operand) for operand in operands]
        versions = [tensor._version for tensor in given]
        results = list(_tensors(torch.fx.Interpreter(body).run(*given)))
    memories = [_memory(tensor) for tensor in (*given, *results)]
    unwritten = all(tensor._version == v for tensor, v in zip(given, versions, strict=True))
    return unwritten and len(set(memories)) == len(memories)


# -- putting bodies in --

# Makes the node that calls a body: of the graph, the body's name, and its operands.
Caller = Callable[[Graph, str, tuple[Node, ...]], Node]


def _replace(graph: Graph, call: _Call, name: str, make: Caller) -> Node:
    last = call.nodes[-1]
    with graph.inserting_after(last):
        made = make(graph, name, tuple(call.operands))
    made.meta["example_value"] = tuple(node.meta["example_value"] for node in call.results)
    after = made
    for i, result in enumerate(call.results):
        with graph.inserting_after(after):
            item = after = graph.call_function(operator.getitem, (made, i))
        item.meta.update(result.meta)
        result.replace_all_uses_with(item)
    for node in reversed(call.nodes):
        graph.erase_node(node)
    return made


def _take_out(module: GraphModule, stem: str, make: Caller) -> list[str]:
    """Moves the equal calls of the module's graph into bodies; gives the names of the bodies."""
    layers = find(module.graph)
    if not may_be_cut(module.graph, {call.nodes[0] for layer in layers for call in layer.calls}):
        return []
    names: list[str] = []
    for layer in layers:
        body = _body(layer.calls[0])
        if not is_apart(body):
            continue
        name = f"{stem}_{len(names)}"
        setattr(module, name, body)
        names.append(name)
        for call in layer.calls:
            _replace(module.graph, _Call(call.nodes), name, make)  # its operands may be others now
    if names:
        module.graph.lint()
        module.recompile()
    return names


def _invoke(graph: Graph, name: str, operands: tuple[Node, ...]) -> Node:
    body = graph.get_attr(name)
    with graph.inserting_after(body):
        return graph.call_function(private.invoke_subgraph, (body, name, *operands))


def share(module: GraphModule) -> list[str]:
    """Makes the module call each body through `invoke_subgraph`. Gives the names of the bodies."""
    return _take_out(module, "subgraph", _invoke)


# -- bodies by themselves --


def _sets_state(node: Node) -> bool:
    """Whether a node is there for what it does to torch's state: it gives no tensor."""
    return node.op in ("call_function", "call_method") and not any(
        True for _ in _tensors(node.meta.get("example_value"))
    )


def may_be_cut(graph: Graph, first: set[Node]) -> bool:
    """Whether the state of torch is, before each of these nodes, as it was before the graph."""
    grad = before = torch.is_grad_enabled()
    for node in graph.nodes:
        if node.target is private.set_grad_enabled:
            grad = node.args[0]
        elif _sets_state(node) or (node in first and grad != before):
            return False
    return True


def _call_module(graph: Graph, name: str, operands: tuple[Node, ...]) -> Node:
    return graph.call_module(name, operands)


def _is_item_of_body(node: Node) -> bool:
    return node.target is operator.getitem and node.args[0].op == "call_module"  # type: ignore[union-attr]


def _between(graph: Graph) -> Iterator[list[Node]]:
    """The operations before, between and behind the calls of bodies."""
    piece: list[Node] = []
    for node in graph.nodes:
        if node.op in ("call_function", "call_method") and not _is_item_of_body(node):
            piece.append(node)
        elif piece and node.op in ("call_module", "output"):
            yield piece
            piece = []


def _cut(module: GraphModule) -> None:
    for i, nodes in enumerate(list(_between(module.graph))):
        call = _Call(nodes)
        name = f"piece_{i}"
        setattr(module, name, _body(call))
        _replace(module.graph, call, name, _call_module)


class _Compiling(torch.fx.Interpreter):
    """Runs a graph of calls on fakes, and compiles what is called when it is first called."""

    def __init__(self, module: GraphModule, backend: Callable[..., Any], mode: Any) -> None:
        super().__init__(module)
        self._backend = backend
        self._mode = mode
        self.compiled: dict[str, Callable[..., Any]] = {}

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        body = self.submodules[target]
        with self._mode:  # of what the body makes, too
            result = body(*args)
        if target not in self.compiled:
            self.compiled[target] = self._backend(body, list(args))
        return result


def apart(
    module: GraphModule, backend: Callable[..., Any], mode: Any, fakes: Callable[[], list[Any]]
) -> Callable[..., Any] | None:
    """Compiles each body, and what lies between the calls of bodies, by itself; gives a function
    that calls these in order. None: there are no equal calls, and the module is unchanged.

    `fakes` gives the inputs, as fakes of `mode`."""
    if any(node.op == "get_attr" for node in module.graph.nodes):
        return None
    if not _take_out(module, "layer", _call_module):
        return None
    _cut(module)
    module.graph.lint()
    module.recompile()
    run = _Compiling(module, backend, mode)
    run.run(*fakes())
    for name, compiled in run.compiled.items():
        delattr(module, name)
        module.__dict__[name] = compiled  # the module's code calls its attributes by name
    return module.forward


# -- which way --


def _needs_gradients(module: GraphModule, examples: list[Any]) -> bool:
    """Whether autograd may record an operation of the graph."""
    inputs = any(isinstance(e, torch.Tensor) and e.requires_grad for e in examples)
    switched = any(node.target is private.set_grad_enabled for node in module.graph.nodes)
    return inputs and (torch.is_grad_enabled() or switched)


def once(
    backend: Callable[..., Any], mode: Any, fakes: Callable[[], list[Any]]
) -> Callable[..., Any]:
    """The backend, as one that gets each of the equal layers once."""

    @functools.wraps(backend, updated=())
    def call(module: GraphModule, examples: list[Any]) -> Any:
        if (
            _stance.layers == "apart"
            and (compiled := apart(module, backend, mode, fakes)) is not None
        ):
            return compiled
        if _stance.layers == "auto" and not _needs_gradients(module, examples):
            share(module)
        return backend(module, examples)

    return call
