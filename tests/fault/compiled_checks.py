"""What must hold around a compiled call in which something failed."""

import copy
import gc
import sys

from compiled_programs import State, fresh

import stator
from stator import _engine


class Token:
    pass


class Failure(AssertionError):
    pass


# How often a function was called before, and with which arguments the call is that fails.
PHASES = {
    "first": (0, 1),  # traced, planned, sealed, published and run
    "warm": (1, 1),
    "again": (1, 2),  # no entry fits: reasons are written down, and it is traced once more
}


# Programs that break: what a piece has written stays when the next one fails.
PIECES = "broken", "raising"


def compiled(program):
    return stator.compile(program.main, backend="eager", _keep_empty=True)


def call(f, args):
    """The value, or the text of the exception that the program raises by itself."""
    try:
        return f(*args)
    except LookupError as error:
        return str(error)


def prepared(name, phase, engine=compiled):
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


def check_rows(state, value, done, expected):
    """The call returned this value; or it is not done, and then each object is as it was, or as it
    should be: a container could not grow, and the writes behind it were not made."""
    before, after, expected_value = expected
    if done and state.text(value) != expected_value:
        raise Failure(f"{state.text(value)}\n  instead of\n{expected_value}")
    fine = (after,) if done else (before, after)
    for i, row in enumerate(state.rows()):
        if not any(row == rows[i] for rows in fine):
            raise Failure(f"{row}\n  instead of\n{fine[0][i]}")


def check_engine():
    if _engine.hook_installed():
        raise Failure("the hook was left behind")
    if not gc.isenabled():
        raise Failure("collection stayed off")
    if sys.exc_info()[0] is not None:
        raise Failure("an exception is still being handled")


def check_later(program, f):
    """Calls without failures do what the function does plainly, with the same state."""
    for number in (1, 2, 1):
        restore = save(program)
        found = seen(program, f, number)
        restore()
        plain = seen(program, program.main, number)
        if found != plain:
            rows = [f"{a}\n  instead of\n{b}" for a, b in zip(found, plain) if a != b]
            raise Failure("later: " + "\n".join(rows))


def seen(program, f, number):
    token = Token()
    args = program.make(number, token)
    state = State(program, args, token)
    return [state.text(call(f, args)), *state.rows()]


def save(program):
    """A function that puts the program's globals and cells back as they are now."""
    names = {k: v for k, v in program.names.items() if type(v) in (list, int)}
    saved = copy.deepcopy(names)
    cells = program.names["count"].__closure__ if "count" in program.names else ()
    contents = [cell.cell_contents for cell in cells]

    def restore():
        for k, v in saved.items():
            if type(v) is list:
                names[k][:] = v
            else:
                program.names[k] = v
        for cell, content in zip(cells, contents):
            cell.cell_contents = content

    return restore


def check_dropped(token):
    gc.collect()
    if sys.getrefcount(token) > 3:  # the caller's, the argument, and the one that counts
        raise Failure(f"{sys.getrefcount(token) - 3} references to the token stay")


def how(f):
    """What the compiler did."""
    return str(f.metrics)
