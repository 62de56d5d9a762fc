# ruff: noqa: E402
"""Lines N1 and N2: numpy in compiled functions."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

from tests.spec.helpers import Recorder, both


def array():
    return np.arange(6.0).reshape(2, 3)


def compare(function, fullgraph=False):
    backend = Recorder()
    got = torch.compile(function, backend=backend, fullgraph=fullgraph)(array())
    want = function(array())
    assert type(got) is type(want)
    for mine, theirs in zip(got, want) if isinstance(want, tuple) else [(got, want)]:
        assert type(mine) is type(theirs)
        np.testing.assert_allclose(mine, theirs)
    return backend


PROGRAMS = {
    "operators": lambda a: (a + 1) @ a.T,
    "functions": lambda a: np.sin(a) + np.cumsum(a, axis=0),
    "linalg": lambda a: np.linalg.norm(a, axis=1),
    "fft": lambda a: np.abs(np.fft.fft(a)),
    "through torch": lambda a: torch.from_numpy(a).add(1).numpy(),
}
MORE = {
    "methods": lambda a: a.reshape(3, 2).sum(axis=0),
    "attributes": lambda a: a.T * a.shape[0] + a.size,
    "in place": lambda a: a.__iadd__(1),
    "nested results": lambda a: (a + 1, np.max(a, axis=0)),
    "indexing": lambda a: a[:, 1:] * 2,
}


@both
@pytest.mark.parametrize("name", PROGRAMS)
def test_N1_results_are_numpys(name):
    compare(PROGRAMS[name])


@both
@pytest.mark.parametrize("name", PROGRAMS)
def test_N1_arrays_are_traced_as_tensors(name):
    assert len(compare(PROGRAMS[name], fullgraph=True).graphs) == 1


def test_N1_random_numbers_are_numpys_own():
    def program(a):
        return a + np.random.rand(3)

    def run(function):
        np.random.seed(3)
        return function(array()), np.random.rand()

    got, want = run(torch.compile(program, backend=Recorder())), run(program)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1] == want[1]


_WITHOUT = """
import sys
sys.modules["numpy"] = None
import warnings
warnings.simplefilter("ignore")
import torch, stator
stator.install()
assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist() == [2, 2]
"""


def test_N1_fine_without_numpy():
    subprocess.run([sys.executable, "-c", _WITHOUT], check=True, timeout=300)


@both
@pytest.mark.parametrize("name", MORE)
def test_N2_results_are_numpys(name):
    compare(MORE[name])


@both
@pytest.mark.parametrize("name", MORE)
def test_N2_methods_attributes_and_operators_are_traced(name):
    assert len(compare(MORE[name], fullgraph=True).graphs) == 1


def test_N2_numbers_of_numpy():
    def program(a, n):
        return a.sum() * n, n + 1, float(n)

    got = torch.compile(program, backend=Recorder())(array(), np.float32(2.5))
    want = program(array(), np.float32(2.5))
    assert [type(v) for v in got] == [type(v) for v in want]
    assert got == want
