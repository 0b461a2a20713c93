"""The limit on evictions a second, with a burst."""

from __future__ import annotations


class RateLimit:
    """A bucket of tokens: one for each eviction, filled at `rate` a second up to `burst`. The caller has the clock."""

    def __init__(self, *, rate: float, burst: int, now: float) -> None:
        """Begin with a full bucket.

        Args:
            rate: tokens a second.
            burst: most tokens.
            now: monotonic seconds.
        """
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = now

    def wait_seconds(self, now: float) -> float:
        """Return how long it is until there is a token; 0 if there is one."""
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / self._rate

    def spend(self) -> None:
        """Take a token, after `wait_seconds` has returned 0."""
        self._tokens -= 1
