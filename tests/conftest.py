"""Says which build is tested, and leaves tests marked `full` to runs with STATOR_FULL=1."""

import ctypes
import gc
import logging
import os
import re
import sys
from pathlib import Path

import pytest

import stator
from stator import _engine
from tests.interrupts import heed_interrupts
from tests.told import (  # noqa: F401
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)


def pytest_report_header() -> str:
    return f"stator: {Path(stator.__file__).parent}, CPython {sys.version.split()[0]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if re.search("0x[0-9a-f]{6}", item.nodeid):
            raise pytest.UsageError(f"each process would have another name for {item.nodeid}")
    if os.environ.get("STATOR_FULL") == "1":
        return
    long = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


heed_interrupts()


_seen: tuple[Path | None, int] = None, 0  # the file and the number of modules at the last freeze


def _freeze(path: Path | None) -> None:
    global _seen
    gc.collect()
    gc.freeze()
    _seen = path, len(sys.modules)


def pytest_collection_finish() -> None:
    """What the tests themselves are made of is no garbage: tests that collect need not look at it."""
    _freeze(None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Nor is what earlier files have left, or what this file imports: torch has a million objects."""
    path, modules = _seen
    if item.path != path or len(sys.modules) > modules + 50:
        _freeze(item.path)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """pytest listens to each logger that keeps its records to itself. With a listener on its trace
    (`TORCH_TRACE`), each compile would write what it does, which takes as long as the compile."""
    trace = logging.getLogger("torch.__trace")
    for handler in [one for one in trace.handlers if type(one).__module__.startswith("_pytest")]:
        trace.removeHandler(handler)


pytest_runtest_call = pytest_runtest_setup


def pytest_runtest_teardown() -> None:
    """A compile of stock Dynamo's that failed leaves its eval function (PEP 523) in place, and with
    it CPython calls Python functions in another way: they no longer own their arguments."""
    if "torch._dynamo" in sys.modules and not _engine.hook_installed():
        api = ctypes.pythonapi
        api.PyInterpreterState_Get.restype = ctypes.c_void_p
        default = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p)
        interpreter = ctypes.c_void_p(api.PyInterpreterState_Get())
        api._PyInterpreterState_SetEvalFrameFunc(interpreter, default)


# Each trace compares what its rules said of results with torch's fakes.
_engine.torch_check_rules(os.environ.get("STATOR_CHECK_RULES", "1") == "1")
