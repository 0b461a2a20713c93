"""The simulated brokers: logs, transactions with fencing by epoch, committed offsets, refusals, outages.

All methods answer at once and are called by connections, which bring the delays. As one cluster it has no leaders
or replicas; acknowledged records are never lost, as with `acks=all`. Like Kafka 4.3, which takes a partition without
a leader for one that was deleted, they may leave out markers while leaders come and go (`streams.engine.core.markers`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from aiokafka import errors as kafka_errors

from tests.faults.simulated.log import Entry, Headers, PartitionLog, Transaction
from tests.faults.simulated.world import World

Place = tuple[str, int]

LEFT_OUT = 0.3  # how often a marker is, while leaders come and go
LOST_COMMITS = 0.1  # how often a commit's answer is lost then, and its markers may be left out


@dataclasses.dataclass(slots=True)
class Producer:
    """The state of a transactional id.

    Attributes:
        ended: with KIP-890, the epoch of its last transaction and whether that was committed.
    """

    epoch: int = -1
    open: Transaction | None = None
    ended: tuple[int, bool] | None = None


class Broker:
    """The cluster of brokers.

    Attributes:
        has_kip_890: whether `transaction.version` is 2: each end of a transaction changes the epoch.
        down_until_us: nothing is answered before.
        leaderless_until_us: markers may be left out before.
        refused: topics that may not be written.
        is_full: no write works.
        left_out: how many markers were left out.
        on_append: is called with each partition that has something new for its readers.
    """

    def __init__(self, world: World, partitions: int, *, has_kip_890: bool = False) -> None:
        self.world = world
        self.has_kip_890 = has_kip_890
        self.partitions = partitions
        self.logs: dict[Place, PartitionLog] = {}
        self.down_until_us = 0
        self.leaderless_until_us = 0
        self.refused: set[str] = set()
        self.is_full = False
        self.left_out = 0
        self.committed: dict[str, dict[Place, int]] = {}
        self.on_append: Callable[[Place], None] = lambda _place: None
        self._producers: dict[str, Producer] = {}

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Give a partition; topics are made when first used."""
        place = (topic, partition)
        if place not in self.logs:
            self.logs[place] = PartitionLog(topic, partition)
        return self.logs[place]

    def append(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Append what a feed or an executor sends."""
        log = self.log(topic, partition)
        log.append(self.world.now_us, key, value, [])
        if self.world.chance.random() < 0.05:
            log.skip()
        self.on_append((topic, partition))

    def init_producer(self, transactional_id: str) -> int:
        """Fence the earlier user of the id, abort its open transaction, and give the new epoch."""
        producer = self._producers.setdefault(transactional_id, Producer())
        self._finish(producer, commit=False, may_leave_out=True)
        producer.epoch += 1
        producer.ended = None
        return producer.epoch

    def produce(
        self,
        transactional_id: str,
        epoch: int,
        place: Place,
        records: list[tuple[bytes, bytes | None, Headers]],
        timeout_us: int,
    ) -> tuple[int, int]:
        """Append a batch to the open transaction; returns its first offset and the append time in milliseconds."""
        producer = self._check(transactional_id, epoch)
        if place[0] in self.refused:
            raise kafka_errors.TopicAuthorizationFailedError(place[0])
        if self.is_full:
            raise kafka_errors.KafkaError("the folder is full")
        if producer.open is None:
            transaction = producer.open = Transaction(transactional_id, self.world.now_us)
            self.world.at(self.world.now_us + timeout_us, lambda: self._time_out(transactional_id, transaction))
        producer.open.partitions.add(place)
        log = self.log(*place)
        entries = [log.append(self.world.now_us, key, value, headers, producer.open) for key, value, headers in records]
        return entries[0].offset, entries[-1].timestamp

    def end_transaction(self, transactional_id: str, epoch: int, *, commit: bool) -> int:
        """Commit or abort the open transaction, and give the epoch of the next one.

        With KIP-890 the epoch changes, so a request that comes again is known by its epoch.
        """
        if self._producers[transactional_id].ended == (epoch, commit):
            return self._producers[transactional_id].epoch
        producer = self._check(transactional_id, epoch)
        is_lost = self._is_leaderless and self.world.chance.random() < LOST_COMMITS
        self._finish(producer, commit=commit, may_leave_out=is_lost)
        if self.has_kip_890:
            producer.ended = (epoch, commit)
            producer.epoch += 1
        if is_lost:
            raise kafka_errors.RequestTimedOutError
        return producer.epoch

    def mark(self, transactional_id: str, epoch: int, place: Place, *, commit: bool) -> None:
        """Carry out a transaction without a record."""
        self._check(transactional_id, epoch)
        self.log(*place).finish(transactional_id, commit=commit)
        self.on_append(place)

    @property
    def fenced_again(self) -> bool:
        """Whether any transactional id was taken over from an earlier user."""
        return any(producer.epoch for producer in self._producers.values())

    def _check(self, transactional_id: str, epoch: int) -> Producer:
        producer = self._producers[transactional_id]
        if producer.epoch != epoch:
            raise kafka_errors.ProducerFenced
        return producer

    def _time_out(self, transactional_id: str, transaction: Transaction) -> None:
        """Abort a transaction that is open for too long; its producer is fenced by that."""
        producer = self._producers[transactional_id]
        if producer.open is transaction:
            self._finish(producer, commit=False, may_leave_out=True)
            producer.epoch += 1

    @property
    def _is_leaderless(self) -> bool:
        return self.world.now_us < self.leaderless_until_us

    def _finish(self, producer: Producer, *, commit: bool, may_leave_out: bool) -> None:
        transaction, producer.open = producer.open, None
        if transaction is None:
            return
        may_leave_out = may_leave_out and self._is_leaderless
        for place in sorted(transaction.partitions):
            if may_leave_out and self.world.chance.random() < LEFT_OUT:
                self.left_out += 1
            else:
                self.log(*place).finish(transaction.transactional_id, commit=commit)
                self.on_append(place)

    def entries(self, topic: str) -> list[Entry]:
        """List the records of a topic that count, by partition and offset."""
        return [
            entry
            for partition in range(self.partitions)
            for entry in self.log(topic, partition).read(0, 1 << 30, "read_committed").records
        ]
