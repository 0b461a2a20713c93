"""Windows as people write them: `Mon-Fri 22:00-05:00 Europe/Berlin`, `Sat,Sun 02:00-06:00 UTC`, `22:00-05:00 UTC`."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from evictstream.models.messages.policy_clauses import DAYS, PolicyWindow
from evictstream.models.steering.windows import is_zone

_DAY: Final = f"(?:{'|'.join(DAYS)})"
_DAY_LIST: Final = f"{_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?)*"
_WINDOW: Final = re.compile(rf"(?:({_DAY_LIST}) +)?([0-9]{{2}}:[0-9]{{2}})-([0-9]{{2}}:[0-9]{{2}}) +(\S+)")


def read_window(text: str) -> PolicyWindow:
    """Read a window.

    Raises:
        ValueError: it is none; says what is wrong.
    """
    match = _WINDOW.fullmatch(text)
    if match is None:
        message = "is not a window: write Mon-Fri 22:00-05:00 Europe/Berlin"
        raise ValueError(message)
    days, begins, ends, zone = match.groups()
    if not is_zone(zone):
        message = f"has no time zone that is known here: {zone}"
        raise ValueError(message)
    fields = {"begins": begins, "ends": ends, "zone": zone, "days": () if days is None else _days(days)}
    try:
        return msgspec.convert(fields, PolicyWindow)
    except msgspec.ValidationError as error:
        message = "has a time that no clock shows"
        raise ValueError(message) from error


def _days(text: str) -> tuple[str, ...]:
    named: set[str] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        named.update(DAYS[(begin + number) % len(DAYS)] for number in range((end - begin) % len(DAYS) + 1))
    return tuple(day for day in DAYS if day in named)


def window_text(window: PolicyWindow) -> str:
    """Write a window as in a file."""
    hours = f"{window.begins}-{window.ends} {window.zone}"
    return f"{','.join(window.days)} {hours}" if window.days else hours
