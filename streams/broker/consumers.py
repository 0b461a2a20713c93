"""Consumers of kafka-python, the only ones that this project makes: what they read cannot exceed their memory.

The library decompresses a batch as far as it goes, and hands out as many records as are asked for, however large. Here
a batch is opened up to a bound, and what one poll returns is bounded in bytes too. What cannot be used is left out,
counted and said, and the reader stands behind it: one batch of anybody must not stop a reader.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeVar, cast

import structlog
from kafka import KafkaConsumer
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError, StaleMetadata, UnknownTopicOrPartitionError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch

from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.compression import Unusable, open_batch
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

_Isolation = Literal["read_committed", "read_uncommitted"]

_FETCHES_IN_ANSWER: Final = 2
"""How many full fetches of a partition one answer may hold; the library's 50 MiB are more than a feed needs in all."""

_SHARE_OF_A_POLL: Final = 4
"""A poll returns this part of what a batch may have, and what began it: small headers take 32 times their bytes."""

_QUESTIONS: Final = 2
"""For the partitions of a topic that is missing: an answer that is on its way to the first does not speak of it."""

_FORMAT: Final = 2
"""Of record batches; no broker since 0.11 has written an earlier one."""


def open_consumer(
    settings: Settings, *, isolation: _Isolation = "read_committed", is_of_inputs: bool = False, **more: Any
) -> BoundedConsumer:
    """Make a consumer that commits nothing by itself. Nothing but this and `open_as` constructs one.

    Args:
        settings: which Kafka, and how large a batch may be.
        isolation: what it reads.
        is_of_inputs: reads topics whose writers use no transactions: to their very ends, whatever somebody leaves
            open there, and without the records of transactions, of which a worker makes dead letters.
        more: as `KafkaConsumer` takes it.
    """
    return open_as(BoundedConsumer, settings, isolation=isolation, is_of_inputs=is_of_inputs, **more)


def open_as(
    kind: type[C],
    settings: Settings,
    *,
    isolation: _Isolation = "read_committed",
    is_of_inputs: bool = False,
    **more: Any,
) -> C:
    """Make a consumer of this kind, as `open_consumer` does."""
    arguments = {
        **client_arguments(settings),
        "enable_auto_commit": False,
        "isolation_level": "read_uncommitted" if is_of_inputs else isolation,
        "max_partition_fetch_bytes": settings.max_fetch_bytes,
        "fetch_max_bytes": _FETCHES_IN_ANSWER * settings.max_fetch_bytes,
        **more,
    }
    return kind(settings.largest_batch_bytes, refuses_transactions=is_of_inputs, **arguments)


C = TypeVar("C", bound="BoundedConsumer")


