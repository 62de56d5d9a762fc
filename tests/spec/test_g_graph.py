# ruff: noqa: E402
"""Lines G1 to G17: what is in a graph, and what its nodes say."""

import gc
import operator
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
import torch.utils.checkpoint
from torch._dynamo import config, exc

from tests.older import since
from tests.spec.helpers import Recorder, assert_same, both, breaks, check, decided, value


def nodes(backend, op=None):
    return [node for node in backend.graph.graph.nodes if op is None or node.op == op]


def whole(function, *args, **options):
    """The backend after one call of `function` in one graph."""
    backend = Recorder()
    torch.compile(function, backend=backend, fullgraph=True, **options)(*args)
    return backend


# -- G1 to G3 --


@both
def test_G1_inputs_are_in_order_of_first_use():
    backend = check(lambda a, b, c: (c + a, b * 2), value(), value(), value())
    assert backend.inputs == [["l_c_", "l_a_", "l_b_"]]


@both
def test_G1_names_are_unique():
    def program(d):
        return d["a b"] + d["a_b"] + d["a.b"]

    (names,) = check(program, {"a b": value(), "a_b": value(), "a.b": value()}).inputs
    assert len(set(names)) == 3
    assert all(name.startswith("l_d_a_b") for name in names)


@both
def test_G1_one_tensor_is_one_input():
    x = value()
    backend = whole(lambda a, b, c: a + b[0] + c.t, x, [x], type("T", (), {"t": x})())
    assert len(backend.inputs[0]) == 1


@both
def test_G2_symbols_are_inputs_before_their_tensors():
    x = value(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    backend = whole(lambda x: x + x.shape[0], x)
    first, second = backend.examples[0]
    assert isinstance(first, torch.SymInt)
    assert isinstance(second, torch.Tensor)


@both
def test_G2_with_fixed_sizes_there_are_only_tensors():
    backend = whole(lambda x: x + x.shape[0], value(3, 4), dynamic=False)
    assert [type(example) for example in backend.examples[0]] == [torch.Tensor]


@both
def test_G3_outputs_are_what_is_needed_once():
    def program(x):
        y = x + 1
        dead = y * 2
        return y, [y, {"k": y}], x, x.shape[0]

    backend = check(program, value())
    (output,) = nodes(backend, "output")
    assert [node.name for node in output.args[0]] == ["y"]


# -- G4, G5 --


@both
def test_G4_what_nothing_uses_goes():
    def program(x, unused, sized, d):
        n = sized.shape[0] + sized.size(1)
        first = d["k"]
        return x + n

    backend = check(program, value(), value(), value(3, 2), {"k": value()})
    assert backend.inputs == [["l_x_"]]
    assert backend.operations == [operator.add]


@both
def test_G5_switches_of_grad_mode_that_cancel_go():
    def program(x):
        with torch.no_grad():
            pass
        with torch.no_grad(), torch.enable_grad():
            pass
        y = x + 1
        with torch.no_grad():
            z = y * 2
        return y, z

    backend = check(program, value().requires_grad_())
    modes = [
        n.args[0] for n in nodes(backend, "call_function") if n.target is torch._C._set_grad_enabled
    ]
    assert modes == [False, True]


# -- G6, G7 --


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3)])
        self.register_buffer("scale", torch.ones(3))
        self.tied = self.layers[0]

    def forward(self, x):
        return self.layers[0](x) * self.scale + self.tied.bias


@both
def test_G6_names_of_attributes():
    (names,) = whole(Net(), value()).inputs
    assert set(names) == {
        "l_self_modules_layers_modules_0_parameters_weight_",
        "l_self_modules_layers_modules_0_parameters_bias_",
        "l_self_buffers_scale_",
        "l_x_",
    }


table = {"0k": value(), "ä-b": value()}


@both
def test_G6_names_are_good_python_names():
    (names,) = whole(lambda x: x + table["0k"] + table["ä-b"], value()).inputs
    assert len(names) == 3
    assert all(name.isidentifier() for name in names)
    assert sum("table" in name for name in names) == 2


@both
def test_G7_module_tensors_are_guarded_by_metadata():
    backend = Recorder()
    net = torch.nn.Linear(2, 2)
    fast = torch.compile(net, backend=backend, dynamic=False)
    x = value(1, 2)
    for weight in (torch.ones(2, 2), torch.zeros(2, 2), torch.ones(2, 2) * 3):
        net.weight.data = weight
        assert_same(fast(x), net(x))
    assert len(backend.graphs) == 1
    net.weight, net.bias = torch.nn.Parameter(torch.ones(4, 2)), None
    assert_same(fast(x), net(x))
    assert len(backend.graphs) == 2


def _moved(guard):
    """How many graphs it takes when a tensor that was said to stay is replaced."""
    backend = Recorder()
    kept = [value()]
    torch._dynamo.mark_static_address(kept[0], guard=guard)
    fast = torch.compile(lambda x: x + kept[0], backend=backend)
    fast(value())
    kept[0] = value() * 2
    torch._dynamo.mark_static_address(kept[0], guard=guard)
    assert_same(fast(value()), value() + value() * 2)
    return len(backend.graphs)


