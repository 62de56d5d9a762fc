"""What torch's logs, traces and metrics say about each compile, made of what the engine tells.

One `Compile` goes with each trace under `torch.compile`: it has the id that the backend's own lines
have, and the times. Texts are made only for logs that are on.
"""

from __future__ import annotations

import contextlib
import cProfile
import logging
import os
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from stator import _engine, _words
from stator._versions import private

log = logging.getLogger("torch._dynamo.convert_frame")
sizes_log = logging.getLogger("torch.fx.experimental.symbolic_shapes")


def _artifact(module: str, name: str) -> Any:
    return private.getArtifactLogger(f"torch._dynamo.{module}", name)


graph_log = _artifact("output_graph", "graph")
code_log = _artifact("output_graph", "graph_code")
graph_sizes_log = _artifact("output_graph", "graph_sizes")
call_log = _artifact("symbolic_convert", "trace_call")
source_log = _artifact("symbolic_convert", "trace_source")
instructions_log = _artifact("symbolic_convert", "trace_bytecode")
breaks_log = _artifact("symbolic_convert", "graph_breaks")
effects_log = _artifact("side_effects", "side_effects")
bytecode_log = _artifact("convert_frame", "bytecode")
guards_log = _artifact("guards", "guards")
verbose_guards_log = _artifact("guards", "verbose_guards")
recompiles_log = _artifact("guards", "recompiles")
recompiles_verbose_log = _artifact("guards", "recompiles_verbose")


def is_on(logger: logging.Logger) -> bool:
    return logger.isEnabledFor(logging.DEBUG)


def is_traced() -> bool:
    """Whether records for machines are written (`TORCH_TRACE`). torch's own handler is there until
    the first record; without a folder it writes nothing."""
    return any(getattr(each, "root_dir", "") is not None for each in private.trace_log.handlers)


# -- ids --

_frames: weakref.WeakKeyDictionary[CodeType, dict[int, list[int]]] = weakref.WeakKeyDictionary()
_next_frame = 0


def _new_id(code: CodeType, offset: int) -> Any:
    """[frame/compile]: a place keeps its number, and its compiles are counted."""
    global _next_frame
    places = _frames.setdefault(code, {})
    if offset not in places:
        places[offset] = [_next_frame, 0]
        _next_frame += 1
    frame, compiles = places[offset]
    places[offset][1] += 1
    return private.CompileId(frame_id=frame, frame_compile_id=compiles)


def forget() -> None:
    """Frames are numbered from 0 again."""
    global _next_frame
    _frames.clear()
    _next_frame = 0


# -- one compile --

_MOST_OPEN = 16  # compiles of a thread that began and did not end, for example because of errors


