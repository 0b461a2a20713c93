"""The table of SECURITY.md: each row says what somebody cannot do, and names the tests that hold it."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_habits import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition("## Who can do what")[2].partition("\n## ")[0].splitlines()
    if line.startswith("|")
][2:]
WHO = ["tenant", "kubelet", "feed", "executor", "operator", "Kafka", "health port", "API server", "recording", "index"]


def test_everybody_who_reaches_something_has_a_row() -> None:
    assert len(ROWS) == len(WHO)
    for who, (first, *_) in zip(WHO, ROWS, strict=True):
        assert who in first


@pytest.mark.parametrize("row", ROWS, ids=WHO)
def test_each_row_names_tests_that_exist(row: list[str]) -> None:
    who, can, cannot, held_by = row
    assert who
    assert can
    assert cannot
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", held_by)
    assert named
    for file, test in named:
        found = list((ROOT / "tests").rglob(file))
        assert any(re.search(rf"\bdef {test}\b", each.read_text(encoding="utf-8")) for each in found), test
