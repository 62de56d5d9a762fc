"""What people say about sizes: marks on tensors, torch's settings, and checks in the program.

Rows have how many graphs there are after each call, or the error; they were seen with stock Dynamo
on torch 2.13, which runs them, too."""

import inspect
import logging

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo as dynamo  # noqa: E402
from torch._dynamo.decorators import mark_unbacked  # noqa: E402
from torch._dynamo.testing import CompileCounter  # noqa: E402
from torch.fx.experimental.symbolic_shapes import ConstraintViolationError  # noqa: E402

import stator  # noqa: E402
from stator import _dims  # noqa: E402
from tests.older import skip_stock_before, version  # noqa: E402


@pytest.fixture(params=["stator", "stock"])
def engine(request):
    if request.param == "stator":
        stator.install()
    dynamo.reset()
    _dims._said.clear()
    try:
        yield request.param
    finally:
        stator.uninstall()
        dynamo.reset()


@pytest.fixture
def installed():
    stator.install()
    dynamo.reset()
    _dims._said.clear()
    try:
        yield
    finally:
        stator.uninstall()
        dynamo.reset()


def graphs(function, calls, settings=None, **options):
    """How many there are after each call. Results are compared with plain Python's."""
    backend = CompileCounter()
    fast = torch.compile(function, backend=backend, **options)
    counts = []
    for make in calls:
        args = make()
        try:
            got = fast(*args)
        except ConstraintViolationError as error:
            counts.append("outside" if "not in range" in str(error) else "violated")
        else:
            torch.testing.assert_close(got, function(*args), rtol=0, atol=0)
            counts.append(backend.frame_count)
    return counts


# -- marks on tensors --


def plain(*sizes):
    return lambda: (torch.randn(sizes),)


def marked(mark, sizes, *args, **options):
    def make():
        x = torch.randn(sizes)
        mark(x, *args, **options)
        return (x,)

    return make


def dynamic(sizes, dims, **options):
    return marked(dynamo.mark_dynamic, sizes, dims, **options)


def maybe(sizes, dims):
    return marked(dynamo.maybe_mark_dynamic, sizes, dims)


def static(sizes, *dims):
    return marked(dynamo.mark_static, sizes, *dims)


def two_marks():
    x = torch.randn(3, 4)
    dynamo.mark_static(x, 0)
    dynamo.mark_dynamic(x, 0)
    return (x,)


def parameter():
    x = torch.nn.Parameter(torch.randn(3, 4))
    dynamo.mark_dynamic(x, 0)
    return (x,)


def pair(first, second):
    def make():
        x, y = torch.randn(first), torch.randn(second)
        dynamo.mark_dynamic(x, 0)
        dynamo.mark_dynamic(y, 0)
        return x, y

    return make


def first_of_pair(first, second):
    def make():
        x, y = torch.randn(first), torch.randn(second)
        dynamo.mark_dynamic(x, 0)
        return x, y

    return make


def sine(x):
    return x.sin()


def three_or_not(x):
    return x.sin() if x.shape[0] == 3 else x.cos()


def five_or_not(x):
    return x.sin() if x.shape[0] != 5 else x.cos()


def below_four(x):
    return x.sin() if x.shape[0] < 4 else x.cos()


def each_row(x):
    return sum(x[i] for i in range(x.shape[0]))


def as_int(x):
    return x + int(x.shape[0])


def as_key(x):
    return x + {3: 1, 5: 2}.get(x.shape[0], 0)


def with_three_rows(x):
    return x + torch.ones(3, 4)


def added(x, y):
    return x + y


def pairs(x):
    return x.view(-1, 2)


RANGE = {"min": 2, "max": 5}

