"""Rounds and passes: `TestApplyNoExecuteTaints*`, `TestSwapUnreachableNotReadyTaints`, `TestNodeEventGeneration`."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.upstream.lifecycle import (
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    Condition,
    LifecycleSettings,
    NodeLifecycle,
    NodeReported,
    TaintsChanged,
)
from evictstream.models.kubernetes import Taint
from tests.kit.upstream.lifecycle.scene import (
    FAKE_NOW_US,
    HOUR_US,
    MINUTE_US,
    NOT_READY,
    SECOND_US,
    UNREACHABLE,
    ZONE_1,
    node,
    put_status,
    ready,
    started,
    taints_of,
    up,
)


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
