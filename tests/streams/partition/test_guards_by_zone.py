"""Guards that count the nodes of each zone: what an incident of a zone holds, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.streams.partition.storms import NODES, SPREAD, Storm, names

HALF = NODES // 2
A, B = range(HALF), range(HALF, NODES)
BY_ZONE: dict[str, Any] = {"guard": {"count": 2, "withinSeconds": 600, "by": "zone"}}
BY_KEY: dict[str, Any] = {"guard": {"count": 2, "withinSeconds": 600}}
BY_NODE: dict[str, Any] = {"guard": {"count": 1, "withinSeconds": 600, "of": "pods", "by": "node"}}
SAID = {"why": "w", "by": "anna", "answeredAt": "2026-01-01T00:00:00Z"}


def two_zones(spec: dict[str, Any] = BY_ZONE, *, second: str = "b") -> Storm:
    world = Storm(**spec)
    for number in B:
        world.node(number, zone=second)
    return world


def zones(world: Storm) -> list[str | None]:
    return [one.zone for one in world.incidents()]


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_an_incident_holds_its_zone_and_no_other(kills: bool) -> None:  # noqa: FBT001 - a case
    world = two_zones()
    world.storm(A)
    world.storm([HALF, HALF + 1], zone="b")
    world.run(10)
    if kills:
        world.die()
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.zone, incident.nodes, incident.limit, incident.known) == ("a", HALF, 2, HALF)
    assert set(world.gone()) == names("goes", [HALF, HALF + 1]) | names("stays", [HALF, HALF + 1])
    world.answer_incident("Approved")
    world.run(700 + SPREAD)
    assert set(world.gone()) >= names("goes", A) | names("stays", A)


def test_each_zone_has_an_incident_of_its_own() -> None:
    world = two_zones()
    world.storm(A)
    world.storm(B, zone="b")
    world.run(10)
    assert zones(world) == ["a", "b"]
    assert len({one.id for one in world.incidents()}) == 2
    world.answer_incident("Approved", incident=world.incidents()[0].id)
    world.run(700)
    assert set(world.gone()) == names("goes", A) | names("stays", A)


def test_another_key_in_the_zone_still_evicts() -> None:
    world = two_zones()
    world.storm(range(HALF - 1))
    world.storm([HALF - 1], key="dead")
    world.run(700)
    assert zones(world) == ["a"]
    assert set(world.gone()) == names("goes", [HALF - 1]) | names("stays", [HALF - 1])


def test_a_share_is_of_the_nodes_of_the_zone() -> None:
    world = two_zones({"guard": {"sharePercent": 40, "withinSeconds": 600, "by": "zone"}})
    world.delete(0)  # it counts on, in its zone
    world.storm([1, 2])
    world.run(10)
    world.die()
    assert world.incidents() == ()
    world.storm([3])
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.zone, incident.nodes, incident.limit, incident.known) == ("a", 3, 2, HALF)


def test_nodes_without_a_zone_are_one_of_their_own() -> None:
    world = two_zones(second="")
    world.storm([0, 1])
    world.storm(B, zone="")
    world.run(700)
    assert zones(world) == [""]
    assert set(world.gone()) == names("goes", [0, 1]) | names("stays", [0, 1])


def test_a_node_counts_in_the_zone_that_it_has_now() -> None:
    world = two_zones()
    world.storm([0, 1])
    world.storm([HALF], zone="b")
    world.run(10)
    assert world.incidents() == ()
    world.node(1, "agent", zone="b")
    world.node(HALF + 1, "agent", zone="b")
    world.run(20)
    (incident,) = world.incidents()
    assert (incident.zone, incident.nodes, incident.known) == ("b", 3, HALF + 1)
    world.run(700)
    assert set(world.gone()) == names("goes", [0, 1, HALF]) | names("stays", [0])


def test_a_zone_that_is_left_ends_its_incident() -> None:
    world = two_zones()
    world.storm(A)
    world.run(10)
    for number in A:
        world.node(number, "agent", zone="c")
    world.run(700)
    assert (zones(world), world.gone()) == (["c"], {}), "they are too many in the other zone too"


@pytest.mark.parametrize(("before", "after"), [(BY_KEY, BY_ZONE), (BY_ZONE, BY_KEY)], ids=["by zone", "by key"])
@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_incidents_outlast_another_way_to_count(before: dict[str, Any], after: dict[str, Any], kills: bool) -> None:  # noqa: FBT001 - a case
    world = two_zones(before)
    world.storm(A)
    world.run(10)
    (incident,) = world.incidents()
    world.apply(after, earlier=[{"spec": before}])
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(700)
    assert (world.incidents(), world.gone()) == ((incident,), {})
    for number in A:
        world.node(number)
    world.run(710)
    assert (world.incidents(), world.gone()) == ((), {})


@pytest.mark.parametrize(
    ("before", "after"),
    [(BY_NODE, BY_ZONE), (BY_NODE, BY_KEY), (BY_ZONE, BY_NODE), (BY_KEY, BY_NODE)],
    ids=["node to zone", "node to key", "zone to node", "key to node"],
)
@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_what_was_rejected_waits_under_another_count(
    before: dict[str, Any], after: dict[str, Any], *, kills: bool
) -> None:
    """Nothing exceeds the guard that comes: only the incidents hold."""
    world = two_zones(before)
    world.storm(range(3))
    world.run(10)
    incidents = world.incidents()
    answers = [{"incident": one.id, "verdict": "Rejected", **SAID} for one in incidents]
    world.apply({"guard": {**after["guard"], "count": 2 * NODES}}, *answers, earlier=[{"spec": before}])
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
    world.run(700)
    assert ({one.id for one in world.incidents()}, world.gone()) == ({one.id for one in incidents}, {})


def test_a_node_that_moves_brings_its_leaving_pods() -> None:
    """A taint that all pods of a zone tolerate is no incident there, until such a node comes."""
    world = Storm(0, **BY_ZONE)
    world.logic.firing.look_at_policies()  # each second
    for number in range(3):
        world.node(number, "starting", zone="a")
    for number in range(3, 5):
        world.node(number, "starting", zone="b")
    meta = {"namespace": "x", "name": "goes", "uid": "goes"}
    tolerations = [{"operator": "Exists", "tolerationSeconds": 300}]
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n3", "tolerations": tolerations})
    world.run(10)
    assert zones(world) == [], "in zone a no pod has to leave, and in zone b there are two nodes"
    world.node(3, "starting", zone="a")
    world.run(20)
    assert zones(world) == ["a"]


def test_the_record_names_the_zone() -> None:
    world = two_zones(second="")
    world.storm(A)
    world.storm(B, zone="")
    world.run(10)
    world.publish()
    found = {one.zone: one.first_nodes for one in world.published.values() if one is not None}
    assert found == {"a": tuple(f"n{n}" for n in A), "": tuple(f"n{n}" for n in B)}
