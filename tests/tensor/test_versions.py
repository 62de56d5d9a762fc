# ruff: noqa: E402
"""Versions of torch: private parts are named in one file, what is relied on is checked when torch is
attached, a torch that is too old, too new or odd is told apart, and no setter is unknown."""

import ast
import contextlib
import logging
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _callables, _engine, _fakes, _rows, _torch, _versions
from stator._versions import private
from tests.tensor.helpers import assert_same, compiled

ROOT = Path(__file__).resolve().parents[2]
_torch.attach()

# -- private parts --


def _is_private(name):
    return name.startswith("_") and not name.endswith("__")


def _chain(node):
    """The names of a dotted expression, or nothing."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def private_uses(text):
    """Lines that take something private from torch."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            names = [*node.module.split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [name for alias in node.names if alias.name.startswith("torch")
                     for name in alias.name.split(".")]  # fmt: skip
        else:
            names = _chain(node)
            names = names if names[:1] == ["torch"] else []
        if any(map(_is_private, names)):
            yield node.lineno, ".".join(names)


def test_private_torch_is_found():
    text = (
        "import torch._x\nfrom torch.a import _b\nfrom torch._c import d\ntorch.e._f(torch.g.__h__)"
    )
    assert [line for line, _ in private_uses(text)] == [1, 2, 3, 4]


@pytest.mark.parametrize("path", sorted((ROOT / "python" / "stator").glob("*.py")), ids=str)
def test_private_torch_is_named_in_one_place(path):
    found = list(private_uses(path.read_text()))
    assert bool(found) == path.name.startswith("_private"), found


def test_memory_of_torch_is_read_in_one_place():
    for path in (ROOT / "src").rglob("*.c"):
        knows = re.search(r"_ZNK?\d|dlsym|aoti_torch|impl_at", path.read_text())
        allowed = ("version.c", "standin.c")  # the other one makes an object like a tensor
        assert not knows or path.name in allowed, path


# -- the range of versions --


def test_everyone_says_the_same_range():
    oldest = ".".join(map(str, _versions.OLDEST))
    newest = ".".join(map(str, _versions.NEWEST))
    after = f"{_versions.NEWEST[0]}.{_versions.NEWEST[1] + 1}"
    assert f'torch = ["torch>={oldest},<{after}"]' in (ROOT / "pyproject.toml").read_text()
    assert f"torch {oldest} to {newest}" in (ROOT / "README.md").read_text()


def run(code):
    """In a process of its own, which says `import torch` first."""
    text = f"import warnings, torch\n{code}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, timeout=300
    )
    return done.stdout + done.stderr


COMPILE = """
import stator
def attempt():
    try:
        return stator.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(2))
    except ImportError as error:
        return str(error)
print(attempt())
print(attempt())
print(stator._engine.torch_attached())
"""


def test_newer_torch_warns_once():
    text = run(f"torch.__version__ = '9.1.0a0+git'\nwarnings.simplefilter('always')\n{COMPILE}")
    assert text.startswith("tensor([2., 2.])\ntensor([2., 2.])\nTrue\n"), text
    assert text.count("UserWarning: Stator was tested with torch 2.11 to 2.15") == 1, text
    assert "9.1.0a0+git" in text


def test_older_torch_is_refused():
    text = run(f"torch.__version__ = '2.10.2'\n{COMPILE}")
    expected = (
        "Stator cannot work with torch 2.10.2: it is too old. Versions that work: 2.11 to 2.15."
    )
    assert text.count(expected) == 2 and text.rstrip().endswith("False"), text


@pytest.mark.parametrize("version", ["9.1.0", "2.13.0"])
def test_missing_part_is_named(version):
    text = run(
        f"torch.__version__ = {version!r}\nimport torch._dynamo; del torch._C._dispatch_keys\n{COMPILE}"
    )
    assert text.count(f"torch {version}: torch has no torch._C._dispatch_keys. Versions") == 2, text
    assert "2.11 to 2.15" in text and text.rstrip().endswith("False")


WITHOUT_RULE = "logcumsumexp(0)"  # an operation that torch's fakes are asked about

REMEMBERING = """
import torch._subclasses.fake_tensor as fakes
original = fakes.FakeTensorConverter.from_real_tensor
def from_real_tensor(self, mode, tensor, *args, **kwargs):
    made = original(self, mode, tensor, *args, **kwargs)
    if tensor.dim() == 0:
        made.item_memo = tensor.item()
    return made
fakes.FakeTensorConverter.from_real_tensor = from_real_tensor
"""


