"""Fixtures: signals that come while the main thread is busy."""

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


@pytest.fixture
def alarm() -> Iterator[Callable[..., None]]:
    """alarm(handler, seconds): a signal that comes while the main thread is busy."""
    old = signal.getsignal(signal.SIGALRM)

    def set_alarm(handler: Any, seconds: float, again: float = 0) -> None:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, seconds, again)

    yield set_alarm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture
def ring(alarm: Callable[..., None]) -> Callable[[float], None]:
    """ring(seconds): an exception comes at the main thread."""
    return lambda seconds: alarm(_interrupt, seconds)
