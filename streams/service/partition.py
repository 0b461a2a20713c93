"""The logic of one partition: records in, node aggregates stepped, rows and messages out.

All state about a node lives here: its taints, its pods, their evictions, and what is known of its cluster. Records
that cannot be read become dead letters; records that change nothing cost a look-up and leave nothing behind. Timers
are only wake-ups: what is due is decided by the aggregate at that moment, with the newest state.

After a take-over the rows are loaded, the inputs are read to their end, and then every pod of every node with a
``NoExecute`` taint is decided anew before anything may fire.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, TypeVar, cast

from models.eviction import (
    NodeAggregate,
    NodeEvent,
    Note,
    Origin,
    PodEvent,
    ResultEvent,
    apply_pod,
    apply_result,
    decide_all_slices,
    fire,
    forget_slices,
    glance_at,
    load_row,
    node_slices,
    wakeups,
    weight_of,
)
from models.messages.decoding import open_pod_record, read_node_record, read_opened_pod, read_result_record
from models.messages.signals import AcceptGap, Forget, Heartbeat, Signal
from models.messages.unreadable import Unreadable
from models.messages.vocabulary import DecisionKind
from streams.engine.outbox import Outbox
from streams.engine.timers import TimerHeap
from streams.service.clock import MILLISECOND_US, SECOND_US
from streams.service.clusters import Clusters
from streams.service.dead_letters import UNDECIDABLE, WRONG_PARTITION, put_dead_letter
from streams.service.overdue import count_open, deadline_us, overdue
from streams.service.placement import belongs
from streams.service.sizes import SHARE, fitting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from models.eviction import Changes
    from streams.engine.batches import Record
    from streams.engine.timers import Wakeup
    from streams.service.overdue import Overdue
    from streams.service.plan import ServicePlan

    Event = NodeEvent | PodEvent | ResultEvent
    E = TypeVar("E", bound=Event)

LOOK_AGAIN_US = 200_000  # how soon a feed that is heard again is noticed
CHANGE_TYPES = frozenset({"ADDED", "MODIFIED"})  # a deletion always takes the long way
SUSPECT_BYTES = 65_536  # smaller records, or below a quarter of what a topic takes, cannot make anything too large
TOO_MUCH = "taints, tolerations or conditions are too many or too large to be decided about: its pods are left alone"
_UNDECIDABLE = Note.UNDECIDABLE
_UNCHANGED = Note.UNCHANGED._value_
_CHANGED = Note.CHANGED._value_
_ISSUED = DecisionKind.ISSUED


class EvictionPartition:
    """State of one partition number; implements the engine's ``PartitionLogic``.

    Attributes:
        pending: open evictions by cluster, also 0, for clusters with nodes here.
        parked: wake-ups that are due and wait for their cluster's feed, by cluster, one for each node's key and UID.

    """

    def __init__(self, partition: int, plan: ServicePlan) -> None:
        """Begin empty; rows come through :meth:`load`."""
        self.partition = partition
        self.pending: collections.Counter[str] = collections.Counter()
        self.parked: dict[str, dict[tuple[bytes, str], Wakeup]] = {}
        self._nodes: collections.Counter[str] = collections.Counter()  # by cluster
        self._look_again_at_us = 0
        self._plan = plan
        self._tally = plan.tally
        self._counts: collections.Counter[str] = collections.Counter()
        self._writer = plan.message_writer(partition)
        self._suspect_bytes = min(SUSPECT_BYTES, plan.record_limit_bytes // SHARE)
        self._aggregates: dict[str, NodeAggregate] = {}
        self._by_key: dict[bytes, NodeAggregate] = {}
        self._clusters = Clusters()
        self._timers = TimerHeap(self._wanted_wakeups)
        # The node in the middle of a step, if any, and its wake-ups that came due meanwhile.
        self._stepped: NodeAggregate | None = None
        self._held: list[Wakeup] = []

    def load(self, key: bytes, value: bytes | None) -> None:
        """Take one row of the changelog."""
        if not self._clusters.load(key, value):
            load_row(self._aggregates, key, value)

    def loaded(self) -> None:
        """Build what is derived: the index by record key, and the timers."""
        self._aggregates = {key: found for key, found in self._aggregates.items() if not found.is_empty}
        for found in self._aggregates.values():
            found.first_ordinal = self._clusters.first_ordinal(found.cluster)
        self._by_key = {found.record_key: found for found in self._aggregates.values()}
        self._timers.rebuild()
        for found in self._aggregates.values():
            self._nodes[found.cluster] += 1
            self.pending[found.cluster] += count_open(found)

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterator[int]:
        """Apply records of one input in offset order, with a pause wherever much was done."""
        self._counts = self._tally.of_input(topic)
        if topic == self._plan.pods_topic:
            yield from self._apply_pods(topic, records, outbox)
            return
        read = read_node_record if topic == self._plan.nodes_topic else read_result_record
        limits, partition, rules = self._plan.limits, self.partition, self._plan.rules
        for record in records:
            appended_at_us = record.timestamp * MILLISECOND_US
            try:
                event = read(record.key, record.value, appended_at_us, Origin(topic, partition, record.offset), limits)
            except Unreadable as error:
                self._bury(topic, record, outbox, error.reason, error.detail)
                continue
            if isinstance(event, Signal):
                for _ in self._signal(event, topic, appended_at_us, outbox):
                    yield record.offset
            elif (let_in := self._let_in(event, record, outbox)) is not None:
                aggregate, event = let_in
                if isinstance(event, ResultEvent):
                    self._take(apply_result(aggregate, event, rules), aggregate, event, record, outbox)
                    continue
                slices = node_slices(aggregate, event, rules)
                changes = next(slices)
                following = next(slices, None)
                if following is None:  # most nodes have few pods, or nothing to decide about them
                    self._take(changes, aggregate, event, record, outbox)
                    continue
                for _ in self._in_slices(itertools.chain((changes, following), slices), aggregate, outbox):
                    yield record.offset
                self._count(changes.note, event, record, outbox)

    def _apply_pods(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterator[int]:
        """Apply records of the pods topic: most can be taken in at a glance."""
        limits, partition, by_key, clusters = self._plan.limits, self.partition, self._by_key, self._clusters
        newer, edited, suspect_bytes = 0, 0, self._suspect_bytes
        for record in records:
            key, value = record.key, record.value
            appended_at_us = record.timestamp * MILLISECOND_US
            try:
                found = open_pod_record(value, limits)
                aggregate = by_key.get(key)  # type: ignore[arg-type]  # no key, no aggregate
                if (
                    aggregate is not None
                    and found.object is not None
                    and found.type in CHANGE_TYPES
                    and found.cluster == aggregate.cluster
                    and len(value) <= suspect_bytes  # type: ignore[arg-type]  # it was decoded
                    and not (clusters.any_forgotten and clusters.is_forgotten(aggregate.cluster, appended_at_us))
                    and (taken := glance_at(aggregate, found.object, found.observed_at, appended_at_us, limits))
                ):
                    if isinstance(taken, tuple):
                        edited += 1
                        outbox.put(*taken)
                    else:
                        newer += 1
                    continue
                event = read_opened_pod(found, key, appended_at_us, Origin(topic, partition, record.offset), limits)
            except Unreadable as error:
                self._bury(topic, record, outbox, error.reason, error.detail)
                continue
            if isinstance(event, Signal):
                for _ in self._signal(event, topic, appended_at_us, outbox):
                    yield record.offset
            elif (let_in := self._let_in(event, record, outbox)) is not None:
                aggregate, event = let_in
                self._take(apply_pod(aggregate, event, self._plan.rules), aggregate, event, record, outbox)
                node = aggregate.node
                if len(record.value or b"") > suspect_bytes or (node and weight_of(node, event.pod.tolerations) > 1):
                    yield record.offset + 1
        self._counts[_UNCHANGED] += newer
        self._counts[_CHANGED] += edited

    def _let_in(self, event: E, record: Record, outbox: Outbox) -> tuple[NodeAggregate, E] | None:
        """Give the aggregate of an event, perhaps a new one, and the event as it can be written; `None` for neither."""
        key, topic = cast("bytes", record.key), event.origin.topic
        if len(cast("bytes", record.value)) > self._suspect_bytes:
            fit = fitting(event, self._plan.record_limit_bytes)
            if fit is None:
                self._bury(topic, record, outbox, UNDECIDABLE, "rows or messages about it would be too large")
                return None
            event = fit
        aggregate = self._by_key.get(key)
        if aggregate is None:
            if not belongs(key, self.partition, self._plan.partitions):
                self._bury(topic, record, outbox, WRONG_PARTITION, "the key hashes to another partition")
                return None
            cluster, _, node = key.decode().partition("/")
            aggregate = NodeAggregate(cluster, node, self._clusters.first_ordinal(cluster))
        if self._clusters.any_forgotten and self._clusters.is_forgotten(
            aggregate.cluster, record.timestamp * MILLISECOND_US
        ):
            self._counts["forgotten"] += 1
            return None
        return aggregate, event

    def _take(self, changes: Changes, aggregate: NodeAggregate, event: Event, record: Record, outbox: Outbox) -> None:
        """Put what a step of one record has changed into the outbox, and count it."""
        if changes.rows:
            if aggregate.record_key not in self._by_key:
                self._by_key[aggregate.record_key] = self._aggregates[aggregate.key] = aggregate
                self._nodes[aggregate.cluster] += 1
                self.pending[aggregate.cluster] += 0
            self._put(changes, aggregate, outbox)
        elif changes.wakeups:
            self._put(changes, aggregate, outbox)
        self._count(changes.note, event, record, outbox)

    def _count(self, note: Note, event: Event, record: Record, outbox: Outbox) -> None:
        self._counts[note._value_] += 1
        if note is _UNDECIDABLE:
            self._bury(event.origin.topic, record, outbox, UNDECIDABLE, TOO_MUCH)

    def _in_slices(self, slices: Iterator[Changes], aggregate: NodeAggregate, outbox: Outbox) -> Iterator[None]:
        """Put a step about all pods of a node into the outbox: all of it or nothing, with a pause after each slice."""
        aside: Outbox | None = None
        changes = next(slices)
        for following in slices:
            if aside is None:
                aside, self._stepped = Outbox(), aggregate
            self._put(changes, aggregate, aside)
            yield
            changes = following
        self._put(changes, aggregate, outbox if aside is None else aside)
        if aside is not None:
            outbox.absorb(aside)
            self._stepped = None
            for wakeup in self._held:
                self._timers.push(wakeup)
            self._held.clear()

    def _signal(self, signal: Signal, topic: str, appended_at_us: int, outbox: Outbox) -> Iterator[None]:
        match signal:
            case Heartbeat(cluster=cluster, listed_at_us=listed_at_us):
                self._clusters.heartbeat(
                    cluster,
                    on_nodes=topic == self._plan.nodes_topic,
                    appended_at_us=appended_at_us,
                    listed_at_us=listed_at_us,
                    outbox=outbox,
                )
            case Forget(cluster=cluster, at_us=at_us):
                yield from self._forget(cluster, at_us, appended_at_us, outbox)
            case AcceptGap():
                self._clusters.accept_gap(outbox)
            case _:
                pass  # bookmarks and unbound pods say nothing that is kept
        self._counts["signal"] += 1

    def _forget(self, cluster: str, at_us: int, appended_at_us: int, outbox: Outbox) -> Iterator[None]:
        prefix, aside = f"{cluster}/", Outbox()
        for name in [name for name in self._aggregates if name.startswith(prefix)]:
            aggregate = self._aggregates.pop(name, None)
            if aggregate is None:  # its last memory has fired in a pause
                continue
            del self._by_key[aggregate.record_key]
            for changes in forget_slices(aggregate, at_us, self._plan.rules):
                self._put(changes, aggregate, aside)
                yield
        outbox.absorb(aside)
        self.parked.pop(cluster, None)
        self._nodes.pop(cluster, None)
        self.pending.pop(cluster, None)
        self._clusters.forget(cluster, appended_at_us, outbox)

    def _bury(self, topic: str, record: Record, outbox: Outbox, reason: str, detail: str) -> None:
        put_dead_letter(
            outbox,
            self._plan.dead_letters_topic,
            record,
            (topic, self.partition),
            reason=reason,
            detail=detail,
            limit_bytes=self._plan.record_limit_bytes,
        )
        self._counts["dead-letter"] += 1
        self._tally.dead_letters[reason] += 1

    def caught_up(self, outbox: Outbox) -> Iterator[None]:
        """Decide every pod anew, now that nothing known at take-over is unread; with a pause after each node."""
        now_us = self._plan.now_us()
        for aggregate in list(self._by_key.values()):
            yield from self._in_slices(decide_all_slices(aggregate, now_us, self._plan.rules), aggregate, outbox)
            yield

    def next_due_at_us(self) -> int | None:
        """When to look next: at the earliest timer, or at those that wait for a feed."""
        next_at_us = self._timers.next_at_us()
        if not self.parked:
            return next_at_us
        return self._look_again_at_us if next_at_us is None else min(next_at_us, self._look_again_at_us)

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Look at up to ``limit`` wake-ups that are due, in deadline order; at fewer where they are much work.

        Those of clusters with a silent feed are parked until it is heard again.
        """
        silent = set(self._clusters.silent(now_us - self._plan.feed_silence_us))
        self._unpark(silent)
        self._look_again_at_us = now_us + LOOK_AGAIN_US
        handled = 0
        while handled < limit and (wakeup := self._timers.pop_due(now_us)) is not None:
            handled += 1
            _, key, uid = wakeup
            aggregate = self._by_key.get(key)
            if aggregate is None:
                continue
            if aggregate is self._stepped:
                self._held.append(wakeup)
                continue
            if uid and aggregate.cluster in silent:
                self.parked.setdefault(aggregate.cluster, {})[key, uid] = wakeup
                continue
            changes = fire(aggregate, uid, now_us, self._plan.rules)
            pod = aggregate.pods.get(uid)
            if pod is not None:
                handled += weight_of(aggregate.node, pod.tolerations) - 1
            self._put(changes, aggregate, outbox)
            if changes.decisions and changes.decisions[-1].decision is _ISSUED:
                self._tally.lateness.observe(max(0, now_us - deadline_us(aggregate, uid, now_us)) / SECOND_US)
            if aggregate.is_empty:
                del self._by_key[key], self._aggregates[aggregate.key]
                self._nodes[aggregate.cluster] -= 1
                if not self._nodes[aggregate.cluster]:  # clusters that come and go leave nothing behind
                    del self._nodes[aggregate.cluster], self.pending[aggregate.cluster]
        return handled

    def open_evictions(self) -> dict[str, int]:
        """Count open evictions by cluster: also 0, for each that has nodes here or a feed with heartbeats."""
        return {**dict.fromkeys(self._clusters.heard(), 0), **self.pending}

    def overdue(self, now_us: int, limit: int) -> Iterator[Overdue]:
        """Show evictions whose time has come and that have not fired, those that wait for their feed first.

        Looks at no more than ``limit`` wake-ups of each silent feed, and ``limit`` others.
        """
        for wakeups_ in self.parked.values():
            some = itertools.islice(wakeups_.values(), limit)
            yield from overdue(self._by_key, some, now_us, waits_for_feed=True)
        yield from overdue(self._by_key, self._timers.due(now_us, limit), now_us, waits_for_feed=False)

    def _unpark(self, silent: set[str]) -> None:
        for cluster in [name for name in self.parked if name not in silent]:
            for wakeup in self.parked.pop(cluster).values():
                self._timers.push(wakeup)

    def _put(self, changes: Changes, aggregate: NodeAggregate, outbox: Outbox) -> None:
        key = aggregate.record_key
        if changes.decisions or changes.commands:
            self._writer.put(changes, key, outbox)
            self._tally.take(changes.commands, changes.decisions, self.pending)
        else:  # most changes need no message
            for row, value in changes.rows:
                outbox.put(row, value)
        for at_us, uid in changes.wakeups:
            self._timers.push((at_us, key, uid))

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Close firing: input expired before it was read."""
        self._clusters.open_gap(lost, {found.cluster for found in self._aggregates.values()}, now_us, outbox)

    def objection(self) -> str | None:
        """Say why firing waits for a gap in the input, or ``None``."""
        gap = self._clusters.gap
        if gap is None:
            return None
        lost = ", ".join(f"{count} of {topic}" for topic, count in sorted(gap.lost.items()))
        return f"input expired unread ({lost}); list again, or run `evictstream accept-gap`"

    def _wanted_wakeups(self) -> Iterator[list[Wakeup]]:
        for aggregate in list(self._by_key.values()):
            yield [(at_us, aggregate.record_key, uid) for at_us, uid in wakeups(aggregate)]
