"""What a partition publishes of its clusters: when, with which sequence, and what it takes back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from evictstream.models.eviction import RuleParameters
from evictstream.models.eviction.rule_parameters import ClusterRules
from evictstream.models.instants import instant_text, instant_us
from evictstream.models.messages.fleet import (
    MOST_ZONES,
    EvictionCounts,
    FleetCluster,
    FleetLevel,
    NodeCounts,
    ProfileRef,
    decode_fleet_cluster,
    decode_fleet_level,
)
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.published import QUIET_US
from tests.faults.simulated.published import impossible
from tests.harness.counted import evictions_anew, nodes_anew
from tests.harness.plans import one_partition, taken_over
from tests.models.steering.test_brakes import record
from tests.streams.worker.story import NOON_US, SECOND_US, FakeRecord

NODE_PODS = 3
MANY = 250
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
OTHER = {"key": "maintenance", "effect": "NoExecute"}


class Published:
    """One partition, what it has published, and a clock that only `run` moves."""

    def __init__(self) -> None:
        self.now_us = NOON_US
        self.brakes = NO_BRAKES
        self.config = dataclasses.replace(one_partition(lambda: self.now_us), brakes=lambda: self.brakes)
        self.logic, self.outbox = EvictionPartition(0, self.config), Outbox()
        self.rows: dict[bytes, bytes] = {}
        self.levels: list[FleetLevel | bytes] = []
        self.clusters: list[FleetCluster | bytes] = []
        self.commands: list[dict[str, Any]] = []
        self.offset = 0

    def node(
        self, name: str, *taints: dict[str, str], zone: str = "", cluster: str = "lab", event_type: str = "MODIFIED"
    ) -> None:
        labels = {"topology.kubernetes.io/zone": zone} if zone else {}
        meta = {"name": name, "uid": f"node-{name}", "labels": labels}
        self._object(cluster, "nodes", event_type, {"kind": "Node", "metadata": meta, "spec": {"taints": taints}})

    def pod(
        self, name: str, node: str, seconds: int | None = 300, *, cluster: str = "lab", event_type: str = "ADDED"
    ) -> None:
        tolerations = [] if seconds is None else [{"operator": "Exists", "tolerationSeconds": seconds}]
        meta = {"namespace": "x", "name": name, "uid": f"{cluster}-{name}"}
        spec = {"nodeName": node, "tolerations": tolerations}
        self._object(cluster, "pods", event_type, {"kind": "Pod", "metadata": meta, "spec": spec})

    def heartbeat(self, cluster: str = "lab", **more: object) -> None:
        for topic in ("nodes", "pods"):
            self.raw(cluster, topic, {"type": "HEARTBEAT", **(more if topic == "nodes" else {})})

    def answer(self, outcome: str) -> None:
        """Answer the newest command."""
        command = self.commands[-1]
        same = ("apiVersion", "evictionId", "attempt", "namespace", "pod", "podUid", "node")
        value = {name: command[name] for name in same} | {"kind": "EvictionResult", "outcome": outcome}
        self.raw(command["cluster"], "results", value)

    def _object(self, cluster: str, topic: str, event_type: str, obj: dict[str, Any]) -> None:
        obj["metadata"]["resourceVersion"] = str(self.offset + 100)
        self.raw(cluster, topic, {"type": event_type, "object": obj})

    def raw(self, cluster: str, topic: str, value: dict[str, Any]) -> None:
        for _ in self.parts(cluster, topic, value):
            pass

    def parts(self, cluster: str, topic: str, value: dict[str, Any]) -> Any:
        self.offset += 1
        text = json.dumps({"cluster": cluster, **value}).encode()
        entry = FakeRecord(self.offset, self.now_us // 1000, cluster.encode(), text)
        yield from self.logic.apply(topic, [entry], self.outbox)

    def run(self, seconds: float, *, fires: bool = True) -> None:
        """Let time pass, second by second: due timers, then what the worker does each second."""
        end_us = self.now_us + round(seconds * SECOND_US)
        while self.now_us < end_us:
            self.now_us = min(end_us, self.now_us + SECOND_US)
            while fires and (due_us := self.logic.next_due_at_us()) is not None and due_us <= self.now_us:
                if not self.logic.fire(self.now_us, 100, self.outbox):
                    break
            self.publish()

    def publish(self) -> None:
        for _ in self.logic.published.turn(self.now_us, self.outbox):
            pass
        self.commit()

    def commit(self) -> None:
        written = self.outbox.take()
        for key, value in written.rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        self.commands += [json.loads(message.value) for message in written.messages.get("commands", ())]
        for message in written.messages.get("fleet", ()):
            self.levels.append(message.key if message.is_tombstone else decode_fleet_level(message.value))
        for message in written.messages.get("clusters", ()):
            self.clusters.append(message.key if message.is_tombstone else decode_fleet_cluster(message.value))

    def die(self) -> None:
        """Another worker takes over; what was not committed is lost."""
        self.logic, self.outbox = taken_over(self.config, self.rows)

    @property
    def newest(self) -> FleetLevel:
        level = self.levels[-1]
        assert isinstance(level, FleetLevel)
        return level

    def zones(self) -> dict[str | None, FleetLevel]:
        """The newest level of each zone, and of the whole, that nothing has taken back."""
        found: dict[str | None, FleetLevel] = {}
        for level in self.levels:
            if isinstance(level, bytes):
                del found[level.decode().partition("/")[2] or None]
            else:
                found[level.zone] = level
        return found

    def check(self, cluster: str = "lab") -> None:
        """The newest record is what anyone would count."""
        level, known = self.newest, [one for one in self.logic.known_nodes() if one.cluster == cluster]
        assert level.nodes == nodes_anew(known)
        assert level.evictions == evictions_anew(known, instant_us(level.at))
        assert impossible(level) == ""


@pytest.fixture
def world() -> Published:
    """A cluster with a healthy node and one that is unreachable, with three pods."""
    world = Published()
    world.node("well")
    world.node("ill", UNREACHABLE)
    for number in range(NODE_PODS):
        world.pod(f"p{number}", "ill", 10 + 100 * number)
    return world


def test_a_level_says_what_there_is(world: Published) -> None:
    world.pod("q", "nowhere")
    world.run(1)
    world.check()
    assert world.newest.nodes == NodeCounts(healthy=1, unhealthy=1, unknown=1, tainted=1)
    assert (world.newest.cluster, world.newest.zone, world.newest.pods) == ("lab", None, NODE_PODS + 1)
    assert [bucket.evictions for bucket in world.newest.evictions.deadlines] == [1, 1, 1]
    assert world.newest.evictions.scheduled == NODE_PODS


def test_each_state_of_an_eviction_is_counted(world: Published) -> None:
    world.run(9)
    assert world.newest.evictions.open == world.newest.evictions.scheduled == NODE_PODS
    world.run(2)
    world.check()
    assert _states(world.newest.evictions) == (2, 0, 1, 0, 0)
    world.answer("Failed")
    world.run(1, fires=False)
    world.check()
    assert _states(world.newest.evictions) == (2, 0, 0, 1, 1)
    world.run(120, fires=False)
    world.check()
    assert _states(world.newest.evictions) == (1, 1, 0, 1, 1)
    world.node("ill")
    world.run(1)
    world.check()
    assert world.newest.evictions.open == 0
    assert world.newest.nodes.unhealthy == 0


def test_the_first_timer_of_the_built_in_controller_is_published() -> None:
    world = Published()
    world.config = dataclasses.replace(world.config, rules=ClusterRules(RuleParameters(), ["lab"]))
    world.die()
    world.node("ill", UNREACHABLE)
    for name, seconds in (("slow", 100), ("quick", 10)):
        toleration: dict[str, object] = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        moved = json.dumps([toleration | {"builtInSeconds": seconds + 60}])
        meta = {"namespace": "x", "name": name, "uid": name, "annotations": {"evictstream.io/tolerations": moved}}
        spec = {"nodeName": "ill", "tolerations": [toleration | {"tolerationSeconds": seconds + 60}]}
        world._object("lab", "pods", "ADDED", {"kind": "Pod", "metadata": meta, "spec": spec})
    world.run(11)
    world.check()
    assert world.newest.evictions.built_in_at == instant_text(NOON_US + 70 * SECOND_US)
    world.die()
    world.run(1)
    world.check()
    assert world.newest.evictions.built_in_at == instant_text(NOON_US + 70 * SECOND_US)
    world.node("ill")
    world.run(1)
    assert world.newest.evictions.built_in_at is None


def _states(counts: EvictionCounts) -> tuple[int, ...]:
    return counts.scheduled, counts.due, counts.issued, counts.retrying, counts.failing


def test_what_does_not_change_is_said_each_minute(world: Published) -> None:
    world.node("ill")
    world.run(1)
    before = len(world.levels)
    world.run(59)
    assert len(world.levels) == before
    world.pod("new", "well")
    world.heartbeat()
    world.run(1)
    assert len(world.levels) == before + 1, "the minute is over, or the feed is heard"
    world.run(QUIET_US // SECOND_US - 1)
    assert len(world.levels) == before + 1
    world.run(1)
    assert len(world.levels) == before + 2
    assert world.newest.pods == NODE_PODS + 1


def test_many_changes_of_a_second_make_one_record(world: Published) -> None:
    world.run(1)
    before = len(world.levels)
    for number in range(50):
        world.node(f"n{number}", OTHER)
        world.pod(f"m{number}", f"n{number}")
    world.run(1)
    assert len(world.levels) == before + 1
    world.check()


def test_a_deadline_that_comes_behind_a_gate_is_told(world: Published) -> None:
    world.run(5)
    before = len(world.levels)
    world.run(6, fires=False)
    assert len(world.levels) == before + 1
    assert world.newest.evictions.due == 1
    world.check()


def test_a_silent_feed_is_told_and_heard_again() -> None:
    world = Published()
    seen = []
    for seconds in (0, 65, 0):
        world.run(seconds)
        if not seconds:
            world.heartbeat()
        world.run(1)
        seen.append(world.newest.feed)
    assert [feed is not None and feed.is_silent for feed in seen] == [False, True, False]
    assert len({feed.heard_at for feed in seen if feed is not None}) == 2


def test_what_a_brake_holds_is_told_by_its_id(world: Published) -> None:
    world.brakes = world.brakes.with_record(b"b1", record("b1", clusters=["lab"]), world.now_us // 1000)
    world.brakes = world.brakes.with_record(b"b2", record("b2", clusters=["other"]), world.now_us // 1000)
    world.run(15)
    counts = world.newest.evictions
    assert (counts.due, counts.held, [(one.by, one.evictions) for one in counts.held_by]) == (1, 1, [("b1", 1)])
    assert counts.held_by[0].oldest_at == counts.oldest_due_at
    assert counts.held_by[0].clauses == {}, "a brake has none"
    held = world.newest
    world.brakes = NO_BRAKES
    world.run(2)
    assert [one.brakes for one in (held, world.newest)] == [("b1",), ()]
    assert impossible(held) == ""
    assert world.newest.evictions.held == 0


def test_a_new_owner_says_the_same_with_a_later_sequence(world: Published) -> None:
    world.run(12)
    before = world.newest
    world.die()
    world.now_us -= 5 * SECOND_US  # its clock is behind
    world.publish()
    assert world.newest.sequence > before.sequence
    assert (world.newest.nodes, world.newest.evictions) == (before.nodes, before.evictions)


def test_the_sequence_grows_after_a_worker_that_knows_none(world: Published) -> None:
    """A worker of the version before drops it from the row."""
    world.run(1)
    before = world.newest
    world.rows = {
        key: json.dumps({k: v for k, v in json.loads(value).items() if k != "published"}).encode()
        if key.startswith(b"cluster\x00")
        else value
        for key, value in world.rows.items()
    }
    world.die()
    world.run(1)
    assert world.newest.sequence > before.sequence


def test_nothing_is_published_in_the_middle_of_a_step() -> None:
    world = Published()
    world.node("n")
    for number in range(MANY):
        world.pod(f"p{number}", "n")
    world.run(1)
    before = len(world.levels)
    meta = {"name": "n", "uid": "node-n", "resourceVersion": "100000"}
    node = {"kind": "Node", "metadata": meta, "spec": {"taints": [UNREACHABLE]}}
    parts = world.parts("lab", "nodes", {"type": "MODIFIED", "object": node})
    assert not next(parts).is_last
    world.publish()
    assert len(world.levels) == before
    for _ in parts:
        pass
    world.publish()
    assert world.newest.evictions.open == MANY


@pytest.mark.parametrize("dies", [False, True])
def test_a_forgotten_cluster_leaves_tombstones(world: Published, *, dies: bool) -> None:
    world.heartbeat()
    world.run(1)
    world.raw("lab", "nodes", {"type": "FORGET"})
    world.commit()
    if dies:
        world.die()
    world.run(3)
    assert world.levels[-1] == b"lab/"
    assert world.clusters[-1] == b"lab"
    assert [one for one in world.levels if isinstance(one, bytes)] == [b"lab/"], "once"
    world.now_us += SECOND_US
    world.node("n")
    world.run(1)
    assert world.newest.nodes.healthy == 1
    assert world.newest.evictions.open == 0


def test_a_cluster_of_which_nothing_is_left_leaves_tombstones() -> None:
    world = Published()
    world.node("n")
    world.run(1)
    world.node("n", event_type="DELETED")
    world.run(2)
    assert world.newest.nodes == NodeCounts(healthy=0, unhealthy=0, unknown=0, tainted=0)
    world.run(4000)
    assert world.levels[-1] == b"lab/"
    assert b"cluster\x00lab" not in world.rows


def test_a_cluster_is_named_once_and_when_it_changes() -> None:
    world = Published()
    world.heartbeat(clusterUid="u-1", clusterLabels={"tier": "gold"})
    world.run(130)
    (first,) = world.clusters
    assert isinstance(first, FleetCluster)
    assert (first.cluster, first.cluster_uid, first.labels) == ("lab", "u-1", {"tier": "gold"})
    world.heartbeat(clusterUid="u-1", clusterLabels={"tier": "iron"})
    world.run(5)
    world.heartbeat(clusterUid="u-1")
    world.run(5)
    assert [one.labels for one in world.clusters if isinstance(one, FleetCluster)] == [
        {"tier": "gold"},
        {"tier": "iron"},
        {},
    ]


def test_where_a_cluster_stands_in_an_inventory_is_published() -> None:
    world = Published()
    profile = {"namespace": "fleet", "name": "lab-eu", "manager": "hubs"}
    world.heartbeat(clusterProfile=profile)
    world.run(1)
    world.die()
    world.run(1)
    world.heartbeat()
    world.run(1)
    found = [one.profile for one in world.clusters if isinstance(one, FleetCluster)]
    assert found == [ProfileRef(**profile), ProfileRef(**profile), None]


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
