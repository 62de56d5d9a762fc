"""Random valid Python programs, as source, from a stream of choices.

A program defines a few functions, generators, coroutines and classes, calls each of them, and ends
in a last call that leaves `result` behind or raises. It always ends: loops are bounded or burn fuel
in their header, and every function burns fuel at its start (prelude.tick).
"""

import sys
import warnings

from choices import Seeded
from expressions import KINDS, NAMES_PER_KIND, Expressions, Scope

MODERN = sys.version_info >= (3, 12)
DEPTH = 4
ERRORS = ["ValueError", "KeyError", "TypeError", "Oops", "ZeroDivisionError", "LookupError",
          "StopIteration", "IndexError", "AttributeError", "Exception"]  # fmt: skip

# Statements on one line. $ holes are those of expressions.
SIMPLE = [
    "show($?)", "show($i, $s)", "show($l, $d)", "print($s, $i, sep='|', end=';\\n')",
    "$.o.value = $i", "$.o.tag = $s", "$.o.kept = $i", "$.o.value += $i", "show($.o.kept, $.o.tag)",
    "$.o.extra = $i", "$.d[$s] = $i", "$.l[$:] = $l[:3]", "del $.l[$:]", "$.o[$i] = $i",
    "$.o[$:] = $i",
    "$.l.append($i)", "$.d.update($d)", "$.d.pop($s, None)", "$.l.sort()", "$.e.isdisjoint($l)",
    "$.l.extend($l[:3])", "$.d.setdefault($s, $i)", "$.l.insert($i, $i)", "pass", "$?", "$.o @ $i",
    "show($.o @ $l)", "show(sorted(locals(), key=str)[:9])", "show(sys._getframe().f_lineno)",
    "show(...)",
    "show(eval('1 + 2 * 3'), eval('(lambda q: q + 1)(2)'))", "exec('q = 1 + 2')",
    "exec(compile('3 + 4', '<fuzz single>', 'single'))", "show(*$l, *$t)", "show(**{})",
    "inner = [(lambda: $i) for q in (1, 2)]; show(inner[0]()); del inner",
    "import math as mathematics; show(mathematics.floor($r))",
    "import os.path as path_module; show(path_module.basename('a/b'))",
    "from math import gcd as common; show(common(12, $i))",
    "show(isinstance($?, Box), callable($.o))",
    "show(Noisy($i))", "noisy = Noisy($s)", "show((lambda *a, **k: (a, sorted(k)))(*$l, **$d))",
    "show(type($.o).__name__, $.o.__class__ is Box)",
    "box = $o; box.tick = tick; box.tick(); del box",
    "point = Point($i, $i); point.y += 2; show(point.x, point.y); del point.x",
    "assert $i is not None, $s",
    "box = Box($i); box[1:2] = 3; box[1] = $i; box[1] += 2; del box[1]; del box[:]",
    "pair = [$i, $i]; pair[0] += 1; pair[0], pair[1] = pair[1], pair[0]; del pair[0]; show(pair)",
    "words = {'k': $i}; words['k'] -= 2; del words['k']; show(words)", "(show)($i)",
    "show([*$d], {**$d})",
]  # fmt: skip

# The same, but these raise, always or by what their parts happen to be.
RISKY = [
    "del $.o.kept", "del $.o.extra", "del $.o.value", "$.l[$i] = $i", "$.d[$s] += $i",
    "del $.l[$i]",
    "del $.d[$s]", "$.l[0] += $i", "$.o[$i] += $i", "del $.o[$i]", "$.d.pop($s)", "$.l.pop()",
    "$.e.add($i)", "assert $c", "assert $c, $s", "from math import floor, nowhere",
    "next(iter($l))",
    "import no_such_module", "($.i).attr = 1", "($.i)[0] = 1", "del $.s[0]", "$.o.kept = None",
    "($.i)()",
    "show(*$i)", "show(**$l)", "show(**{1: 2})", "$.o.bump(scale=1, **{'scale': 2})",
    "$.o.bump(k=1, *$i)",
]  # fmt: skip

