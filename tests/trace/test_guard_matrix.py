"""Whatever a program can read is changed between two calls: the result is plain Python's every time;
and where nothing that was read has changed, the entry is used again."""

import pytest
from worlds import check, load_cases

from stator import _engine

CASES = load_cases("cases_guard_")


@pytest.fixture(autouse=True, params=["steps", "words"])
def logs(request):
    """Each case with guards that are checked step by step, and with words from the first pass on."""
    before = _engine.guard_logs(2 if request.param == "words" else 0)
    yield
    _engine.guard_logs(before)


@pytest.mark.parametrize("name", CASES)
def test_read_thing_changes_between_calls(name):
    check(CASES[name])