@both
def test_G7_tensors_with_a_fixed_address():
    assert _moved(guard=False) == 1


@both
def test_G7_a_fixed_address_is_guarded_if_so_marked():
    assert _moved(guard=True) == 2


# -- G8 --


class Inner(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x) * 2


@both
def test_G8_nodes_say_where_they_come_from():
    backend = whole(Outer(), value())
    relu = next(node for node in nodes(backend) if node.target is torch.relu)
    assert relu.meta["example_value"].shape == (3,)
    path, kind = list(relu.meta["nn_module_stack"].values())[-1]
    assert path.endswith("inner") and kind in (Inner, f"{Inner.__module__}.Inner")
    assert relu.meta["source_fn_stack"][-1][1] is torch.relu
    assert "torch.relu(x) + 1" in relu.meta["stack_trace"]


@both
def test_G8_the_stack_has_no_frames_of_torch():
    backend = whole(Outer(), value())
    relu = next(node for node in nodes(backend) if node.target is torch.relu)
    assert "_call_impl" not in relu.meta["stack_trace"]


def _retraced(mark):
    def plain(x):
        return torch.relu(x) + 1

    module = torch.fx.symbolic_trace(plain)
    for node in module.graph.nodes:
        node.meta["stack_trace"] = f"File {mark}"
    module.recompile()
    return whole(module, value())


@both
def test_G8_a_graph_module_keeps_what_its_nodes_say():
    backend = _retraced("first made here")
    (relu, _) = nodes(backend, "call_function")
    assert "first made here" in relu.meta["stack_trace"]


@both
def test_G8_flat_names_are_mapped():
    backend = whole(Net(), value())
    assert "scale" in str(backend.graph.meta["dynamo_flat_name_to_original_fqn"].values())


# -- G9 --


def _cond(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


def _while(x):
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(lambda i, v: i.sum() < 3, lambda i, v: (i + 1, v * 2), (torch.zeros(1), x))


def _map(x):
    from torch._higher_order_ops.map import map as body_map

    return body_map(lambda v: v + 1, x)


def _vmap(x):
    return torch.func.vmap(lambda v: v.sum() + 1)(x.reshape(3, 1))


def _grad(x):
    return torch.func.grad(lambda v: (v * v).sum())(x)


def _jvp(x):
    return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))


@torch.compiler.nested_compile_region
def _region(x):
    return x.sin() + 1


def _regions(x):
    return _region(x) + _region(x)


HIGHER = [_cond, _while, _map, _vmap, _grad, _jvp, _regions]


TRANSFORMS = [_vmap, _grad, _jvp]
FLOW = [_cond, _while, _map]


@both
@pytest.mark.parametrize("program", FLOW, ids=lambda f: f.__name__)
def test_G9_control_flow_is_one_graph(program):
    backend = check(program, value(), calls=1)
    assert len(backend.graphs) == 1


@both
def test_G9_regions_are_one_graph():
    backend = check(_regions, value(), calls=1)
    assert len(backend.graphs) == 1


@both
@pytest.mark.parametrize("program", TRANSFORMS, ids=lambda f: f.__name__)
def test_G9_function_transforms_are_one_graph(program):
    backend = check(program, value(), calls=1)
    assert len(backend.graphs) == 1


def _around(program):
    """With operations before and after, which are compiled in any case."""
    return lambda x: (program(x * 2), x + 1)


def _value_and_gradient(function):
    x = value().requires_grad_()
    result = function(x)
    sum(leaf.sum() for leaf in torch.utils._pytree.tree_leaves(result)).backward()
    return torch.utils._pytree.tree_map(torch.Tensor.detach, result), x.grad


@both
@pytest.mark.parametrize("program", HIGHER, ids=lambda f: f.__name__)
def test_G9_their_results_are_right(program):
    fast = torch.compile(_around(program), backend="eager")
    for x in (value(), -value(), value()):
        torch.testing.assert_close(fast(x), _around(program)(x))


@pytest.mark.parametrize("program", HIGHER, ids=lambda f: f.__name__)
def test_G9_their_gradients_are_right(program):
    fast = torch.compile(_around(program), backend="eager")
    torch.testing.assert_close(_value_and_gradient(fast), _value_and_gradient(_around(program)))


@both
@pytest.mark.parametrize("program", FLOW, ids=lambda f: f.__name__)
def test_G9_plain_code_may_use_them(program):
    program(value())


# -- G10 --


