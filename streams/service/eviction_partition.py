"""The logic of one partition: records come in and step node aggregates; rows and messages go out.

All state about a node is here: its taints, its pods, their evictions, and the state of its cluster. Records that cannot
be read become dead letters; records that change nothing cost a look-up and write nothing. Timers are only wake-ups: the
aggregate decides at that moment, with the newest state, whether anything is due.

After a take-over the rows are loaded and the inputs are read to their end. Then every pod of every node with a
`NoExecute` taint is decided anew before anything may fire.
"""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, TypeVar

from evictstream.models.eviction import (
    InputEffect,
    NodeAggregate,
    NodeEvent,
    Origin,
    PodEvent,
    ResultEvent,
    apply_pod,
    apply_result,
    crowd_slices,
    decide_all_slices,
    fire,
    forget_slices,
    is_crowded,
    load_row,
    node_slices,
    unlisted_node_slices,
    unlisted_pod_slices,
    wakeups,
    weight_of,
)
from evictstream.models.messages.decoding import (
    decode_pod_record,
    read_decoded_pod,
    read_node_record,
    read_result_record,
)
from evictstream.models.messages.signals import AcceptGap, Forget, Heartbeat, Listed, Signal
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import DecisionKind
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.timers import TimerHeap
from evictstream.streams.engine.kafka.partitioner import partition_of
from evictstream.streams.service.clock_watch import MILLISECOND_US, SECOND_US
from evictstream.streams.service.clusters import Clusters
from evictstream.streams.service.dead_letters import UNDECIDABLE, WRONG_PARTITION
from evictstream.streams.service.fast_path import apply_plain_change
from evictstream.streams.service.overdue import count_open, deadline_us, overdue
from evictstream.streams.service.record_sizes import SHARE, fitting
from evictstream.streams.service.step_effects import StepEffects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evictstream.models.eviction import Changes
    from evictstream.streams.engine.core.batches import Record
    from evictstream.streams.engine.core.timers import Wakeup
    from evictstream.streams.service.overdue import Overdue
    from evictstream.streams.service.service_config import ServiceConfig

    Event = NodeEvent | PodEvent | ResultEvent
    E = TypeVar("E", bound=Event)

LOOK_AGAIN_US = 200_000  # how soon the heartbeat of a silent feed is noticed
CHANGE_TYPES = frozenset({"ADDED", "MODIFIED"})  # a deletion never takes the fast path
LABORIOUS_BYTES = 8_192  # a record of that size may be a third of a millisecond of work: others may come in after it
FORGOTTEN_LIKE_A_POD = 40  # to forget so many deleted pods takes as long as to evict one
SUSPECT_BYTES = 65_536  # smaller records, or below a quarter of what a topic takes, cannot make anything too large
_UNDECIDABLE = InputEffect.UNDECIDABLE
_UNCHANGED = InputEffect.UNCHANGED._value_
_CHANGED = InputEffect.CHANGED._value_
_ISSUED = DecisionKind.ISSUED


