"""The programs that are timed: one function a kind, doing its thing n times. Each returns something
that depends on all it did, so that both engines can be checked to agree."""

import functools


def _add(a, b):
    return a + b


def _defaults(a, b=2, *, c=3):
    return a + b + c


def _spread(*args, **kwargs):
    return len(args) + len(kwargs)


def calls(n):
    total = 0
    for i in range(n):
        total = _add(total, i)
        total += _defaults(i, c=1)
        total += _spread(i, 2, x=3)
    return total


def recursion(n):
    def fib(k):
        return k if k < 2 else fib(k - 1) + fib(k - 2)

    return sum(fib(9) for _ in range(n))


class Account:
    limit = 10

    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount
        return self

    @property
    def double(self):
        return self.balance * 2


class Savings(Account):
    def deposit(self, amount):
        return super().deposit(amount + 1)


def attributes(n):
    account = Account("a", 0)
    for i in range(n):
        account.balance = account.balance + account.limit
        account.owner = i
        if account.owner is None:
            break
    return account.balance


def methods(n):
    account, total = Savings("a", 0), 0
    for i in range(n):
        account.deposit(i).deposit(1)
        total += account.double
    return total


def classes(n):
    total = 0
    for i in range(n):
        total += Account("b", i).balance + Savings("c", 1).limit
    return total


def arithmetic(n):
    total, x = 0, 1.5
    for i in range(n):
        total += i * 3 - (i & 7) ^ (i >> 2)
        x = x * 0.5 + i % 5
        if total > 1_000_000 and not i % 3:
            total //= 7
    return total, x


def loops(n):
    found = 0
    for i in range(n // 50):
        j = 0
        while j < 50:
            j += 1
            if j == i:
                continue
            if j < 3 < i:
                found += 1
        else:
            found += 2
    return found


def _numbers(n):
    for i in range(n):
        got = yield i
        if got:
            yield got


def _chained(n):
    yield from _numbers(n)
    return n


def generators(n):
    total = sum(_numbers(n)) + sum(_chained(n))
    gen = _numbers(n)
    next(gen)
    for i in range(n // 2):
        total += gen.send(i) or 0
    return total


def exceptions(n):
    caught = 0
    for i in range(n):
        try:
            if i % 3 == 0:
                raise ValueError(i)
            caught += [1, 2][i % 3]
        except ValueError as error:
            caught += len(error.args)
        except IndexError:
            caught += 2
        finally:
            caught += 1
    return caught


def closures(n):
    def counter(start):
        count = start

        def step(by):
            nonlocal count
            count += by
            return count

        return step

    step, total = counter(0), 0
    for i in range(n):
        total += step(i) + (lambda: total & 3)()
    return total


def containers(n):
    table, items, seen = {}, [], set()
    for i in range(n):
        key = i % 97
        table[key] = table.get(key, 0) + i
        items.append(i)
        if len(items) > 64:
            items = items[32:]
        seen.add(key)
        if key in seen and items[-1] == i:
            items[0] = key
    return sum(table.values()) + len(items) + len(seen)


def strings(n):
    parts, size = [], 0
    for i in range(n):
        text = f"{i}:{i * 2:>6}"
        size += len(text.strip().replace(":", "-")) + text.count("1")
        parts.append(text[-3:])
        if len(parts) == 50:
            size += len(", ".join(parts).upper().split("1"))
            parts.clear()
    return size


def comprehensions(n):
    total = 0
    for i in range(n // 20):
        row = [x * i for x in range(20) if x & 1]
        total += sum(x for x in row) + len({x % 5 for x in row}) + len({x: x + i for x in row})
    return total


def matching(n):
    total = 0
    shapes = [("point", 1, 2), {"kind": "box", "size": 4}, 7, "word", [1, 2, 3, 4], None]
    for i in range(n):
        match shapes[i % 6]:
            case ("point", x, y):
                total += x + y
            case {"kind": "box", "size": size}:
                total += size
            case int(value) if value > 5:
                total += value
            case str():
                total += 1
            case [first, *rest]:
                total += first + len(rest)
            case _:
                total += 2
    return total


def unpacking(n):
    a, b, total = 0, 1, 0
    for i in range(n):
        a, b = b, i
        (c, d), *rest = (a, b), i, 4
        first, *middle, last = (*rest, c, d)
        total += first + last + len([*middle, *rest])
    return total


class _Guard:
    def __enter__(self):
        return 1

    def __exit__(self, *args):
        return False


def contexts(n):
    total, guard = 0, _Guard()
    for _ in range(n):
        with guard as one:
            total += one
    return total


def _second(row):
    return row[1] + 1


def callbacks(n):
    rows = [(i * 7919 % 101, i) for i in range(100)]
    total = 0
    for _ in range(n // 100):
        total += sorted(rows, key=lambda row: row[0])[3][1]
        total += functools.reduce(lambda a, b: a + b[0], rows, 0)
        total += len(list(map(_second, rows)))
    return total


KINDS = [
    calls, recursion, attributes, methods, classes, arithmetic, loops, generators, exceptions,
    closures, containers, strings, comprehensions, matching, unpacking, contexts, callbacks,
]  # fmt: skip
