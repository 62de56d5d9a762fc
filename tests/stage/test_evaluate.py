"""stator.evaluate: what can be called, how deep, and that nothing differs from a call."""

import dataclasses
import enum
import functools
import inspect
import operator
import random
import sys
import threading
import traceback
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

import stator
from stator import _engine, evaluate


@pytest.fixture(autouse=True)
def nothing_stays_hooked():
    assert not _engine.hook_installed()
    yield
    assert not _engine.hook_installed()


def add(a, b=2, *args, c=3, **kwargs):
    return a, b, args, c, kwargs


# -- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("thing", [5, None, "add", [], object(), NotImplemented, add.__code__])
def test_what_cannot_be_called(thing):
    with pytest.raises(TypeError, match=r"evaluate\(\) needs a callable, not '"):
        evaluate(thing)


@pytest.mark.parametrize(
    "thing",
    [len, print, [].append, dict.get, int, object, type, "".__add__, str.join, dict.fromkeys],
    ids=lambda thing: thing.__qualname__,
)
def test_what_has_no_python_code(thing):
    with pytest.raises(TypeError, match=r"evaluate\(\) needs a function with Python code, and"):
        evaluate(thing)


def test_no_argument_at_all():
    with pytest.raises(TypeError, match=r"evaluate\(\) needs a function as its first argument"):
        evaluate()
    with pytest.raises(TypeError, match="first argument"):
        evaluate(fn=add)


def test_objects_that_are_only_nearly_callable():
    class Uncallable:
        __call__ = None

    for thing in (classmethod(add), property(add), types.SimpleNamespace(func=add)):
        with pytest.raises(TypeError, match="needs a callable"):
            evaluate(thing)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        evaluate(Uncallable())


def test_an_object_that_answers_any_question():
    class Yes:
        __call__ = print

        def __getattr__(self, name):
            return Yes()

    assert evaluate(Yes(), end="") is None


@pytest.mark.parametrize(
    "args, kwargs",
    [((), {}), ((1, 2), {"b": 3}), ((1,), {"a": 1}), ((), {"c": 1}), ((), {"b": 1, "x": 2})],
)
def test_wrong_arguments_say_what_a_call_says(args, kwargs):
    with pytest.raises(TypeError) as plain:
        add(*args, **kwargs)
    with pytest.raises(TypeError) as evaluated:
        evaluate(add, *args, **kwargs)
    assert str(evaluated.value) == str(plain.value)


# -- what can be called ---------------------------------------------------------------------


class Adder:
    made = []

    def __new__(cls, *args):
        cls.made.append(args)
        return super().__new__(cls)

    def __init__(self, n=0):
        self.n = n

    def __call__(self, x, *, twice=False):
        return (self.n + x) * (1 + twice)

    def method(self, x):
        return self.n + x

    @classmethod
    def of_class(cls, x):
        return cls.__name__, x

    @staticmethod
    def of_nobody(x):
        return x

    @property
    def total(self):
        return self.n

    @functools.cached_property
    def cached(self):
        return [self.n]

    @functools.singledispatchmethod
    def kind(self, x):
        return "other"

    @kind.register
    def _(self, x: int):
        return "int"


class Meta(type):
    def __call__(cls, *args):
        return "made by Meta", args


class WithMeta(metaclass=Meta):
    pass


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.wraps(add)
def wrapper(*args, **kwargs):
    return add(*args, **kwargs)


@functools.singledispatch
def dispatch(x):
    return "object"


@dispatch.register
def _(x: int):
    return "int"


Point = dataclasses.make_dataclass("Point", ["x", ("y", int, 3)])
Color = enum.Enum("Color", "RED GREEN")