def test_fakes_that_know_values_are_refused():
    text = run(REMEMBERING + COMPILE.replace("x + 1", f"x.{WITHOUT_RULE}"))
    assert text.count("a fake of a tensor of torch.int64 knows the tensor's value") == 2, text
    assert text.count("Versions that work: 2.11 to 2.15") == 2


CALLER = """
from torch.overrides import TorchFunctionMode
from torch._subclasses.fake_tensor import FakeTensorMode
import stator._versions
seen = []
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(function)
        return function(*args, **(kwargs or {}))
import stator
with Mode(), torch.device("meta"), torch.inference_mode(), torch.autocast("cpu"), FakeTensorMode():
    before = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    seen.clear()
    stator.compile(lambda x: x + 1, backend="eager")
    calls = len(seen)
    after = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    made = torch.empty(1)
    print(before == after, calls, torch.is_inference_mode_enabled(), made.device, type(made).__name__)
print(stator.compile(lambda x: x + 1, backend="eager", fullgraph=True)(torch.ones(2)))
"""


LATE = """
import sys, stator
heavy = "torch._dynamo", "sympy", "torch.distributed.tensor", "torch.nn.attention.flex_attention"
def there():
    return [name for name in heavy if name in sys.modules]
def attempt(function, **settings):
    try:
        return stator.compile(function, backend="eager", **settings)(torch.ones(2))
    except Exception as error:
        return error
print(attempt(lambda x: torch.relu(x + 1), fullgraph=True), there())
print(attempt(lambda x: x.logcumsumexp(0).size(0), fullgraph=True), there()[:2])
def stops(x):
    torch._dynamo.graph_break()
    return x + 1
error = attempt(stops, fullgraph=True)
print(isinstance(error, torch._dynamo.exc.Unsupported), attempt(stops))
from torch.nn.attention.flex_attention import flex_attention
def attends(x):
    q = x.expand(1, 1, 16, 2)
    return flex_attention(q, q, q, lambda score, *at: score * 2).sum()
print(attempt(attends, fullgraph=True))
"""


def test_heavy_parts_of_torch_are_imported_when_needed():
    lines = run(LATE).splitlines()
    assert lines[:2] == ["tensor([2., 2.]) []", "2 ['torch._dynamo', 'sympy']"], lines
    assert lines[2:] == ["True tensor([2., 2.])", "tensor(32.)"], lines


def test_an_error_is_also_torchs_before_anybody_imports_its_dynamo():
    text = run("""
import stator
try:
    stator.compile(lambda x: print(x), backend="eager", fullgraph=True)(torch.ones(2))
except Exception as error:
    print(isinstance(error, torch._dynamo.exc.Unsupported))
""")
    assert text == "True\n", text


