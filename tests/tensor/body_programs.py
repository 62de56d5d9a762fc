"""Programs with callables that run Python code of the user's when the graph runs.

A program is a function that takes a tensor. All that it and its callables do is to be seen in its
result, in its exception, and in `box`, `GLOBALS` and the globals named below.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


class Box:
    """State of the programs; a new one is like the first."""

    kept = 0

    def __init__(self) -> None:
        self.count = 0
        self.log: list[Any] = []
        self.table: dict[str, Any] = {"k": 1}
        self.scale = 2.0

    def note(self) -> None:
        self.count += 1


class Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


COUNT = 0
SCALE = 2.0
LOG: list[Any] = []
TABLE: dict[str, Any] = {"k": 1}
NAMES: set[str] = set()
box = Box()
slotted = Slotted()
buffer = torch.zeros(2)
table_of_functions = {2: torch.sin, 3: torch.cos}


def reset() -> None:
    global COUNT, SCALE
    COUNT, SCALE = 0, 2.0
    LOG.clear()
    TABLE.clear()
    TABLE["k"] = 1
    NAMES.clear()
    box.__init__()  # type: ignore[misc]
    Box.kept = 0
    slotted.count = 0
    buffer.zero_()
    cell_state(0)


def state() -> dict[str, Any]:
    return {
        "COUNT": COUNT,
        "SCALE": SCALE,
        "LOG": list(LOG),
        "TABLE": dict(TABLE),
        "NAMES": sorted(NAMES),
        "box": (box.count, list(box.log), dict(box.table), box.scale, sorted(vars(box))),
        "kept": Box.kept,
        "slotted": slotted.count,
        "buffer": buffer.tolist(),
        "cell": cell_state(),
    }


def _cells() -> Any:
    count = 0

    def read(new: int | None = None) -> int:
        nonlocal count
        count = count if new is None else new
        return count

    def add(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return x + count

    return read, add


cell_state, _cell_add = _cells()


# -- the bodies: what they do beside computing --


def b_global(x: Tensor) -> Tensor:
    global COUNT
    COUNT += 1
    return x + COUNT


def b_list(x: Tensor) -> Tensor:
    LOG.append(len(LOG))
    return x + len(LOG)


def b_dict(x: Tensor) -> Tensor:
    TABLE["k"] += 1
    return x * TABLE["k"]


def b_set(x: Tensor) -> Tensor:
    NAMES.add(f"n{len(NAMES)}")
    return x + len(NAMES)


def b_attribute(x: Tensor) -> Tensor:
    box.count += 1
    return x + box.count


def b_setattr(x: Tensor) -> Tensor:
    setattr(box, "count", box.count + 1)  # noqa: B010
    return x + box.count


def b_method(x: Tensor) -> Tensor:
    box.note()
    return x * 1.5


def b_nested(x: Tensor) -> Tensor:
    box.log.append("op")
    return x * 1.5


def b_class(x: Tensor) -> Tensor:
    Box.kept += 1
    return x + Box.kept


def b_type(x: Tensor) -> Tensor:
    type(box).kept += 1
    return x + box.kept


def b_slot(x: Tensor) -> Tensor:
    slotted.count += 1
    return x + slotted.count


def b_cell(x: Tensor) -> Tensor:
    return _cell_add(x)


def _helper() -> None:
    global COUNT
    COUNT += 1


def b_helper(x: Tensor) -> Tensor:
    _helper()
    return x + COUNT


def _give() -> list[Any]:
    return LOG


def b_given(x: Tensor) -> Tensor:
    _give().append(1)
    return x + len(LOG)


def b_alias(x: Tensor) -> Tensor:
    log = LOG
    log.append(1)
    return x + len(log)


def b_globals(x: Tensor) -> Tensor:
    globals()["COUNT"] += 1
    return x + COUNT


def b_exec(x: Tensor) -> Tensor:
    exec("LOG.append(1)", globals())
    return x + len(LOG)


def b_import(x: Tensor) -> Tensor:
    import sys

    sys.modules[__name__].LOG.append(1)  # type: ignore[attr-defined]
    return x + len(LOG)


def b_partial(x: Tensor) -> Tensor:
    functools.partial(LOG.append, 1)()
    return x + len(LOG)


def _counted(n: list[int] = []) -> int:  # noqa: B006
    LOG.append(len(n))
    return len(LOG)


def b_default(x: Tensor) -> Tensor:
    return x + _counted()


def b_lambda(x: Tensor) -> Tensor:
    (lambda: LOG.append(1))()
    return x + len(LOG)


def b_comprehension(x: Tensor) -> Tensor:
    [LOG.append(i) for i in range(2)]
    return x + len(LOG)


def b_delete(x: Tensor) -> Tensor:
    TABLE.pop("gone", None)
    TABLE["gone"] = len(TABLE)
    return x + len(TABLE)


WRITE = [
    b_global, b_list, b_dict, b_set, b_attribute, b_setattr, b_method, b_nested, b_class, b_type,
    b_slot, b_cell, b_helper, b_given, b_alias, b_globals, b_exec, b_import, b_partial, b_default,
    b_lambda, b_comprehension, b_delete,
]  # fmt: skip


def b_reads_global(x: Tensor) -> Tensor:
    return x * SCALE


def b_reads_attribute(x: Tensor) -> Tensor:
    return x * box.scale


def b_reads_item(x: Tensor) -> Tensor:
    return x * TABLE["k"]


def b_reads_length(x: Tensor) -> Tensor:
    return x + len(LOG)


def b_reads_class(x: Tensor) -> Tensor:
    return x + Box.kept


def b_reads_cell(x: Tensor) -> Tensor:
    return x + cell_state()


READ = [
    b_reads_global,
    b_reads_attribute,
    b_reads_item,
    b_reads_length,
    b_reads_class,
    b_reads_cell,
]


def b_torch(x: Tensor) -> Tensor:
    return torch.nn.functional.relu(x).sin() * math.pi


def b_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.square(x.detach().numpy()))


def b_local(x: Tensor) -> Tensor:
    parts = []
    for i in range(3):
        parts.append(x * i)
    sums = {"all": sum(parts)}
    sums["all"] = sums["all"] + 1
    return sums["all"]


def _pure(x: Tensor, factor: float) -> Tensor:
    return x * factor


def b_calls(x: Tensor) -> Tensor:
    with torch.no_grad():
        return _pure(x, 3.0)


def b_chosen(x: Tensor) -> Tensor:
    return table_of_functions[x.dim() + 1](x)


def b_value(x: Tensor) -> Tensor:
    if float(x.sum()) > 1e6:
        raise ValueError("too large")
    out = torch.empty_like(x)
    out.copy_(x + 1)
    return out


def b_buffer(x: Tensor) -> Tensor:
    return x + buffer.sum()


COMPUTE = [b_torch, b_numpy, b_local, b_calls, b_chosen, b_value, b_buffer]


# -- the programs: what is around the call of `op` --


def p_reads_all_after(op, x):
    y = op(x * 2)
    return y + COUNT, len(LOG), TABLE["k"], len(NAMES), box.count, len(box.log), Box.kept


def p_reads_cell_after(op, x):
    y = op(x)
    return y, cell_state(), slotted.count, box.scale, SCALE


def p_reads_before_and_after(op, x):
    before = (COUNT, list(LOG), dict(TABLE), box.count, Box.kept, slotted.count)
    y = op(x)
    return y, before, (COUNT, list(LOG), dict(TABLE), box.count, Box.kept, slotted.count)


def p_branches(op, x):
    y = op(x)
    if COUNT > 1 or len(LOG) > 1 or TABLE["k"] > 2 or box.count > 1 or Box.kept > 1:
        return y * 100
    return y - 1


def p_writes_before(op, x):
    global COUNT, SCALE
    COUNT = COUNT + 10
    SCALE = SCALE + 1
    LOG.append("f")
    TABLE["k"] = TABLE["k"] + 5
    NAMES.add("f")
    box.count = box.count + 7
    box.scale = box.scale + 1
    slotted.count = slotted.count + 3
    return op(x) * 2


def p_writes_class_before(op, x):
    Box.kept = Box.kept + 4
    return op(x) * 2


def p_writes_cell_before(op, x):
    cell_state(7)
    return op(x) * 2


def p_writes_after(op, x):
    global COUNT, SCALE
    y = op(x)
    COUNT = COUNT + 10
    SCALE = SCALE + 1
    LOG.append("f")
    TABLE["k"] = TABLE["k"] + 5
    box.count = box.count + 7
    box.log.append("f")
    cell_state(cell_state() + 3)
    return y + COUNT


def p_overwrites(op, x):
    global COUNT
    y = op(x)
    COUNT = 5
    TABLE["k"] = 5
    box.count = 5
    slotted.count = 5
    return y


def p_loop(op, x):
    seen = []
    for _ in range(3):
        x = op(x)
        seen.append((COUNT, len(LOG), TABLE["k"], box.count, Box.kept))
    return x, seen


def p_twice(op, x):
    return op(x) + op(x)


def p_unused(op, x):
    op(x)
    return x * 2


def p_plain(op, x):
    return op(x.sin()).cos()


def p_finally(op, x):
    try:
        y = op(x)
        if y.dim() > 9:
            raise ValueError
        return y
    finally:
        LOG.append(("end", COUNT, box.count))


def p_given_list(op, x, log=LOG):
    y = op(x)
    return y, len(log), log[-1:] == [1]


PROGRAMS = [
    p_reads_all_after, p_reads_cell_after, p_reads_before_and_after, p_branches, p_writes_before,
    p_writes_class_before, p_writes_cell_before, p_writes_after, p_overwrites, p_loop, p_twice,
    p_unused, p_plain, p_finally, p_given_list,
]  # fmt: skip


# -- the forms: how a body becomes a callable of a graph --

_library = torch.library.Library("stator_bodies", "FRAGMENT")


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def as_custom_op(body: Any) -> Any:
    op = torch.library.custom_op(f"stator_bodies::c_{body.__name__}", body, mutates_args=())
    op.register_fake(_like)
    return op


def as_kernel(body: Any) -> Any:
    """The operation itself does nothing else; the kernel for the device does."""
    op = torch.library.custom_op(f"stator_bodies::k_{body.__name__}", b_torch, mutates_args=())
    op.register_kernel("cpu")(body)
    op.register_fake(_like)
    return op


def as_library(body: Any) -> Any:
    name = f"l_{body.__name__}"
    _library.define(f"{name}(Tensor x) -> Tensor")
    _library.impl(name, body, "CPU")
    _library.impl(name, _like, "Meta")
    return getattr(torch.ops.stator_bodies, name)


def as_defined(body: Any) -> Any:
    name = f"stator_bodies::d_{body.__name__}"
    torch.library.define(name, "(Tensor x) -> Tensor")
    torch.library.impl(name, "cpu", body)
    torch.library.register_fake(name, _like)
    return getattr(torch.ops.stator_bodies, f"d_{body.__name__}").default


def as_nested(body: Any) -> Any:
    inner = torch.library.custom_op(f"stator_bodies::i_{body.__name__}", body, mutates_args=())
    inner.register_fake(_like)

    def outer(x: Tensor) -> Tensor:
        return inner(x) + 1

    op = torch.library.custom_op(f"stator_bodies::o_{body.__name__}", outer, mutates_args=())
    op.register_fake(_like)
    return op


def as_differentiable(body: Any) -> Any:
    op = torch.library.custom_op(f"stator_bodies::a_{body.__name__}", body, mutates_args=())
    op.register_fake(_like)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = 2

    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * ctx.factor

    op.register_autograd(backward, setup_context=setup)
    return op


def as_allowed(body: Any) -> Any:
    @functools.wraps(body)
    def allowed(x: Tensor) -> Tensor:
        return body(x)

    return torch.compiler.allow_in_graph(allowed)


def as_function(body: Any) -> Any:
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return body(x)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 2

    return Function.apply


def as_checkpoint(body: Any) -> Any:
    return lambda x: checkpoint(body, x, use_reentrant=False)


def as_module(body: Any) -> Any:
    """A module whose forward hook does it."""
    module = torch.nn.Identity()
    module.register_forward_hook(lambda module, args, result: body(result))
    return module


class Overriding:
    """Has __torch_function__."""

    def __init__(self, body: Any) -> None:
        self.body = body

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        x, o = args
        return o.body(x)


def as_override(body: Any) -> Any:
    o = Overriding(body)
    return lambda x: torch.add(x, o)


FORMS = [
    as_custom_op, as_kernel, as_library, as_defined, as_nested, as_differentiable, as_allowed,
    as_function, as_checkpoint, as_module, as_override,
]  # fmt: skip


# -- operations of other kinds, and the programs that call them --


@torch.library.custom_op("stator_bodies::fills", mutates_args=("x",))
def fills(x: Tensor) -> None:
    x.add_(1)
    LOG.append(1)


@torch.library.custom_op("stator_bodies::raises", mutates_args=())
def raises(x: Tensor) -> Tensor:
    LOG.append("r")
    if x.sum() > 4:
        raise ValueError("big")
    return x + 1


@torch.library.custom_op("stator_bodies::many", mutates_args=())
def many(xs: list[Tensor], n: int, s: str = "a") -> Tensor:
    box.count += n
    return torch.stack(xs).sum(0) * box.count


@torch.library.custom_op("stator_bodies::tags", mutates_args=())
def tags(x: Tensor) -> Tensor:
    x.tag = 3  # type: ignore[attr-defined]
    return x + 1


@torch.library.custom_op("stator_bodies::sets_dtype", mutates_args=())
def sets_dtype(x: Tensor) -> Tensor:
    torch.set_default_dtype(torch.float64)
    return x + 1


@torch.library.custom_op("stator_bodies::noted", mutates_args=())
def noted(x: Tensor) -> Tensor:
    return x * 2


def _note(ctx: Any, inputs: Any, output: Any) -> None:
    """Runs on fakes, too, where the argument takes a gradient."""
    LOG.append("setup")
    ctx.factor = 2


noted.register_autograd(lambda ctx, gradient: gradient * ctx.factor, setup_context=_note)


@torch.library.triton_op("stator_bodies::tritons", mutates_args=())
def tritons(x: Tensor) -> Tensor:
    """Its body is what runs on fakes."""
    TABLE["k"] += 1
    return x * TABLE["k"]


for _op in (raises, tags, sets_dtype, noted):
    _op.register_fake(_like)
many.register_fake(lambda xs, n, s="a": torch.empty_like(xs[0]))


def o_fills(x):
    fills(x)
    y = x * len(LOG)
    fills(x)
    return y, x, len(LOG)


def o_raises(x):
    try:
        y = raises(x)
    except ValueError as error:
        LOG.append(str(error))
        y = x
    return y, len(LOG)


def o_raises_through(x):
    LOG.append("a")
    box.count += 1
    y = raises(x)
    LOG.append("z")
    return y


def o_many(x):
    return many([x, x], 2) + box.count, many([x], n=3)


def o_tags(x):
    return tags(x), getattr(x, "tag", None)


def o_sets_dtype(x):
    try:
        return sets_dtype(x) + torch.ones(2), torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def o_noted(x):
    return noted(x) * len(LOG)


def o_tritons(x):
    return tritons(x) + TABLE["k"]


def o_mapped(x):
    return list(map(raises, [x * 0, x * 0])), len(LOG)


def o_partial(x):
    return functools.partial(raises, x * 0)(), len(LOG)


def o_by_name(x):
    ops = torch.ops.stator_bodies
    return ops.raises(x * 0), ops.raises.default(x * 0), len(LOG)


OTHERS = [
    o_fills, o_raises, o_raises_through, o_many, o_tags, o_sets_dtype, o_noted, o_tritons,
    o_mapped, o_partial, o_by_name,
]  # fmt: skip
