"""Whether the worker's wall clock can be trusted to say that a deadline has come.

Deadlines count from the brokers' append times, so a worker whose clock runs ahead would evict early. Two checks prevent
that: the wall clock must agree with the append times of the worker's own transactions within a limit, and must not jump
forward against the monotonic clock. A clock that is behind, or jumps back, would only delay; but it cannot tell whether
a feed is silent, and where the brokers' clock is ahead instead, what is stored meanwhile is too late.

A broker appends a transaction between its sending and its acknowledgement. So each transaction bounds how far the
brokers' clock is from the worker's monotonic clock; the faster the transaction, the closer the bounds. Old
bounds stay valid, because the monotonic clock is never set. So a jump shows before any timer fires, a slow transaction
does not loosen the bounds of a faster one, and a clock that was set right is trusted at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.models.instants import MILLISECOND_US, SECOND_US

if TYPE_CHECKING:
    from evictstream.streams.engine.core.ports import Committed


class ClockWatch:
    """Compares the wall clock with the monotonic clock and with the brokers."""

    def __init__(self, skew_limit_seconds: float, jump_limit_seconds: float, jump_hold_seconds: float) -> None:
        self._skew_limit_us = int(skew_limit_seconds * SECOND_US)
        self._jump_limit_us = int(jump_limit_seconds * SECOND_US)
        self._hold_seconds = jump_hold_seconds
        self._offset_us: int | None = None
        self._wait_until = float("-inf")
        self._measured_at = float("-inf")
        # Bounds of the brokers' clock less the monotonic clock.
        self._brokers_offset_us: tuple[int, int] | None = None

    def tick(self, wall_us: int, monotonic_seconds: float) -> None:
        """Compare both clocks. Call it at least once a second, and before each firing."""
        offset = wall_us - int(monotonic_seconds * SECOND_US)
        if self._offset_us is not None and offset - self._offset_us > self._jump_limit_us:
            self._wait_until = monotonic_seconds + self._hold_seconds
        self._offset_us = offset

    def observe(self, committed: Committed) -> None:
        """Learn the brokers' time from a transaction; ignored if it was sent before one already observed."""
        if committed.broker_ms < 0 or committed.sent_at <= self._measured_at:
            return
        self._measured_at = committed.sent_at
        appended_us = committed.broker_ms * MILLISECOND_US
        least = appended_us - int(committed.acked_at * SECOND_US)
        most = appended_us + MILLISECOND_US - 1 - int(committed.sent_at * SECOND_US)
        if self._brokers_offset_us is not None:
            known_least, known_most = self._brokers_offset_us
            if least <= known_most and known_least <= most:
                least, most = max(least, known_least), min(most, known_most)
            # Otherwise the brokers' clock was set, or has drifted out of the known bounds: only the new bounds hold.
        self._brokers_offset_us = least, most

    def objection(self, monotonic_seconds: float) -> str | None:
        """Return why the clock cannot be trusted now, or `None`."""
        left = self._wait_until - monotonic_seconds
        if left > 0:
            return f"this worker's clock jumped forward; evictions wait {left:.0f} s more; check NTP here"
        if self._offset_us is not None and self._brokers_offset_us is not None:
            least, _ = self._brokers_offset_us
            ahead_us = self._offset_us - least
            if ahead_us > self._skew_limit_us:
                return (
                    f"this worker's clock may be {ahead_us / SECOND_US:.1f} s ahead of the brokers'; check NTP on both"
                )
            if -ahead_us > self._skew_limit_us:
                return f"this worker's clock is {-ahead_us / SECOND_US:.1f} s behind the brokers'; check NTP on both"
        return None

    def brokers_now_us(self, monotonic_seconds: float) -> int:
        """Return the latest time that the brokers' clock may show; 0 while nothing is known of it."""
        if self._brokers_offset_us is None:
            return 0
        return self._brokers_offset_us[1] + int(monotonic_seconds * SECOND_US)
