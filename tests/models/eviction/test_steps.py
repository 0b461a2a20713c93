"""semantics.md 12.7, per event."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import STALE, UNCHANGED, EventType, Outcome, PodEvent, RuleParameters, apply_pod
from evictstream.models.kubernetes import NO_EXECUTE, Pod, Taint, Toleration
from tests.models.eviction.scene import DELETED, NODE, ORIGIN, A, B, Scene, tolerate, us


def scheduled(**pod: object) -> Scene:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), **pod)  # type: ignore[arg-type]
    scene.node(0, A)
    return scene


def test_node_added_decides_for_every_pod() -> None:
    scene = Scene()
    for number in range(3):
        scene.pod(0, tolerate("a", 60 + number), uid=f"pod-{number}", name=f"web-{number}")
    scene.node(5, A)
    assert scene.actions == ["Schedule 65", "Schedule 66", "Schedule 67"]


def test_node_changed_otherwise_writes_its_version_only() -> None:
    scene = scheduled()
    changes = scene.node(10, A, Taint("c", "", "NoSchedule"), ready="False")
    assert len(changes.rows) == 1
    assert (changes.commands, changes.decisions, changes.wakeups) == ([], [], [])


def test_node_deleted_cancels_and_closes_windows() -> None:
    scene = scheduled()
    scene.node(10, event_type=DELETED)
    assert scene.actions[-1] == "Cancel NodeGone"
    assert scene.commands[-1].node_uid == "node-1"
    scene.node(20, A, uid="node-2")
    assert scene.actions[-1] == "Schedule 80"


def test_node_registered_again_has_new_windows() -> None:
    scene = scheduled()
    scene.node(30, A, uid="node-2")
    assert scene.actions == ["Schedule 60", "Cancel NodeGone", "Schedule 90"]
    assert [command.node_uid for command in scene.commands] == ["node-1", "node-1", "node-2"]


def test_issued_eviction_is_cancelled_when_its_node_goes() -> None:
    scene = scheduled()
    scene.fire(60)
    scene.node(61, event_type=DELETED)
    assert scene.actions[-1] == "Cancel NodeGone"


def test_outage_ends_with_the_node() -> None:
    scene = Scene()
    sick = Taint("node.kubernetes.io/not-ready", "", NO_EXECUTE)
    scene.pod(0, tolerate("", 30))
    scene.node(0, sick, ready="False")
    scene.node(20, sick, ready="False", uid="node-2")
    assert scene.deadline == 50


def test_pod_before_its_node_is_decided_when_the_node_comes() -> None:
    scene = Scene()
    scene.pod(10, tolerate("a", 60))
    assert scene.commands == []
    scene.node(0, A)
    assert scene.deadline == 70, "the later of the two, whichever comes first in the log"


def test_untolerated_is_not_announced_whichever_stream_comes_first() -> None:
    """docs/messages.md#commands: `Schedule` is not sent for what is due at once"""
    scene = Scene()
    scene.pod(10)
    scene.node(5, A)
    assert (scene.deadline, scene.commands) == (10, [])


def test_unbound_pod_is_ignored() -> None:
    scene = Scene()
    scene.node(0, A)
    assert scene.pod(0, node="") is UNCHANGED


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        ({"phase": "Succeeded"}, "PodFinished"),
        ({"phase": "Failed"}, "PodFinished"),
        ({"terminating": True}, "PodTerminating"),
        ({"mirror": True}, "PodMirror"),
        ({"terminating": True, "phase": "Failed"}, "PodTerminating"),
    ],
)
def test_special_pods_are_left_alone(pod: dict[str, object], verdict: str) -> None:
    """12.5 rule 1; 13 rows 12, 13, 14"""
    assert scheduled(**pod).commands == []
    scene = scheduled()
    scene.pod(10, tolerate("a", 60), **pod)  # type: ignore[arg-type]
    assert scene.actions == ["Schedule 60", f"Cancel {verdict}"]


def test_other_phases_count() -> None:
    for phase in ("", "Pending", "Running", "Unknown"):
        assert scheduled(phase=phase).actions == ["Schedule 60"]


def test_tolerations_edited_order() -> None:
    scene = Scene()
    five, ever = tolerate("a", 5), tolerate("a")
    scene.node(0, A)
    scene.pod(0, five, ever)
    scene.pod(1, ever, five)
    assert scene.actions == ["Schedule 5", "Cancel Tolerated"]
    scene.pod(2, five, ever)
    assert scene.actions[-1] == "Schedule 5", "measured from the recorded start"


