"""Windows of the week in which evictions may happen, in the local time of a place.

A window begins on its days at one local time, and ends at another one, the next day if that is not later. Where clocks
change, a local time that comes twice counts the first time, and one that is left out counts as long after midnight as
the clock says. The IANA time zone database of the machine, or of the package `tzdata`, says when that is.
"""

import datetime as dt
import zoneinfo
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.policy_clauses import DAYS, PolicyWindow

_DAYS_LOOKED_AT: Final = range(-1, 9)
"""From yesterday, whose window may still be open, over a week and the day on which it is the same day again."""


class OpenSpan(NamedTuple):
    """A time in which evictions may happen; microseconds UTC.

    Attributes:
        from_us: its first instant.
        to_us: the first instant behind it.
    """

    from_us: int
    to_us: int


class Windows:
    """The windows of a clause; the calendar is asked once for each time in which it says the same."""

    __slots__ = ("_looked_from_us", "_looked_to_us", "_span", "_windows")

    def __init__(self, windows: Sequence[PolicyWindow]) -> None:
        """Take the windows; each zone has to be known (`is_zone`)."""
        self._windows = windows
        self._span = OpenSpan(0, 0)
        self._looked_from_us = self._looked_to_us = 0

    def span(self, now_us: int) -> OpenSpan:
        """Return the span that is open, else the next one; windows that overlap or touch are one span."""
        if not self._looked_from_us <= now_us < self._looked_to_us:
            merged: list[OpenSpan] = []
            for span in sorted(span for window in self._windows for span in _spans(window, now_us)):
                if merged and span.from_us <= merged[-1].to_us:
                    merged[-1] = OpenSpan(merged[-1].from_us, max(merged[-1].to_us, span.to_us))
                else:
                    merged.append(span)
            self._span = next(span for span in merged if span.to_us > now_us)
            self._looked_from_us = now_us
            self._looked_to_us = self._span.to_us if self._span.from_us <= now_us else self._span.from_us
        return self._span


def is_zone(name: str) -> bool:
    """Whether it is the name of a time zone that is known here, such as `Europe/Berlin`."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # a path, a folder, a text without sense
        return False
    return True


def _spans(window: PolicyWindow, now_us: int) -> Iterator[OpenSpan]:
    """Yield when a window is open, from yesterday to the same day of next week."""
    zone = zoneinfo.ZoneInfo(window.zone)
    today = dt.datetime.fromtimestamp(now_us // SECOND_US, zone).date()
    begins, ends = dt.time.fromisoformat(window.begins), dt.time.fromisoformat(window.ends)
    for later in _DAYS_LOOKED_AT:
        day = today + dt.timedelta(days=later)
        if not window.days or DAYS[day.weekday()] in window.days:
            last = day if ends > begins else day + dt.timedelta(days=1)
            yield OpenSpan(_us(day, begins, zone), _us(last, ends, zone))


def _us(day: dt.date, time: dt.time, zone: zoneinfo.ZoneInfo) -> int:
    return int(dt.datetime.combine(day, time, zone).timestamp()) * SECOND_US
