"""`stator.install()`: `torch.compile` and `torch._dynamo.optimize` go through Stator.

What is patched is found by torch as a module's global at the time of a call, so references that
were taken earlier go through Stator, too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import os
import textwrap
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

from stator import (
    _compile,
    _dims,
    _engine,
    _export,
    _export_strict,
    _logs,
    _marks,
    _policy,
    _progress,
    _record,
    _stance,
    _words,
)
from stator._versions import private

log = _logs.log

# -- policy: torch's settings, counters, errors --


def _describe(code: CodeType, reasons: list[str]) -> str:
    """Torch's words, which tools look for, with ours before them."""
    named = _words.users_code(code)
    rows = {_words.in_words(reason, code): reason for reason in reversed(reasons)}
    failures = "\n".join(f"- {short}" + (f"  [{rows[short]}]" if rows[short] != short else "")
                         for short in sorted(rows, key=len))  # fmt: skip
    details = f"triggered by the following guard failure(s):\n{failures}"
    return (
        f"Recompiling function {named.co_name} in {named.co_filename}:{named.co_firstlineno}\n"
        f"{textwrap.indent(details, '    ')}"
    )


def _summaries(stack: _policy.Stack) -> list[traceback.FrameSummary]:
    return [traceback.FrameSummary(file, line, name) for file, line, name in stack or ()]


_ids = itertools.count()
_callbacks = functools.partial(
    private.callback_handler.install_callbacks, private.CallbackTrigger.DYNAMO
)


# Places of breaks that were logged in full, oldest first.
_logged: dict[Any, None] = {}
_MOST_LOGGED = 4096


def _is_logged(stack: _policy.Stack) -> bool:
    """Whether a break at this place was logged before; from now on it was."""
    place = tuple(tuple(row) for row in stack or ())
    if place in _logged:
        return True
    _logged[place] = None
    if len(_logged) > _MOST_LOGGED:
        del _logged[next(iter(_logged))]
    return False


def _marks_as(config: Any) -> str:
    return str(getattr(config, "automatic_dynamic_shapes_mark_as", "dynamic"))


