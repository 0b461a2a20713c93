"""Transactions by KIP-890 (`transaction.version` 2, Kafka 4.0 and later): one Produce for each leader, then EndTxn.

A Produce adds its partitions to the transaction by itself. EndTxn changes the producer's epoch: a request that arrives
after the end of its transaction names an epoch that is over, and brokers refuse it. So what has no answer is asked
again: Produce, since brokers know a batch by its sequence number, and EndTxn, since the coordinator knows how that
epoch has ended. Without KIP-890 the second would be wrong (see `transactional_producer`). docs/specification.md has
both protocols as a model.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import ConnectionGroup, CoordinationType
from aiokafka.producer.transaction_manager import PidAndEpoch
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from evictstream.streams.engine.kafka.connection import BULK_SECONDS
from evictstream.streams.engine.kafka.transaction_requests import EndTransaction, TransactionalProduce

if TYPE_CHECKING:
    from aiokafka.producer.sender import Sender

    from evictstream.streams.engine.core.outbox import Headers

_T = TypeVar("_T")

BatchEntry = tuple[bytes, bytes | None, "Headers"]
"""Key, value and headers of a record."""

AGAIN_SECONDS: Final = 0.1
"""Before a request is repeated; aiokafka's `retry_backoff_ms`."""

MARKERS_SECONDS: Final = 0.005
"""Before it is repeated because markers of the last transaction are still being written. The broker has waited too."""

_MAGIC: Final = 2
SEQUENCE_NUMBERS: Final = 2**31

PRODUCER_FENCED: Final = 90
"""The coordinator's code for an epoch that is over, which aiokafka 0.14.0 does not know."""

NO_OFFSET: Final = -1
NO_LEADER: Final = -1

APPENDED: Final = (kafka_errors.NoError, kafka_errors.DuplicateSequenceNumber)

# What another leader, or the same one a little later, takes. All else is final for a transaction.
PASSING: Final = (
    kafka_errors.NotLeaderForPartitionError,
    kafka_errors.LeaderNotAvailableError,
    kafka_errors.UnknownTopicOrPartitionError,
    kafka_errors.RequestTimedOutError,
    kafka_errors.NotEnoughReplicasError,
    kafka_errors.NotEnoughReplicasAfterAppendError,
    kafka_errors.KafkaStorageError,
    kafka_errors.CoordinatorLoadInProgressError,
    kafka_errors.CoordinatorNotAvailableError,
    kafka_errors.NotCoordinatorError,
    kafka_errors.ConcurrentTransactions,
)


class Appended(NamedTuple):
    """Where and when a broker has appended a batch; -1 where it already had it, or has no `LogAppendTime`."""

    offset: int
    timestamp: int


