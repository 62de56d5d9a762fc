"""Operators whose methods change what the operator itself looks at, before they break: run once more, it
would not come to the method again."""

import collections

import ticks as t


class _Clears:
    """Equal to nothing, once it has emptied what it lies in."""

    def __init__(self, *held):
        self.held = held

    def __eq__(self, other):
        for each in self.held[0]:
            each.clear()
        t.tick("eq")
        return NotImplemented

    def __hash__(self):
        t.tick("hash")
        return 1


def lists_that_empty_each_other():
    a, b = [], []
    a.append(_Clears([b]))
    b.append(_Clears([a]))
    return a == b, len(a), len(b)


def a_list_that_is_searched_and_emptied():
    a = [_Clears([])]
    a[0].held = ([a],)
    return 5 in a, len(a)


def a_deque_that_is_searched_and_emptied():
    q = collections.deque()
    q.append(_Clears([q]))
    try:
        found = 5 in q
    except RuntimeError as e:
        found = str(e)
    return found, len(q)


def a_key_that_empties_its_dict():
    d = {}
    d[_Clears([d])] = 1
    try:
        found = d.get(1), 1 in d
    except RuntimeError as e:
        found = str(e)
    return found, len(d)


class _Remembers:
    """A descriptor that puts its value where it is found before the descriptor."""

    def __get__(self, o, kind=None):
        o.__dict__["value"] = 7
        t.tick("get")
        return o.__dict__["value"] + 1


class _Holder:
    value = _Remembers()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.__dict__[name] = 5
        t.tick("getattr")
        return self.__dict__[name] + 1

    def __getitem__(self, i):
        type(self).__getitem__ = _other
        t.tick("getitem")
        return i

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        t.tick("setattr")


def _other(self, i):
    return -i


def a_value_that_is_remembered():
    h = _Holder()
    return h.value, h.value


def an_attribute_that_is_made_when_missed():
    h = _Holder()
    return h.missed, h.missed, hasattr(h, "_no")


def a_method_that_replaces_itself():
    h = type("H", (_Holder,), {})()
    return h[3], h[3], h[4]


def a_property_that_is_replaced_by_its_value():
    class C:
        @property
        def value(self):
            type(self).value = 7
            t.tick("value")
            return 8

    c = C()
    return c.value, c.value


def a_class_that_is_left():
    class Other:
        def __add__(self, o):
            return "other"

    class Left:
        def __add__(self, o):
            self.__class__ = Other
            t.tick("add")
            return "left"

    x = Left()
    return x + 1, x + 1


def truth_that_changes():
    class T:
        def __bool__(self):
            T.__bool__ = lambda self: False
            t.tick("bool")
            return True

    x = T()
    return "a" if x else "b", "c" if x else "d"


def an_iterator_that_replaces_itself():
    class I:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            I.__iter__ = lambda self: iter([9])
            t.tick("iter")
            return self

        def __next__(self):
            self.n += 1
            t.tick(self.n)
            if self.n == 3:
                I.__next__ = _end
            return self.n

    i = I()
    return [x for x in i], [x for x in i]


def _end(self):
    raise StopIteration


def a_set_item_that_shrinks_its_list():
    class Index:
        def __index__(self):
            xs.clear()
            t.tick("index")
            return 0

    xs = [1, 2]
    try:
        xs[Index()] = 5
    except IndexError as e:
        return str(e), xs
    return xs


class _Misnamed:
    """Its special methods are functions that bear the names of others."""

    def __getitem__(self, *given):
        t.tick("index")
        return 1

    __index__ = __getitem__

    def same(self, other):
        t.tick("eq")
        return True

    __eq__ = same

    def __hash__(self):
        return 1

    def ask(self, name):
        self.__dict__[name] = 5
        t.tick("ask")
        return 6

    __getattr__ = ask


class _Missing(dict):
    def add(self, key):
        self[key] = 1
        t.tick("add")
        return 5

    __missing__ = add


def methods_under_other_names():
    xs, k, d = [10, 20, 30], _Misnamed(), _Missing()
    out = [xs[k], {_Misnamed(): 1}[k], k.missed, k.missed, d["x"], d["x"]]
    xs[k] = 5
    out.append(list(xs))
    del xs[k]
    return out, xs


def a_nan_in_sets():
    out = []
    for s in ({float("nan")}, {(1, float("nan"))}, {1, complex("nan")}):
        f = frozenset(s)
        (x,) = (x for x in f if x != 1)
        out.append(hash(f) == hash(frozenset(s)))
        t.tick(len(s))
        out.append((x in f, x in s, hash(f) == hash(frozenset(f)), {f: 1}[f], hash(x) == hash(x)))
    return out
