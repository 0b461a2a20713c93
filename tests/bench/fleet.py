"""A made-up cluster: its nodes and pods as trimmed watch events, ready to be written in bulk.

A pod's event has some 600 bytes, as the feed writes it. Markers are pods on a tainted node of their own in each
partition: a new one is answered with a `Schedule` at once, so it tells when everything before it was read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from evictstream.models.instants import instant_text
from evictstream.streams.partitioner import partition_of

CLUSTER: Final = "bench-eu-1"
NAMESPACE: Final = "payments"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNTOLERATED: Final = "example.com/on-fire"  # a key that no pod here tolerates
MARKER_SECONDS: Final = 86_400  # longer than any run: a marker is never due

_POD: Final = (
    b'{"cluster":"%b","type":"%b","observedAt":"%b","object":{"kind":"Pod","apiVersion":"v1",'
    b'"metadata":{"name":"%b","namespace":"%b","uid":"%b","resourceVersion":"%d"%b},'
    b'"spec":{"nodeName":"%b","tolerations":[%b]%b},"status":{"phase":"Running"%b}}}'
)
_NODE: Final = (
    b'{"cluster":"%b","type":"%b","observedAt":"%b","object":{"kind":"Node","apiVersion":"v1",'
    b'"metadata":{"name":"%b","uid":"%b","resourceVersion":"%d"},'
    b'"spec":{"taints":[%b]},"status":{"conditions":[{"type":"Ready","status":"%b"}]}}}'
)
_TAINT: Final = b'{"key":"%b","effect":"NoExecute","timeAdded":"%b"}'
# What admission gives every pod, after one of its own that matters to nobody here.
_TOLERATIONS: Final = (
    b'{"effect":"NoSchedule","key":"example.com/dedicated","operator":"Equal","value":"payments"},'
    b'{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},'
    b'{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":%d}'
)


class Entry(NamedTuple):
    """One record to be written."""

    partition: int
    key: bytes
    value: bytes


class Node(NamedTuple):
    """A node and where its records belong."""

    name: bytes
    key: bytes
    partition: int


class Pod(NamedTuple):
    """A pod and its node."""

    name: str
    uid: str
    node: Node


class Rest(NamedTuple):
    """JSON members that a whole object has beyond those in use, each with a comma before it, for its three parts."""

    metadata: bytes
    spec: bytes
    status: bytes


TRIMMED: Final = Rest(b"", b"", b"")


class Markers(NamedTuple):
    """A marker for each partition: the records, and the names of the pods that are answered."""

    entries: list[Entry]
    pods: list[str]


class Fleet:
    """Nodes with equally many pods each, of one cluster. Remembers nothing but the next resource version."""

    def __init__(self, *, nodes: int, pods_per_node: int, partitions: int, cluster: str = CLUSTER) -> None:
        self.cluster = cluster.encode()
        self.nodes = tuple(_node(f"node-{number:05d}", partitions, cluster) for number in range(nodes))
        self.pods = tuple(
            make_pod(f"checkout-{cluster[-9:]:x>9}-{number:05d}-{node.name[-5:].decode()}", node)
            for node in self.nodes
            for number in range(pods_per_node)
        )
        self.version = 182_000_000
        self._markers = _one_node_per_partition(partitions)
        self._marked = 0

    def node_events(
        self, nodes: Iterable[Node], *, tainted: bool, at_us: int | None = None, taint: str = UNREACHABLE
    ) -> Iterator[Entry]:
        """Tell of nodes, observed at one time; without it, now."""
        for node in nodes:
            yield self.node_event(node, tainted=tainted, at_us=now_us() if at_us is None else at_us, taint=taint)

    def node_event(self, node: Node, *, tainted: bool, at_us: int, taint: str = UNREACHABLE) -> Entry:
        """Tell of a node, healthy or with a taint."""
        at = instant_text(at_us).encode()
        taints = _TAINT % (taint.encode(), at) if tainted else b""
        ready = b"Unknown" if tainted else b"True"
        uid = b"6c1f-" + node.name
        values = (self.cluster, b"MODIFIED", at, node.name, uid, self._next(), taints, ready)
        return Entry(node.partition, node.key, _NODE % values)

    def pod_events(self, pods: Iterable[Pod], kind: bytes, *, seconds: int = 300) -> Iterator[Entry]:
        """Tell of pods that tolerate an unreachable node for some seconds."""
        at_us = now_us()
        for pod in pods:
            yield self.pod_event(pod, kind, seconds=seconds, at_us=at_us)

    def pod_event(self, pod: Pod, kind: bytes, *, seconds: int, at_us: int, whole: Rest = TRIMMED) -> Entry:
        """Tell of one pod, with what else a whole object has, if that is given."""
        at = instant_text(at_us).encode()
        tolerations = _TOLERATIONS % seconds
        node = pod.node
        head = (self.cluster, kind, at, pod.name.encode(), NAMESPACE.encode(), pod.uid.encode())
        values = (*head, self._next(), whole.metadata, node.name, tolerations, whole.spec, whole.status)
        return Entry(node.partition, node.key, _POD % values)

    def marker_nodes(self) -> Iterator[Entry]:
        """Tell of the nodes that markers stand on."""
        return self.node_events(self._markers, tainted=True)

    def markers(self) -> Markers:
        """Make one new marker for each partition."""
        self._marked += 1
        names = [f"marker-{self._marked}-{node.partition}" for node in self._markers]
        pods = [make_pod(name, node) for name, node in zip(names, self._markers, strict=True)]
        return Markers(list(self.pod_events(pods, b"ADDED", seconds=MARKER_SECONDS)), names)

    def _next(self) -> int:
        self.version += 1
        return self.version


def now_us() -> int:
    """Give the wall clock in microseconds since 1970."""
    return time.time_ns() // 1000


def _node(name: str, partitions: int, cluster: str = CLUSTER) -> Node:
    key = f"{cluster}/{name}".encode()
    return Node(name.encode(), key, partition_of(key, partitions))


def make_pod(name: str, node: Node) -> Pod:
    """Make a pod of that name. It has its own UID as long as the last 27 characters of the name are."""
    # As long as the UIDs of Kubernetes.
    return Pod(name, f"67a4d0c2-{name[-27:]:0>27}", node)


def _one_node_per_partition(partitions: int) -> tuple[Node, ...]:
    found: dict[int, Node] = {}
    number = 0
    while len(found) < partitions:
        node = _node(f"marker-node-{number}", partitions)
        found.setdefault(node.partition, node)
        number += 1
    return tuple(found[partition] for partition in range(partitions))
