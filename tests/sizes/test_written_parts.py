"""Writes to the results of operations that give several tensors, or tensors whose sizes only the graph
knows: each call gives what plain Python gives, whole under `fullgraph`, and open sizes stay open."""

import pytest

torch = pytest.importorskip("torch")
import torch._dynamo  # noqa: E402
from torch._dynamo.backends.registry import lookup_backend  # noqa: E402

import stator  # noqa: E402

# Each of a matrix x with two rows, and a mask m of its shape.
PROGRAMS = {
    "where": "a, b = torch.where(m); a.add_(1); return a, b",
    "where by name": "a, b = torch.where(condition=m); b.mul_(a); return a, b",
    "where of one number": "(a,) = torch.where(m[0, 0]); a.add_(1); return a",
    "nonzero as a tuple": "a, b = m.nonzero(as_tuple=True); a += 1; return a + b",
    "nonzero as a tuple, a function": "a, b = torch.nonzero(m, as_tuple=True); a[0] = 7; return a, b",
    "nonzero of a row": "(a,) = m[0].nonzero(as_tuple=True); a.view(-1, 1).add_(1); return a * 2",
    "unbind of nonzero": "n = m.nonzero(); a, b = n.unbind(1); a.add_(b); return a, n",
    "rows of nonzero": "a, b = m.nonzero().t(); a.add_(1); return a, b",
    "columns of nonzero": "n = m.nonzero(); n[:, 0] = 7; n.t()[1].add_(1); return n",
    "split of nonzero": "a, b = m.nonzero().split(1, 1); a.add_(1); return a, b",
    "chunk of nonzero": "a, b = m.nonzero().chunk(2, 1); b.zero_(); return a + b",
    "hsplit of nonzero": "a, b = m.nonzero().hsplit(2); b.zero_(); return a + b",
    "argwhere": "a = torch.argwhere(m); a[:, 1] += 1; return a",
    "several at once": "a, b = torch.where(m); torch._foreach_add_([a, b], 1); return a, b",
    "out": "a, b = torch.where(m); torch.add(a, 1, out=a); return a, b",
    "each in a loop": "p = torch.where(m)\n for a in p: a.mul_(3)\n return p",
    "a mask": "y = x[m > 0]; y[:1].add_(1); y.unsqueeze(1).mul_(2); return y",
    "unbind of masks": "y = torch.stack([x[m > 0]] * 2); a, _ = y.unbind(); a.add_(1); return y",
    "unique": "u, at = torch.unique(m, return_inverse=True); u.add_(1); at.mul_(2); return u, at",
    "repeat_interleave": "a = torch.repeat_interleave(x, m[0], dim=1); a[0].add_(1); return a",
    "a number of a tensor": "n = m[0].sum().item(); y = x * 2; y[:, :n].add_(1); return y",
    "split by a number": "n = m[0].sum().item(); y = x * 2; a, b = y.split([n, y.shape[1] - n], 1); "
    "a.add_(1); return a, b, y",
    "topk": "v, i = x.topk(2); v.add_(1); i.mul_(2); return v, i",
    "max": "v, i = x.max(0); v.add_(1); i.mul_(2); return v, i",
    "split": "y = x * 2; a, b = y.split(y.shape[1] - 1, 1); a.add_(1); return a, b, y",
    "unbind": "y = x * 2; a, b = y.unbind(); a.add_(b); return a, b, y",
    "unbind of an input": "a, b = x.unbind(0); a.add_(1); return a, b",
    "unbind backwards": "y = x + 1; p = y.t().unbind(dim=-1); p[1].mul_(2); return p[0], y",
    "views of parts": "y = x + 1; a, b = y.unbind(); a[1:].add_(b[:-1]); b.copy_(a); return y",
}  # fmt: skip


def arguments():
    for width in (3, 4, 5, 6):
        made = torch.Generator().manual_seed(width)
        mask = torch.randint(0, 2, (2, width), generator=made)
        mask[0, :2] = 1
        yield torch.randn(2, width, generator=made), mask


def told(result):
    parts = [result] if isinstance(result, torch.Tensor) else result
    return [(part.tolist(), part.dtype, part.shape, part.stride()) for part in parts]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_written_parts_are_as_plain(name: str, backend: str) -> None:
    torch._dynamo.reset()
    names = {"torch": torch}
    exec(f"def f(x, m):\n {PROGRAMS[name]}", names)
    graphs = []

    def counted(module, examples):
        graphs.append(module)
        return lookup_backend(backend)(module, examples)

    compiled = stator.compile(names["f"], backend=counted, fullgraph=True, dynamic=True)
    for x, mask in arguments():
        given, wanted = (x.clone(), mask), told(names["f"](x, mask))
        assert told(compiled(*given)) == wanted
        assert torch.equal(given[0], x)
    assert len(graphs) == 1


def test_parts_that_need_gradients_keep_their_gradients() -> None:
    """The same graph writes elsewhere."""

    def f(x, m):
        a, b = x.unbind()
        rows, places = torch.where(m)
        rows.add_(1)
        return a * b.sin(), rows + places

    compiled = stator.compile(f, backend="aot_eager", fullgraph=True, dynamic=True)
    for x, mask in arguments():
        found = []
        for function in (f, compiled):
            leaf = x.clone().requires_grad_()
            result, places = function(leaf, mask)
            result.sum().backward()
            found.append((told([result.detach(), places]), told(leaf.grad)))
        assert found[0] == found[1]
