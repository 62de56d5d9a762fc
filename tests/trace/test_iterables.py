"""C code that takes an iterable: what was taken from it, and what was stored, when it stops early
or the iterable raises, is as in CPython.

Every program of iterable_rows.py runs with each kind of iterable below, plain and compiled. What is
compared: the result or exception, the log of steps, the container, and what the iterable still
gives afterwards."""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
import subprocess
import sys
import types
from collections import OrderedDict, defaultdict, deque
from pathlib import Path

import pytest
from iterable_rows import INSTRUCTIONS, ROWS, Program
from worlds import HERE, check, module_of

from stator import _engine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "stage"))
rules = importlib.import_module("test_rules")
FULL = os.environ.get("STATOR_FULL") == "1"

# --- iterables ---

PRELUDE = """
import _bisect, _heapq, collections, functools, itertools, math, operator, types
from collections import OrderedDict, defaultdict, deque

class Boom(Exception):
    pass

class Sub(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, [value])

def text(e):
    return [type(x) if isinstance(x, E) else x for x in e.args]

def spread(*args, **names):
    return args, names

def through(src):
    yield from src

def nothing(c, log): pass
def boom(c, log): raise Boom("here")
def wrong(c, log): raise TypeError("of the program's own")
def missing(c, log): raise AttributeError("of the program's own")
def stop(c, log): raise StopIteration("early")
def look(c, log): log.append(len(c) if hasattr(c, "__len__") else "?")
def clear(c, log): getattr(c, "clear", int)()
def grow(c, log):
    if isinstance(c, dict): c[77] = 77
    elif isinstance(c, set): c.add(77)
    elif isinstance(c, (list, deque)): c.append(77)

def gen(items, c, log, at, act):
    i = -1
    for i, x in enumerate(items):
        log.append(("step", i))
        if at in (i, "all"): act(c, log)
        yield x
    log.append("end")
    if at == "end": act(c, log)

def closing(items, c, log, at, act):
    try:
        for i, x in enumerate(items):
            log.append(("step", i))
            if at == i: act(c, log)
            yield x
    finally:
        log.append("closed")

class Over:
    def over(self, c, log, at, act):
        self.rest = c, log, at, act
        return self
    def __iter__(self):
        self.rest[1].append("iter")
        return gen(list(self.content()), *self.rest)

class Set(Over, set):
    def content(self): return set.__iter__(self)

class List(Over, list):
    def content(self): return list.__iter__(self)

class Iter:
    def __init__(self, items, c, log, at, act):
        self.given, self.c, self.log, self.at, self.act, self.i = items, c, log, at, act, -1
    def __iter__(self):
        self.log.append("iter")
        return self
    def __next__(self):
        self.i += 1
        self.log.append(("next", self.i))
        if self.at in (self.i, "all"): self.act(self.c, self.log)
        if self.i >= len(self.given):
            if self.at == "end": self.act(self.c, self.log)
            raise StopIteration
        return self.given[self.i]

class Iterable:
    def __init__(self, *args):
        self.args = args
    def __iter__(self):
        items, c, log, at, act = self.args
        log.append("iter")
        if at == "iter": act(c, log)
        return gen(*self.args)

class Hinting(Iterable):
    def __iter__(self):
        return Hinted(*self.args)

class Sized(Iterable):
    def __len__(self):
        items, c, log, at, act = self.args
        log.append("len")
        if at == "len": act(c, log)
        return len(items)

class Hinted(Iter):
    def __length_hint__(self):
        self.log.append("hint")
        if self.at == "len": self.act(self.c, self.log)
        return 3

class Get:
    def __init__(self, items, c, log, at, act):
        self.given, self.c, self.log, self.at, self.act = items, c, log, at, act
    def __getitem__(self, i):
        self.log.append(("get", i))
        if self.at in (i, "all"): self.act(self.c, self.log)
        return self.given[i]

class Items(Iter):
    def items(self):
        self.log.append("items")
        return iter(self)

class Mapping(Items):
    def keys(self):
        self.log.append("keys")
        return gen([x[0] for x in self.given], self.c, self.log, self.at, self.act)
    def __getitem__(self, key):
        self.log.append(("get", key))
        return dict(x for x in self.given if len(x) == 2)[key]

def step(c, log, at, act):
    n = itertools.count()
    def one(x):
        i = next(n)
        log.append(("one", i))
        if at in (i, "all"): act(c, log)
        return x
    return one

class E:
    def __init__(self, v, c, log, at, act):
        self.v, self.c, self.log, self.at, self.act = v, c, log, at, act
    def hit(self, what):
        self.log.append((what, self.v))
        if self.at == self.v: self.act(self.c, self.log)
    def __hash__(self):
        self.hit("hash")
        return hash(self.v)
    def __eq__(self, other):
        self.hit("eq")
        return self.v == (other.v if isinstance(other, E) else other)
    def __lt__(self, other):
        self.hit("lt")
        return self.v < (other.v if isinstance(other, E) else other)
    def __gt__(self, other):
        self.hit("gt")
        return self.v > (other.v if isinstance(other, E) else other)
    def __bool__(self):
        self.hit("bool")
        return self.v > 2
    def __index__(self):
        self.hit("index")
        return self.v
    def __float__(self):
        self.hit("float")
        return float(self.v)
    def __str__(self):
        self.hit("str")
        return str(self.v)
    def __repr__(self):
        self.hit("repr")
        return f"E({self.v})"
    def __iter__(self):
        self.hit("iter")
        return iter((self.v, self.v + 1))
    def __add__(self, other):
        self.hit("add")
        return self.v + (other.v if isinstance(other, E) else other)
    __radd__ = __add__
    def __mul__(self, other):
        self.hit("mul")
        return self.v * (other.v if isinstance(other, E) else other)
    __rmul__ = __mul__
    __mod__ = __sub__ = __rsub__ = __mul__
"""

