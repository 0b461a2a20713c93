"""Guards before a partition: policies whose guard comes, changes or goes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.streams.partition.storms import ALL, GUARD, NODES, SPREAD, STAY_SECONDS, THREE, Storm, names


def test_a_guard_that_comes_later_finds_the_storm() -> None:
    world = Storm()
    world.storm(ALL)
    world.run(100)
    world.apply(GUARD)
    world.logic.firing.look_at_policies()
    world.run(101)
    assert len(world.incidents()) == 1
    world.run(1_000)
    assert set(world.gone()) == names("goes", ALL), "they had gone before"


def test_a_guard_that_is_widened_finds_the_storm() -> None:
    """None of the nodes that it selected before has a pod to evict."""
    world, wide = Storm(0, **{"for": {"nodes": ["n[0-4]"]}}, **GUARD), {"for": {"nodes": ["n?"]}} | GUARD
    for number in ALL:
        world.node(number)
        world.pod(f"stays-{number}", number, -1 if number < NODES / 2 else STAY_SECONDS)
    world.logic.firing.look_at_policies()  # each second
    world.run(1)
    world.storm(ALL)
    world.run(10)
    assert (world.incidents(), bool(world.logic.firing.guarding.idle)) == ((), True)
    world.apply(wide)
    world.logic.firing.look_at_policies()  # each second
    world.run(1_000)
    assert (world.gone(), [one.nodes for one in world.incidents()]) == ({}, [NODES])


@pytest.mark.parametrize("change", [{}, {"settleSeconds": 1}], ids=["deleted", "without its guard"])
def test_a_guard_that_goes_ends_its_incidents_and_spreads(change: dict[str, Any]) -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    fields = {"spec": change} if change else {}
    world.policy(revision=9, earlier=[{"spec": GUARD}], **fields)
    world.run(400 + SPREAD + 1)
    assert (len(world.gone()), world.incidents()) == (2 * NODES, ())
    assert max(world.gone().values()) - min(world.gone().values()) > SPREAD / 2


@pytest.mark.parametrize("change", [{}, {"settleSeconds": 1}], ids=["deleted", "without its guard"])
def test_a_guard_that_goes_leaves_no_work(change: dict[str, Any]) -> None:
    """Of a node that changed just before; and of taints that begin to evict pods only afterwards."""
    world = Storm(0, **GUARD)
    for number in ALL:
        world.node(number, "starting")
    world.logic.firing.look_at_policies()  # each second
    world.run(5)
    assert world.logic.firing.guarding.idle
    world.node(0, "agent")
    fields = {"spec": change} if change else {}
    world.policy(revision=9, earlier=[{"spec": GUARD}], **fields)
    world.logic.firing.fire(world.now_us, 100, world.outbox)
    assert not world.logic.firing.guarding.has_work
    assert not world.logic.firing.guarding.idle, "each repeated attempt would be asked for"
    meta = {"namespace": "x", "name": "late", "uid": "late"}
    world.put("lab", "pods", "Pod", meta, {"nodeName": "n1"})
    assert not world.logic.firing.guarding.has_work
    world.apply(GUARD)
    world.logic.firing.look_at_policies()  # each second
    world.run(6)
    assert ([one.taint for one in world.incidents()], world.gone()) == (["starting"], {}), "the guard has come back"


def test_a_guard_that_releases_from_now_on_spreads_what_waits() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(7_200)
    world.apply({"guard": THREE | {"releaseAfterSeconds": 3_600}}, earlier=[{"spec": GUARD}])
    world.run(7_200 + SPREAD + 1)
    assert len(world.gone()) == 2 * NODES
    assert max(world.gone().values()) - min(world.gone().values()) > SPREAD / 2


def test_other_clauses_of_a_policy_change_nothing_of_its_incident() -> None:
    world = Storm(**GUARD)
    world.storm(ALL)
    world.run(400)
    before = world.incidents()
    world.apply(GUARD | {"settleSeconds": 5}, earlier=[{"spec": GUARD}])
    world.run(1_000)
    assert (world.gone(), world.incidents()) == ({}, before)
