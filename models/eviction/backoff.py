"""How long to wait before the next attempt: exponential, with a ceiling, spread, and the same at every replay."""

import zlib
from typing import Final

_SPREAD_PARTS: Final = 10  # up to a tenth is taken off, enough to pull 45,000 equal timers apart by seconds
_HASH_BITS: Final = 32
_LARGEST_SHIFT: Final = 40  # 2**40 microseconds are 12 days, above any ceiling; keeps the number small after years


def wait_us(base_us: int, ceiling_us: int, eviction_id: str, attempt: int) -> int:
    """Compute the wait after an attempt.

    `base_us` doubled for every attempt after the first, at most `ceiling_us`, less up to a tenth of it. What is taken
    off is a hash of eviction and attempt, not chance: a replay and a new owner compute the same instant.

    Args:
        base_us: wait after attempt 1, microseconds.
        ceiling_us: longest wait, microseconds.
        eviction_id: the eviction.
        attempt: the attempt that was made, from 1; there is no upper limit.

    Returns:
        Microseconds, at least one.
    """
    longest_us = min(base_us << min(attempt - 1, _LARGEST_SHIFT), ceiling_us)
    fraction = zlib.crc32(f"{eviction_id}:{attempt}".encode())  # spreads well enough, at a tenth of a digest's cost
    return max(1, longest_us - longest_us * fraction // (_SPREAD_PARTS << _HASH_BITS))
