"""The oracle on stories with listings, epochs, foreign clusters and `Accepted`, each told right and broken.

The node `c/n` has a taint from 10 on, its pod `pod` tolerates it for 5 seconds, and the run ends at 60.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.faults.numbers import NUMBERS
from tests.kit.oracle.plan import plan
from tests.kit.oracle.telling import TAINT, Story, at, tainted, tolerating

ACCEPTED_SILENCE, ACCEPTED_LIMIT = NUMBERS.accepted_silence_seconds, NUMBERS.accepted_limit_seconds


def ended(story: Story, verdict: str) -> Story:
    """What was heard by 10.7 s ends what is scheduled."""
    return story.say("Schedule", 10.1).say("Cancel", 10.8, verdict=verdict)


def stayed(story: Story) -> Story:
    """It changes nothing: the eviction is issued, and the pod goes."""
    return story.say("Schedule", 10.1).say("Evict", 15.01).pod(16, kind="DELETED", version=800, epoch=9)


def next_epoch(seconds: float) -> Story:
    """Etcd is restored to versions below all that was heard; a listing of both kinds says so, and holds everything."""
    story = tainted().node(seconds, TAINT, version=1, epoch=1).pod(seconds, tolerating(5), version=1, epoch=1)
    story.listed("nodes", seconds, "node", version=1, epoch=1)
    return story.listed("pods", seconds, "pod", version=1, epoch=1)


HEARD: list[tuple[str, Callable[[], Story], str]] = [
    ("a pod that is not listed is gone", lambda: tainted().listed("pods", 10.5), "PodGone"),
    ("a pod that is listed stays", lambda: tainted().listed("pods", 10.5, "pod"), ""),
    ("a node that is not listed is gone", lambda: tainted().listed("nodes", 10.5), "NodeGone"),
    ("a node that is listed stays", lambda: tainted().listed("nodes", 10.5, "node"), ""),
    ("a listing of pods says nothing of nodes", lambda: tainted().listed("pods", 10.5, "pod", "node"), ""),
    ("another pod is listed", lambda: tainted().listed("pods", 10.5, "another"), "PodGone"),
    (
        "a pod newer than the listing stays",
        lambda: tainted().pod(10.3, tolerating(5)).listed("pods", 10.5, version=2),
        "",
    ),
    ("a pod as new as the listing is gone", lambda: tainted().listed("pods", 10.5, version=1), "PodGone"),
    ("a node newer than the listing stays", lambda: tainted().listed("nodes", 10.5, version=2), ""),
    ("the range begins with it", lambda: tainted().listed("pods", 10.5, after="n"), ""),
    ("the range begins before it", lambda: tainted().listed("pods", 10.5, after="m", through="n"), "PodGone"),
    ("the range ends before it", lambda: tainted().listed("pods", 10.5, through="mz"), ""),
    ("the UIDs end before it", lambda: tainted().listed("pods", 10.5, uidThrough="poc"), ""),
    ("the UIDs begin with it", lambda: tainted().listed("pods", 10.5, uidAfter="pod"), ""),
    ("the UIDs end with it", lambda: tainted().listed("pods", 10.5, uidAfter="poc", uidThrough="pod"), "PodGone"),
    ("the UIDs leave out the node", lambda: tainted().listed("nodes", 10.5, uidAfter="node"), ""),
    ("listed twice", lambda: tainted().listed("pods", 10.5).listed("pods", 10.7), "PodGone"),
    (
        "late records are outdated",
        lambda: tainted().listed("pods", 10.5).pod(10.7, tolerating(5), version=3),
        "PodGone",
    ),
    ("the next epoch holds all", lambda: next_epoch(10.5), ""),
    ("an ended epoch's pod", lambda: next_epoch(10.3).pod(10.5, kind="DELETED", version=900), ""),
    ("an ended epoch's node", lambda: next_epoch(10.3).node(10.5, version=900), ""),
    ("an ended epoch's listing", lambda: next_epoch(10.3).listed("pods", 10.5, version=900), ""),
    ("the next epoch's pod", lambda: next_epoch(10.3).pod(10.5, kind="DELETED", version=2, epoch=1), "PodGone"),
    ("the next epoch's node", lambda: next_epoch(10.3).node(10.5, version=2, epoch=1), "TaintRemoved"),
    ("the next epoch's listing", lambda: tainted().listed("pods", 10.5, version=1, epoch=1), "PodGone"),
    ("a later epoch is newer", lambda: tainted().node(10.5, version=1, epoch=1), "TaintRemoved"),
    (
        "another cluster's listing",
        lambda: tainted().listed("pods", 10.3, "pod").listed("pods", 10.5, cluster_uid="other"),
        "",
    ),
    (
        "a listing without a cluster",
        lambda: tainted().listed("pods", 10.3, "pod").listed("pods", 10.5, cluster_uid=""),
        "PodGone",
    ),
    (
        "another cluster in the next epoch",
        lambda: tainted().listed("pods", 10.3, "pod").listed("pods", 10.5, version=1, epoch=1, cluster_uid="other"),
        "PodGone",
    ),
]
CASES = [pytest.param(tell, verdict, id=name) for name, tell, verdict in HEARD]


@pytest.mark.parametrize(("tell", "verdict"), CASES)
def test_what_feeds_say_is_followed(tell: Callable[[], Story], verdict: str) -> None:
    right = ended(tell(), verdict) if verdict else stayed(tell())
    wrong = stayed(tell()) if verdict else ended(tell(), "PodGone")
    assert right.violations() == []
    assert wrong.violations() != []


def restored(phase: str = "Running") -> Story:
    """A pod was told to leave, and left; then etcd is restored, to a time before or after that."""
    story = tainted().say("Schedule", 10.1).say("Evict", 15.01).pod(16, tolerating(5), phase="Failed")
    story.node(20, TAINT, version=1, epoch=1).pod(20, tolerating(5), phase=phase, version=1, epoch=1)
    return story.listed("nodes", 20, "node", version=1, epoch=1).listed("pods", 20, "pod", version=1, epoch=1)


def test_a_pod_brought_back_by_etcd_is_evicted_again() -> None:
    again = restored().say("Evict", 20.2, name="e1").pod(21, kind="DELETED", version=2, epoch=1)
    assert again.violations() == []
    assert {violation.rule for violation in restored().violations()} == {"not issued"}


def test_its_next_eviction_has_another_id() -> None:
    assert restored().say("Evict", 20.2).pod(21, kind="DELETED", version=2, epoch=1).violations() != []


def test_a_pod_gone_in_both_epochs_is_left_alone() -> None:
    assert restored("Failed").violations() == []
    assert restored("Failed").say("Evict", 20.2, name="e1").violations() != []


def test_either_topic_may_end_an_epoch_first() -> None:
    """An edit of the ended epoch counts or not, by which topic was read first; what came later is outdated."""

    def told(edit: int) -> Story:
        story = tainted().listed("nodes", 10.3, "node", version=1, epoch=1).pod(10.5, tolerating(edit), version=9)
        return story.listed("pods", 10.7, "pod", version=1, epoch=1)

    assert stayed(told(9)).violations() == []
    moved = told(9).say("Schedule", 10.1).say("Schedule", 10.8, 19, revision=2).say("Evict", 19.01, 19, revision=2)
    assert moved.pod(20, kind="DELETED", version=2, epoch=1).violations() == []


def test_an_ended_epoch_is_outdated_in_its_own_topic() -> None:
    story = tainted().listed("nodes", 10.3, "node", version=1, epoch=1).node(10.5, version=9)
    assert ended(story, "TaintRemoved").violations() != []


@pytest.mark.parametrize(
    ("late", "is_wrong"),
    [
        pytest.param({}, False, id="its own"),
        pytest.param({"cluster_uid": "other"}, True, id="of another cluster"),
        pytest.param({"cluster_uid": ""}, False, id="of a feed that names none"),
        pytest.param({"epoch": 1}, False, id="of the next epoch"),
    ],
)
def test_only_heartbeats_that_count_keep_evictions_going(late: dict[str, int | str], *, is_wrong: bool) -> None:
    story = Story().beats(1, 5).pod(5, tolerating(5)).node(6).beats(6, 7).node(10, TAINT).beats(7, 8)
    story.beats(8, 60, **late)  # type: ignore[arg-type]
    story.say("Schedule", 10.1).say("Evict", 15.01).pod(16, kind="DELETED", version=800, epoch=9)
    assert {violation.rule for violation in story.violations()} == ({"feed silent"} if is_wrong else set())


def test_heartbeats_of_an_ended_epoch_do_not_count() -> None:
    def told(epoch: int) -> Story:
        story = Story().beats(1, 2).beats(2, 3, epoch=1).pod(5, tolerating(5), version=1, epoch=1)
        story.node(10, TAINT, version=2, epoch=1).beats(3, 60, epoch=epoch)
        return story.say("Schedule", 10.1).say("Evict", 15.01).pod(16, kind="DELETED", version=3, epoch=1)

    assert told(1).violations() == []
    assert {violation.rule for violation in told(0).violations()} == {"feed silent"}


def accepted(*seconds: float) -> Story:
    """Issued at 15.01, the eviction is queued by an executor that says so at these instants."""
    story = tainted().say("Schedule", 10.1).say("Evict", 15.01)
    for when in seconds:
        story.result(when, "Accepted")
    return story


def repeated(story: Story, seconds: float) -> Story:
    return story.say("Evict", seconds, attempt=2).pod(seconds + 0.5, kind="DELETED")


@pytest.mark.parametrize(
    ("said", "earliest"),
    [
        pytest.param((15.1,), 15.1 + ACCEPTED_SILENCE, id="once"),
        pytest.param((15.1, 16), 16 + ACCEPTED_SILENCE, id="repeated"),
        pytest.param(tuple(range(16, 24)), 15.01 + ACCEPTED_LIMIT, id="for too long"),
    ],
)
def test_accepted_puts_the_next_attempt_off(said: tuple[float, ...], earliest: float) -> None:
    assert repeated(accepted(*said), earliest + 0.01).violations() == []
    too_soon = repeated(accepted(*said), earliest - 0.1).violations()
    assert {violation.rule for violation in too_soon} == {"repeated too soon"}
    never = accepted(*said).violations()
    assert {violation.rule for violation in never} == {"not repeated"}


def test_another_outcome_follows_on_accepted() -> None:
    failed = accepted(15.1).result(15.2, "Failed")
    assert repeated(failed, 15.75).violations() == []
    done = accepted(15.1, 16).result(16.2, "Succeeded")
    assert {violation.rule for violation in repeated(done, 20.5).violations()} == {"repeated too soon"}


def test_accepted_after_another_outcome_changes_nothing() -> None:
    story = tainted().say("Schedule", 10.1).say("Evict", 15.01).result(15.1, "Failed").result(15.2, "Accepted")
    assert repeated(story, 15.65).violations() == []


@pytest.mark.parametrize(
    ("changed", "is_good"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"listing": None}, False, id="no listing"),
        pytest.param({"listing": {"resourceVersion": "1"}}, False, id="no UIDs"),
        pytest.param({"listing": {"resourceVersion": "1", "uids": {"n": "pod"}}}, False, id="a text for UIDs"),
        pytest.param({"listing": {"resourceVersion": "1", "uids": {}, "more": 1}}, True, id="an unknown field"),
        pytest.param({"epoch": -1}, False, id="an epoch below 0"),
        pytest.param({"epoch": "1"}, False, id="a text for an epoch"),
    ],
)
def test_an_unreadable_listing_is_a_dead_letter(changed: dict[str, object], *, is_good: bool) -> None:
    story = Story().listed("pods", 5)
    value = {**json.loads(story.inputs.pop().value or b""), **changed}
    story.hear("pods", 5, json.dumps(value).encode())
    assert {violation.rule for violation in story.violations()} == (set() if is_good else {"no dead letter"})


def test_the_plan_knows_listings() -> None:
    told = tainted().listed("pods", 12)
    spans = plan(told.inputs, NUMBERS.limits(), partitions=1)["pod"].spans
    assert [span.since_us for span in spans][-1] == at(12)
