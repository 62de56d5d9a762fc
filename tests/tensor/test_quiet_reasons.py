"""No code of the user's runs while guards are checked, and while what they say is put in words.

Each case makes an entry, changes something so that one kind of guard fails, and calls again under
`fail_on_recompile`: the reasons are worded, and nothing else of the call happens. All objects in
the way are *loud*: whatever special method of theirs is run meanwhile is noted.
"""

from __future__ import annotations

import collections
import functools
import operator
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import stator

torch = pytest.importorskip("torch")

_KINDS = Path(__file__).parents[2] / "src" / "guard" / "kinds.def"

# -- loud objects --

heard: list[str] = []
_listening = False


def _hear(name: str) -> None:
    if _listening:
        heard.append(name)


_SPECIAL = """
    __repr__ __str__ __format__ __bytes__ __hash__ __bool__ __len__ __length_hint__ __iter__
    __next__ __contains__ __getitem__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __index__ __int__
    __float__ __call__ __getattr__ __dir__ __reversed__ __add__ __radd__ __instancecheck__
    __subclasscheck__ __torch_function__ __get__ __enter__ __exit__ __missing__
""".split()


def _loud_method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _hear(name)
        if name in ("__repr__", "__str__"):
            return "loud"
        if name == "__hash__":
            return 7
        if name in ("__eq__", "__ne__"):
            return (self is args[0]) == (name == "__eq__")
        if name == "__getattr__":
            raise AttributeError(args[0])
        if name in ("__instancecheck__", "__subclasscheck__", "__bool__", "__contains__"):
            return True
        if name in ("__len__", "__index__", "__int__", "__length_hint__"):
            return 1
        return self

    return method


class _LoudMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        _hear(f"metaclass {name}")
        return super().__getattribute__(name)

    def __repr__(cls) -> str:
        _hear("metaclass __repr__")
        return "loud class"

    def __instancecheck__(cls, o: Any) -> bool:
        _hear("metaclass __instancecheck__")
        return True

    def __subclasscheck__(cls, o: Any) -> bool:
        _hear("metaclass __subclasscheck__")
        return True

    def __hash__(cls) -> int:
        _hear("metaclass __hash__")
        return 7

    def __eq__(cls, other: object) -> bool:
        _hear("metaclass __eq__")
        return cls is other


class Loud(metaclass=_LoudMeta):
    def __getattribute__(self, name: str) -> Any:
        _hear(f"__getattribute__ {name}")
        return object.__getattribute__(self, name)

    @property
    def __class__(self) -> Any:
        _hear("__class__")
        return int


for _name in _SPECIAL:
    setattr(Loud, _name, _loud_method(_name))


class LoudInt(int):
    __repr__ = _loud_method("__repr__")
    __eq__ = _loud_method("__eq__")
    __hash__ = int.__hash__


class LoudStr(str):
    __repr__ = _loud_method("__repr__")
    __str__ = _loud_method("__str__")
    __eq__ = _loud_method("__eq__")
    __hash__ = str.__hash__


class LoudList(list):  # type: ignore[type-arg]
    __repr__ = _loud_method("__repr__")
    __len__ = _loud_method("__len__")
    __iter__ = _loud_method("__iter__")
    __getitem__ = _loud_method("__getitem__")


class LoudDict(dict):  # type: ignore[type-arg]
    __repr__ = _loud_method("__repr__")
    __len__ = _loud_method("__len__")
    __iter__ = _loud_method("__iter__")
    __getitem__ = _loud_method("__getitem__")
    keys = _loud_method("keys")


class LoudTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        _hear(f"__torch_function__ {getattr(func, '__name__', func)}")
        return super().__torch_function__(func, types, args, kwargs or {})

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        _hear("dtype")
        return torch.float32

    __repr__ = _loud_method("__repr__")  # type: ignore[assignment]


class LoudMode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        _hear(f"mode {getattr(func, '__name__', func)}")
        return func(*args, **(kwargs or {}))


