"""All that is kept about one node and the pods on it: the aggregate.

The step functions change it in place; for the most frequent event the service's fast path does. It says the same as
its rows: `loading.RowLoader` builds an equal one from them after a restart.
"""

from collections import Counter
from collections.abc import Collection
from typing import Protocol

from evictstream.models.eviction.state import DeletionMemory, Eviction, NodeState, PodState
from evictstream.models.steering.node_counts import KnownNodes

# From this many pods on, a node has an index by address, in which each new pod is looked up. It costs a tenth of the
# pods' memory; with fewer pods a search takes some microseconds. Kubernetes supports 110 pods on a node.
INDEXED_PODS = 256


class PodCounts(Protocol):
    """Counts the pods of a cluster by owner (`workloads.py`, `losing_owners.py`)."""

    def put(self, aggregate: "NodeAggregate", pod: PodState) -> None:
        """Count a pod as it is now; it is not counted."""

    def drop(self, pod: PodState) -> None:
        """Count a pod no longer; it is as when it was counted."""

    def moved(self, aggregate: "NodeAggregate", pod: PodState, before: Eviction | None) -> None:
        """Take note that the eviction of a pod is another one now than before."""

    def look_at(self, aggregate: "NodeAggregate", uids: Collection[str]) -> None:
        """Take note that something else of leaving pods has changed."""

    def left(self, node: str, memory: DeletionMemory, by: int) -> None:
        """Count a pod of a node that has left and is remembered from now on (1), or no longer (-1)."""


class NodeAggregate:
    """One node with its pods, and the earlier nodes and deleted pods that are remembered.

    Attributes:
        cluster: the cluster's id.
        name: the node's name.
        key: `<cluster>/<node>`, which its rows contain.
        timer_key: the same in UTF-8; one object, so that all timers of a node share it.
        node: the node, None while it is not known or deleted.
        earlier_nodes: deleted or replaced nodes of this name, by UID.
        pods: the pods on it by UID.
        deleted_pods: deleted pods by UID, in the order in which they may be forgotten.
        orphans: evictions whose pod's row is not loaded yet; empty except during a restart.
        purge_at_us: the earliest wake-up that is set for forgetting UIDs; in memory only.
        first_ordinal: ordinal of the first eviction of a pod that is new here: 0, except in a cluster that was once
            forgotten with all its rows. There the caller sets a number above all ordinals used before, so that no
            `evictionId` is used again.
        addresses: the nodes of all pods of the cluster, by address; shared by its nodes.
        known: how many nodes its cluster has, for policies; shared by its nodes; None if no policy asks.
        workloads: the owners of all pods of the cluster, shared by its nodes; None if they are not counted.
        counted_node: its state when it was counted (`levels.py`); in memory only, as the next.
        counted_as: its standing in the counts of its cluster.
        counted_in: the zone in whose counts it is; empty for none.
        left: since when the newest taint of each key is there, and how many deleted pods have left for it; None if
            they are not counted (`leaving_pods.py`). In memory only.
    """

    __slots__ = (
        "_by_address",
        "addresses",
        "cluster",
        "counted_as",
        "counted_in",
        "counted_node",
        "deleted_pods",
        "earlier_nodes",
        "first_ordinal",
        "key",
        "known",
        "left",
        "name",
        "node",
        "orphans",
        "pods",
        "purge_at_us",
        "timer_key",
        "workloads",
    )

    def __init__(
        self,
        cluster: str,
        name: str,
        first_ordinal: int = 0,
        addresses: "dict[str, NodeAggregate] | None" = None,
        known: KnownNodes | None = None,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.key = f"{cluster}/{name}"
        self.timer_key = self.key.encode()
        self.first_ordinal = first_ordinal
        self.node: NodeState | None = None
        self.earlier_nodes: dict[str, DeletionMemory] = {}
        self.pods: dict[str, PodState] = {}
        self.deleted_pods: dict[str, DeletionMemory] = {}
        self.orphans: dict[str, Eviction] = {}
        self.purge_at_us: int | None = None
        self.addresses: dict[str, NodeAggregate] = {} if addresses is None else addresses
        self.known = known
        self.counted_node: NodeState | None = None
        self.counted_as = 0
        self.counted_in = ""
        self.left: tuple[dict[str, int], Counter[str]] | None = None
        self.workloads: PodCounts | None = None
        self._by_address: dict[str, PodState] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, so that the caller may drop it."""
        return not (self.pods or self.deleted_pods or self.earlier_nodes or self.orphans) and self.node is None

    @property
    def next_purge_us(self) -> int | None:
        """When the first of the remembered UIDs may be forgotten; None if none is remembered."""
        first = next(iter(self.deleted_pods.values()), None)
        remembered = self.earlier_nodes.values() if first is None else (first, *self.earlier_nodes.values())
        return min((memory.until_us for memory in remembered), default=None)

    def pod_at(self, address: str) -> PodState | None:
        """Find the pod on this node that has an address (`<namespace>/<name>`) now."""
        if self.addresses.get(address) is not self:
            return None
        if len(self.pods) < INDEXED_PODS:
            return next((pod for pod in self.pods.values() if pod.address == address), None)
        if self._by_address is None:
            self._by_address = {pod.address: pod for pod in self.pods.values()}
        return self._by_address.get(address)

    def put_pod(self, pod: PodState) -> None:
        """Add a pod. Its address must be free."""
        self.pods[pod.uid] = pod
        self.addresses[pod.address] = self
        self.count(pod)
        if self._by_address is not None:
            self._by_address[pod.address] = pod

    def count(self, pod: PodState) -> None:
        """Count a pod among those of its owner."""
        if self.workloads is not None:
            self.workloads.put(self, pod)

    def discount(self, pod: PodState) -> None:
        """Count a pod no longer: it goes, or its owner or exemptions change, and it is counted again then."""
        if self.workloads is not None:
            self.workloads.drop(pod)

    def drop_pod(self, pod: PodState) -> None:
        """Remove a pod."""
        self.discount(pod)
        del self.pods[pod.uid]
        if self.addresses.get(pod.address) is self:
            del self.addresses[pod.address]
        if self._by_address is not None and self._by_address.get(pod.address) is pod:
            del self._by_address[pod.address]
