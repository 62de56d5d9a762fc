"""Hands a graph to a backend: as a `torch.fx.GraphModule`, in the contexts torch's own expect."""

import contextlib
import functools
import inspect
import itertools
import math
import operator
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from stator import (
    _engine,
    _expressions,
    _fakes,
    _kept,
    _late,
    _layers,
    _logs,
    _origins,
    _overrides,
    _policy,
    _progress,
    _shapes,
    _sources,
    _state,
    _verify,
    _versions,
    _words,
)
from stator._versions import private

Backend = Callable[[torch.fx.GraphModule, list[Any]], Callable[..., Any]]

_loose_ids = itertools.count(1 << 20)  # of graphs that no policy of torch.compile's asked for

# -- graphs --


# torch.fx writes graphs as Python code: what does not come out of that as it went in needs another
# form.
_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def _complex(value: complex, result: torch.fx.Graph) -> Any:
    """1-0j as code is 1+0j, and nanj no number at all."""
    parts = value.real, value.imag
    plain = all(math.isfinite(part) and (part or math.copysign(1, part) > 0) for part in parts)
    return value if plain else result.call_function(complex, parts)


def _argument(value: Any, nodes: dict[Any, torch.fx.Node], result: torch.fx.Graph) -> Any:
    if isinstance(value, _engine.Node):
        return nodes[value]
    if type(value) in (tuple, list):
        return type(value)(_argument(item, nodes, result) for item in value)
    if type(value) is dict:
        return {key: _argument(item, nodes, result) for key, item in value.items()}
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return slice(*(_argument(part, nodes, result) for part in parts))
    if type(value) is complex:
        return _complex(value, result)
    return _DTYPES[value] if isinstance(value, type) else value


def _target(node: _engine.Node) -> Any:
    if node.target is _state._exit_autocast:
        return private.exit_autocast
    if node.target is operator.pow and str(node.args[0]).startswith("-"):
        return torch.pow  # (-2) ** x as code is -2 ** x
    return node.target


def _has_numbers(data: Any) -> bool:
    """Whether numbers in the data of a new tensor are nodes."""
    if type(data) in (tuple, list):
        return any(map(_has_numbers, data))
    return isinstance(data, _engine.Node)


def _new_tensor(tensor: torch.Tensor, data: Any, **options: Any) -> Any:
    options.setdefault("dtype", tensor.dtype)
    options.setdefault("device", tensor.device)
    return private.tensor_of(data, **options)


def _unbound(input: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, ...]:
    if input.requires_grad:  # autograd refuses to write to its parts
        return input.unbind(dim)
    return tuple(input.select(dim, i) for i in range(input.shape[dim]))


