"""Frames taken at an instruction boundary and put back later: what tracing and breaks stand on.

>>> picture = take(function, (1, 2), boundary=10)
>>> picture.locals, picture.stack
>>> resume(picture)            # the rest of the call, in a fresh frame
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from stator import _engine
from stator._engine import NULL, Image

__all__ = ["NULL", "Image", "Returned", "put_generator", "resume", "step", "take", "take_generator"]

Engine = Literal["stator", "cpython"]


class Returned(NamedTuple):
    """The function came to its end before the boundary."""

    value: Any


def _outcome(pair: tuple[Image | None, Any]) -> Image | Returned:
    image, value = pair
    return Returned(value) if image is None else image


def take(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    boundary: int = 1,
) -> Image | Returned:
    """Call fn in the interpreter up to its n-th instruction boundary and take its frames there.

    Boundaries are counted in fn's frame and in the Python functions that it calls directly; the
    image of such a callee has its caller's image in `.caller`. The frames are abandoned: no
    handler, `finally` or `__exit__` of theirs runs.
    """
    keywords = dict(kwargs) if kwargs is not None else None
    return _outcome(_engine.take_image(fn, tuple(args), keywords, boundary))


def _resume(image: Image, engine: Engine, boundary: int, **given: Any) -> Image | Returned:
    if engine not in ("stator", "cpython"):
        raise ValueError(f"engine must be 'stator' or 'cpython', not {engine!r}")
    return _outcome(
        _engine.resume_image(image, cpython=engine == "cpython", boundary=boundary, **given)
    )


def resume(image: Image, *, engine: Engine = "stator", **given: Any) -> Any:
    """Put the frames back, callers first, and let them run to their end; the outermost's value.

    An image that awaits a value (a caller's) takes `value=` or `exception=`. The image is spent.
    """
    outcome = _resume(image, engine, 0, **given)
    assert isinstance(outcome, Returned)
    return outcome.value


def step(image: Image, **given: Any) -> Image | Returned:
    """Put the frames back, run one instruction for real, and take them again."""
    return _resume(image, "stator", 2 - image.awaiting, **given)


def take_generator(generator: Any) -> Image:
    """The image of a generator (or coroutine) at rest; it is severed, and runs no code any more."""
    return _engine.take_generator(generator)


def put_generator(image: Image) -> Any:
    """A new generator, suspended where the other one was."""
    return _engine.put_generator(image)
