"""In a process of its own: a program again and again, each time with another allocation failing.

    python memory_child.py program engine

Prints how many allocations failed. A wrong result, another exception than MemoryError, or a hook
left behind ends it with a message; a crash is for the parent to see (the last line on stderr says
where).
"""

import _testcapi
import gc
import sys

from fault_programs import fresh

from stator import _engine, evaluate


class Token:
    pass


def plain(main, log, token):
    return main(log, token)


def by_image(main, log, token):
    image, value = _engine.take_image(main, (log, token), {}, 40)
    if image is None:
        return value
    return _engine.resume_image(image)[1]


ENGINES = {"plain": plain, "evaluate": evaluate, "image": by_image}
QUIET = 40  # so many runs in a row without a failure, and all allocations were reached


def once(engine, main, token, at):
    """The value, or "no memory"; with the at-th allocation failing."""
    log = []
    _testcapi.set_nomemory(at, at + 1)
    try:
        return engine(main, log, token)
    except MemoryError:
        return "no memory"
    except SystemError as error:
        # CPython's own: an exception that could not even be made is lost, in a plain run, too.
        if "without setting an exception" not in str(error):
            raise
        return "no memory"
    finally:
        _testcapi.remove_mem_hooks()


def check(engine, name, expected, at):
    token = Token()
    gc.collect()
    before = sys.getrefcount(token)
    value = once(engine, fresh(name), token, at)
    if value != "no memory" and value != expected:
        sys.exit(f"{name}, allocation {at}: {value!r} instead of {expected!r}")
    if _engine.hook_installed():
        sys.exit(f"{name}, allocation {at}: the hook was left behind")
    if engine(fresh(name), [], Token()) != expected:
        sys.exit(f"{name}, allocation {at}: the next run went wrong")
    gc.collect()
    if sys.exc_info()[0] is not None:
        sys.exit(f"{name}, allocation {at}: an exception is still being handled")
    if sys.getrefcount(token) != before:
        sys.exit(f"{name}, allocation {at}: {sys.getrefcount(token) - before} references too many")
    return value == "no memory"


def main(name, engine):
    expected = plain(fresh(name), [], Token())
    failed = quiet = at = 0
    while quiet < QUIET:
        at += 1
        print(f"allocation {at}", file=sys.stderr, flush=True)
        if check(ENGINES[engine], name, expected, at):
            failed, quiet = failed + 1, 0
        else:
            quiet += 1
    print(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
