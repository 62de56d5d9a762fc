"""A program that compiles modules before torch._dynamo is imported, and asks the same of them
afterwards. Run by test_early_modules.py in a process of its own."""

from __future__ import annotations

import copy
import importlib.util
import io
import pickle
import sys
from typing import Any

import torch
import torch.ao.nn.quantized  # more modules of torch's own

import stator
from stator import _wrapper
from stator._versions import private


class Net(torch.nn.Module):
    kind = "net"

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(2))
        self.note = [1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + self.shift


X = torch.linspace(0, 1, 3)


def set_and_read(m: Any) -> Any:
    m.note, m.fresh = [2], "f"
    m.shift.fill_(2)
    inner = m._orig_mod
    found = inner.note, inner.fresh, "fresh" in vars(inner), "fresh" in vars(m)
    m.note, _ = [1], m.shift.fill_(1)
    return *found, inner.__dict__.pop("fresh")


def train_and_eval(m: Any) -> Any:
    seen = [m.eval().training, m._orig_mod.training, m._orig_mod.linear.training]
    m.training = True
    return [*seen, m.training, m._orig_mod.training, m.train().linear.training]


def missing(m: Any) -> str:
    try:
        return str(m.nothing)
    except AttributeError as error:
        return str(error)


def with_hook(m: Any) -> Any:
    seen: list[Any] = []
    handle = m.register_forward_hook(lambda module, args, out: seen.append(type(module).__name__))
    result = m(X).tolist()
    handle.remove()
    return result, seen, m(X).tolist()


def saved(m: Any) -> Any:
    file = io.BytesIO()
    torch.save(m.state_dict(), file)
    file.seek(0)
    other = stator.compile(Net(), backend="eager")
    other.load_state_dict(torch.load(file))
    return torch.equal(other(X), m(X))


# What programs do with a wrapper every day: none of it imports torch._dynamo.
DAILY = {
    "call": lambda m: m(X).tolist(),
    "repr": repr,
    "state": lambda m: {k: v.tolist() for k, v in m.state_dict().items()},
    "save": saved,
    "parameters": lambda m: [name for name, _ in m.named_parameters()],
    "buffers": lambda m: [name for name, _ in m.named_buffers()],
    "modules": lambda m: [(name, type(part).__name__) for name, part in m.named_modules()],
    "children": lambda m: [name for name, _ in m.named_children()],
    "module": lambda m: (type(m._orig_mod).__name__, m._orig_mod is m._modules["_orig_mod"]),
    "attributes": lambda m: (m.note, m.kind, m.shift.tolist(), m.linear is m._orig_mod.linear),
    "absent": lambda m: (missing(m), hasattr(m, "nothing"), getattr(m, "nothing", 5)),
    "set": set_and_read,
    "training": train_and_eval,
    "own": lambda m: sorted(name for name in vars(m) if not name.startswith("__")),
    "types": lambda m: (isinstance(m, torch.nn.Module), type(m).__name__, m.__class__ is type(m)),
    "gradients": lambda m: (m.requires_grad_(False)(X).requires_grad, m.requires_grad_(True) is m),
    "to": lambda m: m.to(torch.float64).to(torch.float32) is m,
    "hook": with_hook,
    "again": lambda m: type(stator.compile(m, backend="eager")._orig_mod).__name__,
    "context": lambda m: type(m.dynamo_ctx).__name__,
    "labels": lambda m: (m._torchdynamo_orig_callable.__name__, m._torchdynamo_wrapper_id == id(m)),
}  # fmt: skip


def delete(m: Any) -> Any:
    m.fresh = 1
    del m.fresh
    return hasattr(m._orig_mod, "fresh")


def no_length(m: Any) -> str:
    try:
        return str(len(m))
    except TypeError as error:
        return str(error)


# What torch's class is imported for.
RARE = {
    "pickle": lambda m: pickle.loads(pickle.dumps(m))(X).tolist(),
    "copy": lambda m: copy.deepcopy(m)(X).tolist(),
    "state of it": lambda m: "forward" in m.__getstate__(),
    "delete": delete,
    "length": lambda m: (len(stator.compile(torch.nn.Sequential(Net()), backend="eager")), no_length(m)),
    "dir": lambda m: sorted(set(dir(m))),
}  # fmt: skip


def has_dynamo() -> bool:
    return "torch._dynamo" in sys.modules


def forwards(cls: type = torch.nn.Module) -> dict[type, Any]:
    """The `forward` of each of torch's modules, bound."""
    found: dict[type, Any] = {}
    for child in cls.__subclasses__():
        if type(vars(child).get("forward")).__name__ == "function":
            found[child] = vars(child)["forward"].__get__(object())
        found.update(forwards(child))
    return found


def check_names() -> dict[type, bool]:
    """What Stator says without torch._dynamo of each module that it does not ask about."""
    known = {cls: f for cls, f in forwards().items()
             if cls.__module__.startswith("torch.nn.modules") or "torch" not in cls.__module__}  # fmt: skip
    assert len(known) > 100
    return {cls: private.is_called_whole(f) for cls, f in known.items()}


def main() -> None:
    torch.manual_seed(0)
    early = stator.compile(Net(), backend="eager")
    layer = stator.compile(torch.nn.Linear(3, 2), backend="eager")
    before = {name: ask(early) for name, ask in DAILY.items()}
    expected = layer(X).tolist()
    whole = check_names()
    assert importlib.util.find_spec("os") is not None
    assert not has_dynamo(), "daily work has imported torch._dynamo"
    assert type(early).__bases__ == (_wrapper.EarlyModule,) and len(RARE["pickle"](early)) == 2
    assert has_dynamo()

    from torch._dynamo import OptimizedModule, trace_rules

    assert type(early).__bases__ == (OptimizedModule,)
    assert isinstance(early, OptimizedModule) and issubclass(type(layer), OptimizedModule)
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == "stator._wrapper"]
    assert {name: ask(early) for name, ask in DAILY.items()} == before
    assert layer(X).tolist() == expected
    late = stator.compile(early._orig_mod, backend="eager")
    for name, ask in {**DAILY, **RARE}.items():
        assert ask(late) == ask(early), name
    assert whole == {cls: trace_rules.check(forwards()[cls]) for cls in whole}
    unknown = {name for name, value in vars(OptimizedModule).items() if callable(value)}
    assert unknown - set(vars(_wrapper.EarlyModule)) <= {
        "_forward_has_skip_rule", "_should_wrap_module_call_impl"  # torch 2.15: asked by itself
    }  # fmt: skip


if __name__ == "__main__":
    main()
    print("done")