# -- cases: (kind of guard, function, first arguments, what makes the second ones) --


class Case(NamedTuple):
    kinds: str  # as in kinds.def; several are several words
    function: Any
    first: tuple[Any, ...]
    second: Any  # arguments, or a function that makes them after changing something


class Plain:
    def method(self) -> int:
        return 1


class Base:
    pass


class Other(Base):
    value = 1


class Derived(Base):
    pass


class Pair(NamedTuple):
    a: Any
    b: Any


SENTINEL = Loud()
OBJECT = Plain()


def _changes(owner: Any, name: str, value: Any, args: tuple[Any, ...]) -> Any:
    def change() -> tuple[Any, ...]:
        setattr(owner, name, value)
        return args

    return change


_kept: dict[type, Any] = {}  # methods that a class loses: their death would be the reason


def _type_lookup() -> Case:
    class Own:
        def method(self) -> int:
            return 1

    o, _kept[Own] = Own(), Own.method
    return Case("TYPE_LOOKUP", lambda o: o.method(), (o,), _changes(Own, "method", Loud(), (o,)))


def _no_attr() -> Case:
    o = Plain()
    return Case("NO_ATTR", lambda o: o.method(), (o,), _changes(o, "method", Loud(), (o,)))


def _hooked(by_name: bool, *later: Any) -> Any:
    def hook(module: Any, args: Any, *named: Any) -> None:
        return None

    layer = torch.nn.Identity()
    layer.register_forward_pre_hook(hook, with_kwargs=by_name)
    layer._forward_pre_hooks_with_kwargs.update(dict.fromkeys(later, Loud()))
    return layer


def _key(kind: str, by_name: bool) -> Case:
    layers = [_hooked(by_name), _hooked(not by_name, -1)]
    x = torch.ones(2)
    return Case(kind, lambda layer, x: layer(x) + 1, (layers[0], x), (layers[1], x))


def _attr_names() -> Case:
    o = Plain()
    return Case("ATTR_NAMES", lambda o: list(vars(o)), (o,), _changes(o, "x", Loud(), (o,)))


def _mro() -> Case:
    class Own(Derived):
        pass

    def change() -> tuple[Any, ...]:
        Own.__bases__ = (Other,)
        return (Own(),)

    return Case("MRO", lambda o: type(o).__mro__[1] is Derived, (Own(),), change)


def _code() -> Case:
    def one() -> int:
        return 1

    def two() -> int:
        return 2

    def change() -> tuple[Any, ...]:
        one.__code__ = two.__code__
        return (one,)

    return Case("CODE", lambda g: g() + 1, (one,), change)


def _flags() -> Case:
    class Own:
        def method(self) -> int:
            return 1

    o = Own()

    def change() -> tuple[Any, ...]:
        Own.__getattribute__ = lambda self, name: _hear(name)  # type: ignore[assignment]
        return (o,)

    return Case("TYPE_FLAGS TYPE_LOOKUP", lambda o: o.method(), (o,), change)


def _broken(flag: Any) -> int:
    if flag is None:
        y = SENTINEL  # noqa: F841
    stator.graph_break()
    return 1 if flag is None else 2


def _two_lists(a: list[int], b: list[int]) -> None:
    a.append(1)
    b.append(2)


def _tensor_case(second: Any) -> Case:
    return Case("CUSTOM", lambda x: x + 1, (torch.ones(3),), second)


def _under_mode() -> tuple[Any, ...]:
    mode = LoudMode()
    mode.__enter__()
    _cleanup.append(lambda: mode.__exit__(None, None, None))
    return (torch.ones(4),)


_cleanup: list[Any] = []
_twice: list[Any] = [Loud()]

