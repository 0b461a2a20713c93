"""One partition of the commands topic, as far as this executor has read and answered it."""

from __future__ import annotations

from typing import Final

from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.streams.executor.answered_offsets import AnsweredOffsets

CATCH_UP_SECONDS: Final = 10.0
"""Evictions wait so long for what was in the partition when it was assigned: a `Cancel` may be among it."""


class CommandsPartition:
    """What was read, what is open, and what is held until the rest has been read.

    Attributes:
        answered: which offsets have an outcome.
        unsaid: offsets of commands whose outcome Kafka has not confirmed yet.
        held: evictions by `evictionId`, until what was there at the assignment has been read.
        is_paused: whether nothing more is read now.
    """

    def __init__(self, *, start: int, answered: AnsweredOffsets, end: int, now: float) -> None:
        """Take a partition over.

        Args:
            start: the first offset to read.
            answered: what the commit says.
            end: where the partition ends now.
            now: monotonic seconds.
        """
        self.answered = answered
        self.unsaid: set[int] = set()
        self.held: dict[str, QueuedEviction] = {}
        self.is_paused = False
        self._position = start
        self._end = end
        self._assigned_at = now
        self._committed: tuple[int, str] | None = None

    @property
    def position(self) -> int:
        """The offset of what is read next."""
        return self._position

    def reach(self, offset: int) -> None:
        """Take note that reading goes on at `offset`; what lies between has no record, but a transaction's marker."""
        self.answered.pass_over(self._position, offset)
        self._position = max(self._position, offset)

    def has_read(self, offset: int) -> None:
        """Take note of a record; it is open until `answered` has its offset."""
        self._position = offset + 1

    def pass_over(self, offset: int) -> None:
        """Take note of a record that needs no outcome."""
        self.answered.pass_over(offset, offset + 1)
        self._position = offset + 1

    def is_caught_up(self, now: float) -> bool:
        """Whether evictions need not be held any more."""
        return self._position >= self._end or now - self._assigned_at > CATCH_UP_SECONDS

    def commit(self) -> tuple[int, str] | None:
        """Return offset and metadata to commit; None if they have not changed since the last time."""
        found = (self.answered.first_open, self.answered.metadata())
        if found == self._committed:
            return None
        self._committed = found
        return found

    def is_uncommitted(self) -> None:
        """Have the next `commit` return what it returned before: Kafka has refused it."""
        self._committed = None