def test_variables_of_the_environment_are_obeyed(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS", "1")
    text = run("""
import stator
print(stator.compile(lambda x: x * x.sum().item(), backend="eager", fullgraph=True)(torch.ones(2)))
""")
    assert text == "tensor([2., 2.])\n", text


def test_state_of_the_caller_is_no_part_of_the_checks():
    text = run(CALLER)
    assert "True 0 True meta FakeTensor" in text and "tensor([2., 2.])" in text, text


# -- each check fails when what it checks is broken --

GLUE = {name: getattr(_fakes, name) for name in ("make_mode", "fake_of", "run")}


class BlindMode(private.FakeTensorMode):
    stator_effects = 0

    def __init__(self):
        super().__init__(static_shapes=True)
        self.stator_inputs = set()


class Forgiving:
    def check(self):
        return True


def blind_state(monkeypatch):
    state = _engine.torch_state()
    monkeypatch.setattr(_engine, "torch_state", lambda: state)


BREAKAGES = {
    "values are known": (_versions._fakes_know_no_values, {"run": lambda *_: 1}, None),
    "fakes are real": (_versions._fakes_are_like_tensors, {"fake_of": lambda mode, t: t}, None),
    "fakes are copies": (
        _versions._fakes_are_like_tensors,
        {"fake_of": lambda mode, t: _fakes.fake_of(mode, t.detach().clone())},
        None,
    ),
    "nobody looks": (
        _versions._writes_and_draws_are_seen, {"make_mode": lambda late: BlindMode()}, None
    ),
    "results are others": (
        _versions._writes_and_draws_are_seen,
        {"run": lambda mode, f, args, kwargs: _fakes.run(mode, torch.Tensor.clone, args[:1], None)},
        None,
    ),
    "stand-ins are tensors": (
        _versions._standins_are_met,
        {},
        lambda patch: patch.setattr(_engine, "torch_ended_standin", lambda: torch.ones(1)),
    ),
    "the engine is blind": (_versions._state_is_seen, {}, blind_state),
    "torch's guard is blind": (
        _versions._state_is_seen,
        {},
        lambda patch: patch.setattr(private, "GlobalStateGuard", Forgiving),
    ),
}  # fmt: skip


def test_autograds_state_is_read_as_torch_has_it():
    if _engine.torch_quick_state() is None:
        pytest.skip("torch is asked on this machine")
    assert _versions.quick_state_is_right()
    with torch.autograd.graph.saved_tensors_hooks(id, id):
        assert _engine.torch_quick_state() == (False, True)
    with torch.autograd.forward_ad.dual_level():
        for _ in range(3):
            assert _engine.torch_quick_state() == (True, False)
    assert _engine.torch_quick_state() == (False, False)


@pytest.mark.parametrize("wrong", [None, (True, False), (False, True)])
def test_autograds_state_is_not_read_where_it_lies_elsewhere(wrong, monkeypatch):
    monkeypatch.setattr(_engine, "torch_quick_state", lambda: wrong)
    assert not _versions.quick_state_is_right()


AUTOGRAD_STATES = {
    "dual": torch.autograd.forward_ad.dual_level,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone),
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("state", AUTOGRAD_STATES)
def test_guards_see_autograds_state(state, trusted):
    ran = []

    def backend(graph, inputs):
        return lambda *args: ran.append(now) or graph.forward(*args)

    f, x = stator.compile(lambda x: x * 2, backend=backend), torch.ones(2)
    _engine.torch_trust_quick_state(trusted)
    try:
        for now in ("plain", "plain", state, state):
            with AUTOGRAD_STATES.get(now, contextlib.nullcontext)():
                f(x)
    finally:
        _engine.torch_trust_quick_state(_versions.quick_state_is_right())
    assert ran == ["plain", "plain"]


def test_checks_hold():
    _versions.check(GLUE)
    _versions._check(_versions._OF_FAKES, GLUE)


@pytest.mark.parametrize("name", BREAKAGES)
def test_check_notices(name, monkeypatch):
    check, glue, patch = BREAKAGES[name]
    if patch is not None:
        patch(monkeypatch)
    monkeypatch.setattr(_versions, "_BEHAVIOUR", (check,))
    with pytest.raises(_versions.Unusable, match="Versions that work"):
        _versions.check({**GLUE, **glue})


def test_exception_of_a_check_is_an_error_about_versions(monkeypatch):
    monkeypatch.setattr(_versions, "_BEHAVIOUR", _versions._OF_FAKES)
    with pytest.raises(_versions.Unusable, match="KeyError: 'make_mode'"):
        _versions.check({})


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.float64, torch.float32, torch.bool]
)
def test_value_of_a_tensor_without_dimensions_is_not_folded(dtype):
    f = compiled(lambda x: x + x.item(), fullgraph=False)
    for value in (1, 2, 0):
        x = torch.tensor(value, dtype=dtype)
        assert_same(f(x), x + x.item())


def test_value_is_not_folded_where_torch_propagates_real_tensors():
    with torch._functorch.config.patch(fake_tensor_propagate_real_tensors=True):
        f = compiled(lambda x: x.cumsum(0) + x.sum().item(), fullgraph=False)
        for value in (1, 2, 0):
            x = torch.full((2,), value)
            assert_same(f(x), x.cumsum(0) + x.sum().item())


# -- rows that this torch has nothing for --

ABSENT = {
    r"Tensor\.(names|has_names|rename_?|refine_names|align_to|align_as|_update_names)": "until 2.12",
    r"functional\.align_tensors": "until 2.12",
    r"Tensor\.const_data_ptr": "since 2.13",
    r"_C\._[sg]et_(sdp_use_)?fa4(_sdp_enabled)?": "since 2.15",
    r"_C\._cuda_\w+": "built for CUDA",
    r"_functorch\.predispatch\.\w+": "since 2.12",
}


def test_rows_without_a_callable_are_reported(caplog, monkeypatch):
    monkeypatch.setattr(_rows, "FUNCTIONS", (*_rows.FUNCTIONS, ("plain", "{}", "torch.no.such")))
    with caplog.at_level(logging.DEBUG, "stator.torch"):
        _callables.rows()
        _callables.attributes()
        _callables.rules()
    told = re.findall(r"has no (torch\.\S+):", caplog.text)
    assert "torch.no.such" in told
    odd = [
        path for path in told if not any(re.fullmatch(rf"torch\.{name}", path) for name in ABSENT)
    ]
    assert odd == ["torch.no.such"]


# -- setters --

_NAMES = re.compile(r"_?(set|push|pop|enter|exit|enable|disable)_")


