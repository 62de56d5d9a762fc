"""Images of frames and generators: taken at every boundary, put back, and nothing differs."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import traceback
import weakref
from pathlib import Path
from types import FunctionType

import pytest

import stator
from stator import _engine, image
from stator.image import NULL, Image, Returned, resume, step, take
from tests.stage import image_programs
from tests.stage.image_programs import asks, asks_for_two, asks_in_handler, opaque

ENGINES = ["stator", "cpython"]
PROGRAMS = [
    f
    for f in vars(image_programs).values()
    if isinstance(f, FunctionType) and f.__code__.co_varnames[: f.__code__.co_argcount] == ("log",)
]


# -- what can be seen of a run --------------------------------------------------------------


def places(error):
    """The entries of a traceback that lie in programs: name, line, columns."""
    found, entry = [], error.__traceback__
    while entry is not None:
        code = entry.tb_frame.f_code
        if code.co_filename == image_programs.__file__:
            positions = list(code.co_positions())[entry.tb_lasti // 2]
            found.append((code.co_name, entry.tb_lineno, positions))
        entry = entry.tb_next
    return found


def described(error):
    if error is None:
        return None
    chain = described(error.__cause__), described(error.__context__), error.__suppress_context__
    return repr(error), places(error), getattr(error, "__notes__", None), chain


def outcome(run, log):
    try:
        return "returned", repr(run()), log
    except Exception as error:
        return "raised", described(error), log


def plain(program):
    log = []
    return outcome(lambda: program(log), log)


def boundaries(program, new_log=list):
    """(n, image, log) for every boundary; each image is of a call of its own."""
    found, n = True, 0
    while found:
        n += 1
        log, found = new_log(), False
        with contextlib.suppress(Exception):
            picture = take(program, (log,), boundary=n)
            found = isinstance(picture, Image)
        if found:
            yield n, picture, log


def chain(picture):
    found = []
    while picture is not None:
        found.append(picture)
        picture = picture.caller
    return found


# -- every boundary -------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_resumed_at_every_boundary(program, engine):
    expected = plain(program)
    count = 0
    for n, picture, log in boundaries(program):
        run = lambda: resume(picture, engine=engine)
        assert outcome(run, log) == expected, f"boundary {n}"
        assert picture.spent and sys.exception() is None
        count += 1
    assert count > 15


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_stepped_to_the_end(program):
    log = []
    assert outcome(lambda: stepped(take(program, (log,))), log) == plain(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_step_ends_at_the_next_boundary(program):
    """What step() gives is what take() gives one boundary further."""
    everything = [shape(picture) for _, picture, _ in boundaries(program)]
    log, seen = [], []
    picture = take(program, (log,))
    with contextlib.suppress(Exception):
        while isinstance(picture, Image):
            seen.append(shape(picture))
            picture = step(picture)
    assert seen == everything


def shape(picture):
    return [
        (i.code, i.offset, i.awaiting, len(i.stack), sorted(i.locals), repr(i.handled))
        for i in chain(picture)
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_abandoned_frames_run_nothing(program):
    """No handler, finally or __exit__ runs, neither when the frames go nor when the image does."""
    whole = plain(program)[2]
    for n, picture, log in boundaries(program):
        before = list(log)
        assert before == whole[: len(before)], f"boundary {n}"
        if program is not image_programs.generators:  # theirs run when a generator is freed
            del picture
            gc.collect(0)
            assert log == before, f"boundary {n}"


@pytest.mark.parametrize("engine", [*ENGINES, None])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_references_are_neither_lost_nor_kept(program, engine):
    log = []
    before = sys.getrefcount(log)
    for found in boundaries(program, lambda: log.clear() or log):
        if engine:
            outcome(lambda: resume(found[1], engine=engine), log)
    del found
    gc.collect()
    assert sys.getrefcount(log) == before


def test_a_dead_image_is_collected_with_the_cycles_it_is_in():
    class Token:
        pass

    def holds(token):
        token.self = token
        return token

    token = Token()
    alive = weakref.ref(token)
    token.image = take(holds, (token,), boundary=3)
    assert token.image.locals == {"token": token}
    del token
    gc.collect()
    assert alive() is None


# -- what an image shows --------------------------------------------------------------------


def test_attributes_of_an_image():
    picture = take(image_programs.small, (1, 2))
    assert picture.code is image_programs.small.__code__
    assert picture.function is image_programs.small
    assert (picture.offset, picture.locals, picture.stack) == (0, {"a": 1, "b": 2}, [])
    assert (picture.handled, picture.caller) == (None, None)
    assert (picture.awaiting, picture.spent) == (False, False)
    assert repr(picture) == "<image of small at offset 0>"


@pytest.mark.parametrize(
    "name", "code function offset locals stack handled caller awaiting spent".split()
)
def test_images_are_read_only(name):
    picture = take(image_programs.small, (1, 2))
    with pytest.raises(AttributeError):
        setattr(picture, name, None)


def test_what_an_image_shows_is_a_copy():
    picture = take(image_programs.small, (1, 2), boundary=6)
    picture.locals["a"] = 100
    picture.stack.clear()
    assert resume(picture) == image_programs.small(1, 2)


def test_images_are_only_made_by_taking():
    with pytest.raises(TypeError, match="cannot create"):
        Image()


def test_the_empty_slot():
    assert repr(NULL) == "NULL"
    with pytest.raises(TypeError):
        type(NULL)()
    pictures = [picture for _, picture, _ in boundaries(image_programs.nested_calls)]
    assert any(NULL in picture.stack for picture in pictures)


def test_cells_are_shown_as_they_are():
    def outer():
        shared = 1

        def inner():
            return shared

        shared += 1
        return inner

    pictures = []
    for n in range(1, 40):
        picture = take(outer, boundary=n)
        if isinstance(picture, Image) and "inner" in picture.locals:
            pictures.append(picture)
    for picture in pictures:
        cell = picture.locals["shared"]
        assert cell is picture.locals["inner"].__closure__[0]
        assert resume(picture)() == 2 and cell.cell_contents == 2
    assert pictures


def golden_dump(function, *args):
    lines, n = [], 1
    while isinstance(picture := take(function, args, boundary=n), Image):
        for depth, i in enumerate(chain(picture)):
            lines.append(golden_line(f"{n:3}" if depth == 0 else "   ", i))
        n += 1
    lines.append(f"{n:3} {picture!r}")
    return "\n".join(lines) + "\n"


def golden_line(head, i):
    known = {image_programs.double: "double", NULL: "NULL"}
    shown = lambda o: known.get(o, repr(o)) if o.__hash__ else repr(o)
    names = " ".join(f"{k}={shown(v)}" for k, v in i.locals.items())
    values = "[" + ", ".join(map(shown, i.stack)) + "]"
    end = f"  handles {i.handled!r}" if i.handled else ""
    at = f"{i.offset}{'...' if i.awaiting else ''}"
    return f"{head} {i.code.co_name:6} {at:<7} {names:32} {values}{end}".rstrip()


def test_images_of_a_small_function_are_golden():
    version = "{}.{}".format(*sys.version_info[:2])
    path = Path(__file__).parent / "golden" / "images" / f"small-{version}.txt"
    text = golden_dump(image_programs.small, 1, 2)
    if os.environ.get("STATOR_REGEN") == "1":
        path.write_text(text)
    assert text == path.read_text()


# -- where boundaries are counted -----------------------------------------------------------


def test_a_function_that_ends_before_the_boundary_returns():
    assert take(image_programs.small, (1, 2), boundary=10**6) == Returned("1    KeyError(4)")


def test_an_exception_that_comes_before_the_boundary_is_raised():
    with pytest.raises(ZeroDivisionError):
        take(lambda: 1 / 0, boundary=100)


def test_methods_and_keywords():
    class C:
        def method(self, a, *, b):
            return self, a, b

    c = C()
    for boundary in range(1, 6):
        picture = take(c.method, (1,), {"b": 2}, boundary)
        assert picture.locals == {"self": c, "a": 1, "b": 2}
        assert resume(picture) == (c, 1, 2)


def test_frames_that_native_code_starts_are_not_counted():
    def key(x):
        return -x

    def program():
        return sorted([1, 2, 3], key=key)

    codes = {i.code for _, picture, _ in boundaries(lambda log: program()) for i in chain(picture)}
    assert program.__code__ in codes and key.__code__ not in codes


def test_callers_are_chained_innermost_first():
    def deep(n):
        return deep(n - 1) + 1 if n else 0

    depths = []
    for _, picture, _ in boundaries(lambda log: deep(3)):
        images = chain(picture)
        depths.append(len(images))
        assert [i.awaiting for i in images] == [False] + [True] * (len(images) - 1)
        assert [i.locals["n"] for i in images[:-1]] == list(range(5 - len(images), 4))
    assert set(depths) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_chain(engine):
    def deep(n):
        return deep(n - 1) + 1 if n else 0

    picture = take(deep, (500,), boundary=500 * 8)
    assert len(chain(picture)) > 300
    assert resume(picture, engine=engine) == 500


def test_generator_functions_are_called_and_not_begun():
    def numbers():
        yield 1

    made = take(numbers)
    assert list(made.value) == [1]


def test_stops_within_a_stop():
    """A function that takes and resumes images itself, run up to each of its own boundaries."""

    def program(log):
        picture = take(image_programs.nested_calls, (log,), boundary=30)
        log.append(picture.offset)
        return resume(picture)

    expected = plain(program)
    for engine in ENGINES:
        for n, picture, log in boundaries(program):
            assert outcome(lambda: resume(picture, engine=engine), log) == expected, f"boundary {n}"


def test_images_within_evaluate():
    def program(log):
        picture = take(image_programs.closures, (log,), boundary=40)
        return resume(picture, engine="cpython")

    log = []
    assert outcome(lambda: stator.evaluate(program, log), log) == plain(image_programs.closures)


# -- where an image is put back -------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_put_back_in_another_thread(engine):
    expected = plain(image_programs.nested_handlers)
    for n, picture, log in boundaries(image_programs.nested_handlers):
        seen = []
        run = lambda: seen.append(outcome(lambda: resume(picture, engine=engine), log))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert seen == [expected], f"boundary {n}"


@pytest.mark.parametrize("engine", ENGINES)
def test_put_back_while_another_exception_is_handled(engine):
    """Its own handlers' exceptions come back; behind them it sees the new caller's."""

    @opaque  # one step, so that nothing seen waits on the stack
    def look(log, error=None):
        log.append((repr(sys.exception()), repr(error and error.__context__)))

    def program(log):
        look(log)
        try:
            raise ValueError("own")
        except ValueError:
            look(log)
            try:
                raise TypeError("inner")
            except TypeError as error:
                look(log, error)
            look(log)
        look(log)

    inside = [("ValueError('own')", "None"), ("TypeError('inner')", "ValueError('own')")]
    outside = ("None", "None"), ("KeyError('new')", "None")
    handled = KeyError("new")
    for n, picture, log in boundaries(program):
        first, last = outside[not log], outside[len(log) < 5]
        try:
            raise handled
        except KeyError:
            resume(picture, engine=engine)
            assert sys.exception() is handled
        assert sys.exception() is None
        assert log == [first, *inside, inside[0], last], f"boundary {n}"
    assert handled.__context__ is None


@pytest.mark.parametrize("engine", ENGINES)
def test_frames_are_linked_as_they_were(engine):
    """Put back, each frame's f_back is the next one's, and the outermost's is who put it back."""

    @opaque
    def look():
        return [(f.name, f.lineno) for f in reversed(traceback.extract_stack())], below()

    @opaque
    def below():
        frame, seen = sys._getframe(1), []
        while frame is not None:
            seen.append((frame.f_code.co_name, frame.f_lineno))
            frame = frame.f_back
        return seen

    def inner():
        return look()

    def program(log):
        try:
            return (lambda: inner())()
        finally:
            log.append("finally")

    count = 0
    for n, picture, _ in boundaries(program):
        if any(isinstance(value, tuple) for i in chain(picture) for value in i.stack):
            continue  # it has looked already
        summary, seen = resume(picture, engine=engine)
        names = [name for name, _ in seen]
        here = "test_frames_are_linked_as_they_were"
        expected = ["look", "inner", "<lambda>", "program", "_resume", "resume", here]
        assert names[: len(expected)] == expected, f"boundary {n}"
        assert summary[1:] == seen[1:]
        count += 1
    assert count > 10


