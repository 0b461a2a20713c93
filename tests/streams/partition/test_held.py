"""Brakes before a partition: what is held, what is not, and how it goes when a brake ends."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
from typing import Any

import pytest

from evictstream.models.eviction import PODS_IN_SLICE
from evictstream.models.instants import SECOND_US, instant_text, instant_us
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.firing import LOOK_AGAIN_US
from tests.harness.plans import one_partition, taken_over
from tests.models.steering.test_brakes import record
from tests.models.steering.test_policies import policy_record
from tests.streams.worker.story import NOON_US, FakeRecord

PODS = 40
SPREAD = 20


class Braked:
    """A partition with two clusters, each of one node with forty pods that are due at 10 s and more."""

    def __init__(self) -> None:
        self.now_us = NOON_US
        self.brakes, self.policies = NO_BRAKES, NO_POLICIES
        self.evicts: dict[str, list[dict[str, Any]]] = {"held": [], "free": []}
        self.decisions: list[dict[str, Any]] = []
        self.rows: dict[bytes, bytes] = {}
        self.offset = 0
        self.config = dataclasses.replace(
            one_partition(lambda: self.now_us), brakes=lambda: self.brakes, policies=lambda: self.policies
        )
        self.logic, self.outbox = EvictionPartition(0, self.config), Outbox()
        for cluster in self.evicts:
            self.taint(cluster, "dead")
            for number in range(PODS):
                name = f"p{number}"
                spec = {"nodeName": "n", "tolerations": [{"operator": "Exists", "tolerationSeconds": 10 + number % 5}]}
                self.put(cluster, "pods", "Pod", {"namespace": "x", "name": name, "uid": f"{cluster}-{name}"}, spec)

    def taint(self, cluster: str, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        self.put(cluster, "nodes", "Node", {"name": "n", "uid": "n"}, {"taints": taints})

    def put(self, cluster: str, topic: str, kind: str, meta: dict[str, Any], spec: dict[str, Any]) -> None:
        obj = {"kind": kind, "metadata": meta | {"resourceVersion": str(self.offset + 100)}, "spec": spec}
        self.raw(cluster, topic, {"cluster": cluster, "type": "ADDED", "object": obj})

    def raw(self, cluster: str, topic: str, value: dict[str, Any]) -> None:
        self.offset += 1
        entry = FakeRecord(self.offset, self.now_us // 1000, cluster.encode(), json.dumps(value).encode())
        collections.deque(self.logic.apply(topic, [entry], self.outbox), maxlen=0)
        self._take()

    def brake(self, brake_id: str = "b1", **fields: Any) -> None:
        fields.setdefault("spreadSeconds", SPREAD)
        value = record(brake_id, **fields)
        self.brakes = self.brakes.with_record(brake_id.encode(), value, self.now_us // 1000)

    def policy(self, *, revision: int = 1, **fields: Any) -> None:
        value = policy_record("p1", revision=revision, spreadSeconds=SPREAD, **fields)
        self.policies = self.policies.with_record(b"p1", value, self.now_us // 1000)

    def run(self, to: float) -> None:
        """Let time pass, as the timer service does: a turn is of a hundred timers."""
        end_us = NOON_US + round(to * SECOND_US)
        while True:
            due_us = self.logic.next_due_at_us()
            if due_us is None or due_us > end_us:
                break
            self.now_us = max(self.now_us, due_us)
            self.logic.fire(self.now_us, 100, self.outbox)
            self._take()
        self.now_us = end_us

    def die(self) -> None:
        """Another worker takes over from the rows."""
        self.logic, self.outbox = taken_over(self.config, self.rows)
        self._take()

    def answer(self, cluster: str, outcome: str, **more: Any) -> list[dict[str, Any]]:
        """Answer every `Evict` so far; gives the results."""
        results = []
        same = ("apiVersion", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
        for command in list(self.evicts[cluster]):
            result = {name: command[name] for name in same} | {"kind": "EvictionResult", "outcome": outcome, **more}
            self.raw(cluster, "results", result)
            results.append(result)
        return results

    def _take(self) -> None:
        """Write what the partition has to write."""
        written, self.outbox = self.outbox, Outbox()
        self.rows |= {key: value for key, value in written.rows.items() if value is not None}
        self.rows = {key: value for key, value in self.rows.items() if written.rows.get(key, value) is not None}
        self.decisions += [json.loads(message.value) for message in written.messages.get("decisions", ())]
        for message in written.messages.get("commands", ()):
            command = json.loads(message.value)
            if command["action"] == "Evict":
                self.evicts[command["cluster"]].append(command)

    def held(self) -> dict[tuple[str, str], int]:
        return {brake: part.count for brake, part in self.logic.held_back().items()}

    def issued(self, cluster: str) -> dict[str, list[float]]:
        """When each pod of a cluster was evicted, by its UID."""
        found: dict[str, list[float]] = {}
        for one in self.evicts[cluster]:
            found.setdefault(one["podUid"], []).append((instant_us(one["issuedAt"]) - NOON_US) / SECOND_US)
        return found

    def deadlines(self) -> collections.Counter[tuple[str, str]]:
        """The multiset of pods and deadlines of the first attempts."""
        first = [one for each in self.evicts.values() for one in each if one["attempt"] == 1]
        return collections.Counter((one["podUid"], one["deadline"]) for one in first)


def test_a_brake_holds_its_cluster_and_no_other() -> None:
    braked, free = Braked(), Braked()
    braked.brake(clusters=["held"])
    for world in (braked, free):
        world.run(25)
    assert braked.issued("held") == {}
    assert braked.issued("free") == free.issued("free")
    assert braked.held() == {("b1", "held"): PODS}


@pytest.mark.parametrize("kills", [False, True], ids=["", "a worker is killed before"])
@pytest.mark.parametrize("how", ["released", "ends by itself"])
def test_after_its_end_every_owed_pod_goes_once_spread(kills: bool, how: str) -> None:  # noqa: FBT001 - a case
    world, plain = Braked(), Braked()
    ends = {"endsAt": instant_text(NOON_US + 60 * SECOND_US)} if how != "released" else {}
    world.run(5)
    if kills:
        world.die()
    world.brake(clusters=["held"], **ends)
    world.run(60)
    if kills:
        world.die()
    if how == "released":
        world.brake(clusters=["held"], releasedBy="ben")
    world.run(65)
    if kills:
        world.die()
    world.run(60 + SPREAD + 1)
    issued = world.issued("held")
    assert {uid: len(times) for uid, times in issued.items()} == {f"held-p{number}": 1 for number in range(PODS)}
    times = sorted(at for (at,) in issued.values())
    assert 60 <= times[0] < 63
    assert 77 < times[-1] <= 80
    assert max(later - before for before, later in itertools.pairwise(times)) < 5
    plain.run(81)
    assert world.deadlines() == plain.deadlines()
    assert world.issued("free") == plain.issued("free"), "not later for another cluster"
    assert world.held() == {}


def test_what_is_held_is_counted_while_its_cluster_is_forgotten() -> None:
    world = Braked()
    world.brake(clusters=["held"])
    for number in range(3 * PODS_IN_SLICE):
        meta = {"namespace": "x", "name": f"more{number}", "uid": f"more{number}"}
        world.put("held", "pods", "Pod", meta, {"nodeName": "n"})
    world.run(20)
    assert world.held() == {("b1", "held"): PODS + 3 * PODS_IN_SLICE}
    value = json.dumps({"cluster": "held", "type": "FORGET"}).encode()
    forget = FakeRecord(world.offset + 1, world.now_us // 1000, b"held", value)
    counted = [world.held() for _ in world.logic.apply("nodes", [forget], world.outbox)]
    assert len(counted) > 3
    assert world.held() == {}


def test_what_was_held_says_so_in_its_decision() -> None:
    world = Braked()
    world.brake(clusters=["held"])
    world.run(20)
    world.brake(clusters=["held"], releasedBy="ben")
    world.run(50)
    told = {(one["cluster"], one.get("heldBy")) for one in world.decisions if one["decision"] == "Issued"}
    assert told == {("held", "b1"), ("free", None)}


def test_a_removed_brake_spreads_nothing() -> None:
    world = Braked()
    world.brake()
    world.run(20)
    world.brakes = world.brakes.with_record(b"b1", None, world.now_us // 1000)
    world.run(20 + 2 * LOOK_AGAIN_US / SECOND_US)
    assert sum(map(len, world.evicts.values())) == 2 * PODS


def test_one_of_two_brakes_is_not_enough() -> None:
    world = Braked()
    world.brake("b1", clusters=["held"])
    world.brake("b2", namespaces=["x"], clusters=["held"])
    world.run(20)
    (first,) = {brake for brake, _ in world.held()}
    world.brake(first, clusters=["held"], releasedBy="ben", spreadSeconds=0)
    world.run(40)
    assert (world.issued("held"), world.held()) == ({}, {("b2" if first == "b1" else "b1", "held"): PODS})


def test_what_an_executor_holds_goes_with_the_brake() -> None:
    world = Braked()
    world.run(20)
    world.brake(zones=["z"], clusters=["held"])
    world.answer("held", "Accepted", heldBy="b1")
    world.run(25)
    assert world.held() == {("b1", "held"): PODS}
    world.brake(zones=["z"], clusters=["held"], releasedBy="ben")
    world.run(25 + SPREAD + 1)
    assert {len(times) for times in world.issued("held").values()} == {2}
    assert world.held() == {}


def test_another_reason_that_no_brake_holds_is_seen_at_once() -> None:
    """Two taints of the same time: the first one is the reason, and the deadline stays when it goes."""
    world = Braked()
    world.taint("held", "dead", "maintenance")
    world.brake(taints=["dead"], clusters=["held"])
    world.run(20)
    assert world.held() == {("b1", "held"): PODS}
    world.taint("held", "maintenance")
    world.run(20.1)
    assert (world.held(), len(world.issued("held"))) == ({}, PODS)


def test_a_held_eviction_that_is_cancelled_is_forgotten() -> None:
    world = Braked()
    world.brake()
    world.run(20)
    world.taint("held")
    world.run(21)
    assert world.held() == {("b1", "free"): PODS}
    assert set(world.logic.firing.held.by_cluster) == {"free"}
