"""SECURITY.md: each party's section states what it can and cannot do, and names the tests that prove the second."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_habits import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
_, *SECTIONS = TEXT.partition("## Who can do what")[2].partition("\n## ")[0].split("\n### ")
WHO = ["tenant", "kubelet", "feed", "executor", "operator", "Kafka", "health port", "API server", "recording", "index"]


def test_everybody_who_reaches_something_has_a_section() -> None:
    assert len(SECTIONS) == len(WHO)
    for who, section in zip(WHO, SECTIONS, strict=True):
        assert who in section.partition("\n")[0]


@pytest.mark.parametrize("section", SECTIONS, ids=WHO)
def test_each_section_names_tests_that_exist(section: str) -> None:
    _, can, rest = re.split(r"\n\n(?=Can |Without an authorizer, can |Cannot )", section)
    assert can
    assert rest.startswith("Cannot ")
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", rest)
    assert named
    for file, test in named:
        found = list((ROOT / "tests").rglob(file))
        assert any(re.search(rf"\bdef {test}\b", each.read_text(encoding="utf-8")) for each in found), test
