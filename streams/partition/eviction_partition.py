"""The logic of one partition: records change its clusters, and each change makes rows and messages.

All state about a cluster is here: its nodes with their taints, their pods, their evictions. Records that cannot
be read become dead letters, records without news cost a look-up and write nothing. `firing.py` handles the timers,
`signal_steps.py` what is about whole clusters.

After a takeover the rows are loaded and the inputs are read to their end. Then every pod of every node with a
`NoExecute` taint is decided anew before anything may fire.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeVar

from evictstream.models.eviction import (
    PODS_IN_SLICE,
    STALE,
    NodeAggregate,
    NodeEvent,
    Origin,
    PodEvent,
    ResultEvent,
    RowKind,
    RowLoader,
    RuleParameters,
    apply_pod,
    apply_result,
    decide_all_slices,
    end_elsewhere,
    node_slices,
    weight_of,
)
from evictstream.models.instants import MILLISECOND_US
from evictstream.models.messages.decoding import (
    decode_pod_record,
    read_decoded_pod,
    read_node_record,
    read_result_record,
)
from evictstream.models.messages.events import node_name_of
from evictstream.models.messages.signals import Signal
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import EventType
from evictstream.streams.engine.core.logic import SLICE_COST, Part
from evictstream.streams.engine.core.timers import TimerHeap
from evictstream.streams.partition.clusters import Clusters
from evictstream.streams.partition.dead_letters import (
    ELSEWHERE,
    TOO_LARGE,
    TOO_MUCH,
    UNDECIDABLE_OBJECT,
    WRONG_PARTITION,
)
from evictstream.streams.partition.fast_path import LARGE_BYTES, FastPath
from evictstream.streams.partition.firing import Firing, wanted_wakeups
from evictstream.streams.partition.future_times import FutureTimes
from evictstream.streams.partition.overdue import open_evictions
from evictstream.streams.partition.published import PublishedFleet
from evictstream.streams.partition.record_sizes import SHARE, fitting
from evictstream.streams.partition.signal_steps import SignalSteps
from evictstream.streams.partition.step_effects import StepEffects
from evictstream.streams.partitioner import partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from evictstream.models.eviction import Changes
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.messages.plain_pods import PlainPodWatch
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.overdue import Overdue, Waiting

    Event = NodeEvent | PodEvent | ResultEvent
    E = TypeVar("E", bound=Event)

# A record that is no larger, nor larger than a quarter of its topics' limit, makes no row or message too large.
SUSPECT_BYTES = 65_536
POD_ROWS = f"{RowKind.POD}\0".encode()  # what the keys of most rows begin with


class EvictionPartition:
    """State of one partition number; implements the engine's `PartitionLogic` and the worker's `ServedPartition`.

    Attributes:
        firing: its timers, and what waits for a silent feed.
        published: what of its clusters anyone may read.
    """

    def __init__(
        self, partition: int, config: PartitionConfig, *, brokers_now_us: Callable[[], int] = lambda: 0
    ) -> None:
        """`brokers_now_us` reads the brokers' clock (microseconds), 0 while it is not known."""
        self.partition = partition
        self._times = FutureTimes(
            partition,
            now_us=config.now_us,
            skew_us=config.clock_skew_us,
            brokers_now_us=brokers_now_us,
            on_capped=config.on_future_times,
        )
        self._config = config
        self._counters = config.counters
        self._suspect_bytes = min(SUSPECT_BYTES, config.record_limit_bytes // SHARE)
        self._loader = RowLoader()
        self._nodes: dict[bytes, NodeAggregate] = {}  # by the keys of their timers
        self._clusters = Clusters(config.on_epoch, counts_workloads=config.workloads_topic is not None)
        self._fast_path = FastPath(self._clusters.by_key, config.limits, self._suspect_bytes)
        self._timers = TimerHeap(lambda: wanted_wakeups(self._nodes), lean_floor=config.lean_floor)
        self._effects = StepEffects(partition, config, self._timers, self._clusters)
        self.firing = Firing(config, self._nodes, self._clusters, timers=self._timers, effects=self._effects)
        self._signals = SignalSteps(
            config,
            self._nodes,
            self._clusters,
            timers=self._timers,
            effects=self._effects,
            firing=self.firing,
        )
        self.published = PublishedFleet(config, self._clusters, self._effects.levels, self.firing)

    def load(self, key: bytes, value: bytes | None) -> None:
        """Load one row of the changelog."""
        if key.startswith(POD_ROWS) or not self._clusters.load(key, value):
            self._loader.load(key, value)

    def loaded(self) -> None:
        """Build what follows from the rows: the indexes, the timers, the counts by cluster."""
        evictions: list[tuple[NodeAggregate, str]] = []
        for node in self._loader.aggregates.values():
            if node.is_empty:
                continue
            self._clusters.keep(self._clusters.named(node.cluster)).add(node)
            self._nodes[node.timer_key] = node
            uids = open_evictions(node)
            self._effects.load(node, uids)
            self._effects.pending[node.cluster] += len(uids)
            evictions += [(node, uid) for uid in uids]
        self._loader = RowLoader()  # its indexes are needed no more
        self._clusters.count_nodes()
        self._timers.rebuild()
        self._effects.issued.load(evictions)

    def apply(self, topic: str, records: Iterable[Record], outbox: Outbox) -> Iterator[Part]:
        """Apply records of one input in offset order, most of the pods topic by the fast path."""
        records = self._times.believed(topic, records)
        if topic == self._config.pods_topic:
            apply_other = functools.partial(self._apply_record, topic, outbox)
            yield from self._fast_path.apply(records, outbox, self._counters.of_input(topic), apply_other)
            return
        for record in records:
            yield from self._apply_record(topic, outbox, record)

    def _apply_record(
        self, topic: str, outbox: Outbox, record: Record, decoded: PlainPodWatch | None = None
    ) -> Iterator[Part]:
        """Apply a record whatever it is; `decoded` is what it says, if that is known."""
        self._effects.counts = self._counters.of_input(topic)  # another input may have been applied since
        cost = SLICE_COST if len(record.value or b"") > LARGE_BYTES else 1
        try:
            event = self._read(topic, record, decoded)
        except Unreadable as error:
            self._effects.add_dead_letter(topic, record, outbox, reason=error.reason, detail=error.detail)
        else:
            if not self._is_here(record.key or b""):
                self._effects.add_dead_letter(topic, record, outbox, reason=WRONG_PARTITION, detail=ELSEWHERE)
                yield Part(record.offset + 1, cost)
                return
            cost += yield from self._step(event, topic, record, outbox)
        yield Part(record.offset + 1, cost)

    def _read(self, topic: str, record: Record, decoded: PlainPodWatch | None) -> Event | Signal:
        key, value, appended_at_us = record.key, record.value, record.timestamp * MILLISECOND_US
        origin, limits = Origin(topic, self.partition, record.offset), self._config.limits
        if topic == self._config.pods_topic:
            return read_decoded_pod(decoded or decode_pod_record(value, limits), key, appended_at_us, origin, limits)
        read = read_node_record if topic == self._config.nodes_topic else read_result_record
        return read(key, value, appended_at_us, origin, limits)

    def _is_here(self, key: bytes) -> bool:
        """Whether this is the partition of a cluster, whose records would part in a wrong one; known ones are here."""
        return key in self._clusters.by_key or partition_of(key, self._config.partitions) == self.partition

    def _step(self, event: Event | Signal, topic: str, record: Record, outbox: Outbox) -> Generator[Part, None, int]:
        """Apply an event to its aggregate, unless it is refused; yields all parts but the last, returns its cost."""
        if isinstance(event, Signal):
            yield from self._signals.apply(event, topic, record, outbox)
            return 0
        admitted = self._admit(event, record, outbox)
        if admitted is None:
            return 0
        cluster, node, event = admitted
        rules = self._config.rules.of(cluster.name)
        slices: Iterator[Changes] = iter(())
        cost = 0
        if isinstance(event, PodEvent):
            changes = self._apply_pod(cluster, node, event, outbox, rules=rules)
            pod = node.pods.get(event.pod.uid)
            if pod is not None:
                cost = weight_of(node.node, pod)
        elif isinstance(event, NodeEvent):
            slices = node_slices(node, event, rules, cluster.has_ready_since)
            changes = next(slices)
            if (node.node is not None and node.node.taints) or len(changes.rows) > 1:
                cost = min(len(node.pods), PODS_IN_SLICE)  # it may have decided about all of them
        else:
            changes = apply_result(node, event, rules)
        self._effects.counts[changes.effect._value_] += 1
        if changes.rows and node.timer_key not in self._nodes:
            self._nodes[node.timer_key] = node
            self._clusters.keep(cluster).nodes[node.name] = node
            self._effects.see_new(cluster, outbox)
        self._effects.put_part(changes, node, outbox)
        while not changes.is_last:
            yield Part(record.offset, PODS_IN_SLICE, is_last=False)
            changes = next(slices)
            self._effects.put_part(changes, node, outbox)
        if self._effects.held.by_cluster and changes.rows:
            uids = (event.pod.uid,) if isinstance(event, PodEvent) else node.pods
            self._effects.held.look_again(cluster.name, node.timer_key, uids)
        return cost

    def _apply_pod(
        self, cluster: Cluster, node: NodeAggregate, event: PodEvent, outbox: Outbox, *, rules: RuleParameters
    ) -> Changes:
        """Apply a change of a pod; the one that had its name on another node has ended."""
        seen, opened = event.pod, 0
        if seen.uid not in node.pods and event.type is not EventType.DELETED:
            other = cluster.addresses.get(f"{seen.namespace}/{seen.name}")
            if other is not None and other is not node:
                earlier = other.pods.get(seen.uid)
                opened = 0 if earlier is None else earlier.opened
                ended = end_elsewhere(other, event, rules)
                if ended is STALE:
                    return STALE
                self._effects.put(ended, other, outbox)
        return apply_pod(node, event, rules, opened)

    def _admit(self, event: E, record: Record, outbox: Outbox) -> tuple[Cluster, NodeAggregate, E] | None:
        """Return the event's cluster and node, new ones if unknown, and the event without what no record can hold.

        `None` if the event is refused: its rows would be too large, or it is stale or forgotten.
        """
        topic = event.origin.topic
        if len(record.value or b"") > self._suspect_bytes:
            fit = fitting(event, self._config.record_limit_bytes)
            if fit is None:
                self._effects.add_dead_letter(topic, record, outbox, reason=UNDECIDABLE_OBJECT, detail=TOO_LARGE)
                return None
            event = fit
        cluster = self._clusters.named((record.key or b"").decode())
        if not isinstance(event, ResultEvent):
            if event.is_undecidable and event.type is not EventType.DELETED:
                # Whether it is new does not count: after a crash the topics may be read in another order.
                self._effects.add_dead_letter(topic, record, outbox, reason=UNDECIDABLE_OBJECT, detail=TOO_MUCH)
            if isinstance(event, PodEvent) and event.pod.is_annotation_unreadable:
                self._counters.unreadable_annotations += 1
            if event.epoch < cluster.state.epoch:
                self._effects.counts["stale"] += 1
                return None
        if record.timestamp * MILLISECOND_US <= cluster.state.forgotten_at_us:
            self._effects.counts["forgotten"] += 1
            return None
        name = node_name_of(event)
        return cluster, cluster.nodes.get(name) or cluster.new_node(name), event

    def caught_up(self, now_us: int, outbox: Outbox) -> Iterator[Part]:
        """Decide every pod anew: the inputs are read to the end that they had at takeover."""
        self._effects.held.limits.begin(now_us)
        rules, latest_us = self._config.rules, self._times.latest_us()
        if latest_us is not None:
            self._clusters.cap_times(latest_us, self._times.present_us(), outbox)
        for aggregate in list(self._nodes.values()):
            for changes in decide_all_slices(aggregate, now_us, rules.of(aggregate.cluster), latest_us=latest_us):
                self._effects.put_part(changes, aggregate, outbox)
                yield Part(0, PODS_IN_SLICE, is_last=False)

    def known_nodes(self) -> Iterable[NodeAggregate]:
        """Return all nodes of all clusters; to be read, not to be changed."""
        return self._nodes.values()

    def known_node(self, cluster: str, node: str) -> NodeAggregate | None:
        """Return a node of a cluster; to be read, not to be changed."""
        return self._clusters.named(cluster).nodes.get(node)

    def next_due_at_us(self) -> int | None:
        """When to fire next."""
        return self.firing.next_due_at_us()

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Handle due wake-ups in deadline order until their cost reaches `limit`; returns the cost."""
        return self.firing.fire(now_us, limit, outbox)

    def open_evictions(self) -> dict[str, int]:
        """Count open evictions by cluster: 0 for others that have nodes here, or a feed that sends heartbeats."""
        return {
            **{cluster.name: 0 for cluster in self._clusters.by_key.values() if cluster.state.is_heard},
            **self._effects.pending,
        }

    def unanswered(self, now_us: int) -> dict[str, Waiting]:
        """Return how many evictions of each cluster were issued and not answered since, and since when the oldest.

        What waits in the queue of an executor that reports is not among them, nor what was observed in a cluster in
        which none has ever reported.
        """
        queues = self._clusters.queues(now_us - self._config.rules.usual.report_silence_us)
        return self._effects.issued.unanswered(queues, self._clusters.unreported())

    def issued_since_us(self) -> dict[str, int]:
        """Return since when the oldest eviction is due that was issued and has not ended, by cluster.

        What was observed in a cluster in which no executor has ever reported does not count.
        """
        return self._effects.issued.oldest_owed_us(self._clusters.unreported())

    def silent_since_us(self, now_us: int) -> dict[str, int]:
        """Return since when each feed is silent that is silent for too long."""
        older_than_us = now_us - self._config.feed_silence_us
        return {cluster.name: cluster.state.heard_at_us or 0 for cluster in self._clusters.silent(older_than_us)}

    def is_silent(self, cluster: str, now_us: int) -> bool:
        """Whether a cluster's feed is silent for too long, so that nothing of it is issued."""
        return self._clusters.named(cluster).state.is_silent(now_us - self._config.feed_silence_us)

    def overdue(self, now_us: int, limit: int) -> Iterator[Overdue]:
        """Yield evictions that are due, have not fired and are not held, up to a limit for each reason."""
        return self.firing.overdue(now_us, limit)

    def held_back(self) -> dict[tuple[str, str], Waiting]:
        """Return how many evictions each brake holds, by its id and the cluster, and since when the first is due."""
        return self.firing.held_back()

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Close the gate `gap`: input expired before it was read."""
        self._clusters.open_gap(lost, now_us, outbox)

    def clock_objection(self) -> str | None:
        """Return why the times of the log are not to be trusted, or `None`."""
        return self._times.objection()

    def objection(self) -> str | None:
        """Return why the gate `gap` is closed, or `None`."""
        return None if self._clusters.gap is None else self._clusters.gap.reason