MAKERS = {
    "gen": "gen(items, c, log, at, act)",
    "class": "Iter(items, c, log, at, act)",
    "iterable": "Iterable(items, c, log, at, act)",
    "sized": "Sized(items, c, log, at, act)",
    "hinted": "Hinted(items, c, log, at, act)",
    "hinting": "Hinting(items, c, log, at, act)",
    "number": "3",
    "getitem": "Get(items, c, log, at, act)",
    "map": "map(step(c, log, at, act), items)",
    "filter": "filter(lambda x, one=step(c, log, at, act): one(x) is not None, items)",
    "chain": "itertools.chain(items[:1], gen(items[1:], c, log, at, act))",
    "zipped": "(x for x, _ in zip(gen(items, c, log, at, act), [1, 2, 3]))",
    "calls": "iter(functools.partial(next, gen(items, c, log, at, act)), 5)",
    "elements": "[E(x, c, log, at, act) for x in items]",
    "given": "gen([E(x, c, log, at, act) for x in items], c, log, None, nothing)",
    "set": "set(E(x, c, log, at, act) for x in items)",
    "itself": "c",
    "closing": "closing(items, c, log, at, act)",
    "subset": "Set(items).over(c, log, at, act)",
    "sublist": "List(items).over(c, log, at, act)",
    "nested": "[Iter(x, c, log, at, act) for x in items]",
    "triples": "[gen((*x, 1, 2), c, log, at, act) for x in items]",
    "items": "Items(items, c, log, at, act)",
    "mapping": "Mapping(items, c, log, at, act)",
}
ALL_ACTS = [
    (None, "nothing"), ("all", "look"), (0, "boom"), (1, "boom"), (2, "boom"), ("end", "boom"),
    (1, "wrong"), (1, "missing"), (1, "stop"), (1, "grow"), (2, "clear"),
]  # fmt: skip
SOME = [(None, "nothing"), (2, "boom"), (1, "clear")]
ITER = [*SOME, ("iter", "boom"), ("iter", "wrong")]
LENGTH = [*SOME, ("len", "boom"), ("len", "wrong"), ("len", "grow")]
OF_ELEMENTS = [(None, "nothing"), (2, "boom"), (4, "wrong"), (2, "grow"), (4, "clear")]
ACTS = {
    "gen": ALL_ACTS, "class": ALL_ACTS, "sized": LENGTH, "hinted": LENGTH, "elements": OF_ELEMENTS,
    "iterable": ITER, "hinting": LENGTH, "number": [(None, "nothing")],
    "given": OF_ELEMENTS, "set": OF_ELEMENTS[:2], "itself": [(None, "nothing")],
}  # fmt: skip

# --- the function that is compiled ---

# `inside`: all is made in the trace. `outside`: the container and the log come from outside.
# `given`: the iterable, too. `dropped`: nobody but the C code holds the iterable, and exceptions go
# out.
FORMS = {
    "inside": """
def f(items, at, act):
    log = []
    c = {container}
    src = {maker}
    r = None
    try:
        {body}
    except Exception as e:
        log.append((type(e).__name__, text(e)))
    return r, c, src, log
""",
    "outside": """
def f(items, at, act, c, log, keep):
    src = {maker}
    keep.append(src)
    r = None
    try:
        {body}
    except Exception as e:
        log.append((type(e).__name__, text(e)))
    return r, c
""",
    "dropped": """
def f(items, at, act, c, log):
    {body}
    log.append("after")
    return r, c
""",
    "given": """
def f(src, c, log):
    r = None
    try:
        {body}
    except Exception as e:
        log.append((type(e).__name__, text(e)))
    return r, c
""",
}

