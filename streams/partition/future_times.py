"""Append times from the future: those beyond every clock that the worker knows, capped.

Whether a feed is silent, what a forgotten cluster ignores and since when a pod has to leave are counted from append
times. One of a broker whose clock was a day ahead would count for a day. So a record whose append time lies ahead of
both the worker's clock and the brokers', as the worker's own transactions show it, counts as appended now. A worker
whose clock is behind caps nothing: what it stored would be early to the next owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from evictstream.models.instants import MILLISECOND_US, SECOND_US

if TYPE_CHECKING:
    from evictstream.streams.engine.core.batches import Record

HOLD_US = 10 * SECOND_US
"""How long the gate `clock` of a partition stays closed behind such a record: until a transaction of its own, of which
one is sent every five seconds at the latest, has shown which clock is wrong."""


class CappedRecord(NamedTuple):
    """A record that counts as appended when it was read."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class FutureTimes:
    """Caps the append times of one partition's records."""

    def __init__(
        self,
        partition: int,
        *,
        now_us: Callable[[], int],
        skew_us: int | None,
        brokers_now_us: Callable[[], int],
        on_capped: Callable[[str, int, float], None],
    ) -> None:
        """Cap what is ahead by more than `skew_us`, `None` for nothing: then the records are the clock.

        `brokers_now_us` reads the brokers' clock, 0 while it is not known; it is asked only in doubt. `on_capped`
        gets topic, partition and the seconds by which all clocks are exceeded, once while the gate is closed.
        """
        self._partition = partition
        self._now_us = now_us
        self._skew_us = skew_us
        self._brokers_now_us = brokers_now_us
        self._on_capped = on_capped
        self._wait_until_us = 0

    def latest_us(self) -> int | None:
        """Return the latest append time that can be right, `None` for any."""
        return None if self._skew_us is None else self.present_us() + self._skew_us

    def present_us(self) -> int:
        """Return the time by the clock that is ahead of the other."""
        return max(self._now_us(), self._brokers_now_us())

    def believed(self, topic: str, records: Iterable[Record]) -> Iterable[Record]:
        """Return the records, those from the future with another append time. Unless nothing is capped, a list."""
        if self._skew_us is None:
            return records
        likely_ms = (self._now_us() + self._skew_us) // MILLISECOND_US
        for record in records:
            if record.timestamp > likely_ms:
                return self._capped(topic, records, self._skew_us)
        return records

    def _capped(self, topic: str, records: Iterable[Record], skew_us: int) -> list[Record]:
        present_us = self.present_us()
        latest_ms, present_ms = (present_us + skew_us) // MILLISECOND_US, present_us // MILLISECOND_US
        capped: list[Record] = []
        ahead_ms = 0
        for record in records:
            if record.timestamp > latest_ms:
                ahead_ms = max(ahead_ms, record.timestamp - present_ms)
                record = _with_time(record, present_ms)  # noqa: PLW2901 - it takes the place of the other
            capped.append(record)
        if ahead_ms:
            if present_us > self._wait_until_us:
                self._on_capped(topic, self._partition, ahead_ms / 1_000)
            self._wait_until_us = present_us + HOLD_US
        return capped

    def objection(self) -> str | None:
        """Return why this partition's view of the time cannot be trusted now, or `None`."""
        left_us = self._wait_until_us - self._now_us()
        if 0 < left_us <= HOLD_US:
            left = f"evictions wait {left_us / SECOND_US:.0f} s more"
            return f"a record has an append time in the future; {left}; check NTP on the brokers"
        return None


def _with_time(record: Record, at_ms: int) -> Record:
    replace = getattr(record, "_replace", None)  # what stands for an unusable record is more than these four
    if replace is not None:
        changed: Record = replace(timestamp=at_ms)
        return changed
    return CappedRecord(record.offset, at_ms, record.key, record.value)
