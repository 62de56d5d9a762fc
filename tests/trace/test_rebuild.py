"""What a compiled function gives out is what plain Python would have made: kind, parts, order,
identity and cycles."""

import pytest
from worlds import check, load_cases

CASES = load_cases("cases_rebuild")


@pytest.mark.parametrize("name", CASES)
def test_rebuilt_thing_is_as_in_plain(name):
    check(CASES[name])
