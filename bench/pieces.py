"""What a trace, a guard and a plan cost; with torch, next to stock Dynamo in the same run.

A trace is a first call less a warm one. Rounds alternate between the sides; figures are medians.
"""

import dis
import statistics
import time
from functools import partial

import stator


def seconds(call, times=1):
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times


def first_and_warm(compiled, args, times=200):
    first = seconds(lambda: compiled(*args))
    return first, seconds(lambda: compiled(*args), times)


def function(lines, name, parameters):
    scope = {}
    body = "\n".join(f"    {line}" for line in lines)
    exec(compile(f"def f({parameters}):\n{body}", f"<{name}>", "exec"), scope)
    return scope["f"]


# -- Python alone: entries without operations, kept --


class Config:
    pass


def reads(count):
    """One guard for each attribute read."""
    config = Config()
    for i in range(count):
        setattr(config, f"a{i}", i)
    lines = [f"c.a{i}" for i in range(count)]
    return function([*lines, "return c"], f"reads {count}", "c"), (config,)


def arithmetic(count):
    lines = [f"x = x * 3 + {i}" for i in range(count)]
    return function([*lines, "return x"], f"arithmetic {count}", "x"), (1.0,)


def builds(count):
    lines = [f"y = [y, {i}]" for i in range(count)]
    return function(["y = x", *lines, "return y"], f"builds {count}", "x"), (object(),)


def python_row(make, count, rounds):
    target, args = make(count)
    times = []
    for _ in range(rounds):
        compiled = stator.compile(target, backend="eager", _keep_empty=True, fullgraph=True)
        times.append(first_and_warm(compiled, args))
    first = statistics.median(a - b for a, b in times)
    return {
        "instructions": sum(1 for _ in dis.get_instructions(target)),
        "guards": len(stator.explain(target)(*args).guards),
        "trace_us": first * 1e6,
        "warm_ns": statistics.median(b for _, b in times) * 1e9,
        "plain_ns": seconds(lambda: target(*args), 200) * 1e9,
    }


def python_table(rounds=9):
    def nothing(x):
        return x

    empty = stator.compile(nothing, backend="eager", _keep_empty=True)
    empty(1)
    floor = min(seconds(lambda: empty(1), 2000) for _ in range(5)) * 1e9
    print(f"a warm call that does nothing: {floor:.0f} ns")
    print(f"{'kind':<18}{'instructions':>13}{'guards':>8}{'trace µs':>10}{'ns/instr':>10}", end="")
    print(f"{'warm ns':>10}{'plain ns':>10}")
    rows = {}
    for name, make, count in (
        ("100 reads", reads, 100),
        ("1000 arithmetic", arithmetic, 1000),
        ("100 lists", builds, 100),
    ):
        row = rows[name] = python_row(make, count, rounds)
        each = row["trace_us"] * 1e3 / row["instructions"]
        print(
            f"{name:<18}{row['instructions']:>13}{row['guards']:>8}{row['trace_us']:>10.0f}"
            f"{each:>10.0f}{row['warm_ns']:>10.0f}{row['plain_ns']:>10.0f}"
        )
    reading = rows["100 reads"]
    print(f"a guard: {(reading['warm_ns'] - floor) / reading['guards']:.1f} ns")
    return {"floor_ns": floor, **rows}


# -- with torch --


def chain(torch, count):
    lines = [f"x = x + {i % 7}" for i in range(count)]
    return function([*lines, "return x"], f"chain {count}", "x"), (torch.randn(4),)


def mlp(torch, count):
    layers = [torch.nn.Linear(8, 8) for _ in range(count)]
    return torch.nn.Sequential(*layers), (torch.randn(2, 8),)


TENSOR_KINDS = {
    "chain of 10": (chain, 10),
    "chain of 100": (chain, 100),
    "chain of 1000": (chain, 1000),
    "10 nn.Linear": (mlp, 10),
    "100 nn.Linear": (mlp, 100),
}


def stock(torch, target, args):
    torch._dynamo.reset()
    return first_and_warm(torch.compile(target, backend="eager"), args, 20)


def ours(target, args):
    return first_and_warm(stator.compile(target, backend="eager", fullgraph=True), args, 20)


