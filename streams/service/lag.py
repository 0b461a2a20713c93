"""How far what was applied is behind what has happened: newest event time less processed event time.

Event time is the append time of records. That of the newest applied record is known exactly. That of the newest record
in the log is known to a second: an end that has moved between two questions moved before the later one. What stood
there before the first question has to be asked for once. A topic in which nothing happens therefore has no lag,
however old its last record is, and a worker that reads last week's records is as late as the last of them is newer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from evictstream.streams.service.clock_watch import MILLISECOND_US, SECOND_US

Place = tuple[str, int]
"""A topic and a partition number."""


class Lag:
    """Ends of inputs and the time of their newest record, as last told by the brokers."""

    def __init__(self) -> None:
        """Know nothing."""
        self._ends: dict[Place, int] = {}
        self._newest_us: dict[Place, int] = {}

    def note_ends(self, ends: Mapping[Place, int], asked_us: int) -> None:
        """Take an answer to a question that was asked at ``asked_us`` (wall clock, microseconds).

        Places that are not in it are forgotten: what they did meanwhile is not known when they come back.
        """
        for place, end in ends.items():
            known = self._ends.get(place)
            if known is not None and end > known:
                self._newest_us[place] = asked_us
        self._ends = dict(ends)
        self._newest_us = {place: at_us for place, at_us in self._newest_us.items() if place in ends}

    def note_newest(self, newest_us: Mapping[Place, int]) -> None:
        """Take the times of newest records that were asked for, unless an end has moved meanwhile."""
        for place, at_us in newest_us.items():
            if place in self._ends:
                self._newest_us.setdefault(place, at_us)

    def unknown(self, positions: Mapping[Place, int]) -> list[Place]:
        """Give the places that are behind an end whose newest record's time is not known."""
        return [
            place
            for place, position in positions.items()
            if position < self._ends.get(place, 0) and place not in self._newest_us
        ]

    def records(self, place: Place, position: int) -> int:
        """Offsets between a position and the known end; markers and holes count."""
        return max(0, self._ends.get(place, 0) - position)

    def seconds(self, place: Place, position: int, event_ms: int | None) -> float:
        """Newest event time less that of the newest applied record (``event_ms``, none applied: ``None``).

        0 at the end of the log; infinite while there is something to apply and one of the two is not known.
        """
        if not self.records(place, position):
            return 0.0
        newest_us = self._newest_us.get(place)
        if newest_us is None or event_ms is None:
            return math.inf
        return max(0.0, (newest_us - event_ms * MILLISECOND_US) / SECOND_US)
