"""Runs a program under an engine and captures all that can be seen of the run; compares two
captures and says in text where they differ. A program is any function without arguments in a
`programs_*.py` of this folder whose name has no leading underscore."""

from __future__ import annotations

import contextlib
import difflib
import faulthandler
import functools
import gc
import importlib
import io
import os
import re
import struct
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIMEOUT = float(os.environ.get("STATOR_DIFF_TIMEOUT", "300"))

Program = Callable[[], Any]
Engine = Callable[[Program], Any]


# -- programs ------------------------------------------------------------------------------


def _wanted(path: Path) -> bool:
    version = re.match(r"programs_3(\d\d)_", path.name)
    return version is None or sys.version_info >= (3, int(version.group(1)))


def load_programs() -> dict[str, Program]:
    """All programs that this Python can run, by `family.name`, in the order of the files."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    found: dict[str, Program] = {}
    for path in filter(_wanted, sorted(HERE.glob("programs_*.py"))):
        module = importlib.import_module(path.stem)
        family = path.stem.removeprefix("programs_")
        for name, value in vars(module).items():
            own = isinstance(value, types.FunctionType) and value.__module__ == path.stem
            if own and not name.startswith("_"):
                found[f"{family}.{name}"] = value
    return found


# -- engines -------------------------------------------------------------------------------


def plain(program: Program) -> Any:
    return program()


def evaluated(program: Program) -> Any:
    import stator

    return stator.evaluate(program)


def hopping(seed: int, every: int) -> Engine:
    import stator._engine as engine

    def run(program: Program) -> Any:
        return engine.evaluate_hopping(program, (), {}, seed, every)

    return run


def handed_over(at: int) -> Engine:
    """Moved once: at the boundary of that number, into a frame that CPython continues."""
    import stator._engine as engine

    def run(program: Program) -> Any:
        return engine.evaluate_hopping(program, (), {}, at=at)

    return run


# -- turning what a run gave into plain data -------------------------------------------------


def _own_paths() -> tuple[str, ...]:
    """Code that may stand between pytest and a program: ours, and stator's Python."""
    own = [str(HERE / "harness.py"), str(HERE / "test_")]
    spec = sys.modules.get("stator")
    if spec is not None and getattr(spec, "__file__", None):
        own.append(str(Path(str(spec.__file__)).resolve().parent) + os.sep)
    return tuple(own)