def tensor_row(torch, name, rounds):
    make, count = TENSOR_KINDS[name]
    target, args = make(torch, count)
    with torch.no_grad():
        if not torch.equal(stator.compile(target, backend="eager")(*args), target(*args)):
            raise AssertionError(f"{name}: the results differ")
        pairs = [(stock(torch, target, args), ours(target, args)) for _ in range(rounds)]
        eager = seconds(lambda: target(*args), 20)
        guards = len(stator.explain(target)(*args).guards)
    return {
        "guards": guards,
        "eager_us": eager * 1e6,
        "stock_trace_ms": statistics.median(a - b for (a, b), _ in pairs) * 1e3,
        "stator_trace_ms": statistics.median(a - b for _, (a, b) in pairs) * 1e3,
        "stock_warm_us": statistics.median(b for (_, b), _ in pairs) * 1e6,
        "stator_warm_us": statistics.median(b for _, (_, b) in pairs) * 1e6,
    }


def tensor_table(torch, rounds=3):
    rows = {name: tensor_row(torch, name, rounds) for name in TENSOR_KINDS}
    print(f"{'kind':<16}{'trace ms':>20}{'ratio':>8}{'warm µs':>22}{'ratio':>8}{'eager µs':>10}")
    print(f"{'':<16}{'stock':>10}{'stator':>10}{'':>8}{'stock':>11}{'stator':>11}")
    for name, row in rows.items():
        traced = row["stock_trace_ms"] / row["stator_trace_ms"]
        warm = row["stock_warm_us"] / row["stator_warm_us"]
        print(
            f"{name:<16}{row['stock_trace_ms']:>10.1f}{row['stator_trace_ms']:>10.2f}{traced:>8.1f}"
            f"{row['stock_warm_us']:>11.1f}{row['stator_warm_us']:>11.1f}{warm:>8.2f}"
            f"{row['eager_us']:>10.1f}"
        )
    return rows


# -- breaks: the same operations in one piece and in many --


def broken(torch, breaks):
    """Ten operations, and after each of the first so many of them a break."""
    lines = []
    for i in range(10):
        lines += [f"x = x + {i}", "torch._dynamo.graph_break()"][: 2 if i < breaks else 1]
    f = function([*lines, "return x"], f"{breaks} breaks", "x")
    f.__globals__["torch"] = torch
    return f, (torch.randn(4),)


DEEP = """
def lowest(x):
    x = x + 1
    {}
    return x * 2

def low(x):
    return lowest(x) + 3

def high(x):
    return low(x) * 4

def highest(x):
    return high(x) + 5
"""


def deep(torch, breaks):
    """A break three calls deep: what follows it lies in four functions. Entries belong to code
    objects, so that functions with and without a break may not share theirs."""
    scope = {"torch": torch}
    text = DEEP.format("torch._dynamo.graph_break()" if breaks else "pass")
    exec(compile(text, f"<three deep, {breaks} breaks>", "exec"), scope)
    return scope["highest"], (torch.ones(4),)


def break_table(torch, rounds=7, times=500):
    rows = {}
    for name, make, breaks in (("a warm break", broken, 9), ("three calls deep", deep, 1)):
        rows[name] = break_row(torch, name, make, breaks, rounds, times)
    return rows


def break_row(torch, title, make, breaks, rounds, times):
    whole, args = make(torch, 0)
    pieces, _ = make(torch, breaks)
    torch._dynamo.reset()
    sides = {
        "stock": [torch.compile(f, backend="eager") for f in (whole, pieces)],
        "stator": [stator.compile(f, backend="eager") for f in (whole, pieces)],
    }
    taken = {name: [] for name in sides}
    with torch.no_grad():
        for one, many in sides.values():
            if not torch.equal(one(*args), many(*args)):
                raise AssertionError("the results differ")
        for _ in range(rounds):
            for name, (one, many) in sides.items():
                more, less = (seconds(partial(f, *args), times) for f in (many, one))
                taken[name].append((more - less) / breaks * 1e6)
    row = {name: statistics.median(values) for name, values in taken.items()}
    print(
        f"{title}, µs: stock {row['stock']:.2f}, stator {row['stator']:.2f}, "
        f"ratio {row['stock'] / row['stator']:.1f}"
    )
    return row


def tables():
    results = {"python": python_table()}
    try:
        import torch
    except ImportError:
        print("(torch is not here: no tensors)")
    else:
        import torch._dynamo  # for its graph_break

        results["tensors"] = tensor_table(torch)
        results["breaks"] = break_table(torch)
    return results


if __name__ == "__main__":
    tables()
