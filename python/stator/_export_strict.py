"""`torch.export.export(strict=True)` by Stator's trace.

Torch asks one function of its own for the graph of a program, `_dynamo_graph_capture_for_export`,
and makes signatures, names and further passes of what that gives. Here is the same function by
Stator: torch's own module around the program flattens arguments and results, Stator traces that
module, and torch's own transformer gives the graph a placeholder for each argument.

Left to torch's own Dynamo, with a line in the log: sizes that are to stay open (`dynamic_shapes`),
modules whose signature is to be kept, and what `_export` leaves to it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from stator import _export, _policy
from stator._export import Left
from stator._versions import private


@dataclasses.dataclass(frozen=True)
class _Place:
    """Which argument a result is."""

    index: int


def _check(program: Any, constraints: Any, dynamic_shapes: Any, flat: list[Any]) -> None:
    if constraints or dynamic_shapes:
        raise Left("sizes are to stay open")
    modules = program.modules() if isinstance(program, torch.nn.Module) else ()
    if any(private.is_wrapped_for_export(module) for module in modules):
        raise Left("the signature of a module is to be kept")
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]
    if len(set(map(id, tensors))) < len(tensors):
        raise Left("a tensor is given twice")
    if not all(isinstance(value, torch.Tensor | int | float | bool | str | None) for value in flat):
        raise Left("an argument is neither a tensor nor a number")


def _is_number(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.SymInt | torch.SymFloat | torch.SymBool)


def _trace(context: Any, root: torch.nn.Module, flat: list[Any]) -> tuple[_export.Call, Any]:
    one = _export.Call(tuple(flat), {})
    made = context(one.backend, fullgraph=True, dynamic=False)
    one.compiler = made.compiler
    result = _export.by_trace(lambda: made(root.forward)(*flat))
    one.check(result.flat_args)
    if one.captured is None:
        raise Left("the program computes nothing")
    if any(_is_number(node) for node in one.captured.module.graph.nodes):
        raise Left("the graph has a number that only the graph knows")
    return one, result


def _order(captured: _export.Captured, flat: list[Any]) -> dict[int, int]:
    """Which placeholder an argument has."""
    places = {id(value): i for i, value in enumerate(flat)}
    return {places[id(value)]: i for i, value in enumerate(captured.examples)}


def _outputs(one: _export.Call, flat: list[Any], results: list[Any]) -> dict[int, tuple[str, Any]]:
    """What each result is, as torch's transformer wants to know."""
    computed = {id(value): i for i, value in enumerate(one.outputs)}
    given = {id(value): i for i, value in enumerate(flat) if isinstance(value, torch.Tensor)}
    found: dict[int, tuple[str, Any]] = {}
    for i, value in enumerate(results):
        if id(value) in computed and isinstance(value, torch.Tensor):
            found[i] = "graph_out", computed[id(value)]
        elif id(value) in given:
            found[i] = "input", _Place(given[id(value)])
        elif isinstance(value, torch.Tensor):
            raise Left("a tensor in the result is neither computed nor an argument")
        else:
            found[i] = "constant", value
    return found


def _arranged(one: _export.Call, flat: list[Any], results: list[Any]) -> torch.fx.GraphModule:
    captured = one.captured
    assert captured is not None
    order, outputs = _order(captured, flat), _outputs(one, flat, results)
    sources = {position: _Place(place) for place, position in order.items()}
    mode = captured.mode
    mode.export = True  # fakes do not ask for what only a compiler wants
    dims: list[set[int]] = [set() for _ in flat]
    made: torch.fx.GraphModule = private.GraphTransformer(
        captured.module, flat, dims, order, outputs, mode, sources
    ).transform()
    for node in made.graph.nodes:  # those of the trace are of another mode
        if node.meta.pop("example_value", None) is not None and "val" in node.meta:
            node.meta["example_value"] = node.meta["val"]
    made.meta["fake_mode"] = mode
    made.meta["module_call_specs"] = {}
    return made


def _captured(context: Any, program: Any, args: Any, kwargs: Any) -> torch.fx.GraphModule:
    flat, spec = private.tree_flatten((args, kwargs))
    root = private.ModuleToTrace(program, spec)
    one, result = _trace(context, root, flat)
    made = _arranged(one, flat, result.flat_args)
    called = program.forward if isinstance(program, torch.nn.Module) else program
    names = private.argument_names(inspect.signature(called), args, kwargs)
    private.give_signature(made, names, spec, result.out_spec)
    return made


def capturing(
    context: Callable[..., Any], theirs: Callable[..., Any], program: Any, **wishes: Any
) -> Callable[..., torch.fx.GraphModule]:
    """As torch's function; `theirs` is that. `context` makes a compile by Stator."""

    def capture(*args: Any, **kwargs: Any) -> torch.fx.GraphModule:
        try:
            flat = private.tree_flatten((args, kwargs))[0]
            _check(program, wishes.get("constraints"), wishes.get("dynamic_shapes"), flat)
            with private.exporting():
                return _captured(context, program, args, kwargs)
        except (Left, _policy.Unsupported) as left:
            reason = str(left).partition("\n")[0]
            _export.log.info(
                "%s is exported by torch's own Dynamo: %s", _export.name(program), reason
            )
            made: torch.fx.GraphModule = theirs(program, **wishes)(*args, **kwargs)
            return made

    return capture
