"""How often a tensor was written to (`_version`) is what plain Python says, whatever the backend."""

import pytest

import stator

torch = pytest.importorskip("torch")


def turned(x):
    y = x * 2
    y.t_()
    return y * y._version, y._version


def added(x):
    y = x * 2
    y.add_(1)
    y.mul_(2)
    return y * y._version, y._version


def of_a_part(x):
    y = x * 2
    z = y[0]
    z.add_(1)
    return y * z._version, y._version


def of_an_input(x):
    before = x._version
    x.add_(1)
    x.mul_(2)
    return x * 2, x._version - before


def not_written(x):
    y = x * 2
    return y, y._version


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [turned, added, of_a_part, of_an_input, not_written])
def test_writes_are_counted_as_in_plain_python(program, backend):
    fast = stator.compile(program, backend=backend)
    for n in (3, 4, 5):
        x = torch.randn(n, 4)
        mine, plain = fast(x.clone()), program(x.clone())
        assert mine[1] == plain[1]
        torch.testing.assert_close(mine[0], plain[0])
