"""Runs a program as `python` itself would: arguments, `__main__`, tracebacks, exit status.

For `python -m stator` and `python -m stator.evaluate`, which differ in how its code is run.
"""

import atexit
import builtins
import contextlib
import functools
import io
import os
import runpy
import signal
import sys
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from typing import Any

# Runs code in these globals, or a callable without arguments; gives the exit status.
Run = Callable[[Any, Any], int]


def _fresh_main(**attributes: object) -> types.ModuleType:
    main = types.ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=builtins, **attributes)
    sys.modules["__main__"] = main
    return main


def _fail(text: str) -> int:
    print(text, file=sys.stderr)
    return 2


def _run_module(name: str, alter_argv: bool, run: Run) -> int:
    _fresh_main()
    return run(
        functools.partial(runpy._run_module_as_main, name, alter_argv),  # type: ignore[attr-defined]
        None,
    )


def _run_script(path: str, run: Run) -> int:
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        sys.path[0] = os.path.abspath(path)
        return _run_module("__main__", False, run)
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    path = os.path.abspath(path)
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        what = f"can't open file {path!r}"
        return _fail(f"{sys.executable}: {what}: [Errno {error.errno}] {error.strerror}")
    loader = SourceFileLoader("__main__", path)
    main = _fresh_main(__file__=path, __cached__=None, __loader__=loader)
    return _run_source(source, path, main, run)


def _run_source(source: bytes | str, name: str, main: types.ModuleType, run: Run) -> int:
    # A syntax error is reported as an error of the program, so it is compiled where it is run.
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except Exception as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return 1
    return run(code, main.__dict__)


def _run_text(text: str, run: Run) -> int:
    sys.path[0] = ""
    return _run_source(text, "<string>", _fresh_main(), run)


def _die_of_signal(ends: list[int]) -> None:
    for status in ends:
        if status < 0:
            for stream in sys.stdout, sys.stderr:  # as at the end of the process, which comes later
                with contextlib.suppress(Exception):
                    stream.flush()
            signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)


def main(arguments: list[str], usage: str, run: Run) -> int:
    """Run what the arguments name; the exit status, negative for a signal to die of."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return _fail(usage) if not arguments else print(usage) or 0
    if arguments[0] in ("-m", "-c"):
        if len(arguments) < 2:
            return _fail(f"argument expected for the {arguments[0]} option\n{usage}")
        sys.argv = [arguments[0], *arguments[2:]]
        if arguments[0] == "-c":
            return _run_text(arguments[1], run)
        sys.path[0] = os.getcwd()
        return _run_module(arguments[1], True, run)
    if arguments[0].startswith("-"):
        return _fail(f"unknown option {arguments[0]}\n{usage}")
    sys.argv = list(arguments)
    return _run_script(arguments[0], run)


def main_and_exit(usage: str, run: Run) -> None:
    # Registered first, so run last: python dies of Ctrl-C only after everything was closed.
    ends: list[int] = []
    atexit.register(_die_of_signal, ends)
    ends.append(main(sys.argv[1:], usage, run))
    sys.exit(max(ends[0], 0))
