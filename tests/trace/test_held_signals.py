"""A signal that comes while its handler has to wait is handled as soon as the wait is over."""

from __future__ import annotations

import os
import signal

import pytest

import stator
from stator._policy import Policy


def polls():
    """CPython looks for signals behind each call."""
    for _ in range(1000):
        len("")


@pytest.fixture
def seen():
    found = []
    old = signal.signal(signal.SIGUSR1, lambda *_: found.append("handled"))
    yield found
    signal.signal(signal.SIGUSR1, old)


@pytest.fixture
def signalled(monkeypatch, seen):
    """A policy that is asked while signals wait, and sends one."""
    miss = Policy.miss

    def asked(self, *args):
        os.kill(os.getpid(), signal.SIGUSR1)
        polls()
        seen.append("asked")
        return miss(self, *args)

    monkeypatch.setattr(Policy, "miss", asked)


def test_a_signal_that_waited_is_handled_in_the_same_call(signalled, seen):
    stator.compile(lambda x: x + 1, backend="eager")(1)
    assert seen == ["asked", "handled"]


def test_it_is_raised_where_the_call_can_be_caught(signalled, seen):
    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGUSR1, interrupt)
    with pytest.raises(KeyboardInterrupt):
        stator.compile(lambda x: x + 1, backend="eager")(1)
    polls()
    assert seen == ["asked"]