# -- images that await ----------------------------------------------------------------------


def awaiting(program):
    """The image of the frame that called asked(), and its log."""
    for _, picture, log in boundaries(lambda log: program(log)):
        if picture.code is image_programs.asked.__code__:
            return picture.caller, log
    raise AssertionError("asked() was not called")


def without_answer(described):
    """A description without the answering function's own entry in tracebacks."""
    if not isinstance(described, tuple):
        return described
    text, entries, notes, (cause, context, suppress) = described
    entries = [entry for entry in entries if entry[0] != "answer"]
    links = without_answer(cause), without_answer(context), suppress
    return text, entries, notes, links


def answered(program, answer):
    log = []

    def forget(log):
        return answer(log)

    kind, what, log = outcome(lambda: program(log, forget), log)
    return kind, without_answer(what), log


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("program", [asks, asks_for_two, asks_in_handler])
def test_continued_by_a_value(program, engine):
    picture, log = awaiting(program)
    assert picture.awaiting and "awaiting a value" in repr(picture)
    given = outcome(lambda: resume(picture, engine=engine, value="given"), log)
    assert given == answered(program, lambda log: "given")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [ValueError, KeyError, LookupError])
@pytest.mark.parametrize("program", [asks, asks_for_two, asks_in_handler])
def test_continued_by_an_exception(program, kind, engine):
    """The original handlers and finally blocks run, on the right lines."""

    def answer(log):
        raise kind("given")

    picture, log = awaiting(program)
    exception = thrown(kind, picture)
    given = outcome(lambda: resume(picture, engine=engine, exception=exception), log)
    assert given == answered(program, answer)


