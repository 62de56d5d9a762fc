"""How the time of a trace and of a warm call grows: with layers, with entries of one function, with
breaks. Next to stock Dynamo, in turns, in processor time; `python bench/growth.py`."""

import sys
import trace

import models
import pieces
import sides
import torch
import warm

import stator

LAYERS = (6, 12, 24, 48, 96)


def block(layers):
    """Attention blocks, which need no library."""
    import sizes

    return sizes.blocks(torch, layers)[0].eval(), (torch.randn(3, 10, 32),), {}


def of_layers(rounds=1):
    rows = {}
    print(f"{'layers':<8}{'trace ms: stock':>16}{'stator':>9}{'a layer':>9}", end="")
    print(f"{'warm µs: stock':>16}{'stator':>9}{'a layer':>9}")
    for layers in LAYERS:
        made = block(layers)
        found = sides.in_turns({
            "stock_ms": lambda made=made: trace.first_call(sides.Stock, made, backend="eager"),
            "stator_ms": trace.often(
                lambda made=made: trace.first_call(sides.Stator, made, backend="eager")),
        }, rounds)  # fmt: skip
        warmed = warm.compare(warm.warm_calls(lambda layers=layers: block(layers), False))
        rows[layers] = found | {"warm": warmed}
        print(
            f"{layers:<8}{found['stock_ms']:>16.0f}{found['stator_ms']:>9.2f}"
            f"{found['stator_ms'] / layers:>9.3f}{warmed['stock']:>16.1f}{warmed['stator']:>9.2f}"
            f"{warmed['stator'] / layers:>9.3f}",
            flush=True,
        )
    return rows


def of_entries():
    """A number decides; the entry that was used longest ago is hit."""
    target, (x,), _ = models.linears(100)

    def call(model, x, number):
        return model(x) * number

    rows = {}
    for count in (1, 2, 4, 8, 16, 32):
        ours = stator.compile(call, backend=warm.prepared, dynamic=False, recompile_limit=64)

        def turns(ours=ours, count=count):
            for number in range(count):
                ours(target, x, number)

        for _ in range(20):
            turns()
        rows[count] = warm.compare({"us": turns})["us"] / count
    print("entries, µs a call: " + ", ".join(f"{n}: {us:.1f}" for n, us in rows.items()))
    return rows


def main():
    sides.begin_process()
    with torch.no_grad():
        found = {"layers": of_layers(), "entries": of_entries()}
    found["breaks"] = pieces.break_table(torch)
    sides.finish("growth", found)


if __name__ == "__main__":
    sys.exit(main())
