"""`tryUpdateNodeHealth` and semantics.md 7.3; ids name the cases of `node_lifecycle_controller_test.go`."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.upstream.lifecycle import (
    Condition,
    LifecycleSettings,
    NodeHealth,
    NodeLease,
    WatchedNode,
    find_condition,
    update_health,
)
from tests.kit.upstream.lifecycle.scene import FAKE_NOW_US, HOUR_US, LONG_AGO_US, SECOND_US, node, ready

SETTINGS = LifecycleSettings()
STOPPED = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
NEVER = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")


def never(kind: str, created_at_us: int, at_us: int) -> Condition:
    return Condition(kind, "Unknown", *NEVER, created_at_us, at_us)


def disk_pressure(heartbeat_at_us: int) -> Condition:
    return Condition("DiskPressure", "False", "", "", heartbeat_at_us, FAKE_NOW_US)


def look(
    found: WatchedNode, saved: NodeHealth | None, now_us: int, lease_us: int | None = None
) -> tuple[NodeHealth, tuple[Condition, ...] | None]:
    update = update_health(found, saved, None if lease_us is None else NodeLease(lease_us), SETTINGS, now_us)
    return update.health, update.written


ALL_NEVER = tuple(
    never(kind, LONG_AGO_US, FAKE_NOW_US) for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
)
LATER_US = FAKE_NOW_US + HOUR_US
SILENT_AFTER_AN_HOUR = (
    Condition("Ready", "Unknown", *STOPPED, FAKE_NOW_US, LATER_US),
    never("MemoryPressure", LONG_AGO_US, LATER_US),
    never("DiskPressure", LONG_AGO_US, LATER_US),
    never("PIDPressure", LONG_AGO_US, LATER_US),
)


@pytest.mark.parametrize(
    ("first", "second", "leases", "written"),
    [
        pytest.param(
            node(),
            None,
            (None, None),
            ALL_NEVER,
            id="TestMonitorNodeHealthUpdateStatus: created long time ago, without status",
        ),
        pytest.param(
            node(created_at_us=FAKE_NOW_US),
            None,
            (None, None),
            None,
            id="TestMonitorNodeHealthUpdateStatus: created recently, without status",
        ),
        pytest.param(
            node("node0", ready("True")),
            node("node0", ready("True")),
            (None, None),
            SILENT_AFTER_AN_HOUR,
            id="TestMonitorNodeHealthUpdateStatus: status exceeds grace period",
        ),
        pytest.param(
            node("node0", ready("True")),
            None,
            (None, None),
            None,
            id="TestMonitorNodeHealthUpdateStatus: status updated recently",
        ),
        pytest.param(
            node(created_at_us=FAKE_NOW_US),
            None,
            (None, None),
            None,
            id="WithLease: Node created recently, without status. Node lease is missing.",
        ),
        pytest.param(
            node(created_at_us=FAKE_NOW_US),
            None,
            (FAKE_NOW_US, None),
            None,
            id="WithLease: Node created recently, without status. Node lease is renewed recently.",
        ),
        pytest.param(
            node(),
            None,
            (None, None),
            ALL_NEVER,
            id="WithLease: Node created long time ago, without status. Node lease is missing.",
        ),
        pytest.param(
            node(),
            node(),
            (FAKE_NOW_US, LATER_US),
            None,
            id="WithLease: Node created long time ago, without status. Node lease is renewed recently.",
        ),
        pytest.param(
            node(),
            node(),
            (FAKE_NOW_US, FAKE_NOW_US),
            tuple(dataclasses.replace(one, transition_at_us=LATER_US) for one in ALL_NEVER),
            id="WithLease: Node created long time ago, without status. Node lease is expired.",
        ),
        pytest.param(
            node("node0", ready("True"), disk_pressure(FAKE_NOW_US)),
            node("node0", ready("True"), disk_pressure(FAKE_NOW_US)),
            (FAKE_NOW_US, LATER_US),
            None,
            id="WithLease: status exceeds grace period. Node lease is renewed.",
        ),
        pytest.param(
            node("node0", ready("True"), disk_pressure(FAKE_NOW_US)),
            node("node0", ready("True", LATER_US), disk_pressure(LATER_US)),
            (FAKE_NOW_US, FAKE_NOW_US),
            None,
            id="WithLease: status updated by kubelet recently. Node lease is expired.",
        ),
        pytest.param(
            node("node0", ready("True")),
            node("node0", ready("True")),
            (FAKE_NOW_US, FAKE_NOW_US),
            SILENT_AFTER_AN_HOUR,
            id="WithLease: status exceeds grace period. Node lease is also expired.",
        ),
    ],
)
def test_what_is_written(
    first: WatchedNode,
    second: WatchedNode | None,
    leases: tuple[int | None, int | None],
    written: tuple[Condition, ...] | None,
) -> None:
    """One look now; a second one after an hour if there is something to see."""
    health, got = look(first, None, FAKE_NOW_US, leases[0])
    if second is not None:
        assert got is None
        _, got = look(second, health, LATER_US, leases[1])
    assert got == written


@pytest.mark.parametrize("status", ["True", "False", "Unknown", None], ids=lambda status: f"Status {status}")
@pytest.mark.parametrize(
    ("created_at_us", "after"),
    [
        pytest.param(FAKE_NOW_US, None, id="TestTryUpdateNodeHealth"),
        pytest.param(FAKE_NOW_US - 366 * 24 * HOUR_US, "Unknown", id="TestTryUpdateNodeHealth: after grace period"),
    ],
)
def test_saved_condition_is_the_current_one(status: str | None, created_at_us: int, after: str | None) -> None:
    conditions = () if status is None else (ready(status, created_at_us, created_at_us),)
    found = node("node0", *conditions, created_at_us=created_at_us)
    saved = NodeHealth(created_at_us, created_at_us, conditions[0] if conditions else None)
    update = update_health(found, saved, None, SETTINGS, FAKE_NOW_US)
    assert update.health.ready == update.current
    assert (None if update.current is None else update.current.status) == (after or status)


@pytest.mark.parametrize(
    ("silent_us", "is_written"),
    [
        pytest.param(49_999_999, False, id="7.3 within the grace period"),
        pytest.param(50_000_000, False, id="7.3 strictly more: exactly the grace period is not too long"),
        pytest.param(50_000_001, True, id="7.3 strictly more: a microsecond beyond"),
    ],
)
def test_grace_period(silent_us: int, *, is_written: bool) -> None:
    found = node("node0", ready("True"))
    health, _ = look(found, None, FAKE_NOW_US)
    assert (look(found, health, FAKE_NOW_US + silent_us)[1] is not None) is is_written


@pytest.mark.parametrize(
    ("age_us", "is_written"),
    [
        pytest.param(50_000_001, False, id="7.3 no Ready: not the monitor grace period"),
        pytest.param(60_000_000, False, id="7.3 no Ready: exactly the startup grace period is not too long"),
        pytest.param(60_000_001, True, id="7.3 no Ready: beyond it, counted from creation"),
    ],
)
def test_startup_grace_period(age_us: int, *, is_written: bool) -> None:
    found = node(created_at_us=FAKE_NOW_US)
    assert (look(found, None, FAKE_NOW_US + age_us)[1] is not None) is is_written


@pytest.mark.parametrize(
    ("status", "is_written"),
    [
        pytest.param("True", True, id="7.3 True becomes Unknown"),
        pytest.param("False", True, id="7.3 False becomes Unknown"),
        pytest.param("Unknown", False, id="tryUpdateNodeHealth: Unknown stays, nothing is written"),
    ],
)
def test_status_before(status: str, *, is_written: bool) -> None:
    found = node("node0", ready(status), disk_pressure(FAKE_NOW_US))
    health, _ = look(found, None, FAKE_NOW_US)
    assert (look(found, health, LATER_US)[1] is not None) is is_written


def test_network_unavailable_is_left_alone_and_order_is_kept() -> None:
    network = Condition("NetworkUnavailable", "False", "RouteCreated", "up", FAKE_NOW_US, FAKE_NOW_US)
    pid = Condition("PIDPressure", "True", "Lab", "", FAKE_NOW_US, FAKE_NOW_US)
    found = node("node0", network, pid, ready("True"))
    health, _ = look(found, None, FAKE_NOW_US)
    _, written = look(found, health, LATER_US)
    assert written is not None
    assert written[0] == network
    assert [one.type for one in written] == [
        "NetworkUnavailable",
        "PIDPressure",
        "Ready",
        "MemoryPressure",
        "DiskPressure",
    ]
    assert written[1] == Condition("PIDPressure", "Unknown", *STOPPED, FAKE_NOW_US, LATER_US)


def test_condition_that_is_unknown_already_keeps_its_reason_and_time() -> None:
    pid = Condition("PIDPressure", "Unknown", "Mine", "", FAKE_NOW_US, FAKE_NOW_US)
    found = node("node0", ready("True"), pid)
    health, _ = look(found, None, FAKE_NOW_US)
    _, written = look(found, health, LATER_US)
    assert written is not None
    assert find_condition(written, "PIDPressure") == pid


def test_first_sight_counts_as_heartbeat() -> None:
    """A restarted controller gives every node a fresh grace period, however old its status is."""
    old = node("node0", ready("True", LONG_AGO_US, LONG_AGO_US))
    health, written = look(old, None, FAKE_NOW_US)
    assert written is None
    assert (health.probe_at_us, health.ready_transition_at_us) == (FAKE_NOW_US, FAKE_NOW_US)


@pytest.mark.parametrize(
    ("heartbeat_us", "transition_us", "probe_s", "turned_s"),
    [
        pytest.param(0, 0, 0, 0, id="both saved and current, same heartbeat: nothing happened"),
        pytest.param(5, 0, 10, 0, id="new heartbeat, same transition: only the probe"),
        pytest.param(5, 5, 10, 10, id="new heartbeat and transition: both"),
        pytest.param(0, 5, 0, 0, id="new transition without heartbeat: not noticed"),
        pytest.param(-5, 0, 10, 0, id="heartbeat that goes back counts as one"),
    ],
)
def test_heartbeats(heartbeat_us: int, transition_us: int, probe_s: int, turned_s: int) -> None:
    health, _ = look(node("node0", ready("True")), None, FAKE_NOW_US)
    later = ready("True", FAKE_NOW_US + heartbeat_us * SECOND_US, FAKE_NOW_US + transition_us * SECOND_US)
    health, _ = look(node("node0", later), health, FAKE_NOW_US + 10 * SECOND_US)
    assert health.probe_at_us == FAKE_NOW_US + probe_s * SECOND_US
    assert health.ready_transition_at_us == FAKE_NOW_US + turned_s * SECOND_US


@pytest.mark.parametrize(
    ("renewed", "probes"),
    [
        pytest.param([0, 0, 0], [0, 0, 0], id="lease that is not renewed counts once"),
        pytest.param([0, 10, 20], [0, 10, 20], id="each renewal counts"),
        pytest.param([None, 10, 10], [0, 10, 10], id="first lease counts"),
        pytest.param([5, 4, 6], [0, 0, 20], id="renewal that goes back does not count"),
    ],
)
def test_leases(renewed: list[int | None], probes: list[int]) -> None:
    """Looks at 0, 10 and 20 s."""
    health: NodeHealth | None = None
    for number, (lease_s, probe_s) in enumerate(zip(renewed, probes, strict=True)):
        lease_us = None if lease_s is None else FAKE_NOW_US + lease_s * SECOND_US
        health, _ = look(node("node0", ready("True")), health, FAKE_NOW_US + 10 * number * SECOND_US, lease_us)
        assert health.probe_at_us == FAKE_NOW_US + probe_s * SECOND_US


def test_a_new_status_makes_the_old_lease_count_again() -> None:
    """As in the source: a new entry replaces the old one without its lease."""
    lease_us = FAKE_NOW_US
    health, _ = look(node("node0", ready("True")), None, FAKE_NOW_US, lease_us)
    posted = node("node0", ready("True", FAKE_NOW_US + 10 * SECOND_US))
    health, _ = look(posted, health, FAKE_NOW_US + 10 * SECOND_US, lease_us)
    assert health.lease is None
    health, _ = look(posted, health, FAKE_NOW_US + 20 * SECOND_US, lease_us)
    assert health.probe_at_us == FAKE_NOW_US + 20 * SECOND_US
    health, _ = look(posted, health, FAKE_NOW_US + 30 * SECOND_US, lease_us)
    assert health.probe_at_us == FAKE_NOW_US + 20 * SECOND_US


def test_ready_condition_that_vanishes_keeps_the_clock() -> None:
    """TestMonitorNodeHealth, "Ready condition removed from the Node": the startup grace period counts on."""
    health, _ = look(node("node0", ready("True")), None, FAKE_NOW_US)
    health, written = look(node(), health, FAKE_NOW_US + 60 * SECOND_US)
    assert (health.probe_at_us, health.ready, written) == (FAKE_NOW_US, None, None)
    assert look(node(), health, FAKE_NOW_US + 60 * SECOND_US + 1)[1] is not None


def test_writing_again_is_not_needed_and_return_is_noticed() -> None:
    found = node("node0", ready("True"))
    health, _ = look(found, None, FAKE_NOW_US)
    health, written = look(found, health, LATER_US)
    assert written is not None
    silent = node("node0", *written)
    health, written = look(silent, health, LATER_US + HOUR_US)
    assert written is None
    back = node("node0", ready("True", LATER_US + 2 * HOUR_US, LATER_US + 2 * HOUR_US))
    health, written = look(back, health, LATER_US + 2 * HOUR_US)
    assert (health.probe_at_us, written) == (LATER_US + 2 * HOUR_US, None)


@pytest.mark.parametrize(
    ("silenced_us", "turns_again"),
    [
        pytest.param(1, True, id="within a second: the memory is finer than the object"),
        pytest.param(0, False, id="on the second: the same time, no turn"),
    ],
)
def test_a_turn_at_the_second_of_the_silence(silenced_us: int, *, turns_again: bool) -> None:
    """`tryUpdateNodeHealth` remembers the status as it wrote it, and compares the kubelet's next one with that."""
    found = node("node0", ready("True"))
    health, _ = look(found, None, FAKE_NOW_US)
    health, written = look(found, health, LATER_US + silenced_us)
    assert written is not None
    back = node("node0", ready("True", LATER_US + SECOND_US, written[0].transition_at_us or 0))
    health, _ = look(back, health, LATER_US + 5 * SECOND_US)
    turned_us = 5 * SECOND_US if turns_again else silenced_us
    assert health.ready_transition_at_us == LATER_US + turned_us


def test_times_are_written_in_whole_seconds() -> None:
    found = node("node0", ready("True"))
    health, _ = look(found, None, FAKE_NOW_US)
    _, written = look(found, health, LATER_US + 999_999)
    assert written is not None
    assert written[0].transition_at_us == LATER_US