class Compile:
    """One trace and what becomes of it."""

    def __init__(self, code: CodeType, offset: int, reasons: list[str]) -> None:
        self.code, self.offset, self.reasons = code, offset, reasons
        self.id = _new_id(code, offset)
        self.start = time.time_ns()
        folder = os.environ.get("TORCH_COMPILE_DEBUG", "0") == "1"
        self.debug_folder = private.setup_debug_folder() if folder else None
        self.traced = 0  # when the backend began
        self.backend_time = 0
        self.of_backend: dict[str, Any] = {}  # what it noted about itself

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Lines logged within have the id."""
        with private.compile_context(private.CompileContext(self.id)):
            yield

    @contextlib.contextmanager
    def backend(self, module: Any) -> Iterator[None]:
        """The backend runs within."""
        self.traced = time.time_ns()
        log_graph(module)
        try:
            with private.noting_metrics(self.of_backend), _profiled(self.id):
                yield
        finally:
            self.backend_time += time.time_ns() - self.traced


_open = threading.local()


def _compiles() -> list[Compile]:
    if not hasattr(_open, "compiles"):
        _open.compiles = []
    found: list[Compile] = _open.compiles
    return found


def begin(code: CodeType, offset: int, reasons: list[str]) -> Compile:
    compiles = _compiles()
    for old in compiles[:-_MOST_OPEN]:
        end(old)
    made = Compile(code, offset, reasons)
    compiles.append(made)
    return made


def current() -> Compile | None:
    compiles = _compiles()
    return compiles[-1] if compiles else None


@contextlib.contextmanager
def backend(module: Any) -> Iterator[None]:
    """A backend runs within, for the current compile if there is one."""
    compile = current()
    if compile is None:
        log_graph(module)
        yield
    else:
        with compile.backend(module):
            yield


def named(compile: Compile | None) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if compile is None else compile.named()


def of(code: CodeType, offset: int) -> Compile | None:
    """The latest compile of this place that has not ended. Later ones, which it may have led to,
    have ended."""
    compiles = _compiles()
    for i in range(len(compiles) - 1, -1, -1):
        if compiles[i].code is code and compiles[i].offset == offset:
            del compiles[i + 1 :]
            return compiles[i]
    return None


def end(compile: Compile) -> None:
    compiles = _compiles()
    if compile in compiles:
        compiles.remove(compile)
    if compile.debug_folder is not None:
        compile.debug_folder.close()


# -- profiles --


@contextlib.contextmanager
def _profiled(compile_id: Any) -> Iterator[None]:
    """`torch._dynamo.config.cprofile`: a profile of the backend. Traces run in C, and not at all
    under a profiler."""
    if not private.config.cprofile:
        yield
        return
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        name = f"backend_{compile_id}".replace("/", "_") + ".profile"
        path = os.path.join(tempfile.gettempdir(), name)
        profile.dump_stats(path)
        log.warning("Raw profile of the backend at %s (traces are made in C, and not in it)", path)


# -- the beginning --


def _calls(code: CodeType) -> list[traceback.FrameSummary]:
    rows = [
        traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        for frame in _words.callers()
        if not frame.f_code.co_filename.startswith(_words.HERE)
    ]
    own = traceback.FrameSummary(code.co_filename, code.co_firstlineno, code.co_name)
    return [*reversed(rows), own]


def started(compile: Compile, describe: Callable[[], str]) -> None:
    """The policy has allowed a trace. `describe`: why no older entry fits."""
    code = _words.users_code(compile.code)
    where = f"{code.co_name} {code.co_filename}:{code.co_firstlineno}"
    if is_on(log) or sizes_log.isEnabledFor(logging.INFO):
        with compile.named():
            log.debug("torchdynamo start compiling %s (by Stator, from instruction %s)", where,
                      compile.offset)  # fmt: skip
            for reason in compile.reasons:
                if "from now on" in reason:
                    sizes_log.info("automatic dynamic: %s", reason)
    loggers = [each for each in (recompiles_log, recompiles_verbose_log) if is_on(each)]
    if compile.reasons and loggers:
        with compile.named():
            for logger in loggers:
                logger.debug("%s", describe())
    if is_traced():
        with compile.named():
            stack = private.structured_stack(_calls(code))
            private.trace_structured("dynamo_start", lambda: {"stack": stack})
            if compile.reasons:
                _write("recompile_reasons", "json", lambda: compile.reasons)


def _write(name: str, encoding: str, payload: Callable[[], Any]) -> None:
    private.trace_structured(
        "artifact", lambda: {"name": name, "encoding": encoding}, payload_fn=payload
    )


def broke(compile: Compile, text: str, stack: Any) -> None:
    if is_traced():
        with compile.named():
            _write(
                "dynamo_graph_break_reason", "string", lambda: f"{text}\n{_words.excerpt(stack)}"
            )


# -- the graph --


def _shape(node: Any) -> str | None:
    value = node.meta.get("example_value")
    if value is None or not hasattr(value, "shape"):
        return None
    return f"{node.name}: {tuple(value.shape)}"


def _is_pure(node: Any) -> bool:
    """Whether it only computes: it enters no level of a transform, and sets nothing of torch's."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "_")
    return "call" not in node.op or not name.startswith(("_", "set_"))


def _with_values(module: Any) -> Any:
    """The same graph for reading, where each node has an example of its value. What the backend
    gets stays as it is; what does more than to compute is not run."""
    nodes = list(module.graph.nodes)
    bodies = any(True for _ in module.children()) or not all(map(_is_pure, nodes))
    inputs = [node.meta.get("example_value") for node in nodes if node.op == "placeholder"]
    known = all("example_value" in node.meta for node in nodes if "call" in node.op)
    if known or bodies or any(value is None for value in inputs):
        return module
    shown = private.copied(module)
    with contextlib.suppress(Exception):  # sizes are said where they are known
        private.run_on_fakes(shown, inputs)
    return shown


def _table(module: Any) -> str:
    rows = [("opcode", "name", "target", "args", "kwargs")]
    rows += [
        (node.op, node.name, str(node.target), str(node.args), str(node.kwargs))
        for node in module.graph.nodes
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, (*widths, 0), strict=True))
             for row in rows]  # fmt: skip
    lines.insert(1, "  ".join("-" * width for width in (*widths, 6)))
    return "\n".join(line.rstrip() for line in lines)


