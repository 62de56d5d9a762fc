# ruff: noqa: E402
"""Interrupts in a backend and in what it made, in calls and in frames that go on: the exception comes out
where the program stands, its handlers run, torch's state and the next call are right."""

import signal
import time

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _engine
from tests.interrupts import Interrupted, alarm, ring  # noqa: F401


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert not _engine.hook_installed()


class Slow:
    """A backend that waits in its n-th graph: while it makes the callable, or when that is called. It is
    rung there."""

    def __init__(self, number, when, ring):
        self.number, self.when, self.ring, self.graphs = number, when, ring, 0
        self.waits = True

    def wait(self):
        if self.waits:
            self.waits = False
            self.ring(0.05)
            time.sleep(3600)

    def __call__(self, graph, examples):
        self.graphs += 1
        late = self.graphs == self.number
        if late and self.when == "making":
            self.wait()

        def run(*args):
            if late and self.when == "running":
                self.wait()
            return graph(*args)

        return run


def f(x, log):
    log.append("begin")
    with torch.no_grad():
        y = x + 1
        try:
            log.append("try")
            print(end="")
            z = y * 2
            print(end="")
        except Interrupted:
            log.append("caught")
            z = y * 3
        finally:
            log.append("finally")
    return z, log[1:]


@pytest.mark.parametrize("when", ["making", "running"])
def test_an_interrupt_in_a_piece_is_caught_where_the_frame_stands(when, ring):
    x = torch.ones(3)
    fast = stator.compile(f, backend=Slow(2, when, ring))
    z, log = fast(x, [])
    assert log == ["try", "caught", "finally"]
    torch.testing.assert_close(z, torch.full((3,), 6.0))
    assert torch.is_grad_enabled()
    for _ in range(2):
        z, log = fast(x, [])
        assert log == ["try", "finally"]
        torch.testing.assert_close(z, torch.full((3,), 4.0))


@pytest.mark.parametrize("when", ["making", "running"])
def test_an_interrupt_in_the_first_piece_wrote_nothing_and_leaves_the_call(when, ring):
    x, log = torch.ones(3), []
    fast = stator.compile(f, backend=Slow(1, when, ring))
    with pytest.raises(Interrupted):
        fast(x, log)
    assert log == []
    assert torch.is_grad_enabled()
    z, log = fast(x, [])
    assert log == ["try", "finally"]
    torch.testing.assert_close(z, torch.full((3,), 4.0))
