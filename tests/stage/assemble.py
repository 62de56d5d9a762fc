"""Code objects from hand-written instructions of the running Python, right or wrong."""

import dis
import opcode
from types import CodeType
from typing import Any


def caches(name: str) -> int:
    """Units of inline cache behind an opcode; the table is a list by number or a dict by name."""
    entries = opcode._inline_cache_entries
    return entries.get(name, 0) if isinstance(entries, dict) else entries[dis.opmap[name]]


def assemble(*instructions: Any) -> bytes:
    """Each is a name or (name, argument below 256)."""
    code = bytearray()
    for instruction in instructions:
        name, arg = (instruction, 0) if isinstance(instruction, str) else instruction
        code += bytes([dis.opmap[name], arg]) + bytes(2 * caches(name))
    return bytes(code)


def table(*rows: tuple[int, int, int, int, bool]) -> bytes:
    """An exception table of (start, end, target, depth, lasti), by code units below 64 * 64."""

    def number(value: int, mark: int = 0) -> bytes:
        if value < 64:
            return bytes([value | mark])
        return bytes([value >> 6 | 0x40 | mark, value & 63])

    return b"".join(
        number(start, 0x80) + number(end - start) + number(target) + number(depth << 1 | lasti)
        for start, end, target, depth, lasti in rows
    )


def template(a, b):
    c = (a, "names")
    return lambda: (c, b.attribute)


def make(*instructions: Any, **changes: Any) -> CodeType:
    """`template` with other instructions: constants None, 1 and three tuples; two names."""
    settings = dict(
        co_code=assemble(*instructions),
        co_consts=(None, 1, ("x",), ("x", "y", "z"), ("x", 1)),
        co_names=("attribute", "other"),
        co_stacksize=4,
        co_exceptiontable=b"",
    )
    return template.__code__.replace(**{**settings, **changes})
