"""Fetched records as aiokafka's C decoder makes them, straight from the answer's buffer.

aiokafka copies the answer several times and makes a Python object of each decoded record, which costs more than to
decode it. Here a record batch is decoded where it was received, its records are handed out as they are, and the
processor's own instruction computes its checksum. What is skipped, and where a reader stands after it, is as in
aiokafka: aborted transactions, control batches and compacted holes have no records, and still move the position.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from itertools import chain, islice
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import aiokafka.consumer.fetcher as aiokafka_fetcher
import crc32c
from aiokafka import errors as kafka_errors
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatch

from evictstream.streams.compression import RECORDS_AT, Unusable, open_batch
from evictstream.streams.engine.core.batches import UnusableRecord

if TYPE_CHECKING:
    from evictstream.streams.engine.core.batches import Record

LONGEST_COPY: Final = 4096
"""Shorter parts of an answer are copied: names and numbers, which are decoded as `bytes`."""

LENGTH_AT: Final = 8
BATCH_OVERHEAD: Final = 12
"""Base offset and length, which the length does not count."""

SHORTEST_BATCH: Final = 61
"""Header of a batch without records."""

CHECKED_FROM: Final = 21
"""The checksum begins behind itself."""

MAGIC_AT: Final = 16
_MAGIC: Final = 2

UNUSUAL: Final = 0b1_0111
"""Attributes of a batch that is compressed, or of a transaction."""

_SHARE_OF_A_POLL: Final = 4
"""A poll opens no further compressed batch once it has expanded this part of what one may have: a dozen polls wait in
the agents' queues, and those of different partitions must not add up to the memory of a worker."""

UNSAID_LIMIT_BYTES: Final = 8 * 1024 * 1024
"""For consumers of others in this process, which say none: tests and benches."""

MOST_NAMED: Final = 1_000
"""Records of one batch that get a dead letter each, if it cannot be opened: its header may claim millions."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd", "codec 5", "codec 6", "codec 7")

_headers: Final = attrgetter("headers")
_batch_length: Final = Struct(">i").unpack_from


class _DamagedBatchError(kafka_errors.CorruptRecordException):  # type: ignore[misc]  # aiokafka has no types
    """A batch is not as a broker has stored it, unlike one whose content was never right."""


class AnswerParts:
    """An answer as aiokafka's decoders read it: like `BytesIO`, but long parts are views of it."""

    def __init__(self, answer: bytearray) -> None:
        self._answer, self._at = memoryview(answer), 0

    def read(self, size: int) -> bytes | memoryview:
        """Return the next part."""
        part = self._answer[self._at : self._at + size]
        self._at += len(part)
        return part if len(part) > LONGEST_COPY else part.tobytes()


class FetchedBatches:
    """The record batches of one partition in an answer. The last one is left out if it is cut.

    Takes the place of aiokafka's `MemoryRecords`.

    Attributes:
        newest: the bytes of the batch that was returned last.
    """

    newest: memoryview

    def __init__(self, records: bytes | memoryview) -> None:
        self._records, self._at = memoryview(records), 0

    def size_in_bytes(self) -> int:
        """Count bytes, those of a cut batch too."""
        return len(self._records)

    def has_next(self) -> bool:
        """Tell whether a whole batch is left."""
        left = len(self._records) - self._at
        if left < SHORTEST_BATCH:
            return False
        (length,) = _batch_length(self._records, self._at + LENGTH_AT)
        return left >= BATCH_OVERHEAD + int(length)

    def next_batch(self) -> DefaultRecordBatch:
        """Return the next batch.

        Raises:
            CorruptRecordException: no broker since 0.11 has written it.
        """
        begin = self._at
        self._at += BATCH_OVERHEAD + _batch_length(self._records, begin + LENGTH_AT)[0]
        self.newest = self._records[begin : self._at]
        if self.newest[MAGIC_AT] != _MAGIC:
            raise _DamagedBatchError(f"a record batch has format {self.newest[MAGIC_AT]}, not {_MAGIC}")
        return DefaultRecordBatch(self.newest)

    def is_intact(self, batch: DefaultRecordBatch) -> bool:
        """Compare the newest batch with its checksum."""
        return bool(crc32c.crc32c(self.newest[CHECKED_FROM:]) == batch.crc)


class HeaderlessRecord(NamedTuple):
    """A record of an input."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class BatchReading:
    """How one consumer reads, and what its running poll has expanded so far.

    Attributes:
        limit_bytes: most that a batch may have without compression.
        poll_bytes: a poll that has expanded more opens no further batch, of whichever partition.
        refuses_transactions: the topics are written without transactions, and records of one are left out.
        expanded_bytes: what the running poll has expanded.
    """

    __slots__ = ("expanded_bytes", "limit_bytes", "poll_bytes", "refuses_transactions")

    def __init__(self, limit_bytes: int, *, refuses_transactions: bool = False) -> None:
        self.limit_bytes = limit_bytes
        self.poll_bytes = limit_bytes // _SHARE_OF_A_POLL
        self.refuses_transactions = refuses_transactions
        self.expanded_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the running poll may expand no more."""
        return self.expanded_bytes > self.poll_bytes


# Of the consumer that runs in this task, since aiokafka's fetcher hands nothing to the classes that it makes.
READING: Final[ContextVar[BatchReading]] = ContextVar("READING")


