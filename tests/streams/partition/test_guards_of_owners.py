"""Guards that count owners of which all pods have to leave, or have left."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.streams.partition import guarding
from tests.streams.partition.owner_storms import FOREVER, KILLS, guard, left, owned
from tests.streams.partition.storms import SPREAD, STAY_SECONDS, Storm


@pytest.mark.parametrize(("nodes", "is_held"), [(3, False), (4, True)])
def test_a_storm_waits_in_which_too_many_lose_all(nodes: int, is_held: bool) -> None:  # noqa: FBT001 - a case
    world = owned(*((f"web{number}", number) for number in range(8)), **guard(3))
    world.storm(range(nodes))
    world.run(700)
    assert left(world) == (set() if is_held else {f"web{number}-{number}" for number in range(nodes)})
    if is_held:
        (incident,) = world.incidents()
        assert (incident.of, incident.nodes, incident.limit) == ("ownersLosingAll", 4, 3)
        world.answer_incident("Approved")
        world.run(700 + SPREAD)
        assert len(left(world)) == 4
        world.publish()
        (record,) = world.published.values()
        assert record is not None
        assert (record.of, record.opened_with, record.allowed) == ("ownersLosingAll", 4, 3)


@KILLS
def test_an_owner_with_another_pod_does_not_count(kills: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("web", 7), ("db", 1), **guard(1))
    world.storm(range(2))
    if kills:
        world.die()
    world.run(100)
    assert world.incidents() == ()
    world.storm([7])
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.nodes, left(world)) == (2, set())


def test_an_owner_counts_once_on_its_last_node() -> None:
    """What was tainted before is let go: the pods on the last node are enough for the owner."""
    world = owned(("web", 0), ("web", 1), ("web", 2), **guard(0))
    for number in range(3):
        world.run(50 * number)
        world.storm([number])
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.nodes, left(world)) == (1, {"web-0", "web-1"})
    world.publish()
    (record,) = world.published.values()
    assert record is not None
    assert record.first_nodes == ("n2",)


@KILLS
def test_a_record_names_owners_whose_first_pods_are_elsewhere(kills: bool) -> None:  # noqa: FBT001 - a case
    """Their last nodes alone belong to the incident."""
    world = owned(*((f"web{owner}", node) for owner in range(3) for node in (owner, 4 + owner)), **guard(1))
    world.storm(range(3))
    world.run(60)
    world.storm(range(4, 7))
    world.run(100)
    if kills:
        world.die()
        world.run(110)
    world.publish()
    (record,) = world.published.values()
    assert record is not None
    assert (record.opened_with, record.nodes, record.losing_all) == (3, 3, 3)
    assert [(one.owner, one.pods) for one in record.owners] == [(f"ReplicaSet/web{owner}", 2) for owner in range(3)]
    world.run(400)
    for owner in range(2):
        world.pod_gone(f"web{owner}-{2 * owner}", owner)  # early nodes go on
    world.pod_gone("web0-1", 4)  # by hand
    world.pod("web1-new", 7, FOREVER, "ReplicaSet/web1")
    world.run(420)
    world.publish()
    (record,) = world.published.values()
    assert record is not None
    assert (record.losing_all, [one.owner for one in record.owners]) == (1, ["ReplicaSet/web2"])


def test_pods_without_owner_do_not_count() -> None:
    world = owned(**guard(0))
    world.storm(range(8))
    world.run(700)
    assert (len(world.gone()), world.incidents()) == (16, ())


@KILLS
@pytest.mark.parametrize("gone", [False, True], ids=["", "the pod has left"])
def test_a_bound_replacement_ends_the_loss(kills: bool, gone: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1), **guard(1))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    if gone:
        world.pod_gone("web-0", 0)
    world.pod("web-new", 7, FOREVER, "ReplicaSet/web")
    if kills:
        world.die()
    world.storm([1])
    world.run(800)
    assert (left(world), world.incidents()) == ({"web-0", "db-1"}, ())


@KILLS
def test_the_last_pod_that_stays_is_deleted(kills: bool) -> None:  # noqa: FBT001 - a case
    """No eviction changes then, and yet one more owner loses all."""
    world = owned(("web", 0), ("web", 7), ("db", 1), **guard(1))
    world.storm(range(2))
    world.run(100)
    world.pod_gone("web-1", 7)
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(100.1)
    (incident,) = world.incidents()
    world.run(700)
    assert (incident.nodes, left(world)) == (2, set())


@pytest.mark.parametrize("kills", [False, True], ids=["", "workers are killed"])
def test_owners_that_have_lost_all_make_no_room(kills: bool) -> None:  # noqa: FBT001 - a case
    """In a slow storm no more owners lose all than are allowed, though each is gone before the next one."""
    world = owned(*((f"web{number}", number) for number in range(6)), **guard(2))
    for number in range(6):
        world.run(400 * number)
        world.storm([number])
        world.run(400 * number + STAY_SECONDS + 10)
        for name in left(world) & {f"web{number}-{number}"}:
            world.pod_gone(name, number)
        if kills:
            world.die()
            world.logic.firing.look_at_policies()
    world.run(3_000)
    assert left(world) == {"web0-0", "web1-1"}
    (incident,) = world.incidents()
    assert (incident.nodes, incident.limit) == (3, 2)


@KILLS
def test_an_owner_counts_while_its_pods_terminate(kills: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1), **guard(1))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    meta: dict[str, Any] = {"namespace": "x", "name": "web-0", "uid": "web-0"}
    meta |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    meta |= {"ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}]}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n0"})
    if kills:
        world.die()
    world.storm([1])
    world.run(800)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([2], {"web-0"})


@KILLS
@pytest.mark.parametrize(("at", "counts"), [(3_890, True), (3_920, False)])
def test_what_has_left_is_forgotten_after_an_hour(kills: bool, at: int, counts: bool) -> None:  # noqa: FBT001 - a case
    """A pod that is remembered until 3,910 s, and another owner whose last pod that stays is deleted about then."""
    world = owned(("web", 0), ("db", 1), ("db", 7), **guard(1))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    world.pod_gone("web-0", 0)
    world.run(3_500)
    world.storm([1])
    world.run(at)
    assert (world.incidents(), left(world)) == ((), {"web-0", "db-1"})
    if kills:
        world.die()
    world.pod_gone("db-2", 7)
    world.logic.firing.look_at_policies()
    world.run(at + 1)
    assert [one.nodes for one in world.incidents()] == ([2] if counts else [])


@KILLS
def test_once_the_taint_is_removed_an_owner_counts_no_longer(kills: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1), **guard(1))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    world.pod_gone("web-0", 0)
    world.node(0)
    world.run(400)
    world.storm([0])  # another fault, for which nothing of it has left
    if kills:
        world.die()
    world.storm([1])
    world.run(800)
    assert (left(world), world.incidents()) == ({"web-0", "db-1"}, ())


def test_an_owner_counts_for_its_newest_taint() -> None:
    world = owned(("web", 0), ("web", 1), ("db", 2), **guard(0))
    world.node(0, "agent", zone="a")
    world.run(50)
    world.node(1, "dead", zone="a")
    world.run(60)
    assert [(one.taint, one.nodes) for one in world.incidents()] == [("dead", 1)]
    world.run(700)
    assert left(world) == {"web-0"}


def test_each_taint_key_counts_its_owners() -> None:
    world = owned(("web", 0), ("db", 1), ("mq", 2), **guard(1))
    world.node(0, "agent", zone="a")
    world.storm([1, 2], key="dead")
    world.run(700)
    assert [one.taint for one in world.incidents()] == ["dead"]
    assert left(world) == {"web-0"}


def test_other_taints_of_other_nodes_take_no_pod_of_it() -> None:
    """The guard looks at nodes and taints that its policy selects: the last of them is what it can hold."""
    world = owned(("web", 0), ("web", 1), **(guard(0) | {"for": {"taints": ["agent"]}}))
    world.storm([0])
    world.run(50)
    world.storm([1], key="dead")
    world.run(700)
    assert ([one.taint for one in world.incidents()], left(world)) == (["agent"], {"web-1"})


@pytest.mark.parametrize(
    ("more", "is_held"),
    [
        ({"for": {"namespaces": ["x"]}}, True),
        ({"for": {"namespaces": ["y*"]}}, False),
        ({"for": {"owners": ["ReplicaSet/web"]}}, False),
        ({"for": {"owners": ["ReplicaSet"]}}, True),
        ({"except": {"owners": ["*/db"]}}, False),
        ({"except": {"namespaces": ["x"]}}, False),
        ({"except": {"owners": ["*/db"], "nodes": ["n7"]}}, True),
        ({"except": {"owners": ["*/db"], "clusters": ["other"]}}, True),
    ],
)
def test_a_policy_counts_the_owners_that_it_selects(more: dict[str, Any], is_held: bool) -> None:  # noqa: FBT001 - a case
    world = owned(("web", 0), ("db", 1), **guard(1), **more)
    world.storm(range(2))
    world.run(10)
    assert bool(world.incidents()) == is_held


def test_what_is_due_at_once_is_counted_before_it_goes() -> None:
    world = Storm(6, **guard(1))
    for number in range(3):
        world.pod(f"web-{number}", number, None, f"ReplicaSet/web{number}")
    world.storm(range(3))
    world.run(700)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([3], set())


def test_late_records_let_its_incident_begin_earlier() -> None:
    """A pod that stayed is deleted: its owner has lost all since a taint that came before the others."""
    world = owned(("web", 0), ("web", 7), ("db", 1), ("mq", 2), **guard(1))
    world.storm([0])
    world.run(50)
    world.storm([1, 2])
    world.run(60)
    (before,) = world.incidents()
    world.pod_gone("web-1", 7)
    world.run(700)
    (after,) = world.incidents()
    assert (after.id, after.from_us < before.from_us, left(world)) == (before.id, True, set())


def test_what_comes_after_an_answer_is_counted_alone() -> None:
    world = owned(*((f"web{number}", number) for number in range(6)), **guard(1))
    world.storm(range(2))
    world.run(10)
    world.answer_incident("Approved")
    world.run(20)
    world.storm([2])
    world.run(700)
    assert (len(world.incidents()), len(left(world))) == (1, 3)
    world.storm([3])
    world.run(1_400)
    assert (len(world.incidents()), len(left(world))) == (2, 3)


def test_many_pods_are_counted_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    world = owned(*((f"web{number}", number) for number in range(8)))
    monkeypatch.setattr(guarding, "_NODES_PER_TURN", 1)
    world.apply(guard(1))
    world.logic.firing.look_at_policies()
    turns = 0
    while world.logic.firing.guarding.uncounted or not turns:
        world.logic.fire(world.now_us, 100, world.outbox)
        turns += 1
        assert turns < 10
    assert turns > 2
    world.storm(range(2))
    world.run(700)
    assert ([one.nodes for one in world.incidents()], left(world)) == ([2], set())
