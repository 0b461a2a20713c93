"""Commits of a consumer group: where reading continues, what its reader notes there, and who acts."""

from __future__ import annotations

import time
from typing import Any, Final, Protocol

from kafka import TopicPartition
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from evictstream.streams.broker.group_membership import GroupConsumer
from evictstream.streams.broker.group_requests import GroupRequests
from evictstream.streams.machine_clock import clock_name
from evictstream.streams.member_beats import BEAT_SECONDS, Beat, with_beat

_RETRY_SECONDS: Final = 0.1
"""Between two tries of the last commit while the group rebalances."""

_ANSWER_SECONDS: Final = 0.01
"""Between two looks for the answer to the last commit."""

UNHEARD_SECONDS: Final = 3.0
"""A Kafka that leaves a commit without an answer for so long is gone. It then gives this partition to nobody else."""


class GroupPosition(Protocol):
    """What is committed of the partition of a member."""

    @property
    def place(self) -> TopicPartition:
        """Topic and number."""

    def to_commit(self) -> tuple[int, str]:
        """Return offset and metadata."""


class GroupCommits:
    """Commits twice a second, changed or not: a member that does not is removed. Used by one thread.

    A commit that Kafka takes shows that this was a member of the group when it was sent, and nobody else has had the
    partition before.
    """

    def __init__(self, consumer: GroupConsumer, requests: GroupRequests) -> None:
        self._consumer = consumer
        self._requests = requests
        self._due_at = 0.0
        self._sent: Any = None
        self._number = 0
        self._keeps_answers = True
        self._doubted_at: float | None = None
        self._is_refused = False  # since then

    def send(self, position: GroupPosition, now: float) -> None:
        """Commit if it is due. What Kafka refuses or does not answer is committed the next time."""
        if now >= self._due_at and (self._sent is None or self._sent.is_done):
            self._due_at = now + BEAT_SECONDS
            self._sent = self._send(position)

    def doubt(self, now: float) -> None:
        """Take in that this process stood still, so that it may have been removed: the next `send` commits."""
        self._due_at, self._doubted_at, self._is_refused = 0.0, now, False

    def is_in_doubt(self, now: float) -> bool:
        """Whether Kafka may have given the partition to another member since it was last heard of."""
        doubted_at = self._doubted_at
        return doubted_at is not None and (self._is_refused or now - doubted_at <= UNHEARD_SECONDS)

    def finish(self, position: GroupPosition, timeout_seconds: float) -> None:
        """Commit, and wait for it. A group takes it while it rebalances, but for the moment in which it assigns.

        Raises:
            KafkaError: it was refused, or took longer.
        """
        end_at = time.monotonic() + timeout_seconds
        while True:
            sent = self._send(position)
            while sent is not None and not sent.is_done:
                if time.monotonic() >= end_at:
                    raise KafkaTimeoutError
                time.sleep(_ANSWER_SECONDS)
            if sent is None or sent.succeeded():
                return
            if not isinstance(sent.exception, _PASSING) or time.monotonic() >= end_at:
                raise sent.exception
            time.sleep(_RETRY_SECONDS)

    def _send(self, position: GroupPosition) -> Any:
        member = self._consumer.group_metadata()
        if member.generation_id < 0:  # it has been removed; and an empty group would take a commit from anybody
            self._is_refused = True
            return None
        sent_at = time.monotonic()
        self._number = max(self._number + 1, int(sent_at * 1_000))
        offset, metadata = position.to_commit()
        text = with_beat(metadata if self._keeps_answers else "", Beat(member.member_id, self._number, clock_name()))
        sent = self._requests.start(self._requests.commit, member, position.place, offset, text)
        sent.add_callback(self._note_taken, sent_at)
        sent.add_errback(self._note_refused)
        return sent

    def _note_taken(self, sent_at: float, _: object) -> None:
        if self._doubted_at is not None and sent_at >= self._doubted_at:
            self._doubted_at = None

    def _note_refused(self, error: Exception) -> None:
        self._is_refused = isinstance(error, (*_PASSING, UnknownMemberIdError, FencedInstanceIdError))
        if isinstance(error, OffsetMetadataTooLargeError):  # a broker may be set to less than its default
            self._keeps_answers = False


_PASSING: tuple[type[KafkaError], ...] = (RebalanceInProgressError, IllegalGenerationError)
"""The group has begun its next generation, and this member does not know it yet."""
