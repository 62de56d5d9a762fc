"""What people read: reasons in the words of their program, and places in their own code."""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

Row = tuple[str, int, str]  # file, line, function

# -- whose code --


HERE = os.path.dirname(__file__) + os.sep  # Stator's own files


@functools.lru_cache(256)
def is_library(file: str) -> bool:
    """Whether it is nobody's own: torch's, another installed package's, the standard library's."""
    if file.startswith(("<frozen", HERE)):
        return True
    paths = sysconfig.get_paths()
    homes = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    torch = sys.modules.get("torch")
    if torch is not None and torch.__file__:  # it may lie anywhere
        homes.append(os.path.dirname(torch.__file__))
    parts = file.split(os.sep)
    return (
        any(file.startswith(home + os.sep) for home in homes)
        or "site-packages" in parts
        or "dist-packages" in parts
    )


def users_row(stack: Iterable[Row] | None) -> Row | None:
    """Of the calls that led to a place, outermost first, the innermost that is the user's own."""
    rows = list(stack or ())
    own = [row for row in rows if not is_library(row[0])]
    return own[-1] if own else rows[-1] if rows else None


def callers() -> Iterator[FrameType]:
    """The Python frames below this one, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def users_level() -> int:
    """The `stacklevel` with which a warning of the caller's names the user's line."""
    for level, frame in enumerate(callers()):
        if not is_library(frame.f_code.co_filename):
            return max(level, 1)
    return 2


def _module_called() -> Any:
    """The module whose call led here, if it was compiled as a whole."""
    for frame in callers():
        if not is_library(frame.f_code.co_filename):
            return None
        if frame.f_code.co_filename.endswith(os.path.join("stator", "_module.py")):
            found = frame.f_locals.get("module") or frame.f_locals.get("self")
            found = getattr(found, "_orig_mod", found)
            if hasattr(type(found), "forward"):
                return found
    return None


def users_code(code: CodeType) -> CodeType:
    """The code that the user knows this code by: that of a module's forward, where a wrapper of
    ours or of torch's was compiled."""
    if not is_library(code.co_filename) or code.co_name not in _WRAPPERS:
        return code
    forward = getattr(type(_module_called()), "forward", None)
    return getattr(forward, "__code__", code)


_WRAPPERS = ("inner", "call", "_call_impl", "_wrapped_call_impl", "_whole_call", "_whole_call_impl")


def place_of(code: CodeType, offset: int) -> str:
    """ "'f' (file:line)", with the line at which it goes on behind a break."""
    named = users_code(code)
    line = next((line for start, end, line in code.co_lines() if line and start <= offset < end), 0)
    later = f", at line {line}" if offset > 0 and named is code else ""
    name = named.co_name if named is code else named.co_qualname
    return f"'{name}' ({named.co_filename}:{named.co_firstlineno}{later})"


def called_from() -> str:
    """The user's line that called what is being compiled; nothing if none did."""
    for frame in callers():
        if not is_library(frame.f_code.co_filename):
            return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
    return ""


# -- source lines --

_MOST_LINES = 4  # of one expression that are shown


def _column(line: str, at: int) -> int:
    return len(line.encode()[:at].decode(errors="replace"))


def _marked(file: str, span: tuple[int, int, int, int]) -> Iterator[str]:
    first, last, start, end = span
    lines = [linecache.getline(file, n).rstrip("\n") for n in range(first, last + 1)]
    shown = lines[:_MOST_LINES]
    margin = min((len(line) - len(line.lstrip()) for line in shown if line.strip()), default=0)
    for i, line in enumerate(shown):
        yield line[margin:]
        begin = _column(line, start) if i == 0 else len(line) - len(line.lstrip())
        stop = _column(line, end) if first + i == last else len(line)
        yield " " * (begin - margin) + "^" * max(stop - begin, 1)
    if len(lines) > len(shown):
        yield "..."


def excerpt(stack: Iterable[Row] | None) -> str:
    """As in a traceback; in the last row the characters are marked, if they are known."""
    made = []
    for row in stack or ():
        file, line, name = row
        made.append(f'  File "{file}", line {line}, in {name}')
        span = getattr(row, "span", None)
        lines = list(_marked(file, span)) if span else [linecache.getline(file, line).strip()]
        if any(line.strip() for line in lines):
            made += [f"    {line}".rstrip() for line in lines]
    return "\n".join(made)


