"""`make demo`: a program run by the interpreter next to CPython, its canonical instructions, and an
image of a frame taken in the middle of it and put back."""

import sys
import time
from collections.abc import Callable
from typing import Any

import stator
from stator import _engine, image


def shares(total: int, weights: list[int]) -> dict[str, float]:
    """Split a total by weights; a zero total of weights is somebody's mistake."""
    result = {}
    try:
        for number, weight in enumerate(weights):
            result[f"share {number}"] = total * weight / sum(weights)
    except ZeroDivisionError as error:
        result["error"] = float("nan")
        error.add_note(f"weights were {weights}")
    return result


def primes(limit: int) -> list[int]:
    """A sieve as a chain of generators: many frames, resumed again and again."""

    def numbers() -> Any:
        number = 2
        while True:
            yield number
            number += 1

    def without(multiples_of: int, source: Any) -> Any:
        return (n for n in source if n % multiples_of)

    found: list[int] = []
    source = numbers()
    while (prime := next(source)) < limit:
        found.append(prime)
        source = without(prime, source)
    return found


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _side_by_side() -> None:
    _title(
        "1. The same program, run by CPython and by Stator's interpreter on CPython's own frames"
    )
    plain, evaluated = primes(200), stator.evaluate(primes, 200)
    print(f"CPython  {plain[:6]} … {plain[-3:]}")
    print(f"Stator   {evaluated[:6]} … {evaluated[-3:]}")
    print(f"equal: {plain == evaluated}")
    for _ in range(3):
        primes(2000)
    ours = min(_seconds(lambda: stator.evaluate(primes, 400)) for _ in range(5))
    theirs = min(_seconds(lambda: primes(2000)) for _ in range(5))
    times = f"CPython {theirs * 1e3:.1f} ms, Stator {ours * 1e3:.1f} ms"
    print(f"best of 5: {times}, {ours / theirs:.1f}x")
    print(f"the eval hook is off again: {not _engine.hook_installed()}")


def _instructions() -> None:
    _title("2. Its canonical instructions: one set for Python 3.11, 3.12 and 3.13")
    stator.dis(shares)


def _there_and_back() -> None:
    _title("3. A frame taken in the middle of that function, and put back")
    boundary = 1
    while True:
        picture = image.take(shares, (10, [1, 3]), boundary=boundary)
        assert isinstance(picture, image.Image)
        if picture.locals.get("number") == 1 and len(picture.stack) > 2:
            break
        boundary += 1
    print(f"boundary {boundary}: {picture}")
    print(f"  locals  {picture.locals}")
    print(f"  stack   {picture.stack}")
    after = image.step(picture)
    assert isinstance(after, image.Image)
    print(f"one instruction later: {after}")
    print(f"  stack   {after.stack}")
    print(f"the rest, by CPython's own eval: {image.resume(after, engine='cpython')}")
    print(f"without any of this:             {shares(10, [1, 3])}")


if __name__ == "__main__":
    print(f"Stator {stator.__version__} on Python {sys.version.split()[0]}")
    _side_by_side()
    _instructions()
    _there_and_back()
