"""Sessions shown in README.md and docs/ are what Python prints. A block that is marked with a version
(```python 3.12) runs on that version only, all others on each."""

import doctest
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def session(page: Path) -> str:
    """The page's session on this version, in one: later blocks use the names of earlier ones."""
    blocks = re.findall(r"^```python ?([\d.]*)\n(>>> .*?)^```", page.read_text(), re.DOTALL | re.M)
    return "\n".join(block for version, block in blocks if version in ("", VERSION))


@pytest.mark.parametrize("page", [page for page in PAGES if session(page)], ids=lambda p: p.name)
def test_sessions(page):
    test = doctest.DocTestParser().get_doctest(session(page), {}, page.name, str(page), 0)
    report = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert "".join(report) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_room_has_its_page():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in re.findall(r"\]\(([a-z]+\.md)\)", index)} == pages
    for room in (ROOT / "src").iterdir():
        assert not room.is_dir() or f"`src/{room.name}/`" in index
