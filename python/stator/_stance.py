"""`set_stance`: how compiled functions behave for a while."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

from stator import _engine

_NAMES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
          "aot_eager_then_compile")  # fmt: skip

name = "default"
_backend: Any = None

# Functions compiled again for `force_backend`: compiled object → backend's id → the other one.
_others: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()
_forced: set[int] = set()  # ids of compilers made for it
_seen: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()  # code objects


def _other(compiled: Any) -> Any:
    """What is called in place of a compiled function, or None for itself."""
    if name == "force_eager":
        return functools.partial(_engine.passthrough, compiled.__wrapped__)
    if _backend is None or id(compiled.compiler) in _forced:
        return None
    made = _others.setdefault(compiled, {})
    if id(_backend) not in made:
        from stator import _compile

        context = _compile.Context(_backend)
        _forced.add(id(context.compiler))
        made[id(_backend)] = _engine.compiled(compiled.__wrapped__, context.compiler), context
    return made[id(_backend)][0]


def change(stance: str, backend: Any = None) -> tuple[str, Any]:
    """Sets it and gives back what it was."""
    global name, _backend
    if stance not in _NAMES:
        raise RuntimeError(f"invalid torch.compile stance {stance!r}")
    before = name, _backend
    name, _backend = stance, backend
    plain = stance != "force_eager" and backend is None
    _engine.set_chooser(None if plain else _other)
    return before


def may_compile(code: Any, reasons: list[str]) -> bool:
    """Whether a call that no entry fits may be compiled; or an error."""
    if name == "eager_on_recompile" or name == "force_eager":
        return False
    if name == "fail_on_recompile":
        raise RuntimeError(_detected(code, reasons))
    if name in ("eager_then_compile", "aot_eager_then_compile") and code not in _seen:
        _seen[code] = True
        return False
    return True


def _detected(code: Any, reasons: list[str]) -> str:
    text = (
        "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
        f"filename: '{code.co_filename}', function name: '{code.co_name}', "
        f"line number: {code.co_firstlineno}"
    )
    if reasons:
        text += "\n    triggered by the following guard failure(s):"
        text += "".join(f"\n    - {reason}" for reason in reasons)
    return text


def forget() -> None:
    """Nothing was compiled or seen yet."""
    _others.clear()
    _forced.clear()
    _seen.clear()


def ignore_tools(on: bool = True) -> bool:
    """Whether functions are compiled though a debugger, profiler or monitor (`sys.settrace`,
    `sys.setprofile`, `sys.monitoring`) watches the thread; gives back what it was.

    Without it such calls run uncompiled, and the tool sees what it would see without Stator. With
    it the tool sees nothing of what runs compiled.
    """
    return _engine.ignore_tools(on)


if os.environ.get("STATOR_IGNORE_TOOLS", "") not in ("", "0"):
    ignore_tools()


class set_stance:  # the name is torch's
    """Function, context manager and decorator: how compiled functions behave.

    "default"; "force_eager" calls the functions uncompiled; "eager_on_recompile" compiles nothing
    more; "fail_on_recompile" makes that an error; "eager_then_compile" compiles a function at its
    second call. `force_backend` compiles with another backend.
    """

    _dynamo_forbidden = True

    def __init__(self, stance: str = "default", *, force_backend: Any = None) -> None:
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if _engine.within():
            raise RuntimeError("attempted to set_stance in a compiled region")
        self.stance = stance, force_backend
        self.before = change(*self.stance)

    def __enter__(self) -> None:
        change(*self.stance)

    def __exit__(self, *raised: object) -> None:
        change(*self.before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        change(*self.before)

        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance[0], force_backend=self.stance[1]):
                return function(*args, **kwargs)

        inner._dynamo_forbidden = True  # type: ignore[attr-defined]
        return inner