CALLS = {
    "function": (add, (1, 2, 3), {"c": 4, "d": 5}),
    "lambda": (lambda x, *y: (x, y), (1, 2), {}),
    "bound method": (Adder(3).method, (4,), {}),
    "unbound method": (Adder.method, (Adder(3), 4), {}),
    "method of a method": (types.MethodType(Adder(3), 4), (), {}),
    "class method": (Adder.of_class, (1,), {}),
    "static method": (Adder.of_nobody, (1,), {}),
    "static method object": (staticmethod(add), (1,), {}),
    "__call__": (Adder(3), (4,), {"twice": True}),
    "metaclass": (WithMeta, (1, 2), {}),
    "dataclass": (Point, (1,), {"y": 4}),
    "enum": (Color, (2,), {}),
    "partial": (functools.partial(add, 1, c=5), (2,), {"d": 1}),
    "partial of a partial": (functools.partial(functools.partial(add, 1), b=3), (), {}),
    "partial of a method": (functools.partial(Adder(3).method, 4), (), {}),
    "partial of native code": (functools.partial(max, key=lambda x: -x), ([3, 1, 2],), {}),
    "lru_cache": (fib, (30,), {}),
    "wraps": (wrapper, (1,), {"c": 2}),
    "singledispatch": (dispatch, (1,), {}),
    "singledispatchmethod": (Adder(1).kind, (1,), {}),
    "attrgetter": (operator.attrgetter("total"), (Adder(7),), {}),
    "methodcaller": (operator.methodcaller("method", 5), (Adder(7),), {}),
    "generator function": (lambda: list(x for x in range(3)), (), {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_all_kinds(name):
    function, args, kwargs = CALLS[name]
    expected = function(*args, **kwargs)
    fib.cache_clear()
    assert evaluate(function, *args, **kwargs) == expected


def test_classes():
    before = len(Adder.made)
    made = evaluate(Adder, 5)
    assert type(made) is Adder and made.n == 5 and len(Adder.made) == before + 1
    assert evaluate(lambda: (made.total, made.cached, made.cached)) == (5, [5], [5])


def test_the_result_is_the_very_object():
    thing = object()
    assert evaluate(lambda x: x, thing) is thing


def test_arguments_are_not_kept():
    class Token:
        pass

    token = Token()
    before = sys.getrefcount(token)
    for _ in range(10):
        evaluate(lambda x, *args, **kwargs: (x, args, kwargs), token, token, key=token)
    assert sys.getrefcount(token) == before


def test_keywords_of_any_name_are_the_functions():
    assert evaluate(lambda **k: k, fn=1, self=2, callable=3) == {"fn": 1, "self": 2, "callable": 3}


def test_a_module_does_not_hide_the_function():
    import importlib

    module = importlib.import_module("stator.evaluate")
    assert stator.evaluate is _engine.evaluate and module is _engine.evaluate
    assert evaluate.__name__ == "evaluate" and "interpreter" in evaluate.__doc__
    assert str(inspect.signature(evaluate)) == "(fn, /, *args, **kwargs)"


# -- nesting and generators -----------------------------------------------------------------


def test_nested():
    def depth(n):
        return evaluate(depth, n - 1) + 1 if n else 0

    assert evaluate(depth, 50) == 50


def test_nested_within_native_code():
    def key(x):
        return evaluate(lambda: -x)

    assert evaluate(lambda: sorted(range(5), key=key)) == [4, 3, 2, 1, 0]


def test_a_generator_goes_on_outside():
    def numbers():
        try:
            got = yield 1
            while got:
                got = yield got * 2
        finally:
            log.append("finally")

    log = []
    generator = evaluate(numbers)
    assert inspect.getgeneratorstate(generator) == inspect.GEN_CREATED
    assert next(generator) == 1
    assert evaluate(lambda: generator.send(2)) == 4
    assert generator.send(3) == 6
    assert evaluate(lambda: generator.send(4)) == 8
    assert log == [] and evaluate(lambda: list(generator)) == [] and log == ["finally"]


def test_a_generator_begun_inside_goes_on_outside():
    def numbers():
        try:
            yield from range(3)
        except KeyError as error:
            yield repr(error), [f.name for f in traceback.extract_tb(error.__traceback__)][-1]

    def begins():
        generator = numbers()
        return generator, next(generator)

    generator, first = evaluate(begins)
    assert (first, next(generator)) == (0, 1)
    assert generator.throw(KeyError(1)) == ("KeyError(1)", "numbers")


def test_coroutines_and_async_generators():
    import asyncio

    async def source():
        for x in range(3):
            await asyncio.sleep(0)
            yield x

    async def main():
        return [x async for x in source()], await asyncio.gather(*map(double, range(3)))

    async def double(x):
        await asyncio.sleep(0)
        return 2 * x

    assert evaluate(lambda: asyncio.run(main())) == ([0, 1, 2], [0, 2, 4])
    assert asyncio.run(evaluate(main)) == ([0, 1, 2], [0, 2, 4])


# -- exceptions -----------------------------------------------------------------------------


def fails(n):
    if n:
        return fails(n - 1)
    try:
        return {}[n]
    except KeyError as error:
        raise ValueError("no") from error


def seen(run):
    """An exception's text, and what of its tracebacks lies in fails()."""
    with pytest.raises(ValueError) as raised:
        run()
    found, error = [], raised.value
    while error is not None:
        entries = traceback.extract_tb(error.__traceback__)
        lines = [(e.name, e.lineno, e.colno, e.end_colno) for e in entries if e.name == "fails"]
        found.append((repr(error), lines))
        error = error.__cause__
    return found


def test_exceptions_and_their_tracebacks():
    assert seen(lambda: evaluate(fails, 3)) == seen(lambda: fails(3))


def test_no_frame_of_ours_is_seen():
    def names():
        frame, found = sys._getframe(), []
        while frame is not None:
            found.append(frame.f_code.co_name)
            frame = frame.f_back
        return found

    assert evaluate(names) == names()
    assert evaluate(lambda: names())[:3] == ["names", "<lambda>", "test_no_frame_of_ours_is_seen"]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_exceptions_of_all_kinds_pass(kind):
    def raises():
        raise kind(1)

    with pytest.raises(kind):
        evaluate(raises)


def test_the_handled_exception_is_the_callers_inside_and_the_same_after():
    def looks():
        outer = sys.exception()
        try:
            raise KeyError(1)
        except KeyError as error:
            return outer, error.__context__, sys.exception() is error

    try:
        raise ValueError("caller's")
    except ValueError as error:
        assert evaluate(looks) == (error, error, True)
        assert sys.exception() is error
    assert sys.exception() is None


# -- recursion ------------------------------------------------------------------------------


@pytest.fixture
def limit():
    before = sys.getrecursionlimit()
    yield sys.setrecursionlimit
    sys.setrecursionlimit(before)


def down(n):
    return down(n - 1) + 1 if n else 0


def test_deep_recursion(limit):
    limit(200_000)
    assert evaluate(down, 100_000) == 100_000


def test_deep_recursion_in_a_thread(limit):
    limit(60_000)
    found = []
    thread = threading.Thread(target=lambda: found.append(evaluate(down, 50_000)))
    thread.start()
    thread.join()
    assert found == [50_000]


def test_deep_recursion_of_all_shapes(limit):
    limit(60_000)

    class Deep:
        def method(self, n):
            return self.method(n - 1) if n else "method"

    def stars(n, *args, k=1):
        return stars(*(n - 1,), **{"k": k}) if n else "stars"

    def lambdas(n):
        return (lambda: lambdas(n - 1))() if n else "lambda"

    def handlers(n):
        try:
            return handlers(n - 1) if n else 1 / 0
        finally:
            n = None

    assert evaluate(Deep().method, 20_000) == "method"
    assert evaluate(stars, 20_000) == "stars"
    assert evaluate(lambdas, 10_000) == "lambda"
    with pytest.raises(ZeroDivisionError):
        evaluate(handlers, 20_000)


def measured(call):
    """How deep a function gets before RecursionError, with that error."""
    depth = 0

    def deeper():
        nonlocal depth
        depth += 1
        deeper()

    with pytest.raises(RecursionError) as raised:
        call(deeper)
    return depth, str(raised.value), len(traceback.extract_tb(raised.value.__traceback__))


@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_recursion_errors_come_at_the_same_depth(limit, size):
    limit(size)
    assert measured(evaluate) == measured(_engine.passthrough)


def test_recursion_errors_are_handled(limit):
    def recovers(n):
        try:
            return recovers(n + 1)
        except RecursionError:
            return n

    limit(300)
    assert evaluate(recovers, 0) == _engine.passthrough(recovers, 0)
    assert evaluate(down, 100) == 100


def test_recursion_through_native_code_ends_in_an_error():
    class Endless:
        def __repr__(self):
            return repr(self)

        def __eq__(self, other):
            return self == other

        def __getattr__(self, name):
            return getattr(self, name)

    def keys(n):
        return sorted([n, n], key=keys)

    for endless in (
        lambda: repr(Endless()),
        lambda: Endless() == 1,
        lambda: Endless().name,
        lambda: keys(1),
        lambda: list(map(keys, [1])),
    ):
        with pytest.raises(RecursionError):
            evaluate(endless)
    assert evaluate(down, 100) == 100


# -- threads --------------------------------------------------------------------------------


def test_threads_evaluate_side_by_side():
    def work(seed):
        rng = random.Random(seed)
        data = [rng.randrange(1000) for _ in range(200)]
        table = {x: [y for y in data if y % (x + 1) == 0] for x in sorted(set(data))[:20]}
        return sum(map(len, table.values())), down(seed % 50)

    expected = [work(n) for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: evaluate(work, n), range(40))) == expected


def test_each_thread_raises_its_own():
    def work(n):
        try:
            return 1 / (n % 2)
        except ZeroDivisionError as error:
            raise KeyError(n) from error

    def run(n):
        try:
            return evaluate(work, n)
        except KeyError as error:
            return error.args, type(error.__cause__)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, range(20)))
    assert found == [1.0 if n % 2 else ((n,), ZeroDivisionError) for n in range(20)]
