"""What was compiled of a function goes with it, though compiles with equal settings share their
entries."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import stator

torch = pytest.importorskip("torch")

_FEW = 64  # caches of one compiler that may wait to be looked at


def _made(source: str) -> Any:
    scope: dict[str, Any] = {}
    exec(source, scope)
    return scope.pop("f")


MAKERS: dict[str, Callable[[], Any]] = {
    "lambda": lambda: eval("lambda x: x + 1"),
    "break": lambda: _made("def f(x):\n y = x + 1\n print(end='')\n return y * 2"),
    "loop of breaks": lambda: _made(
        "def f(x):\n for i in range(3):\n  x = x + i\n  print(end='')\n return x"
    ),
    "exception": lambda: _made(
        "def f(x):\n try:\n  raise ValueError(x + 1)\n except ValueError as e:\n  return e.args[0]"
    ),
    "recursion": lambda: _made(
        "def f(x, n=2):\n print(end='')\n return x if n == 0 else __import__('sys')"
        "._getframe().f_back and x + 1"
    ),
    "step": lambda: _made(
        "import torch\ndef f(x):\n y = x + 1\n"
        " torch._dynamo.decorators.step_unsupported('no')\n return y * 2"
    ),
}


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    stator.install()
    yield
    stator.uninstall()
    stator.reset()


def _living(make: Callable[[], Any], compiles: Callable[[Any], Any], last: str, n: int) -> int:
    codes, x = [], torch.ones(3)
    for _ in range(n):
        f = make()
        codes.append(weakref.ref(f.__code__))
        g = compiles(f)
        g(x)
        if last == "function":
            del g
            del f
        else:
            del f
            del g
    gc.collect()
    return sum(code() is not None for code in codes)


@pytest.mark.parametrize("name", MAKERS)
def test_code_dies_with_what_was_compiled_of_it(name: str) -> None:
    compiles = lambda f: torch.compile(f, backend="eager")  # noqa: E731
    assert _living(MAKERS[name], compiles, "compiled", 30) == 0


@pytest.mark.parametrize("name", MAKERS)
def test_code_that_outlives_what_was_compiled_of_it_dies_later(name: str) -> None:
    compiles = lambda f: torch.compile(f, backend="eager")  # noqa: E731
    assert _living(MAKERS[name], compiles, "function", 100) <= _FEW


def test_code_of_two_that_keep_each_other_dies() -> None:
    def make() -> Any:
        return _made(
            "def g(x):\n print(end='')\n return x + 1\n"
            "def f(x, g=g):\n y = g(x)\n print(end='')\n return y * 2"
        )

    compiles = lambda f: torch.compile(f, backend="eager")  # noqa: E731
    assert _living(make, compiles, "compiled", 100) <= _FEW


def test_code_that_several_backends_have_compiled_dies() -> None:
    def backend(module: Any, inputs: Any) -> Any:
        return module.forward

    def compiles(f: Any) -> Any:
        both = [torch.compile(f, backend="eager"), torch.compile(f, backend=backend)]
        return lambda x: [g(x) for g in both]

    for name in ("lambda", "break"):
        assert _living(MAKERS[name], compiles, "compiled", 30) == 0


def test_backends_made_for_one_compile_are_not_kept_for_ever() -> None:
    known = len(torch._dynamo.eval_frame.cached_backends)
    alive = []
    for _ in range(100):
        backend = type("Backend", (), {"__call__": lambda self, module, inputs: module.forward})()
        alive.append(weakref.ref(backend))
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(3))
        del backend
    gc.collect()
    assert sum(backend() is not None for backend in alive) <= _FEW
    assert len(torch._dynamo.eval_frame.cached_backends) <= known + 1


# -- what must stay --


def test_entries_stay_as_long_as_the_function() -> None:
    f = eval("lambda x: x + 1")
    torch.compile(f, backend="eager")(torch.ones(3))
    gc.collect()
    again = torch.compile(f, backend="eager")
    again(torch.ones(3))
    assert again.metrics["hits"] >= 1
    assert again.metrics["traces"] == 1


def test_a_code_object_at_a_dead_one_s_address_has_entries_of_its_own() -> None:
    x = torch.ones(3)
    for i in range(100):
        assert torch.equal(torch.compile(eval(f"lambda x: x + {i}"), backend="eager")(x), x + i)


def test_replaced_code_is_not_mixed_up() -> None:
    f = eval("lambda x: x + 1")
    g = torch.compile(f, backend="eager")
    x = torch.ones(3)
    for i in range(100):
        f.__code__ = eval(f"lambda x: x * {i}").__code__
        assert torch.equal(g(x), x * i)


def test_a_function_that_lets_go_of_itself_while_it_runs() -> None:
    holder: list[Any] = []

    def make() -> None:
        def f(x: torch.Tensor) -> torch.Tensor:
            y = x + 1
            holder.clear()
            gc.collect()
            return y * 2

        holder.append(torch.compile(f, backend="eager"))

    for _ in range(20):
        make()
        assert torch.equal(holder[0](torch.ones(3)), torch.full((3,), 4.0))
