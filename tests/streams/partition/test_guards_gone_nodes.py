"""Guards and nodes that are deleted with their taints: a storm that deletes its nodes makes no room for itself."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.eviction.node_standing import MOST_TAINTS_LEFT
from evictstream.models.instants import SECOND_US
from tests.streams.partition.storms import NODES, Storm, names
from tests.streams.worker.story import NOON_US

KILLS = pytest.mark.parametrize("kills", [False, True], ids=["", "workers are killed"])
GAP = 20


def guard(count: int = 2, of: str = "nodes", within: int = 600, **more: Any) -> dict[str, Any]:
    return {"guard": {"count": count, "of": of, "withinSeconds": within, **more}}


def vanish(world: Storm, number: int, at: float, *, kills: bool = False) -> None:
    """A node gets the taint, and is deleted with its pods before the next one gets it."""
    world.storm([number])
    world.run(at + GAP / 2)
    world.pod_gone(f"goes-{number}", number)
    world.delete(number)
    world.pod_gone(f"stays-{number}", number)
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(at + GAP)


def gone(world: Storm) -> set[str]:
    return set(world.gone()) & names("goes", range(NODES))


@KILLS
@pytest.mark.parametrize(("of", "count", "counted"), [("nodes", 2, 6), ("pods", 4, 9)])
def test_a_storm_that_deletes_its_nodes_waits(of: str, count: int, counted: int, kills: bool) -> None:  # noqa: FBT001
    """What is held counts as long as its node is there; then its pod has not left for the taint."""
    world = Storm(**guard(count, of))
    at = 0
    for number in range(5):
        vanish(world, number, at, kills=kills)
        at += GAP
    assert gone(world) == names("goes", range(2))
    world.storm([5])
    world.run(at + 400)
    (incident,) = world.incidents()
    assert (incident.nodes, incident.from_us) == (counted, NOON_US + SECOND_US // 10)
    assert gone(world) == names("goes", range(2))


@KILLS
def test_an_incident_ends_when_its_nodes_are_deleted(kills: bool) -> None:  # noqa: FBT001 - a case
    """Nodes that are gone keep none alive; the next one with the taint begins another."""
    world = Storm(**guard())
    world.storm(range(3))
    world.run(5)
    (first,) = world.incidents()
    world.publish()
    for number in range(3):
        world.delete(number)
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(10)
    assert world.incidents() == ()
    world.storm([3])
    world.run(15)
    (second,) = world.incidents()
    assert (second.nodes, second.from_us, second.id != first.id, gone(world)) == (4, first.from_us, True, set())
    world.publish()
    record = world.published[second.id]
    assert record is not None
    assert record.first_nodes == ("n3",), "it names those that are there"


@KILLS
def test_a_deleted_node_counts_no_longer_than_ten_minutes(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(**guard(within=3_600))
    for number in range(2):
        vanish(world, number, number * GAP)
    world.run(620)
    if kills:
        world.die()
    world.storm([2])
    world.run(630)
    assert (gone(world), world.incidents()) == (names("goes", range(3)), ())


@KILLS
@pytest.mark.parametrize("is_tainted", [False, True])
def test_a_node_that_comes_back_counts_once(is_tainted: bool, kills: bool) -> None:  # noqa: FBT001 - cases
    world = Storm(**guard())
    for number in range(2):
        vanish(world, number, number * GAP)
        meta = {"name": f"n{number}", "uid": f"other-{number}"}
        taints = [{"key": "agent", "effect": "NoExecute"}] if is_tainted else []
        world.put("lab", "nodes", "Node", meta, {"taints": taints})
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.storm([2])
    world.run(60)
    assert len(world.incidents()) == is_tainted
    assert [one.nodes for one in world.incidents()] == [3] * is_tainted


@KILLS
def test_a_deleted_node_counts_in_its_zone(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(**guard(1, by="zone"))
    world.storm([0], zone="b")
    world.run(5)
    world.delete(0)
    world.storm([1])
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(10)
    assert (gone(world), world.incidents()) == (names("goes", [0, 1]), ())
    world.storm([2])
    world.run(15)
    assert [(one.zone, one.nodes) for one in world.incidents()] == [("a", 2)]


def test_a_deleted_node_counts_for_taints_that_are_selected() -> None:
    """What an `except` says of labels holds after the deletion, though its labels are gone."""
    spec = {"except": {"nodeLabels": ["topology.kubernetes.io/zone=b"], "taints": ["agent"]}, **guard(1)}
    world = Storm(**spec)
    world.storm([0], zone="b")
    world.run(5)
    world.delete(0)
    world.storm([1])
    world.run(15)
    assert (gone(world), world.incidents()) == (names("goes", [0, 1]), ())


def test_a_row_remembers_the_newest_of_many_taints() -> None:
    world = Storm(1)
    for number in range(MOST_TAINTS_LEFT + 4):
        world.node(0, *[f"k{one:02}" for one in range(number + 1)])
        world.run(number + 1)
    world.delete(0)
    node = world.logic.known_node("lab", "n0")
    assert node is not None
    (memory,) = node.earlier_nodes.values()
    assert memory.left is not None
    assert [one.key for one in memory.left.taints] == [f"k{one:02}" for one in range(MOST_TAINTS_LEFT + 3, 3, -1)]
    assert node.left is None, "its pods are counted for the row alone"


@KILLS
def test_deleted_nodes_alone_begin_no_incident(kills: bool) -> None:  # noqa: FBT001 - a case
    """Those that are there belong to an incident that was answered, and their pods still have to leave."""
    world = Storm(**guard())
    world.storm(range(3))
    world.run(5)
    world.answer_incident("Rejected")
    world.run(10)
    before = world.incidents()
    world.storm(range(3, 6))
    for number in range(3, 6):
        world.delete(number)
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    for at in range(11, 16):
        world.run(at)
        assert world.incidents() == before
    world.storm([6])
    world.run(20)
    assert [one.nodes for one in world.incidents()] == [3, 4]