CASES: dict[str, Any] = {
    "type": lambda: Case("TYPE", lambda o: isinstance(o, int), (1,), (Loud(),)),
    "type of a class": lambda: Case("TYPE", lambda o: o + 1, (1,), (Loud,)),
    "type of a partial": lambda: Case(
        "TYPE", lambda o: o + 1, (1,), (functools.partial(Loud(), Loud()),)
    ),
    "type of a getter": lambda: Case("TYPE", lambda o: o + 1, (1,), (operator.itemgetter(Loud()),)),
    "type of a method": lambda: Case(
        "TYPE", lambda o: o + 1, (1,), (Plain.method.__get__(Loud()),)
    ),
    "is": lambda: Case("IS", lambda o: o is SENTINEL, (SENTINEL,), (Loud(),)),
    "is a class": lambda: Case("IS", lambda o: o is Loud, (Loud,), (Plain,)),
    "is not": lambda: Case("IS_NOT", lambda o: o is SENTINEL, (Loud(),), (SENTINEL,)),
    "same": lambda: Case("SAME IS", lambda a, b: a is b, (SENTINEL, SENTINEL), (SENTINEL, Loud())),
    "not same": lambda: Case(
        "NOT_SAME IS_NOT", lambda a, b: a is b, (Loud(), Loud()), (SENTINEL, SENTINEL)
    ),
    "value": lambda: Case("VALUE", lambda n: n + 1, (1,), (LoudInt(1),)),
    "value, a str": lambda: Case("VALUE", lambda s: s + "x", ("a",), (LoudStr("a"),)),
    "value of a tuple": lambda: Case("VALUE TYPE", lambda t: t[0] + 1, ((1,),), ((Loud(),),)),
    "length": lambda: Case("LENGTH", lambda c: len(c), ([Loud()],), ([Loud(), Loud()],)),
    "length of a subclass": lambda: Case("TYPE", lambda c: len(c), ([1],), (LoudList([1]),)),
    "empty": lambda: Case("EMPTY", lambda c: bool(c), ([],), ([Loud()],)),
    "keys": lambda: Case("KEYS", lambda d: list(d), ({"a": 1},), ({Loud(): 1},)),
    "keys that are loud": lambda: Case("KEYS", lambda d: list(d), ({Loud(): 1},), ({Loud(): 1},)),
    "keys of a subclass": lambda: Case("TYPE", lambda d: list(d), ({"a": 1},), (LoudDict(a=1),)),
    "attribute names": _attr_names,
    "absent": lambda: Case("ABSENT", lambda d: "k" in d, ({},), ({"k": Loud()},)),
    "absent, unsure": lambda: Case("ABSENT", lambda d: 7 in d, ({},), ({Loud(): 1},)),
    "has key": lambda: _key("HAS_KEY", True),
    "lacks key": lambda: _key("LACKS_KEY", False),
    "no attribute": _no_attr,
    "lookup": _type_lookup,
    "mro": _mro,
    "code": _code,
    "set": lambda: Case("SET_ITEMS", lambda s: list(s), ({1, 2},), ({1, Loud()},)),
    "set of loud ones": lambda: Case(
        "SET_ITEMS", lambda s: len(list(s)), (frozenset((SENTINEL,)),), (frozenset((Loud(),)),)
    ),
    "bytes": lambda: Case("BYTES", lambda b: b[0], (bytearray(b"a"),), (bytearray(b"b"),)),
    "flags": _flags,
    "distinct": lambda: Case("DISTINCT", _two_lists, ([], []), (_twice, _twice)),
    "bound": lambda: Case("BOUND", _broken, (1,), (None,)),
    "base value": lambda: Case("CUSTOM", lambda s: s + "x", (LoudStr("a"),), (LoudStr("b"),)),
    "value in a named tuple": lambda: Case(
        "VALUE", lambda p: p.b + 1, (Pair(SENTINEL, 1),), (Pair(Loud(), LoudInt(1)),)
    ),
    "maxlen": lambda: Case(
        "CUSTOM",
        lambda d: d.append(1),
        (collections.deque([Loud()], 3),),
        (collections.deque([Loud()], 4),),
    ),
    "tensor, then a subclass": lambda: _tensor_case(
        lambda: (torch.ones(3).as_subclass(LoudTensor),)
    ),
    "tensor, then a loud one": lambda: _tensor_case((Loud(),)),
    "tensor under a mode": lambda: _tensor_case(_under_mode),
    "tensor, then another layout": lambda: _tensor_case(lambda: (torch.ones(3).to_sparse(),)),
}


