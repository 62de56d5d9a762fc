"""The callables of this torch that the engine knows, each with what becomes of its calls:
the names of the tables, looked up."""

import operator
import pkgutil
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

import torch

from stator import (
    _engine,
    _flex,
    _function,
    _function_bodies,
    _gradients,
    _groups,
    _higher,
    _higher_flow,
    _higher_wrap,
    _instead,
    _levels,
    _nonstrict,
    _overrides,
    _rows,
    _settings,
    _state,
)
from stator._rows import Named, Row, words
from stator._versions import private


def _named(extra: Any, name: str) -> Any:
    """A row's extra for one of its names."""
    if isinstance(extra, tuple):
        return tuple(_named(part, name) for part in extra)
    return extra.replace("{}", name) if isinstance(extra, str) else extra


# -- operations --


def _functions() -> Iterator[Named]:
    """C functions that make tensors, as far as schemas tell. `torch` has some functions of its own
    in their places."""
    for path, (lies, home) in private.operations.items():
        for name in dir(home):
            function = getattr(home, name)
            if isinstance(function, BuiltinFunctionType) and not name.startswith("__"):
                hidden = path == "torch" and getattr(torch, name, None) is not function
                yield (
                    f"{lies if hidden else path}.{name}",
                    function,
                    ("schema", (name, f"{path}.{name}")),
                )


def _kept_whole() -> Iterator[Named]:
    for home, names in _rows.WHOLE:
        for name in words(names):
            yield (path := f"{home}.{name}"), private.find(path), ("operation", None)


_METHOD_TYPES = (MethodDescriptorType, WrapperDescriptorType)


def _method_rows() -> dict[str, Row]:
    return {name: (kind, _named(extra, name)) for kind, extra, names in _rows.METHODS
            for name in words(names)}  # fmt: skip


def _tensor_methods() -> Iterator[Named]:
    """A method of C is what its row says, or its schema. A Python method without a row has none:
    it is interpreted."""
    rows = _method_rows()
    for name in rows:
        private.find(f"torch.Tensor.{name}")
    for path, base in ("torch._C.TensorBase", private.TensorBase), ("torch.Tensor", torch.Tensor):
        for name, method in list(vars(base).items()):  # other threads may add to it
            if isinstance(method, _METHOD_TYPES):
                row = rows.get(name, ("schema", (name, f"Tensor.{name}")))
                yield f"{path}.{name}", method, row
            elif hasattr(method, "__code__") and name in rows:
                yield f"{path}.{name}", method, rows[name]


def by_schema(function: Any, names: tuple[str, str]) -> Row:
    """What becomes of a C function or a method that has no row of its own: asked at its first call.

    It is a node if its operator has schemas, and each of them tells what the operator does: it
    gives tensors or writes to them. Numbers may depend on anything, and who gives nothing does
    something else.
    """
    name, path = names
    schemas = private.schemas(name)
    if not schemas:
        return "refused", f"{path}, which has no row and no schema"
    if not all(map(private.tells_all, schemas)):
        return "refused", f"{path}, which has no row, and does more than its schema tells"
    return ("method", name) if isinstance(function, MethodDescriptorType) else ("operation", None)


# -- the others --

_PLAIN_TYPES = (torch.Size, torch.dtype, torch.device, torch.finfo, torch.iinfo, torch.layout,
                torch.memory_format)  # fmt: skip


def _listed(table: _rows.Rows) -> Iterator[Named]:
    for kind, extra, names in table:
        for path in words(names):
            yield path, private.find(path), (kind, _named(extra, path))


def _of_types() -> Iterator[Named]:
    for plain in _PLAIN_TYPES:
        for name, method in list(vars(plain).items()):
            if isinstance(method, MethodDescriptorType) and not name.startswith("__"):
                kind = "numel" if method is torch.Size.numel else "plain"
                yield f"torch.{plain.__name__}.{name}", method, (kind, name)


def _by_itself(table: tuple[tuple[Any, Row], ...]) -> Iterator[Named]:
    """Rows of functions that are not looked up by a path: they know it, or another row does."""
    for function, row in table:
        of_c = isinstance(function, BuiltinFunctionType)  # whose qualified name may be pybind11's
        name = None if of_c else getattr(function, "__qualname__", None)  # operators have none
        name = name or function.__name__
        home = getattr(function, "__objclass__", function)  # of a C method: its class
        yield f"{getattr(home, '__module__', None)}.{name}", function, row


