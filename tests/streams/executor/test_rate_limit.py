"""So many a second, so many at once."""

from __future__ import annotations

from evictstream.streams.executor.rate_limit import RateLimit


def spent(limit: RateLimit, *, until: float, step: float = 0.001) -> int:
    count, now = 0, 0.0
    while now < until:
        while limit.wait_seconds(now) == 0:
            limit.spend()
            count += 1
        now += step
    return count


def test_the_burst_comes_first_and_then_the_rate() -> None:
    assert spent(RateLimit(rate=10, burst=5, now=0.0), until=0.0005) == 5
    assert spent(RateLimit(rate=10, burst=5, now=0.0), until=2.0) in {24, 25}


def test_the_wait_ends_with_a_token() -> None:
    limit = RateLimit(rate=4, burst=1, now=0.0)
    limit.spend()

    assert limit.wait_seconds(0.0) == 0.25
    assert limit.wait_seconds(0.25) == 0
