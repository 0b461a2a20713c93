"""The oracle on decision records: those that belong to a command, those that are missing, those too many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kit.oracle.telling import Story, evicted, tainted, tolerating


def rules(story: Story) -> list[str]:
    return [violation.rule for violation in story.violations()]


def cancelled() -> Story:
    return tainted().say("Schedule", 10.1).node(12).say("Cancel", 12.1, verdict="TaintRemoved")


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("story", [evicted, cancelled])
def test_a_command_without_its_decision_is_named(story: Callable[[], Story], place: int) -> None:
    assert rules(story().without("decisions", place)) == ["no decision"]


@pytest.mark.parametrize("decision", ["Scheduled", "Moved", "Withdrawn", "Issued", "Retried", "Cancelled"])
def test_a_decision_too_many_is_named(decision: str) -> None:
    story = evicted()
    about = story.messages[2 if decision == "Scheduled" else 0]  # the other one has that decision
    assert rules(story.decide(decision, about)) == ["needless decision"]


def test_a_decision_that_comes_twice_is_named() -> None:
    story = evicted()
    assert rules(story.decide("Scheduled", story.messages[0])) == ["sent twice", "needless decision"]


def test_a_decision_that_contradicts_its_command_is_reported() -> None:
    story, other = evicted(), tainted().say("Schedule", 10.1, 14)
    story = story.without("decisions", 0).decide("Scheduled", other.messages[0])
    assert rules(story) == ["no decision", "needless decision"]


@pytest.mark.parametrize("decision", ["Due", "Reported", "Completed", "Moved"])
def test_some_decisions_have_no_command(decision: str) -> None:
    """A pod is moved in silence to what is due at once, as here at its `Evict`."""
    story = evicted()
    assert rules(story.decide(decision, story.messages[2])) == []


def test_an_unannounced_eviction_ends_without_a_command() -> None:
    story, unheard = tainted(tolerating(None)), tainted().say("Cancel", 12.1, verdict="TaintRemoved")
    assert rules(story.decide("Cancelled", unheard.messages[0])) == []