RESTS = """
def rest(o):
    found = []
    try:
        for _ in range(9):
            found.append(next(o))
    except Exception as e:
        found.append((type(e).__name__, str(e)))
    return found
"""


def source_of(program: Program, maker: str, form: str) -> str:
    body = program.body
    if form != "dropped":  # one level deeper
        body = "\n".join("    " + line for line in body.split("\n")).lstrip()
    if form == "dropped":
        body = body.replace("src", MAKERS[maker])
    text = FORMS[form].format(container=program.container, maker=MAKERS[maker], body=body)
    makes = f"def make(items, c, log, at, act):\n    return {MAKERS[maker]}\n"
    holds = f"def hold():\n    return {program.container}\n"
    return text + makes + holds


COMMON = compile(PRELUDE + RESTS, "<case iterables>", "exec")


def module_with(code: types.CodeType) -> types.ModuleType:
    """A module with classes and functions of its own."""
    module = module_of("")
    exec(COMMON, vars(module))
    exec(code, vars(module))
    return module


def finish(call, m, result, src, log, c):
    """What iterators still give, what was logged, and what is in the container."""
    r = result[0] if type(result) is tuple else None
    if hasattr(r, "__next__"):
        call.note(m.rest(r))
    if hasattr(src, "__next__"):
        call.note(m.rest(src))
    call.note(log)
    call.note(c)


def case_of(program: Program, maker: str, form: str, at, act: str):
    code = compile(source_of(program, maker, form), "<case program>", "exec")

    def case(call):
        m = module_with(code)
        items = eval(program.elements)
        action = getattr(m, act)
        for _ in range(2):  # the second time by the entry
            if form == "inside":
                result = call.loose(m.f, items, at, action)
                if type(result) is tuple:
                    finish(call, m, result, result[2], result[3], result[1])
                continue
            log, c, keep = [], m.hold(), []
            if form == "outside":
                result = call.loose(m.f, items, at, action, c, log, keep)
                finish(call, m, result, keep[0] if keep else None, log, c)
            elif form == "dropped":
                result = call.loose(m.f, items, at, action, c, log)
                finish(call, m, result, None, log, c)
            else:
                src = m.make(items, c, log, at, action)
                result = call.loose(m.f, src, c, log)
                finish(call, m, result, src, log, c)
        if form == "inside" and maker == "gen" and act == "nothing" and program.whole:
            call.traced(m.f)

    case.__name__ = f"{maker}-{form}-{act}@{at}"
    return case


def fits(program: Program, maker: str) -> bool:
    """Whether the program ends with that iterable, and can use its elements."""
    if maker == "itself":  # who appends to what it iterates never ends
        return not any(word in program.body for word in ("lambda", "for ", "map(", "cycle"))
    if maker in ("elements", "given", "set", "calls"):
        return "'" not in program.elements and "(" not in program.elements
    if maker in ("nested", "triples", "items", "mapping"):  # a set of these has no known order
        return program.elements.startswith("[(") and "items()" not in program.body
    if maker == "subset":
        return "[[" not in program.elements
    return True


# What `make test` runs; the full run takes all acts and forms.
QUICK = {
    ("gen", "inside"): ALL_ACTS,
    ("gen", "outside"): [(None, "nothing"), (2, "boom")],
    ("gen", "dropped"): [(None, "nothing")],
    ("gen", "given"): [(None, "nothing"), (2, "boom")],
    ("class", "inside"): [(None, "nothing"), (1, "boom"), (2, "clear")],
    ("class", "outside"): [(2, "boom")],
    ("closing", "dropped"): [(None, "nothing")],
    ("map", "inside"): [(2, "boom")],
    ("elements", "inside"): [(None, "nothing"), (2, "boom")],
    ("given", "inside"): [(2, "boom")],
    **{
        (maker, "inside"): [(None, "nothing")]
        for maker in "iterable sized hinted hinting number getitem filter itself subset".split()
        + "sublist nested triples items mapping".split()
    },
}


