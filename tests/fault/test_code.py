"""Each allocation of decode, flow and print fails once: MemoryError, and the next try works."""

import pytest

from stator import _engine

SOURCE = """
def f(a, *b, **c):
    try:
        with a as d:
            return [x for x in b if x in {"p", "q"}] and d(*b, **c)
    except ValueError as e:
        raise
"""


@pytest.mark.parametrize("function", [_engine.decoded_at, _engine.flow, _engine.dis_text])
def test_failed_allocation_is_a_memory_error(function) -> None:
    testcapi = pytest.importorskip("_testcapi")
    whole = function(compile(SOURCE, "m", "exec"))
    failures = passed = 0
    for start in range(1, 5000):
        code = compile(SOURCE, "m", "exec")
        testcapi.set_nomemory(start, start + 1)
        try:
            function(code)
            passed += 1  # that allocation was one too many, or one that nobody needs
        except MemoryError:
            failures, passed = failures + 1, 0
        finally:
            testcapi.remove_mem_hooks()
        again = function(code)
        assert function is _engine.decoded_at or again == whole
        if passed == 20:
            break
    assert passed == 20 and failures > 2
