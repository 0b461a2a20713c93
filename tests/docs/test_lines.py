"""Lines of pages have at most 120 characters, tables and code blocks included, as .editorconfig asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_habits import ROOT

MOST_CHARACTERS = 120
FOLDERS = (".github", "deploy", "docs", "examples", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def _long(page: Path) -> list[str]:
    lines = page.read_text(encoding="utf-8").splitlines()
    return [f"{page.name}:{number}" for number, line in enumerate(lines, 1) if len(line) > MOST_CHARACTERS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_fit_the_width(page: Path) -> None:
    assert _long(page) == []
