"""Keys and elements that are equal from call to call, but other objects: what comes out is this
call's own object, as in CPython. And a repr that runs while the same container is being shown."""

import reprlib
from collections import OrderedDict, deque

import pytest

import stator


def compiled(f):
    return stator.compile(f, backend="eager", _keep_empty=True)


def text(i):
    return "".join(["the ", "key ", str(i)])


KINDS = {
    "str": text,
    "int": lambda i: int(f"1000{i}"),
    "float": lambda i: float(f"{i}.5"),
    "complex": lambda i: complex(i, 2.5),
    "bytes": lambda i: b"by" + bytes([65 + i]),
    "tuple": lambda i: tuple([i, text(i)]),
    "frozenset": lambda i: frozenset([text(i)]),
    "range": lambda i: range(i, 1000),
}


class Named:
    pass


class Sub(dict):
    pass


def names(**given):
    return list(given), given


DICTS = {
    "for": lambda d: [k for k in d],
    "keys": lambda d: list(d.keys()),
    "list": lambda d: list(d),
    "reversed": lambda d: list(reversed(d)),
    "items": lambda d: [pair for pair in d.items()],
    "enumerate": lambda d: list(enumerate(d)),
    "zip": lambda d: list(zip(d, d.values())),
    "popitem": lambda d: d.popitem(),
    "copy": lambda d: (dict(d), d.copy()),
    "comprehension": lambda d: {k: 1 for k in d},
    "star": lambda d: ({**d}, [*d], {*d}),
    "next": lambda d: next(iter(d)),
    "sorted": lambda d: sorted(d, key=str),
    "max": lambda d: max(d, key=str),
    "set": lambda d: [k for k in set(d)],
    "fromkeys": lambda d: dict.fromkeys(d, 1),
    "stored": lambda d: d.setdefault("all of them", list(d)),
    "moved": lambda d: d.update(other={k: v for k, v in d.items()}),
    "compared": lambda d: [k for k in d if k == k and hash(k) != 0.5],
    "is": lambda d: [k is j for k in d for j in d.keys()],
    "str": lambda d: [str(k) for k in d][0] and [k for k in d],
    "attribute": lambda d: setattr(d["o"], "keys", list(d)) if "o" in d else None,
    "filter": lambda d: list(filter(None, d)),
    "unpacked": lambda d: [x for k in d if type(k) is tuple for x in k],
    "inner": lambda d: [x for k in d if type(k) is frozenset for x in k],
}
LISTS = {
    "sorted": lambda c: sorted(c, key=str),
    "first": lambda c: c[0],
    "compared": lambda c: [x for x in c if x != 5],
    "dict": lambda c: {x: 1 for x in c},
    "set": lambda c: next(iter({c[0]})),
    "index": lambda c: c[c.index(c[1])],
    "twice": lambda c: sorted([c[0], c[0], c[1]], key=str),
    "frozen": lambda c: [x for x in frozenset([c[0]])],
}
SETS = {
    "for": lambda c: [x for x in c],
    "next": lambda c: next(iter(c)),
    "list": lambda c: list(c),
    "pop": lambda c: c.pop(),
    "union": lambda c: list(c | {5}),
    "copy": lambda c: c.copy(),
    "frozenset": lambda c: [x for x in frozenset(c)],
}
MAKERS = {
    "dict": (DICTS, lambda keys: {k: i for i, k in enumerate(keys)}),
    "ordered": (DICTS, lambda keys: OrderedDict((k, i) for i, k in enumerate(keys))),
    "sub": (DICTS, lambda keys: Sub((k, i) for i, k in enumerate(keys))),
    "list": (LISTS, list),
    "tuple": (LISTS, tuple),
    "deque": (LISTS, deque),
    "set": (SETS, lambda keys: set(keys[:1])),
    "frozenset": ({k: v for k, v in SETS.items() if k != "pop"}, lambda keys: frozenset(keys[:1])),
}
CASES = [(maker, name, kind) for maker in MAKERS for name in MAKERS[maker][0] for kind in KINDS]


def parts(keys):
    """Each key, and what lies in it, by its address."""
    found = {}
    for i, key in enumerate(keys):
        found[id(key)] = ("own", i)
        if isinstance(key, (tuple, frozenset)):
            found.update({id(x): ("own", i, j) for j, x in enumerate(key) if type(x) is str})
    return found


def seen(value, own):
    if id(value) in own:
        return own[id(value)]
    if isinstance(value, dict):
        return [type(value), *((seen(k, own), seen(v, own)) for k, v in value.items())]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return [type(value), *(seen(x, own) for x in value)]
    return type(value), value


def outcome(f, make, kind):
    keys = [KINDS[kind](i) for i in range(2)]
    own, container = parts(keys), make(keys)
    return seen(f(container), own), seen(container, own)


