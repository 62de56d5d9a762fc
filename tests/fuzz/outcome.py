"""Run one program under an engine and write down all that can be seen of the run.

Two runs are equal if their `Outcome`s are: the result, the exception with its traceback, what was
printed in order, and what the program's remains print when they are collected at the end.
"""

import builtins
import contextlib
import dataclasses
import gc
import io
import sys
import types
import warnings

import prelude

# An error about memory or about nesting too deep is the machine's, not the program's.
LIMITS = ("MemoryError", "RecursionError")


@dataclasses.dataclass(frozen=True)
class Outcome:
    result: str
    exception: object
    output: str
    remains: tuple[str, ...]

    @property
    def at_limit(self):
        text = f"{self.exception} {self.output}"
        return any(name in text for name in LIMITS)

    def difference(self, other):
        """A readable account of how two outcomes differ, or "" if they do not."""
        rows = []
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if mine != theirs:
                rows.append(f"{field.name}:\n" + first_difference(mine, theirs))
        return "\n".join(rows)


def first_difference(mine, theirs):
    if isinstance(mine, str) and "\n" in mine + theirs:
        left, right = mine.splitlines(), theirs.splitlines()
        for at in range(max(len(left), len(right))):
            a = left[at] if at < len(left) else "(nothing)"
            b = right[at] if at < len(right) else "(nothing)"
            if a != b:
                return f"  output line {at + 1}\n  plain:     {a}\n  evaluated: {b}"
    return f"  plain:     {mine}\n  evaluated: {theirs}"


def code_of(source, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, f"<fuzz {name}>", "exec")


def run_program(code, names):
    """What an engine is asked to run: this frame, and all below it."""
    exec(code, names)


@contextlib.contextmanager
def watched(out):
    """Output, unraisable errors and warnings go to `out`; nothing is collected underway."""
    hook, displayhook = sys.unraisablehook, sys.displayhook
    show_warning = warnings.showwarning
    filters = list(warnings.filters)
    known = getattr(builtins, "_", None)
    gc.collect()
    gc.disable()
    warnings.simplefilter("always")

    def show(message, kind, name, line, *rest):
        text = prelude.clean(str(message))
        out.write(f"warning: {kind.__name__} {text} {name.startswith('<fuzz')} {line}\n")

    warnings.showwarning = show
    sys.unraisablehook = lambda args: out.write(f"ignored: {prelude.describe(args.exc_value)}\n")
    try:
        with contextlib.redirect_stdout(out):
            yield
    finally:
        gc.enable()
        sys.unraisablehook, sys.displayhook = hook, displayhook
        warnings.showwarning = show_warning
        warnings.filters[:] = filters
        warnings._filters_mutated()
        builtins._ = known


def outcome(code, engine):
    """Run under `engine(fn, *args)` and tell what happened."""
    out, late = io.StringIO(), io.StringIO()
    module = types.ModuleType("fuzzed")
    names = module.__dict__
    names.update((name, getattr(prelude, name)) for name in prelude.__all__)
    prelude.reset(prelude.FUEL)
    exception = None
    with watched(out):
        try:
            engine(run_program, code, names)
        except BaseException as exc:
            exception = prelude.describe(exc)
        result = prelude.clean(repr(names.get("result")))[:500]
        prelude.reset(prelude.FUEL)
        with contextlib.redirect_stdout(late):
            names.clear()
            gc.collect()
    return Outcome(result, exception, out.getvalue(), tuple(sorted(late.getvalue().splitlines())))


def plain(fn, *args):
    return fn(*args)