def rows() -> list[tuple[Any, str, Row]]:
    """Every callable of torch that the engine knows, where it lies, and its row: the last one.
    Those in modules that are not imported yet come later."""
    table: dict[int, tuple[Any, str, Row]] = {}
    for path, function, row in (
        *_functions(),
        *_tensor_methods(),
        *_kept_whole(),
        *_listed(_rows.FUNCTIONS),
        *_settings.rows(),
        *_levels.rows(),
        *_of_types(),
        *_by_itself(_state.ROWS),
        *_by_itself(_instead.ROWS),
        *_instead.NAMED,
        *_by_itself(tuple(_instead.later_rows())),
        *_by_itself(_function.ROWS),
        *_by_itself(_overrides.ROWS),
        *_by_itself(_higher.ROWS),
        *_by_itself(_gradients.ROWS),
        *_by_itself(_groups.rows()),
        *_groups.questions(),
        *_by_itself(_flex.rows()),
        *_by_itself(_higher_flow.ROWS),
        *_by_itself(_higher_wrap.ROWS),
        *_by_itself(_function_bodies.ROWS),
        *_by_itself(_nonstrict.ROWS),
        *_by_itself(tuple(_nonstrict.later_rows())),
        *_higher_wrap.NAMED,
    ):
        if function is not None:
            _, path, _ = table.get(id(function), (None, path, None))
            table[id(function)] = function, path, row
    return list(table.values())


def path_of(target: Any) -> str | None:
    """How a file names the target of a node: `pkgutil.resolve_name` finds it again. None: it has no
    name that lasts."""
    overload = isinstance(target, private.OpOverload | private.OpOverloadPacket)
    path = f"torch.ops.{target}" if overload else _engine.rule_path(target)
    try:
        return path if path and pkgutil.resolve_name(path) is target else None
    except (ImportError, AttributeError, ValueError):  # of a type that no module has
        return None


def fields() -> list[Any]:
    """Fields of immutable types of torch's, which may be read at any time."""
    kinds = (GetSetDescriptorType, MemberDescriptorType)
    return [field for plain in _PLAIN_TYPES for field in list(vars(plain).values())
            if isinstance(field, kinds)]  # fmt: skip


def attributes() -> dict[str, tuple[Any, Any]]:
    """A tensor's attributes: the descriptor, and what becomes of it or is called in its place."""
    known: dict[str, Any] = {name: how for how, names in _rows.ATTRIBUTES for name in words(names)}
    found = {}
    views = private.view_calls if private.has(private.DYNAMO) else {}
    for name, how in {**known, **private.attribute_calls, **views}.items():
        descriptor = private.find(f"torch.Tensor.{name}")
        if descriptor is not None:
            found[name] = descriptor, how
    return found


# -- those whose results the engine's rules know --

BINARY = words("""
    add and_ floordiv lshift matmul mul mod or_ pow rshift sub truediv xor iadd iand ifloordiv
    ilshift imatmul imul imod ior ipow irshift isub itruediv ixor
""")  # in the order of BINARY_OP's argument
COMPARE = words("lt le eq ne gt ge")

_C_CALLABLES = (BuiltinFunctionType, MethodDescriptorType)


def unlike_fakes() -> dict[Any, str | None]:
    """Callables of the operators in `_rows.UNLIKE_FAKES`, with the keyword that matters."""
    found: dict[Any, str | None] = {}
    homes = (*private.rule_homes, operator, torch.nn.functional)
    for word in words(_rows.UNLIKE_FAKES):
        name, _, keyword = word.partition(":")
        places = [private.find(name)] if "." in name else [
            callable for home in homes if (callable := getattr(home, name, None)) is not None
        ]  # fmt: skip
        if not places:
            private.missing(f"torch.{name}")
        found |= {callable: keyword or None for callable in places if callable is not None}
    return found


_VIEWS = words(
    "view transpose permute unsqueeze squeeze expand narrow select t swapaxes unfold movedim"
)


def views() -> set[Any]:
    """Targets of nodes that show a tensor in another shape, by their arguments alone."""
    functions = {getattr(torch, name, None) for name in _VIEWS} - {None}
    return {*_VIEWS, *functions, operator.getitem}


_OTHERS = words("neg abs invert getitem setitem")


def rules() -> list[tuple[Any, str]]:
    """Callables, each with the name of the rule that knows its result."""
    found = []
    homes = private.rule_homes
    for name in _engine.torch_rules():
        places = [private.find(f"torch.{name}")] if "." in name else [
            callable for home in homes
            if isinstance(callable := getattr(home, name, None), _C_CALLABLES)
        ]  # fmt: skip
        if name in (*BINARY, *COMPARE, *_OTHERS):
            places.append(getattr(operator, name))
        if not places:
            private.missing(f"torch.{name}")
        found += [(callable, name) for callable in places if callable is not None]
    return found
