"""Nodes, pods and watch events as Kubernetes and a feed write them, trimmed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
Mover: TypeAlias = Callable[[list[Json], str, int], tuple[Json, list[Json]]]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
MIRROR = "kubernetes.io/config.mirror"
VERSIONS_IN_ZONE: Final = 5
OUTCOMES: Final = ("Accepted", "Succeeded", "Gone", "Failed", "Obsolete", "Refused", "Observed")
"""All that an executor may answer."""
_OF_COMMAND: Final = ("evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")


def instant(at_us: int) -> str:
    """Write an instant as RFC 3339 with microseconds."""
    return (EPOCH + dt.timedelta(microseconds=at_us)).isoformat().replace("+00:00", "Z")


@dataclasses.dataclass(slots=True)
class Node:
    """A node as the cluster has it now.

    Attributes:
        zone: empty for none; None for another one now and then.
    """

    cluster: str
    name: str
    uid: str
    taints: list[Json] = dataclasses.field(default_factory=list)
    ready: str | None = "True"
    zone: str | None = None

    @property
    def key(self) -> bytes:
        """Key of its records: its cluster's."""
        return self.cluster.encode()

    def shown(self, version: int) -> Json:
        """Give the object as the API server does."""
        conditions = [] if self.ready is None else [{"type": "Ready", "status": self.ready}]
        labels = _labelled(_zone_at(version) if self.zone is None else self.zone)
        return {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "uid": self.uid, "resourceVersion": str(version), **labels},
            "spec": {"taints": list(self.taints)} if self.taints else {},
            "status": {"conditions": conditions},
        }


def _zone_at(version: int) -> str:
    """Let a node be in one of two zones or in none, now here, now there; no other draw of a plan changes by that."""
    zone = version // VERSIONS_IN_ZONE % 3
    return f"z{zone}" if zone else ""


def _labelled(zone: str) -> Json:
    return {"labels": {"topology.kubernetes.io/zone": zone}} if zone else {}


OWNER_CHARACTERS = 2
"""Of its name, which name the controller of a pod: so some pods have the same."""


@dataclasses.dataclass(slots=True)
class Pod:
    """A pod as the cluster has it now.

    Attributes:
        node: empty while it is not bound.
        moved_by: moves its seconds into an annotation; gets tolerations, UID and version. None leaves them.
        owner: name of its controller, empty for none; None for the first characters of its own.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    node: str
    tolerations: list[Json] = dataclasses.field(default_factory=list)
    phase: str = "Running"
    deleted_at: str | None = None
    is_mirror: bool = False
    moved_by: Mover | None = None
    owner: str | None = None

    @property
    def key(self) -> bytes:
        """Key of its records: its cluster's."""
        return self.cluster.encode()

    def shown(self, version: int) -> Json:
        """Give the object as the API server does."""
        metadata: Json = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
            "resourceVersion": str(version),
        }
        if self.deleted_at is not None:
            metadata["deletionTimestamp"] = self.deleted_at
        metadata["ownerReferences"] = controlled_by(self.name[:OWNER_CHARACTERS] if self.owner is None else self.owner)
        annotations: Json = {}
        tolerations = list(self.tolerations)
        if self.moved_by is not None:
            annotations, tolerations = self.moved_by(self.tolerations, self.uid, version)
        if self.is_mirror:
            annotations[MIRROR] = "1"
        if annotations:
            metadata["annotations"] = annotations
        spec: Json = {"tolerations": tolerations}
        if self.node:
            spec["nodeName"] = self.node
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": self.phase}}


def controlled_by(owner: str) -> list[Json]:
    """Give the owner references of a pod; none without a name."""
    return [{"kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}] if owner else []


def watch_event(cluster: str, kind: str, shown: Json | None, observed_at_us: int | None, **more: object) -> bytes:
    """Write a watch event; without `observed_at_us` the append time counts. `more` are fields of the contract."""
    event: Json = {"cluster": cluster, "type": kind, **more}
    if observed_at_us is not None:
        event["observedAt"] = instant(observed_at_us)
    if shown is not None:
        event["object"] = shown
    return json.dumps(event).encode()


def report(cluster: str, read_to: str) -> bytes:
    """Write what an executor reports of its queue: the latest `issuedAt` that it has read."""
    return json.dumps(
        {
            "apiVersion": "evictstream.io/v1",
            "kind": "ExecutorReport",
            "cluster": cluster,
            "executor": "played",
            "waiting": 1,
            "readTo": read_to,
        }
    ).encode()


def result(
    command: Mapping[str, object],
    outcome: str,
    observed_at_us: int | None = None,
    *,
    reason: str = "",
    held_by: str | None = None,
) -> bytes:
    """Write an executor's answer to a command; without `observed_at_us` the append time counts."""
    answer: Json = {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionResult",
        **{name: command[name] for name in _OF_COMMAND},
        "outcome": outcome,
    }
    if held_by is not None:
        answer["heldBy"] = held_by
    if reason:
        answer["reason"] = reason
    if observed_at_us is not None:
        answer["observedAt"] = instant(observed_at_us)
    return json.dumps(answer).encode()
