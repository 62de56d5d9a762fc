"""Moments: a trace that tries something and goes back is as if it had never tried. In a trace,
`attempt(f, answer)` calls f, undoes what it did, and says whether it had changed anything; in plain
Python it calls nothing and gives the answer."""

import collections
import contextvars
import copy

import pytest

import stator
from stator import _engine

pytestmark = pytest.mark.skipif(not hasattr(stator, "compile"), reason="no compiler")

attempt = _engine.attempt
VARIABLE = contextvars.ContextVar("VARIABLE", default=1)
TABLE = {"flag": False, "list": [1, 2, 3], "dict": {"a": 1, "b": 2}}
SEEN = [1]


class Thing:
    kind = "thing"

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Slotted:
    __slots__ = ("a", "b")


def thing():
    it = Thing(a=1, b=[1, 2], d={"k": 1})
    it.slots = Slotted()
    it.slots.a = 5
    return it


# Each gives a function that changes things, and what the program looks at afterwards.
def set_attribute(o):
    def f():
        o.a = 2
        o.new = 3
        del o.d

    return f, lambda: (o.a, hasattr(o, "new"), list(vars(o)))


def set_attribute_again(o):
    o.a = 7
    o.early = 1

    def f():
        o.a = 8
        del o.early

    return f, lambda: (o.a, o.early)


def set_slot(o):
    def f():
        o.slots.a = 6
        o.slots.b = 7

    return f, lambda: (o.slots.a, hasattr(o.slots, "b"))


def set_class(o):
    def f():
        Thing.kind = "other"

    return f, lambda: (o.kind, Thing.kind)


def set_global(o):
    def f():
        global SEEN
        SEEN = [9]

    return f, lambda: SEEN


def set_cell(o):
    inside, number = [], 1

    def f():
        nonlocal inside, number
        inside, number = 5, 6

    return f, lambda: (inside, number)


def set_variable(o):
    def f():
        VARIABLE.set(5)
        return None

    return f, lambda: VARIABLE.get()


def change_outside_list(o):
    def f():
        o.b.append(3)
        o.b[0] = 9
        SEEN.clear()

    return f, lambda: (o.b, SEEN)


def change_open_list(o):
    o.b.append(5)
    first = o.b[0]

    def f():
        o.b.reverse()
        o.b.pop()

    return f, lambda: (o.b, first)


def change_outside_dict(o):
    def f():
        o.d["k"] = 2
        o.d["new"] = 3
        TABLE["dict"].pop("a")
        TABLE["dict"]["a"] = 1  # at the end

    return f, lambda: (o.d, list(TABLE["dict"].items()))


def fill_dict_late(o):
    o.d["early"] = 1

    def f():
        for key in list(o.d):
            o.d[key] = 0
        vars(o)["late"] = 1

    return f, lambda: (list(o.d.items()), list(vars(o)))


def change_inside(o):
    made = Thing(list=[1], dict={1: 2})
    made.list.append(made)

    def f():
        made.list.insert(0, 5)
        made.dict.clear()
        made.extra = 1
        del made.list

    return f, lambda: (len(made.list), made.list[0], made.list[1] is made, list(vars(made)))


def change_what_was_stored_outside(o):
    o.a = [[1]]

    def f():
        o.a[0].append(2)

    return f, lambda: o.a


def change_and_raise(o):
    def f():
        o.b.append(1)
        raise ValueError("never seen")

    return f, lambda: o.b


def change_through_native_code(o):
    made = []

    def f():
        made.extend(map(str, o.b))
        made.sort(key=lambda s: made is None)

    return f, lambda: made


def change_defaultdict(o):
    made = collections.defaultdict(list)
    made["x"].append(1)

    def f():
        made["y"].append(2)
        made["x"].append(3)

    return f, lambda: dict(made)


CHANGES = [
    set_attribute,
    set_attribute_again,
    set_slot,
    set_class,
    set_global,
    set_cell,
    set_variable,
    change_outside_list,
    change_open_list,
    change_outside_dict,
    fill_dict_late,
    change_inside,
    change_what_was_stored_outside,
    change_and_raise,
    change_through_native_code,
    change_defaultdict,
]


# These do nothing that lasts.
def only_reads(o):
    return lambda: (o.a, o.b[0], TABLE["flag"], [i for i in range(3)]), lambda: o.a


def sets_back(o):
    def f():
        old = TABLE["flag"]
        TABLE["flag"] = True
        TABLE["flag"] = old
        o.b.append(1)
        o.b.pop()

    return f, lambda: (TABLE["flag"], o.b)


def sets_attribute_back(o):
    o.a = True

    def f():
        o.a, before = False, o.a
        o.a = before

    return f, lambda: o.a


