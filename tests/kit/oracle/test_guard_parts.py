"""The oracle on stories with guards that count zones, single nodes, or pods, each told right and broken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.objects import Json, instant
from tests.kit.oracle.telling import TAINT, Story, at, tolerating
from tests.kit.oracle.test_brakes import done, rules
from tests.kit.oracle.test_guards import HELD

MISSING = {"not issued", "incident is missing"}
ZONES = {"n": "a", "m": "a", "o": "b", "r": "b"}


def guarding(count: int = 1, **guard: Any) -> Json:
    return {"for": {}, "guard": {"count": count, "withinSeconds": 60} | guard}


def zoned(*tainted: str, guard: Json | None = None, zones: Json | None = None) -> Story:
    """Four nodes of two zones are there from 6 on, some are tainted from 10 on; the pod has to leave at 15."""
    story = Story().policy(1, guard or guarding(by="zone")).pod(5, tolerating(5))
    for name, zone in (ZONES | (zones or {})).items():
        story.node(6, name=name, zone=zone)
    for name in tainted:
        story.node(10, TAINT, name=name, zone=(ZONES | (zones or {}))[name])
    return story.say("Schedule", 10.1)


def dark(**fields: Any) -> Story:
    """All of the first zone, and its incident."""
    return zoned("n", "m", "o").incident(11.5, **({"zone": "a"} | fields))


def test_a_guard_by_zone_counts_each_zone() -> None:
    assert rules(done(zoned("n", "o"), 15.01)) == set()
    assert rules(zoned("n", "o")) == {"not issued"}
    assert rules(done(zoned("n", "m"), 15.01)) == HELD
    assert rules(zoned("n", "m")) == MISSING


def test_nodes_without_a_zone_are_one() -> None:
    assert rules(done(zoned("n", "m", zones={"n": "", "m": ""}), 15.01)) == HELD
    assert rules(done(zoned("n", "m", zones={"n": "", "m": "c"}), 15.01)) == set()


def test_an_incident_holds_its_zone_alone() -> None:
    assert rules(dark()) == set()
    assert rules(done(dark(), 40)) == HELD
    other = zoned("n", "o", "r").incident(11.5, zone="b").pod(5, name="q", uid="other", node="o")
    assert rules(other) == {"not issued"}
    assert rules(done(other, 15.01)) == set()


@pytest.mark.parametrize(
    "fields", [{"zone": None}, {"zone": "b"}, {"known": 4}, {"node": "n"}, {"of": "pods"}, {"openedWith": 3}]
)
def test_an_incident_says_what_was_counted(fields: Json) -> None:
    assert "incident without a reason" in rules(dark(**fields))


def test_a_share_is_of_the_nodes_of_a_zone() -> None:
    half = {"for": {}, "guard": {"sharePercent": 50, "withinSeconds": 60, "by": "zone"}}
    assert rules(done(zoned("n", "o", guard=half), 15.01)) == set()
    assert rules(done(zoned("n", "m", guard=half), 15.01)) == HELD
    assert rules(zoned("n", "m", guard=half).incident(11.5, zone="a")) == set()


def test_a_deleted_node_counts_in_its_zone() -> None:
    def deleted(known: int) -> Story:
        story = Story().policy(1, guarding(0, by="zone")).pod(5, tolerating(5)).node(6, zone="a")
        story.node(6, name="m", zone="a").node(8, name="m", kind="DELETED", zone="a").node(10, TAINT, zone="a")
        return story.say("Schedule", 10.1).incident(11.5, zone="a", known=known, allowed=0, openedWith=1)

    assert rules(deleted(2)) == set()
    assert rules(deleted(1)) == {"incident without a reason"}


def test_a_node_that_moves_leaves_the_incident() -> None:
    moved = dark().node(13, name="o", zone="b").node(20, TAINT, zone="b")
    assert rules(moved) == {"not issued"}
    assert rules(done(moved, 20.1)) == set()
    assert rules(done(dark().node(30, TAINT, zone="b"), 19)) == HELD


def test_a_node_that_moves_comes_into_an_incident() -> None:
    """It may not be known yet for some seconds that it has moved."""

    def moved(evicted: float | None) -> Story:
        story = zoned("n", "o", "r", zones={"n": "c"}).pod(5, name="q", uid="other", node="o")
        story.incident(11.5, zone="b").node(12, TAINT, zone="b")
        return story if evicted is None else done(story, evicted)

    assert rules(moved(None)) == set()
    assert rules(moved(15.01)) == set()
    assert rules(moved(17)) == HELD


def test_an_incident_of_a_zone_ends_with_its_last_taint() -> None:
    assert rules(dark().node(18, name="m", zone="a").incident(20, None)) >= {"incident ended too early"}
    left = dark().node(18, name="m", zone="a").node(18, zone="a").say("Cancel", 18.1, verdict="TaintRemoved")
    assert rules(left) == {"incident outlasts its taints"}
    assert rules(left.incident(20, None)) == set()


def crowded(guard: Json, *others: str) -> Story:
    """Two nodes are tainted at 10, the pod is on the first, and further ones on these, which tolerate nothing."""
    story = Story().policy(1, guard).pod(5, tolerating(5)).node(6).node(6, name="m")
    for number, node in enumerate(others):
        story.pod(5, name=f"q{number}", uid=f"other-{number}", node=node)
    return story.node(10, TAINT, name="m").node(10, TAINT).say("Schedule", 10.1)


@pytest.mark.parametrize(
    ("by", "others", "is_held"),
    [
        ("taintKey", (), False),
        ("taintKey", ("m",), True),
        ("node", ("m",), False),
        ("node", ("n",), True),
        ("zone", ("m",), True),
    ],
)
def test_a_guard_of_pods_counts_those_that_leave(by: str, others: tuple[str, ...], *, is_held: bool) -> None:
    guard = guarding(of="pods", by=by)
    assert rules(done(crowded(guard, *others), 15.01)) >= (HELD if is_held else set())
    assert ("issued though held" in rules(done(crowded(guard, *others), 15.01))) == is_held
    assert ("incident is missing" in rules(crowded(guard, *others))) == is_held


def test_an_incident_of_a_node_holds_that_node() -> None:
    fields: Json = {"node": "n", "of": "pods", "known": 1}
    assert rules(crowded(guarding(of="pods", by="node"), "n").incident(11.5, **fields)) == set()
    assert rules(crowded(guarding(of="pods", by="node")).incident(11.5, **fields)) >= {"incident without a reason"}
    other = crowded(guarding(of="pods", by="node"), "m", "m").incident(11.5, **(fields | {"node": "m"}))
    assert rules(other) == {"not issued"}


@pytest.mark.parametrize("is_back", [False, True])
def test_pods_that_have_left_count_while_their_taint_stays(*, is_back: bool) -> None:
    story = Story().policy(1, guarding(of="pods")).pod(5, name="q", uid="other").node(6).node(10, TAINT)
    story.say("Evict", 11.01, 10, name="e1", verdict="Untolerated", uid="other")
    story.pod(12, name="q", uid="other", kind="DELETED")
    since = 13
    if is_back:
        story.node(12.5).node(12.8, TAINT)
    story.pod(since, tolerating(5)).say("Schedule", 13.1, 18, window=since)
    story.say("Evict", 18.01, 18, window=since).result(18.1, "Succeeded").pod(19, kind="DELETED")
    assert rules(story) == (set() if is_back else HELD)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_repeat_counts_for_its_reason_now(*, is_elsewhere: bool) -> None:
    agent = {**TAINT, "key": "agent"}
    story = Story().policy(1, guarding(of="pods")).pod(5, tolerating(1), name="q", uid="other").node(6).node(10, TAINT)
    story.say("Evict", 11.01, 11, name="e1", uid="other")
    story.node(12, TAINT, *([agent] if is_elsewhere else []))
    story.pod(13, tolerating(5), tolerating(None, "agent")).say("Schedule", 13.1, 18, window=13)
    story.say("Evict", 18.01, 18, window=13).result(18.1, "Succeeded").pod(19, kind="DELETED")
    assert ("issued though held" in rules(story)) != is_elsewhere, "seed 125478"


def test_an_incident_stays_when_its_guard_counts_otherwise() -> None:
    story = zoned("n", "m", guard=guarding()).incident(11.5, known=4).policy(13, guarding(3, by="zone"))
    assert rules(story) == set()
    assert rules(done(story, 40)) == HELD


def test_an_answer_for_one_zone_is_none_for_another() -> None:
    answer = {"incident": "i", "verdict": "Approved", "expiresAt": instant(at(50))}
    story = zoned("n", "o", "r").incident(11.5, zone="b").policy(12, guarding(by="zone"), answer)
    story.node(13, TAINT, name="m", zone="a").pod(5, name="q", uid="other", node="o")
    assert rules(done(story, 17.01)) >= HELD
