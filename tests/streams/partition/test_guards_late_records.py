"""Guards when a record is late: its taint came before those of an incident that is there already."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.instants import SECOND_US, instant_text
from tests.streams.partition.storms import THREE, Storm, in_zone, names
from tests.streams.worker.story import NOON_US

EARLY_US = SECOND_US // 50


def late(world: Storm, number: int, early_us: int = EARLY_US) -> None:
    """Tell of the taint of a node that was seen before now."""
    world.offset += 1
    meta: dict[str, Any] = {"name": f"n{number}", "uid": f"n{number}", "labels": in_zone("a")}
    meta["resourceVersion"] = str(world.offset + 100)
    node = {"kind": "Node", "metadata": meta, "spec": {"taints": [{"key": "agent", "effect": "NoExecute"}]}}
    seen_at = instant_text(world.now_us - early_us)
    world.raw("lab", "nodes", {"cluster": "lab", "type": "MODIFIED", "observedAt": seen_at, "object": node})


@pytest.mark.parametrize("by", ["taintKey", "zone"])
def test_a_late_taint_belongs_to_the_incident_that_is_there(by: str) -> None:
    world = Storm(guard={**THREE, "by": by})
    world.run(5)
    world.storm(range(1, 5))
    world.run(5.01)
    (before,) = world.incidents()
    late(world, 0)
    world.run(700)
    (after,) = world.incidents()
    assert (after.id, before.from_us - after.from_us) == (before.id, EARLY_US - SECOND_US // 100)
    assert world.gone() == {}


def test_late_taints_of_another_time_are_no_part_of_it() -> None:
    world = Storm(guard={"count": 3, "withinSeconds": 1})
    world.run(5)
    world.storm(range(1, 5))
    world.run(5.1)
    late(world, 0, 3 * SECOND_US)
    world.run(700)
    assert set(world.gone()) == {"goes-0", "stays-0"}
    assert [one.from_us - NOON_US for one in world.incidents()] == [5 * SECOND_US]


def test_what_was_answered_begins_no_earlier() -> None:
    """One late node is no more than the guard allows; four are an incident of their own."""
    world = Storm(guard=THREE)
    world.run(5)
    world.storm(range(1, 5))
    world.run(5.01)
    world.answer_incident("Approved")
    world.run(5.02)
    late(world, 0, SECOND_US // 2)
    world.run(400)
    assert set(world.gone()) == names("goes", range(5)) | names("stays", range(5))
    for number in range(5, 9):
        late(world, number, 396 * SECOND_US)
    world.run(800)
    assert set(world.gone()) == names("goes", range(5)) | names("stays", range(5))
    assert [one.answered_us > 0 for one in world.incidents()] == [True, False]
