"""What is worked out before the play begins: times that are moved, when to kill, how long to wait."""

from __future__ import annotations

from collections.abc import Sequence

from evictstream.kit.demo.judgement import plan_of
from evictstream.kit.demo.play import LONGEST_TAIL_US, kill_moment_us, moved, still_owed, waits_until_us
from evictstream.kit.demo.recording import Event, demo_incident, read_recording
from evictstream.kit.oracle import PodPlan
from evictstream.models.instants import instant_us
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import START_US, node, pod, taint, tolerates, us

EVENTS = [node(0), pod(0), node(2), node(5)]
NOW_US = us(1_000_000)


def planned(events: Sequence[Event]) -> dict[str, PodPlan]:
    return plan_of(events, Settings())


def test_events_keep_their_pace_and_their_objects() -> None:
    found = moved(EVENTS, NOW_US)
    assert [instant_us(event["observedAt"]) - NOW_US for event in found] == [0, 0, 2_000_000, 5_000_000]
    assert [event["object"] for event in found] == [event["object"] for event in EVENTS]
    assert instant_us(EVENTS[0]["observedAt"]) == START_US


def test_speed_shortens_distances_and_nothing_else() -> None:
    found = moved(EVENTS, NOW_US, 2)
    assert [instant_us(event["observedAt"]) - NOW_US for event in found] == [0, 0, 1_000_000, 2_500_000]


def test_a_worker_is_killed_in_mid_window() -> None:
    """Half of the 52 deadlines of the peak or more are pending from 14.0 s to 32.3 s of the recorded outage."""
    plans = planned(read_recording(demo_incident()).events)
    moment = kill_moment_us(plans)
    assert moment is not None
    first = min(one.spans[0].since_us for one in plans.values())
    assert 15 < (moment - first) / 1e6 < 31


def test_nobody_is_killed_when_nothing_is_pending() -> None:
    assert kill_moment_us(planned([node(0, taint()), pod(1)])) is None


def test_the_kill_is_amid_a_deadline_that_is_pending() -> None:
    plans = planned([node(0), pod(0, tolerates(seconds=20)), node(10, taint()), node(12), node(14, taint())])
    assert kill_moment_us(plans) == us(24)


def test_waiting_ends_with_the_last_deadline_that_is_near() -> None:
    events = [node(0, taint()), pod(1, tolerates(seconds=50)), pod(1, tolerates(seconds=10**9), uid="b", name="b")]
    assert waits_until_us(planned(events), us(2)) == us(51)
    assert waits_until_us(planned(events), us(60)) == us(60)
    assert waits_until_us(planned(events[:1]), us(2)) == us(2)
    assert us(10**9) > us(60) + LONGEST_TAIL_US


def test_owed_evictions_are_due_and_still_have_their_reason() -> None:
    plans = planned([node(0, taint()), pod(1, tolerates(seconds=9)), node(20)])
    assert still_owed(plans, us(9.9)) == set()
    assert still_owed(plans, us(10)) == {"pod-1"}
    assert still_owed(plans, us(20)) == set()
