"""A short story of one partition without Kafka: events at known seconds, and the metrics that follow."""

from __future__ import annotations

import collections
import dataclasses
import json
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.partitions import Partitions
from evictstream.streams.engine.core.waits import WaitKind, WorkerWaits
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.settings import Settings
from evictstream.streams.worker.metrics import WorkerMetrics
from evictstream.streams.worker.served_partition import ServedPartition
from evictstream.streams.worker.snapshot import PartitionView, Snapshot
from evictstream.streams.worker.watchdog import Watchdog, wait_limits
from tests.harness.plans import one_partition
from tests.streams.worker.fakes import FakeBrakes, FakePolicies

NOON_US = 1_795_262_400_000_000
SECOND_US = 1_000_000
TAINT = {"key": "lab", "effect": "NoExecute"}


class FakeRecord(NamedTuple):
    """A consumed record."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes


class FakePartitions:
    """What metrics read of the engine."""

    def __init__(self) -> None:
        self.transaction_seconds = Histogram((0.01, 0.1))
        self.waits = WorkerWaits()
        self.takeovers = 3
        self.failures = 1


class Story:
    """One partition, which gets events at seconds after noon."""

    def __init__(self) -> None:
        self.now_us = NOON_US
        self.brakes, self.policies = FakeBrakes(), FakePolicies()
        self.config = dataclasses.replace(
            one_partition(lambda: self.now_us),
            brakes=lambda: self.brakes.brakes,
            policies=lambda: self.policies.policies,
        )
        self.logic = EvictionPartition(0, self.config)
        self.outbox = Outbox()
        self.offset = 0
        self.views: tuple[PartitionView, ...] = ()
        self.engine = FakePartitions()
        self.ages = dict.fromkeys(WaitKind, 0.0)

    def event(self, at: float, topic: str, event_type: str, obj: dict[str, Any]) -> None:
        value = json.dumps({"cluster": "lab", "type": event_type, "object": obj}).encode()
        self.raw(at, topic, value)

    def raw(self, at: float, topic: str, value: bytes, key: bytes = b"lab") -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        record = FakeRecord(self.offset, self.now_us // 1000, key, value)
        collections.deque(self.logic.apply(topic, [record], self.outbox), maxlen=0)

    def node(self, at: float, *taints: dict[str, str]) -> None:
        meta = {"name": "n", "uid": "node", "resourceVersion": str(self.offset + 100)}
        self.event(at, "nodes", "MODIFIED", {"kind": "Node", "metadata": meta, "spec": {"taints": taints}})

    def pod(self, at: float, name: str, seconds: int | None, event_type: str = "ADDED", **more: object) -> None:
        meta = {"namespace": "x", "name": name, "uid": name, "resourceVersion": str(self.offset + 100), **more}
        tolerations = [] if seconds is None else [{"operator": "Exists", "tolerationSeconds": seconds}]
        spec = {"nodeName": "n", "tolerations": tolerations}
        self.event(at, "pods", event_type, {"kind": "Pod", "metadata": meta, "spec": spec})

    def heartbeat(self, at: float) -> None:
        self._signal(at, "HEARTBEAT", "nodes", "pods")

    def forget(self, at: float) -> None:
        self._signal(at, "FORGET", "nodes")

    def _signal(self, at: float, event_type: str, *topics: str) -> None:
        value = json.dumps({"cluster": "lab", "type": event_type}).encode()
        for topic in topics:
            self.raw(at, topic, value)

    def result(self, at: float, outcome: str, *, attempt: int | None = None, place: int = -1) -> None:
        """Answer a command as an executor, the newest by default; `attempt` instead of its own."""
        command = json.loads(self.outbox.messages["commands"][place].value)
        same = ("apiVersion", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
        value = {name: command[name] for name in same} | {"kind": "EvictionResult", "outcome": outcome}
        if attempt is not None:
            value["attempt"] = attempt
        self.raw(at, "results", json.dumps(value).encode())

    def fire(self, at: float) -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.logic.fire(self.now_us, 100, self.outbox)

    def metrics(self) -> WorkerMetrics:
        """Make the worker's metrics as they are now."""
        return WorkerMetrics(
            counters=self.config.counters,
            partitions=cast("Partitions[ServedPartition]", self.engine),
            watchdog=Watchdog(lambda _: self.ages, wait_limits(Settings()), print),
            snapshot=lambda: Snapshot(is_settled=True, partitions=self.views),
            brakes=self.brakes,
            policies=self.policies,
            inputs={"nodes": "nodes", "pods": "pods", "results": "results"},
            partition_count=8,
            version="1.2.3",
            clock=SimpleNamespace(monotonic=lambda: 0.0, now_us=lambda: self.now_us),
        )

    def scrape(self) -> dict[tuple[str, ...], float]:
        """Give values by name and label values, these in the order of the labels' names."""
        registry = CollectorRegistry()
        registry.register(self.metrics())
        return {
            (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(generate_latest(registry).decode())
            for sample in family.samples
        }
