"""The oracle on stories with brakes, each told right and broken: the pod is due at 15."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from tests.faults.objects import instant
from tests.kit.oracle.telling import Story, at, tainted
from tests.kit.oracle.test_listings import repeated

SPREAD = 20
UNTIL = 30 + SPREAD * zlib.crc32(b"pod") / (1 << 32)
MATCHING: list[dict[str, Any]] = [
    {},
    {"clusters": ["c"], "namespaces": ["x", "ns"]},
    {"taints": ["maintenance"], "clusters": []},
]
OTHERS: list[dict[str, Any]] = [{"clusters": ["d"]}, {"namespaces": ["x"]}, {"taints": ["x"]}, {"zones": ["z"]}]


def rules(story: Story) -> set[str]:
    return {found.rule for found in story.violations()}


def braked(**fields: Any) -> Story:
    return tainted().say("Schedule", 10.1).brake(5, **fields)


def done(story: Story, seconds: float) -> Story:
    return story.say("Evict", seconds).result(seconds + 0.1, "Succeeded").pod(seconds + 1, kind="DELETED")


@pytest.mark.parametrize("fields", MATCHING)
def test_nothing_is_issued_or_missed_while_a_brake_stands(fields: dict[str, Any]) -> None:
    assert rules(braked(**fields)) == set()
    assert rules(done(braked(**fields), 15.01)) == {"issued though held"}


@pytest.mark.parametrize("fields", OTHERS)
def test_a_brake_of_others_holds_nothing(fields: dict[str, Any]) -> None:
    assert rules(done(braked(**fields), 15.01)) == set()
    assert rules(braked(**fields)) == {"not issued"}


def test_a_brake_is_read_a_little_late() -> None:
    assert rules(done(tainted().say("Schedule", 10.1).brake(14), 15.01)) == set()
    assert rules(done(tainted().say("Schedule", 10.1).brake(10.5), 15.01)) == {"issued though held"}


def test_a_brake_holds_once_its_writer_knows_that_it_stands() -> None:
    def told(known: float) -> set[str]:
        return rules(done(tainted().say("Schedule", 10.1).brake(5, known=known), 15.01))

    assert told(known=10.5) == {"issued though held"}
    assert told(known=14) == set()


def test_a_release_lets_go_from_its_append_on() -> None:
    assert rules(done(braked().brake(20, known=30, releasedBy="ben"), 20.5)) == set()
    assert rules(braked().brake(20, known=30, releasedBy="ben")) == {"not issued"}


@pytest.mark.parametrize("how", ["released", "ends by itself"])
def test_what_was_due_is_spread_after_the_end(how: str) -> None:
    def ended() -> Story:
        if how == "released":
            return braked(spreadSeconds=SPREAD).brake(30, spreadSeconds=SPREAD, releasedBy="ben")
        return braked(spreadSeconds=SPREAD, endsAt=instant(at(30)))

    assert rules(done(ended(), UNTIL + 0.01)) == set()
    assert rules(done(ended(), UNTIL - 0.1)) == {"issued though held"}
    assert rules(ended()) == {"not issued"}


def test_what_becomes_due_after_the_end_is_not_spread() -> None:
    assert rules(done(braked(spreadSeconds=SPREAD, endsAt=instant(at(14))), 15.01)) == set()


def test_a_repeat_is_held_too() -> None:
    def failed() -> Story:
        return tainted().say("Schedule", 10.1).say("Evict", 15.01).result(15.1, "Failed").brake(15.2)

    assert rules(failed()) == set()
    assert rules(repeated(failed(), 25)) == {"issued though held"}
    assert rules(repeated(failed().brake(30, releasedBy="ben"), 30.5)) == set()


def test_what_an_executor_holds_is_tried_again() -> None:
    def held() -> Story:
        return tainted().say("Schedule", 10.1).say("Evict", 15.01).result(15.1, "Accepted", held_by="b")

    assert rules(held()) == {"not repeated"}
    assert rules(repeated(held(), 20)) == set()
    assert rules(repeated(held().brake(15.05, zones=["z"]), 20)) == set()
    assert rules(held().brake(15.05)) == set()


def test_a_limit_lets_wait_and_is_exceeded_by_nothing() -> None:
    def limited(evictions: int, **fields: Any) -> Story:
        return braked(limit={"evictions": evictions, "inSeconds": 60, "burst": 1, "per": "cluster"}, **fields)

    def failed(story: Story) -> Story:
        return repeated(story.say("Evict", 15.01).result(15.1, "Failed"), 15.6)

    assert rules(limited(1)) == set(), "it may wait"
    assert rules(done(limited(1), 15.01)) == set(), "it need not"
    assert rules(failed(limited(1))) == {"over the limit"}
    assert rules(failed(limited(1, known=14))) == set(), "not every worker knows it"
    assert rules(failed(limited(600))) == set()
