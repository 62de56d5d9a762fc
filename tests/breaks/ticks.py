"""What programs call where they are to break. `tick` is one of three, as the test sets it: print
itself, a print some frames deeper, or Python code that breaks nothing."""

from typing import Any

seen: list[Any] = []


def printed(*what: Any) -> None:
    print(*what)


def _deeper(what: tuple[Any, ...]) -> None:
    printed(*what)


def deep(*what: Any) -> None:
    _deeper(what)


def quiet(*what: Any) -> None:
    seen.append(len(what))


KINDS = {"print": print, "deep": deep, "quiet": quiet}
tick: Any = print
