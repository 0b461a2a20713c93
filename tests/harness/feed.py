"""A feed of a made-up cluster: watch events with growing resource versions, to the right partitions."""

from __future__ import annotations

import json
from typing import Any, Self

from kafka import KafkaProducer

from evictstream.streams.settings import Settings

FOREVER = None


def taint(key: str = "lab", value: str = "", effect: str = "NoExecute", **more: object) -> dict[str, object]:
    """Make a taint."""
    return {"key": key, "value": value, "effect": effect, **more}


def tolerates(seconds: float | None = FOREVER, key: str = "lab") -> dict[str, object]:
    """Make a toleration for a key, for some seconds or forever."""
    toleration: dict[str, object] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


class Feed:
    """Sends changes of one cluster. Remembers nothing but the next resource version."""

    def __init__(self, settings: Settings, cluster: str = "lab") -> None:
        self.settings = settings
        self.cluster = cluster
        self.version = 1000
        self._producer = KafkaProducer(
            bootstrap_servers=settings.bootstrap_servers, acks="all", linger_ms=5, max_request_size=4_000_000
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close()

    def node(
        self,
        name: str,
        *taints: dict[str, object],
        event_type: str = "MODIFIED",
        uid: str | None = None,
        ready: str = "True",
        version: int | None = None,
        labels: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Tell of a node."""
        obj: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": uid or f"node-{name}",
                "resourceVersion": str(version or self._next()),
                "labels": labels,
            },
            "spec": {"taints": list(taints)},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }
        return self.event(self.settings.nodes_topic, event_type, obj)

    def pod(
        self,
        node: str,
        name: str,
        *tolerations: dict[str, object],
        event_type: str = "ADDED",
        uid: str | None = None,
        version: int | None = None,
        phase: str = "Running",
        **metadata: object,
    ) -> dict[str, Any]:
        """Tell of a pod on a node."""
        obj: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": "lab",
                "name": name,
                "uid": uid or f"pod-{name}",
                "resourceVersion": str(version or self._next()),
                **metadata,
            },
            "spec": {"nodeName": node, "tolerations": list(tolerations)},
            "status": {"phase": phase},
        }
        return self.event(self.settings.pods_topic, event_type, obj)

    def event(self, topic: str, event_type: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Send one watch event; returns it, to be sent again by `raw`."""
        event = {"cluster": self.cluster, "type": event_type, "object": obj}
        self.raw(topic, self.cluster.encode(), json.dumps(event).encode())
        return event

    def signal(self, event_type: str, *, topics: tuple[str, ...], cluster: str | None = None, **more: object) -> None:
        """Send a signal to some topics."""
        cluster = cluster or self.cluster
        value = json.dumps({"cluster": cluster, "type": event_type, **more}).encode()
        for topic in topics:
            self.raw(topic, cluster.encode(), value)
        self.flush()

    def heartbeat(self) -> None:
        """Say that the feed is alive, on nodes and pods."""
        self.signal("HEARTBEAT", topics=(self.settings.nodes_topic, self.settings.pods_topic))

    def result(self, command: dict[str, Any], outcome: str, reason: str = "") -> None:
        """Answer a command as an executor."""
        same = ("apiVersion", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
        ours = {"kind": "EvictionResult", "outcome": outcome, "reason": reason}
        value = {name: command[name] for name in same} | ours
        self.raw(self.settings.results_topic, command["cluster"].encode(), json.dumps(value).encode())
        self.flush()

    def raw(self, topic: str, key: bytes | None, value: bytes | None, partition: int | None = None) -> None:
        """Send any record."""
        self._producer.send(topic, key=key, value=value, partition=partition).add_errback(self._failed)

    def flush(self) -> None:
        """Wait until all is written."""
        self._producer.flush(timeout=30)

    def _failed(self, error: BaseException) -> None:
        raise AssertionError(error)

    def _next(self) -> int:
        self.version += 1
        return self.version
