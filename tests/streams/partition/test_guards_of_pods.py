"""Guards that count pods: those that have to leave, and those that have left, which make no room for others."""

from __future__ import annotations

from collections.abc import ValuesView
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.eviction import NodeAggregate
from evictstream.models.eviction.leaving_pods import leaving_pods
from evictstream.models.eviction.state import DeletionMemory
from evictstream.models.steering.incidents import MOST_INCIDENTS
from evictstream.streams.partition import guarding
from tests.harness.examples import examples
from tests.streams.partition.storms import SPREAD, STAY_SECONDS, Storm, names


def guard(count: int, **more: Any) -> dict[str, Any]:
    return {"guard": {"count": count, "of": "pods", "withinSeconds": 3_600, **more}}


def both(numbers: range | list[int]) -> set[str]:
    return names("goes", numbers) | names("stays", numbers)


@pytest.mark.parametrize(("nodes", "is_held"), [(3, False), (4, True)])
def test_a_storm_of_more_pods_than_allowed_waits(nodes: int, is_held: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(**guard(7))
    world.storm(range(nodes))
    world.run(700)
    assert set(world.gone()) == (set() if is_held else both(range(nodes)))
    if is_held:
        (incident,) = world.incidents()
        assert (incident.of, incident.nodes, incident.limit) == ("pods", 8, 7)
        world.answer_incident("Approved")
        world.run(700 + SPREAD)
        assert set(world.gone()) == both(range(nodes))


@pytest.mark.parametrize("kills", [False, True], ids=["", "workers are killed"])
def test_pods_that_have_left_make_no_room(kills: bool) -> None:  # noqa: FBT001 - a case
    """In a slow storm no more pods leave than are allowed, though each is gone before the next node is tainted."""
    world = Storm(**guard(5))
    for number in range(6):
        world.run(400 * number)
        world.storm([number])
        world.run(400 * number + STAY_SECONDS + 10)
        for name in both([number]) & set(world.gone()):
            world.pod_gone(name, number)
        if kills:
            world.die()
            world.logic.firing.look_at_policies()
    world.run(3_000)
    assert set(world.gone()) == both(range(2))
    (incident,) = world.incidents()
    assert (incident.nodes, incident.limit) == (6, 5)


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_pods_that_left_are_forgotten_after_an_hour(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(1, **guard(2))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    for name in both([0]):
        world.pod_gone(name, 0)
    world.run(3_600)
    world.pod("early", 0)
    world.run(3_610)
    assert (len(world.incidents()), len(world.gone())) == (1, 2)
    world.pod_gone("early", 0)
    world.node(0)
    world.run(3_620)
    world.storm([0])
    world.run(STAY_SECONDS + 3_700)
    if kills:
        world.die()
    world.pod("a", 0)
    world.pod("b", 0)
    world.run(8_000)
    assert ({"a", "b"} <= set(world.gone()), world.incidents()) == (True, ())


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_what_is_forgotten_of_one_node_lets_another_go(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(2, **guard(3))
    world.pod_gone("stays-0", 0)
    world.storm([0])
    world.run(10)
    world.pod_gone("goes-0", 0)
    world.run(3_500)
    world.storm([1])
    world.run(3_700)
    if kills:
        world.die()
    world.pod("late", 1)
    world.run(3_710)
    assert (set(world.gone()), world.incidents()) == ({"goes-0", "goes-1", "late"}, ())


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed"])
def test_pods_that_left_for_an_earlier_taint_do_not_count(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Storm(1, **guard(2))
    world.storm([0])
    world.run(STAY_SECONDS + 10)
    for name in both([0]):
        world.pod_gone(name, 0)
    world.node(0)
    world.run(400)
    world.storm([0])
    if kills:
        world.die()
    world.pod("a", 0)
    world.pod("b", 0)
    world.run(500)
    assert ({"a", "b"} <= set(world.gone()), world.incidents()) == (True, ())


def test_pods_that_tolerate_do_not_count() -> None:
    world = Storm(**guard(4))
    for number in range(2):
        for more in range(5):
            world.pod(f"tolerates-{number}-{more}", number, -1)
    world.storm(range(2))
    world.run(700)
    assert (set(world.gone()), world.incidents()) == (both(range(2)), ())


def test_pods_that_come_later_are_counted_before_they_leave() -> None:
    world = Storm(**guard(5))
    world.storm(range(2))
    world.run(100)
    world.pod("late", 0)
    world.run(110)
    assert "late" in world.gone()
    world.pod("later", 1)
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.nodes, set(world.gone())) == (6, {"late", *names("goes", range(2))})


def test_a_pod_counts_for_the_taint_that_decides() -> None:
    """When that one goes, the pod counts for the other one."""
    world = Storm(2, **guard(3))
    for number in range(2):
        world.node(number, "agent", "dead")
    world.run(10)
    (first,) = world.incidents()
    for number in range(2):
        world.node(number, *{"agent", "dead"} - {first.taint})
    world.run(20)
    (second,) = world.incidents()
    assert ({first.taint, second.taint}, second.nodes, world.gone()) == ({"agent", "dead"}, 4, {})


def test_a_single_node_has_an_incident_of_its_own() -> None:
    world = Storm(**guard(3, by="node"))
    for more in range(3):
        world.pod(f"more-{more}", 4)
    world.storm(range(6))
    world.run(10)
    world.die()
    world.run(700)
    (incident,) = world.incidents()
    assert (incident.node, incident.zone, incident.nodes, incident.limit) == ("n4", None, 5, 3)
    assert set(world.gone()) == both([0, 1, 2, 3, 5])
    world.publish()
    (record,) = world.published.values()
    assert record is not None
    assert (record.node, record.of, record.first_nodes, record.opened_with) == ("n4", "pods", ("n4",), 5)


def test_each_zone_counts_its_pods() -> None:
    world = Storm(**guard(5, by="zone"))
    world.storm(range(2), zone="b")
    world.storm(range(2, 6))
    world.run(700)
    assert [(one.zone, one.nodes) for one in world.incidents()] == [("a", 8)]
    assert set(world.gone()) == both(range(2))


def test_more_incidents_than_there_is_room_for_are_one() -> None:
    nodes = MOST_INCIDENTS + 20
    world = Storm(nodes, **guard(1, by="node"))
    world.storm(range(60))
    world.run(5)
    assert len(world.incidents()) == 60
    world.storm(range(60, nodes))
    world.run(700)
    assert (len(world.incidents()), world.incidents()[-1].node, world.gone()) == (61, None, {})


def test_a_cluster_that_is_not_counted_keeps_its_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Storm(**guard(5))
    for number in range(6):
        world.pod_gone(f"goes-{number}", number)
    world.storm(range(6))
    world.logic.firing.look_at_policies()
    world.run(10)  # nothing is due yet, which would have it counted at once
    before = world.incidents()
    monkeypatch.setattr(guarding, "_NODES_PER_TURN", 0)  # as if there were many other nodes to be counted first
    world.apply(guard(6), earlier=[{"spec": guard(5)}])
    world.logic.firing.look_at_policies()
    world.logic.fire(world.now_us, 100, world.outbox)
    world.pod("late", 0, 600)
    world.logic.fire(world.now_us, 100, world.outbox)
    assert (len(before), world.incidents()) == (1, before)


def test_without_such_a_guard_no_pod_is_looked_at() -> None:
    world = Storm(guard={"count": 3, "withinSeconds": 600})
    world.storm(range(3))
    world.run(700)
    guards = world.logic.firing.guarding
    assert (guards.is_on, guards.counts_pods, guards._pods_changed) == (True, False, {})


class Watched(dict[str, DeletionMemory]):
    """Counts how many of what is remembered was looked at."""

    looked = 0

    def values(self) -> ValuesView[DeletionMemory]:  # type: ignore[override]
        self.looked += len(self)
        return super().values()


def node_of(world: Storm) -> NodeAggregate:
    found = world.logic.known_node("lab", "n0")
    assert found is not None
    return found


def test_pods_that_left_are_counted_once_for_all_turns() -> None:
    world = Storm(1, **guard(1_000))
    world.storm([0])
    node, watched = node_of(world), Watched()
    for number in range(60):
        if number == 30:
            watched.update(node.deleted_pods)
            node.deleted_pods = watched
        world.pod(f"p{number}", 0)
        world.run(2 + number)
        world.pod_gone(f"p{number}", 0)
        world.run(2.5 + number)
    assert len(node.deleted_pods) == 60
    assert leaving_pods(node) == {"agent": 62}
    assert watched.looked == 0, "31 turns, each with some 45 pods that have left"


STEPS = st.lists(st.tuples(st.sampled_from(["pod", "gone", "run", "taint", "untaint", "long"]), st.integers(0, 4)))


@given(STEPS)
@settings(max_examples=examples(40))
def test_counts_of_left_pods_are_those_of_the_rows(steps: list[tuple[str, int]]) -> None:
    world, at = Storm(1, **guard(1_000)), 1.0
    for what, number in steps:
        if what == "pod":
            world.pod(f"p{number}", 0)
        elif what == "gone":
            world.pod_gone(f"p{number}", 0)
        elif what == "taint":
            world.storm([0], key=f"k{number % 2}")
        elif what == "untaint":
            world.node(0)
        at += {"run": 2, "long": 1_900}.get(what, 0)
        world.run(at)
        node = node_of(world)
        found, kept, node.left = leaving_pods(node), node.left, None
        assert leaving_pods(node) == found
        node.left = kept
