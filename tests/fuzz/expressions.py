"""Random expressions, typed loosely: an expression of a kind mostly gives a value of that kind.

Kinds are the first letter of the variables that hold them: i int, s str, l list of ints, d dict of
str to int, t tuple, e set of ints, r float, o object with operators. What is wrong on purpose
(other kind, name not bound, key missing) is rare enough that most lines do run.

Forms are templates: $i an expression of kind i, $.i a name or literal of it, $? one of any kind,
$.? a plain one of any kind, $c a condition, $: a slice, $< a comparison operator.
"""

import re

KINDS = "isldtero"
NAMES_PER_KIND = {"i": 3, "s": 2, "l": 2, "d": 1, "t": 1, "e": 1, "r": 1, "o": 2}
INTS = [0, 1, 2, 3, 5, 7, 10, 255, 256, 1000, -1, -6]
WORDS = ["", "a", "bc", "key", "ünï", "x y", "%s", "12"]
COMPARES = ["<", "<=", "==", "!=", ">", ">="]
RISK = 2  # percent
HOLE = re.compile(r"\$(\.?)([isldtero?c:<])")

FORMS = {
    "i": ["($i + $i)", "($i - $i)", "($i * $i % 10007)", "($i // 3)", "($i % 7)", "($i & $i)",
          "($i | $i)", "($i ^ $i)", "($i % 97 << ($i & 3))", "($i % 97 >> ($i & 3))",
          "($i % 97 ** ($i & 3))", "(-$i)", "(~$i)", "(+$i)", "(not $i)", "len($l)", "sum($l, 0)",
          "max($l, default=4)", "sorted({*$e, 1}, key=str)[0]", "sum(map(lambda q: q % 5, $l))",
          "[4, 5, 6][$i % 3]", "{'k': $i, $s: 2}['k']", "$.d.get($s, $i)", "$.o.value",
          "$.o.dynamic", "$.o.bump($i)", "$.o.bump(scale=$i)", "$.o.bump(*$l)",
          "$.o.bump(1, 2, $i, scale=2, q=$i)", "$.o($i, k=$i)", "$.o.twice($i)", "$.o(**$.d)",
          "int($r)", "($.o % 5)", "(lambda *a, k=$i, **kw: len(a) + k)($i, $i)",
          "getattr($.o, 'value', $i)", "len({$s, *$t})", "Point($i).x", "$.o.shared"],
    "s": ["($s + $s)[:30]", "$s.upper()", "$s[$:]", "($s[:5] * 2)", "str($i)",
          "'-'.join([$s, $s])[:30]",
          "type($?).__name__", "repr($t)[:30]", "$s.replace('a', $s)[:30]", "str($.o)[:30]",
          "'{} {x}'.format($i, x=$s)[:30]", "('%s|%d' % ($s, $i))[:30]", "'abc'[$i % 3]"],
    "l": ["[$i, $i, *$l][:9]", "($l + $l)[:9]", "$l[$:]", "sorted($l)", "list(reversed($l))",
          "[*$l, $i, *$l][:9]", "list(range($i % 6))", "($l[:4] * 2)", "list(map(abs, $l))",
          "list($.o)",
          "sorted($d.values())", "[1, 2, 3]", "[$i, $i]", "[4, 5, 6, 7]",
          "sorted($l, key=lambda q: -q)",
          "sorted($e, reverse=$c)", "list(filter(None, $l))", "[$i]"],
    "d": ["{**$d, $s: $i}", "dict($d, a=$i)", "($d | {$s: $i})", "{'p': $i, 'q': $i, 'u': 3}",
          "dict(zip('abc', $l))", "{$s: $i, 'z': 1, $s: 2}", "dict.fromkeys('ab', $i)", "{$s: $i}"],
    "t": ["($i, $s)", "(*$l, 1)", "tuple($l)", "divmod($i, 3)", "tuple($d.items())[:3]", "$t[$:]",
          "('k', 2, (3, None), ...)", "(1, 'two')", "tuple(enumerate($l))[:3]", "($i,)"],
    "e": ["($e | $e)", "($e & $e)", "($e - $e)", "($e ^ $e)", "set($l)", "{*$e, $i}", "{$i, $i}",
          "{1, 2, 3}", "frozenset($l)"],
    "r": ["($r + $i % 100)", "($r / 3)", "($r * 0.5)", "round($r, 2)", "(-$r)", "float($i % 1000)",
          "abs($r)", "(1 + $r // 3)", "($r - $r)", "($r % 7)", "(2.5 ** ($i & 3))"],
    "o": ["Box($i)", "($.o + $i)", "($i + $.o)", "($.o * 2)", "(-$.o)", "Box.make($i)", "(~$.o)",
          "Box($i, 'quiet')", "Box(tag=$s, value=$i)", "($.o - $.o)", "(+$.o)"],
    "c": ["$i $< $i", "$i < $i $< $i", "$i in $l", "$i not in $e", "$s in $d", "$i in $t",
          "$i in $.o",
          "$? is None", "$? is not None", "not $?", "($i $< $i and $?)", "($? or $i $< $i)",
          "isinstance($?, (int, str))", "$.?", "$s $< $s != ''", "$.o == $.o", "$r $< $i",
          "not ($c)", "$l == $l", "$s in $s", "$.o", "($c and not $c or $c)", "$.o < $.o != $.o"],
    ":": ["$.i:", ":$.i", "$.i:$.i", "::2", "$.i:$.i:-1", ":", "1:3"],
    "any": ["($same if $c else $same)", "($same or $same)", "($same and $same)",
            "(lambda q, w=$same: w)($same)", "(lambda: $same)()", "[$same, $?][0]"],
}  # fmt: skip

