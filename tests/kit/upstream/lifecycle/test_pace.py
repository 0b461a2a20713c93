"""Requests that take time: the client's limiter, workers, locks and conflicts, each with the waits that it causes."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import (
    INSTANT,
    ClientLimiter,
    ClusterChange,
    ConditionsWritten,
    LifecycleClock,
    LifecycleSettings,
    NodeLifecycle,
    PodsMarkedNotReady,
    RequestPace,
    SettingError,
    TaintsChanged,
    WatchedPod,
    ZoneTurned,
    plausible_paces,
)
from evictstream.models.kubernetes import NO_EXECUTE
from tests.kit.upstream.lifecycle.scene import NOT_READY, SECOND_US, UNREACHABLE, node, ready, taints_of

MILLISECOND_US = 1000
GRACE_US = 10 * SECOND_US
FOUND_US = 15 * SECOND_US
"""The round at 15 s finds the nodes that were silent from the start."""

TEN_PER_SECOND = RequestPace(requests_per_second=10, burst=1, answer_us=0)
"""Each request waits for a token of its own, so times count requests."""

UNLIMITED = RequestPace(requests_per_second=math.inf, answer_us=0)
ANSWERS_IN_100_MS = RequestPace(requests_per_second=math.inf, answer_us=100_000)


class Scene:
    """Nodes `n0` and up that were ready at the start and report nothing more, and a clock at some pace."""

    def __init__(self, pace: RequestPace, size: int, *, rate: float = 100.0, reads_live_leases: bool = False) -> None:
        settings = LifecycleSettings(
            monitor_grace_period_us=GRACE_US, eviction_rate=rate, reads_live_leases=reads_live_leases
        )
        self.lifecycle = NodeLifecycle(settings)
        self.clock = LifecycleClock(self.lifecycle, 0, pace)
        for number in range(size):
            self.clock.put_node(node(f"n{number}", ready("True")), 0)
        self.changes: list[ClusterChange] = []

    def run(self, to_us: int) -> None:
        self.changes += self.clock.advance(to_us)

    def times_ms(self, kind: type[ClusterChange]) -> list[float]:
        return [(change.at_us - FOUND_US) / MILLISECOND_US for change in self.changes if isinstance(change, kind)]

    def tainted_ms(self) -> list[float]:
        added = [change for change in self.changes if isinstance(change, TaintsChanged)]
        return [
            (change.at_us - FOUND_US) / MILLISECOND_US
            for change in added
            if any(taint.effect == NO_EXECUTE for taint in change.added)
        ]


# --------------------------------------------------------------------------------------------------------- the limiter


@pytest.mark.parametrize(
    ("asked_ms", "granted_ms"),
    [
        pytest.param([0, 0, 0, 0], [0, 0, 100, 200], id="two tokens at the start, then one each 100 ms"),
        pytest.param([0, 0, 50, 400, 400, 400], [0, 0, 100, 400, 400, 500], id="tokens come back, two at most"),
        pytest.param([0, 0, 0, 250, 250], [0, 0, 100, 250, 300], id="half a token is kept"),
    ],
)
def test_tokens_in_the_order_of_asking(asked_ms: list[int], granted_ms: list[int]) -> None:
    limiter = ClientLimiter(RequestPace(requests_per_second=10, burst=2))
    assert [limiter.reserve(at_ms * MILLISECOND_US) / MILLISECOND_US for at_ms in asked_ms] == granted_ms


def test_request_that_goes_first_waits_for_one_token_only() -> None:
    limiter = ClientLimiter(RequestPace(requests_per_second=10, burst=1))
    for _ in range(5):
        limiter.reserve(0)
    assert limiter.reserve(0, goes_first=True) == 100 * MILLISECOND_US
    assert limiter.reserve(0) == 600 * MILLISECOND_US


@given(st.lists(st.integers(0, 500_000), max_size=30), st.integers(1, 5))
def test_any_window_has_at_most_burst_and_rate(waits_us: list[int], burst: int) -> None:
    """Against the definition of a token bucket."""
    limiter = ClientLimiter(RequestPace(requests_per_second=10, burst=burst))
    now_us, granted = 0, list[int]()
    for wait_us in waits_us:
        now_us += wait_us
        granted.append(limiter.reserve(now_us))
        assert granted[-1] >= now_us
    assert granted == sorted(granted)
    for first, start_us in enumerate(granted):
        for last in range(first, len(granted)):
            assert last - first + 1 <= burst + (granted[last] - start_us) / 100_000


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("requests_per_second", 0.0),
        ("requests_per_second", math.nan),
        ("burst", 0),
        ("node_workers", 0),
        ("pod_workers", 0),
        ("answer_us", -1),
        ("node_us", -1),
        ("pass_offset_us", -1),
    ],
)
def test_impossible_numbers_are_refused_by_name(field: str, number: float) -> None:
    with pytest.raises(SettingError) as refused:
        dataclasses.replace(RequestPace(), **{field: number})  # type: ignore[arg-type]
    assert refused.value.field == field


def test_plausible_paces_keep_what_is_known() -> None:
    known = RequestPace(requests_per_second=50, burst=100, answer_us=2000)
    instant, *others = plausible_paces(known)
    assert instant == INSTANT
    assert {pace.requests_per_second for pace in others} == {50}
    assert {(pace.answer_us, pace.burst) for pace in others} >= {(2000, 100), (2000, 1), (SECOND_US, 100)}
    assert len(set(others)) == len(others) == 16


# ----------------------------------------------------------------------------------------------- what waits for what


def test_writes_and_events_take_turns_at_one_limiter() -> None:
    """Ten tokens per second: each request waits for all that asked before it."""
    scene = Scene(TEN_PER_SECOND, 1)
    for number in range(3):
        scene.clock.put_pod(WatchedPod("lab", f"p{number}", "n0"), 0)
    scene.run(FOUND_US + 5 * SECOND_US)
    assert scene.times_ms(ConditionsWritten) == [0]
    # In the order of asking: 100 NoSchedule reads, 200 first pod, 300 the node's event, 400 the pass reads,
    # 500 NoSchedule writes, 600 second pod, 700 the first pod's event, 800 the pass writes, 900 third pod.
    assert scene.times_ms(TaintsChanged) == [500, 800]
    assert scene.tainted_ms() == [800]
    assert scene.times_ms(PodsMarkedNotReady) == [200, 600, 900]
    assert scene.times_ms(ZoneTurned)[-1] == 900


def test_eight_nodes_at_a_time() -> None:
    scene = Scene(dataclasses.replace(UNLIMITED, node_us=SECOND_US), 18)
    scene.run(FOUND_US + 30 * SECOND_US)
    # Each round takes three seconds, so the third begins at 16 s.
    assert scene.times_ms(ConditionsWritten) == [2000] * 8 + [3000] * 8 + [4000] * 2


def test_the_next_round_begins_a_period_after_the_end() -> None:
    """At 0, 6 and 12 s; a round sees the nodes after a second, first at 1 s, so they are silent at 13 s."""
    scene = Scene(dataclasses.replace(UNLIMITED, node_us=SECOND_US), 2)
    scene.run(FOUND_US)
    assert scene.times_ms(ConditionsWritten) == [-2000, -2000]


def test_a_pass_under_way_keeps_the_old_limiter() -> None:
    """Six of ten silent: a pass that begins before the round ends taints all six, as its limiter refills meanwhile."""
    scene = Scene(dataclasses.replace(ANSWERS_IN_100_MS, pass_offset_us=50 * MILLISECOND_US), 10)
    scene.clock.put_pod(WatchedPod("lab", "p0", "n0"), 0)
    for second in range(30):
        for number in range(6, 10):
            scene.lifecycle.renew_lease(f"n{number}", second * SECOND_US)
        scene.run(second * SECOND_US)
    assert scene.times_ms(PodsMarkedNotReady) == [200]
    assert scene.tainted_ms() == [350, 550, 750, 950, 1150, 1350]
    assert scene.times_ms(ZoneTurned)[-1] == 1350


def test_entering_full_disruption_leaves_the_taints_of_its_own_round() -> None:
    """They are removed from nodes as the round saw them when it began, which is without."""
    scene = Scene(dataclasses.replace(ANSWERS_IN_100_MS, pass_offset_us=50 * MILLISECOND_US), 3)
    for number in range(4):
        scene.clock.put_pod(WatchedPod("lab", f"p{number}", "n0"), 0)
    scene.run(FOUND_US + 60 * SECOND_US)
    assert set(scene.lifecycle.zone_states.values()) == {"FullDisruption"}
    assert [taints_of(scene.lifecycle, f"n{number}") for number in range(3)] == [[UNREACHABLE], [UNREACHABLE], []]


# ------------------------------------------------------------------------------------- what changes during a request


def test_heartbeat_while_the_write_waits_keeps_the_node_ready() -> None:
    """The write is refused, since the node has changed, and the node that is read again is not silent."""
    scene = Scene(ANSWERS_IN_100_MS, 2)
    scene.run(FOUND_US + 50 * MILLISECOND_US)
    scene.clock.put_node(node("n0", ready("True", FOUND_US, FOUND_US)), FOUND_US + 50 * MILLISECOND_US)
    scene.run(FOUND_US + SECOND_US)
    assert [change.node for change in scene.changes if isinstance(change, ConditionsWritten)] == ["n1"]
    assert set(scene.lifecycle.zone_states.values()) == {"Normal"}


def test_another_change_while_the_write_waits_costs_two_requests() -> None:
    scene = Scene(ANSWERS_IN_100_MS, 2)
    scene.run(FOUND_US + 50 * MILLISECOND_US)
    labelled = dataclasses.replace(scene.lifecycle.nodes["n0"], is_unschedulable=False, uid="another")
    scene.clock.put_node(labelled, FOUND_US + 50 * MILLISECOND_US)
    scene.run(FOUND_US + SECOND_US)
    assert scene.times_ms(ConditionsWritten) == [100, 300]


def test_node_deleted_while_the_write_waits_counts_for_no_zone() -> None:
    scene = Scene(ANSWERS_IN_100_MS, 2)
    scene.lifecycle.renew_lease("n1", 1)
    scene.run(6 * SECOND_US)
    scene.lifecycle.renew_lease("n1", 6 * SECOND_US)
    scene.run(FOUND_US + 50 * MILLISECOND_US)
    scene.lifecycle.delete_node("n0")
    scene.run(FOUND_US + SECOND_US)
    assert scene.times_ms(ConditionsWritten) == []
    assert set(scene.lifecycle.zone_states.values()) == {"Normal"}


def test_queued_taint_lands_on_a_node_that_has_just_recovered() -> None:
    """Semantics.md 13 row 34."""
    scene = Scene(ANSWERS_IN_100_MS, 3)
    scene.lifecycle.renew_lease("n1", 1)
    scene.lifecycle.renew_lease("n2", 1)
    scene.run(6 * SECOND_US)
    scene.lifecycle.renew_lease("n1", 6 * SECOND_US)
    scene.lifecycle.renew_lease("n2", 6 * SECOND_US)
    scene.run(FOUND_US + 250 * MILLISECOND_US)
    scene.clock.put_node(node("n0", ready("True", FOUND_US, FOUND_US)), FOUND_US + 250 * MILLISECOND_US)
    scene.run(FOUND_US + SECOND_US)
    assert taints_of(scene.lifecycle, "n0") == [UNREACHABLE]
    scene.run(FOUND_US + 10 * SECOND_US)
    assert taints_of(scene.lifecycle, "n0") == []


def test_node_changed_during_its_no_schedule_pass_gets_another() -> None:
    scene = Scene(ANSWERS_IN_100_MS, 2)
    scene.run(SECOND_US)
    scene.clock.put_node(node("n0", ready("False", SECOND_US)), SECOND_US)
    scene.run(SECOND_US + 50 * MILLISECOND_US)
    scene.clock.put_node(node("n0", ready("True", SECOND_US)), SECOND_US + 50 * MILLISECOND_US)
    scene.run(2 * SECOND_US)
    turns = [
        (change.at_us / SECOND_US, len(change.added)) for change in scene.changes if isinstance(change, TaintsChanged)
    ]
    assert turns == [(1.2, 1), (1.4, 0)]


def test_changed_node_waits_for_the_worker_that_has_it() -> None:
    """The worker of `n0` is free sooner, and must not look at `n1` beside the worker that writes the old taint."""
    scene = Scene(ANSWERS_IN_100_MS, 2)
    for at_ms, name, status in ((1000, "n0", "False"), (1050, "n1", "False"), (1060, "n1", "True")):
        scene.run(at_ms * MILLISECOND_US)
        scene.clock.put_node(node(name, ready(status, at_ms)), at_ms * MILLISECOND_US)
    scene.run(2 * SECOND_US)
    assert taints_of(scene.lifecycle, "n0", "NoSchedule") == [NOT_READY]
    assert taints_of(scene.lifecycle, "n1", "NoSchedule") == []


def test_eight_no_schedule_passes_at_a_time() -> None:
    scene = Scene(ANSWERS_IN_100_MS, 18)
    scene.run(SECOND_US)
    for number in range(18):
        scene.clock.put_node(node(f"n{number}", ready("False")), SECOND_US)
    scene.run(2 * SECOND_US)
    waves = [1200] * 8 + [1400] * 8 + [1600] * 2
    assert scene.times_ms(TaintsChanged) == [each - FOUND_US / MILLISECOND_US for each in waves]


def test_arriving_pod_waits_for_its_request() -> None:
    scene = Scene(ANSWERS_IN_100_MS, 1)
    scene.clock.put_node(node("n0", ready("False")), 0)
    scene.run(SECOND_US)
    assert scene.clock.put_pod(WatchedPod("lab", "p0", "n0"), SECOND_US) == ()
    scene.run(2 * SECOND_US)
    assert scene.times_ms(PodsMarkedNotReady) == [1100 - FOUND_US / MILLISECOND_US]
