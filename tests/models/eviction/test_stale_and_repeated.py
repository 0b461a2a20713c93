"""semantics.md 12.3: accepting input."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import DUPLICATE, STALE, UNCHANGED, InputEffect
from evictstream.models.kubernetes.resource_versions import is_newer, is_older, later, read_version
from tests.models.eviction.scene import DELETED, A, B, Scene, tolerate, us

HOUR = 3600


@pytest.mark.parametrize(
    ("version", "stored", "order"),
    [
        pytest.param("10", "9", "newer", id="as numbers, not as text"),
        pytest.param("9", "10", "older", id="older number"),
        pytest.param("10", "10", "equal", id="equal"),
        pytest.param("010", "10", "equal", id="equal as numbers"),
        pytest.param("18446744073709551616", "18446744073709551615", "newer", id="beyond 64 bit"),
        pytest.param("a", "9", "newer", id="cannot be compared: log order"),
        pytest.param("9", "a", "newer", id="cannot be compared either: log order"),
        pytest.param("a", "b", "newer", id="texts are not compared"),
        pytest.param("a", "a", "equal", id="equal texts"),
        pytest.param("\u0669", "10", "newer", id="only ASCII digits are digits"),
        pytest.param("1" * 100_000, "9", "newer", id="absurdly long"),
    ],
)
def test_versions(version: str, stored: str, order: str) -> None:
    new, old = read_version(version), read_version(stored)
    assert (is_older(new, old), is_newer(new, old), new == old) == (
        order == "older",
        order == "newer",
        order == "equal",
    )
    assert later(new, old) == (old if order == "older" else new)


def test_older_node_is_dropped() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    assert scene.node(1, version="9") is STALE
    assert scene.node(1, version="10") is DUPLICATE
    assert scene.node(1, version="11").effect is InputEffect.CHANGED


def test_older_pod_is_dropped() -> None:
    scene = Scene()
    scene.pod(0, version="10")
    assert scene.pod(1, tolerate("a"), version="9") is STALE
    assert scene.pod(1, tolerate("a"), version="10") is DUPLICATE
    assert scene.pod(1, tolerate("a"), version="11").effect is InputEffect.CHANGED


def test_versions_that_cannot_be_compared_are_in_log_order() -> None:
    scene = Scene()
    scene.pod(0, tolerate("a", 60), version="z")
    scene.node(0, A, version="y")
    scene.pod(1, tolerate("a", 50), version="b")
    scene.node(2, version="a")
    assert scene.actions == ["Schedule 60", "Schedule 50", "Cancel TaintRemoved"]


def test_another_uid_with_a_higher_version_is_a_replacement() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    scene.pod(5, tolerate("a", 60), uid="pod-2", version="20")
    scene.node(7, A, uid="node-2", version="20")
    assert set(scene.aggregate.pods) == {"pod-2"}
    assert scene.aggregate.node is not None
    assert scene.aggregate.node.uid == "node-2"
    assert scene.pod(8, version="15") is STALE, "the old one was gone by 20"
    assert scene.node(8, version="15") is STALE, "the old one was gone by 20"


@pytest.mark.parametrize("version", ["9", "10"])
def test_another_uid_with_a_lower_version_is_outdated(version: str) -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    assert scene.node(1, uid="node-0", version=version) is STALE
    assert scene.pod(1, uid="pod-0", version=version) is STALE
    assert scene.actions == ["Schedule 60"]


def test_deleted_uid_is_remembered_with_its_version() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, version="10")
    scene.node(1, A, version="20", event_type=DELETED)
    scene.pod(1, version="20", event_type=DELETED)
    for version in ("9", "15", "20"):
        assert scene.node(2, A, version=version) is STALE
        assert scene.pod(2, version=version) is STALE
    assert (scene.aggregate.pods, scene.aggregate.node) == ({}, None)


def test_deleted_uid_may_come_back_with_a_newer_version() -> None:
    """The delete was wrong, or of a feed that was confused: what is newer counts."""
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    scene.node(1, A, version="20", event_type=DELETED)
    scene.pod(1, version="20", event_type=DELETED)
    scene.node(10, A, version="21")
    scene.pod(10, tolerate("a", 60), version="21")
    assert scene.actions == ["Schedule 60", "Cancel NodeGone", "Schedule 70"]


def test_deleted_uid_is_forgotten_after_its_time() -> None:
    scene = Scene()
    scene.pod(0, version="10")
    scene.pod(1, version="20", event_type=DELETED)
    scene.node(1, version="20", event_type=DELETED)
    assert scene.timers == {(us(1 + HOUR), "")}, "one wake-up for all that is remembered"
    assert scene.expire(HOUR).rows == ()
    assert len(scene.table) == 2
    scene.fire(1 + HOUR, "")
    assert scene.table == {}
    assert scene.aggregate.is_empty


def test_forgetting_goes_on_with_the_next_one() -> None:
    scene = Scene()
    scene.pod(0, uid="pod-1", event_type=DELETED)
    assert scene.pod(100, uid="pod-2", event_type=DELETED).wakeups == [], "the first wake-up asks for the next"
    scene.node(200, uid="node-1", event_type=DELETED)
    scene.run_until(HOUR)
    assert set(scene.aggregate.deleted_pods) == {"pod-2"}
    scene.restart()
    assert scene.timers == {(us(100 + HOUR), "")}
    scene.run_until(150 + HOUR)
    assert (set(scene.aggregate.deleted_pods), set(scene.aggregate.earlier_nodes)) == (set(), {"node-1"})
    scene.run_until(200 + HOUR)
    assert scene.aggregate.is_empty


def test_delete_of_another_uid_changes_nothing_of_the_stored_one() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    scene.node(1, uid="node-0", version="20", event_type=DELETED)
    scene.pod(1, uid="pod-0", version="20", event_type=DELETED)
    assert scene.actions == ["Schedule 60"]
    assert scene.deadline == 60
    assert scene.pod(2, uid="pod-0", version="15") is STALE, "but it is remembered"
    assert scene.node(2, uid="node-0", version="15") is STALE


def test_delete_repeated_and_delete_outdated() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    assert scene.pod(1, version="9", event_type=DELETED) is STALE
    assert scene.node(1, version="9", event_type=DELETED) is STALE
    scene.pod(1, version="10", event_type=DELETED)
    scene.node(1, version="10", event_type=DELETED)
    assert scene.pod(2, version="10", event_type=DELETED) is DUPLICATE
    assert scene.node(2, version="10", event_type=DELETED) is DUPLICATE
    assert scene.actions == ["Schedule 60", "Cancel PodGone"]


def test_delete_with_an_equal_version_counts() -> None:
    """A feed that finds the object missing can only repeat the last version that it knew."""
    scene = Scene()
    scene.pod(0, version="10")
    assert scene.pod(1, version="10", event_type=DELETED).effect is InputEffect.CHANGED
    assert scene.aggregate.pods == {}


def test_identical_input_emits_nothing_after_a_restart_either() -> None:
    scene = Scene()
    scene.node(0, A, version="10")
    scene.pod(0, tolerate("a", 60), version="10")
    scene.pod(1, tolerate("a", 60), version="11")
    scene.restart()
    assert scene.node(2, A, version="10") is DUPLICATE
    assert scene.pod(2, tolerate("a", 60), version="10") is DUPLICATE
    assert scene.pod(2, tolerate("a", 60), version="11") is UNCHANGED


def test_old_taints_after_a_restart_are_seen_to_be_old() -> None:
    """13 row 10: every version of a node is written to its row"""
    scene = Scene()
    scene.pod(0, version="1")
    scene.node(0, B, version="10")
    scene.node(1, version="11")
    scene.node(2, version="12")
    scene.restart()
    assert scene.node(3, A, version="11") is STALE
    assert scene.state is None
