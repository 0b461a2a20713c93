"""Reading rows back: whole batches straight into the logic, until the position has reached the end.

Faust's recovery ends only when it has seen a record at the last offset, and so waits forever on a changelog that ends
in transaction markers or compacted tombstones. Here a partition is done when the consumer's position has reached the
end offset. Readers are `read_committed`; a takeover fences the previous owner first, so no open transaction can hide
rows behind the last stable offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.batches import UnusableRecord
from evictstream.streams.engine.core.ports import ReadRows, RowSink
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.engine.kafka.errors import translated_errors
from evictstream.streams.errors import StateUnreadableError

if TYPE_CHECKING:
    from types import TracebackType

    from aiokafka import ConsumerRecord

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ports import Clock, Isolation, Place

_POLL_MS = 200
MAX_RECORDS = 5_000  # rows fetched at once: about 10 ms
ROWS_IN_SLICE = 16  # a row may be half a millisecond of work
_SLICE_SECONDS = (
    0.002  # longest time without letting other tasks run: the worker goes on with the partitions that it has
)


class KafkaLogReader:
    """A consumer without a group: reads changelog partitions, and asks for offsets and records of any partition.

    Use as an asynchronous context manager; it lives only as long as a takeover. Raises `KafkaClientError`.
    """

    def __init__(
        self,
        config: EngineConfig,
        on_progress: Callable[[], None] = lambda: None,
        *,
        isolation: Isolation = "read_committed",
        clock: Clock = SYSTEM_CLOCK,
        new_consumer: Callable[..., Any] = StoppableConsumer,
    ) -> None:
        """`on_progress` is called each time that rows have come."""
        self._config = config
        self._on_progress = on_progress
        self._monotonic = clock.monotonic
        self._consumer = new_consumer(
            bootstrap_servers=config.bootstrap_servers,
            client_id=f"{config.application}-recovery",
            isolation_level=isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=config.max_fetch_bytes,
            largest_batch_bytes=config.largest_batch_bytes,
            fetch_max_wait_ms=_POLL_MS,
            **config.security,
        )

    async def __aenter__(self) -> Self:
        """Connect."""
        with translated_errors():
            try:
                await self._consumer.start()
            except BaseException as error:
                await self._consumer.stop()
                if isinstance(error, AssertionError):  # a broker that has just come back named no broker at all
                    raise kafka_errors.KafkaConnectionError(str(error)) from error
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def starts_and_ends(self, places: list[Place]) -> dict[Place, tuple[int, int]]:
        """First offset of partitions, and the next one as `ends` has it."""
        ends = await self.ends(places)
        with translated_errors():
            starts = await self._consumer.beginning_offsets([TopicPartition(*place) for place in places])
        return {(p.topic, p.partition): (start, ends[p.topic, p.partition]) for p, start in starts.items()}

    async def ends(self, places: list[Place]) -> dict[Place, int]:
        """Next offset of partitions: the last stable one, or, for `read_uncommitted`, the very last."""
        with translated_errors():
            await self._consumer.learn(topic for topic, _ in places)
            ends = await self._consumer.end_offsets([TopicPartition(*place) for place in places])
        return {(p.topic, p.partition): end for p, end in ends.items()}

    async def records(self, place: Place, start: int, end: int) -> list[ConsumerRecord]:
        """Read a short stretch of one partition."""
        partition = TopicPartition(*place)
        records: list[ConsumerRecord] = []
        with translated_errors():
            self._consumer.assign([partition])
            self._consumer.seek(partition, start)
            while await self._consumer.position(partition) < end:
                fetched = await self._consumer.getmany(partition, timeout_ms=_POLL_MS, max_records=MAX_RECORDS)
                records += (record for record in fetched.get(partition, ()) if record.offset < end)
        return records

    async def read_rows(self, sinks: Mapping[int, RowSink]) -> dict[int, ReadRows]:
        """Feed all rows of the changelog's partitions to their sinks; returns by partition what was read.

        Not bounded in time: a large state simply takes longer. Cancel it to stop. Raises `StateUnreadableError` where
        something is no row: somebody else has written to the changelog.
        """
        partitions = {TopicPartition(self._config.changelog, number): sink for number, sink in sinks.items()}
        if not partitions:
            return {}
        with translated_errors():
            return await self._read_rows(partitions)

    async def _read_rows(self, partitions: Mapping[TopicPartition, RowSink]) -> dict[int, ReadRows]:
        self._consumer.assign(list(partitions))
        await self._consumer.seek_to_beginning(*partitions)
        ends = await self._consumer.end_offsets(list(partitions))
        counts = {partition.partition: 0 for partition in partitions}
        unread = {p for p in partitions if await self._consumer.position(p) < ends[p]}
        while unread:
            fetched = await self._consumer.getmany(*unread, timeout_ms=_POLL_MS, max_records=MAX_RECORDS)
            yielded_at = self._monotonic()
            if fetched:
                self._on_progress()
            for partition, records in fetched.items():
                sink = partitions[partition]
                for start in range(0, len(records), ROWS_IN_SLICE):
                    for record in records[start : start + ROWS_IN_SLICE]:
                        key = record.key
                        if key is None:
                            raise StateUnreadableError(
                                changelog=partition.topic,
                                partition=partition.partition,
                                offset=record.offset,
                                reason=record.detail if isinstance(record, UnusableRecord) else "a row has no key",
                            )
                        sink(key, record.value)
                    if self._monotonic() - yielded_at > _SLICE_SECONDS:
                        await asyncio.sleep(0)
                        yielded_at = self._monotonic()
                counts[partition.partition] += len(records)
            for partition in list(unread):
                if await self._consumer.position(partition) >= ends[partition]:
                    unread.discard(partition)
                    self._consumer.pause(partition)
        return {
            number: ReadRows(rows, ends[TopicPartition(self._config.changelog, number)])
            for number, rows in counts.items()
        }
