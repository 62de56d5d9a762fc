"""Programs with assert statements, in a file whose asserts pytest does not rewrite."""


def plain(x):
    assert x.sum() > 0
    return x + 1


def with_text(x):
    assert (x > 0).all(), "not positive"
    return x + 1


def with_made_text(x):
    assert x.sum() > 0, f"size {x.shape[0]}"
    return x + 1


def on_a_size(x):
    assert x.shape[0] < 4, "too long"
    return x + 1


def on_a_number(x, n):
    assert n, "none"
    return x + n


def on_an_item(x):
    assert x.sum().item() > 0
    return x + 1


def on_false(x):
    assert False, "never"


def caught(x, n):
    try:
        assert n > 3, n
    except AssertionError as error:
        return x + error.args[0]
    return x
