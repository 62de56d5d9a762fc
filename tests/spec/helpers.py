"""What the tests of the lines share: the marks, a backend that keeps graphs, and comparing."""

from __future__ import annotations

import contextlib
import copy
import dis
import logging
from types import CodeType, FunctionType
from typing import Any

import pytest

import stator

try:
    import torch
    import torch._dynamo.testing
    from torch._dynamo.utils import counters
except ImportError:  # the lines about instructions and exceptions need none
    torch = None  # type: ignore[assignment]

# -- marks --

# The same test of Stator and of stock Dynamo: what users see is the same.
both = pytest.mark.parametrize("engine", ["stator", "stock"], indirect=True)


def decided(reason: str, stock: bool = True) -> pytest.MarkDecorator:
    """What Stator does not do, by a decision that docs/install.md explains under the line's id."""
    return missing(reason, stock)


def missing(reason: str, stock: bool = True) -> pytest.MarkDecorator:
    """An expected failure of Stator. Whoever makes it work is told, and takes the mark away.

    Stock Dynamo must pass the same test, which shows that the test asks for something possible;
    `stock=False` where it cannot be asked of this torch.
    """
    mark = pytest.mark.xfail(strict=True, reason=reason)
    engines = [pytest.param("stator", marks=mark)] + ["stock"] * stock
    return pytest.mark.parametrize("engine", engines, indirect=True)


# -- a backend --


class Recorder:
    """Runs graphs as they are, and keeps them."""

    def __init__(self):
        self.graphs, self.examples, self.runs = [], [], 0

    def __call__(self, module, examples):
        self.graphs.append(module)
        self.examples.append(examples)

        def run(*args):
            self.runs += 1
            return module.forward(*args)

        return run

    @property
    def graph(self):
        """The only one."""
        assert len(self.graphs) == 1, f"{len(self.graphs)} graphs"
        return self.graphs[0]

    @property
    def operations(self) -> list[Any]:
        """Targets of all calls, in order."""
        return [
            node.target for graph in self.graphs for node in graph.graph.nodes if "call" in node.op
        ]

    @property
    def inputs(self) -> list[list[str]]:
        """Names of each graph's inputs."""
        return [
            [node.name for node in graph.graph.nodes if node.op == "placeholder"]
            for graph in self.graphs
        ]


# -- comparing --


def assert_same(got: Any, want: Any) -> None:
    """Same types and values, deeply; objects by their attributes, exceptions by their arguments."""
    assert type(got) is type(want), f"{got!r} is not like {want!r}"
    if torch is not None and isinstance(want, torch.Tensor):
        assert (got.dtype, got.shape, got.stride()) == (want.dtype, want.shape, want.stride())
        assert got.requires_grad == want.requires_grad
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want), f"{got!r} is not {want!r}"
        for mine, theirs in zip(got, want, strict=True):
            assert_same(mine, theirs)
    elif isinstance(want, BaseException):
        assert_same(got.args, want.args)
    elif type(want).__eq__ is object.__eq__ and hasattr(want, "__dict__"):
        assert_same(vars(got), vars(want))
    else:
        assert got == want or want != want, f"{got!r} is not {want!r}"


def outcome(function, args) -> Any:
    """The result; or the exception, as a value."""
    try:
        return function(*args)
    except Exception as error:
        return error


def check(function, *args, whole: bool = True, calls: int = 2) -> Recorder:
    """Calls `function` uncompiled and compiled, and compares results and arguments afterwards.

    `whole`: everything must be in one graph (without torch: in one entry). Each call gets its own
    copy of the arguments. Returns the backend, which has the graphs.
    """
    eagers = copy.deepcopy(args)
    want = outcome(function, eagers)
    backend = Recorder()
    if torch is None:
        fast = stator.compile(function, backend="eager", fullgraph=whole, _keep_empty=True)
    else:
        fast = torch.compile(function, backend=backend, fullgraph=whole, dynamic=False)
    for _ in range(calls):
        own = copy.deepcopy(args)
        got = outcome(fast, own)
        if isinstance(got, Exception) and type(got) is not type(want):
            raise got
        assert_same(got, want)
        assert_same(own, eagers)
    # Compiled, and once. (Where there is no operation, Python runs the frame and what it calls may
    # have entries of its own.)
    if whole and hasattr(fast, "metrics") and (torch is None or backend.graphs):
        assert fast.metrics["entries"] == 1, fast.metrics
    return backend


def value(*shape: int) -> Any:
    """A tensor; without torch a float, for programs that do the same with both."""
    if torch is None:
        return 1.5
    shape = shape or (3,)
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape) / 2


def opcodes(function: FunctionType | CodeType) -> set[str]:
    """Names of the instructions, those of nested functions too."""
    code = getattr(function, "__code__", function)
    names = {instruction.opname for instruction in dis.get_instructions(code)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= opcodes(constant)
    return names


def breaks() -> list[str]:
    """Texts of the breaks counted since the test began, each as often as it was counted."""
    return list(counters["graph_break"].elements())


# -- logs --


@contextlib.contextmanager
def logged(**settings: Any):
    """What torch's loggers say, with `torch._logging.set_logs(**settings)`, as a list of texts."""
    texts: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record):
            if record.name != "torch.__trace":  # records for machines
                texts.append(record.getMessage())

    handler = Keeper()
    root = logging.getLogger("torch")
    torch._logging.set_logs(**settings)
    # Loggers of artifacts do not all pass records on to their parents.
    loggers = [root] + [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if name.startswith("torch.") and isinstance(logger, logging.Logger) and not logger.propagate
    ]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield texts
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        torch._logging.set_logs()