def setters():
    homes = {"torch._C": torch._C, "torch._C._autograd": torch._C._autograd,
             "torch._C._functorch": torch._C._functorch}  # fmt: skip
    for path, home in homes.items():
        for name in dir(home):
            if _NAMES.match(name) and isinstance(getattr(home, name), types.BuiltinFunctionType):
                yield f"{path}.{name}", getattr(home, name)


KNOWN = dict(
    line.split()
    for line in (Path(__file__).parent / "setters.txt").read_text().splitlines()
    if not line.startswith("#")
)
KINDS = {"break", "setter", "setting", "setting_replayed", "state", "mode_push", "mode_pop",
         "enter_level", "exit_level", "level_set"}  # fmt: skip


def test_no_setter_is_new():
    new = [name for name, _ in setters() if name not in KNOWN]
    assert not new, f"torch {torch.__version__} has setters that setters.txt does not know"
    assert set(KNOWN.values()) <= KINDS


def test_each_setter_is_what_is_written():
    rows = {id(function): row[0] for function, _, row in _callables.rows()}
    wrong = {name: rows.get(id(setter), "break") for name, setter in setters()
             if rows.get(id(setter), "break") != KNOWN.get(name)}  # fmt: skip
    assert not wrong


@pytest.mark.parametrize("name", sorted(name for name, kind in KNOWN.items() if kind == "break"))
def test_setter_without_a_row_breaks(name):
    setter = dict(setters()).get(name)
    if setter is None:
        pytest.skip("this torch does not have it")

    def f(x):
        setter(None, None, None, None, None, None)  # too many for all of them: it is not called
        return x + 1

    with pytest.raises(stator.Unsupported):
        compiled(f)(torch.ones(2))


# -- options and hooks that came with newer versions --


@pytest.fixture
def installed():
    stator.install()
    yield
    stator.uninstall()
    torch._dynamo.reset()


def test_option_that_is_unknown_is_refused_by_name(installed):
    option = {"dynamic_shapes", "shapes_spec"} & set(torch.compile.__kwdefaults__)
    for name in option or {"package"}:
        compile = torch.compile if option else torch._dynamo.optimize
        with pytest.raises(NotImplementedError, match=name):
            compile(backend="eager", **{name: {"x": None}})(lambda x: x)
        f = compile(backend="eager", **{name: None})(lambda x: x + 1)
        assert_same(f(torch.ones(2)), torch.ones(2) + 1)


def test_options_of_the_future_are_refused_unless_they_say_nothing(installed):
    with pytest.raises(NotImplementedError, match="sideways=True"):
        torch._dynamo.optimize("eager", sideways=True)
    with pytest.raises(NotImplementedError, match="sideways=True"):
        torch._dynamo.optimize_assert("eager", sideways=True)
    f = torch._dynamo.optimize("eager", sideways=None, package=None)(lambda x: x + 1)
    assert_same(f(torch.ones(2)), torch.ones(2) + 1)


@pytest.mark.skipif(private.node_creation_hook is None, reason="this torch has no such hooks")
def test_hooks_on_new_nodes_see_no_fakes():
    def f(x):
        return torch.special.bessel_j0((x * 2).cumsum(0).add_(1)).logcumsumexp(0)

    def nodes(function):
        seen = []
        x = torch.ones(3, requires_grad=True)
        with private.node_creation_hook(lambda node: seen.append(node.name())):
            function(x)
        return seen

    g = compiled(f, fullgraph=False)
    assert nodes(g) == nodes(f)
    g(torch.ones(3, requires_grad=True))
    assert nodes(g) == nodes(f)


@pytest.mark.skipif(private.node_creation_hook is None, reason="this torch has no such hooks")
def test_hooks_on_new_nodes_see_what_the_program_did_before():
    def f(x, log):
        log.append("begin")
        y = x * 2
        log.append("end")
        return y

    def order(function):
        log = []
        with private.node_creation_hook(lambda node: log.append(node.name())):
            function(torch.ones(3, requires_grad=True), log)
        return log

    g = compiled(f, fullgraph=False)
    g(torch.ones(3, requires_grad=True), [])
    assert order(g) == order(f) and len(order(f)) > 2


class Double(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, gradient):
        return gradient * 2


class Twice(Double):
    @classmethod
    def apply(cls, x):
        return super().apply(super().apply(x))


apply = Double.apply


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_apply_is_found_however_it_is_reached(backend):
    """It is a Python classmethod, or (since 2.14) one of C's."""

    def f(x):
        return Double.apply(x) + apply(x) + Twice.apply(x)

    x = torch.ones(3, requires_grad=True)
    result = compiled(f, backend)(x)
    assert_same(result, f(x))
    result.sum().backward()
    assert x.grad.tolist() == [8.0] * 3
