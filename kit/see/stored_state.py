"""The rows of a service as a worker reads them, kept for looking: nothing is decided, nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evictstream.models.eviction import NodeAggregate
from evictstream.models.eviction.cluster import ClusterState
from evictstream.models.eviction.loading import RowLoader
from evictstream.models.eviction.node_standing import known_nodes
from evictstream.streams.partition.clusters import Clusters
from evictstream.streams.worker.stored_rows import ENGINE_KEYS


class StoredNode(NamedTuple):
    """A node with its pods, and what of its cluster and partition decides whether evictions are issued.

    Attributes:
        aggregate: the node; its `node` is None where only its pods are known, or earlier nodes of its name.
        cluster: heartbeats of the feed, and the newest report of the executor.
        has_gap: whether input of its partition expired unread.
    """

    aggregate: NodeAggregate
    cluster: ClusterState
    has_gap: bool


class StoredCluster(NamedTuple):
    """A cluster with its nodes.

    Attributes:
        name: of it.
        partition: the number of the partition that it lives in.
        state: what its signals have changed.
        nodes: by name; nodes that are gone are among them while something of them is remembered.
        has_gap: whether input of its partition expired unread.
    """

    name: str
    partition: int
    state: ClusterState
    nodes: dict[str, NodeAggregate]
    has_gap: bool


def count_known_nodes(aggregates: Iterable[NodeAggregate], clusters: Clusters) -> None:
    """Count the nodes of each cluster, as the worker does that owns the partition: policies ask for it."""
    by_cluster: dict[str, list[NodeAggregate]] = {}
    for aggregate in aggregates:
        by_cluster.setdefault(aggregate.cluster, []).append(aggregate)
    for cluster, nodes in by_cluster.items():
        known = known_nodes(nodes, clusters.named(cluster).state.history)
        for node in nodes:
            node.known = known


class StoredState:
    """All rows that were read so far; later ones replace earlier ones, so a follower goes on with `load`."""

    def __init__(self) -> None:
        self._loaders: dict[int, RowLoader] = {}
        self._clusters: dict[int, Clusters] = {}

    def load(self, partition: int, key: bytes, value: bytes | None) -> None:
        """Take one row over; None deletes. Raises `RowError` for a row of another version."""
        if key in ENGINE_KEYS:
            return
        if partition not in self._loaders:
            self._loaders[partition], self._clusters[partition] = RowLoader(), Clusters()
        if not self._clusters[partition].load(key, value):
            self._loaders[partition].load(key, value)

    def nodes(self) -> Iterator[StoredNode]:
        """Yield all nodes of all clusters of which something is kept."""
        for partition, loader in self._loaders.items():
            clusters = self._clusters[partition]
            has_gap = clusters.gap is not None
            count_known_nodes(loader.aggregates.values(), clusters)
            for aggregate in loader.aggregates.values():
                if not aggregate.is_empty:
                    yield StoredNode(aggregate, clusters.named(aggregate.cluster).state, has_gap)

    def clusters(self) -> list[StoredCluster]:
        """List the clusters with nodes, pods or a feed that is heard, by name."""
        found: dict[str, StoredCluster] = {}
        for partition, clusters in self._clusters.items():
            nodes: dict[str, dict[str, NodeAggregate]] = {}
            for aggregate in self._loaders[partition].aggregates.values():
                if not aggregate.is_empty:
                    nodes.setdefault(aggregate.cluster, {})[aggregate.name] = aggregate
            heard = [one.name for one in clusters.by_key.values() if one.state.is_heard]
            for name in {*nodes, *heard}:
                state = clusters.named(name).state
                found[name] = StoredCluster(
                    name=name,
                    partition=partition,
                    state=state,
                    nodes=nodes.get(name, {}),
                    has_gap=clusters.gap is not None,
                )
        return [found[name] for name in sorted(found)]

    def cluster_names(self) -> list[str]:
        """List the names of those clusters."""
        return [cluster.name for cluster in self.clusters()]
