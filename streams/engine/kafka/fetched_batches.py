"""Fetched records as aiokafka's C decoder makes them, straight from the answer's buffer.

aiokafka copies the answer several times and makes a Python object of each decoded record, which costs more than to
decode it. Here a record batch is decoded where it was received, its records are handed out as they are, and the
processor's own instruction computes its checksum. What is skipped, and where a reader stands after it, is as in
aiokafka: aborted transactions, control batches and compacted holes have no records, and still move the position.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from struct import Struct
from typing import TYPE_CHECKING, Final

import aiokafka.consumer.fetcher as aiokafka_fetcher
import crc32c
from aiokafka import errors as kafka_errors
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatch

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
MAGIC: Final = 2

_batch_length: Final = Struct(">i").unpack_from


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
    """

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
        self._newest = self._records[begin : self._at]
        if self._newest[MAGIC_AT] != MAGIC:
            raise kafka_errors.CorruptRecordException(
                f"a record batch has format {self._newest[MAGIC_AT]}, not {MAGIC}"
            )
        return DefaultRecordBatch(self._newest)

    def is_intact(self, batch: DefaultRecordBatch) -> bool:
        """Compare the newest batch with its checksum."""
        return bool(crc32c.crc32c(self._newest[CHECKED_FROM:]) == batch.crc)


class DecodedRecords(PartitionRecords):  # type: ignore[misc]  # aiokafka has no types
    """The records of one partition, as the decoder makes them. Takes the place of aiokafka's `PartitionRecords`.

    Attributes:
        next_fetch_offset: where a reader stands after what it has taken.
    """

    next_fetch_offset: int
    _records_iterator: Iterator[Record]

    def __next__(self) -> Record:
        """Take one record."""
        taken = self.take(1)
        if not taken:
            raise StopIteration
        return taken[0]

    def take(self, limit: int) -> list[Record]:
        """Take up to `limit` records, at least one is asked for; fewer come only where the end is reached."""
        taken = list(islice(self._records_iterator, limit))
        if len(taken) == limit:  # else all batches are over, and the reader stands behind the last one
            self.next_fetch_offset = taken[-1].offset + 1
        return taken

    def _unpack_records(self) -> Iterator[Record]:
        return chain.from_iterable(self._unpack_batches())

    def _unpack_batches(self) -> Iterator[Iterable[Record]]:
        """Give the records batch by batch; what comes after a batch is asked for when all of it was taken."""
        records, is_committed = self._records, self._isolation_level == READ_COMMITTED
        while records.has_next():
            batch = records.next_batch()
            if not records.is_intact(batch):
                raise kafka_errors.CorruptRecordException(f"{self._tp}: a record batch differs from its checksum")
            if is_committed and batch.producer_id >= 0:
                self._consume_aborted_up_to(batch.base_offset)
            if batch.is_control_batch:
                if is_committed and self._contains_abort_marker(batch):
                    self._aborted_producers.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in self._aborted_producers):
                position = self.next_fetch_offset
                if batch.base_offset >= position:
                    yield batch
                else:  # the position was sought
                    yield (record for record in batch if record.offset >= position)
            self.next_fetch_offset = batch.next_offset


class FetchedRecords(FetchResult):  # type: ignore[misc]  # aiokafka has no types
    """What one fetch has brought of one partition. Takes the place of aiokafka's `FetchResult`."""

    _partition_records: DecodedRecords | None

    def getall(self, max_records: int | None = None) -> list[Record]:
        """Take up to so many records; none if the position has changed meanwhile."""
        records = self._partition_records
        if records is None or not self.check_assignment(self._topic_partition):
            return []
        limit = sys.maxsize if max_records is None else max_records
        taken = records.take(limit)
        self._update_position()
        if len(taken) < limit:
            self._partition_records = None
        return taken


def use_fetched_batches() -> None:
    """Let the aiokafka consumers of this process decode what they fetch from now on as described here."""
    aiokafka_fetcher.MemoryRecords = FetchedBatches
    aiokafka_fetcher.PartitionRecords = DecodedRecords
    aiokafka_fetcher.FetchResult = FetchedRecords
