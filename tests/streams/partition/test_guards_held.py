"""Guards before a partition: what an incident holds, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.incidents import MOST_INCIDENTS
from tests.models.steering.test_policies import policy_record
from tests.streams.partition.storms import ALL, GUARD, NODES, SPREAD, THREE, Storm, names


def test_a_storm_evicts_nobody_before_approval() -> None:
    """What is scheduled is known ahead; what is due at once waits until the storm shows how large it is."""
    world, plain = Storm(**GUARD), Storm()
    for each in (world, plain):
        each.storm(ALL)
        each.run(700)
    assert len(plain.gone()) == 2 * NODES
    assert world.gone() == {}
    assert world.held() == {("policy/p1", "lab"): 2 * NODES}
    (incident,) = world.incidents()
    assert (incident.taint, incident.nodes, incident.limit, incident.known) == ("agent", NODES, 3, NODES)


def test_a_slow_storm_evicts_what_is_allowed_and_no_more() -> None:
    world = Storm(**GUARD)
    for number in ALL:
        world.run(2 * number + 1)
        world.storm([number])
    world.run(1_000)
    assert set(world.gone()) == names("goes", range(3)), (
        "the guard allows three nodes; what was scheduled on them waits"
    )


def test_as_many_as_are_allowed_go_in_their_time() -> None:
    world, plain = Storm(**GUARD), Storm()
    for each in (world, plain):
        each.storm(range(3))
        each.run(700)
    before, after = plain.gone(), world.gone()
    assert world.deadlines() == plain.deadlines()
    assert {uid: after[uid] - before[uid] for uid in names("stays", range(3))} == dict.fromkeys(
        names("stays", range(3)), 0
    )
    assert {round(after[uid] - before[uid], 3) for uid in names("goes", range(3))} == {1}, "the look around"


def test_what_came_long_before_does_not_count() -> None:
    world = Storm(guard={"count": 3, "withinSeconds": 60})
    for number in ALL:
        world.run(30 * number + 1)
        world.storm([number])
    world.run(1_000)
    assert len(world.gone()) == 2 * NODES


def test_another_key_still_evicts_meanwhile() -> None:
    world = Storm(NODES + 1, **GUARD)
    world.storm(ALL)
    world.run(5)
    world.storm([NODES], key="dead")
    world.run(600)
    assert set(world.gone()) == names("goes", [NODES]) | names("stays", [NODES])


def test_a_later_node_is_of_an_incident_that_waits() -> None:
    world = Storm(NODES + 1, **GUARD)
    world.storm(ALL)
    world.run(5)
    world.storm([NODES])
    world.run(600)
    assert (world.gone(), len(world.incidents())) == ({}, 1)


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_recovery_cancels_all_and_releases_nothing(kills: bool) -> None:  # noqa: FBT001 - a case
    """When as many are left as the guard allows, they wait all the same."""
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    for number in range(2, NODES):
        world.node(number)
    if kills:
        world.die()
    world.run(1_000)
    assert world.gone() == {}
    assert world.held() == {("policy/p1", "lab"): 4}
    world.node(0)
    world.node(1)
    world.run(2_000)
    assert (world.gone(), world.incidents()) == ({}, ())
    cancelled = [one for one in world.decisions if one["decision"] == "Cancelled"]
    assert len(cancelled) == 2 * NODES
    assert {one["verdict"] for one in cancelled} == {"TaintRemoved"}


def test_an_incident_lets_go_if_its_guard_says_when() -> None:
    world = Storm(guard=THREE | {"releaseAfterSeconds": 900})
    world.storm(ALL)
    world.run(899)
    assert world.gone() == {}
    world.die()
    world.run(901 + SPREAD)
    assert len(world.gone()) == 2 * NODES


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_a_guard_without_leaving_pods_switches_no_other_off(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm()
    for number in range(NODES, NODES + 2):
        world.node(number)
    none = {"count": 0, "withinSeconds": 600}
    for name, nodes, guard in (("a", ["n10", "n11"], none), ("b", ["n?"], THREE)):
        record = policy_record(name, spec={"for": {"nodes": nodes}, "guard": guard})
        world.policies = world.policies.with_record(name.encode(), record, world.now_us // 1000)
    world.run(1)
    world.storm([NODES])
    world.run(2)
    if kills:
        world.die()
    world.storm(ALL)
    world.run(600)
    assert (world.gone(), {one.policy for one in world.incidents()}) == ({}, {"b"})


def test_no_newer_incident_drops_one_that_waits() -> None:
    many = MOST_INCIDENTS + 15
    world = Storm(NODES + many, guard={"count": 0, "withinSeconds": 600})
    world.storm(ALL)
    world.run(5)
    (first,) = world.incidents()
    for number in range(NODES, NODES + many):
        world.storm([number], key=f"key-{number}")
        world.run(5 + number)
    world.run(1_000)
    assert (len(world.incidents()), world.incidents()[0]) == (MOST_INCIDENTS, first)
    assert not (names("goes", ALL) | names("stays", ALL)) & set(world.gone())
    for number in range(NODES, NODES + 20):
        world.node(number)
    world.storm(range(NODES, NODES + 20), key="again")
    world.run(1_010)
    assert "again" in {one.taint for one in world.incidents()}, "there is room again"


def test_a_selection_of_pods_holds_only_these() -> None:
    spec: dict[str, Any] = {"for": {"namespaces": ["y"]}, "guard": THREE}
    world = Storm(**spec)
    meta = {"namespace": "y", "name": "held", "uid": "held"}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n0"})
    world.storm(ALL)
    world.run(500)
    assert set(world.gone()) == names("goes", ALL) | names("stays", ALL)
    assert world.held() == {("policy/p1", "lab"): 1}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
def test_taints_that_all_tolerate_are_no_incident_yet(kills: bool) -> None:  # noqa: FBT001 - a case
    """Nodes that start have a taint that the pods there tolerate. The first pod that does not makes an incident."""
    world = Storm(0, **GUARD)
    for number in ALL:
        world.node(number, "starting")
        meta = {"namespace": "x", "name": f"agent-{number}", "uid": f"agent-{number}"}
        world.put("lab", "pods", "Pod", meta, {"nodeName": f"n{number}", "tolerations": [{"operator": "Exists"}]})
    world.logic.firing.look_at_policies()  # each second
    world.run(10)
    assert world.incidents() == ()
    if kills:
        world.die()
        world.logic.firing.look_at_policies()
        world.run(20)
    for seconds in (None, 60):
        tolerations: list[dict[str, Any]] = []
        if seconds is not None:
            tolerations = [{"operator": "Exists", "tolerationSeconds": seconds}]
        meta = {"namespace": "x", "name": f"late-{seconds}", "uid": f"late-{seconds}"}
        world.put("lab", "pods", "Pod", meta, {"nodeName": "n0", "tolerations": tolerations})
    world.run(30)
    assert len(world.incidents()) == 1
    world.run(200)
    assert (world.gone(), world.held()) == ({}, {("policy/p1", "lab"): 2})


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed between"])
@pytest.mark.parametrize("pause", [0, 900], ids=["one after the other", "all in one turn"])
@pytest.mark.parametrize("of", ["nodes", "pods", "ownersLosingAll"])
def test_repeats_for_another_taint_wait_too(of: str, pause: int, kills: bool) -> None:  # noqa: FBT001 - a case
    """They were issued for a taint that no guard minds, and it has gone: the storm is what they would be issued for."""
    world = Storm(0, **{"for": {"taints": ["agent"]}, "guard": {**THREE, "of": of}})
    for number in ALL:
        world.node(number)
        world.pod(f"p{number}", number, owner=f"ReplicaSet/o{number}")
    world.storm(ALL, key="dead")
    world.run(5)
    assert len(world.gone()) == NODES
    world.storm(ALL)
    world.now_us += pause * SECOND_US
    if kills:
        world.die()
    world.run(4_000)
    assert {one["attempt"] for one in world.evicts["lab"]} == {1}
    assert len(world.incidents()) == 1


def test_without_a_guard_nothing_is_counted() -> None:
    world = Storm(settleSeconds=5)
    world.storm(ALL)
    world.run(500)
    guarding = world.logic.firing.guarding
    assert (guarding.is_on, guarding.has_work, guarding._guards) == (False, False, {})


def test_a_cluster_that_is_forgotten_leaves_no_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(10)
    world.raw("lab", "nodes", {"cluster": "lab", "type": "FORGET"})
    world.run(20)
    assert (world.incidents(), world.held(), world.logic.firing.guarding.has_work) == ((), {}, False)
