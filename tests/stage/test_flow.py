"""Handled exceptions and live variables agree with a slow search and with hand-made cases."""

import random
from types import CodeType

import pytest

from stator import _engine
from tests.stage.corpus import codes, library_sources

QUIET = {"NOP", "PUSH_NULL", "COPY", "SWAP", "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_AND_CLEAR"}
QUIET |= {"COPY_FREE_VARS", "LOAD_ASSERTION_ERROR", "PUSH_EXC_INFO", "END_SEND"}
ENDS = {"JUMP", "RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"}
JUMPS = {"JUMP", "FOR_ITER", "SEND", "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"}
JUMPS |= {f"POP_JUMP_IF_{condition}" for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")}
CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}


class Graph:
    """Edges and uses, from the tuples that decode gives; searched path by path."""

    def __init__(self, code: CodeType) -> None:
        self.code, self.rows, regions = code, _engine.decode(code, False), _engine.regions(code)
        self.names = [*code.co_varnames]
        self.names += [name for name in code.co_cellvars if name not in code.co_varnames]
        self.names += code.co_freevars
        starts: dict[int, int] = {}
        for index, row in enumerate(self.rows):
            starts.setdefault(row[3], index)
        self.next: list[list[int]] = []
        self.handler: list[int | None] = []
        for index, (name, _, extra, _, at, _, _) in enumerate(self.rows):
            targets = [starts[extra]] if name in JUMPS else []
            self.next.append(targets + ([] if name in ENDS else [index + 1]))
            found = [starts[row[2]] for row in regions if row[0] <= at < row[1]]
            self.handler.append(found[0] if found and name not in QUIET else None)

    def reads(self, index: int, local: int) -> bool:
        name, arg = self.rows[index][:2]
        if name in CALLS and "__class__" in self.code.co_freevars:  # it may be super()
            if self.names[local] == "__class__" and local >= len(self.names) - self.free:
                return True
            return local == 0 and self.code.co_argcount > 0
        is_local = "_FAST" in name or "DEREF" in name or name in ("MAKE_CELL", "LOAD_CLOSURE")
        return is_local and arg == local and name != "STORE_FAST"

    @property
    def free(self) -> int:
        return len(self.code.co_freevars)

    def writes(self, index: int, local: int) -> bool:
        name, arg = self.rows[index][:2]
        if name == "COPY_FREE_VARS":
            return local >= len(self.names) - arg
        return name == "STORE_FAST" and arg == local

    def is_live(self, index: int, local: int) -> bool:
        """Whether a path leads to a read before any write."""
        todo, seen = [index], {index}
        while todo:
            now = todo.pop()
            if self.reads(now, local):
                return True
            following = [] if self.writes(now, local) else self.next[now]
            if self.handler[now] is not None:
                following = [*following, self.handler[now]]
            todo += [other for other in following if other not in seen]
            seen.update(following)
        return False


def check_live(code: CodeType) -> None:
    graph = Graph(code)
    for index, (_, _, live) in enumerate(_engine.flow(code)):
        wanted = [local for local in range(len(graph.names)) if graph.is_live(index, local)]
        assert live == wanted, (code, graph.rows[index])


def test_liveness_agrees_with_a_search_of_every_path() -> None:
    small = [
        code
        for code in codes(library_sources(60))
        if 4 < len(code.co_code) < 1200 and code.co_varnames + code.co_freevars
    ]
    for code in random.Random(7).sample(small, 250):
        check_live(code)


def live_at(code: CodeType, name: str, occurrence: int = 0) -> set[str]:
    """Live variables before the given occurrence of an instruction."""
    names = Graph(code).names
    rows = [index for index, row in enumerate(_engine.decode(code)) if row[0] == name]
    return {names[local] for local in _engine.flow(code)[rows[occurrence]][2]}


def test_variable_is_dead_after_its_last_read() -> None:
    def f(a, b):
        c = a + 1
        return b(c)

    assert live_at(f.__code__, "BINARY_OP") == {"b"}
    assert live_at(f.__code__, "STORE_FAST") == {"b"}
    assert live_at(f.__code__, "CALL") == set()


