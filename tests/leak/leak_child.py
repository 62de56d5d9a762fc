"""In a process of its own: evaluate one small thing very often, and print what has grown.

    python leak_child.py kind times

Prints objects, blocks of memory and kilobytes that there are more than before.
"""

import contextlib
import gc
import os
import sys

from stator import _engine, evaluate


class Box:
    def __init__(self, value):
        self.value = value

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return True

    def __getattr__(self, name):
        return len(name)

    def method(self, *more, **named):
        return self.value + len(more) + len(named)


class Derived(Box):
    def __init__(self, value):
        super().__init__(value)
        self.me = self  # a cycle


def work(a, b=2, *rest, c=3, **more):
    return a + b + c + len(rest) + len(more)


def calls():
    return work(1) + work(1, 2, 3, c=4, d=5) + work(*(1, 2), **{"e": 3})


def exceptions():
    try:
        try:
            raise ValueError("a")
        except ValueError as error:
            raise KeyError("b") from error
        finally:
            work(1)
    except KeyError as error:
        return str(error.__cause__)


def escaping():
    raise LookupError([1, 2, 3])


def groups():
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
    except* ValueError:
        pass
    except* TypeError as group:
        len(group.exceptions)


def numbers(n):
    try:
        for i in range(n):
            yield i
    finally:
        work(n)


def delegating():
    return (yield from numbers(3))


def generators():
    gen = numbers(5)
    next(gen)
    return sum(delegating()) + sum(x for x in numbers(2))


def closures():
    cell = [1]

    def inner():
        nonlocal cell
        cell = [*cell, inner]
        return cell

    return len(inner())


def classes():
    with Derived(3) as box:
        box.value += box.anything
        raise KeyError(box.method(1, k=2))


def making():
    class Local(Box):
        shared = [Box]

        @property
        def double(self):
            return self.value * 2

    return Local(2).double


def comprehensions():
    rows = [[x * y for x in range(3)] for y in range(3)]
    return {k: v for k, v in enumerate(rows)}, {tuple(r) for r in rows}


def matching():
    match {"a": [1, 2, 3], "b": Box(1)}:
        case {"a": [first, *rest], **others}:
            return f"{first!r:>4}", rest, others


class Ready:
    def __await__(self):
        return (yield self)


async def waiting():
    return [await Ready(), await Ready()]


def coroutines():
    coro = waiting()
    coro.send(None)
    try:
        coro.send(1)
        coro.send(2)
    except StopIteration as stop:
        return stop.value


def abandoned():
    """A generator and a coroutine that are dropped in the middle."""
    gen, coro = numbers(3), waiting()
    next(gen)
    coro.send(None)


def importing():
    import math
    from os import path

    return math.pi, path, exec("x = 1 + 1"), eval("2 + 2")


def natively():
    return sorted(map(lambda x: -x, [3, 1, 2]), key=lambda x: work(x)), callable(Box(1))


def images(at=[0]):
    """Taken at one boundary after the other, and put back in one engine or the other."""
    at[0] = at[0] % 120 + 1
    image, _ = _engine.take_image(exceptions, (), {}, at[0])
    if image is not None:
        _engine.resume_image(image, cpython=at[0] % 2 == 0)


def dropped_images(at=[0]):
    at[0] = at[0] % 150 + 1
    _engine.take_image(generators, (), {}, at[0])


def hops(seed=[0]):
    seed[0] += 1
    _engine.evaluate_hopping(exceptions, (), {}, seed[0], 5)
    _engine.evaluate_hopping(generators, (), {}, seed[0], 5)


def decoding():
    _engine.decoded_at(matching.__code__.replace(co_name="copy"))
    return _engine.flow(work.__code__.replace(co_name="copy"))


EVALUATED = [
    calls, exceptions, escaping, groups, generators, closures, classes, making, comprehensions,
    matching, coroutines, abandoned, importing, natively,
]  # fmt: skip
DRIVEN = [images, dropped_images, hops, decoding]
KINDS = {kind.__name__: kind for kind in EVALUATED + DRIVEN}


def repeat(kind, times):
    evaluated = kind in EVALUATED
    for _ in range(times):
        with contextlib.suppress(LookupError):
            evaluate(kind) if evaluated else kind()


def size():
    gc.collect()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    kilobytes = pages * os.sysconf("SC_PAGE_SIZE") // 1024
    return len(gc.get_objects()), sys.getallocatedblocks(), kilobytes


def main(name, times):
    kind = KINDS[name]
    repeat(kind, max(int(times) // 10, 500))
    size()
    before = size()
    repeat(kind, int(times))
    after = size()
    print(*(b - a for a, b in zip(before, after, strict=True)))


if __name__ == "__main__":
    main(*sys.argv[1:])
