"""Fixtures: signals that come while the main thread is busy. Timers that count the time this process
computes, not the time that passes, so that a busy machine does not ring them early."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest


class Interrupted(BaseException):
    """What `ring` raises."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def heed_interrupts() -> None:
    """A shell starts background jobs with SIGINT ignored, and their children inherit that: tests of
    Ctrl-C would wait for ever."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _timer(number: int, which: int) -> Iterator[Callable[..., None]]:
    old = signal.getsignal(number)

    def set_timer(handler: Any, seconds: float) -> None:
        signal.signal(number, handler)
        signal.setitimer(which, seconds)

    yield set_timer
    signal.setitimer(which, 0)
    signal.signal(number, old)


@pytest.fixture
def alarm() -> Iterator[Callable[..., None]]:
    """alarm(handler, seconds): SIGVTALRM once this process has computed for that long."""
    yield from _timer(signal.SIGVTALRM, signal.ITIMER_VIRTUAL)


@pytest.fixture
def ring() -> Iterator[Callable[[float], None]]:
    """ring(seconds): Interrupted is raised in the main thread after that time, even if it sleeps.
    Called by what shall be interrupted, or by a test to which any moment is right."""
    for set_timer in _timer(signal.SIGALRM, signal.ITIMER_REAL):
        yield lambda seconds: set_timer(_interrupt, seconds)
