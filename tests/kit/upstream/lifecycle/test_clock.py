"""Conditions in, taints with times out: the whole controller under a virtual clock, with default settings."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import (
    ClusterChange,
    ConditionsWritten,
    LifecycleClock,
    LifecycleSettings,
    NodeLifecycle,
    TaintsChanged,
    ZoneTurned,
)
from tests.harness.examples import examples
from tests.kit.upstream.lifecycle.scene import FAKE_NOW_US, SECOND_US, ZONE_1, node, ready

START_US = FAKE_NOW_US


class Scene:
    """A cluster with a zone of `size` nodes that are ready, and a clock."""

    def __init__(self, size: int, settings: LifecycleSettings | None = None) -> None:
        self.lifecycle = NodeLifecycle(settings)
        self.clock = LifecycleClock(self.lifecycle, START_US)
        self.changes: list[ClusterChange] = []
        for number in range(size):
            self.lifecycle.put_node(node(f"n{number}", ready("True")), START_US)

    def run(self, to_s: float, living: int) -> None:
        """Let time pass; the last `living` nodes renew their leases each second."""
        first_s = round(self.now_s) if self.changes else 0
        for second in range(first_s, int(to_s) + 1):
            for name in list(self.lifecycle.nodes)[len(self.lifecycle.nodes) - living :]:
                self.lifecycle.renew_lease(name, START_US + second * SECOND_US)
            self.changes += self.clock.advance(START_US + second * SECOND_US)

    @property
    def now_s(self) -> float:
        return (self.changes[-1].at_us - START_US) / SECOND_US

    def times(self, effect: str) -> list[tuple[str, float]]:
        """List which node got a taint of this effect after how many seconds."""
        return [
            (change.node, (change.at_us - START_US) / SECOND_US)
            for change in self.changes
            if isinstance(change, TaintsChanged) and any(taint.effect == effect for taint in change.added)
        ]


@pytest.mark.parametrize(
    ("settings", "silent_s", "tainted_s"),
    [
        pytest.param(LifecycleSettings(), 55, 55.0, id="8.1 grace period 50 s, seen by the round at 55 s"),
        pytest.param(
            LifecycleSettings(reacts_in_same_round=False), 55, 60.0, id="7.2 before 1.29: NoExecute a period later"
        ),
        pytest.param(
            LifecycleSettings(monitor_grace_period_us=40 * SECOND_US),
            45,
            45.0,
            id="8.1 before 1.32: 40 s, seen at 45 s",
        ),
        pytest.param(
            LifecycleSettings(monitor_grace_period_us=49_999_999),
            50,
            50.0,
            id="7.3 strictly more than the grace period",
        ),
        pytest.param(
            LifecycleSettings(monitor_period_us=2 * SECOND_US, monitor_grace_period_us=10 * SECOND_US),
            12,
            12.0,
            id="flags of the recordings",
        ),
    ],
)
def test_silent_node(settings: LifecycleSettings, silent_s: int, tainted_s: float) -> None:
    scene = Scene(3, settings)
    scene.run(100, living=2)
    assert scene.times("NoSchedule") == [("n0", silent_s)]
    assert scene.times("NoExecute") == [("n0", tainted_s)]
    written = [change.at_us for change in scene.changes if isinstance(change, ConditionsWritten)]
    assert written == [START_US + silent_s * SECOND_US]


def test_node_that_never_reports_has_the_startup_grace_period() -> None:
    scene = Scene(2)
    scene.lifecycle.put_node(node("new", created_at_us=START_US), START_US)
    scene.lifecycle.put_node(node("n0", ready("True")), START_US)
    for name in ("n0", "n1"):
        scene.lifecycle.renew_lease(name, START_US)
    for second in range(0, 80, 5):
        for name in ("n0", "n1"):
            scene.lifecycle.renew_lease(name, START_US + second * SECOND_US)
        scene.changes += scene.clock.advance(START_US + second * SECOND_US)
    assert scene.times("NoSchedule") == [("new", 65.0)]
    assert scene.times("NoExecute") == [("new", 65.0)]


def test_node_that_reports_not_ready_waits_for_the_next_round() -> None:
    """NoSchedule at once, NoExecute with the next round (semantics.md 7.2)."""
    scene = Scene(3)
    scene.run(1, living=3)
    at_us = START_US + 1_300_000
    scene.changes += scene.clock.advance(at_us)
    scene.changes += scene.lifecycle.put_node(node("n0", ready("False", at_us)), at_us)
    scene.changes += scene.clock.advance(START_US + 20 * SECOND_US)
    assert scene.times("NoSchedule") == [("n0", 1.3)]
    assert scene.times("NoExecute") == [("n0", 5.0)]


def test_one_node_per_ten_seconds_and_zone() -> None:
    """Semantics.md 8.1: rate 0.1; four of ten nodes are no disruption."""
    scene = Scene(10)
    scene.run(200, living=6)
    assert scene.times("NoExecute") == [("n0", 55.0), ("n1", 65.0), ("n2", 75.0), ("n3", 85.0)]


def test_large_zone_in_partial_disruption_goes_at_the_secondary_rate() -> None:
    """Semantics.md 8.4: 0.01 per second, a little less in 32 bits, so the pass 0.1 s later has the token."""
    scene = Scene(60)
    scene.run(300, living=20)
    assert scene.lifecycle.zone_states == {ZONE_1: "PartialDisruption"}
    assert scene.times("NoExecute") == [("n0", 55.0), ("n1", 155.1), ("n2", 255.2)]


def test_small_zone_in_partial_disruption_stops() -> None:
    scene = Scene(50)
    scene.run(300, living=20)
    assert scene.lifecycle.zone_states == {ZONE_1: "PartialDisruption"}
    assert len(scene.times("NoSchedule")) == 30
    assert scene.times("NoExecute") == []


def test_cluster_whose_nodes_are_all_down_is_never_tainted() -> None:
    scene = Scene(5)
    scene.run(600, living=0)
    assert scene.lifecycle.zone_states == {ZONE_1: "FullDisruption"}
    assert len(scene.times("NoSchedule")) == 5
    assert scene.times("NoExecute") == []


def test_end_of_full_disruption() -> None:
    """A node returns at 100 s: the others are silent already, and their queue starts without a token."""
    scene = Scene(2)
    scene.run(99, living=0)
    back_us = START_US + 100 * SECOND_US
    scene.lifecycle.put_node(node("n1", ready("True", back_us, back_us)), back_us)
    scene.changes += scene.clock.advance(back_us)
    scene.run(130, living=1)
    turned = [
        (change.after, (change.at_us - START_US) // SECOND_US)
        for change in scene.changes
        if isinstance(change, ZoneTurned)
    ]
    assert turned == [("Normal", 0), ("FullDisruption", 55), ("Normal", 100)]
    assert scene.times("NoExecute") == [("n0", 110.0)]


def test_recovery_removes_no_schedule_at_once_no_execute_next_round() -> None:
    """Semantics.md 7.2; #112930."""
    scene = Scene(3)
    scene.run(60, living=2)
    back_us = START_US + 61_500_000
    scene.changes += scene.clock.advance(back_us)
    silent = scene.lifecycle.nodes["n0"]
    returned = dataclasses.replace(silent, conditions=(ready("True", back_us, back_us),))
    changes = [*scene.lifecycle.put_node(returned, back_us), *scene.clock.advance(START_US + 70 * SECOND_US)]
    removed = [(taint.effect, change.at_us) for change in changes for taint in getattr(change, "removed", ())]
    assert removed == [("NoSchedule", back_us), ("NoExecute", START_US + 65 * SECOND_US)]


