"""Graphs alone: names as torch.fx gives them, what goes at the end, replay in C."""

import gc
import operator
import weakref

import pytest

from stator import _engine


def graph(build, inputs=1):
    g = _engine.Graph()
    args = [g.add_input(f"L['x{i}']") for i in range(inputs)]
    outputs = build(g, *args)
    g.close(outputs if isinstance(outputs, tuple) else (outputs,))
    return g


def names(g):
    return [node.name for node in g.nodes]


def test_placeholders_are_named_after_their_source():
    g = _engine.Graph()
    places = ["L['x']", "L['self']._modules['0'].weight", "L['x']", "G['w']", "L['aB9']"]
    made = [g.add_input(place) for place in places]
    assert [node.target for node in made] == [
        "L_x_",
        "L_self_modules_0_weight",
        "L_x__0",
        "G_w_",
        "L_aB9_",
    ]
    assert [node.name for node in made] == [
        "l_x_",
        "l_self_modules_0_weight",
        "l_x__0",
        "g_w_",
        "l_a_b9_",
    ]


def test_calls_are_named_after_their_target_and_never_hide_a_builtin():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    targets = [operator.add, operator.add, sum, "max", "relu", "__add__", operator.and_, "T_2", "T"]
    made = [g.add_call(target, (x,)).name for target in targets]
    assert made == ["add", "add_1", "sum_1", "max_1", "relu", "add_2", "and_", "t_2", "t"]


def test_names_with_numbers_are_kept_apart():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    assert [g.add_call(name, (x,)).name for name in ("a_1", "a", "a", "a_1", "a")] == [
        "a_1",
        "a",
        "a_2",
        "a_3",
        "a_4",
    ]


def test_a_node_is_renamed_once_per_wish():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    first, second = g.add_call("f", (x,)), g.add_call("f", (x,))
    g.rename(first, "z")
    g.rename(second, "z")
    g.rename(first, "z")
    assert (first.name, second.name) == ("z", "z_1")


def test_names_match_those_of_fx():
    fx = pytest.importorskip("torch.fx")
    targets = [operator.add, operator.mul, sum, abs, operator.getitem, getattr]
    targets += "max float __getitem__ size add_ add add_1 to view_as aBc X x1".split()
    ours, theirs = _engine.Graph(), fx.Graph()
    x, y = ours.add_input("L['x']"), theirs.placeholder("L_x_")
    for target in targets * 2:
        mine = ours.add_call(target, (x,))
        kind = "call_method" if isinstance(target, str) else "call_function"
        assert mine.name == theirs.create_node(kind, target, (y,)).name


def test_inputs_stand_in_front_in_order_of_first_use():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    one = g.add_call(operator.neg, (x,))
    y = g.add_input("L['y']")
    two = g.add_call(operator.add, (one, y))
    assert g.nodes == [x, y, one, two]
    assert [node.index for node in g.nodes] == [0, 1, 2, 3]
    assert g.sources == ["L['x']", "L['y']"]
    assert g.inputs == 2 and g.operations == 2


def test_unused_inputs_and_subscripts_go_and_dead_operations_stay():
    g = _engine.Graph()
    x, y, z = (g.add_input(f"L['{name}']") for name in "xyz")
    pair = g.add_call(divmod, (x, 3))
    g.add_call(operator.getitem, (g.add_call(operator.getitem, (y, 0)), 0))
    g.add_call(operator.neg, (x,))
    kept = g.add_call(operator.getitem, (pair, 1))
    assert g.close((kept,)) == [True, False, False]
    assert names(g) == ["l_x_", "divmod_1", "neg", "getitem_2", "output"]
    assert g.sources == ["L['x']"]
    assert g.replay(17) == (2,)


def test_a_closed_graph_takes_no_more():
    g = graph(lambda g, x: x)
    for more in (lambda: g.add_input("L['y']"), lambda: g.add_call(abs, ()), lambda: g.close(())):
        with pytest.raises(ValueError, match="closed"):
            more()
    with pytest.raises(ValueError, match="as many"):
        g.replay()


