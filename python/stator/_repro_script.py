"""Behind `stator.repro`: writes a script that shows alone what a backend does wrong with one graph.
It needs torch, and neither Stator nor the program."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx

from stator import _callables, _compile, _verify
from stator._versions import private

_MOST_ELEMENTS = 1000  # of a constant of a graph that is written with its values

# -- finding --


@dataclasses.dataclass
class Wrong:
    """A graph, and what a backend does wrong with it."""

    module: torch.fx.GraphModule
    examples: list[Any]
    what: str
    number: int  # among the graphs of the function


class Probe:
    """A backend that tries another one: it notes the graphs with which that fails or gives other
    results, and runs these as they are."""

    def __init__(self, backend: str | Callable[..., Any]) -> None:
        self._backend = private.get_compiler_fn(backend)
        self.graphs = 0
        self.found: list[Wrong] = []

    def _tried(self, module: Any, examples: Any, plain: Any) -> tuple[Any, str]:
        try:
            compiled = self._backend(module, examples)
            wrong = _verify.differences(plain, compiled, examples)
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
        return compiled, "\n".join(wrong)

    def __call__(self, module: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        number, self.graphs = self.graphs, self.graphs + 1
        plain = private.copied(module)  # backends may change the graph
        compiled, what = self._tried(module, examples, plain)
        if not what:
            return compiled  # type: ignore[no-any-return]
        self.found.append(Wrong(plain, list(examples), what, number))
        return plain.forward


# -- writing --


def _path(o: Any) -> str | None:
    """Where another process finds it."""
    path = _callables.path_of(o)
    if path is None and hasattr(o, "__qualname__"):
        path = f"{o.__module__}.{o.__qualname__}"
    try:
        found = pkgutil.resolve_name(path) if path else None
    except (ImportError, AttributeError, ValueError):
        return None
    return path if found is o and not path.startswith("__main__.") else None  # type: ignore[union-attr]


def _global(name: str, value: Any) -> str:
    if isinstance(value, types.ModuleType):
        same = name == value.__name__
        return f"import {name}" if same else f"import {value.__name__} as {name}"
    if isinstance(value, float):
        return f'{name} = float("{value}")'
    path = _path(value)
    if path is None:
        return f"{name} = None  # TODO: {value!r}, which no module has"
    return f'{name} = pkgutil.resolve_name("{path}")'


def _code(module: torch.fx.GraphModule) -> tuple[str, dict[str, Any]]:
    code = module.graph.python_code("self")
    used = {name: o for name, o in code.globals.items() if re.search(rf"\b{name}\b", code.src)}
    return textwrap.dedent(code.src).strip(), used


def _tensor(t: torch.Tensor) -> str:
    parts = (tuple(t.shape), tuple(t.stride()), t.dtype, str(t.device), t.requires_grad)
    return f"tensor({', '.join(map(repr, parts))})"


def _constant(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        if value.numel() <= _MOST_ELEMENTS and value.layout is torch.strided:
            how = f"dtype={value.dtype}, device={str(value.device)!r}"
            return f"torch.tensor({value.tolist()!r}, {how})"
        return f"{_tensor(value)}  # its values are left out"
    if isinstance(value, (bool, int, float, str, type(None), torch.dtype)):
        return repr(value)
    return f"None  # TODO: {value!r}"


def _attributes(module: torch.fx.GraphModule) -> Iterator[tuple[str, Any]]:
    for node in module.graph.find_nodes(op="get_attr"):
        yield str(node.target), getattr(module, str(node.target))


def _classes(module: torch.fx.GraphModule, name: str, scope: dict[str, Any]) -> Iterator[str]:
    """The module as classes, bodies before what calls them; `scope` gets the names they use."""
    source, used = _code(module)
    scope |= used
    lines = []
    for key, value in dict(_attributes(module)).items():
        if isinstance(value, torch.fx.GraphModule):
            yield from _classes(value, f"{name}_{key}", scope)
            lines.append(f"self.{key} = {name}_{key}()")
        else:
            lines.append(f"self.{key} = {_constant(value)}")
    start = "def __init__(self):\n    super().__init__()\n" + textwrap.indent(
        "\n".join(lines), "    "
    )
    body = f"{start.rstrip()}\n\n{source}"
    yield f"class {name}(torch.nn.Module):\n{textwrap.indent(body, '    ')}\n"


def _input(example: Any) -> str:
    return _tensor(example) if isinstance(example, torch.Tensor) else repr(private.hint(example))


def _backend_text(backend: Any) -> str:
    """How the script gets it; a function that no module has is written down."""
    if isinstance(backend, str):
        return f"BACKEND = {backend!r}"
    if path := _path(backend):
        return f'BACKEND = pkgutil.resolve_name("{path}")'
    try:
        text = textwrap.dedent(inspect.getsource(backend))
    except (OSError, TypeError):
        text = ""
    if not text.startswith("def "):
        return f'BACKEND = "eager"  # TODO: {backend!r}'
    return f"\n\n{text}\n\nBACKEND = {backend.__name__}"


def _settings() -> Iterator[str]:
    """Torch's that are not as they are by default."""
    yield from private.settings_text().splitlines()
    if torch.get_default_dtype() is not torch.float32:
        yield f"torch.set_default_dtype({torch.get_default_dtype()})"
    if torch.are_deterministic_algorithms_enabled():
        yield "torch.use_deterministic_algorithms(True)"
    if (precision := torch.get_float32_matmul_precision()) != "highest":
        yield f"torch.set_float32_matmul_precision({precision!r})"
    if not torch.is_grad_enabled():
        yield "torch.set_grad_enabled(False)"


