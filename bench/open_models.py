"""Traces of models with all sizes open over traces with plain ones (backend `eager`), and the
operations of each that no rule knows, with the time that torch's fakes took for them.

Models come from transformers, timm and torch, from small configurations; those of a library that is
not installed are left out. `python bench/open_models.py [WORD…]`: models with a word in their name.
`--stock`: next to torch.compile, in turns; `--backend=NAME` for another backend than `eager`;
`--guards`: guards of an entry.
"""

import collections
import sys
import time

import torch

import stator
import stator._compile
from stator import _fakes

try:
    import timm
except ImportError:
    timm = None
try:
    import transformers
except ImportError:
    transformers = None

KINDS = {}


def kind(name):
    def add(make):
        KINDS[name] = make
        return make

    return add


def tokens(*shape):
    return torch.randint(0, 90, shape)


def small(config, **more):
    """A configuration with every size small, whatever its names for them are."""
    usual = {
        "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 64,
        "num_attention_heads": 4, "max_position_embeddings": 64, "use_cache": False,
    }  # fmt: skip
    return getattr(transformers, config)(**usual | more)


@kind("bert")
def bert():
    return transformers.BertModel(small("BertConfig")), {"input_ids": tokens(3, 10)}


@kind("bert, mask")
def bert_mask():
    mask = torch.ones(3, 10, dtype=torch.long)
    return bert()[0], {"input_ids": tokens(3, 10), "attention_mask": mask}


@kind("gpt2")
def gpt2():
    config = transformers.GPT2Config(
        vocab_size=99, n_positions=64, n_embd=32, n_layer=4, n_head=4, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens(3, 10)}


@kind("llama")
def llama():
    config = small("LlamaConfig", num_key_value_heads=2)
    return transformers.LlamaForCausalLM(config), {"input_ids": tokens(3, 10)}


@kind("t5")
def t5():
    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=3, num_heads=4, use_cache=False
    )
    ids = {"input_ids": tokens(3, 10), "decoder_input_ids": tokens(3, 7)}
    return transformers.T5ForConditionalGeneration(config), ids


@kind("deberta")
def deberta():
    config = small("DebertaV2Config", relative_attention=True, pos_att_type=["c2p", "p2c"],
                   position_buckets=8)  # fmt: skip
    return transformers.DebertaV2Model(config), {"input_ids": tokens(3, 10)}


@kind("mamba")
def mamba():
    config = transformers.MambaConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, state_size=4, use_cache=False
    )
    return transformers.MambaModel(config), {"input_ids": tokens(3, 6)}


@kind("whisper")
def whisper():
    config = transformers.WhisperConfig(
        vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, max_source_positions=20, max_target_positions=30, use_cache=False,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    given = {"input_features": torch.randn(2, 8, 40), "decoder_input_ids": tokens(2, 7)}
    return transformers.WhisperModel(config), given


@kind("vit, transformers")
def vit():
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=4, num_attention_heads=4, intermediate_size=64,
        image_size=32, patch_size=8,
    )  # fmt: skip
    return transformers.ViTModel(config), {"pixel_values": torch.randn(2, 3, 32, 32)}


def of_timm(name, size=64, **more):
    def make():
        return timm.create_model(name, num_classes=10, **more), {"x": torch.randn(2, 3, size, size)}

    kind(name)(make)


of_timm("vit_tiny_patch16_224", img_size=64, depth=4)
of_timm("resnet50")
of_timm("resnet18")
of_timm("mobilenetv3_small_100")
of_timm("convnext_atto")
of_timm("swin_tiny_patch4_window7_224", 56, img_size=56)
of_timm("efficientnet_b0")


@kind("nn.TransformerEncoder")
def encoder():
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 4), {"src": torch.randn(3, 10, 32)}


@kind("nn.LSTM")
def lstm():
    return torch.nn.LSTM(8, 16, 2, batch_first=True), {"input": torch.randn(3, 10, 8)}


# -- what is measured --


class Fakes:
    """What runs on fakes, by function: how often, on symbols or plain sizes."""

    def __init__(self):
        self.count = collections.Counter()

    def __call__(self, function, symbolic):
        name = getattr(function, "__name__", str(function))
        self.count[name + (" (symbols)" if symbolic else "")] += 1


def first_call(model, given, dynamic, compile=stator.compile, backend="eager"):
    if compile is torch.compile:
        torch._dynamo.reset()
    compiled = compile(model, backend=backend, dynamic=dynamic)
    begin = time.process_time()
    compiled(**given)
    first = time.process_time() - begin
    begin = time.process_time()
    compiled(**given)
    return first - (time.process_time() - begin)


def warm_call(model, given, dynamic, compile, times=30):
    if compile is torch.compile:
        torch._dynamo.reset()
    compiled = compile(model, backend="eager", dynamic=dynamic)
    taken = []
    for _ in range(times):
        begin = time.process_time()
        compiled(**given)
        taken.append(time.process_time() - begin)
    return min(taken) * 1e6


