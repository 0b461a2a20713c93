"""What rounds do about zones: `TestMonitorNodeHealth`, and full and partial disruption (semantics.md 8.4)."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.upstream.lifecycle import (
    Condition,
    WatchedNode,
    ZoneTurned,
)
from tests.kit.upstream.lifecycle.scene import (
    FAKE_NOW_US,
    HOUR_US,
    MINUTE_US,
    NOT_READY,
    SECOND_US,
    UNREACHABLE,
    ZONE_1,
    ZONE_2,
    down,
    node,
    put_status,
    ready,
    started,
    taints_of,
    up,
)

LATER_US = FAKE_NOW_US + HOUR_US
HEALTHY = ready("True", LATER_US)
UNHEALTHY = ready("Unknown")
EXCLUDED = {"node.kubernetes.io/exclude-disruption": ""}


def blank(name: str) -> WatchedNode:
    return node(name, created_at_us=FAKE_NOW_US)


@pytest.mark.parametrize(
    ("nodes", "later", "initial", "following"),
    [
        pytest.param(
            [up("node0", "", "")],
            [HEALTHY],
            {"": "Normal"},
            {"": "Normal"},
            id="No Disruption: Node created recently without failure domain labels",
        ),
        pytest.param(
            [down("node0"), down("node1", "zone2")],
            [UNHEALTHY, HEALTHY],
            {ZONE_1: "FullDisruption", ZONE_2: "FullDisruption"},
            {ZONE_1: "FullDisruption", ZONE_2: "Normal"},
            id="No Disruption: Initially both zones down, one comes back",
        ),
        pytest.param(
            [blank("node0"), blank("node1"), blank("node2"), blank("node3")],
            [UNHEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY],
            {ZONE_1: "FullDisruption"},
            {ZONE_1: "PartialDisruption"},
            id="Partial Disruption: Nodes created recently without status conditions",
        ),
        pytest.param(
            [down("node0"), down("node1"), up("node2"), up("node3"), up("node4")],
            [UNHEALTHY, UNHEALTHY, UNHEALTHY, HEALTHY, HEALTHY],
            {ZONE_1: "Normal"},
            {ZONE_1: "PartialDisruption"},
            id="Partial Disruption: one Node failed leading to exceed the configured threshold",
        ),
        pytest.param(
            [down("node0"), down("node1"), up("node2")],
            [UNHEALTHY, UNHEALTHY, UNHEALTHY],
            {ZONE_1: "Normal"},
            {ZONE_1: "FullDisruption"},
            id="Full Disruption: the zone has less than 2 Nodes down, the last healthy Node has failed",
        ),
        pytest.param(
            [down("node0"), up("node1", "zone2")],
            [UNHEALTHY, HEALTHY],
            {ZONE_1: "FullDisruption", ZONE_2: "Normal"},
            {ZONE_1: "FullDisruption", ZONE_2: "Normal"},
            id="Full Disruption: all the Nodes in one zone are down",
        ),
        pytest.param(
            [down("node0"), down("node1", "zone2", "region2")],
            [UNHEALTHY, UNHEALTHY],
            {ZONE_1: "FullDisruption", "region2:\0:zone2": "FullDisruption"},
            {ZONE_1: "FullDisruption", "region2:\0:zone2": "FullDisruption"},
            id="Full Disruption: all the Nodes in both the zones are down",
        ),
        pytest.param(
            [up("node0")],
            [None],
            {ZONE_1: "Normal"},
            {ZONE_1: "FullDisruption"},
            id="Full Disruption: Ready condition removed from the Node",
        ),
        pytest.param(
            [down("node0"), up("node-master", labels=EXCLUDED)],
            [UNHEALTHY, HEALTHY],
            {ZONE_1: "FullDisruption"},
            {ZONE_1: "FullDisruption"},
            id="Full Disruption: the only available Node has the exclude-disruption label",
        ),
    ],
)
def test_monitor_node_health(
    nodes: list[WatchedNode], later: list[Condition | None], initial: dict[str, str], following: dict[str, str]
) -> None:
    lifecycle = started(*nodes)
    lifecycle.monitor(FAKE_NOW_US)
    assert lifecycle.zone_states == initial
    for one, condition in zip(nodes, later, strict=True):
        conditions = () if condition is None else (condition,)
        lifecycle.put_node(dataclasses.replace(lifecycle.nodes[one.name], conditions=conditions), LATER_US)
    lifecycle.monitor(LATER_US)
    assert lifecycle.zone_states == following


@pytest.mark.parametrize("zones", [["zone1"], ["zone1", "zone2"]], ids=["8.4 one zone", "8.4 every zone"])
def test_full_disruption_removes_all_health_taints_and_stops(zones: list[str]) -> None:
    nodes = [up(f"{zone}-{number}", zone) for zone in zones for number in range(3)]
    lifecycle = started(*nodes)
    lifecycle.monitor(FAKE_NOW_US)
    first, *rest = (one.name for one in nodes)
    put_status(lifecycle, first, ready("False", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert taints_of(lifecycle, first) == [NOT_READY]
    for name in rest:
        put_status(lifecycle, name, ready("False", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + SECOND_US)
    assert set(lifecycle.zone_states.values()) == {"FullDisruption"}
    for _ in range(3):
        lifecycle.monitor(FAKE_NOW_US + SECOND_US)
        lifecycle.no_execute_pass(FAKE_NOW_US + SECOND_US)
    assert all(taints_of(lifecycle, one.name) == [] for one in nodes)
    assert all(taints_of(lifecycle, one.name, "NoSchedule") == [NOT_READY] for one in nodes)


def test_cluster_of_one_node_is_never_tainted() -> None:
    lifecycle = started(node("node0", ready("Unknown")))
    for seconds in range(0, 3600, 5):
        lifecycle.monitor(FAKE_NOW_US + seconds * SECOND_US)
        lifecycle.no_execute_pass(FAKE_NOW_US + seconds * SECOND_US)
    assert (taints_of(lifecycle, "node0"), taints_of(lifecycle, "node0", "NoSchedule")) == ([], [UNREACHABLE])


def test_the_end_of_full_disruption_restarts_every_grace_period() -> None:
    lifecycle = started(up("node0"), up("node1"), rate=0.1)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + 51 * SECOND_US)
    assert lifecycle.zone_states == {ZONE_1: "FullDisruption"}
    back_us = FAKE_NOW_US + 10 * MINUTE_US
    put_status(lifecycle, "node0", ready("True", back_us, back_us), at_us=back_us)
    changes = lifecycle.monitor(back_us)
    assert changes[-1].__class__ is ZoneTurned
    assert lifecycle.zone_states == {ZONE_1: "Normal"}
    assert {health.probe_at_us for health in lifecycle.health.values()} == {back_us}
    # The queue goes on at its rate, without a fresh token: ten seconds later, not at once.
    lifecycle.no_execute_pass(back_us)
    assert taints_of(lifecycle, "node1") == []
    lifecycle.no_execute_pass(back_us + 10 * SECOND_US)
    assert taints_of(lifecycle, "node1") == [UNREACHABLE]


def test_partial_disruption_of_a_small_zone_only_stops_new_taints() -> None:
    lifecycle = started(*(up(f"node{number}") for number in range(5)))
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node0", ready("False", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    for number in (1, 2):
        put_status(lifecycle, f"node{number}", ready("False", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    assert lifecycle.zone_states == {ZONE_1: "PartialDisruption"}
    lifecycle.no_execute_pass(FAKE_NOW_US + HOUR_US)
    assert [taints_of(lifecycle, f"node{number}") for number in range(3)] == [[NOT_READY], [], []]


def test_excluded_node_is_tainted_all_the_same() -> None:
    lifecycle = started(node("node0", ready("False"), labels=EXCLUDED), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert taints_of(lifecycle, "node0") == [NOT_READY]


def test_each_zone_has_its_own_rate() -> None:
    lifecycle = started(
        down("a0", "zone1"), up("a1", "zone1"), down("b0", "zone2"), down("b1", "zone2"), up("b2", "zone2"), rate=0.1
    )
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert [name for name in lifecycle.nodes if taints_of(lifecycle, name)] == ["a0", "b0"]
    lifecycle.no_execute_pass(FAKE_NOW_US + 10 * SECOND_US)
    assert [name for name in lifecycle.nodes if taints_of(lifecycle, name)] == ["a0", "b0", "b1"]