def _sizes(module: Any) -> dict[str, list[Any]]:
    found = {}
    for node in module.graph.nodes:
        value = node.meta.get("example_value")
        if hasattr(value, "shape"):
            found[node.name] = [
                size if isinstance(size, int) else str(size) for size in value.shape
            ]
    return found


def log_graph(module: Any) -> None:
    """A graph on its way to a backend, or to its replay."""
    on = is_on(code_log), is_on(graph_log), is_on(graph_sizes_log), is_traced()
    if not any(on):
        return
    module = _with_values(module)
    name = "===== Graph of " + str(private.CompileContext.current_compile_id()) + " ====="
    text = module.print_readable(print_output=False, include_stride=True, include_device=True)
    if on[0]:
        code_log.debug("TRACED GRAPH\n %s\n %s", name, text)
    if on[1]:
        graph_log.debug("TRACED GRAPH\n %s\n%s", name, _table(module))
    if on[2]:
        lines = filter(None, map(_shape, module.graph.nodes))
        graph_sizes_log.debug("TRACED GRAPH TENSOR SIZES\n%s\n%s", name, "\n".join(lines))
    if on[3]:
        private.trace_structured(
            "dynamo_output_graph", lambda: {"sizes": _sizes(module)}, payload_fn=lambda: text
        )


# -- the entry --

_NO_BYTECODE = "(Stator makes no bytecode. The plan is what a call runs when the guards pass.)"


def _log_operations(graph: Any) -> None:
    lines: dict[tuple[str, int, str], list[str]] = {}
    for node in graph.nodes if graph is not None else ():
        if not node.op.startswith("call_") or not node.stack:
            continue
        row = tuple(node.stack[-1])
        lines.setdefault(row, []).append(node.name)
        if is_on(call_log):
            call_log.debug("TRACE FX call %s from %s:%s in %s\n%s", node.name, *row[:2], row[2],
                           _words.excerpt([row]).partition("\n")[2])  # fmt: skip
    if is_on(source_log):
        for file, line, name in lines:
            source_log.debug("TRACE starts_line %s:%s in %s\n%s", file, line, name,
                             _words.excerpt([(file, line, name)]).partition("\n")[2])  # fmt: skip


def _guard_lines(entry: dict[str, Any]) -> str:
    return "\n".join(
        f"| {text}" + (f"  # {file}:{line}" if file else "") for text, file, line in entry["guards"]
    )


def _log_entry(entry: dict[str, Any], code: CodeType) -> None:
    where = f"{code.co_name} {code.co_filename} line {code.co_firstlineno}"
    if is_on(guards_log):
        guards_log.debug("GUARDS:\n%s", _guard_lines(entry))
    if is_on(verbose_guards_log):
        verbose_guards_log.debug("GUARDS:\n%s", _guard_lines(entry))
    if is_on(instructions_log):
        instructions_log.debug(
            "TRACE of %s: the canonical instructions\n%s", where, _engine.dis_text(code, False)
        )
    if is_on(bytecode_log):
        bytecode_log.debug("ORIGINAL BYTECODE %s\n%s", where, _engine.dis_text(code, False))
        bytecode_log.debug("PLAN %s %s\n%s", where, _NO_BYTECODE, entry["plan"])
    if is_on(effects_log):
        for write in entry["writes"]:
            effects_log.debug("Mutating an object outside of the compiled function: %s", write)


_ENTRY_LOGS = (guards_log, verbose_guards_log, instructions_log, bytecode_log, effects_log)


def _trace_entry(compile: Compile, entry: dict[str, Any]) -> None:
    private.trace_structured(
        "dynamo_guards",
        payload_fn=lambda: [
            {"code": text, "stack": [], "user_stack": _user_stack(file, line)}
            for text, file, line in entry["guards"]
        ],
    )
    private.trace_structured("dynamo_cpp_guards_str", payload_fn=lambda: _guard_lines(entry))
    if entry["writes"]:
        _write("dynamo_side_effects", "string", lambda: "\n".join(map(str, entry["writes"])))
    _write("stator_plan", "string", lambda: f"{_NO_BYTECODE}\n{entry['plan']}")


def _user_stack(file: str | None, line: int) -> Any:
    if file is None:
        return []
    return private.structured_stack([traceback.FrameSummary(file, line, "")])


# -- metrics --


def _seconds(nanoseconds: int) -> float:
    return nanoseconds / 1e9