def from_user_code(stack: Iterable[Row] | None) -> str:
    """The end of an error, in torch's form, which tools look for."""
    text = excerpt(stack)
    return f"\n\nfrom user code:\n{text}".replace("\n  File ", "\n   File ") if text else ""


# -- breaks in torch's words --

# What torch's Dynamo calls breaks of these kinds: people search for it.
_TORCHS = {
    "BACKWARD": "Unsupported Tensor.backward() call",
    "CLASS_STATEMENT": "LOAD_BUILD_CLASS bytecode not supported",
    "DATA_SHAPE": "Dynamic shape operator",
    "DISABLED": "Skip calling `torch.compiler.disable()`d function",
    "EXCEPTION_LEAVES": "Observed exception",
    "EXTENSION": "Attempted to call function marked as skipped",
    "FILE_IO": "Attempted to call function marked as skipped",
    "GRAPH_BREAK": "Call to `torch._dynamo.graph_break()`",
    "ITEM": "Unsupported Tensor.item() call with capture_scalar_outputs=False",
    "LOGGING": "logging.Logger method not supported for non-export cases",
    "NATIVE_CALL": "Attempted to call function marked as skipped",
    "PRINT": "Failed to trace builtin operator",
    "SKIP_FRAME": "Call to `torch._dynamo.skip_frame()`",
    "STEP": "Call to `torch._dynamo.step_unsupported()`",
    "TENSOR_ERROR": "Dynamo failed to run FX node with fake tensors",
    "TENSOR_TRUTH": "Data-dependent branching",
    "TOLIST": "Unsupported Tensor.item() call with capture_scalar_outputs=False",
}


def break_error(text: str, reason: str, stack: Iterable[Row] | None) -> str:
    """The whole text of an error for a break."""
    theirs = f"\n  torch's Dynamo calls it: {_TORCHS[reason]}" if reason in _TORCHS else ""
    return f"{text}{theirs}{from_user_code(stack)}"


# -- reasons to compile again --

_PLACES = (
    (re.compile(r"\bL\['([^']*)'\]"), r"\1"),
    (re.compile(r"function\.__globals__\['([^']*)'\]"), r"\1"),
    (re.compile(r"function\.__builtins__\['([^']*)'\]"), r"\1"),
    (re.compile(r"\._(?:modules|parameters|buffers)\['([^']*)'\]"), r".\1"),
    (re.compile(r"___stack\d+"), "a value at the break"),
)
_CELL = re.compile(r"function\.__closure__\[(\d+)\]\.cell_contents")


def place_text(text: str, code: CodeType | None = None) -> str:
    """A place as the program names it: `x` for `L['x']`, `n` for a global or a closure's n."""
    names = code.co_freevars if code is not None else ()

    def cell(found: re.Match[str]) -> str:
        at = int(found[1])
        return names[at] if at < len(names) else f"closure variable {at}"

    text = _CELL.sub(cell, text)
    for pattern, name in _PLACES:
        text = pattern.sub(name, text)
    return text


_MISMATCH = re.compile(r"tensor '(.+)' (size|stride) mismatch at index (\d+)\. expected (.+?), "
                       r"actual (-?\d+)")  # fmt: skip
_CHANGED = re.compile(r"(.+) is now (a .+); expected: (a .+)")
_SAID_NOW = re.compile(r"(.+?): now (.*)", re.DOTALL)
_TENSOR = re.compile(r"a (\S+) of (\S+) on ([^,]+), size (\([^)]*\)), stride (\([^)]*\))(.*)")
_TENSOR_PARTS = ("class", "dtype", "device", "size", "stride")

# Guards as they are written, and what of the place they are about.
_FORMS = (
    (re.compile(r"len\((.+)\) == (.+)"), "length of {}"),
    (re.compile(r"bool\(len\((.+)\)\) is (True|False)"), "length of {}"),
    (re.compile(r"type\((.+)\) is (.+)"), "type of {}"),
    (re.compile(r"list\((.+)\.__dict__\) == (.+)"), "attributes of {}"),
    (re.compile(r"list\((.+)\) == (.+)"), "contents of {}"),
    (re.compile(r"(.+)\.__code__ is <code (.+)>"), "function {}"),
    (re.compile(r"(.+) == (.+)", re.DOTALL), "{}"),
    (re.compile(r"(.+) is (.+)", re.DOTALL), "{}"),
)
_MISSING = re.compile(r"(.+) not in (.+)")


