"""Memory that an entry of GPT-2 with 12 layers holds, and its guards, next to stock Dynamo.

Each engine in a process of its own, in which all of Python's memory comes from malloc, so that
malloc's own count is exact. Entries are made by batches of other sizes; a figure is the growth from
one entry to the next, behind the first two. Backend eager: what it holds is counted with the entry.
"""

import ctypes
import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys

SIDES = ("stock", "stator")


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]  # fmt: skip


def allocated():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    for _ in range(3):
        gc.collect()
    found = libc.mallinfo2()
    return found.uordblks + found.hblkhd


def child(name):
    import models
    import sides
    import torch

    torch.set_num_threads(1)
    side = next(side for side in sides.SIDES if side.name == name)
    target, _, kwargs = models.MODELS["GPT-2, 12 layers"]()
    compiled = side.compile(target, backend="eager", dynamic=False)
    held = []
    with torch.no_grad():
        for batch in range(2, 9):
            ids = torch.zeros(batch, 10, dtype=torch.long)
            for _ in range(3):
                compiled(**kwargs | {"input_ids": ids})
            held.append(allocated())
    growth = sorted(b - a for a, b in itertools.pairwise(held[1:]))
    print(json.dumps({"bytes": growth[len(growth) // 2], "guards": guards(name, target, kwargs)}))


def guards(name, target, kwargs):
    import open_models
    import torch

    count = {"stock": open_models.guards_of_stock, "stator": open_models.guards_of_stator}[name]
    with torch.no_grad():
        return sum(count(target, kwargs, dynamic=False))


def measure(name):
    command = [sys.executable, __file__, "--child", name]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2])
    found = {name: measure(name) for name in SIDES}
    for name, side in found.items():
        print(f"an entry of GPT-2, 12 layers, {name}: {side['bytes'] / 1024:.0f} KiB, "
              f"{side['guards']} guards")  # fmt: skip
    found["ratio"] = found["stator"]["bytes"] / found["stock"]["bytes"]
    print(f"Stator's over stock's: {found['ratio']:.2f}")
    if sys.argv[1:2] == ["--json"]:
        pathlib.Path(sys.argv[2]).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
