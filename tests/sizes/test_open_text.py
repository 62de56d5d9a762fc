"""Text of open numbers: text that the program only keeps, returns or drops settles no number; text that
it reads does. Always the text of plain Python."""

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402

import stator  # noqa: E402


def dropped(x):
    f"{x.shape[0]}"
    return x.sin(), None


def returned(x):
    return x.sin(), f"{x.shape[0]}"


def computed(x):
    return x.sin(), f"{x.shape[0] * 2 + 1!r}", f"{x.shape[0] * 0.5}"


def kept(x):
    log = []
    log.append(f"{x.shape[0]}")
    return x * 2, log, {"size": f"{x.shape[0]!s}"}


def at_a_break(x):
    text = f"{x.shape[0]}"
    print(end="")
    return x * 2, text


def joined(x):
    return x + 1, f"{x.shape[0]} by {x.shape[1]}"


def read(x):
    text = f"{x.shape[0] + 1}"
    return x + 1, len(text), text == "5", text + "a", {text: 1}, int(text), text.zfill(3)


def looked_at(x):
    text = f"{x.shape[0]}"
    return x + 1, isinstance(text, str), type(text), bool(text), text is text, f"{x.shape[0]:>5}"


# How many entries there are for six sizes, five of which differ.
PROGRAMS = [
    (dropped, 2), (returned, 2), (computed, 2), (kept, 2), (at_a_break, 4), (joined, 5), (read, 5),
    (looked_at, 6),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "entries"), PROGRAMS, ids=lambda item: getattr(item, "__name__", "")
)
def test_text_of_sizes(program, entries, backend):
    compiled = stator.compile(program, backend=backend)
    for n in (3, 4, 5, 10, 11, 4):
        x = torch.ones(n, 2)
        got, want = compiled(x), program(x)
        assert torch.equal(got[0], want[0])
        assert got[1:] == want[1:]
    assert compiled.metrics["entries"] <= entries


def test_a_size_that_must_differ_may_be_text():
    x = torch.ones(5)
    torch._dynamo.mark_dynamic(x, 0)
    compiled = stator.compile(returned, backend="eager")
    assert compiled(x)[1] == "5"
    assert compiled(torch.ones(7))[1] == "7"
    assert compiled.metrics["entries"] == 1
