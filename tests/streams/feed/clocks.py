"""A clock that stands still until somebody sleeps on it."""

from __future__ import annotations

from evictstream.kit.recordings.pace import FeedClock

NOW_US = 1_800_000_000_000_000


class StandingClock:
    """Time as a test says; `slept` are the sleeps, in seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    @property
    def clock(self) -> FeedClock:
        return FeedClock(lambda: NOW_US + int(self.seconds * 1_000_000), lambda: self.seconds, self.sleep)
