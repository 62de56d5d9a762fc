"""Tensors that are not traced: nested, sparse, quantized. Programs with them run in pieces, and give
what plain Python gives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import stator  # noqa: E402


def values() -> Any:
    return torch.arange(6.0).reshape(2, 3) - 2


def seen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        value = value.dequantize() if value.is_quantized else value
        value = value.to_dense() if value.layout is not torch.strided else value
        return type(value).__name__, value.tolist(), value.requires_grad
    return [seen(item) for item in value] if isinstance(value, (tuple, list)) else value


def jagged(x: Any) -> Any:
    return torch.nested.nested_tensor([x[0], x[1]], layout=torch.jagged)


OTHERS = {
    "sparse": lambda x: x.to_sparse(),
    "compressed": lambda x: x.to_sparse_csr(),
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.5, 0, torch.qint8),
}

PROGRAMS = {
    "method": lambda x, s: (x.sin(), s.abs(), x.cos()),
    "operator": lambda x, s: (x + 1, s * 2, x * 2),
    "shape": lambda x, s: (s.shape, s.dtype, x + 1),
    "kind": lambda x, s: (type(s).__name__, isinstance(s, torch.Tensor), x + 1),
    "given back": lambda x, s: (s, x + 1),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", OTHERS)
def test_gives_the_same(kind, program, backend):
    f = PROGRAMS[program]
    if (kind, program) in {("quantized", "operator"), ("quantized", "method")}:
        f = lambda x, s: (x + 1, s.dequantize(), x * 2)  # noqa: E731
    fast = stator.compile(f, backend=backend)
    for i in range(3):
        x = values() + i
        assert seen(fast(x, OTHERS[kind](x))) == seen(f(x, OTHERS[kind](x)))


@pytest.mark.parametrize("kind", OTHERS)
def test_says_why(kind):
    with pytest.raises(stator.Unsupported, match="a tensor"):
        stator.compile(lambda s: s.abs() if kind != "quantized" else s.dequantize(),
                       fullgraph=True)(OTHERS[kind](values()))  # fmt: skip


def test_jagged():
    def f(x):
        y = jagged(x) * 2
        return [part.tolist() for part in y.unbind()], x + 1

    fast = stator.compile(f)
    for i in range(2):
        assert seen(fast(values() + i)) == seen(f(values() + i))
    n = jagged(values())
    fast = stator.compile(lambda n: n * 2)
    for _ in range(2):
        got = fast(n)
        assert [part.tolist() for part in got.unbind()] == [p.tolist() for p in (n * 2).unbind()]
