"""First steps with inductor, next to stock Dynamo, each run in a process of its own with a cache
folder of its own. Takes many minutes. The whole process up to its first result with caches that are
warm (BERT, 6 layers); the first call with empty caches for 6 and 24 equal blocks, inference and
training. By the clock and in processor seconds, those of inductor's compilers included."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 3
BLOCKS = (6, 24)

CHILD = """
import resource, sys, time, json
sys.path.insert(0, {folder!r})
import torch
compile = torch.compile
if {side!r} == "stator":
    import stator
    compile = stator.compile
import inductor
torch.manual_seed(0)
def processor():
    both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return sum(sum(resource.getrusage(who)[:2]) for who in both)
target, args, kwargs = inductor.{make}
begin, before = time.perf_counter(), processor()
with torch.set_grad_enabled({train}):
    result = compile(target)(*args, **kwargs)
    if {train}:
        result.sum().backward()
print(json.dumps([time.perf_counter() - begin, processor() - before, processor()]))
"""


def bert():
    import models

    target, args, kwargs = models.bert(6)
    return target, args, kwargs


def blocks(count):
    import torch
    from sizes import blocks

    return blocks(torch, count)[0], (torch.randn(3, 64, 32),), {}


def run(side, make, train, cache):
    """Seconds of the call, its processor seconds, processor seconds of the whole process; and
    seconds of the whole process."""
    folder = os.path.dirname(os.path.abspath(__file__))
    text = CHILD.format(folder=folder, side=side, make=make, train=train)
    places = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": os.path.join(cache, "t")}
    begin = os.times().elapsed
    done = subprocess.run([sys.executable, "-c", text], env=os.environ | places,
                          capture_output=True, text=True, check=True)  # fmt: skip
    return [*json.loads(done.stdout.splitlines()[-1]), os.times().elapsed - begin]


def named(values):
    names = ("call", "call, processor", "process, processor", "process")
    return {name: statistics.median(v[i] for v in values) for i, name in enumerate(names)}


def warm_caches():
    taken = {}
    with tempfile.TemporaryDirectory() as top:
        places = {side: os.path.join(top, side) for side in ("stock", "stator")}
        for side, cache in places.items():
            run(side, "bert()", False, cache)
        for _ in range(ROUNDS):
            for side, cache in places.items():
                taken.setdefault(side, []).append(run(side, "bert()", False, cache))
    return {side: named(values) for side, values in taken.items()}


def cold(count, train):
    found = {}
    for side in ("stock", "stator"):
        with tempfile.TemporaryDirectory() as cache:
            found[side] = named([run(side, f"blocks({count})", train, cache)])
    return found


def say(title, found):
    for name in found["stock"]:
        stock, ours = found["stock"][name], found["stator"][name]
        found.setdefault("ratio", {})[name] = stock / ours
        print(f"{title}, {name}: stock {stock:.1f} s, Stator {ours:.1f} s, {stock / ours:.2f}",
              flush=True)  # fmt: skip
    return found


def main():
    rows = {"BERT, 6 layers, caches warm": say("BERT, 6 layers, caches warm", warm_caches())}
    for train in (False, True):
        for count in BLOCKS:
            title = f"{count} blocks, {'training' if train else 'inference'}, caches empty"
            rows[title] = say(title, cold(count, train))
    if sys.argv[1:2] == ["--json"]:
        pathlib.Path(sys.argv[2]).write_text(json.dumps({"first": rows}))


if __name__ == "__main__":
    sys.exit(main())
