"""The listings of golden_programs.py are as they were; STATOR_REGEN=1 writes them anew."""

import io
import os
import sys
from pathlib import Path
from types import FunctionType

import pytest

import stator
from stator import _engine
from tests.stage import golden_programs

VERSION = "{}.{}".format(*sys.version_info[:2])
PROGRAMS = [f for f in vars(golden_programs).values() if isinstance(f, FunctionType)]


def golden(name: str) -> Path:
    return Path(__file__).parent / "golden" / f"{name}-{VERSION}.txt"


def from_line_one(function: FunctionType) -> str:
    """Lines are counted from the function's own, so that editing one leaves the others alone."""
    return _engine.dis_text(shift(function.__code__, function.__code__.co_firstlineno - 1))


def shift(code, by: int):
    consts = tuple(shift(c, by) if isinstance(c, type(code)) else c for c in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno - by, co_consts=consts)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_listing_is_golden(function: FunctionType) -> None:
    text, path = from_line_one(function), golden(function.__name__)
    if os.environ.get("STATOR_REGEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_no_golden_without_a_program() -> None:
    names = {f.__name__ for f in PROGRAMS}
    assert {path.stem.rpartition("-")[0] for path in golden("x").parent.glob("*.txt")} == names


def test_dis_prints_to_stdout_or_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = _engine.dis_text(golden_programs.loops)
    assert stator.dis(golden_programs.loops) is None
    assert capsys.readouterr().out == text
    file = io.StringIO()
    stator.dis(golden_programs.loops.__code__, file=file)
    assert file.getvalue() == text


def test_bound_methods_have_code() -> None:
    class C:
        def f(self): ...

    assert _engine.dis_text(C().f) == _engine.dis_text(C.f) == _engine.dis_text(C.f.__code__)


def test_nested_code_is_printed_if_asked_for() -> None:
    whole = _engine.dis_text(golden_programs.closures)
    assert whole.startswith(_engine.dis_text(golden_programs.closures, False))
    assert "closures.<locals>.step.<locals>.<lambda>, line" in whole


def test_names_and_constants_of_any_script_are_printed() -> None:
    code = compile("ключ = 'é\\ud800' + x\n", "m", "exec").replace(
        co_name="\ud800", co_qualname="\ud800"
    )
    text = _engine.dis_text(code)
    assert "ключ" in text and "\\ud800" in text


def test_long_constants_are_shortened() -> None:
    text = _engine.dis_text(compile("x = '" + "long " * 100 + "'", "m", "exec"))
    assert max(map(len, text.splitlines())) < 110


def test_an_int_too_long_to_print_is_named() -> None:
    code = compile(f"x = {hex(16**9000)}", "m", "exec")
    assert "<int>" in _engine.dis_text(code)


def test_listing_is_the_same_for_every_hash_seed() -> None:
    # Sets print sorted; two frozensets that were filled in different orders look alike.
    code = compile("x in {'a', 'b', 'c', 'd'}", "m", "eval")
    assert "frozenset({'a', 'b', 'c', 'd'})" in _engine.dis_text(code)