class TorchPolicy(_policy.Policy):
    """That of `torch.compile`: reads torch._dynamo.config whenever something is compiled."""

    def __init__(
        self,
        fullgraph: bool,
        limit: int | None = None,
        fail_fn: Callable[[private.GuardFail], None] | None = None,
        export_fn: Callable[[Any], None] | None = None,
        dynamic: bool | None = None,
    ) -> None:
        super().__init__(fullgraph, dynamic, limit)
        self.fail_fn = fail_fn
        self.export_fn = export_fn

    @property
    def left_open(self) -> int:
        config = private.config
        _dims.say_settings()
        if self.dynamic is None and not _policy.AUTOMATIC:
            return 0
        return _policy.numbers_left_open(
            self.dynamic,
            changed=config.automatic_dynamic_shapes,
            all_from_start=not config.assume_static_by_default,
            ints=not config.specialize_int,
            floats=not config.specialize_float,
            others=(0 if config.force_parameter_static_shapes else _policy.PARAMETERS)
            | (0 if config.force_nn_module_property_static_shapes else _policy.MODULES)
            | (_policy.LENIENT if getattr(config, "allow_ignore_mark_dynamic", False) else 0)
            | (_policy.UNHINTED if _marks_as(config) == "unbacked" else 0),
        )

    def miss(self, code: CodeType, offset: int, entries: int, reasons: list[str]) -> bool | None:
        _policy.end_of_trace()
        if private.config.disable:
            self._nothing_compiled(code, "Dynamo tracing is disabled")
            _skip(code, "torch._dynamo.config.disable")
            return False
        wanted = os.environ.get("TORCHDYNAMO_DEBUG_FUNCTION")
        if wanted and code.co_name != wanted:
            _skip(code, "TORCHDYNAMO_DEBUG_FUNCTION names another")
            return False
        if private.is_fx_symbolic_tracing():  # what it passes in is to see the program, once
            if private.config.error_on_nested_fx_trace:
                raise RuntimeError(
                    f"Detected that you are using FX to trace {code.co_qualname}, which is "
                    "compiled: trace it uncompiled, or unset "
                    "torch._dynamo.config.error_on_nested_fx_trace."
                )
            return False
        if _policy.other_tracer():
            self._say_transform(code)
            return False
        if self._left(code, offset) or not _stance.may_compile(code, reasons):
            return False
        if reasons:
            self._recompiles(code, reasons)
        if not self._under_limit(code, offset, entries, reasons):
            return None
        private.counters["frames"]["total"] += 1
        _marks.note_logging()
        _progress.begin(code, offset)
        compile = _logs.begin(code, offset, reasons)
        _logs.started(compile, functools.partial(_describe, code, reasons))
        self._say_unheeded()
        return True

    def _say_transform(self, code: CodeType) -> None:
        transform = private.live_transform()
        if transform is None:
            return
        why = f"it is called within torch.func.{transform}, where Stator compiles nothing"
        _skip(code, why)
        if self.fullgraph and not self.replayed:
            raise _policy.unsupported(f"{code.co_qualname} is not compiled: {why}")

    def _say_unheeded(self) -> None:
        """What people asked for that a compile does not do."""
        if private.bytecode_hooks():
            warnings.warn(
                "Hooks on bytecode (register_bytecode_hook) are not called: Stator makes no "
                "bytecode. What a call runs is in the `bytecode` log, and in stator.explain.",
                stacklevel=_words.users_level(),
            )
        if getattr(private.config, "compiled_autograd", False):
            _dims.say_once(
                "compiled_autograd",
                "torch._dynamo.config.compiled_autograd has no effect: backward passes run as the "
                "backend has made them, or operation by operation.",
            )

    def _nothing_compiled(self, code: CodeType, why: str) -> None:
        if self.fullgraph and _stance.name == "default":
            place = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
            raise RuntimeError(
                "torch.compile with fullgraph=True found no compiled frames. Skipped frames:\n"
                f"  - {place}: {why}"
            )

    def _recompiles(self, code: CodeType, reasons: list[str]) -> None:
        self._note(code, reasons)
        _guard_failures[code] += reasons
        if private.config.error_on_recompile:
            raise private.exc.RecompileError(_describe(code, reasons))
        if self.fail_fn is not None:
            self.fail_fn(private.GuardFail(_words.as_torch(reasons[0]), code))

    def _under_limit(self, code: CodeType, offset: int, entries: int, reasons: list[str]) -> bool:
        limit = private.config.recompile_limit if self.limit is None else self.limit
        kind = "recompile_limit"
        if entries < limit and entries >= private.config.accumulated_recompile_limit:
            limit, kind = private.config.accumulated_recompile_limit, "accumulated_recompile_limit"
        if entries < limit:
            return True
        if private.config.fail_on_recompile_limit_hit or self.fullgraph:
            asked = "fullgraph=True" if self.fullgraph else "fail_on_recompile_limit_hit=True"
            raise private.exc.FailOnRecompileLimitHit(
                f"{kind} reached with {asked}. {_describe(code, reasons)}"
            )
        if code not in self._warned:
            self._warned.add(code)
            shortest = _words.shortest_first(reasons[:1], code)
            caller = _words.called_from()
            log.warning(
                "torch._dynamo hit config.%s (%s)\n   function: %s\n%s   last reason: %s\n"
                "   what changed:\n%s\nCalls that an entry fits still use it; all others run "
                'uncompiled. To log all recompilation reasons, use TORCH_LOGS="recompiles".',
                kind,
                limit,
                _words.place_of(code, offset),
                f"   called from: {caller}\n" if caller else "",
                f"{shortest[0]}  [{reasons[0]}]" if reasons else "none",
                textwrap.indent(self._changed(code), "      "),
            )
        return False

    def broke(
        self,
        code: CodeType,
        offset: int,
        reason: str,
        text: str,
        stack: _policy.Stack,
        strict: bool,
    ) -> None:
        if reason == "FORBIDDEN":
            raise AssertionError(f"Attempt to trace forbidden callable: {text}")
        compile = _logs.of(code, offset)
        try:
            super().broke(code, offset, reason, text, stack, strict)
        except Exception as error:
            if compile is not None:
                _logs.failed(compile, error, stack)
            _record_failure(error, offset)
            raise
        private.counters["graph_break"][text] += 1
        if _logs.is_on(_logs.breaks_log):
            with _logs.named(compile):
                self._log_break(text, stack)
        if compile is not None:
            _logs.broke(compile, text, stack)
        private.GraphCompileReason(text, _summaries(stack))  # notes itself in graph_break_reasons

    def _log_break(self, text: str, stack: _policy.Stack) -> None:
        row = _words.users_row(stack)
        place = f"{row[0]}:{row[1]}" if row else "an unknown place"
        if _is_logged(stack) and not private.config.verbose:
            _logs.breaks_log.debug(
                "Graph break (user stack suppressed due to duplicate graph break) in user code at "
                "%s",
                place,
            )
            return
        _logs.breaks_log.debug(
            "Graph break in user code at %s\nGraph Break Reason: %s\nUser code traceback:\n%s",
            place,
            text,
            _words.excerpt(stack),
        )

    def made(self, code: CodeType, offset: int, graph: Any, compiler: Any, number: int) -> None:
        super().made(code, offset, graph, compiler, number)
        private.counters["frames"]["ok"] += 1
        calls = sum("call" in node.op for node in graph.nodes) if graph is not None else 0
        if calls > 0:
            private.counters["stats"]["calls_captured"] += calls
            private.counters["stats"]["unique_graphs"] += 1
        if self.replayed and calls > 0:
            with _callbacks(str(next(_ids))):  # backends run within them by themselves
                pass
        if self.export_fn is not None:
            self.export_fn(private.guards_of(compiler.entry(number)["guards"]))
        compile = _logs.of(code, offset)
        if compile is not None:
            _logs.made(compile, graph, compiler, number, self.replayed)

    def failed(self, code: CodeType, offset: int, error: Exception, where: str) -> bool:
        compile = _logs.of(code, offset)
        if compile is not None:
            _logs.failed(compile, error)
        _record_failure(error, offset)
        return super().failed(code, offset, error, where)


