"""Guards of owners where policies, owners, zones or the cluster change meanwhile."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.models.eviction.losing_owners import LosingOwners
from evictstream.models.instants import SECOND_US
from tests.streams.partition.owner_storms import KILLS, guard, left, owned
from tests.streams.partition.storms import STAY_SECONDS, Storm, in_zone


@KILLS
def test_a_policy_that_comes_later_counts_what_has_left(kills: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    world.pod_gone("web-0", 0)
    world.storm([1])
    world.apply(guard(1))
    if kills:
        world.die()
    world.run(800)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([2], {"web-0"})


def test_a_policy_that_goes_counts_nothing_any_more() -> None:
    world = owned(("web", 0), ("db", 1), **guard(1))
    cluster = world.logic._clusters.named("lab")
    world.logic.firing.look_at_policies()
    world.run(1)
    assert {type(node.workloads) for node in cluster.nodes.values()} == {LosingOwners}
    world.storm(range(2))
    world.run(10)
    assert len(world.incidents()) == 1
    world.apply({"guard": {"count": 5, "withinSeconds": 600}}, earlier=[{"spec": guard(1)}])
    world.run(700)
    assert (cluster.losing, {node.workloads for node in cluster.nodes.values()}) == (None, {None})
    assert left(world) == set(), "its incident stays"
    world.apply(guard(1))
    world.run(710)
    assert cluster.losing is not None


def test_a_policy_of_another_count_counts_the_same_owners() -> None:
    world = owned(("web", 0), ("db", 1), **guard(2))
    world.storm(range(2))
    world.run(10)
    assert world.incidents() == ()
    world.apply(guard(1), earlier=[{"spec": guard(2)}])
    world.run(700)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([2], set())


def test_a_pod_that_is_adopted_counts_for_its_new_owner() -> None:
    world = owned(("web", 0), ("db", 1), **guard(1))
    world.storm([0])
    world.run(10)
    world.pod("web-0", 0, STAY_SECONDS)  # an orphan now
    world.storm([1])
    world.run(700)
    assert (world.incidents(), left(world)) == ((), {"web-0", "db-1"})


def test_a_node_that_changes_its_zone_takes_its_owners_along() -> None:
    world = owned(("web", 0), ("db", 1), **(guard(1) | {"for": {"zones": ["b"]}}))
    world.storm(range(2))
    world.run(10)
    assert world.incidents() == ()
    for number in range(2):
        meta = {"name": f"n{number}", "uid": f"n{number}", "labels": in_zone("b")}
        world.put("lab", "nodes", "Node", meta, {"taints": [{"key": "agent", "effect": "NoExecute"}]})
    world.run(700)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([2], set())


@pytest.mark.parametrize("looks", [False, True], ids=["at once", "later"])
def test_a_cluster_that_was_forgotten_is_counted_from_nothing(looks: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1), ("mq", 2), **guard(1))
    world.storm(range(2))
    world.run(10)
    world.raw("lab", "nodes", {"cluster": "lab", "type": "FORGET"})
    if looks:
        world.run(11)
    world.now_us += SECOND_US
    for number, owner in enumerate(("cache", "bus", "cache")):
        world.node(number)
        world.pod(f"new-{number}", number, STAY_SECONDS, f"ReplicaSet/{owner}")
    world.storm(range(2))
    world.run(400)
    assert (world.incidents(), left(world)) == ((), {"new-0", "new-1"})
    world.pod("other", 2, STAY_SECONDS, "ReplicaSet/mq")
    world.storm([2])
    world.run(800)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([3], {"new-0", "new-1"})


@KILLS
def test_owners_are_published_as_without_a_guard(kills: bool) -> None:  # noqa: FBT001 - a case
    found = []
    for spec in (guard(5), {}):
        world = Storm(4)
        world.config = dataclasses.replace(world.config, workloads_topic="workloads")
        world.die()
        world.apply(spec)
        world.logic.firing.look_at_policies()
        world.run(1)
        for number in range(4):
            world.pod(f"web-{number}", number, STAY_SECONDS, "ReplicaSet/web")
        world.storm(range(3))
        world.run(2)
        world.storm([2], zone="b")
        world.node(1)
        world.pod_gone("web-0", 0)
        if kills:
            world.die()
            world.logic.firing.look_at_policies()
        world.run(3)
        cluster = world.logic._clusters.named("lab")
        assert cluster.workloads is not None
        assert (cluster.losing is not None) == bool(spec)
        found.append(cluster.workloads.leaving(("x", "ReplicaSet", "web")))
    assert found[0] is not None
    assert (found[0].bound, found[0].leaving, found[0]) == (3, 1, found[1])


def test_without_such_a_guard_no_owner_is_counted() -> None:
    world = owned(("web", 0), guard={"count": 3, "of": "pods", "withinSeconds": 600})
    world.storm(range(3))
    world.run(700)
    cluster = world.logic._clusters.named("lab")
    assert (cluster.losing, {node.workloads for node in cluster.nodes.values()}) == (None, {None})