def _places(*args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    """What `nonzero(as_tuple=True)` and `where` of one tensor give: columns of one tensor."""
    given = (*args, *kwargs.values())
    tensor = next(item for item in given if isinstance(item, torch.Tensor))
    return _unbound((tensor if tensor.dim() else tensor.reshape(1)).nonzero(), 1)


def _parts(node: _engine.Node) -> Any:
    """What stands for a call that gives parts of a tensor, of which one may be written to; or None.

    To take such a write over to the whole, AOTAutograd asks `unbind` for plain sizes: it would fix
    open ones, and fails on those that only the graph knows."""
    if node.target in (torch.unbind, "unbind"):
        return _unbound
    kwargs = node.kwargs or {}
    if node.target is torch.where:
        return _places if len(node.args) + len(kwargs) == 1 else None
    tuples = node.target in (torch.nonzero, "nonzero") and kwargs.get("as_tuple")
    return _places if tuples else None


def _kind(node: _engine.Node) -> tuple[str, Any]:
    """The operation and the target. Functions of C++ ask the numbers that a tensor is made of for
    their values; torch has another one, which makes a tensor of each."""
    if node.target in (torch.tensor, torch.as_tensor) and _has_numbers(node.args[:1]):
        return node.op, private.tensor_of
    if node.op == "call_method" and node.target == "new_tensor" and _has_numbers(node.args[1:]):
        return "call_function", _new_tensor
    return node.op, _target(node)


def _dotted(place: str) -> str:
    """L['self']._modules['a']._modules['b'] is L['self'].a.b."""
    head, *steps = place.split("._modules['")
    for step in steps:
        name, end, rest = step.partition("']")
        head += f".{name}{rest}" if end and "'" not in name else f"._modules['{step}"
    return head


def _called(node: _engine.Node) -> Any:
    """What the user called: the target, or the module of torch's that it is the inside of."""
    cls = next((cls for _, _, cls, _ in reversed(node.modules or ()) if cls is not None), None)
    if cls is None:
        return node.target
    inside = cls.__module__.startswith(("torch.nn.modules", "torch.ao."))
    container = cls.__module__.startswith("torch.nn.modules.container")
    return cls if inside and not container else node.target


class Numbers(NamedTuple):
    """The inputs of a graph that are numbers, by their place."""

    floats: frozenset[int] = frozenset()  # they come as tensors
    plain: Mapping[int, float] = {}  # they are the same in every call, and no inputs for a backend


class _Nodes(dict[Any, Any]):
    """What there is in torch.fx for each node of the engine.

    A float comes as a tensor. The node for its value is made where it is first used."""

    def __init__(self, result: torch.fx.Graph) -> None:
        super().__init__()
        self._result = result
        self._floats: dict[Any, torch.fx.Node] = {}

    def add_float(self, node: Any, made: torch.fx.Node) -> None:
        self._floats[node] = made

    def __missing__(self, node: Any) -> torch.fx.Node:
        made = self[node] = self._result.call_method("item", (self._floats[node],))
        return made


class _Origins:
    """What nodes say of the places that they come from. Layers repeat: each text is made once."""

    def __init__(self) -> None:
        self._stacks: dict[Any, Any] = {}
        self._paths: dict[str, str] = {}

    def _path(self, place: str) -> str:
        found = self._paths.get(place)
        if found is None:
            found = self._paths[place] = _dotted(place)
        return found

    def _stack_of(self, modules: Any) -> Any:
        """The modules that a node is part of, and the calls of them."""
        found = self._stacks.get(id(modules))
        if found is None:  # the graph keeps `modules`: nothing else gets its address
            stack = {str(key): (self._path(place), cls)
                     for key, place, cls, _ in modules if cls is not None}  # fmt: skip
            calls = tuple(_layers.Called(key, call, cls is None) for key, _, cls, call in modules)
            found = self._stacks[id(modules)] = stack, calls
        return found

    def add(self, meta: dict[str, Any], node: _engine.Node) -> None:
        if node.modules:
            stack, meta[_layers.CALLS] = self._stack_of(node.modules)
            meta["nn_module_stack"] = stack.copy()
        if node.custom is not None:
            meta["custom"] = dict(node.custom)
        if node.op.startswith("call_"):
            meta["source_fn_stack"] = [(node.first_name or node.name, _called(node))]
        if node.target is torch.autograd.grad:
            meta["autograd_backward"] = True  # for the pass that computes checkpointed values again


class _Said:
    """What the nodes of a graph say of themselves. What can be asked later is kept: objects of the
    engine's, which nobody changes, and the lines of the program.

    `valued`: nodes have examples of their values."""

    def __init__(self, graph: _engine.Graph, valued: bool) -> None:
        self._graph, self._valued = graph, valued
        self._origins = _Origins()
        self._traces = _origins.Traces(graph.files)
        self._made: dict[_engine.Node, Any] | None = None

    def _made_later(self) -> dict[_engine.Node, Any]:
        """The examples of nodes that have none yet: all at once, as they all have one mode."""
        if self._made is None:
            with _versions.usual_state():
                layouts = ((node, _engine.torch_layout(node)) for node in self._graph.nodes
                           if node.example is None)  # fmt: skip
                self._made = {node: _fakes.fake_like(self._graph.fakes, *layout)
                              for node, layout in layouts if layout is not None}  # fmt: skip
        return self._made

    def _example(self, node: _engine.Node) -> Any:
        if node.example is not None or self._graph.fakes is None:
            return node.example
        return self._made_later().get(node)

    def of(self, node: _engine.Node) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        self._origins.add(meta, node)
        example = self._example(node) if self._valued and node.op != "get_attr" else None
        if example is not None:
            meta["example_value"] = example
        if node.stack:
            self._traces.add(meta, node.stack)
        return meta

    def later(self, node: _engine.Node) -> dict[str, Any]:
        return _late.LateDict(_late.Said(functools.partial(self.of, node)))


def to_fx(
    graph: _engine.Graph, numbers: Numbers | None = None, lazy: bool = False
) -> torch.fx.GraphModule:
    """The graph as a module whose forward takes the inputs in order and returns a tuple. `lazy`:
    the module writes its code when somebody asks for it.

    Bodies are submodules of the module whose graph calls them. Of a graph with numbers that differ
    from call to call (`numbers` is not None) the examples are not of the right sizes."""
    result = torch.fx.Graph()
    root = torch.nn.Module()
    nodes, said = _Nodes(result), _Said(graph, numbers is None)
    # What a graph that is traced again has said may change.
    say = said.later if lazy and not _origins.are_known() else said.of
    writes = numbers is not None and graph.effects & _fakes.WRITES
    for at, node in enumerate(graph.nodes):
        if numbers and at in numbers.plain:
            nodes[node] = numbers.plain[at]
            continue
        args = _argument(node.args, nodes, result)
        kwargs = _argument(node.kwargs, nodes, result)
        parts = _parts(node) if writes else None
        kind = ("call_function", parts) if parts else _kind(node)
        made = result.create_node(*kind, args, kwargs, name=node.name)
        made.meta = say(node)
        if node.op == "get_attr":
            value = node.example
            setattr(
                root, node.target, _body_to_fx(value) if type(value) is _engine.Graph else value
            )
        if numbers and at in numbers.floats:
            nodes.add_float(node, made)
        else:
            nodes[node] = made
    make = private.make_lazy_graph_module if lazy else private.make_graph_module
    return make(root, result, class_name="GraphModule")


def _body_to_fx(body: _engine.Graph) -> torch.fx.GraphModule:
    module = to_fx(body)
    module.meta.update(body.meta or {})
    return module


# -- handing over --


# Of a module: tensors that stay where they are.
_KEPT = re.compile(r"\._(parameters|buffers)\['[^']*'\]$")


def _tensor_dict(example: torch.Tensor, text: str) -> dict[str, Any]:
    """What backends want to know of an input: that its address stays, and torch.ao's tag."""
    own = vars(example)
    kept = {"tag": own["tag"]} if "tag" in own else {}
    address = own.get("_dynamo_static_input_type")  # mark_static_address
    if address is None and (isinstance(example, torch.nn.Parameter) or _KEPT.search(text)):
        address = "unguarded"
    return kept if address is None else {**kept, "_dynamo_static_input_type": address}


def _label_inputs(
    module: torch.fx.GraphModule, shapes: _shapes.Shapes, texts: list[str]
) -> dict[torch.Tensor, Any]:
    """Says of each placeholder where it comes from; how fakes are to be made of the tensors."""
    contexts = {}
    placeholders = module.graph.find_nodes(op="placeholder")
    names, flat = _sources.parameters(texts, shapes.sources)
    module._param_name_to_source = names  # type: ignore[assignment]
    module.meta["dynamo_flat_name_to_original_fqn"] = flat
    for i, (node, text) in enumerate(zip(placeholders, texts, strict=True)):
        example = shapes.examples[i]
        node._dynamo_source = shapes.sources[i]
        kept = {}
        if isinstance(example, torch.Tensor):
            kept = _tensor_dict(example, text)
            node.type = type(example)
            contexts[example] = shapes.contexts[i]
        _late.put_before(node.meta, "tensor_dict", kept)
        if shapes.has_symbols:
            value = shapes.value_of(i)
            _late.put_before(node.meta, "example_value", value)
            node.type = type(value) if isinstance(value, torch.SymInt) else node.type
        if name := shapes.name_of(i):
            node._rename(name)
            node.target = node.name  # two inputs may be one symbol
    _type_bodies(module)
    return contexts


def _type_bodies(module: torch.fx.GraphModule) -> None:
    """A body's placeholder is a tensor as the input of the same name is. What the operator gives
    to its body has a name of its own."""
    types = {node.name: node.type for node in module.graph.nodes}
    for body in module.children():
        if isinstance(body, torch.fx.GraphModule):
            for node in body.graph.find_nodes(op="placeholder"):
                if isinstance(node.meta.get("example_value"), torch.Tensor):
                    node.type = types.get(node.name) or torch.Tensor
            _type_bodies(body)
            body.recompile()


@contextlib.contextmanager
def _compiling(compile_id: private.CompileId, context: private.TracingContext) -> Iterator[None]:
    with (
        private.compile_lock,
        private.compile_session(),
        private.callback_handler.install_callbacks(private.CallbackTrigger.DYNAMO, str(compile_id)),
        private.compile_context(private.CompileContext(compile_id)),
        private.tracing(context),
    ):
        yield


def _is_want_of_fakes(error: Exception, module: torch.fx.GraphModule) -> bool:
    """Whether the backend failed since some tensor has no fake: then the operations run as they
    are, with a warning. Where the program itself has allowed a function in graphs, it gets the
    error."""
    if not isinstance(error, private.UnsupportedFakeTensorException):
        return False
    allowed = private.allowed_ids()
    if any(
        node.op == "call_function" and id(node.target) in allowed for node in module.graph.nodes
    ):
        return False
    warnings.warn(
        f"the backend found no fake of a tensor, and the graph runs uncompiled: {error}",
        RuntimeWarning,
        stacklevel=_words.users_level(),
    )
    return True


def _has_no_backward(error: Exception) -> bool:
    """Whether the graph writes to what its backward needs. In plain Python only backward raises."""
    text = "one of the variables needed for gradient computation has been modified"
    if not isinstance(error, RuntimeError) or not str(error).startswith(text):
        return False
    warnings.warn(
        f"the backend cannot derive the graph, which runs uncompiled: {str(error).splitlines()[0]}",
        RuntimeWarning,
        stacklevel=_words.users_level(),
    )
    return True


def _call_backend(
    backend: Backend, module: torch.fx.GraphModule, examples: list[Any]
) -> Callable[..., Any]:
    if private.config.verify_correctness:
        backend = _verify.checked(backend)
    try:
        compiled: Callable[..., Any] = private.split_by_buckets(backend)(module, examples)
        if not callable(compiled):
            raise TypeError(f"the backend returned {compiled!r}, which cannot be called")
        return private.with_code(compiled)
    except private.exc.SkipFrame:
        return private.with_code(module.forward)  # the operations run as they are
    except (private.exc.ShortenTraceback, private.exc.TensorifyScalarRestartAnalysis, IndexError):
        raise  # as Dynamo does: an IndexError of an operation is the user's own
    except Exception as error:
        if _is_want_of_fakes(error, module) or _has_no_backward(error):
            return private.with_code(module.forward)
        failed = private.exc.BackendCompilerFailed(backend, error, inspect.currentframe())
        failed.compile_id = private.CompileContext.current_compile_id()  # type: ignore[attr-defined]
        raise failed.with_traceback(error.__traceback__) from None


def _reason() -> private.GraphCompileReason:
    """Why the graph ends where it does; for torch's explain."""
    text, stack = _policy.end_of_trace() or ("return_value", None)
    frames = [traceback.FrameSummary(*row) for row in stack or ()]
    reason = private.GraphCompileReason(text, frames, graph_break=False)  # else it notes itself
    reason.graph_break = text != "return_value"
    return reason


def _prepare(module: torch.fx.GraphModule) -> private.CompileId:
    compile = _logs.current()
    compile_id = (
        private.CompileId(frame_id=next(_loose_ids), frame_compile_id=0)
        if compile is None
        else compile.id
    )
    module.meta["dynamo_compile_id"] = compile_id
    module._source_to_user_stacks = {}  # type: ignore[assignment]
    module.compile_subgraph_reason = _reason()  # type: ignore[assignment]
    return compile_id


class Handed(NamedTuple):
    """What came out of a backend: what to call, and what it relies on."""

    compiled: Callable[..., Any]
    context: private.TracingContext
    found: _shapes.Found


def _name_of(backend: Any) -> Any:
    """The name of a backend that torch has wrapped for its options; else the backend."""
    return backend.compiler_name if isinstance(backend, private.compile_wrappers) else backend


def _is_torchs(backend: Any) -> bool:
    """Whether it is a backend of torch's own, which makes fakes of all values itself."""
    backend = _name_of(backend)
    return isinstance(backend, str) and backend in private.backend_names()


def recursion(backend: Any) -> int:
    """The recursion limit that a backend sees to while it compiles; 0: it changes none."""
    return private.INDUCTOR_RECURSION if _name_of(backend) == "inductor" else 0


def _takes_layers_once(backend: Any) -> bool:
    """Whether it compiles graphs that call bodies, whatever of them it keeps."""
    options: dict[str, Any] = {}
    if isinstance(backend, private.compile_wrappers):
        options = getattr(backend, "config", {})
        backend = backend.compiler_name
    if backend == "aot_eager":
        return True
    return backend == "inductor" and not private.inductor_keeps_calls(options)


def give(
    module: torch.fx.GraphModule, shapes: _shapes.Shapes, texts: list[str], backend: Backend
) -> Handed:
    """Calls the backend. Its result takes the inputs positionally: tensors, ints, and floats as
    tensors of one float64."""
    context = private.TracingContext(shapes.mode)
    compile_id = _prepare(module)
    contexts = _label_inputs(module, shapes, texts)
    context.tensor_to_context.update(contexts)
    with _kept.kept(), _compiling(compile_id, context), shapes.used(), _logs.backend(module):
        compiled = _call_backend(backend, module, shapes.examples)
    return Handed(compiled, context, shapes.found(context))


def hand_over(
    graph: _engine.Graph, examples: list[Any], backend: Backend, once: bool = False
) -> Callable[..., Any]:
    """Calls the backend with real example inputs. Its result takes them positionally. `once`: the
    backend may get one of equal layers for all of them."""
    module = to_fx(graph, lazy=True)
    kept = _show_ragged(module, list(range(len(examples))), examples)
    rows = [_picked(pick, examples, list(graph.sources)) for pick in kept]
    texts = [text for _, text in rows]
    shapes = _shapes.plain([example for example, _ in rows], _sources.sources(texts))
    if once:
        backend = _layers.once(backend, shapes.mode, shapes.fakes)
    handed = give(module, shapes, texts, backend)
    compiled = _keeping(handed.compiled, graph, handed.context)
    return _taking(compiled, kept, Numbers(frozenset(), {}))


def _has_bodies(module: torch.fx.GraphModule) -> bool:
    """Functions that call graphs look at the examples of their arguments."""
    return any(isinstance(child, torch.fx.GraphModule) for child in module.children())


def _input(given: Any) -> _shapes.Input:
    is_tensor = type(given) is tuple and type(given[0]) is tuple
    return _shapes.Sizes(*given) if is_tensor else given


def _numbers_among(
    inputs: list[_shapes.Input], symbols: list[_shapes.Symbol], fixed: frozenset[int]
) -> Numbers:
    hints = {i: symbol.hint for i, symbol in enumerate(symbols)}
    rows = {i: given for i, given in enumerate(inputs)
            if given is not None and not isinstance(given, _shapes.Sizes)}  # fmt: skip
    values = {i: _expressions.evaluate(given, hints) for i, given in rows.items()}
    plain = {i: value for i, value in values.items() if _shapes.symbols_in(rows[i]) <= fixed}
    floats = (i for i, value in values.items() if isinstance(value, float) and i not in plain)
    return Numbers(frozenset(floats), plain)


# One of the engine's inputs, or the size of one of them: (input, dimension).
Pick = int | tuple[int, int]


def _sort_placeholders(
    module: torch.fx.GraphModule, order: list[tuple[Pick, torch.fx.Node | None]]
) -> None:
    """Those that are not there are made."""
    graph = module.graph
    for pick, node in reversed(order):
        first = next(iter(graph.nodes))
        if node is None:
            with graph.inserting_before(first):
                graph.placeholder("s{}_{}".format(*pick))  # type: ignore[misc]
        elif node is not first:
            first.prepend(node)
    module.recompile()


def _picked(pick: Pick, examples: list[Any], texts: list[str]) -> tuple[Any, str]:
    """An example of what was picked, or of the tensor whose size it is a `Ragged` one; and where
    it comes from."""
    if isinstance(pick, int):
        return examples[pick], texts[pick]
    i, d = pick
    return _shapes.Ragged(examples[i], d), f"{texts[i]}.size()[{d}]"


def _show_ragged(
    module: torch.fx.GraphModule, kept: Sequence[Pick], examples: list[Any]
) -> list[Pick]:
    """Backends want to see the symbol of a ragged size before the tensor that has it."""
    placeholders = module.graph.find_nodes(op="placeholder")
    order: list[tuple[Pick, torch.fx.Node | None]] = []
    for pick, node in zip(kept, placeholders, strict=True):
        if isinstance(pick, int):
            order += [((pick, d), None) for d in _shapes.ragged_dims(examples[pick])]
        order.append((pick, node))
    if len(order) > len(placeholders):
        _sort_placeholders(module, order)
    return [pick for pick, _ in order]


# What to call, what it relies on, and the symbols that must have this call's values.
Given = tuple[Callable[..., Any], list[Any], list[int]]


class _Symbolic:
    """A graph with numbers that differ from call to call, on its way to a backend."""

    def __init__(self, graph: _engine.Graph, examples: list[Any], numbers: Any) -> None:
        self._graph, self._examples = graph, examples
        self._texts = list(graph.sources)
        self._symbols = [_shapes.Symbol(*row) for row in numbers[0]]
        self._inputs = [_input(given) for given in numbers[1]]
        self._conditions = numbers[2]

    def _picked(self, pick: Pick) -> tuple[_shapes.Input, Any, str]:
        """What an input is, an example, and where it comes from."""
        if isinstance(pick, int):
            return self._inputs[pick], self._examples[pick], self._texts[pick]
        i, d = pick
        tensor: Any = self._inputs[i]
        return tensor.sizes[d], None, f"{self._texts[i]}.size()[{d}]"

    def _arrange(self, module: torch.fx.GraphModule, kept: list[int]) -> list[Pick]:
        """As stock graphs are: the sizes of a tensor that are symbols stand before it, whether they
        are used or not."""
        nodes: dict[Pick, torch.fx.Node] = dict(
            zip(kept, module.graph.find_nodes(op="placeholder"), strict=True)
        )
        numbers: dict[Any, Pick] = {self._inputs[i]: i for i in kept
                                    if _shapes.is_symbol(self._inputs[i])}  # fmt: skip
        sizes: dict[Any, tuple[int, int]] = {}  # symbols, by where they are first seen
        for i in kept:
            given: Any = self._inputs[i]
            for d, expr in enumerate(given.sizes if isinstance(given, _shapes.Sizes) else ()):
                if _shapes.is_symbol(expr):
                    sizes.setdefault(expr, (i, d))
        order: list[Pick] = []
        for i in kept:
            order += [numbers.get(expr, place) for expr, place in sizes.items() if place[0] == i]
            if not _shapes.is_symbol(self._inputs[i]) or self._inputs[i] not in sizes:
                order.append(i)
        _sort_placeholders(module, [(pick, nodes.get(pick)) for pick in order])
        return order

    def give(self, backend: Backend, shown: bool, fixed: frozenset[int]) -> Given:
        """Symbols that are `fixed` have this call's values in the graph itself."""
        kinds = _numbers_among(self._inputs, self._symbols, fixed)
        known = [i for i in range(len(self._inputs)) if i not in kinds.plain]
        module = to_fx(self._graph, kinds, lazy=True)
        kept = self._arrange(module, known) if shown else list[Pick](known)
        picked = [self._picked(pick) for pick in kept]
        inputs = [given for given, _, _ in picked]
        examples = [example for _, example, _ in picked]
        texts = [text for _, _, text in picked]
        sources = _sources.sources(texts)
        if any(map(_shapes.symbols_in, inputs)):
            shapes = _shapes.symbolic(self._symbols, inputs, examples, sources, self._conditions)
        else:
            shapes = _shapes.plain(examples, sources)
        if shown or _has_bodies(module):
            shapes.run(module)
        handed = give(module, shapes, texts, backend)
        compiled = _keeping(handed.compiled, self._graph, handed.context)
        pinned = sorted(handed.found.pinned | fixed)
        return _taking(compiled, kept, kinds), handed.found.conditions, pinned


def hand_over_symbolic(
    graph: _engine.Graph, examples: list[Any], numbers: Any, backend: Backend, shown: bool = True
) -> Given:
    """The same of a graph with numbers that differ from call to call. Its result takes ints and
    floats as they are. `shown`: each node has an example of its value.

    `numbers`: the symbols, what each input is, and the conditions that hold; see `_shapes`."""
    symbolic = _Symbolic(graph, examples, numbers)
    fixed: frozenset[int] = frozenset()
    while True:
        try:
            return symbolic.give(backend, shown, fixed)
        except _shapes.Restart as wanted:
            if wanted.symbols <= fixed:
                raise
            fixed |= wanted.symbols


def _taking(compiled: Callable[..., Any], kept: list[Pick], kinds: Numbers) -> Callable[..., Any]:
    """Takes all inputs, and gives on those that the backend knows. Floats go as tensors: new ones,
    since backward passes keep them."""
    if not kinds.floats and kept == list(range(len(kept))) and not kinds.plain:
        return compiled
    floats = [at for at, i in enumerate(kept) if i in kinds.floats]

    def call(*args: Any) -> Any:
        given = [args[i] if isinstance(i, int) else args[i[0]].shape[i[1]] for i in kept]
        for at in floats:
            given[at] = torch.tensor(given[at], dtype=torch.float64, device="cpu")
        return compiled(*given)

    return call


def _keeping(
    compiled: Callable[..., Any], graph: _engine.Graph, context: private.TracingContext
) -> Callable[..., Any]:
    """Keeps what a call needs: its context, in which a backward pass may be compiled later; and
    torch's state, where the graph sets it and an error would leave it set."""
    if graph.keeper is None:
        with contextlib.suppress(AttributeError, TypeError):
            compiled._stator_context = context  # type: ignore[attr-defined]
        return compiled
    save, restore = graph.keeper

    def call(*args: Any) -> Any:
        state = save()
        try:
            return compiled(*args)
        except BaseException:
            restore(state)
            raise

    call._stator_context = context  # type: ignore[attr-defined]
    return call


def resolve(backend: str | Backend) -> Callable[..., Any]:
    """What the engine calls with a graph and its example inputs; and with their numbers, if these
    differ from call to call."""
    function = private.get_compiler_fn(backend)
    shown = not _is_torchs(backend)
    once = functools.partial(_takes_layers_once, backend)

    def call(graph: _engine.Graph, examples: list[Any], numbers: Any = None) -> Any:
        split = private.split_module() is not None  # parts of a graph get their own symbols
        # The trace has asked the classes of the examples, and nobody asks them again.
        with (
            _overrides.asking_nobody(graph.context is not None, examples),
            _progress.backend(graph.operations),
        ):
            if numbers is None:
                return hand_over(graph, examples, function, once() and not split)
            return hand_over_symbolic(graph, examples, numbers, function, shown or split)

    return call