def _record_failure(error: Exception, offset: int) -> None:
    """`torch._dynamo.config.replay_record_enabled`. What cannot be written hides no error."""
    if not private.config.replay_record_enabled:
        return
    try:
        folder = os.path.join(private.debug_folder(), "records")
        path = _record.record(folder, error, offset)
        log.warning("The call that failed is in %s: stator.replay makes it again.", path)
    except Exception:
        log.exception("The call that failed could not be recorded")


def _skip(code: CodeType, why: str) -> None:
    log.debug("skipping: %s (reason: %s, file: %s)", code.co_name, why, code.co_filename)


# -- compilers: one for each backend with its settings, as stock Dynamo's caches are --

_compilers: list[tuple[Any, tuple[Any, ...], Any]] = []  # backend, settings, compiler
_MOST_COMPILERS = 64  # a backend may be made for each compile: the oldest is shared no more


def _same_backend(a: Any, b: Any) -> bool:
    wrappers = (str, *private.compile_wrappers)
    return a is b or (type(a) is type(b) and isinstance(a, wrappers) and a == b)


def _shared_compiler(backend: Any, policy: TorchPolicy) -> Any:
    settings = policy.fullgraph, policy.limit, policy.dynamic
    for known, with_settings, compiler in _compilers:
        if with_settings == settings and _same_backend(known, backend):
            return compiler
    compiler = _compile.make_compiler(backend, policy)
    _compilers.append((backend, settings, compiler))
    del _compilers[:-_MOST_COMPILERS]
    return compiler


def _remember(backend: Any) -> None:
    """For torch._dynamo.reset(), which calls their own: one for all that are the same."""
    if isinstance(backend, private.compile_wrappers[1]):
        backend = backend.compiler_fn
    known = private.cached_backends
    if hasattr(backend, "reset") and not any(_same_backend(backend, b) for b in known.values()):
        known[id(backend)] = backend


def _plain_name(backend: Any) -> Any:
    """ "eager" for what torch.compile makes of it: the engine replays such graphs itself."""
    plain = isinstance(backend, private.compile_wrappers[1]) and not backend.kwargs
    return "eager" if plain and backend.compiler_name == "eager" else backend


# -- what `optimize` returns --


