"""A partition, and what it has published of its clusters."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from evictstream.models.instants import instant_us
from evictstream.models.messages.fleet import FleetCluster, FleetLevel, decode_fleet_cluster, decode_fleet_level
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.faults.simulated.published import impossible
from tests.harness.counted import evictions_anew, nodes_anew
from tests.harness.plans import one_partition, taken_over
from tests.streams.worker.story import NOON_US, SECOND_US, FakeRecord

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
