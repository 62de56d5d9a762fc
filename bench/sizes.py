"""What sizes that change cost, next to stock Dynamo: tracing with all sizes open over tracing with
plain ones, warm calls and guards of both kinds of entries, and a model over ten lengths with
inductor, in processes of their own with empty caches."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from pieces import first_and_warm

import stator

LENGTHS = (16, 24, 32, 40, 48, 56, 64, 72, 80, 88)


def linears(torch):
    layers = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(30)]
    return torch.nn.Sequential(*layers), torch.randn(4, 6, 8)


def encoder(torch):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), torch.randn(3, 10, 32)


def blocks(torch, count=6):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up = torch.nn.LayerNorm(32), torch.nn.Linear(32, 96)
            self.down = torch.nn.Linear(32, 32)

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.up(self.norm(x)).view(batch, length, 3, 4, width // 4)
            q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))
            weights = (q @ k.transpose(-1, -2) / width**0.5).softmax(-1)
            return x + self.down((weights @ v).transpose(1, 2).reshape(batch, length, width))

    return torch.nn.Sequential(*(Block() for _ in range(count))), torch.randn(3, 10, 32)


def images(torch):
    def layer():
        conv = torch.nn.Conv2d(8, 8, 3, padding=1)
        return torch.nn.Sequential(conv, torch.nn.BatchNorm2d(8), torch.nn.ReLU())

    return torch.nn.Sequential(*(layer() for _ in range(8))).eval(), torch.randn(3, 8, 12, 14)


KINDS = {"30 nn.Linear": linears, "encoder of 4": encoder, "blocks of 6": blocks, "convs": images}


# -- traces, warm calls, guards --


def of_stock(torch, target, x, backend, dynamic):
    torch._dynamo.reset()
    return first_and_warm(torch.compile(target, backend=backend, dynamic=dynamic), (x,), 50)


def of_stator(target, x, backend, dynamic):
    return first_and_warm(stator.compile(target, backend=backend, dynamic=dynamic), (x,), 50)


def ratios(pairs):
    """(trace, warm) of open sizes over plain ones, and the times themselves."""
    plain, opened = zip(*pairs, strict=True)

    def middle(times):
        return statistics.median(a - b for a, b in times), statistics.median(b for _, b in times)

    (trace, warm), (open_trace, open_warm) = middle(plain), middle(opened)
    return {
        "trace_ms": trace * 1e3,
        "open_trace_ms": open_trace * 1e3,
        "trace_ratio": open_trace / trace,
        "warm_us": warm * 1e6,
        "open_warm_us": open_warm * 1e6,
        "warm_ratio": open_warm / warm,
    }


def row(torch, name, backend, rounds):
    target, x = KINDS[name](torch)
    stock, ours = [], []
    for _ in range(rounds):
        stock.append([of_stock(torch, target, x, backend, dynamic) for dynamic in (False, True)])
        ours.append([of_stator(target, x, backend, dynamic) for dynamic in (False, True)])
    return {"stock": ratios(stock), "stator": ratios(ours)}


def table(torch, rounds):
    rows = {}
    print(f"{'open over plain':<28}{'trace':>15}{'warm':>19}{'trace ms, open':>20}")
    print(f"{'':<28}{'stock':>8}{'stator':>9}{'stock':>8}{'stator':>9}{'stock':>10}{'stator':>9}")
    for backend in ("eager", "aot_eager"):
        for name in KINDS:
            with torch.no_grad():
                found = rows[f"{name}, {backend}"] = row(torch, name, backend, rounds)
            stock, ours = found["stock"], found["stator"]
            print(
                f"{name + ', ' + backend:<28}{stock['trace_ratio']:>8.2f}"
                f"{ours['trace_ratio']:>9.2f}{stock['warm_ratio']:>8.2f}{ours['warm_ratio']:>9.2f}"
                f"{stock['open_trace_ms']:>10.0f}{ours['open_trace_ms']:>9.1f}",
                flush=True,
            )
    return rows


# -- a model over ten lengths, with inductor --

CHILD = """
import resource, sys, time, torch
sys.path.insert(0, {folder!r})
import sizes
if {engine!r} == "stator":
    import stator
    compile = stator.compile
else:
    compile = torch.compile
torch.manual_seed(0)
model, _ = sizes.blocks(torch)
inputs = [torch.randn(3, length, 32) for length in sizes.LENGTHS]

def processor():
    both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN  # inductor starts a compiler
    return sum(sum(resource.getrusage(who)[:2]) for who in both)

with torch.no_grad():
    expected = [model(x) for x in inputs]
    begin, used = time.perf_counter(), processor()
    compiled = compile(model, backend="inductor")
    results = [compiled(x) for x in inputs]
    took, used = time.perf_counter() - begin, processor() - used
for result, value in zip(results, expected, strict=True):
    torch.testing.assert_close(result, value)
print(took, used)
"""


def inductor_seconds(engine):
    """By the clock, and of processors."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as cache:
        places = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": os.path.join(cache, "t")}
        command = [sys.executable, "-c", CHILD.format(folder=folder, engine=engine)]
        done = subprocess.run(
            command, env=os.environ | places, capture_output=True, text=True, check=True
        )
    return tuple(map(float, done.stdout.split()[-2:]))


def ten_lengths(rounds):
    taken = {engine: [] for engine in ("stock", "stator")}
    for _ in range(rounds):
        for engine, times in taken.items():
            times.append(inductor_seconds(engine))
    found = {}
    for at, clock in enumerate(("seconds", "processor seconds")):
        stock, ours = (statistics.median(t[at] for t in taken[e]) for e in ("stock", "stator"))
        found[clock] = {"stock": stock, "stator": ours}
        print(
            f"ten lengths, inductor, {clock}: stock {stock:.1f}, stator {ours:.1f}, "
            f"ratio {stock / ours:.2f}"
        )
    return found


def tables(rounds=3, inductor_rounds=1):
    try:
        import torch
    except ImportError:
        print("(torch is not here: no sizes)")
        return {}
    return {"sizes": table(torch, rounds), "ten_lengths": ten_lengths(inductor_rounds)}


if __name__ == "__main__":
    begin = time.perf_counter()
    print(json.dumps(tables(), indent=2))
    print(f"{time.perf_counter() - begin:.0f} s")
