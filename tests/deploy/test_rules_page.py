"""docs/kubernetes-rules.md: its examples run, and the calls and links that it names exist."""

from __future__ import annotations

import re

import pytest

from evictstream.kit.rules import admission, kubectl, scheduling, selectors, validation
from evictstream.kit.upstream import lifecycle
from evictstream.models import kubernetes
from tests.deploy.pages import ROOT, Example, examples, page, section

NAME = "kubernetes-rules.md"
PYTHON = [example for example in examples(page(NAME)) if example.words == ("python",)]


@pytest.mark.parametrize("example", PYTHON, ids=lambda example: f"line {example.line}")
def test_examples_print_what_stands_behind_them(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(example.text, NAME, "exec"), {})  # noqa: S102  # our own page
    promised = [line.removeprefix("# ") for line in example.text.splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == promised


@pytest.mark.parametrize(
    ("title", "package"),
    [
        ("Objects and limits", validation),
        ("Matching", kubernetes),
        ("Label selectors", selectors),
        ("How long a pod may stay", kubernetes),
        ("Scheduler and kubelet", scheduling),
        ("Where taints come from", lifecycle),
        ("Zones and rate limits", lifecycle),
        ("How many nodes an outage taints", lifecycle),
        ("Where tolerations come from", admission),
        ("kubectl taint", kubectl),
    ],
)
def test_calls_exist(title: str, package: object) -> None:
    """A call is a name in lower case with an underscore that stands in the cell of a table or with its arguments."""
    text = section(page(NAME), title)
    named = set(re.findall(r"`([a-z]+(?:_[a-z0-9]+)+)(?:\([^`]*\))?`", text)) - {"comparison_operators"}
    assert named
    assert {name for name in named if not hasattr(package, name)} == set()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page(NAME)):
        assert (ROOT / "docs" / target).exists(), target