MARKS = {
    "marked": (sine, [dynamic((3, 4), 0), dynamic((5, 4), 0)], [1, 1]),
    "a list": (sine, [dynamic((3, 4), [0, 1]), dynamic((5, 6), [0, 1])], [1, 1]),
    "then not": (sine, [dynamic((3, 4), 0), plain(5, 4), plain(6, 4)], [1, 1, 1]),
    "not, then": (sine, [plain(3, 4), dynamic((3, 4), 0), plain(3, 4)], [1, 2, 2]),
    "more": (sine, [dynamic((3, 4), 0), dynamic((3, 4), [0, 1]), dynamic((3, 4), 1)], [1, 2, 2]),
    "fewer": (sine, [dynamic((3, 4), [0, 1]), dynamic((3, 5), 0)], [1, 1]),
    "size 1": (sine, [dynamic((1, 4), 0), dynamic((3, 4), 0)], [1, 2]),
    "size 0": (sine, [dynamic((0, 4), 0), dynamic((3, 4), 0)], [1, 2]),
    "no such dimension": (sine, [dynamic((3, 4), 5), dynamic((3, 4), 7)], [1, 2]),
    "a parameter": (sine, [parameter], [1]),
    "decided": (three_or_not, [dynamic((3, 4), 0)], ["violated"]),
    "decided later": (five_or_not, [dynamic((3, 4), 0), dynamic((5, 4), 0)], [1, "violated"]),
    "a range of it": (each_row, [dynamic((3, 4), 0)], ["violated"]),
    "int()": (as_int, [dynamic((3, 4), 0), dynamic((4, 4), 0)], [1, 1]),
    "a key": (as_key, [dynamic((3, 4), 0)], ["violated"]),
    "broadcast": (with_three_rows, [dynamic((3, 4), 0)], ["violated"]),
    "compared": (below_four, [dynamic((3, 4), 0), dynamic((5, 4), 0)], [1, 2]),
    "divided": (pairs, [dynamic((4, 4), 0), dynamic((5, 4), 0)], [1, 1]),
    "two": (added, [pair((3, 4), (3, 4)), pair((5, 4), (5, 4))], [1, 1]),
    "one of two": (added, [first_of_pair((3, 4), (3, 4))], ["violated"]),
    "in range": (
        sine,
        [dynamic((3, 4), 0, **RANGE), dynamic((5, 4), 0, **RANGE), dynamic((6, 4), 0, **RANGE),
         plain(6, 4), plain(4, 4)],
        [1, 1, "outside", 2, 2],
    ),
    "out of range": (sine, [dynamic((7, 4), 0, **RANGE)], ["outside"]),
    "less than the range": (below_four, [dynamic((3, 4), 0, **RANGE)], ["violated"]),
    "maybe": (sine, [maybe((3, 4), 0), maybe((5, 4), 0), plain(6, 4), plain(3, 4)], [1, 1, 1, 1]),
    "maybe, decided": (three_or_not, [maybe((3, 4), 0), maybe((5, 4), 0)], [1, 2]),
    "static": (sine, [static((3, 4)), static((5, 4)), static((6, 4)), static((7, 4))], [1, 2, 3, 4]),
    "then static": (sine, [plain(3, 4), plain(5, 4), static((6, 4))], [1, 2, 3]),
    "static, then not": (
        sine, [static((3, 4)), plain(5, 4), plain(6, 4), static((6, 4))], [1, 2, 2, 3],
    ),
    "both": (sine, [two_marks, dynamic((5, 4), 0)], [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("row", MARKS.values(), ids=MARKS)
def test_marks(engine, row):
    function, calls, counts = row
    if row in (MARKS["then static"], MARKS["static, then not"]):
        skip_stock_before(engine, 2, 13)
    assert graphs(function, calls) == counts


def test_marks_count_more_than_dynamic_false(engine):
    calls = [dynamic((3, 4), 0), dynamic((5, 4), 0)]
    assert graphs(sine, calls, dynamic=False) == [1, 1]


@pytest.mark.parametrize("dims", [(), (0,), ([0],)], ids=["all", "0", "list"])
def test_static_counts_more_than_dynamic_true(engine, dims):
    calls = [static((3, 4), *dims), static((5, 4), *dims), plain(6, 4), plain(7, 4)]
    assert graphs(sine, calls, dynamic=True) == [1, 2, 3, 3]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_the_backend_needs_is_a_violation_too(installed, backend):
    def refuse(module, examples):
        for example in examples:
            if isinstance(example, torch.SymInt):
                int(example)  # which needs the value
        return module.forward

    fast = torch.compile(lambda x: x * x.shape[0], backend=refuse)
    with pytest.raises(ConstraintViolationError, match=r"L\['x'\].size\(\)\[0\].*\(3\)") as raised:
        fast(*dynamic((3, 4), 0)())
    assert "The backend needed the value" in str(raised.value)
    fast = torch.compile(sine, backend=backend)
    for size in (3, 5, 8):
        (x,) = dynamic((size, 4), 0)()
        assert torch.equal(fast(x), x.sin())


def test_the_error_says_where(engine):
    with pytest.raises(ConstraintViolationError) as raised:
        torch.compile(three_or_not, backend="eager")(*dynamic((3, 4), 0)())
    text = str(raised.value)
    assert "Constraints violated (L['x'].size()[0])!" in text
    assert "You marked L['x'].size()[0] as dynamic but your code specialized it to be" in text
    assert "x.shape[0] == 3" in text


def test_a_setting_makes_violations_no_errors(engine):
    calls = [dynamic((3, 4), 0), dynamic((5, 4), 0)]
    with dynamo.config.patch(allow_ignore_mark_dynamic=True):
        assert graphs(three_or_not, calls) == [1, 2]


def test_what_the_engine_itself_cannot_leave_open_is_no_error(installed):
    def written(x):
        y = x.sin()
        y.add_(1)
        return y

    fast = torch.compile(written, backend="eager")
    for size in (3, 5):
        (x,) = dynamic((size, 4), 0)()
        assert torch.equal(fast(x), x.sin() + 1)


def test_mark_static_inside(engine):
    def inside(x):
        dynamo.mark_static(x, 0)
        return x.sin()

    def all_inside(x):
        dynamo.mark_static(x)
        return x.sin()

    for function in (inside, all_inside):
        assert graphs(function, [plain(n, 4) for n in (3, 4, 5)], dynamic=True)[-1] >= 3
        dynamo.reset()


def test_marks_must_not_be_set_inside(engine):
    def inside(x):
        dynamo.mark_dynamic(x, 0)
        return x.sin()

    with pytest.raises(AssertionError, match="forbidden callable"):
        torch.compile(inside, backend="eager")(torch.randn(3))


def test_hints_of_marks_reach_the_backend(engine):
    seen = []

    def backend(module, examples):
        for node in module.graph.find_nodes(op="placeholder"):
            value = node.meta["example_value"]
            if isinstance(value, torch.Tensor):
                seen.append(list(value.fake_mode.shape_env.var_to_hint_override.values()))
        return module.forward

    torch.compile(sine, backend=backend)(*dynamic((3, 4), 0, hint_override=64)())
    assert seen == [[64]]


UNHONOURED = {
    "bounds": (dict(index=0, min=2, max=9), "the bounds are not checked"),
    "shape_id": (dict(index=0, shape_id="batch"), "is not asserted"),
}


@pytest.mark.parametrize("row", UNHONOURED.values(), ids=UNHONOURED)
def test_what_is_not_honoured_is_said_once(installed, caplog, row):
    options, text = row
    if not options.keys() <= inspect.signature(mark_unbacked).parameters.keys():
        pytest.skip("this torch has no such parameter")
    with caplog.at_level(logging.WARNING, "stator"):
        calls = [marked(mark_unbacked, (n, 4), **options) for n in (3, 5)]
        assert graphs(sine, calls) == [1, 1]
        dynamo.reset()
        assert graphs(sine, calls) == [1, 1]
    assert caplog.text.count(text) == 1


def test_specialize_on_is_said(installed, caplog):
    with caplog.at_level(logging.WARNING, "stator"):
        graphs(sine, [dynamic((3, 4), 0, specialize_on=[lambda n: n == 3])])
    assert "specialize_on" in caplog.text


def test_marks_on_a_parameter_are_said(installed, caplog):
    with caplog.at_level(logging.WARNING, "stator"):
        graphs(sine, [parameter])
    assert "force_parameter_static_shapes" in caplog.text


# -- addresses --


@pytest.mark.parametrize("guard, counts", [(True, [1, 1, 2, 2]), (False, [1, 1, 1, 1])])
def test_an_address_is_guarded_if_the_user_says_so(engine, guard, counts):
    one, two = torch.randn(3), torch.randn(3)
    for x in (one, two):
        dynamo.mark_static_address(x, guard=guard)
    assert graphs(sine, [lambda: (one,), lambda: (one,), lambda: (two,), lambda: (one,)]) == counts


def test_backends_are_told_of_addresses(installed):
    told = []

    def backend(module, examples):
        (node,) = module.graph.find_nodes(op="placeholder")
        told.append(node.meta["tensor_dict"].get("_dynamo_static_input_type"))
        return module.forward

    for guard in (True, False, None):
        dynamo.reset()
        x = torch.randn(3)
        if guard is not None:
            dynamo.mark_static_address(x, guard=guard)
        torch.compile(sine, backend=backend)(x)
    assert told == ["guarded", "unguarded", None]


# -- settings --


def number(n):
    return lambda: (torch.randn(4), n)


def times(x, n):
    return x * n


SOURCES = {
    "a tensor": (dict(dynamic_sources="L['x']"), sine, [plain(3, 4), plain(5, 6)], [1, 1]),
    "a pattern": (dict(dynamic_sources=r"L\['.*'\]"), sine, [plain(3, 4), plain(5, 6)], [1, 1]),
    "a dimension": (dict(dynamic_sources="L['x']:0"), sine, [plain(3, 4), plain(5, 4)], [1, 1]),
    "another one": (dict(dynamic_sources="L['x']:1"), sine, [plain(3, 4), plain(5, 4)], [1, 2]),
    "several": (
        dict(dynamic_sources="L['y'], L['x']:0, L['x']:1"), sine, [plain(3, 4), plain(5, 6)], [1, 1],
    ),
    "no such place": (dict(dynamic_sources="L['y']"), sine, [plain(3, 4), plain(5, 4)], [1, 2]),
    "an int": (dict(dynamic_sources="L['n']"), times, [number(3), number(5)], [1, 1]),
    "a size": (dict(dynamic_values="3"), sine, [plain(3, 4), plain(5, 4)], [1, 1]),
    "an int's value": (dict(dynamic_values="7,3"), times, [number(3), number(5)], [1, 1]),
    "no such value": (dict(dynamic_values="9"), times, [number(3), number(5)], [1, 2]),
}  # fmt: skip


@pytest.mark.parametrize("row", SOURCES.values(), ids=SOURCES)
def test_places_that_settings_name(engine, row):
    settings, function, calls, counts = row
    if not all(hasattr(torch.compiler.config, name) for name in settings):
        pytest.skip("this torch has no such setting")
    if ":" in str(settings):
        skip_stock_before(engine, 2, 13)
    with torch.compiler.config.patch(settings):
        assert graphs(function, calls, dynamic=None) == counts


def test_named_places_count_more_than_dynamic_false(engine):
    with torch.compiler.config.patch(dynamic_sources="L['x']"):
        assert graphs(sine, [plain(3, 4), plain(5, 6)], dynamic=False) == [1, 1]


def test_named_places_count_more_than_parameters(engine):
    calls = [lambda n=n: (torch.nn.Parameter(torch.randn(n, 4)),) for n in (3, 5, 6)]
    assert graphs(sine, calls) == [1, 2, 3]
    dynamo.reset()
    with torch.compiler.config.patch(dynamic_sources="L['x']"):
        assert graphs(sine, calls) == [1, 1, 1]


def test_an_unbacked_number_is_said(installed, caplog):
    with (
        torch.compiler.config.patch(unbacked_sources="L['n']"),
        caplog.at_level(logging.WARNING, "stator"),
    ):
        assert graphs(times, [number(3), number(5)]) == [1, 1]
    assert "unbacked_sources names L['n'], which is a number" in caplog.text


def test_sizes_of_parameters_change_if_a_setting_says_so(engine):
    calls = [lambda n=n: (torch.nn.Parameter(torch.randn(n, 4)),) for n in (3, 5, 6)]
    with dynamo.config.patch(force_parameter_static_shapes=False):
        assert graphs(sine, calls) == [1, 2, 2]


# -- numbers that are pinned --


def test_one_special_value_does_not_keep_a_size_closed(engine):
    calls = [plain(n, 4) for n in (3, 4, 5, 6, 7)]
    assert graphs(three_or_not, calls, dynamic=True) == [1, 2, 2, 2, 2]


def test_what_a_backend_pins_is_settled_even_if_all_is_left_open(installed):
    symbols = []

    def backend(module, examples):
        symbols.append(sum(isinstance(example, torch.SymInt) for example in examples))
        for example in examples:
            if isinstance(example, torch.SymInt):
                int(example)  # which needs the value
        return module.forward

    fast = torch.compile(sine, backend=backend, dynamic=True)
    for size in (3, 4, 5, 6):
        x = torch.randn(size, 2)
        assert torch.equal(fast(x), x.sin())
    assert symbols == [2, 2, 0, 0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_cache_that_grows_settles(installed, backend):
    def step(cache, x):
        cache[0] = torch.cat([cache[0], x])
        return torch.softmax(x @ cache[0].t(), 1) @ cache[0]

    fast = torch.compile(step, backend=backend, dynamic=True)
    cache, entries = [torch.randn(2, 4)], []
    for _ in range(6):
        x = torch.randn(1, 4)
        want = step([cache[0]], x)
        torch.testing.assert_close(fast(cache, x), want)
        entries.append(fast.metrics["entries"])
    # Older versions of AOTAutograd decide something about the first cache.
    decided = backend == "aot_eager" and version() < (2, 13)
    assert entries == ([1] + [2] * 5 if decided else [1] * 6)


# -- reasons, and the limit --


def reasons(function, calls, **options):
    failures = []
    fast = dynamo.optimize("eager", guard_fail_fn=failures.append, **options)(function)
    for make in calls:
        fast(*make())
    return [failure.reason for failure in failures]


def test_a_reason_says_which_size_and_what_to_mark(installed):
    (text,) = reasons(sine, [plain(3, 4), plain(5, 4), plain(6, 4)])
    assert text == (
        "tensor 'x' size mismatch at index 0. expected 3, actual 5 (from now on any number will do "
        "for L['x'].size(0); from the start with torch._dynamo.mark_dynamic(L['x'], 0))"
    )


def test_a_reason_says_that_the_value_is_needed(installed):
    *_, text = reasons(each_row, [plain(n, 4) for n in (3, 5, 6, 7, 8)])
    assert "each value of L['x'].size(0) is compiled on its own" in text


def test_a_reason_names_marks(installed):
    (text,) = reasons(sine, [plain(3, 4), dynamic((3, 4), 0)])
    assert text == ("L['x'] has marks on its sizes: _dynamo_dynamic_indices[0]; expected: none")


def test_a_reason_names_a_moved_address(installed):
    calls = [marked(dynamo.mark_static_address, (3,), guard=True)] * 2
    kept = [make() for make in calls]
    (text,) = reasons(sine, [lambda args=args: args for args in kept])
    assert "mark_static_address" in text


def test_a_reason_names_the_setting_for_parameters(engine):
    calls = [lambda n=n: (torch.nn.Parameter(torch.randn(n)),) for n in (3, 5)]
    (text,) = reasons(sine, calls)
    assert "size mismatch at index 0. expected 3, actual 5" in text
    assert "torch._dynamo.config.force_parameter_static_shapes" in text


def test_the_limit_says_what_changed_and_entries_stay_in_use(installed, caplog):
    def lengths(x, word):
        return x + len(word)

    def others(x, word):
        return x - len(word)

    fast, other = (torch.compile(f, backend="eager") for f in (lengths, others))
    x = torch.randn(3)
    with caplog.at_level(logging.WARNING, "torch._dynamo"):
        for size in range(12):
            assert torch.equal(fast(x, "a" * size), x + size)
            assert torch.equal(other(x, "a" * size), x - size)
    line = lengths.__code__.co_firstlineno
    assert f"function: 'lengths' ({__file__}:{line})" in caplog.text
    assert "function: 'others'" in caplog.text  # though both have one backend and its settings
    assert "word: 8 other values ('a', 'aa', 'aaa', …, 'aaaaaaaa')" in caplog.text
    before = fast.metrics["hits"]
    fast(x, "aaa")
    assert fast.metrics["hits"] == before + 1


# -- settings that have no effect --

SETTINGS = [
    (torch.fx.experimental._config, "backed_size_oblivious", True),
    (torch.compiler.config, "job_id", "some"),
]


@pytest.mark.parametrize("module, name, value", SETTINGS, ids=[row[1] for row in SETTINGS])
def test_settings_without_effect_are_said_once(installed, caplog, module, name, value):
    with module.patch(name, value), caplog.at_level(logging.WARNING, "stator"):
        assert graphs(sine, [plain(n, 4) for n in (3, 5, 6)]) == [1, 2, 2]
    assert caplog.text.count(f"{name} = {value!r} has no effect") == 1


# -- checks --


def large(x, n):
    torch._check(x.shape[0] > n)
    return x * 2


def with_words(x, n):
    torch._check(x.shape[0] > n, lambda: f"not more than {n}")
    return x * 2


def valued(x, n):
    torch._check_value(n > 0, lambda: "value")
    torch._check_index(n < 9, lambda: "index")
    torch._check_type(n != 7, lambda: "type")
    torch._check_not_implemented(n != 8, lambda: "not implemented")
    return x * n


def keyed(x, n):
    torch._check_with(KeyError, n > 0, lambda: "key")
    return x * n


def is_size(x, n):
    torch._check_is_size(n, max=8)
    return x * n


def even(x, n):
    torch._check(x.shape[0] % 2 == 0)
    return x.view(2, -1)


def caught(x, n):
    try:
        torch._check(n > 0)
    except RuntimeError:
        return x
    return x * n


def no_bool(x, n):
    torch._check(n)
    return x


def no_message(x, n):
    torch._check(n > 0, "words")
    return x * n


def of_tensor(x, n):
    torch._check(x.sum() > n)
    return x


def all_of_tensor(x, n):
    torch._check_tensor_all(x > n, lambda: "some are not")
    return x * 2


def rows_and(*pairs):
    return [(torch.arange(1.0, 1 + 4 * rows).view(rows, 4), n) for rows, n in pairs]


# A function, its arguments, and how many graphs are made at the most.
CHECKS = {
    "size": (large, rows_and((5, 3), (6, 3), (7, 3), (2, 3), (8, 3)), 2),
    "words": (with_words, rows_and((5, 3), (2, 3), (8, 3)), 2),
    "kinds": (valued, rows_and(*((5, n) for n in (3, 4, 0, 9, 7, 8, 5, 6))), 2),
    "with": (keyed, rows_and((5, 3), (5, 4), (5, -1), (5, 5)), 2),
    "is_size": (is_size, rows_and((5, 3), (5, 4), (5, -1), (5, 9), (5, 5)), 2),
    "even": (even, rows_and((4, 0), (6, 0), (5, 0), (8, 0)), 2),
    "caught": (caught, rows_and((5, 3), (5, -1), (5, 4), (5, -2)), 2),
    "no bool": (no_bool, rows_and((5, 3), (5, 4)), 0),
    "no message": (no_message, rows_and((5, 3), (5, -1)), 1),
    "tensor": (of_tensor, rows_and((5, 3)), 1),
    "all": (all_of_tensor, rows_and((5, 0), (5, 100)), 3),
}


def outcome(function, args):
    try:
        return function(*args)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("row", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("dynamic", [None, True])
def test_checks_raise_what_plain_python_does(installed, row, dynamic):
    function, calls, most = row
    backend = CompileCounter()
    fast = torch.compile(function, backend=backend, dynamic=dynamic)
    for args in calls:
        want, got = outcome(function, args), outcome(fast, args)
        assert torch.equal(got, want) if isinstance(want, torch.Tensor) else got == want
    assert backend.frame_count <= most


def test_a_check_is_known_afterwards(installed):
    def program(x):
        torch._check(x.shape[0] % 4 == 0)
        return x.view(-1, 4) * (2 if x.shape[0] % 4 == 0 else 3)

    fast = torch.compile(program, backend="eager", dynamic=True, fullgraph=True)
    for size in (8, 4, 12):
        x = torch.randn(size)
        assert torch.equal(fast(x), x.view(-1, 4) * 2)
    assert fast.metrics["entries"] == 1


def test_a_size_that_the_program_fixes_is_reported_in_torchs_words():
    from stator import _words

    said = "L['x'].size()[0] == 10: now 9 (from now on any number will do for n)"
    assert _words.as_torch(said).startswith(
        "tensor 'x' size mismatch at index 0. expected 10, actual 9 ("
    )
    assert _words.in_words(said) == "size 0 of x: 9, was 10; from now on any number will do"
    assert _words.as_torch("L['n'] == 10: now 9") == "L['n'] == 10: now 9"
