"""From where and up to where a command reads a topic, as options say it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from evictstream.streams.cli.durations import read_length
from evictstream.streams.errors import WrongUseError

if TYPE_CHECKING:
    from evictstream.streams.broker.follow import Start


def read_start(text: str, *, option: str = "--from") -> Start:
    """Parse the value of an option; `5m` means five minutes ago, by this machine's clock.

    Raises:
        WrongUseError: the value is neither `beginning` nor `now` nor a duration nor an instant with a zone.
    """
    if text == "beginning":
        return "beginning"
    if text == "now":
        return "now"
    try:
        start = _ago(text) or dt.datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        start = None
    if start is None or start.tzinfo is None or start.timestamp() < 0:
        problem = f"{option} {text} is not a time"
        raise WrongUseError(
            problem, next_step="use 5m, 2h, beginning, now, or a time with a zone: 2026-11-21T02:15:00Z"
        )
    return start


def _ago(text: str) -> dt.datetime | None:
    seconds = read_length(text)
    return None if seconds is None else dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds)


def read_range(since: str | None, until: str | None) -> tuple[Start, dt.datetime | None]:
    """Parse `--since` and `--until`; without them a range reaches from the beginning to what is there now.

    Raises:
        WrongUseError: a value is no instant, or the range begins now.
    """
    begin = "beginning" if since is None else read_start(since, option="--since")
    end = None if until is None else read_start(until, option="--until")
    if begin == "now" or isinstance(end, str):
        raise WrongUseError("the range must end in the past", next_step="give times in the past")
    return begin, end