def thrown(kind, picture):
    """As `raise` would have made it: an exception that is given is raised as it is."""
    exception = kind("given")
    exception.__context__ = picture.handled
    return exception


@pytest.mark.parametrize("program", [asks, asks_for_two, asks_in_handler])
def test_stepped_after_an_answer(program):
    def given(log):
        return "given"

    def fails(log):
        raise ValueError("given")

    for answer in (given, fails):
        picture, log = awaiting(program)
        if answer is given:
            first = step(picture, value="given")
        else:
            first = step(picture, exception=thrown(ValueError, picture))
        assert first.offset > picture.offset and not first.awaiting
        assert outcome(lambda: stepped(first), log) == answered(program, answer)


def stepped(found):
    while isinstance(found, Image):
        found = step(found)
    return found.value


def test_an_exception_keeps_the_traceback_it_has():
    def fails():
        raise ValueError("given")

    try:
        fails()
    except ValueError as error:
        given = error
    picture, log = awaiting(lambda log: asked_plainly(log))
    with pytest.raises(ValueError) as raised:
        resume(picture, exception=given)
    names = [entry.name for entry in traceback.extract_tb(raised.value.__traceback__)]
    assert raised.value is given
    assert names[-2:] == [test_an_exception_keeps_the_traceback_it_has.__name__, "fails"]
    assert "asked_plainly" in names[:-2]


