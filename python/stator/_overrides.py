"""Who would be asked by torch: calls on probes, which note the questions in place of answering."""

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.overrides

from stator._rows import Row
from stator._versions import private

# -- probes --


class _Heard(threading.local):
    """The questions of the call that is listened to: who is asked, and what with."""

    questions: list[tuple[Any, tuple[Any, ...]]]


_heard = _Heard()
_probes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()
_behind: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


def _note(cls: type | None, function: Any, types: Any, *more: Any) -> Any:
    real = tuple(_behind.get(kind, kind) for kind in types)
    _heard.questions.append((cls, (function, real, *more)))
    return NotImplemented


def _is_asked(cls: type) -> bool:
    method = getattr(cls, "__torch_function__", None)
    return (
        method is not None and cls is not torch.Tensor and method is not private.disabled_function
    )


def _probe_class(cls: type) -> type:
    """Its probes stand in the same order to those of other classes as the class does to these."""
    if not _is_asked(cls):
        return torch.Tensor if issubclass(cls, torch.Tensor) else object
    if cls not in _probes:
        bases = tuple(dict.fromkeys(map(_probe_class, cls.__bases__)))
        bases = tuple(base for base in bases if base is not object or len(bases) == 1)
        _probes[cls] = type(cls.__name__, bases, {"__torch_function__": classmethod(_note)})
        _behind[_probes[cls]] = cls
    return _probes[cls]


def probe_tensor(cls: type, dims: int, dtype: Any, requires_grad: bool) -> Any:
    """What torch's parsers ask of an argument, and a class."""
    made = torch.empty((1,) * dims, dtype=dtype, device="meta", requires_grad=requires_grad)
    return made.as_subclass(_probe_class(cls))


def probe_object(cls: type) -> Any:
    return _probe_class(cls)()


class _Listener(torch.overrides.TorchFunctionMode):
    """Is asked in the place of the modes that are on."""

    def __torch_function__(self, function: Any, types: Any, *more: Any) -> Any:
        _note(None, function, types, *more)
        raise NotImplementedError


_listener = _Listener()


@contextlib.contextmanager
def modes_aside() -> Iterator[None]:
    """No function mode is on."""
    modes = [private.pop_function_mode() for _ in range(private.len_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(modes):
            private.push_function_mode(mode)


@contextlib.contextmanager
def asking_nobody(wanted: bool, examples: list[Any]) -> Iterator[None]:
    """For code of torch's that may ask modes of its own. Jagged tensors are asked, where they are
    the only ones that could be: asked a second time they answer the same, and backends know no
    other way to the sizes of those that the graph makes."""
    if not wanted:
        yield
        return
    asked = [example for example in examples if _has_method(example)]
    jagged = bool(asked) and all(map(private.is_jagged, asked))
    with modes_aside(), contextlib.nullcontext() if jagged else private.DisableTorchFunction():
        yield


def _has_method(example: Any) -> bool:
    cls = type(example)
    if cls is torch.Tensor or not isinstance(example, torch.Tensor):
        return False
    return cls.__torch_function__ is not private.disabled_function


def listen(
    function: Callable[..., Any], args: Any, kwargs: Any, modes: bool, subclasses: bool
) -> list[Any]:
    """Whom torch asks, in order, if each of them declines. Of the modes only the first."""
    _heard.questions = []
    with (
        private.EnableTorchFunction(),
        modes_aside(),
        contextlib.suppress(Exception),
        contextlib.nullcontext() if subclasses else private.DisableTorchFunction(),
        _listener if modes else contextlib.nullcontext(),
    ):
        function(*args, **(kwargs or {}))
    return _heard.questions


def function_state() -> int:
    """function_state of src/torch/overrides.h."""
    return 0 if private.functions_enabled() else 2 if private.functions_all_disabled() else 1


def _convert(result: Any, cls: type) -> Any:
    """As torch._tensor's, but items come in a list: torch.Size takes no generators in a trace."""
    if cls is torch.Tensor:
        return result
    if isinstance(result, torch.Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        return type(result)([_convert(item, cls) for item in result])
    return result


_DISABLING = (private.DisableTorchFunction, private.DisableAllFunctions)

ROWS: tuple[tuple[Any, Row], ...] = (
    (private.push_function_mode, ("mode_push", None)),
    (private.pop_function_mode, ("mode_pop", None)),
    (private.len_function_stack, ("mode_count", None)),
    (private.function_mode_at, ("mode_get", None)),
    (private.function_modes_enabled, ("mode_any", None)),
    (private.dispatch_mode_of, ("dispatch_mode", private.len_dispatch_stack)),
    (private.functions_enabled, ("functions_on", None)),
    (private.functions_all_disabled, ("functions_off", None)),
    (private.handle_function, ("refused", "torch.overrides.handle_torch_function")),
    *(((private.skip_one_hop, ("skip_hop", None)),) if private.skip_one_hop else ()),
    *((context, ("disable", None)) for context in _DISABLING),
    *((vars(context)["__enter__"], ("disable_enter", which + 1))
      for which, context in enumerate(_DISABLING)),
    *((vars(context)["__exit__"], ("disable_exit", None)) for context in _DISABLING),
    (private.convert, ("instead", _convert)),
    (torch.Tensor.as_subclass, ("as_subclass", None)),
    (private.make_subclass, ("make_subclass", None)),
)  # fmt: skip

GLUE = (probe_tensor, probe_object, listen, function_state)
