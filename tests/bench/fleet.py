"""Made-up clusters: their nodes and pods as trimmed watch events, ready to be written in bulk.

A pod's event has some 600 bytes, as the feed writes it. Markers are pods on a tainted node of their own in a cluster of
each partition: a new one is answered with a `Schedule` at once, so it tells when everything before it was read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import instant_text
from evictstream.streams.partitioner import partition_of
from tests.harness.cluster_names import clusters_apart

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
    b'"metadata":{"name":"%b","uid":"%b","resourceVersion":"%d"%b},'
    b'"spec":{"taints":[%b]},"status":{"conditions":[{"type":"Ready","status":"%b"}]}}}'
)
_OWNED: Final = (
    b',"labels":{"pod-template-hash":"7c5ddbdf54"},'
    b'"ownerReferences":[{"kind":"ReplicaSet","name":"%b","uid":"%b","controller":true}]'
)
_LABELS: Final = 30  # of a node: what clouds, kubelets and discovery of features give it
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
    """A node with its cluster, which is the key of its records, and where these belong."""

    name: bytes
    cluster: bytes
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
    """Nodes with equally many pods each, spread over clusters. Remembers nothing but the next resource version."""

    def __init__(
        self, *, nodes: int, pods_per_node: int, partitions: int, clusters: Sequence[str] | None = None
    ) -> None:
        """Take the names of the clusters; without them there is one for each partition, so that all are used."""
        names = clusters or clusters_apart(partitions)
        self.nodes = tuple(
            _node(f"node-{number:05d}", names[number % len(names)], partitions) for number in range(nodes)
        )
        self.pods = tuple(
            make_pod(f"checkout-{node.cluster[-9:].decode():x>9}-{number:05d}-{node.name[-5:].decode()}", node)
            for node in self.nodes
            for number in range(pods_per_node)
        )
        self.version = 182_000_000
        self._markers = tuple(_node("marker-node", name, partitions) for name in clusters_apart(partitions))
        self._marked = 0

    def node_events(
        self,
        nodes: Iterable[Node],
        *,
        tainted: bool,
        at_us: int | None = None,
        taint: str = UNREACHABLE,
        labelled: bool = False,
    ) -> Iterator[Entry]:
        """Tell of nodes, observed at one time; without it, now. `labelled` gives them as many labels as real ones."""
        for number, node in enumerate(nodes):
            labels = _labels(number, node) if labelled else b""
            at = now_us() if at_us is None else at_us
            yield self.node_event(node, tainted=tainted, at_us=at, taint=taint, labels=labels)

    def node_event(
        self, node: Node, *, tainted: bool, at_us: int, taint: str = UNREACHABLE, labels: bytes = b""
    ) -> Entry:
        """Tell of a node, healthy or with a taint."""
        at = instant_text(at_us).encode()
        taints = _TAINT % (taint.encode(), at) if tainted else b""
        ready = b"Unknown" if tainted else b"True"
        uid = b"6c1f-" + node.name
        values = (node.cluster, b"MODIFIED", at, node.name, uid, self._next(), labels, taints, ready)
        return Entry(node.partition, node.cluster, _NODE % values)

    def pod_events(
        self, pods: Iterable[Pod], kind: bytes, *, seconds: int = 300, whole: Rest = TRIMMED
    ) -> Iterator[Entry]:
        """Tell of pods that tolerate an unreachable node for some seconds."""
        at_us = now_us()
        for pod in pods:
            yield self.pod_event(pod, kind, seconds=seconds, at_us=at_us, whole=whole)

    def owned_pod_events(
        self, pods: Sequence[Pod], kind: bytes, *, per_owner: int, seconds: int = 300
    ) -> Iterator[Entry]:
        """Tell of pods in the order of their names, as the API server lists them; so many have one owner."""
        at_us = now_us()
        for number, pod in enumerate(sorted(pods)):
            owner = f"checkout-{number // per_owner:09d}"
            metadata = _OWNED % (owner.encode(), make_pod(owner, pod.node).uid.encode())
            whole = Rest(metadata, b',"priority":0', b"")
            yield self.pod_event(pod, kind, seconds=seconds, at_us=at_us, whole=whole)

    def pod_event(self, pod: Pod, kind: bytes, *, seconds: int, at_us: int, whole: Rest = TRIMMED) -> Entry:
        """Tell of one pod, with what else a whole object has, if that is given."""
        at = instant_text(at_us).encode()
        tolerations = _TOLERATIONS % seconds
        node = pod.node
        head = (node.cluster, kind, at, pod.name.encode(), NAMESPACE.encode(), pod.uid.encode())
        values = (*head, self._next(), whole.metadata, node.name, tolerations, whole.spec, whole.status)
        return Entry(node.partition, node.cluster, _POD % values)

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


def _labels(number: int, node: Node) -> bytes:
    """Make labels: some of all nodes, some of a zone, one of the node's own."""
    shared = b",".join(b'"feature.node.kubernetes.io/cpu-model.%d":"%d"' % (one, one * 7) for one in range(_LABELS - 2))
    own = b'"kubernetes.io/hostname":"%b","topology.kubernetes.io/zone":"zone-%d"' % (node.name, number % 3)
    return b',"labels":{%b,%b}' % (shared, own)


def now_us() -> int:
    """Give the wall clock in microseconds since 1970."""
    return time.time_ns() // 1000


def _node(name: str, cluster: str, partitions: int) -> Node:
    return Node(name.encode(), cluster.encode(), partition_of(cluster.encode(), partitions))


def make_pod(name: str, node: Node) -> Pod:
    """Make a pod of that name. It has its own UID as long as the last 27 characters of the name are."""
    # As long as the UIDs of Kubernetes.
    return Pod(name, f"67a4d0c2-{name[-27:]:0>27}", node)
