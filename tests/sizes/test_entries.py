"""How many entries there are after each call, with numbers that change: never more than stock makes.

The rows are those of stock on torch 2.13; where Stator makes fewer, stock's stand behind."""

import types

import pytest

torch = pytest.importorskip("torch")

from tests.sizes.test_what_changes import ALL, CHANGED, FLOATS, INTS, compile_with  # noqa: E402

AUTOMATIC = CHANGED | INTS | FLOATS
DYNAMIC = AUTOMATIC | ALL


def batch(size):
    return (torch.randn(size, 4),)


def double(x):
    return x * 2 + 1


def both(x, y):
    return x.sum() + (y * 2).sum()


def together(x, y):
    return x + y


X = torch.randn(33, 4)


def scaled(x, n):
    return x * n


def unused(x, n):
    return x * 2


def given_back(x, n):
    return x * 2, n


def one_more(x, n):
    return x * 2, n + 1


def sliced(x, n):
    return x[:n] * 2


def counted(x, n):
    for _ in range(n):
        x = x + 1
    return x


def by_key(x, n):
    return x * {n: 2}[n]


def of_list(x, ns):
    return x * ns[0]


def of_dict(x, ns):
    return x * ns["n"]


def of_object(x, o):
    o.k += 1
    return x * o.k


def halved(x):
    return x[: x.shape[0] // 2] * 2


def flat(x):
    return x.view(-1, 4).sum(1)


def reduced(x):
    return x.reshape(x.shape[0], -1).softmax(-1), x.numel(), x.shape


def by_torch(x, n):
    sizes = torch.sym_max(n, 4), torch.sym_min(n, 9), torch.sym_sum([n, 2]), torch.sym_int(n + 0.5)
    return x * sum(sizes) + torch.sym_float(n)


def asked(x, n):
    return x * n if hasattr(n, "real") and not hasattr(n, "shape") else x


def strides(x):
    y = (x * 2).t()
    return y + y.stride(1)


def offset(x):
    return x + x.storage_offset()


def looping(x):
    n = x.shape[0]
    while n > 1:
        x, n = x + n, n // 2
    return x


def numbers(*values):
    return [(X, value) for value in values]


TABLE = [
    (double, [batch(n) for n in (3, 4, 5)], [1, 2, 2]),
    (double, [batch(n) for n in (3, 1, 4, 0, 5)], [1, 2, 3, 4, 4]),
    (both, [(*batch(n), *batch(m)) for n, m in ((5, 5), (6, 7), (7, 7))], [1, 2, 2]),
    (together, [(*batch(n), *batch(m)) for n, m in ((5, 5), (6, 6), (9, 9), (5, 1))], [1, 2, 2, 3]),
    (double, [(torch.randn(n, m),) for n, m in ((3, 4), (3, 5), (6, 7), (8, 9))], [1, 2, 3, 3]),
    (double, [(torch.randn(m, n).t(),) for n, m in ((3, 4), (5, 4), (6, 4))], [1, 2, 2]),
    (scaled, numbers(0, 1, 2, 3), [1, 2, 2, 2]),
    (scaled, numbers(0.1, 0.2, 0.3), [1, 2, 2]),
    (scaled, numbers(3, 4, 5, True, 2**70 % 97, 3.5, 4.5), [1, 2, 2, 3, 3, 4, 4]),
    (unused, numbers(1, 2, 3), [1, 1, 1]),
    (given_back, numbers(1, 2, 3), [1, 1, 1]),
    (one_more, numbers(1, 2, 3, -7), [1, 2, 2, 2]),
    (sliced, numbers(3, 4, 5), [1, 2, 2]),
    (counted, numbers(1, 2, 3, 2), [1, 2, 3, 3]),
    (by_key, numbers(1, 2, 3, 2), [1, 2, 3, 3]),
    (of_list, [(X, [n]) for n in (2, 3, 4)], [1, 2, 2]),
    (of_dict, [(X, {"n": n}) for n in (2, 3, 4)], [1, 2, 2]),
    (halved, [batch(n) for n in (6, 8, 10, 7, 12)], [1, 2, 2, 2, 2]),
    (flat, [batch(n) for n in (3, 4, 7)], [1, 2, 2]),
    (reduced, [(torch.randn(n, 3, 4),) for n in (3, 4, 7)], [1, 2, 2]),
    (looping, [batch(n) for n in (4, 5, 6, 7, 9)], [1, 2, 2, 2, 3]),
    (by_torch, numbers(2, 5, 6, 7), [1, 2, 2, 2]),
    (asked, numbers(2, 5, 6, 7), [1, 2, 2, 2]),
    (strides, [batch(n) for n in (3, 4, 7)], [1, 2, 2]),
    (offset, [batch(n) for n in (3, 4, 7)], [1, 2, 2]),
]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.stride() == b.stride() and a.dtype == b.dtype
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(("f", "calls", "entries"), TABLE)
def test_numbers_that_change_make_few_entries(f, calls, entries):
    fast, made = compile_with(f, AUTOMATIC), []
    for args in calls:
        assert same(fast(*args), f(*args))
        made.append(fast.metrics["entries"])
    assert made == entries
    assert not fast.metrics["breaks"] and not fast.metrics["drops"]


def test_a_counter_of_an_object_makes_one_entry():  # stock: one for each value
    fast, plain, o = compile_with(of_object, AUTOMATIC), types.SimpleNamespace(k=1), None
    o = types.SimpleNamespace(k=1)
    for _ in range(5):
        assert same(fast(X, o), of_object(X, plain)) and o.k == plain.k
    assert fast.metrics["entries"] == 1


@pytest.mark.parametrize(
    ("f", "calls", "entries"),
    [
        (double, [batch(n) for n in (3, 4, 1, 0)], [1, 1, 2, 3]),
        (scaled, numbers(2, 3, 0, 1), [1, 1, 1, 1]),
        (reduced, [(torch.randn(n, m, 4),) for n, m in ((3, 4), (5, 6), (6, 7))], [1, 1, 1]),
    ],
)
def test_all_can_be_left_open_from_the_start(f, calls, entries):
    fast, made = compile_with(f, DYNAMIC), []
    for args in calls:
        assert same(fast(*args), f(*args))
        made.append(fast.metrics["entries"])
    assert made == entries


def test_static_entries_are_tried_before_dynamic_ones():
    fast = compile_with(double, AUTOMATIC)
    for n in (3, 4, 5, 3):
        fast(*batch(n))
    hits = {str(e["guards"]): e["hits"] for e in fast.compiler.entries()}
    assert [n for text, n in hits.items() if "(3, 4)" in text] == [1]


def test_another_size_that_does_not_fit_raises_as_plain():
    fast = compile_with(flat, AUTOMATIC)
    for n in (4, 8, 12):
        fast(torch.randn(n, 3).reshape(-1))
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        fast(torch.randn(6))


def test_a_cache_of_several_layers_that_grows_makes_three_entries():
    """The first call finds none. To the third, that one is nearer in count than the second."""

    def step(x, cache):
        for i in range(3):
            cache[i : i + 1] = [torch.cat([*cache[i : i + 1], x])]
            x = torch.softmax(cache[i] @ x.t(), 0).t() @ cache[i]
        return x

    fast, mine, plain = compile_with(step, AUTOMATIC), [], []
    for _ in range(8):
        x = torch.randn(1, 4)
        assert same(fast(x, mine), step(x, plain))
    assert len(mine[0]) == 8
    assert fast.metrics["entries"] == 3
