"""The clock gate: forward jumps and a clock ahead of the brokers stop firing; backwards only delays."""

from __future__ import annotations

import pytest

from evictstream.models.instants import SECOND_US
from evictstream.streams.engine.core.ports import Committed
from evictstream.streams.worker.clock_watch import ClockWatch

START_US = 1_800_000_000 * SECOND_US


def watch() -> ClockWatch:
    return ClockWatch(skew_limit_seconds=5, jump_limit_seconds=30, jump_hold_seconds=300)


@pytest.mark.parametrize(
    ("jump_seconds", "objects"),
    [
        pytest.param(0, False, id="steady"),
        pytest.param(29, False, id="at most the limit forward"),
        pytest.param(31, True, id="forward"),
        pytest.param(86_400, True, id="a day forward"),
        pytest.param(-31, False, id="back only delays"),
    ],
)
def test_only_a_jump_forward_beyond_the_limit_objects(jump_seconds: int, *, objects: bool) -> None:
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.tick(START_US + (1 + jump_seconds) * SECOND_US, 1001.0)
    assert (clock.objection(1001.0) is not None) is objects


def test_firing_goes_on_after_the_hold() -> None:
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.tick(START_US + 100 * SECOND_US, 1001.0)
    assert clock.objection(1300.0) is not None
    assert clock.objection(1301.0) is None


def test_slow_drift_is_no_jump() -> None:
    clock = watch()
    for second in range(1000):
        clock.tick(START_US + int(second * 1.04 * SECOND_US), 1000.0 + second)
    assert clock.objection(2000.0) is None


@pytest.mark.parametrize(
    ("ahead_seconds", "objects"),
    [
        pytest.param(0, False, id="agrees"),
        pytest.param(4, False, id="within the limit"),
        pytest.param(6, True, id="ahead of the brokers"),
        pytest.param(-4, False, id="behind within the limit"),
        pytest.param(-6, True, id="behind the brokers"),
    ],
)
def test_a_clock_that_differs_beyond_the_limit_objects(ahead_seconds: int, *, objects: bool) -> None:
    clock = watch()
    clock.tick(START_US, 1000.0)
    broker_ms = START_US // 1000 - ahead_seconds * 1000
    clock.observe(Committed(broker_ms, 999.995, 1000.0))
    assert (clock.objection(1000.0) is not None) is objects


def test_a_small_jump_counts_against_the_brokers_at_once() -> None:
    """Found by the torture: until the next transaction, evictions due within the jump were issued too early."""
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.observe(Committed(START_US // 1000, 999.995, 1000.0))
    clock.tick(START_US + 11 * SECOND_US, 1001.0)
    assert clock.objection(1001.0) is not None


def test_a_corrected_clock_is_trusted_without_another_transaction() -> None:
    """Found by the torture: on a quiet partition firing waited forever."""
    clock = watch()
    clock.tick(START_US + 10 * SECOND_US, 1000.0)
    committed = Committed(START_US // 1000, 999.995, 1000.0)
    clock.observe(committed)
    assert clock.objection(1000.0) is not None
    clock.tick(START_US + SECOND_US, 1001.0)
    clock.observe(committed)
    assert clock.objection(1001.0) is None


def test_a_slow_transaction_does_not_loosen_a_fast_ones_bounds() -> None:
    """Else a broker that was frozen for 4 s would seem that much ahead, and a worker's clock that is, right."""
    clock = watch()
    clock.tick(START_US + 6 * SECOND_US, 1000.0)
    clock.observe(Committed(START_US // 1000, 999.995, 1000.0))
    clock.tick(START_US + 11 * SECOND_US, 1005.0)
    clock.observe(Committed(START_US // 1000 + 5000, 1001.0, 1005.0))
    assert clock.objection(1005.0) is not None


def test_a_slow_transaction_alone_gives_wide_bounds() -> None:
    """If it was appended at its end the worker's clock is 6 s ahead, if at its beginning 2 s."""
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.observe(Committed(START_US // 1000 - 2000, 996.1, 1000.0))
    assert clock.objection(1000.0) is None
    clock.tick(START_US + 4 * SECOND_US, 1000.0)
    assert clock.objection(1000.0) is not None


def test_brokers_whose_clock_was_set_are_believed_at_once() -> None:
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.observe(Committed(START_US // 1000 - 60_000, 999.995, 1000.0))
    assert clock.objection(1000.0) is not None
    clock.observe(Committed(START_US // 1000 + 1000, 1000.995, 1001.0))
    assert clock.objection(1001.0) is None


def test_an_older_transaction_of_another_partition_changes_nothing() -> None:
    clock = watch()
    clock.tick(START_US, 1000.0)
    clock.observe(Committed(START_US // 1000, 999.995, 1000.0))
    clock.observe(Committed(START_US // 1000 - 60_000, 989.995, 990.0))
    assert clock.objection(1000.0) is None


def test_a_topic_without_append_times_changes_nothing() -> None:
    clock = watch()
    clock.observe(Committed(-1, 0.0, 0.005))
    assert clock.objection(0.0) is None
