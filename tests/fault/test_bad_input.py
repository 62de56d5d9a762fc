"""What cannot be evaluated is refused with a clear exception, and the hook does not stay."""

import functools
import types

import pytest

from stator import _engine, evaluate


def add(a, b=2, *, c=3):
    return a + b + c


def constants(a, b, *, c):
    return a + 1000 if b else "b" + c


class Callable:
    def __call__(self, x):
        return x + 1


class Plain:
    def __init__(self, x):
        self.x = x

    def method(self, y):
        return self.x + y


@pytest.fixture(autouse=True)
def no_hook():
    assert not _engine.hook_installed()
    yield
    assert not _engine.hook_installed()


@pytest.mark.parametrize(
    "thing", [len, print, "abc".upper, int, type, dict.get, object(), 3, None, "f"]
)
def test_without_python_code_is_a_type_error(thing):
    with pytest.raises(TypeError, match="evaluate"):
        evaluate(thing, 1)


def test_without_any_argument_is_a_type_error():
    with pytest.raises(TypeError, match="evaluate"):
        evaluate()


@pytest.mark.parametrize(
    "args, kwargs",
    [((), {}), ((1, 2, 3), {}), ((1,), {"d": 4}), ((1,), {"a": 4}), ((), {"b": 1})],
)
def test_wrong_arguments_are_the_same_error_as_in_a_call(args, kwargs):
    with pytest.raises(TypeError) as plain:
        add(*args, **kwargs)
    with pytest.raises(TypeError) as evaluated:
        evaluate(add, *args, **kwargs)
    assert str(evaluated.value) == str(plain.value)


def test_keywords_that_are_not_strings():
    with pytest.raises(TypeError, match="keywords must be strings"):
        evaluate(add, 1, **{1: 2})


def test_callables_with_python_code_behind_them_are_evaluated():
    assert evaluate(Callable(), 2) == 3
    assert evaluate(Plain, 4).x == 4
    assert evaluate(Plain(4).method, 3) == 7
    assert evaluate(functools.partial(add, 1), c=1) == 4
    assert evaluate(functools.lru_cache(add), 1) == 6


def malformed():
    """Code objects that CPython's compiler would never make."""
    code = constants.__code__
    yield "no instructions", {"co_code": b""}
    yield "unknown opcode", {"co_code": bytes([255, 0]) + code.co_code[2:]}
    yield "ends in the middle", {"co_code": code.co_code[:-2]}
    yield "jumps outside", {"co_code": code.co_code[:2] + jump_far() + code.co_code[4:]}
    yield "constant that is not there", {"co_consts": ()}
    yield "handler outside", {"co_exceptiontable": bytes([0x80, 0x01, 0x3F, 0x01])}
    yield "torn exception table", {"co_exceptiontable": bytes([0xC0])}


def jump_far():
    import dis

    return bytes([dis.opmap["JUMP_FORWARD"], 250])


@pytest.mark.parametrize("changes", [pytest.param(c, id=n) for n, c in malformed()])
def test_malformed_code_is_refused_before_it_runs(changes):
    try:
        code = constants.__code__.replace(**changes)
    except (ValueError, TypeError) as refused:
        pytest.skip(f"CPython does not even make it: {refused}")
    with pytest.raises((SystemError, ValueError)):
        evaluate(types.FunctionType(code, globals()), 1, 2, c=3)
    assert evaluate(add, 1) == 6


def test_a_stack_too_small_is_found_by_the_flow_of_the_code():
    with pytest.raises((SystemError, ValueError)):
        _engine.flow(constants.__code__.replace(co_stacksize=0))


def test_an_exception_leaves_no_hook():
    def fail():
        raise LookupError("out")

    with pytest.raises(LookupError):
        evaluate(fail)


def test_a_generator_that_outlives_its_evaluation_goes_on_plainly():
    def numbers():
        yield 1
        yield _engine.hook_installed()
        yield 3

    gen = evaluate(numbers)
    assert next(gen) == 1
    assert next(gen) is False
    assert evaluate(lambda: next(gen)) == 3


def test_nested_evaluation_keeps_the_hook_until_the_outermost_ends():
    def inner():
        return _engine.hook_installed()

    def outer():
        return evaluate(inner), _engine.hook_installed()

    assert evaluate(outer) == (True, True)


def test_hop_arguments_are_checked():
    with pytest.raises(TypeError):
        _engine.evaluate_hopping(len, ([],), {}, 1, 1)
    with pytest.raises(ValueError):
        _engine.evaluate_hopping(add, (1,), {}, 1, 0)
