"""Loops and plain computation: long enough to meet the eval breaker and specialised code,
with every kind of iterator and jump."""

from probes import catch, where


def while_sum():
    i = total = 0
    while i < 3000:
        total += i
        i += 1
    return total


def for_else_break():
    out = []
    for limit in (3, 10):
        for i in range(5):
            if i == limit:
                break
        else:
            out.append("no break")
            continue
        out.append(("broke", i))
    return out


def nested_loops_with_flags():
    found = []
    for a in range(1, 20):
        for b in range(a, 20):
            c2 = a * a + b * b
            c = int(c2**0.5)
            if c >= 20:
                break
            if c * c == c2:
                found.append((a, b, c))
    return found


def while_else():
    n, out = 5, []
    while n:
        n -= 1
        if n == 2:
            continue
        out.append(n)
    else:
        out.append("else")
    while True:
        if len(out) > 6:
            break
        out.append("x")
    else:
        out.append("never")
    return out


def sieve():
    n = 300
    flags = [True] * n
    for i in range(2, n):
        if flags[i]:
            for j in range(i * i, n, i):
                flags[j] = False
    return [i for i in range(2, n) if flags[i]]


def collatz():
    best = (0, 0)
    seen = {1: 1}
    for start in range(1, 200):
        n, steps = start, 0
        while n not in seen:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        seen[start] = steps + seen[n]
        best = max(best, (seen[start], start))
    return best


def matrix_product():
    n = 8
    a = [[i * j % 7 for j in range(n)] for i in range(n)]
    b = [[i + j for j in range(n)] for i in range(n)]
    c = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            s = 0
            for k in range(n):
                s += a[i][k] * b[k][j]
            c[i][j] = s
    return c


def mandelbrot():
    rows = []
    for y in range(-4, 5):
        row = ""
        for x in range(-8, 4):
            c, z, n = complex(x / 4, y / 4), 0j, 0
            while abs(z) < 2 and n < 20:
                z = z * z + c
                n += 1
            row += "#" if n == 20 else "."
        rows.append(row)
    return rows


def queens():
    def place(row, cols, d1, d2, n):
        if row == n:
            return 1
        total = 0
        for c in range(n):
            if c in cols or row + c in d1 or row - c in d2:
                continue
            total += place(row + 1, cols | {c}, d1 | {row + c}, d2 | {row - c}, n)
        return total

    return [place(0, frozenset(), frozenset(), frozenset(), n) for n in range(1, 6)]


def quicksort():
    def qs(xs):
        if len(xs) < 2:
            return xs
        p, *rest = xs
        return qs([x for x in rest if x < p]) + [p] + qs([x for x in rest if x >= p])

    data = [(i * 7919) % 101 for i in range(60)]
    return qs(data) == sorted(data), qs([])


def big_integers():
    a, b = 0, 1
    for _ in range(300):
        a, b = b, a + b
    f = 1
    for i in range(1, 60):
        f *= i
    return a, f, f % 1009, len(str(f))


def float_accumulation():
    total, x = 0.0, 1.0
    for i in range(1, 500):
        x = x * 0.99 + 1.0 / i
        total += x if i % 2 else -x
    return total, x


def newton():
    out = []
    for n in (2, 3, 10, 1e-3):
        x = n
        for _ in range(30):
            x = 0.5 * (x + n / x)
        out.append(x)
    return out


def type_changes_in_loop():
    out = []
    x = 1
    for i in range(40):
        if i == 10:
            x = 1.5
        elif i == 20:
            x = "s"
        elif i == 30:
            x = [1]
        out.append(x + x)
    return out


