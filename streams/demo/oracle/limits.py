"""What `check` is given: commands as a reader saw them, and how exact and quick the service has to be."""

from __future__ import annotations

import dataclasses

from evictstream.streams.demo.oracle.rules import Json

Outage = tuple[int, int]
"""From when to when nobody may have been in charge of some pods, microseconds since 1970."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A command, and when a `read_committed` reader had it, microseconds since 1970."""

    at_us: int
    command: Json


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """How exact and how quick the service has to be, in microseconds.

    Attributes:
        tolerance_us: how far a deadline may be off, and how early an eviction may be.
        delay_us: how far behind the inputs an eviction may lag: it may still be issued that long after its reason went.
        patience_us: what does not last that long need not be acted on; what does has to be acted on within that time.
            Time within an outage does not count.
        outages: see `Outage`.
        end_us: when the watch over the commands ended; what would have to be seen later is not asked for.
    """

    tolerance_us: int
    delay_us: int
    patience_us: int
    outages: tuple[Outage, ...]
    end_us: int

    def reach_back(self, seen_us: int, allowance_us: int) -> int:
        """Return the earliest instant whose state a command seen now may still reflect."""
        earliest = seen_us - allowance_us
        for begin, end in self.outages:
            if begin <= seen_us and earliest <= end:
                earliest = min(earliest, begin - allowance_us)
        return earliest

    def free_us(self, begin: int, end: int | None) -> int:
        """Return how much of a stretch lies outside outages and before the watch ended."""
        end = self.end_us if end is None else min(end, self.end_us)
        lost = sum(max(0, min(end, stop) - max(begin, start)) for start, stop in self.outages)
        return max(0, end - begin - lost)
