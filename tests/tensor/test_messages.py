# ruff: noqa: E402
"""Messages about recompiles and breaks, as people read them: golden texts."""

import json
import logging
import re
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo

import stator
from tests.older import since
from tests.spec.helpers import logged


@pytest.fixture(autouse=True)
def installed():
    stator.install()
    torch._dynamo.reset()
    yield
    stator.uninstall()
    torch._dynamo.reset()


def scaled(x, n):
    return x * n


class Net(torch.nn.Module):
    def forward(self, x):
        return x + 1


def said_at_the_limit(caplog, call, *values):
    with caplog.at_level(logging.WARNING, logger="torch._dynamo"):
        torch._logging.set_logs()
        for value in values:
            call(value)
    (text,) = {r.getMessage() for r in caplog.records if "recompile_limit" in r.getMessage()}
    return re.sub(r"[^ (]*test_messages", "test_messages", re.sub(r":\d+", ":N", text))


@pytest.fixture
def heard(caplog):
    """torch's loggers do not pass records on."""
    logger = logging.getLogger("torch._dynamo.convert_frame")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


ADVICE = "compile with dynamic=None or dynamic=True, so that one entry serves all numbers"
END = (
    "\nCalls that an entry fits still use it; all others run uncompiled. To log all recompilation "
    'reasons, use TORCH_LOGS="recompiles".'
)


@since(2, 12)
def test_the_limit_names_the_function_and_what_changed(heard):
    fast = torch.compile(scaled, backend="eager", dynamic=False, recompile_limit=3)
    text = said_at_the_limit(heard, lambda n: fast(torch.ones(1), n), *range(6))
    assert text == (
        "torch._dynamo hit config.recompile_limit (3)\n"
        "   function: 'scaled' (test_messages.py:N)\n"
        "   called from: test_messages.py:N in "
        "test_the_limit_names_the_function_and_what_changed.<locals>.<lambda>\n"
        "   last reason: n: 3, was 2  [L['n'] == 2: now 3]\n"
        "   what changed:\n"
        "      n: 3 other values (1, 2, 3)\n"
        f"        what to do: {ADVICE}{END}"
    )


@since(2, 12)
@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("way", ["compile", "in place"])
def test_the_limit_names_the_forward_of_a_module(heard, way, hooked):
    net = Net()
    if hooked:
        net.register_forward_hook(lambda *args: None)
    if way == "compile":
        fast = torch.compile(net, backend="eager", dynamic=False, recompile_limit=2)
    else:
        net.compile(backend="eager", dynamic=False, recompile_limit=2)
        fast = net
    text = said_at_the_limit(heard, lambda n: fast(torch.ones(n)), *range(2, 8))
    assert re.search(r"function: '(Net\.)?forward' \(test_messages\.py:N\)", text), text
    assert "called from: test_messages.py:N in" in text
    assert re.search(r"size 0 of (x|args\[0\]): 2 other values \(3, 4\)", text)


def test_the_warning_of_stator_compile_points_at_the_call():
    fast = stator.compile(scaled, backend="eager", dynamic=False, recompile_limit=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(5):
            fast(torch.ones(1), n)
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).endswith(f"n: 2 other values (1, 2)\n    what to do: {ADVICE}")


CHANGES = {
    "a size": (lambda x: x + 1, [(torch.ones(3),), (torch.ones(4),)], "size 0 of x: 4, was 3"),
    "a number": (scaled, [(torch.ones(1), 1), (torch.ones(1), 2)], "n: 2, was 1"),
    "a type": (scaled, [(torch.ones(1), 1), (torch.ones(1), 2.5)], "n: 2.5 (float), was 1"),
    "a dtype": (
        lambda x: x + 1,
        [(torch.ones(1),), (torch.ones(1).double(),)],
        "dtype of x: torch.float64, was torch.float32",
    ),
    "grad": (
        lambda x: x + 1,
        [(torch.ones(1),), (torch.ones(1).requires_grad_(),)],
        "flags of x: requires_grad, was none",
    ),
    "a list": (
        lambda x, ys: x + sum(ys),
        [(torch.ones(1), [1]), (torch.ones(1), [1, 2])],
        "length of ys: 2, was 1",
    ),
    "a key": (
        lambda x, d: x + d.get("a", 0),
        [(torch.ones(1), {}), (torch.ones(1), {"a": 1})],
        "d['a']: 1, was not there",
    ),
    "a function": (
        lambda x, f: f(x),
        [(torch.ones(1), torch.sin), (torch.ones(1), torch.cos)],
        "f: <built-in cos>, was <built-in sin>",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_recompiles_say_what_changed(what):
    function, calls, words = CHANGES[what]
    with logged(recompiles=True) as texts:
        fast = torch.compile(function, backend="eager", dynamic=False)
        for args in calls:
            fast(*args)
    (text,) = texts
    assert text.startswith(f"Recompiling function {function.__name__} in {__file__}:")
    assert f"    - {words}  [" in text


# -- breaks --


def in_a_library(x):
    json.dumps({"a": print})
    return x + 1


def test_a_break_in_library_code_names_the_user_s_line():
    with logged(graph_breaks=True) as texts:
        with pytest.raises(TypeError):
            torch.compile(in_a_library, backend="eager")(torch.ones(1))
    line = in_a_library.__code__.co_firstlineno + 1
    assert texts[0].startswith(f"Graph break in user code at {__file__}:{line}\n")
    assert 'json.dumps({"a": print})' in texts[0]


def deciding(x):
    if x.sum() > 0:
        return x + 1
    return x


def test_the_error_of_a_break_in_full():
    with pytest.raises(torch._dynamo.exc.Unsupported) as raised:
        torch.compile(deciding, backend="eager", fullgraph=True)(torch.ones(1))
    line = deciding.__code__.co_firstlineno + 1
    fused = sys.version_info >= (3, 13)  # a comparison that makes a bool
    what = "a comparison decides where to go on" if fused else "bool() of a tensor"
    assert str(raised.value) == (
        f"{__file__}:{line} in deciding: decides by the value of a tensor: {what} [TENSOR_TRUTH]\n"
        "  hint: use torch.where or torch.cond, or decide outside of the compiled function\n"
        "  torch's Dynamo calls it: Data-dependent branching\n\n"
        "from user code:\n"
        f'   File "{__file__}", line {line}, in deciding\n'
        "    if x.sum() > 0:\n"
        "       ^^^^^^^^^^^"
    )


def test_no_names_of_c_plus_plus():
    def asks(x):
        torch._C._jit_get_all_schemas()
        return x + 1

    with pytest.raises(stator.Unsupported, match="torch._C._jit_get_all_schemas") as raised:
        torch.compile(asks, backend="eager", fullgraph=True)(torch.ones(1))
    assert "pybind11" not in str(raised.value)
