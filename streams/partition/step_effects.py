"""Carries out what steps of one partition have decided: rows and messages, wake-ups, counts, dead letters.

A step about all pods of a node, or of a cluster, has several parts, and other tasks may run between two of them. Until
the last, the outbox puts aside what the step writes, and the wake-ups of its nodes wait.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from evictstream.models.eviction.held_attempts import flying_on, is_in_flight
from evictstream.models.eviction.levels import ClusterLevels, has_to_count
from evictstream.models.messages.vocabulary import DecisionKind
from evictstream.streams.engine.core.batches import UnusableRecord
from evictstream.streams.partition.dead_letters import put_dead_letter
from evictstream.streams.partition.guarding import Guarding
from evictstream.streams.partition.held import HeldEvictions
from evictstream.streams.partition.issued_evictions import IssuedEvictions
from evictstream.streams.partition.messages import MessageWriter
from evictstream.streams.partition.outage_histories import OutageHistories

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evictstream.models.eviction import Changes, NodeAggregate
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.eviction.levels import Move
    from evictstream.models.steering.holds import Subject
    from evictstream.models.steering.in_flight import PodPlace
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.outbox import Outbox
    from evictstream.streams.engine.core.timers import TimerHeap
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig

_REPORTED = DecisionKind.REPORTED


class StepEffects:
    """Puts the changes of steps into outbox, timers and counters.

    Attributes:
        pending: open evictions by cluster, 0 for clusters that have nodes here but none.
        issued: issued evictions that have not ended, and those of them without a result since.
        held: those that are due and that brakes or policies hold.
        guarding: what guards count.
        histories: of which clusters policies may ask what they were.
        levels: how clusters with nodes here stand.
        counts: what became of the records of the input that is being applied.
    """

    __slots__ = (
        "_aside_of",
        "_clusters",
        "_config",
        "_partition",
        "_timers",
        "_writer",
        "counts",
        "guarding",
        "held",
        "histories",
        "issued",
        "levels",
        "pending",
    )

    def __init__(self, partition: int, config: PartitionConfig, timers: TimerHeap, clusters: Clusters) -> None:
        self.pending: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()
        self.issued = IssuedEvictions()
        self.levels: dict[str, ClusterLevels] = {}
        self.held = HeldEvictions(
            config.brakes,
            config.policies,
            timers,
            clusters,
            flying_in=self._flying_in,
            is_followed=config.workloads_topic is not None,
        )
        self.guarding = Guarding(clusters, self.held, config.rules)
        self.histories = OutageHistories(clusters, self.held)
        self._aside_of: str | None = None  # the cluster of a step that is not whole yet
        self._clusters = clusters
        self._partition = partition
        self._config = config
        self._timers = timers
        self._writer = MessageWriter(config.commands_topic, config.decisions_topic)

    def put(self, changes: Changes, aggregate: NodeAggregate, outbox: Outbox) -> None:
        """Add the rows, messages and wake-ups of a step, or of one part, and count what was decided."""
        key = aggregate.timer_key
        if changes.decisions or changes.commands:
            self._writer.put(changes, outbox, self._clusters.named(aggregate.cluster))
            self._config.counters.count_decisions(changes.commands, changes.decisions, self.pending)
            self._config.on_decided(changes.decisions)
            for decision in changes.decisions:
                self.issued.note(aggregate, decision.pod_uid)
                if self.held.by_cluster and decision.decision is not _REPORTED:  # it has a wake-up, or needs none
                    self.held.note(aggregate.cluster, (key, decision.pod_uid), None)
        else:  # most changes need no message
            for row, value in changes.rows:
                outbox.put(row, value)
        if changes.moves or has_to_count(aggregate):
            self._count(aggregate, changes.moves)
        for at_us, uid in changes.wakeups:
            self._timers.push((at_us, key, uid))
        if self.held.limits.flying:
            self.held.limits.landed(key, lambda uid: is_in_flight(aggregate.pods.get(uid)))

    def _flying_in(self, cluster: str) -> Iterator[tuple[PodPlace, Subject]]:
        for node in self._clusters.named(cluster).nodes.values():
            yield from flying_on(node)

    def see_new(self, cluster: Cluster, outbox: Outbox) -> None:
        """Take in that a cluster has a new node."""
        self.pending[cluster.name] += 0
        self.histories.see_new(cluster, outbox)

    def load(self, aggregate: NodeAggregate, uids: Iterable[str]) -> None:
        """Count a node that was loaded, with the evictions of these pods."""
        self._count(aggregate, [(None, aggregate.pods[uid].eviction) for uid in uids])

    def _count(self, aggregate: NodeAggregate, moves: Sequence[Move]) -> None:
        if self.guarding.is_on:
            if has_to_count(aggregate):
                self.guarding.see(aggregate)
            if moves:
                self.guarding.moved(aggregate, moves)
        levels = self.levels.get(aggregate.cluster)
        if levels is None:
            levels = self.levels[aggregate.cluster] = ClusterLevels()
        zone = aggregate.counted_in
        levels.take(aggregate, moves)
        if aggregate.workloads is not None and aggregate.counted_in != zone:
            aggregate.workloads.look_at(aggregate, aggregate.pods)

    def put_part(self, changes: Changes, aggregate: NodeAggregate, outbox: Outbox) -> None:
        """Add what one part of a step has decided, for a step about this node alone."""
        if changes.is_last and not outbox.is_in_step:
            self.put(changes, aggregate, outbox)
            if aggregate.known is not None and aggregate.known.is_changed:
                self._clusters.keep_history(aggregate.cluster, outbox)
            return
        self.put_aside(changes, aggregate, outbox)
        if changes.is_last:
            self.end_step(outbox)

    def put_aside(self, changes: Changes, aggregate: NodeAggregate, outbox: Outbox) -> None:
        """Put aside what one part of a step has decided, and let the node's wake-ups wait, until `end_step`."""
        self._aside_of = aggregate.cluster
        self._timers.hold(aggregate.timer_key)
        self.put(changes, aggregate, outbox.aside())

    def end_step(self, outbox: Outbox) -> None:
        """Let all that a step has put aside be written, and the wake-ups come: it is whole."""
        outbox.end_step()
        self._timers.release()
        if self._aside_of is not None:  # whole only now: other writers of the cluster's row have not waited
            self._clusters.keep_history(self._aside_of, outbox)
            self._aside_of = None

    def add_dead_letter(self, topic: str, record: Record, outbox: Outbox, *, reason: str, detail: str) -> None:
        """Add a dead letter for a record of an input topic, count it and tell of it.

        What stands for a record that is left out says itself why.
        """
        if isinstance(record, UnusableRecord):
            reason, detail = record.reason.value, record.detail
        put_dead_letter(
            outbox,
            self._config.dead_letters_topic,
            record=record,
            origin=(topic, self._partition),
            reason=reason,
            detail=detail,
            limit_bytes=self._config.record_limit_bytes,
        )
        self.counts["dead-letter"] += 1
        self._config.counters.dead_letters[reason] += 1
        cluster = self._clusters.by_key.get(record.key or b"")
        name = None if cluster is None else cluster.name
        self._config.on_dead_letter(name, (topic, self._partition, record.offset), reason, detail)
