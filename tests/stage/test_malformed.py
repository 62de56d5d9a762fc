"""A malformed code object is a SystemError that says what is wrong, never a crash."""

import dis
import os
import random
import sys
from types import CodeType

import pytest

from stator import _engine
from tests.stage.assemble import assemble, caches, make, table
from tests.stage.corpus import FULL, compiled, library_sources, nested

V = sys.version_info[:2]
LOAD_NONE, RETURN = ("LOAD_CONST", 0), "RETURN_VALUE"
POP_JUMP = "POP_JUMP_FORWARD_IF_TRUE" if V == (3, 11) else "POP_JUMP_IF_TRUE"
CALL = [("PRECALL", 1), ("CALL", 1)] if V == (3, 11) else [("CALL", 1)]
CALLED = ["PUSH_NULL", LOAD_NONE, LOAD_NONE]


def decode_error(code: CodeType) -> str:
    """The message of decoding, which is the same again, since nothing was kept."""
    wanted = "malformed code object 'template'|: unknown opcode "
    with pytest.raises(SystemError, match=wanted) as first:
        _engine.decode(code, False)
    with pytest.raises(SystemError) as second:
        _engine.dis_text(code)
    assert str(first.value) == str(second.value)
    return str(first.value)


DECODE = {
    "no code": ([], "the code does not end"),
    "falls off the end": ([LOAD_NONE], "the code does not end"),
    "cache as opcode": ([("CACHE", 0), LOAD_NONE, RETURN], ": unknown opcode "),
    "only a prefix": ([LOAD_NONE, RETURN, ("EXTENDED_ARG", 1)], "past the end at offset 4"),
    "four prefixes": (
        [("EXTENDED_ARG", 0)] * 4 + [LOAD_NONE, RETURN],
        "too many EXTENDED_ARG at offset 0",
    ),
    "argument over 31 bits": (
        [("EXTENDED_ARG", 255)] * 3 + [LOAD_NONE, RETURN],
        "past the end at offset 0",
    ),
    "constant": ([("LOAD_CONST", 5), RETURN], "an argument out of range at offset 0"),
    "name": ([LOAD_NONE, ("STORE_GLOBAL", 2), LOAD_NONE, RETURN], "out of range at offset 2"),
    "attribute": ([LOAD_NONE, ("DELETE_ATTR", 9), LOAD_NONE, RETURN], "out of range at offset 2"),
    "local": ([("LOAD_FAST", 3), RETURN], "out of range at offset 0"),
    "cell": ([("LOAD_DEREF", 0), RETURN], "an impossible argument at offset 0"),
    "free variables": ([("COPY_FREE_VARS", 1), LOAD_NONE, RETURN], "impossible argument"),
    "operator": ([LOAD_NONE, LOAD_NONE, ("BINARY_OP", 26), RETURN], "out of range at offset 4"),
    "comparison": ([LOAD_NONE, LOAD_NONE, ("COMPARE_OP", 224), RETURN], "out of range"),
    "is": ([LOAD_NONE, LOAD_NONE, ("IS_OP", 2), RETURN], "out of range at offset 4"),
    "slice of one": ([LOAD_NONE, ("BUILD_SLICE", 1), RETURN], "impossible argument"),
    "raise of three": ([LOAD_NONE, ("RAISE_VARARGS", 3)], "impossible argument"),
    "copy of nothing": ([LOAD_NONE, ("COPY", 0), RETURN], "impossible argument at offset 2"),
    "swap of nothing": ([LOAD_NONE, ("SWAP", 0), RETURN], "impossible argument at offset 2"),
    "list append": ([LOAD_NONE, ("LIST_APPEND", 0), RETURN], "impossible argument"),
    "yield": ([LOAD_NONE, "YIELD_VALUE", RETURN], "impossible argument at offset 2"),
    "generator": (["RETURN_GENERATOR", RETURN], "impossible argument at offset 0"),
    "send": ([LOAD_NONE, LOAD_NONE, ("SEND", 0), RETURN], "a generator's instruction"),
    "jump behind the end": ([("JUMP_FORWARD", 2), LOAD_NONE, RETURN], "a jump out of the code"),
    "jump before the start": ([LOAD_NONE, ("JUMP_BACKWARD", 9)], "a jump out of the code"),
    "jump into a cache": (
        [("JUMP_FORWARD", 3), LOAD_NONE, LOAD_NONE, ("BINARY_OP", 0), RETURN],
        "a jump into the middle of an instruction at offset 0",
    ),
    "jump behind a prefix": (
        [("JUMP_FORWARD", 1), ("EXTENDED_ARG", 0), LOAD_NONE, RETURN],
        "a jump into the middle of an instruction at offset 0",
    ),
}
if V < (3, 13):
    KW = "KW_NAMES"
    DECODE |= {
        "names of an int": ([*CALLED, (KW, 1), *CALL, RETURN], "bad keyword names at offset 6"),
        "names that are not str": ([*CALLED, (KW, 4), *CALL, RETURN], "bad keyword names"),
        "more names than arguments": ([*CALLED, (KW, 3), *CALL, RETURN], "bad keyword names"),
        "names out of range": ([*CALLED, (KW, 9), *CALL, RETURN], "keyword names out of range"),
        "names without a call": ([LOAD_NONE, (KW, 2), RETURN], "without its call at offset 2"),
        "names twice": ([*CALLED, (KW, 2), (KW, 2), *CALL, RETURN], "the same prefix twice"),
        "jump behind names": (
            [("JUMP_FORWARD", 4), *CALLED, (KW, 2), *CALL, RETURN],
            "a jump into the middle",
        ),
    }
