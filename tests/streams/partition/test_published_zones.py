"""What a partition publishes of the zones of its clusters."""

from __future__ import annotations

import pytest

from evictstream.models.messages.fleet import MOST_ZONES
from tests.faults.simulated.published import impossible
from tests.models.steering.test_brakes import record
from tests.streams.partition.publishing import OTHER, UNREACHABLE, Published


def test_zones_stand_beside_their_cluster() -> None:
    world = Published()
    world.node("a", UNREACHABLE, zone="z1")
    world.node("b", zone="z2")
    world.node("c")
    for number, node in enumerate("aabc"):
        world.pod(f"p{number}", node)
    world.run(1)
    zones = world.zones()
    assert {zone: level.pods for zone, level in zones.items()} == {None: 4, "z1": 2, "z2": 1}
    assert [zones[zone].evictions.open for zone in (None, "z1", "z2")] == [2, 2, 0]
    assert [zones[zone].nodes.unhealthy for zone in (None, "z1", "z2")] == [1, 1, 0]
    assert all(impossible(level) == "" for level in zones.values())
    assert (zones["z1"].feed, zones["z1"].brakes) == (None, ())


def test_a_node_that_changes_its_zone_takes_its_evictions_along() -> None:
    world = Published()
    world.node("a", UNREACHABLE, zone="z1")
    world.node("b", zone="z1")
    world.pod("p", "a")
    world.run(1)
    world.node("a", UNREACHABLE, zone="z2")
    world.run(1)
    assert {zone: level.evictions.open for zone, level in world.zones().items()} == {None: 1, "z1": 0, "z2": 1}
    world.node("b", zone="z2")
    world.run(1)
    assert world.zones().keys() == {None, "z2"}
    assert world.levels.count(b"lab/z1") == 1


def test_a_zone_left_and_entered_again_is_published() -> None:
    world = Published()
    world.node("a", zone="z1")
    world.run(2)
    world.node("a")
    world.node("a", OTHER, zone="z1")
    world.run(2)
    assert world.zones()["z1"].nodes.tainted == 1


@pytest.mark.parametrize("dies", [False, True])
def test_zones_that_are_gone_are_taken_back(*, dies: bool) -> None:
    world = Published()
    for zone in ("z1", "z2"):
        world.node(zone, zone=zone)
    world.run(1)
    world.node("z1", event_type="DELETED")
    world.commit()
    if dies:
        world.die()
    world.run(1)
    assert world.zones().keys() == {None, "z2"}
    world.raw("lab", "nodes", {"type": "FORGET"})
    world.commit()
    if dies:
        world.die()
    world.run(1)
    assert world.zones() == {}


def test_what_is_held_is_counted_by_zone() -> None:
    world = Published()
    world.brakes = world.brakes.with_record(b"b1", record("b1", clusters=["lab"]), world.now_us // 1000)
    for zone, pods in (("z1", 2), ("z2", 3)):
        world.node(zone, OTHER, zone=zone)
        for number in range(pods):
            world.pod(f"{zone}-{number}", zone, None)
    world.run(2)
    assert {zone: level.evictions.held for zone, level in world.zones().items()} == {None: 5, "z1": 2, "z2": 3}
    assert world.zones()["z1"].evictions.held_by == ()


def test_of_countless_zones_the_first_are_published() -> None:
    world = Published()
    for number in range(MOST_ZONES + 5):
        world.node(f"n{number}", zone=f"z{number:03}")
    world.run(1)
    assert sorted(zone for zone in world.zones() if zone) == [f"z{number:03}" for number in range(MOST_ZONES)]
