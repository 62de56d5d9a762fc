"""Programs that a naive tracer gets wrong, and everyday ones."""

import pytest
from worlds import check, load_cases

CASES = {
    **load_cases("cases_naive"),
    **load_cases("cases_programs"),
    **load_cases("cases_hard"),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_plain(name):
    check(CASES[name])