AUGMENTED = {
    "i": ["+= $i", "-= $i", "//= ($i or 1)", "%= 17", "&= $i", "|= $i", "^= $i", ">>= ($i & 3)"],
    "s": ["+= $s[:5]", "= $s[:9]"],
    "l": ["+= $l[:3]", "= $l[:9]"],
    "d": ["|= $d", "= $d"],
    "t": ["= $t[:6]", "+= ($i,)"],
    "e": ["|= $e", "-= $e", "&= $e", "^= $e"],
    "r": ["/= 2", "*= 0.5", "-= $r"],
    "o": ["+= $i", "-= $i", "*= 2"],
}

# Assignments to more than one target: the kinds of the targets, then the shape.
UNPACK = [
    ("ii", "{0}, {1} = $i, $i"), ("ii", "{0}, {1} = [$i, $i]"), ("il", "{0}, *{1} = [$i, *$l]"),
    ("li", "*{0}, {1} = (*$l, $i)"), ("ili", "{0}, *{1}, {2} = [1, *$t, 2]"),
    ("isi", "({0}, {1}), {2} = ($i, $s), $i"), ("ii", "{0}, {1} = $l"), ("ili",
    "{0}, *{1}, {2} = $t"),
    ("iii", "{0}, {1}, {2} = $i, $i, $i"), ("ii", "{0} = {1} = $i"), ("ii",
    "{0} = {1} = 3; {0}, {1} = {1}, {0}"),
    ("is", "[{0}, {1}] = $i, $s"), ("ll", "{0} = {1} = $l"), ("ii",
    "{0}, $.o.value, {1} = (1, $i, 2)"),
    ("ii", "{0}, $.d['k'] = $i, $i; {1} = {0}"), ("il", "{0}, *{1} = $.o"),
    ("iii", "{0} = {1} = {2} = 1; {0}, {1}, {2} = {2}, {0}, {1}"), ("iiii",
    "{0}, {1}, {2}, {3} = $l + [1, 2, 3]"),
]  # fmt: skip

RAISES = [
    "raise {e}", "raise {e}($s)", "raise {e}($i) from {f}('cause')", "raise {e}($s) from None",
    "raise",
    "raise {e}('a') from {f}", "raise $i", "blow({e}, $s)",
    "raise ExceptionGroup($s, [{e}(1), {f}(2)])",
    "raise ExceptionGroup('g', [ExceptionGroup('h', [{e}(1)]), {f}(2)])", "raise {e} from $.i",
]  # fmt: skip

SOURCES = [
    ("i", "range($i % 5)"), ("i", "$l"), ("i", "tuple($l)"), ("i", "sorted($e)"), ("s", "$d"),
    ("s", "$s"),
    ("ii", "enumerate($l)"), ("si", "$d.items()"), ("ii", "zip($l, $l)"), ("i", "$.o"), ("i",
    "(1, 2, 3)"),
    ("is", "[(1, 'x'), (2, 'y')]"), ("i", "iter($l)"), ("i", "reversed($l)"), ("i",
    "(q for q in $l)"),
    ("ii", "[(1, 2), (3, 4)]"), ("i", "map(lambda q: 10 // q, $l)"), ("i", "$t"),
]  # fmt: skip

CONTEXTS = [
    "Ctx($s)", "Ctx($s, True)", "Ctx($s, quiet=$c)", "Ctx($s, fail='enter')",
    "Ctx($s, fail='exit')",
    "Box($i)", "Box($i, 'quiet')", "$.o",
]  # fmt: skip

PATTERNS = [
    "0", "-1 | 1 | 2", "'a'", "None", "True", "int({i})", "str({s})", "[]", "[{i}]", "[{i}, *_]",
    "({i}, {j})", "[{i}, *{l}, {j}]", "[1, {i}] | [{i}, 2]", "{{'a': {i}}}", "{{'p': {i}, **{d}}}",
    "{{}}", "Box({i}, {s})", "Box(value={i})", "Box(0)", "Point({i}, y={j})", "Point(x=1)",
    "float({r})", "[[{i}], *_]", "{i} if $c", "(int() | str()) as {t}", "Box(value=1 | 3 as {i})",
    "dict()", "[int(), int() as {j}]", "-1.5", "sys.maxsize", "{i}",
]  # fmt: skip

