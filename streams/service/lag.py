"""Lag: how much newer the newest record of an input is than the newest that was applied, by their append times.

The append time of the newest applied record is known exactly. That of the newest record in the log is known to a
second: if an end has moved between two questions, it moved before the later one. For a record that stood there before
the first question the worker asks once. So a quiet topic has no lag, however old its last record is, and a worker that
reads last week's records lags by the time from the one that it applies to the last.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from evictstream.streams.service.clock_watch import MILLISECOND_US, SECOND_US

Place = tuple[str, int]
"""A topic and a partition number."""


class Lag:
    """The ends of inputs and the times of their newest records, by the brokers' last answers."""

    def __init__(self) -> None:
        self._ends: dict[Place, int] = {}
        self._newest_us: dict[Place, int] = {}

    def note_ends(self, ends: Mapping[Place, int], asked_us: int) -> None:
        """Take an answer to a question that was asked at `asked_us` (wall clock, microseconds).

        Places that it leaves out are forgotten: what happens there meanwhile stays unknown.
        """
        for place, end in ends.items():
            known = self._ends.get(place)
            if known is not None and end > known:
                self._newest_us[place] = asked_us
        self._ends = dict(ends)
        self._newest_us = {place: at_us for place, at_us in self._newest_us.items() if place in ends}

    def note_newest(self, newest_us: Mapping[Place, int]) -> None:
        """Note the append times of newest records, except where the end has moved since."""
        for place, at_us in newest_us.items():
            if place in self._ends:
                self._newest_us.setdefault(place, at_us)

    def unknown(self, positions: Mapping[Place, int]) -> list[Place]:
        """List the places that are behind an end whose newest record's time is not known."""
        return [
            place
            for place, position in positions.items()
            if position < self._ends.get(place, 0) and place not in self._newest_us
        ]

    def records(self, place: Place, position: int) -> int:
        """Count offsets between a position and the known end; markers and compacted records count too."""
        return max(0, self._ends.get(place, 0) - position)

    def seconds(self, place: Place, position: int, event_ms: int | None) -> float:
        """Give the append time of the newest record less `event_ms`, that of the newest applied one, if there is one.

        0 at the end of the log; infinite while there is something to apply and one of the two is not known.
        """
        if not self.records(place, position):
            return 0.0
        newest_us = self._newest_us.get(place)
        if newest_us is None or event_ms is None:
            return math.inf
        return max(0.0, (newest_us - event_ms * MILLISECOND_US) / SECOND_US)
