from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import NoTokens, TokenBucket, limiter_after, new_limiter

SECOND_US = 1_000_000
NOW_US = 1_420_113_600 * SECOND_US


@pytest.mark.parametrize(
    ("rate", "waits_us", "expected"),
    [
        pytest.param(0.1, [0], [True], id="8.1 burst 1: a new bucket is full"),
        pytest.param(0.1, [0, 0], [True, False], id="8.1 burst 1: one token"),
        pytest.param(0.1, [0, 9_999_999], [True, False], id="8.1 one node per 10 s: not a microsecond early"),
        pytest.param(0.1, [0, 10 * SECOND_US], [True, True], id="8.1 one node per 10 s"),
        pytest.param(0.1, [0, 10 * SECOND_US, 0], [True, True, False], id="8.1 one node per 10 s, not two"),
        pytest.param(0.1, [0, 100 * SECOND_US, 0], [True, True, False], id="8.1 burst 1: a long pause saves one token"),
        pytest.param(0.1, [0, 5 * SECOND_US, 5 * SECOND_US], [True, False, True], id="rate.go: refusals cost nothing"),
        pytest.param(0.01, [0, 100 * SECOND_US], [True, False], id="throttle.go: 0.01 in 32 bits is a little less"),
        pytest.param(0.01, [0, 100 * SECOND_US + 2], [True, False], id="throttle.go: 2 us are not enough"),
        pytest.param(0.01, [0, 100 * SECOND_US + 3], [True, True], id="throttle.go: 3 us later it is there"),
        pytest.param(100.0, [0, 9_999, 1], [True, False, True], id="node-eviction-rate=100: one per 10 ms"),
        pytest.param(5.5, [0, 181_818, 1], [True, False, True], id="TestSwapLimiter: 5.5 per second"),
        pytest.param(math.inf, [0, 0, 0], [True, True, True], id="rate.Inf: always"),
    ],
)
def test_tokens(rate: float, waits_us: list[int], expected: list[bool]) -> None:
    bucket = TokenBucket(rate)
    at_us = NOW_US
    got = []
    for wait_us in waits_us:
        at_us += wait_us
        got.append(bucket.try_accept(at_us))
    assert got == expected


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e-60], ids=["8.5 rate 0", "SwapLimiter: below 0", "0 in 32 bits"])
def test_rate_of_zero_never_gives_a_token(rate: float) -> None:
    limiter = new_limiter(rate)
    assert not any(limiter.try_accept(NOW_US + hour * 3600 * SECOND_US) for hour in range(100))


def test_clock_that_goes_back_gives_nothing_and_takes_nothing() -> None:
    bucket = TokenBucket(0.1)
    assert bucket.try_accept(NOW_US)
    assert not bucket.try_accept(NOW_US - 60 * SECOND_US)
    assert bucket.try_accept(NOW_US + 10 * SECOND_US)


@pytest.mark.parametrize(
    ("rates", "reported"),
    [
        pytest.param([0.1], 0.10000000149011612, id="throttle.go: QPS is a 32-bit float"),
        pytest.param([0.1, 0.0], 1.0, id="TestSwapLimiter: the limiter that never gives reports 1"),
        pytest.param([0.1, 0.0, 5.5], 5.5, id="TestSwapLimiter: a new rate"),
        pytest.param([0.1, 0.01], 0.009999999776482582, id="SwapLimiter: another rate"),
    ],
)
def test_reported_rate(rates: list[float], reported: float) -> None:
    limiter = new_limiter(rates[0])
    for rate in rates[1:]:
        limiter = limiter_after(limiter, rate, NOW_US)
    assert limiter.rate == reported


def test_the_same_rate_keeps_the_limiter_and_its_state() -> None:
    bucket = TokenBucket(0.1)
    assert limiter_after(bucket, 0.1, NOW_US) is bucket
    assert bucket.try_accept(NOW_US)


def test_exchange_of_a_full_limiter_gives_a_full_one() -> None:
    assert limiter_after(TokenBucket(0.1), 0.01, NOW_US).try_accept(NOW_US)


def test_exchange_of_an_empty_limiter_hands_out_no_fresh_burst() -> None:
    bucket = TokenBucket(0.1)
    assert bucket.try_accept(NOW_US)
    exchanged = limiter_after(bucket, 1.0, NOW_US)
    assert not exchanged.try_accept(NOW_US)
    assert exchanged.try_accept(NOW_US + SECOND_US)


def test_after_a_zero_rate_the_first_token_takes_time() -> None:
    limiter = limiter_after(NoTokens(), 0.1, NOW_US)
    assert not limiter.try_accept(NOW_US + 9 * SECOND_US)
    assert limiter.try_accept(NOW_US + 10 * SECOND_US)


def test_rate_of_exactly_one_is_not_taken_up_after_zero() -> None:
    """Upstream's limiter that never gives reports a rate of 1, so the exchange looks unnecessary to it."""
    limiter = limiter_after(limiter_after(TokenBucket(1.0), 0.0, NOW_US), 1.0, NOW_US)
    assert not limiter.try_accept(NOW_US + 3600 * SECOND_US)


@given(
    st.floats(0.0009765625, 1000, width=32),
    st.lists(st.integers(0, 30 * SECOND_US), max_size=60),
)
def test_never_more_than_rate_times_time_plus_one(rate: float, waits_us: list[int]) -> None:
    bucket = TokenBucket(rate)
    at_us, got = NOW_US, 0
    for wait_us in waits_us:
        at_us += wait_us
        got += bucket.try_accept(at_us)
    assert got <= rate * (at_us - NOW_US) / SECOND_US + 1.001
    assert got >= min(len(waits_us), 1)
