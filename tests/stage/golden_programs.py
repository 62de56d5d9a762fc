"""Functions whose listings are kept in golden/: one for each thing that a listing can show."""


def arithmetic(a, b):
    return (-a + b) ** 2 // 3 if a < b <= 10 and a is not b else not a


def calls(f, x, *args, **kwargs):
    f(x, 1, key=x, other=None)
    x.method(f"{x!r:>10} and {f}")
    return f(*args, **kwargs), len({"b": x, **kwargs}), print(*args)


def loops(items):
    total = 0
    for first, *rest in items:
        while rest:
            if rest.pop() in {"b", "a", "c"}:
                continue
            total += first
    return [x for x in items if x], {k: v for k, v in items}, total


def handlers(path):
    try:
        with open(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise RuntimeError("no file") from error
    finally:
        print("done")


def groups(task):
    try:
        task()
    except* ValueError as caught:
        return_later = caught
    return return_later


def closures(start):
    def step(by: int = 1, *, twice=False):
        nonlocal start
        start += by
        return lambda: (start, twice)

    return step


def generator(items):
    try:
        got = yield from items
        while got is not None:
            got = yield got
    except GeneratorExit:
        return 1


async def coroutine(manager, source):
    async with manager as m:
        async for item in source:
            await m(item)
    return [x async for x in source]


def matching(value):
    match value:
        case {"kind": 1, **rest}:
            return rest
        case [int(), x, *_] if x:
            return x
        case complex(real=r, imag=0.0):
            return r
        case _:
            return "none"


def classes(base):
    class Inner(base):
        field: int = 3

        def __init__(self, size):
            super().__init__()
            self.size[1:2] = size

    del base
    return Inner
