"""Pauses between attempts while an API server does not answer."""

from __future__ import annotations

import random
from typing import Final

FIRST_SECONDS: Final = 0.2
LONGEST_SECONDS: Final = 10.0
"""Ten seconds, since pods wait for their eviction meanwhile."""


class Backoff:
    """Doubles from `FIRST_SECONDS` to `LONGEST_SECONDS`; up to half of it is taken off by chance, to spread many."""

    def __init__(self) -> None:
        self._seconds = FIRST_SECONDS

    def next_seconds(self) -> float:
        """Return how long to wait before the next attempt."""
        seconds, self._seconds = self._seconds, min(2 * self._seconds, LONGEST_SECONDS)
        return seconds * random.uniform(0.5, 1)  # noqa: S311 - no secret

    def reset(self) -> None:
        """Begin anew: an attempt has succeeded."""
        self._seconds = FIRST_SECONDS
