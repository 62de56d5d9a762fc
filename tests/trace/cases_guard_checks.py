"""Checks of src/guard/customs.def that only an odd call needs: all else is as it was then."""


def a_slot_of_the_same_object(call):
    def f(method, x):
        return method(x)

    call(f, (5).__add__, 3)
    call(f, (5).__sub__, 3)
    call(f, (5).__add__, 3)


def a_slot_of_the_same_list(call):
    items = [1, 2]

    def f(method):
        return method(1)

    call(f, items.__contains__)
    call(f, items.__getitem__)
    call(f, items.__contains__)


def a_set_with_the_same_items_in_a_larger_table(call):
    def f(s):
        s.add(8)
        return len(s)

    small, large = {1}, set(range(1, 200))
    for i in range(2, 200):
        large.discard(i)
    for s in (small, large, {1}):
        call(f, s)
        call(list, s)


def a_set_with_the_same_items_that_is_larger_anyway(call):
    def f(s):
        for i in range(100, 140):
            s.add(i)
        for i in range(100, 140):
            s.discard(i)
        s.add(8)
        s.add(260)
        return len(s)

    large = set(range(1, 2000))
    for i in range(2, 2000):
        large.discard(i)
    for s in ({1}, large, {1}):
        call(f, s)
        call(list, s)


def a_repr_while_one_is_running(call):
    shown = {"by": None}

    class Item:
        def __repr__(self):
            by, shown["by"] = shown["by"], None
            return "item" if by is None else by()

    items = [1, Item()]

    def f(items):
        return repr(items)

    call(f, items)
    seen = []
    shown["by"] = lambda: str(seen.append(call(f, items)))
    repr(items)
    call(lambda: list(seen))
    call(f, items)
