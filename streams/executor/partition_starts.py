"""Where reading of the partition begins: at the group's commit, or at a time."""

from __future__ import annotations

import time
from typing import Final

import structlog
from kafka import TopicPartition

from evictstream.streams.broker.group_membership import GroupConsumer
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.member_beats import read_beat

log = structlog.get_logger(__name__)

MILLISECONDS: Final = 1_000


class PartitionStarts:
    """Finds where a newly assigned partition begins. Used by one thread.

    Attributes:
        resets: how often the partition was read again by time, because it ended before the committed or read offset.
    """

    def __init__(self, consumer: GroupConsumer, *, start_us: int | None, oldest_seconds: float) -> None:
        """Begin at the commits of the consumer's group.

        Args:
            consumer: in its group.
            start_us: where the partition begins the first time, microseconds since 1970, whatever is committed; None to
                begin at its commit.
            oldest_seconds: how far back it begins without a usable commit.
        """
        self.resets = 0
        self._consumer = consumer
        self._start_us = start_us
        self._oldest_seconds = oldest_seconds
        self._readings = 0
        self._is_reset = False

    def begin(self, partition: TopicPartition, now: float) -> CommandsPartition:
        """Move the consumer to where the partition begins.

        Raises:
            KafkaError: Kafka does not answer where that is.
        """
        committed = self._consumer.committed(partition, metadata=True)
        end = self._consumer.end_offsets([partition])[partition]
        if committed is not None and committed.offset > end:
            self.note_reset(partition, committed.offset, end)
        is_forced = self._start_us is not None and not self._readings
        if committed is None or is_forced or self._is_reset:
            at_time = self._consumer.offsets_for_times({partition: self._start_ms(is_forced)})[partition]
            answered = AnsweredOffsets(end if at_time is None else at_time.offset)
        else:
            answered = AnsweredOffsets(committed.offset, read_beat(committed.metadata or "")[0])
        self._consumer.seek(partition, answered.first_open)
        self._consumer.resume(partition)  # it may have been paused before the process stalled
        self._readings += 1
        self._is_reset = False
        return CommandsPartition(
            partition, reading=self._readings, start=answered.first_open, answered=answered, end=end, now=now
        )

    def note_reset(self, partition: TopicPartition, reached: int, offset: int) -> None:
        """Have it begin by time: it was read or committed up to `reached`, and continues at an earlier offset.

        Kafka was restored, or a leader election has truncated the partition. Its offsets now belong to other commands,
        none of which counts as answered. Evictions that were done before get one more last look.
        """
        log.error(
            "partition ends before the offset that was read; commands of the last hour are read again",
            topic=partition.topic,
            partition=partition.partition,
            reached=reached,
            offset=offset,
        )
        self.resets += 1
        self._is_reset = True

    def _start_ms(self, is_forced: bool) -> int:  # noqa: FBT001 - one call, above
        if is_forced and self._start_us is not None:
            return max(self._start_us // 1_000, 0)
        return int((time.time() - self._oldest_seconds) * MILLISECONDS)