@pytest.fixture(scope="module")
def library():
    made = torch.library.Library("stator_spec", "FRAGMENT")
    made.define("tagged(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    made.define("untagged(Tensor x) -> Tensor")
    made.define("fresh(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    for name in ("tagged", "untagged", "fresh"):
        made.impl(name, lambda x: x + 1, "CompositeExplicitAutograd")
        torch.library.register_fake(f"stator_spec::{name}", torch.empty_like, lib=made)
    yield made
    made._destroy()


@both
def test_G10_operators_are_nodes(library):
    packet, overload = torch.ops.stator_spec.tagged, torch.ops.stator_spec.untagged.default
    backend = check(lambda x: packet(x) + overload(x), value())
    assert [str(target) for target in backend.operations[:2]] == [
        "stator_spec.tagged" if backend.operations[0] is packet else "stator_spec.tagged.default",
        "stator_spec.untagged.default",
    ]


@both
def test_G10_an_operator_can_be_first_named_in_a_trace(library):
    vars(torch.ops).pop("stator_spec", None)
    assert len(whole(lambda x: torch.ops.stator_spec.fresh(x), value()).operations) == 1


@both
def test_G10_operators_that_are_not_compliant_can_be_refused(library):
    overload = torch.ops.stator_spec.untagged.default
    with config.patch(only_allow_pt2_compliant_ops=True), pytest.raises(exc.Unsupported):
        torch.compile(lambda x: overload(x), backend=Recorder(), fullgraph=True)(value())


# -- G11 to G14 --


def _new_parameter(x):
    made = torch.nn.Parameter(torch.ones(3))
    return x * made


@both
def test_G11_a_parameter_made_in_the_function():
    got = torch.compile(_new_parameter, backend=Recorder())(value())
    assert_same(got, _new_parameter(value()))
    got.sum().backward()


@decided(
    "A Parameter made in the function breaks; stock's newer versions break as well.", stock=False
)
def test_G11_is_in_the_graph():
    check(_new_parameter, value())


def _hooked(x):
    y = x * 2
    y.register_hook(lambda grad: grad * 10)
    return y * 3


@both
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_G12_hooks_on_intermediate_tensors(backend):
    grads = []
    for function in (_hooked, torch.compile(_hooked, backend=backend)):
        x = value().requires_grad_()
        function(x).sum().backward()
        grads.append(x.grad)
    assert_same(*grads)


@since(2, 13)  # before, such a graph breaks at a hook
@both
def test_G12_without_a_break_where_the_backward_pass_is_compiled():
    x = value().requires_grad_()
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        torch.compile(_hooked, backend="aot_eager", fullgraph=True)(x).sum().backward()
    assert_same(x.grad, torch.full((3,), 60.0))


def _checkpointed(x):
    inner = torch.utils.checkpoint.checkpoint(lambda v: v.sin().sin(), x, use_reentrant=False)
    return inner + 1


@both
def test_G13_checkpoint_gives_the_right_gradients():
    grads = []
    for function in (_checkpointed, torch.compile(_checkpointed, backend="eager")):
        x = value().requires_grad_()
        function(x).sum().backward()
        grads.append(x.grad)
    assert_same(*grads)


@both
def test_G13_checkpoint_is_in_the_graph():
    backend = check(_checkpointed, value().requires_grad_(), calls=1)
    assert any("checkpoint" in str(target) for target in backend.operations)


@both
def test_G14_random_state_is_read_and_set():
    def program(x):
        state = torch.get_rng_state()
        first = torch.rand(3)
        torch.set_rng_state(state)
        return x + first, torch.rand(3) == first

    torch.manual_seed(5)
    got = torch.compile(program, backend="eager")(value())
    torch.manual_seed(5)
    assert_same(got, program(value()))
    assert any("rng_state" in text for text in breaks())


# -- G15 to G17 --


@both
def test_G15_nothing_is_left_of_a_compile_that_failed():
    def broken(module, examples):
        torch._guards.TracingContext.get()
        raise ValueError

    with pytest.raises(exc.BackendCompilerFailed):
        torch.compile(lambda x: x + 1, backend=broken)(value())
    assert torch._guards.TracingContext.try_get() is None
    assert torch._guards.CompileContext.try_get() is None
    assert not torch.compiler.is_compiling()
    assert torch.is_grad_enabled()


@both
def test_G16_nothing_keeps_inputs_and_modules_alive():
    net, x = torch.nn.Linear(3, 3), value()
    fast = torch.compile(net, backend="eager")
    result = fast(x)
    refs = [weakref.ref(thing) for thing in (x, net, net.weight, result)]
    del net, x, fast, result
    gc.collect()
    assert [ref() for ref in refs] == [None] * 4


def test_G16_entries_let_go_of_a_module_that_is_an_argument():
    fast = torch.compile(lambda net, x: net(x), backend="eager")
    net = torch.nn.Linear(3, 3)
    ref = weakref.ref(net)
    fast(net, value())
    del net
    gc.collect()
    assert ref() is None


@both
def test_G17_checks_of_data_are_in_the_graph():
    def program(x):
        n = x.sum().item()
        torch._check(n > 1)
        return x * n

    with config.patch(capture_scalar_outputs=True):
        backend = whole(program, torch.tensor([2, 3]))
    assert any("assert" in str(target) for target in backend.operations)


@both
def test_G17_checks_of_sizes_are_decided():
    def program(x):
        torch._check(x.shape[0] == 3)
        return x + 1

    check(program, value())