def asked_plainly(log):
    return image_programs.asked(log)


def test_a_value_may_be_none():
    picture, log = awaiting(asks)
    assert resume(picture, value=None) == [1, None]


# -- spent images and bad input -------------------------------------------------------------


def test_an_image_is_put_back_once():
    picture = take(image_programs.small, (1, 2), boundary=6)
    resume(picture)
    assert picture.spent and repr(picture).endswith(", spent>")
    assert picture.locals == {} and set(picture.stack) <= {NULL}
    for again in (resume, step):
        with pytest.raises(ValueError, match="put back already"):
            again(picture)


def test_a_stepped_image_is_spent():
    first = take(image_programs.small, (1, 2))
    second = step(first)
    assert first.spent and not second.spent
    with pytest.raises(ValueError, match="put back already"):
        step(first)


def test_callers_of_a_resumed_image_are_spent_with_it():
    found = boundaries(image_programs.nested_calls)
    picture = next(picture for _, picture, _ in found if picture.caller is not None)
    caller = picture.caller
    resume(picture)
    assert caller.spent
    with pytest.raises(ValueError, match="put back already"):
        resume(caller, value=1)


def test_an_image_whose_caller_went_its_own_way_is_spent():
    code = """
from stator.image import resume, take
def inner(x):
    return x + 1
def outer(x):
    y = [x]
    return inner(x), y
for boundary in range(1, 30):
    picture = take(outer, (1,), boundary=boundary)
    if picture.caller is not None:
        break
assert resume(picture.caller, value=5) == (5, [1])
try:
    resume(picture)
except ValueError as error:
    print(error)
"""
    assert "put back already" in child(code)


def child(code, *args):
    """What a Python program prints; it may crash without taking the tests with it."""
    run = [sys.executable, *args, "-X", "faulthandler", "-c", code]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("engine", ["", "Stator", None, 1])
