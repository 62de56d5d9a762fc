"""What the first compile of a process costs, torch imported: a function and a module,
backend eager and a callable. Each in a process of its own, in turns; processor time, and which
large modules were imported for it."""

import json
import pathlib
import statistics
import subprocess
import sys

ROUNDS = 5

CHILD = """
import sys, time, json
import torch
torch.set_num_threads(1)
x = torch.randn(4)
backend = {backend}
target = {target}
def processor():
    return time.process_time()
begin = processor()
{importing}
compiled = {compile}(target, backend=backend)
compiled(x)
took = processor() - begin
large = [name for name in ("torch._dynamo", "sympy", "torch._inductor", "torch.fx")
         if name in sys.modules]
print(json.dumps([took, large]))
"""
TARGETS = {"a function": "lambda x: x + 1", "a module": "torch.nn.Linear(4, 4)"}
BACKENDS = {"eager": "'eager'", "a callable": "lambda graph, inputs: graph.forward"}
SIDES = {"stock": ("", "torch.compile"), "stator": ("import stator", "stator.compile")}


def first_compile(side, target, backend):
    importing, compile = SIDES[side]
    text = CHILD.format(importing=importing, compile=compile,
                        target=TARGETS[target], backend=BACKENDS[backend])  # fmt: skip
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def row(target, backend):
    taken = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        for side, values in taken.items():
            values.append(first_compile(side, target, backend))
    found = {side: statistics.median(v[0] for v in values) for side, values in taken.items()}
    return {**found, "ratio": found["stock"] / found["stator"], "imported": taken["stator"][0][1]}


def main():
    rows = {}
    print(f"{'first compile, ms':<28}{'stock':>9}{'stator':>9}{'ratio':>7}  imported by Stator")
    for backend in BACKENDS:
        for target in TARGETS:
            found = rows[f"{target}, {backend}"] = row(target, backend)
            print(
                f"{target + ', ' + backend:<28}{found['stock'] * 1e3:>9.0f}"
                f"{found['stator'] * 1e3:>9.1f}{found['ratio']:>7.1f}  "
                f"{' '.join(found['imported'])}",
                flush=True,
            )
    if len(sys.argv) > 2 and sys.argv[1] == "--json":
        pathlib.Path(sys.argv[2]).write_text(json.dumps({"first": rows}))


if __name__ == "__main__":
    sys.exit(main())
