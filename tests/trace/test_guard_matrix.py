"""Whatever a program can read is changed between two calls: the result is plain Python's every time;
and where nothing that was read has changed, the entry is used again."""

import pytest
from worlds import check, load_cases

CASES = load_cases("cases_guard_")


@pytest.mark.parametrize("name", CASES)
def test_read_thing_changes_between_calls(name):
    check(CASES[name])