class TransactionsV2:
    """The transactions of one producer, whose id and epoch aiokafka has asked for.

    Each call tries again until it succeeds or an answer is final: its caller limits the time, and never uses a producer
    again that has failed. All calls raise `KafkaError`.
    """

    def __init__(self, sender: Sender, batch_bytes: int) -> None:
        """Make batches of at most `batch_bytes`; a larger record has one of its own."""
        self._sender, self._client, self._epochs = sender, sender.client, sender._txn_manager  # noqa: SLF001 - as below
        self._id: str = self._epochs.transactional_id
        self._batch_bytes = batch_bytes
        self._sequences: dict[str, int] = {}

    async def append(self, partition: int, contents: Mapping[str, Iterable[BatchEntry]]) -> list[Appended]:
        """Append entries, by topic, to this partition number; returns what is known of each batch, in their order."""
        packings = {topic: packed(entries, self._batch_bytes) for topic, entries in contents.items()}
        appended: list[Appended] = []
        while batches := {topic: batch for topic, batches in packings.items() if (batch := next(batches, None))}:
            # A Produce takes one batch for each partition.
            sealed = {topic: self._sealed(topic, *batch) for topic, batch in batches.items()}
            appended += await self._append_batches(partition, sealed)
        return appended

    def _sealed(self, topic: str, batch: DefaultRecordBatchBuilder, records: int) -> bytearray:
        sequence = self._sequences.get(topic, 0)
        self._sequences[topic] = (sequence + records) % SEQUENCE_NUMBERS
        batch.set_producer_state(self._epochs.producer_id, self._epochs.producer_epoch, sequence)
        built: bytearray = batch.build()
        return built

    async def _append_batches(self, partition: int, batches: Mapping[str, bytearray]) -> list[Appended]:
        appended: dict[str, Appended] = {}
        while True:
            missing = {topic: batch for topic, batch in batches.items() if topic not in appended}
            by_leader: dict[int, dict[str, bytearray]] = {}
            for topic, batch in missing.items():
                by_leader.setdefault(await self._leader(TopicPartition(topic, partition)), {})[topic] = batch
            asked = [self._produce(leader, partition, part, appended) for leader, part in by_leader.items()]
            # A task for each leader only where there are several: most transactions have one.
            pauses_seconds = [await asked[0]] if len(asked) == 1 else await all_of(asked)
            if len(appended) == len(batches):
                return [appended[topic] for topic in batches]
            await asyncio.sleep(max(pauses_seconds))
            if max(pauses_seconds) == AGAIN_SECONDS:
                await self._client.force_metadata_update()

    async def _leader(self, place: TopicPartition) -> int:
        while True:
            leader = self._client.cluster.leader_for_partition(place)
            if leader is None:
                await self._client._wait_on_metadata(place.topic)  # noqa: SLF001 - there is no public way
            elif leader == NO_LEADER:
                await asyncio.sleep(AGAIN_SECONDS)
                await self._client.force_metadata_update()
            else:
                return int(leader)

    async def _produce(
        self, leader: int, partition: int, batches: Mapping[str, bytearray], appended: dict[str, Appended]
    ) -> float:
        """Ask one leader, add what it has appended, and return how long to wait before asking for what is missing."""
        request = TransactionalProduce(self._id, int(BULK_SECONDS * 1000), partition, batches)
        try:
            answer = await self._client.send(leader, request)
        except kafka_errors.IncompatibleBrokerVersion:
            raise
        except kafka_errors.KafkaError:
            return AGAIN_SECONDS
        pause_seconds = MARKERS_SECONDS
        for topic in answer.responses:
            for found in topic.partition_responses:
                error = _error_of(found.error_code)
                if error in APPENDED:
                    offset = NO_OFFSET if found.error_code else found.base_offset
                    appended[topic.name] = Appended(offset, found.log_append_time_ms)
                elif error not in PASSING:
                    raise error(topic.name)
                elif error is not kafka_errors.ConcurrentTransactions:
                    pause_seconds = AGAIN_SECONDS
        return pause_seconds

    async def end(self, *, commit: bool) -> bool:
        """Commit or abort what has been appended; afterwards id and epoch are those of the next transaction.

        Returns whether it was asked for more than once.
        """
        is_again = False
        while (answer := await self._ask_for_end(commit=commit)) is None:
            is_again = True
            await asyncio.sleep(AGAIN_SECONDS)
        self._epochs._pid_and_epoch = PidAndEpoch(answer.producer_id, answer.producer_epoch)  # noqa: SLF001
        self._sequences.clear()
        return is_again

    async def _ask_for_end(self, *, commit: bool) -> Any | None:
        """Ask once; `None` where it has to be asked again."""
        node = await self._sender._find_coordinator(CoordinationType.TRANSACTION, self._id)  # noqa: SLF001
        request = EndTransaction(self._id, self._epochs.producer_id, self._epochs.producer_epoch, commit)
        try:
            answer = await self._client.send(node, request, group=ConnectionGroup.COORDINATION)
        except kafka_errors.IncompatibleBrokerVersion:
            raise
        except kafka_errors.KafkaError:
            error: type[Exception] = kafka_errors.NotCoordinatorError
        else:
            error = _error_of(answer.error_code)
            if error is kafka_errors.NoError:
                return answer
        if error not in PASSING:
            raise error(self._id)
        if error in {kafka_errors.NotCoordinatorError, kafka_errors.CoordinatorNotAvailableError}:
            self._sender._coordinator_dead(CoordinationType.TRANSACTION)  # noqa: SLF001
        return None


def _error_of(code: int) -> type[Exception]:
    return kafka_errors.ProducerFenced if code == PRODUCER_FENCED else kafka_errors.for_code(code)  # type: ignore[no-any-return]


async def all_of(asked: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Wait until all have ended, then return what they return or raise the first error."""
    ended = await asyncio.gather(*asked, return_exceptions=True)
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return [one for one in ended if not isinstance(one, BaseException)]


def packed(entries: Iterable[BatchEntry], batch_bytes: int) -> Iterator[tuple[DefaultRecordBatchBuilder, int]]:
    """Pack entries into record batches of at most so many bytes; a larger record has a batch of its own.

    Yields each batch with its number of records. The time of all records is now: topics have `LogAppendTime`.
    """
    at_ms = int(time.time() * 1000)
    batch, records = _new_batch(batch_bytes), 0
    append = batch.append
    for key, value, headers in entries:
        if append(records, at_ms, key, value, headers) is None:
            yield batch, records
            batch, records = _new_batch(batch_bytes), 0
            append = batch.append
            append(0, at_ms, key, value, headers)
        records += 1
    if records:
        yield batch, records


def _new_batch(batch_bytes: int) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=0,
        is_transactional=1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=0,
        batch_size=batch_bytes,
    )
