"""What a feed tells of zones and owners holds evictions before a worker, over a takeover and over changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.shapes import Kind
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.watched_objects import read_object
from evictstream.streams.partition.firing import LOOK_AGAIN_US
from tests.streams.partition.test_held import PODS, Braked

ZONE = "topology.kubernetes.io/zone"
LOOK_SECONDS = 2 * LOOK_AGAIN_US / SECOND_US


class Fed(Braked):
    """A partition that is fed with whole objects of an API server, by way of the feed's own trimming."""

    def zone(self, cluster: str, zone: str | None, *taints: str, **labels: str) -> None:
        """Tell of the node, with its taints and labels."""
        found = labels | ({} if zone is None else {ZONE: zone})
        spec = {"taints": [{"key": key, "effect": "NoExecute"} for key in taints], "podCIDR": "10.0.0.0/24"}
        status = {"nodeInfo": {"kubeletVersion": "v1.37.2"}, "conditions": [{"type": "Ready", "status": "True"}]}
        self.feed(
            cluster, "Node", {"metadata": {"name": "n", "uid": "n", "labels": found}, "spec": spec} | {"status": status}
        )

    def feed(self, cluster: str, kind: Kind, found: dict[str, Any]) -> None:
        found["metadata"]["resourceVersion"] = str(self.offset + 100)
        records = FeedRecords(cluster=cluster, uid="", epoch=0)
        trimmed = read_object(kind, json.dumps(found).encode()).json
        value = records.change(records.head("MODIFIED"), self.now_us, trimmed)
        self.raw(cluster, f"{kind.lower()}s", json.loads(value))


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed before"])
def test_a_brake_of_a_zone_holds_at_the_worker(kills: bool) -> None:  # noqa: FBT001 - a case
    world = Fed()
    world.zone("held", "z-a", "dead")
    world.zone("free", "z-b", "dead")
    world.brake(zones=["z-a"])
    if kills:
        world.die()
    world.run(30)
    assert world.held() == {("b1", "held"): PODS}
    assert (world.issued("held"), len(world.issued("free"))) == ({}, PODS)


@pytest.mark.parametrize("zone", [None, ""], ids=["no label", "an empty one"])
def test_a_brake_of_a_zone_does_not_hold_elsewhere(zone: str | None) -> None:
    world = Fed()
    world.zone("held", zone, "dead")
    world.brake(zones=["z-a"])
    world.run(30)
    assert len(world.issued("held")) == PODS


def test_a_node_that_leaves_the_zone_lets_go_at_once() -> None:
    world = Fed()
    world.zone("held", "z-a", "dead")
    world.brake(zones=["z-a"], clusters=["held"])
    world.run(30)
    assert world.held() == {("b1", "held"): PODS}
    world.zone("held", "z-b", "dead")
    world.run(30 + LOOK_SECONDS)
    assert (world.held(), len(world.issued("held"))) == ({}, PODS)


def test_policies_select_by_what_the_feed_told() -> None:
    world = Fed()
    world.policy(
        spec={"observe": True, "for": {"zones": ["z-*"], "owners": ["Job/nightly"], "priority": {"below": 10}}}
    )
    world.zone("held", "z-a", "dead")
    for number in range(PODS):
        owners = [{"kind": "Job", "name": "nightly" if number % 2 else "other", "uid": "j", "controller": True}]
        meta = {"namespace": "x", "name": f"p{number}", "uid": f"held-p{number}", "ownerReferences": owners}
        tolerations = [{"operator": "Exists", "tolerationSeconds": 10 + number % 5}]
        spec = {"nodeName": "n", "tolerations": tolerations, "priority": number}
        world.feed("held", "Pod", {"metadata": meta, "spec": spec})
    world.die()
    world.run(30)
    assert world.held() == {("policy/p1", "held"): 5}
    kept = {f"held-p{number}" for number in (1, 3, 5, 7, 9)}
    assert set(world.issued("held")) == {f"held-p{number}" for number in range(PODS)} - kept
    assert len(world.issued("free")) == PODS, "its node has no zone"


def test_what_the_executor_saw_first_is_held_here_then() -> None:
    """It is asked again after a minute as ever; by then the worker knows the zone, and asks no more."""
    world = Fed()
    world.brake(zones=["z-a"], clusters=["held"])
    world.run(20)
    world.answer("held", "Accepted", heldBy="b1")
    world.zone("held", "z-a", "dead")
    world.run(400)
    assert {len(times) for times in world.issued("held").values()} == {1}
    assert world.held() == {("b1", "held"): PODS}
