"""Token buckets that hold one token (semantics.md 8.5).

Sources: `staging/src/k8s.io/client-go/util/flowcontrol/throttle.go`, `golang.org/x/time/rate/rate.go`. The arithmetic
is theirs, 64-bit floats on a 32-bit rate, because the last digits are seen: at 0.01 per second the second token comes
not after 100 s but 3 µs later.
"""

from typing import Final, Protocol

from evictstream.models.instants import MICROSECONDS_PER_SECOND
from evictstream.models.upstream.lifecycle.settings import single

BURST: Final = 1.0
"""The most tokens that a bucket holds, and what a new one holds."""

_NANOSECONDS_PER_SECOND: Final = 1e9


class Limiter(Protocol):
    """Gives tokens or does not."""

    @property
    def rate(self) -> float:
        """The rate that it reports, in tokens per second."""

    def try_accept(self, now_us: int) -> bool:
        """Take a token if there is one.

        Args:
            now_us: the time; it must not go backwards.
        """


class TokenBucket:
    """Starts full and fills at its rate up to one token.

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
        """Take the token if it is there; a try without success changes nothing."""
        waited_us = max(now_us - self._filled_at_us, 0)
        seconds, rest_us = divmod(waited_us, MICROSECONDS_PER_SECOND)
        waited_seconds = seconds + rest_us * 1000 / _NANOSECONDS_PER_SECOND
        tokens = self._tokens + waited_seconds * self.rate if waited_us else self._tokens
        left = min(tokens, BURST) - 1
        # What would be there within the same nanosecond counts as there.
        if left < 0 and int(-left / self.rate * _NANOSECONDS_PER_SECOND) > 0:
            return False
        self._tokens = left
        self._filled_at_us = now_us
        return True


class NoTokens:
    """Never gives a token; what a rate of 0 is."""

    rate: Final = 1.0
    """Not 0: what Kubernetes' own limiter of this kind reports, with a consequence for `limiter_after`."""

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

    A limiter that reports this rate already stays. Else the new bucket is full, unless the old one was empty: an
    exchange hands out no fresh token to those who wait. Asking the old one uses up its token, which no longer matters.

    Because the limiter that never gives reports a rate of 1, a rate of exactly 1 is not taken up after a rate of 0.
    Kubernetes has this weakness; a preview has to show it.

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
