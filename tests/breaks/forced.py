"""Compiles a function so that its traces break where no break is due, and compares what can be
seen of its calls with plain ones."""

from __future__ import annotations

import sys
from typing import Any

import harness

from stator import _engine

TWICE = 2
LIMIT = 8


def compile_breaking(function: Any, **where: int) -> Any:
    """`break_at=n`: each trace of a call breaks before its n-th instruction. `break_every=k` with
    `break_seed=s`: every trace, before a random one."""
    if "torch" in sys.modules and not _engine.torch_attached():
        from stator import _torch

        _torch.attach()
    compiler = _engine.compiler(None, RuntimeError, False, True, LIMIT, **where)
    return _engine.compiled(function, compiler)


class Program:
    """A program, and what plain runs of it look like. Its attribute `make` gives the arguments of a
    call, which are looked at afterwards."""

    def __init__(self, name: str, function: Any) -> None:
        self.name = name
        self.function = function
        self.make = getattr(function, "make", tuple)
        self.plain = [self.run(function) for _ in range(TWICE)]

    def run(self, function: Any) -> harness.Capture:
        arguments = self.make()
        seen = harness.capture(function, lambda target: target(*arguments))
        after = harness.Freezer().freeze(arguments)
        seen.outcome = (*seen.outcome, after)
        seen.warned = [row for row in seen.warned if not row[1].startswith("stator: ")]
        return seen

    def differs(self, **where: int) -> str:
        """Empty, or where a compiled run can be told from a plain one."""
        compiled = compile_breaking(self.function, **where)
        for number, expected in enumerate(self.plain):
            found = harness.difference(expected, self.run(compiled))
            if found:
                rows = compiled.metrics["breaks"] + compiled.metrics["drops"]
                reasons = "\n".join(row.splitlines()[0] for row in rows[:8])
                return f"{self.name}, {where}, call {number + 1}\n{found}\n{reasons}"
        return ""

    def reach(self) -> int:
        """How many instructions its longest trace has."""
        compiled = compile_breaking(self.function)
        for _ in range(TWICE):
            self.run(compiled)
        return int(compiled.metrics["longest"])
