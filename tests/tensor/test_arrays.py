# ruff: noqa: E402
"""Programs with NumPy arrays: results, writes and shared memory are plain Python's.

`WHOLE` programs become one graph; `BROKEN` ones break somewhere, and are right all the same.
"""

import collections
import warnings

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import stator


def plain(shape=(2, 3), dtype=np.float64, start=0):
    return np.arange(start, start + int(np.prod(shape)), dtype=dtype).reshape(shape)


def writes(a):
    a += 1
    return a


def writes_and_looks(a):
    b = a[0]
    a[1] = b * 2
    a[0, 1] = 7
    return b, a


def number_stays(a):
    first = a[0, 0]
    a[0, 0] = 9
    first += 1
    return first


def view_is_written(a):
    b = a.T
    b[0] = 5
    return b, a.reshape(-1)


def overlapping(a):
    line = a.reshape(-1)
    line[1:] = line[:-1]
    return line


def tensor_writes_array(a):
    torch.from_numpy(a).add_(1)
    return a.sum()


def array_writes_tensor(a):
    t = torch.ones(3)
    t.numpy()[0] = 5
    return t, a * 2


def of_rows(a):
    total = 0
    for row in a:
        total = total + row.sum()
    return total


def of_arguments(a, b, *, scale=2):
    return {"sum": a + b, "both": [np.stack([a, b]), np.concatenate((a, b))], "n": a.sum() * scale}


def of_classes(a):
    s = a.sum()
    return type(s) is np.float64, isinstance(s, float), isinstance(a, np.ndarray), type(a)


def of_facts(a):
    return a.shape, a.ndim, a.size, a.dtype, a.itemsize, a.nbytes, len(a), a.dtype == np.float64


def missing_attribute(a):
    return hasattr(a, "detach"), getattr(a, "nothing", 3), a + 1


def same_array(a):
    b = np.asarray(a)
    return b is a, b, a.astype(a.dtype, copy=True) is a


def with_known(a):
    return a * np.float32(2) + np.arange(3) + np.array([1.0, 2.0, 3.0])


def twice(a):
    b = a * 2
    return b, b, [b]


Point = collections.namedtuple("Point", "x y")


def holder(a):
    return Point(a + 1, {"k": a.mean()})


def in_sum(a):
    return sum([a, a, a]), max(a.shape)


def to_torch(a):
    t = torch.from_numpy(a)
    return t.sin(), torch.as_tensor(a).cos(), torch.tensor(a), torch.tensor(a.sum())


def copies(a):
    b = a.copy()
    b[0] = 3
    c = np.array(a)
    c += 1
    return a, b, c, a.flatten(), a.ravel()


def swaps(a):
    a[[0, 1]] = a[[1, 0]]
    return a


def filled(a):
    b = np.zeros_like(a)
    b.fill(3)
    b[a > 2] = 1
    return b


def helpers(a):
    def scaled(x, k):
        return (x - x.mean(axis=0)) / (x.std(axis=0) + k)

    return scaled(a, 1e-3), np.where(a > 2, a, -a), np.clip(a, 1, 4), np.einsum("ij,kj->ik", a, a)


def of_tensors(a):
    t = torch.from_numpy(a)
    shared = np.asarray(t)
    shared += 1
    return np.ones_like(t, dtype=np.float64), np.full_like(t, 2.5, dtype=np.float32), shared, a


def known_arrays(a):
    line = np.arange(6)
    kept = {"grid": np.zeros((2, 3)), "line": line, "again": line}
    return kept, a + kept["grid"]


def parts(a):
    b = a * np.complex64(1j)
    b.imag[0] = 7
    return b.real, b.imag, a.real is a, a.strides, a.T.strides