SUBJECTS = [
    "$i", "$?", "$l", "$d", "{'a': $i, **$d}", "{'p': $i, 'q': $s}", "[$i, $i]", "($i, $s)", "$o",
    "Point($i, 2)", "[1, *$l]", "$s", "$t", "$r", "None",
]  # fmt: skip

MOVES = [
    "None",
    "None",
    "5",
    "'word'",
    "ValueError",
    "Oops",
    "StopIteration",
    "GeneratorExit",
    "'close'",
]


class Program(Expressions):
    def __init__(self, choices, size):
        super().__init__(choices)
        self.lines = []
        self.indent = 0
        self.left = 8 + choices.below(size)  # statements to go
        self.made = {"generator": [], "async": [], "asyncgen": []}  # (name, parameter kinds)
        self.classes = []

    def put(self, text):
        self.lines.append("    " * self.indent + text)

    def line(self, scope, template):
        self.put(self.fill(scope, template))

    def target(self, scope, kind, index=None):
        """A name of that kind to write: mostly the scope's own."""
        declared = [n for n in scope.declared if n[0] == kind]
        if declared and self.c.chance(40):
            return self.c.pick(declared)
        if index is None:
            index = self.c.below(NAMES_PER_KIND[kind])
        return scope.own(kind, index)

    def writable(self, scope, name):
        own = len(name) == 3 and name[1] == str(scope.level)
        return own or name in scope.declared

    # blocks

    def block(self, scope, statements=None):
        """An indented block. What it binds is only sometimes counted on afterwards."""
        self.indent += 1
        saved = scope.snapshot()
        for _ in range(statements or 1 + self.c.below(3)):
            self.statement(scope)
        if not self.c.chance(30):
            scope.readable = saved
        self.indent -= 1

    def statement(self, scope):
        self.left -= 1
        if self.left < 0 or self.indent > DEPTH + scope.level:
            self.simple(scope)
        else:
            self.c.weighted(STATEMENTS)(self, scope)

    # one-line statements

    def simple(self, scope):
        self.line(scope, self.c.pick(RISKY if self.c.chance(5) else SIMPLE))

    def assign(self, scope):
        kind = self.c.pick(KINDS)
        value = self.expr(scope, kind)
        name = self.target(scope, kind)
        note = ": object" if self.c.chance(8) and name not in scope.declared else ""
        self.put(f"{name}{note} = {value}")
        scope.bind(name)

    def augment(self, scope):
        kind = self.c.pick(KINDS)
        names = [n for n in scope.readable[kind] if self.writable(scope, n)]
        if not names and not self.c.chance(5):
            return self.assign(scope)
        name = self.c.pick(names) if names else scope.own(kind, 0)
        self.put(f"{name} " + self.fill(scope, self.c.pick(AUGMENTED[kind])))

    def unpack(self, scope):
        kinds, shape = self.c.pick(UNPACK)
        names = [scope.own(k, i) for i, k in enumerate(kinds)]
        self.line(scope, shape.format(*names))
        for name in names:
            scope.bind(name)

    def delete(self, scope):
        own = [n for k in KINDS for n in scope.readable[k] if self.writable(scope, n)]
        if not own:
            return self.simple(scope)
        name = self.c.pick(own)
        self.put(f"del {name}")
        if self.c.chance(60):
            scope.unbind(name)

    def leave(self, scope):
        """return, break or continue, where they may stand; under a condition most of the time."""
        ways = ["break", "continue"] if scope.loops else []
        if scope.is_function:
            ways.append("return" if scope.kind == "asyncgen" else self.fill(scope, "return $?"))
        if not ways:
            return self.simple(scope)
        way = self.c.pick(ways)
        if self.c.chance(80):
            self.line(scope, "if $c:")
            self.put("    " + way)
        else:
            self.put(way)

    def fail(self, scope):
        errors = {"e": self.c.pick(ERRORS), "f": self.c.pick(ERRORS)}
        text = self.c.pick(RAISES).format(**errors)
        if not self.c.chance(25):
            self.line(scope, "if $c:")
            text = "    " + text
        self.line(scope, text)

    # compound statements

    def branch(self, scope):
        self.line(scope, "if $c:")
        self.block(scope)
        if self.c.chance(30):
            self.line(scope, "elif $c:")
            self.block(scope)
        if self.c.chance(50):
            self.put("else:")
            self.block(scope)

    def loop_body(self, scope):
        scope.loops += 1
        self.block(scope)
        scope.loops -= 1
        if self.c.chance(25):
            self.put("else:")
            self.block(scope)

    def loop(self, scope):
        kinds, source = self.c.pick(SOURCES)
        names = [scope.own(k, i) for i, k in enumerate(kinds)]
        known = self.made["generator"]
        if known and self.c.chance(30):
            source, names = self.made_call("generator", scope), names[:1]
        self.put(f"for {', '.join(names)} in {self.fill(scope, source)}:")
        for name in names:
            scope.bind(name)
        self.put("    tick()")  # what is looped over may grow underway
        self.loop_body(scope)

    def while_loop(self, scope):
        form = self.c.pick(["while tick():", "while $c and tick():", "while tick() and not $c:",
                            "while not ($c or not tick()):"])  # fmt: skip
        self.line(scope, form)
        if form == "while tick():":
            self.put(self.fill(scope, "    if $c: break"))
        self.loop_body(scope)

    def attempt(self, scope):
        self.put("try:")
        self.block(scope)
        star = self.c.chance(20)
        handlers = self.c.below(3)
        for i in range(handlers):
            self.handler(scope, star, last=i == handlers - 1)
        if handlers and self.c.chance(30):
            self.put("else:")
            self.block(scope)
        if not handlers or self.c.chance(40):
            self.put("finally:")
            self.block(scope)

    def handler(self, scope, star, last):
        kind = self.c.pick([e for e in ERRORS if not (star and e == "ExceptionGroup")])
        if self.c.chance(30):
            kind = f"({kind}, {self.c.pick(ERRORS)})"
        if last and not star and self.c.chance(15):
            self.put("except:")
        else:
            named = self.c.chance(50)
            self.put(f"except{'*' if star else ''} {kind}{' as exc' if named else ''}:")
            if named:
                self.put("    " + self.c.pick(["show(type(exc), str(exc))", "exc.add_note('noted')",
                                               "show(exc.__context__)", "del exc",
                                               "saved = exc"]))  # fmt: skip
        loops, kind = scope.loops, scope.kind
        if star:  # except* may not be left by break, continue or return
            scope.loops, scope.kind = 0, {"function": "class"}.get(kind, kind)
            self.indent += 1
            self.simple(scope)
            if self.c.chance(30):
                self.put(self.c.pick(["raise", "blow(Oops)", "raise Oops('in star')"]))
            self.indent -= 1
            scope.loops, scope.kind = loops, kind
        else:
            self.block(scope)

    def with_block(self, scope):
        items = []
        for _ in range(1 + self.c.below(2)):
            item = self.fill(scope, self.c.pick(CONTEXTS))
            if self.c.chance(50):
                name = self.target(scope, "i")
                item += f" as {name}"
                scope.bind(name)
            items.append(item)
        if scope.awaits and self.c.chance(60):
            items = [
                i.replace("Box(", "ACtx(").replace("Ctx(", "ACtx(").replace("AACtx", "ACtx")
                for i in items
            ]
            self.put(f"async with {', '.join(items)}:")
        elif self.c.chance(30):
            self.put(f"with ({', '.join(items)}):")
        else:
            self.put(f"with {', '.join(items)}:")
        self.block(scope)

    def match(self, scope):
        self.line(scope, f"match {self.c.pick(SUBJECTS)}:")
        self.indent += 1
        cases = 1 + self.c.below(4)
        for at in range(cases):
            pattern = self.c.pick(PATTERNS)
            if pattern == "{i}" and at < cases - 1:
                pattern = "[{i}]"
            names = {k: scope.own(k, 0) for k in KINDS} | {"j": scope.own("i", 1)}
            text = pattern.format(**names)
            saved = scope.snapshot()
            for key, name in names.items():
                if f"{{{key}}}" in pattern:
                    scope.bind(name)
            self.put(f"case {self.fill(scope, text)}:")
            self.block(scope)
            scope.readable = saved
        self.indent -= 1

    def suspend(self, scope):
        if scope.kind == "generator":
            forms = [
                "yield $i",
                "show((yield $?))",
                "yield from $l",
                "yield",
                "yield $i, $s",
                "yield from $t",
            ]
            if self.made["generator"]:
                inner = self.made_call("generator", scope)
                forms += [f"yield from {inner}", f"show((yield from {inner}))"]
            self.line(scope, self.c.pick(forms))
        elif scope.awaits:
            self.suspend_async(scope)
        else:
            self.use_made(scope)

    def suspend_async(self, scope):
        forms = ["show(await Pause($s))", "await Pause($i)", "await ($i)"]
        if self.made["async"]:
            forms += [f"show(await {self.made_call('async', scope)})"] * 3
        if scope.kind == "asyncgen":
            forms += ["yield $i", "show((yield $i))", "yield await Pause($s)"]
        if self.c.chance(40):
            return self.line(scope, self.c.pick(forms))
        source = f"AIter({self.c.below(4)})"
        whole = self.c.chance(30)
        scope.deep += whole
        if self.made["asyncgen"] and self.c.chance(70):
            source = self.made_call("asyncgen", scope)
        scope.deep -= whole
        if whole:
            self.put(f"show([q async for q in {source} if q])")
        else:
            name = scope.own("i", self.c.below(3))
            self.put(f"async for {name} in {source}:")
            scope.bind(name)
            self.loop_body(scope)

    # definitions

    def made_call(self, kind, scope):
        name, params = self.c.pick(self.made[kind])
        return f"{name}({self.arguments([self.expr(scope, k) for k in params])})"

    def use_made(self, scope):
        """Drive a generator, coroutine or async generator made earlier."""
        kind = self.c.pick(["generator", "generator", "async", "asyncgen"])
        if not self.made[kind]:
            return self.simple(scope)
        call = self.made_call(kind, scope)
        moves = ", ".join(self.c.pick(MOVES) for _ in range(1 + self.c.below(5)))
        forms = {
            "generator": [f"step({call}, {moves})", f"show(list({call})[:9])",
                          f"show(next({call}))",
                          f"show(sum({call}, 0))", f"first, *others = {call}; del others"],
            "async": [f"show(drive({call}))", f"show(drive({call}, {self.c.below(4)}))"],
            "asyncgen": [f"step({call}.__anext__(), {moves})", f"show(drive({call}.asend(None)))",
                         f"show(drive({call}.athrow(Oops)))", f"show(drive({call}.aclose()))"],
        }  # fmt: skip
        self.put(self.c.pick(forms[kind]))

    def parameters(self, scope):
        """Kinds, and the source of a parameter list that all shapes of calls fit."""
        kinds = [self.c.pick(KINDS) for _ in range(self.c.below(4))]
        parts = [f"p{i}" for i in range(len(kinds))]
        if parts and self.c.chance(30):
            parts[-1] += f"={self.literal(kinds[-1])}"
        if MODERN or self.c.chance(50):
            parts = [p if "=" in p or not self.c.chance(15) else p + ": int" for p in parts]
        if parts and self.c.chance(20):
            parts.insert(1, "/")
        rest = self.c.chance(25)
        if rest:
            parts.append("*rest")
        if self.c.chance(25):
            parts += ([] if rest else ["*"]) + ["only=7"]
        if self.c.chance(20):
            parts.append("**more")
        return kinds, ", ".join(parts), rest

    def define(self, scope, kind="function"):
        """A function of one of the four kinds, in any scope; it can be called from here on."""
        name = self.name(
            {"function": "fn", "generator": "gen", "async": "co", "asyncgen": "ag"}[kind]
        )
        params, source, rest = self.parameters(scope)
        result = self.c.pick(KINDS)
        entry = (name, params, result)
        if kind == "function" and self.c.chance(12):
            self.functions.append(entry)  # may call itself
        if self.c.chance(12) and kind == "function":
            self.put(f"@deco({name!r})")
        generic = "[T]" if MODERN and self.c.chance(12) else ""
        arrow = " -> 'int'" if self.c.chance(8) else ""
        prefix = "async " if kind in ("async", "asyncgen") else ""
        self.put(f"{prefix}def {name}{generic}({source}){arrow}:")
        inner = Scope(scope.level + 1, kind, scope if scope.kind != "class" else scope.outer)
        for i, k in enumerate(params):
            inner.readable[k].append(f"p{i}")
        if rest:
            inner.readable["t"].append("rest")
        self.body(inner, result)
        if kind != "function":
            self.made[kind].append((name, params))
        elif entry not in self.functions:
            self.functions.append(entry)
        return entry

    def body(self, scope, result):
        known = len(self.functions)
        made = {k: len(v) for k, v in self.made.items()}
        self.indent += 1
        self.declare(scope)
        self.put("tick()")
        for kind in "il":
            name = scope.own(kind, 0)
            self.line(scope, f"{name} = ${kind}")
            scope.bind(name)
        for _ in range(2 + self.c.below(4)):
            self.statement(scope)
        if scope.kind in ("generator", "asyncgen"):
            self.line(scope, "yield $i")
        if scope.kind != "asyncgen":
            self.line(scope, f"return ${result}")
        self.indent -= 1
        # What was defined inside cannot be seen from outside.
        del self.functions[known:]
        for kind, count in made.items():
            del self.made[kind][count:]

    def declare(self, scope):
        """global and nonlocal declarations for some names of the scopes around."""
        names = [n for k in KINDS for n in scope.readable[k] if len(n) == 3 and n[1:].isdigit()]
        for name in names[:6]:
            if name[1] != str(scope.level) and self.c.chance(20):
                self.put(f"{'global' if name[1] == '0' else 'nonlocal'} {name}")
                scope.declared.append(name)

    def nested(self, scope):
        """A closure, and a use of it."""
        if scope.level >= 3:
            return self.simple(scope)
        kind = self.c.pick(["function", "function", "generator", "async"])
        name, params, *_ = self.define(scope, kind)
        args = self.arguments([self.expr(scope, k) for k in params])
        use = {"function": f"show({name}({args}))", "generator": f"show(list({name}({args}))[:9])",
               "async": f"show(drive({name}({args})))"}[kind]  # fmt: skip
        if kind == "async" and scope.awaits:
            use = f"show(await {name}({args}))"
        self.put(use)

    def klass(self, scope):
        if scope.level >= 3:
            return self.simple(scope)
        name = self.name("Class")
        base = self.c.pick(["(Box)", "", "(metaclass=Meta, flag=1)",
        *(f"({c})" for c in self.classes[-2:]),
                            "(Point)", "(Box, metaclass=type)", "(*[Box], **{})"])  # fmt: skip
        generic = "[T]" if MODERN and self.c.chance(15) else ""
        self.put(f"class {name}{generic}{base}:")
        inner = Scope(scope.level + 1, "class", scope)
        self.indent += 1
        functions = list(self.functions)
        for _ in range(1 + self.c.below(3)):
            self.c.pick([Program.class_value, Program.method, Program.class_statement])(self, inner)
        self.functions = functions
        self.indent -= 1
        if not scope.level and base in ("(Box)", "(Box, metaclass=type)", "(*[Box], **{})"):
            self.classes.append(name)
        value = self.fill(scope, "$i")
        use = self.c.pick([f"{name}({value})", f"{name}({value}) + 1", f"{name}.__mro__",
        f"{name}().method(2)",
                           f"sorted(vars({name}), key=str)[:9]", f"len({name})",
                           f"{name}()[:3]"])  # fmt: skip
        self.put(f"safely(lambda: {use})" if not scope.level else f"show({use})")

    def class_value(self, scope):
        kind = self.c.pick("isl")
        name = scope.own(kind, self.c.below(2))
        self.line(
            scope, self.c.pick([f"{name} = ${kind}", f"{name}: int = ${kind}", f"{name}: str"])
        )
        scope.bind(name)
        if MODERN and self.c.chance(20):
            self.line(scope, "type Local[T] = tuple[T, Box, $.?]")
            self.put("show(Local.__value__)")

    def class_statement(self, scope):
        self.statement(scope)

    def method(self, scope):
        tag = self.c.pick(
            ["", "", "@property", "@classmethod", "@staticmethod", "@functools.cache"]
        )
        if tag:
            self.put(tag)
        name = self.c.pick(["method", "__add__", "__enter__", "__getattr__", "bump", "__init__",
        "__eq__",
                            "__bool__", "__call__", "__init_subclass__", "__iter__"])  # fmt: skip
        self.put(f"def {name}(self, *args, **kwargs):")
        inner = Scope(scope.level + 1, "function", scope.outer)
        inner.readable["o"].append("self")
        inner.readable["t"].append("args")
        self.indent += 1
        self.put("tick()")
        self.put(self.c.pick(["show(__class__.__name__)", "super().__init__()",
        f"super().{name}(*args)",
                              "show(super().value)", "pass",
                              f"super(__class__, self).{name}(*args)"]))  # fmt: skip
        for _ in range(1 + self.c.below(2)):
            self.statement(inner)
        self.line(inner, self.c.pick(["return self", "return $i", "return None", "return $?"]))
        self.indent -= 1

    # the whole

    def arguments_of(self, scope, params):
        return "".join(", " + self.expr(scope, k) for k in params)

    def top_calls(self, scope, entries):
        for kind, entry in entries:
            args = self.arguments_of(scope, entry[1])
            name = entry[0]
            if kind == "function":
                self.put(f"attempt({name}{args})")
            elif kind == "generator":
                moves = ", ".join(self.c.pick(MOVES) for _ in range(2 + self.c.below(4)))
                call = f"{name}({args[2:]})"
                forms = [
                    f"attempt(lambda: step({call}, {moves}))",
                    f"attempt(lambda: list({call}))",
                ]
                self.put(self.c.pick(forms))
            elif kind == "async":
                self.put(f"attempt(lambda: drive({name}({args[2:]}), {self.c.below(5) - 1}))")
            else:
                self.put(f"async def use_{name}(): return [q async for q in {name}({args[2:]})]")
                self.put(f"attempt(lambda: drive(use_{name}()))")

    def write(self):
        scope = Scope(0, "module")
        if self.c.chance(10):
            self.put("from math import *")
        for kind in "isl":
            name = scope.own(kind, 0)
            self.put(f"{name} = {self.literal(kind)}")
            scope.bind(name)
        if MODERN and self.c.chance(10):
            self.put("type Alias[T] = dict[str, T]")
            self.put("show(Alias, Alias.__value__)")
        entries = []
        for _ in range(1 + self.c.below(4)):
            kind = self.c.weighted(DEFINITIONS)
            entries.append((kind, self.define(scope, kind)))
            if self.c.chance(20):
                self.klass(scope)
        self.top_calls(scope, entries)
        for _ in range(self.c.below(4)):
            self.left = max(self.left, 6)
            self.statement(scope)
        kind, (name, params, _) = self.c.pick(entries)
        args = self.arguments_of(scope, params)[2:]
        self.put(f"result = {name}({args})")
        return "\n".join(self.lines) + "\n"


