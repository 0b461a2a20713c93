"""semantics.md 5, requeueing; cases of taint_toleration_test.go and node_unschedulable_test.go."""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.requeueing import (
    QueueingHint,
    cordon_after_node_change,
    cordon_after_toleration_change,
    taints_after_node_change,
    taints_after_toleration_change,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
USER2 = (Toleration("dedicated", "Equal", "user2", NO_SCHEDULE),)
FOR_USER1 = Taint("dedicated", "user1", NO_SCHEDULE)
FOR_USER2 = Taint("dedicated", "user2", NO_SCHEDULE)
FOR_USER3 = Taint("dedicated", "user3", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, (FOR_USER1,), SKIP, id="skip-queue-on-untoleratedtaint-node-added"),
        pytest.param(None, (FOR_USER2,), QUEUE, id="queue-on-toleratedtaint-node-added"),
        pytest.param((FOR_USER1,), (FOR_USER1, FOR_USER3), SKIP, id="skip-unrelated-change"),
        pytest.param((FOR_USER1,), (FOR_USER2,), QUEUE, id="queue-on-taint-change"),
        pytest.param(None, (), QUEUE, id="5 node without taints added"),
        pytest.param((FOR_USER1,), (), QUEUE, id="5 taint removed"),
        pytest.param((FOR_USER1, FOR_USER3), (FOR_USER3,), SKIP, id="5 one of two removed"),
        pytest.param((), (), SKIP, id="5 it was not refused before"),
        pytest.param((FOR_USER2,), (), SKIP, id="5 a tolerated one removed"),
        pytest.param((FOR_USER2,), (FOR_USER1,), SKIP, id="5 refused now"),
        pytest.param(
            (Taint("a", "", PREFER_NO_SCHEDULE),),
            (),
            SKIP,
            id="5 soft taints refuse nothing, so their end wakes nothing",
        ),
        pytest.param((Taint("a", "", NO_EXECUTE),), (Taint("a", "", PREFER_NO_SCHEDULE),), QUEUE, id="5 hard to soft"),
    ],
)
def test_taints_after_a_change_of_a_node(
    before: tuple[Taint, ...] | None, after: tuple[Taint, ...], hint: QueueingHint
) -> None:
    """taint_toleration_test.go TestIsSchedulableAfterNodeChange"""
    assert taints_after_node_change(USER2, before, after) == hint


def test_comparisons_count_with_the_gate() -> None:
    tolerations = (Toleration("sla", "Gt", "5", NO_SCHEDULE),)
    change = ((Taint("sla", "4", NO_SCHEDULE),), (Taint("sla", "6", NO_SCHEDULE),))
    assert taints_after_node_change(tolerations, *change, comparison_operators=True) == "Queue"
    assert taints_after_node_change(tolerations, *change) == "QueueSkip"


@pytest.mark.parametrize(
    ("changed_uid", "hint"),
    [
        pytest.param("uid1", SKIP, id="skip-updates-other-pod"),
        pytest.param("uid0", QUEUE, id="queue-on-toleration-added"),
    ],
)
def test_taints_after_a_change_of_tolerations(changed_uid: str, hint: QueueingHint) -> None:
    """taint_toleration_test.go Test_isSchedulableAfterPodTolerationChange"""
    assert taints_after_toleration_change("uid0", changed_uid) == hint


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, True, SKIP, id="skip-queue-on-unschedulable-node-added"),
        pytest.param(None, False, QUEUE, id="queue-on-schedulable-node-added"),
        pytest.param(True, True, SKIP, id="skip-unrelated-change-unschedulable-true"),
        pytest.param(False, False, SKIP, id="skip-unrelated-change-unschedulable-false"),
        pytest.param(True, False, QUEUE, id="queue-on-unschedulable-field-change"),
        pytest.param(False, True, SKIP, id="5 cordoned"),
    ],
)
def test_cordon_after_a_change_of_a_node(*, before: bool | None, after: bool, hint: QueueingHint) -> None:
    """node_unschedulable_test.go TestIsSchedulableAfterNodeChange"""
    assert cordon_after_node_change(before=before, after=after) == hint


@pytest.mark.parametrize(
    ("changed_uid", "tolerations", "hint"),
    [
        pytest.param(
            "different-uid",
            (Toleration("node.kubernetes.io/unschedulable", "Exists"),),
            SKIP,
            id="skip-different-pod-update",
        ),
        pytest.param(
            "uid",
            (Toleration("node.kubernetes.io/unschedulable", "Exists"),),
            QUEUE,
            id="queue-when-the-unsched-pod-gets-toleration",
        ),
        pytest.param(
            "uid",
            (Toleration("unrelated-key", "Exists"),),
            SKIP,
            id="skip-when-the-unsched-pod-gets-unrelated-toleration",
        ),
        pytest.param("uid", (), SKIP, id="5 no tolerations"),
        pytest.param("uid", (Toleration("", "Exists"),), QUEUE, id="5 Exists alone"),
    ],
)
def test_cordon_after_a_change_of_tolerations(
    changed_uid: str, tolerations: tuple[Toleration, ...], hint: QueueingHint
) -> None:
    """node_unschedulable_test.go TestIsSchedulableAfterPodTolerationChange"""
    assert cordon_after_toleration_change("uid", changed_uid, tolerations) == hint
