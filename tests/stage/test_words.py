"""Reasons in the words of the user's program: golden texts."""

import pytest

from stator import _words

WORDS = {
    "tensor 'x' size mismatch at index 0. expected 3, actual 4": "size 0 of x: 4, was 3",
    "tensor 'x' size mismatch at index 0. expected 3, actual 4 (from now on any number will do for "
    "L['x'].size(0); from the start with torch._dynamo.mark_dynamic(L['x'], 0))": "size 0 of x: 4, "
    "was 3; from now on any number will do",
    "tensor 'x' size mismatch at index 1. expected any of 2 or more, actual 1": "size 1 of x: 1, "
    "was 2 or more",
    "tensor 'args[0]' stride mismatch at index 0. expected 4, actual 1": "stride 0 of args[0]: 1, "
    "was 4",
    "L['x'] is now a Tensor of torch.float64 on cpu, size (3,), stride (1,); expected: a Tensor of "
    "torch.float32 on cpu, size (3,), stride (1,)": "dtype of x: torch.float64, was torch.float32",
    "L['x'] is now a Tensor of torch.float32 on cpu, size (4,), stride (1,); expected: a Tensor of "
    "torch.float32 on cpu, size (3, 4), stride (4, 1)": "size of x: (4,), was (3, 4)",
    "L['x'] is now a Tensor of torch.float32 on cpu, size (3,), stride (1,), requires_grad; "
    "expected: a Tensor of torch.float32 on cpu, size (3,), stride (1,)": "flags of x: "
    "requires_grad, was none",
    "L['x'] is now a list; expected: a Tensor of torch.float32 on cpu, size (3,), stride (1,)": "x: "
    "a list, was a Tensor of torch.float32 on cpu, size (3,), stride (1,)",
    "L['n'] == 1: now 2": "n: 2, was 1",
    "L['n'] == 1: now 2.5, of type float": "n: 2.5 (float), was 1",
    "L['n'] is None: now 2.5": "n: 2.5, was None",
    "len(L['n']) == 1: now 2": "length of n: 2, was 1",
    "bool(len(L['n'])) is False: now 2": "length of n: 2, was 0",
    "type(L['n']) is list: now tuple": "type of n: tuple, was list",
    "'a' not in L['n']: now 1": "n['a']: 1, was not there",
    "'a' not in L['c'].__dict__: now 1": "c.a: 1, was not there",
    "list(L['n']) == (): now ['a']": "contents of n: ['a'], was ()",
    "function.__globals__['N'] == 3: now 4": "N: 4, was 3",
    "function.__closure__[0].cell_contents == 1: now 2": "k: 2, was 1",
    "L['self']._modules['1'].training == True: now False": "self.1.training: False, was True",
    "L['f'] is <built-in sin>: now <built-in cos>": "f: <built-in cos>, was <built-in sin>",
    "L['f'].__code__ is <code a>: now <code b>": "function f: b, was a",
    "L['f'].__code__ is <code <lambda>>: now <code <lambda>>": "function f: <lambda>, was another "
    "<lambda>",
    "torch's global state changed: grad_mode ": "torch's grad_mode changed",
    "something else": "something else",
}


def with_a_cell():
    k = 1

    def inner():
        return k

    return inner.__code__


@pytest.mark.parametrize("reason", WORDS)
def test_reasons_in_words(reason):
    assert _words.in_words(reason, with_a_cell()) == WORDS[reason]


def test_the_shortest_comes_first_and_each_once():
    reasons = ["L['abc'] == 1: now 2", "L['n'] == 1: now 2", "L['n'] == 1: now 2"]
    assert _words.shortest_first(reasons) == ["n: 2, was 1", "abc: 2, was 1"]


def test_library_code_is_not_the_user_s():
    import json

    assert _words.is_library(json.__file__) and _words.is_library(_words.__file__)
    assert not _words.is_library(__file__)
    rows = [(__file__, 1, "mine"), (json.__file__, 2, "loads")]
    assert _words.users_row(rows) == rows[0]
    assert _words.users_row(rows[1:]) == rows[1]
    assert _words.users_row(()) is None


def test_source_lines_are_marked(tmp_path):
    class Row(tuple):
        span = None

    file = tmp_path / "program.py"
    file.write_text("def f(x):\n    é = [x, g(x), x]\n    return h(\n        x,\n    )\n")
    row = Row((str(file), 2, "f"))
    row.span = (2, 2, 13, 17)
    assert _words.excerpt([row]).splitlines()[1:] == [
        "    é = [x, g(x), x]",
        "            ^^^^",
    ]
    row.span = (3, 5, 11, 5)
    assert _words.excerpt([row]).splitlines()[1:] == [
        "    return h(",
        "           ^^",
        "        x,",
        "        ^^",
        "    )",
        "    ^",
    ]
    assert _words.excerpt([(str(file), 1, "f")]).splitlines()[1:] == ["    def f(x):"]
    assert _words.excerpt([("<nowhere>", 1, "f")]) == '  File "<nowhere>", line 1, in f'
