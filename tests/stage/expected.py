"""What decoding must give, worked out from `dis` alone: the opcode tables written a second time.

Each known difference between a version's layout and the canonical one is named here, with why.
"""

import dis
import sys
from types import CodeType
from typing import Any, NamedTuple

VERSION = sys.version_info[:2]
BOUNDARY, POLLS = 1, 2


class Expected(NamedTuple):
    name: str
    arg: int
    extra: int  # or the target's offset
    start: int
    at: int
    flags: int
    effect: int | None  # of falling through; None where it never does
    jump_effect: int | None  # None where it does not jump


# Reasons: 3.11's conditional jumps have a direction, canonical ones a target.
CONDITIONAL = {
    f"POP_JUMP_{direction}_{condition}": f"POP_JUMP_{condition}"
    for direction in ("FORWARD", "BACKWARD")
    for condition in ("IF_TRUE", "IF_FALSE", "IF_NONE", "IF_NOT_NONE")
}
RENAMED = {
    **CONDITIONAL,
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "JUMP_BACKWARD_NO_INTERRUPT": "JUMP",
    # Formatting with and without a spec is one instruction, with the spec in its extra.
    "FORMAT_SIMPLE": "FORMAT_VALUE",
    "FORMAT_WITH_SPEC": "FORMAT_VALUE",
}
if VERSION == (3, 11):
    RENAMED["LOAD_FAST"] = "LOAD_FAST_CHECK"  # 3.11's own looks for unbound variables

INTRINSICS_1 = {
    1: ("PRINT_EXPR", 1),
    2: ("IMPORT_STAR", 1),
    3: ("STOPITERATION_ERROR", 0),
    4: ("ASYNC_GEN_WRAP", 0),
    5: ("UNARY_POSITIVE", 0),
    6: ("LIST_TO_TUPLE", 0),
}
INTRINSICS_2 = {1: ("PREP_RERAISE_STAR", 0)}
# END_FOR: how many it pops is in the extra, as the versions differ.
END_FOR_POPS = {(3, 12): 2, (3, 13): 1}.get(VERSION, 0)
# At the end of an iterator CPython goes on behind these, having popped the iterator itself.
FOR_ITER_SKIPS = {(3, 12): ["END_FOR"], (3, 13): ["END_FOR", "POP_TOP"]}.get(VERSION, [])


def _arguments(name: str, oparg: int) -> tuple[int, int]:
    """Argument and extra of what is neither a jump nor a call."""
    if name in ("LOAD_GLOBAL",):
        return oparg >> 1, oparg & 1
    if name == "LOAD_SUPER_ATTR":
        return oparg >> 2, oparg & 3
    if name == "UNPACK_EX":
        return oparg & 0xFF, oparg >> 8
    if name == "COMPARE_OP":
        if VERSION == (3, 13):
            return oparg >> 5, oparg >> 4 & 1
        return (oparg >> 4 if VERSION == (3, 12) else oparg), 0
    if name == "FORMAT_VALUE":
        return oparg & 3, int(bool(oparg & 4))
    if name == "FORMAT_WITH_SPEC":
        return 0, 1
    if name == "CALL_FUNCTION_EX":
        return 0, oparg & 1
    if name == "END_FOR":
        return 0, END_FOR_POPS
    return oparg, 0


def _effect(raw: dis.Instruction, jump: bool) -> int:
    return dis.stack_effect(raw.opcode, raw.arg, jump=jump)


def _fall_effect(raw: dis.Instruction) -> int | None:
    ends = ("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD")
    if raw.opname in ends or raw.opname.startswith("JUMP_BACKWARD"):
        return None
    if raw.opname == "RETURN_GENERATOR":
        return 1  # dis says 0 on 3.11 and 3.12, yet the first send pushes what POP_TOP then pops
    return _effect(raw, False)


def _jump_effect(raw: dis.Instruction) -> int:
    effect = _effect(raw, True)
    if raw.opname == "FOR_ITER":
        effect += sum(dis.stack_effect(dis.opmap[name]) for name in FOR_ITER_SKIPS)
    return effect


def _jump(raw: dis.Instruction, start: int) -> Expected:
    polls = raw.opname == "JUMP_BACKWARD" or raw.opname.startswith("POP_JUMP_BACKWARD")
    target = raw.argval
    if raw.opname == "FOR_ITER":
        target += 2 * len(FOR_ITER_SKIPS)
    # SEND: the argument tells that 3.11's drops the receiver itself.
    arg = int(raw.opname == "SEND" and VERSION == (3, 11))
    name = RENAMED.get(raw.opname, raw.opname)
    flags = BOUNDARY | (POLLS if polls else 0)
    falls = _fall_effect(raw)
    return Expected(name, arg, target, start, raw.offset, flags, falls, _jump_effect(raw))


def _pair(raw: dis.Instruction, start: int) -> list[Expected]:
    """Fused by 3.13's compiler; two canonical instructions at one place."""
    first, second = raw.opname.split("_FAST_")
    result = []
    for name, arg, flags in (first, raw.arg >> 4, BOUNDARY), (second, raw.arg & 15, 0):
        name = name.removesuffix("_FAST") + "_FAST"
        effect = dis.stack_effect(dis.opmap[name], arg)
        result.append(Expected(name, arg, 0, start, raw.offset, flags, effect, None))
    return result


def _plain(raw: dis.Instruction, start: int, names: int, effect: int | None) -> Expected:
    name, (arg, extra) = raw.opname, _arguments(raw.opname, raw.arg or 0)
    if name == "CALL":
        arg, extra = raw.arg, names
    elif name == "LOAD_ATTR" and VERSION >= (3, 12):  # the lowest bit makes it load a method
        name, arg = ("LOAD_METHOD" if raw.arg & 1 else name), raw.arg >> 1
    elif name in ("CALL_INTRINSIC_1", "CALL_INTRINSIC_2"):  # those that 3.11 has an opcode for
        known = INTRINSICS_1 if name.endswith("1") else INTRINSICS_2
        default = "INTRINSIC_" + name[-1], 0
        arg = 0 if raw.arg in known else raw.arg
        name, extra = known.get(raw.arg, default)
    name = RENAMED.get(name, name)
    return Expected(name, arg, extra, start, raw.offset, BOUNDARY, effect, None)


def expected(code: CodeType) -> list[Expected]:
    result: list[Expected] = []
    start, names, effect = None, -1, 0
    for raw in dis.get_instructions(code):
        start = raw.offset if start is None else start
        if raw.opname == "EXTENDED_ARG":
            continue
        if raw.opname in ("KW_NAMES", "PRECALL"):  # one instruction with the CALL behind them
            names = raw.arg if raw.opname == "KW_NAMES" else names
            effect += _effect(raw, False)
            continue
        if raw.opcode in dis.hasjrel or raw.opcode in dis.hasjabs:
            result.append(_jump(raw, start))
        elif raw.opname.count("_FAST") == 2:
            result += _pair(raw, start)
        else:
            falls = _fall_effect(raw)
            result.append(_plain(raw, start, names, None if falls is None else falls + effect))
        start, names, effect = None, -1, 0
    return result


def expected_regions(code: CodeType) -> list[tuple[Any, ...]]:
    table = dis.Bytecode(code).exception_entries
    return [(row.start, row.end, row.target, row.depth, row.lasti) for row in table]