# -- next to stock --


def guards_of_stator(model, given, dynamic=True):
    context = stator._compile.Context("eager", dynamic=dynamic)
    context(model)(**given)
    return [len(row["guards"]) for row in context.compiler.entries()]


def leaves_of(manager):
    """Checks in a tree of stock's guards: its own, and those of all managers below."""
    below = list(manager.get_child_managers())
    if hasattr(manager, "get_key_value_managers"):
        pairs = manager.get_key_value_managers().values()
        below += [part for pair in pairs for part in pair if part is not None]
    return len(manager.get_leaf_guards()) + sum(map(leaves_of, below))


def guards_of_stock(model, given, dynamic=True):
    """Leaves of the trees that check an entry."""
    found = []
    build = torch._dynamo.guards.CheckFunctionManager.__init__

    def noted(self, *args, **kwargs):
        build(self, *args, **kwargs)
        found.append(leaves_of(self.guard_manager.root))

    torch._dynamo.reset()
    torch._dynamo.guards.CheckFunctionManager.__init__ = noted
    try:
        torch.compile(model, backend="eager", dynamic=dynamic)(**given)
    finally:
        torch._dynamo.guards.CheckFunctionManager.__init__ = build
    return found


def beside_stock(name, train, backend, rounds):
    """(trace plain, trace open, warm plain, warm open) of each; sides take turns."""
    torch.manual_seed(0)
    model, given = KINDS[name]()
    model.train(train)
    rows = {}
    sides = (("stock", torch.compile), ("stator", stator.compile))
    times = {(side, dynamic): [] for side, _ in sides for dynamic in (False, True)}
    for _ in range(rounds):
        for side, compile in sides:
            for dynamic in (False, True):
                taken = first_call(model, given, dynamic, compile, backend)
                times[side, dynamic].append(taken * 1e3)
    for side, compile in sides:
        traces = [min(times[side, dynamic]) for dynamic in (False, True)]
        warm = [warm_call(model, given, dynamic, compile) for dynamic in (False, True)]
        rows[side] = (*traces, *warm)
    return rows, model, given


def print_beside(names, train, backend, rounds=2):
    print(
        f"{'open over plain, ' + backend:<32}{'trace':>14}{'warm':>16}{'open trace ms':>18}", end=""
    )
    print(f"{'guards':>14}" if "--guards" in sys.argv else "")
    for name in names:
        rows, model, given = beside_stock(name, train, backend, rounds)
        (a, b, c, d), (e, f, g, h) = rows["stock"], rows["stator"]
        print(
            f"{name:<32}{b / a:>7.2f}{f / e:>7.2f}{d / c:>9.2f}{h / g:>7.2f}{b:>10.0f}{f:>8.1f}",
            end="",
        )
        if "--guards" in sys.argv:
            print(
                f"{sum(guards_of_stock(model, given)):>7}{sum(guards_of_stator(model, given)):>7}",
                end="",
            )
        print(flush=True)


def measure(name, train, rounds=5):
    torch.manual_seed(0)
    model, given = KINDS[name]()
    model.train(train)
    times = {False: [], True: []}
    fakes = {False: Fakes(), True: Fakes()}
    for _ in range(rounds):
        for dynamic, taken in times.items():
            taken.append(first_call(model, given, dynamic) * 1e3)
    for dynamic, found in fakes.items():
        _fakes.watcher = found
        first_call(model, given, dynamic)
        _fakes.watcher = None
    plain, opened = (min(taken) for taken in times.values())
    return plain, opened, fakes


def main():
    torch.set_num_threads(1)
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    missing = timm is None or transformers is None
    if "--stock" in sys.argv:
        backend = next((w[10:] for w in sys.argv if w.startswith("--backend=")), "eager")
        names = [name for name in KINDS if not words or any(word in name for word in words)]
        train = "--train" in sys.argv
        with torch.set_grad_enabled(train):
            print_beside(names, train, backend)
        return
    print(f"{'model':<32}{'plain ms':>10}{'open ms':>10}{'ratio':>7}{'on fakes: plain, open':>24}")
    for name in KINDS:
        if words and not any(word in name for word in words):
            continue
        train = "--train" in sys.argv
        try:
            with torch.set_grad_enabled(train):
                plain, opened, fakes = measure(name, train)
        except AttributeError:
            if not missing:
                raise
            continue
        counts = [sum(found.count.values()) for found in fakes.values()]
        print(f"{name:<32}{plain:>10.1f}{opened:>10.1f}{opened / plain:>7.2f}{counts[0]:>16}"
              f"{counts[1]:>8}", flush=True)  # fmt: skip
        if "--list" in sys.argv:
            for operation, times in fakes[True].count.most_common():
                print(f"    {times:>5} {operation}")


if __name__ == "__main__":
    main()
