"""A partition with one cluster of several nodes, under a policy with a guard."""

from __future__ import annotations

import collections
import dataclasses
import json
from typing import Any

from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.incident import Incident, decode_incident
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.models.steering.incidents import OpenIncident
from evictstream.models.steering.policies import NO_POLICIES
from evictstream.streams.engine.core.outbox import Message, Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.harness.plans import one_partition
from tests.streams.partition.test_held import SPREAD, Braked
from tests.streams.worker.story import NOON_US, FakeRecord

NODES = 10
STAY_SECONDS = 300
THREE = {"count": 3, "withinSeconds": 600}
GUARD: dict[str, Any] = {"guard": THREE}
ALL = range(NODES)


def in_zone(zone: str) -> dict[str, str]:
    """Return the labels of a node of a zone; of one without a zone for an empty name."""
    return {"topology.kubernetes.io/zone": zone} if zone else {}


class Storm(Braked):
    """Each node has a pod that tolerates all taints for 300 s, and one that tolerates none."""

    def __init__(self, nodes: int = NODES, **spec: Any) -> None:
        self.now_us = NOON_US
        self.brakes, self.policies = NO_BRAKES, NO_POLICIES
        self.evicts = collections.defaultdict(list)
        self.decisions, self.rows, self.offset = [], {}, 0
        self.published: dict[str, Incident | None] = {}
        self.last: dict[str, list[Message]] = {}
        self.config = dataclasses.replace(
            one_partition(lambda: self.now_us), brakes=lambda: self.brakes, policies=lambda: self.policies
        )
        self.logic, self.outbox = EvictionPartition(0, self.config), Outbox()
        self.revision = 0
        self.spec = spec
        for number in range(nodes):
            self.node(number)
            self.pod(f"stays-{number}", number, STAY_SECONDS)
            self.pod(f"goes-{number}", number)
        if spec:
            self.apply(spec)
        self.run(0.1)

    def apply(self, spec: dict[str, Any], *answers: dict[str, Any], **more: Any) -> None:
        self.revision += 1
        self.policy(revision=self.revision, spec=spec, answers=answers, **more)

    def node(self, number: int, *keys: str, zone: str = "a", **spec: Any) -> None:
        meta: dict[str, Any] = {"name": f"n{number}", "uid": f"n{number}", "labels": in_zone(zone)}
        taints = [{"key": key, "effect": "NoExecute"} for key in keys]
        self.put("lab", "nodes", "Node", meta, {"taints": taints, **spec})

    def pod_gone(self, name: str, number: int) -> None:
        """Tell that a pod of a node is deleted."""
        meta = {"namespace": "x", "name": name, "uid": name, "resourceVersion": str(self.offset + 100)}
        pod = {"kind": "Pod", "metadata": meta, "spec": {"nodeName": f"n{number}"}}
        self.raw("lab", "pods", {"cluster": "lab", "type": "DELETED", "object": pod})

    def pod(self, name: str, number: int, seconds: int | None = None, owner: str = "") -> None:
        """Add a pod to a node that tolerates all taints for so long; None for not at all, negative for ever.

        `owner` is its controller, as `Kind/name`; empty for none.
        """
        toleration = (
            {"operator": "Exists"}
            if seconds is None or seconds < 0
            else {"operator": "Exists", "tolerationSeconds": seconds}
        )
        spec = {"nodeName": f"n{number}", "tolerations": [] if seconds is None else [toleration]}
        meta: dict[str, Any] = {"namespace": "x", "name": name, "uid": name}
        if owner:
            kind, _, of = owner.partition("/")
            meta["ownerReferences"] = [{"kind": kind, "name": of, "controller": True}]
        self.put("lab", "pods", "Pod", meta, spec)

    def delete(self, number: int) -> None:
        meta = {"name": f"n{number}", "uid": f"n{number}", "resourceVersion": str(self.offset + 100)}
        self.raw("lab", "nodes", {"cluster": "lab", "type": "DELETED", "object": {"kind": "Node", "metadata": meta}})

    def storm(self, numbers: range | list[int], key: str = "agent", zone: str = "a") -> None:
        """Taint nodes at one instant, all in records that are applied before anything fires."""
        self.offset += 1
        entries = []
        for number in numbers:
            self.offset += 1
            meta: dict[str, Any] = {"name": f"n{number}", "uid": f"n{number}", "labels": in_zone(zone)}
            meta["resourceVersion"] = str(self.offset + 100)
            spec = {"taints": [{"key": key, "effect": "NoExecute"}]}
            value = {"cluster": "lab", "type": "MODIFIED", "object": {"kind": "Node", "metadata": meta, "spec": spec}}
            entries.append(FakeRecord(self.offset, self.now_us // 1000, b"lab", json.dumps(value).encode()))
        collections.deque(self.logic.apply("nodes", entries, self.outbox), maxlen=0)
        self._take()

    def incidents(self) -> tuple[OpenIncident, ...]:
        return self.logic._clusters.named("lab").state.incidents

    def answer_incident(self, verdict: str, *, seconds: float | None = None, incident: str | None = None) -> None:
        """Write the answer of a person, as the next revision of the policy."""
        answer: dict[str, Any] = {
            "incident": incident or self.incidents()[0].id,
            "verdict": verdict,
            "why": "w",
            "by": "anna",
            "answeredAt": "2026-01-01T00:00:00Z",
        }
        if seconds is not None:
            answer["expiresAt"] = instant_text(self.now_us + round(seconds * SECOND_US))
        self.apply(self.spec, answer)

    def publish(self) -> None:
        for _ in self.logic.published.turn(self.now_us, self.outbox):
            pass
        self.last = dict(self.outbox.messages)
        for message in self.sent("incidents"):
            value = message.value
            self.published[message.key.decode()] = decode_incident(value) if value else None
        self._take()

    def sent(self, topic: str) -> list[Message]:
        """What was sent to a topic in the last turn of publishing."""
        return list(self.last.get(topic, ()))

    def gone(self) -> dict[str, float]:
        """When each pod was evicted first, seconds, by its UID."""
        return {uid: times[0] for uid, times in self.issued("lab").items()}


def names(kind: str, numbers: range | list[int]) -> set[str]:
    return {f"{kind}-{number}" for number in numbers}


__all__ = ["ALL", "GUARD", "NODES", "SPREAD", "STAY_SECONDS", "THREE", "Storm", "names"]