def makes_things(o):
    def f():
        made = Thing(a=1)
        made.b = {1, 2}
        made.b.add(3)
        return made

    return f, lambda: None


UNCHANGED = [only_reads, sets_back, sets_attribute_back, makes_things]


def program(case, expected):
    def run(o):
        f, look = case(o)
        answers = [attempt(f, expected)]
        before = look()
        answers.append(attempt(f, expected))
        return answers, before, look(), o

    return run


def shown(o):
    if isinstance(o, (list, tuple)):
        return [shown(item) for item in o]
    if isinstance(o, Slotted):
        return [getattr(o, name, "unset") for name in Slotted.__slots__]
    return [(k, shown(v)) for k, v in vars(o).items()] if isinstance(o, Thing) else o


@pytest.fixture(autouse=True)
def same_again():
    before = copy.deepcopy((TABLE, SEEN))
    yield
    assert (TABLE, SEEN, Thing.kind) == (*before, "thing"), "nothing of it gets out"
    assert VARIABLE.get() == 1


@pytest.mark.parametrize("case", CHANGES + UNCHANGED, ids=lambda case: case.__name__)
def test_an_attempt_leaves_nothing_behind(case):
    expected = case in CHANGES
    fast = stator.compile(
        program(case, expected), backend="eager", fullgraph=True, _keep_empty=True
    )
    for _ in range(2):
        assert shown(fast(thing())) == shown(program(case, expected)(thing()))
    assert fast.metrics["traces"] == 1 and fast.metrics["entries"] == 1


# Where there is no way back, the trace breaks before the attempt, which then is none.
def change_set(o):
    made = {1, 2}
    return lambda: made.add(3), lambda: made


def change_deque(o):
    made = collections.deque([1])
    return lambda: made.append(3), lambda: list(made)


def change_bytearray(o):
    made = bytearray(b"a")
    return lambda: made.append(98), lambda: bytes(made)


def change_ordered_dict(o):
    made = collections.OrderedDict(a=1)
    return lambda: made.update(b=2), lambda: list(made)


def change_function(o):
    def f():
        f.seen = True

    return f, lambda: hasattr(f, "seen")


def change_slot_inside(o):
    made = Slotted()
    made.a = 1

    def f():
        made.a = 2

    return f, lambda: made.a


def advance(o):
    made = iter([1, 2, 3])
    return lambda: next(made), lambda: list(made)


def advance_generator(o):
    made = (i for i in (1, 2, 3))
    return lambda: next(made), lambda: list(made)


REFUSED = [
    change_set,
    change_deque,
    change_bytearray,
    change_ordered_dict,
    change_function,
    change_slot_inside,
    advance,
    advance_generator,
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_what_cannot_be_undone_is_not_attempted(case):
    fast = stator.compile(program(case, True), backend="eager", _keep_empty=True)
    assert shown(fast(thing())) == shown(program(case, True)(thing()))
    assert any("cannot be undone" in text for text in fast.metrics["breaks"])


def test_a_break_in_an_attempt_is_one_before_it():
    def run(o):
        o.a = 2

        def f():
            o.a = 3
            stator.graph_break()

        attempt(f, None)
        return o.a

    fast = stator.compile(run, backend="eager", _keep_empty=True)
    assert fast(thing()) == 2


def test_attempts_within_attempts():
    def run(o):
        def inner():
            o.a += 10

        def outer():
            o.a += 1
            attempt(inner, None)
            o.b.append(o.a)

        attempt(outer, None)
        return o.a, o.b

    assert stator.compile(run, backend="eager", fullgraph=True, _keep_empty=True)(thing()) == (
        1,
        [1, 2],
    )


def test_held_back_calls_are_dropped():
    torch = pytest.importorskip("torch")

    def run(x):
        def f():
            x.register_hook(print)

        changed = attempt(f, True)
        return (x * 2).sum(), changed

    x = torch.ones(3, requires_grad=True)
    result, changed = stator.compile(run, backend="eager", fullgraph=True)(x)
    assert changed is True and not x._backward_hooks
    assert result.item() == 6


def test_nodes_of_an_attempt_are_no_part_of_the_graph():
    torch = pytest.importorskip("torch")
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module

    def run(x, y):
        kept = []

        def f():
            z = x.sin() + y
            kept.append(z)
            return z.cos()

        attempt(f, None)
        return x * 2, kept

    x, y = torch.ones(3), torch.ones(3)
    result, kept = stator.compile(run, backend=backend, fullgraph=True)(x, y)
    assert kept == [] and torch.equal(result, x * 2)
    (graph,) = graphs
    assert [node.name for node in graph.graph.nodes] == ["l_x_", "mul", "output"]
