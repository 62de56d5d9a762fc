"""torch.overrides.redispatch_function: the first call of torch in it that would ask asks nobody."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo.testing import CompileCounter  # noqa: E402
from torch.overrides import (  # noqa: E402
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
)

import stator  # noqa: E402

redispatch_function = getattr(torch.overrides, "redispatch_function", None)
pytestmark = pytest.mark.skipif(redispatch_function is None, reason="since torch 2.13")

LOG = []


@pytest.fixture(autouse=True)
def installed():
    stator.install()
    torch._dynamo.reset()
    yield
    stator.uninstall()
    torch._dynamo.reset()


class Plain(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return redispatch_function(func, types, args, kwargs)


class Logging(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return redispatch_function(func, types, args, kwargs)


class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        with self:
            return redispatch_function(func, types, args, kwargs)


def own(a, b):
    if has_torch_function((a, b)):
        return handle_torch_function(own, (a, b), a, b)
    return a + b * 2


def breaks_before(a, b):
    torch._dynamo.graph_break()
    if has_torch_function((a, b)):
        return handle_torch_function(breaks_before, (a, b), a, b)
    return a + b * 2


def breaks_behind(a, b):
    if has_torch_function((a, b)):
        return handle_torch_function(breaks_behind, (a, b), a, b)
    torch._dynamo.graph_break()
    return a + b * 2


def operations(a, b):
    return torch.sin(a).cos() + torch.nn.functional.relu(b)


def getters(a, b):
    return a.view(a.shape[0], -1).sum() + b.ndim


def asks_nobody(a, b):
    return redispatch_function(lambda: 3, (), (), {})


def raises(a, b):
    try:
        redispatch_function(torch.sin, (), (), {})
    except TypeError:
        return a + 1


def under(program):
    def within(a, b):
        with Mode():
            return program(a, b)

    return within


PROGRAMS = [own, breaks_before, breaks_behind, operations, getters, asks_nobody, raises]


def outcome(program, *args):
    LOG.clear()
    try:
        result = program(*args)
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]
    return type(result), result.as_subclass(torch.Tensor).tolist(), list(LOG)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("kind", [Plain, Logging, Mode])
def test_as_in_plain_python(program, kind):
    cls = torch.Tensor if kind is Mode else kind
    args = [torch.tensor(values).as_subclass(cls) for values in ([1.0, -2.0], [-3.0, 4.0])]
    function = under(program) if kind is Mode else program
    want = outcome(function, *args)
    fast = torch.compile(function, backend="eager")
    for _ in range(3):
        assert outcome(fast, *args) == want
    assert not torch._C._peek_should_skip_torch_function()


@pytest.mark.parametrize("program", [own, operations, getters])
def test_one_graph(program):
    counter = CompileCounter()
    args = [torch.ones(2).as_subclass(Logging)] * 2
    torch.compile(program, backend=counter, fullgraph=True)(*args)
    assert counter.frame_count == 1


def test_no_entry_is_used_where_the_next_call_asks_nobody():
    args = [torch.ones(2).as_subclass(Logging)] * 2
    fast = torch.compile(lambda a: a.sin(), backend="eager")
    fast(args[0])
    LOG.clear()
    redispatch_function(fast, (), (args[0],), {})
    assert LOG == []
