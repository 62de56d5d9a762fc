"""What a program asks of tensors in inference mode, and of tensors made there, is answered as in
plain Python."""

import pytest

import stator

torch = pytest.importorskip("torch")
F = torch.nn.functional

MAKERS = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "reshape": lambda x: x.reshape(3, 2),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "view": lambda x: x.view(6),
    "transpose": lambda x: x.transpose(0, 1),
    "expand": lambda x: x.expand(2, 2, 3),
    "row": lambda x: x[0],
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "chunk": lambda x: x.chunk(2)[0],
    "movedim": lambda x: x.movedim(0, 1),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(torch.float32),
    "float64": lambda x: x.double(),
    "detach": lambda x: x.detach(),
    "mul": lambda x: x * 2,
    "linear": lambda x: F.linear(x, x),
    "dropout": lambda x: F.dropout(x, 0.5, False),
    "dropout of nothing": lambda x: torch.dropout(x, 0.0, True),
    "dropout by name": lambda x: F.dropout(input=x, p=0.5, training=False),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, False),
    "view of a dropout": lambda x: F.dropout(x, 0.5, False).T,
}


def whole_tensor():
    return torch.arange(6.0).reshape(2, 3).clone()


def viewing_tensor():
    return torch.arange(6.0).reshape(2, 3)


def inference_tensor():
    with torch.inference_mode():
        return whole_tensor()


INPUTS = {
    "with gradient": lambda: whole_tensor().requires_grad_(),
    "a view with gradient": lambda: viewing_tensor().requires_grad_(),
    "without": whole_tensor,
    "made in inference mode": inference_tensor,
}


def in_it(make):
    def f(x):
        with torch.inference_mode():
            y = make(x)
            seen = y.requires_grad, y.is_inference(), y is x
        return seen, y

    return f


def behind_it(make):
    def f(x):
        with torch.inference_mode():
            y = make(x)
        return (y.requires_grad, y.is_inference(), y is x), y

    return f


def plain(make):
    def f(x):
        y = make(x)
        return (y.requires_grad, y.is_inference(), y is x), y

    return f


def around(make):
    """Called in inference mode."""
    return torch.inference_mode()(plain(make))


@pytest.mark.parametrize("given", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("way", [in_it, behind_it, plain, around])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_answers_are_plain_python_s(make, way, given):
    x = given()
    if way is around:
        f = plain(make)
        compiled = torch.inference_mode()(stator.compile(f, backend="eager"))
        f = torch.inference_mode()(f)
    else:
        f = way(make)
        compiled = stator.compile(f, backend="eager")
    for _ in range(2):
        seen, y = f(x)
        also_seen, also = compiled(x)
        assert also_seen == seen
        assert (also.requires_grad, also.is_inference(), also is x) == seen
        assert (y._is_view(), y.stride()) == (also._is_view(), also.stride())
        assert torch.equal(y, also)


def test_dropouts_of_a_model_in_inference_mode_are_one_graph():
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Dropout(0.1)
    ).eval()
    compiled = stator.compile(model, backend="eager", fullgraph=True)
    with torch.inference_mode():
        assert torch.equal(compiled(whole_tensor()), model(whole_tensor()))