if V == (3, 11):
    DECODE |= {
        "precall alone": ([*CALLED, ("PRECALL", 1), RETURN], "without its call"),
        "two counts": ([*CALLED, ("PRECALL", 1), ("CALL", 0), RETURN], "without its call"),
    }
else:
    unknown, invalid = ("CALL_INTRINSIC_1", 99), ("CALL_INTRINSIC_1", 0)
    DECODE |= {
        "unknown intrinsic": ([LOAD_NONE, unknown, RETURN], "unknown intrinsic at offset 2"),
        "internal opcode": ([LOAD_NONE, "INTERPRETER_EXIT"], ": unknown opcode "),
    }


@pytest.mark.parametrize("name", DECODE)
def test_decode_refuses(name: str) -> None:
    instructions, message = DECODE[name]
    assert message in decode_error(make(*instructions))


@pytest.mark.parametrize("cut", range(1, 1 + caches("LOAD_ATTR")))
def test_last_instruction_without_all_its_caches_is_refused(cut: int) -> None:
    # When it makes such a code object CPython writes one unit behind it. Padding before it keeps
    # that write within what the allocator rounds up to.
    whole = assemble(LOAD_NONE, ("LOAD_ATTR", 0))
    for padding in range(8):
        code = assemble(*["NOP"] * padding) + whole[: len(whole) - 2 * cut]
        if (CodeType.__basicsize__ + len(code)) % 16 not in (0, 14):
            break
    assert "the last instruction is cut off" in decode_error(make(co_code=code))


NOPS = ["NOP"] * 6
BODY = [*NOPS, LOAD_NONE, RETURN]
TABLES = {
    "end behind the code": (table((0, 9, 6, 0, False)), "a broken exception table"),
    "empty": (table((2, 2, 6, 0, False)), "a broken exception table"),
    "overlap": (table((0, 3, 6, 0, False), (2, 4, 6, 0, False)), "a broken exception table"),
    "out of order": (table((3, 4, 6, 0, False), (0, 2, 6, 0, False)), "a broken exception table"),
    "handler behind the code": (table((0, 3, 8, 0, False)), "a bad exception handler"),
    "depth over the stack": (table((0, 3, 6, 4, False)), "a bad depth of an exception handler"),
    "no room for lasti": (table((0, 3, 6, 3, True)), "a bad depth of an exception handler"),
    "cut off": (table((0, 3, 6, 0, False))[:3], "a bad depth"),
    "cut off in a number": (table((0, 3, 6, 0, False))[:3] + b"\x40", "a bad depth"),
    "no mark": (b"\x00" + table((0, 3, 6, 0, False))[1:], "a broken exception table"),
    "endless number": (b"\xff" * 9, "a broken exception table"),
}


