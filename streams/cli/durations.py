"""Lengths of time as people write them: `60s`, `5m`, `2h`, `1d`."""

from __future__ import annotations

import re
from typing import Final

from evictstream.streams.errors import WrongUseError

_LENGTH: Final = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def read_length(text: str) -> int | None:
    """Return a length of time in seconds; None if the text is none."""
    match = _LENGTH.fullmatch(text)
    return None if match is None else int(match[1]) * _SECONDS[match[2]]


def read_limited_length(text: str, *, option: str, least: int, most: int) -> int:
    """Read the value of an option, in seconds.

    Raises:
        WrongUseError: it is none, or not between `least` and `most`.
    """
    seconds = read_length(text)
    if seconds is None:
        raise WrongUseError(f"{option} {text} is not a length of time", next_step="use 60s, 30m, 2h or 1d")
    if not least <= seconds <= most:
        raise WrongUseError(f"{option} {text} is out of range", next_step=f"use {least}s to {most // 86_400}d")
    return seconds