class OptimizeContext(_compile.Context):
    """As torch's class of that name: called with what is to be compiled."""

    def __init__(
        self,
        backend: Any = "inductor",
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        error_on_graph_break: bool | None = None,
        recompile_limit: int | None = None,
        isolate_recompiles: bool = False,
        guard_fail_fn: Callable[[private.GuardFail], None] | None = None,
        guard_export_fn: Callable[[Any], None] | None = None,
    ) -> None:
        self._settings = {
            "backend": backend,
            "fullgraph": fullgraph,
            "dynamic": dynamic,
            "error_on_graph_break": error_on_graph_break,
            "recompile_limit": recompile_limit,
            "isolate_recompiles": isolate_recompiles,
        }
        self.fullgraph = fullgraph
        self.error_on_graph_break = error_on_graph_break
        self.compiler_config = (
            backend.get_compiler_config() if hasattr(backend, "get_compiler_config") else None
        )
        policy = TorchPolicy(fullgraph, recompile_limit, guard_fail_fn, guard_export_fn, dynamic)
        engines = _plain_name(backend)
        policy.replayed = engines == "eager"
        alone = isolate_recompiles or guard_fail_fn or guard_export_fn
        make = _compile.make_compiler if alone else _shared_compiler
        self.compiler = make(engines, policy)
        if not isinstance(backend, str):
            _remember(backend)

    def get_compiler_config(self) -> Any:
        return self.compiler_config

    def wrap(self, target: Any) -> Any:
        compiled = super().wrap(target)
        if self.error_on_graph_break is not None:
            compiled = _with_breaks_as(self.error_on_graph_break, compiled)
        labels = getattr(compiled, "__func__", compiled).__dict__
        labels["get_compiler_config"] = self.get_compiler_config
        labels["_is_torch_compile"] = True
        if getattr(private.config, "enable_aot_compile", False):
            labels["aot_compile"] = functools.partial(self._aot_compile, target)
        return compiled

    def _aot_compile(self, target: Any, example_inputs: Any) -> Any:
        """What can be saved is made by torch's own tracer."""
        _dims.say_once(
            "aot_compile",
            "aot_compile makes a function that can be saved, and is done by torch's own Dynamo.",
        )
        with _by_torch():
            theirs: Any = private.optimize(
                self._settings["backend"],
                nopython=self.fullgraph,
                dynamic=self._settings["dynamic"],
            )(target)
        return theirs.aot_compile(example_inputs)

    def __call__(self, target: Any) -> Any:
        target = _compile.innermost(target)
        if isinstance(target, type):
            return self._compile_class(target)
        if not callable(target):
            raise AssertionError(
                f"A callable function is expected, but {type(target)} is provided."
            )
        made = super().__call__(target)
        if isinstance(made, private.OptimizedModule):
            made.get_compiler_config = self.get_compiler_config
            made._is_torch_compile = True
        return made

    def _compile_class(self, cls: Any) -> Any:
        cls.__call__ = self(cls.__call__)
        if issubclass(cls, torch.nn.Module):
            cls._call_impl = self(cls._call_impl)
        return cls

    def __enter__(self) -> None:
        if private.config.raise_on_ctx_manager_usage:
            raise RuntimeError(
                "torch._dynamo.optimize(...) is used with a context manager; use it as a "
                "decorator, or call it with the function."
            )

    def __exit__(self, *raised: object) -> None:
        pass


def _with_breaks_as(value: bool, compiled: Any) -> Any:
    """Calls with `error_on_graph_break` set for their time."""

    def call(*args: Any, **kwargs: Any) -> Any:
        before = private.get_strict_breaks()
        private.set_strict_breaks(value)
        try:
            return compiled(*args, **kwargs)
        finally:
            private.set_strict_breaks(before)

    call.__dict__.update(getattr(compiled, "__func__", compiled).__dict__)
    call._torchdynamo_wrapper_id = id(call)  # type: ignore[attr-defined]
    return call


# -- what takes the place of torch's functions --


def _is_off(disable: bool) -> bool:
    return disable or os.environ.get("TORCHDYNAMO_DISABLE", "") == "1"


