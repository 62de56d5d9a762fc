"""Policies: whether a call may be compiled, and who is told how the compilation went.

The engine calls a policy only on its cold paths, never for a call that an entry fits.
"""

from __future__ import annotations

import logging
import sys
import textwrap
import threading
import traceback
import warnings
import weakref
from types import CodeType
from typing import Any

from stator import _dims, _engine, _marks, _progress, _stance, _words

log = logging.getLogger("stator")

Stack = tuple[tuple[str, int, str], ...] | None

RECOMPILE_LIMIT = 8  # entries that one code object may have under one `compile`


# Bits of compiler_numbers: leave open numbers that changed; all from the start; ints; floats. Put
# into graphs numbers of tensors; sizes that depend on values. Leave open sizes of parameters; of
# other tensors of modules from the start. Marks that cannot be kept are no error. Nobody may rely
# on the values of sizes that changed.
CHANGED, ALL, INTS, FLOATS, SCALARS, SHAPES = 1, 2, 4, 8, 16, 32
PARAMETERS, MODULES, LENIENT, UNHINTED, GRADIENTS = 64, 128, 256, 512, 1024

# Said where someone asks for it.
NO_FILTER = (
    "guard_filter_fn drops no guard: an entry is used only where all that it relies on still "
    "holds. Guards are checked in C; what makes a function compile again is in the `recompiles` "
    "log."
)

AUTOMATIC = True  # leaves numbers that change open if `dynamic` is None


def numbers_left_open(
    dynamic: bool | None,
    changed: bool = True,
    all_from_start: bool = False,
    ints: bool = True,
    floats: bool = True,
    others: int = 0,
) -> int:
    """Which numbers are left open, by `dynamic` and by torch's settings."""
    if dynamic is False:
        return others & LENIENT
    return (
        others
        | (CHANGED if changed else 0)
        | (ALL if dynamic or all_from_start else 0)
        | (INTS if ints else 0)
        | (FLOATS if floats else 0)
    )


def captured() -> int:
    """What values of tensors are in graphs, by torch's settings; where a graph may not end, all
    are."""
    config = sys.modules.get("torch._dynamo.config")
    if config is None:
        return 0
    return (
        (SCALARS if config.capture_scalar_outputs else 0)
        | (SHAPES if config.capture_dynamic_output_shape_ops else 0)
        | (GRADIENTS if getattr(config, "trace_autograd_ops", False) else 0)
    )


class Unsupported(RuntimeError):
    """The function cannot be traced in one piece, as `fullgraph=True` demands."""


# Why this thread's latest trace ended; nothing if the trace returned, or after a read.
_ended = threading.local()


def end_of_trace() -> tuple[str, Stack] | None:
    why: tuple[str, Stack] | None = getattr(_ended, "why", None)
    _ended.why = None
    return why


def other_tracer() -> bool:
    """Whether another tracer is on; torch's own function, once torch is attached."""
    return False


_joined: dict[type, type] = {}

# The errors of torch's Dynamo for reasons, where it has one of their own.
_THEIRS = {"TENSOR_ERROR": "TorchRuntimeError", "UNBACKED": "UserError"}


def unsupported(text: str, reason: str = "", stack: Stack = None) -> Exception:
    """The error for a break; also an instance of torch's class if torch is there."""
    text = _words.break_error(text, reason, stack)
    if not _engine.torch_attached():
        return Unsupported(text)
    from stator._versions import private

    exc = private.exc
    theirs = getattr(exc, _THEIRS.get(reason, "Unsupported"))
    if theirs not in _joined:
        bases = (Unsupported, theirs)
        _joined[theirs] = type(theirs.__name__, bases, {"__module__": "stator"})
    kind = (exc.UserErrorType.ANTI_PATTERN,) if theirs is exc.UserError else ()
    error: Exception = _joined[theirs](*kind, text)
    error.real_stack = traceback.StackSummary.from_list(  # type: ignore[attr-defined]
        [traceback.FrameSummary(*row) for row in stack or ()]
    )
    return error


def _told_to_users() -> tuple[type, ...]:
    """Errors that say what is wrong with the program, or with torch: they leave as they are."""
    from stator._versions import Unusable, private

    return private.exc.TorchDynamoException, private.ConstraintViolationError, Unusable


def _where(code: CodeType) -> str:
    code = _words.users_code(code)
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


# -- what kept changing --

_MOST_REASONS = 256  # that are remembered of one function
_MOST_CHANGES = 16  # values that are counted of one thing


