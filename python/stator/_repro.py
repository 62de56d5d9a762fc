"""`stator.repro`, which needs torch only when somebody calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def repro(
    f: Callable[..., Any],
    *args: Any,
    backend: str | Callable[..., Any] = "inductor",
    path: str = "repro.py",
    **kwargs: Any,
) -> str | None:
    """Calls `f` compiled, once, and tries `backend` on each graph beside the graph itself. For the
    first one with which the backend fails, or gives other results, it writes a script to `path`
    that shows the same with torch alone. Returns the path; None if nothing is wrong.

    The script has the graph, the sizes, strides and dtypes of the inputs, and torch's settings; not
    the values of the inputs. `backend` and `path` are not passed on to `f`.
    """
    from stator import _repro_script

    return _repro_script.write(f, args, kwargs, backend, path)
