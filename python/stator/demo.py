"""`make demo`: a small GPT trained by eager, by torch's own `torch.compile` and by Stator, next to
each other; then a function with a problem in it, and what `stator.explain` says of it. Writes both
to a page.

Without torch it shows the same on plain Python objects.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import stator
from stator import _demo_page

NAMES = {"eager": "eager", "dynamo": "torch.compile", "stator": "Stator"}
STEPS = 30


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n{text}\n", flush=True)


# -- trainings --


@dataclasses.dataclass
class Training:
    """One of the three, as far as it has come."""

    who: str
    state: str = "waits"
    losses: list[float] = dataclasses.field(default_factory=list)
    seconds: list[float] = dataclasses.field(default_factory=list)  # of each step
    graphs: int | None = None
    guards: int | None = None

    @property
    def name(self) -> str:
        return NAMES[self.who]

    @property
    def first(self) -> float | None:
        """Seconds until the first step was done."""
        return self.seconds[0] if self.seconds else None

    @property
    def step(self) -> float | None:
        """Seconds for one of the later steps."""
        later = self.seconds[len(self.seconds) // 2 :]
        return statistics.median(later) if len(self.seconds) > 2 else None

    def take(self, event: dict[str, Any]) -> None:
        if event["event"] == "step":
            self.losses.append(event["loss"])
            self.seconds.append(event["seconds"])
            self.state = f"step {len(self.losses)}"
        elif event["event"] == "done":
            self.graphs, self.guards, self.state = event["graphs"], event["guards"], "done"
        else:
            self.state = "first step"


def _events(training: Training, backend: str, steps: int) -> Iterator[dict[str, Any]]:
    """Runs it in a process of its own, with nothing compiled before."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(stator.__file__)))
    command = [sys.executable, "-m", "stator._demo_gpt", training.who, backend, str(steps)]
    with tempfile.TemporaryDirectory() as caches, tempfile.TemporaryFile("w+") as errors:
        path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "PYTHONPATH": path, "TORCHINDUCTOR_CACHE_DIR": caches}
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
        finally:
            process.kill()
            process.wait()
        errors.seek(0)
        if training.state != "done":
            raise SystemExit(f"{training.name} did not come to its end:\n{errors.read()[-4000:]}")


def apart(training: Training, others: list[Training]) -> str:
    """How far its losses are from those of eager."""
    if training.who == "eager" or not training.losses:
        return ""
    pairs = zip(training.losses, others[0].losses, strict=False)
    most = max(abs(a - b) for a, b in pairs)
    return "equal" if most == 0 else f"within {most:.0e}"


# -- the table --

_COLUMNS = ("", "first step", "per step", "graphs", "guards", "loss", "losses", "")
_WIDTHS = (15, 12, 11, 8, 8, 9, 16, 12)


def _row(cells: tuple[str, ...]) -> str:
    pairs = zip(cells, _WIDTHS, strict=True)
    line = "".join(cell.rjust(width) if i else cell.ljust(width)
                   for i, (cell, width) in enumerate(pairs))  # fmt: skip
    return line.rstrip()


def _cells(training: Training, trainings: list[Training]) -> tuple[str, ...]:
    def number(value: float | None, form: str) -> str:
        return "" if value is None else form.format(value)

    return (
        training.name,
        _demo_page.duration(training.first),
        _demo_page.duration(training.step),
        number(training.graphs or None, "{}"),
        number(training.guards or None, "{}"),
        number(training.losses[-1] if training.losses else None, "{:.4f}"),
        apart(training, trainings),
        "" if training.state == "done" else training.state,
    )


