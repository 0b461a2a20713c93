"""Kafka's clock as far as a process knows it, so that its own clock ends nothing before Kafka's does.

A record was appended before it was read. So Kafka's clock shows at least its append time, and from then on at least
that plus the seconds of the monotonic clock, which is never set. The closest of these bounds counts.
"""

from __future__ import annotations

import time

from evictstream.models.instants import MILLISECOND_US, SECOND_US


class KafkaTime:
    """The least that Kafka's clock can show. Used by several threads: what one of them misses, the next note brings.

    Attributes:
        is_near: whether Kafka has answered a write, so that the bound is no older than its answer. Before that it may
            come from a record that was read long after it was appended.
    """

    def __init__(self) -> None:
        self.is_near = False
        self._ahead_us: int | None = None  # of the monotonic clock, at least

    def note_record(self, appended_ms: int) -> None:
        """Take in the append time of a record that was read just now; milliseconds since 1970."""
        ahead_us = appended_ms * MILLISECOND_US - _monotonic_us()
        if self._ahead_us is None or ahead_us > self._ahead_us:
            self._ahead_us = ahead_us

    def note_answer(self, appended_ms: int) -> None:
        """Take in the append time with which Kafka has just confirmed a record."""
        self.note_record(appended_ms)
        self.is_near = True

    def earlier(self, wall_us: int) -> int:
        """Return the earlier of this process's clock and Kafka's, as it is known; microseconds since 1970."""
        least_us = self.least_us()
        return wall_us if least_us is None else min(wall_us, least_us)

    def least_us(self) -> int | None:
        """Return what Kafka's clock shows at least, microseconds since 1970; None before anything was noted."""
        return None if self._ahead_us is None else self._ahead_us + _monotonic_us()


def _monotonic_us() -> int:
    return int(time.monotonic() * SECOND_US)
