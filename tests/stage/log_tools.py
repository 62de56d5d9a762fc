"""Random worlds of objects, guard programs over them, and changes: for tests of logs."""

import collections
import gc
import types

from stator import _engine
from tests.stage.guard_tools import *


class Slot:
    __slots__ = ("a", "b")


class Names(dict):
    pass


class Listed(list):
    pass


def offset_of(name):
    """Where an instance of Slot keeps an attribute."""
    return 16 + 8 * Slot.__slots__.index(name)


class Mutable:
    """A class that rounds change: each world has its own."""


def new_class(random, bases=(Mutable,)):
    return type("C", bases, {"shared": random.randrange(5), "other": (1, 2)})


def maker(value):
    def inner(a, b=value, *, c=value):
        return value

    return inner


class World:
    """Objects that hang from one root, all kinds that words can prove something about."""

    NAMES = ("a", "b", "c", "d")

    def __init__(self, random):
        self.random = random
        self.classes = [new_class(random) for _ in range(3)]
        self.root = self.instance(0)

    # -- objects ------------------------------------------------------------------------------

    def atom(self):
        choice = self.random.randrange(7)
        return (
            self.random.randrange(3),
            self.random.randrange(3) + 1000000,
            float(self.random.randrange(3)),
            "text%d" % self.random.randrange(3),
            None,
            self.random.random() < 0.5,
            (1, self.random.randrange(2)),
        )[choice]

    def value(self, depth):
        if depth >= 4:
            return self.atom()
        choice = self.random.randrange(14)
        if choice < 4:
            return self.atom()
        if choice < 7:
            return self.instance(depth)
        kind = (list, Listed, dict, Names, collections.OrderedDict, tuple)[self.random.randrange(6)]
        count = self.random.randrange(1, 4)
        if choice < 11:
            if issubclass(kind, dict):
                return kind((name, self.value(depth + 1)) for name in self.NAMES[:count])
            return kind([self.value(depth + 1) for _ in range(count)])
        if choice == 11:
            slotted = Slot()
            slotted.a = self.value(depth + 1)
            return slotted
        if choice == 12:
            return maker(self.value(depth + 1))
        return types.MethodType(maker(self.atom()), [self.value(depth + 1)])

    def instance(self, depth):
        o = self.random.choice(self.classes)()
        if self.random.random() < 0.4:
            o.__dict__  # the dict as an object: other storage
        for name in self.NAMES[: self.random.randrange(1, 4)]:
            setattr(o, name, self.value(depth + 1))
        return o

    def all(self, kinds):
        """Objects of these kinds below the root."""
        found, todo, seen = [], [self.root], set()
        while todo:
            o = todo.pop()
            if id(o) in seen or isinstance(o, type):
                continue
            seen.add(id(o))
            if isinstance(o, kinds):
                found.append(o)
            todo += [part for part, _ in self.parts(o)]
        return found

    # -- paths --------------------------------------------------------------------------------

    def parts(self, o):
        """(object, step of a path) for all that a program can read of an object."""
        steps = []
        if isinstance(o, Mutable):
            names = list(vars_of(o))
            steps += [(vars_of(o)[name], ("ATTR", name, 0)) for name in names]
        elif isinstance(o, dict):
            steps += [(dict.__getitem__(o, k), ("ITEM", k, 0)) for k in dict.keys(o)]
        elif isinstance(o, list):
            steps += [(part, ("LIST_ITEM", None, i)) for i, part in enumerate(o)]
        elif isinstance(o, tuple):
            steps += [(part, ("TUPLE_ITEM", None, i)) for i, part in enumerate(o)]
        elif isinstance(o, Slot):
            names = [name for name in Slot.__slots__ if hasattr(o, name)]
            steps += [(getattr(o, name), ("SLOT", name, offset_of(name))) for name in names]
        elif isinstance(o, types.FunctionType):
            for i, cell in enumerate(o.__closure__ or ()):
                steps.append((cell, ("CLOSURE", None, i)))
            for i, part in enumerate(o.__defaults__ or ()):
                steps.append((part, ("DEFAULT", None, i)))
            for name, part in (o.__kwdefaults__ or {}).items():
                steps.append((part, ("KWDEFAULT", name, 0)))
        elif isinstance(o, types.CellType):
            steps.append((o.cell_contents, ("CELL", None, 0)))
        elif isinstance(o, types.MethodType):
            steps += [
                (o.__func__, ("METHOD_FUNC", None, 0)),
                (o.__self__, ("METHOD_SELF", None, 0)),
            ]
        return steps

    def rows(self):
        """A program that reads about half of what there is."""
        rows, todo = [], [(self.root, L())]
        while todo and len(rows) < 120:
            o, path = todo.pop()
            rows += self.guards(o, path)
            for part, step in self.parts(o):
                if self.random.random() < 0.7:
                    todo.append((part, (*path, step)))
        return rows

    def guards(self, o, path):
        rows = [("TYPE", path, type(o))]
        if isinstance(o, (int, float, str, type(None))):
            return [("VALUE", path, o)]
        if isinstance(o, Mutable):
            kind = (*path, ("TYPE", None, 0))
            rows += [("TYPE_LOOKUP", kind, ("missing",)), ("NO_ATTR", path, "z")]
            rows += [("NEED", (*kind, ("TYPE_ATTR", "shared", 0)))]
            rows += [
                ("ATTR_NAMES", path, tuple(vars_of(o))),
                ("NEED", (*path, ("OWN_DICT", None, 0))),
            ]
        if type(o) in (list, dict, tuple, collections.OrderedDict):
            rows += [
                (self.random.choice([("LENGTH", path, None, len(o)), ("EMPTY", path, None, 0)]))
            ]
        if isinstance(o, dict):
            rows += [("ABSENT", path, "z"), ("KEYS", path, tuple(o))]
        if isinstance(o, types.FunctionType):
            rows += [("CODE", path, o.__code__)]
        return [row for row in rows if row[0] in ("TYPE", "NEED") or self.random.random() < 0.5]

    # -- changes ------------------------------------------------------------------------------

    def change(self):
        kinds = (Mutable, list, dict, Slot, types.FunctionType, types.CellType)
        o = self.random.choice(self.all(kinds) or [self.root])
        if self.random.random() < 0.1:
            o = self.random.choice(self.classes)
        choice = self.random.randrange(12)
        value = self.value(3)
        if isinstance(o, type):
            self.change_class(o, choice)
        elif isinstance(o, Mutable):
            self.change_instance(o, choice, value)
        elif isinstance(o, list):
            self.change_list(o, choice, value)
        elif isinstance(o, dict):
            self.change_dict(o, choice, value)
        elif isinstance(o, Slot):
            o.a = value if choice > 3 else o.a
        elif isinstance(o, types.CellType):
            o.cell_contents = value
        else:
            self.change_function(o, choice, value)
        if self.random.random() < 0.02:
            gc.collect()

    def change_class(self, o, choice):
        if choice < 6:
            o.shared = choice
        elif choice < 9:
            o.missing = 1
        elif hasattr(o, "missing"):
            del o.missing

    def change_instance(self, o, choice, value):
        name = self.random.choice((*self.NAMES, "z"))
        if choice == 0:
            o.__dict__  # only that it is there
        elif choice == 1:
            o.__dict__ = dict(o.__dict__)
        elif choice == 2:
            o.__dict__ = o.__dict__
        elif choice == 3:
            o.__class__ = self.random.choice(self.classes)
        elif choice == 4 and vars_of(o):
            # Another object of the same kind, perhaps at the same address.
            key = self.random.choice(list(vars_of(o)))
            kind = type(vars_of(o)[key])
            delattr(o, key)
            setattr(o, key, kind() if kind in (*self.classes, dict, list, Names) else value)
        elif choice == 5 and vars_of(o):
            key = self.random.choice(list(vars_of(o)))
            kept = getattr(o, key)
            delattr(o, key)
            if self.random.random() < 0.8:
                setattr(o, key, kept)
        elif choice == 6:
            for i in range(40):
                setattr(o, "more%d" % i, i)
            for i in range(40):
                delattr(o, "more%d" % i)
        elif choice == 7:
            o.__dict__[name] = value
        elif choice == 8 and vars_of(o):
            key = self.random.choice(list(vars_of(o)))
            setattr(o, key, getattr(o, key))
        else:
            setattr(o, name, value)

    def change_list(self, o, choice, value):
        if choice == 0:
            o.append(value)
        elif choice == 1 and o:
            o.pop()
        elif choice == 2:
            o.reverse()
        elif choice == 3:
            o[:] = list(o)
        elif choice == 4:
            o.extend(range(50))
            del o[-50:]
        elif choice == 5 and type(o) is Listed:
            o.attribute = value
        elif o:
            o[self.random.randrange(len(o))] = value

    def change_dict(self, o, choice, value):
        key = self.random.choice((*self.NAMES, "z"))
        if choice == 0:
            kept = dict(o)
            o.clear()
            o.update(kept)
        elif choice == 1 and o:
            key, kept = o.popitem()
            o[key] = kept if self.random.random() < 0.5 else value
        elif choice == 2 and type(o) is collections.OrderedDict and o:
            o.move_to_end(self.random.choice(list(o)), last=self.random.random() < 0.5)
        elif choice == 3:
            for i in range(40):
                o[i] = i
            for i in range(40):
                del o[i]
        elif choice == 4:
            o.setdefault(Text(key), value)
        elif choice == 5 and o:
            key = self.random.choice(list(o))
            kept = o.pop(key)
            o[key] = kept
        elif choice == 6 and o:
            key = self.random.choice(list(o))
            kind = type(o[key])
            del o[key]
            o[key] = kind() if kind in (dict, list, Names) else value
        elif choice == 7 and key in o:
            o[key] = o[key]
        else:
            o[key] = value

    def change_function(self, o, choice, value):
        if choice < 4:
            o.__defaults__ = (value,)
        elif choice < 6:
            o.__kwdefaults__ = {"c": value}
        elif choice < 8:
            o.__kwdefaults__["c"] = value
        elif choice < 10:
            o.__code__ = o.__code__.replace() if self.random.random() < 0.5 else o.__code__
        else:
            o.__dict__["d"] = value


class Text(str):
    """Not an exact str: tables that get it have another layout."""


def vars_of(o):
    """The instance's attributes, without making its dict."""
    return {name: getattr(o, name) for name in _engine.raw_names(o)}