class Table:
    """Written again as things go on, in a terminal; else a line when a training is done."""

    def __init__(self, trainings: list[Training]) -> None:
        self._trainings = trainings
        self._live = sys.stdout.isatty()
        self._drawn = 0.0
        print(_row(_COLUMNS), flush=True)
        if self._live:
            print("\n" * (len(trainings) - 1))
            self.show(True)

    def show(self, now: bool = False) -> None:
        if not self._live or (not now and time.monotonic() < self._drawn + 0.1):
            return
        self._drawn = time.monotonic()
        rows = [_row(_cells(each, self._trainings)) for each in self._trainings]
        lines = "".join(f"\x1b[K{row}\n" for row in rows)
        sys.stdout.write(f"\x1b[{len(rows)}A{lines}")
        sys.stdout.flush()

    def done(self, training: Training) -> None:
        if self._live:
            self.show(True)
        else:
            print(_row(_cells(training, self._trainings)), flush=True)


def _train(backend: str, steps: int) -> list[Training]:
    trainings = [Training(who) for who in NAMES]
    table = Table(trainings)
    for training in trainings:
        training.state = "starts"
        table.show(True)
        for event in _events(training, backend, steps):
            training.take(event)
            table.show()
        table.done(training)
    return trainings


# -- a problem --


def _problem() -> Any:
    """A training step that somebody wrote, explained."""
    import torch

    def step(model: Any, x: Any, log: list[float]) -> Any:
        loss = (model(x) ** 2).mean()
        log.append(loss.item())
        if len(log) > 1 and log[-1] > log[-2]:
            return loss * 0.5
        return loss

    torch.manual_seed(0)
    model, log = torch.nn.Linear(3, 2), [0.25]
    return stator.explain(step)(model, torch.randn(4, 3), log)


# -- without torch --


class _Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.history: list[int] = []

    def pay(self, amount: int) -> None:
        self.balance -= amount
        self.history.append(amount)


def _pay_all(account: _Account, amounts: list[int], note: object) -> dict[str, object]:
    for amount in amounts:
        account.pay(amount)
    return {"left": account.balance, "note": note}


def _plain_objects() -> None:
    _title("Plain Python: what is read is guarded, what is written is held back and replayed")
    print(stator.explain(_pay_all)(_Account(100), [1, 2], "rent"))
    _title("Why something was compiled again")
    compiled: Any = stator.compile(_pay_all, backend="eager", _keep_empty=True)
    for amounts in ([1, 2], [1, 2], [1, 2, 3]):
        compiled(_Account(100), amounts, None)
    for reason in compiled.metrics["recompiles"]:
        print(f"recompiled: {reason}")
    print("\n(torch is not installed: with it, the demo trains a small GPT)")


# -- all of it --


def machine() -> str:
    """Where and when: figures mean nothing without it."""
    import torch

    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        found = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    date = time.strftime("%Y-%m-%d")
    versions = f"CPython {platform.python_version()}, torch {torch.__version__}"
    return f"{found[0] if found else name}, time of one processor; {versions}; {date}"


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _with_torch(options: argparse.Namespace) -> None:
    _title(
        f"A GPT of 4 layers, {options.steps} steps of training: eager, and two frame compilers "
        f"with backend {options.backend}"
    )
    trainings = _train(options.backend, options.steps)
    _title("A step with a problem in it, and what stator.explain says")
    explanation = _problem()
    print(explanation)
    here = machine()
    _write(options.out, _demo_page.page(trainings, explanation, options.backend, here))
    print(f"\nThe page with the charts: {os.path.abspath(options.out)}")
    if options.svg:
        _write(options.svg, _demo_page.picture(trainings, options.backend, here))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m stator.demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of training ({STEPS})")
    parser.add_argument("--backend", default="eager", help="of both compilers (eager)")
    parser.add_argument("--out", default="build/demo.html", help="the page (build/demo.html)")
    parser.add_argument("--svg", help="a file for the charts alone")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    if importlib.util.find_spec("torch") is None:
        _plain_objects()
    else:
        _with_torch(options)
    print(f"({time.perf_counter() - began:.0f} s)")


if __name__ == "__main__":
    main()