class EvictionPartition:
    """State of one partition number; implements the engine's `PartitionLogic`.

    Attributes:
        waiting_for_feed: wake-ups that are due in clusters whose feed is silent, by cluster, one for each node's key
            and UID.
    """

    def __init__(self, partition: int, config: ServiceConfig) -> None:
        self.partition = partition
        self.waiting_for_feed: dict[str, dict[tuple[bytes, str], Wakeup]] = {}
        self._nodes: collections.Counter[str] = collections.Counter()  # by cluster
        self._look_again_at_us = 0
        self._config = config
        self._counters = config.counters
        self._suspect_bytes = min(SUSPECT_BYTES, config.record_limit_bytes // SHARE)
        self._aggregates: dict[str, NodeAggregate] = {}
        self._by_key: dict[bytes, NodeAggregate] = {}
        self._clusters = Clusters()
        self._timers = TimerHeap(self._wanted_wakeups, lean_floor=config.lean_floor)
        self._effects = StepEffects(partition, config, self._timers)
        self._is_laborious = False  # whether the newest record was much work: others may come in before the next

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
            self._effects.pending[found.cluster] += count_open(found)

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterator[int]:
        """Apply records of one input in offset order, with a pause wherever much was done."""
        self._effects.counts = self._counters.of_input(topic)
        self._is_laborious = False
        if topic == self._config.pods_topic:
            yield from self._apply_pods(topic, records, outbox)
            return
        read = read_node_record if topic == self._config.nodes_topic else read_result_record
        limits, partition = self._config.limits, self.partition
        for record in records:
            if self._is_laborious:
                yield record.offset
            self._is_laborious = len(record.value or b"") > LABORIOUS_BYTES
            appended_at_us = record.timestamp * MILLISECOND_US
            try:
                event = read(record.key, record.value, appended_at_us, Origin(topic, partition, record.offset), limits)
            except Unreadable as error:
                self._effects.bury(topic, record, outbox, reason=error.reason, detail=error.detail)
                continue
            for _ in self._step(event, topic, record, outbox):
                yield record.offset

    def _apply_pods(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterator[int]:
        """Apply records of the pods topic: most take the fast path."""
        limits, partition, by_key, clusters = self._config.limits, self.partition, self._by_key, self._clusters
        newer, edited, suspect_bytes = 0, 0, self._suspect_bytes
        for record in records:
            if self._is_laborious:
                yield record.offset
            key, value = record.key, record.value
            self._is_laborious = len(value or b"") > LABORIOUS_BYTES
            appended_at_us = record.timestamp * MILLISECOND_US
            try:
                found = decode_pod_record(value, limits)
                aggregate = by_key.get(key)  # type: ignore[arg-type]  # no key, no aggregate
                if (
                    aggregate is not None
                    and found.object is not None
                    and found.type in CHANGE_TYPES
                    and found.cluster == aggregate.cluster
                    and len(value) <= suspect_bytes  # type: ignore[arg-type]  # it was decoded
                    and not (clusters.any_forgotten and clusters.is_forgotten(aggregate.cluster, appended_at_us))
                    and (row := apply_plain_change(aggregate, found, found.object, appended_at_us, limits))
                ):
                    if isinstance(row, tuple):
                        edited += 1
                        outbox.put(*row)
                    else:
                        newer += 1
                    continue
                event = read_decoded_pod(found, key, appended_at_us, Origin(topic, partition, record.offset), limits)
            except Unreadable as error:
                self._effects.bury(topic, record, outbox, reason=error.reason, detail=error.detail)
                continue
            for _ in self._step(event, topic, record, outbox):
                yield record.offset
        self._effects.counts[_UNCHANGED] += newer
        self._effects.counts[_CHANGED] += edited

    def _step(self, event: Event | Signal, topic: str, record: Record, outbox: Outbox) -> Iterable[None]:
        """Step an event through its aggregate, if it is let in; gives what is to be done in slices, mostly nothing."""
        if isinstance(event, Signal):
            return self._signal(event, topic, record.timestamp * MILLISECOND_US, outbox)
        let_in = self._let_in(event, record, outbox)
        if let_in is None:
            return ()
        aggregate, event = let_in
        rules = self._config.rules
        if isinstance(event, PodEvent):
            changes = apply_pod(aggregate, event, rules)
            node = aggregate.node
            if node is not None and node.taints:
                if is_crowded(aggregate, rules):
                    crowd = itertools.chain((changes,), crowd_slices(aggregate, event.at_us, rules, event.origin))
                    return self._take_slices(aggregate, crowd, topic, record, outbox, effect=_UNDECIDABLE)
                self._is_laborious = self._is_laborious or weight_of(node, event.pod.tolerations) > 1
        elif isinstance(event, NodeEvent):
            slices = node_slices(aggregate, event, rules)
            changes = next(slices)
            following = next(slices, None)
            if following is not None:  # most nodes have few pods, or nothing to decide about them
                whole = itertools.chain((changes, following), slices)
                return self._take_slices(aggregate, whole, topic, record, outbox, effect=changes.effect)
        else:
            changes = apply_result(aggregate, event, rules)
        if changes.rows and aggregate.record_key not in self._by_key:
            self._keep(aggregate)
        self._effects.put(changes, aggregate, outbox)
        self._effects.count(changes.effect, topic, record, outbox)
        return ()

    def _take_slices(
        self,
        aggregate: NodeAggregate,
        slices: Iterator[Changes],
        topic: str,
        record: Record,
        outbox: Outbox,
        *,
        effect: InputEffect,
    ) -> Iterator[None]:
        self._keep(aggregate)  # one with so much to do is known; a new pod may be its first row
        yield from self._effects.put_slices(slices, aggregate, outbox)
        self._effects.count(effect, topic, record, outbox)

    def _keep(self, aggregate: NodeAggregate) -> None:
        if aggregate.record_key not in self._by_key:
            self._by_key[aggregate.record_key] = self._aggregates[aggregate.key] = aggregate
            self._nodes[aggregate.cluster] += 1
            self._effects.pending[aggregate.cluster] += 0

    def _let_in(self, event: E, record: Record, outbox: Outbox) -> tuple[NodeAggregate, E] | None:
        """Give the aggregate of an event, perhaps a new one, and the event as it can be written; `None` for neither."""
        key, topic = record.key or b"", event.origin.topic
        if len(record.value or b"") > self._suspect_bytes:
            fit = fitting(event, self._config.record_limit_bytes)
            if fit is None:
                self._effects.bury(
                    topic,
                    record,
                    outbox,
                    reason=UNDECIDABLE,
                    detail="rows or messages about it would be too large",
                )
                return None
            event = fit
        aggregate = self._by_key.get(key)
        if aggregate is None:
            # Elsewhere it would split a node from its pods. Only the first record of a node is checked: the hash, in
            # Python, costs as much as the whole step.
            if partition_of(key, self._config.partitions) != self.partition:
                self._effects.bury(
                    topic, record, outbox, reason=WRONG_PARTITION, detail="the key hashes to another partition"
                )
                return None
            cluster, _, node = key.decode().partition("/")
            aggregate = NodeAggregate(cluster, node, self._clusters.first_ordinal(cluster))
        if not isinstance(event, ResultEvent) and self._clusters.is_stale(aggregate.cluster, event.epoch):
            self._effects.counts["stale"] += 1
            return None
        if self._clusters.any_forgotten and self._clusters.is_forgotten(
            aggregate.cluster, record.timestamp * MILLISECOND_US
        ):
            self._effects.counts["forgotten"] += 1
            return None
        return aggregate, event

    def _signal(self, signal: Signal, topic: str, appended_at_us: int, outbox: Outbox) -> Iterator[None]:
        outcome = "signal"
        match signal:
            case Heartbeat():
                on_nodes = topic == self._config.nodes_topic
                counts = self._clusters.heartbeat(
                    signal, on_nodes=on_nodes, appended_at_us=appended_at_us, outbox=outbox
                )
                outcome = "signal" if counts else "foreign"
            case Listed():
                if self._clusters.admit(signal, appended_at_us, outbox):
                    yield from self._effects.put_listing(
                        self._unlisted(signal, on_nodes=topic == self._config.nodes_topic), outbox
                    )
                else:
                    outcome = "foreign"
            case Forget(cluster=cluster, at_us=at_us):
                yield from self._forget(cluster, at_us, appended_at_us, outbox)
            case AcceptGap():
                self._clusters.accept_gap(outbox)
            case _:
                pass  # bookmarks and unbound pods change no state
        self._effects.counts[outcome] += 1

    def _unlisted(self, listed: Listed, *, on_nodes: bool) -> Iterator[tuple[NodeAggregate, Changes]]:
        """Remove what a complete listing does not hold, node by node."""
        slices = unlisted_node_slices if on_nodes else unlisted_pod_slices
        for aggregate in list(self._aggregates.values()):
            if aggregate.cluster == listed.cluster and listed.covers(aggregate.name):
                for changes in slices(aggregate, listed, self._config.rules):
                    yield aggregate, changes

    def _forget(self, cluster: str, at_us: int, appended_at_us: int, outbox: Outbox) -> Iterator[None]:
        prefix, aside = f"{cluster}/", Outbox()
        for name in [name for name in self._aggregates if name.startswith(prefix)]:
            aggregate = self._aggregates.pop(name, None)
            if aggregate is None:  # its last memory has fired in a pause
                continue
            del self._by_key[aggregate.record_key]
            for changes in forget_slices(aggregate, at_us, self._config.rules):
                self._effects.put(changes, aggregate, aside)
                yield
        outbox.absorb(aside)
        self.waiting_for_feed.pop(cluster, None)
        self._nodes.pop(cluster, None)
        self._effects.pending.pop(cluster, None)
        self._clusters.forget(cluster, appended_at_us, outbox)

    def caught_up(self, outbox: Outbox) -> Iterator[None]:
        """Decide every pod anew, now that the inputs are read to their end at take-over; pause after each node."""
        now_us = self._config.now_us()
        for aggregate in list(self._by_key.values()):
            yield from self._effects.put_slices(
                decide_all_slices(aggregate, now_us, self._config.rules), aggregate, outbox
            )
            yield

    def next_due_at_us(self) -> int | None:
        """When to look next: at the earliest timer, or at those that wait for a feed."""
        next_at_us = self._timers.next_at_us()
        if not self.waiting_for_feed:
            return next_at_us
        return self._look_again_at_us if next_at_us is None else min(next_at_us, self._look_again_at_us)

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Look at up to `limit` wake-ups that are due, in deadline order; at fewer where they are much work.

        Those of a cluster whose feed is silent wait in `waiting_for_feed` until it sends a heartbeat.
        """
        silent = set(self._clusters.silent(now_us - self._config.feed_silence_us))
        self._wake_heard(silent)
        self._look_again_at_us = now_us + LOOK_AGAIN_US
        handled = 0
        while handled < limit and (wakeup := self._timers.pop_due(now_us)) is not None:
            handled += 1
            _, key, uid = wakeup
            aggregate = self._by_key.get(key)
            if aggregate is None:
                continue
            if aggregate in self._effects.stepped:
                self._effects.hold(wakeup)
                continue
            if uid and aggregate.cluster in silent:
                self.waiting_for_feed.setdefault(aggregate.cluster, {})[key, uid] = wakeup
                continue
            changes = fire(aggregate, uid, now_us, self._config.rules)
            pod = aggregate.pods.get(uid)
            if pod is not None:
                handled += weight_of(aggregate.node, pod.tolerations) - 1
            else:
                handled += len(changes.rows) // FORGOTTEN_LIKE_A_POD
            self._effects.put(changes, aggregate, outbox)
            if changes.decisions and changes.decisions[-1].decision is _ISSUED:
                self._counters.lateness.observe(max(0, now_us - deadline_us(aggregate, uid, now_us)) / SECOND_US)
            if aggregate.is_empty:
                del self._by_key[key], self._aggregates[aggregate.key]
                self._nodes[aggregate.cluster] -= 1
                if not self._nodes[aggregate.cluster]:  # clusters that come and go leave nothing behind
                    del self._nodes[aggregate.cluster], self._effects.pending[aggregate.cluster]
        return handled

    def open_evictions(self) -> dict[str, int]:
        """Count open evictions by cluster: also 0, for each that has nodes here or a feed with heartbeats."""
        return {**dict.fromkeys(self._clusters.heard(), 0), **self._effects.pending}

    def overdue(self, now_us: int, limit: int) -> Iterator[Overdue]:
        """Show evictions whose time has come and that have not fired, those that wait for their feed first.

        Looks at no more than `limit` wake-ups of each silent feed, and `limit` others.
        """
        for wakeups_ in self.waiting_for_feed.values():
            some = itertools.islice(wakeups_.values(), limit)
            yield from overdue(self._by_key, some, now_us, waits_for_feed=True)
        yield from overdue(self._by_key, self._timers.due(now_us, limit), now_us, waits_for_feed=False)

    def _wake_heard(self, silent: set[str]) -> None:
        for cluster in [name for name in self.waiting_for_feed if name not in silent]:
            for wakeup in self.waiting_for_feed.pop(cluster).values():
                self._timers.push(wakeup)

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Close firing: input expired before it was read."""
        self._clusters.open_gap(lost, {found.cluster for found in self._aggregates.values()}, now_us, outbox)

    def objection(self) -> str | None:
        """Say why firing waits for a gap in the input, or `None`."""
        gap = self._clusters.gap
        if gap is None:
            return None
        lost = ", ".join(f"{count} of {topic}" for topic, count in sorted(gap.lost.items()))
        return f"input expired unread ({lost}); list again, or run `evictstream accept-gap`"

    def _wanted_wakeups(self) -> Iterator[list[Wakeup]]:
        for aggregate in list(self._by_key.values()):
            yield [(at_us, aggregate.record_key, uid) for at_us, uid in wakeups(aggregate)]
