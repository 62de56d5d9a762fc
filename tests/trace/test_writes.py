"""When writes happen, and when they do not: the graph comes first, then everything that is given
out is made, then all writes at once."""

import collections
import gc
import sys
import weakref

import pytest

import stator


def compiled(f, **how):
    return stator.compile(f, backend=how.pop("backend", "eager"), _keep_empty=True, **how)


def only_entry(f, *args):
    explanation = stator.explain(f)(*args)
    assert not explanation.reasons
    (entry,) = explanation.entries
    return entry


class Holder:
    pass


# -- what is written ----------------------------------------------------------------------------


def test_only_what_changed_is_written():
    def f(xs, d, o):
        xs[1] = 5
        xs.append(6)
        d["b"] = 2
        o.x = o.x
        o.y = 1

    o = Holder()
    o.x = [1]
    entry = only_entry(f, [0, 1, 2], {"a": 1, "b": 0}, o)
    assert sorted(entry.writes) == [
        "L['d']['b'] = 2",
        "L['o'].y = 1",
        "L['xs'].extend((6))",
        "L['xs'][1:2] = (5)",
    ]


class Prefixed:
    def __setattr__(self, name, value):
        super().__setattr__(f"own_{name}", value)

    def __getattr__(self, name):
        return self.__dict__[f"own_{name}"]


@pytest.mark.parametrize("kind", [Holder, Prefixed])
def test_names_of_attributes_may_be_computed(kind):
    def f(o):
        o.y = o.x + 1
        for i in range(3):
            object.__setattr__(o, f"part{i}", i)
        object.__delattr__(o, f"part{1}")
        setattr(o, f"more{o.y}", len(vars(o)))

    fast = compiled(f, fullgraph=True)
    for start in (1, 1, 2):
        mine, want = kind(), kind()
        mine.x = want.x = start
        for _ in range(2):
            fast(mine)
            f(want)
            assert list(vars(mine).items()) == list(vars(want).items())


def test_nothing_is_written_where_everything_was_put_back():
    def f(xs, d, s):
        xs.append(1)
        xs.pop()
        d["a"], d["b"] = d["b"], d["a"]
        d["a"], d["b"] = d["b"], d["a"]
        return len(xs), len(s)

    assert only_entry(f, [1], {"a": [], "b": []}, {1}).writes == []


def test_list_written_in_the_middle_keeps_both_ends():
    def f(xs):
        xs[2:4] = ["new"]

    assert only_entry(f, [0, 1, 2, 3, 4, 5]).writes == ["L['xs'][2:4] = ('new')"]


def test_append_goes_to_the_end_as_it_is_then():
    """Someone else may append while the graph runs."""
    torch = pytest.importorskip("torch")
    log = []

    def backend(graph, examples):
        def run(x):
            log.append("between")
            return (x,)

        return run

    def f(x):
        log.append("inside")
        return x + 1

    f_compiled = compiled(f, backend=backend)
    f_compiled(torch.ones(1))
    f_compiled(torch.ones(1))
    assert log == ["between", "inside", "between", "inside"]


def test_moved_dict_key_is_deleted_and_set_again():
    def f(d):
        d["a"] = d.pop("a")

    assert only_entry(f, {"a": 1, "b": 2}).writes == [
        "del L['d']['a']",
        "L['d']['a'] = L['d']['a']",
    ]


# -- order of things ----------------------------------------------------------------------------


def test_user_code_never_sees_half_of_the_writes():
    """Letting go of what is displaced may run code: that comes after the last write."""
    seen = []

    def f(a, b):
        a.x = None
        b.x = None

    def run(function):
        a, b = Holder(), Holder()
        a.x, b.x = Holder(), Holder()
        seen.clear()
        look = lambda ref: seen.append((a.x is None, b.x is None))  # noqa: E731
        refs = [weakref.ref(a.x, look), weakref.ref(b.x, look)]
        function(a, b)
        del refs
        return list(seen)

    f_compiled = compiled(f)
    for _ in range(3):
        assert run(f_compiled) == run(f) == [(True, False), (True, True)]


def test_graph_that_raises_leaves_everything_unwritten():
    torch = pytest.importorskip("torch")
    runs = []

    def backend(graph, examples):
        def run(*inputs):
            runs.append(1)
            raise ValueError("the graph")

        return run

    def f(o, xs, d, x):
        o.n += 1
        xs.append(1)
        d.clear()
        return x + 1

    o, xs, d = Holder(), [], {"a": 1}
    o.n = 0
    f_compiled = compiled(f, backend=backend)
    for count in (1, 2, 3):
        assert f_compiled(o, xs, {"a": 1}, torch.ones(1)) == 2
        assert (o.n, len(xs)) == (count, count)  # by CPython, once
    assert runs


def test_graph_that_raises_and_may_have_written_to_an_input_is_done_again():
    """By CPython, on the inputs as they were: what the graph did to them is undone."""
    torch = pytest.importorskip("torch")

    def backend(graph, examples):
        def run(*inputs):
            inputs[0].add_(5)
            raise ValueError("the graph")

        return run

    def f(o, x):
        o.n = 1
        x.add_(1)
        return x + 1

    o = Holder()
    f_compiled = compiled(f, backend=backend)
    for _ in range(2):
        x = torch.ones(1)
        assert f_compiled(o, x).item() == 3 and x.item() == 2 and o.n == 1


