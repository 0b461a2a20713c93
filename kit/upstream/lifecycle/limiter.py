"""Token buckets that hold one token (semantics.md 8.5).

Sources: `staging/src/k8s.io/client-go/util/flowcontrol/throttle.go`, `golang.org/x/time/rate/rate.go`. The arithmetic
is theirs, 64-bit floats on a 32-bit rate, because the last digits are visible: at 0.01 per second the second token
comes 3 µs after 100 s.
"""

from typing import Final, Protocol

from evictstream.kit.upstream.lifecycle.settings import single
from evictstream.models.instants import SECOND_US

BURST: Final = 1.0
"""The most tokens that a bucket holds; a new one is full."""

_NANOSECONDS_PER_SECOND: Final = 1e9


class Limiter(Protocol):
    """Limits how many nodes get a health taint per second."""

    @property
    def rate(self) -> float:
        """The reported rate, in tokens per second."""

    def try_accept(self, now_us: int) -> bool:
        """Take a token if there is one.

        Args:
            now_us: the time; it must not go backwards.
        """


class TokenBucket:
    """A bucket that starts full and fills at its rate up to one token.

    Attributes:
        rate: tokens per second, rounded to 32 bits; `math.inf` always gives.
    """

    __slots__ = ("_filled_at_us", "_tokens", "rate")

    def __init__(self, rate: float) -> None:
        """Make a full bucket.

        Args:
            rate: tokens per second, positive.
        """
        self.rate: Final = single(rate)
        self._tokens = BURST
        self._filled_at_us = 0

    def try_accept(self, now_us: int) -> bool:
        """Take the token if there is one; otherwise nothing changes."""
        waited_us = max(now_us - self._filled_at_us, 0)
        seconds, rest_us = divmod(waited_us, SECOND_US)
        waited_seconds = seconds + rest_us * 1000 / _NANOSECONDS_PER_SECOND
        tokens = self._tokens + waited_seconds * self.rate if waited_us else self._tokens
        left = min(tokens, BURST) - 1
        # A token that would arrive within the same nanosecond counts.
        if left < 0 and int(-left / self.rate * _NANOSECONDS_PER_SECOND) > 0:
            return False
        self._tokens = left
        self._filled_at_us = now_us
        return True


class NoTokens:
    """The limiter for a rate of 0: it never gives a token."""

    rate: Final = 1.0
    """Not 0: Kubernetes' own limiter of this kind reports 1, with a consequence for `limiter_after`."""

    def try_accept(self, now_us: int) -> bool:  # noqa: ARG002 - the answer does not depend on the time
        """Refuse."""
        return False


def new_limiter(rate: float) -> Limiter:
    """Make a limiter with a full bucket.

    Args:
        rate: tokens per second; 0 and less never give one.
    """
    return TokenBucket(rate) if single(rate) > 0 else NoTokens()


def limiter_after(limiter: Limiter, rate: float, now_us: int) -> Limiter:
    """Exchange a limiter (`RateLimitedTimedQueue.SwapLimiter`).

    A limiter that reports this rate already stays. Otherwise the new bucket is full, unless the old one was empty: an
    exchange gives nodes that wait no additional token. The check uses up a token of the old limiter, which ends anyway.

    Because `NoTokens` reports a rate of 1, a change from rate 0 to exactly 1 has no effect. This is upstream's
    behaviour, and previews must show it.

    Args:
        limiter: the one in use.
        rate: tokens per second from now on.
        now_us: the time.
    """
    if limiter.rate == single(rate):
        return limiter
    exchanged = new_limiter(rate)
    if not limiter.try_accept(now_us):
        exchanged.try_accept(now_us)
    return exchanged
