"""Metrics of brakes and policies, and of what they hold."""

from __future__ import annotations

from evictstream.streams.partition.overdue import Waiting
from evictstream.streams.worker.metrics import BRAKES_SHOWN
from tests.models.steering.test_brakes import read, record
from tests.models.steering.test_policies import policy_record, read_policies
from tests.streams.worker.fakes import FakeBrakes, FakePolicies
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, Story
from tests.streams.worker.test_metrics import view


def test_brakes_and_what_they_hold() -> None:
    story = Story()
    many = {(f"b-{number}", "lab"): Waiting(number, NOON_US) for number in range(1, BRAKES_SHOWN + 3)}
    story.views = (view(pending={"lab": 9}, held=many), view(partition=1, held={("b-9", "lab"): Waiting(5, NOON_US)}))
    brakes = read(record("b-1"), record("b-2"), appended_us=NOON_US)
    story.brakes = FakeBrakes(brakes=brakes.with_record(b"b-3", b"{", 0), age=0.25)
    story.now_us = NOON_US + 90 * SECOND_US
    seen = story.scrape()
    wanted = {
        ("evictstream_brakes",): 2,
        ("evictstream_brake_seconds", "b-1"): 90,
        ("evictstream_brakes_unreadable",): 1,
        ("evictstream_brakes_age_seconds",): 0.25,
        ("evictstream_evictions_held", "b-9", "lab"): 14,
        ("evictstream_evictions_held", "_other", "lab"): 1 + 2,
        ("evictstream_evictions_held_oldest_seconds", "b-9", "lab"): 90,
    }
    assert {name: seen[name] for name in wanted} == wanted


def test_policies_that_cannot_be_read_are_counted() -> None:
    story = Story()
    policies = read_policies(
        policy_record("calm", spec={"observe": True}), policy_record("gone"), policy_record("later", spec={"quota": 1})
    )
    story.policies = FakePolicies(policies=policies.with_record(b"odd", b"{", 0), age=0.25)
    seen = story.scrape()
    assert seen["evictstream_policies",] == 1
    assert seen["evictstream_policies_unreadable",] == 2
    assert seen["evictstream_policies_age_seconds",] == 0.25


def test_what_is_held_is_owed_since_it_was_due() -> None:
    story = Story()
    story.brakes.brakes = read(record("b-1"), appended_us=NOON_US)
    story.node(0, TAINT)
    story.pod(1, "a", 10)
    story.fire(30)
    assert story.logic.held_back() == {("b-1", "lab"): Waiting(1, NOON_US + 11 * SECOND_US)}
    assert list(story.logic.overdue(story.now_us, 100)) == []
