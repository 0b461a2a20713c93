"""The oracle on stories with guards, each told right and broken: two nodes get a taint, and one may.

The pod has to leave at 15. What waits for a person is owed by nobody, so a story without an `Evict` is right as well.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from typing import Any

import pytest

from evictstream.kit.oracle import KeyedRecord
from tests.faults.objects import Json, instant
from tests.kit.oracle.telling import TAINT, Story, at, tolerating
from tests.kit.oracle.test_brakes import done, rules

SPREAD = 20
SHARE = SPREAD * zlib.crc32(b"pod") / (1 << 32)
HELD = {"issued though held"}
OTHER: Json = {"name": "q", "uid": "other", "node": "m"}
"""A pod of another node, which tolerates nothing."""


def guarding(release: int | None = None, selected: Json | None = None) -> Json:
    guard = {"count": 1, "withinSeconds": 60}
    return {"for": selected or {}, "guard": guard if release is None else guard | {"releaseAfterSeconds": release}}


def guarded(spec: Json | None = None, *, nodes: int = 2, stays: int = 5) -> Story:
    """The policy stands from 1 on, two nodes are there from 6 on, some are tainted from 10 on."""
    story = Story().policy(1, spec or guarding()).pod(5, tolerating(stays)).node(6).node(6, name="m").node(10, TAINT)
    if nodes > 1:
        story.node(10, TAINT, name="m")
    return story.say("Schedule", 10.1, 10 + stays)


def waiting(spec: Json | None = None) -> Story:
    return guarded(spec).incident(11.5)


def answered(seconds: float, verdict: str = "Approved", expires: float | None = None, **fields: Any) -> Story:
    answer = {"incident": "i", "verdict": verdict} | ({} if expires is None else {"expiresAt": instant(at(expires))})
    return waiting().policy(seconds, guarding(), answer, spreadSeconds=SPREAD, **fields)


def test_nothing_is_issued_or_missed_while_an_incident_waits() -> None:
    assert rules(waiting()) == set()
    assert rules(done(waiting(), 15.01)) == HELD
    assert rules(done(waiting(), 40)) == HELD


def test_as_many_as_are_allowed_may_leave_and_have_to() -> None:
    assert rules(done(guarded(nodes=1), 15.01)) == set()
    assert rules(guarded(nodes=1)) == {"not issued"}


def test_a_node_beyond_a_limit_is_known() -> None:
    def storm() -> Story:
        many = [{"key": f"t{number}", "effect": "NoExecute"} for number in range(1_001)]
        return guarded(nodes=1).node(10, *many, name="x").node(10, TAINT, name="m")

    assert rules(storm().incident(11.5, known=3)) == {"no dead letter"}
    assert "incident without a reason" in rules(storm().incident(11.5))


def test_a_storm_is_known_without_its_incident() -> None:
    assert rules(done(guarded(), 15.01)) == HELD
    assert rules(guarded()) == {"not issued", "incident is missing"}, "nothing says that it waits"


def test_no_incident_begins_or_ends_under_an_unreadable_brake() -> None:
    recovered = waiting().node(20).node(20, name="m").say("Cancel", 20.1, verdict="TaintRemoved")
    for story in (guarded(), recovered):
        assert rules(story) & {"incident is missing", "incident outlasts its taints"}
        story.brakes.append(KeyedRecord(append_at_us=at(5), known_at_us=0, key=b"b", value=b"{"))
        assert rules(story) == set(), "seed 134971"


def test_a_node_that_is_deleted_counts_with_its_taint() -> None:
    def storm() -> Story:
        story = Story().policy(1, guarding()).pod(5, tolerating(5)).node(6).node(6, name="m")
        story.node(7, TAINT, name="m").node(9, name="m", kind="DELETED").node(10, TAINT)
        return story.say("Schedule", 10.1, 15)

    assert rules(done(storm(), 15.01)) == HELD
    assert rules(storm()) == {"not issued", "incident is missing"}
    assert rules(storm().incident(11.5, since=instant(at(7)))) == set()
    assert rules(done(storm().node(12, name="m"), 15.01)) == set(), "it is back, and has no taint"


def test_an_incident_ends_with_the_last_node_that_is_there() -> None:
    story = waiting().node(12, name="m", kind="DELETED").node(13, kind="DELETED")
    assert "incident outlasts its taints" in rules(story)
    assert "incident outlasts its taints" not in rules(story.incident(13.1, None))


def test_a_worker_that_stood_still_opens_its_incident_late() -> None:
    late = {"openedAt": instant(at(35))}
    assert rules(guarded().incident(35, **late)) == set(), "seed 77785"
    assert rules(guarded(nodes=1).node(34, TAINT, name="m").incident(35, **late)) == {"not issued"}
    assert rules(done(guarded().incident(35, **late), 36)) == HELD


def test_a_storm_that_may_not_be_known_yet_holds_nothing() -> None:
    story = Story().policy(1, guarding()).pod(5, tolerating(5)).node(6).node(6, name="m").node(10, TAINT)
    story.say("Schedule", 10.1).node(14, TAINT, name="m")
    assert rules(done(story, 15.01)) == set()


@pytest.mark.parametrize(
    "selected",
    [{"clusters": ["d"]}, {"taints": ["other"]}],
    ids=["cluster", "taint"],
)
def test_a_guard_of_others_holds_nothing(selected: Json) -> None:
    assert rules(done(guarded(guarding(selected=selected)), 15.01)) == set()
    assert rules(guarded(guarding(selected=selected))) == {"not issued"}


def test_an_incident_is_opened_whatever_pods_are_selected() -> None:
    others = guarding(selected={"namespaces": ["x"]})
    assert rules(done(guarded(others), 15.01)) == set()
    assert rules(guarded(others)) == {"not issued", "incident is missing"}
    assert rules(waiting(others)) == {"not issued"}


def test_a_policy_that_may_not_be_known_yet_holds_nothing() -> None:
    story = guarded()
    story.policies.clear()
    assert rules(done(story.policy(12, guarding()), 15.01)) == set()


@pytest.mark.parametrize(("known", "wrong"), [(10.5, HELD), (14, set())])
def test_a_policy_holds_once_its_writer_knows_that_it_stands(known: float, wrong: set[str]) -> None:
    story = guarded()
    story.policies.clear()
    assert rules(done(story.policy(5, guarding(), known=known), 15.01)) == wrong


@pytest.mark.parametrize(("seconds", "wrong"), [(10.5, HELD), (11.01, set())])
def test_what_is_due_at_once_looks_around_for_a_second(seconds: float, wrong: set[str]) -> None:
    story = Story().policy(1, guarding()).pod(5).node(6).node(6, name="m").node(10, TAINT)
    story.say("Evict", seconds, 10, verdict="Untolerated").result(seconds + 0.1, "Succeeded")
    assert rules(story.pod(seconds + 1, kind="DELETED")) == wrong


def test_what_is_overdue_at_an_approval_is_spread() -> None:
    assert rules(answered(30)) == {"not issued"}
    assert rules(done(answered(30), 30 + SHARE - 0.1)) == HELD
    assert rules(done(answered(30), 30 + SHARE + 0.01)) == set()


def test_what_becomes_due_after_an_approval_is_not_spread() -> None:
    assert rules(done(answered(14), 15.01)) == set()


def test_an_approval_expires() -> None:
    assert rules(answered(12, expires=14)) == set()
    assert rules(done(answered(12, expires=14), 19)) == HELD
    assert rules(done(answered(12, expires=18), 15.01)) == set()


def test_an_answer_may_not_be_known_yet() -> None:
    assert rules(done(answered(12, expires=14).policy(16, guarding()), 19)) == HELD
    again = answered(12, expires=14).policy(17, guarding(), {"incident": "i", "verdict": "Approved"})
    assert rules(done(again, 19)) == set()


def test_a_rejected_incident_holds_until_it_is_approved() -> None:
    rejected = answered(12, "Rejected")
    assert rules(rejected) == set()
    assert rules(done(answered(12, "Rejected"), 40)) == HELD
    assert rules(rejected.policy(30, guarding(), {"incident": "i", "verdict": "Approved"})) == {"not issued"}


def test_an_answer_keeps_its_time_in_later_records() -> None:
    kept = {"incident": "i", "verdict": "Approved", "countsFrom": instant(at(16))}
    story = answered(16).policy(17, guarding(), kept, spreadSeconds=SPREAD)
    assert rules(done(story, 16 + SHARE + 0.01)) == set()


def test_a_guard_releases_by_itself() -> None:
    assert rules(waiting(guarding(9))) == {"not issued"}
    assert rules(done(waiting(guarding(9)), 19.5)) == HELD
    assert rules(done(waiting(guarding(9)), 20.01)) == set()


def test_a_guard_that_goes_spreads_what_it_may_have_held() -> None:
    def gone(spec: Json | None) -> Story:
        return waiting().policy(30, spec, spreadSeconds=SPREAD, earlier=[{"spec": guarding()}]).incident(32, None)

    for spec in (None, {"settleSeconds": 1}):
        assert rules(gone(spec)) == {"not issued"}
        assert rules(done(gone(spec), 34.5 if SHARE > 5 else 30.1)) == HELD
        assert rules(done(gone(spec), 30 + SHARE + 0.01)) == set()


def test_a_later_node_is_of_no_answered_incident() -> None:
    def later(verdict: str) -> Story:
        story = Story().policy(1, guarding()).pod(5, tolerating(5)).node(6).pod(2, **OTHER)
        for name in ("m", "o"):
            story.node(3, name=name).node(4, TAINT, name=name)
        fields: dict[str, Any] = {"since": instant(at(4)), "openedAt": instant(at(5)), "known": 3}
        story.incidents = Story().incident(5.5, **fields).incidents
        for name in ("m", "o"):
            story.node(12, name=name)
        story.incidents += Story().incident(12.5, None).incidents
        return story.policy(8, guarding(), {"incident": "i", "verdict": verdict}).node(10, TAINT).say("Schedule", 10.1)

    for verdict in ("Approved", "Rejected"):
        assert rules(done(later(verdict), 15.01)) == set()
        assert rules(later(verdict)) == {"not issued"}


def test_what_is_tried_again_is_held_for_its_reason_now() -> None:
    story = Story().policy(1, guarding()).pod(5).node(6).node(6, name="m").node(10, {**TAINT, "key": "agent"})
    story.pod(5, **OTHER)
    story.say("Evict", 11.01, 10, verdict="Untolerated", taint="agent").result(11.1, "Failed")
    for name in ("n", "m"):
        story.node(12, *([{**TAINT, "key": "agent"}] if name == "n" else []), TAINT, name=name)
    story.incident(13.5, since=instant(at(12)), openedAt=instant(at(13)))
    assert rules(story) == {"not repeated"}
    assert rules(story.node(14, TAINT)) == set()


@pytest.mark.parametrize("end", [20, None])
def test_an_incident_ends_with_its_last_taint(end: float | None) -> None:
    def recovers(*names: str) -> Story:
        story = waiting()
        for name in names:
            story.node(18, name=name)
        return story if end is None else story.incident(end, None)

    assert rules(recovers("m")) == (set() if end is None else {"incident ended too early", "not issued"})
    cancelled = recovers("m", "n").say("Cancel", 18.1, verdict="TaintRemoved")
    assert rules(cancelled) == ({"incident outlasts its taints"} if end is None else set())


@pytest.mark.parametrize(
    "fields", [{"openedWith": 3}, {"allowed": 0}, {"known": 3}, {"since": instant(at(9))}, {"taint": "other"}]
)
def test_an_incident_has_a_reason(fields: dict[str, Any]) -> None:
    assert "incident without a reason" in rules(guarded().incident(11.5, **fields))


def test_a_late_record_lets_an_incident_begin_earlier() -> None:
    """The pod's node is told last, with a taint that came before those of the others."""
    story = Story().policy(1, guarding()).pod(5, tolerating(5)).node(6).node(6, name="m").node(6, name="o")
    story.pod(5, **OTHER).node(10.5, TAINT, name="m").node(10.5, TAINT, name="o")
    story.incident(11.5, since=instant(at(10.5)), known=3).node(11.6, TAINT, observed=10).say("Schedule", 11.7)
    told = story.incident(12.5, since=instant(at(10)), known=3)
    assert rules(told) == set()
    assert rules(done(told, 15.01)) == HELD


