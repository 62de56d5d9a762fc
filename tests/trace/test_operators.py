"""Operators, subscripts, iteration, building and text: compiled as in plain."""

import pytest
from worlds import check, load_cases

CASES = load_cases("cases_operators_")


@pytest.mark.parametrize("name", CASES)
def test_as_in_plain(name):
    check(CASES[name])
