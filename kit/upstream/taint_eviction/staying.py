"""How long upstream's controller lets a pod stay, with its 64-bit arithmetic (semantics.md 4, 12.5, 13 row 33).

Kubernetes `pkg/controller/tainteviction/taint_eviction.go`, `getMinTolerationTime`. Seconds become a Go duration,
signed 64-bit nanoseconds, by a multiplication that overflows from 9223372037 s on. In recordings,
18446744074 s evicted after 0.3 s, and 9223372037 s, negative as a duration, never.
"""

from collections.abc import Sequence
from typing import Final

from evictstream.models.kubernetes.matching import stay_seconds
from evictstream.models.kubernetes.tolerations import Toleration

NANOSECONDS_PER_SECOND: Final = 1_000_000_000

_NANOSECONDS_PER_MICROSECOND: Final = 1_000
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


def wrapped_int64(number: int) -> int:
    """Wrap a number to signed 64 bit, as Go's multiplication does."""
    return (number - _LOWEST) % 2**64 + _LOWEST


def stay_us(in_use: Sequence[Toleration]) -> int | None:
    """Return how long a pod may stay with these tolerations in use.

    Returns:
        Microseconds, rounded up because a timer never fires early; 0 for "evict now"; None forever. A wrapped negative
        duration and the largest 64-bit number mean forever too. Larger numbers, which the API cannot hold, count as
        the largest.
    """
    seconds = stay_seconds(in_use)
    if seconds is None or seconds >= _HIGHEST:
        return None
    nanoseconds = wrapped_int64(seconds * NANOSECONDS_PER_SECOND)
    return None if nanoseconds < 0 else -(-nanoseconds // _NANOSECONDS_PER_MICROSECOND)