@pytest.mark.parametrize("maker, name, kind", CASES)
def test_own_objects_come_out(maker, name, kind):
    programs, make = MAKERS[maker]
    f = programs[name]
    g = compiled(f)
    for _ in range(3):
        assert outcome(f, make, kind) == outcome(g, make, kind)
    # An entry ends with a frozenset that a guard has: those can be held weakly.
    assert g.metrics["traces"] <= 2 or g.metrics["drops"] or kind == "frozenset"


def test_names_of_keyword_arguments():
    g = compiled(lambda d: names(**d))
    for _ in range(3):
        d = {text(i).replace(" ", "_"): i for i in range(2)}
        own = parts(d)
        assert seen(g(d), own) == seen(names(**d), own)


@pytest.mark.parametrize(
    "f", [lambda o: list(vars(o)), lambda o: {**o.__dict__}, lambda o: [k for k in o.__dict__]]
)
def test_names_of_instances(f):
    g = compiled(f)
    for fresh in (False, True, True, False):
        o = Named()
        for i in range(2):
            o.__dict__[text(i) if fresh else f"key{i}"] = i
        own = parts(vars(o))
        assert seen(g(o), own) == seen(f(o), own)


UPDATES = {
    "update": lambda o, k: vars(o).update({k: 1}),
    "keywords": lambda o, k: vars(o).update(**{k: 1}),
    "pairs": lambda o, k: vars(o).update([(k, 1)]),
    "or": lambda o, k: vars(o).__ior__({k: 1}),
    "item": lambda o, k: vars(o).__setitem__(k, 1),
}


@pytest.mark.parametrize("name", UPDATES)
def test_names_that_are_written_to_instances(name):
    f, found = UPDATES[name], []
    for g in (f, compiled(f)):
        kind = type("Kind", (), {})
        found.append([])
        for i in range(4):
            o, key = kind(), text(7)
            g(o, key)
            found[-1].append([k is key for k in vars(o)])
    assert found[0] == found[1]


def test_interned_and_other_keys_are_told_apart():
    g = compiled(lambda d: [k for k in d])
    for keys in (["abc"], ["".join(["a", "bc"])], ["abc"], ["".join(["ab", "c"])]):
        d = dict.fromkeys(keys)
        assert g(d)[0] is keys[0]
    assert g.metrics["traces"] <= 2


def test_a_key_that_is_also_a_constant_of_the_code():
    def f(d, which):
        return [k for k in d] if which else ["a text"]

    constant = next(c for c in f.__code__.co_consts if c == "a text")
    g = compiled(f)
    for key in (constant, "".join(["a ", "text"]), constant):
        assert g({key: 1}, True)[0] is key
        assert g({key: 1}, False)[0] is constant


def test_one_object_at_two_places():
    g = compiled(lambda a, b: sorted(b, key=str))
    one, two = text(1), text(1)
    assert g([one], [one])[0] is one
    assert g([one], [two])[0] is two


# --- repr ---


class Shown:
    """Shows a container by a compiled function, maybe while that container is being shown."""

    def __init__(self, container, f):
        self.container, self.f = container, f

    def __repr__(self):
        return "<" + self.f(self.container) + ">"


SHOWN = {
    "list": lambda f: [c := [1], c.append(Shown(c, f))][0],
    "dict": lambda f: [c := {1: 2}, c.update(me=Shown(c, f))][0],
    "deque": lambda f: [c := deque([1]), c.append(Shown(c, f))][0],
    "ordered": lambda f: [c := OrderedDict(a=1), c.update(me=Shown(c, f))][0],
    "set": lambda f: [c := set(), c.add(Shown(c, f))][0],
    "tuple": lambda f: [c := [], t := (c, 1), c.append(Shown(t, f))][1],
    "values": lambda f: [c := {1: 2}, v := c.values(), c.update(me=Shown(v, f))][1],
    "nested": lambda f: [c := [[1]], c[0].append(Shown(c, f))][0],
    "sub": lambda f: [c := type("L", (list,), {})([1]), c.append(Shown(c, f))][0],
}
WAYS = {
    "repr": repr,
    "str": str,
    "format": lambda c: f"{c} {c!r}",
    "percent": lambda c: "%s %r" % (c, c),
    "within": lambda c: repr([c, (c,)]),
    "dunder": lambda c: c.__repr__(),
    "error": lambda c: repr(ValueError(c)),
    "part": lambda c: repr([c, len(c)]),
    "reprlib": lambda c: reprlib.repr(c),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", SHOWN)
def test_repr_within_repr(what, way):
    plain, f = WAYS[way], compiled(lambda c: WAYS[way](c))
    for outer in (repr, f, repr, str, plain, f):
        assert outer(SHOWN[what](f)) == outer_plain(outer, f, plain)(SHOWN[what](plain))


def outer_plain(outer, f, plain):
    return plain if outer is f else outer


def test_repr_alone_is_traced():
    f = compiled(repr)
    for n in range(3):
        assert f([1, [2]]) == "[1, [2]]"
    assert f.metrics["traces"] == 1 and not f.metrics["drops"]
