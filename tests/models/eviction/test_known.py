"""When a deadline was known: an eviction is late only from then on (semantics.md 12.5)."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import RuleParameters
from evictstream.models.kubernetes import NO_EXECUTE, Taint, Toleration
from tests.models.eviction.scene import SICK, SILENT, START_US, A, Scene, text, tolerate


def owed(scene: Scene) -> float:
    eviction = scene.aggregate.pods["pod-1"].eviction
    assert eviction is not None
    return (eviction.owed_us - START_US) / 1_000_000


def shortened(at: float) -> Scene:
    """A pod that is tolerated for 1,000 s from 0 on, and for 60 s by an edit."""
    scene = Scene()
    scene.pod(0, tolerate("a", 1000))
    scene.node(0, A)
    scene.pod(at, tolerate("a", 60))
    return scene


@pytest.mark.parametrize(("at", "since"), [(10, 60), (60, 60), (900, 900)])
def test_an_edit_into_the_past_is_owed_from_itself(at: float, since: float) -> None:
    scene = shortened(at)
    assert (scene.deadline, owed(scene)) == (60, since)
    scene.fire(950)
    assert [decision.known_at for decision in scene.decisions[-2:]] == [text(900) if since == 900 else None] * 2


def test_an_edit_that_moves_no_deadline_grants_no_time() -> None:
    scene = shortened(10)
    scene.pod(900, tolerate("a", 60), tolerate("b"))
    assert owed(scene) == 60
    scene = shortened(900)
    scene.pod(950, tolerate("a", 60), tolerate("b"))
    assert owed(scene) == 900


def test_an_edit_back_is_owed_from_its_deadline() -> None:
    scene = shortened(900)
    scene.fire(900)
    scene.pod(910, tolerate("a", 2000))
    assert (scene.deadline, owed(scene)) == (2000, 2000)
    assert scene.decisions[-1].known_at is None


def test_a_deadline_first_seen_after_an_edit() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a"))
    scene.node(0, A)
    scene.pod(900, tolerate("a", 60))
    assert (scene.kinds, scene.deadline, owed(scene)) == (["Due"], 60, 900)


def test_a_restart_forgets_no_time_of_knowing() -> None:
    scene = shortened(900)
    scene.restart()
    scene.decide_all(2000)
    assert owed(scene) == 900


def test_other_rules_are_owed_from_the_catch_up() -> None:
    scene = Scene(rules=RuleParameters(comparison_operators=True))
    scene.pod(0, Toleration("a", "Gt", "5", NO_EXECUTE))
    scene.node(0, Taint("a", "7", NO_EXECUTE))
    scene.rules = RuleParameters()
    scene.decide_all(500)
    assert (scene.deadline, owed(scene)) == (0, 500)


def test_a_health_taint_that_returns_is_owed_from_then() -> None:
    """The time of the pod ran out in the gap, in which nothing was due."""
    scene = Scene()
    scene.pod(0, tolerate(SICK.key, 10), tolerate(SILENT.key, 10))
    scene.node(0, SICK, ready="False")
    scene.node(8, ready="False")
    scene.node(12, SICK, ready="False")
    assert (scene.kinds[-1], scene.deadline, owed(scene)) == ("Due", 10, 12)


def test_a_swap_of_health_taints_grants_no_time() -> None:
    scene = Scene()
    scene.pod(0, tolerate(SICK.key, 10), tolerate(SILENT.key, 10))
    scene.node(0, SICK, ready="False")
    scene.node(12, SILENT, ready="Unknown")
    assert (scene.deadline, owed(scene)) == (10, 10)


def test_a_pod_no_longer_exempt_is_owed_from_then() -> None:
    """As after etcd was restored to a time before the pod terminated."""
    scene = Scene()
    scene.pod(0, tolerate("a", 60), terminating=True)
    scene.pod(0, uid="pod-2", name="web-1", terminating=True)
    scene.node(0, A)
    scene.pod(900, tolerate("a", 60), epoch=1)
    scene.pod(900, uid="pod-2", name="web-1", epoch=1)
    assert (scene.deadline, owed(scene)) == (60, 900)
    assert scene.decisions[-1].deadline == text(900), "untolerated since the last fact that made it so"
