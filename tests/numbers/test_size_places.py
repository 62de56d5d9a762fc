"""Sizes and strides of tensors as places of guard programs, and expressions over them."""

import pytest

torch = pytest.importorskip("torch")

from stator import _engine, _torch  # noqa: E402
from tests.stage.guard_tools import *  # noqa: E402

_torch.attach()


def size(d, hint, index=0, name="x", what="SIZE"):
    return ("symbol", (below(L(index, name), (what, None, d)), hint))


class Sub(torch.Tensor):
    pass


TENSORS = [torch.ones(3, 4), torch.ones(3, 4).t(), torch.ones(()), torch.ones(0, 2**20)]
TENSORS += [torch.ones(2, 1, 300), torch.nn.Parameter(torch.ones(5)), torch.ones(6)[::2]]
TENSORS += [torch.ones(1).expand(7, 9), torch.ones(2, dtype=torch.complex64).conj()]


@pytest.mark.parametrize("dim", [0, 1, 2, -1, 10**9])
def test_sizes_and_strides_are_read_anew(dim):
    sizes = Program([("NEED", below(L(), ("SIZE", None, dim)))], TENSORS[0])
    strides = Program([("NEED", below(L(), ("STRIDE", None, dim)))], TENSORS[0])
    for tensor in [*TENSORS, *TENSORS[::-1]]:
        for program, values in ((sizes, tensor.size()), (strides, tensor.stride())):
            program.slots = [tensor]
            registers = program.registers()
            if 0 <= dim < len(values):
                assert registers[-1] == values[dim] and type(registers[-1]) is int
            else:
                assert isinstance(registers, int)
                assert program.reason().endswith(": now not there")


def test_subclasses_have_sizes():
    o = torch.ones(3).as_subclass(Sub)
    assert _engine.source_read("SIZE", o, None, 0) == (3,)
    assert _engine.source_read("STRIDE", o, None, 0) == (1,)


@pytest.mark.parametrize("o", [None, 5, (3, 4), torch.Size([3])])
def test_other_objects_have_no_sizes(o):
    for kind in ("SIZE", "STRIDE"):
        assert _engine.source_read(kind, o, None, 0) == ()


def test_conditions_on_sizes():
    tree = ("eq", size(0, 3), size(0, 3, 1, "y"))
    p = Program([("EXPR", None, tree)], torch.ones(3), torch.ones(3))
    assert p.passes() and len(p.registers()) == 2  # the tensors; no int was made
    text = p.program.rows()[0][0]
    assert text == "L['x'].size()[0] == L['y'].size()[0]"
    p.slots = [torch.ones(7), torch.ones(9)]
    assert not p.passes() and p.reason() == f"{text}: now 7 and 9"
    p.slots = [torch.ones(7), torch.ones(())]
    assert not p.passes() and "L['x'].size()[0] = 7" in p.reason()
    p.slots = [torch.ones(7, 2), torch.ones(7)]
    assert p.passes()
    p.slots = [[7], torch.ones(7)]
    assert not p.passes()


def test_strides_against_sizes():
    tree = ("eq", size(0, 4, what="STRIDE"), size(1, 4))
    p = Program([("EXPR", None, tree)], torch.ones(3, 4))
    assert p.passes()
    p.slots = [torch.ones(3, 4).t()]
    assert not p.passes()
    p.slots = [torch.ones(5, 9)]
    assert p.passes()


def test_a_computed_size_is_a_register():
    p = Program([("NEED", (("EXPR", ("mul", size(0, 3), size(1, 4)), 0),))], torch.ones(3, 4))
    for shape in [(3, 4), (5, 6), (0, 1), (1, 1)]:
        p.slots = [torch.ones(shape)]
        assert p.registers()[-1] == shape[0] * shape[1]
