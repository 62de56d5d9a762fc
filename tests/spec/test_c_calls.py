# ruff: noqa: E402
"""Lines C1 to C15: what a call in a trace does."""

import collections
import functools
import types
import typing

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import exc

import stator
from tests.spec.helpers import Recorder, assert_same, both, breaks, check, missing, outcome, value

# -- C1 to C3 --


@both
def test_C1_python_functions_are_inlined():
    def scale(x, by=2, *, plus=0):
        return x * by + plus

    class Callable:
        def __call__(self, x):
            return scale(x, plus=1)

    def program(x):
        return functools.partial(scale, by=3)(x) + Callable()(x) + (lambda v: v)(x)

    backend = check(program, value())
    assert len(backend.operations) >= 5


WRONG = [lambda f, x: f(), lambda f, x: f(x, 1, 2), lambda f, x: f(x, y=1), lambda f, x: f(x, a=1)]


@pytest.mark.parametrize("call", WRONG, ids=["none", "many", "unknown", "twice"])
def test_C1_wrong_arguments_are_pythons_error(call):
    def named(a, b=1):
        return a

    def program(x):
        return call(named, x)

    want = outcome(program, (value(),))
    assert type(want) is TypeError and "named" in str(want)
    assert_same(outcome(torch.compile(program, backend="eager"), (value(),)), want)

    def caught(x):
        try:
            return call(named, x)
        except TypeError as error:
            return x + 1, str(error)

    check(caught, value())


@torch.compiler.disable(reason="slow on purpose")
def disabled_one(x):
    return x * 3


@both
def test_C2_a_disabled_function_breaks_and_is_named():
    def program(x):
        return disabled_one(x + 1) + 1

    backend = check(program, value(), whole=False)
    assert len(backend.graphs) == 2
    with pytest.raises(exc.Unsupported) as raised:
        torch.compile(program, backend=Recorder(), fullgraph=True)(value())
    for word in ("disabled_one", "slow on purpose"):
        assert word in str(raised.value)


def test_C2_the_file_is_named_too():
    with pytest.raises(stator.Unsupported, match=r"test_c_calls\.py"):
        torch.compile(disabled_caller, backend=Recorder(), fullgraph=True)(value())


def disabled_caller(x):
    return disabled_one(x)


@both
def test_C2_a_function_that_is_not_for_graphs_breaks():
    torch._dynamo.disallow_in_graph(torch.sub)
    try:
        backend = check(lambda x: torch.sub(x + 1, 1) + 1, value(), whole=False)
    finally:
        torch._dynamo.allow_in_graph(torch.sub)
    assert len(backend.graphs) == 2


@both
def test_C2_a_forbidden_callable_is_an_assertion():
    @torch._dynamo.forbid_in_graph
    def never(x):
        return x

    with pytest.raises(AssertionError, match="forbidden"):
        torch.compile(lambda x: never(x + 1), backend=Recorder(), fullgraph=True)(value())


