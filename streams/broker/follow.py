"""Follow a topic: all its partitions, from a place in time, as a `read_committed` reader without a group.

Nothing is committed, and other readers are not affected. Partitions that are added meanwhile are not noticed. While
Kafka does not answer, the reader waits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

from kafka import TopicPartition

from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.settings import Settings

_POLL_SECONDS = 0.25
"""Longest wait for records at a time, and so how long a stop is not noticed."""

Start: TypeAlias = Literal["beginning", "now"] | dt.datetime
"""Where to begin: with the oldest record kept, behind the newest, or with the first that is not older than an instant
(which must have a zone)."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRecord:
    """One record.

    Attributes:
        partition: number of its partition.
        offset: within the partition.
        timestamp_ms: its time in milliseconds since 1970: set by the producer or the broker, as the topic says.
        key: as it came.
        value: as it came.
        headers: by name.
    """

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]

    @property
    def place(self) -> str:
        """Partition and offset, for people."""
        return f"partition {self.partition}, offset {self.offset}"


@contextlib.contextmanager
def follow(
    settings: Settings,
    topic: str,
    start: Start | Mapping[int, int],
    *,
    is_stopped: Callable[[], bool],
    idle_seconds: float | None = None,
    tells_idle: bool = False,
) -> Iterator[Iterator[list[FollowedRecord]]]:
    """Find the start in each partition, then yield records as they come, in batches.

    The records of a batch are sorted by time; across batches only the order within a partition holds.

    Args:
        settings: which Kafka.
        topic: its full name.
        start: where to begin; found before this returns, so what is written afterwards is not missed. Or an offset for
            each partition; one that has none is not read.
        is_stopped: asked several times a second; ends it.
        idle_seconds: after that long without a record it ends by itself, but not before it has read to the end: a slow
            broker is no idle topic.
        tells_idle: gives an empty batch several times a second while nothing comes.

    Raises:
        BrokerUnreachableError: no broker answered in time.
        BrokerRefusedError: Kafka refused. While following, too.
        TopicsDifferError: the topic is missing.
    """
    numbers = readable_partitions(settings, topic)
    wanted = start if isinstance(start, Mapping) else numbers
    partitions = [TopicPartition(topic, number) for number in numbers if number in wanted]
    with contextlib.ExitStack() as stack:
        with our_errors(settings, f"read {topic}"):
            consumer = open_consumer(
                settings,
                is_of_inputs=topic in settings.input_topics,
                group_id=None,
                auto_offset_reset="earliest",  # if records expire before they are read
            )
            stack.callback(consumer.close)
            consumer.assign(partitions)
            for partition, offset in _places(consumer, partitions, start).items():
                consumer.seek(partition, offset)
        yield _batches(settings, consumer, partitions, is_stopped, idle_seconds, tells_idle=tells_idle)


def _places(
    consumer: Any, partitions: list[TopicPartition], start: Start | Mapping[int, int]
) -> Mapping[TopicPartition, int]:
    offsets: Mapping[TopicPartition, int]
    if start == "beginning":
        offsets = consumer.beginning_offsets(partitions)
        return offsets
    if isinstance(start, Mapping):
        return {partition: start[partition.partition] for partition in partitions}
    # To a read_committed reader the end is before the first open transaction: its commands are still to come.
    offsets = consumer.end_offsets(partitions)
    if start == "now":
        return offsets
    at_ms = int(start.timestamp() * 1000)
    later = consumer.offsets_for_times(dict.fromkeys(partitions, at_ms))
    return {
        partition: end if later[partition] is None else later[partition].offset for partition, end in offsets.items()
    }


def _batches(
    settings: Settings,
    consumer: Any,
    partitions: list[TopicPartition],
    is_stopped: Callable[[], bool],
    idle_seconds: float | None,
    *,
    tells_idle: bool,
) -> Iterator[list[FollowedRecord]]:
    doing = f"read {partitions[0].topic}"
    latest_at = time.monotonic()
    while not is_stopped():
        with our_errors(settings, doing):
            polled = consumer.poll(timeout_ms=int(_POLL_SECONDS * 1000))
        records = [
            FollowedRecord(
                partition=record.partition,
                offset=record.offset,
                timestamp_ms=record.timestamp,
                key=record.key,
                value=record.value,
                headers=dict(record.headers),
            )
            for batch in polled.values()
            for record in batch
        ]
        if records:
            yield sorted(records, key=lambda record: (record.timestamp_ms, record.partition, record.offset))
            latest_at = time.monotonic()
        elif tells_idle:
            yield []
        elif idle_seconds is not None and time.monotonic() - latest_at >= idle_seconds:
            with our_errors(settings, doing):
                ends = consumer.end_offsets(partitions)
                if all(consumer.position(partition) >= end for partition, end in ends.items()):
                    return
            latest_at = time.monotonic()
