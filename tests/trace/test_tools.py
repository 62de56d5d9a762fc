"""What tools see of compiled functions is what they see without Stator: while one watches the
thread, calls run in CPython, whether or not an entry is there.

Each program is run eagerly and compiled (cold, or with an entry made before) under each tool; all
events of this file's code are compared.
"""

from __future__ import annotations

import contextlib
import cProfile
import logging
import os
import pstats
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import stator
from stator import _engine

# -- programs --

switch: Callable[[Any], None] = lambda tool: None  # noqa: E731
tool_to_set: Any = None


def callee(n: int) -> int:
    m = n * 2
    return m + 1


def plain(n: int) -> int:
    a = callee(n)
    b = len([a, a])
    return a + b


def loops(n: int) -> int:
    total = 0
    for i in range(n):
        total += callee(i)
    return total


def catches(n: int) -> int:
    try:
        raises(n)
    except ValueError as e:
        return callee(len(e.args))
    return 0


def raises(n: int) -> int:
    raise ValueError(n)


def breaks(n: int) -> int:
    a = callee(n)
    print(end="")
    return callee(a)


def generates(n: int) -> int:
    return sum(numbers(n))


def numbers(n: int) -> Iterator[int]:
    for i in range(n):
        yield callee(i)


def recurses(n: int) -> int:
    return n if n <= 1 else recurses(n - 1) + callee(n)


def makes(n: int) -> int:
    return Thing(n).value


class Thing:
    def __init__(self, n: int) -> None:
        self.n = n

    @property
    def value(self) -> int:
        return callee(self.n)


def sorts(n: int) -> int:
    return sorted(range(n), key=lambda i: -callee(i))[0]


PROGRAMS = {
    f.__name__: f for f in (plain, loops, catches, breaks, generates, recurses, makes, sorts)
}


# -- tools: each a context that fills a list --


def _is_tool_s(name: str) -> bool:
    return name.startswith(("by_", "_run", "run", "record", "_record"))


def _ours(code: Any) -> bool:
    return code.co_filename == __file__ and not _is_tool_s(code.co_name)


@contextlib.contextmanager
def by_trace(events: list[Any]) -> Iterator[Any]:
    def record(frame: Any, event: str, arg: Any) -> Any:
        if _ours(frame.f_code):
            events.append((event, frame.f_code.co_name, frame.f_lineno))
        return record

    sys.settrace(record)
    try:
        yield record
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def by_profile(events: list[Any]) -> Iterator[Any]:
    def record(frame: Any, event: str, arg: Any) -> Any:
        if _ours(frame.f_code):
            name = arg.__name__ if event.startswith("c_") else ""
            events.append((event, frame.f_code.co_name, frame.f_lineno, name))

    sys.setprofile(record)
    try:
        yield record
    finally:
        sys.setprofile(None)


_MONITORED = ("PY_START", "PY_RETURN", "PY_YIELD", "LINE", "CALL", "RAISE")


def _record_monitored(events: list[Any], name: str) -> Any:
    def record(code: Any, *args: Any) -> Any:
        if _ours(code):
            place = args[0] if name in ("PY_START", "LINE") else None
            events.append((name, code.co_name, place))

    return record


@contextlib.contextmanager
def by_monitoring(events: list[Any], code: Any = None) -> Iterator[Any]:
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool = monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "test")
    wanted = 0
    for name in _MONITORED:
        event = getattr(monitoring.events, name)
        monitoring.register_callback(tool, event, _record_monitored(events, name))
        wanted |= event
    if code is None:
        monitoring.set_events(tool, wanted)
    else:
        wanted &= ~monitoring.events.RAISE  # which cannot be local
        monitoring.set_local_events(tool, code, wanted)
    try:
        yield None
    finally:
        monitoring.set_events(tool, 0)
        if code is not None:
            monitoring.set_local_events(tool, code, 0)
        for name in _MONITORED:
            monitoring.register_callback(tool, getattr(monitoring.events, name), None)
        monitoring.free_tool_id(tool)


def by_local_monitoring(events: list[Any]) -> Any:
    return by_monitoring(events, callee.__code__)


@contextlib.contextmanager
def by_cprofile(events: list[Any]) -> Iterator[Any]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield None
    finally:
        profile.disable()
        stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
        events += sorted(
            (name, calls)
            for (file, line, name), (calls, *_) in stats.items()
            if file == __file__ and not _is_tool_s(name)
        )


TOOLS: dict[str, Any] = {
    "settrace": by_trace,
    "setprofile": by_profile,
    "cProfile": by_cprofile,
}
if sys.version_info >= (3, 12):
    TOOLS["monitoring"] = by_monitoring
    TOOLS["local monitoring"] = by_local_monitoring


def compiled_of(f: Any) -> Any:
    return stator.compile(f, backend="eager", _keep_empty=True)


def _run(f: Any, tool: Any, warm: int) -> Any:
    for _ in range(warm):
        f(3)
    events: list[Any] = []
    with tool(events):
        result = f(3), f(3)
    return result, events


@pytest.mark.parametrize("warm", [0, 2])
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_events_are_as_in_eager(name: str, tool: str, warm: int) -> None:
    want = _run(PROGRAMS[name], TOOLS[tool], warm)
    compiled = compiled_of(PROGRAMS[name])
    assert _run(compiled, TOOLS[tool], warm) == want
    assert want[1]
    assert len(compiled.metrics["drops"]) == 0
    # the entries that are there serve again, and new ones are made
    for _ in range(2):
        assert compiled(3) == want[0][0]
    assert compiled.metrics["traces"] > 0
    assert not compiled.metrics["drops"]


