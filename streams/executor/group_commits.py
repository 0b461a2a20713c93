"""Commits of a consumer group: where reading of the partition continues, and which later commands are answered."""

from __future__ import annotations

import time
from typing import Final

from kafka import TopicPartition
from kafka.errors import RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from evictstream.streams.broker.group_membership import GroupConsumer, finish_joining
from evictstream.streams.executor.commands_partition import CommandsPartition

SECONDS: Final = 1.0
"""Between two commits."""

_JOIN_POLL_MS: Final = 100
"""Between two tries of the last commit while the group rebalances."""


class GroupCommits:
    """Commits what has changed since the last commit. Used by one thread."""

    def __init__(self, consumer: GroupConsumer) -> None:
        self._consumer = consumer
        self._due_at = 0.0

    def send(self, partition: CommandsPartition, now: float) -> None:
        """Commit once a second, if anything has changed. What Kafka refuses is committed the next time."""
        if now < self._due_at:
            return
        self._due_at = now + SECONDS
        changed = _changed(partition)

        def answered(_: object, response: object) -> None:
            if isinstance(response, Exception):
                partition.forget_commit()

        if changed:
            self._consumer.commit_async(changed, callback=answered)

    def finish(self, partition: CommandsPartition, timeout_seconds: float) -> None:
        """Commit, and wait for it; while the group rebalances, until this member has joined again.

        Raises:
            KafkaError: it was refused, or took longer.
        """
        end_at = time.monotonic() + timeout_seconds
        changed = _changed(partition)
        while changed:
            try:
                self._consumer.commit(changed, timeout_ms=max(0.0, end_at - time.monotonic()) * 1000)
            except RebalanceInProgressError:  # a client that only commits would never end its part of it
                if time.monotonic() >= end_at:
                    raise
                finish_joining(self._consumer)
                self._consumer.poll(timeout_ms=_JOIN_POLL_MS)  # what it reads is read again by the next owner
            else:
                return


def _changed(partition: CommandsPartition) -> dict[TopicPartition, OffsetAndMetadata]:
    commit = partition.take_commit()
    return {} if commit is None else {partition.place: OffsetAndMetadata(*commit, -1)}
