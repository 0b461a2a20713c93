"""Instants: integer microseconds since 1970 (UTC) inside, RFC 3339 text with microseconds and `Z` on topics.

Rows and rules use integers, because they compare and add exactly and cost 32 bytes. Nothing here reads a clock.
"""

import datetime as dt
from functools import lru_cache
from typing import Final

MILLISECOND_US: Final = 1_000
SECOND_US: Final = 1_000_000

LAST_INSTANT_US: Final = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z. A time past it is no deadline (semantics.md 12.5)."""

FIRST_INSTANT_US: Final = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z, the first instant that RFC 3339 text and `datetime` can both express."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS_PER_DAY: Final = 86_400


def microseconds(moment: dt.datetime) -> int:
    """Turn an aware moment into microseconds since 1970, exactly.

    Args:
        moment: any aware `datetime`; its zone does not matter.

    Raises:
        TypeError: `moment` has no zone.
    """
    since = moment - _EPOCH  # dividing it by a microsecond takes half as long again
    return (since.days * _SECONDS_PER_DAY + since.seconds) * SECOND_US + since.microseconds


def instant_us(text: str) -> int:
    """Read RFC 3339 text as microseconds since 1970.

    Raises:
        TypeError: the text names no zone.
        ValueError: it is no instant.
    """
    return microseconds(dt.datetime.fromisoformat(text))


def moment_at(at_us: int) -> dt.datetime:
    """Return an instant as an aware moment, in UTC."""
    return _EPOCH + dt.timedelta(microseconds=at_us)


@lru_cache(maxsize=4096)
def instant_text(at_us: int) -> str:
    """Write an instant as RFC 3339 UTC text with six digits and `Z`.

    Cached as a whole, because the pods of a node share their deadlines and one batch shares its sending time.

    Args:
        at_us: microseconds since 1970; years 1 to 9999. What lies outside is shown as the nearest end: it can only
            come from a recorded instant at the very end plus a wait, and writing a text must not stop a decision.
    """
    seconds, rest_us = divmod(min(max(at_us, FIRST_INSTANT_US), LAST_INSTANT_US), SECOND_US)
    return f"{_second_text(seconds)}.{rest_us:06d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """Write everything down to the second, cached apart because a burst falls into few seconds."""
    return (_EPOCH + dt.timedelta(seconds=seconds)).isoformat()[:19]
