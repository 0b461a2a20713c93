"""Carries out what steps of one partition have decided: rows and messages, wake-ups, counts, dead letters.

A step about all pods of a node comes in slices, and other tasks may run between two of them. So an outbox of its own
holds what the step writes until the last slice, and wake-ups of its node wait as long.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from evictstream.models.eviction import PODS_IN_SLICE, STALE
from evictstream.streams.engine.core.batches import UnusableRecord
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.dead_letters import put_dead_letter
from evictstream.streams.partition.unanswered import Unanswered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evictstream.models.eviction import Changes, NodeAggregate
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.timers import TimerHeap, Wakeup
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig


class StepEffects:
    """Puts the changes of steps into outbox, timers and counters.

    Attributes:
        pending: open evictions by cluster, 0 for clusters that have nodes here but none.
        unanswered: issued evictions without a result since.
        counts: what became of the records of the input that is being applied.
        stepped: the nodes whose step has begun and has slices to come.
    """

    __slots__ = (
        "_clusters",
        "_config",
        "_partition",
        "_postponed",
        "_timers",
        "_writer",
        "counts",
        "pending",
        "stepped",
        "unanswered",
    )

    def __init__(self, partition: int, config: PartitionConfig, timers: TimerHeap, clusters: Clusters) -> None:
        self.pending: collections.Counter[str] = collections.Counter()
        self.counts: collections.Counter[str] = collections.Counter()
        self.stepped: set[NodeAggregate] = set()
        self.unanswered = Unanswered()
        self._postponed: list[Wakeup] = []
        self._clusters = clusters
        self._partition = partition
        self._config = config
        self._timers = timers
        self._writer = config.message_writer()

    def put(self, changes: Changes, aggregate: NodeAggregate, outbox: Outbox) -> None:
        """Add the rows, messages and wake-ups of a step, or of one slice, and count what was decided."""
        key = aggregate.record_key
        if changes.decisions or changes.commands:
            self._writer.put(changes, key, outbox, self._clusters.state(aggregate.cluster).uid)
            self._config.counters.count_decisions(changes.commands, changes.decisions, self.pending)
            for decision in changes.decisions:
                self.unanswered.note(aggregate, decision.pod_uid)
        else:  # most changes need no message
            for row, value in changes.rows:
                outbox.put(row, value)
        for at_us, uid in changes.wakeups:
            self._timers.push((at_us, key, uid))

    def put_slices(self, slices: Iterator[Changes], aggregate: NodeAggregate, outbox: Outbox) -> Iterator[None]:
        """Carry out the slices of one step, all of them or none; yields after each slice but the last."""
        aside: Outbox | None = None
        changes = next(slices)
        for following in slices:
            if aside is None:
                aside = Outbox()
                self.stepped.add(aggregate)
            self.put(changes, aggregate, aside)
            yield
            changes = following
        self.put(changes, aggregate, outbox if aside is None else aside)
        if aside is not None:
            self._end_step(aside, outbox)

    def put_listing(self, steps: Iterable[tuple[NodeAggregate, Changes]], outbox: Outbox) -> Iterator[None]:
        """Carry out the changes of one listing, about many nodes, all of them or none; yields after each slice."""
        aside = Outbox()
        counts = self._config.counters.unlisted
        for number, (aggregate, changes) in enumerate(steps, start=1):
            counts["newer" if changes is STALE else "removed"] += 1
            self.stepped.add(aggregate)
            self.put(changes, aggregate, aside)
            if number % PODS_IN_SLICE == 0:
                yield
        self._end_step(aside, outbox)

    def _end_step(self, aside: Outbox, outbox: Outbox) -> None:
        outbox.absorb(aside)
        self.stepped.clear()
        for wakeup in self._postponed:
            self._timers.push(wakeup)
        self._postponed.clear()

    def postpone(self, wakeup: Wakeup) -> None:
        """Keep a due wake-up of one of the nodes `stepped` until the last slice."""
        self._postponed.append(wakeup)

    def add_dead_letter(self, topic: str, record: Record, outbox: Outbox, *, reason: str, detail: str) -> None:
        """Add a dead letter for a record of an input topic, and count it.

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
