"""`torch._dynamo.export` by Stator: the graph of a call, without inputs that are no arguments.

Torch's own `export` wants a compiler to be called with one graph, and the compiled function to give
back what the program does, with fakes in it. Signatures, names of arguments and further passes are
torch's own. Here the graph is changed as torch expects it: a tensor that is no argument becomes an
attribute, and a size becomes a call of `sym_size`.

The call is made on fakes first. What Stator cannot do, or would do otherwise, is left to torch's
own Dynamo then (`Left`), with a line in the log; torch's compiler has seen nothing by then.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.fx

from stator import _higher_flow, _policy
from stator._versions import private

log = logging.getLogger("stator.export")


class Left(Exception):
    """This export is torch's own affair; the text says why."""


class _Stop(BaseException):
    """The same, found where the graph runs. After an exception of an operation the program would
    go on uncompiled."""


# -- the graph --

_MODULE = re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]")
_PLACE = re.compile(r"([LG])\['(\w+)'\]$")


def _attribute(place: str, taken: Any) -> str:
    """The name of an attribute for the tensor at a place."""
    alone = _PLACE.match(place)
    if alone:  # a cell's, or a global's
        base = alone[2]
        name = f"{base}_0" if alone[1] == "G" else base
    else:
        base = re.sub(r"\W", "_", _MODULE.sub(r"_\1", place).replace("'].", "']_"))
        name = base
    number = 0
    while hasattr(taken, name):
        name, number = f"{base}_{number}", number + 1
    return name


