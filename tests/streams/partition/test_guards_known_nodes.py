"""Guards before a partition: how many nodes they allow, by the nodes that are known."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.messages.policy_clauses import PolicyGuard
from evictstream.models.steering.guards import limit_of
from tests.streams.partition.storms import NODES, Storm, names


@pytest.mark.parametrize(
    ("guard", "known", "limit"),
    [
        ({"sharePercent": 34}, 0, 0),
        ({"sharePercent": 99}, 1, 0),
        ({"sharePercent": 100}, 1, 1),
        ({"sharePercent": 33}, 3, 0),
        ({"sharePercent": 34}, 3, 1),
        ({"sharePercent": 67}, 3, 2),
        ({"sharePercent": 10, "count": 5}, 100, 5),
        ({"sharePercent": 10, "count": 5}, 30, 3),
        ({"count": 0}, 30, 0),
    ],
)
def test_shares_round_down_and_the_lower_binds(guard: dict[str, int], known: int, limit: int) -> None:
    clause = PolicyGuard(count=guard.get("count"), share_percent=guard.get("sharePercent"), within_seconds=60)
    assert limit_of(clause, known) == limit


@pytest.mark.parametrize(
    ("nodes", "share", "goes"), [(0, 50, 0), (1, 50, 0), (1, 100, 1), (3, 34, 1), (3, 33, 0), (3, 67, 2)]
)
def test_small_clusters_evict_what_their_share_allows(nodes: int, share: int, goes: int) -> None:
    world = Storm(nodes, guard={"sharePercent": share, "withinSeconds": 3_600})
    for number in range(goes):
        world.storm([number])
    world.run(1_000)
    assert len(world.gone()) == 2 * goes
    if nodes > goes:
        world.storm(range(goes, nodes))
        world.run(3_000)
        assert (len(world.gone()), len(world.incidents())) == (2 * goes, 1)


def shrunk() -> Storm:
    """Six of ten nodes are deleted: 30 % are three of ten, and one of four."""
    world = Storm(guard={"sharePercent": 30, "withinSeconds": 60})
    for number in range(4, NODES):
        world.delete(number)
    return world


def test_a_deleted_node_counts_for_ten_minutes() -> None:
    world = shrunk()
    world.run(300)
    world.storm(range(3))
    world.run(500)
    assert len(world.gone()) == 3
    for number in range(3):
        world.node(number)
    world.die()
    world.run(599)
    assert world.incidents() == ()
    world.run(700)
    world.storm(range(3))
    world.run(710)
    (incident,) = world.incidents()
    assert (incident.limit, incident.known) == (1, 4)


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_fewer_known_nodes_hold_what_is_scheduled(kills: bool) -> None:  # noqa: FBT001 - a case
    """Nothing else happens when deleted nodes count no longer, and a new owner finds the same."""
    world = shrunk()
    world.run(400)
    world.storm(range(3))
    world.run(650)
    if kills:
        world.die()
    world.run(900)
    assert set(world.gone()) == names("goes", range(3))
    (incident,) = world.incidents()
    assert (incident.nodes, incident.limit, incident.known) == (3, 1, 4)


def test_a_cordoned_node_is_known() -> None:
    world = Storm(guard={"sharePercent": 30, "withinSeconds": 60})
    for number in range(4, NODES):
        world.node(number, unschedulable=True)
    world.storm(range(3))
    world.run(400)
    assert len(world.gone()) == 6


def test_a_new_zone_has_its_own_nodes_alone() -> None:
    """Of a zone that has come just now a guard knows the nodes that it has, not those of the cluster."""
    spec: dict[str, Any] = {"for": {"zones": ["new"]}, "guard": {"sharePercent": 50, "withinSeconds": 600}}
    world = Storm(NODES, **spec)
    world.storm(range(NODES))
    world.run(10)
    assert (len(world.gone()), world.incidents()) == (NODES, ())
    world = Storm(NODES, **spec)
    world.node(0, zone="new")
    world.node(1, zone="new")
    world.node(0, "agent", zone="new")
    world.run(500)
    assert len(world.gone()) == 2, "one of two"
    world.node(1, "agent", zone="new")
    world.run(1_200)
    (incident,) = world.incidents()
    assert (incident.limit, incident.known, len(world.gone())) == (1, 2, 2)
