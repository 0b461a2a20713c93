"""What signals do to the clusters of one partition: heartbeats, complete listings, reports of queues, forgetting.

A signal is about a whole cluster. One that changes many nodes goes through them node by node, and what it changes is
written when it is whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.models.eviction import PODS_IN_SLICE, STALE, forget_slices, unlisted_node_slices, unlisted_pod_slices
from evictstream.models.instants import MILLISECOND_US
from evictstream.models.messages.signals import AcceptGap, Forget, Heartbeat, Listed, QueueReport, Signal
from evictstream.streams.engine.core.logic import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evictstream.models.eviction import NodeAggregate
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.engine.core.timers import TimerHeap
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.firing import Firing
    from evictstream.streams.partition.step_effects import StepEffects

LISTED_PODS_PER_COST = 100  # to look whether this many pods are listed takes as long as one usual decision


class SignalSteps:
    """Applies signals to the clusters of one partition."""

    __slots__ = ("_clusters", "_config", "_effects", "_firing", "_nodes", "_timers")

    def __init__(
        self,
        config: PartitionConfig,
        nodes: dict[bytes, NodeAggregate],
        clusters: Clusters,
        *,
        timers: TimerHeap,
        effects: StepEffects,
        firing: Firing,
    ) -> None:
        """`nodes` are all of the partition, by the keys of their timers; those of a forgotten cluster are dropped."""
        self._config = config
        self._nodes = nodes
        self._clusters = clusters
        self._timers = timers
        self._effects = effects
        self._firing = firing

    def apply(self, signal: Signal, topic: str, record: Record, outbox: Outbox) -> Iterator[Part]:
        """Apply one and count what became of it; yields the parts of a long one, but the last."""
        appended_at_us, on_nodes = record.timestamp * MILLISECOND_US, topic == self._config.nodes_topic
        outcome = "signal"
        match signal:
            case Heartbeat():
                counts = self._clusters.heartbeat(
                    signal, on_nodes=on_nodes, appended_at_us=appended_at_us, outbox=outbox
                )
                outcome = "signal" if counts else "foreign"
            case Listed():
                if self._clusters.admit(signal, appended_at_us, outbox):
                    yield from self._remove_unlisted(signal, record.offset, outbox, on_nodes=on_nodes)
                else:
                    outcome = "foreign"
            case QueueReport():
                outcome = self._clusters.report(signal, appended_at_us, outbox)
                self._wake_observed(signal.cluster, appended_at_us)
            case Forget():
                yield from self._forget(signal, record, outbox)
            case AcceptGap(cluster=cluster):
                self._clusters.accept_gap(cluster, outbox)
            case _:
                pass  # bookmarks and unbound pods change no state
        self._effects.counts[outcome] += 1

    def _wake_observed(self, cluster: str, at_us: int) -> None:
        """Decide again about what was only observed: an executor that acts has reported (semantics.md 12.8)."""
        for key, uid in self._effects.issued.observed_of(cluster):
            self._timers.push((at_us, key, uid))

    def _remove_unlisted(self, listed: Listed, offset: int, outbox: Outbox, *, on_nodes: bool) -> Iterator[Part]:
        """Remove, node by node, the objects that a complete listing does not hold."""
        slices = unlisted_node_slices if on_nodes else unlisted_pod_slices
        counts, rules = self._config.counters.unlisted, self._config.rules.of(listed.cluster)
        for aggregate in list(self._clusters.named(listed.cluster).nodes.values()):
            if listed.covers(aggregate.name):
                for changes in slices(aggregate, listed, rules):
                    counts["newer" if changes is STALE else "removed"] += 1
                    self._effects.put_aside(changes, aggregate, outbox)
                    yield Part(offset, PODS_IN_SLICE if on_nodes else 1, is_last=False)
                yield Part(offset, 1 + len(aggregate.pods) // LISTED_PODS_PER_COST, is_last=False)
        self._effects.end_step(outbox)

    def _forget(self, forget: Forget, record: Record, outbox: Outbox) -> Iterator[Part]:
        cluster = self._clusters.named(forget.cluster)
        for name in list(cluster.nodes):
            node = cluster.nodes.pop(name, None)
            if node is None:  # while other tasks ran, a timer dropped the last that it remembered
                continue
            del self._nodes[node.timer_key]
            if self._effects.held.by_cluster:  # what counts them may look between two slices
                for uid in node.pods:
                    self._effects.held.note(cluster.name, (node.timer_key, uid), None)
            for changes in forget_slices(node, forget.at_us, self._config.rules.usual):
                self._effects.put_aside(changes, node, outbox)
                yield Part(record.offset, PODS_IN_SLICE, is_last=False)
        self._effects.end_step(outbox)
        cluster.forget_pods()
        self._firing.waiting_for_feed.pop(cluster.name, None)
        self._effects.pending.pop(cluster.name, None)
        self._effects.levels.pop(cluster.name, None)
        self._effects.guarding.left(cluster.name)
        self._clusters.forget(cluster.name, record.timestamp * MILLISECOND_US, outbox)
