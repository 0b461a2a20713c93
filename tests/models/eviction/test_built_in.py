"""semantics.md 12.12: who evicts a pod where Kubernetes' own controller stays on, and what a move of seconds means."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import InputEffect, RuleParameters
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.kubernetes import NO_EXECUTE, Taint, Toleration
from tests.models.eviction.scene import SICK, SILENT, A, B, Scene, tolerate, us

ON = RuleParameters(built_in=True)
FOREVER = None


def moved(key: str, seconds: int, built_in: int | None = FOREVER) -> Toleration:
    """Tolerate a key for some seconds, and longer in the spec."""
    return Toleration(key, "Exists", "", NO_EXECUTE, seconds, built_in)


@pytest.mark.parametrize(
    ("taints", "tolerations", "deadline"),
    [
        pytest.param([A], [moved("a", 60, 3660)], 60, id="backstop"),
        pytest.param([A], [moved("a", 60)], 60, id="handover"),
        pytest.param([A], [moved("a", 0, 3600)], 0, id="at-once"),
        pytest.param([A], [tolerate("a", 60)], None, id="not-moved"),
        pytest.param([A], [tolerate("a", 9_223_372_037)], 9_223_372_037, id="not-moved-and-overflows-to-never"),
        pytest.param([A], [tolerate("a", 18_446_744_074)], None, id="not-moved-and-overflows-to-at-once"),
        pytest.param([A], [], None, id="not-tolerated"),
        pytest.param([A, B], [moved("a", 60, 3660)], None, id="one-of-two-not-tolerated"),
        pytest.param([A, B], [moved("a", 60, 3660), tolerate("b", 30)], None, id="other-not-moved-and-earlier"),
        pytest.param([A, B], [moved("a", 60, 3660), tolerate("b", 90)], 60, id="other-not-moved-and-later"),
        pytest.param([A, B], [moved("a", 60, 3660), tolerate("b", 60)], None, id="other-not-moved-as-early"),
        pytest.param([A, B], [moved("a", 60, 3660), moved("b", 30)], 30, id="both-moved"),
        pytest.param([A, B], [moved("a", 60, 3660), tolerate("b")], 60, id="other-forever"),
        pytest.param([SILENT], [moved(SILENT.key, 300), moved(SICK.key, 300)], 300, id="health"),
        pytest.param([A], [moved("a", 60, 9_223_372_037)], 60, id="built-in-overflows-to-never"),
        pytest.param([A], [moved("a", 60, 18_446_744_074)], None, id="built-in-overflows-to-at-once"),
    ],
)
def test_only_what_the_built_in_controller_does_later_is_ours(
    taints: list[Taint], tolerations: list[Toleration], deadline: int | None
) -> None:
    scene = Scene(ON)
    scene.pod(0, *tolerations)
    scene.node(0, *taints)
    assert scene.deadline == deadline
    scene.run_until(10_000 if deadline is None else deadline + 1)
    assert any(action.startswith("Evict") for action in scene.actions) is (deadline is not None)


def test_all_are_ours_where_the_built_in_controller_is_off() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    assert scene.deadline == 60


def test_moving_seconds_sends_nothing_and_opens_no_window() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    changes = scene.pod(30, moved("a", 60, 3660))
    assert (list(changes.commands), list(changes.decisions), scene.deadline) == ([], [], 60)
    scene.run_until(60)
    assert scene.actions[:2] == ["Schedule 60", "Evict 60"]


def test_pod_moved_in_its_window_keeps_its_deadline() -> None:
    scene = Scene(ON)
    scene.pod(0, tolerate("a", 60))
    scene.node(10, A)
    assert scene.actions == []
    scene.pod(30, moved("a", 60, 3660))
    assert scene.actions == ["Schedule 70"]


def test_move_leaves_an_untolerated_pod_due_since_before() -> None:
    scene = Scene()
    scene.pod(0, tolerate("b", 60))
    scene.pod(5, moved("b", 60, 3660))
    scene.node(0, A)
    assert scene.deadline == 0


@pytest.mark.parametrize(
    ("edited", "actions"),
    [
        pytest.param(moved("a", 20, 3620), ["Schedule 60", "Schedule 20"], id="shorter"),
        pytest.param(moved("a", 90, 3690), ["Schedule 60", "Schedule 90"], id="longer"),
        pytest.param(tolerate("a"), ["Schedule 60", "Cancel Tolerated"], id="forever"),
        pytest.param(tolerate("a", 60), ["Schedule 60", "Cancel BuiltIn"], id="moved-back"),
        pytest.param(moved("a", 60), ["Schedule 60"], id="other-variant"),
    ],
)
def test_edits_of_what_is_in_force(edited: Toleration, actions: list[str]) -> None:
    scene = Scene(ON)
    scene.pod(0, moved("a", 60, 3660))
    scene.node(0, A)
    scene.pod(10, edited)
    assert scene.actions == actions


def test_taint_that_goes_gives_a_pod_back_to_us() -> None:
    scene = Scene(ON)
    scene.pod(0, moved("a", 60, 3660), tolerate("b", 30))
    scene.node(0, A, B)
    scene.node(10, A)
    assert scene.actions == ["Schedule 60"]


def test_new_setting_takes_effect_when_all_is_decided_again() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60))
    scene.node(0, A)
    scene.rules = ON
    scene.decide_all(10)
    scene.rules = RuleParameters()
    scene.decide_all(20)
    assert scene.actions == ["Schedule 60", "Cancel BuiltIn", "Schedule 60"]


def test_restart_keeps_what_the_spec_has() -> None:
    scene = Scene(ON)
    scene.pod(0, moved("a", 60, 3660))
    scene.restart()
    scene.node(0, A)
    assert scene.deadline == 60


def test_move_without_taints_writes_the_row() -> None:
    scene = Scene(ON)
    scene.pod(0, tolerate("a", 60))
    assert scene.pod(1, moved("a", 60, 3660)).effect is InputEffect.CHANGED
    scene.restart()
    assert scene.aggregate.pods["pod-1"].tolerations == (moved("a", 60, 3660),)
    assert scene.aggregate.pods["pod-1"].tolerations_since_us == us(0)


def test_rules_of_a_cluster_go_by_its_name() -> None:
    rules = ClusterRules(RuleParameters(), ["eks-*", "gke-1"])
    assert [rules.of(name).built_in for name in ("eks-1", "gke-1", "gke-11", "lab")] == [True, True, False, False]
    assert not ClusterRules(RuleParameters()).of("eks-1").built_in


def test_annotation_that_a_feed_left_out_counts_later() -> None:
    scene = Scene(ON)
    scene.pod(0, Toleration("a", "Exists", "", NO_EXECUTE, 3660), version="7")
    scene.node(0, A)
    assert scene.actions == []
    scene.pod(5, moved("a", 60, 3660), version="7")
    assert scene.deadline == 60
    assert scene.pod(6, Toleration("a", "Exists", "", NO_EXECUTE, 3660), version="7").effect is InputEffect.DUPLICATE
    assert scene.deadline == 60
