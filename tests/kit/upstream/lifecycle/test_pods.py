"""Pods on a failing node (semantics.md 7.4)."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.lifecycle import NodeReported, PodsMarkedNotReady, WatchedNode, WatchedPod
from tests.kit.upstream.lifecycle.scene import FAKE_NOW_US, HOUR_US, MINUTE_US, node, ready, started

POD = WatchedPod("default", "pod0", "node0")
MARKED = PodsMarkedNotReady(FAKE_NOW_US + MINUTE_US, "node0", (("default", "pod0"),))


@pytest.mark.parametrize(
    ("found", "is_marked"),
    [
        pytest.param(node(created_at_us=FAKE_NOW_US), False, id="MarkPodsNotReady: created recently, without status"),
        pytest.param(node("node0", ready("True")), True, id="MarkPodsNotReady: status exceeds grace period"),
        pytest.param(
            node("node0", ready("False")), False, id="monitorNodeHealth: False becomes Unknown, not fallen now"
        ),
        pytest.param(node("node0", ready("Unknown")), False, id="monitorNodeHealth: Unknown already"),
        pytest.param(node(), False, id="UpdateStatus: never reported, so never fell from True"),
    ],
)
def test_silence_makes_pods_not_ready(found: WatchedNode, *, is_marked: bool) -> None:
    lifecycle = started(found)
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    changes = lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    assert (MARKED in changes) is is_marked
    reported = NodeReported(FAKE_NOW_US + MINUTE_US, "node0", "uid-node0", "NodeNotReady")
    assert (reported in changes) is is_marked
    assert lifecycle.pods[POD.key].ready == ("False" if is_marked else "True")


def test_a_recent_status_leaves_pods_ready() -> None:
    """MarkPodsNotReady: status updated recently."""
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    assert not any(isinstance(change, PodsMarkedNotReady) for change in lifecycle.monitor(FAKE_NOW_US))


def test_many_nodes_and_pods_are_marked_once_each() -> None:
    """TestMonitorNodeHealthMarkPodsNotReadyWithWorkerSize."""
    lifecycle = started(*(node(f"node{number}", ready("True")) for number in range(50)))
    for number in range(5000):
        lifecycle.put_pod(WatchedPod("default", f"pod{number}", f"node{number % 50}"), FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    changes = lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    marked = [key for change in changes if isinstance(change, PodsMarkedNotReady) for key in change.pods]
    assert (len(marked), len(set(marked))) == (5000, 5000)


def test_marking_that_works_is_not_repeated() -> None:
    """MarkPodsNotReadyRetry: successful pod status update, no retry required."""
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    assert MARKED in lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    later_us = FAKE_NOW_US + 2 * MINUTE_US
    lifecycle.put_node(node("node0", ready("False", later_us, later_us)), later_us)
    assert not any(isinstance(change, PodsMarkedNotReady) for change in lifecycle.monitor(later_us))


def test_marking_that_fails_is_repeated_until_it_works() -> None:
    """MarkPodsNotReadyRetry: unsuccessful pod status update, retry required."""
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    assert MARKED in lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    for minutes in (2, 3):
        lifecycle.pod_write_failed(POD)
        later_us = FAKE_NOW_US + minutes * MINUTE_US
        lifecycle.put_node(node("node0", ready("False", later_us, later_us)), later_us)
        assert PodsMarkedNotReady(later_us, "node0", (POD.key,)) in lifecycle.monitor(later_us)
    later_us = FAKE_NOW_US + 4 * MINUTE_US
    lifecycle.put_node(node("node0", ready("False", later_us, later_us)), later_us)
    assert not any(isinstance(change, PodsMarkedNotReady) for change in lifecycle.monitor(later_us))


def test_recovery_ends_the_repetition() -> None:
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    lifecycle.pod_write_failed(POD)
    for minutes in (2, 3):
        later_us = FAKE_NOW_US + minutes * MINUTE_US
        lifecycle.put_node(node("node0", ready("True", later_us, later_us)), later_us)
        assert not any(isinstance(change, PodsMarkedNotReady) for change in lifecycle.monitor(later_us))


@pytest.mark.parametrize(
    ("pod", "is_marked"),
    [
        pytest.param(POD, True, id="MarkPodsNotReady: ready"),
        pytest.param(WatchedPod("default", "pod0", "node0", "Unknown"), True, id="MarkPodsNotReady: Unknown"),
        pytest.param(WatchedPod("default", "pod0", "node0", "False"), False, id="UpdatePodCondition: False already"),
        pytest.param(WatchedPod("default", "pod0", "node0", None), False, id="MarkPodsNotReady: no Ready condition"),
        pytest.param(WatchedPod("default", "pod0", "node1"), False, id="MarkPodsNotReady: another node"),
        pytest.param(WatchedPod("default", "pod0", ""), False, id="MarkPodsNotReady: not bound"),
    ],
)
def test_which_pods(pod: WatchedPod, *, is_marked: bool) -> None:
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(pod, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    assert (MARKED in lifecycle.monitor(FAKE_NOW_US + MINUTE_US)) is is_marked


@pytest.mark.parametrize(
    ("status", "has_round", "is_marked"),
    [
        pytest.param(
            "False", False, False, id="TestProcessPodMarkPodNotReady: node's health is not gathered yet: do not mark"
        ),
        pytest.param("True", True, False, id="TestProcessPodMarkPodNotReady: scheduled node is ready: do not mark"),
        pytest.param("False", True, True, id="TestProcessPodMarkPodNotReady: scheduled node is not ready: marked"),
        pytest.param("Unknown", True, True, id="processPod: Unknown is not ready"),
        pytest.param(None, True, False, id="processPod: no Ready condition: left to the next round"),
    ],
)
def test_arriving_pod(status: str | None, has_round: bool, is_marked: bool) -> None:  # noqa: FBT001 - columns of the table
    conditions = () if status is None else (ready(status),)
    lifecycle = started(node("node0", *conditions, created_at_us=FAKE_NOW_US))
    if has_round:
        lifecycle.monitor(FAKE_NOW_US)
    changes = lifecycle.put_pod(POD, FAKE_NOW_US)
    assert changes == ((PodsMarkedNotReady(FAKE_NOW_US, "node0", (POD.key,)),) if is_marked else ())


def test_only_the_arrival_of_a_pod_counts() -> None:
    """PodUpdated: a change of a pod that stays where it is does not."""
    lifecycle = started(node("node0", ready("False")))
    lifecycle.monitor(FAKE_NOW_US)
    assert lifecycle.put_pod(WatchedPod("default", "pod0", ""), FAKE_NOW_US) == ()
    assert lifecycle.put_pod(POD, FAKE_NOW_US) != ()
    assert lifecycle.put_pod(POD, FAKE_NOW_US) == ()
    assert lifecycle.pods[POD.key].ready == "True"


def test_pod_on_a_deleted_node_is_left_alone() -> None:
    lifecycle = started(node("node0", ready("False")))
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.delete_node("node0")
    assert lifecycle.put_pod(POD, FAKE_NOW_US) == ()


def test_deleted_pod_is_not_marked() -> None:
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.delete_pod(POD.key)
    lifecycle.delete_pod(POD.key)
    assert not any(isinstance(change, PodsMarkedNotReady) for change in lifecycle.monitor(FAKE_NOW_US + HOUR_US))


def test_marking_that_worked_at_last_is_not_owed_any_more() -> None:
    """nodesToRetry: a round that works takes the node off the list, so a pod that is ready again stays so."""
    lifecycle = started(node("node0", ready("True")))
    lifecycle.put_pod(POD, FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US)
    lifecycle.monitor(FAKE_NOW_US + MINUTE_US)
    lifecycle.pod_write_failed(POD)
    lifecycle.monitor(FAKE_NOW_US + 2 * MINUTE_US)
    lifecycle.put_pod(POD, FAKE_NOW_US + 2 * MINUTE_US)
    assert lifecycle.monitor(FAKE_NOW_US + 3 * MINUTE_US) == ()
