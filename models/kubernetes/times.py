"""Instants in objects, as Kubernetes reads and writes them (`metav1.Time`).

Go's `time.Parse(time.RFC3339, …)` decides which texts are instants. It refuses small letters and a space, which RFC
3339 allows. It accepts an hour of one digit, a comma before the fraction, offsets up to `+24:60` and the year 0, which
RFC 3339 does not. The API server writes UTC in whole seconds. Sources:
`staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/time.go`, Go's `time/format.go`.
"""

import datetime as dt
import re
from functools import lru_cache
from typing import Final

from evictstream.models.instants import FIRST_INSTANT_US, SECOND_US

_SHAPE: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_LONGEST_KEPT: Final = 35  # characters of nanoseconds with an offset; what the API server writes has 20
_TIMES_KEPT: Final = 1024  # every update of a node repeats its instants, and many nodes share the same few

_DIGITS_KEPT: Final = 6
_LAST_HOUR: Final = 23
_LAST_MINUTE: Final = 59
_LAST_OFFSET_HOUR: Final = 24
_LAST_OFFSET_MINUTE: Final = 60

_SECONDS_PER_DAY: Final = 86_400
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_LAST_DAY: Final = dt.date.max.toordinal()
# The calendar repeats: other years replace 0 and 10000, which `date` does not know.
_CYCLE_YEARS: Final = 400
_CYCLE_DAYS: Final = 146_097


def read_time(text: str) -> int | None:
    """Read an instant.

    Returns:
        Microseconds since 1970, finer digits cut off; None for a text that Kubernetes refuses.
    """
    return _read_kept(text) if len(text) <= _LONGEST_KEPT else _read(text)


def _read(text: str) -> int | None:
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = match.groups()[6:]
    if hour > _LAST_HOUR or minute > _LAST_MINUTE or second > _LAST_MINUTE:
        return None
    offset_s = 0
    if sign:
        if int(offset_hours) > _LAST_OFFSET_HOUR or int(offset_minutes) > _LAST_OFFSET_MINUTE:
            return None
        offset_s = (int(offset_hours) * 60 + int(offset_minutes)) * (-60 if sign == "-" else 60)
    try:
        days = dt.date(year or _CYCLE_YEARS, month, day).toordinal() - (0 if year else _CYCLE_DAYS) - _EPOCH_DAY
    except ValueError:
        return None
    seconds = days * _SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset_s
    return seconds * SECOND_US + int((fraction or "")[:_DIGITS_KEPT].ljust(_DIGITS_KEPT, "0"))


_read_kept: Final = lru_cache(maxsize=_TIMES_KEPT)(_read)


def time_text(at_us: int) -> str | None:
    """Write an instant of `read_time` as UTC, in whole seconds; None for Go's zero time, which Go writes as null."""
    if at_us == FIRST_INSTANT_US:
        return None
    days, seconds = divmod(at_us // SECOND_US, _SECONDS_PER_DAY)
    day = days + _EPOCH_DAY
    cycles = 1 if day < 1 else -1 if day > _LAST_DAY else 0
    date = dt.date.fromordinal(day + cycles * _CYCLE_DAYS)
    year = date.year - cycles * _CYCLE_YEARS
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{date:%m-%d}T{hour:02d}:{minute:02d}:{second:02d}Z"
