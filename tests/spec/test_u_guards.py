# ruff: noqa: E402
"""Lines U1 to U10: what a compiled version relies on."""

import builtins
import contextlib
import enum
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import config
from torch.overrides import TorchFunctionMode

import stator
from tests.spec.helpers import Recorder, assert_same, both, check, decided, logged, value


@contextlib.contextmanager
def _setting(get, set_, new):
    old = get()
    set_(new)
    try:
        yield
    finally:
        set_(old)


class Doubles(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result * 2 if function is torch.sin else result


STATES = {
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "deterministic": lambda: _setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "default_dtype": lambda: _setting(
        torch.get_default_dtype, torch.set_default_dtype, torch.float64
    ),
    "default_device": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "torch_function": Doubles,
}


def _stateful(x):
    return (
        torch.sin(x) @ torch.ones(2, 2, dtype=x.dtype, device="cpu"),
        torch.ones(2).dtype,
        torch.ones(1).device,
    )


@pytest.mark.parametrize("name", STATES)
def test_U1_torchs_state_is_guarded(name):
    fast = torch.compile(_stateful, backend="eager")
    x = value(2, 2).requires_grad_()
    for _ in range(2):
        assert_same(fast(x), _stateful(x))
        with STATES[name]():
            assert_same(fast(x), _stateful(x))


@both
@pytest.mark.parametrize("name", ["no_grad", "deterministic", "default_dtype"])
def test_U1_each_state_has_its_own_graph(name):
    backend = Recorder()
    fast = torch.compile(lambda x: x + 1, backend=backend)
    x = value().requires_grad_()
    for _ in range(2):
        fast(x)
        with STATES[name]():
            fast(x)
    assert len(backend.graphs) == 2


@both
def test_U2_what_was_not_read_is_not_guarded():
    def program(x, unread, items):
        kept = unread
        return x + items[0]

    backend = Recorder()
    fast = torch.compile(program, backend=backend, dynamic=False)
    for unread in (1, "a", None, value(), [1], object()):
        assert_same(fast(value(), unread, [1, unread]), value() + 1)
    assert len(backend.graphs) == 1


# -- U3, U4 --


def _uses_builtin(x):
    return x + len([1, 2])


def _fifty(items, plain=len):
    """Of the list above; torch and the standard library go on."""
    return 50 if type(items) is list and items == [1, 2] else plain(items)


def test_U3_builtins_are_guarded(monkeypatch):
    fast = torch.compile(_uses_builtin, backend="eager")
    assert_same(fast(value()), value() + 2)
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "len", _fifty)
        assert_same(fast(value()), value() + 50)
    assert_same(fast(value()), value() + 2)


def test_U3_a_global_of_that_name_is_noticed(monkeypatch):
    fast = torch.compile(_uses_builtin, backend="eager")
    assert_same(fast(value()), value() + 2)
    monkeypatch.setitem(globals(), "len", lambda items: 50)
    assert_same(fast(value()), value() + 50)


class Weak:
    scale = 3


def test_U4_objects_held_weakly_may_die():
    alive = Weak()
    ref = weakref.ref(alive)

    def program(x):
        found = ref()
        return x if found is None else x * found.scale

    fast = torch.compile(program, backend="eager")
    assert_same(fast(value()), value() * 3)
    del alive
    assert ref() is None, "compiling keeps it alive"
    assert_same(fast(value()), value())


def test_U4_a_guarded_object_that_dies_is_not_taken_for_another():
    fast = torch.compile(lambda thing, x: x + thing.scale, backend="eager")
    for scale in range(4):
        thing = Weak()
        thing.scale = scale
        assert_same(fast(thing, value()), value() + scale)


# -- U5, U6 --


def _sized(x):
    return x + 1


@both
def test_U5_reasons_of_recompiles_are_logged():
    fast = torch.compile(_sized, backend=Recorder(), dynamic=False)
    with logged(recompiles=True) as texts:
        fast(value(3))
        fast(value(4))
    (text,) = [text for text in texts if "Recompiling function _sized" in text]
    assert "test_u_guards.py" in text
    assert "size" in text and "x" in text


def test_U5_and_kept():
    fast = torch.compile(_sized, backend=Recorder(), dynamic=False)
    fast(value(3))
    fast(value(4))
    (reason,) = fast.metrics["recompiles"]
    assert "tensor 'x' size mismatch at index 0. expected 3, actual 4" in reason


