"""Writes that few programs make: what they wrote is there after each call, the traced one and those
that run its plan."""

import contextvars

import pytest
from worlds import keep_empty


def cell():
    n = 1

    def write():
        nonlocal n
        del n

    def put():
        nonlocal n
        n = 1

    def look():
        try:
            return n
        except NameError:
            return "unbound"

    return write, put, look


class Key:
    """One with a hash and an idea of equality of its own."""

    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return self.n

    def __eq__(self, other):
        return isinstance(other, Key) and self.n == other.n


def dict_with_keys(act):
    d = {}

    def write():
        act(d)

    def put():
        d.clear()
        d.update({Key(1): 1, Key(2): 2, "a": 3})

    def look():
        return [(getattr(key, "n", key), value) for key, value in d.items()]

    return write, put, look


def delete_key(d):
    del d[Key(1)]


def pop_key(d):
    d.pop(Key(2))


def set_key(d):
    d[Key(3)] = 4
    d[Key(1)] = 5


def variable():
    v = contextvars.ContextVar("v")

    def write():
        v.set(7)

    return write, lambda: v.set(1), v.get


CASES = {
    "del of a closure's variable": cell,
    "del of a key with its own hash": lambda: dict_with_keys(delete_key),
    "pop of a key with its own hash": lambda: dict_with_keys(pop_key),
    "set of keys with their own hash": lambda: dict_with_keys(set_key),
    "set of a context variable": variable,
}


@pytest.mark.parametrize("name", CASES)
def test_is_there_after_each_call(name):
    write, put, look = CASES[name]()
    put()
    write()
    want = look()
    put()
    assert look() != want
    compiled = keep_empty(write)
    for _ in range(3):
        put()
        compiled()
        assert look() == want
