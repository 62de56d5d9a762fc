"""How long tracing takes, model by model, next to stock Dynamo: a first call less a warm one, in
processor time. Backend `eager` with plain sizes and with all sizes open; and up to the fx graph
that a callable of the user's gets, less the time that the callable itself takes."""

import sys
import time

import models
import sides
import torch


def first_call(side, made, **settings):
    """Milliseconds of a first call beyond a warm one."""
    target, args, kwargs = made
    compiled = side.compile(target, fullgraph=True, **settings)
    first = sides.used(lambda: compiled(*args, **kwargs))
    return (first - min(sides.used(lambda: compiled(*args, **kwargs)) for _ in range(3))) * 1e3


class Receiver:
    """A backend that looks at all nodes, and then takes its time to find the results."""

    def __init__(self):
        self.seconds = self.nodes = 0

    def __call__(self, graph, inputs):
        self.nodes += sum(1 for _ in graph.graph.nodes)
        begin = time.process_time()
        results = graph.forward(*inputs)
        self.seconds += time.process_time() - begin
        return lambda *args: results


def up_to_graph(side, made):
    target, args, kwargs = made
    receiver = Receiver()
    compiled = side.compile(target, fullgraph=True, backend=receiver, dynamic=False)
    first = sides.used(lambda: compiled(*args, **kwargs)) - receiver.seconds
    return (first - min(sides.used(lambda: compiled(*args, **kwargs)) for _ in range(3))) * 1e3


def often(call, times=5):
    return lambda: sorted(call() for _ in range(times))[times // 2]


def row(name):
    made = models.MODELS[name]()
    stock, ours = sides.SIDES
    calls = {
        "stock_ms": lambda: first_call(stock, made, backend="eager", dynamic=False),
        "stator_ms": often(lambda: first_call(ours, made, backend="eager", dynamic=False)),
        "stator_open_ms": often(lambda: first_call(ours, made, backend="eager", dynamic=True)),
        "stock_fx_ms": lambda: up_to_graph(stock, made),
        "stator_fx_ms": often(lambda: up_to_graph(ours, made)),
    }
    found = sides.in_turns(calls, sides.ROUNDS)
    found["ratio"] = found["stock_ms"] / found["stator_ms"]
    found["fx_ratio"] = found["stock_fx_ms"] / found["stator_fx_ms"]
    found["open_over_plain"] = found["stator_open_ms"] / found["stator_ms"]
    return {**found, "origin": models.origin(name)}


def main():
    sides.begin_process()
    rows = {}
    print(f"{'tracing, ms':<20}{'stock':>9}{'stator':>9}{'ratio':>7}{'open/plain':>12}", end="")
    print(f"{'fx: stock':>12}{'stator':>9}{'ratio':>7}")
    with torch.no_grad():
        for name in models.MODELS:
            found = rows[name] = row(name)
            print(
                f"{name:<20}{found['stock_ms']:>9.1f}{found['stator_ms']:>9.3f}"
                f"{found['ratio']:>7.0f}{found['open_over_plain']:>12.2f}"
                f"{found['stock_fx_ms']:>12.1f}{found['stator_fx_ms']:>9.2f}"
                f"{found['fx_ratio']:>7.1f}",
                flush=True,
            )
    means = {
        key: sides.geometric_mean(found[key] for found in rows.values())
        for key in ("ratio", "open_over_plain", "fx_ratio")
    }
    print(f"{'geometric mean':<38}{means['ratio']:>7.0f}{means['open_over_plain']:>12.2f}"
          f"{means['fx_ratio']:>28.1f}")  # fmt: skip
    sides.finish("trace", {"models": rows, "means": means})


if __name__ == "__main__":
    sys.exit(main())
