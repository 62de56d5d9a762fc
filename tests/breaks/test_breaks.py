"""Programs with breaks in them, by hand: every call can be seen to do what a plain one does, with the
break at hand, some frames deep, and without one; and what breaks cost."""

import importlib
import types
from pathlib import Path

import pytest
import ticks
from forced import Program, compile_breaking

HERE = Path(__file__).resolve().parent


def load():
    found = {}
    for path in sorted(HERE.glob("broken_*.py")):
        module = importlib.import_module(path.stem)
        for name, value in vars(module).items():
            own = isinstance(value, types.FunctionType) and value.__module__ == path.stem
            if own and not name.startswith("_") and name != "given":
                found[f"{path.stem.removeprefix('broken_')}.{name}"] = value
    return found


PROGRAMS = load()


@pytest.fixture(params=ticks.KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(ticks, "tick", ticks.KINDS[request.param])
    return request.param


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_plain(name, kind):
    found = Program(name, PROGRAMS[name]).differs()
    assert not found, found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_with_random_breaks(name, seed):
    found = Program(name, PROGRAMS[name]).differs(break_every=1 + 3 * seed, break_seed=seed)
    assert not found, found


# -- what breaks cost -------------------------------------------------------------------------------


def many_iterations(n, out):
    for i in range(n):
        if i % 1000 == 0:
            out.append(i)
        ticks.tick(end="")
    return len(out)


def test_a_long_loop_is_flat_and_uses_few_entries(monkeypatch):
    monkeypatch.setattr(ticks, "tick", print)
    f = compile_breaking(many_iterations)
    assert f(100_000, []) == 100
    entries = f.metrics["entries"]
    assert entries < 30
    assert f(1000, []) == 1


def endless(it):
    total = 0
    for x in it:
        total += 1
        print(end="")
    return total


def test_an_outside_iterator_of_any_length_reuses_entries():
    f = compile_breaking(endless)
    assert f(iter(["a"] * 10)) == 10
    traces = f.metrics["traces"]
    assert f(iter(["a"] * 10)) == 10
    assert f.metrics["traces"] == traces


def nest(depth):
    def innermost(x):
        print(end="")
        return x + 1

    f = innermost
    for _ in range(depth):

        def outer(x, inner=f):
            return inner(x) + 1

        f = outer
    return f


@pytest.mark.parametrize("depth", [0, 1, 10, 50])
def test_a_print_deep_down_costs_no_restart(depth):
    f = compile_breaking(nest(depth))
    assert f(1) == depth + 2
    assert f.metrics["restarts"] == 0
    assert f.metrics["drops"] == []


class Layer:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.forward(x)

    def forward(self, x):
        if self.inner is None:
            print(end="")
            return x
        return self.inner(x) + 1


def test_a_print_ten_objects_deep_costs_no_restart():
    layer = None
    for _ in range(10):
        layer = Layer(layer)
    f = compile_breaking(lambda x: layer(x))
    assert f(1) == 10
    assert f.metrics["restarts"] == 0
    assert f.metrics["drops"] == []


def prints(count):
    lines = "\n".join(f"    print(end='')\n    x += {i}" for i in range(count))
    space = {}
    exec(f"def f(x):\n{lines}\n    return x", space)
    return space["f"]


@pytest.mark.parametrize("count", [0, 1, 5, 20])
def test_n_breaks_cost_n_and_one_traces(count):
    f = compile_breaking(prints(count))
    expected = sum(range(count))
    assert f(0) == expected
    assert f.metrics["traces"] == count + 1
    assert f.metrics["restarts"] == 0
    assert f(0) == expected
    assert f.metrics["traces"] == count + 1
    assert f.metrics["entries"] == count + 1


def test_a_break_names_its_line_and_the_chain_of_calls():
    f = compile_breaking(nest(2))
    f(1)
    (text,) = [row for row in f.metrics["breaks"] if "print" in row]
    first, *rest = text.splitlines()
    assert "innermost" in first and "[PRINT]" in first
    assert sum("calls " in row for row in rest) == 2
