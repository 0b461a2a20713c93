"""One partition of the service under virtual time: each timer fires in the very microsecond in which it is due.

What a worker does otherwise is left out: no takeover, no gate but that of a silent feed, no transaction. So what comes
out depends on the records alone, in the order in which the partition's topics are read.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from evictstream.kit.recordings.record import STEERING_ROLES, RecordedRecord, Role
from evictstream.kit.replay.pod_observer import PodObserver
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.simulated_executor import AnsweringEvent, SimulatedExecutor
from evictstream.kit.replay.standing_holds import StandingHold, standing_hold
from evictstream.kit.replay.story import Teller
from evictstream.models.instants import MILLISECOND_US
from evictstream.models.steering.incidents import OpenIncident
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.config import PartitionConfig
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.overdue import Waiting

FIRE_LIMIT: Final = 1_000
"""Cost of one turn of timers; what is left fires in the next turn, at the same instant."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict).decode


class ReplayedMessage(NamedTuple):
    """What the service would have sent.

    Attributes:
        at_us: virtual time.
        number: in its partition, from 0; with `at_us` and `partition` it orders messages for good.
        is_played: whether it follows from what an executor has done that is played, at once.
    """

    at_us: int
    partition: int
    number: int
    topic: str
    key: bytes
    value: bytes
    is_played: bool = False


class FoundIncident(NamedTuple):
    """An incident of a run.

    Attributes:
        cluster: where.
        incident: as it was last.
        stands: whether it has not ended.
    """

    cluster: str
    incident: OpenIncident
    stands: bool