def _is_body(module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    return node.op == "get_attr" and isinstance(
        getattr(module, str(node.target)), torch.fx.GraphModule
    )


def _first_use(node: torch.fx.Node) -> torch.fx.Node:
    users = set(node.users)
    first: torch.fx.Node = next(other for other in node.graph.nodes if other in users)
    return first


def _replace(node: torch.fx.Node, made: torch.fx.Node) -> None:
    for key, value in node.meta.items():
        if key != "tensor_dict":
            made.meta[key] = value
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def _as_attribute(module: torch.fx.GraphModule, node: Any, tensor: torch.Tensor) -> None:
    if not node.users:
        module.graph.erase_node(node)
        return
    name = _attribute(node._dynamo_source.name, module)
    if isinstance(tensor, torch.nn.Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)
    place = user = _first_use(node)
    while _is_body(module, place.prev):
        place = place.prev
    with module.graph.inserting_before(place):
        made = module.graph.get_attr(name)
    _replace(node, made)
    if "stack_trace" in user.meta:
        made.meta["stack_trace"] = user.meta["stack_trace"]


def _sizes(nodes: list[torch.fx.Node]) -> dict[str, tuple[torch.fx.Node, int]]:
    """Where each size is first found among the arguments."""
    found: dict[str, tuple[torch.fx.Node, int]] = {}
    for node in nodes:
        for dim, size in enumerate(node.meta["example_value"].shape):
            found.setdefault(str(size), (node, dim))
    return found


def _as_size(node: torch.fx.Node, sizes: dict[str, tuple[torch.fx.Node, int]]) -> None:
    graph = node.graph
    if not node.users:
        graph.erase_node(node)
        return
    place = sizes.get(str(node.meta["example_value"]))
    if place is None:
        raise Left("a number is no size of an argument")
    last = graph.find_nodes(op="placeholder")[-1]
    with graph.inserting_before(last.next):
        _replace(node, graph.call_function(private.sym_size, place))


class Captured(NamedTuple):
    module: torch.fx.GraphModule
    examples: list[Any]
    mode: Any  # of the fakes
    symbolic: bool  # some sizes are open


def _rewrite(module: torch.fx.GraphModule, inputs: list[Any], given: set[int]) -> Captured:
    nodes = module.graph.find_nodes(op="placeholder")
    tensors = [isinstance(value, torch.Tensor) for value in inputs]
    kept = [i for i, value in enumerate(inputs) if tensors[i] and id(value) in given]
    sizes = _sizes([nodes[i] for i in kept])
    symbolic = any(not size.isdigit() for size in sizes)
    for i, node in enumerate(nodes):
        if not tensors[i] and not isinstance(node.meta.get("example_value"), torch.SymInt):
            raise Left("a number is an input of the graph")
        if not tensors[i]:
            _as_size(node, sizes)
        elif i not in kept:
            _as_attribute(module, node, inputs[i])
    module.recompile()
    mode: Any = private.TracingContext.get().fake_mode
    mode.allow_non_fake_inputs = True  # attributes of the graph are real
    return Captured(module, [inputs[i] for i in kept], mode, symbolic)


# -- the call --


def _flat(value: Any) -> list[Any]:
    return list(private.tree_flatten(value)[0])


class Call:
    """One call of the program that is exported."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        self.given = _flat((args, kwargs))
        self.captured: Captured | None = None
        self.compiler: Any = None
        self.guards: list[Any] = []
        self.outputs: list[Any] = []

    def backend(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        if self.captured is not None:
            raise Left("there is more than one graph")
        tensors = {id(value) for value in self.given if isinstance(value, torch.Tensor)}
        self.captured = _rewrite(module, inputs, tensors)
        return self._run

    def _run(self, *inputs: Any) -> Any:
        """The graph on fakes. What is written behind the graph would be written for good."""
        captured = self.captured
        assert captured is not None
        if any(entry["writes"] for entry in self.compiler.entries()):
            raise _Stop("the program writes to objects")
        try:
            made = private.give_fakes(captured.module, captured.mode, captured.examples)
        except Exception as error:
            raise _Stop(f"the graph fails on fakes: {error}") from None
        self.outputs = list(made)
        return made

    def check(self, result: Any) -> None:
        captured = self.captured
        known = {id(value) for value in (*self.outputs, *self.given)}
        for value in _flat(result):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and captured is not None and captured.symbolic:
                raise Left("a number in the result may be a size")
            if isinstance(value, torch.Tensor) and captured is not None and id(value) not in known:
                raise Left("a tensor in the result is neither computed nor an argument")

    def hand_over(self, compiler: Callable[..., Any], result: Any) -> Any:
        """Gives torch's compiler the graph, and the result with the fakes that torch makes."""
        captured = self.captured
        if captured is None:
            return result
        with private.tracing(private.TracingContext(captured.mode)):
            compiled = compiler(captured.module, captured.examples)
        fakes = dict(zip(map(id, self.outputs), compiled(*captured.examples), strict=True))
        return private.tree_map(lambda value: fakes.get(id(value), value), result)


def exporting(
    context: Callable[..., Any], theirs: Callable[[Any], Any], compiler: Any, hooks: Any
) -> Callable[[Any], Callable[..., Any]]:
    """What `torch._dynamo.export` calls with a program: gives what is called with its arguments.
    `context` makes a compile by Stator, `theirs` one by torch."""

    def decorate(target: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return _call(context, target, compiler, hooks, args, kwargs)
            except Left as left:
                log.info("%s is exported by torch's own Dynamo: %s", name(target), left)
                return theirs(target)(*args, **kwargs)

        return call

    return decorate


def name(target: Any) -> str:
    return getattr(target, "__qualname__", type(target).__qualname__)


def by_trace(call: Callable[[], Any]) -> Any:
    """What a compiled call gives, which is made to be exported."""
    _higher_flow.exporting, before = True, _higher_flow.exporting
    try:
        return call()
    except _policy.Unsupported as error:
        if "[GRAPH_BREAK]" in str(error):  # the program's own wish
            raise
        raise Left(str(error).partition("\n")[0]) from None
    except _Stop as stop:
        raise Left(str(stop)) from None
    except private.exc.BackendCompilerFailed as error:
        if isinstance(error.inner_exception, Left):
            raise error.inner_exception from None
        raise
    finally:
        _higher_flow.exporting = before


def _call(context: Any, target: Any, compiler: Any, hooks: Any, args: Any, kwargs: Any) -> Any:
    one = Call(args, kwargs)
    made = context(one.backend, fullgraph=True, guard_export_fn=one.guards.append)
    one.compiler = made.compiler
    result = by_trace(lambda: made(target)(*args, **kwargs))
    one.check(result)
    if one.captured is not None and hooks is not None and hooks.guard_export_fn is not None:
        for guards in one.guards:
            hooks.guard_export_fn(guards)
    return one.hand_over(compiler, result)
