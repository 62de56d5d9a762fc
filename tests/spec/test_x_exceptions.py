"""Lines X1 to X10: exceptions and with blocks. Without torch they run on floats."""

import contextlib
import io
import sys
import traceback

import pytest

import stator
from tests.spec.helpers import assert_same, check, outcome, torch, value

needs_torch = pytest.mark.skipif(torch is None, reason="needs torch")


def tick():
    """A break."""
    print(end="")


class Own(ValueError):
    def __init__(self, x, extra=1):
        super().__init__(x)
        self.extra = extra


# -- X1 to X3 --


def raise_a_class(x):
    try:
        raise ValueError
    except ValueError as error:
        return x + len(error.args)


def raise_an_instance(x):
    try:
        y = [x, (x + 1, [x * 2, int(str("a"))])]
    except ValueError:
        return x - 1


def raise_own(x):
    try:
        raise Own(x + 1, extra=4)
    except ValueError as error:
        return error.args[0] * error.extra


def cleanup(x, log):
    try:
        try:
            log.append("try")
            raise KeyError("k")
        finally:
            log.append("finally")
    except KeyError as error:
        log.append(error.args)
    else:
        log.append("else")
    return x + len(log)


def test_X1_raise_finds_its_handler():
    for program in (raise_a_class, raise_an_instance, raise_own):
        check(program, value())
    check(cleanup, value(), [])


def deep_raise(x):
    def inner(depth):
        if depth == 0:
            raise Own(x * 2)
        return inner(depth - 1)

    try:
        return inner(3)
    except Own as error:
        return error.args[0] + len(traceback_names(error))


def traceback_names(error):
    names = []
    tb = error.__traceback__
    while tb is not None:
        names.append(tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    return names


def leaves(x):
    y = x + 1
    raise Own(y)


def test_X2_an_exception_goes_to_the_callers_handler():
    check(deep_raise, value(), whole=False)

    def caught_outside(x):
        try:
            leaves(x)
        except Own as error:
            return error.args[0]

    check(caught_outside, value())


def test_X2_and_leaves_the_compiled_function():
    check(leaves, value(), whole=False)
    fast = stator.compile(leaves, backend="eager")
    for _ in range(2):
        error = outcome(fast, (value(),))
        assert traceback_names(error)[-1] == "leaves"
        assert traceback.extract_tb(error.__traceback__)[-1].line == "raise Own(y)"


@pytest.mark.parametrize("kind", [KeyError, ValueError, Own, ZeroDivisionError, StopIteration])
def test_X3_which_handler_catches(kind):
    def program(x, kind):
        try:
            raise kind(1)
        except (KeyError, IndexError):
            return "lookup", x
        except Own as error:
            return "own", x * error.extra
        except ValueError:
            return "value", x + 1
        except Exception as error:
            return type(error).__name__, x

    check(program, value(), kind)


def test_X3_a_handler_that_is_no_class():
    def program(x):
        try:
            raise ValueError
        except 3:
            return x

    check(program, value(), whole=False)


# -- X4 to X6 --


def nested(x):
    log = []
    try:
        raise KeyError(1)
    except KeyError as outer:
        log.append(sys.exc_info()[0] is KeyError)
        try:
            raise ValueError(2)
        except ValueError as inner:
            log.append(inner.__context__ is outer)
            log.append(sys.exc_info()[1] is inner)
        log.append(sys.exc_info()[1] is outer)
    log.append(sys.exc_info() == (None, None, None))
    return x + 1, log


def test_X4_handled_exceptions_form_a_stack():
    check(nested, value(), whole=False)


def again(x):
    try:
        try:
            raise Own(x)
        except Own:
            raise
    except Own as error:
        return error.args[0] + 1


def chained(x):
    try:
        try:
            raise KeyError(1)
        except KeyError as error:
            raise Own(x + 1) from error
    except Own as error:
        return error.args[0], type(error.__cause__), error.__suppress_context__


def from_none(x):
    try:
        try:
            raise KeyError(1)
        except KeyError:
            raise Own(x + 1) from None
    except Own as error:
        return error.args[0], error.__cause__, error.__suppress_context__


@pytest.mark.parametrize("program", [again, chained, from_none], ids=lambda f: f.__name__)
def test_X5_raise_again_and_raise_from(program):
    check(program, value())


def test_X5_raise_with_nothing_to_raise():
    def program(x):
        try:
            raise
        except RuntimeError as error:
            return x, str(error)

    check(program, value(), whole=False)


class Counts:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        self.n -= 1
        if self.n < 0:
            raise StopIteration("end")
        return self.n


def test_X6_stop_iteration_of_the_program_ends_an_iteration():
    def program(x):
        made = [x + i for i in Counts(3)]
        counts = Counts(1)
        next(counts)
        try:
            next(counts)
        except StopIteration as end:
            return made, end.value, next(counts, "default")

    check(program, value())


# -- X7 to X9 --


class Logs:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, tb):
        self.log.append(("exit", kind and kind.__name__))
        return self.swallow


