"""The parent of compiled modules: torch's `OptimizedModule`. Importing torch._dynamo for it takes a
second, so until somebody does that, a class of ours stands in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from torch.nn import Module

from stator._versions import private

# Attributes of a wrapper; all others are the module's.
_OWN = frozenset((
    "__dict__", "_forward", "_orig_mod", "_torchdynamo_orig_callable", "_torchdynamo_wrapper_id",
    "dynamo_ctx", "forward", "get_compiler_config", "named_children_walk",
))  # fmt: skip


class EarlyModule(Module):
    """What programs do with wrappers every day. Its instances have the attributes that torch's
    class would have given them, since they become instances of that class later on."""

    def __init__(self, mod: Module, dynamo_ctx: Any) -> None:
        # Module.__init__ sets attributes, which are the wrapper's even if the module has such.
        self.__dict__.update(_orig_mod=mod, _super_module_initialized=False)
        super().__init__()
        self.__dict__["_super_module_initialized"] = True
        self._orig_mod = mod
        self.dynamo_ctx = dynamo_ctx
        self._initialize()

    def _initialize(self) -> None:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        module = self.__dict__["_modules"]["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or hasattr(type(self), name):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def _get_training(self) -> bool:
        return self._orig_mod.training

    def _set_training(self, value: bool) -> None:
        if self._super_module_initialized:  # else Module.__init__ sets its default
            self._orig_mod.training = value

    training = property(_get_training, _set_training)


# Less common: torch's class does it, and is imported for it.
_RARE = (
    "__call__", "__delattr__", "__dir__", "__getstate__", "__len__", "__reduce__", "__setstate__",
    "_aot_compile", "_call_lazy_check", "_load_aot_compiled_module", "_save_aot_compiled_module",
)  # fmt: skip


def _by_torch(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(import_parent(), name)(self, *args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"EarlyModule.{name}"
    return method


for _name in _RARE:
    setattr(EarlyModule, _name, _by_torch(_name))

# -- when torch's class comes --

parent: Any = EarlyModule
_children: list[tuple[type, Callable[[], None]]] = []


def adopt(child: type, changed: Callable[[], None]) -> None:
    """The class gets torch's for its parent, now or once there is one; `changed` is then called."""
    _children.append((child, changed))
    if not private.has(private.DYNAMO):
        sys.meta_path.insert(0, _waiting)
    if private.has(private.DYNAMO):  # another thread may just have begun to import it
        import_parent()


def import_parent() -> Any:
    _settle(private.OptimizedModule)
    return parent


def _settle(found: Any) -> None:
    global parent
    if parent is found:
        return
    parent = found
    for child, changed in _children:
        child.__bases__ = (found,)
        changed()
    if _waiting in sys.meta_path:
        sys.meta_path.remove(_waiting)


class _Waiting:
    """A finder that waits for torch._dynamo.eval_frame. The parent changes before anybody can get
    hold of torch's class and ask `isinstance`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != private.EVAL_FRAME:
            return None
        others = (getattr(f, "find_spec", None) for f in sys.meta_path if f is not self)
        found = (find(name, path, target) for find in others if find is not None)
        spec: ModuleSpec | None = next((spec for spec in found if spec is not None), None)
        if spec is not None:
            _settle_after(spec.loader)
        return spec


def _settle_after(loader: Any) -> None:
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        run(module)
        _settle(getattr(module, private.WRAPPER))

    loader.exec_module = exec_module


_waiting = _Waiting()