@pytest.mark.parametrize("name", TABLES)
def test_decode_refuses_exception_table(name: str) -> None:
    rows, message = TABLES[name]
    assert message in decode_error(make(*BODY, co_exceptiontable=rows))


def test_handler_in_the_middle_of_an_instruction_is_refused() -> None:
    body = ["NOP", LOAD_NONE, ("LOAD_ATTR", 0), RETURN]
    code = make(*body, co_exceptiontable=table((0, 1, 3, 0, False)))
    assert "a bad exception handler" in decode_error(code)


FLOW = {
    "pop of nothing": (["POP_TOP", LOAD_NONE, RETURN], {}, "stack underflow at offset 0"),
    "looks below the stack": ([LOAD_NONE, ("COPY", 2), RETURN], {}, "stack underflow at offset 2"),
    "append below": ([LOAD_NONE, ("LIST_APPEND", 1), LOAD_NONE, RETURN], {}, "stack underflow"),
    "merge below": (
        [LOAD_NONE, LOAD_NONE, ("DICT_MERGE", 1), RETURN],
        {},
        "stack underflow at offset 4",
    ),
    "overflow": ([LOAD_NONE] * 5 + [RETURN], {}, "stack overflow at offset 8"),
    "depths differ": (
        [LOAD_NONE, LOAD_NONE, (POP_JUMP, 1), LOAD_NONE, RETURN],
        {},
        "different stack depths",
    ),
    "loop that pushes": (
        [LOAD_NONE, ("JUMP_BACKWARD", 2 + caches("JUMP_BACKWARD"))],
        {},
        "different stack depths at offset 0",
    ),
    "none handled": ([LOAD_NONE, "POP_EXCEPT", LOAD_NONE, RETURN], {}, "no exception is handled"),
    "handler keeps more": (
        [("DELETE_GLOBAL", 0), LOAD_NONE, RETURN],
        {"co_exceptiontable": table((0, 1, 1, 1, False))},
        "less on the stack than its exception handler keeps at offset 0",
    ),
    "handlers differ": (
        [LOAD_NONE, LOAD_NONE, (POP_JUMP, 2), "PUSH_EXC_INFO", "POP_TOP", "NOP", RETURN],
        {},
        "different exception handlers",
    ),
}


@pytest.mark.parametrize("name", FLOW)
def test_flow_refuses(name: str) -> None:
    instructions, changes, message = FLOW[name]
    code = make(*instructions, **changes)
    _engine.decode(code, False)
    for function in (_engine.flow, _engine.decode, _engine.dis_text, _engine.flow):
        with pytest.raises(SystemError) as raised:
            function(code)
        assert message in str(raised.value)


def test_many_nested_handlers_do_not_exhaust_the_c_stack() -> None:
    count = 50_000
    code = make(LOAD_NONE, *["PUSH_EXC_INFO"] * count, RETURN, co_stacksize=count + 1)
    with pytest.raises(SystemError, match="too many nested exception handlers"):
        _engine.flow(code)


def test_huge_stack_size_costs_nothing() -> None:
    code = make(LOAD_NONE, RETURN, co_stacksize=2**31 - 1)
    assert [row[0] for row in _engine.flow(code)] == [0, 1]


def test_deep_stack_is_fine() -> None:
    names = ", ".join(f"v{i}" for i in range(40_000))
    code = compile(f"{names} = x", "m", "exec")
    assert max(row[6] for row in _engine.decode(code)) == 40_000


# ---- random damage

# From 3.12 on CPython itself crashes while it makes a code object with these in it.
ALLOWED = [number for number in range(256) if V == (3, 11) or number < 236]
SAFE_END = bytes([dis.opmap["RETURN_VALUE"], 0])


