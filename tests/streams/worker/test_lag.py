"""Lag is newest event time less processed event time, not the age of the last record."""

from __future__ import annotations

import math

from evictstream.streams.worker.lag import Lag

PODS = ("pods", 0)
NOON_US = 1_795_000_000_000_000
NOON_MS = 1_795_000_000_000


def test_nothing_to_apply_is_no_lag() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US + 86_400_000_000)
    assert lag.seconds(PODS, 7, NOON_MS) == 0
    assert lag.records(PODS, 7) == 0


def test_a_backlog_lags_by_the_time_between_its_ends() -> None:
    """Read a week later: ninety seconds lie between the newest record and the one applied last."""
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US + 7 * 86_400_000_000)
    assert lag.unknown({PODS: 3}) == [PODS]
    lag.note_newest({PODS: NOON_US + 90_000_000})
    assert lag.unknown({PODS: 3}) == []
    assert lag.seconds(PODS, 3, NOON_MS) == 90
    assert lag.records(PODS, 3) == 4


def test_a_moved_end_dates_its_newest_record() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US)
    lag.note_ends({PODS: 9}, NOON_US + 1_000_000)
    lag.note_ends({PODS: 9}, NOON_US + 60_000_000)
    assert lag.seconds(PODS, 8, NOON_MS - 4_000) == 5


def test_an_answer_that_was_overtaken_does_not_count() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US)
    lag.note_ends({PODS: 9}, NOON_US + 1_000_000)
    lag.note_newest({PODS: NOON_US - 50_000_000})
    assert lag.seconds(PODS, 8, NOON_MS) == 1


def test_unknown_lag_is_infinite_and_never_small() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US)
    assert lag.seconds(PODS, 3, NOON_MS) == math.inf
    lag.note_newest({PODS: NOON_US})
    assert lag.seconds(PODS, 3, None) == math.inf


def test_a_broker_clock_ahead_makes_no_negative_lag() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US)
    lag.note_ends({PODS: 9}, NOON_US + 1_000_000)
    assert lag.seconds(PODS, 8, NOON_MS + 3_000) == 0


def test_a_partition_that_comes_back_is_asked_for_anew() -> None:
    lag = Lag()
    lag.note_ends({PODS: 7}, NOON_US)
    lag.note_ends({}, NOON_US + 1_000_000)
    lag.note_ends({PODS: 9}, NOON_US + 3_600_000_000)
    assert lag.unknown({PODS: 7}) == [PODS]
