"""Each event that operations.md names is logged somewhere, at a level that the page names."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LEVELS = {"info", "warning", "error", "critical"}


def rows() -> list[tuple[str, set[str]]]:
    """Events of the page's lists, with their levels."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("\n## Logs\n")[2].partition("\n## ")[0]
    entries = re.findall(r"(?m)^- ((?:`[^`]+`,? ?)+)\(([a-z, ]+)\):", section)
    return [(event, set(levels.split(", "))) for events, levels in entries for event in re.findall(r"`(.+?)`", events)]


@functools.cache
def logged() -> dict[str, set[str]]:
    """Levels by event, as calls have them; all levels for texts that are arguments of something else."""
    found: dict[str, set[str]] = defaultdict(set)
    texts = [f'"{event}' for event, _ in rows()]
    for path in (ROOT / "streams").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(one in text for one in texts):
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(func=ast.Attribute(attr=level), args=[ast.Constant(value=str(event)), *_]) if (
                    level in LEVELS
                ):
                    found[event].add(level)
                case ast.Constant(value=str(event)):
                    found.setdefault(event, set())
    return found


@pytest.mark.parametrize(("event", "levels"), rows())
def test_an_event_of_the_page_is_logged(event: str, levels: set[str]) -> None:
    assert levels <= LEVELS
    assert event in logged()
    assert logged()[event] <= levels


def test_the_page_has_the_lists() -> None:
    assert len(rows()) > 30
