"""The oracle itself, on stories whose right and wrong endings are written by hand from semantics.md part B.

Seconds count from an arbitrary instant. The node `c/n` has a taint from 10 on, the pod `p` tolerates it for 5 seconds
unless a story says otherwise, and the run ends at 60.
"""

from __future__ import annotations

import pytest

from tests.faults.objects import UNREACHABLE, watch_event
from tests.kit.oracle.telling import TAINT, Story, evicted, tainted, tolerating

BEATS = [watch_event("c", "HEARTBEAT", None, None)]

RIGHT = [
    pytest.param(evicted(), id="12.6 announced, issued at the deadline, gone"),
    pytest.param(
        tainted().say("Schedule", 10.1).node(12).say("Cancel", 12.1, verdict="TaintRemoved"),
        id="12.6 taint removed: cancelled",
    ),
    pytest.param(
        tainted().say("Schedule", 10.1).pod(12, kind="DELETED").say("Cancel", 12.1, verdict="PodGone"),
        id="12.7 pod deleted while only scheduled: cancelled",
    ),
    pytest.param(
        tainted()
        .say("Schedule", 10.1)
        .pod(12, tolerating(3))
        .say("Schedule", 12.1, 13, revision=2)
        .say("Evict", 13.01, 13, revision=2)
        .pod(14, kind="DELETED"),
        id="12.7 seconds made shorter: measured from the recorded start",
    ),
    pytest.param(tainted(tolerating(None)), id="12.5 tolerated forever: nothing"),
    pytest.param(tainted(tolerating(300_000_000_000)), id="12.5 past the year 9999: nothing"),
    pytest.param(
        tainted({"operator": "Exists", "key": "other"})
        .say("Evict", 10.2, 10, verdict="Untolerated")
        .pod(11, kind="DELETED"),
        id="12.5 untolerated: at once, unannounced",
    ),
    pytest.param(
        Story().node(10, TAINT).pod(9, tolerating(5)).say("Schedule", 10.1).say("Evict", 15.01).pod(16, kind="DELETED"),
        id="12.10 node before pod",
    ),
    pytest.param(
        Story()
        .pod(5, tolerating(0))
        .node(10, TAINT, {"key": "other", "effect": "NoExecute"})
        .node(10, TAINT, observed=9)
        .say("Evict", 10.2, 10)
        .pod(11, kind="DELETED"),
        id="12.6 due at once, then by another taint at the same instant: nothing is announced (seed 1087)",
    ),
    pytest.param(
        Story()
        .pod(5, {"key": "maintenance", "value": "a", "tolerationSeconds": 5}, tolerating(3, "short"))
        .node(10, {**TAINT, "value": "a"})
        .say("Schedule", 10.1)
        .node(14, TAINT)
        .node(14, {"key": "short", "effect": "NoExecute"}, observed=11)
        .say("Evict", 14.2, 14, revision=2, taint="short", window=11)
        .pod(15, kind="DELETED"),
        id="12.6 due at once, then by another taint when it was edited: nothing is announced (seed 13359)",
    ),
    pytest.param(
        tainted()
        .say("Schedule", 10.1)
        .say("Evict", 15.01)
        .result(15.1, "Failed")
        .say("Evict", 15.6, attempt=2)
        .pod(16, kind="DELETED"),
        id="12.8 failed: repeated",
    ),
    pytest.param(tainted().pod(9, tolerating(None), phase="Succeeded"), id="12.5 terminal pods are left alone"),
    pytest.param(
        Story()
        .pod(5, tolerating(5, UNREACHABLE), tolerating(7, "node.kubernetes.io/not-ready"))
        .node(10, {"key": UNREACHABLE, "effect": "NoExecute"}, ready="Unknown")
        .say("Schedule", 10.1, 15, taint=UNREACHABLE)
        .node(12, {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, ready="False")
        .say("Schedule", 12.1, 17, revision=2, taint="node.kubernetes.io/not-ready", window=12)
        .say("Evict", 17.01, 17, revision=2, taint="node.kubernetes.io/not-ready", window=12)
        .pod(18, kind="DELETED"),
        id="12.4 a swap of health taints goes on with the outage: 10 + 7, not 12 + 7",
    ),
    pytest.param(
        Story().node(10, TAINT).pod(59, tolerating(5)),
        id="12.10 what comes right before the end need not have been heard (seed 18865)",
    ),
]

WRONG = [
    pytest.param(tainted().say("Schedule", 10.1).say("Evict", 14), "early", id="issued early"),
    pytest.param(tainted().say("Schedule", 10.1), "not issued", id="lost"),
    pytest.param(tainted(), "not announced", id="never heard of"),
    pytest.param(evicted().say("Evict", 30, revision=1), "sent twice", id="twice"),
    pytest.param(tainted().say("Schedule", 10.1).node(12), "not cancelled", id="forgotten cancel"),
    pytest.param(
        tainted().say("Schedule", 10.1).node(12).say("Cancel", 12.1, verdict="Tolerated"),
        "unfounded",
        id="cancelled with a wrong reason",
    ),
    pytest.param(
        tainted().say("Schedule", 10.1).node(12).say("Cancel", 12.1, verdict="TaintRemoved").say("Evict", 15.01),
        "after the end",
        id="issued after its cancel",
    ),
    pytest.param(tainted().say("Schedule", 10.1, 16).say("Evict", 16.01, 16), "unfounded", id="another deadline"),
    pytest.param(
        tainted().node(11).node(20, TAINT).say("Schedule", 10.1).say("Schedule", 20.1, 25, revision=2),
        "not cancelled",
        id="a taint that came back moves the old deadline instead of opening a new window",
    ),
    pytest.param(
        tainted().node(12).say("Schedule", 10.1).say("Evict", 20, 15), "not cancelled", id="decided on an old view"
    ),
    pytest.param(
        tainted().say("Schedule", 10.1).say("Evict", 15.01).say("Evict", 15.5, attempt=2),
        "repeated too soon",
        id="repeated without a reason",
    ),
    pytest.param(tainted().say("Schedule", 10.1).say("Evict", 15.01), "not repeated", id="silence, and no repeat"),
    pytest.param(
        tainted().say("Schedule", 10.1).say("Evict", 15.01, attempt=2), "does not grow", id="an attempt is left out"
    ),
    pytest.param(evicted().say("Evict", 15.2, uid="nobody", name="e9"), "unfounded", id="about nobody"),
    pytest.param(tainted(tolerating(None)).say("Evict", 20, 15), "unfounded", id="tolerated forever, and evicted"),
    pytest.param(evicted().hear("pods", 20, b"{"), "no dead letter", id="an unreadable record without dead letter"),
    pytest.param(evicted().bury(0), "needless dead letter", id="a dead letter of a good record"),
    pytest.param(evicted().hear("pods", 20, None).bury(2).bury(2), "dead letters", id="two dead letters of one record"),
    pytest.param(
        tainted().hear("nodes", 1, BEATS[0]).hear("pods", 1, BEATS[0]).say("Schedule", 10.1).say("Evict", 15.01),
        "feed silent",
        id="issued while the feed was silent",
    ),
]


@pytest.mark.parametrize("story", RIGHT)
def test_what_is_right_passes(story: Story) -> None:
    assert story.violations() == []


@pytest.mark.parametrize(("story", "rule"), WRONG)
def test_what_is_wrong_is_named(story: Story, rule: str) -> None:
    assert rule in {violation.rule for violation in story.violations()}


def overtaken() -> Story:
    """An edit comes late, behind a newer version of the pod that changed nothing."""
    return tainted().pod(11, tolerating(5)).pod(12, tolerating(3), version=2).say("Schedule", 10.1)


def test_what_was_overtaken_is_outdated() -> None:
    story = overtaken().say("Evict", 15.01).pod(16, kind="DELETED")
    assert story.violations() == []
    assert story.violations(may_forget=True) == []


def test_an_outdated_event_counts_as_new_only_after_a_crash() -> None:
    story = (
        overtaken().say("Schedule", 12.1, 13, revision=2).say("Evict", 13.01, 13, revision=2).pod(14, kind="DELETED")
    )
    assert story.violations(may_forget=True) == [], "seed 16024"
    assert story.violations() != []


def test_an_outdated_delete_counts_as_new_only_after_a_crash() -> None:
    story = tainted().pod(11, tolerating(5)).pod(12, kind="DELETED", version=2).say("Schedule", 10.1)
    story = story.say("Cancel", 12.1, verdict="PodGone")
    assert story.violations(may_forget=True) == [], "seed 11941"
    assert story.violations() != []


def test_an_event_older_than_a_change_stays_outdated_after_crashes() -> None:
    story = tainted().pod(11, tolerating(6)).pod(12, tolerating(3), version=2).say("Schedule", 10.1)
    story = story.say("Schedule", 11.1, 16, revision=2).say("Schedule", 12.1, 13, revision=3)
    assert story.violations(may_forget=True) != []
