"""How many graphs Stator and stock Dynamo make of programs whose sizes and numbers change.

    python bench/entries.py            all programs of tests/sizes/pieces.py and workloads.py
    python bench/entries.py in_loop    some of them

A row: the graphs handed to the backend after each call, and what the tests have on record for
stock.
Stock's 0 means that it leaves the program to CPython.
"""

import pathlib
import sys
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import stator
from tests.sizes import pieces, workloads


def graphs_after(compiled, calls, made):
    after = []
    for args in calls:
        compiled(*args)
        after.append(len(made))
    return after


def counting(made):
    def backend(module, examples):
        made.append(module)
        return module.forward

    return backend


def of_stator(row):
    made = []
    stator.reset()
    return graphs_after(stator.compile(row.function, backend=counting(made)), row.calls(), made)


def of_stock(row):
    made = []
    torch._dynamo.reset()
    return graphs_after(torch.compile(row.function, backend=counting(made)), row.calls(), made)


def main(names):
    rows = {**pieces.ROWS, **workloads.ROWS}
    print(f"{'program':28}{'Stator':>8}{'stock':>8}{'on record':>11}   after each call")
    for name in names or rows:
        torch.manual_seed(0)
        ours, stock = of_stator(rows[name]), of_stock(rows[name])
        mark = "*" if 0 < stock[-1] < ours[-1] else " "
        print(
            f"{name:28}{ours[-1]:>8}{stock[-1]:>8}{rows[name].stock!s:>11} {mark} {ours} {stock}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