# Forms that raise, always or by what their parts happen to be.
RISKY = {
    "i": ["($i // $i)", "($i % $i)", "max($t)", "$l[$i]", "$.l[-1]", "$.d[$s]", "$.o[$i]",
          "$.o.half",
          "$.o.bump(**$.d)", "$.o.nothing", "sum($t)", "($i + $?)", "int($s)", "($.?).value"],
    "s": ["($s % $s)[:30]", "$s.split(sep=$s)[0]", "$s[$i]", "($s + $?)[:30]", "'-'.join($l)"],
    "l": ["list($t)", "sorted($t)", "[*$i]", "list(map(lambda q: 6 // q, $l))", "list($?)[:9]"],
    "d": ["{**$l}", "dict(a=$i, **$d)", "{$l: $i}", "dict($t)"],
    "t": ["divmod($i, $i)", "(*$i, 1)", "tuple($?)[:9]"],
    "e": ["{$l}", "set($?)", "($e | $l)"],
    "r": ["($r / $i)", "float($s)", "($r + $?)"],
    "o": ["Noisy($i)", "Point($i, y=$i)", "($.o + $?)", "blow(Oops)"],
    "wrong": ["None", "(1 // 0)", "nowhere", "blow(Oops)", "[][1]", "{}['k']", "None.attr",
              "int('x')",
              "Box(3).half", "len(5)", "missing_call(1)", "blow(KeyError, 3)", "Box(1)['k']"],
}  # fmt: skip


class Scope:
    """The names a block may read and write, and what may stand in it."""

    def __init__(self, level, kind, outer=None):
        self.level = level
        self.kind = kind  # module, function, generator, async, asyncgen, class
        self.outer = outer
        self.readable = outer.snapshot() if outer else {k: [] for k in KINDS}
        self.declared = []  # written through global or nonlocal
        self.loops = 0
        self.deep = 0  # inside how many expressions that bind names (lambda, comprehension)
        self.dying = False  # inside a finally: leaving it by return is rare

    @property
    def suspends(self):
        return self.kind in ("generator", "asyncgen") and not self.deep

    @property
    def awaits(self):
        return self.kind in ("async", "asyncgen") and not self.deep

    @property
    def is_function(self):
        return self.kind not in ("module", "class")

    def own(self, kind, index):
        return f"{kind}{self.level}{index}"

    def snapshot(self):
        return {k: list(v) for k, v in self.readable.items()}

    def bind(self, name):
        if name not in self.readable[name[0]]:
            self.readable[name[0]].append(name)

    def unbind(self, name):
        for names in self.readable.values():
            if name in names:
                names.remove(name)


