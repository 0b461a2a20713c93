"""docs/conformance.md has exactly the rules that are judged, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
from evictstream.kit.conformance.feed_rules import FEED_RULES
from evictstream.kit.conformance.findings import ConformanceRule

PAGE = Path(__file__).parents[3] / "docs" / "conformance.md"


def rows(rules: Sequence[ConformanceRule[object]]) -> list[str]:
    return [f"| `{one.name}` | {one.text} | {'recommended' if one.is_recommended else ''} |" for one in rules]


@pytest.mark.parametrize(("title", "rules"), [("executors", EXECUTOR_RULES), ("feeds", FEED_RULES)])
def test_the_page_has_each_rule(title: str, rules: Sequence[ConformanceRule[object]]) -> None:
    section = PAGE.read_text().partition(f"## Rules for {title}\n")[2].partition("\n## ")[0]
    assert [" ".join(line.split()) for line in section.splitlines() if line.startswith("| `")] == [
        " ".join(row.split()) for row in rows(rules)
    ]