WHOLE = {
    "of tensors": of_tensors, "known arrays": known_arrays, "parts": parts,
    "grids": lambda a: (np.meshgrid(a[0], a[1]), np.meshgrid(a, sparse=True, indexing="ij")),
    "along": lambda a: np.take_along_axis(a, np.array([[0, -1], [1, 1]]), 1),
    "spectra": lambda a: (np.fft.fftshift(a), np.fft.ifftshift(a, axes=0)),
    "kinds": lambda a: (np.issubdtype(type(3), np.integer), np.issubdtype(np.float32, np.floating),
                        a + 1),
    "elementwise": lambda a: np.sqrt(np.abs(a) + 1) * np.exp(-a) - 2,
    "matmul": lambda a: (a @ a.T, a[0] @ a[1], np.dot(a, a.T)),
    "reductions": lambda a: (a.sum(), a.mean(axis=1), a.max(), a.argmax(axis=0), a.std(), a.any()),
    "comparisons": lambda a: (a > 1, (a > 1) & (a < 4), ~(a == 2), a != a),
    "shapes": lambda a: (a.reshape(3, 2), a.T, a[None], a[..., 0], a.swapaxes(0, 1), a[:, ::2]),
    "integers": lambda a: a.astype(np.int32) // 2 + np.int8(3),
    "reflected": lambda a: (1 - a, 2 / (a + 1), 2**a, -a, +a, abs(a)),
    "writes": writes, "writes and looks": writes_and_looks, "a number stays": number_stays,
    "a view is written": view_is_written, "overlapping": overlapping,
    "a tensor writes an array": tensor_writes_array,
    "an array writes a tensor": array_writes_tensor, "rows": of_rows, "classes": of_classes,
    "facts": of_facts, "missing attribute": missing_attribute, "same array": same_array,
    "known": with_known, "twice": twice, "sum()": in_sum, "to torch": to_torch, "copies": copies,
    "swaps": swaps, "filled": filled, "helpers": helpers, "itself": lambda a: a,
    "a view of it": lambda a: a[1:], "holder": holder,
}  # fmt: skip


def printed(a):
    b = a + 1
    print(b.sum(), end="")
    return b * 2, a


def truth(a):
    return a * 2 if a.sum() > 3 else a - 1


def by_number(a):
    return a * float(a.sum()), int(a[0, 0]) + 1, a[0].tolist()


def made_inside(a):
    out = np.zeros(3)
    out[0] = a.sum()
    return out, a + 1


def fields(a):
    b = a + 1
    return b.flags.writeable, b.strides, np.shares_memory(a, b), b.base is None or True


def random(a):
    np.random.seed(3)
    return a + np.random.rand(3)


def method_kept(a):
    f = (a + 1).sum
    print(end="")
    return f(axis=0)


def shared_known_arrays(a):
    line = np.arange(6)
    part, wide = line[:2], np.broadcast_to(line, (2, 6))
    line = line if a[0, 0] > 100 else part.base
    part[0] = 9
    return line, part, wide.flags.writeable


BROKEN = {
    "shared known arrays": shared_known_arrays, "imag": lambda a: a.imag,
    "printed": printed, "truth": truth, "numbers": by_number, "made inside": made_inside,
    "fields": fields, "random": random, "a method is kept": method_kept,
    "texts": lambda a: (np.array(["a", "b"]), a + 1, str(a)),
    "backwards": lambda a: (a[::-1] + 1, np.flip(a)),
    "objects": lambda a: np.array([None, a.shape], dtype=object),
    "mask": lambda a: a[a > 2],
    "tensor and array": lambda a: torch.ones(3) + torch.from_numpy(a),
    "list operand": lambda a: a + [1, 2, 3],
    "none": lambda a: (a == None, a != None),  # noqa: E711
    "out": lambda a: np.add(a, 1, out=a),
    "by zero": lambda a: a.astype(int) // np.array([0, 1, 2]),
    "in": lambda a: 3 in a,
    "sorted": lambda a: sorted(a[0]),
    "copied": lambda a: __import__("copy").deepcopy(a) + 1,
    "keys": lambda a: {float(x): 1 for x in a[0]},
    "unique": lambda a: np.unique(a),
    "order": lambda a: a.reshape(-1, order="F"),
}  # fmt: skip

ARRAYS = {
    "plain": lambda: plain(),
    "again": lambda: plain(start=3),
    "larger": lambda: plain((4, 3)),
    "float32": lambda: plain(dtype=np.float32),
    "transposed": lambda: plain((3, 2)).T,
    "stepped": lambda: plain((4, 6))[::2, ::2],
    "fixed": lambda: read_only(plain()),
    "backwards": lambda: plain()[:, ::-1],
    "swapped bytes": lambda: plain().astype(">f8"),
    "unsigned": lambda: plain(dtype=np.uint32),
}


def read_only(array):
    array.setflags(write=False)
    return array


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [value]


def memory(value):
    return value.numpy() if isinstance(value, torch.Tensor) else value


