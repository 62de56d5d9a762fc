"""`set_stance`: how compiled functions behave for a while."""

from __future__ import annotations

import copy
import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

from stator import _dims, _engine

_NAMES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
          "aot_eager_then_compile")  # fmt: skip

name = "default"
_backend: Any = None

# Functions compiled again for `force_backend`: compiled object → backend's id → the other one.
_others: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()
_seen: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()  # code objects


def _other(compiled: Any) -> Any:
    """What is called in place of a compiled function, or None for itself."""
    if name == "force_eager":
        return functools.partial(_engine.passthrough, compiled.__wrapped__)
    if compiled.compiler.policy.forced:
        return None
    if name == "aot_eager_then_compile":
        code = compiled.__wrapped__.__code__
        if code in _seen:
            return None
        _seen[code] = True
        return _with_backend(compiled, "aot_eager")
    return None if _backend is None else _with_backend(compiled, _backend)


def _with_backend(compiled: Any, backend: Any) -> Any:
    """The same function under the same policy, with entries of its own."""
    made = _others.setdefault(compiled, {})
    key = backend if isinstance(backend, str) else id(backend)
    if key not in made:
        from stator import _compile

        policy = copy.copy(compiled.compiler.policy)
        policy.forced, policy.replayed = True, backend == "eager"
        compiler = _compile.make_compiler(backend, policy)
        made[key] = _engine.compiled(compiled.__wrapped__, compiler), compiler, backend
    return made[key][0]


def change(stance: str, backend: Any = None, unsafe: bool = False) -> tuple[str, Any]:
    """Sets it and gives back what it was."""
    global name, _backend
    if stance not in _NAMES:
        raise RuntimeError(f"invalid torch.compile stance {stance!r}")
    if unsafe:
        _dims.say_once(
            "skip_guard_eval_unsafe",
            "set_stance(skip_guard_eval_unsafe=True) skips no guard: an entry is used only where "
            "all that it relies on still holds.",
        )
    before = name, _backend
    name, _backend = stance, backend
    chooses = stance in ("force_eager", "aot_eager_then_compile") or backend is not None
    _engine.set_chooser(_other if chooses else None)
    return before


def may_compile(code: Any, reasons: list[str]) -> bool:
    """Whether a call that no entry fits may be compiled; or an error."""
    if name == "eager_on_recompile" or name == "force_eager":
        return False
    if name == "fail_on_recompile":
        raise RuntimeError(_detected(code, reasons))
    if name == "eager_then_compile" and code not in _seen:
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
    second call, "aot_eager_then_compile" with backend "aot_eager" at its first and with its own
    afterwards. `force_backend` compiles with another backend. `skip_guard_eval_unsafe` skips no
    guard, and says so.
    """

    _dynamo_forbidden = True

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        if _engine.within():
            raise RuntimeError("attempted to set_stance in a compiled region")
        self.stance = stance, force_backend
        self.before = change(*self.stance, skip_guard_eval_unsafe)

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


# -- equal layers --

layers = "auto"
_LAYERS = ("auto", "apart", "off")


def share_layers(how: str) -> None:
    """Says what becomes of equal layers of a model that inductor or aot_eager compiles.

    "auto": a graph without gradients has one body for equal layers, which the backend compiles
    once. "apart": with gradients, too; the body, and what lies between its calls, are compiled by
    themselves, and the steps of small models take longer. "off": the backend gets all layers. What
    is compiled already stays as it is.
    """
    global layers
    if how not in _LAYERS:
        raise ValueError(f"how is one of {', '.join(map(repr, _LAYERS))}, not {how!r}")
    layers = how
