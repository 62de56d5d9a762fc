"""In a process of its own: a compiled call again and again, each time with another allocation
failing.

    python compiled_child.py program phase [step]

Of the allocations behind the first ones only every `step`-th fails. Prints how many failures had an effect. A wrong result, something half written, another exception
than MemoryError, or anything left behind ends it with a message; a crash is for the parent to see
(the last line on stderr says where).
"""

import _testcapi
import sys

from compiled_checks import (
    PIECES,
    Failure,
    call,
    check_dropped,
    check_engine,
    check_later,
    check_rows,
    how,
    plain_rows,
    prepared,
)

ALL = 100  # so many at the beginning fail, whatever the step
QUIET = 40  # so many runs in a row without an effect, and all allocations were reached
LOST = "without setting an exception", "error return without exception set"


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


def describe_failing(f, at):
    _testcapi.set_nomemory(at, at + 1)
    try:
        return bool(f.metrics and f.compiler.entries())
    except MemoryError:
        return False
    finally:
        _testcapi.remove_mem_hooks()


def check_call(name, phase, expected, usual, at):
    program, f, args, state = prepared(name, phase)
    done, value = call_failing(f, args, at)
    effect = not done or how(f) != usual
    check_engine()
    if done or name not in PIECES:
        check_rows(state, value, done, expected)
    check_later(program, f)
    token = state.token
    del value, f, program, args, state
    check_dropped(token)
    return effect


def check_description(name, at):
    program, f, args, state = prepared(name, "first")
    call(f, args)
    done = describe_failing(f, at)
    check_engine()
    if not f.metrics or not f.compiler.entries():
        raise Failure("no description")
    check_later(program, f)
    return not done


def main(name, phase, step="1"):
    usual = expected = None
    if phase != "described":
        _, f, args, _ = prepared(name, phase)
        call(f, args)
        usual, expected = how(f), plain_rows(name, phase)
    effects = quiet = at = 0
    while quiet < QUIET:
        at += 1 if at < ALL else int(step)
        print(f"allocation {at}", file=sys.stderr, flush=True)
        try:
            if phase == "described":
                effect = check_description(name, at)
            else:
                effect = check_call(name, phase, expected, usual, at)
        except Failure as failure:
            sys.exit(f"{name}, {phase}, allocation {at}: {failure}")
        effects, quiet = (effects + 1, 0) if effect else (effects, quiet + 1)
    print(effects)


if __name__ == "__main__":
    main(*sys.argv[1:])
