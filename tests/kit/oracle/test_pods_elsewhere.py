"""The oracle on pods that are bound on another node under their names: a name has one holder in a cluster.

The node `c/n` has a taint from 10 on, its pod `pod` tolerates it for 5 seconds, and the run ends at 60.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.numbers import NUMBERS
from tests.kit.oracle.plan import plan
from tests.kit.oracle.telling import TAINT, Story, at, tainted, tolerating


def scheduled() -> Story:
    return tainted().say("Schedule", 10.1)


def elsewhere(
    story: Story, seconds: float, *, uid: str = "pod-2", kind: str = "MODIFIED", version: int = 0, epoch: int = 0
) -> Story:
    """Show a pod of the same name on another node."""
    return story.pod(seconds, tolerating(5), uid=uid, node="m", kind=kind, version=version, epoch=epoch)


ENDED: list[tuple[str, Callable[[], Story]]] = [
    ("a new pod", lambda: elsewhere(scheduled(), 12)),
    ("a new pod of the next epoch", lambda: elsewhere(scheduled(), 12, version=1, epoch=1)),
    ("the same pod, after a restore", lambda: elsewhere(scheduled(), 12, uid="pod", version=1, epoch=1)),
    (
        "one that had the name before",
        lambda: elsewhere(elsewhere(Story(), 3).pod(5, tolerating(5)).node(10, TAINT).say("Schedule", 10.1), 12),
    ),
    ("a new pod, and then its end", lambda: elsewhere(elsewhere(scheduled(), 12), 13, kind="DELETED")),
]
STAYS: list[tuple[str, Callable[[], Story]]] = [
    ("an older pod", lambda: elsewhere(scheduled(), 12, version=1)),
    ("a pod of the ended epoch", lambda: elsewhere(scheduled().pod(11, tolerating(5), epoch=1), 12, version=900)),
    ("the end of another pod", lambda: elsewhere(scheduled(), 12, kind="DELETED")),
    (
        "a pod that lost the name again",
        lambda: elsewhere(Story(), 3).pod(5, tolerating(5)).node(10, TAINT).say("Schedule", 10.1),
    ),
]


def gone(story: Story, seconds: float = 15.01) -> Story:
    return story.say("Evict", seconds).pod(seconds + 1, kind="DELETED", version=990, epoch=9)


@pytest.mark.parametrize(("_", "tell"), ENDED, ids=[name for name, _ in ENDED])
def test_who_takes_the_name_ends_the_eviction(_: str, tell: Callable[[], Story]) -> None:
    assert tell().say("Cancel", 12.1, verdict="PodReplaced").violations() == []
    assert tell().say("Cancel", 12.1, verdict="PodGone").violations() != []
    assert tell().violations() != []
    assert gone(tell(), 40).violations() != []


@pytest.mark.parametrize(("_", "tell"), STAYS, ids=[name for name, _ in STAYS])
def test_who_does_not_take_the_name_ends_nothing(_: str, tell: Callable[[], Story]) -> None:
    assert gone(tell()).violations() == []
    assert tell().say("Cancel", 12.1, verdict="PodReplaced").violations() != []


def test_a_pod_that_a_successor_overtook_may_be_taken() -> None:
    """The newer version changed nothing, so it may be forgotten when a worker ends."""

    def overtaken() -> Story:
        story = elsewhere(elsewhere(Story(), 5, version=50), 6, version=70)
        return story.pod(9, tolerating(5), version=60).node(10, TAINT)

    assert overtaken().violations() == []
    assert gone(overtaken().say("Schedule", 10.1)).violations() != []
    assert gone(overtaken().say("Schedule", 10.1)).violations(may_forget=True) == [], "seed 54504"
    assert gone(overtaken().say("Schedule", 10.1, 13)).violations(may_forget=True) != []


def test_what_was_issued_is_done_when_the_name_is_taken() -> None:
    assert elsewhere(scheduled().say("Evict", 15.01), 16).violations() == []
    assert {one.rule for one in scheduled().say("Evict", 15.01).violations()} == {"not repeated"}


def test_a_listing_ends_only_the_pods_of_its_range() -> None:
    story = elsewhere(scheduled(), 12).say("Cancel", 12.1, verdict="PodReplaced")
    assert story.listed("pods", 13, after="m").violations() == []


def test_the_plan_ends_with_the_name() -> None:
    spans = plan(elsewhere(tainted(), 12).inputs, NUMBERS.limits(), partitions=1)["pod"].spans
    assert (spans[-1].since_us, spans[-1].deadline_us) == (at(12), None)
