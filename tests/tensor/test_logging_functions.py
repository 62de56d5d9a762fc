"""Functions that only log, as torch's settings list them: their calls are left out, or come when
the graph has run and all writes are done."""

import logging
import sys

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo  # noqa: E402
from torch._dynamo import config  # noqa: E402

import stator  # noqa: E402

said: list = []
seen: list = []


def note(*args, **named):
    said.append(
        ([a.tolist() if isinstance(a, torch.Tensor) else a for a in args], named, list(seen))
    )


class Writer:
    def note(self, *args):
        note(*args)


writer = Writer()


def text(x):
    y = x + 1
    note("between", 3, end="!")
    return y * 2


def tensors(x):
    y = x + 1
    note(y, "y")
    return y * 2


def given_tensor(x):
    note(x)
    return x * 2


def of_object(x):
    y = x + 1
    writer.note("half", y)
    return y * 2


def sizes(x):
    y = x + 1
    note(x.shape[0], y.size(0) + 1)
    return y * 2


def several(x):
    for i in range(3):
        x = x + i
        note(i)
    return x


def sees_writes(x):
    seen.append("early")
    note("log")
    seen.append("late")
    return x + 1


def with_print(x):
    y = x + 1
    print("printed", y.sum(), file=sys.stdout)
    return y * 2


# Programs whose calls are put off, and how many entries there are.
LATER = {text: 1, tensors: 1, given_tensor: 1, of_object: 1, sizes: 1, several: 1, sees_writes: 2}


@pytest.fixture(autouse=True)
def fresh():
    said.clear()
    seen.clear()
    with config.patch(reorderable_logging_functions={note, writer.note}):
        yield


def run(program, x, backend="eager"):
    compiled = stator.compile(program, backend=backend)
    found = [compiled(x.clone()) for _ in range(2)]
    return found, compiled.metrics


@pytest.mark.parametrize("program", LATER)
def test_calls_are_put_off(program):
    x = torch.arange(3.0)
    plain = [program(x.clone()) for _ in range(2)]
    expected = list(said)
    said.clear()
    seen.clear()
    found, metrics = run(program, x)
    assert [f.tolist() for f in found] == [p.tolist() for p in plain]
    assert metrics["entries"] == LATER[program] and metrics["breaks"] == []
    if program is sees_writes:  # what they see is the state at the end
        assert [row[2] for row in said] == [["early", "late"], ["early", "late"] * 2]
    else:
        assert said == expected


# What would be logged wrongly is logged where it is.


def written_later(x):
    y = x + 1
    note(y)
    y.add_(1)
    return y


def input_written_later(x):
    note(x)
    x.mul_(3)
    return x + 1


def of_list(x):
    items = [1, 2]
    note(items)
    items.append(3)
    return x + len(items)


@pytest.mark.parametrize("program", [written_later, input_written_later, of_list])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_calls_whose_arguments_change_break(program, backend):
    torch._dynamo.reset()
    x = torch.arange(3.0)
    plain = [program(x.clone()) for _ in range(2)]
    expected = list(said)
    said.clear()
    found, metrics = run(program, x, backend)
    assert [f.tolist() for f in found] == [p.tolist() for p in plain]
    assert said == expected
    assert metrics["breaks"]


def test_another_function_in_the_place_is_called_at_once():
    scope = {"note": note, "said": said}
    exec("def program(x, log):\n    y = x + 1\n    log(1)\n    return y * 2", scope)
    compiled = stator.compile(scope["program"], backend="eager")
    compiled(torch.ones(2), note)
    compiled(torch.ones(2), lambda n: said.append(n))
    assert [row if isinstance(row, int) else row[0][0] for row in said] == [1, 1]


def test_an_error_of_the_call_is_the_programs():
    def fails(text):
        raise KeyError(text)

    def program(x, log):
        log.append(x + 1)
        fails("told")
        return x

    with config.patch(reorderable_logging_functions={fails}):
        log = []
        with pytest.raises(KeyError, match="told"):
            stator.compile(program, backend="eager")(torch.ones(2), log)
    assert len(log) == 1


def test_calls_are_left_out(caplog):
    logger = logging.getLogger("tests.left_out")
    other = logging.getLogger("tests.kept")

    def program(x):
        y = x + 1
        logger.warning("never %s", y)
        note("never")
        return y * 2

    def kept(x):
        y = x + 1
        other.warning("said")
        return y * 2

    name = "ignore_logging_functions"
    name = name if hasattr(config, name) else "ignore_logger_methods"
    with config.patch({name: {logger.warning, note}}):
        _, metrics = run(program, torch.ones(2))
        assert metrics["entries"] == 1 and said == [] and caplog.records == []
        run(kept, torch.ones(2))
    assert [r.getMessage() for r in caplog.records] == ["said"] * 2


def test_print_may_name_its_file(capsys):
    with config.patch(reorderable_logging_functions={print}):
        run(with_print, torch.ones(2))
    assert capsys.readouterr().out == "printed tensor(4.)\n" * 2
