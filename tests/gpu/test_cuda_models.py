"""Models on a GPU: inductor, autocast, CUDA graphs and flex_attention give what plain torch gives,
in as many graphs as stock Dynamo makes."""

import copy

import pytest

import stator

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def tokens(*shape):
    return torch.randint(3, 90, shape, device="cuda")


def small(config, **more):
    usual = {
        "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128,
        "num_attention_heads": 4, "max_position_embeddings": 64, "use_cache": False,
        "attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0,
    }  # fmt: skip
    return getattr(transformers, config)(**usual | more)


@kind
def gpt2():
    config = transformers.GPT2Config(
        vocab_size=99, n_positions=64, n_embd=64, n_layer=2, n_head=4, use_cache=False,
        attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens(2, 16)}


@kind
def bert():
    return transformers.BertModel(small("BertConfig")), {"input_ids": tokens(2, 16)}


@kind
def llama():
    config = small("LlamaConfig", num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config), {"input_ids": tokens(2, 16)}


@kind
def qwen2():
    config = small("Qwen2Config", num_key_value_heads=2)
    return transformers.Qwen2ForCausalLM(config), {"input_ids": tokens(2, 16)}


@kind
def t5():
    config = transformers.T5Config(
        vocab_size=99, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False,
        dropout_rate=0.0,
    )  # fmt: skip
    given = {"input_ids": tokens(2, 16), "decoder_input_ids": tokens(2, 8)}
    return transformers.T5ForConditionalGeneration(config), given


@kind
def vit():
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        image_size=32, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32, device="cuda")}


@kind
def convolutions():
    def layer(before, after):
        conv = torch.nn.Conv2d(before, after, 3, padding=1)
        return [conv, torch.nn.BatchNorm2d(after), torch.nn.ReLU()]

    model = torch.nn.Sequential(*layer(3, 16), *layer(16, 16), torch.nn.AdaptiveAvgPool2d(1))
    return model, {"input": torch.randn(4, 3, 16, 16, device="cuda")}


def made(name):
    torch.manual_seed(0)
    model, given = KINDS[name]()
    return model.cuda(), given


def first_tensor(found):
    return found if isinstance(found, torch.Tensor) else found[0]


class Count:
    """A backend that runs graphs as they are, and counts them."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, inputs):
        self.graphs += 1
        return graph


def two_steps(model, call, given, dtype):
    """Losses of two steps, and the parameters behind them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        with torch.autocast("cuda", dtype, enabled=dtype is not None):
            loss = first_tensor(call(**given)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return [*losses, *(each.detach() for each in model.parameters())]


@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=["float32", "autocast"])
@pytest.mark.parametrize("name", KINDS)
def test_training_with_inductor(name, dtype):
    model, given = made(name)
    other = copy.deepcopy(model)
    expected = two_steps(other, other, given, dtype)
    found = two_steps(model, stator.compile(model), given, dtype)
    near = {"rtol": 1e-3, "atol": 1e-4} if dtype is None else {"rtol": 5e-2, "atol": 5e-2}
    torch.testing.assert_close(found, expected, **near)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("name", KINDS)
def test_inference(name, mode, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    model, given = made(name)
    model.eval()
    compiled = stator.compile(model, mode=mode)
    with torch.no_grad():
        for _ in range(4):  # warms up, records, replays
            expected = first_tensor(model(**given)).clone()
            found = first_tensor(compiled(**given)).clone()
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
            for each in given.values():
                each.copy_(each.roll(1, -1))


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_no_more_graphs_than_stock(name, train):
    counts = []
    for compile in (torch.compile, stator.compile):
        model, given = made(name)
        counts.append(Count())
        compiled = compile(model.train(train), backend=counts[-1])
        with torch.set_grad_enabled(train):
            compiled(**given)
    torch._dynamo.reset()
    assert counts[1].graphs <= counts[0].graphs


# Models ask whether they are compiled, and then mask their attention in another way.
@pytest.mark.parametrize("name", KINDS)
def test_backend_eager_is_the_same_as_in_stock_to_the_bit(name):
    model, given = made(name)
    with torch.no_grad():
        expected = first_tensor(torch.compile(model, backend="eager")(**given))
        found = first_tensor(stator.compile(model, backend="eager")(**given))
    torch._dynamo.reset()
    assert torch.equal(found, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_flex_attention(masked, grad):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(batch, head, q, k):
        return q >= k

    def closer(score, batch, head, q, k):
        return score - (q - k).abs() * 0.1

    mask = create_block_mask(causal, None, None, 256, 256, device="cuda") if masked else None

    def attend(q, k, v):
        return flex_attention(q, k, v, score_mod=closer, block_mask=mask) * 2

    parts = [torch.randn(2, 4, 256, 32, device="cuda", requires_grad=grad) for _ in range(3)]
    expected = attend(*parts)
    found = stator.compile(attend, fullgraph=True)(*parts)
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    if grad:
        wanted = torch.autograd.grad(expected.sum(), parts)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), parts), wanted, rtol=2e-2, atol=2e-2
        )


def test_guards_tell_devices_apart():
    counted = Count()
    double = stator.compile(lambda x: x * 2, backend=counted)
    for device in ("cuda", "cpu", "cuda"):
        assert double(torch.ones(3, device=device)).device.type == device
    assert counted.graphs == 2


def test_streams_and_random_numbers():
    def noisy(x):
        return torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)

    x = torch.ones(64, device="cuda")
    compiled = stator.compile(noisy, backend="eager", fullgraph=True)
    torch.manual_seed(3)
    expected = [noisy(x) for _ in range(3)]
    torch.manual_seed(3)
    for value in expected:
        assert torch.equal(compiled(x), value)