class BoundedConsumer(KafkaConsumer):  # type: ignore[misc] # the library has no types
    """A consumer whose batches are opened up to a bound; see `open_consumer`."""

    def __init__(self, limit_bytes: int, *, refuses_transactions: bool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._fetcher.__class__ = _BoundedFetcher
        self._fetcher.begin(limit_bytes, refuses_transactions)

    @property
    def left_out(self) -> int:
        """Count the records that could not be used."""
        count: int = self._fetcher.left_out
        return count

    def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partition numbers of a topic; none if it is missing.

        The library asks for all topics of this Kafka, which may have many thousands. From then on it knows them all,
        and the leader of a group takes a time that grows with their square to share out the one that is subscribed.

        Raises:
            KafkaError: this user may not see the topic, or no broker answers.
        """
        cluster = self._cluster
        for _ in range(_QUESTIONS):
            if cluster.partitions_for_topic(topic) is None:
                cluster.add_topic(topic)
                with contextlib.suppress(UnknownTopicOrPartitionError):
                    self._net.run(self._manager.wait_for, cluster.request_update(), None)
        found: set[int] | None = cluster.partitions_for_topic(topic)
        if found is None:
            cluster._topics.discard(topic)  # noqa: SLF001 - or the library asks for it again, each second
        return found or set()


class _BoundedFetcher(Fetcher):  # type: ignore[misc] # the library has no types
    def begin(self, limit_bytes: int, refuses_transactions: bool) -> None:  # noqa: FBT001 - one call, above
        self.limit_bytes, self.refuses_transactions = limit_bytes, refuses_transactions
        self.poll_bytes = limit_bytes // _SHARE_OF_A_POLL
        self.left_out = self.taken_bytes = 0

    def fetched_records(self, max_records: int | None = None, update_offsets: bool = True) -> Any:  # noqa: FBT001, FBT002
        self.taken_bytes = 0
        return super().fetched_records(max_records, update_offsets)

    async def _send_list_offsets_requests(self, timestamps: Any) -> Any:
        """Have who asks where partitions end look for their leaders. The library asks the leaders of before again.

        It does so without a pause, until the time is up, and so does each question after that.
        """
        found, moved = await super()._send_list_offsets_requests(timestamps)
        if moved:
            raise StaleMetadata
        return found, moved

    def PartitionRecords(self, offset: int, place: Any, records: Any, **more: Any) -> Any:  # noqa: N802 - the library's
        return _BoundedRecords(offset, place, _OpenedBatches(records, place, self), fetcher=self, **more)

    def _append(self, drained: Any, part: Any, max_records: int, update_offsets: bool) -> int:  # noqa: FBT001
        taken: int = super()._append(drained, part, max_records, update_offsets)
        return max_records if self.taken_bytes >= self.poll_bytes else taken


class _BoundedRecords(Fetcher.PartitionRecords):  # type: ignore[misc] # the library has no types
    """The records of one partition in an answer. One poll takes so many of them that their bytes keep the bound."""

    def __init__(self, *arguments: Any, fetcher: _BoundedFetcher, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._fetcher = fetcher

    def take(self, n: int | None = None) -> list[Any]:
        taken: list[Any] = []
        fetcher = self._fetcher
        while (
            self.record_iterator is not None
            and (n is None or len(taken) < n)
            and fetcher.taken_bytes < fetcher.poll_bytes
        ):
            before = self.bytes_read
            found = super().take(1)
            if not found:
                break
            taken += found
            fetcher.taken_bytes += self.bytes_read - before
        return taken


class _OpenedBatches:
    """The batches of one partition in an answer, each opened when its turn comes."""

    def __init__(self, records: MemoryRecords, place: Any, fetcher: _BoundedFetcher) -> None:
        self._records, self._place, self._fetcher = records, place, fetcher

    def has_next(self) -> bool:
        return bool(self._records.has_next())

    def size_in_bytes(self) -> int:
        return int(self._records.size_in_bytes())

    def next_batch(self) -> _OpenedBatch | None:
        batch = self._records.next_batch()
        if batch is None:
            return None
        if not isinstance(batch, DefaultRecordBatch):
            raise CorruptRecordError(f"{self._place}: a record batch has another format than {_FORMAT}")
        return _OpenedBatch(batch._buffer, self._place, self._fetcher)  # noqa: SLF001 - the library's


class _OpenedBatch(DefaultRecordBatch):  # type: ignore[misc] # the library has no types
    """A batch that ends early instead of raising: its records from there on are left out."""

    _buffer: bytearray
    _decompressed: bool
    _num_records: int

    def __init__(self, buffer: bytearray, place: Any, fetcher: _BoundedFetcher) -> None:
        super().__init__(buffer)
        self._place, self._fetcher, self._next = place, fetcher, self.base_offset

    def _maybe_uncompress(self) -> None:
        if self._decompressed:
            return
        if self._fetcher.refuses_transactions and self.is_transactional and not self.is_control_batch:
            self._leave_out(Unusable.TRANSACTIONAL)
        elif self.compression_type:
            opened = open_batch(memoryview(self._buffer), self._fetcher.limit_bytes)
            if isinstance(opened, Unusable):
                self._leave_out(opened)
            else:
                self._buffer = cast("bytearray", opened.obj)
        self._decompressed = True

    def __iter__(self) -> Iterator[Any]:
        self._maybe_uncompress()
        return self

    def __next__(self) -> Any:
        self._maybe_uncompress()
        if self._next_record_index >= self._num_records:
            raise StopIteration
        try:
            record = super().__next__()
        except CorruptRecordError:
            self._leave_out(Unusable.BAD_BATCH)
            raise StopIteration from None
        self._next = record.offset + 1
        return record

    def _leave_out(self, why: Unusable) -> None:
        first, last = self._next, self.last_offset
        self._num_records = 0
        self._fetcher.left_out += max(1, last - first + 1)
        log.warning(
            "unusable records skipped",
            topic=self._place.topic,
            partition=self._place.partition,
            first=first,
            last=last,
            reason=str(why),
            limit_bytes=self._fetcher.limit_bytes,
        )
