"""The partition of the commands topic that a cluster is in, as far as this executor has read and answered it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka import TopicPartition

from evictstream.models.execution.work_queue import QueuedEviction, QueueState
from evictstream.models.instants import FIRST_INSTANT_US
from evictstream.streams.executor.answered_offsets import AnsweredOffsets

CATCH_UP_SECONDS: Final = 10.0
"""The longest wait of evictions until the partition has been read to its end at the assignment: a `Cancel` may be
there."""


class CommandsPartition:
    """Position, open commands, and the evictions that wait until the partition has caught up.

    A partition that is read again, after a loss or a stall, is another one of these.

    Attributes:
        place: topic and number.
        reading: number of this one among those of the executor; what was read before has an earlier number.
        answered: which offsets have an outcome.
        unconfirmed: offsets of commands whose result was sent, and not confirmed by Kafka yet.
        read_to_us: the latest `issuedAt` of an `Evict` that was read.
        pending: evictions by `evictionId` that wait until the partition has caught up.
        is_paused: whether nothing more is fetched now.
    """

    def __init__(
        self, place: TopicPartition, *, reading: int, start: int, answered: AnsweredOffsets, end: int, now: float
    ) -> None:
        """Take a partition over.

        Args:
            place: topic and number.
            reading: a number that no other one of the executor has.
            start: the first offset to read.
            answered: read from the group's commit.
            end: where the partition ends now.
            now: monotonic seconds.
        """
        self.place = place
        self.reading = reading
        self.answered = answered
        self.unconfirmed: set[int] = set()
        self.read_to_us = FIRST_INSTANT_US
        self.pending: dict[str, QueuedEviction] = {}
        self.is_paused = False
        self._position = start
        self._end = end
        self._assigned_at = now

    @property
    def position(self) -> int:
        """The offset that is read next."""
        return self._position

    def advance_to(self, offset: int) -> None:
        """Continue at `offset`. The offsets before it have no record: markers of transactions, or aborted records."""
        self.answered.pass_over(self._position, offset)
        self._position = max(self._position, offset)

    def note_read(self, offset: int) -> None:
        """Record that a command was read; it is open until `answered` has its offset."""
        self._position = offset + 1

    def note_evict(self, issued_at_us: int) -> None:
        """Record when an `Evict` was issued that was read."""
        self.read_to_us = max(self.read_to_us, issued_at_us)

    def skip(self, offset: int) -> None:
        """Record that a record was read that needs no outcome."""
        self.answered.pass_over(offset, offset + 1)
        self._position = offset + 1

    def is_caught_up(self, now: float) -> bool:
        """Whether evictions may be queued: the partition was read to its end at the assignment, or that took long."""
        return self._position >= self._end or now - self._assigned_at > CATCH_UP_SECONDS

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take out a pending eviction; None if there is none."""
        eviction = self.pending.pop(eviction_id, None)
        if eviction is not None:
            eviction.move(QueueState.ENDED)
        return eviction

    def take_pending(self, now: float) -> Iterable[QueuedEviction]:
        """Take out all pending evictions once the partition has caught up."""
        if not self.pending or not self.is_caught_up(now):
            return ()
        evictions = tuple(self.pending.values())
        self.pending.clear()
        return evictions

    def to_commit(self) -> tuple[int, str]:
        """Return offset and metadata to commit."""
        return self.answered.first_open, self.answered.metadata()