def traceback_places(tb: types.TracebackType | None) -> list[tuple[Any, ...]]:
    """Every entry as (file, function, line, line, end line, column, end column)."""
    own = _own_paths()
    found = []
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_filename.startswith(own):
            position = list(code.co_positions())[tb.tb_lasti // 2]
            found.append((Path(code.co_filename).name, code.co_name, tb.tb_lineno, *position))
        tb = tb.tb_next
    return found


class Freezer:
    """Copies a value into tuples and strings: types, bits of floats, order, and which parts
    are one and the same object."""

    def __init__(self) -> None:
        self.seen: dict[int, int] = {}
        self.alive: list[object] = []

    def freeze(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes):
            return (kind.__name__, value)
        if kind is float:
            return ("float", "nan" if value != value else struct.pack("<d", value).hex())
        if kind is complex:
            return ("complex", self.freeze(value.real), self.freeze(value.imag))
        if kind is tuple and not value:
            return ("tuple",)
        if id(value) in self.seen:
            return ("same as", self.seen[id(value)])
        self.seen[id(value)] = len(self.seen)
        self.alive.append(value)
        return (f"#{self.seen[id(value)]} {kind.__name__}", *self._body(value))

    def _body(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, BaseException):
            return self._exception(value)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            return (getattr(value, "__module__", None), value.__qualname__)
        if isinstance(value, (types.ModuleType,)):
            return (value.__name__,)
        if isinstance(value, types.TracebackType):
            return tuple(traceback_places(value))
        if isinstance(value, types.FrameType):
            return (value.f_code.co_name, value.f_lineno, value.f_lasti)
        if isinstance(value, types.CodeType):
            return (value.co_name, value.co_firstlineno)
        return (*self._content(value), *self._state(value))

    def _content(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, dict):
            pairs = dict.items(value)
            return tuple((self.freeze(k), self.freeze(v)) for k, v in pairs)
        if isinstance(value, list):
            return tuple(self.freeze(item) for item in list.__iter__(value))
        if isinstance(value, tuple):
            return tuple(self.freeze(item) for item in tuple.__iter__(value))
        if isinstance(value, (set, frozenset)):
            return tuple(sorted((self.freeze(item) for item in value), key=repr))
        for base in (str, bytes, bytearray, int, float):
            if isinstance(value, base):
                return (base.__repr__(value),)
        if isinstance(value, (range, slice)):
            return (repr(value),)
        return ()

    def _state(self, value: Any) -> tuple[Any, ...]:
        state = getattr(value, "__dict__", None)
        return (("state", self.freeze(state)),) if type(state) is dict and state else ()

    def _exception(self, exc: BaseException) -> tuple[Any, ...]:
        parts = [
            ("args", self.freeze(exc.args)),
            ("traceback", *traceback_places(exc.__traceback__)),
            ("cause", self.freeze(exc.__cause__)),
            ("context", self.freeze(exc.__context__)),
            ("suppress", exc.__suppress_context__),
            ("state", self.freeze(dict(vars(exc)))),
        ]
        for name in ("name", "value", "code", "msg"):
            if hasattr(exc, name):
                parts.append((name, self.freeze(getattr(exc, name))))
        if isinstance(exc, BaseExceptionGroup):
            parts.append(("members", *(self.freeze(e) for e in exc.exceptions)))
        return tuple(parts)


# -- state of the thread that must be the same after a run ------------------------------------


def _python_depth() -> int:
    """How many Python frames still fit below this one."""
    depth = 0

    def down() -> None:
        nonlocal depth
        depth += 1
        down()

    with contextlib.suppress(RecursionError):
        down()
    return depth


@functools.lru_cache(maxsize=4)
def _nested(depth: int) -> Any:
    kinds: Any = int
    for _ in range(depth):
        kinds = (kinds,)
    return kinds


def _native_fits(depth: int) -> bool:
    try:
        return isinstance(0, _nested(depth))
    except RecursionError:
        return False


_native_guess = 0


def _native_depth() -> int:
    """How many levels of C recursion (isinstance in nested tuples) fit below this frame."""
    global _native_guess
    low, high = _native_guess, _native_guess + 1
    if not _native_fits(low) or _native_fits(high):
        low, high = 0, 64
        while _native_fits(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _native_fits(middle) else (low, middle)
        _native_guess = low
    return low


def thread_state() -> dict[str, Any]:
    """What a run may not change: handled exception, depths, hooks, settings."""
    return {
        "handled exception": repr(sys.exc_info()[1]),
        "recursion limit": sys.getrecursionlimit(),
        "trace function": repr(sys.gettrace()),
        "profile function": repr(sys.getprofile()),
        "asyncgen hooks": repr(sys.get_asyncgen_hooks()),
        "switch interval": sys.getswitchinterval(),
        "gc enabled": gc.isenabled(),
        "caller": sys._getframe(1).f_code.co_name,
        "python depth left": _python_depth(),
        "native depth left": _native_depth(),
    }


# -- one run ---------------------------------------------------------------------------------


@dataclass
class Capture:
    """All that was seen of one run, as plain data."""

    outcome: Any = None
    printed: str = ""
    errors: str = ""
    warned: list[Any] = field(default_factory=list)
    unraisable: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        return [
            *_render("outcome", self.outcome),
            *_render("printed", tuple(self.printed.splitlines())),
            *_render("stderr", tuple(self.errors.splitlines())),
            *_render("warnings", tuple(self.warned)),
            *_render("unraisable", tuple(self.unraisable)),
            *_render("state changed", tuple(self.state.items())),
        ]


def _flat(value: Any) -> bool:
    return not (isinstance(value, tuple) and any(isinstance(v, tuple) and v for v in value))


def _render(label: str, value: Any, depth: int = 0) -> Iterator[str]:
    """Nested tuples as indented lines, so that a diff points at the part that differs."""
    pad = "  " * depth
    if _flat(value):
        yield f"{pad}{label}: {value!r}"
        return
    first, rest = value[0], value
    if isinstance(first, str):
        label, rest = f"{label} {first}", value[1:]
    yield f"{pad}{label}:"
    for index, item in enumerate(rest):
        yield from _render(str(index), item, depth + 1)


def _scrub(words: object) -> str:
    return re.sub(r"0x[0-9a-fA-F]+", "0x…", str(words))


@contextlib.contextmanager
def _recording(seen: Capture) -> Iterator[None]:
    """Divert output, warnings and unraisable exceptions into a capture."""
    out, err = io.StringIO(), io.StringIO()

    def unraisable(args: Any) -> None:
        owner = getattr(args.object, "__qualname__", type(args.object).__name__)
        frozen = traceback_places(args.exc_traceback)
        seen.unraisable.append(
            (args.exc_type.__name__, _scrub(args.exc_value), owner, _scrub(args.err_msg), *frozen)
        )

    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    collecting = gc.isenabled()
    gc.disable()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
                gc.collect()
    finally:
        if collecting:
            gc.enable()
        sys.unraisablehook = hook
    seen.printed, seen.errors = out.getvalue(), err.getvalue()
    for entry in caught:
        place = (Path(entry.filename).name, entry.lineno)
        seen.warned.append((entry.category.__name__, _scrub(entry.message), *place))


def _outcome(program: Program, engine: Engine) -> tuple[str, Any]:
    try:
        return ("returned", engine(program))
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        return ("raised", exc)


def _settle() -> None:
    """Put all that lives out of the collector's sight, so that a run's own garbage is all
    that later collections find."""
    gc.collect()
    gc.freeze()


def capture(program: Program, engine: Engine = plain) -> Capture:
    """Run a program once and write down what could be seen."""
    seen = Capture()
    _settle()
    faulthandler.dump_traceback_later(TIMEOUT, exit=True)
    try:
        before = thread_state()
        with _recording(seen):
            how, value = _outcome(program, engine)
        after = thread_state()
        seen.outcome = (how, Freezer().freeze(value))
    finally:
        faulthandler.cancel_dump_traceback_later()
    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    seen.state = changed
    return seen


def difference(expected: Capture, actual: Capture) -> str:
    """Empty if nothing differs; otherwise a readable diff."""
    if expected == actual:
        return ""
    one, two = expected.lines(), actual.lines()
    diff = difflib.unified_diff(one, two, "plain", "other", lineterm="", n=6)
    return "\n".join(diff) or "captures differ in a way that their text does not show"


# -- leaks -------------------------------------------------------------------------------------


def _watched(code: types.CodeType) -> Iterator[tuple[str, Any]]:
    """Objects of a code object whose reference counts a correct run leaves alone. (Not those
    of names: the type attribute cache holds on to them.)"""
    yield f"code {code.co_qualname}", code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _watched(const)
        elif isinstance(const, (tuple, float, bytes, frozenset)):
            yield f"constant {const!r:.40}", const


def _counts(program: Program) -> dict[str, int]:
    gc.collect()
    counts = {"objects": len(gc.get_objects())}
    counts["function"] = sys.getrefcount(program)
    counts["globals"] = sys.getrefcount(program.__globals__)  # type: ignore[attr-defined]
    for name, value in _watched(program.__code__):  # type: ignore[attr-defined]
        counts[name] = sys.getrefcount(value)
    for single in (None, True, False, (), "", NotImplemented, Ellipsis):
        counts[f"refs to {single!r}"] = sys.getrefcount(single)
    return counts


def _quietly(program: Program, engine: Engine) -> None:
    with _recording(Capture()):
        _outcome(program, engine)


def growth(program: Program, engine: Engine = plain, rounds: int = 3) -> dict[str, int]:
    """What every one of several runs in a row leaves behind, after one to warm up."""
    faulthandler.dump_traceback_later(TIMEOUT, exit=True)
    _settle()
    try:
        _quietly(program, engine)
        least: dict[str, int] = {}
        before = _counts(program)
        for _ in range(rounds):
            _quietly(program, engine)
            after = _counts(program)
            for key, count in after.items():
                delta = count - before[key]
                least[key] = min(delta, least.get(key, delta))
            before = after
    finally:
        faulthandler.cancel_dump_traceback_later()
    return {key: delta for key, delta in least.items() if delta > 0}


def leak_hint(program: Program, engine: Engine) -> str:
    """What an engine leaves behind in every run and CPython does not; empty if nothing."""
    worse: dict[str, int] = {}
    for rounds in (2, 10):
        left = growth(program, engine, rounds)
        usual = growth(program, plain, rounds) if left else {}
        worse = {key: n for key, n in left.items() if n > usual.get(key, 0)}
        if not worse:
            break
    return ", ".join(f"{key}: +{n} a run" for key, n in worse.items())


# -- command line: one child process a program, so that a crash names its program ----------------


def _compare(program: Program, engine: Engine) -> str:
    found = difference(capture(program), capture(program, engine))
    return found or leak_hint(program, engine)


def _in_child(program: Program, engine: Engine) -> str:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 2
        try:
            found = _compare(program, engine)
            print(found, end="\n" if found else "", flush=True)
            status = 1 if found else 0
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"killed by signal {os.WTERMSIG(status)}"
    return {0: "", 1: "differs"}.get(os.WEXITSTATUS(status), "harness failed")


def _show(pattern: str) -> int:
    for name, program in load_programs().items():
        if re.search(pattern, name):
            print(f"== {name}", *capture(program).lines(), sep="\n")
    return 0


def main(argv: list[str]) -> int:
    """`harness.py plain|evaluate|hop[:SEED:EVERY]|over:AT [PATTERN]`: compare with CPython, one
    by one; `harness.py show [PATTERN]`: print what CPython gives."""
    mode, pattern = [*argv, "", ""][:2]
    if mode == "show":
        return _show(pattern)
    kind, *words = mode.split(":")
    numbers = [int(word) for word in words]
    engines: dict[str, Callable[[], Engine]] = {
        "plain": lambda: plain,
        "evaluate": lambda: evaluated,
        "hop": lambda: hopping(*(numbers or [0, 1])),
        "over": lambda: handed_over(*numbers),
    }
    if kind not in engines:
        print(main.__doc__, file=sys.stderr)
        return 2
    engine = engines[kind]()
    thread_state()  # so that the children need not search for the depths
    chosen = {name: p for name, p in load_programs().items() if re.search(pattern, name)}
    bad = []
    for name, program in chosen.items():
        verdict = _in_child(program, engine)
        if verdict:
            bad.append(name)
            print(f"{name}: {verdict}", flush=True)
    print(f"{len(chosen) - len(bad)} of {len(chosen)} programs agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
