"""Commits of a consumer group: where reading of each partition continues, and which later commands are answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata

from evictstream.streams.broker.group_membership import GroupConsumer
from evictstream.streams.executor.commands_partition import CommandsPartition

SECONDS: Final = 1.0
"""Between two commits."""


class GroupCommits:
    """Commits the partitions that have changed since their last commit. Used by one thread."""

    def __init__(self, consumer: GroupConsumer, topic: str, partitions: Mapping[int, CommandsPartition]) -> None:
        """Take the consumer's partitions, by number, as it keeps them."""
        self._consumer = consumer
        self._topic = topic
        self._partitions = partitions
        self._due_at = 0.0

    def send(self, now: float) -> None:
        """Commit all partitions that have changed, once a second. One that Kafka refuses is committed the next time."""
        if now < self._due_at:
            return
        self._due_at = now + SECONDS
        changed = self._changed(self._partitions)
        if changed:
            self._consumer.commit_async(changed, callback=self._answered)

    def finish(self, numbers: Iterable[int], timeout_seconds: float) -> None:
        """Commit some partitions, and wait for it.

        Raises:
            KafkaError: it was refused, or took longer.
        """
        changed = self._changed(numbers)
        if changed:
            self._consumer.commit(changed, timeout_ms=timeout_seconds * 1000)

    def _changed(self, numbers: Iterable[int]) -> dict[TopicPartition, OffsetAndMetadata]:
        changed = {}
        for number in numbers:
            commit = self._partitions[number].take_commit()
            if commit is not None:
                changed[TopicPartition(self._topic, number)] = OffsetAndMetadata(*commit, -1)
        return changed

    def _answered(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], response: object) -> None:
        if isinstance(response, Exception):
            for partition in offsets:
                if partition.partition in self._partitions:
                    self._partitions[partition.partition].forget_commit()
