"""Each row of meta_rules.def, asked of tensors all of whose sizes are symbols. Other sizes that meet
the conditions are put in: what the rule said of the symbols is what it says of those sizes. So the
rule asked with plain sizes, which test_meta_table compares with torch, is what symbols are compared
with."""

import random

import pytest

torch = pytest.importorskip("torch")

from test_meta_table import ROWS, calls  # noqa: E402

from stator import _engine  # noqa: E402

DTYPES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4,
          torch.float16: 5, torch.float32: 6, torch.float64: 7, torch.complex32: 8,
          torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15}  # fmt: skip
UNKNOWN = 0
FUNCTION, METHOD, OPERATOR = range(3)
OPEN = 2**63 - 1


# Rows whose arguments have so many sizes in common that other sizes seldom fit.
TIED = {"nn.functional.multi_head_attention_forward", "_transformer_encoder_layer_fwd", "lstm", "gru",
        "rnn_tanh", "rnn_relu"}  # fmt: skip


class Unfit(Exception):
    """An argument that says nothing about sizes."""


class Asked:
    """A call in which sizes, strides and ints are named places: `values` has what is there."""

    def __init__(self, args, kwargs, ints):
        self.values = {}  # place → its value in the call
        self.strides = {}  # place of a stride → the place whose size and stride it is the product of
        self.ints = ints  # whether ints of arguments are symbols too
        self.args = self.place(args)
        self.kwargs = {name: self.place(value) for name, value in kwargs.items()}

    def place(self, value):
        if isinstance(value, torch.Tensor):
            return self.place_tensor(value)
        if isinstance(value, (torch.device, str)) or type(value) is complex:
            raise Unfit
        if isinstance(value, torch.dtype):
            return ("dtype", DTYPES.get(value, 99))
        if type(value) in (tuple, list, torch.Size):
            return (list if type(value) is list else tuple)(map(self.place, value))
        if type(value) is slice:
            return slice(*map(self.place, (value.start, value.stop, value.step)))
        if self.ints and type(value) is int and abs(value) < 2**31:
            name = f"int{len(self.values)}"
            self.values[name] = value
            return ("at", name)
        return value

    def place_tensor(self, t):
        """A stride that is a size times the stride of another dimension is that product."""
        name = f"t{len(self.values)}"
        for d in range(t.dim()):
            self.values[f"{name}.size{d}"] = t.size(d)
            self.values[f"{name}.stride{d}"] = t.stride(d)
        order = sorted(range(t.dim()), key=lambda d: (t.stride(d), -d))
        for inner, outer in zip(order, order[1:], strict=False):
            if t.stride(outer) == t.size(inner) * t.stride(inner) and t.stride(outer) > 0:
                self.strides[f"{name}.stride{outer}"] = (
                    f"{name}.size{inner}",
                    f"{name}.stride{inner}",
                )
        dims = range(t.dim())
        return ("tensor", DTYPES.get(t.dtype, 99), *(
            tuple(("at", f"{name}.{what}{d}") for d in dims) for what in ("size", "stride")
        ), t.requires_grad)  # fmt: skip

    def others(self, rng):
        """Other values: what was equal often stays equal."""
        again = {}
        values = {}
        for name, value in self.values.items():
            if name in self.strides:
                continue
            if name.startswith("t") and value < 2 or rng.random() < 0.2:
                values[name] = value
            elif value in again and rng.random() < 0.8:
                values[name] = again[value]
            else:
                values[name] = again[value] = rng.choice([value, 1, 2, 3, 4, 6, 8, 12, value * 2])
            if name.startswith("int") and rng.random() < 0.5:
                values[name] = value if rng.random() < 0.7 else rng.randint(-4, 8)
        for name in self.strides:
            self.stride(name, values)
        return values

    def stride(self, name, values):
        if name not in values:
            size, inner = self.strides[name]
            values[name] = values[size] * self.stride(inner, values)
        return values[name]

    def fill(self, value, at):
        if type(value) is tuple and value[:1] == ("at",):
            return ("number", at[value[1]])
        if type(value) is tuple and value[:1] == ("tensor",):
            sizes, strides = (tuple(at[v[1]] for v in part) for part in value[2:4])
            return (*value[:2], sizes, strides, value[4])
        if type(value) in (tuple, list):
            return type(value)(self.fill(v, at) for v in value)
        if type(value) is slice:
            return slice(*(self.fill(v, at) for v in (value.start, value.stop, value.step)))
        return value

    def ask(self, s, name, way, at):
        args = tuple(self.fill(a, at) for a in self.args)
        return s.ask(name, way, args, {k: self.fill(v, at) for k, v in self.kwargs.items()})

    def symbols(self, s, low):
        """Each place as a number of `s`."""
        at = {}
        for name, value in self.values.items():
            if name in self.strides:
                continue
            fixed = name.startswith("t") and value < (2 if "stride" in name else low)
            least = -OPEN if name.startswith("int") else 0 if "stride" in name else low
            at[name] = s.plain(value) if fixed else s.symbol(name, value, least, OPEN)
        for name in self.strides:
            self.symbol_stride(s, name, at)
        return at

    def symbol_stride(self, s, name, at):
        if name not in at:
            size, inner = self.strides[name]
            at[name] = s.apply("mul", at[size], self.symbol_stride(s, inner, at))
        return at[name]


def told(answer, value):
    """An answer with each number as `value` has it."""
    what, results, number = answer
    made = [(dtype, *(tuple(map(value, part)) for part in parts), grad)
            for dtype, *parts, grad in filter(None, results)]  # fmt: skip
    return what, made, number if number is None or isinstance(number, bool) else value(number)


def plain_answer(asked, name, way, values):
    s = _engine.Sizes()
    return told(asked.ask(s, name, way, {p: s.plain(v) for p, v in values.items()}), s.hint)


def check(rng, name, way, args, kwargs):
    """How often other sizes met the conditions; None: the rule does not answer."""
    try:
        asked = Asked(args, kwargs, rng.random() < 0.5)
    except Unfit:
        return None
    if plain_answer(asked, name, way, asked.values)[0] == UNKNOWN:
        return None
    s = _engine.Sizes()
    low = rng.choice([0, 1, 2])
    at = asked.symbols(s, low)
    answer = asked.ask(s, name, way, at)
    assert told(answer, s.hint) == plain_answer(asked, name, way, asked.values)
    conditions = s.conditions()
    met = 0
    for _ in range(6):
        values = asked.others(rng)
        if any(v < low for n, v in values.items() if "size" in n and asked.values[n] >= low):
            continue
        if not all(s.evaluate(c, values) is True for c in conditions):
            continue
        met += 1
        found = told(answer, lambda n, values=values: s.evaluate(n, values))
        expected = plain_answer(asked, name, way, values)
        text = [s.object(c) for c in conditions]
        assert found == expected, f"{name} {asked.args} {asked.kwargs} {values} {text}"
    return met


@pytest.mark.parametrize("name", ROWS)
def test_what_a_rule_says_of_symbols_holds_for_sizes(name):
    rng = random.Random(name)
    made = list(calls(name))
    rng.shuffle(made)
    ways = [FUNCTION] if "." in name else [FUNCTION, METHOD, OPERATOR]
    answered = met = 0
    for args, kwargs in made:
        found = check(rng, name, rng.choice(ways), args, kwargs)
        answered += found is not None
        met += found or 0
        if answered == 60:
            break
    if answered == 0:
        pytest.skip("what its rule answers has no sizes")
    assert met > answered / 8 or name in TIED
