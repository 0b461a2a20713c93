"""The clusters of one partition, with their rows and the row of its gap; `models.eviction.cluster` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from evictstream.models.eviction.cluster import (
    NO_STATE,
    Cluster,
    ClusterState,
    EpochBegun,
    Gap,
    admit,
    capped,
    gap_of,
    heartbeat,
    reported,
)
from evictstream.models.steering.node_counts import KnownNodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.eviction.executor_queue import ExecutorQueue
    from evictstream.models.messages.signals import Heartbeat, Listed, QueueReport
    from evictstream.models.steering.incidents import OpenIncident
    from evictstream.streams.engine.core.outbox import Outbox

CLUSTER_PREFIX = b"cluster\x00"
GAP_KEY = b"gap"

_gaps: Final = msgspec.json.Decoder(Gap)
_states: Final = msgspec.json.Decoder(ClusterState)


class Clusters:
    """Keeps clusters that have a node, or a state of their own, and the gap.

    Attributes:
        by_key: the clusters by the key of their records.
        gap: input that expired unread and was neither listed again nor accepted.
    """

    __slots__ = ("_counts_workloads", "_on_epoch", "by_key", "gap")

    def __init__(
        self, on_epoch: Callable[[EpochBegun], None] = lambda _: None, *, counts_workloads: bool = False
    ) -> None:
        """`on_epoch` is told of each epoch that a cluster begins; `counts_workloads` counts owners of pods."""
        self._on_epoch = on_epoch
        self._counts_workloads = counts_workloads
        self.by_key: dict[bytes, Cluster] = {}
        self.gap: Gap | None = None

    def load(self, key: bytes, value: bytes | None) -> bool:
        """Load a row of a cluster or of the gap; returns `False` for any other row."""
        if key == GAP_KEY:
            self.gap = _gaps.decode(value) if value is not None else None
            return True
        if not key.startswith(CLUSTER_PREFIX):
            return False
        name = key[len(CLUSTER_PREFIX) :].decode()
        if value is None:
            self.by_key.pop(name.encode(), None)
        else:
            self.keep(self.named(name)).state = _states.decode(value)
        return True

    def named(self, name: str) -> Cluster:
        """Return the cluster of this name; a new one is not kept yet."""
        return self.by_key.get(name.encode()) or Cluster(name, counts_workloads=self._counts_workloads)

    def keep(self, cluster: Cluster) -> Cluster:
        """Keep a cluster from now on."""
        return self.by_key.setdefault(cluster.key, cluster)

    def drop_empty(self, cluster: Cluster, outbox: Outbox) -> None:
        """Drop a cluster of which nothing is left: else memory would grow with every name that ever was.

        Nothing waits in the queue of an executor when no node is left.
        """
        cluster.known = KnownNodes(None)
        if cluster.state.queue is not None or cluster.state.history is not None:
            self._write(cluster.name, msgspec.structs.replace(cluster.state, queue=None, history=None), outbox)
        if cluster.is_empty:
            self.by_key.pop(cluster.key, None)

    def nodes(self) -> Iterator[NodeAggregate]:
        """Yield the nodes of all clusters."""
        for cluster in self.by_key.values():
            yield from cluster.nodes.values()

    def silent(self, older_than_us: int) -> Iterator[Cluster]:
        """Yield the clusters whose feed sends heartbeats, but none on nodes, or none on pods, since `older_than_us`."""
        return (cluster for cluster in self.by_key.values() if cluster.state.is_silent(older_than_us))

    def admit(self, signal: Heartbeat | Listed, appended_at_us: int, outbox: Outbox) -> bool:
        """Take in a feed's signal; returns whether it counts."""
        return self._take(signal, admit(self.named(signal.cluster).state, signal, appended_at_us), outbox)

    def heartbeat(self, signal: Heartbeat, *, on_nodes: bool, appended_at_us: int, outbox: Outbox) -> bool:
        """Take in that a feed is alive and, if it says so, has listed all; returns whether the heartbeat counts."""
        state = self.named(signal.cluster).state
        following = heartbeat(state, signal, on_nodes=on_nodes, appended_at_us=appended_at_us)
        counts = self._take(signal, following, outbox)
        if counts and self.gap is not None:
            self._set_gap(self.gap.after_listing(signal, on_nodes=on_nodes), outbox)
        return counts

    def report(self, report: QueueReport, appended_at_us: int, outbox: Outbox) -> str:
        """Take in what waits in the queue of an executor; returns what became of it, for counting."""
        cluster = self.named(report.cluster)
        if appended_at_us <= cluster.state.forgotten_at_us:
            return "forgotten"
        if not cluster.nodes:  # nothing was issued: it makes no row for a cluster that may not exist
            return "stale"
        self._write(cluster.name, reported(cluster.state, report, appended_at_us), outbox)
        return "signal"

    def queues(self, reported_since_us: int) -> dict[str, ExecutorQueue]:
        """Return what executors have reported since then, by cluster."""
        return {
            cluster.name: cluster.state.queue
            for cluster in self.by_key.values()
            if cluster.state.queue is not None and cluster.state.queue.reported_at_us > reported_since_us
        }

    def unreported(self) -> set[str]:
        """Return the clusters of which no executor has reported."""
        return {cluster.name for cluster in self.by_key.values() if cluster.state.queue is None}

    def forget(self, cluster: str, appended_at_us: int, outbox: Outbox) -> None:
        """Make all earlier records of a cluster void, heartbeats included; what is published has to be taken back."""
        before = self.named(cluster).state
        state = ClusterState(
            forgotten_at_us=appended_at_us,
            published=before.published,
            published_zones=before.published_zones,
            published_incidents=before.published_incidents,
        )
        self._write(cluster, state, outbox)
        self.named(cluster).known = KnownNodes(None)
        self.accept_gap(cluster, outbox)

    def published(self, cluster: Cluster, sequence: int, zones: tuple[str, ...], outbox: Outbox) -> None:
        """Keep the sequence of a cluster's newest record on the fleet's topics, and of which zones records stand there.

        The sequence is 0 once none stands there.
        """
        state = msgspec.structs.replace(cluster.state, published=sequence, published_zones=zones)
        self._write(cluster.name, state, outbox)
        if cluster.is_empty:
            self.by_key.pop(cluster.key, None)

    def keep_incidents(self, cluster: Cluster, incidents: tuple[OpenIncident, ...], outbox: Outbox) -> None:
        """Keep the incidents of a cluster."""
        self._write(cluster.name, msgspec.structs.replace(cluster.state, incidents=incidents), outbox)

    def published_incidents(self, cluster: Cluster, ids: tuple[str, ...], outbox: Outbox) -> None:
        """Keep of which incidents of a cluster records stand on their topic."""
        self._write(cluster.name, msgspec.structs.replace(cluster.state, published_incidents=ids), outbox)
        if cluster.is_empty:
            self.by_key.pop(cluster.key, None)

    def count_nodes(self) -> None:
        """Count the nodes of all clusters, once their rows are loaded."""
        for cluster in self.by_key.values():
            cluster.count_nodes()

    def keep_history(self, name: str, outbox: Outbox) -> None:
        """Write what of earlier counts of a cluster's nodes a new owner has to know."""
        cluster = self.named(name)
        if cluster.known.is_changed:
            cluster.known.saved()
            history = cluster.known.history()
            self._write(cluster.name, msgspec.structs.replace(cluster.state, history=history), outbox)

    def begin_history(self, cluster: Cluster, now_us: int, outbox: Outbox) -> None:
        """Keep what a policy may ask of earlier counts of a cluster's nodes, from now on."""
        cluster.known.begin_history(now_us)
        self.keep_history(cluster.name, outbox)

    def end_history(self, cluster: Cluster, outbox: Outbox) -> None:
        """Keep it no longer: no policy asks for it."""
        cluster.known.end_history()
        self._write(cluster.name, msgspec.structs.replace(cluster.state, history=None), outbox)

    def open_gap(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Hold evictions back until each cluster with nodes has been listed again, or its gap is accepted."""
        gap = gap_of(lost, {cluster.name for cluster in self.by_key.values() if cluster.nodes}, now_us)
        if gap is not None:
            self._set_gap(gap, outbox)

    def accept_gap(self, cluster: str, outbox: Outbox) -> None:
        """Let evictions wait for a cluster's listing no longer: an operator accepts the loss."""
        if self.gap is not None:
            self._set_gap(self.gap.without(cluster), outbox)

    def cap_times(self, latest_us: int, present_us: int, outbox: Outbox) -> None:
        """Let every kept time that is later than `latest_us` be of now: it lies in the future."""
        for cluster in list(self.by_key.values()):
            self._write(cluster.name, capped(cluster.state, latest_us, present_us), outbox)
            cluster.known.cap_times(latest_us, present_us)
            self.keep_history(cluster.name, outbox)

    def _take(self, signal: Heartbeat | Listed, following: ClusterState | None, outbox: Outbox) -> bool:
        if following is None:
            return False
        if following.epoch > self.named(signal.cluster).state.epoch:
            self._on_epoch(EpochBegun(signal.cluster, following.epoch, following.uid, signal.at_us))
        self._write(signal.cluster, following, outbox)
        return True

    def _write(self, name: str, state: ClusterState, outbox: Outbox) -> None:
        cluster = self.named(name)
        if state != cluster.state:
            self.keep(cluster).state = state
            outbox.put(CLUSTER_PREFIX + name.encode(), msgspec.json.encode(state) if state != NO_STATE else None)

    def _set_gap(self, gap: Gap | None, outbox: Outbox) -> None:
        if gap != self.gap:
            self.gap = gap
            outbox.put(GAP_KEY, msgspec.json.encode(gap) if gap is not None else None)