@contextlib.contextmanager
def generated(log):
    log.append("in")
    try:
        yield 5
    finally:
        log.append("out")


def managers(x, log):
    with Logs(log) as first, generated(log) as n:
        x = x + n
        first.log.append("body")
    with Logs(log, swallow=True):
        raise KeyError
    with contextlib.suppress(ValueError), contextlib.nullcontext(3) as three:
        x = x * three
        raise ValueError
    return x, log


def test_X7_managers_are_entered_and_left():
    check(managers, value(), [])


def test_X7_managers_in_c(tmp_path):
    path = tmp_path / "f"

    def program(x):
        with open(path, "w") as file, contextlib.redirect_stdout(io.StringIO()) as out:
            file.write("text")
            print("hidden")
        return x + 1, file.closed, out.getvalue()

    check(program, value(), whole=False)
    assert path.read_text() == "text"


def test_X7_what_is_no_manager():
    def program(x):
        with x:
            pass

    check(program, value(), whole=False)


@needs_torch
def test_X8_a_break_in_torchs_managers():
    def program(x):
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ x
            before = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
            tick()
            b = x @ a
            after = torch.is_grad_enabled(), torch.get_autocast_dtype("cpu")
        return a, b, before, after, torch.is_grad_enabled(), x * 2

    x = value(2, 2).requires_grad_()
    check(program, x, whole=False)
    backend = check(program, x, whole=False)
    assert len(backend.graphs) == 2
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@needs_torch
def test_X8_an_error_after_the_break_leaves_no_state():
    def program(x):
        with torch.no_grad():
            y = x + 1
            tick()
            raise Own(y)

    check(program, value(), whole=False)
    assert torch.is_grad_enabled()


def in_try(x, log):
    try:
        y = x + 1
        tick()
        y = y * 2
        raise Own(y)
    except Own as error:
        tick()
        log.append(error.extra)
        return error.args[0]
    finally:
        tick()
        log.append("finally")


def in_managers(x, log):
    with Logs(log), generated(log):
        x = x + 1
        tick()
        x = x * 2
        log.append("body")
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(Logs(log))
        tick()
        x = x - 1
    return x


@pytest.mark.parametrize("program", [in_try, in_managers], ids=lambda f: f.__name__)
def test_X9_breaks_inside_try_and_users_managers(program):
    # Stock gives up the whole frame; here what is before and after the break is compiled.
    backend = check(program, value(), [], whole=False)
    if torch is not None:
        assert len(backend.graphs) >= 2


# -- X10 --


def blocks(x, n):
    total = x
    for i in range(4):
        try:
            if i == n:
                continue
            if i == n + 2:
                break
            total = total + 1 / i
        except ZeroDivisionError:
            total = total * 2
        finally:
            total = total + 100
    while True:
        try:
            break
        finally:
            total = total - 1
    return total


@pytest.mark.parametrize("n", range(-2, 4))
def test_X10_which_block_an_instruction_belongs_to(n):
    check(blocks, value(), n)


def test_X10_with_a_break_at_each_turn():
    def program(x):
        log = []
        for i in range(4):
            try:
                tick()
                with Logs(log, swallow=i == 1):
                    if i == 1:
                        raise KeyError
                    if i == 2:
                        continue
                    x = x + i
            finally:
                log.append(i)
        return x, log

    check(program, value(), whole=False)


def test_X10_an_error_in_the_middle_of_an_expression():
    def program(x, d):
        try:
            return [x + 1, {"a": d["missing"]}, x]
        except KeyError as error:
            return x, error.args

    check(program, value(), {})
    assert_same(outcome(program, (1.0, {})), (1.0, ("missing",)))
