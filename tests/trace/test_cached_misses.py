"""A function that functools.lru_cache wraps is called for real where it only computes.

Results, what the caches have counted, and what was written are as in plain Python.
"""

import contextvars
import functools
import gc
import sys

import pytest

import stator

LOG = []
ORDER = []


class Made:
    def __init__(self, k):
        self.k = k


BOX = Made(1)
NUMBER = 1
VARIABLE = contextvars.ContextVar("variable", default=0)


class Base:
    pass


class First(Base):
    pass


def caches():
    """A fresh cache for each program: (programs, functions)."""

    @functools.lru_cache(None)
    def computes(a, b=2):
        return Made(a * b)

    @functools.lru_cache(maxsize=2)
    def few(a):
        return [a]

    @functools.lru_cache(None)
    def writes(a):
        LOG.append(a)
        return a + 1

    @functools.lru_cache(None)
    def raises(a):
        raise KeyError(a)

    @functools.lru_cache(None)
    def reads(a):
        return len(LOG) + a

    @functools.lru_cache(None)
    def nested(a):
        return computes(a).k + 1

    @functools.lru_cache(None)
    def of_made(made):
        return made.k * 2

    @functools.lru_cache(None)
    def attribute(made):
        return made.k

    @functools.lru_cache(None)
    def number(a):
        return NUMBER + a

    @functools.lru_cache(None)
    def variable(a):
        return VARIABLE.get() + a

    @functools.lru_cache(None)
    def free(a):
        return in_cell + a

    @functools.lru_cache(None)
    def handled(a):
        return sys.exc_info()[0]

    @functools.lru_cache(None)
    def fibonacci(n):
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    @functools.lru_cache(None)
    def yields(n):
        yield n
        yield n + 1

    @functools.lru_cache(typed=True)
    def typed(a):
        return type(a)

    in_cell = 1

    def reads_a_new_attribute(n):
        BOX.k = n
        return attribute(BOX)

    def reads_a_new_global(n):
        global NUMBER
        NUMBER = n
        return number(1)

    def reads_a_new_variable(n):
        token = VARIABLE.set(n)
        try:
            return variable(1)
        finally:
            VARIABLE.reset(token)

    def reads_a_new_cell(n):
        nonlocal in_cell
        in_cell = n
        return free(1)

    def handles(n):
        try:
            raise ValueError(n)
        except ValueError:
            return handled(n)

    def lists_of_one_generator(n):
        return list(yields(n)), list(yields(n))

    def clears(n):
        computes(n)
        computes.cache_clear()
        return computes(n).k

    def changes_the_result(n):
        few(n).append(5)
        return list(few(n))

    def made_inside(n):
        k = n * 2

        @functools.lru_cache(None)
        def inside(a):
            return a + k

        return inside(1), inside(1), inside.cache_info()

    def catches(n):
        try:
            return raises(n)
        except KeyError as error:
            return error.args[0]

    def reads_what_was_written(n):
        LOG.append(n)
        return reads(1)

    def reads_behind_another_write(n):
        ORDER.append(n)
        return computes(n).k

    programs = {
        "computes": lambda n: (computes(3).k, computes(n, b=5).k),
        "is one object": lambda n: computes(n) is computes(n),
        "pushes out": lambda n: [few(i)[0] for i in (1, 2, 3, n)],
        "writes": lambda n: writes(n),
        "catches": catches,
        "reads what was written": reads_what_was_written,
        "reads behind another write": reads_behind_another_write,
        "nested": lambda n: nested(n),
        "of an object": lambda n: of_made(computes(n)),
        "changed": lambda n: (computes(n).__dict__.update(k=9), computes(n).k),
        "unhashable": lambda n: computes.__wrapped__(n).k,
        "reads a new attribute": reads_a_new_attribute,
        "reads a new global": reads_a_new_global,
        "reads a new variable": reads_a_new_variable,
        "reads a new cell": reads_a_new_cell,
        "handles": handles,
        "calls itself": lambda n: fibonacci(n + 10),
        "one generator": lists_of_one_generator,
        "typed": lambda n: (typed(1), typed(1.0), typed(True)),
        "equal keys": lambda n: (computes(1).k, computes(True).k, computes(1.0).k),
        "clears": clears,
        "changes the result": changes_the_result,
        "made inside": made_inside,
        "many": lambda n: sum(computes(i).k for i in range(20 * n)),
    }
    functions = (computes, few, writes, raises, reads, nested, of_made, attribute, number, variable,
                 free, handled, fibonacci, yields, typed)  # fmt: skip
    return programs, functions


NAMES = list(caches()[0])


def run(name, compiled):
    programs, functions = caches()
    LOG.clear()
    ORDER.clear()
    BOX.k = 1
    program = stator.compile(programs[name], backend="eager") if compiled else programs[name]
    seen = []
    for n in (2, 2, 3):
        seen.append((program(n), [f.cache_info() for f in functions], list(LOG), list(ORDER)))
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_caches_are_as_in_plain_python(name):
    assert run(name, True) == run(name, False)


@pytest.mark.parametrize("name", ["computes", "is one object", "nested", "of an object"])
def test_a_miss_does_not_break(name):
    programs, _ = caches()
    stator.compile(programs[name], backend="eager", fullgraph=True)(2)


def test_subclasses_are_asked_again():
    program = stator.compile(
        lambda: [c.__name__ for c in Base.__subclasses__()], backend="eager", fullgraph=True
    )
    assert program() == ["First"]

    class Second(Base):
        pass

    assert program() == ["First", "Second"]
    assert program() == ["First", "Second"]
    del Second
    gc.collect()
    assert program() == ["First"]


def test_nothing_is_called_behind_an_assertion_that_fails():
    torch = pytest.importorskip("torch")

    @functools.lru_cache(None)
    def computes(a):
        return a + 1

    def program(x):
        assert (x > 0).all()
        return x + computes(3)

    with pytest.raises(AssertionError):
        stator.compile(program, backend="eager")(torch.tensor(-1.0))
    assert computes.cache_info()[:2] == (0, 0)


def test_a_tensor_of_a_cached_function_is_traced_where_the_trace_may_not_break():
    torch = pytest.importorskip("torch")

    @functools.lru_cache(None)
    def ones(n):
        return torch.ones(n)

    result = stator.compile(lambda n: ones(n) * 2, backend="eager", fullgraph=True)(3)
    assert torch.equal(result, torch.full((3,), 2.0))