def _kinds() -> set[str]:
    return set(re.findall(r"^GUARD\((\w+)", _KINDS.read_text(), re.M))


def test_every_kind_of_guard_has_a_case() -> None:
    covered = {kind for make in CASES.values() for kind in make().kinds.split()}
    assert covered == _kinds() - {"EXPR"}  # shows exact numbers, whose type is guarded before


class _listen:
    def __enter__(self) -> None:
        global _listening
        heard.clear()
        _listening = True

    def __exit__(self, *raised: object) -> None:
        global _listening
        _listening = False


@pytest.mark.parametrize("name", CASES)
def test_reasons_are_worded_without_user_code(name: str) -> None:
    case = CASES[name]()
    compiled = stator.compile(case.function, backend="eager", _keep_empty=True)
    compiled(*case.first)
    made = compiled.metrics["entries"]
    assert made > 0
    second = case.second() if callable(case.second) else case.second
    try:
        with stator.set_stance("fail_on_recompile"), _listen():
            with pytest.raises(RuntimeError, match="triggered by the following guard") as raised:
                compiled(*second)
            entries = compiled.compiler.entries()
            metrics = compiled.metrics
    finally:
        while _cleanup:
            _cleanup.pop()()
    assert heard == []
    assert len(entries) == made
    assert metrics["recompiles"][0] in str(raised.value)


# -- explanations --


def _explained() -> dict[str, Any]:
    loud, data = Loud(), {"k": Loud()}

    def keeps(x: torch.Tensor) -> Any:
        data["n"] = loud
        return x + 1, [loud, data["k"], Loud]

    def breaks(x: torch.Tensor) -> Any:
        y = x + 1
        print(end="")
        return y, loud is SENTINEL

    def calls_a_getter(x: torch.Tensor) -> Any:
        return x + 1, operator.methodcaller("keys")(data)

    return {"keeps": keeps, "breaks": breaks, "calls a getter": calls_a_getter}


@pytest.mark.parametrize("name", _explained())
def test_explanations_run_no_user_code(name: str) -> None:
    explained = stator.explain(_explained()[name])(torch.ones(3))
    assert explained.exception is None
    with _listen():
        text = explained.text(full=True)
        page = explained.html()
    assert heard == []
    assert "entry 1" in text
    assert page


@stator.allow_in_graph
def _in_graph(x: torch.Tensor, o: Any) -> torch.Tensor:
    return x + 1


class LoudCall:
    """Put into a graph as it is."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def __getattr__(self, name: str) -> Any:
        _hear(f"__getattr__ {name}")
        raise AttributeError(name)

    __repr__ = _loud_method("__repr__")


def test_a_target_is_named_without_asking_it() -> None:
    target = stator.allow_in_graph(LoudCall())
    explained = stator.explain(lambda x: target(x) * 2)(torch.ones(3))
    assert torch.equal(explained.result, torch.full((3,), 4.0))
    with _listen():
        explained.text(full=True)
        explained.html()
    assert heard == []


# -- breaks --

BREAKS: dict[str, Any] = {
    "a getter of a loud key": operator.itemgetter(SENTINEL),
    "a caller with a loud argument": operator.methodcaller("get", SENTINEL),
}


@pytest.mark.parametrize("name", BREAKS)
def test_breaks_show_callables_without_their_reprs(name: str) -> None:
    callable = BREAKS[name]

    def f(x: torch.Tensor) -> Any:
        y = x + 1
        try:
            callable(3)
        except Exception:
            pass
        return y

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    with _listen(), pytest.raises(stator.Unsupported):
        compiled(torch.ones(3))
    assert [what for what in heard if "repr" in what or "str" in what] == []
