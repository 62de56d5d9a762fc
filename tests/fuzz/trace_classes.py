"""Random class hierarchies, attribute reads and writes on them, and changes of the classes between
calls: programs in the form of trace_programs, about nothing but attribute lookup."""

NAMES = ["x", "y", "z"]
CALLS = 6

PRELUDE = '''
class Data:
    """A data descriptor."""
    def __init__(self, n):
        self.n = n
    def __get__(self, obj, owner=None):
        return ("data", self.n, obj is None)
    def __set__(self, obj, value):
        obj.__dict__["set_" + str(self.n)] = value
    def __delete__(self, obj):
        obj.__dict__["deleted"] = self.n

class Plain:
    """A descriptor that instance attributes hide."""
    def __init__(self, n):
        self.n = n
    def __get__(self, obj, owner=None):
        return ("plain", self.n, obj is None)

def method(n):
    def m(self, *args):
        return ("method", n, type(self).__name__, len(args))
    return m

def prop(n):
    def get(self):
        return ("prop", n, len(vars(self)))
    def put(self, value):
        self.__dict__["put"] = (n, value)
    return property(get, put)

def hook(n):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return ("hook", n, name)
    return __getattr__

def every(n):
    def __getattribute__(self, name):
        if name.startswith("_"):
            return object.__getattribute__(self, name)
        try:
            return ("every", n, object.__getattribute__(self, name))
        except AttributeError:
            return ("every", n, "none")
    return __getattribute__

def items(n):
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return (n, i)
    return __getitem__

def setter(n):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, (n, value))
    return __setattr__

def attempt(action, *args):
    try:
        return action(*args)
    except AttributeError as e:
        return "AttributeError"
    except (TypeError, IndexError) as e:
        return "TypeError or IndexError"

def calls(value, *args):
    return value(*args) if callable(value) else value

class Meta(type):
    pass
'''