_SCRIPT = '''\
"""Made by stator.repro: graph {number} of {name}, with torch {version} on Python {python}.

{what}

Run it: it compiles the graph with the same backend and compares. With --stator Stator compiles it
in place of torch's own Dynamo.
"""

import pkgutil
import sys

import torch
import torch._dynamo
import torch._functorch.config
import torch._inductor.config
{imports}

{settings}
{backend}


def tensor(size, stride, dtype, device, requires_grad):
    """Random values, the same ones in each run."""
    room = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    values = torch.rand(room, device=device, dtype=torch.float64) * 2 - 1
    if not (dtype.is_floating_point or dtype.is_complex):
        values = values.abs() * 2
    made = values.to(dtype).as_strided(size, stride)
    return made.requires_grad_(requires_grad)


{classes}

def inputs():
    torch.manual_seed(0)
    return [
{inputs}
    ]


def flat(values):
    if not isinstance(values, (list, tuple)):
        return [values]
    return [value for part in values for value in flat(part)]


def run(function):
    given = inputs()
    torch.manual_seed(1)
    return flat(function(*given)) + given


def main():
    if "--stator" in sys.argv:
        import stator

        stator.install()
    expected = run(Graph())
    found = run(torch.compile(Graph(), backend=BACKEND, fullgraph=True))
    same = len(found) == len(expected) and all(
        torch._dynamo.utils.same(a, b, tol={tolerance}, equal_nan=True)
        for a, b in zip(expected, found)
    )
    print("the results are the same" if same else "the results differ")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
'''


def script(wrong: Wrong, name: str, backend: Any) -> str:
    scope: dict[str, Any] = {}
    classes = "\n\n".join(_classes(wrong.module, "Graph", scope))
    imports = [_global(key, value) for key, value in sorted(scope.items()) if key != "torch"]
    what = wrong.what.replace("\\", "\\\\").replace('"""', "'''")
    return _SCRIPT.format(
        number=wrong.number,
        name=name,
        version=torch.__version__,
        python=".".join(map(str, sys.version_info[:3])),
        what=what,
        imports="\n".join(imports),
        settings="\n".join(_settings()),
        backend=_backend_text(backend),
        classes=classes,
        inputs="\n".join(f"        {_input(example)}," for example in wrong.examples),
        tolerance=_verify.TOLERANCE,
    )


# -- what people call --


def write(f: Callable[..., Any], args: Any, kwargs: Any, backend: Any, path: str) -> str | None:
    """What `stator.repro` does."""
    f = getattr(_compile.innermost(f), "__wrapped__", f) if callable(f) else f
    probe = Probe(backend)
    _compile.compile(f, backend=probe)(*args, **kwargs)
    if not probe.found:
        return None
    name = getattr(f, "__qualname__", type(f).__qualname__)
    text = script(probe.found[0], name, backend)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path
