"""semantics.md 12.6, row by row: from decision to action."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import DUPLICATE, UNCHANGED, NodeAggregate, Outcome, eviction_id
from evictstream.models.kubernetes import Taint
from tests.models.eviction.scene import CLUSTER, DELETED, NODE, A, B, Scene, text, tolerate, us


def scheduled() -> Scene:
    """`pod-1` tolerates for 60 s and is scheduled; the aggregate has seen 0 s."""
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    assert scene.state == "scheduled"
    return scene


def issued() -> Scene:
    """`pod-1` was scheduled for 60 s and the first attempt is outstanding."""
    scene = scheduled()
    scene.fire(60)
    assert scene.state == "issued"
    return scene


def retrying() -> Scene:
    """As `issued`, and the first attempt has failed."""
    scene = issued()
    scene.result(61, Outcome.FAILED)
    assert scene.state == "retrying"
    return scene


def test_nothing_open_nothing_due() -> None:
    scene = Scene()
    scene.node(0)
    changes = scene.pod(0)
    assert (scene.state, changes.commands, changes.decisions, changes.wakeups) == (None, [], [], [])


def test_nothing_open_due_then() -> None:
    scene = scheduled()
    assert scene.actions == ["Schedule 60"]
    assert scene.kinds == ["Scheduled"]
    assert scene.timers == {(us(60), "pod-1")}


def test_nothing_open_due_now() -> None:
    scene = Scene()
    scene.pod(0)
    changes = scene.node(0, A)
    assert not changes.commands, "an event never issues"
    assert changes.wakeups == [(us(0), "pod-1")]
    changes = scene.fire(0)
    assert [command.action for command in changes.commands] == ["Evict"]
    assert scene.kinds == ["Due", "Issued"]


def test_scheduled_nothing_due() -> None:
    scene = scheduled()
    scene.node(10)
    assert scene.actions == ["Schedule 60", "Cancel TaintRemoved"]
    assert scene.kinds == ["Scheduled", "Cancelled"]
    assert scene.state is None


def test_scheduled_other_deadline() -> None:
    scene = scheduled()
    scene.pod(10, tolerate("a", 90))
    assert scene.actions == ["Schedule 60", "Schedule 90"]
    first, second = scene.commands
    assert (first.eviction_id, first.revision, second.revision) == (second.eviction_id, 1, 2)
    assert scene.kinds == ["Scheduled", "Moved"]


def test_scheduled_same_deadline() -> None:
    scene = scheduled()
    changes = scene.node(10, A, B, Taint("c", "", "NoSchedule"))
    assert scene.deadline == 10, "b is not tolerated"
    scene = scheduled()
    changes = scene.pod(10, tolerate("a", 60), tolerate("b"))
    assert (changes.commands, changes.decisions) == ([], [])


def test_scheduled_same_deadline_for_another_reason() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), tolerate("b", 50))
    scene.node(0, A)
    changes = scene.node(10, A, B)
    assert (changes.commands, changes.decisions) == ([], []), "same deadline"
    scene.node(20, B)
    assert scene.actions == ["Schedule 60"]
    scene.node(30)
    assert scene.commands[-1].reason.taint == B, "the reason is kept up to date"


def test_scheduled_due_now() -> None:
    scene = scheduled()
    changes = scene.node(10, A, B)
    assert not changes.commands, "a cancellation is not needed, and what is due now is not announced"
    assert changes.wakeups == [(us(10), "pod-1")]
    changes = scene.fire(10)
    assert [(command.action, command.revision) for command in changes.commands] == [("Evict", 2)]


def test_scheduled_pod_leaves_gets_one_cancellation() -> None:
    scene = scheduled()
    scene.pod(10, tolerate("a", 60), terminating=True)
    scene.pod(11, tolerate("a", 60), event_type=DELETED)
    assert scene.actions == ["Schedule 60", "Cancel PodTerminating"]


def test_unannounced_is_not_cancelled_by_command() -> None:
    """A cancellation withdraws what was told; nobody was told."""
    scene = Scene()
    scene.pod(0)
    scene.node(0, A)
    scene.node(1)
    assert scene.commands == []
    assert scene.kinds == ["Due", "Cancelled"]


def test_issued_pod_terminating_gone_or_finished_is_success() -> None:
    for state in (issued, retrying):
        scene = state()
        scene.pod(62, tolerate("a", 60), terminating=True)
        assert (scene.state, scene.kinds[-1], scene.decisions[-1].verdict) == ("done", "Completed", "PodTerminating")
        scene = state()
        scene.pod(62, tolerate("a", 60), phase="Failed")
        assert (scene.state, scene.decisions[-1].verdict) == ("done", "PodFinished")
        scene = state()
        scene.pod(62, event_type=DELETED)
        assert (scene.state, scene.decisions[-1].verdict) == (None, "PodGone")
        scene = state()
        scene.pod(62, uid="pod-2")
        assert (scene.decisions[-2].decision, scene.decisions[-2].verdict) == ("Completed", "PodReplaced")
        assert "Cancel" not in {command.action for command in scene.commands}


def test_issued_nothing_due_for_another_reason() -> None:
    for state in (issued, retrying):
        scene = state()
        scene.node(62)
        assert scene.actions == ["Schedule 60", "Evict 60", "Cancel TaintRemoved"]
        assert scene.state is None
        scene.run_until(10_000)
        assert len(scene.commands) == 3, "stop retrying"


def test_issued_due_later() -> None:
    for state in (issued, retrying):
        scene = state()
        scene.pod(62, tolerate("a", 100))
        assert scene.actions == ["Schedule 60", "Evict 60", "Schedule 100"]
        assert [command.revision for command in scene.commands] == [1, 1, 2]
        assert (scene.state, scene.kinds[-1]) == ("scheduled", "Withdrawn")
        scene.run_until(100)
        assert scene.actions[-1] == "Evict 100"
        assert scene.commands[-1].attempt == 2, "never the key of the withdrawn attempt again"
        assert scene.state == "issued"


def test_issued_due_goes_on() -> None:
    for state in (issued, retrying):
        scene = state()
        changes = scene.node(62, A, B)
        assert (changes.commands, changes.decisions, scene.actions) == ([], [], ["Schedule 60", "Evict 60"])
        changes = scene.pod(63, tolerate("a", 61))
        assert changes.commands == []


def test_late_event_with_the_same_deadline_undoes_no_attempt() -> None:
    """Event time may lie before the firing: the deadline has passed for the timer, but is ahead of the event."""
    scene = issued()
    scene.node(59.9, A, Taint("c", "", "NoSchedule"))
    scene.pod(59.9, tolerate("a", 60), tolerate("x", 5))
    assert scene.actions == ["Schedule 60", "Evict 60"]
    assert scene.state == "issued"


def test_done_stays_done() -> None:
    scene = issued()
    scene.pod(62, tolerate("a", 60), terminating=True)
    count = len(scene.decisions)
    scene.pod(63, tolerate("a", 5), terminating=True)
    scene.node(64)
    scene.node(65, A, B)
    scene.node(66, uid="node-2")
    assert scene.fire(1000) is UNCHANGED
    assert len(scene.decisions) == count
    assert len(scene.commands) == 2


@pytest.mark.parametrize("epoch", [pytest.param(0, id="never within an epoch"), pytest.param(1, id="etcd restored")])
def test_done_is_undone_by_a_later_epoch_alone(epoch: int) -> None:
    scene = issued()
    scene.pod(62, tolerate("a", 60), phase="Succeeded")
    scene.restart()
    scene.pod(63, tolerate("a", 60), epoch=epoch)
    scene.fire(1000)
    assert scene.actions[2:] == (["Evict 60"] if epoch else [])
    assert len({command.eviction_id for command in scene.commands}) == 1 + epoch


def test_done_until_another_uid() -> None:
    scene = issued()
    scene.pod(62, tolerate("a", 60), terminating=True)
    scene.pod(63, tolerate("a", 60), uid="pod-2")
    assert scene.actions[-1] == "Schedule 123"
    assert scene.commands[-1].pod_uid == "pod-2"


def test_id_is_never_used_again_after_a_cancel() -> None:
    scene = scheduled()
    for round_ in range(1, 4):
        scene.node(round_ * 10)
        scene.restart()
        scene.node(round_ * 10 + 5, A)
    ids = [command.eviction_id for command in scene.commands if command.action == "Schedule"]
    assert len(set(ids)) == 4


def test_id_is_not_used_again_if_a_delete_was_wrong() -> None:
    scene = scheduled()
    scene.pod(10, event_type=DELETED)
    scene.restart()
    scene.pod(20, tolerate("a", 60))
    first, cancel, second = scene.commands
    assert first.eviction_id == cancel.eviction_id != second.eviction_id


def test_first_ordinal_of_a_cluster_that_was_forgotten() -> None:
    """Ids of a cluster that is fed again must not meet those from before it was forgotten."""
    scene = Scene(aggregate=NodeAggregate(CLUSTER, NODE, 7))
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    scene.restart()
    scene.node(10)
    scene.node(20, A)
    assert [command.eviction_id for command in scene.commands] == [
        eviction_id(CLUSTER, "pod-1", ordinal) for ordinal in (7, 7, 8)
    ]


def test_command_as_in_the_contract() -> None:
    """docs/messages.md#commands"""
    scene = scheduled()
    command = scene.commands[0]
    assert (command.cluster, command.namespace, command.pod, command.pod_uid) == (
        "prod-eu-1",
        "payments",
        "web-0",
        "pod-1",
    )
    assert (command.node, command.node_uid, command.attempt, command.revision) == ("node-0123", "node-1", 0, 1)
    assert (command.window_start, command.deadline, command.issued_at) == (text(0), text(60), text(0))
    assert (command.reason.taint, command.reason.toleration) == (A, tolerate("a", 60))


def test_repeated_input_changes_nothing() -> None:
    scene = scheduled()
    scene.pod(5, tolerate("a", 60), version="500")
    assert scene.pod(9, tolerate("a", 30), version="500") is DUPLICATE
    assert scene.deadline == 60
