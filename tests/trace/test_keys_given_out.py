"""Equal str keys are one key, but may be several objects, and `is` tells. Which of them a program
gets from a dict, an instance or a function is the same compiled as plainly, also in calls of an
entry that was made with another one. CPython interns names of attributes that are set.

Left out: a dict of an instance that is written by `__dict__[key]`. Instances of a class share their
keys, so which of the equal objects such a dict has depends on what other instances had before."""

import itertools
import sys

import pytest
from worlds import keep_empty


class Thing:
    pass


class Answers:
    def __getattr__(self, name):
        return name


class AnswersFirst:
    def __getattribute__(self, name):
        return name


class Notes:
    def __setattr__(self, name, value):
        value.append(name)

    def __delattr__(self, name):
        seen.append(name)


seen = []


def with_name(name, value=1):
    thing = Thing()
    thing.__dict__[name] = value
    return thing


# Each takes a key, and gives objects of which each is that key, the interned one, or another.
def get_missing(key):
    return [getattr(Answers(), key)]


def get_first(key):
    return [getattr(AnswersFirst(), key)]


def get_default(key):
    return [getattr(Thing(), key, key)]


def set_by_method(key):
    got = []
    setattr(Notes(), key, got)
    return got


def delete_by_method(key):
    seen.clear()
    delattr(Notes(), key)
    return list(seen)


def set_inside(key):
    thing = Thing()
    setattr(thing, key, 1)
    return list(vars(thing)), list(thing.__dict__)


def store(key):
    d = {}
    d[key] = 1
    d[key + ""] = 2
    return list(d), d.popitem()[0]


def keywords(key):
    def f(**names):
        return list(names)

    return f(**{key: 1}), list(dict(**{key: 1}))


def made_class(key):
    return [k for k in vars(type("C", (), {key: 1})) if k == key]


def interned(key):
    return [sys.intern(key)]


def computed(key):
    return [getattr(Answers(), key[:2] + key[2:]) == key, getattr(Answers(), f"{key}")]


FROM_KEY = [get_missing, get_first, get_default, set_by_method, delete_by_method, set_inside]
FROM_KEY += [store, keywords, made_class, interned, computed]


# Each takes a dict with the key, or what has one.
def iterate(d):
    return [k for k in d], list(d), next(iter(d)), max(d), sorted(d), [*d], {*d}


def views(d):
    return list(d.keys()), [k for k, _ in d.items()], list({**d}), list(dict(d)), list(d.copy())


def pop(d):
    return d.popitem()[0]


def write(d):
    for k in d:
        d[k + ""] = 5
    return list(d)


def move(d):
    kept = {}
    for k in d:
        kept[k] = 1
    return list(kept), set(kept), {k: 1 for k in d}


FROM_DICT = [iterate, views, pop, write, move]
HOLDERS = {
    "dict": lambda key: {key: 1},
    "instance": lambda key: vars(with_name(key)),
    "set": lambda key: {key},
}


# Each takes an object and a key, and changes the object; its keys are looked at afterwards.
def set_outside(thing, key):
    setattr(thing, key, 1)


def set_twice(thing, key):
    setattr(thing, key, 1)
    setattr(thing, key[:1] + key[1:], 2)


def set_and_delete(thing, key):
    setattr(thing, key, 1)
    delattr(thing, key[:1] + key[1:])
    setattr(thing, key, 1)


CHANGES = [set_outside, set_twice, set_and_delete]

_numbers = itertools.count()


def fresh(key):
    return "".join(list(key))


def keys_of(name):
    """The same name by several objects, in turns; interned or not."""
    first, second = fresh(name), fresh(name)
    return [first, second, first, sys.intern(fresh(name)), second]


# An interned name that others know; the same, beginning with the interned one; and one that nobody
# has seen: interning makes it the one.
def known_names():
    return keys_of("several")


def known_names_first():
    return [sys.intern("several"), *keys_of("several")]


def new_names():
    name = f"a name that nobody else has {next(_numbers)}"
    return [fresh(name), fresh(name)]


NAMES = {"known": known_names, "known_first": known_names_first, "new": new_names}


def which(objects, key):
    """For each str in nested containers whether it is the key, and whether the interned one."""
    if isinstance(objects, str):
        return objects, objects is key, objects is sys.intern(objects)
    if isinstance(objects, (list, tuple, dict, set)):
        return [which(o, key) for o in objects]
    return objects


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("f", FROM_KEY, ids=lambda f: f.__name__)
def test_of_a_key(f, names):
    compiled = keep_empty(f)
    plain_keys, compiled_keys = NAMES[names](), NAMES[names]()
    for plain_key, key in zip(plain_keys, compiled_keys, strict=True):
        expected = repr(which(f(plain_key), plain_key)).replace(plain_key, key)
        assert repr(which(compiled(key), key)) == expected


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("f", FROM_DICT, ids=lambda f: f.__name__)
def test_of_what_has_keys(f, holder):
    if holder == "set" and f in (views, pop, write):
        pytest.skip("no dict")
    compiled = keep_empty(f)
    for key in known_names_first():
        expected = which(f(HOLDERS[holder](key)), key)
        assert which(compiled(HOLDERS[holder](key)), key) == expected


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_of_a_changed_object(change, names):
    compiled = keep_empty(change)
    plain_keys, compiled_keys = NAMES[names](), NAMES[names]()
    for plain_key, key in zip(plain_keys, compiled_keys, strict=True):
        plain, other = Thing(), Thing()
        change(plain, plain_key)
        compiled(other, key)
        expected = repr(which(list(vars(plain)), plain_key)).replace(plain_key, key)
        assert repr(which(list(vars(other)), key)) == expected