def test_the_text_reads_as_python():
    def build(g, x):
        stack = (("model.py", 3, "forward"),)
        y = g.add_call(sum, ([x, (x, 1), {"k": x}],), {"start": slice(x, None)}, stack=stack)
        return y, g.add_call("join", (y, x), {"sep": "a"})

    assert str(graph(build)) == (
        "l_x0_ = input  # L['x0']\n"
        "sum_1 = sum([l_x0_, (l_x0_, 1), {'k': l_x0_}], start=slice(l_x0_, None, None))"
        "  # model.py:3 in forward\n"
        "join = sum_1.join(l_x0_, sep='a')\n"
        "return (sum_1, join)"
    )


# -- replay --


def test_replay_builds_containers_that_hold_values():
    def show(*args, **kwargs):
        return args, kwargs

    def build(g, x, y):
        return g.add_call(
            show,
            (x, [y, (x, 1)], {"k": [y]}, slice(None, x, 2), (1, 2)),
            {"a": (y,), "b": None},
        )

    g = graph(build, 2)
    assert g.replay("x", "y") == (
        (
            ("x", ["y", ("x", 1)], {"k": ["y"]}, slice(None, "x", 2), (1, 2)),
            {"a": ("y",), "b": None},
        ),
    )


def test_replay_gives_a_fresh_list_each_time():
    def keep(items):
        items.append(len(items))
        return items

    g = graph(lambda g, x: g.add_call(keep, ([5],)))
    (first,), (second,) = g.replay(), g.replay()
    assert first == second == [5, 1]
    assert first is not second


@pytest.mark.parametrize(
    "name",
    "add sub mul truediv floordiv mod and_ or_ xor lshift rshift iadd isub imul".split(),
)
def test_replay_of_operators(name):
    function = getattr(operator, name)
    g = graph(lambda g, x, y: g.add_call(function, (x, y)), 2)
    assert g.replay(13, 3) == (function(13, 3),)


def test_replay_of_methods_with_keywords():
    g = graph(lambda g, x: g.add_call("split", (x,), {"maxsplit": 1, "sep": "b"}))
    assert g.replay("abcbd") == (["a", "cbd"],)


class Value:
    def __init__(self, alive):
        alive.add(self)


def test_values_die_at_their_last_use():
    alive = weakref.WeakSet()
    seen = []

    def make(*unused):
        seen.append(len(alive))
        return Value(alive)

    def build(g, x):
        a = g.add_call(make, (x,))
        b = g.add_call(make, (a,))  # a dies here
        g.add_call(make, (b,))  # nobody uses it
        c = g.add_call(make, ([b],))  # b dies here
        return g.add_call(make, ({"k": (c,)},))

    g = graph(build)
    (last,) = g.replay(0)
    assert seen == [0, 1, 1, 1, 1]
    assert list(alive) == [last]


def test_an_error_drops_everything():
    alive = weakref.WeakSet()

    def build(g, x):
        a = g.add_call(Value, (x,))
        b = g.add_call(Value, (x,))
        return g.add_call(operator.truediv, (a, b))

    with pytest.raises(TypeError):
        graph(build).replay(alive)
    gc.collect()
    assert not alive


def test_a_long_graph():
    def build(g, x):
        for _ in range(5000):
            x = g.add_call(operator.add, (x, 1))
        return x

    g = graph(build)
    assert g.replay(0) == (5000,)
    del g


# -- bodies --


def test_a_body_takes_each_node_from_around_it_once():
    g = _engine.Graph()
    x, y = g.add_input("L['x']"), g.add_input("L['y']")
    z = g.add_call(operator.add, (x, y))
    body = g.open_body()
    lifted = body.lift(z)
    assert lifted is not z and (lifted.op, lifted.name) == ("placeholder", z.name)
    assert body.lift(z) is lifted, "once"
    assert body.lift(lifted) is lifted, "its own"
    assert body.lift(x).name == "l_x_"
    assert list(body.lifted) == [z, x] and body.sources == ["add", "l_x_"]
    assert g.nodes == [x, y, z], "nothing is recorded outside"


