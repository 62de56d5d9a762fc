"""Programs that are made to fail: each `main(log, token)` returns a plain value, and writes to the
log where it went through. None catches MemoryError. The token's references can be counted."""

HEAD = """
class Guard:
    def __init__(self, log, name):
        self.log, self.name = log, name
    def __enter__(self):
        self.log.append(self.name + " enter")
        return self
    def __exit__(self, *args):
        self.log.append(self.name + " exit")
"""

PROGRAMS = {
    "calls": """
def add(a, b=2, *rest, c=3, **more):
    return a + b + len(rest) + c + len(more)

def main(log, token):
    args, kwargs = (1, 2, 3), {"c": 4, "d": 5}
    total = add(1) + add(1, 2, c=5) + add(*args) + add(*args, **kwargs) + add(1, **kwargs)
    held = [token, (token, {"t": token})]
    log.append(len(held))
    return total + len(sorted([3, 1, 2], key=lambda x: -x))
""",
    "closures": """
def main(log, token):
    count, kept = 0, token
    def step(by):
        nonlocal count
        count += by
        return kept
    fns = [lambda k=k: (k, count) for k in range(3)]
    step(2)
    step(by=3)
    log.append(count)
    return [f() for f in fns], step(0) is token
""",
    "handlers": """
def risky(k):
    if k == 1:
        raise ValueError(k)
    return 10 // k

def main(log, token):
    out = []
    for k in range(4):
        try:
            try:
                out.append(risky(k))
            except ValueError as error:
                log.append("value")
                raise KeyError(k) from error
            else:
                log.append("else")
            finally:
                log.append("finally")
        except KeyError:
            log.append("key")
        except ZeroDivisionError:
            log.append("zero")
            continue
    return out
""",
    "contexts": """
def main(log, token):
    with Guard(log, "a") as a, Guard(log, "b"):
        x = a.name
        with Guard(log, "c"):
            x += "c"
            for i in (1, 2):
                if i == 2:
                    break
    try:
        log.append(x)
        return x
    finally:
        log.append("last")
""",
    "generators": """
def numbers(n, log):
    try:
        for i in range(n):
            got = yield i
            if got:
                log.append(got)
    finally:
        log.append("closed")

def outer(log):
    result = yield from numbers(2, log)
    return (result, 7)

def main(log, token):
    total = sum(numbers(3, log))
    gen = outer(log)
    next(gen)
    total += gen.send("sent")
    gen.close()
    total += sum(x * 2 for x in range(3))
    return total
""",
    "classes": """
def main(log, token):
    class Base:
        shared = token
        def __init__(self, value):
            self.value = value
        @property
        def double(self):
            return self.value * 2
        def method(self, *more):
            return self.value + len(more)
    class Derived(Base):
        def __init__(self, value):
            super().__init__(value + 1)
            self.extra = [value]
        def method(self, *more):
            return super().method(*more, 1)
    one = Derived(3)
    one.value += one.double
    del one.extra
    log.append(one.value)
    return one.method(1, 2), one.shared is token
""",
    "building": """
def main(log, token):
    a, *b, c = [1, 2, 3, 4]
    (d, e), f = (a, c), {"k": b, **{"z": 1}}
    s = {x % 2 for x in b} | {*b}
    text = f"{a!r:>3}|{d + e:{a + 3}}|{'x'}"
    m = {k: v for k, v in zip("abc", b)}
    m["q"] = b[0:2] + [*b, a]
    b[0:1] = [9, 9]
    del m["q"], b[0]
    log.append(text)
    return b, sorted(s), f, m, text.upper()
""",
    "matching": """
def kind(value):
    match value:
        case {"a": x, **rest}:
            return "map", x, len(rest)
        case [1, *others]:
            return "seq", others
        case int(n) if n > 3:
            return "int", n
        case str() | None:
            return "other"
    return "none"

def main(log, token):
    return [kind(v) for v in ({"a": 1, "b": 2}, [1, 2, 3], 7, "s", None, 2, token)]
""",
    "coroutines": """
class Ready:
    def __await__(self):
        return (yield "ready")

class Async:
    async def __aenter__(self):
        return await Ready()
    async def __aexit__(self, *args):
        await Ready()

async def items(n):
    for i in range(n):
        await Ready()
        yield i

async def work(log):
    async with Async() as got:
        total = [i async for i in items(2)]
    async for i in items(2):
        total.append(i)
    log.append(len(total))
    return total, got

def main(log, token):
    coro, turns = work(log), 0
    try:
        while True:
            coro.send(turns or None)
            turns += 1
    except StopIteration as stop:
        return turns, stop.value
    finally:
        coro.close()
""",
    "groups": """
def main(log, token):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), TypeError(2), KeyError(3)])
        except* ValueError as group:
            log.append(len(group.exceptions))
        except* TypeError:
            log.append("type")
    except ExceptionGroup as rest:
        log.append(str(rest.exceptions[0]))
    import math
    from os import path
    return math.floor(2.5), path.sep
""",
}


def fresh(name):
    """The program's `main`, compiled anew: nothing of it was decoded or specialised yet."""
    names = {"__name__": "program"}
    exec(compile(HEAD + PROGRAMS[name], f"<program {name}>", "exec"), names)
    return names["main"]