def _inner(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


def _outer(x):
    return _inner(x + 1) * 3


def test_C3_a_break_in_an_inlined_function_splits_there():
    # Stock breaks at the root's call and compiles the callee anew: one graph more for each frame.
    backend = check(_outer, value(), whole=False)
    names = [[n.name for n in g.graph.nodes if n.op == "call_function"] for g in backend.graphs]
    assert [len(row) for row in names] == [2, 2]


@both
def test_C3_its_result_is_right():
    check(_outer, value(), whole=False)


# -- C4 --


class Keeps:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setitem__(self, key, item):
        self.log.append((key, item + 1))

    def __setattr__(self, name, item):
        self.log.append(name)
        object.__setattr__(self, name, item)

    def __delattr__(self, name):
        self.log.append(f"del {name}")


class Dict(dict):
    def __setitem__(self, key, item):
        super().__setitem__(key.upper(), item)


@both
def test_C4_setters_of_user_objects_are_inlined():
    def program(x, kept):
        kept["k"] = x
        kept.attribute = x * 2
        return kept.attribute

    check(program, value(), Keeps())


def test_C4_setters_of_subclasses_of_dict():
    def program(x, d):
        d["k"] = x + 1
        del d["OLD"]
        return d

    check(program, value(), Dict(OLD=1))


# -- C5, C6 --


def _pairs(x, log):
    log.append("begun")
    for i in range(3):
        sent = yield x + i
        log.append(sent)
    return "end"


@both
def test_C5_a_generator_used_in_a_trace():
    def program(x, log):
        total = 0
        for item in _pairs(x, log):
            total = total + item
        return total, list(_pairs(x, log)), dict(zip("ab", _pairs(x, [])))

    check(program, value(), [])


def test_C5_a_generator_is_not_run_ahead():
    def program(x, log):
        made = _pairs(x, log)
        log.append("made")
        first = next(made)
        log.append("first")
        return first

    check(program, value(), [])


def test_C5_a_generator_outlives_a_break_and_the_call():
    def program(x, log):
        made = _pairs(x, log)
        first = next(made)
        torch._dynamo.graph_break()
        return first + next(made), made

    log = []
    got, made = torch.compile(program, backend="eager")(value(), log)
    assert_same(got, value() + value() + 1)
    assert_same(list(made), [value() + 2])
    assert log == ["begun", None, None, None]


def test_C6_delegation_send_throw_close():
    def inner(x):
        try:
            got = yield x
            yield x + got
        except KeyError:
            yield x - 1
        return x * 2

    def outer(x):
        result = yield from inner(x)
        yield result

    def program(x):
        first = outer(x)
        sent = next(first), first.send(5), next(first)
        second = outer(x)
        thrown = next(second), second.throw(KeyError()), next(second)
        second.close()
        return sent, thrown, list(second)

    check(program, value())


@both
def test_C6_yield_from_an_iterator():
    def walk(x):
        yield from [x, x + 1]
        yield from iter((x * 2,))

    check(lambda x: list(walk(x)), value())


# -- C7 to C9 --


@both
def test_C7_functions_made_in_the_trace_are_called():
    def program(x):
        offset = 2

        def made(a, b=x, *, c=3) -> int:
            return a + b + c + offset

        return made(x), made(x, 1, c=1), made.__name__

    check(program, value())


def test_C7_and_returned():
    def program(x):
        offset = x + 1

        def made(a: int, b=2, *, c=3) -> str:
            "text"
            return offset + a + b + c

        return made

    want, got = program(value()), torch.compile(program, backend="eager", fullgraph=True)(value())
    assert type(got) is types.FunctionType
    for name in (
        "__name__",
        "__qualname__",
        "__doc__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
        "__module__",
    ):
        assert getattr(got, name) == getattr(want, name), name
    assert got.__code__ is want.__code__
    assert_same(got(1, c=5), want(1, c=5))


@both
def test_C8_cells_shared_between_frames():
    def make():
        total = 0

        def add(n):
            nonlocal total
            total += n

        def program(x):
            add(2)
            add(3)
            return x + total

        return program

    eager, compiled = make(), make()
    fast = torch.compile(compiled, backend=Recorder(), dynamic=False)
    for _ in range(3):
        assert_same(fast(value()), eager(value()))


def test_C8_two_writers_of_one_cell():
    def make():
        total = 0

        def up():
            nonlocal total
            total = total + 1
            return lambda: total

        def down():
            nonlocal total
            total = total - 10

        def program(x):
            read = up()
            down()
            up()
            return x + read(), total

        return program

    eager, fast = make(), torch.compile(make(), backend="eager", fullgraph=True)
    for _ in range(3):
        assert_same(fast(value()), eager(value()))


def _other_module(name):
    space = {"__name__": name, "count": 0} if name else {"count": 0}
    exec("def bump(x):\n  global count\n  count += 1\n  return x + count", space)
    return space


@pytest.mark.parametrize("name", ["spec_other", "<torch_package_0>.m", None])
def test_C9_globals_of_another_module(name):
    def make(space):
        bump = space["bump"]

        def program(x):
            first = bump(x)
            return first + bump(x)

        return program

    one, two = _other_module(name), _other_module(name)
    eager, fast = make(one), torch.compile(make(two), backend="eager", fullgraph=True)
    for _ in range(2):
        assert_same(fast(value()), eager(value()))
    assert one["count"] == two["count"] == 4


# -- C10 --


@both
def test_C10_imports():
    def program(x):
        import math
        import os.path
        import xml.dom as dom
        from collections import OrderedDict as ordered

        return x + math.pi, os.path.sep, dom.__name__, ordered.__name__

    check(program, value())


def test_C10_relative_imports(tmp_path, monkeypatch):
    package = tmp_path / "spec_package"
    package.mkdir()
    (package / "__init__.py").write_text("level = 1\n")
    (package / "leaf.py").write_text("number = 7\n")
    (package / "main.py").write_text(
        "def f(x):\n"
        "    from . import leaf, level\n"
        "    from .leaf import number\n"
        "    return x + number + leaf.number + level\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import spec_package.main

    check(spec_package.main.f, value())


def test_C10_a_module_that_is_not_there():
    def program(x):
        try:
            import no_such_module_at_all
        except ImportError as error:
            return x + 1, error.name

    check(program, value(), whole=False)


# -- C11 --


@both
def test_C11_stars():
    def take(*args, **kwargs):
        return args, kwargs

    def program(x, items, names):
        return take(*items, x, *range(2), **names, z=x), take(*(x + i for i in (1, 2)))

    check(program, value(), [1, 2], {"a": 1})


@both
def test_C11_star_of_one_size():
    check(lambda x, size: x.view(*size).view(size), value(4), (2, 2))
    check(lambda x: x.view(*x.shape, 1).sum(*(0,)), value(4))


@pytest.mark.parametrize("names", [{1: 2}, {"x": 1}, 3], ids=str)
def test_C11_what_python_refuses(names):
    def take(x, **kwargs):
        return x

    check(lambda x, names: take(x, **names), value(), names, whole=False)


# -- C12 --


@both
def test_C12_wrappers_are_seen_through():
    @functools.wraps(abs)
    def wrapped(x):
        return x + 1

    @functools.lru_cache
    def table(n):
        return n * 2

    table(1)
    compiled = torch.compile(wrapped, backend=Recorder())
    backend = check(lambda x: compiled(x) + table(1), value())
    assert len(backend.operations) == 2


@both
def test_C12_named_tuples_and_typing():
    def program(x):
        found = torch.max(x, 0)
        generic = typing.cast(typing.Optional[int], 3)
        return found.values + found.indices, generic, collections.namedtuple

    check(program, value())


class Sub(torch.Tensor):
    pass


class Duck:
    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = [a.tensor if isinstance(a, Duck) else a for a in args]
        return Duck(function(*plain, **(kwargs or {})))


def _made(make):
    return make(torch.ones(3))


OTHERS = [lambda t: t.as_subclass(Sub), Duck]


@both
@pytest.mark.parametrize("make", OTHERS, ids=["subclass", "duck"])
def test_C12_tensor_subclasses_give_the_right_result(make):
    fast = torch.compile(lambda x: torch.add(x, 1), backend=Recorder())
    got = fast(_made(make))
    assert type(got) is type(_made(make))
    assert_same(
        getattr(got, "tensor", got),
        getattr(torch.add(_made(make), 1), "tensor", torch.add(_made(make), 1)),
    )


@pytest.mark.parametrize("make", OTHERS, ids=["subclass", "duck"])
def test_C12_tensor_subclasses_are_traced(make):
    backend = Recorder()
    torch.compile(lambda x: torch.add(x, 1), backend=backend, fullgraph=True)(_made(make))
    assert len(backend.graphs) == 1


# -- C13, C14 --


@both
def test_C13_in_over_constants():
    def program(x, n):
        return n in (1, 2), [x + 1] if 3 in [n, 3] else x

    check(program, value(), 2)


def test_C13_in_over_tensors():
    check(lambda x: (x in [x], x in (None, x)), value(1))

    def program(x, y):
        return x in [y], y + 1

    for other in (value(1), value(1) + 1):
        check(program, value(1), other, whole=False)


@both
def test_C14_tensors_and_modules_as_keys():
    module = torch.nn.Linear(1, 1)

    def program(x, y):
        table = {x: 1, y: 2, module: 3}
        return table[x], table[y], table[module], x + table[y]

    backend = Recorder()
    got = torch.compile(program, backend=backend)(value(), value())
    assert_same(got, (1, 2, 3, value() + 2))


# -- C15 --


@both
def test_C15_strictness_reaches_inlined_frames():
    def inner(x):
        torch._dynamo.graph_break()
        return x + 1

    def strict(x):
        with torch._dynamo.error_on_graph_break(True):
            return inner(x)

    def lax(x):
        with torch._dynamo.error_on_graph_break(False):
            return inner(x)

    with pytest.raises(exc.Unsupported):
        torch.compile(lambda x: strict(x) + 1, backend=Recorder())(value())
    check(lambda x: lax(x) + 1, value(), whole=False)
    assert breaks()