def test_graph_with_the_wrong_number_of_outputs_is_an_error():
    torch = pytest.importorskip("torch")

    def f(o, x):
        o.n = 1
        return x + 1

    for wrong in ((), (1, 2), None, 5):
        o = Holder()
        with pytest.raises(TypeError, match="tuple or list of 1"):
            compiled(f, backend=lambda graph, examples, w=wrong: lambda x: w)(o, torch.ones(1))
        assert not hasattr(o, "n")


def test_backend_that_raises_leaves_everything_unwritten():
    torch = pytest.importorskip("torch")

    def backend(graph, examples):
        raise RuntimeError("no")

    def f(o, x):
        o.n = 1
        return x + 1

    o = Holder()
    with pytest.raises(RuntimeError):
        compiled(f, backend=backend)(o, torch.ones(1))
    assert not hasattr(o, "n")


def test_dropped_trace_leaves_everything_unwritten():
    def f(o, xs):
        o.n = 1
        xs.append(1)
        raise KeyError(1)

    o, xs = Holder(), []
    with pytest.raises(KeyError):
        compiled(f)(o, xs)
    assert (o.n, xs) == (1, [1])


# -- lifetime -------------------------------------------------------------------------------------


def test_entry_may_be_thrown_away_by_its_own_graph():
    torch = pytest.importorskip("torch")

    def backend(graph, examples):
        def run(x):
            stator.reset()
            gc.collect()
            return (x + 1,)

        return run

    def f(o, x):
        o.seen = [x]
        return {"y": x + 1, "o": o}

    f_compiled = compiled(f, backend=backend)
    for _ in range(3):
        o, x = Holder(), torch.ones(2)
        result = f_compiled(o, x)
        assert result["o"] is o and o.seen[0] is x and result["y"].tolist() == [2, 2]


def test_recursive_use_of_one_entry():
    torch = pytest.importorskip("torch")
    depth = []

    def backend(graph, examples):
        def run(x):
            depth.append(1)
            if len(depth) < 5:
                f_compiled(Holder(), x)
            return (x + 1,)

        return run

    def f(o, x):
        o.y = [x + 1]
        return o

    f_compiled = compiled(f, backend=backend)
    assert f_compiled(Holder(), torch.ones(1)).y[0].item() == 2
    assert len(depth) == 5


def test_inputs_die_with_their_last_use():
    torch = pytest.importorskip("torch")
    alive = []

    def f(o):
        y = o.x + 1
        o.x = None
        return y

    f_compiled = compiled(f)
    for _ in range(3):
        o = Holder()
        o.x = torch.ones(2)
        ref = weakref.ref(o.x)
        assert f_compiled(o).tolist() == [2, 2]
        alive.append(ref() is not None)
    assert alive[1:] == [False, False]


def test_plans_hold_nothing_of_a_call():
    def f(a, o):
        o.x = [a]
        return {"a": a, "l": [a, o]}

    class Thing:
        pass

    f_compiled = compiled(f)
    for _ in range(3):
        a, o = Thing(), Holder()
        refs = [weakref.ref(a), weakref.ref(o)]
        result = f_compiled(a, o)
        assert result["a"] is a
        del a, o, result
        gc.collect()
        assert [ref() for ref in refs] == [None, None]


def test_calls_do_not_leak():
    class Thing:
        def __init__(self, a):
            self.a = a

    def f(xs, d, s, a):
        xs.append(a)
        xs[0] = [a]
        d["k"] = {"a": (a, xs)}
        s.add("new")
        q = collections.deque([a, 1], maxlen=2)

        def g(b=a):
            return xs, b

        return Thing(a), q, g, {1, 2, a}, frozenset([a]), bytearray(b"x"), slice(a), g.__name__

    f_compiled = compiled(f, fullgraph=True)

    def calls(count):
        for _ in range(count):
            f_compiled([0, 1], {}, {1}, 7)
        gc.collect()

    calls(50)
    before = sys.getallocatedblocks()
    calls(500)
    assert sys.getallocatedblocks() - before < 60


# -- what plans look like -----------------------------------------------------------------------


def test_plan_prints_one_step_a_line():
    torch = pytest.importorskip("torch")

    def f(self, x):
        self.count += 1
        self.seen.append(x)
        return {"loss": x + self.bias}

    o = Holder()
    o.count, o.seen, o.bias = 7, [], torch.ones(1)
    assert only_entry(f, o, torch.ones(1)).plan.splitlines() == [
        "r2 = L['self']",
        "r3 = L['self'].count + 1",
        "r4 = L['self'].seen",
        "r5 = L['x']",
        "r7 = L['self'].bias",
        "r0, = graph(r5, r7)",
        "r1 = {'loss': r0}",
        "r6 = (r5)",
        "r2.count = r3",
        "r4.extend(r6)",
        "return r1",
    ]