class Expressions:
    """`expr(scope, kind)` gives source; functions that can be called are in `self.functions`."""

    def __init__(self, choices):
        self.c = choices
        self.functions = []  # (name, parameter kinds, result kind)
        self.depth = 0
        self.fresh = 0

    def name(self, prefix):
        self.fresh += 1
        return f"{prefix}_{self.fresh}"

    def fill(self, scope, template, same=None):
        """The template with its holes filled, left to right."""
        if same is not None:
            template = template.replace("$same", "$" + same)

        def hole(match):
            plain, what = match.groups()
            if what == "?":
                what = self.c.pick(KINDS)
            if what == "<":
                return self.c.pick(COMPARES)
            if what == "c":
                return self.condition(scope)
            if what == ":":
                return self.fill(scope, self.c.pick(FORMS[":"]))
            return self.atom(scope, what) if plain else self.expr(scope, what)

        # A hole in another function's body can neither await, yield nor bind a name of this scope.
        inside = "(lambda:" in template or " for q in " in template
        scope.deep += inside
        text = HOLE.sub(hole, template)
        scope.deep -= inside
        return text

    def condition(self, scope):
        if self.depth >= 3:
            return self.fill(scope, "$.i $< $.i")
        self.depth += 1
        text = self.fill(scope, self.c.pick(FORMS["c"]))
        self.depth -= 1
        return text

    def expr(self, scope, kind):
        if self.c.chance(1) and self.c.chance(30):
            return self.wrong(scope, kind)
        if self.depth >= 3 or not self.c.chance(70):
            return self.atom(scope, kind)
        self.depth += 1
        text = self.c.weighted(SHAPES)(self, scope, kind)
        self.depth -= 1
        return text

    def atom(self, scope, kind):
        names = scope.readable[kind]
        if names and self.c.chance(70):
            return self.c.pick(names)
        return self.literal(kind)

    def literal(self, kind):
        c = self.c
        if kind == "i":
            return c.pick(["True", "False", "(10**20)"]) if c.chance(8) else str(c.pick(INTS))
        if kind == "s":
            return repr(c.pick(WORDS))
        if kind == "r":
            return c.pick(["0.5", "2.0", "-1.25", "1e10", "0.0"])
        if kind == "o":
            return c.pick(["Box(1)", "Box(4, 'quiet')", "Box(3)", "Box(12, 'twelve')", "Box()"])
        items = [self.literal("i") for _ in range(c.below(4))]
        if kind == "l":
            return f"[{', '.join(items)}]"
        if kind == "t":
            return f"({', '.join(items)}, {self.literal('s')})" if items else "()"
        if kind == "e":
            return f"{{{', '.join(items)}}}" if items else "set()"
        return "{" + ", ".join(f"{self.literal('s')}: {i}" for i in items) + "}"

    def wrong(self, scope, kind):
        """Something that should not be here."""
        choice = self.c.below(3)
        if choice == 0:
            return self.c.pick(RISKY["wrong"])
        if choice == 1:
            return scope.own(kind, self.c.below(NAMES_PER_KIND[kind]))
        return f"({self.literal(self.c.pick(KINDS))})"

    # shapes: (scope, kind) to source

    def form(self, scope, kind):
        forms = RISKY if self.c.chance(RISK) else FORMS
        return self.fill(scope, self.c.pick(forms[kind]))

    def any_form(self, scope, kind):
        return self.fill(scope, self.c.pick(FORMS["any"]), kind)

    def call(self, scope, kind):
        """A call of a generated function with that result, in one of the shapes of calls."""
        known = [f for f in self.functions if f[2] == kind]
        if not known:
            return self.form(scope, kind)
        name, params, _ = self.c.pick(known)
        args = [self.expr(scope, k) for k in params]
        if self.c.chance(3):
            args = args[1:] if self.c.chance(50) else [*args, "1"]
        return f"{name}({self.arguments(args)})"

    def arguments(self, args):
        shape = self.c.below(6)
        if shape == 1 and args:
            return f"*({', '.join(args)},)"
        if shape == 2 and len(args) > 1:
            return f"{args[0]}, *[{', '.join(args[1:])}]"
        if shape == 3 and args:
            return ", ".join([args[0], *(f"p{i}={a}" for i, a in enumerate(args) if i)])
        if shape == 4 and args:
            keywords = ", ".join(f"'p{i}': {a}" for i, a in enumerate(args) if i)
            return f"{args[0]}, **{{{keywords}}}"
        if shape == 5 and len(args) > 1:
            keywords = "".join(f", p{i}={a}" for i, a in enumerate(args) if i)
            return f"*[{args[0]}]{keywords}, **{{}}"
        return ", ".join(args)

    def walrus(self, scope, kind):
        if not scope.is_function or scope.deep:
            return self.atom(scope, kind)
        value = self.expr(scope, kind)
        name = scope.own(kind, 0)
        scope.bind(name)
        return f"({name} := {value})"

    def suspend(self, scope, kind):
        if kind == "i" and scope.awaits and self.c.chance(70):
            return self.fill(scope, "(await Pause($s))")
        if kind == "i" and scope.suspends:
            return self.fill(scope, "((yield $i) or 0)")
        if kind == "l" and scope.kind == "async" and not scope.deep:
            return f"[q + 1 async for q in AIter({self.c.below(4)}) if q]"
        return self.form(scope, kind)

    def text(self, scope, kind):
        """An f-string; before 3.12 it holds no quotes of its own kind."""
        if kind != "s":
            return self.form(scope, kind)
        part = self.c.pick(
            ["{%s}", "{%s!r}", "{%s!s:>4}", "{%s!a}", "{%s:<{2 + 3}}", "{%s=}", "{%s:}"]
        )
        inner = self.atom(scope, self.c.pick("isro"))
        if any(ch in inner for ch in "'\"{\\"):
            inner = "1"
        more = self.fill(scope, " and {$.i}") if self.c.chance(50) else ""
        return "f'<" + part % inner + more + ">'"

    def comprehension(self, scope, kind):
        if kind not in COMPREHENSIONS:
            return self.form(scope, kind)
        shape, item = COMPREHENSIONS[kind]
        var, second = self.name("i"), ""
        scope.deep += 1
        source = self.expr(scope, self.c.pick("lte"))
        saved = scope.snapshot()
        scope.readable["i"].append(var)
        element = self.fill(scope, self.c.pick(item))
        where = self.fill(scope, " if $c") if self.c.chance(40) else ""
        if self.c.chance(25):
            second = f" for {self.name('i')} in ({var}, {self.expr(scope, 'i')})"
        scope.readable = saved
        scope.deep -= 1
        return shape % f"{element} for {var} in {source}{where}{second}"


COMPREHENSIONS = {
    "i": ("sum(%s)", ["$i"]),
    "l": ("[%s][:9]", ["$i", "$i", "(lambda: $i)()", "[$i for j in (1, 2)][0]"]),
    "t": ("tuple(%s)[:9]", ["$i", "$s"]),
    "e": ("{%s}", ["$i"]),
    "d": ("{%s}", ["str($i)[:3]: $i"]),
    "s": ("''.join(%s)[:30]", ["$s"]),
}
SHAPES = [
    (12, Expressions.form),
    (2, Expressions.any_form),
    (3, Expressions.call),
    (1, Expressions.walrus),
    (2, Expressions.suspend),
    (2, Expressions.text),
    (2, Expressions.comprehension),
]
