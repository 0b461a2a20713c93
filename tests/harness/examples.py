"""How many examples Hypothesis draws: all of them, except where `make quick` asks for a fifth."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

ALL: Final = 100
"""Hypothesis draws these where nobody gives a number; the profile `quick` in `tests/conftest.py` has fewer."""
FEWEST: Final = 5


def examples(count: int) -> int:
    """Return how many of `count` examples this run draws: as many of 100 as its profile says, but some."""
    return max(min(count, FEWEST), count * settings().max_examples // ALL)
