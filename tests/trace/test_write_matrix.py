"""Every kind of outside object written in every way: state, identity, order and aliasing outside are
plain Python's after each call."""

import pytest
from worlds import check, load_cases

CASES = load_cases("cases_write_")


@pytest.mark.parametrize("name", CASES)
def test_written_thing_is_as_in_plain(name):
    check(CASES[name])
