"""In a process of its own: a compiled call again and again, each time with another allocation
failing.

    python compiled_child.py program phase

Prints how many failures had an effect. A wrong result, something half written, another exception
than MemoryError, or anything left behind ends it with a message; a crash is for the parent to see
(the last line on stderr says where).
"""

import _testcapi
import copy
import gc
import sys

from compiled_programs import State, fresh

import stator
from stator import _engine


class Token:
    pass


class Failure(Exception):
    pass


def compiled(program):
    return stator.compile(program.main, backend="eager", _keep_empty=True)


# How often a function was called before, and with which arguments the call is that fails.
PHASES = {
    "first": (0, 1),  # traced, planned, sealed, published and run
    "warm": (1, 1),
    "again": (1, 2),  # no entry fits: reasons are written down, and it is traced once more
}
QUIET = 40  # so many runs in a row without an effect, and all allocations were reached
LOST = "without setting an exception", "error return without exception set"


def call(f, args):
    """The value, or the exception's text."""
    try:
        return f(*args)
    except LookupError as error:
        return str(error)


def call_failing(f, args, at):
    """Whether there was memory, and the value; with the at-th allocation failing."""
    _testcapi.set_nomemory(at, at + 1)
    try:
        return True, call(f, args)
    except MemoryError:
        return False, None
    except SystemError as error:
        # CPython's own: an exception that could not even be made is lost, in a plain run, too.
        if not any(text in str(error) for text in LOST):
            raise
        return False, None
    finally:
        _testcapi.remove_mem_hooks()


def prepared(name, phase, engine):
    """The function, its arguments and all that they reach, just before the call that counts."""
    program, token = fresh(name), Token()
    f = engine(program)
    before, number = PHASES[phase]
    for _ in range(before):
        call(f, program.make(1, Token()))
    args = program.make(number, token)
    return program, f, args, State(program, args, token)


def plain_rows(name, phase):
    """Before and after the call, and the value, in plain Python."""
    _, f, args, state = prepared(name, phase, lambda program: program.main)
    before = state.rows()
    value = call(f, args)
    return before, state.rows(), state.text(value)


def check_rows(state, value, there, expected):
    before, after, expected_value = expected
    found = state.rows()
    if there and state.text(value) != expected_value:
        raise Failure(f"{state.text(value)}\n  instead of\n{expected_value}")
    # Without memory a container could not grow, and writes behind it were not made; but each object
    # is as it was, or as it should be.
    fine = (after,) if there else (before, after)
    for i, row in enumerate(found):
        if not any(row == rows[i] for rows in fine):
            raise Failure(f"{row}\n  instead of\n{fine[0][i]}")


def check_engine():
    if _engine.hook_installed():
        raise Failure("the hook was left behind")
    if not gc.isenabled():
        raise Failure("collection stayed off")
    if sys.exc_info()[0] is not None:
        raise Failure("an exception is still being handled")


def check_later(program, f, number):
    """A call without failures does what the function does plainly, with the same state."""
    token = Token()
    args = program.make(number, token)
    memo = {id(token): token}
    names = {k: v for k, v in program.names.items() if type(v) in (list, int)}
    saved = copy.deepcopy(names, memo)
    cells = program.names["count"].__closure__ if "count" in program.names else ()
    contents = [cell.cell_contents for cell in cells]
    state = State(program, args, token)
    found = state.text(call(f, args)), state.rows()
    for k, v in saved.items():
        if type(v) is list:
            names[k][:] = v
        else:
            program.names[k] = v
    for cell, content in zip(cells, contents):
        cell.cell_contents = content
    args = program.make(number, token)
    state = State(program, args, token)
    plain = state.text(call(program.main, args)), state.rows()
    if found != plain:
        rows = zip((found[0], *found[1]), (plain[0], *plain[1]))
        raise Failure("later: " + "\n".join(f"{a}\n  instead of\n{b}" for a, b in rows if a != b))


def how(f):
    """What the compiler did."""
    return str(f.metrics)


def check(name, phase, expected, usual, at):
    program, f, args, state = prepared(name, phase, compiled)
    token = state.token
    there, value = call_failing(f, args, at)
    check_engine()
    check_rows(state, value, there, expected)
    effect = not there or how(f) != usual
    for number in (1, 2, 1):
        check_later(program, f, number)
    del value, f, program, args, state
    gc.collect()
    if sys.getrefcount(token) > 2:
        raise Failure(f"{sys.getrefcount(token) - 2} references to the token stay")
    return effect


def main(name, phase):
    program, f, args, _ = prepared(name, phase, compiled)
    call(f, args)
    usual = how(f)
    expected = plain_rows(name, phase)
    effects = quiet = at = 0
    while quiet < QUIET:
        at += 1
        print(f"allocation {at}", file=sys.stderr, flush=True)
        try:
            effect = check(name, phase, expected, usual, at)
        except Failure as failure:
            sys.exit(f"{name}, {phase}, allocation {at}: {failure}")
        effects, quiet = (effects + 1, 0) if effect else (effects, quiet + 1)
    print(effects)


if __name__ == "__main__":
    main(*sys.argv[1:])