DEFINITIONS = [(5, "function"), (3, "generator"), (2, "async"), (1, "asyncgen")]
STATEMENTS = [
    (8, Program.simple),
    (8, Program.assign),
    (4, Program.augment),
    (3, Program.unpack),
    (1, Program.delete),
    (3, Program.leave),
    (3, Program.fail),
    (4, Program.branch),
    (4, Program.loop),
    (2, Program.while_loop),
    (5, Program.attempt),
    (3, Program.with_block),
    (2, Program.match),
    (5, Program.suspend),
    (2, Program.use_made),
    (2, Program.nested),
    (1, Program.klass),
]


def program(choices, size=50):
    """The source of one program, of about that many statements at most."""
    source = Program(choices, size).write()
    while (line := unbound_declaration(source)) is not None:
        lines = source.splitlines(keepends=True)
        source = "".join([*lines[: line - 1], *lines[line:]])
    return source


def unbound_declaration(source):
    """The line of a nonlocal statement whose name is bound nowhere, or None.

    A binding expression may end up in a form that was not chosen after all.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "<fuzz>", "exec")
    except SyntaxError as error:
        if "no binding for nonlocal" not in error.msg:
            raise
        return error.lineno
    return None


def program_of_seed(seed):
    return program(Seeded(seed))


if __name__ == "__main__":
    print(program_of_seed(int(sys.argv[1])), end="")
