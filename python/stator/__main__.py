"""`python -m stator`: runs a script or a module with Stator installed as torch's compiler."""

import sys
from typing import Any

import stator
from stator import _engine, _program

USAGE = """\
usage: python -m stator (script.py | folder | -m module | -c code) [args ...]

Runs the program as `python` would, with stator.install() called before it: torch.compile in it is
done by Stator. Processes that it starts anew (multiprocessing's "spawn", torchrun) need a call of
stator.install() of their own."""


def _run(target: Any, scope: Any) -> int:
    try:
        stator.install()
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print("python -m stator needs torch: pip install 'stator[torch]'", file=sys.stderr)
        return 1
    return _engine.run_program(target, scope, False)


if __name__ == "__main__":
    _program.main_and_exit(USAGE, _run)
