"""What a partition publishes of its incidents: at once, in the transaction of its rows, and taken back at the end."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import ValuesView
from typing import Any, ClassVar

import pytest

from evictstream.models.eviction.state import PodState
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.incident import IncidentState
from evictstream.streams.partition.published_incidents import RECOUNT_US
from tests.streams.partition.storms import GUARD, NODES, Storm

RECOUNT_SECONDS = RECOUNT_US // 1_000_000


def held_storm() -> Storm:
    world = Storm(**GUARD)
    world.storm(range(NODES))
    world.run(10)
    world.publish()
    return world


def test_an_incident_is_published_with_its_numbers() -> None:
    world = held_storm()
    ((name, incident),) = world.published.items()
    assert incident is not None
    assert (name, incident.id) == (world.incidents()[0].id,) * 2
    assert (incident.cluster, incident.policy, incident.taint) == ("lab", "p1", "agent")
    assert (incident.allowed, incident.known, incident.nodes, incident.opened_with) == (3, NODES, NODES, NODES)
    assert (incident.evictions, incident.due, incident.state) == (2 * NODES, NODES, IncidentState.WAITING)
    assert incident.first_nodes == tuple(sorted(f"n{number}" for number in range(NODES)))


def test_owners_that_lose_all_are_named() -> None:
    world = Storm(NODES + 1, **GUARD)
    for number, (owner, node) in enumerate([("all", 0), ("all", 1), ("some", 2), ("some", NODES)]):
        meta: dict[str, Any] = {"namespace": "x", "name": f"{owner}-{number}", "uid": f"u{number}"}
        meta["ownerReferences"] = [{"kind": "ReplicaSet", "name": owner, "controller": True}]
        world.put("lab", "pods", "Pod", meta, {"nodeName": f"n{node}"})
    world.storm(range(NODES))
    world.run(10)
    world.publish()
    (incident,) = world.published.values()
    assert incident is not None
    assert incident.losing_all == 1
    assert [(one.namespace, one.owner, one.pods) for one in incident.owners] == [("x", "ReplicaSet/all", 2)]


def test_the_fleet_names_its_incidents() -> None:
    world = held_storm()
    levels = [json.loads(message.value) for message in world.sent("fleet")]
    named = {level.get("zone"): level.get("incidents") for level in levels}
    assert named == {None: [world.incidents()[0].id], "a": None}


@pytest.mark.parametrize("verdict", ["Approved", "Rejected"])
def test_an_answer_is_published_at_once(verdict: str) -> None:
    world = held_storm()
    world.answer_incident(verdict, seconds=600 if verdict == "Approved" else None)
    world.run(11)
    world.publish()
    (incident,) = world.published.values()
    assert incident is not None
    assert (incident.state, incident.answered_by, incident.answered_why) == (IncidentState(verdict), "anna", "w")
    assert (incident.expires_at is not None) == (verdict == "Approved")


def test_numbers_alone_are_said_each_ten_seconds() -> None:
    world = held_storm()
    (before,) = world.published.values()
    assert before is not None
    world.node(0)
    world.run(12)
    world.publish()
    (same,) = world.published.values()
    assert same == before
    world.run(10 + RECOUNT_SECONDS)
    world.publish()
    (after,) = world.published.values()
    assert after is not None
    assert (after.nodes, after.evictions) == (NODES - 1, 2 * NODES - 2)
    assert after.sequence > before.sequence


def waiting_seconds(world: Storm) -> dict[tuple[str, str], float]:
    world.publish()
    since_us = world.logic.published.incidents_since_us(world.now_us)
    return {place: round((world.now_us - at_us) / SECOND_US) for place, at_us in since_us.items()}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_after_an_approval_it_waits_from_its_expiry(kills: bool) -> None:  # noqa: FBT001 - a case
    world = held_storm()
    assert waiting_seconds(world) == {("p1", "lab"): 10}
    world.answer_incident("Approved", seconds=100)
    world.run(109)
    assert waiting_seconds(world) == {}
    if kills:
        world.die()
    world.run(150)
    assert waiting_seconds(world) == {("p1", "lab"): 40}, "what was due later waits"


def test_an_incident_without_evictions_waits_for_nobody() -> None:
    """All have gone while it was approved, and the taint stays."""
    world = held_storm()
    world.answer_incident("Approved", seconds=600)
    world.run(500)
    for number in range(NODES):
        for kind in ("stays", "goes"):
            world.pod_gone(f"{kind}-{number}", number)
    world.run(2_000)
    assert waiting_seconds(world) == {}
    world.pod("late", 0)
    world.run(2_020)
    assert waiting_seconds(world) == {("p1", "lab"): 20}


@pytest.mark.parametrize(
    ("more", "selected"),
    [
        ({"for": {"namespaces": ["y"]}}, 0),
        ({"for": {"owners": ["Job"]}}, 0),
        ({"except": {"namespaces": ["x"]}}, 0),
        ({"for": {"priority": {"below": 1}}}, None),
        ({"for": {"zones": ["a"]}}, None),
    ],
)
def test_evictions_of_no_policy_wait_for_nobody(more: dict[str, Any], selected: int | None) -> None:
    world = Storm(**GUARD, **more)
    world.storm(range(NODES))
    world.run(10)
    waits = waiting_seconds(world)
    (incident,) = world.published.values()
    assert incident is not None
    assert (incident.evictions, incident.selected) == (2 * NODES, selected)
    assert waits == ({("p1", "lab"): 10} if selected is None else {})


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_it_waits_since_an_eviction_of_its_policy(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(**(GUARD | {"for": {"namespaces": ["y"]}}))
    world.storm(range(NODES))
    world.run(100)
    assert waiting_seconds(world) == {}
    meta = {"namespace": "y", "name": "db", "uid": "db"}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n0"})
    world.run(150)
    assert waiting_seconds(world) == {("p1", "lab"): 50}
    if kills:
        world.die()
        world.run(160)
        assert waiting_seconds(world) == {("p1", "lab"): 160}, "a new owner counts from its beginning"
    (incident,) = world.published.values()
    assert incident is not None
    assert incident.selected == 1


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed before"])
def test_an_end_is_a_tombstone_whoever_owns_it_then(kills: bool) -> None:  # noqa: FBT001 - a case
    world = held_storm()
    (name,) = world.published
    if kills:
        world.die()
    for number in range(NODES):
        world.node(number)
    world.run(20)
    world.publish()
    assert world.published == {name: None}
    assert world.logic._clusters.named("lab").state.published_incidents == ()


def test_a_forgotten_cluster_takes_its_incidents_back() -> None:
    world = held_storm()
    world.raw("lab", "nodes", {"cluster": "lab", "type": "FORGET"})
    world.publish()
    assert list(world.published.values()) == [None]


def test_a_new_owner_says_what_stands() -> None:
    world = held_storm()
    (before,) = world.published.values()
    world.die()
    world.run(11)
    world.publish()
    (after,) = world.published.values()
    assert before is not None
    assert after is not None
    assert (after.id, after.since, after.nodes) == (before.id, before.since, before.nodes)
    assert after.sequence > before.sequence


class Watched(dict[str, PodState]):
    """Counts how many pods were looked at."""

    looked: ClassVar[int] = 0

    def values(self) -> ValuesView[PodState]:  # type: ignore[override]
        Watched.looked += len(self)
        return super().values()


@pytest.mark.parametrize(("topic", "most"), [(None, 2), ("workloads", 1)])
def test_many_incidents_look_at_each_pod_once(topic: str | None, most: int) -> None:
    keys = [f"key-{number}" for number in range(NODES)]
    world = Storm(0)
    world.config = dataclasses.replace(world.config, workloads_topic=topic)
    world.die()
    for number in range(NODES):
        world.node(number)
        for name in ("a", "b"):
            world.pod(f"{name}-{number}", number, 300, owner=f"ReplicaSet/{name if name == 'a' else number}")
    world.spec = {"guard": {"count": 0, "withinSeconds": 600}}
    world.apply(world.spec)
    world.logic.firing.look_at_policies()
    world.run(0.2)
    for number, key in enumerate(keys):
        world.storm([number], key)
    world.run(10)
    assert len(world.incidents()) == NODES
    for node in world.logic.known_nodes():
        node.pods = Watched(node.pods)
    Watched.looked = 0
    world.publish()
    assert {one.losing_all for one in world.published.values() if one is not None} == {1}
    assert len(world.published) == NODES
    assert Watched.looked <= most * 2 * NODES


def test_others_run_after_each_incident() -> None:
    world = Storm(**GUARD)
    world.storm(range(NODES))
    world.run(10)
    assert sum(1 for _ in world.logic.published.turn(world.now_us, world.outbox)) >= 1, "others run after an incident"