def test_a_node_is_lifted_through_every_body_in_between():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    outer = g.open_body()
    inner = outer.open_body()
    deep = inner.lift(x)
    (of,) = inner.lifted
    assert outer.lifted == {x: of} and inner.lifted == {of: deep}
    assert outer.lift(x) is of


def test_a_node_of_a_body_that_has_ended_is_refused():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    body, other = g.open_body(), g.open_body()
    inside = body.add_call(operator.neg, (body.lift(x),))
    for elsewhere in (g, other, g.open_body()):
        with pytest.raises(ValueError, match="body that has ended"):
            elsewhere.lift(inside)
    body.close((inside,))
    with pytest.raises(ValueError, match="closed"):
        body.lift(x)


def twice(body, *args):
    return body(*body(*args))


def graph_with_body():
    g = _engine.Graph()
    x, y = g.add_input("L['x']"), g.add_input("L['y']")
    body = g.open_body()
    product = body.add_call(operator.mul, (body.lift(x), body.lift(y)))
    body.close((product, body.lift(y)))
    read = g.add_attribute("wrap_body", body)
    call = g.add_call(twice, (read, x, y))
    g.close((g.add_call(operator.getitem, (call, 0)),))
    return g


def test_a_body_is_printed_further_in_and_runs_when_it_is_called():
    g = graph_with_body()
    assert str(g).splitlines() == [
        "l_x_ = input  # L['x']",
        "l_y_ = input  # L['y']",
        "wrap_body_0 = body:",
        "    l_x_ = input  # l_x_",
        "    l_y_ = input  # l_y_",
        "    mul = operator.mul(l_x_, l_y_)",
        "    return (mul, l_y_)",
        f"twice = {__name__}.twice(wrap_body_0, l_x_, l_y_)",
        "getitem = operator.getitem(twice, 0)",
        "return (getitem,)",
    ]
    assert g.operations == 2
    assert g.replay(2, 3) == (18,)
    assert g.replay(5, 1) == (5,)


def test_attributes_of_one_stem_are_numbered_through_all_bodies():
    g = _engine.Graph()
    x = g.add_input("L['x']")
    outer = g.open_body()
    inner = outer.open_body()
    inner.close((inner.lift(x),))
    first = outer.add_attribute("wrap_body", inner)
    outer.close((outer.lift(x),))
    second = g.add_attribute("wrap_body", outer)
    other = g.add_attribute("hook_body", outer)
    assert [n.name for n in (first, second, other)] == ["wrap_body_0", "wrap_body_1", "hook_body_0"]
    assert [n.op for n in (first, second)] == ["get_attr"] * 2


def test_closing_a_body_takes_out_what_was_lifted_for_nothing_and_nothing_else():
    g = _engine.Graph()
    x, y = g.add_input("L['x']"), g.add_input("L['y']", example=(1, 2))
    body = g.open_body()
    carry = body.add_input("carry")
    body.add_call(operator.getitem, (body.lift(y), 0))
    assert body.close((body.lift(x),)) == [True, False, True]
    assert names(body)[:2] == [carry.name, "l_x_"]
    assert list(body.lifted) == [x] and body.sources == ["carry", "l_x_"]
    assert body(1, 2) == (2,)
    for wrong in ((1,), (1, 2, 3)):
        with pytest.raises(TypeError):
            body(*wrong)


def test_a_body_that_is_not_closed_is_no_attribute_and_cannot_be_called():
    g = _engine.Graph()
    body = g.open_body()
    with pytest.raises(ValueError, match="not closed"):
        g.add_attribute("wrap_body", body)
    with pytest.raises(TypeError):
        body()


def test_a_graph_with_a_body_is_freed():
    class Value:
        pass

    value = Value()
    gone = weakref.ref(value)
    g = _engine.Graph()
    body = g.open_body()
    inner = body.open_body()
    inner.close((inner.lift(g.add_input("L['x']", example=value)),))
    body.add_attribute("wrap_body", inner)
    body.close(())
    g.add_attribute("wrap_body", body)
    del g, body, inner, value
    assert gone() is None