# -- tools that come and go in the middle --


def comes_in_the_middle(n: int) -> int:
    a = callee(n)
    switch(tool_to_set)
    return callee(a)


def comes_in_a_callee(n: int) -> int:
    a = callee(n)
    _switch_on()
    b = callee(a)
    switch(None)
    return callee(b)


def _switch_on() -> None:
    switch(tool_to_set)


def goes_in_the_middle(n: int) -> int:
    a = callee(n)
    switch(None)
    return callee(a)


MIDDLE = (comes_in_the_middle, comes_in_a_callee, goes_in_the_middle)


@pytest.mark.parametrize("warm", [0, 2])
@pytest.mark.parametrize("setter", ["settrace", "setprofile"])
@pytest.mark.parametrize("program", MIDDLE)
def test_tools_that_come_and_go_in_the_middle(
    program: Any, setter: str, warm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(f: Any) -> list[Any]:
        events: list[Any] = []

        def record(frame: Any, event: str, arg: Any) -> Any:
            if _ours(frame.f_code):
                events.append((event, frame.f_code.co_name, frame.f_lineno))
            return record

        set_tool = getattr(sys, setter)
        monkeypatch.setitem(globals(), "switch", lambda tool: None)
        for _ in range(warm):
            f(3)
        monkeypatch.setitem(globals(), "tool_to_set", record)
        monkeypatch.setitem(globals(), "switch", set_tool)
        if program is goes_in_the_middle:
            set_tool(record)
        try:
            result = f(3)
        finally:
            set_tool(None)
        return [result, events]

    want = run(program)
    got = run(compiled_of(program))
    assert got == want
    assert want[1]


def test_a_thread_that_is_watched_and_one_that_is_not() -> None:
    compiled = compiled_of(plain)
    compiled(3)
    events: list[Any] = []

    def record(frame: Any, event: str, arg: Any) -> Any:
        if _ours(frame.f_code):
            events.append((event, frame.f_code.co_name))
        return record

    def inner() -> None:
        compiled(3)

    threading.settrace(record)
    try:
        thread = threading.Thread(target=inner)
        thread.start()
        thread.join()
    finally:
        threading.settrace(None)  # type: ignore[arg-type]
    assert ("call", "callee") in events
    events.clear()
    before = compiled.metrics["hits"]
    compiled(3)
    assert events == []
    assert compiled.metrics["hits"] == before + 1


def test_compiled_functions_in_a_tool_s_own_code() -> None:
    compiled, seen = compiled_of(callee), []

    def record(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is plain.__code__ and event == "call":
            seen.append(compiled(20))

    sys.settrace(record)
    try:
        plain(1)
    finally:
        sys.settrace(None)
    assert seen == [41]


def test_a_tool_that_raises_raises_in_the_program() -> None:
    compiled = compiled_of(plain)
    compiled(3)

    def record(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is callee.__code__:
            raise KeyError("tool")

    sys.settrace(record)
    try:
        with pytest.raises(KeyError, match="tool"):
            compiled(3)
    finally:
        sys.settrace(None)
    assert compiled(3) == 9


# -- the setting and the log --


@pytest.fixture
def ignoring() -> Iterator[None]:
    before = stator.ignore_tools(True)
    yield
    stator.ignore_tools(before)


@pytest.mark.parametrize("warm", [0, 2])
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_tools_can_be_ignored(name: str, tool: str, warm: int, ignoring: None) -> None:
    compiled = compiled_of(PROGRAMS[name])
    result, events = _run(compiled, TOOLS[tool], warm)
    want = PROGRAMS[name](3)
    assert result == (want, want)
    assert compiled.metrics["traces"] > 0
    if name not in ("breaks", "generates"):  # what goes on in CPython is seen
        assert events == []
        assert compiled.metrics["hits"] > 0
    assert compiled(3) == want


_LOGS = """
import logging, sys, stator
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")

def f(x):
    return x + 1

def g(x):
    return x + 2

stator.ignore_tools(stator.ignore_tools(False))
c, d = (stator.compile(h, backend="eager", _keep_empty=True) for h in (f, g))
sys.setprofile(lambda *a: None)
print(c(1), c(1), d(1))
sys.setprofile(None)
print(c.metrics["hits"], c.metrics["traces"])
"""


def _child(**environment: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOGS],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout, done.stderr


def test_the_log_says_so_once() -> None:
    out, err = _child()
    assert out.split() == ["2", "2", "3", "0", "0"]
    lines = [line for line in err.splitlines() if "uncompiled" in line]
    assert len(lines) == 1
    assert lines[0].startswith("stator WARNING f ")
    assert "stator.ignore_tools(True)" in lines[0]


def test_the_environment_can_say_to_ignore_tools() -> None:
    out, err = _child(STATOR_IGNORE_TOOLS="1")
    assert out.split() == ["2", "2", "3", "1", "1"]
    assert "uncompiled" not in err


def test_the_tool_does_not_see_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    script = _LOGS.replace("lambda *a: None", "lambda f, e, a: print('seen', f.f_code.co_name)")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    names = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("seen")]
    assert set(names) <= {"<module>", "f", "g"}


def test_ignore_tools_tells_what_it_was() -> None:
    assert stator.ignore_tools(True) is False
    assert stator.ignore_tools(False) is True
    assert _engine.ignore_tools(False) is False
    assert logging.getLogger("stator") is not None
