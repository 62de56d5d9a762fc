"""A compiled step of an optimizer whose learning rate changes: one graph for the step that makes the
optimizer's state, one for all others."""

import pytest

import stator

torch = pytest.importorskip("torch")
optim = torch.optim

OPTIMIZERS = {
    "SGD": lambda ps, **more: optim.SGD(ps, **more),
    "SGD, momentum": lambda ps, **more: optim.SGD(ps, momentum=0.9, **more),
    "Adam": optim.Adam,
    "AdamW": optim.AdamW,
    "RMSprop": optim.RMSprop,
}
SCHEDULES = {
    "exponential": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9),
    "lambda": lambda o: optim.lr_scheduler.LambdaLR(o, lambda n: 1 / (n + 1)),
    "one cycle": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=9),
}


def train(make, schedule, compiler, lr):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.randn(5))]
    optimizer = make(parameters, lr=lr())
    scheduler = SCHEDULES[schedule](optimizer)

    def step():
        optimizer.step()

    fast = compiler(step)
    for _ in range(7):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        fast()
        scheduler.step()
    return [parameter.detach() for parameter in parameters]


def graphs_of(make, schedule="exponential", lr=lambda: 0.1):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    stator.reset()
    mine = train(make, schedule, lambda f: stator.compile(f, backend=backend), lr)
    for one, other in zip(mine, train(make, schedule, lambda f: f, lr), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    return len(graphs)


@pytest.mark.parametrize("foreach", [None, True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_graphs_at_most(name, foreach):
    made = graphs_of(lambda ps, **more: OPTIMIZERS[name](ps, foreach=foreach, **more))
    assert 1 <= made <= 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_graphs_at_most_by_schedule(schedule):
    assert 1 <= graphs_of(optim.AdamW, schedule) <= 2


def test_two_graphs_at_most_for_a_rate_that_is_a_tensor():
    assert 1 <= graphs_of(optim.Adam, lr=lambda: torch.tensor(0.1)) <= 2
