"""Decoding agrees with `dis` on every instruction, jump, stack effect and exception region."""

import gc
import sys
import tracemalloc
from pathlib import Path
from types import CodeType

import pytest

from stator import _engine
from tests.stage.corpus import FULL, codes, compiled, library_sources, nested, site_sources
from tests.stage.expected import expected, expected_regions


def check(code: CodeType) -> None:
    decoded, wanted = _engine.decode(code), expected(code)
    assert [row[:6] for row in decoded] == [tuple(row[:6]) for row in wanted]
    assert _engine.regions(code) == expected_regions(code)
    depths = [row[6] for row in decoded]
    by_start = {}
    for index, row in enumerate(decoded):
        by_start.setdefault(row[3], index)
    assert depths[0] == 0 and max(depths) <= code.co_stacksize
    for index, row in enumerate(wanted):
        if depths[index] < 0:
            continue
        if row.effect is not None:
            assert depths[index + 1] - depths[index] == row.effect, row
        if row.jump_effect is not None:
            assert depths[by_start[row.extra]] - depths[index] == row.jump_effect, row
    check_handlers(code, depths, by_start, [row[4] for row in decoded])


def check_handlers(code: CodeType, depths: list, by_start: dict, at: list) -> None:
    """A reached handler starts at the depth its regions say, and above whatever is handled."""
    for start, end, target, depth, lasti in _engine.regions(code):
        reached = any(start <= where < end and d >= 0 for where, d in zip(at, depths))
        if depths[by_start[target]] >= 0:
            assert depths[by_start[target]] == depth + lasti + 1
        else:
            assert not reached


@pytest.mark.parametrize("path", library_sources(150), ids=lambda path: path.name)
def test_sampled_module_agrees_with_dis(path: Path) -> None:
    code = compiled(path)
    for inner in nested(code) if code else []:
        check(inner)


@pytest.mark.full
def test_whole_standard_library_agrees_with_dis() -> None:
    for code in codes(library_sources()):
        check(code)


@pytest.mark.full
def test_whole_site_packages_agree_with_dis() -> None:
    for code in codes(site_sources()):
        check(code)


def test_standard_library_and_site_packages_decode() -> None:
    count = 0
    for code in codes(library_sources(None if FULL else 500) + site_sources(None if FULL else 100)):
        _engine.flow(code)
        count += 1
    assert count > 5000


def test_specialised_code_decodes_like_fresh_code() -> None:
    source = "def f(x):\n  t = 0\n  for i in range(x):\n    t += i or len(str(i))\n  return t"
    module = compile(source, "m", "exec")
    fresh, namespace = compile(source, "m", "exec").co_consts[0], {}
    exec(module, namespace)
    for _ in range(200):
        namespace["f"](50)
    assert _engine.decode(module.co_consts[0]) == _engine.decode(fresh)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_instrumented_code_decodes_like_fresh_code() -> None:
    source = "def f(x):\n  t = 0\n  for i in range(x):\n    t += len(str(i))\n  return t"
    namespace: dict = {}
    exec(source, namespace)
    events = sys.monitoring.events
    sys.monitoring.use_tool_id(4, "test")
    try:
        sys.monitoring.set_events(4, events.LINE | events.CALL | events.JUMP | events.INSTRUCTION)
        namespace["f"](5)
        decoded = _engine.decode(namespace["f"].__code__)
    finally:
        sys.monitoring.set_events(4, 0)
        sys.monitoring.free_tool_id(4)
    assert decoded == _engine.decode(compile(source, "m", "exec").co_consts[0])


def test_prefixes_belong_to_what_follows() -> None:
    names = ", ".join(f"k{i}={i}" for i in range(3))
    many = "; ".join(f"v{i} = {i}.5" for i in range(300))
    code = compile(f"{many}\nf(1, {names})\n", "m", "exec")
    decoded = _engine.decode(code)
    prefixed = [row for row in decoded if row[4] != row[3]]
    assert {"LOAD_CONST", "STORE_NAME"} <= {row[0] for row in prefixed}
    (call,) = [row for row in decoded if row[0] in ("CALL", "CALL_KW")]
    assert call[1] == 4
    if sys.version_info < (3, 13):
        assert code.co_consts[call[2]] == ("k0", "k1", "k2")
        assert call[4] - call[3] >= 2  # KW_NAMES before it, with its EXTENDED_ARG
    else:
        assert call[0] == "CALL_KW"


def test_second_decode_is_the_first_one() -> None:
    code = compile("x = 1", "m", "exec")
    assert _engine.decoded_at(code) == _engine.decoded_at(code)
    assert _engine.decoded_at(code) != _engine.decoded_at(compile("x = 2", "m", "exec"))


def test_decoded_form_is_freed_with_the_code_object() -> None:
    def run(times: int) -> None:
        for _ in range(times):
            source = "def f(a):\n  for x in a:\n    try: a(x)\n    except E: pass"
            for inner in nested(compile(source, "m", "exec")):
                _engine.flow(inner)

    run(50)
    gc.collect()
    tracemalloc.start()
    run(10)
    before = tracemalloc.get_traced_memory()[0]
    run(500)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


@pytest.mark.parametrize("bad", [3, "x", None, len, int])
def test_what_has_no_code_is_a_type_error(bad: object) -> None:
    with pytest.raises(TypeError):
        _engine.decode(bad)
    with pytest.raises(TypeError):
        _engine.dis(bad)
