"""Whole rounds: `TestMonitorNodeHealth*`, `TestApplyNoExecuteTaints*`, `TestSwapUnreachableNotReadyTaints` and more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from models.kubernetes import Taint
from models.kubernetes.lifecycle import (
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    Condition,
    LifecycleSettings,
    NodeLifecycle,
    NodeReported,
    TaintsChanged,
    WatchedNode,
    ZoneTurned,
)
from tests.models.kubernetes.lifecycle.scene import (
    FAKE_NOW_US,
    HOUR_US,
    MINUTE_US,
    NOT_READY,
    SECOND_US,
    UNREACHABLE,
    ZONE_1,
    ZONE_2,
    node,
    ready,
    started,
    taints_of,
)

LATER_US = FAKE_NOW_US + HOUR_US
HEALTHY = ready("True", LATER_US)
UNHEALTHY = ready("Unknown")
EXCLUDED = {"node.kubernetes.io/exclude-disruption": ""}


def down(name: str, zone: str = "zone1", region: str = "region1") -> WatchedNode:
    return node(name, ready("Unknown"), zone=zone, region=region, created_at_us=FAKE_NOW_US)


def up(name: str, zone: str = "zone1", region: str = "region1", labels: Mapping[str, str] | None = None) -> WatchedNode:
    return node(name, ready("True"), zone=zone, region=region, created_at_us=FAKE_NOW_US, labels=labels)


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


def put_status(lifecycle: NodeLifecycle, name: str, *conditions: Condition, at_us: int) -> None:
    lifecycle.put_node(dataclasses.replace(lifecycle.nodes[name], conditions=conditions), at_us)


def test_apply_no_execute_taints() -> None:
    """TestApplyNoExecuteTaints."""
    lifecycle = started(
        node("node0", ready("Unknown")), up("node1"), node("node2", ready("False")), node("node3", ready("True"))
    )
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert taints_of(lifecycle, "node0") == [UNREACHABLE]
    assert taints_of(lifecycle, "node2") == [NOT_READY]
    put_status(lifecycle, "node2", ready("True", FAKE_NOW_US + MINUTE_US), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert lifecycle.nodes["node2"].taints == ()
    put_status(lifecycle, "node3", ready("False", FAKE_NOW_US + MINUTE_US), at_us=FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node3", Condition("MemoryPressure", "Unknown"), at_us=FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert lifecycle.nodes["node3"].taints == ()


def test_apply_no_execute_taints_to_unreachable_node() -> None:
    """TestApplyNoExecuteTaintsToUnreachableNode (#120816): found silent and tainted in one round."""
    lifecycle = started(up("node0"), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert [one.taints for one in lifecycle.nodes.values()] == [(), ()]
    time2_us = FAKE_NOW_US + 51 * SECOND_US
    put_status(lifecycle, "node1", ready("True", time2_us), at_us=time2_us)
    lifecycle.monitor(time2_us)
    lifecycle.no_execute_pass(time2_us)
    assert taints_of(lifecycle, "node0") == [UNREACHABLE]
    assert lifecycle.nodes["node1"].taints == ()
    put_status(lifecycle, "node0", ready("True", time2_us, time2_us), at_us=time2_us)
    lifecycle.monitor(time2_us)
    lifecycle.no_execute_pass(time2_us)
    assert lifecycle.nodes["node0"].taints == ()


def test_before_1_29_the_condition_from_before_the_round_decides() -> None:
    """Semantics.md 7.2: that adds up to one period of delay."""
    lifecycle = NodeLifecycle(LifecycleSettings(reacts_in_same_round=False))
    lifecycle.put_node(up("node0"), FAKE_NOW_US)
    lifecycle.put_node(up("node1"), FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    found_us = FAKE_NOW_US + 51 * SECOND_US
    put_status(lifecycle, "node1", ready("True", found_us), at_us=found_us)
    lifecycle.monitor(found_us)
    lifecycle.no_execute_pass(found_us)
    assert (taints_of(lifecycle, "node0"), taints_of(lifecycle, "node0", "NoSchedule")) == ([], [UNREACHABLE])
    lifecycle.monitor(found_us + 5 * SECOND_US)
    lifecycle.no_execute_pass(found_us + 5 * SECOND_US)
    assert taints_of(lifecycle, "node0") == [UNREACHABLE]


def test_apply_no_execute_taints_to_nodes_enqueue_twice() -> None:
    """TestApplyNoExecuteTaintsToNodesEnqueueTwice."""
    lifecycle = started(node("node0", ready("Unknown")), up("node1"), node("node2", ready("False")))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node0", ready("True", FAKE_NOW_US + MINUTE_US), at_us=FAKE_NOW_US)
    for one in (node("node3", ready("Unknown")), up("node4"), node("node5", ready("False"))):
        lifecycle.put_node(one, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert [taints_of(lifecycle, f"node{number}") for number in range(6)] == [
        [],
        [],
        [NOT_READY],
        [UNREACHABLE],
        [],
        [NOT_READY],
    ]


def test_node_that_recovered_while_it_waited_is_dropped() -> None:
    """doNoExecuteTaintingPass: ready by now, and the entry is done."""
    lifecycle = started(node("node0", ready("Unknown")), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node0", ready("True", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    assert lifecycle.no_execute_pass(FAKE_NOW_US) == ()
    assert len(lifecycle.queues[ZONE_1]) == 0


def test_node_that_changed_while_it_waited_gets_what_fits_now() -> None:
    lifecycle = started(node("node0", ready("Unknown")), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node0", ready("False", FAKE_NOW_US + 1), at_us=FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert taints_of(lifecycle, "node0") == [NOT_READY]


def test_node_without_ready_is_looked_at_again_after_50_ms() -> None:
    lifecycle = started(node("node0", ready("Unknown")), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    put_status(lifecycle, "node0", at_us=FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert [entry.process_at_us for entry in lifecycle.queues[ZONE_1].waiting] == [FAKE_NOW_US + 50_001]
    put_status(lifecycle, "node0", ready("False"), at_us=FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US + 50_000)
    assert taints_of(lifecycle, "node0") == []
    lifecycle.no_execute_pass(FAKE_NOW_US + 100_000)
    assert taints_of(lifecycle, "node0") == [NOT_READY]


def test_deleted_node_is_dropped_from_the_queue() -> None:
    lifecycle = started(node("node0", ready("Unknown")), up("node1"))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.delete_node("node0")
    assert lifecycle.no_execute_pass(FAKE_NOW_US) == ()
    assert len(lifecycle.queues[ZONE_1]) == 0


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        pytest.param("Unknown", "False", UNREACHABLE_TAINT, NOT_READY_TAINT, id="TestSwapUnreachableNotReadyTaints"),
        pytest.param("False", "Unknown", NOT_READY_TAINT, UNREACHABLE_TAINT, id="7.2 the same the other way round"),
    ],
)
def test_swap(before: str, after: str, old: Taint, new: Taint) -> None:
    """At once, without a token, the new one first."""
    lifecycle = started(node("node0", ready(before)), up("node1"), rate=0.1)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert taints_of(lifecycle, "node0") == [old.key]
    swapped_us = FAKE_NOW_US + SECOND_US
    put_status(lifecycle, "node0", ready(after, swapped_us), at_us=swapped_us)
    changes = lifecycle.monitor(swapped_us)
    assert changes == (
        TaintsChanged(swapped_us, "node0", added=(Taint(new.key, "", "NoExecute", swapped_us),)),
        TaintsChanged(swapped_us, "node0", removed=(Taint(old.key, "", "NoExecute", FAKE_NOW_US),)),
    )
    assert taints_of(lifecycle, "node0") == [new.key]


def test_recovery_takes_both_health_taints_and_leaves_others() -> None:
    foreign = Taint("lab/k", "v", "NoExecute")
    lifecycle = started(up("node0"))
    lifecycle.monitor(FAKE_NOW_US)
    carried = (UNREACHABLE_TAINT, foreign, NOT_READY_TAINT)
    lifecycle.put_node(dataclasses.replace(lifecycle.nodes["node0"], taints=carried), FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + 5 * SECOND_US)
    assert lifecycle.nodes["node0"].taints == (foreign,)


def test_health_taint_that_somebody_removes_comes_back_through_the_queue() -> None:
    """Semantics.md 7.2; #89012."""
    lifecycle = started(node("node0", ready("False")), up("node1"), rate=0.1)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.no_execute_pass(FAKE_NOW_US)
    lifecycle.put_node(dataclasses.replace(lifecycle.nodes["node0"], taints=()), FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + 5 * SECOND_US)
    lifecycle.no_execute_pass(FAKE_NOW_US + 5 * SECOND_US)
    assert taints_of(lifecycle, "node0") == []
    lifecycle.no_execute_pass(FAKE_NOW_US + 10 * SECOND_US)
    assert taints_of(lifecycle, "node0") == [NOT_READY]


def test_tainted_node_is_not_tainted_again() -> None:
    lifecycle = started(node("node0", ready("False")), up("node1"))
    for seconds in range(0, 60, 5):
        lifecycle.renew_lease("node0", FAKE_NOW_US + seconds * SECOND_US)
        lifecycle.renew_lease("node1", FAKE_NOW_US + seconds * SECOND_US)
        lifecycle.monitor(FAKE_NOW_US + seconds * SECOND_US)
        lifecycle.no_execute_pass(FAKE_NOW_US + seconds * SECOND_US)
    assert lifecycle.nodes["node0"].taints[-1].time_added_us == FAKE_NOW_US


def test_restarted_controller_takes_the_taint_off_and_puts_it_back() -> None:
    """monitorNodeHealth: each added node is marked as reachable first, and is queued by the same round."""
    old = Taint(UNREACHABLE, "", "NoExecute", FAKE_NOW_US - HOUR_US)
    lifecycle = started(node("node0", ready("Unknown"), taints=(old,)), up("node1"))
    changes = lifecycle.monitor(FAKE_NOW_US)
    assert TaintsChanged(FAKE_NOW_US, "node0", removed=(old,)) in changes
    assert taints_of(lifecycle, "node0") == []
    lifecycle.no_execute_pass(FAKE_NOW_US)
    assert lifecycle.nodes["node0"].taints[-1] == Taint(UNREACHABLE, "", "NoExecute", FAKE_NOW_US)


def test_node_event_generation() -> None:
    """TestNodeEventGeneration."""
    lifecycle = started(node("node0", ready("Unknown")))
    reported = [change for change in lifecycle.monitor(FAKE_NOW_US) if isinstance(change, NodeReported)]
    assert reported == [NodeReported(FAKE_NOW_US, "node0", "uid-node0", "RegisteredNode")]
    assert [one for one in lifecycle.monitor(FAKE_NOW_US) if isinstance(one, NodeReported)] == []
    lifecycle.delete_node("node0")
    assert lifecycle.monitor(FAKE_NOW_US) == (NodeReported(FAKE_NOW_US, "node0", "uid-node0", "RemovingNode"),)


def test_node_created_again_between_two_rounds_is_the_same_node() -> None:
    lifecycle = started(up("node0"))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.delete_node("node0")
    lifecycle.put_node(up("node0"), FAKE_NOW_US)
    assert lifecycle.monitor(FAKE_NOW_US) == ()


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


def test_end_of_full_disruption_gives_all_nodes_a_fresh_grace_period() -> None:
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


def test_partial_disruption_of_a_small_zone_stops_tainting_and_keeps_what_is_tainted() -> None:
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
