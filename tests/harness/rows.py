"""State of a service whose workers are not running: made by the logic of partitions, written into the changelog."""

from __future__ import annotations

import collections
import json
from typing import NamedTuple

from kafka import KafkaProducer

from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import partition_config

NOON_US = 1_795_262_400_000_000
SECOND_US = 1_000_000


class FakeRecord(NamedTuple):
    """A consumed record."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes


class State:
    """All partitions of a service; each event comes a second after the one before, the first at noon."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        plan = partition_config(settings, 2_000_000)
        self.partitions = [EvictionPartition(number, plan) for number in range(settings.partitions)]
        self.outboxes = [Outbox() for _ in self.partitions]
        self._count = 0

    def partition_of(self, cluster: str) -> int:
        """The number of the partition that a cluster lives in."""
        return partition_of(cluster.encode(), len(self.partitions))

    def node(
        self, cluster: str, name: str, *taints: dict[str, object], event_type: str = "ADDED", zone: str | None = None
    ) -> None:
        """A node with taints, in a zone."""
        self._count += 1
        labels = {"topology.kubernetes.io/zone": zone}
        meta = {"name": name, "uid": f"node-{name}", "resourceVersion": str(self._count), "labels": labels}
        obj = {"kind": "Node", "metadata": meta, "spec": {"taints": taints}}
        self._apply(self.settings.nodes_topic, cluster, event_type, object=obj)

    def pod(
        self,
        cluster: str,
        node: str,
        name: str,
        seconds: int = 300,
        event_type: str = "ADDED",
        *,
        namespace: str = "x",
        more: int | None = None,
    ) -> None:
        """A pod that tolerates every taint for so long; the spec has `more`, if a policy has moved the seconds."""
        self._count += 1
        meta: dict[str, object] = {"namespace": namespace, "name": name, "uid": name}
        meta["resourceVersion"] = str(self._count)
        toleration: dict[str, object] = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        if more is None:
            del toleration["effect"]
        else:
            moved = json.dumps([toleration | {"builtInSeconds": seconds + more}])
            meta["annotations"] = {"evictstream.io/tolerations": moved}
            toleration["tolerationSeconds"] = seconds + more
        spec = {"nodeName": node, "tolerations": [toleration]}
        obj = {"kind": "Pod", "metadata": meta, "spec": spec}
        self._apply(self.settings.pods_topic, cluster, event_type, object=obj)

    def heartbeat(self, cluster: str, **on_nodes: object) -> None:
        """The feed of a cluster is heard on both topics."""
        self._apply(self.settings.nodes_topic, cluster, "HEARTBEAT", **on_nodes)
        self._apply(self.settings.pods_topic, cluster, "HEARTBEAT")

    def forget(self, cluster: str) -> None:
        """An operator has had a cluster forgotten."""
        self._apply(self.settings.nodes_topic, cluster, "FORGET")

    def gap(self, number: int, **lost: int) -> None:
        """Records of topics have expired unread."""
        self.partitions[number].gap_found(lost, NOON_US, self.outboxes[number])

    def write(self) -> None:
        """Write the rows, as workers would have."""
        producer = KafkaProducer(bootstrap_servers=self.settings.bootstrap_servers, acks="all", linger_ms=5)
        for number, outbox in enumerate(self.outboxes):
            for key, value in outbox.rows.items():
                producer.send(self.settings.changelog_topic, key=key, value=value, partition=number)
            outbox.rows.clear()
        producer.flush(30)
        producer.close()

    def result(self, cluster: str, outcome: str) -> None:
        """An executor answers the newest command."""
        command = json.loads(self.outboxes[self.partition_of(cluster)].messages[self.settings.commands_topic][-1].value)
        same = ("apiVersion", "evictionId", "attempt", "namespace", "pod", "podUid", "node")
        answer = {name: command[name] for name in same} | {"kind": "EvictionResult", "outcome": outcome}
        self._take(self.settings.results_topic, cluster, answer)

    def _apply(self, topic: str, cluster: str, event_type: str, **more: object) -> None:
        self._take(topic, cluster, {"type": event_type, **more})

    def _take(self, topic: str, cluster: str, value: dict[str, object]) -> None:
        self._count += 1
        at_ms = (NOON_US + self._count * SECOND_US) // 1000
        text = json.dumps({"cluster": cluster, **value}).encode()
        record = FakeRecord(self._count, at_ms, cluster.encode(), text)
        number = self.partition_of(cluster)
        collections.deque(self.partitions[number].apply(topic, [record], self.outboxes[number]), maxlen=0)