def attribute_changes_in_loop():
    class A:
        v = 0

        def f(self):
            return self.v

    class B:
        __slots__ = ("v",)

        def f(self):
            return -self.v

    out = []
    objs = [A(), B()]
    objs[0].v, objs[1].v = 1, 2
    for i in range(60):
        o = objs[(i // 20) % 2]
        o.v += i
        out.append(o.f())
        if i == 30:
            A.v = 7
            del objs[0].__dict__["v"]
    return out


def global_changes_in_loop():
    space = {"out": []}
    exec(
        "def f():\n    return g\n"
        "for i in range(60):\n"
        "    g = i\n"
        "    if i == 20: len = lambda x: 'mine'\n"
        "    if i == 40: del len\n"
        "    out.append((f(), len('abc')))\n",
        space,
    )
    return space["out"]


def call_target_changes_in_loop():
    def a(x):
        return x

    def b(x, y=2):
        return x + y

    class C:
        def __init__(self, x):
            self.x = x

    out = []
    for i in range(80):
        f = (a, b, abs, C, str)[i // 16]
        r = f(i)
        out.append(r.x if isinstance(r, C) else r)
    return out


def iterator_kinds():
    class Seq:
        def __getitem__(self, i):
            if i >= 3:
                raise IndexError
            return i

    class It:
        def __iter__(self):
            return iter("it")

    sources = [
        [1, 2], (3, 4), "ab", b"ab", range(3), range(5, 0, -2), {1: 2}, {7}, {1: 2}.items(), Seq(),
        It(), iter([1]), (x for x in "g"), reversed([1, 2]), enumerate("e"), zip("a", "b"),
        map(str, [1]), iter(lambda c=iter([1, 2, 0]): next(c), 0), memoryview(b"m"), frozenset([1]),
    ]
    return [[x for x in s] for s in sources]


def iterator_errors():
    class NoNext:
        def __iter__(self):
            return self

    class Late:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n == 3:
                raise ValueError("third")
            return self.n

    class IterNone:
        __iter__ = None

    def run(x):
        seen = []
        for v in x:
            seen.append(v)
        return seen

    return where(run, NoNext()), where(run, Late()), where(run, IterNone()), where(run, object), where(
        run, 1.5
    )


def range_forms():
    out = [list(range(*a)) for a in ((0,), (3,), (2, 5), (5, 2), (0, 10, 3), (10, 0, -4), (3, 3))]
    big = 2**70
    out.append([x - big for x in range(big, big + 3)])
    out.append([i for i in range(True)])
    return out, catch(range, 1, 2, 0), catch(range, 1.5)


def loop_variable_reassigned():
    out = []
    for i in range(5):
        out.append(i)
        i = i * 10
        out.append(i)
    return out, i


def delete_in_loop():
    out = []
    for i in range(3):
        x = i
        out.append(x)
        del x
    return out, "x" in locals()


def tuple_loop_swaps():
    xs = list(range(12))
    n = len(xs)
    for i in range(n // 2):
        xs[i], xs[n - 1 - i] = xs[n - 1 - i], xs[i]
    a, b, c = 1, 2, 3
    for _ in range(7):
        a, b, c = b, c, a + b
    return xs, (a, b, c)


def dynamic_programming():
    def lcs(s, t):
        m = [[0] * (len(t) + 1) for _ in range(len(s) + 1)]
        for i, a in enumerate(s, 1):
            for j, b in enumerate(t, 1):
                m[i][j] = m[i - 1][j - 1] + 1 if a == b else max(m[i - 1][j], m[i][j - 1])
        out = []
        i, j = len(s), len(t)
        while i and j:
            if s[i - 1] == t[j - 1]:
                out.append(s[i - 1])
                i -= 1
                j -= 1
            elif m[i - 1][j] >= m[i][j - 1]:
                i -= 1
            else:
                j -= 1
        return "".join(reversed(out))

    return lcs("interpreter", "printer"), lcs("abc", "xyz")


def graph_search():
    graph = {n: [(n * 2) % 31, (n * 3 + 1) % 31] for n in range(31)}
    dist, todo = {1: 0}, [1]
    while todo:
        n = todo.pop(0)
        for m in graph[n]:
            if m not in dist:
                dist[m] = dist[n] + 1
                todo.append(m)
    return sorted(dist.items())


def game_of_life():
    cells = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
    for _ in range(6):
        counts = {}
        for x, y in cells:
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    if dx or dy:
                        k = x + dx, y + dy
                        counts[k] = counts.get(k, 0) + 1
        cells = {k for k, n in counts.items() if n == 3 or n == 2 and k in cells}
    return sorted(cells)


def bank_simulation():
    class Account:
        def __init__(self, owner):
            self.owner, self.balance, self.history = owner, 0, []

        def change(self, amount):
            if self.balance + amount < 0:
                raise ValueError(f"{self.owner} has only {self.balance}")
            self.balance += amount
            self.history.append(amount)

    def transfer(a, b, amount):
        try:
            a.change(-amount)
        except ValueError as e:
            failures.append(str(e))
        else:
            b.change(amount)

    failures = []
    x, y = Account("x"), Account("y")
    x.change(100)
    for n in (30, 50, 40, 10):
        transfer(x, y, n)
        transfer(y, x, n // 2)
    return x.balance, y.balance, x.history, failures


def state_machine():
    transitions = {("idle", "start"): "run", ("run", "pause"): "idle", ("run", "stop"): "end"}
    state, log = "idle", []
    for event in ["start", "pause", "bad", "start", "stop", "start"]:
        try:
            state = transitions[state, event]
        except KeyError as e:
            log.append(("ignored", e.args[0]))
            if state == "end":
                break
        else:
            log.append(state)
    return log


def loop_with_many_constants():
    source = "def f(x):\n    t = 0\n    for i in range(2):\n"
    source += "".join(f"        t += x * {i + 1000} if x != {i} else {i}.5\n" for i in range(300))
    source += "    return t\n"
    space = {}
    exec(source, space)
    return space["f"](3), space["f"](-1)


def long_jumps():
    source = "def f(n):\n    t = 0\n    while n:\n        n -= 1\n        if n % 2:\n"
    source += "".join(f"            t += {i}\n" for i in range(400))
    source += "            continue\n        t -= 1\n        if t > 10**6:\n            break\n"
    source += "    else:\n        return 'else', t\n    return t\n"
    space = {}
    exec(source, space)
    return space["f"](5), space["f"](20)


def collections_in_loop_with_gc():
    import gc

    was = gc.isenabled()
    old = gc.get_threshold()
    gc.enable()
    gc.set_threshold(50, 2, 2)
    log = []

    class Node:
        def __init__(self, n):
            self.n = n
            self.me = self

        def __del__(self):
            log.append(self.n)

    try:
        for i in range(200):
            Node(i)
    finally:
        gc.set_threshold(*old)
        if not was:
            gc.disable()
    gc.collect()
    return sorted(log) == list(range(200))


def uncaught_in_loop():
    data = {"a": 1, "b": 0}
    out = []
    for key in ("a", "b"):
        while True:
            out.append(10 // data[key])
            break
    return out