def _refuse(function: str, options: dict[str, Any]) -> None:
    """Options that Stator does not know: none is ignored, unless it says nothing."""
    known = inspect.signature(_originals[function]).parameters
    for name, value in options.items():
        default = known[name].default if name in known else None
        if value is not None and value is not default:
            raise NotImplementedError(
                f"Stator does not support the option {name}={value!r} of torch.compile: leave it "
                "out, or call stator.uninstall() before"
            )


_thread = threading.local()  # torchs: what is compiled now is torch's own affair


@contextlib.contextmanager
def _by_torch() -> Iterator[None]:
    _thread.torchs = True
    try:
        yield
    finally:
        _thread.torchs = False


def _is_torchs() -> bool:
    return getattr(_thread, "torchs", False)


_EFFECTS = "a body that changes what is outside of it"  # as src/torch/higher.c says it


def _is_refused(operator: Any, why: str) -> bool:
    known = operator.__name__ in private.operator_names
    return known and _EFFECTS in why and torch.is_grad_enabled()


def _refusal(operator: Any, why: str) -> Exception:
    """Torch's error for a body whose effects would happen another number of times."""
    name = private.operator_names[operator.__name__]
    error: Exception = private.exc.UncapturedHigherOrderOpError(
        f"{why}\n  Higher Order Operator: {name}"
    )
    return error