def test_unknown_engines(engine):
    picture = take(image_programs.small, (1, 2))
    with pytest.raises(ValueError, match="engine must be"):
        resume(picture, engine=engine)
    assert not picture.spent and resume(picture)


@pytest.mark.parametrize("thing", [5, None, "x", object()])
def test_what_cannot_be_called_has_no_frame(thing):
    with pytest.raises(TypeError, match="needs a callable"):
        take(thing)


@pytest.mark.parametrize("function", [len, print, "".join, int])
def test_what_has_no_python_code_has_no_frame(function):
    with pytest.raises(TypeError, match="Python code"):
        take(function)


@pytest.mark.parametrize("boundary", [0, -1])
def test_boundaries_count_from_one(boundary):
    with pytest.raises(ValueError, match="count from 1"):
        take(image_programs.small, (1, 2), boundary=boundary)


def test_arguments_are_bound_as_ever():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        take(image_programs.small, (1,))
    with pytest.raises(TypeError, match="multiple values"):
        take(image_programs.small, (1, 2), {"a": 1})
    with pytest.raises(TypeError):
        take(image_programs.small, 5)
    with pytest.raises(TypeError):
        take(image_programs.small, (1, 2), 5)
    with pytest.raises(TypeError):
        take(image_programs.small, (1, 2), boundary="1")


def test_values_are_for_images_that_await():
    picture = take(image_programs.small, (1, 2))
    for given in ({"value": 1}, {"exception": KeyError()}):
        for go_on in (resume, step):
            with pytest.raises(ValueError, match="does not await"):
                go_on(picture, **given)
    assert resume(picture) == image_programs.small(1, 2)


def test_awaiting_images_need_a_value_or_an_exception():
    picture, log = awaiting(asks)
    for go_on in (resume, step):
        with pytest.raises(ValueError, match="awaits a value or an exception"):
            go_on(picture)
        for thrown in (ValueError, 5, None):
            with pytest.raises(TypeError, match="exception instance"):
                go_on(picture, exception=thrown)
        with pytest.raises((TypeError, ValueError)):
            go_on(picture, value=1, exception=KeyError())
        with pytest.raises(TypeError):
            go_on(picture, colour=1)
    assert resume(picture, value=2) == [1, 2]


@pytest.mark.parametrize("thing", [5, None, image_programs.small])
def test_what_is_not_an_image(thing):
    for call in (resume, image.put_generator):
        with pytest.raises(TypeError):
            call(thing)


def test_nothing_stays_hooked_after_errors():
    picture, log = awaiting(asks)
    for call in (
        lambda: take(lambda: 1 / 0),
        lambda: take(lambda: 1 / 0, boundary=50),
        lambda: take(len),
        lambda: resume(picture),
        lambda: resume(picture, exception=KeyError(1)),
        lambda: image.take_generator(5),
        lambda: image.put_generator(5),
    ):
        with contextlib.suppress(Exception):
            call()
        assert not _engine.hook_installed()


# -- what outside code can see of abandoned frames ------------------------------------------


def test_frame_objects_of_abandoned_frames_are_empty():
    code = """
import sys
from stator.image import Returned, resume, take
kept = []
def make():
    free = 1
    def function(argument):
        local = [argument]
        kept.append(sys._getframe())
        return local, free
    return function
boundary = 1
while not isinstance(picture := take(make(), (2,), boundary=boundary), Returned):
    while kept:
        frame = kept.pop()
        assert frame.f_code is picture.code and frame.f_lineno > 7
        assert dict(frame.f_locals) == {}, frame.f_locals
        frame.clear()
    assert resume(picture) == ([2], 1)
    kept.clear()
    boundary += 1
print(boundary > 15)
"""
    assert child(code) == "True\n"


def test_finalisers_run_when_an_image_is_dropped():
    """Those of objects, by their reference counts; the frame's own code does not run."""
    log = []

    class Dies:
        def __del__(self):
            log.append("dead")

    def program():
        held = Dies()
        try:
            log.append("inside")
            return held
        finally:
            log.append("finally")

    boundary = 1
    while "inside" not in log:
        log.clear()
        picture = take(program, boundary=boundary)
        assert log in ([], ["inside"])
        del picture
        boundary += 1
    assert log == ["inside", "dead"]
