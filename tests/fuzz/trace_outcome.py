"""Runs a program of trace_programs in two worlds, plain and compiled, call by call, and tells the
first difference."""

import sys
import types
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "diff"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "breaks"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "trace"))

import worlds
from forced import compile_breaking
from trace_programs import CALLS


def has_torch():
    try:
        import torch
    except ImportError:
        return False
    worlds.use_torch()
    return True


class World:
    """One copy of a program, with the function that is called."""

    def __init__(self, code, compile):
        self.module = types.ModuleType("case_module")
        exec(code, self.module.__dict__)
        self.names = self.module.__dict__
        first = self.names["world"]()
        self.arguments = list(first)
        self.names.update(first)
        self.f = compile(self.names["f"])
        self.freezer = worlds.Freezer()

    def change(self, number):
        """Errors of a change are part of the program."""
        try:
            self.names[f"change{number}"]()
        except Exception as exc:
            return type(exc).__name__, str(exc)

    def call(self):
        args = [self.names[name] for name in self.arguments]
        try:
            outcome = "returned", self.f(*args)
        except Exception as exc:
            outcome = "raised", exc
        seen = outcome[0], self.freezer.snapshot((outcome[1], args, self.state()))
        return seen, worlds.find_inner([outcome[1], args])

    def state(self):
        """Globals and class data; the classes themselves are the changes' business."""
        names = self.names
        kept = [names.get(name) for name in ("G", "REG", "TABLE")]
        classes = [value for value in names.values() if type(value) is type]
        return [kept, [vars(c).get("seen") for c in classes]]


def plain(f):
    return f


def broken(every, seed):
    """Compiles so that every trace breaks before a random instruction."""

    def compile(f):
        whole = worlds.keep_empty(f)  # attaches torch, if it is there
        return compile_breaking(whole.__wrapped__, break_every=every, break_seed=seed)

    return compile


def code_of(source, name):
    return compile(source, f"<case {name}>", "exec")


def difference(source, name, compile=worlds.keep_empty, metrics=None):
    """What differs, as text; "" if nothing does. `metrics` collects the compiled function's."""
    code = code_of(source, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = World(code, plain), World(code, compile)
        for number in range(CALLS):
            expected, _ = one.call()
            found, escaped = two.call()
            if escaped:
                return f"call {number}: reachable from outside: {escaped}"
            if expected != found and mutated_before_raising(source, expected, found):
                return ""
            if expected != found:
                return f"call {number}:\n" + diff(expected, found)
            if number < CALLS - 1:
                raised = one.change(number), two.change(number)
                if raised[0] != raised[1]:
                    return f"change {number}: plain {raised[0]}, compiled {raised[1]}"
    if metrics is not None:
        metrics.update(getattr(two.f, "metrics", {}))
    return ""


def mutated_before_raising(source, expected, found):
    """A graph that raised after it changed an input is not run again: its error comes out, and the
    function's other writes do not happen."""
    body = source.split("def f(")[1]
    in_place = any(text in body for text in ("_(", "[0] = ", " += "))
    both = expected[0] == found[0] == "raised"
    return both and in_place and expected[1][1][:3] == found[1][1][:3]


def diff(expected, found):
    import difflib

    rows = difflib.unified_diff(
        list(worlds.render(expected)),
        list(worlds.render(found)),
        "plain",
        "compiled",
        n=3,
        lineterm="",
    )
    return "\n".join(rows)
