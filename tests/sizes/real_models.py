"""Models of transformers and timm, small, each with five shapes and as decoders: how many entries and
conditions on sizes Stator and torch's own Dynamo make of them, and whether results are eager's.

    python tests/sizes/real_models.py stator aot_eager gpt2 bert      one line of JSON for each way
"""

import json
import sys
import time
import warnings

import torch

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
         "intermediate_size": 64}  # fmt: skip
LENGTHS = [(2, 7), (2, 9), (2, 12), (2, 5), (2, 20)]
IMAGES = [(2, 64), (3, 64), (4, 64), (5, 64), (7, 64)]


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**SMALL, max_position_embeddings=64))


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=256)
    )


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=2))


def qwen2():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(**SMALL, num_key_value_heads=2))


def mistral():
    from transformers import MistralConfig, MistralForCausalLM

    return MistralForCausalLM(MistralConfig(**SMALL, num_key_value_heads=2))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, vocab_size=100)
    )


def whisper():
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    return WhisperForConditionalGeneration(
        WhisperConfig(d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                      decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64,
                      vocab_size=100, max_source_positions=16, max_target_positions=256,
                      num_mel_bins=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                      decoder_start_token_id=1)
    )  # fmt: skip


def vit():
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(**SMALL, image_size=64, patch_size=16))


def resnet():
    import timm

    return timm.create_model("resnet18", num_classes=10)


def tokens(batch, length):
    return torch.arange(batch * length).reshape(batch, length) * 7 % 97 + 3


def images(batch, side):
    return torch.arange(float(batch * 3 * side * side)).reshape(batch, 3, side, side) % 17 / 9 - 1


TEXTS = {"bert": bert, "gpt2": gpt2, "llama": llama, "qwen2": qwen2, "mistral": mistral}
PICTURES = {"resnet": resnet, "vit": vit}
DECODERS = {"gpt2": gpt2, "llama": llama, "qwen2": qwen2, "mistral": mistral, "t5": t5,
            "whisper": whisper}  # fmt: skip


def made(make):
    torch.manual_seed(0)
    return make().eval()


def first_tensor(result):
    leaves = [result] if isinstance(result, torch.Tensor) else list(result.values())
    return next(t for t in leaves if isinstance(t, torch.Tensor))


# -- what a compiler made --


class Stator:
    """Entries of all that the model calls; conditions are their guards on sizes."""

    def __init__(self, model, backend):
        from stator import _compile

        context = _compile.Context(backend)
        self.compiler, self.fast = context.compiler, context(model)

    def facts(self):
        rows = self.compiler.entries()
        texts = [guard[0] for row in rows for guard in row["guards"]]
        return len(rows), sum(".size()[" in t and " is a Tensor" not in t for t in texts)


class Stock:
    """Entries are graphs; conditions are what its shape environments hold."""

    def __init__(self, model, backend):
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.environments, self.graphs = [], 0
        produce = ShapeEnv.produce_guards_verbose

        def noted(env, *args, **kwargs):
            if all(env is not other for other in self.environments):
                self.environments.append(env)
            return produce(env, *args, **kwargs)

        ShapeEnv.produce_guards_verbose = noted
        compile = torch._dynamo.lookup_backend(backend)

        def counted(module, examples):
            self.graphs += 1
            return compile(module, examples)

        self.fast = torch.compile(model, backend=counted)

    def facts(self):
        return self.graphs, sum(len(env.guards) for env in self.environments)


ENGINES = {"stator": Stator, "stock": Stock}


def close(a, b):
    return torch.allclose(a, b, rtol=1e-3, atol=1e-4)


def gradient(p):
    """A parameter that the loss does not depend on has none, or zeros by AOTAutograd."""
    return torch.zeros_like(p) if p.grad is None else p.grad


def calls_of(name):
    return [images(*s) for s in IMAGES] if name in PICTURES else [tokens(*s) for s in LENGTHS]


def run(engine, backend, name, training, calls=None):
    """Five shapes; in training with gradients, and without dropout."""
    model = made({**TEXTS, **PICTURES}[name])
    if training:
        model.requires_grad_(True)
    fast, equal = ENGINES[engine](model, backend), True
    for given in calls or calls_of(name):
        sides = []
        for callee in (model, fast.fast):
            model.zero_grad(set_to_none=True)
            with torch.set_grad_enabled(training):
                out = first_tensor(callee(given))
            grads = []
            if training:
                out.float().pow(2).mean().backward()
                grads = [gradient(p) for p in model.parameters()]
            sides.append([out.detach(), *grads])
        equal &= len(sides[0]) == len(sides[1]) and all(map(close, *sides))
    return fast, equal


def decode(engine, backend, name, count=200):
    """A prompt, then one token at a time with the cache that the model keeps."""
    model = made(DECODERS[name])
    fast = ENGINES[engine](model, backend)
    texts = []
    for callee in (model, fast.fast):
        with torch.no_grad():
            texts.append(text_of(model, callee, name, count))
    return fast, texts[0] == texts[1]


def text_of(model, callee, name, count):
    more, ids = {}, tokens(1, 5)
    if name == "t5":
        more = {"encoder_outputs": model.encoder(tokens(1, 9))}
    elif name == "whisper":
        more = {"encoder_outputs": model.model.encoder(torch.ones(1, 8, 32))}
    key = "decoder_input_ids" if more else "input_ids"
    found, past = [], None
    for _ in range(count):
        out = callee(**{key: ids}, past_key_values=past, use_cache=True, **more)
        past = out.past_key_values
        ids = out.logits[:, -1:].argmax(-1)
        found.append(ids.item())
    return found


def row(engine, backend, name, kind, work):
    began = time.perf_counter()
    fast, equal = work()
    entries, conditions = fast.facts()
    return {"engine": engine, "backend": backend, "model": name, "kind": kind, "equal": equal,
            "entries": entries, "conditions": conditions,
            "seconds": round(time.perf_counter() - began, 1)}  # fmt: skip


def main():
    engine, backend, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name in names:
        name, _, kind = name.partition(":")
        torch._dynamo.reset()
        if kind == "decode":
            work = lambda: decode(engine, backend, name)  # noqa: E731
        else:
            work = lambda: run(engine, backend, name, kind == "train")  # noqa: E731
        print(json.dumps(row(engine, backend, name, kind, work)), flush=True)


if __name__ == "__main__":
    main()
