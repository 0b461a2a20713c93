"""Whether our own clock can be trusted to say that a deadline has come.

Deadlines come from append times of the brokers, so a clock of ours that runs ahead would evict early. Two checks:
each transaction brings back the brokers' append time, which has to agree with ours within a limit; and the wall
clock may not jump forward against the monotonic clock. A jump back, and a clock that is behind, only delay.

A transaction is appended between its sending and its acknowledgement, so it says between which bounds the brokers'
clock lies against our monotonic one, the closer the faster it was. The monotonic clock carries that on, however old it
is: a jump within its own limit is then seen before anything has fired, a slow transaction takes nothing away from what
a faster one has shown, and a clock that was set right again is trusted again at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evictstream.streams.engine.core.ports import Committed

MILLISECOND_US = 1000
SECOND_US = 1_000_000


class ClockWatch:
    """Compares the wall clock with the monotonic clock and with the brokers."""

    def __init__(self, skew_limit_seconds: float, jump_limit_seconds: float, jump_hold_seconds: float) -> None:
        """Trust the clock as it is now as the starting point for jumps."""
        self._skew_limit_us = int(skew_limit_seconds * SECOND_US)
        self._jump_limit_us = int(jump_limit_seconds * SECOND_US)
        self._hold_seconds = jump_hold_seconds
        self._offset_us: int | None = None
        self._held_until = float("-inf")
        self._measured_at = float("-inf")
        # Of their clock to our monotonic one: the least and the most that it can be.
        self._brokers_offset_us: tuple[int, int] | None = None

    def tick(self, wall_us: int, monotonic_seconds: float) -> None:
        """Look at both clocks; call it at least once a second, and always before firing."""
        offset = wall_us - int(monotonic_seconds * SECOND_US)
        if self._offset_us is not None and offset - self._offset_us > self._jump_limit_us:
            self._held_until = monotonic_seconds + self._hold_seconds
        self._offset_us = offset

    def observe(self, committed: Committed) -> None:
        """Learn the brokers' time from a transaction that was sent later than those before."""
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
            # Otherwise their clock was set, or has drifted out of what was known: only the new bounds hold.
        self._brokers_offset_us = least, most

    def objection(self, monotonic_seconds: float) -> str | None:
        """Why the clock cannot be trusted now, or ``None``."""
        if monotonic_seconds < self._held_until:
            return f"the clock jumped forward; {self._held_until - monotonic_seconds:.0f} s of waiting are left"
        if self._offset_us is not None and self._brokers_offset_us is not None:
            least, _ = self._brokers_offset_us
            ahead_us = self._offset_us - least
            if ahead_us > self._skew_limit_us:
                return f"the clock may be {ahead_us / SECOND_US:.1f} s ahead of the brokers"
        return None
