"""Callables that become nodes and run Python code of the user's do what they do in plain Python.

The whole table (forms × bodies × programs × backends) runs with STATOR_FULL=1.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import body_programs as bodies  # noqa: E402

import stator  # noqa: E402

FULL = bool(os.environ.get("STATOR_FULL"))
MADE: dict[Any, Any] = {}
BODIES = [*bodies.WRITE, *bodies.READ, *bodies.COMPUTE]


def callable_of(form: Any, body: Any) -> Any:
    """An operation is registered once in a process."""
    if (form, body) not in MADE:
        MADE[form, body] = form(body)
    return MADE[form, body]


def seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return "tensor", value.tolist(), value.requires_grad
    return type(value)(map(seen, value)) if isinstance(value, (tuple, list)) else value


def outcomes(f: Any, grad: bool) -> list[Any]:
    bodies.reset()
    found = []
    for i in range(3):
        x = (torch.arange(2.0) + i).requires_grad_(grad)
        try:
            result = seen(f(x))
        except Exception as error:
            result = type(error), str(error)
        found.append((result, bodies.state()))
    return found


def check(form: Any, body: Any, program: Any, backend: str, grad: bool = False) -> None:
    op = callable_of(form, body)

    def f(x):
        return program(op, x)

    want = outcomes(f, grad)
    assert outcomes(stator.compile(f, backend=backend), grad) == want, (body, program)


def choose(index: int) -> list[Any]:
    """Of the programs; those of all bodies together are all."""
    few = [bodies.PROGRAMS[(index * 2 + k * 7) % len(bodies.PROGRAMS)] for k in range(2)]
    return bodies.PROGRAMS if FULL else few


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("form", bodies.FORMS)
@pytest.mark.filterwarnings("ignore:stator")
def test_state_that_a_body_and_the_program_share(form, backend):
    grad = form in (bodies.as_function, bodies.as_differentiable)
    for index, body in enumerate(BODIES):
        if (form, backend) == (bodies.as_allowed, "aot_eager") and body in bodies.READ:
            continue  # the backend traces it: see the docs' limits
        for program in choose(index + bodies.FORMS.index(form)):
            check(form, body, program, backend, grad)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", bodies.OTHERS)
def test_operations_of_other_kinds(program, grad, backend):
    def f(x):
        return program(x * 1)

    assert outcomes(stator.compile(f, backend=backend), grad) == outcomes(f, grad)


OPERATIONS = [bodies.as_custom_op, bodies.as_kernel, bodies.as_library, bodies.as_defined,
              bodies.as_nested, bodies.as_differentiable]  # fmt: skip


@pytest.mark.parametrize("form", OPERATIONS)
@pytest.mark.parametrize("body", [*bodies.COMPUTE, *bodies.READ[:-1]])  # the last can write, too
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_operation_that_only_computes_is_a_node(form, body, backend):
    op = callable_of(form, body)
    fast = stator.compile(lambda x: op(x.sin()).cos(), backend=backend)
    fast(torch.ones(2))
    assert fast.metrics["breaks"] == []


@pytest.mark.parametrize("form", OPERATIONS)
@pytest.mark.parametrize("body", [bodies.b_global, bodies.b_list, bodies.b_method, bodies.b_exec])
def test_a_whole_graph_has_operations_that_write_elsewhere(form, body):
    op = callable_of(form, body)
    fast = stator.compile(lambda x: op(x.sin()).cos(), backend="eager", fullgraph=True)
    bodies.reset()
    want = op(torch.ones(2).sin()).cos()
    bodies.reset()
    assert torch.equal(fast(torch.ones(2)), want)


@pytest.mark.parametrize("form", OPERATIONS)
@pytest.mark.parametrize("body", [bodies.b_global, bodies.b_list, bodies.b_attribute])
def test_a_whole_graph_refuses_what_would_come_too_late(form, body):
    op = callable_of(form, body)

    def f(x):
        return op(x) + bodies.COUNT + len(bodies.LOG) + bodies.box.count

    with pytest.raises(stator.Unsupported, match="BODY"):
        stator.compile(f, backend="eager", fullgraph=True)(torch.ones(2))


def test_sets_that_change_during_a_trace():
    """The fake of an operation adds to a set that the trace has opened."""
    names = {1, 2}

    @torch.library.custom_op("stator_bodies::adds", mutates_args=())
    def adds(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @adds.register_fake
    def _(x):
        names.update(range(10, 60))
        return torch.empty_like(x)

    def f(x):
        names.add(3)
        y = adds(x)
        names.discard(1)
        return y, len(names)

    want = f(torch.ones(2))
    names.clear()
    names.update({1, 2})
    got = stator.compile(f, backend="eager")(torch.ones(2))
    assert torch.equal(got[0], want[0])
    assert 3 in names and 1 not in names
