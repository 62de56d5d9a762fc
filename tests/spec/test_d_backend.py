# ruff: noqa: E402
"""Lines D1 to D10: what a backend gets, and what becomes of what it gives."""

import pytest

torch = pytest.importorskip("torch")

import torch._dynamo
from torch._dynamo import config, exc
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensor, UnsupportedFakeTensorException

from tests.spec.helpers import Recorder, assert_same, both, breaks, check, decided, logged, value

# -- D1, D2 --


@both
def test_D1_a_graph_module_and_real_tensors():
    backend = Recorder()
    x, y = value(), value(2, 3)
    torch.compile(lambda x, y: x + y, backend=backend)(x, y)
    assert isinstance(backend.graph, torch.fx.GraphModule)
    examples = [e for e in backend.examples[0] if isinstance(e, torch.Tensor)]
    assert len(examples) == 2
    assert not any(isinstance(example, FakeTensor) for example in examples)
    assert_same([examples[0], examples[1]], [x, y])
    assert_same(backend.graph(*backend.examples[0])[0], x + y)


@both
def test_D1_symbols_are_symints():
    backend = Recorder()
    torch.compile(lambda x: x + x.shape[0], backend=backend, dynamic=True)(value())
    assert any(isinstance(example, torch.SymInt) for example in backend.examples[0])


def _returns(result):
    return lambda module, examples: result


@both
@pytest.mark.parametrize("result", [None, 3, "text"])
def test_D2_a_backend_must_return_a_callable(result):
    with pytest.raises(exc.BackendCompilerFailed):
        torch.compile(lambda x: x + 1, backend=_returns(result))(value())


@both
def test_D2_an_error_keeps_its_cause_and_traceback():
    def broken(module, examples):
        raise KeyError("deep inside")

    with pytest.raises(exc.BackendCompilerFailed, match="deep inside") as raised:
        torch.compile(lambda x: x + 1, backend=broken)(value())
    assert isinstance(raised.value.inner_exception, KeyError)
    names = [entry.name for entry in raised.traceback]
    assert "broken" in names


@both
def test_D2_a_backend_may_ask_to_leave_the_frame():
    def unwilling(module, examples):
        raise exc.SkipFrame("not this one")

    fast = torch.compile(lambda x: x + 1, backend=unwilling)
    for _ in range(2):
        assert_same(fast(value()), value() + 1)


# -- D3 --


@pytest.fixture(scope="module")
def library():
    made = torch.library.Library("stator_spec_d", "FRAGMENT")
    made.define("no_fake(Tensor x) -> Tensor")
    made.impl("no_fake", lambda x: x + 1, "CPU")
    made.define("wrong(Tensor x) -> Tensor")
    made.impl("wrong", lambda x: x + 1, "CPU")
    yield made
    made._destroy()


def test_D3_an_operator_without_a_fake_breaks(library):
    op = torch.ops.stator_spec_d.no_fake
    backend = check(lambda x: op(x + 1) * 2, value(), whole=False)
    assert len(backend.graphs) >= 2
    assert any("no_fake" in text for text in breaks())


def _fakes_fail(module, examples):
    raise UnsupportedFakeTensorException("no fake of this")


def _allowed(x):
    return x + 1


torch._dynamo.allow_in_graph(_allowed)


@both
def test_D3_a_backend_that_fails_for_want_of_a_fake():
    fast = torch.compile(lambda x: x + 1, backend=_fakes_fail)
    for _ in range(2):
        assert_same(fast(value()), value() + 1)


@both
def test_D3_is_an_error_where_the_user_allowed_a_function():
    with pytest.raises(exc.BackendCompilerFailed, match="no fake of this"):
        torch.compile(lambda x: _allowed(x), backend=_fakes_fail)(value())


# -- D4, D5 --


@both
def test_D4_a_wrong_result_of_a_backend_is_found():
    def wrong(module, examples):
        return lambda *args: [result + 1 for result in module.forward(*args)]

    with (
        config.patch(verify_correctness=True),
        pytest.raises(Exception, match=r"(?i)incorrect|mismatch|correct"),
    ):
        torch.compile(lambda x: x * 2, backend=wrong)(value())


DEPENDENT = {
    "nonzero": lambda x: x.nonzero() + 1,
    "mask": lambda x: x[x > 1] + 1,
    "unique": lambda x: torch.unique(x) + 1,
    "item": lambda x: x + x.sum().item(),
    "tolist": lambda x: [x + 1, x.tolist()],
}


@both
@pytest.mark.parametrize("program", DEPENDENT.values(), ids=DEPENDENT)
def test_D5_operations_that_depend_on_data_break(program):
    check(program, value(), whole=False)
    assert breaks()