class DecodedRecords(PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """The records of one partition, as the decoder makes them. Takes the place of aiokafka's `PartitionRecords`.

    Attributes:
        next_fetch_offset: where a reader stands after what it has taken.
        is_over: whether all records were taken.
    """

    next_fetch_offset: int
    is_over = False
    _records_iterator: Iterator[Record]
    _newest_batch: Any = None

    def __next__(self) -> Record:
        """Take one record."""
        taken = self.take(1)
        if not taken:
            raise StopIteration
        return taken[0]

    def take(self, limit: int) -> list[Record]:
        """Take up to `limit` records, fewer where the end is reached, or the poll has expanded as much as it may."""
        taken: list[Record] = []
        while True:
            try:
                taken.extend(islice(self._records_iterator, limit - len(taken)))  # keeps what came before an error
            except _DamagedBatchError:
                raise
            except (kafka_errors.CorruptRecordException, ValueError) as error:
                self._records_iterator = chain(self._rest(taken, error), self._unpack_records())
                continue
            if len(taken) == limit:  # else all batches that were opened are over, and the reader stands behind them
                self.next_fetch_offset = taken[-1].offset + 1
            elif self._records.has_next():
                self._records_iterator = self._unpack_records()
                if not _reading().is_full:
                    continue
            else:
                self.is_over = True
            return without_headers(taken) if _reading().refuses_transactions and any(map(_headers, taken)) else taken

    def _unpack_records(self) -> Iterator[Record]:
        return chain.from_iterable(self._unpack_batches())

    def _unpack_batches(self) -> Iterator[Iterable[Record]]:
        """Give the records batch by batch; what comes after a batch is asked for when all of it was taken."""
        records, is_committed = self._records, self._isolation_level == READ_COMMITTED
        reading = _reading()
        while records.has_next() and not reading.is_full:
            batch = records.next_batch()
            if not records.is_intact(batch):
                raise _DamagedBatchError(f"{self._tp}: a record batch differs from its checksum")
            if is_committed and batch.producer_id >= 0:
                self._consume_aborted_up_to(batch.base_offset)
            if batch.is_control_batch:
                if is_committed and self._contains_abort_marker(batch):
                    self._aborted_producers.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in self._aborted_producers):
                self._newest_batch = batch
                found = self._opened(batch, records.newest) if batch.attributes & UNUSUAL else batch
                position = self.next_fetch_offset
                if batch.base_offset >= position:
                    yield found
                else:  # the position was sought
                    yield (record for record in found if record.offset >= position)
            self.next_fetch_offset = batch.next_offset

    def _opened(self, batch: DefaultRecordBatch, raw: memoryview) -> Iterable[Record]:
        """Return the records of a batch that is compressed, or of a transaction."""
        reading = _reading()
        opened = open_batch(raw, reading.limit_bytes)
        if isinstance(opened, Unusable):
            reading.expanded_bytes += reading.limit_bytes
            wrong = f"has more than {reading.limit_bytes}" if opened is Unusable.OVERSIZED else "has unreadable"
            detail = (
                f"a batch with the offsets {batch.base_offset} to {batch.next_offset - 1} {wrong} bytes "
                f"without its compression ({CODECS[batch.compression_type]})"
            )
            return _unusable(batch, batch.base_offset, opened, detail=detail, content=bytes(raw[RECORDS_AT:]))
        if opened is not raw:
            reading.expanded_bytes += len(opened)
            batch = DefaultRecordBatch(opened)
        if reading.refuses_transactions and batch.is_transactional:
            return (_transactional(record) for record in batch)
        return cast("Iterable[Record]", batch)

    def _rest(self, taken: list[Record], error: Exception) -> Iterator[Record]:
        """Stand for what is left of the newest batch, whose records are not well-formed from here on."""
        batch = self._newest_batch
        first = batch.base_offset
        if taken:
            first = max(first, taken[-1].offset + 1)
        first = max(first, self.next_fetch_offset)
        detail = f"records {first} to {batch.next_offset - 1} of a batch are not well-formed: {error}"
        yield from _unusable(batch, first, Unusable.BAD_BATCH, detail=detail)
        self.next_fetch_offset = batch.next_offset


def without_headers(records: list[Record]) -> list[Record]:
    """Return the records of an input without headers, which it has no use for: many small ones take much memory."""
    return [
        record
        if isinstance(record, UnusableRecord)
        else HeaderlessRecord(record.offset, record.timestamp, record.key, record.value)
        for record in records
    ]


def _reading() -> BatchReading:
    return READING.get(None) or BatchReading(UNSAID_LIMIT_BYTES)


def _unusable(
    batch: DefaultRecordBatch, first: int, reason: Unusable, *, detail: str, content: bytes | None = None
) -> Iterator[UnusableRecord]:
    """Stand for the records of a batch from an offset on; the first one has the content."""
    for offset in range(first, min(batch.next_offset, first + MOST_NAMED)):
        yield UnusableRecord(offset, batch.max_timestamp, reason, detail, content=content if offset == first else None)


def _transactional(record: Record) -> UnusableRecord:
    return UnusableRecord(
        record.offset,
        record.timestamp,
        Unusable.TRANSACTIONAL,
        "inputs are written without transactions",
        content_key=record.key,
        content=record.value,
    )


class FetchedRecords(FetchResult):  # type: ignore[misc]  # aiokafka has no types
    """What one fetch has brought of one partition. Takes the place of aiokafka's `FetchResult`."""

    _partition_records: DecodedRecords | None

    def getall(self, max_records: int | None = None) -> list[Record]:
        """Take up to so many records; none if the position has changed meanwhile."""
        records = self._partition_records
        if records is None or not self.check_assignment(self._topic_partition):
            return []
        taken = records.take(sys.maxsize if max_records is None else max_records)
        self._update_position()
        if records.is_over:
            self._partition_records = None
        return taken


def use_fetched_batches() -> None:
    """Let the aiokafka consumers of this process decode what they fetch from now on as described here."""
    aiokafka_fetcher.MemoryRecords = FetchedBatches
    aiokafka_fetcher.PartitionRecords = DecodedRecords
    aiokafka_fetcher.FetchResult = FetchedRecords
