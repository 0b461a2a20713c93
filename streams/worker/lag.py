"""Lag: how much newer the newest record of an input is than the newest applied one, by their append times.

The append time of the newest applied record is known exactly, that of the newest record in the log to a second: if an
end has moved between two questions, it moved before the later one. If the newest record was there before the first
question, the worker asks for its time once. So a quiet topic has no lag, however old its last record is. A worker that
reads last week's records lags by the time from the record that it applies to the last one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from evictstream.models.instants import MILLISECOND_US, SECOND_US

_Place = tuple[str, int]
"""A topic and a partition number."""


class Lag:
    """The ends of inputs and the times of their newest records, by the brokers' last answers."""

    def __init__(self) -> None:
        self._ends: dict[_Place, int] = {}
        self._newest_us: dict[_Place, int] = {}

    def note_ends(self, ends: Mapping[_Place, int], asked_us: int) -> None:
        """Store the ends that the brokers answered to a question of `asked_us` (wall clock, microseconds).

        Forgets all other places: without questions their newest records are unknown.
        """
        for place, end in ends.items():
            earlier = self._ends.get(place)
            if earlier is not None and end > earlier:
                self._newest_us[place] = asked_us
        self._ends = dict(ends)
        self._newest_us = {place: at_us for place, at_us in self._newest_us.items() if place in ends}

    def note_newest(self, newest_us: Mapping[_Place, int]) -> None:
        """Store the append times of newest records, except where the end has moved since."""
        for place, at_us in newest_us.items():
            if place in self._ends:
                self._newest_us.setdefault(place, at_us)

    def unknown(self, positions: Mapping[_Place, int]) -> list[_Place]:
        """List the places with unapplied records where the time of the newest one is not known."""
        return [
            place
            for place, position in positions.items()
            if position < self._ends.get(place, 0) and place not in self._newest_us
        ]

    def records(self, place: _Place, position: int) -> int:
        """Count offsets between a position and the known end; markers and compacted records count too."""
        return max(0, self._ends.get(place, 0) - position)

    def seconds(self, place: _Place, position: int, appended_ms: int | None) -> float:
        """Return the append time of the newest record less that of the newest applied one, `appended_ms`.

        0 at the end of the log; infinite if records are unapplied and one of the two times is not known.
        """
        if not self.records(place, position):
            return 0.0
        newest_us = self._newest_us.get(place)
        if newest_us is None or appended_ms is None:
            return math.inf
        return max(0.0, (newest_us - appended_ms * MILLISECOND_US) / SECOND_US)
