"""Where upstream is weak (semantics.md section 13), and what is done here: a test for each row that we answer.

Ids give the row and the issues of kubernetes/kubernetes (or the source) that report the weakness. What upstream would
have done stands in `evictstream.kit.upstream.taint_eviction` and its tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from evictstream.models.eviction import Outcome
from tests.models.eviction.scene import DELETED, SICK, SILENT, A, B, Scene, text, tolerate, us

Story = Callable[[Scene], None]


def verbs(scene: Scene) -> list[str]:
    return [str(command.action) for command in scene.commands]


def next_at(scene: Scene) -> float:
    """The next wake-up for a pod, in seconds of the stage."""
    return (min(at_us for at_us, uid in scene.timers if uid) - us(0)) / 1_000_000


def deadline_survives_a_restart(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 100))
    scene.node(0, A)
    scene.restart()
    scene.decide_all(50)
    assert scene.deadline == 100
    assert verbs(scene) == ["Schedule"]


def failed_delete_stays_owed(scene: Scene) -> None:
    scene.pod(0)
    scene.node(0, A)
    scene.run_until(0)
    at = 0.0
    for attempt in range(1, 30):
        assert [command.attempt for command in scene.commands] == list(range(1, attempt + 1))
        scene.result(at + 0.05, Outcome.FAILED, reason="webhook down")
        scene.restart()
        at = next_at(scene)
        scene.run_until(at)


def new_pod_of_the_same_name_has_its_own_eviction(scene: Scene) -> None:
    scene.pod(0)
    scene.node(0, A)
    scene.run_until(0)
    scene.pod(1, uid="pod-2")
    scene.run_until(1)
    assert [(command.action, command.pod_uid) for command in scene.commands] == [("Evict", "pod-1"), ("Evict", "pod-2")]


def removing_one_of_several_taints_takes_its_deadline_along(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 60), tolerate("b", 100))
    scene.node(0, A)
    scene.node(10, A, B)
    scene.node(20, B)
    assert scene.deadline == 110
    scene.node(30)
    assert verbs(scene)[-1] == "Cancel"


def edits_of_seconds_count(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 100))
    scene.node(0, A)
    for at, seconds in ((10, 200), (20, 30)):
        scene.pod(at, tolerate("a", seconds))
        assert scene.deadline == seconds
    scene.pod(25, tolerate("a", 0))
    scene.run_until(25)
    assert verbs(scene)[-1] == "Evict"


def later_taint_with_a_shorter_toleration_brings_the_deadline_forward(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 60), tolerate("b", 5))
    scene.node(0, A)
    scene.node(10, A, B)
    assert scene.deadline == 15


def timer_dies_with_its_uid(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 30))
    scene.node(0, A)
    scene.pod(10, event_type=DELETED)
    scene.node(11)
    scene.pod(12, tolerate("a", 30), uid="pod-2")
    scene.run_until(100)
    assert [(command.action, command.pod_uid) for command in scene.commands] == [
        ("Schedule", "pod-1"),
        ("Cancel", "pod-1"),
    ]


def deleted_node_takes_its_timers_along(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 30))
    scene.node(0, A)
    scene.node(10, event_type=DELETED)
    scene.run_until(100)
    assert verbs(scene) == ["Schedule", "Cancel"]


def taint_that_was_just_removed_evicts_nobody(scene: Scene) -> None:
    scene.node(0, A)
    scene.pod(1)
    scene.node(1)
    scene.run_until(10)
    assert "Evict" not in verbs(scene)


def finished_pods_are_left_alone(scene: Scene) -> None:
    scene.pod(0, phase="Succeeded")
    scene.node(0, A)
    scene.run_until(10)
    assert verbs(scene) == []


def mirror_pods_are_left_alone(scene: Scene) -> None:
    scene.pod(0, mirror=True)
    scene.node(0, A)
    scene.run_until(10)
    assert verbs(scene) == []


def terminating_pods_get_no_second_command(scene: Scene) -> None:
    scene.pod(0)
    scene.node(0, A)
    scene.run_until(0)
    scene.pod(1, terminating=True)
    scene.run_until(100_000)
    assert verbs(scene) == ["Evict"]


def every_open_eviction_has_a_next_attempt(scene: Scene) -> None:
    scene.pod(0)
    scene.node(0, A)
    scene.run_until(0)
    for _ in range(30):  # nobody answers at all
        before = len(scene.commands)
        scene.run_until(next_at(scene))
        assert len(scene.commands) == before + 1


def fire_times_are_absolute(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 100))
    scene.node(0, A)
    scene.restart()
    scene.decide_all(99)  # long after the window began: what is left is one second, not a hundred
    assert next_at(scene) == 100


def pod_of_a_clean_node_keeps_no_timer(scene: Scene) -> None:
    scene.node(0, A)
    scene.node(2)
    scene.pod(1, tolerate("a", 30))
    assert scene.state is None
    scene.node(3, A)
    scene.node(4)
    assert scene.state is None


def restarted_controller_manager_does_not_reset_windows(scene: Scene) -> None:
    scene.pod(0, tolerate(SILENT.key, 30), tolerate(SICK.key, 30))
    scene.node(0, SILENT, ready="Unknown")
    scene.node(15, ready="Unknown")
    scene.node(15.1, SILENT, ready="Unknown")
    assert scene.deadline == 30


def seconds_do_not_overflow(scene: Scene) -> None:
    scene.pod(0, tolerate("a", 18_446_744_074))
    scene.pod(0, tolerate("a", 9_223_372_037), uid="pod-2", name="web-1")
    scene.node(0, A)
    scene.run_until(1_000_000)
    assert "Evict" not in verbs(scene)
    assert scene.deadline == 18_446_744_074


def due_evictions_are_issued_in_deadline_order(scene: Scene) -> None:
    order = [7, 3, 9, 1, 5]
    for seconds in order:
        scene.pod(0, tolerate("a", seconds), uid=f"pod-{seconds}", name=f"web-{seconds}")
    scene.node(0, A)
    scene.restart()
    scene.run_until(100)
    issued = [command.deadline for command in scene.commands if command.action == "Evict" and command.attempt == 1]
    assert issued == [text(seconds) for seconds in sorted(order)]


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(deadline_survives_a_restart, id="13.1 #108268"),
        pytest.param(failed_delete_stays_owed, id="13.2 #140639 #141568"),
        pytest.param(new_pod_of_the_same_name_has_its_own_eviction, id="13.3 #107543 #125332"),
        pytest.param(removing_one_of_several_taints_takes_its_deadline_along, id="13.4 #90794 #93722"),
        pytest.param(edits_of_seconds_count, id="13.5 #102993 #103055 #108982 #109226"),
        pytest.param(later_taint_with_a_shorter_toleration_brings_the_deadline_forward, id="13.6 source of 6.6"),
        pytest.param(timer_dies_with_its_uid, id="13.8 #141568"),
        pytest.param(deleted_node_takes_its_timers_along, id="13.9 source of 6.4"),
        pytest.param(taint_that_was_just_removed_evicts_nobody, id="13.10 #119862 #139992 #140198"),
        pytest.param(finished_pods_are_left_alone, id="13.12 #96363"),
        pytest.param(mirror_pods_are_left_alone, id="13.13 #42753 #79147 k0sproject/k0s#6955 k0sproject/k0s#6958"),
        pytest.param(terminating_pods_get_no_second_command, id="13.14 #55934 kubernetes/enhancements#719"),
        pytest.param(every_open_eviction_has_a_next_attempt, id="13.24 kubernetes/enhancements#4329"),
        pytest.param(fire_times_are_absolute, id="13.27 source of 6.8"),
        pytest.param(pod_of_a_clean_node_keeps_no_timer, id="13.28 source of 6.5"),
        pytest.param(restarted_controller_manager_does_not_reset_windows, id="13.31 seen on v1.36.3"),
        pytest.param(seconds_do_not_overflow, id="13.33 seen on v1.36.3"),
        pytest.param(due_evictions_are_issued_in_deadline_order, id="13.36 seen on v1.36.3"),
    ],
)
def test_weakness_of_upstream_is_answered(story: Story) -> None:
    story(Scene())