def wanted(maker: str, form: str, at, act: str) -> bool:
    if not FULL:
        return (at, act) in QUICK.get((maker, form), ())
    if form == "dropped":
        return maker in ("gen", "class", "closing") and act in ("nothing", "boom")
    if form == "given":
        return maker in ("gen", "class", "map", "itself") and act in ("nothing", "boom", "clear")
    return True


def cases(program: Program):
    for maker in filter(lambda maker: fits(program, maker), MAKERS):
        for at, act in ACTS.get(maker, SOME):
            if program.fragile and act in ("clear", "grow"):
                continue
            for form in FORMS:
                if wanted(maker, form, at, act):
                    yield case_of(program, maker, form, at, act)


def run_all(program: Program) -> None:
    faults = []
    for case in cases(program):
        try:
            check(case)
        except AssertionError as error:
            faults.append(f"--- {case.__name__}\n{error}")
    assert not faults, f"{len(faults)} differ in: {program.body}\n" + "\n".join(faults[:4])


KNOWN = {row[0] for row in _engine.rules()}


def exists(path: str) -> bool:
    return path in KNOWN


def programs() -> dict[str, tuple[set[str], Program]]:
    """Each program once, with the rows that it is about."""
    about: dict[Program, set[str]] = {}
    names: dict[Program, str] = {}
    for path, found in ROWS.items():
        for i, program in enumerate(found):
            about.setdefault(program, set()).add(path)
            names.setdefault(program, f"{path}-{i}")
    return {names[program]: (paths, program) for program, paths in about.items()}


PROGRAMS = programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows(name: str) -> None:
    paths, program = PROGRAMS[name]
    if not any(map(exists, paths)):
        pytest.skip("not in this Python")
    run_all(program)


@pytest.mark.parametrize("program", INSTRUCTIONS, ids=lambda p: p.body.replace("\n", ";"))
def test_instructions(program: Program) -> None:
    run_all(program)


# --- no row without a program ---

ITERATES = 1 << 3  # P_ITER of src/call/protocol.h


class Probe:
    asked = False

    def __iter__(self):
        Probe.asked = True
        return iter(())


SELVES = {
    list: [3, 1], tuple: (3, 1), dict: {1: 2}, set: {1}, frozenset: frozenset((1,)), str: "ab",
    bytes: b"ab", bytearray: bytearray(b"ab"), deque: deque((1, 2)), OrderedDict: OrderedDict(a=1),
    defaultdict: defaultdict(list), type({}.keys()): {1: 2}.keys(), int: 1, float: 1.0,
    type({}.items()): {1: 2}.items(), slice: slice(0, 1), range: range(3), type: type, object: Probe(),
}  # fmt: skip


def uses(path: str, callable) -> bool:
    """Whether it asks one of its arguments for an iterator."""
    owner = getattr(callable, "__objclass__", None)
    for args in [
        (Probe,), (Probe, 2), (2, Probe), (max, Probe), (Probe, Probe), (slice(0, 1), Probe),
        ([], Probe), ({}, Probe), (max, Probe, 1), ([1], slice(0, 1), Probe), (list, Probe),
        ("x", Probe, {}), (1, Probe, 2),
    ]:  # fmt: skip
        made = [Probe() if arg is Probe else copy.copy(arg) for arg in args]
        if owner is not None:
            self = SELVES[owner]
            made.insert(0, copy.copy(self) if type(self) in (list, dict, set, deque) else self)
        elif path.endswith(".__new__"):
            made.insert(0, callable.__self__)
        Probe.asked = False
        with contextlib.suppress(Exception):
            callable(*made)
        if Probe.asked:
            return True
    return False


def takers() -> set[str]:
    found = {
        row[0] for row in _engine.rules() if row[1] != "opaque" and (row[2] | row[3]) & ITERATES
    }
    for _, callable in rules.callables():
        path, kind = _engine.rule_for(callable) or ("", "opaque")
        known = getattr(callable, "__objclass__", None) in {None, *SELVES}
        bound = getattr(callable, "__self__", None)  # not the methods of somebody's object
        known = known and (bound is None or isinstance(bound, (types.ModuleType, type)))
        if kind != "opaque" and known and uses(path, callable):
            found.add(path)
    return found


def print_missing() -> None:
    print(*sorted(takers() - set(ROWS)))


def test_every_row_that_takes_an_iterable_has_a_program() -> None:
    """In a process of its own, since all callables are called."""
    code = f"import sys; sys.path[:0] = {['', *sys.path]!r}; import test_iterables as t; t.print_missing()"
    child = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, timeout=120
    )
    assert (child.returncode, child.stderr, child.stdout) == (0, "", "\n")