def _note_times(compile: Compile, now: int) -> None:
    times = private.compilation_time_metrics
    times.setdefault("_compile.compile_inner", []).append(_seconds(now - compile.start))
    if compile.backend_time:
        backend = times.setdefault("OutputGraph.call_user_compiler", [])
        backend.append(_seconds(compile.backend_time))


def _metrics(compile: Compile, now: int) -> dict[str, Any]:
    code = _words.users_code(compile.code)
    return {
        **compile.of_backend,
        "compile_id": str(compile.id),
        "frame_key": str(compile.id.frame_id + 1),
        "co_name": code.co_name,
        "co_filename": code.co_filename,
        "co_firstlineno": code.co_firstlineno,
        "cache_size": compile.id.frame_compile_id,
        "accumulated_cache_size": compile.id.frame_compile_id,
        "start_time": _seconds(compile.start),
        "start_time_us": compile.start // 1000,
        "end_time_us": now // 1000,
        "duration_us": (now - compile.start) // 1000,
        "entire_frame_compile_time_s": _seconds(now - compile.start),
        "backend_compile_time_s": _seconds(compile.backend_time),
        "dynamo_cumulative_compile_time_us": (now - compile.start) // 1000,
        "recompile_reason": compile.reasons[0] if compile.reasons else None,
        "is_forward": True,
        "restart_reasons": set(),
        "dynamo_time_before_restart_s": 0.0,
        "non_compliant_ops": set(),
        "compliant_custom_ops": set(),
    }


def _record(compile: Compile, metrics: dict[str, Any], now: int) -> None:
    _note_times(compile, now)
    made = private.make_metrics(metrics)
    if made is not None:
        private.known_metrics().append(made)
    if is_traced():
        plain = {key: _plain(value) for key, value in metrics.items()}
        with compile.named():
            private.trace_structured("compilation_metrics", lambda: plain)
            _trace_time("entire_frame_compile", compile.start, now, plain)
            if compile.backend_time:
                _trace_time("backend_compile", compile.traced,
                            compile.traced + compile.backend_time, {})  # fmt: skip


def _plain(value: Any) -> Any:
    """What JSON can say."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (set, frozenset, list, tuple)):
        return [_plain(item) for item in value]
    return str(value)


def _trace_time(name: str, start: int, stop: int, metadata: dict[str, Any]) -> None:
    events = private.chromium_events()
    if events is not None:
        events.log_event_start(name, start, {"compile_id": metadata.get("compile_id", "")})
        events.log_event_end(name, stop, {}, start, False)


def made(compile: Compile, graph: Any, compiler: Any, number: int, replayed: bool) -> None:
    """There is an entry."""
    now = time.time_ns()
    calls = graph is not None and graph.operations > 0
    wanted = is_traced() or any(map(is_on, _ENTRY_LOGS))
    entry = compiler.entry(number) if wanted else None
    if wanted or is_on(call_log) or is_on(source_log) or (replayed and calls and _graphs_on()):
        with compile.named():
            if replayed and calls:
                log_graph(_as_module(graph))
            _log_operations(graph)
            if entry is not None:
                _log_entry(entry, compile.code)
            if entry is not None and is_traced():
                _trace_entry(compile, entry)
    metrics = _metrics(compile, now)
    metrics["has_guarded_code"] = True
    metrics["guard_count"] = None if entry is None else len(entry["guards"])
    if graph is not None:
        metrics["graph_op_count"] = sum("call" in node.op for node in graph.nodes)
        metrics["graph_node_count"] = len(graph.nodes) + 1  # the output
        metrics["graph_input_count"] = graph.inputs
    _record(compile, metrics, now)
    end(compile)


def _graphs_on() -> bool:
    return is_on(code_log) or is_on(graph_log) or is_on(graph_sizes_log)


def _as_module(graph: Any) -> Any:
    from stator import _backends

    return _backends.to_fx(graph)


def failed(compile: Compile, error: BaseException, stack: Any = None) -> None:
    """No entry was made: the program gets an error, or runs uncompiled."""
    now = time.time_ns()
    metrics = _metrics(compile, now)
    row = _words.users_row(stack)
    metrics |= {
        "fail_type": type(error).__name__,
        "fail_reason": str(error),
        "fail_user_frame_filename": row[0] if row else compile.code.co_filename,
        "fail_user_frame_lineno": row[1] if row else compile.code.co_firstlineno,
        "has_guarded_code": False,
    }
    if is_traced():
        with compile.named():
            _write("dynamo_error", "string", lambda: str(error))
    _record(compile, metrics, now)
    end(compile)