def test_an_incident_says_what_people_have_said() -> None:
    assert rules(waiting().incident(14, "Approved")) == {"incident in a wrong state"}
    assert rules(answered(30, "Rejected").incident(33, "Waiting")) == set(), "it may not be known yet"
    assert rules(answered(30, "Rejected").incident(35, "Waiting")) == {"incident in a wrong state"}


def test_a_lost_answer_lets_its_incident_wait() -> None:
    def lost() -> Story:
        answer = {"incident": "i", "verdict": "Rejected"}
        return waiting(guarding(9)).policy(12, guarding(9), answer).policy(17, guarding(9))

    assert rules(lost()) == set(), "seed 53744"
    assert rules(lost().incident(35, "Waiting")) == set()
    assert rules(lost().incident(35, "Released")) == set(), "the answer may have come and gone unseen"
    assert rules(done(lost(), 19.5)) == HELD
    assert rules(done(lost(), 20.01)) == set()
    assert rules(waiting(guarding(9)).policy(17, guarding(9)).incident(35, "Waiting")) == {
        "incident in a wrong state",
        "not issued",
    }


def test_a_worker_that_stood_still_says_what_it_knew() -> None:
    def said(**fields: Any) -> Story:
        return answered(30, "Rejected", revision=2).incident(41, "Waiting", **fields)

    first = json.dumps({**json.loads(said().policies[0].value or b""), "revision": 1}).encode()
    for fields, wrong in (({"revision": 1}, set()), ({"revision": 2}, {"incident in a wrong state"})):
        story = said(**fields)
        story.policies[0] = dataclasses.replace(story.policies[0], value=first)
        assert rules(story) == wrong