def test_toleration_removed_is_simply_gone() -> None:
    """12.3: the API server would not allow it, and it has a meaning all the same"""
    scene = scheduled()
    scene.pod(10)
    scene.fire(10)
    assert scene.actions == ["Schedule 60", "Evict 10"]


def test_removing_the_only_untolerated_taint_cancels_the_eviction() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), tolerate("b"))
    scene.node(0, A, B)
    scene.node(10, B)
    assert scene.actions == ["Schedule 60", "Cancel TaintRemoved"]


def test_pod_replaced_under_its_name() -> None:
    scene = scheduled()
    scene.pod(20, tolerate("a", 60), uid="pod-2")
    assert scene.actions == ["Schedule 60", "Cancel PodReplaced", "Schedule 80"]
    assert [command.pod_uid for command in scene.commands] == ["pod-1", "pod-1", "pod-2"]


def test_same_name_in_two_namespaces_is_independent() -> None:
    """6.13"""
    scene = scheduled()
    other = Pod("other", "web-0", "pod-2", "900", NODE, (tolerate("a", 60),))
    scene.keep(
        apply_pod(scene.aggregate, PodEvent(type=EventType.ADDED, pod=other, at_us=us(10), origin=ORIGIN), scene.rules)
    )
    assert scene.actions == ["Schedule 60", "Schedule 70"]


def test_timer_too_early_asks_again() -> None:
    scene = scheduled()
    changes = scene.fire(59.999)
    assert (changes.rows, changes.commands, changes.wakeups) == ((), (), [(us(60), "pod-1")])


def test_stale_timers_do_no_harm() -> None:
    scene = scheduled()
    assert scene.fire(60, "pod-9") is UNCHANGED
    scene.node(10)
    assert scene.fire(60) is UNCHANGED
    scene.node(20, A)
    assert scene.fire(60).wakeups == [(us(80), "pod-1")], "the timer of the first window"
    scene.fire(80)
    assert scene.fire(80).commands == (), "each attempt once"
    assert scene.actions.count("Evict 80") == 1


def test_status_changes_are_remembered_in_memory_only() -> None:
    scene = scheduled()
    assert scene.pod(10, tolerate("a", 60), version="300", phase="Pending") is UNCHANGED
    assert scene.pod(11, tolerate("a", 30), version="299") is STALE


def test_rules_changed_between_runs_apply_when_everything_is_reevaluated() -> None:
    scene = Scene(RuleParameters(comparison_operators=True))
    scene.pod(0, Toleration("gpu", "Gt", "1", NO_EXECUTE, 60))
    scene.node(0, Taint("gpu", "2", NO_EXECUTE))
    scene.restart()
    scene.rules = RuleParameters()
    scene.decide_all(10)
    scene.run_until(10)
    assert scene.actions == ["Schedule 60", "Evict 0"]


def test_rules_changed_take_effect_at_the_timer_too() -> None:
    scene = Scene()
    scene.pod(0, Toleration("gpu", "Gt", "1", NO_EXECUTE, 60))
    scene.node(0, Taint("gpu", "2", NO_EXECUTE))
    scene.rules = RuleParameters(comparison_operators=True)
    scene.fire(0)
    assert scene.actions == ["Schedule 60"]


def test_deciding_everything_anew_changes_nothing_by_itself() -> None:
    scene = scheduled()
    assert scene.decide_all(30) is UNCHANGED
    scene.fire(60)
    assert scene.decide_all(61) is UNCHANGED
    scene.result(62, Outcome.SUCCEEDED)
    assert scene.decide_all(63) is UNCHANGED


def test_cluster_forgotten_leaves_nothing() -> None:
    scene = scheduled()
    scene.pod(0, tolerate("a", 60), uid="pod-2", name="web-1")
    scene.pod(1, uid="pod-3", name="web-2", phase="Failed")
    scene.pod(2, uid="pod-4", name="web-3")
    scene.pod(3, uid="pod-4", name="web-3", event_type=DELETED)
    scene.node(4, uid="node-0", event_type=DELETED)
    scene.fire(60)
    changes = scene.forget(70)
    assert [str(command.reason.verdict) for command in changes.commands] == ["ClusterForgotten"] * 2
    assert scene.table == {}
    assert scene.aggregate.is_empty
    assert all(value is None for _, value in changes.rows)
    assert scene.fire(100) is UNCHANGED


def test_forgetting_what_is_not_there() -> None:
    assert Scene().forget(0) is UNCHANGED