def test_time_that_lies_behind_changes_nothing() -> None:
    scene = Scene(3)
    scene.run(60, living=2)
    assert scene.clock.advance(START_US + 30 * SECOND_US) == ()


@given(st.lists(st.integers(0, 40 * SECOND_US), max_size=8), st.integers(1, 4))
@hypothesis_settings(deadline=None, max_examples=examples(25))
def test_how_often_the_clock_is_asked_does_not_matter(waits_us: list[int], living: int) -> None:
    """Against the long way, on which every pass is done, also those that find nothing waiting."""

    def scene() -> NodeLifecycle:
        lifecycle = NodeLifecycle()
        for number in range(5):
            status = "True" if number < living else "False"
            lifecycle.put_node(node(f"n{number}", ready(status)), START_US)
        return lifecycle

    lifecycle = scene()
    clock = LifecycleClock(lifecycle, START_US)
    at_us, got = START_US, list[ClusterChange]()
    for wait_us in waits_us:
        at_us += wait_us
        got += clock.advance(at_us)
    got += clock.advance(START_US + 400 * SECOND_US)

    lifecycle = scene()
    expected: list[ClusterChange] = []
    for tenths in range(4001):
        at_us = START_US + tenths * SECOND_US // 10
        expected += lifecycle.monitor(at_us) if tenths % 50 == 0 else ()
        expected += lifecycle.no_execute_pass(at_us)
    assert got == expected
