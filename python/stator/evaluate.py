"""`python -m stator.evaluate`: runs a script or a module in Stator's interpreter."""

import sys

from stator import _engine

USAGE = "usage: python -m stator.evaluate (script.py | folder | -m module | -c code) [args ...]"

if __name__ == "__main__":
    from stator import _program

    _program.main_and_exit(USAGE, _engine.run_program)
else:
    # `import stator.evaluate` must not hide the function of that name.
    sys.modules[__name__] = _engine.evaluate  # type: ignore[assignment]