def _tensor_changes(place: str, now: str, then: str) -> str:
    new, old = _TENSOR.fullmatch(now), _TENSOR.fullmatch(then)
    if new is None or old is None:
        return f"{place}: {now}, was {then}"
    for part, a, b in zip(_TENSOR_PARTS, new.groups(), old.groups(), strict=False):
        if a != b:
            return f"{part} of {place}: {a}, was {b}"
    flags, before = (found[6].strip(", ") or "none" for found in (new, old))
    return f"flags of {place}: {flags}, was {before}"


def _guarded(guard: str, now: str, code: CodeType | None) -> str:
    now = re.sub(r", of type (.+)$", r" (\1)", now)
    if found := _MISSING.fullmatch(guard):
        key, place = found[1], place_text(found[2], code)
        if place.endswith(".__dict__"):
            return f"{place[: -len('.__dict__')]}.{key.strip(chr(39))}: {now}, was not there"
        return f"{place}[{key}]: {now}, was not there"
    for pattern, subject in _FORMS:
        if found := pattern.fullmatch(guard):
            then = found[2]
            if subject.startswith("function"):
                now = re.sub(r"<code (.+)>", r"\1", now)
                then = f"another {then}" if then == now else then
            if found[2] in ("True", "False") and "bool(len" in guard:
                then = "not 0" if found[2] == "True" else "0"
            return f"{subject.format(place_text(found[1], code))}: {now}, was {then}"
    return f"{place_text(guard, code)}: now {now}"


_SETTLED = re.compile(r"(.+)\.(size|stride)\(\)\[(\d+)\] == (-?\d+): now (-?\d+)")
_LOCAL = re.compile(r"L\['([^']*)'\]")


def as_torch(reason: str) -> str:
    """A size that the program fixed is, for torch, one that does not fit."""
    found = _SETTLED.match(reason)
    if found is None:
        return reason
    place, what, dim, then, now = found.groups()
    name, rest = _LOCAL.sub(r"\1", place, count=1), reason[found.end() :]
    return f"tensor '{name}' {what} mismatch at index {dim}. expected {then}, actual {now}{rest}"


def in_words(reason: str, code: CodeType | None = None) -> str:
    """ "size 0 of x: 4, was 3": what failed in an entry, as short as it can be said."""
    reason, _, rest = as_torch(reason).partition(" (from now on ")
    after = "; from now on any number will do" if rest else ""
    if found := _MISMATCH.match(reason):
        place, what, dim, then, now = found.groups()
        then = then.replace("any of ", "")
        return f"{what} {dim} of {place_text(place, code)}: {now}, was {then}{after}"
    if found := _CHANGED.fullmatch(reason):
        return f"{_tensor_changes(place_text(found[1], code), found[2], found[3])}{after}"
    if reason.startswith("torch's global state changed: "):
        return f"torch's {reason.partition(': ')[2].strip()} changed"
    if found := _SAID_NOW.fullmatch(reason):
        return f"{_guarded(found[1], found[2], code)}{after}"
    return f"{place_text(reason, code)}{after}"


def parted(words: str) -> tuple[str, str]:
    """What a reason is about, and what is there now."""
    subject, _, value = words.partition(": ")
    return subject, value.partition("; from now on")[0].rpartition(", was ")[0] or value


def shortest_first(reasons: list[str], code: CodeType | None = None) -> list[str]:
    """Each reason once, in words."""
    return sorted(dict.fromkeys(in_words(reason, code) for reason in reasons), key=len)


# -- what to do about it --

_NUMBER = re.compile(r"-?[\d.e+-]+")


def advice(subject: str, values: Iterable[str], dynamic: bool | None) -> str:
    """What people can do about a thing that has another value in each call."""
    given = list(values)
    if subject.startswith(("size ", "stride ")) or all(map(_NUMBER.fullmatch, given)):
        if dynamic is False:
            return "compile with dynamic=None or dynamic=True, so that one entry serves all numbers"
        if subject.startswith("size "):
            return "mark the size with torch._dynamo.mark_dynamic before the first call"
        return "keep the number in a tensor, or use it outside of the compiled function"
    if subject.startswith("function ") or any("<function" in value for value in given):
        return "pass the same function each time: a lambda made for each call is always another one"
    if subject.startswith("torch's "):
        return "call it with the same settings of torch each time, or compile one function for each"
    if subject.startswith(("length ", "contents ")):
        return "pass as many each time, or loop over them outside of the compiled function"
    return "compile one function for each, or pass what differs in a tensor"
