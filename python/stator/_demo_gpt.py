"""One of the trainings of `make demo`, in a process of its own: `python -m stator._demo_gpt WHO
BACKEND STEPS` trains a small GPT and writes what happens to its output, one JSON object a line.

WHO is `eager`, `dynamo` (torch's own `torch.compile`) or `stator`. All start from the same weights
and see the same text."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import stator
from stator import _private_dynamo as private

TEXT = (
    "In a compiler for frames, the frame is the thing that runs: a function, where it is, and what "
    "it holds. Run it once and note the operations; check what was relied on; run the rest as it "
    "was written. "
) * 8
LAYERS, WIDTH, HEADS, CONTEXT, BATCH = 4, 64, 4, 32, 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, -1).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))  # type: ignore[no-any-return]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        return x + self.down(functional.gelu(self.up(self.after(x))))  # type: ignore[no-any-return]


class GPT(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.places = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, vocabulary)

    def forward(self, text: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        x = self.tokens(text) + self.places(torch.arange(text.shape[1]))
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.norm(x))
        return functional.cross_entropy(scores.flatten(0, 1), following.flatten())


def batches(steps: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    letters = sorted(set(TEXT))
    text = torch.tensor([letters.index(letter) for letter in TEXT])
    starts = torch.randint(len(text) - CONTEXT - 1, (steps, BATCH))
    return [
        (
            torch.stack([text[s : s + CONTEXT] for s in row]),
            torch.stack([text[s + 1 : s + CONTEXT + 1] for s in row]),
        )
        for row in starts.tolist()
    ]


def compiled(who: str, model: GPT, backend: str) -> Any:
    if who == "dynamo":
        return torch.compile(model, backend=backend)
    return stator.compile(model, backend=backend) if who == "stator" else model


def counts(who: str, model: Any) -> dict[str, int]:
    """Graphs, and the guards of their entries."""
    if who == "dynamo":
        metrics = private.compilation_metrics()
        graphs = private.counters["stats"]["unique_graphs"]
        return {"graphs": graphs, "guards": sum(m.guard_count or 0 for m in metrics)}
    if who == "stator":
        entries = model.dynamo_ctx.compiler.entries()
        graphs = sum(entry["graph"] is not None for entry in entries)
        return {"graphs": graphs, "guards": sum(len(entry["guards"]) for entry in entries)}
    return {"graphs": 0, "guards": 0}


def tell(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def _warm(backend: str) -> None:
    """What each process imports and sets up once is not measured. One thread: the model is small,
    and threads that wait for each other would measure the machine."""
    torch.set_num_threads(1)
    functional.relu(torch.ones(2, 2, requires_grad=True)).sum().backward()  # type: ignore[no-untyped-call]
    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    stator.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    torch.compiler.reset()
    private.clear_compilation_metrics()
    private.counters.clear()


def main(who: str, backend: str, steps: int) -> None:
    _warm(backend)
    torch.manual_seed(0)
    given = batches(steps)
    plain = GPT(len(set(TEXT)))
    optimizer = torch.optim.AdamW(plain.parameters(), lr=3e-3, foreach=True)
    tell(event="ready", parameters=sum(p.numel() for p in plain.parameters()))
    # A busy machine does not show in the time of the processor; nor does the time of the processes
    # that inductor starts.
    clock = time.perf_counter if backend == "inductor" else time.process_time
    begin = clock()
    model = compiled(who, plain, backend)
    for text, following in given:
        loss = model(text, following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        now = clock()
        tell(event="step", loss=loss.item(), seconds=now - begin)
        begin = clock()
    tell(event="done", **counts(who, model))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
