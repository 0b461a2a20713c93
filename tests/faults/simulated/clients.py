"""Simulated counterparts of aiokafka's three clients, with the methods that the engine calls and no more.

Like aiokafka 0.14, the producer commits a transaction even if one of its batches was refused: the engine has to notice.
Batches are small, so that an outbox takes several.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors

from evictstream.streams.engine.kafka.clients import ClientClasses
from evictstream.streams.engine.kafka.transaction_v2 import AGAIN_SECONDS, Appended
from tests.faults.simulated.broker import Place
from tests.faults.simulated.log import Entry, Fetched, Headers
from tests.faults.simulated.network import Connection

Content = tuple[bytes, bytes | None, Headers]

LARGEST_BATCH = 6
MILLISECONDS_PER_SECOND = 1000
MILLISECOND_US = 1000


def client_classes(connection: Connection) -> ClientClasses:
    """Make what a worker's clients are made of, so that all of them use its connection."""
    return ClientClasses(
        producer=functools.partial(SimulatedProducer, connection),
        consumer=functools.partial(SimulatedConsumer, connection),
        admin=functools.partial(SimulatedAdmin, connection),
    )


class Metadata(NamedTuple):
    """What the broker says of a batch that was written."""

    timestamp: int
    offset: int = 0


class Batch:
    """A record batch under construction."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None, Headers]] = []

    def append(self, *, timestamp: float | None, key: bytes, value: bytes | None, headers: Headers) -> Metadata | None:
        """Add a record; `None` if the batch is full. The broker sets the time, whatever is asked for."""
        del timestamp
        if len(self.records) >= LARGEST_BATCH:
            return None
        self.records.append((key, value, headers))
        return Metadata(0)

    def close(self) -> None:
        """Nothing: the batch is complete as it is."""

    def record_count(self) -> int:
        """Count the records of the batch."""
        return len(self.records)


class SimulatedProducer:
    """Simulates `TransactionalProducer`.

    Attributes:
        id: its transactional id.
        epoch: the one that the broker gave last.
        v2: how it writes on brokers with KIP-890, else `None`.
    """

    def __init__(
        self, connection: Connection, *, transactional_id: str, transaction_timeout_ms: int, **_: object
    ) -> None:
        self.id = transactional_id
        self.timeout_us = transaction_timeout_ms * MILLISECOND_US
        self.epoch = -1
        self._connection = connection
        self.v2 = SimulatedV2(self, connection) if connection.broker.has_kip_890 else None

    async def start(self) -> None:
        """Get an epoch, which fences earlier ones."""
        broker = self._connection.broker
        self.epoch = await self._connection.request(lambda: broker.init_producer(self.id))

    async def begin_transaction(self) -> None:
        """Nothing: the broker begins a transaction with its first batch."""

    def create_batch(self) -> Batch:
        """Make an empty batch."""
        return Batch()

    async def send_batch(self, batch: Batch, topic: str, *, partition: int) -> asyncio.Future[Metadata]:
        """Send a batch; the future gives its append time."""
        broker, records = self._connection.broker, list(batch.records)
        place = (topic, partition)

        def write() -> Metadata:
            offset, timestamp = broker.produce(self.id, self.epoch, place, records, self.timeout_us)
            return Metadata(timestamp, offset)

        return self._connection.post(write)

    async def commit_transaction(self) -> None:
        """Commit the open transaction."""
        broker = self._connection.broker
        await self._connection.request(lambda: broker.end_transaction(self.id, self.epoch, commit=True))

    async def mark(self, partition: TopicPartition, *, commit: bool) -> None:
        """Write the end of a transaction and nothing else."""
        broker = self._connection.broker
        await self._connection.request(lambda: broker.mark(self.id, self.epoch, partition, commit=commit))

    async def end(self) -> None:
        """Disconnect at once; the next owner or a time-out ends an open transaction."""


class SimulatedV2:
    """Simulates `TransactionsV2`."""

    def __init__(self, producer: SimulatedProducer, connection: Connection) -> None:
        self._producer, self._connection = producer, connection

    async def append(self, partition: int, contents: Mapping[str, Iterable[Content]]) -> list[Appended]:
        """Append entries by topic: one request has the next batch of each topic."""
        left = {topic: list(entries) for topic, entries in contents.items()}
        appended: list[Appended] = []
        while left:
            batches = {(topic, partition): entries[:LARGEST_BATCH] for topic, entries in left.items()}
            appended += await self._connection.request(functools.partial(self._produce, batches))
            left = {topic: rest for topic, entries in left.items() if (rest := entries[LARGEST_BATCH:])}
        return appended

    def _produce(self, batches: Mapping[Place, list[Content]]) -> list[Appended]:
        """Let the broker append batches. It refuses each for itself: those before are appended."""
        broker, producer = self._connection.broker, self._producer
        return [
            Appended(*broker.produce(producer.id, producer.epoch, place, batch, producer.timeout_us))
            for place, batch in batches.items()
        ]

    async def end(self, *, commit: bool) -> bool:
        """End the open transaction; without an answer, ask again. Tells whether that was so."""
        broker, producer = self._connection.broker, self._producer
        is_again = False
        while True:
            with contextlib.suppress(kafka_errors.RequestTimedOutError):
                producer.epoch = await self._connection.request(
                    lambda: broker.end_transaction(producer.id, producer.epoch, commit=commit)
                )
                return is_again
            is_again = True
            await asyncio.sleep(AGAIN_SECONDS)


class SimulatedConsumer:
    """Simulates `StoppableConsumer` without a group."""

    def __init__(self, connection: Connection, *, isolation_level: str, **_: object) -> None:
        self._isolation = isolation_level
        self._connection = connection
        self._positions: dict[TopicPartition, int] = {}

    async def start(self) -> None:
        """Connect."""

    async def stop(self) -> None:
        """Disconnect."""

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, from their beginning."""
        self._positions = dict.fromkeys(partitions, 0)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on from the first offset."""
        self._positions.update(dict.fromkeys(partitions, 0))

    async def learn(self, topics: Iterable[str]) -> None:
        """Nothing: there are no leaders to learn."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on from an offset."""
        self._positions[partition] = offset

    async def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offsets of partitions."""
        return dict.fromkeys(partitions, 0)

    async def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the offsets after the last ones that can be read."""
        broker, isolation = self._connection.broker, self._isolation

        def look() -> dict[TopicPartition, int]:
            return {place: broker.log(*place).readable_end(isolation) for place in partitions}

        return await self._connection.request(look)

    async def position(self, partition: TopicPartition) -> int:
        """Give the offset that is read next."""
        return self._positions[partition]

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int, max_records: int
    ) -> Mapping[TopicPartition, list[Entry]]:
        """Fetch the next records."""
        broker, positions = self._connection.broker, dict(self._positions)

        def read() -> dict[TopicPartition, Fetched]:
            limit = min(max_records, 40)
            return {p: broker.log(*p).read(positions[p], limit, self._isolation) for p in partitions}

        fetched = await self._connection.request(read)
        if not any(found.records for found in fetched.values()):
            await asyncio.sleep(timeout_ms / MILLISECONDS_PER_SECOND)
        for place, found in fetched.items():
            self._positions[place] = found.position
        return {place: found.records for place, found in fetched.items() if found.records}

    def pause(self, *partitions: TopicPartition) -> None:
        """Nothing: a partition that is read to its end is not read further."""


class Committed(NamedTuple):
    """A committed offset."""

    offset: int


class SimulatedAdmin:
    """Simulates `AIOKafkaAdminClient`."""

    def __init__(self, connection: Connection, **_: object) -> None:
        self._connection = connection

    async def start(self) -> None:
        """Connect."""

    async def close(self) -> None:
        """Disconnect."""

    async def list_consumer_group_offsets(
        self, group: str, *, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, Committed]:
        """Give the group's committed offsets of these partitions, -1 where it has none."""
        broker = self._connection.broker

        def look() -> dict[TopicPartition, Committed]:
            found = broker.committed.get(group, {})
            return {place: Committed(found.get((place.topic, place.partition), -1)) for place in partitions}

        return await self._connection.request(look)
