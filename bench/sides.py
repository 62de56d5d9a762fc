"""Both engines behind one face, and the ways to measure them in turns."""

import gc
import json
import pathlib
import statistics
import sys
import time

import torch
import torch._dynamo

import stator

ROUNDS = 3


class Stock:
    name = "stock"

    @staticmethod
    def compile(target, **settings):
        torch._dynamo.reset()
        return torch.compile(target, **settings)


class Stator:
    name = "stator"

    @staticmethod
    def compile(target, **settings):
        stator.reset()
        return stator.compile(target, **settings)


SIDES = (Stock, Stator)


def used(call, times=1):
    """Processor seconds of one call."""
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


def microseconds(call, seconds=0.02):
    """Of one call, where many last about as long as that."""
    call()
    times = max(1, min(20000, int(seconds / max(used(call, 3), 1e-7))))
    return used(call, times) * 1e6


def in_turns(calls, rounds):
    """The median of what each call gives, round by round in turns."""
    found = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            gc.collect()
            found[name].append(call())
    return {name: statistics.median(values) for name, values in found.items()}


def dict_tags():
    """Whether stock's guards skip whole modules by the versions of their dicts."""
    config = torch._dynamo.config
    return bool(getattr(config, "use_recursive_dict_tags_for_guards", False))


def begin_process():
    """One thread, and both engines past what they do once in a process."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(3)
    for side in SIDES:
        for backend in ("eager", lambda graph, inputs: graph.forward):
            side.compile(lambda x: x + 1, backend=backend)(x)
            side.compile(torch.nn.Linear(3, 3), backend=backend)(x)


def finish(group, found):
    """Where the driver wants it, or for people."""
    facts = {"torch": torch.__version__, "stock_dict_tags": dict_tags()}
    if len(sys.argv) > 2 and sys.argv[1] == "--json":
        pathlib.Path(sys.argv[2]).write_text(json.dumps({**facts, **found}))
    else:
        print(json.dumps({group: {**facts, **found}}, indent=2))


def geometric_mean(values):
    return statistics.geometric_mean(list(values))
