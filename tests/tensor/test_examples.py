# ruff: noqa: E402
"""What a callable of the user's gets: examples as torch's own fakes are, code when it is asked."""

import pytest

torch = pytest.importorskip("torch")

import stator
from stator import _fakes

plain = torch.randn(4, 6)
graded = torch.randn(3, requires_grad=True)
graded.grad = torch.ones(3)
marked = torch.randn(2)
marked.tag = "x"

INPUTS = {
    "a tensor": plain,
    "no dimensions": torch.tensor(2.5),
    "no elements": torch.empty(0, 3),
    "ints": torch.arange(5),
    "a view": plain.t(),
    "a part": plain[1:, 2:],
    "laid out otherwise": torch.empty_strided((3, 4), (1, 3)),
    "channels last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "a parameter": torch.nn.Parameter(torch.randn(2, 3)),
    "a parameter without gradient": torch.nn.Parameter(torch.randn(2, 3), requires_grad=False),
    "a buffer": torch.nn.Buffer(torch.ones(2)),
    "with a gradient": graded,
    "no leaf": graded * 2,
    "with attributes": marked,
    "conjugate": torch.randn(2, dtype=torch.complex64).conj(),
}


def told(fake):
    parameter = isinstance(fake, torch.nn.Parameter)
    return (
        fake.shape, fake.stride(), fake.dtype, fake.device, fake.layout, fake.requires_grad,
        fake.is_leaf, fake.storage_offset(), fake.is_conj(), type(fake), parameter,
        isinstance(fake, torch.nn.Buffer),
    )  # fmt: skip


@pytest.mark.parametrize("name", INPUTS)
def test_an_example_is_like_torchs_own_fake(name):
    stator.compile(lambda x: x + 1, backend="eager")(plain)  # torch is attached
    tensor = INPUTS[name]
    example = _fakes.example_of(_fakes.make_mode(True), tensor)
    assert told(example) == told(_fakes.fake_of(_fakes.make_mode(True), tensor))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(6, 6)

    def forward(self, x):
        return self.inner(self.inner(x)).relu()


def test_code_is_written_when_it_is_asked_for():
    seen = []

    def backend(graph, inputs):
        seen.append("forward" in type(graph).__dict__ and not type(graph)._needs_recompile())
        return graph.forward

    model = Model()
    compiled = stator.compile(model, backend=backend)
    assert torch.equal(compiled(plain), model(plain)) and seen == [False]


@pytest.mark.parametrize("given", ["graph", "graph.forward", "graph.__call__"])
def test_what_a_backend_gives_back_of_the_graph_is_called(given):
    model = Model()
    compiled = stator.compile(model, backend=lambda graph, inputs: eval(given, {"graph": graph}))
    for _ in range(3):
        assert torch.equal(compiled(plain), model(plain))


def test_a_graph_that_the_backend_changes_is_the_one_that_runs():
    def backend(graph, inputs):
        for node in graph.graph.find_nodes(op="call_method", target="relu"):
            node.target = "neg"
        graph.recompile()
        return graph.forward

    model = Model()
    expected = -model.inner(model.inner(plain))
    assert torch.equal(stator.compile(model, backend=backend)(plain), expected)


def test_nodes_of_one_layer_have_module_stacks_of_their_own():
    found = []

    def backend(graph, inputs):
        found.extend(node.meta["nn_module_stack"] for node in graph.graph.nodes
                     if node.op == "call_function")  # fmt: skip
        return graph.forward

    stator.compile(Model(), backend=backend)(plain)
    assert len(found) == len({id(stack) for stack in found}) > 1
    assert [[cls for _, cls in stack.values()] for stack in found] == [[torch.nn.Linear]] * 2