@both
def test_U5_and_kept_where_torch_keeps_them():
    torch._dynamo.utils.guard_failures.clear()
    fast = torch.compile(_sized, backend=Recorder(), dynamic=False)
    fast(value(3))
    fast(value(4))
    assert torch._dynamo.utils.guard_failures[_sized.__code__]


class Color(enum.Enum):
    RED = 1


def test_U6_the_text_of_guards_says_what_must_hold():
    def program(x, color, kind, function, items, n):
        if color is Color.RED and kind is int and function is len and items == [1, 2] and n == 4:
            return x + 1
        return x

    guards = stator.explain(program)(value(), Color.RED, int, len, [1, 2], 4).guards
    for part in (
        "L['x'] is a Tensor",
        "L['color']",
        "L['kind']",
        "L['function']",
        "L['items']",
        "L['n'] == 4",
    ):
        assert any(part in guard for guard in guards), part


# -- U7 to U9 --


@both
def test_U7_tensors_of_modules_have_fixed_sizes():
    backend = Recorder()
    net = torch.nn.Linear(2, 2)
    torch.compile(net, backend=backend)(value(1, 2))
    sizes = [
        size
        for example in backend.examples[0]
        if isinstance(example, torch.nn.Parameter)
        for size in example.shape
    ]
    assert sizes and all(type(size) is int for size in sizes)


@both
def test_U7_a_marked_size_is_a_symbol():
    backend = Recorder()
    fast = torch.compile(_sized, backend=backend)
    for n in (3, 4, 5):
        x = value(n)
        torch._dynamo.mark_dynamic(x, 0)
        assert_same(fast(x), x + 1)
    assert len(backend.graphs) == 1


@both
def test_U7_a_mark_that_cannot_be_kept_is_an_error():
    x = value(3)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(Exception, match=r"(?i)constraint"):
        torch.compile(lambda x: x + 1 if x.shape[0] == 3 else x, backend=Recorder())(x)


@both
def test_U8_one_object_in_two_places():
    def program(a, b):
        a.append(1)
        return len(b), a is b

    fast = torch.compile(program, backend=Recorder())
    for _ in range(2):
        same = []
        assert fast(same, same) == (1, True)
        assert fast([], []) == (0, False)


@both
def test_U8_one_tensor_in_two_places():
    def program(a, b):
        a.add_(1)
        return b * 2

    fast = torch.compile(program, backend=Recorder())
    for _ in range(2):
        x, y = value(), value()
        assert_same(fast(x, y), value() * 2)
        assert_same(fast(y, y), (value() + 1) * 2)


@both
def test_U9_a_number_used_as_a_constant_is_guarded():
    fast = torch.compile(lambda x, n: (x.reshape(n, -1), [0] * n), backend=Recorder())
    for n in (1, 2, 4, 8, 2):
        assert_same(fast(value(8), n), (value(8).reshape(n, -1), [0] * n))


@both
def test_U9_a_number_that_changes_becomes_a_symbol():
    backend = Recorder()
    fast = torch.compile(lambda x, n: x * n, backend=backend)
    for n in range(2, 13):
        assert_same(fast(value(), n), value() * n)
    assert len(backend.graphs) == 2


# -- U10 --


@both
def test_U10_a_failed_guard_is_told():
    failures = []
    fast = torch._dynamo.optimize(Recorder(), guard_fail_fn=failures.append, dynamic=False)(_sized)
    fast(value(3))
    fast(value(4))
    assert len(failures) == 1
    assert failures[0].orig_code is _sized.__code__
    assert "size" in failures[0].reason


@both
def test_U10_guards_are_handed_out():
    seen = []
    note = lambda guards: seen.append(len(list(guards)))
    torch._dynamo.optimize(Recorder(), guard_export_fn=note)(_sized)(value())
    assert len(seen) == 1 and seen[0] > 0


@decided("A guard_filter_fn is ignored.")
def test_U10_guards_can_be_filtered():
    fast = torch.compile(
        _reads_number,
        backend="eager",
        options={"guard_filter_fn": lambda entries: [False for _ in entries]},
    )
    fast(value(), 1)
    with config.patch(error_on_recompile=True):
        fast(value(), 2)


def _reads_number(x, n):
    return x + n
