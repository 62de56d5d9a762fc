"""`make demo`: a model compiled by Stator next to torch's own Dynamo, and what can be seen of it.

Without torch it shows the same on plain Python objects.
"""

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import stator


def _title(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


# -- with torch --


def _model(torch: Any) -> Any:
    class Block(torch.nn.Module):  # type: ignore[misc, name-defined, unused-ignore]
        def __init__(self, size: int) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(size)
            self.up = torch.nn.Linear(size, 4 * size)
            self.down = torch.nn.Linear(4 * size, size)

        def forward(self, x: Any) -> Any:
            return x + self.down(torch.relu(self.up(self.norm(x))))

    return torch.nn.Sequential(*[Block(32) for _ in range(4)])


def _side_by_side(torch: Any) -> None:
    _title("1. A small network, first call and warm call, backend eager on both sides")
    x = torch.randn(8, 32)
    for name, make in (("Dynamo", torch.compile), ("Stator", stator.compile)):
        torch.manual_seed(0)
        model = _model(torch)
        with torch.no_grad():
            expected = model(x)
            compiled = make(model, backend="eager")
            first = _seconds(lambda: compiled(x))  # noqa: B023
            warm = min(_seconds(lambda: compiled(x)) for _ in range(20))  # noqa: B023
            equal = torch.equal(compiled(x), expected)
        print(
            f"{name}: first call {first * 1e3:8.1f} ms, warm {warm * 1e6:6.0f} µs, equal: {equal}"
        )
    print("(the first call includes what each imports and sets up once)")


def _inside(torch: Any) -> None:
    _title("2. What a compiled call is: graph, guards, plan")

    def step(model: Any, x: Any, log: list[Any]) -> Any:
        loss = (model(x) ** 2).mean()
        log.append(loss)
        return {"loss": loss, "steps": len(log)}

    model = torch.nn.Linear(3, 2)
    entry = stator.explain(step)(model, torch.randn(4, 3), []).entries[0]
    print(entry.graph)
    print(f"\n{len(entry.guards)} guards, among them:")
    for guard, _, _ in entry.guards[-9:]:
        print(f"  {guard}")
    print(f"\nplan:\n{entry.plan}")


# -- without --


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


def _reasons() -> None:
    _title("Why something was compiled again, and why something cannot be compiled")
    compiled: Any = stator.compile(_pay_all, backend="eager", _keep_empty=True)
    for amounts in ([1, 2], [1, 2], [1, 2, 3]):
        compiled(_Account(100), amounts, None)
    for reason in compiled.metrics["recompiles"]:
        print(f"recompiled: {reason}")

    def talks(x: int) -> None:
        print("x is", x)

    try:
        stator.compile(talks, backend="eager", fullgraph=True)(1)
    except stator.Unsupported as error:
        print(f"Unsupported: {error}")


def main() -> None:
    if importlib.util.find_spec("torch") is not None:
        import torch

        _side_by_side(torch)
        _inside(torch)
    else:
        _plain_objects()
    _reasons()


if __name__ == "__main__":
    main()