def _try_ours(ours: Callable[[], Any], theirs: Callable[[], Any]) -> Callable[[Any], Any]:
    """An operator with bodies compiles itself where a program calls it uncompiled. What Stator does
    not trace, torch's own Dynamo compiles, or raises torch's error for."""

    def compile(operator: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if private.is_watched():  # a mode is to see what the operator does
                return operator(*args, **kwargs)
            if not _policy.other_tracer():
                try:
                    return ours()(operator)(*args, **kwargs)
                except _policy.Unsupported as error:
                    why = str(error).partition("\n")[0]
                    if _is_refused(operator, why):
                        raise _refusal(operator, why) from error
                    log.info("torch's own Dynamo compiles %s: %s", operator.__name__, why)
            with _by_torch():
                compiled = theirs()(operator)
            return compiled(*args, **kwargs)

        return call

    return compile


def _unless_it_compiles_itself(function: str) -> Callable[[Any], Any]:
    """A compile that an operator with bodies makes of itself may be torch's own."""

    def decorate(ours: Any) -> Any:
        @functools.wraps(ours)
        def choose(*args: Any, **kwargs: Any) -> Any:
            mine = functools.partial(ours, *args, **kwargs)
            theirs = functools.partial(_originals[function], *args, **kwargs)
            if _is_torchs():
                return theirs()
            return _try_ours(mine, theirs) if private.compiles_itself() else mine()

        return choose

    return decorate


@_unless_it_compiles_itself("optimize")
def _optimize(
    rebuild_ctx: Callable[[], Any],
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    error_on_graph_break: bool | None = None,
    guard_export_fn: Callable[[Any], None] | None = None,
    guard_fail_fn: Callable[[private.GuardFail], None] | None = None,
    guard_filter_fn: Any = None,
    disable: bool = False,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    **others: Any,
) -> Any:
    private.check_if_dynamo_supported()
    if _is_off(disable):
        return private.NullDecorator()
    _refuse("optimize", others)
    if guard_filter_fn is not None:
        _dims.say_once("guard_filter_fn", _policy.NO_FILTER)
    return OptimizeContext(
        backend,
        fullgraph=nopython,
        dynamic=dynamic,
        error_on_graph_break=None if nopython else error_on_graph_break,
        recompile_limit=recompile_limit,
        isolate_recompiles=isolate_recompiles,
        guard_fail_fn=guard_fail_fn,
        guard_export_fn=guard_export_fn,
    )


def _optimize_whole(
    backend: Any,
    *,
    hooks: Any = None,
    dynamic: bool | None = None,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    **others: Any,
) -> Any:
    _refuse("optimize_assert", others)
    return OptimizeContext(
        "eager" if backend is None else backend,
        fullgraph=True,
        dynamic=dynamic,
        recompile_limit=recompile_limit,
        isolate_recompiles=isolate_recompiles,
        guard_fail_fn=hooks.guard_fail_fn if hooks is not None else None,
        guard_export_fn=hooks.guard_export_fn if hooks is not None else None,
    )


def _optimize_export(
    rebuild_ctx: Callable[[], Any], backend: Any, *, hooks: Any = None, **options: Any
) -> Any:
    """`torch._dynamo.export`. Constraints on sizes are torch's own affair."""

    def theirs(target: Any) -> Any:
        with _by_torch():
            original = _originals["optimize_assert"](
                rebuild_ctx, backend, export=True, hooks=hooks, **options
            )
        return original(target)

    if any(options.values()):
        return theirs
    return _export.exporting(OptimizeContext, theirs, backend, hooks)


@_unless_it_compiles_itself("optimize_assert")
def _optimize_assert(
    rebuild_ctx: Callable[[], Any], backend: Any, *, export: bool = False, **options: Any
) -> Any:
    if export:
        return _optimize_export(rebuild_ctx, backend, **options)
    return _optimize_whole(backend, **options)


def _capture(mod: Any, **wishes: Any) -> Any:
    """`torch.export.export(strict=True)`."""

    def theirs(*args: Any, **options: Any) -> Any:
        captured = _originals["capture"](*args, **options)

        def capture(*given: Any, **named: Any) -> Any:
            with _by_torch():
                return captured(*given, **named)

        return capture

    return _export_strict.capturing(OptimizeContext, theirs, mod, **wishes)


def _reset_guarded_backend_cache() -> None:
    _compilers.clear()
    _logged.clear()
    _logs.forget()
    _guard_failures.clear()
    _compile.reset()
    _originals["reset"]()


def _set_stance(stance: Any) -> Any:
    if _engine.within():
        raise RuntimeError("attempted to set_stance in a torch.compile region")
    _stance.change(stance.stance, stance.backend, stance.skip_guard_eval_unsafe)
    return _originals["set_stance"](stance)


_set_stance._dynamo_forbidden = True  # type: ignore[attr-defined]


def _skip_code(code: CodeType) -> None:
    _engine.skip_code(code)
    _originals["skip_code"](code)


def _replay(filename: Any) -> Any:
    """torch._dynamo.replay; what Stator has not recorded is torch's own."""
    try:
        return _record.replay(filename)
    except ValueError as error:
        if "was not written by Stator" not in str(error):
            raise
        return _originals["replay"](filename)


def _set_guard_hook(hook: Any) -> Any:
    """What torch.compiler.set_enable_guard_collectives calls."""
    if hook is not None:
        _dims.say_once(
            "guard_collectives",
            "set_enable_guard_collectives has no effect: ranks do not tell each other whether an "
            "entry fits, and each compiles when its own guards fail.",
        )
    return _originals["guard_collectives"](hook)


class _GuardFailures(weakref.WeakKeyDictionary[CodeType, list[str]]):
    """In the place of torch's `guard_failures`, which would keep every code object alive."""

    def __getitem__(self, code: CodeType) -> list[str]:
        return self.setdefault(code, [])


_guard_failures = _GuardFailures()

# -- putting them there --

_REPLACEMENTS: dict[str, Any] = {
    "optimize": _optimize,
    "optimize_assert": _optimize_assert,
    "reset": _reset_guarded_backend_cache,
    "set_stance": _set_stance,
    "skip_code": _skip_code,
    "guard_collectives": _set_guard_hook,
    "guard_failures": _guard_failures,
    "replay": _replay,
    "capture": _capture,
}
_originals: dict[str, Any] = {}


def install() -> None:
    """From now on torch compiles with Stator. Twice is once."""
    if _originals:
        return
    _compile._attach()
    for key, (home, name) in private.PATCHED.items():
        _originals[key] = getattr(home, name)
        setattr(home, name, _REPLACEMENTS[key])
    stance = private.stance()
    with contextlib.suppress(RuntimeError):
        _stance.change(stance.stance, stance.backend)


def uninstall() -> None:
    """Torch is as it was. What was compiled with Stator stays so."""
    for key, (home, name) in private.PATCHED.items():
        if key in _originals and getattr(home, name) is _REPLACEMENTS[key]:
            setattr(home, name, _originals[key])
    _originals.clear()
    _stance.change("default")
