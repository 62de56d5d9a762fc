"""In a process of its own: cases of tests/trace again and again, each time with another allocation
failing in one of their calls.

    python cases_child.py step case...

Every `step`-th allocation fails, in each of the first three calls of a case. If there was memory
after all, the case must go on as in plain Python; if not, nothing more is asked. Prints how many
failures there were. A crash is for the parent to see (the last line on stderr says where).
"""

import _testcapi
import gc
import inspect
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "trace"))
from worlds import Compiled, Plain, difference, keep_empty, load_cases

from stator import _engine

CALLS = 3
# These see what is injected: they catch everything, or it falls into a finalizer (which CPython
# ignores) or into Py_ReprLeave (which then takes the list for one that is being printed).
SEE_IT = {
    "guard_attributes.finalizer_appears_later",
    "naive.break_is_not_swallowed",
    "naive.finalizer_of_a_displaced_object",
    "naive.finalizer_of_an_item_popped",
    "operators_text.exception_texts",
}
# CPython's own compiler and imports do not survive this.
COMPILING = "eval(", "exec(", "import ", "import_", "compile("
QUIET = 30  # so many runs in a row without an effect, and all allocations were reached


class NoMemory(BaseException):
    """Ends a case."""


def is_injected(error):
    """MemoryError, or what CPython makes of it where it cannot make one."""
    return isinstance(error, (MemoryError, SystemError)) or "can't allocate" in str(error)


class Failing(Compiled):
    def __init__(self, case, number, at):
        super().__init__(case, keep_empty)
        self.left, self.at, self.event, self.effect = number, at, -1, ""

    def outcome(self, f, args, kwargs):
        self.left -= 1
        if self.left != 0:
            return super().outcome(f, args, kwargs)
        self.event = len(self.log)
        _testcapi.set_nomemory(self.at, self.at + 1)
        try:
            outcome = "returned", f(*args, **kwargs)
        except Exception as error:
            outcome = "raised", error
        finally:
            _testcapi.remove_mem_hooks()
        self.effect = re.sub(r"<case module \d+>", "", str(getattr(f, "metrics", None)))
        if outcome[0] == "raised" and is_injected(outcome[1]):
            raise NoMemory(str(outcome[1]))
        return outcome


def run(case, number, at):
    failing = Failing(case, number, at)
    try:
        case(failing)
    except NoMemory as error:
        failing.effect = f"no memory {error}"
    return failing


def is_allowed(found, failing):
    """It ended early, or the case itself caught what was injected; but that only at once."""
    caught = "MemoryError" in found or "SystemError" in found
    caught = caught and found.startswith(f"event {failing.event}:")
    return caught or failing.effect.startswith("no memory")


def check(name, case, number, step):
    usual = run(case, number, 1 << 30)
    if usual.event < 0:
        return 0
    plain = Plain(case)
    case(plain)
    if difference(plain, usual):
        return 0  # not even right with all the memory there is: told by tests/trace
    at, quiet, effects = 1, 0, 0
    while quiet < QUIET:
        print(f"{name}, call {number}, allocation {at}", file=sys.stderr, flush=True)
        failing = run(case, number, at)
        if _engine.hook_installed() or not gc.isenabled() or sys.exc_info()[0] is not None:
            sys.exit("something was left behind")
        found = difference(plain, failing)
        if found and not is_allowed(found, failing):
            sys.exit(found)
        effect = failing.effect != usual.effect
        effects, quiet = (effects + 1, 0) if effect else (effects, quiet + 1)
        at += step
    return effects


def is_fit(name, case):
    try:
        source = inspect.getsource(case)
    except (OSError, TypeError):
        source = ""  # generated from a line of text
    return name not in SEE_IT and not any(word in source for word in COMPILING)


def main(step, *names):
    cases = load_cases("cases_")
    effects = 0
    for name in [name for name in names or cases if is_fit(name, cases[name])]:
        for number in range(1, CALLS + 1):
            effects += check(name, cases[name], number, int(step))
    print(effects)


if __name__ == "__main__":
    main(*sys.argv[1:])
