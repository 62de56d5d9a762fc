"""The programs whose figures `make bench` prints: depth as in the models that people use, widths
small, so that a call is short and what a compiler adds to it shows.

Transformers' and torchvision's (or timm's) own code where they are installed. ResNet-50 and
MobileNetV3 are written here as well, for machines without these libraries; the others are left out
there. `origin(name)` says which it is.
"""

import importlib.util

import torch
from torch import nn
from torch.nn import functional as F

MODELS = {}


def installed(library):
    return importlib.util.find_spec(library) is not None


def model(name, library=None):
    """Each is a function that gives a callable, its arguments and its keyword arguments."""

    def add(make):
        if library is None or installed(library):
            MODELS[name] = make
        return make

    return add


def function(lines, name, parameters):
    scope = {}
    body = "\n".join(f"    {line}" for line in lines)
    exec(compile(f"def f({parameters}):\n{body}", f"<{name}>", "exec"), scope)
    return scope["f"]


def chain(count):
    lines = [f"x = x + {i % 7}" for i in range(count)]
    return function([*lines, "return x"], f"chain of {count}", "x"), (torch.randn(4),), {}


def linears(count):
    layers = [nn.Linear(8, 8) for _ in range(count)]
    return nn.Sequential(*layers).eval(), (torch.randn(2, 8),), {}


MODELS["tiny"] = lambda: chain(1)
for size in (10, 100, 1000):
    MODELS[f"chain of {size}"] = lambda size=size: chain(size)
for size in (10, 100):
    MODELS[f"MLP of {size}"] = lambda size=size: linears(size)


def tokens(*shape):
    return torch.randint(0, 90, shape)


# Sizes that transformers' configurations have in common.
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4,
    "max_position_embeddings": 64, "use_cache": False,
}  # fmt: skip


@model("GPT-2, 12 layers", "transformers")
def gpt2(layers=12):
    import transformers

    config = transformers.GPT2Config(
        vocab_size=99, n_positions=64, n_embd=32, n_layer=layers, n_head=4, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config).eval(), (), {"input_ids": tokens(3, 10)}


@model("BERT, 12 layers", "transformers")
def bert(layers=12):
    import transformers

    config = transformers.BertConfig(**SMALL | {"num_hidden_layers": layers})
    return transformers.BertModel(config).eval(), (), {"input_ids": tokens(3, 10)}


@model("Llama, 16 layers", "transformers")
def llama(layers=16):
    import transformers

    config = transformers.LlamaConfig(
        **SMALL | {"num_hidden_layers": layers, "num_key_value_heads": 2}
    )
    return transformers.LlamaForCausalLM(config).eval(), (), {"input_ids": tokens(3, 10)}


@model("T5, 6 layers", "transformers")
def t5(layers=6):
    import transformers

    config = transformers.T5Config(
        vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=layers, num_heads=4, use_cache=False
    )
    ids = {"input_ids": tokens(3, 10), "decoder_input_ids": tokens(3, 7)}
    return transformers.T5ForConditionalGeneration(config).eval(), (), ids


def image(size=32):
    return (torch.randn(2, 3, size, size),)


@model("ResNet-50")
def resnet50():
    return vision("resnet50", ResNet50), image(), {}


@model("MobileNetV3")
def mobilenet():
    return vision("mobilenet_v3_large", MobileNetV3), image(), {}


@model("ViT, 12 layers", "transformers")
def vit(layers=12):
    import transformers

    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=64,
        image_size=32, patch_size=8,
    )  # fmt: skip
    return transformers.ViTModel(config).eval(), image(), {}


# timm's names of torchvision's models.
OF_TIMM = {"resnet50": "resnet50", "mobilenet_v3_large": "mobilenetv3_large_100"}


def vision(name, by_hand):
    if installed("torchvision"):
        import torchvision

        return getattr(torchvision.models, name)(num_classes=10).eval()
    if installed("timm"):
        import timm

        return timm.create_model(OF_TIMM[name], num_classes=10).eval()
    return by_hand().eval()


def is_large(name):
    """A whole model, not a function or a stack of Linears."""
    return not name.startswith(("tiny", "chain", "MLP"))


def origin(name):
    if name in ("ResNet-50", "MobileNetV3"):
        found = [library for library in ("torchvision", "timm") if installed(library)]
        return found[0] if found else "written by hand"
    return "transformers" if "layers" in name else "written by hand"


# -- models of images, written by hand --


def conv(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU):
    parts = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*parts, *([act(inplace=True)] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = width * 4
        self.body = nn.Sequential(
            conv(inputs, width, 1), conv(width, width, 3, stride), conv(width, outputs, 1, act=None)
        )
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = conv(inputs, outputs, 1, stride, act=None)

    def forward(self, x):
        kept = x if self.shortcut is None else self.shortcut(x)
        return F.relu(self.body(x) + kept, inplace=True)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for at in range(count):
                blocks.append(Bottleneck(inputs, width, stride if at == 0 else 1))
                inputs = width * 4
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, 10)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Squeeze(nn.Module):
    """Scales each channel by what the mean of all channels says."""

    def __init__(self, channels):
        super().__init__()
        inner = max(channels // 4, 8)
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        scale = self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1))))
        return x * F.hardsigmoid(scale)


class Inverted(nn.Module):
    def __init__(self, inputs, kernel, inner, outputs, squeezes, act, stride):
        super().__init__()
        parts = [] if inner == inputs else [conv(inputs, inner, 1, act=act)]
        parts.append(conv(inner, inner, kernel, stride, groups=inner, act=act))
        parts += [Squeeze(inner)] if squeezes else []
        self.body = nn.Sequential(*parts, conv(inner, outputs, 1, act=None))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


# Kernel, inner channels, outputs, squeezes, hardswish, stride: the rows of the paper's large model.
INVERTED = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
    (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
    (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
    (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        parts, inputs = [conv(3, 16, 3, 2, act=nn.Hardswish)], 16
        for kernel, inner, outputs, squeezes, hard, stride in INVERTED:
            act = nn.Hardswish if hard else nn.ReLU
            parts.append(Inverted(inputs, kernel, inner, outputs, squeezes, act, stride))
            inputs = outputs
        self.body = nn.Sequential(*parts, conv(inputs, 960, 1, act=nn.Hardswish))
        self.head = nn.Sequential(
            nn.Linear(960, 1280), nn.Hardswish(inplace=True), nn.Linear(1280, 10)
        )

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.body(x), 1), 1))