def assert_same(got, want, what):
    assert type(got) is type(want), (what, type(got), type(want))
    if isinstance(want, np.ndarray) and want.dtype != object:
        assert got.dtype == want.dtype and got.shape == want.shape, what
        pairs = zip(want.shape, want.strides, got.strides)
        assert want.size == 0 or all(n == 1 or a == b for n, a, b in pairs), what
        if want.dtype.kind in "iufcb":
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=str(what))
            return
    if isinstance(want, torch.Tensor):
        torch.testing.assert_close(got, want)
    elif isinstance(want, float):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    elif isinstance(want, np.ndarray):
        assert got.tolist() == want.tolist(), what
    elif not isinstance(want, (list, tuple, dict)):
        assert got == want, what


def outcome(function, given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(given)
        except Exception as error:
            return type(error)


def compare(compiled, program, make, what):
    mine, theirs = make(), make()
    got, want = outcome(compiled, mine), outcome(program, theirs)
    assert_same(mine, theirs, (what, "argument"))
    left, right = leaves(got), leaves(want)
    assert len(left) == len(right) and type(got) is type(want), what
    for a, b in zip(left, right):
        assert_same(a, b, what)
    left, right = [mine, *map(memory, left)], [theirs, *map(memory, right)]
    for i in range(len(left)):
        for j in range(i):
            assert (left[i] is left[j]) == (right[i] is right[j]) or not is_array(right[i]), what
            assert shared(left[i], left[j]) == shared(right[i], right[j]), (what, i, j)


def is_array(value):
    return isinstance(value, np.ndarray)


def shared(a, b):
    return is_array(a) and is_array(b) and np.shares_memory(a, b)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*WHOLE, *BROKEN])
def test_programs_are_plain_pythons(name, backend):
    program = WHOLE.get(name) or BROKEN[name]
    compiled = stator.compile(program, backend=backend)
    for kind in ARRAYS if backend == "eager" else list(ARRAYS)[:5]:
        for _ in range(2):
            compare(compiled, program, ARRAYS[kind], (name, kind))


@pytest.mark.parametrize("name", WHOLE)
def test_programs_are_one_graph(name):
    compiled = stator.compile(WHOLE[name], backend="eager", fullgraph=True)
    compare(compiled, WHOLE[name], plain, name)


def test_an_array_of_another_size_leaves_the_size_open():
    graphs = []

    def backend(module, examples):
        graphs.append(module)
        return module.forward

    compiled = stator.compile(lambda a: np.sin(a).sum(axis=0) * a.shape[0], backend=backend)
    for n in (3, 4, 5, 6, 7):
        a = plain((n, 2))
        np.testing.assert_allclose(compiled(a), np.sin(a).sum(axis=0) * n)
    assert len(graphs) == 2


def test_arguments_that_share_memory_are_told_apart():
    def program(a, b):
        a += 1
        return a + b

    compiled = stator.compile(program, backend="aot_eager")
    for make in (lambda: (plain(), plain()), lambda: (plain(),) * 2, overlapping_pair):
        mine, theirs = make(), make()
        np.testing.assert_array_equal(compiled(*mine), program(*theirs))
        np.testing.assert_array_equal(mine[1], theirs[1])


def overlapping_pair():
    base = plain((3, 3))
    return base[:2], base[1:]


def test_globals_and_attributes_are_inputs():
    class Holder:
        pass

    held = Holder()
    held.array = plain()
    compiled = stator.compile(lambda: held.array * 2, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(), plain() * 2)
    held.array[0] = 9
    np.testing.assert_array_equal(compiled(), held.array * 2)
    held.array = plain((4,))
    np.testing.assert_array_equal(compiled(), held.array * 2)


@pytest.mark.parametrize("how", ["raise", "ignore", "warn"])
def test_errors_that_are_to_be_noticed_are(how):
    def program(a):
        return a / 0

    compiled = stator.compile(program, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(plain())
        with np.errstate(all=how):
            if how == "raise":
                with pytest.raises(FloatingPointError):
                    compiled(plain())
            else:
                np.testing.assert_array_equal(compiled(plain()), program(plain()))


def test_gradients_do_not_go_through_numpy():
    def program(x):
        return x.detach().numpy().sum() + x.numpy().sum()

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        stator.compile(program, backend="eager")(x)
