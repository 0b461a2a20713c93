from __future__ import annotations

from collections.abc import Sequence

from evictstream.kit.demo.judgement import plan_of
from evictstream.kit.demo.kill_moment import LONGEST_TAIL_US, kill_moment_us, still_owed, waits_until_us
from evictstream.kit.demo.recording import Event, demo_incident, read_recording
from evictstream.kit.oracle import PodPlan
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import START_US, node, pod, taint, tolerates, us


def planned(events: Sequence[Event]) -> dict[str, PodPlan]:
    return plan_of(events, Settings())


def test_a_worker_is_killed_in_mid_window() -> None:
    """Half of the 52 deadlines of the peak or more are pending from 14.0 s to 32.3 s of the recorded outage."""
    found = read_recording(demo_incident())
    plan = planned(found.events)
    moment = kill_moment_us(plan, 0)
    assert moment is not None
    first = min(one.spans[0].since_us for one in plan.values())
    assert round((moment - first) / 1e6) == 23


def test_nobody_is_killed_when_nothing_is_pending() -> None:
    assert kill_moment_us(planned([node(0, taint()), pod(1)]), START_US) is None


def test_longest_stretch_counts() -> None:
    plan = planned([node(0), pod(0, tolerates(seconds=20)), node(10, taint()), node(12), node(14, taint())])
    assert kill_moment_us(plan, START_US) == us(24)


def test_waiting_ends_with_the_last_deadline_that_is_near() -> None:
    events = [node(0, taint()), pod(1, tolerates(seconds=50)), pod(1, tolerates(seconds=10**9), uid="b", name="b")]
    assert waits_until_us(planned(events), us(2)) == us(51)
    assert waits_until_us(planned(events), us(60)) == us(60)
    assert waits_until_us(planned(events[:1]), us(2)) == us(2)
    assert us(10**9) > us(60) + LONGEST_TAIL_US


def test_owed_evictions_are_due_and_still_have_their_reason() -> None:
    plan = planned([node(0, taint()), pod(1, tolerates(seconds=9)), node(20)])
    assert still_owed(plan, us(9.9)) == set()
    assert still_owed(plan, us(10)) == {"pod-1"}
    assert still_owed(plan, us(20)) == set()
