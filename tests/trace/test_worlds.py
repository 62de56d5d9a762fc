"""The harness itself: what it must notice, shown with engines that are wrong in one way each."""

import copy

import pytest
import worlds
from worlds import Plain, check, find_inner, load_cases

METRICS = {"traces": 0, "entries": 0, "hits": 0, "drops": [], "breaks": [], "recompiles": []}


class Engine:
    """A compiled function that is plain, but for what a subclass does."""

    def __init__(self, f):
        self.f = f
        self.metrics = dict(METRICS)

    def __call__(self, *args, **kwargs):
        self.metrics["traces" if not self.metrics["traces"] else "hits"] += 1
        return self.run(*args, **kwargs)

    def run(self, *args, **kwargs):
        return self.f(*args, **kwargs)


def failing(case, engine):
    with pytest.raises(AssertionError) as caught:
        check(case, engine)
    return str(caught.value)


CASES = load_cases("cases_")


@pytest.mark.parametrize("name", CASES)
def test_case_is_the_same_in_two_plain_worlds(name):
    """Otherwise it could not be compared."""
    case = CASES[name]
    one, two = Plain(case), Plain(case)
    case(one)
    case(two)
    assert not worlds.difference(one, two), worlds.difference(one, two)
    assert one.log


def test_most_cases_notice_a_stale_result():
    """A tracer without guards gives the first call's result for ever."""

    class Stale(Engine):
        def run(self, *args, **kwargs):
            if not hasattr(self, "result"):
                self.result = self.f(*args, **kwargs)
            return self.result

    unnoticed = []
    cases = load_cases("cases_guard_")
    for name, case in cases.items():
        try:
            check(case, Stale)
            unnoticed.append(name)
        except AssertionError:
            pass
    assert len(unnoticed) < len(cases) / 10, unnoticed


def test_lost_write_is_seen():
    class Loses(Engine):
        def run(self, *args, **kwargs):
            return self.f(*copy.deepcopy(args), **kwargs)

    def case(call):
        call(lambda xs: xs.append(1), [])

    assert "event 0" in failing(case, Loses)


def test_write_done_twice_is_seen():
    class Twice(Engine):
        def run(self, *args, **kwargs):
            self.f(*args, **kwargs)
            return self.f(*args, **kwargs)

    def case(call):
        class O:
            n = 0

        o = O()

        def f(o):
            o.n += 1

        call(f, o)

    failing(case, Twice)


def test_order_of_a_dict_is_seen():
    class Reorders(Engine):
        def run(self, *args, **kwargs):
            return dict(reversed(self.f().items()))

    def case(call):
        call(lambda: {"a": 1, "b": 2})

    failing(case, Reorders)


def test_copy_instead_of_the_object_is_seen():
    class Copies(Engine):
        def run(self, *args, **kwargs):
            return copy.copy(self.f(*args, **kwargs))

    def case(call):
        call(lambda x: x, [1])

    failing(case, Copies)


def test_object_of_another_call_is_seen():
    """Equal in content, but eager gives a new one each time."""

    class Shares(Engine):
        def run(self, *args, **kwargs):
            self.result = getattr(self, "result", None) or self.f(*args, **kwargs)
            return self.result

    def case(call):
        def f():
            return [1]

        call(f)
        call(f)

    failing(case, Shares)


@pytest.mark.parametrize("other", [TypeError("a"), ValueError("b"), ValueError("a", 1), None])
def test_another_exception_is_seen(other):
    class Raises(Engine):
        def run(self, *args, **kwargs):
            if other is not None:
                raise other

    def case(call):
        def f():
            raise ValueError("a")

        call(f)

    failing(case, Raises)


def test_bits_and_types_are_seen():
    for one, two in [(0.0, -0.0), (1, True), (1, 1.0), ((1,), [1]), ("a", b"a")]:

        class Skews(Engine):
            def run(self, *args, **kwargs):
                return two

        failing(lambda call: call(lambda: one), Skews)


def test_outside_state_is_watched():
    log = []

    class Writes(Engine):
        def run(self, *args, **kwargs):
            log.append(1)

    def case(call):
        log.clear()
        call.watch(log)
        call(lambda: None)

    failing(case, Writes)


def test_changed_closure_and_defaults_are_seen():
    class Changes(Engine):
        def run(self, *args, **kwargs):
            self.f.__defaults__ = (2,)

    def case(call):
        def f(x=1):
            pass

        call(f)

    failing(case, Changes)


def test_entry_that_is_not_used_again_is_a_fault():
    class Recompiles(Engine):
        def __call__(self, *args, **kwargs):
            self.metrics["traces"] += 1
            return self.run(*args, **kwargs)

    def case(call):
        def f(x):
            return x

        call(f, 1)
        call.again(f, 1)

    assert "no entry was used" in failing(case, Recompiles)


def test_number_of_entries_and_drops_are_faults():
    def case(call):
        def f(x):
            return x

        call(f, 1)
        call.one_entry(f)

    class Two(Engine):
        def __init__(self, f):
            super().__init__(f)
            self.metrics["entries"] = 2

    class Drops(Engine):
        def __init__(self, f):
            super().__init__(f)
            self.metrics["drops"] = ["a reason"]

    assert "2 entries, not 1" in failing(case, Two)
    assert "a reason" in failing(case, Drops)


def test_stand_in_in_a_result_is_found():
    lazy = type("lazy", (), {"__module__": "stator._engine"})

    class Leaks(Engine):
        def run(self, *args, **kwargs):
            return [1, {"k": (lazy(),)}]

    assert find_inner([[{"k": lazy()}]]) == ["list -> dict -> lazy"]
    run = worlds.Compiled(lambda call: call(lambda: None), Leaks)
    run.case(run)
    assert run.escapes