@both
@pytest.mark.parametrize("name", ["nonzero", "mask", "unique", "item"])
def test_D5_flags_trace_them(name):
    flags = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
    with config.patch(flags):
        check(DEPENDENT[name], value(), calls=1)


@both
@pytest.mark.parametrize("name", ["nonzero", "item"])
def test_D5_the_break_names_the_flag(name):
    with logged(graph_breaks=True) as texts:
        torch.compile(DEPENDENT[name], backend=Recorder())(value())
    assert any("config.capture_" in text for text in texts)


@both
def test_D5_an_operation_that_cannot_be_is_an_error_with_its_name():
    def program(x):
        return torch.matmul(x, torch.ones(7))

    with pytest.raises(Exception, match=r"(?i)matmul|size"):
        torch.compile(program, backend=Recorder(), fullgraph=True)(value())


# -- D6 to D8 --


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(value())

    def forward(self, x):
        return x * self.weight


@both
def test_D6_placeholders_carry_their_source():
    backend = Recorder()
    torch.compile(Net(), backend=backend)(value())
    sources = [node._dynamo_source for node in backend.graph.graph.find_nodes(op="placeholder")]
    names = {source.name() if callable(source.name) else source.name for source in sources}
    assert names == {"L['x']", "L['self']._parameters['weight']"}


@both
def test_D6_the_module_maps_parameters_to_sources():
    backend = Recorder()
    torch.compile(Net(), backend=backend)(value())
    assert list(backend.graph._param_name_to_source) == ["self.weight"]


@pytest.fixture
def distributed(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("needs torch.distributed")
    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(512, 512) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def _parallel():
    return torch.nn.parallel.DistributedDataParallel(Deep(), bucket_cap_mb=1)


def test_D7_gradients_of_a_parallel_module_are_right(distributed):
    net = _parallel()
    x = torch.ones(2, 512)
    net(x).sum().backward()
    want = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch.compile(net, backend="eager")(x).sum().backward()
    assert_same([p.grad for p in net.parameters()], want)


def test_D7_graphs_are_split_by_buckets(distributed):
    backend = Recorder()
    torch.compile(_parallel(), backend=backend)(torch.ones(2, 512))
    assert len(backend.graphs) > 1


@both
def test_D8_what_a_backend_returns_is_never_traced():
    def python(module, examples):
        def run(*args):
            print(end="")  # would break a trace
            return module.forward(*args)

        return run

    inner = torch.compile(lambda x: x + 1, backend=python)
    fast = torch.compile(
        lambda x: torch._dynamo.disable(inner, recursive=False)(x) * 2, backend=python
    )
    for _ in range(2):
        assert_same(fast(value()), (value() + 1) * 2)
    assert not any("print" in text for text in breaks())


# -- D9, D10 --


@both
def test_D9_nested_inputs_are_flat():
    backend = check(lambda d: d["k"][0] + d["k"][1][0], {"k": [value(), (value(),)]})
    assert [type(example) for example in backend.examples[0]] == [torch.Tensor] * 2


@decided("The setting compiled_autograd has no effect.")
def test_D9_the_backward_pass_is_captured():
    with config.patch(compiled_autograd=True):
        x = value().requires_grad_()

        @torch.compile(backend="eager")
        def train(x):
            (x * x).sum().backward()

        train(x)
    assert counters["compiled_autograd"]["captures"] == 1


def _adds_items(inputs):
    return inputs[0] + inputs[1]


@decided("A list that its owner gives away is not one input, which the graph could empty.")
def test_D9_a_list_that_is_given_away_is_one_input():
    program = torch.fx.symbolic_trace(_adds_items)
    program.meta["locals_to_steal"] = ["inputs"]
    backend = Recorder()
    assert_same(torch.compile(program, backend=backend)([value(), value()]), value() * 2)
    assert [type(example) for example in backend.examples[0]] == [list]


def _saved(x):
    return (x.sin() * 2).sum()


@both
def test_D10_saved_tensor_hooks_see_what_they_would():
    def run(function):
        packed = []
        x = value().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t.shape) or t, lambda t: t
        ):
            function(x).backward()
        return x.grad

    assert_same(run(torch.compile(_saved, backend="eager")), run(_saved))


@decided("Nothing is compiled while saved tensor hooks are on.")
def test_D10_and_compiling_goes_on():
    backend = Recorder()
    with torch.autograd.graph.save_on_cpu():
        torch.compile(_saved, backend=backend)(value().requires_grad_())
    assert len(backend.graphs) == 1
