"""What a warm call costs beside its graph, next to stock Dynamo: backends give results that they
have computed before. Models without gradients and in training, a tiny function, a compiled module
next to a compiled function, eight entries. Processor time; each engine has a model of its own,
since Dynamo puts attributes on parameters, and a tensor with attributes costs our guards more."""

import sys

import models
import sides
import torch

import stator

ROUNDS = 7


def prepared(graph, inputs):
    with torch.no_grad():
        results = graph.forward(*inputs)
    return lambda *args: results


def empty():
    """What an empty function costs in the same loop."""
    return sides.microseconds(lambda: None)


def warm_calls(made, train):
    """Both engines' call of one model each, past their first calls."""
    calls = {}
    for side in sides.SIDES:
        target, args, kwargs = made()
        if isinstance(target, torch.nn.Module):
            target.train(train)
        compiled = side.compile(target, backend=prepared, dynamic=False)
        call = lambda compiled=compiled, args=args, kwargs=kwargs: compiled(*args, **kwargs)  # noqa: E731
        for _ in range(50):
            call()
        calls[side.name] = call
    return calls


def compare(calls):
    timed = {n: lambda call=call: sides.microseconds(call) for n, call in calls.items()}
    found = sides.in_turns(timed, ROUNDS)
    if "stock" in found:
        found["ratio"] = found["stock"] / found["stator"]
    return found


def of_models():
    rows = {}
    print(f"{'warm overhead, µs':<20}{'no grad: stock':>16}{'stator':>9}{'ratio':>7}", end="")
    print(f"{'training: stock':>18}{'stator':>9}{'ratio':>7}")
    for name, made in models.MODELS.items():
        found = {}
        for mode, train in (("no_grad", False), ("training", True)):
            with torch.set_grad_enabled(train):
                found[mode] = compare(warm_calls(made, train))
        rows[name] = found
        cells = (f"{found[m]['stock']:>{w}.2f}{found[m]['stator']:>9.2f}{found[m]['ratio']:>7.1f}"
                 for m, w in (("no_grad", 16), ("training", 18)))  # fmt: skip
        print(f"{name:<20}{''.join(cells)}", flush=True)
    return rows


def of_eight_entries():
    """A number decides between eight entries of a hundred Linears: the first again and again, and
    the one that was used longest ago."""
    target, (x,), _ = models.linears(100)

    def call(model, x, number):
        return model(x) * number

    ours = stator.compile(call, backend=prepared, dynamic=False)

    def turns():
        for number in range(8):
            ours(target, x, number)

    for _ in range(20):
        turns()
    found = compare({"first": lambda: ours(target, x, 7), "turns": turns})
    found["turns"] /= 8
    return {**found, "last_over_first": found["turns"] / found["first"]}


class Tiny(torch.nn.Module):
    def forward(self, x):
        return x + 1


def of_one_operation():
    x = torch.randn(4)
    calls = {"nothing": lambda: None}
    for side in sides.SIDES:
        function = side.compile(lambda x: x + 1, backend=prepared)
        function(x)
        calls[f"{side.name} function"] = lambda function=function: function(x)
    for side, compile in (("stock", torch.compile), ("stator", stator.compile)):
        module = compile(Tiny(), backend=prepared)
        module(x)
        calls[f"{side} module"] = lambda module=module: module(x)
    found = compare(calls)
    for side in ("stock", "stator"):
        found[f"{side} module over function"] = found[f"{side} module"] - found[f"{side} function"]
        found[f"{side} function"] -= found["nothing"]
    return found


def main():
    sides.begin_process()
    rows = of_models()
    with torch.no_grad():
        entries, one = of_eight_entries(), of_one_operation()
    for title, found in (("eight entries", entries), ("one operation", one)):
        print(f"{title}, µs: " + ", ".join(f"{name} {value:.2f}" for name, value in found.items()))
    large = [found for name, found in rows.items() if models.is_large(name)]
    means = {
        mode: sides.geometric_mean(found[mode]["ratio"] for found in large)
        for mode in ("no_grad", "training")
    }
    print(f"models, geometric means: {means['no_grad']:.1f}, {means['training']:.1f}")
    sides.finish("warm", {"models": rows, "means": means, "entries": entries, "one": one})


if __name__ == "__main__":
    sys.exit(main())