class VirtualPartition:
    """The logic, its clock, and perhaps an executor that is played.

    Attributes:
        now_us: virtual time; it never goes back.
        set_back: records whose time lay before that of an earlier one; they are taken as if they had come with it.
    """

    def __init__(
        self,
        partition: int,
        config: PartitionConfig,
        executor: SimulatedExecutor | None,
        observer: PodObserver | None = None,
        *,
        steering: RecordedSteering | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            partition: its number.
            config: of the service; its clock is replaced.
            executor: answers each `Evict`, and lets its pods go; None takes results as they were recorded.
            observer: looks at the pods that it wants to, after each record about them.
            steering: brakes and policies, those of records too; None takes those of the config.
        """
        self.now_us = 0
        self.set_back = 0
        self._partition = partition
        self._config = dataclasses.replace(config, now_us=lambda: self.now_us, clock_skew_us=None)
        self._steering = steering
        if steering is not None:
            brakes, policies = (lambda: steering.brakes), (lambda: steering.policies)
            self._config = dataclasses.replace(self._config, brakes=brakes, policies=policies)
        self._topics: dict[Role, str] = {
            "nodes": config.nodes_topic,
            "pods": config.pods_topic,
            "results": config.results_topic,
        }
        self._executor = executor
        self._observer = observer
        self._logic = EvictionPartition(partition, self._config)
        self._logic.loaded()
        self._outbox = Outbox()
        self._count = 0
        self._place = 0
        self._played: collections.deque[RecordedRecord] = collections.deque()
        self._incidents: dict[str, tuple[str, OpenIncident]] = {}
        self._played_offsets: collections.Counter[Role] = collections.Counter()

    def take_over(self, rows: Iterable[tuple[bytes, bytes]], at_us: int) -> Iterator[ReplayedMessage]:
        """Begin with rows at an instant, as a worker that takes the partition over, and decide all anew."""
        for key, value in rows:
            self._logic.load(key, value)
        self._logic.loaded()
        self.now_us = at_us
        collections.deque(self._logic.caught_up(at_us, self._outbox), maxlen=0)
        self._logic.fire(at_us, FIRE_LIMIT, self._outbox)
        yield from self._flush()

    def take(self, records: Sequence[RecordedRecord]) -> Iterator[ReplayedMessage]:
        """Apply records of this partition in their order, firing before each what is due by then."""
        self._place = 0
        while self._place < len(records):
            record = records[self._place]
            if record.topic in STEERING_ROLES:
                self._place += 1
                yield from self._steer(record)
                continue
            if not self.now_us:  # buckets of policies are empty here, as after a takeover
                self.now_us = record.appended_us
                self._logic.fire(self.now_us, FIRE_LIMIT, self._outbox)
            yield from self.advance(record.appended_us)
            self._apply(record.topic, self._run(records))
            yield from self._flush()

    def advance(self, to_us: int) -> Iterator[ReplayedMessage]:
        """Let time pass."""
        while (due_us := self._next_us()) is not None and due_us <= to_us:
            self.now_us = max(self.now_us, due_us)
            for event in () if self._executor is None else self._executor.gone(self.now_us):
                self._play("pods", event)
            self._logic.fire(self.now_us, FIRE_LIMIT, self._outbox)
            if self._logic.firing.guarding.is_on:
                self._incidents |= {one[1].id: one for one in self._logic.firing.guarding.standing()}
            yield from self._flush()
        if to_us < self.now_us:
            self.set_back += 1
        self.now_us = max(self.now_us, to_us)

    def _steer(self, record: RecordedRecord) -> Iterator[ReplayedMessage]:
        """Let another brake or policy stand from its time on. What stands before all input stood there already."""
        if self._steering is None or not self._steering.wants(record):
            return
        if self.now_us:
            yield from self.advance(max(self.now_us, record.appended_us))
        self._steering.take(record)
        if self.now_us:
            self._logic.fire(self.now_us, FIRE_LIMIT, self._outbox)
            yield from self._flush()

    def held_back(self) -> dict[tuple[str, str], Waiting]:
        """Return what is held now, by what and by cluster."""
        return self._logic.held_back()

    def holds(self) -> Iterator[StandingHold]:
        """Give what is held now, one by one."""
        held = self._logic.firing.held
        for cluster, places in held.by_cluster.items():
            nodes = {node.timer_key: node for node in self._logic.known_nodes() if node.cluster == cluster}
            holders, rules = held.holders_of(cluster), self._config.rules.of(cluster)
            for key, uid in places:
                hold = standing_hold(nodes[key], nodes[key].pods[uid], holders, self.now_us, rules=rules)
                if hold is not None:
                    yield hold

    def incidents(self) -> Iterator[FoundIncident]:
        """Give the incidents that there were."""
        standing = {incident.id for _, incident in self._logic.firing.guarding.standing()}
        for cluster, incident in self._incidents.values():
            yield FoundIncident(cluster, incident, incident.id in standing)

    def addresses(self) -> Iterator[str]:
        """Give NAMESPACE/NAME of each pod that is known now."""
        return (pod.address for node in self._logic.known_nodes() for pod in node.pods.values())

    def _next_us(self) -> int | None:
        due_us = self._logic.next_due_at_us()
        gone_us = None if self._executor is None else self._executor.next_us()
        if due_us is None or gone_us is None:
            return gone_us if due_us is None else due_us
        return min(due_us, gone_us)

    def _apply(self, topic: Role, records: Iterable[RecordedRecord]) -> None:
        collections.deque(self._logic.apply(self._topics[topic], records, self._outbox), maxlen=0)

    def _run(self, records: Sequence[RecordedRecord]) -> Iterator[RecordedRecord]:
        """Hand records of one topic out, until something else has to happen before the next one.

        The logic has done with a record when it asks for the next. One call for each record would cost as much as
        most records do.
        """
        first = place = self._place
        topic = records[first].topic
        for place in range(first, len(records)):
            record = records[place]
            if record.topic != topic:
                break
            if place != first:
                at_us = record.appended_us
                due_us = self._next_us()
                if self._outbox.messages or at_us < self.now_us or (due_us is not None and due_us <= at_us):
                    break
                self.now_us = at_us
            if topic == "pods" and self._executor is not None:
                before = self._admitted(record)
                if before is None:
                    if self._observer is not None and self._observer.wants(record):
                        self._observer.leave_out(record, self.now_us)
                    continue
                yield from before
            yield record
            if self._observer is not None and self._observer.wants(record):
                self._observer.look(record, self._logic.known_node, self.now_us, Teller.RECORDED)
        else:
            place += 1
        self._place = place

    def _admitted(self, record: RecordedRecord) -> list[RecordedRecord] | None:
        """Give what comes before a recorded pod; None if that did not happen here, as it has been deleted before."""
        assert self._executor is not None  # noqa: S101 - the caller has looked
        try:
            before = self._executor.admit(record.value or b"", self.now_us)
        except (ValueError, RecursionError):
            return []  # the logic says what is wrong with it
        return None if before is None else [self._record("pods", event) for event in before]

    def _play(self, topic: Role, value: AnsweringEvent) -> None:
        """Let something follow that was not recorded."""
        self._played.append(self._record(topic, value))

    def _record(self, topic: Role, value: AnsweringEvent) -> RecordedRecord:
        record = RecordedRecord(
            topic=topic,
            partition=self._partition,
            offset=self._played_offsets[topic],
            timestamp=-(-self.now_us // MILLISECOND_US),  # rounded up, so that `observedAt` counts for the service
            key=str(value["cluster"]).encode(),
            value=_encode(value),
        )
        self._played_offsets[topic] += 1
        return record

    def _flush(self) -> Iterator[ReplayedMessage]:
        """Give what was said, and apply what follows from it, until nothing does."""
        is_played = False
        while True:
            taken = self._outbox.take()
            for topic, messages in taken.messages.items():
                for message in messages:
                    yield ReplayedMessage(
                        at_us=self.now_us,
                        partition=self._partition,
                        number=self._count,
                        topic=topic,
                        key=message.key,
                        value=message.value,
                        is_played=is_played,
                    )
                    self._count += 1
            if self._executor is not None:
                for message in taken.messages.get(self._config.commands_topic, ()):
                    self._answer(_decode(message.value), self._executor)
            if not self._played:
                return
            record = self._played.popleft()
            self._apply(record.topic, (record,))
            is_played = True
            if self._observer is not None and self._observer.wants(record):
                self._observer.look(record, self._logic.known_node, self.now_us, Teller.PLAYED)

    def _answer(self, command: AnsweringEvent, executor: SimulatedExecutor) -> None:
        if command["action"] == "Evict":
            answer = executor.evict(command, self.now_us)
            for event in answer.events:
                self._play("pods", event)
            self._play("results", answer.result)
