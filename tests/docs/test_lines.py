"""Lines of pages have at most 120 characters, tables and code blocks included, as .editorconfig asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_habits import ROOT

MOST_CHARACTERS = 120
FOLDERS = (".github", "docs", "examples", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])

NOT_YET = {
    "docs/guarantees.md",
    "docs/messages.md",
}
"""Pages, and folders with pages, whose lines are still longer. What is finished leaves this list; nothing joins it."""


def _long(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [f"{page.name}:{number}" for number, line in enumerate(lines, 1) if len(line) > MOST_CHARACTERS]


def _places(page: Path) -> set[str]:
    """Return a page's own path and those of the folders that it is in."""
    path = page.relative_to(ROOT)
    return {place.as_posix() for place in (path, *path.parents)}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not _places(page) & NOT_YET], ids=lambda page: str(page.relative_to(ROOT))
)
def test_lines_fit_the_width(page: Path) -> None:
    assert _long(page) == []


def test_what_is_finished_has_left_the_list() -> None:
    unfinished = {place for page in PAGES if _long(page) for place in _places(page)}
    assert unfinished >= NOT_YET