class Classes:
    def __init__(self, choices):
        self.choices = choices
        self.number = 0

    def fresh(self):
        self.number += 1
        return self.number

    def value(self):
        """Something to put on a class."""
        n = self.fresh()
        return self.choices.weighted(
            [
                (3, str(n)), (2, f"method({n})"), (2, f"prop({n})"), (2, f"Data({n})"),
                (2, f"Plain({n})"), (1, f"classmethod(lambda cls: ({n}, cls.__name__))"),
                (1, f"staticmethod(lambda *a: ({n}, len(a)))"), (1, f"[{n}]"), (1, "None"),
            ]
        )  # fmt: skip

    def special(self):
        n = self.fresh()
        return self.choices.weighted(
            [
                (2, ("__getattr__", f"hook({n})")), (1, ("__getattribute__", f"every({n})")),
                (1, ("__setattr__", f"setter({n})")), (1, ("__len__", f"lambda self: {n % 3}")),
                (1, ("__bool__", f"lambda self: {n % 2 == 0}")), (1, ("__call__", f"method({n})")),
                (1, ("__eq__", f"lambda self, o: {n % 2 == 1}")),
                (1, ("__getitem__", f"items({n})")),
                (1, ("__contains__", f"lambda self, i: {n % 2 == 0}")),
                (1, ("__iter__", f"lambda self: iter([{n}])")),
                (1, ("__add__", f"lambda self, o: ({n}, 'add')")),
                (1, ("__radd__", f"lambda self, o: ({n}, 'radd')")),
                (1, ("__class_getitem__", f"classmethod(lambda cls, i: ({n}, i))")),
                (1, ("__init__", f"lambda self: self.__dict__.update(init={n})")),
                (1, ("__new__", f"staticmethod(lambda cls: object.__new__(cls))")),
            ]
        )  # fmt: skip

    def body(self):
        rows = []
        for name in NAMES:
            if self.choices.chance(35):
                rows.append(f"    {name} = {self.value()}")
        if self.choices.chance(25):
            name, value = self.special()
            rows.append(f"    {name} = {value}")
        return rows or ["    pass"]

    def classes(self):
        pick = self.choices.pick
        bases = ["A", "B"]
        lines = ["class A(metaclass=Meta):", *self.body(), "class B(A):", *self.body()]
        slots = self.choices.chance(30)
        lines += ["class C(B):", *(["    __slots__ = ('s', 'x')"] if slots else [])]
        body = [row for row in self.body() if not (slots and row.strip().startswith("x ="))]
        lines += body or ["    pass"]
        lines += [f"class D({pick(['B', 'A', 'C'])}):", *self.body()]
        lines += [
            "class M:",
            *self.body(),
            f"class E({pick(['B, M', 'M, A', 'C, M'])}):",
            *self.body(),
        ]
        return lines

    def object(self):
        return self.choices.pick(["o", "p"])

    def cls(self):
        return self.choices.pick(["A", "B", "C", "D", "E", "M", "Meta"])

    def read(self):
        o, name = self.object(), self.choices.pick([*NAMES, "missing", "s"])
        n = self.fresh()
        return self.choices.weighted(
            [
                (6, f"attempt(lambda: {o}.{name})"), (2, f"attempt(lambda: calls({o}.{name}, {n}))"),
                (2, f"attempt(lambda: type({o}).{name})"), (2, f"hasattr({o}, '{name}')"),
                (2, f"attempt(lambda: {self.cls()}.{name})"), (1, f"getattr({o}, '{name}', 'default')"),
                (1, f"attempt(lambda: super(B, {o}).{name})"), (1, f"bool({o})"),
                (1, f"attempt(lambda: len({o}))"), (1, f"attempt(lambda: {o}({n}))"),
                (1, f"attempt(lambda: {o} == p)"), (1, f"attempt(lambda: {o}[{n}])"),
                (1, f"attempt(lambda: {n} in {o})"), (1, f"attempt(lambda: list({o}))"),
                (1, f"attempt(lambda: {o} + p)"), (1, f"attempt(lambda: 1 + {o})"),
                (1, f"isinstance({o}, {self.cls()})"), (1, f"sorted(vars({o}))"),
                (1, f"attempt(lambda: type({o})().{name})"), (1, f"type({o}).__name__"),
                (1, f"attempt(lambda: {self.cls()}[{n}])"),
            ]
        )  # fmt: skip

    def write(self):
        o, name, n = self.object(), self.choices.pick([*NAMES, "s"]), self.fresh()
        return self.choices.weighted(
            [
                (4, f"attempt(setattr, {o}, '{name}', {n})"), (2, f"attempt(delattr, {o}, '{name}')"),
                (1, f"{o}.__dict__['{name}'] = {n}"), (1, f"vars({o}).pop('{name}', None)"),
            ]
        )  # fmt: skip

    def function(self):
        lines = ["def f(o, p):", "    out = []"]
        for _ in range(2 + self.choices.below(6)):
            if self.choices.chance(30):
                lines.append("    " + self.write())
            lines.append(f"    out.append({self.read()})")
        return [*lines, "    return out"]

    def change(self, number):
        lines = [f"def change{number}():", "    global o, p"]
        for _ in range(1 + self.choices.below(2)):
            cls, name = self.cls(), self.choices.pick(NAMES)
            special, made = self.special()
            target = self.choices.weighted(
                [
                    (3, "pass"), (6, f"{cls}.{name} = {self.value()}"),
                    (3, f"if '{name}' in vars({cls}): del {cls}.{name}"),
                    (2, f"vars({self.object()})['{name}'] = {self.fresh()}"),
                    (1, f"vars({self.object()}).clear()"), (2, f"{cls}.{special} = {made}"),
                    (2, f"if '{special}' in vars({cls}): del {cls}.{special}"),
                    (1, f"{self.object()}.__class__ = {self.choices.pick('BDE')}"),
                    (1, "D.__bases__ = (A,)"), (1, "D.__bases__ = (M, B)"), (2, "p = o"),
                    (2, f"o = {self.choices.pick('ABCDE')}()"), (2, f"p = {self.choices.pick('ABCDE')}()"),
                    (1, "Data.__set__ = lambda *a: None"), (1, "Plain.__set__ = lambda *a: None"),
                    (1, "Data.__get__ = lambda self, o, t=None: 'new get'"),
                    (1, "if '__set__' in vars(Data): del Data.__set__"),
                    (1, "p.__dict__ = o.__dict__"), (1, "o.__dict__ = dict(vars(o))"),
                ]
            )  # fmt: skip
            lines.append("    " + target)
        return lines

    def source(self):
        lines = [*PRELUDE.splitlines(), *self.classes(), "def world():"]
        lines += [
            f"    return dict(o={self.choices.pick('ABCDE')}(), p={self.choices.pick('ABCDE')}())"
        ]
        lines += self.function()
        for number in range(CALLS - 1):
            lines += self.change(number)
        return "\n".join(lines) + "\n"


def program(choices):
    return Classes(choices).source()