def samples() -> list[CodeType]:
    paths = random.Random(5).sample(library_sources(), 12)
    found = [inner for path in paths if (code := compiled(path)) for inner in nested(code)]
    return [code for code in found if 10 < len(code.co_code) < 3000]


def damage_code(random: random.Random, code: CodeType) -> dict:
    raw = bytearray(code.co_code)
    for _ in range(random.choice([1, 1, 2, 5, 50])):
        place = random.randrange(len(raw))
        raw[place] = random.choice(ALLOWED) if place % 2 == 0 else random.randrange(256)
    return {"co_code": whole(bytes(raw))}


def cut_code(random: random.Random, code: CodeType) -> dict:
    return {"co_code": whole(code.co_code[: 2 * random.randrange(len(code.co_code) // 2)])}


def random_code(random: random.Random, code: CodeType) -> dict:
    units = random.randrange(1, 60)
    raw = b"".join(bytes([random.choice(ALLOWED), random.randrange(256)]) for _ in range(units))
    return {"co_code": whole(raw)}


def damage_table(random: random.Random, code: CodeType) -> dict:
    raw = bytearray(code.co_exceptiontable or random.randbytes(8))
    for _ in range(random.choice([1, 1, 3, 10])):
        raw[random.randrange(len(raw))] = random.randrange(256)
    return {"co_exceptiontable": bytes(raw[: random.randrange(1, len(raw) + 1)])}


def shorten(random: random.Random, code: CodeType) -> dict:
    field = random.choice(["co_consts", "co_names"])
    values = getattr(code, field)
    return {field: values[: random.randrange(len(values) + 1)]}


def change_number(random: random.Random, code: CodeType) -> dict:
    if random.random() < 0.5:
        return {"co_stacksize": random.randrange(code.co_stacksize + 1)}
    return {"co_flags": code.co_flags ^ 1 << random.choice([5, 7, 9])}


def damage_lines(random: random.Random, code: CodeType) -> dict:
    return {"co_linetable": random.randbytes(random.randrange(30))}


DAMAGE = [damage_code, cut_code, random_code, damage_table, shorten, change_number, damage_lines]


def whole(raw: bytes) -> bytes:
    """So that no instruction lacks its caches at the end: CPython would write behind them."""
    return raw + SAFE_END * 10


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_random_damage_is_an_error_or_decodes(damage) -> None:
    seed = int(os.environ.get("STATOR_SEED", "1"))
    generator, codes, refused = random.Random(seed), samples(), 0
    for _ in range(20_000 if FULL else 1500):
        base = generator.choice(codes)
        try:
            code = base.replace(**damage(generator, base))
        except ValueError:
            continue  # 3.13 looks at the arguments of LOAD_FAST_AND_CLEAR itself
        try:
            check_decoded(code, _engine.decode(code, False))
            _engine.flow(code)
            _engine.dis_text(code, False)
        except SystemError as error:
            assert "malformed code object" in str(error) or ": unknown opcode " in str(error)
            refused += 1
    assert refused > 0 or damage is damage_lines


def check_decoded(code: CodeType, decoded: list) -> None:
    """What the interpreter relies on without looking again."""
    starts = {row[3] for row in decoded}
    locals_count = len({*code.co_varnames, *code.co_cellvars}) + len(code.co_freevars)
    for name, arg, extra, start, at, _, _ in decoded:
        assert arg >= 0 and start <= at
        if "JUMP" in name or name in ("FOR_ITER", "SEND"):
            assert extra in starts
        elif name in ("LOAD_CONST", "RETURN_CONST"):
            assert arg < len(code.co_consts)
        elif name in NAMED:
            assert arg < len(code.co_names)
        elif "_FAST" in name or "DEREF" in name or name in ("MAKE_CELL", "LOAD_CLOSURE"):
            assert arg < locals_count
        elif name == "CALL" and extra >= 0:
            assert len(code.co_consts[extra]) <= arg
    assert all(handler in starts for _, _, handler, _, _ in _engine.regions(code))


NAMED = {dis.opname[number] for number in dis.hasname} | {"LOAD_METHOD"}