def test_loop_keeps_alive_what_the_next_round_reads() -> None:
    def f(a, b):
        for x in a:
            b(x)

    assert live_at(f.__code__, "CALL") == {"b"}
    assert live_at(f.__code__, "FOR_ITER") == {"b"}


def test_handler_keeps_alive_what_it_reads() -> None:
    def f(a, b):
        try:
            b = a()
        except ValueError:
            return b

    assert live_at(f.__code__, "CALL") == {"b"}


def test_handler_keeps_nothing_alive_outside_of_its_region() -> None:
    def f(a, b):
        a()
        b = 1
        try:
            a()
        except ValueError:
            return b

    assert live_at(f.__code__, "CALL") == {"a"}


def test_delete_reads_and_then_kills() -> None:
    def f(a):
        del a
        g()

    assert live_at(f.__code__, "DELETE_FAST") == {"a"}
    assert live_at(f.__code__, "CALL") == set()


def test_cells_stay_alive_while_anything_reads_or_writes_them() -> None:
    def f(a):
        a = g()
        return lambda: a

    assert live_at(f.__code__, "CALL") == {"a"}  # the store goes into the cell, so the cell is read


def test_super_keeps_self_and_class_alive() -> None:
    class C:
        def f(self, x):
            __class__
            other = super
            g(x)
            return other()

    assert live_at(C.f.__code__, "CALL", 0) == {"self", "other", "__class__"}
    assert live_at(C.f.__code__, "CALL", 1) == {"self", "__class__"}


def mark(handled: int) -> None:
    """In the programs below: how many exceptions are being handled here."""


def in_except():
    mark(0)
    try:
        mark(0)
    except ValueError:
        mark(1)
    except (TypeError, KeyError) as e:
        mark(1)
        try:
            mark(1)
        except OSError:
            mark(2)
            raise
        mark(1)
    else:
        mark(0)
    mark(0)


def in_finally(x):
    for i in x:
        try:
            if mark(0):
                return i
            if i:
                continue
            if x:
                break
        except OSError as e:
            try:
                return mark(1)
            except KeyError:
                return [mark(2), i]
    mark(0)


def in_with(x):
    try:
        with x as y, y:
            mark(0)
    except ValueError:
        with x:
            mark(1)
            return 5
        mark(1)
    mark(0)


def in_except_star():
    try:
        mark(0)
    except* ValueError:
        mark(1)
    except* TypeError as e:
        mark(1)
    mark(0)


def in_generator(x):
    try:
        yield mark(0)
    except ValueError:
        yield mark(1)
        yield from x(mark(1))
    finally:
        pass
    mark(0)


async def in_coroutine(x):
    async with x:
        mark(0)
        try:
            await x(mark(0))
        except ValueError:
            async for y in x:
                mark(1)
                await y
            return mark(1)
    mark(0)


MARKED = [in_except, in_finally, in_with, in_except_star, in_generator, in_coroutine]


@pytest.mark.parametrize("function", MARKED, ids=lambda f: f.__name__)
def test_handled_exceptions_are_counted_as_the_source_nests(function) -> None:
    code, seen = function.__code__, set()
    rows, flow = _engine.decode(code), _engine.flow(code)
    for index, row in enumerate(rows):
        if row[0] == "LOAD_GLOBAL" and code.co_names[row[1]] == "mark":
            constant = next(r for r in rows[index:] if r[0] == "LOAD_CONST")
            wanted = code.co_consts[constant[1]]
            depth, handled, _ = flow[index]
            assert len(handled) == wanted, row
            assert all(slot < depth for slot in handled)
            assert handled == sorted(handled, reverse=True)
            seen.add(wanted)
    assert seen >= {0, 1}


def test_pop_except_pops_what_was_marked() -> None:
    for code in codes(library_sources(150)):
        rows, flow = _engine.decode(code), _engine.flow(code)
        for index, row in enumerate(rows):
            depth, handled, _ = flow[index]
            if row[0] != "POP_EXCEPT" or depth < 0:
                continue
            before = rows[index - 1]
            copied = before[0] == "COPY" and handled[0] == depth - 1 - before[1]
            assert handled[0] == depth - 1 or copied, (code, row)
