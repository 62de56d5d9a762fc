"""What Stator takes and saves on a GPU, next to stock Dynamo and to plain torch.

    python bench/gpu.py [PART…] [--json FILE]

| part | figure |
|---|---|
| layers | first call of 6, 24, 48 equal blocks with inductor and empty caches |
| traces | first call with backend `eager`: models of transformers and torch |
| warm | a warm call whose backend does nothing |
| steps | steps with `reduce-overhead`, and the part of a step that is the compiler's |

First calls with inductor have a process and a cache folder of their own. In traces and warm calls
the engines take turns in one process. `--device cpu --small` tries the script itself.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import stator

OPTIONS = argparse.Namespace(device="cuda", small=False)


def synchronize():
    if OPTIONS.device == "cuda":
        torch.cuda.synchronize()


def seconds(call):
    synchronize()
    begin = time.perf_counter()
    call()
    synchronize()
    return time.perf_counter() - begin


def middle(call, rounds):
    return statistics.median(seconds(call) for _ in range(rounds))


COMPILE = {"stock": torch.compile, "stator": stator.compile}


# -- models --


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


def blocks(depth):
    width = 32 if OPTIONS.small else 768
    model = torch.nn.Sequential(*(Block(width, width // 16) for _ in range(depth)))
    return model.to(OPTIONS.device), torch.randn(4, 128, width, device=OPTIONS.device)


def of_transformers(kind):
    import transformers

    small = OPTIONS.small
    if kind == "GPT-2 12":
        config = transformers.GPT2Config(
            n_layer=12, n_embd=48 if small else 768, vocab_size=1000, use_cache=False
        )
        model = transformers.GPT2LMHeadModel(config)
    elif kind == "Llama 16":
        config = transformers.LlamaConfig(
            num_hidden_layers=16, hidden_size=32 if small else 1024, vocab_size=1000,
            intermediate_size=64 if small else 2816, num_attention_heads=16, use_cache=False,
        )  # fmt: skip
        model = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.BertConfig(
            num_hidden_layers=12, hidden_size=48 if small else 768, vocab_size=1000
        )
        model = transformers.BertModel(config)
    model = model.eval().to(OPTIONS.device)
    return model, {"input_ids": torch.randint(0, 1000, (1, 128), device=OPTIONS.device)}


def of_blocks():
    model, x = blocks(12)
    return model, {"input": x}


def models():
    found = {"12 blocks": of_blocks}
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("(transformers is not here: blocks only)")
        return found
    for kind in ("GPT-2 12", "BERT 12", "Llama 16"):
        found[kind] = lambda kind=kind: of_transformers(kind)
    return found


# -- first calls with inductor, in processes of their own --


def train_step(model, x):
    for parameter in model.parameters():
        parameter.grad = None
    model(x).square().mean().backward()


def compare_gradients(model, compiled, x):
    train_step(model, x)
    expected = [parameter.grad for parameter in model.parameters()]
    train_step(compiled, x)
    for parameter, grad in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, grad, rtol=1e-2, atol=1e-3)


def first_call(engine, depth, train, how):
    """Seconds of the first call, and milliseconds of a later step; results are compared."""
    stator.share_layers(how)
    torch.manual_seed(0)
    model, x = blocks(depth)
    compiled = COMPILE[engine](model, backend="inductor")
    if train:
        train_step(model, x)  # libraries of the GPU start here
        first = seconds(lambda: train_step(compiled, x))
        step = middle(lambda: train_step(compiled, x), 30)
        compare_gradients(model, compiled, x)
    else:
        with torch.no_grad():
            expected = model(x)
            first = seconds(lambda: compiled(x))
            step = middle(lambda: compiled(x), 30)
            torch.testing.assert_close(compiled(x), expected, rtol=1e-2, atol=1e-3)
    return {"first s": first, "step ms": step * 1e3}


def steps_of(engine, kind):
    """Milliseconds of a step with CUDA graphs."""
    model, given = models()[kind]()
    with torch.no_grad():
        expected = model(**given)
        compiled = model if engine == "plain" else COMPILE[engine](model, mode="reduce-overhead")
        for _ in range(5):
            compiled(**given)
        step = middle(lambda: compiled(**given), 100)
        found = compiled(**given)
        if not isinstance(expected, torch.Tensor):
            found, expected = found[0], expected[0]
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-3)
    return {"step ms": step * 1e3}


IN_CHILD = {"first_call": first_call, "steps_of": steps_of}


def in_child(name, *args):
    """What a function of this file gives in a fresh process with empty caches."""
    task = json.dumps([vars(OPTIONS), name, args])
    with tempfile.TemporaryDirectory() as cache:
        places = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": os.path.join(cache, "t")}
        command = [sys.executable, os.path.abspath(__file__), "--child", task]
        done = subprocess.run(command, env=os.environ | places, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-2000:])
        return {"failed": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def child(task):
    options, name, args = json.loads(task)
    vars(OPTIONS).update(options)
    print(json.dumps(IN_CHILD[name](*args)))


# -- the parts --

WAYS = (
    ("stock", "auto"),
    ("stator", "off"),
    ("stator", "auto"),
    ("stator", "apart"),
)


def layers():
    found = {}
    for train, depths in ((False, (6, 24, 48)), (True, (6, 24))):
        for depth in depths:
            for engine, how in WAYS:
                if train and (engine, how) == ("stator", "auto"):
                    continue  # as "off"
                name = f"{'training' if train else 'inference'}, {depth} blocks, {engine}"
                name += "" if engine == "stock" else f" {how}"
                found[name] = in_child("first_call", engine, depth, train, how)
                print(f"  {name:<44}{found[name]}", flush=True)
    return found


def trace_seconds(compile, model, given):
    if compile is torch.compile:
        torch._dynamo.reset()
    compiled = compile(model, backend="eager")
    return seconds(lambda: compiled(**given)) - middle(lambda: compiled(**given), 5)


def in_turns(measure, rounds):
    found = {engine: [] for engine in COMPILE}
    for _ in range(rounds):
        for engine, compile in COMPILE.items():
            found[engine].append(measure(compile))
    return {engine: statistics.median(each) for engine, each in found.items()}


def traces():
    found = {}
    for name, make in models().items():
        model, given = make()
        with torch.no_grad():
            times = in_turns(lambda compile: trace_seconds(compile, model, given), 3)  # noqa: B023
        found[name] = {engine + " ms": each * 1e3 for engine, each in times.items()}
        found[name]["ratio"] = times["stock"] / times["stator"]
        print(f"  {name:<20}{found[name]}", flush=True)
    return found


def constant(graph, inputs):
    """A backend whose function gives the same results every time."""
    results = graph(*inputs)
    return lambda *args: results


def microseconds(call, times=200):
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times * 1e6


def warm_calls(make, grad):
    """Each engine has a model of its own: stock Dynamo puts attributes on parameters."""
    calls = {}
    for engine, compile in COMPILE.items():
        model, given = make()
        compiled = compile(model, backend=constant)
        calls[engine] = lambda compiled=compiled, given=given: compiled(**given)
    with torch.set_grad_enabled(grad):
        for call in calls.values():
            microseconds(call)
        rounds = [{name: microseconds(call) for name, call in calls.items()} for _ in range(9)]
    return {name: statistics.median(each[name] for each in rounds) for name in calls}


def warm():
    found = {}
    for name, make in models().items():
        for grad in (False, True):
            times = warm_calls(make, grad)
            key = f"{name}, {'grad' if grad else 'no grad'}"
            found[key] = {engine + " µs": each for engine, each in times.items()}
            found[key]["ratio"] = times["stock"] / times["stator"]
            print(f"  {key:<24}{found[key]}", flush=True)
    return found


def steps():
    found = {}
    for name, make in models().items():
        times = {each: in_child("steps_of", each, name) for each in ("plain", "stock", "stator")}
        times["stator's own µs"] = warm_calls(make, False)["stator"]
        found[name] = times
        print(f"  {name:<20}{times}", flush=True)
    return found


PARTS = {"layers": layers, "traces": traces, "warm": warm, "steps": steps}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--child")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return
    OPTIONS.device, OPTIONS.small = given.device, given.small
    place = torch.cuda.get_device_name() if given.device == "cuda" else given.device
    print(f"torch {torch.__version__}, {place}")
    found = {}
    for part in given.parts or PARTS:
        print(part, flush=True)
        found[part] = PARTS[part]()
        if given.json:
            with open(given.json, "w") as file:
                json.dump(found, file, indent=2)


if __name__ == "__main__":
    main()