class Changes:
    """Why one function was compiled again and again; put in words when somebody asks."""

    def __init__(self) -> None:
        self._reasons: dict[str, None] = {}

    def add(self, reasons: list[str]) -> None:
        for reason in reasons:
            if len(self._reasons) < _MOST_REASONS:
                self._reasons[reason] = None

    def _values(self, code: CodeType) -> dict[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        for reason in list(self._reasons):  # other threads add to them
            subject, value = _words.parted(_words.in_words(reason, code))
            values = found.setdefault(subject, {})
            if len(values) < _MOST_CHANGES:
                values[value] = None
        return found

    def text(self, code: CodeType, dynamic: bool | None) -> str:
        """What had the most values, and what to do about it, one a line."""
        rows = sorted(self._values(code).items(), key=lambda row: -len(row[1]))
        lines = []
        for subject, values in rows[:3]:
            shown = list(values)
            some = ", ".join(shown if len(shown) <= 4 else [*shown[:3], "…", shown[-1]])
            many = f"{len(values)} other value" + "s" * (len(values) > 1)
            lines.append(f"{subject}: {many}" + (f" ({some})" if some else ""))
            lines.append(f"  what to do: {_words.advice(subject, shown, dynamic)}")
        return "\n".join(lines)


class Policy:
    """The policy of `stator.compile`."""

    forced = False  # a stance chose the backend
    replayed = False  # graphs are replayed by the engine, and no backend is called

    def __init__(
        self, fullgraph: bool = False, dynamic: bool | None = None, limit: int | None = None
    ) -> None:
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.limit = limit
        self._warned: weakref.WeakSet[CodeType] = weakref.WeakSet()
        self._changes: weakref.WeakKeyDictionary[CodeType, Changes] = weakref.WeakKeyDictionary()
        # functions that CPython runs to their end behind a break
        self._stepped: weakref.WeakSet[CodeType] = weakref.WeakSet()

    @property
    def numbers(self) -> int:
        return self.left_open | captured()

    @property
    def left_open(self) -> int:
        """Which numbers are left open: compiler_numbers of src/compile/compiler.h."""
        if self.dynamic is None and not AUTOMATIC:
            return 0
        return numbers_left_open(self.dynamic)

    @property
    def named(self) -> Any:
        """What torch's settings say about places by their names: `named` of world_terms."""
        return _dims.named()

    # No entry fits a call. False: CPython runs this call; None: CPython runs all calls until a
    # reset; an error goes to the caller.
    def miss(self, code: CodeType, offset: int, entries: int, reasons: list[str]) -> bool | None:
        _ended.why = None
        _marks.register()
        if self._left(code, offset) or other_tracer():
            return False
        self._note(code, reasons)
        if not _stance.may_compile(code, reasons):
            return False
        if not self._within_limit(code, offset, entries):
            return None
        _marks.note_logging()
        _progress.begin(code, offset)
        return True

    def _note(self, code: CodeType, reasons: list[str]) -> None:
        if reasons:
            self._changes.setdefault(code, Changes()).add(reasons)

    def _changed(self, code: CodeType) -> str:
        known = self._changes.get(code)
        return "nothing that is known" if known is None else known.text(code, self.dynamic)

    def _left(self, code: CodeType, offset: int) -> bool:
        return offset > 0 and code in self._stepped

    def _within_limit(self, code: CodeType, offset: int, entries: int) -> bool:
        if entries < (RECOMPILE_LIMIT if self.limit is None else self.limit):
            return True
        if code not in self._warned:
            self._warned.add(code)
            self._warn_limit(code, offset)
        return False

    def _warn_limit(self, code: CodeType, offset: int) -> None:
        changed = textwrap.indent(self._changed(code), "  ")
        times = RECOMPILE_LIMIT if self.limit is None else self.limit
        warnings.warn(
            f"stator: {_words.place_of(code, offset)} was compiled {times} times (the limit) "
            f"and now runs uncompiled where no entry fits. What changed:\n{changed}",
            RuntimeWarning,
            stacklevel=_words.users_level(),
        )

    # A trace met something that it may not run. `strict`: the program wants an error for that.
    def broke(
        self, code: CodeType, offset: int, reason: str, text: str, stack: Stack, strict: bool
    ) -> None:
        if reason == "FAKES":  # nothing of what they are is of use to anyone but that tool
            return
        forbidden = reason == "UNBACKED" and _dims.forbids_breaks()
        if self.fullgraph or strict or forbidden:
            _progress.failed(code, offset, reason)
            raise unsupported(text, reason, stack)
        if reason == "STEP" and stack is not None and len(stack) == 1:
            self._stepped.add(code)
        _ended.why = text, stack

    # An entry was made: the one with this number of the compiler's.
    def made(self, code: CodeType, offset: int, graph: Any, compiler: Any, number: int) -> None:
        _progress.done(code, offset, 0 if graph is None else graph.operations)

    # A debugger, profiler or monitor is on. Told once in a process.
    def watched(self, code: CodeType) -> None:
        log.warning(
            "%s runs uncompiled, as all compiled functions do while a debugger, profiler or "
            "monitor watches the thread. stator.ignore_tools(True), or STATOR_IGNORE_TOOLS=1 in "
            "the environment, compiles nevertheless.",
            _where(code),
        )

    # The engine or the backend failed, and nothing was done yet: true runs the call uncompiled.
    def failed(self, code: CodeType, offset: int, error: Exception, where: str) -> bool:
        _progress.failed(code, offset, type(error).__name__)
        if not _engine.torch_attached():
            return False
        from stator._versions import private

        if private.config.suppress_errors:
            self._warn_failed(code, error, where)
            return True
        if where == "backend" or isinstance(error, _told_to_users()):
            return False
        text = f"{type(error).__name__}: {error}\n\nwhile Stator compiled {_where(code)}"
        raise private.exc.InternalTorchDynamoError(text) from error

    def _warn_failed(self, code: CodeType, error: Exception, where: str) -> None:
        what = "The backend" if where == "backend" else "Stator"
        warnings.warn(
            f"{what} failed on {_where(code)}, which now runs uncompiled "
            f"(torch._dynamo.config.suppress_errors): {type(error).__name__}: {error}",
            RuntimeWarning,
            stacklevel=_words.users_level(),
        )


def forget() -> None:
    """Resets the state of this module to that before any compilation."""
    _stance.forget()
